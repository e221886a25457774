//! What is answered about a lifecycle.

use super::Request;
use crate::figure::Figure;
use crate::laws::Spread;
use schemars::JsonSchema;
use serde::Serialize;

/// The rule and what each law says about it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What was asked.
    pub request: Request,
    /// Tokens served in expectation.
    pub served_tokens: f64,
    /// The lecture's rule.
    pub rule: RuleCard,
    /// Reinforcement learning in detail, where asked for.
    pub rl: Option<RlCard>,
    /// Progress of all training time, under the failures given.
    pub goodput: f64,
    /// Cost per active parameter and training token, relative to 6 FLOP at the training MFU.
    pub train_cost: f64,
    /// One card per law.
    pub laws: Vec<LawCard>,
    /// Least and greatest over-training of the optima, over all laws.
    pub over_training_over_laws: Option<(f64, f64)>,
    /// Cost against size at equal loss, for one law.
    pub figure: Option<Figure>,
    /// What was assumed.
    pub assumptions: Vec<String>,
}

/// The rule of thumb: costs in the given proportion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RuleCard {
    /// D_pt over D_rl at equal costs.
    pub alpha: f64,
    /// D_pt over D_inf at equal costs.
    pub beta: f64,
    /// Training tokens.
    pub pretrain_tokens: f64,
    /// RL tokens.
    pub rl_tokens: f64,
    /// Pre-training FLOP.
    pub pretrain_flop: f64,
    /// RL in FLOP of training speed.
    pub rl_flop: f64,
    /// Serving in FLOP of training speed.
    pub served_flop: f64,
    /// Tokens per active parameter.
    pub tokens_per_param: f64,
    /// Over 20 tokens per parameter.
    pub over_training: f64,
    /// Dollars of everything, where a machine is given.
    pub usd: Option<f64>,
}

/// Reinforcement learning with groups.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RlCard {
    /// Tokens generated.
    pub generated_tokens: f64,
    /// Share of groups whose samples are not all right or all wrong.
    pub useful: f64,
    /// FLOP per parameter and generated token in the lecture's convention.
    pub factor: f64,
}

/// One law.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LawCard {
    /// Its id.
    pub law: String,
    /// Where it comes from.
    pub source: String,
    /// The loss aimed at.
    pub loss: Option<f64>,
    /// Tokens per parameter that are compute-optimal at the size given.
    pub own_tokens_per_param: Option<f64>,
    /// Tokens at which pre-training's share of the rule would be an optimum at the size given.
    pub tokens_at_share: Option<f64>,
    /// The same over 20 tokens per parameter.
    pub over_training_at_share: Option<f64>,
    /// The cheapest model of that loss.
    pub optimum: Option<OptimumCard>,
    /// What following the rule costs more than the optimum: 0.017 is 1.7 %.
    pub rule_extra: Option<f64>,
    /// What the standard errors make of the optimum's over-training.
    pub over_training_spread: Option<Spread>,
    /// What they make of the cost of following the rule.
    pub rule_extra_spread: Option<Spread>,
    /// What they make of the optimum's cost in dollars, where a machine and a loss are given.
    pub usd_spread: Option<Spread>,
    /// Where the optimum lies outside the fitted range.
    pub outside: Vec<String>,
    /// Why the law has no answer.
    pub left_out: Option<String>,
}

/// The cheapest model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OptimumCard {
    /// Active parameters.
    pub params: f64,
    /// Training tokens.
    pub tokens: f64,
    /// Pre-training's share of the cost.
    pub share: f64,
    /// Over 20 tokens per parameter.
    pub over_training: f64,
    /// Dollars of everything, where a machine is given.
    pub usd: Option<f64>,
}
