//! Published serving measurements as cases.

use crate::CalibrateError;
use crate::rows::{degree, number, read, text};
use rackmath::case::{Case, CaseLoad, Metric};
use rackmath_spec::layout::Degrees;
use rackmath_theory::steady::Requests;
use std::path::Path;

/// A case with the groups it is scored in.
#[derive(Clone, Debug)]
pub struct Measured {
    pub case: Case,
    /// The table it is scored in: source and metric, sometimes a condition.
    pub stratum: String,
    /// Chip, for leaving one out.
    pub chip: String,
    /// Model, for leaving one out.
    pub model: String,
    /// Engine family, for leaving one out.
    pub engine: String,
}

type Reader = fn(&Path) -> Result<Vec<Measured>, CalibrateError>;

pub const TABLES: [(&str, Reader); 7] = [
    (super::inferencex::TABLE, super::inferencex::rows),
    ("trtllm_throughput.csv", trtllm),
    ("vllm_h100_serving_blis.csv", blis),
    ("splitwise_llama2_bloom.csv", splitwise),
    ("inferencex_context_sweep.csv", context_sweep),
    ("llamacpp_single_stream.csv", llamacpp),
    ("h200_torch/model_llama3-8b.json", torch),
];

/// Every table that is there.
pub fn all(folder: &Path) -> Result<Vec<Measured>, CalibrateError> {
    let mut all = Vec::new();
    let mut found = false;
    for (file, reader) in TABLES {
        if folder.join(file).is_file() {
            found = true;
            all.extend(reader(folder)?);
        }
    }
    if found {
        return Ok(all);
    }
    let expected = TABLES.iter().map(|(file, _)| *file).collect();
    Err(CalibrateError::Nothing { folder: folder.display().to_string(), expected })
}

pub(super) fn measured(case: Case, stratum: String, chip: &str) -> Measured {
    let engine = case.engine.split('@').next().unwrap_or("").to_owned();
    Measured { stratum, chip: chip.to_owned(), model: case.model.clone(), engine, case }
}

/// The catalogue's word for a chip as tables spell it.
pub(super) fn chip(word: &str) -> String {
    let lower = word.to_ascii_lowercase();
    let known = [
        ("h100-sxm", "h100-sxm"),
        ("h100_sxm", "h100-sxm"),
        ("h100", "h100-sxm"),
        ("h200", "h200"),
        ("gb200", "gb200"),
        ("gb300", "gb300"),
        ("b200", "b200"),
        ("b300", "b300"),
        ("a100-pcie", "a100-pcie"),
        ("a100", "a100-80gb"),
        ("gh200", "gh200"),
        ("l40s", "l40s"),
    ];
    known.iter().find(|(start, _)| lower.starts_with(start)).map_or(lower.clone(), |(_, id)| (*id).to_owned())
}

pub(super) fn system(n: u64, chip: &str) -> String {
    if n == 1 { chip.to_owned() } else { format!("{n}x{chip}") }
}

fn trtllm(folder: &Path) -> Result<Vec<Measured>, CalibrateError> {
    let mut all = Vec::new();
    for row in read(folder, "trtllm_throughput.csv")? {
        if !text(&row, "flag").is_empty() {
            continue;
        }
        let (Some(isl), Some(osl)) = (number(&row, "isl"), number(&row, "osl")) else { continue };
        let Some(model) = trtllm_model(text(&row, "model")) else { continue };
        let quant = text(&row, "quant");
        let weights = match quant {
            "FP8" => "fp8",
            "FP4" => "nvfp4",
            _ => "bf16",
        };
        let chip = chip(text(&row, "hardware"));
        let gpus = degree(&row, "n_gpus");
        let batch = number(&row, "batch");
        let first = text(&row, "metric") == "first_token_latency";
        let value = if first { number(&row, "value") } else { number(&row, "output_tok_s_per_gpu") };
        let Some(value) = value else { continue };
        let version = text(&row, "engine_version").split('-').next().unwrap_or("").to_owned();
        let attention_dp = text(&row, "parallelism").starts_with("DEP");
        let degrees = if attention_dp {
            Degrees { dp: gpus, ep: gpus, ..Degrees::default() }
        } else {
            Degrees { tp: gpus, etp: gpus, ..Degrees::default() }
        };
        let (load, metric, stratum) = match (batch, first) {
            (Some(b), true) => {
                (CaseLoad::PrefillStep { batch: b, tokens: isl }, Metric::Ttft, "TensorRT-LLM first token")
            }
            (Some(b), false) => (CaseLoad::Static { batch: b }, Metric::OutputRate, "TensorRT-LLM known batch"),
            (None, _) => (CaseLoad::Full, Metric::OutputRate, "TensorRT-LLM max load"),
        };
        let case = Case {
            source: "TensorRT-LLM".into(),
            model: model.into(),
            weights: Some(weights.into()),
            kv: (quant == "FP8" || quant == "FP4").then(|| "fp8".into()),
            engine: format!("trtllm@{version}"),
            system: system(gpus, &chip),
            degrees,
            load,
            requests: Requests::of(isl, osl),
            chunk: None,
            sequences: None,
            metric,
            measured: value,
        };
        all.push(measured(case, stratum.into(), &chip));
    }
    Ok(all)
}

fn trtllm_model(name: &str) -> Option<&'static str> {
    Some(match name {
        "Mixtral-8x7B" => "mixtral-8x7b",
        "Mixtral-8x22B" => "mixtral-8x22b",
        "Llama-3.1-70B" | "Llama-3-70B" | "Llama-3.3-70B" => "llama-3.1-70b",
        "Llama-3.1-8B" | "Llama-3-8B" => "llama-3.1-8b",
        "Llama-3.1-405B" => "llama-3.1-405b",
        "Llama-2-70B" => "llama-2-70b",
        "Llama-2-13B" => "llama-2-13b",
        "Llama-2-7B" => "llama-2-7b",
        "Mistral-7B" => "mistral-7b",
        "GPT-J-6B" => "gpt-j-6b",
        name if name.starts_with("Llama-4-Maverick") => "llama-4-maverick",
        name if name.starts_with("Llama-4-Scout") => "llama-4-scout",
        name if name.starts_with("Qwen3-235B") => "qwen3-235b-a22b",
        name if name.starts_with("Qwen3-30B") => "qwen3-30b-a3b",
        name if name.starts_with("DeepSeek-R1") || name.starts_with("DeepSeek-V3") => "deepseek-v3",
        name if name.to_ascii_lowercase().starts_with("gpt-oss-120b") => "gpt-oss-120b",
        name if name.to_ascii_lowercase().starts_with("gpt-oss-20b") => "gpt-oss-20b",
        name if name.starts_with("Falcon-180B") => "falcon-180b",
        _ => return None,
    })
}

fn blis(folder: &Path) -> Result<Vec<Measured>, CalibrateError> {
    let mut all = Vec::new();
    for row in read(folder, "vllm_h100_serving_blis.csv")? {
        let metric = match text(&row, "metric") {
            "e2e_mean" => Metric::E2e,
            "itl_mean" => Metric::Tpot,
            "ttft_mean" => Metric::Ttft,
            _ => continue,
        };
        let (Some(isl), Some(osl), Some(value)) =
            (number(&row, "isl_nominal"), number(&row, "osl_nominal"), number(&row, "value_ms"))
        else {
            continue;
        };
        // A whole run of two stages has no one rate.
        let Some(rate) = number(&row, "request_rate") else { continue };
        let chip = chip(text(&row, "hardware"));
        let gpus = degree(&row, "n_gpus");
        let name = match metric {
            Metric::E2e => "E2E",
            Metric::Tpot => "ITL",
            _ => "TTFT",
        };
        let case = Case {
            source: "vLLM open loop".into(),
            model: blis_model(text(&row, "model")),
            weights: (text(&row, "precision") == "FP8").then(|| "fp8".into()),
            kv: Some("bf16".into()),
            engine: format!("vllm@{}", text(&row, "engine_version")),
            system: system(gpus, &chip),
            degrees: Degrees { tp: gpus, etp: gpus, ..Degrees::default() },
            load: CaseLoad::Open { rate },
            requests: Requests::of(isl, osl),
            chunk: number(&row, "max_num_batched_tokens"),
            sequences: number(&row, "max_num_seqs"),
            metric,
            measured: value,
        };
        all.push(measured(case, format!("vLLM open loop {name}"), &chip));
    }
    Ok(all)
}

fn blis_model(name: &str) -> String {
    let bare = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let known = [
        ("llama-4-scout", "llama-4-scout"),
        ("llama-3.1-70b", "llama-3.1-70b"),
        ("llama-3.1-8b", "llama-3.1-8b"),
        ("llama-2-70b", "llama-2-70b"),
        ("llama-2-7b", "llama-2-7b"),
        ("mistral-nemo", "mistral-nemo-12b"),
        ("qwen2.5-7b", "qwen2.5-7b"),
        ("qwen3-14b", "qwen3-14b"),
        ("yi-34b", "yi-34b"),
        ("mixtral-8x7b", "mixtral-8x7b"),
        ("mixtral-8x22b", "mixtral-8x22b"),
    ];
    known.iter().find(|(start, _)| bare.starts_with(start)).map_or(name, |(_, id)| id).to_owned()
}

fn splitwise(folder: &Path) -> Result<Vec<Measured>, CalibrateError> {
    let mut all = Vec::new();
    for row in read(folder, "splitwise_llama2_bloom.csv")? {
        // Power-capped machines are another question.
        if text(&row, "hardware").ends_with("pcap") {
            continue;
        }
        let (Some(prompt), Some(batch), Some(tokens)) =
            (number(&row, "prompt_size"), number(&row, "batch_size"), number(&row, "token_size"))
        else {
            continue;
        };
        let chip = chip(text(&row, "hardware"));
        let tp = degree(&row, "tensor_parallel");
        let model = if text(&row, "model").starts_with("bloom") { "bloom-176b" } else { "llama-2-70b" };
        let case = |metric, load, value| Case {
            source: "Splitwise".into(),
            model: model.into(),
            weights: Some("bf16".into()),
            kv: Some("bf16".into()),
            engine: "vllm@0.2".into(),
            system: system(tp, &chip),
            degrees: Degrees { tp, etp: tp, ..Degrees::default() },
            load,
            requests: Requests::of(prompt, tokens),
            chunk: None,
            sequences: None,
            metric,
            measured: value,
        };
        if let Some(value) = number(&row, "prompt_time_ms") {
            let load = CaseLoad::PrefillStep { batch, tokens: prompt };
            all.push(measured(case(Metric::Ttft, load, value), "Splitwise prompt".into(), &chip));
        }
        if let Some(value) = number(&row, "token_time_ms") {
            let load = CaseLoad::DecodeStep { batch, context: prompt + tokens / 2.0 };
            all.push(measured(case(Metric::Tpot, load, value), "Splitwise token".into(), &chip));
        }
    }
    Ok(all)
}

fn context_sweep(folder: &Path) -> Result<Vec<Measured>, CalibrateError> {
    let mut all = Vec::new();
    for row in read(folder, "inferencex_context_sweep.csv")? {
        let (Some(isl), Some(osl), Some(concurrency)) =
            (number(&row, "isl"), number(&row, "osl"), number(&row, "concurrency"))
        else {
            continue;
        };
        let name = text(&row, "model").to_ascii_lowercase();
        let model = if name.contains("minimax") {
            "minimax-m2.5"
        } else if name.contains("glm-5") {
            "glm-5"
        } else {
            "qwen3.5-397b-a17b"
        };
        let chip = chip(text(&row, "hardware"));
        let gpus = degree(&row, "n_gpus");
        let degrees = if text(&row, "parallelism").starts_with("DEP") {
            Degrees { dp: gpus, ep: gpus, ..Degrees::default() }
        } else {
            Degrees { tp: gpus, etp: gpus, ..Degrees::default() }
        };
        let Some(value) = number(&row, "median_tpot_s") else { continue };
        let case = Case {
            source: "InferenceX context sweep".into(),
            model: model.into(),
            weights: None,
            kv: None,
            engine: "vllm".into(),
            system: system(gpus, &chip),
            degrees,
            load: CaseLoad::Closed { concurrency, rounds: super::inferencex::ROUNDS, fixed: true },
            requests: Requests::of(isl, osl),
            chunk: None,
            sequences: None,
            metric: Metric::Tpot,
            measured: value * 1e3,
        };
        all.push(measured(case, "InferenceX context sweep TPOT".into(), &chip));
    }
    Ok(all)
}

fn llamacpp(folder: &Path) -> Result<Vec<Measured>, CalibrateError> {
    let mut all = Vec::new();
    for row in read(folder, "llamacpp_single_stream.csv")? {
        // Several cards share the layers and take turns, which is another question.
        if !text(&row, "engine").starts_with("llama.cpp") || degree(&row, "n_gpus") > 1 {
            continue;
        }
        let (Some(model), Some(value)) = (llamacpp_model(text(&row, "model")), number(&row, "value")) else { continue };
        let weights = llamacpp_format(text(&row, "quant"), text(&row, "model"));
        let (batch, depth) = (number(&row, "batch").unwrap_or(1.0), number(&row, "context_depth").unwrap_or(0.0));
        let (isl, osl) = (number(&row, "isl").unwrap_or(0.0), number(&row, "osl").unwrap_or(0.0));
        let decode = text(&row, "metric").starts_with("decode");
        let (load, metric, name) = if decode {
            let context = depth + osl / 2.0 + if depth == 0.0 { isl } else { 0.0 };
            (CaseLoad::DecodeStep { batch, context }, Metric::OutputRate, "decode")
        } else {
            (CaseLoad::PrefillStep { batch, tokens: isl }, Metric::InputRate, "prefill")
        };
        let many = if batch > 1.0 { ", batched" } else { "" };
        let case = Case {
            source: "llama.cpp".into(),
            model: model.into(),
            weights: weights.map(str::to_owned),
            kv: Some("fp16".into()),
            engine: "llamacpp".into(),
            system: text(&row, "hardware").to_owned(),
            degrees: Degrees::default(),
            load,
            requests: Requests::of(isl.max(1.0), osl.max(1.0)),
            chunk: None,
            sequences: None,
            metric,
            measured: value,
        };
        all.push(measured(case, format!("llama.cpp {name}{many}"), text(&row, "hardware")));
    }
    Ok(all)
}

fn llamacpp_model(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase().replace([' ', '_'], "-");
    let known = [
        ("llama-2-7b", "llama-2-7b"),
        ("llama-2-13b", "llama-2-13b"),
        ("llama-2-70b", "llama-2-70b"),
        ("llama-3-8b", "llama-3.1-8b"),
        ("llama-3.1-8b", "llama-3.1-8b"),
        ("llama-3-70b", "llama-3.1-70b"),
        ("llama-3.2-1b", "llama-3.2-1b"),
        ("llama-3.2-3b", "llama-3.2-3b"),
        ("gpt-oss-20b", "gpt-oss-20b"),
        ("gpt-oss-120b", "gpt-oss-120b"),
        ("qwen3-coder-30b", "qwen3-30b-a3b"),
        ("qwen-3-30b", "qwen3-30b-a3b"),
        ("qwen2.5-coder-7b", "qwen2.5-7b"),
        ("qwen-2.5-coder-7b", "qwen2.5-7b"),
        ("qwen-2.5-coder-14b", "qwen2.5-14b"),
        ("qwen-2.5-coder-32b", "qwen2.5-32b"),
        ("qwq-32b", "qwen2.5-32b"),
        ("deepseek-r1-distill-7b", "qwen2.5-7b"),
        ("deepseek-r1-distill-14b", "qwen2.5-14b"),
        ("deepseek-r1-distill-32b", "qwen2.5-32b"),
        ("gemma-3-1b", "gemma-3-1b"),
        ("gemma-3-4b", "gemma-3-4b"),
        ("gemma-3-12b", "gemma-3-12b"),
        ("gemma-3-27b", "gemma-3-27b"),
        ("gemma-4-e2b", "gemma-4-e2b"),
        ("gemma-4-e4b", "gemma-4-e4b"),
        ("gemma-4-26b", "gemma-4-26b-a4b"),
        ("gemma-4-31b", "gemma-4-31b"),
        ("glm-4.7-flash", "glm-4.7-flash"),
        ("phi-4-mini", "phi-4-mini"),
        ("phi-4", "phi-4"),
        ("qwen-3-0.6b", "qwen3-0.6b"),
        ("qwen-3-1.7b", "qwen3-1.7b"),
        ("qwen-3-4b", "qwen3-4b"),
        ("qwen-3-8b", "qwen3-8b"),
        ("qwen-3-14b", "qwen3-14b"),
        ("qwen-3-32b", "qwen3-32b"),
        ("qwen-3.5-4b", "qwen3.5-4b"),
        ("qwen-3.5-9b", "qwen3.5-9b"),
        ("qwen-3.5-27b", "qwen3.5-27b"),
        ("qwen-3.5-35b", "qwen3.5-35b-a3b"),
        ("qwen3-0.6b", "qwen3-0.6b"),
        ("qwen3-8b", "qwen3-8b"),
        ("qwen3.5-4b", "qwen3.5-4b"),
        ("mistral-7b", "mistral-7b-v0.3"),
        ("mistral-nemo", "mistral-nemo-12b"),
        ("mistral-small-3.1", "mistral-small-3.1-24b"),
        ("devstral-small-24b", "mistral-small-3.1-24b"),
        ("codellama-34b", "codellama-34b"),
    ];
    known.iter().find(|(start, _)| lower.starts_with(start)).map(|(_, id)| *id)
}

fn llamacpp_format(quant: &str, model: &str) -> Option<&'static str> {
    let both = format!("{quant} {model}").to_ascii_lowercase();
    if both.contains("mxfp4") || both.contains("gpt-oss") {
        return None;
    }
    let known = [
        ("q4_k_m", "q4_k_m"),
        ("q4_0", "q4_0"),
        ("q8_0", "q8_0"),
        ("f16", "fp16"),
        ("4bit", "mlx-4bit"),
        ("4-bit", "mlx-4bit"),
        ("qat", "q4_0"),
        ("glm-4.7", "q8_0"),
    ];
    known.iter().find(|(word, _)| both.contains(word)).map(|(_, id)| *id)
}

/// Names the files use for models of the catalogue; Llama 3 and 3.1 of one size have one shape.
const TORCH_MODELS: [(&str, &str); 2] = [("llama3-8b", "llama-3.1-8b"), ("llama3-70b", "llama-3.1-70b")];

/// Whole steps in every `h200_torch/model_*.json`.
fn torch(folder: &Path) -> Result<Vec<Measured>, CalibrateError> {
    let folder = folder.join("h200_torch");
    let wrong = |path: &Path, problem: String| CalibrateError::File { file: path.display().to_string(), problem };
    let entries = std::fs::read_dir(&folder).map_err(|e| wrong(&folder, e.to_string()))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        name.starts_with("model_") && path.extension().is_some_and(|e| e == "json")
    });
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let content = std::fs::read_to_string(&path).map_err(|e| wrong(&path, e.to_string()))?;
        let rows: Vec<serde_json::Value> = serde_json::from_str(&content).map_err(|e| wrong(&path, e.to_string()))?;
        all.extend(rows.iter().filter_map(torch_row));
    }
    Ok(all)
}

fn torch_row(row: &serde_json::Value) -> Option<Measured> {
    let get = |key: &str| row.get(key).and_then(serde_json::Value::as_f64);
    let word = |key: &str| row.get(key).and_then(serde_json::Value::as_str);
    let (batch, context, seconds) = (get("B")?, get("S")?, get("s")?);
    let name = word("model")?;
    let model = TORCH_MODELS.iter().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| ours);
    let (load, stratum) = if word("kind") == Some("decode") {
        (CaseLoad::DecodeStep { batch, context }, "H200 PyTorch decode step")
    } else {
        (CaseLoad::PrefillStep { batch, tokens: context }, "H200 PyTorch prefill step")
    };
    let case = Case {
        source: "H200 PyTorch".into(),
        model: model.into(),
        weights: Some("bf16".into()),
        kv: Some("bf16".into()),
        engine: "torch".into(),
        system: "h200".into(),
        degrees: Degrees::default(),
        load,
        requests: Requests::of(context, 1.0),
        chunk: None,
        sequences: None,
        metric: Metric::Step,
        measured: seconds * 1e3,
    };
    Some(measured(case, stratum.into(), "h200"))
}
