//! DeepSeek's day asked as a question, and refusals.

use super::*;

fn day() -> Request {
    Request {
        setting: Setting { on: "hgx-h800".into(), ..Setting::default() },
        rates: RatesRequest {
            prefill_tok_s: Some(73.7e3 / 8.0),
            decode_tok_s: Some(14.8e3 / 8.0),
            ..RatesRequest::default()
        },
        utilisation: 1.0,
        hit: 0.0,
        input_per_output: 608.0 / 168.0,
        sheet: Some("deepseek-reasoner".into()),
        ..Request::default()
    }
}

#[test]
fn deepseeks_day() {
    let a = answer(&Catalog::embedded(), &day()).unwrap();
    assert_eq!(a.chip_usd_per_hour, 2.0);
    assert!((a.output_usd_per_mtok / 0.30030 - 1.0).abs() < 1e-4);
    assert!((a.input_usd_per_mtok / 0.060305 - 1.0).abs() < 1e-4);
    // 608 and 168 billion tokens at that cost are the $87,072 of 226.75 nodes over a day, to 0.1 %.
    assert!((a.all_usd_per_mtok * 776e3 / 87_072.0 - 1.0).abs() < 1e-3);
    // R1's output at $2.19 is 7.3 times that; the three words differ.
    let m = a.margins.iter().find(|m| m.what.starts_with("output")).unwrap();
    assert!((m.markup / 7.29 - 1.0).abs() < 2e-3);
    assert!((m.cost_profit_margin + 1.0 - m.markup).abs() < 1e-12 && m.gross_margin < 1.0);
    assert!((a.prefill_per_decode_chip / (2291.6 / 3153.2) - 1.0).abs() < 1e-3);
}

#[test]
fn the_tornado_is_ranked_and_complete() {
    let a = answer(&Catalog::embedded(), &Request::default()).unwrap();
    assert_eq!(a.tornado.len(), 7);
    let swing = |b: &BarCard| (b.at_high_usd_per_mtok - b.at_low_usd_per_mtok).abs();
    assert!(a.tornado.windows(2).all(|w| swing(&w[0]) >= swing(&w[1])));
}

#[test]
fn an_owner_pays_for_every_part() {
    let request = Request { owner: Some(OwnerRequest::default()), ..Request::default() };
    let a = answer(&Catalog::embedded(), &request).unwrap();
    let sum: f64 = a.hour_parts.iter().map(|p| p.1).sum();
    assert!((sum / a.chip_usd_per_hour - 1.0).abs() < 1e-12);
    // Against $2.21 to $2.75 quoted for owners of a GB200.
    assert!((1.8..3.0).contains(&a.chip_usd_per_hour), "{}", a.chip_usd_per_hour);
}

#[test]
fn nonsense_is_refused() {
    let catalog = Catalog::embedded();
    for (bad, word) in [
        (Request { utilisation: 0.0, ..Request::default() }, "utilisation"),
        (Request { hit: 1.5, ..Request::default() }, "hit"),
        (Request { accepted: 0.5, ..Request::default() }, "accepted"),
        (Request { carbon_g_per_kwh: Some(-1.0), ..Request::default() }, "carbon"),
        (Request { cache_tier: "nvme-locl".into(), ..Request::default() }, "nvme-local"),
        (
            Request {
                rates: RatesRequest { decode_tok_s: Some(-3.0), ..RatesRequest::default() },
                ..Request::default()
            },
            "decode_tok_s",
        ),
        (Request { input_per_output: f64::NAN, ..Request::default() }, "input_per_output"),
    ] {
        let error = answer(&catalog, &bad).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}
