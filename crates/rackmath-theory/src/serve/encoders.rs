//! Chips that do nothing but encode pictures and sound, before prompts reach those that serve (encode, prefill, decode).
//!
//! $$ \mu_e = \frac{1}{t_{enc}} \qquad n_e = \lceil \lambda\,t_{enc} \rceil \qquad \rho = \frac{\lambda\,t_{enc}}{n_e} \qquad
//!    \mathrm{TTFT} = w(\rho, n_e) + t_{enc} + t_{send} + \mathrm{TTFT}_{text} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | t_enc | each | s | what one request brings, encoded on one chip ([`crate::pass::encoding`]) |
//! | λ, n_e, ρ | rate, chips, busy | 1/s, 1 | requests, chips that encode (what balances unless given), the share of the time they work |
//! | t_send | send | s | encoded tokens over the outermost network |
//! | w | [`crate::pools::wait`] | s | waiting for a chip that encodes |
//!
//! Those in the encoders are not in the engine: of c requests in flight c - λ (w + t_enc + t_send) are. Assumes: one request's
//! pictures are encoded by one chip, one request at a time. Ignores: encoded pictures that were kept from a request before.
//! Source: ours; Little's law; the pools are those of vLLM's encoder disaggregation and of Dynamo's encode workers.

use crate::pools::{Loading, Outcome, wait};
use crate::steady::Requests;

/// Chips that encode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Encoders {
    pub each: f64,
    pub send: f64,
    /// How many; what balances unless given.
    pub chips: Option<f64>,
    /// Chips of the machine, those of the deployment included.
    pub machine: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EncoderFlow {
    pub chips: f64,
    /// Chips that would be exactly busy.
    pub exact: f64,
    pub busy: f64,
    pub each: f64,
    pub wait: f64,
    pub send: f64,
}

/// Rounds of the balance; each halves the distance.
const ROUNDS: usize = 24;

/// A deployment behind its encoders, from what it does alone under a load.
pub fn behind(e: &Encoders, requests: &Requests, load: Loading, alone: impl Fn(Loading) -> Outcome) -> Outcome {
    let first = alone(load);
    let chips = e.chips.unwrap_or_else(|| (first.rate * e.each).ceil().min(e.machine - first.chips).max(1.0));
    let able = chips / e.each;
    let waits = |rate: f64| wait(rate / able, chips, e.each);
    let (then, rate, waited) = match load {
        Loading::Concurrency(c) if first.rate <= able => {
            let (mut then, mut inside) = (first, c);
            for _ in 0..ROUNDS {
                let outside = then.rate * (waits(then.rate) + e.each + e.send);
                inside = f64::midpoint(inside, (c - outside).max(1.0));
                then = alone(Loading::Concurrency(inside));
            }
            (then, then.rate, waits(then.rate))
        }
        Loading::Concurrency(c) => {
            // Encoders are the bottleneck: who is not served waits for them.
            let then = alone(Loading::Rate(able));
            (then, able, (c / able - (e.each + e.send + then.e2e(requests))).max(waits(able)))
        }
        Loading::Rate(_) if first.rate > able => (alone(Loading::Rate(able)), able, waits(able)),
        Loading::Rate(_) | Loading::Full => (first, first.rate.min(able), waits(first.rate.min(able))),
    };
    let exact = first.rate * e.each;
    let flow = EncoderFlow { chips, exact, busy: (rate / able).min(1.0), each: e.each, wait: waited, send: e.send };
    let overloaded = matches!(load, Loading::Rate(r) if then.overloaded || r >= able);
    let ttft = then.ttft + waited + e.each + e.send;
    Outcome { ttft, rate, chips: then.chips + chips, encoders: Some(flow), overloaded, ..then }
}
