//! Leave one architecture out: how well prices give back active parameters, beside the prior and simpler ways.

use rackmath_spec::deduce::{DeducePriors, Level, Policies, Seller};
use rackmath_theory::deduce::level::{self, Known};
use rackmath_theory::deduce::quantity::{BINS, Histogram};
use rackmath_theory::deduce::{Evidence, Posterior, Sampling, Space, Unknown};
use rackmath_theory::stats::median;
use rackmath_units::float;
use std::fmt;

/// How well a set of forecasts did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marks {
    /// Forecasts.
    pub n: usize,
    /// Median distance of the median from the truth, in powers of ten.
    pub error_dex: f64,
    /// Mean width of the 80 % interval, in powers of ten.
    pub width_dex: f64,
    /// Share of truths inside it.
    pub coverage: f64,
    /// Continuous ranked probability score, natural logarithms.
    pub crps: f64,
    /// Mean information over the prior.
    pub bits: f64,
    /// Mean gain of density at the truth over the prior, in bits.
    pub score_bits: f64,
}

#[derive(Clone, Debug)]
pub struct Forecast {
    /// The model.
    pub name: String,
    pub truth: f64,
    pub histogram: Histogram,
}

impl Marks {
    pub fn of(forecasts: &[Forecast], prior: &Histogram) -> Self {
        let n = forecasts.len().max(1) as f64;
        let ten = float::ln(10.0);
        let mean = |f: &dyn Fn(&Forecast) -> f64| forecasts.iter().map(f).sum::<f64>() / n;
        let ends = |h: &Histogram| (h.quantile(0.1), h.quantile(0.9));
        let errors: Vec<f64> = forecasts.iter().map(|f| (f.histogram.quantile(0.5) - f.truth).abs() / ten).collect();
        Self {
            n: forecasts.len(),
            error_dex: median(&errors).unwrap_or(0.0),
            width_dex: mean(&|f| (ends(&f.histogram).1 - ends(&f.histogram).0) / ten),
            coverage: mean(&|f| {
                let (low, high) = ends(&f.histogram);
                if (low..=high).contains(&f.truth) { 1.0 } else { 0.0 }
            }),
            crps: mean(&|f| f.histogram.crps(f.truth)),
            bits: mean(&|f| f.histogram.bits_over(prior)),
            score_bits: mean(&|f| {
                float::ln(f.histogram.density(f.truth).max(1e-9) / prior.density(f.truth)) / std::f64::consts::LN_2
            }),
        }
    }
}

impl fmt::Display for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>6.3} {:>9.3} {:>8.1}% {:>9.3} {:>6.2} {:>9.2}",
            self.error_dex,
            self.width_dex,
            100.0 * self.coverage,
            self.crps,
            self.bits,
            self.score_bits
        )
    }
}

/// What forecasts need.
#[derive(Clone)]
pub struct Judge {
    pub priors: DeducePriors,
    pub policies: Policies,
    /// Points of each posterior.
    pub sampling: Sampling,
}

impl Judge {
    pub fn space(&self, level: Level) -> Space {
        let priors = DeducePriors { level, ..self.priors.clone() };
        Space::new(&priors, Seller::Host).expect("catalogue chips have the peaks of catalogue widths")
    }

    /// Active parameters from the prices of a model's hosts.
    fn forecast(&self, space: &Space, m: &Known) -> Option<Forecast> {
        let policy = |ratio| self.policies.host.get(&ratio).copied().unwrap_or(0.5);
        let evidence = Evidence::new(space, &m.summary.sheet(), policy);
        let histogram = Posterior::new(space, &evidence, self.sampling).ok()?.of(Unknown::Active).clone();
        Some(Forecast { name: m.name.clone(), truth: m.ln_active, histogram })
    }

    /// The prior of active parameters: no data at all.
    pub fn prior(&self) -> Posterior {
        let space = self.space(self.priors.level);
        let evidence = Evidence::new(&space, &rackmath_theory::deduce::Sheet::default(), |_| 0.0);
        Posterior::new(&space, &evidence, self.sampling).expect("the prior has even weights")
    }

    /// Forecasts of every model from the level of all other architectures.
    pub fn left_out(&self, models: &[Known]) -> Vec<Forecast> {
        self.without(models, |a, b| a.architecture == b.architecture)
    }

    /// Forecasts of every model from the level of all other makers' models: harder, since a maker's models are alike.
    pub fn maker_left_out(&self, models: &[Known]) -> Vec<Forecast> {
        self.without(models, |a, b| maker(&a.name) == maker(&b.name) || a.architecture == b.architecture)
    }

    fn without(&self, models: &[Known], alike: impl Fn(&Known, &Known) -> bool) -> Vec<Forecast> {
        models
            .iter()
            .filter_map(|m| {
                let train: Vec<&Known> = models.iter().filter(|o| !alike(o, m)).collect();
                let space = self.space(level::level(&self.priors, &train));
                self.forecast(&space, m)
            })
            .collect()
    }

    pub fn with_catalogue(&self, models: &[Known]) -> Vec<Forecast> {
        let space = self.space(self.priors.level);
        models.iter().filter_map(|m| self.forecast(&space, m)).collect()
    }

    /// The regression of prices on active parameters and sparsity, turned round.
    pub fn regression(&self, models: &[Known]) -> Vec<Forecast> {
        let space = self.space(self.priors.level);
        let of = |m: &Known| {
            let train: Vec<&Known> = models.iter().filter(|other| other.architecture != m.architecture).collect();
            let histogram = regressed(&train, m, Unknown::Active.ends(&space), &self.priors);
            Forecast { name: m.name.clone(), truth: m.ln_active, histogram }
        };
        models.iter().map(of).collect()
    }

    /// The lecture's reading: price is cost at full MFU. No interval, so only its median error is of use, in powers of ten.
    pub fn naive_error_dex(&self, models: &[Known]) -> f64 {
        let space = self.space(self.priors.level);
        let miss = |m: &Known| (float::ln(m.summary.input) - space.ln_ideal_cost(m.ln_active)).abs() / float::ln(10.0);
        median(&models.iter().map(miss).collect::<Vec<f64>>()).unwrap_or(0.0)
    }
}

/// The family a model's name begins with, which one maker has: letters up to the first digit or dash.
fn maker(name: &str) -> String {
    name.chars().take_while(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()).collect()
}

/// Least squares of ln input and ln output on 1, ln N and ln S; then a grid over N and S under the priors.
fn regressed(train: &[&Known], m: &Known, ends: (f64, f64), priors: &DeducePriors) -> Histogram {
    let votes: Vec<f64> =
        train.iter().map(|t| 1.0 / train.iter().filter(|o| o.architecture == t.architecture).count() as f64).collect();
    let row = |t: &Known| [1.0, t.ln_active, t.ln_sparsity];
    let prices = |t: &Known| [float::ln(t.summary.input), float::ln(t.summary.output)];
    let mut normal = [[0.0; 3]; 3];
    let mut right = [[0.0; 2]; 3];
    for (t, v) in train.iter().zip(&votes) {
        for (a, x) in row(t).into_iter().enumerate() {
            for (to, y) in normal[a].iter_mut().zip(row(t)) {
                *to += v * x * y;
            }
            for (to, y) in right[a].iter_mut().zip(prices(t)) {
                *to += v * x * y;
            }
        }
    }
    let beta = level::solve(normal, right);
    let predicted = |x: [f64; 3], j: usize| (0..3).map(|a| x[a] * beta[a][j]).sum::<f64>();
    let mut cov = [[1e-6, 0.0], [0.0, 1e-6]];
    let freedom = (votes.iter().sum::<f64>() - 3.0).max(1.0);
    for (t, v) in train.iter().zip(&votes) {
        let e = [0, 1].map(|j| prices(t)[j] - predicted(row(t), j));
        for a in 0..2 {
            for b in 0..2 {
                cov[a][b] += v * e[a] * e[b] / freedom;
            }
        }
    }
    let det = cov[0][0] * cov[1][1] - cov[0][1] * cov[1][0];
    let mut histogram = Histogram::new(ends);
    let steps = 40;
    for i in 0..BINS {
        let n = ends.0 + (ends.1 - ends.0) * (i as f64 + 0.5) / BINS as f64;
        for k in 0..=steps {
            let (s, share) = if k == 0 {
                (0.0, priors.architecture.dense_share)
            } else {
                let range = priors.architecture.sparsity;
                let s = range.low + (range.high - range.low) * (f64::from(k) - 0.5) / f64::from(steps);
                (s, (1.0 - priors.architecture.dense_share) / f64::from(steps))
            };
            let e = [0, 1].map(|j| prices(m)[j] - predicted([1.0, n, s], j));
            let q = (cov[1][1] * e[0] * e[0] - 2.0 * cov[0][1] * e[0] * e[1] + cov[0][0] * e[1] * e[1]) / det;
            histogram.add(n, share * float::exp(-0.5 * q));
        }
    }
    histogram
}
