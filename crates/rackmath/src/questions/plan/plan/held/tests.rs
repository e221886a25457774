//! Limits on percentiles take head-room, and say how much.

use super::*;
use crate::plan::{Answer, Request, answer_on};

fn request() -> Request {
    let usual = Request::of("llama-3.1-8b", "8xh200");
    let fixed = Request { isl: Some(512.0), osl: Some(64.0), disaggregated: false, whole_hosts: false, ..usual };
    Request { simulate_requests: Some(1000), top: 3, ..fixed }
}

fn asked(r: &Request) -> Answer {
    answer_on(&rackmath_catalog::embedded(), r, 1).unwrap()
}

fn limit(text: &str) -> AtMost {
    text.parse().unwrap()
}

#[test]
fn a_percentile_takes_the_head_room_that_a_mean_does_not() {
    let means = Request { ttft_ms: Some(limit("150ms")), tpot_ms: Some(limit("30ms")), ..request() };
    let plain = asked(&means);
    let one = plain.plans[0].throughput_tok_s / 64.0 / plain.plans[0].replicas as f64;
    // All that three of eight chips serve: in the mean they are enough.
    let rate_per_s = Some(one * 2.99);
    let mean = asked(&Request { rate_per_s, ..means.clone() });
    let tail =
        asked(&Request { rate_per_s, ttft_ms: Some(limit("p99=150ms")), tpot_ms: Some(limit("p90=30ms")), ..means });
    let (m, t) = (&mean.plans[0], &tail.plans[0]);
    assert!(t.chips >= m.chips && t.busy < m.busy, "{} and {} chips, {} and {} busy", m.chips, t.chips, m.busy, t.busy);
    assert!(t.usd_per_mtok.value >= m.usd_per_mtok.value);
    for p in &tail.plans {
        let met = p.percentiles.as_ref().expect("every plan that is shown was simulated");
        assert!(met.hold() && p.chips <= 8, "{p:?}");
        let first = met.times.iter().find(|t| t.percentile == Some(99.0)).unwrap();
        assert!(first.percentile_ms == Some(first.p99_ms) && first.p99_ms <= 150.0);
        for t in &met.times {
            assert!([t.p50_ms, t.p90_ms, t.p99_ms].is_sorted(), "{t:?}");
        }
    }
    assert!(tail.verdict.with.contains_key("held") && tail.shadow_prices.is_empty());
    // The same on any number of threads.
    let again =
        Request { rate_per_s, ttft_ms: Some(limit("p99=150ms")), tpot_ms: Some(limit("p90=30ms")), ..request() };
    assert_eq!(answer_on(&rackmath_catalog::embedded(), &again, 3).unwrap(), tail);
    // Means are given with their percentiles where a rate is.
    assert!(mean.plans[0].percentiles.is_some());
}

#[test]
fn without_a_rate_as_much_is_served_as_the_percentile_allows() {
    let served = |ttft: &str| asked(&Request { ttft_ms: Some(limit(ttft)), tpot_ms: Some(limit("30ms")), ..request() });
    let (mean, tail, tighter) = (served("150ms"), served("p99=150ms"), served("p99=120ms"));
    let throughput = |a: &Answer| a.plans[0].throughput_tok_s;
    assert!(throughput(&tail) < throughput(&mean) && throughput(&tighter) <= throughput(&tail));
    assert!(tail.plans[0].busy < 0.99 && tail.plans[0].busy > 0.2, "{}", tail.plans[0].busy);
}

#[test]
fn what_no_load_keeps_is_an_answer_that_says_how_far_off_it_is() {
    // A first token takes longer than that alone at p99, though the mean of the search may be below.
    let alone = asked(&Request { rate_per_s: Some(0.01), ..request() });
    let first =
        alone.plans[0].percentiles.as_ref().unwrap().times.iter().find(|t| t.metric == crate::simulate::What::Ttft);
    let below = AtMost { ms: first.unwrap().p50_ms * 0.999, percentile: Some(50.0) };
    let a = asked(&Request { rate_per_s: Some(5.0), ttft_ms: Some(below), ..request() });
    if a.plans.is_empty() {
        assert!(
            ["nothing_held", "single_moves", "no_single_move"].contains(&a.verdict.says.as_ref()),
            "{:?}",
            a.verdict
        );
        assert!(!a.because.is_empty() || !a.relaxations.is_empty());
    } else {
        assert!(a.plans.iter().all(|p| p.percentiles.as_ref().is_some_and(crate::simulate::Percentiles::hold)));
    }
}

#[test]
fn questions_that_know_means_alone_refuse_percentiles() {
    let plan = Request { tpot_ms: Some(limit("p99=30ms")), ..request() };
    let catalog = rackmath_catalog::embedded();
    let frontier = crate::frontier::Request { plan, ..Default::default() };
    let said = crate::frontier::answer_on(&catalog, &frontier, 1).unwrap_err().to_string();
    assert!(said.contains("p99=30ms") && said.contains("mean"), "{said}");
}

#[test]
fn users_wait_for_their_answers_and_one_alone_never_queues() {
    let times = |users: f64, think: f64| {
        let a = asked(&Request { users: Some(users), think_s: Some(think), ..request() });
        let best = a.plans.into_iter().next().unwrap();
        let met = best.percentiles.clone().unwrap();
        (best, met)
    };
    for think in [0.0, 2.0] {
        let (best, met) = times(1.0, think);
        let first = met.of(crate::simulate::What::Ttft).unwrap();
        // Nobody is there to wait for: what one meets is what every one meets, and near the mean that the plan gives.
        assert!(!met.queue_grows && first.p99_ms < 1.01 * first.p50_ms, "{first:?}");
        assert!((first.p50_ms / best.ttft_ms.value - 1.0).abs() < 0.5, "{first:?} and {:?}", best.ttft_ms);
    }
    // N = X (R + Z): the queue of a closed population is never longer than the population.
    let (best, met) = times(300.0, 1.0);
    let whole = met.of(crate::simulate::What::E2e).unwrap();
    let rate = 300.0 / (whole.mean_ms / 1e3 + 1.0);
    assert!((rate * 64.0 / best.throughput_tok_s - 1.0).abs() < 0.3, "{whole:?} and {}", best.throughput_tok_s);
}

#[test]
fn pipelines_are_simulated_and_what_cannot_be_is_not_said_to_have_been() {
    let fixed = |pp: Option<u64>| {
        let fixed = crate::layout::DegreesRequest { pp, ..Default::default() };
        Request { rate_per_s: Some(2.0), ttft_ms: Some(limit("p90=2s")), top: 2, fixed, ..request() }
    };
    let staged = asked(&fixed(Some(2)));
    assert!(staged.plans[0].layout.contains("pp2") && staged.plans[0].percentiles.is_some(), "{:?}", staged.verdict);
    // Schedules of other engines: nothing is known, and the reason is said without the name of a field.
    let none = asked(&Request { engines: vec!["torch".into()], ..fixed(None) });
    assert!(none.plans.is_empty() && none.verdict.says == "nothing_tried", "{:?}", none.verdict);
    assert!(none.because.iter().any(|b| b.says == "held_left_out"), "{:?}", none.because);
    assert!(none.assumptions.iter().all(|a| a.says != "held_searched" && a.says != "plan_percentiles"));
    // Where others come later in the list they are tried.
    let some = asked(&Request { objective: crate::plan::Best::Throughput, ..fixed(None) });
    assert!(some.plans.iter().all(|p| p.percentiles.is_some()) && !some.plans.is_empty());
}

/// 16 chips at 20 requests a second: `estimate` and `simulate` give 0.7 s and 23 ms, pipelines that compute prompts kept full.
fn pooled(chips: u64) -> Request {
    let fixed = Request { isl: Some(4000.0), osl: Some(500.0), rate_per_s: Some(20.0), ..request() };
    let limits = Request { ttft_ms: Some(limit("1s")), tpot_ms: Some(limit("30ms")), ..fixed };
    let of = Request::of("qwen3-32b", &format!("{chips}xh200"));
    Request { setting: of.setting, disaggregated: true, whole_hosts: true, simulate_requests: Some(600), ..limits }
}

#[test]
fn pipelines_of_prompts_have_enough_of_them_under_way_to_keep_every_stage_busy() {
    let a = asked(&pooled(16));
    let best = a.plans.first().unwrap_or_else(|| panic!("{:?}: {:?}", a.verdict, a.because));
    assert!(best.chips <= 16 && best.percentiles.as_ref().is_some_and(Percentiles::hold), "{best:?}");
}

#[test]
fn what_does_not_hold_says_by_how_much_it_misses() {
    let a = asked(&pooled(8));
    assert!(a.plans.is_empty(), "{:?}", a.plans);
    let a = asked(&Request { ttft_ms: Some(limit("560ms")), ..pooled(16) });
    for why in a.because.iter().filter(|b| b.says == "not_held") {
        let Some(crate::desk::remark::Part::Remark(why)) = why.with.get("why") else { continue };
        let told = |name: &str| why.with.contains_key(name);
        assert!(why.says != "held_beyond" || told("missed") || told("grows"), "{why:?}");
    }
}

/// Every deployment without pools in any number of replicas, simulated: dollars an hour of the cheapest that keeps the limits.
fn cheapest(r: &Request) -> Option<f64> {
    let w = Worked::any(&rackmath_catalog::embedded(), r, &1.into()).unwrap();
    let q = w.question;
    let mut best: Option<f64> = None;
    for row in 0..w.space.rows.len() as u64 {
        let Some(u) = w.unit(w.space.first(row)) else { continue };
        for n in 1..=8 {
            let Some(e) = w.space.replicated(u.index, q.output, (n as f64, r.rate_per_s.unwrap())) else { continue };
            if q.limits.get(Bound::Chips).is_some_and(|most| e.taken > most)
                || best.is_some_and(|b| e.usd_per_hour >= b)
            {
                continue;
            }
            let load = Load::Open { rate: r.rate_per_s.unwrap(), replicas: n, users: None };
            if w.meets(u.index, load).unwrap().met.hold() {
                best = Some(e.usd_per_hour);
            }
        }
    }
    best
}

#[test]
fn nothing_cheaper_holds() {
    let mut random = 7_u64;
    let mut draw = |among: &[f64]| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        among[(random >> 33) as usize % among.len()]
    };
    let mut some = 0;
    for case in 0..5 {
        let (rate, first, token) = (draw(&[5.0, 40.0, 120.0]), draw(&[60.0, 100.0, 200.0]), draw(&[6.0, 9.0, 15.0]));
        let (p, q) = (draw(&[50.0, 90.0, 99.0]), draw(&[90.0, 99.0]));
        let r = Request {
            rate_per_s: Some(rate),
            ttft_ms: Some(AtMost { ms: first, percentile: Some(p) }),
            tpot_ms: Some(AtMost { ms: token, percentile: Some(q) }),
            whole_hosts: case % 2 == 0,
            simulate_requests: Some(300),
            ..request()
        };
        let (a, brute) = (asked(&r), cheapest(&r));
        let found = a.plans.first().map(|p| p.usd_per_hour);
        some += usize::from(brute.is_some());
        assert!(
            brute.is_none_or(|b| found.is_some_and(|f| f <= b * (1.0 + 1e-9))),
            "rate {rate}, p{p} of {first} ms, p{q} of {token} ms: {found:?}, but {brute:?} holds"
        );
        assert!(a.assumptions.iter().any(|s| s.says == "held_searched") || a.plans.is_empty());
    }
    assert!(some >= 3, "only {some} cases can be kept at all");
}

#[test]
fn a_plan_that_was_simulated_has_one_source_of_figures() {
    let tight = |ttft, tpot| (Some(limit(ttft)), Some(limit(tpot)));
    let asks = [
        Request { rate_per_s: Some(60.0), ..request() },
        Request { rate_per_s: Some(150.0), tpot_ms: Some(limit("30ms")), ..request() },
        Request { users: Some(200.0), think_s: Some(1.0), tpot_ms: Some(limit("p99=30ms")), ..request() },
        Request { ttft_ms: tight("p99=150ms", "30ms").0, tpot_ms: tight("p99=150ms", "30ms").1, ..request() },
        Request { rate_per_s: Some(100.0), ttft_ms: Some(limit("p90=100ms")), disaggregated: true, ..request() },
    ];
    for r in asks {
        let a = asked(&r);
        for p in a.plans.iter().filter(|p| p.percentiles.is_some()) {
            let met = p.percentiles.as_ref().unwrap();
            let mean = |what| met.of(what).unwrap().mean_ms;
            assert_eq!(
                (p.ttft_ms.value, p.tpot_ms.value, p.e2e_ms.value),
                (mean(What::Ttft), mean(What::Tpot), mean(What::E2e))
            );
            for t in &met.times {
                assert!([t.p50_ms, t.p90_ms, t.p99_ms].is_sorted(), "{t:?}");
                // Half of the requests are below the median: a mean beyond p99 would take outliers that steady traffic has not.
                assert!(t.mean_ms <= t.p99_ms.max(t.p50_ms) * (1.0 + 1e-9), "{t:?}");
            }
            // What is in flight is what comes times how long it stays, and never more than the engine takes.
            let rate = p.throughput_tok_s / 64.0;
            assert!((p.concurrency / (rate * p.e2e_ms.value / 1e3) - 1.0).abs() < 1e-9);
            assert!(p.concurrency_per_group <= p.sequences * 1.05, "{} of {}", p.concurrency_per_group, p.sequences);
            assert!(p.busy > 0.0 && p.busy <= 1.0 + 1e-9);
            assert!((p.usd_per_mtok.value * p.throughput_tok_s / 1e6 * 3600.0 / p.usd_per_hour - 1.0).abs() < 1e-9);
        }
        let said = a.plans[0].percentiles.as_ref().unwrap();
        assert_eq!(a.verdict.with.get("tpot"), Some(&Seconds::ms(said.of(What::Tpot).unwrap().mean_ms).into()));
    }
}

#[test]
fn the_engine_is_started_as_it_was_simulated_and_makes_no_queue_of_its_own() {
    // Two requests in flight would do in the mean; with two places one in three would wait.
    for r in [
        Request { rate_per_s: Some(20.0), ..request() },
        Request { rate_per_s: Some(20.0), ttft_ms: Some(limit("p99=500ms")), ..request() },
    ] {
        let a = asked(&r);
        let p = &a.plans[0];
        assert!(p.launch[0].contains(&format!("--max-num-seqs {} ", p.sequences)), "{:?}", p.launch);
        let queue = p.percentiles.as_ref().unwrap().of(What::Queue).unwrap();
        // Nobody waits longer than for the step that is under way.
        assert!(queue.p99_ms < 50.0, "{queue:?}");
        let w = Worked::any(&rackmath_catalog::embedded(), &r, &1.into()).unwrap();
        let choice = Choice { per_group: p.sequences, ..w.chosen(p.index) };
        let comes = Comes::Open { rate: 20.0, replicas: p.replicas };
        assert_eq!(&w.stage(&w.ask.simulate, &choice).unwrap().run(comes).unwrap(), p.percentiles.as_ref().unwrap());
    }
}

#[test]
fn surer_percentiles_cost_more_and_hold_where_everything_is_slower() {
    let r = Request {
        rate_per_s: Some(80.0),
        ttft_ms: Some(limit("p90=500ms")),
        tpot_ms: Some(limit("p99=25ms")),
        ..request()
    };
    let plain = asked(&r);
    let mut least = plain.plans[0].usd_per_hour;
    for share in [0.5, 0.8, 0.9] {
        let a = asked(&Request { sure: Some(share), ..r.clone() });
        let best = &a.plans[0];
        assert!(best.usd_per_hour >= least, "{share}: {} after {least}", best.usd_per_hour);
        least = best.usd_per_hour;
        let sure = best.sure.as_ref().unwrap();
        assert!(sure.tpot_ms >= best.tpot_ms.value * (1.0 - 1e-9) && sure.ttft_ms >= best.ttft_ms.value * (1.0 - 1e-9));
        if share == 0.5 {
            assert_eq!((best.replicas, &best.percentiles), (plain.plans[0].replicas, &plain.plans[0].percentiles));
        }
    }
}

#[test]
fn a_rate_is_served_no_more_than_it_comes_whatever_is_kept_free() {
    let at = |headroom: Option<f64>| asked(&Request { rate_per_s: Some(40.0), headroom, ..request() });
    for a in [at(None), at(Some(0.5))] {
        let p = &a.plans[0];
        assert!((p.throughput_tok_s - 40.0 * 64.0).abs() < 1e-6, "{}", p.throughput_tok_s);
    }
    assert!(at(Some(0.5)).plans[0].usd_per_mtok.value >= at(None).plans[0].usd_per_mtok.value);
}

#[test]
fn remedies_are_whole_hosts_and_hold_when_simulated() {
    let r = Request { rate_per_s: Some(3000.0), whole_hosts: true, ttft_ms: Some(limit("p99=1s")), ..request() };
    let a = asked(&r);
    assert!(a.plans.is_empty() && a.verdict.says == "single_moves", "{:?}", a.verdict);
    assert!(!a.verdict.with.contains_key("means"), "what is offered was simulated: {:?}", a.verdict);
    let chips = a.relaxations.iter().find(|x| x.limit == "chips").unwrap();
    // What would be enough, and what is paid for it: the next whole host.
    let needed = chips.factor * 8.0;
    let paid = match chips.needed.with.get("paid") {
        Some(crate::remark::Part::Number(paid)) => *paid,
        _ => needed,
    };
    assert!(needed > 8.0 && paid - needed < 8.0 && (paid / 8.0).fract() < 1e-9, "{chips:?}");
    let means = asked(&Request { ttft_ms: Some(limit("1s")), ..r });
    assert!(!means.verdict.with.contains_key("means"), "{:?}", means.verdict);
}

#[test]
fn chips_that_decode_for_hours_on_end_are_simulated() {
    // 4,000 requests at one in two seconds, 38 s each: the pool that decodes is busy for more than the 2.4 hours that 63 bits
    // of 2^-20 ns hold.
    let usual = Request::of("llama-3.1-405b", "16xh200");
    let fixed = crate::layout::DegreesRequest { tp: Some(8), ..Default::default() };
    let lengths = Request { isl: Some(1000.0), osl: Some(1000.0), rate_per_s: Some(0.5), fixed, ..usual };
    let a = asked(&Request { ttft_ms: Some(limit("p90=2s")), simulate_requests: Some(6000), ..lengths });
    // Two pools were among those tried, whether or not they keep the limit.
    let tried = format!("{:?}", a.assumptions);
    assert!(a.plans.iter().any(|p| p.prefill.is_some()) || tried.contains("held_"), "{tried}");
    let whole = a.plans[0].percentiles.as_ref().and_then(|met| met.of(crate::simulate::What::E2e)).unwrap();
    assert!((30e3..60e3).contains(&whole.p99_ms), "{whole:?}");
}
