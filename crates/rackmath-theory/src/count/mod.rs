//! What a model holds and moves: parameters and FLOP by part, what the cache stores and what a step reads of it,
//! pictures and sound as tokens, and amounts that grow with the context.

pub mod curve;
pub mod kv;
pub mod lora;
mod params;
pub mod towers;

pub use params::*;
