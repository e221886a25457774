//! Adapters beside a model: laws that hold whatever is asked.

use proptest::prelude::*;
use rackmath::estimate::{Answer, Loras, Request, answer};
use rackmath::setting::Setting;
use std::sync::LazyLock;

static CATALOG: LazyLock<rackmath::Catalog> = LazyLock::new(rackmath_catalog::embedded);

fn asked(model: &str, on: &str, loras: Option<Loras>) -> Request {
    let setting = Setting { model: model.into(), on: on.into(), ..Setting::default() };
    Request { setting, loras, concurrency: Some(48.0), changes: false, ..Request::default() }
}

fn ask(r: &Request) -> Answer {
    answer(&CATALOG, r).expect("an answer")
}

fn tpot(a: &Answer) -> f64 {
    a.served.as_ref().map_or(f64::INFINITY, |s| s.tpot_ms.value)
}

#[test]
fn no_adapters_or_none_of_any_rank_is_the_model_alone() {
    for (model, on) in [("llama-3.1-8b", "h100"), ("mixtral-8x7b", "2xh100")] {
        let base = ask(&asked(model, on, None));
        for loras in [Loras { loras: 0, ..Loras::default() }, Loras { lora_rank: 0, ..Loras::default() }] {
            assert_eq!(ask(&asked(model, on, Some(loras))), base);
        }
    }
}

#[test]
fn sixteen_adapters_of_mixtral_by_hand() {
    // 32 layers; attention 16 x (3 x 4,096 + 6,144 + 2 x 4,096), experts 8 x 16 x (3 x 4,096 + 3 x 14,336): 240 M of 2 bytes.
    let a = ask(&asked("mixtral-8x7b", "2xh100", Some(Loras { loras: 16, ..Loras::default() })));
    let card = a.loras.expect("a card");
    let layer = 16.0 * (12_288.0 + 6_144.0 + 8_192.0) + 8.0 * 16.0 * (12_288.0 + 43_008.0);
    assert_eq!(card.params, 32.0 * layer);
    assert_eq!(card.slots_bytes, 16.0 * card.chip_bytes);
    assert!(card.chip_bytes > card.stored_bytes / 2.0 && card.chip_bytes < card.stored_bytes);
    assert!(card.tpot_more > 0.0 && card.throughput_less > 0.0 && card.distinct < 16.0 && card.distinct > 14.0);
}

#[test]
fn adapters_that_are_not_there_cost_time_and_make_others_wait() {
    let with = |count: Option<u64>, skew: f64, cpu: Option<u64>| {
        let loras = Loras { loras: 8, lora_count: count, lora_skew: skew, max_cpu_loras: cpu, ..Loras::default() };
        ask(&asked("llama-3.1-8b", "h100", Some(loras)))
    };
    let (few, many) = (with(None, 0.0, None), with(Some(100), 0.0, Some(100)));
    let (a, b) = (few.loras.as_ref().unwrap(), many.loras.as_ref().unwrap());
    assert!(a.hit == 1.0 && a.load_per_request_ms == 0.0 && (b.hit - 0.08).abs() < 1e-12);
    assert!(b.load_per_request_ms > 0.0 && many.served.as_ref().unwrap().waiting > 0.0);
    // Favourites are there more often, and disk is slower than the host.
    assert!(with(Some(100), 1.2, Some(100)).loras.unwrap().hit > b.hit);
    let disk = with(Some(100), 0.0, Some(8)).loras.unwrap();
    assert!(disk.load_per_request_ms > b.load_per_request_ms);
    assert!(
        answer(
            &CATALOG,
            &asked("llama-3.1-8b", "h100", Some(Loras { max_cpu_loras: Some(1), loras: 8, ..Loras::default() }))
        )
        .is_err()
    );
}

#[test]
fn as_many_run_as_the_slots_hold_and_who_shares_them() {
    let run = |count: u64, in_flight: f64| {
        let loras = Loras { loras: 8, lora_count: Some(count), ..Loras::default() };
        let a = ask(&Request { concurrency: Some(in_flight), ..asked("llama-3.1-8b", "a100", Some(loras)) });
        (a.loras.unwrap().says, a.served.unwrap())
    };
    // Eight requests have eight adapters at most: nobody waits, and a token takes longer than without adapters.
    let (said, few) = run(100, 8.0);
    assert!(few.waiting == 0.0 && few.running > 7.9 && said.with.contains_key("slower"), "{said:?}");
    // 64 of a hundred adapters: 8.3 until the slots are full, then 8 in 100 of the other 55.7.
    let (said, many) = run(100, 64.0);
    assert_eq!((many.running.round(), many.waiting.round()), (12.0, 52.0));
    assert!(many.binding.with.contains_key("slots_hold") && said.with.contains_key("quicker"), "{said:?}");
    // However many are asked for, the slots run.
    assert!(run(50_000, 64.0).1.running > 7.9);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn more_adapters_of_more_rank_never_hold_or_cost_less(
        slots in 1u64..24, rank in 1u64..65, more in 1u64..16, model in 0usize..3
    ) {
        let model = ["llama-3.1-8b", "qwen3-32b", "mixtral-8x7b"][model];
        let at = |loras, lora_rank| ask(&asked(model, "4xh100", Some(Loras { loras, lora_rank, ..Loras::default() })));
        let (one, wide, many) = (at(slots, rank), at(slots, rank + more), at(slots + more, rank));
        let bytes = |a: &Answer| a.loras.as_ref().unwrap().slots_bytes;
        prop_assert!(bytes(&one) < bytes(&wide) && bytes(&one) < bytes(&many));
        prop_assert!(tpot(&one) <= tpot(&wide) * (1.0 + 1e-9) && tpot(&one) <= tpot(&many) * (1.0 + 1e-9));
        let card = one.loras.as_ref().unwrap();
        prop_assert!(card.base_tpot_ms <= tpot(&one) && card.base_room >= one.served.as_ref().unwrap().room);
    }
}

#[test]
fn who_waits_for_a_slot_is_offered_more_of_them() {
    let loras = Loras { loras: 16, lora_rank: 64, lora_count: Some(200), ..Loras::default() };
    let mut r = asked("llama-3.1-8b", "h100", Some(loras));
    (r.concurrency, r.changes) = (Some(64.0), true);
    let a = ask(&r);
    let slots = a.changes.iter().find(|c| c.what.says == "slots_of").expect("more slots");
    assert!(slots.gain.unwrap() > 0.3, "{slots:?}");
    assert_eq!(a.changes.iter().filter(|c| c.what.says == "slots_of").count(), 1);
}

#[test]
fn slots_that_leave_no_cache_are_named_as_what_is_waited_for() {
    let loras = Loras { loras: 22, lora_rank: 64, lora_count: Some(200), ..Loras::default() };
    let mut r = asked("mixtral-8x7b", "2xh100", Some(loras));
    (r.concurrency, r.degrees.tp, r.changes) = (Some(64.0), Some(2), true);
    let a = ask(&r);
    let said = &a.loras.as_ref().unwrap().says;
    assert!(said.with.contains_key("wait_memory") && !said.with.contains_key("wait"), "{said:?}");
    let slots = &a.changes[0];
    assert!(slots.what.says == "slots_of" && slots.gain.unwrap() > 0.5, "{:?}", a.changes);
}
