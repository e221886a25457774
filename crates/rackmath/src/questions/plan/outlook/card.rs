//! The answer as plain data.

use crate::plan::{Holds, Plan};
use schemars::JsonSchema;
use serde::Serialize;

/// What may become of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model's name.
    pub model: String,
    /// Traffic and lengths in words.
    pub workload: String,
    /// Limits in words.
    pub limits: Vec<String>,
    /// What is made best.
    pub objective: String,
    /// The plan; none when nothing meets the limits.
    pub plan: Option<Plan>,
    /// What each uncertain input does, the largest swing first.
    pub inputs: Vec<Input>,
    /// The best plan that meets the limits and serves the traffic even at the bad ends of its intervals.
    pub robust: Option<Robust>,
    /// The chosen deployment as more requests are in flight: what binds, from where to where.
    pub stages: Vec<Stage>,
    /// What ends that.
    pub ends_by: String,
    /// The most the machines can serve under the limits.
    pub most: Option<Most>,
    /// In a sentence.
    pub verdict: String,
    /// What the numbers assume.
    pub assumptions: Vec<String>,
}

/// One uncertain input.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Input {
    /// Which.
    pub name: String,
    /// Moved down.
    pub low: Case,
    /// Moved up.
    pub high: Case,
}

/// An input at one value.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Case {
    /// The value in words.
    pub value: String,
    /// The best deployment then; none when nothing meets the limits.
    pub deployment: Option<String>,
    /// Change of the best score; more is worse.
    pub change: Option<f64>,
    /// Whether today's deployment still does.
    pub kept: Holds,
    /// How much worse than the best then today's deployment is, where it still does.
    pub regret: Option<f64>,
}

/// A plan that survives the error of the predictions.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Robust {
    /// The plan, as predicted.
    pub plan: Plan,
    /// How much worse its score is.
    pub premium: f64,
    /// Whether it is the recommended deployment at the same concurrency and replicas.
    pub same: bool,
}

/// A stretch of concurrency with one bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Stage {
    /// From so many requests in flight in a group.
    pub from: f64,
    /// To so many.
    pub to: f64,
    /// What most of a step is limited by.
    pub bound_by: String,
    /// Limits that are broken, in words.
    pub broken: Vec<String>,
    /// Output tokens per second and chip at its end.
    pub tok_s_per_chip: f64,
    /// Time per output token at its end.
    pub tpot_ms: f64,
}

/// The most that can be served, and what would make it more.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Most {
    /// Requests per second.
    pub requests_per_s: f64,
    /// The deployment that serves them.
    pub deployment: String,
    /// Over what is asked for; none when that is whatever the chips serve.
    pub times_now: Option<f64>,
    /// Each limit at twice its room, and by what share more could be served; largest first.
    pub reliefs: Vec<Relief>,
}

/// A limit given more room.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Relief {
    /// The limit.
    pub limit: String,
    /// Share by which more requests could be served.
    pub gain: f64,
}
