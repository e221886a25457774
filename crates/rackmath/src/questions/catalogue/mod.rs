//! What the catalogue holds.

pub mod chips;
pub mod laws;
pub mod models;
pub mod names;
pub mod systems;
