//! A folder of measurements, scored as the published tables are.

use super::rows::{self, Measured, TABLES};
use crate::CalibrateError;
use rackmath::case::{Bench, Case, CaseLoad};
use rackmath::validate::{FolderCard, RowCard, SkipCard, SourceCard, card, strata, total};
use rackmath_spec::Catalog;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Every row of a folder with the catalogue's constants.
pub fn score_folder(catalog: &Catalog, folder: &Path) -> Result<(FolderCard, Vec<Measured>), CalibrateError> {
    let rows = rows::all(folder)?;
    let sources = score_rows(catalog, &rows)?;
    let total = total(&sources);
    let folder_name = folder.display().to_string();
    Ok((FolderCard { folder: folder_name, sources, total, unread: unread(folder), cross: None }, rows))
}

/// The rows of a source.
#[derive(Default)]
struct Sorted {
    rows: Vec<RowCard>,
    skipped: BTreeMap<String, Vec<String>>,
    seen: usize,
}

/// Rows by source, in the order of their first rows.
pub fn score_rows(catalog: &Catalog, rows: &[Measured]) -> Result<Vec<SourceCard>, CalibrateError> {
    let mut bench = Bench::new(catalog.clone())?;
    let mut order: Vec<&str> = Vec::new();
    let mut by_source: BTreeMap<&str, Sorted> = BTreeMap::new();
    for row in rows {
        let source = row.case.source.as_str();
        if !by_source.contains_key(source) {
            order.push(source);
        }
        let Sorted { rows: cards, skipped, seen } = by_source.entry(source).or_default();
        *seen += 1;
        let place = format!("row {seen}");
        match scored(&mut bench, row) {
            Ok(numbers) => {
                let words = (what(&row.case), metric(row));
                cards.push(RowCard { place, what: words.0, metric: words.1, ..numbers });
            }
            Err(reason) => skipped.entry(reason).or_default().push(place),
        }
    }
    let cards = order.into_iter().filter_map(|name| {
        let Sorted { rows, skipped, seen: n } = by_source.remove(name)?;
        Some(SourceCard {
            id: slug(name),
            name: name.to_owned(),
            title: String::new(),
            address: String::new(),
            n,
            strata: strata(&rows),
            fitted: String::new(),
            notes: Vec::new(),
            skipped: skipped.into_iter().map(|(reason, rows)| SkipCard { reason, n: rows.len(), rows }).collect(),
            rows,
        })
    });
    Ok(cards.collect())
}

fn scored(bench: &mut Bench, row: &Measured) -> Result<RowCard, String> {
    let p = bench.compare(&row.case).map_err(|e| e.to_string())?;
    if p.value.is_finite() && p.value > 0.0 {
        return Ok(card(p.value, row.case.measured, p.roofline, Some(p.spread)));
    }
    Err("the prediction is not a number: nothing fits, or nothing is generated".into())
}

/// What a row is scored under, without the name of its source.
pub(super) fn metric(row: &Measured) -> String {
    row.stratum.strip_prefix(&row.case.source).unwrap_or(&row.stratum).trim().to_owned()
}

fn slug(name: &str) -> String {
    let dashed: String = name.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    format!("folder-{dashed}")
}

fn what(case: &Case) -> String {
    let Case { model, engine, system, degrees: d, .. } = case;
    let weights = case.weights.as_deref().map_or(String::new(), |w| format!(" {w}"));
    let degrees = [("tp", d.tp), ("pp", d.pp), ("dp", d.dp), ("ep", d.ep)];
    let mut split = String::new();
    for (name, n) in degrees.iter().filter(|(_, n)| *n > 1) {
        let _ = write!(split, " {name}{n}");
    }
    let lengths = format!("in {:.0}, out {:.0}", case.requests.input, case.requests.output);
    let load = match case.load {
        CaseLoad::Closed { concurrency, .. } => format!("closed {concurrency}, {lengths}"),
        CaseLoad::Open { rate } => format!("open {rate}/s, {lengths}"),
        CaseLoad::Full => format!("max-load, {lengths}"),
        CaseLoad::Static { batch } => format!("static {batch}, {lengths}"),
        CaseLoad::DecodeStep { batch, context } => format!("step-decode {batch}, at {context}"),
        CaseLoad::PrefillStep { batch, tokens } => format!("step-prefill {batch}, in {tokens}"),
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
