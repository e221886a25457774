//! Layers in a row of devices, micro-batches in a queue: what a training step waits for.
//!
//! $$ T = m\,(t_F + t_B + t_W) + \text{bubble} \qquad \text{idle} = \frac{p-1}{m+p-1} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | p | devices | 1 | devices in the row |
//! | m | micro_batches | 1 | micro-batches of one optimizer step |
//! | v | chunks | 1 | pieces of the model on one device |
//! | t_F | forward | s | forward pass of one stage |
//! | t_B | input_grad | s | backward pass to the input of the stage, which the stage before waits for |
//! | t_W | weight_grad | s | backward pass to its weights, which nobody waits for but the optimizer |
//!
//! Here are the words; the orders of the passes, the clock that runs them, the closed forms and the inference grid have
//! a file each. A schedule is an order of passes for each device. The clock starts each pass as soon as the device is
//! free and its input has come, so that stages may differ, and a step ends with the last pass of any device.
//!
//! Assumes: a device does one thing at a time, except the overlapped pairs of DualPipe; transfers take `hop` and no
//! device time. Ignores: recomputation (lengthen t_B), gradient exchange, the optimizer.
//! Source: lecture D24 to D29 and 1c.4; Narayanan 2021; sail-sg zero-bubble; deepseek-ai/DualPipe.

mod clock;
mod closed;
mod order;
#[cfg(test)]
mod tests;

pub use closed::*;

use rackmath_units::{Bytes, Cancel, Cancelled, Fraction, Seconds};
use std::fmt;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// An order of passes; oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Schedule {
    /// All forwards, then all backwards.
    GPipe,
    /// One forward, one backward, so that at most p micro-batches are held.
    #[strum(to_string = "1f1b")]
    OneFOneB,
    /// 1F1B over v chunks per device, dealt out in turn.
    Interleaved,
    /// 1F1B whose weight gradients wait until a device would be idle, in the memory of 1F1B.
    #[strum(to_string = "zb-h1")]
    ZbH1,
    /// The same with more forwards in advance, in nearly twice the memory.
    #[strum(to_string = "zb-h2")]
    ZbH2,
    /// Two chunks per device down and back up, in the memory of 1F1B.
    Zbv,
    /// Down and back up in half the memory of 1F1B.
    #[strum(to_string = "v-half")]
    VHalf,
    /// Down and back up in a third of the memory of 1F1B.
    #[strum(to_string = "v-min")]
    VMin,
    /// Micro-batches from both ends, forwards overlapped with backwards; the weights are held twice.
    DualPipe,
    /// DualPipe folded in the middle: down and back up, the weights held once.
    DualPipeV,
}

impl Schedule {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Chunks per device where the schedule leaves no choice.
    pub fn fixed_chunks(self) -> Option<usize> {
        match self.route() {
            _ if self == Self::Interleaved => None,
            Route::DownAndUp => Some(2),
            Route::Around | Route::BothWays => Some(1),
        }
    }

    /// Whether input and weight gradients are always computed together.
    pub fn is_fused(self) -> bool {
        matches!(self, Self::GPipe | Self::OneFOneB | Self::Interleaved)
    }

    fn route(self) -> Route {
        match self {
            Self::GPipe | Self::OneFOneB | Self::Interleaved | Self::ZbH1 | Self::ZbH2 => Route::Around,
            Self::Zbv | Self::VHalf | Self::VMin | Self::DualPipeV => Route::DownAndUp,
            Self::DualPipe => Route::BothWays,
        }
    }
}

/// How a micro-batch meets the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// From first to last, then again from the first.
    Around,
    /// From first to last and back.
    DownAndUp,
    /// The first half of the micro-batches from first to last, the second half from last to first.
    BothWays,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub devices: usize,
    pub micro_batches: usize,
    /// Chunks of the model on one device, v; one for DualPipe, whose two copies are not chunks.
    pub chunks: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Passes {
    pub forward: Seconds,
    pub input_grad: Seconds,
    pub weight_grad: Seconds,
}

impl Passes {
    pub fn backward(&self) -> Seconds {
        self.input_grad + self.weight_grad
    }

    pub fn total(&self) -> Seconds {
        self.forward + self.backward()
    }

    /// Forward and backward of two micro-batches at once, of which `hidden` of the shorter disappears behind the longer.
    pub fn pair(&self, backward: &Self, hidden: Fraction) -> Seconds {
        let (f, b) = (self.forward, backward.backward());
        f.max(b) + f.min(b) * hidden.rest().get()
    }
}

/// A piece of the model: one per device and chunk, in the order a micro-batch meets them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    pub passes: Passes,
    /// Bytes kept for each micro-batch from its forward to its backward.
    pub activation: Bytes,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub schedule: Schedule,
    pub shape: Shape,
    /// Devices times chunks of them.
    pub stages: Vec<Stage>,
    /// From the end of a pass to the moment its result is on another device.
    pub hop: Seconds,
    /// Share of the activation bytes not needed after the input gradient; the rest goes with the weight gradient.
    pub released_at_input_grad: Fraction,
    /// Share of the shorter pass that disappears in an overlapped pair of DualPipe: 0 is the sum, 1 the longer of the two.
    pub hidden: Fraction,
}

impl Plan {
    /// A plan of equal stages, where `whole` is the work of one device on one micro-batch; nothing hops, hides or leaves early.
    pub fn even(schedule: Schedule, shape: Shape, whole: Stage) -> Self {
        let v = shape.chunks.max(1) as f64;
        let Passes { forward, input_grad, weight_grad } = whole.passes;
        let passes = Passes { forward: forward / v, input_grad: input_grad / v, weight_grad: weight_grad / v };
        let stage = Stage { passes, activation: whole.activation / v };
        let stages = vec![stage; shape.devices.saturating_mul(shape.chunks).min(MOST_PASSES)];
        let none = Fraction::ZERO;
        Self { schedule, shape, stages, hop: Seconds::ZERO, released_at_input_grad: none, hidden: none }
    }

    /// Whether the schedule exists for this shape.
    pub fn check(&self) -> Result<(), PlanError> {
        let Shape { devices: p, micro_batches: m, chunks: v } = self.shape;
        let wrong = |field, given: usize, expected: String| {
            Err(PlanError { schedule: self.schedule, field, given: given.to_string(), expected })
        };
        for (field, given) in [("devices", p), ("micro-batches", m), ("chunks", v)] {
            if given == 0 {
                return wrong(field, given, "at least 1".into());
            }
        }
        if let Some(fixed) = self.schedule.fixed_chunks().filter(|fixed| *fixed != v) {
            return wrong("chunks", v, fixed.to_string());
        }
        if p > MOST_DEVICES {
            return wrong("devices", p, format!("at most {MOST_DEVICES}"));
        }
        let passes = p.saturating_mul(v).saturating_mul(m);
        if passes > MOST_PASSES {
            return wrong("devices x chunks x micro-batches", passes, format!("at most {MOST_PASSES}"));
        }
        if self.stages.len() != p * v {
            return wrong("stages", self.stages.len(), format!("devices x chunks = {}", p * v));
        }
        // Each pass and each hop of each stage, one after the other, must still be a number; so must all bytes.
        let all = |of: &dyn Fn(&Stage) -> f64| self.stages.iter().map(of).sum::<f64>() * m as f64;
        let longest = all(&|s| s.passes.total().get() + 2.0 * self.hop.get());
        if !(longest.is_finite() && all(&|s| s.activation.get()).is_finite()) {
            return wrong("micro-batches", m, "times and bytes whose sums are finite".into());
        }
        match self.schedule {
            Schedule::Interleaved if !m.is_multiple_of(p) => {
                let (below, above) = (m / p * p, m.div_ceil(p) * p);
                let nearest = if below == 0 { above.to_string() } else { format!("{below} or {above}") };
                wrong("micro-batches", m, format!("a multiple of the {p} devices, such as {nearest}"))
            }
            Schedule::DualPipe if !p.is_multiple_of(2) => {
                wrong("devices", p, format!("an even number, such as {}", p + 1))
            }
            Schedule::DualPipe if !m.is_multiple_of(2) || m < 2 * p => {
                let nearest = (2 * p).max(m.next_multiple_of(2));
                wrong("micro-batches", m, format!("an even number, at least twice the {p} devices, such as {nearest}"))
            }
            Schedule::DualPipeV if m < 2 * p => {
                wrong("micro-batches", m, format!("at least twice the {p} devices, {}", 2 * p))
            }
            _ => Ok(()),
        }
    }

    pub fn run(&self) -> Result<Run, PlanError> {
        self.run_until(&Cancel::never()).expect("nobody cancels")
    }

    /// The same, while it is wanted.
    pub fn run_until(&self, cancel: &Cancel) -> Result<Result<Run, PlanError>, Cancelled> {
        match self.check() {
            Ok(()) => clock::run(self, cancel).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    fn device(&self, stage: usize, micro_batch: usize) -> usize {
        let p = self.shape.devices;
        match self.schedule.route() {
            Route::Around => stage % p,
            Route::DownAndUp if stage < p => stage,
            Route::DownAndUp => 2 * p - 1 - stage,
            Route::BothWays if micro_batch < self.shape.micro_batches / 2 => stage,
            Route::BothWays => p - 1 - stage,
        }
    }

    fn hop_between(&self, from: usize, to: usize, micro_batch: usize) -> Seconds {
        if self.device(from, micro_batch) == self.device(to, micro_batch) { Seconds::ZERO } else { self.hop }
    }

    /// The stage a device holds as its chunk, or for DualPipe as its copy.
    fn stage(&self, device: usize, chunk: usize) -> usize {
        let p = self.shape.devices;
        match (self.schedule.route(), chunk) {
            (Route::Around, _) => chunk * p + device,
            (_, 0) => device,
            (Route::DownAndUp, _) => 2 * p - 1 - device,
            (Route::BothWays, _) => p - 1 - device,
        }
    }
}

/// The clock looks at every device for every pass.
const MOST_DEVICES: usize = 1024;

/// More forward passes than this are refused: their cells would fill gigabytes.
const MOST_PASSES: usize = 10_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    pub schedule: Schedule,
    pub field: &'static str,
    pub given: String,
    pub expected: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} {}; expected {}", self.schedule, self.given, self.field, self.expected)
    }
}

impl std::error::Error for PlanError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Forward,
    InputGrad,
    WeightGrad,
    Backward,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    pub device: usize,
    pub chunk: usize,
    pub stage: usize,
    pub micro_batch: usize,
    pub kind: Kind,
    /// Whether it shares its time with another pass: both cells of a pair start and end together.
    pub paired: bool,
    pub start: Seconds,
    pub end: Seconds,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Device {
    pub first: Seconds,
    pub last: Seconds,
    /// Time spent in passes, a pair counted once.
    pub busy: Seconds,
    pub idle: Fraction,
    /// Most activations held at once, until the weight gradient ends; a chunk is 1/v of a micro-batch.
    pub peak_micro_batches: f64,
    pub peak_bytes: Bytes,
}

impl Device {
    pub fn span(&self) -> Seconds {
        self.last.less(self.first)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub cells: Vec<Cell>,
    /// From the first pass to the end of the last, all devices together: a step behind a barrier.
    pub makespan: Seconds,
    pub devices: Vec<Device>,
    /// Idle share of devices times makespan.
    pub idle: Fraction,
}

impl Run {
    /// Time per step when each device may start the next step as soon as it has finished this one, as zero-bubble papers
    /// count: the longest span, which is the makespan where the first device also finishes last.
    pub fn period(&self) -> Seconds {
        self.devices.iter().fold(Seconds::ZERO, |longest, d| longest.max(d.span()))
    }

    /// Idle time in a period of the busiest device: the bubble of the closed forms.
    pub fn bubble(&self) -> Seconds {
        self.period().less(self.most_busy())
    }

    /// The same behind a barrier: never less, because the last device starts late.
    pub fn barrier_bubble(&self) -> Seconds {
        self.makespan.less(self.most_busy())
    }
    pub fn peak_micro_batches(&self) -> f64 {
        self.devices.iter().fold(0.0, |most, d| most.max(d.peak_micro_batches))
    }

    pub fn peak_bytes(&self) -> Bytes {
        self.devices.iter().fold(Bytes::ZERO, |most, d| most.max(d.peak_bytes))
    }

    fn most_busy(&self) -> Seconds {
        self.devices.iter().fold(Seconds::ZERO, |most, d| most.max(d.busy))
    }
}
