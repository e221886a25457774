//! The posterior: prior points weighted by how well they explain a price sheet.
//!
//! $$ \mathrm{E}\,g = \frac{\sum_i w_i\,g(\theta_i)}{\sum_i w_i} \qquad ESS = \frac{(\sum w_i)^2}{\sum w_i^2} $$
//!
//! | symbol | code | meaning |
//! |--------|------|---------|
//! | theta_i | `Space::draw` | a lattice point of the prior |
//! | w_i | weight | its likelihood, over the proposal's density where one is used |
//! | ESS | ess | points of equal weight it is worth; below 400 the answer is refused |
//!
//! When few points carry the weight, the likelihood is tempered (raised to a quarter, a half, one) and the marginals of each
//! stage become the proposal of the next, coordinate by coordinate, a tenth of it kept flat.
//! Source: Owen, Monte Carlo theory, chapter 9; Lepage 1978 for the proposal; Vehtari et al. 2024 for Pareto-k.

use super::evidence::{DATA, Datum, Evidence, Point};
use super::lattice::{DIMENSIONS, Lattice};
use super::pareto;
use super::quantity::{COARSE_BINS, Coarse, Histogram, UNKNOWNS, Unknown, values};
use super::space::Space;
use rackmath_units::{Cancel, Cancelled, float};
use schemars::JsonSchema;
use serde::Serialize;

/// The least effective number of points an answer may rest on.
pub const ESS_LEAST: f64 = 400.0;
const STEPS: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    pub log2_points: u32,
    pub seed: u64,
}

/// Too few points carry the weight even after tempering: the prices contradict each other or everything that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refusal {
    pub ess: f64,
    pub pareto_k: f64,
}

/// How the points did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Sampler {
    /// Points.
    pub points: u64,
    /// Points of equal weight they are worth.
    pub ess: f64,
    /// Shape of the tail of the weights; above 0.7 their mean is not to be trusted.
    pub pareto_k: f64,
    /// Stages of tempering that were needed.
    pub tempered: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Posterior {
    unknowns: Vec<Histogram>,
    /// Chances of the widths of the prior.
    pub widths: [f64; 3],
    /// Chances of the cache tiers of the prior.
    pub tiers: Vec<f64>,
    pub dense: f64,
    without: Vec<Without>,
    covariance: [[f64; UNKNOWNS]; UNKNOWNS],
    pub sampler: Sampler,
    /// Mean likelihood: how probable the sheet was, relative to a perfect fit.
    pub evidence: f64,
}

/// Points between two looks at whether the result is still wanted.
const BETWEEN_CHECKS: usize = 4096;

impl Posterior {
    pub fn new(space: &Space, evidence: &Evidence, sampling: Sampling) -> Result<Self, Refusal> {
        Self::until(space, evidence, sampling, &Cancel::never()).expect("nobody cancels")
    }

    /// The same, while it is wanted.
    pub fn until(
        space: &Space,
        evidence: &Evidence,
        sampling: Sampling,
        cancel: &Cancel,
    ) -> Result<Result<Self, Refusal>, Cancelled> {
        let lattice = Lattice::new(sampling.log2_points, sampling.seed);
        let mut weights = vec![0.0; lattice.points() as usize];
        let mut pass = Pass::new(space, evidence);
        pass.run(&lattice, &mut weights, None, 1.0, cancel)?;
        let mut tempered = 0;
        let least = ESS_LEAST.min(0.25 * lattice.points() as f64);
        if pass.ess() < least {
            let mut proposal = Proposal::of(1.0 / STEPS as f64);
            for power in [0.25, 0.5, 1.0] {
                let mut stage = Pass::new(space, evidence);
                stage.run(&lattice, &mut weights, Some(&proposal), power, cancel)?;
                proposal = stage.next.adapted(&proposal);
                tempered += 1;
            }
            pass = Pass::new(space, evidence);
            pass.run(&lattice, &mut weights, Some(&proposal), 1.0, cancel)?;
        }
        let pareto_k = pareto::k(&mut weights);
        let ess = pass.ess();
        if ess < least || ess.is_nan() {
            return Ok(Err(Refusal { ess: if ess.is_nan() { 0.0 } else { ess }, pareto_k }));
        }
        Ok(Ok(pass.finish(lattice.points(), pareto_k, tempered)))
    }

    pub fn of(&self, unknown: Unknown) -> &Histogram {
        &self.unknowns[unknown as usize]
    }

    /// For each number of the sheet, the bits it adds on active parameters and on stored cache to all the others.
    pub fn bits_of_data(&self) -> Vec<(Datum, f64, f64)> {
        let gain = |with: Unknown, without: &[f64; COARSE_BINS]| self.of(with).bits_over_coarse(without);
        self.without
            .iter()
            .map(|w| (w.datum, gain(Unknown::Active, &w.active), gain(Unknown::KvStored, &w.kv)))
            .collect()
    }

    pub fn deviation(&self, unknown: Unknown) -> f64 {
        self.covariance[unknown as usize][unknown as usize].max(0.0).sqrt()
    }

    pub fn correlation(&self, a: Unknown, b: Unknown) -> f64 {
        let scale = self.deviation(a) * self.deviation(b);
        if scale > 0.0 { self.covariance[a as usize][b as usize] / scale } else { 0.0 }
    }

    /// The direction in which the posterior is longest, among some unknowns: components of a unit vector in logarithms.
    pub fn ridge<const N: usize>(&self, of: [Unknown; N]) -> [f64; N] {
        let mut axis = [1.0; N];
        // Powers of the covariance turn any start towards its longest axis.
        for _ in 0..200 {
            let turned: [f64; N] = std::array::from_fn(|i| {
                (0..N).map(|j| self.covariance[of[i] as usize][of[j] as usize] * axis[j]).sum()
            });
            let length = turned.iter().map(|x| x * x).sum::<f64>().sqrt();
            if length <= 0.0 {
                return [0.0; N];
            }
            axis = turned.map(|x| x / length);
        }
        axis
    }
}

/// Active parameters and stored cache as the other numbers of a sheet leave them.
#[derive(Clone, Debug, PartialEq)]
struct Without {
    datum: Datum,
    active: [f64; COARSE_BINS],
    kv: [f64; COARSE_BINS],
}

struct Pass<'a> {
    space: &'a Space,
    evidence: &'a Evidence,
    unknowns: Vec<Histogram>,
    without: Vec<Without>,
    active: Coarse,
    kv: Coarse,
    widths: [f64; 3],
    tiers: Vec<f64>,
    dense: f64,
    sum: f64,
    squares: f64,
    mean: [f64; UNKNOWNS],
    products: [[f64; UNKNOWNS]; UNKNOWNS],
    next: Proposal,
}

impl<'a> Pass<'a> {
    fn new(space: &'a Space, evidence: &'a Evidence) -> Self {
        let histogram = |u: Unknown| Histogram::new(u.ends(space));
        let without = |datum| Without { datum, active: [0.0; COARSE_BINS], kv: [0.0; COARSE_BINS] };
        Self {
            space,
            evidence,
            unknowns: Unknown::ALL.map(histogram).into(),
            without: evidence.data().map(without).collect(),
            active: Coarse::new(Unknown::Active.ends(space)),
            kv: Coarse::new(Unknown::KvStored.ends(space)),
            widths: [0.0; 3],
            tiers: vec![0.0; space.priors.tiers.len()],
            dense: 0.0,
            sum: 0.0,
            squares: 0.0,
            mean: [0.0; UNKNOWNS],
            products: [[0.0; UNKNOWNS]; UNKNOWNS],
            next: Proposal::of(0.0),
        }
    }

    /// Visits every point; nothing is allocated here.
    fn run(
        &mut self,
        lattice: &Lattice,
        weights: &mut [f64],
        proposal: Option<&Proposal>,
        power: f64,
        cancel: &Cancel,
    ) -> Result<(), Cancelled> {
        let n = self.evidence.terms.len();
        let (mut terms, mut before) = ([1.0; DATA], [1.0; DATA]);
        let mut at = [0.0; DIMENSIONS];
        for (i, kept) in weights.iter_mut().enumerate() {
            if i.is_multiple_of(BETWEEN_CHECKS) {
                cancel.check()?;
            }
            let mut over = 1.0;
            let coordinate = |j: usize| {
                let v = lattice.at(i as u64, j);
                let Some(proposal) = proposal else { return v };
                let (u, density) = proposal.turned(j, v);
                at[j] = u;
                over /= density;
                u
            };
            let point = self.evidence.point(self.space, coordinate);
            self.evidence.likelihoods(self.space, &point, &mut terms);
            // Products of the terms before each: what is left out is put together from both sides.
            let mut likelihood = 1.0;
            for (before, term) in before.iter_mut().zip(&terms[..n]) {
                *before = likelihood;
                likelihood *= term;
            }
            let weight = over * if power == 1.0 { likelihood } else { float::pow(likelihood, power) };
            *kept = weight;
            self.add(&point, weight);
            if proposal.is_some() {
                self.next.add(&at, weight);
            }
            let (active, kv) = (self.active.bin(point.draw.ln_active), self.kv.bin(point.draw.ln_kv));
            let mut after = over;
            for ((left, term), before) in self.without.iter_mut().zip(&terms[..n]).zip(&before).rev() {
                left.active[active] += before * after;
                left.kv[kv] += before * after;
                after *= term;
            }
        }
        Ok(())
    }

    fn add(&mut self, point: &Point, weight: f64) {
        let draw = &point.draw;
        let x = values(self.space, draw, &point.factors);
        for (histogram, x) in self.unknowns.iter_mut().zip(x) {
            histogram.add(x, weight);
        }
        self.widths[draw.width] += weight;
        self.tiers[draw.tier] += weight;
        if draw.ln_sparsity == 0.0 {
            self.dense += weight;
        }
        self.sum += weight;
        self.squares += weight * weight;
        for a in 0..UNKNOWNS {
            self.mean[a] += weight * x[a];
            for b in a..UNKNOWNS {
                self.products[a][b] += weight * x[a] * x[b];
            }
        }
    }

    fn ess(&self) -> f64 {
        self.sum * self.sum / self.squares
    }

    fn finish(self, points: u64, pareto_k: f64, tempered: usize) -> Posterior {
        let mean = self.mean.map(|m| m / self.sum);
        let covariance = std::array::from_fn(|a| {
            std::array::from_fn(|b| self.products[a.min(b)][a.max(b)] / self.sum - mean[a] * mean[b])
        });
        Posterior {
            covariance,
            sampler: Sampler { points, ess: self.ess(), pareto_k, tempered },
            evidence: self.sum / points as f64,
            widths: self.widths.map(|w| w / self.sum),
            tiers: self.tiers.iter().map(|t| t / self.sum).collect(),
            dense: self.dense / self.sum,
            unknowns: self.unknowns,
            without: self.without,
        }
    }
}

/// A density on the cube that is a product of steps.
#[derive(Clone, Debug)]
struct Proposal {
    /// Masses of equal steps of each coordinate.
    mass: [[f64; STEPS]; DIMENSIONS],
}

impl Proposal {
    fn of(mass: f64) -> Self {
        Self { mass: [[mass; STEPS]; DIMENSIONS] }
    }

    fn add(&mut self, at: &[f64; DIMENSIONS], weight: f64) {
        for (mass, u) in self.mass.iter_mut().zip(at) {
            mass[((u * STEPS as f64) as usize).min(STEPS - 1)] += weight;
        }
    }

    /// The coordinate at a probability, and its density.
    fn turned(&self, j: usize, v: f64) -> (f64, f64) {
        let mut below = 0.0;
        for (k, mass) in self.mass[j].iter().enumerate() {
            if v < below + mass || k == STEPS - 1 {
                let inside = ((v - below) / mass).clamp(1e-12, 1.0 - 1e-12);
                return ((k as f64 + inside) / STEPS as f64, mass * STEPS as f64);
            }
            below += mass;
        }
        (v, 1.0)
    }

    /// Normalised, with a tenth kept flat; a coordinate nobody asked for stays as it was.
    fn adapted(&self, before: &Self) -> Self {
        let mut next = before.clone();
        for (to, from) in next.mass.iter_mut().zip(&self.mass) {
            let sum: f64 = from.iter().sum();
            if sum > 0.0 {
                for (to, from) in to.iter_mut().zip(from) {
                    *to = 0.9 * from / sum + 0.1 / STEPS as f64;
                }
            }
        }
        next
    }
}
