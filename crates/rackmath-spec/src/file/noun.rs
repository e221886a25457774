//! Reads a TOML file straight into the noun it describes.
//!
//! Keys that only explain are passed over, short keys of `[sources]` become their citations, what no noun knows is refused,
//! and every error names the file and the field.

use super::parse_toml;
use crate::SpecError;
use crate::node::{self, Node, Table};
use rackmath_units::{ByteRate, Fraction, Seconds};
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde::{Deserialize, de};
use std::collections::BTreeMap;
use std::str::FromStr;

/// What marks an error of ours that says what was expected.
const EXPECTED: char = '\u{1}';

/// Reads a file; `explains` lists keys that are for readers of the file alone, as `key`, `table.key` or `table.*.key`.
pub(crate) fn noun<T: DeserializeOwned>(file: &str, id: &str, text: &str, explains: &[&str]) -> Result<T, SpecError> {
    read(file, || Ok(prepared(parse(file, text)?, id, explains)))
}

/// The same where every `source` is a key of `[sources]`, an address or a citation.
pub(crate) fn cited<T: DeserializeOwned>(file: &str, id: &str, text: &str, explains: &[&str]) -> Result<T, SpecError> {
    read(file, || {
        let mut table = parse(file, text)?;
        let sources = table.iter().position(|(key, _)| key == "sources");
        let sources = sources.map_or(Node::Table(Vec::new()), |at| table.remove(at).1);
        let sources: BTreeMap<String, String> =
            Deserialize::deserialize(sources).map_err(|e| SpecError::file(file, format!("sources: {e}")))?;
        for (key, node) in &mut table {
            cite(node, &sources).map_err(|(at, word)| {
                let expected = "a key of [sources], an address, or a citation of several words";
                SpecError::field(file, format!("{key}{at}"), word, expected)
            })?;
        }
        Ok(prepared(table, id, explains))
    })
}

fn parse<'a>(file: &str, text: &'a str) -> Result<Table<'a>, SpecError> {
    match parse_toml(file, text)? {
        Node::Table(table) => Ok(table),
        _ => Err(SpecError::file(file, "holds no tables")),
    }
}

/// Without what only explains, and with its id.
fn prepared<'a>(mut table: Table<'a>, id: &'a str, explains: &[&str]) -> Node<'a> {
    for path in explains.iter().chain(&["aliases"]) {
        strip(&mut table, path);
    }
    if !explains.contains(&"id") {
        table.retain(|(key, _)| key != "id");
        table.push(("id".into(), Node::Text(id.into())));
    }
    Node::Table(table)
}

fn read<'a, T: DeserializeOwned>(file: &str, node: impl Fn() -> Result<Node<'a>, SpecError>) -> Result<T, SpecError> {
    node::read(node()?).or_else(|error| {
        let path = error.path();
        let path = path.strip_suffix(".value").unwrap_or(&path);
        // The rest of the message says again where it stands.
        let problem = error.problem().lines().next().unwrap_or_default().replace('`', "");
        Err(match problem.strip_prefix(EXPECTED) {
            Some(expected) => {
                let wrong = node()?.at(error.segments()).map_or_else(|| "nothing".into(), Node::shown);
                SpecError::field(file, path, wrong, expected)
            }
            None if path == "." => SpecError::file(file, problem),
            None => SpecError::file(file, format!("{path}: {problem}")),
        })
    })
}

/// Citations in place of their short keys. A bare word that is no key is a slip: where it stands, and the word.
fn cite(node: &mut Node, sources: &BTreeMap<String, String>) -> Result<(), (String, String)> {
    match node {
        Node::Table(table) => table.iter_mut().try_for_each(|(key, node)| match (&**key, node) {
            ("source" | "checked", Node::Text(word)) => match sources.get(&**word) {
                Some(full) => {
                    *word = full.clone().into();
                    Ok(())
                }
                None if word.trim().contains([' ', '/']) => Ok(()),
                None => Err((".source".into(), word.to_string())),
            },
            (key, node) => cite(node, sources).map_err(|(at, word)| (format!(".{key}{at}"), word)),
        }),
        Node::List(all) => {
            let mut each = all.iter_mut().enumerate();
            each.try_for_each(|(i, node)| cite(node, sources).map_err(|(at, word)| (format!("[{i}]{at}"), word)))
        }
        _ => Ok(()),
    }
}

fn strip(table: &mut Table, path: &str) {
    fn inner(node: &mut Node, rest: &str) {
        match node {
            Node::Table(table) => strip(table, rest),
            Node::List(all) => all.iter_mut().for_each(|node| inner(node, rest)),
            _ => {}
        }
    }
    match path.split_once('.') {
        None => table.retain(|(key, _)| key != path),
        Some((name, rest)) => {
            table.iter_mut().filter(|(key, _)| name == "*" || key == name).for_each(|(_, node)| inner(node, rest));
        }
    }
}

/// A number that lies where it must.
fn number<'de, D: Deserializer<'de>, T>(d: D, expected: &str, make: impl Fn(f64) -> Option<T>) -> Result<T, D::Error> {
    make(f64::deserialize(d)?).ok_or_else(|| wrong(expected))
}

pub(crate) fn wrong<E: de::Error>(expected: &str) -> E {
    E::custom(format!("{EXPECTED}{expected}"))
}

/// What a factor is where a file leaves it out.
pub(crate) fn one() -> f64 {
    1.0
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

pub(crate) fn seconds<'de, D: Deserializer<'de>>(d: D) -> Result<Seconds, D::Error> {
    number(d, "seconds from 0 to 1000", |x| (0.0..=1e3).contains(&x).then(|| Seconds::s(x)))
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
