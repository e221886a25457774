//! A chip and its links as a training program drives them.
//!
//! $$ t_{product} = x\,t_{kernel}(m, n, k) \qquad t_{collective} = u\,t_{inside} + \frac{V_{across}}{g\,W_{out}} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | x | times | 1 | how much longer a product takes than alone: power limits, cold caches, library of its day |
//! | u | scale_up | 1 | the same for collectives inside a node |
//! | g, W_out | scale_out, out | 1, B/s | share of the rate between nodes, the rate |
//! | V | volume | B | bytes a chip sends between nodes, its node's ranks sharing the work |
//!
//! Kernels are those of [`crate::operator`], links those of [`crate::network`]; here is only how they are put together.
//! Groups of ranks: tensor parallel innermost, then context, data, pipeline. Source: Megatron-LM's order of ranks.

use super::work::Multiply;
use crate::network::{Collective, Group, Shape as NetworkShape, time};
use crate::operator::gemm::{Gemm, Product, Scaling};
use crate::operator::{Silicon, ideal};
use rackmath_spec::{Chip, GemmKernels, Math, Network, System, TrainingFormat, TrainingStack};
use rackmath_units::{ByteRate, Bytes, Seconds};

#[derive(Clone, Debug)]
pub struct Machine<'a> {
    pub chip: &'a Chip,
    pub stack: &'a TrainingStack,
    gemm: Unit<'a>,
    /// For products that stay in 16 bits: head, router.
    wide: Unit<'a>,
    format: TrainingFormat,
    times: f64,
    wide_times: f64,
    network: &'a Network,
    pub domain: u64,
    up: ByteRate,
    out: ByteRate,
    /// To the host's memory, one direction; nothing where it is not known.
    pub host: Option<ByteRate>,
    /// Share of the bandwidth at which weights of 4 bits are expanded.
    pub expand: f64,
}

/// What multiplies matrices: kernels that were measured on its kind of chip, or the roofline where none were.
#[derive(Clone, Copy, Debug)]
enum Unit<'a> {
    Kernel(Gemm<'a>),
    Ideal(Silicon),
}

impl<'a> Unit<'a> {
    fn of(chip: &Chip, kernels: &'a GemmKernels, format: TrainingFormat) -> Option<Self> {
        let kernel = kernels.find(chip, format.gemm(), "any")?;
        // Tiles and waves of another maker's cores say nothing about a systolic array.
        if kernel.class == "default" {
            return Silicon::of(chip, format.math()).map(Unit::Ideal);
        }
        Gemm::of(chip, kernel).map(Unit::Kernel)
    }

    fn time(&self, product: Product) -> f64 {
        match self {
            Unit::Kernel(gemm) => gemm.time(product, Scaling::Given).time.get(),
            Unit::Ideal(silicon) => {
                let Product { rows: m, columns: n, depth: k, .. } = product;
                // Weights, inputs and results of 16 bits.
                ideal(*silicon, product.flop(), Bytes::b(2.0 * (n * k + m * k + m * n))).time.get()
            }
        }
    }

    fn read(&self, weights: f64) -> f64 {
        match self {
            Unit::Kernel(gemm) => gemm.time(Product::new(1.0, weights.max(1.0), 1.0), Scaling::Given).memory.get(),
            Unit::Ideal(silicon) => (Bytes::b(2.0 * weights) / silicon.bandwidth).get(),
        }
    }
}

/// Times of one product: forward, and backward to the input and to the weights.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Triple {
    pub forward: f64,
    pub input: f64,
    pub weight: f64,
}

impl<'a> Machine<'a> {
    /// Puts a system, a program and kernels together; nothing when the chip has no arithmetic for the format.
    pub fn new(
        system: &'a System,
        stack: &'a TrainingStack,
        kernels: &'a GemmKernels,
        network: &'a Network,
        format: TrainingFormat,
    ) -> Option<Self> {
        let chip = &system.chip;
        if !format.runs_on(chip) {
            return None;
        }
        let gemm = |format: TrainingFormat| Unit::of(chip, kernels, format);
        let up = system.levels.first().map(|l| l.bandwidth.value);
        let usual = chip.link.scale_out.as_ref().map(|r| r.value);
        let level = system.levels.get(1).map(|l| l.bandwidth.value);
        let up = up.or(chip.link.scale_up.as_ref().map(|r| r.value)).unwrap_or(stack.network.unlinked_up);
        Some(Self {
            chip,
            stack,
            gemm: gemm(format)?,
            wide: gemm(format.wide())?,
            format,
            times: stack.product_times(chip, format),
            wide_times: stack.product_times(chip, format.wide()),
            network,
            domain: system.levels.first().map_or(chip.link.domain.value, |l| l.chips).max(1),
            up,
            host: chip.to_host(),
            expand: 1.0,
            out: stack.network.scale_out_rate.or(level).or(usual).unwrap_or(stack.network.unlinked_out),
        })
    }

    pub fn bandwidth(&self) -> f64 {
        self.chip.memory.bandwidth.value.get()
    }

    /// Peak of 16-bit products.
    pub fn wide_peak(&self) -> f64 {
        [Math::Bf16, Math::Fp16].iter().find_map(|m| self.chip.peak.get(m)).map_or(1.0, |p| p.value.get())
    }

    pub fn peak(&self) -> f64 {
        self.chip.peak.get(&self.format.math()).map_or_else(|| self.wide_peak(), |p| p.value.get())
    }

    /// One product and its two backward ones, in the run's format.
    pub fn product(&self, p: Multiply) -> Triple {
        let grouped = if p.matrices > 1.0 { self.stack.traffic.grouped_product } else { 1.0 };
        triple(&self.gemm, self.times * grouped, p)
    }

    pub fn wide_product(&self, p: Multiply) -> Triple {
        triple(&self.wide, self.wide_times, p)
    }

    /// Bytes to cast one value for the products of a pass.
    pub fn cast_bytes(&self) -> f64 {
        self.format.cast_bytes()
    }

    /// Of `n` ranks that are `stride` apart: how many share a node, and over how many nodes they lie.
    fn nodes(&self, n: u64, stride: u64) -> (u64, f64) {
        let inside = (self.domain / stride.max(1)).clamp(1, n);
        (inside, n.div_ceil(inside) as f64)
    }

    fn near(&self, collective: Collective, bytes: f64, n: u64) -> f64 {
        let group = Group { network: self.network, n, bandwidth: self.up, shape: NetworkShape::Switched };
        time(collective, Bytes::b(bytes), &group).total().get() * self.stack.network.scale_up
    }

    /// Time of a collective over `n` ranks that are `stride` apart.
    pub fn collective(&self, collective: Collective, bytes: f64, n: u64, stride: u64) -> f64 {
        if n <= 1 || bytes <= 0.0 {
            return 0.0;
        }
        let shares = &self.stack.network;
        let (inside, r) = self.nodes(n, stride);
        let at = |c: Collective| self.near(c, bytes, inside);
        if r <= 1.0 {
            return at(collective);
        }
        let (inner, passes) = match collective {
            Collective::AllReduce => (at(Collective::ReduceScatter) + at(Collective::AllGather), 2.0),
            other => (at(other), 1.0),
        };
        // A reduction first makes them smaller inside.
        inner + passes * (r - 1.0) / r * bytes / inside as f64 / (shares.scale_out * self.out.get())
    }

    /// Time to send `bytes` of tokens to experts over `n` ranks, each token to `copies` of them.
    ///
    /// A token crosses to another node once, however many of its experts are there, and is copied on inside.
    pub fn exchange(&self, bytes: f64, copies: f64, n: u64, stride: u64) -> f64 {
        if n <= 1 || bytes <= 0.0 {
            return 0.0;
        }
        let shares = &self.stack.network;
        let (inside, nodes) = self.nodes(n, stride);
        let near = self.near(Collective::AllToAll, bytes, inside);
        if nodes <= 1.0 {
            return near;
        }
        // Expected other nodes among independent choices.
        let reached = (nodes - 1.0) * (1.0 - rackmath_units::float::pow((nodes - 1.0) / nodes, copies));
        let far = bytes / copies * reached / (shares.scale_out * self.out.get());
        near.max(far)
    }

    /// Time of a transfer to the next stage, whose ranks are `stride` apart.
    pub fn send(&self, bytes: f64, stride: u64) -> Seconds {
        let rate = if stride >= self.domain { self.out } else { self.up };
        Seconds::s(bytes / (rate.get() * self.stack.network.send))
    }
}

fn triple(unit: &Unit<'_>, times: f64, p: Multiply) -> Triple {
    let Multiply { rows, columns, depth, matrices } = p;
    if rows <= 0.0 || columns <= 0.0 || depth <= 0.0 {
        return Triple::default();
    }
    let time = |m: f64, n: f64, k: f64| unit.time(Product::new(m, n, k)) * times;
    if matrices <= 1.0 {
        return Triple {
            forward: time(rows, columns, depth),
            input: time(rows, depth, columns),
            weight: time(columns, depth, rows),
        };
    }
    // Experts in one launch: rows are padded to whole tiles, and every expert's weights are read.
    let each = (rows / matrices).max(1.0);
    let padded = (each / TILE).ceil() * TILE * matrices;
    let weights = (matrices - 1.0) * columns * depth;
    let grouped = |m: f64, n: f64, k: f64| time(m, n, k).max(unit.read(weights) * times);
    Triple {
        forward: grouped(padded, columns, depth),
        input: grouped(padded, depth, columns),
        // Every expert has its own sum over its rows, of which more than one can be under way.
        weight: grouped(columns * matrices, depth, (each / TILE).ceil() * TILE),
    }
}

/// Rows of a tile of grouped products.
const TILE: f64 = 128.0;
