//! Laws of the posterior over random price sheets.

use proptest::prelude::*;
use rackmath_spec::deduce::{Ratio, Seller};
use rackmath_theory::deduce::{Evidence, Posterior, Sampling, Sheet, Space, Unknown};

const SAMPLING: Sampling = Sampling { log2_points: 13, seed: 1 };

fn space() -> Space {
    Space::new(&rackmath_catalog::embedded().deduce_priors().unwrap(), Seller::Host).unwrap()
}

fn posterior(space: &Space, sheet: &Sheet, policy: f64) -> Posterior {
    Posterior::new(space, &Evidence::new(space, sheet, |_| policy), SAMPLING).expect("not refused")
}

fn mean(p: &Posterior, unknown: Unknown) -> f64 {
    p.of(unknown).mean()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_dearer_output_alone_means_a_larger_model(output in 0.1..6.0_f64, factor in 1.05..2.0_f64) {
        let space = space();
        let at = |output| posterior(&space, &Sheet { output: Some(output), ..Sheet::default() }, 0.3);
        let (less, more) = (mean(&at(output), Unknown::Active), mean(&at(output * factor), Unknown::Active));
        prop_assert!(more > less, "{less} {more}");
    }

    #[test]
    fn a_dearer_input_means_a_larger_model(input in 0.05..4.0_f64, factor in 1.05..2.0_f64) {
        let space = space();
        let at = |input| posterior(&space, &Sheet { input: Some(input), ..Sheet::default() }, 0.3);
        prop_assert!(mean(&at(input * factor), Unknown::Active) > mean(&at(input), Unknown::Active));
    }

    #[test]
    fn a_dearer_output_beside_the_same_input_means_more_experts(
        input in 0.1..3.0_f64,
        ratio in 1.0..4.0_f64,
        factor in 1.2..2.0_f64,
    ) {
        let space = space();
        let at = |ratio: f64| {
            let sheet = Sheet { input: Some(input), output: Some(input * ratio), hosts: 8, ..Sheet::default() };
            posterior(&space, &sheet, 0.0)
        };
        let (less, more) = (at(ratio), at(ratio * factor));
        prop_assert!(mean(&more, Unknown::Sparsity) > mean(&less, Unknown::Sparsity));
    }

    #[test]
    fn a_dearer_cached_read_means_more_cache(cached in 0.005..0.2_f64, factor in 1.1..2.0_f64) {
        let space = space();
        let at = |cached| posterior(&space, &Sheet { input: Some(0.5), cached: Some(cached), ..Sheet::default() }, 0.2);
        prop_assert!(mean(&at(cached * factor), Unknown::KvStored) > mean(&at(cached), Unknown::KvStored));
    }

    #[test]
    fn a_seed_gives_the_same_bits(input in 0.05..5.0_f64, output in 0.05..20.0_f64, seed in 0..1000_u64) {
        let space = space();
        let evidence = Evidence::new(&space, &Sheet { input: Some(input), output: Some(output), ..Sheet::default() }, |_| 0.3);
        let sampling = Sampling { log2_points: 12, seed };
        prop_assert_eq!(Posterior::new(&space, &evidence, sampling), Posterior::new(&space, &evidence, sampling));
    }

    #[test]
    fn quantiles_are_in_order_and_data_never_cost_bits(input in 0.05..5.0_f64, ratio in 1.0..12.0_f64) {
        // Beyond such ratios the posterior is refused, as it should be: no known price sheet looks like that.
        let (space, output) = (space(), input * ratio);
        let p = posterior(&space, &Sheet { input: Some(input), output: Some(output), ..Sheet::default() }, 0.3);
        for u in Unknown::ALL {
            let h = p.of(u);
            prop_assert!(h.quantile(0.1) <= h.quantile(0.5) && h.quantile(0.5) <= h.quantile(0.9));
        }
        prop_assert!(p.bits_of_data().iter().all(|(_, a, b)| *a >= 0.0 && *b >= 0.0));
        prop_assert!((p.widths.iter().sum::<f64>() - 1.0).abs() < 1e-9 && (p.tiers.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
}

#[test]
fn certain_policy_tells_nothing_about_the_cache() {
    let space = space();
    let sheet =
        Sheet { input: Some(5.0), output: Some(25.0), cached: Some(0.5), storage: Some(4.5), ..Sheet::default() };
    let p = posterior(&space, &sheet, 1.0);
    let prior = posterior(&space, &Sheet { hosts: sheet.hosts, ..Sheet::default() }, 0.0);
    assert!(p.of(Unknown::KvStored).bits_over(prior.of(Unknown::KvStored)) < 1e-3);
}

#[test]
fn few_points_are_tempered_and_absurd_sheets_refused() {
    let space = space();
    // A speed, a cached read and a level that only a corner of the prior can have together.
    let tight = Sheet {
        input: Some(0.02),
        output: Some(0.3),
        cached: Some(0.3),
        storage: Some(9.0),
        tokens_per_s: Some(900.0),
        hosts: 20,
        ..Sheet::default()
    };
    let evidence = Evidence::new(&space, &tight, |_: Ratio| 0.0);
    let plain = Posterior::new(&space, &evidence, Sampling { log2_points: 13, seed: 1 });
    let outcome = plain.as_ref().map(|p| (p.sampler.tempered, p.sampler.ess));
    assert!(matches!(outcome, Ok((3, ess)) if ess >= 400.0) || outcome.is_err(), "{outcome:?}");
    // With more points the same answer needs no help, and agrees.
    let many = Posterior::new(&space, &evidence, Sampling { log2_points: 19, seed: 1 }).expect("enough points");
    if let Ok(few) = plain {
        assert_eq!(few.sampler.tempered, 3);
        let gap = (few.of(Unknown::Active).mean() - many.of(Unknown::Active).mean()).abs();
        assert!(gap < 0.1, "{gap}");
    }
}

#[test]
fn the_ridge_of_size_and_markup_runs_downhill() {
    let space = space();
    let p = posterior(&space, &Sheet { input: Some(1.0), ..Sheet::default() }, 0.0);
    let [active, markup] = p.ridge([Unknown::Active, Unknown::Markup]);
    assert!(active * markup < 0.0 && p.correlation(Unknown::Active, Unknown::Markup) < -0.2);
}
