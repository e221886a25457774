//! Leave one architecture out: how well prices give back active parameters, beside the prior and simpler ways. Then whether
//! the posterior means what it says: ranks of simulated truths, and prices that must tell nothing.

use rackmath_spec::deduce::{DeducePriors, Level, Policies, Ratio, Seller};
use rackmath_theory::deduce::level::{self, Known};
use rackmath_theory::deduce::quantity::{BINS, Histogram};
use rackmath_theory::deduce::simulate::simulate;
use rackmath_theory::deduce::{Evidence, Posterior, Sampling, Sheet, Space, Unknown};
use rackmath_theory::stats::{median, normal_quantile};
use rackmath_units::{Chance, float};
use std::fmt;
use std::sync::Arc;

/// How well a set of forecasts did; distances and widths in powers of ten.
pub struct Marks {
    /// Median distance of the median from the truth.
    pub error: f64,
    /// Mean width of the 80 % interval, and the share of truths inside it.
    width: f64,
    pub coverage: f64,
    /// Continuous ranked probability score, natural logarithms.
    crps: f64,
    /// Mean information over the prior, and mean gain of density at the truth over it.
    bits: f64,
    score_bits: f64,
}

pub struct Forecast {
    pub name: String,
    pub truth: f64,
    pub histogram: Histogram,
}

impl Forecast {
    pub fn quantile(&self, share: f64) -> f64 {
        self.histogram.quantile(share)
    }

    /// How far the median is from the truth, in powers of ten.
    pub fn error(&self) -> f64 {
        (self.quantile(0.5) - self.truth) / float::ln(10.0)
    }

    /// Whether the truth is inside the 80 % interval.
    pub fn holds(&self) -> bool {
        (self.quantile(0.1)..=self.quantile(0.9)).contains(&self.truth)
    }
}

impl Marks {
    pub fn of(forecasts: &[Forecast], prior: &Histogram) -> Self {
        let n = forecasts.len().max(1) as f64;
        let mean = |f: &dyn Fn(&Forecast) -> f64| forecasts.iter().map(f).sum::<f64>() / n;
        let errors: Vec<f64> = forecasts.iter().map(|f| f.error().abs()).collect();
        let gain = |f: &Forecast| float::ln(f.histogram.density(f.truth).max(1e-9) / prior.density(f.truth));
        Self {
            error: median(&errors).unwrap_or(0.0),
            width: mean(&|f| (f.quantile(0.9) - f.quantile(0.1)) / float::ln(10.0)),
            coverage: mean(&|f| f64::from(u8::from(f.holds()))),
            crps: mean(&|f| f.histogram.crps(f.truth)),
            bits: mean(&|f| f.histogram.bits_over(prior)),
            score_bits: mean(&|f| gain(f) / std::f64::consts::LN_2),
        }
    }
}

impl fmt::Display for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { error, width, coverage, crps, bits, score_bits } = self;
        let coverage = 100.0 * coverage;
        write!(f, "{error:>6.3} {width:>9.3} {coverage:>8.1}% {crps:>9.3} {bits:>6.2} {score_bits:>9.2}")
    }
}

#[derive(Clone)]
pub struct Judge {
    pub priors: DeducePriors,
    pub policies: Arc<Policies>,
    pub sampling: Sampling,
}

impl Judge {
    fn space(&self, level: Level) -> Space {
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

    pub fn prior(&self) -> Posterior {
        let space = self.space(self.priors.level);
        let evidence = Evidence::new(&space, &Sheet::default(), |_| 0.0);
        Posterior::new(&space, &evidence, self.sampling).expect("the prior has even weights")
    }

    /// Forecasts of every model from the level of all other architectures.
    pub fn left_out(&self, models: &[Known]) -> Vec<Forecast> {
        self.without(models, |a, b| a.architecture == b.architecture)
    }

    /// Forecasts of every model from the level of all other makers' models: harder, since a maker's models are alike.
    pub fn maker_left_out(&self, models: &[Known]) -> Vec<Forecast> {
        self.without(models, |a, b| a.maker() == b.maker() || a.architecture == b.architecture)
    }

    fn without(&self, models: &[Known], alike: impl Fn(&Known, &Known) -> bool) -> Vec<Forecast> {
        let forecast = |m: &Known| {
            let train: Vec<&Known> = models.iter().filter(|o| !alike(o, m)).collect();
            self.forecast(&self.space(level::level(&self.priors, &train)), m)
        };
        models.iter().filter_map(forecast).collect()
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

/// Median and mean error over the forecasts of every model but one, which no level has seen either, for each model: the least
/// and the most of each, in powers of ten. What hangs on one model shows here.
pub fn without_one(models: &[Known], forecasts: impl Fn(&[Known]) -> Vec<Forecast>) -> Option<([f64; 2], [f64; 2])> {
    let (mut medians, mut means) = (Vec::new(), Vec::new());
    for at in 0..models.len() {
        let mut rest = models.to_vec();
        rest.remove(at);
        let errors: Vec<f64> = forecasts(&rest).iter().map(|f| f.error().abs()).collect();
        medians.push(median(&errors)?);
        means.push(errors.iter().sum::<f64>() / errors.len() as f64);
    }
    let ends =
        |all: &[f64]| [all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(0.0, f64::max)];
    (!medians.is_empty()).then(|| (ends(&medians), ends(&means)))
}

/// How far apart the prices of models of one architecture are, in powers of ten: pairs, and the median of their distances.
/// No price tells sizes apart that differ by less.
pub fn repeatability(models: &[Known]) -> Option<(usize, f64)> {
    let mut gaps = Vec::new();
    for (i, a) in models.iter().enumerate() {
        let alike = models[..i].iter().filter(|b| b.architecture == a.architecture);
        gaps.extend(alike.map(|b| float::ln(a.summary.input / b.summary.input).abs() / float::ln(10.0)));
    }
    Some((gaps.len(), median(&gaps)?))
}

/// Least squares of ln input and ln output on 1, ln N and ln S; then a grid over N and S under the priors.
fn regressed(train: &[&Known], m: &Known, ends: (f64, f64), priors: &DeducePriors) -> Histogram {
    let votes: Vec<f64> =
        train.iter().map(|t| 1.0 / train.iter().filter(|o| o.architecture == t.architecture).count() as f64).collect();
    let row = |t: &Known| [1.0, t.ln_active, t.ln_sparsity];
    let prices = |t: &Known| [float::ln(t.summary.input), float::ln(t.summary.output)];
    let (mut normal, mut right) = ([[0.0; 3]; 3], [[0.0; 2]; 3]);
    for (t, v) in train.iter().zip(&votes) {
        for (a, x) in row(t).into_iter().enumerate() {
            normal[a].iter_mut().zip(row(t)).for_each(|(to, y)| *to += v * x * y);
            right[a].iter_mut().zip(prices(t)).for_each(|(to, y)| *to += v * x * y);
        }
    }
    let beta = level::solve(normal, right);
    let missed = |m: &Known, x: [f64; 3]| [0, 1].map(|j| prices(m)[j] - (0..3).map(|a| x[a] * beta[a][j]).sum::<f64>());
    let mut cov = [[1e-6, 0.0], [0.0, 1e-6]];
    let freedom = (votes.iter().sum::<f64>() - 3.0).max(1.0);
    for (t, v) in train.iter().zip(&votes) {
        let e = missed(t, row(t));
        for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            cov[a][b] += v * e[a] * e[b] / freedom;
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
            let e = missed(m, [1.0, n, s]);
            let q = (cov[1][1] * e[0] * e[0] - 2.0 * cov[0][1] * e[0] * e[1] + cov[0][0] * e[1] * e[1]) / det;
            histogram.add(n, share * float::exp(-0.5 * q));
        }
    }
    histogram
}

const CELLS: usize = 20;

pub struct Ranks {
    pub name: String,
    /// Counts of truths by their rank in the posterior.
    pub cells: [u32; CELLS],
    /// Chance of a histogram at least this uneven, if the posterior is right.
    pub p: f64,
}

/// Which numbers of a simulated sheet are shown to the posterior.
pub type Mask = fn(Sheet) -> Sheet;

/// Simulation-based calibration: draws, their ranks for every unknown, width and tier, and how many were refused.
pub fn ranks(judge: &Judge, seller: Seller, draws: u32, sampling: Sampling, shown: Mask) -> (Vec<Ranks>, u32) {
    let space = Space::new(&judge.priors, seller).expect("catalogue chips have the peaks of catalogue widths");
    let list = if seller == Seller::Host { &judge.policies.host } else { &judge.policies.pooled };
    let policy = |ratio: Ratio| list.get(&ratio).copied().unwrap_or(0.5);
    let mut chance = Chance::new(sampling.seed ^ 0x5bc);
    let mut cells = vec![[0_u32; CELLS]; Unknown::ALL.len() + 2];
    let mut refused = 0;
    for draw in 0..draws {
        let made = simulate(&space, 8, policy, &mut chance);
        let evidence = Evidence::new(&space, &shown(made.sheet), policy);
        let sampling = Sampling { seed: sampling.seed.wrapping_add(u64::from(draw)), ..sampling };
        let Ok(posterior) = Posterior::new(&space, &evidence, sampling) else {
            refused += 1;
            continue;
        };
        let category = |shares: &[f64], truth: usize, u: f64| shares[..truth].iter().sum::<f64>() + u * shares[truth];
        for (i, cells) in cells.iter_mut().enumerate() {
            let u = chance.uniform();
            let rank = match Unknown::ALL.get(i) {
                Some(unknown) => posterior.of(*unknown).rank(made.truth[i], u),
                None if i == Unknown::ALL.len() => category(&posterior.widths, made.width, u),
                None => category(&posterior.tiers, made.tier, u),
            };
            cells[((rank * CELLS as f64) as usize).min(CELLS - 1)] += 1;
        }
    }
    let names = Unknown::ALL.iter().map(ToString::to_string).chain(["width", "tier"].map(String::from));
    let all = names.zip(cells).map(|(name, cells)| Ranks { name, p: evenness(&cells), cells }).collect();
    (all, refused)
}

/// p-value of a chi-square test of even cells, by Wilson and Hilferty's cube root.
fn evenness(cells: &[u32; CELLS]) -> f64 {
    let n: u32 = cells.iter().sum();
    let expected = f64::from(n) / CELLS as f64;
    let square: f64 = cells.iter().map(|c| (f64::from(*c) - expected) * (f64::from(*c) - expected) / expected).sum();
    let k = (CELLS - 1) as f64;
    let z = (float::pow(square / k, 1.0 / 3.0) - (1.0 - 2.0 / (9.0 * k))) / (2.0 / (9.0 * k)).sqrt();
    float::root(1e-12, 1.0 - 1e-12, |p| normal_quantile(p) + z).unwrap_or(if z > 0.0 { 0.0 } else { 1.0 })
}

/// Bits that prices handed to the wrong models seem to give: the mean over shuffles, of information and of score.
pub fn shuffled(judge: &Judge, models: &[Known], shuffles: u64) -> (f64, f64) {
    let prior = judge.prior().of(Unknown::Active).clone();
    let (mut bits, mut score) = (0.0, 0.0);
    for seed in 0..shuffles {
        let mut chance = Chance::new(seed + 1);
        let mut order: Vec<usize> = (0..models.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, (chance.uniform() * (i + 1) as f64) as usize);
        }
        let mut mixed = models.to_vec();
        for (m, from) in mixed.iter_mut().zip(&order) {
            m.prices.clone_from(&models[*from].prices);
            m.summary = models[*from].summary;
        }
        let marks = Marks::of(&judge.left_out(&mixed), &prior);
        bits += marks.bits / shuffles as f64;
        score += marks.score_bits / shuffles as f64;
    }
    (bits, score)
}

/// Bits on stored cache bytes from a vendor all of whose ratios are policy.
pub fn policy_only(judge: &Judge) -> f64 {
    let space = Space::new(&judge.priors, Seller::FirstParty).expect("catalogue chips have their peaks");
    let chances = judge.policies.vendors.get("anthropic").cloned().unwrap_or_default();
    let write = Some((10.0 - 6.25) / (55.0 / 60.0));
    let sheet = Sheet { input: Some(5.0), output: Some(25.0), cached: Some(0.5), write, ..Sheet::default() };
    let policy = |ratio: Ratio| chances.get(&ratio).map_or(0.98, |h| if h.fixed() { 1.0 } else { h.chance() });
    let posterior = |sheet: &Sheet| Posterior::new(&space, &Evidence::new(&space, sheet, policy), judge.sampling);
    match (posterior(&sheet), posterior(&Sheet::default())) {
        (Ok(with), Ok(prior)) => with.of(Unknown::KvStored).bits_over(prior.of(Unknown::KvStored)),
        _ => f64::NAN,
    }
}

pub fn level_line(judge: &Judge, models: &[Known]) -> String {
    let level = level::level(&judge.priors, &models.iter().collect::<Vec<_>>());
    let Level { offset, sparsity_exponent, size_exponent, rivalry_exponent, batch_exponent, serving_share, .. } = level;
    let Level { scale, host_scale, ratio_offset, ratio_scale, indifferent, .. } = level;
    format!(
        "offset {offset:.3}, exponents of sparsity {sparsity_exponent:.3}, size {size_exponent:.3}, rivals \
         {rivalry_exponent:.3}, batch {batch_exponent:.2}; serving share {serving_share:.2}, scale {scale:.3}, between hosts {host_scale:.3}, ratio \
         {ratio_offset:.3} +- {ratio_scale:.3}, indifferent {indifferent:.1e}"
    )
}
