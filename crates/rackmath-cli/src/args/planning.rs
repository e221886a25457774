//! What can be typed after the questions around a plan.

use super::PlanArgs;
use clap::Args as ClapArgs;
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
