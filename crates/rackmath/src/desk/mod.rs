//! What questions share: settings resolved, figures, checks.

pub(crate) mod check;
pub(crate) mod cut;
pub mod evidence;
pub mod field;
pub mod figure;
pub(crate) mod host;
pub mod limit;
pub(crate) mod line;
pub mod media;
pub mod offload;
pub mod remark;
pub(crate) mod remedy;
pub mod setting;
pub(crate) mod support;
pub(crate) mod words;

/// What almost every question needs.
pub(crate) mod prelude {
    pub(crate) use super::check::{
        if_given, is_default, layered, named_or_all, near, no_peak, no_price, refuse_if, spaced, up_to, within,
    };
    pub(crate) use super::field::closed;
    pub(crate) use super::figure::{Axis, Figure, Mark, Role, Series, Unit, count};
    pub(crate) use super::limit::AtMost;
    pub(crate) use super::remark::{Remark, says};
    pub(crate) use super::setting::{Resolved, Setting, resolve, tokens};
    pub(crate) use crate::Error;
    pub(crate) use crate::estimate::Range;
    pub(crate) use educe::Educe;
    pub(crate) use rackmath_spec::layout::Degrees;
    pub(crate) use rackmath_spec::{Catalog, Dtype, Layout};
    pub(crate) use rackmath_units::{
        ByteRate, Bytes, Cancel, Cancelled, DollarRate, DollarsPerToken, Effort, Fraction, Params, Seconds, TokenRate,
        Tokens, float, grouped, significant,
    };
    pub(crate) use schemars::JsonSchema;
    pub(crate) use serde::{Deserialize, Serialize};
    pub(crate) use std::sync::Arc;
}
