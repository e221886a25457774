//! What one block multiplies, moves and keeps for one micro-batch on one chip.
//!
//! $$ T = b\,s/c \qquad \text{scores} = 2\,b\,\frac{s}{c}\,S\,\frac{a}{t}\,(d_{qk} + d_v) \qquad \text{kept} = T\,\big(w + x/t\big) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | T | tokens | 1 | tokens of a micro-batch on a chip before tensor parallelism |
//! | S | span | 1 | tokens a query attends to: the sequence, or the window |
//! | a, d | heads, dims | 1 | heads and their widths |
//! | w, x | whole, split | B | bytes kept per token: those every chip of a tensor-parallel group has, and those it divides |
//!
//! | kept per token, 16 bits | whole | split |
//! |---|---|---|
//! | inputs of two norms, of the first products | 4h + 4h | - |
//! | queries, keys, values; attention's output | - | 2(a + 2k)d + 2ad |
//! | scores, their softmax and its dropout | - | 5aS, without dropout 4aS; fused kernels keep none |
//! | inner layer before and after its function | - | 2gf + 2f |
//! | dropout masks | 2h | - |
//!
//! For a plain transformer (k = a, ad = h, f = 4h, g = 1) that is 10h + 24h/t + 5aS/t: Korthikanti's s b h (10 + 24/t +
//! 5as/ht). Sequence parallelism divides the whole part too. Tensors come from [`crate::count`], so that every mixer the
//! catalogue knows has its products. A recurrence runs in chunks: inside one as attention, from one to the next as a state of
//! 32 bits that is made, passed on and read (Dao and Gu 2024, arXiv 2405.21060, section 6; Nemotron 3's configurations say
//! chunks of 128).
//!
//! Products in fewer than 16 bits read values that were cast: every input forward, every output's gradient backward, once for
//! all products that share it. Where experts run as one kernel, what lies between their two products is cast inside it.
//!
//! What is cheap to compute again need not be kept: outputs of norms and of activation functions, and, where attention has
//! latents, the queries, keys and values made from them (instead the latents are kept); experts' outputs are weighted before
//! their last product, so that the output itself is not needed. Programs that multiply in 8 bits may keep the inputs of their
//! products, and of the activation functions between them, in 8 bits (`stored`): DeepSeek-V3, arXiv 2412.19437, 3.2.3 and 3.3.3.
//! Ignores: that some norms write narrow values at once; the indexers of sparse attention.

use super::Cut;
use super::tuning::tune;
use crate::count::{self, Cut as TensorCut, Part, Tensor, Use};
use rackmath_spec::model::{Block, Ffn, Linear, Mixer, Norm, Shape, Span};

/// One matrix product per token group: `rows` tokens, `columns` by `depth`, `times` of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Multiply {
    pub rows: f64,
    pub columns: f64,
    pub depth: f64,
    /// Weight matrices behind the rows: one, or the experts a chip holds.
    pub matrices: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    pub products: Vec<Multiply>,
    pub score_flop: f64,
    pub scores: f64,
    /// Whether the head width suits the tensor units.
    pub aligned: bool,
    /// Bytes moved forward by norms and residuals.
    pub residual_bytes: f64,
    /// Bytes moved forward by everything tensor parallelism divides.
    pub inner_bytes: f64,
    /// Values that narrow products read, cast before each pass: their inputs forward, gradients of their outputs backward.
    pub cast: (f64, f64),
    /// Bytes of states a recurrence hands from chunk to chunk, once.
    pub state_bytes: f64,
    /// Bytes of a tensor-parallel reduction; as many of them as `reductions`.
    pub reduced_bytes: f64,
    /// Reductions forward (backward as many).
    pub reductions: f64,
    /// Bytes a chip sends to other experts' chips, one way.
    pub exchanged_bytes: f64,
    /// Copies of a token among those bytes: experts it goes to.
    pub copies: f64,
    /// Bytes of keys and values a chip holds for context parallelism.
    pub key_value_bytes: f64,
    /// Parameters on this chip outside the routed experts.
    pub params: f64,
    pub expert_params: f64,
    pub kept: Kept,
    /// Products that make queries, keys and values from their latents.
    pub up: Vec<Multiply>,
    /// Bytes moved by what is cheap to run again.
    pub light_bytes: f64,
    pub routes: bool,
    pub attends: bool,
    /// Whether weights need no gradients of their own.
    pub frozen: bool,
    /// Parameters on this chip that are trained, outside the routed experts and in them.
    pub trained: f64,
    pub trained_experts: f64,
    /// Bytes moved forward and backward to add what adapters make.
    pub added: (f64, f64),
    /// Products of adapters.
    pub adapters: Vec<Multiply>,
    /// Weights stored in 4 bits, and the largest matrix of them.
    pub narrow: f64,
    pub largest_matrix: f64,
    /// Bytes kept of the input of the network's last product.
    pub(super) inner_kept: f64,
}

/// Bytes kept for the backward pass of a micro-batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Kept {
    /// Without recomputation.
    pub all: f64,
    /// Of these, scores and what hangs on them.
    pub scores: f64,
    /// Without what is cheap to run again.
    pub cheap: f64,
    /// With full recomputation: the input of each block.
    pub input: f64,
}

impl Kept {
    pub fn add(&mut self, other: &Self, n: f64) {
        self.all += n * other.all;
        self.scores += n * other.scores;
        self.cheap += n * other.cheap;
        self.input += n * other.input;
    }
}

/// A micro-batch as the chips of a stage see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice<'a> {
    pub cut: &'a Cut,
    pub sequence: f64,
    /// Whether scores stay on the chip.
    pub flash: bool,
    pub dropout: bool,
    /// Bytes in which an input of a product is kept.
    pub stored: f64,
    /// Whether gated experts run as one kernel.
    pub fused: bool,
}

impl Slice<'_> {
    pub fn tokens(&self) -> f64 {
        self.cut.micro_batch as f64 * self.sequence / self.cut.cp as f64
    }

    /// Chips that divide a tensor, that hold different experts, and that divide an expert.
    fn degrees(&self) -> [f64; 3] {
        [self.cut.tp, self.cut.ep, self.cut.etp].map(|n| n as f64)
    }

    /// Chips that share norms and residuals.
    fn whole(&self) -> f64 {
        if self.cut.sequence_parallel { self.cut.tp as f64 } else { 1.0 }
    }
}

pub fn block(shape: &Shape, block: &Block, slice: &Slice<'_>) -> Work {
    let (h, t, [tp, _, etp]) = (shape.hidden as f64, slice.tokens(), slice.degrees());
    let mut work = Work { aligned: true, ..Work::default() };
    // Routed tokens: each chip of a tensor-parallel group sends its share, or all of it to cut experts.
    let routed = t * etp / tp;
    tensors(shape, block, slice, routed, &mut work);

    // Bytes a chip need not keep where what is cheap is run again.
    let mut spared = 0.0;
    let mut split = 0.0;
    if let Some(heads) = attention_heads(&block.mixer) {
        let span = heads.span.min(slice.sequence);
        work.attends = true;
        work.score_flop = 2.0 * t * span * heads.queries / tp * (heads.qk + heads.v);
        work.scores = t * span * heads.queries / tp;
        work.aligned = heads.qk % 8.0 == 0.0 && heads.v % 8.0 == 0.0;
        let own = heads.queries * heads.qk + heads.keys * (heads.qk + heads.v);
        work.key_value_bytes = 2.0 * t * heads.keys * (heads.qk + heads.v) / tp;
        // Queries, keys and values are laid out anew, read and written; the output once more.
        work.inner_bytes += t * (4.0 * own) / tp;
        split += 2.0 * own + 2.0 * heads.queries * heads.v;
        if let Mixer::Latent(a) = &block.mixer {
            let ranks = [a.q_rank, Some(a.kv_rank)].into_iter().flatten().map(|rank| rank as f64);
            let from: f64 = ranks.clone().sum::<f64>() + a.rope_dim as f64;
            let made = if a.q_rank.is_some() { own } else { own - heads.queries * heads.qk };
            spared += (t * (2.0 * made / tp - slice.stored * from)).max(0.0);
            let ups = work.products.iter().filter(|p| ranks.clone().any(|rank| rank == p.depth));
            work.up = ups.copied().collect();
        }
        if !slice.flash {
            let each = if slice.dropout { 5.0 } else { 4.0 };
            work.kept.scores = each * work.scores;
        }
    } else if !matches!(block.mixer, Mixer::None) {
        if let Mixer::Linear(linear) = &block.mixer {
            let (states, flop) = recurrence(linear);
            work.attends = true;
            work.state_bytes = t * states / tp;
            // Causal halves are skipped like those of scores, which are counted whole.
            work.score_flop = 2.0 * t * flop / tp;
        }
        let wide: f64 = work.products.iter().filter(|p| p.depth == h).map(|p| p.columns).sum();
        work.inner_bytes += 8.0 * t * wide;
        split += 4.0 * wide * tp;
    }
    let ffn = feed_forward(h, &block.ffn, slice, t, routed);
    work.inner_bytes += ffn.moved;
    work.exchanged_bytes = ffn.exchanged;
    spared += ffn.spared;
    work.copies = match &block.ffn {
        Ffn::Moe(moe) => count::experts_run(moe).max(1.0),
        _ => 1.0,
    };
    work.routes = matches!(block.ffn, Ffn::Moe(_));

    let parts =
        f64::from(u8::from(!matches!(block.mixer, Mixer::None))) + f64::from(u8::from(!matches!(block.ffn, Ffn::None)));
    // A norm reads and writes; a residual reads two and writes one, and dropout reads and writes its mask.
    let each = if shape.norm == Norm::Layer && slice.dropout { 11.0 } else { 8.0 };
    work.residual_bytes = t * h * each * parts / slice.whole();
    work.reduced_bytes = 2.0 * t * h;
    let cut_experts = matches!(&block.ffn, Ffn::Moe(_)) && etp < tp;
    work.reductions = if tp > 1.0 { parts - f64::from(u8::from(cut_experts)) } else { 0.0 };
    let masks = if slice.dropout { 1.0 } else { 0.0 };
    let whole = h * (2.0 + slice.stored + masks) * parts;
    work.kept.all = t * (whole / slice.whole() + split / tp) + ffn.kept + work.kept.scores;
    spared += t * h * slice.stored * parts / slice.whole();
    work.kept.cheap = work.kept.all - work.kept.scores - spared;
    // A norm reads and writes 16 bits.
    work.light_bytes = t * h * 4.0 * parts / slice.whole() + ffn.functions;
    work.kept.input = 2.0 * t * h / slice.whole();
    work.inner_kept = ffn.spared;
    tune(shape, block, slice, routed, &mut work);
    work
}

/// Whether the experts of a layer run as one kernel, which there is for gated ones.
fn fused(ffn: &Ffn, slice: &Slice<'_>) -> bool {
    slice.fused && matches!(ffn, Ffn::Moe(moe) if moe.expert.gated)
}

/// Bytes of a feed-forward part on a chip.
#[derive(Default)]
struct Inner {
    moved: f64,
    /// Of these, by activation functions.
    functions: f64,
    kept: f64,
    /// Of these, what is cheap to compute again.
    spared: f64,
    /// Sent to other chips.
    exchanged: f64,
}

impl Inner {
    /// `rows` through a network of `width`: its function reads one or two inputs and writes one.
    fn network(&mut self, rows: f64, width: f64, gated: bool, stored: f64) {
        let values = if gated { 3.0 } else { 2.0 };
        self.moved += rows * (2.0 * values * width);
        self.functions += rows * (2.0 * values * width);
        // As much is kept as is moved, less where it is kept in fewer bits.
        self.kept += rows * (stored * values * width);
        self.spared += rows * stored * width;
    }
}

fn feed_forward(h: f64, ffn: &Ffn, slice: &Slice<'_>, t: f64, routed: f64) -> Inner {
    let [tp, ep, etp] = slice.degrees();
    let mut all = Inner::default();
    match ffn {
        Ffn::None => {}
        Ffn::Dense(mlp) => all.network(t, mlp.width as f64 / tp, mlp.gated, slice.stored),
        Ffn::Moe(moe) => {
            let k = count::experts_run(moe);
            let inner = moe.latent.map_or(h, |l| l.width as f64);
            let rows = routed * k;
            all.network(rows, moe.expert.width as f64 / etp, moe.expert.gated, slice.stored);
            if fused(ffn, slice) {
                all.moved = 0.0;
            }
            // Tokens are permuted on the way in and out: a read and a write of 16 bits each.
            all.moved += rows * 8.0 * inner;
            // Kept: the permuted input and output of the experts.
            all.kept += rows * (slice.stored + 2.0) * inner;
            all.spared += rows * 2.0 * inner;
            if let Some(shared) = moe.shared {
                all.network(t, shared.width as f64 / tp, shared.gated, slice.stored);
            }
            // What a router chose for experts elsewhere leaves.
            let away = (ep - 1.0) / ep;
            all.exchanged = 2.0 * t / tp * k * inner * away;
        }
    }
    all
}

fn tensors(shape: &Shape, block: &Block, slice: &Slice<'_>, routed: f64, work: &mut Work) {
    let (t, [tp, ep, etp]) = (slice.tokens(), slice.degrees());
    // Projections of the same input run as one product.
    let mut joint: Vec<(u64, TensorCut, f64)> = Vec::new();
    let mut inputs: Vec<(Part, u64, bool)> = Vec::new();
    for tensor in count::block_tensors(shape, block) {
        let params = tensor.params() as f64;
        match tensor.cut {
            TensorCut::Experts => work.expert_params += params / (ep * etp),
            _ => work.params += params / shards(tensor.cut, tp),
        }
        if tensor.usage != Use::Matrix {
            continue;
        }
        let (i, o) = (tensor.d_in as f64, tensor.d_out as f64);
        let rows = if tensor.cut == TensorCut::Experts { routed * tensor.used } else { t };
        // Routers stay in 16 bits; projections of one input share its cast.
        if tensor.part != Part::Router {
            let down = is_row_parallel(&tensor, shape);
            let divided = if tensor.cut == TensorCut::Experts { etp } else { shards(tensor.cut, tp) };
            let (from, to) = if down { (i / divided, o) } else { (i, o / divided) };
            // What a fused kernel makes between two products is cast as it is made.
            let inside = tensor.part == Part::Routed && fused(&block.ffn, slice);
            let input = (tensor.part, tensor.d_in, down);
            if !(inside && down || inputs.contains(&input)) {
                inputs.push(input);
                work.cast.0 += rows * from;
            }
            if !inside || down {
                work.cast.1 += rows * to;
            }
        }
        match tensor.cut {
            TensorCut::Experts => {
                let (columns, depth) = if is_row_parallel(&tensor, shape) { (o, i / etp) } else { (o / etp, i) };
                let held = (tensor.copies as f64 / ep).max(1.0);
                work.products.push(Multiply { rows, columns, depth, matrices: held });
            }
            _ if is_row_parallel(&tensor, shape) => {
                let depth = i / shards(tensor.cut, tp);
                work.products.push(Multiply { rows: t, columns: o * tensor.used, depth, matrices: 1.0 });
            }
            cut => {
                let columns = o * tensor.used / shards(cut, tp);
                match joint
                    .iter_mut()
                    .find(|(d, c, _)| *d == tensor.d_in && tensor.part == Part::Mixer && whole(*c) == whole(cut))
                {
                    Some((_, _, sum)) => *sum += columns,
                    None if tensor.part == Part::Mixer => joint.push((tensor.d_in, cut, columns)),
                    None => work.products.push(Multiply { rows: t, columns, depth: i, matrices: 1.0 }),
                }
            }
        }
    }
    let product = |(d, _, columns)| Multiply { rows: t, columns, depth: d as f64, matrices: 1.0 };
    work.products.extend(joint.into_iter().map(product));
}

/// Tokens of a chunk in which recurrences are trained: inside as attention, from chunk to chunk as a state.
const CHUNK: f64 = 128.0;

/// Bytes of 32-bit states per token, and FLOP per token of a recurrence in chunks.
fn recurrence(linear: &Linear) -> (f64, f64) {
    let [keys, values, state] = match *linear {
        Linear::GatedDelta { k_heads, v_heads, k_dim, v_dim, .. } => {
            [k_heads * k_dim, v_heads * v_dim, v_heads * k_dim * v_dim]
        }
        Linear::Kda { heads, dim, .. } | Linear::Lightning { heads, dim } => {
            [heads * dim, heads * dim, heads * dim * dim]
        }
        Linear::Mamba1 { inner, state, .. } => [state, inner, inner * state],
        Linear::Mamba2 { heads, dim, groups, state, .. } => [groups * state, heads * dim, heads * dim * state],
    }
    .map(|n| n as f64);
    // Two products of a chunk with itself, half of them masked; one into the state, one out of it.
    (4.0 * state / CHUNK, CHUNK * (keys + values) + 4.0 * state)
}

fn whole(cut: TensorCut) -> bool {
    cut == TensorCut::Whole
}

fn shards(cut: TensorCut, tp: f64) -> f64 {
    match cut {
        TensorCut::Whole | TensorCut::Experts => 1.0,
        TensorCut::Tensor => tp,
        TensorCut::KvHeads(heads) => tp.min(heads as f64),
    }
}

/// Whether a tensor brings the residual stream together again, so that its depth is what is cut.
fn is_row_parallel(tensor: &Tensor, shape: &Shape) -> bool {
    matches!(tensor.name, "output" | "down" | "output up")
        && (tensor.cut == TensorCut::Experts || tensor.d_out == shape.hidden)
}

pub(super) struct Heads {
    pub(super) queries: f64,
    keys: f64,
    pub(super) qk: f64,
    pub(super) v: f64,
    pub(super) span: f64,
}

pub(super) fn attention_heads(mixer: &Mixer) -> Option<Heads> {
    let heads = |[queries, keys, qk, v]: [u64; 4], span: f64| {
        let [queries, keys, qk, v] = [queries, keys, qk, v].map(|n| n as f64);
        Some(Heads { queries, keys, qk, v, span })
    };
    match mixer {
        Mixer::Attention(a) => {
            let span = match a.span {
                Span::Full => f64::INFINITY,
                Span::Window(n) | Span::Chunk(n) => n as f64,
                Span::Blocks(index) => (index.block * index.top_k) as f64,
            };
            heads([a.heads, a.kv_heads, a.qk_dim, a.v_dim], span)
        }
        // In training the latent is unfolded: every head has its own keys and values.
        Mixer::Latent(a) => {
            let span = a.indexer.map_or(f64::INFINITY, |i| i.top_k as f64);
            heads([a.heads, a.heads, a.nope_dim + a.rope_dim, a.v_dim], span)
        }
        Mixer::Compressed(a) => {
            heads([a.heads, 1, a.dim, a.dim], a.window as f64 + a.indexer.map_or(0.0, |i| i.top_k as f64))
        }
        Mixer::Linear(_) | Mixer::None => None,
    }
}
