//! The fullest a chip and its host get outside the steady step: while loading, at the first update, at a checkpoint.
//!
//! | moment | chip | host, each process |
//! |---|---|---|
//! | loaded whole in 32 bits, as PyTorch does unless told | 4 N | 4 N |
//! | loaded whole, then divided | w N | w N |
//! | loaded layer by layer | w N / d + w L | - |
//! | first update | w N / d_w + g N_t / d_g + o N_t / d_o, and 4 N_t / d_o by lists of tensors | - |
//! | checkpoint gathered on rank 0 | steady weights and states + w N | (w + o) N |
//! | checkpoint in shards | steady weights and states | (w N + o N_t) / d |
//!
//! N is what a chip would hold of the model undivided by copies (after tensor and pipeline parallelism), N_t of it trained, L
//! its largest layer or table, w, g, o bytes as in [`super::memory`]. Optimizer states are made at the first update,
//! and with PyTorch's own optimizers the update works on lists of tensors at once (`lists` of a program), which takes as much as the trained parameters in 32 bits once more
//! (PyTorch documentation of `torch.optim.AdamW`, `foreach`, read 2026-11). A full state dict is gathered on every rank and kept
//! by the first (PyTorch FSDP documentation, `FULL_STATE_DICT`); that loading whole is what runs out of memory: pytorch/pytorch
//! issue 152263. Ignores: fragmentation; buffers of the file system.

use super::memory::StageMemory;
use super::step::Stage;
use super::tuning::{NARROW, Tuning};
use super::{Cut, Sharding};
use rackmath_spec::training::MemoryRecipe;

/// When memory may be fullest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    LoadedWide,
    LoadedWhole,
    LoadedByLayer,
    FirstUpdate,
    Steady,
    GatheredCheckpoint,
    ShardedCheckpoint,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    pub moment: Moment,
    pub chip: f64,
    /// Of one process; nothing where the host holds nothing to speak of.
    pub host: f64,
}

/// Bytes in 32 bits.
const FULL: f64 = 4.0;

/// The fullest a chip gets in a run that is loaded and saved in the ways that take least, and when.
pub fn fullest(stage: &Stage, steady: &StageMemory, cut: &Cut, recipe: &MemoryRecipe) -> Peak {
    let avoidable = |m| matches!(m, Moment::LoadedWide | Moment::LoadedWhole | Moment::GatheredCheckpoint);
    let steady_peak = Peak { moment: Moment::Steady, chip: steady.total_bytes, host: 0.0 };
    let all = peaks(stage, steady, cut, recipe).into_iter().filter(|p| !avoidable(p.moment));
    all.fold(steady_peak, |most, p| if p.chip > most.chip { p } else { most })
}

pub fn peaks(stage: &Stage, steady: &StageMemory, cut: &Cut, recipe: &MemoryRecipe) -> [Peak; 7] {
    let copies = if cut.sharding >= Sharding::Zero1 { (cut.dp * cut.cp) as f64 } else { 1.0 };
    let (n, trained) = (stage.params + stage.expert_params, stage.trained + stage.trained_experts);
    // A model read to be stored in 4 bits is narrowed tensor by tensor on its way.
    let width =
        if cut.tuning.narrow() { NARROW * stage.narrow + 2.0 * (n - stage.narrow) } else { recipe.weight_bytes * n };
    let reserve = steady.total_bytes - steady.allocated;
    let divided = if cut.sharding == Sharding::Zero3 { copies } else { 1.0 };
    let layer = recipe.weight_bytes * stage.largest_layer.max(stage.largest_table);
    let held = steady.weight_bytes + steady.optimizer_bytes;
    let adapters = matches!(cut.tuning, Tuning::Adapters { .. });
    // Of a frozen model only the adapters are saved.
    let saved = if adapters { trained } else { n };
    let (weights, states) = (recipe.weight_bytes * saved, recipe.optimizer_bytes * trained);
    let lists = if recipe.lists { FULL * trained / copies } else { 0.0 };
    let update = held + steady.gradient_bytes + lists;
    let at = |moment, chip: f64, host: f64| Peak { moment, chip: chip + reserve, host };
    [
        at(Moment::LoadedWide, FULL * n, FULL * n),
        at(Moment::LoadedWhole, width, width),
        at(Moment::LoadedByLayer, width / divided + layer, 0.0),
        at(Moment::FirstUpdate, update, 0.0),
        Peak { moment: Moment::Steady, chip: steady.total_bytes, host: 0.0 },
        at(Moment::GatheredCheckpoint, held + if copies > 1.0 { weights } else { 0.0 }, weights + states),
        at(Moment::ShardedCheckpoint, held, (weights + states) / copies),
    ]
}
