//! Encoders whose tokens see each other in both directions and that write nothing: embedding and reranking models.

use super::fields::{Fields, most};
use super::parts::{Read, alike, block, gated, layers, plain, runs, shape};
use crate::SpecError;
use crate::model::{Attention, Bias, Block, Ffn, Mixer, Mlp, Norm, Shape, Side, SideUse, Span};
use serde_json::Value;

/// The table of what kind of sentence a token is in.
const TYPES: &str = "token types";

/// Heads of the width divided evenly, seeing all.
fn sees_all(f: &Fields, bias: bool) -> Result<Attention, SpecError> {
    let (hidden, heads) = (f.count("hidden_size", most::DIM)?, f.count("num_attention_heads", most::HEADS)?);
    if !hidden.is_multiple_of(heads) {
        return Err(f.refuse("num_attention_heads", heads, format!("a divisor of hidden_size {hidden}")));
    }
    let full = Attention::full(heads, heads, hidden / heads);
    Ok(Attention { both_ways: true, bias: Bias { qkv: bias, out: bias }, ..full })
}

/// What stands behind the last layer: a pooler, or the two products of a classifier with one score per label.
fn end(f: &Fields, hidden: u64, pooler: bool) -> Vec<Side> {
    let class = f.get("architectures").and_then(|a| a.get(0)).and_then(|c| c.as_str()).unwrap_or("");
    let labels = f.get("id2label").and_then(|l| l.as_object()).map_or(1, |l| l.len().max(1) as u64);
    let dense = hidden * hidden + hidden;
    let score = labels * hidden + labels;
    let (name, params) = match class {
        _ if class.ends_with("ForSequenceClassification") => ("classifier", dense + score),
        _ if pooler && !class.contains("ForMaskedLM") => ("pooler", dense),
        _ => return Vec::new(),
    };
    f.pass_over("classifier_dropout");
    vec![Side { name, params, usage: SideUse::Multiplied }]
}

/// BERT: biases everywhere, norms behind the sublayers, learned positions, a pooler.
pub(super) fn bert(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("gradient_checkpointing position_embedding_type pooler_type classifier_dropout output_past");
    let ffn = Ffn::Dense(plain(f.count("intermediate_size", most::DIM)?, true));
    let base = alike(f, notes, true, block(Mixer::Attention(sees_all(f, true)?), ffn))?;
    let positions = f.count("max_position_embeddings", most::TOKENS)?;
    let types = f.count_or("type_vocab_size", 1000, 2)?;
    let mut side = end(f, base.hidden, true);
    side.push(Side { name: TYPES, params: types * base.hidden, usage: SideUse::LookedUp { rows: types } });
    // The norm behind the embeddings.
    Ok(Shape { positions, norm: Norm::Layer, outer_norms: 1, headless: true, side, ..base })
}

/// XLM-R and RoBERTa: BERT, with two positions that no token has.
pub(super) fn xlm_roberta(f: &Fields, notes: &mut Vec<String>) -> Read {
    if f.has("lora_adaptations") || f.text_of("position_embedding_type")? == Some("rotary") {
        return jina_v3(f, notes);
    }
    let shape = bert(f, notes)?;
    Ok(Shape { context_max: shape.context_max.map(|n| n.saturating_sub(2)), ..shape })
}

/// MPNet: BERT without types of tokens, and a bias on attention for each head and distance, shared by the layers.
pub(super) fn mpnet(f: &Fields, notes: &mut Vec<String>) -> Read {
    let buckets = f.count_or("relative_attention_num_buckets", 1_000_000, 32)?;
    let base = bert(f, notes)?;
    let mut side: Vec<Side> = base.side.iter().filter(|side| side.name != TYPES).cloned().collect();
    let heads = f.count("num_attention_heads", most::HEADS)?;
    side.push(Side { name: "biases of distances", params: buckets * heads, usage: SideUse::Multiplied });
    Ok(Shape { context_max: base.context_max.map(|n| n.saturating_sub(2)), side, ..base })
}

/// Jina's third embedding model: XLM-R with rotary positions and, beside every matrix and table, one of several low-rank
/// adapters, of which a request uses one.
pub(super) fn jina_v3(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "lora_alpha lora_dropout_p lora_main_params_trainable matryoshka_dimensions task_instructions truncate_dim use_reentrant \
         load_trained_adapters emb_pooler use_flash_attn",
    );
    let base = bert(f, notes)?;
    let (hidden, rank) = (base.hidden, f.opt_count("lora_rank", most::DIM)?.unwrap_or(0));
    let adapters = match f.get("lora_adaptations") {
        Some(Value::Array(tasks)) => tasks.len() as u64,
        Some(other) => return Err(f.bad("lora_adaptations", other, "a list of tasks")),
        None => 0,
    };
    let (width, types) = (f.count("intermediate_size", most::DIM)?, f.count_or("type_vocab_size", 1000, 2)?);
    // Queries, keys and values as one matrix; output, the network's two; outside the pooler and what follows the two tables.
    let layer = rank * ((hidden + 3 * hidden) + 2 * hidden + 2 * (hidden + width));
    let (used, rows) = (base.n_layers() * layer + rank * 4 * hidden, base.vocab + types);
    let mut side = base.side.clone();
    if adapters > 0 && rank > 0 {
        let idle = (adapters - 1) * (used + rank * rows);
        side.push(Side { name: "adapter of one task", params: used, usage: SideUse::Multiplied });
        side.push(Side { name: "its tables", params: rank * rows, usage: SideUse::LookedUp { rows } });
        side.push(Side { name: "adapters of other tasks", params: idle, usage: SideUse::Unused });
    }
    let context_max = base.context_max.map(|n| n.saturating_sub(2));
    Ok(Shape { positions: 0, context_max, side, ..base })
}

/// Nomic's BERT: GPT-2's names of the fields, rotary positions, gated networks, no pooler.
pub(super) fn nomic_bert(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "dense_seq_output fused_bias_fc fused_dropout_add_ln max_trained_positions pad_vocab_size_multiple prenorm \
         parallel_block_tied_norm rotary_emb_fraction use_xentropy n_ctx",
    );
    for key in ["causal", "parallel_block", "use_rms_norm"] {
        if f.flag(key, false)? {
            return Err(f.refuse(key, true, "false"));
        }
    }
    let (hidden, heads) = (f.count("n_embd", most::DIM)?, f.count("n_head", most::HEADS)?);
    if !hidden.is_multiple_of(heads) {
        return Err(f.refuse("n_head", heads, format!("a divisor of n_embd {hidden}")));
    }
    // One flag for the biases of the whole attention; of the network's two, both or none.
    let qkv = f.flag("qkv_proj_bias", true)?;
    let bias = f.flag("mlp_fc1_bias", true)?;
    if f.flag("mlp_fc2_bias", true)? != bias {
        return Err(f.refuse("mlp_fc2_bias", !bias, format!("the same as mlp_fc1_bias = {bias}")));
    }
    let gate = f.text_of("activation_function")?.is_some_and(|name| name.ends_with("glu"));
    let mlp = Mlp { width: f.count_or("n_inner", most::DIM, 4 * hidden)?, gated: gate, bias };
    let full = Attention::full(heads, heads, hidden / heads);
    let attention = Attention { both_ways: true, bias: Bias { qkv, out: qkv }, ..full };
    let base = alike(f, notes, true, block(Mixer::Attention(attention), Ffn::Dense(mlp)))?;
    let types = f.count_or("type_vocab_size", 1000, 2)?;
    let side = vec![Side { name: TYPES, params: types * hidden, usage: SideUse::LookedUp { rows: types } }];
    // One norm outside the layers: behind the embeddings.
    Ok(Shape { norm: Norm::Layer, outer_norms: 1, headless: true, side, ..base })
}

/// ModernBERT: gated networks, no biases, two windows to one full layer, the first layer without its first norm.
pub(super) fn modernbert(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over(
        "attention_bias embedding_dropout attention_dropout mlp_dropout mlp_bias norm_bias decoder_bias deterministic_flash_attn \
         global_rope_theta local_rope_theta hidden_activation reference_compile repad_logits_with_grad sparse_prediction \
         sparse_pred_ignore_index classifier_activation classifier_bias classifier_pooling position_embedding_type \
         layer_types norm_eps",
    );
    let (n, hidden) = (layers(f)?, f.count("hidden_size", most::DIM)?);
    let every = f.count_or("global_attn_every_n_layers", most::LAYERS, 3)?;
    let window = f.count_or("local_attention", most::TOKENS, 128)?;
    let (all, mlp) = (sees_all(f, false)?, Mlp { ..gated(f.count("intermediate_size", most::DIM)?) });
    let runs = runs(n, |i| {
        let span = if i % every == 0 { Span::Full } else { Span::Window(window) };
        let one = block(Mixer::Attention(Attention { span, ..all.clone() }), Ffn::Dense(mlp));
        Ok(Block { norms: if i == 0 { 1 } else { 2 }, ..one })
    })?;
    let class = f.get("architectures").and_then(|a| a.get(0)).and_then(|c| c.as_str()).unwrap_or("");
    // A reranker has a dense product with a norm before its score.
    let params = hidden * hidden + hidden + hidden + 1;
    let head = Side { name: "classifier", params, usage: SideUse::Multiplied };
    let side = if class.ends_with("ForSequenceClassification") { vec![head] } else { Vec::new() };
    Ok(Shape { norm: Norm::Rms, outer_norms: 2, headless: true, side, ..shape(f, notes, true, runs)? })
}
