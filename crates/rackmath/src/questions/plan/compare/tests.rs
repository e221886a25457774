//! Columns are plans, flips are where costs are equal.

use super::*;
use crate::plan;
use proptest::prelude::*;

fn plan(on: &str) -> plan::Request {
    let usual = plan::Request::of("llama-3.1-8b", on);
    plan::Request { disaggregated: false, isl: Some(2000.0), osl: Some(300.0), ..usual }
}

#[test]
fn at_the_flip_price_two_machines_cost_the_same() {
    let catalog = rackmath_catalog::embedded();
    let both = Request { plan: plan("8xh100,8xh200"), ..Request::default() };
    let a = answer_on(&catalog, &both, 1).unwrap();
    for flip in &a.flips {
        let mut at = plan(&flip.name);
        at.setting.price_usd_per_chip_hour = Some(flip.flips_at_usd_per_chip_hour.value);
        let moved = plan::answer_on(&catalog, &at, 1).unwrap().plans[0].usd_per_mtok.value;
        let other = a.columns.iter().find(|c| c.curve.name == flip.against).unwrap();
        let theirs = other.plan.as_ref().unwrap().usd_per_mtok.value;
        assert!((moved / theirs - 1.0).abs() < 1e-9, "{flip:?}: {moved} against {theirs}");
    }
    assert!(a.flips.len() == 2 && a.flips[0].cheapest_now && !a.flips[1].cheapest_now);
}

#[test]
fn models_and_engines_have_no_flip_price_and_lists_do_not_mix() {
    let catalog = rackmath_catalog::embedded();
    let words = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    let engines = Request { plan: plan("8xh100"), engines: words(&["vllm", "sglang"]), ..Request::default() };
    let a = answer_on(&catalog, &engines, 1).unwrap();
    assert!(a.flips.is_empty() && a.over == "engines" && a.columns.len() == 2);
    let both = Request { models: words(&["llama-3.1-8b"]), ..engines };
    assert!(answer_on(&catalog, &both, 1).unwrap_err().to_string().contains("one at a time"));
    let typo = Request { plan: plan("8xh100"), systems: words(&["8xh100", "8xh20o"]), ..Request::default() };
    assert!(answer_on(&catalog, &typo, 1).unwrap_err().to_string().contains("h20"));
}

#[test]
fn systems_of_other_sizes_share_no_count_of_chips_and_one_alone_is_told_how_to_list_engines() {
    let catalog = rackmath_catalog::embedded();
    let asked = |plan: plan::Request| answer_on(&catalog, &Request { plan, ..Request::default() }, 1).unwrap();
    let of = |a: &Answer| a.workload.with.get("traffic").cloned();
    let other = asked(plan("4xh100,2xh100"));
    assert_eq!(of(&other), Some(says("each_filled").into()));
    assert!(other.limits.is_empty(), "{:?}", other.limits);
    let same = asked(plan("2xh100,2xh200"));
    assert_eq!(of(&same), Some(says("chips_filled").with("chips", 2_u64).into()));
    assert_eq!(same.limits.len(), 1);
    let engines = vec!["vllm".to_owned(), "sglang".to_owned()];
    let alone = asked(plan::Request { engines, ..plan("2xh100") });
    assert!(alone.columns.len() == 1 && alone.verdict.with.contains_key("engines"), "{:?}", alone.verdict);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn one_system_is_its_plan(isl in 100.0..16000.0_f64, osl in 10.0..1000.0_f64, tpot in prop::option::of(4.0..60.0_f64)) {
        let catalog = rackmath_catalog::embedded();
        let plan = plan::Request { isl: Some(isl), osl: Some(osl), tpot_ms: tpot.map(Into::into), ..plan("4xh100") };
        let whole = plan::answer_on(&catalog, &plan, 1).unwrap();
        let a = answer_on(&catalog, &Request { plan, ..Request::default() }, 1).unwrap();
        prop_assert_eq!(a.columns[0].plan.as_ref(), whole.plans.first());
        prop_assert_eq!(&a.columns[0].curve.points, &whole.frontier);
        prop_assert_eq!(&a.columns[0].verdict, &whole.verdict);
        prop_assert!(a.columns[0].numbers.iter().all(|n| n.ratio.is_none_or(|r| r.value == 1.0)));
    }

    #[test]
    fn a_winner_is_never_worse_than_any_other(isl in 100.0..16000.0_f64, tpot in 8.0..60.0_f64) {
        let plan = plan::Request { isl: Some(isl), tpot_ms: Some(tpot.into()), ..plan("4xh100,4xh200,4xl40s") };
        let a = answer_on(&rackmath_catalog::embedded(), &Request { plan, ..Request::default() }, 1).unwrap();
        for win in &a.wins {
            let more = win.measure.more_is_better().unwrap();
            for c in a.columns.iter().filter_map(|c| win.measure.of(c.plan.as_ref()?)) {
                let worse = if more { c.value <= win.value } else { c.value >= win.value };
                prop_assert!(worse);
            }
        }
    }
}
