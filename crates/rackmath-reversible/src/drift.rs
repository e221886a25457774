//! How exactly a stack of couplings comes back: forward, then backward, in three arithmetics.
//!
//! $$ (x, y) \to (y + f(x),\ x) \qquad (z, x) \to (x,\ z - f(x)) \qquad f(x) = W_2\, \mathrm{relu}(W_1\, \mathrm{norm}(x)) $$
//!
//! The inverse subtracts what was added, but a rounded sum has lost digits that no subtraction brings back, and f passes the
//! error on. Fixed point has nothing to lose: integers wrap, and x + f - f is x, as in a cipher. Source: lecture D55, D56.

use crate::step::Stored;
use rackmath_units::Chance;

/// The nearest bf16: the upper half of an f32, ties to even.
pub fn bf16(x: f32) -> f32 {
    if !x.is_finite() {
        return x;
    }
    let bits = x.to_bits();
    let even = (bits >> 16) & 1;
    f32::from_bits(bits.wrapping_add(0x7fff + even) & 0xffff_0000)
}

const GRID: f32 = 1.0 / 1_048_576.0;

pub struct Stack {
    width: usize,
    blocks: Vec<(Vec<f32>, Vec<f32>)>,
}

impl Stack {
    pub fn new(width: usize, depth: usize, seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let size = 1.0 / (width as f32).sqrt();
        let mut pair = || (chance.spread(width * width, size), chance.spread(width * width, size));
        Self { width, blocks: (0..depth).map(|_| pair()).collect() }
    }

    /// Forward through all couplings and back; `real` reads a stored number, `add` and `take` change one by a real.
    fn there_and_back<T: Copy>(
        &self,
        (mut x, mut y): (Vec<T>, Vec<T>),
        real: impl Fn(T) -> f32,
        add: impl Fn(T, f32) -> T,
        take: impl Fn(T, f32) -> T,
    ) -> (Vec<T>, Vec<T>) {
        let f = |block: usize, x: &[T]| bent(&self.blocks[block], &x.iter().map(|x| real(*x)).collect::<Vec<_>>());
        for i in 0..self.blocks.len() {
            let z = y.iter().zip(f(i, &x)).map(|(y, f)| add(*y, f)).collect();
            (x, y) = (z, x);
        }
        for i in (0..self.blocks.len()).rev() {
            let before = x.iter().zip(f(i, &y)).map(|(z, f)| take(*z, f)).collect();
            (x, y) = (y, before);
        }
        (x, y)
    }

    /// Relative distance between what went in and what came back.
    pub fn error(&self, stored: Stored, seed: u64) -> f64 {
        let mut chance = Chance::new(seed);
        let (x, y) = (chance.spread(self.width, 1.0), chance.spread(self.width, 1.0));
        if stored == Stored::Fixed {
            let start = (x.into_iter().map(on_grid).collect(), y.into_iter().map(on_grid).collect());
            return if self.fixed(start.clone()) == start { 0.0 } else { f64::INFINITY };
        }
        let round = |x: f32| if stored == Stored::Bf16 { bf16(x) } else { x };
        let start: (Vec<f32>, Vec<f32>) = (x.into_iter().map(round).collect(), y.into_iter().map(round).collect());
        let (x, y) = self.there_and_back(start.clone(), |x| x, |y, f| round(y + round(f)), |z, f| round(z - round(f)));
        let square = |a: &[f32]| a.iter().map(|a| f64::from(*a).powi(2)).sum::<f64>();
        let off = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        ((off(&x, &start.0) + off(&y, &start.1)) / (square(&start.0) + square(&start.1))).sqrt()
    }

    /// Forward and back on the integers of a grid; sums wrap.
    pub fn fixed(&self, start: (Vec<i32>, Vec<i32>)) -> (Vec<i32>, Vec<i32>) {
        let (add, take) = (|y: i32, f| y.wrapping_add(on_grid(f)), |z: i32, f| z.wrapping_sub(on_grid(f)));
        self.there_and_back(start, |x| x as f32 * GRID, add, take)
    }
}

fn on_grid(x: f32) -> i32 {
    (x / GRID).round() as i32
}

/// f of a block, with square matrices.
pub(crate) fn bent((up, down): &(Vec<f32>, Vec<f32>), x: &[f32]) -> Vec<f32> {
    let square = x.iter().map(|x| x * x).sum::<f32>() / x.len() as f32;
    let scale = 1.0 / (square + 1e-6).sqrt();
    let inner: Vec<f32> = times(up, x).map(|z| (z * scale).max(0.0)).collect();
    times(down, &inner).collect()
}

/// A square matrix times a vector.
pub(crate) fn times(w: &[f32], x: &[f32]) -> impl Iterator<Item = f32> {
    w.chunks_exact(x.len()).map(move |w| w.iter().zip(x).map(|(a, b)| a * b).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn drift_has_the_published_order_of_magnitude() {
        // bf16 keeps eight bits.
        let rounded = [1.0, 1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0, -3.1, f32::INFINITY].map(bf16);
        assert_eq!(rounded, [1.0, 1.0, 1.015625, -3.09375, f32::INFINITY]);
        // After 4, 16, 64, 256 blocks: f32 9e-8, 4e-7, 3e-6, 2e-5; bf16 6e-3, 3e-2, 0.18, 1.1; within a factor of four.
        for (depth, f32s, bf16s) in [(4, 9e-8, 6e-3), (16, 4e-7, 3e-2), (64, 3e-6, 0.18), (256, 2e-5, 1.1)] {
            let s = Stack::new(128, depth, 1);
            for (stored, expected) in [(Stored::F32, f32s), (Stored::Bf16, bf16s)] {
                let got = s.error(stored, 2);
                assert!(got / expected < 4.0 && got / expected > 0.25, "{depth} {stored:?}: {got} against {expected}");
            }
            assert_eq!(s.error(Stored::Fixed, 2), 0.0);
        }
    }

    proptest! {
        #[test]
        fn fixed_point_comes_back_bit_for_bit(seed in 0u64..1000, depth in 0usize..12, x in proptest::collection::vec(any::<i32>(), 8), y in proptest::collection::vec(any::<i32>(), 8)) {
            let stack = Stack::new(8, depth, seed);
            let start = (x, y);
            prop_assert_eq!(stack.fixed(start.clone()), start);
        }
    }
}
