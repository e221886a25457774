//! Estimates as text: numbers with their intervals, where the step goes, what would help.

use super::{Page, bytes, ms, mtok, or_dash, percent, three, tok_s};
use crate::style::Style;
use rackmath::estimate::{Answer, Breakdown, Change, Piece, Pools, Problem, Range, Served, sweep};
use rackmath::figure::count;

/// `rackmath estimate`
pub fn estimate(a: &Answer, style: Style) -> String {
    let mut out = Page::new(style);
    out.title(format!("{} on {}, {}", a.model, a.system, a.engine));
    let chosen = if a.layout_chosen { " (chosen)" } else { "" };
    let plural = if a.chips == 1 { "" } else { "s" };
    let head = format!(
        "{}{chosen}, {} chip{plural}; {}; prompts {}, answers {} tokens; weights {}, KV {}",
        a.layout,
        a.chips,
        a.load,
        count(a.isl),
        count(a.osl),
        a.weights,
        a.kv
    );
    out.wrapped("", "", &head);
    out.gap();
    if let Some(p) = &a.problem {
        problem(&mut out, p);
    }
    if let Some(s) = &a.served {
        numbers(&mut out, s);
        match &a.pools {
            Some(p) => pools(&mut out, p),
            None => prompts(&mut out, s),
        }
        out.gap();
        breakdown(&mut out, &s.step);
        out.gap();
        out.wrapped("  ", "  ", &s.reading);
        out.wrapped("  ", "  ", &format!("Bound by {}.", s.binding));
        out.gap();
    }
    changes(&mut out, a);
    out.list("assumes", &a.assumptions);
    out.list("sources", &a.sources);
    out.text()
}

fn problem(out: &mut Page, p: &Problem) {
    out.wrapped("  ", "  ", &out.style.bad(&p.what));
    if let Some(change) = &p.first_change {
        out.wrapped("  ", "  ", &format!("would do: {change}"));
    }
    out.gap();
}

/// A value and, dimmed, its interval.
fn range(out: &mut Page, label: &str, r: Range, show: impl Fn(f64) -> String, more: &str) {
    let interval =
        if r.low < r.high { out.style.dim(&format!("{} to {}", show(r.low), show(r.high))) } else { String::new() };
    let line = format!("  {label:<22} {:<14} {interval}{more}", show(r.value));
    out.line(line.trim_end());
}

fn numbers(out: &mut Page, s: &Served) {
    out.more(format!("{:<14} {}", out.style.bold("mean"), out.style.dim("80 % interval")));
    range(out, "time per output token", s.tpot_ms, ms, "");
    let waiting = if s.queue_ms.value > 0.0 {
        format!("; {} of it waiting for memory", ms(s.queue_ms.value))
    } else {
        String::new()
    };
    range(out, "time to first token", s.ttft_ms, ms, &waiting);
    range(out, "whole request", s.e2e_ms, ms, "");
    range(out, "throughput per chip", s.output_tok_s_per_chip, tok_s, "");
    range(out, "throughput per user", s.output_tok_s_per_user, tok_s, "");
    range(out, "throughput", s.output_tok_s, tok_s, "");
    range(out, "requests per second", s.requests_per_s, three, "");
    if let (Some(output), Some(input)) = (s.usd_per_mtok_output, s.usd_per_mtok_input) {
        let (output, input) = (mtok(output), mtok(input));
        out.field("cost", format!("{output} output, {input} input"));
    }
    if let Some(slo) = &s.slo {
        let good = format!("{} requests per second; {}", three(slo.goodput_requests_per_s), slo.verdict);
        let good = if slo.met { out.style.good(&good) } else { out.style.bad(&good) };
        out.row("goodput", good);
    }
    let waiting = if s.waiting > 0.0 { format!(", {} wait", three(s.waiting)) } else { String::new() };
    let room = if s.room < 1e8 { count(s.room.floor()) } else { "any number".into() };
    let sequences = format!("{} decode{waiting}; memory holds {room}", three(s.decoding));
    out.field("sequences", sequences);
}

fn prompts(out: &mut Page, s: &Served) {
    let prompts = format!("{} of passes carry {} tokens", percent(s.prompt_share), three(s.prompt_tokens));
    out.field("prompts", prompts);
}

fn pools(out: &mut Page, p: &Pools) {
    let instances = format!(
        "{} x {} on {} chips, {} decode",
        three(p.prefill_instances),
        p.prefill_layout,
        p.prefill_chips,
        p.decode_chips
    );
    out.field("prefill pool", instances);
    out.more(format!(
        "{} busy; exact balance at {} prefill chips for each that decodes",
        percent(p.prefill_busy),
        three(p.balanced_ratio)
    ));
    out.more(format!(
        "wait {}, compute {}, send {} in {} ({})",
        ms(p.prefill_wait_ms),
        ms(p.prefill_ms),
        bytes(p.transfer_bytes),
        ms(p.transfer_ms),
        p.network
    ));
}

pub(super) fn breakdown(out: &mut Page, b: &Breakdown) {
    let title = format!("mean step {}", ms(b.step_ms));
    let kinds = if (b.mixed_ms - b.decode_ms).abs() > 1e-9 {
        format!(": {} when all decode, {} with prompt tokens", ms(b.decode_ms), ms(b.mixed_ms))
    } else {
        String::new()
    };
    out.line(format!("{}{}", out.style.bold(&title), out.style.dim(&kinds)));
    bars(out, &b.parts);
    out.note("limited by");
    bars(out, &b.limits);
    let ideal = Piece { what: "roofline of the step".into(), ms: b.ideal_ms, share: b.of_limit };
    bars(out, &[ideal]);
}

/// One line per piece: name, time, share, bar.
fn bars(out: &mut Page, pieces: &[Piece]) {
    let room = out.style.width.clamp(60, 140) - 46;
    for p in pieces {
        // Eighths of a column, so that small shares show.
        const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        let eighths = (p.share.clamp(0.0, 1.0) * room as f64 * 8.0).round() as usize;
        let bar = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
        let line = format!("  {:<22} {:>9} {:>6}  {}", p.what, ms(p.ms), percent(p.share), out.style.tint(39, &bar));
        out.line(line.trim_end());
    }
}

fn changes(out: &mut Page, a: &Answer) {
    if a.changes.is_empty() {
        return;
    }
    let by = a.changes.first().map_or("", |c| c.judged_by.as_str());
    out.wrapped(
        "",
        "  ",
        &format!("{} {}", out.style.bold("what would help most"), out.style.dim(&format!("judged by {by}"))),
    );
    for (i, c) in a.changes.iter().enumerate() {
        let gain = c.gain.map_or("served".into(), signed);
        let gain = out.style.good(&format!("{gain:>7}"));
        out.wrapped(&format!("  {}. {gain}  ", i + 1), "              ", &change(c));
    }
    out.gap();
}

fn change(c: &Change) -> String {
    let cost = c.usd_per_mtok_output.map_or(String::new(), |u| format!(", {} output", mtok(u)));
    let rescues = if c.rescues { "; meets what is missed today" } else { "" };
    let within = if c.within_interval { "; less than the interval is wide" } else { "" };
    let caution = c.caution.as_ref().map_or(String::new(), |c| format!("; needs {c}"));
    format!(
        "{}: {} per token, first after {}, {} per chip{cost}{rescues}{within}{caution}",
        c.what,
        ms(c.tpot_ms),
        ms(c.ttft_ms),
        tok_s(c.output_tok_s_per_chip)
    )
}

/// A gain with its sign: "+12%".
fn signed(gain: f64) -> String {
    format!("{}{:.0}%", if gain < 0.0 { "" } else { "+" }, gain * 100.0)
}

/// `rackmath estimate --sweep`
pub fn estimate_sweep(a: &sweep::Answer, style: Style) -> String {
    let mut out = Page::new(style);
    if let Some(p) = &a.problem {
        problem(&mut out, p);
    }
    if !a.rows.is_empty() {
        out.draw(&a.figure);
        out.gap();
        rows(&mut out, a);
        out.gap();
    }
    out.list("assumes", &a.assumptions);
    out.text()
}

/// A line for each doubling.
fn rows(out: &mut Page, a: &sweep::Answer) {
    let mut next = 1.0;
    let mut rows = a.rows.clone();
    rows.retain(|r| {
        let shown = r.concurrency >= next;
        if shown {
            next = r.concurrency * 2.0 * 0.97;
        }
        shown
    });
    out.columns(
        &rows,
        &[
            ("concurrency", &|r| count(r.concurrency)),
            ("tok/s/user", &|r| three(r.output_tok_s_per_user)),
            ("tok/s/chip", &|r| three(r.output_tok_s_per_chip)),
            ("TPOT", &|r| ms(r.tpot_ms)),
            ("TTFT", &|r| ms(r.ttft_ms)),
            ("of the limit", &|r| percent(r.of_limit)),
            ("$/Mtok out", &|r| or_dash(r.usd_per_mtok_output, |c| format!("${}", three(c)))),
            ("bound by", &|r| r.binding.clone()),
        ],
    );
}
