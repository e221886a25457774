//! Figures that other questions answer: each is asked as anyone would ask it, and read from the answer.

use super::{RowCard, card};
use crate::ask::{Question, Terms};
use crate::desk::prelude::*;
use rackmath_spec::validation::Asked;

/// The row with its prediction, or why there is none. No roofline stands beside it.
pub(super) fn predicted(catalog: &Catalog, row: &Asked, effort: &Effort) -> Result<RowCard, String> {
    let question = Question::find(&row.question).map_err(|e| e.to_string())?;
    if question == Question::Validate {
        return Err("a table of measurements cannot ask for tables of measurements".into());
    }
    let terms = Terms { effort: effort.clone(), today: None };
    let reply = question.answer(catalog, row.request.clone(), &terms).map_err(|e| e.to_string())?;
    let answer = serde_json::to_value(&reply).map_err(|e| e.to_string())?;
    let found = row.reads.split(' ').find_map(|pointer| answer.pointer(pointer)?.as_f64());
    let predicted = found.map(|x| x * row.times).filter(|x| *x > 0.0);
    let predicted = predicted.ok_or_else(|| format!("no number at {} of the answer", row.reads))?;
    let assumed = row.note.as_deref().map(Remark::from).into_iter().collect();
    let (what, metric) = (row.what.clone(), row.metric.clone());
    Ok(RowCard { what, metric, assumed, ..card(predicted, row.value, 0.0, None) })
}
