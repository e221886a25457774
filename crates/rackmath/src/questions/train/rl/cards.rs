//! What comes back of a step of reinforcement learning.

use super::{Request, Update};
use crate::desk::prelude::*;
use crate::train;

/// What a step takes and who waits.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What was asked.
    pub request: Request,
    /// The model's name.
    pub model: String,
    /// The machine's name.
    pub machine: String,
    /// The verdict: what a step takes, who waits, or what does not fit.
    pub verdict: Remark,
    /// Whether both sides fit.
    pub fits: bool,
    /// Chips of both sides.
    pub chips: u64,
    /// Chips that draw answers; all of them where both share.
    pub rollout_chips: u64,
    /// Chips that train.
    pub train_chips: u64,
    /// Whether both sides share the chips.
    pub colocated: bool,
    /// Seconds of a step.
    pub step_s: f64,
    /// Seconds of the same step were it not asynchronous, or not on shared chips, with the same parts.
    pub synchronous_step_s: f64,
    /// Its parts.
    pub parts: Vec<train::PartCard>,
    /// Seconds of a step in which chips that draw answers wait.
    pub rollout_waits_s: f64,
    /// Seconds of a step in which chips that train wait.
    pub train_waits_s: f64,
    /// Answers.
    pub rollout: RolloutCard,
    /// Training.
    pub trainer: TrainerCard,
    /// New weights.
    pub update: UpdateCard,
    /// Memory of a chip by phase.
    pub memory: MemoryCard,
    /// Tokens of a step, prompts included.
    pub tokens: f64,
    /// Tokens per second and chip, prompts included.
    pub tokens_per_s_per_chip: f64,
    /// Dollars of a step.
    pub usd_per_step: Option<f64>,
    /// What a chip costs an hour, and what kind of price that is; nothing where none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priced: Option<Remark>,
    /// Dollars per million drawn tokens.
    pub usd_per_mtok: Option<f64>,
    /// Other splits of the chips, fastest first, where the split was looked for.
    pub splits: Vec<SplitCard>,
    /// What was assumed.
    pub assumptions: Vec<Remark>,
}

/// Drawing answers.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RolloutCard {
    /// Layout of a replica.
    pub layout: String,
    /// Replicas.
    pub replicas: u64,
    /// The engine's name.
    pub engine: String,
    /// Answers of a step.
    pub answers: u64,
    /// Mean tokens of an answer, cut at the longest.
    pub mean_tokens: f64,
    /// The longest answer of a step.
    pub longest_tokens: f64,
    /// Seconds until the last ends.
    pub time_s: f64,
    /// Of these, computing prompts.
    pub prompts_s: f64,
    /// Of these, while fewer than half of the places are busy: the tail of long answers, or a last round that is not full.
    pub tail_s: f64,
    /// Sequences that decode at once at most, all replicas.
    pub places: f64,
    /// Sequences that decode on average over time, all replicas.
    pub running: f64,
    /// Drawn tokens per second, all replicas.
    pub output_tok_s: f64,
}

/// Training on them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrainerCard {
    /// Its layout in short.
    pub layout: String,
    /// The program's name.
    pub stack: String,
    /// Seconds of all updates of a step.
    pub time_s: f64,
    /// Seconds of one scoring pass over all answers.
    pub scoring_pass_s: f64,
    /// Share of the peak while it trains.
    pub mfu: f64,
}

/// New weights on their way.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UpdateCard {
    /// How.
    pub way: Update,
    /// Bytes of the weights, or of adapters.
    pub bytes: f64,
    /// Bytes a second.
    pub rate_gb_per_s: f64,
    /// Seconds.
    pub time_s: f64,
}

/// Memory of the fullest chip by phase.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MemoryCard {
    /// While answers are drawn: what the engine holds.
    pub engine_bytes: f64,
    /// Of these, the cache.
    pub cache_bytes: f64,
    /// While answers are drawn: what stays of the trainer on the same chip.
    pub trainer_resident_bytes: f64,
    /// Both.
    pub generating_bytes: f64,
    /// While it trains: the trainer.
    pub trainer_bytes: f64,
    /// While it trains: what stays of the engine on the same chip.
    pub engine_resident_bytes: f64,
    /// Both.
    pub training_bytes: f64,
    /// The larger.
    pub peak_bytes: f64,
    /// Memory of a chip.
    pub capacity_bytes: f64,
}

/// A split of the chips.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SplitCard {
    /// Chips that draw answers.
    pub rollout_chips: u64,
    /// Chips that train.
    pub train_chips: u64,
    /// Seconds of a step.
    pub step_s: f64,
    /// Seconds in which chips that draw answers wait.
    pub rollout_waits_s: f64,
    /// Seconds in which chips that train wait.
    pub train_waits_s: f64,
    /// Whether both sides fit.
    pub fits: bool,
}
