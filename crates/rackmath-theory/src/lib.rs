//! The chapters, as pure functions: value in, value out.
//!
//! In reading order: [`count`] (parameters, bytes and FLOP of each part), [`kv`] (what the cache stores and what a step
//! reads), [`roofline`] (two resources and the ridge between them), [`board`] (the lecture's closed forms and their exact
//! kinks), [`station`] (trains that leave on time), [`sparsity`] (what experts buy), [`experts`] (experts on chips),
//! [`layout`] (which cuts are allowed), [`placement`] (what each chip holds and sends), [`network`] (collectives),
//! [`pipeline`] (schedules slot by slot), [`operator`] (one kernel on a real chip), [`cost`] (dollars and joules per
//! token), [`fleet`] (from traffic to machines), [`price`] (what a provider charges), [`reuse`] (when a prefix is wanted
//! again), [`lifetime`] (hold or recompute), [`fastmode`] (speed for money), [`crossover`] (what a price step or
//! ratio would mean if it were cost), [`term`] (equations that print and evaluate
//! themselves).

pub mod board;
pub mod cost;
pub mod count;
pub mod crossover;
pub mod curve;
pub mod experts;
pub mod fastmode;
pub mod fleet;
pub mod kv;
pub mod layout;
pub mod lifetime;
pub mod network;
pub mod operator;
pub mod pass;
pub mod pipeline;
pub mod placement;
pub mod price;
pub mod reuse;
pub mod roofline;
pub mod serving;
pub mod sparsity;
pub mod station;
pub mod term;
