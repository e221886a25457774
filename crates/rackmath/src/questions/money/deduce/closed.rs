//! The closed forms, with the numbers of a sheet in them.

use super::answer::ClosedCard;
use crate::desk::prelude::*;
use rackmath_theory::board::{closed::fast_x, peak_for};
use rackmath_theory::crossover::{Consistency, consistency, implied_batch, kv_from_crossover, mfu_ratio};
use rackmath_theory::deduce::{Posterior, Sheet, Unknown};
use rackmath_theory::roofline::ridge;
use rackmath_units::BytesPerParam;

/// The chip closed forms are worked for.
const CHIP: &str = "b200";

pub(super) fn cards(catalog: &Catalog, sheet: &Sheet, posterior: &Posterior) -> Result<Vec<ClosedCard>, Error> {
    let mut cards = Vec::new();
    let mut card = |what: &str, formula: &str, value: f64, unit: &str, note: String| {
        cards.push(ClosedCard { what: what.into(), formula: formula.into(), value, unit: unit.into(), note });
    };
    let chip = catalog.chip(CHIP)?;
    let width = BytesPerParam::new(1.0);
    let r = peak_for(&chip, Dtype::Fp8, None).map(|(_, peak)| ridge(peak, width, chip.memory.bandwidth.value));
    let active = Params::new(float::exp(posterior.of(Unknown::Active).quantile(0.5)));
    let ratio = sheet.output.zip(sheet.input).map(|(o, i)| o / i);
    if let (Some((step, ..)), Some(r)) = (sheet.long, r) {
        let kv = kv_from_crossover(r, width, active, Tokens::new(step));
        let note =
            format!("if the step is where memory overtakes compute, at the posterior's {active} active, {CHIP} in FP8");
        card("KV per token from the price step", "kv = w/R N_act/L*", kv.get(), "B/token", note);
    }
    if let Some(ratio) = ratio {
        let note = "if output costs more only because decode waits for memory".into();
        card("decode MFU over prefill MFU", "1/r", mfu_ratio(ratio), "", note);
        let at = |x: f64| implied_batch(ratio, x).map_or("none".into(), |b| format!("{} B*", significant(b, 3)));
        let note = format!("batch at no context; {} at L*, {} at r/2 L*", at(1.0), at(ratio / 2.0));
        card("implied (B, L)", "B = B*/(r - L/L*)", mfu_ratio(ratio), "B*", note);
    }
    if let (Some((step, ..)), Some(ratio)) = (sheet.long, ratio) {
        let step = Tokens::new(step);
        if let Consistency::Contradict { context_at_large_batch, batch_at_no_context } = consistency(step, ratio, 0.1) {
            let note = format!(
                "they contradict each other: a step at {step} says output costs what input does below it; {}x would need a context of {context_at_large_batch} at large batch, or a batch of {} B*",
                significant(ratio, 3),
                significant(batch_at_no_context, 3)
            );
            card("step and output ratio together", "r = L/L* + B*/B", ratio, "", note);
        }
    }
    if let Some((m, s)) = sheet.fast {
        let note = format!(
            "KV over weight traffic, if the batch is the only lever; speed cannot exceed {}x",
            significant(1.0 + fast_x(m, s), 3)
        );
        card("x of the fast mode", "m(s-1)/(m-1)", fast_x(m, s), "", note);
    }
    if let Some(hold) = sheet.write {
        let note = "what an hour more costs, by the write prices".into();
        card("storage implied by write prices", "(P_1h - P_5m)/(55 min)", hold, "$/Mtok-h", note);
    }
    Ok(cards)
}
