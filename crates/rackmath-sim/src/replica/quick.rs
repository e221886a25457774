//! Decodes apart from the scheduler: steps between two events one by one over dense counters, or at once.

use super::lane::{Decode, Decodes, Lane};
use super::{Flight, Pace, Replica, Sink, Timing, chunk};
use crate::Ns;
use crate::clock::{Clock, Stretch, single, whole};
use crate::engine::{Loads, Share};

/// When the first step begins, and how long after the begin of one the next but one is chosen.
type First = (Ns, Ns);

impl Replica {
    /// Takes the state of the general path over.
    pub(super) fn enter(&mut self) {
        let mut lane = Lane::new(self.engine.vllm().blocks.size(), self.pace == Pace::Steps);
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
            lane.add(Decode { slot, admitted: r.admitted, computed: r.computed, left: r.output - given });
        }
        // Ends under way; whoever has a token under way is not asked about it again.
        lane.open = self.open;
        for flight in &self.flights {
            for share in &flight.shares {
                let r = &self.engine.vllm().sequences[share.slot];
                if !share.decodes && r.first_token == flight.end {
                    lane.fresh.push(share.slot);
                }
                if share.samples && !r.done && r.sampled + r.pending >= r.output {
                    lane.ends(flight.end, share.slot);
                }
            }
        }
        debug_assert!(self.flights.len() == usize::from(self.open));
        self.open = false;
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

    /// Gives the state back to the general path, at a call.
    pub(super) fn leave(&mut self, lane: Lane) {
        let left = lane.decodes.left();
        let under_way = lane.open;
        let mut shares = self.spare.pop().unwrap_or_default();
        shares.clear();
        for at in 0..self.engine.vllm().running.len() {
            let slot = self.engine.vllm().running[at];
            let s = self.engine.vllm_mut();
            let r = &mut s.sequences[slot];
            let mut given = r.sampled;
            if let Ok(found) = left.binary_search_by_key(&slot, |l| l.0) {
                given = r.output - left[found].1;
            } else if lane.ending(slot) {
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
                let (samples, decodes) = (r.settled, !lane.fresh.contains(&slot));
                shares.push(Share { slot, tokens: 1, before: 0, drafts: 0, samples, decodes, admitted: false });
            }
        }
        self.open = under_way;
        if under_way {
            self.flights.push_back(Flight { end: self.device, shares });
        } else {
            self.spare.push(shares);
        }
    }

    /// One call, and all that follow it before `to` as long as nothing changes; false when it is for the general path.
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
        let need = lane.decodes.need();
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
        if self.engine.vllm().decision.shares.is_empty() {
            if lane.decoding == 0 {
                self.due = lane.open.then_some(self.device.max(now));
                self.take_up_quick(lane, now);
                return true;
            }
            let host = self.host(|| clock.host(lane.decoding));
            self.take_up_quick(lane, now + host.launch);
            let start = self.device.max(now + host.prepare);
            // Who ends gives its place back before the call at that time.
            let to = lane.next().map_or(to, |end| end.min(to));
            match lane.decodes {
                Decodes::Counts(_) => self.jump(lane, clock, (start, host.choose), to, need, sink),
                Decodes::Rows(_) => self.walk(lane, clock, (start, host.choose), to, sink),
            }
            return true;
        }
        self.mixed_quick(lane, clock, now, sink);
        true
    }

    /// A step with prompts.
    fn mixed_quick(&mut self, lane: &mut Lane, clock: &mut impl Clock, now: Ns, sink: &mut impl Sink) {
        self.chunks.clear();
        let mut tokens = 0;
        for share in &self.engine.vllm().decision.shares {
            tokens += share.tokens;
            self.chunks.push(chunk(share));
        }
        let took = clock.mixed(lane.decoding, lane.context, 0.0, &self.chunks);
        self.totals.steps += 1;
        let timing = self.mixed(took, true, now, Loads::default());
        let Timing { start, end, host, .. } = timing;
        self.count_mixed(end - start, tokens);
        if lane.decoding > 0 {
            sink.gaps(start, single(end - self.device), lane.decoding);
        }
        let decoded = lane.decoding;
        lane.context += u64::from(lane.decoding);
        lane.least = 0;
        self.due = Some(self.due_after(now, &timing));
        self.device = end;
        self.take_up_quick(lane, now + host.launch);
        lane.open = self.lag();
        lane.decodes.step();
        self.retire(lane, end);
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
                (r.first_token, r.stalls, r.handed) = (end, mixed, host.hand);
                lane.fresh.push(share.slot);
            } else {
                r.lost += start - r.last_token;
                sink.gaps(start, single(end - r.last_token), 1);
            }
            r.sampled += 1;
            let (computed, admitted, left) = (r.computed, r.admitted, r.output - r.sampled);
            if left == 0 {
                lane.ends(end, share.slot);
            } else {
                lane.add(Decode { slot: share.slot, admitted, computed, left });
            }
        }
        sink.steps(start, end, decoded, tokens);
        sink.mixed(start, self);
    }

    /// The host takes the tokens of the step under way up.
    fn take_up_quick(&mut self, lane: &mut Lane, at: Ns) {
        if lane.open {
            lane.take_up(at);
            for slot in &lane.fresh {
                let r = self.engine.sequence_mut(*slot);
                r.first_token = r.first_token.max(at);
            }
        }
        lane.fresh.clear();
    }

    /// Those given their last token in a step end with it.
    fn retire(&mut self, lane: &mut Lane, end: Ns) {
        let s = self.engine.vllm_mut();
        while let Some(slot) = lane.ended(|slot| s.sequences[slot].prompt + s.sequences[slot].output - 1) {
            s.sequences[slot].stalled = self.totals.mixed;
            lane.ends(end, slot);
        }
    }

    /// Steps of decodes alone, one by one, until a request ends, blocks run out or a call would come at `to` or later.
    /// The blocks of the first are taken.
    fn walk(&mut self, lane: &mut Lane, clock: &mut impl Clock, first: First, to: Ns, sink: &mut impl Sink) {
        let (start, choose) = first;
        let Decodes::Rows(rows) = &mut lane.decodes else { return };
        let (from, mut sum) = self.run_at(start);
        let (lag, n, free_from) = (self.lag(), lane.decoding, self.device);
        let blocks = &mut self.engine.vllm_mut().blocks;
        let (mut began, mut before, mut steps) = (start, free_from, 0);
        let (end, ended) = loop {
            let one = Stretch { steps: 1, ..clock.run(n, lane.context) };
            sum += one.first;
            let end = from + whole(sum);
            // The chips may have waited for the host before the first.
            sink.gaps(began, if began > before { single(end - before) } else { one }, n);
            sink.steps(began, end, n, 0);
            lane.context += u64::from(n);
            lane.least = if one.more >= 0 { whole(one.first) / 10 * 9 } else { 0 };
            steps += 1;
            let ended = rows.step();
            let due = if lag { began + choose } else { end };
            if ended || due >= to || rows.need() > blocks.free() {
                self.due = Some(due);
                break (end, ended);
            }
            blocks.take_ahead(rows.need());
            (began, before) = (end, end);
        };
        self.run = Some((from, sum));
        self.device = end;
        self.totals.steps += steps;
        self.totals.busy += end - start;
        lane.open = lag;
        if ended {
            self.retire(lane, end);
        }
    }

    /// Steps of decodes alone, at once, as far as [`Self::walk`] goes. The blocks of the first are taken.
    fn jump(
        &mut self,
        lane: &mut Lane,
        clock: &mut impl Clock,
        first: First,
        to: Ns,
        taken: u32,
        sink: &mut impl Sink,
    ) {
        let Decodes::Counts(counts) = &mut lane.decodes else { return };
        let n = lane.decoding;
        let first_end = counts.first_end().unwrap_or(1);
        let most = counts.afford(first_end, n, self.engine.vllm().blocks.free() + taken).max(1);
        let leap = self.leap(clock, (n, lane.context), first, (to, most), sink);
        lane.open = self.lag();
        (lane.context, lane.least) = (lane.context + leap.steps * u64::from(n), leap.least);
        let more = counts.blocks(leap.steps, n) as u32 - taken;
        counts.pass(leap.steps);
        self.engine.vllm_mut().blocks.take_ahead(more);
        self.retire(lane, self.device);
    }

    /// Takes at most `most` steps of so many decodes with such a sum of contexts at once, those called for before `to`.
    pub(super) fn leap(
        &mut self,
        clock: &mut impl Clock,
        (n, mut context): (u32, u64),
        (start, choose): First,
        (to, most): (Ns, u64),
        sink: &mut impl Sink,
    ) -> Leap {
        let (from, mut sum) = self.run_at(start);
        let ahead = u64::from(self.lag());
        let mut leap = Leap { steps: 0, last: start, least: 0 };
        while leap.steps < most {
            let stretch = clock.run(n, context);
            let end = |parts| from + whole(sum + parts);
            // The first step of all is called for already.
            let called = match (leap.steps, ahead) {
                (0, _) => 0,
                (_, 0) => end(0),
                _ => leap.last + choose,
            };
            let k = calls_before(stretch, most - leap.steps, to, |parts| end(parts) + choose, called, ahead);
            if k == 0 {
                break;
            }
            leap.least = if stretch.more >= 0 { whole(stretch.first) / 10 * 9 } else { 0 };
            let mut waits = Stretch { steps: k, ..stretch };
            if leap.steps == 0 && start > self.device {
                // The chips waited for the host before the first.
                sink.gaps(start, single(end(stretch.first) - self.device), n);
                waits = Stretch { first: stretch.at(1), steps: k - 1, ..stretch };
            }
            sink.gaps(from + whole(sum), waits, n);
            leap.last = from + whole(sum + stretch.sum(k - 1));
            sum += stretch.sum(k);
            context += k * u64::from(n);
            leap.steps += k;
            if k < stretch.steps && leap.steps < most {
                break;
            }
        }
        let end = from + whole(sum);
        self.run = Some((from, sum));
        self.device = end;
        self.due = Some(if ahead > 0 { leap.last + choose } else { end });
        self.totals.steps += leap.steps;
        self.totals.busy += end - start;
        sink.steps(start, end, n, 0);
        leap
    }

    /// Ends the requests whose step ends at `end`.
    pub(super) fn apply_quick(&mut self, end: Ns, sink: &mut impl Sink) -> bool {
        let Some(mut lane) = self.lane.take() else { return false };
        while let Some(slot) = lane.end(end) {
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

/// Steps taken at once.
pub(super) struct Leap {
    pub(super) steps: u64,
    /// When the last begins.
    pub(super) last: Ns,
    /// Nanoseconds that no step to come is shorter than; 0 where not known.
    pub(super) least: Ns,
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
