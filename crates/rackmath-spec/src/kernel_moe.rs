//! What a fused expert layer reaches on a chip: constants by kernel family, number format and chip generation.

use crate::error::one_of;
use crate::file::noun::{least_one, noun, share, text, within};
use crate::{Chip, Dtype, Math, Residual, SpecError};
use rackmath_units::{ByteRate, Fraction, Seconds};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::str::FromStr;
use strum::{Display, IntoStaticStr, VariantArray};

/// Formats of weights and activations that expert kernels exist for, widest first; `A16` are 16-bit activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum MoeFormat {
    Bf16,
    /// One scale per tensor.
    Fp8,
    #[strum(serialize = "fp8-block")]
    Fp8Block,
    NvFp4,
    #[strum(serialize = "mxfp4-a16")]
    MxFp4A16,
    /// MXFP8 activations.
    #[strum(serialize = "mxfp4-a8")]
    MxFp4A8,
    #[strum(serialize = "int4-a16")]
    Int4A16,
}

impl MoeFormat {
    /// How weights and activations are stored, and the arithmetic of the products: that of the wider operand.
    fn operands(self) -> (Dtype, Dtype, Math) {
        match self {
            Self::Bf16 => (Dtype::Bf16, Dtype::Bf16, Math::Bf16),
            Self::Fp8 => (Dtype::Fp8, Dtype::Fp8, Math::Fp8),
            Self::Fp8Block => (Dtype::Fp8Block, Dtype::Fp8, Math::Fp8),
            Self::NvFp4 => (Dtype::NvFp4, Dtype::NvFp4, Math::Fp4),
            Self::MxFp4A16 => (Dtype::MxFp4, Dtype::Bf16, Math::Bf16),
            Self::MxFp4A8 => (Dtype::MxFp4, Dtype::MxFp8, Math::Fp8),
            Self::Int4A16 => (Dtype::Int4, Dtype::Bf16, Math::Bf16),
        }
    }

    pub fn weight(self) -> Dtype {
        self.operands().0
    }

    pub fn activation(self) -> Dtype {
        self.operands().1
    }

    pub fn math(self) -> Math {
        self.operands().2
    }
}

impl FromStr for MoeFormat {
    type Err = SpecError;

    /// Reads our names and those of aiconfigurator's tables.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        match text.trim().to_ascii_lowercase().replace('_', "-").as_str() {
            "bfloat16" => Ok(Self::Bf16),
            "w4a16-mxfp4" => Ok(Self::MxFp4A16),
            "w4a8-mxfp4-mxfp8" => Ok(Self::MxFp4A8),
            "int4-wo" => Ok(Self::Int4A16),
            word => one_of("expert format", word),
        }
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheUse {
    /// Share of the cache below which everything stays resident.
    pub share: f64,
    /// Further share over which residency is lost.
    pub ramp: f64,
    pub per_core: ByteRate,
}

/// The constants of one kernel on one generation; those that are skipped are shared by all kernels or by a family.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct MoeKernel {
    /// Routing, permuting, two products, activation, finalising: their launches together.
    pub launch: Seconds,
    /// Set-up for each expert of the rank, touched or not.
    pub per_expert: Seconds,
    /// Share of the dense peak that full tiles reach.
    #[serde(deserialize_with = "share")]
    pub compute: Fraction,
    /// Share of the bandwidth at which weights are read.
    #[serde(deserialize_with = "share")]
    pub memory: Fraction,
    /// Share of the bandwidth at which activations move.
    #[serde(deserialize_with = "share")]
    pub activation: Fraction,
    /// Rows of a tile: an expert's tokens are padded to a multiple.
    #[serde(deserialize_with = "least_one")]
    pub tile: f64,
    #[serde(skip)]
    pub columns: f64,
    /// Waves lost because the last one is not full.
    #[serde(skip)]
    pub tail: f64,
    #[serde(skip)]
    pub corner: f64,
    pub rows: MoeRows,
    /// Rows to which every local expert's intermediate activations are padded; 0 for none.
    #[serde(skip)]
    pub padded: f64,
    #[serde(skip)]
    pub cache: CacheUse,
}

/// Fitted constants with the key they hold for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoeFit {
    pub generation: String,
    #[serde(deserialize_with = "text")]
    pub format: MoeFormat,
    #[serde(flatten)]
    pub kernel: MoeKernel,
    #[serde(rename = "fit")]
    pub residual: Residual,
}

/// How near the constants found are to those asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoeMatch {
    Exact,
    Generation,
    Format,
    /// The default: nothing of this family was measured.
    Default,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoeFound {
    pub kernel: MoeKernel,
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
    #[serde(alias = "uses")]
    pub like: String,
}

impl StandIn {
    /// The generation whose constants a chip takes: its own unless a rule says otherwise.
    pub(crate) fn generation<'a>(rules: &'a [Self], chip: &'a Chip) -> &'a str {
        let holds = |s: &&Self| s.generation == chip.generation && chip.memory.kind.starts_with(&s.memory);
        rules.iter().find(holds).map_or(&chip.generation, |s| &s.like)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct MoeKernels {
    pub as_of: String,
    pub source: String,
    pub families: BTreeMap<String, Vec<MoeFit>>,
    pub stand_ins: Vec<StandIn>,
    /// For families that were not measured, with its spread.
    pub default: (MoeKernel, f64),
    pub popularity: Popularity,
}

/// How unlike experts are in the tokens they get: the standard deviation over the mean.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Popularity {
    /// As the tokens of ranks tell.
    pub ranks: f64,
    /// The same with copies of the busiest, dealt out so that ranks are alike.
    pub copied: f64,
    /// As the experts that a small batch touches tell.
    pub touched: f64,
}

/// NVIDIA's generations in the order of their tensor units, so that the nearest one can stand in.
const GENERATIONS: [&str; 5] = ["ampere", "ada", "blackwell-gddr", "hopper", "blackwell"];

impl MoeKernels {
    pub fn on(&self, family: &str, format: MoeFormat, chip: &Chip) -> Result<MoeFound, SpecError> {
        self.find(family, format, self.generation(chip))
    }

    pub fn generation<'a>(&'a self, chip: &'a Chip) -> &'a str {
        StandIn::generation(&self.stand_ins, chip)
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    as_of: String,
    source: String,
    #[serde(deserialize_with = "least_one")]
    corner: f64,
    tail: f64,
    #[serde(deserialize_with = "least_one")]
    columns: f64,
    cache: CacheUse,
    #[serde(default)]
    stand_in: Vec<StandIn>,
    family: BTreeMap<String, Family>,
    default: Fallback,
    popularity: Popularity,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    #[serde(default)]
    padded: f64,
    fit: Vec<MoeFit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fallback {
    #[serde(flatten)]
    kernel: MoeKernel,
    spread: f64,
}

pub(crate) fn read(id: &str, text: &str) -> Result<MoeKernels, SpecError> {
    let file = format!("kernel {id}");
    let explains =
        ["id", "name", "form", "cache.note", "stand_in.why", "family.*.note", "default.rule", "popularity.source"];
    let File { as_of, source, corner, tail, columns, cache, stand_in: stand_ins, family, default, popularity } =
        noun(&file, id, text, &explains)?;
    let mut numbers = vec![
        ("tail", tail, 0.0, 1e9),
        ("cache.share", cache.share, 0.0, 1e9),
        ("cache.ramp", cache.ramp, 0.01, 1e9),
        ("default.spread", default.spread, 0.0, 1e9),
        ("popularity.ranks", popularity.ranks, 0.0, 100.0),
        ("popularity.copied", popularity.copied, 0.0, 100.0),
        ("popularity.touched", popularity.touched, 0.0, 100.0),
    ];
    numbers.extend(family.values().map(|family| ("family.padded", family.padded, 0.0, 1e9)));
    within(&file, &numbers)?;
    let whole = |kernel: MoeKernel, padded: f64| MoeKernel { columns, tail, corner, padded, cache, ..kernel };
    let fits = |Family { padded, fit }: Family| {
        fit.into_iter().map(|fit| MoeFit { kernel: whole(fit.kernel, padded), ..fit }).collect()
    };
    let families = family.into_iter().map(|(name, family)| (name, fits(family))).collect();
    Ok(MoeKernels {
        as_of,
        source,
        families,
        stand_ins,
        default: (whole(default.kernel, 0.0), default.spread),
        popularity,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_reads_back() {
        for format in MoeFormat::VARIANTS {
            assert_eq!(format.to_string().parse::<MoeFormat>().unwrap(), *format);
        }
        assert!("nvpf4".parse::<MoeFormat>().unwrap_err().to_string().contains("nvfp4"));
    }
}
