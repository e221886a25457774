//! Tensor types of a GGUF file: how many values share a block, and the block's bytes.
//!
//! $$ \text{bytes} = \frac{n}{v}\,b $$
//!
//! n values of a tensor, v to a block of b bytes. A row is a whole number of blocks, so that every tensor's size is exact.
//! Source: llama.cpp `ggml/include/ggml.h` (numbers of the types) and `ggml/src/ggml-common.h` (blocks); the same table is
//! `GGML_QUANT_SIZES` of the `gguf` package, version 0.19.0, with which the test compares it. As of 2026-11. Types that were
//! taken out again (Q4_2, Q4_3, repacked Q4_0 and IQ4_NL: 4, 5, 31 to 33, 36 to 38) are not read.

use crate::{Dtype, Gguf};

/// One type: its number in the file, its name, values of a block and bytes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorType {
    pub number: u32,
    pub name: &'static str,
    pub values: u64,
    pub bytes: u64,
}

const fn of(number: u32, name: &'static str, values: u64, bytes: u64) -> TensorType {
    TensorType { number, name, values, bytes }
}

/// Every type, by number.
pub const TYPES: [TensorType; 34] = [
    of(0, "F32", 1, 4),
    of(1, "F16", 1, 2),
    of(2, "Q4_0", 32, 18),
    of(3, "Q4_1", 32, 20),
    of(6, "Q5_0", 32, 22),
    of(7, "Q5_1", 32, 24),
    of(8, "Q8_0", 32, 34),
    of(9, "Q8_1", 32, 40),
    of(10, "Q2_K", 256, 84),
    of(11, "Q3_K", 256, 110),
    of(12, "Q4_K", 256, 144),
    of(13, "Q5_K", 256, 176),
    of(14, "Q6_K", 256, 210),
    of(15, "Q8_K", 256, 292),
    of(16, "IQ2_XXS", 256, 66),
    of(17, "IQ2_XS", 256, 74),
    of(18, "IQ3_XXS", 256, 98),
    of(19, "IQ1_S", 256, 50),
    of(20, "IQ4_NL", 32, 18),
    of(21, "IQ3_S", 256, 110),
    of(22, "IQ2_S", 256, 82),
    of(23, "IQ4_XS", 256, 136),
    of(24, "I8", 1, 1),
    of(25, "I16", 1, 2),
    of(26, "I32", 1, 4),
    of(27, "I64", 1, 8),
    of(28, "F64", 1, 8),
    of(29, "IQ1_M", 256, 56),
    of(30, "BF16", 1, 2),
    of(34, "TQ1_0", 256, 54),
    of(35, "TQ2_0", 256, 66),
    of(39, "MXFP4", 32, 17),
    of(40, "NVFP4", 64, 36),
    of(41, "Q1_0", 128, 18),
];

impl TensorType {
    pub fn numbered(number: u32) -> Option<Self> {
        TYPES.into_iter().find(|t| t.number == number)
    }

    pub fn named(name: &str) -> Option<Self> {
        TYPES.into_iter().find(|t| t.name == name)
    }

    /// Bytes of so many values; none where they are no whole number of blocks or beyond counting.
    pub fn bytes_of(self, values: u64) -> Option<u64> {
        values.is_multiple_of(self.values).then(|| (values / self.values).checked_mul(self.bytes)).flatten()
    }

    /// What llama.cpp stores instead where a row of so many values is no whole number of blocks (`tensor_type_fallback` of
    /// `src/llama-quant.cpp` of ggml-org/llama.cpp).
    #[must_use]
    pub fn fallback(self, row: u64) -> Self {
        let name = match self.name {
            "Q4_K" => "Q5_0",
            "Q5_K" => "Q5_1",
            "Q6_K" => "Q8_0",
            "Q2_K" | "Q3_K" | "TQ1_0" | "TQ2_0" => "Q4_0",
            name if name.starts_with("IQ") => "IQ4_NL",
            _ => "F16",
        };
        let shorter = Self::named(name).filter(|t| row.is_multiple_of(t.values)).or_else(|| Self::named("F16"));
        shorter.unwrap_or(self)
    }

    /// The format of a tensor that is all of this type, where that is exactly as wide.
    pub fn format(self) -> Option<Dtype> {
        let own = match self.name {
            "F32" => Dtype::Fp32,
            "F16" => Dtype::Fp16,
            "BF16" => Dtype::Bf16,
            "MXFP4" => Dtype::MxFp4,
            "NVFP4" => Dtype::NvFp4,
            _ => Dtype::Gguf(self.like()?),
        };
        (own.bits() * self.values as f64 == 8.0 * self.bytes as f64).then_some(own)
    }

    /// The format of files whose larger part is of this type.
    pub fn like(self) -> Option<Gguf> {
        let name = match self.name {
            "Q3_K" => "Q3_K_M",
            "Q8_1" | "Q8_K" => "Q8_0",
            "MXFP4" => "MXFP4_MOE",
            name => name,
        };
        Gguf::named(&name.to_ascii_lowercase())
    }
}

/// What `general.file_type` says a file mostly is.
/// Source: `enum llama_ftype` of llama.cpp `include/llama.h`.
pub(crate) fn file_type(number: u64) -> Option<Gguf> {
    let name = match number {
        2 => "q4_0",
        3 => "q4_1",
        7 => "q8_0",
        8 => "q5_0",
        9 => "q5_1",
        10 => "q2_k",
        11 => "q3_k_s",
        12 => "q3_k_m",
        13 => "q3_k_l",
        14 => "q4_k_s",
        15 => "q4_k_m",
        16 => "q5_k_s",
        17 => "q5_k_m",
        18 => "q6_k",
        19 => "iq2_xxs",
        20 => "iq2_xs",
        21 => "q2_k_s",
        22 => "iq3_xs",
        23 => "iq3_xxs",
        24 => "iq1_s",
        25 => "iq4_nl",
        26 => "iq3_s",
        27 => "iq3_m",
        28 => "iq2_s",
        29 => "iq2_m",
        30 => "iq4_xs",
        31 => "iq1_m",
        36 => "tq1_0",
        37 => "tq2_0",
        38 => "mxfp4_moe",
        40 => "q1_0",
        _ => return None,
    };
    Gguf::named(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_bytes_of_their_fields() {
        // block_q4_K: two 16-bit scales, 12 bytes of 6-bit scales, 128 of values; block_q6_K: 128 + 64 of values, 16 scales, one
        // of 16 bits; block_mxfp4: one exponent and 16 bytes of values (ggml-common.h).
        for (name, bytes) in [("Q4_K", 2 * 2 + 12 + 128), ("Q6_K", 128 + 64 + 16 + 2), ("MXFP4", 1 + 16)] {
            assert_eq!(TensorType::named(name).unwrap().bytes, bytes);
        }
        assert!(TYPES.windows(2).all(|two| two[0].number < two[1].number));
        let exact = ["F32", "F16", "Q4_0", "Q4_K", "Q5_K", "Q6_K", "Q8_0", "MXFP4", "NVFP4", "TQ1_0", "TQ2_0", "Q1_0"];
        assert!(exact.iter().all(|name| TensorType::named(name).unwrap().format().is_some()));
        assert_eq!(TensorType::named("Q4_K").unwrap().bytes_of(256 * 3), Some(432));
        assert_eq!(TensorType::named("Q4_K").unwrap().bytes_of(255), None);
        assert!((0..64).filter_map(file_type).count() == 31);
    }
}
