//! Measured configurations of InferenceX, grouped by the question they answer.

use crate::CalibrateError;
use crate::names::Names;
use crate::rows::{Record, csv, present};
use crate::serving::inferencex;
use rackmath_spec::Catalog;
use rackmath_spec::layout::Degrees;
use rackmath_spec::measurement::{Load, Setup, Way};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// What a planner is asked: everything but the layout and the load.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    pub model: String,
    pub precision: String,
    /// Chip, as published.
    pub hardware: String,
    /// Engine, without its version.
    pub engine: String,
    /// Nominal tokens of a prompt and of an answer.
    pub lengths: (u64, u64),
    /// Release of the engine, where releases are told apart; empty otherwise.
    pub release: String,
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, precision, hardware, engine, lengths, release } = self;
        let model = model.rsplit('/').next().unwrap_or(model);
        write!(f, "{model} {precision}, {hardware}, {engine}{release}, {}/{}", lengths.0, lengths.1)
    }
}

/// Latencies of a configuration, measured or predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// To the first token, in milliseconds.
    pub ttft: f64,
    /// Per output token, in milliseconds.
    pub tpot: f64,
}

#[derive(Clone, Debug)]
pub struct Configuration {
    pub setup: Setup,
    pub load: Load,
    /// Requests in flight.
    pub concurrency: f64,
    pub chips: f64,
    pub measured: Seen,
}

impl Configuration {
    /// Output tokens per second and chip of latencies in a closed loop, by Little's law.
    pub fn rate(&self, seen: Seen) -> f64 {
        let output = self.load.output;
        let seconds = (seen.ttft + seen.tpot * (output - 1.0)) / 1e3;
        self.concurrency * output / seconds / self.chips
    }

    /// What a planner chooses.
    pub fn layout(&self) -> Layout {
        let Degrees { tp, pp, dp, ep, .. } = self.setup.degrees;
        Layout { chips: self.chips as u64, tp, pp, dp, ep, drafts: self.load.drafts as u64 }
    }

    /// Requests that decoded at a time, by Little's law from the measured latencies.
    pub fn decoding(&self) -> f64 {
        let Seen { ttft, tpot } = self.measured;
        let decode = tpot * (self.load.output - 1.0);
        (self.concurrency * decode / (ttft + decode)).max(1.0)
    }
}

/// Chips, degrees, and tokens drafted a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Layout {
    pub chips: u64,
    /// Tensor parallelism.
    pub tp: u64,
    /// Pipeline stages.
    pub pp: u64,
    /// Attention groups.
    pub dp: u64,
    /// Expert parallelism.
    pub ep: u64,
    pub drafts: u64,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tp{}", self.tp)?;
        for (name, n) in [("pp", self.pp), ("dp", self.dp), ("ep", self.ep)] {
            if n > 1 {
                write!(f, " {name}{n}")?;
            }
        }
        if self.drafts > 0 {
            write!(f, " drafts {}", self.drafts)?;
        }
        Ok(())
    }
}

/// Aggregated rows of tier A by question. Repeated runs stay apart: each is predicted for its own version.
pub fn groups(catalog: &Catalog, folder: &Path) -> Result<BTreeMap<Question, Vec<Configuration>>, CalibrateError> {
    let names = Names::new(catalog);
    let mut groups: BTreeMap<Question, Vec<Configuration>> = BTreeMap::new();
    for (path, _) in present(folder, &[inferencex::TABLE], |file| file)? {
        for row in csv::<Record>(&path)? {
            if row.text("mode") == "agg"
                && row.text("tier") == "A"
                && let Some((question, configuration)) = configuration(&names, &row)
            {
                groups.entry(question).or_default().push(configuration);
            }
        }
    }
    Ok(groups)
}

fn configuration(names: &Names<'_>, row: &Record) -> Option<(Question, Configuration)> {
    let (setup, load) = inferencex::ran(names, row)?;
    let Way::Closed { concurrency, .. } = load.way else { return None };
    let measured = Seen { ttft: row.number("ttft_ms")?, tpot: row.number("tpot_ms")? };
    let word = |key: &str| row.text(key).to_owned();
    let question = Question {
        model: word("model"),
        precision: word("precision"),
        hardware: word("hardware"),
        engine: word("engine"),
        lengths: (row.count("isl")?, row.count("osl")?),
        release: String::new(),
    };
    let d = setup.degrees;
    let chips = (d.tp * d.pp * d.dp) as f64;
    Some((question, Configuration { setup, load, concurrency, chips, measured }))
}
