//! What can be asked about a lifecycle.

use crate::Error;
use crate::desk::check::within;
use crate::laws::{Law, Machine};
use rackmath_theory::lifecycle::Split;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A model, its traffic, and how its costs relate. The defaults are the lecture's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Active parameters.
    #[schemars(extend("x-flag" = "params -n"))]
    pub params: f64,
    /// Tokens per second of a whole family of models.
    pub rate_tokens_per_s: f64,
    /// This model's share of them.
    #[schemars(extend("x-unit" = "share"))]
    pub model_share: f64,
    /// Days it is served.
    pub lifetime_days: f64,
    /// Tokens served, instead of rate and lifetime.
    #[schemars(extend("x-flag" = "served"))]
    pub served_tokens: Option<f64>,
    /// Probability that the model is ever served.
    #[schemars(extend("x-flag" = "survives ships", "x-unit" = "share"))]
    pub survives: f64,
    /// FLOP per parameter and RL token, 2 to 6.
    pub rl_factor: f64,
    /// RL in detail: prompts, samples per prompt, tokens per sample and pass rate, such as 100M,16,8k,0.5.
    #[schemars(extend("x-flag" = "rl", "x-prefix" = "rl", "x-parts" = ["prompts", "group", "sample_tokens", "pass_rate"]))]
    pub rl: Option<RlRequest>,
    /// Decode MFU over training MFU.
    pub eta: f64,
    /// `thirds`, `quarters`, or shares of pre-training, RL and serving such as `40/20/40`.
    pub split: String,
    /// Loss to reach, instead of that of the rule's point.
    pub loss: Option<f64>,
    /// Failures while training.
    pub failures: Failures,
    /// Laws and shape.
    pub law: Law,
    /// The machine, for dollars and precisions.
    pub machine: Machine,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            params: 100e9,
            rate_tokens_per_s: 500e6,
            model_share: 0.1,
            lifetime_days: 60.0,
            served_tokens: None,
            survives: 1.0,
            rl_factor: 3.0,
            rl: None,
            eta: 1.0 / 3.0,
            split: "thirds".into(),
            loss: None,
            failures: Failures::default(),
            law: Law::default(),
            machine: Machine::default(),
        }
    }
}

/// Reinforcement learning with groups of samples per prompt.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RlRequest {
    /// Prompts, counted once per use.
    pub prompts: f64,
    /// Samples per prompt.
    pub group: f64,
    /// Tokens per sample.
    pub sample_tokens: f64,
    /// Probability that a sample is right.
    #[schemars(extend("x-unit" = "share"))]
    pub pass_rate: f64,
    /// Times a sample is trained on.
    pub epochs: f64,
    /// Further forward passes per sample: reference or reward models of equal size.
    #[schemars(extend("x-flag" = "scoring"))]
    pub scoring_passes: f64,
}

impl Default for RlRequest {
    fn default() -> Self {
        Self { prompts: 1e8, group: 16.0, sample_tokens: 8000.0, pass_rate: 0.5, epochs: 1.0, scoring_passes: 0.0 }
    }
}

/// Failures while training; none unless a mean time between them is given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Failures {
    /// Mean time between failures of one chip.
    pub chip_mtbf_hours: Option<f64>,
    /// Chips that train together.
    pub chips: f64,
    /// Pause for a checkpoint.
    pub stall_s: f64,
    /// From a failure to work again.
    pub restart_s: f64,
}

impl Default for Failures {
    fn default() -> Self {
        Self { chip_mtbf_hours: None, chips: 16_384.0, stall_s: 10.0, restart_s: 480.0 }
    }
}

pub(super) fn check(r: &Request) -> Result<(), Error> {
    within("params", r.params, 1e3, 1e18)?;
    within("rl_factor", r.rl_factor, 0.0, 100.0)?;
    within("eta", r.eta, 1e-3, 10.0)?;
    r.loss.map(|l| within("loss", l, 0.0, 100.0)).transpose()?;
    Ok(())
}

pub(super) fn split(text: &str) -> Result<Split, Error> {
    match text.trim() {
        "thirds" => return Ok(Split::THIRDS),
        "quarters" => return Ok(Split::QUARTERS),
        _ => {}
    }
    let refuse = || {
        let near = rackmath_spec::nearest(text, ["thirds", "quarters"].into_iter());
        let near = near.first().map_or(String::new(), |n| format!("; did you mean {n}?"));
        Error::value("split", format!("\"{text}\""), format!("thirds, quarters, or shares such as 40/20/40{near}"))
    };
    let shares: Vec<f64> =
        text.split('/').map(|t| t.trim().parse::<f64>()).collect::<Result<_, _>>().map_err(|_| refuse())?;
    let sum: f64 = shares.iter().sum();
    match shares.as_slice() {
        [p, r, s] if sum.is_finite() && *p > 0.0 && *r >= 0.0 && *s > 0.0 => {
            Ok(Split { pretrain: p / sum, rl: r / sum, served: s / sum })
        }
        _ => Err(refuse()),
    }
}
