//! Requests inside an engine, and the slots they are in.

use crate::Ns;
use crate::blocks::{Held, Place};
use crate::tiers::Below;
use std::ops::{Index, IndexMut};

/// A request inside an engine.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// The request, in the words of whoever sent it.
    pub id: u64,
    pub arrival: Ns,
    /// Lower goes first.
    pub priority: i32,
    /// Tells requests of equal priority and arrival apart.
    pub rank: u64,
    /// 0: none.
    pub adapter: u32,
    pub prompt: u32,
    pub output: u32,
    pub sampled: u32,
    pub computed: u32,
    /// Tokens of steps in flight, own and drafted, that have not arrived.
    pub pending: u32,
    /// Drafts to check in the next step.
    pub drafts: u32,
    pub place: Place,
    pub held: Vec<Held>,
    pub preempted: u32,
    /// Steps in flight that it has a share of.
    pub flying: u32,
    pub done: bool,
    /// Its place among admissions.
    pub admitted: u64,
    pub first_scheduled: Ns,
    pub first_token: Ns,
    /// How long the tokens of that step are handed out, its own last.
    pub handed: Ns,
    /// When its latest token comes.
    pub last_token: Ns,
    /// Prompt tokens found at the first admission; tokens computed again after evictions.
    pub cached: u32,
    pub recomputed: u32,
    /// Time of steps with prompts so far, when its first and its latest token were scheduled.
    pub stalls: Ns,
    pub stalled: Ns,
    /// It samples a token in each step from now on.
    pub settled: bool,
    /// Checks of drafts so far.
    pub verified: u32,
    /// Time without a token because it was evicted.
    pub lost: Ns,
    /// Prompt tokens that were found, brought or given so far, whether or not they were lost again.
    pub reached: u32,
    /// Prompt tokens whose cache it brings along, until it is evicted.
    pub brought: u32,
    /// When the replica that computed its prompt was done with it.
    pub sent: Ns,
    /// Its blocks stay after its end, until they are let go.
    pub kept: bool,
    /// Time since its first attempt, at its arrival.
    pub before: Ns,
    /// Whose it is.
    pub class: u32,
    /// What of it is in tiers below the chip's memory; none where there are none.
    pub below: Option<Box<Below>>,
}

impl Sequence {
    pub fn new(id: u64, arrival: Ns, prompt: u32, output: u32) -> Self {
        Self {
            id,
            arrival,
            priority: 0,
            rank: id,
            adapter: 0,
            prompt,
            output,
            sampled: 0,
            computed: 0,
            pending: 0,
            drafts: 0,
            place: Place::PRIVATE,
            held: Vec::new(),
            preempted: 0,
            flying: 0,
            done: false,
            admitted: 0,
            first_scheduled: Ns::MAX,
            first_token: Ns::MAX,
            handed: 0,
            last_token: 0,
            cached: 0,
            recomputed: 0,
            stalls: 0,
            stalled: 0,
            settled: false,
            verified: 0,
            lost: 0,
            reached: 0,
            brought: 0,
            sent: 0,
            kept: false,
            before: 0,
            class: 0,
            below: None,
        }
    }

    /// A request whose prompt, and first token, another replica computed until `sent`.
    #[must_use]
    pub fn bringing(self, sent: Ns) -> Self {
        Self { brought: self.prompt, reached: self.prompt, sampled: 1, settled: true, sent, ..self }
    }

    /// Prompt and sampled tokens.
    pub fn known(&self) -> u32 {
        self.prompt + self.sampled
    }
}

/// Requests inside an engine, each in a slot until nothing of it is left or under way; then the slot is used again.
#[derive(Clone, Debug)]
pub struct Slots {
    all: Vec<Sequence>,
    spare: Vec<u32>,
    /// Groups of layers with blocks of their own.
    groups: usize,
}

impl Slots {
    pub fn new(groups: usize) -> Self {
        Self { all: Vec::new(), spare: Vec::new(), groups }
    }

    pub fn add(&mut self, sequence: Sequence) -> u32 {
        let slot = self.spare.pop().unwrap_or_else(|| {
            self.all.push(Sequence::new(0, 0, 0, 0));
            self.all.len() as u32 - 1
        });
        let mut held = std::mem::take(&mut self[slot].held);
        held.resize(self.groups, Held::default());
        self[slot] = Sequence { held, ..sequence };
        slot
    }

    /// A step that gave it a share has ended; true when that was the last of a request that is gone.
    pub fn lands(&mut self, slot: u32) -> bool {
        let r = &mut self[slot];
        r.flying -= 1;
        let last = r.done && r.flying == 0 && !r.kept;
        if last {
            self.spare.push(slot);
        }
        last
    }

    /// A request is gone and its blocks are given back; true when nothing of it is under way.
    pub fn leaves(&mut self, slot: u32) -> bool {
        let r = &mut self[slot];
        (r.place, r.kept) = (Place::PRIVATE, false);
        let last = r.flying == 0;
        if last {
            self.spare.push(slot);
        }
        last
    }

    /// All slots, with who was in them last.
    pub fn all(&self) -> std::slice::Iter<'_, Sequence> {
        self.all.iter()
    }
}

impl Index<u32> for Slots {
    type Output = Sequence;

    fn index(&self, slot: u32) -> &Sequence {
        &self.all[slot as usize]
    }
}

impl IndexMut<u32> for Slots {
    fn index_mut(&mut self, slot: u32) -> &mut Sequence {
        &mut self.all[slot as usize]
    }
}
