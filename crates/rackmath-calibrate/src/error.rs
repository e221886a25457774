//! What can be wrong with a folder of measurements.

use rackmath_spec::SpecError;
use thiserror::Error;

/// A folder, row or name that cannot be used.
#[derive(Debug, Error)]
pub enum CalibrateError {
    /// None of the tables is there.
    #[error("{folder}: none of {} found; give the folder that holds them", expected.join(", "))]
    Nothing {
        folder: String,
        /// The files that are understood.
        expected: Vec<&'static str>,
    },
    /// A file that cannot be read.
    #[error("{file}: {problem}")]
    File {
        file: String,
        /// What is wrong with it.
        problem: String,
    },
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
