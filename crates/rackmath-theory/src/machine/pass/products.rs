//! Matrix products of a layer on one chip: which matrices an engine multiplies as one, and how each is cut.

use super::{Assumption, Cost, Part, Stroke};
use crate::count::{Cut, Part as Where, Tensor, Use};
use crate::deployment::Deployment;
use crate::operator::gemm::{Gemm, Product, Scaling};
use crate::operator::{Silicon, Timing};
use rackmath_spec::engine::{ActivationScale, Plain};
use rackmath_spec::layout::Degrees;
use rackmath_spec::model::Formats;
use rackmath_spec::{Chip, Dtype, GemmFormat, GemmKernels, Gguf, Math};
use rackmath_units::Seconds;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Matrix {
    pub columns: f64,
    pub depth: f64,
    pub dtype: Dtype,
}

/// The products of a block, those with the same input joined.
pub(super) fn matrices(tensors: &[Tensor], hidden: u64, formats: Formats, d: &Degrees) -> Vec<Matrix> {
    let mut all: Vec<Matrix> = Vec::new();
    let mut joined: Vec<(Where, Dtype, f64)> = Vec::new();
    for t in tensors.iter().filter(|t| t.usage == Use::Matrix && t.part != Where::Routed) {
        let shards = crate::placement::shards(t.cut, d) as f64;
        let dtype = t.part.dtype(&formats);
        let copies = t.copies as f64;
        // Of these tensor parallelism cuts what comes in rather than what goes out.
        if matches!(t.name, "output" | "output up" | "down") {
            all.push(Matrix { columns: t.d_out as f64, depth: t.d_in as f64 / shards * copies, dtype });
        } else if t.d_in == hidden && t.copies == 1 {
            // Projections of the same input are one product, part by part.
            let columns = t.d_out as f64 / shards;
            match joined.iter_mut().find(|(part, other, _)| *part == t.part && *other == dtype) {
                Some((_, _, n)) => *n += columns,
                None => joined.push((t.part, dtype, columns)),
            }
        } else {
            let cut = if t.cut == Cut::Whole { 1.0 } else { shards };
            all.push(Matrix { columns: t.d_out as f64 * copies / cut, depth: t.d_in as f64, dtype });
        }
    }
    all.extend(joined.into_iter().map(|(_, dtype, columns)| Matrix { columns, depth: hidden as f64, dtype }));
    all
}

#[derive(Clone, Debug)]
pub(super) struct Multiplier<'a> {
    kernel: Kernel<'a>,
    /// Seconds per FLOP and per byte at full rates.
    per_flop: f64,
    per_byte: f64,
    width: f64,
    /// What stands in for what, where a format does not run as it is.
    pub assumed: Option<Assumption>,
    /// Whether the constants were measured on this generation.
    pub measured: bool,
}

#[derive(Clone, Debug)]
enum Kernel<'a> {
    /// With another family's, where a tuner chooses between them.
    Measured(Gemm<'a>, Option<Gemm<'a>>, Scaling),
    Plain(PlainKernel),
}

/// A roofline with shares of both rates, and the work of expanding narrow weights, which goes on while the next ones are read: a chip
/// that expands fast enough reads at its full rate, one that does not waits for that work alone. On a package of several dies a
/// kernel's floor is longer, since its parts meet over the link between them; its bandwidth is that of all dies.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainKernel {
    floor: Seconds,
    per_flop: f64,
    per_byte: f64,
    per_weight: f64,
}

impl PlainKernel {
    pub(super) fn of(plain: &Plain, chip: &Chip, dtype: Dtype) -> Option<Self> {
        let silicon = silicon(chip, plain_math(chip))?;
        let peak = silicon.peak.get();
        let (many, floors) = if chip.dies > 1 { (plain.many_dies, plain.dies_floor) } else { (1.0, 1.0) };
        Some(Self {
            floor: plain.floor * floors,
            per_flop: 1.0 / (plain.compute * peak),
            per_byte: 1.0 / (plain.memory * many * silicon.bandwidth.get()),
            per_weight: match dtype {
                other if other.bits() >= 16.0 => 0.0,
                other if other.gguf().is_some_and(Gguf::nested) => plain.expand_nested / peak,
                _ => plain.expand / peak,
            },
        })
    }

    pub(super) fn time(&self, flop: f64, bytes: f64, weights: f64) -> Timing {
        let compute = Seconds::s((flop * self.per_flop).max(weights * self.per_weight));
        let memory = Seconds::s(bytes * self.per_byte);
        Timing { floor: self.floor, compute, memory, time: self.floor + compute.max(memory) }
    }
}

/// What the shares of an engine's one rule are of: tensor units, or the vector units of a processor.
pub(super) fn plain_math(chip: &Chip) -> Math {
    if chip.processor { Math::Fp32 } else { Math::Bf16 }
}

/// The dense peak of an arithmetic, or of the nearest one the chip has.
pub(super) fn silicon(chip: &Chip, math: Math) -> Option<Silicon> {
    let near: &[Math] = match math {
        Math::Bf16 => &[Math::Bf16, Math::Fp16, Math::Fp32],
        Math::Fp16 => &[Math::Fp16, Math::Bf16, Math::Fp32],
        _ => &[],
    };
    Silicon::of(chip, math).or_else(|| near.iter().find_map(|m| Silicon::of(chip, *m)))
}

impl<'a> Multiplier<'a> {
    /// The kernels that multiply by weights of a format; `None` when the chip has no 16-bit peak at all.
    pub(super) fn of(d: &Deployment, kernels: &'a GemmKernels, dtype: Dtype) -> Option<Self> {
        let (chip, engine) = (&d.system.chip, &d.engine);
        let (kernel, silicon, assumed, measured) = if let Some(plain) = engine.plain_on(chip) {
            let kernel = Kernel::Plain(PlainKernel::of(plain, chip, dtype)?);
            (kernel, silicon(chip, Math::Bf16)?, None, true)
        } else {
            let native = GemmFormat::of(dtype);
            let stand_in = match native {
                GemmFormat::Fp8 | GemmFormat::Fp8Block | GemmFormat::Int8 => GemmFormat::WeightInt8,
                GemmFormat::NvFp4 => GemmFormat::WeightInt4,
                _ => GemmFormat::Bf16,
            };
            let found = [native, stand_in].into_iter().find_map(|f| silicon(chip, f.math()).map(|s| (f, s)));
            let (format, silicon) = found?;
            let kernel = kernels.find(chip, format, &engine.kernels.gemm)?;
            let scaling = match engine.kernels.scaling {
                // Block scales follow every activation.
                _ if matches!(format, GemmFormat::Fp8Block | GemmFormat::NvFp4) => Scaling::Dynamic,
                ActivationScale::Dynamic => Scaling::Dynamic,
                ActivationScale::Static => Scaling::Static,
                ActivationScale::Fused => Scaling::Given,
            };
            let (math, lacking) = (native.math(), format != native);
            let assumed = lacking.then(|| Assumption::Expanded { chip: chip.id.clone(), math, format: dtype });
            let gemm = |kernel| Gemm::new(silicon, chip.power.tdp.as_ref().map(|p| p.value), kernel).captured();
            let tuned = engine.kernels.tuned.get(<&str>::from(format));
            let other = tuned.and_then(|family| kernels.find(chip, format, family).filter(|k| k.backend == *family));
            (
                Kernel::Measured(gemm(kernel), other.map(gemm), scaling),
                silicon,
                assumed,
                kernel.class.starts_with(&chip.generation) && kernel.fit.rows > 0,
            )
        };
        Some(Self {
            kernel,
            per_flop: 1.0 / chip.peak_for(dtype).map_or(silicon.peak, |(_, peak)| peak.value).get(),
            per_byte: 1.0 / silicon.bandwidth.get(),
            width: dtype.width().get(),
            assumed,
            measured,
        })
    }

    pub(super) fn add(&self, rows: f64, matrix: &Matrix, part: Part, times: f64, stretch: f64, cost: &mut Cost) {
        let weights = matrix.columns * matrix.depth;
        let bytes = weights * self.width;
        // A multiply-add is two.
        let flop = 2.0 * rows * weights;
        let timing = match &self.kernel {
            Kernel::Measured(gemm, other, scaling) => {
                let product = Product::new(rows, matrix.columns, matrix.depth);
                let one = gemm.time(product, *scaling);
                other.map(|gemm| gemm.time(product, *scaling)).filter(|t| t.time < one.time).unwrap_or(one)
            }
            Kernel::Plain(plain) => plain.time(flop, bytes, weights),
        };
        Stroke::of(&timing, flop * self.per_flop, bytes * self.per_byte).add(part, times, stretch, cost);
    }
}
