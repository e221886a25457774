//! The free list: which block is reused next.
//!
//! One queue of runs: blocks whose content may still be found, one by one, and counts of blocks that hold nothing findable.
//! New blocks come from its front. Which physical block is taken cannot be seen from outside, so only blocks with content
//! have a number, as long as they have it.

use super::NONE;

/// A block with content, or so many free ones without.
#[derive(Clone, Copy, Debug)]
struct Item {
    previous: u32,
    next: u32,
    /// Free blocks without content; 0 for a block with.
    count: u32,
    holders: u32,
}

/// What stands in the queue.
pub(super) enum Run {
    Plain(u32),
    Content(u32),
}

#[derive(Clone, Debug)]
pub(super) struct FreeList {
    free: u32,
    items: Vec<Item>,
    spare: Vec<u32>,
    first: u32,
    last: u32,
}

impl FreeList {
    pub(super) fn new(blocks: u32) -> Self {
        let mut all = Self { free: 0, items: Vec::new(), spare: Vec::new(), first: NONE, last: NONE };
        all.put_back(blocks);
        all
    }

    pub(super) fn free(&self) -> u32 {
        self.free
    }

    /// A block with content that one request holds.
    pub(super) fn content(&mut self) -> u32 {
        self.item(0, 1)
    }

    pub(super) fn is_held(&self, block: u32) -> bool {
        self.items[block as usize].holders > 0
    }

    /// One more request holds a block with content.
    pub(super) fn hold(&mut self, block: u32) {
        if !self.is_held(block) {
            self.unlink(block);
            self.free -= 1;
        }
        self.items[block as usize].holders += 1;
    }

    /// One request less does; if it was the last, the block goes to the back.
    pub(super) fn release(&mut self, block: u32) {
        let item = &mut self.items[block as usize];
        item.holders -= 1;
        if item.holders == 0 {
            self.link_back(block);
            self.free += 1;
        }
    }

    pub(super) fn put_back(&mut self, n: u32) {
        if n == 0 {
            return;
        }
        self.free += n;
        if self.last != NONE && self.items[self.last as usize].count > 0 {
            self.items[self.last as usize].count += n;
            return;
        }
        let item = self.item(n, 0);
        self.link_back(item);
    }

    pub(super) fn put_front(&mut self, n: u32) {
        if n == 0 {
            return;
        }
        self.free += n;
        if self.first != NONE && self.items[self.first as usize].count > 0 {
            self.items[self.first as usize].count += n;
            return;
        }
        let item = self.item(n, 0);
        let old = self.first;
        self.items[item as usize].next = old;
        match old {
            NONE => self.last = item,
            old => self.items[old as usize].previous = item,
        }
        self.first = item;
    }

    /// Takes from the front; `forget` is told of blocks that had content.
    pub(super) fn take(&mut self, mut n: u32, mut forget: impl FnMut(u32)) {
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
                forget(item);
            }
            self.spare.push(item);
        }
    }

    /// From front to back.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run> {
        let mut at = self.first;
        std::iter::from_fn(move || {
            let id = at;
            let item = self.items.get(id as usize)?;
            at = item.next;
            Some(if item.count > 0 { Run::Plain(item.count) } else { Run::Content(id) })
        })
    }

    fn item(&mut self, count: u32, holders: u32) -> u32 {
        let item = Item { previous: NONE, next: NONE, count, holders };
        if let Some(id) = self.spare.pop() {
            self.items[id as usize] = item;
            return id;
        }
        self.items.push(item);
        self.items.len() as u32 - 1
    }

    fn link_back(&mut self, item: u32) {
        let old = self.last;
        let at = &mut self.items[item as usize];
        (at.previous, at.next) = (old, NONE);
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
}
