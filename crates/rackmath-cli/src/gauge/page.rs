//! A measurement as text: what was found, how far the client can be trusted, each figure with its definition, and the prediction beside it.

use super::beside::{Beside, Row, digits};
use rackmath_measure::gauge::{Arrival, Arrivals, Ended, Measured, Plan, Server, Step, Summary};
use rackmath_measure::read::Observed;
use rackmath_report::Style;
use std::fmt::Write as _;

/// What is about to be sent.
pub fn intention(plan: &Plan, schedule: &[Arrival]) -> String {
    let lengths = format!("prompts of {} and answers of {} tokens", plan.lengths.input, plan.lengths.output);
    match plan.arrivals {
        Arrivals::Open { rate, cv } => {
            let how = if cv == 0.0 {
                "evenly".to_owned()
            } else if cv == 1.0 {
                "at random".to_owned()
            } else {
                format!("in bursts (coefficient of variation {cv})")
            };
            format!("{} requests {how} at {}/s, {lengths}", plan.requests, digits(rate))
        }
        Arrivals::Closed { concurrency } => format!("{concurrency} always under way, {lengths}"),
        Arrivals::Trace { speed } => format!("{} requests of a trace at {speed} times its speed", schedule.len()),
    }
}

const DEFINITIONS: [(&str, &str); 5] = [
    ("TTFT", "first chunk with a token - scheduled time"),
    ("TPOT", "(last - first)/(n - 1), mean over tokens"),
    ("E2E", "last chunk with a token - scheduled time"),
    ("output", "tokens that came within the steady window"),
    ("requests", "answers that ended within the steady window"),
];

fn table(rows: &[Row], style: Style, definitions: bool) -> String {
    let predicted = rows.iter().any(|r| r.predicted.is_some());
    let mut out = String::new();
    let head = if predicted {
        format!(
            "  {:<10} {:>10} {:>10} {:>10} {:>11}   {:<22} {}",
            "", "mean", "p50", "p99", "predicted", "80 % interval", ""
        )
    } else {
        format!("  {:<10} {:>10} {:>10} {:>10}", "", "mean", "p50", "p99")
    };
    let _ = writeln!(out, "{}", style.dim(head.trim_end()));
    for r in rows.iter().filter(|r| r.measured.is_some()) {
        let or = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), digits);
        let mut line = format!(
            "  {:<10} {:>10} {:>10} {:>10}",
            format!("{} {}", r.name, r.unit),
            or(r.measured),
            or(r.p50),
            or(r.p99)
        );
        if let Some(p) = r.predicted {
            let verdict = match r.inside {
                Some(true) => style.good("inside"),
                Some(false) => style.bad("outside"),
                None => String::new(),
            };
            let _ = write!(
                line,
                " {:>11}   {:<22} {verdict}",
                digits(p.value),
                format!("{} to {}", digits(p.low), digits(p.high))
            );
        }
        let _ = writeln!(out, "{}", line.trim_end());
        if let Some((_, said)) = DEFINITIONS.iter().find(|(name, _)| *name == r.name).filter(|_| definitions) {
            let _ = writeln!(out, "{}", style.dim(&format!("             {said}")));
        }
    }
    out
}

fn verdict(out: &mut String, beside: &Result<Beside, String>, missed: &[String], style: Style) {
    match beside {
        Ok(b) => {
            let _ = writeln!(out, "\n  predicted for {} on {}, {}", b.model, b.machine, b.engine);
            if let Some(e) = &b.evidence {
                let _ = writeln!(out, "  {}", style.dim(e));
            }
            if !b.binds.is_empty() {
                let _ = writeln!(out, "  bound by {}", b.binds);
            }
            if let Some(p) = &b.problem {
                let _ = writeln!(out, "  {}", style.bad(p));
            }
            for line in &b.blame {
                out.push_str(&style.wrapped("  - ", "    ", line));
                if !out.ends_with('\n') {
                    out.push('\n');
                }
            }
            if b.blame.is_empty() && b.problem.is_none() {
                let _ = writeln!(out, "  {}", style.good("as fast as it should be: every figure lies in its interval"));
            }
        }
        Err(why) if !why.is_empty() => {
            let _ = writeln!(out, "\n  {why}");
        }
        Err(_) => {}
    }
    for miss in missed {
        let _ = writeln!(out, "  {}", style.bad(&format!("target missed: {miss}")));
    }
}

/// A result file of another tool.
pub fn read(o: &Observed, rows: &[Row], beside: &Result<Beside, String>, missed: &[String], style: Style) -> String {
    let mut out = format!("{}\n", style.bold(&format!("a result of {}", o.tool)));
    let load = match (o.rate, o.concurrency) {
        (Some(rate), _) => format!("{} requests a second", digits(rate)),
        (None, Some(n)) => format!("{} under way", digits(n)),
        (None, None) => "as many as the server takes".to_owned(),
    };
    let length = |n: Option<f64>| n.map_or_else(|| "?".to_owned(), digits);
    let _ = writeln!(
        out,
        "  {}; {load}; prompts {}, answers {} tokens; {} answered, {} failed",
        o.model.as_deref().unwrap_or("model not told"),
        length(o.isl),
        length(o.osl),
        o.completed,
        o.failed
    );
    out.push('\n');
    out.push_str(&table(rows, style, false));
    verdict(&mut out, beside, missed, style);
    for note in &o.notes {
        let _ = writeln!(out, "  {}", style.dim(&format!("note: {note}")));
    }
    out
}

/// A run of our own.
pub fn measured(
    server: &Server,
    plan: &Plan,
    m: &Measured,
    rows: &[Row],
    beside: &Result<Beside, String>,
    missed: &[String],
    style: Style,
) -> String {
    let (f, s) = (&server.found, &m.summary);
    let mut out = format!("{}\n", style.bold(&format!("{} at {}", f.model, server.client.target)));
    let told = [
        f.engine.as_ref().map(|e| format!("{e} {}", f.version.as_deref().unwrap_or(""))),
        f.max_context.map(|n| format!("context {n}")),
        f.kv_tokens.map(|n| format!("KV cache of {} tokens", digits(n))),
        f.slots.map(|n| format!("{n} slots")),
        (!f.flags.is_empty()).then(|| f.flags.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ")),
    ];
    let told: Vec<String> = told.into_iter().flatten().map(|t| t.trim().to_owned()).collect();
    let _ = writeln!(
        out,
        "  found: {}",
        if told.is_empty() { "nothing beyond its name".to_owned() } else { told.join("; ") }
    );
    let w = &s.window;
    let _ = writeln!(
        out,
        "  sent:  {}; measured prompts {}, answers {} tokens",
        intention(plan, &[]),
        digits(s.isl),
        digits(s.osl)
    );
    let _ = writeln!(
        out,
        "  taken: {} of {} requests, {} to {} s{}",
        w.requests,
        s.counts.sent,
        digits(w.from),
        digits(w.to),
        if w.whole { " (the whole run: too short for a steady part)" } else { "" }
    );
    if w.lengths < 10.0 && !w.whole {
        let _ = writeln!(
            out,
            "         {}",
            style.dim(&format!("the run is only {} answers long; ramp and drain are felt below 10", digits(w.lengths)))
        );
    }
    let c = &s.client;
    let lag = format!("{:.3} ms at p99 (limit {:.2})", c.lag_p99_s * 1e3, c.lag_limit_s * 1e3);
    let cpu = c.cpu.map_or_else(String::new, |x| format!(", {:.0} % of a core", x * 100.0));
    let line = format!(
        "  client: late by {lag}{cpu}; {} new connections, {} replaced",
        c.connect.as_ref().map_or(0, |f| f.count),
        c.reopened
    );
    let _ = writeln!(
        out,
        "{}",
        if c.tainted {
            style.bad(&format!("{line}: THE CLIENT WAS LATE, the figures are tainted and not judged"))
        } else {
            line
        }
    );
    counts(&mut out, m, style);
    out.push('\n');
    out.push_str(&table(rows, style, true));
    spread(&mut out, s, style);
    if s.grows {
        let _ = writeln!(
            out,
            "  {}",
            style.bad(
                "the number under way grows through the run: more is offered than is served, there is no steady state"
            )
        );
    }
    if let Some((share, rate)) = s.good {
        let _ =
            writeln!(out, "  {:.1} % of scheduled requests met the targets: {} a second", share * 100.0, digits(rate));
    }
    verdict(&mut out, beside, missed, style);
    out
}

/// How the figures spread, and what was under way.
fn spread(out: &mut String, s: &Summary, style: Style) {
    if let Some(itl) = &s.itl {
        let _ = writeln!(
            out,
            "  {:<10} {:>10} {:>10} {:>10}",
            "ITL ms",
            digits(itl.mean * 1e3),
            digits(itl.p50 * 1e3),
            itl.p99.map_or_else(|| "-".into(), |p| digits(p * 1e3))
        );
        let _ = writeln!(out, "{}", style.dim("             gap between chunks, divided over the tokens of the chunk"));
    }
    if s.ttft.as_ref().is_some_and(|t| t.p99.is_none()) {
        let _ = writeln!(out, "  {}", style.dim("a p99 is shown from 1,000 requests on"));
    }
    if let Some(half) = s.ttft.as_ref().and_then(|t| t.half_width) {
        let tpot = s.tpot.as_ref().and_then(|t| t.half_width).unwrap_or(0.0);
        let _ = writeln!(
            out,
            "  {}",
            style.dim(&format!(
                "80 % intervals of the measured means by batches: TTFT +- {} ms, TPOT +- {} ms",
                digits(half * 1e3),
                digits(tpot * 1e3)
            ))
        );
    }
    let _ = writeln!(
        out,
        "  {} under way in the mean; {} tokens a chunk{}",
        digits(s.running),
        digits(s.per_chunk),
        s.cached
            .filter(|c| *c > 0.0)
            .map_or_else(String::new, |c| format!("; {:.1} % of prompts from the cache", c * 100.0))
    );
}

fn counts(out: &mut String, m: &Measured, style: Style) {
    let c = &m.summary.counts;
    let _ = writeln!(
        out,
        "  counts: {} asked, {} sent, {} answered; {} tokens in, {} out",
        c.asked, c.sent, c.answered, c.input_tokens, c.output_tokens
    );
    for (kind, n) in &c.faults {
        let example = c.examples.iter().find(|e| e.starts_with(kind.as_str())).map_or("", String::as_str);
        let _ = writeln!(
            out,
            "          {}",
            style.bad(&format!("{n} x {kind}{}", example.strip_prefix(kind.as_str()).unwrap_or_default()))
        );
    }
    let odd = [
        (c.stopped, "under way when it was stopped"),
        (c.short, "answers shorter than asked for"),
        (c.garbled, "answers with bytes that are no UTF-8"),
        (c.answered - c.exact_inputs.min(c.answered), "prompts that the server counted otherwise or not"),
    ];
    for (n, what) in odd.iter().filter(|(n, _)| *n > 0) {
        let _ = writeln!(out, "          {n} {what}");
    }
    match m.summary.ended {
        Ended::Complete => {}
        Ended::Stopped => out.push_str("          stopped: what was measured until then is below\n"),
        Ended::Ceiling => out.push_str("          ended at the ceiling of tokens or dollars\n"),
        Ended::Gone => out.push_str("          the server is gone: it takes no connections any more\n"),
    }
    if let Some(own) = &m.counters {
        let pairs = [
            ("requests", own.requests, c.answered),
            ("tokens in", own.input_tokens, c.input_tokens),
            ("tokens out", own.output_tokens, c.output_tokens),
        ];
        let said: Vec<String> = pairs
            .iter()
            .filter_map(|(what, theirs, ours)| {
                let theirs = (*theirs)?;
                Some(if theirs == *ours as f64 {
                    format!("{what} equal")
                } else {
                    format!("{what} {theirs:.0} against our {ours}")
                })
            })
            .collect();
        if !said.is_empty() {
            let _ = writeln!(out, "  server's own counters: {}", said.join(", "));
        }
    }
}

/// The rungs of a ladder and where it ends.
pub fn ladder(server: &Server, steps: &[Step], held: Option<f64>, failed: Option<f64>, style: Style) -> String {
    let mut out = format!(
        "{}\n\n",
        style.bold(&format!("{} at {}: rates to the knee", server.found.model, server.client.target))
    );
    let head = format!(
        "  {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9}",
        "offered/s", "served/s", "out tok/s", "TTFT ms", "TPOT ms", "under way", "faults"
    );
    let _ = writeln!(out, "{}", style.dim(&head));
    for step in steps {
        let s = &step.measured.summary;
        let ms = |v: Option<f64>| v.map_or_else(|| "-".into(), |t| digits(t * 1e3));
        let faults: u64 = s.counts.faults.values().sum();
        let line = format!(
            "  {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9}",
            digits(step.rate),
            digits(s.requests_per_s),
            digits(s.output_tok_s),
            ms(s.ttft.as_ref().map(|t| t.mean)),
            ms(s.tpot_over_tokens),
            digits(s.running),
            faults
        );
        let _ = writeln!(
            out,
            "{line}  {}",
            if step.holds() {
                style.good("holds")
            } else {
                style.bad(if s.grows { "the queue grows" } else { "does not hold" })
            }
        );
        if s.client.tainted {
            let _ = writeln!(
                out,
                "             {}",
                style.bad(&format!("the client was late by {:.2} ms at p99", s.client.lag_p99_s * 1e3))
            );
        }
    }
    let said = match (held, failed) {
        (Some(held), Some(failed)) => {
            format!("the knee lies between {} and {} requests a second", digits(held), digits(failed))
        }
        (Some(held), None) => format!("all rungs hold, up to {} requests a second: the knee lies above", digits(held)),
        (None, _) => "not even the first rung holds".to_owned(),
    };
    let _ = writeln!(out, "\n  {said}");
    out
}
