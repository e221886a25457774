//! What goes wrong at the border, as a person reads it: one line of error, one of hint.

use std::fmt;

/// A message for standard error.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl From<rackmath::Error> for Failure {
    fn from(error: rackmath::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<rackmath_spec::SpecError> for Failure {
    fn from(error: rackmath_spec::SpecError) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for Failure {
    /// Messages put the remedy behind the first semicolon.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_once("; ") {
            Some((problem, remedy)) => writeln!(f, "error: {problem}\nhint: {remedy}"),
            None => writeln!(f, "error: {}", self.0),
        }
    }
}
