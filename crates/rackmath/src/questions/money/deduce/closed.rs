//! The closed forms, with the numbers of a sheet in them.

use super::answer::ClosedCard;
use crate::desk::prelude::*;
use rackmath_theory::board::{closed::fast_x, peak_for};
use rackmath_theory::crossover::{Consistency, consistency, implied_batch, kv_from_crossover, mfu_ratio};
use rackmath_theory::deduce::{Posterior, Sheet, Unknown};
use rackmath_theory::roofline::ridge;
use rackmath_units::BytesPerParam;

/// The closed form that gives a cache's size.
pub(super) const KV_FROM_STEP: &str = "kv_from_step";

/// The chip closed forms are worked for.
const CHIP: &str = "b200";

pub(super) fn cards(catalog: &Catalog, sheet: &Sheet, posterior: &Posterior) -> Result<Vec<ClosedCard>, Error> {
    let mut cards = Vec::new();
    let mut card = |id: &'static str, formula: &str, value: f64, unit: &str, note: Remark| {
        cards.push(ClosedCard { id, what: says(id), formula: formula.into(), value, unit: unit.into(), note });
    };
    let chip = catalog.chip(CHIP)?;
    let width = BytesPerParam::new(1.0);
    let r = peak_for(&chip, Dtype::Fp8, None).map(|(_, peak)| ridge(peak, width, chip.memory.bandwidth.value));
    let active = Params::new(float::exp(posterior.of(Unknown::Active).quantile(0.5)));
    let ratio = sheet.output.zip(sheet.input).map(|(o, i)| o / i);
    if let (Some((step, ..)), Some(r)) = (sheet.long, r) {
        let kv = kv_from_crossover(r, width, active, Tokens::new(step));
        let note = says("if_step_is_memory").with("active", active).with("chip", CHIP);
        card(KV_FROM_STEP, "kv = w/R N_act/L*", kv.get(), "B/token", note);
    }
    if let Some(ratio) = ratio {
        let note = says("if_decode_waits");
        card("mfu_from_ratio", "1/r", mfu_ratio(ratio), "", note);
        let at = |x: f64| {
            implied_batch(ratio, x).map_or_else(|| says("no_batch"), |b| says("balance_batches").with("batch", b))
        };
        let note = says("batch_at_contexts").with("at_step", at(1.0)).with("at_half", at(ratio / 2.0));
        card("batch_from_ratio", "B = B*/(r - L/L*)", mfu_ratio(ratio), "B*", note);
    }
    if let (Some((step, ..)), Some(ratio)) = (sheet.long, ratio) {
        let step = Tokens::new(step);
        if let Consistency::Contradict { context_at_large_batch, batch_at_no_context } = consistency(step, ratio, 0.1) {
            let note = says("step_contradicts").with("step", step).with("ratio", ratio);
            let note = note.with("context", context_at_large_batch).with("batch", batch_at_no_context);
            card("step_and_ratio", "r = L/L* + B*/B", ratio, "", note);
        }
    }
    if let Some((m, s)) = sheet.fast {
        let note = says("if_batch_is_lever").with("limit", 1.0 + fast_x(m, s));
        card("x_of_fast_mode", "m(s-1)/(m-1)", fast_x(m, s), "", note);
    }
    if let Some(hold) = sheet.write {
        let note = says("an_hour_more");
        card("storage_from_writes", "(P_1h - P_5m)/(55 min)", hold, "$/Mtok-h", note);
    }
    Ok(cards)
}
