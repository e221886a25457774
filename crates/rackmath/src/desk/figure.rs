//! A picture as data: drawn by the terminal, as SVG, as PNG, and by a page, so that they can never disagree.

use super::remark::Remark;
use rackmath_units::{Bytes, BytesPerToken, DollarsPerToken, Intensity, Seconds, TokenRate, Tokens};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A chart of lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// What it shows.
    pub title: Remark,
    /// Under which conditions.
    pub subtitle: Remark,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// Lines, in drawing order.
    pub series: Vec<Series>,
    /// Points worth a label.
    pub marks: Vec<Mark>,
}

impl Figure {
    /// A chart without marks.
    pub(crate) fn of(
        title: impl Into<Remark>,
        subtitle: impl Into<Remark>,
        (x, y): (Axis, Axis),
        series: impl IntoIterator<Item = Series>,
    ) -> Self {
        let series = series.into_iter().collect();
        Self { title: title.into(), subtitle: subtitle.into(), x, y, series, marks: Vec::new() }
    }

    /// The same, with points that are labelled.
    pub(crate) fn marked(self, marks: impl IntoIterator<Item = Mark>) -> Self {
        Self { marks: marks.into_iter().collect(), ..self }
    }
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// What it measures.
    pub label: String,
    /// In which unit the values are.
    pub unit: Unit,
    /// How values are spaced.
    pub scale: Scale,
}

/// The unit of an axis; values are in the base unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Dollars per million tokens.
    UsdPerMtok,
    /// Tokens, sequences, chips.
    Count,
    /// Tokens per second.
    TokensPerS,
    /// Bytes.
    Bytes,
    /// Bytes per token.
    BytesPerToken,
    /// FLOP per byte.
    FlopPerByte,
    /// A bare number.
    Number,
    /// Parameters of a model.
    Params,
    /// Dollars.
    Usd,
    /// FLOP, in powers of ten.
    Flop,
}

/// How values are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal steps.
    Linear,
    /// Equal factors.
    Log,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// What the legend says.
    pub name: Remark,
    /// What it is, which decides how it is drawn.
    pub role: Role,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    pub(crate) fn new(name: impl Into<Remark>, role: Role, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), role, points: points.into_iter().collect() }
    }
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The answer itself, drawn bold.
    Envelope,
    /// Reading weights.
    Weights,
    /// Reading the cache.
    Kv,
    /// Multiplying.
    Compute,
    /// A limit that is not crossed, drawn dashed.
    Floor,
    /// Single measurements, drawn as dots without a line.
    Points,
    /// One of several lines of equal standing.
    Choice(u8),
}

/// A labelled point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mark {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// What is there.
    pub label: Remark,
}

impl Mark {
    pub(crate) fn at(x: f64, y: f64, label: impl Into<Remark>) -> Self {
        Self { x, y, label: label.into() }
    }
}

impl Unit {
    /// A value with its unit, three digits.
    pub fn show(self, value: f64) -> String {
        if !value.is_finite() || value < 0.0 {
            return value.to_string();
        }
        match self {
            Self::Seconds => Seconds::s(value).to_string(),
            Self::UsdPerMtok => DollarsPerToken::per_mtok(value).to_string(),
            Self::Count => count(value),
            Self::TokensPerS => TokenRate::per_s(value).to_string(),
            Self::Bytes => Bytes::b(value).to_string(),
            Self::BytesPerToken => BytesPerToken::new(value).to_string(),
            Self::FlopPerByte => Intensity::new(value).to_string(),
            Self::Number => rackmath_units::significant(value, 3),
            Self::Params => rackmath_units::Params::new(value).to_string(),
            Self::Usd => rackmath_units::Dollars::usd(value).to_string(),
            Self::Flop => format!("{value:.2e}"),
        }
    }

    /// The same without superfluous zeros, for ticks: "1 ms", "10 ms".
    pub fn tick(self, value: f64) -> String {
        let text = self.show(value);
        let end = text.find(|c: char| !(c.is_ascii_digit() || ".,$".contains(c))).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
        format!("{number}{}", unit.trim_end_matches("/Mtok").trim_end_matches(" tok/s"))
    }
}

/// Whole numbers below ten million in full, others to three digits.
pub fn count(value: f64) -> String {
    if value.fract() == 0.0 && value < 1e7 { rackmath_units::grouped(value) } else { Tokens::new(value).to_string() }
}

impl Axis {
    /// An axis with equal factors.
    pub fn log(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Log }
    }

    /// An axis with equal steps.
    pub fn linear(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, scale: Scale::Linear }
    }
}
