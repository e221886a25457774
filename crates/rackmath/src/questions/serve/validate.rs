//! Published measurements against what we predict for them, and against two simpler predictors.
//!
//! $$ e = \ln\frac{\hat x}{x} \qquad \mathrm{bias} = \mathrm{med}(e) \qquad
//!    \mathrm{inside} = \frac{1}{n}\,\big|\{\,|e| \le w\,\}\big| \qquad k = \exp \mathrm{med}\ln\frac{x}{x_0} $$
//!
//! | symbol | code | meaning |
//! |--------|------|---------|
//! | x̂, x | predicted, measured | the figure as predicted and as published, in the published unit |
//! | e | [`RowCard::error`] | distance of a row; its median and 90th percentile over a metric are taken without sign |
//! | w | spread | half width of the 80 % interval (`desk::evidence`) |
//! | x₀ | roofline | the same question asked of the data sheet: full peak, full bandwidth, perfect overlap |
//! | k | factor | the constant-efficiency baseline: one factor for a source and metric, chosen and scored on the same rows |
//!
//! The rank correlation is Spearman's, ties sharing their mean rank. A row that cannot be predicted is listed with its
//! reason. Source: ours; Spearman 1904.

mod asked;
mod cards;
mod convert;
pub mod coverage;
mod kernels;
pub mod replay;
mod score;

pub use cards::*;
pub use convert::ran;
pub use score::{scatter, strata, total};

use crate::case::Bench;
use crate::desk::prelude::*;
use rackmath_spec::measurement::Measurement;
use rackmath_spec::validation::Table;
use rackmath_theory::pass::KernelSet;
use std::collections::BTreeMap;

/// The word for runs and schedules, which the simulator is asked about.
const SIMULATE: &str = "simulate";

/// Answers while it is wanted.
pub fn answer_on(catalog: &Catalog, request: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let effort = effort.into();
    let cancel = &effort.cancel;
    let mut ids = named_or_all(&request.tables, catalog.ids(rackmath_spec::Kind::Validation));
    ids.retain(|id| id != SIMULATE);
    let read = |id: &String| {
        cancel.check()?;
        catalog.validation(id)
    };
    let mut tables = ids.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
    // A table of runs alone has no row of its own.
    tables.retain(|table| {
        !(table.rows.is_empty() && table.measured.is_empty() && table.kernels.is_empty() && table.asked.is_empty())
    });
    let wanted = request.tables.iter().any(|id| id == SIMULATE);
    let simulate = if wanted { Some(replay::simulated(catalog, &effort)?) } else { None };
    let mut bench = Bench::passing(catalog.clone())?;
    let sources =
        tables.iter().map(|table| source(catalog, &mut bench, table, &effort)).collect::<Result<Vec<_>, _>>()?;
    let total = total(&sources);
    // Whether intervals hold is a question about all tables.
    let coverage = if request.tables.is_empty() {
        coverage::coverage(&coverage::held(catalog, &coverage::filed(catalog, cancel)?, cancel)?)
    } else {
        Vec::new()
    };
    let mut answer = Answer { request: request.clone(), sources, total, coverage, folder: None, simulate };
    if !request.rows {
        answer.forget_rows();
    }
    Ok(answer)
}

/// Rows that were predicted, and what was left out by reason.
#[derive(Default)]
pub struct Scored {
    rows: Vec<RowCard>,
    skipped: BTreeMap<String, Vec<String>>,
}

impl Scored {
    /// Takes a row under its place in the table, or why it could not be predicted.
    pub fn add(&mut self, place: String, row: Result<RowCard, String>) {
        match row {
            Ok(card) => self.rows.push(RowCard { place, ..card }),
            Err(reason) => self.skipped.entry(reason).or_default().push(place),
        }
    }

    /// The card of a source with these rows; its title, address and notes are left to the caller.
    pub fn card(self, id: String, name: String) -> SourceCard {
        let Self { rows, skipped } = self;
        let left: usize = skipped.values().map(Vec::len).sum();
        let (n, strata) = (rows.len() + left, strata(&rows));
        let skipped = skipped.into_iter().map(|(reason, rows)| SkipCard { reason, n: rows.len(), rows }).collect();
        SourceCard { id, name, n, strata, skipped, rows, ..SourceCard::default() }
    }
}

fn source(catalog: &Catalog, bench: &mut Bench, table: &Table, effort: &Effort) -> Result<SourceCard, Error> {
    let cancel = &effort.cancel;
    let mut scored = Scored::default();
    for (i, row) in table.rows.iter().enumerate() {
        cancel.check()?;
        let card = convert::measurement(catalog, table, row).and_then(|(measured, assumed)| {
            let card = judged(bench, &measured)?;
            Ok(RowCard { what: convert::what(row), metric: measured.source.part, assumed, ..card })
        });
        scored.add(format!("row {}", i + 1), card);
    }
    for (i, row) in table.measured.iter().enumerate() {
        cancel.check()?;
        let words = |card| RowCard { what: convert::ran(row), metric: row.source.part.clone(), ..card };
        scored.add(format!("measured row {}", i + 1), judged(bench, row).map(words));
    }
    let kernels = KernelSet::of(catalog)?;
    for (i, row) in table.kernels.iter().enumerate() {
        cancel.check()?;
        let card = kernels::predicted(&kernels, catalog, row).map(|(metric, predicted, roofline)| {
            let card = card(predicted, row.time_us, roofline, None);
            RowCard { what: kernels::what(row), metric: metric.into(), ..card }
        });
        scored.add(format!("kernel {}", i + 1), card);
    }
    for (i, row) in table.asked.iter().enumerate() {
        cancel.check()?;
        scored.add(format!("asked {}", i + 1), asked::predicted(catalog, row, effort));
    }
    // A question that was ended is not one that cannot be predicted.
    cancel.check()?;
    let mut notes: Vec<Remark> = Vec::new();
    for note in scored.rows.iter().flat_map(|row| &row.assumed) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let of = &table.source;
    Ok(SourceCard {
        title: of.title.clone(),
        address: of.address.clone(),
        fitted: of.fitted.clone(),
        notes,
        ..scored.card(table.id.clone(), of.name.clone())
    })
}

/// Every row of a table as a measurement; of those that cannot be one, why.
pub fn measurements(catalog: &Catalog, table: &Table) -> (Vec<Measurement>, Vec<String>) {
    let (mut all, mut skipped) = (table.measured.clone(), Vec::new());
    for (i, row) in table.rows.iter().enumerate() {
        match convert::measurement(catalog, table, row) {
            Ok((measured, _)) => all.push(measured),
            Err(why) => skipped.push(format!("row {}: {why}", i + 1)),
        }
    }
    (all, skipped)
}

/// The numbers of a measurement; its words are filled in by the caller.
pub fn judged(bench: &mut Bench, m: &Measurement) -> Result<RowCard, String> {
    let p = bench.compare(m).map_err(|e| e.to_string())?;
    if p.value.is_finite() && p.value > 0.0 {
        return Ok(card(p.value, m.value, p.roofline, p.spread));
    }
    Err("the prediction is not a number: nothing fits, or nothing is generated".into())
}

/// Rows spread evenly over each group, so that a table of thousands takes no longer than one of hundreds.
pub fn thinned<'a, T, K: Ord>(rows: &[&'a T], most: usize, group: impl Fn(&T) -> K) -> Vec<&'a T> {
    let mut groups: BTreeMap<K, Vec<&T>> = BTreeMap::new();
    for row in rows {
        groups.entry(group(row)).or_default().push(row);
    }
    let every = |group: Vec<&'a T>| {
        let step = group.len().div_ceil(most).max(1);
        group.into_iter().step_by(step)
    };
    groups.into_values().flat_map(every).collect()
}

fn card(predicted: f64, measured: f64, roofline: f64, spread: Option<f64>) -> RowCard {
    let error = float::ln(predicted / measured);
    RowCard {
        predicted,
        measured,
        ratio: predicted / measured,
        error,
        low: spread.map(|w| predicted / float::exp(w)),
        high: spread.map(|w| predicted * float::exp(w)),
        inside: spread.map(|w| error.abs() <= w),
        roofline,
        ..RowCard::default()
    }
}

#[cfg(test)]
mod tests;
