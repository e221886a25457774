//! Measures: this machine and its accelerators ([`probe`]), a live server ([`gauge`], [`watch`]), and what other tools measured
//! ([`read`]). With the faces for Python and the browser the only crate with `unsafe`.

pub mod gauge;
pub mod judge;
pub mod memory;
pub mod probe;
pub mod prometheus;
pub mod read;
pub mod sse;
pub mod watch;
