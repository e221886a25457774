//! What tokens cost, what providers charge, and what their prices betray.

pub mod cache;
pub mod cost;
pub mod deduce;
pub mod fastmode;
pub mod fleet;
pub mod own;
pub mod price;
pub mod serving;
