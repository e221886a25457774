//! The questions, one module each: a `Request`, an `Answer`, and `answer(&Catalog, &Request)`.
//!
//! These are the only types promised to the outside. Requests and answers are plain data with units in their field names,
//! so that the terminal, a page and a script can ask and be answered the same way. Everything here is pure: the same
//! request gives the same answer, byte for byte.

pub mod ask;
pub mod cache;
pub mod case;
pub mod chips;
pub mod compare;
pub mod cost;
pub mod curve;
pub mod deduce;
pub mod deployment;
mod error;
pub mod estimate;
pub mod explain;
pub mod fastmode;
pub mod figure;
pub mod fleet;
pub mod forensics;
pub mod frontier;
pub mod goodput;
pub mod hardware;
pub mod laws;
pub mod layout;
pub mod lecture;
pub mod lifecycle;
pub mod mfu;
pub mod models;
pub mod names;
pub mod outlook;
pub mod pipeline;
pub mod plan;
pub mod planfile;
pub mod practice;
pub mod price;
pub mod racks;
pub mod reversible;
pub mod scaling;
pub mod serving;
pub mod setting;
pub mod sides;
pub mod station;
pub mod step;
pub mod systems;
pub mod trace;
pub mod train;
pub mod validate;
pub mod whatif;

pub use error::Error;
pub use rackmath_spec::Catalog;
