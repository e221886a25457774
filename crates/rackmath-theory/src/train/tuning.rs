//! What of a model is trained: all of it, or low-rank adapters beside frozen weights, which may be stored in 4 bits.
//!
//! $$ F_{full} = 6 N \qquad F_{lora} = 4 N + 6 N_a \qquad M_{states} = (g + o)\,N_a \qquad
//!    w_{4} = \frac{1}{8}\Big(4 + \frac{8}{64} + \frac{32}{64 \cdot 256}\Big) = 0.516\ \mathrm{B} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | N, N_a | params, trained | 1 | parameters of the model, of the adapters |
//! | F | - | FLOP | for each token: forward 2, gradients to inputs 2, to weights 2; frozen weights need no gradient of their own |
//! | g, o | gradient_bytes, optimizer_bytes | B | for each trained parameter |
//! | w_4 | [`NARROW`] | B | a weight of 4 bits in blocks of 64, whose scales of 8 bits are themselves in blocks of 256 (QLoRA) |
//!
//! Weights of 4 bits are expanded to 16 before every product of a pass, forward, backward and again where a layer is run
//! again: as many bytes are read and written as $(w_4 + 2) N$, at a share of the bandwidth, and one matrix is there expanded.
//! Embeddings, heads, norms and routers stay in 16 bits. Inputs of matrices without an adapter need not be kept. Paged
//! optimizers are [`super::Offload::Optimizer`]. Assumes: adapters in the program's own formats, dropout on them off.
//! Source: Hu 2021 (arXiv 2106.09685); Dettmers 2023 (QLoRA, arXiv 2305.14314), sections 2 and 3; counting.

use super::work::{Multiply, Slice, Work};
use crate::count::lora::{Pair, Targets, pairs};
use crate::count::{Cut as TensorCut, Part, Use, block_tensors};
use rackmath_spec::model::{Block, Shape};

/// Bytes of a weight in 4 bits, with its scales.
pub const NARROW: f64 = (4.0 + 8.0 / 64.0 + 32.0 / (64.0 * 256.0)) / 8.0;

/// What is trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tuning {
    /// Every weight.
    #[default]
    Full,
    /// Adapters of a rank; the weights beside them are stored in 4 bits, or as the program does.
    Adapters { rank: u32, targets: Targets, narrow: bool },
}

impl Tuning {
    pub fn is_full(self) -> bool {
        self == Self::Full
    }

    pub fn narrow(self) -> bool {
        matches!(self, Self::Adapters { narrow: true, .. })
    }
}

/// What adapters and frozen weights change of a block's work.
pub(super) fn tune(shape: &Shape, block: &Block, slice: &Slice<'_>, routed: f64, work: &mut Work) {
    let Tuning::Adapters { rank, targets, narrow } = slice.cut.tuning else {
        (work.trained, work.trained_experts) = (work.params, work.expert_params);
        return;
    };
    work.frozen = true;
    let (t, rank) = (slice.tokens(), f64::from(rank));
    let [tp, ep, etp] = [slice.cut.tp, slice.cut.ep, slice.cut.etp].map(|n| n as f64);
    for p in pairs(shape, block, targets) {
        let expert = p.cut == TensorCut::Experts;
        let (shards, rows) = if expert { (etp, routed * p.used) } else { (tp, t) };
        let params = p.params_cut(rank, shards, false) / if expert { ep } else { 1.0 };
        if expert {
            work.trained_experts += params;
        } else {
            work.trained += params;
        }
        let matrices = if expert { (p.copies / ep).max(1.0) } else { 1.0 };
        let (down, up) = sides(&p, shards);
        let between = rank * p.slices;
        work.adapters.push(Multiply { rows, columns: between, depth: down, matrices });
        work.adapters.push(Multiply { rows, columns: up, depth: rank, matrices });
        // Its output is added to the matrix's forward, its gradient to the input's backward: read, read and written.
        work.added.0 += rows * 6.0 * up;
        work.added.1 += rows * 6.0 * down;
        work.kept.all += rows * 2.0 * between;
        work.kept.cheap += rows * 2.0 * between;
    }
    let attends = matches!(targets, Targets::All | Targets::Attention | Targets::Qv);
    let networks = matches!(targets, Targets::All | Targets::Mlp);
    // Inputs of frozen matrices without adapters are not needed again; of a part's two norms each feeds one.
    let whole = t * shape.hidden as f64 * slice.stored / if slice.cut.sequence_parallel { tp } else { 1.0 };
    let spared = f64::from(u8::from(!attends)) * whole + f64::from(u8::from(!networks)) * (whole + work.inner_kept);
    let spared = spared.min(work.kept.all);
    work.kept.all -= spared;
    work.kept.cheap = (work.kept.cheap - spared).max(0.0);
    if narrow {
        let parts = [Part::Mixer, Part::Dense, Part::Shared, Part::Routed];
        for tensor in block_tensors(shape, block).iter().filter(|x| x.usage == Use::Matrix && parts.contains(&x.part)) {
            let shards = match tensor.cut {
                TensorCut::Whole => 1.0,
                TensorCut::Tensor => tp,
                TensorCut::KvHeads(n) => tp.min(n as f64),
                TensorCut::Experts => ep * etp,
            };
            let here = tensor.params() as f64 / shards;
            work.narrow += here;
            work.largest_matrix = work.largest_matrix.max(here / (tensor.copies as f64 / ep).max(1.0));
        }
    }
}

fn sides(p: &Pair, shards: f64) -> (f64, f64) {
    if p.by_rows { (p.d_in / shards, p.d_out) } else { (p.d_in, p.d_out / shards) }
}
