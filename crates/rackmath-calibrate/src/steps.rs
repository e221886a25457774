//! Single steps of an engine: predicted against recorded, by the kind of pass.
//!
//! `vllm_h200/steps.csv.gz` holds the time of each step on the chip's clock; `vllm_h100_blis_steps.csv.gz`, with `runs.csv`
//! beside it, the period between steps, which the host's own work is part of. Of many prompts in a step only sums are
//! recorded: they are taken to be alike, and to have the mean past that makes the recorded area.

use crate::case::Case;
use crate::rows::{Record, Rows, present, table};
use crate::search::{Knob, knob, search};
use crate::table::{Table, rounded};
use rackmath_spec::engine::{Engine, Overhead};
use rackmath_spec::layout::Degrees;
use rackmath_spec::{Catalog, Layout, SpecError};
use rackmath_theory::deployment::Deployment;
use rackmath_theory::pass::{KernelSet, Part, Pass};
use rackmath_theory::timer::{Chunk, Limit, Work};
use rackmath_units::{Seconds, float};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest stretch of steps over which a mean period counts as the time of one.
const GAP: f64 = 3.0;

type Reader = fn(&Record, &BTreeMap<String, Record>) -> Result<Step, String>;

const FILES: [(&str, Reader); 3] =
    [("vllm_h200/steps.csv.gz", timed), ("steps.csv.gz", timed), ("vllm_h100_blis_steps.csv.gz", period)];

pub fn files() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(file, _)| *file)
}

/// One step of a run, what it held and how long it took.
#[derive(Clone, Debug)]
struct Step {
    file: &'static str,
    run: String,
    model: String,
    system: String,
    engine: &'static str,
    tp: u64,
    work: Work<'static>,
    measured: Seconds,
}

/// Distances by run and kind, then by kind alone; the sign of the middle one last.
pub fn score(catalog: &Catalog, folder: &Path) -> Result<Table, SpecError> {
    let all = read(folder)?;
    let mut bench = Bench::new(catalog)?;
    let mut table = Table::new(&["run", "step", "bias"], &all.skipped);
    let scored = table.scored(&all.rows, |step| bench.error(step));
    let kinds = |step: &Step| [if step.work.prompts() > 0.0 { "prompts, all" } else { "decodes, all" }, kind(step)];
    table.group(scored.iter().flat_map(|(step, e)| kinds(step).map(|kind| ([step.run.as_str(), kind], *e))));
    Ok(table)
}

/// Every step beside its prediction.
pub fn cases(catalog: &Catalog, folder: &Path) -> Result<Rows<Case>, SpecError> {
    let mut bench = Bench::new(catalog)?;
    Ok(read(folder)?.map(|step| {
        let error = bench.error(&step)?;
        let (chip, model) = (&catalog.system(&step.system)?.chip, catalog.model(&step.model)?);
        let w = &step.work;
        let what = format!("{}; {} decodes; {} prompt tokens", step.run, w.sequences(), w.prompt_tokens());
        let metric = if w.prompts() > 0.0 { "step with prompts" } else { "step of decodes" };
        let case = Case::on(chip, step.file, metric).of(step.engine, &model.id, what);
        let case = Case { experts: model.shape().is_some_and(|s| s.moe().is_some()), ..case };
        Ok::<Case, SpecError>(case.off(step.measured.get(), error))
    }))
}

/// Every step with its prediction and its parts, as CSV in milliseconds.
pub fn listed(catalog: &Catalog, folder: &Path) -> Result<String, SpecError> {
    let mut bench = Bench::new(catalog)?;
    let mut text = String::from("run,kind,decodes,context,prompts,tokens,past,measured,predicted,compute");
    for part in Part::ALL {
        _ = write!(text, ",{}", part.name());
    }
    for step in read(folder)?.rows {
        let cost = bench.pass(&step)?.cost(&step.work);
        let (w, ms) = (&step.work, |time: Seconds| format!(",{:.4}", time.as_ms()));
        let (context, past) = (w.decodes[0].context, w.chunks[0].past);
        _ = write!(text, "\n{},{},{},{context:.0},", step.run, kind(&step).replace(',', ""), w.sequences());
        _ = write!(text, "{},{},{past:.0}", w.prompts(), w.prompt_tokens());
        text += &(ms(step.measured) + &ms(cost.time()) + &ms(cost.limited(Limit::Compute)));
        for part in Part::ALL {
            text += &ms(cost.part(*part));
        }
    }
    Ok(text + "\n")
}

/// The bands of the tables published with the steps.
fn kind(step: &Step) -> &'static str {
    let rows = step.work.rows();
    match (step.work.prompts() > 0.0, rows) {
        (false, ..=8.0) => "decodes, to 8",
        (false, ..=64.0) => "decodes, to 64",
        (false, _) => "decodes, over 64",
        (true, ..=512.0) => "prompts, to 512 rows",
        (true, ..=1250.0) => "prompts, to 1250 rows",
        (true, ..=4096.0) => "prompts, to 4096 rows",
        (true, _) => "prompts, over 4096 rows",
    }
}

/// What the steps of closed loops say about an engine on one chip; the rest is asked of whole deployments.
const KNOBS: [Knob<Overhead>; 4] = [
    knob("small_us", (1e-6, 1e-5), |o| o.small.get(), |o, x| o.small = Seconds::s(x)),
    knob("small_traffic_divisor", (0.3, 3.0), |o| o.small_traffic_divisor, |o, x| o.small_traffic_divisor = x),
    knob("stretch", (0.9, 1.5), |o| o.stretch, |o, x| o.stretch = x),
    knob("stretch_long", (0.9, 2.0), |o| o.stretch_long, |o, x| o.stretch_long = x),
];

/// Fits on closed loops alone, so that open loops test what comes out; every run and kind counts alike.
pub fn fit(catalog: &Catalog, folder: &Path) -> Result<String, SpecError> {
    let mut steps = read(folder)?.rows;
    steps.retain(|step| step.run.contains("closed"));
    let mut groups: BTreeMap<(String, &str), Vec<Step>> = BTreeMap::new();
    for step in steps {
        groups.entry((step.run.clone(), kind(&step))).or_default().push(step);
    }
    let Some(first) = groups.values().flatten().next() else {
        return Err(SpecError::file(folder.display().to_string(), "no closed loop among the steps".to_owned()));
    };
    let (engine, _) = catalog.engine(first.engine)?;
    let loss = |overhead: &Overhead| {
        let Ok(mut bench) = Bench::new(catalog) else { return f64::INFINITY };
        bench.engine = Some(Engine { overhead: *overhead, ..(*engine).clone() }.into());
        let mean = |group: &Vec<Step>| {
            let errors = group.iter().filter_map(|step| bench.error(step).ok());
            errors.map(|e| e.abs().min(0.3)).sum::<f64>() / group.len() as f64
        };
        groups.values().map(mean).sum::<f64>() / groups.len() as f64
    };
    let found = search(&engine.overhead, &KNOBS, loss);
    let line = |k: &Knob<Overhead>| {
        let unit = if k.name.ends_with("_us") { 1e6 } else { 1.0 };
        format!("{} = {}\n", k.name, rounded((k.get)(&found) * unit))
    };
    let constants = KNOBS.iter().map(line).collect::<String>();
    Ok(format!("# {}: mean distance {:.4} over {} groups\n{constants}", engine.id, loss(&found), groups.len()))
}

struct Bench<'a> {
    catalog: &'a Catalog,
    kernels: KernelSet,
    /// In the place of the catalogue's, for fitting.
    engine: Option<Arc<Engine>>,
    passes: BTreeMap<String, Pass>,
}

impl<'a> Bench<'a> {
    fn new(catalog: &'a Catalog) -> Result<Self, SpecError> {
        Ok(Self { catalog, kernels: KernelSet::of(catalog)?, engine: None, passes: BTreeMap::new() })
    }

    fn pass(&mut self, step: &Step) -> Result<&Pass, SpecError> {
        if !self.passes.contains_key(&step.run) {
            let on = Deployment::named(self.catalog, &step.model, &step.system, step.engine)?;
            let engine = self.engine.clone().unwrap_or_else(|| on.engine.clone());
            let unfit = |e: &dyn std::fmt::Debug| SpecError::file(step.run.clone(), format!("{e:?}"));
            let degrees = Degrees { tp: step.tp, etp: step.tp, ..Degrees::default() };
            let layout = Layout::new(degrees).map_err(|e| unfit(&e))?;
            let pass = Pass::prepare(&Deployment { layout, engine, ..on }, &self.kernels, false, None);
            let pass = pass.map_err(|e| unfit(&e))?;
            self.passes.insert(step.run.clone(), pass);
        }
        Ok(&self.passes[&step.run])
    }

    fn error(&mut self, step: &Step) -> Result<f64, SpecError> {
        let predicted = self.pass(step)?.cost(&step.work).time();
        Ok(float::ln(predicted / step.measured))
    }
}

fn read(folder: &Path) -> Result<Rows<Step>, SpecError> {
    let mut steps = Vec::new();
    for (path, (file, reader)) in present(folder, &FILES, |(file, _)| file)? {
        let runs = runs(&path)?;
        steps.extend(table(&path)?.iter().map(|row| reader(row, &runs).map(|step| Step { file, ..step })));
    }
    Ok(steps.into_iter().collect())
}

/// What is known of each run, where a table beside the steps tells.
fn runs(path: &Path) -> Result<BTreeMap<String, Record>, SpecError> {
    let beside: PathBuf = path.with_file_name("runs.csv");
    if !beside.is_file() {
        return Ok(BTreeMap::new());
    }
    let named = |row: Record| Some((row.text("run_id").to_owned(), row)).filter(|(id, _)| !id.is_empty());
    Ok(table(&beside)?.into_iter().filter_map(named).collect())
}

/// A step of `llama-3.1-8b_poisson_60` and its like, timed on the chip.
fn timed(row: &Record, _: &BTreeMap<String, Record>) -> Result<Step, String> {
    let run = row.needed("run")?;
    let (decodes, context) = (row.amount("decodes")?, row.amount("decode_context")?);
    let (prompts, tokens, area) = (row.amount("prompts")?, row.amount("prompt_tokens")?, row.amount("prompt_area")?);
    // The mean context of a token is the past of its prompt and half of what is new.
    let past = (area / tokens.max(1.0) - tokens / prompts.max(1.0) / 2.0).max(0.0);
    let work = Work::decode(decodes, context / decodes.max(1.0)).with(Chunk { tokens, prompts, past });
    let ms = row.amount("gpu_ms")?;
    if ms <= 0.0 || work.rows() <= 0.0 {
        return Err("no time or no work".into());
    }
    let model = run.split('_').next().unwrap_or(run).to_owned();
    let (system, engine) = ("h200".into(), "vllm@0.25.0");
    Ok(Step { file: "", run: run.to_owned(), model, system, engine, tp: 1, work, measured: Seconds::ms(ms) })
}

/// A step of `20260217-202857-llama-2-70b-tp4-general` and its like, known by the period around it.
fn period(row: &Record, runs: &BTreeMap<String, Record>) -> Result<Step, String> {
    let id = row.needed("run_id")?;
    if row.amount("gap_steps")? > GAP {
        return Err("a mean over many steps".into());
    }
    let known = runs.get(id).ok_or("a run that runs.csv does not know")?;
    let (input, output) = (known.amount("mean_input_tokens")?, known.amount("mean_output_tokens")?);
    let (prompts, tokens) = (row.amount("prefill_reqs")?, row.amount("prefill_tokens")?);
    let chunk = Chunk { tokens, prompts, past: (input - tokens / prompts.max(1.0)).max(0.0) };
    let work = Work::decode(row.amount("decode_reqs")?, input + output / 2.0).with(chunk);
    let us = row.amount("period_us")?;
    if us <= 0.0 || work.rows() <= 0.0 {
        return Err("no time or no work".into());
    }
    let tp = known.degree("n_gpus");
    let model = known.text("model").replace("-Instruct", "");
    let (system, engine) = (format!("{tp}xh100-sxm"), "vllm@0.15.1");
    Ok(Step { file: "", run: id.to_owned(), model, system, engine, tp, work, measured: Seconds::us(us) })
}
