//! What stands in the way of a plan that cannot be, in numbers: memory, or the least any deployment can do.

use super::answer::{amount, concurrency, step, words};
use super::prepare::Prepared;
use super::searched::Searched;
use super::{Ask, Machine};
use crate::figure::count;
use rackmath_theory::plan::{Bound, Near};
use rackmath_theory::{count as parameters, kv};
use rackmath_units::{Bytes, Seconds, Tokens, significant};

/// Sentences; none where there is a plan, or where limits can be met one by one.
pub(super) fn because(ask: &Ask, p: &Prepared, s: &Searched) -> Vec<String> {
    if !s.found.top.is_empty() {
        return Vec::new();
    }
    if p.deployments.is_empty() {
        return ask.machines.iter().filter_map(|m| memory(ask, m)).collect();
    }
    s.floors.iter().map(|near| floor(ask, p, near)).collect()
}

/// Weights and the cache of one request against what the chips hold.
fn memory(ask: &Ask, m: &Machine) -> Option<String> {
    let weights = parameters::count(&ask.model);
    let least = ask.formats.iter().map(|f| weights.stored_bytes(f).get()).min_by(f64::total_cmp)?;
    let held = Tokens::new(ask.requests.context());
    let kvs = ask.kvs.iter().map(|kv| kv.unwrap_or_else(|| ask.model.cache_dtype()));
    let cache = kvs.map(|kv| kv::cache(&ask.model, kv).stored(held).get()).min_by(f64::total_cmp)?;
    let used = ask.engines.iter().map(|e| e.schedule.memory.get()).max_by(f64::total_cmp)?;
    let one = m.system.chip.memory.size().get() * used;
    let chips = ((least + cache) / one).ceil();
    let need = if chips > m.chips as f64 {
        format!("that takes at least {} chips of this kind", count(chips))
    } else {
        "cut over the chips, no layout leaves room for it and the work space of a pass".into()
    };
    Some(format!(
        "weights take {} and the cache of one request of {} tokens {}; {} chip{} of {} have {} for both; {need}",
        Bytes::b(least),
        count(held.get()),
        Bytes::b(cache),
        count(m.chips as f64),
        if m.chips == 1 { "" } else { "s" },
        m.system.chip.name,
        Bytes::b(one * m.chips as f64),
    ))
}

/// The least any deployment can do, and what takes the time.
fn floor(ask: &Ask, p: &Prepared, near: &Near) -> String {
    let c = p.space.configuration(near.ranked.index);
    let e = &near.ranked.estimate;
    let side = if near.bound.at_least() { "above" } else { "below" };
    let least = format!(
        "no deployment has {} {side} {}: {}",
        near.bound.name(),
        amount(near.bound, near.bound.amount(e)),
        words(ask, p, &c)
    );
    if !matches!(near.bound, Bound::Tpot | Bound::E2e) {
        return format!("{least}, its steps bound by {}", e.binding.name());
    }
    let n = concurrency(p, &c);
    let step = step(ask, p, &c, n);
    let mut limits = step.limits.clone();
    limits.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    let shares: Vec<String> =
        limits.iter().take(3).map(|l| format!("{} % {}", significant(l.share * 100.0, 2), l.what)).collect();
    format!(
        "{least} with {} in flight: a step of {} is {}; its arithmetic and memory traffic alone, at full rates, take {}",
        if n == 1.0 { "one request".into() } else { format!("{} requests", count(n)) },
        Seconds::ms(step.step_ms),
        shares.join(", "),
        Seconds::ms(step.ideal_ms)
    )
}
