use super::*;

fn ask(r: &Request) -> Answer {
    answer_on(&rackmath_catalog::embedded(), r, &Effort::default()).unwrap()
}

fn usual() -> Request {
    let trainer = DegreesRequest { tp: Some(2), ..DegreesRequest::default() };
    let rollout = DegreesRequest { tp: Some(1), ..DegreesRequest::default() };
    Request { trainer, rollout, sharding: Some(Sharding::Zero3), ..Request::default() }
}

#[test]
fn the_peak_is_at_least_each_phase_and_parts_add_up() {
    for sleep in [Sleep::Keep, Sleep::Weights, Sleep::All] {
        let a = ask(&Request { sleep, ..usual() });
        let m = &a.memory;
        assert!(m.peak_bytes >= m.generating_bytes && m.peak_bytes >= m.training_bytes);
        assert!(m.generating_bytes >= m.engine_bytes && m.training_bytes >= m.trainer_bytes);
        let sum: f64 = a.parts.iter().map(|p| p.time_s).sum();
        assert!((sum / a.step_s - 1.0).abs() < 1e-9 && a.colocated, "{a:?}");
    }
}

#[test]
fn what_is_offered_where_nothing_fits_fits() {
    let base = Request { model: "qwen3-32b".into(), on: "8xh100".into(), ..Request::default() };
    let a = ask(&base);
    let why = serde_json::to_value(&a.verdict).unwrap()["why"].clone();
    let fits: Vec<&str> = why["fits"].as_array().unwrap().iter().map(|one| one["says"].as_str().unwrap()).collect();
    // The engine sleeps wholly already, and four chips hold no trainer.
    assert!(!a.fits && fits == ["rl_with_offload"], "{why}");
    assert!(ask(&Request { offload_trainer: true, ..base }).fits);
}

#[test]
fn answers_of_one_length_have_no_tail_and_what_is_free_and_faster_is_offered() {
    let base = Request { prompts: 256, samples: 8, isl: 500.0, osl: "2k".into(), ..Request::default() };
    let a = ask(&base);
    let said = serde_json::to_value(&a.verdict).unwrap();
    assert_eq!(said["late"]["says"], "rl_last_round", "{said}");
    let faster = said["faster"].as_array().unwrap();
    let first = &faster[0];
    assert_eq!((faster.len(), &first["what"]["says"]), (2, &"rl_with_zero3".into()), "{said}");
    // It takes what was promised.
    let zero3 = ask(&Request { sharding: Some(Sharding::Zero3), ..base });
    assert!(zero3.step_s < a.step_s && first["step"] == zero3.step_s, "{first} {}", zero3.step_s);
    let uneven = serde_json::to_value(&ask(&Request::default()).verdict).unwrap();
    assert_eq!(uneven["late"]["says"], "rl_long_answers");
}

#[test]
fn asynchronous_is_never_slower_than_synchronous_on_the_same_split() {
    let apart = Request { rollout_chips: Some(8), ..usual() };
    let (sync, off) = (ask(&apart), ask(&Request { asynchronous: true, ..apart.clone() }));
    assert!(off.step_s <= sync.step_s && off.synchronous_step_s == sync.step_s, "{} {}", off.step_s, sync.step_s);
    assert!(off.rollout_waits_s.min(off.train_waits_s) < 1e-9);
    // The best split is no worse than this one.
    let best = ask(&Request { asynchronous: true, ..usual() });
    assert!(best.step_s <= off.step_s && !best.splits.is_empty(), "{:?}", best.splits);
    assert!(best.splits.windows(2).all(|two| !two[1].fits || two[0].step_s <= two[1].step_s));
}

#[test]
fn longer_tails_take_longer_and_the_mean_is_not_all() {
    let time = |osl: &str| ask(&Request { osl: osl.into(), ..usual() }).rollout;
    let (flat, tail) = (time("1k"), time("lognormal:mean=1k,cv=1.5"));
    assert!(tail.time_s > flat.time_s && tail.longest_tokens > 4000.0, "{flat:?} {tail:?}");
    assert_eq!(flat.mean_tokens, 1000.0);
}

#[test]
fn what_cannot_be_is_said() {
    let catalog = rackmath_catalog::embedded();
    let no = |r: Request| answer_on(&catalog, &r, &Effort::default()).unwrap_err().to_string();
    assert!(no(Request { rollout_chips: Some(16), ..usual() }).contains("rollout_chips"));
    assert!(no(Request { osl: "longnormal:mean=1k,cv=1".into(), ..usual() }).contains("lognormal"));
    assert!(no(Request { prompts: 1_000_000, samples: 1000, ..usual() }).contains("at most"));
    let big = ask(&Request { model: "llama-3.1-405b".into(), ..usual() });
    assert!(!big.fits && big.verdict.says == "rl_does_not_fit");
}

/// A share of memory that was given is the engine's own, beside the trainer that stays.
#[test]
fn an_engine_that_keeps_its_memory_has_the_share_it_was_given() {
    let a =
        ask(&Request { on: "8xh100".into(), sleep: Sleep::Keep, memory_utilisation: Some(0.35), ..Request::default() });
    assert!(a.fits && a.memory.peak_bytes <= a.memory.capacity_bytes && a.rollout.places >= 1.0, "{a:?}");
}

#[test]
fn chips_that_are_said_to_hold_both_sides_do() {
    let base = Request { on: "1xh100".into(), ..Request::default() };
    let why = serde_json::to_value(&ask(&base).verdict).unwrap()["why"].clone();
    let chips = why["both"][0]["chips"].as_f64().unwrap() as u64;
    let offload = why["both"][0]["way"]["says"] == "rl_with_offload";
    assert!(ask(&Request { chips: Some(chips), offload_trainer: offload, ..base }).fits, "{why}");
}

/// 18 bytes a parameter of 405 B are 7.3 TB: 86 chips and some room, sixteen times fewer than the trainer's fastest layout asks for.
#[test]
fn the_fewest_chips_are_those_of_the_way_that_needs_fewest() {
    let base = Request { model: "llama-3.1-405b".into(), on: "8xh100".into(), ..Request::default() };
    let why = serde_json::to_value(&ask(&base).verdict).unwrap()["why"].clone();
    let all: Vec<(u64, String)> = why["both"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["chips"].as_u64().unwrap(), one["way"]["says"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(all[0], (96, "rl_with_offload".to_owned()), "{why}");
    assert!(all.windows(2).all(|two| two[0].0 < two[1].0), "{why}");
    // With everything divided fewer than 512 are enough, and as many as are said do it.
    let zero3 = all.iter().find(|(_, way)| way == "rl_with_zero3").map(|(chips, _)| *chips).unwrap();
    assert!(zero3 <= 512, "{why}");
    assert!(ask(&Request { chips: Some(zero3), sharding: Some(Sharding::Zero3), ..base.clone() }).fits);
    // On chips that hold the trainer, dividing more is offered as well as the host.
    let why = serde_json::to_value(&ask(&Request { chips: Some(512), ..base }).verdict).unwrap()["why"].clone();
    let fits: Vec<&str> = why["fits"].as_array().unwrap().iter().map(|one| one["says"].as_str().unwrap()).collect();
    assert_eq!(fits, ["rl_with_zero3", "rl_with_offload"], "{why}");
}

#[test]
fn a_wait_that_is_rounding_is_none() {
    let asked =
        Request { model: "qwen3-8b".into(), prompts: 256, samples: 8, asynchronous: true, ..Request::default() };
    let a = ask(&Request { osl: "lognormal:mean=4k,cv=1".into(), longest: 16384.0, ..asked });
    assert!(a.rollout_waits_s == 0.0 || a.train_waits_s == 0.0, "{} {}", a.rollout_waits_s, a.train_waits_s);
}
