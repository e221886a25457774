//! Changes that hold, changes that break, and none.

use super::*;
use proptest::prelude::*;

fn request(set: &[&str]) -> Request {
    let mut plan = plan::Request::of("qwen3-32b", "16xh200");
    (plan.isl, plan.osl, plan.tpot_ms, plan.rate_per_s) = (Some(4000.0), Some(500.0), Some(30.0.into()), Some(8.0));
    Request { plan, set: set.iter().map(ToString::to_string).collect() }
}

fn ask(set: &[&str]) -> Answer {
    answer_on(&rackmath_catalog::embedded(), &request(set), 1).unwrap()
}

#[test]
fn a_dearer_chip_keeps_the_deployment_and_raises_its_cost_alike() {
    let a = ask(&["price=$3.20/h"]);
    assert_eq!((a.kept.holds, a.same_deployment), (Holds::AsIs, true));
    let cost = a.differences.iter().find(|d| d.measure == Measure::UsdPerMtok).unwrap();
    // The catalogue rents an H200 at $1.60 an hour.
    assert!((cost.after_change.unwrap() - 1.0).abs() < 1e-9, "{cost:?}");
    assert_eq!(cost.kept, cost.after);
}

#[test]
fn what_is_kept_is_never_better_than_the_best() {
    for set in ["tpot=15ms", "isl=8k", "rate=12", "on=16xb200", "kv=fp8", "osl=2k"] {
        let a = ask(&[set]);
        let (Some(kept), Some(after)) = (&a.kept.plan, &a.after) else { panic!("{set}: {:?}", a.verdict) };
        if a.kept.holds != Holds::Breaks {
            assert!(after.usd_per_mtok.value <= kept.usd_per_mtok.value, "{set}");
        }
    }
}

#[test]
fn a_target_nobody_meets_says_what_would_do() {
    let a = ask(&["tpot=0.1ms"]);
    assert!(a.after.is_none() && a.kept.holds == Holds::Breaks && !a.relaxations.is_empty());
    assert!(a.kept.broken[0].with["bound"] == "time per output token".into(), "{:?}", a.kept);
}

#[test]
fn two_pools_cannot_be_kept_where_prompts_share_their_chips() {
    let a = ask(&["aggregated=true"]);
    assert!(a.before.unwrap().prefill.is_some() && a.after.unwrap().prefill.is_none());
    assert_eq!((a.kept.holds, a.kept.plan), (Holds::No, None));
}

#[test]
fn words_that_mean_nothing_are_refused_with_the_nearest() {
    let refused = |set: &str| answer_on(&rackmath_catalog::embedded(), &request(&[set]), 1).unwrap_err().to_string();
    assert!(refused("tpott=20ms").contains("did you mean \"tpot\""));
    assert!(refused("tpot").contains("such as tpot=20ms"));
    assert!(refused("tpot=fast").contains("ms"));
    assert!(refused("on=8xh2000").contains("h200"));
    assert!(refused("top=many").contains("top=many"));
    assert!(refused("engine=vlm").contains("vllm"));
}

#[test]
fn every_setting_can_be_set_and_reads_back() {
    for (word, to) in [
        ("isl=8k", "8,000"),
        ("ttft=2s", "2.00 s"),
        ("price=$2/h", "$2.00/h"),
        ("chips=8", "8"),
        ("tpot=none", "none"),
        ("headroom=10%", "10.0%"),
        ("cache-headroom=10%", "10.0%"),
        ("chunks=2048,8192", "2,048, 8,192"),
        ("tpot_ms=25", "25.0 ms"),
        ("budget=$50/h", "$50.0/h"),
        ("power=20kW", "20.0 kW"),
        ("objective=chips", "chips"),
        ("user=50", "50.0 tok/s"),
    ] {
        let mut r = request(&[]).plan;
        assert_eq!(apply(&mut r, word).unwrap().to, to, "{word}");
    }
}

#[test]
fn less_traffic_and_looser_limits_break_nothing() {
    let mut r = request(&[]);
    (r.plan.setting.on, r.plan.ttft_ms, r.plan.rate_per_s) = ("32xh200".into(), Some(1000.0.into()), Some(20.0));
    for set in ["rate=19", "tpot=60ms"] {
        let a = answer_on(&rackmath_catalog::embedded(), &Request { set: vec![set.into()], ..r.clone() }, 1).unwrap();
        assert_eq!((a.kept.holds, a.kept.broken.len()), (Holds::AsIs, 0), "{set}: {:?}", a.verdict);
        let chips = [a.before, a.kept.plan].map(|plan| plan.unwrap().chips);
        assert_eq!(chips[0], chips[1], "{set}");
    }
}

#[test]
fn what_holds_under_its_traffic_is_kept_though_its_steady_state_breaks_a_limit() {
    let mut r = request(&[]);
    (r.plan.isl, r.plan.osl, r.plan.tpot_ms) = (Some(6325.1), Some(665.7), Some(84.26.into()));
    let a = answer_on(&rackmath_catalog::embedded(), &r, 1).unwrap();
    assert_eq!((a.kept.holds, a.kept.broken.len(), a.same_deployment), (Holds::AsIs, 0, true));
    assert_eq!(a.kept.plan, a.after);
}

/// Three pools of prompts to one that answers, 8 chips full to four fifths.
fn planned(set: &[&str]) -> Answer {
    let mut r = request(set);
    (r.plan.setting.on, r.plan.isl, r.plan.osl) = ("16xh200@3.00".into(), Some(3000.0), Some(400.0));
    (r.plan.tpot_ms, r.plan.ttft_ms, r.plan.rate_per_s) = (Some(35.0.into()), Some(1000.0.into()), Some(12.0));
    answer_on(&rackmath_catalog::embedded(), &r, 1).unwrap()
}

#[test]
fn as_it_is_is_said_of_the_same_replicas_alone() {
    // Twice the requests for a deployment that serves 14.7 a second.
    let twice = planned(&["rate=24"]);
    let (before, kept) = (twice.before.unwrap(), twice.kept.plan.unwrap());
    assert_eq!((twice.kept.holds, before.replicas, kept.replicas), (Holds::Scaled, 1, 2));
    assert_eq!((before.chips, kept.chips, kept.prefill), (8, 16, before.prefill));
    // A fifth more prompt: with as many requests in flight as it is started with it evicts, and serves 11 of 12 a second.
    let longer = planned(&["isl=3600"]);
    assert_ne!(longer.kept.holds, Holds::AsIs, "{:?}", longer.verdict);
    // Half of the requests are no trouble, and are not moved to fewer chips by themselves.
    let half = planned(&["rate=6"]);
    assert_eq!((half.kept.holds, half.kept.plan.unwrap().chips), (Holds::AsIs, 8));
}

#[test]
fn a_price_is_set_whether_it_stood_behind_the_machine_or_not() {
    let a = planned(&["price=2"]);
    // 8 chips at $2 an hour for 12 x 400 tokens a second.
    let cost = 16.0 / (12.0 * 400.0 * 3600.0) * 1e6;
    assert!((a.after.unwrap().usd_per_mtok.value / cost - 1.0).abs() < 1e-9);
    assert_eq!((&*a.changes[0].from, &*a.changes[0].to), ("$3.00/h", "$2.00/h"));
    let mut r = request(&["on=16xh200@2"]).plan;
    r.setting.price_usd_per_chip_hour = Some(3.0);
    apply(&mut r, "on=16xh200@2").unwrap();
    assert_eq!(r.setting.price_usd_per_chip_hour, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn no_change_makes_no_difference(isl in 100.0..16000.0_f64, osl in 10.0..2000.0_f64, tpot in 8.0..100.0_f64, same in any::<bool>()) {
        let mut r = request(&[]);
        (r.plan.isl, r.plan.osl, r.plan.tpot_ms) = (Some(isl), Some(osl), Some(tpot.into()));
        if same {
            r.set = vec![format!("isl={isl}"), "on=16xh200".into()];
        }
        let a = answer_on(&rackmath_catalog::embedded(), &r, 1).unwrap();
        prop_assert_eq!(&a.before, &a.after);
        for d in &a.differences {
            prop_assert!(d.after_change.is_none_or(|c| c == 0.0) && d.kept_change.is_none_or(|c| c == 0.0), "{d:?}");
        }
        if a.before.is_some() {
            prop_assert_eq!(a.kept.holds, Holds::AsIs);
            prop_assert!(a.same_deployment);
        }
    }
}
