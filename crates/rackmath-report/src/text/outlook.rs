//! What may become of a plan, as text: a table of moves, the robust plan, the stages of load, what gives more.

use super::sides::{change, deployed, show};
use super::{Page, ms, three, tok_s};
use crate::style::Style;
use rackmath::figure::count;
use rackmath::outlook::{Answer, Case, Most};
use rackmath::plan::Holds;
use rackmath::sides::Measure;
use rackmath_units::significant;

/// `rackmath outlook`
pub fn outlook(a: &Answer, style: Style) -> String {
    let mut out = Page::new(style);
    out.title(format!("{}: how sure the plan is, and what comes next", a.model));
    out.wrapped("", "", &format!("{}; best {}; {}", a.workload, a.objective, a.limits.join(", ")));
    out.gap();
    out.wrapped("", "", &style.bold(&format!("{}.", a.verdict)));
    if let Some(plan) = &a.plan {
        out.wrapped("  plan    ", "          ", &deployed(plan));
    }
    out.gap();
    moves(&mut out, a);
    robust(&mut out, a);
    stages(&mut out, a);
    if let Some(most) = &a.most {
        relief(&mut out, most);
    }
    out.list("assumes", &a.assumptions);
    out.text()
}

fn moves(out: &mut Page, a: &Answer) {
    if a.inputs.is_empty() {
        return;
    }
    out.title(format!("uncertain inputs: change of the best {}, and today's deployment", a.objective));
    let mut table = out.style.table(&["", "at", "best", "today's", "at", "best", "today's"]);
    let best = |c: &Case| c.change.map_or_else(|| "nothing left".into(), change);
    for i in &a.inputs {
        let (l, h) = (&i.low, &i.high);
        table.add_row([i.name.clone(), l.value.clone(), best(l), today(l), h.value.clone(), best(h), today(h)]);
    }
    out.finish(&table);
    out.gap();
}

fn today(c: &Case) -> String {
    match (c.kept, c.regret) {
        (Holds::AsIs | Holds::Retuned, Some(r)) if r < 5e-4 => "is still best".into(),
        (Holds::AsIs, Some(r)) => format!("{} % behind", significant(r * 100.0, 2)),
        (Holds::Retuned, Some(r)) => format!("retuned, {} % behind", significant(r * 100.0, 2)),
        (Holds::AsIs | Holds::Retuned, None) => "holds".into(),
        (Holds::Breaks, _) => "breaks a limit".into(),
        (Holds::No, _) => "cannot run".into(),
    }
}

fn robust(out: &mut Page, a: &Answer) {
    let Some(r) = a.robust.as_ref().filter(|r| !r.same) else { return };
    out.title("to meet the limits at the bad ends of the intervals");
    let text = format!(
        "{}: {} a token, first after {}, {}; {} on the score",
        deployed(&r.plan),
        show(Measure::TpotMs, r.plan.tpot_ms.value),
        show(Measure::TtftMs, r.plan.ttft_ms.value),
        show(Measure::UsdPerHour, r.plan.usd_per_hour),
        change(r.premium)
    );
    out.wrapped("  ", "  ", &text);
    out.gap();
}

fn stages(out: &mut Page, a: &Answer) {
    if a.stages.is_empty() {
        return;
    }
    out.title("the deployment as more requests are in flight, in one group");
    for s in &a.stages {
        let broken = if s.broken.is_empty() { String::new() } else { format!("; breaks {}", s.broken.join(" and ")) };
        let span = if s.from == s.to { count(s.from) } else { format!("{} to {}", count(s.from), count(s.to)) };
        out.item(format!(
            "{span}: bound by {}, up to {} a chip at {} a token{broken}",
            s.bound_by,
            tok_s(s.tok_s_per_chip),
            ms(s.tpot_ms)
        ));
    }
    out.item(format!("then {}", a.ends_by));
    out.gap();
}

fn relief(out: &mut Page, most: &Most) {
    let times = most.times_now.map_or_else(String::new, |t| format!(", {} times what is asked", three(t)));
    let head = format!("as traffic grows: full at {} requests per second{times}", three(most.requests_per_s));
    out.title(head);
    out.wrapped("  ", "  ", &format!("then with {}; twice the room in a limit gives", most.deployment));
    for r in &most.reliefs {
        let gain =
            if r.gain < 5e-4 { "nothing".into() } else { format!("{} more", change(r.gain).trim_start_matches('+')) };
        out.line(format!("  {:<24} {gain}", r.limit));
    }
    out.gap();
}
