//! A model on machines: what every chip holds, computes and sends, whether it fits, and what chokes.

mod cards;
mod engine;

pub use crate::desk::cut::{DegreesRequest, usual};
pub use cards::{ExpertCard, StageCard, TrafficCard};
pub use engine::EngineCard;

use crate::desk::cut::{nearest, pick};
use crate::desk::line;
use crate::desk::media;
use crate::desk::prelude::*;
use crate::desk::remedy::first_change;
use crate::desk::setting::{AUTO, LLAMA_CPP, usual_engine};
use crate::offload::{self, OffloadCard, Offloaded};
use crate::support::{self, Asked};
use cards::{expert_card, stage_card, traffic};
use engine::{as_counted, counted};
use rackmath_spec::engine::Engine;
use rackmath_spec::file::flags::{self, Tool};
use rackmath_spec::launch::Start;
use rackmath_spec::line::Means;
use rackmath_spec::memory::Way;
use rackmath_spec::{Model, VariantArray as _};
use rackmath_theory::deployment::{Deployment, usual_cache};
use rackmath_theory::experts::Routing;
use rackmath_theory::placement::{self, Fit, Load, Placement};

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
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flag" = "gpu-memory-utilization mem-fraction-static kv-cache-free-gpu-memory-fraction", "x-unit" = "share", "x-none" = "what the engine's version takes; 90 % where none is asked"))]
    pub memory_utilisation: Option<f64>,
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
    /// A warning when the cache alone is too large, so that no pipeline depth can help, or when not all of the model is counted.
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
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    started(catalog, request, &Start::default())
}

/// The same for a server that was told more than a request says.
#[expect(clippy::too_many_lines, reason = "an answer, field by field")]
fn started(catalog: &Catalog, request: &Request, told: &Start) -> Result<Answer, Error> {
    let request = &chosen(catalog, request);
    if let Some((asked, start, said)) = obeyed(catalog, request)? {
        let mut answer = started(catalog, &asked, &start)?;
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
    let utilisation = utilisation(request.memory_utilisation.unwrap_or(USUAL_SHARE))?;
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
    let budget = request.engine.as_deref().map(|name| counted(catalog, name, request, told, &r)).transpose()?;
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
    // What is offered starts when it is applied, by an engine that runs it there.
    let starts = |next: &Deployment| {
        let asked = request.engine.as_deref();
        let runs = |name| matches!(engine::barred(catalog, name, request, next), Ok(None));
        let begins = |name| counted(catalog, name, request, told, next).is_ok_and(|(budget, ..)| budget.starts());
        asked.is_none_or(|name| runs(name) && begins(name))
    };
    let (ideal, _) = catalog.engine("ideal")?;
    let barred = request.engine.as_deref().map(|name| engine::barred(catalog, name, request, &r)).transpose()?;
    let long = support::too_long(catalog, &r.model, &ideal, context.get())?.filter(|_| !request.pretend);
    let long = barred.flatten().or(long);
    // No machine has positions that the model lacks: what is offered stays within them.
    let own = r.model.shape().and_then(|shape| shape.context_max).filter(|_| !request.pretend).map(|n| n as f64);
    let (within, helps) = (|l: f64| own.map_or(l, |own| l.min(own)), !fits && long.is_none());
    let filled = wanted.is_none();
    let share = budget.as_ref().filter(|_| most < 1.0).and_then(|(budget, _, card)| engine::larger_share(budget, card));
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
        chips: r.chips() as u64,
        chips_available: if together { cards.others.len() as u64 + 1 } else { r.system.n_chips },
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
            _ => share.or_else(|| first_change(&r, &load, most, starts)),
        },
        warning: (kv_alone && !fits)
            .then(|| says("kv_alone_too_large"))
            .or_else(|| {
                lacks
                    .filter(|_| !fits)
                    .map(|(card, lacks)| says("card_too_small").with("card", card).with("missing", lacks))
            })
            .or_else(|| offload::host_lacks(&r, &load).map(|missing| says("host_too_small").with("missing", missing)))
            .or_else(|| media::text_only(&r.model)),
        split_that_fits: if helps { offload::would_fit(catalog, &request.offload, &r, &load, |_| None) } else { None },
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
    let engine = match &request.flags {
        Some(_) => None,
        None if parted => Some(LLAMA_CPP.to_owned()),
        None => Some(usual_engine(catalog, &request.setting).to_owned()),
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
    if request.memory_utilisation.is_none() {
        load.utilisation = None;
    }
}

/// The request as a server's command line beside it says, with what became of its flags.
fn obeyed(catalog: &Catalog, request: &Request) -> Result<Option<(Request, Start, Vec<Remark>)>, Error> {
    let Some(text) = &request.flags else { return Ok(None) };
    let Some((launch, engine)) = line::beside(catalog, text, request.tool.as_deref(), "vllm")? else {
        return Ok(None);
    };
    let (pass, sequences) = line::of_group(&launch);
    let usual = Request::default();
    let engine = request.engine.clone().or(Some(engine));
    let mut r = Request { flags: None, tool: None, degrees: line::degrees(&launch), engine, ..request.clone() };
    let own = request.degrees != DegreesRequest::default();
    let both = "the layout in {flags} or in degrees of its own, not both";
    refuse_if(own && launch.cut, "flags", format!("{} beside other degrees", launch.layout), both)?;
    line::formats(&launch, &mut r.setting)?;
    let groups = launch.layout.degrees().dp as f64;
    r.batch = r.batch.or(sequences.map(|n| n * groups));
    let own = |given: f64, usual: f64, said: Option<f64>| said.filter(|_| given == usual).unwrap_or(given);
    r.context = own(r.context, usual.context, launch.start.longest.map(|n| n as f64));
    r.max_num_batched_tokens = own(r.max_num_batched_tokens, usual.max_num_batched_tokens, pass);
    let (own, taken) = (r.memory_utilisation, launch.start.utilisation.map(Fraction::get));
    r.memory_utilisation = line::either(&launch, &[Means::Utilisation], "memory_utilisation", own, taken)?;
    r.offload = line::offloaded(&launch, &r.offload)?;
    let mut said = line::remarks(&launch, |sets| line::of_adapters(sets) || line::of_cards(sets));
    if let Some(model) = launch.model.as_ref().filter(|model| **model != r.setting.model) {
        said.insert(0, says("flags_other_model").with("line", model).with("asked", &r.setting.model));
    }
    // What lies elsewhere is placed there.
    let start = Start { offload: None, layers: None, expert_layers: None, shares: None, ..launch.start };
    Ok(Some((r, start, said)))
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

/// The share of a chip's memory that is filled where no engine is asked and none is said.
pub(crate) const USUAL_SHARE: f64 = 0.9;

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

    #[test]
    fn a_line_beside_it_is_counted_and_what_it_does_not_count_is_said() {
        let with = |flags: &str| {
            let r =
                Request { flags: Some(format!("vllm serve x {flags}")), ..asked("llama-3.1-8b", "h100", 4096.0, None) };
            let a = placed(&r);
            let aside = a.assumptions.iter().any(|said| said.says == "flags_aside");
            (a.engine.map_or(0.0, |card| card.kv_cache_gib), aside)
        };
        let plain = with("").0;
        // Four of the fifteen GiB of weights lie in the host's memory; ten are the cache, whatever else is there.
        assert!((with("--cpu-offload-gb 4").0 - plain - 4.0).abs() < 0.01, "{plain}");
        assert_eq!(with("--kv-cache-memory-bytes 10G"), (10.0, false));
        assert_eq!(with("--enable-lora --max-loras 16"), (plain, true));
    }

    #[test]
    fn what_an_engine_does_not_run_is_said_before_what_fits() {
        // Sparse latent attention of vLLM needs Hopper or Blackwell.
        let glm = |on: &str| Request {
            engine: Some(AUTO.into()),
            degrees: DegreesRequest { tp: Some(8), ..DegreesRequest::default() },
            ..asked("glm-5.1", on, 4096.0, None)
        };
        let a = placed(&glm("8xa100"));
        assert!(!a.fits && a.verdict.says == "not_placed" && a.first_change.is_none(), "{:?}", a.verdict);
        let narrow = Setting { weights: Some("int4".into()), ..glm("8xa100").setting };
        assert!(!placed(&Request { setting: narrow, ..glm("8xa100") }).fits);
        assert!(placed(&Request { pretend: true, ..glm("8xa100") }).verdict.says != "not_placed");
        assert!(placed(&glm("8xh200")).verdict.says != "not_placed");
    }

    #[test]
    fn a_larger_share_is_the_first_change_where_it_is_all_that_is_missing() {
        let share = |share: f64| Request {
            engine: Some("vllm".into()),
            memory_utilisation: Some(share),
            ..asked("qwen3-32b", "h100", 4096.0, None)
        };
        let a = placed(&share(0.8));
        let change = a.first_change.expect("a share");
        assert_eq!(change.says, "larger_share");
        let from = a.engine.unwrap().utilisation_from.unwrap();
        assert!(placed(&share(from)).fits && !placed(&share(from - 0.01)).fits);
    }
}
