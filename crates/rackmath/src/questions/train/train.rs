//! A training run: how long a step takes and why, whether it fits, what the run costs, and which layout is best.
//!
//! Where no degree is given the best layout is looked for; flags that fix a part of it fix that part of the search. A layout
//! that does not fit says which change makes it fit, and each change is computed like the layout itself.

mod asked;
mod changes;
mod run;
mod solve;
mod tuned;

use crate::desk::prelude::*;
use crate::desk::support;
use crate::extent::Extent;
use crate::setting::{PriceSource, machine as machine_named, paid as paid_once};
pub use run::{EnergyCard, LossCard, RunCard};
pub use solve::{Seek, SolvedChips, Unknown};
pub use tuned::{Optimizer, PeakCard, TunedCard};

use asked::{Asked, fields};
use changes::{MOST_CHIPS, Tried};
use rackmath_spec::{Chip, GemmKernels, Model, Network, System, TrainingFormat, TrainingRun, TrainingStack};
use rackmath_theory::count::count;
use rackmath_theory::count::lora::{self, Targets};
use rackmath_theory::pipeline::Schedule;
use rackmath_theory::train::machine::Machine;
pub use rackmath_theory::train::memory::StageMemory as StageCard;
use rackmath_theory::train::memory::stage_memory;
use rackmath_theory::train::mfu::{Convention, flop_per_token};
use rackmath_theory::train::peaks::{Moment, Peak, fullest};
use rackmath_theory::train::search::{Candidate, Found, Searcher};
use rackmath_theory::train::step::{Part, Prepared, Row, Stage, StepTime, step};
use rackmath_theory::train::{Cut, Job, Offload, Recompute, Sharding, Tuning};
use serde_json::{Map, Value};
use strum::VariantArray as _;

/// A model, a machine, a layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model: a catalogue id, an alias, or a Hugging Face id.
    #[schemars(extend("x-file" = "model", "x-position" = 2, "x-none" = "llama-3.1-70b"))]
    pub model: Option<String>,
    /// A published run: its model, machine, batch, tokens and layout, where flags do not say otherwise.
    pub run: Option<String>,
    /// Machine: a system, a chip, or so many chips such as `512xh100`.
    #[schemars(extend("x-flag" = "on hw system", "x-file" = "machine", "x-none" = "hgx-h100"))]
    pub on: Option<String>,
    /// Chips, instead of the machine's.
    #[schemars(extend("x-flag" = "chips gpus num-gpus", "x-none" = "the machine's", "x-most" = [65536, "layouts of a search"]))]
    pub chips: Option<u64>,
    /// Training program whose constants are used; one that suits the chip unless given.
    pub stack: Option<String>,
    /// Format of the matrix products.
    #[schemars(transform = closed::<TrainingFormat>, extend("x-flag" = "format dtype", "x-none" = "bf16, or fp16 on a chip without"))]
    pub format: Option<String>,
    /// Tokens of a sequence.
    #[schemars(extend("x-flag" = "sequence seq-length seq context", "x-none" = "4,096"))]
    pub sequence: Option<u64>,
    /// Sequences of a step.
    #[schemars(extend("x-flag" = "batch global-batch-size", "x-none" = "256"))]
    pub global_batch: Option<u64>,
    /// Tensor parallel. Where no degree is given the best layout is looked for; else those not given are 1.
    #[schemars(extend("x-flag" = "tp tensor-model-parallel-size"))]
    pub tp: Option<u64>,
    /// Context parallel.
    #[schemars(extend("x-flag" = "cp context-parallel-size"))]
    pub cp: Option<u64>,
    /// Pipeline stages.
    #[schemars(extend("x-flag" = "pp pipeline-model-parallel-size"))]
    pub pp: Option<u64>,
    /// Data parallel: copies of the model.
    #[schemars(extend("x-flag" = "dp data-parallel-size", "x-none" = "as many as the chips hold"))]
    pub dp: Option<u64>,
    /// Chunks of layers per stage.
    #[schemars(extend("x-flag" = "virtual-stages vpp"))]
    pub virtual_stages: Option<u64>,
    /// Expert parallel.
    #[schemars(extend("x-flag" = "ep expert-model-parallel-size"))]
    pub ep: Option<u64>,
    /// Shards of an expert.
    #[schemars(extend("x-flag" = "etp expert-tensor-parallel-size"))]
    pub etp: Option<u64>,
    /// Sequences of a micro-batch.
    #[schemars(extend("x-flag" = "micro-batch micro-batch-size"))]
    pub micro_batch: Option<u64>,
    /// Order of passes; interleaved with chunks, else 1f1b.
    #[schemars(transform = closed::<Schedule>)]
    pub schedule: Option<String>,
    /// What copies divide; zero1 unless given or looked for.
    #[schemars(extend("x-flag" = "sharding zero", "x-also" = ["zero0", "ddp", "fsdp"], "x-none" = "zero1"))]
    pub sharding: Option<Sharding>,
    /// What is run again; `cheap` is norms, activation functions and latents' up-projections, `reversible` is for a model of
    /// reversible blocks.
    #[schemars(extend("x-flag" = "recompute recompute-granularity", "x-also" = ["off"], "x-none" = "nothing"))]
    pub recompute: Option<Recompute>,
    /// What waits in the host's memory.
    #[schemars(extend("x-also" = ["off", "all"], "x-none" = "nothing"))]
    pub offload: Option<Offload>,
    /// Trains low-rank adapters (LoRA) of this rank beside frozen weights, instead of all weights.
    #[schemars(extend("x-flag" = "lora lora-rank lora-r"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lora: Option<u64>,
    /// The same with the frozen weights in 4 bits (QLoRA: nf4, scales quantised again).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub qlora: bool,
    /// Beside which matrices adapters stand.
    #[schemars(extend("x-also" = ["all-linear", "attn", "ffn"], "x-none" = "all"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lora_targets: Option<Targets>,
    /// What the optimizer keeps; paged optimizers are `--offload optimizer`.
    #[schemars(extend("x-flag" = "optimizer optim", "x-also" = ["adam", "adam-bf16", "adam-8bit"], "x-none" = "as the program does"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<Optimizer>,
    /// Shows memory while loading, at the first update and at a checkpoint as well.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub peaks: bool,
    /// Computes the loss in eight chunks of the sequence, so that logits are never there all at once.
    #[schemars(extend("x-flag" = "chunked-loss chunked-cross-entropy"))]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub chunked_loss: bool,
    /// Mean tokens of a sequence that is padded, not packed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_tokens: Option<f64>,
    /// Whether tensor-parallel groups cut norms along the sequence; yes unless given.
    pub sequence_parallel: Option<bool>,
    /// Whether embedding and head take the place of a layer on the first and the last stage.
    pub lighter_ends: Option<bool>,
    /// Bandwidth from a chip to its host in one direction, instead of the catalogue's.
    #[schemars(extend("x-flag" = "host-bandwidth"))]
    pub host_gb_per_s: Option<f64>,
    /// Tokens of the whole run.
    pub tokens: Option<f64>,
    /// A loss to reach, instead of tokens.
    pub loss: Option<f64>,
    /// The scaling law that turns a loss into tokens, or tokens into a loss.
    pub law: Option<String>,
    /// Mean time between failures of one chip, instead of that of the largest published run.
    pub chip_mtbf_hours: Option<f64>,
    /// Pause for a checkpoint.
    #[educe(Default = crate::goodput::Request::default().stall_s)]
    pub stall_s: f64,
    /// From a failure to work again.
    #[educe(Default = crate::goodput::Request::default().restart_s)]
    pub restart_s: f64,
    /// Price per chip and hour in dollars, instead of the catalogue's.
    pub price_usd_per_chip_hour: Option<f64>,
    /// Looks for the best layout also where degrees are given: those stay, the rest is open.
    pub search: bool,
    /// Searches every schedule and offloading as well.
    pub wide: bool,
    /// What is looked for instead of a layout.
    #[serde(skip_serializing_if = "is_default")]
    pub seek: Seek,
    /// Layouts to list.
    #[schemars(extend("x-most" = [100, "layouts kept"]))]
    #[educe(Default = 8)]
    pub keep: u64,
}

/// What a run amounts to.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What was asked.
    pub request: Request,
    /// The model's name.
    pub model: String,
    /// The machine's name.
    pub machine: String,
    /// The program's name.
    pub stack: String,
    /// The layout in short.
    pub layout: String,
    /// The fields of a request that ask for it.
    pub with: Map<String, Value>,
    /// Chips it uses.
    pub chips: u64,
    /// Micro-batches of a step.
    pub micro_batches: u64,
    /// Seconds of a step.
    pub step_s: f64,
    /// What no program can beat: its products at the full peak.
    pub bound_s: f64,
    /// Its parts, longest first.
    pub parts: Vec<PartCard>,
    /// Tokens per second, all chips.
    pub tokens_per_s: f64,
    /// Share of the peak of the format, causal scores, true heads.
    pub mfu: f64,
    /// What that is a share of.
    pub mfu_counted: Remark,
    /// FLOP per second and chip by the same count.
    pub flop_per_s_per_chip: f64,
    /// Whether every stage fits; a search offers only what does, and where nothing does this is what comes nearest.
    pub fits: bool,
    /// The fewest chips, where these are looked for: all else is the run on them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solved: Option<SolvedChips>,
    /// What is to be said of what does not fit.
    pub verdict: Option<Remark>,
    /// Fine-tuning: what is trained and memory at its peaks, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tuned: Option<TunedCard>,
    /// Changes that make it fit, each computed; the first is the one to try first.
    pub changes: Vec<ChangeCard>,
    /// Memory of a chip, as a program finds it.
    pub capacity_bytes: f64,
    /// Stages that differ, first to last.
    pub stages: Vec<StageCard>,
    /// Days for the tokens asked for, if nothing fails.
    pub days: Option<f64>,
    /// Dollars for them.
    pub cost_usd: Option<f64>,
    /// What a chip costs an hour, and what kind of price that is; nothing where none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priced: Option<Remark>,
    /// Chips there are that the layout leaves idle: they are paid for as well.
    #[serde(skip_serializing_if = "is_default")]
    pub idle_chips: u64,
    /// Says that the model has no positions for such sequences, where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_long: Option<Remark>,
    /// What asks for the same speed in the conventions of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_others: Option<Remark>,
    /// The whole run with its failures, where tokens or a loss were given.
    pub run: Option<RunCard>,
    /// What the authors of the run printed, where one was named.
    pub published: Option<PublishedCard>,
    /// What was found, where a search was asked for.
    pub search: Option<SearchCard>,
    /// Time against memory of a search's best layouts, or memory by stage; absent with one stage.
    pub figure: Option<Figure>,
    /// How far constants of this program were off where they could be checked.
    pub evidence: Remark,
    /// Where constants come from.
    pub sources: Vec<String>,
}

/// A part of a step.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PartCard {
    /// What it is.
    pub name: String,
    /// Its seconds.
    pub time_s: f64,
    /// Its share of the step.
    pub share: f64,
}

/// A change that makes a layout fit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChangeCard {
    /// What is changed.
    pub what: Remark,
    /// The layout then, in short.
    pub layout: String,
    /// The fields of a request that ask for it.
    pub with: Map<String, Value>,
    /// Its chips.
    pub chips: u64,
    /// Seconds of a step.
    pub step_s: f64,
    /// Memory of its fullest chip.
    pub memory_bytes: f64,
}

/// What was published of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PublishedCard {
    /// Its name.
    pub name: String,
    /// Chip-hours, from and to.
    pub chip_hours: Option<(f64, f64)>,
    /// MFU, from and to.
    pub mfu: Option<(f64, f64)>,
    /// Chip-hours as computed here for as many tokens, if nothing fails.
    pub computed_chip_hours: Option<f64>,
    /// Where its layout stands.
    pub source: String,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SearchCard {
    /// Layouts that were timed; a bound says of all others that they take more than twice the best's time.
    pub evaluated: u64,
    /// Of these, those that fit.
    pub feasible: u64,
    /// The fastest, best first: one for each choice of degrees and micro-batch.
    pub best: Vec<LayoutCard>,
    /// Those no other beats in time, memory and cost at once, up to twice the best's time.
    pub frontier: Vec<LayoutCard>,
}

/// A layout of a search.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LayoutCard {
    /// In short.
    pub layout: String,
    /// The fields of a request that ask for it.
    pub with: Map<String, Value>,
    /// Chips.
    pub chips: u64,
    /// Seconds of a step.
    pub step_s: f64,
    /// Memory of its fullest chip.
    pub memory_bytes: f64,
    /// Chip-hours for a million tokens.
    pub chip_hours_per_mtok: f64,
}

impl Answer {
    /// A number of the layout that was found; one where it is as usual.
    fn with_number(&self, field: &str) -> u64 {
        self.with.get(field).and_then(Value::as_u64).unwrap_or(1)
    }
}

struct Setup {
    model: Arc<Model>,
    system: Arc<System>,
    stack: Arc<TrainingStack>,
    kernels: Arc<GemmKernels>,
    network: Arc<Network>,
}

/// Answers while it is wanted.
pub fn answer_on(catalog: &Catalog, request: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let effort = effort.into();
    if request.seek.solve.is_some() {
        return solve::answer(catalog, request, &effort);
    }
    refuse_if(request.seek.days.is_some(), "days", request.seek.days.unwrap_or(0.0), "--solve chips as well")?;
    let cancel = effort.cancel.clone();
    let r = request;
    let asked = Asked::new(catalog, r)?;
    let setup = resolve(catalog, &asked, r)?;
    let (system, chip, shape) = (&setup.system, &setup.system.chip, layered(&setup.model, &asked.model)?);
    let format = asked.format_on(chip);
    let machine = machine_of(catalog, r, &setup, format)?;
    let (sequence, global_batch) = (asked.sequence, asked.global_batch);
    let job = Job { shape, sequence, global_batch, format };
    let tried = Tried { setup: &setup, machine: &machine, job, asked: &asked, request: r, cancel: &cancel };
    let (cut, search) = if asked.searches {
        asked.fixed.check(&job)?;
        let (found, card) = searched(&tried, system.n_chips)?;
        (nearest(&found, &asked)?.cut, Some(card))
    } else {
        (asked.fixed.cut(&job, system.n_chips)?, None)
    };
    let m = cut.micro_batches(global_batch).ok_or_else(|| Error::value("global_batch", global_batch, "a multiple"))?;
    let prepared = Prepared::new(&machine, &job, &cut);
    let stages = prepared.stages(cut.pp, cut.spread);
    let row = Row::new(&stages, cut.recompute).ok_or_else(|| Error::value("pp", cut.pp, "at least one stage"))?;
    let time = step(&machine, &prepared, &row, &cut, m);
    let (chips, tokens) = (cut.chips() as f64, (global_batch * sequence) as f64);
    let flop = flop_per_token(shape, sequence, Convention::Causal, Recompute::None) * tokens;
    // Frozen weights need no gradients of their own: two products of three.
    let flop = if cut.tuning.is_full() { flop } else { flop * 2.0 / 3.0 };
    let (rate, bound_s) = (flop / (time.total * chips), flop / (machine.peak() * chips));
    let mfu = rate / machine.peak();
    let cuts = stages;
    let stages: Vec<StageCard> =
        cuts.iter().map(|s| stage_memory(&prepared, &setup.stack.memory, s, &cut, m)).collect();
    let stated = paid_once(&asked.on, machine_named(&asked.on)?.1, r.price_usd_per_chip_hour)?;
    let (price, priced) = price(chip, stated);
    let idle = system.n_chips.saturating_sub(cut.chips());
    let (paid, checkpoint_bytes) = (chips + idle as f64, checkpoint(&setup, &job, &cut));
    let (seconds, watts) = (time.total, run::Watts::of(chip));
    let timed = run::Timed { seconds, tokens, chips, paid, mfu, price, watts, checkpoint_bytes };
    let run = run::run(catalog, r, asked.tokens, &setup.model, &timed)?;
    let days = run.as_ref().and_then(|run| run.work_days);
    let machine_name = format!("{} x {}", system.n_chips, chip.name);
    let capacity = chip.memory.seen().get();
    let peak = peak(&cuts, &stages, &cut, &setup.stack);
    let fits = peak.is_none_or(|peak| peak.chip <= capacity);
    let changes = match &search {
        _ if fits => Vec::new(),
        Some(_) => tried.for_chips(catalog, system.n_chips)?,
        None => tried.for_layout(cut)?,
    };
    // A moment outside the steady step that alone is too much.
    let alone = peak.filter(|_| !fits && stages.iter().all(|s| s.total_bytes <= capacity));
    let verdict = (!fits).then(|| verdict(search.is_some(), &tried, &changes, alone));
    let tokens_per_s = tokens / time.total;
    let (machine, job, prepared, stages, step_s) = (&machine, &job, &prepared, stages, time.total);
    let ran = tuned::Run { machine, job, cut, prepared, stages: &stages, tokens_per_s, step_s };
    let tuned = tuned::card(catalog, r, &setup.model, &ran, &effort)?;
    let published = asked.run.as_ref().map(|run| published(run, days, chips));
    let title = |id: &'static str| says(id).with("model", &setup.model.name).with("on", &machine_name);
    let evidence = evidence(&setup.stack, chip, search.is_some());
    let figure = pictured(title, search.as_ref(), &cut, capacity, &stages);
    Ok(Answer {
        request: r.clone(),
        model: setup.model.name.clone(),
        machine: machine_name,
        stack: setup.stack.name.clone(),
        layout: cut.to_string(),
        with: asked_for(r, fields(&cut)),
        chips: cut.chips(),
        micro_batches: m,
        step_s: time.total,
        bound_s,
        parts: parts(&time),
        tokens_per_s,
        mfu,
        mfu_counted: counted(machine, format, cut.tuning),
        flop_per_s_per_chip: rate,
        fits,
        solved: None,
        verdict,
        tuned,
        changes,
        capacity_bytes: capacity,
        stages,
        days,
        cost_usd: days.zip(price).map(|(d, p)| d * 24.0 * p * timed.paid),
        priced,
        idle_chips: idle,
        too_long: support::beyond(&setup.model, sequence as f64),
        by_others: cut.tuning.is_full().then(|| by_others(&asked, chip, format, tokens_per_s / chips)),
        run,
        published,
        search,
        figure,
        evidence,
        sources: setup.stack.sources.clone(),
    })
}

/// What MFU is a share of.
fn counted(machine: &Machine<'_>, format: TrainingFormat, tuning: Tuning) -> Remark {
    let said = says("of_dense_peak").with("format", format.to_string()).with("peak", machine.peak());
    said.with("frozen", (!tuning.is_full()).then_some(0.0))
}

/// What asks for the same speed in the conventions of others.
fn by_others(asked: &Asked, chip: &Chip, format: TrainingFormat, tokens_per_s_per_chip: f64) -> Remark {
    let said = says("mfu_by_others").with("model", &asked.model).with("chip", &chip.id);
    let said = said.with("sequence", asked.sequence).with("rate", tokens_per_s_per_chip);
    said.with("format", (format != TrainingFormat::Bf16).then(|| format.to_string()))
}

/// What a chip costs an hour, and what kind of price that is.
fn price(chip: &Chip, stated: Option<f64>) -> (Option<f64>, Option<Remark>) {
    let source = match (stated, chip.usual_price()) {
        (Some(_), _) => PriceSource::Given,
        (None, Some(listed)) => PriceSource::Listed(listed.clone()),
        (None, None) => PriceSource::Unknown,
    };
    let listed = || chip.usual_price().map(|p| p.value.as_per_hour());
    let price = stated.or_else(listed);
    (price, price.map(|p| says("chip_hour_costs").with("usd_per_hour", p).with("source", source.short())))
}

/// Bytes from which a run goes on: what is trained and what the optimizer keeps of it, frozen weights left out.
fn checkpoint(setup: &Setup, job: &Job<'_>, cut: &Cut) -> f64 {
    let recipe = &setup.stack.memory;
    let trained = match cut.tuning {
        Tuning::Full => count(&setup.model).total() as f64,
        Tuning::Adapters { rank, targets, .. } => lora::params(job.shape, targets, f64::from(rank)),
    };
    trained * (recipe.weight_bytes + recipe.optimizer_bytes)
}

/// What the constants of a program come from, and whether runs on such chips are among it.
fn evidence(stack: &TrainingStack, chip: &Chip, found: bool) -> Remark {
    let elsewhere = (!stack.ran_on(chip)).then_some(&chip.generation);
    match stack.fit {
        Some((n, e)) => says("fitted_on_runs")
            .with("error", e)
            .with("runs", n)
            .with("elsewhere", elsewhere)
            .with("found", found.then_some(0.0)),
        None => says("never_checked"),
    }
}

/// The chip as the program drives it, with what the request says of its link to the host.
fn machine_of<'a>(
    catalog: &Catalog,
    r: &Request,
    setup: &'a Setup,
    format: TrainingFormat,
) -> Result<Machine<'a>, Error> {
    let (system, chip) = (&setup.system, &setup.system.chip);
    let machine = Machine::new(system, &setup.stack, &setup.kernels, &setup.network, format);
    let mut machine = machine.ok_or_else(|| no_peak(chip, &chip.name, format))?;
    if r.qlora {
        machine.expand = catalog.small_kernels()?.adapters.expand.get();
    }
    if let Some(rate) = r.host_gb_per_s {
        machine.host = Some(ByteRate::gb_per_s(within("host_gb_per_s", rate, 1e-3, 1e6)?));
    }
    if let Some(offload) = r.offload.filter(|o| *o != Offload::None && machine.host.is_none()) {
        let expected = format!("a bandwidth to the host, not known for {}; {{host_bandwidth}}", chip.name);
        return Err(Error::value("offload", offload, expected));
    }
    Ok(machine)
}

fn resolve(catalog: &Catalog, asked: &Asked, r: &Request) -> Result<Setup, Error> {
    let model = catalog.model(&asked.model)?;
    let mut system = catalog.system(machine_named(&asked.on)?.0)?;
    if let Some(chips) = asked.chips {
        Arc::make_mut(&mut system).n_chips = up_to("chips", chips, 1_000_000)?;
    }
    up_to("sequence", asked.sequence, 100_000_000)?;
    up_to("global_batch", asked.global_batch, 10_000_000)?;
    let usual = match system.chip.vendor.as_str() {
        _ if system.chip.link.kind == "ici" => "maxtext",
        "AMD" => "primus",
        // People tune models with PyTorch's own means rather than with Megatron.
        _ if tuned::tunes(r) => "torchtitan",
        _ => "megatron-core",
    };
    let mut stack = catalog.training_stack(asked.stack.as_deref().unwrap_or(usual))?;
    tuned::adjust(r, &mut stack);
    let network = catalog.network(&system.chip.link.kind).or_else(|_| catalog.network("pcie5"))?;
    Ok(Setup { model, stack, kernels: catalog.gemm_kernels()?, network, system })
}

/// Looks through every layout of at most so many chips that agrees with what is given.
fn searched(tried: &Tried<'_>, chips: u64) -> Result<(Found, SearchCard), Error> {
    let Tried { machine, job, asked, request: r, cancel, .. } = tried;
    refuse_if(chips > MOST_CHIPS, "chips", chips, format!("at most {MOST_CHIPS} for a search"))?;
    let space = asked.fixed.space(machine, job, chips, r.wide);
    let found = Searcher::new(machine, job, &space, cancel)?.search(r.keep.clamp(1, 1000) as usize, cancel)?;
    let tokens = (job.global_batch * job.sequence) as f64;
    let card = |c: &Candidate| LayoutCard {
        layout: c.cut.to_string(),
        with: fields(&c.cut),
        chips: c.cut.chips(),
        step_s: c.step.total,
        memory_bytes: c.memory,
        chip_hours_per_mtok: c.chip_seconds() / 3600.0 / tokens * 1e6,
    };
    let [best, frontier] = [&found.best, &found.frontier].map(|all| all.iter().map(card).collect());
    let (evaluated, feasible) = (found.evaluated, found.feasible);
    let card = SearchCard { evaluated, feasible, best, frontier };
    Ok((found, card))
}

/// What a run would have to look through: its layouts where they are looked for, and where nothing fits those of changes that would.
pub fn extent(catalog: &Catalog, r: &Request) -> Result<Extent, Error> {
    let asked = Asked::new(catalog, r)?;
    let setup = resolve(catalog, &asked, r)?;
    let (system, shape) = (&setup.system, layered(&setup.model, &asked.model)?);
    let format = asked.format_on(&system.chip);
    let machine = machine_of(catalog, r, &setup, format)?;
    let job = Job { shape, sequence: asked.sequence, global_batch: asked.global_batch, format };
    let looked = |fixed: &asked::Fixed, chips: u64, wide: bool| {
        let space = fixed.space(&machine, &job, chips, wide);
        let (prepared, pipelines) = space.extent(&job);
        let orders = (space.schedules.len() * space.offload.len()) as f64;
        Extent { layouts: pipelines, prepared, weighed: pipelines * orders, ..Extent::default() }
    };
    let (chips, fixed) = (system.n_chips, &asked.fixed);
    let needed = needed(&machine, &setup.model, fixed.tuning());
    // Where nothing fits no bound leaves anything out.
    let search = |fixed: &asked::Fixed, chips: u64, wide: bool| {
        let one = looked(fixed, chips, wide);
        if needed <= chips as f64 { one } else { Extent { weighed: UNBOUNDED * one.weighed, ..one } }
    };
    // The fewest chips that hold it are looked for among all there may be, and then the best layout of them.
    let more = || {
        let all = looked(fixed, MOST_CHIPS, r.wide);
        let best = looked(fixed, (needed.ceil() as u64).clamp(1, MOST_CHIPS), r.wide);
        Extent { weighed: PASSED * all.layouts, ..all } + best
    };
    if r.seek.solve.is_some() {
        return Ok(more() + search(fixed, chips, r.wide) * SOLVED);
    }
    if asked.searches {
        let one = search(fixed, chips, r.wide);
        // Beside more chips and the host's memory, another optimizer is tried on the chips there are.
        return Ok(if needed <= chips as f64 { one } else { one * 2.0 + looked(fixed, chips, true) + more() });
    }
    let cut = fixed.cut(&job, chips)?;
    if changes::weigh(&machine, &job, cut).is_none_or(|c| c.fits) {
        return Ok(Extent::default());
    }
    let others = search(&asked::Fixed::default(), cut.chips(), false);
    Ok(if needed <= chips as f64 { others } else { others + more() * 0.5 })
}

/// A search in which nothing fits weighs so many times as many as one that has a best soon; a pipeline that only has to fit is passed by.
const UNBOUNDED: f64 = 3.0;
const PASSED: f64 = 0.15;

/// Pages that are looked at for the fewest chips, about.
const SOLVED: f64 = 6.0;

/// Chips that hold a run at all, about: weights, gradients and what the optimizer keeps, divided over all of them.
fn needed(machine: &Machine<'_>, model: &Model, tuning: Tuning) -> f64 {
    // 2 of the weight, 2 of its gradient, 12 of the optimizer's; frozen weights have neither gradient nor optimizer.
    let each = match tuning {
        t if t.narrow() => 0.55,
        t if t.is_full() => 16.0,
        _ => 2.0,
    };
    each * count(model).total() as f64 / (FILLED * machine.chip.memory.seen().get())
}

/// Share of the memory that what is kept may take, beside activations.
const FILLED: f64 = 0.85;

/// The best; where nothing fits, what comes nearest, which says so.
fn nearest<'a>(found: &'a Found, asked: &Asked) -> Result<&'a Candidate, Error> {
    found.best.first().or(found.leanest.as_ref()).ok_or_else(|| {
        let expected = "a batch, chips and degrees that some layout has: copies divide the batch, stages the chips";
        Error::value("global_batch", asked.global_batch, expected)
    })
}

/// The fields of a layout with those of the tuning it was found for.
fn asked_for(r: &Request, mut all: Map<String, Value>) -> Map<String, Value> {
    if let Some(rank) = r.lora {
        all.insert("lora".into(), rank.into());
    }
    if r.qlora {
        all.insert("qlora".into(), true.into());
    }
    if let Some(optimizer) = r.optimizer {
        all.insert("optimizer".into(), optimizer.to_string().into());
    }
    all
}

/// The fullest moment of a run that it cannot avoid, on its fullest stage.
fn peak(parts: &[Stage], held: &[StageCard], cut: &Cut, stack: &TrainingStack) -> Option<Peak> {
    let moments = parts.iter().zip(held).map(|(stage, held)| fullest(stage, held, cut, &stack.memory));
    moments.max_by(|a, b| a.chip.total_cmp(&b.chip))
}

fn verdict(searched: bool, tried: &Tried<'_>, changes: &[ChangeCard], alone: Option<Peak>) -> Remark {
    let Tried { setup: Setup { system, stack, .. }, machine, asked, .. } = tried;
    // What nobody could try is said, or it reads as if it had been.
    let untried = (machine.host.is_none() && asked.fixed.offload().is_none()).then_some(&system.chip.name);
    let lists = alone.filter(|p| stack.memory.lists && p.moment == Moment::FirstUpdate).map(|_| 0.0);
    let moment = |said: Remark| {
        let said = said.with("moment", alone.map(|p| tuned::said(p.moment)));
        said.with("needs", alone.map(|p| p.chip)).with("lists", lists)
    };
    if !searched {
        let first = changes.first();
        let remark = moment(says("layout_does_not_fit")).with("first", first.map(|c| &c.what));
        return remark.with("layout", first.map(|c| &c.layout)).with("untried", untried);
    }
    let of = |id: &str| changes.iter().find(|c| c.what.says == id).map(|c| &c.what);
    let said = moment(says("no_layout_fits")).with("chips", system.n_chips).with("same", of("fits_wide"));
    let said = said.with("untried", untried);
    said.with("kept", of("fits_narrow").or(of("fits_optimizer"))).with("more", of("fits_chips"))
}

fn published(run: &TrainingRun, days: Option<f64>, chips: f64) -> PublishedCard {
    PublishedCard {
        name: run.name.clone(),
        chip_hours: run.chip_hours,
        mfu: run.mfu,
        computed_chip_hours: days.map(|d| d * 24.0 * chips),
        source: run.layout.as_ref().map_or_else(|| run.source.clone(), |l| l.source.clone()),
    }
}

fn parts(t: &StepTime) -> Vec<PartCard> {
    // What is less than a millionth is nothing to read about.
    let shown = Part::VARIANTS.iter().map(|part| (part, t.of(*part))).filter(|(_, s)| *s > 1e-6 * t.total);
    let card = |(part, s): (&Part, f64)| PartCard { name: part.to_string(), time_s: s, share: s / t.total };
    let mut cards: Vec<PartCard> = shown.map(card).collect();
    cards.sort_by(|a, b| b.time_s.total_cmp(&a.time_s));
    cards
}

fn pictured(
    title: impl Fn(&'static str) -> Remark,
    search: Option<&SearchCard>,
    cut: &Cut,
    capacity: f64,
    stages: &[StageCard],
) -> Option<Figure> {
    match search {
        Some(search) => frontier_figure(title("time_over_memory"), search),
        None if stages.len() > 1 => Some(stages_figure(title("memory_by_stage"), &cut.to_string(), capacity, stages)),
        None => None,
    }
}

fn frontier_figure(title: Remark, search: &SearchCard) -> Option<Figure> {
    let mut points: Vec<(f64, f64)> = search.frontier.iter().map(|c| (c.memory_bytes, c.step_s)).collect();
    points.sort_by(|p, q| p.0.total_cmp(&q.0));
    let fastest = search.best.first()?;
    let subtitle = says("layouts_tried").with("layouts", search.evaluated).with("fit", search.feasible);
    let axes = (Axis::linear("memory of the fullest chip", Unit::Bytes), Axis::linear("step", Unit::Seconds));
    let figure = Figure::of(title, subtitle, axes, [Series::new("best layouts", Role::Envelope, points)]);
    Some(figure.marked([Mark::at(fastest.memory_bytes, fastest.step_s, &fastest.layout)]))
}

fn stages_figure(title: Remark, layout: &str, capacity: f64, stages: &[StageCard]) -> Figure {
    let line = |name: &str, role, of: fn(&StageCard) -> f64| {
        Series::new(name, role, stages.iter().map(|s| (s.stage as f64, of(s))))
    };
    let states: fn(&StageCard) -> f64 = |s| s.weight_bytes + s.gradient_bytes + s.optimizer_bytes;
    let capacity = stages.iter().map(|s| (s.stage as f64, capacity));
    let series = [
        line("weights, gradients, optimizer", Role::Weights, states),
        line("activations", Role::Compute, |s| s.activation_bytes),
        line("all", Role::Envelope, |s| s.total_bytes),
        Series::new("there is", Role::Floor, capacity),
    ];
    let axes = (Axis::linear("stage", Unit::Count), Axis::linear("memory of a chip", Unit::Bytes));
    Figure::of(title, layout, axes, series)
}
