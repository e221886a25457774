//! Blocks of the cache: who holds them, what they contain (`tree.rs`), which is reused next (`free.rs`).
//!
//! Content that no other request can share is not in the tree of contents: such blocks are only counted. New blocks come from
//! the front of the free list, which forgets what they held. Freed blocks go to its back if their content was stored, to its
//! front if not.

mod free;
mod tree;

use crate::engine::Sequence;
use free::{FreeList, Run};
pub(crate) use tree::Quickly;
use tree::Tree;

const NONE: u32 = u32::MAX;

/// `tokens` of a stream from `offset` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub stream: u64,
    pub offset: u64,
    pub tokens: u32,
}

/// A kind of layers with their own blocks, drawn from the one pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Full,
    /// Attention to the last so many tokens.
    Window(u32),
}

impl Group {
    /// Blocks wholly before what the next token attends to.
    fn skipped(self, computed: u32, block: u32) -> u32 {
        match self {
            Self::Full => 0,
            Self::Window(window) => (computed + 1).saturating_sub(window) / block,
        }
    }
}

/// What a request holds of one group: blocks `skipped ..` of its sequence, first those with findable content.
#[derive(Clone, Debug, Default)]
pub struct Held {
    skipped: u32,
    found: Vec<u32>,
    plain: u32,
    /// Blocks from the start whose content was stored.
    stored: u32,
}

impl Held {
    /// Blocks of the sequence, those given back included.
    fn total(&self) -> u32 {
        self.skipped + self.found.len() as u32 + self.plain
    }

    /// Blocks missing for `tokens`, of so many each. Most steps need none, and a product is cheaper than a quotient.
    fn missing(&self, tokens: u32, size: u32) -> u32 {
        let total = self.total();
        if u64::from(tokens) <= u64::from(total) * u64::from(size) { 0 } else { tokens.div_ceil(size) - total }
    }

    fn clear(&mut self) {
        self.found.clear();
        (self.skipped, self.plain, self.stored) = (0, 0, 0);
    }
}

/// Where a request's sequence is in the tree, and how many of its leading tokens are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    leaf: u32,
    shared: u32,
}

impl Place {
    /// A sequence that no other request can share.
    pub const PRIVATE: Self = Self { leaf: NONE, shared: 0 };

    pub(crate) fn at(leaf: u32, shared: u32) -> Self {
        Self { leaf, shared }
    }

    pub(crate) fn leaf(self) -> u32 {
        self.leaf
    }

    /// Leading tokens that others may share.
    pub fn shared(self) -> u32 {
        self.shared
    }

    pub fn is_private(self) -> bool {
        self.leaf == NONE
    }
}

#[derive(Clone, Debug)]
pub struct Blocks {
    size: u32,
    groups: Vec<Group>,
    /// Stored content is found again.
    caching: bool,
    usable: u32,
    list: FreeList,
    tree: Tree,
    /// Found blocks of the sequence under way, group by group.
    found: Vec<Vec<u32>>,
    /// What gave way since it was last asked for, in order; none where nobody asks.
    gone: Option<Gone>,
}

/// Blocks that gave way with what they held.
#[derive(Clone, Debug, Default)]
struct Gone {
    /// Free blocks that hold nothing; they stand before all others in the free list.
    bare: u32,
    /// Blocks that could be found by their number, others by none.
    all: Vec<u32>,
}

impl Blocks {
    pub fn new(usable: u32, size: u32, groups: &[Group], caching: bool) -> Self {
        Self {
            size,
            groups: groups.to_vec(),
            caching,
            usable,
            list: FreeList::new(usable),
            tree: Tree::new(size, groups.len()),
            found: vec![Vec::new(); groups.len()],
            gone: None,
        }
    }

    /// Notes what gives way, for whoever asks.
    #[must_use]
    pub fn noting(self) -> Self {
        Self { gone: Some(Gone { bare: self.usable, all: Vec::new() }), ..self }
    }

    /// Tells what gave way since it was last asked for, in order: a block that could be found, or one that nobody looks for.
    pub(crate) fn gone(&mut self, tell: impl FnMut(Option<u32>)) {
        if let Some(gone) = &mut self.gone {
            gone.all.drain(..).map(|block| Some(block).filter(|block| *block != NONE)).for_each(tell);
        }
    }

    /// The block of a group that holds the so manieth of a sequence, if it could be found.
    pub(crate) fn number(held: &Held, block: u32) -> Option<u32> {
        held.found.get(block.checked_sub(held.skipped)? as usize).copied()
    }

    pub fn free(&self) -> u32 {
        self.list.free()
    }

    pub fn usable(&self) -> u32 {
        self.usable
    }

    pub fn size(&self) -> u32 {
        self.size
    }

    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Only counts can be seen of it: one group with full attention, in which no sequence has findable content.
    pub fn only_counts(&self) -> bool {
        self.groups.len() == 1 && self.groups[0] == Group::Full
    }

    /// Finds or makes the place of a sequence under a key (an adapter, a tenant): equal keys share.
    pub fn place(&mut self, key: u64, segments: impl Iterator<Item = Segment>) -> Place {
        if self.caching { self.tree.place(key, segments) } else { Place::PRIVATE }
    }

    /// Leading tokens of a sequence that are stored, at most `most`; nothing is made or taken.
    pub fn probe(&self, key: u64, segments: &[Segment], most: u32) -> u32 {
        self.tree.probe(key, segments, most)
    }

    /// A request leaves; its content stays as long as blocks hold it.
    pub fn leave(&mut self, place: Place) {
        self.tree.leave(place);
    }

    /// Which block follows the first `tokens` of a sequence, if others may share it.
    pub fn next(&self, place: Place, tokens: u32) -> Option<(u32, u32)> {
        self.tree.next(place, tokens)
    }

    /// The longest stored start of a sequence that suits all groups, at most `most` tokens; its blocks are noted for
    /// [`Self::admit`].
    pub fn find(&mut self, place: Place, most: u32) -> u32 {
        for found in &mut self.found {
            found.clear();
        }
        if place.is_private() || !self.caching {
            return 0;
        }
        let most = most.min(place.shared) / self.size;
        for (at, (group, found)) in self.groups.iter().zip(&mut self.found).enumerate() {
            self.tree.stored(place, at, most, *group == Group::Full, found);
        }
        self.agree()
    }

    /// Shrinks what was found until all groups have it.
    fn agree(&mut self) -> u32 {
        let mut hit = self.found.iter().map(Vec::len).max().unwrap_or(0);
        for (found, group) in self.found.iter().zip(&self.groups) {
            if *group == Group::Full {
                hit = hit.min(found.len());
            }
        }
        loop {
            let before = hit;
            for (found, group) in self.found.iter().zip(&self.groups) {
                if let Group::Window(window) = group {
                    let wanted = (window - 1).div_ceil(self.size) as usize;
                    hit = window_hit(&found[..hit.min(found.len())], wanted);
                }
            }
            if hit == before {
                break;
            }
        }
        for (found, group) in self.found.iter_mut().zip(&self.groups) {
            found.truncate(hit);
            if let Group::Window(window) = group {
                // Blocks before the window are not taken.
                let keep = (window - 1).div_ceil(self.size) as usize;
                let skip = hit.saturating_sub(keep);
                found[..skip].fill(NONE);
            }
        }
        hit as u32 * self.size
    }

    /// Blocks a waiting request needs for `tokens`, `hit` of them found: new ones, and found ones that are free now.
    /// With a cap, windows are counted at most so many tokens wide.
    pub fn needed(&self, tokens: u32, hit: u32, cap: Option<(u32, u32)>) -> u32 {
        let wanted = tokens.div_ceil(self.size);
        let (hit_blocks, mut all) = (hit / self.size, 0);
        for (found, group) in self.found.iter().zip(&self.groups) {
            let skipped = group.skipped(hit, self.size);
            let new = wanted.saturating_sub(hit_blocks.max(skipped));
            let waking = found.iter().filter(|i| **i != NONE && !self.list.is_held(**i)).count() as u32;
            let need = new + waking;
            all += match (group, cap) {
                (Group::Window(window), Some((budget, longest))) => {
                    need.min((window - 1 + budget).min(longest).div_ceil(self.size) + 1)
                }
                _ => need,
            };
        }
        all
    }

    /// Blocks missing for a running request to hold `tokens`.
    pub fn missing(&self, held: &[Held], tokens: u32) -> u32 {
        held.iter().map(|h| h.missing(tokens, self.size)).sum()
    }

    /// Takes what [`Self::find`] found.
    pub fn admit(&mut self, held: &mut [Held], hit: u32) {
        for (group, h) in held.iter_mut().enumerate() {
            h.clear();
            h.stored = hit / self.size;
            for block in &self.found[group] {
                if *block == NONE {
                    h.skipped += 1;
                } else {
                    self.list.hold(*block);
                    h.found.push(*block);
                }
            }
        }
    }

    /// Gives back blocks that no token will attend to again.
    pub fn slide(&mut self, held: &mut [Held], computed: u32) {
        for (group, h) in self.groups.iter().zip(held) {
            let skipped = group.skipped(computed, self.size);
            if skipped <= h.skipped {
                continue;
            }
            let n = (skipped - h.skipped).min(h.found.len() as u32 + h.plain);
            let from_found = (n as usize).min(h.found.len());
            // From the last of them to the first.
            let plain = n - from_found as u32;
            if plain > 0 {
                h.plain -= plain;
                if self.caching { self.list.put_back(plain) } else { self.list.put_front(plain) }
            }
            for block in h.found.drain(..from_found).rev() {
                self.list.release(block);
            }
            h.skipped += n;
        }
    }

    /// Takes new blocks until `tokens` have a place.
    pub fn grow(&mut self, held: &mut [Held], tokens: u32) {
        for h in held {
            // A window's blocks before its reach are never taken.
            let new = h.missing(tokens, self.size);
            if new > 0 {
                h.plain += new;
                self.take_ahead(new);
            }
        }
    }

    /// Stores the content of full blocks among the first `tokens`.
    pub fn store(&mut self, held: &mut [Held], place: Place, tokens: u32) {
        let size = u64::from(self.size);
        if !self.caching || held.iter().all(|h| u64::from(tokens) < (u64::from(h.stored) + 1) * size) {
            return;
        }
        let full = tokens / self.size;
        let findable = full.min(place.shared / self.size);
        for (group, h) in held.iter_mut().enumerate() {
            if full <= h.stored {
                continue;
            }
            let from = h.stored.max(h.skipped);
            h.stored = full;
            if from < findable {
                self.tree.store(place, group, from, findable, || {
                    let block = self.list.content();
                    h.plain -= 1;
                    h.found.push(block);
                    block
                });
            }
        }
    }

    /// Gives everything back, from the end of the sequence to its start.
    pub fn release_all(&mut self, held: &mut [Held]) {
        for h in held {
            let fresh = if self.caching { h.total().saturating_sub(h.stored).min(h.plain) } else { h.plain };
            self.list.put_front(fresh);
            if let Some(gone) = &mut self.gone {
                gone.bare += fresh;
            }
            self.list.put_back(h.plain - fresh);
            for block in h.found.iter().rev() {
                self.list.release(*block);
            }
            h.clear();
        }
    }

    /// Takes blocks whose holders are written down later, by [`Self::settle`].
    pub fn take_ahead(&mut self, n: u32) {
        let Some(gone) = &mut self.gone else {
            self.list.take(n, |block| self.tree.forget(block));
            return;
        };
        let bare = gone.bare.min(n);
        gone.bare -= bare;
        self.list.take(bare, |_| {});
        for _ in bare..n {
            let mut held = NONE;
            self.list.take(1, |block| {
                self.tree.forget(block);
                held = block;
            });
            gone.all.push(held);
        }
    }

    /// Writes down that a sequence without findable content in its answer has grown to `tokens`, `stored` of them stored.
    pub fn settle(&self, held: &mut Held, tokens: u32, stored: u32) {
        held.plain += tokens.div_ceil(self.size) - held.total();
        if self.caching {
            held.stored = held.stored.max(stored / self.size);
        }
    }
}

impl Blocks {
    /// Blocks that requests hold, counted one by one: shared ones once.
    pub fn held<'a>(&self, all: impl Iterator<Item = &'a Sequence> + Clone) -> u32 {
        let mut found: Vec<u32> = all.clone().flat_map(|s| &s.held).flat_map(|h| h.found.iter().copied()).collect();
        found.sort_unstable();
        found.dedup();
        found.len() as u32 + all.flat_map(|s| &s.held).map(|h| h.plain).sum::<u32>()
    }

    /// The free list from front to back, for comparisons: counts, and what findable blocks hold.
    pub fn free_list(&self) -> String {
        let (mut all, mut plain) = (Vec::new(), 0);
        for run in self.list.runs() {
            match run {
                Run::Plain(count) => plain += count,
                Run::Content(block) => {
                    let (stream, end) = self.tree.end(block);
                    all.push(format!("{plain} {stream}:{end}"));
                    plain = 0;
                }
            }
        }
        all.push(plain.to_string());
        all.join(" ")
    }
}

/// The longest start whose last `wanted` blocks are all there, or the blocks from the start that are.
fn window_hit(found: &[u32], wanted: usize) -> usize {
    let mut run = 0;
    for at in (0..found.len()).rev() {
        if found[at] == NONE {
            run = 0;
        } else {
            run += 1;
            if run >= wanted {
                return at + run;
            }
        }
    }
    run
}
