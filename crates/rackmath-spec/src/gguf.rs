//! Formats of model files that run on desks: the blocks and mixes of llama.cpp, and the groups of MLX.
//!
//! $$ b = v + \frac{o}{n} $$
//!
//! | format | values n | bytes of a block | bits per value b |
//! |--------|----------|------------------|------------------|
//! | Q4_0, Q4_1 | 32 | 2 + 16, 4 + 16 | 4.5, 5.0 |
//! | Q5_0, Q5_1 | 32 | 2 + 4 + 16, 4 + 4 + 16 | 5.5, 6.0 |
//! | Q8_0 | 32 | 2 + 32 | 8.5 |
//! | Q4_K | 256 | 4 + 12 + 128 | 4.5 |
//! | Q5_K | 256 | 4 + 12 + 32 + 128 | 5.5 |
//! | Q6_K | 256 | 128 + 64 + 16 + 2 | 6.5625 |
//! | MLX 4 and 8 bits, groups of 64 | 64 | 4 + 32, 4 + 64 | 4.5, 8.5 |
//! | Q3_K_M, Q4_K_S, Q4_K_M, Q5_K_S, Q5_K_M | mixes | by tensor | 3.91, 4.58, 4.84, 5.52, 5.68 |
//!
//! v are the bits of a value itself, o those a block of n values shares. A mix stores some tensors in wider blocks (Q4_K_M
//! keeps half of the value and down projections in Q6_K), so its width is that of a whole file and moves by a hundredth or
//! two with the model: Q4_K_M is 4.84 for Llama 2 7B, 4.83 for 13B, 4.80 for 70B. These formats store the whole model,
//! embedding and head included; arithmetic is 16 bits wide, the weights are expanded on the way.
//! Source: llama.cpp ggml/src/ggml-common.h (blocks) and examples/quantize/README.md (mixes, Llama 2 7B); MLX affine
//! quantisation, one 16-bit scale and one 16-bit bias to a group. As of 2026-11.
//! Ignores: norms, which stay in 32 bits, and the wider head of files whose name says Q4_0 or Q5_0.

use strum::{IntoStaticStr, VariantArray};

/// A block format, a mix of them, or a group format of MLX, widest first within a family; as llama.cpp prints its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
pub enum Gguf {
    #[strum(serialize = "q8_0")]
    Q8_0,
    #[strum(serialize = "q6_k")]
    Q6K,
    #[strum(serialize = "q5_1")]
    Q5_1,
    #[strum(serialize = "q5_0")]
    Q5_0,
    #[strum(serialize = "q5_k")]
    Q5K,
    #[strum(serialize = "q5_k_m")]
    Q5KM,
    #[strum(serialize = "q5_k_s")]
    Q5KS,
    #[strum(serialize = "q4_1")]
    Q4_1,
    #[strum(serialize = "q4_0")]
    Q4_0,
    #[strum(serialize = "q4_k")]
    Q4K,
    #[strum(serialize = "q4_k_m")]
    Q4KM,
    #[strum(serialize = "q4_k_s")]
    Q4KS,
    #[strum(serialize = "q3_k_m")]
    Q3KM,
    #[strum(serialize = "mlx-8bit")]
    Mlx8,
    #[strum(serialize = "mlx-4bit")]
    Mlx4,
}

fn block(bytes: f64, values: f64) -> f64 {
    8.0 * bytes / values
}

impl Gguf {
    /// Whether scales of small blocks are themselves scaled, block by block.
    pub fn nested(self) -> bool {
        matches!(
            self,
            Self::Q6K | Self::Q5K | Self::Q5KM | Self::Q5KS | Self::Q4K | Self::Q4KM | Self::Q4KS | Self::Q3KM
        )
    }

    pub fn bits(self) -> f64 {
        match self {
            Self::Q8_0 => block(2.0 + 32.0, 32.0),
            Self::Q6K => block(128.0 + 64.0 + 16.0 + 2.0, 256.0),
            Self::Q5_1 => block(4.0 + 4.0 + 16.0, 32.0),
            Self::Q5_0 => block(2.0 + 4.0 + 16.0, 32.0),
            Self::Q5K => block(4.0 + 12.0 + 32.0 + 128.0, 256.0),
            Self::Q4_1 => block(4.0 + 16.0, 32.0),
            Self::Q4_0 => block(2.0 + 16.0, 32.0),
            Self::Q4K => block(4.0 + 12.0 + 128.0, 256.0),
            Self::Mlx8 => block(4.0 + 64.0, 64.0),
            Self::Mlx4 => block(4.0 + 32.0, 64.0),
            // Whole files of Llama 2 7B.
            Self::Q5KM => 5.68,
            Self::Q5KS => 5.52,
            Self::Q4KM => 4.84,
            Self::Q4KS => 4.58,
            Self::Q3KM => 3.91,
        }
    }

    /// Reads a name, `_` and `-` alike.
    pub fn named(text: &str) -> Option<Self> {
        let text = text.replace('_', "-");
        Self::VARIANTS.iter().copied().find(|g| <&str>::from(*g).replace('_', "-") == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_as_wide_as_their_bytes_say() {
        // 144 bytes of block_q4_K and 210 of block_q6_K hold 256 values, 18 of block_q4_0 and 34 of block_q8_0 hold 32.
        assert_eq!(Gguf::Q4K.bits(), 144.0 * 8.0 / 256.0);
        assert_eq!(Gguf::Q6K.bits(), 6.5625);
        assert_eq!(Gguf::Q5K.bits(), 5.5);
        assert_eq!(Gguf::Q4_0.bits(), 4.5);
        assert_eq!(Gguf::Q8_0.bits(), 8.5);
        assert_eq!(Gguf::Mlx4.bits(), 4.5);
    }

    #[test]
    fn mixes_lie_between_the_blocks_they_are_made_of() {
        for (mix, low, high) in [(Gguf::Q4KM, Gguf::Q4K, Gguf::Q6K), (Gguf::Q5KS, Gguf::Q5K, Gguf::Q6K)] {
            assert!(low.bits() < mix.bits() && mix.bits() < high.bits());
        }
    }

    #[test]
    fn a_file_of_llama_2_7b_has_its_published_size() {
        // llama-bench prints 3.80 GiB for Q4_K_M and 6.67 GiB for Q8_0 of 6.74 billion parameters.
        let gib = |g: Gguf| 6.738e9 * g.bits() / 8.0 / f64::from(1 << 30);
        assert!((gib(Gguf::Q4KM) - 3.80).abs() < 0.01, "{}", gib(Gguf::Q4KM));
        assert!((gib(Gguf::Q8_0) - 6.67).abs() < 0.01, "{}", gib(Gguf::Q8_0));
    }
}
