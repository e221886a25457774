//! The questions, a folder for each chapter.

pub mod board;
pub mod catalogue;
pub mod learn;
pub mod money;
pub mod plan;
pub mod serve;
pub mod train;
