//! Reads a workload file.

use super::parse_toml;
use crate::{Scenario, SpecError};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScenario {
    about: String,
    #[serde(default, rename = "aliases")]
    _aliases: Vec<String>,
    input_tokens: f64,
    output_tokens: f64,
    #[serde(default)]
    cached_share: f64,
    source: String,
    as_of: String,
}

/// Reads a named workload.
pub fn scenario(id: &str, text: &str) -> Result<Scenario, SpecError> {
    let file = format!("scenario {id}");
    let raw: RawScenario = parse_toml(&file, text)?;
    let wrong = |field: &str, given: f64, expected: &str| SpecError::field(&file, field, given, expected);
    for (field, tokens) in [("input_tokens", raw.input_tokens), ("output_tokens", raw.output_tokens)] {
        if !(1.0..=1e9).contains(&tokens) {
            return Err(wrong(field, tokens, "1 to 1e9 tokens"));
        }
    }
    if !(0.0..=1.0).contains(&raw.cached_share) {
        return Err(wrong("cached_share", raw.cached_share, "a share from 0 to 1"));
    }
    Ok(Scenario {
        id: id.to_owned(),
        about: raw.about,
        input: raw.input_tokens,
        output: raw.output_tokens,
        cached: raw.cached_share,
        source: raw.source,
        as_of: raw.as_of,
    })
}
