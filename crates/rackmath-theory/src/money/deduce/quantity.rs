//! The unknowns a posterior is shown for, and the histogram each is kept in.

use super::space::{Draw, Factors, Space};
use schemars::JsonSchema;
use serde::Serialize;
use strum::Display;

/// Bins of a histogram: fine enough that a quantile is good to a percent.
pub const BINS: usize = 512;
/// Bins that are put together when information is counted, so that few points do not look like knowledge.
const COARSE: usize = 16;
pub(super) const COARSE_BINS: usize = BINS / COARSE;

/// Finds the coarse bin of a logarithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coarse {
    low: f64,
    per_unit: f64,
}

impl Coarse {
    pub(super) fn new((low, high): (f64, f64)) -> Self {
        Self { low, per_unit: COARSE_BINS as f64 / (high - low) }
    }

    pub(super) fn bin(&self, x: f64) -> usize {
        bin(x, self.low, self.per_unit, COARSE_BINS)
    }
}

fn bin(x: f64, low: f64, per_unit: f64, bins: usize) -> usize {
    (((x - low) * per_unit).max(0.0) as usize).min(bins - 1)
}

/// An unknown on a logarithmic scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Display, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unknown {
    /// Parameters used per token.
    #[strum(to_string = "active parameters")]
    Active,
    #[strum(to_string = "total parameters")]
    Total,
    #[strum(to_string = "sparsity (total / active)")]
    Sparsity,
    #[strum(to_string = "KV stored per token")]
    KvStored,
    /// Cache bytes read per token of context and step.
    #[strum(to_string = "KV read per token")]
    KvRead,
    #[strum(to_string = "batch")]
    Batch,
    /// Price over realised cost.
    #[strum(to_string = "mark-up on cost")]
    Markup,
    #[strum(to_string = "prefill MFU")]
    Mfu,
}

pub const UNKNOWNS: usize = Unknown::ALL.len();

impl Unknown {
    pub const ALL: [Self; 8] =
        [Self::Active, Self::Total, Self::Sparsity, Self::KvStored, Self::KvRead, Self::Batch, Self::Markup, Self::Mfu];

    /// The ends of its histogram, in natural logarithms.
    pub fn ends(self, space: &Space) -> (f64, f64) {
        let a = &space.priors.architecture;
        match self {
            Self::Active => (a.active_params.low, a.active_params.high),
            Self::Total => (a.active_params.low, a.active_params.high + a.sparsity.high),
            Self::Sparsity => (-0.01, a.sparsity.high),
            Self::KvStored => (a.kv_bytes.low, a.kv_bytes.high),
            Self::KvRead => (a.kv_bytes.low + a.read_share.low, a.kv_bytes.high),
            // Six standard deviations either side of what is likely.
            Self::Batch => (-3.0, 16.0),
            Self::Markup => (-4.0, 8.0),
            Self::Mfu => (-6.0, 1e-6),
        }
    }
}

/// The unknowns of one point, in the order of [`Unknown::ALL`].
pub(super) fn values(space: &Space, d: &Draw, f: &Factors) -> [f64; UNKNOWNS] {
    [
        d.ln_active,
        d.ln_active + d.ln_sparsity,
        d.ln_sparsity,
        d.ln_kv,
        d.ln_kv + d.ln_read,
        space.ln_batch(d),
        f.ln_markup,
        f.ln_mfu,
    ]
}

#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    low: f64,
    per_unit: f64,
    bins: Box<[f64; BINS]>,
}

impl Histogram {
    pub fn new((low, high): (f64, f64)) -> Self {
        Self { low, per_unit: BINS as f64 / (high - low), bins: Box::new([0.0; BINS]) }
    }

    /// Adds weight at a logarithm; what lies outside counts at the end.
    pub fn add(&mut self, x: f64, weight: f64) {
        self.bins[self.bin(x)] += weight;
    }

    fn bin(&self, x: f64) -> usize {
        bin(x, self.low, self.per_unit, BINS)
    }

    fn sum(&self) -> f64 {
        self.bins.iter().sum()
    }

    fn edge(&self, bin: f64) -> f64 {
        self.low + bin / self.per_unit
    }

    /// The logarithm below which a share of the weight lies, interpolated inside a bin.
    pub fn quantile(&self, share: f64) -> f64 {
        let wanted = share * self.sum();
        let mut below = 0.0;
        for (i, w) in self.bins.iter().enumerate() {
            if below + w >= wanted && *w > 0.0 {
                return self.edge(i as f64 + ((wanted - below) / w).clamp(0.0, 1.0));
            }
            below += w;
        }
        self.edge(BINS as f64)
    }

    pub fn below(&self, x: f64) -> f64 {
        let at = ((x - self.low) * self.per_unit).clamp(0.0, BINS as f64);
        let (whole, part) = (at as usize, at.fract());
        let below: f64 = self.bins[..whole].iter().sum();
        (below + self.bins.get(whole).map_or(0.0, |w| w * part)) / self.sum()
    }

    /// The same, with a share `u` of the bin the value lies in: uniform over truths even where many of them are equal.
    pub fn rank(&self, x: f64, u: f64) -> f64 {
        let bin = self.bin(x);
        (self.bins[..bin].iter().sum::<f64>() + u * self.bins[bin]) / self.sum()
    }

    pub fn mean(&self) -> f64 {
        let weighted: f64 = self.bins.iter().enumerate().map(|(i, w)| w * self.edge(i as f64 + 0.5)).sum();
        weighted / self.sum()
    }

    /// Density per unit of the logarithm, averaged over a coarse bin.
    pub fn density(&self, x: f64) -> f64 {
        let bin = self.bin(x) / COARSE * COARSE;
        self.bins[bin..bin + COARSE].iter().sum::<f64>() / self.sum() * self.per_unit / COARSE as f64
    }

    /// Points of the density, for a chart.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let sum = self.sum();
        let at = |i: usize| self.edge(((i + i + 1) * COARSE) as f64 / 4.0);
        let half = COARSE / 2;
        (0..BINS / half)
            .map(|i| {
                (at(i), self.bins[i * half..(i + 1) * half].iter().sum::<f64>() / sum * self.per_unit / half as f64)
            })
            .collect()
    }

    /// Information over another histogram of the same unknown: its relative entropy in bits.
    pub fn bits_over(&self, prior: &Self) -> f64 {
        self.bits_over_coarse(&prior.coarse())
    }

    fn coarse(&self) -> [f64; COARSE_BINS] {
        std::array::from_fn(|i| self.bins[i * COARSE..(i + 1) * COARSE].iter().sum())
    }

    pub(super) fn bits_over_coarse(&self, prior: &[f64; COARSE_BINS]) -> f64 {
        let (mine, theirs) = (self.sum(), prior.iter().sum::<f64>());
        let mut nats = 0.0;
        for (a, b) in self.coarse().iter().zip(prior) {
            let (p, q) = (a / mine, b / theirs);
            if p > 0.0 {
                // A bin the prior has missed cannot be infinitely surprising.
                nats += p * rackmath_units::float::ln(p / q.max(1e-9));
            }
        }
        (nats / std::f64::consts::LN_2).max(0.0)
    }

    /// Continuous ranked probability score against a truth, in units of the logarithm.
    pub fn crps(&self, truth: f64) -> f64 {
        let (sum, mut below, mut score) = (self.sum(), 0.0, 0.0);
        for (i, w) in self.bins.iter().enumerate() {
            let share = (below + w / 2.0) / sum;
            below += w;
            let wrong = if self.edge(i as f64 + 0.5) >= truth { 1.0 - share } else { share };
            score += wrong * wrong / self.per_unit;
        }
        score
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uniform_histogram() {
        let mut h = Histogram::new((0.0, 4.0));
        for i in 0..4096 {
            h.add((f64::from(i) + 0.5) / 1024.0, 1.0);
        }
        assert!((h.quantile(0.25) - 1.0).abs() < 1e-9 && (h.below(3.0) - 0.75).abs() < 1e-9);
        assert!((h.mean() - 2.0).abs() < 1e-9 && (h.density(1.3) - 0.25).abs() < 1e-9);
        assert_eq!(h.bits_over(&h.clone()), 0.0);
        // A uniform forecast of length 4 scores a twelfth of its length at its centre, a third at an end.
        assert!((h.crps(2.0) - 4.0 / 12.0).abs() < 1e-4 && (h.crps(0.0) - 4.0 / 3.0).abs() < 1e-2);
        // Half the range is one bit.
        let (mut prior, mut half) = (Histogram::new((0.0, 1.0)), Histogram::new((0.0, 1.0)));
        for i in 0..512 {
            prior.add((f64::from(i) + 0.5) / 512.0, 1.0);
            half.add((f64::from(i) + 0.5) / 1024.0, 1.0);
        }
        assert!((half.bits_over(&prior) - 1.0).abs() < 1e-12);
    }
}
