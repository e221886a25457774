//! What size and data buy: the loss surface of a scaling law and the best point on it.
//!
//! $$ L(N, D) = e + \sum_i a_i N^{-\alpha_i} + b\, D'^{-\beta} \qquad C = 6 N D \qquad
//!    \text{optimum: } \epsilon_N = \epsilon_D $$
//! $$ D' = U + U R^\star \left(1 - e^{-R/R^\star}\right),\quad R = D/U - 1 $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | N, D | params, tokens | 1 | parameters used per token, tokens trained on |
//! | L | loss | nats | validation loss |
//! | C | flop | FLOP | training compute; 2 forward and 4 backward per parameter and token |
//! | eps_N, eps_D | pull | nats | -dL/d ln N, -dL/d ln D: what a percent more of each buys |
//! | U, R | unique, repeats | tokens, 1 | fresh tokens, and passes over them beyond the first |
//!
//! At a fixed shape of the model (share of experts used, how finely they are cut) every published form with data in it
//! becomes one [`Surface`], so optimum, iso-loss and iso-FLOP curves are written once. In logarithms the surface is convex
//! along each curve (a sum of exponentials, and ln D' is concave in ln D), so there is one optimum and bisection finds it.
//! N counts the parameters used per token, because those cost; a law that counts all of them is rescaled by their ratio.
//! Sources: the law files; lecture D42, G60.

mod spread;
mod surface;

pub use spread::{Band, Tie, band, draws};
pub use surface::{Point, Repeats, Surface};

use crate::sparsity;
use rackmath_spec::{ClarkLaw, Counts, Fitted, LawForm, PowerLaw, ScalingLaw};
use rackmath_units::{Flop, Params, Tokens, float};
use strum::Display;

/// FLOP per parameter and token of training: 2 forward, 4 backward.
pub const TRAIN_FLOP: f64 = 6.0;

/// What of a model a law may ask for besides N and D.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Total over active parameters; 1 is dense.
    pub ratio: f64,
    /// How many pieces an expert of full width is cut into.
    pub granularity: f64,
    /// Parameters' worth under a training precision, of what they are worth in 16 bits.
    pub worth: f64,
    /// Fresh tokens available; data repeats beyond them.
    pub unique: Option<Tokens>,
}

impl Default for Shape {
    fn default() -> Self {
        Self { ratio: 1.0, granularity: 1.0, worth: 1.0, unique: None }
    }
}

/// Why a law has no loss surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display)]
pub enum NoSurface {
    #[strum(to_string = "it knows the compute-optimal tokens, not the loss")]
    OnlyTheOptimum,
    #[strum(to_string = "it was fitted at one number of tokens")]
    NoData,
    #[strum(to_string = "it was fitted on other ratios of total to active parameters")]
    OtherShape,
}

/// A law's surface at a shape. A law of dense models takes what experts are worth from `experts`.
pub fn surface(law: &ScalingLaw, shape: &Shape, experts: Option<&ClarkLaw>) -> Result<Surface, NoSurface> {
    if law.fitted.ratio.is_some_and(|(low, high)| shape.ratio < low || shape.ratio > high) {
        return Err(NoSurface::OtherShape);
    }
    match &law.form {
        LawForm::Chinchilla(k, repetition) => {
            let mut surface = dense(k, shape, experts);
            if let (Some(r), Some(u)) = (repetition, shape.unique) {
                surface.data = Some(Repeats { unique: u.get(), star: r.data });
                surface.size = Some(Repeats { unique: u.get() * r.params_per_token, star: r.params });
            }
            Ok(surface)
        }
        LawForm::Granular { base, g, gamma } => {
            let a = base.a + g * float::pow(shape.granularity, -gamma);
            Ok(scaled(law.counts, shape, &PowerLaw { a, ..*base }, &[]))
        }
        LawForm::Sparse { base, alone: (c, lambda), joint: (d, delta, gamma) } => {
            // The used share of experts, taken as the used share of parameters: attention is small beside them.
            let used = 1.0 / shape.ratio;
            let e = base.e + c * float::pow(used, -lambda);
            let joint = (d * float::pow(used, -delta), *gamma);
            Ok(scaled(law.counts, shape, &PowerLaw { e, ..*base }, &[joint]))
        }
        LawForm::Frontier { .. } => Err(NoSurface::OnlyTheOptimum),
        LawForm::Routed(_) => Err(NoSurface::NoData),
    }
}

/// A dense law: experts multiply the parameters by what the routed law says they are worth, which is a power of N.
fn dense(k: &PowerLaw, shape: &Shape, experts: Option<&ClarkLaw>) -> Surface {
    let (factor, power) = match experts {
        Some(law) if shape.ratio > 1.0 => sparsity::effective_power(law, shape.ratio),
        _ => (1.0, 1.0),
    };
    let worth = float::pow(factor * shape.worth, -k.alpha);
    Surface::new(k.e, vec![(k.a * worth, k.alpha * power)], (k.b, k.beta))
}

fn scaled(counts: Counts, shape: &Shape, k: &PowerLaw, more: &[(f64, f64)]) -> Surface {
    let all = shape.worth * if counts == Counts::Total { shape.ratio } else { 1.0 };
    let term = |(a, alpha): (f64, f64)| (a * float::pow(all, -alpha), alpha);
    let terms = std::iter::once((k.a, k.alpha)).chain(more.iter().copied()).map(term).collect();
    Surface::new(k.e, terms, (k.b, k.beta))
}

/// The compute-optimal point of any law: on its surface, or from its frontier.
pub fn compute_optimum(
    law: &ScalingLaw,
    shape: &Shape,
    experts: Option<&ClarkLaw>,
    flop: Flop,
) -> Result<Point, NoSurface> {
    if let LawForm::Frontier { factor, exponent } = law.form {
        let tokens = factor * float::pow(flop.get(), exponent);
        return Ok(Point { params: Params::new(flop.get() / TRAIN_FLOP / tokens), tokens: Tokens::new(tokens) });
    }
    Ok(surface(law, shape, experts)?.compute_optimum(flop))
}

/// A number outside the range a law was fitted on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outside {
    pub what: &'static str,
    /// How many times beyond the end.
    pub times: f64,
    /// Above the high end, else below the low one.
    pub above: bool,
    pub end: f64,
}

/// What lies outside the range a law was fitted on.
pub fn outside(fitted: &Fitted, counts: Counts, shape: &Shape, at: Point) -> Vec<Outside> {
    let n = at.params.get() * if counts == Counts::Total { shape.ratio } else { 1.0 };
    let d = at.tokens.get();
    let checks = [
        ("parameters", n, fitted.params),
        ("tokens", d, fitted.tokens),
        ("FLOP", TRAIN_FLOP * at.params.get() * d, fitted.flop),
        ("tokens per parameter", d / at.params.get(), fitted.tokens_per_param),
    ];
    checks
        .into_iter()
        .filter_map(|(what, x, range)| {
            let (low, high) = range?;
            match x {
                x if x > high * (1.0 + 1e-9) => Some(Outside { what, times: x / high, above: true, end: high }),
                x if x < low * (1.0 - 1e-9) => Some(Outside { what, times: low / x, above: false, end: low }),
                _ => None,
            }
        })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests;
