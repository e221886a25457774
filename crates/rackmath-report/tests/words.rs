//! Every remark has words, and every word is said.

use rackmath::ask::{Question, Terms};
use rackmath::remark::Remark;
use rackmath_report::words::{templates, words};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// The text of every source file of the questions.
fn sources(folder: &Path, into: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if !path.ends_with("tests.rs") {
            into.push(std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_remark_has_words_and_every_template_is_said() {
    let mut files = Vec::new();
    // The questions, and what is measured beside them.
    for folder in ["rackmath/src", "rackmath-measure/src", "rackmath-cli/src"] {
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder), &mut files);
    }
    let known: BTreeMap<_, _> = templates().collect();
    assert_eq!(known.len(), templates().count(), "a name stands twice");
    let all: Vec<_> = files.iter().map(|file| file.split("mod tests {").next().unwrap()).collect();
    for said in all.iter().flat_map(|file| file.split(" says(\"").skip(1)) {
        let said = said.split('"').next().unwrap();
        assert!(known.contains_key(said), "{said} has no words");
    }
    // A page may say the same in other words.
    let mut pages = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/text"), &mut pages);
    let all: Vec<_> = all.into_iter().chain(pages.iter().map(String::as_str)).collect();
    let idle = |name: &&&str| !all.iter().any(|file| file.contains(&format!("\"{name}\"")));
    assert_eq!(known.keys().filter(idle).collect::<Vec<_>>(), Vec::<&&str>::new(), "never said");
}

/// Every remark in an answer is known, and has what its words speak of; what stands in brackets may be missing.
fn complete(value: &Value, known: &BTreeMap<&str, &str>) {
    if let Some(said) = value["says"].as_str() {
        let template = known.get(said).unwrap_or_else(|| panic!("{value} has no words"));
        let always = template
            .split('[')
            .enumerate()
            .map(|(i, part)| if i == 0 { part } else { part.split_once(']').unwrap().1 });
        for name in
            always.flat_map(|part| part.split('{').skip(1)).map(|rest| rest.split(['}', ':', '|']).next().unwrap())
        {
            assert!(value.get(name).is_some(), "{value} without {name}");
        }
    }
    let inner = value.as_object().map(|o| o.values()).into_iter().flatten();
    inner.chain(value.as_array().into_iter().flatten()).for_each(|value| complete(value, known));
}

#[test]
fn remarks_of_every_question_are_complete() {
    let (catalog, known) = (rackmath_catalog::embedded(), templates().collect());
    for question in Question::ALL {
        if let Ok(reply) = question.answer(&catalog, Map::new(), &Terms::default()) {
            complete(&serde_json::from_str(&reply.json().unwrap()).unwrap(), &known);
        }
    }
}

#[test]
fn what_a_stranger_sends_is_said_as_it_is() {
    let deep = (0..50).fold("\"x\"".to_owned(), |inner, _| format!(r#"{{"says": "no_such", "a": {inner}, "b": -1}}"#));
    for (remark, text) in [
        ("\"as it was\"", "as it was"),
        (r#"{"says": "no_such", "a": 0.5, "b": ["x", -2]}"#, "no_such a 0.5 b x, -2"),
        (r#"{"says": "said"}"#, ""),
    ] {
        assert_eq!(words(&serde_json::from_str::<Remark>(remark).unwrap()), text);
    }
    assert!(words(&serde_json::from_str::<Remark>(&deep).unwrap()).len() < 1000);
}

#[test]
fn one_of_something_is_said_of_one() {
    use rackmath_report::words::of_one;
    for (text, said) in [
        ("1 users and 1 requests per second", "1 user and 1 request per second"),
        ("for 1 more replicas of 1 chips", "for 1 more replica of 1 chip"),
        ("(1 layers)", "(1 layer)"),
        ("on 1 chips, 1 micro-batches", "on 1 chip, 1 micro-batch"),
        ("11 users, 0.1 requests, 1,001 tokens, v1 runs", "11 users, 0.1 requests, 1,001 tokens, v1 runs"),
        ("1 is less, 1 x chips, 1 ", "1 is less, 1 x chips, 1 "),
    ] {
        assert_eq!(of_one(text), said);
    }
}
