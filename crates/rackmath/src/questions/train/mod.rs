//! What training takes: a step, a run, a budget, its failures, its published numbers.

pub mod forensics;
pub mod goodput;
pub mod lifecycle;
pub mod mfu;
pub mod rl;
pub mod scaling;
pub mod train;
