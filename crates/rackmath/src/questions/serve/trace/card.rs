//! The answer as plain data.

use super::Summary;
use schemars::JsonSchema;
use serde::Serialize;

/// What it says.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The trace.
    pub name: String,
    /// The format it was read as.
    pub format: String,
    /// Requests with an answer.
    pub requests: u64,
    /// Requests without one, left out.
    pub unanswered: u64,
    /// Prompts.
    pub input: LengthCard,
    /// Answers.
    pub output: LengthCard,
    /// Correlation of a prompt's length with its answer's; 0 where one of them does not vary.
    pub correlation: f64,
    /// How requests come, where the trace says when.
    pub arrivals: Option<ArrivalCard>,
    /// What prompts share, where the trace names their blocks.
    pub reuse: Option<ReuseCard>,
    /// The named workload nearest to it.
    pub nearest: Option<NearestCard>,
    /// What planning takes from it.
    pub summary: Summary,
    /// What the numbers assume.
    pub assumptions: Vec<String>,
}

/// Lengths, in tokens.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LengthCard {
    /// Mean.
    pub mean: f64,
    /// Half are shorter.
    pub p50: f64,
    /// 90 % are shorter.
    pub p90: f64,
    /// 99 % are shorter.
    pub p99: f64,
    /// Standard deviation over mean.
    pub cv: f64,
}

/// How requests come.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ArrivalCard {
    /// From the first to the last.
    pub span_s: f64,
    /// Requests per second, mean.
    pub rate_per_s: f64,
    /// Standard deviation of gaps over their mean: 1 at random.
    pub gap_cv: f64,
    /// Share of requests with the time of the one before.
    pub together: f64,
    /// Requests per second of the busiest minute; none where the trace is shorter.
    pub peak_rate_per_s: Option<f64>,
    /// The busiest minute over the mean.
    pub peak_over_mean: Option<f64>,
}

/// What prompts share.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReuseCard {
    /// Share of prompt tokens found in a cache that keeps prefixes for so long after their last use.
    pub hits: Vec<HitCard>,
    /// The share planning takes.
    pub taken: f64,
    /// Tokens kept at a time for it, mean.
    pub kept_tokens: Option<f64>,
}

/// A lifetime and what it finds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HitCard {
    /// Kept so long; none for as long as the trace.
    pub keep_s: Option<f64>,
    /// Share of prompt tokens found.
    pub share: f64,
}

/// A named workload like it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NearestCard {
    /// Its name.
    pub scenario: String,
    /// What it is.
    pub about: String,
    /// The trace's mean prompt over its.
    pub input_factor: f64,
    /// The trace's mean answer over its.
    pub output_factor: f64,
    /// Its share of prompts found in a cache.
    pub cached: f64,
}
