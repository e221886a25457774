//! What can be wrong with a folder of measurements.

use rackmath_spec::SpecError;
use std::path::Path;
use thiserror::Error;

/// A folder, row or name that cannot be used.
#[derive(Debug, Error)]
pub enum CalibrateError {
    #[error("{folder}: none of {} found; give the folder that holds them", expected.join(", "))]
    Nothing { folder: String, expected: Vec<&'static str> },
    #[error("{file}: {problem}")]
    File { file: String, problem: String },
    /// A name the catalogue does not know, or a question that cannot be asked.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl From<CalibrateError> for SpecError {
    fn from(error: CalibrateError) -> Self {
        match error {
            CalibrateError::Nothing { folder, expected } => {
                let problem = format!("none of {} found", expected.join(", "));
                Self::file(folder, problem).hint("give the folder that holds them")
            }
            CalibrateError::File { file, problem } => Self::file(file, problem),
            CalibrateError::Spec(error) => error,
        }
    }
}

impl CalibrateError {
    /// None of the tables is there.
    pub(crate) fn nothing(folder: &Path, expected: Vec<&'static str>) -> Self {
        Self::Nothing { folder: folder.display().to_string(), expected }
    }

    pub(crate) fn file(file: impl ToString, problem: impl ToString) -> Self {
        Self::File { file: file.to_string(), problem: problem.to_string() }
    }
}
