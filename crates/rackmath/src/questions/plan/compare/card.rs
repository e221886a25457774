//! The answer as plain data.

use crate::estimate::Range;
use crate::figure::Figure;
use crate::frontier::Curve;
use crate::plan::{Plan, Relaxation};
use crate::sides::Measure;
use schemars::JsonSchema;
use serde::Serialize;

/// Plans side by side.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What the columns differ in: `systems`, `models` or `engines`.
    pub over: String,
    /// What is made best.
    pub objective: String,
    /// Limits in words, for the first.
    pub limits: Vec<String>,
    /// As asked for.
    pub columns: Vec<Column>,
    /// Who wins on what.
    pub wins: Vec<Win>,
    /// Prices at which the cheapest machine changes; of machines only.
    pub flips: Vec<Flip>,
    /// In a sentence.
    pub verdict: String,
    /// Frontiers over each other: tokens per chip against tokens per user.
    pub figure_chip: Figure,
    /// Dollars per million tokens against tokens per user, where prices are known.
    pub figure_dollar: Option<Figure>,
    /// What the numbers assume.
    pub assumptions: Vec<String>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Column {
    /// Traffic and lengths in words.
    pub workload: String,
    /// Its best plan; none when nothing meets the limits.
    pub plan: Option<Plan>,
    /// In a sentence.
    pub verdict: String,
    /// What would do if a single limit were moved, when nothing meets them all.
    pub relaxations: Vec<Relaxation>,
    /// What kind of price its chips have.
    pub price_basis: String,
    /// What its power counts.
    pub power_basis: String,
    /// Its numbers, with ratios to the first column.
    pub numbers: Vec<Number>,
    /// What it is, and its frontier.
    pub curve: Curve,
}

/// One number of a column.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Number {
    /// Which.
    pub measure: Measure,
    /// The number, with its interval where it has one.
    pub value: Range,
    /// Over that of the first column that has a plan, with the interval of the ratio.
    pub ratio: Option<Range>,
}

/// Who is best in one respect.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Win {
    /// Which.
    pub measure: Measure,
    /// Who.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Who comes second.
    pub next: String,
    /// By which factor the second is worse.
    pub by: f64,
    /// Whether that is within the uncertainty.
    pub too_close: bool,
}

/// A price at which the cheapest changes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Flip {
    /// Whose chip.
    pub name: String,
    /// Its price now.
    pub now_usd_per_chip_hour: f64,
    /// The price at which it costs what the cheapest other does, with its interval.
    pub flips_at_usd_per_chip_hour: Range,
    /// The other.
    pub against: String,
    /// Whether it is the cheapest now, and loses above the price; else it wins below it.
    pub cheapest_now: bool,
}
