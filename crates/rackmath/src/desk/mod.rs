//! What questions share: settings resolved, figures, errors.

pub mod error;
pub mod figure;
pub mod setting;
