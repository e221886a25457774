//! What engines print when they start, beside what the memory budget says: weights of a chip, what is left for the cache, and
//! how many tokens that holds.
//!
//! A log gives gibibytes of one chip. The room of the cache is the engine's share of a chip's memory less weights, activations and buffers;
//! its tokens are that room over what one token of the longest context allowed takes. Of a start that was refused, and of one
//! whose drafts, stages or replicas print lines of their own, nothing is read.

use crate::case::Case;
use crate::names::Names;
use crate::rows::{Record, Rows, table_or_none};
use rackmath::case::Bench;
use rackmath_spec::layout::Degrees;
use rackmath_spec::measurement::Setup;
use rackmath_spec::{Catalog, SpecError};
use rackmath_theory::placement::{Load, place};
use rackmath_units::{Fraction, Tokens};
use std::path::Path;

pub const FILE: &str = "startup_logs.csv";
/// Tokens of the context where a log does not say how long one may be.
const CONTEXT: f64 = 8192.0;
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
    for (column, none, why) in [
        ("outcome", "ok", "a start that was refused"),
        ("speculative", "", "drafts, which hold memory of their own"),
        ("pp", "1", "stages of a pipeline, of which one prints"),
        ("dp", "1", "several replicas"),
    ] {
        let said = record.text(column);
        if !(said.is_empty() || said == none) {
            return Err(why.into());
        }
    }
    let setup = setup(names, record)?;
    let on = bench.deployment(&setup).map_err(|e| e.to_string())?;
    let schedule = &on.engine.schedule;
    let utilisation = record.number("mem_fraction").map_or(schedule.memory, Fraction::new);
    let tokens = record.number("max_num_batched_tokens").unwrap_or(schedule.chunk).min(1e6);
    let context = record.number("max_model_len").unwrap_or(CONTEXT);
    let at = |batch: f64| {
        let load = Load { batch, context: Tokens::new(context), tokens, utilisation };
        place(&on, &load).stages[0].held
    };
    let (empty, one) = (at(0.0), at(1.0));
    let weights = empty.all_weights().get();
    let room = on.system.chip.memory.size().get() * utilisation.get() - weights - empty.activations - empty.buffers;
    let printed = record.number("avail_kv_gib").or_else(|| record.number("kv_gib"));
    let halves = || Some(record.number("k_gib")? + record.number("v_gib")?);
    let what = format!("{}; utilisation {utilisation}; {tokens} tokens in a pass", setup.system);
    let figures = [
        ("weights at start-up, GiB", record.number("weights_gib"), weights / GIB),
        ("cache room at start-up, GiB", printed.or_else(halves), room / GIB),
        ("cache tokens at start-up", record.number("kv_tokens"), room / ((one.kv - empty.kv) / context)),
    ];
    let case = |(metric, measured, predicted): (&str, Option<f64>, f64)| {
        let measured = measured.filter(|m| *m > 0.0 && predicted > 0.0)?;
        let case = Case::on(&on.system.chip, FILE, metric).of(&setup.engine, &on.model.id, &what);
        let weights = setup.weights.clone().unwrap_or_default();
        Some(Case {
            measured,
            predicted,
            weights,
            experts: on.model.shape().is_some_and(|s| s.moe().is_some()),
            ..case
        })
    };
    let found: Vec<Case> = figures.into_iter().filter_map(case).collect();
    if found.is_empty() { Err("no figure of memory, or said not to fit".into()) } else { Ok(found) }
}

fn setup(names: &Names<'_>, record: &Record) -> Result<Setup, String> {
    let [model, gpu] = ["model", "gpu"].map(|column| record.text(column));
    if model.is_empty() || gpu.is_empty() {
        return Err(format!("no {} stated", if model.is_empty() { "model" } else { "chip" }));
    }
    let tp = record.degree("tp");
    let spread = !["", "1", "False"].contains(&record.text("ep"));
    let (ep, etp) = if spread { (tp, 1) } else { (1, tp) };
    let weights = match record.text("weight_format") {
        word @ ("compressed-tensors" | "modelopt" | "modelslim" | "awq" | "gptq" | "auto-round" | "autoround") => {
            return Err(format!("weights in \"{word}\", whose bits are not stated"));
        }
        "" => None,
        word => names.format(word),
    };
    let kv = match record.text("kv_dtype") {
        "" | "auto" => None,
        word if word.starts_with("fp8") => Some("fp8".to_owned()),
        "bfloat16" => Some("bf16".to_owned()),
        "float16" | "f16" => Some("fp16".to_owned()),
        word => names.format(word),
    };
    Ok(Setup {
        model: names.named(model),
        system: names.system(tp, gpu),
        engine: names.engine(record.text("engine"), record.text("version")),
        weights,
        kv,
        degrees: Degrees { tp, ep, etp, ..Degrees::default() },
        ..Setup::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::parse;

    #[test]
    fn a_start_is_read_by_what_it_printed_and_refused_where_lines_are_of_something_else() {
        let csv = "\
engine,version,model,weight_format,kv_dtype,gpu,tp,pp,dp,ep,mem_fraction,max_model_len,max_num_batched_tokens,speculative,outcome,weights_gib,avail_kv_gib,kv_tokens
vllm,0.19.0,meta-llama/Llama-3.1-8B-Instruct,bf16,auto,H100-80GB,1,1,1,,0.95,8192,8192,,ok,14.99,58.11,476016
vllm,0.19.0,meta-llama/Llama-3.1-8B-Instruct,bf16,auto,H100-80GB,1,1,1,,0.95,8192,8192,EAGLE,ok,14.99,58.11,476016
vllm,0.19.0,meta-llama/Llama-3.1-8B-Instruct,bf16,auto,H100-80GB,1,1,1,,0.95,8192,8192,,refused,14.99,58.11,476016
vllm,0.19.0,abacus,bf16,auto,H100-80GB,1,1,1,,0.95,8192,8192,,ok,14.99,58.11,476016
vllm,0.19.0,meta-llama/Llama-3.1-8B-Instruct,modelopt,auto,H100-80GB,1,1,1,,0.95,8192,8192,,ok,14.99,58.11,476016
vllm,0.19.0,meta-llama/Llama-3.1-8B-Instruct,bf16,auto,,1,1,1,,0.95,8192,8192,,ok,14.99,58.11,476016
";
        let catalog = rackmath_catalog::embedded();
        let (names, bench) = (Names::new(&catalog), Bench::new(catalog.clone()).unwrap());
        let rows: Vec<_> = parse(csv).unwrap().iter().map(|r| start(&names, &bench, r)).collect();
        let first = rows[0].as_ref().unwrap();
        assert_eq!(first.len(), 3);
        // 8,030,261,248 parameters of two bytes are 14.96 GiB; 32 layers x 2 x 8 x 128 x 2 bytes are 131,072 to a token.
        assert!((first[0].predicted - 14.96).abs() < 0.02, "{:?}", first[0]);
        assert!((first[2].predicted * 131_072.0 / GIB - first[1].predicted).abs() < 0.01, "{first:?}");
        assert_eq!((first[0].measured, first[0].chip.as_str()), (14.99, "h100-sxm"));
        for (row, why) in rows[1..].iter().zip(["drafts", "refused", "abacus", "modelopt", "no chip stated"]) {
            assert!(row.as_ref().is_err_and(|said| said.contains(why)), "{why}: {row:?}");
        }
    }
}
