//! A cache as a tree of runs of tokens, as SGLang keeps it.
//!
//! A node is a run of tokens that follows its parent's; no two children of a node begin with the same token. A node is locked
//! while a request uses it or one below it; leaves without a lock are given up whole, the least recently used first. Every
//! token is free, in the tree, or held by one request beside the tree.
//!
//! With host memory below ([`Radix::over`]) a node has a copy on the chip, one in the host, or both. One that the chip gives up
//! stays in the tree if the host has a copy; the host gives up leaves that it alone has, the least recently used first. When
//! something is copied is a policy: when a node was met so many times, or when the chip gives it up.
//! Source: sgl-project/sglang `python/sglang/srt/mem_cache/hiradix_cache.py`. Ignores: the time that writing takes, for which
//! the engine holds a node on the chip, and for which it waits where it writes what it gives up.

use crate::Ns;
use crate::blocks::{Place, Quickly, Segment};
use crate::tiers::{Below, Coming, Tiers};
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
    /// Nodes that follow it; those of them with a copy on the chip.
    children: u32,
    near: u32,
    used: u64,
    /// It has a copy on the chip; in the host.
    here: bool,
    below: bool,
    /// How often it was met when something was stored.
    met: u32,
}

/// Host memory below the chip.
#[derive(Clone, Debug)]
struct Host {
    tiers: Tiers,
    /// A node is copied when it was met so often; none: when the chip gives it up.
    after: Option<u32>,
    /// Leaves that only the host has, by their last access.
    leaves: BTreeSet<(u64, u32)>,
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
    host: Option<Box<Host>>,
    /// Where the last search ended, and the tokens before it that only the host has.
    deep: (u32, u32),
    /// Leading tokens of what was stored last that the host has.
    copied: u32,
    line: Vec<u32>,
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
            host: None,
            deep: (ROOT, 0),
            copied: 0,
            line: Vec::new(),
        }
    }

    /// Host memory below it, copied to when a node was met so often, or where it is given up.
    #[must_use]
    pub fn over(self, tiers: Tiers, after: Option<u32>) -> Self {
        let host = Box::new(Host { tiers, after, leaves: BTreeSet::new() });
        Self { host: Some(host).filter(|_| self.caching), ..self }
    }

    pub fn tiers(&self) -> Option<&Tiers> {
        self.host.as_ref().map(|h| &h.tiers)
    }

    pub fn tiers_mut(&mut self) -> Option<&mut Tiers> {
        self.host.as_mut().map(|h| &mut h.tiers)
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
            let node = &self.nodes[*child as usize];
            if !node.here {
                break;
            }
            let same = rest.along(&node.runs);
            found += same;
            if same < node.tokens {
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

    /// The longest start of a request's sequence that is on the chip, at most `most` tokens, and where it ends.
    pub fn find(&mut self, place: Place, id: u64, most: u32) -> (u32, u32) {
        if !self.caching {
            return (ROOT, 0);
        }
        self.read(place, id, most);
        let (end, all) = self.descend(most);
        let (mut at, mut below) = (end, 0);
        while at != ROOT && !self.nodes[at as usize].here {
            below += self.nodes[at as usize].tokens;
            at = self.nodes[at as usize].parent;
        }
        self.deep = (end, below);
        (at, all - below)
    }

    /// Tokens after those that were just found on the chip that the host has.
    pub fn deep(&self) -> u32 {
        self.deep.1
    }

    /// They come up behind a locked node, whose lock goes to the last of them: that one, and when they have come.
    pub fn load(&mut self, node: u32, now: Ns) -> (u32, Ns) {
        let (end, tokens) = self.deep;
        self.revive(end);
        self.lock(end);
        self.unlock(node);
        self.make_room(tokens);
        self.free -= tokens;
        let over = self.host.as_mut().map_or(now, |h| h.tiers.host().come(now, tokens.into()));
        (end, over)
    }

    /// Nodes up from this one that only the host has are on the chip again; their tokens.
    fn revive(&mut self, mut id: u32) -> u32 {
        let mut tokens = 0;
        while id != ROOT && !self.nodes[id as usize].here {
            let node = &mut self.nodes[id as usize];
            node.here = true;
            tokens += node.tokens;
            let (used, parent) = (node.used, node.parent);
            if let Some(host) = &mut self.host {
                host.leaves.remove(&(used, id));
            }
            if node.near == 0 {
                self.leaves.insert((used, id));
            }
            self.joins(parent);
            id = parent;
        }
        self.evictable += tokens;
        tokens
    }

    /// A node has one more child on the chip.
    fn joins(&mut self, id: u32) {
        let node = &mut self.nodes[id as usize];
        if node.near == 0 && node.locks == 0 {
            self.leaves.remove(&(node.used, id));
        }
        node.near += 1;
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
        if let Some(host) = &mut self.host
            && host.leaves.remove(&(before, id))
        {
            host.leaves.insert((self.clock, id));
        }
    }

    fn node(&mut self, parent: u32, tokens: u32) -> u32 {
        let id = self.spare.pop().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            self.nodes.len() as u32 - 1
        });
        let node = &mut self.nodes[id as usize];
        node.runs.clear();
        (node.parent, node.tokens, node.locks, node.used) = (parent, tokens, 0, self.clock);
        (node.children, node.near, node.here, node.below, node.met) = (0, 0, true, false, 0);
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
        let (here, below, met) = (lower.here, lower.below, lower.met);
        let node = &mut self.nodes[before as usize];
        (node.runs, node.locks, node.children, node.near) = (upper, locks, 1, u32::from(here));
        (node.here, node.below, node.met) = (here, below, met);
        self.children.insert((parent, head.stream, head.offset), before);
        self.children.insert((before, first.stream, first.offset), id);
        before
    }

    pub fn lock(&mut self, mut id: u32) {
        while id != ROOT {
            let node = &mut self.nodes[id as usize];
            if node.locks == 0 {
                self.evictable -= node.tokens;
                if node.near == 0 {
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
                if node.near == 0 {
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
            let (parent, n) = (node.parent, node.tokens);
            gone += n;
            self.free += n;
            self.evictable -= n;
            if self.host.is_some() && self.stays(id) {
                self.nodes[id as usize].here = false;
                self.lies(id);
            } else {
                self.remove(id);
            }
            let above = &mut self.nodes[parent as usize];
            above.near -= 1;
            if parent != ROOT && above.near == 0 && above.locks == 0 {
                self.leaves.insert((above.used, parent));
            }
        }
    }

    /// A node is no more in the tree.
    fn remove(&mut self, id: u32) {
        let node = &self.nodes[id as usize];
        debug_assert_eq!(node.children, 0, "nothing follows what is given up");
        let (parent, first) = (node.parent, node.runs[0]);
        self.children.remove(&(parent, first.stream, first.offset));
        self.spare.push(id);
        self.nodes[parent as usize].children -= 1;
    }

    /// Whether the host has a copy of what the chip gives up, which it may get now.
    fn stays(&mut self, id: u32) -> bool {
        let late = self.host.as_ref().is_some_and(|h| h.after.is_none());
        self.nodes[id as usize].below || (late && self.copy(id))
    }

    /// A node that only the host has can be given up there, if none follows it.
    fn lies(&mut self, id: u32) {
        let node = &self.nodes[id as usize];
        let Some(host) = self.host.as_mut().filter(|_| !node.here && node.children == 0 && id != ROOT) else { return };
        host.leaves.insert((node.used, id));
    }

    /// Copies a node to the host; false where there is no room.
    fn copy(&mut self, id: u32) -> bool {
        let n = u64::from(self.nodes[id as usize].tokens);
        if !self.make_room_below(n) {
            return false;
        }
        let Some(host) = &mut self.host else { return false };
        host.tiers.host().fill(n);
        self.nodes[id as usize].below = true;
        true
    }

    /// Makes room for tokens in the host if it can; leaves are given up whole.
    fn make_room_below(&mut self, tokens: u64) -> bool {
        let Some(host) = &self.host else { return false };
        let mut gone = if host.tiers.room() < tokens { 0 } else { tokens };
        while gone < tokens {
            let Some((_, id)) = self.host.as_mut().and_then(|h| h.leaves.pop_first()) else { break };
            let node = &self.nodes[id as usize];
            let (parent, n) = (node.parent, u64::from(node.tokens));
            gone += n;
            self.remove(id);
            if let Some(host) = &mut self.host {
                host.tiers.host().lose(n);
            }
            self.lies(parent);
        }
        self.host.as_ref().is_some_and(|h| h.tiers.room() >= tokens)
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

    /// The first `tokens` of a request enter the tree, which it keeps locked; what was there already is free again. A chunk of
    /// a prompt does not count as meeting what is there.
    pub fn store(&mut self, hold: &mut Hold, place: Place, id: u64, tokens: u32, chunk: bool) {
        self.copied = 0;
        if !self.caching || tokens <= hold.locked {
            return;
        }
        self.read(place, id, tokens);
        let (mut at, found) = self.descend(tokens);
        let twice = (found - self.revive(at)).saturating_sub(hold.locked);
        if found < tokens {
            at = self.hang(at, found, tokens);
        }
        self.free += twice;
        hold.beside -= tokens - hold.locked;
        self.lock(at);
        self.unlock(hold.node);
        (hold.node, hold.locked) = (at, tokens);
        if self.host.is_some() {
            self.meet(at, chunk);
        }
    }

    /// Nodes down to this one were met, and are copied where that was often enough.
    fn meet(&mut self, mut at: u32, chunk: bool) {
        let Some(after) = self.host.as_ref().and_then(|h| h.after) else { return };
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        while at != ROOT {
            line.push(at);
            at = self.nodes[at as usize].parent;
        }
        let mut copied = true;
        for id in line.iter().rev().copied() {
            let node = &mut self.nodes[id as usize];
            node.met += u32::from(!chunk);
            if !chunk && copied && !node.below && node.met >= after {
                self.copy(id);
            }
            let node = &self.nodes[id as usize];
            copied &= node.below;
            self.copied += if copied { node.tokens } else { 0 };
        }
        self.line = line;
    }

    /// What of a request the host has goes on to storage.
    pub fn write_down(&mut self, below: &mut Below) {
        let copied = self.copied;
        if let Some(tiers) = self.tiers_mut().filter(|t| t.storage().is_some()) {
            tiers.write(below, copied);
        }
    }

    /// Pages of a request that can be fetched from storage: none where the host has no copy of what they follow. They are at
    /// least so many tokens, and those of all requests take at most a share of the host.
    pub fn pages(&mut self, below: &Below, place: Place, id: u64, known: u32, rules: (u32, f64)) -> Option<(u32, u32)> {
        let page = self.tiers()?.storage()?;
        let (_, found) = self.find(place, id, known - 1);
        let (end, deep) = self.deep;
        let found = found + deep;
        if known - found < rules.0 || (end != ROOT && !self.nodes[end as usize].below) {
            return None;
        }
        let tiers = self.tiers_mut()?;
        let (host, coming) = tiers.coming();
        if coming as f64 >= rules.1 * host as f64 {
            return None;
        }
        let pages = tiers.find(below, found / page, (known - 1) / page);
        let enough = pages > 0 && pages * page >= rules.0 && self.make_room_below(u64::from(pages * page));
        // What they follow may have given way to them.
        let (_, again) = self.find(place, id, known - 1);
        Some((found / page, pages)).filter(|_| enough && again + self.deep.1 == found)
    }

    /// A request waits no longer for pages: what has come is in the host.
    pub fn stop(&mut self, below: &Below, place: Place, id: u64, now: Ns) {
        let Some(Coming { first, .. }) = below.coming else { return };
        let Some(tiers) = self.tiers_mut() else { return };
        let (pages, page) = (tiers.stop(below, id, now), tiers.storage().unwrap_or(1));
        let tokens = (first + pages) * page;
        if pages == 0 {
            return;
        }
        self.read(place, id, tokens);
        let (at, found) = self.descend(tokens);
        // What it follows may have gone since, or the chip alone may have it.
        if found >= tokens || (at != ROOT && !self.nodes[at as usize].below) || found < first * page {
            return;
        }
        let leaf = self.hang(at, found, tokens);
        self.evictable -= tokens - found;
        self.leaves.remove(&(self.clock, leaf));
        let node = &mut self.nodes[leaf as usize];
        (node.here, node.below) = (false, true);
        self.nodes[at as usize].near -= 1;
        let above = &self.nodes[at as usize];
        if at != ROOT && above.here && above.near == 0 && above.locks == 0 {
            self.leaves.insert((above.used, at));
        }
        self.lies(leaf);
        if let Some(host) = &mut self.host {
            host.tiers.host().fill(u64::from(tokens - found));
        }
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
        self.joins(at);
        let above = &mut self.nodes[at as usize];
        above.children += 1;
        if let Some(host) = &mut self.host {
            host.leaves.remove(&(above.used, at));
        }
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
