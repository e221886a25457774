//! A list in an order that changes: things keep their number while they move to an end or leave.

use std::ops::{Index, IndexMut};

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Link<T> {
    previous: u32,
    next: u32,
    value: T,
}

#[derive(Clone, Debug)]
pub(crate) struct Chain<T> {
    links: Vec<Link<T>>,
    spare: Vec<u32>,
    first: u32,
    last: u32,
}

impl<T> Chain<T> {
    pub(crate) fn new() -> Self {
        Self { links: Vec::new(), spare: Vec::new(), first: NONE, last: NONE }
    }

    /// Something that stands nowhere yet, and its number.
    pub(crate) fn keep(&mut self, value: T) -> u32 {
        let link = Link { previous: NONE, next: NONE, value };
        if let Some(at) = self.spare.pop() {
            self.links[at as usize] = link;
            return at;
        }
        self.links.push(link);
        self.links.len() as u32 - 1
    }

    /// Its number may be given to another.
    pub(crate) fn forget(&mut self, at: u32) {
        self.spare.push(at);
    }

    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    pub(crate) fn last(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    pub(crate) fn put_last(&mut self, at: u32) {
        let old = self.last;
        let link = &mut self.links[at as usize];
        (link.previous, link.next) = (old, NONE);
        match old {
            NONE => self.first = at,
            old => self.links[old as usize].next = at,
        }
        self.last = at;
    }

    pub(crate) fn put_first(&mut self, at: u32) {
        let old = self.first;
        let link = &mut self.links[at as usize];
        (link.previous, link.next) = (NONE, old);
        match old {
            NONE => self.last = at,
            old => self.links[old as usize].previous = at,
        }
        self.first = at;
    }

    pub(crate) fn take_out(&mut self, at: u32) {
        let Link { previous, next, .. } = self.links[at as usize];
        match previous {
            NONE => self.first = next,
            p => self.links[p as usize].next = next,
        }
        match next {
            NONE => self.last = previous,
            n => self.links[n as usize].previous = previous,
        }
    }

    /// From front to back.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let mut at = self.first;
        std::iter::from_fn(move || {
            let id = at;
            let link = self.links.get(id as usize)?;
            at = link.next;
            Some((id, &link.value))
        })
    }
}

impl<T> Index<u32> for Chain<T> {
    type Output = T;

    fn index(&self, at: u32) -> &T {
        &self.links[at as usize].value
    }
}

impl<T> IndexMut<u32> for Chain<T> {
    fn index_mut(&mut self, at: u32) -> &mut T {
        &mut self.links[at as usize].value
    }
}
