//! The tree of contents: what a block contains is a place in it.
//!
//! A path is the tokens from the start, so a block is known by where it ends. A token is a place in a stream; a request's
//! tokens are runs of streams. Content that no other request can share is not in the tree.

use super::{NONE, Place, Segment};
use rackmath_theory::stats::Fnv;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

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

/// Where the content of a block is.
#[derive(Clone, Copy, Debug)]
struct Content {
    node: u32,
    slot: u32,
    /// The next block with the same content.
    again: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// Tokens of a block; groups that each have one of it.
    size: u32,
    groups: usize,
    nodes: Vec<Node>,
    spare: Vec<u32>,
    children: HashMap<(u32, u64, u64), u32, Quickly>,
    /// By block.
    contents: Vec<Content>,
    path: Vec<u32>,
}

impl Tree {
    pub(super) fn new(size: u32, groups: usize) -> Self {
        Self {
            size,
            groups,
            nodes: Vec::new(),
            spare: Vec::new(),
            children: HashMap::default(),
            contents: Vec::new(),
            path: Vec::new(),
        }
    }

    /// Finds or makes the place of a sequence.
    pub(super) fn place(&mut self, key: u64, segments: impl Iterator<Item = Segment>) -> Place {
        let (mut at, mut shared) = (NONE, 0);
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
        Place::at(at, shared)
    }

    /// Leading tokens of a sequence that are stored, at most `most`; nothing is made.
    pub(super) fn probe(&self, key: u64, segments: &[Segment], most: u32) -> u32 {
        let (mut at, mut depth) = (NONE, 0);
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
                    let slot = (block - first) as usize * self.groups;
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
    pub(super) fn leave(&mut self, place: Place) {
        if !place.is_private() {
            self.unuse(place.leaf());
        }
    }

    /// The stored blocks of a group among the first `most` of a sequence, none where one is missing; `unbroken`, up to the
    /// first that is.
    pub(super) fn stored(&mut self, place: Place, group: usize, most: u32, unbroken: bool, found: &mut Vec<u32>) {
        self.path.clear();
        let mut at = place.leaf();
        while at != NONE {
            self.path.push(at);
            at = self.nodes[at as usize].parent;
        }
        for id in self.path.iter().rev() {
            let node = &self.nodes[*id as usize];
            let first = node.from / self.size;
            let count = (node.from + node.tokens) / self.size - first;
            for slot in 0..count {
                if first + slot >= most {
                    return;
                }
                let block = node.stored.get(slot as usize * self.groups + group).copied().unwrap_or(NONE);
                if unbroken && block == NONE {
                    return;
                }
                found.push(block);
            }
        }
    }

    /// Which block follows the first `tokens` of a sequence, if others may share it.
    pub(super) fn next(&self, place: Place, tokens: u32) -> Option<(u32, u32)> {
        let end = tokens + self.size;
        if place.is_private() || place.shared() < end {
            return None;
        }
        let mut at = place.leaf();
        while self.nodes[at as usize].from >= end {
            at = self.nodes[at as usize].parent;
        }
        let from = self.nodes[at as usize].from;
        Some((at, end / self.size - from / self.size))
    }

    /// Blocks `from .. to` of a sequence are stored for a group, each in what `block` gives.
    pub(super) fn store(&mut self, place: Place, group: usize, from: u32, to: u32, mut block: impl FnMut() -> u32) {
        // Usually the last node; else walk up to the first that is needed.
        let mut node = place.leaf();
        self.path.clear();
        while node != NONE {
            self.path.push(node);
            if self.nodes[node as usize].from < (from + 1) * self.size {
                break;
            }
            node = self.nodes[node as usize].parent;
        }
        let mut at = from;
        while let Some(id) = self.path.pop() {
            let Node { from, tokens, .. } = self.nodes[id as usize];
            let (first, end) = (from / self.size, (from + tokens) / self.size);
            while at < end.min(to) {
                let slot = (at - first) * self.groups as u32 + group as u32;
                self.store_one(block(), id, slot, (end - first) as usize * self.groups);
                at += 1;
            }
        }
    }

    fn store_one(&mut self, block: u32, node: u32, slot: u32, slots: usize) {
        let content = Content { node, slot, again: NONE };
        if self.contents.len() <= block as usize {
            self.contents.resize(block as usize + 1, content);
        }
        self.contents[block as usize] = content;
        let at = &mut self.nodes[node as usize];
        at.uses += 1;
        if at.stored.is_empty() {
            at.stored = vec![NONE; slots];
        }
        let mut last = at.stored[slot as usize];
        if last == NONE {
            at.stored[slot as usize] = block;
            return;
        }
        while self.contents[last as usize].again != NONE {
            last = self.contents[last as usize].again;
        }
        self.contents[last as usize].again = block;
    }

    /// A block is reused: what it held is forgotten.
    pub(super) fn forget(&mut self, block: u32) {
        let Content { node, slot, again } = self.contents[block as usize];
        let head = &mut self.nodes[node as usize].stored[slot as usize];
        if *head == block {
            *head = again;
        } else {
            let mut before = *head;
            while self.contents[before as usize].again != block {
                before = self.contents[before as usize].again;
            }
            self.contents[before as usize].again = again;
        }
        self.unuse(node);
    }

    /// Where the content of a block ends: a stream and a place in it.
    pub(super) fn end(&self, block: u32) -> (u64, u64) {
        let Content { node, slot, .. } = self.contents[block as usize];
        let node = &self.nodes[node as usize];
        let end = (node.from / self.size + slot / self.groups as u32 + 1) * self.size - node.from;
        (node.stream, node.offset + u64::from(end))
    }

    fn node(&mut self, parent: u32, stream: u64, offset: u64, from: u32, tokens: u32) -> u32 {
        let node = Node { parent, stream, offset, from, tokens, uses: 0, stored: Vec::new() };
        let id = if let Some(id) = self.spare.pop() {
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
        let moved = (cut - first) as usize * self.groups;
        let lower = &mut self.nodes[id as usize];
        (lower.parent, lower.offset, lower.from) = (before, offset + u64::from(tokens), from + tokens);
        lower.tokens -= tokens;
        let upper: Vec<u32> = if lower.stored.is_empty() { Vec::new() } else { lower.stored.drain(..moved).collect() };
        let gone = relabel(&mut self.contents, &upper, before);
        let lower = &mut self.nodes[id as usize];
        relabel(&mut self.contents, &lower.stored, id);
        lower.uses -= gone;
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
            self.spare.push(id);
            id = parent;
        }
    }
}

/// Blocks stored in a node learn where; how many they are.
fn relabel(contents: &mut [Content], stored: &[u32], node: u32) -> u32 {
    let mut all = 0;
    for (slot, head) in stored.iter().enumerate() {
        let mut block = *head;
        while block != NONE {
            let content = &mut contents[block as usize];
            (content.node, content.slot) = (node, slot as u32);
            block = content.again;
            all += 1;
        }
    }
    all
}
