//! Layers and experts that lie in the host's memory, as part of a pass: the equations stand in [`crate::split`].

use super::layers::{KernelSet, Prep};
use super::mixer::MixerOp;
use super::{Cost, Limit, Part};
use crate::deployment::Deployment;
use crate::split::Split;
use rackmath_spec::engine::Offload;
use rackmath_spec::model::{Mixer, Shape};

/// Bytes of a value that crosses between processor and chip: both compute in 32 bits between their products.
const CROSSING: f64 = 4.0;

pub(super) struct HostPart<'a> {
    prep: Prep<'a>,
    split: &'a Split,
    offload: &'a Offload,
}

impl<'a> HostPart<'a> {
    /// None where the engine does not run weights from there, or the processor has no peak.
    pub(super) fn new(split: &'a Split, on: &'a Deployment, shape: &'a Shape, kernels: &'a KernelSet) -> Option<Self> {
        Some(Self { prep: Prep::new(on, shape, kernels)?, split, offload: on.engine.offload.as_ref()? })
    }

    /// The attention of layers whose cache lies here, and how many of them there are.
    pub(super) fn mixer(&self, mixer: &Mixer) -> Option<(f64, MixerOp)> {
        let mut first = 0.0;
        let mut there = 0.0;
        for run in &self.prep.shape.runs {
            if run.block.mixer == *mixer {
                there += self.split.among(first, run.n as f64).0;
            }
            first += run.n as f64;
        }
        if self.split.cache && there > 0.0 { Some((there, self.prep.mixer(mixer)?)) } else { None }
    }

    pub(super) fn has_head(&self) -> bool {
        self.split.head
    }

    pub(super) fn head(&self, sequences: f64) -> Cost {
        let mut cost = Cost::default();
        Self::put(&self.prep.head(sequences), &mut cost);
        cost
    }

    /// What a pass of so many rows takes for what lies here.
    pub(super) fn add(&self, card: &Prep, rows: f64, cost: &mut Cost) {
        let processor = self.split.host.chip.processor;
        let sent = !self.offload.computes || self.offload.stream_rows.is_some_and(|least| rows >= least);
        let streams = processor && sent;
        let mut crossings = f64::from(self.split.layers > self.split.from && !streams);
        for (layer, mine) in card.layers.iter().zip(&self.prep.layers) {
            let (whole, experts) = mine.away;
            if whole + experts <= 0.0 {
                continue;
            }
            let times = (whole, whole + experts);
            let mut there = Cost::default();
            let bytes = if streams {
                card.add_layer(layer, rows, times, &mut there);
                there.memory * card.silicon.bandwidth.get()
            } else {
                self.prep.add_layer(mine, rows, times, &mut there);
                there.memory * self.prep.silicon.bandwidth.get()
            };
            if streams {
                cost.plus(&there, 1.0);
                Self::wait(bytes / (self.offload.link.get() * self.split.link.get()), cost);
            } else if processor {
                Self::put(&there, cost);
                crossings += 2.0 * experts;
            } else {
                cost.plus(&there, 1.0);
            }
            if let Some((missing, rate)) = self.split.disk {
                Self::wait(bytes * missing / rate.get(), cost);
            }
        }
        let vectors = rows * self.prep.shape.hidden as f64 * CROSSING;
        let part = if processor { Part::Offloaded } else { Part::Network };
        cost.add(part, Limit::Latency, crossings * self.offload.cross.get());
        cost.add(part, Limit::Link, crossings * vectors / self.split.link.get());
    }

    /// Bytes on their way, which no roofline can do without.
    fn wait(seconds: f64, cost: &mut Cost) {
        cost.add(Part::Offloaded, Limit::Link, seconds);
        cost.memory += seconds;
    }

    /// The processor's time by what limits it.
    fn put(there: &Cost, cost: &mut Cost) {
        for limit in Limit::ALL {
            cost.add(Part::Offloaded, limit, there.limited(limit).get());
        }
        cost.compute += there.compute;
        cost.memory += there.memory;
    }
}
