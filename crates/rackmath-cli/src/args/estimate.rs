//! What can be typed after `estimate`.

use super::SettingArgs;
use clap::Args as ClapArgs;
use rackmath::layout::DegreesRequest;
use rackmath_units::{Fraction, Seconds, Tokens};
use std::path::PathBuf;

#[derive(ClapArgs, Clone)]
pub struct EstimateArgs {
    #[command(flatten)]
    pub setting: SettingArgs,
    #[command(flatten)]
    pub cut: CutArgs,
    /// Engine, with a version where it matters: vllm, sglang, trtllm, llamacpp, torch, ideal, vllm@0.19.0
    #[arg(long, visible_alias = "backend", default_value = "vllm", value_name = "NAME")]
    pub engine: String,
    /// Requests in flight over all groups [default: 64]
    #[arg(long, visible_alias = "max-concurrency", value_name = "N", conflicts_with_all = ["request_rate", "max_load"])]
    pub concurrency: Option<Tokens>,
    /// Requests per second at random, instead
    #[arg(long, visible_alias = "rate", value_name = "R", conflicts_with = "max_load")]
    pub request_rate: Option<f64>,
    /// As many requests as memory and the engine hold, instead
    #[arg(long)]
    pub max_load: bool,
    /// Tokens of a prompt, mean
    #[arg(long, visible_aliases = ["input-len", "random-input-len"], default_value = "1000", value_name = "TOKENS")]
    pub isl: Tokens,
    /// Tokens of an answer, mean
    #[arg(long, visible_aliases = ["output-len", "random-output-len"], default_value = "1000", value_name = "TOKENS")]
    pub osl: Tokens,
    /// Share of a prompt found in the prefix cache
    #[arg(long, default_value = "0", value_name = "SHARE")]
    pub prefix_hit: Fraction,
    /// Tokens drafted for each sequence and step
    #[arg(long, visible_aliases = ["num-speculative-tokens", "speculative-num-draft-tokens"], value_name = "K")]
    pub drafts: Option<f64>,
    /// Tokens a step yields, its own included
    #[arg(long, value_name = "N", requires = "drafts", conflicts_with = "acceptance")]
    pub accepted: Option<f64>,
    /// Chance that a draft is accepted when all before it were
    #[arg(long, value_name = "SHARE", requires = "drafts")]
    pub acceptance: Option<f64>,
    /// Most tokens in a pass [default: the engine's]
    #[arg(long, visible_aliases = ["max-num-tokens", "chunked-prefill-size"], value_name = "N")]
    pub max_num_batched_tokens: Option<Tokens>,
    /// Most sequences that decode together, per group [default: the engine's]
    #[arg(long, visible_aliases = ["max-batch-size", "max-running-requests"], value_name = "N")]
    pub max_num_seqs: Option<Tokens>,
    /// Share of a chip's memory the engine takes [default: the engine's]
    #[arg(long, visible_alias = "mem-fraction-static", value_name = "SHARE")]
    pub gpu_memory_utilization: Option<Fraction>,
    /// Target of the time to first token, for goodput
    #[arg(long, value_name = "TIME")]
    pub ttft_slo: Option<Seconds>,
    /// Target of the time per output token, for goodput
    #[arg(long, visible_alias = "itl-slo", value_name = "TIME")]
    pub tpot_slo: Option<Seconds>,
    #[command(flatten)]
    pub split: SplitArgs,
    /// Try no changes
    #[arg(long)]
    pub no_changes: bool,
    /// The curve over concurrency 1 to 1024 instead of one point
    #[arg(long, conflicts_with_all = ["concurrency", "request_rate", "max_load"])]
    pub sweep: bool,
    /// Save the curve as SVG (- writes to standard output)
    #[arg(long, value_name = "FILE", requires = "sweep")]
    pub svg: Option<PathBuf>,
    /// Save the curve as PNG
    #[arg(long, value_name = "FILE", requires = "sweep")]
    pub png: Option<PathBuf>,
    /// Save the points as CSV (- writes to standard output)
    #[arg(long, value_name = "FILE", requires = "sweep")]
    pub csv: Option<PathBuf>,
}

/// Parallel degrees.
#[derive(ClapArgs, Clone)]
pub struct DegreesArgs {
    /// Tensor parallel degree
    #[arg(long, visible_aliases = ["tensor-parallel-size", "tp-size"], value_name = "N")]
    pub tp: Option<u64>,
    /// Pipeline stages
    #[arg(long, visible_aliases = ["pipeline-parallel-size", "pp-size"], value_name = "N")]
    pub pp: Option<u64>,
    /// Data-parallel groups
    #[arg(long, visible_aliases = ["data-parallel-size", "dp-size"], value_name = "N")]
    pub dp: Option<u64>,
    /// Context parallel degree
    #[arg(long, visible_aliases = ["context-parallel-size", "cp-size"], value_name = "N")]
    pub cp: Option<u64>,
    /// Expert parallel degree
    #[arg(long, visible_aliases = ["expert-parallel-size", "ep-size"], value_name = "N")]
    pub ep: Option<u64>,
    /// Shards of each expert [default: what ep leaves of a stage's chips]
    #[arg(long, visible_aliases = ["expert-tensor-parallel-size", "moe-tp-size"], value_name = "N")]
    pub etp: Option<u64>,
    /// Redundant experts per layer
    #[arg(long, visible_aliases = ["num-redundant-experts", "ep-num-redundant-experts"], value_name = "N")]
    pub redundant_experts: Option<u64>,
    /// Chips of a tensor-parallel group that share the tokens of a cache instead of copying it (vLLM)
    #[arg(long, visible_alias = "decode-context-parallel-size", value_name = "N")]
    pub dcp: Option<u64>,
}

impl DegreesArgs {
    /// As a question takes them.
    pub fn request(&self) -> DegreesRequest {
        DegreesRequest {
            tp: self.tp,
            pp: self.pp,
            dp: self.dp,
            cp: self.cp,
            ep: self.ep,
            etp: self.etp,
            redundant: self.redundant_experts,
            dcp: self.dcp,
        }
    }
}

/// How the model is cut.
#[derive(ClapArgs, Clone)]
pub struct CutArgs {
    #[command(flatten)]
    pub degrees: DegreesArgs,
    /// Read the layout from a command line of another tool
    #[arg(long, value_name = "LINE", allow_hyphen_values = true, conflicts_with_all = ["tp", "pp", "dp", "cp", "ep", "etp", "redundant_experts", "dcp"])]
    pub flags: Option<String>,
    /// Whose command line: vllm, sglang, trtllm, megatron [default: the engine's]
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
}

/// Chips of their own for prompts.
#[derive(ClapArgs, Clone)]
pub struct SplitArgs {
    /// Compute prompts on chips of their own; the layout above is that of the decoding ones
    #[arg(long, visible_alias = "disaggregate")]
    pub disaggregated: bool,
    /// Chips that compute prompts [default: what balances]
    #[arg(long, value_name = "N", requires = "disaggregated")]
    pub prefill_chips: Option<u64>,
    /// Tensor parallel degree of a prefill instance [default: its layout is that of decoding]
    #[arg(long, value_name = "N", requires = "disaggregated")]
    pub prefill_tp: Option<u64>,
    /// Pipeline stages of a prefill instance
    #[arg(long, value_name = "N", requires = "disaggregated")]
    pub prefill_pp: Option<u64>,
    /// Data-parallel groups of a prefill instance
    #[arg(long, value_name = "N", requires = "disaggregated")]
    pub prefill_dp: Option<u64>,
    /// Expert parallel degree of a prefill instance
    #[arg(long, value_name = "N", requires = "disaggregated")]
    pub prefill_ep: Option<u64>,
}
