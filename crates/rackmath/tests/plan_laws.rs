//! What must hold for every plan: looking at everything finds nothing better, more freedom is never worse, and shards of it
//! join into the answer of the whole, byte for byte.

use proptest::prelude::*;
use rackmath::Catalog;
use rackmath::limit::AtMost;
use rackmath::plan::{Answer, Best, Partial, Request, Steps, answer_on, merge, shard, space};
use rackmath::setting::Setting;
use rackmath_theory::plan::{Ranked, search_all};
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(rackmath_catalog::embedded);

const OBJECTIVES: [Best; 5] = [Best::Cost, Best::Chips, Best::Energy, Best::Latency, Best::Throughput];

fn request() -> impl Strategy<Value = Request> {
    let model = prop::sample::select(vec!["llama-3.1-8b", "qwen3-8b", "mistral-7b-v0.3"]);
    let on = prop::sample::select(vec!["2xh100", "3xh200", "4xa100-80gb", "6xh100", "2xb200,4xh100"]);
    let prefill_on = prop::option::of(prop::sample::select(vec!["2xh100", "3xa100-80gb"]));
    // Limits from what nothing meets to what everything does.
    let limits = (
        prop::option::of(0.2..200.0_f64),
        prop::option::of(1.0..20_000.0_f64),
        prop::option::of(0.01..50.0_f64),
        prop::option::of(2.0..40.0_f64),
        prop::option::of(0.0..0.9_f64),
    );
    let degrees = prop::sample::select(vec![Steps::Powers, Steps::Any]);
    let words = (model, on, prefill_on, degrees, prop::sample::select(OBJECTIVES.to_vec()));
    let lengths = (64.0..6000.0_f64, 2.0..900.0_f64);
    (words, limits, lengths, any::<bool>(), 1..7_u64).prop_map(|(words, limits, (isl, osl), disaggregated, top)| {
        let (model, on, prefill_on, degrees, objective) = words;
        let (tpot_ms, ttft_ms, rate_per_s, budget_usd_per_hour, cache_headroom) = limits;
        Request {
            setting: Setting { model: model.into(), on: on.into(), ..Setting::default() },
            prefill_on: prefill_on.map(str::to_owned),
            degrees,
            objective,
            isl: Some(isl.floor()),
            osl: Some(osl.floor()),
            tpot_ms: tpot_ms.map(Into::into),
            ttft_ms: ttft_ms.map(Into::into),
            rate_per_s,
            budget_usd_per_hour,
            cache_headroom,
            disaggregated,
            top,
            ..Request::default()
        }
    })
}

fn asked(r: &Request) -> Answer {
    answer_on(&CATALOG, r, 1).unwrap()
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// A shard as it comes back from a file.
fn read_back(part: &Partial) -> Partial {
    serde_json::from_str(&json(part)).unwrap()
}

/// The best score of the search, by means; less is better, and what cannot be is worst of all.
fn score(r: &Request) -> f64 {
    let (space, q) = space(&CATALOG, r, 1).unwrap();
    let best = search_all(&space, &q, &1.into()).unwrap().top.first().copied();
    best.map_or(f64::INFINITY, |b| q.objective.score(&b.estimate))
}

/// Rounding of what is shown.
fn at_most(after: f64, before: f64) -> bool {
    after <= before + before.abs() * 1e-9 || before == f64::INFINITY
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn looking_at_everything_finds_nothing_better(r in request()) {
        let (space, q) = space(&CATALOG, &r, 1).unwrap();
        let found = search_all(&space, &q, &2.into()).unwrap();
        let mut best: Option<Ranked> = None;
        let mut front: Vec<(f64, f64)> = found.frontier.iter().map(|r| q.point(&r.estimate)).collect();
        front.sort_by(|a, b| a.0.total_cmp(&b.0));
        for index in 0..space.len() {
            let Some(estimate) = space.estimate(index, q.output, q.traffic) else { continue };
            let one = Ranked { index, family: space.family(index), estimate };
            if q.limits.broken(&estimate) == 0 {
                // What meets the limits is on the frontier or below it.
                let (x, y) = q.point(&estimate);
                let above = front.partition_point(|p| p.0 < x);
                prop_assert!(front[above..].iter().any(|p| p.1 >= y), "{index}");
                if best.as_ref().is_none_or(|b| q.order(&one, b).is_lt()) {
                    best = Some(one);
                }
            }
        }
        prop_assert_eq!(found.top.first().copied(), best);
        prop_assert!(front.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 > w[1].1));
    }

    #[test]
    fn looser_limits_and_larger_budgets_are_never_worse(r in request(), by in 1.0..3.0_f64) {
        let before = score(&r);
        let times = |x: Option<f64>| x.map(|x| x * by);
        let longer = |x: Option<AtMost>| x.map(|x| (x.ms * by).into());
        for loose in [
            Request { tpot_ms: longer(r.tpot_ms), ..r.clone() },
            Request { ttft_ms: longer(r.ttft_ms), ..r.clone() },
            Request { budget_usd_per_hour: times(r.budget_usd_per_hour), ..r.clone() },
        ] {
            let after = score(&loose);
            prop_assert!(at_most(after, before), "{before} -> {after}");
        }
    }

    #[test]
    fn more_hardware_on_offer_is_never_worse(r in request(), more in prop::sample::select(vec!["2xh200", "5xh100", "h200"])) {
        let before = score(&r);
        let mut wider = r.clone();
        wider.setting.on = format!("{},{more}", r.setting.on);
        let after = score(&wider);
        prop_assert!(at_most(after, before), "{more}: {before} -> {after}");
        let prompts = Request { prefill_on: Some(r.prefill_on.map_or(more.into(), |p| format!("{p},{more}"))), ..r };
        let after = score(&prompts);
        prop_assert!(at_most(after, before), "prompts on {more}: {before} -> {after}");
    }

    #[test]
    fn more_chips_of_a_kind_and_more_degrees_are_never_worse(r in request(), n in 2..9_u64) {
        let with = |chips: u64, degrees: Steps| {
            let setting = Setting { on: format!("{chips}xh100"), ..r.setting.clone() };
            score(&Request { setting, prefill_on: None, degrees, ..r.clone() })
        };
        // Hosts of eight are bought whole: a third one filled in part may cost more for each token than two full ones.
        let (few, many) = (with(8, Steps::Powers), with(16, Steps::Powers));
        prop_assert!(at_most(many, few), "{few} -> {many}");
        let (few, any) = (with(n, Steps::Powers), with(n, Steps::Any));
        prop_assert!(at_most(any, few), "{few} -> {any}");
    }

    #[test]
    fn shards_join_into_the_answer_of_the_whole(r in request(), n in 1..8_u64, threads in 1..4_usize, turn in 0..7_usize) {
        let whole = json(&answer_on(&CATALOG, &r, 1).unwrap());
        let mut parts: Vec<Partial> =
            (1..=n).map(|k| read_back(&shard(&CATALOG, &r, (k, n), threads).unwrap())).collect();
        parts.rotate_left(turn % n as usize);
        prop_assert_eq!(json(&merge(&CATALOG, &parts, threads).unwrap()), whole);
    }
}

#[test]
fn prompts_on_other_chips_keep_within_the_chips_of_each() {
    let setting = Setting { model: "qwen3-32b".into(), on: "4xh200".into(), ..Setting::default() };
    let r = Request {
        setting,
        prefill_on: Some("6xh100".into()),
        isl: Some(8000.0),
        osl: Some(200.0),
        ttft_ms: Some(1500.0.into()),
        tpot_ms: Some(15.0.into()),
        objective: Best::Throughput,
        top: 20,
        ..Request::default()
    };
    let a = asked(&r);
    let mut crossed = 0;
    for p in a.plans.iter().filter(|p| p.prefill.as_ref().is_some_and(|pool| pool.system != p.system)) {
        let pool = p.prefill.as_ref().unwrap();
        let prompts = pool.chips * pool.instances * p.replicas;
        assert!(prompts <= 6 && p.replicas * p.chips_per_replica - prompts <= 4, "{:?}", p.deployment);
        assert!(p.deployment.with["prefill_on"] == "h100-sxm".into(), "{:?}", p.deployment);
        crossed += 1;
    }
    assert!(crossed > 0);
    // Ten chips serve more than four.
    let alone = asked(&Request { prefill_on: None, ..r });
    assert!(a.plans[0].throughput_tok_s > alone.plans[0].throughput_tok_s);
}

#[test]
fn machines_that_offer_different_numbers_are_each_kept_to() {
    let setting = Setting { model: "llama-3.1-8b".into(), on: "8xh100,3xh200".into(), ..Setting::default() };
    let r = Request { setting, objective: Best::Throughput, disaggregated: false, top: 50, ..Request::default() };
    for p in asked(&r).plans {
        let most = if p.system.contains("H200") { 3 } else { 8 };
        assert!(p.chips <= most, "{:?} takes {}", p.deployment, p.chips);
    }
}

fn small() -> Request {
    let setting = Setting { model: "llama-3.1-8b".into(), on: "4xh100".into(), ..Setting::default() };
    Request { setting, tpot_ms: Some(20.0.into()), ..Request::default() }
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
    let other = Partial { request: Request { tpot_ms: Some(21.0.into()), ..small() }, ..b.clone() };
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

/// Configurations drawn of each setting.
const DRAWN: usize = 10_000;

/// Model, machine, engine, objective; milliseconds of a token and of the first, requests a second.
type Asked = (&'static str, &'static str, &'static str, Best, [Option<f64>; 3]);

#[rustfmt::skip] // a table
const SETTINGS: [Asked; 20] = [
    ("llama-3.1-8b", "8xh100", "vllm", Best::Cost, [Some(20.0), Some(500.0), Some(20.0)]),
    ("llama-3.1-8b", "6xa100-80gb", "sglang", Best::Throughput, [Some(30.0), None, None]),
    ("llama-3.1-8b", "4xl40s", "vllm", Best::Latency, [None, None, Some(2.0)]),
    ("llama-3.1-70b", "16xh100", "trtllm", Best::Cost, [Some(40.0), Some(2000.0), None]),
    ("llama-3.1-70b", "24xh200", "vllm", Best::Chips, [Some(25.0), None, Some(8.0)]),
    ("llama-3.1-405b", "16xh200", "sglang", Best::Energy, [Some(60.0), None, None]),
    ("qwen3-32b", "32xh200", "vllm", Best::Cost, [Some(30.0), Some(1000.0), Some(20.0)]),
    ("qwen3-32b", "12xh100", "trtllm", Best::Throughput, [Some(25.0), Some(1500.0), None]),
    ("qwen2.5-72b", "8xmi300x", "vllm", Best::Cost, [Some(50.0), None, Some(3.0)]),
    ("qwen3-8b", "5xh100", "vllm", Best::Throughput, [None, Some(300.0), None]),
    ("mixtral-8x7b", "8xh100", "vllm", Best::Cost, [Some(20.0), None, None]),
    ("mixtral-8x22b", "12xh200", "sglang", Best::Latency, [None, None, Some(4.0)]),
    ("qwen3-30b-a3b", "6xh100", "vllm", Best::Cost, [Some(15.0), Some(800.0), Some(10.0)]),
    ("qwen3-235b-a22b", "24xh200", "sglang", Best::Throughput, [Some(40.0), None, None]),
    ("gpt-oss-120b", "8xh100", "vllm", Best::Chips, [Some(12.0), None, Some(10.0)]),
    ("gpt-oss-120b", "12xb200", "trtllm", Best::Cost, [Some(10.0), None, None]),
    ("deepseek-v3", "32xh200", "sglang", Best::Cost, [Some(50.0), Some(3000.0), Some(10.0)]),
    ("deepseek-v3", "48xh200", "vllm", Best::Throughput, [Some(40.0), None, None]),
    ("kimi-k2", "32xb200", "sglang", Best::Energy, [Some(50.0), None, None]),
    ("llama-4-scout", "6xh200", "vllm", Best::Cost, [Some(30.0), None, Some(5.0)]),
];

fn setting((model, on, engine, objective, [tpot, ttft, rate]): Asked) -> Request {
    Request {
        setting: Setting { model: model.into(), on: on.into(), ..Setting::default() },
        engines: vec![engine.into()],
        objective,
        tpot_ms: tpot.map(Into::into),
        ttft_ms: ttft.map(Into::into),
        rate_per_s: rate,
        ..Request::default()
    }
}

/// A stream of numbers: xorshift.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides.max(1)
    }
}

#[test]
fn ten_thousand_random_configurations_of_each_setting_never_beat_the_plan() {
    let mut met = 0;
    for (at, asked) in SETTINGS.into_iter().enumerate() {
        let r = setting(asked);
        assert_eq!(r.degrees, Steps::Any);
        let (space, q) = space(&CATALOG, &r, 2).unwrap();
        let best = search_all(&space, &q, &2.into()).unwrap().top.first().copied();
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (at as u64 + 1));
        let mut drawn = 0;
        // Some numbers stand for nothing: they are drawn again.
        for _ in 0..40 * DRAWN {
            let index = dice.roll(space.len());
            let Some(estimate) = space.estimate(index, q.output, q.traffic) else { continue };
            drawn += 1;
            if q.limits.broken(&estimate) == 0 {
                met += 1;
                let one = Ranked { index, family: space.family(index), estimate };
                assert!(best.is_some_and(|best| !q.order(&one, &best).is_lt()), "{asked:?}: {index}");
            }
            if drawn == DRAWN {
                break;
            }
        }
        assert!(drawn == DRAWN || space.len() < 40 * DRAWN as u64, "{asked:?}: {drawn} of {}", space.len());
    }
    assert!(met > 1000, "only {met} of those drawn meet the limits");
}

#[test]
fn random_legal_layouts_asked_for_by_their_degrees_never_beat_the_plan() {
    use rackmath::layout::DegreesRequest;
    use rackmath_spec::file::flags::{Tool, print};
    use rackmath_spec::layout::Degrees;
    use rackmath_theory::layout::check;
    let mut dice = Dice(7);
    for asked in SETTINGS {
        let r = Request { disaggregated: false, ..setting(asked) };
        let best = score(&r);
        let (model, system) = (CATALOG.model(asked.0).unwrap(), CATALOG.system(asked.1).unwrap());
        let tool: Tool = asked.2.parse().unwrap();
        let moe = model.shape().is_some_and(|s| s.moe().is_some());
        let mut tried: Vec<Degrees> = Vec::new();
        for _ in 0..DRAWN {
            let mut any = |most: u64| 1 + dice.roll(most);
            let (tp, pp, dp) = (any(8), any(8), if moe { any(system.n_chips) } else { 1 });
            let ep = if moe { any(tp * dp) } else { 1 };
            if !(tp * dp).is_multiple_of(ep) {
                continue;
            }
            let degrees = Degrees { tp, pp, dp, ep, etp: tp * dp / ep, ..Degrees::default() };
            let Ok(layout) = rackmath_spec::Layout::new(degrees) else { continue };
            if check(&model, &system, &layout).is_ok() && print(tool, &layout).is_ok() && !tried.contains(&degrees) {
                tried.push(degrees);
            }
        }
        // Each by the plan of its degrees alone; of many, some.
        assert!(!tried.is_empty(), "{asked:?}");
        for d in tried.iter().step_by(tried.len().div_ceil(12)) {
            let [tp, pp, dp, ep, etp] = [d.tp, d.pp, d.dp, d.ep, d.etp].map(Some);
            let fixed = DegreesRequest { tp, pp, dp, ep, etp, ..DegreesRequest::default() };
            let one = score(&Request { fixed, ..r.clone() });
            assert!(at_most(best, one), "{asked:?} {d:?}: {best} against {one}");
        }
    }
}
