//! One training step in four ways of keeping activations, and a training run made of them.
//!
//! | way | kept per block | forward passes | peak in depth |
//! |-----|----------------|----------------|---------------|
//! | [`Keep::Everything`] | all of both sublayers | 1 | linear |
//! | [`Keep::Inputs`] | the two streams | 2 | linear, small |
//! | [`Keep::Spaced`] | the two streams of every k-th, k near sqrt(depth) | 2 | square root |
//! | [`Keep::Nothing`] | nothing: rebuilt from the output | 2 | flat |
//!
//! Backward costs two forwards, so the units are 3, and 4 for the others: a third more.
//! The streams may be stored in three arithmetics: in f32 the rebuilt activations are a few last digits off, in bf16 far off,
//! and on a fixed-point grid they are the same bits.

use crate::meter::{Buffer, Meter};
use crate::model::{Block, Config, Weights, task};
use crate::ops;
use crate::sublayer::{AttentionKept, FeedKept, attention, attention_back, feed, feed_back};
use rackmath_units::{Cancel, Cancelled, float};
use strum::Display;

/// What the forward pass keeps for the backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display)]
pub enum Keep {
    #[strum(to_string = "ordinary")]
    Everything,
    /// The input of every block; the rest is computed again.
    #[strum(to_string = "checkpointed")]
    Inputs,
    /// The input of every k-th block; k blocks at a time are computed again.
    #[strum(to_string = "spaced checkpoints")]
    Spaced,
    /// The last output; every block is inverted.
    #[strum(to_string = "reversible")]
    Nothing,
}

impl Keep {
    pub const ALL: [Self; 4] = [Self::Everything, Self::Inputs, Self::Spaced, Self::Nothing];

    /// Blocks between two kept inputs.
    fn spacing(self, depth: usize) -> Option<usize> {
        match self {
            Self::Inputs => Some(1),
            Self::Spaced => Some((depth as f32).sqrt().ceil() as usize),
            Self::Everything | Self::Nothing => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Display)]
pub enum Stored {
    /// 24 bits and an exponent.
    #[strum(to_string = "f32")]
    F32,
    /// 8 bits and an exponent.
    #[strum(to_string = "bf16")]
    Bf16,
    /// Multiples of 2^-16, added without rounding.
    #[strum(to_string = "fixed point")]
    Fixed,
}

impl Stored {
    pub const ALL: [Self; 3] = [Self::F32, Self::Bf16, Self::Fixed];

    fn onto_grid(self, x: f32) -> f32 {
        // Sums of multiples of 2^-16 are exact in f32 while they stay below 2^8; streams here stay below 2^6.
        if self == Self::Fixed { (x * 65_536.0).round() / 65_536.0 } else { x }
    }

    fn rounded(self, x: f32) -> f32 {
        if self == Self::Bf16 { crate::drift::bf16(x) } else { x }
    }

    fn add(self, stream: &mut [f32], delta: &[f32]) {
        stream.iter_mut().zip(delta).for_each(|(s, d)| *s = self.rounded(*s + self.onto_grid(*d)));
    }

    fn take(self, stream: &mut [f32], delta: &[f32]) {
        stream.iter_mut().zip(delta).for_each(|(s, d)| *s = self.rounded(*s - self.onto_grid(*d)));
    }
}

#[derive(Clone, Debug)]
pub struct Step {
    /// Mean loss of a token, nats.
    pub loss: f32,
    pub gradient: Weights,
    /// The most bytes of activations held at once.
    pub peak_bytes: usize,
    pub flop: u64,
}

struct Streams {
    one: Buffer,
    two: Buffer,
}

type Kept = (AttentionKept, FeedKept);

/// One block forward; what its backward needs.
fn forward(meter: &Meter, c: &Config, block: &Block, stored: Stored, s: &mut Streams) -> Kept {
    let (delta, a) = attention(meter, c, &block.attention, &s.two);
    stored.add(&mut s.one, &delta);
    drop(delta);
    let (delta, f) = feed(meter, c, &block.feed, &s.one);
    stored.add(&mut s.two, &delta);
    (a, f)
}

/// One block forward with nothing kept: the first sublayer's activations are gone before the second needs room.
fn pass(meter: &Meter, c: &Config, block: &Block, stored: Stored, s: &mut Streams) {
    let delta = attention(meter, c, &block.attention, &s.two).0;
    stored.add(&mut s.one, &delta);
    drop(delta);
    let delta = feed(meter, c, &block.feed, &s.one).0;
    stored.add(&mut s.two, &delta);
}

/// One block undone; what its backward needs, made on the way.
fn undo(meter: &Meter, c: &Config, block: &Block, stored: Stored, s: &mut Streams) -> Kept {
    let (delta, f) = feed(meter, c, &block.feed, &s.one);
    stored.take(&mut s.two, &delta);
    drop(delta);
    let (delta, a) = attention(meter, c, &block.attention, &s.two);
    stored.take(&mut s.one, &delta);
    (a, f)
}

/// One block backward: `back` holds the gradient of its output, then of its input.
fn backward(meter: &Meter, c: &Config, block: &Block, (a, f): Kept, back: &mut Streams, g: &mut Block) {
    let through = feed_back(meter, c, &block.feed, &f, &back.two, &mut g.feed);
    drop(f);
    back.one.iter_mut().zip(through.iter()).for_each(|(b, t)| *b += t);
    drop(through);
    let through = attention_back(meter, c, &block.attention, &a, &back.one, &mut g.attention);
    back.two.iter_mut().zip(through.iter()).for_each(|(b, t)| *b += t);
}

pub fn step(c: &Config, w: &Weights, keep: Keep, stored: Stored, seed: u64) -> Step {
    let meter = Meter::default();
    let (tokens, next) = task(c, seed);
    let mut streams = embed(&meter, c, w, stored, &tokens);
    let spacing = keep.spacing(c.depth);
    let (mut kept, mut inputs) = (Vec::new(), Vec::new());
    for (i, block) in w.blocks.iter().enumerate() {
        if spacing.is_some_and(|k| i.is_multiple_of(k)) {
            inputs.push(Streams { one: streams.one.copy(), two: streams.two.copy() });
        }
        if keep == Keep::Everything {
            kept.push(forward(&meter, c, block, stored, &mut streams));
        } else {
            pass(&meter, c, block, stored, &mut streams);
        }
    }
    let mut gradient = w.zeros();
    let (loss, mut back) = head(&meter, c, w, &streams, &next, &mut gradient);
    for (i, (block, g)) in w.blocks.iter().zip(&mut gradient.blocks).enumerate().rev() {
        if kept.is_empty()
            && let (Some(k), Some(mut from)) = (spacing, inputs.pop())
        {
            // Backward has come to the end of a group of blocks: they run again from their input.
            let group = &w.blocks[i / k * k..=i];
            kept.extend(group.iter().map(|block| forward(&meter, c, block, stored, &mut from)));
        }
        let of_block = kept.pop().unwrap_or_else(|| undo(&meter, c, block, stored, &mut streams));
        backward(&meter, c, block, of_block, &mut back, g);
    }
    unembed(c, &tokens, &back, &mut gradient);
    Step { loss, gradient, peak_bytes: meter.peak(), flop: meter.flop() }
}

fn embed(meter: &Meter, c: &Config, w: &Weights, stored: Stored, tokens: &[usize]) -> Streams {
    let mut one = meter.zeros(c.rows() * c.width);
    for ((row, token), i) in one.chunks_exact_mut(c.width).zip(tokens).zip(0..) {
        let (e, p) = (&w.embedding[token * c.width..], &w.position[i % c.context * c.width..]);
        for ((x, e), p) in row.iter_mut().zip(e).zip(p) {
            *x = stored.rounded(stored.onto_grid(e + p));
        }
    }
    let two = one.copy();
    Streams { one, two }
}

/// Both streams start as the embedding, so its gradient is the sum of theirs.
fn unembed(c: &Config, tokens: &[usize], back: &Streams, g: &mut Weights) {
    for (i, token) in tokens.iter().enumerate() {
        for e in 0..c.width {
            let sum = back.one[i * c.width + e] + back.two[i * c.width + e];
            g.embedding[token * c.width + e] += sum;
            g.position[i % c.context * c.width + e] += sum;
        }
    }
}

/// Mean of the streams, norm, vocabulary, cross-entropy; returns the loss and the gradient of both streams.
fn head(meter: &Meter, c: &Config, w: &Weights, s: &Streams, next: &[usize], g: &mut Weights) -> (f32, Streams) {
    let mean = meter.hold(s.one.iter().zip(s.two.iter()).map(|(a, b)| f32::midpoint(*a, *b)).collect());
    let (n, normed) = ops::norm(meter, &mean, &w.gain);
    drop(mean);
    let mut logits = ops::product(meter, &n, &w.head, c.width);
    let mut loss = 0.0;
    for (row, target) in logits.chunks_exact_mut(c.vocabulary).zip(next) {
        let most = row.iter().fold(f32::NEG_INFINITY, |m, x| m.max(*x));
        for x in row.iter_mut() {
            *x = ops::exp(*x - most);
        }
        let sum: f32 = row.iter().sum();
        loss -= float::ln(f64::from(row[*target] / sum)) as f32;
        for x in row.iter_mut() {
            *x /= sum * next.len() as f32;
        }
        row[*target] -= 1.0 / next.len() as f32;
    }
    ops::accumulate_outer(meter, &mut g.head, &n, &logits, c.width);
    drop(n);
    let mut n_gradient = meter.zeros(c.rows() * c.width);
    ops::accumulate_transposed(meter, &mut n_gradient, &logits, &w.head, c.vocabulary);
    drop(logits);
    let mut one = normed.backward(meter, &n_gradient, &w.gain, &mut g.gain);
    one.iter_mut().for_each(|x| *x /= 2.0);
    let two = one.copy();
    (loss / next.len() as f32, Streams { one, two })
}

/// Trains by Adam (Kingma and Ba 2015) and returns the loss of every step.
pub fn train(
    c: &Config,
    keep: Keep,
    stored: Stored,
    steps: usize,
    seed: u64,
    cancel: &Cancel,
) -> Result<Vec<f32>, Cancelled> {
    const RATE: f32 = 3e-3;
    let mut w = Weights::new(c, seed);
    let (mut first, mut second) = (w.zeros(), w.zeros());
    let (mut decay_first, mut decay_second) = (1.0f32, 1.0f32);
    (0..steps)
        .map(|i| {
            cancel.check()?;
            let done = step(c, &w, keep, stored, seed + 1 + i as u64);
            (decay_first, decay_second) = (decay_first * 0.9, decay_second * 0.99);
            let moments = first.parts_mut().into_iter().zip(second.parts_mut());
            for ((w, g), (m, v)) in w.parts_mut().into_iter().zip(done.gradient.parts()).zip(moments) {
                for i in 0..w.len() {
                    m[i] = 0.9 * m[i] + 0.1 * g[i];
                    v[i] = 0.99 * v[i] + 0.01 * g[i] * g[i];
                    w[i] -= RATE * (m[i] / (1.0 - decay_first)) / ((v[i] / (1.0 - decay_second)).sqrt() + 1e-8);
                }
            }
            Ok(done.loss)
        })
        .collect()
}

#[cfg(test)]
mod tests;
