//! Published serving measurements.

use super::{inferencex, published, recipes};
use crate::names::Names;
use crate::rows::{Record, Rows, present, problem, table};
use rackmath_spec::layout::Degrees;
use rackmath_spec::measurement::{Load, Measurement, Metric, Origin, Setup, Way};
use rackmath_spec::{Catalog, SpecError};
use std::path::{Path, PathBuf};

/// What a row measured, or why it is left out.
pub(super) type Read = Result<Vec<Measurement>, String>;

type Reader = fn(&Names<'_>, &Record) -> Read;

/// Tables that constants may be fitted on, and those that are only predicted.
pub const TABLES: [(&str, Reader); 17] = [
    (inferencex::TABLE, inferencex::both),
    (inferencex::NEWEST, inferencex::newer),
    (inferencex::DUMP, inferencex::newer),
    ("trtllm_throughput.csv", trtllm),
    ("vllm_h100_serving_blis.csv", blis),
    ("splitwise_llama2_bloom.csv", splitwise),
    ("inferencex_context_sweep.csv", context_sweep),
    ("llamacpp_single_stream.csv", llamacpp),
    (TORCH, torch),
    ("amd_tpu/serving_amd.csv", published::serving),
    ("amd_tpu/serving_atom_mi355x.csv", published::atom),
    ("anl_llm_inference_bench.csv", published::argonne),
    ("amd_tpu/serving_tpu.csv", published::serving),
    ("amd_tpu/serving_other.csv", published::serving),
    ("vllm_h100_apex.csv", published::apex),
    ("deepseek_sglang_nodes.csv", published::nodes),
    ("vllm_h200/closed.csv", published::closed),
];
pub const FITTED: usize = 12;

/// A whole step of a model; every `model_*.json` beside it is read as well.
const TORCH: &str = "h200_torch/model_llama3-8b.json";

/// A measurement with its table and its row there, from 1.
pub type Placed = ((&'static str, usize), Measurement);

/// The rows that constants may be fitted on.
pub fn all(catalog: &Catalog, folder: &Path) -> Result<Vec<Measurement>, SpecError> {
    Ok(read(catalog, folder, &TABLES[..FITTED])?.rows.into_iter().map(|(_, row)| row).collect())
}

/// Every row with its table; those left out, and those of an engine the catalogue does not have, are counted by reason.
pub fn everything(catalog: &Catalog, folder: &Path) -> Result<Rows<Placed>, SpecError> {
    read(catalog, folder, &TABLES)
}

fn read(
    catalog: &Catalog,
    folder: &Path,
    tables: &'static [(&'static str, Reader)],
) -> Result<Rows<Placed>, SpecError> {
    let names = Names::new(catalog);
    let mut all = Rows::none();
    for (path, (file, reader)) in present(folder, tables, |(file, _)| file)? {
        let shown = if *file == TORCH { "h200_torch/model_*.json" } else { file };
        for path in if *file == TORCH { beside(&path)? } else { vec![path] } {
            for (at, record) in table(&path)?.into_iter().enumerate() {
                let rows = match reader(&names, &record) {
                    Ok(rows) => rows,
                    Err(reason) => {
                        all.skip(format!("{file}: {reason}"));
                        continue;
                    }
                };
                for row in rows {
                    match catalog.engine(&row.setup.engine) {
                        Ok(_) => all.rows.push(((shown, at + 1), row)),
                        Err(_) => all.skip(format!("{file}: no engine \"{}\"", row.setup.family())),
                    }
                }
            }
        }
    }
    Ok(all)
}

pub(super) fn of((name, part): (&str, &str), setup: Setup, load: Load, (metric, value): (Metric, f64)) -> Measurement {
    let source = Origin { name: name.into(), part: part.into() };
    Measurement { setup, load, metric, value, spread: None, source }
}

/// The number behind a word of a layout, such as 8 behind PP in "TP1,PP8".
pub(super) fn degree(layout: &str, word: &str) -> Option<u64> {
    let behind = &layout[layout.find(word)? + word.len()..];
    behind.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// A model on so many chips, one copy over all of them: in as many stages as it says (PP), and in each every layer cut (TP), the
/// same with experts spread (TEP), or attention in groups with experts spread over all (DEP).
pub(super) fn setup(names: &Names<'_>, row: &Record, chips: u64) -> Setup {
    let layout = row.text("parallelism");
    let pp = degree(layout, "PP").filter(|pp| *pp > 0 && chips.is_multiple_of(*pp)).unwrap_or(1);
    let stage = chips / pp;
    let degrees = match layout {
        _ if layout.starts_with("DEP") => Degrees { dp: stage, ep: stage, pp, ..Degrees::default() },
        _ if layout.starts_with("TEP") => Degrees { tp: stage, ep: stage, pp, ..Degrees::default() },
        _ => Degrees { tp: stage, etp: stage, pp, ..Degrees::default() },
    };
    let (model, system) = (names.named(row.text("model")), names.system(chips, row.text("hardware")));
    Setup { model, system, degrees, ..Setup::default() }
}

/// Attention in groups and experts spread, where a table counts the chips of a stage as tensor parallel.
fn in_groups(d: Degrees) -> Degrees {
    Degrees { tp: 1, dp: d.tp * d.dp, ep: d.tp * d.dp, etp: 1, ..d }
}

fn trtllm(names: &Names<'_>, row: &Record) -> Read {
    if !row.text("flag").is_empty() {
        return Err("flagged by the source".into());
    }
    let (isl, osl) = (row.amount("isl")?, row.amount("osl")?);
    let first = row.text("metric") == "first_token_latency";
    let value = row.amount(if first { "value" } else { "output_tok_s_per_gpu" })?;
    let (way, metric, part) = match (row.number("batch"), first) {
        (Some(batch), true) => (Way::PrefillStep { batch, tokens: isl }, Metric::TtftMs, "first token"),
        (Some(batch), false) => (Way::Static { batch }, Metric::OutputTokSPerGpu, "known batch"),
        (None, _) => {
            let way = names.requests(isl, osl).map_or(Way::Full, |requests| Way::Queue { requests });
            (way, Metric::OutputTokSPerGpu, "max load")
        }
    };
    let (quant, version) = (row.text("quant"), row.text("engine_version").split('-').next().unwrap_or(""));
    let setup = setup(names, row, row.degree("n_gpus"));
    let experts = names.catalog.model(&setup.model).is_ok_and(|m| m.shape().is_some_and(|s| s.moe().is_some()));
    let word = names.format(quant);
    let own = word.as_ref().is_some_and(|word| names.inferencex_format(&setup.model, word).is_none());
    // Without FP4 units gpt-oss keeps 16 bits in the cache: "auto" on Hopper in the page of 1.1.
    let wide = setup.model.starts_with("gpt-oss") && quant == "FP8";
    let setup = Setup {
        weights: word.filter(|_| !own),
        kv: (["FP8", "FP4"].contains(&quant) && !wide).then(|| "fp8".into()),
        engine: format!("trtllm@{version}"),
        memory: row.number("batch").is_none().then(|| free_share(version)),
        // The page of 1.0 gives every mixture of experts enable_attention_dp, the later one calls the same DEP.
        degrees: if experts && version == "1.0" { in_groups(setup.degrees) } else { setup.degrees },
        ..setup
    };
    let setup = if row.number("batch").is_none() { recipes::built(names, setup, (isl, osl)) } else { setup };
    Ok(vec![of(("TensorRT-LLM", part), setup, Load::of(way, isl, osl), (metric, value))])
}

/// `--kv_cache_free_gpu_mem_fraction` of the commands in NVIDIA/TensorRT-LLM docs/source/performance/perf-overview.md: 0.9 in 0.10, 0.99 in
/// the page after it, 0.95 from the executor's API on and with trtllm-bench (read 2026-11-17).
fn free_share(version: &str) -> f64 {
    match minor(version) {
        Some(0..=10) => 0.9,
        Some(11) => 0.99,
        _ => 0.95,
    }
}

/// The second number of a version before 1.0.
pub(super) fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("0.")?.split('.').next()?.parse().ok()
}

fn blis(names: &Names<'_>, row: &Record) -> Read {
    let (metric, part) = match row.text("metric") {
        "e2e_mean" => (Metric::E2eMs, "E2E"),
        "itl_mean" => (Metric::TpotMs, "ITL"),
        "ttft_mean" => (Metric::TtftMs, "TTFT"),
        _ => return Err("a percentile, which the replay is held against".into()),
    };
    let (isl, osl, value) = (row.amount("isl_nominal")?, row.amount("osl_nominal")?, row.amount("value_ms")?);
    let way = Way::Open { rate: row.number("request_rate").ok_or("a whole run of two stages has no one rate")? };
    let setup = Setup {
        weights: (row.text("precision") == "FP8").then(|| "fp8".into()),
        kv: Some("bf16".into()),
        engine: format!("vllm@{}", row.text("engine_version")),
        chunk: row.number("max_num_batched_tokens"),
        sequences: row.number("max_num_seqs"),
        ..setup(names, row, row.degree("n_gpus"))
    };
    // Some 23 to 50 prompts are sent again and again: scheduler records of such runs show 5.6 to 7.7 tokens computed of each.
    let load = Load { cached: (1.0 - 7.0 / isl).max(0.0), ..Load::of(way, isl, osl) };
    Ok(vec![of(("vLLM open loop", part), setup, load, (metric, value))])
}

fn splitwise(names: &Names<'_>, row: &Record) -> Read {
    if row.text("hardware").ends_with("pcap") {
        return Err("a machine with capped power".into());
    }
    let (prompt, batch, tokens) = (row.amount("prompt_size")?, row.amount("batch_size")?, row.amount("token_size")?);
    let (weights, kv) = (Some("bf16".into()), Some("bf16".into()));
    let setup = Setup { weights, kv, engine: "vllm@0.2".into(), ..setup(names, row, row.degree("tensor_parallel")) };
    let one = |part, way, metric, column| {
        let load = Load::of(way, prompt, tokens);
        Some(of(("Splitwise", part), setup.clone(), load, (metric, row.number(column)?)))
    };
    let first = Way::PrefillStep { batch, tokens: prompt };
    let next = Way::DecodeStep { batch, context: prompt + tokens / 2.0 };
    let both =
        [one("prompt", first, Metric::TtftMs, "prompt_time_ms"), one("token", next, Metric::TpotMs, "token_time_ms")];
    Ok(both.into_iter().flatten().collect())
}

fn context_sweep(names: &Names<'_>, row: &Record) -> Read {
    let concurrency = row.amount("concurrency")?;
    let setup = Setup { engine: "vllm".into(), ..setup(names, row, row.degree("n_gpus")) };
    let way = Way::Closed { concurrency, rounds: inferencex::ROUNDS, fixed: true };
    let load = Load::of(way, row.amount("isl")?, row.amount("osl")?);
    let value = row.amount("median_tpot_s")? * 1e3;
    Ok(vec![of(("InferenceX context sweep", "TPOT"), setup, load, (Metric::TpotMs, value))])
}

fn llamacpp(names: &Names<'_>, row: &Record) -> Read {
    if !row.text("engine").starts_with("llama.cpp") {
        return Err(format!("no engine \"{}\"", row.text("engine")));
    }
    if row.degree("n_gpus") > 1 {
        return Err("several cards that share the layers and take turns".into());
    }
    let (name, quant) = (row.text("model"), row.text("quant"));
    let (batch, depth) = (row.number("batch").unwrap_or(1.0), row.number("context_depth").unwrap_or(0.0));
    let (isl, osl) = (row.number("isl").unwrap_or(0.0), row.number("osl").unwrap_or(0.0));
    let (way, metric, part) = if row.text("metric").starts_with("decode") {
        let context = depth + osl / 2.0 + if depth == 0.0 { isl } else { 0.0 };
        (Way::DecodeStep { batch, context }, Metric::OutputTokSPerGpu, "decode")
    } else {
        (Way::PrefillStep { batch, tokens: isl }, Metric::InputTokSPerGpu, "prefill")
    };
    let part = format!("{part}{}", if batch > 1.0 { ", batched" } else { "" });
    let setup = Setup {
        // Where the table names no format the name of the file does.
        weights: names.format(if quant.is_empty() { name } else { quant }),
        kv: Some("fp16".into()),
        engine: "llamacpp".into(),
        system: row.text("hardware").to_owned(),
        ..setup(names, row, 1)
    };
    let load = Load::of(way, isl.max(1.0), osl.max(1.0));
    Ok(vec![of(("llama.cpp", &part), setup, load, (metric, row.amount("value")?))])
}

/// Every `model_*.json` beside the one that is named.
fn beside(path: &Path) -> Result<Vec<PathBuf>, SpecError> {
    let folder = path.parent().unwrap_or(path);
    let entries = std::fs::read_dir(folder).map_err(|e| problem(folder, e))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        name.starts_with("model_") && path.extension().is_some_and(|e| e == "json")
    });
    paths.sort();
    Ok(paths)
}

fn torch(names: &Names<'_>, row: &Record) -> Read {
    let (batch, context, s) = (row.amount("B")?, row.amount("S")?, row.amount("s")?);
    let (way, part) = if row.text("kind") == "decode" {
        (Way::DecodeStep { batch, context }, "decode step")
    } else {
        (Way::PrefillStep { batch, tokens: context }, "prefill step")
    };
    let (weights, kv) = (Some("bf16".into()), Some("bf16".into()));
    let setup = Setup { weights, kv, engine: "torch".into(), system: "h200".into(), ..setup(names, row, 1) };
    Ok(vec![of(("H200 PyTorch", part), setup, Load::of(way, context, 1.0), (Metric::StepMs, s * 1e3))])
}
