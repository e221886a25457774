//! A plan as text: what to deploy, what it costs, what came close, what each limit is worth, and what a change makes of it.

use super::estimate::{breakdown, ends, evidence, percentiles, pretended, short};
use super::prelude::*;
use rackmath::estimate::Range;
use rackmath::plan::{Answer, Best, Holds, Plan, Point, Relaxation, Shadow, Simulated};
use rackmath::remark;
use rackmath::whatif::{self, Difference};

pub(super) fn plan(out: &mut Page, a: &Answer) {
    let between = if a.systems.len() > 1 && !a.parts.is_empty() { " and " } else { " or " };
    out.title(format!("{} on {}", a.model, a.systems.join(between)));
    aim(out, &a.workload, a.objective, &a.limits);
    out.working();
    let (all, fit) = (count(a.configurations as f64), a.layouts_that_fit);
    out.dim(format!("{all} configurations of {fit} deployments that fit, of {} allowed", a.layouts));
    out.gap();
    out.figures();
    match a.plans.first() {
        Some(_) if !a.parts.is_empty() => fleet(out, a),
        Some(best) => recommended(out, a, best),
        None => infeasible(out, a),
    }
    if let Some(s) = &a.simulated {
        out.working();
        simulated(out, s);
    }
    out.working();
    let others = if a.parts.is_empty() { 1 } else { a.plans.len() };
    out.section("runner-ups", a.plans.iter().skip(others).map(runner_up));
    if !a.shadow_prices.is_empty() {
        out.title("a tenth tighter, a tenth looser");
        a.shadow_prices.iter().for_each(|s| out.line(shadow(s)));
        out.gap();
    }
    if a.frontier.len() > 1 {
        out.pictures([&a.figure]);
        out.title("frontier, fastest user first");
        // A dozen points show its shape; the file has all.
        points(out, a.frontier.iter().step_by(a.frontier.len().div_ceil(12).max(1)));
        out.gap();
    }
    out.assumes(&a.assumptions);
}

/// What is asked for, and of what the best.
pub(super) fn aim(out: &mut Page, workload: &Remark, objective: Best, limits: &[Remark]) {
    let limits = if limits.is_empty() { String::new() } else { format!("; {}", joined(limits, ", ")) };
    out.paragraph("", format!("{}; best {objective}{limits}", words(workload)));
}

pub(super) fn points<'a>(out: &mut Page, all: impl Iterator<Item = &'a Point>) {
    for p in all {
        let ([user, chip], first) = ([p.tok_s_per_user, p.tok_s_per_chip].map(tok_s), ms(p.ttft_ms));
        let cost = mtok(p.usd_per_mtok);
        out.item(format!("{user} a user, {chip} a chip, {cost}, first token {first}: {}", words(&p.deployment)));
    }
}

/// A share near one, as availabilities are written.
fn up(share: f64) -> String {
    format!("{:.5} %", share * 100.0)
}

fn line(out: &mut Page, label: &str, value: &str, more: &str) {
    let text = format!("  {label:<22} {value:<16} {}", out.style.dim(more));
    out.line(text.trim_end());
}

fn range(out: &mut Page, label: &str, r: Range, show: impl Fn(f64) -> String) {
    line(out, label, &show(r.value), &ends(r, &show));
}

/// The parts of a fleet, each with its share and its deployment.
fn fleet(out: &mut Page, a: &Answer) {
    out.verdict(words(&a.verdict));
    let rows = a.parts.iter().map(|part| {
        let plan = part.plan.and_then(|at| a.plans.get(at));
        let of = |show: &dyn Fn(&Plan) -> String| or_dash(plan, show);
        [
            part.machine.clone(),
            percent(part.share),
            format!("{} of {}", three(part.rate_per_s), three(part.most_per_s)),
            of(&|p| format!("{} x ({})", p.replicas, words(&p.deployment))),
            part.chips.to_string(),
            of(&|p| mtok(p.usd_per_mtok.value)),
            hourly(part.usd_per_hour),
            of(&|p| ms(p.ttft_ms.value)),
            of(&|p| ms(p.tpot_ms.value)),
        ]
    });
    let heads = ["part", "share", "requests/s", "deployment", "chips", "cost", "dollars", "first token", "a token"];
    out.table(&heads, rows);
    for part in &a.parts {
        out.item(format!("{}: {}", part.machine, words(&part.why)));
    }
    out.gap();
    for plan in &a.plans {
        out.within(Kind::Advice, |out| out.commands(&plan.launch));
    }
}

fn recommended(out: &mut Page, a: &Answer, p: &Plan) {
    // What to deploy and what one gets; how it was found to hold stands with its times.
    let (said, held) = parted(&a.verdict);
    let head = format!("deploy {} on {} with {}", words(&p.deployment), p.system, p.engine);
    out.verdict(format!("{head}: {}", words(&said)));
    pretended(out, p.pretended.as_ref());
    a.part_of_host.iter().for_each(|said| out.further(said));
    a.gaps.iter().for_each(|gap| out.caution(format!("{}.", words(gap))));
    let spare = p.spare.as_ref().map_or(0, |s| s.replicas);
    let used = (p.replicas + spare) * p.chips_per_replica;
    let whole = only(p.chips > used, format!("of {} in whole hosts, ", p.chips));
    let number = if spare > 0 { format!("({} + {spare} spare)", p.replicas) } else { p.replicas.to_string() };
    let replicas = format!("{number} x {} = {used} chip{}", p.chips_per_replica, plural(used));
    line(out, "replicas", &replicas, &format!("{whole}{} scale-up domain{}", p.domains, plural(p.domains)));
    if let Some(s) = &p.spare {
        let each = format!("a replica {}, without spares {}", up(s.up), up(s.available_without));
        line(out, "all needed are up", &up(s.available), &each);
    }
    let most = only(p.sequences > p.concurrency_per_group, format!(", at most {}", count(p.sequences)));
    let each = count(p.concurrency_per_group.round().max(1.0));
    let load = format!("{each} in a group{most}; replicas {} busy", percent(p.busy.min(1.0)));
    line(out, "requests in flight", &count(p.concurrency.round().max(1.0)), &load);
    range(out, "time per output token", p.tpot_ms, ms);
    range(out, "time to first token", p.ttft_ms, ms);
    range(out, "throughput per user", p.tok_s_per_user, tok_s);
    let each = match p.chips {
        1 => String::new(),
        n => format!("{} for each of {n} chips paid", tok_s(p.throughput_tok_s / n as f64)),
    };
    line(out, "throughput", &tok_s(p.throughput_tok_s), &each);
    range(out, "cost", p.usd_per_mtok, mtok);
    let hosts = a.assumptions.iter().any(|said| said.says == "whole_hosts");
    let paid = only(hosts, "; hosts paid whole (--no-whole-hosts)");
    line(out, "", &hourly(p.usd_per_hour), &format!("all dollars on output tokens{paid}"));
    p.percentiles.iter().for_each(|p| percentiles(out, p));
    mean_traffic(out, p);
    for how in &held {
        out.paragraph("  ", format!("{}.", words(how)));
    }
    out.working();
    range(out, "whole request", p.e2e_ms, ms);
    range(out, "a chip when full", p.tok_s_per_chip, tok_s);
    if p.power_kw > 0.0 {
        let per = format!("{} J per output token", three(p.joules_per_token));
        line(out, "power", &watts(p.power_kw * 1e3), &per);
    }
    if let Some(b) = &p.boards {
        let known = if b.measured { " at this load" } else { "; generation not measured" };
        let per = format!("{} J per output token, boards alone{known}", three(b.joules_per_token));
        line(out, "drawn by a chip", &watts(b.chip_w), &per);
    }
    let free = format!("{} of the cache memory free", percent(p.headroom));
    line(out, "formats", &format!("{}, KV {}", p.weights, p.kv), &free);
    if let Some(o) = &p.offload {
        let what = format!("{} of each prompt: {} from {}", percent(o.hit), bytes(o.bytes_per_prompt), o.tier);
        line(out, "KV offload", &ms(o.load_ms), &what);
    }
    evidence(out, p.evidence.as_ref());
    out.gap();
    out.advice();
    out.paragraph("  ", format!("Steps are bound by {}; {}.", p.bound_by, words(&p.why)));
    out.commands(&p.launch);
    out.working();
    handover(out, p);
    out.gap();
    if let Some(step) = &p.step {
        breakdown(out, step);
        out.gap();
    }
}

/// A verdict without how it was found to hold, and that.
fn parted(verdict: &Remark) -> (Remark, Vec<Remark>) {
    let mut said = verdict.clone();
    let held = ["simulated", "held"].iter().filter_map(|name| match said.with.remove(*name) {
        Some(remark::Part::Remark(how)) => Some(*how),
        _ => None,
    });
    let held = held.collect();
    (said, held)
}

/// The best few under their traffic.
fn simulated(out: &mut Page, s: &Simulated) {
    out.title("simulated under its traffic, request by request");
    for t in &s.trials {
        out.item(format!("{}: {}", words(&t.deployment), words(&t.verdict)));
    }
    let measured = s.trials.iter().filter_map(|t| Some((t, t.measured.as_ref()?)));
    let rows = measured.flat_map(|(t, m)| {
        m.times.iter().enumerate().map(|(at, x)| {
            let (whose, limit) = (only(at == 0, words(&t.deployment)), or_dash(x.limit_ms, ms));
            let times = [x.mean_ms, x.p50_ms, x.p90_ms, x.p99_ms].map(ms);
            [whose, short(x.metric).to_owned()].into_iter().chain(times).chain([limit])
        })
    });
    out.table(&["", "", "mean", "p50", "p90", "p99", "limit"], rows);
    out.gap();
    out.within(Kind::Assumption, |out| {
        out.list("simulations assume", &s.assumptions);
        out.gap();
    });
}

/// Routers and load tests, and what to know before using any of it.
fn handover(out: &mut Page, p: &Plan) {
    let Some(h) = &p.handover else { return };
    for c in h.commands.iter().filter(|c| ["router", "load test", "replay"].contains(&c.role.as_str())) {
        out.wrapped("  $ ", "      ", format!("{}: {}", c.role, c.line));
    }
    for note in &h.notes {
        out.item(note);
    }
}

/// What the mean needs, beside the peak.
fn mean_traffic(out: &mut Page, p: &Plan) {
    let Some(m) = &p.mean_traffic else { return };
    let chips = paid(m.replicas, p.chips_per_replica, m.chips);
    let rates = format!("for {} instead of {} requests per second", three(m.rate_per_s), three(m.peak_rate_per_s));
    line(out, "at mean traffic", &chips, &rates);
    let more = format!("{}, {} scale-up domain{}", watts(m.power_kw * 1e3), m.domains, plural(m.domains));
    line(out, "", &hourly(m.usd_per_hour), &more);
    line(out, "", &mtok(m.usd_per_mtok_always_on), "of output when the peak's replicas always run");
}

/// Replicas and their chips, and what is paid where spares or whole hosts come on top.
fn paid(replicas: u64, each: u64, chips: u64) -> String {
    if replicas * each == chips {
        format!("{replicas} x {each} = {chips} chip{}", plural(chips))
    } else {
        format!("{replicas} x {each}, {chips} chips paid")
    }
}

fn infeasible(out: &mut Page, a: &Answer) {
    out.judged(false, words(&a.verdict));
    out.advice();
    relaxations(out, &a.relaxations);
    out.gap();
    out.list("because", &a.because);
}

fn relaxations(out: &mut Page, all: &[Relaxation]) {
    for r in all {
        out.item(format!("{}, with {}", relaxed(r), words(&r.by)));
    }
}

pub(super) fn relaxed(r: &Relaxation) -> String {
    format!("{}: {} instead of {}", r.limit, words(&r.needed), words(&r.asked))
}

fn runner_up(p: &Plan) -> String {
    let ([token, first], cost) = ([p.tpot_ms.value, p.ttft_ms.value].map(ms), mtok(p.usd_per_mtok.value));
    let size = format!("{} ({})", words(&p.deployment), paid(p.replicas, p.chips_per_replica, p.chips));
    format!("{size}: {cost}, {token} a token, first after {first}; {}", words(&p.why))
}

fn shadow(s: &Shadow) -> String {
    let change = |c: f64| match c {
        c if c.abs() < 5e-4 => "no change".to_owned(),
        c => format!("{} % {}", three(c.abs() * 100.0), if c > 0.0 { "worse" } else { "better" }),
    };
    let [tighter, looser] = [s.tighter, s.looser].map(|c| or(c, "nothing left", change));
    format!("  {:<44} {tighter:<16} {looser}", words(&s.limit))
}

/// A number of a plan with its unit.
pub(super) fn show(measure: Measure, value: f64) -> String {
    match measure {
        Measure::UsdPerMtok => mtok(value),
        Measure::TokSPerChip | Measure::TokSPerUser | Measure::ThroughputTokS => tok_s(value),
        Measure::TpotMs | Measure::TtftMs | Measure::E2eMs => ms(value),
        Measure::Chips | Measure::Replicas | Measure::Concurrency => count(value.round()),
        Measure::UsdPerHour => hourly(value),
        Measure::PowerKw => watts(value * 1e3),
        Measure::JoulesPerToken => format!("{} J", three(value)),
    }
}

/// A change as a person says it.
pub(super) fn change(share: f64) -> String {
    match share {
        _ if share.abs() * 100.0 < 0.05 => "same".into(),
        // From a tripling on, factors read better.
        _ if share >= 2.0 => format!("x{}", three(share + 1.0)),
        _ => format!("{}{} %", if share > 0.0 { '+' } else { '-' }, significant(share.abs() * 100.0, 2)),
    }
}

pub(super) fn deployed(p: &Plan) -> String {
    let chips = format!("{} chip{} of {}", p.chips, plural(p.chips), p.system);
    format!("{} x ({}), {chips}, {}", p.replicas, words(&p.deployment), p.engine)
}

/// `rackmath whatif`: before, kept, best, and whether the deployment still holds.
pub(super) fn whatif(out: &mut Page, a: &whatif::Answer) {
    out.title(format!("{}: what if", a.model));
    if a.changes.is_empty() {
        out.line("  nothing is changed");
    }
    for c in &a.changes {
        out.line(format!("  {:<16} {} -> {}", c.what, c.from, out.style.bold(&c.to)));
    }
    aim(out, &a.workload_after, a.objective, &a.limits);
    out.judged(matches!(a.kept.holds, Holds::AsIs), words(&a.verdict));
    out.figures();
    let plans = [("before", &a.before), ("kept", &a.kept.plan), ("best", &a.after)];
    for (who, plan) in plans {
        out.wrapped(&format!("  {who:<8}"), "          ", or(plan.as_ref(), "none", deployed));
    }
    out.gap();
    let cell = |d: &Difference, value: Option<f64>, moved: Option<f64>| {
        let moved = or(moved, "", |c| format!(" ({})", change(c)));
        or_dash(value, |v| show(d.measure, v) + &moved)
    };
    let bound = plans.map(|(_, p)| or_dash(p.as_ref(), |p| p.bound_by.clone()));
    let numbers = a.differences.iter().map(|d| {
        let after = [cell(d, d.before, None), cell(d, d.kept, d.kept_change), cell(d, d.after, d.after_change)];
        (d.measure.name(), after)
    });
    let rows = numbers.chain([("steps bound by", bound)]);
    out.table(
        &["", "before", "kept", "best"],
        rows.map(|(name, [before, kept, best])| [name.into(), before, kept, best]),
    );
    out.advice();
    relaxations(out, &a.relaxations);
    if let Some(after) = a.after.as_ref().filter(|_| !a.same_deployment) {
        out.within(Kind::Working, |out| out.commands(&after.launch));
    }
    out.assumes(&a.assumptions);
}
