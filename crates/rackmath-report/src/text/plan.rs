//! A plan as text: what to deploy, what it costs, what came close, what each limit is worth.

use super::estimate::breakdown;
use super::{Page, bytes, ms, mtok, percent, three, tok_s, watts};
use crate::style::Style;
use rackmath::estimate::Range;
use rackmath::figure::count;
use rackmath::plan::{Answer, Plan, Shadow};
use rackmath_units::DollarRate;

/// `rackmath plan`
pub fn plan(a: &Answer, style: Style) -> String {
    let mut out = Page::new(style);
    out.title(format!("{} on {}", a.model, a.systems.join(" or ")));
    out.wrapped("", "", &format!("{}; best {}; {}", a.workload, a.objective, a.limits.join(", ")));
    let searched = format!(
        "{} configurations of {} deployments that fit, of {} allowed",
        count(a.configurations as f64),
        a.layouts_that_fit,
        a.layouts
    );
    out.line(format!("{}\n", style.dim(&searched)));
    match a.plans.first() {
        Some(best) => recommended(&mut out, a, best),
        None => infeasible(&mut out, a),
    }
    if a.plans.len() > 1 {
        runner_ups(&mut out, a);
    }
    shadows(&mut out, &a.shadow_prices);
    if a.frontier.len() > 1 {
        out.draw(&a.figure);
        frontier(&mut out, a);
    }
    out.list("assumes", &a.assumptions);
    out.text()
}

fn line(out: &mut Page, label: &str, value: &str, more: &str) {
    let text = format!("  {label:<22} {value:<16} {}", out.style.dim(more));
    out.line(text.trim_end());
}

fn range(out: &mut Page, label: &str, r: Range, show: impl Fn(f64) -> String) {
    let more = if r.low < r.high { format!("{} to {}", show(r.low), show(r.high)) } else { String::new() };
    line(out, label, &show(r.value), &more);
}

fn recommended(out: &mut Page, a: &Answer, p: &Plan) {
    let head = format!("deploy {} on {} with {}", p.deployment, p.system, p.engine);
    out.wrapped("", "  ", &out.style.bold(&head));
    out.wrapped("  ", "  ", &format!("{}.", a.verdict));
    let replicas = format!("{} x {} = {} chips", p.replicas, p.chips_per_replica, p.chips);
    line(out, "replicas", &replicas, &format!("{} scale-up domains", p.domains));
    let load = format!("{} in a group; replicas {} busy", count(p.concurrency_per_group), percent(p.busy.min(1.0)));
    line(out, "requests in flight", &count(p.concurrency.round()), &load);
    range(out, "time per output token", p.tpot_ms, ms);
    range(out, "time to first token", p.ttft_ms, ms);
    range(out, "whole request", p.e2e_ms, ms);
    by_length(out, p);
    range(out, "throughput per user", p.tok_s_per_user, tok_s);
    range(out, "throughput per chip", p.tok_s_per_chip, tok_s);
    line(out, "throughput", &tok_s(p.throughput_tok_s), "");
    range(out, "cost", p.usd_per_mtok, mtok);
    let hourly = DollarRate::checked(p.usd_per_hour / 3600.0).map_or_else(String::new, |d| d.to_string());
    line(out, "", &hourly, "all dollars on output tokens");
    if p.power_kw > 0.0 {
        let per = format!("{} J per output token", three(p.joules_per_token));
        line(out, "power", &watts(p.power_kw * 1e3), &per);
    }
    mean_traffic(out, p);
    let free = format!("{} of the cache memory free", percent(p.headroom));
    line(out, "formats", &format!("{}, KV {}", p.weights, p.kv), &free);
    if let Some(o) = &p.offload {
        let what = format!("{} of each prompt: {} from {}", percent(o.hit), bytes(o.bytes_per_prompt), o.tier);
        line(out, "KV offload", &ms(o.load_ms), &what);
    }
    out.wrapped("  ", "  ", &format!("Steps are bound by {}; {}.", p.bound_by, p.why));
    for command in &p.launch {
        out.wrapped("  $ ", "      ", command);
    }
    handover(out, p);
    out.gap();
    if let Some(step) = &p.step {
        breakdown(out, step);
        out.gap();
    }
}

/// Routers and load tests, and what to know before using any of it.
fn handover(out: &mut Page, p: &Plan) {
    let Some(h) = &p.handover else { return };
    for c in h.commands.iter().filter(|c| c.role == "router" || c.role == "load test" || c.role == "replay") {
        out.wrapped("  $ ", "      ", &format!("{}: {}", c.role, c.line));
    }
    for note in &h.notes {
        out.item(note);
    }
}

/// How short and long requests fare.
fn by_length(out: &mut Page, p: &Plan) {
    let Some(l) = &p.by_length else { return };
    let row = |all: &[f64]| {
        let one = |(percent, t): (&f64, &f64)| format!("p{} {}", count(*percent), ms(*t));
        l.percent.iter().zip(all).map(one).collect::<Vec<_>>().join("  ")
    };
    out.row("first token by length", row(&l.ttft_ms));
    out.row("request by length", row(&l.e2e_ms));
}

/// What the mean needs, beside the peak.
fn mean_traffic(out: &mut Page, p: &Plan) {
    let Some(m) = &p.mean_traffic else { return };
    let chips = format!("{} x {} = {} chips", m.replicas, p.chips_per_replica, m.chips);
    let hourly = DollarRate::checked(m.usd_per_hour / 3600.0).map_or_else(String::new, |d| d.to_string());
    let rates = format!("for {} instead of {} requests per second", three(m.rate_per_s), three(m.peak_rate_per_s));
    line(out, "at mean traffic", &chips, &rates);
    let more = format!("{}, {} scale-up domains", watts(m.power_kw * 1e3), m.domains);
    line(out, "", &hourly, &more);
    line(out, "", &mtok(m.usd_per_mtok_always_on), "of output when the peak's replicas always run");
}

fn infeasible(out: &mut Page, a: &Answer) {
    out.wrapped("", "", &out.style.bad(&a.verdict));
    for r in &a.relaxations {
        out.item(format!("{}: {} instead of {}, with {}", r.limit, r.needed, r.asked, r.by));
    }
    out.gap();
    out.list("because", &a.because);
    if !a.because.is_empty() {
        out.gap();
    }
}

fn runner_ups(out: &mut Page, a: &Answer) {
    out.title("runner-ups");
    for p in &a.plans[1..] {
        let text = format!(
            "{} ({} x {} chips): {}, {} a token, first after {}; {}",
            p.deployment,
            p.replicas,
            p.chips_per_replica,
            mtok(p.usd_per_mtok.value),
            ms(p.tpot_ms.value),
            ms(p.ttft_ms.value),
            p.why
        );
        out.item(&text);
    }
    out.gap();
}

fn shadows(out: &mut Page, all: &[Shadow]) {
    if all.is_empty() {
        return;
    }
    let change = |c: Option<f64>| match c {
        None => "nothing left".to_owned(),
        Some(c) if c.abs() < 5e-4 => "no change".to_owned(),
        Some(c) => format!("{} % {}", three(c.abs() * 100.0), if c > 0.0 { "worse" } else { "better" }),
    };
    out.title("a tenth tighter, a tenth looser");
    for s in all {
        out.line(format!("  {:<44} {:<16} {}", s.limit, change(s.tighter), change(s.looser)));
    }
    out.gap();
}

fn frontier(out: &mut Page, a: &Answer) {
    out.title("frontier, fastest user first");
    // A dozen points show its shape; the file has all.
    let step = a.frontier.len().div_ceil(12).max(1);
    for p in a.frontier.iter().step_by(step) {
        out.item(format!(
            "{} a user, {} a chip, {}, first token {}: {}",
            tok_s(p.tok_s_per_user),
            tok_s(p.tok_s_per_chip),
            mtok(p.usd_per_mtok),
            ms(p.ttft_ms),
            p.deployment
        ));
    }
    out.gap();
}
