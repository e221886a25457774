//! Own machines against a provider: equal where it is said, dearer below, cheaper above.

use rackmath::own::{Request, answer};
use rackmath::setting::Setting;

fn request() -> Request {
    let setting = Setting { model: "llama-3.1-70b".into(), on: "8xh100".into(), ..Setting::default() };
    Request { setting, provider_price: Some("0.6/2.4/0.06".into()), ..Request::default() }
}

#[test]
fn at_the_break_even_both_cost_the_same_to_the_cent() {
    let catalog = rackmath_catalog::embedded();
    for hit in [0.0, 0.5, 0.9] {
        let a = answer(&catalog, &Request { hit, ..request() }).unwrap();
        for c in a.changes.iter().filter(|c| c.equal) {
            assert!((c.own_usd_per_day - c.provider_usd_per_day).abs() < 0.005, "{c:?}");
        }
        let Some(from) = a.cheaper_from_requests_per_day else { continue };
        let at = |x: f64| {
            let q = Request { hit, requests_per_day: Some(x), ..request() };
            let t = answer(&catalog, &q).unwrap().there.unwrap();
            t.own_usd_per_day - t.provider_usd_per_day
        };
        assert!(at(from * 0.99) > 0.0 && at(from * 1.01) < 0.0);
        let share = a.cheaper_from_utilisation.unwrap();
        assert!((0.0..=1.0).contains(&share), "{share}");
    }
}

#[test]
fn a_decoding_request_holds_its_prompt_and_half_of_its_answer() {
    let catalog = rackmath_catalog::embedded();
    let setting = Setting { model: "llama-3.1-8b".into(), on: "rtx-4090".into(), ..Setting::default() };
    let mut q = Request { setting, answer: 300.0, ..request() };
    q.rates.prompt = 1000.0;
    let full = |q: &Request| answer(&catalog, q).unwrap().full_requests_per_day;
    let derived = full(&q);
    q.rates.context = Some(1150.0);
    assert_eq!(derived, full(&q));
    q.rates.context = Some(4096.0);
    assert!(full(&q) < derived);
}

#[test]
fn a_machine_that_does_not_hold_the_model_is_never_cheaper() {
    let setting = Setting { model: "deepseek-v3".into(), on: "8xa100".into(), ..Setting::default() };
    let a =
        answer(&rackmath_catalog::embedded(), &Request { setting, requests_per_day: Some(1e6), ..request() }).unwrap();
    assert_eq!(Some(&a.verdict), a.rates.nobody_serves());
    assert!(a.cheaper_from_requests_per_day.is_none() && a.there.is_none() && a.changes.is_empty());
    assert!(a.hosts.iter().all(|h| h.cheaper_from_requests_per_day.is_none()));
}

#[test]
fn nonsense_is_refused() {
    let catalog = rackmath_catalog::embedded();
    for (bad, word) in [
        (Request { provider_price: Some("cheap".into()), ..request() }, "0.6/2.4/0.06"),
        (Request { reserved_usd_per_hour: Some(40.0), ..request() }, "reserved"),
        (Request { route: Some("qwen3-8b".into()), ..request() }, "60%"),
        (Request { route: Some("qwen3-8b=160%".into()), ..request() }, "60%"),
        (Request { peak: 0.5, ..request() }, "peak"),
        (Request { provider: Some("nobody".into()), provider_price: None, ..request() }, "nobody"),
    ] {
        let said = answer(&catalog, &bad).unwrap_err().to_string();
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn a_small_model_for_all_requests_replaces_the_large_one() {
    let catalog = rackmath_catalog::embedded();
    let q = Request { route: Some("llama-3.1-8b=100%".into()), requests_per_day: Some(1e6), ..request() };
    let routed = answer(&catalog, &q).unwrap().route.unwrap();
    assert_eq!(routed.machines[1], 0);
    assert!(routed.after_usd_per_day < routed.before_usd_per_day);
    let none = answer(&catalog, &Request { route: Some("llama-3.1-8b=0%".into()), ..q }).unwrap().route.unwrap();
    assert_eq!(none.before_usd_per_day, none.after_usd_per_day);
}

/// `estimate qwen3-235b-a22b --on 8xh200 --isl 3000 --osl 600 --solve rate --tpot 50ms` finds 4.81 a second with tp8 and 5.00 with tp4 dp2.
#[test]
fn a_machine_carries_what_whole_instances_do_and_no_more_than_parts_of_them_would() {
    let setting = Setting { model: "qwen3-235b-a22b".into(), on: "8xh200".into(), ..Setting::default() };
    let mut q = Request { setting, answer: 600.0, hit: 0.0, ..request() };
    q.rates.prompt = 3000.0;
    let a = answer(&rackmath_catalog::embedded(), &q).unwrap();
    let rate = a.full_requests_per_day / 86_400.0;
    assert!((4.6..5.2).contains(&rate), "{rate}");
    let seconds = 3000.0 / a.rates.prefill.tok_s.value + 600.0 / a.rates.decode.tok_s.value;
    assert!(rate <= a.chips as f64 / seconds, "{rate}");
}
