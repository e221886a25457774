//! Serving, request by request: what users meet in bursts, at percentiles, behind routers, when the cache is full.
//!
//! Each step of each replica is chosen as the engine chooses it and timed by the operator model; the chapters are in
//! `rackmath-sim`. Times are whole nanoseconds, and the same request gives the same bytes everywhere.

mod answer;
mod beside;
mod card;
mod compare;
mod flags;
mod fleet;
mod stage;
mod tiers;
mod trace;
mod work;

pub use card::*;
pub use flags::{CapacityPolicy, ChunkingPolicy, Flags, PrefetchPolicy, SchedulePolicy, Sglang, Trtllm, WritePolicy};
pub(crate) use flags::{longest, settings as of_engine};
pub(crate) use fleet::{link, staged, together};
pub(crate) use stage::{Comes, Pool, SEED, SETTLED, Stage};
pub use stage::{Percentiles, Times};
pub use tiers::{OfTier, Tiers, Which};
pub(crate) use work::{held, one_stage};

use crate::desk::prelude::*;
use crate::layout::DegreesRequest;
pub use rackmath_sim::cluster::Router;

/// A model on a machine under an engine, and the traffic it meets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model and machine. Arithmetic, counting and overlap follow from the engine and must be left alone.
    pub setting: Setting,
    /// Degrees; a sensible layout is chosen for what is not given.
    pub degrees: DegreesRequest,
    /// The engine, with a version where it matters: `vllm`, `vllm@0.19.0`, `sglang`, `trtllm`.
    #[schemars(extend("x-flag" = "engine backend"))]
    #[educe(Default = "vllm")]
    pub engine: String,
    /// When requests come and how long they are.
    pub traffic: Traffic,
    /// Requests of a trace instead.
    pub replay: Replayed,
    /// Classes of clients, each with traffic and limits of its own, instead: for world files.
    #[schemars(extend("x-flag" = false))]
    pub classes: Vec<Class>,
    /// Replicas and how requests are spread over them.
    pub fleet: Fleet,
    /// Memory below the chips' own that keeps caches.
    pub tiers: Tiers,
    /// What goes wrong, and what clients do about it.
    pub mishaps: Mishaps,
    /// Replicas that start and drain with the load.
    pub scaling: Scaling,
    /// Flags of vLLM, and those that every engine has.
    pub flags: Flags,
    /// Flags of SGLang.
    pub sglang: Sglang,
    /// Flags of TensorRT-LLM.
    pub trtllm: Trtllm,
    /// Time to first token that is good enough: of each request as `1s`, of so many of them as `p90=1s`.
    pub ttft_ms: Option<AtMost>,
    /// Time per output token that is good enough: of each request as `30ms`, of so many of them as `p99=50ms`.
    pub tpot_ms: Option<AtMost>,
    /// Time of a whole request that is good enough: of each, or of so many of them.
    pub e2e_ms: Option<AtMost>,
    /// Share of the requests that only warm up, in order of arrival.
    #[schemars(extend("x-unit" = "share", "x-none" = "0.1, nothing of a trace"))]
    pub warm_up: Option<f64>,
    /// Time of each request outside the engine, before its first token is seen: HTTP, tokenizer, messages.
    #[schemars(extend("x-none" = "the engine's"))]
    pub outside_ms: Option<f64>,
    /// Computes what the engine, the chip or the model's context do not allow, and says that it does not exist.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pretend: bool,
    /// Step by step instead of many steps at once: the same bytes, slowly.
    pub step_by_step: bool,
    /// What each request met as well.
    pub each: bool,
    /// Several values of one setting on the same requests, the first as the base: `router=round-robin,kv,least-loaded`.
    pub compare: Option<String>,
    /// Steps and requests of a stretch of the run as well, from and to in seconds: `10..20`.
    pub window: Option<String>,
}

/// Requests by a law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Traffic {
    /// Requests per second.
    #[schemars(extend("x-none" = "1"))]
    pub rate_per_s: Option<f64>,
    /// People who each wait for an answer, think, and ask again, instead.
    pub users: Option<u64>,
    /// Time to think before the next request or turn, mean.
    pub think_s: f64,
    /// Variation of the gaps between requests: 0 even, 1 at random, 2 to 4 in bursts.
    #[educe(Default = 1.0)]
    pub cv: f64,
    /// A rate that swings by such a share around its mean.
    #[schemars(extend("x-unit" = "share"))]
    pub swing: f64,
    /// So many times the rate in a spike.
    pub spike: Option<f64>,
    /// How long a swing lasts, or the time between spikes.
    #[educe(Default = 86_400.0)]
    pub period_s: f64,
    /// How long a spike lasts.
    #[educe(Default = 60.0)]
    pub spike_length_s: f64,
    /// Tokens of a prompt: all alike, unless a spread is given.
    #[schemars(extend("x-flag" = "isl input-len random-input-len"))]
    #[educe(Default = 1000.0)]
    pub isl: f64,
    /// Tokens of an answer.
    #[schemars(extend("x-flag" = "osl output-len random-output-len"))]
    #[educe(Default = 250.0)]
    pub osl: f64,
    /// Standard deviation of the logarithm of prompts' lengths: drawn log-normal with the mean above.
    pub isl_sigma: f64,
    /// The same of answers.
    pub osl_sigma: f64,
    /// Different prefixes that prompts begin with, by popularity 1, 1/2, 1/3 and so on.
    pub prefixes: u64,
    /// Tokens of such a prefix, before the prompt's own.
    pub prefix_tokens: f64,
    /// Turns of a conversation: each prompt holds all before it.
    #[educe(Default = 1)]
    pub turns: u64,
    /// Requests in all.
    #[educe(Default = 10_000)]
    pub requests: u64,
    /// Seed of everything drawn.
    #[educe(Default = 42)]
    pub seed: u64,
}

/// A trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Replayed {
    /// Name of the trace, for messages.
    pub trace_name: String,
    /// A trace: Mooncake JSON lines, or CSV with columns for time, prompt, answer and blocks, or for session, time to think,
    /// prompt and answer.
    #[schemars(extend("x-flag" = "trace", "x-file" = "trace"))]
    pub trace_text: Option<String>,
    /// Times as fast.
    #[educe(Default = 1.0)]
    pub speed_up: f64,
    /// Only so many of its requests, the first.
    pub first: Option<u64>,
    /// Spreads requests with the same time evenly until the next time: traces are often logged in batches.
    pub spread: bool,
}

/// Replicas behind a router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Fleet {
    /// Replicas of the deployment, on each machine of a fleet joined by `+`.
    #[educe(Default = 1)]
    pub replicas: u64,
    /// Replicas beside them that only compute prompts and send their caches on; of two machines joined by `+`, on the first.
    pub prefill_replicas: u64,
    /// How a replica is chosen.
    #[educe(Default = Router::RoundRobin)]
    pub router: Router,
    /// What a found block is worth to the KV-aware router, in blocks to compute.
    #[schemars(extend("x-none" = "the router's"))]
    pub overlap_credit: Option<f64>,
    /// The router sees the replicas as they were so long ago, at most.
    pub stale_ms: f64,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Mishaps {
    /// A replica refuses what comes while so many wait there.
    #[schemars(extend("x-flag" = "max-queued-requests max-num-queued-reqs", "x-none" = "none is refused"))]
    pub max_queued_requests: Option<u64>,
    /// A client gives up after so long, all attempts together; its request has failed.
    #[schemars(extend("x-none" = "clients wait"))]
    pub timeout_s: Option<f64>,
    /// What was refused or lost is sent again so often.
    pub retries: u64,
    /// Pause before the first retry, drawn half to one and a half times as long; doubled for each further one.
    #[educe(Default = 1000.0)]
    pub backoff_ms: f64,
    /// Mean time a replica lives, exponential; what is inside when it dies is lost.
    #[schemars(extend("x-none" = "none dies"))]
    pub mtbf_s: Option<f64>,
    /// Time until a dead replica is back, its cache empty.
    #[educe(Default = 120.0)]
    pub restart_s: f64,
    /// What happens to which replica when: for world files.
    #[schemars(extend("x-flag" = false))]
    pub script: Vec<Scripted>,
}

/// What happens to a replica at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scripted {
    /// When.
    pub at_s: f64,
    /// Which, counted from 0; replicas for prompts come first.
    pub replica: u64,
    /// What.
    pub what: Happens,
}

/// What a script makes of a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Happens {
    /// It dies, and is back after the restart time.
    #[default]
    Fail,
    /// It takes no more requests.
    Drain,
    /// It takes requests again.
    Start,
}

/// A controller that starts and drains replicas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Scaling {
    /// Most replicas: a controller starts and drains them, from as many as are given.
    #[schemars(extend("x-none" = "no controller"))]
    pub max_replicas: Option<u64>,
    /// Requests inside a replica that it aims at.
    #[educe(Default = 32.0)]
    pub scale_target: f64,
    /// It looks at the mean of such a time.
    #[educe(Default = 15.0)]
    pub scale_window_s: f64,
    /// It drains when it has changed nothing for so long.
    #[educe(Default = 300.0)]
    pub scale_cooldown_s: f64,
    /// Time to start a replica before its weights are loaded.
    #[educe(Default = 60.0)]
    pub start_s: f64,
    /// Rate at which a replica loads its weights.
    #[educe(Default = 5.0)]
    pub load_gb_per_s: f64,
}

/// Clients that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Class {
    /// What it is called.
    pub name: String,
    /// Requests per second.
    #[educe(Default = 1.0)]
    pub rate_per_s: f64,
    /// Variation of the gaps between requests.
    #[educe(Default = 1.0)]
    pub cv: f64,
    /// Tokens of a prompt.
    #[educe(Default = 1000.0)]
    pub isl: f64,
    /// Tokens of an answer.
    #[educe(Default = 250.0)]
    pub osl: f64,
    /// Standard deviation of the logarithm of prompts' lengths.
    pub isl_sigma: f64,
    /// The same of answers.
    pub osl_sigma: f64,
    /// Different prefixes that prompts begin with.
    pub prefixes: u64,
    /// Tokens of such a prefix.
    pub prefix_tokens: f64,
    /// Turns of a conversation.
    #[educe(Default = 1)]
    pub turns: u64,
    /// Time to think before the next turn, mean.
    pub think_s: f64,
    /// Lower goes first.
    pub priority: i32,
    /// Time to first token that is good enough; as for all unless given.
    pub ttft_ms: Option<AtMost>,
    /// Time per output token that is good enough; as for all unless given.
    pub tpot_ms: Option<AtMost>,
    /// Time of a whole request that is good enough; as for all unless given.
    pub e2e_ms: Option<AtMost>,
}

/// Answers, as long as it is wanted.
pub fn answer_on(catalog: &Catalog, request: &Request, effort: &Effort) -> Result<Answer, Error> {
    beside::refused(request)?;
    if let Some(said) = &request.compare {
        return compare::answer(catalog, request, said, effort);
    }
    if let Some(refused) = fleet::refused(catalog, request)? {
        return Ok(refused);
    }
    let world = work::World::new(catalog, request)?;
    let run = world.run(effort)?;
    Ok(answer::answer(&world, run))
}
