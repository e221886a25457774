//! Tables of training runs, one run per row.
//!
//! A row names a model by its shapes or by its name, a layout, and a step by its seconds, its tokens per second, or its FLOP
//! per second in the convention of its source.

use crate::names::Names;
use crate::rows::{Record, Rows, present};
use rackmath_spec::layout::Degrees;
use rackmath_spec::model::{Bias, Ffn, Mixer, Mlp, Moe, Norm, Run, Shape};
use rackmath_spec::{Catalog, SpecError, TrainingFormat};
use rackmath_theory::pipeline::Schedule;
use rackmath_theory::train::mfu::Convention;
use rackmath_theory::train::{Cut, Recompute, Sharding, Spread};
use std::path::Path;

#[derive(Clone, Copy, Debug)]
pub struct Source {
    pub file: &'static str,
    /// The program it was measured with.
    pub stack: &'static str,
    /// How FLOP per second are counted.
    pub convention: Convention,
    /// Whether it is older than sharded optimizers and sequence parallelism.
    pub legacy: bool,
}

const fn source(file: &'static str, stack: &'static str, convention: Convention, legacy: bool) -> Source {
    Source { file, stack, convention, legacy }
}

const SOURCES: [Source; 15] = [
    source("training_vtrain_a100.csv", "megatron-deepspeed", Convention::Hardware, true),
    source("training_megatron2021.csv", "megatron-2021", Convention::Hardware, true),
    source("training_korthikanti2022.csv", "megatron-2022", Convention::Full, true),
    source("training_bloom_a100.csv", "jean-zay", Convention::Hardware, true),
    source("training_llmfoundry.csv", "composer-fsdp", Convention::Full, false),
    source("training_nemo.csv", "megatron-core", Convention::Causal, false),
    source("training_dgxc.csv", "megatron-core", Convention::Full, false),
    source("training_megatron_core_h100.csv", "megatron-core", Convention::Full, false),
    source("training_llama3.csv", "megatron-core", Convention::Causal, false),
    source("training_simumax_b200.csv", "simumax-b200", Convention::Causal, false),
    source("training_torchtitan.csv", "torchtitan", Convention::Full, false),
    source("training_maxtext_tpu.csv", "maxtext", Convention::Full, false),
    source("amd_tpu/training_tpu.csv", "maxtext", Convention::Causal, false),
    source("amd_tpu/training_amd.csv", "primus", Convention::Full, false),
    source("amd_tpu/training_other.csv", "", Convention::Full, false),
];

pub fn files() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|source| source.file)
}

/// A run: the words of its table, and what they mean.
#[derive(Clone, Debug)]
pub struct Row {
    pub source: Source,
    pub raw: Record,
    pub shape: Shape,
    /// The chip, in catalogue names.
    pub chip: String,
    pub chips: u64,
    pub cut: Cut,
    pub sequence: u64,
    /// Sequences of a step.
    pub global_batch: u64,
    pub format: TrainingFormat,
}

impl Row {
    /// The table's name in short.
    pub fn table(&self) -> &'static str {
        let file = self.source.file.rsplit('/').next().unwrap_or(self.source.file);
        file.trim_start_matches("training_").trim_end_matches(".csv")
    }

    pub fn out_of_memory(&self) -> bool {
        self.raw.text("outcome") == "oom"
    }

    /// Whether the makers say it ran on several nodes.
    pub fn many_nodes(&self) -> bool {
        self.raw.text("notes").starts_with("multi")
    }

    /// Whether the table leaves open what is recomputed or sharded, so that whatever fits may have run.
    pub fn is_open(&self) -> bool {
        !self.source.legacy && self.raw.text("recompute").is_empty()
    }
}

pub fn read(folder: &Path, catalog: &Catalog) -> Result<Rows<Row>, SpecError> {
    let names = Names::new(catalog);
    crate::rows::read(present(folder, &SOURCES, |s| s.file)?, |source, raw| {
        [row(*source, raw, &names, catalog).map_err(|why| format!("{}: {why}", source.file))]
    })
}

fn row(source: Source, raw: &Record, names: &Names<'_>, catalog: &Catalog) -> Result<Row, String> {
    let notes = raw.text("notes");
    if ["LoRA", "RA Performance", "FT Performance", "SFT"].iter().any(|kind| notes.contains(kind)) {
        return Err("fine-tuning: packed sequences or frozen weights".into());
    }
    if !["", "ok", "oom"].contains(&raw.text("outcome")) {
        return Err(format!("marked {}", raw.text("outcome")));
    }
    if source.stack.is_empty() {
        return Err("no training program of the catalogue".into());
    }
    let chip = names.chip(raw.text("gpu")).ok_or_else(|| format!("no chip \"{}\"", raw.text("gpu")))?;
    let chips = raw.count("gpus").ok_or("no number of chips")?;
    let (tp, pp, cp) = (raw.degree("tp"), raw.degree("pp"), raw.degree("cp"));
    let copies = (chips / (tp * pp * cp)).max(1);
    let sequence = raw.count("seq").ok_or("no sequence length")?;
    // Some tables give the tokens of a step among their notes; some only the sequences of a chip: then a step is one
    // micro-batch of each copy.
    let noted = notes.split("; ").find_map(|part| part.strip_prefix("tokens per step ")?.parse::<u64>().ok());
    let one = raw.count("micro_batch").filter(|b| *b > 0).map(|b| b * copies);
    let stated = raw.count("global_batch").filter(|b| *b > 0).or(noted.map(|tokens| tokens / sequence));
    // A table without batches: that of the recipe (AMD-AGI/Primus examples/megatron/configs/MI355X, read 2026-11).
    let recipe = (source.stack == "primus" && raw.text("model") == "Mixtral-8x22B" && pp > 1).then_some(128);
    let mut global_batch = stated.or(recipe).or(one).filter(|b| *b > 0).ok_or("no batch")?;
    if notes.contains("heading says 512") && raw.number("step_s").is_none() {
        // The source's own remark: only this batch agrees with its FLOP per second.
        global_batch = 512;
    }
    let shape = shape(raw, names, catalog, pp)?;
    let layers = shape.n_layers();
    let virtual_stages = chunks(raw, source, layers, pp);
    let recompute = match raw.text("recompute") {
        r if r.starts_with("full") => Recompute::Full,
        // MaxText recomputes whatever a policy of one's own does not name, all but a layer's input (its configuration,
        // RematAndOffload, read 2026-11); recipes name the input and sometimes projections.
        "custom" if source.stack == "maxtext" => Recompute::Full,
        // The same configuration: products with weights are kept, the rest is run again.
        "minimal" if source.stack == "maxtext" => Recompute::Cheap,
        // torchtitan keeps outputs of attention and of every other product, and runs the rest again (its
        // activation_checkpoint.py, selective by operation, read 2026-11).
        "selective" if source.stack == "torchtitan" => Recompute::Cheap,
        r if r.starts_with("selective") => Recompute::Selective,
        _ => Recompute::None,
    };
    let sharding = match raw.text("shard").to_ascii_lowercase().as_str() {
        "zero0" => Sharding::None,
        s if s.contains("fsdp") || s.contains("full_shard") || s.contains("zero3") || s.contains("shard_grad") => {
            Sharding::Zero3
        }
        "zero1" => Sharding::Zero1,
        "" if source.legacy => Sharding::None,
        "" if source.stack == "torchtitan" || source.stack == "maxtext" => Sharding::Zero3,
        _ => Sharding::Zero1,
    };
    let lighter = source.legacy && pp > 2 && layers % pp != 0 && (layers + 2).is_multiple_of(pp);
    let ep = if shape.moe().is_some() { raw.degree("ep") } else { 1 };
    // Megatron cuts experts like everything else unless told otherwise (`expert_tensor_parallel_size`); the recipes of the
    // newer tables say 1, whether or not the tables do.
    let cut_alike = source.file == "training_dgxc.csv" && shape.moe().is_some();
    let etp = raw.count("etp").unwrap_or(if cut_alike { tp } else { 1 }).max(1);
    let sequence_parallel = if source.legacy { raw.text("recompute").contains("sequence") } else { tp > 1 };
    let degrees = Degrees { tp, pp, dp: copies, cp, ep, etp, virtual_stages, sequence_parallel, ..Degrees::default() };
    let schedule = if virtual_stages > 1 { Schedule::Interleaved } else { Schedule::OneFOneB };
    let spread = if lighter { Spread::EndsLighter } else { Spread::Even };
    // MaxText's batches are per chip, and all of a copy's run at once, however many chips share the copy.
    let whole = source.stack == "maxtext";
    let micro_batch = if whole { (global_batch / copies).max(1) } else { raw.degree("micro_batch") };
    let cut = Cut { degrees, schedule, spread, micro_batch, sharding, recompute, ..Cut::default() };
    let format = match raw.text("precision").to_ascii_lowercase() {
        p if p.contains("nvfp4") => TrainingFormat::NvFp4,
        p if p.contains("mxfp8") => TrainingFormat::MxFp8,
        p if p.contains("fp8") => TrainingFormat::Fp8,
        _ => TrainingFormat::Bf16,
    };
    let source = Source { stack: program(source, notes, &shape, format), ..source };
    Ok(Row { source, raw: raw.clone(), shape, chip, chips, cut, sequence, global_batch, format })
}

/// The program of a row. From the container 26.06 on, recipes of Megatron-Bridge with gated experts in MXFP8 run these as one
/// kernel and a whole iteration as one graph (NVIDIA-NeMo/Megatron-Bridge, scripts/performance/configs:
/// `cutedsl_fused_grouped_mlp`, `full_iteration`, read 2026-11); everything else runs as before.
fn program(source: Source, notes: &str, shape: &Shape, format: TrainingFormat) -> &'static str {
    let container = notes.split(';').find_map(|part| part.trim().strip_suffix(" NeMo Container"));
    let gated = shape.moe().is_some_and(|moe| moe.expert.gated);
    let fused = gated && format == TrainingFormat::MxFp8 && container.is_some_and(|release| release >= "26.06");
    if fused { "megatron-bridge" } else { source.stack }
}

/// Chunks of layers per stage. Where an older table leaves them out, its recipes still interleave.
fn chunks(raw: &Record, source: Source, layers: u64, pp: u64) -> u64 {
    match raw.count("vpp") {
        Some(v) => v.max(1),
        None if source.stack == "megatron-core" && source.file != "training_nemo.csv" && pp > 1 => {
            (1..=8).rev().find(|v| (layers / pp).is_multiple_of(*v)).unwrap_or(1)
        }
        None => 1,
    }
}

/// The model of a row: its shapes where the table has them, else a catalogue model of that name.
fn shape(raw: &Record, names: &Names<'_>, catalog: &Catalog, pp: u64) -> Result<Shape, String> {
    let (name, arch) = (raw.text("model"), raw.text("arch"));
    let (hidden, latent) = (raw.count("hidden"), arch.contains("mla"));
    if hidden.is_some() && !latent && !arch.contains("moe") {
        return columns(raw, pp);
    }
    match named(names, catalog, name) {
        Ok(shape) => {
            let reduced = raw.count("layers").filter(|_| name.contains("reduced"));
            Ok(reduced.map_or_else(|| shape.clone(), |layers| truncated(&shape, layers)))
        }
        // A model of experts nobody catalogued, but whose shapes the table has.
        Err(_) if hidden.is_some() && raw.count("heads").is_some() && !latent => columns(raw, pp),
        Err(why) => Err(why),
    }
}

/// A model by the columns of its row: a GPT of the Megatron papers unless they say otherwise.
fn columns(raw: &Record, pp: u64) -> Result<Shape, String> {
    let arch = raw.text("arch");
    let hidden = raw.count("hidden").unwrap_or(1);
    let vocab = raw.text("vocab");
    let vocab = if vocab.contains("250k") { 250_880 } else { vocab.parse().unwrap_or(51_200) };
    let width = raw.count("ffn").unwrap_or(4 * hidden);
    let modern = ["swiglu", "geglu", "llama", "moe"].iter().any(|word| arch.contains(word));
    let layers = if let Some(layers) = raw.count("layers") {
        layers
    } else {
        // The rounded parameter count and the number of stages leave one number of layers.
        let total = raw.number("params_b").ok_or("no layers")? * 1e9;
        let each = 12.0 * (hidden * hidden) as f64;
        ((total - (vocab * hidden) as f64) / each / pp as f64).round() as u64 * pp
    };
    // BLOOM's early rows name no heads: those of the rows with the same width.
    let heads = raw.count("heads").unwrap_or(if hidden == 14_400 { 96 } else { 64 }).max(1);
    let positions = if modern || arch.contains("alibi") { 0 } else { raw.count("seq").unwrap_or(0) };
    let (architecture, norm) = (arch.to_owned(), if modern { Norm::Rms } else { Norm::Layer });
    let gpt = Shape::gpt(layers, hidden, heads);
    let mut shape = Shape { architecture, vocab, tied: !modern, positions, norm, context_max: None, ..gpt };
    let block = &mut shape.runs[0].block;
    if let Mixer::Attention(attention) = &mut block.mixer {
        attention.kv_heads = raw.count("kv_heads").filter(|k| *k > 0).unwrap_or(heads);
        attention.bias = Bias { qkv: !modern, out: !modern };
    }
    block.ffn = match (raw.count("experts"), raw.count("top_k")) {
        (Some(experts), Some(top_k)) if experts > 1 => {
            Ffn::Moe(Moe { experts, top_k, expert: Mlp { width, gated: true, bias: false }, ..Moe::default() })
        }
        _ => Ffn::Dense(Mlp { width, gated: modern, bias: !modern }),
    };
    Ok(shape)
}

fn named(names: &Names<'_>, catalog: &Catalog, name: &str) -> Result<Shape, String> {
    let id = names.model(name).ok_or_else(|| format!("no model \"{name}\""))?;
    let model = catalog.model(&id).map_err(|e| e.to_string())?;
    model.shape().cloned().ok_or_else(|| format!("{id} is known only by its totals"))
}

/// A model with few layers: one of each kind before the last kind, which makes up the rest.
fn truncated(shape: &Shape, layers: u64) -> Shape {
    let kinds = shape.runs.len() as u64;
    let each = |i: u64| if i + 1 == kinds { layers.saturating_sub(i).max(1) } else { 1 };
    let runs = shape.runs.iter().zip(0..).map(|(run, i)| Run { n: each(i), block: run.block.clone() }).collect();
    Shape { runs, mtp: None, ..shape.clone() }
}
