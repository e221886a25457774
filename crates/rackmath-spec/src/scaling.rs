//! Scaling laws as data: what loss a model of so many parameters reaches on so many tokens.
//!
//! A law keeps its coefficients, their standard errors where published, the range it was fitted on and its source. What is
//! done with them is `rackmath_theory::scaling`.

use crate::ClarkLaw;

#[derive(Clone, Debug, PartialEq)]
pub struct ScalingLaw {
    /// The file's stem.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// When it was looked up.
    pub as_of: String,
    /// Where the coefficients come from.
    pub source: String,
    /// What to watch out for.
    pub notes: Vec<String>,
    /// Which parameters N counts.
    pub counts: Counts,
    /// The equation and its coefficients.
    pub form: LawForm,
    /// Standard errors and correlations, where published.
    pub errors: Option<StandardErrors>,
    pub fitted: Fitted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// All of them.
    Total,
    /// Those used for a token.
    Active,
}

/// The equations.
#[derive(Clone, Debug, PartialEq)]
pub enum LawForm {
    /// L = e + a N^-alpha + b D^-beta, with what repetition of data is worth where known.
    Chinchilla(PowerLaw, Option<Repetition>),
    /// L = e + (g G^-gamma + a) N^-alpha + b D^-beta: G is how finely experts are cut.
    Granular {
        /// The terms without granularity.
        base: PowerLaw,
        /// Weight of the term that finer experts remove.
        g: f64,
        /// How fast they remove it.
        gamma: f64,
    },
    /// L = e + a N^-alpha + b D^-beta + c (1-S)^-lambda + d (1-S)^-delta N^-gamma: S is the unused share of experts.
    Sparse {
        /// The terms without sparsity.
        base: PowerLaw,
        /// Weight and exponent of the term of sparsity alone.
        alone: (f64, f64),
        /// Weight, exponent of the density and exponent of N of the joint term.
        joint: (f64, f64, f64),
    },
    /// D* = factor C^exponent: only the compute-optimal tokens are known, not the loss.
    Frontier {
        /// Tokens at one FLOP.
        factor: f64,
        /// How tokens grow with compute.
        exponent: f64,
    },
    /// Clark et al.: the loss with E experts at a fixed number of tokens, one set per router.
    Routed(Vec<ClarkLaw>),
}

impl LawForm {
    /// The word used in files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Chinchilla(..) => "chinchilla",
            Self::Granular { .. } => "granular",
            Self::Sparse { .. } => "sparse",
            Self::Frontier { .. } => "frontier",
            Self::Routed(_) => "routed",
        }
    }
}

/// L = e + a N^-alpha + b D^-beta.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerLaw {
    /// The loss that no size and no data removes.
    pub e: f64,
    /// Weight of the parameters.
    pub a: f64,
    /// Weight of the data.
    pub b: f64,
    /// Exponent of the parameters.
    pub alpha: f64,
    /// Exponent of the data.
    pub beta: f64,
}

/// What repeated data and excess parameters are still worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repetition {
    /// Repeats after which a further one is worth 1/e of a fresh pass.
    pub data: f64,
    /// The same for parameters beyond what the unique data needs.
    pub params: f64,
    /// Parameters the unique data needs, per token.
    pub params_per_token: f64,
}

/// One standard error of each coefficient, and how they move together where published.
#[derive(Clone, Debug, PartialEq)]
pub struct StandardErrors {
    /// Of (e, a, b, alpha, beta), in that order; none is negative.
    pub of: [f64; 5],
    /// Correlations in the same order, where published; symmetric with ones on the diagonal.
    pub correlation: Option<[[f64; 5]; 5]>,
}

/// The range of the runs behind a law; nothing where it is not stated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fitted {
    /// Parameters, as the law counts them.
    pub params: Option<(f64, f64)>,
    pub tokens: Option<(f64, f64)>,
    pub flop: Option<(f64, f64)>,
    pub tokens_per_param: Option<(f64, f64)>,
    /// Total over active parameters.
    pub ratio: Option<(f64, f64)>,
    /// Where the range comes from.
    pub source: String,
}
