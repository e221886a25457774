//! The quick path: decodes as counts, steps between two events at once.

use super::{Flight, Replica, Sink, chunk};
use crate::Ns;
use crate::clock::{Clock, Stretch, single, whole};
use crate::engine::Share;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What decodes, as counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// Steps so far.
    phase: u64,
    /// Sequences by the phases, modulo the size of a block, at which they need a new one.
    classes: Vec<u32>,
    /// Who is given its last token in which phase; of equals the one admitted first.
    last: BinaryHeap<Reverse<(u64, u64, u32)>>,
    decoding: u32,
    context: u64,
    /// Nanoseconds that no coming step of decodes is shorter than; 0 where not known.
    least: Ns,
    /// The one prompt that is not computed whole.
    prompt: Option<u32>,
    /// Whose first token is in the step under way.
    fresh: Vec<u32>,
    /// Who ends at the end of a step under way.
    ends: VecDeque<(Ns, u32)>,
}

impl Lane {
    pub(super) fn next(&self) -> Option<Ns> {
        self.ends.front().map(|e| e.0)
    }

    /// A time before which nobody ends: who ends first has so many steps to go, none shorter than the last.
    pub(super) fn soonest(&self, device: Ns) -> Option<Ns> {
        if let Some(end) = self.next() {
            return Some(end);
        }
        let Reverse((phase, ..)) = self.last.peek().filter(|_| self.prompt.is_none())?;
        Some(device + (phase + 1 - self.phase) * self.least)
    }

    fn class(&mut self, phase: u64) -> &mut u32 {
        let n = self.classes.len() as u64;
        &mut self.classes[(phase % n) as usize]
    }

    /// Blocks that `steps` steps need.
    fn blocks(&self, steps: u64) -> u64 {
        let n = self.classes.len() as u64;
        let rounds = (steps / n) * u64::from(self.decoding);
        let rest = (0..steps % n).map(|j| u64::from(self.classes[((self.phase + j) % n) as usize]));
        rounds + rest.sum::<u64>()
    }

    /// Most steps, at most `steps`, whose blocks are free.
    fn afford(&self, steps: u64, free: u32) -> u64 {
        if self.blocks(steps) <= free.into() {
            return steps;
        }
        let (mut low, mut high) = (0, steps);
        while high - low > 1 {
            let middle = u64::midpoint(low, high);
            if self.blocks(middle) <= free.into() { low = middle } else { high = middle }
        }
        low
    }
}

impl Replica {
    /// Takes the state of the plain path over.
    pub(super) fn enter(&mut self, now: Ns) {
        let mut lane = Lane { classes: vec![0; self.engine.vllm().blocks.size() as usize], ..Lane::default() };
        let under_way = self.flights.back().is_some_and(|f| f.end > now);
        for at in 0..self.engine.vllm().running.len() {
            let slot = self.engine.vllm().running[at];
            let r = &self.engine.vllm().sequences[slot];
            if !r.settled {
                if at + 1 < self.engine.vllm().running.len() {
                    return;
                }
                lane.prompt = Some(slot);
                continue;
            }
            let given = r.sampled + r.pending;
            if given >= r.output {
                continue;
            }
            let left = u64::from(r.output - given);
            *lane.class(u64::from(lane.classes.len() as u32 - r.computed % lane.classes.len() as u32)) += 1;
            lane.last.push(Reverse((left - 1, r.admitted, slot)));
            lane.decoding += 1;
            lane.context += u64::from(r.computed);
        }
        // Ends under way; whoever has a token under way is not asked about it again.
        for flight in &self.flights {
            for share in &flight.shares {
                let r = &self.engine.vllm().sequences[share.slot];
                if r.first_token == flight.end {
                    lane.fresh.push(share.slot);
                }
                if share.samples && !r.done && r.sampled + r.pending >= r.output {
                    lane.ends.push_back((flight.end, share.slot));
                }
            }
        }
        debug_assert!(under_way || self.flights.is_empty());
        for at in 0..self.engine.vllm().running.len() {
            let slot = self.engine.vllm().running[at];
            let r = &mut self.engine.vllm_mut().sequences[slot];
            r.sampled += r.pending;
            (r.pending, r.flying) = (0, 0);
        }
        while let Some(flight) = self.flights.pop_front() {
            self.spare.push(flight.shares);
        }
        self.lane = Some(Box::new(lane));
    }

    /// Gives the state back to the plain path, at a call.
    pub(super) fn leave(&mut self, lane: Lane, now: Ns) {
        let mut left: Vec<(u32, u64)> = lane.last.iter().map(|Reverse((phase, _, slot))| (*slot, *phase)).collect();
        left.sort_unstable();
        let ending = |slot: u32| lane.ends.iter().any(|e| e.1 == slot);
        let under_way = self.lag() && self.device > now;
        let mut shares = self.spare.pop().unwrap_or_default();
        shares.clear();
        for at in 0..self.engine.vllm().running.len() {
            let slot = self.engine.vllm().running[at];
            let s = self.engine.vllm_mut();
            let r = &mut s.sequences[slot];
            let mut given = r.sampled;
            if let Ok(found) = left.binary_search_by_key(&slot, |l| l.0) {
                // It still gets the steps from this phase to its last.
                given = r.output - (left[found].1 + 1 - lane.phase) as u32;
            } else if ending(slot) {
                given = r.output;
            }
            if r.settled {
                r.computed = r.prompt + given - 1;
                r.last_token = self.device;
                r.stalled = self.totals.mixed;
                r.pending = u32::from(under_way);
                r.sampled = given - r.pending;
                r.flying = r.pending;
                let stored = r.computed - r.pending;
                let computed = r.computed;
                s.blocks.settle(&mut r.held[0], computed, stored);
            } else {
                r.flying = u32::from(under_way);
            }
            if under_way {
                let samples = r.settled;
                shares.push(Share { slot, tokens: 1, before: 0, drafts: 0, samples, decodes: true, admitted: false });
            }
        }
        if under_way {
            self.flights.push_back(Flight { end: self.device, shares });
        } else {
            self.spare.push(shares);
        }
    }

    /// One call, and all that follow it before `to` as long as nothing changes; false when it is for the plain path.
    pub(super) fn call_quick(
        &mut self,
        lane: &mut Lane,
        clock: &mut impl Clock,
        now: Ns,
        to: Ns,
        sink: &mut impl Sink,
    ) -> bool {
        let s = &self.engine.vllm().settings;
        let Some(mut budget) = s.max_num_batched_tokens.checked_sub(lane.decoding) else { return false };
        let free = self.engine.vllm().blocks.free();
        let need = *lane.class(lane.phase);
        let rest = lane.prompt.map(|slot| {
            let r = &self.engine.vllm().sequences[slot];
            (slot, (r.known() - r.computed).min(budget), r.computed)
        });
        let more = rest.map_or(0, |(slot, n, before)| {
            self.engine.vllm().blocks.missing(&self.engine.vllm().sequences[slot].held, before + n)
        });
        if need + more > free {
            return false;
        }
        self.engine.vllm_mut().decision.clear();
        self.engine.vllm_mut().blocks.take_ahead(need);
        if let Some((slot, n, before)) = rest.filter(|r| r.1 > 0) {
            self.engine.vllm_mut().give(slot, n, before, &mut budget, false);
        }
        self.engine.vllm_mut().admit(&mut budget, u32::MAX, false);
        let start = now.max(self.device);
        if self.engine.vllm().decision.shares.is_empty() {
            if lane.decoding == 0 {
                self.due = (self.device > now).then_some(self.device);
                return true;
            }
            self.jump(lane, clock, start, to, need, sink);
            return true;
        }
        self.mixed_quick(lane, clock, now, start, sink);
        true
    }

    /// A step with prompts.
    fn mixed_quick(&mut self, lane: &mut Lane, clock: &mut impl Clock, now: Ns, start: Ns, sink: &mut impl Sink) {
        self.chunks.clear();
        let mut tokens = 0;
        for share in &self.engine.vllm().decision.shares {
            tokens += share.tokens;
            self.chunks.push(chunk(share));
        }
        let took = clock.mixed(lane.decoding, lane.context, 0.0, &self.chunks);
        let end = start + took.step;
        self.run = None;
        self.totals.steps += 1;
        self.count_mixed(took.step, tokens);
        if lane.decoding > 0 {
            sink.gaps(start, single(end - self.device), lane.decoding);
        }
        let decoded = lane.decoding;
        lane.context += u64::from(lane.decoding);
        lane.least = 0;
        self.device = end;
        let due = if self.lag() { start.max(now + took.launch) } else { end };
        self.due = Some(due);
        self.take_up(lane, now, due);
        self.retire(lane, end);
        lane.phase += 1;
        lane.prompt = None;
        for at in 0..self.engine.vllm().decision.shares.len() {
            let share = self.engine.vllm().decision.shares[at];
            self.note_share(&share, now);
            let mixed = self.totals.mixed;
            let r = &mut self.engine.vllm_mut().sequences[share.slot];
            r.computed += share.tokens;
            if r.computed < r.known() {
                lane.prompt = Some(share.slot);
                continue;
            }
            r.settled = true;
            r.stalled = mixed;
            if r.first_token == Ns::MAX {
                (r.first_token, r.stalls) = (end, mixed);
                lane.fresh.push(share.slot);
            } else {
                r.lost += start - r.last_token;
                sink.gaps(start, single(end - r.last_token), 1);
            }
            r.sampled += 1;
            let left = u64::from(r.output - r.sampled);
            let size = lane.classes.len() as u32;
            let (computed, admitted) = (r.computed, r.admitted);
            if left == 0 {
                lane.ends.push_back((end, share.slot));
                continue;
            }
            *lane.class(lane.phase + u64::from(size - computed % size)) += 1;
            lane.last.push(Reverse((lane.phase + left - 1, admitted, share.slot)));
            lane.decoding += 1;
            lane.context += u64::from(computed);
        }
        sink.steps(start, end, decoded, tokens);
        sink.mixed(start, self);
    }

    /// The host takes the tokens of the step under way up when it has launched the next.
    fn take_up(&mut self, lane: &mut Lane, now: Ns, due: Ns) {
        if self.lag() {
            lane.ends.iter_mut().for_each(|end| end.0 = end.0.max(due));
            for slot in &lane.fresh {
                let r = self.engine.sequence_mut(*slot);
                if r.first_token > now {
                    r.first_token = r.first_token.max(due);
                }
            }
        }
        lane.fresh.clear();
    }

    /// Those given their last token in this phase end with its step.
    fn retire(&mut self, lane: &mut Lane, end: Ns) {
        while let Some(Reverse((phase, _, slot))) = lane.last.peek().copied() {
            if phase > lane.phase {
                return;
            }
            lane.last.pop();
            lane.least = 0;
            let r = &mut self.engine.vllm_mut().sequences[slot];
            r.stalled = self.totals.mixed;
            let computed = r.prompt + r.output - 1;
            lane.decoding -= 1;
            lane.context -= u64::from(computed);
            // It would have needed its next block in this phase or a later one: that of its computed tokens.
            let size = lane.classes.len() as u32;
            let next = lane.phase + 1 + u64::from(size - computed % size);
            *lane.class(next) -= 1;
            lane.ends.push_back((end, slot));
        }
    }

    /// Steps of decodes alone, until a request ends, blocks run out or a call would come at `to` or later.
    /// The blocks of the first are taken.
    fn jump(&mut self, lane: &mut Lane, clock: &mut impl Clock, start: Ns, to: Ns, taken: u32, sink: &mut impl Sink) {
        let first_end = lane.last.peek().map_or(lane.phase, |Reverse((phase, ..))| *phase);
        let most = lane.afford(first_end + 1 - lane.phase, self.engine.vllm().blocks.free() + taken).max(1);
        lane.fresh.clear();
        // Who ends gives its place back before the call at that time.
        let to = lane.next().map_or(to, |end| end.min(to));
        let (from, mut sum) = self.run_at(start);
        let ahead = u64::from(self.lag());
        let began = start;
        let (mut steps, mut before_last) = (0, start);
        while steps < most {
            let stretch = clock.run(lane.decoding, lane.context);
            let end = |parts| from + whole(sum + parts);
            // The first step of all is called for already.
            let called = if steps == 0 {
                0
            } else if ahead > 0 {
                before_last
            } else {
                end(0)
            };
            let k = calls_before(stretch, most - steps, to, end, called, ahead);
            if k == 0 {
                break;
            }
            lane.least = if stretch.more >= 0 { whole(stretch.first) / 10 * 9 } else { 0 };
            let mut waits = Stretch { steps: k, ..stretch };
            if steps == 0 && start > self.device {
                // The chips waited for the host before the first.
                sink.gaps(start, single(end(stretch.first) - self.device), lane.decoding);
                waits = Stretch { first: stretch.at(1), steps: k - 1, ..stretch };
            }
            sink.gaps(from + whole(sum), waits, lane.decoding);
            before_last = from + whole(sum + stretch.sum(k - 1));
            sum += stretch.sum(k);
            lane.context += k * u64::from(lane.decoding);
            steps += k;
            if k < stretch.steps && steps < most {
                break;
            }
        }
        let end = from + whole(sum);
        let more = lane.blocks(steps) as u32 - taken;
        self.engine.vllm_mut().blocks.take_ahead(more);
        let decoded = lane.decoding;
        self.run = Some((from, sum));
        self.device = end;
        self.due = Some(if self.lag() { before_last } else { end });
        self.totals.steps += steps;
        self.totals.busy += end - began;
        lane.phase += steps - 1;
        self.retire(lane, end);
        lane.phase += 1;
        sink.steps(began, end, decoded, 0);
    }

    /// Ends the requests whose step ends at `end`.
    pub(super) fn apply_quick(&mut self, end: Ns, sink: &mut impl Sink) -> bool {
        let Some(mut lane) = self.lane.take() else { return false };
        while let Some((_, slot)) = lane.ends.pop_front_if(|e| e.0 == end) {
            let s = self.engine.vllm_mut();
            let r = &mut s.sequences[slot];
            let computed = r.prompt + r.output - 1;
            s.blocks.settle(&mut r.held[0], computed, computed);
            s.end(slot);
            let r = &s.sequences[slot];
            sink.finished(r, end, r.stalled - r.stalls);
        }
        self.lane = Some(lane);
        true
    }
}

/// How many of `most` steps of a stretch are called for before `to`: the first at `called`, a later one when the one before it
/// ends or, with overlap, starts.
fn calls_before(stretch: Stretch, most: u64, to: Ns, end: impl Fn(i64) -> Ns, called: Ns, ahead: u64) -> u64 {
    let most = most.min(stretch.steps);
    let in_time = |k: u64| if k == 1 { called < to } else { end(stretch.sum(k - 1 - ahead)) < to };
    if in_time(most) {
        return most;
    }
    let (mut low, mut high) = (0, most);
    while high - low > 1 {
        let middle = u64::midpoint(low, high);
        if in_time(middle) { low = middle } else { high = middle }
    }
    low
}
