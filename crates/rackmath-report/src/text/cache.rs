//! Cache lifetimes and fast modes as text.

use super::{Page, or_dash, percent, seconds, three};
use crate::style::Style;
use rackmath::cache::{Answer, ReuseCard};
use rackmath::fastmode;
use rackmath_units::{BytesPerToken, significant};

fn usd(x: Option<f64>) -> String {
    x.map_or("not known".into(), |x| format!("${}", three(x)))
}

/// `rackmath cache`
pub fn cache(a: &Answer, style: Style) -> String {
    let mut out = Page::new(style);
    let title = format!("{} on {}: {} of cache", a.model, a.system, BytesPerToken::new(a.kv_bytes_per_token));
    out.head(title);
    out.columns(
        &a.lines,
        &[
            ("kept in", &|l| l.id.clone()),
            ("get back $/Mtok", &|l| usd(l.retrieve_usd_per_mtok)),
            ("keep $/Mtok-h", &|l| usd(l.hold_usd_per_mtok_hour)),
            ("drain time", &|l| or_dash(l.drain_s, seconds)),
            ("recompute is cheaper after", &|l| or_dash(l.recompute_cheaper_after_s, seconds)),
        ],
    );
    out.part("cheapest by time between two uses");
    for s in &a.envelope {
        let to = s.to_s.map_or("on".into(), |t| format!("to {}", seconds(t)));
        out.line(format!("  from {:<10} {to:<14} {}", seconds(s.from_s), style.bold(&s.id)));
    }
    out.part("what a published lifetime could mean, by drain time");
    for d in &a.durations {
        let all: Vec<String> = d
            .candidates
            .iter()
            .map(|c| format!("{} ({}, {}x)", c.id, seconds(c.drain_s), significant(c.ratio, 2)))
            .collect();
        let line = format!("{}; cheapest by cost: {}", all.join(", "), d.cheapest);
        out.wrapped(&format!("  {:<8} ", seconds(d.duration_s)), "           ", &line);
    }
    out.note("nearest first; a lifetime alone cannot name the tier");
    if let Some(r) = &a.reuse {
        reuse(&mut out, r);
    }
    out.gap();
    out.draw(&a.figure);
    if let Some(hits) = &a.hit_figure {
        out.gap();
        out.draw(hits);
    }
    out.gap();
    out.list("assumes", &a.assumptions);
    out.list("sources", &a.sources);
    out.text()
}

fn reuse(out: &mut Page, r: &ReuseCard) {
    out.part(format!("reuse: {}", r.source));
    let gaps = r.median_gap_s.zip(r.p90_gap_s).map_or("nothing comes back".into(), |(m, p)| {
        format!("half of it within {}, nine tenths within {}", seconds(m), seconds(p))
    });
    out.field("wanted again", format!("{} of prompt tokens; {gaps}", percent(r.hit_rate_max)));
    let rates: Vec<String> = r.hit_rates.iter().map(|(t, h)| format!("{} {}", seconds(*t), percent(*h))).collect();
    out.wrapped("  hit rate by lifetime   ", "                         ", &rates.join(", "));
    out.columns(
        &r.best,
        &[
            ("kept in", &|b| b.id.clone()),
            ("best lifetime", &|b| if b.ttl_s > 0.0 { seconds(b.ttl_s) } else { "do not keep".into() }),
            ("hit rate", &|b| percent(b.hit_rate)),
            ("$/Mtok of prompt", &|b| format!("${}", three(b.usd_per_mtok))),
            ("saved", &|b| percent(1.0 - b.usd_per_mtok / r.no_cache_usd_per_mtok)),
        ],
    );
}

/// `rackmath fastmode`
pub fn fastmode(a: &fastmode::Answer, style: Style) -> String {
    let n = |x: f64| three(x);
    let mut out = Page::new(style);
    let title = format!("{}: {}x the price for {}x the speed", a.of, n(a.price), n(a.speed));
    out.head(title);
    out.title("if the batch is the only lever, and price follows cost");
    out.field("cache over weights", format!("x = {}", n(a.x)));
    out.field("fast batch", format!("{} times smaller", n(a.batch_ratio)));
    out.field("speed limit", format!("{}x, however much is paid", n(a.speed_limit)));
    out.field("slow mode", format!("could save at most {}", percent(a.slow_saving)));
    out.part("what would have to be true instead");
    let chips =
        format!("{} times as many, of whose speed-up {} arrives", n(a.chips_instead), percent(a.scaling_instead));
    out.field("more chips", chips);
    let drafts = format!(
        "{} times the tokens per step; the price would pay for {} times the work of a step",
        n(a.accepted_instead),
        n(a.work_instead)
    );
    out.field("better drafts", drafts);
    out.field("policy", "the multiple says nothing about the machine");
    out.gap();
    out.draw(&a.figure);
    if !a.known.is_empty() {
        out.gap();
        out.columns(
            &a.known,
            &[
                ("sheet", &|k| k.sheet.clone()),
                ("mode", &|k| k.mode.clone()),
                ("price", &|k| format!("{}x", n(k.price))),
                ("claimed speed", &|k| format!("{}x", n(k.speed))),
                ("x", &|k| n(k.x)),
            ],
        );
        let note = "the same vendor's same speed at another price gives another x: at most one of them is cost";
        out.note(note);
    }
    out.text()
}
