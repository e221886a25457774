//! What questions share: settings resolved, figures, errors.

pub(crate) mod check;
pub mod error;
pub mod figure;
pub mod setting;
