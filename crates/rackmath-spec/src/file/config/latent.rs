//! Models with multi-head latent attention: DeepSeek V2 and V3, Kimi K2, GLM-5, LongCat.

use super::fields::{Fields, most};
use super::moe::{deepseek_experts, dense_first};
use super::parts::{Read, alike, block, experts_of, gated, layers, mtp, runs, shape};
use crate::SpecError;
use crate::model::{Ffn, Gate, Indexer, Latent, Mixer, Moe, Shape};
use serde_json::Value;

/// Latent attention with DeepSeek's spellings, and its sparse indexer where the file has one.
pub(super) fn latent(f: &Fields) -> Result<Latent, SpecError> {
    latent_of(f, f.count("v_head_dim", most::HEADS)?)
}

fn latent_of(f: &Fields, v_dim: u64) -> Result<Latent, SpecError> {
    f.pass_over(
        "attention_bias num_key_value_heads head_dim qk_head_dim mla_scale_q_lora mla_scale_kv_lora attention_method \
         index_skip_topk_offset index_topk_freq index_share_for_mtp_iteration indexer_rope_interleave",
    );
    Ok(Latent {
        heads: f.count("num_attention_heads", most::HEADS)?,
        q_rank: f.opt_count("q_lora_rank", most::DIM)?,
        kv_rank: f.count("kv_lora_rank", most::DIM)?,
        rope_dim: f.count("qk_rope_head_dim", most::HEADS)?,
        nope_dim: f.count("qk_nope_head_dim", most::HEADS)?,
        v_dim,
        gate: Gate::None,
        indexer: indexer(f)?,
    })
}

pub(super) fn indexer(f: &Fields) -> Result<Option<Indexer>, SpecError> {
    let Some(top_k) = f.opt_count("index_topk", most::TOKENS)? else { return Ok(None) };
    Ok(Some(Indexer {
        heads: f.count("index_n_heads", most::HEADS)?,
        dim: f.count("index_head_dim", most::HEADS)?,
        top_k,
    }))
}

/// Latent attention throughout, dense networks first, experts with so many values beside the router after.
pub(super) fn deepseek(f: &Fields, notes: &mut Vec<String>, vectors: u64, vocab_copies: u64) -> Read {
    let own = latent(f)?;
    let shared = Latent { indexer: own.indexer.map(Indexer::shared), ..own.clone() };
    let shares = shared_indexers(f)?;
    // A layer beyond the list predicts ahead and has an indexer of its own.
    let mixer = |i: u64| {
        let of_another = shares.get(i as usize).is_some_and(|shares| *shares);
        Mixer::Latent(if of_another { shared.clone() } else { own.clone() })
    };
    dense_first(f, notes, mixer, deepseek_experts(f, vectors)?, vocab_copies)
}

/// Which layers take the picks of an earlier one's indexer; none where the file does not list them.
fn shared_indexers(f: &Fields) -> Result<Vec<bool>, SpecError> {
    let Some(listed) = f.per_layer("indexer_types", layers(f)?)? else { return Ok(Vec::new()) };
    let kind = |(i, kind): (usize, &Value)| match kind.as_str() {
        Some("full") => Ok(false),
        Some("shared") if i > 0 => Ok(true),
        _ => Err(f.bad("indexer_types", kind, "full, or shared after a full one")),
    };
    listed.iter().enumerate().map(kind).collect()
}

/// MiniCPM3: latent attention whose values share the width among the heads, dense networks, three multipliers.
pub(super) fn minicpm3(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("scale_emb scale_depth dim_model_base");
    let (hidden, heads) = (f.count("hidden_size", most::DIM)?, f.count("num_attention_heads", most::HEADS)?);
    if !f.has("v_head_dim") && !hidden.is_multiple_of(heads) {
        return Err(f.refuse(
            "num_attention_heads",
            heads,
            format!("a divisor of hidden_size {hidden}, or a v_head_dim"),
        ));
    }
    let attention = latent_of(f, f.count_or("v_head_dim", most::HEADS, hidden / heads)?)?;
    let ffn = Ffn::Dense(gated(f.count("intermediate_size", most::DIM)?));
    alike(f, notes, true, block(Mixer::Latent(attention), ffn))
}

/// LongCat-Flash: each block has two attentions, two dense networks and one mixture whose output joins at the end.
///
/// Written here as two layers of one attention and one dense network; the mixture sits in the second beside its network,
/// which every token passes like a shared expert.
pub(super) fn longcat(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("zero_expert_type router_bias");
    let attention = Mixer::Latent(latent(f)?);
    let dense = gated(f.count("ffn_hidden_size", most::DIM)?);
    let zero_experts = f.opt_count("zero_expert_num", most::EXPERTS)?.unwrap_or(0);
    let experts = experts_of(f, ["n_routed_experts", "moe_topk", "expert_ffn_hidden_size"])?;
    let moe = Moe { shared: Some(dense), zero_experts, router_vectors: 1, ..experts };
    let plain = block(attention.clone(), Ffn::Dense(dense));
    let sparse = block(attention, Ffn::Moe(moe));
    let runs = runs(2 * layers(f)?, |i| Ok(if i % 2 == 0 { plain.clone() } else { sparse.clone() }))?;
    let shape = shape(f, notes, false, runs)?;
    notes.push(
        "zero-computation experts take part of the routing, so fewer than top-k real experts run on average".into(),
    );
    let ahead = f.opt_count("num_nextn_predict_layers", 1000)?.unwrap_or(1);
    Ok(Shape { mtp: mtp(&shape, ahead, plain, 1), ..shape })
}
