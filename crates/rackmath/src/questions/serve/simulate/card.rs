//! What a run says, as plain data.

use super::{OfTier, Router};
use crate::desk::evidence::Evidence;
use crate::desk::prelude::*;
use rackmath_sim::tally::{Failure, Outcome, Why};

/// What users of a server met.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Educe)]
#[educe(Default)]
pub struct Answer {
    /// The model's name.
    pub model: String,
    /// The machine's name.
    pub system: String,
    /// The engine's name.
    pub engine: String,
    /// The layout of a replica in short.
    pub layout: String,
    /// Whether it was chosen here.
    pub layout_chosen: bool,
    /// Replicas; with a controller, the most it starts.
    pub replicas: u64,
    /// The fewest that a controller keeps, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_replicas: Option<u64>,
    /// Replicas beside them that only compute prompts.
    pub prefill_replicas: u64,
    /// How one is chosen.
    #[educe(Default = Router::RoundRobin)]
    pub router: Router,
    /// Chips in all; with a controller, of the most replicas it starts.
    pub chips: u64,
    /// What kind of prices the dollars are, where prices are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub price_basis: Vec<String>,
    /// What the times of its steps rest on; nothing for a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// What came.
    pub traffic: Remark,
    /// What to make of it.
    pub verdict: Remark,
    /// What to be careful about.
    pub warnings: Vec<Remark>,
    /// Requests that count, and those before them that only warmed up.
    pub requests: u64,
    /// Requests before those that count.
    pub warm_up: u64,
    /// Requests that never ended.
    pub unfinished: u64,
    /// Seconds from the first arrival that counts to the last end.
    pub span_s: f64,
    /// Percentiles by metric.
    pub metrics: Vec<Metric>,
    /// By class of clients, where there are several.
    pub classes: Vec<OfClass>,
    /// What went wrong and what was done about it, where something could.
    pub happened: Option<Happened>,
    /// Requests that met all limits, where some were given; those that failed did not.
    pub goodput: Option<Goodput>,
    /// What the replicas did.
    pub served: Served,
    /// What memory below the chips' own did, the nearest first, where there is some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<OfTier>,
    /// Where the time of a request goes, on average.
    pub parts: Vec<Part>,
    /// The requests that took longest, and why.
    pub worst: Vec<Waited>,
    /// What each request met that was answered, where asked for.
    pub each: Vec<Waited>,
    /// Those that were not, and why, where each is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
    /// Requests running and waiting over time.
    #[educe(Default = nothing())]
    pub figure: Figure,
    /// Output tokens per second over time.
    #[educe(Default = nothing())]
    pub throughput: Figure,
    /// Other ways to serve the same requests, where asked for.
    pub compared: Option<Compared>,
    /// Steps and requests of a stretch of time, where asked for.
    pub window: Option<Window>,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
}

/// The chart of a run that was not made.
fn nothing() -> Figure {
    let axes = (Axis::linear("seconds", Unit::Seconds), Axis::linear("requests", Unit::Count));
    Figure::of(says("simulated_figure"), says("simulated_figure_sub"), axes, None)
}

/// Values of one setting on the same requests.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Compared {
    /// The setting.
    pub what: String,
    /// Whether requests come at the same times: not where they wait for answers.
    pub same_times: bool,
    /// One for each value; the first is the base.
    pub variants: Vec<Variant>,
    /// What to make of it.
    pub verdict: Remark,
}

/// What one value came to.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Variant {
    /// The value.
    pub value: String,
    /// Percentiles by metric.
    pub metrics: Vec<Metric>,
    /// Output tokens per second.
    pub output_tok_s: f64,
    /// Share of prompt tokens found in the cache.
    pub cached: f64,
    /// Share of the requests that met all limits, where some were given.
    pub goodput: Option<f64>,
    /// More arrives than is served: its percentiles only say how long it ran.
    pub queue_grows: bool,
    /// Share of the requests that were never answered.
    pub failed: f64,
    /// By how much it differs from the base.
    pub differences: Vec<Difference>,
}

/// A percentile of batches of requests less that of the same requests under the base.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// Which.
    pub metric: What,
    /// Of which percentile.
    pub percentile: f64,
    /// Mean over batches.
    pub ms: f64,
    /// Half width of its 95 % interval; none of too few batches.
    pub plus_minus_ms: Option<f64>,
}

impl Difference {
    /// Whether zero is outside its interval.
    pub fn sure(&self) -> bool {
        self.plus_minus_ms.is_some_and(|w| self.ms.abs() > w)
    }
}

/// A stretch of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Window {
    /// Its start.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// Steps that began in it; steps of decodes alone that follow each other are one.
    pub steps: Vec<Step>,
    /// Requests that were inside.
    pub requests: Vec<Waited>,
    /// Steps and requests left out because there were too many.
    pub left_out: u64,
}

/// A step, or several that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// Where.
    pub replica: u32,
    /// Its start.
    pub start_s: f64,
    /// Its end.
    pub end_s: f64,
    /// Sequences that decode.
    pub decodes: u32,
    /// Tokens of prompts.
    pub prompt_tokens: u32,
}

/// A metric's percentiles, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Metric {
    /// Which.
    pub metric: What,
    /// Mean.
    pub mean_ms: f64,
    /// Half of the values are below it.
    pub p50_ms: f64,
    /// 90 % are below it.
    pub p90_ms: f64,
    /// 95 % are below it.
    pub p95_ms: f64,
    /// 99 % are below it.
    pub p99_ms: f64,
    /// 99.9 % are below it.
    pub p999_ms: f64,
    /// Half width of the 95 % interval of the median, from batches of requests.
    pub p50_plus_minus_ms: Option<f64>,
    /// The same of the 90th percentile.
    pub p90_plus_minus_ms: Option<f64>,
    /// The same of the 99th percentile.
    pub p99_plus_minus_ms: Option<f64>,
}

/// What is measured of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// From arrival until it is first scheduled.
    Queue,
    /// From arrival to the first token.
    Ttft,
    /// Time per token after the first, of each request.
    Tpot,
    /// Gaps between tokens, of all requests together.
    Itl,
    /// From arrival to the last token.
    E2e,
}

/// A limit on a percentile; a request that was never answered is later than any.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Held {
    /// On which time.
    pub metric: What,
    /// Of which percentile.
    pub percentile: f64,
    /// The limit.
    pub limit_ms: f64,
    /// What it came to; none where more failed than the percentile leaves.
    pub ms: Option<f64>,
    /// Whether it holds; never where the queue grows.
    pub holds: bool,
}

/// Requests that met their limits.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Goodput {
    /// Time to first token that is good enough.
    pub ttft_ms: Option<f64>,
    /// Time per output token that is good enough.
    pub tpot_ms: Option<f64>,
    /// Time of a whole request that is good enough.
    pub e2e_ms: Option<f64>,
    /// Share of the requests that met all.
    pub share: f64,
    /// Such requests per second.
    pub requests_per_s: f64,
    /// Limits on percentiles, where some were given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Held>,
}

/// What clients of one class met.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OfClass {
    /// Its name.
    pub name: String,
    /// Requests that count.
    pub requests: u64,
    /// Requests that were given up.
    pub failed: u64,
    /// Requests per second.
    pub requests_per_s: f64,
    /// Output tokens per second.
    pub output_tok_s: f64,
    /// Requests that met its limits, where it has some.
    pub goodput: Option<Goodput>,
    /// Percentiles by metric.
    pub metrics: Vec<Metric>,
}

/// What happened beside requests and steps. All that arrived is done, failed or still inside.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Happened {
    /// Requests that came.
    pub arrived: u64,
    /// Requests never done.
    pub failed: u64,
    /// Of these, given up by their clients.
    pub timed_out: u64,
    /// Attempts refused by a full queue, or because no replica took requests.
    pub refused: u64,
    /// Attempts lost with a replica.
    pub lost: u64,
    /// Attempts after the first.
    pub retried: u64,
    /// Replicas that died.
    pub deaths: u64,
    /// Replicas started by the controller.
    pub starts: u64,
    /// Replicas drained.
    pub drains: u64,
    /// Replicas that were paid for, on average: those that take requests, and those that start, drain or come back.
    pub replicas_paid: f64,
}

/// What the replicas did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Served {
    /// Requests per second.
    pub requests_per_s: f64,
    /// Output tokens per second.
    pub output_tok_s: f64,
    /// Output tokens per second and chip; with a controller, and chip paid for.
    pub output_tok_s_per_chip: f64,
    /// Share of the time in which a replica works.
    pub busy: f64,
    /// Share of that time in steps with prompts.
    pub with_prompts: f64,
    /// Steps.
    pub steps: u64,
    /// Share of the time of steps in which an attention group has no work and steps along with the others of its replica.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dummy: Option<f64>,
    /// Share of prompt tokens found in the cache.
    pub cached: f64,
    /// Times a request lost its blocks.
    pub preemptions: u64,
    /// Tokens computed again for that.
    pub recomputed_tokens: u64,
    /// Most blocks of the cache in use, as a share.
    pub cache_peak: f64,
    /// Dollars per million output tokens, all dollars on them, where a price is known.
    pub usd_per_mtok_output: Option<f64>,
}

/// A part of the time of requests.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Part {
    /// Which.
    pub what: Waits,
    /// Mean, in milliseconds.
    pub ms: f64,
    /// Share of the whole.
    pub share: f64,
}

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Waits {
    /// To be scheduled.
    Queue,
    /// Its prompt, and whoever shares its steps.
    Prompt,
    /// Steps of decodes alone.
    Decode,
    /// Steps that carry prompts of others.
    OthersPrompts,
    /// Evicted, and computed again.
    Evicted,
    /// Its cache on its way between pools.
    Transfer,
    /// Outside the engine: HTTP, tokenizer, messages between processes.
    Outside,
    /// Refused or lost, and until it was sent again.
    Retried,
    /// Its cache from memory below the chips' own.
    Fetch,
}

/// What one request met; its parts add up to the whole.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Waited {
    /// Its number in order of arrival.
    pub request: u64,
    /// Where it ran.
    pub replica: u32,
    /// When it came.
    pub arrival_s: f64,
    /// Tokens of its prompt.
    pub prompt: u32,
    /// Of these, found in the cache.
    pub cached: u32,
    /// Of these, fetched from memory below the chips' own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetched: Option<u32>,
    /// Tokens of its answer.
    pub output: u32,
    /// Until it was scheduled.
    pub queue_ms: f64,
    /// Until what it fetches has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetch_ms: Option<f64>,
    /// From then to its first token.
    pub prompt_ms: f64,
    /// In steps of decodes alone.
    pub decode_ms: f64,
    /// In steps with prompts of others.
    pub others_prompts_ms: f64,
    /// Without a token because it was evicted.
    pub evicted_ms: f64,
    /// Between pools.
    pub transfer_ms: f64,
    /// Outside the engine.
    pub outside_ms: f64,
    /// In attempts that were refused or lost, and until the last was sent.
    pub retried_ms: f64,
    /// Time to first token.
    pub ttft_ms: f64,
    /// Time per token after the first.
    pub tpot_ms: Option<f64>,
    /// All of it.
    pub e2e_ms: f64,
    /// Times it was evicted.
    pub preemptions: u32,
}

/// Why a request was never answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Its client gave up.
    TimedOut,
    /// A full queue, or no replica that takes requests, refused it once too often.
    Refused,
    /// It was lost with a replica once too often.
    Lost,
}

/// A request that was never answered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Failed {
    /// Its number in order of arrival.
    pub request: u64,
    /// When it came.
    pub arrival_s: f64,
    /// Tokens of its prompt.
    pub prompt: u32,
    /// Tokens of the answer it would have got.
    pub output: u32,
    /// Times it was sent.
    pub attempts: u32,
    /// From its arrival until it was given up.
    pub after_ms: f64,
    /// Why.
    pub why: Reason,
}

impl From<&Failure> for Failed {
    fn from(f: &Failure) -> Self {
        Self {
            request: f.id,
            arrival_s: f.arrival as f64 / 1e9,
            prompt: f.prompt,
            output: f.output,
            attempts: f.attempts,
            after_ms: (f.at - f.arrival) as f64 / 1e6,
            why: match f.why {
                Why::TimedOut => Reason::TimedOut,
                Why::Refused => Reason::Refused,
                Why::Lost => Reason::Lost,
            },
        }
    }
}

impl From<&Outcome> for Waited {
    fn from(o: &Outcome) -> Self {
        let ms = |ns: u64| ns as f64 / 1e6;
        Self {
            request: o.id,
            replica: o.replica,
            arrival_s: o.arrival as f64 / 1e9,
            prompt: o.prompt,
            cached: o.cached,
            fetched: (o.fetched > 0).then_some(o.fetched),
            output: o.output,
            queue_ms: ms(o.queue),
            fetch_ms: (o.fetched > 0).then_some(ms(o.fetch)),
            prompt_ms: ms(o.prefill),
            decode_ms: ms(o.decode),
            others_prompts_ms: ms(o.stalled),
            evicted_ms: ms(o.evicted),
            transfer_ms: ms(o.transfer),
            outside_ms: ms(o.outside),
            retried_ms: ms(o.retried),
            ttft_ms: ms(o.ttft()),
            tpot_ms: o.tpot().map(|t| t / 1e6),
            e2e_ms: ms(o.e2e()),
            preemptions: o.preempted,
        }
    }
}
