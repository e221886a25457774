//! Reads a TOML file straight into the noun it describes.
//!
//! Keys that only explain are passed over, short keys of `[sources]` become their citations, what no noun knows is refused,
//! and every error names the file and the field.

use super::parse_toml;
use crate::SpecError;
use rackmath_units::{ByteRate, Fraction, Seconds};
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde::{Deserialize, de};
use std::collections::BTreeMap;
use std::str::FromStr;
use toml::{Table, Value};

/// What marks an error of ours that says what was expected.
const EXPECTED: char = '\u{1}';

/// Reads a file; `explains` lists keys that are for readers of the file alone, as `key`, `table.key` or `table.*.key`.
pub(crate) fn noun<T: DeserializeOwned>(file: &str, id: &str, text: &str, explains: &[&str]) -> Result<T, SpecError> {
    read(file, id, parse_toml(file, text)?, explains)
}

/// The same where every `source` is a key of `[sources]`, an address or a citation.
pub(crate) fn cited<T: DeserializeOwned>(file: &str, id: &str, text: &str, explains: &[&str]) -> Result<T, SpecError> {
    let mut table: Table = parse_toml(file, text)?;
    let sources = table.remove("sources").unwrap_or(Value::Table(Table::new()));
    let sources: BTreeMap<String, String> =
        sources.try_into().map_err(|e| SpecError::file(file, format!("sources: {e}")))?;
    for (key, value) in &mut table {
        cite(file, key, value, &sources)?;
    }
    read(file, id, table, explains)
}

fn read<T: DeserializeOwned>(file: &str, id: &str, mut table: Table, explains: &[&str]) -> Result<T, SpecError> {
    for path in explains.iter().chain(&["aliases"]) {
        strip(&mut table, path);
    }
    if !explains.contains(&"id") {
        table.insert("id".into(), id.into());
    }
    let given = Value::Table(table);
    serde_path_to_error::deserialize(given.clone()).map_err(|error| {
        let path = error.path().to_string();
        let path = path.strip_suffix(".value").unwrap_or(&path);
        // The rest of the message says again where it stands.
        let problem = error.inner().to_string().lines().next().unwrap_or_default().replace('`', "");
        match problem.strip_prefix(EXPECTED) {
            Some(expected) => SpecError::field(file, path, shown(at(&given, error.path())), expected),
            None if path == "." => SpecError::file(file, problem),
            None => SpecError::file(file, format!("{path}: {problem}")),
        }
    })
}

/// Citations in place of their short keys. A bare word that is no key is a slip.
fn cite(file: &str, field: &str, value: &mut Value, sources: &BTreeMap<String, String>) -> Result<(), SpecError> {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                match (key.as_str(), &mut *value) {
                    ("source" | "checked", Value::String(key)) => match sources.get(key) {
                        Some(full) => key.clone_from(full),
                        None if key.trim().contains([' ', '/']) => {}
                        None => {
                            let expected = "a key of [sources], an address, or a citation of several words";
                            return Err(SpecError::field(file, format!("{field}.source"), &*key, expected));
                        }
                    },
                    (key, value) => cite(file, &format!("{field}.{key}"), value, sources)?,
                }
            }
            Ok(())
        }
        Value::Array(all) => {
            let mut each = all.iter_mut().enumerate();
            each.try_for_each(|(i, value)| cite(file, &format!("{field}[{i}]"), value, sources))
        }
        _ => Ok(()),
    }
}

fn strip(table: &mut Table, path: &str) {
    fn inner(value: &mut Value, rest: &str) {
        match value {
            Value::Table(table) => strip(table, rest),
            Value::Array(all) => all.iter_mut().for_each(|value| inner(value, rest)),
            _ => {}
        }
    }
    match path.split_once('.') {
        None => drop(table.remove(path)),
        Some(("*", rest)) => table.iter_mut().for_each(|(_, value)| inner(value, rest)),
        Some((key, rest)) => table.get_mut(key).into_iter().for_each(|value| inner(value, rest)),
    }
}

fn at<'a>(value: &'a Value, path: &serde_path_to_error::Path) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, segment| match segment {
        serde_path_to_error::Segment::Seq { index } => value.get(index),
        serde_path_to_error::Segment::Map { key } => value.get(key),
        _ => None,
    })
}

fn shown(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Integer(n)) => n.to_string(),
        Some(Value::Float(x)) => x.to_string(),
        Some(value) => value.type_str().into(),
        None => "nothing".into(),
    }
}

/// A number that lies where it must.
fn number<'de, D: Deserializer<'de>, T>(d: D, expected: &str, make: impl Fn(f64) -> Option<T>) -> Result<T, D::Error> {
    make(f64::deserialize(d)?).ok_or_else(|| wrong(expected))
}

pub(crate) fn wrong<E: de::Error>(expected: &str) -> E {
    E::custom(format!("{EXPECTED}{expected}"))
}

/// A share above nothing: it divides.
pub(crate) fn share<'de, D: Deserializer<'de>>(d: D) -> Result<Fraction, D::Error> {
    number(d, "a share above 0 and at most 1", |x| Fraction::checked(x).filter(|s| s.get() > 0.0))
}

pub(crate) fn part<'de, D: Deserializer<'de>>(d: D) -> Result<Fraction, D::Error> {
    number(d, "a share from 0 to 1", Fraction::checked)
}

pub(crate) fn share_or_none<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Fraction>, D::Error> {
    share(d).map(Some)
}

pub(crate) fn positive<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    number(d, "a positive number", |x| (x.is_finite() && x > 0.0).then_some(x))
}

pub(crate) fn least_one<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    number(d, "a number of at least 1", |x| (x.is_finite() && x >= 1.0).then_some(x))
}

pub(crate) fn us<'de, D: Deserializer<'de>>(d: D) -> Result<Seconds, D::Error> {
    number(d, "microseconds from 0 to 1000000", |x| (0.0..=1e6).contains(&x).then(|| Seconds::us(x)))
}

pub(crate) fn ns<'de, D: Deserializer<'de>>(d: D) -> Result<Seconds, D::Error> {
    number(d, "nanoseconds from 0 to 1000000", |x| (0.0..=1e6).contains(&x).then(|| Seconds::ns(x)))
}

pub(crate) fn ms<'de, D: Deserializer<'de>>(d: D) -> Result<Seconds, D::Error> {
    number(d, "milliseconds from 0 to 1000", |x| (0.0..=1e3).contains(&x).then(|| Seconds::s(x * 1e3 * 1e-6)))
}

pub(crate) fn gb_per_s<'de, D: Deserializer<'de>>(d: D) -> Result<ByteRate, D::Error> {
    number(d, "GB/s from 0.001 to 1000000", |x| (1e-3..=1e6).contains(&x).then(|| ByteRate::gb_per_s(x)))
}

/// A word or quantity read as it is elsewhere.
pub(crate) fn text<'de, D: Deserializer<'de>, T: FromStr<Err: std::fmt::Display>>(d: D) -> Result<T, D::Error> {
    String::deserialize(d)?.parse().map_err(D::Error::custom)
}

pub(crate) fn text_or_none<'de, D: Deserializer<'de>, T: FromStr<Err: std::fmt::Display>>(
    d: D,
) -> Result<Option<T>, D::Error> {
    text(d).map(Some)
}

/// Refuses the first of these numbers that lies outside its range.
pub(crate) fn within(file: &str, all: &[(&str, f64, f64, f64)]) -> Result<(), SpecError> {
    match all.iter().find(|(_, value, low, high)| !(low..=high).contains(&value)) {
        None => Ok(()),
        Some((field, value, low, high)) => Err(SpecError::field(file, *field, value, format!("{low} to {high}"))),
    }
}
