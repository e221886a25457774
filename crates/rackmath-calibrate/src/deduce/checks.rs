//! Does the posterior mean what it says: ranks of simulated truths, and prices that must tell nothing.

use super::score::{Forecast, Judge, Marks};
use rackmath_spec::deduce::{Level, Ratio, Seller};
use rackmath_theory::deduce::level::{self, Known};
use rackmath_theory::deduce::simulate::simulate;
use rackmath_theory::deduce::{Evidence, Posterior, Sampling, Sheet, Space, Unknown};
use rackmath_theory::stats::normal_quantile;
use rackmath_units::Chance;
use rackmath_units::float;

/// Cells of a rank histogram.
const CELLS: usize = 20;

#[derive(Clone, Debug, PartialEq)]
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
    let names = Unknown::ALL.map(Unknown::name).into_iter().chain(["width", "tier"]);
    let all = names.zip(cells).map(|(name, cells)| Ranks { name: name.into(), p: evenness(&cells), cells }).collect();
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
        let forecasts: Vec<Forecast> = judge.left_out(&mixed);
        let marks = Marks::of(&forecasts, &prior);
        bits += marks.bits / shuffles as f64;
        score += marks.score_bits / shuffles as f64;
    }
    (bits, score)
}

/// Bits on stored cache bytes from a vendor all of whose ratios are policy.
pub fn policy_only(judge: &Judge) -> f64 {
    let space = Space::new(&judge.priors, Seller::FirstParty).expect("catalogue chips have their peaks");
    let chances = judge.policies.vendors.get("anthropic").cloned().unwrap_or_default();
    let sheet = Sheet {
        input: Some(5.0),
        output: Some(25.0),
        cached: Some(0.5),
        write: Some((10.0 - 6.25) / (55.0 / 60.0)),
        ..Sheet::default()
    };
    let policy = |ratio: Ratio| chances.get(&ratio).map_or(0.98, |h| if h.fixed() { 1.0 } else { h.chance() });
    let posterior = |sheet: &Sheet| Posterior::new(&space, &Evidence::new(&space, sheet, policy), judge.sampling);
    match (posterior(&sheet), posterior(&Sheet::default())) {
        (Ok(with), Ok(prior)) => with.of(Unknown::KvStored).bits_over(prior.of(Unknown::KvStored)),
        _ => f64::NAN,
    }
}

/// The level shuffled prices lead to, for a look at the chance that prices say nothing.
pub fn level_line(judge: &Judge, models: &[Known]) -> String {
    let level = level::level(&judge.priors, &models.iter().collect::<Vec<_>>());
    let Level { offset, sparsity_exponent, size_exponent, batch_exponent, serving_share, .. } = level;
    let Level { scale, host_scale, ratio_offset, ratio_scale, indifferent, .. } = level;
    format!(
        "offset {offset:.3}, exponents of sparsity {sparsity_exponent:.3}, size {size_exponent:.3}, batch \
         {batch_exponent:.2}; serving share {serving_share:.2}, scale {scale:.3}, between hosts {host_scale:.3}, ratio \
         {ratio_offset:.3} +- {ratio_scale:.3}, indifferent {indifferent:.1e}"
    )
}
