//! A measurement: what ran, how it was loaded, what was measured, the figure and its range, and where it stands.
//!
//! One noun for published tables, for folders of measurements, and for what a machine of one's own says. Names are words of
//! the catalogue; whoever asks for a prediction resolves them.

pub use crate::validation::Metric;

use crate::engine::Hold;
use crate::layout::Degrees;

#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    pub setup: Setup,
    pub load: Load,
    pub metric: Metric,
    pub value: f64,
    /// Lowest and highest, where a range is known.
    pub spread: Option<(f64, f64)>,
    pub source: Origin,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setup {
    pub model: String,
    /// Weight format, where not the checkpoint's.
    pub weights: Option<String>,
    /// Cache format, where not the engine's usual.
    pub kv: Option<String>,
    /// Engine, with its version where known: `vllm@0.11`.
    pub engine: String,
    pub system: String,
    pub degrees: Degrees,
    /// Flags of the engine that change its scheduling, where not its defaults: as in [`crate::engine::Schedule`].
    pub chunk: Option<f64>,
    pub sequences: Option<f64>,
    pub looks: Option<f64>,
    pub gather: Option<f64>,
    pub hold: Option<Hold>,
    pub memory: Option<f64>,
}

impl Setup {
    /// The chip's name: that of the machine without its multiple.
    pub fn chip(&self) -> &str {
        let multiple = self.system.split_once('x').filter(|(n, _)| n.parse::<u64>().is_ok());
        multiple.map_or(&*self.system, |(_, chip)| chip)
    }

    pub fn family(&self) -> &str {
        self.engine.split('@').next().unwrap_or("")
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    pub way: Way,
    pub input: f64,
    pub output: f64,
    /// Share of a prompt found in a prefix cache.
    pub cached: f64,
    /// Tokens drafted for each sequence and step; 0 without speculation.
    pub drafts: f64,
    /// Tokens a step yields to a sequence, its own included; 1 without speculation.
    pub accepted: f64,
    /// Whether the server had answered nobody before.
    pub cold: bool,
}

impl Load {
    /// Without prefix cache and speculation.
    pub fn of(way: Way, input: f64, output: f64) -> Self {
        Self { way, input, output, cached: 0.0, drafts: 0.0, accepted: 1.0, cold: false }
    }
}

/// How requests come, on one replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    /// So many in flight over all attention groups, each slot `rounds` of them; answers of one length where `fixed`.
    Closed { concurrency: f64, rounds: f64, fixed: bool },
    /// Requests per second over all attention groups.
    Open { rate: f64 },
    /// As many requests as fit.
    Full,
    /// So many requests of one length over all attention groups, all there from the start.
    Queue { requests: f64 },
    /// A batch that starts together and ends together.
    Static { batch: f64 },
    /// One decode step of sequences with this much context each.
    DecodeStep { batch: f64, context: f64 },
    /// One pass over prompts of so many tokens each.
    PrefillStep { batch: f64, tokens: f64 },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub name: String,
    /// The part of it that is scored by itself: a metric, sometimes under a condition.
    pub part: String,
}
