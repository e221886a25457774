//! Measures: this machine and its accelerators ([`probe`]). With the faces for Python and the browser the only crate with `unsafe`.

pub mod probe;
