//! Any text as flags of any question, as a page or a terminal types them: a request that reads back, or a clear error; never a panic.
//! The first byte chooses the question; each line is a flag's number and what is typed for it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rackmath::Catalog;
use rackmath::ask::{Question, Terms};
use rackmath::field::{self, Field};
use rackmath_units::{Cancel, Effort};
use serde_json::{Map, Value};
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(rackmath_catalog::embedded);
static FIELDS: LazyLock<Vec<(Question, Vec<Field>)>> =
    LazyLock::new(|| Question::ALL.iter().map(|q| (*q, q.fields())).collect());

fuzz_target!(|data: &[u8]| {
    let [which, rest @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let (question, fields) = &FIELDS[usize::from(*which) % FIELDS.len()];
    let mut words = Map::new();
    for line in text.lines().take(8) {
        let Some(first) = line.chars().next() else { continue };
        let Some(field) = fields.get(first as usize % fields.len().max(1)) else { continue };
        words.insert(field.flag.clone(), Value::String(line[first.len_utf8()..].to_owned()));
    }
    match field::typed(fields, &words) {
        Ok(request) => {
            // Long work is not wanted: what is refused is refused before it.
            let terms = Terms { effort: Effort { threads: 1, cancel: Cancel::after(3) }, ..Terms::default() };
            let simulates = matches!(question, Question::Own | Question::Lecture);
            if !simulates && let Err(error) = question.answer(&CATALOG, request, &terms) {
                assert!(error.to_string().len() < 6_000);
            }
        }
        Err(error) => assert!(error.to_string().len() < 6_000),
    }
});
