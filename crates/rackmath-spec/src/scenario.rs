//! A named workload: what its requests look like on average.

use crate::SpecError;
use crate::file::noun::{noun, within};
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub id: String,
    pub about: String,
    #[serde(rename = "input_tokens")]
    pub input: f64,
    #[serde(rename = "output_tokens")]
    pub output: f64,
    /// Share of a prompt found in a prefix cache.
    #[serde(default, rename = "cached_share")]
    pub cached: f64,
    pub source: String,
    pub as_of: String,
}

pub(crate) fn read(id: &str, text: &str) -> Result<Scenario, SpecError> {
    let file = format!("scenario {id}");
    let scenario: Scenario = noun(&file, id, text, &[])?;
    let (input, output) = (scenario.input, scenario.output);
    within(&file, &[("input_tokens", input, 1.0, 1e9), ("output_tokens", output, 1.0, 1e9)])?;
    within(&file, &[("cached_share", scenario.cached, 0.0, 1.0)])?;
    Ok(scenario)
}
