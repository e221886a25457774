//! Published measurements against what we predict for them, and against two simpler predictors.
//!
//! $$ e = \ln\frac{\hat x}{x} \qquad \mathrm{bias} = \mathrm{med}(e) \qquad
//!    \mathrm{inside} = \frac{1}{n}\,\big|\{\,|e| \le w\,\}\big| \qquad k = \exp \mathrm{med}\ln\frac{x}{x_0} $$
//!
//! | symbol | code | meaning |
//! |--------|------|---------|
//! | x̂, x | predicted, measured | the figure as predicted and as published, in the published unit |
//! | e | [`RowCard::error`] | distance of a row; its median and 90th percentile over a metric are taken without sign |
//! | w | spread | half width of the 80 % interval |
//! | x₀ | roofline | the same question asked of the data sheet: full peak, full bandwidth, perfect overlap |
//! | k | factor | the constant-efficiency baseline: one factor for a source and metric, chosen and scored on the same rows |
//!
//! The rank correlation is Spearman's, ties sharing their mean rank. A row that cannot be predicted is listed with its
//! reason. Source: ours; Spearman 1904.

mod cards;
mod convert;
mod kernels;
mod picture;
mod score;

pub use cards::{Answer, CrossCard, CrossStratumCard, FolderCard, Request, RowCard, SkipCard, SourceCard, StratumCard};
pub use picture::scatter;
pub use score::{strata, total};

use crate::Error;
use crate::case::Bench;
use rackmath_spec::validation::{KernelRow, Row, Table};
use rackmath_spec::{Catalog, SpecError};
use rackmath_units::float;
use std::collections::BTreeMap;

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let ids: Vec<String> = if request.tables.is_empty() {
        catalog.ids(rackmath_spec::Kind::Validation).map(str::to_owned).collect()
    } else {
        request.tables.clone()
    };
    let tables = ids.iter().map(|id| catalog.validation(id)).collect::<Result<Vec<_>, SpecError>>()?;
    let mut bench = Bench::new(catalog.clone())?;
    let mut sources = Vec::new();
    for table in &tables {
        sources.push(source(catalog, &mut bench, table)?);
    }
    let total = total(&sources);
    let mut answer = Answer { request: request.clone(), sources, total, folder: None };
    if !request.rows {
        answer.forget_rows();
    }
    Ok(answer)
}

/// What was left out, by reason.
#[derive(Default)]
pub(crate) struct Skipped(BTreeMap<String, Vec<String>>);

impl Skipped {
    pub(crate) fn add(&mut self, reason: String, row: String) {
        self.0.entry(reason).or_default().push(row);
    }

    pub(crate) fn cards(self) -> Vec<SkipCard> {
        self.0.into_iter().map(|(reason, rows)| SkipCard { reason, n: rows.len(), rows }).collect()
    }
}

fn source(catalog: &Catalog, bench: &mut Bench, table: &Table) -> Result<SourceCard, Error> {
    let (mut rows, mut skipped) = (Vec::new(), Skipped::default());
    for (i, row) in table.rows.iter().enumerate() {
        let place = format!("row {}", i + 1);
        match predicted(catalog, bench, table, row) {
            Ok(card) => rows.push(RowCard { place, ..card }),
            Err(reason) => skipped.add(reason, place),
        }
    }
    let kernels = kernels::Shelf::of(catalog)?;
    for (i, row) in table.kernels.iter().enumerate() {
        let place = format!("kernel {}", i + 1);
        match kernels.predicted(catalog, row) {
            Ok((metric, predicted, roofline)) => rows.push(RowCard {
                place,
                what: kernels::what(row),
                metric: metric.into(),
                ..card(predicted, row.time_us, roofline, None)
            }),
            Err(reason) => skipped.add(reason, place),
        }
    }
    let of = &table.source;
    let notes = rows.iter().flat_map(|row| row.assumed.iter().cloned());
    let notes: std::collections::BTreeSet<String> = notes.collect();
    Ok(SourceCard {
        id: table.id.clone(),
        name: of.name.clone(),
        title: of.title.clone(),
        address: of.address.clone(),
        n: table.rows.len() + table.kernels.len(),
        strata: strata(&rows),
        fitted: of.fitted.clone(),
        notes: notes.into_iter().collect(),
        skipped: skipped.cards(),
        rows,
    })
}

fn predicted(catalog: &Catalog, bench: &mut Bench, table: &Table, row: &Row) -> Result<RowCard, String> {
    let asked = convert::case(catalog, table, row)?;
    let p = bench.compare(&asked.case).map_err(|e| e.to_string())?;
    // The prediction is in the unit of the case; the published figure may count all chips.
    let (value, roofline) = (p.value * asked.scale, p.roofline * asked.scale);
    if !(value.is_finite() && value > 0.0) {
        return Err("the prediction is not a number: nothing fits, or nothing is generated".into());
    }
    Ok(RowCard {
        what: convert::what(row),
        metric: row.metric.name().into(),
        assumed: asked.assumed,
        ..card(value, row.value, roofline, Some(p.spread))
    })
}

/// The numbers of a row; its words are filled in by the caller.
pub fn card(predicted: f64, measured: f64, roofline: f64, spread: Option<f64>) -> RowCard {
    let error = float::ln(predicted / measured);
    RowCard {
        place: String::new(),
        what: String::new(),
        metric: String::new(),
        predicted,
        measured,
        ratio: predicted / measured,
        error,
        low: spread.map(|w| predicted / float::exp(w)),
        high: spread.map(|w| predicted * float::exp(w)),
        inside: spread.map(|w| error.abs() <= w),
        roofline,
        assumed: Vec::new(),
    }
}

/// How a kernel row reads in a reason.
pub(crate) fn no_kernel(row: &KernelRow, what: &str) -> String {
    format!("no {what} kernel of PyTorch in {} is known for {}", row.format, row.system)
}

#[cfg(test)]
mod tests;
