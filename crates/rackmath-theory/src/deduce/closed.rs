//! The lecture's price formulas, which take a price for a cost.
//!
//! $$ kv = \frac{w}{R}\frac{N_{act}}{L^*} \qquad MFU_{decode} = \frac{MFU_{prefill}}{r} \qquad B = \frac{B^*}{r - L/L^*} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | kv | kv | B/token | cache bytes per token of context |
//! | R, w | ridge, width | 1, B | the lecture's "300" and the bytes of a weight |
//! | L* | balanced | tokens | context at which reading the cache takes as long as computing |
//! | r | ratio | 1 | output over input price |
//! | B* | balance | sequences | ridge times sparsity |
//!
//! Each is right if prices follow cost. [`consistency`] says when two of them cannot be right together (X21): a price step at
//! L* says decode is compute-bound below it, an output ratio above 1 says it is not.
//! Source: lecture D44, D45, D48, X21, X22; the fast mode's x is `board::closed::fast_x`.

use rackmath_units::{
    BytesPerParam, BytesPerToken, DollarRate, DollarsPerToken, FlopRate, Params, SecondsPerToken, Tokens,
};

/// D45: cache bytes per token from the context at which the price steps.
pub fn kv_from_crossover(ridge: f64, width: BytesPerParam, active: Params, balanced: Tokens) -> BytesPerToken {
    BytesPerToken::new(width.get() / ridge * active.get() / balanced.get())
}

/// D45 turned round: the context at which a cache of so many bytes balances.
pub fn crossover_from_kv(ridge: f64, width: BytesPerParam, active: Params, kv: BytesPerToken) -> Tokens {
    Tokens::new(width.get() / ridge * active.get() / kv.get())
}

/// D48: decode MFU over prefill MFU, and one over the pass length at which they meet.
pub fn mfu_ratio(output_over_input: f64) -> f64 {
    1.0 / output_over_input
}

/// 1c.7: batch over balance batch that explains an output ratio at a context; `None` where the cache alone costs more.
pub fn implied_batch(ratio: f64, context_over_balanced: f64) -> Option<f64> {
    (ratio > context_over_balanced).then(|| 1.0 / (ratio - context_over_balanced))
}

/// The context that explains an output ratio when the batch is endless.
pub fn implied_context(ratio: f64, balanced: Tokens) -> Tokens {
    Tokens::new(ratio * balanced.get())
}

/// Whether a price step at a context and an output ratio can both be cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Consistency {
    /// They can.
    Agree,
    /// They cannot: the step says the ratio is 1 below it.
    Contradict {
        /// Context at which the ratio would be cost, batch endless.
        context_at_large_batch: Tokens,
        /// Batch over balance batch at which it would be, no context.
        batch_at_no_context: f64,
    },
}

/// X21: a step at `balanced` against an output ratio, within a tolerance such as 0.1.
pub fn consistency(balanced: Tokens, ratio: f64, tolerance: f64) -> Consistency {
    if ratio <= 1.0 + tolerance {
        return Consistency::Agree;
    }
    Consistency::Contradict {
        context_at_large_batch: implied_context(ratio, balanced),
        batch_at_no_context: mfu_ratio(ratio),
    }
}

/// G78: what holding a million tokens for an hour costs, from two write prices and their hours; and the price at no time.
pub fn hold_price(short: (f64, f64), long: (f64, f64)) -> Option<(f64, f64)> {
    let ((p, t), (q, u)) = (short, long);
    let slope = (q - p) / (u - t);
    (u > t && q > p).then_some((slope, p - slope * t))
}

/// D51, X22: what computing one input token costs at full MFU.
pub fn ideal_input_cost(active: Params, peak: FlopRate, machine: DollarRate) -> DollarsPerToken {
    // A multiplication and an addition per parameter.
    machine * SecondsPerToken::new(2.0 * active.get() / peak.get())
}

/// D49: context at which attention FLOP of one token equal its weight FLOP.
pub fn attention_crossover(active: Params, layers: f64, heads: f64, head_dim: f64) -> Tokens {
    // Two FLOP per weight; scores and values are two products of two FLOP each.
    Tokens::new(2.0 * active.get() / (4.0 * layers * heads * head_dim))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::closed::fast_x;
    use crate::roofline::ridge;
    use proptest::prelude::*;
    use rackmath_units::ByteRate;

    fn close(got: f64, expected: f64, tolerance: f64) {
        assert!((got / expected - 1.0).abs() <= tolerance, "{got} is not {expected}");
    }

    fn byte() -> BytesPerParam {
        BytesPerParam::new(1.0)
    }

    #[test]
    fn g61_g62_g64_kv_from_the_crossover() {
        let (n, l) = (Params::new(100e9), Tokens::new(200e3));
        close(kv_from_crossover(300.0, byte(), n, l).get(), 1_666.7, 1e-4);
        for (tflop, width, expected) in [(4500.0, 1.0, 1_777.8), (9000.0, 0.5, 888.9), (2250.0, 2.0, 3_555.6)] {
            let width = BytesPerParam::new(width);
            let r = ridge(FlopRate::tflop_per_s(tflop), width, ByteRate::tb_per_s(8.0));
            close(kv_from_crossover(r, width, n, l).get(), expected, 1e-4);
        }
        close(crossover_from_kv(300.0, byte(), n, BytesPerToken::new(2048.0)).get(), 162_760.0, 1e-4);
    }

    #[test]
    fn g67_x21_five_times_input_is_a_fifth_of_the_mfu() {
        close(mfu_ratio(5.0), 0.2, 1e-12);
        // X21: with r = 5 and an endless batch L is a million; with no context B = B* / 5.
        match consistency(Tokens::new(200e3), 5.0, 0.1) {
            Consistency::Contradict { context_at_large_batch, batch_at_no_context } => {
                close(context_at_large_batch.get(), 1e6, 1e-12);
                close(batch_at_no_context, 0.2, 1e-12);
            }
            Consistency::Agree => panic!("five times input below the crossover"),
        }
        assert_eq!(consistency(Tokens::new(200e3), 1.05, 0.1), Consistency::Agree);
    }

    #[test]
    fn g69_g73_g78_and_the_fast_modes() {
        for (layers, expected) in [(1.0, 3_051_758.0), (16.0, 190_735.0), (100.0, 30_518.0)] {
            close(attention_crossover(Params::new(100e9), layers, 128.0, 128.0).get(), expected, 1e-4);
        }
        let remat = ideal_input_cost(Params::new(100e9), FlopRate::tflop_per_s(4500.0), DollarRate::per_hour(2.0));
        close(remat.as_per_mtok(), 0.024_691, 1e-4);
        let (slope, intercept) = hold_price((6.25, 5.0 / 60.0), (10.0, 1.0)).unwrap();
        close(slope, 4.0909, 1e-4);
        close(intercept, 5.909, 1e-4);
        assert!(hold_price((10.0, 1.0), (6.25, 5.0)).is_none());
        // Published fast modes: 6x and 2x for 2.5x, and a measured 7.143x.
        for (m, x) in [(6.0, 1.8), (2.0, 3.0), (7.143, 1.744)] {
            close(fast_x(m, 2.5), x, 1e-3);
        }
    }

    proptest! {
        #[test]
        fn kv_and_crossover_invert_each_other(n in 1e9..1e12_f64, l in 1e3..1e7_f64, r in 30.0..600.0_f64) {
            let kv = kv_from_crossover(r, byte(), Params::new(n), Tokens::new(l));
            prop_assert!((crossover_from_kv(r, byte(), Params::new(n), kv).get() / l - 1.0).abs() < 1e-9);
        }

        #[test]
        fn the_implied_batch_gives_the_ratio_back(r in 1.0..20.0_f64, x in 0.0..0.99_f64) {
            let b = implied_batch(r, x * r).unwrap();
            prop_assert!((1.0 / b + x * r - r).abs() < 1e-9);
        }
    }
}
