//! A fused expert layer on one rank: route, permute, two grouped products, activation, finalise.
//!
//! $$ t = t_0 + e\,n + \sum_{g=1,2} \big(c_g^p + m_g^p\big)^{1/p} + \frac{x}{\beta W} $$
//! $$ c_g = \frac{2 K_g \tau\,(\sum_j \lceil r_j/\tau \rceil N_g + \phi S \min(N_g, \nu))}{a F} \qquad
//!    m_g = \frac{A\,K_g N_g\,w}{b W} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | t_0, e, n | launch, per_expert, experts / ranks | s, s, 1 | launches; set-up for each expert the rank holds |
//! | N, K | columns and depth of a product | 1 | 2 i by h (gate and up together), then h by i |
//! | r_j, A | [`Load`] | 1 | rows of the j-th touched expert; experts touched |
//! | τ, ν | tile, columns | 1 | rows and columns of a tile; an expert's rows are padded to whole tiles |
//! | φ, S | tail, cores | 1 | waves lost at the end of a product; cores |
//! | a, b, β | compute, memory, activation | 1 | shares of peak F and bandwidth W that are reached |
//! | w, x | weight width, activation traffic | B, B | bytes per weight; bytes of activations between the steps |
//! | p | corner | 1 | sharpness of the roofline's corner |
//!
//! Weights, or activations, that fit into the last-level cache stay there from one call to the next and are read at the
//! cores' rate; over a ramp of sizes this is lost. Tokens count for the whole group of ranks that share the experts; the time
//! is that of the busiest rank. Columns are of this rank: tensor parallelism has already divided `inter`.
//! Ignores: which tactic a tuner picks (measured NVFP4 times differ by up to 1.8 at nearly equal work), shared experts,
//! the exchange between ranks. A power law's time may step down where tokens times top-k passes the number of experts,
//! because the popularity it assumes changes there; see [`Draw::PowerLaw`].
//! Source: constants fitted to aiconfigurator's expert tables, `catalog/kernels/moe.toml`.

use super::{Silicon, Timing, rounded};
use rackmath_spec::{CacheUse, MoeFormat, MoeKernel, MoeRows};
use rackmath_units::{Bytes, Flop, Seconds, Tokens, float};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    pub hidden: u64,
    pub inter: u64,
    pub gated: bool,
    pub experts: u64,
    pub top_k: u64,
    pub ranks: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    /// Dealt in turn: every expert gets the same, and as many experts as possible are touched.
    Even,
    /// Independently, all experts alike: E (1 - (1 - k/E)^T) experts are touched.
    Random,
    /// Experts differ in popularity, on the busiest rank: fewer experts are touched in all, more of them and of the rows on
    /// that rank ([`Load::busiest`], [`touch`]).
    Busiest(Skew),
    /// Popularity drawn from a density x^-alpha, on the busiest rank. Popularity spans 1 to 0.8 T when each expert can have
    /// a token and 0.01 to 2 before: aiconfigurator's benchmark, whose rows the constants come from.
    PowerLaw(f64),
}

/// The standard deviation of the popularity of experts over its mean: what ranks get, and what is touched at all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Skew {
    pub ranks: f64,
    pub touched: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    pub layer: Layer,
    pub format: MoeFormat,
    pub tokens: Tokens,
    pub draw: Draw,
}

/// The chance that one of t tokens, each choosing a share s of the experts, touches an expert, when popularity is gamma
/// distributed with mean 1 and standard deviation c: 1 - (1 + c^2 x)^(-1/c^2), x = -t ln(1 - s). Without a spread that is
/// 1 - (1 - s)^t.
pub fn touch(tokens: f64, share: f64, c: f64) -> f64 {
    let x = -tokens * float::ln_1p(-share.min(1.0 - 1e-12));
    let c2 = c * c;
    // Below this the powers agree to many digits.
    let x = if c2 > 1e-9 { float::ln_1p(c2 * x) / c2 } else { x };
    -float::exp_m1(-x)
}

/// The expected largest of so many normal draws, nearly.
fn largest(ranks: f64) -> f64 {
    0.833 * float::pow(float::ln(ranks), 0.732)
}

/// Classes a power law is cut into.
const CLASSES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    rows: [f64; CLASSES],
    experts: [f64; CLASSES],
}

impl Load {
    pub fn of(layer: &Layer, tokens: Tokens, draw: Draw) -> Self {
        let (t, k) = (tokens.get().max(1.0), layer.top_k as f64);
        let (e, ranks) = (layer.experts as f64, layer.ranks as f64);
        let n = e / ranks;
        let mean = t * k / ranks;
        match draw {
            Draw::Even => Self::alike(mean.max(1.0), n.min(mean.max(1.0))),
            Draw::Random => {
                let touched = -float::exp_m1(t * float::ln_1p(-(k / e).min(1.0 - 1e-12)));
                Self::alike(mean.max(n * touched), n * touched)
            }
            Draw::Busiest(skew) => {
                let (more_rows, more_experts) = Self::busiest(layer, tokens, skew);
                let touched = (n * touch(t, k / e, skew.touched) * more_experts).min(n).min(t * k);
                Self::alike((mean * more_rows).min(t * n.min(k)).max(touched), touched)
            }
            Draw::PowerLaw(alpha) => Self::power_law(alpha, t, k, n, ranks),
        }
    }

    /// By how much the rows and the touched experts of the busiest of r ranks exceed the mean, n experts to a rank:
    ///
    /// 1 + x sqrt((1 - 1/r) (1/m + c^2/n)) and 1 + x sqrt((1 - 1/r) (1 - p) / (n p)), x the expected largest of r normal
    /// draws, m the mean rows of a rank, p the chance that an expert is touched ([`touch`]) at
    /// the spread c of the ranks.
    pub fn busiest(layer: &Layer, tokens: Tokens, skew: Skew) -> (f64, f64) {
        let (t, k) = (tokens.get().max(1.0), layer.top_k as f64);
        let (e, ranks) = (layer.experts as f64, layer.ranks as f64);
        if ranks <= 1.0 {
            return (1.0, 1.0);
        }
        let (n, c2, p) = (e / ranks, skew.ranks * skew.ranks, touch(t, k / e, skew.ranks));
        let (x, apart) = (largest(ranks), 1.0 - 1.0 / ranks);
        let rows = 1.0 + x * (apart * (ranks / (t * k) + c2 / n)).sqrt();
        let experts = 1.0 + x * (apart * (1.0 - p) / (n * p)).sqrt();
        (rows.min(ranks), experts.min(ranks))
    }

    fn alike(rows: f64, touched: f64) -> Self {
        let mut load = Self { rows: [0.0; CLASSES], experts: [0.0; CLASSES] };
        (load.rows[0], load.experts[0]) = (rows / touched, touched);
        load
    }

    fn power_law(alpha: f64, t: f64, k: f64, n: f64, ranks: f64) -> Self {
        let (low, high) = if t * k > n * ranks { (1.0, (0.8 * t).max(1.0)) } else { (0.01, 2.0) };
        // A density of exactly 1/x integrates to a logarithm; a hair beside it the powers agree to many digits.
        let s = if (1.0 - alpha).abs() < 1e-4 { 1e-4 } else { 1.0 - alpha };
        let (from, to) = (float::pow(low, s), float::pow(high, s));
        let moment = |q: f64| (float::pow(high, q + s) - float::pow(low, q + s)) / (q + s) * s / (to - from);
        // Mean load of the busiest of so many ranks.
        let variation =
            if high > low { (moment(2.0) / (moment(1.0) * moment(1.0)) - 1.0).max(0.0).sqrt() } else { 0.0 };
        let busiest = (1.0 + variation * largest(ranks) * ((1.0 - 1.0 / ranks) / n).sqrt()).min(ranks);
        let rows = (t * k / ranks * busiest).max(1.0).min(t * n.min(k));
        if n <= 1.0 || high <= low {
            return Self::alike(rows, n.min(rows));
        }
        let mut x: [f64; CLASSES] = std::array::from_fn(|j| {
            let u = (j as f64 + 0.5) / CLASSES as f64;
            float::pow((to - from) * u + from, 1.0 / s)
        });
        let scale = rows / n / (x.iter().sum::<f64>() / CLASSES as f64);
        let mut experts = [n / CLASSES as f64; CLASSES];
        for (x, count) in x.iter_mut().zip(&mut experts) {
            *x = (*x * scale).min(t);
            // Half a row is rounded to none or one: the expert is touched by chance.
            if *x < 0.5 {
                *count *= *x;
                *x = 1.0;
            }
        }
        Self { rows: x, experts }
    }

    pub fn touched(&self) -> f64 {
        self.experts.iter().sum()
    }

    pub fn rows(&self) -> f64 {
        self.rows.iter().zip(&self.experts).map(|(r, n)| r * n).sum()
    }

    pub fn tiles(&self, tile: f64) -> f64 {
        self.rows.iter().zip(&self.experts).map(|(r, n)| (r / tile).ceil() * n).sum()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    pub flop: Flop,
    pub weights: Bytes,
    pub activations: Bytes,
    /// Of both, what comes from memory and not from the cache.
    pub cold: Bytes,
}

pub fn work(silicon: Silicon, kernel: &MoeKernel, call: &Call) -> Work {
    work_of(silicon, kernel, call, &Load::of(&call.layer, call.tokens, call.draw))
}

fn work_of(silicon: Silicon, kernel: &MoeKernel, call: &Call, load: &Load) -> Work {
    let Call { layer, format, tokens, .. } = call;
    let (h, i) = (layer.hidden as f64, layer.inter as f64);
    let up = if layer.gated { 2.0 } else { 1.0 };
    let t = tokens.get().max(1.0);
    let params = (up + 1.0) * h * i;
    let rows = match kernel.rows {
        MoeRows::Routed => load.rows(),
        MoeRows::All => load.rows().max(t * layer.top_k as f64),
    };
    let inner = if kernel.padded > 0.0 {
        let idle = (layer.experts as f64 / layer.ranks as f64 - load.touched()).max(0.0);
        rows.max((load.tiles(kernel.padded) + idle) * kernel.padded)
    } else {
        rows
    };
    // Tokens are read and sums written in 16 bits; rows are written and read as the first product's input, and as the second
    // product's output in 16 bits; inside, gate and up are written and read in 16 bits and their product as an input.
    let narrow = 2.0 * format.activation().width().get();
    let x = 2.0 * h * (t + t.min(rows)) + rows * h * (4.0 + narrow) + inner * i * (4.0 * up + narrow);
    let weights = load.touched() * params * format.weight().width().get();
    let cold = weights * cold(weights, silicon, kernel.cache) + x * cold(x, silicon, kernel.cache);
    Work {
        // A multiply-add is two.
        flop: Flop::flop(2.0 * load.rows() * params),
        weights: Bytes::b(weights),
        activations: Bytes::b(x),
        cold: Bytes::b(cold),
    }
}

/// Share of so many bytes, used again and again, that the cache does not keep.
fn cold(bytes: f64, silicon: Silicon, cache: CacheUse) -> f64 {
    let l2 = silicon.l2.get();
    if l2 > 0.0 { ((bytes / l2 - cache.share) / cache.ramp).clamp(0.0, 1.0) } else { 1.0 }
}

/// Seconds per byte: from memory at a share of its bandwidth, from the cache at the cores' rate where that is faster.
fn pace(bytes: f64, efficiency: f64, silicon: Silicon, cache: CacheUse) -> f64 {
    let memory = efficiency * silicon.bandwidth.get();
    let cached = memory.max(cache.per_core.get() * silicon.cores);
    let cold = cold(bytes, silicon, cache);
    cold / memory + (1.0 - cold) / cached
}

pub fn time(silicon: Silicon, kernel: &MoeKernel, call: &Call) -> Timing {
    let Call { layer, format, tokens, draw } = call;
    let load = Load::of(layer, *tokens, *draw);
    let Work { weights, activations, .. } = work_of(silicon, kernel, call, &load);
    let (h, i) = (layer.hidden as f64, layer.inter as f64);
    let up = if layer.gated { 2.0 } else { 1.0 };
    let tiles = load.tiles(kernel.tile);
    let rate = kernel.compute.get() * silicon.peak.get();
    let per_byte = pace(weights.get(), kernel.memory.get(), silicon, kernel.cache);
    let per_param = load.touched() * format.weight().width().get() * per_byte;
    let (mut compute, mut memory, mut joined) = (Seconds::ZERO, Seconds::ZERO, Seconds::ZERO);
    for (n, k) in [(up * i, h), (h, i)] {
        let c = 2.0 * k * kernel.tile * (tiles * n + kernel.tail * silicon.cores * n.min(kernel.columns)) / rate;
        let (c, m) = (Seconds::s(c), Seconds::s(n * k * per_param));
        compute += c;
        memory += m;
        joined += rounded(c, m, kernel.corner);
    }
    let x = activations.get() * pace(activations.get(), kernel.activation.get(), silicon, kernel.cache);
    let (x, floor) = (Seconds::s(x), kernel.launch + kernel.per_expert * (layer.experts as f64 / layer.ranks as f64));
    Timing { floor, compute, memory: memory + x, time: floor + (joined + x) }
}
