//! Reads tables of timings into products and passes.

use crate::CalibrateError;
use crate::rows::{csv, json, present};
use rackmath_spec::GemmFormat;
use rackmath_theory::operator::gemm::{Product, Scaling};
use rackmath_units::{Fraction, Seconds};
use serde::Deserialize;
use std::path::Path;

/// The tables of products that are understood: columns as in aiconfigurator's database, and our own H200 timings.
pub const FILES: [&str; 5] = [
    "kernel_gemm_a100.csv",
    "kernel_gemm_h100.csv",
    "kernel_gemm_b200.csv",
    "kernel_gemm_l40s.csv",
    "h200_torch/gemm.json",
];

/// Copies of the weights in rotation, at most.
const COPIES: f64 = 5.0;
/// What a cached weight costs of a read from memory: L40S weights of 16 MiB are read at 2 to 2.6 times the bandwidth, floor
/// included.
const CACHED_COST: f64 = 0.15;

/// A timed product.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The chip, as the table calls it.
    pub chip: String,
    /// The engine.
    pub backend: String,
    pub format: GemmFormat,
    /// Its size.
    pub product: Product,
    /// What the timing holds besides the product.
    pub scaling: Scaling,
    /// How long it took.
    pub measured: Seconds,
    /// A mark of the table, empty where the row is sound.
    pub quality: String,
}

/// A timed pass over activations.
#[derive(Clone, Debug, PartialEq)]
pub struct PassRow {
    /// The chip, as the catalogue calls it.
    pub chip: String,
    /// `compute_scale` or `scale_matrix`.
    pub op: String,
    /// The activations.
    pub product: Product,
    /// How long it took.
    pub measured: Seconds,
}

#[derive(Deserialize)]
struct RawRow {
    backend: String,
    gemm_dtype: String,
    m: f64,
    n: f64,
    k: f64,
    latency_us: f64,
    #[serde(default)]
    quality: String,
}

#[derive(Deserialize)]
struct RawTorch {
    prec: String,
    #[serde(rename = "M")]
    m: f64,
    #[serde(rename = "N")]
    n: f64,
    #[serde(rename = "K")]
    k: f64,
    s: f64,
}

#[derive(Deserialize)]
struct RawPass {
    system: String,
    op: String,
    m: f64,
    k: f64,
    latency_us: f64,
}

/// All products of a folder; rows above the memory's peak that no cache explains are left out.
pub fn products(folder: &Path) -> Result<Vec<Row>, CalibrateError> {
    let catalog = rackmath_catalog::embedded();
    let mut rows = Vec::new();
    for (path, name) in present(folder, &FILES, |file| file)? {
        if let Some(chip) = name.strip_prefix("kernel_gemm_").and_then(|n| n.strip_suffix(".csv")) {
            let chip_noun = catalog.chip(chip)?;
            // Sheets write MB for MiB. The caches of chips with HBM are two halves that both keep what all cores read.
            let whole = chip_noun.memory.kind.starts_with("GDDR");
            let share = if whole { 1.0 } else { 0.5 };
            let l2 = chip_noun.physical.l2.as_ref().map_or(0.0, |l| l.value.get() * share * 1.048576);
            rows.extend(csv(&path)?.into_iter().filter_map(|raw| row(chip, l2, whole, raw)));
        } else {
            rows.extend(json(&path)?.into_iter().map(torch));
        }
    }
    Ok(rows)
}

fn row(chip: &str, l2: f64, whole: bool, raw: RawRow) -> Option<Row> {
    let format = match raw.gemm_dtype.as_str() {
        "bfloat16" | "float16" => GemmFormat::Bf16,
        "fp8" => GemmFormat::Fp8,
        "fp8_block" => GemmFormat::Fp8Block,
        "nvfp4" => GemmFormat::NvFp4,
        "sq" => GemmFormat::Int8,
        "int8_wo" => GemmFormat::WeightInt8,
        "int4_wo" => GemmFormat::WeightInt4,
        _ => return None,
    };
    if raw.quality == "over_peak" {
        return None;
    }
    let cold = cold(l2, raw.n * raw.k * format.weight().get(), whole && raw.backend == "trtllm" && raw.m > 1.0);
    Some(Row {
        chip: chip.to_owned(),
        backend: raw.backend,
        format,
        product: Product { cold: Fraction::new(cold), ..Product::new(raw.m, raw.n, raw.k) },
        scaling: Scaling::Dynamic,
        measured: Seconds::us(raw.latency_us),
        quality: raw.quality,
    })
}

/// The share of the weights that comes from memory. A product with enough rows is timed with as many copies of its weights as
/// cover the cache, so that sizes that divide a cache in one piece stay in it; the other timings rotate all copies.
fn cold(l2: f64, weights: f64, covering: bool) -> f64 {
    let copies = if covering { (l2 / weights).ceil().min(COPIES) } else { COPIES };
    // On L40S all is cached up to the size of the cache, about half at 1.03 of it, nothing at 1.06.
    let beyond = (copies * weights / l2 - 1.0) / 0.06;
    beyond.clamp(CACHED_COST, 1.0)
}

fn torch(raw: RawTorch) -> Row {
    Row {
        chip: "h200".to_owned(),
        backend: "torch".to_owned(),
        format: if raw.prec == "fp8" { GemmFormat::Fp8 } else { GemmFormat::Bf16 },
        product: Product::new(raw.m, raw.n, raw.k),
        scaling: Scaling::Given,
        measured: Seconds::s(raw.s),
        quality: String::new(),
    }
}

/// All passes of a folder; none when the table is not there.
pub fn passes(folder: &Path) -> Result<Vec<PassRow>, CalibrateError> {
    let path = folder.join("kernel_quantize.csv");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let read = |raw: RawPass| PassRow {
        chip: raw.system,
        op: raw.op,
        product: Product::new(raw.m, 1.0, raw.k),
        measured: Seconds::us(raw.latency_us),
    };
    Ok(csv(&path)?.into_iter().map(read).collect())
}
