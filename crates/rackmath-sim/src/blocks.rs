//! Blocks of the cache: who holds them, what they contain, which is reused next.
//!
//! What a block contains is a place in a tree of contents: a path is the tokens from the start, so a block is known by where
//! it ends. A token is a place in a stream; a request's tokens are runs of streams. Content that no other request can share
//! is not in the tree: such blocks are only counted.
//!
//! The free list is one queue of runs: contents that may still be found, and counts of blocks that hold nothing findable.
//! New blocks come from its front, which forgets what they held. Freed blocks go to its back if their content was stored,
//! to its front if not. Which physical block is taken cannot be seen from outside, so blocks have no numbers.

use rackmath_theory::stats::Fnv;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

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

#[derive(Default)]
pub(crate) struct Quick(Fnv);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.bytes(bytes);
    }

    fn write_u64(&mut self, word: u64) {
        // One multiplication spreads what a stream and an offset differ in.
        self.0.0 = (self.0.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
}

pub(crate) type Quickly = BuildHasherDefault<Quick>;

/// A run of tokens that follows another.
#[derive(Clone, Debug)]
struct Node {
    parent: u32,
    stream: u64,
    offset: u64,
    /// Tokens before it on its path.
    from: u32,
    tokens: u32,
    /// Requests that end here, nodes that follow, blocks stored.
    uses: u32,
    /// For each block that ends here, group by group: the first stored of those that hold it.
    stored: Vec<u32>,
}

/// A block that holds findable content, or so many free ones that do not.
#[derive(Clone, Copy, Debug)]
struct Item {
    previous: u32,
    next: u32,
    /// Free blocks without content; 0 for a block with.
    count: u32,
    node: u32,
    slot: u32,
    holders: u32,
    /// The next block with the same content.
    again: u32,
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
    free: u32,
    usable: u32,
    items: Vec<Item>,
    spare_items: Vec<u32>,
    first: u32,
    last: u32,
    nodes: Vec<Node>,
    spare_nodes: Vec<u32>,
    children: HashMap<(u32, u64, u64), u32, Quickly>,
    /// Found blocks of the sequence under way, group by group.
    found: Vec<Vec<u32>>,
    path: Vec<u32>,
}

impl Blocks {
    pub fn new(usable: u32, size: u32, groups: &[Group], caching: bool) -> Self {
        let mut all = Self {
            size,
            groups: groups.to_vec(),
            caching,
            free: 0,
            usable,
            items: Vec::new(),
            spare_items: Vec::new(),
            first: NONE,
            last: NONE,
            nodes: Vec::new(),
            spare_nodes: Vec::new(),
            children: HashMap::default(),
            found: vec![Vec::new(); groups.len()],
            path: Vec::new(),
        };
        all.put_back(usable);
        all
    }

    pub fn free(&self) -> u32 {
        self.free
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

    // Contents.

    /// Finds or makes the place of a sequence under a key (an adapter, a tenant): equal keys share.
    pub fn place(&mut self, key: u64, segments: impl Iterator<Item = Segment>) -> Place {
        if !self.caching {
            return Place::PRIVATE;
        }
        let mut at = NONE;
        let mut shared = 0;
        for mut rest in segments {
            while rest.tokens > 0 {
                let stream = rest.stream ^ key.rotate_left(40);
                let next = match self.children.get(&(at, stream, rest.offset)) {
                    Some(node) => *node,
                    None => self.node(at, stream, rest.offset, shared, rest.tokens),
                };
                let have = self.nodes[next as usize].tokens;
                at = if have > rest.tokens { self.split(next, rest.tokens) } else { next };
                let taken = have.min(rest.tokens);
                shared += taken;
                rest = Segment { offset: rest.offset + u64::from(taken), tokens: rest.tokens - taken, ..rest };
            }
        }
        if at != NONE {
            self.nodes[at as usize].uses += 1;
        }
        Place { leaf: at, shared }
    }

    /// Leading tokens of a sequence that are stored, at most `most`; nothing is made or taken.
    pub fn probe(&self, key: u64, segments: &[Segment], most: u32) -> u32 {
        let (mut at, mut depth) = (NONE, 0);
        let groups = self.groups.len();
        for segment in segments {
            let mut rest = *segment;
            while rest.tokens > 0 {
                let stream = rest.stream ^ key.rotate_left(40);
                let Some(id) = self.children.get(&(at, stream, rest.offset)) else {
                    return depth / self.size * self.size;
                };
                let node = &self.nodes[*id as usize];
                let taken = node.tokens.min(rest.tokens);
                let (first, end) = (depth / self.size, (depth + taken).min(most) / self.size);
                for block in first..end {
                    let slot = (block - first) as usize * groups;
                    if node.stored.get(slot).copied().unwrap_or(NONE) == NONE {
                        return block * self.size;
                    }
                }
                depth += taken;
                if depth >= most {
                    return most / self.size * self.size;
                }
                rest = Segment { offset: rest.offset + u64::from(taken), tokens: rest.tokens - taken, ..rest };
                at = *id;
            }
        }
        depth / self.size * self.size
    }

    /// A request leaves; its content stays as long as blocks hold it.
    pub fn leave(&mut self, place: Place) {
        if !place.is_private() {
            self.unuse(place.leaf);
        }
    }

    fn node(&mut self, parent: u32, stream: u64, offset: u64, from: u32, tokens: u32) -> u32 {
        let node = Node { parent, stream, offset, from, tokens, uses: 0, stored: Vec::new() };
        let id = if let Some(id) = self.spare_nodes.pop() {
            self.nodes[id as usize] = node;
            id
        } else {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        };
        if parent != NONE {
            self.nodes[parent as usize].uses += 1;
        }
        self.children.insert((parent, stream, offset), id);
        id
    }

    /// Cuts a node; the part before the cut is new, so that whoever ended in it still does.
    fn split(&mut self, id: u32, tokens: u32) -> u32 {
        let Node { parent, stream, offset, from, .. } = self.nodes[id as usize];
        self.children.remove(&(parent, stream, offset));
        if parent != NONE {
            self.nodes[parent as usize].uses -= 1;
        }
        let before = self.node(parent, stream, offset, from, tokens);
        let (first, cut) = (from / self.size, (from + tokens) / self.size);
        let moved = ((cut - first) * self.groups.len() as u32) as usize;
        let lower = &mut self.nodes[id as usize];
        (lower.parent, lower.offset, lower.from) = (before, offset + u64::from(tokens), from + tokens);
        lower.tokens -= tokens;
        let upper: Vec<u32> = if lower.stored.is_empty() { Vec::new() } else { lower.stored.drain(..moved).collect() };
        let mut gone = 0;
        for (slot, head) in upper.iter().enumerate() {
            let mut item = *head;
            while item != NONE {
                let block = &mut self.items[item as usize];
                (block.node, block.slot) = (before, slot as u32);
                item = block.again;
                gone += 1;
            }
        }
        for (slot, head) in self.nodes[id as usize].stored.iter().enumerate() {
            let mut item = *head;
            while item != NONE {
                let block = &mut self.items[item as usize];
                block.slot = slot as u32;
                item = block.again;
            }
        }
        self.nodes[id as usize].uses -= gone;
        self.nodes[before as usize].uses += gone + 1;
        self.nodes[before as usize].stored = upper;
        self.children.insert((before, stream, offset + u64::from(tokens)), id);
        before
    }

    fn unuse(&mut self, mut id: u32) {
        while id != NONE {
            let node = &mut self.nodes[id as usize];
            node.uses -= 1;
            if node.uses > 0 {
                return;
            }
            let (key, parent) = ((node.parent, node.stream, node.offset), node.parent);
            node.stored = Vec::new();
            self.children.remove(&key);
            self.spare_nodes.push(id);
            id = parent;
        }
    }

    /// The nodes from the start to the leaf.
    fn walk(&mut self, place: Place) {
        self.path.clear();
        let mut at = place.leaf;
        while at != NONE {
            self.path.push(at);
            at = self.nodes[at as usize].parent;
        }
        self.path.reverse();
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
        self.walk(place);
        let most = most.min(place.shared) / self.size;
        let groups = self.groups.len();
        for group in 0..groups {
            let full = self.groups[group] == Group::Full;
            let found = &mut self.found[group];
            'path: for id in &self.path {
                let node = &self.nodes[*id as usize];
                let first = node.from / self.size;
                let count = (node.from + node.tokens) / self.size - first;
                for slot in 0..count {
                    if first + slot >= most {
                        break 'path;
                    }
                    let item = node.stored.get(slot as usize * groups + group).copied().unwrap_or(NONE);
                    if full && item == NONE {
                        break 'path;
                    }
                    found.push(item);
                }
            }
        }
        self.agree()
    }

    /// Which block follows the first `tokens` of a sequence, if others may share it.
    pub fn next(&self, place: Place, tokens: u32) -> Option<(u32, u32)> {
        let end = tokens + self.size;
        if place.is_private() || place.shared < end {
            return None;
        }
        let mut at = place.leaf;
        while self.nodes[at as usize].from >= end {
            at = self.nodes[at as usize].parent;
        }
        let from = self.nodes[at as usize].from;
        Some((at, end / self.size - from / self.size))
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

    // Who holds what.

    /// Blocks a waiting request needs for `tokens`, `hit` of them found: new ones, and found ones that are free now.
    /// With a cap, windows are counted at most so many tokens wide.
    pub fn needed(&self, tokens: u32, hit: u32, cap: Option<(u32, u32)>) -> u32 {
        let wanted = tokens.div_ceil(self.size);
        let (hit_blocks, mut all) = (hit / self.size, 0);
        for (found, group) in self.found.iter().zip(&self.groups) {
            let skipped = group.skipped(hit, self.size);
            let new = wanted.saturating_sub(hit_blocks.max(skipped));
            let waking = found.iter().filter(|i| **i != NONE && self.items[**i as usize].holders == 0).count() as u32;
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
        let wanted = tokens.div_ceil(self.size);
        held.iter().map(|h| wanted.saturating_sub(h.total())).sum()
    }

    /// Takes what [`Self::find`] found.
    pub fn admit(&mut self, held: &mut [Held], hit: u32) {
        for (group, h) in held.iter_mut().enumerate() {
            h.clear();
            h.stored = hit / self.size;
            for at in 0..self.found[group].len() {
                let item = self.found[group][at];
                if item == NONE {
                    h.skipped += 1;
                    continue;
                }
                if self.items[item as usize].holders == 0 {
                    self.unlink(item);
                    self.free -= 1;
                }
                self.items[item as usize].holders += 1;
                h.found.push(item);
            }
        }
    }

    /// Gives back blocks that no token will attend to again.
    pub fn slide(&mut self, held: &mut [Held], computed: u32) {
        for (group, h) in self.groups.clone().into_iter().zip(held) {
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
                if self.caching { self.put_back(plain) } else { self.put_front(plain) }
            }
            for at in (0..from_found).rev() {
                self.release(h.found[at]);
            }
            h.found.drain(..from_found);
            h.skipped += n;
        }
    }

    /// Takes new blocks until `tokens` have a place.
    pub fn grow(&mut self, held: &mut [Held], tokens: u32) {
        let wanted = tokens.div_ceil(self.size);
        for h in held {
            // A window's blocks before its reach are never taken.
            let new = wanted.saturating_sub(h.total());
            h.plain += new;
            self.take(new);
        }
    }

    /// Stores the content of full blocks among the first `tokens`.
    pub fn store(&mut self, held: &mut [Held], place: Place, tokens: u32) {
        if !self.caching {
            return;
        }
        let full = tokens / self.size;
        let findable = full.min(place.shared / self.size);
        let groups = self.groups.len();
        for (group, h) in held.iter_mut().enumerate() {
            if full <= h.stored {
                continue;
            }
            let from = h.stored.max(h.skipped);
            h.stored = full;
            if from >= findable {
                continue;
            }
            // Usually the last node; else walk up to the first that is needed.
            let mut node = place.leaf;
            self.path.clear();
            while node != NONE {
                self.path.push(node);
                if self.nodes[node as usize].from < (from + 1) * self.size {
                    break;
                }
                node = self.nodes[node as usize].parent;
            }
            let mut block = from;
            while let Some(id) = self.path.pop() {
                let Node { from, tokens, .. } = self.nodes[id as usize];
                let (first, end) = (from / self.size, (from + tokens) / self.size);
                while block < end.min(findable) {
                    let slot = (block - first) * groups as u32 + group as u32;
                    self.store_one(h, id, slot, (end - first) as usize * groups);
                    block += 1;
                }
            }
        }
    }

    fn store_one(&mut self, h: &mut Held, node: u32, slot: u32, slots: usize) {
        let item = self.item(Item { previous: NONE, next: NONE, count: 0, node, slot, holders: 1, again: NONE });
        h.plain -= 1;
        h.found.push(item);
        let at = &mut self.nodes[node as usize];
        at.uses += 1;
        if at.stored.is_empty() {
            at.stored = vec![NONE; slots];
        }
        let mut last = at.stored[slot as usize];
        if last == NONE {
            at.stored[slot as usize] = item;
            return;
        }
        while self.items[last as usize].again != NONE {
            last = self.items[last as usize].again;
        }
        self.items[last as usize].again = item;
    }

    /// Gives everything back, from the end of the sequence to its start.
    pub fn release_all(&mut self, held: &mut [Held]) {
        for h in held {
            let fresh = if self.caching { h.total().saturating_sub(h.stored).min(h.plain) } else { h.plain };
            self.put_front(fresh);
            self.put_back(h.plain - fresh);
            for at in (0..h.found.len()).rev() {
                self.release(h.found[at]);
            }
            h.clear();
        }
    }

    fn release(&mut self, item: u32) {
        let block = &mut self.items[item as usize];
        block.holders -= 1;
        if block.holders == 0 {
            self.link_back(item);
            self.free += 1;
        }
    }

    // The free list.

    fn item(&mut self, item: Item) -> u32 {
        if let Some(id) = self.spare_items.pop() {
            self.items[id as usize] = item;
            return id;
        }
        self.items.push(item);
        self.items.len() as u32 - 1
    }

    fn put_back(&mut self, n: u32) {
        if n == 0 {
            return;
        }
        self.free += n;
        if self.last != NONE && self.items[self.last as usize].count > 0 {
            self.items[self.last as usize].count += n;
            return;
        }
        let item = self.plain(n);
        self.link_back(item);
    }

    fn put_front(&mut self, n: u32) {
        if n == 0 {
            return;
        }
        self.free += n;
        if self.first != NONE && self.items[self.first as usize].count > 0 {
            self.items[self.first as usize].count += n;
            return;
        }
        let item = self.plain(n);
        let old = self.first;
        self.items[item as usize].next = old;
        match old {
            NONE => self.last = item,
            old => self.items[old as usize].previous = item,
        }
        self.first = item;
    }

    fn plain(&mut self, count: u32) -> u32 {
        self.item(Item { previous: NONE, next: NONE, count, node: NONE, slot: 0, holders: 0, again: NONE })
    }

    fn link_back(&mut self, item: u32) {
        let old = self.last;
        let block = &mut self.items[item as usize];
        (block.previous, block.next) = (old, NONE);
        match old {
            NONE => self.first = item,
            old => self.items[old as usize].next = item,
        }
        self.last = item;
    }

    fn unlink(&mut self, item: u32) {
        let Item { previous, next, .. } = self.items[item as usize];
        match previous {
            NONE => self.first = next,
            p => self.items[p as usize].next = next,
        }
        match next {
            NONE => self.last = previous,
            n => self.items[n as usize].previous = previous,
        }
    }

    /// Takes from the front; what the blocks held is forgotten.
    fn take(&mut self, mut n: u32) {
        self.free -= n;
        while n > 0 {
            let item = self.first;
            let front = &mut self.items[item as usize];
            if front.count > n {
                front.count -= n;
                return;
            }
            n -= front.count.max(1);
            let content = front.count == 0;
            self.unlink(item);
            if content {
                self.forget(item);
            }
            self.spare_items.push(item);
        }
    }

    fn forget(&mut self, item: u32) {
        let Item { node, slot, again, .. } = self.items[item as usize];
        let head = &mut self.nodes[node as usize].stored[slot as usize];
        if *head == item {
            *head = again;
        } else {
            let mut before = *head;
            while self.items[before as usize].again != item {
                before = self.items[before as usize].again;
            }
            self.items[before as usize].again = again;
        }
        self.unuse(node);
    }

    /// Takes blocks whose holders are written down later, by [`Self::settle`].
    pub fn take_ahead(&mut self, n: u32) {
        self.take(n);
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
    pub fn held(&self, all: &[crate::engine::Sequence]) -> u32 {
        let mut found: Vec<u32> = all.iter().flat_map(|s| &s.held).flat_map(|h| h.found.iter().copied()).collect();
        found.sort_unstable();
        found.dedup();
        found.len() as u32 + all.iter().flat_map(|s| &s.held).map(|h| h.plain).sum::<u32>()
    }

    /// The free list from front to back, for comparisons: counts, and what findable blocks hold.
    pub fn free_list(&self) -> String {
        let mut all = Vec::new();
        let (mut at, mut plain) = (self.first, 0);
        while at != NONE {
            let item = &self.items[at as usize];
            if item.count > 0 {
                plain += item.count;
            } else {
                let node = &self.nodes[item.node as usize];
                let end = (node.from / self.size + item.slot / self.groups.len() as u32 + 1) * self.size - node.from;
                all.push(format!("{plain} {}:{}", node.stream, node.offset + u64::from(end)));
                plain = 0;
            }
            at = item.next;
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
