//! Reads a price sheet: one model's prices as a user writes them down, units and all.

use super::noun::{noun, wrong};
use crate::price::{money, storage};
use crate::{Date, SpecError};
use rackmath_units::Tokens;
use serde::{Deserialize, Deserializer};
use toml::Value;

/// One model's prices as a user hands them in: US$ per million tokens.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceSheet {
    pub vendor: Option<String>,
    pub model: Option<String>,
    pub as_of: Option<String>,
    #[serde(default, deserialize_with = "usd")]
    pub input: Option<f64>,
    #[serde(default, deserialize_with = "usd")]
    pub output: Option<f64>,
    #[serde(default, deserialize_with = "usd")]
    pub cached: Option<f64>,
    #[serde(default, deserialize_with = "usd")]
    pub write_5m: Option<f64>,
    #[serde(default, deserialize_with = "usd")]
    pub write_1h: Option<f64>,
    /// And hour.
    #[serde(default, deserialize_with = "usd_per_hour")]
    pub storage: Option<f64>,
    /// Tokens from which long-context prices apply.
    #[serde(default, deserialize_with = "threshold")]
    pub long_above: Option<f64>,
    #[serde(default, deserialize_with = "usd")]
    pub long_input: Option<f64>,
    #[serde(default, deserialize_with = "usd")]
    pub long_output: Option<f64>,
    pub fast_price: Option<f64>,
    pub fast_speed: Option<f64>,
    /// Measured tokens per second and user.
    pub tokens_per_s: Option<f64>,
    /// Hosts whose median the prices are.
    pub hosts: Option<u64>,
}

/// Reads a sheet; `file` is what the user calls it. `today` is refused to be exceeded where it is known.
pub fn price_sheet(file: &str, text: &str, today: Option<Date>) -> Result<PriceSheet, SpecError> {
    let sheet: PriceSheet = noun(file, "", text, &["id"])?;
    sheet.as_of.iter().try_for_each(|date| dated(file, date, today))?;
    Ok(sheet)
}

fn usd<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    money(d).map(|price| Some(plain(price.as_per_mtok())))
}

fn usd_per_hour<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    storage(d).map(|price| price.map(|price| plain(price.as_per_mtok_hour())))
}

fn threshold<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    let tokens = match Value::deserialize(d)? {
        Value::String(text) => text.parse().ok().map(Tokens::get),
        bare => bare.as_float().or(bare.as_integer().map(|n| n as f64)),
    };
    let sane = tokens.filter(|n| (1e3..=1e9).contains(n)).map(Some);
    sane.ok_or_else(|| wrong("a number of tokens from 1k to 1G, such as \"200k\""))
}

/// As it was typed: no price has more than nine places, the rest is the way through dollars per token.
pub fn plain(usd: f64) -> f64 {
    (usd * 1e9).round() / 1e9
}

/// A date as YYYY-MM or YYYY-MM-DD that is not in the future.
pub fn dated(file: &str, date: &str, today: Option<Date>) -> Result<(), SpecError> {
    let day = date.parse::<Date>().ok().filter(|d| Date::new(2020, 1, 1).is_some_and(|first| *d >= first));
    let wrong = |expected: &str| Err(SpecError::field(file, "as_of", format!("\"{date}\""), expected));
    match (day, today) {
        (None, _) => wrong("a date from 2020 on, such as 2026-08-08"),
        (Some(day), Some(today)) if day > today => wrong(&format!("a date not after today, {today}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        price_sheet("my.toml", text, "2026-11-15".parse().ok()).unwrap_err().to_string()
    }

    #[test]
    fn a_sheet_with_units() {
        let text = "vendor = \"anthropic\"\nas_of = \"2026-08-08\"\ninput = \"$5/Mtok\"\noutput = \"25 $/Mtok\"\nstorage = \"$4.50/Mtok-h\"\nlong_above = \"200k\"\n";
        let sheet = price_sheet("my.toml", text, "2026-11-15".parse().ok()).unwrap();
        assert!((sheet.input.unwrap() - 5.0).abs() < 1e-9 && (sheet.output.unwrap() - 25.0).abs() < 1e-9);
        assert!((sheet.storage.unwrap() - 4.5).abs() < 1e-9);
        assert_eq!(sheet.long_above, Some(200e3));
    }

    #[test]
    fn what_is_wrong_is_named_with_file_and_field() {
        for (text, words) in [
            ("inptu = \"$5/Mtok\"", vec!["my.toml", "inptu"]),
            ("input = 5", vec!["my.toml", "input", "with a unit"]),
            ("input = \"$5\"", vec!["input", "per million tokens"]),
            ("output = \"$-5/Mtok\"", vec!["my.toml", "output", "not negative"]),
            ("cached = -0.5", vec!["cached", "with a unit"]),
            ("input = \"$114000/Mtok\"", vec!["input", "between $0.001 and $1,000"]),
            ("input = \"$5/tok\"", vec!["between $0.001 and $1,000"]),
            ("as_of = \"2999-01-01\"", vec!["my.toml", "as_of", "not after today"]),
            ("as_of = \"soon\"", vec!["as_of", "2026-08-08"]),
            ("storage = \"$4.5/Mtok\"", vec!["storage", "and hour"]),
            ("long_above = \"5\"", vec!["long_above", "200k"]),
        ] {
            let got = error(text);
            assert!(words.iter().all(|w| got.contains(w)), "{text}: {got}");
        }
    }
}
