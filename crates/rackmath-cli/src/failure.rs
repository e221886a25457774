//! What goes wrong at the border, as a person reads it: one line of error, one of hint.

use rackmath::Error;
use rackmath::field::Field;
use rackmath_spec::Shown;
use std::fmt;
use std::path::Path;

/// A message for standard error.
#[derive(Debug)]
pub enum Failure {
    /// Of a question, whose fields are flags here.
    Asked(Error),
    Own(Shown),
}

impl Failure {
    pub fn new(problem: impl Into<String>) -> Self {
        Self::Own(Shown { problem: problem.into(), field: None, hint: None })
    }

    /// What is wrong with a file.
    pub fn at(path: &Path, problem: impl fmt::Display) -> Self {
        Self::new(format!("{}: {problem}", path.display()))
    }

    pub fn hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Own(shown) => Self::Own(Shown { hint: Some(hint.into()), ..shown }),
            Self::Asked(error) => Self::Asked(error.hint(hint)),
        }
    }

    /// In the words of a command with these flags.
    pub fn text(&self, fields: &[Field]) -> String {
        let flag = |path: &str| {
            let pointer = format!("/{}", path.replace('.', "/"));
            let same = |f: &&Field| f.path == pointer || f.path.ends_with(&pointer);
            let found = fields.iter().find(same).or_else(|| {
                let last = pointer.rsplit('/').next().unwrap_or_default();
                fields.iter().find(|f| f.path.rsplit('/').next() == Some(last))
            });
            found.map_or_else(|| format!("--{}", word(path).replace('_', "-")), |f| format!("--{}", f.flag))
        };
        let shown = match self {
            Self::Asked(error) => error.shown(|path| word(path).to_owned(), flag),
            Self::Own(shown) => shown.clone(),
        };
        let hint = shown.hint.map_or_else(String::new, |hint| format!("hint: {hint}\n"));
        format!("error: {}\n{hint}", shown.problem)
    }
}

/// A field of a request in a sentence.
fn word(path: &str) -> &str {
    match path.strip_prefix("setting.").unwrap_or(path) {
        "price_usd_per_chip_hour" => "price",
        other => other,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Asked(error)
    }
}
