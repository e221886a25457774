//! A plan as text: what to deploy, what it costs, what came close, what each limit is worth.

use super::estimate::breakdown;
use super::{list, percent};
use crate::style::Style;
use crate::terminal;
use rackmath::estimate::Range;
use rackmath::figure::count;
use rackmath::plan::{Answer, Plan, Shadow};
use rackmath_units::{Bytes, DollarRate, DollarsPerToken, Seconds, TokenRate, Watts, significant};
use std::fmt::Write as _;

/// `rackmath plan`
pub fn plan(a: &Answer, style: Style) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", style.bold(&format!("{} on {}", a.model, a.systems.join(" or "))));
    out.push_str(&style.wrapped("", "", &format!("{}; best {}; {}", a.workload, a.objective, a.limits.join(", "))));
    let searched = format!(
        "{} configurations of {} deployments that fit, of {} allowed",
        count(a.configurations as f64),
        a.layouts_that_fit,
        a.layouts
    );
    let _ = writeln!(out, "{}\n", style.dim(&searched));
    match a.plans.first() {
        Some(best) => recommended(&mut out, a, best, style),
        None => infeasible(&mut out, a, style),
    }
    if a.plans.len() > 1 {
        runner_ups(&mut out, a, style);
    }
    shadows(&mut out, &a.shadow_prices, style);
    if a.frontier.len() > 1 {
        out.push_str(&terminal::draw(&a.figure, style));
        frontier(&mut out, a, style);
    }
    list(&mut out, style, "assumes", &a.assumptions);
    out
}

fn ms(x: f64) -> String {
    Seconds::ms(x).to_string()
}

fn rate(x: f64) -> String {
    TokenRate::per_s(x).to_string()
}

fn usd(x: f64) -> String {
    DollarsPerToken::per_mtok(x).to_string()
}

fn line(out: &mut String, style: Style, label: &str, value: &str, more: &str) {
    let text = format!("  {label:<22} {value:<16} {}", style.dim(more));
    let _ = writeln!(out, "{}", text.trim_end());
}

fn range(out: &mut String, style: Style, label: &str, r: Range, show: impl Fn(f64) -> String) {
    let more = if r.low < r.high { format!("{} to {}", show(r.low), show(r.high)) } else { String::new() };
    line(out, style, label, &show(r.value), &more);
}

fn recommended(out: &mut String, a: &Answer, p: &Plan, style: Style) {
    let head = format!("deploy {} on {} with {}", p.deployment, p.system, p.engine);
    out.push_str(&style.wrapped("", "  ", &style.bold(&head)));
    out.push_str(&style.wrapped("  ", "  ", &format!("{}.", a.verdict)));
    let replicas = format!("{} x {} = {} chips", p.replicas, p.chips_per_replica, p.chips);
    line(out, style, "replicas", &replicas, &format!("{} scale-up domains", p.domains));
    let load = format!("{} in a group; replicas {} busy", count(p.concurrency_per_group), percent(p.busy.min(1.0)));
    line(out, style, "requests in flight", &count(p.concurrency.round()), &load);
    range(out, style, "time per output token", p.tpot_ms, ms);
    range(out, style, "time to first token", p.ttft_ms, ms);
    range(out, style, "whole request", p.e2e_ms, ms);
    by_length(out, p);
    range(out, style, "throughput per user", p.tok_s_per_user, rate);
    range(out, style, "throughput per chip", p.tok_s_per_chip, rate);
    line(out, style, "throughput", &rate(p.throughput_tok_s), "");
    range(out, style, "cost", p.usd_per_mtok, usd);
    let hourly = DollarRate::checked(p.usd_per_hour / 3600.0).map_or_else(String::new, |d| d.to_string());
    line(out, style, "", &hourly, "all dollars on output tokens");
    if p.power_kw > 0.0 {
        let per = format!("{} J per output token", significant(p.joules_per_token, 3));
        line(out, style, "power", &Watts::w(p.power_kw * 1e3).to_string(), &per);
    }
    mean_traffic(out, style, p);
    let free = format!("{} of the cache memory free", percent(p.headroom));
    line(out, style, "formats", &format!("{}, KV {}", p.weights, p.kv), &free);
    if let Some(o) = &p.offload {
        let what = format!("{} of each prompt: {} from {}", percent(o.hit), Bytes::b(o.bytes_per_prompt), o.tier);
        line(out, style, "KV offload", &ms(o.load_ms), &what);
    }
    out.push_str(&style.wrapped("  ", "  ", &format!("Steps are bound by {}; {}.", p.bound_by, p.why)));
    for command in &p.launch {
        out.push_str(&style.wrapped("  $ ", "      ", command));
    }
    handover(out, style, p);
    out.push('\n');
    if let Some(step) = &p.step {
        breakdown(out, step, style);
        out.push('\n');
    }
}

/// Routers and load tests, and what to know before using any of it.
fn handover(out: &mut String, style: Style, p: &Plan) {
    let Some(h) = &p.handover else { return };
    for c in h.commands.iter().filter(|c| c.role == "router" || c.role == "load test" || c.role == "replay") {
        out.push_str(&style.wrapped("  $ ", "      ", &format!("{}: {}", c.role, c.line)));
    }
    for note in &h.notes {
        out.push_str(&style.wrapped("  - ", "    ", note));
    }
}

/// How short and long requests fare.
fn by_length(out: &mut String, p: &Plan) {
    let Some(l) = &p.by_length else { return };
    let row = |all: &[f64]| {
        let one = |(percent, t): (&f64, &f64)| format!("p{} {}", count(*percent), ms(*t));
        l.percent.iter().zip(all).map(one).collect::<Vec<_>>().join("  ")
    };
    let _ = writeln!(out, "  {:<22} {}", "first token by length", row(&l.ttft_ms));
    let _ = writeln!(out, "  {:<22} {}", "request by length", row(&l.e2e_ms));
}

/// What the mean needs, beside the peak.
fn mean_traffic(out: &mut String, style: Style, p: &Plan) {
    let Some(m) = &p.mean_traffic else { return };
    let chips = format!("{} x {} = {} chips", m.replicas, p.chips_per_replica, m.chips);
    let hourly = DollarRate::checked(m.usd_per_hour / 3600.0).map_or_else(String::new, |d| d.to_string());
    let rates = format!(
        "for {} instead of {} requests per second",
        significant(m.rate_per_s, 3),
        significant(m.peak_rate_per_s, 3)
    );
    line(out, style, "at mean traffic", &chips, &rates);
    let more = format!("{}, {} scale-up domains", Watts::w(m.power_kw * 1e3), m.domains);
    line(out, style, "", &hourly, &more);
    line(out, style, "", &usd(m.usd_per_mtok_always_on), "of output when the peak's replicas always run");
}

fn infeasible(out: &mut String, a: &Answer, style: Style) {
    out.push_str(&style.wrapped("", "", &style.bad(&a.verdict)));
    for r in &a.relaxations {
        let text = format!("{}: {} instead of {}, with {}", r.limit, r.needed, r.asked, r.by);
        out.push_str(&style.wrapped("  - ", "    ", &text));
    }
    out.push('\n');
    list(out, style, "because", &a.because);
    if !a.because.is_empty() {
        out.push('\n');
    }
}

fn runner_ups(out: &mut String, a: &Answer, style: Style) {
    let _ = writeln!(out, "{}", style.bold("runner-ups"));
    for p in &a.plans[1..] {
        let text = format!(
            "{} ({} x {} chips): {}, {} a token, first after {}; {}",
            p.deployment,
            p.replicas,
            p.chips_per_replica,
            usd(p.usd_per_mtok.value),
            ms(p.tpot_ms.value),
            ms(p.ttft_ms.value),
            p.why
        );
        out.push_str(&style.wrapped("  - ", "    ", &text));
    }
    out.push('\n');
}

fn shadows(out: &mut String, all: &[Shadow], style: Style) {
    if all.is_empty() {
        return;
    }
    let change = |c: Option<f64>| match c {
        None => "nothing left".to_owned(),
        Some(c) if c.abs() < 5e-4 => "no change".to_owned(),
        Some(c) => format!("{} % {}", significant(c.abs() * 100.0, 3), if c > 0.0 { "worse" } else { "better" }),
    };
    let _ = writeln!(out, "{}", style.bold("a tenth tighter, a tenth looser"));
    for s in all {
        let _ = writeln!(out, "  {:<44} {:<16} {}", s.limit, change(s.tighter), change(s.looser));
    }
    out.push('\n');
}

fn frontier(out: &mut String, a: &Answer, style: Style) {
    let _ = writeln!(out, "{}", style.bold("frontier, fastest user first"));
    // A dozen points show its shape; the file has all.
    let step = a.frontier.len().div_ceil(12).max(1);
    for p in a.frontier.iter().step_by(step) {
        let text = format!(
            "{} a user, {} a chip, {}, first token {}: {}",
            rate(p.tok_s_per_user),
            rate(p.tok_s_per_chip),
            usd(p.usd_per_mtok),
            ms(p.ttft_ms),
            p.deployment
        );
        out.push_str(&style.wrapped("  - ", "    ", &text));
    }
    out.push('\n');
}
