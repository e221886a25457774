//! Weights as they stand in memory: what a checkpoint becomes when it is loaded, and what drafts beside it.

use super::Asked;
use crate::count::towers::towers_bytes;
use crate::count::{Cut, Part, Tensor, block_tensors};
use crate::deployment::Deployment;
use crate::drafter::Drafter;
use crate::placement::bytes_here;
use rackmath_spec::Dtype;
use rackmath_spec::launch::Start;
use rackmath_spec::memory::{MemoryRule, Way};
use rackmath_spec::model::{Block, Ffn, Formats, Mixer, Mlp, Shape};

/// Layers that draft, beside the model's own; those of another model are counted with it.
pub(super) fn draft_layers(on: &Deployment, start: &Start, asked: &Asked, shape: &Shape) -> u64 {
    match asked.drafts {
        0 => 0,
        _ if matches!(on.drafter, Drafter::Model(_)) => 0,
        _ if is_eagle(start) => 1,
        _ => shape.mtp.as_ref().map_or(0, |mtp| mtp.n.min(1)),
    }
}

pub(super) fn is_eagle(start: &Start) -> bool {
    start.drafter.as_deref().is_some_and(|name| name.to_ascii_lowercase().contains("eagle"))
}

/// Weights of an EAGLE head on one chip, in 16 bits: a layer like the last that reads two vectors, a matrix that folds three
/// vectors of the model into one, and a head for its own short vocabulary.
pub(super) fn eagle_weights(on: &Deployment, shape: &Shape) -> f64 {
    let (d, h) = (on.layout.degrees(), shape.hidden as f64);
    let formats = Formats::uniform(Dtype::Bf16);
    let layer: f64 = shape.runs.last().map_or(0.0, |run| {
        let dense = Block { ffn: dense(&run.block.ffn), ..run.block.clone() };
        let tensors = block_tensors(shape, &dense);
        let reads_two = |name: &str| f64::from(u8::from(["query", "key", "value"].contains(&name)));
        tensors.iter().map(|t| bytes_here(t, formats, &d) * (1.0 + reads_two(t.name))).sum()
    });
    layer + 2.0 * (3.0 * h * h + EAGLE_VOCABULARY * h) / d.tp as f64
}

/// The network of a draft's layer is dense, as wide as the experts of a token together.
fn dense(ffn: &Ffn) -> Ffn {
    match ffn {
        Ffn::Moe(moe) => Ffn::Dense(Mlp { width: moe.expert.width * moe.top_k, ..moe.expert }),
        other => other.clone(),
    }
}

/// Words that EAGLE-3 heads choose among (yuhuili/EAGLE3-LLaMA3.3-Instruct-70B, config.json: draft_vocab_size).
const EAGLE_VOCABULARY: f64 = 32_000.0;

/// The formats in which a checkpoint stands in memory. One whose experts are in NVFP4 leaves attention in 16 bits.
pub(super) fn as_stored(on: &Deployment, shape: &Shape) -> Deployment {
    let mut formats = on.formats;
    if formats.routed == Dtype::NvFp4 && formats.mixer == Dtype::NvFp4 && shape.moe().is_some() {
        formats.mixer = Dtype::Bf16;
    }
    Deployment { formats, ..on.clone() }
}

/// What experts in MXFP4 take beyond their size: kernels want one of their sides as a multiple of so many values.
pub(super) fn filling(on: &Deployment, rule: &MemoryRule, shape: &Shape, layers: u64) -> f64 {
    const SIDE: u64 = 256;
    // llama.cpp keeps them as its file has them.
    let fills = on.formats.routed == Dtype::MxFp4 && rule.way != Way::Asked;
    let Some(moe) = shape.moe().filter(|_| fills) else { return 0.0 };
    let d = on.layout.degrees();
    let experts = moe.expert_params(shape.hidden, moe.expert.width) * moe.experts as f64 / (d.ep * d.etp) as f64;
    let more = shape.hidden.next_multiple_of(SIDE) as f64 / shape.hidden as f64 - 1.0;
    experts * on.formats.routed.width().get() * more * layers as f64 * shape.moe_layers() as f64
        / shape.n_layers() as f64
}

/// What engines make of weights when they load them, for the layers of a stage: matrices of latent attention once more in 16 bits,
/// folded into queries and outputs; and whole copies of what every token passes, where SGLang sends tokens to experts of all groups.
///
/// Source: vllm/v1/attention/backends/mla/common.py (W_UK, W_UV), sgl-project/sglang python/sglang/srt/models/deepseek_v2.py (w_kc,
/// w_vc; shared experts with tensor parallelism of one under an all-to-all). DeepSeek V2 Lite: 29.34 GiB in vLLM 0.23, 29.26 without,
/// 29.36 with. DeepSeek R1 in w4a8 on 16 dies with 16, 4 and 2 groups: 40.1, 28.9 and 27.5 GiB, 39.3, 27.9 and 26.7 here.
pub(super) fn made_when_loaded(on: &Deployment, rule: &MemoryRule, shape: &Shape, (from, n): (u64, u64)) -> f64 {
    if rule.way == Way::Asked {
        return 0.0;
    }
    let d = on.layout.degrees();
    let sends = rule.way == Way::Rest && d.dp > 1 && d.ep > 1 && shape.moe().is_some();
    let (mut first, mut all) = (0, 0.0);
    for run in &shape.runs {
        let here = (first + run.n).min(from + n).saturating_sub(first.max(from)) as f64;
        first += run.n;
        if let Mixer::Latent(a) = &run.block.mixer {
            all += here * 2.0 * (a.heads * (a.nope_dim + a.v_dim) * a.kv_rank) as f64 / d.tp as f64;
        }
        if sends {
            let shared = |t: &Tensor| t.cut == Cut::Tensor && !matches!(t.part, Part::Mixer | Part::Routed);
            let tensors = block_tensors(shape, &run.block);
            let once: f64 = tensors.iter().filter(|t| shared(t)).map(|t| bytes_here(t, on.formats, &d)).sum();
            all += here * once * (d.tp - 1) as f64;
        }
    }
    all
}

/// Weights of the layers that draft, on one chip.
pub(super) fn draft_weights(on: &Deployment, shape: &Shape) -> f64 {
    let d = on.layout.degrees();
    shape.mtp.as_ref().map_or(0.0, |mtp| {
        let block: f64 = block_tensors(shape, &mtp.block).iter().map(|t| bytes_here(t, on.formats, &d)).sum();
        block + mtp.extra as f64 * Part::Other.dtype(&on.formats).width().get()
    })
}

/// Towers that are not loaded since nothing of theirs may be asked.
pub(super) fn unloaded(on: &Deployment, start: &Start, shape: &Shape) -> f64 {
    let none = start.pictures == Some(0) && start.films == Some(0) && on.senses.is_none();
    if none { towers_bytes(shape).get() / on.layout.degrees().tp as f64 } else { 0.0 }
}
