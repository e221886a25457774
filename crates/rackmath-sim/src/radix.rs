//! A cache as a tree of runs of tokens, as SGLang keeps it.
//!
//! A node is a run of tokens that follows its parent's; no two children of a node begin with the same token. A node is locked
//! while a request uses it or one below it; leaves without a lock are given up whole, the least recently used first. Every
//! token is free, in the tree, or held by one request beside the tree.

use crate::blocks::{Place, Quickly, Segment};
use std::collections::{BTreeSet, HashMap};

/// The start of every sequence.
const ROOT: u32 = 0;
/// Streams of what only one request can have.
const OWN: u64 = 1 << 63;

#[derive(Clone, Debug, Default)]
struct Node {
    parent: u32,
    runs: Vec<Segment>,
    tokens: u32,
    locks: u32,
    children: u32,
    used: u64,
}

/// What a request holds: a locked start of its sequence in the tree, and tokens beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    node: u32,
    locked: u32,
    beside: u32,
}

#[derive(Clone, Debug)]
pub struct Radix {
    /// Contents stay when requests leave.
    caching: bool,
    usable: u32,
    free: u32,
    /// Tokens of nodes without a lock.
    evictable: u32,
    /// Accesses so far.
    clock: u64,
    nodes: Vec<Node>,
    spare: Vec<u32>,
    children: HashMap<(u32, u64, u64), u32, Quickly>,
    /// Leaves without a lock, by their last access.
    leaves: BTreeSet<(u64, u32)>,
    contents: Vec<Vec<Segment>>,
    spare_contents: Vec<u32>,
    path: Vec<Segment>,
}

impl Radix {
    pub fn new(usable: u32, caching: bool) -> Self {
        Self {
            caching,
            usable,
            free: usable,
            evictable: 0,
            clock: 0,
            nodes: vec![Node::default()],
            spare: Vec::new(),
            children: HashMap::default(),
            leaves: BTreeSet::new(),
            contents: Vec::new(),
            spare_contents: Vec::new(),
            path: Vec::new(),
        }
    }

    pub fn usable(&self) -> u32 {
        self.usable
    }

    /// Tokens that no request holds: free, or in the tree without a lock.
    pub fn free(&self) -> u32 {
        self.free + self.evictable
    }

    /// Tokens that can be taken without giving anything up.
    pub fn spare(&self) -> u32 {
        self.free
    }

    pub fn size(&self) -> u32 {
        1
    }

    /// Writes down what a sequence begins with.
    pub fn place(&mut self, key: u64, segments: impl Iterator<Item = Segment>) -> Place {
        let mut segments = segments.filter(|s| s.tokens > 0).peekable();
        if !self.caching || segments.peek().is_none() {
            return Place::PRIVATE;
        }
        let slot = self.spare_contents.pop().unwrap_or_else(|| {
            self.contents.push(Vec::new());
            self.contents.len() as u32 - 1
        });
        let all = &mut self.contents[slot as usize];
        all.clear();
        all.extend(segments.map(|s| Segment { stream: keyed(s.stream, key), ..s }));
        Place::at(slot, all.iter().map(|s| s.tokens).sum())
    }

    /// A request leaves.
    pub fn leave(&mut self, place: Place) {
        if !place.is_private() {
            self.spare_contents.push(place.leaf());
        }
    }

    /// Leading tokens of a sequence that are in the tree, at most `most`.
    pub fn probe(&self, key: u64, segments: &[Segment], most: u32) -> u32 {
        let some = segments.iter().filter(|s| s.tokens > 0);
        let keyed: Vec<Segment> = some.map(|s| Segment { stream: keyed(s.stream, key), ..*s }).collect();
        let (mut at, mut found, mut rest) = (ROOT, 0, Cursor::new(&keyed, most));
        while let Some(child) = rest.first().and_then(|(s, o)| self.children.get(&(at, s, o))) {
            let same = rest.along(&self.nodes[*child as usize].runs);
            found += same;
            if same < self.nodes[*child as usize].tokens {
                break;
            }
            at = *child;
        }
        found
    }

    /// The first `tokens` of a request's sequence.
    pub fn text(&mut self, place: Place, id: u64, tokens: u32) -> &[Segment] {
        self.read(place, id, tokens);
        &self.path
    }

    fn read(&mut self, place: Place, id: u64, tokens: u32) {
        self.path.clear();
        let mut left = tokens;
        if !place.is_private() {
            for s in &self.contents[place.leaf() as usize] {
                let taken = s.tokens.min(left);
                if taken == 0 {
                    break;
                }
                self.path.push(Segment { tokens: taken, ..*s });
                left -= taken;
            }
        }
        if left > 0 {
            self.path.push(Segment { stream: OWN | id, offset: u64::from(tokens - left), tokens: left });
        }
    }

    /// The longest start of a request's sequence that is in the tree, at most `most` tokens, and where it ends.
    pub fn find(&mut self, place: Place, id: u64, most: u32) -> (u32, u32) {
        if !self.caching {
            return (ROOT, 0);
        }
        self.read(place, id, most);
        self.descend(most)
    }

    /// Follows `path`, cutting the node in which it ends.
    fn descend(&mut self, most: u32) -> (u32, u32) {
        self.clock += 1;
        let path = std::mem::take(&mut self.path);
        let (mut at, mut found, mut rest) = (ROOT, 0, Cursor::new(&path, most));
        while let Some(child) = rest.first().and_then(|(s, o)| self.children.get(&(at, s, o)).copied()) {
            let same = rest.along(&self.nodes[child as usize].runs);
            self.touch(child);
            found += same;
            if same < self.nodes[child as usize].tokens {
                at = self.split(child, same);
                break;
            }
            at = child;
        }
        self.path = path;
        (at, found)
    }

    fn touch(&mut self, id: u32) {
        let node = &mut self.nodes[id as usize];
        let before = std::mem::replace(&mut node.used, self.clock);
        if self.leaves.remove(&(before, id)) {
            self.leaves.insert((self.clock, id));
        }
    }

    fn node(&mut self, parent: u32, tokens: u32) -> u32 {
        let id = self.spare.pop().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            self.nodes.len() as u32 - 1
        });
        let node = &mut self.nodes[id as usize];
        node.runs.clear();
        (node.parent, node.tokens, node.locks, node.children, node.used) = (parent, tokens, 0, 0, self.clock);
        id
    }

    /// Cuts a node; the part before the cut is new.
    fn split(&mut self, id: u32, tokens: u32) -> u32 {
        let parent = self.nodes[id as usize].parent;
        let before = self.node(parent, tokens);
        let mut upper = std::mem::take(&mut self.nodes[before as usize].runs);
        let lower = &mut self.nodes[id as usize];
        let head = lower.runs[0];
        let mut left = tokens;
        let mut whole = 0;
        for run in &mut lower.runs {
            let taken = run.tokens.min(left);
            if taken == 0 {
                break;
            }
            upper.push(Segment { tokens: taken, ..*run });
            (run.offset, run.tokens) = (run.offset + u64::from(taken), run.tokens - taken);
            whole += usize::from(run.tokens == 0);
            left -= taken;
        }
        lower.runs.drain(..whole);
        lower.tokens -= tokens;
        lower.parent = before;
        let (locks, first) = (lower.locks, lower.runs[0]);
        let node = &mut self.nodes[before as usize];
        (node.runs, node.locks, node.children) = (upper, locks, 1);
        self.children.insert((parent, head.stream, head.offset), before);
        self.children.insert((before, first.stream, first.offset), id);
        before
    }

    pub fn lock(&mut self, mut id: u32) {
        while id != ROOT {
            let node = &mut self.nodes[id as usize];
            if node.locks == 0 {
                self.evictable -= node.tokens;
                if node.children == 0 {
                    self.leaves.remove(&(node.used, id));
                }
            }
            node.locks += 1;
            id = node.parent;
        }
    }

    pub fn unlock(&mut self, mut id: u32) {
        while id != ROOT {
            let node = &mut self.nodes[id as usize];
            node.locks -= 1;
            if node.locks == 0 {
                self.evictable += node.tokens;
                if node.children == 0 {
                    self.leaves.insert((node.used, id));
                }
            }
            id = node.parent;
        }
    }

    /// A request takes the start that was found and locked.
    pub fn begin(&mut self, hold: &mut Hold, node: u32, found: u32) {
        *hold = Hold { node, locked: found, beside: 0 };
    }

    /// Makes `tokens` free if it can; leaves are given up whole.
    pub fn make_room(&mut self, tokens: u32) -> bool {
        if self.free < tokens {
            self.evict(tokens);
        }
        self.free >= tokens
    }

    fn evict(&mut self, tokens: u32) {
        let mut gone = 0;
        while gone < tokens {
            let Some((_, id)) = self.leaves.pop_first() else { return };
            let node = &self.nodes[id as usize];
            gone += node.tokens;
            self.free += node.tokens;
            self.evictable -= node.tokens;
            let (parent, first) = (node.parent, node.runs[0]);
            self.children.remove(&(parent, first.stream, first.offset));
            self.spare.push(id);
            let above = &mut self.nodes[parent as usize];
            above.children -= 1;
            if parent != ROOT && above.children == 0 && above.locks == 0 {
                self.leaves.insert((above.used, parent));
            }
        }
    }

    /// A request takes free tokens.
    pub fn take(&mut self, hold: &mut Hold, tokens: u32) {
        self.free -= tokens;
        hold.beside += tokens;
    }

    /// A request gives back tokens beside the tree.
    pub fn give_back(&mut self, hold: &mut Hold, tokens: u32) {
        let tokens = tokens.min(hold.beside);
        hold.beside -= tokens;
        self.free += tokens;
    }

    /// The first `tokens` of a request enter the tree, which it keeps locked; what was there already is free again.
    pub fn store(&mut self, hold: &mut Hold, place: Place, id: u64, tokens: u32) {
        if !self.caching || tokens <= hold.locked {
            return;
        }
        self.read(place, id, tokens);
        let (mut at, found) = self.descend(tokens);
        let twice = found.saturating_sub(hold.locked);
        if found < tokens {
            at = self.hang(at, found, tokens);
        }
        self.free += twice;
        hold.beside -= tokens - hold.locked;
        self.lock(at);
        self.unlock(hold.node);
        (hold.node, hold.locked) = (at, tokens);
    }

    /// A new leaf for what of `path` follows the `found` tokens that end at a node.
    fn hang(&mut self, at: u32, found: u32, tokens: u32) -> u32 {
        let leaf = self.node(at, tokens - found);
        let runs = &mut self.nodes[leaf as usize].runs;
        let mut skip = found;
        for s in &self.path {
            let cut = skip.min(s.tokens);
            skip -= cut;
            if cut < s.tokens {
                runs.push(Segment { offset: s.offset + u64::from(cut), tokens: s.tokens - cut, ..*s });
            }
        }
        let first = runs[0];
        self.children.insert((at, first.stream, first.offset), leaf);
        let above = &mut self.nodes[at as usize];
        if above.children == 0 && above.locks == 0 {
            self.leaves.remove(&(above.used, at));
        }
        above.children += 1;
        self.evictable += tokens - found;
        self.leaves.insert((self.clock, leaf));
        leaf
    }

    /// A request gives up its lock; what it stored stays until it is given up.
    pub fn let_go(&mut self, hold: &mut Hold) {
        self.unlock(hold.node);
        (hold.node, hold.locked) = (ROOT, 0);
    }

    /// Forgets everything: for a tree that is filled anew.
    pub fn clear(&mut self) {
        self.spare.clear();
        self.nodes.truncate(1);
        self.nodes[0] = Node::default();
        self.children.clear();
        self.leaves.clear();
        (self.free, self.evictable, self.clock) = (self.usable, 0, 0);
    }

    /// Leading tokens of a sequence that are in the tree; if they are fewer than `enough`, it has all of them afterwards.
    pub fn enter(&mut self, path: &[Segment], enough: u32) -> u32 {
        self.path.clear();
        self.path.extend_from_slice(path);
        let tokens = path.iter().map(|s| s.tokens).sum();
        let (at, found) = self.descend(tokens);
        if found < enough && found < tokens {
            self.hang(at, found, tokens);
        }
        found
    }

    /// Tokens that requests hold, counted one by one: locked nodes once, and tokens beside the tree.
    pub fn held(&self, all: &[Hold]) -> u32 {
        let mut locked = vec![false; self.nodes.len()];
        for hold in all {
            let mut at = hold.node;
            while at != ROOT {
                locked[at as usize] = true;
                at = self.nodes[at as usize].parent;
            }
        }
        let nodes = self.nodes.iter().zip(locked).filter(|(_, locked)| *locked);
        nodes.map(|(n, _)| n.tokens).sum::<u32>() + all.iter().map(|h| h.beside).sum::<u32>()
    }

    /// Leaves without a lock in the order in which they are given up, for comparisons.
    pub fn free_list(&self) -> String {
        let leaf = |(_, id): &(u64, u32)| {
            let node = &self.nodes[*id as usize];
            format!("{}:{}+{} ", node.runs[0].stream, node.runs[0].offset, node.tokens)
        };
        self.leaves.iter().map(leaf).collect::<String>() + &self.free.to_string()
    }
}

fn keyed(stream: u64, key: u64) -> u64 {
    stream ^ key.rotate_left(40)
}

/// A place in a sequence of runs, of which the first tokens count.
struct Cursor<'a> {
    runs: &'a [Segment],
    within: u32,
    left: u32,
}

impl<'a> Cursor<'a> {
    fn new(runs: &'a [Segment], most: u32) -> Self {
        Self { runs, within: 0, left: most }
    }

    /// The next token.
    fn first(&self) -> Option<(u64, u64)> {
        let run = self.runs.first().filter(|_| self.left > 0)?;
        Some((run.stream, run.offset + u64::from(self.within)))
    }

    /// Goes on as long as tokens are those of `runs`; how many are.
    fn along(&mut self, runs: &[Segment]) -> u32 {
        let mut same = 0;
        for run in runs {
            let mut done = 0;
            while done < run.tokens {
                if self.first() != Some((run.stream, run.offset + u64::from(done))) {
                    return same;
                }
                let here = self.runs[0].tokens - self.within;
                let n = here.min(run.tokens - done).min(self.left);
                (done, same, self.left, self.within) = (done + n, same + n, self.left - n, self.within + n);
                if self.within == self.runs[0].tokens {
                    (self.runs, self.within) = (&self.runs[1..], 0);
                }
            }
        }
        same
    }
}
