//! A running server as text, and as a page for a browser: the same sentences, the curve it stands on, and what it did before.

use super::Shown;
use crate::gauge::beside::{Beside, Row, digits};
use crate::output::Output;
use rackmath::estimate::{Range, sweep};
use rackmath::figure::{Axis, Figure, Role, Series, Unit};
use rackmath::remark::{Remark, says};
use rackmath_measure::watch::{Alert, View};
use rackmath_report::reply::Detail;
use rackmath_report::words::words;
use rackmath_report::{Style, scene, svg};
use std::fmt::Write as _;

/// Intervals the page looks back.
pub const KEPT: usize = 240;

/// What the page remembers of an interval.
#[derive(Clone, Copy)]
pub struct Past {
    time: f64,
    output_tok_s: Option<f64>,
    tpot_ms: Option<f64>,
    waiting: Option<f64>,
}

impl Past {
    pub fn of(time: f64, view: &View) -> Self {
        Self { time, output_tok_s: view.output_tok_s, tpot_ms: view.tpot_ms, waiting: view.waiting_now }
    }
}

/// An alert is a remark in JSON.
fn alerted(alert: &Alert) -> Remark {
    serde_json::to_value(alert).and_then(serde_json::from_value).unwrap_or_default()
}

fn or(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), digits)
}

fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |x| format!("{:.1} %", x * 100.0))
}

/// What the counters say, in three sentences.
fn said(v: &View) -> [Remark; 3] {
    let state = says("watch_state").with("running", or(v.running)).with("waiting", or(v.waiting));
    let traffic = says("watch_traffic").with("rate", or(v.rate)).with("isl", or(v.isl)).with("osl", or(v.osl));
    let means =
        says("watch_means").with("ttft", or(v.ttft_ms)).with("queue", or(v.queue_ms)).with("tpot", or(v.tpot_ms));
    [
        state.with("kv", share(v.kv_used)).with("tokens", v.kv_tokens),
        traffic.with("input", or(v.input_tok_s)).with("output", or(v.output_tok_s)).with("hit", share(v.hit)),
        means
            .with("ttft_low", v.ttft_p50_ms.map(|r| r.0))
            .with("ttft_high", v.ttft_p50_ms.map(|r| r.1))
            .with("tpot_low", v.tpot_p50_ms.map(|r| r.0))
            .with("tpot_high", v.tpot_p50_ms.map(|r| r.1))
            .with("e2e", or(v.e2e_ms))
            .with("step", or(v.step_ms)),
    ]
}

/// What stands below the comparison: roofline, money, twice the load.
fn below(s: &Shown) -> Vec<Remark> {
    let roofline = s
        .of_limit
        .map(|(predicted, measured)| says("watch_roofline").with("predicted", predicted).with("measured", measured));
    let money = s
        .usd_per_hour
        .zip(s.tokens_per_usd)
        .map(|(hour, per)| says("watch_money").with("usd", hour).with("chips", s.chips).with("tokens", per));
    let doubled = s.doubled.as_ref().map(|d| {
        let said = says("watch_doubled").with("rate", d.rate).with("ttft", or(d.ttft_ms)).with("tpot", or(d.tpot_ms));
        said.with("output", or(d.output_tok_s)).with("problem", d.problem.clone())
    });
    [roofline, money, doubled].into_iter().flatten().collect()
}

fn beside(s: &Shown) -> Option<Remark> {
    let b = s.beside.as_ref()?;
    Some(says("watch_beside").with("model", &b.model).with("machine", &b.machine).with("engine", &b.engine))
}

fn compared(s: &Shown) -> impl Iterator<Item = &Row> {
    let rows = s.beside.iter().flat_map(|b| &b.rows);
    rows.filter(|r| r.measured.is_some() && r.predicted.is_some())
}

/// Where a figure should lie; one that the load decides has no interval.
fn between(p: Range) -> String {
    let ends = || format!("{} to {}", digits(p.low), digits(p.high));
    if p.low < p.high { ends() } else { words(&says("watch_set_by_load")) }
}

/// Whether it lies there. What the load decides is judged only where the server did not keep up.
fn judged(r: &Row) -> Option<bool> {
    r.inside.filter(|inside| !inside || r.predicted.is_some_and(|p| p.low < p.high))
}

/// What is slower than predicted, without its causes, which stand below.
fn slow(s: &Shown) -> Option<Remark> {
    let mut worst = s.beside.as_ref()?.blame.first().filter(|why| why.says == "gauge_more")?.clone();
    worst.with.remove("causes");
    Some(worst)
}

/// What the interval comes to: what is wrong, or that nothing is, and how sure that is.
fn verdict(s: &Shown) -> (Remark, bool) {
    if let Some(first) = s.view.alerts.first().filter(|alert| alert.grave()) {
        let more = Some(s.view.alerts.len() - 1).filter(|more| *more > 0);
        let said = says("watch_verdict_alert").with("first", alerted(first)).with("more", more);
        return (said.with("slow", slow(s)), false);
    }
    let blame = s.beside.as_ref().and_then(|b| b.blame.first());
    match blame {
        Some(why) if why.says == "gauge_impossible" => (says("watch_verdict_impossible").with("why", why), false),
        Some(most) if s.beside.as_ref().is_some_and(Beside::faster) => {
            (says("watch_verdict_faster").with("most", most), false)
        }
        Some(worst) => (says("watch_verdict_off").with("worst", worst), false),
        None if compared(s).next().is_some() => match s.view.alerts.first() {
            Some(first) => (says("watch_verdict_note").with("first", alerted(first)), true),
            None => (says("watch_verdict_good"), true),
        },
        None => (says("watch_verdict_alone").with("why", s.without.clone()), true),
    }
}

pub fn text(s: &Shown, output: &Output) -> String {
    let (v, style) = (&s.view, output.style);
    let (said_first, good) = verdict(s);
    let line = style.wrapped("", "", &words(&said_first));
    let line = line.trim_end();
    let mut out = format!("{}\n", if good { style.bold(line) } else { style.bad(line) });
    if output.detail == Detail::Verdict {
        return out;
    }
    let _ = writeln!(out, "\n{}", style.bold(&format!("{} over {} s", v.engine, digits(v.seconds))));
    for line in said(v) {
        out.push_str(&style.wrapped("  ", "    ", &words(&line)));
    }
    // The first stands in the verdict if something is wrong.
    for alert in v.alerts.iter().enumerate().filter(|(i, alert)| *i > 0 || !alert.grave()).map(|(_, alert)| alert) {
        let _ = writeln!(out, "  {} {}", style.bad("!"), words(&alerted(alert)));
    }
    if let Some(beside) = beside(s) {
        let _ = writeln!(out, "\n  {}", words(&beside));
        for r in compared(s) {
            let Some((m, p)) = r.measured.zip(r.predicted) else { continue };
            let verdict = match judged(r) {
                Some(true) => style.good(": inside"),
                Some(false) => style.bad(": outside"),
                None => String::new(),
            };
            let (m, p, between) = (digits(m), digits(p.value), between(p));
            let _ = writeln!(out, "    {:<9} {m:>10} {:<6} predicted {p:>10}, {between}{verdict}", r.name, r.unit);
        }
        for line in s.beside.iter().flat_map(|b| &b.blame) {
            out.push_str(&style.wrapped("    - ", "      ", &words(line)));
        }
        out.push('\n');
    }
    for line in below(s) {
        out.push_str(&style.wrapped("  ", "    ", &words(&line)));
    }
    curve(&mut out, s, style);
    if let Some(why) = &s.without {
        let _ = writeln!(out, "  {}", style.dim(&words(why)));
    }
    out
}

/// The predicted curve, and between which of its points the server stands.
fn curve(out: &mut String, s: &Shown, style: Style) {
    let Some(now) = s.view.output_tok_s.filter(|_| !s.curve.is_empty()) else { return };
    let here = now / s.chips as f64;
    let _ = writeln!(out, "  curve:  {}", style.dim("under way   tok/s a chip   TPOT ms   TTFT ms"));
    // The curve goes by what is under way; a server that does not tell that stands by its tokens.
    let before = |r: &sweep::Row| s.view.running.map_or(r.output_tok_s_per_chip < here, |n| r.concurrency < n);
    let at = s.curve.iter().position(|r| !before(r)).unwrap_or(s.curve.len());
    let (running, tpot, ttft) = (or(s.view.running), or(s.view.tpot_ms), or(s.view.ttft_ms));
    let line = format!("-> {running:>9}   {:>12}   {tpot:>7}   {ttft:>7}   now", digits(here));
    let now = format!("       {}\n", style.bold(&line));
    for (i, r) in s.curve.iter().enumerate() {
        if i == at {
            out.push_str(&now);
        }
        let _ = writeln!(
            out,
            "          {:>9}   {:>12}   {:>7}   {:>7}",
            digits(r.concurrency),
            digits(r.output_tok_s_per_chip),
            digits(r.tpot_ms),
            digits(r.ttft_ms)
        );
    }
    if at == s.curve.len() && s.view.running.is_some() {
        out.push_str(&now);
    } else if at == s.curve.len() {
        let above = words(&says("watch_above_curve").with("here", here));
        let _ = writeln!(out, "       {}", style.bold(&format!("-> {above}")));
    }
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
    h1{font-size:1.4rem}.bad{color:#a40000}.good{color:#0b6b0b}.dim{color:#666}table{border-collapse:collapse}\
    td,th{padding:.15rem .8rem .15rem 0;text-align:right}td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The same as a page without scripts that loads itself anew after every interval.
pub fn html(s: &Shown, past: &[Past], interval: f64) -> String {
    let v = &s.view;
    let title = escaped(&format!("{} over {} s", v.engine, digits(v.seconds)));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"{:.0}\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n",
        interval.max(1.0).ceil()
    );
    let mut line = |class: &str, text: &str| {
        let _ = writeln!(out, "<p class=\"{class}\">{}</p>", escaped(text));
    };
    for alert in &v.alerts {
        line("bad", &words(&alerted(alert)));
    }
    for said in said(v) {
        line("", &words(&said));
    }
    if let Some(beside) = beside(s) {
        line("", &words(&beside));
        out.push_str("<table><tr><th></th><th>measured</th><th>predicted</th><th>80 % interval</th><th></th></tr>\n");
        for r in compared(s) {
            let Some((m, p)) = r.measured.zip(r.predicted) else { continue };
            let (class, verdict) = match judged(r) {
                Some(true) => ("good", "inside"),
                Some(false) => ("bad", "outside"),
                None => ("", ""),
            };
            let _ = writeln!(
                out,
                "<tr><td>{} {}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"{class}\">{verdict}</td></tr>",
                escaped(r.name),
                escaped(r.unit),
                digits(m),
                digits(p.value),
                between(p)
            );
        }
        out.push_str("</table>\n");
    }
    let rest: Vec<&Remark> = s.beside.iter().flat_map(|b| &b.blame).collect();
    for said in rest.into_iter().cloned().chain(below(s)) {
        let _ = writeln!(out, "<p>{}</p>", escaped(&words(&said)));
    }
    if let Some(why) = &s.without {
        let _ = writeln!(out, "<p class=\"dim\">{}</p>", escaped(&words(why)));
    }
    if let Some(figure) = &s.figure {
        out.push_str(&svg::paint(&scene(figure)));
    }
    for figure in histories(past) {
        out.push_str(&svg::paint(&scene(&figure)));
    }
    out.push_str("</body></html>\n");
    out
}

/// What was seen before, a picture for each figure that was told at least twice.
fn histories(past: &[Past]) -> Vec<Figure> {
    let of = |name: &'static str, label: &str, unit: Unit, pick: fn(&Past) -> Option<f64>| {
        let points: Vec<(f64, f64)> = past.iter().filter_map(|p| Some((p.time, pick(p)?))).collect();
        (points.len() > 1).then(|| Figure {
            title: says(name),
            subtitle: Remark::from(""),
            x: Axis::linear("time", Unit::Seconds),
            y: Axis::linear(label, unit),
            series: vec![Series { name: says(name), role: Role::Choice(0), points }],
            marks: Vec::new(),
        })
    };
    let all = [
        of("watch_past_output", "output", Unit::TokensPerS, |p| p.output_tok_s),
        of("watch_past_tpot", "TPOT", Unit::Seconds, |p| p.tpot_ms.map(|t| t * 1e-3)),
        of("watch_past_waiting", "requests", Unit::Count, |p| p.waiting),
    ];
    all.into_iter().flatten().collect()
}
