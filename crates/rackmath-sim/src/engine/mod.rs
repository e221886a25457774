//! Engines as they schedule: who gets how many tokens in the next step, and who loses its blocks.

pub mod sglang;
mod slots;
pub mod trtllm;
pub mod vllm;

use crate::Ns;
use crate::blocks::{Place, Segment};
use crate::tiers::{Below, Tiers};
pub use slots::{Sequence, Slots};

/// What a step gives to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub slot: u32,
    pub tokens: u32,
    /// Tokens computed before.
    pub before: u32,
    pub drafts: u32,
    /// All that is known is computed after it: a token is sampled.
    pub samples: bool,
    /// It had sampled before: its one token and its drafts.
    pub decodes: bool,
    pub admitted: bool,
}

/// Decisions of one call of a scheduler, kept between calls so that nothing is allocated.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    pub shares: Vec<Share>,
    pub preempted: Vec<u32>,
    /// Cached tokens found at admission.
    pub hits: Vec<(u32, u32)>,
    pub loads: Loads,
}

/// What a step waits for that comes from tiers below: it does not begin before one time, or does not end before another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loads {
    pub start: Ns,
    pub end: Ns,
}

impl Loads {
    #[must_use]
    pub fn with(self, b: Self) -> Self {
        Self { start: self.start.max(b.start), end: self.end.max(b.end) }
    }
}

impl Decision {
    pub(crate) fn clear(&mut self) {
        self.shares.clear();
        self.preempted.clear();
        self.hits.clear();
        self.loads = Loads::default();
    }
}

/// Takes a slot out of a list; false when it is not there.
fn taken_out(list: &mut Vec<u32>, slot: u32) -> bool {
    let Some(at) = list.iter().position(|s| *s == slot) else { return false };
    list.remove(at);
    true
}

/// What a request got from a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    pub tokens: u32,
    pub finished: bool,
}

/// The flags of an engine.
#[derive(Clone, Debug, PartialEq)]
pub enum Settings {
    Vllm(vllm::Settings),
    Sglang(sglang::Settings),
    Trtllm(trtllm::Settings),
}

impl From<sglang::Settings> for Settings {
    fn from(settings: sglang::Settings) -> Self {
        Self::Sglang(settings)
    }
}

impl From<trtllm::Settings> for Settings {
    fn from(settings: trtllm::Settings) -> Self {
        Self::Trtllm(settings)
    }
}

impl From<&Settings> for Settings {
    fn from(settings: &Settings) -> Self {
        settings.clone()
    }
}

impl From<vllm::Settings> for Settings {
    fn from(settings: vllm::Settings) -> Self {
        Self::Vllm(settings)
    }
}

impl From<&vllm::Settings> for Settings {
    fn from(settings: &vllm::Settings) -> Self {
        Self::Vllm(settings.clone())
    }
}

impl Settings {
    /// A step is chosen while the one before it runs.
    pub fn overlaps(&self) -> bool {
        match self {
            Self::Vllm(s) => s.async_scheduling,
            Self::Sglang(s) => !s.disable_overlap_schedule,
            Self::Trtllm(s) => !s.disable_overlap_scheduler,
        }
    }

    /// Tokens of a block of the cache.
    pub fn block(&self) -> u32 {
        match self {
            Self::Vllm(s) => s.block_size,
            Self::Sglang(_) => 1,
            Self::Trtllm(s) => s.tokens_per_block,
        }
    }

    /// Most tokens of a prompt and its answer that the engine takes: more would wait for ever.
    pub fn longest(&self) -> u32 {
        match self {
            Self::Vllm(s) => s.max_model_len.min((s.num_blocks - 1).saturating_mul(s.block_size)),
            Self::Sglang(s) => s.longest(),
            Self::Trtllm(s) => s.longest(),
        }
    }

    /// Stages of a pipeline.
    pub fn stages(&self) -> u32 {
        match self {
            Self::Vllm(s) => s.pipeline_parallel_size.max(1),
            Self::Sglang(_) | Self::Trtllm(_) => 1,
        }
    }

    /// Drafts checked in a step.
    pub fn drafts(&self) -> u32 {
        match self {
            Self::Vllm(s) => s.speculative,
            Self::Sglang(_) | Self::Trtllm(_) => 0,
        }
    }
}

/// An engine that schedules.
#[derive(Clone, Debug)]
pub enum Engine {
    Vllm(vllm::Scheduler),
    Sglang(Box<sglang::Scheduler>),
    Trtllm(trtllm::Scheduler),
}

macro_rules! each {
    ($engine:expr, $s:ident => $what:expr) => {
        match $engine {
            Engine::Vllm($s) => $what,
            Engine::Sglang($s) => $what,
            Engine::Trtllm($s) => $what,
        }
    };
}

impl Engine {
    pub fn new(settings: Settings) -> Self {
        match settings {
            Settings::Vllm(s) => Self::Vllm(vllm::Scheduler::new(s)),
            Settings::Sglang(s) => Self::Sglang(Box::new(sglang::Scheduler::new(s))),
            Settings::Trtllm(s) => Self::Trtllm(trtllm::Scheduler::new(s)),
        }
    }

    /// Chooses the next step into [`Self::decision`].
    pub fn schedule(&mut self) {
        each!(self, s => s.schedule());
    }

    /// It is called at this time.
    pub fn at(&mut self, now: Ns) {
        each!(self, s => s.at(now));
    }

    /// When what a waiting request fetches from tiers below comes.
    pub fn comes(&self) -> Option<Ns> {
        match self {
            Self::Vllm(s) => s.comes(),
            Self::Sglang(s) => s.comes(),
            Self::Trtllm(_) => None,
        }
    }

    /// Memory below the chip's own, where there is some.
    pub fn tiers(&self) -> Option<&Tiers> {
        match self {
            Self::Vllm(s) => s.tiers.as_deref(),
            Self::Sglang(s) => s.blocks.tiers(),
            Self::Trtllm(s) => s.tiers.as_deref(),
        }
    }

    pub fn decision(&self) -> &Decision {
        each!(self, s => &s.decision)
    }

    /// Gives a request the tokens of a step.
    pub fn receive(&mut self, share: &Share, accepted: u32) -> Received {
        each!(self, s => s.receive(share, accepted))
    }

    /// A request arrives and waits.
    pub fn add(&mut self, sequence: Sequence) -> u32 {
        each!(self, s => s.add(sequence))
    }

    /// A call with nothing to do.
    pub fn rest(&mut self) {
        match self {
            Self::Vllm(s) => s.rest(),
            Self::Sglang(s) => s.rest(),
            Self::Trtllm(_) => {}
        }
    }

    pub fn sequence(&self, slot: u32) -> &Sequence {
        each!(self, s => &s.sequences[slot])
    }

    pub fn sequence_mut(&mut self, slot: u32) -> &mut Sequence {
        each!(self, s => &mut s.sequences[slot])
    }

    /// All slots, with who was in them last.
    pub fn sequences(&self) -> impl Iterator<Item = &Sequence> {
        each!(self, s => s.sequences.all())
    }

    /// Takes a request out, done or not, with its blocks unless it keeps them.
    pub fn end(&mut self, slot: u32) {
        each!(self, s => s.end(slot));
    }

    /// Gives back the blocks of a request that has ended and kept them.
    pub fn let_go(&mut self, slot: u32) {
        each!(self, s => s.let_go(slot));
    }

    pub fn settings(&self) -> Settings {
        match self {
            Self::Vllm(s) => Settings::Vllm(s.settings.clone()),
            Self::Sglang(s) => Settings::Sglang(s.settings.clone()),
            Self::Trtllm(s) => Settings::Trtllm(s.settings.clone()),
        }
    }

    pub fn running(&self) -> usize {
        each!(self, s => s.running())
    }

    pub fn waiting(&self) -> usize {
        each!(self, s => s.waiting())
    }

    /// A step is chosen while the one before it runs.
    pub fn overlaps(&self) -> bool {
        match self {
            Self::Vllm(s) => s.settings.async_scheduling,
            Self::Sglang(s) => !s.settings.disable_overlap_schedule,
            Self::Trtllm(s) => !s.settings.disable_overlap_scheduler,
        }
    }

    /// Finds or makes the place of a sequence under a key: equal keys share.
    pub fn place(&mut self, key: u64, segments: impl Iterator<Item = Segment>) -> Place {
        each!(self, s => s.blocks.place(key, segments))
    }

    /// What of a request may be in tiers below, by its content; none where there are none.
    pub fn below(&self, content: &[Segment]) -> Option<Box<Below>> {
        self.tiers().map(|tiers| Box::new(tiers.below(content)))
    }

    /// Leading tokens of a sequence that are stored, at most `most`.
    pub fn probe(&self, key: u64, segments: &[Segment], most: u32) -> u32 {
        each!(self, s => s.blocks.probe(key, segments, most))
    }

    /// Tokens of a block of the cache.
    pub fn block(&self) -> u32 {
        each!(self, s => s.blocks.size())
    }

    /// Blocks of the cache.
    pub fn usable(&self) -> u32 {
        each!(self, s => s.blocks.usable())
    }

    /// Blocks that no request holds, with whatever may still be found in them.
    pub fn free(&self) -> u32 {
        each!(self, s => s.blocks.free())
    }

    /// Blocks that requests hold.
    pub fn used(&self) -> u32 {
        self.usable() - self.free()
    }

    /// Blocks that requests hold, counted one by one, for comparisons.
    pub fn held(&self) -> u32 {
        each!(self, s => s.held())
    }

    /// What is free, in the order in which it is reused, for comparisons.
    pub fn free_list(&self) -> String {
        each!(self, s => s.blocks.free_list())
    }

    /// Whether steps of decodes can be taken at once.
    pub fn jumps(&self) -> bool {
        match self {
            Self::Vllm(s) => s.jumps(),
            Self::Sglang(_) | Self::Trtllm(_) => false,
        }
    }

    /// Most steps that can be taken at once from this call on, by engines whose other steps go through the scheduler: only
    /// decodes run, nobody waits, nobody gets more than its last token and there is room for all.
    pub(crate) fn glides(&self) -> Option<u32> {
        match self {
            Self::Vllm(_) => None,
            Self::Sglang(s) => s.glides(),
            Self::Trtllm(s) => s.glides(),
        }
    }

    /// Room is taken for so many steps of decodes, as [`Self::glides`] allows.
    pub(crate) fn pass(&mut self, steps: u32) {
        match self {
            Self::Vllm(_) => {}
            Self::Sglang(s) => s.pass(steps),
            Self::Trtllm(s) => s.pass(steps),
        }
    }

    /// Who runs, in the order of the batch.
    pub(crate) fn decoding(&self) -> &[u32] {
        each!(self, s => &s.running)
    }

    /// vLLM's scheduler, where it is known to be it: only its steps are taken at once.
    pub(crate) fn vllm(&self) -> &vllm::Scheduler {
        match self {
            Self::Vllm(s) => s,
            Self::Sglang(_) | Self::Trtllm(_) => unreachable!("only vLLM's steps are taken at once"),
        }
    }

    pub(crate) fn vllm_mut(&mut self) -> &mut vllm::Scheduler {
        match self {
            Self::Vllm(s) => s,
            Self::Sglang(_) | Self::Trtllm(_) => unreachable!("only vLLM's steps are taken at once"),
        }
    }
}
