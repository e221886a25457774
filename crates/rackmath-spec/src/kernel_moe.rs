//! What a fused expert layer reaches on a chip: constants by kernel family, number format and chip generation.

use crate::{Chip, Dtype, Math, SpecError};
use rackmath_units::{ByteRate, Fraction, Seconds};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Formats of weights and activations that expert kernels exist for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MoeFormat {
    /// bfloat16 throughout.
    Bf16,
    /// FP8 with one scale per tensor.
    Fp8,
    /// FP8 with block scales.
    Fp8Block,
    /// NVFP4 weights and activations.
    NvFp4,
    /// MXFP4 weights, 16-bit activations.
    MxFp4A16,
    /// MXFP4 weights, MXFP8 activations.
    MxFp4A8,
    /// INT4 weights, 16-bit activations.
    Int4A16,
}

impl MoeFormat {
    /// Every format, widest first.
    pub const ALL: [Self; 7] =
        [Self::Bf16, Self::Fp8, Self::Fp8Block, Self::NvFp4, Self::MxFp4A16, Self::MxFp4A8, Self::Int4A16];

    /// The word used in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
            Self::Fp8Block => "fp8-block",
            Self::NvFp4 => "nvfp4",
            Self::MxFp4A16 => "mxfp4-a16",
            Self::MxFp4A8 => "mxfp4-a8",
            Self::Int4A16 => "int4-a16",
        }
    }

    pub fn weight(self) -> Dtype {
        match self {
            Self::Bf16 => Dtype::Bf16,
            Self::Fp8 => Dtype::Fp8,
            Self::Fp8Block => Dtype::Fp8Block,
            Self::NvFp4 => Dtype::NvFp4,
            Self::MxFp4A16 | Self::MxFp4A8 => Dtype::MxFp4,
            Self::Int4A16 => Dtype::Int4,
        }
    }

    /// How the inputs of the products are stored.
    pub fn activation(self) -> Dtype {
        match self {
            Self::Bf16 | Self::MxFp4A16 | Self::Int4A16 => Dtype::Bf16,
            Self::Fp8 | Self::Fp8Block => Dtype::Fp8,
            Self::NvFp4 => Dtype::NvFp4,
            Self::MxFp4A8 => Dtype::MxFp8,
        }
    }

    /// The arithmetic of the products: that of the wider operand.
    pub fn math(self) -> Math {
        match self {
            Self::Bf16 | Self::MxFp4A16 | Self::Int4A16 => Math::Bf16,
            Self::Fp8 | Self::Fp8Block | Self::MxFp4A8 => Math::Fp8,
            Self::NvFp4 => Math::Fp4,
        }
    }
}

impl fmt::Display for MoeFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for MoeFormat {
    type Err = SpecError;

    /// Reads our names and those of aiconfigurator's tables.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        Ok(match text.trim().to_ascii_lowercase().replace('_', "-").as_str() {
            "bf16" | "bfloat16" => Self::Bf16,
            "fp8" => Self::Fp8,
            "fp8-block" => Self::Fp8Block,
            "nvfp4" => Self::NvFp4,
            "mxfp4-a16" | "w4a16-mxfp4" => Self::MxFp4A16,
            "mxfp4-a8" | "w4a8-mxfp4-mxfp8" => Self::MxFp4A8,
            "int4-a16" | "int4-wo" => Self::Int4A16,
            _ => return Err(SpecError::unknown("expert format", text, Self::ALL.iter().map(|f| f.name()))),
        })
    }
}

/// Which rows of activations a kernel moves between its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MoeRows {
    /// Those routed to this rank's experts.
    Routed,
    /// All choices of all tokens, those of other ranks included.
    All,
}

/// How the last-level cache takes part.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheUse {
    /// Share of the cache below which everything stays resident.
    pub share: f64,
    /// Further share over which residency is lost.
    pub ramp: f64,
    pub per_core: ByteRate,
}

/// The constants of one kernel on one generation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoeKernel {
    /// Routing, permuting, two products, activation, finalising: their launches together.
    pub launch: Seconds,
    /// Set-up for each expert of the rank, touched or not.
    pub per_expert: Seconds,
    /// Share of the dense peak that full tiles reach.
    pub compute: Fraction,
    /// Share of the bandwidth at which weights are read.
    pub memory: Fraction,
    /// Share of the bandwidth at which activations move.
    pub activation: Fraction,
    /// Rows of a tile: an expert's tokens are padded to a multiple.
    pub tile: f64,
    pub columns: f64,
    /// Waves lost because the last one is not full.
    pub tail: f64,
    /// Sharpness of the roofline's corner.
    pub corner: f64,
    /// Which rows of activations move.
    pub rows: MoeRows,
    /// Rows to which every local expert's intermediate activations are padded; 0 for none.
    pub padded: f64,
    pub cache: CacheUse,
}

/// How well constants describe the rows they were fitted on, as |ln(predicted / measured)|.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoeResidual {
    pub rows: u64,
    /// Half of the rows are nearer.
    pub median: f64,
    /// Nine in ten are nearer.
    pub p90: f64,
}

/// Fitted constants with the key they hold for.
#[derive(Clone, Debug, PartialEq)]
pub struct MoeFit {
    pub generation: String,
    pub format: MoeFormat,
    /// The constants.
    pub kernel: MoeKernel,
    /// How well they fit.
    pub residual: MoeResidual,
}

/// How near the constants found are to those asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoeMatch {
    /// Fitted on this generation and format.
    Exact,
    /// Fitted on another generation.
    Generation,
    /// Fitted on another format.
    Format,
    /// The default: nothing of this family was measured.
    Default,
}

/// Constants and how far to trust them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoeFound {
    /// The constants.
    pub kernel: MoeKernel,
    /// How near they are.
    pub matched: MoeMatch,
    /// Nine in ten times should lie within this |ln(predicted / measured)|.
    pub spread: f64,
}

/// Chips of a generation that run another generation's kernels.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandIn {
    pub generation: String,
    /// How the name of their memory begins.
    pub memory: String,
    /// The generation whose constants they take.
    pub like: String,
}

/// All measured expert kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct MoeKernels {
    /// Year and month of the fit.
    pub as_of: String,
    /// Where the measurements come from.
    pub source: String,
    pub families: BTreeMap<String, Vec<MoeFit>>,
    /// Chips that go with another generation.
    pub stand_ins: Vec<StandIn>,
    /// For families that were not measured, with its spread.
    pub default: (MoeKernel, f64),
}

/// NVIDIA's generations in the order of their tensor units, so that the nearest one can stand in.
const GENERATIONS: [&str; 4] = ["ampere", "ada", "hopper", "blackwell"];

impl MoeKernels {
    pub fn on(&self, family: &str, format: MoeFormat, chip: &Chip) -> Result<MoeFound, SpecError> {
        self.find(family, format, self.generation(chip))
    }

    pub fn generation<'a>(&'a self, chip: &'a Chip) -> &'a str {
        let is_like = |s: &&StandIn| s.generation == chip.generation && chip.memory.kind.starts_with(&s.memory);
        self.stand_ins.iter().find(is_like).map_or(&chip.generation, |s| &s.like)
    }

    /// The constants for a family, format and generation, or the nearest measured ones of the family: another generation
    /// before another format. `default` names the default.
    pub fn find(&self, family: &str, format: MoeFormat, generation: &str) -> Result<MoeFound, SpecError> {
        let default = MoeFound { kernel: self.default.0, matched: MoeMatch::Default, spread: self.default.1 };
        if family == "default" {
            return Ok(default);
        }
        let names = || self.families.keys().map(String::as_str).chain(std::iter::once("default"));
        let fits = self.families.get(family).ok_or_else(|| SpecError::unknown("expert kernel", family, names()))?;
        let far = |fit: &MoeFit| (unlike(fit.format, format), years(&fit.generation, generation));
        let Some(fit) = fits.iter().min_by_key(|fit| far(fit)) else { return Ok(default) };
        // Measured p90: 0.33 where fitted, 0.49 with the generation left out, 0.80 with the format left out.
        let (matched, wider) = match far(fit) {
            (0, 0) => (MoeMatch::Exact, 1.0),
            (0, _) => (MoeMatch::Generation, 1.5),
            _ => (MoeMatch::Format, 2.5),
        };
        Ok(MoeFound { kernel: fit.kernel, matched, spread: fit.residual.p90 * wider })
    }
}

/// 0 for the same format, 1 for the same arithmetic, 2 otherwise.
fn unlike(a: MoeFormat, b: MoeFormat) -> u64 {
    u64::from(a != b) + u64::from(a.math() != b.math())
}

/// Generations between two; a stranger is as far as can be.
fn years(a: &str, b: &str) -> u64 {
    let rank = |g: &str| GENERATIONS.iter().position(|known| *known == g);
    match (rank(a), rank(b)) {
        _ if a == b => 0,
        (Some(a), Some(b)) => a.abs_diff(b) as u64,
        _ => GENERATIONS.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_reads_back() {
        for format in MoeFormat::ALL {
            assert_eq!(format.name().parse::<MoeFormat>().unwrap(), format);
        }
        assert!("nvpf4".parse::<MoeFormat>().unwrap_err().to_string().contains("nvfp4"));
    }
}
