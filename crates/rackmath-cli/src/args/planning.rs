//! What can be typed after the questions around a plan.

use super::PlanArgs;
use clap::{Args as ClapArgs, ValueEnum};
use rackmath_units::Fraction;
use std::path::PathBuf;

/// `plan`, with its file.
#[derive(ClapArgs, Clone)]
pub struct PlanFileArgs {
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Save the question and the recommended plan as a file that --from and whatif read
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Answer the question of a saved plan again, and check its numbers
    #[arg(long, value_name = "FILE", conflicts_with = "save")]
    pub from: Option<PathBuf>,
}

#[derive(ClapArgs, Clone)]
pub struct WhatifArgs {
    /// A plan saved with rackmath plan --save
    pub file: PathBuf,
    /// A change, such as tpot=20ms, on=64xb200, isl=8k, price=$3/h, tpot=none; may be repeated
    #[arg(long, short = 's', value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Save the changed plan
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

/// What to put side by side, and how to draw it.
#[derive(ClapArgs, Clone)]
pub struct SidesArgs {
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Models to compare, with commas, instead of the machines of --on
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub models: Vec<String>,
    /// Engines to compare, with commas, instead of the machines of --on
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "models")]
    pub engines: Vec<String>,
    /// The other axis: tokens per chip, or dollars per million tokens
    #[arg(long, value_name = "WHICH", default_value = "chip")]
    pub figure: SidesFigure,
    /// Write the frontiers as PNG
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
}

/// What a frontier has against tokens per user.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SidesFigure {
    /// Output tokens per second and chip.
    Chip,
    /// Dollars per million output tokens.
    Dollar,
}

/// Hardware for a workload.
#[derive(ClapArgs, Clone)]
pub struct HardwareArgs {
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Chips or systems to choose from, with commas, instead of all chips with a price; --on does not count
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub among: Vec<String>,
    /// Do not look for where the answer changes
    #[arg(long)]
    pub no_flips: bool,
    /// Write the frontiers of the best as PNG
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
}

/// How sure a plan is.
#[derive(ClapArgs, Clone)]
pub struct OutlookArgs {
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Take the question from a plan saved with rackmath plan --save
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Share by which inputs are moved down and up
    #[arg(long, default_value = "20%", value_name = "SHARE")]
    pub vary: Fraction,
}
