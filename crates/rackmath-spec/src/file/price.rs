//! Reads a price sheet, and refuses what cannot be a price.
//!
//! A price carries its unit (`"$5/Mtok"`), lies between $0.001 and $1,000 per million tokens (public price tables hold
//! values a hundred thousand times too high), and has a source. A list that begins after the sheet was checked must say
//! `announced = true`; a sheet checked after the day the reader names is refused.

use super::noun::cited;
use crate::SpecError;
use crate::date::{Date, clock};
use crate::error::{path, shorten};
use crate::price::{CacheOffer, Conflict, Factors, List, Mode, Sheet, Tier, Ttl, Window};
use rackmath_units::{DollarsPerToken, HoldPrice, Seconds, Tokens};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::str::FromStr;
use toml::Value;

/// The lowest and highest believable price of a million tokens.
const BELIEVABLE: std::ops::RangeInclusive<f64> = 0.001..=1000.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSheet {
    name: String,
    provider: String,
    model: String,
    as_of: Value,
    list: Vec<RawList>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawList {
    from: Value,
    #[serde(default)]
    announced: bool,
    source: String,
    note: Option<String>,
    input: Value,
    output: Value,
    #[serde(default)]
    cache: Vec<RawCache>,
    #[serde(default)]
    tier: Vec<RawTier>,
    #[serde(default)]
    mode: BTreeMap<String, RawFactors>,
    #[serde(default)]
    window: Vec<RawWindow>,
    #[serde(default)]
    conflict: Vec<RawConflict>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCache {
    name: String,
    ttl: Value,
    #[serde(default)]
    restarts: bool,
    write: Option<Value>,
    read: Value,
    storage: Option<Value>,
    minimum: Option<Value>,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTier {
    above: Option<Value>,
    at_least: Option<Value>,
    input: Value,
    output: Value,
    cache_read: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFactors {
    factor: Option<f64>,
    input: Option<f64>,
    output: Option<f64>,
    cache: Option<f64>,
    speed: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWindow {
    name: String,
    days: String,
    utc: Vec<String>,
    factor: Option<f64>,
    input: Option<f64>,
    output: Option<f64>,
    cache: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConflict {
    field: String,
    value: String,
    source: String,
    note: Option<String>,
}

/// Reads a price sheet; `known_by` is the day the reader lives in, if one is stated.
pub fn price(id: &str, text: &str, known_by: Option<Date>) -> Result<Sheet, SpecError> {
    let file = format!("price {id}");
    let raw: RawSheet = cited(&file, id, text, &["id"])?;
    let reader = Reader { file: &file };
    let as_of: Date = reader.parsed("as_of", &raw.as_of)?;
    if let Some(day) = known_by.filter(|day| as_of > *day) {
        return Err(reader.wrong(
            "as_of",
            as_of,
            format!("a date not after {day}: prices cannot be checked ahead of time"),
        ));
    }
    let mut lists = Vec::new();
    for (i, list) in raw.list.into_iter().enumerate() {
        let list = reader.list(&format!("list[{i}]"), list, as_of)?;
        if lists.last().is_some_and(|before: &List| before.from >= list.from) {
            return Err(reader.wrong(&format!("list[{i}].from"), list.from, "lists in order of their dates".into()));
        }
        lists.push(list);
    }
    if lists.is_empty() {
        return Err(reader.wrong("list", "none", "at least one [[list]] of prices".into()));
    }
    Ok(Sheet { id: id.to_owned(), name: raw.name, provider: raw.provider, model: raw.model, as_of, lists })
}

struct Reader<'a> {
    file: &'a str,
}

impl Reader<'_> {
    fn wrong(&self, field: &str, given: impl std::fmt::Display, expected: String) -> SpecError {
        let (file, given) = (path(self.file), shorten(&given.to_string()));
        SpecError::field(file, field, given, expected)
    }

    /// A value written as text with its unit; a bare number has lost its unit.
    fn parsed<T: FromStr<Err: std::fmt::Display>>(&self, field: &str, raw: &Value) -> Result<T, SpecError> {
        let text = match raw {
            Value::String(text) => text.clone(),
            Value::Datetime(date) => date.to_string(),
            bare => {
                let expected = "text with a unit, such as \"$5/Mtok\", \"$4.50/Mtok-h\", \"5 min\" or \"200k\"";
                return Err(self.wrong(
                    field,
                    bare.as_float().or(bare.as_integer().map(|n| n as f64)).map_or("no text".into(), |n| n.to_string()),
                    expected.into(),
                ));
            }
        };
        text.parse().map_err(|e: T::Err| {
            // The remedy stands behind the semicolon of a unit error: keep it.
            let remedy = e.to_string();
            let remedy = remedy.split_once(" is not ").map_or(remedy.clone(), |(_, r)| r.replace("; ", ", "));
            self.wrong(field, format!("\"{text}\""), remedy)
        })
    }

    fn money(&self, field: &str, raw: &Value) -> Result<DollarsPerToken, SpecError> {
        if let Value::String(text) = raw
            && (text.trim().starts_with('-') || text.trim().starts_with("$-"))
        {
            return Err(self.wrong(field, format!("\"{text}\""), "a price that is not negative".into()));
        }
        let value: DollarsPerToken = self.parsed(field, raw)?;
        if !BELIEVABLE.contains(&value.as_per_mtok()) {
            return Err(self.wrong(field, value, "between $0.001 and $1,000 per million tokens".into()));
        }
        Ok(value)
    }

    fn storage(&self, field: &str, raw: &Value) -> Result<HoldPrice, SpecError> {
        let value: HoldPrice = self.parsed(field, raw)?;
        if !BELIEVABLE.contains(&value.as_per_mtok_hour()) {
            return Err(self.wrong(field, value, "between $0.001 and $1,000 per million tokens and hour".into()));
        }
        Ok(value)
    }

    fn list(&self, field: &str, raw: RawList, as_of: Date) -> Result<List, SpecError> {
        let at = |name: &str| format!("{field}.{name}");
        let from: Date = self.parsed(&at("from"), &raw.from)?;
        if from > as_of && !raw.announced {
            let expected = format!("a date not after {as_of} when the sheet was checked, or announced = true");
            return Err(self.wrong(&at("from"), from, expected));
        }
        let (input, output) = (self.money(&at("input"), &raw.input)?, self.money(&at("output"), &raw.output)?);
        let caches = raw.cache.into_iter().map(|c| self.cache(&at("cache"), c)).collect::<Result<Vec<_>, _>>()?;
        let tiers = raw.tier.iter().map(|t| self.tier(&at("tier"), t)).collect::<Result<Vec<_>, _>>()?;
        if tiers.windows(2).any(|two| two[0].threshold >= two[1].threshold) {
            return Err(self.wrong(&at("tier"), "out of order", "tiers from short to long".into()));
        }
        let modes = raw.mode.iter().map(|(name, f)| {
            let at = at(&format!("mode.{name}"));
            let factors = self.factors(&at, (f.factor, f.input, f.output, f.cache))?;
            let speed = f.speed.map(|s| self.multiple(&format!("{at}.speed"), s)).transpose()?;
            Ok(Mode { name: name.clone(), factors, speed })
        });
        let modes = modes.collect::<Result<Vec<_>, SpecError>>()?;
        let windows = raw.window.iter().map(|w| self.window(&at("window"), w)).collect::<Result<Vec<_>, _>>()?;
        let source = raw.source;
        let mut list =
            List { from, source, input, output, caches, tiers, modes, windows, conflicts: Vec::new(), note: raw.note };
        for c in raw.conflict {
            list.conflicts.push(self.conflict(&at("conflict"), &list, c)?);
        }
        Ok(list)
    }

    fn cache(&self, field: &str, raw: RawCache) -> Result<CacheOffer, SpecError> {
        let at = |name: &str| format!("{field}.{}.{name}", raw.name);
        let ttl = match &raw.ttl {
            Value::String(word) if word == "chosen" => Ttl::Chosen,
            Value::String(word) if word == "unstated" => Ttl::Unstated,
            other => Ttl::Fixed(self.parsed::<Seconds>(&at("ttl"), other)?),
        };
        let read = self.money(&at("read"), &raw.read)?;
        let write = raw.write.as_ref().map(|v| self.money(&at("write"), v)).transpose()?;
        let storage = raw.storage.as_ref().map(|v| self.storage(&at("storage"), v)).transpose()?;
        if ttl == Ttl::Chosen && storage.is_none() {
            return Err(self.wrong(
                &at("storage"),
                "nothing",
                "a price per Mtok-h where the lifetime is chosen".into(),
            ));
        }
        let minimum = raw.minimum.as_ref().map_or(Ok(Tokens::ZERO), |v| self.parsed(&at("minimum"), v))?;
        Ok(CacheOffer {
            name: raw.name,
            ttl,
            restarts: raw.restarts,
            write,
            read,
            storage,
            minimum,
            source: raw.source,
        })
    }

    fn tier(&self, field: &str, raw: &RawTier) -> Result<Tier, SpecError> {
        let at = |name: &str| format!("{field}.{name}");
        let (threshold, reached) = match (&raw.above, &raw.at_least) {
            (Some(above), None) => (self.parsed(&at("above"), above)?, false),
            (None, Some(least)) => (self.parsed(&at("at_least"), least)?, true),
            _ => return Err(self.wrong(field, "no threshold, or two", "either above or at_least".into())),
        };
        Ok(Tier {
            threshold,
            reached,
            input: self.money(&at("input"), &raw.input)?,
            output: self.money(&at("output"), &raw.output)?,
            cache_read: raw.cache_read.as_ref().map(|v| self.money(&at("cache_read"), v)).transpose()?,
        })
    }

    fn multiple(&self, field: &str, value: f64) -> Result<f64, SpecError> {
        if value.is_finite() && (0.01..=100.0).contains(&value) {
            return Ok(value);
        }
        Err(self.wrong(field, value, "a multiple between 0.01 and 100".into()))
    }

    /// One factor for all, or one each; caches follow the input.
    fn factors(
        &self,
        field: &str,
        (all, input, output, cache): (Option<f64>, Option<f64>, Option<f64>, Option<f64>),
    ) -> Result<Factors, SpecError> {
        let (input, output) = match (all, input, output) {
            (Some(all), None, None) => (all, all),
            (None, Some(input), Some(output)) => (input, output),
            _ => return Err(self.wrong(field, "unclear", "factor, or both input and output".into())),
        };
        Ok(Factors {
            input: self.multiple(&format!("{field}.input"), input)?,
            output: self.multiple(&format!("{field}.output"), output)?,
            cache: self.multiple(&format!("{field}.cache"), cache.unwrap_or(input))?,
        })
    }

    fn window(&self, field: &str, raw: &RawWindow) -> Result<Window, SpecError> {
        let days = match raw.days.as_str() {
            "every" => [true; 7],
            "mon-fri" => [true, true, true, true, true, false, false],
            "sat-sun" => [false, false, false, false, false, true, true],
            other => return Err(self.wrong(&format!("{field}.days"), other, "every, mon-fri or sat-sun".into())),
        };
        let span = |text: &String| {
            let both = text.split_once('-').and_then(|(a, b)| Some((clock(a)?, clock(b)?)));
            let both = both.filter(|(a, b)| a != b && *a < 1440);
            both.ok_or_else(|| self.wrong(&format!("{field}.utc"), text, "hours such as 16:30-00:30".into()))
        };
        Ok(Window {
            name: raw.name.clone(),
            days,
            spans: raw.utc.iter().map(span).collect::<Result<_, _>>()?,
            factors: self.factors(field, (raw.factor, raw.input, raw.output, raw.cache))?,
        })
    }

    /// What another source says; a source that agrees is no conflict and a slip in the file.
    fn conflict(&self, field: &str, list: &List, raw: RawConflict) -> Result<Conflict, SpecError> {
        let used = match raw.field.as_str() {
            "input" => list.input.to_string(),
            "output" => list.output.to_string(),
            other => {
                let cache = other.strip_prefix("cache.").and_then(|r| r.split_once('.'));
                let mode = other.strip_prefix("mode.");
                match (cache, mode) {
                    (Some((name, "read")), _) => list.cache(name)?.read.to_string(),
                    (Some((name, "write")), _) => list.cache(name)?.write.unwrap_or(list.input).to_string(),
                    (_, Some(name)) => format!("{}x", list.mode(name)?.input),
                    _ => return Err(self.wrong(field, other, "input, output, cache.NAME.read or mode.NAME".into())),
                }
            }
        };
        let same = raw.value.parse::<DollarsPerToken>().map_or(raw.value == used, |v| v.to_string() == used);
        if same {
            return Err(self.wrong(field, raw.value, format!("a value other than the one used, {used}")));
        }
        Ok(Conflict { field: raw.field, used, other: raw.value, source: raw.source, note: raw.note })
    }
}
