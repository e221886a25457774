//! Values of a request that can be, or what would do instead.

use crate::Error;
use rackmath_spec::model::Shape;
use rackmath_spec::{Chip, Model};

/// A number within bounds.
pub(crate) fn within(field: &'static str, x: f64, low: f64, high: f64) -> Result<f64, Error> {
    if (low..=high).contains(&x) {
        return Ok(x);
    }
    let high = if high < 1e5 { high.to_string() } else { format!("{high:e}") };
    Err(Error::value(field, x, format!("{low} to {high}")))
}

/// The layers of a model that is not known by its totals alone.
pub(crate) fn layered<'a>(model: &'a Model, asked: &str) -> Result<&'a Shape, Error> {
    model.shape().ok_or_else(|| Error::value("model", asked, "a model known layer by layer"))
}

/// That a chip has no arithmetic for something; `called` is the name used for it.
pub(crate) fn no_peak(chip: &Chip, called: &str, wanted: impl ToString) -> Error {
    let has: Vec<&str> = chip.peak.keys().map(|m| m.name()).collect();
    Error::NoPeak { chip: called.into(), wanted: wanted.to_string(), has: has.join(", ") }
}

/// The names asked for, or all there are.
pub(crate) fn named_or_all<'a>(wanted: &[String], all: impl Iterator<Item = &'a str>) -> Vec<String> {
    if wanted.is_empty() { all.map(str::to_owned).collect() } else { wanted.to_vec() }
}
