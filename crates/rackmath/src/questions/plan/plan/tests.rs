//! Plans a person would ask for, and some nobody can have.

use super::*;
use crate::remark::Part;
use rackmath_theory::steady::Load;
use rackmath_units::Cancel;

fn catalog() -> Catalog {
    rackmath_catalog::embedded()
}

fn request(on: &str) -> Request {
    Request { isl: Some(4000.0), osl: Some(500.0), ..Request::of("qwen3-32b", on) }
}

fn best(r: &Request) -> Option<Plan> {
    answer_on(&catalog(), r, 1).unwrap().plans.into_iter().next()
}

#[test]
fn a_plan_meets_its_limits_and_serves_its_traffic() {
    let r = Request {
        tpot_ms: Some(30.0.into()),
        ttft_ms: Some(1000.0.into()),
        rate_per_s: Some(20.0),
        ..request("32xh200")
    };
    let a = answer_on(&catalog(), &r, 1).unwrap();
    // Those that keep their limits only in steady state are not among them.
    assert!((2..=5).contains(&a.plans.len()) && a.relaxations.is_empty());
    for p in &a.plans {
        assert!(p.tpot_ms.value <= 30.0 && p.ttft_ms.value <= 1000.0 && p.chips <= 32);
        assert!((p.throughput_tok_s - 10_000.0).abs() < 1e-6 && p.busy <= 1.0 + 1e-9);
        assert!(p.chips >= p.replicas * p.chips_per_replica);
        assert!(!p.launch.is_empty());
    }
    assert!(a.plans.windows(2).all(|w| w[0].usd_per_mtok.value <= w[1].usd_per_mtok.value));
    let below = |a: &Point, b: &Point| a.tok_s_per_user > b.tok_s_per_user && a.tok_s_per_chip < b.tok_s_per_chip;
    assert!(a.frontier.windows(2).all(|w| below(&w[0], &w[1])));
}

#[test]
fn what_no_limit_holds_back_is_not_cheaper_without_any() {
    let plain = Request { disaggregated: false, ..request("8xh200") };
    let free = best(&plain).unwrap().usd_per_mtok.value;
    let mut said = Vec::new();
    for tpot in [7.0, 8.0, 9.0, 10.0, 12.0, 15.0, 20.0, 30.0, 60.0, 500.0] {
        let Some(p) = best(&Request { tpot_ms: Some(tpot.into()), ..plain.clone() }) else { continue };
        let dearer = p.usd_per_mtok.value > free * (1.0 + 1e-9);
        assert_eq!(p.why.says == "not_held_back", !dearer, "{tpot} ms: {:?}, {free}", p.why);
        said.push(p.why.says);
    }
    assert!(said.iter().any(|says| says == "not_held_back") && said.len() > 2, "{said:?}");
}

#[test]
fn power_that_leaves_no_room_for_a_further_host_is_named() {
    let r =
        Request { objective: Best::Throughput, power_w: Some(60_000.0), disaggregated: false, ..request("64xh200") };
    let p = best(&r).unwrap();
    // 32 of 64 chips: eight more would draw 69 kW.
    assert!(p.chips < 64 && p.power_kw <= 60.0 && p.power_kw * (p.chips + 8) as f64 / p.chips as f64 > 60.0);
    // What it holds back is what the same family serves without it: all of the chips.
    assert_eq!(
        (&*p.why.says, &p.why.with["limits"]),
        ("held_back", &says("").with("limits", vec!["power"]).with["limits"])
    );
    let free = best(&Request { power_w: None, ..r }).unwrap();
    let Part::Number(better) = p.why.with["better"] else { panic!("{:?}", p.why) };
    let real = free.throughput_tok_s / p.throughput_tok_s - 1.0;
    assert!((better / real - 1.0).abs() < 0.05 && free.chips > 60, "{better} against {real}");
}

#[test]
fn the_answer_does_not_depend_on_threads() {
    let r = Request { tpot_ms: Some(30.0.into()), chunks: vec![2048.0, 8192.0], ..request("16xh200") };
    let [one, three, eight] = [1, 3, 8].map(|threads| answer_on(&catalog(), &r, threads).unwrap());
    assert!(one == three && one == eight);
}

#[test]
fn a_tabulated_state_is_the_steady_state() {
    let c = catalog();
    let r = Request { disaggregated: false, ..request("8xh200") };
    let w = Worked::new(&c, &r, &1.into()).unwrap();
    let (row, level) = (2, 20);
    let entry = &w.made.rows[row];
    let s = entry.ready().steady(entry.room, &w.ask.requests, Load::even(w.made.levels[level]));
    let state = w.space.whole.of(row)[level];
    assert_eq!((state.tpot, state.rate), (s.tpot.get(), s.rate * entry.on().groups()));
}

#[test]
fn a_token_faster_than_the_latency_floor_or_a_model_larger_than_the_fleet_is_an_answer() {
    let r = Request { tpot_ms: Some(0.1.into()), ..request("32xh200") };
    let a = answer_on(&catalog(), &r, 1).unwrap();
    assert!(a.plans.is_empty());
    let near = a.relaxations.iter().find(|r| r.limit == "time per output token").unwrap();
    assert!(near.factor > 10.0, "{near:?}");
    let mut r = request("2xh200");
    r.setting.model = "deepseek-v3".into();
    let a = answer_on(&catalog(), &r, 1).unwrap();
    assert!(a.plans.is_empty() && a.verdict.says == "nothing_fits", "{:?}", a.verdict);
}

#[test]
fn no_chips_drafts_nobody_measured_and_more_than_memory_holds_are_refused() {
    let mut none = request("hgx-h200");
    none.setting.chips = Some(0);
    let drafts = Request { drafts: vec![3.0], ..request("h200") };
    let large = Request { chunks: (0..200_000).map(|k| f64::from(64 + k)).collect(), ..request("16xh200") };
    for (wrong, word) in [(none, "chips"), (drafts, "drafts"), (large, "rows, which take up to")] {
        let error = answer_on(&catalog(), &wrong, 1).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn every_named_workload_can_be_planned() {
    let c = catalog();
    for name in c.ids(rackmath_spec::Kind::Scenarios) {
        let r = Request { scenario: Some(name.into()), isl: None, osl: None, ..request("8xh200") };
        assert!(!answer_on(&c, &r, 1).unwrap().plans.is_empty(), "{name}");
    }
}

#[test]
fn a_distribution_without_width_is_a_length() {
    let c = catalog();
    let fixed = Request { isl: Some(4000.0), osl: Some(500.0), rate_per_s: Some(4.0), ..request("8xh200") };
    let drawn = |isl: &str, osl: &str| Request {
        isl: None,
        osl: None,
        draws: Draws { isl: Some(isl.into()), osl: Some(osl.into()), ..Draws::default() },
        ..fixed.clone()
    };
    let answered = answer_on(&c, &fixed, 1).unwrap();
    for (isl, osl) in [("4k", "fixed:500"), ("uniform:4k..4k", "lognormal:mean=500,cv=0")] {
        assert_eq!(answer_on(&c, &drawn(isl, osl), 1).unwrap(), answered);
    }
    let mut seen = Request { isl: None, osl: None, ..fixed };
    let text = "isl,osl\n4000,500\n4000,500\n";
    let trace = crate::trace::Request { name: "t".into(), text: text.into(), keep_s: None };
    seen.draws.trace = Some(crate::trace::answer(&c, &trace).unwrap().summary);
    assert_eq!(answer_on(&c, &seen, 1).unwrap().plans, answered.plans);
}

#[test]
fn wider_lengths_are_never_cheaper_and_longer_requests_wait_longer() {
    let cost = |cv: f64| {
        let mut r = Request { isl: None, osl: None, rate_per_s: None, ..request("8xh200") };
        r.draws.isl = Some(format!("lognormal:mean=4k,cv={cv}"));
        r.draws.osl = Some(format!("lognormal:mean=500,cv={cv}"));
        let best = best(&r).unwrap();
        if let Some(l) = &best.percentiles {
            assert!(l.times.iter().all(|t| [t.p50_ms, t.p90_ms, t.p99_ms].is_sorted()), "{l:?}");
            assert!(l.times.last().is_some_and(|whole| whole.p99_ms > best.e2e_ms.value), "{l:?}");
        }
        best.usd_per_mtok.value
    };
    let costs = [0.0, 0.5, 1.0, 2.0].map(cost);
    assert!(costs.is_sorted(), "{costs:?}");
}

#[test]
fn a_peak_is_planned_as_so_much_traffic_and_the_mean_needs_no_more() {
    let mut r = Request { rate_per_s: Some(5.0), ..request("32xh200") };
    let peak = best(&Request { rate_per_s: Some(15.0), ..r.clone() }).unwrap();
    r.draws.peak_over_mean = Some(3.0);
    let planned = best(&r).unwrap();
    let mean = planned.mean_traffic.clone().unwrap();
    assert_eq!((planned.index, planned.replicas), (peak.index, peak.replicas));
    assert!(mean.replicas <= planned.replicas && mean.replicas >= 1);
    assert!((mean.usd_per_mtok_always_on / planned.usd_per_mtok.value - 3.0).abs() < 1e-9);
    // What carries three times the mean in three replicas carries the mean in one.
    let as_busy = (planned.replicas as f64 / 3.0).ceil() as u64;
    assert!(mean.replicas <= as_busy, "{} of {}", mean.replicas, planned.replicas);
    r.draws.peak_over_mean = Some(0.5);
    assert!(answer_on(&catalog(), &r, 1).is_err());
}

#[test]
fn an_instance_is_paid_whole_and_a_host_has_the_chips_it_is_said_to_have() {
    let on = |name: &str, per_host: Option<u64>, rate: f64| {
        let mut r = Request { rate_per_s: Some(rate), disaggregated: false, ..Request::of("llama-3.1-8b", name) };
        (r.isl, r.osl, r.ttft_ms) = (Some(1000.0), Some(300.0), Some(500.0.into()));
        r.handover = per_host.map(|n| HandoverRequest { chips_per_host: Some(n), ..HandoverRequest::default() });
        best(&r).unwrap()
    };
    // Four L40S are rented under this name, whatever is put to use; two hosts of it have eight.
    assert_eq!((on("g6e.12xlarge", None, 10.0).chips, on("4xl40s", None, 10.0).chips), (4, 3));
    assert_eq!(on("2xg6e.12xlarge", None, 40.0).chips % 4, 0);
    assert_eq!(catalog().system("2xp5en.48xlarge").unwrap().n_chips, 16);
    // Of hosts of eight H100 one is paid, of hosts of four half of that.
    assert_eq!((on("16xh100", None, 40.0).chips, on("16xh100", Some(4), 40.0).chips), (8, 4));
}

#[test]
fn a_price_is_given_once() {
    let mut r = request("16xh200@3.00");
    r.setting.price_usd_per_chip_hour = Some(2.0);
    let refused = answer_on(&catalog(), &r, 1).unwrap_err().to_string();
    assert!(refused.contains("price = 2") || refused.contains("price_usd_per_chip_hour = 2"), "{refused}");
    r.setting.on = "16xh200".into();
    assert!(answer_on(&catalog(), &r, 1).is_ok());
}

#[test]
fn a_move_that_is_offered_is_paid_in_whole_hosts_and_holds_when_it_is_simulated() {
    // Nine single chips would do for $0.163, sixteen in whole hosts would not; and the nine do not keep up.
    let mut r = Request { rate_per_s: Some(20.0), cost_usd_per_mtok: Some(0.2), ..Request::of("qwen3-32b", "8xh100") };
    (r.isl, r.osl) = (Some(1000.0), Some(1000.0));
    let none = answer_on(&catalog(), &r, 1).unwrap();
    assert!(none.plans.is_empty() && none.relaxations.iter().all(|m| m.limit != "chips"), "{:?}", none.relaxations);
    // What fills a pipeline unevenly does not keep up with what its means would serve.
    let nine = Request { cost_usd_per_mtok: None, ..r };
    let nine = Request { setting: Setting { on: "9xh100".into(), ..nine.setting.clone() }, ..nine };
    let plans = answer_on(&catalog(), &nine, 1).unwrap().plans;
    for plan in plans {
        let places = plan.sequences * plan.replicas as f64;
        assert!(plan.concurrency <= 2.0 * places, "Little: {} in flight in {places} places", plan.concurrency);
    }
}

#[test]
fn a_plan_that_nobody_wants_any_more_ends_at_once() {
    let r = Request { chunks: vec![2048.0, 8192.0], tpot_ms: Some(0.1.into()), ..request("16xh200") };
    let effort = |cancel: Cancel| Effort { threads: 2, cancel };
    assert!(answer_on(&catalog(), &r, effort(Cancel::after(1_000_000))).is_ok());
    // Wherever it stands: among layouts, in the search, in what stands in the way.
    for checks in [0, 1, 20, 200] {
        let refused = answer_on(&catalog(), &r, effort(Cancel::after(checks))).unwrap_err();
        assert!(refused.is_cancelled(), "{checks}: {refused}");
    }
}

/// The pools of a plan under the load that keeps them where the plan has them, asked one by one.
#[test]
fn estimate_and_plan_agree_on_two_pools() {
    let c = catalog();
    let w = Worked::new(&c, &request("8xh200"), &1.into()).unwrap();
    let degrees = |l: &rackmath_spec::Layout| {
        let d = l.degrees();
        let (tp, pp, dp) = (Some(d.tp), Some(d.pp), Some(d.dp));
        crate::layout::DegreesRequest { tp, pp, dp, ep: Some(d.ep), etp: Some(d.etp), ..Default::default() }
    };
    let mut compared = 0;
    for index in (0..w.space.len()).step_by(97) {
        let choice = w.chosen(index);
        let Some(pool) = choice.prompts.as_ref().filter(|_| choice.instances == 1.0) else { continue };
        let Some(e) = w.space.estimate(index, w.question.output, Traffic::One) else { continue };
        let (on, prompts) = (choice.row.on(), pool.row.on());
        // Those who wait for their prompt or its cache are in flight too.
        let inside = w.space.found.of(choice.c.row)[choice.c.level].ttft;
        let concurrency = choice.per_group * on.groups() + e.rate * (e.ttft - inside);
        let prefill_chips = Some(pool.instances as u64 * prompts.layout.chips());
        let asked = crate::estimate::Request {
            setting: request("8xh200").setting,
            degrees: degrees(&on.layout),
            concurrency: Some(concurrency),
            isl: 4000.0,
            osl: 500.0,
            disaggregated: Some(crate::estimate::Disaggregated { prefill_chips, prefill: degrees(&prompts.layout) }),
            changes: false,
            ..Default::default()
        };
        let Ok(page) = crate::estimate::answer(&c, &asked) else { continue };
        // Pools of more chips than the machine has are no answer of an estimate, and break a limit of the plan.
        let (Some(served), Some(pools)) = (page.served, page.pools) else {
            assert!(e.chips > 8.0, "{index}: {:?}", page.problem);
            continue;
        };
        // Where prompts would be outrun if all requests decoded at once, the estimate takes them for the bottleneck.
        if pools.prefill_busy > rackmath_theory::pools::BUSIEST {
            continue;
        }
        let close = |what: &str, a: f64, b: f64| {
            let far = (a / b - 1.0).abs();
            assert!(far < 1e-6, "{index} {what}: {a} and {b}, {} in a group of {}", choice.per_group, on.layout);
        };
        close("time per token", served.tpot_ms.value / 1e3, e.tpot);
        close("time to first token", served.ttft_unqueued_ms.unwrap().value / 1e3, e.ttft);
        close("requests", served.requests_per_s.value, e.rate);
        compared += 1;
    }
    assert!(compared >= 10, "{compared}");
}

#[test]
fn load_kept_free_is_planned_as_load() {
    let asked = |rate: f64, headroom: Option<f64>| {
        best(&Request { tpot_ms: Some(40.0.into()), rate_per_s: Some(rate), headroom, ..request("32xh200") }).unwrap()
    };
    let (free, full) = (asked(12.0, Some(0.5)), asked(24.0, None));
    assert_eq!((free.deployment, free.replicas, free.chips), (full.deployment, full.replicas, full.chips));
    assert!(free.chips > asked(12.0, None).chips || free.replicas > asked(12.0, None).replicas);
}

#[test]
fn every_part_of_a_fleet_is_handed_over() {
    let r = Request { handover: Some(crate::plan::HandoverRequest::default()), ..request("8xh100+8xh200") };
    let a = answer_on(&catalog(), &r, 1).unwrap();
    assert_eq!(a.parts.len(), 2);
    for part in &a.parts {
        let plan = &a.plans[part.plan.expect("without a rate all parts are full")];
        let handed = plan.handover.as_ref().expect("commands of every part");
        assert!(!handed.commands.is_empty() && !plan.launch.is_empty(), "{}", part.machine);
    }
}

#[test]
fn a_budget_is_dollars_per_hour_with_and_without_its_unit() {
    let fields = crate::desk::field::of::<Request>();
    let budget = fields.iter().find(|f| f.flag == "budget").unwrap();
    for text in ["5", "$5", "5/h", "$5/h", " $5.00/h "] {
        assert_eq!(budget.parse(text).unwrap().as_f64(), Some(5.0), "{text}");
    }
    for text in ["five", "5/d", "-5", "$"] {
        assert!(budget.parse(text).is_err(), "{text}");
    }
}

#[test]
fn boards_draw_more_for_more_requests_and_never_more_than_their_limit() {
    let c = catalog();
    for (on, chip) in [("1xh200", "h200"), ("2xa100", "a100-80gb")] {
        let (chip, draw) = (c.chip(chip).unwrap(), c.power_draw().unwrap());
        let limit = chip.power.tdp.as_ref().unwrap().value.get();
        let mut before = draw.standing(&chip) * limit;
        for batch in [1, 4, 16] {
            let p = best(&Request { batch: Some(batch), disaggregated: false, ..request(on) }).unwrap();
            let boards = p.boards.unwrap();
            assert!(before <= boards.chip_w && boards.chip_w <= limit, "{on} {batch}: {boards:?}");
            let joules = boards.chip_w / p.tok_s_per_chip.value;
            assert!((boards.joules_per_token / joules - 1.0).abs() < 1e-9, "{on} {batch}: {boards:?}");
            assert_eq!(boards.measured, chip.id == "h200");
            before = boards.chip_w;
        }
    }
}

fn on_tpus(on: &str) -> Request {
    let r = Request::of("llama-3.1-8b", on);
    Request { isl: Some(1000.0), osl: Some(300.0), rate_per_s: Some(10.0), tpot_ms: Some(40.0.into()), ..r }
}

#[test]
fn part_of_a_host_that_would_do_for_less_is_said_by_shards_too() {
    let r = on_tpus("4xtpu-v6e");
    let whole = answer_on(&catalog(), &r, 1).unwrap();
    let said = whole.part_of_host.clone().expect("two of four chips would do");
    let single = best(&Request { whole_hosts: false, ..r.clone() }).unwrap();
    assert!(single.chips < whole.plans[0].chips && single.usd_per_mtok.value < whole.plans[0].usd_per_mtok.value);
    let cost = DollarsPerToken::per_mtok(single.usd_per_mtok.value);
    let expected = says("part_of_host").with("chips", single.chips).with("paid", whole.plans[0].chips);
    assert_eq!(said, expected.with("cost", cost).with("deployment", single.deployment));
    for n in [2, 5] {
        let parts: Vec<Partial> = (1..=n).map(|k| shard(&catalog(), &r, (k, n), 1).unwrap()).collect();
        assert_eq!(merge(&catalog(), &parts, 1).unwrap(), whole);
    }
    assert_eq!(answer_on(&catalog(), &Request { whole_hosts: false, ..r }, 1).unwrap().part_of_host, None);
}

#[test]
fn chips_that_would_be_enough_are_those_a_plan_has_with_so_many() {
    // TPUs v6e come eight to a host, and fewer can be had.
    let a = answer_on(&catalog(), &on_tpus("tpu-v6e"), 1).unwrap();
    let chips = a.relaxations.iter().find(|r| r.limit == "chips").unwrap();
    assert_eq!((&chips.needed, chips.factor), (&says("a_count").with("x", 2.0).with("paid", 8.0), 2.0));
    assert_eq!(best(&on_tpus("2xtpu-v6e")).unwrap().chips, 2);
}

#[test]
fn the_checkpoint_that_is_asked_for_is_the_one_that_is_started() {
    for (name, id, other) in [
        ("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct", "Llama-3.1"),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "Llama-3.1"),
        ("qwen3-coder-30b-a3b", "Qwen/Qwen3-Coder-30B-A3B-Instruct", "Qwen3-30B"),
        ("llama-3.1-8b", "meta-llama/Llama-3.1-8B", "Instruct"),
    ] {
        let r =
            Request { disaggregated: false, handover: Some(HandoverRequest::default()), ..Request::of(name, "4xh200") };
        let p = best(&r).unwrap();
        let start = format!("vllm serve {id} ");
        assert!(p.launch.iter().all(|line| line.contains(&start)), "{:?}", p.launch);
        let files = &p.handover.unwrap().files;
        assert!(files.iter().any(|f| f.text.contains(&start)), "{name}");
        assert!(files.iter().all(|f| !f.text.contains(other)), "{name}");
    }
}
