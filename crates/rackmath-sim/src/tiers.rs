//! Memory below a chip's own that keeps blocks of the cache: host, disk, remote.
//!
//! What is computed is written down to every tier as it is computed, and each tier forgets what was looked at least recently
//! when it is full. A prompt's blocks that are not in the chip's memory are looked for tier by tier, from the first missing on
//! as long as each is found somewhere; what is found is fetched, each block from the nearest tier that has it, over the links
//! from there up:
//!
//! $$ e_i = \max(e_{i+1},\ f_i) + l_i + n\,b / r_i $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | e_i, f_i | end, free | ns | when n blocks are over link i; when the link is free |
//! | l_i, b / r_i | latency, block | ns | latency of a link; bytes of a block over its rate, in 2^-20 ns |
//!
//! A link carries one fetch after the other. What is fetched is kept in the tiers it passes.
//! Assumes: the engine fetches whatever it finds, as vLLM's connector does; it does not ask whether computing were quicker.
//! SGLang keeps the host's part in its own tree ([`crate::radix`]) and TensorRT-LLM moves a block that gives way in the chip's
//! memory down, and up again when it is found (`Tiers::give_way`, `Tiers::move_up`); what a link carries counts here alike.
//! Ignores: time and links that writing takes (the other direction of the link); that a block is written a little after it is
//! computed; tiers that several replicas share.
//! Source: vLLM `v1/kv_offload/cpu/manager.py` (stores what is not there, evicts least recently used, looks up block by block),
//! `distributed/kv_transfer/kv_connector/v1/offloading_connector.py` and `v1/core/sched/scheduler.py`
//! (`WAITING_FOR_REMOTE_KVS`: blocks are taken first, the request is passed over until its cache has come).

use crate::Ns;
use crate::blocks::{Quickly, Segment};
use crate::chain::Chain;
use crate::clock::whole;
use std::collections::{HashMap, VecDeque};

/// How large a tier is, and the link to the one above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    pub blocks: u64,
    /// Time of a block over the link, in 2^-20 ns.
    pub block: i64,
    pub latency: Ns,
}

/// What a tier did, in blocks. Stored = evicted + held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Found there, and nowhere nearer.
    pub found: u64,
    /// Over its link, for itself and for tiers below.
    pub carried: u64,
    pub stored: u64,
    pub evicted: u64,
    /// Time in which its link is in use.
    pub busy: Ns,
}

impl Counts {
    #[must_use]
    pub fn with(self, b: &Self) -> Self {
        Self {
            found: self.found + b.found,
            carried: self.carried + b.carried,
            stored: self.stored + b.stored,
            evicted: self.evicted + b.evicted,
            busy: self.busy + b.busy,
        }
    }
}

/// What of a request is, or may be, below.
#[derive(Clone, Debug, Default)]
pub struct Below {
    /// Its blocks that others may share, by content.
    keys: Vec<u64>,
    /// Blocks from the start that were written down.
    written: u32,
    /// When what it fetches has come; none where it fetches nothing.
    pub(crate) until: Option<Ns>,
    /// What is on its way from storage to host memory, and may be stopped.
    pub(crate) coming: Option<Coming>,
    /// Tokens fetched at its first admission, and how long that took.
    pub fetched: u32,
    pub waited: Ns,
}

/// Pages on their way from storage: since when, from which on, and how many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    pub(crate) at: Ns,
    pub(crate) first: u32,
    pub(crate) pages: u32,
}

/// A block that may be found, or so many that nobody looks for.
#[derive(Clone, Copy, Debug)]
struct Item {
    key: u64,
    count: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Level {
    tier: Tier,
    /// Blocks that one key stands for.
    unit: u64,
    held: u64,
    /// The least recently looked at first.
    items: Chain<Item>,
    place: HashMap<u64, u32, Quickly>,
    free: Ns,
    counts: Counts,
}

impl Level {
    fn new(tier: Tier, unit: u64) -> Self {
        let (items, place) = (Chain::new(), HashMap::default());
        Self { tier, unit, held: 0, items, place, free: 0, counts: Counts::default() }
    }

    /// Blocks that it can still take.
    pub(crate) fn room(&self) -> u64 {
        self.tier.blocks.saturating_sub(self.held)
    }

    /// Blocks are written whose place is kept elsewhere.
    pub(crate) fn fill(&mut self, blocks: u64) {
        self.held += blocks;
        self.counts.stored += blocks;
    }

    /// The same blocks give way.
    pub(crate) fn lose(&mut self, blocks: u64) {
        self.held -= blocks;
        self.counts.evicted += blocks;
    }

    /// Blocks that were found here come up: when.
    pub(crate) fn come(&mut self, now: Ns, blocks: u64) -> Ns {
        self.counts.found += blocks;
        self.carry(now, blocks)
    }

    /// A block that moved up is no more here.
    fn remove(&mut self, key: u64) {
        if let Some(at) = self.place.remove(&key) {
            self.items.take_out(at);
            self.items.forget(at);
            self.lose(self.unit);
        }
    }

    fn holds(&self, key: u64) -> bool {
        self.place.contains_key(&key)
    }

    fn touch(&mut self, key: u64) {
        if let Some(at) = self.place.get(&key).copied() {
            self.items.take_out(at);
            self.items.put_last(at);
        }
    }

    fn push(&mut self, key: u64, count: u64) -> u32 {
        let at = self.items.keep(Item { key, count });
        self.items.put_last(at);
        at
    }

    /// Blocks are written; those looked at least recently give way.
    fn store(&mut self, key: Option<u64>, count: u64) {
        if self.tier.blocks == 0 || key.is_some_and(|key| self.holds(key)) {
            return;
        }
        self.fill(count);
        if let Some(key) = key {
            let at = self.push(key, 0);
            self.place.insert(key, at);
        } else if let Some(last) = self.items.last().filter(|at| self.items[*at].count > 0) {
            self.items[last].count += count;
        } else {
            self.push(0, count);
        }
        while self.held > self.tier.blocks {
            let Some(at) = self.items.first() else { return };
            let over = self.held - self.tier.blocks;
            let item = &mut self.items[at];
            let gone = if item.count == 0 { self.unit } else { item.count.min(over) };
            if item.count > gone {
                item.count -= gone;
                self.lose(gone);
                return;
            }
            if item.count == 0 {
                let key = item.key;
                self.place.remove(&key);
            }
            self.items.take_out(at);
            self.items.forget(at);
            self.lose(gone);
        }
    }

    /// When so many blocks that are there at `from` are over the link.
    fn carry(&mut self, from: Ns, blocks: u64) -> Ns {
        let start = from.max(self.free);
        self.free = start + self.tier.latency + whole(self.tier.block.saturating_mul(blocks as i64));
        self.counts.carried += blocks;
        self.counts.busy += self.free - start;
        self.free
    }
}

/// Caches on their way from storage to host memory, one request after the other; one that is stopped leaves the link to the
/// next.
#[derive(Clone, Debug, Default)]
struct Fetches {
    queue: VecDeque<Fetch>,
    free: Ns,
    /// Blocks that they may fill in the host.
    tokens: u64,
}

#[derive(Clone, Copy, Debug)]
struct Fetch {
    id: u64,
    at: Ns,
    blocks: u64,
    stopped: Option<Ns>,
}

impl Fetch {
    /// When it begins and ends on a link that is free then.
    fn times(&self, tier: &Tier, free: Ns) -> (Ns, Ns) {
        let start = free.max(self.at);
        let end = start + tier.latency + whole(tier.block.saturating_mul(self.blocks as i64));
        (start, self.stopped.map_or(end, |stopped| end.min(stopped.max(start))))
    }

    /// Blocks that are over at a time, of those it begins with at `start`.
    fn over(&self, tier: &Tier, start: Ns, at: Ns) -> u64 {
        let time = u128::from(at.saturating_sub(start + tier.latency)) << 20;
        match tier.block {
            0 if at >= start + tier.latency => self.blocks,
            0 => 0,
            block => (time / block as u128).min(self.blocks.into()) as u64,
        }
    }
}

impl Fetches {
    /// When a request's begins and ends, if nobody stops.
    fn times(&self, tier: &Tier, id: u64) -> Option<(Fetch, Ns, Ns)> {
        let mut free = self.free;
        for fetch in &self.queue {
            let (start, end) = fetch.times(tier, free);
            if fetch.id == id && fetch.stopped.is_none() {
                return Some((*fetch, start, end));
            }
            // One that was stopped before its turn takes no time.
            free = if fetch.stopped.is_some_and(|stopped| stopped <= start) { free } else { end };
        }
        None
    }

    /// A request's is stopped: how many blocks are over.
    fn stop(&mut self, level: &mut Level, id: u64, now: Ns) -> u64 {
        let Some((fetch, start, end)) = self.times(&level.tier, id) else { return 0 };
        if let Some(its) = self.queue.iter_mut().find(|f| f.id == id && f.stopped.is_none()) {
            its.stopped = Some(now);
        }
        self.tokens -= fetch.blocks;
        let over = if now >= end { fetch.blocks } else { fetch.over(&level.tier, start, now) };
        level.counts.carried += over;
        level.counts.busy += end.min(now).saturating_sub(start);
        while let Some(first) = self.queue.front().filter(|f| f.stopped.is_some()) {
            let (start, end) = first.times(&level.tier, self.free);
            if first.stopped.is_some_and(|stopped| stopped > start) {
                self.free = end;
            }
            self.queue.pop_front();
        }
        over
    }
}

/// The tiers of one replica, the nearest first.
#[derive(Clone, Debug)]
pub struct Tiers {
    size: u32,
    /// The first of them whose contents are known here by their keys.
    keyed: usize,
    levels: Vec<Level>,
    /// Of the blocks found last, how many are in each.
    found: Vec<u64>,
    fetches: Fetches,
}

impl Tiers {
    /// None where there are none.
    pub(crate) fn new(tiers: &[Tier], size: u32) -> Option<Box<Self>> {
        let levels: Vec<Level> = tiers.iter().map(|tier| Level::new(*tier, 1)).collect();
        let (found, fetches) = (vec![0; levels.len()], Fetches::default());
        (!levels.is_empty()).then(|| Box::new(Self { size, keyed: 0, found, levels, fetches }))
    }

    /// Host memory whose contents a tree of the engine knows, and storage below it in pages of so many blocks.
    pub(crate) fn under(host: Tier, storage: Option<Tier>, page: u32) -> Self {
        let below = storage.map(|tier| Level::new(tier, page.into()));
        let levels: Vec<Level> = std::iter::once(Level::new(host, 1)).chain(below).collect();
        Self { size: page, keyed: 1, found: vec![0; levels.len()], levels, fetches: Fetches::default() }
    }

    /// The nearest.
    pub(crate) fn host(&mut self) -> &mut Level {
        &mut self.levels[0]
    }

    /// Blocks that the host can still take beside those that are on their way to it.
    pub(crate) fn room(&self) -> u64 {
        self.levels[0].room().saturating_sub(self.fetches.tokens)
    }

    /// Whether there is storage below the host, and the tokens of its pages.
    pub(crate) fn storage(&self) -> Option<u32> {
        (self.levels.len() > self.keyed && self.keyed > 0).then_some(self.size)
    }

    /// Blocks of host memory, and those that fetches under way may fill.
    pub(crate) fn coming(&self) -> (u64, u64) {
        (self.levels[0].tier.blocks, self.fetches.tokens)
    }

    /// Pages that were found set out from storage.
    pub(crate) fn set_out(&mut self, id: u64, coming: Coming) {
        let blocks = u64::from(coming.pages) * u64::from(self.size);
        self.fetches.tokens += blocks;
        self.fetches.queue.push_back(Fetch { id, at: coming.at, blocks, stopped: None });
    }

    /// When a request's pages have all come.
    pub(crate) fn arrives(&self, id: u64) -> Option<Ns> {
        Some(self.fetches.times(&self.levels[self.keyed].tier, id)?.2)
    }

    /// A request waits no longer for its pages: how many have come.
    pub(crate) fn stop(&mut self, below: &Below, id: u64, now: Ns) -> u32 {
        let (Some(coming), Some(level)) = (below.coming, self.levels.get_mut(self.keyed)) else { return 0 };
        let pages = (self.fetches.stop(level, id, now) / level.unit) as u32;
        level.counts.found += u64::from(pages) * level.unit;
        for key in below.keys.iter().skip(coming.first as usize).take(pages as usize) {
            level.touch(*key);
        }
        pages
    }

    /// A block gives way in the chip's memory and goes down, by its key if others may look for it.
    pub(crate) fn give_way(&mut self, key: Option<u64>) {
        self.levels[0].store(key, 1);
    }

    /// Blocks that were found go up and are no more here: when they have come.
    pub(crate) fn move_up(&mut self, now: Ns, below: &Below, have: u32, blocks: u32) -> Ns {
        for key in &below.keys[have as usize..(have + blocks) as usize] {
            self.levels[0].remove(*key);
        }
        self.levels[0].come(now, blocks.into())
    }

    pub fn counts(&self) -> impl Iterator<Item = Counts> {
        self.levels.iter().map(|l| l.counts)
    }

    /// Blocks that each holds.
    pub fn held(&self) -> impl Iterator<Item = u64> {
        self.levels.iter().map(|l| l.held)
    }

    /// The key of a block of a request, if others may share it.
    pub(crate) fn key(below: &Below, block: u32) -> Option<u64> {
        below.keys.get(block as usize).copied()
    }

    /// What a request brings to look for and to write, by its content.
    pub(crate) fn below(&self, content: &[Segment]) -> Below {
        Below { keys: keys(content, self.size), ..Below::default() }
    }

    /// The first `tokens` of a request are computed: whole blocks of them are written down.
    pub(crate) fn write(&mut self, below: &mut Below, tokens: u32) {
        let full = tokens / self.size;
        if full <= below.written {
            return;
        }
        let known = below.keys.len() as u32;
        let (from, to) = (below.written.min(known), full.min(known));
        let private = full - below.written.max(to);
        for level in &mut self.levels[self.keyed..] {
            for key in &below.keys[from as usize..to.max(from) as usize] {
                level.store(Some(*key), level.unit);
            }
            if private > 0 {
                level.store(None, u64::from(private) * level.unit);
            }
        }
        below.written = full;
    }

    /// Blocks after the first `have` that can be fetched, up to `most`.
    pub(crate) fn find(&mut self, below: &Below, have: u32, most: u32) -> u32 {
        self.found.fill(0);
        let end = (most as usize).min(below.keys.len());
        let mut n = 0;
        for key in below.keys.get(have as usize..end).unwrap_or(&[]) {
            let Some(nearest) = self.levels.iter().position(|l| l.holds(*key)) else { break };
            self.found[nearest] += 1;
            n += 1;
        }
        n
    }

    /// Fetches what was found: when it has come.
    pub(crate) fn fetch(&mut self, now: Ns, below: &mut Below, have: u32, blocks: u32) -> Ns {
        // It is seen at a later call.
        let mut last = now + 1;
        for from in 0..self.levels.len() {
            let n = self.found[from];
            self.levels[from].counts.found += n;
            if n > 0 {
                let end = (0..=from).rev().fold(now, |end, at| self.levels[at].carry(end, n));
                last = last.max(end);
            }
        }
        for key in &below.keys[have as usize..(have + blocks) as usize] {
            for level in &mut self.levels {
                level.touch(*key);
                level.store(Some(*key), 1);
            }
        }
        below.written = below.written.max(have + blocks);
        below.until = Some(last);
        last
    }
}

/// What the whole blocks of a content are known by: each by all tokens to its end. Where a content is cut does not matter.
fn keys(content: &[Segment], size: u32) -> Vec<u64> {
    let total: u32 = content.iter().map(|s| s.tokens).sum();
    let mut all = Vec::with_capacity((total / size) as usize);
    let (mut hash, mut filled) = (0xcbf2_9ce4_8422_2325_u64, 0);
    // The run of a stream that is under way in this block: a cut inside it is not seen.
    let mut run: Option<(u64, u64, u64)> = None;
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let close = |hash: u64, (stream, offset, n): (u64, u64, u64)| mix(mix(mix(hash, stream), offset), n);
    for s in content {
        let mut at = 0;
        while at < s.tokens {
            let n = (size - filled).min(s.tokens - at);
            let offset = s.offset + u64::from(at);
            run = match run {
                Some((stream, from, had)) if stream == s.stream && from + had == offset => {
                    Some((stream, from, had + u64::from(n)))
                }
                Some(before) => {
                    hash = close(hash, before);
                    Some((s.stream, offset, u64::from(n)))
                }
                None => Some((s.stream, offset, u64::from(n))),
            };
            (at, filled) = (at + n, filled + n);
            if filled == size {
                hash = run.take().map_or(hash, |run| close(hash, run));
                filled = 0;
                all.push(hash);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(stream: u64, offset: u64, tokens: u32) -> Segment {
        Segment { stream, offset, tokens }
    }

    #[test]
    fn equal_tokens_have_equal_keys_however_they_are_cut() {
        let whole = keys(&[part(1, 0, 100), part(2, 5, 60)], 16);
        assert_eq!(whole.len(), 10);
        assert_eq!(keys(&[part(1, 0, 37), part(1, 37, 63), part(2, 5, 1), part(2, 6, 59)], 16), whole);
        // The same start, another end.
        let other = keys(&[part(1, 0, 100), part(3, 5, 60)], 16);
        assert_eq!((&other[..6], other[6] == whole[6]), (&whole[..6], false));
    }

    #[test]
    fn a_full_tier_forgets_what_was_looked_at_least_recently() {
        let mut level = Level::new(Tier { blocks: 3, block: 0, latency: 0 }, 1);
        for key in [1, 2, 3] {
            level.store(Some(key), 1);
        }
        level.touch(1);
        level.store(Some(4), 1);
        assert_eq!([1, 2, 3, 4].map(|key| level.holds(key)), [true, false, true, true]);
        // What nobody looks for takes room as well.
        level.store(None, 2);
        assert_eq!([1, 3, 4].map(|key| level.holds(key)), [false, false, true]);
        assert_eq!((level.held, level.counts.stored, level.counts.evicted), (3, 6, 3));
    }
}
