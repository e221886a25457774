//! Rows of InferenceX.

use super::recipes::{cold, rounds, started};
use super::rows::{Read, of};
use crate::names::Names;
use crate::rows::Record;
use rackmath_spec::layout::Degrees;
use rackmath_spec::measurement::{Load, Metric, Setup, Way};
use rackmath_theory::steady;

pub(crate) const TABLE: &str = "inferencemax_pareto.csv";
/// The newest runs with percentiles, and those without.
pub(crate) const NEWEST: &str = "inferencex_2026_07.csv";
pub(crate) const DUMP: &str = "inferencex_2026_07_dump.csv";
pub(crate) const SOURCE: &str = "InferenceX";
const NEWER: &str = "InferenceX 2026-07";

/// InferenceX draws lengths evenly from 0.8 to 1 of the nominal ones; ten requests for each slot.
pub(super) const DRAWN: f64 = 0.9;
pub(super) const ROUNDS: f64 = 10.0;

/// The longest answers that were asked for, until 2026-03-28 in rows that state their day.
const LONG: f64 = 8192.0;

/// The times per token and to the first token of a row; none of disaggregated rows and of tier C.
pub(super) fn both(names: &Names<'_>, row: &Record) -> Read {
    let tier = row.text("tier");
    if row.text("mode") != "agg" || tier == "C" {
        return Err("disaggregated or tier C".into());
    }
    let (setup, load) = ran(names, row).ok_or("no lengths or no concurrency")?;
    let safe = !names.may_draft(&setup.model);
    let kind = |safe: bool| match (tier, safe) {
        ("A", true) => "A",
        ("A", false) => "A, drafting unknown",
        _ => "B",
    };
    let few = if row.number("concurrency").unwrap_or(1.0) <= 16.0 { "up to 16" } else { "above 16" };
    let figures = [
        (format!("{} TPOT", kind(safe || undrafted(row, &setup))), Metric::TpotMs, "tpot_ms"),
        // DeepSeek on TensorRT-LLM was streamed ten tokens at a time: its first token is not one.
        (format!("{} TTFT, {few}", kind(safe)), Metric::TtftMs, "ttft_ms"),
    ];
    let figure = |(part, metric, column): (String, Metric, &str)| {
        Some(of((SOURCE, &part), setup.clone(), load, (metric, row.number(column)?)))
    };
    Ok(figures.into_iter().filter_map(figure).collect())
}

/// The same of the newer tables, on which nothing was fitted: whether tokens were drafted is stated, and where they were the row is left out.
pub(super) fn newer(names: &Names<'_>, row: &Record) -> Read {
    let (setup, load) = plain(names, row)?;
    let few = if row.number("concurrency").unwrap_or(1.0) <= 16.0 { "up to 16" } else { "above 16" };
    // Where a run's mean is not known its middle stands there.
    let first = if row.text("latency_stat") == "p50" { Metric::TtftP50Ms } else { Metric::TtftMs };
    let figures = [("TPOT".to_owned(), Metric::TpotMs, "tpot_ms"), (format!("TTFT, {few}"), first, "ttft_ms")];
    let figure = |(part, metric, column): (String, Metric, &str)| {
        Some(of((NEWER, &part), setup.clone(), load, (metric, row.number(column)?)))
    };
    Ok(figures.into_iter().filter_map(figure).collect())
}

/// What ran where one pool did everything, nothing was drafted and runs agreed; else why not.
pub(super) fn plain(names: &Names<'_>, row: &Record) -> Result<(Setup, Load), String> {
    if row.text("mode") != "agg" {
        return Err("disaggregated: scored as two pools".into());
    }
    if row.text("spec_decoding") != "none" {
        return Err("drafts, whose acceptance is not published".into());
    }
    if row.text("tier") == "C" {
        return Err("tier C".into());
    }
    ran(names, row).ok_or_else(|| "no lengths or no concurrency".to_owned())
}

pub(crate) fn ran(names: &Names<'_>, row: &Record) -> Option<(Setup, Load)> {
    let (isl, osl) = (row.number("isl")?, row.number("osl")?);
    let concurrency = row.number("concurrency")?;
    let gap = row.text("origin").starts_with("NVIDIA");
    let share = if gap { 1.0 } else { DRAWN };
    let gpus = row.degree("n_gpus");
    let model = names.named(row.text("model"));
    let weights = match (row.text("gemm_quant_mode"), row.text("precision")) {
        // The newer tables state one word for all weights; 4 bits are NVIDIA's format on its chips and the open one on others.
        ("" | "bf16 (attention)" | "fp8_block", "fp4") if row.text("hardware").starts_with("mi") => {
            names.inferencex_format(&model, "mxfp4")
        }
        ("" | "bf16 (attention)", "fp4") => names.inferencex_format(&model, "nvfp4"),
        ("" | "fp8_block", precision) if !row.text("spec_decoding").is_empty() => {
            names.inferencex_format(&model, precision)
        }
        (word, _) => names.inferencex_format(&model, word),
    };
    let (engine, version) = (row.text("engine"), row.text("engine_version"));
    // NVIDIA's NVFP4 checkpoints state an FP8 cache, and vLLM reads the statement.
    // The recipe for gpt-oss on Blackwell sets one too (blog.vllm.ai/2026/02/01/gpt-oss-optimizations.html, read 2026-11).
    let recipe = model.starts_with("gpt-oss") && ["b2", "b3", "gb"].iter().any(|b| row.text("hardware").starts_with(b));
    let kv = (engine == "vllm" && (weights.as_deref() == Some("nvfp4") || recipe)).then(|| "fp8".to_owned());
    let day = row.text("measured_date");
    let early = day.starts_with("2025");
    let engine = match engine {
        _ if version.starts_with(|c: char| c.is_ascii_digit()) => format!("{engine}@{version}"),
        // Not stated: the release of the day. vLLM 0.11 came in October 2025; TensorRT-LLM ran as 1.1 until January 2026.
        "vllm" if early => "vllm@0.11".to_owned(),
        "trtllm" if early => "trtllm@1.1".to_owned(),
        // SGLang 0.5.9 ran until April 2026, 0.5.12 from May on; nobody ran 8,192 tokens of output after March.
        "sglang" if day.is_empty() && osl == LONG || !day.is_empty() && day < "2026-05" => "sglang@0.5.9".to_owned(),
        other => other.to_owned(),
    };
    let degrees = degrees(row, gpus);
    let system = names.system(gpus, row.text("hardware"));
    let setup = Setup { model, weights, kv, engine, system, degrees, ..Setup::default() };
    let way = Way::Closed { concurrency, rounds: rounds(row, &setup, osl), fixed: gap };
    let load = drafted(names, Load::of(way, isl * share, osl * share), &setup);
    let load = Load { cold: !gap && cold(row, &setup), cached: found(row, isl), ..load };
    // NVIDIA's own runs tell no flags.
    Some((if gap { setup } else { started(setup, concurrency, (isl, osl)) }, load))
}

/// The share of a prompt that was found in a cache, in the one set of runs that shows it: vLLM, which looks for known prompts by
/// default, with Llama-3.1-8B in FP8 on H200. Were its prompts computed, chips would do 0.3 to 1.0 of their data sheet's
/// peak (six of its 13 rows more than 0.5); no other row of the table needs more than 0.38. All but the last block is taken as found.
fn found(row: &Record, isl: f64) -> f64 {
    const BLOCK: f64 = 16.0;
    let one = row.text("engine") == "vllm" && row.text("source_dump").ends_with("Llama-3.1-8B-Instruct-FP8.csv");
    if one { (1.0 - BLOCK / isl).max(0.0) } else { 0.0 }
}

/// TensorRT-LLM rows of DeepSeek that ran without drafts: the image for such runs, and runs before there were others.
fn undrafted(row: &Record, setup: &Setup) -> bool {
    let image = row.text("engine_version") == "1.2.0rc6.post2";
    setup.engine.starts_with("trtllm") && (image || row.text("measured_date").starts_with("2025-11"))
}

/// DeepSeek on the one TensorRT-LLM image that InferenceX used for drafting runs alone: three drafts, or one where
/// attention is data parallel.
///
/// Source: SemiAnalysisAI/InferenceX, `perf-changelog.yaml` (pull requests 594, 620, 632 and 642: 1.2.0rc6.post2 without
/// drafts, post3 with them) and `benchmarks/dsr1_fp4_b200_trt_mtp.sh`, read 2026-11. Assumes: the acceptance that the engine's
/// file assumes; the runs did not publish it.
fn drafted(names: &Names<'_>, load: Load, setup: &Setup) -> Load {
    if setup.model != "deepseek-v3" || setup.engine != "trtllm@1.2.0rc6.post3" {
        return load;
    }
    let Ok((engine, _)) = names.catalog.engine(&setup.engine) else { return load };
    let drafts = if setup.degrees.dp > 1 { 1.0 } else { 3.0 };
    Load { drafts, accepted: steady::yielded(drafts, engine.assumed.acceptance), ..load }
}

/// Degrees; some rows give the product of two degrees as one.
fn degrees(row: &Record, gpus: u64) -> Degrees {
    let pp = row.degree("pp_size");
    let stage = (gpus / pp).max(1);
    let attention_dp = row.degree("attention_dp_size");
    // Four chips that cut attention four ways and hold four copies of it are a table's slip: MiniMax-M2.5 on H100 (recipe without copies) takes the
    // same times in ten such rows as with one copy.
    let attention_dp =
        if attention_dp * row.degree("tp_size") > stage && row.degree("tp_size") == stage { 1 } else { attention_dp };
    let dp = if attention_dp > 1 { attention_dp.min(stage) } else { (stage / row.degree("tp_size")).max(1) };
    let ep = row.degree("moe_ep_size").min(stage);
    Degrees { tp: (stage / dp).max(1), pp, dp, ep, etp: (stage / ep).max(1), ..Degrees::default() }
}
