//! Shards of a plan join into the answer of the whole, byte for byte.

use proptest::prelude::*;
use rackmath::Catalog;
use rackmath::plan::{Partial, Request, answer_on, merge, shard};
use rackmath::setting::Setting;
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(rackmath_catalog::embedded);

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// A shard as it comes back from a file.
fn read_back(part: &Partial) -> Partial {
    serde_json::from_str(&json(part)).unwrap()
}

fn request() -> impl Strategy<Value = Request> {
    let model = prop::sample::select(vec!["llama-3.1-8b", "qwen3-32b", "gpt-oss-20b"]);
    let on = prop::sample::select(vec!["4xh100", "8xh200", "2xb200,4xh100"]);
    let objective = prop::sample::select(vec!["cost", "chips", "energy", "latency", "throughput"]);
    // Limits from what nothing meets to what everything does.
    let limits = (
        prop::option::of(0.2..200.0_f64),
        prop::option::of(1.0..20_000.0_f64),
        prop::option::of(0.01..50.0_f64),
        prop::option::of(0.0..0.9_f64),
    );
    let prefill_on = prop::option::of(Just("2xa100-80gb".to_owned()));
    let lengths = (64.0..6000.0_f64, 2.0..900.0_f64);
    (model, on, objective, limits, lengths, any::<bool>(), 1..7_usize, prefill_on).prop_map(
        |(
            model,
            on,
            objective,
            (tpot_ms, ttft_ms, rate_per_s, headroom),
            (isl, osl),
            disaggregated,
            top,
            prefill_on,
        )| Request {
            setting: Setting { model: model.into(), on: on.into(), ..Setting::default() },
            objective: objective.into(),
            isl: Some(isl.floor()),
            osl: Some(osl.floor()),
            tpot_ms,
            ttft_ms,
            rate_per_s,
            cache_headroom: headroom,
            disaggregated,
            top,
            prefill_on,
            ..Request::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn shards_join_into_the_answer_of_the_whole(r in request(), n in 1..8_u64, threads in 1..4_usize, turn in 0..7_usize) {
        let whole = json(&answer_on(&CATALOG, &r, 1).unwrap());
        let mut parts: Vec<Partial> =
            (1..=n).map(|k| read_back(&shard(&CATALOG, &r, (k, n), threads).unwrap())).collect();
        parts.rotate_left(turn % n as usize);
        prop_assert_eq!(json(&merge(&CATALOG, &parts, threads).unwrap()), whole);
    }
}

fn small() -> Request {
    let setting = Setting { model: "llama-3.1-8b".into(), on: "4xh100".into(), ..Setting::default() };
    Request { setting, tpot_ms: Some(20.0), ..Request::default() }
}

fn refusal(parts: &[Partial]) -> String {
    merge(&CATALOG, parts, 1).unwrap_err().to_string()
}

#[test]
fn shards_that_are_not_one_plan_are_refused_by_name() {
    let of = |k, n| shard(&CATALOG, &small(), (k, n), 1).unwrap();
    let (a, b, c) = (of(1, 3), of(2, 3), of(3, 3));
    assert_eq!(refusal(&[]), "shards = none; expected every shard of a plan, once");
    assert_eq!(refusal(&[a.clone(), c.clone()]), "shards = 2 of 3; expected also shard 2");
    let twice = refusal(&[a.clone(), b.clone(), b.clone()]);
    assert_eq!(twice, "shards = shard 2 of 3 more than once; expected every shard once");
    assert!(refusal(&[a.clone(), of(2, 2)]).starts_with("shards = shard 2 of 2; expected shards of 3"));
    let other = Partial { request: Request { tpot_ms: Some(21.0), ..small() }, ..b.clone() };
    assert!(refusal(&[a.clone(), other, c.clone()]).starts_with("shards = shard 2 of 3, of another request"));
    let old = Partial { fingerprint: "0".into(), ..c.clone() };
    assert!(refusal(&[a.clone(), b.clone(), old]).starts_with("shards = shard 3 of another space"));
    let mut wild = b;
    wild.top.push(u64::MAX);
    assert!(refusal(&[a, wild, c]).contains("shard 2 with configuration 18446744073709551615"));
}

#[test]
fn a_shard_outside_of_its_number_is_refused() {
    for wrong in [(0, 3), (4, 3), (1, 0), (1, 2_000_000)] {
        let error = shard(&CATALOG, &small(), wrong, 1).unwrap_err().to_string();
        assert!(error.contains("1/4"), "{error}");
    }
}
