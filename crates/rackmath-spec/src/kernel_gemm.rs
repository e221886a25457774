//! Constants of matrix-product kernels as data: what a kernel family reaches on a class of chips in a number format.
//!
//! A class is a chip generation; the workstation parts of a generation, with GDDR memory and another tensor core, are a class
//! of their own where there is one (`blackwell-gddr`). A chip of no class with constants takes those of class `default`.

use crate::error::one_of;
use crate::file::noun::{cited, gb_per_s, ns, text, us, within};
use crate::{Chip, Dtype, Math, Residual, SpecError};
use rackmath_units::{ByteRate, BytesPerParam, FlopRate, Seconds, Watts};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::str::FromStr;
use strum::{Display, IntoStaticStr, VariantArray};

/// The number formats of the two operands of a product, widest first; the same on both sides unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum GemmFormat {
    Bf16,
    /// One scale per tensor or row.
    Fp8,
    /// Weight scales per 128 x 128 block and activation scales per 128 values.
    #[strum(serialize = "fp8-block")]
    Fp8Block,
    #[strum(serialize = "nvfp4")]
    NvFp4,
    /// SmoothQuant.
    Int8,
    /// INT8 weights, 16-bit activations and arithmetic.
    #[strum(serialize = "weight-int8")]
    WeightInt8,
    /// INT4 weights, 16-bit activations and arithmetic.
    #[strum(serialize = "weight-int4")]
    WeightInt4,
}

impl GemmFormat {
    /// The kernels that multiply weights of a storage format by 16-bit or equally narrow activations.
    pub fn of(weights: Dtype) -> Self {
        match weights {
            Dtype::Fp32 | Dtype::Bf16 | Dtype::Fp16 => Self::Bf16,
            Dtype::Fp8 => Self::Fp8,
            Dtype::Fp8Block | Dtype::MxFp8 | Dtype::MxFp6 => Self::Fp8Block,
            Dtype::Fp4 | Dtype::MxFp4 | Dtype::NvFp4 => Self::NvFp4,
            Dtype::Int8 => Self::Int8,
            Dtype::Int4 | Dtype::Int4G32 => Self::WeightInt4,
            // No kernel of llama.cpp is measured; those of the nearest width expand weights to 16 bits as it does.
            Dtype::Gguf(_) | Dtype::Mixed(_) if weights.bits() < 6.0 => Self::WeightInt4,
            Dtype::Gguf(_) | Dtype::Mixed(_) => Self::WeightInt8,
        }
    }

    /// How weights and activations are stored, and the arithmetic of the product.
    fn operands(self) -> (Dtype, Dtype, Math) {
        match self {
            Self::Bf16 => (Dtype::Bf16, Dtype::Bf16, Math::Bf16),
            Self::Fp8 => (Dtype::Fp8, Dtype::Fp8, Math::Fp8),
            Self::Fp8Block => (Dtype::Fp8Block, Dtype::Fp8Block, Math::Fp8),
            Self::NvFp4 => (Dtype::NvFp4, Dtype::NvFp4, Math::Fp4),
            Self::Int8 => (Dtype::Int8, Dtype::Int8, Math::Int8),
            Self::WeightInt8 => (Dtype::Int8, Dtype::Bf16, Math::Bf16),
            Self::WeightInt4 => (Dtype::Int4, Dtype::Bf16, Math::Bf16),
        }
    }

    /// Stored bytes of a weight, scales included.
    pub fn weight(self) -> BytesPerParam {
        self.operands().0.width()
    }

    /// Bytes of an activation as the product reads it, scales included.
    pub fn activation(self) -> BytesPerParam {
        match self {
            // One FP32 scale per 128 values of a row.
            Self::Fp8Block => BytesPerParam::new(1.0 + 4.0 / 128.0),
            _ => self.operands().1.width(),
        }
    }

    /// Bytes of a result, 16 bits in every format.
    pub fn output(self) -> BytesPerParam {
        Dtype::Bf16.width()
    }

    pub fn math(self) -> Math {
        self.operands().2
    }
}

impl FromStr for GemmFormat {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        one_of("matrix-product format", text)
    }
}

/// A pass over the activations before the product: find their largest value, or write them in the narrow format.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Pass {
    #[serde(rename = "bytes", deserialize_with = "width")]
    pub width: BytesPerParam,
    #[serde(rename = "floor_us", deserialize_with = "us")]
    pub floor: Seconds,
    #[serde(rename = "core_gb_per_s", deserialize_with = "gb_per_s")]
    pub core: ByteRate,
    /// Bytes one core handles per second on top, for those that do not stay in the cache; `None` costs nothing.
    #[serde(default, rename = "cold_core_gb_per_s", deserialize_with = "gb_per_s_or_none")]
    pub cold_core: Option<ByteRate>,
    /// Share of the memory bandwidth reached by those that do not stay in the cache.
    pub bandwidth: f64,
    /// Share of the cache the activations may stay in.
    pub cached: f64,
    /// Time per row where rows queue for one counter; zero where they do not.
    #[serde(default, rename = "row_ns", deserialize_with = "ns")]
    pub row: Seconds,
}

/// A chip's power decides how fast its clock runs under load: rates grow with the square root of watts.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerRule {
    /// Peak of the chip the efficiency was measured on.
    pub peak: FlopRate,
    pub tdp: Watts,
    /// The least and most the efficiency is multiplied by.
    pub range: (f64, f64),
}

/// Constants of one kernel family on one class of chips; the equation is in `rackmath_theory::operator::gemm`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct GemmKernel {
    pub class: String,
    #[serde(deserialize_with = "text")]
    pub format: GemmFormat,
    /// The engine whose kernels these are, `any` for all.
    pub backend: String,
    /// Launch, prologue and epilogue.
    #[serde(rename = "floor_us", deserialize_with = "us")]
    pub floor: Seconds,
    /// Time the host needs to launch; hidden behind longer work, zero where launches are captured in a graph.
    #[serde(default, rename = "host_us", deserialize_with = "us")]
    pub host: Seconds,
    /// Share of a core's dense peak a full tile reaches.
    pub compute: f64,
    /// How `compute` carries over to chips with other power and peak.
    pub power: Option<PowerRule>,
    /// Share of the memory bandwidth reached by long reads.
    pub bandwidth: f64,
    pub corner: f64,
    /// Operand bytes one core can take in per second; `None` is no limit.
    #[serde(default, rename = "operand_gb_per_s", deserialize_with = "gb_per_s_or_none")]
    pub operand: Option<ByteRate>,
    /// Time a wave of tiles costs besides its arithmetic.
    #[serde(rename = "wave_us", deserialize_with = "us")]
    pub wave: Seconds,
    /// Share of wave quantisation that is not smoothed by the scheduler, 0 to 1.
    pub quantum: f64,
    /// Loss of clock in long runs of arithmetic.
    pub droop: f64,
    /// How long such a run has to be.
    #[serde(rename = "droop_us", deserialize_with = "us")]
    pub droop_time: Seconds,
    /// Cost of a second pass that adds up the parts of a split depth.
    #[serde(rename = "split_us", deserialize_with = "us")]
    pub split: Seconds,
    /// Loss of bandwidth in short reads.
    pub ramp: f64,
    /// How long a read has to be to lose half as much.
    #[serde(rename = "ramp_us", deserialize_with = "us")]
    pub ramp_time: Seconds,
    /// Share of the cache that activations stay in.
    pub resident: f64,
    /// Tiles a kernel can be chosen with, rows by columns of the result.
    pub tiles: Vec<(f64, f64)>,
    pub splits: Vec<f64>,
    /// Passes when the activations' scale is found at run time.
    #[serde(skip)]
    pub dynamic: Vec<Pass>,
    /// Passes when the scale is known beforehand.
    #[serde(skip)]
    pub fixed: Vec<Pass>,
    #[serde(skip)]
    pub fit: Residual,
    pub source: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GemmKernels {
    pub kernels: Vec<GemmKernel>,
}

fn width<'de, D: Deserializer<'de>>(d: D) -> Result<BytesPerParam, D::Error> {
    f64::deserialize(d).map(|bytes| BytesPerParam::checked(bytes).unwrap_or(BytesPerParam::ZERO))
}

fn gb_per_s_or_none<'de, D: Deserializer<'de>>(d: D) -> Result<Option<ByteRate>, D::Error> {
    gb_per_s(d).map(Some)
}

impl GemmKernels {
    /// The kernels for a chip and format: those of its class and of the backend if it has its own, else the class's, else
    /// the default's. `None` when the format is not known for any.
    pub fn find(&self, chip: &Chip, format: GemmFormat, backend: &str) -> Option<&GemmKernel> {
        let workstation = format!("{}-gddr", chip.generation);
        let gddr = chip.memory.kind.to_ascii_uppercase().starts_with("GDDR");
        let known = |class: &str| self.kernels.iter().any(|k| k.class == class);
        let class = if gddr && known(&workstation) { &workstation } else { &chip.generation };
        [(class.as_str(), backend), (class, "any"), ("default", backend), ("default", "any")].into_iter().find_map(
            |(class, backend)| {
                self.kernels.iter().find(|k| k.format == format && k.class == class && k.backend == backend)
            },
        )
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    pass: Vec<RawPass>,
    kernel: Vec<RawKernel>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPass {
    id: String,
    #[serde(flatten)]
    pass: Pass,
    #[serde(flatten)]
    fit: Residual,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKernel {
    #[serde(flatten)]
    kernel: GemmKernel,
    #[serde(flatten)]
    fit: Residual,
    #[serde(default)]
    dynamic: Vec<String>,
    #[serde(default)]
    fixed: Vec<String>,
}

/// Reads the kernels, each with its passes in place of their names.
pub(crate) fn read(id: &str, text: &str) -> Result<GemmKernels, SpecError> {
    let file = format!("kernel {id}");
    let raw: RawFile = cited(&file, id, text, &["id", "name", "form", "as_of", "pass.source"])?;
    let mut passes = BTreeMap::new();
    for RawPass { id, pass, fit } in raw.pass {
        let numbers = [
            ("bytes", pass.width.get(), 0.5, 16.0),
            ("bandwidth", pass.bandwidth, 1e-3, 1.0),
            ("cached", pass.cached, 0.0, 1.0),
            ("median", fit.median, 0.0, 5.0),
            ("p90", fit.p90, 0.0, 5.0),
        ];
        within(&format!("{file}: pass {id}"), &numbers)?;
        passes.insert(id, pass);
    }
    let kernels = raw.kernel.into_iter().map(|RawKernel { kernel, fit, dynamic, fixed }| {
        let kernel = GemmKernel { fit, ..kernel };
        check(&format!("{file}: {} {} {}", kernel.class, kernel.format, kernel.backend), &kernel)?;
        Ok(GemmKernel { dynamic: named(&dynamic, &passes)?, fixed: named(&fixed, &passes)?, ..kernel })
    });
    Ok(GemmKernels { kernels: kernels.collect::<Result<_, SpecError>>()? })
}

fn check(entry: &str, k: &GemmKernel) -> Result<(), SpecError> {
    let whole = |n: f64| n >= 1.0 && n.fract() == 0.0;
    if k.tiles.is_empty() || !k.tiles.iter().all(|(rows, columns)| whole(*rows) && whole(*columns)) {
        let given = format!("{:?}", k.tiles);
        return Err(SpecError::field(entry, "tiles", given, "at least one tile, of positive size"));
    }
    if k.splits.is_empty() || !k.splits.iter().copied().all(whole) {
        return Err(SpecError::field(entry, "splits", format!("{:?}", k.splits), "at least 1"));
    }
    let (low, high) = k.power.map_or((1.0, 1.0), |power| power.range);
    let numbers = [
        ("compute", k.compute, 1e-3, 1.0),
        ("power.range", low, 0.1, 1.0),
        ("power.range", high, 1.0, 10.0),
        ("bandwidth", k.bandwidth, 1e-3, 1.0),
        ("corner", k.corner, 1.0, f64::INFINITY),
        ("quantum", k.quantum, 0.0, 1.0),
        ("droop", k.droop, 0.0, 10.0),
        ("ramp", k.ramp, 0.0, 10.0),
        ("resident", k.resident, 0.0, 1.0),
        ("median", k.fit.median, 0.0, 5.0),
        ("p90", k.fit.p90, 0.0, 5.0),
    ];
    within(entry, &numbers)
}

fn named(names: &[String], known: &BTreeMap<String, Pass>) -> Result<Vec<Pass>, SpecError> {
    let find = |name: &String| {
        known.get(name).copied().ok_or_else(|| SpecError::unknown("pass", name, known.keys().map(String::as_str)))
    };
    names.iter().map(find).collect()
}
