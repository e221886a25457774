//! A training run: how long a step takes and why, whether it fits, what the run costs, and which layout is best.

mod run;

use crate::desk::prelude::*;
pub use run::{LossCard, RunCard};

use rackmath_spec::model::Shape;
use rackmath_spec::{GemmKernels, Model, Network, System, TrainingFormat, TrainingStack, word};
use rackmath_theory::pipeline::Schedule;
use rackmath_theory::train::machine::Machine;
pub use rackmath_theory::train::memory::StageMemory as StageCard;
use rackmath_theory::train::memory::stage_memory;
use rackmath_theory::train::mfu::{Convention, flop_per_token};
use rackmath_theory::train::search::{Candidate, Searcher, Space};
use rackmath_theory::train::step::{Part, Prepared, Row, StepTime, step};
use rackmath_theory::train::{Cut, Job, Offload, Recompute, Sharding};
use strum::VariantArray as _;

/// A model, a machine, a layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model: a catalogue id, an alias, or a Hugging Face id.
    #[schemars(extend("x-file" = "model", "x-position" = 2))]
    #[educe(Default = "llama-3.1-70b")]
    pub model: String,
    /// Machine: a system, a chip, or so many chips such as `512xh100`.
    #[schemars(extend("x-flag" = "on hw system", "x-file" = "machine"))]
    #[educe(Default = "hgx-h100")]
    pub on: String,
    /// Chips, instead of the machine's.
    #[schemars(extend("x-flag" = "chips gpus num-gpus", "x-none" = "the machine's", "x-most" = [65536, "layouts of a search"]))]
    pub chips: Option<u64>,
    /// Training program whose constants are used; one that suits the chip unless given.
    pub stack: Option<String>,
    /// Format of the matrix products.
    #[schemars(transform = closed::<TrainingFormat>, extend("x-flag" = "format dtype", "x-also" = ["fp16"]))]
    #[educe(Default = "bf16")]
    pub format: String,
    /// Tokens of a sequence.
    #[schemars(extend("x-flag" = "sequence seq-length"))]
    #[educe(Default = 4096)]
    pub sequence: u64,
    /// Sequences of a step.
    #[schemars(extend("x-flag" = "batch global-batch-size"))]
    #[educe(Default = 256)]
    pub global_batch: u64,
    /// Tensor parallel.
    #[schemars(extend("x-flag" = "tp tensor-model-parallel-size"))]
    #[educe(Default = 1)]
    pub tp: u64,
    /// Context parallel.
    #[schemars(extend("x-flag" = "cp context-parallel-size"))]
    #[educe(Default = 1)]
    pub cp: u64,
    /// Pipeline stages.
    #[schemars(extend("x-flag" = "pp pipeline-model-parallel-size"))]
    #[educe(Default = 1)]
    pub pp: u64,
    /// Chunks of layers per stage.
    #[schemars(extend("x-flag" = "virtual-stages vpp"))]
    #[educe(Default = 1)]
    pub virtual_stages: u64,
    /// Expert parallel.
    #[schemars(extend("x-flag" = "ep expert-model-parallel-size"))]
    #[educe(Default = 1)]
    pub ep: u64,
    /// Shards of an expert.
    #[schemars(extend("x-flag" = "etp expert-tensor-parallel-size"))]
    #[educe(Default = 1)]
    pub etp: u64,
    /// Sequences of a micro-batch.
    #[schemars(extend("x-flag" = "micro-batch micro-batch-size"))]
    #[educe(Default = 1)]
    pub micro_batch: u64,
    /// Order of passes; interleaved with chunks, else 1f1b.
    #[schemars(transform = closed::<Schedule>)]
    pub schedule: Option<String>,
    /// What copies divide.
    #[schemars(extend("x-flag" = "sharding zero", "x-also" = ["zero0", "ddp", "fsdp"]))]
    #[educe(Default = Sharding::Zero1)]
    pub sharding: Sharding,
    /// What is run again; `reversible` for a model of reversible blocks.
    #[schemars(extend("x-flag" = "recompute recompute-granularity", "x-also" = ["off"]))]
    #[educe(Default = Recompute::None)]
    pub recompute: Recompute,
    /// What waits in the host's memory.
    #[schemars(extend("x-also" = ["off", "all"]))]
    #[educe(Default = Offload::None)]
    pub offload: Offload,
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
    /// Look for the best layout instead of the one given.
    pub search: bool,
    /// Search context parallelism, every schedule and offloading as well.
    pub wide: bool,
    /// Layouts to list.
    #[schemars(extend("x-most" = [100, "layouts kept"]))]
    #[educe(Default = 8)]
    pub keep: usize,
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
    /// FLOP per second and chip by the same count.
    pub flop_per_s_per_chip: f64,
    /// Whether every stage fits.
    pub fits: bool,
    /// Memory of a chip.
    pub capacity_bytes: f64,
    /// Stages that differ, first to last.
    pub stages: Vec<StageCard>,
    /// Days for the tokens asked for, if nothing fails.
    pub days: Option<f64>,
    /// Dollars for them.
    pub cost_usd: Option<f64>,
    /// The whole run with its failures, where tokens or a loss were given.
    pub run: Option<RunCard>,
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

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SearchCard {
    /// Layouts looked at: all of the space.
    pub evaluated: u64,
    /// Those that fit.
    pub feasible: u64,
    /// The fastest, best first.
    pub best: Vec<LayoutCard>,
    /// Those no other beats in time, memory and cost at once.
    pub frontier: Vec<LayoutCard>,
}

/// A layout of a search.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LayoutCard {
    /// In short.
    pub layout: String,
    /// Chips.
    pub chips: u64,
    /// Seconds of a step.
    pub step_s: f64,
    /// Memory of its fullest chip.
    pub memory_bytes: f64,
    /// Chip-hours for a million tokens.
    pub chip_hours_per_mtok: f64,
}

struct Setup {
    model: Arc<Model>,
    system: Arc<System>,
    stack: Arc<TrainingStack>,
    kernels: Arc<GemmKernels>,
    network: Arc<Network>,
    format: TrainingFormat,
}

/// Answers while it is wanted.
pub fn answer_on(catalog: &Catalog, request: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let Effort { cancel, .. } = effort.into();
    let r = request;
    let setup = resolve(catalog, r)?;
    let (system, chip) = (&setup.system, &setup.system.chip);
    let shape = layered(&setup.model, &r.model)?;
    let machine = Machine::new(system, &setup.stack, &setup.kernels, &setup.network, setup.format);
    let mut machine = machine.ok_or_else(|| no_peak(chip, &chip.name, setup.format))?;
    if let Some(rate) = r.host_gb_per_s {
        machine.host = Some(ByteRate::gb_per_s(within("host_gb_per_s", rate, 1e-3, 1e6)?));
    }
    let expected = format!("a bandwidth to the host, not known for {}; {{host_bandwidth}}", chip.name);
    refuse_if(machine.host.is_none() && r.offload != Offload::None, "offload", r.offload, expected)?;
    let job = Job { shape, sequence: r.sequence, global_batch: r.global_batch, format: setup.format };
    let (cut, search) = if r.search {
        let (cut, card) = searched(&machine, &job, r, system.n_chips, &cancel)?;
        (cut, Some(card))
    } else {
        (cut(r, shape, system.n_chips)?, None)
    };
    let m =
        cut.micro_batches(r.global_batch).ok_or_else(|| Error::value("global_batch", r.global_batch, "a multiple"))?;
    let prepared = Prepared::new(&machine, &job, &cut);
    let stages = prepared.stages(cut.pp, cut.spread);
    let row = Row::new(&stages, cut.recompute).ok_or_else(|| Error::value("pp", cut.pp, "at least one stage"))?;
    let time = step(&machine, &prepared, &row, &cut, m);
    let (chips, tokens) = (cut.chips() as f64, (r.global_batch * r.sequence) as f64);
    let flop = flop_per_token(shape, r.sequence, Convention::Causal, Recompute::None) * tokens;
    let rate = flop / (time.total * chips);
    let mfu = rate / machine.peak();
    let held = stages.iter().map(|s| stage_memory(&prepared, &setup.stack.memory, s, &cut, m));
    let stages: Vec<StageCard> = held.collect();
    let price = r.price_usd_per_chip_hour.or(chip.usual_price().map(|p| p.value.as_per_hour()));
    let timed = run::Timed { seconds: time.total, tokens, chips, mfu, price };
    let run = run::run(catalog, r, &setup.model, &timed)?;
    let days = run.as_ref().and_then(|run| run.work_days);
    let machine_name = format!("{} x {}", system.n_chips, chip.name);
    let capacity = chip.memory.size().get();
    let evidence = match setup.stack.fit {
        Some((n, e)) => says("fitted_on_runs").with("error", e).with("runs", n),
        None => says("never_checked"),
    };
    let title = |id: &'static str| says(id).with("model", &setup.model.name).with("on", &machine_name);
    let figure = match &search {
        Some(search) => frontier_figure(title("time_over_memory"), search),
        None if stages.len() > 1 => Some(stages_figure(title("memory_by_stage"), &cut.to_string(), capacity, &stages)),
        None => None,
    };
    Ok(Answer {
        request: r.clone(),
        model: setup.model.name.clone(),
        machine: machine_name,
        stack: setup.stack.name.clone(),
        layout: cut.to_string(),
        chips: cut.chips(),
        micro_batches: m,
        step_s: time.total,
        bound_s: flop / (machine.peak() * chips),
        parts: parts(&time),
        tokens_per_s: tokens / time.total,
        mfu,
        flop_per_s_per_chip: rate,
        fits: stages.iter().all(|c| c.total_bytes <= capacity),
        capacity_bytes: capacity,
        stages,
        days,
        cost_usd: days.zip(price).map(|(d, p)| d * 24.0 * p * chips),
        run,
        search,
        figure,
        evidence,
        sources: setup.stack.sources.clone(),
    })
}

fn resolve(catalog: &Catalog, r: &Request) -> Result<Setup, Error> {
    refuse_if(r.wide && !r.search, "wide", true, "{search} as well: it is the search that is wide")?;
    let model = catalog.model(&r.model)?;
    let mut system = catalog.system(&r.on)?;
    if let Some(chips) = r.chips {
        Arc::make_mut(&mut system).n_chips = up_to("chips", chips, 1_000_000)?;
    }
    for (field, value, most) in [
        ("sequence", r.sequence, 100_000_000),
        ("global_batch", r.global_batch, 10_000_000),
        ("micro_batch", r.micro_batch, 100_000),
        ("tp", r.tp, 4096),
        ("cp", r.cp, 4096),
        ("pp", r.pp, 4096),
        ("virtual_stages", r.virtual_stages, 4096),
        ("ep", r.ep, 4096),
        ("etp", r.etp, 4096),
    ] {
        refuse_if(!(1..=most).contains(&value), field, value, format!("1 to {most}"))?;
    }
    let usual = if system.chip.link.kind == "ici" { "maxtext" } else { "megatron-core" };
    let stack = catalog.training_stack(r.stack.as_deref().unwrap_or(usual))?;
    let network = catalog.network(&system.chip.link.kind).or_else(|_| catalog.network("pcie5"))?;
    Ok(Setup { model, stack, kernels: catalog.gemm_kernels()?, network, format: r.format.parse()?, system })
}

fn cut(r: &Request, shape: &Shape, chips: u64) -> Result<Cut, Error> {
    let one = r.tp * r.cp * r.pp;
    let odd = one > chips || !chips.is_multiple_of(one);
    refuse_if(odd, "tp x cp x pp", one, format!("a divisor of the {chips} chips"))?;
    let dp = chips / one;
    let layers = shape.n_layers();
    let chunks = r.pp * r.virtual_stages;
    refuse_if(chunks > layers, "pp x virtual_stages", chunks, format!("at most the {layers} layers"))?;
    let (stage, each) = (r.tp * r.cp * dp, r.ep * r.etp);
    refuse_if(!stage.is_multiple_of(each), "ep x etp", each, format!("a divisor of the {stage} chips of a stage"))?;
    let experts = shape.moe().map_or(1, |m| m.experts);
    refuse_if(!experts.is_multiple_of(r.ep), "ep", r.ep, format!("a divisor of the {experts} experts"))?;
    let schedule = match r.schedule.as_deref() {
        Some(name) => word("pipeline schedule", name)?,
        None if r.virtual_stages > 1 => Schedule::Interleaved,
        None => Schedule::OneFOneB,
    };
    let Request { tp, cp, pp, ep, etp, virtual_stages, .. } = *r;
    let cut = Cut {
        degrees: Degrees { tp, cp, pp, dp, ep, etp, virtual_stages, sequence_parallel: tp > 1, ..Degrees::default() },
        schedule,
        micro_batch: r.micro_batch,
        sharding: r.sharding,
        recompute: r.recompute,
        offload: r.offload,
        ..Cut::default()
    };
    if cut.micro_batches(r.global_batch).is_none() {
        let each = dp * r.micro_batch;
        let nearest = (r.global_batch / each).max(1) * each;
        let expected = format!("a multiple of {dp} copies times {} sequences, such as {nearest}", r.micro_batch);
        return Err(Error::value("global_batch", r.global_batch, expected));
    }
    Ok(cut)
}

type Searched = Result<(Cut, SearchCard), Error>;

fn searched(machine: &Machine<'_>, job: &Job<'_>, r: &Request, chips: u64, cancel: &Cancel) -> Searched {
    let capacity = machine.chip.memory.size().get();
    let mut space = Space::of(job.shape, chips, machine.domain, r.global_batch, capacity);
    if r.wide {
        space = space.widened(machine, r.sequence);
    }
    // Another model: only where it is asked for.
    if r.recompute == Recompute::Reversible {
        space.recompute.push(r.recompute);
    }
    if !space.offload.contains(&r.offload) {
        space.offload.push(r.offload);
    }
    let found = Searcher::new(machine, job, &space).search(r.keep.clamp(1, 1000), cancel)?;
    let tokens = (r.global_batch * r.sequence) as f64;
    let card = |c: &Candidate| LayoutCard {
        layout: c.cut.to_string(),
        chips: c.cut.chips(),
        step_s: c.step.total,
        memory_bytes: c.memory,
        chip_hours_per_mtok: c.chip_seconds() / 3600.0 / tokens * 1e6,
    };
    // Where nothing fits, the layout that comes nearest is the answer, and says so.
    let best = found.best.first().or(found.leanest.as_ref()).ok_or_else(|| {
        Error::value("global_batch", r.global_batch, "a batch that some layout of these chips divides")
    })?;
    let [fastest, frontier] = [&found.best, &found.frontier].map(|all| all.iter().map(card).collect());
    let (evaluated, feasible) = (found.evaluated, found.feasible);
    Ok((best.cut, SearchCard { evaluated, feasible, best: fastest, frontier }))
}

fn parts(t: &StepTime) -> Vec<PartCard> {
    // What is less than a millionth is nothing to read about.
    let shown = Part::VARIANTS.iter().map(|part| (part, t.of(*part))).filter(|(_, s)| *s > 1e-6 * t.total);
    let card = |(part, s): (&Part, f64)| PartCard { name: part.to_string(), time_s: s, share: s / t.total };
    let mut cards: Vec<PartCard> = shown.map(card).collect();
    cards.sort_by(|a, b| b.time_s.total_cmp(&a.time_s));
    cards
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
