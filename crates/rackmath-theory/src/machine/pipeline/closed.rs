//! The bubbles people quote, where they are true, and what no schedule can beat.
//!
//! | schedule | quoted bubble | true to the pass for equal stages, no hop and |
//! |----------|---------------|-----------------------------------------------|
//! | GPipe, 1F1B | (p-1)(F+B+W) | any m |
//! | interleaved | (p-1)(F+B+W)/v | m a multiple of p |
//! | ZB-H1 | (p-1)(F+B-W) | m >= p, W at most F and B |
//! | ZB-H2 | (p-1)(F+B-2W) | m >= 2p-1, W at most F and B |
//! | ZBV | 0 | m >= 2p-1, F = B = W |
//! | V-Half | (p-1)(F+B+W)/2 | m >= p, F = B = W, even p; odd p above 1 waits F/2 less |
//! | V-Min | (p-1)(F+B+W) 2/3 | never: at F = B = W, p above 1 waits F/2 less |
//! | DualPipe | (p/2-1)(FB+B-2W) | m >= 2p, F = B, W at most F, pairs that hide nothing |
//! | DualPipeV | (p-1)/2 (FB+B-2W) | the same |
//!
//! F, B and W are the times of all that a device holds for one micro-batch (v chunks), FB that of an overlapped pair. The
//! published DualPipe form writes B for B+W and so subtracts 3W; DualPipeV's p counts stages there, two per device, and
//! devices here. Where pairs hide time, or where F and B differ, the DualPipe forms are only an estimate: at F = B = W and
//! p = 8 with F wholly hidden the exact bubble is F, not 3F. Bubbles are per period (`Run::bubble`): behind a
//! barrier ZB-H2 waits (p-1)F and ZBV (p-1)F/2 instead of nothing, so that at equal times ZB-H2 is no faster than ZB-H1.
//! Source: sail-sg zero-bubble, deepseek-ai/DualPipe, Narayanan 2021; the last column is measured by the tests.
//!
//! Inference has no barrier, so its grid fills up and stays full:
//!
//! $$ \text{slot} = i + k \max(P, M) + s \qquad \text{idle} = \max\left(0, \frac{P-M}{P}\right) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | P, s | stages, stage | 1 | stages, one slot each |
//! | M, i | micro_batches, micro_batch | 1 | micro-batches in turn |
//! | k | token | 1 | the token being written |
//!
//! A micro-batch enters the first stage again for its next token when it has left the last, or when its turn comes. Fewer
//! than P leave holes; more wait. Source: lecture D27 and 1c.4.

use super::{Passes, Plan, PlanError, Schedule, Shape};
use rackmath_units::{Fraction, Seconds};

/// The quoted bubble of equal stages without hops, or nothing where nobody claims it (too few micro-batches, long W);
/// `whole` is the time of one device for one micro-batch.
pub fn closed_bubble(schedule: Schedule, shape: Shape, whole: Passes, hidden: Fraction) -> Option<Seconds> {
    let Shape { devices, micro_batches: m, chunks } = shape;
    if devices == 0 || m == 0 || chunks == 0 {
        return None;
    }
    let (p, v) = (devices as f64, chunks as f64);
    let (f, b, w) = (whole.forward, whole.input_grad, whole.weight_grad);
    let full = whole.total() * (p - 1.0);
    let (equal, short_w) = (f == b && b == w, w <= f && w <= b);
    // T_FB + T_bwd - 3 T_W, where T_bwd is B + W.
    let dual = (whole.pair(&whole, hidden) + b).less(w * 2.0);
    match schedule {
        Schedule::GPipe | Schedule::OneFOneB => Some(full),
        Schedule::Interleaved => m.is_multiple_of(devices).then(|| full / v),
        Schedule::ZbH1 => (short_w && m >= devices).then(|| (f + b).less(w) * (p - 1.0)),
        Schedule::ZbH2 => (short_w && m + 1 >= 2 * devices).then(|| (f + b).less(w * 2.0) * (p - 1.0)),
        Schedule::Zbv => (equal && m + 1 >= 2 * devices).then_some(Seconds::ZERO),
        Schedule::VHalf => (equal && m >= devices).then(|| full / 2.0),
        Schedule::VMin => (equal && m >= devices).then(|| full * (2.0 / 3.0)),
        Schedule::DualPipe => (m >= 2 * devices).then(|| dual * (p / 2.0 - 1.0).max(0.0)),
        Schedule::DualPipeV => (m >= 2 * devices).then(|| dual * ((p - 1.0) / 2.0)),
    }
}

/// Idle share of GPipe and 1F1B: (P-1)/(M+P-1). M = 1 is the lecture's (P-1)/P.
pub fn idle_fraction(devices: usize, micro_batches: usize) -> Fraction {
    let (p, m) = (devices.max(1) as f64, micro_batches.max(1) as f64);
    Fraction::new((p - 1.0) / (m + p - 1.0))
}

/// Slots of GPipe when a forward and a backward take one slot each: 2(M+P-1).
pub fn slots(devices: usize, micro_batches: usize) -> usize {
    // Two sweeps, each as long as its micro-batches and the way to the other end.
    2 * (micro_batches + devices.max(1) - 1)
}

/// A time no order of these passes can beat: the way of one micro-batch down and back, or the busiest device with the way of
/// the first micro-batch to it and, where gradients are computed together, of the last back from it.
pub fn lower_bound(plan: &Plan) -> Result<Seconds, PlanError> {
    plan.check()?;
    Ok(longest_chain(plan).max(busiest_device(plan)))
}

/// Forward through all stages and back; a weight gradient follows the input gradient of its stage.
fn longest_chain(plan: &Plan) -> Seconds {
    let (fused, n) = (plan.schedule.is_fused(), plan.stages.len());
    let down: Seconds = plan.stages.iter().map(|s| s.passes.forward).sum();
    let mut now = down + (1..n).map(|s| plan.hop_between(s - 1, s, 0)).sum::<Seconds>();
    let mut end = Seconds::ZERO;
    for s in (0..n).rev() {
        let passes = &plan.stages[s].passes;
        now += if fused { passes.backward() } else { passes.input_grad };
        end = end.max(if fused { now } else { now + passes.weight_grad });
        if s > 0 {
            now += plan.hop_between(s, s - 1, 0);
        }
    }
    end
}

fn busiest_device(plan: &Plan) -> Seconds {
    let m = plan.shape.micro_batches;
    // DualPipe sends half of the micro-batches each way; every stage is on two devices.
    let (firsts, share): (&[usize], f64) =
        if plan.schedule == Schedule::DualPipe { (&[0, m / 2], m as f64 / 2.0) } else { (&[0], m as f64) };
    let mut loads = vec![Load::default(); plan.shape.devices];
    // Way of the first forward to a stage, and of a fused backward from it to the first.
    let (mut head, mut tail) = (Seconds::ZERO, Seconds::ZERO);
    for (s, stage) in plan.stages.iter().enumerate() {
        if s > 0 {
            let (step, before) = (plan.hop_between(s - 1, s, 0), &plan.stages[s - 1].passes);
            head += before.forward + step;
            tail += before.backward() + step;
        }
        for i in firsts {
            let wait = if plan.schedule.is_fused() { head + tail } else { head };
            loads[plan.device(s, *i)].add(&stage.passes, share, wait);
        }
    }
    let hides = matches!(plan.schedule, Schedule::DualPipe | Schedule::DualPipeV);
    let hidden = if hides { plan.hidden } else { Fraction::ZERO };
    loads.iter().fold(Seconds::ZERO, |longest, load| longest.max(load.time(hidden)))
}

/// What a device has to do, and what it has to wait for at least.
#[derive(Clone, Copy, Default)]
struct Load {
    passes: Passes,
    /// Of the stages it holds the least; nothing before the first is added.
    wait: Option<Seconds>,
}

impl Load {
    fn add(&mut self, passes: &Passes, times: f64, wait: Seconds) {
        self.passes.forward += passes.forward * times;
        self.passes.input_grad += passes.input_grad * times;
        self.passes.weight_grad += passes.weight_grad * times;
        self.wait = Some(self.wait.map_or(wait, |least| least.min(wait)));
    }

    /// As if all could be paired.
    fn time(&self, hidden: Fraction) -> Seconds {
        self.wait.unwrap_or(Seconds::ZERO) + self.passes.pair(&self.passes, hidden)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridCell {
    pub slot: usize,
    pub stage: usize,
    pub micro_batch: usize,
    pub token: usize,
}

/// Idle share of each stage once the pipeline has filled; a pipeline without stages or work counts as one of each.
pub fn inference_idle(stages: usize, micro_batches: usize) -> Fraction {
    let (p, m) = (stages.max(1), micro_batches.max(1));
    Fraction::new(p.saturating_sub(m) as f64 / p as f64)
}

/// The busy cells of the first slots, by slot and then stage.
pub fn inference_grid(stages: usize, micro_batches: usize, slots: usize) -> Vec<GridCell> {
    let round = stages.max(micro_batches);
    let mut cells = Vec::new();
    for slot in 0..slots {
        for stage in 0..stages.min(slot + 1) {
            // When the micro-batch that is here now entered the first stage.
            let entered = slot - stage;
            let (micro_batch, token) = (entered % round, entered / round);
            if micro_batch < micro_batches {
                cells.push(GridCell { slot, stage, micro_batch, token });
            }
        }
    }
    cells
}
