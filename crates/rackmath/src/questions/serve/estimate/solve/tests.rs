//! Solutions against brute force: the plain page asked at one whole number after another.

use super::super::answer as plain;
use super::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Numbers that brute force looks at, at most.
const MOST_ASKED: f64 = 1_000.0;
/// All of them in an optimised build: `cargo test --release -p rackmath --lib solutions_equal`.
const SETTINGS: usize = if cfg!(debug_assertions) { 24 } else { 200 };

fn on(model: &str, machine: &str) -> Request {
    let setting = Setting { model: model.into(), on: machine.into(), ..Setting::default() };
    Request { setting, changes: false, ..Request::default() }
}

fn seeking(request: Request, unknown: Unknown) -> Request {
    Request { seek: Seek { solve: Some(unknown), ..request.seek }, ..request }
}

/// Whether a page says that its targets are met, and that nobody waits unless one says how long.
fn page_meets(request: &Request, page: &Answer) -> bool {
    let patient = request.ttft_ms.is_some() || request.e2e_ms.is_some();
    page.problem.is_none()
        && page
            .served
            .as_ref()
            .is_some_and(|s| s.slo.as_ref().is_none_or(|slo| slo.met) && (patient || s.waiting <= 0.0))
}

/// The largest of which every smaller one meets the targets: a prepared deployment asked at one number after another.
fn brute(catalog: &Catalog, request: &Request, unknown: Unknown) -> f64 {
    let first = if unknown == Unknown::Context { Request { isl: 1.0, ..request.clone() } } else { request.clone() };
    let case = Case::new(catalog, &first).unwrap();
    let mut serving = case.ready(&case.ask).unwrap();
    let (mut requests, mut load) = (case.ask.requests, case.ask.load);
    let within = |value: f64, limit: Option<AtMost>| limit.is_none_or(|l| value * 1e3 <= l.ms);
    let patient = request.ttft_ms.is_some() || request.e2e_ms.is_some();
    let mut k = 0.0;
    while k < MOST_ASKED {
        let next = k + 1.0;
        if unknown == Unknown::Context {
            requests.input = next;
            serving.measure(&requests);
        } else {
            load = Loading::Concurrency(next);
        }
        let o = serving.under(&requests, load);
        let times = within(o.queue + o.ttft, request.ttft_ms) && within(o.tpot(), request.tpot_ms);
        if !o.serves() || !times || !within(o.e2e(&requests), request.e2e_ms) || !(patient || o.steady.waiting <= 0.0) {
            break;
        }
        k = next;
    }
    k
}

/// A model, a machine, an engine, a layout, lengths and targets at random.
fn settings() -> impl Strategy<Value = (Request, Unknown)> {
    let model = prop::sample::select(vec![
        "llama-3.1-8b",
        "qwen3-32b",
        "gpt-oss-20b",
        "gpt-oss-120b",
        "qwen3-30b-a3b",
        "gemma-3-27b",
        "deepseek-v3",
        "mixtral-8x7b",
    ]);
    let machine = prop::sample::select(vec![
        "h100", "2xh100", "8xh100", "8xh200", "l40s", "4xa100", "mi300x", "b200", "rtx-4090",
    ]);
    let engine = prop::sample::select(vec!["vllm", "vllm@0.8.0", "sglang", "trtllm", "ideal"]);
    let layout = (prop::sample::select(vec![0u64, 1, 2, 4, 8]), prop::sample::select(vec![1u64, 1, 2, 4]));
    let lengths = (400.0..6_000.0_f64, 2.0..1_500.0_f64, prop::sample::select(vec![0.0, 0.0, 0.5, 0.9]));
    let targets = (
        prop::option::of(20.0..20_000.0_f64),
        prop::option::weighted(0.8, 3.0..60.0_f64),
        prop::option::of(500.0..60_000.0_f64),
    );
    let more = (any::<bool>(), prop::sample::select(vec![None, None, None, Some(2048.0)]), 0..4u8, 1..64u32);
    (model, machine, engine, layout, lengths, targets, more).prop_map(
        |(model, machine, engine, (tp, dp), (isl, osl, prefix_hit), (ttft, tpot, e2e), (apart, chunk, which, load))| {
            let mut r = on(model, machine);
            r.engine = engine.into();
            if tp > 0 {
                r.degrees = DegreesRequest { tp: Some(tp), dp: Some(dp), ..DegreesRequest::default() };
            }
            (r.isl, r.osl, r.prefix_hit) = (isl.round(), osl.round(), prefix_hit);
            (r.ttft_ms, r.tpot_ms, r.e2e_ms) = (ttft.map(Into::into), tpot.map(Into::into), e2e.map(Into::into));
            r.max_num_batched_tokens = chunk;
            // Each of these is a balance of two pools: a few will do.
            if apart && which == 0 && load <= 12 {
                r.disaggregated = Some(super::super::Disaggregated::default());
            }
            if which == 1 {
                r.concurrency = Some(f64::from(load));
                // Short enough to be asked token by token.
                r.ttft_ms = Some((10.0 + ttft.unwrap_or(0.0) / 200.0).into());
                return (r, Unknown::Context);
            }
            (r, Unknown::Concurrency)
        },
    )
}

#[test]
fn solutions_equal_brute_force_on_200_random_settings() {
    let catalog = rackmath_catalog::embedded();
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &[16; 32]));
    let (mut asked, mut solved, mut none, mut contexts, mut beyond) = (0, 0, 0, 0, 0);
    while asked < SETTINGS {
        let (request, unknown) = settings().new_tree(&mut runner).unwrap().current();
        // What no engine runs, and layouts that cannot be, have nothing to solve.
        let Ok(page) = answer(&catalog, &request, unknown, &Effort::default()) else { continue };
        let Some(found) = page.solved.clone() else { continue };
        asked += 1;
        contexts += usize::from(unknown == Unknown::Context);
        let fixed = Case::new(&catalog, &request).unwrap();
        let usual = plain_of(&request, &fixed, Unknown::Machine, 1.0);
        let fixed = Search::new(fixed, unknown, &Effort::default()).unwrap().with_pools(usual);
        let k = brute(&catalog, &fixed, unknown);
        let value = found.value.unwrap_or(0.0);
        let most = fixed_most(&catalog, &fixed, unknown);
        if k >= MOST_ASKED.min(most) {
            beyond += 1;
            assert!(value >= k, "{unknown:?} {request:?}: {value} where all up to {k} meet");
            continue;
        }
        assert_eq!(value, k, "{unknown:?} {request:?}: {:?}", found.verdict);
        if found.value.is_some() {
            solved += 1;
        } else {
            none += 1;
        }
        // The page is that of the solution, and both sides of it are pages as anyone can ask for.
        let page_at = |at: f64| {
            let one = plain_of(&fixed, &Case::new(&catalog, &fixed).unwrap(), unknown, at);
            page_meets(&one, &plain(&catalog, &one).unwrap())
        };
        if asked % 8 == 0 {
            assert!(value < 1.0 || page_at(value), "{request:?}");
            assert!(!page_at(value + 1.0), "{request:?}");
        }
        assert_eq!(found.next.is_some(), found.value.is_some());
        assert!(found.binds.is_some(), "{request:?}");
    }
    // The settings are worth asking.
    assert!(
        solved > SETTINGS * 2 / 5 && none > SETTINGS / 20 && contexts > SETTINGS / 10,
        "{solved} solved, {none} not, {contexts} contexts, {beyond} beyond"
    );
}

/// Where a search ends: the model's positions.
fn fixed_most(catalog: &Catalog, request: &Request, unknown: Unknown) -> f64 {
    let case = Case::new(catalog, request).unwrap();
    let positions = case.ask.on.model.shape().and_then(|s| s.context_max).map(|n| n as f64 - request.osl);
    if unknown == Unknown::Context { positions.unwrap_or(MOST) } else { MOST }
}

#[test]
fn rates_and_users_meet_the_targets_and_a_step_more_does_not() {
    let catalog = rackmath_catalog::embedded();
    let limit = |text: &str| Some(text.parse::<AtMost>().unwrap());
    let base = Request { isl: 800.0, osl: 100.0, ..on("llama-3.1-8b", "l40s") };
    for (request, unknown) in [
        (Request { tpot_ms: limit("40ms"), ttft_ms: limit("1s"), ..base.clone() }, Unknown::Rate),
        (Request { ttft_ms: limit("p90=400ms"), ..base.clone() }, Unknown::Rate),
        (
            Request { e2e_ms: limit("p99=6s"), seek: Seek { think_s: Some(20.0), ..Seek::default() }, ..base.clone() },
            Unknown::Users,
        ),
        (Request { tpot_ms: limit("p90=45ms"), ..base.clone() }, Unknown::Concurrency),
    ] {
        let page = super::super::answer(&catalog, &seeking(request.clone(), unknown)).unwrap();
        let s = page.solved.clone().unwrap();
        let (value, next) = (s.value.unwrap(), s.next.clone().unwrap());
        assert!(s.at.as_ref().unwrap().meets && !next.meets && (next.at - value - s.step).abs() < 1e-9, "{s:?}");
        // A hundredth of what is found, or one.
        assert!(s.step <= (value * 0.05).max(1.0), "{s:?}");
        let case = Case::new(&catalog, &request);
        let Ok(case) = case else { continue };
        for (at, meets) in [(value, true), (next.at, false)] {
            let one = plain_of(&request, &case, unknown, at);
            assert_eq!(page_meets(&one, &plain(&catalog, &one).unwrap()), meets, "{unknown:?} {at}");
        }
    }
}

#[test]
fn users_in_flight_follow_the_response_time_law() {
    let catalog = rackmath_catalog::embedded();
    let seek = Seek { users: Some(40.0), think_s: Some(10.0), solve: None };
    let page = plain(&catalog, &Request { seek, osl: 200.0, ..on("llama-3.1-8b", "h100") }).unwrap();
    let s = page.served.unwrap();
    // N = X (R + Z), of means that were simulated.
    let users = s.requests_per_s.value * (s.e2e_ms.unwrap().value / 1e3 + 10.0);
    assert!((users - 40.0).abs() < 1e-6 && s.running < 40.0, "{users} {}", s.running);
    // Users who do not think are a concurrency, met at once.
    let all = Seek { users: Some(8.0), ..Seek::default() };
    let [users, flight] = [
        Request { seek: all, ..on("llama-3.1-8b", "h100") },
        Request { concurrency: Some(8.0), ..on("llama-3.1-8b", "h100") },
    ]
    .map(|r| plain(&catalog, &r).unwrap().served.unwrap().tpot_ms.value);
    assert!((users / flight - 1.0).abs() < 0.05, "{users} {flight}");
}

#[test]
fn the_cheapest_machine_is_the_first_by_price_that_meets() {
    let catalog = rackmath_catalog::embedded();
    let limit = |ms: f64| Some(ms.into());
    let list = ["8xh200", "h100", "2xh100", "l40s", "2xl40s", "4xh100"];
    let request = Request {
        tpot_ms: limit(20.0),
        ttft_ms: limit(1000.0),
        concurrency: Some(32.0),
        ..on("qwen3-32b", &list.join(","))
    };
    let page = super::super::answer(&catalog, &seeking(request.clone(), Unknown::Machine)).unwrap();
    let s = page.solved.unwrap();
    assert_eq!(s.machines.len(), list.len());
    assert!(s.machines.windows(2).all(|two| two[0].usd_per_hour <= two[1].usd_per_hour));
    let chosen = &s.machines[s.value.unwrap() as usize];
    assert!(chosen.point.meets && s.machines[..s.value.unwrap() as usize].iter().all(|m| !m.point.meets));
    assert_eq!(page.system, chosen.machine);
    let alone = plain(
        &catalog,
        &Request { setting: Setting { on: chosen.on.clone(), ..request.setting.clone() }, ..request.clone() },
    );
    assert!(page_meets(&request, &alone.unwrap()), "{}", chosen.on);
    let none = Request { tpot_ms: limit(0.5), ..request };
    let s = super::super::answer(&catalog, &seeking(none, Unknown::Machine)).unwrap().solved.unwrap();
    assert!(s.value.is_none() && s.verdict.says == "solved_machine_none" && !s.at.unwrap().misses.is_empty());
}

/// The last token of an answer is in the cache as the first of the prompt is: together they are as long as it.
#[test]
fn the_longest_prompt_leaves_room_for_all_of_the_answer() {
    let catalog = rackmath_catalog::embedded();
    for (model, machine, osl) in [("llama-3.1-8b", "l4", 8000.0), ("llama-3.1-8b", "l4", 64.0), ("qwen3-8b", "l4", 2e3)]
    {
        let asked = Request { concurrency: Some(1.0), osl, ..on(model, machine) };
        let solved = super::super::answer(&catalog, &seeking(asked.clone(), Unknown::Context)).unwrap().solved.unwrap();
        let isl = solved.value.unwrap();
        let case = Case::new(&catalog, &asked).unwrap();
        let least = case.ask.on.least(&case.ask.requests, case.ask.on.engine.schedule.chunk);
        let longest = rackmath_theory::placement::longest_context(&case.ask.on, &least).unwrap();
        assert_eq!(isl + osl, longest.floor(), "{model} {osl}");
        // A token more is no answer with a speed.
        let page = plain(&catalog, &Request { isl: isl + 1.0, ..asked.clone() }).unwrap();
        assert!(page.served.is_none() && page.problem.is_some_and(|p| p.what.says == "request_too_long"));
        assert!(plain(&catalog, &Request { isl, ..asked }).unwrap().served.is_some());
    }
}

#[test]
fn what_cannot_be_solved_says_what_would_do() {
    let catalog = rackmath_catalog::embedded();
    let refused = |r: Request, unknown| super::super::answer(&catalog, &seeking(r, unknown)).unwrap_err().to_string();
    let base = || on("llama-3.1-8b", "h100");
    let both = refused(Request { concurrency: Some(3.0), ..base() }, Unknown::Concurrency);
    assert!(both.contains("is what is looked for"), "{both}");
    let think = Seek { think_s: Some(3.0), ..Seek::default() };
    assert!(refused(Request { seek: think, ..base() }, Unknown::Rate).contains("--solve users"));
    assert!(refused(on("llama-3.1-8b", "h100,h1oo"), Unknown::Machine).contains("h1oo"));
    // What does not fit, or is too slow alone, has no solution; what is missing is said.
    let large = super::super::answer(&catalog, &seeking(on("llama-3.1-405b", "h100"), Unknown::Concurrency)).unwrap();
    let s = large.solved.unwrap();
    assert!(s.value.is_none() && s.at.unwrap().misses[0].says == "solve_no_room" && large.problem.is_some());
    let slow = Request { tpot_ms: Some(1.0.into()), ..base() };
    let s = super::super::answer(&catalog, &seeking(slow, Unknown::Concurrency)).unwrap().solved.unwrap();
    assert!(s.value.is_none() && s.binds.is_some_and(|b| b.says == "tpot_name"));
}

/// An eighth of 14 is no whole number: halving between two that are not whole never ended.
#[test]
fn a_search_that_strides_by_eighths_ends() {
    let setting = Setting { model: "qwen3-8b".into(), on: "l4".into(), ..Setting::default() };
    let seek = Seek { solve: Some(Unknown::Concurrency), ..Seek::default() };
    let limits = (Some(2000.0.into()), Some(100.0.into()));
    let asked = Request { setting, seek, ttft_ms: limits.0, tpot_ms: limits.1, changes: false, ..Request::default() };
    let a = super::super::answer(&rackmath_catalog::embedded(), &asked).unwrap();
    assert!(a.solved.unwrap().value.is_some_and(|n| n >= 1.0 && n.fract() == 0.0));
}
