//! What users of a server see: speed, waiting, throughput and cost, what binds, how far the limit is, and what would help.
//!
//! The question goes through the chapters `pass` (one forward pass, operator by operator) and `serving` (many requests that
//! share the passes): means in a steady state. At a rate, and where limits are on percentiles, waiting is part of the answer:
//! the deployment is simulated, request by request.

mod adapters;
mod beside;
mod changes;
mod drafter;
mod flags;
mod met;
mod solve;
mod spread;
pub mod sweep;
mod words;
pub(crate) mod work;

pub use adapters::{LoraCard, Loras};
pub use beside::{Brought, Embedded, EncoderPool};
pub use drafter::{Drafts, Speculated, Speculation};
pub(crate) use flags::obeyed;
pub use solve::{MachineCard, Point, Seek, Solved, Target, Unknown};
pub(crate) use words::{assumption, breakdown};

use crate::desk::evidence::Evidence;
use crate::desk::prelude::*;
use crate::layout::DegreesRequest;
use crate::offload::{OffloadCard, Offloaded};
use crate::setting::Setting;
use crate::simulate::Percentiles;
use rackmath_spec::file::flags::Tool;

/// A model on a machine under an engine, and the load on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model and machine. Arithmetic, counting and overlap follow from the engine and must be left alone.
    pub setting: Setting,
    /// Degrees; a sensible layout is chosen for what is not given.
    pub degrees: DegreesRequest,
    /// A command line or flags of vLLM, SGLang, TensorRT-LLM or llama.cpp: layout, formats, schedule and memory are obeyed, and
    /// what is not is said; of Megatron the layout alone.
    #[schemars(extend("x-hyphen" = true, "x-whole" = true))]
    pub flags: Option<String>,
    /// Whose command line it is; the engine follows it unless another is said.
    #[schemars(transform = closed::<Tool>, extend("x-also" = ["tensorrt-llm", "tensorrt_llm", "tensorrtllm", "trt-llm", "trt_llm", "trt", "megatron-lm", "megatronlm", "nemo"]))]
    pub tool: Option<String>,
    /// The engine, with a version where it matters: `vllm`, `sglang`, `trtllm`, `vllm@0.19.0`, `ideal`; `auto` is llama.cpp for
    /// GGUF files and on Apple's chips, and vLLM elsewhere.
    #[schemars(extend("x-flag" = "engine backend"))]
    #[educe(Default = "auto")]
    pub engine: String,
    /// Requests in flight over all groups.
    #[schemars(extend("x-flag" = "concurrency max-concurrency", "x-none" = "64"))]
    pub concurrency: Option<f64>,
    /// Requests per second at random, instead.
    #[schemars(extend("x-old" = "request-rate"))]
    pub rate_per_s: Option<f64>,
    /// As many requests as memory and the engine hold, instead.
    pub max_load: bool,
    /// Users as a load, and what is looked for.
    #[serde(skip_serializing_if = "is_default")]
    pub seek: Seek,
    /// Tokens of a prompt, mean.
    #[schemars(extend("x-flag" = "isl input-len random-input-len"))]
    #[educe(Default = 1000.0)]
    pub isl: f64,
    /// Tokens of an answer, mean.
    #[schemars(extend("x-flag" = "osl output-len random-output-len"))]
    #[educe(Default = 1000.0)]
    pub osl: f64,
    /// Share of a prompt found in the prefix cache, 0 to 1.
    #[schemars(extend("x-unit" = "share"))]
    pub prefix_hit: f64,
    /// Speculative decoding or multi-token prediction.
    pub speculation: Option<Speculation>,
    /// Low-rank adapters (LoRA) served beside the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loras: Option<Loras>,
    /// Most tokens in a pass.
    #[schemars(extend("x-flag" = "max-num-batched-tokens max-num-tokens chunked-prefill-size", "x-none" = "the engine's"))]
    pub max_num_batched_tokens: Option<f64>,
    /// Most sequences that decode together, per group.
    #[schemars(extend("x-flag" = "max-num-seqs max-batch-size max-running-requests", "x-none" = "the engine's"))]
    pub max_num_seqs: Option<f64>,
    /// Share of a chip's memory the engine takes.
    #[schemars(extend("x-flag" = "gpu-memory-utilization mem-fraction-static", "x-unit" = "share", "x-none" = "the engine's"))]
    pub memory_utilisation: Option<f64>,
    /// Captures no graphs: the host launches every kernel.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("x-flag" = "enforce-eager disable-cuda-graph"))]
    pub enforce_eager: bool,
    /// Time to first token that is good enough: a mean as `1s`, a percentile as `p90=1s`.
    #[serde(alias = "ttft_slo_ms")]
    #[schemars(extend("x-old" = "ttft-slo"))]
    pub ttft_ms: Option<AtMost>,
    /// Time per output token that is good enough: a mean as `30ms`, a percentile as `p99=50ms`.
    #[serde(alias = "tpot_slo_ms")]
    #[schemars(extend("x-old" = "tpot-slo itl-slo"))]
    pub tpot_ms: Option<AtMost>,
    /// Time of a whole request that is good enough: a mean or a percentile.
    pub e2e_ms: Option<AtMost>,
    /// Prompts on chips of their own; the layout above is that of the decoding ones.
    #[schemars(extend("x-flag" = "disaggregated disaggregate"))]
    pub disaggregated: Option<Disaggregated>,
    /// What of the model lies in the host's memory: layers, experts or bytes.
    pub offload: Offloaded,
    /// Pictures, frames and sound of each request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<crate::media::Media>,
    /// Whether a vector or a score is wanted instead of an answer, as from embedding models; so it is with `osl` 0.
    #[schemars(extend("x-flag" = "embed embedding rerank"))]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub embed: bool,
    /// Computes what the engine, the chip or the model's context do not allow, and says that it does not exist.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pretend: bool,
    /// Whether to try changes.
    #[educe(Default = true)]
    pub changes: bool,
}

impl Request {
    /// How full a server is that takes all it can: within limits on its times, or without any.
    pub(crate) fn filled(&self) -> &'static str {
        let limited = [self.ttft_ms, self.tpot_ms, self.e2e_ms].iter().any(Option::is_some);
        if limited { "within" } else { "unlimited" }
    }
}

/// Prompts are computed by one pool of chips and answers by another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Disaggregated {
    /// Chips that compute prompts; as many as balance the decoding ones unless given.
    #[schemars(extend("x-none" = "what balances"))]
    pub prefill_chips: Option<u64>,
    /// The layout of one prefill instance; that of decoding unless given.
    #[schemars(extend("x-prefix" = "prefill"))]
    pub prefill: DegreesRequest,
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    answer_on(catalog, request, &Effort::default())
}

/// Answers, as long as it is wanted.
pub fn answer_on(catalog: &Catalog, request: &Request, effort: &Effort) -> Result<Answer, Error> {
    answered(catalog, request, None, effort)
}

/// The same at a load that was solved for.
fn answered(
    catalog: &Catalog,
    request: &Request,
    sought: Option<solve::Unknown>,
    effort: &Effort,
) -> Result<Answer, Error> {
    if let Some((asked, said)) = flags::obeyed(catalog, request)? {
        let mut answer = answered(catalog, &asked, sought, effort)?;
        answer.assumptions.splice(0..0, said);
        return Ok(answer);
    }
    if let Some(unknown) = request.seek.solve {
        return solve::answer(catalog, request, unknown, effort);
    }
    let mut case = work::Case::new(catalog, request)?;
    case.sought = sought;
    let serving = case.ready(&case.ask)?;
    case.ask.settle(&serving);
    let outcome = case.under(&serving, &case.ask.requests, case.ask.load);
    let barred = case.standing.bars(request.pretend);
    let met = if barred { met::Met::Unasked } else { case.met(&case.ask, &serving, &outcome, effort)? };
    let outcome = words::saturated(&case, &serving, &outcome, &met);
    let holds = case.holds(&serving, &outcome, &met, effort)?;
    let mut answer = words::answer(&case, &serving, &outcome, &met, holds);
    answer.loras = if barred { None } else { adapters::card(catalog, &case, &serving, &outcome) };
    if case.embeds {
        return Ok(beside::embedded(&case, &serving, &outcome, &met, answer));
    }
    if answer.served.is_some() {
        answer.speculation = case.speculated(&serving, &outcome, case.ask.load)?;
    }
    if request.changes && !barred {
        answer.changes = changes::best(catalog, &case, &serving, (&outcome, &met), effort)?;
    }
    Ok(answer)
}

/// What to expect of a deployment.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model's name.
    pub model: String,
    /// The machine's name.
    pub system: String,
    /// The engine's name.
    pub engine: String,
    /// Its family in the catalogue.
    pub engine_id: String,
    /// The layout in short.
    pub layout: String,
    /// Whether it was chosen here.
    pub layout_chosen: bool,
    /// Chips it uses, both pools together.
    pub chips: u64,
    /// Chips of the machine.
    pub chips_available: u64,
    /// Weight formats in words.
    pub weights: Remark,
    /// Cache format in words.
    pub kv: Remark,
    /// The load in words.
    pub load: Remark,
    /// Tokens of a prompt.
    pub isl: f64,
    /// Tokens of an answer.
    pub osl: f64,
    /// Says that it does not exist, where something is computed that no engine runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pretended: Option<Remark>,
    /// What the numbers rest on; nothing for a bound, or where nothing is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The largest load, the longest prompt or the cheapest machine that meets the targets, where one is looked for: all else
    /// is what is met there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solved: Option<Solved>,
    /// What is served; nothing when the model does not fit, or the engine does not run it.
    pub served: Option<Served>,
    /// What tokens guessed ahead do to it, where any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speculation: Option<Speculated>,
    /// What stands in the way, if anything does.
    pub problem: Option<Problem>,
    /// Pictures and sound, where requests bring any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<Brought>,
    /// Vectors per second, where no answer is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding: Option<Embedded>,
    /// The two pools, when prompts have chips of their own.
    pub pools: Option<Pools>,
    /// What lies in the host's memory, where anything does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload: Option<OffloadCard>,
    /// What adapters hold and cost, where any are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loras: Option<LoraCard>,
    /// Single changes that would help most, best first.
    pub changes: Vec<Change>,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
    /// Where they come from.
    pub sources: Vec<Remark>,
}

/// A prediction with its 80 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Range {
    /// The prediction.
    pub value: f64,
    /// One measurement in ten is expected below.
    pub low: f64,
    /// One in ten above.
    pub high: f64,
}

/// Speed, throughput and cost.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Served {
    /// Time per output token after the first.
    pub tpot_ms: Range,
    /// Time to the first token, waiting included; nothing where the queue grows without end, as it does.
    pub ttft_ms: Option<Range>,
    /// The same without waiting for memory.
    pub ttft_unqueued_ms: Option<Range>,
    /// Waiting for memory; where requests are simulated, until they are first scheduled.
    pub queue_ms: Option<Range>,
    /// From arrival to the last token.
    pub e2e_ms: Option<Range>,
    /// Output tokens per second and chip.
    pub output_tok_s_per_chip: Range,
    /// Output tokens per second of one user.
    pub output_tok_s_per_user: Range,
    /// Output tokens per second of the deployment.
    pub output_tok_s: Range,
    /// Requests per second of the deployment.
    pub requests_per_s: Range,
    /// Whether targets are met, where any were given.
    pub slo: Option<Slo>,
    /// What users meet, request by request: at a rate, or where targets are percentiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentiles: Option<Percentiles>,
    /// Sequences that decode, over all groups.
    pub decoding: f64,
    /// Sequences that hold a cache.
    pub running: f64,
    /// Requests that wait for memory.
    pub waiting: f64,
    /// Sequences memory holds.
    pub room: f64,
    /// Share of passes that carry prompt tokens.
    pub prompt_share: f64,
    /// Prompt tokens in such a pass, of one group.
    pub prompt_tokens: f64,
    /// Dollars per million output tokens: the time that decoding takes.
    pub usd_per_mtok_output: Option<f64>,
    /// Dollars per million prompt tokens: the time that prompts take.
    pub usd_per_mtok_input: Option<f64>,
    /// Where the time of a step goes.
    pub step: Breakdown,
    /// What binds, in words.
    pub binding: Remark,
    /// The distance from the limit, in a sentence.
    pub reading: Remark,
}

/// Targets and whether they are met.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Slo {
    /// Target of the time to first token.
    pub ttft_ms: Option<f64>,
    /// Target of the time per output token.
    pub tpot_ms: Option<f64>,
    /// Target of a whole request.
    pub e2e_ms: Option<f64>,
    /// Whether they are met: by the means, or by the percentiles they are on.
    pub met: bool,
    /// Share of requests that meet all of them; all or none where only means are known.
    pub goodput_share: f64,
    /// Requests per second that count.
    pub goodput_requests_per_s: f64,
    /// In words.
    pub verdict: Remark,
}

/// The mean step: passes with and without prompt tokens in their proportion.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Breakdown {
    /// Its time.
    pub step_ms: f64,
    /// A pass that only decodes.
    pub decode_ms: f64,
    /// A pass with prompt tokens.
    pub mixed_ms: f64,
    /// The roofline of the mean step: dense peak, full bandwidth, both at once, no links.
    pub ideal_ms: f64,
    /// The roofline as a share of the step.
    pub of_limit: f64,
    /// By part; they add up to the step.
    pub parts: Vec<Piece>,
    /// By what limits; they add up to the step.
    pub limits: Vec<Piece>,
    /// What lies between the roofline and the step, largest first.
    pub losses: Vec<Piece>,
}

/// A share of the step.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Piece {
    /// What.
    pub what: Remark,
    /// How long.
    pub ms: f64,
    /// As a share of the step.
    pub share: f64,
}

/// What stands in the way.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Problem {
    /// In words.
    pub what: Remark,
    /// Missing bytes on the fullest chip.
    pub missing_bytes: Option<f64>,
    /// The most requests per second that are served, always full.
    pub most_requests_per_s: Option<f64>,
    /// Requests per second that hold, by simulation: the queue does not grow.
    pub holds_requests_per_s: Option<f64>,
    /// The first change that would help.
    pub first_change: Option<Remark>,
}

/// Prompts and answers on chips of their own.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Pools {
    /// The layout of a prefill instance.
    pub prefill_layout: String,
    /// Prefill instances.
    pub prefill_instances: f64,
    /// Chips of all of them.
    pub prefill_chips: u64,
    /// Chips that decode.
    pub decode_chips: u64,
    /// Prefill chips to decode chips where both are exactly busy.
    pub balanced_ratio: f64,
    /// Share of the time that prefill chips work.
    pub prefill_busy: f64,
    /// Computing a prompt.
    pub prefill_ms: f64,
    /// Waiting for it.
    pub prefill_wait_ms: f64,
    /// Cache of a prompt.
    pub transfer_bytes: f64,
    /// Sending it.
    pub transfer_ms: f64,
    /// Over which network.
    pub network: Remark,
}

/// One change and what it would do.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// What to change.
    pub what: Remark,
    /// By what it is judged.
    pub judged_by: Remark,
    /// How much better, as a share of today's value; nothing where nothing is served today.
    pub gain: Option<f64>,
    /// The factor by which predictions of different engines or chips may err against each other, where the gain is smaller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apart: Option<f64>,
    /// Whether it meets targets that are missed today, or serves where nothing is served today.
    pub rescues: bool,
    /// Chips it uses.
    pub chips: u64,
    /// Time per output token then.
    pub tpot_ms: f64,
    /// Time to the first token then.
    pub ttft_ms: f64,
    /// Output tokens per second and chip then.
    pub output_tok_s_per_chip: f64,
    /// Dollars per million output tokens then: the time that decoding takes.
    pub usd_per_mtok_output: Option<f64>,
    /// Dollars per million input tokens then: the time that prompts take.
    pub usd_per_mtok_input: Option<f64>,
    /// Dollars per million output tokens then, their prompts included.
    pub usd_per_mtok_with_prompts: Option<f64>,
    /// What it asks for beside itself.
    pub caution: Option<Remark>,
}
