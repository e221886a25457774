//! Published deployments ran, so they must fit: the memory side of a placement against every row that names one.
//!
//! Reads the InferenceX rows of tier A and the TensorRT-LLM tables, turns each distinct (model, machine, format, layout)
//! into a placement with one sequence of the shortest length it ran, and lists those that would not fit.

use crate::CalibrateError;
use crate::names::Names;
use crate::rows::{Record, csv};
use rackmath_spec::layout::Degrees;
use rackmath_spec::model::Formats;
use rackmath_spec::{Catalog, Dtype, Layout};
use rackmath_theory::deployment;
use rackmath_theory::placement::{Fit, Load, place};
use rackmath_units::{Fraction, Tokens};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// What was checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub rows: usize,
    /// Different deployments among them.
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

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Deployment {
    model: String,
    system: String,
    format: String,
    tp: u64,
    dp: u64,
    pp: u64,
    ep: u64,
}

pub fn score(folder: &Path) -> Result<Report, CalibrateError> {
    let catalog = rackmath_catalog::embedded();
    let names = Names::new(&catalog);
    let mut shortest: BTreeMap<Deployment, u64> = BTreeMap::new();
    let mut report = Report::default();
    let mut rows: Vec<(Deployment, u64)> =
        csv(&folder.join("inferencemax_pareto.csv"))?.iter().filter_map(inferencex).collect();
    rows.extend(csv(&folder.join("trtllm_throughput.csv"))?.iter().map(|row| tensorrt(&names, row)));
    for (deployment, tokens) in rows {
        report.rows += 1;
        shortest.entry(deployment).and_modify(|t| *t = tokens.min(*t)).or_insert(tokens);
    }
    report.deployments = shortest.len();
    for (deployment, tokens) in &shortest {
        if let Err(why) = ran(&names, &catalog, deployment, *tokens) {
            report.wrong.push(format!("{deployment:?}: {why}"));
        }
    }
    Ok(report)
}

fn inferencex(row: &Record) -> Option<(Deployment, u64)> {
    if row.text("tier") != "A" {
        return None;
    }
    let (tp, pp, chips) = (row.degree("tp_size"), row.degree("pp_size"), row.degree("n_gpus"));
    let format = if row.text("moe_quant_mode").is_empty() { "gemm_quant_mode" } else { "moe_quant_mode" };
    let deployment = Deployment {
        model: row.text("model").to_owned(),
        system: format!("{chips}x{}", row.text("hardware")),
        format: row.text(format).to_owned(),
        tp,
        // Rows without a data-parallel degree imply it by their number of chips.
        dp: (chips / (tp * pp)).max(1),
        pp,
        ep: row.degree("moe_ep_size"),
    };
    Some((deployment, row.degree("isl") + row.degree("osl")))
}

fn tensorrt(names: &Names<'_>, row: &Record) -> (Deployment, u64) {
    let tp = row.text("parallelism").trim_start_matches("TP").parse::<u64>().unwrap_or(1);
    let format = match row.text("quant") {
        "FP8" => "fp8",
        "FP4" => "nvfp4",
        _ => "fp16",
    };
    let listed = row.text("hardware");
    let chip = names.chip(listed).unwrap_or_else(|| listed.to_owned());
    let deployment = Deployment {
        model: row.text("model").to_owned(),
        system: format!("{tp}x{chip}"),
        format: format.to_owned(),
        tp,
        dp: 1,
        pp: 1,
        ep: 1,
    };
    (deployment, row.degree("isl") + row.degree("osl"))
}

/// Places it with one sequence; an error says why it would not run.
fn ran(names: &Names<'_>, catalog: &Catalog, d: &Deployment, tokens: u64) -> Result<(), String> {
    let model = catalog.model(&names.named(&d.model)).map_err(|e| e.to_string())?;
    let system = catalog.system(&d.system).map_err(|e| e.to_string())?;
    let own = model.formats();
    let dtype = d.format.parse::<Dtype>().map_err(|e| e.to_string())?;
    // gpt-oss ships in four bits whatever the activations run in.
    let routed = if own.routed.bits() < dtype.bits() { own.routed } else { dtype };
    let stage = d.tp * d.dp;
    let degrees = Degrees { tp: d.tp, dp: d.dp, pp: d.pp, ep: d.ep, etp: (stage / d.ep).max(1), ..Degrees::default() };
    let layout = Layout::new(degrees).map_err(|e| e.to_string())?;
    let formats = Formats { routed, linear: dtype, other: own.other };
    let on = deployment::Deployment {
        formats,
        kv: Dtype::Fp16,
        layout,
        ..deployment::Deployment::of(catalog, model, system, catalog.engine("ideal").map_err(|e| e.to_string())?.0)
    };
    let load =
        Load { batch: 1.0, context: Tokens::new(tokens as f64), tokens: 2048.0, utilisation: Fraction::new(0.9) };
    match place(&on, &load).fit {
        Fit::Fits { .. } => Ok(()),
        Fit::TooLarge { missing, .. } => Err(format!("{missing} missing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(model: &str, system: &str, format: &str, tp: u64) -> Deployment {
        Deployment { model: model.into(), system: system.into(), format: format.into(), tp, dp: 1, pp: 1, ep: 1 }
    }

    #[test]
    fn what_ran_fits_and_what_cannot_does_not() {
        let catalog = rackmath_catalog::embedded();
        let names = Names::new(&catalog);
        // TensorRT-LLM perf overview: Llama-3.1-405B FP8 on 8 H100; InferenceX: DeepSeek-R1 FP8 blocks on 8 H200.
        assert_eq!(ran(&names, &catalog, &deployment("Llama-3.1-405B", "8xh100_sxm", "fp8", 8), 2048), Ok(()));
        assert_eq!(
            ran(&names, &catalog, &deployment("deepseek-ai/DeepSeek-R1", "8xh200_sxm", "fp8_block", 8), 2048),
            Ok(())
        );
        assert!(ran(&names, &catalog, &deployment("deepseek-ai/DeepSeek-V3", "8xh100_sxm", "bf16", 8), 2048).is_err());
    }
}
