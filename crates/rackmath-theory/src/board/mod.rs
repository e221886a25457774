//! The blackboard: two resources and the ridge between them, closed forms with exact kinks, experts, trains that leave
//! on time.

pub mod experts;
pub mod roofline;
pub mod sparsity;
pub mod station;
mod step;

pub use step::*;
