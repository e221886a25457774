//! `rackmath practice`

use crate::args::{Common, PracticeArgs};
use crate::failure::Failure;
use crate::output;
use rackmath::{Catalog, practice};
use rackmath_report::text;

pub fn run(common: &Common, catalog: &Catalog, a: &PracticeArgs) -> Result<(), Failure> {
    let given = a.answers.iter().map(|word| number(word)).collect::<Result<Vec<_>, _>>()?;
    let request = practice::Request { topic: a.topic.clone(), seed: a.seed, count: a.number, given };
    let answer = practice::answer(catalog, &request)?;
    output::answer(common, &answer, |style| text::practice(&answer, a.cards, a.worked, style))
}

/// A number, or a dash for a problem left open.
fn number(word: &str) -> Result<Option<f64>, Failure> {
    let word = word.trim();
    if word.is_empty() || word == "-" {
        return Ok(None);
    }
    let value = word.parse::<f64>().ok().filter(|v| v.is_finite());
    value.map(Some).ok_or_else(|| {
        Failure::new(format!("--answers {word:?}")).hint("expected numbers such as 250,2810 with - for one left open")
    })
}
