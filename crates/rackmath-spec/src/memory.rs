//! How an engine counts the memory of a chip when it starts, by version, as data.
//!
//! Engines measure most of this with a dry run before they take the rest for their cache. What such a run finds is said here in
//! bytes for each thing that causes it, so that it carries over to models and chips nobody started. What the equations do with it
//! stands in the theory crate's `budget` page.

use crate::Chip;
use crate::engine::Version;
use crate::file::noun::{share, text_or_none};
use rackmath_units::{Bytes, Fraction};
use serde::Deserialize;

/// The rules of some versions of an engine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryRule {
    /// The first version they hold for; those before when absent.
    #[serde(default, deserialize_with = "text_or_none")]
    pub from: Option<Version>,
    pub way: Way,
    /// The share an engine takes unless told, of what its way says.
    #[serde(deserialize_with = "share")]
    pub utilisation: Fraction,
    /// Bytes that choosing the next token takes for each sequence and word of the vocabulary.
    #[serde(default)]
    pub sampler_bytes: f64,
    /// Bytes that a pass takes for each of its tokens and value of the hidden width, and of the networks' inner width.
    #[serde(default)]
    pub hidden_bytes: f64,
    #[serde(default)]
    pub inner_bytes: f64,
    /// What a pass takes besides, whatever its size.
    #[serde(default)]
    pub pass_gib: f64,
    /// Whether the buffers of experts stay when a pass is over, so that the sampler's come on top.
    #[serde(default)]
    pub keeps_expert_buffers: bool,
    /// What is taken outside the allocator on one chip, where two ranks reduce over links of their own, and where four or more do.
    #[serde(default)]
    pub outside_gib: f64,
    #[serde(default)]
    pub outside_tp_gib: f64,
    #[serde(default)]
    pub outside_many_gib: f64,
    /// The same on chips that share their memory with the host, in place of the first.
    #[serde(default)]
    pub outside_shared_gib: f64,
    /// What the driver's context holds before anything is loaded, and what the links of several ranks add.
    #[serde(default)]
    pub context_gib: f64,
    #[serde(default)]
    pub context_ranks_gib: f64,
    #[serde(default)]
    pub graphs: Graphs,
    /// How the share follows from the machine where none is given; the share above when absent.
    pub reserve: Option<Reserve>,
    /// Of what is left, the part for states over that for the rest, where their number is not given.
    #[serde(default)]
    pub state_ratio: f64,
    /// Tokens of a pass and sequences at once unless told: the first that fits the chip.
    #[serde(default)]
    pub usual: Vec<Usual>,
    /// Whether layers with a window are kept apart and give back what they no longer see.
    #[serde(default)]
    pub windows: bool,
    /// Groups are as large as the commonest kind of layer where that is less than so many times the rarest.
    #[serde(default = "one_and_a_half")]
    pub pad_share: f64,
    /// Whether the tokens it prints are those of as many longest requests as fit, and not those of its blocks.
    #[serde(default)]
    pub prints_requests: bool,
    /// Tokens to a block of a cache of one kind that a kernel wants a multiple of, where states share its pages.
    #[serde(default = "sixteen")]
    pub align_tokens: u64,
    /// Whether prompts are not cut unless sequences may be very long; where they are, no tokens are chosen in the dry run.
    #[serde(default)]
    pub whole_prompts: bool,
    /// What its makers ask to stay free beside weights, cache and graphs, where they say so.
    #[serde(default)]
    pub spare_gb: f64,
    /// Bytes that the largest picture takes in the dry run for each of its patches and value of the tower's width: on every rank,
    /// and shared by them. Nothing where no picture is tried.
    #[serde(default)]
    pub picture_bytes: f64,
    #[serde(default)]
    pub picture_split_bytes: f64,
    /// Pairs of frames of the film that is tried instead, where frames may be as large as pictures (towers with patches of 14
    /// pixels that span two frames); none when 0.
    #[serde(default)]
    pub film_pairs: u64,
    /// How it lowers what was not said until the model fits, where it does.
    pub fit: Option<Fit>,
    pub source: String,
}

fn one_and_a_half() -> f64 {
    1.5
}

fn sixteen() -> u64 {
    16
}

/// Whose formula it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// A share of the chip; weights, a dry run and what else was taken come off it, the rest is cache (vLLM).
    Share,
    /// What is free once weights are loaded, less a share of what was free before (SGLang).
    Rest,
    /// A share of what is free when all else is there (TensorRT-LLM).
    Free,
    /// Nothing is reserved: buffers are as large as what was asked for (llama.cpp).
    Asked,
}

/// Captured graphs: what they take, and whether an engine leaves room for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graphs {
    /// What they take in all, whatever they are of.
    #[serde(default)]
    pub base_gib: f64,
    /// What each layer takes in each size that is captured.
    #[serde(default)]
    pub layer_mib: f64,
    /// What an engine estimates instead of the first, before it captures any.
    #[serde(default)]
    pub estimate_base_gib: f64,
    /// Whether the estimate comes off the cache.
    #[serde(default)]
    pub counted: bool,
    /// Graphs are captured of batches up to so many times the sequences allowed.
    #[serde(default)]
    pub times_sequences: f64,
}

/// Memory that an engine leaves to passes and graphs: it takes the rest of what the driver reports.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    pub base_mib: f64,
    /// For each token of a pass, each sequence of the largest graph, each rank.
    pub token_mib: f64,
    pub graph_mib: f64,
    pub rank_mib: f64,
    /// For each sequence of the largest graph and group of attention, where there are several.
    pub group_mib: f64,
    /// Where drafts are made.
    pub drafts_mib: f64,
    /// At least so much, on chips above so many GiB.
    pub least_mib: f64,
    pub least_above_gib: f64,
    /// Instead of all that, before it was reckoned so: chips below so many GiB, what is left to them, and for each rank.
    #[serde(default)]
    pub below: Vec<(f64, f64, f64)>,
}

/// What an engine takes for granted on a kind of chip.
/// How an engine lowers what was not said until the model fits (llama.cpp): first the context, then what lies on the card.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// What stays free on each card.
    pub spare_mib: f64,
    /// Tokens below which the context is not lowered.
    pub least_tokens: u64,
    /// Contexts are multiples of this.
    pub step_tokens: u64,
    pub source: String,
}

impl MemoryRule {
    /// What is taken for granted on a chip with so much memory.
    pub fn usual_on(&self, chip: &Chip, memory: Bytes) -> Option<&Usual> {
        self.usual.iter().find(|usual| {
            usual.below_gib.is_none_or(|gib| memory < Bytes::gib(gib))
                && usual.generation.as_deref().is_none_or(|generation| generation == chip.generation)
        })
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usual {
    /// On chips with less than so much; on all when absent.
    pub below_gib: Option<f64>,
    pub generation: Option<String>,
    pub tokens: u64,
    pub sequences: u64,
    /// The largest batch of which a graph is captured with few ranks, and with four or more; the schedule's when absent.
    pub graph: Option<(u64, u64)>,
}
