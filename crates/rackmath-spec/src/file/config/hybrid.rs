//! Models whose layers are mostly recurrences: delta nets, Mamba, lightning attention, with a few attention layers between.

use super::fields::{Fields, most};
use super::latent::latent;
use super::moe::{deepseek_experts, local_experts, qwen_experts};
use super::parts::{
    Read, alike, biased_gqa, block, experts, experts_of, gated, gqa, layers, mamba2, mtp, plain, runs, shape,
};
use crate::SpecError;
use crate::model::{
    Attention, Block, Ffn, Gate, Latent, LatentExperts, Linear, Mixer, Moe, QkNorm, Shape, Side, SideUse,
};
use serde_json::Value;

/// Qwen3-Next: three gated delta nets to one gated attention.
pub(super) fn qwen3_next(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("intermediate_size use_sliding_window decoder_sparse_step");
    qwen_hybrid(f, notes, 1, false)
}

pub(super) fn qwen3_5(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("attn_output_gate mtp_use_dedicated_embeddings");
    let ahead = f.count_or("mtp_num_hidden_layers", 1000, 1)?;
    qwen_hybrid(f, notes, ahead, true)
}

fn qwen_hybrid(f: &Fields, notes: &mut Vec<String>, ahead: u64, wide: bool) -> Read {
    let n = layers(f)?;
    let every = f.count_or("full_attention_interval", most::LAYERS, 4)?;
    let listed = f.per_layer("layer_types", n)?;
    let gated_attention = Attention { qk_norm: QkNorm::PerHead, gate: Gate::PerElement, ..biased_gqa(f)? };
    let full = Mixer::Attention(gated_attention);
    let delta = Mixer::Linear(Linear::GatedDelta {
        k_heads: f.count("linear_num_key_heads", most::HEADS)?,
        v_heads: f.count("linear_num_value_heads", most::HEADS)?,
        k_dim: f.count("linear_key_head_dim", most::HEADS)?,
        v_dim: f.count("linear_value_head_dim", most::HEADS)?,
        conv: f.count("linear_conv_kernel_dim", 1000)?,
        wide: f.text_of("mamba_ssm_dtype")?.map_or(wide, |word| word == "float32"),
    });
    let sparse = f.has("num_experts");
    let dense = f.layer_set("mlp_only_layers")?;
    let width = f.opt_count("intermediate_size", most::DIM)?;
    let ffn = |i: u64| -> Result<Ffn, SpecError> {
        if sparse && !dense.contains(&i) {
            Ok(Ffn::Moe(qwen_experts(f)?))
        } else {
            Ok(Ffn::Dense(gated(width.ok_or_else(|| f.missing("intermediate_size"))?)))
        }
    };
    let runs = runs(n, |i| {
        let is_full = match listed.map(|list| (&list[i as usize], list[i as usize].as_str())) {
            None => (i + 1) % every == 0,
            Some((_, Some("full_attention"))) => true,
            Some((_, Some("linear_attention"))) => false,
            Some((other, _)) => return Err(f.bad("layer_types", other, "full_attention or linear_attention")),
        };
        Ok(block(if is_full { full.clone() } else { delta.clone() }, ffn(i)?))
    })?;
    let shape = shape(f, notes, false, runs)?;
    Ok(Shape { mtp: mtp(&shape, ahead, block(full, ffn(n)?), 0), ..shape })
}

/// Kimi Linear and Kimi K3: Kimi delta attention with a latent attention now and then. Layer numbers count from 1.
pub(super) fn kimi_linear(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "mla_use_nope use_grouped_topk num_expert_group moe_renormalize moe_router_activation_func head_dim \
         activation_situ_beta activation_situ_linear_beta num_nextn_predict_layers",
    );
    let n = layers(f)?;
    let c = f.object("linear_attn_config")?.ok_or_else(|| f.missing("linear_attn_config"))?;
    let kda = c.layer_set("kda_layers")?;
    let heads = c.count("num_heads", most::HEADS)?;
    let full_gate = c.flag("use_full_rank_gate", false)?;
    let linear = Linear::Kda {
        heads,
        dim: c.count("head_dim", most::HEADS)?,
        conv: c.count("short_conv_kernel_size", 1000)?,
        full_gate,
    };
    let gate = if f.flag("mla_use_output_gate", false)? { Gate::PerElement } else { Gate::None };
    let full = Latent { gate, ..latent(f)? };
    let residuals = f.opt_count("attn_res_block_size", most::LAYERS)?.is_some();
    let hidden = f.count("hidden_size", most::DIM)?;
    let first = f.opt_count("first_k_dense_replace", most::LAYERS)?.unwrap_or(0);
    let every = f.count_or("moe_layer_freq", most::LAYERS, 1)?;
    let dense = f.count("intermediate_size", most::DIM)?;
    let narrow = f.opt_count("routed_expert_hidden_size", most::DIM)?;
    let norm = f.flag("latent_moe_use_norm", false)?;
    let moe = Moe { latent: narrow.map(|width| LatentExperts { width, norm }), ..deepseek_experts(f, 1)? };
    let runs = runs(n, |i| {
        let is_linear = kda.contains(&(i + 1));
        let mixer = if is_linear { Mixer::Linear(linear.clone()) } else { Mixer::Latent(full.clone()) };
        let ffn = if i >= first && i % every == 0 { Ffn::Moe(moe.clone()) } else { Ffn::Dense(gated(dense)) };
        let mut side = Vec::new();
        if residuals {
            // Attention residuals: a one-row projection and a norm for each sublayer.
            side.push(Side { name: "attention residuals", params: 4 * hidden, usage: SideUse::Multiplied });
        }
        if is_linear && full_gate && heads < 128 {
            // The checkpoint pads the decay vector to 128 values.
            side.push(Side { name: "padded decay", params: 128 - heads, usage: SideUse::Unused });
        }
        Ok(Block { side, ..block(mixer, ffn) })
    })?;
    let mut shape = shape(f, notes, false, runs)?;
    if residuals {
        shape.side.push(Side { name: "output residual", params: 2 * hidden, usage: SideUse::Multiplied });
    }
    Ok(shape)
}

/// Nemotron-H and Nemotron 3: one mixer or one network per layer, spelled as a pattern of letters.
pub(super) fn nemotron_h(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "expand chunk_size mamba_hidden_act mamba_ssm_cache_dtype mamba_dt_init_floor mamba_dt_limit mamba_dt_max \
         mamba_dt_min mtp_hybrid_override_pattern mtp_layers_block_type moe_shared_expert_overlap n_shared_experts num_logits_to_keep \
         residual_in_fp32 rescale_prenorm_residual time_step_floor time_step_limit time_step_max time_step_min \
         sliding_window attention_bias",
    );
    let pattern = match f.text_of("hybrid_override_pattern")? {
        Some(pattern) => pattern.to_owned(),
        None => block_letters(f)?,
    };
    let n = f.count_or("num_hidden_layers", most::LAYERS, pattern.chars().count() as u64)?;
    if pattern.chars().count() as u64 != n {
        return Err(f.refuse("hybrid_override_pattern", pattern, format!("one letter for each of {n} layers")));
    }
    let proj_bias = f.flag("mamba_proj_bias", false)? || f.flag("use_bias", false)?;
    let names = ["mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size", "conv_kernel"];
    let mamba = mamba2(f, names, f.flag("use_conv_bias", true)?, proj_bias)?;
    let mut attention = gqa(f)?;
    if let Some(dim) = f.opt_count("attention_head_dim", most::HEADS)? {
        (attention.qk_dim, attention.v_dim) = (dim, dim);
    }
    let bias = f.flag("mlp_bias", false)?;
    let moe = if pattern.contains('E') {
        let width = f.count("moe_intermediate_size", most::DIM)?;
        let latent = f.opt_count("moe_latent_size", most::DIM)?.map(|width| LatentExperts { width, norm: false });
        let shared = f.count("moe_shared_expert_intermediate_size", most::DIM)?;
        Some(Moe { expert: plain(width, bias), shared: Some(plain(shared, bias)), latent, ..deepseek_experts(f, 1)? })
    } else {
        None
    };
    let dense = plain(f.count("intermediate_size", most::DIM)?, bias);
    let one = |mixer: Mixer, ffn: Ffn| Block { norms: 1, ..block(mixer, ffn) };
    let letters: Vec<char> = pattern.chars().collect();
    let runs = runs(n, |i| {
        Ok(match letters[i as usize] {
            'M' => one(Mixer::Linear(mamba.clone()), Ffn::None),
            '*' => one(Mixer::Attention(attention.clone()), Ffn::None),
            '-' => one(Mixer::None, Ffn::Dense(dense)),
            'E' => one(Mixer::None, moe.clone().map_or(Ffn::None, Ffn::Moe)),
            other => return Err(f.refuse("hybrid_override_pattern", other, "M, *, - or E")),
        })
    })?;
    let shape = shape(f, notes, false, runs)?;
    let ahead = f.opt_count("num_nextn_predict_layers", 1000)?.unwrap_or(0);
    let head = moe.map(|moe| block(Mixer::Attention(attention), Ffn::Moe(moe)));
    Ok(Shape { mtp: head.and_then(|block| mtp(&shape, ahead, block, 0)), ..shape })
}

/// The pattern of a file that names its blocks in words.
fn block_letters(f: &Fields) -> Result<String, SpecError> {
    let words = f.get("layers_block_type").and_then(Value::as_array);
    let words = words.ok_or_else(|| f.missing("hybrid_override_pattern"))?;
    let letter = |word: &Value| match word.as_str() {
        Some("mamba") => Ok('M'),
        Some("attention") => Ok('*'),
        Some("mlp") => Ok('-'),
        Some("moe") => Ok('E'),
        _ => Err(f.bad("layers_block_type", word, "mamba, attention, mlp or moe")),
    };
    words.iter().map(letter).collect()
}

/// Jamba: Mamba with attention every eighth layer and experts every second.
pub(super) fn jamba(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("use_mamba_kernels num_logits_to_keep sliding_window");
    let hidden = f.count("hidden_size", most::DIM)?;
    let dt_rank = match f.text_of("mamba_dt_rank") {
        Ok(Some("auto")) => hidden.div_ceil(16),
        _ => f.count("mamba_dt_rank", most::DIM)?,
    };
    let mamba = Linear::Mamba1 {
        inner: hidden * f.count("mamba_expand", 1000)?,
        state: f.count("mamba_d_state", most::HEADS)?,
        conv: f.count("mamba_d_conv", 1000)?,
        dt_rank,
        inner_norms: true,
        conv_bias: f.flag("mamba_conv_bias", true)?,
        proj_bias: f.flag("mamba_proj_bias", false)?,
    };
    let (period, offset) =
        (f.count("attn_layer_period", most::LAYERS)?, f.opt_count("attn_layer_offset", most::LAYERS)?.unwrap_or(0));
    let (every, from) =
        (f.count("expert_layer_period", most::LAYERS)?, f.opt_count("expert_layer_offset", most::LAYERS)?.unwrap_or(0));
    let width = f.count("intermediate_size", most::DIM)?;
    let moe = experts(f.count("num_experts", most::EXPERTS)?, f.count("num_experts_per_tok", most::EXPERTS)?, width);
    let attention = gqa(f)?;
    let runs = runs(layers(f)?, |i| {
        let mixer = if i % period == offset % period {
            Mixer::Attention(attention.clone())
        } else {
            Mixer::Linear(mamba.clone())
        };
        let ffn = if i % every == from % every { Ffn::Moe(moe.clone()) } else { Ffn::Dense(gated(width)) };
        Ok(block(mixer, ffn))
    })?;
    shape(f, notes, false, runs)
}

/// Mamba: nothing but the first recurrence.
pub(super) fn mamba(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "n_layer fused_add_norm rms_norm residual_in_fp32 rescale_prenorm_residual ssm_cfg d_inner d_model \
         pad_vocab_size_multiple time_step_floor time_step_init_scheme time_step_max time_step_min time_step_scale \
         expand",
    );
    let hidden = f.count("hidden_size", most::DIM)?;
    let linear = Linear::Mamba1 {
        inner: f.count("intermediate_size", most::DIM)?,
        state: f.count("state_size", most::HEADS)?,
        conv: f.count("conv_kernel", 1000)?,
        dt_rank: f.count_or("time_step_rank", most::DIM, hidden.div_ceil(16))?,
        inner_norms: false,
        conv_bias: f.flag("use_conv_bias", true)?,
        proj_bias: f.flag("use_bias", false)?,
    };
    let block = Block { norms: 1, ..block(Mixer::Linear(linear), Ffn::None) };
    alike(f, notes, true, block)
}

pub(super) fn mamba_2(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "chunk_size expand rms_norm residual_in_fp32 rescale_prenorm_residual norm_before_gate time_step_floor \
         time_step_limit time_step_max time_step_min time_step_rank",
    );
    let names = ["num_heads", "head_dim", "n_groups", "state_size", "conv_kernel"];
    let linear = mamba2(f, names, f.flag("use_conv_bias", true)?, f.flag("use_bias", false)?)?;
    let block = Block { norms: 1, ..block(Mixer::Linear(linear), Ffn::None) };
    alike(f, notes, false, block)
}

/// Mamba-2 as its authors released it: a few fields and a padded vocabulary.
pub(super) fn mamba_ssm(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("d_intermediate rms_norm residual_in_fp32 fused_add_norm attn_layer_idx attn_cfg");
    let c = f.object("ssm_cfg")?.ok_or_else(|| f.missing("ssm_cfg"))?;
    if c.text_of("layer")? != Some("Mamba2") {
        return Err(c.refuse("layer", c.text_of("layer")?.unwrap_or("missing"), "Mamba2"));
    }
    let hidden = f.count("d_model", most::DIM)?;
    let dim = c.count_or("headdim", most::HEADS, 64)?;
    let linear = Linear::Mamba2 {
        heads: hidden * c.count_or("expand", 1000, 2)? / dim,
        dim,
        groups: c.count_or("ngroups", most::HEADS, 1)?,
        state: c.count_or("d_state", most::HEADS, 128)?,
        conv: c.count_or("d_conv", 1000, 4)?,
        conv_bias: true,
        proj_bias: false,
    };
    let block = Block { norms: 1, ..block(Mixer::Linear(linear), Ffn::None) };
    let shape = alike(f, notes, f.flag("tie_embeddings", true)?, block)?;
    let pad = f.count_or("pad_vocab_size_multiple", most::DIM, 1)?;
    Ok(Shape { vocab: shape.vocab.div_ceil(pad) * pad, ..shape })
}

/// Granite 4 hybrid: Mamba-2 or attention, then experts and a shared network, in every layer.
pub(super) fn granite_hybrid(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "attention_bias attention_multiplier embedding_multiplier logits_scaling residual_multiplier \
         mamba_chunk_size mamba_expand normalization_function position_embedding_type",
    );
    let n = layers(f)?;
    let types = f.per_layer("layer_types", n)?.ok_or_else(|| f.missing("layer_types"))?;
    let names = ["mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state", "mamba_d_conv"];
    let (conv_bias, proj_bias) = (f.flag("mamba_conv_bias", true)?, f.flag("mamba_proj_bias", false)?);
    // Some of the family have attention in every layer, and name the recurrence all the same.
    f.pass_over(&names.join(" "));
    let recurs = types.iter().any(|kind| kind.as_str() == Some("mamba"));
    let mamba = recurs.then(|| mamba2(f, names, conv_bias, proj_bias)).transpose()?;
    let attention = gqa(f)?;
    let shared = f.count("shared_intermediate_size", most::DIM)?;
    let ffn = if f.opt_count("num_local_experts", most::EXPERTS)?.is_some() {
        let names = ["num_local_experts", "num_experts_per_tok", "intermediate_size"];
        Ffn::Moe(Moe { shared: Some(gated(shared)), ..experts_of(f, names)? })
    } else {
        f.pass_over("intermediate_size num_experts_per_tok");
        Ffn::Dense(gated(shared))
    };
    let runs = runs(n, |i| {
        let mixer = match (types[i as usize].as_str(), &mamba) {
            (Some("mamba"), Some(mamba)) => Mixer::Linear(mamba.clone()),
            (Some("attention"), _) => Mixer::Attention(attention.clone()),
            _ => return Err(f.bad("layer_types", &types[i as usize], "mamba or attention")),
        };
        Ok(block(mixer, ffn.clone()))
    })?;
    shape(f, notes, true, runs)
}

/// MiniMax-Text-01: seven lightning attentions to one softmax attention, experts throughout.
pub(super) fn minimax_text_01(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "layernorm_full_attention_alpha layernorm_full_attention_beta layernorm_linear_attention_alpha \
         layernorm_linear_attention_beta layernorm_mlp_alpha layernorm_mlp_beta shared_moe_mode postnorm",
    );
    if let Some(shared) = f.opt_count("shared_intermediate_size", most::DIM)? {
        return Err(f.refuse("shared_intermediate_size", shared, "0"));
    }
    let n = layers(f)?;
    let kinds = f.counts_per_layer("attn_type_list", n, 1)?.ok_or_else(|| f.missing("attn_type_list"))?;
    let full = gqa(f)?;
    let lightning = Linear::Lightning { heads: full.heads, dim: full.qk_dim };
    let moe = local_experts(f)?;
    let runs = runs(n, |i| {
        let mixer =
            if kinds[i as usize] == 1 { Mixer::Attention(full.clone()) } else { Mixer::Linear(lightning.clone()) };
        Ok(block(mixer, Ffn::Moe(moe.clone())))
    })?;
    shape(f, notes, false, runs)
}
