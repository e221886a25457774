//! The shape of the network, its weights, and the task it learns.

use rackmath_units::Chance;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    pub vocabulary: usize,
    pub width: usize,
    /// Attention heads; they share the width.
    pub heads: usize,
    /// Blocks, each an attention and a feed-forward sublayer.
    pub depth: usize,
    pub context: usize,
    pub batch: usize,
}

impl Config {
    /// Small enough for a fraction of a second: width 32, two heads, two sequences of sixteen tokens.
    pub fn small(depth: usize) -> Self {
        Self { vocabulary: 17, width: 32, heads: 2, depth, context: 16, batch: 2 }
    }

    pub(crate) fn rows(&self) -> usize {
        self.batch * self.context
    }

    pub(crate) fn head(&self) -> usize {
        self.width / self.heads
    }

    /// Width of the feed-forward part: four times the stream's, as usual.
    pub(crate) fn inner(&self) -> usize {
        4 * self.width
    }
}

/// Every number that is learned; gradients have the same shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    pub(crate) embedding: Vec<f32>,
    pub(crate) position: Vec<f32>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) gain: Vec<f32>,
    pub(crate) head: Vec<f32>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) attention: Attention,
    pub(crate) feed: Feed,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attention {
    pub(crate) gain: Vec<f32>,
    pub(crate) q: Vec<f32>,
    pub(crate) k: Vec<f32>,
    pub(crate) v: Vec<f32>,
    pub(crate) out: Vec<f32>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Feed {
    pub(crate) gain: Vec<f32>,
    pub(crate) up: Vec<f32>,
    pub(crate) down: Vec<f32>,
}

impl Weights {
    /// Drawn from a seed, so that every layer passes on what it gets at about the same size.
    pub fn new(c: &Config, seed: u64) -> Self {
        assert!(c.width.is_multiple_of(c.heads) && c.heads > 0, "heads share the width");
        let mut chance = Chance::new(seed);
        let (d, f) = (c.width, c.inner());
        let mut matrix = |from: usize, to: usize| chance.spread(from * to, 1.0 / (from as f32).sqrt());
        let blocks = (0..c.depth)
            .map(|_| Block {
                attention: Attention {
                    gain: vec![1.0; d],
                    q: matrix(d, d),
                    k: matrix(d, d),
                    v: matrix(d, d),
                    out: matrix(d, d),
                },
                feed: Feed { gain: vec![1.0; d], up: matrix(d, f), down: matrix(f, d) },
            })
            .collect();
        let head = matrix(d, c.vocabulary);
        Self {
            embedding: chance.spread(c.vocabulary * d, 1.0),
            position: chance.spread(c.context * d, 1.0),
            blocks,
            gain: vec![1.0; d],
            head,
        }
    }

    #[must_use]
    pub(crate) fn zeros(&self) -> Self {
        let mut zeros = self.clone();
        for part in zeros.parts_mut() {
            part.fill(0.0);
        }
        zeros
    }

    pub fn parts(&self) -> Vec<&[f32]> {
        let mut all: Vec<&[f32]> = vec![&self.embedding, &self.position];
        for b in &self.blocks {
            let (a, m) = (&b.attention, &b.feed);
            all.extend([&a.gain, &a.q, &a.k, &a.v, &a.out, &m.gain, &m.up, &m.down].map(Vec::as_slice));
        }
        all.extend([self.gain.as_slice(), &self.head]);
        all
    }

    pub(crate) fn parts_mut(&mut self) -> Vec<&mut [f32]> {
        let mut all: Vec<&mut [f32]> = vec![&mut self.embedding, &mut self.position];
        for b in &mut self.blocks {
            let (a, m) = (&mut b.attention, &mut b.feed);
            all.extend(
                [&mut a.gain, &mut a.q, &mut a.k, &mut a.v, &mut a.out, &mut m.gain, &mut m.up, &mut m.down]
                    .map(Vec::as_mut_slice),
            );
        }
        all.extend([self.gain.as_mut_slice(), &mut self.head]);
        all
    }

    /// The largest relative distance of a tensor from the same tensor of `other`.
    pub fn distance(&self, other: &Self) -> f64 {
        let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|v| v * v).sum::<f64>().sqrt();
        self.parts()
            .iter()
            .zip(other.parts())
            .map(|(a, b)| {
                let off = norm(&mut a.iter().zip(b).map(|(a, b)| f64::from(*a) - f64::from(*b)));
                let size = norm(&mut b.iter().map(|b| f64::from(*b)));
                if size > 0.0 { off / size } else { off }
            })
            .fold(0.0, f64::max)
    }
}

/// Sequences that count in steps: the stride must be read off the first two tokens. Tokens and their successors.
pub(crate) fn task(c: &Config, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut chance = Chance::new(seed);
    let (mut tokens, mut next) = (Vec::new(), Vec::new());
    for _ in 0..c.batch {
        let start = chance.below(c.vocabulary as u64) as usize;
        let stride = 1 + chance.below(3) as usize;
        for i in 0..c.context {
            tokens.push((start + i * stride) % c.vocabulary);
            next.push((start + (i + 1) * stride) % c.vocabulary);
        }
    }
    (tokens, next)
}
