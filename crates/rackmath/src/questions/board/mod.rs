//! The blackboard and the rack: one step, curves, equations opened, layouts, pipelines, trains that leave on time.

pub mod curve;
pub mod explain;
pub mod layout;
pub mod pipeline;
pub mod racks;
pub mod station;
pub mod step;
