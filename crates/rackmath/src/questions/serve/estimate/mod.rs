//! What users of a server see: speed, waiting, throughput and cost, what binds, how far the limit is, and what would help.
//!
//! The question goes through the chapters `pass` (one forward pass, operator by operator) and `serving` (many requests that
//! share the passes). Everything is about means in a steady state; the answer says where that is not enough.

pub(crate) mod ask;
pub(crate) mod breakdown;
mod card;
mod changes;
mod ideas;
mod serve;
pub(crate) mod split;
pub mod sweep;
mod words;

pub use card::{Answer, Breakdown, Change, Piece, Pools, Problem, Range, Served, Slo};

use crate::Error;
use crate::layout::DegreesRequest;
use crate::setting::Setting;
use rackmath_spec::Catalog;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A model on a machine under an engine, and the load on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model and machine. Arithmetic, counting and overlap follow from the engine and must be left alone.
    pub setting: Setting,
    /// Degrees; a sensible layout is chosen for what is not given.
    pub degrees: DegreesRequest,
    /// A command line of vLLM, SGLang, TensorRT-LLM or Megatron to read the layout from instead.
    pub flags: Option<String>,
    /// Whose command line it is; the engine's own unless given.
    pub tool: Option<String>,
    /// The engine, with a version where it matters: `vllm`, `sglang`, `trtllm`, `vllm@0.19.0`, `ideal`.
    pub engine: String,
    /// Requests in flight over all groups; 64 unless another load is given.
    pub concurrency: Option<f64>,
    /// Requests per second at random, instead.
    pub rate_per_s: Option<f64>,
    /// As many requests as memory and the engine hold, instead.
    pub max_load: bool,
    /// Tokens of a prompt, mean.
    pub isl: f64,
    /// Tokens of an answer, mean.
    pub osl: f64,
    /// Share of a prompt found in the prefix cache, 0 to 1.
    pub prefix_hit: f64,
    /// Speculative decoding or multi-token prediction.
    pub speculation: Option<Speculation>,
    /// Most tokens in a pass, instead of the engine's.
    pub max_num_batched_tokens: Option<f64>,
    /// Most sequences that decode together, instead of the engine's.
    pub max_num_seqs: Option<f64>,
    /// Share of a chip's memory the engine takes, instead of its own.
    pub memory_utilisation: Option<f64>,
    /// Time to first token that is good enough.
    pub ttft_slo_ms: Option<f64>,
    /// Time per output token that is good enough.
    pub tpot_slo_ms: Option<f64>,
    /// Prompts on chips of their own.
    pub disaggregated: Option<Disaggregated>,
    /// Whether to try changes.
    pub changes: bool,
}

/// Tokens guessed ahead and checked together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Speculation {
    /// Tokens drafted for each sequence and step.
    pub drafts: f64,
    /// Tokens a step yields, the checked one included.
    pub accepted: Option<f64>,
    /// Chance that a draft is accepted when all before it were, instead.
    pub acceptance: Option<f64>,
}

impl Default for Speculation {
    fn default() -> Self {
        Self { drafts: 3.0, accepted: None, acceptance: None }
    }
}

/// Prompts are computed by one pool of chips and answers by another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Disaggregated {
    /// Chips that compute prompts; as many as balance the decoding ones unless given.
    pub prefill_chips: Option<u64>,
    /// The layout of one prefill instance; that of decoding unless given.
    pub prefill: DegreesRequest,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            setting: Setting::default(),
            degrees: DegreesRequest::default(),
            flags: None,
            tool: None,
            engine: "vllm".into(),
            concurrency: None,
            rate_per_s: None,
            max_load: false,
            isl: 1000.0,
            osl: 1000.0,
            prefix_hit: 0.0,
            speculation: None,
            max_num_batched_tokens: None,
            max_num_seqs: None,
            memory_utilisation: None,
            ttft_slo_ms: None,
            tpot_slo_ms: None,
            disaggregated: None,
            changes: true,
        }
    }
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let case = ask::Case::new(catalog, request)?;
    let prepared = serve::Prepared::new(&case.kernels, &case.ask)?;
    let outcome = serve::evaluate(&prepared, &case.ask.requests, case.ask.load);
    let mut answer = words::answer(&case, &prepared, &outcome);
    if request.changes {
        answer.changes = changes::best(catalog, &case, &prepared, &outcome);
    }
    Ok(answer)
}
