//! What the files of a checkpoint hold: the index beside them (`model.safetensors.index.json`) or the head of each.
//!
//! An index gives the bytes of all tensors and their names; the head of a `.safetensors` file gives the type and shape of each tensor, after
//! eight bytes that say how long it is. Names and types tell the format of a checkpoint whose `config.json` does not:
//!
//! | seen | format |
//! |---|---|
//! | `weight_scale_inv` | 8-bit floats in blocks of 128 x 128 |
//! | `weight_packed` or `weight` in `U8` with `weight_scale_2` or `weight_global_scale` | NVFP4 |
//! | `qweight`, `weight_packed` | 4-bit integers |
//! | most bytes in `F8_E4M3`, `I8`, `BF16`, `F16` | that type |
//!
//! Source: huggingface/safetensors README, format; names as vLLM's loaders of these formats look for them.

use crate::error::shorten;
use crate::{Dtype, SpecError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Heads are a few megabytes at most.
pub const MAX_HEAD: u64 = 100 << 20;

/// The ends of names of tensors that only narrow checkpoints have.
const MARKS: [&str; 6] =
    ["weight_scale_inv", "weight_scale_2", "weight_global_scale", "weight_packed", "qweight", "weight_scale"];

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// Bytes of all tensors.
    pub total_size: u64,
    /// Bytes of each type, where the heads of the files were read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dtypes: BTreeMap<String, u64>,
    /// Which tensors of narrow formats there are.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub marks: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Index {
    metadata: Option<IndexMetadata>,
    /// The file of each tensor.
    weight_map: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct IndexMetadata {
    /// Written as a number with a point by some.
    total_size: Option<f64>,
}

#[derive(Deserialize)]
struct Tensor {
    dtype: Option<String>,
    data_offsets: Option<(u64, u64)>,
}

impl Stored {
    /// Reads an index: what it says, or nothing where it does not say how large the tensors are, and over how many files.
    pub fn of_index(file: &str, text: &str) -> Result<(Option<Self>, usize), SpecError> {
        let bad = |_| SpecError::file(file, "not an index of safetensors").hint("expected weight_map and metadata");
        let index: Index = serde_json::from_str(text).map_err(bad)?;
        let total = index.metadata.and_then(|m| m.total_size).filter(|n| n.is_finite() && (1.0..1e15).contains(n));
        let tensors = index.weight_map.unwrap_or_default();
        let marks = tensors.keys().filter_map(|name| mark(name)).collect();
        let files: BTreeSet<&String> = tensors.values().collect();
        Ok((total.map(|n| Self { total_size: n as u64, dtypes: BTreeMap::new(), marks }), files.len()))
    }

    /// Reads the head of a file: the JSON behind its length.
    pub fn of_head(file: &str, text: &str) -> Result<Self, SpecError> {
        let bad = || SpecError::file(file, "its head is not that of a safetensors file");
        let tensors: BTreeMap<String, serde_json::Value> = serde_json::from_str(text.trim_end()).map_err(|_| bad())?;
        let mut all = Self::default();
        for (name, value) in tensors.into_iter().filter(|(name, _)| name != "__metadata__") {
            let tensor: Tensor = serde_json::from_value(value).map_err(|_| bad())?;
            let (Some(dtype), Some((from, to))) = (tensor.dtype, tensor.data_offsets) else { return Err(bad()) };
            let bytes = to.checked_sub(from).ok_or_else(bad)?;
            all.total_size = all.total_size.saturating_add(bytes);
            let of_type = all.dtypes.entry(shorten(&dtype)).or_default();
            *of_type = of_type.saturating_add(bytes);
            all.marks.extend(mark(&name));
        }
        Ok(all)
    }

    /// With another file of the same checkpoint.
    pub fn join(&mut self, other: Self) {
        self.total_size = self.total_size.saturating_add(other.total_size);
        for (dtype, bytes) in other.dtypes {
            let of_type = self.dtypes.entry(dtype).or_default();
            *of_type = of_type.saturating_add(bytes);
        }
        self.marks.extend(other.marks);
    }

    /// The narrow format of its weights; nothing where they are wide or it does not show.
    pub fn narrow(&self) -> Option<Dtype> {
        let marked = |mark: &str| self.marks.contains(mark);
        let four = marked("weight_scale_2") || marked("weight_global_scale");
        match self.widest().as_deref() {
            _ if marked("weight_scale_inv") => Some(Dtype::Fp8Block),
            Some("F8_E4M3" | "F8_E5M2") => Some(Dtype::Fp8),
            Some("I8") => Some(Dtype::Int8),
            _ if four => Some(Dtype::NvFp4),
            _ if marked("qweight") || marked("weight_packed") => Some(Dtype::Int4),
            _ => None,
        }
    }

    /// The 16 or 32 bits that most of its wide tensors are in, where types are known.
    pub fn wide(&self) -> Option<Dtype> {
        let known = [("BF16", Dtype::Bf16), ("F16", Dtype::Fp16), ("F32", Dtype::Fp32)];
        let bytes = |name: &str| self.dtypes.get(name).copied().unwrap_or(0);
        known
            .into_iter()
            .filter(|(name, _)| bytes(name) > 0)
            .max_by_key(|(name, _)| bytes(name))
            .map(|(_, dtype)| dtype)
    }

    /// The type with the most bytes.
    fn widest(&self) -> Option<String> {
        self.dtypes.iter().max_by_key(|(_, bytes)| **bytes).map(|(name, _)| name.clone())
    }
}

fn mark(name: &str) -> Option<String> {
    let last = name.rsplit('.').next().unwrap_or(name);
    MARKS.iter().find(|mark| **mark == last).map(|mark| (*mark).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_gives_bytes_and_the_marks_of_its_format() {
        let text = r#"{"metadata": {"total_size": 16060522496.0},
            "weight_map": {"model.layers.0.mlp.up_proj.weight": "a.safetensors", "model.layers.0.mlp.up_proj.weight_scale_inv": "a.safetensors"}}"#;
        let stored = Stored::of_index("index", text).unwrap().0.unwrap();
        assert_eq!((stored.total_size, stored.narrow()), (16_060_522_496, Some(Dtype::Fp8Block)));
        assert_eq!(Stored::of_index("index", r#"{"weight_map": {}}"#).unwrap(), (None, 0));
        assert!(Stored::of_index("index", "[]").is_err());
    }

    #[test]
    fn heads_of_files_add_up_by_type() {
        let one = r#"{"__metadata__": {"format": "pt"}, "a.weight": {"dtype": "BF16", "shape": [2, 4], "data_offsets": [0, 16]}}"#;
        let two = r#"{"b.qweight": {"dtype": "I32", "shape": [8], "data_offsets": [0, 32]}}"#;
        let mut stored = Stored::of_head("one", one).unwrap();
        assert_eq!((stored.narrow(), stored.wide()), (None, Some(Dtype::Bf16)));
        stored.join(Stored::of_head("two", two).unwrap());
        assert_eq!((stored.total_size, stored.narrow(), stored.wide()), (48, Some(Dtype::Int4), Some(Dtype::Bf16)));
        for bad in ["", "[]", r#"{"a": 1}"#, r#"{"a": {"dtype": "BF16", "data_offsets": [9, 1]}}"#] {
            assert!(Stored::of_head("bad", bad).is_err(), "{bad}");
        }
    }
}
