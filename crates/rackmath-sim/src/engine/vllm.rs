//! vLLM's scheduler, V1: running first, prompts in chunks beside decodes, the youngest gives way.
//!
//! Read from vLLM 0.32.0 (`vllm/v1/core/sched/scheduler.py`, `kv_cache_manager.py`, `block_pool.py`) and compared with
//! recorded schedules of it, step by step.
//!
//! The engine before it, V0 (`vllm/core/scheduler.py` of 0.6 to 0.9), differs in two settings, which are not compared with it:
//! without chunks, prompts go first and in steps of their own; and one call may choose several steps of decodes.

use super::{Decision, Received, Sequence, Share, Slots, taken_out};
use crate::Ns;
use crate::blocks::{Blocks, Group};
use crate::tiers::{Tier, Tiers};
use std::collections::{BTreeSet, VecDeque};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Fcfs,
    Priority,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub max_num_seqs: u32,
    /// A lower cap on admission only.
    pub max_num_active_seqs: Option<u32>,
    pub max_num_batched_tokens: u32,
    pub max_model_len: u32,
    pub enable_chunked_prefill: bool,
    pub enable_prefix_caching: bool,
    pub long_prefill_token_threshold: u32,
    pub long_prefill_token_threshold_adaptive: bool,
    /// Admit only if the whole prompt fits now, not only its first chunk.
    pub scheduler_reserve_full_isl: bool,
    /// Share of the blocks kept free when admitting, unless nothing runs.
    pub watermark: f64,
    pub policy: Policy,
    pub async_scheduling: bool,
    pub block_size: u32,
    pub num_blocks: u32,
    pub groups: Vec<Group>,
    pub speculative: u32,
    pub max_loras: Option<u32>,
    pub prefill_schedule_interval: u32,
    /// V0 without chunks: while a prompt can be admitted, a step has prompts alone.
    pub prompts_alone: bool,
    /// V0: steps for each call. Prompts are then not cut, and the budget is that of the first step.
    pub num_scheduler_steps: u32,
    /// Memory below the chip's own that keeps blocks, the nearest first.
    pub tiers: Vec<Tier>,
    /// Stages of a pipeline, as many batches of which are under way. Nothing overlaps with the choice of a batch then, and
    /// nothing is drafted.
    pub pipeline_parallel_size: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_num_seqs: 128,
            max_num_active_seqs: None,
            max_num_batched_tokens: 2048,
            max_model_len: 32768,
            enable_chunked_prefill: true,
            enable_prefix_caching: true,
            long_prefill_token_threshold: 0,
            long_prefill_token_threshold_adaptive: false,
            scheduler_reserve_full_isl: true,
            watermark: 0.0,
            policy: Policy::Fcfs,
            async_scheduling: false,
            block_size: 16,
            num_blocks: 4096,
            groups: vec![Group::Full],
            speculative: 0,
            max_loras: None,
            prefill_schedule_interval: 1,
            prompts_alone: false,
            num_scheduler_steps: 1,
            tiers: Vec::new(),
            pipeline_parallel_size: 1,
        }
    }
}

/// Waiting requests in the order in which they are looked at.
#[derive(Clone, Debug)]
enum Queue {
    Line(VecDeque<u32>),
    Ranked(BTreeSet<(i32, u64, u64, u32)>),
}

impl Queue {
    fn len(&self) -> usize {
        match self {
            Self::Line(q) => q.len(),
            Self::Ranked(q) => q.len(),
        }
    }

    fn first(&self) -> Option<u32> {
        match self {
            Self::Line(q) => q.front().copied(),
            Self::Ranked(q) => q.first().map(|k| k.3),
        }
    }

    fn pop(&mut self) -> Option<u32> {
        match self {
            Self::Line(q) => q.pop_front(),
            Self::Ranked(q) => q.pop_first().map(|k| k.3),
        }
    }

    /// The last that is so.
    fn last(&self, is: impl Fn(&u32) -> bool) -> Option<u32> {
        self.all().into_iter().rev().find(is)
    }

    fn all(&self) -> Vec<u32> {
        match self {
            Self::Line(q) => q.iter().copied().collect(),
            Self::Ranked(q) => q.iter().map(|k| k.3).collect(),
        }
    }

    fn remove(&mut self, slot: u32) {
        match self {
            Self::Line(q) => q.retain(|s| *s != slot),
            Self::Ranked(q) => q.retain(|k| k.3 != slot),
        }
    }

    fn put(&mut self, slot: u32, s: &Sequence, front: bool) {
        match self {
            Self::Line(q) if front => q.push_front(slot),
            Self::Line(q) => q.push_back(slot),
            Self::Ranked(q) => {
                q.insert((s.priority, s.arrival, s.rank, slot));
            }
        }
    }
}

#[derive(Clone, Debug)]
pub struct Scheduler {
    pub settings: Settings,
    pub blocks: Blocks,
    pub sequences: Slots,
    pub running: Vec<u32>,
    waiting: Queue,
    aside: Vec<u32>,
    adapters: Vec<u32>,
    watermark: u32,
    calls: u64,
    /// Steps of decodes that the last choice still covers.
    chosen: u32,
    /// The last step that admitted left some waiting.
    left: bool,
    /// A request ended since the last call: the engine calls once more, though nothing may be left.
    ended: bool,
    pub decision: Decision,
    pub tiers: Option<Box<Tiers>>,
    /// When it is called.
    now: Ns,
}

impl Scheduler {
    pub fn new(settings: Settings) -> Self {
        let s = &settings;
        let blocks = Blocks::new(s.num_blocks.saturating_sub(1), s.block_size, &s.groups, s.enable_prefix_caching);
        let waiting = match s.policy {
            Policy::Fcfs => Queue::Line(VecDeque::new()),
            Policy::Priority => Queue::Ranked(BTreeSet::new()),
        };
        Self {
            watermark: (s.watermark * f64::from(s.num_blocks)) as u32,
            sequences: Slots::new(blocks.groups()),
            blocks,
            running: Vec::new(),
            waiting,
            aside: Vec::new(),
            adapters: Vec::new(),
            calls: 0,
            chosen: 0,
            left: false,
            ended: false,
            decision: Decision::default(),
            tiers: if s.enable_prefix_caching { Tiers::new(&s.tiers, s.block_size) } else { None },
            now: 0,
            settings,
        }
    }

    pub fn running(&self) -> usize {
        self.running.len()
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.running.is_empty() && self.waiting.len() == 0 && !self.ended
    }

    /// Whether steps of decodes can be taken at once.
    pub(super) fn jumps(&self) -> bool {
        let s = &self.settings;
        s.policy == Policy::Fcfs
            && s.speculative == 0
            && s.max_loras.is_none()
            && s.long_prefill_token_threshold == 0
            && s.prefill_schedule_interval <= 1
            && s.num_scheduler_steps <= 1
            && s.pipeline_parallel_size <= 1
            && s.enable_chunked_prefill
            && self.blocks.only_counts()
            && self.tiers.is_none()
    }

    /// A request arrives and waits.
    pub fn add(&mut self, sequence: Sequence) -> u32 {
        let slot = self.sequences.add(sequence);
        self.waiting.put(slot, &self.sequences[slot], false);
        slot
    }

    /// Blocks that requests hold, counted one by one.
    pub fn held(&self) -> u32 {
        self.blocks.held(self.sequences.all())
    }

    /// A call with nothing to do.
    pub fn rest(&mut self) {
        if self.ended {
            self.calls += 1;
            self.ended = false;
        }
    }

    /// Chooses the next step into [`Self::decision`].
    pub fn schedule(&mut self) {
        let s = &self.settings;
        let throttled =
            s.prefill_schedule_interval > 1 && !self.calls.is_multiple_of(s.prefill_schedule_interval.into());
        self.calls += 1;
        self.ended = false;
        self.decision.clear();
        let mut budget = s.max_num_batched_tokens;
        let cap = self.cap();
        let throttled = throttled && !self.left && self.decodes();
        if self.settings.prompts_alone || self.settings.num_scheduler_steps > 1 {
            self.choose_before(&mut budget, cap);
        } else {
            self.run(&mut budget, cap, throttled);
            if self.decision.preempted.is_empty() {
                self.admit(&mut budget, cap, throttled);
                if !throttled {
                    self.left = self.waiting.len() > 0;
                }
            }
        }
        for share in &mut self.decision.shares {
            let r = &mut self.sequences[share.slot];
            r.computed += share.tokens;
            r.flying += 1;
            share.samples = r.computed >= r.known() + r.pending;
            r.settled |= share.samples;
            if share.samples && self.settings.async_scheduling {
                r.pending += 1 + share.drafts;
                r.drafts = self.settings.speculative;
            } else {
                r.drafts = 0;
            }
            if let (Some(tiers), Some(below)) = (&mut self.tiers, &mut r.below) {
                tiers.write(below, r.computed.min(r.prompt + r.sampled));
            }
        }
    }

    /// A step as V0 chooses it.
    fn choose_before(&mut self, budget: &mut u32, cap: u32) {
        let (alone, steps) = (self.settings.prompts_alone, self.settings.num_scheduler_steps.max(1));
        if self.chosen > 0 && !self.running.is_empty() {
            self.chosen -= 1;
            let mut any = u32::MAX;
            self.run(&mut any, cap, false);
            return;
        }
        if alone {
            self.admit(budget, cap, false);
        }
        if self.decision.shares.is_empty() {
            self.run(budget, cap, false);
            self.chosen = steps - 1;
        }
        if !alone && self.decision.preempted.is_empty() {
            self.admit(budget, cap, false);
            self.chosen = steps - 1;
        }
    }

    /// Some running request is past its prompt.
    fn decodes(&self) -> bool {
        self.running.iter().any(|slot| {
            let r = &self.sequences[*slot];
            r.computed + 1 >= r.known() + r.pending && r.sampled + r.pending > 0
        })
    }

    /// Most tokens of one request in a step.
    fn cap(&self) -> u32 {
        let s = &self.settings;
        let all = (self.running.len() + self.waiting.len()) as u32;
        if s.long_prefill_token_threshold == 0 || all <= 1 {
            return u32::MAX;
        }
        let fair = if s.long_prefill_token_threshold_adaptive { s.max_num_batched_tokens / all } else { 0 };
        s.long_prefill_token_threshold.max(fair)
    }

    fn run(&mut self, budget: &mut u32, cap: u32, throttled: bool) {
        let longest = self.settings.max_model_len;
        let mut at = 0;
        while at < self.running.len() && *budget > 0 {
            let slot = self.running[at];
            let r = &self.sequences[slot];
            let wanted = r.known() + r.drafts + r.pending - r.computed;
            let ends = r.pending > 0 && r.computed + 2 - r.pending >= r.prompt + r.output;
            let unfinished = r.computed + 1 < r.known() + r.pending;
            let n = wanted.min(cap).min(*budget).min((longest - 1).saturating_sub(r.computed));
            if n == 0 || ends || (throttled && unfinished) {
                at += 1;
                continue;
            }
            let before = r.computed;
            if !self.make_room(slot, before, before + n, &mut at, budget) {
                break;
            }
            self.give(slot, n, before, budget, false);
            at += 1;
        }
    }

    pub(crate) fn give(&mut self, slot: u32, n: u32, before: u32, budget: &mut u32, admitted: bool) {
        let r = &mut self.sequences[slot];
        self.blocks.grow(&mut r.held, before + n);
        let stored = (before + n).min(r.known());
        self.blocks.store(&mut r.held, r.place, stored);
        let drafts = (before + n).saturating_sub(r.known() + r.pending).min(r.drafts);
        let decodes = r.settled;
        self.decision.shares.push(Share { slot, tokens: n, before, drafts, samples: false, decodes, admitted });
        *budget -= n;
    }

    /// Evicts until `tokens` of a running request have a place; false when the request itself had to go.
    fn make_room(&mut self, slot: u32, computed: u32, tokens: u32, at: &mut usize, budget: &mut u32) -> bool {
        loop {
            let r = &mut self.sequences[slot];
            self.blocks.slide(&mut r.held, computed);
            if self.blocks.missing(&r.held, tokens) <= self.blocks.free() {
                return true;
            }
            let place = self.victim();
            let victim = self.running.remove(place);
            if let Some(given) = self.decision.shares.iter().position(|s| s.slot == victim) {
                *budget += self.decision.shares.remove(given).tokens;
            }
            if place < *at {
                *at -= 1;
            }
            self.evict(victim);
            if victim == slot {
                return false;
            }
        }
    }

    fn victim(&self) -> usize {
        let key = |slot: u32| {
            let r = &self.sequences[slot];
            (r.priority, r.arrival)
        };
        let last = self.running.len() - 1;
        match self.settings.policy {
            Policy::Fcfs => last,
            // Of equals the first.
            Policy::Priority => (0..last)
                .rev()
                .fold(last, |best, i| if key(self.running[i]) >= key(self.running[best]) { i } else { best }),
        }
    }

    fn evict(&mut self, slot: u32) {
        let r = &mut self.sequences[slot];
        self.blocks.release_all(&mut r.held);
        (r.computed, r.drafts, r.settled, r.brought) = (0, 0, false, 0);
        r.preempted += 1;
        self.waiting.put(slot, r, true);
        self.decision.preempted.push(slot);
    }

    pub(crate) fn admit(&mut self, budget: &mut u32, cap: u32, throttled: bool) {
        let most = self.settings.max_num_seqs.min(self.settings.max_num_active_seqs.unwrap_or(u32::MAX)) as usize;
        self.note_adapters();
        while *budget > 0 && self.running.len() < most {
            let Some(slot) = self.waiting.first() else { break };
            let r = &self.sequences[slot];
            let adapter = r.adapter;
            let many = self.settings.max_loras.is_some_and(|most| {
                adapter > 0 && !self.adapters.contains(&adapter) && self.adapters.len() >= most as usize
            });
            let until = r.below.as_ref().and_then(|b| b.until);
            // An evicted request whose token is still in flight waits for it, and who fetches for what it fetches.
            let piped = self.settings.pipeline_parallel_size > 1 && r.flying > 0;
            if many || piped || r.pending > 0 || until.is_some_and(|until| until > self.now) {
                self.waiting.pop();
                self.aside.push(slot);
                continue;
            }
            let (known, place, brought) = (r.known(), r.place, r.brought);
            let came = until.map(|_| r.computed);
            let hit = came.unwrap_or_else(|| self.blocks.find(place, known - 1));
            let below = if came.is_none() && brought == 0 { self.below(slot, hit) } else { 0 };
            if below > 0 {
                if self.fetch(slot, hit, below) {
                    continue;
                }
                break;
            }
            // What it brings along needs blocks as well.
            let from = hit.max(brought);
            let mut n = (known - from).min(cap);
            if throttled && n > 1 {
                break;
            }
            if n > *budget {
                if !self.settings.enable_chunked_prefill || self.settings.num_scheduler_steps > 1 {
                    break;
                }
                n = *budget;
            }
            let fits = match came {
                Some(_) => self.fits_on(slot, known, from + n),
                None => self.fits(known, hit, from - hit + n),
            };
            if !fits {
                if self.drop_fetched(slot) {
                    continue;
                }
                break;
            }
            self.waiting.pop();
            self.running.push(slot);
            if adapter > 0 && !self.adapters.contains(&adapter) {
                self.adapters.push(adapter);
            }
            let r = &mut self.sequences[slot];
            if came.is_none() {
                self.blocks.admit(&mut r.held, hit);
            } else if let Some(below) = &mut r.below {
                below.until = None;
            }
            r.computed = from;
            if hit > 0 {
                self.decision.hits.push((slot, hit));
            }
            self.give(slot, n, from, budget, true);
        }
        while let Some(slot) = self.aside.pop() {
            self.waiting.put(slot, &self.sequences[slot], true);
        }
    }

    /// Whether a waiting request's blocks are free: of all it knows, and of its first chunk.
    fn fits(&self, known: u32, hit: u32, n: u32) -> bool {
        let s = &self.settings;
        let kept = if self.running.is_empty() { 0 } else { self.watermark };
        let cap = Some((s.max_num_batched_tokens, s.max_model_len));
        let whole = s.scheduler_reserve_full_isl;
        let free = self.blocks.free();
        (!whole || self.blocks.needed(known.min(s.max_model_len), hit, cap) + kept <= free)
            && self.blocks.needed(hit + n, hit, None) + kept <= free
    }

    /// Most steps in which everybody decodes and nothing else happens: nobody waits or ends, and blocks suffice.
    pub(crate) fn steady(&self) -> u32 {
        let n = self.running.len() as u32;
        if n == 0 || self.waiting.len() > 0 || n > self.settings.max_num_batched_tokens {
            return 0;
        }
        let left = self.running.iter().map(|slot| {
            let r = &self.sequences[*slot];
            let room = (self.settings.max_model_len - 1).saturating_sub(r.computed);
            if r.settled { (r.output - (r.sampled + r.pending).min(r.output)).min(room) } else { 0 }
        });
        // In the steps of a block each takes one; the last step of anybody is not among them.
        let blocks = (self.blocks.free() / n).saturating_mul(self.settings.block_size);
        left.min().unwrap_or(0).saturating_sub(1).min(blocks)
    }

    /// So many of [`Self::steady`] are behind everybody.
    pub(crate) fn pass(&mut self, steps: u32) {
        for slot in &self.running {
            let r = &mut self.sequences[*slot];
            (r.computed, r.sampled) = (r.computed + steps, r.sampled + steps);
            self.blocks.grow(&mut r.held, r.computed);
            self.blocks.store(&mut r.held, r.place, r.computed - r.pending);
        }
    }

    /// Blocks after the first `hit` tokens of a waiting request that tiers below have.
    fn below(&mut self, slot: u32, hit: u32) -> u32 {
        let r = &self.sequences[slot];
        let (Some(tiers), Some(below)) = (&mut self.tiers, &r.below) else { return 0 };
        let size = self.settings.block_size;
        tiers.find(below, hit / size, (r.prompt + r.sampled - 1) / size)
    }

    /// A waiting request takes blocks for what tiers below have, and waits for it; false where there is no room.
    fn fetch(&mut self, slot: u32, hit: u32, blocks: u32) -> bool {
        let size = self.settings.block_size;
        if !self.fits(self.sequences[slot].known(), hit, blocks * size) {
            return self.drop_fetched(slot);
        }
        self.waiting.pop();
        self.aside.push(slot);
        let r = &mut self.sequences[slot];
        self.blocks.admit(&mut r.held, hit);
        self.blocks.grow(&mut r.held, hit + blocks * size);
        r.computed = hit + blocks * size;
        if let (Some(tiers), Some(below)) = (&mut self.tiers, &mut r.below) {
            let until = tiers.fetch(self.now, below, hit / size, blocks);
            if r.first_scheduled == Ns::MAX {
                below.fetched = blocks * size;
                below.waited += until - self.now;
            }
        }
        true
    }

    /// The same as [`Self::fits`] for a request whose blocks below have come: it holds them.
    fn fits_on(&self, slot: u32, known: u32, tokens: u32) -> bool {
        let (s, held) = (&self.settings, &self.sequences[slot].held);
        let kept = if self.running.is_empty() { 0 } else { self.watermark };
        let missing = |tokens: u32| self.blocks.missing(held, tokens) + kept <= self.blocks.free();
        (!s.scheduler_reserve_full_isl || missing(known.min(s.max_model_len))) && missing(tokens)
    }

    /// Where nothing runs and the first in line has no room, the last that holds what it fetched lets it go: otherwise all
    /// would wait for each other. The engine has no such rule.
    fn drop_fetched(&mut self, first: u32) -> bool {
        if !self.running.is_empty() || !self.decision.shares.is_empty() || self.tiers.is_none() {
            return false;
        }
        let came = |slot: &u32| {
            let r = &self.sequences[*slot];
            *slot != first && r.below.as_ref().and_then(|b| b.until).is_some_and(|until| until <= self.now)
        };
        let Some(slot) = self.waiting.last(came) else { return false };
        let r = &mut self.sequences[slot];
        self.blocks.release_all(&mut r.held);
        r.computed = 0;
        if let Some(below) = &mut r.below {
            below.until = None;
        }
        true
    }

    /// It is called at this time.
    pub(crate) fn at(&mut self, now: Ns) {
        self.now = now;
    }

    /// When what a waiting request fetches next comes.
    pub(crate) fn comes(&self) -> Option<Ns> {
        self.tiers.as_ref()?;
        let until = |slot: u32| self.sequences[slot].below.as_ref()?.until.filter(|until| *until > self.now);
        self.waiting.all().into_iter().filter_map(until).min()
    }

    /// Adapters of the requests that are scheduled in this step.
    fn note_adapters(&mut self) {
        self.adapters.clear();
        if self.settings.max_loras.is_none() {
            return;
        }
        for share in &self.decision.shares {
            let adapter = self.sequences[share.slot].adapter;
            if adapter > 0 && !self.adapters.contains(&adapter) {
                self.adapters.push(adapter);
            }
        }
    }

    /// Gives a request the tokens of a step: its own and the accepted of `drafts`; true when it is done.
    pub fn receive(&mut self, share: &Share, accepted: u32) -> Received {
        let slot = share.slot;
        self.sequences.lands(slot);
        let r = &mut self.sequences[slot];
        // It may have ended while this was under way.
        if r.done || !share.samples {
            return Received::default();
        }
        let rejected = share.drafts - accepted;
        let most = (r.prompt + r.output).min(self.settings.max_model_len).saturating_sub(r.known());
        let got = (1 + accepted).min(most);
        r.sampled += got;
        // Evicted, it has nothing.
        let here = r.computed > 0;
        debug_assert_eq!(here, self.running.contains(&slot));
        if here {
            r.computed -= rejected;
        }
        if self.settings.async_scheduling {
            r.pending -= (1 + share.drafts).min(r.pending);
        } else if here {
            r.drafts = self.settings.speculative;
        }
        if self.settings.async_scheduling && here {
            let stored = r.computed.saturating_sub(r.pending).min(r.known());
            self.blocks.store(&mut r.held, r.place, stored);
        }
        let finished = got == most;
        if finished {
            self.end(slot);
        }
        Received { tokens: got, finished }
    }

    /// A request is done and leaves.
    pub(crate) fn end(&mut self, slot: u32) {
        let r = &mut self.sequences[slot];
        if let (Some(tiers), Some(below)) = (&mut self.tiers, &mut r.below) {
            // The last token was never computed with.
            tiers.write(below, r.computed.min(r.prompt + r.sampled - 1));
        }
        r.done = true;
        if !r.kept {
            self.let_go(slot);
        }
        // Its last token may have been in flight when it was evicted.
        if !taken_out(&mut self.running, slot) {
            self.waiting.remove(slot);
        }
        self.ended = true;
    }

    /// Gives back the blocks of a request that has ended.
    pub(crate) fn let_go(&mut self, slot: u32) {
        let r = &mut self.sequences[slot];
        self.blocks.release_all(&mut r.held);
        self.blocks.leave(r.place);
        self.sequences.leaves(slot);
    }
}
