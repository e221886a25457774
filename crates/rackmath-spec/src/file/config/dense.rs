//! Dense decoders of the Llama line: one attention, one gated network, two to four norms.

use super::fields::{Fields, most};
use super::parts::{Read, alike, biased_gqa, block, gated, gated_ffn, gqa, layers, mtp, plain, runs, shape, spans};
use crate::SpecError;
use crate::model::{Attention, Bias, Block, Ffn, Mixer, Mlp, Norm, QkNorm, Shape, Side, SideUse, Span};

fn uniform(f: &Fields, notes: &mut Vec<String>, tied: bool, attention: Attention, ffn: Ffn, norms: u64) -> Read {
    let block = Block { norms, ..block(Mixer::Attention(attention), ffn) };
    alike(f, notes, tied, block)
}

pub(super) fn llama(f: &Fields, notes: &mut Vec<String>) -> Read {
    let attention = biased_gqa(f)?;
    uniform(f, notes, false, attention, gated_ffn(f)?, 2)
}

/// Mistral: a window in every layer where the file gives one.
pub(super) fn mistral(f: &Fields, notes: &mut Vec<String>) -> Read {
    let span = f.opt_count("sliding_window", most::TOKENS)?.map_or(Span::Full, Span::Window);
    uniform(f, notes, false, Attention { span, ..gqa(f)? }, gated_ffn(f)?, 2)
}

/// Phi-3 fuses its projections; the counts are Llama's.
pub(super) fn phi3(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("attention_bias full_attn_mod");
    mistral(f, notes)
}

/// Qwen2: biases on queries, keys and values only.
pub(super) fn qwen2(f: &Fields, notes: &mut Vec<String>) -> Read {
    let attention = Attention { bias: Bias { qkv: true, out: false }, ..gqa(f)? };
    qwen(f, notes, &attention)
}

/// Qwen3: norms on queries and keys instead of biases.
pub(super) fn qwen3(f: &Fields, notes: &mut Vec<String>) -> Read {
    let attention = Attention { qk_norm: QkNorm::PerHead, ..biased_gqa(f)? };
    qwen(f, notes, &attention)
}

fn qwen(f: &Fields, notes: &mut Vec<String>, attention: &Attention) -> Read {
    let (n, spans) = (layers(f)?, qwen_spans(f)?);
    let ffn = gated_ffn(f)?;
    let runs = runs(n, |i| {
        Ok(block(Mixer::Attention(Attention { span: spans[i as usize], ..attention.clone() }), ffn.clone()))
    })?;
    shape(f, notes, false, runs)
}

/// Qwen's window is off unless `use_sliding_window`, and then serves the layers from `max_window_layers` on.
pub(super) fn qwen_spans(f: &Fields) -> Result<Vec<Span>, SpecError> {
    let n = layers(f)?;
    let window = f.opt_count("sliding_window", most::TOKENS)?;
    let first = f.count_or("max_window_layers", most::LAYERS, n)?;
    if let Some(spans) = spans(f, n)? {
        return Ok(spans);
    }
    let on = f.flag("use_sliding_window", false)?;
    let span = |i| match window {
        Some(window) if on && i >= first => Span::Window(window),
        _ => Span::Full,
    };
    Ok((0..n).map(span).collect())
}

pub(super) fn internlm(f: &Fields, notes: &mut Vec<String>) -> Read {
    let bias = f.flag("bias", true)?;
    let attention = Attention { bias: Bias { qkv: bias, out: bias }, ..gqa(f)? };
    uniform(f, notes, false, attention, gated_ffn(f)?, 2)
}

/// OLMo 2: norms after the sublayers, and over the full width of queries and keys.
pub(super) fn olmo2(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("attention_bias");
    uniform(f, notes, false, Attention { qk_norm: QkNorm::AllHeads, ..gqa(f)? }, gated_ffn(f)?, 2)
}

/// Command R: one weight-only norm, attention and network in parallel.
pub(super) fn cohere(f: &Fields, notes: &mut Vec<String>) -> Read {
    let qk_norm = if f.flag("use_qk_norm", false)? { QkNorm::AllHeads } else { QkNorm::None };
    let attention = Attention { qk_norm, ..biased_gqa(f)? };
    uniform(f, notes, true, attention, gated_ffn(f)?, 1)
}

pub(super) fn gemma(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("attention_bias");
    uniform(f, notes, true, gqa(f)?, gated_ffn(f)?, 2)
}

/// Gemma 2: every other layer sees a window; four norms.
pub(super) fn gemma2(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("sliding_window_size");
    local_global(f, notes, 2, QkNorm::None)
}

/// Gemma 3: five windows to one full layer; norms on queries and keys.
pub(super) fn gemma3(f: &Fields, notes: &mut Vec<String>) -> Read {
    let spelled = |key| f.opt_count(key, most::LAYERS);
    let period = spelled("sliding_window_pattern")?.or(spelled("_sliding_window_pattern")?).unwrap_or(6);
    local_global(f, notes, period, QkNorm::PerHead)
}

fn local_global(f: &Fields, notes: &mut Vec<String>, period: u64, qk_norm: QkNorm) -> Read {
    f.pass_over("attention_bias");
    let n = layers(f)?;
    let window = Span::Window(f.count("sliding_window", most::TOKENS)?);
    let spans = match spans(f, n)? {
        Some(spans) => spans,
        None => (0..n).map(|i| if (i + 1) % period == 0 { Span::Full } else { window }).collect(),
    };
    // Embedding models of the family see both ways.
    let both_ways = f.flag("use_bidirectional_attention", false)?;
    let (attention, ffn) = (Attention { qk_norm, both_ways, ..gqa(f)? }, gated_ffn(f)?);
    let runs = runs(n, |i| {
        let attention = Attention { span: spans[i as usize], ..attention.clone() };
        Ok(Block { norms: 4, ..block(Mixer::Attention(attention), ffn.clone()) })
    })?;
    shape(f, notes, true, runs)
}

/// The first Qwen: biases on the fused projection, and a network half as wide as the file says.
pub(super) fn qwen1(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("no_bias kv_channels");
    let attention = Attention { bias: Bias { qkv: true, out: false }, ..gqa(f)? };
    let ffn = Ffn::Dense(gated(f.count("intermediate_size", most::DIM)? / 2));
    let shape = uniform(f, notes, false, attention, ffn, 2)?;
    Ok(Shape { norm: Norm::Rms, ..shape })
}

/// Granite 3: Llama with four multipliers that no shape depends on.
pub(super) fn granite(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("attention_multiplier embedding_multiplier residual_multiplier logits_scaling");
    llama(f, notes)
}

/// SmolLM3: Llama in which every fourth layer turns no positions, and a window that is off.
pub(super) fn smollm3(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("no_rope_layers no_rope_layer_interval");
    let (n, spans, attention, ffn) = (layers(f)?, qwen_spans(f)?, biased_gqa(f)?, gated_ffn(f)?);
    let runs = runs(n, |i| {
        Ok(block(Mixer::Attention(Attention { span: spans[i as usize], ..attention.clone() }), ffn.clone()))
    })?;
    shape(f, notes, true, runs)
}

/// Seed-OSS: biases on queries, keys and values, and apart from them on the output.
pub(super) fn seed_oss(f: &Fields, notes: &mut Vec<String>) -> Read {
    let bias = Bias { qkv: f.flag("attention_bias", true)?, out: f.flag("attention_out_bias", false)? };
    uniform(f, notes, false, Attention { bias, ..gqa(f)? }, gated_ffn(f)?, 2)
}

/// ERNIE 4.5 without experts: one flag for all biases.
pub(super) fn ernie(f: &Fields, notes: &mut Vec<String>) -> Read {
    let bias = f.flag("use_bias", false)?;
    let ffn = Ffn::Dense(Mlp { bias, ..gated(f.count("intermediate_size", most::DIM)?) });
    uniform(f, notes, true, Attention { bias: Bias { qkv: bias, out: bias }, ..gqa(f)? }, ffn, 2)
}

/// Llama 3.2 with pictures: between Llama's layers stand some whose keys are those of the picture, with norms on queries and keys and two gates.
pub(super) fn mllama(f: &Fields, notes: &mut Vec<String>) -> Read {
    let cross = f.layer_set("cross_attention_layers")?;
    let (attention, ffn) = (gqa(f)?, gated_ffn(f)?);
    notes.push(format!("{} layers read a picture's keys; without pictures they hold no cache", cross.len()));
    let gates = Side { name: "gates of layers that read pictures", params: 2, usage: SideUse::Multiplied };
    let runs = runs(layers(f)?, |i| {
        if !cross.contains(&i) {
            return Ok(block(Mixer::Attention(attention.clone()), ffn.clone()));
        }
        // One token stands for no cache, which a span cannot say.
        let pictures = Attention { qk_norm: QkNorm::PerHead, span: Span::Window(1), ..attention.clone() };
        Ok(Block { side: vec![gates.clone()], ..block(Mixer::Attention(pictures), ffn.clone()) })
    })?;
    let shape = shape(f, notes, false, runs)?;
    // Eight rows more than the head has, for the tokens of pictures.
    let rows = Side {
        name: "rows of the embedding for pictures",
        params: 8 * shape.hidden,
        usage: SideUse::LookedUp { rows: 8 },
    };
    Ok(Shape { side: [shape.side.clone(), vec![rows]].concat(), ..shape })
}

/// MiMo 7B: Qwen2 with a layer that predicts ahead.
pub(super) fn mimo(f: &Fields, notes: &mut Vec<String>) -> Read {
    let shape = qwen2(f, notes)?;
    let ahead = f.opt_count("num_nextn_predict_layers", 1000)?.unwrap_or(0);
    let last = shape.runs.last().map(|run| run.block.clone());
    let mtp = last.and_then(|block| mtp(&shape, ahead, block, 0));
    Ok(Shape { mtp, ..shape })
}

/// GLM-4 9B: biases on queries, keys and values.
pub(super) fn glm(f: &Fields, notes: &mut Vec<String>) -> Read {
    let bias = Bias { qkv: f.flag("attention_bias", true)?, out: false };
    uniform(f, notes, false, Attention { bias, ..gqa(f)? }, gated_ffn(f)?, 2)
}

/// GLM-4-0414 and the text of GLM-4.1V: the same with norms behind both sublayers too.
pub(super) fn glm4(f: &Fields, notes: &mut Vec<String>) -> Read {
    let bias = Bias { qkv: f.flag("attention_bias", false)?, out: false };
    uniform(f, notes, false, Attention { bias, ..gqa(f)? }, gated_ffn(f)?, 4)
}

/// OLMo 3: OLMo 2 with three windows to one full layer.
pub(super) fn olmo3(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("attention_bias");
    windows(f, notes, 4, &Attention { qk_norm: QkNorm::AllHeads, ..gqa(f)? }, 2, false)
}

/// EXAONE 4: norms behind both sublayers and on queries and keys; three windows to one full layer in the large one.
pub(super) fn exaone4(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("sliding_window_pattern");
    windows(f, notes, 4, &Attention { qk_norm: QkNorm::PerHead, ..gqa(f)? }, 2, false)
}

/// EXAONE 3: Llama's shapes under GPT's names of the fields.
pub(super) fn exaone(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("embed_dropout");
    uniform(f, notes, false, gqa(f)?, gated_ffn(f)?, 2)
}

/// Apertus: two matrices with an activation that learns two values in each layer; norms on queries and keys.
pub(super) fn apertus(f: &Fields, notes: &mut Vec<String>) -> Read {
    if f.flag("post_norm", false)? {
        return Err(f.refuse("post_norm", true, "false"));
    }
    let qk_norm = if f.flag("qk_norm", true)? { QkNorm::PerHead } else { QkNorm::None };
    let attention = Attention { qk_norm, ..biased_gqa(f)? };
    let learned = Side { name: "values of the activation", params: 2, usage: SideUse::Multiplied };
    let block = Block { side: vec![learned], ..block(Mixer::Attention(attention), plain_ffn(f)?) };
    alike(f, notes, false, block)
}

/// AFM: Llama with two matrices and a squared rectifier in place of the gated network.
pub(super) fn arcee(f: &Fields, notes: &mut Vec<String>) -> Read {
    uniform(f, notes, false, biased_gqa(f)?, plain_ffn(f)?, 2)
}

/// StableLM: layer norms; side by side, attention and network share one. The 12B has norms of their own for each head.
pub(super) fn stablelm(f: &Fields, notes: &mut Vec<String>) -> Read {
    let qk_norm = if f.flag("qk_layernorm", false)? { QkNorm::AllHeads } else { QkNorm::None };
    let norms = if f.flag("use_parallel_residual", false)? { 1 } else { 2 };
    let bias = Bias { qkv: f.flag("use_qkv_bias", false)?, out: false };
    let shape = uniform(f, notes, false, Attention { bias, qk_norm, ..gqa(f)? }, gated_ffn(f)?, norms)?;
    Ok(Shape { norm: Norm::Layer, ..shape })
}

fn plain_ffn(f: &Fields) -> Result<Ffn, SpecError> {
    let bias = f.flag("mlp_bias", false)?;
    Ok(Ffn::Dense(plain(f.count("intermediate_size", most::DIM)?, bias)))
}

/// Command R7B: Command R with three windows to one full layer.
pub(super) fn cohere2(f: &Fields, notes: &mut Vec<String>) -> Read {
    f.pass_over("order_of_interleaved_layers");
    let period = f.count_or("sliding_window_pattern", most::LAYERS, 4)?;
    windows(f, notes, period, &biased_gqa(f)?, 1, true)
}

/// Windows with one full layer to each `period`, where the file has a window and no list of layers.
fn windows(f: &Fields, notes: &mut Vec<String>, period: u64, attention: &Attention, norms: u64, tied: bool) -> Read {
    let (n, ffn) = (layers(f)?, gated_ffn(f)?);
    let window = f.opt_count("sliding_window", most::TOKENS)?.map_or(Span::Full, Span::Window);
    let spans = match spans(f, n)? {
        Some(spans) => spans,
        None => (0..n).map(|i| if (i + 1) % period.max(1) == 0 { Span::Full } else { window }).collect(),
    };
    let runs = runs(n, |i| {
        let attention = Attention { span: spans[i as usize], ..attention.clone() };
        Ok(Block { norms, ..block(Mixer::Attention(attention), ffn.clone()) })
    })?;
    shape(f, notes, tied, runs)
}
