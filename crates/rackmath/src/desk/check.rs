//! Values of a request that can be, or what would do instead.

use crate::Error;
use rackmath_spec::model::Shape;
use rackmath_spec::{Chip, Model};
use rackmath_units::float;

/// A number within bounds.
pub(crate) fn within(field: &'static str, x: f64, low: f64, high: f64) -> Result<f64, Error> {
    if (low..=high).contains(&x) {
        return Ok(x);
    }
    let high = if high < 1e5 { high.to_string() } else { format!("{high:e}") };
    Err(Error::value(field, x, format!("{low} to {high}")))
}

/// The same of a number that may be left out.
pub(crate) fn if_given(field: &'static str, x: Option<f64>, low: f64, high: f64) -> Result<Option<f64>, Error> {
    x.map(|x| within(field, x, low, high)).transpose()
}

/// Whether nothing was given.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Refuses a value that cannot be.
pub(crate) fn refuse_if(
    wrong: bool,
    field: &str,
    given: impl ToString,
    expected: impl Into<String>,
) -> Result<(), Error> {
    if wrong { Err(Error::value(field, given, expected)) } else { Ok(()) }
}

/// A whole number from 1 on.
pub(crate) fn up_to(field: &'static str, n: u64, most: u64) -> Result<u64, Error> {
    let expected = format!("1 to {}", rackmath_units::grouped(most as f64));
    refuse_if(!(1..=most).contains(&n), field, n, expected).map(|()| n)
}

/// So many values from one to another, spaced by equal factors, ends included.
pub(crate) fn spaced(from: f64, to: f64, points: usize, most: f64) -> Result<Vec<f64>, Error> {
    let expected = format!("a rising range from at least 1 to at most {most:e}");
    refuse_if(!(from >= 1.0 && to > from && to <= most), "from, to", format!("{from} to {to}"), expected)?;
    let (last, ratio) = (points - 1, float::ln(to / from));
    let inner = (1..last).map(|i| from * float::exp(ratio * i as f64 / last as f64));
    Ok([from].into_iter().chain(inner).chain([to]).collect())
}

/// The layers of a model that is not known by its totals alone.
pub(crate) fn layered<'a>(model: &'a Model, asked: &str) -> Result<&'a Shape, Error> {
    model.shape().ok_or_else(|| Error::value("model", asked, "a model known layer by layer"))
}

/// That a chip has no arithmetic for something; `called` is the name used for it.
pub(crate) fn no_peak(chip: &Chip, called: &str, wanted: impl ToString) -> Error {
    let has: Vec<&str> = chip.peak.keys().map(Into::into).collect();
    let error = Error::said(format!("{called} has no dense peak for {} weights", wanted.to_string()));
    error.hint(format!("it has {}", has.join(", ")))
}

/// That the hourly price of a chip is not known.
pub(crate) fn no_price(chip: &Chip, basis: &str, has: &str) -> Error {
    let error = Error::said(format!("no {basis} price is known for {}", chip.id)).at(PRICE);
    error.hint(format!("give one with {{{PRICE}}}, or choose {has}"))
}

const PRICE: &str = "setting.price_usd_per_chip_hour";

/// The nearest of some words, as the end of a hint.
pub(crate) fn near<'a>(text: &str, words: impl Iterator<Item = &'a str>) -> String {
    rackmath_spec::nearest(text, words).first().map_or(String::new(), |n| format!("; did you mean {n}?"))
}

/// The names asked for, or all there are.
pub(crate) fn named_or_all<'a>(wanted: &[String], all: impl Iterator<Item = &'a str>) -> Vec<String> {
    if wanted.is_empty() { all.map(str::to_owned).collect() } else { wanted.to_vec() }
}
