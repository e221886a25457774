//! The order in which each device takes its passes, one function per schedule.
//!
//! Zero-bubble schedules order only forwards and input gradients. Their weight gradients are put off until the device would
//! be idle or would hold more than its `limit`; so one clock serves them all. DualPipe says itself where they go.
//!
//! V-Half and V-Min repeat a building block of six slots (F, B, W of two chunks). Along the row each pass moves by a
//! fixed number of slots per device, and memory is the time from F to W, so that shorter moves hold less:
//!
//! | schedule | F down | F up | B down | B up | activations held | bubble at equal times |
//! |----------|--------|------|--------|------|------------------|-----------------------|
//! | V-Half | 1 | 2 | 1 | 2 | 6p/6 chunks and at most 2 | 1/2 of 1F1B |
//! | V-Min | 1 | 1 | 1 | 1 | 4p/6 chunks and at most 8/3 | below 2/3 of 1F1B |
//!
//! With so little held, unequal times make V-Min wait in every round: its bubble then grows with m.
//! Source: Qi et al. 2023 (zero bubble) and 2024 (controllable memory) for the ideas; the orders and gaps are ours.

use super::{Plan, Schedule, Shape};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Forward,
    /// A forward together with the next entry, a whole backward.
    ForwardWithNext,
    InputGrad,
    Backward,
    /// The weight gradient put off longest.
    WeightGrad,
}

/// One entry of an order. A put-off weight gradient finds its own stage and micro-batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub act: Act,
    pub stage: u32,
    pub micro_batch: u32,
}

#[derive(Debug, Default)]
pub(super) struct Order {
    pub ops: Vec<Op>,
    /// Activations (of a chunk) to hold before weight gradients go first; nothing where the order places them itself.
    pub limit: Option<usize>,
}

pub(super) fn order(plan: &Plan, device: usize) -> Order {
    let Shape { devices: p, micro_batches: m, chunks: v } = plan.shape;
    // Devices after this one.
    let after = p - 1 - device;
    // DualPipe writes its weight gradients too.
    let ops = Vec::with_capacity(3 * m * v);
    let mut list = List { plan, device, ops, next_forward: [0; 2], next_backward: [0; 2] };
    match plan.schedule {
        Schedule::GPipe => {
            (0..m).for_each(|i| list.push(Act::Forward, 0, i));
            (0..m).rev().for_each(|i| list.push(Act::Backward, 0, i));
        }
        Schedule::Interleaved if v > 1 => list.interleaved(),
        Schedule::OneFOneB | Schedule::Interleaved => list.one_forward_one_backward(after, Act::Backward),
        Schedule::ZbH1 => list.one_forward_one_backward(after, Act::InputGrad),
        // As many again: B comes back to this device 2 (p - 1 - device) passes after F left it.
        Schedule::ZbH2 => list.one_forward_one_backward(2 * after, Act::InputGrad),
        Schedule::Zbv => list.down_and_up(),
        // The gaps at the two bends and between F and B keep the four passes of a device in different slots.
        Schedule::VHalf if p.is_multiple_of(2) => list.repeated(1, 2, [1, 4, 2]),
        Schedule::VHalf => list.repeated(1, 2, [1, 1, 2]),
        Schedule::VMin if p.is_multiple_of(3) => list.repeated(1, 1, [3, 1, 3]),
        Schedule::VMin => list.repeated(1, 1, [1, 1, 1]),
        Schedule::DualPipe => list.dual(p / 2, device.min(after), m / 2),
        Schedule::DualPipeV => list.dual(p, device, m),
    }
    let limit = match plan.schedule {
        Schedule::ZbH1 => Some(p),
        Schedule::ZbH2 => Some(2 * p - 1),
        Schedule::Zbv => Some(2 * p),
        Schedule::VHalf => Some(if p.is_multiple_of(2) { p + 2 } else { p + 1 }),
        Schedule::VMin => Some(2 * ((p + 4) / 3)),
        _ => None,
    };
    Order { ops: list.ops, limit }
}

/// An order being written: the next micro-batch of each chunk is remembered.
struct List<'a> {
    plan: &'a Plan,
    device: usize,
    ops: Vec<Op>,
    next_forward: [usize; 2],
    next_backward: [usize; 2],
}

impl List<'_> {
    fn push(&mut self, act: Act, chunk: usize, micro_batch: usize) {
        let stage = self.plan.stage(self.device, chunk) as u32;
        self.ops.push(Op { act, stage, micro_batch: micro_batch as u32 });
    }

    /// Some forwards in advance, then one forward and one backward in turn, then the backwards that are left.
    fn one_forward_one_backward(&mut self, advance: usize, backward: Act) {
        let m = self.plan.shape.micro_batches;
        let advance = advance.min(m);
        (0..advance).for_each(|i| self.push(Act::Forward, 0, i));
        for i in 0..m {
            if advance + i < m {
                self.push(Act::Forward, 0, advance + i);
            }
            self.push(backward, 0, i);
        }
    }

    /// 1F1B over rounds: p micro-batches through chunk 0, the same p through chunk 1, and so on.
    fn interleaved(&mut self) {
        let Shape { devices: p, micro_batches: m, chunks: v } = self.plan.shape;
        let micro_batch = |k: usize| k / (p * v) * p + k % p;
        let (total, after) = (m * v, p - 1 - self.device);
        // All earlier chunks of a round, and twice the way to the last device: there and back.
        let advance = ((v - 1) * p + 2 * after).min(total);
        (0..advance).for_each(|k| self.push(Act::Forward, k / p % v, micro_batch(k)));
        for k in 0..total {
            let ahead = advance + k;
            if ahead < total {
                self.push(Act::Forward, ahead / p % v, micro_batch(ahead));
            }
            self.push(Act::Backward, v - 1 - k / p % v, micro_batch(k));
        }
    }

    /// ZBV: warm up with chunk 0, then B and F in turn, each F after a B whose W makes room for it.
    fn down_and_up(&mut self) {
        let Shape { devices: p, micro_batches: m, .. } = self.plan.shape;
        let (after, upto) = (p - 1 - self.device, self.device + 1);
        // Fewer micro-batches than 2p: the order of 2p without those that do not exist.
        let steady = m.max(2 * p) - 2 * p + upto;
        self.times(2 * after, "F0");
        self.times(upto, "F0 F1");
        self.times(after, "B1 F1");
        self.times(steady, "B1 F0 B0 F1");
        self.times(after, "B1 B0 F1");
        self.times(upto, "B1 B0");
        self.times(after, "B0");
    }

    /// DualPipe on a device `r` of half a row of `half` (folded, of the row), with `n` micro-batches each way, in the eight
    /// phases of the published schedule; micro-batches of chunk 0 start at this end of the row.
    fn dual(&mut self, half: usize, r: usize, n: usize) {
        let (after, upto) = (half - 1 - r, r + 1);
        self.times(2 * after, "F0");
        self.times(upto, "F0 F1");
        self.times(after, "B1 W F1");
        // Where the two directions meet nothing is won by waiting for a pair.
        let meets = usize::from(after == 0);
        self.times(meets, "F0 A1 P1 A0");
        self.times(n - 2 * half + upto - meets, "P0 A1 P1 A0");
        self.times(after, "A1 P1 A0");
        // The last half puts off its weight gradients: they fill the end.
        self.times(upto / 2, "A1 A0");
        self.times(upto % 2, "A1 B0");
        self.times(upto / 2, "B1 B0");
        self.times(after, "W B0");
        self.times(upto, "W");
    }

    /// Writes passes so many times, the next micro-batch of the chunk each time: F forward, P forward paired with what
    /// follows, B input gradient, A all gradients, W the weight gradient put off longest. For DualPipe a chunk is a
    /// direction as seen from the nearer end.
    fn times(&mut self, n: usize, passes: &str) {
        let both_ways = self.plan.schedule == Schedule::DualPipe;
        let m = self.plan.shape.micro_batches / if both_ways { 2 } else { 1 };
        // In the second half of the row, near is the end where the second half of the micro-batches starts.
        let far_half = both_ways && 2 * self.device >= self.plan.shape.devices;
        for pass in std::iter::repeat_n(passes.split(' '), n).flatten() {
            let near = usize::from(pass.ends_with('1'));
            let (act, counter) = match pass.as_bytes()[0] {
                b'F' => (Act::Forward, &mut self.next_forward),
                b'P' => (Act::ForwardWithNext, &mut self.next_forward),
                b'B' => (Act::InputGrad, &mut self.next_backward),
                b'A' => (Act::Backward, &mut self.next_backward),
                _ => {
                    self.ops.push(Op { act: Act::WeightGrad, stage: 0, micro_batch: 0 });
                    continue;
                }
            };
            let i = counter[near];
            counter[near] += 1;
            if i < m {
                let chunk = near ^ usize::from(far_half);
                self.push(act, chunk, if both_ways && chunk == 1 { m + i } else { i });
            }
        }
    }

    /// A building block every six slots, in the order of its slots: slots per device on the way down and up, and gaps at the
    /// lower bend, between F and B, at the bend of B.
    fn repeated(&mut self, down: usize, up: usize, [bend, turn, bend_back]: [usize; 3]) {
        const SLOTS: usize = 6;
        let Shape { devices: p, micro_batches: m, .. } = self.plan.shape;
        let (r, after, row) = (self.device, p - 1 - self.device, p - 1);
        let (f1, b1) = (down * row + bend, (down + up) * row + bend + turn);
        let b0 = b1 + down * row + bend_back;
        let starts = [
            (down * r, Act::Forward, 0),
            (f1 + up * after, Act::Forward, 1),
            (b1 + down * r, Act::InputGrad, 1),
            (b0 + up * after, Act::InputGrad, 0),
        ];
        // A merge of four sequences, each with a step of six; no two share a slot.
        let mut next = [0usize; 4];
        for _ in 0..4 * m {
            let due = |k: usize| if next[k] < m { starts[k].0 + SLOTS * next[k] } else { usize::MAX };
            let k = (0..4).min_by_key(|k| due(*k)).expect("there are four");
            self.push(starts[k].1, starts[k].2, next[k]);
            next[k] += 1;
        }
    }
}
