//! What can be typed to split a plan, and to join it again.

use clap::Args as ClapArgs;
use std::path::PathBuf;
use std::str::FromStr;

/// One shard of several, as `i/n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 1.
    pub shard: u64,
    /// Of how many.
    pub of: u64,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let both = text.split_once('/').and_then(|(i, n)| Some((i.trim().parse().ok()?, n.trim().parse().ok()?)));
        match both {
            Some((shard, of)) if shard >= 1 && shard <= of && of <= rackmath::plan::MOST_SHARDS => {
                Ok(Self { shard, of })
            }
            _ => Err(format!("expected i/n with i from 1 to n, n at most {}", rackmath::plan::MOST_SHARDS)),
        }
    }
}

#[derive(ClapArgs, Clone)]
pub struct MergeArgs {
    /// Files that `rackmath plan --shard` wrote, every shard once, in any order
    #[arg(required = true, value_name = "FILES")]
    pub parts: Vec<PathBuf>,
    /// Write the frontier as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the frontier as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}
