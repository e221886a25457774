//! Cache lifetimes and fast modes as text.

use super::{field, list, percent, seconds};
use crate::style::Style;
use crate::terminal;
use rackmath::cache::{Answer, ReuseCard};
use rackmath::fastmode;
use rackmath_units::{BytesPerToken, significant};
use std::fmt::Write as _;

fn usd(x: Option<f64>) -> String {
    x.map_or("not known".into(), |x| format!("${}", significant(x, 3)))
}

/// `rackmath cache`
pub fn cache(a: &Answer, style: Style) -> String {
    let mut out = String::new();
    let title = format!("{} on {}: {} of cache", a.model, a.system, BytesPerToken::new(a.kv_bytes_per_token));
    let _ = writeln!(out, "{}\n", style.bold(&title));
    let mut table =
        style.table(&["kept in", "get back $/Mtok", "keep $/Mtok-h", "drain time", "recompute is cheaper after"]);
    for l in &a.lines {
        table.add_row([
            l.id.clone(),
            usd(l.retrieve_usd_per_mtok),
            usd(l.hold_usd_per_mtok_hour),
            l.drain_s.map_or("-".into(), seconds),
            l.recompute_cheaper_after_s.map_or("-".into(), seconds),
        ]);
    }
    out.push_str(&style.finish(&table));
    let _ = writeln!(out, "\n{}", style.bold("cheapest by time between two uses"));
    for s in &a.envelope {
        let to = s.to_s.map_or("on".into(), |t| format!("to {}", seconds(t)));
        let _ = writeln!(out, "  from {:<10} {to:<14} {}", seconds(s.from_s), style.bold(&s.id));
    }
    let _ = writeln!(out, "\n{}", style.bold("what a published lifetime could mean, by drain time"));
    for d in &a.durations {
        let all: Vec<String> = d
            .candidates
            .iter()
            .map(|c| format!("{} ({}, {}x)", c.id, seconds(c.drain_s), significant(c.ratio, 2)))
            .collect();
        let line = format!("{}; cheapest by cost: {}", all.join(", "), d.cheapest);
        out.push_str(&style.wrapped(&format!("  {:<8} ", seconds(d.duration_s)), "           ", &line));
    }
    let _ = writeln!(out, "  {}", style.dim("nearest first; a lifetime alone cannot name the tier"));
    if let Some(r) = &a.reuse {
        reuse(&mut out, r, style);
    }
    out.push('\n');
    out.push_str(&terminal::draw(&a.figure, style));
    if let Some(hits) = &a.hit_figure {
        out.push('\n');
        out.push_str(&terminal::draw(hits, style));
    }
    out.push('\n');
    list(&mut out, style, "assumes", &a.assumptions);
    list(&mut out, style, "sources", &a.sources);
    out
}

fn reuse(out: &mut String, r: &ReuseCard, style: Style) {
    let _ = writeln!(out, "\n{}", style.bold(&format!("reuse: {}", r.source)));
    let gaps = r.median_gap_s.zip(r.p90_gap_s).map_or("nothing comes back".into(), |(m, p)| {
        format!("half of it within {}, nine tenths within {}", seconds(m), seconds(p))
    });
    field(out, style, "wanted again", &format!("{} of prompt tokens; {gaps}", percent(r.hit_rate_max)));
    let rates: Vec<String> = r.hit_rates.iter().map(|(t, h)| format!("{} {}", seconds(*t), percent(*h))).collect();
    out.push_str(&style.wrapped("  hit rate by lifetime   ", "                         ", &rates.join(", ")));
    let mut table = style.table(&["kept in", "best lifetime", "hit rate", "$/Mtok of prompt", "saved"]);
    for b in &r.best {
        table.add_row([
            b.id.clone(),
            if b.ttl_s > 0.0 { seconds(b.ttl_s) } else { "do not keep".into() },
            percent(b.hit_rate),
            format!("${}", significant(b.usd_per_mtok, 3)),
            percent(1.0 - b.usd_per_mtok / r.no_cache_usd_per_mtok),
        ]);
    }
    out.push_str(&style.finish(&table));
}

/// `rackmath fastmode`
pub fn fastmode(a: &fastmode::Answer, style: Style) -> String {
    let n = |x: f64| significant(x, 3);
    let mut out = String::new();
    let title = format!("{}: {}x the price for {}x the speed", a.of, n(a.price), n(a.speed));
    let _ = writeln!(out, "{}\n", style.bold(&title));
    let _ = writeln!(out, "{}", style.bold("if the batch is the only lever, and price follows cost"));
    field(&mut out, style, "cache over weights", &format!("x = {}", n(a.x)));
    field(&mut out, style, "fast batch", &format!("{} times smaller", n(a.batch_ratio)));
    field(&mut out, style, "speed limit", &format!("{}x, however much is paid", n(a.speed_limit)));
    field(&mut out, style, "slow mode", &format!("could save at most {}", percent(a.slow_saving)));
    let _ = writeln!(out, "\n{}", style.bold("what would have to be true instead"));
    let chips =
        format!("{} times as many, of whose speed-up {} arrives", n(a.chips_instead), percent(a.scaling_instead));
    field(&mut out, style, "more chips", &chips);
    let drafts = format!(
        "{} times the tokens per step; the price would pay for {} times the work of a step",
        n(a.accepted_instead),
        n(a.work_instead)
    );
    field(&mut out, style, "better drafts", &drafts);
    field(&mut out, style, "policy", "the multiple says nothing about the machine");
    out.push('\n');
    out.push_str(&terminal::draw(&a.figure, style));
    if !a.known.is_empty() {
        out.push('\n');
        let mut table = style.table(&["sheet", "mode", "price", "claimed speed", "x"]);
        for k in &a.known {
            table.add_row([
                k.sheet.clone(),
                k.mode.clone(),
                format!("{}x", n(k.price)),
                format!("{}x", n(k.speed)),
                n(k.x),
            ]);
        }
        out.push_str(&style.finish(&table));
        let note = "the same vendor's same speed at another price gives another x: at most one of them is cost";
        let _ = writeln!(out, "  {}", style.dim(note));
    }
    out
}
