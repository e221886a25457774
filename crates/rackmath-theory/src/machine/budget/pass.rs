//! What a dry run of the longest pass takes: tokens, experts' buffers, the choice of the next tokens, the largest pictures.

use super::{Asked, GIB};
use crate::count::towers::{largest, tower};
use crate::deployment::Deployment;
use rackmath_spec::launch::Start;
use rackmath_spec::memory::MemoryRule;
use rackmath_spec::model::{Block, Ffn, Linear, Mixer, Shape};
use rackmath_spec::tower::{Rule, Sense};

/// The most that a dry run takes on a chip of the first or another stage.
pub(super) fn activation(on: &Deployment, rule: &MemoryRule, asked: &Asked, shape: &Shape, last: bool) -> f64 {
    let d = on.layout.degrees();
    let (hidden, tokens) = (shape.hidden as f64, asked.pass);
    let fixed = rule.pass_gib * GIB;
    let inner = shape.runs.iter().map(|run| inner(&run.block, rule, d.tp, d.etp)).fold(0.0, f64::max);
    // Hidden vectors and residuals travel between stages in buffers of their own.
    let between = if d.pp > 1 { 4.0 } else { 0.0 };
    let pass = tokens * ((rule.hidden_bytes + between) * hidden + inner) + fixed;
    let kept = if rule.keeps_expert_buffers { expert_buffers(on, shape) * tokens } else { 0.0 };
    if !last {
        return kept.max(pass);
    }
    // The 16-bit hidden vectors of the pass are still there when the next tokens are chosen.
    let chosen = if asked.chooses { asked.chosen * shape.vocab as f64 * rule.sampler_bytes } else { 0.0 };
    let sampler = chosen + 2.0 * tokens * hidden + fixed;
    kept + sampler.max(pass - kept)
}

/// What encoding the largest pictures takes in a dry run, and what is kept of them: as many as a pass has tokens for, at least
/// one; or a film, where one has more tokens.
pub(super) fn pictures(on: &Deployment, rule: &MemoryRule, asked: &Asked, start: &Start, shape: &Shape) -> (f64, f64) {
    let tower = tower(shape, Sense::Sight).filter(|_| !start.no_dry_pictures);
    let Some(tower) = tower.filter(|_| rule.picture_bytes + rule.picture_split_bytes > 0.0) else { return (0.0, 0.0) };
    let one = largest(&tower.rule);
    if one.tokens == 0 {
        return (0.0, 0.0);
    }
    let tried = |limit: Option<u64>| limit != Some(0);
    let filmed = matches!(tower.rule, Rule::Rounded { patch: 14, frames: 1, pair: 2, .. }) && tried(start.films);
    let pairs = if filmed { rule.film_pairs.min(asked.longest / one.tokens).max(1) } else { 1 };
    if !tried(start.pictures) && (!filmed || rule.film_pairs == 0) {
        return (0.0, 0.0);
    }
    let (tokens, patches) = ((one.tokens * pairs) as f64, (one.all_patches() * pairs) as f64);
    let of_prompt =
        (asked.longest as f64 / tokens).floor().min(start.pictures.map_or(f64::INFINITY, |n| n as f64)).max(1.0);
    let items = (asked.pass.max(tokens) / tokens).floor().min(asked.sequences * of_prompt).max(1.0);
    let each = rule.picture_bytes + rule.picture_split_bytes / on.layout.degrees().tp as f64;
    (items * patches * tower.layers.hidden as f64 * each, items * tokens * shape.hidden as f64 * 2.0)
}

/// Bytes that the widest part of a block takes for each token.
fn inner(block: &Block, rule: &MemoryRule, tp: u64, etp: u64) -> f64 {
    let (tp, etp) = (tp as f64, etp as f64);
    let ffn = match &block.ffn {
        Ffn::None => 0.0,
        // A gated network has one width twice before its activation and once behind; the constant is for those three.
        Ffn::Dense(mlp) => rule.inner_bytes * mlp.width as f64 * if mlp.gated { 1.0 } else { 2.0 / 3.0 } / tp,
        Ffn::Moe(moe) => {
            let routed = moe.expert.width as f64 * moe.top_k as f64 / etp;
            let shared = moe.shared.map_or(0.0, |s| s.width as f64 / tp);
            rule.inner_bytes * (routed + shared)
        }
    };
    let mixer = match &block.mixer {
        Mixer::Linear(Linear::GatedDelta { k_heads, v_heads, k_dim, v_dim, .. }) => {
            rule.inner_bytes * (2 * k_heads * k_dim + 2 * v_heads * v_dim) as f64 / tp
        }
        Mixer::Attention(a) => {
            rule.inner_bytes * (a.heads * a.qk_dim + a.kv_heads * (a.qk_dim + a.v_dim)) as f64 / tp / 2.0
        }
        _ => 0.0,
    };
    ffn.max(mixer)
}

/// Bytes that 16-bit buffers of experts take for each token: what goes in or comes out of the second product, and what comes
/// out of the first.
pub(super) fn expert_buffers(on: &Deployment, shape: &Shape) -> f64 {
    let d = on.layout.degrees();
    // Kernels of narrower weights have buffers of their own.
    let Some(moe) = shape.moe().filter(|_| on.formats.routed.bits() >= 8.0) else { return 0.0 };
    let (hidden, width) = (shape.hidden as f64, moe.expert.width as f64 / d.etp as f64);
    let twice = if moe.expert.gated { 2.0 * width } else { width };
    2.0 * moe.top_k as f64 * (width.max(hidden) + twice.max(hidden))
}
