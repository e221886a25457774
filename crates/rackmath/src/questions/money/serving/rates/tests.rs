//! Predicted, given and board rates, against the estimate and against each other.

use super::*;
use crate::remark::Part;
use crate::setting::resolve;
use crate::{estimate, setting};

fn ask(setting: &Setting, q: &RatesRequest) -> Result<RatesCard, Error> {
    let catalog = rackmath_catalog::embedded();
    let r = setting::resolve(&catalog, setting)?;
    rates(&catalog, setting, &r, q)
}

fn on(model: &str, machine: &str) -> Setting {
    Setting { model: model.into(), on: machine.into(), ..Setting::default() }
}

#[test]
fn a_model_known_layer_by_layer_is_predicted() {
    let a = ask(&on("llama-3.1-70b", "8xh100"), &RatesRequest::default()).unwrap();
    for card in [&a.prefill, &a.decode] {
        assert_eq!(card.source, Origin::Predicted);
        assert!(card.tok_s.low < card.tok_s.value && card.tok_s.value < card.tok_s.high);
        assert!(["engine", "chips"].iter().all(|name| card.words.with.contains_key(*name)), "{:?}", card.words);
    }
    // A rate that is given stays and the other is predicted.
    let q = RatesRequest { decode_tok_s: Some(1850.0), ..Default::default() };
    let a = ask(&on("llama-3.1-70b", "8xh100"), &q).unwrap();
    assert_eq!((a.decode.tok_s.value, a.decode.source), (1850.0, Origin::Given));
    assert_eq!(a.prefill.source, Origin::Predicted);
}

#[test]
fn decode_is_what_an_estimate_of_two_pools_decodes() {
    let setting = on("llama-3.1-70b", "8xh100");
    let a = ask(&setting, &RatesRequest { batch: Some(64.0), context: Some(1500.0), ..Default::default() }).unwrap();
    let (concurrency, usual) = (Some(64.0), estimate::Request::default());
    let q = estimate::Request { setting, concurrency, isl: 1e3, osl: 1e3, prefix_hit: 1.0, changes: false, ..usual };
    let card = estimate::answer(&rackmath_catalog::embedded(), &q).unwrap();
    // Prompts found in the cache cost next to nothing: the estimate then decodes nearly all the time.
    let served = card.served.expect("fits").output_tok_s_per_chip.value;
    assert!((a.decode.tok_s.value / served - 1.0).abs() < 0.1, "{} {served}", a.decode.tok_s.value);
}

#[test]
fn no_prediction_beats_the_board() {
    let catalog = rackmath_catalog::embedded();
    for (model, machine) in [("deepseek-v3", "gb200-nvl72"), ("llama-3.1-70b", "8xh100"), ("gpt-oss-120b", "hgx-b200")]
    {
        let setting = on(model, machine);
        let r = resolve(&catalog, &setting).unwrap();
        let full = RatesRequest { batch: Some(512.0), ..Default::default() };
        let bound = RatesRequest { prefill_efficiency: Some(1.0), decode_efficiency: Some(1.0), ..full.clone() };
        let a = rates(&catalog, &setting, &r, &full).unwrap();
        let b = rates(&catalog, &setting, &r, &bound).unwrap();
        assert_eq!((a.prefill.source, b.prefill.source), (Origin::Predicted, Origin::Board));
        // The board's prefill is one prompt on the whole machine, which cannot fill a mixture on a rack; a dense model can.
        assert!(a.prefill.tok_s.value < b.prefill.tok_s.value || model != "llama-3.1-70b", "{model} {machine}");
        assert!(a.decode.tok_s.value < b.decode.tok_s.value, "{model} {machine}");
    }
}

#[test]
fn totals_alone_and_what_does_not_fit_take_the_board_and_say_why() {
    let a = ask(&on("deepseek-v3", "8xh100"), &RatesRequest::default()).unwrap();
    assert!(
        a.decode.source == Origin::Board
            && matches!(&a.decode.words.with["because"], Part::Remark(r) if r.says == "board_only"),
        "{:?}",
        a.decode.words
    );
    let must = RatesRequest { rates: RatesFrom::Predicted, ..Default::default() };
    assert!(ask(&on("deepseek-v3", "8xh100"), &must).unwrap_err().to_string().contains("does not fit"));
}

#[test]
fn a_usual_limit_that_nothing_keeps_is_no_limit_and_one_that_is_asked_for_is() {
    // 16 GB of weights at 0.3 TB/s take 53 ms: no batch of Llama 3.1 8B on an L4 has a token in 50.
    let decode = |tpot_ms: Option<f64>| {
        let q = RatesRequest { tpot_ms, ..Default::default() };
        ask(&on("llama-3.1-8b", "l4"), &q).unwrap().decode
    };
    let (usual, asked, loose) = (decode(None), decode(Some(50.0)), decode(Some(150.0)));
    let said = |card: &RateCard| card.limit.as_ref().map(|limit| limit.says.clone());
    assert_eq!(said(&usual).as_deref(), Some("usual_limit_raised"));
    assert_eq!(said(&asked).as_deref(), Some("limit_unmet"));
    assert_eq!(said(&loose), None);
    assert!(asked.late && !usual.late && usual.tok_s.value > 3.0 * asked.tok_s.value, "{usual:?} {asked:?}");
    let Some(Part::Number(took)) = usual.limit.as_ref().unwrap().with.get("took") else { panic!("{usual:?}") };
    assert_eq!(decode(Some(took * 1e3)).tok_s, usual.tok_s);
    // One sequence of Qwen3 32B on two L40S takes 41 ms: a limit of 50 would leave no room for a second.
    let tight = |tpot_ms| ask(&on("qwen3-32b", "2xl40s"), &RatesRequest { tpot_ms, ..Default::default() }).unwrap();
    let (usual, asked) = (tight(None).decode, tight(Some(50.0)).decode);
    assert!(!asked.late && usual.tok_s.value > 3.0 * asked.tok_s.value, "{usual:?} {asked:?}");
    // Where the usual one leaves room, nothing is said.
    let h100 = ask(&on("llama-3.1-8b", "h100"), &RatesRequest::default()).unwrap().decode;
    assert_eq!(
        h100,
        ask(&on("llama-3.1-8b", "h100"), &RatesRequest { tpot_ms: Some(50.0), ..Default::default() }).unwrap().decode
    );
    assert_eq!(h100.limit, None);
}
