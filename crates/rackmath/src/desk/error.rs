//! What can be wrong with a question.

use rackmath_spec::SpecError;
use thiserror::Error;

/// A question that cannot be asked: what was given, what was expected, the nearest valid thing.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// A name, file or value of the catalogue.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A value that cannot be.
    #[error("{field} = {given}; expected {expected}")]
    Value {
        /// The field of the request.
        field: &'static str,
        /// What was given.
        given: String,
        /// What would do.
        expected: String,
    },
    /// A request that cannot be read.
    #[error("{0}")]
    Body(String),
    /// A chip without a peak for the arithmetic that is needed.
    #[error("{chip} has no dense peak for {wanted} weights; it has {has}")]
    NoPeak {
        /// The chip.
        chip: String,
        /// What was wanted.
        wanted: String,
        /// What it has.
        has: String,
    },
    /// A machine whose hourly price is not known.
    #[error("no {basis} price is known for {chip}; give one with --price, or choose {has}")]
    NoPrice {
        /// The chip.
        chip: String,
        /// The basis asked for.
        basis: String,
        /// The bases it has a price on.
        has: String,
    },
}

impl Error {
    pub(crate) fn value(field: &'static str, given: impl ToString, expected: impl Into<String>) -> Self {
        Self::Value { field, given: given.to_string(), expected: expected.into() }
    }
}
