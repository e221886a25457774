//! A training step: what each chip holds, how long the step takes, and which layout is best.
//!
//! $$ T = m\,t_{max} + \frac{p-1}{v}\,t_{mid} + t_{reduce} + t_{update} + t_0 \qquad t_{stage} = \sum_{layers} (F + R + B) + \text{head} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | m | micro_batches | 1 | micro-batches of a step: B / (b d) |
//! | p, v | pp, virtual_stages | 1 | pipeline stages, chunks of layers on each |
//! | t, c, d, e | tp, cp, dp, ep | 1 | tensor, context, data and expert parallel degrees |
//! | b, s | micro_batch, sequence | 1 | sequences of a micro-batch, tokens of a sequence |
//! | F, B, R | forward, backward, recompute | s | passes of one layer, [`layer`] |
//! | t_reduce, t_update | reduce, update | s | gradients over copies of the model, the optimizer, [`step`] |
//!
//! [`work`] says what a block multiplies, moves and keeps; [`machine`] how fast the chip and its links do that; [`layer`]
//! the time of a layer; [`memory`] what a stage holds; [`step`] the whole step; [`search`] the best of all layouts;
//! [`mfu`] the conventions by which people count FLOP; [`offload`] what may wait in the host's memory; [`tuning`] what of the
//! model is trained; [`peaks`] memory outside the steady step.
//!
//! Assumes: every stage of a pipeline runs the same micro-batches; experts are evenly loaded.
//! Ignores: failures, data loading, stragglers. Source: Narayanan 2021 (arXiv 2104.04473), Korthikanti 2022 (arXiv
//! 2205.05198), Rajbhandari 2020 (ZeRO, arXiv 1910.02054); constants in `catalog/training`.

pub mod forensics;
pub mod goodput;
pub mod layer;
pub mod legal;
pub mod lifecycle;
pub mod machine;
pub mod memory;
pub mod mfu;
pub mod offload;
pub mod peaks;
pub mod reversible;
pub mod rollout;
pub mod scaling;
pub mod search;
pub mod step;
pub mod tuning;
pub mod work;

#[cfg(test)]
mod mfu_tests;
#[cfg(test)]
mod tests;

pub use offload::Offload;
pub use tuning::Tuning;

use crate::pipeline::Schedule;
use rackmath_spec::TrainingFormat;
use rackmath_spec::layout::Degrees;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;
use strum::{Display, VariantArray};

/// What is divided over the copies of the model.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, VariantArray, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Sharding {
    /// Nothing: every copy has all states.
    #[serde(alias = "zero0", alias = "ddp")]
    None,
    /// Optimizer states (ZeRO-1, Megatron's distributed optimizer).
    Zero1,
    /// Optimizer states and gradients.
    Zero2,
    /// These and the weights, gathered layer by layer (ZeRO-3, FSDP).
    #[serde(alias = "fsdp")]
    Zero3,
}

/// What is computed a second time instead of being kept.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, VariantArray, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Recompute {
    /// Nothing.
    #[serde(alias = "off")]
    None,
    /// Attention scores.
    Selective,
    /// What takes little time: scores, norms, activation functions, and queries, keys and values from their latents.
    Cheap,
    /// Every layer from its input.
    Full,
    /// Every layer from its output: a model of reversible blocks, which keeps nothing from layer to layer.
    Reversible,
}

impl Recompute {
    /// Those any model can be trained with.
    pub const USUAL: [Self; 4] = [Self::None, Self::Selective, Self::Cheap, Self::Full];
}

/// How layers are dealt to pipeline stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spread {
    /// As evenly as can be; what is left over goes to stages before the last.
    Even,
    /// Embedding and head count as a layer each, so that the first and the last stage have one layer less.
    EndsLighter,
}

impl Spread {
    /// Layers counted by this rule.
    pub fn counted(self, layers: u64) -> u64 {
        layers + if self == Self::EndsLighter { 2 } else { 0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cut {
    pub degrees: Degrees,
    pub schedule: Schedule,
    pub spread: Spread,
    pub micro_batch: u64,
    pub sharding: Sharding,
    pub recompute: Recompute,
    pub offload: Offload,
    pub tuning: Tuning,
}

impl Default for Cut {
    fn default() -> Self {
        Self {
            degrees: Degrees { sequence_parallel: true, ..Degrees::default() },
            schedule: Schedule::OneFOneB,
            spread: Spread::Even,
            micro_batch: 1,
            sharding: Sharding::Zero1,
            recompute: Recompute::None,
            offload: Offload::None,
            tuning: Tuning::Full,
        }
    }
}

/// A cut's degrees are read as its own.
impl Deref for Cut {
    type Target = Degrees;

    fn deref(&self) -> &Degrees {
        &self.degrees
    }
}

impl Cut {
    pub fn chips(&self) -> u64 {
        self.tp * self.cp * self.pp * self.dp
    }

    /// Micro-batches of a step of so many sequences; nothing when they do not come out even.
    pub fn micro_batches(&self, global_batch: u64) -> Option<u64> {
        let each = self.micro_batch.checked_mul(self.dp)?;
        (each > 0 && global_batch > 0 && global_batch.is_multiple_of(each)).then(|| global_batch / each)
    }

    /// Chunks of layers per stage, where the schedule leaves a choice or not.
    pub fn chunks(&self) -> u64 {
        self.schedule.fixed_chunks().map_or(self.virtual_stages, |n| self.virtual_stages.max(n as u64)).max(1)
    }

    /// Whether contiguous micro-batches go through one chunk of layers after another.
    pub fn holds_chunk(&self) -> bool {
        self.schedule == Schedule::Interleaved && self.chunks() > 1
    }

    pub fn expert_copies(&self) -> f64 {
        (self.tp * self.cp * self.dp) as f64 / (self.ep * self.etp) as f64
    }
}

impl fmt::Display for Cut {
    /// "tp8 pp12 dp4 b2 zero1 full recompute".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let degrees = [self.tp, self.cp, self.pp, self.virtual_stages, self.dp, self.ep, self.etp];
        let named = ["tp", "cp", "pp", "v", "dp", "ep", "etp"].into_iter().zip(degrees);
        let mut words: Vec<String> = named.filter(|(_, n)| *n != 1).map(|(name, n)| format!("{name}{n}")).collect();
        words.push(format!("b{}", self.micro_batch));
        if self.sharding != Sharding::None {
            words.push(self.sharding.to_string());
        }
        if !matches!(self.schedule, Schedule::OneFOneB | Schedule::Interleaved) {
            words.push(self.schedule.to_string());
        }
        match self.recompute {
            Recompute::None => {}
            Recompute::Reversible => words.push("reversible blocks".into()),
            some => words.push(format!("{some} recompute")),
        }
        if self.spread == Spread::EndsLighter {
            words.push("lighter ends".into());
        }
        if self.tp > 1 && !self.sequence_parallel {
            words.push("no sequence parallel".into());
        }
        if let Tuning::Adapters { rank, narrow, .. } = self.tuning {
            words.push(format!("{} rank {rank}", if narrow { "QLoRA" } else { "LoRA" }));
        }
        match self.offload {
            Offload::None => {}
            Offload::Both => words.push("optimizer and activations offloaded".into()),
            one => words.push(format!("{one} offloaded")),
        }
        f.pad(&words.join(" "))
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    pub shape: &'a rackmath_spec::model::Shape,
    pub sequence: u64,
    pub global_batch: u64,
    pub format: TrainingFormat,
}
