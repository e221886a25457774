//! Training runs as text: the step by its parts, memory by stage, layouts side by side.

use super::{Page, bytes, percent, seconds, three, tok_s};
use crate::style::Style;
use rackmath::train::{Answer, LayoutCard, RunCard, StageCard};
use rackmath_units::{Dollars, FlopRate, Seconds, Tokens, significant};

/// Layouts of a frontier worth reading.
const FRONTIER: usize = 12;

/// `rackmath train`
pub fn train(a: &Answer, style: Style) -> String {
    let mut out = Page::new(style);
    out.head(format!("{} on {}", a.model, a.machine));
    out.field("layout", format!("{} on {} chips, {} micro-batches", a.layout, a.chips, a.micro_batches));
    out.field("program", &a.stack);
    let bound = format!("{}; the products alone at full peak {}", seconds(a.step_s), seconds(a.bound_s));
    out.field("step", bound);
    let per_chip = tok_s(a.tokens_per_s / a.chips as f64);
    out.field("speed", format!("{}, {per_chip} per chip", tok_s(a.tokens_per_s)));
    let rate = FlopRate::flop_per_s(a.flop_per_s_per_chip);
    out.field("MFU", format!("{} ({rate} per chip, causal scores; others: rackmath mfu)", percent(a.mfu)));
    let fullest = a.stages.iter().map(|s| s.total_bytes).fold(0.0, f64::max);
    let fits = match (a.fits, &a.search) {
        (true, _) => "fits",
        (false, Some(_)) => "does not fit",
        (false, None) => "does not fit; --search finds what does",
    };
    let capacity = bytes(a.capacity_bytes);
    out.field("memory", format!("{} of {capacity} on the fullest chip: {fits}", bytes(fullest)));
    if let Some(run) = &a.run {
        whole(&mut out, a, run);
    }
    out.gap();
    out.columns(
        &a.parts,
        &[
            ("part of the step", &|part| part.name.clone()),
            ("time", &|part| seconds(part.time_s)),
            ("share", &|part| percent(part.share)),
        ],
    );
    out.gap();
    out.push(&stages(&a.stages, style));
    if let Some(search) = &a.search {
        out.line(format!("\n  {} layouts, {} fit; fastest first", search.evaluated, search.feasible));
        out.push(&layouts(&search.best, style));
        out.line("\n  none is better in time, memory and cost at once");
        let shown = search.frontier.len().min(FRONTIER);
        out.push(&layouts(&search.frontier[..shown], style));
        if search.frontier.len() > shown {
            out.line(format!("  {} more with --json", search.frontier.len() - shown));
        }
    }
    out.gap();
    for assumption in a.run.iter().flat_map(|r| &r.assumptions) {
        out.item(assumption);
    }
    out.wrapped("  evidence: ", "    ", &a.evidence);
    out.text()
}

/// Tokens, loss, days and dollars, without failures and with them.
fn whole(out: &mut Page, a: &Answer, run: &RunCard) {
    if let Some(l) = &run.loss {
        let reach = format!("{} under {}", significant(l.loss, 4), l.law);
        let words = match run.tokens {
            Some(_) => format!("{reach}; with endless data {}", significant(l.least, 4)),
            None => format!("{reach} is out of reach: endless data leaves {}", significant(l.least, 4)),
        };
        out.field("loss", words);
        for far in &l.outside {
            out.field("", format!("caution: {far}"));
        }
        if let Some(b) = l.tokens_spread.as_ref().map(|s| s.narrow.unwrap_or(s.wide)) {
            let (low, high) = (Tokens::new(b.low), Tokens::new(b.high));
            out.field("", format!("tokens {low} to {high} in 8 of 10 draws of its standard errors"));
        }
    }
    let (Some(days), Some(tokens)) = (run.work_days, run.tokens) else { return };
    let cost = |usd: Option<f64>| usd.map_or(String::new(), |c| format!(", {}", Dollars::usd(c)));
    let line = format!("{} tokens in {} days{}", Tokens::new(tokens), three(days), cost(a.cost_usd));
    out.field("run", line);
    let every = Seconds::s(run.job_mtbf_hours * 3600.0);
    let words = match (run.wall_days, run.failures) {
        (Some(wall), Some(n)) => format!(
            "{} days{}, MFU {}; one every {every}, {} in all, {} of the time is progress",
            three(wall),
            cost(run.cost_usd),
            percent(run.effective_mfu),
            significant(n, 2),
            percent(run.goodput)
        ),
        _ => format!("one every {every}: it never ends"),
    };
    out.field("failures", words);
}

/// First, last, and the fullest stage.
fn stages(all: &[StageCard], style: Style) -> String {
    let mut table =
        style.table(&["stage", "layers", "weights", "gradients", "optimizer", "activations", "logits", "other", "all"]);
    let fullest = all.iter().max_by(|a, b| a.total_bytes.total_cmp(&b.total_bytes)).map(|s| s.stage);
    let last = all.len().saturating_sub(1) as u64;
    for s in all.iter().filter(|s| s.stage == 0 || s.stage == last || Some(s.stage) == fullest) {
        let b = |x: f64| bytes(x);
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
            bytes(c.memory_bytes),
            three(c.chip_hours_per_mtok),
        ]);
    }
    style.finish(&table)
}

/// `rackmath mfu`
pub fn mfu(a: &rackmath::mfu::Answer, style: Style) -> String {
    let mut out = Page::new(style);
    let title = format!("{} on {}, {} tokens a sequence", a.model, a.chip, a.request.sequence);
    out.head(title);
    out.field("speed", format!("{} per chip", tok_s(a.tokens_per_s_per_chip)));
    let peak = FlopRate::flop_per_s(a.peak_flop_per_s);
    out.field("peak", format!("{peak} dense, {}", a.request.format));
    out.gap();
    out.columns(
        &a.lines,
        &[
            ("convention", &|line| line.convention.clone()),
            ("FLOP per token", &|line| rackmath_units::FlopPerToken::new(line.flop_per_token).to_string()),
            ("per chip", &|line| FlopRate::flop_per_s(line.flop_per_s_per_chip).to_string()),
            ("share of peak", &|line| percent(line.mfu)),
            ("who counts so", &|line| line.used_by.into()),
        ],
    );
    out.text()
}
