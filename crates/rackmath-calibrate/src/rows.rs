//! Rows of a published table: words by column.

use crate::CalibrateError;
use std::collections::BTreeMap;
use std::path::Path;

/// One row, by the names of its columns.
pub type Row = BTreeMap<String, String>;

pub fn read(folder: &Path, file: &str) -> Result<Vec<Row>, CalibrateError> {
    let path = folder.join(file);
    let mut reader = csv::Reader::from_path(&path).map_err(|e| unreadable(&path, &e))?;
    reader.deserialize().map(|row| row.map_err(|e| unreadable(&path, &e))).collect()
}

fn unreadable(path: &Path, error: &csv::Error) -> CalibrateError {
    CalibrateError::File { file: path.display().to_string(), problem: error.to_string() }
}

/// A word; empty when absent.
pub fn text<'a>(row: &'a Row, key: &str) -> &'a str {
    row.get(key).map_or("", String::as_str)
}

/// A number; nothing when absent or not one.
pub fn number(row: &Row, key: &str) -> Option<f64> {
    text(row, key).parse::<f64>().ok().filter(|x| x.is_finite())
}

/// A count; absent, empty and 0 are 1.
pub fn degree(row: &Row, key: &str) -> u64 {
    number(row, key).map_or(1, |x| x as u64).max(1)
}
