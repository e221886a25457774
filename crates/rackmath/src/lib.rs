//! The questions, one module each: a `Request`, an `Answer`, and `answer(&Catalog, &Request)`.
//!
//! These are the only types promised to the outside. Requests and answers are plain data with units in their field names,
//! so that the terminal, a page and a script can ask and be answered the same way. Everything here is pure: the same
//! request gives the same answer, byte for byte.

pub mod chips;
pub mod curve;
pub mod deduce;
mod error;
pub mod explain;
pub mod figure;
pub mod layout;
pub mod lecture;
pub mod models;
pub mod pipeline;
pub mod racks;
pub mod setting;
pub mod station;
pub mod step;
pub mod systems;

pub use error::Error;
pub use rackmath_spec::Catalog;
