//! What questions share: settings resolved, figures, checks.

pub(crate) mod check;
pub mod field;
pub mod figure;
pub mod setting;
