//! How far prices lie above ideal cost: the level, fitted on models whose truth is known.
//!
//! $$ \ln P = \ln c_{ideal}(N_a) + o + a \ln S + g \ln\frac{N_a}{N_0} + r \ln\frac{n}{n_0} + \epsilon,\quad \epsilon \sim t_4(s) $$
//!
//! | symbol | code | meaning |
//! |--------|------|---------|
//! | o | `offset` | logarithm of price over ideal cost of a dense model with the usual number of hosts |
//! | a, S | `sparsity_exponent` | power of total over active parameters |
//! | g, N_0 | `size_exponent`, `ln_reference_size` | power of the size |
//! | r, n, n_0 | `rivalry_exponent`, `Summary::hosts`, `ln_usual_hosts` | power of how many hosts have set a price of their own |
//!
//! The weights are the same at every host, so hosts compete by price: the more of them have set one of their own, the
//! lower the middle of their prices. The exponent r is drawn towards what Cournot's rivals would have ([`rivalry`]).
//!
//! Fitted by reweighting (a residual far out counts less), one vote per architecture, the other exponents drawn towards 0, the
//! scale towards what a regression over 29 open models left. How much the level could be off with so few architectures widens
//! the scale. What sizes hosts serve is learnt from the same models ([`Level::ln_served_size`]). The chance that prices say
//! nothing about size is the odds of two ways to explain the training prices: with the architecture, and without.
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
/// Standard deviations of the exponents of sparsity and size around 0, and of rivals around what Cournot says.
const EXPONENTS: [f64; SLOPES] = [0.3, 0.1, 0.5];
/// What a price may follow: sparsity, size, rivals.
const SLOPES: usize = 3;
/// Standard deviation of the batch exponent around 0.
const BATCH_EXPONENT: f64 = 0.5;
/// Active parameters at which the size exponent makes no difference.
const REFERENCE: f64 = 30e9;
/// The scale of the ratio's residual is never below this: the priors of serving already explain most of what ratios do.
const RATIO_LEAST: f64 = 0.25;

pub fn level(priors: &DeducePriors, models: &[&Known]) -> Level {
    let votes: Vec<f64> = models
        .iter()
        .map(|m| 1.0 / models.iter().filter(|other| other.architecture == m.architecture).count() as f64)
        .collect();
    let n: f64 = votes.iter().sum();
    let mean = |of: &dyn Fn(&Known) -> f64| models.iter().zip(&votes).map(|(m, v)| v * of(m)).sum::<f64>() / n;
    let ln_usual_hosts = mean(&|m| float::ln(m.summary.hosts as f64));
    let start = Level { ln_usual_hosts, ..priors.level };
    let space = space(priors, start);
    let ys: Vec<f64> = models.iter().map(|m| float::ln(m.summary.input) - space.ln_ideal_cost(m.ln_active)).collect();
    let rivals = |m: &Known| start.ln_rivals(m.summary.hosts);
    let slopes = |m: &&Known| [m.ln_sparsity, m.ln_active - float::ln(REFERENCE), rivals(m)];
    let towards = [0.0, 0.0, rivalry(float::exp(priors.markup.host.centre), float::exp(ln_usual_hosts))];
    let fitted = line(&ys, &models.iter().map(slopes).collect::<Vec<_>>(), &votes, towards);
    // The prices without the architecture: just as many of them, scattered around what their rivals say.
    let prices: Vec<f64> = models.iter().map(|m| float::ln(m.summary.input)).collect();
    let alone = line(&prices, &models.iter().map(|m| [0.0, 0.0, rivals(m)]).collect::<Vec<_>>(), &votes, towards);
    let host_scale = host_scale(models);
    let hosts = models.iter().zip(&votes).map(|(m, v)| v * 1.57 / m.summary.hosts as f64).sum::<f64>() / n;
    let between = (fitted.scale * fitted.scale - host_scale * host_scale * hosts).max(0.04);
    // An offset and exponents learnt from so many architectures are themselves uncertain: on average over the points of a
    // regression with p coefficients the variance of a forecast is 1 + p/n that of a residual. Beside the number of rivals
    // makers do not differ by more than their models do.
    let scale = (between * (1.0 + (SLOPES + 1) as f64 / n.max(1.0))).sqrt();
    // What sizes hosts serve, which n architectures tell no better than this.
    let ln_served_size = mean(&|m| m.ln_active);
    let square = mean(&|m| (m.ln_active - ln_served_size) * (m.ln_active - ln_served_size));
    let served_spread = (square * (n + 1.0) / (n - 1.0).max(1.0)).sqrt().max(0.1);
    let mut level = Level {
        offset: fitted.offset,
        sparsity_exponent: fitted.slopes[0],
        size_exponent: fitted.slopes[1],
        ln_reference_size: float::ln(REFERENCE),
        rivalry_exponent: fitted.slopes[2],
        ln_usual_hosts,
        batch_exponent: 0.0,
        serving_share: 1.0,
        scale,
        host_scale,
        ratio_offset: 0.0,
        ratio_scale: RATIO_LEAST,
        // The two slopes of the architecture fit any prices better; each must earn a nat (Akaike).
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
    slopes: [f64; SLOPES],
    scale: f64,
    /// Logarithm of the likelihood of the points, each left out of its own fit as far as the offset goes.
    support: f64,
}

/// Power of the number of sellers with which a price falls: n alike firms that meet a straight line of demand sell at
/// $P - c = (a - c)/(n + 1)$ (Cournot 1838), so that
///
/// $$ \frac{d \ln P}{d \ln n} = -\left(1 - \frac{1}{m}\right)\frac{n}{n + 1} \qquad m = P / c $$
pub fn rivalry(markup: f64, sellers: f64) -> f64 {
    -(1.0 - 1.0 / markup) * sellers / (sellers + 1.0)
}

/// A robust plane through points, its slopes drawn towards some.
fn line(ys: &[f64], xs: &[[f64; SLOPES]], votes: &[f64], towards: [f64; SLOPES]) -> Line {
    const N: usize = SLOPES + 1;
    let n: f64 = votes.iter().sum();
    let mut beta = [0.0; N];
    beta[0] = median(ys).unwrap_or(0.0);
    let mut scale = SCALE;
    let rise = |beta: &[f64; N], i: usize| beta[1..].iter().zip(&xs[i]).map(|(b, x)| b * x).sum::<f64>();
    let residual = |beta: &[f64; N], i: usize| ys[i] - beta[0] - rise(beta, i);
    for _ in 0..100 {
        let mut normal = [[0.0; N]; N];
        let mut right = [[0.0]; N];
        let mut square = 0.0;
        for i in 0..ys.len() {
            let q = residual(&beta, i) / scale;
            // Expectation step of Student's t with four degrees of freedom.
            let w = votes[i] * 5.0 / (4.0 + q * q);
            square += w * q * q * scale * scale;
            let x: [f64; N] = std::array::from_fn(|a| if a == 0 { 1.0 } else { xs[i][a - 1] });
            for a in 0..N {
                right[a][0] += w * x[a] * ys[i];
                for b in 0..N {
                    normal[a][b] += w * x[a] * x[b];
                }
            }
        }
        for (a, sd) in EXPONENTS.iter().enumerate() {
            let pull = scale * scale / (sd * sd);
            normal[a + 1][a + 1] += pull;
            right[a + 1][0] += pull * towards[a];
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
    Line { offset: beta[0], slopes: std::array::from_fn(|a| beta[a + 1]), scale, support }
}

/// Solves symmetric positive equations by elimination.
pub fn solve<const N: usize, const R: usize>(mut a: [[f64; N]; N], mut b: [[f64; R]; N]) -> [[f64; R]; N] {
    for i in 0..N {
        // Positive definite: no pivoting, and a trace of ridge against a missing direction.
        a[i][i] += 1e-9;
        let (pivot, known) = (a[i], b[i]);
        for r in (0..N).filter(|r| *r != i) {
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
            let (mean, variance) = space.ln_output_ratio(&lattice, known, m.summary.hosts, ln_input);
            residuals.push(float::ln(m.summary.output) - ln_input - mean);
            explained += vote * variance / n;
        }
        // Variance of the t, in terms of its 80 % interval.
        let flat = vec![[0.0; SLOPES]; residuals.len()];
        (line(&residuals, &flat, votes, [0.0; SLOPES]), 0.836 * 0.836 * explained)
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
    fn the_price_of_rivals_falls_as_cournot_says() {
        // Demand a - q, cost c: each of n firms sells (a - c)/(n + 1). With a = 10 and c = 1 nine firms sell at 1.9.
        let (a, c) = (10.0, 1.0);
        let price = |n: f64| c + (a - c) / (n + 1.0);
        assert!((price(9.0) - 1.9).abs() < 1e-12);
        for n in [2.0, 9.0, 30.0] {
            let h = 1e-5;
            let slope = (float::ln(price(n * (1.0 + h))) - float::ln(price(n * (1.0 - h)))) / (2.0 * h);
            assert!((rivalry(price(n) / c, n) - slope).abs() < 1e-6, "{n}: {slope}");
        }
        // At cost there is nothing to take off.
        assert_eq!(rivalry(1.0, 9.0), 0.0);
    }

    /// Models priced by a law with an exponent of -0.8: it is found again, drawn a little towards Cournot's, which is -0.64 at
    /// the catalogue's mark-up and nine hosts. Were rivals left out, the scale of the residual would grow by half.
    #[test]
    fn the_exponent_of_rivals_is_found_in_prices_made_with_it() {
        let priors = rackmath_catalog::embedded().deduce_priors().unwrap();
        let ideal = space(&priors, priors.level);
        let made = |exponent: f64| -> Vec<Known> {
            let one = |i: usize| {
                let (hosts, ln_active) = ([2, 4, 9, 20][i % 4], float::ln([4e9, 12e9, 30e9, 70e9, 200e9][i % 5]));
                // Nothing else about a model goes with how many sell it.
                let noise = 0.15 * [1.0, -1.0, -0.5, 0.5, 0.0][(i * 3 / 4) % 5];
                let input =
                    float::exp(ideal.ln_ideal_cost(ln_active) + 2.8 + exponent * float::ln(hosts as f64 / 9.0) + noise);
                let prices = vec![price(input, 3.0 * input, false); hosts];
                let summary = Summary::of(&prices).unwrap();
                let (name, ln_sparsity, ln_kv) = (format!("m{i}"), float::ln(10.0), float::ln(40e3));
                Known { architecture: name.clone(), name, ln_active, ln_sparsity, ln_kv, prices, summary }
            };
            (0..20).map(one).collect()
        };
        let fitted = |exponent: f64| {
            let models = made(exponent);
            level(&priors, &models.iter().collect::<Vec<_>>())
        };
        for exponent in [-0.8, -0.4, 0.0] {
            let found = fitted(exponent).rivalry_exponent;
            assert!((found - exponent).abs() < 0.12, "{exponent}: {found}");
        }
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
