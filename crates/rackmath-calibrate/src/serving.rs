//! Whole deployments: predicted against measured, source by source.

mod cross;
mod energy;
pub(crate) mod fit;
pub(crate) mod inferencex;
mod mlperf;
mod pools;
mod published;
mod recipes;
mod rows;

pub use cross::{By, leave_out};
pub(crate) use cross::{fold, overheads, predictions, thinned};
pub use energy::fit as fit_power;
pub(crate) use rows::all;

use crate::case::Case;
use crate::rows::Rows;
use crate::table::Table;
use rackmath::case::Bench;
use rackmath::validate::{FolderCard, RowCard, Scored, SourceCard, judged, ran, total};
use rackmath_spec::engine::Engine;
use rackmath_spec::measurement::{Load, Measurement, Setup, Way};
use rackmath_spec::validation::Measured;
use rackmath_spec::{Catalog, SpecError};
use rackmath_units::float;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Steps of the search for each constant when a fit is one of many.
pub(crate) const FOLD_STEPS: usize = 8;

/// Every measured figure beside its prediction: of one pool, of two, and joules.
pub fn cases(catalog: &Catalog, folder: &Path) -> Result<Rows<Case>, SpecError> {
    let mut bench = Bench::new(catalog.clone())?;
    let mut all = rows::everything(catalog, folder)?.map(|((file, at), row)| {
        let said = |e: SpecError| format!("{file}: {e}");
        let predicted = bench.predict(&row).map_err(said)?;
        if !(predicted > 0.0 && predicted.is_finite()) {
            return Err(format!("{file}: predicted not to fit"));
        }
        let case = case(catalog, file, &row.source.part, (&row.setup, &row.load)).map_err(said)?;
        Ok(Case { row: at, what: ran(&row).replace(',', ";"), measured: row.value, predicted, ..case })
    });
    all.join(pools::cases(catalog, folder)?);
    all.join(energy::cases(catalog, folder)?);
    all.join(mlperf::cases(catalog, folder)?);
    Ok(all)
}

pub(crate) fn files() -> impl Iterator<Item = &'static str> {
    rows::TABLES.iter().map(|(file, _)| *file).chain([mlperf::FILE])
}

/// What ran, as a case without its figures.
fn case(catalog: &Catalog, file: &str, metric: &str, (setup, load): (&Setup, &Load)) -> Result<Case, SpecError> {
    let (system, model) = (catalog.system(&setup.system)?, catalog.model(&setup.model)?);
    let concurrency = if let Way::Closed { concurrency, .. } = load.way { Some(concurrency) } else { None };
    let (experts, weights) =
        (model.shape().is_some_and(|s| s.moe().is_some()), setup.weights.clone().unwrap_or_default());
    let case = Case::on(&system.chip, file, metric).of(&setup.engine, &model.id, "");
    Ok(Case { experts, weights, concurrency, ..case })
}

pub fn score(catalog: &Catalog, folder: &Path) -> Result<Table, SpecError> {
    let Rows { rows, skipped } = rows::everything(catalog, folder)?;
    let rows: Vec<Measurement> = rows.into_iter().map(|(_, row)| row).collect();
    let mut bench = Bench::new(catalog.clone())?;
    let mut table = Table::new(&["source", "model", "chip", "engine"], &skipped);
    let scored = table.scored(&rows, |row| bench.compare(row).map(|p| float::ln(p.value / row.value)));
    table.group(scored.iter().map(|(row, e)| ([stratum(row), "all".into(), String::new(), String::new()], *e)));
    let fine = |row: &Measurement| {
        let setup = &row.setup;
        [stratum(row), setup.model.clone(), setup.chip().to_owned(), setup.family().to_owned()]
    };
    table.group(scored.iter().map(|(row, e)| (fine(row), *e)));
    Ok(table)
}

/// The table a row is scored in: its source and the part of it.
pub(crate) fn stratum(row: &Measurement) -> String {
    format!("{} {}", row.source.name, row.source.part)
}

/// Fits the engine families that have rows, or the one that is named, and prints their tables; where a family costs
/// something else on another maker's chips, those rows apart.
pub fn fit(catalog: &Catalog, folder: &Path, only: Option<&str>) -> Result<String, SpecError> {
    let rows = all(catalog, folder)?;
    let mut by_engine: BTreeMap<(String, String, String), (Engine, Vec<&Measurement>)> = BTreeMap::new();
    for row in &rows {
        let (engine, _) = catalog.engine(&row.setup.engine)?;
        let Ok(system) = catalog.system(&row.setup.system) else { continue };
        let elsewhere = engine.elsewhere(&system.chip.vendor);
        let vendor = elsewhere.map_or(String::new(), |e| e.vendor.clone());
        let until = elsewhere.and_then(|e| e.until).map_or(String::new(), |until| until.to_string());
        let of = || match elsewhere {
            Some(e) => (Engine { overhead: e.overhead, on: Vec::new(), ..(*engine).clone() }, Vec::new()),
            None => ((*engine).clone(), Vec::new()),
        };
        by_engine.entry((engine.id.clone(), vendor, until)).or_insert_with(of).1.push(row);
    }
    let mut text = String::new();
    for ((id, vendor, until), (engine, rows)) in &by_engine {
        if only.is_none_or(|name| name == *id) {
            text += &(fit::toml(&fit::family(catalog, engine, rows, fit::STEPS)?, (vendor, until)) + "\n");
        }
    }
    Ok(text)
}

/// The rows of a folder as tables of `catalog/validation`, one for each source; rows of models and chips that the catalogue does not
/// have are counted and left out.
pub fn carried(catalog: &Catalog, folder: &Path) -> Result<String, SpecError> {
    let mut by_source: BTreeMap<String, (usize, Vec<Measurement>)> = BTreeMap::new();
    // A run that two publications have is one run.
    let mut known_runs = BTreeMap::new();
    for mut row in all(catalog, folder)? {
        let (left, kept) = by_source.entry(row.source.name.clone()).or_default();
        let of = &row.setup;
        let run = format!("{} {} {:?} {:?} {:.4e}", of.model, of.system, row.load, row.metric, row.value);
        if *known_runs.entry(run).or_insert(row.source.name.clone()) != row.source.name {
            *left += 1;
            continue;
        }
        let known = catalog.model(&row.setup.model).and(catalog.engine(&row.setup.engine));
        match known.and_then(|_| catalog.system(&row.setup.system)) {
            // A card known by its full name stands under its id.
            Ok(system) if system.n_chips == 1 => {
                row.setup.system.clone_from(&system.chip.id);
                kept.push(row);
            }
            Ok(_) => kept.push(row),
            Err(_) => *left += 1,
        }
    }
    let mut text = String::new();
    for (source, (left, rows)) in by_source {
        let table = Measured::write(&rows);
        let _ = writeln!(text, "# {source}: {} rows, {left} left out", rows.len());
        let parts: Vec<String> =
            table.parts.iter().map(|(part, metric)| format!("  [{part:?}, \"{metric}\"],\n")).collect();
        let _ = writeln!(text, "[measured]\nparts = [\n{}]\nrounds = {:?}", parts.concat(), table.rounds);
        let _ = writeln!(text, "rows = \"\"\"\n{}\"\"\"\n", table.rows);
    }
    Ok(text)
}

/// Every row of a folder with the catalogue's constants, scored as the published tables are.
pub fn score_folder(catalog: &Catalog, folder: &Path) -> Result<(FolderCard, Vec<Measurement>), SpecError> {
    let rows = all(catalog, folder)?;
    let sources = score_rows(catalog, &rows)?;
    let (total, name) = (total(&sources), folder.display().to_string());
    Ok((FolderCard { folder: name, sources, total, unread: unread(folder), cross: None }, rows))
}

/// Rows by source, in the order of their first rows.
fn score_rows(catalog: &Catalog, rows: &[Measurement]) -> Result<Vec<SourceCard>, SpecError> {
    let mut bench = Bench::new(catalog.clone())?;
    let mut sources: Vec<(&str, usize, Scored)> = Vec::new();
    for row in rows {
        let name = row.source.name.as_str();
        let at = sources.iter().position(|(source, ..)| *source == name).unwrap_or_else(|| {
            sources.push((name, 0, Scored::default()));
            sources.len() - 1
        });
        let (_, seen, scored) = &mut sources[at];
        *seen += 1;
        let words = |card| RowCard { what: ran(row), metric: row.source.part.clone(), ..card };
        scored.add(format!("row {seen}"), judged(&mut bench, row).map(words));
    }
    Ok(sources.into_iter().map(|(name, _, scored)| scored.card(slug(name), name.to_owned())).collect())
}

fn slug(name: &str) -> String {
    let dashed: String = name.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    format!("folder-{dashed}")
}

/// Tables of the folder that no reader takes.
fn unread(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
    let table = |name: &String| Path::new(name).extension().is_some_and(|e| e == "csv");
    let read = |name: &String| rows::TABLES[..rows::FITTED].iter().any(|(file, _)| file == name);
    let mut names: Vec<String> = names.filter(|name| table(name) && !read(name)).collect();
    names.sort();
    names
}

/// Published deployments ran, so they must fit. Of each different setup the measurement with the shortest requests is taken,
/// and one sequence of it must have room.
pub fn fits(catalog: &Catalog, folder: &Path) -> Result<String, SpecError> {
    let rows = all(catalog, folder)?;
    let (deployments, wrong) = misfits(&mut Bench::new(catalog.clone())?, &rows);
    let head = format!("{} rows, {deployments} deployments, {} said not to fit\n", rows.len(), wrong.len());
    Ok(wrong.iter().fold(head, |text, w| text + "  " + w + "\n"))
}

/// Different setups, and those that would not fit, or could not be placed, and why.
fn misfits(bench: &mut Bench, rows: &[Measurement]) -> (usize, Vec<String>) {
    let tokens = |row: &Measurement| row.load.input + row.load.output;
    let mut shortest: BTreeMap<String, &Measurement> = BTreeMap::new();
    for row in rows {
        let least = shortest.entry(format!("{:?}", row.setup)).or_insert(row);
        if tokens(row) < tokens(least) {
            *least = row;
        }
    }
    let why = |row: &Measurement| match bench.room(row) {
        Ok(room) if room >= 1.0 => None,
        Ok(_) => Some(format!("{}: no room for {} tokens", ran(row), tokens(row))),
        Err(error) => Some(format!("{}: {error}", ran(row))),
    };
    (shortest.len(), shortest.into_values().filter_map(why).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmath_spec::layout::Degrees;
    use rackmath_spec::measurement::Metric;

    #[test]
    fn what_ran_fits_and_what_cannot_does_not() {
        let on_eight = |model: &str, system: &str, weights: Option<&str>| {
            let degrees = Degrees { tp: 8, etp: 8, ..Degrees::default() };
            let (model, system, engine) = (model.into(), system.into(), "vllm".into());
            let setup = Setup { model, system, engine, weights: weights.map(Into::into), degrees, ..Setup::default() };
            rows::of(("", ""), setup, Load::of(Way::Full, 1024.0, 1024.0), (Metric::OutputTokSPerGpu, 1.0))
        };
        let rows = [
            // TensorRT-LLM perf overview: Llama-3.1-405B FP8 on 8 H100; InferenceX: DeepSeek-R1 FP8 blocks on 8 H200.
            on_eight("llama-3.1-405b", "8xh100_sxm", Some("fp8")),
            on_eight("deepseek-ai/DeepSeek-V3", "8xh200_sxm", None),
            on_eight("deepseek-ai/DeepSeek-V3", "8xh100_sxm", Some("bf16")),
        ];
        let (deployments, wrong) = misfits(&mut Bench::new(rackmath_catalog::embedded()).unwrap(), &rows);
        assert_eq!((deployments, wrong.len()), (3, 1), "{wrong:?}");
        assert!(wrong[0].contains("8xh100_sxm") && wrong[0].contains("bf16"), "{wrong:?}");
    }
}
