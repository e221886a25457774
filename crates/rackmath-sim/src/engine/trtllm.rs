//! TensorRT-LLM's two schedulers: who may be resident, then what fits in a step.
//!
//! Read from TensorRT-LLM's main branch of summer 2026 (`batch_manager/capacityScheduler.cpp`, `microBatchScheduler.cpp`,
//! `kvCacheManager.cpp`); not compared with the engine itself. A prompt takes the blocks of its whole length when it starts.
//! Only whole blocks are found again, and only what is not found counts as tokens of a step. A prompt larger than a step,
//! which the engine refuses, runs alone.
//!
//! With host memory (`kv_cache_config.host_cache_size`), a block with content that gives way on the chip moves down; the host
//! forgets what came down first. A block that is found there moves up when its prompt starts, and the step waits for it
//! (`kvCacheManager.cpp`, `getFreeBlock`, `onboardBlock`; `kvCacheTransferManager.cpp`, `syncTransfers`). Blocks that are on the
//! chip behind some that are in the host are not found.

use super::{Decision, Received, Sequence, Share, Slots, taken_out};
use crate::Ns;
use crate::blocks::{Blocks, Group};
use crate::tiers::{Tier, Tiers};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Who may be resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Capacity {
    /// Whose blocks to the longest answer fit beside those of all residents: nobody ever loses blocks.
    GuaranteedNoEvict,
    /// Whose next step fits; the last started pauses when it does not.
    MaxUtilization,
    /// As the first, and nobody starts while another is resident.
    StaticBatch,
}

/// How prompts that do not all fit in a step are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Chunking {
    /// Each gets what is left.
    FirstComeFirstServed,
    /// One block for each in turn.
    EqualProgress,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub max_batch_size: u32,
    pub max_num_tokens: u32,
    pub max_seq_len: u32,
    pub capacity: Capacity,
    /// None: prompts are not cut.
    pub chunking: Option<Chunking>,
    pub enable_block_reuse: bool,
    pub tokens_per_block: u32,
    /// Blocks of the cache.
    pub blocks: u32,
    pub disable_overlap_scheduler: bool,
    /// Host memory below the chip's own; none without.
    pub host: Option<Tier>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_batch_size: 2048,
            max_num_tokens: 8192,
            max_seq_len: 131_072,
            capacity: Capacity::GuaranteedNoEvict,
            chunking: None,
            enable_block_reuse: true,
            tokens_per_block: 32,
            blocks: 2048,
            disable_overlap_scheduler: false,
            host: None,
        }
    }
}

impl Settings {
    /// Most tokens of a prompt and its answer.
    pub fn longest(&self) -> u32 {
        self.max_seq_len.min(self.blocks.saturating_mul(self.tokens_per_block))
    }
}

/// Someone who may run in this step.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    slot: u32,
    /// Tokens found in the cache; found there or in the host, brought along or computed before.
    found: u32,
    before: u32,
    /// Tokens that are left of the prompt; none for a decode.
    rest: u32,
    tokens: u32,
    new: bool,
}

#[derive(Clone, Debug)]
pub struct Scheduler {
    pub settings: Settings,
    pub blocks: Blocks,
    pub sequences: Slots,
    /// Residents and those who wait, each in order of arrival.
    pub running: Vec<u32>,
    waiting: VecDeque<u32>,
    candidates: Vec<Candidate>,
    /// First blocks that prompts of this step compute.
    contributed: Vec<(u32, u32)>,
    /// Prompts that the last step finished.
    fresh: Vec<u32>,
    order: Vec<u32>,
    pub decision: Decision,
    pub tiers: Option<Box<Tiers>>,
    /// What blocks that could be found are known by in the host.
    keys: Vec<u64>,
    /// When it is called.
    now: Ns,
    /// Everybody is looked for, whether or not it can be given anything: for comparisons.
    thorough: bool,
}

impl Scheduler {
    pub fn new(settings: Settings) -> Self {
        let s = &settings;
        let host = s.host.filter(|host| host.blocks > 0 && s.enable_block_reuse);
        let blocks = Blocks::new(s.blocks, s.tokens_per_block, &[Group::Full], s.enable_block_reuse);
        Self {
            blocks: if host.is_some() { blocks.noting() } else { blocks },
            tiers: host.and_then(|host| Tiers::new(&[host], s.tokens_per_block)),
            keys: Vec::new(),
            now: 0,
            sequences: Slots::new(1),
            running: Vec::new(),
            waiting: VecDeque::new(),
            candidates: Vec::new(),
            contributed: Vec::new(),
            fresh: Vec::new(),
            order: Vec::new(),
            decision: Decision::default(),
            thorough: false,
            settings,
        }
    }

    pub fn running(&self) -> usize {
        self.running.len()
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A request arrives and waits.
    pub fn add(&mut self, sequence: Sequence) -> u32 {
        let slot = self.sequences.add(sequence);
        self.waiting.push_back(slot);
        slot
    }

    /// Blocks that requests hold, counted one by one.
    pub fn held(&self) -> u32 {
        self.blocks.held(self.sequences.all())
    }

    /// Chooses the next step into [`Self::decision`].
    pub fn schedule(&mut self) {
        self.decision.clear();
        self.candidates.clear();
        self.remember();
        match self.settings.capacity {
            Capacity::MaxUtilization => self.utilize(),
            Capacity::GuaranteedNoEvict | Capacity::StaticBatch => self.guarantee(),
        }
        match self.settings.chunking {
            None => self.whole(),
            Some(how) => self.cut(how),
        }
        self.start();
        self.move_down();
        for share in &mut self.decision.shares {
            let r = &mut self.sequences[share.slot];
            r.computed += share.tokens;
            r.flying += 1;
            share.samples = r.computed >= r.known() + r.pending;
            if share.samples && !r.settled {
                self.fresh.push(share.slot);
            }
            r.settled |= share.samples;
            r.pending += u32::from(share.samples);
        }
    }

    /// Prompts of the last step can be found from now on.
    fn remember(&mut self) {
        while let Some(slot) = self.fresh.pop() {
            let r = &mut self.sequences[slot];
            if !r.done && r.computed > 0 {
                let tokens = r.computed.min(r.known());
                self.store(slot, tokens);
            }
        }
    }

    /// It is called at this time.
    pub(crate) fn at(&mut self, now: Ns) {
        self.now = now;
    }

    /// The first tokens of a request can be found from now on.
    fn store(&mut self, slot: u32, tokens: u32) {
        let r = &mut self.sequences[slot];
        self.blocks.store(&mut r.held, r.place, tokens);
        if let (Some(_), Some(below)) = (&self.tiers, &r.below) {
            for at in 0..tokens / self.settings.tokens_per_block {
                let Some((block, key)) = Blocks::number(&r.held[0], at).zip(Tiers::key(below, at)) else { break };
                self.keys.resize(self.keys.len().max(block as usize + 1), 0);
                self.keys[block as usize] = key;
            }
        }
    }

    /// What gave way on the chip moves down.
    fn move_down(&mut self) {
        let Some(tiers) = &mut self.tiers else { return };
        self.blocks.gone(|block| tiers.give_way(block.map(|block| self.keys[block as usize])));
    }

    /// Tokens of a request after those found that the host has.
    fn below(&mut self, slot: u32, found: u32) -> u32 {
        let r = &self.sequences[slot];
        let (Some(tiers), Some(below)) = (&mut self.tiers, &r.below) else { return 0 };
        let size = self.settings.tokens_per_block;
        tiers.find(below, found / size, (r.known() - 1) / size) * size
    }

    /// What the host has of a request that starts moves up, behind what is found now; how much is before what it computes.
    fn move_up(&mut self, slot: u32, found: u32, before: u32) -> u32 {
        let size = self.settings.tokens_per_block;
        let tokens = self.below(slot, found).min(before - found);
        let r = &mut self.sequences[slot];
        let (Some(tiers), Some(below)) = (&mut self.tiers, &mut r.below) else { return found };
        if tokens > 0 {
            let until = tiers.move_up(self.now, below, found / size, tokens / size);
            self.decision.loads.start = self.decision.loads.start.max(until);
            if r.first_scheduled == Ns::MAX {
                below.fetched += tokens;
            }
            self.blocks.grow(&mut r.held, r.prompt + r.sampled);
            // Before anything is stored: a block that gave way may be numbered anew.
            self.move_down();
            self.store(slot, found + tokens);
        }
        found + tokens
    }

    /// Its last token is under way.
    fn ends(r: &Sequence) -> bool {
        r.sampled + r.pending >= r.output
    }

    /// A resident as a candidate; none if its last token is under way.
    fn resident(&mut self, slot: u32) -> Option<Candidate> {
        let r = &self.sequences[slot];
        if Self::ends(r) {
            return None;
        }
        let (before, rest) = (r.computed, if r.settled { 0 } else { r.known() - r.computed });
        if rest > 0 && self.settings.enable_block_reuse {
            let (place, known) = (r.place, r.known());
            let found = self.blocks.find(place, known - 1);
            self.contributed.extend(self.blocks.next(place, found));
        }
        Some(Candidate { slot, found: 0, before, rest, tokens: 0, new: false })
    }

    /// Who waits, as a candidate; none if it is better put off: its first missing block is being computed, or its token is
    /// under way.
    fn newcomer(&mut self, slot: u32) -> Option<Candidate> {
        let r = &self.sequences[slot];
        if r.pending > 0 {
            return None;
        }
        let (place, known) = (r.place, r.known());
        let brought = r.brought;
        let found = self.blocks.find(place, known - 1);
        let before = if brought > 0 { found.max(brought) } else { found + self.below(slot, found) };
        if let Some(block) = self.blocks.next(place, before).filter(|_| self.settings.enable_block_reuse) {
            if self.contributed.contains(&block) {
                return None;
            }
            self.contributed.push(block);
        }
        Some(Candidate { slot, found, before, rest: known - before, tokens: 0, new: true })
    }

    /// Residents, decodes first, and newcomers whose blocks to the end fit beside theirs.
    fn guarantee(&mut self) {
        self.contributed.clear();
        let size = self.settings.tokens_per_block;
        let mut left = i64::from(self.blocks.free());
        for decodes in [true, false] {
            for at in 0..self.running.len() {
                let slot = self.running[at];
                let r = &self.sequences[slot];
                if r.settled != decodes {
                    continue;
                }
                left -= i64::from(self.blocks.missing(&r.held, r.prompt + r.output));
                let candidate = self.resident(slot);
                self.candidates.extend(candidate);
            }
        }
        if self.settings.capacity == Capacity::StaticBatch && !self.running.is_empty() {
            return;
        }
        let Some(mut budget) = self.rest() else { return };
        let mut inside = self.running.len();
        for at in 0..self.waiting.len() {
            if inside >= self.settings.max_batch_size as usize {
                return;
            }
            let slot = self.waiting[at];
            let r = &self.sequences[slot];
            let whole = i64::from((r.prompt + r.output).div_ceil(size));
            // Nobody is put off while no block is being computed: who does not fit need not be looked for in the cache, block
            // by block, at every step until it does.
            if left < whole && self.contributed.is_empty() && r.pending == 0 && !self.thorough {
                return;
            }
            let Some(candidate) = self.newcomer(slot) else { continue };
            left -= whole;
            if left < 0 {
                return;
            }
            inside += 1;
            let first = self.candidates.is_empty();
            self.candidates.push(candidate);
            if !self.leaves(&mut budget, &candidate, first) {
                return;
            }
        }
    }

    /// Tokens of a step that the candidates leave to those behind them; none where they cannot be given any.
    fn rest(&self) -> Option<u32> {
        let mut budget = self.settings.max_num_tokens;
        let all = || self.candidates.iter().enumerate();
        let mut leaves = |(at, c): (usize, &Candidate)| self.leaves(&mut budget, c, at == 0);
        let left = match self.settings.chunking {
            None => all().all(leaves),
            // Where prompts are cut, decodes go first.
            Some(_) => all().filter(|c| c.1.rest == 0).all(&mut leaves) && all().filter(|c| c.1.rest > 0).all(leaves),
        };
        left.then_some(budget)
    }

    /// Takes from the tokens of a step what [`Self::whole`] or [`Self::cut`] will give a candidate, all before it served;
    /// false where nobody behind it can be given any, and need not be looked for.
    fn leaves(&self, budget: &mut u32, c: &Candidate, first: bool) -> bool {
        let unit = self.settings.tokens_per_block;
        let n = match self.settings.chunking {
            None if c.rest.max(1) > *budget && !(first && c.rest > 0) => return self.thorough,
            None => c.rest.max(1).min(*budget),
            Some(Chunking::FirstComeFirstServed) if c.rest.max(1) <= *budget => c.rest.max(1),
            Some(Chunking::FirstComeFirstServed) => *budget / unit * unit,
            // Turns go round until nobody fits.
            Some(Chunking::EqualProgress) => 0,
        };
        *budget -= n;
        *budget > 0 || self.thorough
    }

    /// Everybody in order of arrival whose next step fits; if one does not, the last started pauses.
    fn utilize(&mut self) {
        self.contributed.clear();
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        let key = |s: &Self, slot: u32| (s.sequences[slot].arrival, s.sequences[slot].rank);
        let (mut a, mut b) = (0, 0);
        while a < self.running.len() || b < self.waiting.len() {
            let first = b == self.waiting.len()
                || (a < self.running.len() && key(self, self.running[a]) <= key(self, self.waiting[b]));
            if first {
                order.push(self.running[a]);
                a += 1;
            } else if a == self.running.len() && order.len() > 2 * self.settings.max_batch_size as usize {
                break;
            } else {
                order.push(self.waiting[b]);
                b += 1;
            }
        }
        let (mut at, mut taken) = (0, 0);
        // From where on nobody has started: nobody there makes others pause.
        let mut tail = self.tail(&order);
        let mut budget = None;
        while at < order.len() && self.candidates.len() < self.settings.max_batch_size as usize {
            if at >= tail && budget.is_none() {
                budget = self.rest();
                if budget.is_none() {
                    break;
                }
            }
            let slot = order[at];
            let inside = self.sequences[slot].computed > 0;
            let candidate = if inside { self.resident(slot) } else { self.newcomer(slot) };
            let Some(candidate) = candidate else {
                at += 1;
                continue;
            };
            let need = self.need(&candidate);
            if taken + need <= self.blocks.free() {
                taken += need;
                let first = self.candidates.is_empty();
                self.candidates.push(candidate);
                if budget.as_mut().is_some_and(|budget| !self.leaves(budget, &candidate, first)) {
                    break;
                }
                at += 1;
                continue;
            }
            let started = |slot: &u32| self.sequences[*slot].computed > 0;
            let Some(last) = order[at..].iter().rposition(started) else { break };
            self.pause(order[at + last]);
            order.truncate(at + last);
            tail = self.tail(&order);
            // What others found may have been held by it alone.
            let candidates = std::mem::take(&mut self.candidates);
            taken = candidates.iter().map(|c| self.need(c)).sum();
            self.candidates = candidates;
        }
        self.order = order;
    }

    /// How many of an order come before those of whom none has started.
    fn tail(&self, order: &[u32]) -> usize {
        order.iter().rposition(|slot| self.sequences[*slot].computed > 0).map_or(0, |at| at + 1)
    }

    /// Blocks that a candidate takes of those that are free.
    fn need(&mut self, c: &Candidate) -> u32 {
        let r = &self.sequences[c.slot];
        match (c.new, c.rest) {
            (true, _) => {
                self.blocks.find(r.place, c.found);
                self.blocks.needed(r.known(), c.found, None)
            }
            (false, 0) => self.blocks.missing(&r.held, c.before + 1),
            (false, _) => 0,
        }
    }

    fn pause(&mut self, slot: u32) {
        let r = &mut self.sequences[slot];
        let tokens = r.computed.min(r.known());
        self.store(slot, tokens);
        let r = &mut self.sequences[slot];
        self.blocks.release_all(&mut r.held);
        (r.computed, r.settled, r.brought) = (0, false, 0);
        r.preempted += 1;
        let key = (r.arrival, r.rank);
        self.running.retain(|s| *s != slot);
        let sequences = &self.sequences;
        let at = self.waiting.partition_point(|s| {
            let r = &sequences[*s];
            (r.arrival, r.rank) < key
        });
        self.waiting.insert(at, slot);
        self.decision.preempted.push(slot);
    }

    /// What fits in a step when prompts are not cut.
    fn whole(&mut self) {
        let mut budget = self.settings.max_num_tokens;
        for (taken, c) in self.candidates.iter_mut().enumerate() {
            let tokens = c.rest.max(1);
            let alone = taken == 0 && c.rest > 0;
            if (tokens > budget && !alone) || taken == self.settings.max_batch_size as usize {
                break;
            }
            c.tokens = tokens;
            budget = budget.saturating_sub(tokens);
        }
    }

    /// What fits in a step when prompts are: decodes first.
    fn cut(&mut self, how: Chunking) {
        let unit = self.settings.tokens_per_block;
        let mut budget = self.settings.max_num_tokens;
        for c in self.candidates.iter_mut().filter(|c| c.rest == 0) {
            c.tokens = budget.min(1);
            budget -= c.tokens;
        }
        let prompts = || self.candidates.iter().filter(|c| c.rest > 0);
        if prompts().map(|c| u64::from(c.rest)).sum::<u64>() <= u64::from(budget) {
            self.candidates.iter_mut().filter(|c| c.rest > 0).for_each(|c| c.tokens = c.rest);
            return;
        }
        match how {
            Chunking::FirstComeFirstServed => {
                for c in self.candidates.iter_mut().filter(|c| c.rest > 0) {
                    c.tokens = if c.rest <= budget { c.rest } else { budget / unit * unit };
                    budget -= c.tokens;
                }
            }
            Chunking::EqualProgress => {
                let mut more = true;
                while more && budget > 0 {
                    more = false;
                    for c in self.candidates.iter_mut().filter(|c| c.rest > c.tokens) {
                        let n = unit.min(c.rest - c.tokens);
                        if n <= budget {
                            (c.tokens, budget, more) = (c.tokens + n, budget - n, true);
                        }
                    }
                }
            }
        }
    }

    /// Newcomers take what was found, then all take what they need.
    fn start(&mut self) {
        for at in 0..self.candidates.len() {
            let Candidate { slot, found, before, new, .. } = self.candidates[at];
            if !new || self.candidates[at].tokens == 0 {
                continue;
            }
            let r = &mut self.sequences[slot];
            // Nothing was taken since it was found, but by what moved up; a pause may have stored more.
            let below = self.tiers.is_some() && r.brought == 0;
            let found = self.blocks.find(r.place, if below { before } else { found });
            self.blocks.admit(&mut r.held, found);
            let had = if below { self.move_up(slot, found, before) } else { before };
            let c = &mut self.candidates[at];
            c.tokens += if c.tokens == c.rest { before - had } else { 0 };
            (c.rest, c.before) = (c.rest + (before - had), had);
            let r = &mut self.sequences[slot];
            r.computed = had;
            if found > 0 {
                self.decision.hits.push((slot, found));
            }
            let key = (r.arrival, r.rank);
            let sequences = &self.sequences;
            let place = self.running.partition_point(|s| {
                let r = &sequences[*s];
                (r.arrival, r.rank) < key
            });
            self.running.insert(place, slot);
            if let Some(at) = self.waiting.iter().position(|s| *s == slot) {
                self.waiting.remove(at);
            }
        }
        for at in 0..self.candidates.len() {
            let Candidate { slot, before, rest, tokens, new, .. } = self.candidates[at];
            if tokens == 0 {
                continue;
            }
            let r = &mut self.sequences[slot];
            let whole = if rest > 0 { r.known() } else { before + 1 };
            self.blocks.grow(&mut r.held, whole);
            let decodes = r.settled;
            self.decision.shares.push(Share {
                slot,
                tokens,
                before,
                drafts: 0,
                samples: false,
                decodes,
                admitted: new,
            });
        }
    }

    /// Most steps of decodes that can be taken at once; none where the next may be another.
    pub(super) fn glides(&self) -> Option<u32> {
        let s = &self.settings;
        // What a step with prompts leaves behind is put in order first.
        let settled = self.waiting.is_empty()
            && self.fresh.is_empty()
            && self.running.len() <= s.max_batch_size.min(s.max_num_tokens) as usize;
        let residents = || self.running.iter().map(|slot| &self.sequences[*slot]);
        if !settled || residents().any(|r| !r.settled) {
            return None;
        }
        let blocks = |steps: u32| residents().map(|r| self.blocks.missing(&r.held, r.computed + steps)).sum::<u32>();
        let left = residents().map(|r| r.output.saturating_sub(r.sampled + r.pending)).min()?;
        if blocks(left) <= self.blocks.free() {
            return Some(left).filter(|steps| *steps > 0);
        }
        let (mut low, mut high) = (0, left);
        while high - low > 1 {
            let middle = u32::midpoint(low, high);
            if blocks(middle) <= self.blocks.free() { low = middle } else { high = middle }
        }
        Some(low).filter(|steps| *steps > 0)
    }

    /// Room is taken for so many steps of decodes.
    pub(super) fn pass(&mut self, steps: u32) {
        for slot in &self.running {
            let r = &mut self.sequences[*slot];
            self.blocks.grow(&mut r.held, r.computed + steps);
        }
        self.move_down();
    }

    /// Gives a request the token of a step.
    pub fn receive(&mut self, share: &Share, _accepted: u32) -> Received {
        let slot = share.slot;
        self.sequences.lands(slot);
        let r = &mut self.sequences[slot];
        if r.done || !share.samples {
            return Received::default();
        }
        r.sampled += 1;
        r.pending -= 1;
        let finished = r.sampled >= r.output;
        if finished {
            self.end(slot);
        }
        Received { tokens: 1, finished }
    }

    /// A request is done, or its client is gone, and it leaves.
    pub(crate) fn end(&mut self, slot: u32) {
        let r = &mut self.sequences[slot];
        r.done = true;
        if !r.kept {
            self.let_go(slot);
        }
        self.fresh.retain(|s| *s != slot);
        // Its last token may have been under way when it was paused.
        if !taken_out(&mut self.running, slot) {
            self.waiting.retain(|s| *s != slot);
        }
    }

    /// Gives back the blocks of a request that has ended; what they hold can be found.
    pub(crate) fn let_go(&mut self, slot: u32) {
        let r = &mut self.sequences[slot];
        if r.computed > 0 {
            let tokens = r.computed.min(r.known() - 1);
            self.store(slot, tokens);
        }
        let r = &mut self.sequences[slot];
        self.blocks.release_all(&mut r.held);
        self.blocks.leave(r.place);
        self.sequences.leaves(slot);
    }
}

#[cfg(test)]
mod tests;
