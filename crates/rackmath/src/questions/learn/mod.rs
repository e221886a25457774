//! The lecture, practice, and reversible networks.

pub mod lecture;
pub mod practice;
pub mod reversible;
