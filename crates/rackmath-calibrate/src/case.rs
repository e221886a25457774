//! One measured row beside its prediction, whatever it is about: what every score is made of.

use rackmath_spec::Chip;
use rackmath_units::float;

/// A measured row that could be predicted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Case {
    /// The table it stands in, and its number there, from 1; 0 where that is not kept.
    pub file: String,
    pub row: usize,
    /// What was measured: TPOT, TTFT, step, gemm, all-reduce.
    pub metric: String,
    /// Chip of the catalogue, and its maker.
    pub chip: String,
    pub vendor: String,
    /// Engine with its version, or whose kernel; a training program.
    pub engine: String,
    /// Model of the catalogue, or the shape of a kernel's work.
    pub model: String,
    /// Whether the model is a mixture of experts.
    pub experts: bool,
    /// Weight format where it is not the checkpoint's.
    pub weights: String,
    /// Requests in flight, where they are stated.
    pub concurrency: Option<f64>,
    /// The rest of what ran, in words.
    pub what: String,
    pub measured: f64,
    pub predicted: f64,
}

impl Case {
    /// A row about a chip.
    pub fn on(chip: &Chip, file: &str, metric: impl ToString) -> Self {
        let (chip, vendor) = (chip.id.clone(), chip.vendor.clone());
        Self { file: file.into(), metric: metric.to_string(), chip, vendor, ..Self::default() }
    }

    /// The same of an engine, a model or shape, and what is left to say.
    #[must_use]
    pub fn of(self, engine: &str, model: impl ToString, what: impl ToString) -> Self {
        Self { engine: engine.into(), model: model.to_string(), what: what.to_string(), ..self }
    }

    /// With the measured value and ln(predicted / measured).
    #[must_use]
    pub fn off(self, measured: f64, error: f64) -> Self {
        Self { measured, predicted: measured * float::exp(error), ..self }
    }

    /// ln(predicted / measured).
    pub fn error(&self) -> f64 {
        float::ln(self.predicted / self.measured)
    }

    /// The engine without its version.
    pub fn family(&self) -> &str {
        self.engine.split('@').next().unwrap_or("")
    }

    /// What fits are made for: chip, engine and model.
    pub fn group(&self) -> [&str; 3] {
        [&self.chip, self.family(), &self.model]
    }
}
