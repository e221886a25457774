//! Compares the equations with measurements and fits their constants.
//!
//! [`network`] reads tables of collective and expert-exchange timings from a folder, predicts every row through
//! `rackmath_theory::network` with the catalogue's constants, and reports how far off the rows are. It also fits the
//! constants and prints them as TOML for `catalog/networks`. Distance is |ln(predicted / measured)|, which treats twice and
//! half alike. [`fits`] asks whether published deployments fit in memory. [`gemm`], [`attention`] and
//! [`moe`] do for kernels what [`network`] does for collectives. [`serving`] holds whole steps and
//! whole deployments against measured ones and fits the engines; [`planner`] asks how good the choices are that follow. [`scaling`]
//! fits a scaling law to training runs. Nothing here draws lots: the same rows give the same constants.

pub mod attention;
pub mod deduce;
mod error;
pub mod fits;
pub mod gemm;
mod knob;
pub mod moe;
mod names;
pub mod network;
pub mod planner;
mod rows;
pub mod scaling;
pub mod serving;
mod simplex;
mod table;
pub mod training;

pub use error::CalibrateError;
