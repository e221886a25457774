//! A simulated run as text: the verdict, percentiles, where the time goes, the worst requests.

use super::compose::Kind;
use super::estimate::evidence;
use super::page::{Page, ms, mtok, percent, plural, three, tok_s};
use crate::words::words;
use rackmath::figure::count;
use rackmath::simulate::{Answer, Compared, Difference, Happened, Held, Metric, Variant, Waited, Waits, What, Which};
use rackmath_units::{Bytes, grouped};

fn name(what: What) -> &'static str {
    match what {
        What::Queue => "queueing",
        What::Ttft => "time to first token",
        What::Tpot => "time per output token",
        What::Itl => "gap between tokens",
        What::E2e => "whole request",
    }
}

fn cause(waits: Waits) -> &'static str {
    match waits {
        Waits::Queue => "waiting to be scheduled",
        Waits::Prompt => "its prompt, with whoever shares the steps",
        Waits::Decode => "its tokens, in steps of decodes alone",
        Waits::OthersPrompts => "its tokens, in steps with prompts of others",
        Waits::Evicted => "evicted, and computed again",
        Waits::Transfer => "its cache on its way",
        Waits::Outside => "outside the engine",
        Waits::Retried => "refused or lost, until it was sent again",
        Waits::Fetch => "fetching its cache from memory below the chips' own",
    }
}

pub(super) fn simulate(out: &mut Page, a: &Answer) {
    header(out, a);
    out.paragraph("", words(&a.traffic));
    out.verdict(words(&a.verdict));
    a.warnings.iter().for_each(|w| out.caution(format!("{}.", words(w))));
    out.within(Kind::Working, |out| {
        evidence(out, a.evidence.as_ref());
        out.gap();
    });
    out.figures();
    if a.metrics.is_empty() && a.requests == 0 {
        if let Some(h) = &a.happened {
            happened(out, h);
        }
        return;
    }
    if let Some(compared) = &a.compared {
        comparison(out, compared);
    }
    let columns = ["", "mean", "p50", "p90", "p95", "p99", "p99.9"];
    out.table(&columns, a.metrics.iter().map(row));
    let intervals = a.metrics.iter().filter_map(|m| Some((m, m.p50_plus_minus_ms?, m.p99_plus_minus_ms?)));
    let intervals: Vec<String> =
        intervals.map(|(m, p50, p99)| format!("{} p50 ± {}, p99 ± {}", name(m.metric), ms(p50), ms(p99))).collect();
    if !intervals.is_empty() {
        out.working();
        out.paragraph("  ", format!("95 % intervals of batches of requests: {}", intervals.join("; ")));
    }
    out.gap();
    out.figures();
    classes(out, a);
    let s = &a.served;
    if let Some(h) = &a.happened {
        happened(out, h);
    }
    if let Some(g) = &a.goodput {
        out.item(format!(
            "{} of the requests are within all limits: {} a second",
            percent(g.share),
            three(g.requests_per_s)
        ));
        g.held.iter().for_each(|h| out.item(held(h)));
    }
    out.item(format!(
        "{} requests a second, {} ({} a chip) over {}",
        three(s.requests_per_s),
        tok_s(s.output_tok_s),
        tok_s(s.output_tok_s_per_chip),
        ms(a.span_s * 1e3)
    ));
    out.item(format!(
        "replicas work {} of the time, {} of it in steps with prompts; {} steps",
        percent(s.busy.min(1.0)),
        percent(s.with_prompts.min(1.0)),
        grouped(s.steps as f64)
    ));
    if let Some(dummy) = s.dummy {
        out.item(format!("{} of the steps' time is dummy steps of attention groups without work", percent(dummy)));
    }
    out.item(format!(
        "{} of prompt tokens found in the cache; cache at most {} full; {} evictions, {} tokens computed again",
        percent(s.cached),
        percent(s.cache_peak.min(1.0)),
        count(s.preemptions as f64),
        count(s.recomputed_tokens as f64)
    ));
    for t in &a.tiers {
        out.item(format!(
            "{}: {} tokens found, {} fetched over its link, which is in use {} of the time; {} written, {} gave way",
            match t.tier {
                Which::Host => "host memory",
                Which::Disk => "disk",
                Which::Remote => "remote memory",
            },
            count(t.found_tokens as f64),
            Bytes::b(t.fetched_bytes),
            percent(t.link_busy.min(1.0)),
            Bytes::b(t.written_bytes),
            Bytes::b(t.evicted_bytes)
        ));
    }
    if let Some(usd) = s.usd_per_mtok_output {
        let basis = a.price_basis.join(" and ");
        let basis = if basis.is_empty() { basis } else { format!(" at {basis} prices") };
        out.item(format!("{} of output{basis}, all dollars on it", mtok(usd)));
    }
    out.advice();
    out.title("where the time of a request goes, mean");
    for p in &a.parts {
        out.item(format!("{} ({}): {}", ms(p.ms), percent(p.share), cause(p.what)));
    }
    out.working();
    out.pictures([&a.figure]);
    out.title("slowest requests, and why");
    a.worst.iter().take(5).for_each(|w| out.item(worst(w)));
    out.gap();
    out.assumes(&a.assumptions);
}

/// Who serves: with a controller, from how many replicas to how many.
fn header(out: &mut Page, a: &Answer) {
    out.title(format!("{} on {} with {}", a.model, a.system, a.engine));
    let router = if a.replicas > 1 { format!(", {} router", a.router) } else { String::new() };
    let (s, c) = (plural(a.replicas), plural(a.chips));
    let (mut replicas, mut chips) = (a.replicas.to_string(), a.chips.to_string());
    if let Some(least) = a.least_replicas.filter(|least| *least < a.replicas) {
        replicas = format!("{least} to {replicas}");
        chips = format!("{} to {chips}", a.chips / a.replicas * least);
    }
    let pool = match a.prefill_replicas {
        0 => String::new(),
        n => format!("{n} replica{} for prompts and ", plural(n)),
    };
    let scaled = if a.least_replicas.is_some() { ", started and drained by a controller" } else { "" };
    out.dim(format!("{pool}{replicas} replica{s} of {}{scaled}, {chips} chip{c}{router}", a.layout));
}

/// A limit on a percentile, and whether it holds.
fn held(h: &Held) -> String {
    let found = h.ms.map_or_else(|| "more requests failed than it leaves".to_owned(), ms);
    let holds = if h.holds { "holds" } else { "does not hold" };
    format!("p{} of the {}: {found}; the limit of {} {holds}", h.percentile, name(h.metric), ms(h.limit_ms))
}

fn classes(out: &mut Page, a: &Answer) {
    if a.classes.is_empty() {
        return;
    }
    let columns =
        ["class", "requests", "failed", "within limits", "TTFT p50", "p99", "per token p50", "p99", "whole p99"];
    out.table(
        &columns,
        a.classes.iter().map(|c| {
            let of = |what: What, pick: fn(&Metric) -> f64| {
                c.metrics.iter().find(|m| m.metric == what).map_or("-".to_owned(), |m| ms(pick(m)))
            };
            vec![
                c.name.clone(),
                grouped(c.requests as f64),
                grouped(c.failed as f64),
                c.goodput.as_ref().map_or("-".to_owned(), |g| percent(g.share)),
                of(What::Ttft, |m| m.p50_ms),
                of(What::Ttft, |m| m.p99_ms),
                of(What::Tpot, |m| m.p50_ms),
                of(What::Tpot, |m| m.p99_ms),
                of(What::E2e, |m| m.p99_ms),
            ]
        }),
    );
    out.gap();
}

fn happened(out: &mut Page, h: &Happened) {
    let n = |x: u64| grouped(x as f64);
    out.item(format!(
        "{} of {} requests failed, {} of them given up by their clients; {} attempts refused, {} lost, {} sent again",
        n(h.failed),
        n(h.arrived),
        n(h.timed_out),
        n(h.refused),
        n(h.lost),
        n(h.retried)
    ));
    if h.deaths + h.starts + h.drains > 0 {
        out.item(format!(
            "{} replicas paid for, on average, those that start, drain or come back among them; {} died, {} started, {} drained",
            three(h.replicas_paid),
            n(h.deaths),
            n(h.starts),
            n(h.drains)
        ));
    }
}

/// Values of a setting side by side, then by how much each differs from the first.
fn comparison(out: &mut Page, c: &Compared) {
    out.judged(true, words(&c.verdict));
    out.title(format!("{} on the same requests", c.what));
    let at = |v: &Variant, what: What, pick: fn(&Metric) -> f64| {
        v.metrics.iter().find(|m| m.metric == what).map_or_else(String::new, |m| ms(pick(m)))
    };
    let columns = [c.what.as_str(), "ttft p50", "ttft p99", "tpot p50", "tpot p99", "whole p99", "output", "cached"];
    let rows = c.variants.iter().map(|v| {
        vec![
            if v.queue_grows { format!("{} (queue grows)", v.value) } else { v.value.clone() },
            at(v, What::Ttft, |m| m.p50_ms),
            at(v, What::Ttft, |m| m.p99_ms),
            at(v, What::Tpot, |m| m.p50_ms),
            at(v, What::Tpot, |m| m.p99_ms),
            at(v, What::E2e, |m| m.p99_ms),
            tok_s(v.output_tok_s),
            percent(v.cached),
        ]
    });
    out.table(&columns, rows);
    let base = c.variants.first().map_or("", |v| v.value.as_str());
    for v in c.variants.iter().skip(1) {
        out.item(format!(
            "{} less {base}, batch by batch: {}",
            v.value,
            v.differences.iter().map(less).collect::<Vec<_>>().join("; ")
        ));
    }
    if !c.same_times {
        out.dim("requests wait for answers: their times differ between the values, and pairs are only alike in order");
    }
    out.gap();
    out.title(format!("{} = {base}", c.what));
}

fn less(d: &Difference) -> String {
    let sign = if d.ms < 0.0 { "-" } else { "+" };
    let width =
        d.plus_minus_ms.map_or_else(|| " (too few requests for an interval)".into(), |w| format!(" ± {}", ms(w)));
    let short = match d.metric {
        What::Ttft => "ttft",
        What::Tpot => "tpot",
        _ => "whole",
    };
    format!("{short} p{:.0} {sign}{}{width}", d.percentile * 100.0, ms(d.ms.abs()))
}

fn row(m: &Metric) -> Vec<String> {
    let values = [m.mean_ms, m.p50_ms, m.p90_ms, m.p95_ms, m.p99_ms, m.p999_ms];
    std::iter::once(name(m.metric).to_owned()).chain(values.map(ms)).collect()
}

fn worst(w: &Waited) -> String {
    let parts = [
        (w.queue_ms, "queue"),
        (w.fetch_ms.unwrap_or(0.0), "fetch"),
        (w.prompt_ms, "prompt"),
        (w.decode_ms, "decode"),
        (w.others_prompts_ms, "prompts of others"),
        (w.evicted_ms, "evicted"),
        (w.transfer_ms, "transfer"),
        (w.outside_ms, "outside"),
        (w.retried_ms, "sent again"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(t, _)| *t > 0.0).map(|(t, what)| format!("{what} {}", ms(*t))).collect();
    let (prompt, output) = (grouped(f64::from(w.prompt)), grouped(f64::from(w.output)));
    format!("request {}, {prompt} in, {output} out: {} = {}", w.request, ms(w.e2e_ms), parts.join(" + "))
}
