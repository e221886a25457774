//! What a command line tells an engine about memory, layout and schedule, whatever the engine calls it.
//!
//! Nothing here is a default: what a line leaves out is none, and the engine's version decides. Sizes are those the engine reads
//! (its own blocks, tokens and bytes), before anything is divided among chips.

use crate::Dtype;
use rackmath_units::{Bytes, Fraction};

/// How a server deals a model to its cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dealt {
    /// Layers with their caches, one card after another.
    #[default]
    Layers,
    /// Rows of every matrix; the cache lies on one card.
    Rows,
    /// All on one card.
    One,
}

/// What was said when a server was started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Start {
    /// `--gpu-memory-utilization`, `--mem-fraction-static`, `free_gpu_memory_fraction`.
    pub utilisation: Option<Fraction>,
    /// `--kv-cache-memory-bytes`: the cache of one chip, whatever else is there.
    pub cache: Option<Bytes>,
    /// `--num-gpu-blocks-override`.
    pub blocks: Option<u64>,
    /// `--max-total-tokens`, `kv_cache_config.max_tokens`.
    pub cache_tokens: Option<u64>,
    /// `--max-model-len`, `--context-length`, `--max_seq_len`, `-c`: the longest sequence.
    pub longest: Option<u64>,
    /// `--max-num-seqs`, `--max-running-requests`, `--max_batch_size`, `-np`.
    pub sequences: Option<u64>,
    /// `--max-num-batched-tokens`, `--chunked-prefill-size`, `--max_num_tokens`, `-b`: tokens of a pass.
    pub pass: Option<u64>,
    /// `-ub`: tokens of a pass that are computed at once.
    pub part: Option<u64>,
    /// `--block-size`, `--page-size`, `tokens_per_block`.
    pub block: Option<u64>,
    /// `--enforce-eager`, `--disable-cuda-graph`.
    pub eager: bool,
    /// The largest batch of which a graph is captured: `--cuda-graph-max-bs`, the last of `--cudagraph-capture-sizes`.
    pub graph: Option<u64>,
    /// How many sizes are captured, where they are listed.
    pub graphs: Option<u64>,
    /// Whether long prompts are cut.
    pub chunked: Option<bool>,
    /// Whether prompts computed before are kept.
    pub prefix_cache: Option<bool>,
    /// `--cpu-offload-gb`: weights of one chip kept in host memory.
    pub offload: Option<Bytes>,
    /// `--limit-mm-per-prompt`: pictures and films of a prompt; none of either where `--language-model-only` is said.
    pub pictures: Option<u64>,
    pub films: Option<u64>,
    /// `--skip-mm-profiling`: no picture in the dry run.
    pub no_dry_pictures: bool,
    /// `-ngl`: layers on the card, the output counted as one.
    pub layers: Option<u64>,
    /// `--n-cpu-moe`: layers whose experts stay in host memory.
    pub expert_layers: Option<u64>,
    /// `--override-tensor`: layers whose experts stay in host memory, by their numbers.
    pub expert_at: Option<Vec<u64>>,
    /// `--fit`: whether what was not said is lowered until the model fits; `--fit-target`, `--fit-ctx`.
    pub fit: Option<bool>,
    pub fit_spare: Option<Bytes>,
    pub fit_longest: Option<u64>,
    /// `--tensor-split`: shares of the cards, in their order.
    pub shares: Option<Vec<f64>>,
    /// `--split-mode`: how a model is dealt to several cards.
    pub dealt: Dealt,
    /// `--main-gpu`: the card that has all, or the cache where matrices are cut.
    pub main: Option<u64>,
    /// `-ctk`, `-ctv`: formats of keys and of values, where they differ.
    pub halves: Option<(Dtype, Dtype)>,
    /// `-kvu`: slots share the cache; else each has its part of it.
    pub unified: bool,
    /// `-fa`.
    pub flash: Option<bool>,
    /// Tokens drafted for each sequence and step.
    pub drafts: Option<u64>,
    /// A model that drafts them.
    pub drafter: Option<String>,
    /// How they are drafted, in the engine's word: `mtp`, `eagle3`, `ngram`.
    pub method: Option<String>,
    /// `--max-loras`: adapters on the chip at once, and the largest rank.
    pub adapters: Option<(u64, u64)>,
}
