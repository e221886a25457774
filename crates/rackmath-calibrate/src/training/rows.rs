//! Tables of training runs, one run per row.
//!
//! A row names a model by its shapes or by its name, a layout, and a step by its seconds, its tokens per second, or its FLOP
//! per second in the convention of its source.

use crate::CalibrateError;
use crate::names::Names;
use crate::rows::{Record, Rows, csv, present};
use rackmath_spec::layout::Degrees;
use rackmath_spec::model::{
    Attention, Bias, Block, Ffn, Formats, Gate, KvSource, Mixer, Mlp, Moe, Norm, QkNorm, Run, Shape, Span,
};
use rackmath_spec::{Catalog, Dtype, TrainingFormat};
use rackmath_theory::pipeline::Schedule;
use rackmath_theory::train::mfu::Convention;
use rackmath_theory::train::{Cut, Recompute, Sharding, Spread};
use std::path::Path;

/// A table that is understood: its file, the program it was measured with, and how it counts FLOP.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The file's name.
    pub file: &'static str,
    /// The program's constants.
    pub stack: &'static str,
    /// How FLOP per second are counted.
    pub convention: Convention,
    /// Machine every row ran on, where its chips alone do not say.
    pub legacy: bool,
}

const fn source(file: &'static str, stack: &'static str, convention: Convention, legacy: bool) -> Source {
    Source { file, stack, convention, legacy }
}

/// Every table.
pub const SOURCES: [Source; 12] = [
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
];

/// One run.
#[derive(Clone, Debug)]
pub struct Row {
    /// Where it stands.
    pub source: Source,
    pub id: String,
    /// The model's name as printed.
    pub model: String,
    /// The model.
    pub shape: Shape,
    /// The chip, in catalogue names.
    pub chip: String,
    pub chips: u64,
    /// The layout.
    pub cut: Cut,
    pub sequence: u64,
    /// Sequences of a step.
    pub global_batch: u64,
    pub format: TrainingFormat,
    /// Whether gradients are added up in 32 bits.
    pub wide_gradients: bool,
    /// Whether everything is kept in 16 bits, optimizer included.
    pub pure: bool,
    pub measured: Measured,
    /// Peak memory as printed, in GiB.
    pub memory_gib: Option<f64>,
    pub out_of_memory: bool,
    /// Whether the table leaves open what is recomputed or sharded, so that whatever fits may have run.
    pub open: bool,
    /// What the makers wrote.
    pub notes: String,
}

/// What a table gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measured {
    Step(f64),
    /// Tokens per second and chip.
    Tokens(f64),
    /// FLOP per second and chip in the source's convention.
    Flop(f64),
    /// Share of the peak in the source's convention.
    Share(f64),
    Nothing,
}

/// All rows of the tables in a folder.
pub fn read(folder: &Path, catalog: &Catalog) -> Result<Rows<Row>, CalibrateError> {
    let (names, mut all) = (Names::new(catalog), Rows::default());
    for (path, source) in present(folder, &SOURCES, |s| s.file)? {
        for raw in csv::<Record>(&path)? {
            all.take(row(*source, &raw, &names, catalog).map_err(|why| format!("{}: {why}", source.file)));
        }
    }
    Ok(all)
}

fn row(source: Source, raw: &Record, names: &Names<'_>, catalog: &Catalog) -> Result<Row, String> {
    let notes = raw.text("notes").to_owned();
    for kind in ["LoRA", "RA Performance", "FT Performance", "SFT"] {
        if notes.contains(kind) {
            return Err("fine-tuning: packed sequences or frozen weights".into());
        }
    }
    let chip = names.chip(raw.text("gpu")).ok_or_else(|| format!("no chip \"{}\"", raw.text("gpu")))?;
    let chips = raw.count("gpus").ok_or("no number of chips")?;
    let (tp, pp, cp) = (raw.degree("tp"), raw.degree("pp"), raw.degree("cp"));
    let copies = (chips / (tp * pp * cp)).max(1);
    // Some tables give only the sequences of a chip: then a step is one micro-batch of each copy.
    let one = raw.count("micro_batch").filter(|b| *b > 0).map(|b| b * copies);
    let mut global_batch = raw.count("global_batch").filter(|b| *b > 0).or(one).ok_or("no batch")?;
    let id = raw.text("id").to_owned();
    if notes.contains("heading says 512") && raw.number("step_s").is_none() {
        // The source's own remark: only this batch agrees with its FLOP per second.
        global_batch = 512;
    }
    let shape = shape(raw, names, catalog, pp)?;
    let dp = copies;
    let micro_batch = raw.degree("micro_batch");
    let layers = shape.n_layers();
    let virtual_stages = chunks(raw, source, layers, pp);
    let recompute = match raw.text("recompute") {
        r if r.starts_with("full") => Recompute::Full,
        r if r.starts_with("selective") => Recompute::Selective,
        _ => Recompute::None,
    };
    let sharding = match raw.text("shard").to_ascii_lowercase().as_str() {
        "zero0" => Sharding::None,
        s if s.contains("fsdp") || s.contains("full_shard") || s.contains("zero3") || s.contains("shard_grad") => {
            Sharding::Full
        }
        "zero1" => Sharding::Optimizer,
        "" if source.legacy => Sharding::None,
        "" if source.stack == "torchtitan" || source.stack == "maxtext" => Sharding::Full,
        _ => Sharding::Optimizer,
    };
    let lighter = source.legacy && pp > 2 && layers % pp != 0 && (layers + 2).is_multiple_of(pp);
    let moe = shape.moe().is_some();
    let degrees = Degrees {
        tp,
        cp,
        pp,
        dp,
        ep: if moe { raw.degree("ep") } else { 1 },
        etp: raw.count("etp").unwrap_or(1).max(1),
        virtual_stages,
        sequence_parallel: if source.legacy { raw.text("recompute").contains("sequence") } else { tp > 1 },
        ..Degrees::default()
    };
    let cut = Cut {
        degrees,
        schedule: if virtual_stages > 1 { Schedule::Interleaved } else { Schedule::OneFOneB },
        spread: if lighter { Spread::EndsLighter } else { Spread::Even },
        micro_batch,
        sharding,
        recompute,
        ..Cut::default()
    };
    let precision = raw.text("precision").to_ascii_lowercase();
    let format = if precision.contains("nvfp4") {
        TrainingFormat::NvFp4
    } else if precision.contains("mxfp8") {
        TrainingFormat::MxFp8
    } else if precision.contains("fp8") {
        TrainingFormat::Fp8
    } else {
        TrainingFormat::Bf16
    };
    Ok(Row {
        measured: measured(source, raw, &notes),
        source,
        id,
        model: raw.text("model").to_owned(),
        shape,
        chip,
        chips,
        cut,
        sequence: raw.count("seq").ok_or("no sequence length")?,
        global_batch,
        format,
        wide_gradients: precision.contains("fp32 grad"),
        pure: precision.contains("pure"),
        memory_gib: raw.number("mem_gib"),
        out_of_memory: raw.text("outcome") == "oom",
        open: !source.legacy && raw.text("recompute").is_empty(),
        notes,
    })
}

fn measured(source: Source, raw: &Record, notes: &str) -> Measured {
    // BLOOM's early rows under-report by three per cent, as the source says.
    let early = notes.contains("under-report") && raw.number("step_s").is_none();
    let scale = if early && source.file.contains("bloom") { 1.03e12 } else { 1e12 };
    raw.number("step_s")
        .map(Measured::Step)
        .or_else(|| raw.number("tokens_per_s_per_gpu").map(Measured::Tokens))
        .or_else(|| raw.number("tflops_per_gpu").map(|f| Measured::Flop(f * scale)))
        .or_else(|| raw.number("mfu_pct").map(|f| Measured::Share(f / 100.0)))
        .unwrap_or(Measured::Nothing)
}

/// Chunks of layers per stage. Where a modern table leaves them out, its recipes still interleave.
fn chunks(raw: &Record, source: Source, layers: u64, pp: u64) -> u64 {
    match raw.count("vpp") {
        Some(v) => v.max(1),
        None if source.stack == "megatron-core" && pp > 1 => {
            (1..=8).rev().find(|v| (layers / pp).is_multiple_of(*v)).unwrap_or(1)
        }
        None => 1,
    }
}

/// The model of a row: its shapes where the table has them, else a catalogue model of that name.
fn shape(raw: &Record, names: &Names<'_>, catalog: &Catalog, pp: u64) -> Result<Shape, String> {
    let (name, arch) = (raw.text("model"), raw.text("arch"));
    if arch.contains("moe") || raw.count("hidden").is_none() || arch.contains("mla") {
        let mut shape = match (named(names, catalog, name), raw.count("hidden")) {
            (Ok(shape), _) => shape,
            // A model of experts nobody catalogued, but whose shapes the table has.
            (Err(_), Some(_)) if raw.count("heads").is_some() && !arch.contains("mla") => return columns(raw, pp),
            (Err(why), _) => return Err(why),
        };
        if let Some(layers) = raw.count("layers").filter(|_| name.contains("reduced")) {
            shape = truncated(&shape, layers);
        }
        return Ok(shape);
    }
    columns(raw, pp)
}

/// A model by the columns of its row.
fn columns(raw: &Record, pp: u64) -> Result<Shape, String> {
    let arch = raw.text("arch");
    let hidden = raw.count("hidden").unwrap_or(1);
    let vocab = raw.text("vocab");
    let vocab = if vocab.contains("250k") { 250_880 } else { vocab.parse().unwrap_or(51_200) };
    let width = raw.count("ffn").unwrap_or(4 * hidden);
    let gated = arch.contains("swiglu") || arch.contains("geglu") || arch.contains("llama") || arch.contains("moe");
    let layers = if let Some(layers) = raw.count("layers") {
        layers
    } else {
        // The rounded parameter count and the number of stages leave one number of layers.
        let total = raw.number("params_b").ok_or("no layers")? * 1e9;
        let each = 12.0 * (hidden * hidden) as f64;
        ((total - (vocab * hidden) as f64) / each / pp as f64).round() as u64 * pp
    };
    // BLOOM's early rows name no heads: those of the rows with the same width.
    let heads = raw.count("heads").unwrap_or(if hidden == 14_400 { 96 } else { 64 });
    let kv_heads = raw.count("kv_heads").filter(|k| *k > 0).unwrap_or(heads);
    let head = hidden / heads.max(1);
    let modern = gated;
    let block = Block {
        mixer: Mixer::Attention(Attention {
            heads,
            kv_heads,
            qk_dim: head,
            v_dim: head,
            span: Span::Full,
            kv: KvSource::Own,
            bias: Bias { qkv: !modern, out: !modern },
            qk_norm: QkNorm::None,
            k_is_v: false,
            gate: Gate::None,
            sinks: false,
        }),
        ffn: match (raw.count("experts"), raw.count("top_k")) {
            (Some(experts), Some(top_k)) if experts > 1 => Ffn::Moe(Moe {
                experts,
                top_k,
                expert: Mlp { width, gated: true, bias: false },
                shared: None,
                shared_gate: false,
                zero_experts: 0,
                router_vectors: 0,
                latent: None,
            }),
            _ => Ffn::Dense(Mlp { width, gated, bias: !modern }),
        },
        norms: 2,
        side: Vec::new(),
    };
    Ok(Shape {
        architecture: arch.to_owned(),
        hidden,
        vocab,
        tied: !modern,
        head_bias: false,
        positions: if modern || arch.contains("alibi") { 0 } else { raw.count("seq").unwrap_or(0) },
        norm: if modern { Norm::Rms } else { Norm::Layer },
        outer_norms: 1,
        runs: vec![Run { n: layers, block }],
        mtp: None,
        side: Vec::new(),
        context_max: None,
        formats: Formats::uniform(Dtype::Bf16),
    })
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
