//! Pieces most families share.

use super::fields::{Fields, most};
use super::formats::formats;
use crate::SpecError;
use crate::model::{Attention, Bias, Block, Ffn, Linear, Mixer, Mlp, Moe, Mtp, Run, Shape, Span};
use serde_json::Value;

pub(super) type Read = Result<Shape, SpecError>;

/// A SwiGLU or GeGLU network without biases.
pub(super) fn gated(width: u64) -> Mlp {
    Mlp { width, gated: true, bias: false }
}

pub(super) fn plain(width: u64, bias: bool) -> Mlp {
    Mlp { width, gated: false, bias }
}

/// A block with two norms and nothing beside.
pub(super) fn block(mixer: Mixer, ffn: Ffn) -> Block {
    Block { mixer, ffn, norms: 2, side: Vec::new() }
}

/// A mixture without shared experts or score corrections.
pub(super) fn experts(experts: u64, top_k: u64, width: u64) -> Moe {
    Moe { experts, top_k, expert: gated(width), ..Moe::default() }
}

/// The same by the names of how many there are, how many a token takes, and how wide they are.
pub(super) fn experts_of(f: &Fields, [n, top_k, width]: [&str; 3]) -> Result<Moe, SpecError> {
    Ok(experts(f.count(n, most::EXPERTS)?, f.count(top_k, most::EXPERTS)?, f.count(width, most::DIM)?))
}

/// Mamba-2 by the names of its heads, their width, groups, state and convolution.
pub(super) fn mamba2(f: &Fields, names: [&str; 5], conv_bias: bool, proj_bias: bool) -> Result<Linear, SpecError> {
    let [heads, dim, groups, state, conv] = names;
    let [heads, dim, groups, state] = [heads, dim, groups, state].map(|name| f.count(name, most::HEADS));
    let (heads, dim, groups, state, conv) = (heads?, dim?, groups?, state?, f.count(conv, 1000)?);
    Ok(Linear::Mamba2 { heads, dim, groups, state, conv, conv_bias, proj_bias })
}

/// Grouped-query attention with the spellings of Llama and its many descendants.
pub(super) fn gqa(f: &Fields) -> Result<Attention, SpecError> {
    let heads = f.count("num_attention_heads", most::HEADS)?;
    let hidden = f.count("hidden_size", most::DIM)?;
    let dim = match f.opt_count("head_dim", most::HEADS)? {
        Some(dim) => dim,
        None if hidden % heads == 0 => hidden / heads,
        None => {
            let expected = format!("a divisor of hidden_size {hidden}, or a head_dim");
            return Err(f.refuse("num_attention_heads", heads, expected));
        }
    };
    Ok(Attention::full(heads, f.count_or("num_key_value_heads", most::HEADS, heads)?, dim))
}

/// The same with biases where the file says so.
pub(super) fn biased_gqa(f: &Fields) -> Result<Attention, SpecError> {
    let bias = f.flag("attention_bias", false)?;
    Ok(Attention { bias: Bias { qkv: bias, out: bias }, ..gqa(f)? })
}

/// `intermediate_size` as a gated network, with `mlp_bias` where a family has it.
pub(super) fn gated_ffn(f: &Fields) -> Result<Ffn, SpecError> {
    let bias = f.flag("mlp_bias", false)?;
    Ok(Ffn::Dense(Mlp { bias, ..gated(f.count("intermediate_size", most::DIM)?) }))
}

pub(super) fn layers(f: &Fields) -> Result<u64, SpecError> {
    f.count_any(&["num_hidden_layers", "n_layer", "n_layers", "num_layers"], most::LAYERS)
}

/// One span per layer from `layer_types`.
pub(super) fn spans(f: &Fields, n: u64) -> Result<Option<Vec<Span>>, SpecError> {
    let Some(types) = f.per_layer("layer_types", n)? else { return Ok(None) };
    types.iter().map(|kind| span(f, kind)).collect::<Result<Vec<_>, _>>().map(Some)
}

fn span(f: &Fields, kind: &Value) -> Result<Span, SpecError> {
    match kind.as_str() {
        Some("full_attention" | "attention" | "global") => Ok(Span::Full),
        Some("sliding_attention" | "local") => Ok(Span::Window(f.count("sliding_window", most::TOKENS)?)),
        Some("chunked_attention") => Ok(Span::Chunk(f.count("attention_chunk_size", most::TOKENS)?)),
        _ => Err(f.bad("layer_types", kind, "full_attention, sliding_attention or chunked_attention")),
    }
}

/// Runs of blocks from a function of the layer number.
pub(super) fn runs(n: u64, mut block: impl FnMut(u64) -> Result<Block, SpecError>) -> Result<Vec<Run>, SpecError> {
    let mut runs = Vec::new();
    for i in 0..n {
        Shape::push(&mut runs, block(i)?);
    }
    Ok(runs)
}

/// A model of the same block in every layer.
pub(super) fn alike(f: &Fields, notes: &mut Vec<String>, tied: bool, block: Block) -> Read {
    shape(f, notes, tied, vec![Run { n: layers(f)?, block }])
}

/// A model around its runs: embedding, one final norm, a head.
pub(super) fn shape(f: &Fields, notes: &mut Vec<String>, tied: bool, runs: Vec<Run>) -> Read {
    Ok(Shape {
        hidden: f.count_any(&["hidden_size", "n_embd", "d_model"], most::DIM)?,
        vocab: f.count("vocab_size", most::VOCAB)?,
        tied: f.flag("tie_word_embeddings", tied)?,
        outer_norms: 1,
        runs,
        context_max: context_max(f)?,
        formats: formats(f, notes)?,
        ..Shape::default()
    })
}

fn context_max(f: &Fields) -> Result<Option<u64>, SpecError> {
    for key in ["max_position_embeddings", "max_seq_len", "n_positions", "seq_length", "model_max_length"] {
        if let Some(n) = f.opt_count(key, most::TOKENS)? {
            return Ok(Some(n));
        }
    }
    Ok(None)
}

/// A multi-token-prediction layer: a block, a projection of two vectors to one, three norms, and `copies` of the vocabulary.
pub(super) fn mtp(shape: &Shape, n: u64, block: Block, copies: u64) -> Option<Mtp> {
    let h = shape.hidden;
    (n > 0).then(|| Mtp { n, block, extra: 2 * h * h + 3 * h + copies * shape.vocab * h })
}
