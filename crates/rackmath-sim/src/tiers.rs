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
//! Ignores: time and links that writing takes (the other direction of the link); that a block is written a little after it is
//! computed; tiers that several replicas share.
//! Source: vLLM `v1/kv_offload/cpu/manager.py` (stores what is not there, evicts least recently used, looks up block by block),
//! `distributed/kv_transfer/kv_connector/v1/offloading_connector.py` and `v1/core/sched/scheduler.py`
//! (`WAITING_FOR_REMOTE_KVS`: blocks are taken first, the request is passed over until its cache has come).

use crate::Ns;
use crate::blocks::{Quickly, Segment};
use crate::chain::Chain;
use crate::clock::whole;
use std::collections::HashMap;

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
    /// Tokens fetched at its first admission, and how long that took.
    pub fetched: u32,
    pub waited: Ns,
}

/// A block that may be found, or so many that nobody looks for.
#[derive(Clone, Copy, Debug)]
struct Item {
    key: u64,
    count: u64,
}

#[derive(Clone, Debug)]
struct Level {
    tier: Tier,
    held: u64,
    /// The least recently looked at first.
    items: Chain<Item>,
    place: HashMap<u64, u32, Quickly>,
    free: Ns,
    counts: Counts,
}

impl Level {
    fn new(tier: Tier) -> Self {
        Self { tier, held: 0, items: Chain::new(), place: HashMap::default(), free: 0, counts: Counts::default() }
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
        self.held += count;
        self.counts.stored += count;
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
            let gone = item.count.max(1).min(over);
            self.held -= gone;
            self.counts.evicted += gone;
            if item.count > gone {
                item.count -= gone;
                return;
            }
            if item.count == 0 {
                let key = item.key;
                self.place.remove(&key);
            }
            self.items.take_out(at);
            self.items.forget(at);
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

/// The tiers of one replica, the nearest first.
#[derive(Clone, Debug)]
pub struct Tiers {
    size: u32,
    levels: Vec<Level>,
    /// Of the blocks found last, how many are in each.
    found: Vec<u64>,
}

impl Tiers {
    /// None where there are none.
    pub(crate) fn new(tiers: &[Tier], size: u32) -> Option<Box<Self>> {
        let levels: Vec<Level> = tiers.iter().copied().map(Level::new).collect();
        (!levels.is_empty()).then(|| Box::new(Self { size, found: vec![0; levels.len()], levels }))
    }

    pub fn counts(&self) -> impl Iterator<Item = Counts> {
        self.levels.iter().map(|l| l.counts)
    }

    /// Blocks that each holds.
    pub fn held(&self) -> impl Iterator<Item = u64> {
        self.levels.iter().map(|l| l.held)
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
        for level in &mut self.levels {
            for key in &below.keys[from as usize..to.max(from) as usize] {
                level.store(Some(*key), 1);
            }
            if private > 0 {
                level.store(None, private.into());
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
        let mut level = Level::new(Tier { blocks: 3, block: 0, latency: 0 });
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
