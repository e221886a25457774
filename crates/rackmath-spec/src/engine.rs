//! A serving engine as data: which kernels it calls, how it schedules, what its host costs.
//!
//! An engine is a family of versions that behave alike. Its constants say nothing about a model or a chip, so that they
//! carry over to both; what the equations do with them stands in the theory crate's `pass` and `serving` chapters.

use crate::file::noun::{ms, noun, part, seconds, share_or_none, text_or_none, us, within};
use crate::memory::MemoryRule;
use crate::{Chip, Dtype, MoeFormat, Residual, SpecError};
use rackmath_units::{Fraction, Seconds};
use serde::{Deserialize, Deserializer};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// One family of versions of an engine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    pub id: String,
    pub name: String,
    /// The engine the family belongs to: vllm, sglang, trtllm, torch, llamacpp, ideal.
    pub family: String,
    #[serde(default, deserialize_with = "text_or_none")]
    pub from: Option<Version>,
    #[serde(default, deserialize_with = "text_or_none")]
    pub until: Option<Version>,
    /// The newest version whose runs it was fitted to or held against, of a family without an end.
    #[serde(default, deserialize_with = "text_or_none")]
    pub newest: Option<Version>,
    pub as_of: String,
    /// Whether it is the roofline itself: no floors, full rates, perfect overlap.
    #[serde(default)]
    pub ideal: bool,
    pub kernels: Kernels,
    pub schedule: Schedule,
    /// What it takes answers to come for when it lets requests in; none where it reckons with nothing, or with all of them.
    pub reckoning: Option<Reckoning>,
    /// How it keeps caches in host memory and storage; none where that is not known, or has no numbers.
    pub host_cache: Option<HostCache>,
    /// How a pool of prompts hands a request on to one of answers; none where nothing is known beside the link's own time.
    pub handover: Option<Handover>,
    /// How attention groups that share their experts go along with each other; none where that is not known.
    pub groups: Option<Groups>,
    /// One rule for all its kernels, where none were measured one by one.
    pub plain: Option<Plain>,
    /// The same on the processor of a host, as shares of its 32-bit vector peak and of its memory's bandwidth.
    pub processor: Option<Plain>,
    /// How it runs weights that lie in the host's memory; none where it does not, or nothing is known.
    pub offload: Option<Offload>,
    pub overhead: Overhead,
    /// What it costs on the chips of other makers, where that was measured.
    #[serde(default)]
    pub on: Vec<Elsewhere>,
    pub assumed: Assumed,
    /// How it counts a chip's memory, from the oldest version to the newest; empty where nothing is known.
    #[serde(default)]
    pub memory: Vec<MemoryRule>,
    /// The version that was asked for, where one was.
    #[serde(skip)]
    pub version: Option<Version>,
    #[serde(default)]
    pub notes: Vec<String>,
    pub source: String,
}

/// Kernel families by the names of `catalog/kernels` and `catalog/networks`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernels {
    pub gemm: String,
    /// By format of a product, another family among whose kernels the engine's tuner chooses: the shorter time counts.
    #[serde(default)]
    pub tuned: BTreeMap<String, String>,
    pub attention: String,
    pub latent: String,
    /// All-reduce; `library` for the vendor's.
    pub all_reduce: String,
    /// Expert exchange within a node or rack; `gather` for all-gather and reduce-scatter.
    pub exchange: String,
    /// The kernels it has instead where experts are spread wider than one host of eight.
    #[serde(default)]
    pub exchange_wide: Vec<String>,
    /// Expert layers: the first rule that matches.
    #[serde(default)]
    pub experts: Vec<ExpertRule>,
    /// Generations of chips on which experts of four bits meet activations of eight, though other layers compute in 16.
    #[serde(default)]
    pub narrow_experts: Vec<String>,
    /// What is known of the scale of activations before a narrow product.
    pub scaling: ActivationScale,
    /// Another decode kernel, once sequences times KV heads fill the cores so many times.
    #[serde(default, deserialize_with = "full")]
    pub attention_full: Option<(String, f64)>,
    /// Whether a pass multiplies every token by the head, and not only the last of each sequence.
    #[serde(default)]
    pub head_every_token: bool,
    /// Experts are drawn at random, all alike: what is timed is fed random numbers, not text.
    #[serde(default)]
    pub random_experts: bool,
    /// Numbers of query heads to a KV head that read the cache once together; all when absent.
    pub shared_groups: Option<Vec<u64>>,
    /// One launch for all sequences of a pass with prompts, those that decode in the prompts' kernel; apart when absent.
    pub together: Option<Together>,
    /// Pieces of a prompt with latent attention are joined by a kernel that is built when it is first needed; beforehand when absent.
    pub joined: Option<Joined>,
}

/// Sequences that decode beside prompts fill so many query rows of a block with their few heads, and wait for its loads.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Together {
    pub rows: f64,
    /// Generations of chips on which the engine takes such kernels.
    pub generations: Vec<String>,
}

/// What the first prompt that is cut waits for on a server that nobody warmed up.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Joined {
    #[serde(rename = "cold_s", deserialize_with = "seconds")]
    pub cold: Seconds,
    /// Generations of chips for which the kernel does not come built.
    pub generations: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpertRule {
    pub generation: Option<String>,
    #[serde(default, deserialize_with = "text_or_none")]
    pub format: Option<MoeFormat>,
    /// With several attention groups that share the experts, or without; either when absent.
    pub attention_dp: Option<bool>,
    pub family: String,
    /// Whether one call launches the whole layer of experts.
    #[serde(default)]
    pub fused: bool,
    /// What launching a layer of them takes beyond others; [`Overhead::launch_expert`] when absent.
    #[serde(default, rename = "launch_us", deserialize_with = "some_us")]
    pub launch: Option<Seconds>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActivationScale {
    /// At run time, in a pass of its own.
    Dynamic,
    /// Beforehand; the activations are rewritten in the narrow format.
    Static,
    /// Beforehand, and the kernel before writes the narrow format.
    Fused,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    #[serde(rename = "chunk_tokens")]
    pub chunk: f64,
    #[serde(rename = "mixed")]
    pub prompts: Prompts,
    #[serde(rename = "max_sequences")]
    pub sequences: f64,
    /// Sequences it was told to run at most: an engine that is built before it runs has buffers for all of them, whatever comes.
    #[serde(skip)]
    pub told: Option<f64>,
    /// Cache format instead of the model's.
    #[serde(default, deserialize_with = "text_or_none")]
    pub kv: Option<Dtype>,
    /// The share of a chip's memory it takes: as said, or as its file states where [`Engine::memory`] has no rule.
    #[serde(default, deserialize_with = "share_or_none")]
    pub memory: Option<Fraction>,
    #[serde(rename = "reserve_whole")]
    pub admission: Admission,
    /// From so many tokens on, half a batch computes while the other half travels to its experts; never when absent.
    #[serde(rename = "two_batches_from")]
    pub two_batches: Option<f64>,
    /// Tokens of the largest pass replayed from a captured graph; larger passes are launched by the host.
    #[serde(rename = "graph_sequences")]
    pub graph: f64,
    /// Sizes captured: multiples of the first number up to the second, and powers of two below the first of all. A pass is
    /// padded to the next; every size when empty.
    #[serde(default)]
    pub graph_steps: Vec<(f64, f64)>,
    #[serde(default)]
    pub graph_prompts: Replay,
    /// Tokens of a block of the cache.
    #[serde(default = "sixteen", rename = "block_tokens")]
    pub block: f64,
    /// Prompt tokens of a pass on chips below so many GB; `chunk` when empty or beyond the last.
    #[serde(default)]
    pub chunk_by_gb: Vec<(f64, f64)>,
    /// Prompt tokens of a pass where prompts are not cut; `chunk` when absent.
    #[serde(rename = "prompt_tokens")]
    pub prompt: Option<f64>,
    /// Decode steps between two looks at what has come.
    #[serde(default = "one_step", rename = "look_steps")]
    pub looks: f64,
    /// Steps that prompts wait at most until every attention group has one; 0 where they wait for none.
    #[serde(default, rename = "gather_steps")]
    pub gather: f64,
    /// Prompts that are held back while others decode; none when absent.
    #[serde(default)]
    pub hold: Option<Hold>,
    /// Whether pipeline stages work on equal parts of the sequences and of the prompts; a batch that takes all that is ready leaves little to
    /// the next.
    #[serde(default)]
    pub even_stages: bool,
    /// Whether a model's windows are kept to only where a run names them: otherwise every layer keeps and reads the whole context.
    #[serde(default)]
    pub whole_attention: bool,
}

/// Prompts wait until so many steps have passed since the first of them came, or until their pass is full to a share. Ignores: the
/// simulator, which begins them at once.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    pub steps: f64,
    pub share: f64,
}

fn one_step() -> f64 {
    1.0
}

fn sixteen() -> f64 {
    16.0
}

/// How an engine that lets requests in by an estimate of their answers estimates, sorts and looks.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reckoning {
    /// Most tokens of an answer that are reckoned with.
    pub answer_tokens: u32,
    /// Share of the answers to come that is reckoned with at first.
    pub share_first: f64,
    /// The least share, as a part of the first.
    pub share_last: f64,
    /// Steps of decodes from the first share to the last.
    pub share_steps: f64,
    /// Steps that are to be possible after a request was taken out for want of room.
    pub steps_after: u32,
    /// Waiting requests beyond which they are not sorted.
    pub sorted_requests: u32,
    /// Tokens in common that matter among those that wait.
    pub common_tokens: u32,
    /// Looks at what has come that a step with prompts counts as; one of decodes counts as one.
    pub prompt_looks: u32,
    /// Tokens kept for the answer of each request whose prompt came computed.
    pub handed_tokens: u32,
}

/// How an engine that keeps its tree of caches in host memory and storage as well copies, loads and fetches.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostCache {
    /// Host memory over the cache memory of the chips, unless told.
    pub ratio: f64,
    /// How often something is met until it is copied, where only what is met again is.
    pub selective_meetings: u32,
    /// Fewer tokens are not loaded from the host.
    pub load_tokens: u32,
    /// Fewer tokens are not fetched from storage.
    pub prefetch_tokens: u32,
    /// Tokens that are fetched together, over those of the host.
    pub prefetch_share: f64,
    /// How long a request waits for storage where that is limited: for itself, for each 1,024 tokens, and at most.
    pub timeout_s: f64,
    pub timeout_s_per_ki: f64,
    pub timeout_s_most: f64,
    /// Tokens of a page of storage.
    pub page_tokens: u32,
}

/// What it takes to hand a request on from a pool of prompts, beside its cache's time on the link.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handover {
    /// Meeting the receiver, setting the transfer up and seeing that it has ended.
    #[serde(rename = "setup_ms", deserialize_with = "ms")]
    pub setup: Seconds,
}

/// Attention groups of one deployment: each has sequences and a cache of its own, and all take every step together.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Groups {
    pub deal: Deal,
    /// Running requests that one that waits counts as, where requests are dealt by load.
    #[serde(default = "one")]
    pub waiting_weight: u64,
    /// Time between two reports of the groups' load; what was sent since then is counted by who sends.
    #[serde(default, rename = "report_ms", deserialize_with = "ms")]
    pub report: Seconds,
    /// Steps between two looks at whether any group has work; idle ones step along until then.
    pub sync_steps: u64,
    /// Tokens in the step of a group without work.
    pub dummy_tokens: u32,
    /// Whether prompts wait until all groups have some, so that they are computed in the same passes.
    #[serde(default)]
    pub gathers_prompts: bool,
    /// Whether groups of a model without experts wait for each other as well, because they share its other weights.
    pub dense: bool,
}

fn one() -> u64 {
    1
}

fn once() -> f64 {
    1.0
}

/// How requests are dealt to the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deal {
    RoundRobin,
    /// To the one with the least inside.
    Load,
}

/// How a pass with prompts that is small enough is replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Replay {
    /// As one graph.
    #[default]
    Whole,
    /// Piece by piece: attention is launched by the host between the graphs of two layers.
    Pieces,
    /// Not at all: only passes without prompts were captured.
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "bool")]
pub enum Prompts {
    /// In the passes of decoding sequences, which they fill up.
    RideAlong,
    /// In passes of their own, which decoding sequences wait for.
    First,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "bool")]
pub enum Admission {
    /// When its prompt fits.
    AsItGrows,
    /// When its longest cache fits.
    Whole,
}

impl From<bool> for Prompts {
    fn from(mixed: bool) -> Self {
        if mixed { Self::RideAlong } else { Self::First }
    }
}

impl From<bool> for Admission {
    fn from(whole: bool) -> Self {
        if whole { Self::Whole } else { Self::AsItGrows }
    }
}

/// Shares of full rates, and habits, that were assumed and not fitted.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assumed {
    pub sampling_passes: f64,
    /// Share of the memory bandwidth it reaches.
    pub sampling_memory: f64,
    /// Share of the bandwidth at which recurrent states and index keys are read.
    pub side_memory: f64,
    /// Share of the peak at which prompts pass through them.
    pub side_compute: f64,
    /// Share of an exchange between experts that the other half of a batch can hide.
    pub exchange_hidden: f64,
    /// Drafts worth a try, and the chance that each is accepted.
    pub drafts: f64,
    pub acceptance: f64,
}

/// Kernels known only by what they reach: a roofline with shares of both rates.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plain {
    /// Share of the dense 16-bit peak that long products reach.
    pub compute: f64,
    pub memory: f64,
    /// The same on a package of several dies, as a further factor.
    pub many_dies: f64,
    /// A kernel's floor on a package of several dies, as a multiple of that on one.
    #[serde(default = "once")]
    pub dies_floor: f64,
    /// Operations spent on expanding a weight narrower than 16 bits, in FLOP of the 16-bit peak.
    #[serde(rename = "expand_flop")]
    pub expand: f64,
    /// The same for formats with two levels of scales.
    #[serde(rename = "expand_nested_flop")]
    pub expand_nested: f64,
    #[serde(rename = "floor_us", deserialize_with = "us")]
    pub floor: Seconds,
}

/// Weights in the host's memory: multiplied there, or sent to the chip in every pass.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offload {
    /// Whether the processor multiplies what lies in its memory; then the cache of such layers lies there as well.
    pub computes: bool,
    /// Tokens of a pass from which on weights are sent to the chip even so; never when absent.
    pub stream_rows: Option<f64>,
    /// Share of the link's rate that weights travel at.
    #[serde(deserialize_with = "part")]
    pub link: Fraction,
    /// To hand a pass over between chip and processor, once.
    #[serde(rename = "cross_us", deserialize_with = "us")]
    pub cross: Seconds,
    pub source: String,
}

/// The same engine built for another maker's chips: other libraries, another runtime.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elsewhere {
    pub vendor: String,
    /// The first version that costs something else, where releases differ there; such entries come first.
    #[serde(default, deserialize_with = "text_or_none")]
    pub until: Option<Version>,
    pub overhead: Overhead,
    pub fit: Residual,
    pub source: String,
}

impl Schedule {
    /// Takes over a limit on the sequences that run together, where one was given.
    pub fn tell(&mut self, most: Option<f64>) {
        self.sequences = most.unwrap_or(self.sequences);
        self.told = most.or(self.told);
    }
}

impl Engine {
    /// Its one rule for kernels of a chip, where it has one.
    pub fn plain_on(&self, chip: &Chip) -> Option<&Plain> {
        self.processor.as_ref().filter(|_| chip.processor).or(self.plain.as_ref())
    }

    /// What it is on a maker's chips, where that is something else; as of its newest release where no version is known.
    pub fn elsewhere(&self, vendor: &str) -> Option<&Elsewhere> {
        let ran = |until: Version| self.version.is_some_and(|version| until.is_after(version));
        self.on.iter().find(|e| e.vendor == vendor && e.until.is_none_or(ran))
    }

    /// What it costs on a chip.
    pub fn overhead_on(&self, chip: &Chip) -> &Overhead {
        self.elsewhere(&chip.vendor).map_or(&self.overhead, |e| &e.overhead)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overhead {
    /// One small kernel: norm, rotation, cache write, activation.
    #[serde(rename = "small_us", deserialize_with = "us")]
    pub small: Seconds,
    pub mixer_kernels: f64,
    pub ffn_kernels: f64,
    /// Values of the hidden width that the small kernels of a layer move for a token.
    pub hidden_passes: f64,
    /// Values of the network's inner width that they move.
    pub inner_passes: f64,
    /// What the bytes they would move are divided by so that passes come out right: fitted, it stands for fusion and for
    /// values found in a cache, and says nothing about bandwidth.
    #[serde(alias = "small_memory")]
    pub small_traffic_divisor: f64,
    /// Waiting for the slowest rank at each collective.
    #[serde(rename = "skew_us", deserialize_with = "us")]
    pub skew: Seconds,
    /// Kernel times in a pass, as a multiple of the same kernel timed alone.
    pub stretch: f64,
    /// The same for passes of many tokens.
    pub stretch_long: f64,
    /// Both for expert layers, whose rows are never dealt evenly; those of all kernels when absent.
    #[serde(default)]
    pub expert_stretch: Option<(f64, f64)>,
    /// The same for experts in 16 bits, whose rows are not narrowed before; as the others when absent.
    #[serde(default)]
    pub expert_stretch_wide: Option<(f64, f64)>,
    /// Launches of an expert layer in a captured graph, as a share of those timed alone.
    pub expert_floor: f64,
    #[serde(rename = "host_us", deserialize_with = "us")]
    pub host: Seconds,
    #[serde(rename = "host_sequence_us", deserialize_with = "us")]
    pub host_sequence: Seconds,
    /// Whether the host prepares the next pass while the chips work.
    pub host_overlaps: bool,
    /// The part of the host's time before a pass is chosen: taking up the last result, and choosing.
    #[serde(default, rename = "choose_us", deserialize_with = "us")]
    pub choose: Seconds,
    #[serde(default, rename = "choose_sequence_us", deserialize_with = "us")]
    pub choose_sequence: Seconds,
    /// Host time to launch the kernels of one layer of a pass that is not captured.
    #[serde(rename = "launch_us", deserialize_with = "us")]
    pub launch: Seconds,
    /// What a layer of experts takes beyond that: choosing, sorting, gathering are many small kernels.
    #[serde(default, rename = "launch_expert_us", deserialize_with = "us")]
    pub launch_expert: Seconds,
    /// What a layer of latent attention takes beyond that: it compresses, expands and turns its heads in many small kernels.
    #[serde(default, rename = "launch_latent_us", deserialize_with = "us")]
    pub launch_latent: Seconds,
    /// Host time before the first kernel of a pass that is not captured, beyond that of a captured one.
    #[serde(default, rename = "launch_first_us", deserialize_with = "us")]
    pub launch_first: Seconds,
    /// By what share of itself a launch is longer or shorter from pass to pass, evenly.
    #[serde(default)]
    pub launch_spread: f64,
    /// The same for a pass replayed piece by piece.
    #[serde(default, rename = "launch_piece_us", deserialize_with = "us")]
    pub launch_piece: Seconds,
    /// To hand one sequence's token to its client, one after another in the order of the pass.
    #[serde(default, rename = "message_us", deserialize_with = "us")]
    pub message: Seconds,
    /// Time of a request outside passes: tokenising, transport.
    #[serde(rename = "request_ms", deserialize_with = "ms")]
    pub request: Seconds,
    /// The same for each other request in flight: tokens of all streams pass the same host and client.
    #[serde(rename = "request_concurrent_ms", deserialize_with = "ms")]
    pub request_concurrent: Seconds,
    /// What each pass of the first wave takes longer on a server that nobody warmed up, where attention is latent: kernels
    /// are built and tuned for the shapes that are met.
    #[serde(default, rename = "cold_latent_s", deserialize_with = "seconds")]
    pub cold_latent: Seconds,
    /// How many different shapes there are; as many as passes when absent.
    #[serde(default)]
    pub cold_shapes: Option<f64>,
}

fn some_us<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Seconds>, D::Error> {
    us(d).map(Some)
}

fn full<'de, D: Deserializer<'de>>(d: D) -> Result<Option<(String, f64)>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Full {
        backend: String,
        per_core: f64,
    }
    Full::deserialize(d).map(|full| Some((full.backend, full.per_core)))
}

/// A version such as 0.19.0, compared by its first two numbers.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    numbers: (u32, u32),
    /// The third, where it is given.
    third: Option<u32>,
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.numbers == other.numbers
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.numbers.0, self.numbers.1)?;
        self.third.filter(|n| *n > 0).map_or(Ok(()), |n| write!(f, ".{n}"))
    }
}

impl Version {
    /// Whether it is a later release, by all numbers that both have.
    pub fn is_after(self, other: Self) -> bool {
        let third = || self.third.zip(other.third).is_some_and(|(own, theirs)| own > theirs);
        self > other || self == other && third()
    }
}

impl std::str::FromStr for Version {
    type Err = SpecError;

    /// Reads three numbers, of which the last may be missing; `v`, release candidates and post-releases are passed over.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut parts = text.trim().trim_start_matches(['v', 'V']).split('.');
        let mut next = || {
            let digits: String = parts.next()?.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u32>().ok()
        };
        let (first, second, third) = (next(), next(), next());
        let whole = text.trim().contains('.');
        match (first, second) {
            (Some(a), Some(b)) => Ok(Self { numbers: (a, b), third }),
            (Some(a), None) if !whole => Ok(Self { numbers: (a, 0), third }),
            _ => Err(SpecError::unknown("engine version", text, std::iter::once("0.19.0"))),
        }
    }
}

impl Engine {
    pub fn covers(&self, version: Version) -> bool {
        self.from.is_none_or(|from| version >= from) && self.until.is_none_or(|to| version < to)
    }

    /// Whether it speaks for a version: one of its own, and not newer than any that was looked at.
    pub fn knows(&self, version: Version) -> bool {
        self.covers(version) && self.newest.is_none_or(|newest| !version.is_after(newest))
    }

    /// The share of a chip's memory it takes, where nothing is known of the chip.
    pub fn usual_share(&self) -> Fraction {
        let by_rule = || self.memory_rule(self.version).map(|rule| rule.utilisation);
        self.schedule.memory.or_else(by_rule).unwrap_or(Fraction::ONE)
    }

    /// The engine as it starts on a chip where nothing is said: with less memory, or of some generations, its version takes shorter
    /// passes and fewer sequences.
    pub fn suited(self: &Arc<Self>, chip: &Chip) -> Arc<Self> {
        let rule = self.memory_rule(self.version).filter(|rule| !rule.whole_prompts);
        let usual = rule.and_then(|rule| rule.usual_on(chip, chip.memory.seen()));
        // A row for all chips says no more than the schedule.
        let Some(own) = usual.filter(|usual| usual.below_gib.is_some() || usual.generation.is_some()) else {
            return self.clone();
        };
        let (s, mut engine) = (&self.schedule, self.clone());
        let sequences = s.told.unwrap_or(s.sequences.min(own.sequences as f64));
        let chunk = s.chunk.min(own.tokens as f64);
        if (chunk, sequences) != (s.chunk, s.sequences) {
            let schedule = &mut Arc::make_mut(&mut engine).schedule;
            (schedule.chunk, schedule.sequences) = (chunk, sequences);
        }
        engine
    }

    /// How a version counts memory: the newest rule that is not newer than it, the last where no version is said.
    pub fn memory_rule(&self, version: Option<Version>) -> Option<&MemoryRule> {
        let old = |rule: &&MemoryRule| {
            version.is_none_or(|version| rule.from.is_none_or(|from| version >= from && !from.is_after(version)))
        };
        self.memory.iter().rev().find(old).or_else(|| self.memory.first())
    }

    /// The expert kernel for a generation and format, with several attention groups or one.
    pub fn experts(&self, generation: &str, format: MoeFormat, attention_dp: bool) -> Option<&ExpertRule> {
        let matches = |rule: &&ExpertRule| {
            rule.generation.as_deref().is_none_or(|g| g == generation)
                && rule.format.is_none_or(|f| f == format)
                && rule.attention_dp.is_none_or(|dp| dp == attention_dp)
        };
        self.kernels.experts.iter().find(matches)
    }
}

pub(crate) fn read(id: &str, text: &str) -> Result<Engine, SpecError> {
    let file = format!("engine {id}");
    let engine: Engine = noun(
        &file,
        id,
        text,
        &[
            "schedule.source",
            "reckoning.source",
            "host_cache.source",
            "handover.source",
            "groups.source",
            "overhead.fit",
            "assumed.source",
        ],
    )?;
    let (s, a) = (&engine.schedule, &engine.assumed);
    let mut bounds = vec![
        ("schedule.chunk_tokens", s.chunk, 1.0, 1e9),
        ("schedule.max_sequences", s.sequences, 1.0, 1e9),
        ("schedule.graph_sequences", s.graph, 0.0, 1e9),
        ("schedule.look_steps", s.looks, 1.0, 1e6),
        ("schedule.gather_steps", s.gather, 0.0, 1e6),
        ("schedule.hold.steps", s.hold.map_or(0.0, |h| h.steps), 0.0, 1e6),
        ("schedule.hold.share", s.hold.map_or(0.0, |h| h.share), 0.0, 1.0),
        ("schedule.block_tokens", s.block, 1.0, 4096.0),
        ("schedule.prompt_tokens", s.prompt.unwrap_or(1.0), 1.0, 1e9),
        ("assumed.sampling_passes", a.sampling_passes, 0.0, 100.0),
        ("assumed.sampling_memory", a.sampling_memory, 0.01, 1.0),
        ("assumed.side_memory", a.side_memory, 0.01, 1.0),
        ("assumed.side_compute", a.side_compute, 0.01, 1.0),
        ("assumed.exchange_hidden", a.exchange_hidden, 0.0, 1.0),
        ("assumed.drafts", a.drafts, 0.0, 64.0),
        ("assumed.acceptance", a.acceptance, 0.0, 1.0),
    ];
    for o in engine.on.iter().map(|e| &e.overhead).chain([&engine.overhead]) {
        bounds.extend([
            ("overhead.mixer_kernels", o.mixer_kernels, 0.0, 100.0),
            ("overhead.ffn_kernels", o.ffn_kernels, 0.0, 100.0),
            ("overhead.hidden_passes", o.hidden_passes, 0.0, 1e3),
            ("overhead.inner_passes", o.inner_passes, 0.0, 1e3),
            ("overhead.small_traffic_divisor", o.small_traffic_divisor, 0.01, 10.0),
            ("overhead.stretch", o.stretch, 0.5, 10.0),
            ("overhead.stretch_long", o.stretch_long, 0.5, 10.0),
            ("overhead.expert_floor", o.expert_floor, 0.0, 10.0),
        ]);
        if let Some((short, long)) = o.expert_stretch {
            bounds
                .extend([("overhead.expert_stretch", short, 0.5, 10.0), ("overhead.expert_stretch", long, 0.5, 10.0)]);
        }
    }
    if let Some(r) = &engine.reckoning {
        bounds.extend([
            ("reckoning.answer_tokens", r.answer_tokens.into(), 1.0, 1e9),
            ("reckoning.share_first", r.share_first, 0.0, 1.0),
            ("reckoning.share_last", r.share_last, 0.0, 1.0),
            ("reckoning.share_steps", r.share_steps, 1.0, 1e9),
            ("reckoning.prompt_looks", r.prompt_looks.into(), 1.0, 1e9),
        ]);
    }
    if let Some(h) = &engine.host_cache {
        bounds.extend([
            ("host_cache.ratio", h.ratio, 0.0, 1e3),
            ("host_cache.prefetch_share", h.prefetch_share, 0.0, 1.0),
            ("host_cache.timeout_s", h.timeout_s, 0.0, 1e6),
            ("host_cache.timeout_s_per_ki", h.timeout_s_per_ki, 0.0, 1e6),
            ("host_cache.timeout_s_most", h.timeout_s_most, 0.0, 1e6),
            ("host_cache.page_tokens", h.page_tokens.into(), 1.0, 4096.0),
        ]);
    }
    if let Some(g) = &engine.groups {
        bounds.extend([
            ("groups.sync_steps", g.sync_steps as f64, 1.0, 1e6),
            ("groups.waiting_weight", g.waiting_weight as f64, 0.0, 1e6),
        ]);
    }
    for (gb, tokens) in &s.chunk_by_gb {
        bounds.extend([("schedule.chunk_by_gb", *gb, 1.0, 1e6), ("schedule.chunk_by_gb", *tokens, 1.0, 1e9)]);
    }
    for (step, most) in &s.graph_steps {
        bounds.extend([("schedule.graph_steps", *step, 1.0, *most)]);
    }
    if let Some(together) = &engine.kernels.together {
        bounds.extend([("kernels.together.rows", together.rows, 1.0, 1024.0)]);
    }
    if let Some(p) = &engine.plain {
        bounds.extend([
            ("plain.compute", p.compute, 0.001, 1.0),
            ("plain.memory", p.memory, 0.001, 1.0),
            ("plain.many_dies", p.many_dies, 0.01, 1.0),
            ("plain.dies_floor", p.dies_floor, 1.0, 100.0),
            ("plain.expand_flop", p.expand, 0.0, 1e4),
            ("plain.expand_nested_flop", p.expand_nested, 0.0, 1e4),
        ]);
    }
    within(&file, &bounds)?;
    Ok(engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        let v = |text: &str| text.parse::<Version>().unwrap();
        assert!(v("0.9.1") < v("0.11.0rc2"));
        assert_eq!(v("v1.2.0rc6.post1"), v("1.2"));
        assert_eq!(v("1"), v("1.0"));
        // SGLang counts in the third number; where it is not given the first two decide.
        assert!(v("0.5.23").is_after(v("0.5.12")) && !v("0.5.12.post1").is_after(v("0.5.12")));
        assert!(!v("0.5").is_after(v("0.5.12")) && !v("0.25.3").is_after(v("0.25")) && v("0.26").is_after(v("0.25")));
        assert_eq!((v("0.19.0").to_string(), v("0.5.23").to_string()), ("0.19".into(), "0.5.23".into()));
        assert!("nightly".parse::<Version>().is_err());
    }
}
