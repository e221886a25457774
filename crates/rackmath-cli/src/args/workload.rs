//! What can be typed about traffic: a trace, distributions of lengths, a peak.

use clap::Args as ClapArgs;
use rackmath_units::Seconds;
use std::path::PathBuf;

/// Traffic beyond its means.
#[derive(ClapArgs, Clone)]
pub struct WorkloadArgs {
    /// Traffic from a trace: Mooncake JSON lines, Azure or BurstGPT CSV, or a CSV of your own [see: rackmath trace]
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// How long a prefix of the trace is kept after its last use [default: all of the trace]
    #[arg(long, value_name = "TIME", requires = "trace")]
    pub keep: Option<Seconds>,
    /// Lengths of prompts: lognormal:mean=4k,cv=0.8, uniform:1k..4k, exponential:mean=1k
    #[arg(long, value_name = "LENGTHS", conflicts_with = "isl")]
    pub isl_dist: Option<String>,
    /// Lengths of answers, the same way
    #[arg(long, value_name = "LENGTHS", conflicts_with = "osl")]
    pub osl_dist: Option<String>,
    /// Traffic to plan for over the mean, which --rate is then [default: 1, or the busiest minute of the trace]
    #[arg(long, value_name = "FACTOR")]
    pub peak: Option<f64>,
}

/// What to do with the best plan.
#[derive(ClapArgs, Clone)]
pub struct HandoverArgs {
    /// Write commands, configuration files, a Kubernetes manifest and load tests into a folder (- prints them)
    #[arg(long, value_name = "DIR")]
    pub handover: Option<PathBuf>,
    /// Write the Kubernetes manifest (- prints it)
    #[arg(long, visible_alias = "kubernetes", value_name = "FILE")]
    pub k8s: Option<PathBuf>,
    /// Chips of one host [default: the scale-up domain up to 8, 4 in racks]
    #[arg(long, value_name = "N")]
    pub chips_per_host: Option<u64>,
}

/// `rackmath trace`
#[derive(ClapArgs, Clone)]
pub struct TraceArgs {
    /// The trace
    pub file: PathBuf,
    /// How long a prefix is kept after its last use [default: all of the trace]
    #[arg(long, value_name = "TIME")]
    pub keep: Option<Seconds>,
}
