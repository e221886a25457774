//! What may become of a plan, as text: a table of moves, the robust plan, the stages of load, what gives more.

use super::plan::{aim, change, deployed, show};
use super::prelude::*;
use rackmath::outlook::{Answer, Case, Most, Stage};
use rackmath::plan::Holds;

pub(super) fn outlook(out: &mut Page, a: &Answer) {
    out.title(format!("{}: how sure the plan is, and what comes next", a.model));
    aim(out, &a.workload, a.objective, &a.limits);
    out.verdict(words(&a.verdict));
    if let Some(plan) = &a.plan {
        out.wrapped("  plan    ", "          ", deployed(plan));
    }
    out.figures();
    moves(out, a);
    out.advice();
    robust(out, a);
    if let Some(end) = a.ends_by.as_ref().filter(|_| !a.stages.is_empty()) {
        let stages = a.stages.iter().map(stage).chain([format!("then {}", words(end))]);
        out.within(Kind::Working, |out| {
            out.section("the deployment as more requests are in flight, in one group", stages);
        });
    }
    if let Some(most) = &a.most {
        relief(out, most);
    }
    out.assumes(&a.assumptions);
}

fn moves(out: &mut Page, a: &Answer) {
    if a.inputs.is_empty() {
        return;
    }
    out.title(format!("uncertain inputs: change of the best {}, and today's deployment", a.objective));
    let best = |c: &Case| or(c.change, "nothing left", change);
    out.each(&a.inputs).columns(&[
        ("", &|i| words(&i.name)),
        ("at", &|i| words(&i.low.value)),
        ("best", &|i| best(&i.low)),
        ("today's", &|i| today(&i.low)),
        ("at", &|i| words(&i.high.value)),
        ("best", &|i| best(&i.high)),
        ("today's", &|i| today(&i.high)),
    ]);
    out.gap();
}

fn today(c: &Case) -> String {
    let behind = c.regret.filter(|r| *r >= 5e-4).map(|r| format!("{} % behind", significant(r * 100.0, 2)));
    match (c.kept, behind) {
        (Holds::AsIs, Some(behind)) => behind,
        (Holds::AsIs | Holds::Retuned, None) if c.regret.is_some() => "is still best".into(),
        (Holds::AsIs | Holds::Retuned, None) => "holds".into(),
        (Holds::Retuned, Some(behind)) => format!("retuned, {behind}"),
        (Holds::Scaled, behind) => {
            let many = c.replicas.map_or_else(|| "more replicas".into(), |n| format!("{n} replicas"));
            format!("needs {many}{}", behind.map_or_else(String::new, |b| format!(", {b}")))
        }
        (Holds::Breaks, _) => "does not hold".into(),
        (Holds::No, _) => "cannot run".into(),
    }
}

fn robust(out: &mut Page, a: &Answer) {
    let Some(r) = a.robust.as_ref().filter(|r| !r.same) else { return };
    out.title("to meet the limits at the bad ends of the intervals");
    let (plan, premium) = (deployed(&r.plan), change(r.premium));
    let (token, first) = (ms(r.plan.tpot_ms.value), ms(r.plan.ttft_ms.value));
    let hour = show(Measure::UsdPerHour, r.plan.usd_per_hour);
    out.paragraph("  ", format!("{plan}: {token} a token, first after {first}, {hour}; {premium} on the score"));
    out.gap();
}

fn stage(s: &Stage) -> String {
    let broken = only(!s.broken.is_empty(), format!("; breaks {}", joined(&s.broken, " and ")));
    let (load, rate, token) = (span(s.from, s.to, count), tok_s(s.tok_s_per_chip), ms(s.tpot_ms));
    format!("{load}: bound by {}, up to {rate} a chip at {token} a token{broken}", s.bound_by)
}

fn relief(out: &mut Page, most: &Most) {
    let times = or(most.times_now, "", |t| format!(", {} times what is asked", three(t)));
    out.title(format!("as traffic grows: full at {} requests per second{times}", three(most.requests_per_s)));
    out.paragraph("  ", format!("then with {}; twice the room in a limit gives", words(&most.deployment)));
    for r in &most.reliefs {
        let gain = match r.gain {
            gain if gain < 5e-4 => "nothing".into(),
            gain => format!("{} more", change(gain).trim_start_matches('+')),
        };
        out.line(format!("  {:<24} {gain}", r.limit));
    }
    out.gap();
}
