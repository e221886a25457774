//! The formats that come in: our TOML files and a published `config.json`.
//!
//! Nothing here opens a file; a face reads it (bounded by [`MAX_BYTES`]) and hands in the text.

mod attention;
mod chip;
mod command;
pub mod config;
mod deduce;
mod engine;
pub mod flags;
mod kernel_gemm;
mod kernel_moe;
mod law;
mod model;
mod network;
mod price;
mod run;
mod scaling;
mod scenario;
pub mod sheet;
mod system;
mod tier;
mod trace;
mod training;
mod validation;

pub use attention::attention;
pub use chip::chip;
pub use command::flag_list;
pub use deduce::{PRICE_RANGE, deduce_level, deduce_policies, deduce_priors, hosted_models};
pub use engine::engine;
pub use kernel_gemm::gemm_kernels;
pub use kernel_moe::moe_kernels;
pub use law::clark_laws;
pub use model::{config_json, model};
pub use network::network;
pub use price::price;
pub use run::training_run;
pub use scaling::scaling_law;
pub use scenario::scenario;
pub use system::system;
pub use tier::memory_tier;
pub use trace::{MAX_TRACE_BYTES, trace, workload};
pub use training::training;
pub use validation::validation;

/// The largest file worth reading: a real `config.json` has a few kilobytes, some with quantisation lists a few hundred.
pub const MAX_BYTES: u64 = 8 << 20;

use crate::{Cited, SpecError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::str::FromStr;

/// Parses one of our TOML files, naming the file in the error.
fn parse_toml<'a, T: Deserialize<'a>>(file: &str, text: &'a str) -> Result<T, SpecError> {
    toml::from_str(text).map_err(|error| SpecError::file(file, error.to_string()))
}

/// A cited value as written: text for quantities, a number for counts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCited<T> {
    value: T,
    source: String,
    checked: Option<String>,
    range: Option<(T, T)>,
    note: Option<String>,
    trap: Option<String>,
}

/// Where a value stands, for error messages, and the citations its short keys refer to.
struct Place<'a> {
    file: &'a str,
    sources: &'a BTreeMap<String, String>,
}

impl Place<'_> {
    /// Reads a cited quantity.
    fn quantity<T: FromStr<Err: std::fmt::Display>>(
        &self,
        field: &str,
        raw: RawCited<String>,
    ) -> Result<Cited<T>, SpecError> {
        self.cited(field, raw, |text| text.parse().map_err(|e: T::Err| (text.clone(), e.to_string())))
    }

    fn count(&self, field: &str, raw: RawCited<u64>) -> Result<Cited<u64>, SpecError> {
        self.cited(field, raw, |n| if *n > 0 { Ok(*n) } else { Err(("0".into(), "a positive count".into())) })
    }

    fn cited<R, T>(
        &self,
        field: &str,
        raw: RawCited<R>,
        read: impl Fn(&R) -> Result<T, (String, String)>,
    ) -> Result<Cited<T>, SpecError> {
        let read =
            |raw: &R| read(raw).map_err(|(given, expected)| SpecError::field(self.file, field, &given, expected));
        Ok(Cited {
            value: read(&raw.value)?,
            range: raw.range.map(|(low, high)| Ok::<_, SpecError>((read(&low)?, read(&high)?))).transpose()?,
            source: self.source(field, raw.source)?,
            checked: raw.checked.map(|key| self.source(field, key)).transpose()?,
            note: raw.note,
            trap: raw.trap,
        })
    }

    /// A citation: a key of `[sources]`, or the citation itself. A bare word that is no key is a slip.
    fn source(&self, field: &str, key: String) -> Result<String, SpecError> {
        match self.sources.get(&key) {
            Some(full) => Ok(full.clone()),
            None if key.trim().contains([' ', '/']) => Ok(key),
            None => Err(SpecError::field(
                self.file,
                format!("{field}.source"),
                &key,
                "a key of [sources], an address, or a citation of several words",
            )),
        }
    }
}
