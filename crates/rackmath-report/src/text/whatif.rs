//! A changed plan as text: before, kept, best, and whether the deployment still holds.

use super::list;
use super::sides::{change, deployed, show};
use crate::style::Style;
use rackmath::plan::{Holds, Plan};
use rackmath::whatif::{Answer, Difference};
use std::fmt::Write as _;

/// `rackmath whatif`
pub fn whatif(a: &Answer, style: Style) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", style.bold(&format!("{}: what if", a.model)));
    if a.changes.is_empty() {
        out.push_str("  nothing is changed\n");
    }
    for c in &a.changes {
        let _ = writeln!(out, "  {:<16} {} -> {}", c.what, c.from, style.bold(&c.to));
    }
    out.push_str(&style.wrapped(
        "",
        "",
        &format!("{}; best {}; {}", a.workload_after, a.objective, a.limits.join(", ")),
    ));
    out.push('\n');
    let verdict = format!("{}.", a.verdict);
    let dressed = match a.kept.holds {
        Holds::AsIs | Holds::Retuned => style.good(&verdict),
        Holds::Breaks | Holds::No => style.bad(&verdict),
    };
    out.push_str(&style.wrapped("", "", &dressed));
    for (who, plan) in [("before", &a.before), ("kept", &a.kept.plan), ("best", &a.after)] {
        let words = plan.as_ref().map_or_else(|| "none".into(), deployed);
        out.push_str(&style.wrapped(&format!("  {who:<8}"), "          ", &words));
    }
    out.push('\n');
    table(&mut out, a, style);
    for r in &a.relaxations {
        let text = format!("{}: {} instead of {}, with {}", r.limit, r.needed, r.asked, r.by);
        out.push_str(&style.wrapped("  - ", "    ", &text));
    }
    if let Some(after) = a.after.as_ref().filter(|_| !a.same_deployment) {
        for command in &after.launch {
            out.push_str(&style.wrapped("  $ ", "      ", command));
        }
    }
    out.push('\n');
    list(&mut out, style, "assumes", &a.assumptions);
    out
}

fn table(out: &mut String, a: &Answer, style: Style) {
    let mut table = style.table(&["", "before", "kept", "best"]);
    let cell = |d: &Difference, value: Option<f64>, moved: Option<f64>| match (value, moved) {
        (None, _) => "-".to_owned(),
        (Some(v), None) => show(d.measure, v),
        (Some(v), Some(c)) => format!("{} ({})", show(d.measure, v), change(c)),
    };
    for d in &a.differences {
        table.add_row([
            d.measure.name().to_owned(),
            cell(d, d.before, None),
            cell(d, d.kept, d.kept_change),
            cell(d, d.after, d.after_change),
        ]);
    }
    let bound = |p: &Option<Plan>| p.as_ref().map_or_else(|| "-".to_owned(), |p| p.bound_by.clone());
    table.add_row(["steps bound by".to_owned(), bound(&a.before), bound(&a.kept.plan), bound(&a.after)]);
    out.push_str(&style.finish(&table));
    out.push('\n');
}
