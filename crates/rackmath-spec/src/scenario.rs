//! A named workload: what its requests look like on average.

use crate::SpecError;
use crate::file::noun::{noun, within};
use serde::Deserialize;

/// Lengths and reuse of a kind of traffic.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub id: String,
    /// What it is, in a sentence.
    pub about: String,
    /// Tokens of a prompt, mean.
    #[serde(rename = "input_tokens")]
    pub input: f64,
    /// Tokens of an answer, mean.
    #[serde(rename = "output_tokens")]
    pub output: f64,
    /// Share of a prompt found in a prefix cache.
    #[serde(default, rename = "cached_share")]
    pub cached: f64,
    /// Where the figures come from.
    pub source: String,
    /// Year and month.
    pub as_of: String,
}

/// Reads a named workload.
pub(crate) fn read(id: &str, text: &str) -> Result<Scenario, SpecError> {
    let file = format!("scenario {id}");
    let scenario: Scenario = noun(&file, id, text, &[])?;
    let (input, output) = (scenario.input, scenario.output);
    within(
        &file,
        &[
            ("input_tokens", input, 1.0, 1e9),
            ("output_tokens", output, 1.0, 1e9),
            ("cached_share", scenario.cached, 0.0, 1.0),
        ],
    )?;
    Ok(scenario)
}
