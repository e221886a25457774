//! What questions share: settings resolved, figures, checks.

pub(crate) mod check;
pub mod field;
pub mod figure;
pub mod setting;

/// What almost every question needs.
pub(crate) mod prelude {
    pub(crate) use super::check::{
        if_given, layered, named_or_all, no_peak, no_price, refuse_if, spaced, up_to, within,
    };
    pub(crate) use super::figure::{Axis, Figure, Mark, Role, Series, Unit};
    pub(crate) use crate::Error;
    pub(crate) use rackmath_spec::Catalog;
    pub(crate) use schemars::JsonSchema;
    pub(crate) use serde::{Deserialize, Serialize};
}
