//! How a training program drives its chips: what it overlaps, what it pays per layer, what it keeps.
//!
//! A stack is a program of a year on a kind of cluster. Shares and times stand here with their evidence; the equations that
//! use them stand in the theory crate's `training` chapter. A constant never belongs to a model or to a row of a table.

use crate::error::one_of;
use crate::file::noun::{noun, one, positive, text, within};
use crate::{Chip, GemmFormat, Math, SpecError};
use rackmath_units::{ByteRate, Bytes, Seconds};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use strum::{Display, IntoStaticStr, VariantArray};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingStack {
    pub id: String,
    pub name: String,
    pub as_of: String,
    /// Where the values come from, one sentence per table of the file.
    #[serde(deserialize_with = "sentences")]
    pub sources: Vec<String>,
    pub attention: AttentionPath,
    pub launch: HostLaunch,
    pub dropout: bool,
    /// Whether stages and chunks may have different numbers of layers without a layout written by hand.
    #[serde(default = "yes")]
    pub uneven: bool,
    pub host: HostTimes,
    pub traffic: TrafficShares,
    pub network: NetworkShares,
    pub memory: MemoryRecipe,
    /// How much longer products take than in a benchmark that runs them alone, by generation of chips and format.
    #[serde(default, rename = "product")]
    pub products: Vec<ProductTimes>,
    /// What fused attention reaches, by generation of chips.
    #[serde(default)]
    pub flash: Vec<FlashShare>,
    /// How well it meets the rows it was fitted on: rows and mean absolute error as a share.
    #[serde(default, deserialize_with = "fit")]
    pub fit: Option<(u64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttentionPath {
    /// Scores are written to memory, normalised and read again.
    Scores,
    /// One fused kernel that keeps scores on the chip.
    Flash,
}

/// Whether the host runs ahead of the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostLaunch {
    /// Kernels queue up: the slower of host and chip counts.
    Ahead,
    /// The host waits for every kernel: their times add up.
    Blocking,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTimes {
    pub forward: Seconds,
    pub backward: Seconds,
    /// More for each further rank of a tensor-parallel group: ranks wait for the slowest.
    pub rank: Seconds,
    /// More for each pass of a layer with experts: routing, permuting, exchanging.
    #[serde(default)]
    pub experts: Seconds,
    /// Embedding, head, loss and bookkeeping of one micro-batch.
    pub head: Seconds,
    pub hop: Seconds,
    /// Whether every transfer drains the chip, so that the next pass waits for its launches.
    pub sync_hops: bool,
    pub step: Seconds,
}

/// Traffic to memory, as multiples of what counting gives or bytes per item.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficShares {
    /// Norms, activations, residuals: time over counted bytes at full bandwidth.
    pub elementwise: f64,
    /// Passes over the attention scores: the same.
    pub scores: f64,
    /// Share of peak the products of scores reach.
    #[serde(deserialize_with = "positive")]
    pub score_product: f64,
    /// The same where the head width is no multiple of eight and the tensor units are missed.
    #[serde(deserialize_with = "positive")]
    pub unaligned_product: f64,
    /// Time of grouped products of experts over that of one product of as many rows.
    #[serde(default = "one", deserialize_with = "positive")]
    pub grouped_product: f64,
    /// Whether a gated expert's products, its function and its casts run as one kernel, so that what lies between is not moved.
    #[serde(default)]
    pub fused_experts: bool,
    /// Bytes moved per logit, forward and backward.
    pub logit_bytes: f64,
    /// Bytes moved per parameter and micro-batch to add up gradients, where it is not part of the product.
    pub accumulate_bytes: f64,
    pub optimizer_bytes: f64,
}

/// Communication: shares of the rate, and how much of it shows.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkShares {
    /// Time of collectives inside a node over what the link's constants say.
    pub scale_up: f64,
    /// Share of the data sheet's rate that reductions between nodes reach.
    #[serde(deserialize_with = "positive")]
    pub scale_out: f64,
    /// The same for a transfer between stages.
    #[serde(deserialize_with = "positive")]
    pub send: f64,
    /// Rate out of a chip to other nodes where the cluster's differs from the chip's usual one.
    pub scale_out_rate: Option<ByteRate>,
    /// Rates of a chip whose file states no link: to the chips beside it, and to other nodes.
    pub unlinked_up: ByteRate,
    pub unlinked_out: ByteRate,
    /// Share of tensor-parallel communication that is not hidden behind products.
    pub tensor_exposed: f64,
    /// Share of a micro-batch's passes that gradient reduction and parameter gathering can hide behind.
    pub data_overlap: f64,
    pub context_exposed: f64,
    pub expert_exposed: f64,
    pub gradient_bytes: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryRecipe {
    pub weight_bytes: f64,
    pub gradient_bytes: f64,
    /// Bytes of optimizer state per parameter, master copy included.
    pub optimizer_bytes: f64,
    pub logit_bytes: f64,
    /// Passing buffers for each parameter of the largest tensor outside the layers.
    pub vocabulary_bytes: f64,
    /// Share added to activations for what the allocator cannot use.
    pub fragmentation: f64,
    /// Context, libraries and communication buffers, whatever the model.
    pub reserve: Bytes,
    /// Whether inputs of products of 8 bits are kept in 8 bits until the backward pass.
    #[serde(default)]
    pub narrow_inputs: bool,
    /// Whether an update works on lists of all tensors at once, as PyTorch's own optimizers do unless told.
    #[serde(default)]
    pub lists: bool,
    /// How the makers measured the memory they printed: whether `reserve` was in it.
    pub reserve_seen: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProductTimes {
    /// Generation of chips, or `any`.
    pub generation: String,
    #[serde(deserialize_with = "text")]
    pub format: TrainingFormat,
    /// Time over that of the kernel alone.
    #[serde(deserialize_with = "positive")]
    pub times: f64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashShare {
    /// Generation of chips, or `any`.
    pub generation: String,
    /// Share of the 16-bit peak, counting the causal half, forward.
    #[serde(deserialize_with = "positive")]
    pub forward: f64,
    /// The same backward, where two and a half times the products are needed.
    #[serde(deserialize_with = "positive")]
    pub backward: f64,
}

/// The format of the matrix products of a training run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum TrainingFormat {
    Bf16,
    /// 16 bits with a short exponent: losses are scaled. As fast as bf16 where a chip has both.
    Fp16,
    /// 8 bits with one scale per tensor.
    Fp8,
    /// 8 bits with a scale per block of 32.
    MxFp8,
    /// 4 bits with a scale per block of 16.
    NvFp4,
}

impl MemoryRecipe {
    /// Bytes in which an input of a product is kept.
    pub fn stored_bytes(&self, format: TrainingFormat) -> f64 {
        if self.narrow_inputs && !format.is_wide() { 1.0 } else { 2.0 }
    }
}

fn yes() -> bool {
    true
}

fn sentences<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    let all = BTreeMap::<String, String>::deserialize(d)?;
    Ok(all.into_iter().map(|(what, source)| format!("{what}: {source}")).collect())
}

fn fit<'de, D: Deserializer<'de>>(d: D) -> Result<Option<(u64, f64)>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Fit {
        rows: u64,
        mape: f64,
    }
    Fit::deserialize(d).map(|fit| Some((fit.rows, fit.mape)))
}

impl TrainingFormat {
    pub fn gemm(self) -> GemmFormat {
        match self {
            Self::Bf16 | Self::Fp16 => GemmFormat::Bf16,
            // Scales are known a step ahead or per block, so the same product with one pass over the activations.
            Self::Fp8 | Self::MxFp8 => GemmFormat::Fp8,
            Self::NvFp4 => GemmFormat::NvFp4,
        }
    }

    /// The arithmetic it is multiplied in.
    pub fn math(self) -> Math {
        if self == Self::Fp16 { Math::Fp16 } else { self.gemm().math() }
    }

    /// Whether the tensor units of a chip multiply it. Scales of blocks of 32 came with 4-bit products: Hopper, Ada and CDNA 3
    /// have 8 bits and no such scales. Source: Transformer Engine's support matrix
    /// (nvidia.github.io/TransformerEngine/support_matrix.html, read 2026-11), which has MXFP8 from compute capability 10.0 on.
    pub fn runs_on(self, chip: &Chip) -> bool {
        let blocks = self != Self::MxFp8 || chip.peak.contains_key(&Math::Fp4);
        blocks && chip.peak.contains_key(&self.math())
    }

    /// Whether it has 16 bits.
    pub fn is_wide(self) -> bool {
        matches!(self, Self::Bf16 | Self::Fp16)
    }

    /// Bytes moved to cast a value of 16 bits for products: read, once more where a scale of the whole tensor has to be found
    /// first, and written by rows for one product and by columns for another, each with its scales. That both copies are
    /// needed and which recipes read twice: Transformer Engine's user guide, low-precision training (read 2026-11).
    pub fn cast_bytes(self) -> f64 {
        match self {
            Self::Bf16 | Self::Fp16 => 0.0,
            Self::Fp8 => 2.0 * 2.0 + 2.0 * 1.0,
            Self::MxFp8 => 2.0 + 2.0 * (1.0 + 1.0 / 32.0),
            Self::NvFp4 => 2.0 * 2.0 + 2.0 * (0.5 + 1.0 / 16.0),
        }
    }

    /// What products stay in that are not narrowed.
    #[must_use]
    pub fn wide(self) -> Self {
        if self == Self::Fp16 { self } else { Self::Bf16 }
    }
}

impl std::str::FromStr for TrainingFormat {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        one_of("training format", text)
    }
}

impl TrainingStack {
    /// How much longer products take than alone; 1 where nobody looked.
    pub fn product_times(&self, chip: &Chip, format: TrainingFormat) -> f64 {
        // Programs were timed in bf16; fp16 runs in the same kernels.
        let format = if format.is_wide() { TrainingFormat::Bf16 } else { format };
        let found = |generation: &str| {
            self.products.iter().find(|p| p.generation == generation && p.format == format).map(|p| p.times)
        };
        found(&chip.generation).or_else(|| found("any")).unwrap_or(1.0)
    }

    /// Whether runs on chips of this generation are among those the constants come from.
    pub fn ran_on(&self, chip: &Chip) -> bool {
        self.products.iter().any(|p| p.generation == chip.generation || p.generation == "any")
    }

    /// Shares of the 16-bit peak that fused attention reaches, forward and backward.
    pub fn flash_share(&self, chip: &Chip) -> (f64, f64) {
        let found =
            |generation: &str| self.flash.iter().find(|f| f.generation == generation).map(|f| (f.forward, f.backward));
        // Half of the peak forward and a little less backward is what published kernels reach on chips of all makers.
        found(&chip.generation).or_else(|| found("any")).unwrap_or((0.5, 0.4))
    }
}

pub fn read(id: &str, text: &str) -> Result<TrainingStack, SpecError> {
    let file = format!("training {id}");
    let stack: TrainingStack = noun(&file, id, text, &[])?;
    let (t, n, m) = (&stack.traffic, &stack.network, &stack.memory);
    let shares = [
        ("network.tensor_exposed", n.tensor_exposed),
        ("network.data_overlap", n.data_overlap),
        ("network.context_exposed", n.context_exposed),
        ("network.expert_exposed", n.expert_exposed),
    ];
    let others = [
        ("traffic.elementwise", t.elementwise),
        ("traffic.scores", t.scores),
        ("traffic.logit_bytes", t.logit_bytes),
        ("traffic.accumulate_bytes", t.accumulate_bytes),
        ("traffic.optimizer_bytes", t.optimizer_bytes),
        ("network.scale_up", n.scale_up),
        ("network.gradient_bytes", n.gradient_bytes),
        ("memory.weight_bytes", m.weight_bytes),
        ("memory.gradient_bytes", m.gradient_bytes),
        ("memory.optimizer_bytes", m.optimizer_bytes),
        ("memory.logit_bytes", m.logit_bytes),
        ("memory.vocabulary_bytes", m.vocabulary_bytes),
        ("memory.fragmentation", m.fragmentation),
    ];
    within(&file, &shares.map(|(field, value)| (field, value, 0.0, 1.0)))?;
    within(&file, &others.map(|(field, value)| (field, value, 0.0, 1e6)))?;
    Ok(stack)
}

#[cfg(test)]
mod tests {
    use super::TrainingFormat;

    #[test]
    fn a_share_beyond_all_and_a_word_nobody_knows_are_refused() {
        let text = include_str!("../../rackmath-catalog/data/training/megatron-2022.toml");
        let wrong = text.replace("tensor_exposed = 1.0", "tensor_exposed = 1.5");
        assert!(super::read("x", &wrong).unwrap_err().to_string().contains("0 to 1"));
        let wrong = text.replace("attention = \"scores\"", "attention = \"magic\"");
        assert!(super::read("x", &wrong).unwrap_err().to_string().contains("scores or flash"));
        assert!("fp7".parse::<TrainingFormat>().unwrap_err().to_string().contains("fp8"));
    }
}
