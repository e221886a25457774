//! What a run may leave in the host's memory, and the time that costs.
//!
//! $$ t_{states} = \max\Big(\frac{o\,N}{d\,W_h} - t_{update},\, 0\Big) \qquad
//!    t_{swap} = \Omega\Big(F, \frac{A}{W_h}\Big) - F + \Omega\Big(R + B, \frac{A}{W_h}\Big) - (R + B) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | o, N, d | optimizer_bytes, updated | B, 1 | optimizer bytes per parameter, parameters this chip updates |
//! | W_h | host | B/s | chip to host, one direction; both directions at once |
//! | A | kept | B | what a stage keeps of a micro-batch |
//! | F, R, B | forward, again, backward | s | passes of a stage for a micro-batch |
//! | Omega | rounded | - | the larger, with its corner rounded |
//!
//! Optimizer states stream to the chip for the update and back, tile by tile, so that the longer of link and update counts;
//! on the chip they hold nothing. Activations go to the host during the forward pass and return during the backward pass of
//! the same micro-batch; the layer at work and the next stay. A link that is fast enough makes both free.
//! Assumes: each chip has its link to itself, and the host has room. Ignores: updates computed by the host's processor, which
//! move gradients and weights (4 bytes) rather than states (12) but are bound by its memory; the first layer's transfer.
//! Source: counting, after ZeRO-Offload (arXiv 2101.06840) and ZeRO-Infinity (arXiv 2104.07857).

use super::layer::rounded;
use super::machine::Machine;
use super::step::Stage;
use super::{Cut, Recompute};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, VariantArray};

/// What waits in the host's memory.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, VariantArray, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Offload {
    /// Nothing.
    #[serde(alias = "off")]
    None,
    /// Optimizer states.
    Optimizer,
    /// Activations between their forward and their backward pass.
    Activations,
    /// Both of them.
    #[serde(alias = "all")]
    Both,
}

impl Offload {
    pub fn optimizer(self) -> bool {
        matches!(self, Self::Optimizer | Self::Both)
    }

    pub fn activations(self) -> bool {
        matches!(self, Self::Activations | Self::Both)
    }
}

/// What streaming the states of `updated` parameters adds to an update of so many seconds.
///
/// Without a link to the host nothing can be offloaded, and nothing is.
pub fn optimizer_time(machine: &Machine<'_>, cut: &Cut, updated: f64, update: f64) -> f64 {
    let Some(rate) = machine.host.filter(|_| cut.offload.optimizer()) else { return 0.0 };
    (machine.stack.memory.optimizer_bytes * updated / rate.get() - update).max(0.0)
}

/// What moving a stage's activations adds to a micro-batch; `again` seconds of it are passes run again.
pub fn activation_time(machine: &Machine<'_>, stage: &Stage, cut: &Cut, again: f64) -> f64 {
    let Some(rate) = machine.host.filter(|_| cut.offload.activations()) else { return 0.0 };
    let moved = kept(stage, cut.recompute) / rate.get();
    let (f, b) = (stage.time.forward, stage.time.backward + again);
    rounded(f, moved) - f + rounded(b, moved) - b
}

/// What of `activations` stays on the chip when a micro-batch's `one` leaves it: the layer at work and the next.
pub fn activations_left(cut: &Cut, activations: f64, one: f64, stage: &Stage) -> f64 {
    if !cut.offload.activations() {
        return activations;
    }
    let layers = stage.layers.max(1) as f64;
    let at_work = match cut.recompute {
        Recompute::None => 0.0,
        Recompute::Selective => stage.largest.scores,
        Recompute::Cheap => stage.largest.all - stage.largest.cheap,
        Recompute::Full | Recompute::Reversible => stage.largest.all,
    };
    (2.0 * one / layers + at_work).min(activations)
}

/// Bytes a stage keeps of one micro-batch.
pub(super) fn kept(stage: &Stage, recompute: Recompute) -> f64 {
    match recompute {
        Recompute::None => stage.kept.all,
        Recompute::Selective => stage.kept.all - stage.kept.scores,
        Recompute::Cheap => stage.kept.cheap,
        Recompute::Full => stage.kept.input,
        // Two streams of the last layer's output; the layers below are computed back from it.
        Recompute::Reversible => 2.0 * stage.largest.input,
    }
}
