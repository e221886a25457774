//! How wide an 80 % interval has to be: the 80 % quantile of |ln(predicted / measured)| over rows whose (model, chip) group
//! was left out of the fit.
//!
//! Leaving groups out one by one would fit a family dozens of times; groups are dealt into a few folds instead, whole, so
//! that no row is predicted by constants that saw its model on its chip. An interval is widened where a pass runs on borrowed
//! constants, so distances are divided by that factor first.

use super::cross::{Tell, predictions};
use super::rows;
use crate::CalibrateError;
use rackmath_spec::engine::Spread;
use rackmath_spec::measurement::{Measurement, Metric};
use rackmath_theory::stats::quantile;
use rackmath_units::float;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// Folds that groups are dealt into.
const FOLDS: usize = 5;

/// The share of rows an interval should hold.
const SHARE: f64 = 0.8;

/// Fewer rows give no quantile worth printing.
const FEWEST: usize = 5;

/// The `[spread]` tables of every engine family with rows.
pub fn spread(folder: &Path, steps: usize, tell: Tell<'_>) -> Result<String, CalibrateError> {
    let catalog = rackmath_catalog::embedded();
    let rows = rows::all(&catalog, folder)?;
    // Rows whose drafting is not known say nothing about an engine.
    let rows: Vec<Measurement> = rows.into_iter().filter(|r| !r.source.part.contains("drafting unknown")).collect();
    let held = predictions(&catalog, &rows, &dealt(&rows), steps, tell)?;
    let mut by_engine: BTreeMap<&str, [Vec<f64>; 3]> = BTreeMap::new();
    for one in &held {
        let row = &rows[one.row];
        let (engine, _) = catalog.engine(&one.engine)?;
        let (column, own) = column(row.metric, &engine.spread);
        let wider = (one.predicted.spread / own).max(1.0);
        let distance = float::ln(one.predicted.value / row.value).abs() / wider;
        by_engine.entry(&one.engine).or_default()[column].push(distance);
    }
    let mut text = String::new();
    for (id, columns) in &by_engine {
        let (engine, _) = catalog.engine(id)?;
        let own = [engine.spread.tpot, engine.spread.ttft, engine.spread.throughput];
        let _ = writeln!(text, "# {id}\n[spread]");
        let mut counts = Vec::new();
        for ((name, distances), own) in ["tpot", "ttft", "throughput"].iter().zip(columns).zip(own) {
            let found = quantile(distances, SHARE).filter(|_| distances.len() >= FEWEST);
            let kept = if found.is_some() { "" } else { " # kept: too few rows" };
            let _ = writeln!(text, "{name} = {:.2}{kept}", found.unwrap_or(own));
            counts.push(format!("{} {name}", distances.len()));
        }
        let _ = writeln!(
            text,
            "# 80 % quantile of |ln(predicted / measured)|, (model, chip) groups left out in {FOLDS} folds; rows: {}\n",
            counts.join(", ")
        );
    }
    Ok(text)
}

/// Groups dealt into folds, in the order of their names.
fn dealt(rows: &[Measurement]) -> Vec<String> {
    let group = |r: &'_ Measurement| (r.setup.model.clone(), r.setup.chip().to_owned());
    let groups: BTreeSet<(String, String)> = rows.iter().map(group).collect();
    let places: BTreeMap<_, usize> = groups.into_iter().zip(0..).collect();
    rows.iter().map(|r| format!("fold {}", places[&group(r)] % FOLDS + 1)).collect()
}

fn column(metric: Metric, spread: &Spread) -> (usize, f64) {
    match metric {
        Metric::TtftMs => (1, spread.ttft),
        metric if metric.is_output_rate() || metric.is_input_rate() => (2, spread.throughput),
        _ => (0, spread.tpot),
    }
}
