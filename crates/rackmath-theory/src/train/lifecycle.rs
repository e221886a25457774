//! What a model costs from its first token to its last: pre-training, reinforcement learning, serving.
//!
//! $$ C_{pt} = 6 N D_{pt} \qquad C_{rl} = f \frac{N D_{rl}}{\eta},\ f \in [2, 6] \qquad C_{inf} = \frac{2 N D_{inf}}{\eta} $$
//! $$ \text{cost} = N (t D + W) \qquad \text{at equal loss the optimum has}\quad
//!    \frac{t D}{t D + W} = \frac{\epsilon_D}{\epsilon_N} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | N | params | 1 | parameters used per token |
//! | D_pt, D_rl, D_inf | pretrain, rl, served | tokens | of each phase |
//! | f | rl_factor | FLOP | per parameter and RL token: 2 generate, up to 6 if all is trained on |
//! | eta | eta | 1 | decode MFU over training MFU |
//! | t, W | per_token, fixed | cost per parameter | what grows with D, and what does not |
//! | eps | pull | nats | what a percent more of N or D takes off the loss (scaling.rs) |
//!
//! The lecture makes the costs equal, which needs no scaling law; the exact optimum asks for the least cost at a loss. Both
//! are here, so that the price of the rule of thumb can be read off. ln cost is convex in ln N at equal loss, because
//! ln D is (scaling.rs), so there is one optimum.
//! Ignores: attention arithmetic, prompt caching, distillation. Sources: lecture D37 to D43, G50 to G59; Sardana et al. 2024,
//! equation 6.

use crate::scaling::{Point, Surface};
use rackmath_units::{Fraction, Params, Seconds, TokenRate, Tokens, float};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a x^m meets b x^-n: the x of least a x^m + b x^-n, and the two costs there, which stand as n : m.
pub fn equaliser(a: f64, m: f64, b: f64, n: f64) -> (f64, f64, f64) {
    let x = float::pow(b * n / (a * m), 1.0 / (m + n));
    (x, a * float::pow(x, m), b * float::pow(x, -n))
}

/// How the budget is split over pre-training, RL and serving.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    pub pretrain: f64,
    pub rl: f64,
    pub served: f64,
}

impl Split {
    pub const THIRDS: Self = Self { pretrain: 1.0 / 3.0, rl: 1.0 / 3.0, served: 1.0 / 3.0 };
    /// Training in all costs as much as serving.
    pub const QUARTERS: Self = Self { pretrain: 0.25, rl: 0.25, served: 0.5 };
}

/// The lecture's conventions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    pub rl_factor: f64,
    pub eta: f64,
    pub split: Split,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phases {
    pub pretrain: Tokens,
    pub rl: Tokens,
    pub served: Tokens,
}

impl Rule {
    /// D_pt over D_rl, and D_pt over D_inf, at equal costs.
    pub fn equalities(&self) -> (f64, f64) {
        (self.rl_factor / 6.0 / self.eta, 2.0 / 6.0 / self.eta)
    }

    pub fn phases(&self, served: Tokens) -> Phases {
        let (alpha, beta) = self.equalities();
        let Split { pretrain, rl, served: s } = self.split;
        Phases { pretrain: served * (beta * pretrain / s), rl: served * (beta / alpha * rl / s), served }
    }

    /// What does not grow with D, per parameter and in training FLOP: RL and serving.
    pub fn fixed(&self, phases: &Phases) -> f64 {
        (self.rl_factor * phases.rl.get() + 2.0 * phases.served.get()) / self.eta
    }
}

/// Tokens served over a lifetime, of which a share may never be if the model does not last.
pub fn served(rate: TokenRate, lifetime: Seconds, survives: Fraction) -> Tokens {
    Tokens::new(rate.get() * lifetime.get() * survives.get())
}

/// Costs per parameter, in any one unit: FLOP of training, or dollars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    pub per_token: f64,
    /// Of everything that does not grow with the training tokens.
    pub fixed: f64,
}

impl Costs {
    pub fn of(&self, at: Point) -> f64 {
        at.params.get() * (self.per_token * at.tokens.get() + self.fixed)
    }

    pub fn share(&self, tokens: Tokens) -> f64 {
        let train = self.per_token * tokens.get();
        train / (train + self.fixed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimum {
    pub at: Point,
    pub cost: f64,
    pub share: f64,
}

/// The cheapest model that reaches a loss; nothing when none does.
pub fn optimum(surface: &Surface, costs: &Costs, loss: f64) -> Option<Optimum> {
    let least = surface.least_params(loss)?;
    let at = |ln_n: f64| {
        let params = Params::new(float::exp(ln_n));
        Some(Point { params, tokens: surface.tokens_for(params, loss)? })
    };
    // d ln cost / d ln N = 1 - share eps_N / eps_D rises from minus infinity, where ever more data is needed, to one.
    let slope = |ln_n: f64| match at(ln_n) {
        Some(p) => 1.0 - costs.share(p.tokens) * surface.size_pull(p.params) / surface.data_pull(p.tokens),
        None => -1.0,
    };
    let low = float::ln(least.get());
    // Beyond e^40 times the least the data term no longer matters.
    let best = at(float::root(low, low + 40.0, slope)?)?;
    Some(Optimum { at: best, cost: costs.of(best), share: costs.share(best.tokens) })
}

/// Reinforcement learning with groups of samples per prompt.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "RlRequest")]
pub struct Rl {
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

impl Default for Rl {
    fn default() -> Self {
        Self { prompts: 1e8, group: 16.0, sample_tokens: 8000.0, pass_rate: 0.5, epochs: 1.0, scoring_passes: 0.0 }
    }
}

impl Rl {
    pub fn generated(&self) -> Tokens {
        Tokens::new(self.sample_tokens * (self.prompts * self.group))
    }

    /// Share of groups that teach anything: in a group that is all right or all wrong no sample is better than another.
    pub fn useful(&self) -> Fraction {
        let (p, g) = (self.pass_rate, self.group);
        Fraction::new((1.0 - float::pow(p, g) - float::pow(1.0 - p, g)).clamp(0.0, 1.0))
    }

    /// FLOP per parameter, generated token and their MFUs, as one number in the lecture's convention: all over eta.
    ///
    /// Generating is 2 at decode speed; training 6 and scoring 2 at training speed, which is eta in units of decoding.
    pub fn factor(&self, eta: f64) -> f64 {
        2.0 + eta * (6.0 * self.useful().get() * self.epochs + 2.0 * self.scoring_passes)
    }
}

/// The rule of thumb's tokens per parameter: compute-optimal is about 20.
pub const CHINCHILLA_RATIO: f64 = 20.0;

/// How many times more data than 20 tokens per parameter.
pub fn over_training(at: Point) -> f64 {
    at.ratio() / CHINCHILLA_RATIO
}

#[cfg(test)]
mod tests;
