//! Every scaling law of the catalogue loads with its source; a user's file is read or refused with a reason.

use rackmath_spec::{Kind, LawForm};

#[test]
fn every_law_loads_with_a_source_and_a_range() {
    let catalog = rackmath_catalog::embedded();
    let ids: Vec<String> = catalog.ids(Kind::Laws).map(str::to_owned).collect();
    assert!(ids.len() >= 12, "{ids:?}");
    for id in &ids {
        let law = catalog.scaling_law(id).unwrap_or_else(|e| panic!("{e}"));
        assert!(law.source.contains("20") && !law.fitted.source.is_empty(), "{id}");
    }
    assert!(matches!(&catalog.scaling_law("clark-2022").unwrap().form, LawForm::Routed(laws) if laws.len() == 3));
    assert_eq!(catalog.scaling_law("epoch").unwrap().id, "besiroglu-2024");
    assert!(catalog.scaling_law("besiroglu").unwrap().errors.is_some());
}

#[test]
fn unrounded_coefficients_come_from_their_logarithms() {
    let LawForm::Chinchilla(law, _) = rackmath_catalog::embedded().scaling_law("hoffmann-2022").unwrap().form else {
        panic!()
    };
    // e^6.0073404, e^6.0179186, e^0.5267228 by hand.
    assert!((law.a - 406.4).abs() < 0.1 && (law.b - 410.7).abs() < 0.1 && (law.e - 1.6934).abs() < 1e-3, "{law:?}");
}

#[test]
fn every_published_run_loads_and_names_a_chip() {
    let catalog = rackmath_catalog::embedded();
    for id in catalog.ids(Kind::Runs) {
        let run = catalog.training_run(id).unwrap_or_else(|e| panic!("{e}"));
        catalog.chip(run.chip.as_deref().unwrap()).unwrap_or_else(|e| panic!("{id}: {e}"));
        assert!(!run.source.is_empty());
    }
    assert_eq!(catalog.training_run("llama-3-405b").unwrap().stops, Some((419.0, 54.0)));
}

const OWN: &str = r#"
name = "Ours"
form = "chinchilla"
as_of = "2026-11"
source = "our own runs, 2026"
[coefficients]
e = 1.5
a = 400.0
b = 2000.0
alpha = 0.35
beta = 0.36
[fitted]
params = ["100M", "7B"]
source = "our own runs, 2026"
"#;

#[test]
fn a_users_law_is_added_and_wins() {
    let mut catalog = rackmath_catalog::embedded();
    catalog.add(Kind::Laws, "besiroglu-2024", OWN, None).unwrap();
    assert_eq!(catalog.scaling_law("besiroglu-2024").unwrap().name, "Ours");
}

#[test]
fn a_wrong_law_is_refused_with_what_was_expected() {
    let mut catalog = rackmath_catalog::embedded();
    let mut refused =
        |from: &str, to: &str| catalog.add(Kind::Laws, "ours", &OWN.replace(from, to), None).unwrap_err().to_string();
    for (from, to, says) in [
        ("chinchilla", "chinchila", "did you mean \"chinchilla\"?"),
        ("a = 400.0", "a = -400.0", "expected more than 0"),
        ("a = 400.0\n", "", "coefficients.a = nothing"),
        ("a = 400.0", "a = 400.0\nz = 1.0", "only coefficients of its form"),
        ("\"7B\"", "\"7 apples\"", "fitted.params[1]: \"7 apples\" is not a number of parameters"),
        ("\"7B\"", "\"7M\"", "a low end, then a high end"),
        ("alpha = 0.35", "alpha = nan", "a finite number"),
    ] {
        let error = refused(from, to);
        assert!(error.contains(says), "{error}");
    }
}
