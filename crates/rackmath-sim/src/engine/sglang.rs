//! SGLang's scheduler: prompts go first and alone, decodes wait for them, the least advanced gives way.
//!
//! Read from SGLang's main branch of August 2026 (`managers/scheduler.py`, `schedule_policy.py`, `schedule_batch.py`,
//! `mem_cache/radix_cache.py`); not compared with the engine itself. Pages are single tokens. What differs: an engine that
//! cannot hold even one request gives it up, here it waits; the token under way of a retracted request is kept.

mod hicache;

use super::{Decision, Received, Sequence, Share, Slots, taken_out};
use crate::Ns;
use crate::radix::{Hold, Radix};
pub use hicache::{HiCache, PrefetchPolicy, WritePolicy};
use rackmath_spec::engine::Reckoning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Who of those that wait goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Who came first.
    Fcfs,
    /// Who finds the longest prefix in the cache.
    Lpm,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// None: prompts are not cut.
    pub chunked_prefill_size: Option<u32>,
    pub max_prefill_tokens: u32,
    pub max_running_requests: u32,
    /// Tokens of the cache.
    pub max_total_tokens: u32,
    pub context_length: u32,
    pub enable_mixed_chunk: bool,
    pub disable_radix_cache: bool,
    pub schedule_policy: Policy,
    pub schedule_conservativeness: f64,
    pub disable_overlap_schedule: bool,
    /// Steps of decodes between two with prompts.
    pub prefill_decode_interval: u32,
    /// Steps of decodes between two looks at what has come.
    pub scheduler_recv_interval: u32,
    pub reckoning: Reckoning,
    /// Memory below the chip's own; none without.
    pub hicache: Option<HiCache>,
}

impl Settings {
    /// As it starts, for an engine that reckons so.
    pub fn new(reckoning: Reckoning) -> Self {
        Self {
            chunked_prefill_size: Some(8192),
            max_prefill_tokens: 16_384,
            max_running_requests: 1024,
            max_total_tokens: 65_536,
            context_length: 131_072,
            enable_mixed_chunk: false,
            disable_radix_cache: false,
            schedule_policy: Policy::Fcfs,
            schedule_conservativeness: 1.0,
            disable_overlap_schedule: false,
            prefill_decode_interval: 0,
            scheduler_recv_interval: 1,
            reckoning,
            hicache: None,
        }
    }

    /// Most tokens of a prompt and its answer.
    pub fn longest(&self) -> u32 {
        self.context_length.min(self.max_total_tokens.saturating_sub(2))
    }
}

#[derive(Clone, Debug)]
pub struct Scheduler {
    pub settings: Settings,
    pub blocks: Radix,
    pub sequences: Slots,
    holds: Vec<Hold>,
    pub(super) running: Vec<u32>,
    /// The batch of the last step with prompts.
    last: Vec<u32>,
    /// The one request whose prompt is cut.
    chunked: Option<u32>,
    waiting: VecDeque<u32>,
    /// Came and was not looked at.
    inbox: VecDeque<u32>,
    looks: u32,
    /// What the last step counts as, for looks.
    weight: u32,
    /// No prompt is tried until a request leaves.
    full: bool,
    /// Ended, and not yet dropped from the batch.
    ghosts: u32,
    ratio: f64,
    /// Steps of decodes that are due before the next with prompts.
    owed: u32,
    /// Prefixes of those that wait, while they are sorted.
    queue: Radix,
    keys: Vec<(u32, u32)>,
    pub decision: Decision,
    /// When it is called.
    now: Ns,
}

/// What a batch of prompts may still take.
struct Room {
    chunk: i64,
    input: i64,
    /// Tokens that running requests and this batch are reckoned to take; those it takes at once.
    reckoned: f64,
    now: i64,
}

impl Room {
    fn takes(&mut self, tokens: u32, later: u32) {
        let n = i64::from(tokens);
        self.reckoned += f64::from(tokens) + f64::from(later);
        (self.now, self.chunk, self.input) = (self.now + n, self.chunk - n, self.input - n);
    }
}

impl Scheduler {
    pub fn new(settings: Settings) -> Self {
        let mut blocks = Radix::new(settings.max_total_tokens, !settings.disable_radix_cache);
        if let Some(h) = settings.hicache.as_ref().filter(|h| h.host.blocks > 0) {
            blocks = h.under(blocks);
        }
        let mut all = Self {
            blocks,
            sequences: Slots::new(0),
            holds: Vec::new(),
            running: Vec::new(),
            last: Vec::new(),
            chunked: None,
            waiting: VecDeque::new(),
            inbox: VecDeque::new(),
            looks: 0,
            weight: settings.reckoning.prompt_looks,
            full: false,
            ghosts: 0,
            ratio: 0.0,
            owed: 0,
            queue: Radix::new(u32::MAX, true),
            keys: Vec::new(),
            decision: Decision::default(),
            now: 0,
            settings,
        };
        all.ratio = all.ratios().0;
        all
    }

    /// The first ratio and the last.
    fn ratios(&self) -> (f64, f64) {
        let r = &self.settings.reckoning;
        let first = (r.share_first * self.settings.schedule_conservativeness).min(1.0);
        (first, first * r.share_last)
    }

    pub fn running(&self) -> usize {
        let apart = self.chunked.is_some_and(|slot| !self.last.contains(&slot));
        self.running.len() + self.last.len() + usize::from(apart)
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len() + self.inbox.len()
    }

    /// The share of answers to come that is reckoned with.
    pub fn ratio(&self) -> f64 {
        self.ratio
    }

    /// A request arrives and waits.
    pub fn add(&mut self, sequence: Sequence) -> u32 {
        let slot = self.sequences.add(sequence);
        self.holds.resize(self.holds.len().max(slot as usize + 1), Hold::default());
        self.holds[slot as usize] = Hold::default();
        self.inbox.push_back(slot);
        slot
    }

    /// Tokens that requests hold, counted one by one.
    pub fn held(&self) -> u32 {
        self.blocks.held(&self.holds)
    }

    /// A call with nothing to do.
    pub fn rest(&mut self) {
        (self.full, self.ghosts, self.owed, self.looks) = (false, 0, 0, 0);
        (self.ratio, self.weight) = (self.ratios().0, self.settings.reckoning.prompt_looks);
    }

    /// Chooses the next step into [`Self::decision`].
    pub fn schedule(&mut self) {
        self.decision.clear();
        self.look();
        self.merge();
        self.bring();
        if !self.prefill() && self.decode() && self.decision.shares.is_empty() {
            // What was in the way is gone.
            self.prefill();
        }
        for share in &mut self.decision.shares {
            let r = &mut self.sequences[share.slot];
            r.computed += share.tokens;
            r.flying += 1;
            // Overlap gives a step too many to whoever ends.
            share.samples = r.computed >= r.known() + r.pending && r.sampled + r.pending < r.output;
            r.settled |= share.samples;
            r.pending += u32::from(share.samples);
        }
    }

    /// Takes in what has come, if it is time to look.
    fn look(&mut self) {
        self.looks = self.looks.saturating_add(self.weight);
        let idle = self.running() == 0 && self.waiting.is_empty();
        if self.looks >= self.settings.scheduler_recv_interval || idle {
            self.looks = 0;
            if self.settings.hicache.is_some() {
                for at in 0..self.inbox.len() {
                    self.prefetch(self.inbox[at]);
                }
            }
            self.waiting.append(&mut self.inbox);
        }
    }

    /// It is called at this time.
    pub(crate) fn at(&mut self, now: Ns) {
        self.now = now;
    }

    /// The last batch of prompts decodes from now on, but for the one that is cut.
    fn merge(&mut self) {
        if let Some(slot) = self.chunked {
            self.store(slot, self.sequences[slot].computed, true);
        }
        let mut last = std::mem::take(&mut self.last);
        self.running.extend(last.drain(..).filter(|slot| Some(*slot) != self.chunked));
        self.last = last;
        if self.running.is_empty() {
            (self.full, self.ghosts) = (false, 0);
        }
    }

    /// Those first in line whose prompts came computed decode from now on.
    fn bring(&mut self) {
        while let Some(slot) = self.waiting.front().copied() {
            let r = &self.sequences[slot];
            let places = self.settings.max_running_requests as usize;
            if r.brought == 0 || r.pending > 0 || self.running.len() + self.ghosts as usize >= places {
                return;
            }
            let tokens = r.known() - 1;
            if !self.has_room(r) || !self.blocks.make_room(tokens) {
                return;
            }
            self.waiting.pop_front();
            self.blocks.take(&mut self.holds[slot as usize], tokens);
            self.sequences[slot].computed = tokens;
            self.running.push(slot);
        }
    }

    /// Whether a prompt that came computed may take its room: as much as is kept for an answer stays for it and for each that
    /// runs, and so much that any of them could end if the others were taken out. Alone it needs no more than its own.
    fn has_room(&self, r: &Sequence) -> bool {
        let clip = self.settings.reckoning.answer_tokens;
        let kept = i64::from(self.settings.reckoning.handed_tokens);
        let inside = || self.running.iter().map(|slot| &self.sequences[*slot]);
        let known: i64 = inside().map(|r| i64::from(r.known())).sum();
        let whole = |r: &Sequence| i64::from(r.prompt) + i64::from(r.output.min(clip)) - known;
        let taken = inside().map(whole).max().unwrap_or(0).max(kept * self.running.len() as i64);
        let alone = self.running.is_empty() && self.last.is_empty();
        let need = whole(r).max(i64::from(r.known() - 1) + if alone { 0 } else { kept });
        need <= i64::from(self.blocks.free()) - taken
    }

    fn store(&mut self, slot: u32, tokens: u32, chunk: bool) {
        let r = &mut self.sequences[slot];
        self.blocks.store(&mut self.holds[slot as usize], r.place, r.id, tokens, chunk);
        if let Some(below) = &mut r.below {
            self.blocks.write_down(below);
        }
    }

    fn available(&self, room: &Room) -> f64 {
        f64::from(self.blocks.free()) - room.reckoned
    }

    /// Tokens that a request may still sample, as reckoned with.
    fn to_come(&self, r: &Sequence) -> u32 {
        (r.output - r.sampled.min(r.output)).min(self.settings.reckoning.answer_tokens)
    }

    /// A step with prompts; false when there is none.
    fn prefill(&mut self) -> bool {
        let nothing = (self.full || self.waiting.is_empty()) && self.chunked.is_none();
        if nothing || (self.owed > 0 && !self.running.is_empty()) {
            return false;
        }
        let inside = self.running.len() as u32 + self.ghosts;
        let places = self.settings.max_running_requests.saturating_sub(inside) as usize;
        if places == 0 && self.chunked.is_none() {
            self.full = true;
            return false;
        }
        self.sort();
        let decodes = if self.settings.enable_mixed_chunk { self.running.len() as i64 } else { 0 };
        let coming = self.running.iter().map(|s| f64::from(self.to_come(&self.sequences[*s])) * self.ratio);
        let mut room = Room {
            chunk: self.settings.chunked_prefill_size.map_or(i64::from(u32::MAX), i64::from) - decodes,
            input: i64::from(self.settings.max_prefill_tokens) - decodes,
            reckoned: decodes as f64 + coming.sum::<f64>(),
            now: decodes,
        };
        if room.chunk <= 0 {
            return false;
        }
        self.go_on(&mut room);
        self.admit(&mut room, places);
        if self.decision.shares.is_empty() {
            return false;
        }
        self.start(decodes > 0);
        true
    }

    fn give(&mut self, slot: u32, tokens: u32, before: u32, admitted: bool) {
        let decodes = self.sequences[slot].settled;
        self.decision.shares.push(Share { slot, tokens, before, drafts: 0, samples: false, decodes, admitted });
    }

    /// The next chunk of the request whose prompt is cut.
    fn go_on(&mut self, room: &mut Room) {
        let Some(slot) = self.chunked else { return };
        let r = &self.sequences[slot];
        let (rest, before, later) =
            (r.known() - r.computed, r.computed, r.output.min(self.settings.reckoning.answer_tokens));
        let most = room.chunk.min(self.available(room) as i64);
        let most = if most <= 0 { room.chunk } else { most }.min(i64::from(self.blocks.free()));
        let n = i64::from(rest).min(most) as u32;
        if n == 0 {
            return;
        }
        self.give(slot, n, before, false);
        room.takes(n, if n < rest { 0 } else { later });
        if n == rest {
            self.chunked = None;
        }
    }

    fn admit(&mut self, room: &mut Room, places: usize) {
        let mut at = 0;
        while at < self.waiting.len() {
            if self.decision.shares.len() >= places {
                self.full = true;
            }
            if self.full {
                return;
            }
            let slot = self.waiting[at];
            let r = &self.sequences[slot];
            // Its token under way comes first; a prompt that came computed is not computed.
            if r.pending > 0 || r.brought > 0 || self.awaits(slot) {
                at += 1;
                continue;
            }
            let r = &self.sequences[slot];
            let (known, later) = (r.known(), self.to_come(r));
            let (mut node, mut found) = self.blocks.find(r.place, r.id, known - 1);
            self.blocks.lock(node);
            let short = f64::from(known - found) + f64::from(later) + 1.0 >= self.available(room);
            let input = i64::from(known - found - self.blocks.deep());
            if !short
                && (input < room.input || self.decision.shares.is_empty())
                && let Some((last, tokens)) = self.load(slot, node)
            {
                (node, found) = (last, found + tokens);
            }
            let rest = known - found;
            let whole = i64::from(rest) <= room.chunk;
            let n = if whole { rest } else { room.chunk.max(0) as u32 };
            let many = i64::from(rest) >= room.input && !self.decision.shares.is_empty();
            if short || many || n == 0 || (!whole && self.chunked.is_some()) {
                self.full |= short;
                self.blocks.unlock(node);
                return;
            }
            self.blocks.begin(&mut self.holds[slot as usize], node, found);
            self.waiting.remove(at);
            let r = &mut self.sequences[slot];
            r.computed = found;
            if let Some(below) = r.below.as_mut().filter(|_| r.first_scheduled == Ns::MAX) {
                // What was loaded before it was let in may be gone.
                below.fetched = below.fetched.min(found);
            }
            if found > 0 {
                self.decision.hits.push((slot, found));
            }
            self.give(slot, n, found, true);
            room.takes(n, if whole { later } else { 0 });
            if !whole {
                self.chunked = Some(slot);
            }
            if self.available(room) <= 0.0 || i64::from(self.blocks.free()) <= room.now {
                self.full = true;
                return;
            }
            if room.input <= 0 || room.chunk <= 0 {
                return;
            }
        }
    }

    /// The chosen prompts take their tokens of the cache, and with `mixed` the decodes theirs.
    fn start(&mut self, mixed: bool) {
        let total = self.decision.shares.iter().map(|s| s.tokens).sum::<u32>();
        self.blocks.make_room(total);
        for at in 0..self.decision.shares.len() {
            let Share { slot, tokens, .. } = self.decision.shares[at];
            self.blocks.take(&mut self.holds[slot as usize], tokens);
            self.last.push(slot);
        }
        (self.weight, self.owed) = (self.settings.reckoning.prompt_looks, self.settings.prefill_decode_interval);
        if mixed && self.blocks.make_room(self.running.len() as u32) {
            self.full &= self.ghosts == 0;
            self.ghosts = 0;
            self.run();
            self.last.append(&mut self.running);
        }
    }

    /// One token for each that runs.
    fn run(&mut self) {
        for at in 0..self.running.len() {
            let slot = self.running[at];
            self.blocks.take(&mut self.holds[slot as usize], 1);
            self.give(slot, 1, self.sequences[slot].computed, false);
        }
    }

    /// A step of decodes; true when prompts may be tried that could not before.
    fn decode(&mut self) -> bool {
        let mut lifted = self.ghosts > 0;
        if lifted {
            (self.ghosts, self.full) = (0, false);
        }
        self.owed = self.owed.saturating_sub(1);
        if self.running.is_empty() {
            return lifted;
        }
        if self.blocks.make_room(self.running.len() as u32) {
            self.decay();
        } else {
            self.retract();
            lifted = true;
        }
        self.weight = 1;
        self.run();
        lifted
    }

    /// Most steps of decodes that can be taken at once; none where the next may be another.
    pub(super) fn glides(&self) -> Option<u32> {
        // What a step with prompts leaves behind is put in order first.
        let settled = self.last.is_empty() && self.chunked.is_none() && self.weight == 1 && self.waiting() == 0;
        let left = |slot: &u32| {
            let r = &self.sequences[*slot];
            let most = r.output.min(self.settings.context_length.saturating_sub(r.prompt));
            most.saturating_sub(r.sampled + r.pending)
        };
        let left = self.running.iter().filter(|_| settled).map(left).min()?;
        Some(left.min(self.blocks.spare() / self.running.len() as u32)).filter(|steps| *steps > 0)
    }

    /// Room is taken for so many steps of decodes.
    pub(super) fn pass(&mut self, steps: u32) {
        for slot in &self.running {
            self.blocks.take(&mut self.holds[*slot as usize], steps);
        }
        if self.ghosts > 0 {
            (self.ghosts, self.full) = (0, false);
        }
        self.owed = self.owed.saturating_sub(steps);
        self.looks = (self.looks + steps) % self.settings.scheduler_recv_interval.max(1);
        for _ in 0..steps {
            let before = self.ratio;
            self.decay();
            if self.ratio >= before {
                break;
            }
        }
    }

    /// A step of decodes that had room.
    fn decay(&mut self) {
        let (first, last) = self.ratios();
        self.ratio = (self.ratio - (first - last) / self.settings.reckoning.share_steps).max(last);
    }

    /// Takes requests out of the batch until one token each fits: those with the most output stay, then the shortest prompts.
    fn retract(&mut self) {
        let sequences = &self.sequences;
        self.running.sort_by_key(|slot| {
            let r = &sequences[*slot];
            (std::cmp::Reverse(r.sampled), r.prompt)
        });
        while let Some(slot) = self.running.pop() {
            let r = &mut self.sequences[slot];
            let hold = &mut self.holds[slot as usize];
            self.blocks.give_back(hold, u32::MAX);
            self.blocks.let_go(hold);
            (r.computed, r.settled, r.brought) = (0, false, 0);
            r.preempted += 1;
            self.waiting.push_back(slot);
            self.decision.preempted.push(slot);
            let left = self.running.len() as u32;
            self.blocks.make_room(left * self.settings.reckoning.steps_after);
            if self.blocks.make_room(left) {
                break;
            }
        }
        self.full = false;
        let of =
            |what: fn(&Sequence) -> u32| self.running.iter().map(|s| f64::from(what(&self.sequences[*s]))).sum::<f64>();
        let ahead = f64::from(self.settings.reckoning.steps_after) * self.running.len() as f64;
        self.ratio = ((of(|r| r.sampled) + ahead) / (of(|r| r.output) + 1.0)).min(1.0);
    }

    /// Those that wait in the order of the policy.
    fn sort(&mut self) {
        if self.settings.schedule_policy == Policy::Fcfs
            || self.waiting.len() > self.settings.reckoning.sorted_requests as usize
        {
            return;
        }
        let common = self.settings.reckoning.common_tokens;
        self.keys.clear();
        self.queue.clear();
        for slot in &self.waiting {
            let r = &self.sequences[*slot];
            let most = r.known() - 1;
            let (_, found) = self.blocks.find(r.place, r.id, most);
            let mut key = u32::MAX - found;
            if found <= common {
                let text = self.blocks.text(r.place, r.id, most);
                if self.queue.enter(text, common) >= common {
                    key = u32::MAX;
                }
            }
            self.keys.push((key, *slot));
        }
        self.keys.sort_by_key(|k| k.0);
        self.waiting.clear();
        self.waiting.extend(self.keys.iter().map(|k| k.1));
    }

    /// Gives a request the token of a step.
    pub fn receive(&mut self, share: &Share, _accepted: u32) -> Received {
        let slot = share.slot;
        if self.sequences.lands(slot) {
            self.blocks.give_back(&mut self.holds[slot as usize], u32::MAX);
        }
        let r = &mut self.sequences[slot];
        // It may have ended while this was under way.
        if r.done || !share.samples {
            return Received::default();
        }
        r.sampled += 1;
        r.pending -= 1;
        let finished = r.sampled >= r.output || r.known() >= self.settings.context_length;
        let inside = r.computed > 0;
        if finished {
            self.end(slot);
        } else if inside && !share.decodes {
            self.store(slot, share.before + share.tokens, false);
        }
        Received { tokens: 1, finished }
    }

    /// A request is done, or its client is gone, and it leaves.
    pub(crate) fn end(&mut self, slot: u32) {
        let r = &mut self.sequences[slot];
        r.done = true;
        if let (Some(below), Some(tiers)) = (r.below.as_mut().filter(|b| b.coming.is_some()), self.blocks.tiers_mut()) {
            tiers.stop(below, r.id, self.now);
            below.coming = None;
        }
        if !r.kept {
            self.let_go(slot);
        }
        if self.chunked == Some(slot) {
            self.chunked = None;
        }
        if taken_out(&mut self.running, slot) {
            self.ghosts += 1;
        } else if taken_out(&mut self.last, slot) {
            self.full = false;
        } else {
            self.waiting.retain(|s| *s != slot);
            self.inbox.retain(|s| *s != slot);
        }
    }

    /// The tokens of a request that has ended enter the tree, and it lets go of them.
    pub(crate) fn let_go(&mut self, slot: u32) {
        let r = &self.sequences[slot];
        let (computed, known) = (r.computed, r.known());
        if computed > 0 {
            // The last token was never computed with.
            let stored = computed.min(known - 1);
            self.store(slot, stored, false);
            let hold = &mut self.holds[slot as usize];
            if self.settings.disable_radix_cache {
                self.blocks.give_back(hold, stored);
            }
            self.blocks.let_go(hold);
        }
        self.blocks.leave(self.sequences[slot].place);
        if self.sequences.leaves(slot) {
            self.blocks.give_back(&mut self.holds[slot as usize], u32::MAX);
        }
    }
}
