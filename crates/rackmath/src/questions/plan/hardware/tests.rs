//! The winner is the best, the flips are where it loses.

use super::*;
use proptest::prelude::*;

fn request(among: &[&str]) -> Request {
    let mut plan = plan::Request { disaggregated: false, ..plan::Request::of("llama-3.1-8b", "gb200-nvl72") };
    (plan.setting.chips, plan.isl, plan.osl, plan.tpot_ms) = (Some(2), Some(2000.0), Some(300.0), Some(25.0.into()));
    Request { plan, among: among.iter().map(ToString::to_string).collect(), flips: false }
}

#[test]
fn all_chips_with_a_price_are_asked_and_none_that_was_never_sold() {
    let a = answer_on(&rackmath_catalog::embedded(), &request(&[]), 1).unwrap();
    assert!(a.rows.len() + a.out.len() > 20);
    assert!(a.rows.iter().all(|r| !r.name.contains("lecture") && r.plan.chips <= 2 && r.plan.tpot_ms.value <= 25.0));
    assert!(a.rows.windows(2).all(|w| w[0].plan.usd_per_mtok.value <= w[1].plan.usd_per_mtok.value));
    assert_eq!(a.rows[0].behind.value, 1.0);
}

#[test]
fn one_kind_of_price_leaves_the_others_out_with_the_reason() {
    let mut r = request(&[]);
    r.plan.setting.basis = Some("rental".into());
    let a = answer_on(&rackmath_catalog::embedded(), &r, 1).unwrap();
    assert!(a.rows.iter().all(|r| r.price_basis == "rental"));
    let why = says("no_such_price").with("basis", "contract").with("has", vec!["on-demand"]);
    assert!(a.out.iter().any(|o| o.name == "2xl40s" && o.why == why), "{:?}", a.out);
}

#[test]
fn where_energy_decides_the_verdict_says_which_kinds_of_power_are_ranked() {
    let mut r = request(&["h100-nvl", "gb200"]);
    r.plan.objective = plan::Best::Energy;
    let a = answer_on(&rackmath_catalog::embedded(), &r, 1).unwrap();
    assert!(a.rows.iter().all(|r| r.plan.joules_per_token > 0.0));
    let kinds: Vec<&str> = a.rows.iter().map(|r| r.power_basis.as_str()).collect();
    let powers = serde_json::to_value(&a.verdict).unwrap()["powers"].clone();
    assert!(kinds[0] != kinds[1] && powers.as_array().is_some_and(|p| p.len() == 2), "{kinds:?} {powers}");
    // Of one kind there is nothing to say.
    r.among = vec!["h100".into(), "h200".into()];
    let one = answer_on(&rackmath_catalog::embedded(), &r, 1).unwrap();
    assert!(serde_json::to_value(&one.verdict).unwrap()["powers"].is_null(), "{:?}", one.verdict);
}

#[test]
fn a_kind_of_price_that_nothing_has_is_refused_as_such() {
    for among in [&[][..], &["h100", "l4"]] {
        let mut r = request(among);
        r.plan.setting.basis = Some("spot".into());
        let refused = answer_on(&rackmath_catalog::embedded(), &r, 1).unwrap_err().to_string();
        assert!(refused.contains("no spot price is known") && refused.contains("rental"), "{refused}");
    }
    // A price that is given is one of any kind.
    let mut r = request(&["h100@1.50"]);
    r.plan.setting.basis = Some("spot".into());
    assert_eq!(answer_on(&rackmath_catalog::embedded(), &r, 1).unwrap().rows.len(), 1);
}

#[test]
fn prices_of_different_kinds_are_not_ranked_together() {
    let c = rackmath_catalog::embedded();
    // All three have prices on demand, only the first a contract.
    let a = answer_on(&c, &request(&["h100", "a100-80gb", "l40s"]), 1).unwrap();
    assert!(a.rows.len() == 3 && a.rows.iter().all(|row| row.price_basis == "on-demand"));
    // GB200 has contracts alone, L40S none: of a tie the usual kind is kept, and the other says what it has.
    let a = answer_on(&c, &request(&["gb200", "l40s"]), 1).unwrap();
    assert_eq!((a.rows.len(), a.rows[0].price_basis.as_str(), a.out[0].name.as_str()), (1, "rental", "2xl40s"));
    // A price that is given goes with any kind, and the verdict says so.
    let a = answer_on(&c, &request(&["gb200", "l40s@0.99"]), 1).unwrap();
    assert_eq!((a.rows.len(), a.out.len()), (2, 0));
    assert!(format!("{:?}", a.verdict).contains("given"), "{:?}", a.verdict);
    let mut of_all = request(&[]);
    of_all.plan.setting.chips = Some(1);
    let a = answer_on(&c, &of_all, 1).unwrap();
    assert!(a.rows.iter().all(|row| row.price_basis == a.rows[0].price_basis));
}

#[test]
fn equal_numbers_of_chips_are_level() {
    let mut r = request(&["h100", "h200"]);
    r.plan.objective = plan::Best::Chips;
    let a = answer_on(&rackmath_catalog::embedded(), &r, 1).unwrap();
    assert!(a.verdict.with.contains_key("level"), "{:?}", a.verdict);
    assert!(a.rows.iter().all(|row| row.flips_at_usd_per_chip_hour.is_none()));
}

#[test]
fn the_answer_does_not_depend_on_threads() {
    let r = Request { flips: true, ..request(&["h100", "l40s", "a100-80gb"]) };
    let catalog = rackmath_catalog::embedded();
    assert_eq!(answer_on(&catalog, &r, 1).unwrap(), answer_on(&catalog, &r, 3).unwrap());
}

#[test]
fn beyond_a_flip_another_is_cheaper() {
    let catalog = rackmath_catalog::embedded();
    let r = Request { flips: true, ..request(&["h100", "l40s", "a100-80gb", "h200"]) };
    let a = answer_on(&catalog, &r, 1).unwrap();
    let speeds: Vec<&Flip> = a.flips.iter().filter(|f| f.axis == "tok_s_per_user").collect();
    assert!(!speeds.is_empty(), "some speed is too much for all");
    for flip in speeds {
        for (at, winner) in [(flip.at * 0.995, &flip.below), (flip.until.unwrap_or(flip.at) * 1.005, &flip.above)] {
            let mut there = r.clone();
            there.flips = false;
            there.plan.tpot_ms = Some((1e3 / at).into());
            let best = answer_on(&catalog, &there, 1).unwrap().rows.first().map(|r| r.name.clone());
            assert_eq!(&best, winner, "{flip:?} at {at}");
        }
    }
}

#[test]
fn unknown_hardware_and_impossible_questions() {
    let catalog = rackmath_catalog::embedded();
    assert!(answer_on(&catalog, &request(&["h1000"]), 1).unwrap_err().to_string().contains("h100"));
    let mut large = request(&["l4", "rtx-4090"]);
    large.plan.setting.model = "deepseek-v3".into();
    let a = answer_on(&catalog, &large, 1).unwrap();
    assert!(a.rows.is_empty() && a.out.len() == 2 && a.verdict.says == "no_hardware_runs");
    // It is the room that is missing, not the limits; and of a context too long it is the context.
    let why = |a: &Answer| format!("{:?}", a.verdict.with.get("why"));
    assert!(why(&a).contains("no_room"), "{:?}", a.verdict);
    let mut long = request(&["h100", "h200"]);
    long.plan.isl = Some(500_000.0);
    let a = answer_on(&catalog, &long, 1).unwrap();
    assert!(why(&a).contains("context_too_long"), "{:?}", a.verdict);
    let mut wrong = request(&[]);
    wrong.plan.setting.model = "deepsek-v3".into();
    assert!(answer_on(&catalog, &wrong, 1).unwrap_err().to_string().contains("deepseek-v3"));
    let mut none = request(&[]);
    none.plan.setting.chips = Some(0);
    assert!(answer_on(&catalog, &none, 1).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn the_winner_is_never_worse_than_the_plan_of_any_listed(isl in 100.0..8000.0_f64, osl in 50.0..1000.0_f64, tpot in 5.0..60.0_f64) {
        let catalog = rackmath_catalog::embedded();
        let mut r = request(&["h100", "l40s", "mi300x"]);
        (r.plan.isl, r.plan.osl, r.plan.tpot_ms) = (Some(isl), Some(osl), Some(tpot.into()));
        let a = answer_on(&catalog, &r, 1).unwrap();
        for name in ["2xh100", "2xl40s", "2xmi300x"] {
            // The kind of price that all three have.
            let setting = Setting { on: name.into(), basis: Some("on-demand".into()), ..r.plan.setting.clone() };
            let own = plan::answer_on(&catalog, &plan::Request { setting, ..r.plan.clone() }, 1).unwrap();
            let row = a.rows.iter().find(|row| row.name == name);
            prop_assert_eq!(row.map(|r| r.plan.usd_per_mtok.value), own.plans.first().map(|p| p.usd_per_mtok.value));
            if let Some(own) = own.plans.first() {
                prop_assert!(a.rows[0].plan.usd_per_mtok.value <= own.usd_per_mtok.value);
            }
        }
    }
}
