use super::*;
use crate::laws::{Law, Machine};
use proptest::prelude::*;

fn ask(request: &Request) -> Answer {
    answer(&Catalog::embedded(), request).unwrap()
}

fn of<'a>(a: &'a Answer, law: &str) -> &'a LawCard {
    a.laws.iter().find(|l| l.law == law).unwrap()
}

fn lecture() -> Request {
    Request { served_tokens: Some(200e12), ..Request::default() }
}

#[test]
fn the_lectures_budget() {
    // X9: the family's rate and the model's share are two inputs; 50 M tok/s for 60 days is 259.2 T.
    assert!((ask(&Request::default()).served_tokens - 2.592e14).abs() < 1.0);
    let a = ask(&lecture());
    assert!((a.rule.pretrain_tokens - 200e12).abs() < 1e3 && (a.rule.over_training - 100.0).abs() < 1e-9);
    assert!((a.rule.pretrain_flop / a.rule.served_flop - 1.0).abs() < 1e-9);
    assert!((a.rule.pretrain_flop / a.rule.rl_flop - 1.0).abs() < 1e-9);
    let l = of(&a, "besiroglu-2024");
    // +4.2 %, 111 B, 117 T.
    assert!((l.rule_extra.unwrap() - 0.042).abs() < 6e-4);
    assert!((l.optimum.unwrap().params / 1e9 - 111.0).abs() < 0.6);
    let (low, high) = a.over_training_over_laws.unwrap();
    assert!(low < 60.0 && high > 120.0, "{low} to {high}");
}

#[test]
fn a_chance_of_never_serving_argues_for_less_data() {
    let risky = ask(&Request { survives: 0.5, ..lecture() });
    assert!((risky.rule.over_training - 50.0).abs() < 1e-9);
}

#[test]
fn failures_raise_the_price_of_training_and_lower_its_share() {
    let failures = Failures { chip_mtbf_hours: Some(50_677.0), ..Failures::default() };
    let (calm, rough) = (ask(&lecture()), ask(&Request { failures, ..lecture() }));
    assert!(rough.goodput < 0.93 && rough.train_cost > 1.07);
    let tokens = |a: &Answer| of(a, "hoffmann-2022").optimum.unwrap().tokens;
    assert!(tokens(&rough) < tokens(&calm), "dearer training buys fewer tokens");
}

#[test]
fn everything_in_one_solve() {
    let a = ask(&Request {
        rl: Some(RlRequest::default()),
        failures: Failures { chip_mtbf_hours: Some(50_677.0), ..Failures::default() },
        law: Law { sparsity: 16.0, precision_worth: 0.95, unique_tokens: Some(60e12), ..Law::default() },
        machine: Machine {
            on: Some("b200".into()),
            train_format: "fp8".into(),
            serve_format: "nvfp4".into(),
            ..Machine::default()
        },
        ..lecture()
    });
    let l = of(&a, "muennighoff-2023");
    assert!(l.optimum.unwrap().usd.unwrap() > 0.0 && l.rule_extra.unwrap() >= 0.0);
    // 16 samples at a pass rate of a half: all but 2 / 2^16 of the groups teach.
    assert!((a.rl.unwrap().useful - (1.0 - 2.0 / 65_536.0)).abs() < 1e-12);
    assert!(a.assumptions.len() >= 6);
}

#[test]
fn a_cheaper_way_to_serve_argues_for_less_data() {
    let machine = |serve: f64| Machine {
        on: Some("h100".into()),
        price_usd_per_chip_hour: Some(2.0),
        serve_price_usd_per_chip_hour: Some(serve),
        ..Machine::default()
    };
    let of_price = |serve: f64| ask(&Request { machine: machine(serve), loss: Some(1.95), ..lecture() });
    let (dear, cheap) = (of_price(2.0), of_price(1.0));
    let tokens = |a: &Answer| of(a, "besiroglu-2024").optimum.unwrap().tokens;
    assert!(tokens(&cheap) < tokens(&dear));
    let spread = of(&dear, "besiroglu-2024").usd_spread.unwrap();
    assert!(spread.narrow.unwrap().low < spread.narrow.unwrap().high);
}

#[test]
fn a_loss_out_of_reach_is_an_answer() {
    let a = ask(&Request { loss: Some(1.0), ..lecture() });
    assert_eq!(of(&a, "besiroglu-2024").left_out.as_deref(), Some("no model reaches this loss under it"));
}

#[test]
fn a_wrong_split_is_refused() {
    let error = answer(&Catalog::embedded(), &Request { split: "third".into(), ..lecture() }).unwrap_err();
    assert!(error.to_string().contains("did you mean thirds?"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn following_the_rule_never_pays(params in 9.0f64..12.0, served in 12.0f64..16.0, eta in 0.1f64..1.0, f in 2.0f64..6.0) {
        let a = ask(&Request {
            params: rackmath_units::float::pow(10.0, params),
            served_tokens: Some(rackmath_units::float::pow(10.0, served)),
            eta,
            rl_factor: f,
            law: Law { law: "hoffmann-2022".into(), ..Law::default() },
            ..Request::default()
        });
        prop_assert!(a.laws[0].rule_extra.unwrap() >= -1e-9);
    }
}
