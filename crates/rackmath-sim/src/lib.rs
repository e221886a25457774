//! Serving, request by request.
//!
//! One loop per replica: see arrivals, choose a batch, ask the timer how long it takes, apply the tokens. Four parts that do
//! not know each other: the [`engine`] (who gets how many tokens in a step), the [`blocks`] (who holds which part of the
//! cache), the [`clock`] (nanoseconds of a step) and the cluster (which replica, and when).
//! Times are integer nanoseconds; the same input gives the same bytes on every platform.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod blocks;
mod chain;
pub mod clock;
pub mod cluster;
pub mod engine;
pub mod radix;
pub mod replay;
pub mod replica;
pub mod series;
pub mod tally;
pub mod tiers;
pub mod workload;

/// Nanoseconds since the start.
pub type Ns = u64;
