//! The formats that come in: our TOML files and a published `config.json`.
//!
//! Nothing here opens a file; a face reads it (bounded by [`MAX_BYTES`]) and hands in the text.

mod attention;
pub mod config;
mod deduce;
mod engine;
pub mod flags;
mod kernel_gemm;
mod kernel_moe;
mod law;
mod model;
mod network;
pub(crate) mod noun;
mod price;
mod scaling;
pub mod sheet;
mod system;
mod tier;
mod trace;
mod training;
mod validation;

pub(crate) use crate::chip::read as chip;
pub(crate) use crate::command::read as flag_list;
pub(crate) use crate::run::read as training_run;
pub(crate) use crate::scenario::read as scenario;
pub use attention::attention;
pub use deduce::{PRICE_RANGE, deduce_level, deduce_policies, deduce_priors, hosted_models};
pub use engine::engine;
pub use kernel_gemm::gemm_kernels;
pub use kernel_moe::moe_kernels;
pub use law::clark_laws;
pub use model::{config_json, model};
pub use network::network;
pub use price::price;
pub use scaling::scaling_law;
pub use system::system;
pub use tier::memory_tier;
pub use trace::{MAX_TRACE_BYTES, trace, workload};
pub use training::training;
pub use validation::validation;

/// The largest file worth reading: a real `config.json` has a few kilobytes, some with quantisation lists a few hundred.
pub const MAX_BYTES: u64 = 8 << 20;

use crate::SpecError;
use serde::Deserialize;

/// Parses one of our TOML files, naming the file in the error.
fn parse_toml<'a, T: Deserialize<'a>>(file: &str, text: &'a str) -> Result<T, SpecError> {
    toml::from_str(text).map_err(|error| SpecError::file(file, error.to_string()))
}
