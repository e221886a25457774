//! The space of models and ways to serve them: one point of the prior, and what it costs.
//!
//! $$ P_{in} = \mu\,\frac{C}{U}\,\frac{2 N_a}{F\,\eta_p} \qquad
//!    \frac{c_{out}}{c_{in}} = \max\left(1,\ \frac{N_t w / B + k_r L}{a\,W\,\eta_m}\bigg/\frac{2 N_a}{F\,\eta_p}\right) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | N_a, N_t | active, sparsity x active | 1 | parameters used per token, and all of them |
//! | mu, C, U | markup, usd, utilisation | 1, $/h, 1 | mark-up, price of a chip, share of its hours that are sold |
//! | F, W | peak, bandwidth | FLOP/s, B/s | dense peak at the width of the weights, memory |
//! | eta_p, eta_m | mfu, mbu | 1 | shares of them that are reached |
//! | w, B | width, batch | B, sequences | bytes per weight, sequences decoded together |
//! | k_r, L | read, context | B, tokens | cache bytes read per token of context, context |
//! | a | accepted | tokens | tokens a step yields, which share its reading |
//!
//! Mark-up, price, utilisation and MFU enter the input price only as a product. How large that product is was fitted on
//! open-weight hosts (`Level`); given the product, its factors follow their own priors, a normal distribution conditioned on
//! its sum. Assumes: decode reaches the MFU of prefill when it is compute-bound. Ignores: network, prefix hits.
//! Source: lecture D3, D6, D48; the time of a step is `roofline::Terms`.

use super::lattice::Lattice;
use crate::board::peak_for;
use crate::roofline::{Overlap, Terms, ridge};
use crate::stats::normal_quantile;
use rackmath_spec::Dtype;
use rackmath_spec::deduce::{DeducePriors, LogNormal, LogUniform, Seller};
use rackmath_units::{BytesPerParam, FlopRate, Seconds, float};
use std::array::from_fn;

/// Chips, widths and tiers are few.
const FEW: usize = 4;

/// A chip, resolved: logarithms of what it can do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Machine {
    share: f64,
    usd: LogNormal,
    bandwidth: f64,
    /// By width.
    peak: [f64; 3],
    ln_peak: [f64; 3],
    ln_ridge: [f64; 3],
}

/// The prior, resolved for the inner loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    pub(super) priors: DeducePriors,
    pub(super) seller: Seller,
    machines: Vec<Machine>,
    /// Logarithms of the widths and of what the tiers cost.
    ln_widths: [f64; 3],
    ln_tiers: Vec<f64>,
    /// Logarithm of two FLOP per parameter for a million tokens, in hours of seconds.
    ln_unit: f64,
    /// Logarithm of the ideal cost of a million input tokens per active parameter, on the first chip at its median price.
    ideal: f64,
    /// Shares of the normal curve of served sizes below the ends of the prior.
    served: (f64, f64),
}

/// One point of the prior; names are logarithms where they begin with `ln`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    pub ln_active: f64,
    pub ln_sparsity: f64,
    /// Cache bytes stored per token.
    pub ln_kv: f64,
    /// Share of them read in a step.
    pub ln_read: f64,
    pub width: usize,
    pub chip: usize,
    pub tier: usize,
    pub ln_context: f64,
    pub ln_batch_ratio: f64,
    pub ln_mbu: f64,
    pub ln_accepted: f64,
    /// Context at which attention FLOP equal weight FLOP.
    pub ln_attention: f64,
    /// What rivals take off the mark-up.
    pub ln_rivalry: f64,
    /// Normal draws of mark-up, price, utilisation and MFU.
    factors: [f64; 4],
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    pub ln_markup: f64,
    pub ln_mfu: f64,
    pub ln_utilisation: f64,
}

/// Seconds of a decoded token: computing, reading weights, reading the cache for each token of context.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decode {
    compute: f64,
    weights: f64,
    kv: f64,
}

impl Decode {
    /// Cost of an output token over that of an input token.
    pub(super) fn over_input(&self, context: f64) -> f64 {
        let terms = Terms {
            compute: Seconds::s(self.compute),
            weights: Seconds::s(self.weights),
            kv: Seconds::s(self.kv * context),
        };
        terms.time(Overlap::Max) / terms.compute
    }
}

/// Share of hosted models that are of any size.
const ANY_SIZE: f64 = 0.1;

impl Space {
    /// Resolves the prior; `None` when a chip has no peak for one of the widths.
    pub fn new(priors: &DeducePriors, seller: Seller) -> Option<Self> {
        let mut machines = Vec::new();
        for c in priors.chips.iter().take(FEW) {
            let bandwidth = c.chip.memory.bandwidth.value;
            let format = |bytes: f64| match bytes {
                b if b < 0.75 => Dtype::Fp4,
                b if b < 1.5 => Dtype::Fp8,
                _ => Dtype::Bf16,
            };
            let peak = |w: &(f64, f64)| Some(peak_for(&c.chip, format(w.0), None)?.1);
            let peaks: Vec<FlopRate> = priors.serving.widths.iter().map(peak).collect::<Option<_>>()?;
            let width = |i: usize| BytesPerParam::new(priors.serving.widths[i].0);
            machines.push(Machine {
                share: c.share,
                usd: c.usd_per_hour,
                bandwidth: bandwidth.get(),
                peak: from_fn(|i| peaks[i].get()),
                ln_peak: from_fn(|i| float::ln(peaks[i].get())),
                ln_ridge: from_fn(|i| float::ln(ridge(peaks[i], width(i), bandwidth))),
            });
        }
        let first = machines.first()?;
        // Two FLOP per parameter, a million tokens, seconds in an hour; width 1 is FP8.
        let ln_unit = float::ln(2.0e6 / 3600.0);
        let ideal = ln_unit + first.usd.centre - first.ln_peak[1];
        let ln_widths = priors.serving.widths.map(|w| float::ln(w.0));
        let (range, level) = (priors.architecture.active_params, &priors.level);
        let below = |x: f64| {
            let z = (x - level.ln_served_size) / level.served_spread;
            float::root(1e-12, 1.0 - 1e-12, |p| normal_quantile(p) - z).unwrap_or(if z > 0.0 { 1.0 } else { 0.0 })
        };
        let served = (below(range.low), below(range.high));
        let ln_tiers = priors.tiers.iter().map(|t| float::ln(t.usd_per_gb_hour)).collect();
        Some(Self { priors: priors.clone(), seller, machines, ln_widths, ln_tiers, ln_unit, ideal, served })
    }

    /// Logarithm of dollars per million input tokens at 100 % MFU on the first chip.
    pub fn ln_ideal_cost(&self, ln_active: f64) -> f64 {
        self.ideal + ln_active
    }

    /// A point of the prior from a point of the unit cube; coordinates are asked for by number. `hosts` is how many the
    /// prices are a median of: what differs between them evens out.
    pub fn draw(&self, hosts: usize, mut u: impl FnMut(usize) -> f64) -> Draw {
        let p = &self.priors;
        let share = if hosts > 1 { p.level.serving_share } else { 1.0 };
        let mut normal = |j: usize, of: LogNormal| of.centre + of.scale * share * normal_quantile(u(j));
        let ln_context = normal(5, p.serving.context);
        let ln_batch_ratio = normal(6, p.serving.batch_over_balance);
        let ln_mbu = normal(7, p.serving.mbu).min(0.0);
        let factors = [9, 10, 11, 12].map(|j| normal_quantile(u(j)));
        let s = u(1);
        let dense = p.architecture.dense_share;
        let r = u(3);
        let full = p.architecture.full_read_share;
        Draw {
            ln_active: self.size(u(0)),
            ln_sparsity: if s < dense { 0.0 } else { uniform(p.architecture.sparsity, (s - dense) / (1.0 - dense)) },
            ln_kv: uniform(p.architecture.kv_bytes, u(2)),
            ln_read: if r < full { 0.0 } else { uniform(p.architecture.read_share, (r - full) / (1.0 - full)) },
            width: choice(p.serving.widths.iter().map(|w| w.1), u(4)),
            chip: choice(self.machines.iter().map(|m| m.share), u(13)),
            tier: choice(p.tiers.iter().map(|t| t.share), u(14)),
            ln_context,
            ln_batch_ratio,
            ln_mbu,
            ln_accepted: shrunk(p.serving.accepted, u(8), share),
            ln_attention: uniform(p.architecture.attention_context, u(18)),
            ln_rivalry: self.ln_rivalry(hosts),
            factors,
        }
    }

    /// Logarithm of active parameters at a share of the prior. Hosts serve models of the sizes that hosts serve, a few
    /// of any; of what a maker sells alone nothing is known.
    fn size(&self, u: f64) -> f64 {
        let range = self.priors.architecture.active_params;
        if self.seller == Seller::FirstParty || u < ANY_SIZE {
            let share = if self.seller == Seller::FirstParty { u } else { u / ANY_SIZE };
            return uniform(range, share);
        }
        let (low, high) = self.served;
        let level = &self.priors.level;
        let p = low + (high - low) * (u - ANY_SIZE) / (1.0 - ANY_SIZE);
        (level.ln_served_size + level.served_spread * normal_quantile(p)).clamp(range.low, range.high)
    }

    pub fn tier_name(&self, tier: usize) -> &str {
        &self.priors.tiers[tier].name
    }

    pub fn markup(&self) -> LogNormal {
        match self.seller {
            Seller::Host => self.priors.markup.host,
            Seller::FirstParty => self.priors.markup.first_party,
        }
    }

    /// Logarithm of what the mark-up of a host changes by where more, or fewer, sell the same weights than usual. What a
    /// maker sells alone has no rivals with the same weights.
    fn ln_rivalry(&self, hosts: usize) -> f64 {
        let level = &self.priors.level;
        if self.seller == Seller::Host { level.rivalry_exponent * level.ln_rivals(hosts) } else { 0.0 }
    }

    pub(super) fn expected_input(&self, d: &Draw) -> f64 {
        let level = &self.priors.level;
        let dearer = self.markup().centre - self.priors.markup.host.centre;
        self.ln_ideal_cost(d.ln_active) + level.offset + dearer + d.ln_rivalry + self.architecture(d)
    }

    /// By how much this architecture costs more than in proportion to its active parameters.
    fn architecture(&self, d: &Draw) -> f64 {
        let level = &self.priors.level;
        level.sparsity_exponent * d.ln_sparsity + level.size_exponent * (d.ln_active - level.ln_reference_size)
    }

    /// Splits an input price into its factors.
    pub(super) fn factors(&self, d: &Draw, ln_input: f64) -> Factors {
        let (p, m, markup) = (&self.priors, &self.machines[d.chip], self.markup());
        // Small matrices, as experts have, run less well: what costs more per active parameter has a lower MFU.
        let mfu_centre = p.serving.mfu_prefill.centre - self.architecture(d);
        let product = ln_input - d.ln_active - self.ln_unit + m.ln_peak[d.width];
        let markup_centre = markup.centre + d.ln_rivalry;
        let centre = markup_centre + m.usd.centre - p.serving.utilisation.centre - mfu_centre;
        let sds = [markup.scale, m.usd.scale, p.serving.utilisation.scale, p.serving.mfu_prefill.scale];
        let z = &d.factors;
        let spread = z[0] * sds[0] + z[1] * sds[1] - z[2] * sds[2] - z[3] * sds[3];
        let variance: f64 = sds.iter().map(|s| s * s).sum();
        // Each factor takes the share of the gap that its variance is of the whole.
        let gap = (product - centre - spread) / variance;
        Factors {
            ln_markup: markup_centre + z[0] * sds[0] + gap * sds[0] * sds[0],
            ln_utilisation: p.serving.utilisation.centre + z[2] * sds[2] - gap * sds[2] * sds[2],
            ln_mfu: (mfu_centre + z[3] * sds[3] - gap * sds[3] * sds[3]).min(0.0),
        }
    }

    /// Logarithm of the batch: its ratio to ridge times sparsity, behind which it falls where models are very sparse.
    pub(super) fn ln_batch(&self, d: &Draw) -> f64 {
        let grows = 1.0 - self.priors.level.batch_exponent;
        d.ln_batch_ratio + self.machines[d.chip].ln_ridge[d.width] + grows * d.ln_sparsity
    }

    pub(super) fn ln_width(&self, d: &Draw) -> f64 {
        self.ln_widths[d.width]
    }

    /// Logarithm of what holding a gigabyte for an hour costs.
    pub(super) fn ln_hold(&self, d: &Draw) -> f64 {
        self.ln_tiers[d.tier]
    }

    /// What decoding one token takes on one chip, by context.
    pub(super) fn decode(&self, d: &Draw, f: &Factors) -> Decode {
        let m = &self.machines[d.chip];
        let memory = 1.0 / (m.bandwidth * float::exp(d.ln_mbu + d.ln_accepted));
        // N_t w / B
        let weights = float::exp(d.ln_active + d.ln_sparsity + self.ln_width(d) - self.ln_batch(d));
        Decode {
            compute: 2.0 * float::exp(d.ln_active - f.ln_mfu) / m.peak[d.width],
            weights: weights * memory,
            kv: float::exp(d.ln_kv + d.ln_read) * memory,
        }
    }

    /// Mean and variance of the logarithm of output over input cost for a known architecture (logarithms of active
    /// parameters, sparsity and cache bytes) at an input price that is a median of hosts, over all ways to serve it.
    pub fn ln_output_ratio(
        &self,
        lattice: &Lattice,
        known: (f64, f64, f64),
        hosts: usize,
        ln_input: f64,
    ) -> (f64, f64) {
        let (mut sum, mut squares) = (0.0, 0.0);
        for i in 0..lattice.points() {
            let mut d = self.draw(hosts.max(2), |j| lattice.at(i, j));
            (d.ln_active, d.ln_sparsity, d.ln_kv) = known;
            d.ln_rivalry = self.ln_rivalry(hosts);
            let f = self.factors(&d, ln_input);
            let x = float::ln(self.decode(&d, &f).over_input(float::exp(d.ln_context)));
            sum += x;
            squares += x * x;
        }
        let n = lattice.points() as f64;
        (sum / n, squares / n - sum / n * (sum / n))
    }
}

fn uniform(range: LogUniform, u: f64) -> f64 {
    range.low + (range.high - range.low) * u
}

/// Uniform around the same middle, over a share of the range.
fn shrunk(range: LogUniform, u: f64, share: f64) -> f64 {
    f64::midpoint(range.low, range.high) + (range.high - range.low) * (u - 0.5) * share
}

fn choice(shares: impl Iterator<Item = f64>, u: f64) -> usize {
    let (mut sum, mut chosen) = (0.0, 0);
    for (i, share) in shares.enumerate() {
        if u >= sum {
            chosen = i;
        }
        sum += share;
    }
    chosen
}
