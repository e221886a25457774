//! Reads tables: rows of a struct, or words by column where a table has holes.

use crate::CalibrateError;
use rackmath_units::Seconds;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub fn csv<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, CalibrateError> {
    parse(&path.display().to_string(), &text(path)?)
}

/// The rows of a table's text.
pub fn parse<T: DeserializeOwned>(file: &str, text: &str) -> Result<Vec<T>, CalibrateError> {
    let reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    reader.into_deserialize().collect::<Result<_, _>>().map_err(|e| CalibrateError::file(file, e))
}

pub fn json<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, CalibrateError> {
    serde_json::from_str(&text(path)?).map_err(|e| CalibrateError::file(path.display(), e))
}

pub fn text(path: &Path) -> Result<String, CalibrateError> {
    std::fs::read_to_string(path).map_err(|e| CalibrateError::file(path.display(), e))
}

/// Those of some files that a folder holds; it must hold one.
pub fn present<'a, T>(
    folder: &Path,
    files: &'a [T],
    name: impl Fn(&T) -> &'static str,
) -> Result<Vec<(PathBuf, &'a T)>, CalibrateError> {
    let all = files.iter().map(|file| (folder.join(name(file)), file));
    let found: Vec<_> = all.filter(|(path, _)| path.is_file()).collect();
    let expected = || files.iter().map(name).collect();
    if found.is_empty() { Err(CalibrateError::nothing(folder, expected())) } else { Ok(found) }
}

/// Rows, and how many were left out for which reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows<T> {
    pub rows: Vec<T>,
    pub skipped: BTreeMap<String, usize>,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), skipped: BTreeMap::new() }
    }
}

impl<T> Rows<T> {
    pub fn take(&mut self, row: Result<T, String>) {
        match row {
            Ok(row) => self.rows.push(row),
            Err(reason) => *self.skipped.entry(reason).or_default() += 1,
        }
    }
}

/// One row, by the names of its columns.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Record(BTreeMap<String, String>);

impl Record {
    /// A word; empty when absent.
    pub fn text(&self, column: &str) -> &str {
        self.0.get(column).map_or("", String::as_str)
    }

    /// A number; nothing when absent or not one.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse::<f64>().ok().filter(|x| x.is_finite())
    }

    pub fn count(&self, column: &str) -> Option<u64> {
        self.number(column).map(|x| x as u64)
    }

    /// A count; absent, empty and 0 are 1.
    pub fn degree(&self, column: &str) -> u64 {
        self.count(column).unwrap_or(1).max(1)
    }

    /// A word that must be there.
    pub fn needed(&self, column: &str) -> Result<&str, String> {
        self.0.get(column).map(String::as_str).ok_or_else(|| format!("no column {column}"))
    }

    /// A number that must be there and is not negative, as quantities must be.
    pub fn amount(&self, column: &str) -> Result<f64, String> {
        self.needed(column)?;
        self.number(column).filter(|v| *v >= 0.0).ok_or_else(|| format!("no number in {column}"))
    }

    /// The time a kernel took.
    pub fn latency(&self) -> Result<Seconds, String> {
        let us = self.amount("latency_us")?;
        if us > 0.0 { Ok(Seconds::us(us)) } else { Err("no time measured".into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{attention, deduce, gemm, moe, network, planner, serving, training};

    #[test]
    fn a_folder_without_tables_says_what_was_expected() {
        let folder = Path::new("/nowhere");
        let refused = [
            (gemm::score(folder).err(), "kernel_gemm_h100.csv"),
            (attention::score(folder).err(), "kernel_mla.csv"),
            (moe::score(folder).err(), "kernel_moe_h100.csv"),
            (network::score(folder).err(), "kernel_collectives.csv"),
            (serving::score(folder).err(), "trtllm_throughput.csv"),
            (planner::score(folder).err(), "inferencemax_pareto.csv"),
            (training::score(folder, None).err(), "training_vtrain_a100.csv"),
            (deduce::score(folder).err(), "open_host_prices.csv"),
        ];
        for (error, file) in refused {
            assert!(error.unwrap().to_string().contains(file), "{file}");
        }
    }
}
