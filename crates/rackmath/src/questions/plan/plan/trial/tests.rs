//! Plans under their traffic: what means say at low load, and what they hide at a high one.

use super::*;
use crate::plan::{Answer, answer_on};

fn request() -> Request {
    let usual = Request::of("llama-3.1-8b", "8xh200");
    let fixed = Request { isl: Some(512.0), osl: Some(64.0), disaggregated: false, simulate: true, ..usual };
    Request { simulate_requests: Some(1000), top: 3, ..fixed }
}

fn answered(r: &Request) -> Answer {
    answer_on(&rackmath_catalog::embedded(), r, 1).unwrap()
}

fn trials(a: &Answer) -> Vec<(&Trial, &Measured)> {
    let all = &a.simulated.as_ref().unwrap().trials;
    all.iter().filter_map(|t| Some((t, t.measured.as_ref()?))).collect()
}

#[test]
fn at_low_load_p99_is_near_the_mean_of_one_request_and_holds() {
    // One request in a hundred seconds: nobody meets anybody, so that all requests take the same time.
    let r = Request { rate_per_s: Some(0.01), ttft_ms: Some(500.0.into()), tpot_ms: Some(50.0.into()), ..request() };
    let a = answered(&r);
    let found = trials(&a);
    assert!(found.len() >= 2, "all but pipelines");
    for (t, m) in found {
        assert!(m.mean_holds && m.p90_holds && m.p99_holds && m.goodput == Some(1.0), "{t:?}");
        assert_eq!((m.runs, t.verdict.says.as_ref()), (1, "trial_holds"));
        for x in &m.times {
            // Under one request in a hundred shares a step.
            assert!(x.p50_ms <= x.mean_ms * (1.0 + 1e-6) && x.p90_ms <= x.p50_ms * 1.001, "{x:?}");
        }
        let [first, token, whole] = [0, 1, 2].map(|i| m.times[i].p50_ms);
        assert!((first + 63.0 * token - whole).abs() < 1e-3 * whole);
    }
    assert_eq!(a.verdict.with.contains_key("simulated"), a.simulated.is_some());
}

#[test]
fn a_full_plan_fails_at_p99_and_says_what_would_hold() {
    // The rate is all that the best plan serves: its mean holds in the steady state only.
    let limits = Request { ttft_ms: Some(60.0.into()), tpot_ms: Some(20.0.into()), ..request() };
    let plain = answered(&Request { simulate: false, simulate_requests: None, ..limits.clone() });
    let full = plain.plans[0].throughput_tok_s / 64.0 / plain.plans[0].replicas as f64;
    let a = answered(&Request { rate_per_s: Some(full * 0.99), ..limits });
    let (t, m) = trials(&a)[0];
    assert!(!m.p99_holds && m.goodput.unwrap() < 1.0, "{t:?}");
    assert!(m.runs > 1 && m.runs <= 2 + RUNS);
    let needed = m.needed.expect("more replicas are enough");
    assert!(needed.headroom > m.headroom && needed.replicas > a.plans[0].replicas && needed.users.is_none());
}

#[test]
fn without_a_rate_as_many_users_come_as_are_in_flight() {
    let a = answered(&Request { ttft_ms: Some(1000.0.into()), tpot_ms: Some(30.0.into()), ..request() });
    for (p, (_, m)) in a.plans.iter().zip(trials(&a)) {
        let token = m.times[1].mean_ms;
        // Passes with prompts wait for their launches, which the steady state knows less of than the simulator.
        assert!((token / p.tpot_ms.value).ln().abs() < 0.25, "{token} simulated, {} in steady state", p.tpot_ms.value);
        assert!(m.needed.is_none_or(|n| n.users.is_some()));
    }
}

#[test]
fn the_same_bytes_on_any_number_of_threads_and_plans_as_without() {
    let r = Request { rate_per_s: Some(30.0), tpot_ms: Some(20.0.into()), ttft_ms: Some(200.0.into()), ..request() };
    let one = answered(&r);
    assert_eq!(one, answer_on(&rackmath_catalog::embedded(), &r, 4).unwrap());
    let other = answered(&Request { simulate_seed: Some(7), ..r.clone() });
    assert_ne!(one.simulated, other.simulated);
    let plain = answered(&Request { simulate: false, ..r });
    assert!(plain.simulated.is_none() && plain.plans == one.plans);
}

#[test]
fn lengths_that_vary_and_prompts_with_chips_of_their_own_are_simulated_too() {
    let draws = crate::plan::Draws { osl: Some("lognormal:mean=64,cv=0.8".into()), ..Default::default() };
    let r =
        Request { osl: None, draws, rate_per_s: Some(20.0), prefix_hit: Some(0.5), disaggregated: true, ..request() };
    let a = answered(&Request { top: 100, tpot_ms: Some(20.0.into()), ..r.clone() });
    let w = Worked::new(&rackmath_catalog::embedded(), &r, &1.into()).unwrap();
    let asked = Asked::new(&r).unwrap();
    let split = a.plans.iter().find(|p| p.prefill.is_some()).expect("some plan has two pools");
    let m = w.trial(&asked, split).unwrap();
    assert!(m.measured.as_ref().is_some_and(|m| m.times.len() == 3 && m.times[2].p99_ms > m.times[2].p50_ms), "{m:?}");
    assert!(trials(&a).iter().all(|(_, m)| m.times[2].p99_ms > 1.5 * m.times[2].p50_ms));
}

#[test]
fn what_cannot_be_simulated_says_why() {
    let r = Request { engines: vec!["sglang".into()], rate_per_s: Some(5.0), ..request() };
    let a = answered(&r);
    for t in &a.simulated.as_ref().unwrap().trials {
        assert!(t.measured.is_some() != (t.verdict.says == "trial_not"), "{t:?}");
    }
}

#[test]
fn a_simulation_can_be_cancelled() {
    let r = Request { rate_per_s: Some(30.0), simulate_requests: Some(20_000), ..request() };
    let catalog = rackmath_catalog::embedded();
    let checks = |r: &Request| {
        // How many checks an answer takes, found by halving.
        let done = |n: u64| answer_on(&catalog, r, Effort { threads: 1, cancel: Cancel::after(n) }).is_ok();
        let (mut low, mut high) = (0, 1 << 16);
        while high - low > 1 {
            let middle = u64::midpoint(low, high);
            if done(middle) { high = middle } else { low = middle }
        }
        high
    };
    let plain = checks(&Request { simulate: false, simulate_requests: None, ..r.clone() });
    // It is looked at between the plans and within each run.
    let effort = Effort { threads: 1, cancel: Cancel::after(plain + 10) };
    let cut = answer_on(&catalog, &r, effort);
    assert!(cut.is_err(), "cancelled within a run");
}
