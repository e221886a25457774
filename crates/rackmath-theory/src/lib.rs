//! The chapters, as pure functions: value in, value out.
//!
//! In reading order: [`count`] (parameters, bytes and FLOP of each part), [`towers`] (pictures and sound as tokens), [`kv`] (what the cache stores and what a step
//! reads), [`roofline`] (two resources and the ridge between them), [`board`] (the lecture's closed forms and their exact
//! kinks), [`station`] (trains that leave on time), [`sparsity`] (what experts buy), [`experts`] (experts on chips),
//! [`layout`] (which cuts are allowed), [`placement`] (what each chip holds and sends), [`budget`] (the memory an engine finds and takes), [`pages`] (the cache in pages), [`network`] (collectives),
//! [`pipeline`] (schedules slot by slot), [`operator`] (one kernel on a real chip), [`timer`] (the one seam: how long is a pass), [`pass`] (a whole pass of an engine),
//! [`adapters`] (low-rank pairs beside a model), [`steady`] (what users see of it), [`drafter`] (tokens guessed ahead), [`encoders`] (pictures on chips of their own), [`embed`] (requests of one pass), [`power`] (what chips draw meanwhile), [`lengths`] (when requests differ), [`traffic`] (what a trace says), [`plan`] (which deployment is best), [`cost`] (dollars and joules per token), [`fleet`] (from traffic to machines), [`own`] (own machines against a provider),
//! [`price`] (what a provider charges), [`reuse`] (when a prefix is wanted again), [`lifetime`] (hold or recompute),
//! [`fastmode`] (speed for money), [`crossover`] (what a price step or ratio would mean if it were cost), [`scaling`] (what
//! size and data buy), [`lifecycle`] (pre-training, RL and serving in one budget), [`goodput`] (progress under failures),
//! [`forensics`] (a run's numbers from one another), [`reversible`] (activations kept or computed again), [`rollout`] (answers drawn for reinforcement learning), [`term`]
//! (equations that print and evaluate themselves), [`stats`] (summaries of numbers).

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod board;
pub mod count;
pub mod machine;
pub mod money;
pub mod plan;
pub mod serve;
pub mod stats;
pub mod term;
pub mod train;

// A chapter's pages are known by their own names.
pub use board::{experts, roofline, sparsity, station};
pub use count::{curve, kv, lora, towers};
pub use machine::{budget, layout, network, operator, pages, pass, pipeline, placement, split, timer};
pub use money::{cost, crossover, deduce, fastmode, fleet, lifetime, own, price, reuse};
pub use serve::{
    adapters, chunk, deployment, drafter, embed, encoders, lengths, measured, pools, power, steady, traffic,
};
pub use train::{forensics, goodput, lifecycle, reversible, rollout, scaling};

/// For tests: that a number is another up to a relative tolerance.
#[cfg(test)]
pub(crate) fn close(got: f64, expected: f64, tolerance: f64) {
    assert!((got / expected - 1.0).abs() <= tolerance, "{got} is not {expected}");
}
