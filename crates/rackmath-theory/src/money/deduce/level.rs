//! How far prices lie above ideal cost: the level, fitted on models whose truth is known.
//!
//! $$ \ln P = \ln c_{ideal}(N_a) + o + a \ln S + g \ln\frac{N_a}{N_0} + \epsilon,\quad \epsilon \sim t_4(s) $$
//!
//! Fitted by reweighting (a residual far out counts less), one vote per architecture, the exponents drawn towards 0, the scale
//! towards what a regression over 29 open models left. How much the level could be off with so few makers, whose models are
//! priced alike, widens the scale. What sizes hosts serve is learnt from the same models ([`Level::ln_served_size`]). The chance that prices say nothing about size is the odds of two ways to explain the training prices: with the
//! architecture, and without.
//!
//! Many hosts of one model are one observation. A host that charges exactly what the maker charges has copied the list: all
//! such hosts count once. Of what remains the median is taken, input and output apart; over open models it follows size better
//! than the lowest price or the lower quartile does. Source: prices of 32 open models at up to 21 hosts, 2026.

use super::evidence::Sheet;
use super::lattice::Lattice;
use super::space::Space;
use crate::count::count;
use crate::kv::cache;
use crate::stats::{
    median,
    normal::{T4_PEAK, t4_relative},
};
use rackmath_spec::deduce::{DeducePriors, HostPrice, HostedModel, Level, LogNormal, Seller};
use rackmath_spec::{Dtype, Model};
use rackmath_units::float;
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub input: f64,
    pub output: f64,
    pub hosts: usize,
    /// Hosts that copied the maker's list and were folded into it.
    pub copies: usize,
    /// Standard deviation of the logarithm of the input price.
    pub spread: f64,
}

impl Summary {
    /// Of a list of hosts; `None` when it is empty.
    pub fn of(prices: &[HostPrice]) -> Option<Self> {
        let makers: Vec<(f64, f64)> = prices.iter().filter(|p| p.maker).map(|p| (p.input, p.output)).collect();
        let copied = |p: &HostPrice| !p.maker && makers.contains(&(p.input, p.output));
        let kept: Vec<&HostPrice> = prices.iter().filter(|p| !copied(p)).collect();
        let logs = |of: fn(&HostPrice) -> f64| -> Vec<f64> { kept.iter().map(|p| float::ln(of(p))).collect() };
        let (inputs, outputs) = (logs(|p| p.input), logs(|p| p.output));
        let n = inputs.len() as f64;
        let mean = inputs.iter().sum::<f64>() / n;
        let square = inputs.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
        Some(Self {
            input: float::exp(median(&inputs)?),
            output: float::exp(median(&outputs)?),
            hosts: kept.len(),
            copies: prices.len() - kept.len(),
            spread: if n > 1.0 { (square / (n - 1.0)).sqrt() } else { 0.0 },
        })
    }

    pub fn sheet(&self) -> Sheet {
        Sheet { input: Some(self.input), output: Some(self.output), hosts: self.hosts, ..Sheet::default() }
    }
}

/// A model whose prices and truth are known.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    pub name: String,
    /// Its architecture: models of one architecture are left out together.
    pub architecture: String,
    pub ln_active: f64,
    /// Logarithm of total over active parameters.
    pub ln_sparsity: f64,
    /// Logarithm of its cache bytes per token, at a byte per element.
    pub ln_kv: f64,
    pub prices: Vec<HostPrice>,
    pub summary: Summary,
}

impl Known {
    /// The family its name begins with, which one maker has: letters up to the first digit or dash.
    pub fn maker(&self) -> String {
        self.name.chars().take_while(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()).collect()
    }

    /// A hosted model with the architecture of the catalogue; `None` without hosts.
    pub fn of(hosted: &HostedModel, model: &Model) -> Option<Self> {
        let counted = count(model);
        let active = counted.active().get();
        Some(Self {
            name: hosted.id.clone(),
            architecture: hosted.config.clone(),
            ln_active: float::ln(active),
            ln_sparsity: float::ln(counted.total() as f64 / active),
            ln_kv: float::ln(cache(model, Dtype::Fp8).stored_per_token().get()),
            prices: hosted.hosts.clone(),
            summary: Summary::of(&hosted.hosts)?,
        })
    }
}

/// Scale the residual is drawn towards: residuals of 0.50 (input) of the regression over 29 models, as the t with the same
/// 80 % interval.
const SCALE: f64 = 0.836 * 0.50;
/// How many architectures that counts for.
const SCALE_VOTES: f64 = 6.0;
/// Standard deviations of the exponents of sparsity and size around 0.
const EXPONENTS: [f64; 2] = [0.3, 0.1];
/// Standard deviation of the batch exponent around 0.
const BATCH_EXPONENT: f64 = 0.5;
/// Active parameters at which the size exponent makes no difference.
const REFERENCE: f64 = 30e9;
/// The scale of the ratio's residual is never below this: the priors of serving already explain most of what ratios do.
const RATIO_LEAST: f64 = 0.25;

pub fn level(priors: &DeducePriors, models: &[&Known]) -> Level {
    let start = Level { offset: 0.0, sparsity_exponent: 0.0, size_exponent: 0.0, ..priors.level };
    let space = space(priors, start);
    let votes: Vec<f64> = models
        .iter()
        .map(|m| 1.0 / models.iter().filter(|other| other.architecture == m.architecture).count() as f64)
        .collect();
    let n: f64 = votes.iter().sum();
    let ys: Vec<f64> = models.iter().map(|m| float::ln(m.summary.input) - space.ln_ideal_cost(m.ln_active)).collect();
    let xs: Vec<[f64; 2]> = models.iter().map(|m| [m.ln_sparsity, m.ln_active - float::ln(REFERENCE)]).collect();
    let fitted = line(&ys, &xs, &votes);
    // The prices without the architecture: just as many of them, scattered around their own middle.
    let prices: Vec<f64> = models.iter().map(|m| float::ln(m.summary.input)).collect();
    let alone = line(&prices, &vec![[0.0; 2]; prices.len()], &votes);
    let host_scale = host_scale(models);
    let hosts = models.iter().zip(&votes).map(|(m, v)| v * 1.57 / m.summary.hosts as f64).sum::<f64>() / n;
    let between = (fitted.scale * fitted.scale - host_scale * host_scale * hosts).max(0.04);
    // An offset and an exponent learnt from so many makers are themselves uncertain: models of one maker are priced alike.
    let makers = models.iter().map(|m| m.maker()).collect::<BTreeSet<_>>().len().max(1) as f64;
    let scale = (between * (1.0 + 2.0 / makers)).sqrt();
    // What sizes hosts serve, which n architectures tell no better than this.
    let mean = |of: &dyn Fn(&Known) -> f64| models.iter().zip(&votes).map(|(m, v)| v * of(m)).sum::<f64>() / n;
    let ln_served_size = mean(&|m| m.ln_active);
    let square = mean(&|m| (m.ln_active - ln_served_size) * (m.ln_active - ln_served_size));
    let served_spread = (square * (n + 1.0) / (n - 1.0).max(1.0)).sqrt().max(0.1);
    let mut level = Level {
        offset: fitted.offset,
        sparsity_exponent: fitted.slopes[0],
        size_exponent: fitted.slopes[1],
        ln_reference_size: float::ln(REFERENCE),
        batch_exponent: 0.0,
        serving_share: 1.0,
        scale,
        host_scale,
        ratio_offset: 0.0,
        ratio_scale: RATIO_LEAST,
        // Two slopes more fit any prices better; each must earn a nat (Akaike).
        indifferent: 1.0 / (1.0 + float::exp(fitted.support - alone.support - 2.0)),
        indifferent_price: LogNormal { centre: alone.offset, scale: alone.scale / 0.836 },
        ln_served_size,
        served_spread,
    };
    ratio(priors, &mut level, models, &votes);
    level
}

fn space(priors: &DeducePriors, level: Level) -> Space {
    let priors = DeducePriors { level, ..priors.clone() };
    Space::new(&priors, Seller::Host).expect("catalogue chips have the peaks of catalogue widths")
}

struct Line {
    offset: f64,
    slopes: [f64; 2],
    scale: f64,
    /// Logarithm of the likelihood of the points, each left out of its own fit as far as the offset goes.
    support: f64,
}

/// A robust plane through points, its slopes drawn towards 0.
fn line(ys: &[f64], xs: &[[f64; 2]], votes: &[f64]) -> Line {
    let n: f64 = votes.iter().sum();
    let mut beta = [median(ys).unwrap_or(0.0), 0.0, 0.0];
    let mut scale = SCALE;
    let residual = |beta: &[f64; 3], i: usize| ys[i] - beta[0] - beta[1] * xs[i][0] - beta[2] * xs[i][1];
    for _ in 0..100 {
        let mut normal = [[0.0; 3]; 3];
        let mut right = [[0.0]; 3];
        let mut square = 0.0;
        for i in 0..ys.len() {
            let q = residual(&beta, i) / scale;
            // Expectation step of Student's t with four degrees of freedom.
            let w = votes[i] * 5.0 / (4.0 + q * q);
            square += w * q * q * scale * scale;
            let x = [1.0, xs[i][0], xs[i][1]];
            for a in 0..3 {
                right[a][0] += w * x[a] * ys[i];
                for b in 0..3 {
                    normal[a][b] += w * x[a] * x[b];
                }
            }
        }
        for (a, sd) in EXPONENTS.iter().enumerate() {
            normal[a + 1][a + 1] += scale * scale / (sd * sd);
        }
        beta = solve(normal, right).map(|b| b[0]);
        scale = ((SCALE_VOTES * SCALE * SCALE + square) / (SCALE_VOTES + n)).sqrt();
    }
    let support = (0..ys.len())
        .map(|i| {
            let q = residual(&beta, i) * n / (n - 1.0).max(1.0) / scale;
            votes[i] * float::ln(T4_PEAK * t4_relative(q) / scale)
        })
        .sum();
    Line { offset: beta[0], slopes: [beta[1], beta[2]], scale, support }
}

/// Solves symmetric positive equations by elimination.
pub fn solve<const R: usize>(mut a: [[f64; 3]; 3], mut b: [[f64; R]; 3]) -> [[f64; R]; 3] {
    for i in 0..3 {
        // Positive definite: no pivoting, and a trace of ridge against a missing direction.
        a[i][i] += 1e-9;
        let (pivot, known) = (a[i], b[i]);
        for r in (0..3).filter(|r| *r != i) {
            let f = a[r][i] / pivot[i];
            for (x, p) in a[r].iter_mut().zip(pivot) {
                *x -= f * p;
            }
            for (x, k) in b[r].iter_mut().zip(known) {
                *x -= f * k;
            }
        }
    }
    std::array::from_fn(|i| b[i].map(|x| x / a[i][i]))
}

/// What hosts of one model differ by, pooled: a t scale from the median absolute deviation.
fn host_scale(models: &[&Known]) -> f64 {
    let mut gaps = Vec::new();
    for m in models {
        let middle = float::ln(m.summary.input);
        gaps.extend(m.prices.iter().map(|p| (float::ln(p.input) - middle).abs()));
    }
    // The median of |t4| is 0.741 scales.
    median(&gaps).unwrap_or(0.5) / 0.741
}

/// How the output to input ratio follows sparsity, how much serving explains of it, and what is left.
fn ratio(priors: &DeducePriors, level: &mut Level, models: &[&Known], votes: &[f64]) {
    let n: f64 = votes.iter().sum();
    let lattice = Lattice::new(9, 1);
    let tried = |level: &Level| {
        let space = space(priors, *level);
        let (mut residuals, mut explained) = (Vec::new(), 0.0);
        for (m, vote) in models.iter().zip(votes) {
            let ln_input = float::ln(m.summary.input);
            let known = (m.ln_active, m.ln_sparsity, m.ln_kv);
            let (mean, variance) = space.ln_output_ratio(&lattice, known, ln_input);
            residuals.push(float::ln(m.summary.output) - ln_input - mean);
            explained += vote * variance / n;
        }
        // Variance of the t, in terms of its 80 % interval.
        (line(&residuals, &vec![[0.0; 2]; residuals.len()], votes), 0.836 * 0.836 * explained)
    };
    let mut best = f64::NEG_INFINITY;
    let mut found = *level;
    for step in 0..=10 {
        let exponent = 0.1 * f64::from(step);
        let trial = Level { batch_exponent: exponent, serving_share: 0.5, ..*level };
        let support = tried(&trial).0.support - 0.5 * (exponent / BATCH_EXPONENT) * (exponent / BATCH_EXPONENT);
        if support > best {
            (best, found) = (support, trial);
        }
    }
    // Serving explains at most half of what ratios differ by; the rest is the vendors' choice.
    let (whole, explained) = tried(&found);
    found.serving_share = (0.5 * (0.5 * whole.scale * whole.scale / explained).sqrt()).clamp(0.05, 1.0);
    let (rest, explained) = tried(&found);
    found.ratio_offset = rest.offset;
    found.ratio_scale = (rest.scale * rest.scale - explained).max(RATIO_LEAST * RATIO_LEAST).sqrt();
    *level = found;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(input: f64, output: f64, maker: bool) -> HostPrice {
        HostPrice { host: "h".into(), source: "s".into(), input, output, cached: None, maker }
    }

    #[test]
    fn copies_of_the_makers_list_count_once() {
        let list = [price(1.0, 4.0, true), price(1.0, 4.0, false), price(1.0, 4.0, false), price(4.0, 8.0, false)];
        let s = Summary::of(&list).unwrap();
        assert_eq!((s.hosts, s.copies), (2, 2));
        assert!((s.input - 2.0).abs() < 1e-12 && (s.output - 32.0_f64.sqrt()).abs() < 1e-12);
        assert!(Summary::of(&[]).is_none());
    }
}
