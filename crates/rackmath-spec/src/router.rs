//! A program that sends requests to replicas: the numbers by which it weighs them.

use crate::SpecError;
use crate::file::noun::{noun, within};
use serde::Deserialize;

/// Each program has those of its own rules; which rule takes which is the simulator's business.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterRules {
    pub id: String,
    pub name: String,
    pub as_of: String,
    /// Loads are uneven when they differ by more requests than this.
    pub uneven_requests: Option<u64>,
    /// And the largest is more than so many times the least.
    pub uneven_ratio: Option<f64>,
    /// Share of a prompt from which on a match counts.
    pub match_share: Option<f64>,
    /// Leading tokens that a prefix is known by.
    pub prefix_tokens: Option<u32>,
    /// Requests inside over their mean beyond which a hash gives way.
    pub load_bound: Option<f64>,
    /// Weight of the share of a prompt found.
    pub prefix_weight: Option<f64>,
    /// Weight of a short queue.
    pub queue_weight: Option<f64>,
    /// Weight of a free cache.
    pub cache_weight: Option<f64>,
    /// Blocks to compute that a block found in a chip's memory is worth.
    pub overlap_credit: Option<f64>,
    /// Seconds a client keeps a connection that it does not use.
    pub keep_alive_s: Option<f64>,
    pub source: String,
}

impl RouterRules {
    /// A number that a rule cannot do without.
    pub fn need<T>(&self, field: &'static str, value: Option<T>) -> Result<T, SpecError> {
        value.ok_or_else(|| SpecError::field(format!("router {}", self.id), field, "nothing", "a number"))
    }
}

pub(crate) fn read(id: &str, text: &str) -> Result<RouterRules, SpecError> {
    let file = format!("router {id}");
    let rules: RouterRules = noun(&file, id, text, &[])?;
    let all = [
        ("uneven_ratio", rules.uneven_ratio, 1.0, 1e6),
        ("match_share", rules.match_share, 0.0, 1.0),
        ("prefix_tokens", rules.prefix_tokens.map(f64::from), 1.0, 1e9),
        ("load_bound", rules.load_bound, 1.0, 1e6),
        ("prefix_weight", rules.prefix_weight, 0.0, 1e6),
        ("queue_weight", rules.queue_weight, 0.0, 1e6),
        ("cache_weight", rules.cache_weight, 0.0, 1e6),
        ("overlap_credit", rules.overlap_credit, 0.0, 1e6),
        ("keep_alive_s", rules.keep_alive_s, 0.0, 1e6),
    ];
    for (field, value, low, high) in all {
        within(&file, &[(field, value.unwrap_or(low), low, high)])?;
    }
    Ok(rules)
}
