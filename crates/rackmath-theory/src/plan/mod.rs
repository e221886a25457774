//! Which deployment to choose: a space of them as numbers, and the best of it under limits.
//!
//! $$ \min_{i}\; s(x_i) \quad\text{such that}\quad g_k(x_i) \le G_k \;\;\forall k \qquad
//!    n = \Big\lceil \frac{\lambda}{r_i} \Big\rceil \quad \text{\$/Mtok} = \frac{n\,p_i}{\lambda O}\,10^6 $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | i | index | 1 | a configuration, named by a whole number ([`space`]) |
//! | x_i | [`Estimate`] | - | what users see and what it takes |
//! | s | [`Objective`] | - | what is made small |
//! | g_k, G_k | [`Bound`], [`Limits`] | - | what must stay below a limit; amounts that must be large enter with a minus |
//! | r_i, p_i | rate, usd_s | 1/s, $/s | requests one replica ends, and what it costs |
//! | λ, n | [`Traffic`], replicas | 1/s, 1 | traffic, and the replicas it takes |
//! | O | output | 1 | tokens of an answer |
//!
//! All dollars are charged to output tokens, prompts included. Replicas are alike; what a replica would do at less than its
//! level of concurrency is not counted as better. Assumes: means in steady state ([`crate::steady`]). Source: ours.

mod bounds;
pub mod fill;
pub mod search;
pub mod space;
pub mod standby;
#[cfg(test)]
mod tests;

pub use crate::serve::pools;
pub use search::{Found, Near, Question, Ranked, Yield, search_all, search_part};
pub use space::{Configuration, Prefill, Row, Slower, Space, State, States};
pub use standby::Standby;

use crate::pass;
use strum::{IntoStaticStr, VariantArray};

/// What one configuration does, and what all its replicas take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Seconds per output token after the first.
    pub tpot: f64,
    /// Seconds to the first token.
    pub ttft: f64,
    /// Seconds from arrival to the last token.
    pub e2e: f64,
    /// Requests a second of one replica.
    pub rate: f64,
    pub unit_chips: f64,
    /// Dollars a second of one replica.
    pub unit_usd_s: f64,
    /// Replicas that the traffic needs.
    pub replicas: f64,
    /// Replicas beside them, paid and idle.
    pub standby: f64,
    pub chips: f64,
    /// The same in chips of the limit: of machines that offer different numbers, the one most used up counts.
    pub taken: f64,
    /// Output tokens a second of all.
    pub throughput: f64,
    pub usd_per_hour: f64,
    /// Dollars per million output tokens.
    pub usd_per_mtok: f64,
    pub watts: f64,
    /// Joules per output token.
    pub joules: f64,
    /// Share of the room for caches that is left free.
    pub headroom: f64,
    /// What most of the time of a step is limited by.
    pub binding: pass::Limit,
}

impl Estimate {
    /// The same with another time to the first token.
    fn wait_until(&mut self, ttft: f64, output: f64) {
        self.ttft = ttft;
        self.e2e = ttft + self.tpot * (output - 1.0).max(0.0);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traffic {
    /// Requests a second: as many replicas as that takes.
    Rate(f64),
    /// So many users, each of whom asks again so many seconds after the last token of an answer: N = X (R + Z), the
    /// interactive response time law.
    Users {
        users: f64,
        think: f64,
    },
    /// Whatever so many chips of the limit can serve.
    Fill(f64),
    One,
    /// Whatever can be served within all of these.
    Within {
        chips: f64,
        /// Dollars a second.
        usd_s: f64,
        watts: f64,
    },
}

/// What can be limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Bound {
    /// Seconds, at most, as are the next two.
    #[strum(to_string = "time to first token")]
    Ttft,
    #[strum(to_string = "time per output token")]
    Tpot,
    #[strum(to_string = "whole request")]
    E2e,
    /// Output tokens a second, at least.
    Throughput,
    /// Share of the cache room, at least.
    #[strum(to_string = "free cache memory")]
    Headroom,
    #[strum(to_string = "dollars per hour")]
    UsdPerHour,
    #[strum(to_string = "dollars per million output tokens")]
    UsdPerMtok,
    #[strum(to_string = "power")]
    Watts,
    Chips,
}

impl Bound {
    /// All, in the order answers show them.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether more is better, so that the limit is a least amount.
    pub fn at_least(self) -> bool {
        matches!(self, Self::Throughput | Self::Headroom)
    }

    pub fn amount(self, e: &Estimate) -> f64 {
        match self {
            Self::Ttft => e.ttft,
            Self::Tpot => e.tpot,
            Self::E2e => e.e2e,
            Self::Throughput => e.throughput,
            Self::Headroom => e.headroom,
            Self::UsdPerHour => e.usd_per_hour,
            Self::UsdPerMtok => e.usd_per_mtok,
            Self::Watts => e.watts,
            Self::Chips => e.taken,
        }
    }

    /// The amount with the sign that makes small good.
    fn signed(self, amount: f64) -> f64 {
        if self.at_least() { -amount } else { amount }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits([Option<f64>; Bound::ALL.len()]);

impl Limits {
    #[must_use]
    pub fn with(mut self, bound: Bound, limit: Option<f64>) -> Self {
        self.0[bound as usize] = limit;
        self
    }

    pub fn get(&self, bound: Bound) -> Option<f64> {
        self.0[bound as usize]
    }

    /// Bounds an estimate breaks, one bit each in the order of [`Bound::ALL`].
    pub fn broken(&self, e: &Estimate) -> u16 {
        let mut bits = 0;
        for &bound in Bound::ALL {
            if let Some(limit) = self.0[bound as usize]
                && bound.signed(bound.amount(e)) > bound.signed(limit)
            {
                bits |= 1 << bound as u16;
            }
        }
        bits
    }
}

/// What is made small, or large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// Dollars per million output tokens.
    Cost,
    Chips,
    /// Joules per output token.
    Energy,
    /// Seconds of a whole request.
    Latency,
    /// Output tokens a second; with limits on latency, goodput.
    Throughput,
    /// Seconds per output token: what users feel once an answer has begun.
    Speed,
    /// Dollars per hour of all replicas.
    Hourly,
}

impl Objective {
    pub const ALL: [Self; 7] =
        [Self::Cost, Self::Chips, Self::Energy, Self::Latency, Self::Throughput, Self::Speed, Self::Hourly];

    /// The score of an estimate; less is better. What differs by less than a part in 10^12 is equal, in whichever order it was added up.
    pub fn score(self, e: &Estimate) -> f64 {
        let exact = match self {
            Self::Cost => e.usd_per_mtok,
            Self::Chips => e.chips,
            Self::Energy => e.joules,
            Self::Latency => e.e2e,
            Self::Throughput => -e.throughput,
            Self::Speed => e.tpot,
            Self::Hourly => e.usd_per_hour,
        };
        even(exact)
    }
}

/// A number without the last twelve bits of its fraction, rounded: as ordered as before, but for what adding up in another order changes.
fn even(x: f64) -> f64 {
    f64::from_bits((x.to_bits() + 0x800) & !0xfff)
}
