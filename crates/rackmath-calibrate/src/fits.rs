//! Published deployments ran, so they must fit: the memory side of a placement against every row that names one.
//!
//! Reads the InferenceX rows of tier A and the TensorRT-LLM tables, turns each distinct (model, machine, format, layout)
//! into a placement with one sequence of the shortest length it ran, and lists those that would not fit.

use crate::error::CalibrateError;
use crate::rows::{degree, read, text};
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
    let mut shortest: BTreeMap<Deployment, u64> = BTreeMap::new();
    let mut report = Report::default();
    for (deployment, tokens) in inferencex(folder)?.into_iter().chain(tensorrt(folder)?) {
        report.rows += 1;
        shortest.entry(deployment).and_modify(|t| *t = tokens.min(*t)).or_insert(tokens);
    }
    let catalog = rackmath_catalog::embedded();
    report.deployments = shortest.len();
    for (deployment, tokens) in &shortest {
        if let Err(why) = ran(&catalog, deployment, *tokens) {
            report.wrong.push(format!("{deployment:?}: {why}"));
        }
    }
    Ok(report)
}

fn inferencex(folder: &Path) -> Result<Vec<(Deployment, u64)>, CalibrateError> {
    let tier_a = read(folder, "inferencemax_pareto.csv")?.into_iter().filter(|row| text(row, "tier") == "A");
    Ok(tier_a
        .map(|row| {
            let (tp, pp, chips) = (degree(&row, "tp_size"), degree(&row, "pp_size"), degree(&row, "n_gpus"));
            // Rows without a data-parallel degree imply it by their number of chips.
            let dp = (chips / (tp * pp)).max(1);
            let format = if text(&row, "moe_quant_mode").is_empty() { "gemm_quant_mode" } else { "moe_quant_mode" };
            let deployment = Deployment {
                model: text(&row, "model").to_owned(),
                system: format!("{chips}x{}", text(&row, "hardware")),
                format: text(&row, format).to_owned(),
                tp,
                dp,
                pp,
                ep: degree(&row, "moe_ep_size"),
            };
            (deployment, degree(&row, "isl") + degree(&row, "osl"))
        })
        .collect())
}

/// The names of the TensorRT-LLM tables, in catalogue names.
const TABLE_MACHINES: [(&str, &str); 9] = [
    ("H100-SXM-80GB", "h100-sxm"),
    ("H200-SXM-141GB", "h200"),
    ("A100-SXM-80GB", "a100-80gb"),
    ("A100-PCIe-80GB", "a100-pcie"),
    ("L40S-48GB", "l40s"),
    ("B200-SXM-180GB", "b200"),
    ("GH200-120GB(as listed)", "gh200"),
    ("GH200-96GB", "gh200"),
    ("GH200-480GB", "gh200-144gb"),
];

fn tensorrt(folder: &Path) -> Result<Vec<(Deployment, u64)>, CalibrateError> {
    Ok(read(folder, "trtllm_throughput.csv")?
        .iter()
        .map(|row| {
            let tp = text(row, "parallelism").trim_start_matches("TP").parse::<u64>().unwrap_or(1);
            let listed = text(row, "hardware");
            let chip = TABLE_MACHINES.iter().find(|(name, _)| *name == listed).map_or(listed, |(_, id)| id);
            let format = match text(row, "quant") {
                "FP8" => "fp8",
                "FP4" => "nvfp4",
                _ => "fp16",
            };
            let deployment = Deployment {
                model: text(row, "model").to_owned(),
                system: format!("{tp}x{chip}"),
                format: format.to_owned(),
                tp,
                dp: 1,
                pp: 1,
                ep: 1,
            };
            (deployment, degree(row, "isl") + degree(row, "osl"))
        })
        .collect())
}

/// Places it with one sequence; an error says why it would not run.
fn ran(catalog: &Catalog, d: &Deployment, tokens: u64) -> Result<(), String> {
    let model = catalog.model(&d.model).or_else(|e| {
        // Published names carry an organisation, a variant or a format the shapes do not depend on.
        let bare = d.model.rsplit('/').next().unwrap_or(&d.model);
        let plain = bare.trim_end_matches("-NVFP4").trim_end_matches("-FP8").trim_end_matches("-17B-128E");
        let plain = if bare.contains("Maverick") { "llama-4-maverick" } else { plain };
        catalog.model(plain).map_err(|_| e)
    });
    let model = model.map_err(|e| e.to_string())?;
    let system = catalog.system(&d.system).map_err(|e| e.to_string())?;
    let own = model.formats();
    let dtype = d.format.parse::<Dtype>().map_err(|e| e.to_string())?;
    // gpt-oss ships in four bits whatever the activations run in.
    let routed = if own.routed.bits() < dtype.bits() { own.routed } else { dtype };
    let stage = d.tp * d.dp;
    let degrees = Degrees { tp: d.tp, dp: d.dp, pp: d.pp, ep: d.ep, etp: (stage / d.ep).max(1), ..Degrees::default() };
    let on = deployment::Deployment {
        formats: Formats { routed, linear: dtype, other: own.other },
        kv: Dtype::Fp16,
        layout: Layout::new(degrees).map_err(|e| e.to_string())?,
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
        // TensorRT-LLM perf overview: Llama-3.1-405B FP8 on 8 H100; InferenceX: DeepSeek-R1 FP8 blocks on 8 H200.
        assert_eq!(ran(&catalog, &deployment("Llama-3.1-405B", "8xh100_sxm", "fp8", 8), 2048), Ok(()));
        assert_eq!(ran(&catalog, &deployment("deepseek-ai/DeepSeek-R1", "8xh200_sxm", "fp8_block", 8), 2048), Ok(()));
        assert!(ran(&catalog, &deployment("deepseek-ai/DeepSeek-V3", "8xh100_sxm", "bf16", 8), 2048).is_err());
    }
}
