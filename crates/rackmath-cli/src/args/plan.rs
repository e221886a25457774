//! What can be typed after `plan`.

use super::{HandoverArgs, SettingArgs, Shard, WorkloadArgs};
use clap::Args as ClapArgs;
use rackmath_units::{DollarRate, Fraction, Seconds, TokenRate, Tokens, Watts};
use std::path::PathBuf;

#[derive(ClapArgs, Clone)]
pub struct PlanArgs {
    #[command(flatten)]
    pub setting: SettingArgs,
    /// Engines to choose from, with commas: vllm,sglang,trtllm
    #[arg(long, visible_alias = "backend", default_value = "vllm", value_name = "NAMES", value_delimiter = ',')]
    pub engine: Vec<String>,
    /// A named workload: its lengths and targets, unless given [see: catalog/scenarios]
    #[arg(long, value_name = "NAME")]
    pub scenario: Option<String>,
    /// Tokens of a prompt, mean [default: 1000]
    #[arg(long, visible_alias = "input-len", value_name = "TOKENS")]
    pub isl: Option<Tokens>,
    /// Tokens of an answer, mean [default: 1000]
    #[arg(long, visible_alias = "output-len", value_name = "TOKENS")]
    pub osl: Option<Tokens>,
    /// Share of a prompt found in the prefix cache [default: 0]
    #[arg(long, value_name = "SHARE")]
    pub prefix_hit: Option<Fraction>,
    /// Share of a prompt found in host memory beyond that: KV offload becomes a choice
    #[arg(long, value_name = "SHARE")]
    pub offload_hit: Option<Fraction>,
    /// Requests per second; as much as the chips serve when not given
    #[arg(long, visible_alias = "request-rate", value_name = "R")]
    pub rate: Option<f64>,
    /// Mean time to first token, at most
    #[arg(long, visible_alias = "ttft-slo", value_name = "TIME")]
    pub ttft: Option<Seconds>,
    /// Mean time per output token, at most
    #[arg(long, visible_aliases = ["tpot-slo", "itl"], value_name = "TIME")]
    pub tpot: Option<Seconds>,
    /// Mean time of a whole request, at most
    #[arg(long, value_name = "TIME")]
    pub e2e: Option<Seconds>,
    /// Output tokens per second of one user, at least
    #[arg(long, value_name = "RATE")]
    pub user: Option<TokenRate>,
    /// Output tokens per second of all, at least
    #[arg(long, value_name = "RATE")]
    pub throughput: Option<TokenRate>,
    /// Share of the memory for caches left free, at least
    #[arg(long, value_name = "SHARE")]
    pub headroom: Option<Fraction>,
    /// Dollars per hour, at most, such as $50/h
    #[arg(long, value_name = "PRICE")]
    pub budget: Option<DollarRate>,
    /// Power of the chips, at most
    #[arg(long, value_name = "POWER")]
    pub power: Option<Watts>,
    /// What is best: cost chips energy latency throughput goodput
    #[arg(long, visible_alias = "minimize", default_value = "cost", value_name = "WHAT")]
    pub objective: String,
    /// Most tokens in a pass, to choose from, with commas [default: the engine's]
    #[arg(long, visible_alias = "max-num-batched-tokens", value_name = "TOKENS", value_delimiter = ',')]
    pub chunks: Vec<Tokens>,
    /// Drafts for each step to choose from, with commas
    #[arg(long, value_name = "K", value_delimiter = ',', requires = "acceptance")]
    pub drafts: Vec<f64>,
    /// Chance that a draft is accepted when all before it were
    #[arg(long, value_name = "SHARE")]
    pub acceptance: Option<Fraction>,
    /// Only deployments in which prompts and answers share their chips
    #[arg(long)]
    pub aggregated: bool,
    /// Deployments to show
    #[arg(long, default_value = "5", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub top: u16,
    /// Write the frontier as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the frontier as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    #[command(flatten)]
    pub workload: WorkloadArgs,
    #[command(flatten)]
    pub handover: HandoverArgs,
    /// Only shard i of n, counted from 1: a file for `rackmath merge`
    #[arg(long, value_name = "I/N", conflicts_with_all = ["svg", "csv"])]
    pub shard: Option<Shard>,
    /// Where the shard goes [default: standard output]
    #[arg(long, short, value_name = "FILE", requires = "shard")]
    pub out: Option<PathBuf>,
    /// Write every configuration as a row of a table as well: FILE.csv or FILE.jsonl
    #[arg(long, value_name = "FILE")]
    pub rows: Option<PathBuf>,
    /// Only rows that meet every limit
    #[arg(long, requires = "rows")]
    pub feasible: bool,
    /// Machines that may compute prompts for those of --on, each with chips of its own
    #[arg(long, value_name = "MACHINES", conflicts_with = "aggregated")]
    pub prefill_on: Option<String>,
    /// The same as --on
    #[arg(long, value_name = "MACHINES", conflicts_with = "on")]
    pub decode_on: Option<String>,
    /// Degrees to try: powers (of two), or any the model and the machine allow
    #[arg(long, default_value = "powers", value_name = "WHICH")]
    pub degrees: String,
    /// Sizes of decode context parallel to try beside 1, with vLLM (2,4,8): chips share the tokens of a cache
    #[arg(
        long,
        visible_alias = "decode-context-parallel-size",
        value_delimiter = ',',
        value_name = "SIZES",
        conflicts_with = "rows"
    )]
    pub dcp: Vec<u64>,
}

impl PlanArgs {
    /// The machines, as typed.
    pub fn machines(&self) -> &str {
        self.decode_on.as_deref().unwrap_or(&self.setting.on)
    }
}
