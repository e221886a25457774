//! A measurement as text: what it comes to, what was found, how far the client can be trusted, each figure with its definition, and the prediction beside it.

use super::beside::{Beside, Row, digits};
use crate::output::Output;
use rackmath::remark::{Remark, says};
use rackmath_measure::gauge::{Arrivals, Ended, FOR_P99, Measured, Plan, Server, Step, Summary};
use rackmath_measure::judge;
use rackmath_measure::read::{Dropped, Load, Observed};
use rackmath_report::Style;
use rackmath_report::reply::Detail;
use rackmath_report::text::sentence;
use rackmath_report::words::words;
use std::fmt::Write as _;

/// What is about to be sent; of a trace, so many.
pub fn intention(plan: &Plan, scheduled: usize) -> Remark {
    let lengths = |said: Remark| said.with("input", plan.lengths.input).with("output", plan.lengths.output);
    match plan.arrivals {
        Arrivals::Open { rate, cv } => {
            let how = if cv == 0.0 {
                says("gauge_evenly")
            } else if cv == 1.0 {
                says("gauge_at_random")
            } else {
                says("gauge_in_bursts").with("cv", cv)
            };
            lengths(says("gauge_open").with("requests", plan.requests).with("how", how).with("rate", rate))
        }
        Arrivals::Closed { concurrency } => lengths(says("gauge_closed").with("concurrency", concurrency)),
        Arrivals::Trace { speed } => says("gauge_trace").with("requests", scheduled).with("speed", speed),
    }
}

/// What a figure is.
fn definition(name: &str) -> Option<Remark> {
    Some(match name {
        "TTFT" => says("gauge_ttft"),
        "TPOT" => says("gauge_tpot"),
        "ITL" => says("gauge_itl"),
        "E2E" => says("gauge_e2e"),
        "output" => says("gauge_output"),
        "requests" => says("gauge_requests"),
        _ => return None,
    })
}

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
                if p.low < p.high {
                    format!("{} to {}", digits(p.low), digits(p.high))
                } else {
                    "set by the load".into()
                }
            );
        }
        let _ = writeln!(out, "{}", line.trim_end());
        if let Some(said) = definition(r.name).filter(|_| definitions) {
            let _ = writeln!(out, "{}", style.dim(&format!("             {}", words(&said))));
        }
    }
    out
}

/// A figure in a sentence, with its prediction where there is one.
fn figure(rows: &[Row], name: &str) -> Option<Remark> {
    let row = rows.iter().find(|r| r.name == name)?;
    let said = says("gauge_figure").with("name", row.name).with("measured", row.measured?).with("unit", row.unit);
    Some(said.with("predicted", row.predicted.map(|p| p.value)))
}

/// Why a measurement is not to be judged: what in it cannot be, and what is not in it.
pub fn doubts(o: &Observed) -> Vec<Remark> {
    let one = |d: &Dropped| {
        let said = says("gauge_dropped_one").with("figure", &d.figure).with("value", d.value);
        said.with("unit", d.unit).with("requests", d.requests)
    };
    let dropped: Vec<Remark> = o.dropped.iter().map(one).collect();
    let mut said = Vec::new();
    if !dropped.is_empty() {
        said.push(says("gauge_dropped").with("figures", dropped));
    }
    let share = o.failed_share();
    if share > judge::FAILED && o.completed > 0 {
        let all = o.completed + o.failed;
        said.push(says("gauge_failed").with("failed", o.failed).with("all", all).with("share", share));
    }
    if let Some(osl) = o.osl.filter(|_| o.too_short() && o.completed > 0) {
        said.push(says("gauge_short").with("osl", osl));
    }
    said
}

/// That the offered rate was not reached, and at which load both are compared instead.
fn unreached(o: &Observed, compared: bool) -> Option<Remark> {
    let (offered, achieved) = o.unreached()?;
    let said = says("gauge_unreached").with("offered", offered).with("achieved", achieved);
    Some(said.with("load", compared.then(|| load(o.load()))))
}

fn load(load: Load) -> Remark {
    match load {
        Load::Rate(rate) => says("gauge_read_load_rate").with("rate", rate),
        Load::Concurrency(n) => says("gauge_read_load_concurrency").with("concurrency", n),
        Load::Most => says("gauge_read_load_most"),
    }
}

/// What a measurement comes to, in a sentence or two: why it is not judged, targets, then the prediction, then the figures alone.
fn verdict(o: &Observed, rows: &[Row], beside: &Result<Beside, Remark>, missed: &[Remark]) -> Vec<Remark> {
    let (answered, failed) = (o.completed, o.failed);
    let mut said = doubts(o);
    let doubtful = !said.is_empty();
    said.extend(missed.iter().map(|miss| says("gauge_target_missed").with("miss", miss)));
    said.extend(unreached(o, beside.is_ok()));
    let figures: Vec<Remark> = ["TPOT", "TTFT", "output"].iter().filter_map(|name| figure(rows, name)).collect();
    let judged = |b: &Beside| b.rows.iter().any(|r| r.inside.is_some());
    said.push(match beside {
        _ if figures.is_empty() => says("gauge_verdict_nothing").with("failed", failed),
        _ if doubtful => {
            says("gauge_verdict_measured").with("figures", figures).with("answered", answered).with("failed", failed)
        }
        Ok(Beside { blame, .. }) if blame.first().is_some_and(|b| b.says == "gauge_impossible") => {
            says("gauge_verdict_impossible").with("why", &blame[0])
        }
        Ok(b) if b.faster() && !b.blame.is_empty() => says("gauge_verdict_faster").with("most", &b.blame[0]),
        Ok(Beside { blame, .. }) if !blame.is_empty() => says("gauge_verdict_off").with("worst", &blame[0]),
        Ok(b) if judged(b) => says("gauge_verdict_good").with("figures", figures),
        _ => says("gauge_verdict_measured").with("figures", figures).with("answered", answered).with("failed", failed),
    });
    said.extend(beside.as_ref().err().filter(|why| **why != Remark::default()).cloned());
    said
}

/// The verdict as it stands on top of a page.
fn head(said: &[Remark], good: bool, style: Style) -> String {
    let text = said.iter().map(|s| sentence(&words(s))).collect::<Vec<_>>().join(" ");
    let text = style.wrapped("", "", &text);
    format!("{}\n", if good { style.bold(text.trim_end()) } else { style.bad(text.trim_end()) })
}

/// A line, folded under where its text begins.
fn line(out: &mut String, style: Style, first: &str, text: &str) {
    out.push_str(&style.wrapped(first, &" ".repeat(first.len()), text));
}

/// The same, in a lower voice.
fn dim(out: &mut String, style: Style, first: &str, text: &str) {
    let text = style.wrapped(first, &" ".repeat(first.len()), text);
    let _ = writeln!(out, "{}", style.dim(text.trim_end()));
}

/// What the prediction is for and rests on, what binds by it, and which other figures are off; the worst stands in the verdict.
fn predicted(out: &mut String, beside: &Result<Beside, Remark>, judged: bool, style: Style) {
    let Ok(b) = beside else { return };
    let whose = says("gauge_predicted_for").with("model", &b.model).with("machine", &b.machine);
    out.push('\n');
    line(out, style, "  ", &words(&whose.with("engine", &b.engine)));
    if let Some(e) = &b.evidence {
        dim(out, style, "  ", &words(e));
    }
    if let Some(binds) = &b.binds {
        line(out, style, "  ", &words(&says("gauge_bound_by").with("what", binds)));
    }
    if let Some(p) = &b.problem {
        let _ = writeln!(out, "  {}", style.bad(&words(p)));
    }
    for line in b.blame.iter().skip(usize::from(judged)) {
        out.push_str(&style.wrapped("  - ", "    ", &words(line)));
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
}

/// A result file of another tool.
pub fn read(o: &Observed, rows: &[Row], beside: &Result<Beside, Remark>, missed: &[Remark], output: &Output) -> String {
    let style = output.style;
    let said = verdict(o, rows, beside, missed);
    let judged = doubts(o).is_empty();
    let good = judged && missed.is_empty() && o.unreached().is_none();
    let mut out = head(&said, good && !beside.as_ref().is_ok_and(Beside::outside), style);
    if output.detail == Detail::Verdict {
        return out;
    }
    let _ = writeln!(out, "\n{}", style.bold(&format!("a result of {}", o.tool)));
    let load = match (o.rate, o.concurrency) {
        (Some(rate), _) => load(Load::Rate(rate)),
        (None, Some(n)) => load(Load::Concurrency(n)),
        (None, None) => load(Load::Most),
    };
    let length = |n: Option<f64>| n.map_or_else(|| "?".to_owned(), digits);
    let model = o.model.as_ref().map_or_else(|| says("gauge_read_no_model"), Remark::from);
    let said = says("gauge_read").with("model", model).with("load", load).with("isl", length(o.isl));
    let said = said.with("osl", length(o.osl)).with("completed", o.completed).with("failed", o.failed);
    line(&mut out, style, "  ", &words(&said));
    out.push('\n');
    out.push_str(&table(rows, style, false));
    predicted(&mut out, beside, judged, style);
    for note in &o.notes {
        dim(&mut out, style, "  note: ", note);
    }
    out
}

/// A run of our own.
pub fn measured(
    server: &Server,
    plan: &Plan,
    (m, o): (&Measured, &Observed),
    rows: &[Row],
    beside: &Result<Beside, Remark>,
    missed: &[Remark],
    output: &Output,
) -> String {
    let (f, s, style) = (&server.found, &m.summary, output.style);
    let said = verdict(o, rows, beside, missed);
    let judged = doubts(o).is_empty();
    let good = missed.is_empty()
        && o.failed == 0
        && o.unreached().is_none()
        && !s.client.tainted
        && !beside.as_ref().is_ok_and(Beside::outside);
    let mut out = head(&said, good, style);
    if output.detail == Detail::Verdict {
        return out;
    }
    let _ = writeln!(out, "\n{}", style.bold(&format!("{} at {}", f.model, server.client.target)));
    let told = [
        f.engine.as_ref().map(|e| format!("{e} {}", f.version.as_deref().unwrap_or(""))),
        f.max_context.map(|n| format!("context {n}")),
        f.kv_tokens.map(|n| format!("KV cache of {} tokens", digits(n))),
        f.slots.map(|n| format!("{n} slots")),
        (!f.flags.is_empty()).then(|| f.flags.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ")),
    ];
    let told: Vec<String> = told.into_iter().flatten().map(|t| t.trim().to_owned()).collect();
    let told = if told.is_empty() { words(&says("gauge_found_nothing")) } else { told.join("; ") };
    line(&mut out, style, "  found: ", &told);
    let w = &s.window;
    let sent = words(&intention(plan, s.counts.asked as usize));
    let sent = format!("{sent}; measured prompts {}, answers {} tokens", digits(s.isl), digits(s.osl));
    line(&mut out, style, "  sent:  ", &sent);
    let _ = writeln!(
        out,
        "  taken: {} of {} requests, {} to {} s{}",
        w.requests,
        s.counts.sent,
        digits(w.from),
        digits(w.to),
        if w.whole { format!(" ({})", words(&says("gauge_whole_run"))) } else { String::new() }
    );
    if s.one_in > 1 {
        let said = says("gauge_sampled").with("one_in", s.one_in as f64);
        dim(&mut out, style, "         ", &words(&said));
    }
    if w.lengths < judge::LENGTHS && !w.whole {
        let said = says("gauge_short_run").with("lengths", w.lengths).with("least", judge::LENGTHS);
        dim(&mut out, style, "         ", &words(&said));
    }
    let c = &s.client;
    let lag = format!("{:.3} ms at p99 (limit {:.2})", c.lag_p99_s * 1e3, c.lag_limit_s * 1e3);
    let cpu = c.cpu.map_or_else(String::new, |x| format!(", {:.0} % of a core", x * 100.0));
    let client = format!("  client: late by {lag}{cpu}; {} new connections, {} replaced", c.opened, c.reopened);
    let _ = writeln!(
        out,
        "{}",
        if c.tainted { style.bad(&format!("{client}: {}", words(&says("gauge_tainted")))) } else { client }
    );
    counts(&mut out, m, style);
    out.push('\n');
    out.push_str(&table(rows, style, true));
    spread(&mut out, s, style);
    if s.grows {
        let _ = writeln!(out, "  {}", style.bad(&words(&says("gauge_grows"))));
    }
    if let Some((share, rate)) = s.good {
        line(&mut out, style, "  ", &words(&says("gauge_met").with("share", share).with("rate", rate)));
    }
    predicted(&mut out, beside, judged, style);
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
        let said = definition("ITL").map(|d| words(&d)).unwrap_or_default();
        let _ = writeln!(out, "{}", style.dim(&format!("             {said}")));
    }
    if s.ttft.as_ref().is_some_and(|t| t.p99.is_none()) {
        let _ = writeln!(out, "  {}", style.dim(&words(&says("gauge_p99_from").with("least", FOR_P99))));
    }
    if let Some(half) = s.ttft.as_ref().and_then(|t| t.half_width) {
        let tpot = s.tpot.as_ref().and_then(|t| t.half_width).unwrap_or(0.0);
        let said = says("gauge_intervals").with("ttft", half * 1e3).with("tpot", tpot * 1e3);
        dim(out, style, "  ", &words(&said));
    }
    let said = says("gauge_under_way").with("running", s.running).with("per_chunk", s.per_chunk);
    line(out, style, "  ", &words(&said.with("cached", s.cached.filter(|c| *c > 0.0))));
}

fn counts(out: &mut String, m: &Measured, style: Style) {
    let c = &m.summary.counts;
    let said = says("gauge_counts").with("asked", c.asked).with("sent", c.sent).with("answered", c.answered);
    let said = said.with("input", c.input_tokens).with("output", c.output_tokens);
    line(out, style, "  counts: ", &words(&said));
    for (kind, n) in &c.faults {
        let example = c.examples.iter().find(|e| e.starts_with(kind.as_str())).map_or("", String::as_str);
        let _ = writeln!(
            out,
            "          {}",
            style.bad(&format!("{n} x {kind}{}", example.strip_prefix(kind.as_str()).unwrap_or_default()))
        );
    }
    let odd = [
        (c.stopped, says("gauge_stopped_requests")),
        (c.short, says("gauge_short_answers")),
        (c.garbled, says("gauge_garbled")),
        (c.answered - c.exact_inputs.min(c.answered), says("gauge_inexact")),
    ];
    let mut said: Vec<Remark> = odd.into_iter().filter(|(n, _)| *n > 0).map(|(n, said)| said.with("n", n)).collect();
    said.extend(match m.summary.ended {
        Ended::Complete => None,
        Ended::Stopped => Some(says("gauge_stopped")),
        Ended::Ceiling => Some(says("gauge_ceiling")),
        Ended::Gone => Some(says("gauge_gone")),
    });
    for said in said {
        line(out, style, "          ", &words(&said));
    }
    if let Some(own) = &m.counters {
        let pairs = [
            ("requests", own.requests, c.answered),
            ("tokens in", own.input_tokens, c.input_tokens),
            ("tokens out", own.output_tokens, c.output_tokens),
        ];
        let compared = pairs.into_iter().filter_map(|(what, theirs, ours)| {
            let theirs = theirs?;
            let equal = theirs == ours as f64;
            let said = says(if equal { "gauge_equal" } else { "gauge_unequal" }).with("what", what);
            Some(if equal { said } else { said.with("theirs", theirs).with("ours", ours) })
        });
        let said: Vec<Remark> = compared.collect();
        if !said.is_empty() {
            line(out, style, "  ", &words(&says("gauge_counters").with("said", said)));
        }
    }
}

/// The rungs of a ladder and where it ends.
pub fn ladder(server: &Server, steps: &[Step], held: Option<f64>, failed: Option<f64>, output: &Output) -> String {
    let style = output.style;
    let said = match (held, failed) {
        (Some(held), Some(failed)) => says("gauge_knee").with("held", held).with("failed", failed),
        (Some(held), None) => says("gauge_knee_above").with("held", held),
        (None, _) => says("gauge_knee_below"),
    };
    let mut out = head(&[said], held.is_some(), style);
    if output.detail == Detail::Verdict {
        return out;
    }
    let title = format!("{} at {}: rates to the knee", server.found.model, server.client.target);
    let _ = writeln!(out, "\n{}\n", style.bold(&title));
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
                style.good(&words(&says("gauge_holds")))
            } else {
                style.bad(&words(&says(if s.grows { "gauge_rung_grows" } else { "gauge_holds_not" })))
            }
        );
        if s.client.tainted {
            let said = says("gauge_rung_late").with("ms", s.client.lag_p99_s * 1e3);
            let _ = writeln!(out, "             {}", style.bad(&words(&said)));
        }
    }
    out
}
