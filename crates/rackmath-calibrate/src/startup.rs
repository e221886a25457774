//! What engines print when they start, beside what the memory budget says: weights of a chip, the peak of a dry run, graphs, what is
//! left for the cache, how many tokens that holds, and whether the engine starts at all.
//!
//! A log gives gibibytes of one chip. Every row goes through the same [`budget`] as any question, with the flags of its command
//! line; nothing of what was printed is used. A start without a version is taken for the release of its date. Rows that do not
//! state all that bears on memory are scored apart. Of a start that went wrong only that is scored.

use crate::case::Case;
use crate::names::Names;
use crate::rows::{Record, Rows, table_or_none};
use rackmath::case::Bench;
use rackmath_spec::launch::Start;
use rackmath_spec::layout::Degrees;
use rackmath_spec::measurement::Setup;
use rackmath_spec::{Catalog, SpecError};
use rackmath_theory::budget::{Budget, budget};
use rackmath_units::{Bytes, Fraction};
use std::path::Path;

pub const FILE: &str = "startup_logs.csv";
/// What rows are about that say whether a start went as it was called: 1 where it was, 2 where not.
pub const STARTS: &str = "starts called right";
pub const REFUSALS: &str = "refusals called right";
const GIB: f64 = 1_073_741_824.0;

pub fn cases(catalog: &Catalog, folder: &Path) -> Result<Rows<Case>, SpecError> {
    let (names, bench) = (Names::new(catalog), Bench::new(catalog.clone())?);
    let mut all = Rows::none();
    for (at, record) in table_or_none(&folder.join(FILE))?.iter().enumerate() {
        match start(&names, &bench, record) {
            Ok(cases) => all.rows.extend(cases.into_iter().map(|case| Case { row: at + 1, ..case })),
            Err(reason) => all.skip(format!("{FILE}: {reason}")),
        }
    }
    Ok(all)
}

/// The figures of one start.
fn start(names: &Names<'_>, bench: &Bench, record: &Record) -> Result<Vec<Case>, String> {
    let setup = setup(names, record)?;
    let on = bench.deployment(&setup).map_err(|e| e.to_string())?;
    let flags = flags(record);
    let said = budget(&on, &flags, None);
    let complete = record.text("quality") == "complete";
    let what = format!("{}; {}; {}", setup.system, words(record), outcome(&said));
    let weights = setup.weights.clone().unwrap_or_default();
    let experts = on.model.shape().is_some_and(|s| s.moe().is_some());
    let of = |metric: &str| {
        let metric = if complete { metric.to_owned() } else { format!("{metric}, not all stated") };
        let case = Case::on(&on.system.chip, FILE, metric).of(&setup.engine, &on.model.id, &what);
        Case { weights: weights.clone(), experts, ..case }
    };
    let called =
        |metric: &str, right: bool| Case { measured: 1.0, predicted: if right { 1.0 } else { 2.0 }, ..of(metric) };
    if record.text("outcome") != "ok" {
        return Ok(vec![called(REFUSALS, !said.starts())]);
    }
    let mut found = vec![called(STARTS, said.starts())];
    found.extend(figures(record, &said).into_iter().filter_map(|(metric, measured, predicted)| {
        let measured = measured.filter(|m| *m > 0.0)?;
        (predicted > 0.0).then(|| Case { measured, predicted, ..of(metric) })
    }));
    Ok(found)
}

/// What was printed, and what is said of it.
fn figures(record: &Record, said: &Budget) -> [(&'static str, Option<f64>, f64); 7] {
    let gib = |bytes: Bytes| bytes.get() / GIB;
    let halves = || Some(record.number("k_gib")? + record.number("v_gib")?);
    let printed = record.number("avail_kv_gib").or_else(|| record.number("kv_gib")).or_else(halves);
    let tokens = record.number("kv_tokens").or_else(|| Some(record.number("gpu_blocks")? * 16.0));
    // A difference of two readings is below nothing where a dry run gave memory back.
    let graphs = record.number("graph_mem_gib").filter(|gib| *gib > 0.05);
    let peak = || Some(record.number("peak_torch_gib")? - record.number("weights_gib")?);
    [
        ("weights at start-up, GiB", record.number("weights_gib"), gib(said.weights)),
        ("cache room at start-up, GiB", printed, gib(said.cache)),
        ("cache tokens at start-up", tokens, said.tokens as f64),
        ("concurrency at start-up", record.number("max_concurrency"), said.concurrency),
        ("dry run at start-up, GiB", record.number("activation_peak_gib").or_else(peak), gib(said.activation)),
        ("graphs at start-up, GiB", graphs, gib(said.graphs)),
        ("graphs estimated at start-up, GiB", record.number("graph_mem_est_gib"), gib(said.estimate)),
    ]
}

fn outcome(said: &Budget) -> String {
    let [weights, activation, outside, cache] =
        [said.weights, said.activation, said.outside, said.cache].map(|bytes| bytes.get() / GIB);
    let refusal = said.refusal.map_or_else(|| "starts".into(), |refusal| format!("{refusal:?}"));
    format!("weights {weights:.2}, dry run {activation:.2}, outside {outside:.2}, cache {cache:.2}; {refusal}")
}

/// The flags that bear on memory, as the row has them.
fn words(record: &Record) -> String {
    let columns = [
        "mem_fraction",
        "max_model_len",
        "max_num_seqs",
        "max_num_batched_tokens",
        "enforce_eager",
        "speculative",
        "quality",
        "outcome",
    ];
    let said = columns.into_iter().filter(|column| !record.text(column).is_empty());
    said.map(|column| format!("{column} {}", record.text(column))).collect::<Vec<_>>().join(", ")
}

fn flags(record: &Record) -> Start {
    let other = record.text("other_flags");
    let said = |flag: &str| -> Option<u64> {
        let (_, rest) = other.split_once(&format!("{flag}="))?;
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
    };
    let drafts = record.text("speculative");
    let count = |mark: &str| -> Option<u64> {
        let (_, rest) = drafts.split_once(mark)?;
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
    };
    let drafted = count("num_spec_tokens=").or_else(|| count("k=")).or_else(|| said("speculative_num_draft_tokens"));
    let yes = |column: &str| matches!(record.text(column), "True" | "true" | "1" | "enabled");
    let no_pictures = ["'language_model_only': True", "'image': 0"].iter().any(|word| other.contains(word));
    let prefixes = ["'enable_prefix_caching': True", "enable-prefix-caching", "enable_prefix_caching;"];
    Start {
        utilisation: record.number("mem_fraction").and_then(Fraction::checked),
        cache: said("kv_cache_memory_bytes").map(|bytes| Bytes::b(bytes as f64)),
        cache_tokens: said("max_total_tokens"),
        longest: record.count("max_model_len"),
        sequences: record.count("max_num_seqs"),
        pass: record
            .count("max_num_batched_tokens")
            .or_else(|| record.count("chunked_prefill_size"))
            .filter(|n| *n > 0),
        part: record.count("n_ubatch"),
        block: record.count("block_size").or_else(|| said("page_size")),
        eager: yes("enforce_eager") || other.contains("disable_cuda_graph=True"),
        graph: said("cuda_graph_max_bs"),
        prefix_cache: prefixes.iter().any(|word| other.contains(word)).then_some(true),
        pictures: no_pictures.then_some(0),
        films: no_pictures.then_some(0),
        layers: record.text("ngl").split('/').next().and_then(|n| n.parse().ok()),
        flash: (!record.text("flash_attn").is_empty())
            .then(|| yes("flash_attn") || record.text("flash_attn") == "auto"),
        drafts: drafted.or_else(|| (!drafts.is_empty()).then_some(1)),
        drafter: (!drafts.is_empty()).then(|| drafts.to_ascii_lowercase()),
        ..Start::default()
    }
}

/// Weights whose bits the word for their format does not tell: the name of the checkpoint may.
const BITS_UNSAID: [&str; 8] =
    ["compressed-tensors", "modelopt", "modelslim", "awq", "gptq", "auto-round", "autoround", "deepseek_v4_fp8"];

fn setup(names: &Names<'_>, record: &Record) -> Result<Setup, String> {
    let [model, gpu] = ["model", "gpu"].map(|column| record.text(column));
    if model.is_empty() || gpu.is_empty() {
        return Err(format!("no {} stated", if model.is_empty() { "model" } else { "chip" }));
    }
    let [tp, pp, dp] = ["tp", "pp", "dp"].map(|column| record.degree(column));
    // SGLang's ranks are dealt to groups of attention, vLLM's groups have ranks of their own.
    let tp = if record.text("engine") == "sglang" { (tp / dp).max(1) } else { tp };
    let spread = !["", "1", "False"].contains(&record.text("ep"));
    let (ep, etp) = if spread { (tp * dp, 1) } else { (1, tp * dp) };
    let word = record.text("weight_format");
    let (model, weights) = match word {
        word if BITS_UNSAID.contains(&word) => (model.to_owned(), None),
        "" => (named(names, model), None),
        word => (named(names, model), format(names, word)),
    };
    let kv = match record.text("kv_dtype") {
        "" | "auto" => None,
        word if word.starts_with("fp8") => Some("fp8".to_owned()),
        "bfloat16" => Some("bf16".to_owned()),
        "float16" | "f16" => Some("fp16".to_owned()),
        word => names.format(word),
    };
    // A model run in 32 bits keeps its cache in them.
    let kv = kv.or_else(|| (word == "float32").then(|| "fp32".to_owned()));
    let kv = kv.or_else(|| rackmath_spec::name::cache(record.text("model")).map(|dtype| dtype.to_string()));
    Ok(Setup {
        model,
        system: names.system(tp * pp * dp, card(record)),
        engine: engine(names, record),
        weights,
        kv,
        degrees: Degrees { tp, pp, dp, ep, etp, ..Degrees::default() },
        ..Setup::default()
    })
}

/// A checkpoint's own name where the catalogue reads it, else the name in the table.
fn named(names: &Names<'_>, model: &str) -> String {
    if names.catalog.model(model).is_ok() { model.to_owned() } else { names.named(model) }
}

/// The card: one name stands for several sizes of memory.
fn card(record: &Record) -> &str {
    match (record.text("gpu"), record.text("notes")) {
        ("A100", notes) if notes.contains("40 GB") => "a100-40gb",
        ("A100", _) => "a100-80gb",
        (gpu, _) => gpu,
    }
}

fn format(names: &Names<'_>, word: &str) -> Option<String> {
    let lower = word.to_ascii_lowercase();
    let own = [
        ("autoround int4", "int4"),
        ("gptq int4", "int4"),
        ("marlin int4", "int4"),
        ("fp8 (marlin", "fp8"),
        ("q4_k - medium", "q4_k_m"),
    ];
    let known = own.into_iter().find(|(said, _)| lower.starts_with(said)).map(|(_, format)| format.to_owned());
    known.or_else(|| names.format(word))
}

/// The engine with its version: the one stated, one in brackets, or the release of the date.
fn engine(names: &Names<'_>, record: &Record) -> String {
    let (word, version) = (record.text("engine"), record.text("version"));
    let inside = version.split_once('(').map_or("", |(_, rest)| rest.trim_end_matches(['+', ')']));
    let stated = [version, inside].into_iter().find(|v| v.starts_with(|c: char| c.is_ascii_digit()) && v.contains('.'));
    let stated = stated.filter(|v| !v.starts_with("0.1.dev"));
    match stated {
        Some(version) => names.engine(word, version),
        None if word == "vllm" => {
            let oldest = if record.text("engine_gen") == "V0" { names.released("2025-01") } else { None };
            let version =
                oldest.filter(|_| record.text("date") > "2025-01").or_else(|| names.released(record.text("date")));
            version.map_or_else(|| word.to_owned(), |version| names.engine(word, &version))
        }
        None => names.engine(word, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::parse;

    #[test]
    fn a_start_is_read_by_its_flags_and_held_against_what_it_printed() {
        let csv = "\
engine,version,model,weight_format,kv_dtype,gpu,tp,pp,dp,ep,mem_fraction,max_model_len,max_num_batched_tokens,speculative,outcome,weights_gib,avail_kv_gib,kv_tokens,quality
vllm,0.19.0,meta-llama/Llama-3.1-8B-Instruct,bf16,auto,H100-80GB,1,1,1,,0.95,8192,8192,,ok,14.99,58.11,476016,complete
vllm,0.19.0,meta-llama/Llama-3.1-8B-Instruct,bf16,auto,H100-80GB,1,1,1,,0.2,8192,8192,,refused,14.99,,,complete
vllm,0.19.0,abacus,bf16,auto,H100-80GB,1,1,1,,0.95,8192,8192,,ok,14.99,58.11,476016,complete
vllm,0.19.0,meta-llama/Llama-3.1-8B-Instruct,bf16,auto,,1,1,1,,0.95,8192,8192,,ok,14.99,58.11,476016,complete
vllm,0.19.0,RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8,compressed-tensors,auto,H100-80GB,1,1,1,,0.95,8192,8192,,ok,8.49,,,complete
";
        let catalog = rackmath_catalog::embedded();
        let (names, bench) = (Names::new(&catalog), Bench::new(catalog.clone()).unwrap());
        let rows: Vec<_> = parse(csv).unwrap().iter().map(|r| start(&names, &bench, r)).collect();
        let first = rows[0].as_ref().unwrap();
        let metrics: Vec<&str> = first.iter().map(|case| case.metric.as_str()).collect();
        assert_eq!(
            metrics,
            [STARTS, "weights at start-up, GiB", "cache room at start-up, GiB", "cache tokens at start-up"]
        );
        for case in first {
            assert!((case.predicted / case.measured - 1.0).abs() < 0.01, "{case:?}");
        }
        // The same chip with a share that leaves nothing.
        let second = rows[1].as_ref().unwrap();
        assert_eq!((second.len(), second[0].metric.as_str(), second[0].predicted), (1, REFUSALS, 1.0));
        for (row, why) in rows[2..].iter().zip(["abacus", "no chip stated"]) {
            assert!(row.as_ref().is_err_and(|said| said.contains(why)), "{why}: {row:?}");
        }
        // The bits of a format that does not tell them stand in the name.
        let last = rows[4].as_ref().unwrap();
        assert!((last[1].predicted / 8.49 - 1.0).abs() < 0.01, "{last:?}");
    }
}
