//! The formats that come in: our TOML files and a published `config.json`.
//!
//! Nothing here opens a file; a face reads it (bounded by [`MAX_BYTES`]) and hands in the text.

pub mod config;
pub mod flags;
pub mod gguf;
mod model;
pub(crate) mod noun;
pub mod sheet;
pub mod stored;

pub(crate) use crate::acceptance::read as acceptances;
pub use crate::attention::read as attention;
pub(crate) use crate::chip::read as chip;
pub(crate) use crate::command::read as flag_list;
pub(crate) use crate::deduce::{
    read_hosts as hosted_models, read_level as deduce_level, read_policies as deduce_policies,
    read_priors as deduce_priors,
};
pub(crate) use crate::draw::read as power_draw;
pub(crate) use crate::engine::read as engine;
pub use crate::evidence::read as evidence;
pub(crate) use crate::kernel_gemm::read as gemm_kernels;
pub(crate) use crate::kernel_moe::read as moe_kernels;
pub(crate) use crate::kernel_small::read as small_kernels;
pub(crate) use crate::mig::read as parts;
pub(crate) use crate::naming::read as name_rules;
pub(crate) use crate::network::read as network;
pub use crate::price::read as price;
pub(crate) use crate::router::read as router_rules;
pub(crate) use crate::run::read as training_run;
pub(crate) use crate::scaling::read as scaling_law;
pub(crate) use crate::scenario::read as scenario;
pub(crate) use crate::support::{
    read as engine_support, read_failures as failures, read_families as chip_families, read_quality as quality_words,
};
pub(crate) use crate::system::read as system;
pub(crate) use crate::tier::read as memory_tier;
pub use crate::trace::{MAX_TRACE_BYTES, read as trace, workload};
pub use crate::training::read as training;
pub use crate::validation::read as validation;
pub use model::{config_json, model};

/// The largest file worth reading: a real `config.json` has a few kilobytes, some with quantisation lists a few hundred.
pub const MAX_BYTES: u64 = 8 << 20;

use crate::SpecError;
use serde::Deserialize;

/// What a packed file begins with. A line of its other names follows, then the tables of one of our TOML files as JSON,
/// which is read several times as fast.
const PACKED: char = '\u{1}';

/// The names and the JSON of a packed file.
pub(crate) fn unpacked(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix(PACKED)?.split_once('\n')
}

/// Parses one of our TOML files or its packed form, naming the file in the error.
pub(crate) fn parse_toml<'a, T: Deserialize<'a>>(file: &str, text: &'a str) -> Result<T, SpecError> {
    if let Some((_, json)) = unpacked(text) {
        return serde_json::from_str(json).map_err(|error| SpecError::file(file, error.to_string()));
    }
    toml::from_str(text).map_err(|error| SpecError::file(file, error.to_string()))
}
