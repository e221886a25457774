//! Published measurements as data: what was run, on what, under which load, and the figure that came out.
//!
//! One table is one file of `validation/`, one row one measured figure. A row names the model, formats, machine, split and
//! load well enough for a predictor to be asked the same question; what the source does not say is absent, and what was
//! filled in by assumption is listed in `assumed`.
//!
//! | mode | what was run | load |
//! |------|--------------|------|
//! | closed | so many clients, each sending its next request when the last one ended | concurrency |
//! | open | requests arriving at a rate of their own | rate |
//! | max-load | all requests queued at once; the batch is what memory and the engine's limit allow | batch limit, if known |
//! | static | one batch of equal prompts, prefilled and decoded together to the end | batch |
//! | step-decode, step-prefill | one forward pass | batch |
//! | single-stream | one request at a time | none |
//! | disaggregated | prefill and decode on machines of their own, one of the two measured | batch |
//!
//! `batch` counts sequences over the whole system, `concurrency` likewise. `context` is what is cached when a step begins.

mod words;

pub use words::{Engine, Metric, Mode};

use crate::layout::Degrees;
use crate::{Dtype, Layout, SpecError};
use rackmath_units::Fraction;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// One file of measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The file's stem.
    pub id: String,
    /// Where the figures come from.
    pub source: Source,
    /// Figures of whole models.
    pub rows: Vec<Row>,
    /// Times of single kernels.
    pub kernels: Vec<KernelRow>,
}

/// Where a table was published.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// A short name, as used in tables.
    pub name: String,
    pub title: String,
    /// An address, or a repository and the path in it.
    pub address: String,
    /// When it was published or measured.
    pub date: String,
    /// Under which terms, or that only facts were taken.
    pub licence: String,
    /// When the figures were read, as year and month.
    pub retrieved: String,
    /// Whether the constants were fitted on these rows: yes, no or partly, and how.
    pub fitted: String,
    /// What a reader must know to judge the figures.
    pub note: String,
}

/// One measured figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The model's catalogue id.
    pub model: String,
    pub weights: Dtype,
    /// Format of the KV cache, where stated or assumed.
    pub kv: Option<Dtype>,
    /// The software.
    pub engine: Engine,
    /// Its version, where stated.
    pub engine_version: Option<String>,
    /// The machine in catalogue words, such as `8xh200`.
    pub system: String,
    /// How the model was cut.
    pub split: Split,
    /// What was run.
    pub mode: Mode,
    /// Mean prompt tokens of a request.
    pub isl: Option<u64>,
    /// Mean tokens generated per request.
    pub osl: Option<u64>,
    /// Mean tokens cached per sequence when a step begins.
    pub context: Option<u64>,
    /// How much was asked of the machine.
    pub load: Option<Load>,
    /// Most tokens the engine was told to put into a pass, where stated.
    pub max_tokens: Option<u64>,
    /// Most sequences it was told to decode together, where stated.
    pub max_sequences: Option<u64>,
    /// Share of the prompt found in a cache.
    pub prefix_hit: Option<Fraction>,
    /// Drafted and accepted tokens, where a draft was verified.
    pub speculation: Option<Speculation>,
    /// What was measured.
    pub metric: Metric,
    /// The figure, in the metric's unit.
    pub value: f64,
    /// Lowest and highest figure, where the source gives a range.
    pub range: Option<(f64, f64)>,
    /// Names of fields that the source does not give and that were assumed; the note says how.
    pub assumed: Vec<String>,
    /// What is particular about this row.
    pub note: Option<String>,
}

/// How much was asked of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Requests in flight in a closed loop, over the whole system.
    Concurrency(u64),
    /// Requests per second in an open loop.
    RatePerS(f64),
    /// Sequences in a step, or the engine's limit under maximum load, over the whole system.
    Batch(u64),
}

/// Tokens drafted per step, and how many of them hold; a step yields one token more than it accepts.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speculation {
    /// Tokens drafted per sequence and step.
    pub drafted: u64,
    /// Mean drafted tokens accepted per sequence and step.
    pub accepted: f64,
}

/// Parallel degrees as stated; what is absent is 1 if another is given, and unknown if none is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Tensor parallel degree of attention and dense networks.
    pub tp: Option<u64>,
    /// Pipeline stages.
    pub pp: Option<u64>,
    /// Independent replicas.
    pub dp: Option<u64>,
    /// Expert parallel degree.
    pub ep: Option<u64>,
    /// Groups of attention with sequences of their own inside one replica.
    pub attention_dp: Option<u64>,
    /// Further copies of experts per layer.
    pub redundant_experts: Option<u64>,
}

impl Split {
    /// Whether the source says how the model was cut.
    pub fn is_stated(&self) -> bool {
        [self.tp, self.pp, self.dp, self.ep, self.attention_dp].iter().any(Option::is_some)
    }

    pub fn replicas(&self) -> u64 {
        self.dp.unwrap_or(1)
    }

    pub fn chips(&self) -> u64 {
        let degrees = [self.tp, self.pp, self.dp, self.attention_dp];
        degrees.iter().fold(1, |n, degree| n.saturating_mul(degree.unwrap_or(1)))
    }

    /// The layout of one replica, where it is stated. Chips not used for expert parallelism cut each expert.
    pub fn layout(&self, has_experts: bool) -> Result<Option<Layout>, String> {
        if !self.is_stated() {
            return Ok(None);
        }
        let (tp, dp) = (self.tp.unwrap_or(1), self.attention_dp.unwrap_or(1));
        let ep = if has_experts { self.ep.unwrap_or(1) } else { 1 };
        let stage = tp.saturating_mul(dp);
        if ep == 0 || !stage.is_multiple_of(ep) {
            return Err(format!("{ep}; expected a divisor of tp {tp} x attention_dp {dp} = {stage}"));
        }
        let etp = if has_experts { stage / ep } else { 1 };
        let redundant = if has_experts { self.redundant_experts.unwrap_or(0) } else { 0 };
        let degrees = Degrees { tp, dp, ep, etp, redundant, pp: self.pp.unwrap_or(1), ..Degrees::default() };
        Layout::new(degrees).map(Some).map_err(|e| e.to_string())
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct KernelRow {
    pub shape: KernelShape,
    /// Format of its operands; for attention of keys and values.
    pub format: Dtype,
    /// The chip in catalogue words.
    pub system: String,
    /// The measured time in microseconds.
    pub time_us: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelShape {
    /// A product of an m x k and a k x n matrix.
    Gemm {
        /// Rows: tokens.
        m: u64,
        /// Columns of the weight.
        n: u64,
        /// The summed dimension.
        k: u64,
    },
    /// Attention over `context` tokens: one query each if `decode`, else causal over the whole prompt.
    Attention {
        /// One query token per sequence, or a prompt.
        decode: bool,
        heads: u64,
        /// Key-value heads.
        kv_heads: u64,
        head_dim: u64,
        /// Sequences.
        batch: u64,
        /// Tokens per sequence.
        context: u64,
    },
}

impl Table {
    /// Whether every model and system is known, and every stated split fills its system; `model` and `chips` look a name
    /// up, the latter answering with the number of chips.
    pub fn check(
        &self,
        model: impl Fn(&str) -> Result<(), SpecError>,
        chips: impl Fn(&str) -> Result<u64, SpecError>,
    ) -> Result<(), SpecError> {
        let at = |kind: &str, i: usize, field: &str| format!("validation {} {kind} {}: {field}", self.id, i + 1);
        // Rows repeat few names, and looking one up may read its file.
        let (mut models, mut systems) = (BTreeSet::new(), BTreeMap::new());
        for (i, row) in self.rows.iter().enumerate() {
            if models.insert(&row.model) {
                model(&row.model).map_err(|e| e.within(at("row", i, "model")))?;
            }
            let n = match systems.get(&row.system) {
                Some(n) => *n,
                None => chips(&row.system).map_err(|e| e.within(at("row", i, "system")))?,
            };
            systems.insert(&row.system, n);
            if row.split.is_stated() && row.split.chips() != n {
                let wrong = SpecError::value("tp x pp x dp x attention_dp", row.split.chips(), format!("{n} chips"));
                return Err(wrong.within(at("row", i, "system")));
            }
        }
        for (i, kernel) in self.kernels.iter().enumerate() {
            chips(&kernel.system).map_err(|e| e.within(at("kernel", i, "system")))?;
        }
        Ok(())
    }
}
