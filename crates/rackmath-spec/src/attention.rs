//! How engines run attention on a kind of chip: floors, block times and shares of the data sheet, with their evidence.
//!
//! A constant belongs to a chip generation, an engine's kernels and the format of the cache, never to a chip or to a row of
//! a table. What the equations do with it stands in the theory crate's `operator::attention` chapter.

use crate::file::noun::{cited, least_one, one, positive, share, text};
use crate::{Chip, Dtype, PowerRule, Residual, SpecError, StandIn};
use rackmath_units::{ByteRate, Fraction, Seconds};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// The attention kernels of one file: grouped-query attention, or multi-head latent attention.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttentionKernels {
    pub id: String,
    pub name: String,
    pub as_of: String,
    /// Chips that run another generation's kernels.
    #[serde(default)]
    pub alike: Vec<StandIn>,
    /// Share of the last-level cache that a working set may fill and still stay, by generation.
    cache_share: BTreeMap<String, f64>,
    /// How prompts carry over to other chips of a generation.
    #[serde(default)]
    products: BTreeMap<String, Products>,
    /// Of sparse attention.
    pub index: Option<Index>,
    pub decode: Vec<AttentionKernel<DecodeConstants>>,
    pub prefill: Vec<AttentionKernel<PrefillConstants>>,
}

/// One kernel: what it is for, its constants, why they are believed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttentionKernel<C> {
    /// Chip generation; `default` for those nobody measured.
    pub generation: String,
    /// Engine, or engine and kernel library: vllm, sglang, trtllm, sglang-flashinfer, torch-flash.
    pub backend: String,
    #[serde(default)]
    pub heads: Heads,
    #[serde(rename = "math", deserialize_with = "narrow")]
    pub math8: bool,
    #[serde(rename = "kv", deserialize_with = "narrow")]
    pub kv8: bool,
    #[serde(flatten)]
    pub constants: C,
    /// The measurements, or the rule of an extrapolation.
    pub source: String,
    /// None for an extrapolation.
    pub fit: Option<Residual>,
}

/// Which models a kernel is for: engines take another kernel when no heads are shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Heads {
    #[default]
    #[serde(skip)]
    Any,
    Single,
    Grouped,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct DecodeConstants {
    /// Paid however small the work.
    pub floor: Seconds,
    /// A core's time for a block of work that reads next to nothing.
    pub block: Seconds,
    /// Query heads that cost a block as much again as the block itself.
    #[serde(deserialize_with = "positive")]
    pub block_rows: f64,
    /// Query heads one tile of products holds; a tile with fewer costs as much as a full one. One pads nothing.
    #[serde(default = "one", deserialize_with = "least_one")]
    pub tile_rows: f64,
    #[serde(deserialize_with = "share")]
    pub compute: Fraction,
    /// Share of the bandwidth of a long read.
    #[serde(deserialize_with = "share")]
    pub memory: Fraction,
    /// What filling and draining the memory pipeline adds to a long read.
    pub ramp: Seconds,
    /// What one core reads from the last-level cache.
    pub cache_rate: ByteRate,
    /// What one core reads at most when few work.
    pub core_rate: ByteRate,
    /// Parts a sequence's cache is cut into at most, so that idle cores help.
    #[serde(deserialize_with = "least_one")]
    pub splits: f64,
    /// Of the file's, that of the generation.
    #[serde(skip)]
    pub cache_share: f64,
    /// How sharp the corner between compute and memory is.
    #[serde(deserialize_with = "least_one")]
    pub corner: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct PrefillConstants {
    /// Paid however small the work.
    pub floor: Seconds,
    /// A core's time for starting and ending a tile.
    pub block: Seconds,
    #[serde(deserialize_with = "least_one")]
    pub tile: f64,
    #[serde(deserialize_with = "share")]
    pub compute: Fraction,
    #[serde(deserialize_with = "share")]
    pub memory: Fraction,
    /// What one core reads from the last-level cache.
    pub cache_rate: ByteRate,
    /// Of the file's, that of the generation.
    #[serde(skip)]
    pub cache_share: f64,
    /// How sharp the corner between compute and memory is.
    #[serde(deserialize_with = "least_one")]
    pub corner: f64,
}

/// What of a prompt's kernel follows the tensor cores, and what the rest of a core.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Products {
    /// Share of the peak that the products alone would reach on the chip that was measured.
    #[serde(deserialize_with = "share")]
    pub share: Fraction,
    /// Cores of that chip.
    #[serde(deserialize_with = "least_one")]
    pub cores: f64,
    pub power: PowerRule,
    pub source: String,
}

/// The kernels that pick what sparse attention reads, and read it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Share of the peak that scores of prompts reach, in 8 bits where the chip multiplies in them.
    #[serde(deserialize_with = "share")]
    pub compute: Fraction,
    /// Query heads the prompts' kernel computes at least, by generation.
    heads: BTreeMap<String, f64>,
    pub source: String,
}

#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub backend: &'a str,
    pub math: Dtype,
    pub kv: Dtype,
    pub group: u64,
}

/// The generation of chips nobody measured.
pub const DEFAULT: &str = "default";

impl AttentionKernels {
    pub fn decode(&self, chip: &Chip, wanted: Wanted<'_>) -> &AttentionKernel<DecodeConstants> {
        nearest(&self.decode, self.generation(chip), wanted)
    }

    pub fn prefill(&self, chip: &Chip, wanted: Wanted<'_>) -> &AttentionKernel<PrefillConstants> {
        nearest(&self.prefill, self.generation(chip), wanted)
    }

    /// The rule by which a generation's prompts carry over to this chip of it.
    pub fn products(&self, chip: &Chip) -> Option<&Products> {
        self.products.get(self.generation(chip))
    }

    /// Query heads that a prompt's kernel of sparse attention computes at least.
    pub fn least_heads(&self, chip: &Chip) -> f64 {
        self.index.as_ref().and_then(|i| i.heads.get(self.generation(chip))).copied().unwrap_or(1.0)
    }

    pub fn generation<'a>(&'a self, chip: &'a Chip) -> &'a str {
        StandIn::generation(&self.alike, chip)
    }
}

/// The generation decides, else the default; then the engine, the formats, the heads. The reader saw to a default.
fn nearest<'a, C>(kernels: &'a [AttentionKernel<C>], generation: &str, wanted: Wanted<'_>) -> &'a AttentionKernel<C> {
    let (math8, kv8) = (wanted.math.bits() < 12.0, wanted.kv.bits() < 12.0);
    let score = |k: &AttentionKernel<C>| {
        let heads = match k.heads {
            Heads::Any => true,
            Heads::Single => wanted.group == 1,
            Heads::Grouped => wanted.group > 1,
        };
        let same = [k.generation == generation, k.generation == DEFAULT, k.backend == wanted.backend];
        let formats = [k.math8 == math8, k.kv8 == kv8, heads];
        same.into_iter().chain(formats).fold(0_u32, |sum, same| 2 * sum + u32::from(same))
    };
    // The first of the best, so that the order of the file breaks ties.
    let best = kernels.iter().map(score).max();
    kernels.iter().find(|k| Some(score(k)) == best).expect("the reader saw to a default")
}

fn narrow<'de, D: Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
    text::<D, Dtype>(d).map(|format| format.bits() < 12.0)
}

pub fn read(id: &str, text: &str) -> Result<AttentionKernels, SpecError> {
    let file = format!("kernel {id}");
    let mut kernels: AttentionKernels = cited(&file, id, text, &["alike.why"])?;
    let shares = &kernels.cache_share;
    let share = |generation: &str| {
        let share = shares.get(generation).or(shares.get(DEFAULT)).copied().unwrap_or(f64::NAN);
        let good = share.is_finite() && share > 0.0;
        if good { Ok(share) } else { Err(SpecError::field(&file, "cache_share", share, "a positive number")) }
    };
    for kernel in &mut kernels.decode {
        kernel.constants.cache_share = share(&kernel.generation)?;
    }
    for kernel in &mut kernels.prefill {
        kernel.constants.cache_share = share(&kernel.generation)?;
    }
    let (decode, prefill) = (&kernels.decode, &kernels.prefill);
    if decode.iter().any(|k| k.generation == DEFAULT) && prefill.iter().any(|k| k.generation == DEFAULT) {
        return Ok(kernels);
    }
    Err(SpecError::field(&file, "generation", "none", "one \"default\" for each phase"))
}
