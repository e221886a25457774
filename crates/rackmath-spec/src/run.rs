//! Published training runs: what their authors said about them.

use crate::SpecError;
use crate::file::noun::{noun, positive, wrong};
use rackmath_units::{Params, Tokens};
use serde::{Deserialize, Deserializer};
use std::str::FromStr;

type Interval = (f64, f64);

/// One run; what was not published is absent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingRun {
    pub id: String,
    pub name: String,
    pub as_of: String,
    pub source: String,
    #[serde(default)]
    pub notes: Vec<String>,
    pub chip: Option<String>,
    pub chips: Option<f64>,
    /// Chip-hours: half a unit of the last digit printed, either side.
    #[serde(default, deserialize_with = "amount::<_, Tokens>")]
    pub chip_hours: Option<Interval>,
    #[serde(default, deserialize_with = "amount::<_, Params>")]
    pub active_params: Option<Interval>,
    #[serde(default, deserialize_with = "amount::<_, Tokens>")]
    pub tokens: Option<Interval>,
    pub mfu: Option<Interval>,
    /// Share of the hours that were training, where it was printed: stops, restarts and lost work are the rest.
    pub effective: Option<Interval>,
    pub days: Option<Interval>,
    /// Unexpected stops, and the days they were counted over.
    #[serde(default, deserialize_with = "stops")]
    pub stops: Option<(f64, f64)>,
    /// How it was cut, where its authors printed that.
    pub layout: Option<RunLayout>,
}

/// How a run was cut; what was not printed is absent. Words are those of a training question.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunLayout {
    pub model: String,
    pub system: String,
    /// The training program, where the catalogue has it.
    pub program: Option<String>,
    pub format: String,
    /// Tokens of a sequence.
    pub sequence: u64,
    /// Sequences of a step.
    pub batch: u64,
    pub tp: Option<u64>,
    pub cp: Option<u64>,
    pub pp: Option<u64>,
    pub virtual_stages: Option<u64>,
    pub ep: Option<u64>,
    pub micro_batch: Option<u64>,
    pub schedule: Option<String>,
    pub sharding: Option<String>,
    pub recompute: Option<String>,
    /// Whether the first and the last stage have a layer less.
    #[serde(default)]
    pub lighter_ends: bool,
    /// Where this stands.
    pub source: String,
}

fn amount<'de, D: Deserializer<'de>, Q: FromStr + Into<f64>>(d: D) -> Result<Option<Interval>, D::Error> {
    let found = rounded(&String::deserialize(d)?, |text| text.parse::<Q>().ok().map(Into::into));
    found.map(Some).ok_or_else(|| wrong("a number such as 14.8T or 10T..12T"))
}

fn stops<'de, D: Deserializer<'de>>(d: D) -> Result<Option<(f64, f64)>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Stops {
        #[serde(deserialize_with = "positive")]
        count: f64,
        #[serde(deserialize_with = "positive")]
        days: f64,
    }
    Stops::deserialize(d).map(|stops| Some((stops.count, stops.days)))
}

pub(crate) fn read(id: &str, text: &str) -> Result<TrainingRun, SpecError> {
    let file = format!("run {id}");
    let run: TrainingRun = noun(&file, id, text, &[])?;
    for (field, pair, most) in [("mfu", run.mfu, 1.0), ("effective", run.effective, 1.0), ("days", run.days, 1e6)] {
        if let Some((low, high)) = pair.filter(|(low, high)| !(*low > 0.0 && low <= high && *high <= most)) {
            let expected = "a low end above 0, then a high end";
            return Err(SpecError::field(&file, field, format!("{low} to {high}"), expected));
        }
    }
    match run.chips.filter(|chips| !(*chips >= 1.0 && chips.is_finite())) {
        Some(chips) => Err(SpecError::field(&file, "chips", chips, "at least 1")),
        None => Ok(run),
    }
}

/// A number as printed and the interval it stands for: half a unit of its last digit either side, so `14.8T` is 14.75 T to
/// 14.85 T. Two numbers joined by `..` are the interval themselves. `read` turns a text into its value.
pub fn rounded(text: &str, read: impl Fn(&str) -> Option<f64>) -> Option<Interval> {
    if let Some((low, high)) = text.split_once("..") {
        let (low, high) = (read(low)?, read(high)?);
        return (low > 0.0 && low <= high).then_some((low, high));
    }
    let value = read(text)?;
    // Replace every digit but the last of the mantissa by zero, and the last by one: what is left is its unit.
    let mantissa_end = text.find(|c: char| !(c.is_ascii_digit() || " $+._,".contains(c))).unwrap_or(text.len());
    let (mantissa, unit) = text.split_at(mantissa_end);
    let last = mantissa.rfind(|c: char| c.is_ascii_digit())?;
    // Trailing zeros before the point may be exact or not; they are taken as exact down to the last of them.
    let one: String = mantissa
        .char_indices()
        .map(|(i, c)| match c {
            c if !c.is_ascii_digit() => c,
            _ if i == last => '1',
            _ => '0',
        })
        .collect();
    let half = read(&format!("{one}{unit}"))? / 2.0;
    (value > 0.0).then_some(((value - half).max(value / 2.0), value + half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_for_what_rounds_to_it() {
        let tokens = |t: &str| rounded(t, |t| t.parse().ok().map(Tokens::get));
        let close = |got: Option<(f64, f64)>, low: f64, high: f64| {
            let (l, h) = got.unwrap();
            assert!((l / low - 1.0).abs() < 1e-9 && (h / high - 1.0).abs() < 1e-9, "{l} {h}");
        };
        close(tokens("14.8T"), 14.75e12, 14.85e12);
        close(tokens("15T"), 14.5e12, 15.5e12);
        close(tokens("2.664 M"), 2.6635e6, 2.6645e6);
        close(tokens("1e12"), 0.5e12, 1.5e12);
        close(tokens("10T..12T"), 10e12, 12e12);
        close(rounded("405B", |t| t.parse().ok().map(Params::get)), 404.5e9, 405.5e9);
        assert_eq!(tokens("12T..10T"), None);
        assert_eq!(tokens("many"), None);
    }
}
