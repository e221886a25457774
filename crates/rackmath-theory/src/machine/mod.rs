//! A model on a machine: which cuts are allowed, what each chip holds, what an engine makes of its memory, collectives, kernels, a whole pass, pipelines.

pub mod budget;
pub mod layout;
pub mod network;
pub mod operator;
pub mod pages;
pub mod pass;
pub mod pipeline;
pub mod placement;
pub mod split;
pub mod timer;
