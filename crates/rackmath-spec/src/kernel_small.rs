//! Small kernels of particular designs as data: what mixes several residual streams (hyper-connections), and how many
//! kernels an index or a compressed cache adds to a layer; and those of low-rank adapters.
//!
//! What the equations do with it stands in the theory crate's `operator::streams`, `pass` and `adapters` chapters.

use crate::SpecError;
use crate::file::noun::{noun, share};
use rackmath_units::{FlopRate, Fraction, Seconds};
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmallKernels {
    pub as_of: String,
    pub source: String,
    pub launches: Launches,
    pub streams: StreamKernels,
    pub adapters: AdapterKernels,
}

/// Kernels of a layer that neither multiply by weights nor attend, beyond those that every layer has.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launches {
    /// Attention over a window and a compressed cache: norms and rotations there and back, splits joined, copies.
    pub compressed: f64,
    /// Each compressor: its state written, entries made of it, normed, rotated, narrowed and stored.
    pub compressor: f64,
    /// Each index: queries and keys normed, rotated, narrowed and stored, scores, the best of them, where those are kept.
    pub index: f64,
    /// Each index of blocks, whose queries and keys are normed, rotated and stored together with those of attention.
    pub blocks: f64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamKernels {
    /// For few tokens: leaving one sublayer and entering the next are two kernels, with products on plain cores.
    pub fused: Fused,
    /// For many: kernels of their own, which read and write the streams at a share of the bandwidth.
    pub split: Split,
    /// Where neither was built: one kernel for each step of the arithmetic.
    pub unfused: Unfused,
}

/// Kernels that multiply tokens by the low-rank pairs of their adapters.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdapterKernels {
    /// One of the two kernels, replayed, for one token.
    pub floor: Seconds,
    /// Share of the bandwidth they reach.
    #[serde(deserialize_with = "share")]
    pub memory: Fraction,
    /// One tensor from the host to a chip, beyond its bytes.
    pub copy: Seconds,
    /// Share of the bandwidth at which weights of 4 bits are expanded to 16.
    #[serde(deserialize_with = "share")]
    pub expand: Fraction,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fused {
    pub floor: Seconds,
    /// Arithmetic that one core reaches.
    pub core_rate: FlopRate,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    pub floor: Seconds,
    #[serde(deserialize_with = "share")]
    pub memory: Fraction,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unfused {
    /// Generations of chips that run so.
    pub generations: Vec<String>,
    /// Kernels for each round in which the mixing matrix is normalised, and for everything else.
    pub round_kernels: f64,
    pub kernels: f64,
}

pub(crate) fn read(id: &str, text: &str) -> Result<SmallKernels, SpecError> {
    noun(&format!("kernel {id}"), id, text, &["name", "id"])
}
