//! Whole steps of a dense model in PyTorch, as the sum of kernels fitted elsewhere.
//!
//! $$ t = \sum_{layers} \big(t_{qkv} + t_{att} + t_o + t_{gu} + t_{down} + t_{small}\big) + t_{head} + t_{ends} \qquad
//!    t_{small} = \sum_j \Big(t_0 + \frac{m_j}{W_c}\Big) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | t_qkv, t_o, t_gu, t_down, t_head | product | s | matrix products, `operator::gemm` with backend `torch` |
//! | t_att | attention | s | `operator::attention` with backend `torch`, or `torch-flash` as PyTorch would choose |
//! | t_0, W_c | floor, copy | s, B/s | a kernel's floor in a graph and the rate of a copy, from `ceilings.json` |
//! | m_j | widths | B | what small kernel j reads and writes |
//!
//! The model is eager PyTorch captured in one graph: nothing is fused that PyTorch does not fuse, and rotary positions are
//! left out. The small kernels of a layer, in values of 16 bits per token: two norms (hidden in, hidden out), a key and
//! a value written to the cache (each read and written), two residual additions (two in, one out), SiLU of the gate (one in,
//! one out) and its product with the up half (two in, one out). At the ends: the embedding's rows and the last norm (hidden in
//! and out), and the choice of the largest logit (all logits in). The head runs on every token, in prefill too.
//!
//! scaled_dot_product_attention takes the flash kernel for one query once sequences times KV heads fill four fifths of twice
//! the cores; that kernel then no longer splits the cache (`torch-flash`). The timings of `attention.json` are of the faster of
//! two kernels and so do not show it. Below that size the constants fitted on them hold.
//! Which kernel a whole step took is not recorded. That it is flash follows from the steps of Llama 3 8B, which jump between 16
//! and 32 sequences as the rule says; so does the head on every token. No constant is fitted on whole steps. Ignores: experts; their models are skipped.

use crate::CalibrateError;
use crate::table::Table;
use rackmath_spec::attention::{AttentionKernels, Wanted};
use rackmath_spec::model::{Attention, Body, Ffn, Mixer, Mlp, Shape};
use rackmath_spec::{Catalog, Chip, Dtype, GemmFormat, Math};
use rackmath_theory::operator::Silicon;
use rackmath_theory::operator::attention::{DecodeWork, PrefillWork, Residency, decode, prefill};
use rackmath_theory::operator::gemm::{Gemm, Product, Scaling};
use rackmath_units::{ByteRate, Bytes, Seconds, float};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Blocks per core and the share of them above which FlashAttention-2 stops splitting (`num_splits_heuristic` in the
/// flash_api.cpp that PyTorch carries).
const BLOCKS_PER_CORE: f64 = 2.0;
const FULL: f64 = 0.8;
/// Query rows that rule counts to a block.
const FLASH_ROWS: f64 = 64.0;

/// Names the tables use for models of the catalogue; Llama 3 and 3.1 of one size have one shape.
const MODELS: [(&str, &str); 2] = [("llama3-8b", "llama-3.1-8b"), ("llama3-70b", "llama-3.1-70b")];

/// The score of every whole step in `h200_torch/model_*.json`.
pub fn score(folder: &Path) -> Result<Table, CalibrateError> {
    let folder = folder.join("h200_torch");
    let ceilings = ceilings(&folder.join("ceilings.json"))?;
    let catalog = Catalog::embedded();
    let (chip, gemms, attentions) = (catalog.chip("h200")?, catalog.gemm_kernels()?, catalog.attention_kernels()?);
    let kernel = gemms.find(&chip, GemmFormat::Bf16, "torch").and_then(|k| Gemm::of(&chip, k));
    let missing = |what: &str| wrong(&folder, format!("the catalogue has no {what} for {}", chip.id));
    let gemm = kernel.ok_or_else(|| missing("bf16 products of torch"))?;
    let silicon = Silicon::of(&chip, Math::Bf16).ok_or_else(|| missing("bf16 peak"))?;
    let machine = Machine { chip: &chip, silicon, gemm, attentions: &attentions, ceilings };

    let mut table = Table::new(&["model", "step", "bias"]);
    let mut all = Vec::new();
    for path in models(&folder)? {
        for row in read::<Vec<Step>>(&path)? {
            let name = MODELS.iter().find(|(theirs, _)| *theirs == row.model).map_or(row.model.as_str(), |m| m.1);
            let model = catalog.model(name)?;
            match dense(&model.body) {
                Some(stack) => all.push((row.model.clone(), row.kind.clone(), machine.error(&stack, &row))),
                None => *table.skipped.entry(format!("{name} is not a dense model")).or_default() += 1,
            }
        }
    }
    let mut groups: Vec<(String, String)> = all.iter().map(|(m, k, _)| (m.clone(), k.clone())).collect();
    groups.sort();
    groups.dedup();
    for (model, kind) in groups {
        push(&mut table, &model, &kind, all.iter().filter(|r| r.0 == model && r.1 == kind).map(|r| r.2).collect());
    }
    push(&mut table, "all", "", all.iter().map(|r| r.2).collect());
    Ok(table)
}

fn push(table: &mut Table, model: &str, kind: &str, mut errors: Vec<f64>) {
    errors.sort_by(f64::total_cmp);
    let Some(middle) = errors.get(errors.len() / 2) else { return };
    let bias = format!("{middle:+.3}");
    let distances: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
    table.push(vec![model.to_owned(), kind.to_owned(), bias], &distances);
}

/// Equal layers of attention and a gated feed-forward network.
struct Stack<'a> {
    layers: f64,
    hidden: f64,
    vocab: f64,
    attention: &'a Attention,
    mlp: &'a Mlp,
}

fn dense(body: &Body) -> Option<Stack<'_>> {
    let Body::Layers(shape) = body else { return None };
    let Shape { runs, hidden, vocab, .. } = shape.as_ref();
    let [run] = runs.as_slice() else { return None };
    let (Mixer::Attention(attention), Ffn::Dense(mlp)) = (&run.block.mixer, &run.block.ffn) else { return None };
    mlp.gated.then_some(Stack { layers: run.n as f64, hidden: *hidden as f64, vocab: *vocab as f64, attention, mlp })
}

struct Machine<'a> {
    chip: &'a Chip,
    silicon: Silicon,
    gemm: Gemm<'a>,
    attentions: &'a AttentionKernels,
    ceilings: Ceilings,
}

impl Machine<'_> {
    /// ln(predicted / measured).
    fn error(&self, stack: &Stack<'_>, row: &Step) -> f64 {
        float::ln(self.step(stack, row.kind == "decode", row.batch, row.context) / Seconds::s(row.seconds))
    }

    fn step(&self, stack: &Stack<'_>, decode: bool, batch: f64, context: f64) -> Seconds {
        let m = if decode { batch } else { batch * context };
        let Stack { hidden, vocab, attention: a, .. } = *stack;
        let width = stack.mlp.width as f64;
        let (q, kv) = ((a.heads * a.qk_dim) as f64, (a.kv_heads * a.qk_dim) as f64);
        let products = self.product(m, q + 2.0 * kv, hidden)
            + self.product(m, hidden, q)
            // Gate and up are one product of twice the width.
            + self.product(m, 2.0 * width, hidden)
            + self.product(m, hidden, width);
        let (norm, write, add) = (2.0 * hidden, 2.0 * kv, 3.0 * hidden);
        let layer = self.small(m, &[norm, norm, write, write, add, add, 2.0 * width, 3.0 * width]);
        let attention = if decode { self.decode(a, batch, context) } else { self.prefill(a, batch, context) };
        let ends = self.small(m, &[norm, norm, vocab]) + self.product(m, vocab, hidden);
        (products + layer + attention) * stack.layers + ends
    }

    fn product(&self, rows: f64, columns: f64, depth: f64) -> Seconds {
        self.gemm.time(Product::new(rows, columns, depth), Scaling::Given).time
    }

    /// Kernels that only move values of 16 bits, so many of them for each of m tokens.
    fn small(&self, m: f64, widths: &[f64]) -> Seconds {
        widths.iter().map(|w| self.ceilings.floor + Bytes::b(2.0 * m * w) / self.ceilings.copy).sum()
    }

    fn decode(&self, a: &Attention, batch: f64, context: f64) -> Seconds {
        let (heads, kv_heads) = (a.heads as f64, a.kv_heads as f64);
        let blocks = batch * kv_heads * (heads / kv_heads / FLASH_ROWS).ceil();
        let flash = blocks >= FULL * BLOCKS_PER_CORE * self.silicon.cores;
        let kernel = self.attentions.decode(self.chip, wanted(a, if flash { "torch-flash" } else { "torch" }));
        let work = DecodeWork::grouped(batch, context, (heads, kv_heads), a.qk_dim as f64, Dtype::Bf16.width());
        decode(self.silicon, &kernel.constants, &work, Residency::Memory).time
    }

    fn prefill(&self, a: &Attention, batch: f64, context: f64) -> Seconds {
        let kernel = self.attentions.prefill(self.chip, wanted(a, "torch"));
        let heads = (a.heads as f64, a.kv_heads as f64);
        let work = PrefillWork::grouped(batch, context, heads, a.qk_dim as f64, Dtype::Bf16.width());
        prefill(self.silicon, &kernel.constants, &work, Residency::Memory).time
    }
}

fn wanted<'a>(a: &Attention, backend: &'a str) -> Wanted<'a> {
    Wanted { backend, math: Dtype::Bf16, kv: Dtype::Bf16, group: a.heads / a.kv_heads }
}

#[derive(Clone, Copy)]
struct Ceilings {
    copy: ByteRate,
    floor: Seconds,
}

fn ceilings(path: &Path) -> Result<Ceilings, CalibrateError> {
    let rows: Vec<Ceiling> = read(path)?;
    let find = |kind: &str| {
        let row = rows.iter().find(|r| r.kind == kind);
        row.ok_or_else(|| wrong(path, format!("no row of kind {kind}")))
    };
    let rate = find("copy")?.rate.ok_or_else(|| wrong(path, "the copy has no rate".to_owned()))?;
    Ok(Ceilings { copy: ByteRate::b_per_s(rate), floor: Seconds::s(find("kernel_floor_graph")?.seconds) })
}

/// The files of whole steps, by name.
fn models(folder: &Path) -> Result<Vec<PathBuf>, CalibrateError> {
    let entries = std::fs::read_dir(folder).map_err(|e| wrong(folder, e.to_string()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.retain(|p| {
        let name = p.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        name.starts_with("model_") && p.extension().is_some_and(|e| e == "json")
    });
    paths.sort();
    if paths.is_empty() {
        let folder = folder.display().to_string();
        return Err(CalibrateError::Nothing { folder, expected: vec!["model_<name>.json"] });
    }
    Ok(paths)
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, CalibrateError> {
    let text = std::fs::read_to_string(path).map_err(|e| wrong(path, e.to_string()))?;
    serde_json::from_str(&text).map_err(|e| wrong(path, e.to_string()))
}

fn wrong(path: &Path, problem: String) -> CalibrateError {
    CalibrateError::File { file: path.display().to_string(), problem }
}

#[derive(Deserialize)]
struct Ceiling {
    kind: String,
    #[serde(rename = "s")]
    seconds: f64,
    rate: Option<f64>,
}

#[derive(Deserialize)]
struct Step {
    model: String,
    kind: String,
    #[serde(rename = "B")]
    batch: f64,
    #[serde(rename = "S")]
    context: f64,
    #[serde(rename = "s")]
    seconds: f64,
}

#[cfg(test)]
mod tests;
