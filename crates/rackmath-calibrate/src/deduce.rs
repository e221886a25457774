//! Prices of open-weight models: how well they give back what is known, and the level of prices above ideal cost.
//!
//! Reads `open_host_prices.csv` and `open_arch.csv`. Every model is deduced from the level of the other architectures alone,
//! so that the marks are those of a model nobody has seen. The prior, a regression on logarithms and the lecture's own
//! reading (price is cost) stand beside it. Then the checks: ranks of simulated truths, shuffled prices, a vendor whose
//! ratios are all policy, and no data.

mod rows;
mod score;

use rackmath_spec::deduce::{Level, Seller};
use rackmath_spec::{Catalog, SpecError};
use rackmath_theory::deduce::level::{self, Known};
use rackmath_theory::deduce::{Sampling, Sheet, Unknown};
use rackmath_units::float;
use score::{Forecast, Judge, Marks};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

fn judge(catalog: &Catalog) -> Result<Judge, SpecError> {
    let (priors, policies) = (catalog.deduce_priors()?, catalog.policies()?);
    Ok(Judge { priors: (*priors).clone(), policies, sampling: Sampling { log2_points: 16, seed: 1 } })
}

pub fn score(catalog: &Catalog, folder: &Path) -> Result<String, SpecError> {
    let judge = judge(catalog)?;
    let (models, unknown) = rows::known(folder)?;
    let prior_posterior = judge.prior();
    let prior = prior_posterior.of(Unknown::Active);
    let mut out = String::new();
    let forecasts = judge.left_out(&models);
    let _ = writeln!(out, "{:<24} {:>8} {:>8} {:>8} {:>8}  {:>6}", "model", "truth", "10%", "50%", "90%", "error");
    for f in &forecasts {
        let b = |x: f64| format!("{:.1}B", float::exp(x) / 1e9);
        let [low, middle, high] = [0.1, 0.5, 0.9].map(|share| b(f.quantile(share)));
        let (truth, error, inside) = (b(f.truth), f.error(), if f.holds() { "" } else { "  outside" });
        let _ = writeln!(out, "{:<24} {truth:>8} {low:>8} {middle:>8} {high:>8}  {error:>+6.2}{inside}", f.name);
    }
    for name in unknown {
        let _ = writeln!(out, "{name:<24} architecture not known");
    }
    out += "\nactive parameters                   error 80% width  coverage CRPS nats   bits     score\n";
    let flat = |m: &Known| Forecast { name: m.name.clone(), truth: m.ln_active, histogram: prior.clone() };
    let priors: Vec<Forecast> = models.iter().map(flat).collect();
    for (name, forecasts) in [
        ("posterior, architecture left out", &forecasts),
        ("posterior, maker left out", &judge.maker_left_out(&models)),
        ("posterior, catalogue's level", &judge.with_catalogue(&models)),
        ("log-log regression, left out", &judge.regression(&models)),
        ("prior", &priors),
    ] {
        let _ = writeln!(out, "{name:<34} {}", Marks::of(forecasts, prior));
    }
    let _ = writeln!(out, "{:<34} {:>6.3}", "price is cost (lecture)", judge.naive_error_dex(&models));
    let _ = writeln!(out, "targets                            <=0.16    <=0.60    75-85%    <=0.30  >=1.5");
    if let Some((pairs, gap)) = score::repeatability(&models) {
        let _ = writeln!(
            out,
            "floor: {pairs} pairs of models with one architecture are priced {gap:.3} powers of ten apart (median)"
        );
    }
    let few = Judge { sampling: Sampling { log2_points: 13, ..judge.sampling }, ..judge.clone() };
    for (name, left) in [
        ("architecture left out", score::without_one(&models, |rest| few.left_out(rest))),
        ("maker left out", score::without_one(&models, |rest| few.maker_left_out(rest))),
    ] {
        if let Some(([low, high], [least, most])) = left {
            let _ = writeln!(
                out,
                "any one model less, {name}: median error {low:.3} to {high:.3}, mean {least:.3} to {most:.3}"
            );
        }
    }
    let _ = writeln!(out, "\nlevel: {}", score::level_line(&judge, &models));
    controls(&mut out, &judge, &models);
    calibration(&mut out, &judge);
    Ok(out)
}

/// How well active parameters are found from prices: models, median error in powers of ten, share inside the 80 % interval;
/// with the architecture left out and with all of its maker.
pub fn marks(catalog: &Catalog, folder: &Path) -> Result<[(usize, f64, f64); 2], SpecError> {
    let judge = judge(catalog)?;
    let (models, _) = rows::known(folder)?;
    let prior = judge.prior();
    Ok([judge.left_out(&models), judge.maker_left_out(&models)].map(|forecasts| {
        let marks = Marks::of(&forecasts, prior.of(Unknown::Active));
        (forecasts.len(), marks.error, marks.coverage)
    }))
}

fn controls(out: &mut String, judge: &Judge, models: &[Known]) {
    let (bits, score) = score::shuffled(judge, models, 20);
    let _ = writeln!(out, "shuffled prices (mean of 20): {bits:.3} bits, score {score:+.3} (must be below 0.1)");
    let _ = writeln!(out, "a vendor of policies only: {:.3} bits on KV (must be 0)", score::policy_only(judge));
    let prior = judge.prior();
    // Other points, so that sameness is not a matter of course.
    let again = Judge { sampling: Sampling { log2_points: 17, seed: 2 }, ..judge.clone() }.prior();
    let most = Unknown::ALL.iter().map(|u| again.of(*u).bits_over(prior.of(*u))).fold(0.0, f64::max);
    let _ = writeln!(out, "no data: {most:.3} bits on any unknown (must be below 0.01)");
}

fn calibration(out: &mut String, judge: &Judge) {
    let sheets: [(&str, score::Mask); 3] = [
        ("input and output", |s| Sheet { input: s.input, output: s.output, hosts: s.hosts, ..Sheet::default() }),
        ("output, cached read and speed", |s| Sheet {
            output: s.output,
            cached: s.cached,
            tokens_per_s: s.tokens_per_s,
            hosts: s.hosts,
            ..Sheet::default()
        }),
        ("every number of a sheet", |s| s),
    ];
    let (mut lowest, mut histograms) = (1.0_f64, 0.0);
    for ((name, mask), seller) in sheets.into_iter().zip([Seller::Host, Seller::Host, Seller::FirstParty]) {
        let sampling = Sampling { log2_points: 14, seed: 11 };
        let (ranks, refused) = score::ranks(judge, seller, 1000, sampling, mask);
        let _ = writeln!(out, "\nranks of 1,000 simulated truths from {name} ({refused} refused); p must exceed 0.01");
        for r in ranks {
            (lowest, histograms) = (lowest.min(r.p), histograms + 1.0);
            let cells: Vec<String> = r.cells.iter().map(u32::to_string).collect();
            let _ = writeln!(out, "  {:<26} p {:.3}  {}", r.name, r.p, cells.join(" "));
        }
    }
    // Among many even histograms one looks uneven.
    let chance = 1.0 - float::pow(1.0 - lowest, histograms);
    let _ = writeln!(out, "\nlowest of {histograms} p-values: {lowest:.3}; as low by chance alone: {chance:.2}");
}

/// The level over all models, as the catalogue's file.
pub fn fit(catalog: &Catalog, folder: &Path) -> Result<String, SpecError> {
    let judge = judge(catalog)?;
    let (models, _) = rows::known(folder)?;
    let level = level::level(&judge.priors, &models.iter().collect::<Vec<_>>());
    let Level { offset, sparsity_exponent, size_exponent, rivalry_exponent, batch_exponent, serving_share, .. } = level;
    let Level { scale, host_scale, ratio_offset, ratio_scale, indifferent, indifferent_price, .. } = level;
    let (reference, middle) = (float::exp(level.ln_reference_size), float::exp(indifferent_price.centre));
    let (served, usual) = (float::exp(level.ln_served_size), float::exp(level.ln_usual_hosts));
    let architectures: BTreeSet<&str> = models.iter().map(|m| m.architecture.as_str()).collect();
    let prices: usize = models.iter().map(|m| m.prices.len()).sum();
    Ok(format!(
        "name = \"How far the prices of open-weight hosts lie above ideal cost\"
form = \"ln price = ln ideal cost + offset + exponents of sparsity, size and rivals + t4(scale), sizes of served models log-normal; printed by `rackmath-calibrate fit deduce`\"
as_of = \"2026-08-08\"
source = \"hosts.toml of this folder: {} models, {} architectures, {prices} prices\"

offset = {offset:.4}
sparsity_exponent = {sparsity_exponent:.4}
size_exponent = {size_exponent:.4}
reference_size = {reference:.1e}
rivalry_exponent = {rivalry_exponent:.4}
usual_hosts = {usual:.2}
batch_exponent = {batch_exponent:.2}
serving_share = {serving_share:.3}
scale = {scale:.4}
host_scale = {host_scale:.4}
ratio_offset = {ratio_offset:.4}
ratio_scale = {ratio_scale:.4}
indifferent = {indifferent:.2e}
indifferent_median = {middle:.4}
indifferent_scale = {:.4}
served_size = {served:.3e}
served_spread = {:.4}
",
        models.len(),
        architectures.len(),
        indifferent_price.scale,
        level.served_spread
    ))
}
