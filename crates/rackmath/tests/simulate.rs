//! Runs against the steady state of the same deployment, and the same bytes whichever way a run goes.

use rackmath::layout::DegreesRequest;
use rackmath::simulate::{
    Answer, Class, Flags, Fleet, Mishaps, Reason, Replayed, Request, Router, Scaling, Sglang, Tiers, Traffic, Trtllm,
    Waits, What, answer_on,
};
use rackmath::{estimate, setting::Setting};
use rackmath_theory::deployment::{Deployment, Ready};
use rackmath_theory::pass::KernelSet;
use rackmath_theory::timer::{Chunk, Part, StepTimer, Work};
use rackmath_units::{Effort, Seconds};

fn setting() -> Setting {
    Setting { model: "llama-3.1-8b".into(), on: "1xh200".into(), ..Setting::default() }
}

fn request(traffic: Traffic) -> Request {
    Request { setting: setting(), traffic, ..Request::default() }
}

fn asked(request: &Request) -> Answer {
    answer_on(&rackmath_catalog::embedded(), request, &Effort::default()).unwrap()
}

fn steady(concurrency: Option<f64>, isl: f64, osl: f64) -> estimate::Served {
    let request = estimate::Request {
        setting: setting(),
        concurrency,
        rate_per_s: concurrency.is_none().then_some(0.001),
        isl,
        osl,
        changes: false,
        ..estimate::Request::default()
    };
    estimate::answer(&rackmath_catalog::embedded(), &request).unwrap().served.unwrap()
}

fn mean(answer: &Answer, what: What) -> f64 {
    answer.metrics.iter().find(|m| m.metric == what).unwrap().mean_ms
}

fn near(found: f64, expected: f64, share: f64, case: &str) {
    assert!((found / expected - 1.0).abs() <= share, "{case}: {found}, steady {expected}");
}

/// A request that nobody disturbs: its first token, and the mean of its steps, in milliseconds. The host prepares a chunk
/// before the chips begin it and chooses the next once it is launched; chips go from chunk to chunk.
fn alone(isl: u32, osl: u32) -> (f64, f64) {
    let catalog = &rackmath_catalog::embedded();
    let on = Deployment::named(catalog, "llama-3.1-8b", "hgx-h200", "vllm").unwrap();
    let ready = Ready::new(&KernelSet::of(catalog).unwrap(), on).unwrap();
    let (engine, timer) = (&ready.deployment.engine, &*ready.pass);
    let ms = |s: Seconds| s.get() * 1e3;
    let (most, mut past, mut hand) = (engine.schedule.chunk as u32, 0, 0.0);
    let (mut now, mut end) = (0.0, 0.0_f64);
    while past < isl {
        let tokens = most.min(isl - past);
        let work = Work::default().with(Chunk { tokens: f64::from(tokens), prompts: 1.0, past: f64::from(past) });
        let (cost, host) = (timer.time(&work).unwrap(), timer.host(&work));
        let (before, launched) = (end, now + ms(host.launch));
        end = (end.max(now + ms(host.prepare)) + ms(cost.time()) - ms(cost.part(Part::Host))).max(launched);
        now = before.max(launched) + ms(host.choose);
        hand = ms(host.hand);
        past += tokens;
    }
    let first = end.max(now + ms(timer.host(&Work::decode(1.0, 1.0)).prepare));
    let steps = (0..osl - 1).map(|k| ms(timer.time(&Work::decode(1.0, f64::from(isl + k))).unwrap().time()));
    (first + hand + ms(engine.overhead.request), steps.sum::<f64>() / f64::from(osl - 1))
}

#[test]
fn at_vanishing_load_a_request_takes_its_chunks_and_its_steps() {
    for (isl, osl) in [(512, 512), (6000, 100), (40_000, 50)] {
        let lengths = Traffic { isl: isl.into(), osl: osl.into(), ..Traffic::default() };
        let run = asked(&request(Traffic { rate_per_s: Some(0.001), cv: 0.0, requests: 20, ..lengths }));
        let (ttft, tpot) = alone(isl, osl);
        assert_eq!(mean(&run, What::Queue), 0.0, "nobody waits");
        near(mean(&run, What::Ttft), ttft, 1e-6, &format!("first token of {isl}"));
        // Steps are on straight lines between contexts.
        near(mean(&run, What::Tpot), tpot, 1e-3, &format!("tokens after {isl}"));
    }
}

/// The steady state counts steps under way before the first token, which an empty server has not.
#[test]
fn at_vanishing_load_a_run_is_the_steady_state() {
    let (isl, osl) = (512.0, 512.0);
    let t = Traffic { rate_per_s: Some(0.001), cv: 0.0, requests: 20, isl, osl, ..Traffic::default() };
    let (run, expected) = (asked(&request(t)), steady(None, isl, osl));
    let tpot = expected.tpot_ms.value;
    near(mean(&run, What::Tpot), tpot, 0.02, "tokens");
    let (ttft, most) = (mean(&run, What::Ttft), expected.ttft_ms.unwrap().value);
    assert!(ttft <= most && most <= ttft + 4.0 * tpot, "first token: {ttft}, steady {most}");
}

/// A prompt of many chunks: each sees those before it, and no token is counted twice.
#[test]
fn a_long_prompt_takes_its_chunks_in_both() {
    for isl in [32_768.0, 122_880.0] {
        let t = Traffic { rate_per_s: Some(0.001), cv: 0.0, requests: 20, isl, osl: 16.0, ..Traffic::default() };
        let (run, expected) = (asked(&request(t)), steady(None, isl, 16.0));
        near(mean(&run, What::Ttft), expected.ttft_ms.unwrap().value, 0.07, "first token");
    }
}

/// Lengths vary a little, so that requests do not all begin and end together.
#[test]
fn a_long_closed_loop_is_near_the_steady_state() {
    for users in [8_u64, 32, 128] {
        let (isl, osl) = (512.0, 256.0);
        let t = Traffic { users: Some(users), isl, osl, isl_sigma: 0.3, osl_sigma: 0.3, ..Traffic::default() };
        let run = asked(&request(Traffic { requests: 20_000, ..t }));
        let expected = steady(Some(users as f64), isl, osl);
        near(run.served.output_tok_s, expected.output_tok_s.value, 0.12, &format!("tokens per second of {users}"));
    }
}

#[test]
fn a_run_is_the_same_bytes_again_and_step_by_step() {
    let fleet = Fleet { replicas: 3, router: Router::TwoChoices, ..Fleet::default() };
    let traffic = Traffic {
        rate_per_s: Some(12.0),
        cv: 2.0,
        isl_sigma: 0.7,
        osl_sigma: 0.7,
        prefixes: 5,
        prefix_tokens: 300.0,
        requests: 1500,
        ..Traffic::default()
    };
    let r = Request { fleet, each: true, ..request(traffic) };
    let json = |r: &Request| serde_json::to_string(&asked(r)).unwrap();
    let once = json(&r);
    assert_eq!(once, json(&r));
    assert!(once == json(&Request { step_by_step: true, ..r.clone() }), "steps at once are the steps one by one");
    assert_ne!(once, json(&Request { traffic: Traffic { seed: 43, ..r.traffic.clone() }, ..r.clone() }));
    // The same on every platform, in debug and release: an engine without measured constants, so that calibrations do not move it.
    let ideal = asked(&Request { engine: "ideal".into(), ..r });
    let bytes = serde_json::to_vec(&(ideal.metrics, ideal.each)).unwrap();
    let digest = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3));
    assert_eq!(format!("{digest:016x}"), "0e871cef0fdf2bb7");
}

#[test]
fn a_run_is_the_same_bytes_on_any_number_of_threads() {
    for (router, says) in [(Router::PrefixHash, "simulated_apart"), (Router::Kv, "simulated_coupled")] {
        let fleet = Fleet { replicas: 5, router, ..Fleet::default() };
        let drawn =
            Traffic { rate_per_s: Some(25.0), osl_sigma: 0.7, prefixes: 7, prefix_tokens: 300.0, ..Traffic::default() };
        let r = Request { fleet, each: true, ..request(Traffic { requests: 1500, ..drawn }) };
        let run = |threads: usize| answer_on(&rackmath_catalog::embedded(), &r, &threads.into()).unwrap();
        let once = run(1);
        assert!(once.assumptions.iter().any(|a| a.says == says), "{:?}", once.assumptions);
        assert!(once == run(4), "{router}");
    }
}

#[test]
fn every_engine_answers_and_says_what_was_not_checked() {
    let traffic = Traffic { rate_per_s: Some(4.0), isl: 600.0, osl: 60.0, requests: 300, ..Traffic::default() };
    for engine in ["vllm", "sglang", "trtllm"] {
        let answer = asked(&Request { engine: engine.into(), ..request(traffic.clone()) });
        assert_eq!((answer.unfinished, answer.requests + answer.warm_up), (0, 300), "{engine}");
        let warned = answer.warnings.iter().any(|w| w.says == "simulated_unchecked");
        assert_eq!(warned, engine != "vllm", "{engine}");
        assert!(mean(&answer, What::Ttft) < 200.0 && mean(&answer, What::Tpot) < 20.0, "{engine}");
    }
}

#[test]
fn a_flag_of_another_engine_is_refused_and_the_right_one_named() {
    let catalog = &rackmath_catalog::embedded();
    let refused = |request: &Request| answer_on(catalog, request, &Effort::default()).unwrap_err().to_string();
    let plain = request(Traffic { requests: 10, ..Traffic::default() });
    let flags = Flags { max_num_seqs: Some(8), ..Flags::default() };
    let said = refused(&Request { engine: "sglang".into(), flags: flags.clone(), ..plain.clone() });
    assert!(said.contains("max_running_requests"), "{said}");
    let said = refused(&Request { engine: "trtllm".into(), flags, ..plain.clone() });
    assert!(said.contains("max_batch_size"), "{said}");
    let sglang = Sglang { enable_mixed_chunk: true, ..Sglang::default() };
    let said = refused(&Request { sglang, ..plain });
    assert!(said.contains("no such flag"), "{said}");
}

#[test]
fn values_of_a_setting_are_compared_on_the_same_requests() {
    let traffic = Traffic { rate_per_s: Some(8.0), isl: 500.0, osl: 50.0, requests: 2000, ..Traffic::default() };
    let flags = Flags { max_num_seqs: Some(2), ..Flags::default() };
    let r = Request { flags, compare: Some("max-num-seqs=2,256,2".into()), ..request(traffic) };
    let run = asked(&r);
    let compared = run.compared.clone().unwrap();
    let [base, wide, same] = &compared.variants[..] else { panic!("three values") };
    assert!(compared.same_times && base.differences.is_empty() && wide.differences.len() == 6);
    assert_eq!(compared.verdict.says, "compared_better", "{:?}", wide.differences);
    assert!(same.differences.iter().all(|d| d.ms == 0.0 && d.plus_minus_ms == Some(0.0) && !d.sure()));
    // The first is the answer, as without a comparison.
    let alone = asked(&Request { compare: None, ..r.clone() });
    assert_eq!(Answer { compared: None, ..run }, alone);
    for (said, expected) in [
        ("router", "a setting and its values"),
        ("router=kv", "2 to 16 values"),
        ("colour=red,blue", "colour"),
        ("router=kv,nearest", "router=nearest"),
        ("max-num-seqs=64,many", "max-num-seqs=many"),
    ] {
        let odd = Request { compare: Some(said.into()), ..r.clone() };
        let error = answer_on(&rackmath_catalog::embedded(), &odd, &Effort::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{said}: {error}");
    }
}

#[test]
fn a_window_holds_the_steps_and_requests_of_its_time() {
    let traffic = Traffic { rate_per_s: Some(20.0), requests: 400, ..Traffic::default() };
    let r = Request { window: Some("2..5".into()), step_by_step: true, each: true, ..request(traffic) };
    let run = asked(&r);
    let window = run.window.clone().unwrap();
    assert!((window.from_s, window.to_s, window.left_out) == (2.0, 5.0, 0) && window.steps.len() > 100);
    assert!(window.steps.iter().all(|s| s.start_s < 5.0 && s.end_s > 2.0));
    assert!(window.steps.windows(2).all(|w| w[0].end_s <= w[1].start_s + 1e-9), "steps of a replica do not overlap");
    let inside = run.each.iter().filter(|w| w.arrival_s < 5.0 && w.arrival_s + w.e2e_ms / 1e3 > 2.1).count();
    assert!(window.requests.len() >= inside && inside > 50);
    assert_eq!(Answer { window: None, ..run }, asked(&Request { window: None, ..r.clone() }));
    for odd in ["5..2", "now", "1..x", "-1..2"] {
        let odd = Request { window: Some(odd.into()), ..r.clone() };
        assert!(answer_on(&rackmath_catalog::embedded(), &odd, &Effort::default()).is_err());
    }
}

/// Eight groups with one request now and then: seven step along without work, and all wait for the one prompt.
#[test]
fn attention_groups_wait_for_each_other() {
    let on = |rate, requests| {
        let traffic = Traffic { rate_per_s: Some(rate), osl: 100.0, requests, ..Traffic::default() };
        let setting = Setting { model: "deepseek-v3".into(), on: "8xh200".into(), ..Setting::default() };
        let degrees = DegreesRequest { tp: Some(1), dp: Some(8), ep: Some(8), ..DegreesRequest::default() };
        asked(&Request { setting, degrees, traffic, ..Request::default() })
    };
    let (quiet, busy) = (on(0.05, 60), on(6.0, 600));
    assert!(quiet.assumptions.iter().any(|r| r.says == "simulated_together"), "{:?}", quiet.assumptions);
    // One of eight works; the tail of a wave is shorter than its work.
    assert!((0.87..0.95).contains(&quiet.served.dummy.unwrap()), "{:?}", quiet.served.dummy);
    assert!(busy.served.dummy < Some(0.3), "{:?}", busy.served.dummy);
    assert!(mean(&busy, What::Tpot) > mean(&quiet, What::Tpot));
}

#[test]
fn caches_in_host_memory_are_found_and_their_time_is_a_part() {
    let traffic = Traffic { rate_per_s: Some(0.8), turns: 6, think_s: 30.0, requests: 600, ..Traffic::default() };
    let flags = Flags { num_gpu_blocks_override: Some(3000), ..Flags::default() };
    let with = |size| {
        let tiers = Tiers { kv_offloading_size: size, ..Tiers::default() };
        asked(&Request { tiers, flags: flags.clone(), ..request(traffic.clone()) })
    };
    let (none, nothing, large) = (with(None), with(Some(0.0)), with(Some(500.0)));
    assert_eq!((&none.metrics, &none.parts), (&nothing.metrics, &nothing.parts), "a tier without room is none");
    assert!(none.tiers.is_empty() && large.tiers.len() == 1);
    assert!(large.served.cached > none.served.cached + 0.3, "{} {}", large.served.cached, none.served.cached);
    let fetch = large.parts.iter().find(|p| p.what == Waits::Fetch).unwrap();
    assert!(fetch.ms > 0.0 && large.tiers[0].fetched_bytes > 1e9, "{fetch:?} {:?}", large.tiers);
    let whole: f64 = large.parts.iter().map(|p| p.ms).sum();
    assert!((whole / mean(&large, What::E2e) - 1.0).abs() < 1e-9, "parts add up");
}

#[test]
fn other_engines_keep_caches_in_host_memory_as_they_name_it() {
    let traffic = Traffic { rate_per_s: Some(0.8), turns: 6, think_s: 30.0, requests: 400, ..Traffic::default() };
    let on = |engine: &str| Request { engine: engine.into(), ..request(traffic.clone()) };
    let sglang = |flags: Sglang| Request { sglang: Sglang { max_total_tokens: Some(48_000), ..flags }, ..on("sglang") };
    let trtllm = |flags: Trtllm| Request { trtllm: Trtllm { max_tokens: Some(48_000), ..flags }, ..on("trtllm") };
    let hicache = Sglang { enable_hierarchical_cache: true, hicache_ratio: Some(50.0), ..Sglang::default() };
    let pairs = [
        (sglang(Sglang::default()), sglang(hicache.clone())),
        (trtllm(Trtllm::default()), trtllm(Trtllm { host_cache_size: Some(500_000_000_000), ..Trtllm::default() })),
    ];
    for (without, with) in pairs {
        let (none, large) = (asked(&without), asked(&with));
        assert!(none.tiers.is_empty() && large.tiers.len() == 1 && large.tiers[0].fetched_bytes > 1e9);
        assert!(large.served.cached > none.served.cached + 0.3, "{} {}", large.served.cached, none.served.cached);
        let tiers = Tiers { disk_gib: Some(100.0), remote_gib: Some(100.0), ..Tiers::default() };
        let three = Request { tiers: Tiers { remote_gb_per_s: Some(10.0), ..tiers }, ..with.clone() };
        assert!(answer_on(&rackmath_catalog::embedded(), &three, &Effort::default()).is_err(), "not three tiers");
        let twice = Request { tiers: Tiers { kv_offloading_size: Some(1.0), ..Tiers::default() }, ..with };
        let twice = answer_on(&rackmath_catalog::embedded(), &twice, &Effort::default());
        assert!(twice.is_err() || !matches!(without.engine.as_str(), "trtllm"), "one size, not two");
    }
    let below = Tiers { disk_gib: Some(1000.0), ..Tiers::default() };
    let small = Sglang { hicache_ratio: Some(1.5), ..hicache };
    let stored = asked(&Request { tiers: below, ..sglang(small.clone()) });
    assert!(stored.tiers.len() == 2 && stored.tiers[1].found_tokens > 10_000, "{:?}", stored.tiers);
    assert!(stored.served.cached > asked(&sglang(small)).served.cached + 0.1);
}

/// A pipeline: alone, a request takes a batch's time through all stages; under load stages work at once.
#[test]
fn a_pipeline_has_a_batch_in_each_stage() {
    let on = |pp, rate| {
        let traffic = Traffic { rate_per_s: Some(rate), isl: 2000.0, osl: 50.0, requests: 300, ..Traffic::default() };
        let setting = Setting { model: "llama-3.1-70b".into(), on: "4xh100".into(), ..Setting::default() };
        let degrees = DegreesRequest { tp: Some(4 / pp), pp: Some(pp), ..DegreesRequest::default() };
        Request { setting, degrees, traffic, ..Request::default() }
    };
    let (quiet, busy) = (asked(&on(2, 0.05)), asked(&on(2, 4.0)));
    assert!(quiet.assumptions.iter().any(|r| r.says == "simulated_stages"), "{:?}", quiet.assumptions);
    assert_eq!((quiet.unfinished, busy.unfinished), (0, 0));
    assert!(mean(&busy, What::Ttft) > mean(&quiet, What::Ttft));
    let drafts = Flags { num_speculative_tokens: 2, ..Flags::default() };
    for refused in [Request { engine: "sglang".into(), ..on(2, 1.0) }, Request { flags: drafts, ..on(2, 1.0) }] {
        let refused = answer_on(&rackmath_catalog::embedded(), &refused, &Effort::default());
        assert!(refused.unwrap_err().to_string().contains("pipelines are simulated for vLLM"));
    }
}

/// Two pools under every engine: all are served, and tiers go along with them.
#[test]
fn every_engine_has_pools() {
    for engine in ["vllm", "sglang", "trtllm"] {
        let traffic = Traffic { rate_per_s: Some(2.0), turns: 3, think_s: 5.0, requests: 200, ..Traffic::default() };
        let fleet = Fleet { prefill_replicas: 1, replicas: 1, ..Fleet::default() };
        let tiers = Tiers { kv_offloading_size: Some(100.0), ..Tiers::default() };
        let run = asked(&Request { engine: engine.into(), fleet, tiers, ..request(traffic) });
        assert_eq!((run.unfinished, run.prefill_replicas), (0, 1), "{engine}");
        assert!(run.assumptions.iter().any(|r| r.says == "simulated_pools"), "{engine}");
    }
}

/// A queue of three refuses most of a load of four times what is served; some wait longer than their clients.
#[test]
fn each_request_is_answered_or_says_why_not() {
    let t = Traffic { rate_per_s: Some(80.0), isl: 3000.0, requests: 400, ..Traffic::default() };
    let mishaps = Mishaps { max_queued_requests: Some(3), timeout_s: Some(5.0), retries: 1, ..Mishaps::default() };
    let a = asked(&Request { each: true, mishaps, warm_up: Some(0.0), ..request(t) });
    let happened = a.happened.unwrap();
    let of = |why: Reason| a.failed.iter().filter(|f| f.why == why).count() as u64;
    assert!(of(Reason::Refused) > 50 && of(Reason::TimedOut) > 10, "{happened:?}");
    assert_eq!((a.failed.len() as u64, of(Reason::TimedOut)), (happened.failed, happened.timed_out));
    let mut all: Vec<u64> = a.each.iter().map(|w| w.request).chain(a.failed.iter().map(|f| f.request)).collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..400), "every request once");
    assert!(a.failed.iter().all(|f| f.why != Reason::Refused || f.attempts == 2), "refused once and once again");
    assert!(a.failed.iter().all(|f| f.why != Reason::TimedOut || f.after_ms == 5_000.0));
}

fn refusal(request: &Request) -> String {
    answer_on(&rackmath_catalog::embedded(), request, &Effort::default()).unwrap_err().to_string()
}

const LOGGED: &str = "time,prompt,answer\n0,100,20\n1,200,30\n2,900000,10\n3,0,4\n";

fn logged(traffic: Traffic) -> Request {
    Request { replay: Replayed { trace_text: Some(LOGGED.into()), ..Replayed::default() }, ..request(traffic) }
}

#[test]
fn what_would_do_nothing_is_refused_with_what_it_needs() {
    let t = Traffic::default;
    for (given, field, needs) in vec![
        (logged(Traffic { users: Some(4), ..t() }), "users", "trace"),
        (logged(Traffic { rate_per_s: Some(4.0), ..t() }), "rate_per_s", "speed_up"),
        (logged(Traffic { isl: 5.0, ..t() }), "isl", "trace"),
        (logged(Traffic { osl: 5.0, ..t() }), "osl", "trace"),
        (logged(Traffic { requests: 5, ..t() }), "requests", "first"),
        (logged(Traffic { turns: 5, ..t() }), "turns", "trace"),
        (Request { classes: vec![Class::default()], ..logged(t()) }, "classes", "trace"),
        (request(Traffic { think_s: 3.0, ..t() }), "think_s", "users"),
        (request(Traffic { users: Some(3), cv: 2.0, ..t() }), "cv", "users"),
        (request(Traffic { period_s: 60.0, ..t() }), "period_s", "swing"),
        (request(Traffic { prefix_tokens: 60.0, ..t() }), "prefix_tokens", "prefixes"),
        (request(Traffic { prefixes: 6, ..t() }), "prefixes", "prefix_tokens"),
        (Request { classes: vec![Class::default()], ..request(Traffic { isl: 5.0, ..t() }) }, "isl", "classes"),
        (Request { replay: Replayed { first: Some(3), ..Replayed::default() }, ..request(t()) }, "first", "trace"),
        (
            Request { scaling: Scaling { start_s: 3.0, ..Scaling::default() }, ..request(t()) },
            "start_s",
            "max_replicas",
        ),
    ] {
        let said = refusal(&given);
        assert!(said.contains(field) && said.contains("none ") && said.contains(needs), "{field}: {said}");
    }
    // A seed is for conversations and routers, and a law may have all its parts.
    asked(&logged(Traffic { seed: 7, ..t() }));
    let turns = Traffic { turns: 3, think_s: 1.0, prefixes: 2, prefix_tokens: 50.0, requests: 50, ..t() };
    asked(&request(turns));
}

#[test]
fn a_limit_on_a_percentile_holds_or_not_by_that_percentile() {
    let t = Traffic { rate_per_s: Some(10.0), requests: 1000, ..Traffic::default() };
    let p90 = {
        let a = asked(&request(t.clone()));
        a.metrics.iter().find(|m| m.metric == What::Ttft).unwrap().p90_ms
    };
    for (limit, holds) in [(p90 + 0.001, true), (p90 - 0.001, false)] {
        let ttft_ms = Some(format!("p90={limit}ms").parse().unwrap());
        let a = asked(&Request { ttft_ms, tpot_ms: Some(1000.0.into()), ..request(t.clone()) });
        let g = a.goodput.unwrap();
        assert_eq!((g.held.len(), g.held[0].holds, g.held[0].ms), (1, holds, Some(p90)), "{:?}", g.held);
        assert!((g.share - 0.9).abs() < 0.002, "so many requests are within it: {}", g.share);
    }
    // Who is never answered is later than any limit: nine in ten cannot be within it where one in two fails.
    let mishaps = Mishaps { max_queued_requests: Some(3), ..Mishaps::default() };
    let over = Traffic { rate_per_s: Some(80.0), isl: 3000.0, requests: 1000, ..Traffic::default() };
    let a = asked(&Request { mishaps, ttft_ms: Some("p90=1h".parse().unwrap()), ..request(over) });
    let g = a.goodput.unwrap();
    assert_eq!((g.held[0].holds, g.held[0].ms), (false, None), "{:?}", a.happened);
    // A class without limits of its own has those of all.
    let class = Class { rate_per_s: 5.0, ..Class::default() };
    let strict = Class { ttft_ms: Some(1.0.into()), ..class.clone() };
    let t = Traffic { requests: 300, ..Traffic::default() };
    let a = asked(&Request { classes: vec![class, strict], ttft_ms: Some(60_000.0.into()), ..request(t) });
    let shares: Vec<f64> = a.classes.iter().map(|c| c.goodput.as_ref().unwrap().share).collect();
    assert_eq!(shares, [1.0, 0.0]);
}

#[test]
fn what_is_left_out_cut_or_sent_to_one_replica_is_a_warning() {
    let warned = |a: &Answer, id: &str| a.warnings.iter().any(|w| w.says == id);
    let fleet = Fleet { replicas: 3, router: Router::Session, ..Fleet::default() };
    let a = asked(&Request { fleet, ..logged(Traffic::default()) });
    assert_eq!(a.warnings[0].says, "trace_refused", "first of all");
    assert!(warned(&a, "router_without_sessions"));
    assert!(!warned(&asked(&logged(Traffic::default())), "router_without_sessions"));
    assert!(a.assumptions.iter().any(|w| w.says == "trace_columns"));
    let long = Traffic { turns: 8, isl: 900.0, osl: 100.0, requests: 200, ..Traffic::default() };
    let flags = Flags { max_model_len: Some(4000), ..Flags::default() };
    assert!(warned(&asked(&Request { flags, ..request(long.clone()) }), "simulated_shortened"));
    assert!(!warned(&asked(&request(long)), "simulated_shortened"));
}

#[test]
fn no_value_wins_where_a_queue_grows_or_fewer_are_answered() {
    let over = Traffic { rate_per_s: Some(60.0), isl: 3000.0, requests: 1500, ..Traffic::default() };
    let both = |values: &str| Some(format!("max_num_seqs={values}"));
    let a = asked(&Request { compare: both("16,256"), ..request(over.clone()) });
    let c = a.compared.unwrap();
    assert!(c.verdict.says == "compared_unstable" && c.variants.iter().all(|v| v.queue_grows), "{c:?}");
    // Two sequences at a time cannot keep up with what 256 can.
    let some = Traffic { rate_per_s: Some(8.0), requests: 1500, ..Traffic::default() };
    let c = asked(&Request { compare: both("2,256"), ..request(some) }).compared.unwrap();
    assert_eq!(c.verdict.says, "compared_unstable");
    assert_eq!(c.variants.iter().map(|v| v.queue_grows).collect::<Vec<_>>(), [true, false]);
    let mishaps = Mishaps { max_queued_requests: Some(4), ..Mishaps::default() };
    let c = asked(&Request { compare: both("16,256"), mishaps, ..request(over) }).compared.unwrap();
    assert_eq!(c.verdict.says, "compared_failed");
}

/// 70 billion weights of two bytes are 141 GB; a chip of 80 GiB holds them in fp8, or two chips do by halves where the engine leaves 13 GB of each
/// for that (TensorRT-LLM), four where it does not (SGLang takes 0.835 of what is free on two).
#[test]
fn no_room_for_a_cache_is_an_answer_with_numbers_and_the_first_change() {
    let on = |machine: &str| Setting { model: "llama-3.1-70b".into(), on: machine.into(), ..Setting::default() };
    let tp = |tp| DegreesRequest { tp: Some(tp), ..DegreesRequest::default() };
    for (engine, machine, would, chips) in [
        ("vllm", "1xh100", "weights_in", 1),
        ("sglang", "4xh100", "layout_on", 4),
        ("trtllm", "2xh100", "layout_on", 2),
    ] {
        let few = Traffic { requests: 20, ..Traffic::default() };
        let r = Request { setting: on(machine), engine: engine.into(), degrees: tp(1), ..request(few) };
        let said = serde_json::to_value(asked(&r).verdict).unwrap();
        assert_eq!((&said["says"], &said["why"]["says"]), (&"not_simulated".into(), &"no_cache_room".into()), "{said}");
        let weights = said["why"]["weights"].as_f64().unwrap();
        assert!((weights / 141.1e9 - 1.0).abs() < 0.01 && said["why"]["memory"].as_f64().unwrap() < 86e9, "{said}");
        assert_eq!(said["would"]["says"], would, "{said}");
        // The change does what it says.
        let setting = Setting { weights: (would == "weights_in").then(|| "fp8".into()), ..r.setting.clone() };
        assert!(asked(&Request { setting, degrees: tp(chips), ..r }).requests > 0);
    }
}

#[test]
fn a_controller_is_named_with_its_range_and_dollars_with_their_kind() {
    let t = Traffic { rate_per_s: Some(5.0), requests: 1000, ..Traffic::default() };
    let scaling = Scaling { max_replicas: Some(4), scale_target: 4.0, scale_window_s: 5.0, ..Scaling::default() };
    let a = asked(&Request { scaling, ..request(t.clone()) });
    let paid = a.happened.unwrap().replicas_paid;
    assert_eq!((a.replicas, a.least_replicas, a.chips), (4, Some(1), 4));
    assert!(paid > 1.0 && paid < 4.0, "{paid}");
    let per_chip = a.served.output_tok_s / a.served.output_tok_s_per_chip;
    assert!((per_chip / paid - 1.0).abs() < 1e-9, "chips that are paid for: {per_chip}, {paid}");
    let plain = asked(&request(t));
    assert_eq!((plain.least_replicas, plain.price_basis.len()), (None, 1));
    assert!(plain.assumptions.iter().any(|r| r.says == "price_of_chip"));
    let setting = Setting { on: "1xh200@2.50".into(), ..setting() };
    let given =
        asked(&Request { setting, traffic: Traffic { requests: 50, ..Traffic::default() }, ..Request::default() });
    assert_eq!(given.price_basis, ["given"]);
}
