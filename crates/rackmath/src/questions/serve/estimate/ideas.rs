//! The menu: one change at a time to the layout, the formats, the load, the engine or the chip.

use super::ask::{Ask, Case, Loading, yielded};
use super::serve::Prepared;
use rackmath_spec::layout::Degrees;
use rackmath_spec::model::Formats;
use rackmath_spec::{Catalog, Dtype, Layout, Math};
use rackmath_theory::deployment::Links;
use rackmath_theory::layout::domain;

/// Drafts of the change that tries speculation, and the chance that each is accepted.
const DRAFTS: f64 = 3.0;
const ACCEPTANCE: f64 = 0.7;

/// A change, not yet tried.
pub(super) struct Idea {
    /// What to change.
    pub what: String,
    /// The question then.
    pub ask: Ask,
    /// Whether it leaves the engine and the chip, so that errors do not cancel.
    pub foreign: bool,
    /// What it asks for beside itself.
    pub caution: Option<&'static str>,
}

/// All of them.
pub(super) fn ideas(catalog: &Catalog, case: &Case, prepared: &Prepared) -> Vec<Idea> {
    let ask = &case.ask;
    let mut all = layouts(ask);
    all.extend(formats(ask));
    all.extend(loads(ask, prepared));
    all.extend(engines(catalog, ask));
    all.extend(chip(catalog, ask));
    all
}

fn idea(what: String, ask: Ask) -> Idea {
    Idea { what, ask, foreign: false, caution: None }
}

fn layouts(ask: &Ask) -> Vec<Idea> {
    let d = ask.parts.layout.degrees();
    let sparse = ask.parts.model.shape().is_some_and(|s| s.moe().is_some());
    let stage = d.tp * d.cp * d.dp;
    // Experts follow the attention cut: wherever it goes, ep and etp fill the stage as before.
    let with = |tp: u64, dp: u64| {
        let stage = tp * d.cp * dp;
        let (ep, etp) = if d.ep > 1 { (stage / d.etp.min(stage).max(1), d.etp) } else { (1, stage) };
        Degrees { tp, dp, ep, etp, ..d }
    };
    let mut all = Vec::new();
    if d.tp * 2 <= domain(&ask.parts.system) {
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
    layouts
        .into_iter()
        .filter(|l| l.chips() <= ask.parts.system.n_chips && *l != ask.parts.layout)
        .map(|layout| {
            let words = crate::layout::words(&ask.parts.model, &layout);
            let chips = match layout.chips() {
                n if n == ask.parts.layout.chips() => "the same chips".into(),
                n => format!("{n} chips instead of {}", ask.parts.layout.chips()),
            };
            let mut next = ask.clone();
            next.parts.layout = layout;
            idea(format!("layout {words}, {chips}"), next)
        })
        .collect()
}

fn formats(ask: &Ask) -> Vec<Idea> {
    let p = &ask.parts;
    let now = p.formats.linear.bits().max(p.formats.routed.bits());
    let mut all = Vec::new();
    for (dtype, math) in [(Dtype::Fp8, Math::Fp8), (Dtype::NvFp4, Math::Fp4)] {
        if p.system.chip.peak.contains_key(&math) && dtype.bits() < now - 1.0 {
            let mut next = ask.clone();
            next.parts.formats = Formats { routed: dtype, linear: dtype, ..p.formats };
            let caution = Some("a checkpoint in this format whose quality is good enough");
            all.push(Idea { caution, ..idea(format!("weights in {dtype}"), next) });
        }
    }
    if p.kv.bits() > 12.0 && p.system.chip.peak.contains_key(&Math::Fp8) {
        let mut next = ask.clone();
        next.parts.kv = Dtype::Fp8;
        all.push(idea("KV cache in fp8".into(), next));
    }
    if ask.requests.drafts == 0.0 {
        let mut next = ask.clone();
        next.requests.drafts = DRAFTS;
        next.requests.accepted = yielded(DRAFTS, ACCEPTANCE);
        let caution = Some("a drafter whose guesses are accepted 70 % of the time");
        all.push(Idea { caution, ..idea(format!("speculation with {DRAFTS} drafts"), next) });
    }
    all
}

fn loads(ask: &Ask, prepared: &Prepared) -> Vec<Idea> {
    let Loading::Concurrency(c) = ask.load else { return Vec::new() };
    let most = prepared.room * prepared.groups();
    let to = |c: f64| {
        idea(format!("concurrency {}", crate::figure::count(c)), Ask { load: Loading::Concurrency(c), ..ask.clone() })
    };
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
const SERVERS: [&str; 3] = ["vllm", "sglang", "trtllm"];

fn engines(catalog: &Catalog, ask: &Ask) -> Vec<Idea> {
    let own = &ask.parts.engine;
    if !SERVERS.contains(&own.family.as_str()) {
        return Vec::new();
    }
    let others = SERVERS.into_iter().filter(|name| *name != own.id);
    others
        .filter(|name| *name != "trtllm" || ask.parts.system.chip.vendor.eq_ignore_ascii_case("nvidia"))
        .filter_map(|name| {
            let (engine, _) = catalog.engine(name).ok()?;
            let mut next = ask.clone();
            let what = format!("engine {}", engine.name);
            next.parts.engine = engine;
            Some(Idea { foreign: true, ..idea(what, next) })
        })
        .collect()
}

/// The machine whose chips have the next higher bandwidth, by the same maker.
fn chip(catalog: &Catalog, ask: &Ask) -> Option<Idea> {
    let now = &ask.parts.system;
    let faster = |s: &rackmath_spec::System| {
        let (a, b) = (now.chip.memory.bandwidth.value.get(), s.chip.memory.bandwidth.value.get());
        let enough = s.chip.memory.size() >= now.chip.memory.size() && s.n_chips >= ask.parts.layout.chips();
        (s.chip.vendor == now.chip.vendor && enough && b > a * 1.05).then_some(b)
    };
    let ids = catalog.ids(rackmath_spec::Kind::Systems).filter(|id| !id.starts_with("lecture"));
    let mut best: Option<((f64, u64), std::sync::Arc<rackmath_spec::System>)> = None;
    for id in ids {
        let Ok(system) = catalog.system(id) else { continue };
        // A chip that is announced but not priced cannot be compared.
        if let Some(rate) = faster(&system).filter(|_| !system.chip.prices.is_empty())
            && best.as_ref().is_none_or(|(least, _)| (rate, system.n_chips) < *least)
        {
            best = Some(((rate, system.n_chips), system));
        }
    }
    let (_, system) = best?;
    let mut next = ask.clone();
    next.parts.links = Links::of(catalog, &system);
    next.price = system.chip.usual_price().map(|p| p.value.get()).filter(|_| ask.price.is_some());
    let what = format!("{} instead of {}", system.chip.name, now.chip.name);
    next.parts.system = system;
    Some(Idea { foreign: true, ..idea(what, next) })
}
