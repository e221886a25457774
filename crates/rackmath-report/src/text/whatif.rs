//! A changed plan as text: before, kept, best, and whether the deployment still holds.

use super::Page;
use super::sides::{change, deployed, show};
use crate::style::Style;
use rackmath::plan::{Holds, Plan};
use rackmath::whatif::{Answer, Difference};

/// `rackmath whatif`
pub fn whatif(a: &Answer, style: Style) -> String {
    let mut out = Page::new(style);
    out.title(format!("{}: what if", a.model));
    if a.changes.is_empty() {
        out.push("  nothing is changed\n");
    }
    for c in &a.changes {
        out.line(format!("  {:<16} {} -> {}", c.what, c.from, style.bold(&c.to)));
    }
    out.wrapped("", "", &format!("{}; best {}; {}", a.workload_after, a.objective, a.limits.join(", ")));
    out.gap();
    let verdict = format!("{}.", a.verdict);
    let dressed = match a.kept.holds {
        Holds::AsIs | Holds::Retuned => style.good(&verdict),
        Holds::Breaks | Holds::No => style.bad(&verdict),
    };
    out.wrapped("", "", &dressed);
    for (who, plan) in [("before", &a.before), ("kept", &a.kept.plan), ("best", &a.after)] {
        let words = plan.as_ref().map_or_else(|| "none".into(), deployed);
        out.wrapped(&format!("  {who:<8}"), "          ", &words);
    }
    out.gap();
    table(&mut out, a);
    for r in &a.relaxations {
        out.item(format!("{}: {} instead of {}, with {}", r.limit, r.needed, r.asked, r.by));
    }
    if let Some(after) = a.after.as_ref().filter(|_| !a.same_deployment) {
        for command in &after.launch {
            out.wrapped("  $ ", "      ", command);
        }
    }
    out.gap();
    out.list("assumes", &a.assumptions);
    out.text()
}

fn table(out: &mut Page, a: &Answer) {
    let mut table = out.style.table(&["", "before", "kept", "best"]);
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
    out.finish(&table);
    out.gap();
}
