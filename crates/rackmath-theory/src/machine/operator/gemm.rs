//! One matrix product: activations of m rows and depth k times weights of depth k and n columns.
//!
//! $$ t = \max\Big(t_h,\; t_0 + \sum q + \big(C^p + M^p\big)^{1/p}\Big) $$
//! $$ C = C_1 + (C_{1+d} - C_1) \frac{C_1}{C_1 + t_d} \qquad C_z = \min_{(x, y), s}\Big( w\,(\theta_z + t_w) + \Big(t_s + \frac{8\,s\,m\,n}{b\,W}\Big)_{s > 1} \Big) $$
//! $$ w = \max\big(1,\, (1 - \phi)\,u + \phi \lceil u \rceil\big) \qquad u = \lceil m / x \rceil \lceil n / y \rceil\, s / N \qquad
//!    \theta_z = \Big(\Big(z\,\frac{2xyk/s}{a F/N}\Big)^4 + \Big(\frac{(x\,w_a + y\,w_w)\,k/s}{\beta}\Big)^4\Big)^{1/4} $$
//! $$ M = y_0 \Big(1 + \frac{r}{1 + y_0 / t_r}\Big) \qquad y_0 = \frac{c\,n\,k\,w_w + \max(0,\; m k\,w_a + m n\,w_o - \rho L)}{b\,W} $$
//! $$ q = q_0 + \max\Big(\frac{e}{g N} + \frac{e_c}{g_c N},\; \frac{e_c}{b_q W},\; m\,t_m\Big) \qquad e = m k\,w_q \qquad e_c = \max(0,\; e - \rho_q L) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | m, n, k | rows, columns, depth | 1 | the product |
//! | c | cold | 1 | share of the weights that comes from memory; 1 in a served model |
//! | F, W, N, L | peak, bandwidth, cores, l2 | FLOP/s, B/s, 1, B | the chip |
//! | w_w, w_a, w_o | weight, activation, output | B | bytes of a weight, an activation, a result |
//! | t_0, t_h | floor, host | s | launch on the chip; launch by the host, hidden behind longer work |
//! | (x, y), s | tiles, splits | 1 | the kernel is the best of a menu of tiles and of splits of the depth |
//! | u, w, phi | waves, quantum | 1 | tiles per core; the share of a last partial wave that is lost |
//! | a, beta | compute, operand | 1, B/s | what a core reaches of its peak; the operand bytes it can take in |
//! | t_w, t_s | wave, split | s | per wave; per sum over a split |
//! | d, t_d | droop, droop_time | 1, s | the clock sinks in long runs at full power, and with it the arithmetic, not the loads |
//! | b, r, t_r | bandwidth, ramp, ramp_time | 1, 1, s | long reads; what short reads lose |
//! | rho | resident, cached | 1 | share of the cache the activations stay in, as the kernel before left them |
//! | p | corner | 1 | sharpness of the roofline's corner |
//! | q | passes | s | scaling activations to the narrow format: none, one pass, or two when the scale is not known |
//! | g, g_c, t_m | core, cold_core, row | B/s, B/s, s | what a core handles in a pass; rows that queue for one counter |
//!
//! The 2 in theta is a multiply-add, the 8 a partial sum of four bytes written and read. The fourth powers are a corner
//! sharper than the outer one: within a core loads and arithmetic overlap well.
//! a is measured on one chip. On another of its class the sustained rate a F grows with the square root of the chip's power
//! and not with the sheet's peak, within a stated range (`PowerRule`): dissipation goes with clock times voltage squared. The
//! upper end of the range is the clock's own limit. A chip whose power would carry it further, \hat\kappa beyond \kappa, has
//! that much less to lose in long runs, 1 + d = max(1, (1 + d_0) \kappa / \hat\kappa): an H20, a seventh of an H100's
//! peak in 400 W, loses nothing.
//! Ignores: odd sizes that a kernel's vectors do not divide, memory read twice when neither operand fits the cache.
//! Source: the form is ours; constants and their fits are in `catalog/kernels/gemm.toml`.

use super::{Silicon, Timing, rounded};
use rackmath_spec::{Chip, GemmKernel, Pass, PowerRule};
use rackmath_units::{Bytes, Flop, Fraction, Seconds, Watts};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Product {
    pub rows: f64,
    pub columns: f64,
    pub depth: f64,
    pub cold: Fraction,
}

/// What is known about the scale of the activations before a product in a narrow format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scaling {
    /// Nothing: it is found at run time.
    Dynamic,
    /// The scale was fixed beforehand; the activations have yet to be written in the narrow format.
    Static,
    /// The kernel before already wrote them in the narrow format.
    Given,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gemm<'a> {
    silicon: Silicon,
    kernel: &'a GemmKernel,
    compute: f64,
    droop: f64,
    host: Seconds,
}

impl Product {
    pub fn new(rows: f64, columns: f64, depth: f64) -> Self {
        Self { rows, columns, depth, cold: Fraction::ONE }
    }

    pub fn flop(&self) -> Flop {
        // A multiply-add is two.
        Flop::flop(2.0 * self.rows * self.columns * self.depth)
    }
}

impl<'a> Gemm<'a> {
    /// A kernel family on a chip; `None` when the chip has no peak in the family's arithmetic.
    pub fn of(chip: &Chip, kernel: &'a GemmKernel) -> Option<Self> {
        let silicon = Silicon::of(chip, kernel.format.math())?;
        let tdp = chip.power.tdp.as_ref().map(|p| p.value);
        Some(Self::new(silicon, tdp, kernel))
    }

    /// The same for a chip that is only numbers; without its power the efficiency is taken as measured.
    pub fn new(silicon: Silicon, tdp: Option<Watts>, kernel: &'a GemmKernel) -> Self {
        let measured = Sustained { factor: 1.0, spare: 1.0 };
        let Sustained { factor, spare } =
            kernel.power.zip(tdp).map_or(measured, |(rule, tdp)| Sustained::of(rule, silicon, tdp));
        let droop = ((1.0 + kernel.droop) / spare - 1.0).max(0.0);
        Self { silicon, kernel, compute: (kernel.compute * factor).min(1.0), droop, host: kernel.host }
    }

    /// The same kernels replayed from a captured graph: the host launches nothing.
    #[must_use]
    pub fn captured(self) -> Self {
        Self { host: Seconds::ZERO, ..self }
    }

    pub fn kernel(&self) -> &'a GemmKernel {
        self.kernel
    }

    pub fn traffic(&self, product: Product) -> Bytes {
        let Product { rows: m, columns: n, depth: k, cold } = product;
        let format = self.kernel.format;
        let weights = Bytes::b(cold.get() * n * k * format.weight().get());
        let activations = Bytes::b(m * k * format.activation().get() + m * n * format.output().get());
        weights + activations.less(self.silicon.l2 * self.kernel.resident)
    }

    /// How long a product takes, the passes over its activations included.
    pub fn time(&self, product: Product, scaling: Scaling) -> Timing {
        let passes = match scaling {
            Scaling::Dynamic => self.kernel.dynamic.as_slice(),
            Scaling::Static => self.kernel.fixed.as_slice(),
            Scaling::Given => &[],
        };
        let (mut floor, mut spent) = (self.kernel.floor, Seconds::ZERO);
        for pass in passes {
            floor += pass.floor;
            spent += pass_work(self.silicon, pass, product);
        }
        let (compute, memory) = (self.compute(product), self.memory(product));
        let time = floor + spent + rounded(compute, memory, self.kernel.corner);
        Timing { floor, compute, memory: memory + spent, time: time.max(self.host) }
    }

    fn compute(&self, product: Product) -> Seconds {
        let Product { rows: m, columns: n, depth: k, .. } = product;
        let (kernel, silicon) = (self.kernel, self.silicon);
        let cores = silicon.cores;
        let core_peak = self.compute * silicon.peak.get() / cores;
        let per_operand = kernel.operand.map_or(0.0, |rate| 1.0 / rate.get());
        let (w_w, w_a) = (kernel.format.weight().get(), kernel.format.activation().get());
        let sum = 8.0 * m * n / (kernel.bandwidth * silicon.bandwidth.get());
        // At the clock of a short run, and at that of a long one, where the arithmetic alone is slower.
        let [mut short, mut long] = [f64::INFINITY; 2];
        for &(x, y) in &kernel.tiles {
            let tiles = (m / x).ceil() * (n / y).ceil();
            let arithmetic = 2.0 * x * y * k / core_peak;
            let loads = (x * w_a + y * w_w) * k * per_operand;
            let (fast, slow) = (fourth(arithmetic, loads), fourth(arithmetic * (1.0 + self.droop), loads));
            for &s in &kernel.splits {
                let u = tiles * s / cores;
                let waves = (u * (1.0 - kernel.quantum) + u.ceil() * kernel.quantum).max(1.0);
                let reduction = if s > 1.0 { kernel.split.get() + s * sum } else { 0.0 };
                let run = |tile: f64| waves * (tile / s + kernel.wave.get()) + reduction;
                (short, long) = (short.min(run(fast)), long.min(run(slow)));
            }
        }
        let sunk = short / (short + kernel.droop_time.get()).max(f64::MIN_POSITIVE);
        Seconds::s(short + (long - short) * sunk)
    }

    fn memory(&self, product: Product) -> Seconds {
        let long = self.traffic(product) / (self.silicon.bandwidth * self.kernel.bandwidth);
        let t_r = self.kernel.ramp_time.get().max(f64::MIN_POSITIVE);
        long * (1.0 + self.kernel.ramp * t_r / (t_r + long.get()))
    }
}

pub fn pass_time(silicon: Silicon, pass: &Pass, product: Product) -> Seconds {
    pass.floor + pass_work(silicon, pass, product)
}

/// A pass over the activations, its floor apart.
fn pass_work(silicon: Silicon, pass: &Pass, product: Product) -> Seconds {
    let all = Bytes::b(product.rows * product.depth * pass.width.get());
    let cold = all.less(silicon.l2 * pass.cached);
    let cores = silicon.cores;
    let handled = all / (pass.core * cores) + pass.cold_core.map_or(Seconds::ZERO, |rate| cold / (rate * cores));
    handled.max(cold / (silicon.bandwidth * pass.bandwidth)).max(pass.row * product.rows)
}

/// What a chip's power makes of shares measured on another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sustained {
    /// By how much the reached share of the peak differs.
    pub factor: f64,
    /// How much further its power would carry it than its clock goes; at least 1.
    pub spare: f64,
}

impl Sustained {
    pub(super) fn of(rule: PowerRule, silicon: Silicon, tdp: Watts) -> Self {
        let (low, high) = rule.range;
        let allowed = rule.peak / silicon.peak * (tdp / rule.tdp).sqrt();
        let factor = allowed.clamp(low, high);
        Self { factor, spare: (allowed / factor).max(1.0) }
    }
}

/// The fourth root of the sum of fourth powers; square roots are exact on every platform.
fn fourth(a: f64, b: f64) -> f64 {
    let (high, low) = (a.max(b), a.min(b));
    let ratio = low / high.max(f64::MIN_POSITIVE);
    let square = ratio * ratio;
    high * (1.0 + square * square).sqrt().sqrt()
}
