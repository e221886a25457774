//! Decoders from before Llama: two-matrix networks, biases, layer norms, learned positions.

use super::fields::{Fields, most};
use super::parts::{Read, alike, block, gqa, plain};
use crate::SpecError;
use crate::model::{Attention, Bias, Block, Ffn, Mixer, Mlp, Norm, Shape, Span};

/// What differs between these families; most have biases everywhere, two layer norms and a tied head.
struct Elder {
    heads: u64,
    kv_heads: u64,
    bias: Bias,
    ffn: Mlp,
    norms: u64,
    norm: Norm,
    tied: bool,
}

impl Elder {
    fn usual(heads: u64, ffn: Mlp) -> Self {
        Self { heads, kv_heads: heads, bias: both(true), ffn, norms: 2, norm: Norm::Layer, tied: true }
    }
}

fn both(bias: bool) -> Bias {
    Bias { qkv: bias, out: bias }
}

fn elder(f: &Fields, notes: &mut Vec<String>, hidden: u64, e: Elder) -> Read {
    if !hidden.is_multiple_of(e.heads) {
        return Err(f.refuse("num_attention_heads", e.heads, format!("a divisor of the width {hidden}")));
    }
    let attention = Attention { bias: e.bias, ..Attention::full(e.heads, e.kv_heads, hidden / e.heads) };
    let block = Block { norms: e.norms, ..block(Mixer::Attention(attention), Ffn::Dense(e.ffn)) };
    Ok(Shape { norm: e.norm, ..alike(f, notes, e.tied, block)? })
}

/// Width and the usual rest with GPT's spellings.
fn gpt(f: &Fields) -> Result<(u64, Elder), SpecError> {
    let hidden = f.count("n_embd", most::DIM)?;
    let ffn = plain(f.count_or("n_inner", most::DIM, 4 * hidden)?, true);
    Ok((hidden, Elder::usual(f.count("n_head", most::HEADS)?, ffn)))
}

/// The same with transformers' later spellings, the head apart.
fn later(f: &Fields, inner: &str) -> Result<(u64, Elder), SpecError> {
    let ffn = plain(f.count(inner, most::DIM)?, true);
    let heads = f.count("num_attention_heads", most::HEADS)?;
    Ok((f.count("hidden_size", most::DIM)?, Elder { tied: false, ..Elder::usual(heads, ffn) }))
}

/// GPT-J: one norm, attention and network in parallel, a bias on network and head only.
pub(super) fn gptj(f: &Fields, notes: &mut Vec<String>) -> Read {
    let (hidden, usual) = gpt(f)?;
    let e = Elder { bias: both(false), norms: 1, tied: false, ..usual };
    Ok(Shape { head_bias: true, ..elder(f, notes, hidden, e)? })
}

pub(super) fn gpt2(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("n_ctx");
    let (hidden, usual) = gpt(f)?;
    let positions = f.count("n_positions", most::TOKENS)?;
    Ok(Shape { positions, ..elder(f, notes, hidden, usual)? })
}

/// StarCoder: one key-value head for all queries.
pub(super) fn gpt_bigcode(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("attention_softmax_in_fp32");
    let (hidden, usual) = gpt(f)?;
    let kv_heads = if f.flag("multi_query", true)? { 1 } else { usual.heads };
    let positions = f.count("n_positions", most::TOKENS)?;
    Ok(Shape { positions, ..elder(f, notes, hidden, Elder { kv_heads, ..usual })? })
}

pub(super) fn gpt_neox(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("use_parallel_residual");
    let (hidden, usual) = later(f, "intermediate_size")?;
    let bias = both(f.flag("attention_bias", true)?);
    elder(f, notes, hidden, Elder { bias, ..usual })
}

/// OPT: learned positions with two extra rows.
pub(super) fn opt(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("do_layer_norm_before enable_bias layer_norm_elementwise_affine");
    let (hidden, usual) = later(f, "ffn_dim")?;
    let narrow = f.count_or("word_embed_proj_dim", most::DIM, hidden)?;
    if narrow != hidden {
        let expected = format!("hidden_size {hidden} (projected embeddings are not counted)");
        return Err(f.refuse("word_embed_proj_dim", narrow, expected));
    }
    let positions = f.count("max_position_embeddings", most::TOKENS)? + 2;
    Ok(Shape { positions, ..elder(f, notes, hidden, Elder { tied: true, ..usual })? })
}

/// BLOOM: a norm behind the embedding, positions by ALiBi.
pub(super) fn bloom(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "apply_residual_connection_post_layernorm n_inner offset_alibi skip_bias_add skip_bias_add_qkv unk_token_id",
    );
    let hidden = f.count_any(&["hidden_size", "n_embed"], most::DIM)?;
    let heads = f.count_any(&["n_head", "num_attention_heads"], most::HEADS)?;
    Ok(Shape { outer_norms: 2, ..elder(f, notes, hidden, Elder::usual(heads, plain(4 * hidden, true)))? })
}

/// Falcon: one or eight key-value heads, attention and network in parallel, no biases.
pub(super) fn falcon(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("apply_residual_connection_post_layernorm alibi parallel_attn n_embed");
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
    // The published checkpoints store the head apart from the embedding.
    let norms = if new { 2 } else { 1 };
    let e = Elder { kv_heads, bias: both(bias), norms, tied: false, ..Elder::usual(heads, ffn) };
    elder(f, notes, hidden, e)
}

/// MPT: weight-only norms, positions by ALiBi.
pub(super) fn mpt(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("learned_pos_emb norm_type emb_pdrop embedding_fraction init_config init_device verbose");
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
    let e = Elder { kv_heads, bias: both(bias), norm, ..Elder::usual(heads, plain(ratio * hidden, bias)) };
    elder(f, notes, hidden, e)
}

/// Phi-2: one norm, everything with a bias, the head too.
pub(super) fn phi(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("qk_layernorm");
    let (hidden, usual) = later(f, "intermediate_size")?;
    let kv_heads = f.count_or("num_key_value_heads", most::HEADS, usual.heads)?;
    Ok(Shape { head_bias: true, ..elder(f, notes, hidden, Elder { kv_heads, norms: 1, ..usual })? })
}

/// StarCoder 2: few key-value heads, two-matrix networks, biases everywhere, a window in every layer.
pub(super) fn starcoder2(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("norm_type mlp_type");
    let bias = f.flag("use_bias", true)?;
    let span = f.opt_count("sliding_window", most::TOKENS)?.map_or(Span::Full, Span::Window);
    let attention = Attention { bias: both(bias), span, ..gqa(f)? };
    let ffn = Ffn::Dense(plain(f.count("intermediate_size", most::DIM)?, bias));
    Ok(Shape { norm: Norm::Layer, ..alike(f, notes, true, block(Mixer::Attention(attention), ffn))? })
}
