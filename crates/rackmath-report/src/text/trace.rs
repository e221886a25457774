//! A trace as text: lengths, arrivals, what prompts share, the workload it resembles.

use super::{Page, percent, seconds, three};
use crate::style::Style;
use rackmath::figure::count;
use rackmath::trace::{Answer, ArrivalCard, LengthCard, ReuseCard};

/// `rackmath trace`
pub fn trace(a: &Answer, style: Style) -> String {
    let mut out = Page::new(style);
    let head = format!("{}: {} requests, {}", a.name, count(a.requests as f64), a.format);
    out.head(head);
    out.note(format!("{:<22} {:>9} {:>9} {:>9} {:>9} {:>9}", "tokens", "mean", "p50", "p90", "p99", "cv"));
    lengths(&mut out, "prompt", &a.input);
    lengths(&mut out, "answer", &a.output);
    out.field("correlation", format!("{:.2}", (a.correlation * 100.0).round() / 100.0 + 0.0));
    out.gap();
    if let Some(c) = &a.arrivals {
        arrivals(&mut out, c);
    }
    if let Some(r) = &a.reuse {
        reuse(&mut out, r);
    }
    if let Some(n) = &a.nearest {
        out.title(format!("most like the workload {}", n.scenario));
        let text = format!(
            "{}; prompts {} and answers {} times as long, {} of prompts cached there",
            n.about,
            three(n.input_factor),
            three(n.output_factor),
            percent(n.cached)
        );
        out.wrapped("  ", "  ", &text);
        out.gap();
    }
    if !a.assumptions.is_empty() {
        out.list("assumes", &a.assumptions);
    }
    out.text()
}

fn lengths(out: &mut Page, label: &str, l: &LengthCard) {
    let n = |x: f64| count(x.round());
    let cv = three(l.cv);
    out.line(format!("  {label:<22} {:>9} {:>9} {:>9} {:>9} {cv:>9}", n(l.mean), n(l.p50), n(l.p90), n(l.p99)));
}

fn arrivals(out: &mut Page, c: &ArrivalCard) {
    let per_s = |x: f64| format!("{} requests per second", three(x));
    out.field("span", seconds(c.span_s));
    out.field("rate", per_s(c.rate_per_s));
    if let (Some(peak), Some(factor)) = (c.peak_rate_per_s, c.peak_over_mean) {
        out.field("busiest minute", format!("{}, {} times the mean", per_s(peak), three(factor)));
    }
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
        let label = hit.keep_s.map_or_else(|| "kept all along".into(), |s| format!("kept for {}", seconds(s)));
        out.field(&label, percent(hit.share));
    }
    if let Some(tokens) = r.kept_tokens {
        let text =
            format!("{} found for planning, with {} tokens kept at a time", percent(r.taken), count(tokens.round()));
        out.wrapped("  ", "  ", &text);
    }
    out.gap();
}
