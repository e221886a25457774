//! Reads tables: rows of words by the names of their columns.

use rackmath_spec::SpecError;
use rackmath_units::Seconds;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub fn problem(path: &Path, problem: impl ToString) -> SpecError {
    SpecError::file(path.display().to_string(), problem.to_string())
}

/// The words of a file, which may be packed (`.gz`).
pub fn text(path: &Path) -> Result<String, SpecError> {
    let packed = path.extension().is_some_and(|e| e == "gz");
    let words = if packed {
        let file = std::fs::File::open(path).map_err(|e| problem(path, e))?;
        std::io::read_to_string(flate2::read::GzDecoder::new(file))
    } else {
        std::fs::read_to_string(path)
    };
    words.map_err(|e| problem(path, e))
}

/// The rows of a CSV file, or of a JSON file of objects.
pub fn table(path: &Path) -> Result<Vec<Record>, SpecError> {
    let text = text(path)?;
    if path.extension().is_none_or(|e| e != "json") {
        return parse(&text).map_err(|e| problem(path, e));
    }
    let rows: Vec<BTreeMap<String, Value>> = serde_json::from_str(&text).map_err(|e| problem(path, e))?;
    let word = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let record = |row: BTreeMap<String, Value>| row.into_iter().map(|(column, value)| (column, word(value))).collect();
    Ok(rows.into_iter().map(record).map(Record).collect())
}

pub fn parse(csv: &str) -> Result<Vec<Record>, csv::Error> {
    csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(csv.as_bytes()).into_deserialize().collect()
}

/// The same of a file that need not be there.
pub fn table_or_none(path: &Path) -> Result<Vec<Record>, SpecError> {
    if path.exists() { table(path) } else { Ok(Vec::new()) }
}

/// The rows of some files.
pub fn read<F, T, I: IntoIterator<Item = Result<T, String>>>(
    files: Vec<(PathBuf, &F)>,
    rows: impl Fn(&F, &Record) -> I,
) -> Result<Rows<T>, SpecError> {
    let mut all = Vec::new();
    for (path, file) in files {
        all.extend(table(&path)?.iter().flat_map(|record| rows(file, record)));
    }
    Ok(all.into_iter().collect())
}

/// Those of some files that a folder holds; it must hold one.
pub fn present<'a, T>(
    folder: &Path,
    files: &'a [T],
    name: impl Fn(&T) -> &'static str,
) -> Result<Vec<(PathBuf, &'a T)>, SpecError> {
    let all = files.iter().map(|file| (folder.join(name(file)), file));
    let found: Vec<_> = all.filter(|(path, _)| path.is_file()).collect();
    if found.is_empty() { Err(nothing(folder, files.iter().map(name))) } else { Ok(found) }
}

pub fn nothing(folder: &Path, expected: impl Iterator<Item = &'static str>) -> SpecError {
    let expected: Vec<&str> = expected.collect();
    problem(folder, format!("none of {} found", expected.join(", "))).hint("give the folder that holds them")
}

/// Rows, and how many were left out for which reason.
#[derive(Clone, Debug)]
pub struct Rows<T> {
    pub rows: Vec<T>,
    pub skipped: BTreeMap<String, usize>,
}

impl<T> Rows<T> {
    pub fn none() -> Self {
        Self { rows: Vec::new(), skipped: BTreeMap::new() }
    }

    /// Rows of other tables behind these.
    pub fn join(&mut self, more: Self) {
        self.rows.extend(more.rows);
        for (reason, n) in more.skipped {
            *self.skipped.entry(reason).or_default() += n;
        }
    }

    pub fn skip(&mut self, reason: impl Into<String>) {
        *self.skipped.entry(reason.into()).or_default() += 1;
    }

    /// What is made of each row, those of which nothing can be made counted by reason.
    pub fn map<U, E: ToString>(self, mut make: impl FnMut(T) -> Result<U, E>) -> Rows<U> {
        let mut made = Rows { rows: Vec::new(), skipped: self.skipped };
        for row in self.rows {
            match make(row) {
                Ok(row) => made.rows.push(row),
                Err(reason) => made.skip(reason.to_string()),
            }
        }
        made
    }
}

impl<T> FromIterator<Result<T, String>> for Rows<T> {
    fn from_iter<I: IntoIterator<Item = Result<T, String>>>(all: I) -> Self {
        let mut kept = Self { rows: Vec::new(), skipped: BTreeMap::new() };
        for row in all {
            match row {
                Ok(row) => kept.rows.push(row),
                Err(reason) => *kept.skipped.entry(reason).or_default() += 1,
            }
        }
        kept
    }
}

/// One row, by the names of its columns.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct Record(pub BTreeMap<String, String>);

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

/// Chips whose timings check what the constants of their generation say, and those of makers nothing is planned for: nothing is
/// fitted on them.
const KEPT: [&str; 7] = ["h200", "b300", "gb200", "gb300", "arc", "b60", "ascend"];

/// Whether constants of kernels and links may be fitted on a chip, by its id or as a table calls it.
pub fn fitted_on(chip: &str) -> bool {
    !KEPT.iter().any(|kept| chip.starts_with(kept))
}

#[cfg(test)]
mod tests {

    #[test]
    fn a_folder_without_tables_says_what_was_expected() {
        let catalog = rackmath_catalog::embedded();
        for (topic, file) in [
            ("gemm", "kernel_gemm_h100.csv"),
            ("attention", "kernel_mla.csv"),
            ("moe", "kernel_moe_h100.csv"),
            ("network", "kernel_collectives.csv"),
            ("serving", "trtllm_throughput.csv"),
            ("steps", "steps.csv.gz"),
            ("truth", "llama405b_mi300x_h100_requests.csv.gz"),
            ("plan", "inferencemax_pareto.csv"),
            ("training", "training_vtrain_a100.csv"),
            ("deduce", "open_host_prices.csv"),
        ] {
            let refused = crate::answer(&catalog, &["score", topic, "/nowhere"], &|_, _, _| {}).unwrap().unwrap_err();
            assert!(refused.to_string().contains(file), "{refused}");
        }
        assert!(crate::answer(&catalog, &["score", "abacus", "/nowhere"], &|_, _, _| {}).is_none());
    }
}
