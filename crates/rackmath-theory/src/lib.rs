//! The chapters, as pure functions: value in, value out.
//!
//! In reading order: [`count`] (parameters, bytes and FLOP of each part), [`kv`] (what the cache stores and what a step
//! reads), [`roofline`] (two resources and the ridge between them), [`board`] (the lecture's closed forms and their exact
//! kinks), [`station`] (trains that leave on time), [`sparsity`] (what experts buy), [`experts`] (experts on chips),
//! [`layout`] (which cuts are allowed), [`placement`] (what each chip holds and sends), [`network`] (collectives),
//! [`pipeline`] (schedules slot by slot), [`operator`] (one kernel on a real chip), [`pass`] (a whole pass of an engine),
//! [`serving`] (what users see of it), [`lengths`] (when requests differ), [`traffic`] (what a trace says), [`plan`] (which deployment is best), [`cost`] (dollars and joules per token), [`fleet`] (from traffic to machines),
//! [`price`] (what a provider charges), [`reuse`] (when a prefix is wanted again), [`lifetime`] (hold or recompute),
//! [`fastmode`] (speed for money), [`crossover`] (what a price step or ratio would mean if it were cost), [`scaling`] (what
//! size and data buy), [`lifecycle`] (pre-training, RL and serving in one budget), [`goodput`] (progress under failures),
//! [`forensics`] (a run's numbers from one another), [`reversible`] (activations kept or computed again), [`term`]
//! (equations that print and evaluate themselves).

pub mod board;
pub mod cost;
pub mod count;
pub mod crossover;
pub mod curve;
pub mod deduce;
pub mod experts;
pub mod fastmode;
pub mod fleet;
pub mod forensics;
pub mod goodput;
pub mod kv;
pub mod layout;
pub mod lengths;
pub mod lifecycle;
pub mod lifetime;
pub mod network;
pub mod operator;
pub mod pass;
pub mod pipeline;
pub mod placement;
pub mod plan;
pub mod price;
pub mod reuse;
pub mod reversible;
pub mod roofline;
pub mod scaling;
pub mod serving;
pub mod sparsity;
pub mod station;
pub mod term;
pub mod traffic;
pub mod training;
