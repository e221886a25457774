//! Attention kernels: rows predicted, constants fitted, how well they carry over.
//!
//! Every chip generation was measured on one chip, so nothing here can leave a chip out within its generation, save for our
//! own H200 table, which other kernels made. [`transfer`] therefore leaves out head shapes, asks another generation's
//! constants, and holds that H200 table against H100 constants.

mod fit;
mod rows;

pub use rows::Row;

use crate::CalibrateError;
use crate::table::Table;
use rackmath_spec::attention::{AttentionKernels, DecodeConstants, Heads, PrefillConstants};
use rackmath_theory::operator::Silicon;
use rackmath_theory::operator::attention::{DecodeWork, PrefillWork, Residency, decode, prefill};
use rackmath_units::float;
use std::collections::BTreeMap;
use std::path::Path;

/// Which file of `catalog/kernels` a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Grouped-query and multi-head attention.
    Grouped,
    /// Multi-head latent attention.
    Latent,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The file.
    pub kind: Kind,
    pub decode: bool,
    pub generation: String,
    /// Engine, or engine and library.
    pub backend: String,
    /// single, grouped, or nothing for both.
    pub heads: &'static str,
    /// 8-bit products.
    pub math8: bool,
    /// 8-bit cache.
    pub kv8: bool,
}

/// What a row's kernel did.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// One new token.
    Decode(DecodeWork),
    Prefill(PrefillWork),
}

/// Constants of either phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constants {
    /// One new token.
    Decode(DecodeConstants),
    Prefill(PrefillConstants),
}

/// Seconds; the tables repeat each call, so that a small working set is in cache.
fn predicted(silicon: Silicon, work: &Work, constants: &Constants) -> f64 {
    let timing = match (work, constants) {
        (Work::Decode(w), Constants::Decode(c)) => decode(silicon, c, w, Residency::Cache),
        (Work::Prefill(w), Constants::Prefill(c)) => prefill(silicon, c, w, Residency::Cache),
        _ => unreachable!("constants are looked up by the phase of the work"),
    };
    timing.time.get()
}

/// ln(predicted / measured).
fn error(row: &Row, constants: &Constants) -> f64 {
    float::ln(predicted(row.silicon, &row.work, constants) / row.measured)
}

/// The catalogue's constants for a key, exactly or not at all.
fn lookup(kernels: &AttentionKernels, key: &Key) -> Option<Constants> {
    let heads = match key.heads {
        "single" => Heads::Single,
        "grouped" => Heads::Grouped,
        _ => Heads::Any,
    };
    macro_rules! find {
        ($list:expr) => {
            $list.iter().find(|k| {
                k.generation == key.generation
                    && k.backend == key.backend
                    && k.heads == heads
                    && (k.math8, k.kv8) == (key.math8, key.kv8)
            })
        };
    }
    if key.decode {
        find!(kernels.decode).map(|k| Constants::Decode(k.constants))
    } else {
        find!(kernels.prefill).map(|k| Constants::Prefill(k.constants))
    }
}

fn of_kind(both: &[AttentionKernels; 2], kind: Kind) -> &AttentionKernels {
    &both[usize::from(kind == Kind::Latent)]
}

fn catalogue() -> Result<[AttentionKernels; 2], CalibrateError> {
    let catalog = rackmath_catalog::embedded();
    Ok([
        std::sync::Arc::unwrap_or_clone(catalog.attention_kernels()?),
        std::sync::Arc::unwrap_or_clone(catalog.mla_kernels()?),
    ])
}

const HEADINGS: [&str; 6] = ["chip", "kernel", "backend", "heads", "math/kv", "bias"];

fn labels(row: &Row) -> Vec<String> {
    let key = &row.key;
    let kernel = match (key.kind, key.decode) {
        (Kind::Grouped, true) => "decode",
        (Kind::Grouped, false) => "prefill",
        (Kind::Latent, true) => "mla decode",
        (Kind::Latent, false) => "mla prefill",
    };
    let bits = |eight: bool| if eight { "8" } else { "16" };
    let formats = format!("{}/{}", bits(key.math8), bits(key.kv8));
    vec![row.chip.clone(), kernel.to_owned(), key.backend.clone(), key.heads.to_owned(), formats]
}

/// Every row against the catalogue: per chip, kernel, engine and format, then in all.
pub fn score(folder: &Path) -> Result<Table, CalibrateError> {
    let (rows, kernels) = (rows::read(folder)?, catalogue()?);
    let mut table = Table::new(&HEADINGS, &BTreeMap::new());
    let mut scored: Vec<(Vec<String>, f64)> = Vec::new();
    for row in &rows {
        // A chip nobody calibrated uses its generation's constants, or those of a generation alike.
        let key = Key { generation: generation_of(of_kind(&kernels, row.key.kind), row)?, ..row.key.clone() };
        match lookup(of_kind(&kernels, row.key.kind), &key) {
            Some(constants) => scored.push((labels(row), error(row, &constants))),
            None => table.skip(format!("no constants for {key:?}")),
        }
    }
    table.group(scored.iter().cloned());
    let all = |l: &Vec<String>| vec!["all".to_owned(), l[1].clone(), String::new(), String::new(), String::new()];
    table.group(scored.iter().map(|(l, e)| (all(l), *e)));
    Ok(table)
}

fn generation_of(kernels: &AttentionKernels, row: &Row) -> Result<String, CalibrateError> {
    let chip = rackmath_catalog::embedded().chip(&row.chip)?;
    Ok(kernels.generation(&chip).to_owned())
}

/// The constants of one file, fitted on a folder's rows and printed as TOML.
pub fn fit(folder: &Path, kind: Kind) -> Result<String, CalibrateError> {
    let rows = rows::read(folder)?;
    Ok(fit::file(&rows, kind))
}

/// How the constants carry over: left-out head shapes, the neighbouring generation, and our H200 table.
pub fn transfer(folder: &Path) -> Result<Table, CalibrateError> {
    let (rows, kernels) = (rows::read(folder)?, catalogue()?);
    let mut table = Table::new(&["test", "chip", "kernel", "backend", "heads", "math/kv", "bias"], &BTreeMap::new());
    let name = |test: &str, row: &Row| [vec![test.to_owned()], labels(row)].concat();

    let mut errors = Vec::new();
    for row in &rows {
        let other = match row.key.generation.as_str() {
            "ampere" => "ada",
            "ada" => "ampere",
            "hopper" => "blackwell",
            _ => "hopper",
        };
        let key = Key { generation: other.to_owned(), ..row.key.clone() };
        if let Some(constants) = lookup(of_kind(&kernels, row.key.kind), &key) {
            errors.push((name(&format!("from {other}"), row), error(row, &constants)));
        }
    }
    for (backend, heads) in [("sglang", ""), ("vllm", ""), ("trtllm", "grouped")] {
        for row in rows::h200(folder, backend)? {
            let heads = if row.key.decode { heads } else { "" };
            let key = Key { heads, ..row.key.clone() };
            if let Some(constants) = lookup(&kernels[0], &key) {
                errors.push((name("torch from h100", &row), error(&row, &constants)));
            }
        }
    }
    // The engine whose tables have enough shapes to leave one out.
    errors.extend(fit::without_each_shape(&rows)?.into_iter().map(|(row, e)| (name("shape left out", row), e)));
    table.group(errors);
    Ok(table)
}

#[cfg(test)]
mod tests;
