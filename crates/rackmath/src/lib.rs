//! The questions, one module each: a `Request`, an `Answer`, and `answer(&Catalog, &Request)`, or
//! `answer_on(.., effort)` where it takes long: on so many threads, until it is not wanted any more.
//!
//! These are the only types promised to the outside. Requests and answers are plain data with units in their field names,
//! so that the terminal, a page and a script can ask and be answered the same way. Everything here is pure: the same
//! request gives the same answer, byte for byte.

#![warn(missing_docs)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod ask;
mod desk;
mod questions;

pub(crate) use desk::support;
pub use desk::{evidence, field, figure, limit, media, offload, remark, setting};
pub use rackmath_spec::SpecError as Error;
// A question is known by its own name, whatever folder it stands in.
pub use questions::{board::*, catalogue::*, learn::*, money::*, plan::*, serve::*, train::*};
pub use rackmath_spec::{Catalog, Kind};
