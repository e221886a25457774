//! What users see of passes: the steady state, requests that differ, what a trace says.

pub mod deployment;
pub mod lengths;
pub mod steady;
pub mod traffic;
