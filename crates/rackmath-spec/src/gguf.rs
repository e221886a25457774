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

/// A block format, a mix of them, or a group format of MLX, widest first within a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gguf {
    Q8_0,
    Q6K,
    Q5_1,
    Q5_0,
    Q5K,
    Q5KM,
    Q5KS,
    Q4_1,
    Q4_0,
    Q4K,
    Q4KM,
    Q4KS,
    Q3KM,
    Mlx8,
    Mlx4,
}

/// Every format in their order: its name as llama.cpp prints it, its bits per value, and whether scales of small blocks are
/// themselves scaled, block by block. The widths of mixes are those of whole files of Llama 2 7B.
const FORMATS: [(Gguf, &str, f64, bool); 15] = [
    (Gguf::Q8_0, "q8_0", block(2.0 + 32.0, 32.0), false),
    (Gguf::Q6K, "q6_k", block(128.0 + 64.0 + 16.0 + 2.0, 256.0), true),
    (Gguf::Q5_1, "q5_1", block(4.0 + 4.0 + 16.0, 32.0), false),
    (Gguf::Q5_0, "q5_0", block(2.0 + 4.0 + 16.0, 32.0), false),
    (Gguf::Q5K, "q5_k", block(4.0 + 12.0 + 32.0 + 128.0, 256.0), true),
    (Gguf::Q5KM, "q5_k_m", 5.68, true),
    (Gguf::Q5KS, "q5_k_s", 5.52, true),
    (Gguf::Q4_1, "q4_1", block(4.0 + 16.0, 32.0), false),
    (Gguf::Q4_0, "q4_0", block(2.0 + 16.0, 32.0), false),
    (Gguf::Q4K, "q4_k", block(4.0 + 12.0 + 128.0, 256.0), true),
    (Gguf::Q4KM, "q4_k_m", 4.84, true),
    (Gguf::Q4KS, "q4_k_s", 4.58, true),
    (Gguf::Q3KM, "q3_k_m", 3.91, true),
    (Gguf::Mlx8, "mlx-8bit", block(4.0 + 64.0, 64.0), false),
    (Gguf::Mlx4, "mlx-4bit", block(4.0 + 32.0, 64.0), false),
];

const fn block(bytes: f64, values: f64) -> f64 {
    8.0 * bytes / values
}

impl Gguf {
    pub fn all() -> impl Iterator<Item = Self> {
        FORMATS.iter().map(|(format, ..)| *format)
    }

    pub fn name(self) -> &'static str {
        FORMATS[self as usize].1
    }

    pub fn bits(self) -> f64 {
        FORMATS[self as usize].2
    }

    /// Whether scales of small blocks are themselves scaled, block by block.
    pub fn nested(self) -> bool {
        FORMATS[self as usize].3
    }

    /// Reads a name, `_` and `-` alike.
    pub fn named(text: &str) -> Option<Self> {
        let text = text.replace('_', "-");
        Self::all().find(|g| g.name().replace('_', "-") == text)
    }
}

#[cfg(test)]
mod tests {
    use super::Gguf::{self, Mlx4, Q4_0, Q4K, Q4KM, Q5K, Q5KS, Q6K, Q8_0};

    #[test]
    fn blocks_are_as_wide_as_their_bytes_say_and_mixes_lie_between_them() {
        assert!(Gguf::all().enumerate().all(|(i, format)| format as usize == i), "in their order");
        // 144 bytes of block_q4_K and 210 of block_q6_K hold 256 values, 18 of block_q4_0 and 34 of block_q8_0 hold 32.
        for (format, bits) in
            [(Q4K, 144.0 * 8.0 / 256.0), (Q6K, 6.5625), (Q5K, 5.5), (Q4_0, 4.5), (Q8_0, 8.5), (Mlx4, 4.5)]
        {
            assert_eq!(format.bits(), bits, "{format:?}");
        }
        for (mix, low, high) in [(Q4KM, Q4K, Q6K), (Q5KS, Q5K, Q6K)] {
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
