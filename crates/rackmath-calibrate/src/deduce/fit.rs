//! How far prices lie above ideal cost: the level, fitted on models whose truth is known.
//!
//! $$ \ln P = \ln c_{ideal}(N_a) + o + a \ln S + \epsilon,\quad \epsilon \sim t_4(s) $$
//!
//! Fitted by reweighting (a residual far out counts less), one vote per architecture, the exponent drawn towards 0, the scale
//! towards what a regression over 29 open models left. How much the level could be off with so few architectures widens the
//! scale. The chance that prices say nothing about size is the odds of two ways to explain the training prices: with the
//! architecture, and without.

use super::rows::Known;
use rackmath_spec::deduce::{DeducePriors, Level, LogNormal, Seller};
use rackmath_theory::deduce::hosts::median;
use rackmath_theory::deduce::lattice::Lattice;
use rackmath_theory::deduce::normal::{T4_PEAK, t4_relative};
use rackmath_theory::deduce::space::Space;
use rackmath_units::float;

/// Scale the residual is drawn towards: residuals of 0.50 (input) of the regression over 29 models, as the t with the same
/// 80 % interval.
const SCALE: f64 = 0.836 * 0.50;
/// How many architectures that counts for.
const SCALE_VOTES: f64 = 6.0;
/// Standard deviation of the sparsity exponent around 0.
const EXPONENT: f64 = 0.3;
/// The scale of the ratio's residual is never below this: the priors of serving already explain most of what ratios do.
const RATIO_LEAST: f64 = 0.25;

/// Fits the level on some models.
pub fn level(priors: &DeducePriors, models: &[&Known]) -> Level {
    let start = Level { offset: 0.0, sparsity_exponent: 0.0, ..priors.level };
    let space = space(priors, start);
    let votes: Vec<f64> = models
        .iter()
        .map(|m| 1.0 / models.iter().filter(|other| other.architecture == m.architecture).count() as f64)
        .collect();
    let n: f64 = votes.iter().sum();
    let ys: Vec<f64> = models.iter().map(|m| float::ln(m.summary.input) - space.ln_ideal_cost(m.ln_active)).collect();
    let fitted = line(&ys, &models.iter().map(|m| m.ln_sparsity).collect::<Vec<_>>(), &votes);
    // The prices without the architecture: just as many of them, scattered around their own middle.
    let prices: Vec<f64> = models.iter().map(|m| float::ln(m.summary.input)).collect();
    let alone = line(&prices, &vec![0.0; prices.len()], &votes);
    let host_scale = host_scale(models);
    let hosts = models.iter().zip(&votes).map(|(m, v)| v * 1.57 / m.summary.hosts as f64).sum::<f64>() / n;
    let between = (fitted.scale * fitted.scale - host_scale * host_scale * hosts).max(0.04);
    // An offset and an exponent learnt from n architectures are themselves uncertain.
    let scale = (between * (1.0 + 2.0 / n)).sqrt();
    let mut level = Level {
        offset: fitted.offset,
        sparsity_exponent: fitted.slope,
        scale,
        host_scale,
        ratio_offset: 0.0,
        ratio_scale: RATIO_LEAST,
        indifferent: 1.0 / (1.0 + float::exp(fitted.support - alone.support)),
        indifferent_price: LogNormal { centre: alone.offset, scale: alone.scale / 0.836 },
    };
    (level.ratio_offset, level.ratio_scale) = ratio(priors, level, models, &votes);
    level
}

fn space(priors: &DeducePriors, level: Level) -> Space {
    let priors = DeducePriors { level, ..priors.clone() };
    Space::new(&priors, Seller::Host).expect("catalogue chips have the peaks of catalogue widths")
}

struct Line {
    offset: f64,
    slope: f64,
    scale: f64,
    /// Logarithm of the likelihood of the points, each left out of its own fit as far as the offset goes.
    support: f64,
}

/// A robust line through points, its slope drawn towards 0.
fn line(ys: &[f64], xs: &[f64], votes: &[f64]) -> Line {
    let n: f64 = votes.iter().sum();
    let (mut offset, mut slope, mut scale) = (median(ys.to_vec()).unwrap_or(0.0), 0.0, SCALE);
    for _ in 0..100 {
        let w: Vec<f64> = ys
            .iter()
            .zip(xs)
            .zip(votes)
            .map(|((y, x), v)| {
                let q = (y - offset - slope * x) / scale;
                // Expectation step of Student's t with four degrees of freedom.
                v * 5.0 / (4.0 + q * q)
            })
            .collect();
        let sum = |f: &dyn Fn(usize) -> f64| (0..ys.len()).map(|i| w[i] * f(i)).sum::<f64>();
        let (s0, sx, sxx) = (sum(&|_| 1.0), sum(&|i| xs[i]), sum(&|i| xs[i] * xs[i]));
        let (sy, sxy) = (sum(&|i| ys[i]), sum(&|i| xs[i] * ys[i]));
        let pull = scale * scale / (EXPONENT * EXPONENT);
        slope = (s0 * sxy - sx * sy) / (s0 * (sxx + pull) - sx * sx);
        offset = (sy - slope * sx) / s0;
        let square = sum(&|i| (ys[i] - offset - slope * xs[i]) * (ys[i] - offset - slope * xs[i]));
        scale = ((SCALE_VOTES * SCALE * SCALE + square) / (SCALE_VOTES + n)).sqrt();
    }
    let support = (0..ys.len())
        .map(|i| {
            let q = (ys[i] - offset - slope * xs[i]) * n / (n - 1.0).max(1.0) / scale;
            votes[i] * float::ln(T4_PEAK * t4_relative(q) / scale)
        })
        .sum();
    Line { offset, slope, scale, support }
}

/// What hosts of one model differ by, pooled: a t scale from the median absolute deviation.
fn host_scale(models: &[&Known]) -> f64 {
    let mut gaps = Vec::new();
    for m in models {
        let middle = float::ln(m.summary.input);
        gaps.extend(m.prices.iter().map(|p| (float::ln(p.input) - middle).abs()));
    }
    // The median of |t4| is 0.741 scales.
    median(gaps).unwrap_or(0.5) / 0.741
}

/// Offset and scale of the output to input ratio beyond what serving explains.
fn ratio(priors: &DeducePriors, level: Level, models: &[&Known], votes: &[f64]) -> (f64, f64) {
    let space = space(priors, level);
    let lattice = Lattice::new(10, 1);
    let n: f64 = votes.iter().sum();
    let (mut residuals, mut explained) = (Vec::new(), 0.0);
    for (m, vote) in models.iter().zip(votes) {
        let ln_input = float::ln(m.summary.input);
        let (mean, variance) =
            space.ln_output_ratio(&lattice, (m.ln_active, m.ln_sparsity, m.ln_kv), ln_input);
        residuals.push(float::ln(m.summary.output) - ln_input - mean);
        explained += vote * variance / n;
    }
    let alone = line(&residuals, &vec![0.0; residuals.len()], votes);
    // Variance of the t, in terms of its 80 % interval.
    let left = alone.scale * alone.scale - 0.836 * 0.836 * explained;
    (alone.offset, left.max(RATIO_LEAST * RATIO_LEAST).sqrt())
}

