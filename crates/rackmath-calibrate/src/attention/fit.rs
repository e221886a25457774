//! Fits constants by the mean of |ln(predicted / measured)| and prints them.

use super::{Constants, Key, Kind, Row, error};
use crate::search::minimum;
use crate::table::{Errors, fit_line, left_out, rounded, toml};
use rackmath_spec::SpecError;
use rackmath_spec::attention::{DecodeConstants, PrefillConstants};
use rackmath_units::{ByteRate, Fraction, Seconds};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Usable share of the last-level cache by generation: the working set at which the tables fall from cache to memory. Read
/// off the tables once; A100 and the two-die chips keep half of it near a core, L40S keeps queries and outputs elsewhere.
const CACHE_SHARES: [(&str, f64); 5] =
    [("ampere", 0.45), ("ada", 1.1), ("hopper", 0.8), ("blackwell", 0.68), ("blackwell-gddr", 1.1)];

/// Fewer rows than this are not fitted: a generation or an engine that was timed in a few points takes the nearest constants.
const LEAST_ROWS: usize = 16;

/// A fit whose median is further off than this is none: the nearest constants stand in, and an answer says so.
const POOR: f64 = 0.13;

/// The most a core can read from the last-level cache: 64 bytes a cycle at 1.8 GHz.
const CORE_LIMIT: f64 = 115.0;

/// Corner of grouped decode, and of latent decode, where H200 is limited by compute at 65 % of its peak.
const DECODE_CORNERS: (f64, f64) = (4.0, 8.0);

/// Tiles and corners a prefill fit chooses from.
const PREFILL_CHOICES: [(f64, f64); 4] = [(64.0, 1.0), (128.0, 1.0), (64.0, 2.0), (128.0, 2.0)];

/// Share of peak of grouped decode, which no row shows: its products always hide behind the read.
const HIDDEN_COMPUTE: f64 = 0.6;

fn share_of(generation: &str) -> f64 {
    CACHE_SHARES.iter().find(|(g, _)| *g == generation).map_or(0.68, |(_, s)| *s)
}

/// A share, however far the search strays.
fn share(value: f64) -> Fraction {
    Fraction::new(value.clamp(0.01, 1.0))
}

fn decode_of(p: &[f64], key: &Key) -> Constants {
    Constants::Decode(DecodeConstants {
        floor: Seconds::us(p[0]),
        block: Seconds::us(p[1].max(0.01)),
        block_rows: 32.0,
        tile_rows: 1.0,
        compute: if key.kind == Kind::Latent { share(p[7]) } else { Fraction::new(HIDDEN_COMPUTE) },
        memory: share(p[2]),
        ramp: Seconds::us(p[3].max(0.01)),
        cache_rate: ByteRate::gb_per_s(p[4].clamp(1.0, CORE_LIMIT)),
        core_rate: ByteRate::gb_per_s(p[5].clamp(1.0, CORE_LIMIT)),
        splits: p[6].clamp(1.0, 256.0),
        cache_share: share_of(&key.generation),
        corner: if key.kind == Kind::Latent { DECODE_CORNERS.1 } else { DECODE_CORNERS.0 },
    })
}

fn prefill_of(p: &[f64], key: &Key, (tile, corner): (f64, f64)) -> Constants {
    Constants::Prefill(PrefillConstants {
        floor: Seconds::us(p[0]),
        block: Seconds::us(p[1].max(0.01)),
        tile,
        compute: share(p[2]),
        memory: share(p[3]),
        cache_rate: ByteRate::gb_per_s(p[4].clamp(1.0, CORE_LIMIT)),
        cache_share: share_of(&key.generation),
        corner,
    })
}

fn fitted(rows: &[&Row], key: &Key) -> Constants {
    let loss = |constants: &Constants| rows.iter().map(|r| error(r, constants).abs()).sum::<f64>() / rows.len() as f64;
    let found = |start: &[f64], of: &dyn Fn(&[f64]) -> Constants| {
        of(&minimum(start, |p| loss(&of(p))).into_iter().map(rounded).collect::<Vec<f64>>())
    };
    let candidates: Vec<Constants> = if key.decode {
        // Three starts: a kernel that splits well, one that hardly does, one that never does.
        let starts = [
            [10.0, 3.0, 0.9, 10.0, 60.0, 40.0, 64.0, 0.6],
            [10.0, 1.5, 0.8, 3.0, 30.0, 20.0, 8.0, 0.5],
            [12.0, 5.0, 0.8, 10.0, 20.0, 10.0, 1.0, 0.3],
        ];
        starts.iter().map(|s| found(s, &|p| decode_of(p, key))).collect()
    } else {
        let start = [10.0, 1.0, 0.6, 0.5, 20.0];
        PREFILL_CHOICES.map(|tile| found(&start, &|p| prefill_of(p, key, tile))).to_vec()
    };
    candidates.into_iter().min_by(|a, b| loss(a).total_cmp(&loss(b))).expect("there are candidates")
}

fn by_key(rows: &[Row], keep: impl Fn(&Row) -> bool) -> BTreeMap<&Key, Vec<&Row>> {
    let mut keys: BTreeMap<&Key, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|r| keep(r)) {
        keys.entry(&row.key).or_default().push(row);
    }
    keys.retain(|_, rows| rows.len() >= LEAST_ROWS);
    keys
}

/// Errors of rows whose head shape the constants have not seen, for the engine with many shapes.
pub(super) fn without_each_shape(rows: &[Row]) -> Result<Vec<(&Row, f64)>, SpecError> {
    let mut errors = Vec::new();
    for (key, rows) in by_key(rows, |r| r.key.kind == Kind::Grouped && r.key.backend == "trtllm") {
        let off = |constants: &Constants, row: &Row| Ok(error(row, constants));
        errors.extend(left_out(&rows, |r| r.shape.as_str(), |kept| Ok(fitted(kept, key)), off)?);
    }
    Ok(errors)
}

const OWN_SOURCES: &str = r#"torch = "fit of the mean |ln(predicted / measured)| on h200_torch/attention.json: one H200, CUDA 13.0, PyTorch 2.11, graph replay, the faster of the flash and cuDNN kernels of scaled_dot_product_attention, 2026-11"
fa2 = "rule: FlashAttention-2 as PyTorch calls it once sequences times KV heads fill 0.8 of twice the cores (num_splits_heuristic in flash_api.cpp, tiles in flash_fwd_launch_template.h); rates of FlashAttention-2 on H100 from arXiv 2407.08608, figure 5, 2024-07; floor and memory of the row above"
"#;

/// How prompts carry over within Hopper, the one generation of which chips with other tensor cores are sold.
const PRODUCTS: &str = r#"default = 0.68

# What the products of a prompt's kernel would reach alone, on the chip that was measured; the rest of its time follows the cores.
[products.hopper]
share = 0.82
cores = 132.0
power = { peak = "989.4 TFLOP/s", tdp = "700 W", range = [0.8, 1.15] }
source = "products"
"#;

const PRODUCTS_SOURCE: &str = r#"products = "rule: products reach 0.905 of the peak at the clock (965.8 TFLOP/s in 16 bits on an H100 at most 1,980 MHz, 1,070 TFLOP/s there: cublasLt at all sizes, 189505.xyz?p=618, read 2026-11), and the clock of an H200 at its power limit is 1,660 MHz in attention over 16,384 tokens against 1,830 on the sheet (558 TFLOP/s with cuDNN, 700 W; 1,455 MHz and 665 TFLOP/s in products of 8,192 alone; our run on one H200, PyTorch 2.11, 2026-11)"
"#;

pub(super) fn file(rows: &[Row], kind: Kind) -> String {
    let keys = by_key(rows, |r| r.key.kind == kind);
    let mut text = head(kind);
    let mut defaults = String::new();
    for (key, rows) in keys.iter().rev() {
        let constants = fitted(rows, key);
        let errors = Errors::of(rows.iter().map(|r| error(r, &constants))).expect("a key has rows");
        if errors.fit.median > POOR {
            continue;
        }
        let source = if key.backend == "torch" { "torch" } else { "aic" };
        let fit = format!("source = \"{source}\"\n{}", fit_line(errors.fit));
        text.push_str(&entry(key, &key.generation, &constants, &fit));
        if let (Constants::Decode(c), "torch") = (constants, key.backend.as_str()) {
            let flash = Key { backend: "torch-flash".to_owned(), ..(*key).clone() };
            text.push_str(&entry(&flash, &key.generation, &Constants::Decode(unsplit(c)), "source = \"fa2\"\n"));
        }
        // Chips nobody measured are taken to run like Hopper under the most portable engine.
        let portable = if kind == Kind::Grouped { "vllm" } else { "trtllm" };
        if key.generation == "hopper" && key.backend == portable {
            defaults.push_str(&entry(key, "default", &constants, "source = \"rule\"\n"));
        }
    }
    text + &defaults
}

/// FlashAttention-2's prefill kernel used for one query: 128 rows to a tile, no splits. Its rate and its time to start a tile
/// are those published for full tiles, the floor and the memory's share those of the kernels PyTorch chooses from.
fn unsplit(torch: DecodeConstants) -> DecodeConstants {
    // Published for H100 at head size 128 without mask: 309 TFLOP/s at 512 tokens, 370 from 8,192 on.
    let (short, long, peak, cores) = (309e12, 370e12, 989.4e12, 132.0);
    let tile = 4.0 * 128.0 * 128.0 * 512.0 * cores;
    DecodeConstants {
        block: Seconds::s(tile / short - tile / long),
        block_rows: 128.0,
        tile_rows: 128.0,
        compute: share(rounded(long / peak)),
        splits: 1.0,
        ..torch
    }
}

fn head(kind: Kind) -> String {
    let (name, table) = match kind {
        Kind::Grouped => {
            ("Grouped-query and multi-head attention", "kernel_attention_{a100,l40s,h100,b200,rtxpro6000}.csv")
        }
        Kind::Latent => {
            ("Multi-head latent attention", "kernel_mla.csv (a100, l40s, h100, b200, rtxpro6000; 16 and 128 heads)")
        }
    };
    let own = if kind == Kind::Grouped { OWN_SOURCES } else { INDEX_SOURCE };
    let verb = if kind == Kind::Grouped { "fit attention" } else { "fit mla" };
    let mut text = format!(
        "# Printed by `rackmath-calibrate {verb}`; symbols in crates/rackmath-theory/src/operator/attention.rs.\n\
         name = \"{name}\"\nas_of = \"2026-11\"\n\n[sources]\n\
         aic = \"fit of the mean |ln(predicted / measured)| on {table}, stratified rows of the aiconfigurator database 0.12.0, 2026-11\"\n\
         {own}{PRODUCTS_SOURCE}rule = \"rule: not measured, taken from hopper; expect twice its spread and a floor off by half\"\n\n\
         [[alike]]\ngeneration = \"blackwell\"\nmemory = \"GDDR\"\nuses = \"blackwell-gddr\"\n\
         why = \"workstation Blackwell (sm_120) lacks the tensor memory of B200; timed on RTX PRO 6000\"\n\n\
         # Usable share of the last-level cache: where the tables fall from cache to memory.\n[cache_share]\n"
    );
    for (generation, share) in CACHE_SHARES {
        let _ = writeln!(text, "{generation} = {share}");
    }
    text + PRODUCTS + if kind == Kind::Latent { INDEX } else { "" }
}

/// What was not fitted here: read at its source.
const INDEX_SOURCE: &str = r#"index = "DeepGEMM fp8_mqa_logits, 64 heads of 128, 2,048 queries: 960 to 1,145 TFLOP/s on an H200 (1,979 by the data sheet) from 4,096 to 65,536 keys (sgl-project/sglang issue 11989, comment of 2026-01-21); heads of the sparse prompt kernel are padded to 64 on Hopper and 128 on Blackwell (vllm v1/attention/backends/mla/flashmla_sparse.py, prefill_padding, read 2026-11)"
"#;
const INDEX: &str = r#"
# The index that picks what sparse attention reads: its products in 8 bits where the chip has them, and the heads the kernel of
# the picked tokens computes at least.
[index]
compute = 0.55
heads = { hopper = 64.0, blackwell = 128.0 }
source = "index"
"#;

fn entry(key: &Key, generation: &str, constants: &Constants, evidence: &str) -> String {
    let us = |t: Seconds| format!("\"{} us\"", rounded(t.get() * 1e6));
    let rate = |r: ByteRate| format!("\"{} GB/s\"", rounded(r.get() / 1e9));
    let word = |word: &str| if word.is_empty() { String::new() } else { format!("\"{word}\"") };
    let format = |eight: bool| word(if eight { "fp8" } else { "bf16" });
    let mut lines = vec![
        ("generation", word(generation)),
        ("backend", word(&key.backend)),
        ("heads", word(key.heads)),
        ("math", format(key.math8)),
        ("kv", format(key.kv8)),
    ];
    match constants {
        Constants::Decode(c) => lines.extend([
            ("floor", us(c.floor)),
            ("block", us(c.block)),
            ("block_rows", float(c.block_rows)),
            ("tile_rows", if c.tile_rows > 1.0 { float(c.tile_rows) } else { String::new() }),
            ("compute", float(c.compute.get())),
            ("memory", float(c.memory.get())),
            ("ramp", us(c.ramp)),
            ("cache_rate", rate(c.cache_rate)),
            ("core_rate", rate(c.core_rate)),
            ("splits", float(c.splits)),
            ("corner", float(c.corner)),
        ]),
        Constants::Prefill(c) => lines.extend([
            ("floor", us(c.floor)),
            ("block", us(c.block)),
            ("tile", float(c.tile)),
            ("compute", float(c.compute.get())),
            ("memory", float(c.memory.get())),
            ("cache_rate", rate(c.cache_rate)),
            ("corner", float(c.corner)),
        ]),
    }
    toml(if key.decode { "\n[[decode]]" } else { "\n[[prefill]]" }, &lines) + evidence
}

/// A number that TOML reads as a float.
fn float(value: f64) -> String {
    format!("{value:?}")
}
