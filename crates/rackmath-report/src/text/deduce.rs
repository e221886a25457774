//! A deduction as text: the closed forms, the posterior beside the prior, what each number told, what none can tell.

use super::{Page, or_dash, percent, three};
use crate::style::Style;
use rackmath::deduce::{Answer, ChoiceCard, UnknownCard};
use rackmath_units::{BytesPerToken, Params, significant};

/// `rackmath deduce`
pub fn deduce(a: &Answer, style: Style) -> String {
    let mut out = Page::new(style);
    out.title(&a.title);
    out.line(format!("{}\n", style.dim(&format!("sold by a {}", a.seller))));
    if let Some(blind) = &a.blind {
        let text = format!(
            "{} different prices ({} copies of the maker's list folded in), median ${} in, ${} out per Mtok",
            blind.hosts,
            blind.copies,
            three(blind.input_usd_per_mtok),
            three(blind.output_usd_per_mtok)
        );
        out.wrapped("  hosts: ", "    ", &text);
        out.gap();
    }
    if let Some(why) = &a.refused {
        out.wrapped(&format!("  {} ", style.bad("refused:")), "    ", why);
        out.gap();
    }
    for warning in &a.warnings {
        out.wrapped(&format!("  {} ", style.bad("warning:")), "    ", warning);
        out.gap();
    }
    out.push(&posterior(a, style));
    out.gap();
    choices(&mut out, a);
    for flag in &a.policies {
        out.wrapped("  ! ", "    ", flag);
    }
    out.gap();
    out.draw(&a.figure);
    out.gap();
    data(&mut out, a);
    closed(&mut out, a);
    ridge(&mut out, a);
    out.list("what no price can tell", &a.cannot_tell);
    out.list("assumes", &a.assumptions);
    out.list("sources", &a.sources);
    out.text()
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

fn choices(out: &mut Page, a: &Answer) {
    let each = |cards: &[ChoiceCard]| {
        let card = |c: &ChoiceCard| format!("{} {} (prior {})", c.name, percent(c.posterior), percent(c.prior));
        cards.iter().map(card).collect::<Vec<_>>().join(", ")
    };
    out.field("weights", each(&a.widths));
    out.field("cache tier", each(&a.tiers));
    out.field("dense", format!("{} (prior {})", percent(a.dense.posterior), percent(a.dense.prior)));
    let s = &a.sampler;
    let tempered = if s.tempered > 0 { format!(", {} stages of tempering", s.tempered) } else { String::new() };
    let text = format!("{} of equal weight, tail k {:.2}{tempered}", three(s.ess), s.pareto_k);
    out.field("points", format!("{}, worth {text}", rackmath_units::grouped(s.points as f64)));
}

fn data(out: &mut Page, a: &Answer) {
    if a.data.is_empty() {
        out.line("no prices were given, so the posterior is the prior\n");
        return;
    }
    let mut table = out.style.table(&["number", "bits on size", "bits on KV", "policy", "cannot tell"]);
    for d in &a.data {
        table.add_row([
            d.name.clone(),
            format!("{:.2}", d.bits_active),
            format!("{:.2}", d.bits_kv),
            or_dash(d.policy, percent),
            d.cannot_tell.clone(),
        ]);
    }
    out.title("what each number adds to the others");
    out.finish(&table);
    out.gap();
}

fn closed(out: &mut Page, a: &Answer) {
    if !a.closed.is_empty() {
        out.title("the lecture's closed forms, which take prices for costs");
        for c in &a.closed {
            let unit = if c.unit.is_empty() { String::new() } else { format!(" {}", c.unit) };
            let text = format!("{} = {}{unit}; {}", c.formula, significant(c.value, 4), c.note);
            out.wrapped(&format!("  {}: ", c.what), "    ", &text);
        }
        out.gap();
    }
    if a.shapes.is_empty() {
        out.wrapped("  cache shapes: ", "    ", &a.shapes_of);
        out.gap();
    } else {
        out.title(format!("shapes within 10 % of {}", a.shapes_of));
        for s in &a.shapes {
            out.item(format!("{} ({})", s.shape, BytesPerToken::new(s.kv_bytes_per_token)));
        }
        out.gap();
    }
}

fn ridge(out: &mut Page, a: &Answer) {
    let axis: Vec<String> = a.ridge.axis.iter().map(|(name, x)| format!("{name} {x:+.2}")).collect();
    let text =
        format!("{}; active parameters against mark-up correlate {:+.2}", axis.join(", "), a.ridge.active_with_markup);
    out.wrapped("  longest axis of the posterior (logarithms): ", "    ", &text);
    out.gap();
}
