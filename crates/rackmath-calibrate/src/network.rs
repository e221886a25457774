//! Collectives and expert exchanges against measured tables.

mod fit;
mod predict;
mod print;
mod rows;

pub use fit::Fitted;
pub use predict::Machines;
pub use rows::{FILES, Row, What, read};

use crate::rows::Rows;
use crate::{CalibrateError, table::Table};
use rackmath_spec::Catalog;
use rackmath_theory::network::Collective;
use rackmath_units::Bytes;
use std::path::Path;

/// How far the catalogue is from the tables of a folder.
pub fn score(folder: &Path) -> Result<Table, CalibrateError> {
    score_rows(&read(folder)?, &rackmath_catalog::embedded())
}

/// How far a catalogue is from rows: per file, system, operation and kernel; then per file; then the two headlines.
fn score_rows(rows: &Rows<Row>, catalog: &Catalog) -> Result<Table, CalibrateError> {
    let machines = Machines::of(&rows.rows, catalog)?;
    let mut table = Table::new(&["file", "system", "operation", "kernel"], &rows.skipped);
    let mut scored = Vec::new();
    for row in &rows.rows {
        match machines.distance(row) {
            Ok(distance) => scored.push((row, distance)),
            Err(reason) => table.skip(reason),
        }
    }
    let of = |row: &Row| vec![row.file.into(), row.system.clone(), row.what.name().into(), row.what.kernel()];
    table.group(scored.iter().map(|(row, d)| (of(row), *d)));
    table.group(scored.iter().map(|(row, d)| (vec![row.file.into(), "all".into()], *d)));
    let headline = |keep: &dyn Fn(&What) -> bool| -> Vec<f64> {
        scored.iter().filter(|(row, _)| keep(&row.what)).map(|(_, d)| *d).collect()
    };
    table.push(vec!["all-reduce and all-gather from 16 KiB".into()], &headline(&is_long_gather_or_reduce));
    table.push(vec!["dispatch and combine".into()], &headline(&|what| matches!(what, What::Exchange { .. })));
    Ok(table)
}

fn is_long_gather_or_reduce(what: &What) -> bool {
    matches!(what, What::Collective { collective: Collective::AllReduce | Collective::AllGather, bytes, .. }
        if *bytes >= Bytes::b(16.0 * 1024.0))
}

/// Constants fitted to the tables of a folder, one set per kind of link.
pub fn fit(folder: &Path) -> Result<Fitted, CalibrateError> {
    let rows = read(folder)?;
    let machines = Machines::of(&rows.rows, &rackmath_catalog::embedded())?;
    Ok(fit::all(&rows.rows, &machines))
}

/// How far constants fitted to a part of the tables are from the rest: another machine, more ranks, more nodes.
pub fn transfer(folder: &Path) -> Result<Table, CalibrateError> {
    let rows = read(folder)?;
    let machines = Machines::of(&rows.rows, &rackmath_catalog::embedded())?;
    Ok(fit::transfer(&rows.rows, &machines))
}

#[cfg(test)]
mod tests;
