//! Answers drawn for reinforcement learning: how long a batch takes when the longest answer ends it, and who waits.
//!
//! $$ T_{gen} = \int_0^{E} t\big(a(e), c(e)\big)\,de + \frac{P I}{R} \qquad a(e) = |\{i : s_i \le e < s_i + O_i\}| \qquad
//!    s_i = \text{when a place is free} $$
//! $$ T_{sync} = T_{gen} + T_{score} + T_{train} + T_{update} \qquad T_{async} = \max(T_{gen}, T_{score} + T_{train}) + T_{update} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | e, E | steps | 1 | decode steps, until the last answer ends |
//! | a, c | running, context | 1 | sequences that decode, and the tokens they hold on average |
//! | O, s | lengths, start | 1 | length of an answer, the step at which it gets a place |
//! | t | [`StepTimer`] | s | a pass of the engine |
//! | P, I, R | prompts, input, rate | 1, 1, 1/s | prompts (samples of one share theirs), their tokens, tokens the engine computes of them in a second |
//!
//! Every running sequence gains a token in a step, so places are dealt in steps, exactly, and only the length of a step depends
//! on how many run; it is worked out on a grid of `GRID` stretches. Lengths are the middles of equal shares of their
//! distribution, cut at the longest allowed, dealt in a fixed mixed order: no chance, the same answer every time.
//!
//! Weights reach the engine in one of two ways: all of them stream past every chip, which takes its part (the whole model over
//! one chip's link to the host, as updates of 107 to 1,026 billion parameters on 8 to 256 chips took: github.com/MoonshotAI/
//! checkpoint-engine README, read 2026-11), or each chip is sent its own share from those that trained it.
//!
//! Assumes: prompts are computed before their answers and in full passes; replicas are alike. Ignores: tools and environments,
//! rewards that take time, requests cut off and continued in the next step. Source: counting; Sheng 2024 (HybridFlow, arXiv
//! 2409.19256) for what is resharded.

use crate::timer::{StepTimer, Work};
use rackmath_units::{ByteRate, Bytes, Seconds};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Stretches of a run over which a step's time is worked out.
const GRID: usize = 256;

/// A batch of answers on one replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batch<'a> {
    /// Lengths of all answers, in the order in which they start.
    pub lengths: &'a [u32],
    /// Sequences that run at once at most.
    pub places: u64,
    pub input: f64,
    /// Samples that share a prompt.
    pub samples: f64,
    /// Prompt tokens of a full pass.
    pub chunk: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Generation {
    pub time: Seconds,
    /// Of these, computing prompts.
    pub prompts: Seconds,
    /// In which fewer than half as many sequences run as at most did.
    pub tail: Seconds,
    pub tokens: f64,
    /// Sequences that run, on average over time.
    pub running: f64,
    pub longest: u32,
}

/// The time of a batch.
pub fn generation<T: StepTimer>(timer: &T, batch: &Batch<'_>) -> Result<Generation, T::Uncovered> {
    let places = batch.places.clamp(1, batch.lengths.len().max(1) as u64) as usize;
    let mut free: BinaryHeap<Reverse<u64>> = (0..places).map(|_| Reverse(0)).collect();
    let mut spans: Vec<(u64, u64)> = Vec::with_capacity(batch.lengths.len());
    for length in batch.lengths {
        let Some(Reverse(start)) = free.pop() else { break };
        let end = start + u64::from(*length).max(1);
        spans.push((start, end));
        free.push(Reverse(end));
    }
    let last = spans.iter().map(|s| s.1).max().unwrap_or(0);
    let width = (last as f64 / GRID as f64).max(1.0);
    let cells = (last as f64 / width).ceil() as usize;
    // Sequence-steps of each stretch, and tokens held in them.
    let mut steps = vec![(0.0, 0.0); cells];
    for (start, end) in &spans {
        let (start, end) = (*start as f64, *end as f64);
        let first = (start / width) as usize;
        for (i, cell) in steps.iter_mut().enumerate().skip(first) {
            let (low, high) = ((i as f64 * width).max(start), ((i + 1) as f64 * width).min(end));
            if low >= end {
                break;
            }
            if high > low {
                cell.0 += high - low;
                cell.1 += (high - low) * (batch.input + f64::midpoint(low, high) - start);
            }
        }
    }
    let mut all = Generation { longest: batch.lengths.iter().copied().max().unwrap_or(0), ..Generation::default() };
    let (mut time, mut tail, mut seen) = (0.0, 0.0, 0.0);
    for (i, (held, context)) in steps.iter().enumerate() {
        if *held <= 0.0 {
            continue;
        }
        let stretch = width.min(last as f64 - i as f64 * width);
        let one = timer.time(&Work::decode((held / stretch).max(1.0), context / held))?.time().get();
        time += one * stretch;
        seen += held * one;
        if held / stretch < places as f64 / 2.0 {
            tail += one * stretch;
        }
        all.tokens += held;
    }
    let prompts = batch.lengths.len() as f64 / batch.samples.max(1.0);
    let together = (batch.chunk / batch.input.max(1.0)).floor().max(1.0);
    let each = batch.input.min(batch.chunk);
    let pass = timer.time(&Work::prefill(together, each, 0.0))?.time().get();
    all.prompts = Seconds::s(prompts * batch.input / (together * each) * pass);
    all.time = Seconds::s(time) + all.prompts;
    all.tail = Seconds::s(tail);
    all.running = if time > 0.0 { seen / time } else { 0.0 };
    Ok(all)
}

/// Lengths of so many answers: the middles of equal shares, cut at the longest, in a fixed mixed order.
pub fn lengths(n: usize, longest: f64, quantile: impl Fn(f64) -> f64) -> Vec<u32> {
    let one = |i: usize| {
        let at = (i as f64 + 0.5) / n as f64;
        quantile(at).round().clamp(1.0, longest.max(1.0)) as u32
    };
    // Steps of about the golden section that share no factor with n visit every place once, far from the last.
    let mut stride = ((n as f64 * 0.618_033_988_75) as usize).max(1);
    while gcd(stride, n.max(1)) != 1 {
        stride += 1;
    }
    (0..n).map(|k| one(k * stride % n.max(1))).collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// How new weights reach the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// All of them pass every chip.
    Broadcast,
    /// Each chip is sent its own share.
    Shards,
}

/// Time of new weights of `all` bytes, cut over `shards` chips of a replica, at a link's rate.
pub fn update(way: Way, all: Bytes, shards: f64, rate: ByteRate) -> Seconds {
    match way {
        Way::Broadcast => all / rate,
        Way::Shards => all / shards.max(1.0) / rate,
    }
}

/// Seconds of the parts of a step, and who waits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    pub generate: f64,
    /// Passes that score: log-probabilities, a reference, a reward model.
    pub score: f64,
    pub train: f64,
    pub update: f64,
    /// Moving states to the host and back, on chips that do both.
    pub swap: f64,
}

/// When the trainer works beside the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// One after the other, on the same chips.
    Colocated,
    /// One after the other, on different chips.
    Synchronous,
    /// Answers of the next step are drawn while the last ones train.
    OneStepOff,
}

impl Parts {
    pub fn step(&self, turns: Turns) -> f64 {
        match turns {
            Turns::Colocated => self.generate + self.score + self.train + self.update + self.swap,
            Turns::Synchronous => self.generate + self.score + self.train + self.update,
            Turns::OneStepOff => self.generate.max(self.score + self.train) + self.update,
        }
    }

    /// Seconds of a step that the engine's chips and the trainer's wait.
    pub fn waits(&self, turns: Turns) -> (f64, f64) {
        let step = self.step(turns);
        match turns {
            Turns::Colocated => (0.0, 0.0),
            _ => [self.generate, self.score + self.train]
                .map(|busy| step - busy - self.update)
                // What is left of differences is rounding.
                .map(|left| if left > 1e-9 * step { left } else { 0.0 })
                .into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timer::{Cost, Limit, Part};
    use proptest::prelude::*;
    use std::convert::Infallible;

    /// A step takes a second and a thousandth for each sequence; prompts take nothing.
    struct Plain;

    impl StepTimer for Plain {
        type Uncovered = Infallible;

        fn time(&self, work: &Work) -> Result<Cost, Infallible> {
            let decode = if work.sequences() > 0.0 { 1.0 + 1e-3 * work.sequences() } else { 0.0 };
            Ok(Cost::of(Part::Products, Limit::Compute, Seconds::s(decode)))
        }
    }

    fn ran(lengths: &[u32], places: u64) -> Generation {
        let batch = Batch { lengths, places, input: 10.0, samples: 1.0, chunk: 1000.0 };
        let Ok(all) = generation(&Plain, &batch);
        all
    }

    #[test]
    fn the_longest_answer_ends_the_batch() {
        // Three answers side by side: 100 steps of three, 100 of two, 300 of one.
        let all = ran(&[100, 200, 500], 3);
        let by_hand = 100.0 * 1.003 + 100.0 * 1.002 + 300.0 * 1.001;
        assert!((all.time.get() / by_hand - 1.0).abs() < 2e-3, "{all:?} {by_hand}");
        assert_eq!((all.tokens, all.longest), (800.0, 500));
        // In one place, one after the other: 800 steps of one.
        assert!((ran(&[100, 200, 500], 1).time.get() / (800.0 * 1.001) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn lengths_are_all_there_once() {
        let mut all = lengths(100, 60.0, |p| 100.0 * p);
        all.sort_unstable();
        assert_eq!((all[0], all[50], all[99], all.len()), (1, 51, 60, 100));
    }

    proptest! {
        #[test]
        fn places_only_help_and_no_batch_ends_before_its_longest(
            lengths in prop::collection::vec(1u32..400, 1..60), places in 1u64..40
        ) {
            let (few, more) = (ran(&lengths, places), ran(&lengths, places + 8));
            let longest = f64::from(*lengths.iter().max().unwrap());
            // Steps of more sequences are longer by a thousandth each.
            prop_assert!(more.time.get() <= few.time.get() * (1.0 + 1e-3 * (places + 8) as f64) + 1e-9);
            prop_assert!(more.time.get() >= longest && few.tail <= few.time * (1.0 + 1e-12));
            let tokens: u32 = lengths.iter().sum();
            prop_assert!((few.tokens - f64::from(tokens)).abs() < 1e-6 * f64::from(tokens));
        }

        #[test]
        fn asynchronous_steps_are_never_longer(g in 0.0f64..1e4, s in 0.0f64..1e4, t in 0.0f64..1e4, u in 0.0f64..1e3) {
            let parts = Parts { generate: g, score: s, train: t, update: u, swap: 0.0 };
            let [one, two] = [Turns::OneStepOff, Turns::Synchronous].map(|turns| parts.step(turns));
            prop_assert!(one <= two && two <= parts.step(Turns::Colocated));
            for turns in [Turns::OneStepOff, Turns::Synchronous] {
                let (engine, trainer) = parts.waits(turns);
                prop_assert!(engine >= -1e-9 && trainer >= -1e-9);
            }
            prop_assert!(parts.waits(Turns::OneStepOff).0.min(parts.waits(Turns::OneStepOff).1).abs() < 1e-6);
        }
    }
}
