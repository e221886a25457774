//! One-off designs: DeepSeek-V4's compressed cache, the shared layers of Gemma 4 and Gemma 3n.

use super::fields::{Fields, most};
use super::latent::indexer;
use super::moe::deepseek_experts;
use super::parts::{Read, block, experts_of, gated, gqa, layers, runs, shape, spans};
use crate::SpecError;
use crate::model::{
    Attention, Block, Compressed, Ffn, KvSource, Mixer, Moe, Mtp, QkNorm, Side, SideUse, Span, Streams,
};
use serde_json::Value;

/// DeepSeek-V4: a window in every layer, and beside it a cache compressed 4:1 with an indexer or 128:1 without.
pub(super) fn deepseek_v4(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("attention_bias num_key_value_heads compress_rope_theta");
    let n = layers(f)?;
    let hidden = f.count("hidden_size", most::DIM)?;
    let ratios = f.counts_per_layer("compress_ratios", n, most::TOKENS)?.ok_or_else(|| f.missing("compress_ratios"))?;
    let index = indexer(f)?;
    let hashed = f.opt_count("num_hash_layers", most::LAYERS)?.unwrap_or(0);
    let m = f.count("hc_mult", 64)?;
    let base = Compressed {
        heads: f.count("num_attention_heads", most::HEADS)?,
        dim: f.count("head_dim", most::HEADS)?,
        rope_dim: f.count("qk_rope_head_dim", most::HEADS)?,
        q_rank: f.count("q_lora_rank", most::DIM)?,
        o_groups: f.count("o_groups", most::HEADS)?,
        o_rank: f.count("o_lora_rank", most::DIM)?,
        window: f.count("sliding_window", most::TOKENS)?,
        ratio: None,
        indexer: None,
    };
    // Hyper-connections mix m residual streams before attention and before the network: a matrix, a base and 3 scales each.
    let mixing = (2 + m) * m;
    let streams =
        Side { name: "hyper-connections", params: 2 * (mixing * m * hidden + mixing + 3), usage: SideUse::Multiplied };
    let head = m * m * hidden + m + 1;
    let moe = |vectors| -> Result<Ffn, SpecError> { Ok(Ffn::Moe(deepseek_experts(f, vectors)?)) };
    let layer = |ratio: u64, vectors: u64| -> Result<Block, SpecError> {
        let c = match ratio {
            0 => base.clone(),
            // Only the finely compressed cache is too long to read whole.
            4 => Compressed { ratio: Some(4), indexer: index, ..base.clone() },
            ratio => Compressed { ratio: Some(ratio), ..base.clone() },
        };
        Ok(Block { side: vec![streams.clone()], ..block(Mixer::Compressed(c), moe(vectors)?) })
    };
    // The first layers route by a hash of the token and need no score correction.
    let runs = runs(n, |i| layer(ratios[i as usize], u64::from(i >= hashed)))?;
    let mut shape = shape(f, notes, false, runs)?;
    shape.side.push(Side { name: "hyper-connection head", params: head, usage: SideUse::Multiplied });
    shape.streams = Some(Streams { n: m, rounds: f.opt_count("hc_sinkhorn_iters", 1000)?.unwrap_or(0) });
    let ahead = f.opt_count("num_nextn_predict_layers", 1000)?.unwrap_or(0);
    let extra = 2 * hidden * hidden + 3 * hidden + head;
    shape.mtp = if ahead > 0 { Some(Mtp { n: ahead, block: layer(0, 1)?, extra }) } else { None };
    Ok(shape)
}

/// Gemma 4: windows and full layers of different head width; late layers reuse earlier keys and values; per-layer embeddings.
pub(super) fn gemma4(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("attention_bias use_bidirectional_attention");
    let n = layers(f)?;
    let hidden = f.count("hidden_size", most::DIM)?;
    let width = f.count("intermediate_size", most::DIM)?;
    let heads = f.count("num_attention_heads", most::HEADS)?;
    let (local_dim, global_dim) = (f.count("head_dim", most::HEADS)?, f.count("global_head_dim", most::HEADS)?);
    let local_kv = f.count("num_key_value_heads", most::HEADS)?;
    let k_is_v = f.flag("attention_k_eq_v", false)?;
    let global_kv = f.opt_count("num_global_key_value_heads", most::HEADS)?.filter(|_| k_is_v).unwrap_or(local_kv);
    let owners = n.saturating_sub(f.opt_count("num_kv_shared_layers", most::LAYERS)?.unwrap_or(0));
    let wide = f.flag("use_double_wide_mlp", false)?;
    let spans = spans(f, n)?.ok_or_else(|| f.missing("layer_types"))?;
    let per_layer = f.opt_count("hidden_size_per_layer_input", most::DIM)?.unwrap_or(0);
    let rows = f.count_or("vocab_size_per_layer_input", most::VOCAB, 1)?;
    let sparse = f.flag("enable_moe_block", false)?;
    let runs = runs(n, |i| {
        let full = spans[i as usize] == Span::Full;
        let owner = i < owners;
        let (dim, kv_heads) = if full { (global_dim, global_kv) } else { (local_dim, local_kv) };
        let attention = Attention {
            span: spans[i as usize],
            kv: if owner { KvSource::Own } else { KvSource::Shared },
            qk_norm: QkNorm::PerHead,
            k_is_v: k_is_v && full,
            ..Attention::full(heads, kv_heads, dim)
        };
        let mut side = vec![Side { name: "layer scalar", params: 1, usage: SideUse::Multiplied }];
        if !owner {
            // The checkpoint keeps the key and value weights of sharing layers; nothing reads them.
            let unused = 2 * kv_heads * dim * hidden;
            side.push(Side { name: "unused keys and values", params: unused, usage: SideUse::Unused });
        }
        if per_layer > 0 {
            let params = 2 * per_layer * hidden + hidden;
            side.push(Side { name: "per-layer input", params, usage: SideUse::Multiplied });
        }
        let dense = gated(if wide && !owner { 2 * width } else { width });
        let (ffn, norms) = if sparse {
            side.push(Side { name: "router scale", params: hidden, usage: SideUse::Multiplied });
            let experts = experts_of(f, ["num_experts", "top_k_experts", "moe_intermediate_size"])?;
            (Ffn::Moe(Moe { shared: Some(dense), router_vectors: 1, ..experts }), 7)
        } else {
            (Ffn::Dense(dense), 4)
        };
        Ok(Block { norms, side, ..block(Mixer::Attention(attention), ffn) })
    })?;
    let mut shape = shape(f, notes, true, runs)?;
    if per_layer > 0 {
        let table =
            Side { name: "per-layer embeddings", params: rows * n * per_layer, usage: SideUse::LookedUp { rows } };
        let projection = n * per_layer * hidden + per_layer;
        shape.side.push(table);
        shape.side.push(Side { name: "per-layer projection", params: projection, usage: SideUse::Multiplied });
    }
    Ok(shape)
}

/// Gemma 3n: windows with every fifth layer full, late layers that reuse earlier keys and values, per-layer embeddings, a
/// low-rank path beside attention, and several residual streams that small matrices predict and correct (AltUp).
pub(super) fn gemma3n(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("attention_bias activation_sparsity_pattern altup_active_idx altup_coef_clip altup_correct_scale altup_lr_multiplier");
    let (n, hidden) = (layers(f)?, f.count("hidden_size", most::DIM)?);
    let widths = match f.get("intermediate_size") {
        Some(Value::Array(_)) => f.counts_per_layer("intermediate_size", n, most::DIM)?.unwrap_or_default(),
        _ => vec![f.count("intermediate_size", most::DIM)?; n as usize],
    };
    let window = Span::Window(f.count("sliding_window", most::TOKENS)?);
    let spans = match spans(f, n)? {
        Some(spans) => spans,
        None => (0..n).map(|i| if (i + 1) % 5 == 0 { Span::Full } else { window }).collect(),
    };
    let owners = n.saturating_sub(f.opt_count("num_kv_shared_layers", most::LAYERS)?.unwrap_or(0));
    let (per_layer, rank) = (f.count("hidden_size_per_layer_input", most::DIM)?, f.count("laurel_rank", most::DIM)?);
    let rows = f.count("vocab_size_per_layer_input", most::VOCAB)?;
    let streams = f.count("altup_num_inputs", 64)?;
    let attention = Attention { qk_norm: QkNorm::PerHead, ..gqa(f)? };
    // A router with its norm, a scale, and matrices that predict and correct the streams.
    let mixed = streams * hidden + 2 * hidden + streams * streams + streams * streams * streams;
    let multiplied = |name, params| Side { name, params, usage: SideUse::Multiplied };
    let runs = runs(n, |i| {
        let owner = i < owners;
        let kv = if owner { KvSource::Own } else { KvSource::Shared };
        let mut side = vec![
            multiplied("streams of the residual", mixed),
            multiplied("low-rank path", 2 * rank * hidden + hidden),
            multiplied("per-layer input", 2 * per_layer * hidden + hidden),
        ];
        if !owner {
            // The checkpoint keeps the key and value weights of sharing layers; nothing reads them.
            let unused = 2 * attention.kv_heads * attention.qk_dim * hidden;
            side.push(Side { name: "unused keys and values", params: unused, usage: SideUse::Unused });
        }
        let mixer = Mixer::Attention(Attention { span: spans[i as usize], kv, ..attention.clone() });
        Ok(Block { norms: 4, side, ..block(mixer, Ffn::Dense(gated(widths[i as usize]))) })
    })?;
    notes.push(format!("its {streams} residual streams are counted by their weights, not by what they move"));
    let mut shape = shape(f, notes, true, runs)?;
    let table = Side { name: "per-layer embeddings", params: rows * n * per_layer, usage: SideUse::LookedUp { rows } };
    shape.side.push(table);
    shape.side.push(multiplied("per-layer projection", n * per_layer * hidden + per_layer));
    shape.side.push(multiplied("projections of the streams", 2 * (streams - 1) * hidden * hidden));
    Ok(shape)
}
