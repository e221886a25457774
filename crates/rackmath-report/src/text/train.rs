//! Training runs as text: the step by its parts, memory by stage, layouts side by side.

use super::{field, percent, seconds};
use crate::style::Style;
use rackmath::train::{Answer, LayoutCard, RunCard, StageCard};
use rackmath_units::{Bytes, Dollars, FlopRate, Seconds, TokenRate, Tokens, significant};
use std::fmt::Write as _;

/// Layouts of a frontier worth reading.
const FRONTIER: usize = 12;

/// `rackmath train`
pub fn train(a: &Answer, style: Style) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}\n", style.bold(&format!("{} on {}", a.model, a.machine)));
    field(&mut out, style, "layout", &format!("{} on {} chips, {} micro-batches", a.layout, a.chips, a.micro_batches));
    field(&mut out, style, "program", &a.stack);
    let bound = format!("{}; the products alone at full peak {}", seconds(a.step_s), seconds(a.bound_s));
    field(&mut out, style, "step", &bound);
    let per_chip = TokenRate::per_s(a.tokens_per_s / a.chips as f64);
    field(&mut out, style, "speed", &format!("{}, {per_chip} per chip", TokenRate::per_s(a.tokens_per_s)));
    let rate = FlopRate::flop_per_s(a.flop_per_s_per_chip);
    field(
        &mut out,
        style,
        "MFU",
        &format!("{} ({rate} per chip, causal scores; others: rackmath mfu)", percent(a.mfu)),
    );
    let fullest = a.stages.iter().map(|s| s.total_bytes).fold(0.0, f64::max);
    let fits = match (a.fits, &a.search) {
        (true, _) => "fits",
        (false, Some(_)) => "does not fit",
        (false, None) => "does not fit; --search finds what does",
    };
    let capacity = Bytes::b(a.capacity_bytes);
    field(&mut out, style, "memory", &format!("{} of {capacity} on the fullest chip: {fits}", Bytes::b(fullest)));
    if let Some(run) = &a.run {
        whole(&mut out, a, run, style);
    }
    out.push('\n');
    let mut table = style.table(&["part of the step", "time", "share"]);
    for part in &a.parts {
        table.add_row([part.name.clone(), seconds(part.time_s), percent(part.share)]);
    }
    out.push_str(&style.finish(&table));
    out.push('\n');
    out.push_str(&stages(&a.stages, style));
    if let Some(search) = &a.search {
        let _ = writeln!(out, "\n  {} layouts, {} fit; fastest first", search.evaluated, search.feasible);
        out.push_str(&layouts(&search.best, style));
        let _ = writeln!(out, "\n  none is better in time, memory and cost at once");
        let shown = search.frontier.len().min(FRONTIER);
        out.push_str(&layouts(&search.frontier[..shown], style));
        if search.frontier.len() > shown {
            let _ = writeln!(out, "  {} more with --json", search.frontier.len() - shown);
        }
    }
    let _ = writeln!(out);
    for assumption in a.run.iter().flat_map(|r| &r.assumptions) {
        out.push_str(&style.wrapped("  - ", "    ", assumption));
    }
    out.push_str(&style.wrapped("  evidence: ", "    ", &a.evidence));
    out
}

/// Tokens, loss, days and dollars, without failures and with them.
fn whole(out: &mut String, a: &Answer, run: &RunCard, style: Style) {
    if let Some(l) = &run.loss {
        let reach = format!("{} under {}", significant(l.loss, 4), l.law);
        let words = match run.tokens {
            Some(_) => format!("{reach}; with endless data {}", significant(l.least, 4)),
            None => format!("{reach} is out of reach: endless data leaves {}", significant(l.least, 4)),
        };
        field(out, style, "loss", &words);
        for far in &l.outside {
            field(out, style, "", &format!("caution: {far}"));
        }
        if let Some(b) = l.tokens_spread.as_ref().map(|s| s.narrow.unwrap_or(s.wide)) {
            let (low, high) = (Tokens::new(b.low), Tokens::new(b.high));
            field(out, style, "", &format!("tokens {low} to {high} in 8 of 10 draws of its standard errors"));
        }
    }
    let (Some(days), Some(tokens)) = (run.work_days, run.tokens) else { return };
    let cost = |usd: Option<f64>| usd.map_or(String::new(), |c| format!(", {}", Dollars::usd(c)));
    let line = format!("{} tokens in {} days{}", Tokens::new(tokens), significant(days, 3), cost(a.cost_usd));
    field(out, style, "run", &line);
    let every = Seconds::s(run.job_mtbf_hours * 3600.0);
    let words = match (run.wall_days, run.failures) {
        (Some(wall), Some(n)) => format!(
            "{} days{}, MFU {}; one every {every}, {} in all, {} of the time is progress",
            significant(wall, 3),
            cost(run.cost_usd),
            percent(run.effective_mfu),
            significant(n, 2),
            percent(run.goodput)
        ),
        _ => format!("one every {every}: it never ends"),
    };
    field(out, style, "failures", &words);
}

/// First, last, and the fullest stage.
fn stages(all: &[StageCard], style: Style) -> String {
    let mut table =
        style.table(&["stage", "layers", "weights", "gradients", "optimizer", "activations", "logits", "other", "all"]);
    let fullest = all.iter().max_by(|a, b| a.total_bytes.total_cmp(&b.total_bytes)).map(|s| s.stage);
    let last = all.len().saturating_sub(1) as u64;
    for s in all.iter().filter(|s| s.stage == 0 || s.stage == last || Some(s.stage) == fullest) {
        let b = |x: f64| Bytes::b(x).to_string();
        table.add_row([
            s.stage.to_string(),
            s.layers.to_string(),
            b(s.weight_bytes),
            b(s.gradient_bytes),
            b(s.optimizer_bytes),
            b(s.activation_bytes),
            b(s.logit_bytes),
            b(s.other_bytes),
            b(s.total_bytes),
        ]);
    }
    style.finish(&table)
}

fn layouts(cards: &[LayoutCard], style: Style) -> String {
    let mut table = style.table(&["layout", "chips", "step", "memory", "chip-hours per Mtok"]);
    for c in cards {
        table.add_row([
            c.layout.clone(),
            c.chips.to_string(),
            seconds(c.step_s),
            Bytes::b(c.memory_bytes).to_string(),
            significant(c.chip_hours_per_mtok, 3),
        ]);
    }
    style.finish(&table)
}

/// `rackmath mfu`
pub fn mfu(a: &rackmath::mfu::Answer, style: Style) -> String {
    let mut out = String::new();
    let title = format!("{} on {}, {} tokens a sequence", a.model, a.chip, a.request.sequence);
    let _ = writeln!(out, "{}\n", style.bold(&title));
    field(&mut out, style, "speed", &format!("{} per chip", TokenRate::per_s(a.tokens_per_s_per_chip)));
    let peak = FlopRate::flop_per_s(a.peak_flop_per_s);
    field(&mut out, style, "peak", &format!("{peak} dense, {}", a.request.format));
    out.push('\n');
    let mut table = style.table(&["convention", "FLOP per token", "per chip", "share of peak", "who counts so"]);
    for line in &a.lines {
        table.add_row([
            line.convention.clone(),
            rackmath_units::FlopPerToken::new(line.flop_per_token).to_string(),
            FlopRate::flop_per_s(line.flop_per_s_per_chip).to_string(),
            percent(line.mfu),
            line.used_by.clone(),
        ]);
    }
    out.push_str(&style.finish(&table));
    out
}
