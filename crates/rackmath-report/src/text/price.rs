//! Price sheets as text: one in full with its bill, or many side by side.

use super::prelude::*;
use rackmath::price::{Answer, CacheCard, Card, PolicyCard, TierCard};
use rackmath_units::{DollarsPerToken, HoldPrice};

pub(super) fn price(out: &mut Page, a: &Answer) {
    match (a.cards.as_slice(), &a.workload) {
        ([one], _) => single(out, a, one),
        (many, Some(work)) => bills(out, a, work, many),
        (many, None) => sheets(out, many),
    }
    out.advice();
    for why in &a.left_out {
        out.wrapped("  left out: ", "    ", why);
    }
}

fn mtok(usd: f64) -> String {
    DollarsPerToken::per_mtok(usd).show(4)
}

/// Cents and their fractions where it matters, whole dollars where it does not.
fn usd(x: f64) -> String {
    if x == 0.0 { "-".into() } else { Dollars::usd(x).show(4) }
}

/// From which length on a tier holds.
fn from(t: &TierCard) -> String {
    format!("{} {}", if t.reached { "from" } else { "above" }, count(t.threshold))
}

fn sheets(out: &mut Page, cards: &[Card]) {
    out.uncut();
    let joined = |all: Vec<String>| if all.is_empty() { "-".into() } else { all.join("; ") };
    let tier = |c: &Card, t: &TierCard| {
        let input = times(t.input_usd_per_mtok / c.input_usd_per_mtok);
        let output = times(t.output_usd_per_mtok / c.output_usd_per_mtok);
        format!("{input} in, {output} out {}", from(t))
    };
    let cache = |c: &Card, o: &CacheCard| {
        let [read, write] = [o.read_usd_per_mtok, o.write_usd_per_mtok].map(|x| times(x / c.input_usd_per_mtok));
        let dearer = Some(write).filter(|_| o.write_usd_per_mtok != c.input_usd_per_mtok);
        format!("{} {read}{}", o.name, or(dearer, "", |write| format!(" ({write})")))
    };
    out.each(cards).columns(&[
        ("sheet", &|c| c.id.clone()),
        ("since", &|c| c.list_from.clone()),
        ("input", &|c| super::page::usd(c.input_usd_per_mtok)),
        ("output", &|c| super::page::usd(c.output_usd_per_mtok)),
        ("cache: read (write)", &|c| joined(c.caches.iter().map(|o| cache(c, o)).collect())),
        ("long context", &|c| joined(c.tiers.iter().map(|t| tier(c, t)).collect())),
    ]);
    out.note("dollars per million tokens; cache prices as multiples of the input price");
}

fn bills(out: &mut Page, a: &Answer, work: &Remark, cards: &[Card]) {
    out.head(format!("{}, {} mode", words(work), a.mode));
    let best: Vec<(&Card, &PolicyCard)> = cards.iter().filter_map(|c| Some((c, c.policies.first()?))).collect();
    let none = |c: &Card| c.policies.iter().find(|p| p.policy == "none").map(|p| p.total_usd);
    let saved = |total: f64, none: f64| percent(1.0 - total / none.max(f64::MIN_POSITIVE));
    let least = best.iter().min_by(|(_, a), (_, b)| a.total_usd.total_cmp(&b.total_usd));
    let most = best.iter().map(|(_, p)| p.total_usd).fold(0.0, f64::max);
    if let Some((card, p)) = least {
        let others = only(best.len() > 1, format!("; the dearest here costs {}", usd(most)));
        out.verdict(format!("{} is cheapest: {} {}{others}", card.name, usd(p.total_usd), kept(p)));
    }
    out.figures();
    out.each(&best).columns(&[
        ("sheet", &|(c, _)| c.id.clone()),
        ("prices of", &|(c, _)| c.day.clone()),
        ("cheapest", &|(_, best)| policy(best)),
        ("total", &|(_, best)| usd(best.total_usd)),
        ("without a cache", &|(c, _)| or_dash(none(c), usd)),
        ("saved", &|(c, best)| or_dash(none(c), |none| saved(best.total_usd, none))),
    ]);
    footnote(out, best.iter().map(|(_, best)| *best));
}

/// The name of a policy, marked where its lifetime is an assumption.
fn policy(p: &PolicyCard) -> String {
    format!("{}{}", p.policy, if p.lifetime_assumed { "*" } else { "" })
}

/// How it is cached, in a sentence.
fn kept(p: &PolicyCard) -> String {
    if p.policy == "none" { "without a cache".into() } else { format!("with the cache \"{}\"", p.policy) }
}

fn footnote<'a>(out: &mut Page, mut all: impl Iterator<Item = &'a PolicyCard>) {
    if all.any(|p| p.lifetime_assumed) {
        out.note("* the provider does not say how long entries are kept: every use is assumed to find them");
    }
}

/// The prices by which it was billed: those of a long context where it was one.
fn rates(a: &Answer, c: &Card, p: &PolicyCard) -> String {
    let at =
        |input: f64, output: f64| format!("{} in, {} out", mtok(input * c.factors[0]), mtok(output * c.factors[1]));
    let list = at(c.input_usd_per_mtok, c.output_usd_per_mtok);
    let alone = a.workload.as_ref().is_some_and(|work| work.says == "one_request");
    let n = p.long_requests;
    match c.tiers.as_slice() {
        _ if n == 0 => list,
        [t] => {
            let long = format!("{} {} tokens", at(t.input_usd_per_mtok, t.output_usd_per_mtok), from(t));
            if alone { long } else { format!("{list}, and for {n} request{} {long}", plural(n)) }
        }
        _ => format!("{list}, and for {n} request{} those of a long context", plural(n)),
    }
}

fn single(out: &mut Page, a: &Answer, c: &Card) {
    let about = out.style.dim(&format!("{}, prices of {}", c.provider, c.day));
    let [input, output] = [c.input_usd_per_mtok * c.factors[0], c.output_usd_per_mtok * c.factors[1]].map(mtok);
    let mode = only(a.mode != "standard", format!(" in {} mode", a.mode));
    out.verdict(match c.policies.first() {
        Some(p) => format!("{} for all of it, {}; {}{mode}", usd(p.total_usd), kept(p), rates(a, c, p)),
        None => format!("{} costs {input} in, {output} out{mode}", c.name),
    });
    out.line(format!("{}  {about}", out.style.bold(&c.name)));
    out.figures();
    out.field("list", format!("{} in, {} out", mtok(c.input_usd_per_mtok), mtok(c.output_usd_per_mtok)));
    // Dates of this form compare like text.
    let stale = only(c.day > c.checked, out.style.bad("; later changes are not known here"));
    out.more(format!("since {}, checked {}{stale}", c.list_from, c.checked));
    for t in &c.tiers {
        let [input, output] = [t.input_usd_per_mtok, t.output_usd_per_mtok].map(mtok);
        out.field(&format!("{} tokens", from(t)), format!("{input} in, {output} out, for the whole request"));
    }
    for o in &c.caches {
        offer(out, o);
    }
    let implied = |x| format!("{}, from the two write prices", HoldPrice::per_mtok_hour(x));
    out.maybe("implied storage", c.implied_storage_usd_per_mtok_hour.map(implied));
    if !c.modes.is_empty() {
        let mode = |(name, i, o): &(String, f64, f64)| {
            let (input, output) = (times(*i), times(*o));
            if i == o { format!("{name} {input}") } else { format!("{name} {input} in, {output} out") }
        };
        out.field("modes", c.modes.iter().map(mode).collect::<Vec<_>>().join(", "));
    }
    if a.mode != "standard" || c.window.is_some() {
        let window = or(c.window.as_ref(), "", |w| format!(" in {w} hours"));
        let [input, output, _] = c.factors.map(times);
        out.field("applied", format!("{} mode{window}: {input} in, {output} out", a.mode));
    }
    if let Some(work) = &a.workload {
        policies(out, work, &c.policies);
    }
    out.pictures(&a.figure);
    out.advice();
    out.list("sources disagree", &c.conflicts);
    let mut sources = vec![c.source.clone()];
    sources.extend(c.caches.iter().map(|o| o.source.clone()));
    sources.extend(c.note.clone().map(|n| format!("note: {n}")));
    sources.dedup();
    out.sources(&sources);
}

fn offer(out: &mut Page, o: &CacheCard) {
    let storage = or(o.storage_usd_per_mtok_hour, "", |s| format!(", keep {}", HoldPrice::per_mtok_hour(s)));
    let [read, write] = [o.read_usd_per_mtok, o.write_usd_per_mtok].map(mtok);
    out.field(&format!("cache {}", o.name), format!("read {read}, write {write}{storage}"));
    let pays = |n: f64| format!("pays from {} uses on ({})", n.ceil().max(2.0), significant(n, 4));
    let uses = or(o.break_even_uses, "never pays at this gap", pays);
    let gap = or(o.break_even_gap_s, "", |s| format!(", up to {} apart", Seconds::s(s)));
    out.more(format!("lifetime {}; {uses}{gap}", words(&o.lifetime)));
}

fn policies(out: &mut Page, work: &Remark, all: &[PolicyCard]) {
    out.part(work);
    out.each(all).columns(&[
        ("cache", &|p| policy(p)),
        ("total", &|p| usd(p.total_usd)),
        ("fresh input", &|p| usd(p.fresh_usd)),
        ("writes", &|p| usd(p.written_usd)),
        ("reads", &|p| usd(p.read_usd)),
        ("storage", &|p| usd(p.storage_usd)),
        ("output", &|p| usd(p.output_usd)),
    ]);
    if let Some(p) = all.first().filter(|p| p.long_requests > 0) {
        out.line(format!("  requests billed at a long-context tier: {}", p.long_requests));
    }
    footnote(out, all.iter());
}
