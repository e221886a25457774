//! Moves that matter, moves that do not, and the bad ends.

use super::*;
use proptest::prelude::*;

fn request() -> Request {
    let mut plan = plan::Request { disaggregated: false, ..plan::Request::of("llama-3.1-8b", "8xh100") };
    (plan.isl, plan.osl, plan.tpot_ms, plan.rate_per_s) = (Some(2000.0), Some(300.0), Some(20.0.into()), Some(30.0));
    Request { plan, ..Request::default() }
}

#[test]
fn a_price_moves_the_cost_alike_every_concurrency_has_its_stage_and_the_bad_ends_cost_no_less() {
    let a = answer_on(&rackmath_catalog::embedded(), &request(), 1).unwrap();
    let price = a.inputs.iter().find(|i| i.name.says == "chip_price").unwrap();
    // The catalogue's rental price of an H100 has no range: a fifth down and up.
    assert!((price.low.change.unwrap() + 0.2).abs() < 1e-9 && (price.high.change.unwrap() - 0.2).abs() < 1e-9);
    assert!(price.low.kept == Holds::AsIs && price.high.regret == Some(0.0));
    let (plan, robust) = (a.plan.unwrap(), a.robust.unwrap());
    assert_eq!(price.low.deployment, Some(plan.deployment));
    assert!(a.stages.windows(2).all(|w| w[0].to < w[1].from) && a.stages[0].from == 1.0);
    // The plan stands on a stage that breaks nothing.
    let at = plan.concurrency_per_group;
    assert!(a.stages.iter().any(|s| s.from <= at && at <= s.to && s.broken.is_empty()));
    assert!(a.stages.iter().any(|s| !s.broken.is_empty()), "a limit on time per token ends somewhere");
    assert!(robust.premium >= 0.0 && robust.plan.tpot_ms.value <= 20.0 * plan.tpot_ms.value / plan.tpot_ms.high + 1e-9);
}

#[test]
fn the_deployment_it_speaks_of_is_the_one_that_is_planned() {
    let catalog = rackmath_catalog::embedded();
    let mut r = request();
    (r.plan.ttft_ms, r.plan.simulate_requests) = (Some(60.0.into()), Some(500));
    let planned = plan::answer_on(&catalog, &r.plan, 1).unwrap();
    let a = answer_on(&catalog, &r, 1).unwrap();
    assert_eq!(a.plan.as_ref(), planned.plans.first());
}

#[test]
fn todays_deployment_is_as_it_is_only_in_its_replicas() {
    let mut r = request();
    r.plan = plan::Request::of("qwen3-32b", "16xh200@3.00");
    (r.plan.isl, r.plan.osl, r.plan.rate_per_s) = (Some(3000.0), Some(400.0), Some(12.0));
    (r.plan.tpot_ms, r.plan.ttft_ms) = (Some(35.0.into()), Some(1000.0.into()));
    let a = answer_on(&rackmath_catalog::embedded(), &r, 1).unwrap();
    let of = |name: &str| a.inputs.iter().find(|i| i.name.says == name).unwrap();
    assert_ne!(of("tokens_of_prompt").high.kept, Holds::AsIs, "prompts of 3,600 do not fit beside each other");
    for input in &a.inputs {
        for case in [&input.low, &input.high] {
            assert_eq!(case.kept == Holds::Scaled, case.replicas.is_some(), "{}", input.name.says);
        }
    }
    assert_ne!(a.verdict.with.get("parts"), None);
}

#[test]
fn nothing_to_look_out_for_where_nothing_fits() {
    let mut r = request();
    r.plan.setting.model = "deepseek-v3".into();
    let a = answer_on(&rackmath_catalog::embedded(), &r, 1).unwrap();
    assert!(a.plan.is_none() && a.inputs.is_empty() && a.most.is_none());
    assert!(answer_on(&rackmath_catalog::embedded(), &Request { vary: 1.5, ..request() }, 1).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn more_room_never_serves_less_and_regret_is_never_negative(tpot in 8.0..60.0_f64, rate in 1.0..60.0_f64) {
        let mut r = request();
        (r.plan.tpot_ms, r.plan.rate_per_s) = (Some(tpot.into()), Some(rate));
        let a = answer_on(&rackmath_catalog::embedded(), &r, 1).unwrap();
        if let Some(most) = &a.most {
            prop_assert!(most.reliefs.iter().all(|r| r.gain >= 0.0));
            prop_assert!(a.plan.is_none() || most.times_now.unwrap() >= 1.0 - 1e-9);
        }
        for case in a.inputs.iter().flat_map(|i| [&i.low, &i.high]) {
            prop_assert!(case.regret.is_none_or(|r| r >= 0.0));
        }
    }
}
