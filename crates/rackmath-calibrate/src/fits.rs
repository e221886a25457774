//! Published deployments ran, so they must fit: the memory side of every measurement.
//!
//! Of each different setup the measurement with the shortest requests is taken, and one sequence of it must have room.

use crate::{CalibrateError, serving};
use rackmath::case::Bench;
use rackmath_spec::measurement::Measurement;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// What was checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub rows: usize,
    /// Different setups among them.
    pub deployments: usize,
    /// Those that would not fit, or could not be placed, and why.
    pub wrong: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} rows, {} deployments, {} said not to fit", self.rows, self.deployments, self.wrong.len())?;
        self.wrong.iter().try_for_each(|w| writeln!(f, "  {w}"))
    }
}

pub fn score(folder: &Path) -> Result<Report, CalibrateError> {
    let catalog = rackmath_catalog::embedded();
    let rows = serving::all(&catalog, folder)?;
    Ok(of(&mut Bench::new(catalog)?, &rows))
}

fn of(bench: &mut Bench, rows: &[Measurement]) -> Report {
    let tokens = |row: &Measurement| row.load.input + row.load.output;
    let mut shortest: BTreeMap<String, &Measurement> = BTreeMap::new();
    for row in rows {
        let least = shortest.entry(format!("{:?}", row.setup)).or_insert(row);
        if tokens(row) < tokens(least) {
            *least = row;
        }
    }
    let mut report = Report { rows: rows.len(), deployments: shortest.len(), wrong: Vec::new() };
    for row in shortest.into_values() {
        let why = match bench.room(row) {
            Ok(room) if room >= 1.0 => continue,
            Ok(_) => format!("no room for {} tokens", tokens(row)),
            Err(error) => error.to_string(),
        };
        report.wrong.push(format!("{}: {why}", serving::what(row)));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmath_spec::layout::Degrees;
    use rackmath_spec::measurement::{Load, Metric, Origin, Setup, Way};

    #[test]
    fn what_ran_fits_and_what_cannot_does_not() {
        let on_eight = |model: &str, system: &str, weights: Option<&str>| {
            let degrees = Degrees { tp: 8, etp: 8, ..Degrees::default() };
            let (model, system, engine) = (model.into(), system.into(), "vllm".into());
            let setup = Setup { model, system, engine, weights: weights.map(Into::into), degrees, ..Setup::default() };
            let load = Load::of(Way::Full, 1024.0, 1024.0);
            let (metric, source) = (Metric::OutputTokSPerGpu, Origin::default());
            Measurement { setup, load, metric, value: 1.0, spread: None, source }
        };
        let rows = [
            // TensorRT-LLM perf overview: Llama-3.1-405B FP8 on 8 H100; InferenceX: DeepSeek-R1 FP8 blocks on 8 H200.
            on_eight("llama-3.1-405b", "8xh100_sxm", Some("fp8")),
            on_eight("deepseek-ai/DeepSeek-V3", "8xh200_sxm", None),
            on_eight("deepseek-ai/DeepSeek-V3", "8xh100_sxm", Some("bf16")),
        ];
        let report = of(&mut Bench::new(rackmath_catalog::embedded()).unwrap(), &rows);
        assert_eq!((report.rows, report.deployments, report.wrong.len()), (3, 3, 1), "{report}");
        assert!(report.wrong[0].contains("8xh100_sxm") && report.wrong[0].contains("bf16"), "{report}");
    }
}
