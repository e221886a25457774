//! Every remark has words, and every word is said.

use rackmath::remark::Remark;
use rackmath_report::words::{templates, words};
use std::collections::{BTreeMap, BTreeSet};
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

/// Names of the values in a template.
fn values(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).map(|rest| rest.split(['}', ':', '|']).next().unwrap())
}

#[test]
fn every_remark_has_words_and_its_values() {
    let (mut files, mut used) = (Vec::new(), BTreeSet::new());
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../rackmath/src"), &mut files);
    let known: BTreeMap<_, _> = templates().collect();
    assert_eq!(known.len(), templates().count(), "a name stands twice");
    for file in files.iter().map(|file| file.split("mod tests {").next().unwrap()) {
        // A name stands in the words it begins, or in a choice of names: `says(if .. { "one" } else { "other" })`.
        let named = known.keys().copied().filter(|name| file.contains(&format!("\"{name}\"")));
        for said in file.split(" says(\"").skip(1).map(|rest| rest.split('"').next().unwrap()).chain(named) {
            let template = known.get(said).unwrap_or_else(|| panic!("{said} has no words"));
            used.insert(said);
            for value in values(template) {
                assert!(file.contains(&format!("\"{value}\"")), "{said}: nobody gives {value}");
            }
        }
    }
    // A page may say the same in other words.
    let mut pages = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/text"), &mut pages);
    used.extend(known.keys().filter(|name| pages.iter().any(|page| page.contains(&format!("says: \"{name}\"")))));
    let idle: Vec<_> = known.keys().filter(|name| !used.contains(**name)).collect();
    assert!(idle.is_empty(), "never said: {idle:?}");
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
