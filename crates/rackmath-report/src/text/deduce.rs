//! A deduction as text: the closed forms, the posterior beside the prior, what each number told, what none can tell.

use super::{field, list, percent};
use crate::style::Style;
use crate::terminal;
use rackmath::deduce::{Answer, ChoiceCard, UnknownCard};
use rackmath_units::{BytesPerToken, Params, significant};
use std::fmt::Write as _;

/// `rackmath deduce`
pub fn deduce(a: &Answer, style: Style) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", style.bold(&a.title));
    let _ = writeln!(out, "{}\n", style.dim(&format!("sold by a {}", a.seller)));
    if let Some(blind) = &a.blind {
        let text = format!(
            "{} different prices ({} copies of the maker's list folded in), median ${} in, ${} out per Mtok",
            blind.hosts,
            blind.copies,
            significant(blind.input_usd_per_mtok, 3),
            significant(blind.output_usd_per_mtok, 3)
        );
        out.push_str(&style.wrapped("  hosts: ", "    ", &text));
        out.push('\n');
    }
    if let Some(why) = &a.refused {
        out.push_str(&style.wrapped(&format!("  {} ", style.bad("refused:")), "    ", why));
        out.push('\n');
    }
    for warning in &a.warnings {
        out.push_str(&style.wrapped(&format!("  {} ", style.bad("warning:")), "    ", warning));
        out.push('\n');
    }
    out.push_str(&posterior(a, style));
    out.push('\n');
    choices(&mut out, a, style);
    for flag in &a.policies {
        out.push_str(&style.wrapped("  ! ", "    ", flag));
    }
    out.push('\n');
    out.push_str(&terminal::draw(&a.figure, style));
    out.push('\n');
    data(&mut out, a, style);
    closed(&mut out, a, style);
    ridge(&mut out, a, style);
    list(&mut out, style, "what no price can tell", &a.cannot_tell);
    list(&mut out, style, "assumes", &a.assumptions);
    list(&mut out, style, "sources", &a.sources);
    out
}

fn posterior(a: &Answer, style: Style) -> String {
    let blind = a.blind.is_some();
    let mut header = vec!["unknown", "10 %", "50 %", "90 %", "prior 10 to 90 %", "bits"];
    if blind {
        header.push("truth");
    }
    let mut table = style.table(&header);
    for u in &a.unknowns {
        let mut row = vec![
            u.name.clone(),
            show(u, u.p10),
            style.bold(&show(u, u.p50)),
            show(u, u.p90),
            format!("{} to {}", show(u, u.prior_p10), show(u, u.prior_p90)),
            format!("{:.2}", u.bits),
        ];
        if blind {
            row.push(match (u.truth, u.inside) {
                (Some(truth), Some(true)) => style.good(&format!("{} inside", show(u, truth))),
                (Some(truth), _) => style.bad(&format!("{} outside", show(u, truth))),
                _ => "-".into(),
            });
        }
        table.add_row(row);
    }
    style.finish(&table)
}

fn show(u: &UnknownCard, value: f64) -> String {
    match u.unit.as_str() {
        "parameters" => Params::new(value).to_string(),
        "B/token" => BytesPerToken::new(value).to_string(),
        // The histogram of a dense model ends just below 1.
        _ => significant(if u.name.starts_with("sparsity") { value.max(1.0) } else { value }, 2),
    }
}

fn choices(out: &mut String, a: &Answer, style: Style) {
    let each = |cards: &[ChoiceCard]| {
        let card = |c: &ChoiceCard| format!("{} {} (prior {})", c.name, percent(c.posterior), percent(c.prior));
        cards.iter().map(card).collect::<Vec<_>>().join(", ")
    };
    field(out, style, "weights", &each(&a.widths));
    field(out, style, "cache tier", &each(&a.tiers));
    field(out, style, "dense", &format!("{} (prior {})", percent(a.dense.posterior), percent(a.dense.prior)));
    let s = &a.sampler;
    let tempered = if s.tempered > 0 { format!(", {} stages of tempering", s.tempered) } else { String::new() };
    let text = format!("{} of equal weight, tail k {:.2}{tempered}", significant(s.ess, 3), s.pareto_k);
    field(out, style, "points", &format!("{}, worth {text}", rackmath_units::grouped(s.points as f64)));
}

fn data(out: &mut String, a: &Answer, style: Style) {
    if a.data.is_empty() {
        let _ = writeln!(out, "no prices were given, so the posterior is the prior\n");
        return;
    }
    let mut table = style.table(&["number", "bits on size", "bits on KV", "policy", "cannot tell"]);
    for d in &a.data {
        table.add_row([
            d.name.clone(),
            format!("{:.2}", d.bits_active),
            format!("{:.2}", d.bits_kv),
            d.policy.map_or("-".into(), percent),
            d.cannot_tell.clone(),
        ]);
    }
    let _ = writeln!(out, "{}", style.bold("what each number adds to the others"));
    out.push_str(&style.finish(&table));
    out.push('\n');
}

fn closed(out: &mut String, a: &Answer, style: Style) {
    if !a.closed.is_empty() {
        let _ = writeln!(out, "{}", style.bold("the lecture's closed forms, which take prices for costs"));
        for c in &a.closed {
            let unit = if c.unit.is_empty() { String::new() } else { format!(" {}", c.unit) };
            let text = format!("{} = {}{unit}; {}", c.formula, significant(c.value, 4), c.note);
            out.push_str(&style.wrapped(&format!("  {}: ", c.what), "    ", &text));
        }
        out.push('\n');
    }
    if a.shapes.is_empty() {
        out.push_str(&style.wrapped("  cache shapes: ", "    ", &a.shapes_of));
        out.push('\n');
    } else {
        let _ = writeln!(out, "{}", style.bold(&format!("shapes within 10 % of {}", a.shapes_of)));
        for s in &a.shapes {
            let text = format!("{} ({})", s.shape, BytesPerToken::new(s.kv_bytes_per_token));
            out.push_str(&style.wrapped("  - ", "    ", &text));
        }
        out.push('\n');
    }
}

fn ridge(out: &mut String, a: &Answer, style: Style) {
    let axis: Vec<String> = a.ridge.axis.iter().map(|(name, x)| format!("{name} {x:+.2}")).collect();
    let text =
        format!("{}; active parameters against mark-up correlate {:+.2}", axis.join(", "), a.ridge.active_with_markup);
    out.push_str(&style.wrapped("  longest axis of the posterior (logarithms): ", "    ", &text));
    out.push('\n');
}
