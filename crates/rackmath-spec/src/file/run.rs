//! Reads a published training run.

use super::parse_toml;
use crate::{SpecError, TrainingRun, rounded};
use rackmath_units::{Params, Tokens};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: String,
    #[serde(default, rename = "aliases")]
    _aliases: Vec<String>,
    as_of: String,
    source: String,
    #[serde(default)]
    notes: Vec<String>,
    chip: Option<String>,
    chips: Option<f64>,
    chip_hours: Option<String>,
    active_params: Option<String>,
    tokens: Option<String>,
    mfu: Option<(f64, f64)>,
    days: Option<(f64, f64)>,
    stops: Option<Stops>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stops {
    count: f64,
    days: f64,
}

pub fn training_run(id: &str, text: &str) -> Result<TrainingRun, SpecError> {
    let file = format!("run {id}");
    let raw: Raw = parse_toml(&file, text)?;
    let fail = |field: &str, given: &str, expected: &str| SpecError::field(&file, field, given, expected);
    let amount = |field: &str, text: Option<String>, read: fn(&str) -> Option<f64>| {
        text.map(|t| rounded(&t, read).ok_or_else(|| fail(field, &t, "a number such as 14.8T or 10T..12T"))).transpose()
    };
    let pair = |field: &str, pair: Option<(f64, f64)>, most: f64| match pair {
        Some((low, high)) if !(low > 0.0 && low <= high && high <= most) => {
            Err(fail(field, &format!("{low} to {high}"), "a low end above 0, then a high end"))
        }
        pair => Ok(pair),
    };
    let stops = raw.stops.map(|s| (s.count, s.days));
    if let Some((count, days)) = stops
        && !(count > 0.0 && days > 0.0 && count.is_finite() && days.is_finite())
    {
        return Err(fail("stops", &format!("{count} in {days} days"), "positive numbers"));
    }
    if let Some(chips) = raw.chips
        && !(chips >= 1.0 && chips.is_finite())
    {
        return Err(fail("chips", &chips.to_string(), "at least 1"));
    }
    Ok(TrainingRun {
        id: id.to_owned(),
        name: raw.name,
        as_of: raw.as_of,
        source: raw.source,
        notes: raw.notes,
        chip: raw.chip,
        chips: raw.chips,
        chip_hours: amount("chip_hours", raw.chip_hours, |t| t.parse().ok().map(Tokens::get))?,
        active_params: amount("active_params", raw.active_params, |t| t.parse().ok().map(Params::get))?,
        tokens: amount("tokens", raw.tokens, |t| t.parse().ok().map(Tokens::get))?,
        mfu: pair("mfu", raw.mfu, 1.0)?,
        days: pair("days", raw.days, 1e6)?,
        stops,
    })
}
