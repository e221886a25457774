//! A model on a machine: which cuts are allowed, what each chip holds, collectives, kernels, a whole pass, pipelines.

pub mod layout;
pub mod network;
pub mod operator;
pub mod pass;
pub mod pipeline;
pub mod placement;
pub mod timer;
