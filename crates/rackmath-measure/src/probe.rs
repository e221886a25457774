//! This machine on its roofline: how fast memory is read, how fast units multiply, on the processor and on every accelerator found.
//!
//! Every figure is the middle of several repeats after one that is dropped. What is absent or fails is an answer with its reason, and
//! the rest goes on. Ignores: what other programs do on the machine meanwhile, which shows in the spread.

mod cpu;
mod gpu;

pub use gpu::kernels_source;
pub use rackmath_spec::probe::{Missing, Probe, Processor, Reading};

use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Fewer repeats, fewer sizes.
    pub quick: bool,
    /// Only the processor.
    pub processor_only: bool,
    /// Folders that hold libraries of accelerators, looked in first.
    pub libraries: Vec<PathBuf>,
    /// As it is to stand in the answer.
    pub date: String,
    pub tool: String,
}

/// When a probe has to come to an end.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    pub fn after(seconds: f64) -> Self {
        Self(Instant::now() + Duration::from_secs_f64(seconds))
    }

    pub fn passed(self) -> bool {
        Instant::now() >= self.0
    }
}

/// Measures the machine; `tell` hears what is being done.
pub fn run(options: &Options, tell: &dyn Fn(&str)) -> Probe {
    let start = Instant::now();
    let processor = cpu::probe(options, tell);
    let (devices, absent) = if options.processor_only {
        (Vec::new(), vec![Missing::new("accelerators", "not looked for: only the processor was asked for")])
    } else {
        // The processor takes at most a third of the minute.
        gpu::probe(options, Deadline::after(if options.quick { 12.0 } else { 38.0 }), tell)
    };
    let took_s = start.elapsed().as_secs_f64();
    let (tool, date) = (options.tool.clone(), options.date.clone());
    Probe { tool, date, quick: options.quick, took_s, processor, devices, absent }
}
