//! The clock: starts every pass as soon as its device is free and its input is there.
//!
//! $$ \text{start} = \max(\text{device free},\ \text{end of what it needs} + \text{hop}) $$
//!
//! F of a stage needs F of the stage before; B needs B of the stage after, or on the last stage its own F; W needs its B.
//! Where weight gradients may be put off, a device decides when it is free, in order of time: its next F or B if that can
//! start and fits the limit; else a W, if the gap is at least as long as the shortest pass or if W makes the room F needs;
//! else it waits.
//!
//! Assumes: a result can be sent while the next pass runs. Nothing is random: of two devices free at once the first decides.

use super::order::{self, Act, Op, Order};
use super::{Cell, Device, Kind, Plan, Run, Schedule, Shape, Stage};
use rackmath_units::{Bytes, Cancel, Cancelled, Fraction, Seconds};

pub(super) fn run(plan: &Plan, cancel: &Cancel) -> Result<Run, Cancelled> {
    let mut clock = Clock::new(plan);
    // Every pass wakes the device that waits for it, so while passes are left some device has a time.
    while clock.left > 0 {
        cancel.check()?;
        let device = clock.earliest();
        clock.decide(device);
    }
    Ok(clock.journal())
}

const NEVER: f64 = f64::INFINITY;

#[derive(Default)]
struct State {
    order: Order,
    next: usize,
    wake: f64,
    free: f64,
    first: f64,
    busy: f64,
    /// Input gradients in the order done; weight gradients follow in the same order.
    put_off: Vec<Op>,
    caught_up: usize,
    held: usize,
    peak: usize,
    held_bytes: f64,
    peak_bytes: f64,
}

impl State {
    fn oldest(&self) -> Option<Op> {
        self.put_off.get(self.caught_up).copied()
    }
}

struct Clock<'a> {
    plan: &'a Plan,
    forward_end: Vec<f64>,
    backward_end: Vec<f64>,
    states: Vec<State>,
    cells: Vec<Cell>,
    /// Entries of orders and weight gradients still to be done.
    left: usize,
    /// Sums of the same times in another order may differ by this much.
    rounding: f64,
}

impl<'a> Clock<'a> {
    fn new(plan: &'a Plan) -> Self {
        let Shape { devices: p, micro_batches: m, chunks: v } = plan.shape;
        let n = plan.stages.len() * m;
        let mut left = 0;
        let device = |device| {
            let order = order::order(plan, device);
            let put_off = order.ops.iter().filter(|op| op.act == Act::InputGrad).count();
            left += order.ops.len() + if order.limit.is_some() { put_off } else { 0 };
            State { order, first: NEVER, put_off: Vec::with_capacity(put_off), ..State::default() }
        };
        let states: Vec<State> = (0..p).map(device).collect();
        let longest = plan.stages.iter().flat_map(|s| [s.passes.forward, s.passes.input_grad, s.passes.weight_grad]);
        let rounding = 1e-9 * longest.fold(Seconds::ZERO, Seconds::max).get();
        let cells = Vec::with_capacity(p * v * m * if plan.schedule.is_fused() { 2 } else { 3 });
        let (forward_end, backward_end) = (vec![NEVER; n], vec![NEVER; n]);
        Self { plan, forward_end, backward_end, states, cells, left, rounding }
    }

    /// Seconds of forward, input gradient and weight gradient of an entry's stage, and the bytes it holds.
    fn times(&self, op: Op) -> (f64, f64, f64, f64) {
        let Stage { passes, activation } = &self.plan.stages[op.stage as usize];
        (passes.forward.get(), passes.input_grad.get(), passes.weight_grad.get(), activation.get())
    }

    fn earliest(&self) -> usize {
        let mut best = 0;
        for (d, state) in self.states.iter().enumerate() {
            if state.wake < self.states[best].wake {
                best = d;
            }
        }
        assert!(self.states[best].wake < NEVER, "an order waits for itself");
        best
    }

    fn decide(&mut self, d: usize) {
        let state = &self.states[d];
        let now = state.wake;
        let may_put_off = state.order.limit.is_some();
        let oldest = state.oldest().filter(|_| may_put_off);
        let Some(op) = state.order.ops.get(state.next).copied() else {
            match oldest {
                Some(w) => self.weight(d, w, now),
                None => self.states[d].wake = NEVER,
            }
            return;
        };
        let full = op.act == Act::Forward && state.order.limit.is_some_and(|limit| state.held >= limit);
        let ready = self.ready(d, op);
        if let Some(w) = oldest {
            let gap = ready - now;
            let (t_f, t_b, t_w, _) = self.times(w);
            let worth_filling = gap > self.rounding && gap >= t_w.min(t_f).min(t_b) - self.rounding;
            if full || worth_filling {
                return self.weight(d, w, now);
            }
        }
        if ready > now + self.rounding {
            // Known: look again then. Unknown: whoever produces it will wake this device.
            self.states[d].wake = ready;
        } else {
            self.next(d, op, now.max(ready));
        }
    }

    fn ready(&self, d: usize, op: Op) -> f64 {
        let m = self.plan.shape.micro_batches;
        let (s, i) = (op.stage as usize, op.micro_batch as usize);
        match op.act {
            Act::Forward if s == 0 => 0.0,
            Act::Forward => self.forward_end[(s - 1) * m + i] + self.plan.hop_between(s - 1, s, i).get(),
            Act::InputGrad | Act::Backward if s + 1 == self.plan.stages.len() => self.forward_end[s * m + i],
            Act::InputGrad | Act::Backward => {
                self.backward_end[(s + 1) * m + i] + self.plan.hop_between(s + 1, s, i).get()
            }
            Act::WeightGrad => 0.0,
            Act::ForwardWithNext => {
                let state = &self.states[d];
                let backward = state.order.ops[state.next + 1];
                self.ready(d, Op { act: Act::Forward, ..op }).max(self.ready(d, backward))
            }
        }
    }

    fn next(&mut self, d: usize, op: Op, start: f64) {
        let (t_f, t_b, t_w, bytes) = self.times(op);
        match op.act {
            Act::Forward => self.forward(d, op, start, start + t_f, false),
            Act::InputGrad => {
                let end = start + t_b;
                self.cell(d, op, Kind::InputGrad, start, end, false);
                let state = &mut self.states[d];
                state.put_off.push(op);
                state.held_bytes -= bytes * self.plan.released_at_input_grad.get();
                self.send_back(op, end);
            }
            Act::Backward => self.backward(d, op, start, start + (t_b + t_w), false),
            Act::WeightGrad => {
                let oldest = self.states[d].oldest().expect("an order places W after its B");
                self.states[d].next += 1;
                return self.weight(d, oldest, start);
            }
            Act::ForwardWithNext => {
                let back = self.states[d].order.ops[self.states[d].next + 1];
                let stages = &self.plan.stages;
                let (f, b) = (&stages[op.stage as usize].passes, &stages[back.stage as usize].passes);
                let end = start + f.pair(b, self.plan.hidden).get();
                self.forward(d, op, start, end, true);
                self.backward(d, back, start, end, true);
                self.states[d].next += 1;
                self.left -= 1;
            }
        }
        self.states[d].next += 1;
        self.left -= 1;
    }

    fn weight(&mut self, d: usize, op: Op, start: f64) {
        let (_, _, t_w, bytes) = self.times(op);
        self.cell(d, op, Kind::WeightGrad, start, start + t_w, false);
        let state = &mut self.states[d];
        state.caught_up += 1;
        state.held -= 1;
        state.held_bytes -= bytes * self.plan.released_at_input_grad.rest().get();
        self.left -= 1;
    }

    fn forward(&mut self, d: usize, op: Op, start: f64, end: f64, paired: bool) {
        self.cell(d, op, Kind::Forward, start, end, paired);
        let (s, i, bytes) = (op.stage as usize, op.micro_batch as usize, self.times(op).3);
        self.forward_end[s * self.plan.shape.micro_batches + i] = end;
        let state = &mut self.states[d];
        state.held += 1;
        state.peak = state.peak.max(state.held);
        state.held_bytes += bytes;
        state.peak_bytes = state.peak_bytes.max(state.held_bytes);
        // On the last stage the backward may follow: it is on this device, which looks again by itself.
        if s + 1 < self.plan.stages.len() {
            self.call(s, s + 1, i, end);
        }
    }

    fn backward(&mut self, d: usize, op: Op, start: f64, end: f64, paired: bool) {
        self.cell(d, op, Kind::Backward, start, end, paired);
        let bytes = self.times(op).3;
        let state = &mut self.states[d];
        state.held -= 1;
        state.held_bytes -= bytes;
        self.send_back(op, end);
    }

    fn send_back(&mut self, op: Op, end: f64) {
        let (s, i) = (op.stage as usize, op.micro_batch as usize);
        self.backward_end[s * self.plan.shape.micro_batches + i] = end;
        if s > 0 {
            self.call(s, s - 1, i, end);
        }
    }

    /// Wakes the device of the stage that can go on, if it sleeps longer.
    fn call(&mut self, from: usize, to: usize, micro_batch: usize, end: f64) {
        let arrival = end + self.plan.hop_between(from, to, micro_batch).get();
        let state = &mut self.states[self.plan.device(to, micro_batch)];
        state.wake = state.wake.min(arrival.max(state.free));
    }

    /// Writes down a pass. The second of a pair takes no time of its own.
    fn cell(&mut self, d: usize, op: Op, kind: Kind, start: f64, end: f64, paired: bool) {
        let state = &mut self.states[d];
        state.first = state.first.min(start);
        state.busy += if paired && kind == Kind::Backward { 0.0 } else { end - start };
        (state.free, state.wake) = (end, end);
        let (stage, micro_batch) = (op.stage as usize, op.micro_batch as usize);
        let chunk = match self.plan.schedule {
            // The other copy.
            Schedule::DualPipe => usize::from(stage != d),
            _ => stage / self.plan.shape.devices,
        };
        let (start, end) = (Seconds::s(start), Seconds::s(end));
        self.cells.push(Cell { device: d, chunk, stage, micro_batch, kind, paired, start, end });
    }

    fn journal(self) -> Run {
        let makespan = self.states.iter().fold(0.0f64, |last, s| last.max(s.free));
        // A step of no time is not idle.
        let idle = |busy: f64, of: f64| Fraction::new(if of > 0.0 { (1.0 - busy / of).clamp(0.0, 1.0) } else { 0.0 });
        let v = self.plan.shape.chunks as f64;
        let devices: Vec<Device> = self
            .states
            .iter()
            .map(|s| Device {
                first: Seconds::s(s.first),
                last: Seconds::s(s.free),
                busy: Seconds::s(s.busy),
                idle: idle(s.busy, makespan),
                peak_micro_batches: s.peak as f64 / v,
                peak_bytes: Bytes::b(s.peak_bytes),
            })
            .collect();
        let busy = self.states.iter().map(|s| s.busy).sum::<f64>();
        let idle = idle(busy, makespan * devices.len() as f64);
        Run { cells: self.cells, makespan: Seconds::s(makespan), devices, idle }
    }
}
