//! What a provider charges for one model: dated lists of prices with their tiers, caches, modes and hours.
//!
//! A list is valid from its date until the next one. A tier applies to the whole request once the prompt is longer than
//! its threshold. A mode (batch, priority, fast) and a window of hours multiply. A cache offer is a way to have a prefix
//! again: what writing and reading a token costs, for how long it is kept, and what keeping it costs.
//!
//! A price carries its unit (`"$5/Mtok"`), lies between $0.001 and $1,000 per million tokens (public price tables hold
//! values a hundred thousand times too high), and has a source. A list that begins after the sheet was checked must say
//! `announced = true`; a sheet checked after the day the reader names is refused.

use crate::date::{Date, Moment, clock};
use crate::deduce::PRICE_RANGE;
use crate::error::{SpecError, nearest};
use crate::file::noun::{cited, wrong};
use rackmath_units::{DollarsPerToken, HoldPrice, Seconds, Tokens, UnitError};
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use toml::Value;

/// The lowest and highest believable price of a million tokens, with room for the last digit of a conversion.
const BELIEVABLE: std::ops::RangeInclusive<f64> = PRICE_RANGE.0 * 0.999_999..=PRICE_RANGE.1 * 1.000_001;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sheet {
    pub id: String,
    pub name: String,
    pub provider: String,
    /// What the provider calls the model.
    pub model: String,
    #[serde(deserialize_with = "quantity")]
    pub as_of: Date,
    /// Oldest first.
    #[serde(rename = "list")]
    pub lists: Vec<List>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    #[serde(deserialize_with = "quantity")]
    pub from: Date,
    /// Whether it may begin after the prices were checked.
    #[serde(default)]
    pub announced: bool,
    pub source: String,
    #[serde(deserialize_with = "money")]
    pub input: DollarsPerToken,
    #[serde(deserialize_with = "money")]
    pub output: DollarsPerToken,
    #[serde(default, rename = "cache")]
    pub caches: Vec<CacheOffer>,
    /// Dearer prices for longer prompts, shortest first.
    #[serde(default, rename = "tier")]
    pub tiers: Vec<Tier>,
    #[serde(default, rename = "mode", deserialize_with = "modes")]
    pub modes: Vec<Mode>,
    #[serde(default, rename = "window")]
    pub windows: Vec<Window>,
    #[serde(default, rename = "conflict")]
    pub conflicts: Vec<Conflict>,
    pub note: Option<String>,
}

/// A way to have a prefix again.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheOffer {
    /// `5m`, `1h`, `automatic`, `explicit`.
    pub name: String,
    pub ttl: Ttl,
    /// Whether a use starts the time anew.
    #[serde(default)]
    pub restarts: bool,
    /// A token written; nothing extra, so the price of input, when not given.
    #[serde(default, deserialize_with = "money_or_none")]
    pub write: Option<DollarsPerToken>,
    #[serde(deserialize_with = "money")]
    pub read: DollarsPerToken,
    /// A token kept.
    #[serde(default, deserialize_with = "storage")]
    pub storage: Option<HoldPrice>,
    #[serde(default, deserialize_with = "quantity")]
    pub minimum: Tokens,
    pub source: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ttl {
    Fixed(Seconds),
    /// As long as the user says and pays for.
    Chosen,
    /// The provider does not say.
    Unstated,
}

/// Prices of a longer prompt, for the whole request: of one above a length, or of one of at least that length.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    #[serde(default, deserialize_with = "tokens_or_none")]
    above: Option<Tokens>,
    #[serde(default, deserialize_with = "tokens_or_none")]
    at_least: Option<Tokens>,
    #[serde(deserialize_with = "money")]
    pub input: DollarsPerToken,
    #[serde(deserialize_with = "money")]
    pub output: DollarsPerToken,
    /// A token read from a cache; in proportion to the input where not given.
    #[serde(default, deserialize_with = "money_or_none")]
    pub cache_read: Option<DollarsPerToken>,
}

/// Multiples of the prices; `cache` is of cache reads and writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    pub input: f64,
    pub output: f64,
    pub cache: f64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mode {
    /// `batch`, `flex`, `priority`, `fast`.
    #[serde(skip)]
    pub name: String,
    #[serde(flatten, deserialize_with = "factors")]
    pub factors: Factors,
    /// How many times faster the provider says it is.
    #[serde(default, deserialize_with = "multiple")]
    pub speed: Option<f64>,
}

/// Hours with prices of their own, UTC.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// `peak`, `off-peak`.
    pub name: String,
    /// Days of the week it begins on, Monday first.
    #[serde(deserialize_with = "days")]
    pub days: [bool; 7],
    /// From and to in minutes since midnight; past midnight when `to` is smaller.
    #[serde(rename = "utc", deserialize_with = "spans")]
    pub spans: Vec<(u16, u16)>,
    #[serde(flatten, deserialize_with = "factors")]
    pub factors: Factors,
}

/// Another source with another value.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conflict {
    pub field: String,
    #[serde(skip)]
    pub used: String,
    #[serde(rename = "value")]
    pub other: String,
    pub source: String,
    /// Why the used one was chosen.
    pub note: Option<String>,
}

impl Factors {
    pub const ONE: Self = Self { input: 1.0, output: 1.0, cache: 1.0 };

    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self { input: self.input * other.input, output: self.output * other.output, cache: self.cache * other.cache }
    }
}

impl Ttl {
    /// Whether an entry used so long ago is still there; where the provider does not say, it is assumed to be.
    pub fn covers(self, gap: Seconds) -> bool {
        match self {
            Self::Fixed(ttl) => gap <= ttl,
            Self::Chosen | Self::Unstated => true,
        }
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(ttl) => f.pad(&ttl.to_string()),
            Self::Chosen => f.pad("as long as paid for"),
            Self::Unstated => f.pad("not stated"),
        }
    }
}

impl Tier {
    pub fn threshold(&self) -> Tokens {
        self.above.or(self.at_least).unwrap_or_default()
    }

    /// Whether a prompt of exactly that length is already dearer.
    pub fn reached(&self) -> bool {
        self.at_least.is_some()
    }
}

impl Sheet {
    pub fn at(&self, day: Date) -> Result<&List, SpecError> {
        self.lists.iter().rev().find(|list| list.from <= day).ok_or_else(|| {
            let first = self.lists.first().map_or("a list".into(), |l| format!("{} or later: its first list", l.from));
            SpecError::field(format!("price {}", self.id), "as_of", day, first)
        })
    }
}

impl List {
    pub fn cache(&self, name: &str) -> Result<&CacheOffer, SpecError> {
        let found = self.caches.iter().find(|c| c.name == name);
        found.ok_or_else(|| SpecError::unknown("cache offer", name, self.caches.iter().map(|c| c.name.as_str())))
    }

    /// A mode by name; `standard` changes nothing.
    pub fn mode(&self, name: &str) -> Result<Factors, SpecError> {
        if name == "standard" {
            return Ok(Factors::ONE);
        }
        let found = self.modes.iter().find(|m| m.name == name).map(|m| m.factors);
        let names = || std::iter::once("standard").chain(self.modes.iter().map(|m| m.name.as_str()));
        found.ok_or_else(|| match nearest(name, names()).as_slice() {
            [] => {
                let has = names().collect::<Vec<_>>().join(", ");
                let hint = format!("expected {has}; what else the provider sells is not written down in this sheet");
                SpecError::said(format!("no prices of mode \"{name}\" in this sheet")).hint(hint)
            }
            _ => SpecError::unknown("mode", name, names()),
        })
    }

    pub fn tier(&self, prompt: Tokens) -> Option<&Tier> {
        let applies = |t: &&Tier| prompt > t.threshold() || (t.reached() && prompt == t.threshold());
        self.tiers.iter().rev().find(applies)
    }

    pub fn hour(&self, at: Option<Moment>) -> Factors {
        let open = |w: &&Window| at.is_some_and(|at| w.holds(at));
        self.windows.iter().filter(open).fold(Factors::ONE, |all, w| all.times(w.factors))
    }

    /// What another list for the same model says differently, by more than the rounding of a price sheet.
    pub fn disagreements(&self, other: &Self) -> Vec<Conflict> {
        let mut all = Vec::new();
        let mut check = |field: &str, a: Option<DollarsPerToken>, b: Option<DollarsPerToken>| {
            if let (Some(a), Some(b)) = (a, b)
                && (a / b - 1.0).abs() > 1e-6
            {
                let (field, used, other_price) = (field.into(), a.to_string(), b.to_string());
                all.push(Conflict { field, used, other: other_price, source: other.source.clone(), note: None });
            }
        };
        check("input", Some(self.input), Some(other.input));
        check("output", Some(self.output), Some(other.output));
        for mine in &self.caches {
            if let Some(theirs) = other.caches.iter().find(|c| c.name == mine.name) {
                check(&format!("cache {} read", mine.name), Some(mine.read), Some(theirs.read));
                check(&format!("cache {} write", mine.name), mine.write, theirs.write);
            }
        }
        for (mine, theirs) in self.tiers.iter().zip(&other.tiers) {
            check("long input", Some(mine.input), Some(theirs.input));
            check("long output", Some(mine.output), Some(theirs.output));
        }
        all
    }
}

impl Window {
    pub fn holds(&self, at: Moment) -> bool {
        let (today, yesterday) = (at.date.weekday(), (at.date.weekday() + 6) % 7);
        self.spans.iter().any(|&(from, to)| {
            if from < to {
                self.days[today] && (from..to).contains(&at.minute)
            } else {
                // Past midnight the window belongs to the day before.
                (self.days[today] && at.minute >= from) || (self.days[yesterday] && at.minute < to)
            }
        })
    }
}

/// Reads a price sheet; `known_by` is the day the reader lives in, if one is stated.
pub fn read(id: &str, text: &str, known_by: Option<Date>) -> Result<Sheet, SpecError> {
    let file = format!("price {id}");
    let wrong = |field: &str, given: &dyn fmt::Display, expected: &str| {
        Err(SpecError::field(&file, field, given.to_string(), expected))
    };
    let mut sheet: Sheet = cited(&file, id, text, &[])?;
    let as_of = sheet.as_of;
    if let Some(day) = known_by.filter(|day| as_of > *day) {
        let expected = format!("a date not after {day}: prices cannot be checked ahead of time");
        return wrong("as_of", &as_of, &expected);
    }
    if sheet.lists.is_empty() {
        return wrong("list", &"none", "at least one [[list]] of prices");
    }
    for i in 0..sheet.lists.len() {
        let (list, at) = (&sheet.lists[i], |field: &str| format!("list[{i}].{field}"));
        if i > 0 && sheet.lists[i - 1].from >= list.from {
            return wrong(&at("from"), &list.from, "lists in order of their dates");
        }
        if list.from > as_of && !list.announced {
            let expected = format!("a date not after {as_of} when the sheet was checked, or announced = true");
            return wrong(&at("from"), &list.from, &expected);
        }
        if let Some(cache) = list.caches.iter().find(|c| c.ttl == Ttl::Chosen && c.storage.is_none()) {
            let field = at(&format!("cache.{}.storage", cache.name));
            return wrong(&field, &"nothing", "a price per Mtok-h where the lifetime is chosen");
        }
        if list.tiers.iter().any(|tier| tier.above.is_some() == tier.at_least.is_some()) {
            return wrong(&at("tier"), &"no threshold, or two", "either above or at_least");
        }
        if list.tiers.windows(2).any(|two| two[0].threshold() >= two[1].threshold()) {
            return wrong(&at("tier"), &"out of order", "tiers from short to long");
        }
        let used = list.conflicts.iter().map(|c| list.used(&c.field).map_err(|e| e.within(&file).at(&at("conflict"))));
        let used = used.collect::<Result<Vec<_>, _>>()?;
        for (conflict, used) in sheet.lists[i].conflicts.iter_mut().zip(used) {
            let other = conflict.other.parse::<DollarsPerToken>().map_or(conflict.other.clone(), |v| v.to_string());
            // A source that agrees is no conflict and a slip in the file.
            if other == used {
                let expected = format!("a value other than the one used, {used}");
                return wrong(&at("conflict"), &conflict.other, &expected);
            }
            conflict.used = used;
        }
    }
    Ok(sheet)
}

impl List {
    /// The value of a field another source may contradict.
    fn used(&self, field: &str) -> Result<String, SpecError> {
        let cache = field.strip_prefix("cache.").and_then(|rest| rest.split_once('.'));
        Ok(match (field, cache, field.strip_prefix("mode.")) {
            ("input", ..) => self.input.to_string(),
            ("output", ..) => self.output.to_string(),
            (_, Some((name, "read")), _) => self.cache(name)?.read.to_string(),
            (_, Some((name, "write")), _) => self.cache(name)?.write.unwrap_or(self.input).to_string(),
            (.., Some(name)) => format!("{}x", self.mode(name)?.input),
            _ => return Err(SpecError::said(field).hint("expected input, output, cache.NAME.read or mode.NAME")),
        })
    }
}

/// A value written as text; a bare number has lost its unit.
fn written<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    match Value::deserialize(d)? {
        Value::String(text) => Ok(text),
        Value::Datetime(date) => Ok(date.to_string()),
        _ => Err(wrong("text with a unit, such as \"$5/Mtok\", \"$4.50/Mtok-h\", \"5 min\" or \"200k\"")),
    }
}

fn parsed<T: FromStr<Err = UnitError>, E: de::Error>(text: &str) -> Result<T, E> {
    text.parse().map_err(|e: UnitError| wrong(&format!("{}, written like {}", e.expected, e.example)))
}

fn quantity<'de, D: Deserializer<'de>, T: FromStr<Err = UnitError>>(d: D) -> Result<T, D::Error> {
    parsed(&written(d)?)
}

fn tokens_or_none<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Tokens>, D::Error> {
    quantity(d).map(Some)
}

fn money<'de, D: Deserializer<'de>>(d: D) -> Result<DollarsPerToken, D::Error> {
    let text = written(d)?;
    if text.trim().starts_with('-') || text.trim().starts_with("$-") {
        return Err(wrong("a price that is not negative"));
    }
    let price: DollarsPerToken = parsed(&text)?;
    let believed = BELIEVABLE.contains(&price.as_per_mtok());
    if believed { Ok(price) } else { Err(wrong("between $0.001 and $1,000 per million tokens")) }
}

fn money_or_none<'de, D: Deserializer<'de>>(d: D) -> Result<Option<DollarsPerToken>, D::Error> {
    money(d).map(Some)
}

fn storage<'de, D: Deserializer<'de>>(d: D) -> Result<Option<HoldPrice>, D::Error> {
    let price: HoldPrice = quantity(d)?;
    let believed = BELIEVABLE.contains(&price.as_per_mtok_hour());
    if believed { Ok(Some(price)) } else { Err(wrong("between $0.001 and $1,000 per million tokens and hour")) }
}

impl<'de> Deserialize<'de> for Ttl {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match written(d)?.as_str() {
            "chosen" => Ok(Self::Chosen),
            "unstated" => Ok(Self::Unstated),
            time => parsed(time).map(Self::Fixed),
        }
    }
}

fn modes<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Mode>, D::Error> {
    let all = BTreeMap::<String, Mode>::deserialize(d)?;
    Ok(all.into_iter().map(|(name, mode)| Mode { name, ..mode }).collect())
}

fn sensible<E: de::Error>(multiple: f64) -> Result<f64, E> {
    if (0.01..=100.0).contains(&multiple) {
        return Ok(multiple);
    }
    Err(E::custom(format!("{multiple}; expected a multiple between 0.01 and 100")))
}

fn multiple<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    sensible(f64::deserialize(d)?).map(Some)
}

/// One factor for all, or one each; caches follow the input.
fn factors<'de, D: Deserializer<'de>>(d: D) -> Result<Factors, D::Error> {
    #[derive(Deserialize)]
    struct Given {
        factor: Option<f64>,
        input: Option<f64>,
        output: Option<f64>,
        cache: Option<f64>,
    }
    let given = Given::deserialize(d)?;
    let (input, output) = match (given.factor, given.input, given.output) {
        (Some(all), None, None) => (all, all),
        (None, Some(input), Some(output)) => (input, output),
        _ => return Err(de::Error::custom("unclear; expected factor, or both input and output")),
    };
    let cache = given.cache.unwrap_or(input);
    Ok(Factors { input: sensible(input)?, output: sensible(output)?, cache: sensible(cache)? })
}

fn days<'de, D: Deserializer<'de>>(d: D) -> Result<[bool; 7], D::Error> {
    match String::deserialize(d)?.as_str() {
        "every" => Ok([true; 7]),
        "mon-fri" => Ok([true, true, true, true, true, false, false]),
        "sat-sun" => Ok([false, false, false, false, false, true, true]),
        _ => Err(wrong("every, mon-fri or sat-sun")),
    }
}

fn spans<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<(u16, u16)>, D::Error> {
    let span = |text: &String| {
        let both = text.split_once('-').and_then(|(a, b)| Some((clock(a)?, clock(b)?)));
        both.filter(|(a, b)| a != b && *a < 1440).ok_or_else(|| wrong("hours such as 16:30-00:30"))
    };
    Vec::<String>::deserialize(d)?.iter().map(span).collect()
}
