//! How far one flipped bit or sign spreads: ciphers want half of everything to change, networks want nothing to.
//!
//! A cipher that mixes well changes half its output bits after a few rounds. A random network of signs does the same,
//! more slowly; residual connections and norms are what keeps a trained network from it (lecture D54).

use crate::drift::{bent, times};
use crate::feistel;
use rackmath_units::Chance;
use strum::Display;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Display)]
pub enum Mixer {
    #[strum(to_string = "Feistel, 64 bits")]
    Feistel,
    /// sign(W x).
    #[strum(to_string = "sign network")]
    Signs,
    /// tanh(3 W x): chaotic.
    #[strum(to_string = "tanh, gain 3")]
    SteepTanh,
    /// tanh(W x): tame.
    #[strum(to_string = "tanh, gain 1")]
    Tanh,
    /// x + W2 relu(W1 norm(x)).
    #[strum(to_string = "residual, pre-norm")]
    Residual,
}

impl Mixer {
    pub const ALL: [Self; 5] = [Self::Feistel, Self::Signs, Self::SteepTanh, Self::Tanh, Self::Residual];

    /// Share of output bits or signs that change with one of the input, after 0, 1, ... `depth` rounds.
    pub fn spread(self, depth: usize, seed: u64) -> Vec<f64> {
        match self {
            Self::Feistel => (0..=depth).map(|rounds| feistel_spread(rounds, seed)).collect(),
            network => network_spread(network, depth, seed),
        }
    }
}

/// Every bit of some blocks flipped in turn.
fn feistel_spread(rounds: usize, seed: u64) -> f64 {
    const BLOCKS: u64 = 64;
    let mut chance = Chance::new(seed);
    let run = |block: u64| {
        let (x, y) = feistel::forward((block >> 32) as u32, block as u32, rounds, feistel::mixing);
        u64::from(x) << 32 | u64::from(y)
    };
    let mut changed = 0;
    for _ in 0..BLOCKS {
        let block = chance.bits();
        for bit in 0..64 {
            changed += (run(block) ^ run(block ^ 1 << bit)).count_ones();
        }
    }
    f64::from(changed) / (BLOCKS * 64 * 64) as f64
}

const WIDTH: usize = 512;
/// Inputs, each with one sign flipped.
const TRIALS: usize = 8;

fn network_spread(mixer: Mixer, depth: usize, seed: u64) -> Vec<f64> {
    let mut chance = Chance::new(seed);
    let mut pairs: Vec<(Vec<f32>, Vec<f32>)> = (0..TRIALS)
        .map(|trial| {
            let x: Vec<f32> = chance.spread(WIDTH, 1.0).iter().map(|x| x.signum()).collect();
            let mut flipped = x.clone();
            flipped[trial] = -flipped[trial];
            (x, flipped)
        })
        .collect();
    let mut out = vec![share(&pairs)];
    for _ in 0..depth {
        let size = 1.0 / (WIDTH as f32).sqrt();
        let up = chance.spread(WIDTH * WIDTH, size);
        let down = if mixer == Mixer::Residual { chance.spread(WIDTH * WIDTH, size * 2f32.sqrt()) } else { Vec::new() };
        let matrices = (up, down);
        for (a, b) in &mut pairs {
            *a = layer(mixer, &matrices, a);
            *b = layer(mixer, &matrices, b);
        }
        out.push(share(&pairs));
    }
    out
}

fn layer(mixer: Mixer, matrices: &(Vec<f32>, Vec<f32>), x: &[f32]) -> Vec<f32> {
    let bend = |gain: f32| times(&matrices.0, x).map(|z| tanh(gain * z)).collect();
    match mixer {
        Mixer::Signs => times(&matrices.0, x).map(f32::signum).collect(),
        Mixer::SteepTanh => bend(3.0),
        Mixer::Tanh => bend(1.0),
        Mixer::Residual => x.iter().zip(bent(matrices, x)).map(|(x, d)| x + d).collect(),
        Mixer::Feistel => unreachable!("a Feistel network has no layers of numbers"),
    }
}

/// 1 - 2 / (e^2x + 1).
fn tanh(x: f32) -> f32 {
    1.0 - 2.0 / (crate::ops::exp(2.0 * x) + 1.0)
}

fn share(pairs: &[(Vec<f32>, Vec<f32>)]) -> f64 {
    let changed: usize = pairs
        .iter()
        .map(|(a, b)| a.iter().zip(b).filter(|(a, b)| a.is_sign_negative() != b.is_sign_negative()).count())
        .sum();
    changed as f64 / (pairs.len() * WIDTH) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cipher_mixes_in_three_rounds_and_a_residual_stack_never() {
        // 64-bit Feistel: 0.016, 0.135, 0.382, 0.502 after 0 to 3 rounds; each within a tenth.
        let feistel = Mixer::Feistel.spread(3, 1);
        for (got, expected) in feistel.iter().zip([0.016, 0.135, 0.382, 0.502]) {
            assert!((got - expected).abs() < 0.1 * expected, "{feistel:?}");
        }
        // Signs: 0.027, 0.297, 0.475, 0.498 at depth 1, 4, 8, 16.
        let signs = Mixer::Signs.spread(16, 1);
        for (depth, expected) in [(1, 0.027), (4, 0.297), (8, 0.475), (16, 0.498)] {
            assert!((signs[depth] - expected).abs() < 0.05, "depth {depth}: {}", signs[depth]);
        }
        // tanh: gain 3 mixes by depth 32, gain 1 stays near 0.04, a residual stack near 0.03, at depth 64.
        assert!((Mixer::SteepTanh.spread(32, 1)[32] - 0.496).abs() < 0.03);
        assert!(Mixer::Tanh.spread(64, 1)[64] < 0.1);
        assert!(Mixer::Residual.spread(64, 1)[64] < 0.1);
    }
}
