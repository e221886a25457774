//! A model on machines: what every chip holds, computes and sends, whether it fits, and what chokes.

use crate::check;
use crate::desk::line;
use crate::desk::prelude::*;
use crate::desk::setting::{AUTO, LLAMA_CPP, machine, usual_engine};
use crate::offload::{self, OffloadCard, Offloaded};
use crate::support::{self, Asked};
use rackmath_spec::engine::{Engine, Version};
use rackmath_spec::file::flags::{self, Tool};
use rackmath_spec::launch::Start;
use rackmath_spec::memory::Way;
use rackmath_spec::model::{Ffn, Formats, Mixer};
use rackmath_spec::{Gguf, Math, Model, System, VariantArray as _};
use rackmath_theory::budget::{Budget, budget};
use rackmath_theory::count::Part;
use rackmath_theory::deployment::{Deployment, usual_cache};
use rackmath_theory::experts::{self, ElementBytes, Routing};
use rackmath_theory::layout::{check, domain};
use rackmath_theory::network::{self, Collective, Exchange, Group, Launch, Phase, Port};
use rackmath_theory::placement::{self, Fit, Load, Placement, Stage};
use rackmath_units::BytesPerToken;

/// A model, a machine, a layout and a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model and machine.
    #[schemars(extend("x-inner" = {"chips": {"x-most": [100000, "chips placed"]}}))]
    pub setting: Setting,
    /// Degrees; a sensible layout is chosen for what is not given.
    pub degrees: DegreesRequest,
    /// A command line or flags of vLLM, SGLang, TensorRT-LLM or llama.cpp, whose layout, formats and memory are obeyed; of
    /// Megatron the layout alone.
    #[schemars(extend("x-hyphen" = true, "x-whole" = true))]
    pub flags: Option<String>,
    /// Whose command line it is.
    #[schemars(transform = closed::<Tool>, extend("x-also" = ["tensorrt-llm", "tensorrt_llm", "tensorrtllm", "trt-llm", "trt_llm", "trt", "megatron-lm", "megatronlm", "nemo"]))]
    pub tool: Option<String>,
    /// Sequences in flight.
    #[schemars(extend("x-flag" = "batch -b max-num-seqs batch-size", "x-none" = "what fits, at most 1,024 per group"))]
    pub batch: Option<f64>,
    /// Tokens of context of each sequence: 4096, 128k, 128Ki.
    #[schemars(extend("x-flag" = "context -c isl max-model-len context-length"))]
    #[educe(Default = 4096.0)]
    pub context: f64,
    /// Most tokens in one pass.
    #[schemars(extend("x-flag" = "max-num-batched-tokens max-num-tokens"))]
    #[educe(Default = 8192.0)]
    pub max_num_batched_tokens: f64,
    /// Share of a chip's memory the engine may use.
    #[schemars(extend("x-flag" = "gpu-memory-utilization mem-fraction-static kv-cache-free-gpu-memory-fraction", "x-unit" = "share"))]
    #[educe(Default = 0.9)]
    pub memory_utilisation: f64,
    /// The engine whose own count at start-up decides, such as `vllm@0.19.0`: its dry run, graphs, pages and refusals; `auto` for the
    /// one that people take, which `memory` does by itself, `ideal` for a plain sum of what is held, as when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flag" = "engine backend"))]
    pub engine: Option<String>,
    /// How tokens choose experts: `uniform`, `power:1.2`, or the path of a file with one count per expert.
    #[schemars(extend("x-file" = "numbers"))]
    #[educe(Default = "uniform")]
    pub routing: String,
    /// Tokens each expert got, measured, instead of `routing`.
    pub histogram: Option<Vec<f64>>,
    /// What of the model lies in the host's memory: layers, experts or bytes.
    pub offload: Offloaded,
    /// Places what the model's context does not allow all the same, and spells it for tools that do not run there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pretend: bool,
}

/// Parallel degrees.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DegreesRequest {
    /// Tensor parallel.
    #[schemars(extend("x-flag" = "tp tensor-parallel-size tp-size"))]
    pub tp: Option<u64>,
    /// Pipeline parallel.
    #[schemars(extend("x-flag" = "pp pipeline-parallel-size pp-size"))]
    pub pp: Option<u64>,
    /// Data parallel.
    #[schemars(extend("x-flag" = "dp data-parallel-size dp-size"))]
    pub dp: Option<u64>,
    /// Context parallel.
    #[schemars(extend("x-flag" = "cp context-parallel-size cp-size"))]
    pub cp: Option<u64>,
    /// Expert parallel.
    #[schemars(extend("x-flag" = "ep expert-parallel-size ep-size"))]
    pub ep: Option<u64>,
    /// Expert tensor parallel.
    #[schemars(extend("x-flag" = "etp expert-tensor-parallel-size moe-tp-size", "x-none" = "what ep leaves of a stage's chips"))]
    pub etp: Option<u64>,
    /// Redundant experts per layer.
    #[schemars(extend("x-flag" = "redundant-experts num-redundant-experts ep-num-redundant-experts"))]
    pub redundant: Option<u64>,
    /// Decode context parallel: chips of a tensor-parallel group that share the tokens of a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flag" = "dcp decode-context-parallel-size"))]
    pub dcp: Option<u64>,
}

impl DegreesRequest {
    /// Whether anything is cut over chips.
    pub(crate) fn cuts(&self) -> bool {
        [self.tp, self.pp, self.dp, self.cp, self.ep, self.etp, self.dcp].into_iter().flatten().any(|n| n > 1)
    }
}

/// The placement and what follows from it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model's name.
    pub model: String,
    /// The machine's name.
    pub system: String,
    /// The layout in short.
    pub layout: String,
    /// Whether it was chosen here.
    pub layout_chosen: bool,
    /// Chips it uses, and chips the machine has.
    pub chips: u64,
    /// Chips of the machine.
    pub chips_available: u64,
    /// Sequences in flight.
    pub batch: f64,
    /// Context of each.
    pub context: f64,
    /// Memory of a chip.
    pub capacity_bytes: f64,
    /// Whether it fits.
    pub fits: bool,
    /// Missing bytes on the fullest chip, or free ones.
    pub missing_bytes: f64,
    /// Free bytes on the fullest chip.
    pub spare_bytes: f64,
    /// In words.
    pub verdict: Remark,
    /// The first change that would make it fit, if any is needed.
    pub first_change: Option<Remark>,
    /// A warning when the cache alone is too large, so that no pipeline depth can help.
    pub warning: Option<Remark>,
    /// The split over card and host of llama.cpp that would make it fit, where all of it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_that_fits: Option<Remark>,
    /// What lies in the host's memory, where anything does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload: Option<OffloadCard>,
    /// As the engine counts it, where one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineCard>,
    /// Most sequences of this context that fit.
    pub batch_max: f64,
    /// Longest context that fits with this batch; none when any does or none at all.
    pub context_max: Option<f64>,
    /// Whether no batch was given, and as many sequences as fit are taken, at most 1,024 per group.
    pub batch_filled: bool,
    /// Longest context of one sequence alone, where no batch was given; none when any fits or none at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_max_alone: Option<f64>,
    /// Stages in order; all chips of a stage are alike.
    pub stages: Vec<StageCard>,
    /// Experts, for a mixture.
    pub experts: Option<ExpertCard>,
    /// Traffic of one decode step.
    pub traffic: Vec<TrafficCard>,
    /// The layout as other tools spell it, or why they cannot.
    pub commands: Vec<CommandCard>,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
}

/// The memory of one chip as an engine counts it when it starts, in GiB of 2^30 bytes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EngineCard {
    /// Its name.
    pub name: String,
    /// Whether it starts with requests of this context.
    pub starts: bool,
    /// The share it takes.
    pub utilisation: f64,
    /// The smallest and the largest share in hundredths with which it starts; none where none does.
    pub utilisation_from: Option<f64>,
    /// The largest.
    pub utilisation_to: Option<f64>,
    /// Memory a program finds.
    pub total_gib: f64,
    /// Weights.
    pub weights_gib: f64,
    /// The peak of the dry run.
    pub activation_gib: f64,
    /// Past the allocator.
    pub non_torch_gib: f64,
    /// Captured graphs.
    pub graphs_gib: f64,
    /// The cache.
    pub kv_cache_gib: f64,
    /// Its tokens as the engine prints them.
    pub kv_cache_tokens: u64,
    /// Tokens of a block.
    pub block_size: u64,
    /// Blocks.
    pub num_gpu_blocks: u64,
    /// Groups of layers that share pages.
    pub groups: u64,
    /// The longest request with which it would start.
    pub longest_context: u64,
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StageCard {
    /// Its number.
    pub stage: u64,
    /// Its first layer.
    pub first_layer: u64,
    /// Its layers.
    pub layers: u64,
    /// Its chips.
    pub chips: u64,
    /// Routed experts.
    pub routed_bytes: f64,
    /// Shared experts.
    pub shared_bytes: f64,
    /// Attention and recurrences.
    pub attention_bytes: f64,
    /// Dense networks.
    pub dense_bytes: f64,
    /// Embedding and head.
    pub embedding_bytes: f64,
    /// Routers, norms and the rest.
    pub other_bytes: f64,
    /// Cache.
    pub kv_bytes: f64,
    /// Activations.
    pub activation_bytes: f64,
    /// Communication buffers.
    pub buffer_bytes: f64,
    /// Left alone by the engine.
    pub reserve_bytes: f64,
    /// All of it.
    pub total_bytes: f64,
    /// Arithmetic of one decode step.
    pub flop: f64,
}

/// Experts on chips.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ExpertCard {
    /// Routed experts per layer.
    pub experts: u64,
    /// Of which a token uses.
    pub top_k: u64,
    /// Slots with redundant copies.
    pub slots: u64,
    /// Slots on each chip.
    pub slots_per_chip: f64,
    /// Copies of all experts within a stage.
    pub groups: u64,
    /// Tokens each expert gets in a step.
    pub tokens_per_expert: f64,
    /// Different chips a token is sent to.
    pub destinations: f64,
    /// Load of the busiest chip over the mean, from the routing.
    pub imbalance: f64,
    /// The same from chance alone.
    pub fluctuation: f64,
    /// Time on the scale-up over time on the scale-out network if stages were separate domains; 1 or more is good.
    pub up_to_out: Option<f64>,
    /// Width of an expert.
    pub width: u64,
    /// Narrowest expert that computes longer than its tokens travel on the scale-up network.
    pub least_width: Option<f64>,
    /// How much slower the all-to-all is for leaving the scale-up domain.
    pub slowdown: f64,
}

/// Traffic of one chip in one decode step.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrafficCard {
    /// What is sent.
    pub what: String,
    /// Over which network.
    pub network: String,
    /// Bytes sent by the busiest chip.
    pub bytes: f64,
    /// At full bandwidth; none when the machine's file names no such network.
    pub seconds: Option<f64>,
    /// With measured latencies and efficiencies of this kind of network, one after the other; none where they are not known.
    pub predicted_s: Option<f64>,
}

/// The layout as a tool spells it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommandCard {
    /// The tool.
    pub tool: String,
    /// Its flags.
    pub flags: Option<String>,
    /// Why it cannot.
    pub cannot: Option<String>,
}

/// Answers.
#[expect(clippy::too_many_lines, reason = "an answer, field by field")]
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let request = &chosen(catalog, request);
    if let Some((asked, said)) = obeyed(catalog, request)? {
        let mut answer = answer(catalog, &asked)?;
        answer.layout_chosen = false;
        answer.assumptions.splice(0..0, said);
        return Ok(answer);
    }
    let asked = request.engine.as_deref().map(|name| catalog.engine(name)).transpose().map_err(|e| e.at("engine"))?;
    let cut = request.degrees.cuts() || request.flags.is_some();
    let together = match &asked {
        _ if request.setting.on.contains('+') => true,
        Some((engine, _)) => offload::dealt(catalog, &request.setting, engine, cut),
        None => false,
    };
    let (alone, cards) = if together { offload::cards(catalog, &request.setting)? } else { Default::default() };
    let mut r = resolve(catalog, if together { &alone } else { &request.setting })?;
    let context = tokens("context", request.context, 1.0)?;
    let max_tokens = tokens("max_num_batched_tokens", request.max_num_batched_tokens, 1.0)?.get();
    let utilisation = utilisation(request.memory_utilisation)?;
    let routing = routing(request, &r.model)?;
    let tool = request.tool.as_deref().unwrap_or("vllm").parse::<Tool>();
    let line = request.flags.as_deref().map(|line| tool.map(|tool| (tool, line))).transpose()?;
    let (layout, layout_chosen) = pick(&request.degrees, line, &r)?;
    r.found.deployment.layout = layout;
    let mut load = Load { batch: 1.0, context, tokens: max_tokens, utilisation: Some(utilisation) };
    if request.offload.asked() || together {
        let streams = request.offload.cpu_offload_gb.is_some();
        let (engine, _) = catalog.engine(if streams { "vllm" } else { "llamacpp" })?;
        r.found.deployment.engine = engine;
        request.offload.apply(catalog, &mut r.found.deployment, &load, &cards)?;
    }
    if let Some((engine, _)) = &asked {
        as_asked(request, engine, &mut r.found.deployment, &mut load);
    }
    let wanted = request.batch.map(|batch| tokens("batch", batch, 1.0)).transpose()?;
    load.batch = wanted.map_or(1.0, Tokens::get);
    if layout_chosen && r.split.is_none() {
        r.found.deployment.layout = nearest(&r, &load);
    }
    let mut most = placement::largest_batch(&r, &load);
    let layout = r.layout;
    let budget = request.engine.as_deref().map(|name| counted(catalog, name, request, &r)).transpose()?;
    if let Some((budget, ..)) = &budget {
        let each = match budget.way {
            Way::Asked => budget.longest_possible as f64 * request.batch.unwrap_or(1.0).max(1.0) / context.get(),
            _ => budget.room(context.get()),
        };
        most = if budget.starts() { each.floor() * layout.degrees().dp as f64 } else { 0.0 };
        // What is placed is what the engine counted with.
        (load.tokens, load.utilisation) = (budget.pass as f64, Some(budget.utilisation));
    }
    let usual = || most.min(1024.0 * layout.degrees().dp as f64).max(1.0);
    // llama.cpp keeps what it is asked for, and is asked for one.
    let asks = budget.as_ref().is_some_and(|(b, ..)| b.way == Way::Asked);
    load.batch = wanted.map_or_else(|| if asks { 1.0 } else { usual() }, Tokens::get);
    let placed = placement::place(&r, &load);
    let (fits, kv_alone, missing, spare) = match placed.fit {
        Fit::Fits { spare } => (true, false, Bytes::ZERO, spare),
        Fit::TooLarge { missing, kv_alone, .. } => (false, kv_alone, missing, Bytes::ZERO),
    };
    let lacks = offload::card_lacks(&r, &load);
    let fits = fits && lacks.is_none() && offload::host_lacks(&r, &load).is_none();
    // An engine's own sum decides where one is named; it starts whatever number of sequences then waits.
    let waits = request.batch.is_some() && load.batch > most;
    let fits = budget.as_ref().map_or(fits, |(budget, ..)| budget.starts() && !waits);
    let command = |tool: &Tool| {
        let printed = flags::print(*tool, &layout).map_err(|error| error.without_file().to_string());
        let printed = printed.and_then(|line| runs(catalog, *tool, &r, request).map(|()| line));
        CommandCard { tool: tool.to_string(), flags: printed.clone().ok(), cannot: printed.err() }
    };
    // What is offered starts when it is applied.
    let starts = |next: &Deployment| {
        let asked = request.engine.as_deref();
        asked.is_none_or(|name| counted(catalog, name, request, next).is_ok_and(|(budget, ..)| budget.starts()))
    };
    let (ideal, _) = catalog.engine("ideal")?;
    let long = support::too_long(catalog, &r.model, &ideal, context.get())?.filter(|_| !request.pretend);
    // No machine has positions that the model lacks: what is offered stays within them.
    let own = r.model.shape().and_then(|shape| shape.context_max).filter(|_| !request.pretend).map(|n| n as f64);
    let (within, helps) = (|l: f64| own.map_or(l, |own| l.min(own)), !fits && long.is_none());
    let filled = wanted.is_none();
    let alone = filled.then(|| match &budget {
        Some((b, ..)) => Some(b.longest_possible as f64).filter(|_| b.blocks > 0),
        None => placement::longest_context(&r, &Load { batch: 1.0, ..load }),
    });
    let alone = alone.flatten().map(within).filter(|l| l.is_finite());
    Ok(Answer {
        model: r.model.name.clone(),
        system: r.system.name.clone(),
        layout: offload::layout_words(&r),
        layout_chosen,
        chips: layout.chips(),
        chips_available: r.system.n_chips,
        batch: load.batch,
        context: load.context.get(),
        capacity_bytes: placed.capacity.get(),
        fits: long.is_none() && fits,
        missing_bytes: missing.get(),
        spare_bytes: spare.get(),
        verdict: long.map_or_else(
            || match (&budget, &lacks) {
                (Some((budget, name, _)), _) if budget.starts() && waits => {
                    says("batch_waits").with("engine", name).with("batch", load.batch).with("most", most)
                }
                (Some((budget, name, _)), _) => as_counted(budget, name),
                (None, Some((card, missing))) => says("card_too_small").with("card", card).with("missing", *missing),
                (None, None) if filled && fits => filled_with(&load, most, spare, alone),
                (None, None) => verdict(&placed),
            },
            |long| says("not_placed").with("why", long.why),
        ),
        first_change: match r.split.as_ref().filter(|split| !split.cards.is_empty()) {
            _ if !helps => None,
            Some(_) if most < 1.0 => {
                offload::other_shares(&r, &load, starts).or_else(|| first_change(&r, &load, most, starts))
            }
            _ => first_change(&r, &load, most, starts),
        },
        warning: (kv_alone && !fits)
            .then(|| says("kv_alone_too_large"))
            .or_else(|| {
                lacks
                    .filter(|_| !fits)
                    .map(|(card, lacks)| says("card_too_small").with("card", card).with("missing", lacks))
            })
            .or_else(|| offload::host_lacks(&r, &load).map(|missing| says("host_too_small").with("missing", missing))),
        split_that_fits: if helps { offload::would_fit(catalog, &request.offload, &r, &load) } else { None },
        offload: offload::card(&r, &load),
        batch_max: most,
        context_max: match &budget {
            Some((budget, ..)) => {
                let each = match budget.way {
                    Way::Asked => f64::INFINITY,
                    _ => (budget.tokens as f64 / load.of_fullest(r.groups()).max(1.0)).floor(),
                };
                Some(within(each.min(budget.longest_possible as f64))).filter(|_| budget.blocks > 0)
            }
            None => placement::longest_context(&r, &load).map(within).filter(|l| l.is_finite()),
        },
        batch_filled: filled,
        context_max_alone: alone,
        engine: budget.map(|(_, _, card)| card),
        stages: placed.stages.iter().map(stage_card).collect(),
        experts: expert_card(&r, &load, &routing),
        traffic: traffic(&r, &load, &placed),
        commands: Tool::VARIANTS.iter().map(command).collect(),
        assumptions: vec![
            r.in_formats("weights_and_cache"),
            says("engine_memory").with("share", r.utilisation(&load)).with("memory", placed.capacity),
            says("pass_holds").with("tokens", load.tokens),
            says("bytes_a_value"),
        ],
    })
}

/// The request with the engine that people take, where that is asked for: the one that the line beside it starts, that keeps parts where
/// they are asked to be, or that reads such files on such a machine.
fn chosen(catalog: &Catalog, request: &Request) -> Request {
    match request.engine.as_deref() {
        Some(AUTO) => {}
        Some("ideal") => return Request { engine: None, ..request.clone() },
        _ => return request.clone(),
    }
    let streams = request.offload.cpu_offload_gb.is_some();
    let parted = request.setting.on.contains('+') || (request.offload.asked() && !streams);
    let machine = || catalog.system(machine(&request.setting.on).ok()?.0).ok();
    let apple = || machine().is_some_and(|system| system.chip.vendor == "Apple");
    let engine = match &request.flags {
        Some(_) => None,
        None if parted || apple() => Some(LLAMA_CPP.to_owned()),
        None => Some(usual_engine(&request.setting).to_owned()),
    };
    Request { engine, ..request.clone() }
}

/// Places a model as a named engine runs it: in its cache's format, with its passes and its share of the memory unless these are said.
fn as_asked(request: &Request, engine: &Arc<Engine>, on: &mut Deployment, load: &mut Load) {
    let usual = Request::default();
    if request.setting.kv.is_none() {
        on.kv = usual_cache(&on.model, on.formats, engine);
    }
    on.engine = engine.clone();
    if request.max_num_batched_tokens == usual.max_num_batched_tokens {
        load.tokens = engine.schedule.chunk;
    }
    if request.memory_utilisation == usual.memory_utilisation {
        load.utilisation = None;
    }
}

/// The engine's own sum for requests of this context, and the shares with which it would start.
fn counted(
    catalog: &Catalog,
    name: &str,
    request: &Request,
    on: &Deployment,
) -> Result<(Budget, String, EngineCard), Error> {
    let (engine, _) = catalog.engine(name).map_err(|e| e.at("engine"))?;
    let version = name.split_once('@').and_then(|(_, version)| version.parse::<Version>().ok());
    let on = Deployment { engine, ..on.clone() };
    let usual = Request::default();
    let said = |given: f64, usual: f64| (given != usual).then_some(given as u64);
    let groups = on.layout.degrees().dp as f64;
    let sequences = request.batch.map(|batch| (batch / groups).ceil() as u64);
    // llama.cpp deals its context to its slots.
    let slots = sequences.filter(|_| on.engine.family == LLAMA_CPP).unwrap_or(1);
    let start = Start {
        utilisation: Fraction::checked(request.memory_utilisation)
            .filter(|share| share.get() != usual.memory_utilisation),
        longest: Some((request.context as u64).max(1).saturating_mul(slots)),
        pass: said(request.max_num_batched_tokens, usual.max_num_batched_tokens),
        sequences,
        ..Start::default()
    };
    let at = |share: f64| budget(&on, &Start { utilisation: Fraction::checked(share), ..start.clone() }, version);
    let shares: Vec<f64> = (5..100).map(|share| f64::from(share) / 100.0).filter(|share| at(*share).starts()).collect();
    let b = budget(&on, &start, version);
    let gib = check::gib;
    let card = EngineCard {
        name: on.engine.name.clone(),
        starts: b.starts(),
        utilisation: b.utilisation.get(),
        utilisation_from: shares.first().copied(),
        utilisation_to: shares.last().copied(),
        total_gib: gib(b.total),
        weights_gib: gib(b.weights),
        activation_gib: gib(b.activation),
        non_torch_gib: gib(b.outside),
        graphs_gib: gib(b.graphs),
        kv_cache_gib: gib(b.cache),
        kv_cache_tokens: b.tokens,
        block_size: b.block,
        num_gpu_blocks: b.blocks,
        groups: b.pages.groups(),
        longest_context: b.longest_possible,
    };
    Ok((b, on.engine.name.clone(), card))
}

fn as_counted(b: &Budget, engine: &str) -> Remark {
    if let Some(refusal) = &b.refusal {
        return check::refused(engine, refusal);
    }
    let said = says("check_starts").with("engine", engine).with("cache", b.cache).with("tokens", b.tokens);
    said.with("requests", b.concurrency).with("longest", b.longest)
}

/// The request as a server's command line beside it says, with what became of its flags.
fn obeyed(catalog: &Catalog, request: &Request) -> Result<Option<(Request, Vec<Remark>)>, Error> {
    let Some(text) = &request.flags else { return Ok(None) };
    let Some((launch, engine)) = line::beside(catalog, text, request.tool.as_deref(), "vllm")? else {
        return Ok(None);
    };
    let (pass, sequences) = line::of_group(&launch);
    let usual = Request::default();
    let engine = request.engine.clone().or(Some(engine));
    let mut r = Request { flags: None, tool: None, degrees: line::degrees(&launch), engine, ..request.clone() };
    r.setting.weights = r.setting.weights.or_else(|| launch.weights.clone());
    r.setting.kv = r.setting.kv.or_else(|| launch.kv.clone());
    let groups = launch.layout.degrees().dp as f64;
    r.batch = r.batch.or(sequences.map(|n| n * groups));
    let own = |given: f64, usual: f64, said: Option<f64>| said.filter(|_| given == usual).unwrap_or(given);
    r.context = own(r.context, usual.context, launch.start.longest.map(|n| n as f64));
    r.max_num_batched_tokens = own(r.max_num_batched_tokens, usual.max_num_batched_tokens, pass);
    let share = launch.start.utilisation.map(Fraction::get);
    r.memory_utilisation = own(r.memory_utilisation, usual.memory_utilisation, share);
    Ok(Some((r, line::remarks(&launch))))
}

/// Whether the engine of a tool runs the model there, in these formats and cut like that; else why not.
fn runs(catalog: &Catalog, tool: Tool, on: &Deployment, request: &Request) -> Result<(), String> {
    // Tools that train have no engine here.
    let Ok((engine, _)) = catalog.engine(&tool.to_string()) else { return Ok(()) };
    let there = Deployment { engine, ..on.clone() };
    let asked = Asked::by(request.setting.weights.as_deref());
    let mut standing = support::stand(catalog, &there, asked, None).map_err(|e| e.to_string())?;
    standing.refuse_layout(&on.layout);
    standing.barred(request.pretend).map_or(Ok(()), Err)
}

/// The share of a chip's memory that an engine takes.
pub(crate) fn utilisation(share: f64) -> Result<Fraction, Error> {
    let checked = Fraction::checked(share).filter(|u| u.get() > 0.0);
    checked.ok_or_else(|| Error::value("memory_utilisation", share, "a share above 0, at most 1"))
}

fn routing(request: &Request, model: &Model) -> Result<Routing, Error> {
    if let Some(histogram) = &request.histogram {
        let experts = model.shape().and_then(|s| s.moe()).map_or(0, |m| m.experts);
        let sane = histogram.len() as u64 == experts && histogram.iter().all(|x| x.is_finite() && *x >= 0.0);
        let (given, expected) = (format!("{} numbers", histogram.len()), format!("{experts} counts, not all zero"));
        refuse_if(!sane || histogram.iter().sum::<f64>() <= 0.0, "histogram", given, expected)?;
        return Ok(Routing::Histogram(histogram.clone()));
    }
    let alpha = request.routing.strip_prefix("power:").and_then(|alpha| alpha.parse::<f64>().ok());
    match alpha.filter(|alpha| (0.0..=5.0).contains(alpha)) {
        Some(alpha) => Ok(Routing::PowerLaw(alpha)),
        None if request.routing == "uniform" => Ok(Routing::Uniform),
        None => Err(Error::value("routing", format!("\"{}\"", request.routing), "uniform or power:1.2")),
    }
}

/// The layout asked for, by degrees or by a line of a tool, or a sensible one; allowed by model and machine.
pub(crate) fn pick(d: &DegreesRequest, line: Option<(Tool, &str)>, on: &Deployment) -> Result<(Layout, bool), Error> {
    let (layout, chosen) = match line {
        Some((tool, line)) => (flags::read(tool, line)?, false),
        None if *d == DegreesRequest::default() => (usual(&on.model, &on.system), true),
        None if d.ep.is_some_and(|n| n > 1) && on.model.shape().is_some_and(|s| s.moe().is_none()) => {
            let expected = format!("1: {} has no experts", on.model.name);
            return Err(Error::value("layout", format!("ep = {}", d.ep.unwrap_or(1)), expected));
        }
        None => (given(d)?, false),
    };
    check(&on.model, &on.system, &layout)
        .map_err(|e| Error::value("layout", format!("{layout} ({} = {})", e.degree, e.given), e.expected))?;
    Ok((layout, chosen))
}

fn given(d: &DegreesRequest) -> Result<Layout, Error> {
    let [tp, pp, dp, cp, ep, dcp] = [d.tp, d.pp, d.dp, d.cp, d.ep, d.dcp].map(|degree| degree.unwrap_or(1));
    let stage = tp.saturating_mul(dp).saturating_mul(cp);
    // What ep leaves of the stage's chips cuts each expert, as serving engines do, unless etp is given.
    let etp = d.etp.unwrap_or(if ep > 0 && stage % ep == 0 { stage / ep } else { 1 });
    let redundant = d.redundant.unwrap_or(0);
    Layout::new(Degrees { tp, pp, dp, cp, ep, etp, redundant, dcp, ..Degrees::default() })
        .map_err(|e| Error::value("layout", e.to_string(), "degrees that go together"))
}

/// The largest layout of tensor and expert parallelism alone, or of pipeline stages, that the model, the machine and an engine
/// allow.
pub(crate) fn cut_by(model: &Model, system: &System, allows: impl Fn(&Layout) -> bool) -> Option<Layout> {
    let moe = model.shape().is_some_and(|s| s.moe().is_some());
    let sizes: Vec<u64> = (0..=10).map(|k| 1 << k).filter(|n| *n <= system.n_chips).collect();
    let made = |degrees: Degrees| {
        let layout = Layout::new(degrees).ok()?;
        (check(model, system, &layout).is_ok() && allows(&layout)).then_some(layout)
    };
    let all = sizes.iter().rev().flat_map(|n| {
        let experts = moe.then_some(Degrees { tp: *n, ep: *n, ..Degrees::default() });
        let whole = Degrees { tp: *n, etp: if moe { *n } else { 1 }, ..Degrees::default() };
        experts.into_iter().chain([whole, Degrees { pp: *n, ..Degrees::default() }])
    });
    all.into_iter().find_map(made)
}

/// The lecture's recipe (D34): one scale-up domain, experts over all of it, no pipeline unless weights do not fit.
pub fn usual(model: &Model, system: &System) -> Layout {
    usual_for(model, system, u64::MAX)
}

/// The same for so many requests at a time: a group of attention without one would idle.
pub(crate) fn usual_for(model: &Model, system: &System, requests: u64) -> Layout {
    let chips = domain(system).min(system.n_chips).max(1);
    let legal = |d: Degrees| Layout::new(d).ok().filter(|l| check(model, system, l).is_ok());
    let largest = |limit: u64| (0..30).rev().map(|i| 1u64 << i).filter(move |n| *n <= limit);
    let one = Degrees::default();
    let Some(shape) = model.shape() else {
        return legal(Degrees { dp: chips, ep: chips, ..one }).unwrap_or_else(Layout::single);
    };
    let latent = shape.runs.iter().any(|r| matches!(r.block.mixer, Mixer::Latent(_) | Mixer::Compressed(_)));
    let sparse = shape.runs.iter().any(|r| matches!(r.block.ffn, Ffn::Moe(_)));
    let of = |n: u64| match (sparse, latent) {
        // A latent cache cannot be cut along heads: attention data parallel.
        (true, true) => largest(n.min(requests)).find_map(|dp| legal(Degrees { tp: n / dp, dp, ep: n, ..one })),
        (true, false) => largest(8.min(n)).find_map(|tp| legal(Degrees { tp, dp: n / tp, ep: n, ..one })),
        (false, _) => legal(Degrees { tp: n, etp: n, ..one }),
    };
    largest(chips).find_map(of).unwrap_or_else(Layout::single)
}

/// The usual layout where it holds a load; else one of the same chips that does, or comes nearest to it: attention cut over more
/// chips is held fewer times.
fn nearest(on: &Deployment, load: &Load) -> Layout {
    let missing = |layout: &Layout| match placement::place(&Deployment { layout: *layout, ..on.clone() }, load).fit {
        Fit::Fits { .. } => Bytes::ZERO,
        Fit::TooLarge { missing, .. } => missing,
    };
    let mut best = (on.layout, missing(&on.layout));
    for layout in fewer_copies(on) {
        if best.1 == Bytes::ZERO {
            break;
        }
        let next = (layout, missing(&layout));
        if next.1 < best.1 {
            best = next;
        }
    }
    best.0
}

/// Layouts of the same chips with fewer copies of attention, then with every expert cut as well.
fn fewer_copies(on: &Deployment) -> impl Iterator<Item = Layout> {
    let d = on.layout.degrees();
    let n = on.layout.chips();
    let groups = std::iter::successors(Some(d.dp / 2), |dp| Some(dp / 2)).take_while(|dp| *dp >= 1);
    let fewer = groups.map(move |dp| Degrees { tp: n / dp, dp, ..d });
    let whole = (d.ep > 1).then_some(Degrees { tp: n, etp: n, ..Degrees::default() });
    let legal = |d: Degrees| Layout::new(d).ok().filter(|layout| check(&on.model, &on.system, layout).is_ok());
    fewer.chain(whole).filter_map(legal)
}

/// The layout in short; shards of experts mean nothing where there are none.
pub(crate) fn words(model: &Model, layout: &Layout) -> String {
    let sparse = model.shape().is_none_or(|s| s.moe().is_some());
    let degrees = if sparse { layout.degrees() } else { Degrees { etp: 1, ..layout.degrees() } };
    Layout::new(degrees).map_or_else(|_| layout.to_string(), |l| l.to_string())
}

pub(crate) fn verdict(placed: &Placement) -> Remark {
    match placed.fit {
        Fit::Fits { spare } => says("fits_with_spare").with("spare", spare),
        Fit::TooLarge { missing, stage, weights_alone, .. } => {
            let id = if weights_alone { "weights_too_large" } else { "rest_too_large" };
            says(id).with("missing", missing).with("stage", stage)
        }
    }
}

/// What fits where no batch was asked for: what is left beside as many as fill it, or their longest context, says nothing.
fn filled_with(load: &Load, most: f64, spare: Bytes, alone: Option<f64>) -> Remark {
    let full = most <= load.batch;
    let said = says(if full { "fits_filled" } else { "fits_usual" }).with("batch", load.batch);
    let said = said.with("context", load.context).with("alone", alone.filter(|l| *l > load.context.get()));
    if full { said } else { said.with("spare", spare).with("most", most) }
}

/// The first change that makes a deployment fit.
pub(crate) fn first_change(
    on: &Deployment,
    load: &Load,
    most: f64,
    runs: impl Fn(&Deployment) -> bool,
) -> Option<Remark> {
    if most >= 1.0 {
        return Some(says("batch_instead").with("batch", most).with("now", load.batch));
    }
    remedies(on, load, runs).into_iter().next().map(|(what, _)| what)
}

/// Changes that make room for a request, one of each kind, from the cheapest to the dearest: other degrees on the chips
/// there are, a narrower cache, narrower weights, more chips. Each is placed on its chips before it is named.
pub(crate) fn remedies(on: &Deployment, load: &Load, runs: impl Fn(&Deployment) -> bool) -> Vec<(Remark, Deployment)> {
    let fits = |on: &Deployment| placement::largest_batch(on, load) >= 1.0;
    let wider = wider(on);
    let (here, there): (Vec<Layout>, Vec<Layout>) = wider.into_iter().partition(|l| l.chips() <= on.system.n_chips);
    let placed = |layout: Layout| {
        let mut system = System::clone(&on.system);
        let more = layout.chips() > system.n_chips;
        system.n_chips = system.n_chips.max(layout.chips());
        check(&on.model, &system, &layout).ok()?;
        let next = Deployment { layout, system: system.into(), ..on.clone() };
        let what = says("layout_on").with("layout", words(&on.model, &layout));
        let what = what.with("chips", more.then(|| layout.chips()));
        (fits(&next) && runs(&next)).then_some((what, next))
    };
    let narrow = narrow_cache(&on.engine);
    let cache = (on.kv.bits() > 12.0).then(|| Deployment { kv: narrow, ..on.clone() });
    let cache = cache.filter(|next| runs(next) && fits(next));
    let weights = narrower(on, &runs).into_iter().find_map(|dtype| {
        let next = in_format(on, dtype);
        fits(&next).then(|| (says("weights_in").with("format", dtype), next))
    });
    let mut all: Vec<(Remark, Deployment)> = here.into_iter().find_map(placed).into_iter().collect();
    all.extend(cache.map(|next| (says("kv_in").with("format", narrow), next)));
    all.extend(weights);
    all.extend(there.into_iter().find_map(placed));
    all
}

/// The narrower format that an engine keeps a cache in.
pub(crate) fn narrow_cache(engine: &Engine) -> Dtype {
    if engine.family == LLAMA_CPP { Dtype::Gguf(Gguf::Q8_0) } else { Dtype::Fp8 }
}

/// The same with weights in a format, and the cache that the engine takes with it where it is the engine's choice.
pub(crate) fn in_format(on: &Deployment, dtype: Dtype) -> Deployment {
    let formats = Formats { routed: dtype, linear: dtype, mixer: dtype, ..on.formats };
    let usual = |formats| usual_cache(&on.model, formats, &on.engine);
    let kv = if on.kv == usual(on.formats) { usual(formats) } else { on.kv };
    Deployment { formats, kv, ..on.clone() }
}

/// Formats narrower than today's that the engine runs on the chip, the widest first: one of 8 bits, and one of 4, which is a
/// float only where the chip multiplies such.
pub(crate) fn narrower(on: &Deployment, runs: impl Fn(&Deployment) -> bool) -> Vec<Dtype> {
    let floats = on.system.chip.peak.contains_key(&Math::Fp4);
    let four: &[Dtype] = if floats { &[Dtype::NvFp4, Dtype::MxFp4] } else { &[Dtype::Int4] };
    let (eight, four): (&[Dtype], &[Dtype]) = if on.engine.family == LLAMA_CPP {
        (&[Dtype::Gguf(Gguf::Q8_0)], &[Dtype::Gguf(Gguf::Q4KM)])
    } else {
        (&[Dtype::Fp8, Dtype::Int8], four)
    };
    let now = on.formats.linear.bits().max(on.formats.routed.bits());
    let there = |dtype: &Dtype| dtype.bits() < now && runs(&in_format(on, *dtype));
    [eight, four].into_iter().filter_map(|like| like.iter().copied().find(there)).collect()
}

/// The same layout over more chips: its tensors, groups or stages times a whole number, fewest chips first.
fn wider(on: &Deployment) -> Vec<Layout> {
    let d = on.layout.degrees();
    let times = |factor: u64| {
        [
            Degrees { tp: d.tp * factor, etp: d.etp * factor, ..d },
            Degrees { dp: d.dp * factor, ep: d.ep * factor, ..d },
            Degrees { pp: d.pp * factor, ..d },
        ]
    };
    let all = (2..=64).flat_map(times).filter_map(|degrees| Layout::new(degrees).ok());
    let mut all: Vec<Layout> = all.collect();
    all.sort_by_key(Layout::chips);
    all
}

fn stage_card(s: &Stage) -> StageCard {
    let part = |p: Part| s.held.part(p).get();
    StageCard {
        stage: s.index,
        first_layer: s.layers.0,
        layers: s.layers.1,
        chips: s.chips,
        routed_bytes: part(Part::Routed),
        shared_bytes: part(Part::Shared),
        attention_bytes: part(Part::Mixer),
        dense_bytes: part(Part::Dense),
        embedding_bytes: part(Part::Embedding) + part(Part::Head),
        other_bytes: part(Part::Router) + part(Part::Other),
        kv_bytes: s.held.kv,
        activation_bytes: s.held.activations,
        buffer_bytes: s.held.buffers,
        reserve_bytes: s.held.reserve,
        total_bytes: s.held.total().get(),
        flop: s.flop.get(),
    }
}

/// One byte a value out, two back, two to the next stage.
const BYTES: ElementBytes = ElementBytes { dispatch: 1.0, combine: 2.0, hop: 2.0 };

fn expert_card(r: &Resolved, load: &Load, routing: &Routing) -> Option<ExpertCard> {
    let shape = r.model.shape()?;
    let moe = shape.moe()?;
    let d = r.layout.degrees();
    let slots = moe.experts + d.redundant;
    let destinations = network::distinct_ranks(d.ep, moe.experts, moe.top_k);
    let popularity = experts::popularity(routing, moe.experts);
    let tokens = load.batch * moe.top_k as f64;
    let [up, out] = [0, 1].map(|at| level(&r.system, at).map(|l| l.0));
    let beta = up.zip(out).map(|(u, o)| u / o);
    let layers = shape.n_layers() as f64 / d.pp as f64;
    let racks = r.layout.stage_chips().div_ceil(domain(&r.system));
    let least_width = |(u, (_, peak))| experts::least_width(BYTES, peak, ByteRate::b_per_s(u));
    Some(ExpertCard {
        experts: moe.experts,
        top_k: moe.top_k,
        slots,
        slots_per_chip: slots as f64 / d.ep as f64,
        groups: r.layout.expert_copies(),
        tokens_per_expert: tokens / moe.experts as f64,
        destinations,
        imbalance: experts::imbalance(&popularity, d.ep, d.redundant),
        fluctuation: experts::fluctuation(tokens / d.ep as f64, d.ep),
        up_to_out: beta.map(|beta| experts::scale_up_to_scale_out(BYTES, destinations, layers, beta)),
        width: moe.expert.width,
        least_width: up.zip(r.main_math()).map(least_width),
        slowdown: beta.map_or(1.0, |beta| network::cross_rack_slowdown(beta, racks)),
    })
}

/// One-way bandwidth of a chip into a level, and the level's name.
fn level(system: &System, at: usize) -> Option<(f64, String)> {
    system.levels.get(at).map(|l| (l.bandwidth.value.get() / l.oversubscription, l.name.clone()))
}

fn traffic(on: &Deployment, load: &Load, placed: &Placement) -> Vec<TrafficCard> {
    let busiest = |of: fn(&Stage) -> f64| placed.stages.iter().map(of).fold(0.0, f64::max);
    let leaving = busiest(|s| s.sent.expert_out);
    let exchange = exchanges(on, load, busiest(|s| s.sent.exchanges));
    let leaves = placed.stages.iter().any(|s| s.sent.pipeline_leaves);
    let hop = busiest(|s| s.sent.pipeline);
    let reductions = reductions(on, load, busiest(|s| s.sent.reductions));
    let all = [
        ("tensor-parallel reductions", 0, busiest(|s| s.sent.tensor), reductions),
        ("queries and partial outputs of the cut cache", 0, busiest(|s| s.sent.context), None),
        ("experts: dispatch and combine", 0, busiest(|s| s.sent.expert_up), exchange.filter(|_| leaving <= 0.0)),
        ("experts: dispatch and combine that leave the domain", 1, leaving, exchange),
        ("hop to the next stage", usize::from(leaves), hop, send(on, leaves, hop)),
    ];
    let sent = all.into_iter().filter(|(_, _, bytes, _)| *bytes > 0.0);
    sent.map(|(what, at, bytes, predicted_s)| {
        let (bandwidth, network) = level(&on.system, at).map_or((None, "none known".into()), |(b, n)| (Some(b), n));
        TrafficCard { what: what.into(), network, bytes, seconds: bandwidth.map(|b| bytes / b), predicted_s }
    })
    .collect()
}

/// So many all-reduces of one token of every sequence of a group; nothing where such links were never measured.
fn reductions(on: &Deployment, load: &Load, n: f64) -> Option<f64> {
    let (d, up) = (on.layout.degrees(), on.links.up.as_deref()?);
    let hidden = on.model.shape()?.hidden as f64;
    let group = Group::within(on.system.levels.first()?, up, d.tp);
    let bytes = Bytes::b(load.batch / d.dp as f64 * hidden * 2.0);
    let library = network::time(Collective::AllReduce, bytes, &group).total();
    // Engines bring their own kernel for short messages; the shorter of the two counts.
    let memory = on.system.chip.memory.bandwidth.value;
    let own = up.all_reduce_kernel("vllm").ok();
    let own = own.map(|kernel| network::all_reduce_time(bytes, &group, kernel, Launch::Graph, memory).total());
    Some(own.map_or(library, |own| own.min(library)).get() * n)
}

/// So many dispatches and combines, with the one-sided kernel of a rack or the low-latency one of a node.
fn exchanges(on: &Deployment, load: &Load, n: f64) -> Option<f64> {
    let shape = on.model.shape()?;
    let moe = shape.moe()?;
    let ranks = on.layout.degrees().ep;
    let together = domain(&on.system).min(on.layout.stage_chips());
    let first = on.system.levels.first()?;
    let name = if together > 8 { "one-sided" } else { "deepep-ll" };
    let kernel = on.links.up.as_deref()?.exchange_kernel(name).ok()?;
    let up = Port { kernel, bandwidth: first.bandwidth.value };
    let reach = on.links.out.as_deref().and_then(|out| out.reach.get(&kernel.copies));
    let out = on.system.levels.get(1).zip(reach);
    let out = out.map(|(second, kernel)| Port { kernel, bandwidth: second.bandwidth.value / second.oversubscription });
    if out.is_none() && ranks.div_ceil(together.max(1)) > 1 {
        return None;
    }
    let one = |phase: Phase, width: f64| {
        let exchange = Exchange {
            phase,
            tokens: Tokens::new(load.batch / on.layout.stage_chips() as f64),
            payload: BytesPerToken::new(shape.hidden as f64 * width),
            top_k: moe.top_k,
            experts: moe.experts,
            ranks,
            ranks_per_node: together,
        };
        network::exchange_time(&exchange, &up, out.as_ref()).total.get()
    };
    Some(n * (one(Phase::Dispatch, BYTES.dispatch) + one(Phase::Combine, BYTES.combine)))
}

/// One send to the next stage.
fn send(on: &Deployment, leaves: bool, bytes: f64) -> Option<f64> {
    let up = on.links.up.as_deref()?;
    let network = if leaves { on.links.out.as_deref()? } else { up };
    let group = Group::within(on.system.levels.get(usize::from(leaves))?, network, 2);
    Some(network::time(Collective::SendRecv, Bytes::b(bytes), &group).total().get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(model: &str, on: &str, context: f64, batch: Option<f64>) -> Request {
        let setting = Setting { model: model.into(), on: on.into(), ..Setting::default() };
        Request { setting, batch, context, ..Request::default() }
    }

    fn placed(r: &Request) -> Answer {
        answer(&rackmath_catalog::embedded(), r).unwrap()
    }

    #[test]
    fn a_layout_that_is_chosen_comes_nearest_to_fitting_where_none_fits() {
        let r = asked("kimi-k2", "8xh200", 128_000.0, None);
        let chosen = placed(&r);
        assert!(!chosen.fits && chosen.layout_chosen);
        // Experts over eight chips and attention eight times: the weights alone are too large. Cut eight times they are not, and an
        // 8-bit cache is enough.
        assert_eq!(chosen.first_change, Some(says("kv_in").with("format", Dtype::Fp8)));
        for (tp, dp, ep) in [(1, 8, 8), (2, 4, 8), (4, 2, 8), (8, 1, 8), (8, 1, 1)] {
            let degrees = DegreesRequest { tp: Some(tp), dp: Some(dp), ep: Some(ep), ..DegreesRequest::default() };
            let other = placed(&Request { degrees, batch: Some(1.0), ..r.clone() });
            assert!(other.missing_bytes >= chosen.missing_bytes, "{}: {}", other.layout, other.missing_bytes);
        }
        // Where several fit it is the usual one.
        assert_eq!(placed(&asked("deepseek-v3", "8xh200", 4096.0, None)).layout, "dp8 ep8");
    }

    #[test]
    fn one_sequence_takes_as_much_of_eight_copies_as_of_one() {
        // 131,072 B a token of Llama 3.1 8B times 128,000: 16.8 GB, whichever of the eight cards it lies on.
        let dp = DegreesRequest { dp: Some(8), ..DegreesRequest::default() };
        let r = asked("llama-3.1-8b", "8xrtx-4090", 128_000.0, Some(1.0));
        let (eight, one) =
            (placed(&Request { degrees: dp, ..r }), placed(&asked("llama-3.1-8b", "rtx-4090", 128_000.0, Some(1.0))));
        assert!(!eight.fits && eight.batch_max == 0.0 && eight.missing_bytes == one.missing_bytes, "{eight:?}");
        assert_eq!(eight.stages[0].kv_bytes, 131_072.0 * 128_000.0);
    }

    #[test]
    fn a_batch_that_was_not_given_is_said_to_fill_the_memory() {
        let r = asked("llama-3.1-8b", "h100", 4096.0, None);
        let a = placed(&r);
        assert!(a.batch_filled && a.batch == a.batch_max, "{a:?}");
        let said = says("fits_filled").with("batch", a.batch).with("context", 4096.0);
        assert_eq!(a.verdict, said.with("alone", 131_072.0));
        let given = placed(&Request { batch: Some(8.0), ..r });
        assert_eq!((given.batch_filled, &*given.verdict.says), (false, "fits_with_spare"));
        assert_eq!(given.context_max_alone, None);
    }
}
