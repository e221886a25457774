//! Single changes, tried one by one by the same function, and those that help most.
//!
//! A change is another request: what it promises is what the same command with that change answers, whatever else follows from
//! it (an engine's own limits and cache, adapters' slots, a link that was given).

use super::drafter::{Drafts, Speculation};
use super::met::Met;
use super::solve::Unknown;
use super::words::{means, overloaded};
use super::work::{Ask, Case};
use super::{Change, Loras, Request};
use crate::desk::prelude::*;
use crate::desk::remedy::narrower;
use crate::layout::DegreesRequest;
use crate::offload::Offloaded;
use crate::setting::LLAMA_CPP;
use crate::simulate::What;
use crate::support::{self, Verdict};
use rackmath_spec::engine::Assumed;
use rackmath_spec::support::Stored;
use rackmath_spec::{Brief, Gguf, Kind, Math, System};
use rackmath_theory::deployment::Deployment;
use rackmath_theory::layout::domain;
use rackmath_theory::pools::{Loading, Outcome, Serving};
use rackmath_theory::split::{fewest_expert_layers, fewest_layers};

/// How many are kept.
const KEPT: usize = 3;

/// How many are simulated to keep that many, where today is.
const SIMULATED: usize = 2 * KEPT;

/// Gains below this share are not worth a line.
const LEAST: f64 = 0.01;

/// Requests in flight up to which users' speed counts more than throughput.
const FEW: f64 = 8.0;

/// How long a token may take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slowest {
    Any,
    Today,
    Target,
}

/// By what changes are judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// Output tokens per second and chip, at no worse a time per token unless any will do.
    Throughput(Slowest),
    Speed,
    /// From arrival to the last token.
    Whole,
    /// The target that is missed most, where no change meets all.
    Nearest,
}

impl Goal {
    /// Who waits to be let in waits for the whole: what makes room for more of them lengthens each token.
    fn of(load: Loading, target: bool, waits: bool) -> Self {
        match load {
            Loading::Concurrency(_) if waits => Self::Whole,
            _ if target && load == Loading::Full => Self::Throughput(Slowest::Target),
            Loading::Full => Self::Throughput(Slowest::Any),
            Loading::Rate(_) => Self::Whole,
            Loading::Concurrency(c) if c <= FEW => Self::Speed,
            Loading::Concurrency(_) if target => Self::Throughput(Slowest::Target),
            Loading::Concurrency(_) => Self::Throughput(Slowest::Today),
        }
    }

    fn remark(self) -> Remark {
        says(match self {
            Self::Throughput(Slowest::Today) => "judged_by_chip_no_slower",
            Self::Throughput(Slowest::Target) => "judged_by_chip_in_target",
            Self::Throughput(Slowest::Any) => "judged_by_chip",
            Self::Speed => "judged_by_user",
            Self::Whole => "judged_by_whole",
            Self::Nearest => "judged_by_nearest",
        })
    }
}

/// What a deployment comes to under its load, by which changes are judged.
#[derive(Clone, Copy)]
struct Stands {
    serves: bool,
    /// The worst time over its limit; above one where a target is missed, without end where nothing is served.
    miss: f64,
    tpot: f64,
    ttft: f64,
    whole: f64,
    per_chip: f64,
}

impl Stands {
    fn of(case: &Case, ask: &Ask, outcome: &Outcome, met: &Met) -> Self {
        let [queue, first, tpot] = means(outcome, met).map(|ms| ms / 1e3);
        let (ttft, whole) = (queue + first, queue + first + tpot * (ask.requests.output - 1.0).max(0.0));
        let serves = outcome.serves() && !overloaded(outcome, met) && case.held();
        let over = |((what, mean), limit): ((What, f64), Option<AtMost>)| {
            let limit = limit?;
            // A percentile that was not simulated is no better than the mean.
            let found = met.run().and_then(|p| p.of(what)).and_then(|t| t.percentile_ms);
            let value = found.filter(|_| limit.percentile.is_some()).unwrap_or(mean * 1e3);
            Some(value / limit.ms)
        };
        let times = [(What::Ttft, ttft), (What::Tpot, tpot), (What::E2e, whole)];
        let miss = times.into_iter().zip(case.limits()).filter_map(over).fold(0.0, f64::max);
        let miss = if serves { miss } else { f64::INFINITY };
        Self { serves, miss, tpot, ttft, whole, per_chip: outcome.output_per_chip(&ask.requests) }
    }

    fn meets(&self) -> bool {
        self.miss <= 1.0
    }

    /// What a change is worth: nothing where it does not help, or breaks what is kept today.
    fn worth(&self, then: &Self, goal: Goal, fewer: bool) -> Option<Worth> {
        let rescues = !self.meets() && then.meets();
        let gain = match goal {
            Goal::Throughput(_) => then.per_chip / self.per_chip,
            Goal::Speed => self.tpot / then.tpot,
            Goal::Whole => self.whole / then.whole,
            Goal::Nearest => self.miss / then.miss,
        } - 1.0;
        if rescues {
            return Some(Worth { rescues, nearer: false, gain });
        }
        if !self.meets() {
            // Where no change meets the targets, those that come nearer to them are named.
            let gain = self.miss / then.miss - 1.0;
            return (self.serves && gain >= LEAST).then_some(Worth { rescues, nearer: true, gain });
        }
        // Faster tokens are no help to whom they keep waiting for the first.
        let later = then.whole > self.whole * (1.0 + 1e-9);
        let slower = then.tpot > self.tpot * (1.0 + 1e-9) || later;
        let barred = match goal {
            Goal::Throughput(slowest) => slowest == Slowest::Today && slower,
            Goal::Speed => later,
            Goal::Whole => fewer,
            Goal::Nearest => false,
        };
        (then.meets() && !barred && gain >= LEAST).then_some(Worth { rescues, nearer: false, gain })
    }
}

/// What a change is worth.
#[derive(Clone, Copy)]
struct Worth {
    /// It meets what is missed today, or serves where nothing is.
    rescues: bool,
    /// It only comes nearer to targets that it misses too.
    nearer: bool,
    gain: f64,
}

/// A change that was tried.
struct Tried<'a> {
    worth: Worth,
    idea: &'a Idea,
    then: Case<'a>,
    serving: Serving,
    outcome: Outcome,
    stands: Stands,
}

impl Tried<'_> {
    /// The best first: what meets targets, then what takes back what the line itself asked for and costs nothing, then what gains;
    /// where instances cannot keep up, more of the same before others.
    fn before(&self, other: &Self) -> std::cmp::Ordering {
        let order = |t: &Self| (!t.worth.nearer, t.worth.rescues, t.worth.rescues && t.idea.copies, t.idea.undoes);
        order(other).cmp(&order(self)).then(other.worth.gain.total_cmp(&self.worth.gain))
    }
}

/// The best three by the steady state; where today was simulated, they are too.
pub(super) fn best(
    catalog: &Catalog,
    case: &Case,
    serving: &Serving,
    (now, met): (&Outcome, &Met),
    effort: &Effort,
) -> Result<Vec<Change>, Error> {
    let waits = now.serves() && now.queue > 0.0;
    let goal = Goal::of(case.ask.load, case.request.tpot_ms.is_some(), waits);
    let stands = Stands::of(case, &case.ask, now, met);
    let ideas = ideas(catalog, case, serving, (now, waits));
    let mut tried: Vec<Tried> = Vec::new();
    for idea in &ideas {
        tried.extend(attempt(catalog, case, serving, (&stands, goal), idea));
    }
    tried.sort_by(Tried::before);
    // Of numbers of slots, and of ways to use another chip, the best is enough.
    for one in ["slots_of", "chip_instead"] {
        let mut seen = false;
        tried.retain(|t| t.idea.what.says != one || !std::mem::replace(&mut seen, true));
    }
    // What arrives at a rate is simulated, today's run or not: a steady state says little of a queue near its end.
    if met.run().is_some() || matches!(case.ask.load, Loading::Rate(_)) {
        let mut kept = Vec::new();
        for mut one in tried.into_iter().take(SIMULATED) {
            let felt = one.then.met(&one.then.ask, &one.serving, &one.outcome, effort)?;
            one.stands = Stands::of(&one.then, &one.then.ask, &one.outcome, &felt);
            if let Some(worth) = stands.worth(&one.stands, goal, one.idea.fewer(case.ask.load)) {
                one.worth = worth;
                kept.push(one);
            }
            if kept.iter().filter(|t: &&Tried| !t.worth.nearer).count() >= KEPT {
                break;
            }
        }
        kept.sort_by(Tried::before);
        tried = kept;
    }
    // What misses the targets is said only where nothing meets them.
    let goal = if tried.first().is_some_and(|t| t.worth.nearer) { Goal::Nearest } else { goal };
    tried.retain(|t| t.worth.nearer == (goal == Goal::Nearest));
    tried.truncate(KEPT);
    let today = case.scale.brief(&case.ask.on, &[], false);
    let told = |t: Tried| {
        let (ask, then) = (&t.then.ask, &t.outcome);
        let sides = today.as_ref().zip(t.then.scale.brief(&ask.on, &[], false)).filter(|_| t.idea.foreign);
        let apart = sides.map(|(a, b)| float::exp(case.scale.apart(a, &b).tpot));
        Change {
            what: t.idea.what.clone(),
            judged_by: goal.remark(),
            gain: stands.serves.then_some(t.worth.gain),
            apart: apart.filter(|factor| t.worth.gain < factor - 1.0),
            rescues: t.worth.rescues,
            chips: then.chips as u64,
            tpot_ms: t.stands.tpot * 1e3,
            ttft_ms: t.stands.ttft * 1e3,
            output_tok_s_per_chip: t.stands.per_chip,
            usd_per_mtok_output: then.usd_per_mtok(&ask.requests, ask.price).map(|u| u.0),
            usd_per_mtok_input: then.usd_per_mtok(&ask.requests, ask.price).map(|u| u.1),
            usd_per_mtok_with_prompts: then.usd_per_mtok_with_prompts(&ask.requests, ask.price),
            caution: t.idea.caution.clone(),
        }
    };
    Ok(tried.into_iter().map(told).collect())
}

/// A change as its own command would have it; nothing where it cannot be, does not fit, or is of no help.
fn attempt<'a>(
    catalog: &'a Catalog,
    case: &Case,
    serving: &Serving,
    (now, goal): (&Stands, Goal),
    idea: &'a Idea,
) -> Option<Tried<'a>> {
    let mut then = Case::new(catalog, &idea.request).ok()?;
    // What is not known to run is no remedy; only of the same engine, chip and formats as today nothing more is asked.
    let (was, on) = (&case.ask.on, &then.ask.on);
    let same = was.formats == on.formats && was.kv == on.kv && was.engine.id == on.engine.id;
    let same = same && was.system.chip.id == on.system.chip.id;
    let enough = if same { case.standing.verdict.max(Verdict::RunsAs) } else { Verdict::RunsAs };
    if then.standing.verdict > enough || !then.standing.cuts(&on.layout) {
        return None;
    }
    let ready = then.ready_like(&then.ask, Some(serving)).ok()?;
    then.ask.settle(&ready);
    let outcome = ready.under(&then.ask.requests, then.ask.load);
    if !outcome.serves() || !then.held() {
        return None;
    }
    let stands = Stands::of(&then, &then.ask, &outcome, &Met::Unasked);
    let worth = now.worth(&stands, goal, idea.fewer(case.ask.load))?;
    Some(Tried { worth, idea, then, serving: ready, outcome, stands })
}

/// A change, not yet tried.
struct Idea {
    what: Remark,
    /// The command with it.
    request: Request,
    /// Whether it leaves the engine and the chip, so that errors do not cancel.
    foreign: bool,
    /// Whether it is the same instance again, on chips of the machine that do nothing today.
    copies: bool,
    /// Whether it takes back what the line asked for: weights off the card, slots for adapters.
    undoes: bool,
    /// What it asks for beside itself.
    caution: Option<Remark>,
}

impl Idea {
    /// Whether it only sends fewer requests.
    fn fewer(&self, than: Loading) -> bool {
        matches!((self.request.concurrency, than), (Some(then), Loading::Concurrency(now)) if then < now)
    }
}

/// The menu: one change at a time to the layout, the formats, the load, the engine or the chip.
fn ideas(catalog: &Catalog, case: &Case, serving: &Serving, (now, waits): (&Outcome, bool)) -> Vec<Idea> {
    let mut all = kept_on_card(catalog, case);
    all.extend(layouts(case));
    all.extend(copies(case));
    all.extend(sequences(case, serving).filter(|_| waits));
    if waits || !now.serves() {
        all.extend(slots(case));
    }
    if serving.room < 1.0 {
        let known: Vec<DegreesRequest> = all.iter().map(|idea| idea.request.degrees.clone()).collect();
        all.extend(room(case).into_iter().filter(|idea| !known.contains(&idea.request.degrees)));
    }
    all.extend(formats(catalog, case, waits));
    // What is laid over cards by tensors is asked for by name: by layers is what llama.cpp does unless told.
    if case.ask.on.engine.family == LLAMA_CPP {
        let cut = |idea: &&mut Idea| idea.request.degrees.tp > case.request.degrees.tp.max(Some(1));
        all.iter_mut().filter(cut).for_each(|idea| idea.caution = Some(says("needs_split_mode")));
    }
    all.extend(loads(case, serving));
    all.extend(engines(catalog, case));
    all.extend(chip(catalog, case));
    all
}

/// More of the weights on the card than were asked to lie in the host's memory: all of them, or the most that fit.
fn kept_on_card(catalog: &Catalog, case: &Case) -> Vec<Idea> {
    let (on, offload) = (&case.ask.on, &case.request.offload);
    let Some(split) = on.split.as_deref().filter(|split| split.cards.is_empty()) else { return Vec::new() };
    let with = |what: Remark, offload: Offloaded| Idea {
        undoes: true,
        ..idea(what, Request { offload, ..case.request.clone() })
    };
    let bare = offload.bare();
    let mut all = vec![with(says("all_on_card"), bare.clone())];
    let load = on.load(&case.ask.requests, in_flight(case.ask.load), on.engine.schedule.chunk);
    if let Some((layers, empty)) = on.model.shape().zip(bare.empty(catalog, on, false).ok())
        && on.engine.offload.as_ref().is_some_and(|o| o.computes)
    {
        let plain = Deployment { split: None, ..on.clone() };
        let few = fewest_expert_layers(&plain, &load, &empty).filter(|n| (*n as f64) < split.experts.max(split.layers));
        let told =
            |n: u64| (says("experts_off_card").with("layers", n), Offloaded { n_cpu_moe: Some(n), ..bare.clone() });
        all.extend(few.map(told).map(|(what, offload)| with(what, offload)));
        let few = fewest_layers(&plain, &load, &empty).filter(|n| (*n as f64) < split.layers);
        let kept = |n: u64| layers.n_layers() + 1 - n;
        let told = |n: u64| (says("layers_on_the_card").with("layers", kept(n)), kept(n));
        all.extend(few.map(told).map(|(what, n)| with(what, Offloaded { gpu_layers: Some(n), ..bare.clone() })));
    }
    all
}

fn in_flight(load: Loading) -> f64 {
    if let Loading::Concurrency(c) = load { c } else { 1.0 }
}

/// Other numbers of slots for adapters: more where requests wait for one, fewer where slots take the cache's memory.
fn slots(case: &Case) -> Vec<Idea> {
    let Some(loras) = &case.request.loras else { return Vec::new() };
    let (now, most) = (loras.loras, loras.lora_count.unwrap_or(loras.loras));
    let mut all = vec![now * 9 / 10, now * 3 / 4, now / 2, now * 2, now * 4];
    all.retain(|n| *n >= 1 && *n <= most && *n != now);
    all.dedup();
    let other = |n: u64| {
        let host = loras.max_cpu_loras.map(|kept| kept.max(n));
        let loras = Some(Loras { loras: n, max_cpu_loras: host, ..loras.clone() });
        let what = says("slots_of").with("slots", n).with("now", now);
        Idea { undoes: true, ..idea(what, Request { loras, ..case.request.clone() }) }
    };
    all.into_iter().map(other).collect()
}

fn idea(what: Remark, request: Request) -> Idea {
    Idea { what, request, foreign: false, copies: false, undoes: false, caution: None }
}

fn foreign(what: Remark, request: Request) -> Idea {
    Idea { foreign: true, ..idea(what, request) }
}

/// The same command with other degrees, on more chips where these need more.
fn laid(case: &Case, layout: &Layout) -> Request {
    let mut next = Request { degrees: layout.degrees().into(), flags: None, tool: None, ..case.request.clone() };
    if layout.chips() > case.ask.on.system.n_chips {
        next.setting.chips = Some(layout.chips());
    }
    next
}

/// What makes room where there is none, beyond the menu.
fn room(case: &Case) -> Vec<Idea> {
    let on = &case.ask.on;
    let load = on.least(&case.ask.requests, on.engine.schedule.chunk);
    // Formats stand in the menu, with a word on their quality.
    let runs = |next: &Deployment| next.kv == on.kv && case.runs(next);
    let all = crate::desk::remedy::remedies(on, &load, runs).into_iter();
    let narrower = |next: &Deployment| next.formats != on.formats;
    all.filter(|(_, next)| !narrower(next)).map(|(what, next)| idea(what, laid(case, &next.layout))).collect()
}

fn layouts(case: &Case) -> Vec<Idea> {
    let ask = &case.ask;
    let d = ask.on.layout.degrees();
    let sparse = ask.on.model.shape().is_some_and(|s| s.moe().is_some());
    let stage = d.tp * d.cp * d.dp;
    // Experts follow the attention cut: wherever it goes, ep and etp fill the stage as before.
    let with = |tp: u64, dp: u64| {
        let stage = tp * d.cp * dp;
        let (ep, etp) = if d.ep > 1 { (stage / d.etp.min(stage).max(1), d.etp) } else { (1, stage) };
        Degrees { tp, dp, ep, etp, ..d }
    };
    let mut all = Vec::new();
    if d.tp * 2 <= domain(&ask.on.system) {
        all.push(with(d.tp * 2, d.dp));
        if d.dp.is_multiple_of(2) {
            all.push(with(d.tp * 2, d.dp / 2));
        }
    }
    if d.tp.is_multiple_of(2) {
        all.push(with(d.tp / 2, d.dp));
        all.push(with(d.tp / 2, d.dp * 2));
    }
    if sparse && d.tp > 2 {
        all.push(with(1, d.dp * d.tp));
    }
    if sparse && d.ep == 1 && stage > 1 {
        all.push(Degrees { ep: stage, etp: 1, ..d });
    }
    if sparse && d.ep == stage && stage > 1 && stage <= 8 {
        all.push(Degrees { ep: 1, etp: stage, redundant: 0, ..d });
    }
    let mut layouts: Vec<Layout> = all.into_iter().filter_map(|d| Layout::new(d).ok()).collect();
    layouts.dedup();
    layouts.retain(|l| l.chips() <= ask.on.system.n_chips && *l != ask.on.layout);
    let other = |layout: Layout| {
        let now = Some(ask.on.layout.chips()).filter(|now| *now != layout.chips());
        let what = says(if now.is_none() { "layout_same_chips" } else { "layout_other_chips" });
        let what = what.with("layout", crate::desk::cut::words(&ask.on.model, &layout));
        let what = what.with("chips", now.map(|_| layout.chips())).with("now", now);
        idea(what, laid(case, &layout))
    };
    layouts.into_iter().map(other).collect()
}

/// The same instance on the chips of the machine that do nothing.
fn copies(case: &Case) -> Option<Idea> {
    let ask = &case.ask;
    let (d, chips) = (ask.on.layout.degrees(), ask.on.layout.chips());
    let n = ask.on.system.n_chips / chips;
    if n < 2 || d.ep > 1 || ask.split.is_some() || ask.on.split.is_some() {
        return None;
    }
    let layout = Layout::new(Degrees { dp: d.dp * n, ..d }).ok()?;
    let what = says("copies_on_rest").with("copies", n).with("dp", d.dp * n);
    let what = what.with("chips", layout.chips()).with("now", chips);
    Some(Idea { copies: true, ..idea(what, laid(case, &layout)) })
}

/// As many sequences at a time as memory holds, where the engine's limit lets in fewer than come.
fn sequences(case: &Case, serving: &Serving) -> Option<Idea> {
    let (ask, stages) = (&case.ask, serving.main.deployment.stages());
    let Loading::Concurrency(c) = ask.load else { return None };
    let wanted = (c / serving.groups()).ceil().min(serving.room.floor()) / stages;
    let now = ask.on.engine.schedule.sequences;
    if wanted <= now || super::adapters::waits_for_slot(case) {
        return None;
    }
    let what = says("sequences_of").with("sequences", wanted.ceil()).with("now", now);
    Some(idea(what, Request { max_num_seqs: Some(wanted.ceil()), ..case.request.clone() }))
}

fn formats(catalog: &Catalog, case: &Case, waits: bool) -> Vec<Idea> {
    let (asked, p) = (case.request, &case.ask.on);
    let set = |setting: Setting| Request { setting, ..asked.clone() };
    let now = p.formats.linear.bits().max(p.formats.routed.bits());
    let mut all = Vec::new();
    for dtype in narrower(p, |next| case.runs(next)) {
        // To be faster the chip must multiply it as it is.
        let narrow = |math: &&Math| matches!(math, Math::Fp8 | Math::Int8 | Math::Fp4);
        let own = dtype.maths().first().filter(narrow).is_some_and(|math| p.system.chip.peak.contains_key(math));
        if own && dtype.bits() < now - 1.0 {
            let next = set(Setting { weights: Some(dtype.to_string()), ..asked.setting.clone() });
            let quality = support::quality(catalog, dtype, Stored::Weights);
            let caution = Some(says("needs_checkpoint").with("quality", quality));
            all.push(Idea { caution, ..idea(says("weights_in").with("format", dtype), next) });
        }
    }
    // Where memory is waited for, half the bytes help also a chip that does not multiply them.
    let cached = |kv: Dtype| Deployment { kv, ..p.clone() };
    let mut caches = vec![Dtype::Fp8];
    caches.extend(waits.then_some(Dtype::Gguf(Gguf::Q8_0)));
    let worth = p.kv.bits() > 12.0 && (waits || p.system.chip.peak.contains_key(&Math::Fp8));
    let narrow = caches.into_iter().find(|kv| worth && case.runs(&cached(*kv)));
    if let Some(kv) = narrow {
        let quality = support::quality(catalog, kv, Stored::Cache);
        let caution = quality.map(|words| says("needs_quality").with("quality", words));
        let next = set(Setting { kv: Some(kv.to_string()), ..asked.setting.clone() });
        all.push(Idea { caution, ..idea(says("kv_in").with("format", kv), next) });
    }
    if case.ask.requests.drafts == 0.0 {
        let Assumed { drafts, acceptance, .. } = p.engine.assumed;
        let guess =
            Speculation { drafts: Drafts::Number(drafts), acceptance: Some(acceptance), ..Speculation::default() };
        let next = Request { speculation: Some(guess), ..asked.clone() };
        let caution = Some(says("needs_drafter").with("share", acceptance));
        all.push(Idea { caution, ..idea(says("speculation_with").with("drafts", drafts), next) });
    }
    all
}

fn loads(case: &Case, serving: &Serving) -> Vec<Idea> {
    let ask = &case.ask;
    // Of users nobody decides how many have a request in flight.
    let Loading::Concurrency(c) = ask.load else { return Vec::new() };
    // What was solved for is the most within the targets: fewer is no help, more no answer.
    if ask.users.is_some() || case.sought.is_some_and(Unknown::is_load) {
        return Vec::new();
    }
    let most = serving.room * serving.groups();
    let loaded = |c: f64| Request { concurrency: Some(c), ..case.request.clone() };
    let to = |c: f64| idea(says("concurrency_of").with("requests", c), loaded(c));
    let mut all = Vec::new();
    if c > most && most >= 1.0 {
        // Who waits for memory gains nothing from waiting inside.
        all.push(to(most.floor()));
    }
    all.extend([2.0, 4.0].map(|f| c * f).into_iter().filter(|c| *c <= most).map(to));
    all.extend([2.0, 4.0].into_iter().filter(|f| c >= *f).map(|f| to((c / f).floor())));
    all
}

/// Engines that serve the same chips; the newest family of each.
const SERVERS: [&str; 4] = ["vllm", "sglang", "trtllm", "atom"];

fn engines(catalog: &Catalog, case: &Case) -> Vec<Idea> {
    let own = &case.ask.on.engine;
    if !SERVERS.contains(&own.family.as_str()) {
        return Vec::new();
    }
    let others = SERVERS.into_iter().filter(|name| *name != own.id);
    let other = |name: &str| {
        let (engine, _) = catalog.engine(name).ok()?;
        let what = says("engine_of").with("name", &engine.name).with("id", name);
        Some(foreign(what, Request { engine: name.into(), tool: None, ..case.request.clone() }))
    };
    others.filter_map(other).collect()
}

/// A size of memory that is as good as another: data sheets and programs differ by so much of one.
const AS_LARGE: f64 = 0.98;

/// The machine whose chips have the next higher bandwidth, by the same maker, the cheapest of those alike, joined by the link that was
/// given, if one was. What lies in a host's memory stays there, unless the chip has a host of its own or holds all of it.
fn chip(catalog: &Catalog, case: &Case) -> Vec<Idea> {
    let Some((what, request)) = faster_chip(catalog, case) else { return Vec::new() };
    let mut all = vec![foreign(what.clone(), request.clone())];
    if case.ask.on.split.is_some() {
        let what = Remark { with: what.with.into_iter().filter(|(name, _)| name != "host").collect(), ..what };
        all.push(foreign(what, Request { offload: request.offload.bare(), ..request }));
    }
    all
}

fn faster_chip(catalog: &Catalog, case: &Case) -> Option<(Remark, Request)> {
    let (ask, given) = (&case.ask, &case.request.setting);
    let now = &ask.on.system;
    // Of several cards that share the layers, one instead says nothing about the others.
    if ask.on.cards() > 0 {
        return None;
    }
    let memory = &now.chip.memory;
    let faster = |s: &Brief| {
        let enough = s.size >= memory.size() * AS_LARGE && s.n_chips >= ask.on.layout.chips();
        // A chip that is announced but not priced cannot be compared.
        s.vendor == now.chip.vendor && enough && s.priced && s.bandwidth.get() > memory.bandwidth.value.get() * 1.05
    };
    let ids = || catalog.ids(Kind::Systems).filter(|id| !id.starts_with("lecture"));
    let mut all: Vec<_> = ids().filter_map(|id| Some((id, catalog.brief(id).ok().filter(faster)?))).collect();
    all.sort_by(|(_, a), (_, b)| a.bandwidth.get().total_cmp(&b.bandwidth.get()).then(a.n_chips.cmp(&b.n_chips)));
    let least = all.first()?.1.bandwidth * 1.01;
    let alike = all.into_iter().filter(|(_, s)| s.bandwidth <= least).filter_map(|(id, _)| catalog.system(id).ok());
    let price = |s: &System| s.chip.usual_price().map_or(f64::INFINITY, |price| price.value.get());
    let system = alike.min_by(|a, b| price(a).total_cmp(&price(b)))?;
    // Who named so many chips gets as many of the other; who named a machine, a machine.
    let (on, chips) = if ids().any(|id| id == now.id) {
        (system.id.clone(), given.chips)
    } else {
        (format!("{}x{}", now.n_chips, system.chip.id), None)
    };
    let own = system.chip.host.memory.as_deref() == Some("lpddr-grace");
    let host = ask.on.split.as_ref().filter(|_| !own).map(|split| split.host.id.clone());
    let what = says("chip_instead").with("chip", &system.chip.name).with("now", &now.chip.name).with("on", &on);
    let what = what.with("host", host.as_deref());
    let setting = Setting { on, chips, price_usd_per_chip_hour: None, ..given.clone() };
    let offload = Offloaded { host: host.or(case.request.offload.host.clone()), ..case.request.offload.clone() };
    Some((what, Request { setting, offload, ..case.request.clone() }))
}
