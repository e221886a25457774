//! What was written is what is read; what was changed is named.

use super::*;
use crate::plan::answer_on;
use proptest::prelude::*;

fn request() -> Request {
    Request { disaggregated: false, tpot_ms: Some(30.0.into()), ..Request::of("llama-3.1-8b", "8xh100") }
}

/// A file of a question that was not answered.
fn bare(request: Request) -> PlanFile {
    PlanFile {
        format: FORMAT.into(),
        rackmath: VERSION.into(),
        files: Vec::new(),
        request_checksum: checksum(&serde_json::to_value(&request).unwrap()),
        request,
        chosen: None,
    }
}

fn file() -> PlanFile {
    PlanFile::of(&request(), &answer_on(&rackmath_catalog::embedded(), &request(), 1).unwrap())
}

#[test]
fn the_checksum_is_that_of_the_published_algorithm() {
    // FNV-1a 64 of "n", which stands for null: (basis xor 0x6e) times the prime.
    let null = (0xcbf2_9ce4_8422_2325_u64 ^ 0x6e).wrapping_mul(0x0100_0000_01b3);
    assert_eq!(checksum(&Value::Null), format!("{null:016x}"));
    assert_ne!(checksum(&serde_json::json!(["a", "b"])), checksum(&serde_json::json!(["ab"])));
    assert_eq!(checksum(&serde_json::json!({"a": 30.0})), checksum(&serde_json::json!({"a": 30})));
}

#[test]
fn a_file_read_back_is_the_file_and_gives_the_same_answer() {
    // So does one from when a deployment was text.
    let mut old = file();
    old.chosen.as_mut().unwrap().deployment = "TP1".into();
    assert!(old.text().contains("\"deployment\": \"TP1\""));
    for file in [file(), old] {
        let back = PlanFile::read("plan.json", &file.text()).unwrap();
        assert_eq!(back, file);
        let again = answer_on(&rackmath_catalog::embedded(), &back.request, 1).unwrap();
        assert_eq!(back.check("plan.json", again.plans.first()).unwrap(), Vec::new());
    }
}

#[test]
fn what_was_changed_is_named() {
    let text = file().text();
    let read = |from: &str, to: &str| PlanFile::read("plan.json", &text.replacen(from, to, 1));
    let refused = |from: &str, to: &str| read(from, to).unwrap_err().to_string();
    assert!(refused("\"isl\"", "\"isll\"").contains("no field \"isll\"; did you mean \"isl\""));
    assert!(refused("30.0", "20.0").contains("request_checksum"));
    assert!(refused("rackmath-plan-2", "rackmath-plan-9").contains("format = \"rackmath-plan-9\""));
    assert!(refused("{", "[").contains("plan.json"));
    let mut cheaper = file();
    cheaper.chosen.as_mut().unwrap().usd_per_mtok *= 0.5;
    let again = answer_on(&rackmath_catalog::embedded(), &cheaper.request, 1).unwrap();
    assert!(cheaper.check("plan.json", again.plans.first()).unwrap_err().to_string().contains("chosen.usd_per_mtok"));
    cheaper.rackmath = "0.0.1".into();
    assert_eq!(cheaper.check("plan.json", again.plans.first()).unwrap().len(), 1);
    let none = PlanFile { chosen: None, ..file() };
    assert!(none.check("plan.json", again.plans.first()).unwrap_err().to_string().contains("chosen = null"));
}

proptest! {
    #[test]
    fn every_number_survives_the_file(isl in 1.0..1e6_f64, tpot in prop::option::of(1e-3..1e5_f64), price in prop::option::of(0.0..1e4_f64)) {
        let mut request = Request { isl: Some(isl), tpot_ms: tpot.map(Into::into), ..request() };
        request.setting.price_usd_per_chip_hour = price;
        let file = bare(request);
        prop_assert_eq!(PlanFile::read("f", &file.text()).unwrap(), file);
    }

    #[test]
    fn one_changed_byte_is_refused_or_leaves_the_question(at in 0.0..1.0_f64, byte in b' '..=b'~') {
        let file = bare(request());
        let mut text = file.text().into_bytes();
        let at = (at * text.len() as f64) as usize;
        text[at] = byte;
        match PlanFile::read("f", &String::from_utf8(text).unwrap()) {
            Ok(back) => prop_assert_eq!(back.request, file.request),
            Err(error) => prop_assert!(error.to_string().starts_with("f: ") || error.to_string().starts_with("f (line "), "{error}"),
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,300}") {
        if let Err(error) = PlanFile::read("f", &text) {
            prop_assert!(error.to_string().len() < 4000);
        }
    }
}
