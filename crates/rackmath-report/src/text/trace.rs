//! A trace as text: lengths, arrivals, what prompts share, the workload it resembles.

use super::prelude::*;
use rackmath::trace::{Answer, Arrivals, ReuseCard};

pub(super) fn trace(out: &mut Page, a: &Answer) {
    out.head(format!("{}: {} requests, {}", a.name, count(a.requests as f64), a.format));
    let [input, output] = [a.input.mean, a.output.mean].map(|x| count(x.round()));
    let rate = or(a.arrivals.as_ref(), "", |c| format!(", {} a second", three(c.rate_per_s)));
    let found =
        or(a.reuse.as_ref(), "", |r| format!("; {} of prompt tokens can be found in a cache", percent(r.taken)));
    let n = count(a.requests as f64);
    out.verdict(format!("{n} requests of {input} tokens in and {output} out on average{rate}{found}"));
    out.figures();
    out.note(format!("{:<22} {:>9} {:>9} {:>9} {:>9} {:>9}", "tokens", "mean", "p50", "p90", "p99", "cv"));
    for (label, l) in [("prompt", &a.input), ("answer", &a.output)] {
        let ([mean, p50, p90, p99], cv) = ([l.mean, l.p50, l.p90, l.p99].map(|x| count(x.round())), three(l.cv));
        out.row(label, format!("{mean:>9} {p50:>9} {p90:>9} {p99:>9} {cv:>9}"));
    }
    out.field("correlation", format!("{:.2}", (a.correlation * 100.0).round() / 100.0 + 0.0));
    out.gap();
    if let Some(c) = &a.arrivals {
        arrivals(out, c);
    }
    if let Some(r) = &a.reuse {
        reuse(out, r);
    }
    if let Some(n) = &a.nearest {
        out.title(format!("most like the workload {}", n.scenario));
        let ([input, output], cached) = ([n.input_factor, n.output_factor].map(three), percent(n.cached));
        let like = format!("prompts {input} and answers {output} times as long, {cached} of prompts cached there");
        out.paragraph("  ", format!("{}; {like}", n.about));
        out.gap();
    }
    out.assumes(&a.assumptions);
}

fn arrivals(out: &mut Page, c: &Arrivals) {
    let per_s = |x: f64| format!("{} requests per second", three(x));
    out.field("span", seconds(c.span_s));
    out.field("rate", per_s(c.rate_per_s));
    let peak = c.peak_rate_per_s.zip(c.peak_over_mean);
    out.maybe(
        "busiest minute",
        peak.map(|(peak, factor)| format!("{}, {} times the mean", per_s(peak), three(factor))),
    );
    let like = match c.gap_cv {
        cv if cv < 0.7 => "more even than at random",
        cv if cv <= 1.3 => "as at random",
        _ => "in bursts",
    };
    out.field("burstiness of gaps", format!("{} ({like})", three(c.gap_cv)));
    out.gap();
}

fn reuse(out: &mut Page, r: &ReuseCard) {
    out.title("prompt tokens found in a prefix cache");
    for hit in &r.hits {
        let label = or(hit.keep_s, "kept all along", |s| format!("kept for {}", seconds(s)));
        out.field(&label, percent(hit.share));
    }
    if let Some(tokens) = r.kept_tokens {
        let (found, kept) = (percent(r.taken), count(tokens.round()));
        out.paragraph("  ", format!("{found} found for planning, with {kept} tokens kept at a time"));
    }
    out.gap();
}
