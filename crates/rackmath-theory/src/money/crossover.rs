//! What a price step or a price ratio would mean if it were cost: the lecture's reading of price sheets, as closed forms.
//!
//! $$ kv = \frac{w}{R}\frac{N_a}{L^*} \qquad r = \frac{\max(c, m)}{c} \qquad \frac{B}{B^*} = \frac{1}{r - L / L^*} \qquad L_{att} = \frac{2 N_a}{4 \sum_l n_q d} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | R, w | ridge, width | 1, B | FLOP a chip does for each byte it reads (the lecture's 300), bytes of a weight: w / R = 2 W / F |
//! | L* | crossover | tokens | context at which reading a cache takes as long as computing a token, batch endless |
//! | r | ratio | 1 | output price over input price |
//! | c, m | - | s | computing a token, reading memory for it |
//! | B, B* | batch | 1 | sequences, and the balance batch without a cache |
//! | L_att | attention_context | tokens | context at which attention multiplies as much as the weights |
//!
//! Ignores: everything about prices that is not cost. A threshold at L* and an output price above the input price cannot
//! both be cost: computing binds below L*, so r would be 1 there (X21).
//! Source: lecture D44-D50, X19, X21.

use rackmath_units::{BytesPerParam, BytesPerToken, Params, Tokens};

/// D45: bytes of a token's cache if a long-context price begins where memory overtakes compute. The lecture's numbers are a
/// ridge of 300 and a byte per weight; [`crate::roofline::ridge`] gives a chip's.
pub fn kv_from_crossover(ridge: f64, width: BytesPerParam, active: Params, crossover: Tokens) -> BytesPerToken {
    BytesPerToken::new(width.get() / ridge * active.get() / crossover.get())
}

/// D45 turned round: the context at which a cache of so many bytes balances.
pub fn crossover_from_kv(ridge: f64, width: BytesPerParam, active: Params, kv: BytesPerToken) -> Tokens {
    Tokens::new(width.get() / ridge * active.get() / kv.get())
}

/// D46: bytes of a token's cache from a shape; keys and values count twice.
pub fn kv_of_shape(layers: f64, heads: f64, head_dim: f64, bytes: f64) -> BytesPerToken {
    BytesPerToken::new(layers * 2.0 * heads * head_dim * bytes)
}

/// D48: decode MFU over prefill MFU if output costs more only because decode waits for memory; also one over the tokens per
/// pass at which prefill would be no better.
pub fn mfu_ratio(ratio: f64) -> f64 {
    1.0 / ratio
}

/// D48: batch over balance batch that explains a ratio at a context; `None` where the cache alone explains more.
pub fn implied_batch(ratio: f64, context_over_crossover: f64) -> Option<f64> {
    (ratio > context_over_crossover).then(|| 1.0 / (ratio - context_over_crossover))
}

/// The context that explains a ratio when the batch is endless.
pub fn implied_context(ratio: f64, crossover: Tokens) -> Tokens {
    crossover * ratio
}

/// Whether a price step at a context and an output ratio can both be cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Consistency {
    Agree,
    /// They cannot: the step says the ratio is 1 below it.
    Contradict {
        /// Context at which the ratio would be cost, batch endless.
        context_at_large_batch: Tokens,
        /// Batch over balance batch at which it would be, no context.
        batch_at_no_context: f64,
    },
}

/// X21: a step at the crossover against an output ratio, within a tolerance such as 0.1.
pub fn consistency(crossover: Tokens, ratio: f64, tolerance: f64) -> Consistency {
    if ratio <= 1.0 + tolerance {
        return Consistency::Agree;
    }
    Consistency::Contradict {
        context_at_large_batch: implied_context(ratio, crossover),
        batch_at_no_context: mfu_ratio(ratio),
    }
}

/// D49: context at which decoding attends with as many operations as it multiplies weights.
pub fn attention_context(active: Params, layers: f64, heads: f64, head_dim: f64) -> Tokens {
    // Two operations per weight; queries meet keys and weights meet values, a multiplication and an addition each.
    Tokens::new(2.0 * active.get() / (4.0 * layers * heads * head_dim))
}

/// D47: entries read by block selection of `n` blocks, block length chosen best: L/b summaries and n b tokens.
pub fn block_sparse_entries(context: Tokens, blocks: f64) -> f64 {
    2.0 * (blocks * context.get()).sqrt()
}

/// Native sparse attention: how it chooses what to read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nsa {
    /// Tokens a summary covers.
    pub summary: f64,
    /// Tokens between summaries.
    pub stride: f64,
    pub selected: f64,
    pub block: f64,
    pub window: f64,
}

impl Nsa {
    /// Entries a decode step reads at a context.
    pub fn entries(&self, context: Tokens) -> f64 {
        ((context.get() - self.summary) / self.stride).floor().max(0.0) + self.selected * self.block + self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::close;
    use crate::roofline::ridge;
    use proptest::prelude::*;
    use rackmath_units::{ByteRate, FlopRate};

    fn byte() -> BytesPerParam {
        BytesPerParam::new(1.0)
    }

    #[test]
    fn g61_g62_g64_kv_from_the_crossover() {
        let (n, l) = (Params::billion(100.0), Tokens::new(200e3));
        close(kv_from_crossover(300.0, byte(), n, l).get(), 1666.7, 1e-4);
        for (tflop, width, bytes) in [(4500.0, 1.0, 1777.8), (9000.0, 0.5, 888.9), (2250.0, 2.0, 3555.6)] {
            let width = BytesPerParam::new(width);
            let r = ridge(FlopRate::tflop_per_s(tflop), width, ByteRate::tb_per_s(8.0));
            close(kv_from_crossover(r, width, n, l).get(), bytes, 1e-4);
        }
        close(crossover_from_kv(300.0, byte(), n, BytesPerToken::new(2048.0)).get(), 162_760.0, 1e-4);
    }

    #[test]
    fn g63_g65_kv_from_a_shape() {
        for (layers, bytes, kv) in [(1.0, 1.0, 2048.0), (80.0, 1.0, 163_840.0), (80.0, 2.0, 327_680.0)] {
            assert_eq!(kv_of_shape(layers, 8.0, 128.0, bytes).get(), kv);
        }
        // A latent cache has no factor of two: DeepSeek V3 keeps 576 values in each of 61 layers.
        let catalog = rackmath_catalog::embedded();
        let stored = |name: &str, kv: rackmath_spec::Dtype| {
            crate::kv::cache(&catalog.model(name).unwrap(), kv).stored_per_token().get()
        };
        assert_eq!(stored("deepseek-v3", rackmath_spec::Dtype::Fp8), 35_136.0);
        assert_eq!(stored("llama-3.1-70b", rackmath_spec::Dtype::Bf16), 327_680.0);
    }

    #[test]
    fn g67_x21_five_times_input_is_a_fifth_of_the_mfu() {
        close(mfu_ratio(5.0), 0.2, 1e-12);
        assert_eq!((implied_batch(5.0, 0.0), implied_batch(5.0, 5.0)), (Some(0.2), None));
        // X21: with an endless batch the context is five crossovers; with no context the batch is a fifth of balance.
        let apart = Consistency::Contradict { context_at_large_batch: Tokens::new(1e6), batch_at_no_context: 0.2 };
        assert_eq!(consistency(Tokens::new(200e3), 5.0, 0.1), apart);
        assert_eq!(consistency(Tokens::new(200e3), 1.05, 0.1), Consistency::Agree);
    }

    #[test]
    fn g69_g71_attention_and_its_sparse_kind() {
        for (layers, tokens) in [(1.0, 3_051_758.0), (16.0, 190_735.0), (100.0, 30_518.0)] {
            close(attention_context(Params::billion(100.0), layers, 128.0, 128.0).get(), tokens, 1e-4);
        }
        let nsa = Nsa { summary: 32.0, stride: 16.0, selected: 16.0, block: 64.0, window: 512.0 };
        close(nsa.entries(Tokens::new(65_536.0)), 5630.0, 1e-3);
        close(65_536.0 / nsa.entries(Tokens::new(65_536.0)), 11.64, 1e-3);
    }

    proptest! {
        #[test]
        fn readings_are_inverse_and_the_best_block_is_the_best(
            n in 1e9f64..1e12, l in 1e3f64..1e7, r in 30.0f64..600.0, ratio in 1.0f64..20.0, x in 0.0f64..0.99,
            blocks in 1.0f64..64.0, b in 1.0f64..1e4,
        ) {
            let kv = kv_from_crossover(r, byte(), Params::new(n), Tokens::new(l));
            close(crossover_from_kv(r, byte(), Params::new(n), kv).get(), l, 1e-9);
            let batch = implied_batch(ratio, x * ratio).unwrap();
            prop_assert!((1.0 / batch + x * ratio - ratio).abs() < 1e-9);
            prop_assert!(block_sparse_entries(Tokens::new(l), blocks) <= (l / b + blocks * b) * (1.0 + 1e-12));
        }
    }
}
