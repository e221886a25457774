//! One run's FLOP per second in every convention.

use crate::desk::prelude::*;
use rackmath_spec::TrainingFormat;
use rackmath_theory::train::Recompute;
use rackmath_theory::train::mfu::{Convention, flop_per_token};
use strum::VariantArray as _;

/// A run, by its speed in any one way of counting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model: a catalogue id, an alias, or a Hugging Face id.
    #[schemars(extend("x-file" = "model", "x-position" = 2))]
    #[educe(Default = "llama-3.1-70b")]
    pub model: String,
    /// Chip or machine.
    #[schemars(extend("x-flag" = "on hw system", "x-file" = "machine"))]
    #[educe(Default = "h100-sxm")]
    pub on: String,
    /// Format whose peak counts.
    #[schemars(transform = closed::<TrainingFormat>, extend("x-flag" = "format dtype"))]
    #[educe(Default = "bf16")]
    pub format: String,
    /// Tokens of a sequence.
    #[schemars(extend("x-flag" = "sequence seq-length"))]
    #[educe(Default = 8192)]
    pub sequence: u64,
    /// Tokens per second and chip.
    #[schemars(extend("x-flag" = "tokens-per-s"))]
    pub tokens_per_s_per_chip: Option<f64>,
    /// Or TFLOP per second and chip, in the convention below.
    #[schemars(extend("x-flag" = "tflops"))]
    pub tflop_per_s_per_chip: Option<f64>,
    /// Or a share of the peak, 0 to 1, in the convention below.
    #[schemars(extend("x-unit" = "share"))]
    pub mfu: Option<f64>,
    /// How the last two were counted.
    #[educe(Default = Convention::Causal)]
    pub convention: Convention,
    /// What the run computed again.
    #[schemars(extend("x-also" = ["off"]))]
    #[educe(Default = Recompute::None)]
    pub recompute: Recompute,
}

/// The run in every convention.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What was asked.
    pub request: Request,
    /// The model's name.
    pub model: String,
    /// The chip's name.
    pub chip: String,
    /// Dense peak of the format.
    pub peak_flop_per_s: f64,
    /// Tokens per second and chip: the same in every convention.
    pub tokens_per_s_per_chip: f64,
    /// One line per convention.
    pub lines: Vec<Line>,
}

/// A convention.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Line {
    /// Its word.
    pub convention: Convention,
    /// Who counts so.
    pub used_by: &'static str,
    /// FLOP per token.
    pub flop_per_token: f64,
    /// FLOP per second and chip.
    pub flop_per_s_per_chip: f64,
    /// Share of the peak.
    pub mfu: f64,
}

/// Answers.
pub fn answer(catalog: &Catalog, r: &Request) -> Result<Answer, Error> {
    let model = catalog.model(&r.model)?;
    let shape = layered(&model, &r.model)?;
    let system = catalog.system(&r.on)?;
    let format = r.format.parse::<TrainingFormat>()?;
    let peak = system.chip.peak.get(&format.math()).filter(|_| format.runs_on(&system.chip));
    let peak = peak.ok_or_else(|| no_peak(&system.chip, &system.chip.name, format))?;
    let peak = peak.value.get();
    up_to("sequence", r.sequence, 100_000_000)?;
    let per_token = |c: Convention| flop_per_token(shape, r.sequence, c, r.recompute);
    let tokens = match (r.tokens_per_s_per_chip, r.tflop_per_s_per_chip, r.mfu) {
        (Some(rate), None, None) => rate,
        (None, Some(tflop), None) => tflop * 1e12 / per_token(r.convention),
        (None, None, Some(share)) => share * peak / per_token(r.convention),
        (None, None, None) => {
            return Err(Error::said("no speed is given").hint("one speed: {tokens_per_s}, {tflops} or {mfu}"));
        }
        _ => return Err(Error::said("several speeds are given").hint("one speed: {tokens_per_s}, {tflops} or {mfu}")),
    };
    refuse_if(!(tokens.is_finite() && tokens > 0.0), "speed", tokens, "a positive number")?;
    let lines = Convention::VARIANTS.iter().map(|c| {
        let flop_per_token = per_token(*c);
        let flop_per_s_per_chip = flop_per_token * tokens;
        let (convention, used_by) = (*c, c.used_by());
        Line { convention, used_by, flop_per_token, flop_per_s_per_chip, mfu: flop_per_s_per_chip / peak }
    });
    Ok(Answer {
        request: r.clone(),
        model: model.name.clone(),
        chip: system.chip.name.clone(),
        peak_flop_per_s: peak,
        tokens_per_s_per_chip: tokens,
        lines: lines.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conventions_convert_there_and_back() {
        let catalog = rackmath_catalog::embedded();
        let first = answer(&catalog, &Request { tokens_per_s_per_chip: Some(1000.0), ..Request::default() }).unwrap();
        for line in &first.lines {
            let request = Request { mfu: Some(line.mfu), convention: line.convention, ..Request::default() };
            let back = answer(&catalog, &request).unwrap();
            assert!((back.tokens_per_s_per_chip / 1000.0 - 1.0).abs() < 1e-12, "{}", line.convention);
        }
        let two = Request { mfu: Some(0.4), tokens_per_s_per_chip: Some(1.0), ..Request::default() };
        assert!(answer(&catalog, &two).is_err());
    }
}
