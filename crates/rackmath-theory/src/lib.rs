//! The chapters, as pure functions: value in, value out.
//!
//! In reading order: [`count`] (parameters, bytes and FLOP of each part), [`kv`] (what the cache stores and what a step
//! reads), [`roofline`] (two resources and the ridge between them), [`board`] (the lecture's closed forms and their exact
//! kinks), [`station`] (trains that leave on time), [`sparsity`] (what experts buy), [`experts`] (experts on chips),
//! [`layout`] (which cuts are allowed), [`placement`] (what each chip holds and sends), [`network`] (collectives),
//! [`pipeline`] (schedules slot by slot), [`operator`] (one kernel on a real chip), [`term`] (equations that print and
//! evaluate themselves).

pub mod board;
pub mod count;
pub mod curve;
pub mod deduce;
pub mod experts;
pub mod kv;
pub mod layout;
pub mod network;
pub mod operator;
pub mod pipeline;
pub mod placement;
pub mod roofline;
pub mod sparsity;
pub mod station;
pub mod term;
