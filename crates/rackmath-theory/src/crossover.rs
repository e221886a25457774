//! What a price step or a price ratio would mean if it were cost: the lecture's reading of price sheets, as closed forms.
//!
//! $$ kv = \frac{2 N_a W}{F L^*} \qquad r = \frac{\max(c, m)}{c} \qquad B = \frac{B^*}{r - L / L^*} \qquad L_{att} = \frac{2 N_a}{4 \sum_l n_q d} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | L* | crossover | tokens | context at which reading a cache takes as long as computing a token, batch endless |
//! | r | ratio | 1 | output price over input price |
//! | c, m | - | s | computing a token, reading memory for it |
//! | B, B* | batch | 1 | sequences, and the balance batch without a cache |
//! | L_att | attention_context | tokens | context at which attention multiplies as much as the weights |
//!
//! Ignores: everything about prices that is not cost. A threshold at L* and an output price above the input price cannot
//! both be cost: computing binds below L*, so r would be 1 there (X21).
//! Source: lecture D44-D50, X19, X21.

use rackmath_units::{ByteRate, BytesPerToken, FlopRate, Params, Tokens};

/// D45: bytes of a token's cache if a long-context price begins where memory overtakes compute.
pub fn kv_bytes(active: Params, crossover: Tokens, peak: FlopRate, bandwidth: ByteRate) -> BytesPerToken {
    // A multiplication and an addition per active parameter.
    BytesPerToken::new(2.0 * active.get() * bandwidth.get() / (peak.get() * crossover.get()))
}

/// D45 in the lecture's units: a bandwidth-to-FLOP ratio of 1/300 and one operation per parameter.
pub fn kv_bytes_lecture(active: Params, crossover: Tokens, ridge: f64) -> BytesPerToken {
    BytesPerToken::new(active.get() / (ridge * crossover.get()))
}

/// D45 turned round: the crossover of a cache, in the lecture's units.
pub fn crossover_lecture(active: Params, kv: BytesPerToken, ridge: f64) -> Tokens {
    Tokens::new(active.get() / (ridge * kv.get()))
}

/// D46: bytes of a token's cache from a shape; keys and values count twice.
pub fn kv_of_shape(layers: f64, heads: f64, head_dim: f64, bytes: f64) -> BytesPerToken {
    BytesPerToken::new(layers * 2.0 * heads * head_dim * bytes)
}

/// What an output price above the input price says, if both are cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioReading {
    /// Tokens per pass from which on prefill is bound by compute.
    pub pass: f64,
    /// Decode MFU over prefill MFU.
    pub mfu: f64,
}

/// D48: reads an output over input price; `None` below 1.
pub fn ratio_reading(ratio: f64) -> Option<RatioReading> {
    (ratio.is_finite() && ratio >= 1.0).then(|| RatioReading { pass: ratio, mfu: 1.0 / ratio })
}

/// D48: the batch a ratio implies at a context, if decode is bound by memory; `None` when the cache alone explains more.
pub fn implied_batch(balance: f64, ratio: f64, context_over_crossover: f64) -> Option<f64> {
    let rest = ratio - context_over_crossover;
    (rest > 0.0).then(|| balance / rest)
}

/// X21: the context at which a ratio and an endless batch agree; a threshold at the crossover contradicts it unless r is 1.
pub fn context_of_ratio(ratio: f64, crossover: Tokens) -> Tokens {
    crossover * ratio
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
    /// Blocks selected.
    pub selected: f64,
    /// Tokens of a block.
    pub block: f64,
    /// Tokens of the sliding window.
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
    use proptest::prelude::*;

    fn close(got: f64, expected: f64, tolerance: f64) {
        assert!((got / expected - 1.0).abs() <= tolerance, "{got} is not {expected}");
    }

    #[test]
    fn g61_g62_g64_kv_from_the_crossover() {
        let (n, l) = (Params::billion(100.0), Tokens::new(200e3));
        close(kv_bytes_lecture(n, l, 300.0).get(), 1666.7, 1e-4);
        for (tflop, bytes) in [(4500.0, 1777.8), (9000.0, 888.9), (2250.0, 3555.6)] {
            close(kv_bytes(n, l, FlopRate::tflop_per_s(tflop), ByteRate::tb_per_s(8.0)).get(), bytes, 1e-4);
        }
        close(crossover_lecture(n, BytesPerToken::new(2048.0), 300.0).get(), 162_760.0, 1e-4);
    }

    #[test]
    fn g63_g65_kv_from_a_shape() {
        assert_eq!(kv_of_shape(1.0, 8.0, 128.0, 1.0).get(), 2048.0);
        assert_eq!(kv_of_shape(80.0, 8.0, 128.0, 1.0).get(), 163_840.0);
        assert_eq!(kv_of_shape(80.0, 8.0, 128.0, 2.0).get(), 327_680.0);
        // A latent cache has no factor of two: DeepSeek V3 keeps 576 values in each of 61 layers.
        let catalog = rackmath_spec::Catalog::embedded();
        let stored = |name: &str, kv: rackmath_spec::Dtype| {
            crate::kv::cache(&catalog.model(name).unwrap(), kv).stored_per_token().get()
        };
        assert_eq!(stored("deepseek-v3", rackmath_spec::Dtype::Fp8), 35_136.0);
        assert_eq!(stored("llama-3.1-70b", rackmath_spec::Dtype::Bf16), 327_680.0);
    }

    #[test]
    fn g67_a_ratio_of_five() {
        assert_eq!(ratio_reading(5.0), Some(RatioReading { pass: 5.0, mfu: 0.2 }));
        assert_eq!(ratio_reading(0.5), None);
        // X21: with an endless batch the context is five crossovers; with no context the batch is a fifth of balance.
        assert_eq!(context_of_ratio(5.0, Tokens::new(200e3)).get(), 1e6);
        assert_eq!(implied_batch(2400.0, 5.0, 0.0), Some(480.0));
        assert_eq!(implied_batch(2400.0, 5.0, 5.0), None);
    }

    #[test]
    fn g69_when_attention_multiplies_as_much_as_the_weights() {
        for (layers, tokens) in [(1.0, 3_051_758.0), (16.0, 190_735.0), (100.0, 30_518.0)] {
            close(attention_context(Params::billion(100.0), layers, 128.0, 128.0).get(), tokens, 1e-4);
        }
    }

    #[test]
    fn g71_native_sparse_attention() {
        let nsa = Nsa { summary: 32.0, stride: 16.0, selected: 16.0, block: 64.0, window: 512.0 };
        close(nsa.entries(Tokens::new(65_536.0)), 5630.0, 1e-3);
        close(65_536.0 / nsa.entries(Tokens::new(65_536.0)), 11.64, 1e-3);
    }

    proptest! {
        #[test]
        fn crossover_and_cache_are_inverse(n in 1e9f64..1e12, kv in 100.0f64..1e6) {
            let (n, kv) = (Params::new(n), BytesPerToken::new(kv));
            let l = crossover_lecture(n, kv, 300.0);
            prop_assert!((kv_bytes_lecture(n, l, 300.0) / kv - 1.0).abs() < 1e-12);
        }

        #[test]
        fn the_best_block_is_the_best(l in 1e3f64..1e7, n in 1.0f64..64.0, b in 1.0f64..1e4) {
            prop_assert!(block_sparse_entries(Tokens::new(l), n) <= (l / b + n * b) * (1.0 + 1e-12));
        }
    }
}
