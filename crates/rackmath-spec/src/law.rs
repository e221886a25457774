//! Scaling laws as data: the one for routed models (lecture D15).

use crate::{Cited, SpecError};
use std::fmt;

/// How experts were chosen in the runs a law was fitted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Router {
    /// Sinkhorn-balanced assignment.
    SBase,
    /// Reinforcement learning.
    Rlr,
    /// A fixed hash of the token.
    Hash,
}

impl Router {
    pub const ALL: [Self; 3] = [Self::SBase, Self::Rlr, Self::Hash];

    /// The word used in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::SBase => "s-base",
            Self::Rlr => "rl-r",
            Self::Hash => "hash",
        }
    }
}

impl fmt::Display for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for Router {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let lower = text.trim().to_ascii_lowercase();
        Self::ALL
            .into_iter()
            .find(|r| r.name() == lower)
            .ok_or_else(|| SpecError::unknown("router", text, Self::ALL.iter().map(|r| r.name())))
    }
}

/// Coefficients of Clark et al.'s law for routed language models, base-10 logarithms.
#[derive(Clone, Debug, PartialEq)]
pub struct ClarkLaw {
    pub router: Router,
    /// Weight of log N.
    pub a: f64,
    /// Weight of log Ê.
    pub b: f64,
    /// Weight of their product.
    pub c: f64,
    /// The constant.
    pub d: f64,
    /// Expert count at which routing starts to help, and at which it saturates.
    pub e_start: f64,
    /// Expert count at which routing saturates.
    pub e_max: f64,
    pub fitted: Cited<(f64, f64)>,
}
