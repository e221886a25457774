//! An answer as a person sees it: text, a chart in the terminal, SVG, PNG, CSV.
//!
//! Only this crate rounds. A chart is laid out once as a [`scene::Scene`] and painted by [`svg`] and [`png`]; the terminal
//! draws the same [`rackmath::figure::Figure`] in Braille.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod chrome;
pub mod csv;
mod font;
pub mod page;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod picture;
mod plot;
pub mod png;
pub mod reply;
pub mod rows;
pub mod scene;
pub mod style;
pub mod svg;
pub mod terminal;
pub mod text;
mod ticks;
pub mod words;

pub use plot::scene;
pub use style::Style;
