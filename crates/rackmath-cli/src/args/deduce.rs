//! What can be typed after `rackmath deduce`.

use clap::Args;
use rackmath_units::Tokens;
use std::path::PathBuf;

/// Prices by flags or from a file.
#[derive(Args, Clone)]
pub struct DeduceArgs {
    /// A price sheet: a name that `price` knows, or a path of a .toml file with units (input = "$5/Mtok"); flags win over it
    pub sheet: Option<String>,
    /// Hide an open model's architecture and deduce it from its hosts' prices
    #[arg(long, value_name = "MODEL")]
    pub blind: Option<String>,
    /// Who sells, such as anthropic or deepseek; leave out for a host of open weights
    #[arg(long)]
    pub vendor: Option<String>,
    /// The seller made the model and keeps its weights [default: as the vendor]
    #[arg(long)]
    pub first_party: bool,
    /// Input price, such as 5$/Mtok
    #[arg(long, value_name = "PRICE")]
    pub input: Option<String>,
    /// Output price
    #[arg(long, value_name = "PRICE")]
    pub output: Option<String>,
    /// Cached-read price
    #[arg(long, value_name = "PRICE")]
    pub cached: Option<String>,
    /// Price of a cache write kept for five minutes
    #[arg(long, value_name = "PRICE")]
    pub write_5m: Option<String>,
    /// Price of a cache write kept for an hour
    #[arg(long, value_name = "PRICE")]
    pub write_1h: Option<String>,
    /// Storage price, such as 4.5$/Mtok-h
    #[arg(long, value_name = "PRICE")]
    pub storage: Option<String>,
    /// Tokens from which long-context prices apply
    #[arg(long, value_name = "TOKENS")]
    pub long_above: Option<Tokens>,
    /// Input price above
    #[arg(long, value_name = "PRICE")]
    pub long_input: Option<String>,
    /// Output price above
    #[arg(long, value_name = "PRICE")]
    pub long_output: Option<String>,
    /// Price multiple of a fast mode
    #[arg(long, value_name = "X")]
    pub fast_price: Option<f64>,
    /// Speed multiple of a fast mode
    #[arg(long, value_name = "X")]
    pub fast_speed: Option<f64>,
    /// Measured output tokens per second of one user
    #[arg(long, value_name = "RATE")]
    pub tokens_per_s: Option<f64>,
    /// Hosts whose median the prices are
    #[arg(long, value_name = "N")]
    pub hosts: Option<u64>,
    /// When the prices held, as 2026-08-08 [default for a named sheet: the day it was checked]
    #[arg(long, value_name = "DATE")]
    pub as_of: Option<String>,
    /// Points, as a power of two from 12 to 20
    #[arg(long, value_name = "LOG2", default_value = "16")]
    pub points: u32,
    /// Seed of the points
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Which picture to save: active parameters, or the ridge of active parameters against mark-up
    #[arg(long, default_value = "active", value_name = "WHICH")]
    pub figure: DeduceFigure,
    /// Write the picture as SVG (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the picture as PNG
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
}

/// Which picture of a posterior.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum DeduceFigure {
    /// Prior and posterior of active parameters.
    Active,
    /// Active parameters against mark-up.
    Ridge,
}
