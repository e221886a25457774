//! What goes wrong at the border, as a person reads it: one line of error, one of hint.

use rackmath_spec::Shown;
use std::fmt;

/// A message for standard error.
#[derive(Debug)]
pub struct Failure(Shown);

impl Failure {
    pub fn new(problem: impl Into<String>) -> Self {
        Self(Shown { problem: problem.into(), field: None, hint: None })
    }

    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self(Shown { hint: Some(hint.into()), ..self.0 })
    }
}

impl From<rackmath::Error> for Failure {
    fn from(error: rackmath::Error) -> Self {
        Self(error.shown(|path| word(path).to_owned(), |path| format!("--{}", word(path).replace('_', "-"))))
    }
}

/// A field of a request as the terminal calls it.
fn word(path: &str) -> &str {
    match path.strip_prefix("setting.").unwrap_or(path) {
        "price_usd_per_chip_hour" => "price",
        other => other,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.0.problem)?;
        self.0.hint.as_ref().map_or(Ok(()), |hint| writeln!(f, "hint: {hint}"))
    }
}
