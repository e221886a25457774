//! A named workload: what its requests look like on average.

/// Lengths and reuse of a kind of traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub id: String,
    /// What it is, in a sentence.
    pub about: String,
    /// Tokens of a prompt, mean.
    pub input: f64,
    /// Tokens of an answer, mean.
    pub output: f64,
    /// Share of a prompt found in a prefix cache.
    pub cached: f64,
    /// Where the figures come from.
    pub source: String,
    /// Year and month.
    pub as_of: String,
}
