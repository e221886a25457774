//! The free list: which block is reused next.
//!
//! One queue of runs: blocks whose content may still be found, one by one, and counts of blocks that hold nothing findable.
//! New blocks come from its front. Which physical block is taken cannot be seen from outside, so only blocks with content
//! have a number, as long as they have it.

use crate::chain::Chain;

/// A block with content, or so many free ones without.
#[derive(Clone, Copy, Debug)]
struct Item {
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
    items: Chain<Item>,
}

impl FreeList {
    pub(super) fn new(blocks: u32) -> Self {
        let mut all = Self { free: 0, items: Chain::new() };
        all.put_back(blocks);
        all
    }

    pub(super) fn free(&self) -> u32 {
        self.free
    }

    /// A block with content that one request holds.
    pub(super) fn content(&mut self) -> u32 {
        self.items.keep(Item { count: 0, holders: 1 })
    }

    pub(super) fn is_held(&self, block: u32) -> bool {
        self.items[block].holders > 0
    }

    /// One more request holds a block with content.
    pub(super) fn hold(&mut self, block: u32) {
        if !self.is_held(block) {
            self.items.take_out(block);
            self.free -= 1;
        }
        self.items[block].holders += 1;
    }

    /// One request less does; if it was the last, the block goes to the back.
    pub(super) fn release(&mut self, block: u32) {
        let item = &mut self.items[block];
        item.holders -= 1;
        if item.holders == 0 {
            self.items.put_last(block);
            self.free += 1;
        }
    }

    pub(super) fn put_back(&mut self, n: u32) {
        if n == 0 {
            return;
        }
        self.free += n;
        if let Some(last) = self.items.last().filter(|at| self.items[*at].count > 0) {
            self.items[last].count += n;
            return;
        }
        let item = self.items.keep(Item { count: n, holders: 0 });
        self.items.put_last(item);
    }

    pub(super) fn put_front(&mut self, n: u32) {
        if n == 0 {
            return;
        }
        self.free += n;
        if let Some(first) = self.items.first().filter(|at| self.items[*at].count > 0) {
            self.items[first].count += n;
            return;
        }
        let item = self.items.keep(Item { count: n, holders: 0 });
        self.items.put_first(item);
    }

    /// Takes from the front; `forget` is told of blocks that had content.
    pub(super) fn take(&mut self, mut n: u32, mut forget: impl FnMut(u32)) {
        self.free -= n;
        while n > 0 {
            let Some(item) = self.items.first() else { return };
            let front = &mut self.items[item];
            if front.count > n {
                front.count -= n;
                return;
            }
            n -= front.count.max(1);
            let content = front.count == 0;
            self.items.take_out(item);
            if content {
                forget(item);
            }
            self.items.forget(item);
        }
    }

    /// From front to back.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run> {
        self.items.iter().map(|(id, item)| if item.count > 0 { Run::Plain(item.count) } else { Run::Content(id) })
    }
}
