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

use super::Recompute;
use super::work::attention_heads;
use crate::count::{self, Use};
use rackmath_spec::model::{Attention, Block, Mixer, Run, Shape};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, VariantArray};

/// A way of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, VariantArray, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Convention {
    /// All scores, true heads, model FLOP.
    Full,
    /// Half of the scores: what a causal mask leaves.
    Causal,
    /// All scores, and passes run again.
    Hardware,
    /// All scores, keys and values counted like queries: too many with grouped queries.
    OverCount,
    /// 6 N D with all parameters.
    #[serde(rename = "6nd")]
    #[strum(to_string = "6nd")]
    SixNd,
    /// 6 N D without the input embedding.
    #[serde(rename = "6nd-multiplied")]
    #[strum(to_string = "6nd-multiplied")]
    SixNdMultiplied,
    /// 6 N D with all parameters, and all scores.
    #[serde(rename = "6nd-scores")]
    #[strum(to_string = "6nd-scores")]
    SixNdScores,
}

impl Convention {
    pub fn used_by(self) -> &'static str {
        match self {
            Self::Full => "Korthikanti 2022, DGX Cloud Llama and GPT-3, MaxText before July 2025",
            Self::Causal => "Megatron-Bridge 25.09 on, DGX Cloud Grok-1, MaxText since July 2025",
            Self::Hardware => "Megatron 2021, BLOOM (HFU: passes run again count)",
            Self::OverCount => "DGX Cloud Nemotron-340B: key-value heads counted like query heads",
            Self::SixNd => "papers and forensics: six times all active parameters",
            Self::SixNdMultiplied => "the same without the input embedding",
            Self::SixNdScores => "PaLM, llm-foundry: six times all parameters, and all scores",
        }
    }

    /// Share of the scores that counts.
    fn scores(self) -> f64 {
        match self {
            Self::Full | Self::Hardware | Self::OverCount | Self::SixNdScores => 1.0,
            Self::Causal => 0.5,
            Self::SixNd | Self::SixNdMultiplied => 0.0,
        }
    }

    /// Whether the input embedding counts as if multiplied (N of 6ND as published).
    fn embedding(self) -> bool {
        matches!(self, Self::SixNd | Self::SixNdScores)
    }
}

/// FLOP per token of a run that computes `again` a second time.
pub fn flop_per_token(shape: &Shape, sequence: u64, convention: Convention, again: Recompute) -> f64 {
    let mut total = 0.0;
    for run in &shape.runs {
        let (weights, scores) = layer_flop(shape, run, sequence, convention);
        let (w, s) = match again {
            Recompute::Full | Recompute::Reversible if convention == Convention::Hardware => (4.0, 4.0),
            Recompute::Selective if convention == Convention::Hardware => (3.0, 4.0),
            _ => (3.0, 3.0),
        };
        total += run.n as f64 * (w * weights + s * scores);
    }
    // Forward and twice backward; the head is never run again.
    let head = (shape.hidden * shape.vocab) as f64;
    let table = if shape.tied { 0.0 } else { head };
    let looked_up = if convention.embedding() { table + (shape.positions * shape.hidden) as f64 } else { 0.0 };
    total + 3.0 * 2.0 * (head + looked_up)
}

/// Forward FLOP per token of one layer: products, scores.
fn layer_flop(shape: &Shape, run: &Run, sequence: u64, convention: Convention) -> (f64, f64) {
    let block = convention_block(&run.block, convention);
    let tensors = count::block_tensors(shape, &block);
    let multiplied =
        tensors.iter().filter(|t| t.usage == Use::Matrix || (convention.embedding() && t.usage == Use::Vector));
    let weights: f64 = multiplied.map(count::Tensor::used_params).sum();
    let share = convention.scores();
    let scores = attention_heads(&block.mixer)
        .map_or(0.0, |h| 2.0 * share * (h.queries * (h.qk + h.v)) * h.span.min(sequence as f64));
    (2.0 * weights, scores)
}

fn convention_block(block: &Block, convention: Convention) -> Block {
    match (&block.mixer, convention) {
        (Mixer::Attention(a), Convention::OverCount) => {
            Block { mixer: Mixer::Attention(Attention { kv_heads: a.heads, ..a.clone() }), ..block.clone() }
        }
        _ => block.clone(),
    }
}
