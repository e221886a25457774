//! Dense decoders of the Llama line: one attention, one gated network, two to four norms.

use super::fields::{Fields, most};
use super::parts::{Read, alike, biased_gqa, block, gated, gated_ffn, gqa, layers, runs, shape, spans};
use crate::SpecError;
use crate::model::{Attention, Bias, Block, Ffn, Mixer, Norm, QkNorm, Shape, Span};

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
    let period = f.count_or("sliding_window_pattern", most::LAYERS, 6)?;
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
    let (attention, ffn) = (Attention { qk_norm, ..gqa(f)? }, gated_ffn(f)?);
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
