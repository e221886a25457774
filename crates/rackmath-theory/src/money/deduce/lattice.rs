//! Points that fill a cube evenly, the same for a seed on every machine.
//!
//! $$ x_{ij} = \left\{ \frac{i\,a^j \bmod n}{n} + s_j \right\} \qquad i = 0 \ldots n-1 $$
//!
//! | symbol | code | meaning |
//! |--------|------|---------|
//! | n | points | number of points, a power of two |
//! | a | GENERATOR | one odd number makes all coordinates (Korobov) |
//! | s_j | shift | a random shift by seed, which makes every mean unbiased |
//!
//! The generator is the best of 400 odd numbers by the worst-case error P_2 with weights 1/(1+j), taken over 2^12 to 2^20
//! points at once. Source: Korobov 1959; Cranley and Patterson 1976; Sloan and Joe 1994.

use rackmath_units::Chance;

/// Most coordinates a point can have.
pub const DIMENSIONS: usize = 19;

const GENERATOR: u64 = 810_329;

#[derive(Clone, Debug, PartialEq)]
pub struct Lattice {
    log2: u32,
    steps: [u64; DIMENSIONS],
    shift: [f64; DIMENSIONS],
}

impl Lattice {
    /// 2^`log2` points, shifted by a seed.
    pub fn new(log2: u32, seed: u64) -> Self {
        assert!(log2 <= 30, "at most 2^30 points");
        let mask = (1_u64 << log2) - 1;
        let mut steps = [1_u64 & mask; DIMENSIONS];
        for j in 1..DIMENSIONS {
            steps[j] = (steps[j - 1] * GENERATOR) & mask;
        }
        let mut chance = Chance::new(seed);
        let shift = std::array::from_fn(|_| chance.uniform());
        Self { log2, steps, shift }
    }

    pub fn points(&self) -> u64 {
        1 << self.log2
    }

    /// Coordinate `j` of point `i`, strictly between 0 and 1.
    pub fn at(&self, i: u64, j: usize) -> f64 {
        let mask = (1_u64 << self.log2) - 1;
        let x = (i.wrapping_mul(self.steps[j]) & mask) as f64 / (mask + 1) as f64 + self.shift[j];
        let x = if x >= 1.0 { x - 1.0 } else { x };
        // The shift has 53 bits, so only an exact 0 needs care.
        if x <= 0.0 { 0.5 / (mask + 1) as f64 } else { x }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_coordinate_is_even_and_pairs_are_too() {
        let lattice = Lattice::new(12, 7);
        for j in 0..DIMENSIONS {
            let mut cells = [0; 16];
            for i in 0..lattice.points() {
                cells[(lattice.at(i, j) * 16.0) as usize] += 1;
            }
            assert!(cells.iter().all(|c| (*c - 256_i32).abs() <= 1), "coordinate {j}: {cells:?}");
        }
        // The mean of a product of two coordinates is a quarter.
        for (j, k) in [(0, 1), (0, 5), (3, 11), (7, 17)] {
            let mean: f64 = (0..lattice.points()).map(|i| lattice.at(i, j) * lattice.at(i, k)).sum::<f64>()
                / lattice.points() as f64;
            assert!((mean - 0.25).abs() < 2e-3, "{j} {k}: {mean}");
        }
        // A seed gives the same bits.
        let (a, b, c) = (Lattice::new(10, 3), Lattice::new(10, 3), Lattice::new(10, 4));
        assert!((0..1024).all(|i| a.at(i, 9).to_bits() == b.at(i, 9).to_bits()));
        assert_ne!(a.at(5, 2), c.at(5, 2));
        assert!((0..1024).all(|i| (0..DIMENSIONS).all(|j| a.at(i, j) > 0.0 && a.at(i, j) < 1.0)));
    }
}
