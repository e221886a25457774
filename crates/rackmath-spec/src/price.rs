//! What a provider charges for one model: dated lists of prices with their tiers, caches, modes and hours.
//!
//! A list is valid from its date until the next one. A tier applies to the whole request once the prompt is longer than
//! its threshold. A mode (batch, priority, fast) and a window of hours multiply. A cache offer is a way to have a prefix
//! again: what writing and reading a token costs, for how long it is kept, and what keeping it costs.

use crate::date::{Date, Moment};
use crate::error::SpecError;
use rackmath_units::{DollarsPerToken, HoldPrice, Seconds, Tokens};
use std::fmt;

/// One model at one provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    pub id: String,
    /// The name people use.
    pub name: String,
    /// Who charges.
    pub provider: String,
    /// What the provider calls the model.
    pub model: String,
    /// When the prices were checked.
    pub as_of: Date,
    /// Lists, oldest first.
    pub lists: Vec<List>,
}

/// Prices valid from a day on.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// The first day.
    pub from: Date,
    /// Where the prices come from.
    pub source: String,
    pub input: DollarsPerToken,
    pub output: DollarsPerToken,
    /// Ways to have a prefix again.
    pub caches: Vec<CacheOffer>,
    /// Dearer prices for longer prompts, shortest first.
    pub tiers: Vec<Tier>,
    /// Ways to be served: batch, flex, priority, fast.
    pub modes: Vec<Mode>,
    /// Hours with prices of their own.
    pub windows: Vec<Window>,
    /// Other sources that give another value.
    pub conflicts: Vec<Conflict>,
    /// What to know.
    pub note: Option<String>,
}

/// A way to have a prefix again.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheOffer {
    /// `5m`, `1h`, `automatic`, `explicit`.
    pub name: String,
    /// For how long.
    pub ttl: Ttl,
    /// Whether a use starts the time anew.
    pub restarts: bool,
    /// A token written; nothing extra, so the price of input, when not given.
    pub write: Option<DollarsPerToken>,
    pub read: DollarsPerToken,
    /// A token kept.
    pub storage: Option<HoldPrice>,
    /// The shortest prefix that is kept.
    pub minimum: Tokens,
    /// Where the rules come from.
    pub source: String,
}

/// How long an entry is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ttl {
    /// So long.
    Fixed(Seconds),
    /// As long as the user says and pays for.
    Chosen,
    /// The provider does not say.
    Unstated,
}

/// Prices of a longer prompt, for the whole request.
#[derive(Clone, Debug, PartialEq)]
pub struct Tier {
    pub threshold: Tokens,
    /// Whether a prompt of exactly that length is already dearer.
    pub reached: bool,
    pub input: DollarsPerToken,
    pub output: DollarsPerToken,
    /// A token read from a cache; in proportion to the input where not given.
    pub cache_read: Option<DollarsPerToken>,
}

/// Multiples of the prices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    pub input: f64,
    pub output: f64,
    /// Of cache reads and writes.
    pub cache: f64,
}

/// A way to be served.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// `batch`, `flex`, `priority`, `fast`.
    pub name: String,
    /// Its multiples.
    pub factors: Factors,
    /// How many times faster the provider says it is.
    pub speed: Option<f64>,
}

/// Hours with prices of their own, UTC.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// `peak`, `off-peak`.
    pub name: String,
    /// Days of the week it begins on, Monday first.
    pub days: [bool; 7],
    /// From and to in minutes since midnight; past midnight when `to` is smaller.
    pub spans: Vec<(u16, u16)>,
    /// Its multiples.
    pub factors: Factors,
}

/// Another source with another value.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    pub field: String,
    pub used: String,
    /// What the other source says.
    pub other: String,
    /// Who says so.
    pub source: String,
    /// Why the used one was chosen.
    pub note: Option<String>,
}

impl Factors {
    /// No change.
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

impl Sheet {
    pub fn at(&self, day: Date) -> Result<&List, SpecError> {
        self.lists.iter().rev().find(|list| list.from <= day).ok_or_else(|| {
            SpecError::field(
                format!("price {}", self.id),
                "as_of",
                day,
                self.lists.first().map_or("a list".into(), |l| format!("{} or later: its first list", l.from)),
            )
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
        found.ok_or_else(|| SpecError::unknown("mode", name, names()))
    }

    pub fn tier(&self, prompt: Tokens) -> Option<&Tier> {
        let applies = |t: &&Tier| prompt > t.threshold || (t.reached && prompt == t.threshold);
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
                all.push(Conflict {
                    field: field.into(),
                    used: a.to_string(),
                    other: b.to_string(),
                    source: other.source.clone(),
                    note: None,
                });
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
    /// Whether a moment lies inside.
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
