use super::*;
use rackmath_units::float;

fn ask(request: Request) -> Answer {
    answer(&rackmath_catalog::embedded(), &request).expect("answered")
}

fn priced(input: f64, output: f64) -> Request {
    Request {
        input_usd_per_mtok: Some(input),
        output_usd_per_mtok: Some(output),
        log2_points: 14,
        ..Request::default()
    }
}

fn of<'a>(a: &'a Answer, name: &str) -> &'a UnknownCard {
    a.unknowns.iter().find(|u| u.name.starts_with(name)).expect("an unknown")
}

/// Shift of the median and width of the wider interval, in powers of ten.
fn moved(a: &Answer, b: &Answer, name: &str) -> (f64, f64) {
    let (x, y) = (of(a, name), of(b, name));
    let width = |u: &UnknownCard| float::log10(u.p90 / u.p10);
    (float::log10(y.p50 / x.p50), width(x).max(width(y)))
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
    assert!(active.inside == Some(true) && active.bits > 1.3, "{active:?}");
    assert!((active.truth.unwrap() / 37.55e9 - 1.0).abs() < 0.01);
    // Two prices say nothing about the cache, and the answer says so instead of decoding a size.
    assert!(of(&a, "KV stored").bits < 0.1 && a.shapes.is_empty());
}

#[test]
fn a_ratio_that_never_moves_is_policy_and_says_nothing_about_kv() {
    let request = Request {
        vendor: Some("anthropic".into()),
        cached_usd_per_mtok: Some(0.5),
        write_5m_usd_per_mtok: Some(6.25),
        write_1h_usd_per_mtok: Some(10.0),
        ..priced(5.0, 25.0)
    };
    let a = ask(request.clone());
    assert_eq!(a.policies.len(), 3, "{:?}", a.policies);
    assert!(a.policies.iter().all(|p| p.contains("policy, not physics")));
    assert!(of(&a, "KV stored").bits < 0.01, "{:?}", of(&a, "KV stored"));
    // DeepSeek's cached ratio moves, so there the same price tells.
    let moving =
        ask(Request { vendor: Some("deepseek".into()), cached_usd_per_mtok: Some(0.028), ..priced(0.28, 0.42) });
    assert!(moving.policies.is_empty() && of(&moving, "KV stored").bits > 0.5);
}

#[test]
fn e1_sparse_attention_cut_prices_but_not_the_model() {
    let list = |input, output, cached| {
        ask(Request { vendor: Some("deepseek".into()), cached_usd_per_mtok: Some(cached), ..priced(input, output) })
    };
    let (shift, width) = moved(&list(0.56, 1.68, 0.07), &list(0.28, 0.42, 0.028), "active");
    assert!(shift < 0.0 && shift.abs() < width, "{shift} {width}");
}

#[test]
fn e2_lowest_list_prices_give_the_kv_ratio_and_launch_prices_do_not() {
    // V3.2 stores 42.9 kB, V4-Pro 4.4 kB: a ratio of 9.7. Cached reads: 0.028, then 0.0036 (lowest) or 0.145 (launch).
    let kv = |input, output, cached| {
        let request =
            Request { vendor: Some("deepseek".into()), cached_usd_per_mtok: Some(cached), ..priced(input, output) };
        of(&ask(request), "KV stored").p50
    };
    let old = kv(0.28, 0.42, 0.028);
    let lowest = old / kv(0.435, 0.87, 0.003_625);
    assert!((9.7 / 1.5..=9.7 * 1.5).contains(&lowest), "{lowest}");
    let launch = old / kv(1.74, 3.48, 0.145);
    assert!(launch < 1.0, "launch prices point the wrong way: {launch}");
}

#[test]
fn e3_e5_price_cuts_move_the_size_by_less_than_the_error_bars() {
    let openai = |input: f64| ask(Request { vendor: Some("openai".into()), ..priced(input, 4.0 * input) });
    let (shift, width) = moved(&openai(10.0), &openai(2.0), "active");
    assert!(shift < 0.0 && shift.abs() <= width, "E3: {shift} {width}");
    let flat = Request { vendor: Some("anthropic".into()), ..priced(5.0, 25.0) };
    let tiered = Request {
        long_above_tokens: Some(200e3),
        long_input_usd_per_mtok: Some(10.0),
        long_output_usd_per_mtok: Some(37.5),
        ..flat.clone()
    };
    let (shift, width) = moved(&ask(tiered), &ask(flat), "active");
    assert!(shift.abs() < 0.1 * width, "E5: {shift} {width}");
}

#[test]
fn e4_a_third_of_the_premium_moves_x_but_not_the_size() {
    let fast = |m| {
        ask(Request {
            vendor: Some("anthropic".into()),
            fast_price_multiple: Some(m),
            fast_speed_multiple: Some(2.5),
            ..priced(5.0, 25.0)
        })
    };
    let (dear, cheap) = (fast(6.0), fast(2.0));
    let x = |a: &Answer| a.closed.iter().find(|c| c.what.starts_with("x of")).expect("a closed form").value;
    assert!((x(&dear) - 1.8).abs() < 1e-9 && (x(&cheap) - 3.0).abs() < 1e-9);
    let (shift, width) = moved(&dear, &cheap, "active");
    assert!(shift.abs() < 0.3 * width, "{shift} {width}");
}

#[test]
fn e6_one_model_at_three_prices_has_one_wide_kv_not_three() {
    // V4-Pro's cached read within six months: 0.145, 0.0036, 0.022.
    let kv = |cached| {
        let request =
            Request { vendor: Some("deepseek".into()), cached_usd_per_mtok: Some(cached), ..priced(0.435, 0.87) };
        let a = ask(request);
        (of(&a, "KV stored").p10, of(&a, "KV stored").p50)
    };
    let (low, middle, high) = (kv(0.003_625), kv(0.022), kv(0.145));
    assert!(low.1 < middle.1 && middle.1 < high.1);
    // 4.4 kB is the truth: only the lowest list price is of its order, the dearer ones are upper bounds.
    assert!(low.1 < 2.5 * 4_400.0 && high.1 > 10.0 * 4_400.0, "{low:?} {high:?}");
}

#[test]
fn a_measured_speed_narrows_the_size() {
    let a = ask(priced(0.5, 2.0));
    let b = ask(Request { tokens_per_s: Some(80.0), ..priced(0.5, 2.0) });
    let width = |a: &Answer| float::log10(of(a, "active").p90 / of(a, "active").p10);
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
    assert!(a.closed.iter().any(|c| c.note.contains("contradict")), "{:?}", a.closed);
    assert!(!a.shapes.is_empty() && a.shapes_of.contains("price step"));
}

#[test]
fn absurd_values_are_refused_by_name() {
    let wrong = |request: Request| answer(&rackmath_catalog::embedded(), &request).unwrap_err().to_string();
    assert!(wrong(priced(-1.0, 2.0)).starts_with("input = -1"));
    assert!(wrong(priced(1.0, 114_000.0)).starts_with("output = 114000"));
    assert!(wrong(Request { fast_price_multiple: Some(6.0), ..Request::default() }).contains("both"));
    assert!(wrong(Request { blind: Some("deepsek-v3.1".into()), ..Request::default() }).contains("deepseek-v3.1"));
    assert!(wrong(Request { vendor: Some("antropic".into()), ..Request::default() }).contains("anthropic"));
    assert!(wrong(Request { log2_points: 30, ..Request::default() }).contains("12 to 20"));
}
