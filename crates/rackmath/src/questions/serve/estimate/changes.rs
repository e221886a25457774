//! Single changes, tried one by one by the same function, and those that help most.

use super::Change;
use super::met::Met;
use super::work::{Ask, Case};
use crate::desk::prelude::*;
use crate::desk::remedy::{in_format, narrower};
use crate::simulate::{Percentiles, What};
use crate::support::{self, Verdict};
use rackmath_spec::engine::Assumed;
use rackmath_spec::support::Stored;
use rackmath_spec::{Brief, Gguf, Kind, Math};
use rackmath_theory::deployment::{Deployment, Links};
use rackmath_theory::layout::{check, domain};
use rackmath_theory::pools::{Loading, Outcome, Serving};
use rackmath_theory::steady::yielded;

/// How many are kept.
const KEPT: usize = 3;

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
        })
    }
}

/// The best three by the steady state; where today was simulated, they are too.
pub(super) fn best(
    catalog: &Catalog,
    case: &Case,
    serving: &Serving,
    (now, met): (&Outcome, Option<&Percentiles>),
    effort: &Effort,
) -> Result<Vec<Change>, Error> {
    let waits = now.serves() && now.queue > 0.0;
    let goal = Goal::of(case.ask.load, case.request.tpot_ms.is_some(), waits);
    let [ttft, tpot, whole] = case.limits().map(|l| l.map(|l| l.ms / 1e3));
    let targets = (ttft, tpot);
    let meets = |o: &Outcome| {
        o.serves()
            && targets.0.is_none_or(|t| o.ttft + o.queue <= t)
            && targets.1.is_none_or(|t| o.tpot() <= t)
            && whole.is_none_or(|t| o.e2e(&case.ask.requests) <= t)
    };
    let today = case.scale.brief(&case.ask.on, &[], false);
    let mut tried: Vec<(Rank, Change, Idea, f64)> = Vec::new();
    for mut idea in ideas(catalog, case, serving, waits) {
        // What is not known to run is no remedy; only of the same engine, chip and formats as today nothing more is asked.
        let Ok(standing) = case.stand(&idea.ask.on) else { continue };
        let (was, on) = (&case.ask.on, &mut idea.ask.on);
        let same = was.formats == on.formats && was.kv == on.kv && was.engine.id == on.engine.id;
        let same = same && was.system.chip.id == on.system.chip.id;
        let enough = if same { case.standing.verdict.max(Verdict::RunsAs) } else { Verdict::RunsAs };
        if standing.verdict > enough || !standing.cuts(&on.layout) {
            continue;
        }
        standing.apply(&mut on.formats, &mut on.kv, &mut on.system);
        let Some(then) = outcome(case, &idea.ask, serving) else { continue };
        let (a, b) = (&case.ask.requests, &idea.ask.requests);
        // Faster tokens are no help to whom they keep waiting for the first.
        let later = |then: &Outcome| then.e2e(b) > now.e2e(a) * (1.0 + 1e-9);
        let gain = match goal {
            Goal::Throughput(slowest) => {
                let slower = then.tpot() > now.tpot() * (1.0 + 1e-9) || later(&then);
                if slowest == Slowest::Today && now.serves() && slower {
                    continue;
                }
                then.output_per_chip(b) / now.output_per_chip(a)
            }
            Goal::Speed if now.serves() && later(&then) => continue,
            Goal::Speed => now.tpot() / then.tpot(),
            Goal::Whole => now.e2e(a) / then.e2e(b),
        } - 1.0;
        let rescues = !meets(now) && meets(&then);
        if (meets(now) && !meets(&then)) || (goal == Goal::Whole && !rescues && idea.fewer(case.ask.load)) {
            continue;
        }
        if !rescues && (gain < LEAST || !now.serves()) {
            continue;
        }
        let sides = today.as_ref().zip(case.scale.brief(&idea.ask.on, &[], false));
        let interval = sides.map_or(0.0, |(a, b)| float::exp(case.scale.apart(a, &b).tpot) - 1.0);
        let change = Change {
            what: idea.what.clone(),
            judged_by: goal.remark(),
            gain: now.serves().then_some(gain),
            within_interval: idea.foreign && gain < interval,
            rescues,
            chips: then.chips as u64,
            tpot_ms: then.tpot() * 1e3,
            ttft_ms: (then.ttft + then.queue) * 1e3,
            output_tok_s_per_chip: then.output_per_chip(b),
            usd_per_mtok_output: then.usd_per_mtok(b, idea.ask.price).map(|u| u.0),
            caution: idea.caution.clone(),
        };
        tried.push(((rescues, rescues && idea.copies, gain), change, idea, interval));
    }
    let order = |r: &Rank| (r.0, r.1);
    tried.sort_by(|(x, ..), (y, ..)| order(y).cmp(&order(x)).then(y.2.total_cmp(&x.2)));
    tried.truncate(KEPT);
    // What arrives at a rate is simulated, today's run or not: a steady state says little of a queue near its end.
    if met.is_none() && !matches!(case.ask.load, Loading::Rate(_)) {
        return Ok(tried.into_iter().map(|(_, change, ..)| change).collect());
    }
    let mut all = Vec::new();
    for ((_, copies, _), mut change, idea, interval) in tried {
        if felt(case, &idea.ask, (serving, met), &mut change, effort)? {
            change.within_interval = idea.foreign && change.gain.is_some_and(|gain| gain < interval);
            all.push((copies, change));
        }
    }
    let order = |(copies, c): &(bool, Change)| (c.rescues, *copies && c.rescues);
    let gain = |c: &Change| c.gain.unwrap_or(0.0);
    all.sort_by(|x, y| order(y).cmp(&order(x)).then(gain(&y.1).total_cmp(&gain(&x.1))));
    Ok(all.into_iter().map(|(_, change)| change).collect())
}

/// Puts what users would meet into a change, and whether it is still one; as it was where it cannot be simulated.
fn felt(
    case: &Case,
    ask: &Ask,
    (serving, met): (&Serving, Option<&Percentiles>),
    change: &mut Change,
    effort: &Effort,
) -> Result<bool, Error> {
    let Ok(then) = case.ready_like(ask, Some(serving)) else { return Ok(false) };
    let mut ask = ask.clone();
    ask.settle(&then);
    let outcome = then.under(&ask.requests, ask.load);
    let Met::Run(felt) = case.met(&ask, &then, &outcome, effort)? else { return Ok(true) };
    let mean = |p: &Percentiles, what: What| p.of(what).map_or(f64::INFINITY, |t| t.mean_ms);
    (change.tpot_ms, change.ttft_ms) = (mean(&felt, What::Tpot), mean(&felt, What::Ttft));
    let held = met.is_some_and(Percentiles::hold);
    change.rescues = !held && felt.hold();
    let gain = met.map_or(0.0, |met| mean(met, What::E2e) / mean(&felt, What::E2e) - 1.0);
    change.gain = change.gain.map(|_| gain);
    Ok(!felt.queue_grows && (change.rescues || (gain >= LEAST && (felt.hold() || !held))))
}

/// What a change would lead to; nothing when it cannot be or does not fit.
fn outcome(case: &Case, ask: &Ask, serving: &Serving) -> Option<Outcome> {
    check(&ask.on.model, &ask.on.system, &ask.on.layout).ok()?;
    // Where only the load or the requests differ the passes are the same; those without drafts know nothing of any.
    let drafted = ask.requests.drafts > 0.0 && case.ask.requests.drafts == 0.0;
    let then = if ask.on.same_passes(&case.ask.on) && !drafted {
        serving.under(&ask.requests, ask.load)
    } else {
        case.ready_like(ask, Some(serving)).ok()?.under(&ask.requests, ask.load)
    };
    then.serves().then_some(then)
}

/// Whether it serves or meets what today does not, whether that is by copies on chips that stand idle, and the gain.
type Rank = (bool, bool, f64);

/// A change, not yet tried.
struct Idea {
    what: Remark,
    ask: Ask,
    /// Whether it leaves the engine and the chip, so that errors do not cancel.
    foreign: bool,
    /// Whether it is the same instance again, on chips of the machine that do nothing today.
    copies: bool,
    /// What it asks for beside itself.
    caution: Option<Remark>,
}

impl Idea {
    /// Whether it only sends fewer requests.
    fn fewer(&self, than: Loading) -> bool {
        matches!((self.ask.load, than), (Loading::Concurrency(then), Loading::Concurrency(now)) if then < now)
    }
}

/// The menu: one change at a time to the layout, the formats, the load, the engine or the chip.
fn ideas(catalog: &Catalog, case: &Case, serving: &Serving, waits: bool) -> Vec<Idea> {
    let ask = &case.ask;
    let mut all = layouts(ask);
    all.extend(copies(ask));
    all.extend(sequences(case, serving).filter(|_| waits));
    if serving.room < 1.0 {
        let known: Vec<Layout> = all.iter().map(|idea| idea.ask.on.layout).collect();
        all.extend(room(case).into_iter().filter(|idea| !known.contains(&idea.ask.on.layout)));
    }
    all.extend(formats(catalog, case, waits));
    all.extend(loads(ask, serving));
    all.extend(engines(catalog, ask));
    all.extend(chip(catalog, ask));
    all
}

/// The same question about another deployment.
fn on(ask: &Ask, on: Deployment) -> Ask {
    Ask { on, ..ask.clone() }
}

fn idea(what: Remark, ask: Ask) -> Idea {
    Idea { what, ask, foreign: false, copies: false, caution: None }
}

/// What makes room where there is none, beyond the menu.
fn room(case: &Case) -> Vec<Idea> {
    let (ask, on) = (&case.ask, &case.ask.on);
    let load = on.load(&ask.requests, on.groups(), on.engine.schedule.chunk);
    // Formats stand in the menu, with a word on their quality.
    let runs = |next: &Deployment| next.kv == on.kv && case.runs(next);
    let all = crate::desk::remedy::remedies(on, &load, runs).into_iter();
    let narrower = |next: &Deployment| next.formats != on.formats;
    all.filter(|(_, next)| !narrower(next)).map(|(what, next)| idea(what, Ask { on: next, ..ask.clone() })).collect()
}

fn layouts(ask: &Ask) -> Vec<Idea> {
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
        idea(what, on(ask, Deployment { layout, ..ask.on.clone() }))
    };
    layouts.into_iter().map(other).collect()
}

/// The same instance on the chips of the machine that do nothing.
fn copies(ask: &Ask) -> Option<Idea> {
    let (d, chips) = (ask.on.layout.degrees(), ask.on.layout.chips());
    let n = ask.on.system.n_chips / chips;
    if n < 2 || d.ep > 1 || ask.split.is_some() || ask.on.split.is_some() {
        return None;
    }
    let layout = Layout::new(Degrees { dp: d.dp * n, ..d }).ok()?;
    let what = says("copies_on_rest").with("copies", n).with("dp", d.dp * n);
    let what = what.with("chips", layout.chips()).with("now", chips);
    Some(Idea { copies: true, ..idea(what, on(ask, Deployment { layout, ..ask.on.clone() })) })
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
    let mut engine = ask.on.engine.clone();
    Arc::make_mut(&mut engine).schedule.tell(Some(wanted.ceil()));
    let what = says("sequences_of").with("sequences", wanted.ceil()).with("now", now);
    Some(idea(what, on(ask, Deployment { engine, ..ask.on.clone() })))
}

fn formats(catalog: &Catalog, case: &Case, waits: bool) -> Vec<Idea> {
    let (ask, p) = (&case.ask, &case.ask.on);
    let now = p.formats.linear.bits().max(p.formats.routed.bits());
    let mut all = Vec::new();
    for dtype in narrower(p, |next| case.runs(next)) {
        // To be faster the chip must multiply it as it is.
        let narrow = |math: &&Math| matches!(math, Math::Fp8 | Math::Int8 | Math::Fp4);
        let own = dtype.maths().first().filter(narrow).is_some_and(|math| p.system.chip.peak.contains_key(math));
        if own && dtype.bits() < now - 1.0 {
            let next = on(ask, in_format(p, dtype));
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
        all.push(Idea { caution, ..idea(says("kv_in").with("format", kv), on(ask, cached(kv))) });
    }
    if ask.requests.drafts == 0.0 {
        let mut next = ask.clone();
        let Assumed { drafts, acceptance, .. } = p.engine.assumed;
        next.requests.drafts = drafts;
        next.requests.accepted = yielded(drafts, acceptance);
        let caution = Some(says("needs_drafter").with("share", acceptance));
        all.push(Idea { caution, ..idea(says("speculation_with").with("drafts", drafts), next) });
    }
    all
}

fn loads(ask: &Ask, serving: &Serving) -> Vec<Idea> {
    // Of users nobody decides how many have a request in flight.
    let Loading::Concurrency(c) = ask.load else { return Vec::new() };
    if ask.users.is_some() {
        return Vec::new();
    }
    let most = serving.room * serving.groups();
    let loaded = |c: f64| Ask { load: Loading::Concurrency(c), ..ask.clone() };
    let to = |c: f64| idea(says("concurrency_of").with("requests", c), loaded(c));
    let mut all = Vec::new();
    if c > most && most >= 1.0 {
        // Who waits for memory gains nothing from waiting inside.
        all.push(to(most.floor()));
    }
    all.extend([2.0, 4.0].map(|f| c * f).into_iter().filter(|c| *c <= most).map(to));
    if c >= 2.0 {
        all.push(to((c / 2.0).floor()));
    }
    all
}

/// Engines that serve the same chips; the newest family of each.
const SERVERS: [&str; 4] = ["vllm", "sglang", "trtllm", "atom"];

fn engines(catalog: &Catalog, ask: &Ask) -> Vec<Idea> {
    let own = &ask.on.engine;
    if !SERVERS.contains(&own.family.as_str()) {
        return Vec::new();
    }
    let others = SERVERS.into_iter().filter(|name| *name != own.id);
    let other = |name: &str| {
        let (mut engine, _) = catalog.engine(name).ok()?;
        // A limit that was asked for is asked of any engine.
        if own.schedule.told.is_some() {
            Arc::make_mut(&mut engine).schedule.tell(own.schedule.told);
        }
        let what = says("engine_of").with("name", &engine.name);
        let next = on(ask, Deployment { engine, ..ask.on.clone() });
        Some(Idea { foreign: true, ..idea(what, next) })
    };
    others.filter_map(other).collect()
}

/// The machine whose chips have the next higher bandwidth, by the same maker.
fn chip(catalog: &Catalog, ask: &Ask) -> Option<Idea> {
    let now = &ask.on.system;
    // Of several cards that share the layers, one instead says nothing about the others.
    if ask.on.cards() > 0 {
        return None;
    }
    let memory = &now.chip.memory;
    let faster = |s: &Brief| {
        let enough = s.size >= memory.size() && s.n_chips >= ask.on.layout.chips();
        // A chip that is announced but not priced cannot be compared.
        s.vendor == now.chip.vendor && enough && s.priced && s.bandwidth.get() > memory.bandwidth.value.get() * 1.05
    };
    let ids = catalog.ids(Kind::Systems).filter(|id| !id.starts_with("lecture"));
    let mut all: Vec<_> = ids.filter_map(|id| Some((id, catalog.brief(id).ok().filter(faster)?))).collect();
    all.sort_by(|(_, a), (_, b)| a.bandwidth.get().total_cmp(&b.bandwidth.get()).then(a.n_chips.cmp(&b.n_chips)));
    let system = all.into_iter().find_map(|(id, _)| catalog.system(id).ok())?;
    let price = system.chip.usual_price().map(|p| p.value.get()).filter(|_| ask.price.is_some());
    let what = says("chip_instead").with("chip", &system.chip.name).with("now", &now.chip.name);
    let links = Links::of(catalog, &system);
    let next = Deployment { links, system, ..ask.on.clone() };
    Some(Idea { foreign: true, ..idea(what, Ask { price, ..on(ask, next) }) })
}
