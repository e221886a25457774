//! Price sheets as text: one in full with its bill, or many side by side.

use super::{Page, or_dash, percent, three, times};
use crate::style::Style;
use rackmath::figure::count;
use rackmath::price::{Answer, CacheCard, Card, PolicyCard};
use rackmath_units::{Dollars, DollarsPerToken, HoldPrice, Seconds, significant};

/// `rackmath price`
pub fn price(a: &Answer, style: Style) -> String {
    let mut out = Page::new(style);
    match (a.cards.as_slice(), &a.workload) {
        ([one], _) => single(&mut out, a, one),
        (many, Some(work)) => bills(&mut out, a, work, many),
        (many, None) => sheets(&mut out, many),
    }
    for why in &a.left_out {
        out.wrapped("  left out: ", "    ", why);
    }
    out.text()
}

fn mtok(usd: f64) -> String {
    DollarsPerToken::per_mtok(usd).show(4)
}

/// Cents and their fractions where it matters, whole dollars where it does not.
fn usd(x: f64) -> String {
    if x == 0.0 { "-".into() } else { Dollars::usd(x).show(4) }
}

fn sheets(out: &mut Page, cards: &[Card]) {
    let mut table = out.style.table(&["sheet", "since", "input", "output", "cache: read (write)", "long context"]);
    for c in cards {
        let caches: Vec<String> = c.caches.iter().map(|o| cache_words(o, c.input_usd_per_mtok)).collect();
        let tiers: Vec<String> = c
            .tiers
            .iter()
            .map(|t| {
                let ratio = |a: f64, b: f64| times(a / b);
                format!(
                    "{} in, {} out {} {}",
                    ratio(t.input_usd_per_mtok, c.input_usd_per_mtok),
                    ratio(t.output_usd_per_mtok, c.output_usd_per_mtok),
                    if t.reached { "from" } else { "above" },
                    count(t.threshold)
                )
            })
            .collect();
        table.add_row([
            c.id.clone(),
            c.list_from.clone(),
            format!("${}", three(c.input_usd_per_mtok)),
            format!("${}", three(c.output_usd_per_mtok)),
            if caches.is_empty() { "-".into() } else { caches.join("; ") },
            if tiers.is_empty() { "-".into() } else { tiers.join("; ") },
        ]);
    }
    out.finish(&table);
    out.note("dollars per million tokens; cache prices as multiples of the input price");
}

fn cache_words(o: &CacheCard, input: f64) -> String {
    let write = if o.write_usd_per_mtok == input {
        String::new()
    } else {
        format!(" ({})", times(o.write_usd_per_mtok / input))
    };
    format!("{} {}{write}", o.name, times(o.read_usd_per_mtok / input))
}

fn bills(out: &mut Page, a: &Answer, work: &str, cards: &[Card]) {
    out.head(format!("{work}, {} mode", a.mode));
    let mut table = out.style.table(&["sheet", "prices of", "cheapest", "total", "without a cache", "saved"]);
    for c in cards {
        let Some(best) = c.policies.first() else { continue };
        let none = c.policies.iter().find(|p| p.policy == "none");
        table.add_row([
            c.id.clone(),
            c.day.clone(),
            policy(best),
            usd(best.total_usd),
            or_dash(none, |n| usd(n.total_usd)),
            or_dash(none, |n| percent(1.0 - best.total_usd / n.total_usd.max(f64::MIN_POSITIVE))),
        ]);
    }
    out.finish(&table);
    footnote(out, cards.iter().filter_map(|c| c.policies.first()));
}

/// The name of a policy, marked where its lifetime is an assumption.
fn policy(p: &PolicyCard) -> String {
    format!("{}{}", p.policy, if p.lifetime_assumed { "*" } else { "" })
}

fn footnote<'a>(out: &mut Page, mut all: impl Iterator<Item = &'a PolicyCard>) {
    if all.any(|p| p.lifetime_assumed) {
        let note = "* the provider does not say how long entries are kept: every use is assumed to find them";
        out.note(note);
    }
}

fn single(out: &mut Page, a: &Answer, c: &Card) {
    out.line(format!(
        "{}  {}\n",
        out.style.bold(&c.name),
        out.style.dim(&format!("{}, prices of {}", c.provider, c.day))
    ));
    let prices = format!("{} in, {} out", mtok(c.input_usd_per_mtok), mtok(c.output_usd_per_mtok));
    out.field("list", prices);
    // Dates of this form compare like text.
    let stale = if c.day > c.checked { out.style.bad("; later changes are not known here") } else { String::new() };
    out.more(format!("since {}, checked {}{stale}", c.list_from, c.checked));
    for t in &c.tiers {
        let word = if t.reached { "from" } else { "above" };
        let label = format!("{word} {} tokens", count(t.threshold));
        let text =
            format!("{} in, {} out, for the whole request", mtok(t.input_usd_per_mtok), mtok(t.output_usd_per_mtok));
        out.field(&label, text);
    }
    for o in &c.caches {
        offer(out, o);
    }
    if let Some(implied) = c.implied_storage_usd_per_mtok_hour {
        let text = format!("{}, from the two write prices", HoldPrice::per_mtok_hour(implied));
        out.field("implied storage", text);
    }
    if !c.modes.is_empty() {
        let modes: Vec<String> = c
            .modes
            .iter()
            .map(|(name, i, o)| {
                if i == o {
                    format!("{name} {}", times(*i))
                } else {
                    format!("{name} {} in, {} out", times(*i), times(*o))
                }
            })
            .collect();
        out.field("modes", modes.join(", "));
    }
    if a.mode != "standard" || c.window.is_some() {
        let window = c.window.as_ref().map_or(String::new(), |w| format!(" in {w} hours"));
        let text = format!("{} mode{window}: {} in, {} out", a.mode, times(c.factors[0]), times(c.factors[1]));
        out.field("applied", text);
    }
    if let Some(work) = &a.workload {
        policies(out, work, &c.policies);
    }
    if let Some(figure) = &a.figure {
        out.gap();
        out.draw(figure);
    }
    out.gap();
    if !c.conflicts.is_empty() {
        out.list("sources disagree", &c.conflicts);
    }
    let mut sources = vec![c.source.clone()];
    sources.extend(c.caches.iter().map(|o| o.source.clone()));
    sources.extend(c.note.clone().map(|n| format!("note: {n}")));
    sources.dedup();
    out.list("sources", &sources);
}

fn offer(out: &mut Page, o: &CacheCard) {
    let storage =
        o.storage_usd_per_mtok_hour.map_or(String::new(), |s| format!(", keep {}", HoldPrice::per_mtok_hour(s)));
    let text = format!("read {}, write {}{storage}", mtok(o.read_usd_per_mtok), mtok(o.write_usd_per_mtok));
    out.field(&format!("cache {}", o.name), text);
    let uses = o.break_even_uses.map_or("never pays at this gap".into(), |n| {
        format!("pays from {} uses on ({})", n.ceil().max(2.0), significant(n, 4))
    });
    let gap = o.break_even_gap_s.map_or(String::new(), |s| format!(", up to {} apart", Seconds::s(s)));
    out.more(format!("lifetime {}; {uses}{gap}", o.lifetime));
}

fn policies(out: &mut Page, work: &str, all: &[PolicyCard]) {
    out.part(work);
    out.columns(
        all,
        &[
            ("cache", &|p| policy(p)),
            ("total", &|p| usd(p.total_usd)),
            ("fresh input", &|p| usd(p.fresh_usd)),
            ("writes", &|p| usd(p.written_usd)),
            ("reads", &|p| usd(p.read_usd)),
            ("storage", &|p| usd(p.storage_usd)),
            ("output", &|p| usd(p.output_usd)),
        ],
    );
    if let Some(p) = all.first().filter(|p| p.long_requests > 0) {
        out.line(format!("  requests billed at a long-context tier: {}", p.long_requests));
    }
    footnote(out, all.iter());
}
