//! A deduction as text: the closed forms, the posterior beside the prior, what each number told, what none can tell.

use super::prelude::*;
use rackmath::deduce::{Answer, ChoiceCard, Unknown, UnknownCard};

pub(super) fn deduce(out: &mut Page, a: &Answer) {
    out.title(&a.title);
    out.dim(format!("sold by a {}", a.seller));
    // What was refused and what contradicts itself is the answer.
    a.refused.iter().for_each(|why| out.judged(false, format!("refused: {}", words(why))));
    likely(out, a);
    if let Some(blind) = &a.blind {
        let [input, output] = [blind.input_usd_per_mtok, blind.output_usd_per_mtok].map(usd);
        let prices =
            format!("{} different prices ({} copies of the maker's list folded in)", blind.hosts, blind.copies);
        out.wrapped("  hosts: ", "    ", format!("{prices}, median {input} in, {output} out per Mtok"));
    }
    out.advice();
    for text in &a.warnings {
        out.wrapped(&format!("  {} ", out.style.bad("warning:")), "    ", text);
    }
    out.figures();
    posterior(out, a);
    out.gap();
    choices(out, a);
    out.advice();
    for flag in &a.policies {
        out.wrapped("  ! ", "    ", flag);
    }
    out.pictures([&a.figure]);
    out.working();
    data(out, a);
    closed(out, a);
    let axis: Vec<String> = a.ridge.axis.iter().map(|(name, x)| format!("{name} {x:+.2}")).collect();
    let tied = format!("active parameters against mark-up correlate {:+.2}", a.ridge.active_with_markup);
    let title = "  longest axis of the posterior (logarithms): ";
    out.wrapped(title, "    ", format!("{}; {tied}", axis.join(", ")));
    out.gap();
    out.advice();
    out.list("what no price can tell", &a.cannot_tell);
    out.assumes(&a.assumptions);
    out.sources(&a.sources);
}

/// What the prices say of its size, and whether its experts are many.
fn likely(out: &mut Page, a: &Answer) {
    let said = a.unknowns.iter().take(2).map(|u| {
        let [low, middle, high] = [u.p10, u.p50, u.p90].map(|x| show(u, x));
        let inside = if u.inside == Some(true) { "inside" } else { "outside" };
        let truth = or(u.truth, "", |truth| format!(", in truth {}, {inside}", show(u, truth)));
        format!("{} {middle} ({low} to {high} with 80 %{truth})", u.name)
    });
    let from = if a.data.is_empty() { "Without a price" } else { "From these prices" };
    out.verdict(format!("{from}: {}", said.collect::<Vec<_>>().join(", ")));
}

fn posterior(out: &mut Page, a: &Answer) {
    let style = out.style;
    let truth = |u: &UnknownCard| match (u.truth, u.inside) {
        (Some(truth), Some(true)) => style.good(&format!("{} inside", show(u, truth))),
        (Some(truth), _) => style.bad(&format!("{} outside", show(u, truth))),
        _ => "-".into(),
    };
    out.each(&a.unknowns).some(&[
        (true, ("unknown", &|u| u.name.clone())),
        (true, ("10 %", &|u| show(u, u.p10))),
        (true, ("50 %", &|u| style.bold(&show(u, u.p50)))),
        (true, ("90 %", &|u| show(u, u.p90))),
        (true, ("prior 10 to 90 %", &|u| format!("{} to {}", show(u, u.prior_p10), show(u, u.prior_p90)))),
        (true, ("bits", &|u| format!("{:.2}", u.bits))),
        (a.blind.is_some(), ("truth", &truth)),
    ]);
}

fn show(u: &UnknownCard, value: f64) -> String {
    match u.unit.as_str() {
        "parameters" => params(value),
        "B/token" => BytesPerToken::new(value).to_string(),
        // The histogram of a dense model ends just below 1.
        _ => significant(if u.id == Unknown::Sparsity { value.max(1.0) } else { value }, 2),
    }
}

fn choices(out: &mut Page, a: &Answer) {
    let chances = |prior, posterior| format!("{} (prior {})", percent(posterior), percent(prior));
    let each = |cards: &[ChoiceCard]| {
        let card = |c: &ChoiceCard| format!("{} {}", c.name, chances(c.prior, c.posterior));
        cards.iter().map(card).collect::<Vec<_>>().join(", ")
    };
    out.field("weights", each(&a.widths));
    out.field("cache tier", each(&a.tiers));
    out.field("dense", chances(a.dense.prior, a.dense.posterior));
    let s = &a.sampler;
    let tempered = only(s.tempered > 0, format!(", {} stages of tempering", s.tempered));
    let worth = format!("{} of equal weight, tail k {:.2}{tempered}", three(s.ess), s.pareto_k);
    out.field("points", format!("{}, worth {worth}", grouped(s.points as f64)));
}

fn data(out: &mut Page, a: &Answer) {
    if a.data.is_empty() {
        return out.line("no prices were given, so the posterior is the prior\n");
    }
    out.title("what each number adds to the others");
    out.each(&a.data).columns(&[
        ("number", &|d| d.name.clone()),
        ("bits on size", &|d| format!("{:.2}", d.bits_active)),
        ("bits on KV", &|d| format!("{:.2}", d.bits_kv)),
        ("policy", &|d| or_dash(d.policy, percent)),
        ("cannot tell", &|d| words(&d.cannot_tell)),
    ]);
    out.gap();
}

fn closed(out: &mut Page, a: &Answer) {
    if !a.closed.is_empty() {
        out.title("the lecture's closed forms, which take prices for costs");
        for c in &a.closed {
            let value = format!("{} {}", significant(c.value, 4), c.unit);
            let text = format!("{} = {}; {}", c.formula, value.trim_end(), words(&c.note));
            out.wrapped(&format!("  {}: ", words(&c.what)), "    ", text);
        }
        out.gap();
    }
    if a.shapes.is_empty() {
        out.wrapped("  cache shapes: ", "    ", &a.shapes_of);
    } else {
        out.title(format!("shapes within 10 % of {}", words(&a.shapes_of)));
    }
    for s in &a.shapes {
        out.item(format!("{} ({})", words(&s.shape), BytesPerToken::new(s.kv_bytes_per_token)));
    }
    out.gap();
}
