//! What users see of passes: the steady state, requests that differ, what a trace says.

pub mod adapters;
pub mod chunk;
pub mod deployment;
pub mod drafter;
pub mod embed;
pub mod encoders;
pub mod lengths;
pub mod measured;
pub mod pools;
pub mod power;
pub mod steady;
pub mod traffic;
