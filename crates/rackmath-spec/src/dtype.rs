//! Number formats: how many bits a stored value really costs, and which arithmetic a chip does it in.
//!
//! Block formats store a shared scale beside a block of values, so a "4-bit" parameter costs more than half a byte:
//!
//! | format | block | scale | bits per value |
//! |--------|-------|-------|----------------|
//! | MXFP8, MXFP6, MXFP4 | 32 | 8 bits (E8M0) | 8.25, 6.25, 4.25 |
//! | NVFP4 | 16 | 8 bits (E4M3) | 4.5 |
//! | FP8 blocks of 128 x 128 | 16,384 | 32 bits | 8.002 |
//! | INT4 groups of 128 | 128 | 16 bits | 4.125 |
//! | INT4 groups of 32 | 32 | 16 bits | 4.5 |
//!
//! Source: OCP Microscaling Formats v1.0 (block 32, E8M0); NVIDIA NVFP4 (block 16, E4M3); DeepSeek-V3 report section 3.3
//! (128 x 128 weight blocks). Formats of llama.cpp and MLX stand in `gguf.rs`. Ignores: the one FP32 scale per tensor of NVFP4, and zero points of asymmetric INT4.

use crate::error::one_of;
use crate::gguf::Mix;
use crate::{Gguf, SpecError};
use rackmath_units::BytesPerParam;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::str::FromStr;
use strum::{Display, IntoStaticStr, VariantArray};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dtype {
    Fp32,
    #[default]
    Bf16,
    Fp16,
    /// 8-bit float with one scale per tensor or channel.
    Fp8,
    /// 8-bit float with one FP32 scale per 128 x 128 block.
    Fp8Block,
    MxFp8,
    Int8,
    MxFp6,
    /// A bare 4-bit float without scales: the lecture's half byte.
    Fp4,
    MxFp4,
    NvFp4,
    /// Weight-only 4-bit integers in groups of 128 (GPTQ, AWQ).
    Int4,
    /// Weight-only 4-bit integers in groups of 32.
    Int4G32,
    Gguf(Gguf),
    /// Tensors of several formats in one file, by their mean width.
    Mixed(Mix),
}

/// Every format but those of [`Gguf`], widest first: its name, and what others call it.
const NAMES: [(Dtype, &str, &[&str]); 13] = [
    (Dtype::Fp32, "fp32", &["f32", "float32", "float"]),
    (Dtype::Bf16, "bf16", &["bfloat16"]),
    (Dtype::Fp16, "fp16", &["f16", "float16", "half"]),
    (Dtype::Fp8, "fp8", FP8),
    (Dtype::Fp8Block, "fp8-block", &["fp8-block-scaled", "fp8-ds-mla"]),
    (Dtype::MxFp8, "mxfp8", &[]),
    (Dtype::Int8, "int8", &["w8a8", "w8a8-int8"]),
    (Dtype::MxFp6, "mxfp6", &[]),
    (Dtype::Fp4, "fp4", &[]),
    (Dtype::MxFp4, "mxfp4", &[]),
    (Dtype::NvFp4, "nvfp4", &["modelopt-fp4"]),
    (Dtype::Int4, "int4", &["w4a16", "awq", "gptq", "awq-marlin", "gptq-marlin"]),
    (Dtype::Int4G32, "int4-g32", &[]),
];
const FP8: &[&str] = &["float8", "fp8-e4m3", "fp8-e5m2", "float8-e4m3fn", "float8-e5m2", "e4m3", "fp8-per-tensor"];

/// An arithmetic a chip has a peak for, widest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Math {
    /// 32-bit float outside the tensor units.
    Fp32,
    Tf32,
    Bf16,
    Fp16,
    Fp8,
    Fp6,
    Fp4,
    Int8,
    Int4,
}

impl Dtype {
    pub fn bits(self) -> f64 {
        match self {
            Self::Fp32 => 32.0,
            Self::Bf16 | Self::Fp16 => 16.0,
            Self::Fp8 | Self::Int8 => 8.0,
            Self::Fp8Block => 8.0 + 32.0 / (128.0 * 128.0),
            Self::MxFp8 => 8.25,
            Self::MxFp6 => 6.25,
            Self::Fp4 => 4.0,
            Self::MxFp4 => 4.25,
            Self::NvFp4 | Self::Int4G32 => 4.5,
            Self::Int4 => 4.125,
            Self::Gguf(format) => format.bits(),
            Self::Mixed(mix) => mix.bits(),
        }
    }

    /// The format a word names, of ours and of those of transformers, vLLM, SGLang, TensorRT-LLM and llama.cpp.
    pub fn named(word: &str) -> Option<Self> {
        let lower = word.trim().to_ascii_lowercase().replace('_', "-");
        let word = lower.strip_prefix("torch.").unwrap_or(&lower);
        let own = NAMES.iter().find(|(_, name, others)| *name == word || others.contains(&word)).map(|(own, ..)| *own);
        own.or_else(|| Gguf::named(word).map(Self::Gguf))
    }

    pub fn width(self) -> BytesPerParam {
        BytesPerParam::new(self.bits() / 8.0)
    }

    /// The arithmetics weights of this format can run in, best first: a chip without the first uses the next one it has.
    pub fn maths(self) -> &'static [Math] {
        match self {
            Self::Fp32 => &[Math::Tf32, Math::Fp32],
            Self::Bf16 => &[Math::Bf16, Math::Fp16, Math::Fp32],
            Self::Fp16 => &[Math::Fp16, Math::Bf16, Math::Fp32],
            Self::Fp8 | Self::Fp8Block | Self::MxFp8 => &[Math::Fp8, Math::Bf16, Math::Fp16, Math::Fp32],
            Self::Int8 => &[Math::Int8, Math::Bf16, Math::Fp16, Math::Fp32],
            Self::MxFp6 => &[Math::Fp6, Math::Fp8, Math::Bf16, Math::Fp16, Math::Fp32],
            // Without FP4 units the weights are unpacked to 16 bits, as serving engines do.
            Self::Fp4 | Self::MxFp4 | Self::NvFp4 => &[Math::Fp4, Math::Bf16, Math::Fp16, Math::Fp32],
            // Weight-only: unpacked to 16 bits before the multiplication.
            Self::Int4 | Self::Int4G32 => &[Math::Bf16, Math::Fp16, Math::Fp32],
            Self::Gguf(_) | Self::Mixed(_) => &[Math::Fp16, Math::Bf16, Math::Fp32],
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Gguf(format) => format.name(),
            Self::Mixed(mix) => mix.like.name(),
            own => NAMES.iter().find(|(dtype, ..)| *dtype == own).map_or("", |(_, name, _)| name),
        }
    }

    /// The format of llama.cpp or MLX it is, or is mostly.
    pub fn gguf(self) -> Option<Gguf> {
        match self {
            Self::Gguf(format) => Some(format),
            Self::Mixed(mix) => Some(mix.like),
            _ => None,
        }
    }

    /// Whether files in this format store the embedding and the head in it too.
    pub fn covers_embedding(self) -> bool {
        self.bits() >= 16.0 || matches!(self, Self::Gguf(_) | Self::Mixed(_))
    }
}

impl Math {
    /// Bytes of one operand, without scales: the w that goes with this arithmetic in R.
    pub fn operand(self) -> BytesPerParam {
        BytesPerParam::new(match self {
            Self::Fp32 | Self::Tf32 => 4.0,
            Self::Bf16 | Self::Fp16 => 2.0,
            Self::Fp8 | Self::Int8 => 1.0,
            Self::Fp6 => 0.75,
            Self::Fp4 | Self::Int4 => 0.5,
        })
    }
}

impl<'de> Deserialize<'de> for Math {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        crate::file::noun::text(d)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Dtype {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let names = || NAMES.iter().map(|(_, name, _)| *name).chain(Gguf::all().map(Gguf::name));
        Self::named(text).ok_or_else(|| SpecError::unknown("number format", text, names()))
    }
}

impl FromStr for Math {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        one_of("arithmetic", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_scales_are_counted_every_name_reads_back_and_a_typo_gets_the_nearest() {
        // OCP MX: 32 values share 8 bits; NVFP4: 16 values share 8 bits.
        for (dtype, bits, shared) in [(Dtype::MxFp4, 4.0, 32.0), (Dtype::NvFp4, 4.0, 16.0), (Dtype::MxFp8, 8.0, 32.0)] {
            assert_eq!(dtype.bits(), bits + 8.0 / shared);
        }
        for dtype in NAMES.iter().map(|(own, ..)| *own).chain(Gguf::all().map(Dtype::Gguf)) {
            assert_eq!(dtype.name().parse::<Dtype>().unwrap(), dtype);
        }
        assert_eq!("torch.bfloat16".parse::<Dtype>().unwrap(), Dtype::Bf16);
        assert_eq!("Q4_K_M".parse::<Dtype>().unwrap(), Dtype::Gguf(Gguf::Q4KM));
        assert!("q4_k_n".parse::<Dtype>().unwrap_err().to_string().contains("q4_k_m"));
        let error = "nvpf4".parse::<Dtype>().unwrap_err().to_string();
        assert!(error.contains("nvfp4"), "{error}");
    }
}
