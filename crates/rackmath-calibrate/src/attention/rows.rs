//! Reads the tables: `kernel_attention_<chip>.csv`, `kernel_mla.csv`, and our own `h200_torch/attention.json`.

use super::{Key, Kind, Work};
use crate::CalibrateError;
use crate::rows::{csv, json};
use rackmath_spec::{Chip, Math};
use rackmath_theory::operator::Silicon;
use rackmath_theory::operator::attention::{DecodeWork, PrefillWork};
use rackmath_theory::operator::mla::Latent;
use rackmath_units::BytesPerParam;
use serde::Deserialize;
use std::path::Path;

/// One measurement.
#[derive(Clone, Debug)]
pub struct Row {
    /// The chip's catalogue id.
    pub chip: String,
    /// Which kernel it is.
    pub key: Key,
    /// Heads, head size and window.
    pub shape: String,
    /// The chip in the arithmetic of the kernel.
    pub silicon: Silicon,
    /// What was done.
    pub work: Work,
    /// Seconds it took.
    pub measured: f64,
}

/// Chips with tables, as the tables call them.
const CHIPS: [&str; 9] = ["a100", "l40s", "h100", "h200", "b200", "gb200", "b300", "gb300", "rtxpro6000"];

/// All rows of a folder that can be used; rows above the peak of their chip cannot.
pub fn read(folder: &Path) -> Result<Vec<Row>, CalibrateError> {
    let catalog = rackmath_catalog::embedded();
    let mut rows = Vec::new();
    for chip in CHIPS {
        let path = folder.join(format!("kernel_attention_{chip}.csv"));
        if path.exists() {
            let chip = catalog.chip(chip)?;
            for raw in csv::<RawAttention>(&path)? {
                rows.extend(grouped(&chip, &raw));
            }
        }
    }
    let path = folder.join("kernel_mla.csv");
    if path.exists() {
        for raw in csv::<RawLatent>(&path)? {
            let chip = raw.system.trim_end_matches("_sxm").replace('_', "");
            if !CHIPS.contains(&&*chip) {
                continue;
            }
            rows.push(latent(&*catalog.chip(&chip)?, &raw));
        }
    }
    rows.extend(h200(folder, "torch")?);
    if rows.is_empty() {
        let expected = vec!["kernel_attention_<chip>.csv", "kernel_mla.csv", "h200_torch/attention.json"];
        return Err(CalibrateError::nothing(folder, expected));
    }
    Ok(rows)
}

/// Our own measurements on one H200, PyTorch's or as if an engine had run them; nothing when they are not there.
pub fn h200(folder: &Path, backend: &str) -> Result<Vec<Row>, CalibrateError> {
    let path = folder.join("h200_torch/attention.json");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let chip = rackmath_catalog::embedded().chip("h200")?;
    let rows = json::<RawTorch>(&path)?.into_iter().filter_map(|r| {
        let decode = r.kind == "decode";
        let raw = RawAttention {
            phase: r.kind,
            backend: backend.to_owned(),
            num_heads: r.heads,
            num_kv_heads: r.kv_heads,
            head_dim: r.head,
            batch_size: r.batch,
            isl: if decode { 1.0 } else { r.context },
            past_kv: if decode { r.context - 1.0 } else { 0.0 },
            latency_us: r.seconds * 1e6,
            ..RawAttention::default()
        };
        grouped(&chip, &raw)
    });
    Ok(rows.collect())
}

fn grouped(chip: &Chip, raw: &RawAttention) -> Option<Row> {
    if raw.quality == "over_peak" {
        return None;
    }
    let (math8, kv8) = (raw.attn_dtype == "fp8", raw.kv_cache_dtype == "fp8");
    let width = BytesPerParam::new(if kv8 { 1.0 } else { 2.0 });
    let heads = (raw.num_heads, raw.num_kv_heads);
    let window = (raw.window_size > 0.0).then_some(raw.window_size);
    let decode = raw.phase == "decode";
    let work = if decode {
        let length = raw.past_kv + raw.isl;
        let context = window.map_or(length, |w| length.min(w));
        Work::Decode(DecodeWork::grouped(raw.batch_size, context, heads, raw.head_dim, width))
    } else {
        let work = PrefillWork::grouped(raw.batch_size, raw.isl, heads, raw.head_dim, width);
        Work::Prefill(PrefillWork { past: raw.past_kv, window, ..work })
    };
    // The one engine that brings two libraries for one chip.
    let library = raw.backend == "sglang" && raw.kernel_source == "flashinfer" && chip.generation == "blackwell";
    let backend = if library { "sglang-flashinfer" } else { raw.backend.as_str() };
    // One engine takes another decode kernel when heads are not shared.
    let heads = match (decode && raw.backend == "trtllm", raw.num_heads > raw.num_kv_heads) {
        (false, _) => "",
        (true, true) => "grouped",
        (true, false) => "single",
    };
    Some(Row {
        chip: chip.id.clone(),
        key: Key {
            kind: Kind::Grouped,
            decode,
            generation: chip.generation.clone(),
            backend: backend.to_owned(),
            heads,
            math8,
            kv8,
        },
        shape: format!("{}/{}x{} w{}", raw.num_heads, raw.num_kv_heads, raw.head_dim, raw.window_size),
        silicon: silicon(chip, math8),
        work,
        measured: raw.latency_us * 1e-6,
    })
}

fn latent(chip: &Chip, raw: &RawLatent) -> Row {
    let kv8 = raw.kv_cache_dtype == "fp8";
    // The sizes of DeepSeek-V3, which the table measures.
    let latent = Latent { heads: raw.num_heads, rank: 512.0, rope: 64.0, nope: 128.0, value: 128.0 };
    let decode = raw.phase == "decode";
    let work = if decode {
        let width = BytesPerParam::new(if kv8 { 1.0 } else { 2.0 });
        Work::Decode(latent.decode(raw.batch_size, raw.past_kv + raw.isl, width))
    } else {
        Work::Prefill(latent.prefill(raw.batch_size, raw.isl, raw.past_kv))
    };
    Row {
        chip: chip.id.clone(),
        // An 8-bit latent cache is multiplied in 8 bits where the chip can.
        key: Key {
            kind: Kind::Latent,
            decode,
            generation: chip.generation.clone(),
            backend: raw.backend.clone(),
            heads: "",
            math8: kv8,
            kv8,
        },
        shape: format!("{} heads", raw.num_heads),
        silicon: silicon(chip, kv8),
        work,
        measured: raw.latency_us * 1e-6,
    }
}

fn silicon(chip: &Chip, math8: bool) -> Silicon {
    let eight = if math8 { Silicon::of(chip, Math::Fp8) } else { None };
    eight.or(Silicon::of(chip, Math::Bf16)).expect("every chip of the tables has a 16-bit peak")
}

#[derive(Default, Deserialize)]
struct RawAttention {
    phase: String,
    backend: String,
    kernel_source: String,
    attn_dtype: String,
    kv_cache_dtype: String,
    num_heads: f64,
    num_kv_heads: f64,
    head_dim: f64,
    window_size: f64,
    batch_size: f64,
    isl: f64,
    past_kv: f64,
    latency_us: f64,
    quality: String,
}

#[derive(Deserialize)]
struct RawLatent {
    system: String,
    phase: String,
    backend: String,
    kv_cache_dtype: String,
    num_heads: f64,
    batch_size: f64,
    isl: f64,
    past_kv: f64,
    latency_us: f64,
}

#[derive(Deserialize)]
struct RawTorch {
    kind: String,
    #[serde(rename = "H")]
    heads: f64,
    #[serde(rename = "Hk")]
    kv_heads: f64,
    #[serde(rename = "D")]
    head: f64,
    #[serde(rename = "S")]
    context: f64,
    #[serde(rename = "B")]
    batch: f64,
    #[serde(rename = "s")]
    seconds: f64,
}
