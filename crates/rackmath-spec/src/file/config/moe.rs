//! Mixtures of experts with ordinary attention.

use super::dense::qwen_spans;
use super::fields::{Fields, most};
use super::parts::{Read, alike, biased_gqa, block, experts, experts_of, gated, gqa, layers, mtp, runs, shape, spans};
use crate::SpecError;
use crate::model::{
    Attention, Bias, Block, BlockIndex, Ffn, Gate, KvSource, Mixer, Mlp, Moe, Norm, QkNorm, Shape, Span,
};

fn top_k(f: &Fields) -> Result<u64, SpecError> {
    f.count_any(&["num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk"], most::EXPERTS)
}

pub(super) fn local_experts(f: &Fields) -> Result<Moe, SpecError> {
    let n = f.count("num_local_experts", most::EXPERTS)?;
    Ok(experts(n, top_k(f)?, f.count("intermediate_size", most::DIM)?))
}

pub(super) fn mixtral(f: &Fields, notes: &mut Vec<String>) -> Read {
    let span = f.opt_count("sliding_window", most::TOKENS)?.map_or(Span::Full, Span::Window);
    let moe = local_experts(f)?;
    let block = block(Mixer::Attention(Attention { span, ..gqa(f)? }), Ffn::Moe(moe));
    alike(f, notes, false, block)
}

/// Qwen1.5-MoE: a shared network with its own gate.
pub(super) fn qwen2_moe(f: &Fields, notes: &mut Vec<String>) -> Read {
    qwen_moe(f, notes, &Attention { bias: Bias { qkv: true, out: false }, ..gqa(f)? })
}

pub(super) fn qwen3_moe(f: &Fields, notes: &mut Vec<String>) -> Read {
    qwen_moe(f, notes, &Attention { qk_norm: QkNorm::PerHead, ..biased_gqa(f)? })
}

/// Qwen's experts, with the gated shared network where the file gives one.
pub(super) fn qwen_experts(f: &Fields) -> Result<Moe, SpecError> {
    let n = f.count("num_experts", most::EXPERTS)?;
    let shared = f.opt_count("shared_expert_intermediate_size", most::DIM)?.map(gated);
    Ok(Moe {
        shared,
        shared_gate: shared.is_some(),
        ..experts(n, top_k(f)?, f.count("moe_intermediate_size", most::DIM)?)
    })
}

fn qwen_moe(f: &Fields, notes: &mut Vec<String>, attention: &Attention) -> Read {
    let (moe, spans) = (qwen_experts(f)?, qwen_spans(f)?);
    let dense = f.layer_set("mlp_only_layers")?;
    let step = f.count_or("decoder_sparse_step", most::LAYERS, 1)?;
    let width = f.count("intermediate_size", most::DIM)?;
    let runs = runs(layers(f)?, |i| {
        let attention = Attention { span: spans[i as usize], ..attention.clone() };
        let sparse = !dense.contains(&i) && (i + 1) % step == 0;
        let ffn = if sparse { Ffn::Moe(moe.clone()) } else { Ffn::Dense(gated(width)) };
        Ok(block(Mixer::Attention(attention), ffn))
    })?;
    shape(f, notes, false, runs)
}

/// gpt-oss: biases everywhere, a sink per head, every other layer a window.
pub(super) fn gpt_oss(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("initial_context_length");
    let bias = f.flag("attention_bias", true)?;
    let n = layers(f)?;
    let window = f.count("sliding_window", most::TOKENS)?;
    let spans = match spans(f, n)? {
        Some(spans) => spans,
        None => (0..n).map(|i| if i % 2 == 0 { Span::Window(window) } else { Span::Full }).collect(),
    };
    let attention = Attention { bias: Bias { qkv: bias, out: bias }, sinks: true, ..gqa(f)? };
    let width = f.count("intermediate_size", most::DIM)?;
    let moe = Moe { expert: Mlp { bias: true, ..gated(width) }, router_vectors: 1, ..local_experts(f)? };
    let runs = runs(n, |i| {
        let attention = Attention { span: spans[i as usize], ..attention.clone() };
        Ok(block(Mixer::Attention(attention), Ffn::Moe(moe.clone())))
    })?;
    shape(f, notes, false, runs)
}

/// Llama 4: three layers of four see their own chunk; every n-th layer has experts and a shared network.
pub(super) fn llama4(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("use_qk_norm attn_temperature_tuning attn_scale floor_scale for_llm_compressor");
    let n = layers(f)?;
    let chunk = f.count("attention_chunk_size", most::TOKENS)?;
    let global = f.count_or("no_rope_layer_interval", most::LAYERS, 4)?;
    let listed = f.counts_per_layer("no_rope_layers", n, 1)?;
    let step = f.count_or("interleave_moe_layer_step", most::LAYERS, 1)?;
    let moe_layers = f.layer_set("moe_layers")?;
    let attention = biased_gqa(f)?;
    let (width, dense) = (f.count("intermediate_size", most::DIM)?, f.count("intermediate_size_mlp", most::DIM)?);
    let moe = Moe { shared: Some(gated(width)), ..local_experts(f)? };
    let runs = runs(n, |i| {
        // The list marks layers that use rotary positions with 1; those see a chunk, the others everything.
        let rotary = listed.as_ref().map_or((i + 1) % global != 0, |list| list[i as usize] == 1);
        let span = if rotary { Span::Chunk(chunk) } else { Span::Full };
        let sparse = if moe_layers.is_empty() { (i + 1) % step == 0 } else { moe_layers.contains(&i) };
        let ffn = if sparse { Ffn::Moe(moe.clone()) } else { Ffn::Dense(gated(dense)) };
        Ok(block(Mixer::Attention(Attention { span, ..attention.clone() }), ffn))
    })?;
    shape(f, notes, false, runs)
}

/// MiniMax-M2: norms across all heads, score corrections, no shared network.
pub(super) fn minimax_m2(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "attn_type_list layernorm_full_attention_beta layernorm_linear_attention_beta layernorm_mlp_beta \
         shared_moe_mode",
    );
    no_mtp(f, notes);
    if let Some(shared) = f.opt_count("shared_intermediate_size", most::DIM)? {
        return Err(f.refuse("shared_intermediate_size", shared, "0"));
    }
    let qk_norm = minimax_norm(f)?;
    let corrected = u64::from(f.flag("use_routing_bias", true)?);
    let moe = Moe { router_vectors: corrected, ..local_experts(f)? };
    let block = block(Mixer::Attention(Attention { qk_norm, ..gqa(f)? }), Ffn::Moe(moe));
    alike(f, notes, false, block)
}

fn minimax_norm(f: &Fields) -> Result<QkNorm, SpecError> {
    Ok(match (f.flag("use_qk_norm", false)?, f.text_of("qk_norm_type")?) {
        (false, _) => QkNorm::None,
        (true, Some("per_head")) => QkNorm::PerHead,
        (true, Some("per_layer") | None) => QkNorm::AllHeads,
        (true, Some(other)) => return Err(f.refuse("qk_norm_type", other, "per_head or per_layer")),
    })
}

fn no_mtp(f: &Fields, notes: &mut Vec<String>) {
    let keys = ["use_mtp", "num_mtp_modules", "mtp_transformer_layers", "num_nextn_predict_layers"];
    if keys.iter().filter(|key| f.has(key)).count() > 0 {
        notes.push(
            "the file names multi-token-prediction modules; released checkpoints of this family hold none".into(),
        );
    }
}

/// MiniMax-M3: block-sparse attention in most layers, three dense layers first.
pub(super) fn minimax_m3(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("use_gemma_norm");
    no_mtp(f, notes);
    if f.flag("attention_output_gate", false)? {
        return Err(f.refuse("attention_output_gate", true, "false"));
    }
    let n = layers(f)?;
    let attention = Attention { qk_norm: minimax_norm(f)?, ..gqa(f)? };
    let sparse = f.object("sparse_attention_config")?;
    let (index, freq) = match &sparse {
        Some(s) if s.flag("use_sparse_attention", false)? => (
            Some(BlockIndex {
                block: s.count("sparse_block_size", most::TOKENS)?,
                top_k: s.count("sparse_topk_blocks", most::TOKENS)?,
                heads: s.count("sparse_num_index_heads", most::HEADS)?,
                kv_heads: 1,
                dim: s.count("sparse_index_dim", most::HEADS)?,
            }),
            s.counts_per_layer("sparse_attention_freq", n, 1)?,
        ),
        _ => (None, None),
    };
    let moe_layer = f.counts_per_layer("moe_layer_freq", n, 1)?;
    let dense = f.count("dense_intermediate_size", most::DIM)?;
    let shared = f.count("shared_intermediate_size", most::DIM)? * f.count_or("n_shared_experts", 1000, 1)?;
    let moe = Moe {
        shared: Some(gated(shared)),
        router_vectors: u64::from(f.flag("use_routing_bias", true)?),
        ..local_experts(f)?
    };
    let runs = runs(n, |i| {
        let on = |list: &Option<Vec<u64>>| list.as_ref().is_none_or(|list| list[i as usize] == 1);
        let span = index.filter(|_| on(&freq)).map_or(Span::Full, Span::Blocks);
        let ffn = if on(&moe_layer) { Ffn::Moe(moe.clone()) } else { Ffn::Dense(gated(dense)) };
        Ok(block(Mixer::Attention(Attention { span, ..attention.clone() }), ffn))
    })?;
    shape(f, notes, false, runs)
}

/// GLM-4.5: biases on queries, keys and values, score corrections, a layer that predicts ahead with its own vocabulary.
pub(super) fn glm4_moe(f: &Fields, notes: &mut Vec<String>) -> Read {
    let bias = f.flag("attention_bias", false)?;
    let qk_norm = if f.flag("use_qk_norm", false)? { QkNorm::PerHead } else { QkNorm::None };
    let attention = Attention { bias: Bias { qkv: bias, out: false }, qk_norm, ..gqa(f)? };
    // The checkpoint repeats the embedding and the head inside the extra layer.
    dense_first(f, notes, |_| Mixer::Attention(attention.clone()), deepseek_experts(f, 1)?, 2)
}

/// Dense networks first, experts after, and layers that predict ahead with so many copies of the vocabulary.
pub(super) fn dense_first(
    f: &Fields,
    notes: &mut Vec<String>,
    mixer: impl Fn(u64) -> Mixer,
    moe: Moe,
    copies: u64,
) -> Read {
    let n = layers(f)?;
    let first = f.opt_count("first_k_dense_replace", most::LAYERS)?.unwrap_or(0);
    let every = f.count_or("moe_layer_freq", most::LAYERS, 1)?;
    let listed = f.per_layer("mlp_layer_types", n)?;
    let plain = Ffn::Dense(gated(f.count("intermediate_size", most::DIM)?));
    let sparse = Ffn::Moe(moe);
    let runs = runs(n, |i| {
        let is_sparse = match listed.map(|list| (&list[i as usize], list[i as usize].as_str())) {
            None => i >= first && i % every == 0,
            Some((_, Some("sparse"))) => true,
            Some((_, Some("dense"))) => false,
            Some((other, _)) => return Err(f.bad("mlp_layer_types", other, "dense or sparse")),
        };
        Ok(block(mixer(i), if is_sparse { sparse.clone() } else { plain.clone() }))
    })?;
    let shape = shape(f, notes, false, runs)?;
    let ahead = f.opt_count("num_nextn_predict_layers", 1000)?.unwrap_or(0);
    Ok(Shape { mtp: mtp(&shape, ahead, block(mixer(n), sparse), copies), ..shape })
}

/// Ling and Ring: one fused projection with norms on queries and keys, score corrections from the second generation on,
/// dense networks first.
pub(super) fn bailing(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "max_window_layers sliding_window embedding_dropout output_dropout norm_head norm_softmax use_rmsnorm router_dtype \
         router_type score_function moe_router_topk_scaling_factor moe_router_enable_shared_expert mtp_loss_scaling_factor",
    );
    if f.flag("use_sliding_window", false)? {
        return Err(f.refuse("use_sliding_window", true, "false"));
    }
    let named = |key: &str, word: &str| f.get(key).is_some_and(|value| value.to_string().contains(word));
    let second = named("architectures", "MoeV2") || named("model_type", "_v2");
    let qk_norm = if f.flag("use_qk_norm", second)? { QkNorm::PerHead } else { QkNorm::None };
    let bias = Bias { qkv: f.flag("use_qkv_bias", false)?, out: f.flag("use_bias", false)? };
    let attention = Attention { bias, qk_norm, ..gqa(f)? };
    let moe = deepseek_experts(f, u64::from(f.flag("moe_router_enable_expert_bias", second)?))?;
    // Where it is given, the width of one shared expert.
    let n_shared = f.opt_count("num_shared_experts", 1000)?.unwrap_or(0);
    let shared = match f.opt_count("moe_shared_expert_intermediate_size", most::DIM)? {
        Some(width) if n_shared > 0 => Some(gated(n_shared * width)),
        _ => moe.shared,
    };
    dense_first(f, notes, |_| Mixer::Attention(attention.clone()), Moe { shared, ..moe }, 0)
}

/// dots.llm1: Qwen3's attention and DeepSeek's experts; where the file gives a window, the layers from `max_window_layers`
/// on have it.
pub(super) fn dots1(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("use_sliding_window");
    let n = layers(f)?;
    let first = f.count_or("max_window_layers", most::LAYERS, n)?;
    let window = f.opt_count("sliding_window", most::TOKENS)?;
    let listed = spans(f, n)?;
    let attention = Attention { qk_norm: QkNorm::PerHead, ..biased_gqa(f)? };
    let mixer = |i: u64| {
        let span = match (&listed, window) {
            (Some(spans), _) => spans.get(i as usize).copied().unwrap_or_default(),
            (None, Some(window)) if i >= first => Span::Window(window),
            (None, _) => Span::Full,
        };
        Mixer::Attention(Attention { span, ..attention.clone() })
    };
    dense_first(f, notes, mixer, deepseek_experts(f, 1)?, 0)
}

/// MiMo-V2-Flash: five windows with heads of their own and sinks to one full layer, values narrower than keys.
pub(super) fn mimo_v2(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "attention_chunk_size attention_projection_layout attention_value_scale moe_router_dtype sliding_window_size",
    );
    if f.flag("use_qk_norm", false)? {
        return Err(f.refuse("use_qk_norm", true, "false"));
    }
    let n = layers(f)?;
    let bias = Bias { qkv: f.flag("attention_bias", false)?, out: false };
    let heads = |[heads, kv_heads, dim, v_dim]: [&str; 4], sinks: &str| -> Result<Attention, SpecError> {
        let qk_dim = f.count(dim, most::HEADS)?;
        let full = Attention::full(f.count(heads, most::HEADS)?, f.count(kv_heads, most::HEADS)?, qk_dim);
        let v_dim = f.count_or(v_dim, most::HEADS, qk_dim)?;
        Ok(Attention { v_dim, bias, sinks: f.flag(sinks, false)?, ..full })
    };
    let full = heads(
        ["num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim"],
        "add_full_attention_sink_bias",
    )?;
    let local = heads(
        ["swa_num_attention_heads", "swa_num_key_value_heads", "swa_head_dim", "swa_v_head_dim"],
        "add_swa_attention_sink_bias",
    )?;
    let local = Attention { span: Span::Window(f.count("sliding_window", most::TOKENS)?), ..local };
    let listed = |key| f.counts_per_layer(key, n, 1)?.ok_or_else(|| f.missing(key));
    let (windowed, sparse) = (listed("hybrid_layer_pattern")?, listed("moe_layer_freq")?);
    let (dense, moe) = (gated(f.count("intermediate_size", most::DIM)?), deepseek_experts(f, 1)?);
    let runs = runs(n, |i| {
        let attention = if windowed[i as usize] == 1 { local.clone() } else { full.clone() };
        let ffn = if sparse[i as usize] == 1 { Ffn::Moe(moe.clone()) } else { Ffn::Dense(dense) };
        Ok(block(Mixer::Attention(attention), ffn))
    })?;
    shape(f, notes, false, runs)
}

/// Trinity (AFMoE): three windows to one full layer, gated attention, four norms, dense networks first.
pub(super) fn afmoe(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "mup_enabled load_balance_coeff num_expert_groups num_limited_groups route_norm route_scale score_func \
         use_grouped_mm",
    );
    let n = layers(f)?;
    let every = f.count_or("global_attn_every_n_layers", most::LAYERS, 4)?;
    let window = Span::Window(f.count("sliding_window", most::TOKENS)?);
    let spans = match spans(f, n)? {
        Some(spans) => spans,
        None => (0..n).map(|i| if (i + 1) % every == 0 { Span::Full } else { window }).collect(),
    };
    let attention = Attention { qk_norm: QkNorm::PerHead, gate: Gate::PerElement, ..gqa(f)? };
    let first = f.opt_count("num_dense_layers", most::LAYERS)?.unwrap_or(0);
    let (dense, moe) = (gated(f.count("intermediate_size", most::DIM)?), deepseek_experts(f, 1)?);
    let runs = runs(n, |i| {
        let attention = Attention { span: spans[i as usize], ..attention.clone() };
        let ffn = if i < first { Ffn::Dense(dense) } else { Ffn::Moe(moe.clone()) };
        Ok(Block { norms: 4, ..block(Mixer::Attention(attention), ffn) })
    })?;
    shape(f, notes, false, runs)
}

/// Step 3.5: three windows with more query heads to one full layer, a gate for each head, dense networks first.
pub(super) fn step3p5(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "att_impl_type moe_layer_offset moe_every_n_layer moe_router_activation moe_router_scaling_factor \
         need_fp32_gate norm_expert_weight swiglu_limits swiglu_limits_shared yarn_only_types use_rope_layers \
         partial_rotary_factors zero_centered sink",
    );
    let n = layers(f)?;
    let spans = spans(f, n)?.ok_or_else(|| f.missing("layer_types"))?;
    let dim = f.count("head_dim", most::HEADS)?;
    let kv_heads = f.count_any(&["num_attention_groups", "num_key_value_heads"], most::HEADS)?;
    let gate = if f.flag("use_head_wise_attn_gate", true)? { Gate::PerHead } else { Gate::None };
    let qk_norm = if f.flag("use_qk_norm", true)? { QkNorm::PerHead } else { QkNorm::None };
    let full =
        Attention { qk_norm, gate, ..Attention::full(f.count("num_attention_heads", most::HEADS)?, kv_heads, dim) };
    let local = match f.object("attention_other_setting")? {
        None => full.clone(),
        Some(other) => {
            let heads = other.count("num_attention_heads", most::HEADS)?;
            let kv_heads = other.count_or("num_attention_groups", most::HEADS, kv_heads)?;
            Attention {
                qk_norm,
                gate,
                ..Attention::full(heads, kv_heads, other.count_or("head_dim", most::HEADS, dim)?)
            }
        }
    };
    let sparse = f.text_of("moe_layers_enum")?.ok_or_else(|| f.missing("moe_layers_enum"))?;
    let sparse: Option<Vec<u64>> = sparse.split(',').map(|layer| layer.trim().parse().ok()).collect();
    let sparse =
        sparse.ok_or_else(|| f.refuse("moe_layers_enum", "a text", "layer numbers with commas between them"))?;
    let experts = experts_of(f, ["moe_num_experts", "moe_top_k", "moe_intermediate_size"])?;
    let moe = Moe {
        shared: f.opt_count("share_expert_dim", most::DIM)?.map(gated),
        router_vectors: u64::from(f.flag("use_moe_router_bias", true)?),
        ..experts
    };
    let dense = gated(f.count("intermediate_size", most::DIM)?);
    let runs = runs(n, |i| {
        let span = spans[i as usize];
        let attention = Attention { span, ..if span == Span::Full { full.clone() } else { local.clone() } };
        let ffn = if sparse.contains(&i) { Ffn::Moe(moe.clone()) } else { Ffn::Dense(dense) };
        Ok(block(Mixer::Attention(attention), ffn))
    })?;
    let shape = shape(f, notes, false, runs)?;
    let ahead = f.opt_count("num_nextn_predict_layers", 1000)?.unwrap_or(0);
    // The layers that predict ahead have a window and a dense network, by the model card.
    Ok(Shape { mtp: mtp(&shape, ahead, block(Mixer::Attention(local), Ffn::Dense(dense)), 0), ..shape })
}

/// Experts as DeepSeek spells them; `vectors` values per expert beside the router.
pub(super) fn deepseek_experts(f: &Fields, vectors: u64) -> Result<Moe, SpecError> {
    let width = f.count("moe_intermediate_size", most::DIM)?;
    let shared = f.opt_count("n_shared_experts", 1000)?.or(f.opt_count("num_shared_experts", 1000)?);
    let n = f.count_any(&["n_routed_experts", "num_experts"], most::EXPERTS)?;
    Ok(Moe { shared: shared.map(|n| gated(n * width)), router_vectors: vectors, ..experts(n, top_k(f)?, width) })
}

pub(super) fn dbrx(f: &Fields, notes: &mut Vec<String>) -> Read {
    let (hidden, heads) = (f.count("d_model", most::DIM)?, f.count("n_heads", most::HEADS)?);
    if hidden % heads != 0 {
        return Err(f.refuse("n_heads", heads, format!("a divisor of d_model {hidden}")));
    }
    let a = f.object("attn_config")?.ok_or_else(|| f.missing("attn_config"))?;
    let e = f.object("ffn_config")?.ok_or_else(|| f.missing("ffn_config"))?;
    let kv_heads = a.count_or("kv_n_heads", most::HEADS, heads)?;
    let moe = experts_of(&e, ["moe_num_experts", "moe_top_k", "ffn_hidden_size"])?;
    let block = block(Mixer::Attention(Attention::full(heads, kv_heads, hidden / heads)), Ffn::Moe(moe));
    alike(f, notes, false, block)
}

/// Phi-3.5-MoE: biases on attention and head, layer norms.
pub(super) fn phimoe(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("input_jitter_noise sliding_window");
    let attention = biased_gqa(f)?;
    let moe = local_experts(f)?;
    let block = block(Mixer::Attention(attention), Ffn::Moe(moe));
    let shape = alike(f, notes, false, block)?;
    Ok(Shape { norm: Norm::Layer, head_bias: f.flag("lm_head_bias", false)?, ..shape })
}

/// Hunyuan-Large: layers in pairs, the second reads the first's keys and values.
pub(super) fn hunyuan(f: &Fields, notes: &mut Vec<String>) -> Read {
    let qk_norm = if f.flag("use_qk_norm", false)? { QkNorm::PerHead } else { QkNorm::None };
    let share = if f.flag("use_cla", false)? { f.count("cla_share_factor", most::LAYERS)? } else { 1 };
    let attention = Attention { qk_norm, ..gqa(f)? };
    let width = f.count("intermediate_size", most::DIM)?;
    let n_shared = f.opt_count("num_shared_expert", 1000)?.unwrap_or(0);
    let moe = Moe {
        shared: (n_shared > 0).then(|| gated(n_shared * width)),
        ..experts(f.count("num_experts", most::EXPERTS)?, top_k(f)?, width)
    };
    let runs = runs(layers(f)?, |i| {
        let kv = if i % share == 0 { KvSource::Own } else { KvSource::Shared };
        Ok(block(Mixer::Attention(Attention { kv, ..attention.clone() }), Ffn::Moe(moe.clone())))
    })?;
    shape(f, notes, true, runs)
}

/// OLMoE: norms over the full width of queries and keys, experts as wide as `intermediate_size`.
pub(super) fn olmoe(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("clip_qkv");
    let moe = experts(f.count("num_experts", most::EXPERTS)?, top_k(f)?, f.count("intermediate_size", most::DIM)?);
    let attention = Attention { qk_norm: QkNorm::AllHeads, ..biased_gqa(f)? };
    alike(f, notes, false, block(Mixer::Attention(attention), Ffn::Moe(moe)))
}
