//! What a chip of a pipeline stage holds at its fullest.
//!
//! $$ M = N w + \frac{N g}{d_g} + \frac{N o}{d_o} + k\,A + \frac{T V}{t}\,\lambda + \text{buffers} + M_0 $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | N | params | 1 | parameters of the stage on this chip |
//! | w, g, o | weight, gradient, optimizer | B | bytes per parameter: 2, 2 or 4, 12 for Adam with a master copy |
//! | d_g, d_o | shards | 1 | chips that divide gradients (ZeRO-2 on) and optimizer states (ZeRO-1 on); ZeRO-3 divides w too |
//! | k | in_flight | 1 | micro-batches between their forward and their backward pass |
//! | A | kept | B | activations of a micro-batch: all, all but scores, all but what is cheap, the layers' inputs, or two streams; with one layer in full |
//! | T V / t, lambda | logits | 1, B | logits of the last stage, bytes held for each |
//! | M_0 | reserve | B | context, libraries, communication buffers |
//!
//! | schedule | k on stage r of p, at most m |
//! |---|---|
//! | GPipe | m |
//! | 1F1B, ZB-H1 | p - r |
//! | interleaved | ((v-1)p + 2(p-r) - 1) / v |
//! | ZB-H2 | 2p - 1 |
//! | ZBV, V-Half, V-Min | p, p/2 + 1, p/3 + 1 |
//! | DualPipe, DualPipeV | p + 1 |
//!
//! With interleaved chunks ZeRO-2 holds the gradients of one chunk whole ([`super::step::reductions`]).
//! Experts are divided over their own copies, not over all data-parallel ranks. The stage in the middle of ZeRO-3 also holds
//! the layer it works on and the next one, gathered. Source: Rajbhandari 2020, Korthikanti 2022; k of 1F1B by counting,
//! the others as their authors state them (see [`crate::pipeline`] for the exact ones).

use super::step::{Prepared, Stage};
use super::tuning::NARROW;
use super::{Cut, Recompute, Sharding, offload};
use crate::pipeline::Schedule;
use rackmath_spec::training::MemoryRecipe;
use rackmath_units::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

/// What one chip of a stage holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct StageMemory {
    /// Its place, from 0.
    pub stage: u64,
    /// Its layers.
    pub layers: u64,
    /// Weights as multiplied, with gathered layers.
    pub weight_bytes: f64,
    /// Gradients.
    pub gradient_bytes: f64,
    /// Optimizer states and master weights.
    pub optimizer_bytes: f64,
    /// Activations of the micro-batches in flight.
    pub activation_bytes: f64,
    /// Logits.
    pub logit_bytes: f64,
    /// Buffers, context and libraries.
    pub other_bytes: f64,
    /// All.
    pub total_bytes: f64,
    /// What the program itself asked for.
    #[serde(skip)]
    pub allocated: f64,
}

impl StageMemory {
    pub fn total(&self) -> Bytes {
        Bytes::b(self.total_bytes)
    }
}

pub fn stage_memory(
    prepared: &Prepared,
    recipe: &MemoryRecipe,
    stage: &Stage,
    cut: &Cut,
    micro_batches: u64,
) -> StageMemory {
    let copies = (cut.dp * cut.cp) as f64;
    let experts = cut.expert_copies().max(1.0);
    let (n, e) = (stage.params, stage.expert_params);
    let over = |from: Sharding, bytes: f64, (n, e): (f64, f64)| {
        if cut.sharding >= from { bytes * (n / copies + e / experts) } else { bytes * (n + e) }
    };
    let trained = (stage.trained, stage.trained_experts);
    let divided = |from: Sharding, bytes: f64| over(from, bytes, trained);
    let gathered = if cut.sharding == Sharding::Zero3 { 2.0 * stage.largest_layer * recipe.weight_bytes } else { 0.0 };
    let held = in_flight(cut, stage.index, micro_batches);
    let one = offload::kept(stage, cut.recompute);
    // While a layer runs again it is there in full; with everything kept nothing is added.
    let again = match cut.recompute {
        Recompute::None => 0.0,
        Recompute::Selective => stage.largest.scores,
        Recompute::Cheap => stage.largest.all - stage.largest.cheap,
        Recompute::Full => (stage.largest.all - stage.largest.input).max(0.0),
        Recompute::Reversible => stage.largest.all,
    };
    // What is kept can never exceed keeping everything.
    let activations =
        (held * one * (1.0 + recipe.fragmentation) + again).min(held * stage.kept.all * (1.0 + recipe.fragmentation));
    // Passes from both ends need both ends' weights on every chip; sharded states are divided over the two holders.
    let ends = if cut.schedule == Schedule::DualPipe && cut.pp > 1 { 2.0 } else { 1.0 };
    let states = if cut.sharding == Sharding::None { ends } else { 1.0 };
    let activation_bytes = offload::activations_left(cut, activations, one, stage);
    // What is stored in 4 bits is divided like the rest; adapters stand beside the weights, one matrix is there expanded.
    let less = stage.narrow / (n + e).max(1.0) * (1.0 - NARROW / recipe.weight_bytes);
    let beside = if cut.tuning.is_full() { 0.0 } else { divided(Sharding::Zero3, recipe.weight_bytes) };
    let weights = ends * over(Sharding::Zero3, recipe.weight_bytes, (n, e)) * (1.0 - less);
    let weight_bytes = weights + beside + gathered + 2.0 * stage.largest_matrix;
    // Those of the chunk that micro-batches are going through are whole.
    let chunk = (trained.0 + trained.1) / cut.chunks() as f64;
    let whole = if cut.sharding == Sharding::Zero2 && cut.holds_chunk() { chunk } else { 0.0 };
    let gradient_bytes = ends * divided(Sharding::Zero2, recipe.gradient_bytes) + whole * recipe.gradient_bytes;
    let states = states * divided(Sharding::Zero1, recipe.optimizer_bytes);
    let optimizer_bytes = if cut.offload.optimizer() { 0.0 } else { states };
    let logit_bytes = if stage.is_last { prepared.logits * recipe.logit_bytes } else { 0.0 };
    // Buffers through which gradients of a table pass are there where it has any.
    let table = if cut.tuning.is_full() { stage.largest_table } else { 0.0 };
    let (buffers, reserve) = (table * recipe.vocabulary_bytes, recipe.reserve.get());
    let allocated = weight_bytes + gradient_bytes + optimizer_bytes + activation_bytes + logit_bytes + buffers;
    let (other_bytes, total_bytes) = (buffers + reserve, allocated + reserve);
    StageMemory {
        stage: stage.index,
        layers: stage.layers,
        weight_bytes,
        gradient_bytes,
        optimizer_bytes,
        activation_bytes,
        logit_bytes,
        other_bytes,
        total_bytes,
        allocated,
    }
}

pub fn in_flight(cut: &Cut, stage: u64, micro_batches: u64) -> f64 {
    let (p, r, m, v) = (cut.pp as f64, stage as f64, micro_batches as f64, cut.virtual_stages as f64);
    let wanted = match cut.schedule {
        Schedule::GPipe => m,
        Schedule::OneFOneB | Schedule::ZbH1 if v <= 1.0 => p - r,
        Schedule::Interleaved | Schedule::OneFOneB | Schedule::ZbH1 if p <= 1.0 => 1.0,
        Schedule::Interleaved | Schedule::OneFOneB | Schedule::ZbH1 => ((v - 1.0) * p + 2.0 * (p - r) - 1.0) / v,
        Schedule::ZbH2 => 2.0 * p - 1.0,
        Schedule::Zbv => p,
        Schedule::VHalf => p / 2.0 + 1.0,
        Schedule::VMin => p / 3.0 + 1.0,
        Schedule::DualPipe | Schedule::DualPipeV => p + 1.0,
    };
    wanted.clamp(1.0, m.max(1.0))
}
