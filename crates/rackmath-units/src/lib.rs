//! Quantities and nothing else.
//!
//! A quantity is an `f64` that knows its unit: finite and not negative from birth, so that a formula built from
//! quantities cannot divide bytes by FLOP/s or forget a factor of 1,024. Only meaningful products exist:
//!
//! ```
//! use rackmath_units::{Bytes, ByteRate, Seconds};
//! let sweep: Seconds = Bytes::gb(192.0) / ByteRate::tb_per_s(8.0);
//! assert_eq!(sweep.to_string(), "24.0 ms");
//! assert_eq!("80 GiB".parse::<Bytes>().unwrap(), Bytes::gib(80.0));
//! ```
//!
//! Decimal and binary bytes have different names (`gb`, `gib`). Peaks are dense, bandwidths are one-way; the types
//! cannot check that, the catalogue does.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod chance;
mod effort;
pub mod float;
mod fraction;
mod parse;
mod quantity;
mod show;

pub use chance::Chance;
pub use effort::{Cancel, Cancelled, Effort};
pub use fraction::Fraction;
pub use parse::UnitError;
pub use quantity::{
    ByteRate, Bytes, BytesPerParam, BytesPerToken, DollarRate, Dollars, DollarsPerToken, Flop, FlopPerToken, FlopRate,
    HoldPrice, Intensity, Joules, Params, Quantity, Seconds, SecondsPerToken, TokenRate, Tokens, Watts,
};
pub use show::{grouped, grouped_digits, significant};
