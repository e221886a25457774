//! The two functions a block adds to its streams: attention and feed-forward, each behind a norm.
//!
//! Forward returns what is added and what its backward needs; backward returns the gradient of the input and adds those of
//! the weights. Neither has a skip connection of its own: that is the block's business, and in a reversible block an inner
//! one must not exist.

use crate::meter::{Buffer, Meter};
use crate::model::{Attention, Config, Feed};
use crate::ops::{self, Normed, accumulate_outer, accumulate_transposed, product};

pub(crate) struct AttentionKept {
    normed: Normed,
    q: Buffer,
    k: Buffer,
    v: Buffer,
    shares: Buffer,
    mixed: Buffer,
}

pub(crate) struct FeedKept {
    normed: Normed,
    up: Buffer,
}

/// One head of one sequence: its rows, and the columns of the head in them.
struct Head {
    first_row: usize,
    first_column: usize,
    shares: usize,
}

fn heads(c: &Config) -> impl Iterator<Item = Head> + use<> {
    let (s, h, d) = (c.context, c.heads, c.head());
    (0..c.batch * h).map(move |i| Head { first_row: i / h * s, first_column: i % h * d, shares: i * s * s })
}

pub(crate) fn attention(meter: &Meter, c: &Config, w: &Attention, x: &[f32]) -> (Buffer, AttentionKept) {
    let (s, d, width) = (c.context, c.head(), c.width);
    let (n, normed) = ops::norm(meter, x, &w.gain);
    let [q, k, v] = [&w.q, &w.k, &w.v].map(|w| product(meter, &n, w, width));
    drop(n);
    let mut shares = meter.zeros(c.batch * c.heads * s * s);
    let mut mixed = meter.zeros(x.len());
    let scale = 1.0 / (d as f32).sqrt();
    for head in heads(c) {
        let at = |i: usize| (head.first_row + i) * width + head.first_column;
        meter.spend(4 * s * s * d);
        for i in 0..s {
            let qi = &q[at(i)..][..d];
            let p = &mut shares[head.shares + i * s..][..s];
            let mut most = f32::NEG_INFINITY;
            for (j, p) in p[..=i].iter_mut().enumerate() {
                let kj = &k[at(j)..][..d];
                *p = scale * qi.iter().zip(kj).map(|(a, b)| a * b).sum::<f32>();
                most = most.max(*p);
            }
            let mut sum = 0.0;
            for x in &mut p[..=i] {
                *x = ops::exp(*x - most);
                sum += *x;
            }
            for (j, p) in p[..=i].iter_mut().enumerate() {
                *p /= sum;
                for e in 0..d {
                    mixed[at(i) + e] += *p * v[at(j) + e];
                }
            }
        }
    }
    let out = product(meter, &mixed, &w.out, width);
    (out, AttentionKept { normed, q, k, v, shares, mixed })
}

pub(crate) fn attention_back(
    meter: &Meter,
    c: &Config,
    w: &Attention,
    kept: &AttentionKept,
    out: &[f32],
    g: &mut Attention,
) -> Buffer {
    let (s, d, width) = (c.context, c.head(), c.width);
    let mut mixed = meter.zeros(out.len());
    accumulate_transposed(meter, &mut mixed, out, &w.out, width);
    accumulate_outer(meter, &mut g.out, &kept.mixed, out, width);
    let [mut q, mut k, mut v] = [(); 3].map(|()| meter.zeros(out.len()));
    let scale = 1.0 / (d as f32).sqrt();
    let mut p = vec![0.0f32; s];
    for head in heads(c) {
        // Twice the forward: every product has two gradients.
        meter.spend(8 * s * s * d);
        let at = |i: usize| (head.first_row + i) * width + head.first_column;
        for i in 0..s {
            let shares = &kept.shares[head.shares + i * s..][..s];
            let mut mean = 0.0;
            for j in 0..=i {
                let mut sum = 0.0;
                for e in 0..d {
                    let m = mixed[at(i) + e];
                    sum += m * kept.v[at(j) + e];
                    v[at(j) + e] += shares[j] * m;
                }
                p[j] = sum;
                mean += sum * shares[j];
            }
            for j in 0..=i {
                // Shares of one row sum to one, so what raises all of them alike does nothing.
                let score = shares[j] * (p[j] - mean) * scale;
                for e in 0..d {
                    q[at(i) + e] += score * kept.k[at(j) + e];
                    k[at(j) + e] += score * kept.q[at(i) + e];
                }
            }
        }
    }
    let n = kept.normed.out(meter, &w.gain);
    let mut n_gradient = meter.zeros(out.len());
    for (part, w, g) in [(&q, &w.q, &mut g.q), (&k, &w.k, &mut g.k), (&v, &w.v, &mut g.v)] {
        accumulate_transposed(meter, &mut n_gradient, part, w, width);
        accumulate_outer(meter, g, &n, part, width);
    }
    kept.normed.backward(meter, &n_gradient, &w.gain, &mut g.gain)
}

/// Up, a smooth bend, down.
pub(crate) fn feed(meter: &Meter, c: &Config, w: &Feed, x: &[f32]) -> (Buffer, FeedKept) {
    let (n, normed) = ops::norm(meter, x, &w.gain);
    let up = product(meter, &n, &w.up, c.width);
    drop(n);
    let bent = meter.hold(up.iter().map(|x| ops::silu(*x)).collect());
    let out = product(meter, &bent, &w.down, c.inner());
    (out, FeedKept { normed, up })
}

pub(crate) fn feed_back(meter: &Meter, c: &Config, w: &Feed, kept: &FeedKept, out: &[f32], g: &mut Feed) -> Buffer {
    let mut up = meter.zeros(kept.up.len());
    accumulate_transposed(meter, &mut up, out, &w.down, c.width);
    {
        let bent = meter.hold(kept.up.iter().map(|x| ops::silu(*x)).collect());
        accumulate_outer(meter, &mut g.down, &bent, out, c.inner());
    }
    up.iter_mut().zip(kept.up.iter()).for_each(|(g, x)| *g *= ops::silu_slope(*x));
    let n = kept.normed.out(meter, &w.gain);
    accumulate_outer(meter, &mut g.up, &n, &up, c.width);
    drop(n);
    let mut n_gradient = meter.zeros(out.len());
    accumulate_transposed(meter, &mut n_gradient, &up, &w.up, c.inner());
    kept.normed.backward(meter, &n_gradient, &w.gain, &mut g.gain)
}
