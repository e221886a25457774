//! Rows of InferenceX as cases.

use super::rows::{Measured, chip, measured, system};
use crate::CalibrateError;
use crate::rows::{Row, degree, number, read, text};
use rackmath::case::{Case, CaseLoad, Metric};
use rackmath_spec::layout::Degrees;
use rackmath_theory::steady::Requests;
use std::path::Path;

pub(crate) const TABLE: &str = "inferencemax_pareto.csv";

/// InferenceX draws lengths evenly from 0.8 to 1 of the nominal ones; ten requests for each slot.
const DRAWN: f64 = 0.9;
pub(super) const ROUNDS: f64 = 10.0;

pub(super) fn rows(folder: &Path) -> Result<Vec<Measured>, CalibrateError> {
    let mut all = Vec::new();
    for row in read(folder, TABLE)? {
        let tier = text(&row, "tier");
        if text(&row, "mode") != "agg" || tier == "C" {
            continue;
        }
        let Some(case) = case(&row) else { continue };
        let chip = chip(text(&row, "hardware"));
        let safe = !["deepseek", "kimi", "glm"].iter().any(|m| case.model.contains(m));
        let kind = |safe: bool| match (tier, safe) {
            ("A", true) => "A",
            ("A", false) => "A, drafting unknown",
            _ => "B",
        };
        let concurrency = number(&row, "concurrency").unwrap_or(1.0);
        if let Some(value) = number(&row, "tpot_ms") {
            let kind = kind(safe || undrafted(&row, &case));
            let case = Case { metric: Metric::Tpot, measured: value, ..case.clone() };
            all.push(measured(case, format!("InferenceX {kind} TPOT"), &chip));
        }
        if let Some(value) = number(&row, "ttft_ms") {
            let load = if concurrency <= 16.0 { "up to 16" } else { "above 16" };
            // DeepSeek on TensorRT-LLM was streamed ten tokens at a time: its first token is not one.
            let kind = kind(safe);
            let case = Case { metric: Metric::Ttft, measured: value, ..case };
            all.push(measured(case, format!("InferenceX {kind} TTFT, {load}"), &chip));
        }
    }
    Ok(all)
}

/// What ran in a row of InferenceX, its metric and its measurement still to be filled in.
pub(crate) fn case(row: &Row) -> Option<Case> {
    let (isl, osl) = (number(row, "isl")?, number(row, "osl")?);
    let concurrency = number(row, "concurrency")?;
    let gap = text(row, "origin").starts_with("NVIDIA");
    let share = if gap { 1.0 } else { DRAWN };
    let chip = chip(text(row, "hardware"));
    let gpus = degree(row, "n_gpus");
    let (model, weights) = model(row);
    let version = text(row, "engine_version");
    let engine = text(row, "engine");
    let numbered = version.starts_with(|c: char| c.is_ascii_digit());
    let early = text(row, "measured_date").starts_with("2025");
    let engine = match engine {
        _ if numbered => format!("{engine}@{version}"),
        // Not stated: the release of the day. vLLM 0.11 came in October 2025; TensorRT-LLM ran as 1.1 until January 2026.
        "vllm" if early => "vllm@0.11".to_owned(),
        "trtllm" if early => "trtllm@1.1".to_owned(),
        other => other.to_owned(),
    };
    let degrees = degrees(row, gpus);
    let requests = drafted(Requests::of(isl * share, osl * share), &model, &engine, degrees.dp > 1);
    // NVIDIA's NVFP4 checkpoints state an FP8 cache, and vLLM reads the statement.
    let kv = (text(row, "engine") == "vllm" && weights.as_deref() == Some("nvfp4")).then(|| "fp8".to_owned());
    Some(Case {
        source: "InferenceX".into(),
        model,
        weights,
        kv,
        engine,
        system: system(gpus, &chip),
        degrees,
        load: CaseLoad::Closed { concurrency, rounds: ROUNDS, fixed: gap },
        requests,
        chunk: None,
        sequences: None,
        metric: Metric::Tpot,
        measured: 0.0,
    })
}

/// TensorRT-LLM rows of DeepSeek that ran without drafts: the image for such runs, and runs before there were others.
fn undrafted(row: &Row, case: &Case) -> bool {
    let image = text(row, "engine_version") == "1.2.0rc6.post2";
    case.engine.starts_with("trtllm") && (image || text(row, "measured_date").starts_with("2025-11"))
}

/// DeepSeek on the one TensorRT-LLM image that InferenceX used for drafting runs alone: three drafts, or one where
/// attention is data parallel.
///
/// Source: SemiAnalysisAI/InferenceX, `perf-changelog.yaml` (pull requests 594, 620, 632 and 642: 1.2.0rc6.post2 without
/// drafts, post3 with them) and `benchmarks/dsr1_fp4_b200_trt_mtp.sh`, read 2026-11. Assumes: a draft is accepted 7 times in
/// 10 when all before it were, as SGLang's large-scale post assumed (2025-05-05); the runs did not publish it.
fn drafted(requests: Requests, model: &str, engine: &str, attention_dp: bool) -> Requests {
    if model != "deepseek-v3" || engine != "trtllm@1.2.0rc6.post3" {
        return requests;
    }
    if attention_dp {
        Requests { drafts: 1.0, accepted: 1.0 + 0.7, ..requests }
    } else {
        Requests { drafts: 3.0, accepted: 1.0 + 0.7 + 0.49 + 0.343, ..requests }
    }
}

/// The catalogue's word for the model, and its format where it differs from the checkpoint's.
fn model(row: &Row) -> (String, Option<String>) {
    let name = text(row, "model").to_ascii_lowercase();
    let (gemm, precision) = (text(row, "gemm_quant_mode"), text(row, "precision"));
    let (id, native) = if name.contains("llama-3.1-70b") {
        ("llama-3.1-70b", false)
    } else if name.contains("llama-3.1-8b") {
        ("llama-3.1-8b", false)
    } else if name.contains("llama-3.1-405b") {
        ("llama-3.1-405b", false)
    } else if name.contains("qwen3-235b") {
        ("qwen3-235b-a22b", false)
    } else if name.contains("qwen3-32b") {
        ("qwen3-32b", false)
    } else if name.contains("gpt-oss-120b") {
        ("gpt-oss-120b", true)
    } else if name.contains("minimax-m2") {
        ("minimax-m2.5", precision == "fp8")
    } else if name.contains("deepseek") {
        ("deepseek-v3", precision == "fp8")
    } else {
        (name.as_str(), false)
    };
    let weights = match (native, gemm) {
        (true, _) | (_, "") => None,
        (_, "fp8_block") => Some("fp8-block"),
        // Qwen publishes 128-block scales under the name FP8.
        (_, "fp8") if id == "qwen3-235b-a22b" => Some("fp8-block"),
        (_, other) => Some(other),
    };
    (id.to_owned(), weights.map(str::to_owned))
}

/// Degrees; some rows give the product of two degrees as one.
fn degrees(row: &Row, gpus: u64) -> Degrees {
    let pp = degree(row, "pp_size");
    let stage = (gpus / pp).max(1);
    let attention_dp = degree(row, "attention_dp_size");
    let dp = if attention_dp > 1 { attention_dp.min(stage) } else { (stage / degree(row, "tp_size")).max(1) };
    let ep = degree(row, "moe_ep_size").min(stage);
    Degrees { tp: (stage / dp).max(1), pp, dp, ep, etp: (stage / ep).max(1), ..Degrees::default() }
}
