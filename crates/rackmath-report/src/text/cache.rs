//! Cache lifetimes and fast modes as text.

use super::page::{Page, or, or_dash, percent, seconds, three, times, usd};
use rackmath::cache::{Answer, ReuseCard};
use rackmath::fastmode;
use rackmath_units::{BytesPerToken, significant};

pub(super) fn cache(out: &mut Page, a: &Answer) {
    let each = BytesPerToken::new(a.kv_bytes_per_token);
    out.head(format!("{} on {}: {each} of cache", a.model, a.system));
    out.each(&a.lines).columns(&[
        ("kept in", &|l| l.id.clone()),
        ("get back $/Mtok", &|l| or(l.retrieve_usd_per_mtok, "not known", usd)),
        ("keep $/Mtok-h", &|l| or(l.hold_usd_per_mtok_hour, "not known", usd)),
        ("drain time", &|l| or_dash(l.drain_s, seconds)),
        ("recompute is cheaper after", &|l| or_dash(l.recompute_cheaper_after_s, seconds)),
    ]);
    out.part("cheapest by time between two uses");
    for s in &a.envelope {
        let to = or(s.to_s, "on", |t| format!("to {}", seconds(t)));
        out.line(format!("  from {:<10} {to:<14} {}", seconds(s.from_s), out.style.bold(&s.id)));
    }
    out.part("what a published lifetime could mean, by drain time");
    for d in &a.durations {
        let all = d.candidates.iter().map(|c| {
            let (drain, ratio) = (seconds(c.drain_s), significant(c.ratio, 2));
            format!("{} ({drain}, {ratio}x)", c.id)
        });
        let all = all.collect::<Vec<_>>().join(", ");
        let line = format!("{all}; cheapest by cost: {}", d.cheapest);
        out.wrapped(&format!("  {:<8} ", seconds(d.duration_s)), "           ", line);
    }
    out.note("nearest first; a lifetime alone cannot name the tier");
    if let Some(r) = &a.reuse {
        reuse(out, r);
    }
    out.pictures([&a.figure].into_iter().chain(&a.hit_figure));
    out.assumes(&a.assumptions);
    out.list("sources", &a.sources);
}

fn reuse(out: &mut Page, r: &ReuseCard) {
    out.part(format!("reuse: {}", r.source));
    let gaps = or(r.median_gap_s.zip(r.p90_gap_s), "nothing comes back", |(m, p)| {
        format!("half of it within {}, nine tenths within {}", seconds(m), seconds(p))
    });
    out.field("wanted again", format!("{} of prompt tokens; {gaps}", percent(r.hit_rate_max)));
    let rates: Vec<String> = r.hit_rates.iter().map(|(t, h)| format!("{} {}", seconds(*t), percent(*h))).collect();
    out.wrapped("  hit rate by lifetime   ", "                         ", rates.join(", "));
    out.each(&r.best).columns(&[
        ("kept in", &|b| b.id.clone()),
        ("best lifetime", &|b| if b.ttl_s > 0.0 { seconds(b.ttl_s) } else { "do not keep".into() }),
        ("hit rate", &|b| percent(b.hit_rate)),
        ("$/Mtok of prompt", &|b| usd(b.usd_per_mtok)),
        ("saved", &|b| percent(1.0 - b.usd_per_mtok / r.no_cache_usd_per_mtok)),
    ]);
}

pub(super) fn fastmode(out: &mut Page, a: &fastmode::Answer) {
    out.head(format!("{}: {} the price for {} the speed", a.of, times(a.price), times(a.speed)));
    out.title("if the batch is the only lever, and price follows cost");
    let r = &a.reading;
    out.field("cache over weights", format!("x = {}", three(r.x)));
    out.field("fast batch", format!("{} times smaller", three(r.batch_ratio)));
    out.field("speed limit", format!("{}, however much is paid", times(r.speed_limit)));
    out.field("slow mode", format!("could save at most {}", percent(r.slow_saving)));
    out.part("what would have to be true instead");
    let (chips, arrives) = (three(r.chips_instead), percent(r.scaling_instead));
    out.field("more chips", format!("{chips} times as many, of whose speed-up {arrives} arrives"));
    let [tokens, work] = [r.accepted_instead, r.work_instead].map(three);
    let paid = format!("the price would pay for {work} times the work of a step");
    out.field("better drafts", format!("{tokens} times the tokens per step; {paid}"));
    out.field("policy", "the multiple says nothing about the machine");
    out.pictures([&a.figure]);
    if !a.known.is_empty() {
        out.gap();
        out.each(&a.known).columns(&[
            ("sheet", &|k| k.sheet.clone()),
            ("mode", &|k| k.mode.clone()),
            ("price", &|k| times(k.price)),
            ("claimed speed", &|k| times(k.speed)),
            ("x", &|k| three(k.x)),
        ]);
        out.note("the same vendor's same speed at another price gives another x: at most one of them is cost");
    }
}
