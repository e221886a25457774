//! Whole deployments: predicted against measured, source by source.

mod cross;
mod fit;
mod folder;
pub(crate) mod inferencex;
mod rows;
mod spread;

pub use cross::{By, Tell, leave_out};
pub(crate) use cross::{predictions, thinned};
pub use folder::score_folder;
pub(crate) use folder::what;
pub(crate) use rows::all;
pub use spread::spread;

use crate::CalibrateError;
use crate::table::Table;
use rackmath::case::Bench;
use rackmath_spec::engine::Engine;
use rackmath_spec::measurement::Measurement;
use rackmath_units::float;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Steps of the search for each constant when a fit is one of many.
pub const FOLD_STEPS: usize = 8;

/// Every row by source.
pub fn score(folder: &Path) -> Result<Table, CalibrateError> {
    let catalog = rackmath_catalog::embedded();
    let rows = rows::all(&catalog, folder)?;
    let mut bench = Bench::new(catalog)?;
    let mut table = Table::new(&["source", "model", "chip", "engine"], &BTreeMap::new());
    let mut scored = Vec::new();
    for row in &rows {
        match bench.compare(row) {
            Ok(p) => scored.push((row, float::ln(p.value / row.value))),
            Err(error) => table.skip(error.to_string()),
        }
    }
    table.group(scored.iter().map(|(row, e)| (vec![stratum(row), "all".into(), String::new(), String::new()], *e)));
    let fine = |row: &Measurement| {
        let setup = &row.setup;
        vec![stratum(row), setup.model.clone(), setup.chip().to_owned(), setup.family().to_owned()]
    };
    table.group(scored.iter().map(|(row, e)| (fine(row), *e)));
    Ok(table)
}

/// The table a row is scored in: its source and the part of it.
pub(crate) fn stratum(row: &Measurement) -> String {
    format!("{} {}", row.source.name, row.source.part)
}

/// Fits the engine families that have rows, or the one that is named, and prints their tables.
pub fn fit(folder: &Path, only: Option<&str>) -> Result<String, CalibrateError> {
    let catalog = rackmath_catalog::embedded();
    let rows = rows::all(&catalog, folder)?;
    let mut by_engine: BTreeMap<String, (Engine, Vec<&Measurement>)> = BTreeMap::new();
    for row in &rows {
        let (engine, _) = catalog.engine(&row.setup.engine)?;
        by_engine.entry(engine.id.clone()).or_insert_with(|| (Arc::unwrap_or_clone(engine), Vec::new())).1.push(row);
    }
    let mut text = String::new();
    for (id, (engine, rows)) in &by_engine {
        if only.is_none_or(|name| name == id) {
            text.push_str(&fit::toml(&fit::family(engine, rows, fit::STEPS)?));
            text.push('\n');
        }
    }
    Ok(text)
}
