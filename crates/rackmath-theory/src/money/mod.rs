//! Dollars: what a token costs to serve, what a provider charges, what is worth keeping, what prices betray.

pub mod cost;
pub mod crossover;
pub mod deduce;
pub mod fastmode;
pub mod fleet;
pub mod lifetime;
pub mod own;
pub mod price;
pub mod reuse;
