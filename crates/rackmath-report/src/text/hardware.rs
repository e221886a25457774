//! Hardware ranked for a workload as text, and where the ranking changes.

use super::sides::{deployed, hourly, show};
use super::{Page, three, tok_s};
use crate::style::Style;
use rackmath::figure::count;
use rackmath::hardware::{Answer, Flip, Row};
use rackmath::sides::Measure;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// `rackmath hardware`
pub fn hardware(a: &Answer, style: Style) -> String {
    let mut out = Page::new(style);
    let plural = if a.chips == 1 { "" } else { "s" };
    out.title(format!("{}: the best hardware, at most {} chip{plural} of each", a.model, a.chips));
    if !a.workload.is_empty() {
        out.wrapped("", "", &format!("{}; best {}; {}", a.workload, a.objective, a.limits.join(", ")));
    }
    out.gap();
    out.wrapped("", "", &style.bold(&format!("{}.", a.verdict)));
    if let Some(best) = a.rows.first() {
        out.wrapped("  ", "  ", &deployed(&best.plan));
        for command in &best.plan.launch {
            out.wrapped("  $ ", "      ", command);
        }
        out.gap();
        table(&mut out, a);
    }
    flips(&mut out, a);
    if !a.figure.series.is_empty() {
        out.draw(&a.figure);
        out.gap();
    }
    left_out(&mut out, a);
    out.list("assumes", &a.assumptions);
    out.text()
}

fn table(out: &mut Page, a: &Answer) {
    let mut table = out.style.table(&["", "price", "cost", "behind", "flips at", "chip", "user", "deployment"]);
    for r in &a.rows {
        let behind = match (r.behind.value, r.too_close) {
            (b, _) if b <= 1.0 => "-".to_owned(),
            (b, true) => format!("x{}~", three(b)),
            (b, false) => format!("x{}", three(b)),
        };
        let cell = |m: Measure| m.of(&r.plan).map_or_else(|| "-".to_owned(), |v| bare(&show(m, v.value)));
        let flip = r.flips_at_usd_per_chip_hour.map_or_else(|| "-".to_owned(), |p| bare(&hourly(p)));
        table.add_row([
            r.name.clone(),
            format!("{} {}", bare(&hourly(r.usd_per_chip_hour)), kind(r)),
            cell(Measure::UsdPerMtok),
            behind,
            flip,
            cell(Measure::TokSPerChip),
            cell(Measure::TokSPerUser),
            format!("{} x {}", r.plan.replicas, compact(&r.plan.deployment)),
        ]);
    }
    out.finish(&table);
    let note = "price and flip in $ per chip and hour (od: on demand); cost in $/Mtok; chip and user in output tok/s; ~ too close to call; (prompts | answers) where they have chips of their own; \
                flips at: the price at which it costs what the best does, for the best what the second does";
    out.wrapped("  ", "  ", &out.style.dim(note));
    out.gap();
}

/// Pools without their words.
fn compact(deployment: &str) -> String {
    match deployment.split_once(" prefill + ") {
        Some((prompts, answers)) => format!("({prompts} | {})", answers.replacen(" decode", "", 1)),
        None => deployment.to_owned(),
    }
}

/// A short word for the kind of a price.
fn kind(r: &Row) -> &str {
    if r.price_basis == "on-demand" { "od" } else { &r.price_basis }
}

/// The unit stands under the table.
fn bare(text: &str) -> String {
    text.trim_end_matches("/h").trim_end_matches("/Mtok").trim_end_matches(" tok/s").to_owned()
}

fn axis(flip: &Flip, x: f64) -> String {
    match flip.axis.as_str() {
        "tok_s_per_user" => format!("{} a user", tok_s(x)),
        "requests_per_s" => format!("{} requests/s", three(x)),
        _ => format!("prompts of {} tokens", count(x.round())),
    }
}

fn flips(out: &mut Page, a: &Answer) {
    if a.flips.is_empty() {
        return;
    }
    out.title("where the answer changes");
    let nobody = || "nothing here".to_owned();
    for f in &a.flips {
        let place = f.until.map_or_else(|| axis(f, f.at), |until| format!("{} to {}", axis(f, f.at), axis(f, until)));
        let (below, above) = (f.below.clone().unwrap_or_else(nobody), f.above.clone().unwrap_or_else(nobody));
        let mut text = format!("{place}: from {below} to {above}");
        if !f.between.is_empty() {
            let _ = write!(text, ", with {} taking turns in between", f.between.join(", "));
        }
        if let Some(now) = f.now {
            let _ = write!(text, " (asked: {})", axis(f, now));
        }
        if let (Some(from), Some(to)) = (f.close_from, f.close_to) {
            let words = if from == to { axis(f, from) } else { format!("{} to {}", axis(f, from), axis(f, to)) };
            let _ = write!(text, "; too close to call at {words}");
        }
        out.item(&text);
    }
    out.gap();
}

/// What cannot do it, by reason.
fn left_out(out: &mut Page, a: &Answer) {
    let mut by: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for o in &a.out {
        by.entry(&o.why).or_default().push(&o.name);
    }
    if by.is_empty() {
        return;
    }
    out.line(out.style.dim("left out"));
    for (why, names) in by {
        out.item(format!("{}: {why}", names.join(", ")));
    }
}
