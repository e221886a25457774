//! Reads a price sheet: one model's prices as a user writes them down, units and all.

use super::parse_toml;
use crate::deduce::PRICE_RANGE;
use crate::error::shorten;
use crate::{Date, SpecError};
use rackmath_units::{DollarsPerToken, Tokens};
use serde::Deserialize;
use toml::Value;

/// One model's prices as a user hands them in: US$ per million tokens, or what was written for it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceSheet<P = f64> {
    /// Who sells.
    pub vendor: Option<String>,
    pub model: Option<String>,
    pub as_of: Option<String>,
    pub input: Option<P>,
    pub output: Option<P>,
    pub cached: Option<P>,
    pub write_5m: Option<P>,
    pub write_1h: Option<P>,
    /// And hour.
    pub storage: Option<P>,
    /// Tokens from which long-context prices apply.
    pub long_above: Option<P>,
    pub long_input: Option<P>,
    pub long_output: Option<P>,
    pub fast_price: Option<f64>,
    pub fast_speed: Option<f64>,
    /// Measured tokens per second and user.
    pub tokens_per_s: Option<f64>,
    /// Hosts whose median the prices are.
    pub hosts: Option<u64>,
}

/// Reads a sheet; `file` is what the user calls it. `today` is refused to be exceeded where it is known.
pub fn price_sheet(file: &str, text: &str, today: Option<Date>) -> Result<PriceSheet, SpecError> {
    type Read = fn(&str, &str, &str) -> Result<f64, SpecError>;
    let raw: PriceSheet<Value> = parse_toml(file, text)?;
    raw.as_of.iter().try_for_each(|date| dated(file, date, today))?;
    let read = |by: Read, field: &str, value: Option<Value>| value.map(|v| by(file, field, &written(&v))).transpose();
    let long_above = read(threshold, "long_above", raw.long_above)?;
    Ok(PriceSheet {
        vendor: raw.vendor,
        model: raw.model,
        as_of: raw.as_of,
        input: read(price, "input", raw.input)?,
        output: read(price, "output", raw.output)?,
        cached: read(price, "cached", raw.cached)?,
        write_5m: read(price, "write_5m", raw.write_5m)?,
        write_1h: read(price, "write_1h", raw.write_1h)?,
        storage: read(storage, "storage", raw.storage)?,
        long_above,
        long_input: read(price, "long_input", raw.long_input)?,
        long_output: read(price, "long_output", raw.long_output)?,
        fast_price: raw.fast_price,
        fast_speed: raw.fast_speed,
        tokens_per_s: raw.tokens_per_s,
        hosts: raw.hosts,
    })
}

fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Integer(n) => n.to_string(),
        Value::Float(x) => x.to_string(),
        other => other.type_str().to_owned(),
    }
}

fn refused(file: &str, field: &str, given: &str, expected: &str) -> SpecError {
    SpecError::field(file, field, format!("\"{}\"", shorten(given)), expected)
}

/// A price per million tokens, with its unit.
fn price(file: &str, field: &str, text: &str) -> Result<f64, SpecError> {
    let bare = text.trim().trim_start_matches('$').trim();
    if text.contains('-') && !text.contains(['e', 'E']) {
        return Err(refused(file, field, text, "a price above 0, such as \"$5/Mtok\""));
    }
    if bare.parse::<f64>().is_ok() {
        return Err(refused(file, field, text, "a price with its unit, such as \"$5/Mtok\" or \"5 $/Mtok\""));
    }
    match text.parse::<DollarsPerToken>() {
        Ok(price) => believable(file, field, text, price.as_per_mtok()),
        Err(_) => Err(refused(file, field, text, "a price per million tokens, such as \"$5/Mtok\" or \"5 $/Mtok\"")),
    }
}

/// A price per million tokens and hour.
fn storage(file: &str, field: &str, text: &str) -> Result<f64, SpecError> {
    let wanted = "a price per million tokens and hour, such as \"$4.50/Mtok-h\"";
    let trimmed = text.trim();
    let Some(rate) = ["-hour", "-h", "/hour", "/h"].iter().find_map(|unit| trimmed.strip_suffix(unit)) else {
        return Err(refused(file, field, text, wanted));
    };
    let price = rate.parse::<DollarsPerToken>().map_err(|_| refused(file, field, text, wanted))?;
    believable(file, field, text, price.as_per_mtok())
}

/// As it was typed: no price has more than nine places, the rest is the way through dollars per token.
pub fn plain(usd: f64) -> f64 {
    (usd * 1e9).round() / 1e9
}

fn believable(file: &str, field: &str, text: &str, price: f64) -> Result<f64, SpecError> {
    // Room for the last digit of the conversion.
    if (PRICE_RANGE.0 * 0.999_999..=PRICE_RANGE.1 * 1.000_001).contains(&price) {
        return Ok(plain(price));
    }
    Err(refused(file, field, text, "between $0.001 and $1,000 per million tokens; check the unit"))
}

fn threshold(file: &str, field: &str, text: &str) -> Result<f64, SpecError> {
    match text.parse::<Tokens>() {
        Ok(tokens) if (1e3..=1e9).contains(&tokens.get()) => Ok(tokens.get()),
        _ => Err(refused(file, field, text, "a number of tokens from 1k to 1G, such as \"200k\"")),
    }
}

/// A date as YYYY-MM or YYYY-MM-DD that is not in the future.
pub fn dated(file: &str, date: &str, today: Option<Date>) -> Result<(), SpecError> {
    let day = date.parse::<Date>().ok().filter(|d| Date::new(2020, 1, 1).is_some_and(|first| *d >= first));
    let wrong = |expected: &str| Err(refused(file, "as_of", date, expected));
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
            ("input = 5", vec!["my.toml", "input", "with its unit"]),
            ("input = \"$5\"", vec!["input", "with its unit"]),
            ("output = \"$-5/Mtok\"", vec!["my.toml", "output", "above 0"]),
            ("cached = -0.5", vec!["cached", "above 0"]),
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
