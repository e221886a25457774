//! Decoders from before Llama: two-matrix networks, biases, layer norms, learned positions.

use super::fields::{Fields, most};
use super::parts::{attention, block, layers, plain, runs, shape};
use crate::SpecError;
use crate::model::{Attention, Bias, Block, Ffn, Mixer, Mlp, Norm, Shape};

type Read = Result<Shape, SpecError>;

/// What differs between these families.
struct Elder {
    heads: u64,
    kv_heads: u64,
    bias: Bias,
    ffn: Mlp,
    norms: u64,
    norm: Norm,
    tied: bool,
}

fn elder(f: &Fields, notes: &mut Vec<String>, hidden: u64, e: Elder) -> Read {
    if !hidden.is_multiple_of(e.heads) {
        return Err(f.refuse("num_attention_heads", e.heads, format!("a divisor of the width {hidden}")));
    }
    let attention = Attention { bias: e.bias, ..attention(e.heads, e.kv_heads, hidden / e.heads) };
    let block = Block { norms: e.norms, ..block(Mixer::Attention(attention), Ffn::Dense(e.ffn)) };
    let shape = shape(f, notes, e.tied, runs(layers(f)?, |_| Ok(block.clone()))?)?;
    Ok(Shape { norm: e.norm, ..shape })
}

const ALL: Bias = Bias { qkv: true, out: true };
const NONE: Bias = Bias { qkv: false, out: false };

/// GPT-J: one norm, attention and network in parallel, a bias on network and head only.
pub(super) fn gptj(f: &Fields, notes: &mut Vec<String>) -> Read {
    let hidden = f.count("n_embd", most::DIM)?;
    let heads = f.count("n_head", most::HEADS)?;
    let ffn = plain(f.count_or("n_inner", most::DIM, 4 * hidden)?, true);
    let e = Elder { heads, kv_heads: heads, bias: NONE, ffn, norms: 1, norm: Norm::Layer, tied: false };
    Ok(Shape { head_bias: true, ..elder(f, notes, hidden, e)? })
}

pub(super) fn gpt2(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(&["n_ctx"]);
    let hidden = f.count("n_embd", most::DIM)?;
    let heads = f.count("n_head", most::HEADS)?;
    let ffn = plain(f.count_or("n_inner", most::DIM, 4 * hidden)?, true);
    let e = Elder { heads, kv_heads: heads, bias: ALL, ffn, norms: 2, norm: Norm::Layer, tied: true };
    let positions = f.count("n_positions", most::TOKENS)?;
    Ok(Shape { positions, ..elder(f, notes, hidden, e)? })
}

/// StarCoder: one key-value head for all queries.
pub(super) fn gpt_bigcode(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(&["attention_softmax_in_fp32"]);
    let hidden = f.count("n_embd", most::DIM)?;
    let heads = f.count("n_head", most::HEADS)?;
    let kv_heads = if f.flag("multi_query", true)? { 1 } else { heads };
    let ffn = plain(f.count_or("n_inner", most::DIM, 4 * hidden)?, true);
    let e = Elder { heads, kv_heads, bias: ALL, ffn, norms: 2, norm: Norm::Layer, tied: true };
    let positions = f.count("n_positions", most::TOKENS)?;
    Ok(Shape { positions, ..elder(f, notes, hidden, e)? })
}

pub(super) fn gpt_neox(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(&["use_parallel_residual"]);
    let hidden = f.count("hidden_size", most::DIM)?;
    let heads = f.count("num_attention_heads", most::HEADS)?;
    let bias = f.flag("attention_bias", true)?;
    let ffn = plain(f.count("intermediate_size", most::DIM)?, true);
    let e = Elder {
        heads,
        kv_heads: heads,
        bias: Bias { qkv: bias, out: bias },
        ffn,
        norms: 2,
        norm: Norm::Layer,
        tied: false,
    };
    elder(f, notes, hidden, e)
}

/// OPT: learned positions with two extra rows.
pub(super) fn opt(f: &Fields, notes: &mut Vec<String>) -> Read {
    let hidden = f.count("hidden_size", most::DIM)?;
    let heads = f.count("num_attention_heads", most::HEADS)?;
    let narrow = f.count_or("word_embed_proj_dim", most::DIM, hidden)?;
    if narrow != hidden {
        return Err(f.refuse(
            "word_embed_proj_dim",
            narrow,
            format!("hidden_size {hidden} (projected embeddings are not counted)"),
        ));
    }
    f.pass_over(&["do_layer_norm_before", "enable_bias", "layer_norm_elementwise_affine"]);
    let ffn = plain(f.count("ffn_dim", most::DIM)?, true);
    let e = Elder { heads, kv_heads: heads, bias: ALL, ffn, norms: 2, norm: Norm::Layer, tied: true };
    let positions = f.count("max_position_embeddings", most::TOKENS)? + 2;
    Ok(Shape { positions, ..elder(f, notes, hidden, e)? })
}

/// BLOOM: a norm behind the embedding, positions by ALiBi.
pub(super) fn bloom(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(&[
        "apply_residual_connection_post_layernorm",
        "n_inner",
        "offset_alibi",
        "skip_bias_add",
        "skip_bias_add_qkv",
        "unk_token_id",
    ]);
    let hidden = f.count_any(&["hidden_size", "n_embed"], most::DIM)?;
    let heads = f.count_any(&["n_head", "num_attention_heads"], most::HEADS)?;
    let e = Elder {
        heads,
        kv_heads: heads,
        bias: ALL,
        ffn: plain(4 * hidden, true),
        norms: 2,
        norm: Norm::Layer,
        tied: true,
    };
    Ok(Shape { outer_norms: 2, ..elder(f, notes, hidden, e)? })
}

/// Falcon: one or eight key-value heads, attention and network in parallel, no biases.
pub(super) fn falcon(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(&["apply_residual_connection_post_layernorm", "alibi", "parallel_attn", "n_embed"]);
    let hidden = f.count("hidden_size", most::DIM)?;
    let heads = f.count_any(&["num_attention_heads", "n_head"], most::HEADS)?;
    let new = f.flag("new_decoder_architecture", false)?;
    let many = f.opt_count("num_kv_heads", most::HEADS)?.or(f.opt_count("n_head_kv", most::HEADS)?);
    let kv_heads = match (new, f.flag("multi_query", true)?) {
        (true, _) => many.unwrap_or(heads),
        (false, true) => 1,
        (false, false) => heads,
    };
    let bias = f.flag("bias", false)?;
    let ffn = plain(f.count_or("ffn_hidden_size", most::DIM, 4 * hidden)?, bias);
    let norms = if new { 2 } else { 1 };
    // The published checkpoints store the head apart from the embedding.
    let e = Elder { heads, kv_heads, bias: Bias { qkv: bias, out: bias }, ffn, norms, norm: Norm::Layer, tied: false };
    elder(f, notes, hidden, e)
}

/// MPT: weight-only norms, positions by ALiBi.
pub(super) fn mpt(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(&[
        "learned_pos_emb",
        "norm_type",
        "emb_pdrop",
        "embedding_fraction",
        "init_config",
        "init_device",
        "verbose",
    ]);
    let hidden = f.count("d_model", most::DIM)?;
    let heads = f.count("n_heads", most::HEADS)?;
    let ratio = f.count_or("expansion_ratio", 1000, 4)?;
    let bias = !f.flag("no_bias", true)?;
    let mut kv_heads = heads;
    if let Some(a) = f.object("attn_config")? {
        kv_heads = a.count_or("kv_n_heads", most::HEADS, heads)?;
        if !a.flag("alibi", false)? {
            return Err(f.refuse("attn_config.alibi", false, "true (other positions are not counted)"));
        }
    }
    let norm = if bias { Norm::Layer } else { Norm::Rms };
    let e = Elder {
        heads,
        kv_heads,
        bias: Bias { qkv: bias, out: bias },
        ffn: plain(ratio * hidden, bias),
        norms: 2,
        norm,
        tied: true,
    };
    elder(f, notes, hidden, e)
}

/// Phi-2: one norm, everything with a bias, the head too.
pub(super) fn phi(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(&["qk_layernorm"]);
    let hidden = f.count("hidden_size", most::DIM)?;
    let heads = f.count("num_attention_heads", most::HEADS)?;
    let kv_heads = f.count_or("num_key_value_heads", most::HEADS, heads)?;
    let ffn = plain(f.count("intermediate_size", most::DIM)?, true);
    let e = Elder { heads, kv_heads, bias: ALL, ffn, norms: 1, norm: Norm::Layer, tied: false };
    Ok(Shape { head_bias: true, ..elder(f, notes, hidden, e)? })
}
