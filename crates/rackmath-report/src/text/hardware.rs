//! Hardware ranked for a workload as text, and where the ranking changes.

use super::page::{Page, only, or, or_dash, plural, span, three, tok_s, usd};
use super::plan::{aim, deployed};
use rackmath::figure::count;
use rackmath::hardware::{Answer, Flip};
use rackmath::sides::Measure;
use std::collections::BTreeMap;

pub(super) fn hardware(out: &mut Page, a: &Answer) {
    out.title(format!("{}: the best hardware, at most {} chip{} of each", a.model, a.chips, plural(a.chips)));
    if !a.workload.is_empty() {
        aim(out, &a.workload, a.objective, &a.limits);
    }
    out.gap();
    out.paragraph("", out.style.bold(&format!("{}.", a.verdict)));
    if let Some(best) = a.rows.first() {
        out.paragraph("  ", deployed(&best.plan));
        out.commands(&best.plan.launch);
        out.gap();
        table(out, a);
    }
    out.section("where the answer changes", a.flips.iter().map(changed));
    if !a.figure.series.is_empty() {
        out.draw(&a.figure);
        out.gap();
    }
    // What cannot do it, by reason.
    let mut by: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for o in &a.out {
        by.entry(&o.why).or_default().push(&o.name);
    }
    let left: Vec<String> = by.iter().map(|(why, names)| format!("{}: {why}", names.join(", "))).collect();
    out.list("left out", &left);
    out.list("assumes", &a.assumptions);
}

/// Units stand under the table.
fn table(out: &mut Page, a: &Answer) {
    out.each(&a.rows).columns(&[
        ("", &|r| r.name.clone()),
        ("price", &|r| {
            let basis = if r.price_basis == "on-demand" { "od" } else { &r.price_basis };
            format!("{} {basis}", usd(r.usd_per_chip_hour))
        }),
        ("cost", &|r| or_dash(Measure::UsdPerMtok.of(&r.plan), |cost| usd(cost.value))),
        ("behind", &|r| match r.behind.value {
            b if b <= 1.0 => "-".to_owned(),
            b => format!("x{}{}", three(b), if r.too_close { "~" } else { "" }),
        }),
        ("flips at", &|r| or_dash(r.flips_at_usd_per_chip_hour, usd)),
        ("chip", &|r| three(r.plan.tok_s_per_chip.value)),
        ("user", &|r| three(r.plan.tok_s_per_user.value)),
        ("deployment", &|r| format!("{} x {}", r.plan.replicas, compact(&r.plan.deployment))),
    ]);
    let note = "price and flip in $ per chip and hour (od: on demand); cost in $/Mtok; chip and user in output tok/s; ~ too close to call; (prompts | answers) where they have chips of their own; \
                flips at: the price at which it costs what the best does, for the best what the second does";
    out.paragraph("  ", out.style.dim(note));
    out.gap();
}

/// Pools without their words.
fn compact(deployment: &str) -> String {
    match deployment.split_once(" prefill + ") {
        Some((prompts, answers)) => format!("({prompts} | {})", answers.replacen(" decode", "", 1)),
        None => deployment.to_owned(),
    }
}

fn axis(flip: &Flip, x: f64) -> String {
    match flip.axis.as_str() {
        "tok_s_per_user" => format!("{} a user", tok_s(x)),
        "requests_per_s" => format!("{} requests/s", three(x)),
        _ => format!("prompts of {} tokens", count(x.round())),
    }
}

fn changed(f: &Flip) -> String {
    let at = |x| axis(f, x);
    let place = span(f.at, f.until.unwrap_or(f.at), at);
    let [below, above] = [&f.below, &f.above].map(|who| who.as_deref().unwrap_or("nothing here"));
    let turns = format!(", with {} taking turns in between", f.between.join(", "));
    let between = only(!f.between.is_empty(), turns);
    let now = or(f.now, "", |now| format!(" (asked: {})", at(now)));
    let close = f.close_from.zip(f.close_to);
    let close = or(close, "", |(from, to)| format!("; too close to call at {}", span(from, to, at)));
    format!("{place}: from {below} to {above}{between}{now}{close}")
}
