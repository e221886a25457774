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
//! | TQ2_0, TQ1_0, Q1_0 | 256, 256, 128 | 64 + 2, 48 + 4 + 2, 16 + 2 | 2.0625, 1.6875, 1.125 |
//! | MXFP4_MOE (experts; the rest is mostly Q8_0) | 32 | 16 + 1 | 4.25 |
//! | MLX 3, 4, 5, 6 and 8 bits, groups of 64 | 64 | 4 + 8 bits | bits + 0.5 |
//! | Q2_K, Q3_K_S, Q3_K_M, Q3_K_L, Q4_K_S, Q4_K_M, Q5_K_S, Q5_K_M | mixes | by tensor | 3.35, 3.50, 3.91, 4.27, 4.58, 4.84, 5.52, 5.68 |
//! | Q2_K_S and IQ1_S to IQ4_NL | mixes | by tensor | 2.97 and 2.00 to 4.68 |
//!
//! v are the bits of a value itself, o those a block of n values shares. A mix stores some tensors in wider blocks (Q4_K_M
//! keeps half of the value and down projections in Q6_K), so its width is that of a whole file and moves by a hundredth or
//! two with the model: Q4_K_M is 4.84 for Llama 2 7B, 4.83 for 13B, 4.80 for 70B. These formats store the whole model,
//! embedding and head included; arithmetic is 16 bits wide, the weights are expanded on the way.
//! Source: llama.cpp ggml/src/ggml-common.h (blocks), examples/quantize/README.md (mixes, Llama 2 7B) and
//! tools/quantize/README.md at 311c2c9 (Q2_K_S and the IQ mixes, Llama 3.1 8B); MLX affine
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
    Q3KL,
    Q3KM,
    Q3KS,
    Q2K,
    Q2KS,
    Iq4Nl,
    Iq4Xs,
    Iq3M,
    Iq3S,
    Iq3Xs,
    Iq3Xxs,
    Iq2M,
    Iq2S,
    Iq2Xs,
    Iq2Xxs,
    Iq1M,
    Iq1S,
    Tq2_0,
    Tq1_0,
    Q1_0,
    Mxfp4Moe,
    Mlx8,
    Mlx6,
    Mlx5,
    Mlx4,
    Mlx3,
}

/// Every format in their order: its name as llama.cpp prints it, its bits per value, and whether scales of small blocks are
/// themselves scaled, block by block. The widths of mixes are those of whole files of Llama 2 7B, those of Q2_K_S
/// and of names with IQ of Llama 3.1 8B.
const FORMATS: [(Gguf, &str, f64, bool); 38] = [
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
    (Gguf::Q3KL, "q3_k_l", 4.27, true),
    (Gguf::Q3KM, "q3_k_m", 3.91, true),
    (Gguf::Q3KS, "q3_k_s", 3.50, true),
    (Gguf::Q2K, "q2_k", 3.35, true),
    (Gguf::Q2KS, "q2_k_s", 2.97, true),
    (Gguf::Iq4Nl, "iq4_nl", 4.68, true),
    (Gguf::Iq4Xs, "iq4_xs", 4.46, true),
    (Gguf::Iq3M, "iq3_m", 3.76, true),
    (Gguf::Iq3S, "iq3_s", 3.66, true),
    (Gguf::Iq3Xs, "iq3_xs", 3.50, true),
    (Gguf::Iq3Xxs, "iq3_xxs", 3.25, true),
    (Gguf::Iq2M, "iq2_m", 2.93, true),
    (Gguf::Iq2S, "iq2_s", 2.74, true),
    (Gguf::Iq2Xs, "iq2_xs", 2.59, true),
    (Gguf::Iq2Xxs, "iq2_xxs", 2.38, true),
    (Gguf::Iq1M, "iq1_m", 2.15, true),
    (Gguf::Iq1S, "iq1_s", 2.00, true),
    (Gguf::Tq2_0, "tq2_0", block(64.0 + 2.0, 256.0), false),
    (Gguf::Tq1_0, "tq1_0", block(48.0 + 4.0 + 2.0, 256.0), false),
    (Gguf::Q1_0, "q1_0", block(16.0 + 2.0, 128.0), false),
    (Gguf::Mxfp4Moe, "mxfp4_moe", block(16.0 + 1.0, 32.0), false),
    (Gguf::Mlx8, "mlx-8bit", block(4.0 + 64.0, 64.0), false),
    (Gguf::Mlx6, "mlx-6bit", block(4.0 + 48.0, 64.0), false),
    (Gguf::Mlx5, "mlx-5bit", block(4.0 + 40.0, 64.0), false),
    (Gguf::Mlx4, "mlx-4bit", block(4.0 + 32.0, 64.0), false),
    (Gguf::Mlx3, "mlx-3bit", block(4.0 + 24.0, 64.0), false),
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

    /// Whether MLX reads it, and llama.cpp does not.
    pub fn is_mlx(self) -> bool {
        self.name().starts_with("mlx")
    }

    /// Reads a name, `_` and `-` alike.
    pub fn named(text: &str) -> Option<Self> {
        let plain = |byte: u8| if byte == b'_' { b'-' } else { byte };
        Self::all().find(|g| g.name().bytes().map(plain).eq(text.bytes().map(plain)))
    }
}

/// The mean width of tensors of several types in one file, and what such files are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mix {
    pub like: Gguf,
    /// Bits of a value, in parts of 2^24: the bytes of a thousand billion values to a hundred thousand.
    parts: u32,
}

impl Mix {
    const PART: f64 = (1 << 24) as f64;

    pub fn new(like: Gguf, bits: f64) -> Self {
        Self { like, parts: (bits * Self::PART).round().clamp(1.0, f64::from(u32::MAX)) as u32 }
    }

    pub fn bits(self) -> f64 {
        f64::from(self.parts) / Self::PART
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
        // Blocks of 136, 98 and 50 bytes hold 256 values; a file has wider tensors beside them.
        for (mix, bytes) in [(Gguf::Iq4Xs, 136.0), (Gguf::Iq3Xxs, 98.0), (Gguf::Iq1S, 50.0)] {
            let block = bytes * 8.0 / 256.0;
            assert!(block < mix.bits() && mix.bits() < block + 0.5, "{mix:?}");
        }
        let [llama, mlx]: [Vec<f64>; 2] =
            [false, true].map(|mlx| Gguf::all().filter(|g| g.is_mlx() == mlx).map(Gguf::bits).collect());
        assert!(mlx.is_sorted_by(|a, b| a > b) && llama.len() == 33);
    }

    #[test]
    fn a_file_of_llama_2_7b_has_its_published_size() {
        // llama-bench prints 3.80 GiB for Q4_K_M and 6.67 GiB for Q8_0 of 6.74 billion parameters.
        let gib = |g: Gguf| 6.738e9 * g.bits() / 8.0 / f64::from(1 << 30);
        assert!((gib(Gguf::Q4KM) - 3.80).abs() < 0.01, "{}", gib(Gguf::Q4KM));
        assert!((gib(Gguf::Q8_0) - 6.67).abs() < 0.01, "{}", gib(Gguf::Q8_0));
    }
}
