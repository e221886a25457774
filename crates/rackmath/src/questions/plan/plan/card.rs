//! The answer as plain data.

use super::demand::{LengthPercentiles, MeanTraffic};
use super::handover::Handover;
use super::offload::OffloadCard;
use crate::estimate::{Breakdown, Range};
use crate::figure::Figure;
use schemars::JsonSchema;
use serde::Serialize;

/// What to deploy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model's name.
    pub model: String,
    /// The machines' names.
    pub systems: Vec<String>,
    /// Traffic and lengths in words.
    pub workload: String,
    /// What was made best.
    pub objective: String,
    /// Limits in words.
    pub limits: Vec<String>,
    /// Configurations in the space.
    pub configurations: u64,
    /// Layouts looked at, and those the model fits.
    pub layouts: usize,
    /// Deployments the model fits.
    pub layouts_that_fit: usize,
    /// The best first, then the best of every other deployment; empty when nothing meets the limits.
    pub plans: Vec<Plan>,
    /// In a sentence.
    pub verdict: String,
    /// What would do if a single limit were moved, when nothing meets them all.
    pub relaxations: Vec<Relaxation>,
    /// What moving each limit by a tenth is worth.
    pub shadow_prices: Vec<Shadow>,
    /// Where no deployment is better in both, fastest user first.
    pub frontier: Vec<Point>,
    /// The same as a chart.
    pub figure: Figure,
    /// What the numbers assume.
    pub assumptions: Vec<String>,
    /// What stands in the way, in numbers, when there is no plan.
    pub because: Vec<String>,
}

/// One deployment at one load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Plan {
    /// Its number in the space.
    pub index: u64,
    /// The deployment in a few words: what tells it from the others.
    pub deployment: String,
    /// The machine.
    pub system: String,
    /// The engine.
    pub engine: String,
    /// The layout of an instance, or of one that decodes.
    pub layout: String,
    /// The pool of prompts.
    pub prefill: Option<PoolPlan>,
    /// Weight format.
    pub weights: String,
    /// Cache format.
    pub kv: String,
    /// Most tokens in a pass.
    pub chunk: f64,
    /// Tokens drafted for each step.
    pub drafts: f64,
    /// Requests in flight in one attention group.
    pub concurrency_per_group: f64,
    /// Requests in flight over all replicas.
    pub concurrency: f64,
    /// Time per output token.
    pub tpot_ms: Range,
    /// Time to first token.
    pub ttft_ms: Range,
    /// A whole request.
    pub e2e_ms: Range,
    /// Output tokens per second of a user.
    pub tok_s_per_user: Range,
    /// Output tokens per second and chip of a full replica.
    pub tok_s_per_chip: Range,
    /// Output tokens per second of all.
    pub throughput_tok_s: f64,
    /// Share of what the replicas could serve that is asked of them.
    pub busy: f64,
    /// Replicas.
    pub replicas: u64,
    /// Chips of one replica.
    pub chips_per_replica: u64,
    /// Chips of all.
    pub chips: u64,
    /// Scale-up domains (nodes or racks) they fill.
    pub domains: u64,
    /// Kilowatts of the chips, without the building.
    pub power_kw: f64,
    /// Joules per output token.
    pub joules_per_token: f64,
    /// Dollars per hour.
    pub usd_per_hour: f64,
    /// Dollars per million output tokens, prompts included.
    pub usd_per_mtok: Range,
    /// Share of the room for caches left free.
    pub headroom: f64,
    /// What most of the step is limited by.
    pub bound_by: String,
    /// The limit that keeps this deployment from doing better, and why it is not the best.
    pub why: String,
    /// Where the mean step goes; for the best only.
    pub step: Option<Breakdown>,
    /// Command lines that start it.
    pub launch: Vec<String>,
    /// The same at mean traffic, where the plan is for a peak.
    pub mean_traffic: Option<MeanTraffic>,
    /// Times of short and long requests, where lengths vary; for the best only.
    pub by_length: Option<LengthPercentiles>,
    /// What prompts fetch from host memory, where they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload: Option<OffloadCard>,
    /// What starts and checks it; for the best only, where asked for.
    pub handover: Option<Handover>,
}

/// Chips for prompts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PoolPlan {
    /// The machine.
    pub system: String,
    /// Layout of an instance.
    pub layout: String,
    /// Instances in a replica.
    pub instances: u64,
    /// Instances that decode in a replica.
    pub decode_instances: u64,
    /// Chips of one.
    pub chips: u64,
    /// Most tokens in a pass.
    pub chunk: f64,
}

/// The least move of one limit that makes a plan possible.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Relaxation {
    /// The limit.
    pub limit: String,
    /// As asked.
    pub asked: String,
    /// What would do.
    pub needed: String,
    /// Needed over asked.
    pub factor: f64,
    /// The deployment that reaches it.
    pub by: String,
}

/// What a limit costs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Shadow {
    /// The limit, as it stands.
    pub limit: String,
    /// The objective with the limit a tenth tighter, as a change of the best; none when nothing is left.
    pub tighter: Option<f64>,
    /// The same a tenth looser.
    pub looser: Option<f64>,
}

/// A point of the frontier.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// Its number in the space.
    pub index: u64,
    /// What it is.
    pub deployment: String,
    /// Concurrency of a group.
    pub concurrency_per_group: f64,
    /// Output tokens per second of a user.
    pub tok_s_per_user: f64,
    /// Output tokens per second and chip.
    pub tok_s_per_chip: f64,
    /// Dollars per million output tokens of a full replica.
    pub usd_per_mtok: f64,
    /// Time to first token.
    pub ttft_ms: f64,
    /// Time per output token.
    pub tpot_ms: f64,
    /// Chips of a replica.
    pub chips_per_replica: u64,
}
