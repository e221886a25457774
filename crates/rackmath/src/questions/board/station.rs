//! Trains that leave on time: how long do requests wait, and how full are the steps?

use crate::desk::prelude::*;
use rackmath_theory::station::{self, Rider};
use rackmath_units::Chance;

/// A timetable and its riders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Time of one step.
    pub interval_s: f64,
    /// Sequences a step can hold.
    #[schemars(extend("x-flag" = "seats max-num-seqs"))]
    pub seats: u64,
    /// Requests per second.
    #[schemars(extend("x-old" = "request-rate"))]
    pub rate_per_s: f64,
    /// Output tokens of each request.
    #[schemars(extend("x-flag" = "tokens osl", "x-most" = [1000000, "steps of an answer"]))]
    pub tokens: u64,
    /// Requests to simulate.
    #[schemars(extend("x-flag" = "requests num-prompts", "x-most" = [200000, "simulated arrivals"]))]
    pub requests: u64,
    /// Whether they arrive at equal gaps instead of at random.
    pub even: bool,
    /// Seed of random arrivals.
    pub seed: u64,
}

impl Default for Request {
    fn default() -> Self {
        Self { interval_s: 0.02, seats: 2000, rate_per_s: 150.0, tokens: 500, requests: 100_000, even: false, seed: 1 }
    }
}

/// What the riders saw, and what the closed forms say.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What was asked.
    pub request: Request,
    /// Requests per second that can be carried for ever.
    pub sustainable_rate_per_s: f64,
    /// Whether the rate asked for is below it.
    pub stable: bool,
    /// Worst time to first token with free seats: two steps.
    pub worst_with_seats_s: f64,
    /// Mean time to first token with free seats: one and a half steps.
    pub mean_with_seats_s: f64,
    /// Mean wait for a seat, simulated.
    pub mean_wait_s: f64,
    /// Longest wait for a seat, simulated.
    pub worst_wait_s: f64,
    /// Mean time to first token, simulated.
    pub mean_first_token_s: f64,
    /// 99th percentile of the time to first token, simulated.
    pub p99_first_token_s: f64,
    /// Time between tokens: one step.
    pub per_token_s: f64,
    /// Share of seats taken while the station ran.
    pub fill: f64,
    /// Steps run.
    pub steps: u64,
}

/// Answers while it is wanted.
pub fn answer_on(request: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let Effort { cancel, .. } = effort.into();
    let r = request;
    let interval = Seconds::checked(r.interval_s).filter(|t| (1e-6..=1e4).contains(&t.get()));
    let interval = interval.ok_or_else(|| Error::value("interval", r.interval_s, "1 us to 10,000 s"))?;
    for (field, n) in [("seats", r.seats), ("tokens", r.tokens), ("requests", r.requests)] {
        up_to(field, n, 10_000_000)?;
    }
    let expected = "more than 0, at most 1e9 requests per second";
    refuse_if(!(r.rate_per_s > 0.0 && r.rate_per_s <= 1e9), "rate", r.rate_per_s, expected)?;
    let journal = station::simulate(interval, r.seats as usize, &riders(r), &cancel)?;
    let mut first: Vec<f64> = journal.rides.iter().map(|ride| ride.first_token.get()).collect();
    first.sort_by(f64::total_cmp);
    let at = ((first.len() as f64 * 0.99).ceil() as usize).clamp(1, first.len()) - 1;
    let sustainable = station::sustainable_rate(r.seats as f64, interval, r.tokens as f64);
    Ok(Answer {
        request: r.clone(),
        sustainable_rate_per_s: sustainable,
        stable: r.rate_per_s <= sustainable,
        worst_with_seats_s: station::worst_latency(interval).get(),
        mean_with_seats_s: station::mean_latency(interval).get(),
        mean_wait_s: journal.mean_wait().get(),
        worst_wait_s: journal.worst_wait().get(),
        mean_first_token_s: journal.mean_first_token().get(),
        p99_first_token_s: first[at],
        per_token_s: interval.get(),
        fill: journal.fill.get(),
        steps: journal.departures,
    })
}

fn riders(r: &Request) -> Vec<Rider> {
    let (mut chance, mut now) = (Chance::new(r.seed), 0.0);
    // A number in (0, 1].
    let mut uniform = || ((chance.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64;
    let rider = |_| {
        now += if r.even { 1.0 } else { -float::ln(uniform()) } / r.rate_per_s;
        Rider { arrival: Seconds::s(now), stops: r.tokens }
    };
    (0..r.requests).map(rider).collect()
}
