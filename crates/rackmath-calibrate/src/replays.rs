//! Whole runs of a server, replayed request by request: percentiles of latencies, predicted against measured.
//!
//! `vllm_h200/requests.csv.gz` holds what each request of an open loop met, with its arrival, lengths and what its prompt shares;
//! `vllm_h100_blis_requests.csv.gz`, with `runs.csv` beside it, the same of servers whose few prompts come again and again (one
//! prompt for each length, found in the cache but for its last block); `vllm_h100_serving_blis.csv` only means and percentiles of
//! runs at a stated rate, for which requests are drawn even in time and as long as stated.
//! Nothing is fitted here, and no constant is for these runs alone.

use crate::case::Case;
use crate::names::Names;
use crate::rows::{Record, Rows, problem, table, table_or_none};
use crate::table::Table;
use rackmath::validate::replay::{At, Latency, Measured, Run, even, percentiles, segment};
use rackmath_sim::blocks::Segment;
use rackmath_sim::engine::vllm::Settings;
use rackmath_sim::workload::Job;
use rackmath_spec::{Catalog, SpecError};
use rackmath_theory::pass::KernelSet;
use rackmath_units::Effort;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Distances by source and metric.
pub fn score(catalog: &Catalog, folder: &Path) -> Result<Table, SpecError> {
    let (runs, skipped) = read(catalog, folder)?;
    let kernels = KernelSet::of(catalog)?;
    let mut table = Table::new(&["source", "metric", "bias"], &skipped);
    let mut rows = Vec::new();
    for run in &runs {
        for c in run.compared(catalog, &kernels, &Effort::from(1))? {
            rows.push((run.source.as_str(), format!("{} {}", c.metric, c.at.name()), c.error()));
        }
    }
    table.group(rows.iter().map(|(source, metric, e)| ([*source, metric.as_str()], *e)));
    Ok(table)
}

/// Every figure of every run beside what the replay gives, in milliseconds.
pub fn cases(catalog: &Catalog, folder: &Path) -> Result<Rows<Case>, SpecError> {
    let (runs, skipped) = read(catalog, folder)?;
    let kernels = KernelSet::of(catalog)?;
    let mut rows = Vec::new();
    for run in &runs {
        let (chip, model) = (&catalog.system(&run.system)?.chip, catalog.model(&run.model)?);
        for c in run.compared(catalog, &kernels, &Effort::from(1))? {
            let metric = format!("replay {} {}", c.metric, c.at.name());
            let case = Case::on(chip, &run.source, metric).of(&run.engine, &model.id, &run.name);
            let experts = model.shape().is_some_and(|s| s.moe().is_some());
            rows.push(Case { experts, measured: c.measured, predicted: c.predicted, ..case });
        }
    }
    Ok(Rows { rows, skipped })
}

/// Every run with what was measured and predicted, as CSV in milliseconds.
pub fn listed(catalog: &Catalog, folder: &Path) -> Result<String, SpecError> {
    let (runs, _) = read(catalog, folder)?;
    let kernels = KernelSet::of(catalog)?;
    let mut text = String::from("source,run,requests,metric,measured_ms,predicted_ms\n");
    for run in &runs {
        for c in run.compared(catalog, &kernels, &Effort::from(1))? {
            _ = writeln!(
                text,
                "{},{},{},{} {},{:.3},{:.3}",
                run.source,
                run.name,
                run.jobs.len(),
                c.metric,
                c.at.name(),
                c.measured,
                c.predicted
            );
        }
    }
    Ok(text)
}

const SHAREGPT: &str = "vllm_sharegpt_requests.csv";

pub const FILES: [&str; 4] =
    ["vllm_h200/requests.csv.gz", "vllm_h100_blis_requests.csv.gz", "vllm_h100_serving_blis.csv", SHAREGPT];

type Found = (Vec<Run>, BTreeMap<String, usize>);

pub type Skipped = BTreeMap<String, usize>;

fn read(catalog: &Catalog, folder: &Path) -> Result<Found, SpecError> {
    let (mut runs, mut skipped) = (Vec::new(), BTreeMap::new());
    let names = Names::new(catalog);
    for path in ["vllm_h200/requests.csv.gz", "requests.csv.gz"] {
        let path = folder.join(path);
        if path.exists() {
            runs.extend(open_loops(&table(&path)?).map_err(|e| problem(&path, e))?);
        }
    }
    let path = folder.join("vllm_h100_blis_requests.csv.gz");
    if path.exists() {
        let facts = table(&folder.join("runs.csv"))?;
        runs.extend(repeated(&names, &table(&path)?, &facts, &mut skipped).map_err(|e| problem(&path, e))?);
    }
    let path = folder.join("vllm_h100_serving_blis.csv");
    runs.extend(stated(&names, &table_or_none(&path)?, &mut skipped).map_err(|e| problem(&path, e))?);
    let path = folder.join(SHAREGPT);
    runs.extend(sharegpt(&names, &table_or_none(&path)?, &mut skipped).map_err(|e| problem(&path, e))?);
    if runs.is_empty() {
        return Err(problem(folder, "no runs of requests here"));
    }
    Ok((runs, skipped))
}

/// What a prompt is made of, as number and tokens; nothing of no tokens.
pub fn pieces<const N: usize>(of: [(u64, u32); N]) -> Vec<Segment> {
    of.into_iter().filter(|(_, tokens)| *tokens > 0).map(|(stream, tokens)| segment(stream, tokens)).collect()
}

pub fn by_run<'a>(rows: &'a [Record], column: &str) -> BTreeMap<String, Vec<&'a Record>> {
    let mut runs: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for row in rows {
        runs.entry(row.text(column).to_owned()).or_default().push(row);
    }
    runs
}

pub fn measured(rows: &[&Record], metric: Latency, column: &str, ms: f64) -> Vec<Measured> {
    let values: Vec<f64> = rows.iter().filter_map(|r| r.number(column)).map(|x| x * ms).collect();
    percentiles(0, metric, &values).collect()
}

/// The open loops of one H200: every fact of the engine is known.
fn open_loops(rows: &[Record]) -> Result<Vec<Run>, String> {
    let mut runs = Vec::new();
    for (name, rows) in by_run(rows, "run") {
        let mut jobs = Vec::new();
        for r in &rows {
            let mut content = Vec::new();
            for word in r.needed("segments")?.split('|') {
                let (id, tokens) = word.split_once(':').ok_or("a segment is id:tokens")?;
                let number = |word: &str| word.parse::<u64>().map_err(|e| format!("{word}: {e}"));
                content.push(segment(number(id)?, number(tokens)? as u32));
            }
            jobs.push(Job {
                arrival: (r.amount("sent_s")?.max(0.0) * 1e9) as u64,
                prompt: r.amount("input")? as u32,
                output: r.amount("output")? as u32,
                content,
                ..Job::default()
            });
        }
        let mut all = measured(&rows, Latency::Ttft, "ttft_s", 1e3);
        all.extend(measured(&rows, Latency::Tpot, "tpot_s", 1e3));
        all.extend(measured(&rows, Latency::E2e, "e2e_s", 1e3));
        let model =
            if name.starts_with("llama-3.1-8b") { "llama-3.1-8b" } else { name.split('_').next().unwrap_or("") };
        runs.push(Run {
            source: "vLLM 0.25 on an H200, open loop".into(),
            model: model.to_owned(),
            name,
            system: "hgx-h200".into(),
            engine: "vllm@0.25.0".into(),
            tp: 1,
            settings: Settings {
                max_num_seqs: 1024,
                max_num_batched_tokens: 8192,
                max_model_len: 131_072,
                num_blocks: 57_489,
                ..Settings::default()
            }
            .into(),
            jobs,
            measured: all,
            ..Run::default()
        });
    }
    Ok(runs)
}

/// Settings that a run states as `name=value`.
fn flags(text: &str) -> Settings {
    let number = |name: &str| {
        let at = text.find(&format!("{name}="))? + name.len() + 1;
        text[at..].split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
    };
    let usual = Settings::default();
    Settings {
        max_model_len: number("max_model_len").unwrap_or(usual.max_model_len),
        max_num_batched_tokens: number("max_num_batched_tokens").unwrap_or(usual.max_num_batched_tokens),
        max_num_seqs: number("max_num_seqs").unwrap_or(usual.max_num_seqs),
        num_blocks: number("kv_blocks_gpu").unwrap_or(usual.num_blocks),
        ..usual
    }
}

/// Servers of few prompts: a prompt is known by its length.
pub fn repeated(
    names: &Names<'_>,
    rows: &[Record],
    facts: &[Record],
    skipped: &mut Skipped,
) -> Result<Vec<Run>, String> {
    let mut runs = Vec::new();
    for (name, rows) in by_run(rows, "run_id") {
        let fact = facts.iter().find(|f| f.text("run_id") == name);
        let fact = fact.ok_or_else(|| format!("{name}: not in runs.csv"))?;
        if rows.iter().any(|r| r.text("error") == "1") {
            *skipped.entry("overloaded, requests were given up".into()).or_default() += 1;
            continue;
        }
        let Some(model) = names.model(fact.needed("model")?) else {
            *skipped.entry(format!("no model {} in the catalogue", fact.text("model"))).or_default() += 1;
            continue;
        };
        let mut jobs = Vec::new();
        for r in &rows {
            let prompt = r.amount("input_tokens")? as u32;
            jobs.push(Job {
                arrival: (r.amount("arrival_ms")? * 1e6) as u64,
                prompt,
                output: (r.amount("output_tokens")? as u32).max(1),
                content: vec![segment(prompt.into(), prompt)],
                ..Job::default()
            });
        }
        let mut all = measured(&rows, Latency::Ttft, "ttft_ms", 1.0);
        all.extend(measured(&rows, Latency::E2e, "e2e_ms", 1.0));
        runs.push(Run {
            source: "vLLM 0.15 on H100, open loop, by request".into(),
            name,
            model,
            system: "hgx-h100".into(),
            engine: "vllm@0.15.1".into(),
            tp: fact.needed("parallelism")?.trim_start_matches("TP").parse().unwrap_or(1),
            settings: flags(fact.needed("flags")?).into(),
            jobs,
            measured: all,
            ..Run::default()
        });
    }
    Ok(runs)
}

/// Requests of a run below which it is a fragment.
const FRAGMENT: usize = 50;

/// Runs of vLLM 0.19 on one card whose flags are not stated: as many requests ran at a time as the record shows, rounded to
/// the power of two that a person would have set; the cache held them all, so that its size does not matter.
fn sharegpt(names: &Names<'_>, rows: &[Record], skipped: &mut Skipped) -> Result<Vec<Run>, String> {
    let mut runs = Vec::new();
    for (name, rows) in by_run(rows, "run") {
        let (model, chip) = (rows[0].text("model"), rows[0].text("hardware"));
        let (Some(model), Some(system)) = (names.model(model), names.chip(chip)) else {
            *skipped.entry(format!("{SHAREGPT}: no {model} on {chip}")).or_default() += rows.len();
            continue;
        };
        if rows.len() < FRAGMENT {
            *skipped.entry(format!("{SHAREGPT}: a fragment of a run")).or_default() += rows.len();
            continue;
        }
        let (mut jobs, mut events) = (Vec::new(), Vec::new());
        for (at, r) in (0_u64..).zip(&rows) {
            let (arrival, prompt) = (r.amount("arrival_s")?, r.amount("isl")? as u32);
            events.push((arrival + r.amount("queue_ms")? / 1e3, 1_i64));
            events.push((arrival + r.amount("e2e_ms")? / 1e3, -1));
            let (arrival, output) = ((arrival * 1e9) as u64, (r.amount("osl")? as u32).max(1));
            jobs.push(Job { arrival, prompt, output, content: vec![segment(at, prompt)], ..Job::default() });
        }
        jobs.sort_by_key(|job| job.arrival);
        // Whoever ends makes room for whoever begins at the same time.
        events.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let (mut running, mut most) = (0_i64, 1_i64);
        for (_, change) in events {
            running += change;
            most = most.max(running);
        }
        let mut all = measured(&rows, Latency::Ttft, "ttft_ms", 1.0);
        all.extend(measured(&rows, Latency::Tpot, "tpot_ms", 1.0));
        all.extend(measured(&rows, Latency::E2e, "e2e_ms", 1.0));
        let max_num_seqs = 1 << (most as u64).ilog2();
        let num_blocks = jobs.iter().map(|job| (job.prompt + job.output).div_ceil(16)).sum();
        runs.push(Run {
            source: "vLLM 0.19 on one card, ShareGPT".into(),
            name,
            model,
            system,
            engine: "vllm@0.19.0".into(),
            tp: 1,
            settings: Settings { max_num_seqs, num_blocks, ..Settings::default() }.into(),
            jobs,
            measured: all,
            ..Run::default()
        });
    }
    Ok(runs)
}

/// Runs of which a rate and mean lengths are stated.
fn stated(names: &Names<'_>, rows: &[Record], skipped: &mut Skipped) -> Result<Vec<Run>, String> {
    let mut runs: BTreeMap<(String, String), Run> = BTreeMap::new();
    for r in rows {
        let (experiment, stage) = (r.needed("experiment")?.to_owned(), r.needed("stage")?.to_owned());
        let rates: Vec<f64> = r.needed("request_rate")?.split('|').filter_map(|w| w.parse().ok()).collect();
        let (metric, at) = match r.needed("metric")?.split_once('_') {
            Some(("e2e", at)) => (Latency::E2e, at),
            Some(("itl", at)) => (Latency::Itl, at),
            Some(("ttft", at)) => (Latency::Ttft, at),
            _ => continue,
        };
        let at = match at {
            "mean" => At::Mean,
            "p90" => At::Percentile(0.9),
            "p99" => At::Percentile(0.99),
            _ => continue,
        };
        // A run of one rate is its only stage.
        let again = rates.len() == 1 && stage == "-1";
        if rates.is_empty() || again || r.needed("workload")? == "reasoning" {
            continue;
        }
        let value = r.amount("value_ms")?;
        let key = (experiment.clone(), stage);
        if !runs.contains_key(&key) {
            let Some(model) = names.model(r.needed("model")?) else {
                *skipped.entry(format!("no model {} in the catalogue", r.text("model"))).or_default() += 1;
                continue;
            };
            let (input, output) = (r.amount("isl_nominal")? as u32, r.amount("osl_nominal")? as u32);
            let first = r.needed("set")?.contains("300");
            let whole = |column: &str, usual: u32| r.number(column).map_or(usual, |x| x as u32);
            let run = Run {
                source: "vLLM 0.15 on H100, open loop, stated rate".into(),
                name: format!("{experiment} stage {}", key.1),
                model,
                system: "hgx-h100".into(),
                engine: "vllm@0.15.1".into(),
                tp: r.needed("parallelism")?.trim_start_matches("TP").parse().unwrap_or(1),
                settings: Settings {
                    max_num_seqs: whole("max_num_seqs", 128),
                    max_num_batched_tokens: whole("max_num_batched_tokens", 2048),
                    max_model_len: 4096,
                    num_blocks: whole("kv_blocks", 30_000),
                    ..Settings::default()
                }
                .into(),
                jobs: even(&rates, input, output, if first { 300 } else { usize::MAX }),
                ..Run::default()
            };
            runs.insert(key.clone(), run);
        }
        if let Some(run) = runs.get_mut(&key) {
            run.measured.push(Measured { part: 0, metric, at, ms: value });
        }
    }
    Ok(runs.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_run_at_a_time_as_the_record_shows() {
        // Sixty requests at once, each a second long, four at a time: the fifth waits a second, and so on.
        let mut csv = String::from("run,model,hardware,isl,osl,arrival_s,queue_ms,ttft_ms,tpot_ms,e2e_ms\n");
        for i in 0..60 {
            let queue = f64::from(i / 4) * 1000.0;
            let (ttft, e2e) = (queue + 50.0, queue + 1000.0);
            writeln!(csv, "a,Llama-3.1-8B,RTXPRO6000,500,100,0,{queue},{ttft},9.5,{e2e}").unwrap();
        }
        csv += "b,Llama-3.1-8B,RTXPRO6000,500,100,0,0,50,9.5,1000\nc,some model,RTXPRO6000,500,100,0,0,50,9.5,1000\n";
        let catalog = rackmath_catalog::embedded();
        let (names, mut skipped) = (Names::new(&catalog), BTreeMap::new());
        let runs = sharegpt(&names, &crate::rows::parse(&csv).unwrap(), &mut skipped).unwrap();
        assert_eq!((runs.len(), runs[0].jobs.len(), runs[0].system.as_str()), (1, 60, "rtx-pro-6000"));
        // 600 tokens are 38 blocks.
        let settings = Settings { max_num_seqs: 4, num_blocks: 60 * 38, ..Settings::default() };
        assert_eq!(runs[0].settings, settings.into());
        assert_eq!(skipped.values().sum::<usize>(), 2);
    }
}
