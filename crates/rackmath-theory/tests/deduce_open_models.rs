//! Open models deduced from their hosts' prices, each without its own architecture in the level: the targets as a test.

use rackmath_spec::deduce::{DeducePriors, Policies, Seller};
use rackmath_theory::deduce::level::{Known, level};
use rackmath_theory::deduce::{Evidence, Posterior, Sampling, Sheet, Space, Unknown};
use rackmath_theory::stats::median;
use rackmath_units::float;

fn known() -> Vec<Known> {
    let catalog = rackmath_catalog::embedded();
    let hosted = catalog.hosted_models().unwrap();
    hosted.iter().map(|h| Known::of(h, &catalog.model(&h.config).unwrap()).unwrap()).collect()
}

fn posterior(priors: &DeducePriors, policies: &Policies, sheet: &Sheet) -> Posterior {
    let space = Space::new(priors, Seller::Host).unwrap();
    let evidence = Evidence::new(&space, sheet, |r| policies.host[&r]);
    Posterior::new(&space, &evidence, Sampling { log2_points: 13, seed: 1 }).unwrap()
}

#[test]
fn every_hosted_model_has_a_believable_architecture() {
    for k in known() {
        // Published sizes of these families reach from 3 to 406 billion active, 1 to 23 times that in total.
        assert!((float::ln(3e9)..=float::ln(407e9)).contains(&k.ln_active), "{}", k.name);
        assert!((0.0..=float::ln(24.0)).contains(&k.ln_sparsity), "{}", k.name);
        assert!(k.summary.hosts >= 4, "{}", k.name);
    }
}

#[test]
fn the_catalogues_level_is_the_fit() {
    let priors = rackmath_catalog::embedded().deduce_priors().unwrap();
    let models = known();
    let (fitted, kept) = (level(&priors, &models.iter().collect::<Vec<_>>()), priors.level);
    // The file was fitted with another count of the same parameters, so the third digit may differ.
    for (a, b) in [
        (fitted.offset, kept.offset),
        (fitted.sparsity_exponent, kept.sparsity_exponent),
        (fitted.size_exponent, kept.size_exponent),
        (fitted.scale, kept.scale),
        (fitted.host_scale, kept.host_scale),
        (fitted.ratio_offset, kept.ratio_offset),
        (fitted.ratio_scale, kept.ratio_scale),
    ] {
        assert!((a - b).abs() < 0.03, "{fitted:?} {kept:?}");
    }
    assert!(fitted.indifferent < 0.01);
}

#[test]
fn left_out_architectures_are_found_within_the_error_bars() {
    let catalog = rackmath_catalog::embedded();
    let (priors, policies, models) = (catalog.deduce_priors().unwrap(), catalog.policies().unwrap(), known());
    let prior = posterior(&priors, &policies, &Sheet { hosts: 8, ..Sheet::default() });
    let (mut errors, mut widths, mut inside, mut bits, mut crps) = (Vec::new(), 0.0, 0.0, 0.0, 0.0);
    let n = models.len() as f64;
    for m in &models {
        let others: Vec<&Known> = models.iter().filter(|o| o.architecture != m.architecture).collect();
        let left_out = DeducePriors { level: level(&priors, &others), ..(*priors).clone() };
        let p = posterior(&left_out, &policies, &m.summary.sheet());
        let h = p.of(Unknown::Active);
        let (low, middle, high) = (h.quantile(0.1), h.quantile(0.5), h.quantile(0.9));
        errors.push((middle - m.ln_active).abs() / float::ln(10.0));
        widths += (high - low) / float::ln(10.0) / n;
        inside += if (low..=high).contains(&m.ln_active) { 1.0 / n } else { 0.0 };
        bits += h.bits_over(prior.of(Unknown::Active)) / n;
        crps += h.crps(m.ln_active) / n;
    }
    let error = median(&errors).unwrap();
    assert!(error <= 0.20 && widths <= 0.60, "error {error}, width {widths}");
    assert!((0.70..=0.90).contains(&inside) && crps <= 0.30 && bits >= 1.5, "{inside} {crps} {bits}");
}
