//! What decodes, kept apart from the scheduler: all of them get one token in each step.
//!
//! Taken at once, steps only need counts: who ends next, how many need a block in which step. Taken one by one, each request
//! has its own counters: tokens to its next block, tokens to its end.

use crate::Ns;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub(super) decodes: Decodes,
    pub(super) decoding: u32,
    pub(super) context: u64,
    /// Nanoseconds that no coming step of decodes is shorter than; 0 where not known.
    pub(super) least: Ns,
    /// The one prompt that is not computed whole.
    pub(super) prompt: Option<u32>,
    /// Whose first token is in the step under way.
    pub(super) fresh: Vec<u32>,
    /// Who ends at the end of a step under way.
    ends: VecDeque<(Ns, u32)>,
    /// How many of them end by themselves; the others once the next step is launched.
    ready: usize,
    /// The tokens of the last step are taken up when the next is launched.
    pub(super) open: bool,
}

/// A request that decodes: its place among admissions, its tokens so far, steps to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decode {
    pub(super) slot: u32,
    pub(super) admitted: u64,
    pub(super) computed: u32,
    pub(super) left: u32,
}

#[derive(Clone, Debug)]
pub(super) enum Decodes {
    Counts(Counts),
    Rows(Rows),
}

/// Requests that decode, as counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Steps so far.
    phase: u64,
    /// Requests by the phases, modulo the size of a block, at which they need a new one.
    classes: Vec<u32>,
    /// Who is given its last token in which phase; of equals the one admitted first.
    last: BinaryHeap<Reverse<(u64, u64, u32)>>,
}

/// Requests that decode, one by one, in the order in which they were admitted.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    size: u32,
    slots: Vec<u32>,
    /// Steps to the end of each.
    left: Vec<u32>,
    /// Steps before the one in which each needs a block.
    room: Vec<u32>,
    /// How many need a block in the next step.
    need: u32,
}

impl Lane {
    /// Blocks hold `size` tokens; steps are taken one by one or at once.
    pub(super) fn new(size: u32, one_by_one: bool) -> Self {
        let decodes = if one_by_one {
            Decodes::Rows(Rows { size, ..Rows::default() })
        } else {
            Decodes::Counts(Counts { classes: vec![0; size as usize], ..Counts::default() })
        };
        let (fresh, ends) = (Vec::new(), VecDeque::new());
        Self { decodes, decoding: 0, context: 0, least: 0, prompt: None, fresh, ends, ready: 0, open: false }
    }

    pub(super) fn next(&self) -> Option<Ns> {
        self.ends.front().filter(|_| self.ready > 0).map(|e| e.0)
    }

    /// A request ends with the last step.
    pub(super) fn ends(&mut self, end: Ns, slot: u32) {
        self.ends.push_back((end, slot));
        self.ready += usize::from(!self.open);
    }

    /// The tokens of the last step are taken up, not before this time.
    pub(super) fn take_up(&mut self, at: Ns) {
        self.ready = self.ends.len();
        for end in &mut self.ends {
            end.0 = end.0.max(at);
        }
        self.open = false;
    }

    /// Who ends at this time.
    pub(super) fn end(&mut self, at: Ns) -> Option<u32> {
        let (_, slot) = self.ends.pop_front_if(|e| e.0 == at && self.ready > 0)?;
        self.ready -= 1;
        Some(slot)
    }

    pub(super) fn ending(&self, slot: u32) -> bool {
        self.ends.iter().any(|e| e.1 == slot)
    }

    /// A time before which nobody ends: who ends first has so many steps to go, none shorter than the last.
    pub(super) fn soonest(&self, device: Ns) -> Option<Ns> {
        if let Some((end, _)) = self.ends.front() {
            return Some(*end);
        }
        let left = self.decodes.first_end().filter(|_| self.prompt.is_none())?;
        Some(device + left * self.least)
    }

    /// One more decodes from the next step on.
    pub(super) fn add(&mut self, one: Decode) {
        self.decoding += 1;
        self.context += u64::from(one.computed);
        match &mut self.decodes {
            Decodes::Counts(c) => {
                *c.class(one.computed) += 1;
                c.last.push(Reverse((c.phase + u64::from(one.left) - 1, one.admitted, one.slot)));
            }
            Decodes::Rows(r) => {
                r.slots.push(one.slot);
                r.left.push(one.left);
                let room = (r.size - one.computed % r.size) % r.size;
                r.room.push(room);
                r.need += u32::from(room == 0);
            }
        }
    }

    /// One of those given their last token, in the order of their admission; `computed` tells its tokens.
    pub(super) fn ended(&mut self, computed: impl Fn(u32) -> u32) -> Option<u32> {
        let slot = match &mut self.decodes {
            Decodes::Counts(c) => {
                let Reverse((_, _, slot)) = *c.last.peek().filter(|Reverse((phase, ..))| *phase < c.phase)?;
                c.last.pop();
                *c.class(computed(slot)) -= 1;
                slot
            }
            Decodes::Rows(r) => {
                let at = r.left.iter().position(|left| *left == 0)?;
                r.left.remove(at);
                r.need -= u32::from(r.room.remove(at) == 0);
                r.slots.remove(at)
            }
        };
        self.decoding -= 1;
        self.context -= u64::from(computed(slot));
        self.least = 0;
        Some(slot)
    }
}

impl Decodes {
    /// Steps until the first is given its last token.
    fn first_end(&self) -> Option<u64> {
        match self {
            Self::Counts(c) => c.first_end(),
            Self::Rows(r) => r.left.iter().min().map(|left| u64::from(*left)),
        }
    }

    /// Blocks that the next step needs.
    pub(super) fn need(&self) -> u32 {
        match self {
            Self::Counts(c) => c.classes[(c.phase % c.classes.len() as u64) as usize],
            Self::Rows(r) => r.need,
        }
    }

    /// A step of everybody.
    pub(super) fn step(&mut self) {
        match self {
            Self::Counts(c) => c.phase += 1,
            Self::Rows(r) => {
                r.step();
            }
        }
    }

    /// Everybody, with the steps to its end, in the order of slots.
    pub(super) fn left(&self) -> Vec<(u32, u32)> {
        let mut all: Vec<(u32, u32)> = match self {
            Self::Counts(c) => c.last.iter().map(|Reverse((p, _, slot))| (*slot, (p + 1 - c.phase) as u32)).collect(),
            Self::Rows(r) => r.slots.iter().copied().zip(r.left.iter().copied()).collect(),
        };
        all.sort_unstable();
        all
    }
}

impl Counts {
    /// Those who need a block when so many steps have passed as one with so many tokens does.
    fn class(&mut self, computed: u32) -> &mut u32 {
        let n = self.classes.len() as u64;
        &mut self.classes[((self.phase + n - u64::from(computed) % n) % n) as usize]
    }

    /// Steps until the first is given its last token.
    pub(super) fn first_end(&self) -> Option<u64> {
        self.last.peek().map(|Reverse((phase, ..))| phase + 1 - self.phase)
    }

    pub(super) fn pass(&mut self, steps: u64) {
        self.phase += steps;
    }

    /// Blocks that `steps` steps of so many need.
    pub(super) fn blocks(&self, steps: u64, decoding: u32) -> u64 {
        let n = self.classes.len();
        let (rounds, rest) = (steps / n as u64, (steps % n as u64) as usize);
        let from = (self.phase % n as u64) as usize;
        // The rest goes round the classes at most once.
        let (whole, over) = (n.min(from + rest), (from + rest).saturating_sub(n));
        let sum = |classes: &[u32]| classes.iter().map(|c| u64::from(*c)).sum::<u64>();
        rounds * u64::from(decoding) + sum(&self.classes[from..whole]) + sum(&self.classes[..over])
    }

    /// Most steps, at most `steps`, whose blocks are free.
    pub(super) fn afford(&self, steps: u64, decoding: u32, free: u32) -> u64 {
        if self.blocks(steps, decoding) <= free.into() {
            return steps;
        }
        let (mut low, mut high) = (0, steps);
        while high - low > 1 {
            let middle = u64::midpoint(low, high);
            if self.blocks(middle, decoding) <= free.into() { low = middle } else { high = middle }
        }
        low
    }
}

impl Rows {
    /// One token for each; true when somebody got its last.
    pub(super) fn step(&mut self) -> bool {
        let (mut ended, mut need) = (0, 0);
        for (left, room) in self.left.iter_mut().zip(&mut self.room) {
            *left -= 1;
            *room = if *room == 0 { self.size } else { *room } - 1;
            ended += u32::from(*left == 0);
            need += u32::from(*room == 0);
        }
        self.need = need;
        ended > 0
    }

    /// Blocks that the next step needs.
    pub(super) fn need(&self) -> u32 {
        self.need
    }
}
