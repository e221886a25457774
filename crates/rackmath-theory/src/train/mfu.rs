//! One run's FLOP per second in every convention.
//!
//! $$ \text{per token} = r_c \sum_{layers}\Big(2 \sum_{multiplied} n + 2\,\sigma\,s\,a\,(d_{qk} + d_v)\Big) + 3 \cdot 2 h V \qquad
//!    \text{MFU} = \frac{\text{per token} \times \text{tokens per second}}{\text{chips} \times F} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | r_c | passes | 1 | 3: forward and twice as much backward; 4 where a forward run again counts |
//! | sigma | scores | 1 | 1 for all scores, 1/2 for those a causal mask leaves, 0 for none (6ND) |
//! | a | heads | 1 | query heads; keys and values count their own heads, or as many as queries |
//! | h V | head | 1 | the output matrix; embeddings are looked up and never count, unless N in 6ND says so |
//! | F | peak | FLOP/s | dense peak of the format, or of 16 bits |
//!
//! With k = a, f = 4h and all scores this is 72 s L h^2 (1 + s/6h + V/12Lh) per sequence, and 96 s L h^2 (1 + s/6h +
//! V/16Lh) with the forward run again (Narayanan 2021, section 5.1).
//! Ignores: attention windows in conventions that never heard of them: the span is what the model really sees.
//! Source: the table of conventions recomputed from published runs (`rackmath-calibrate score training`).

use super::work::attention_heads;
use crate::count::{self, Use};
use rackmath_spec::model::{Attention, Block, Mixer, Run, Shape};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scores {
    /// All of them, masked or not.
    All,
    /// Half: what a causal mask leaves.
    Causal,
    /// None: 6ND.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHeads {
    True,
    /// As many as query heads: an over-count with grouped queries.
    AsQueries,
}

/// A way of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convention {
    pub scores: Scores,
    pub key_heads: KeyHeads,
    /// Whether a forward pass run again counts (hardware FLOP).
    pub recompute: bool,
    /// Whether the input embedding counts as if multiplied (N of 6ND as published).
    pub embedding: bool,
}

impl Convention {
    /// All scores, true heads, model FLOP.
    pub const FULL: Self = Self { scores: Scores::All, key_heads: KeyHeads::True, recompute: false, embedding: false };
    pub const CAUSAL: Self = Self { scores: Scores::Causal, ..Self::FULL };
    /// All scores, and passes run again.
    pub const HARDWARE: Self = Self { recompute: true, ..Self::FULL };
    /// All scores, keys and values counted like queries.
    pub const OVER_COUNT: Self = Self { key_heads: KeyHeads::AsQueries, ..Self::FULL };
    /// 6 N D with all parameters.
    pub const SIX_N_D: Self = Self { scores: Scores::None, embedding: true, ..Self::FULL };
    /// 6 N D without the input embedding.
    pub const SIX_N_D_MULTIPLIED: Self = Self { scores: Scores::None, ..Self::FULL };

    /// 6 N D with all parameters, and all scores.
    pub const PARAMS_AND_SCORES: Self = Self { scores: Scores::All, ..Self::SIX_N_D };

    /// Those in use, with who uses them.
    pub const ALL: [(&'static str, &'static str, Self); 7] = [
        ("full", "Korthikanti 2022, DGX Cloud Llama and GPT-3, MaxText before July 2025", Self::FULL),
        ("causal", "Megatron-Bridge 25.09 on, DGX Cloud Grok-1, MaxText since July 2025", Self::CAUSAL),
        ("hardware", "Megatron 2021, BLOOM (HFU: passes run again count)", Self::HARDWARE),
        ("over-count", "DGX Cloud Nemotron-340B: key-value heads counted like query heads", Self::OVER_COUNT),
        ("6nd", "papers and forensics: six times all active parameters", Self::SIX_N_D),
        ("6nd-multiplied", "the same without the input embedding", Self::SIX_N_D_MULTIPLIED),
        ("6nd-scores", "PaLM, llm-foundry: six times all parameters, and all scores", Self::PARAMS_AND_SCORES),
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    Nothing,
    Scores,
    Layers,
}

pub fn flop_per_token(shape: &Shape, sequence: u64, convention: Convention, again: Again) -> f64 {
    let mut total = 0.0;
    for run in &shape.runs {
        let (weights, scores) = layer_flop(shape, run, sequence, convention);
        let (w, s) = match (convention.recompute, again) {
            (true, Again::Layers) => (4.0, 4.0),
            (true, Again::Scores) => (3.0, 4.0),
            _ => (3.0, 3.0),
        };
        total += run.n as f64 * (w * weights + s * scores);
    }
    // Forward and twice backward; the head is never run again.
    let head = (shape.hidden * shape.vocab) as f64;
    let table = if shape.tied { 0.0 } else { head };
    let looked_up = if convention.embedding { table + (shape.positions * shape.hidden) as f64 } else { 0.0 };
    total + 3.0 * 2.0 * (head + looked_up)
}

/// Forward FLOP per token of one layer: products, scores.
fn layer_flop(shape: &Shape, run: &Run, sequence: u64, convention: Convention) -> (f64, f64) {
    let block = convention_block(&run.block, convention);
    let tensors = count::block_tensors(shape, &block);
    let multiplied =
        tensors.iter().filter(|t| t.usage == Use::Matrix || (convention.embedding && t.usage == Use::Vector));
    let weights: f64 = multiplied.map(count::Tensor::used_params).sum();
    let share = match convention.scores {
        Scores::All => 1.0,
        Scores::Causal => 0.5,
        Scores::None => 0.0,
    };
    let scores = attention_heads(&block.mixer)
        .map_or(0.0, |h| 2.0 * share * (h.queries * (h.qk + h.v)) * h.span.min(sequence as f64));
    (2.0 * weights, scores)
}

fn convention_block(block: &Block, convention: Convention) -> Block {
    match (&block.mixer, convention.key_heads) {
        (Mixer::Attention(a), KeyHeads::AsQueries) => {
            Block { mixer: Mixer::Attention(Attention { kv_heads: a.heads, ..a.clone() }), ..block.clone() }
        }
        _ => block.clone(),
    }
}
