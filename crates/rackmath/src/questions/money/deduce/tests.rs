use super::*;
use rackmath_units::float;

fn ask(request: Request) -> Answer {
    answer_on(&rackmath_catalog::embedded(), &request, 1).expect("answered")
}

fn priced(input: f64, output: f64) -> Request {
    let (input_usd_per_mtok, output_usd_per_mtok) = (Some(input), Some(output));
    Request { input_usd_per_mtok, output_usd_per_mtok, log2_points: 14, ..Request::default() }
}

fn of<'a>(a: &'a Answer, name: &str) -> &'a UnknownCard {
    a.unknowns.iter().find(|u| u.name.starts_with(name)).expect("an unknown")
}

/// The same by a vendor, with a price for cached reads.
fn sold(vendor: &str, input: f64, output: f64, cached: Option<f64>) -> Request {
    Request { vendor: Some(vendor.into()), cached_usd_per_mtok: cached, ..priced(input, output) }
}

/// Width of an interval, in powers of ten.
fn width(a: &Answer) -> f64 {
    float::log10(of(a, "active").p90 / of(a, "active").p10)
}

/// Shift of the median of the active parameters and width of the wider interval, in powers of ten.
fn moved(a: &Answer, b: &Answer) -> (f64, f64) {
    (float::log10(of(b, "active").p50 / of(a, "active").p50), width(a).max(width(b)))
}

#[test]
fn no_data_is_the_prior() {
    let a = ask(Request::default());
    assert!(a.unknowns.iter().all(|u| u.bits == 0.0 && u.p50 == u.prior_p50), "{:?}", a.unknowns);
    assert!(a.data.is_empty() && a.refused.is_none());
}

#[test]
fn a_hidden_model_is_found_without_its_own_prices_in_the_level() {
    // 37.6 billion active (published config); prices of 11 hosts.
    let a = ask(Request { blind: Some("deepseek-v3.1".into()), ..Request::default() });
    let active = of(&a, "active");
    assert!(active.inside == Some(true) && active.bits > 0.8, "{active:?}");
    assert!((active.truth.unwrap() / 37.55e9 - 1.0).abs() < 0.01);
    // Two prices say nothing about the cache, and the answer says so instead of decoding a size.
    assert!(of(&a, "KV stored").bits < 0.1 && a.shapes.is_empty());
}

#[test]
fn a_ratio_that_never_moves_is_policy_and_says_nothing_about_kv() {
    let (write_5m_usd_per_mtok, write_1h_usd_per_mtok) = (Some(6.25), Some(10.0));
    let list = sold("anthropic", 5.0, 25.0, Some(0.5));
    let a = ask(Request { write_5m_usd_per_mtok, write_1h_usd_per_mtok, ..list });
    assert_eq!(a.policies.len(), 3, "{:?}", a.policies);
    assert!(a.policies.iter().all(|p| p.says == "policy_not_physics"));
    assert!(of(&a, "KV stored").bits < 0.01, "{:?}", of(&a, "KV stored"));
    // DeepSeek's cached ratio moves, so there the same price tells.
    let moving = ask(sold("deepseek", 0.28, 0.42, Some(0.028)));
    assert!(moving.policies.is_empty() && of(&moving, "KV stored").bits > 0.5);
}

#[test]
fn e1_e3_e5_price_cuts_move_the_size_by_less_than_the_error_bars() {
    // Sparse attention, and a cut by a factor of five: prices fall, the model less than the error bars.
    for (before, after) in [
        (sold("deepseek", 0.56, 1.68, Some(0.07)), sold("deepseek", 0.28, 0.42, Some(0.028))),
        (sold("openai", 10.0, 40.0, None), sold("openai", 2.0, 8.0, None)),
    ] {
        let (shift, width) = moved(&ask(before), &ask(after));
        assert!(shift < 0.0 && shift.abs() <= width, "{shift} {width}");
    }
    let flat = sold("anthropic", 5.0, 25.0, None);
    let tiered = Request {
        long_above_tokens: Some(200e3),
        long_input_usd_per_mtok: Some(10.0),
        long_output_usd_per_mtok: Some(37.5),
        ..flat.clone()
    };
    let (shift, width) = moved(&ask(tiered), &ask(flat));
    assert!(shift.abs() < 0.1 * width, "E5: {shift} {width}");
}

#[test]
fn e2_e6_only_the_lowest_list_price_gives_kv() {
    let kv = |input, output, cached| of(&ask(sold("deepseek", input, output, Some(cached))), "KV stored").p50;
    // V3.2 stores 42.9 kB, V4-Pro 4.4 kB: a ratio of 9.7. Cached reads: 0.028, then 0.0036 (lowest) or 0.145 (launch).
    let (old, low) = (kv(0.28, 0.42, 0.028), kv(0.435, 0.87, 0.003_625));
    assert!((9.7 / 1.5..=9.7 * 1.5).contains(&(old / low)), "{old} {low}");
    let launch = old / kv(1.74, 3.48, 0.145);
    assert!(launch < 1.0, "launch prices point the wrong way: {launch}");
    // V4-Pro's cached read within six months: 0.145, 0.0036, 0.022: one wide KV, not three. 4.4 kB is the truth: only the
    // lowest list price is of its order, the dearer ones are upper bounds.
    let (middle, high) = (kv(0.435, 0.87, 0.022), kv(0.435, 0.87, 0.145));
    assert!(low < middle && middle < high && low < 2.5 * 4_400.0 && high > 10.0 * 4_400.0, "{low} {high}");
}

#[test]
fn e4_a_third_of_the_premium_moves_x_but_not_the_size() {
    let fast = |m| Request {
        fast_price_multiple: Some(m),
        fast_speed_multiple: Some(2.5),
        ..sold("anthropic", 5.0, 25.0, None)
    };
    let (dear, cheap) = (ask(fast(6.0)), ask(fast(2.0)));
    let x = |a: &Answer| a.closed.iter().find(|c| c.id == "x_of_fast_mode").expect("a closed form").value;
    assert!((x(&dear) - 1.8).abs() < 1e-9 && (x(&cheap) - 3.0).abs() < 1e-9);
    let (shift, width) = moved(&dear, &cheap);
    assert!(shift.abs() < 0.3 * width, "{shift} {width}");
}

#[test]
fn a_measured_speed_narrows_the_size() {
    let a = ask(priced(0.5, 2.0));
    let b = ask(Request { tokens_per_s: Some(80.0), ..priced(0.5, 2.0) });
    assert!(width(&b) < 0.85 * width(&a), "{} {}", width(&b), width(&a));
}

#[test]
fn contradictions_of_the_closed_forms_are_named() {
    let a = ask(Request {
        long_above_tokens: Some(200e3),
        long_input_usd_per_mtok: Some(4.0),
        long_output_usd_per_mtok: Some(18.0),
        ..priced(2.0, 12.0)
    });
    assert!(a.closed.iter().any(|c| c.note.says == "step_contradicts"), "{:?}", a.closed);
    assert!(!a.shapes.is_empty() && a.shapes_of.says == "kv_of_step");
}

#[test]
fn absurd_values_are_refused_by_name() {
    let none = Request::default();
    for (wrong, word) in [
        (priced(-1.0, 2.0), "input = -1"),
        (priced(1.0, 114_000.0), "output = 114000"),
        (Request { fast_price_multiple: Some(6.0), ..none.clone() }, "both"),
        (Request { blind: Some("deepsek-v3.1".into()), ..none.clone() }, "deepseek-v3.1"),
        (Request { vendor: Some("antropic".into()), ..none.clone() }, "anthropic"),
        (Request { log2_points: 30, ..none }, "12 to 20"),
    ] {
        assert!(answer_on(&rackmath_catalog::embedded(), &wrong, 1).unwrap_err().to_string().contains(word));
    }
}

#[test]
fn a_list_becomes_evidence() {
    let catalog = rackmath_catalog::embedded();
    let s = listed(&catalog, "opus-4.6", None).unwrap();
    assert_eq!((s.vendor.as_deref(), s.input, s.output), (Some("anthropic"), Some(5.0), Some(25.0)));
    assert_eq!((s.cached, s.write_5m, s.write_1h), (Some(0.5), Some(6.25), Some(10.0)));
    assert_eq!((s.fast_price, s.fast_speed), (Some(6.0), Some(2.5)));
    let s = listed(&catalog, "gpt-5.5", None).unwrap();
    assert_eq!(s.long_above, Some(272_000.0));
    assert!(listed(&catalog, "opsu-4.6", None).unwrap_err().to_string().contains("opus-4.6"));
    for id in catalog.ids(rackmath_spec::Kind::Prices) {
        let s = listed(&catalog, id, None).unwrap();
        assert!(s.input.is_some() && s.fast_price.is_some() == s.fast_speed.is_some(), "{id}");
    }
}
