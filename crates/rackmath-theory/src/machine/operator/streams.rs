//! Hyper-connections: several residual streams, mixed on the way out of one sublayer and into the next.
//!
//! $$ t = \min\Big(t_f + \tfrac{m f}{C c},\; t_s + \tfrac{b}{a W}\Big) \qquad f = 2\,n h\,(n^2 + 2n) \qquad
//!    b = 2\,m h\,(4n + 2) + 4\,n h\,(n^2 + 2n) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | m | rows | 1 | tokens of the pass |
//! | n, h | streams, hidden | 1 | residual streams, width of each |
//! | f | [`Mixing::flop`] | FLOP | products of a token that give the n^2 + 2n weights of the mixture |
//! | b | [`Mixing::bytes`] | B | streams read and written by the output, read by the products and by the input; the matrix in 32 bits |
//! | t_f, c, C | fused | s, FLOP/s, 1 | floor of two kernels, what a core reaches, cores |
//! | t_s, a, W | split | s, 1, B/s | floor of kernels of their own, share of the bandwidth |
//!
//! Engines take the first for few tokens and the second for many: the shorter counts. Where neither was built every step of
//! the arithmetic is a launch, and the rounds that normalise the mixture are most of them. The arithmetic of the rounds is
//! nothing: n^2 numbers of a token. Ignores: streams that are kept cut over chips.
//! Source: mHC (arXiv 2512.24880); constants in `catalog/kernels/small`.

use super::{Silicon, Timing};
use rackmath_spec::StreamKernels;
use rackmath_spec::model::Streams;
use rackmath_units::{Bytes, Flop, Seconds};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixing {
    pub hidden: f64,
    pub streams: f64,
    pub rounds: f64,
}

impl Mixing {
    pub fn of(hidden: u64, streams: Streams) -> Self {
        Self { hidden: hidden as f64, streams: streams.n as f64, rounds: streams.rounds as f64 }
    }

    fn weights(&self) -> f64 {
        // What goes in, what comes out, and a matrix between streams.
        self.streams * self.hidden * (self.streams * self.streams + 2.0 * self.streams)
    }

    /// A multiply-add is two.
    pub fn flop(&self, rows: f64) -> Flop {
        Flop::flop(2.0 * rows * self.weights())
    }

    pub fn bytes(&self, rows: f64) -> Bytes {
        Bytes::b(2.0 * rows * self.hidden * (4.0 * self.streams + 2.0) + 4.0 * self.weights())
    }
}

/// Out of one sublayer and into the next, on a chip of a generation where a small kernel takes so long.
pub fn time(
    silicon: Silicon,
    kernels: &StreamKernels,
    mixing: &Mixing,
    rows: f64,
    (generation, small): (&str, Seconds),
) -> Timing {
    let memory = mixing.bytes(rows) / (silicon.bandwidth * kernels.split.memory.get());
    let apart = |floor: Seconds| Timing { floor, compute: Seconds::ZERO, memory, time: floor + memory };
    let one = &kernels.unfused;
    if one.generations.iter().any(|g| g == generation) {
        return apart(small * (one.round_kernels * mixing.rounds + one.kernels));
    }
    let compute = mixing.flop(rows) / (kernels.fused.core_rate * silicon.cores);
    let fused =
        Timing { floor: kernels.fused.floor, compute, memory: Seconds::ZERO, time: kernels.fused.floor + compute };
    let split = apart(kernels.split.floor);
    if split.time < fused.time { split } else { fused }
}

#[cfg(test)]
mod tests {
    use super::{Mixing, time};
    use crate::operator::Silicon;
    use rackmath_spec::Math;
    use rackmath_spec::model::Streams;
    use rackmath_units::Seconds;

    fn mixing() -> Mixing {
        Mixing::of(7168, Streams { n: 4, rounds: 20 })
    }

    fn at(chip: &str, rows: f64) -> f64 {
        let catalog = rackmath_catalog::embedded();
        let (chip, small) = (catalog.chip(chip).unwrap(), catalog.small_kernels().unwrap());
        let silicon = Silicon::of(&chip, Math::Bf16).unwrap();
        time(silicon, &small.streams, &mixing(), rows, (&chip.generation, Seconds::us(1.6))).time.get() * 1e6
    }

    /// B200, graphs replayed, 4 streams of 7,168: lightseekorg/tokenspeed PR 661.
    #[test]
    fn two_fused_kernels_take_what_was_measured() {
        for (rows, us) in [(16.0, 11.9), (32.0, 15.2), (48.0, 18.0), (64.0, 21.8)] {
            assert!((at("b200", rows) / us - 1.0).abs() < 0.05, "{rows} {}", at("b200", rows));
        }
    }

    /// 24 numbers from 28,672: 1.38 MFLOP a token, and 18 rows of 14 kB moved.
    #[test]
    fn a_token_is_counted_by_hand() {
        assert!((mixing().flop(1.0).get() - 2.0 * 24.0 * 28672.0).abs() < 1e-6);
        let per_row = mixing().bytes(2.0).get() - mixing().bytes(1.0).get();
        assert!((per_row - 18.0 * 7168.0 * 2.0).abs() < 1e-6);
    }

    #[test]
    fn more_tokens_take_no_less_and_unfused_steps_take_most() {
        for chip in ["h200", "b200", "mi300x", "mi355x"] {
            let times: Vec<f64> = (0..14).map(|i| at(chip, f64::from(1 << i))).collect();
            assert!(times.windows(2).all(|w| w[0] <= w[1]), "{chip} {times:?}");
        }
        assert!(at("mi300x", 1.0) > 10.0 * at("mi355x", 1.0));
    }
}
