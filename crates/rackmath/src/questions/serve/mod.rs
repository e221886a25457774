//! What a server delivers, and how far predictions lie from measured machines.

pub mod capacity;
pub mod case;
pub mod check;
pub mod estimate;
pub mod simulate;
pub mod trace;
pub mod validate;
pub mod when;
