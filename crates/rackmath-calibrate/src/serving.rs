//! Whole deployments: predicted against measured, source by source.

mod cross;
mod fit;
mod folder;
pub(crate) mod inferencex;
mod rows;
mod spread;

pub use cross::{By, Tell, held_out, leave_out};
pub use folder::{score_folder, score_rows};
pub use rows::{Measured, TABLES, all};
pub use spread::spread;

use crate::CalibrateError;
use crate::table::Table;
use rackmath::case::Bench;
use rackmath_spec::engine::Engine;
use rackmath_units::float;
use std::collections::BTreeMap;
use std::path::Path;

/// Steps of the search for each constant when a fit is one of many.
pub const FOLD_STEPS: usize = 8;

/// Every row by source.
pub fn score(folder: &Path) -> Result<Table, CalibrateError> {
    let rows = rows::all(folder)?;
    let mut bench = Bench::new(rackmath_catalog::embedded())?;
    let mut table = Table::new(&["source", "model", "chip", "engine"]);
    let mut scored = Vec::new();
    for row in &rows {
        match bench.compare(&row.case) {
            Ok(p) => {
                let error = float::ln(p.value / row.case.measured);
                scored.push((row, error));
            }
            Err(error) => *table.skipped.entry(error.to_string()).or_default() += 1,
        }
    }
    let all = |row: &Measured| vec![row.stratum.clone(), "all".into(), String::new(), String::new()];
    table.group(scored.iter().map(|(row, e)| (all(row), e.abs())));
    let fine = |row: &Measured| vec![row.stratum.clone(), row.model.clone(), row.chip.clone(), row.engine.clone()];
    table.group(scored.iter().map(|(row, e)| (fine(row), e.abs())));
    Ok(table)
}

/// Fits the engine families that have rows, or the one that is named, and prints their tables.
pub fn fit(folder: &Path, only: Option<&str>) -> Result<String, CalibrateError> {
    let rows = rows::all(folder)?;
    let catalog = rackmath_catalog::embedded();
    let mut by_engine: BTreeMap<String, (Engine, Vec<&Measured>)> = BTreeMap::new();
    for row in &rows {
        let (engine, _) = catalog.engine(&row.case.engine)?;
        by_engine
            .entry(engine.id.clone())
            .or_insert_with(|| (std::sync::Arc::unwrap_or_clone(engine), Vec::new()))
            .1
            .push(row);
    }
    let mut text = String::new();
    for (id, (engine, rows)) in &by_engine {
        if only.is_none_or(|name| name == id) {
            text.push_str(&fit::toml(&fit::family(engine, rows)?));
            text.push('\n');
        }
    }
    Ok(text)
}
