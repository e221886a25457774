//! MLPerf Inference, offline: audited rates of whole machines with every request there from the start.
//!
//! Answers are as long as the logs say. Of prompts only the longest are published, and for Llama 3.1 405B a median (9,500 tokens, a secondary source):
//! those rows are held against the measured rate. The others are read as ratios: what a chip reaches of the chip most rows of the same round, model
//! and engine are of, with prompts of half the longest on both sides, which all but cancel. Also taken for granted, where a row does not say
//! it: copies over as many chips as make the highest rate predicted (submitters tune that), TensorRT-LLM 0.11 in round 4.1 and
//! 1.0 in round 5.1 where a row names TensorRT, and FP8 where NVIDIA's column of weights says fp16: it names the format they were given in.

use super::rows::of;
use crate::case::Case;
use crate::names::Names;
use crate::rows::{Record, Rows, table_or_none};
use rackmath::case::Bench;
use rackmath::validate::ran;
use rackmath_spec::layout::Degrees;
use rackmath_spec::measurement::{Load, Measurement, Metric, Setup, Way};
use rackmath_spec::{Catalog, Math, SpecError};
use rackmath_theory::stats::median;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub const FILE: &str = "mlperf.csv";

/// Tokens of a prompt by model, and whether a source gives them; else half of the longest.
const PROMPTS: [(&str, f64, bool); 6] = [
    ("llama-2-70b", 1024.0 / 2.0, false),
    ("llama-3.1-405b", 9500.0, true),
    ("llama-3.1-8b", 2048.0 / 2.0, false),
    ("mixtral-8x7b", 2048.0 / 2.0, false),
    ("deepseek-v3", 3136.0 / 2.0, false),
    ("gpt-oss-120b", 15330.0 / 2.0, false),
];

/// One machine's figure.
struct Run {
    row: usize,
    round: String,
    known: bool,
    m: Measurement,
    /// Where the row states how it was cut.
    stated: bool,
    predicted: f64,
}

pub fn cases(catalog: &Catalog, folder: &Path) -> Result<Rows<Case>, SpecError> {
    let (names, mut bench) = (Names::new(catalog), Bench::new(catalog.clone())?);
    let (mut all, mut seen, mut runs) = (Rows::none(), BTreeSet::new(), Vec::new());
    for (at, record) in table_or_none(&folder.join(FILE))?.iter().enumerate() {
        match read(&names, record) {
            // Both accuracies of a task may be one run.
            Ok(run) if !seen.insert(format!("{} {}", record.text("system"), run.m.value)) => {
                all.skip(format!("{FILE}: the same run under another accuracy"));
            }
            Ok(run) => match best(&mut bench, run) {
                Ok(run) => runs.push(Run { row: at + 1, ..run }),
                Err(reason) => all.skip(format!("{FILE}: {reason}")),
            },
            Err(reason) => all.skip(format!("{FILE}: {reason}")),
        }
    }
    for run in runs.iter().filter(|run| run.known) {
        all.rows.push(case(catalog, run, "offline rate", (run.m.value, run.predicted))?);
    }
    for (of_each, run) in compared(&runs) {
        all.rows.push(case(catalog, run, "offline rate over another chip's", of_each)?);
    }
    Ok(all)
}

fn case(catalog: &Catalog, run: &Run, metric: &str, (measured, predicted): (f64, f64)) -> Result<Case, SpecError> {
    let case = super::case(catalog, FILE, metric, (&run.m.setup, &run.m.load))?;
    Ok(Case { row: run.row, what: ran(&run.m).replace(',', ";"), measured, predicted, ..case })
}

/// Runs by chip and format.
type Kinds<'a> = BTreeMap<(&'a str, Option<&'a str>), Vec<&'a Run>>;

/// Every run of another chip or format than most of its group, over the middle of those.
fn compared(runs: &[Run]) -> Vec<((f64, f64), &Run)> {
    let mut groups: BTreeMap<[&str; 3], Kinds<'_>> = BTreeMap::new();
    for run in runs {
        let of = &run.m.setup;
        let kinds = groups.entry([&run.round, &of.model, of.family()]).or_default();
        kinds.entry((of.chip(), of.weights.as_deref())).or_default().push(run);
    }
    let mut all = Vec::new();
    for kinds in groups.into_values() {
        let Some((most, usual)) = kinds.iter().max_by_key(|(_, runs)| runs.len()) else { continue };
        let middle = |figure: fn(&Run) -> f64| median(&usual.iter().map(|run| figure(run)).collect::<Vec<_>>());
        let (Some(measured), Some(predicted)) = (middle(|run| run.m.value), middle(|run| run.predicted)) else {
            continue;
        };
        for run in kinds.iter().filter(|(kind, _)| *kind != most).flat_map(|(_, runs)| runs) {
            all.push(((run.m.value / measured, run.predicted / predicted), *run));
        }
    }
    all
}

/// The highest rate of the layouts a copy may have, or of the one that is stated.
fn best(bench: &mut Bench, run: Run) -> Result<Run, String> {
    let mut found: Option<(Measurement, f64)> = None;
    let mut why = String::from("fits on none of 1 to 8 chips");
    for tp in if run.stated { vec![run.m.setup.degrees.tp] } else { vec![1, 2, 4, 8] } {
        let mut m = run.m.clone();
        if !run.stated {
            m.setup.degrees = Degrees { tp, etp: tp, ..Degrees::default() };
            let chip = m.setup.chip().to_owned();
            m.setup.system = if tp == 1 { chip } else { format!("{tp}x{chip}") };
        }
        match bench.predict(&m) {
            Ok(rate) if rate > 0.0 && rate.is_finite() => {
                if found.as_ref().is_none_or(|(_, most)| rate > *most) {
                    found = Some((m, rate));
                }
            }
            Ok(_) => {}
            Err(error) => why = error.to_string(),
        }
    }
    found.map(|(m, predicted)| Run { m, predicted, ..run }).ok_or(why)
}

fn read(names: &Names<'_>, record: &Record) -> Result<Run, String> {
    if record.text("scenario") != "Offline" || record.text("division") != "closed" {
        return Err("not of the closed division, offline".into());
    }
    let task = record.text("model").trim_end_matches("-99").trim_end_matches("-99.9").to_owned();
    let model = names.model(&task).ok_or_else(|| format!("no model \"{task}\""))?;
    let (_, prompt, known) =
        *PROMPTS.iter().find(|(of, ..)| *of == model).ok_or_else(|| format!("no length of prompts of \"{task}\""))?;
    let word = record.text("accelerator");
    if word.contains("(x") {
        return Err("two kinds of chips in one machine".into());
    }
    let chip = names.found(word)?;
    let software = record.text("software");
    let engine = if let Some(at) = software.to_ascii_lowercase().find("vllm") {
        let version = software[at + 4..].trim_start_matches([' ', '-', 'v']);
        let numbers: String = version.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let three: Vec<&str> = numbers.split('.').filter(|n| !n.is_empty()).take(3).collect();
        names.engine("vllm", &three.join("."))
    } else if software.starts_with("TensorRT") {
        names.engine("trtllm", if record.text("round") == "v4.1" { "0.11" } else { "1.0" })
    } else {
        return Err(format!("no engine in \"{software}\""));
    };
    let narrow = chip.vendor == "NVIDIA" && chip.peak.contains_key(&Math::Fp8);
    let weights = match record.text("weight_dtype").to_ascii_lowercase().as_str() {
        "fp16" if narrow => "fp8".to_owned(),
        "fp4" => "nvfp4".to_owned(),
        "uint4" => "int4".to_owned(),
        word @ ("fp16" | "fp8" | "int8" | "int4" | "mxfp4") => word.to_owned(),
        other => return Err(format!("weights in \"{other}\"")),
    };
    let kv = narrow.then(|| "fp8".to_owned());
    let chips = record.count("total_accelerators").unwrap_or(record.degree("accel_per_node") * record.degree("nodes"));
    let rate = record.amount("tokens_per_s")? / chips.max(1) as f64;
    let (tp, pp, ep) = (record.degree("tp"), record.degree("pp"), record.degree("ep"));
    let (stated, one) = (record.count("tp").is_some(), tp * pp);
    let degrees = Degrees { tp, pp, ep, etp: (tp / ep).max(1), ..Degrees::default() };
    let setup = Setup {
        model,
        system: names.system(one, &chip.id),
        engine,
        weights: Some(weights),
        kv,
        degrees,
        ..Setup::default()
    };
    let load = Load::of(Way::Full, prompt, record.amount("mean_output_tokens")?);
    let m = of(("MLPerf", "offline"), setup, load, (Metric::OutputTokSPerGpu, rate));
    Ok(Run { row: 0, round: record.text("round").to_owned(), known, m, stated, predicted: 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::parse;

    const CSV: &str = "\
round,division,system,accelerator,accel_per_node,nodes,total_accelerators,model,scenario,weight_dtype,tp,pp,ep,tokens_per_s,mean_output_tokens,software
v4.1,closed,a,NVIDIA H100-SXM-80GB,8,1,,llama2-70b-99,Offline,fp16,,,,24000,293,\"TensorRT 10.2.0, CUDA 12.4\"
v4.1,closed,a,NVIDIA H100-SXM-80GB,8,1,,llama2-70b-99.9,Offline,fp16,,,,24000,293,\"TensorRT 10.2.0, CUDA 12.4\"
v4.1,closed,b,NVIDIA H100-SXM-80GB,8,1,,llama2-70b-99,Offline,fp16,,,,24400,293,\"TensorRT 10.2.0, CUDA 12.4\"
v4.1,closed,c,NVIDIA H200-SXM-141GB,8,1,,llama2-70b-99,Offline,fp16,,,,34800,293,\"TensorRT 10.2.0, CUDA 12.4\"
v5.1,closed,d,NVIDIA B200-SXM-180GB,8,1,8,llama3.1-405b,Offline,fp4,4,2,1,1700,653,\"TensorRT 10.11, CUDA 12.9\"
v5.1,closed,e,AMD Instinct MI325X 256GB HBM3e,8,1,8,llama2-70b-99,Offline,fp8,,,,32000,293,\"Mango, vllm-0.9.0.2.dev108+g7, ROCm 6.4\"
v4.1,closed,f,NVIDIA H100-SXM-80GB,8,1,,llama2-70b-99,Server,fp16,,,,21000,293,\"TensorRT 10.2.0, CUDA 12.4\"
v4.1,closed,g,Abacus,8,1,,llama2-70b-99,Offline,fp16,,,,21000,293,\"TensorRT 10.2.0, CUDA 12.4\"
v4.1,closed,h,NVIDIA H100-SXM-80GB,8,1,,llama2-70b-99,Offline,fp16,,,,21000,293,PyTorch
";

    #[test]
    fn machines_are_read_and_refused_by_what_they_state() {
        let catalog = rackmath_catalog::embedded();
        let names = Names::new(&catalog);
        let rows: Vec<_> = parse(CSV).unwrap().iter().map(|r| read(&names, r)).collect();
        let first = rows[0].as_ref().unwrap();
        assert_eq!((first.m.value, first.m.setup.engine.as_str(), first.known), (3000.0, "trtllm@0.11", false));
        assert_eq!((first.m.setup.weights.as_deref(), first.m.load.input), (Some("fp8"), 512.0));
        let stated = rows[4].as_ref().unwrap();
        assert_eq!(
            (stated.m.setup.degrees.tp, stated.m.setup.degrees.pp, stated.stated, stated.known),
            (4, 2, true, true)
        );
        assert_eq!(stated.m.setup.system, "8xb200");
        assert_eq!(rows[5].as_ref().unwrap().m.setup.engine, "vllm@0.9.0");
        for (row, why) in rows[6..].iter().zip(["offline", "Abacus", "PyTorch"]) {
            assert!(row.as_ref().is_err_and(|said| said.contains(why)), "{why}");
        }
    }

    #[test]
    fn chips_are_compared_with_the_one_most_rows_are_of() {
        let folder = std::env::temp_dir().join(format!("rackmath-mlperf-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(FILE), CSV).unwrap();
        let rows = cases(&rackmath_catalog::embedded(), &folder);
        std::fs::remove_dir_all(&folder).unwrap();
        let rows = rows.unwrap();
        let found: Vec<(&str, &str)> = rows.rows.iter().map(|c| (c.metric.as_str(), c.chip.as_str())).collect();
        assert_eq!(found, [("offline rate", "b200"), ("offline rate over another chip's", "h200")]);
        // 34,800 over the middle of 24,000 and 24,400.
        assert!((rows.rows[1].measured - 34_800.0 / 24_200.0).abs() < 1e-9 && rows.rows[1].predicted > 1.0);
        assert!(rows.skipped.keys().any(|why| why.contains("another accuracy")), "{:?}", rows.skipped);
    }
}
