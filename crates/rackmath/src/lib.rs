//! The questions, one module each: a `Request`, an `Answer`, and `answer(&Catalog, &Request)`, or
//! `answer_on(.., effort)` where it takes long: on so many threads, until it is not wanted any more.
//!
//! These are the only types promised to the outside. Requests and answers are plain data with units in their field names,
//! so that the terminal, a page and a script can ask and be answered the same way. Everything here is pure: the same
//! request gives the same answer, byte for byte.
//!
//! What a server delivers, by its types:
//!
//! ```
//! use rackmath::estimate::{Request, answer};
//! use rackmath::setting::Setting;
//!
//! let catalog = rackmath_catalog::embedded();
//! let setting = Setting { model: "llama-3.1-8b".into(), on: "1xh200".into(), ..Setting::default() };
//! let request = Request { setting, concurrency: Some(32.0), ..Request::default() };
//! let served = answer(&catalog, &request)?.served.expect("it fits");
//! assert!(served.tpot_ms.low <= served.tpot_ms.value && served.tpot_ms.value <= served.tpot_ms.high);
//! # Ok::<(), rackmath::Error>(())
//! ```
//!
//! Any question by its name, JSON in and JSON out, as every face asks; a word that is none is refused with the nearest:
//!
//! ```
//! use rackmath::ask::Question;
//!
//! let catalog = rackmath_catalog::embedded();
//! let answer = Question::find("step")?.ask(&catalog, r#"{"batch": 64, "setting": {"model": "qwen3-32b"}}"#)?;
//! assert!(answer.starts_with("{\n  \"schema\": 2,"));
//! let refused = Question::Step.ask(&catalog, r#"{"setting": {"model": "qwen3-33b"}}"#).unwrap_err();
//! assert!(refused.to_string().contains("did you mean"));
//! # Ok::<(), rackmath::Error>(())
//! ```
//!
//! One question over axes of its fields, in rows that come in order whatever the threads:
//!
//! ```
//! use rackmath::ask::Terms;
//! use rackmath::sweep::{Request, Sweep};
//! use rackmath::table::{Rows, run};
//!
//! let catalog = rackmath_catalog::embedded();
//! let over = vec!["batch=1..1024*2".to_owned(), "context=1k,8k".to_owned()];
//! let request = Request { question: "step".into(), over, ..Request::default() };
//! let sweep = Sweep::new(&catalog, &request, (1, 1), &Terms::default())?;
//! let mut rows = 0;
//! run(&sweep, 2, |block| block.rows, |n, _| {
//!     rows += n;
//!     Ok::<_, rackmath::Error>(true)
//! })?;
//! assert_eq!((rows, sweep.columns()[0].0.as_str()), (22, "batch"));
//! # Ok::<(), rackmath::Error>(())
//! ```

#![warn(missing_docs)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod ask;
mod desk;
pub mod extent;
mod questions;
pub mod sweep;
pub mod table;

pub(crate) use desk::support;
pub use desk::{evidence, field, figure, limit, media, offload, remark, setting};
pub use rackmath_spec::SpecError as Error;
// A question is known by its own name, whatever folder it stands in.
pub use questions::{board::*, catalogue::*, learn::*, money::*, plan::*, serve::*, train::*};
pub use rackmath_spec::{Catalog, Kind};
