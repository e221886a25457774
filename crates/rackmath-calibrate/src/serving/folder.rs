//! A folder of measurements, scored as the published tables are.

use super::rows::{self, TABLES};
use crate::CalibrateError;
use rackmath::case::Bench;
use rackmath::validate::{FolderCard, RowCard, Scored, SourceCard, judged, total};
use rackmath_spec::Catalog;
use rackmath_spec::measurement::{Measurement, Setup, Way};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Every row of a folder with the catalogue's constants.
pub fn score_folder(catalog: &Catalog, folder: &Path) -> Result<(FolderCard, Vec<Measurement>), CalibrateError> {
    let rows = rows::all(catalog, folder)?;
    let sources = score_rows(catalog, &rows)?;
    let total = total(&sources);
    let folder_name = folder.display().to_string();
    Ok((FolderCard { folder: folder_name, sources, total, unread: unread(folder), cross: None }, rows))
}

/// Rows by source, in the order of their first rows.
fn score_rows(catalog: &Catalog, rows: &[Measurement]) -> Result<Vec<SourceCard>, CalibrateError> {
    let mut bench = Bench::new(catalog.clone())?;
    let mut order: Vec<&str> = Vec::new();
    let mut by_source: BTreeMap<&str, (usize, Scored)> = BTreeMap::new();
    for row in rows {
        let source = row.source.name.as_str();
        if !by_source.contains_key(source) {
            order.push(source);
        }
        let (seen, scored) = by_source.entry(source).or_default();
        *seen += 1;
        let words = |card| RowCard { what: what(row), metric: row.source.part.clone(), ..card };
        scored.add(format!("row {seen}"), judged(&mut bench, row).map(words));
    }
    let card = |name: &str| Some(by_source.remove(name)?.1.card(slug(name), name.to_owned()));
    Ok(order.into_iter().filter_map(card).collect())
}

fn slug(name: &str) -> String {
    let dashed: String = name.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    format!("folder-{dashed}")
}

pub(crate) fn what(row: &Measurement) -> String {
    let Setup { model, engine, system, degrees: d, .. } = &row.setup;
    let weights = row.setup.weights.as_deref().map_or(String::new(), |w| format!(" {w}"));
    let degrees = [("tp", d.tp), ("pp", d.pp), ("dp", d.dp), ("ep", d.ep)];
    let mut split = String::new();
    for (name, n) in degrees.iter().filter(|(_, n)| *n > 1) {
        let _ = write!(split, " {name}{n}");
    }
    let lengths = format!("in {:.0}, out {:.0}", row.load.input, row.load.output);
    let load = match row.load.way {
        Way::Closed { concurrency, .. } => format!("closed {concurrency}, {lengths}"),
        Way::Open { rate } => format!("open {rate}/s, {lengths}"),
        Way::Full => format!("max-load, {lengths}"),
        Way::Static { batch } => format!("static {batch}, {lengths}"),
        Way::DecodeStep { batch, context } => format!("step-decode {batch}, at {context}"),
        Way::PrefillStep { batch, tokens } => format!("step-prefill {batch}, in {tokens}"),
    };
    format!("{model}{weights} on {system}{split}, {engine}, {load}")
}

/// Tables of the folder that no reader takes.
fn unread(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
    let table = |name: &String| Path::new(name).extension().is_some_and(|e| e == "csv");
    let read = |name: &String| TABLES.iter().any(|(file, _)| file == name);
    let mut names: Vec<String> = names.filter(|name| table(name) && !read(name)).collect();
    names.sort();
    names
}
