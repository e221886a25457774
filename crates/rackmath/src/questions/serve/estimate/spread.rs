//! Intervals of a steady state: as wide as predictions are off, no end of them beyond what the machine can do, and of one closed
//! loop one interval, whether it is read as the time of a request or as requests a second.
//!
//! $$ t_{low} = \max\big(t\,e^{-w},\ t_{ideal}\big) \qquad X_{low} = \frac{N}{R_{high}} \quad X_{high} = \frac{N}{R_{low}} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | t, w | means, widths | s, 1 | a predicted time, and the half width of its interval |
//! | t_ideal | floors | s | the roofline of the same passes: dense peak, full bandwidth, both at once, no links |
//! | N, R, X | - | 1, s, 1/s | requests in the loop, time of one, requests a second: Little's law |
//!
//! Rates were measured and their width is known; of whole requests few were, so in a closed loop R has the width of X.
//! Ignores: that times per token and to the first token vary together; each has an interval of its own.

use super::Range;
use super::work::Case;
use crate::desk::prelude::*;
use rackmath_theory::pools::{Loading, Outcome, Serving};
use rackmath_theory::steady::{Requests, Steady};
use rackmath_theory::timer::{StepTimer, Work};

impl Range {
    /// The interval of a prediction that is off by a factor of at most exp(spread) in 80 % of cases.
    pub(crate) fn of(value: f64, spread: f64) -> Self {
        let factor = float::exp(spread);
        Self { value, low: value / factor, high: value * factor }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { value: self.value + other.value, low: self.low + other.low, high: self.high + other.high }
    }

    pub(crate) fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }

    pub(crate) fn inverse(self) -> Self {
        Self { value: 1.0 / self.value, low: 1.0 / self.high, high: 1.0 / self.low }
    }

    /// The same, but for what lies below a bound of the value.
    fn not_below(self, floor: f64) -> Self {
        Self { low: self.low.max(floor.min(self.value)), ..self }
    }
}

/// Times in milliseconds and requests a second.
pub(super) struct Intervals {
    pub tpot: Range,
    pub first: Range,
    pub queue: Range,
    pub e2e: Range,
    pub rate: Range,
}

/// The intervals around means of waiting, first token and token, in milliseconds.
pub(super) fn intervals(case: &Case, p: &Serving, o: &Outcome, means: [f64; 3], stable: bool) -> Intervals {
    let (requests, w) = (&case.ask.requests, case.scale.widths(&p.main));
    let [queue, first, token] = means;
    let [floor_first, floor_token] = [prompt_limit(p, requests) * 1e3, token * token_share(&o.steady, requests)];
    let tpot = Range::of(token, w.tpot).not_below(floor_token);
    let own = Range::of(first, w.ttft).not_below(floor_first);
    let tokens = (requests.output - 1.0).max(0.0);
    // Of a loop, all passes at the roofline: where prompts have chips of their own, these may be the slower ones.
    let loop_share = if p.split.is_none() { share(o.steady.mean_pass().ideal(), o.steady.step()) } else { 0.0 };
    let queued = Range::of(queue, w.throughput).not_below(queue * loop_share);
    let whole = queue + first + token * tokens;
    let floor = (floor_first + floor_token * tokens).max(whole * loop_share);
    let looped = Range::of(whole, w.throughput).not_below(floor);
    // Little: as many come in a second as are there over the time they stay.
    let in_loop = |rate: &dyn Fn(f64) -> f64| {
        (looped, Range { value: rate(looped.value), low: rate(looped.high), high: rate(looped.low) })
    };
    let (e2e, rate) = match case.ask.load {
        // What arrives leaves, however long it takes.
        Loading::Rate(rate) if stable => {
            (own.plus(queued).plus(tpot.times(tokens)), Range { value: rate, low: rate, high: rate })
        }
        // Each comes again after its answer and a pause.
        _ if let Some((users, think)) = case.ask.users => in_loop(&|ms| users / (think + ms / 1e3)),
        _ => in_loop(&|ms| o.rate * (whole / ms)),
    };
    Intervals { tpot, first: own, queue: queued, e2e, rate }
}

/// Seconds below which no prompt is computed, alone on an idle machine.
fn prompt_limit(p: &Serving, requests: &Requests) -> f64 {
    let on = p.split.as_ref().map_or(&p.main, |pool| &pool.instance);
    let Ok(cost) = on.pass.time(&Work::prefill(1.0, requests.new_tokens(), requests.input - requests.new_tokens()));
    cost.ideal().get()
}

/// The roofline of the passes between two tokens of a user over their time: of those with prompts, what its mean says there are.
fn token_share(s: &Steady, requests: &Requests) -> f64 {
    let [decode, mixed] = [s.decode.time(), s.mixed.time()].map(Seconds::get);
    let pass = s.tpot.get() * requests.accepted;
    let with_prompts = if mixed > decode { ((pass - decode) / (mixed - decode)).clamp(0.0, 1.0) } else { 0.0 };
    let mean = |d: Seconds, m: Seconds| d * (1.0 - with_prompts) + m * with_prompts;
    share(mean(s.decode.ideal(), s.mixed.ideal()), mean(s.decode.time(), s.mixed.time()))
}

fn share(ideal: Seconds, time: Seconds) -> f64 {
    if time > Seconds::ZERO { (ideal / time).min(1.0) } else { 0.0 }
}
