//! Whether a server starts as its command line says, what it would print, and what to change where it does not.
//!
//! The line is read by the flags of its version (`spec::line`), the memory is the engine's own sum ([`rackmath_theory::budget`]),
//! and every change that is named was tried through the same sum. Seconds of a start are those of published logs:
//!
//! $$ t = \frac{W\,n}{r} + (c_0 + c_1 L) + g\,L\,s + t_0 $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | W, n | weights, ranks | B, 1 | weights of a chip, chips of a host that read them |
//! | r | load_gb_per_s | B/s | what a host reads, from its disk or its memory |
//! | c_0, c_1, L | compile_s, compile_layer_s, layers | s, s, 1 | compiling; nothing where it was compiled before or is switched off |
//! | g, s | graph_layer_size_s, sizes | s, 1 | capturing graphs of so many batch sizes |
//! | t_0 | rest_s | s | the dry run, the cache and warming up |
//!
//! Ignores: downloading, memory that other programs hold, and what is named as not modelled.

mod changes;
mod drafted;
mod fitted;
mod method;
mod prints;

pub(crate) use prints::refused;

use crate::desk::line::{self, Source};
use crate::desk::media;
use crate::desk::offload::{self, Offloaded};
use crate::desk::prelude::*;
use crate::setting::{find, machine};
use crate::support::{self, Asked};
use rackmath_spec::System;
use rackmath_spec::command::Age;
use rackmath_spec::engine::Version;
use rackmath_spec::launch::{Dealt, Start};
use rackmath_spec::line::{Launch, Program, Use};
use rackmath_spec::model::{Body, Ffn, Formats, Shape};
use rackmath_theory::adapters::Adapters;
use rackmath_theory::budget::{self, Budget};
use rackmath_theory::count::lora::Targets;
use rackmath_theory::deployment::{Deployment, usual_cache};
use rackmath_theory::layout::check_shape;
use rackmath_theory::split::Card;

/// A command line and the machine it is typed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// The command line of a server in quotes, such as `"vllm serve MODEL -tp 2"`: vLLM, SGLang, TensorRT-LLM, llama.cpp, also
    /// behind `docker run`; or the path of a compose file or of a manifest of Kubernetes.
    #[schemars(extend("x-position" = 1, "x-file" = "command", "x-hyphen" = true, "x-whole" = true))]
    #[educe(Default = "vllm serve meta-llama/Llama-3.1-8B-Instruct")]
    pub command: String,
    /// The machine it starts on: a system, a chip, or so many chips such as `2xh100`; of a chip as many as the line asks for.
    #[schemars(extend("x-flag" = "on system hardware", "x-file" = "machine"))]
    pub on: Option<String>,
    /// The engine's version, where the line does not say it: `vllm@0.19.0`.
    #[schemars(extend("x-flag" = "engine backend"))]
    pub engine: Option<String>,
    /// The model, where the line names a path that says nothing.
    #[schemars(extend("x-flag" = "model", "x-file" = "model"))]
    pub model: Option<String>,
    /// The container, where a file starts several servers.
    pub container: Option<String>,
    /// The file of settings the line names (`--config`, `--extra_llm_api_options`), in YAML.
    #[schemars(extend("x-flag" = "settings", "x-file" = "text", "x-whole" = true))]
    pub settings: Option<String>,
}

/// Whether it starts, and what it prints.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// In words: whether it starts, and what binds.
    pub verdict: Remark,
    /// Whether it starts.
    pub starts: bool,
    /// What the engine says where it does not, in its words.
    pub refusal: Option<Remark>,
    /// The model's name.
    pub model: String,
    /// The machine's name.
    pub system: String,
    /// The engine's name.
    pub engine: String,
    /// Its version, where one was said.
    pub version: Option<String>,
    /// The layout in short.
    pub layout: String,
    /// Chips it takes.
    pub chips: u64,
    /// Weight formats in words.
    pub weights: Remark,
    /// Cache format in words.
    pub kv: Remark,
    /// Each of several cards that share the layers, in their order; what follows is of the last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<CardMemory>,
    /// Memory a program finds on a chip; this and all below are of one chip, in GiB of 2^30 bytes.
    pub total_gib: f64,
    /// The share of it that the engine takes.
    pub utilisation: f64,
    /// Weights.
    pub weights_gib: f64,
    /// The peak of the dry run.
    pub activation_gib: f64,
    /// What libraries take past the allocator.
    pub non_torch_gib: f64,
    /// Captured graphs.
    pub graphs_gib: f64,
    /// What the engine sets aside for them, where it does.
    pub graphs_estimate_gib: f64,
    /// The cache.
    pub kv_cache_gib: f64,
    /// Tokens of the cache as the engine prints them.
    pub kv_cache_tokens: u64,
    /// Tokens of a block.
    pub block_size: u64,
    /// Blocks.
    pub num_gpu_blocks: u64,
    /// Groups of layers that share them: those with windows or states hold less than whole contexts.
    pub kv_cache_groups: u64,
    /// Requests of the longest length that fit at once, as the engine prints it.
    pub max_concurrency: f64,
    /// The longest request allowed.
    pub max_model_len: u64,
    /// Tokens of a pass, as said or by default.
    pub max_num_batched_tokens: u64,
    /// Sequences for which that pass chooses tokens.
    pub dry_run_seqs: u64,
    /// Sequences at once, as said or by default.
    pub max_num_seqs: u64,
    /// The longest request with which it would start, as far as the model goes.
    pub longest_context: u64,
    /// What start-up prints, in the engine's words.
    pub prints: Vec<Remark>,
    /// Flags to change, each tried through the same sum.
    pub changes: Vec<Change>,
    /// Seconds of the start, by part; nothing where no logs are known.
    pub startup: Vec<Seconds3>,
    /// Flags that were obeyed.
    pub obeyed: Vec<String>,
    /// Known flags that change neither memory nor speed here.
    pub ignored: Vec<String>,
    /// Flags that bear on memory, layout or schedule and are not modelled, those of other versions, and unknown ones.
    pub cautions: Vec<Remark>,
    /// Flags the version does not know.
    pub unknown: Vec<String>,
    /// What the numbers assume, and how good they are.
    pub assumptions: Vec<Remark>,
}

/// A flag to change, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// The flag with its value.
    pub flag: String,
    /// What it costs or asks for, where there is something to say.
    pub caution: Option<Remark>,
    /// Whether the server starts then.
    pub starts: bool,
    /// The cache then.
    pub kv_cache_gib: f64,
    /// Its tokens then.
    pub kv_cache_tokens: u64,
    /// Requests of the longest length that fit then.
    pub max_concurrency: f64,
    /// The longest request then.
    pub max_model_len: u64,
}

/// Seconds of one part of a start.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Seconds3 {
    /// Which part.
    pub what: Remark,
    /// The middle of a hundred starts.
    pub seconds: f64,
    /// The tenth.
    pub low: f64,
    /// The ninetieth.
    pub high: f64,
    /// Starts it rests on.
    pub rows: u64,
}

const GIB: f64 = 1_073_741_824.0;

pub(crate) fn gib(bytes: Bytes) -> f64 {
    bytes.get() / GIB
}

/// What one of several cards holds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CardMemory {
    /// Its name.
    pub card: String,
    /// Memory a program finds there, in GiB of 2^30 bytes.
    pub total_gib: f64,
    /// Weights of its layers.
    pub weights_gib: f64,
    /// The cache of its layers.
    pub kv_cache_gib: f64,
}

/// Everything found: what is started, where, by which version.
struct Case {
    launch: Launch,
    on: Deployment,
    start: Start,
    version: Option<Version>,
    weights: Remark,
    kv: Remark,
    /// What the engine says before it looks at memory, and what of the line makes it say so, where that has words of its own.
    early: Option<Remark>,
    because: Option<Remark>,
    /// Tokens the model has positions for, where the line asks for more and nothing else is wrong with it.
    positions: Option<u64>,
    /// Whether experts are cut where no block ends, and nothing else is wrong.
    cut_blocks: bool,
    /// Cards that are there for it, where that is known.
    limit: Option<u64>,
    /// What is to be known before the verdict is believed.
    cautions: Vec<Remark>,
    assumptions: Vec<Remark>,
}

impl Case {
    fn budget(&self) -> Budget {
        self.tried(&self.on, &self.start)
    }

    /// The same of each card that has a part of the model of its own.
    fn each(&self) -> Vec<Budget> {
        let mut all = budget::budgets(&self.on, &self.start, self.version);
        // The card with the cache is counted last and may stand before.
        let main = self.start.main.unwrap_or(0) as usize;
        if self.start.dealt == Dealt::Rows && main < all.len() {
            all[main..].rotate_right(1);
        }
        all
    }

    /// The engine's sum; the longest sequence is what memory holds where the line leaves it to the engine.
    fn tried(&self, on: &Deployment, start: &Start) -> Budget {
        let first = budget::told(on, start, self.version);
        if !(self.launch.fit_longest && matches!(first.refusal, Some(budget::Refusal::TooLong { .. }))) {
            return first;
        }
        let longest = first.longest_possible.min(first.longest);
        budget::budget(on, &Start { longest: Some(longest.max(1)), ..start.clone() }, self.version)
    }
}

/// A model where a line puts it: layers and experts with the host, the others dealt to the cards of the machine.
fn placed(
    catalog: &Catalog,
    launch: &Launch,
    start: &Start,
    others: (&[Arc<System>], bool),
    base: &Deployment,
) -> Result<Deployment, Error> {
    let mut on = base.clone();
    if launch.program != Program::LlamaCpp {
        return Ok(on);
    }
    let layers = on.model.shape().map_or(0, Shape::n_layers);
    if start.layers.is_some_and(|n| n < layers) || start.expert_layers.is_some_and(|n| n > 0) {
        on.split = Some(hosted(start).split(catalog, &on)?.into());
    }
    if !on.system.chip.processor {
        dealt(catalog, launch, start, others, &mut on)?;
    }
    Ok(on)
}

/// How many layers from the first on hold as many experts as the layers that are named.
fn up_to_experts(shape: &Shape, named: &[u64]) -> u64 {
    let experts = |layer: u64| {
        let mut first = 0;
        shape.runs.iter().any(|run| {
            let here = (first..first + run.n).contains(&layer);
            first += run.n;
            here && matches!(run.block.ffn, Ffn::Moe(_))
        })
    };
    let n = named.iter().filter(|layer| experts(**layer)).count();
    (0..shape.n_layers()).filter(|layer| experts(*layer)).nth(n.wrapping_sub(1)).map_or(0, |layer| layer + 1)
}

fn hosted(start: &Start) -> Offloaded {
    Offloaded { gpu_layers: start.layers, n_cpu_moe: start.expert_layers, ..Offloaded::default() }
}

/// The cards of the machine, in their order, and which of them has what is not dealt: the first where rows are cut or all lies on one
/// card, unless told; the last where layers are dealt, which has the output.
fn cards(
    launch: &Launch,
    (others, counted): (&[Arc<System>], bool),
    on: &Deployment,
) -> Result<(Vec<Arc<System>>, usize), Error> {
    let mut all: Vec<Arc<System>> = others.iter().chain([&on.system]).cloned().collect();
    // A machine with a number of cards has no more of them.
    let visible = launch.gpus.map(|n| (n as usize).clamp(1, offload::MOST as usize));
    if let Some(n) = visible.filter(|n| !counted || *n < all.len()) {
        all.resize(n, on.system.clone());
    }
    let main = launch.start.main.unwrap_or(0) as usize;
    let there = all.len() - 1;
    refuse_if(main > there, "command", format!("--main-gpu {main}"), format!("a card from 0 to {there}"))?;
    Ok(if launch.start.dealt == Dealt::Layers { (all, there) } else { (all, main) })
}

/// Deals a model to the cards of a machine as llama.cpp does: all of them by layers, unless the line says otherwise. Rows of every matrix
/// are as many bytes as the same share of the layers.
fn dealt(
    catalog: &Catalog,
    launch: &Launch,
    start: &Start,
    others: (&[Arc<System>], bool),
    on: &mut Deployment,
) -> Result<(), Error> {
    let (mut all, main) = cards(launch, others, on)?;
    let mut shares: Vec<f64> = match &start.shares {
        Some(given) => given.iter().copied().chain(std::iter::repeat(0.0)).take(all.len()).collect(),
        None => all.iter().map(|s| s.chip.memory.seen().get()).collect(),
    };
    // Shares of cards that are not there leave nothing to deal by.
    if shares.iter().sum::<f64>() <= 0.0 {
        let expected = format!("a share above 0 for one of the {} cards", all.len());
        return Err(Error::value("command", "--tensor-split", expected));
    }
    // Of cards that layers are dealt to, the last with a share has the output.
    let main = match start.dealt {
        Dealt::Layers => shares.iter().rposition(|share| *share > 0.0).unwrap_or(main),
        Dealt::Rows | Dealt::One => main,
    };
    if start.dealt == Dealt::Layers {
        all.truncate(main + 1);
        shares.truncate(main + 1);
    }
    on.system = all.remove(main);
    let own = shares.remove(main);
    if all.is_empty() || start.dealt == Dealt::One {
        return Ok(());
    }
    let mut split = hosted(start).split(catalog, on)?;
    let layers = on.model.shape().map_or(0, Shape::n_layers);
    if start.dealt == Dealt::Rows {
        let (sum, here) = (shares.iter().sum::<f64>() + own, layers as f64 - split.layers);
        split.cards = all.into_iter().zip(shares).map(|(system, s)| Card { system, layers: here * s / sum }).collect();
        split.cache = false;
    } else {
        shares.push(own);
        offload::deal(&mut split, layers, &all, &shares);
    }
    on.split = Some(split.into());
    Ok(())
}

/// Slots for adapters, each as large as the largest rank.
fn adapters(catalog: &Catalog, launch: &Launch) -> Result<Option<Adapters>, Error> {
    let Some((slots, rank)) = launch.start.adapters else { return Ok(None) };
    let sharded = launch.flags.iter().any(|f| f.flag.contains("fully-sharded-loras"));
    let kernels = catalog.small_kernels()?.adapters;
    let (targets, served, skew, stall) = (Targets::All, slots, 0.0, 0.0);
    Ok(Some(Adapters { slots, rank, targets, sharded, served, skew, kernels, stall }))
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let case = case(catalog, request)?;
    let b = case.budget();
    let refusal = case.early.clone().or_else(|| prints::refusal(&case.launch, &case.on, &b, &case.each()));
    let starts = refusal.is_none();
    // llama.cpp takes a context beyond the model's, others where a line stretches it.
    let beyond = case.launch.program == Program::LlamaCpp || stretched(&case.launch);
    let told = if beyond { b.longest } else { 0 };
    let longest = b.longest_possible.min(context(&case.on).unwrap_or(u64::MAX).max(told)).min(1 << 40);
    let (launch, on) = (&case.launch, &case.on);
    let list = catalog.flag_list(launch.program.list())?;
    let mut assumptions = case.assumptions.clone();
    // An engine that ends early would have ended later as well.
    assumptions.extend(
        b.refusal.filter(|_| case.early.is_some()).map(|later| says("check_later").with("why", prints::why(&later))),
    );
    let unknown = line::used(launch, |u| matches!(u, Use::Unknown(_) | Use::Other { .. }));
    let cards = on.split.as_ref().filter(|s| !s.cards.is_empty()).map(|s| s.cards.len() as u64 + 1);
    Ok(Answer {
        verdict: verdict(&case, &b, starts, longest),
        starts,
        refusal,
        model: on.model.name.clone(),
        system: on.system.name.clone(),
        engine: on.engine.name.clone(),
        version: launch.version.clone(),
        layout: match cards.filter(|_| launch.start.dealt == Dealt::Rows) {
            Some(n) => format!("rows of matrices over {n} cards"),
            None => offload::layout_words(on),
        },
        chips: cards.unwrap_or_else(|| on.layout.chips()),
        weights: case.weights.clone(),
        kv: case.kv.clone(),
        cards: held_by_cards(&case),
        total_gib: gib(b.total),
        utilisation: b.utilisation.get(),
        weights_gib: gib(b.weights),
        activation_gib: gib(b.activation),
        non_torch_gib: gib(b.outside),
        graphs_gib: gib(b.graphs),
        graphs_estimate_gib: gib(b.estimate),
        kv_cache_gib: gib(b.cache),
        kv_cache_tokens: b.tokens,
        block_size: b.block,
        num_gpu_blocks: b.blocks,
        kv_cache_groups: b.pages.groups(),
        max_concurrency: b.concurrency,
        max_model_len: b.longest,
        max_num_batched_tokens: b.pass,
        dry_run_seqs: b.chosen,
        max_num_seqs: b.sequences,
        longest_context: longest,
        prints: if case.early.is_some() { Vec::new() } else { prints::lines(launch, on, &b, &case.each()) },
        changes: changes::tried(catalog, &case, &b, starts),
        startup: list
            .startup
            .as_ref()
            .filter(|_| starts)
            .map_or_else(Vec::new, |rule| prints::seconds(rule, &case.start, on, &b)),
        obeyed: line::used(launch, |u| *u == Use::Obeyed),
        ignored: line::used(launch, |u| *u == Use::Idle),
        cautions: case.cautions.iter().cloned().chain(line::cautions(launch)).chain(tight(&case, &b)).collect(),
        unknown,
        assumptions,
    })
}

/// What each of several cards is asked for, in their order; nothing of one.
fn held_by_cards(case: &Case) -> Vec<CardMemory> {
    let Some(split) = case.on.split.as_deref().filter(|split| !split.cards.is_empty()) else { return Vec::new() };
    let names = split.cards.iter().map(|card| &card.system).chain([&case.on.system]);
    let of = |(system, b): (&Arc<System>, Budget)| CardMemory {
        card: system.chip.name.clone(),
        total_gib: gib(b.total),
        weights_gib: gib(b.weights),
        kv_cache_gib: gib(b.cache),
    };
    names.zip(budget::budgets(&case.on, &case.start, case.version)).map(of).collect()
}

/// A share that was said and leaves less beside the cache than the engine's makers ask for.
fn tight(case: &Case, b: &Budget) -> Option<Remark> {
    let (left, asked) = b.tight.filter(|_| case.start.utilisation.is_some() && b.starts())?;
    let said = says("check_tight").with("engine", case.launch.program.name());
    Some(said.with("left", left).with("asked", asked))
}

fn context(on: &Deployment) -> Option<u64> {
    on.model.shape().and_then(|shape| shape.context_max)
}

fn verdict(case: &Case, b: &Budget, starts: bool, longest: u64) -> Remark {
    let engine = case.launch.program.name();
    if starts && b.tokens == 0 {
        let said = says("check_starts_uncached").with("engine", engine).with("cache", b.cache);
        return said.with("sequences", b.sequences).with("longest", b.longest);
    }
    if starts {
        // Of several cards each keeps the cache of its own layers.
        let each = case.each();
        let cache = Bytes::b(each.iter().map(|b| b.cache.get()).sum());
        let several = (each.len() > 1).then_some(each.len());
        let cache = if several.is_some() { cache } else { b.cache };
        let said = says("check_starts").with("engine", engine).with("cache", cache).with("tokens", b.tokens);
        let said = said.with("cards", several);
        let said = said.with("requests", whole_from_hundred(b.concurrency)).with("longest", b.longest);
        // The cache or the cap on sequences: whichever ends first.
        let cap = (b.sequences as f64) < b.concurrency;
        return said.with("cap", cap.then_some(b.sequences)).with("larger", (longest > b.longest).then_some(longest));
    }
    let said = says("check_refuses").with("engine", engine);
    match (&case.early, b.refusal) {
        (Some(_), _) if prints::parser(&case.launch).is_some() => said.with("why", untaken(&case.launch)),
        (Some(_), _) => said.with("why", case.because.clone().unwrap_or_else(|| says("check_refused_early"))),
        (None, Some(refusal)) => prints::refused(engine, &refusal).with("why", why(case, &refusal)),
        (None, None) => said,
    }
}

/// Requests of which a part is none, where it does not show: of a hundred and more no next whole one is claimed.
pub fn whole_from_hundred(requests: f64) -> f64 {
    if requests >= 100.0 { requests.floor() } else { requests }
}

/// What memory refuses, and how much of the weights are slots for adapters.
fn why(case: &Case, refusal: &budget::Refusal) -> Remark {
    let held = case.on.adapters.zip(case.on.model.shape()).map(|(a, shape)| a.held(shape, &case.on.layout.degrees()));
    prints::why(refusal).with("adapters", held.filter(|held| held.get() > 0.0))
}

/// Flags that the version does not take; of the newest, the last release that took all of them.
fn untaken(launch: &Launch) -> Remark {
    let flags = line::used(launch, |u| matches!(u, Use::Unknown(_) | Use::Other { .. }));
    let gone = |used: &Use| match used {
        Use::Other { until, .. } => until.clone(),
        _ => None,
    };
    let unknown = launch.flags.iter().any(|f| matches!(f.used, Use::Unknown(_)));
    let last = launch.flags.iter().filter_map(|f| gone(&f.used)).min_by_key(|text| text.parse::<Version>().ok());
    let last = last.filter(|_| launch.version.is_none() && !unknown);
    let instead = |used: &Use| match used {
        Use::Other { instead, .. } => instead.clone(),
        _ => None,
    };
    let instead: Vec<String> = launch.flags.iter().filter_map(|f| instead(&f.used)).collect();
    let said = says("check_refused_flags").with("flags", flags).with("version", launch.version.clone());
    let said = said.with("instead", Some(instead.join(", ")).filter(|text| !text.is_empty()));
    said.with("family", last.as_ref().map(|_| launch.program.to_string())).with("until", last)
}

/// llama.cpp holds a cache as long as it is told, and gives a slot no more of it than the model was trained for: "the slot context (65536)
/// exceeds the training context of the model (40960) - capping" (ggml-org/llama.cpp issues 17459 and 22140).
fn capped(launch: &Launch, start: &Start, on: &Deployment) -> Option<Remark> {
    let positions = context(on).filter(|_| launch.program == Program::LlamaCpp)?;
    let slots = if start.unified { 1 } else { start.sequences.unwrap_or(1).max(1) };
    let slot = start.longest.map(|tokens| tokens / slots).filter(|slot| *slot > positions)?;
    Some(says("check_slot_capped").with("slot", slot).with("positions", positions))
}

#[expect(clippy::too_many_lines, reason = "what a line names, found in the order in which a server finds it")]
fn case(catalog: &Catalog, request: &Request) -> Result<Case, Error> {
    let (family, wanted) = match request.engine.as_deref().map(|text| text.split_once('@').unwrap_or((text, ""))) {
        Some((family, version)) => (Some(family.parse::<Program>().map_err(|e| e.at("engine"))?), Some(version)),
        None => (None, None),
    };
    let source = Source {
        text: &request.command,
        program: family,
        container: request.container.as_deref(),
        settings: request.settings.as_deref(),
        version: wanted.filter(|version| !version.is_empty()),
    };
    let mut launch = line::read(catalog, source).map_err(|e| e.at("command"))?;
    if let Some(family) = family.filter(|family| *family != launch.program) {
        let expected = format!("{}: the line starts {}", launch.program, launch.program.name());
        return Err(Error::value("engine", format!("\"{family}\""), expected));
    }
    let mut assumptions = Vec::new();
    let engine = engine_of(&launch);
    let (engine, uncovered) = catalog.engine(&engine)?;
    assumptions.extend(uncovered.map(|version| support::not_covered(&engine, version)));
    if launch.version.is_none() {
        assumptions.push(says("no_version").with("name", support::counted_as(&engine)).with("as_of", &engine.as_of));
    }
    let version = launch.version.as_deref().and_then(|text| text.parse::<Version>().ok());
    let (setting, counted) = setting(request, &launch)?;
    assumptions.extend(catalog.context_of(&setting.model).map(|tokens| says("check_context").with("tokens", tokens)));
    let together = launch.program == Program::LlamaCpp && offload::dealt(catalog, &setting, &engine, false);
    let (alone, others) = if together { offload::cards(catalog, &setting)? } else { Default::default() };
    let mut found = find(catalog, if together { &alone } else { &setting })?;
    let on = &mut found.deployment;
    let mut cautions = Vec::new();
    if setting.weights.is_none() && catalog.leaves_format_open(&setting.model) {
        cautions.push(says("check_format_open").with("format", on.formats.linear));
    }
    if let Some((named, shape)) = launch.start.expert_at.as_deref().zip(on.model.shape()) {
        launch.start.expert_layers = Some(up_to_experts(shape, named));
    }
    if launch.kv.is_none() {
        on.kv = usual_cache(&on.model, on.formats, &engine);
        // llama.cpp keeps 16 bits in the one format of them, whatever the model's own.
        if launch.program == Program::LlamaCpp && on.kv == Dtype::Bf16 {
            on.kv = Dtype::Fp16;
        }
        // A checkpoint may bring the format of its cache along.
        if let Some(own) = brought(&launch, &setting.model) {
            on.kv = own;
            assumptions.push(says("check_cache_brought").with("format", own));
        }
    }
    formatted(&launch, &mut found.deployment, &mut assumptions);
    let on = &mut found.deployment;
    on.engine = engine;
    on.layout = launch.layout;
    on.adapters = adapters(catalog, &launch)?;
    if let Some(held) = on.adapters.zip(on.model.shape()).map(|(a, shape)| a.held(shape, &on.layout.degrees())) {
        assumptions.push(says("check_adapters").with("bytes", held));
    }
    if !matches!(on.model.body, Body::Layers(_)) {
        assumptions.push(says("check_lump").with("model", &on.model.name));
    }
    assumptions.extend(media::text_only(&on.model));
    // A type that is named is not cast, nor is a format.
    let named = setting.weights.as_deref().or(launch.dtype.as_deref());
    let standing = support::stand(catalog, on, Asked::by(named), version)?;
    standing.apply(&mut on.formats, &mut on.kv, &mut on.system);
    let split_block = standing.split_block(&on.layout);
    assumptions.extend(standing.remarks);
    // Whole machines have as many cards as they have; a bare chip is as many as the line takes, unless it names them.
    let there = (counted || on.system.n_chips > 1).then_some(on.system.n_chips);
    let there = if together { Some(others.others.len() as u64 + 1) } else { there };
    let limit = [there, launch.gpus].into_iter().flatten().min();
    let early = early(&launch, on, limit);
    let words = drafted::put(catalog, &launch, on, &mut assumptions)?;
    let (method, because) =
        method::mismatched(&launch, &setting.model, on).or(words).filter(|_| early.is_none()).unzip();
    let sees = limit.filter(|has| *has < launch.layout.chips() && prints::parser(&launch).is_none());
    let sees = sees.filter(|_| launch.program != Program::LlamaCpp && early.is_some());
    let few = sees.map(|has| says("check_sees_too_few").with("chips", launch.layout.chips()).with("has", has));
    let because = because.or(few);
    let early = early.or(method);
    let long = if early.is_none() { beyond(catalog, &launch, on)? } else { None };
    let alone = long.is_some() && standing.refusal.is_none() && split_block.is_none();
    let positions = context(on).filter(|_| alone);
    let early =
        early.or(long).or_else(|| standing.refusal.map(|refusal| says("check_not_supported").with("why", refusal.why)));
    let cut_blocks = early.is_none() && split_block.is_some();
    let early = early.or_else(|| {
        split_block.map(|(width, part)| {
            let routed = matches!(width, support::Width::Expert(_));
            says(if routed { "check_blocks" } else { "check_blocks_shared" }).with("part", part)
        })
    });
    let mut start = launch.start.clone();
    if let Some(scale) = scaled(&launch, on) {
        start.longest = start.longest.or(Some(scale));
    }
    let list = catalog.flag_list(launch.program.list())?;
    let name = others.name.clone().unwrap_or_else(|| on.system.name.clone());
    let place = |start: &Start| placed(catalog, &launch, start, (&others.others, counted), on);
    let fits = list.age("--fit", launch.version.as_deref()) == Age::Known;
    let lowered = fitted::lowered(&launch, &start, version, fits, &place)?;
    cautions.extend(lowered.as_ref().map(|(_, said)| said.clone()));
    start = lowered.map_or(start, |(start, _)| start);
    cautions.extend(capped(&launch, &start, on));
    let there = place(&start)?;
    *on = there;
    Arc::make_mut(&mut on.system).name = name;
    assumptions
        .push(says("check_machine").with("system", &on.system.name).with("memory", on.system.chip.memory.size()));
    if on.split.as_ref().is_some_and(|split| split.layers > 0.0 || split.experts > 0.0) {
        assumptions.push(says("check_split"));
    }
    let accuracy = match list.startup.as_ref().map(|rule| &rule.held) {
        Some(held) => {
            let said = says("check_accuracy").with("rows", held.rows).with("median", held.median);
            let said = said.with("within", held.within).with("starts", held.starts);
            said.with("refusals", held.refusals).with("refused", held.refused)
        }
        None => says("check_accuracy_unknown"),
    };
    assumptions.push(accuracy.with("engine", launch.program.name()));
    let weights = found.format_words();
    let kv = start.halves.map_or_else(|| found.kv_words(), |(k, v)| format!("{k} keys and {v} values").into());
    let on = found.deployment;
    Ok(Case {
        launch,
        on,
        start,
        version,
        weights,
        kv,
        early,
        because,
        positions,
        cut_blocks,
        limit,
        cautions,
        assumptions,
    })
}

/// llama.cpp keeps a context for all its slots together.
fn scaled(launch: &Launch, on: &Deployment) -> Option<u64> {
    (launch.program == Program::LlamaCpp).then(|| context(on)).flatten()
}

/// The engine's name with its version; vLLM's first engine where a variable asks for it.
fn engine_of(launch: &Launch) -> String {
    let family = launch.program.to_string();
    let old = launch.program == Program::Vllm && launch.env.get("VLLM_USE_V1").is_some_and(|v| v == "0");
    match &launch.version {
        _ if old => format!("{family}@0.7.3"),
        Some(version) => format!("{family}@{version}"),
        None => family,
    }
}

/// Model and machine of a line, and whether the machine has so many chips and no more.
fn setting(request: &Request, launch: &Launch) -> Result<(Setting, bool), Error> {
    let model = request
        .model
        .clone()
        .or_else(|| launch.model.as_deref().map(model_named))
        .ok_or_else(|| Error::said("the line names no model").hint("put it in, or give {model}"))?;
    let on = request.on.clone().ok_or_else(|| {
        let chips = launch.gpus.filter(|n| *n > 0).unwrap_or_else(|| launch.layout.chips());
        let such = if chips > 1 { format!("{chips}xh100") } else { "h100".into() };
        Error::said("no machine is given").hint(format!("say what it starts on with {{on}}, such as {such}"))
    })?;
    let weights = launch.weights.clone();
    let setting = Setting { model, on, weights, kv: launch.kv.clone(), ..Setting::default() };
    let (name, _) = machine(&setting.on)?;
    // A bare chip is as many of them as the line takes; a machine with a number has no more.
    let counted = name.trim_start().starts_with(|c: char| c.is_ascii_digit()) || rented(name);
    Ok((setting, counted))
}

/// Whether a name is that of an instance in a cloud (`g6e.xlarge`, `a3-highgpu-1g`, `NC40ads_H100_v5`), which has so many cards and no
/// more.
fn rented(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    let azure = name.strip_prefix("standard_").unwrap_or(&name);
    let azure = azure.strip_prefix("nc").or_else(|| azure.strip_prefix("nd"));
    name.ends_with("xlarge")
        || ["gpu-", "g2-standard-"].iter().any(|part| name.contains(part)) && !name.ends_with("gb")
        || azure.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The name in a path: `/models/Qwen3-32B-Q4_K_M.gguf` and `/data/Qwen/Qwen3-32B/` hold one in their last parts.
fn model_named(text: &str) -> String {
    let trimmed = text.trim_end_matches('/');
    let path = trimmed.starts_with(['/', '.', '~']) || trimmed.matches('/').count() > 1;
    // That it is a file of llama.cpp says how wide it is where its name does not.
    let read = |name: &str| name.strip_suffix(".gguf").map_or_else(|| name.to_owned(), |stem| format!("{stem}-GGUF"));
    if !path {
        return read(trimmed);
    }
    // A snapshot of the hub's cache: models--Qwen--Qwen3-8B/snapshots/2069b3f.
    if let Some(repo) = trimmed.split('/').find_map(|part| part.strip_prefix("models--")) {
        return repo.replacen("--", "/", 1);
    }
    read(trimmed.rsplit('/').next().unwrap_or(trimmed))
}

/// The format of the cache that a checkpoint's name stands for; files of llama.cpp hold none.
fn brought(launch: &Launch, model: &str) -> Option<Dtype> {
    let looks = !matches!(launch.program, Program::LlamaCpp);
    rackmath_spec::name::cache(model).filter(|_| looks)
}

/// Types that a line forces on weights: of 16 or 32 bits, where the checkpoint's are such.
fn formatted(launch: &Launch, on: &mut Deployment, assumptions: &mut Vec<Remark>) {
    let Some(dtype) = launch.dtype.as_deref().and_then(Dtype::named) else { return };
    let plain = |d: Dtype| matches!(d, Dtype::Fp32 | Dtype::Bf16 | Dtype::Fp16);
    let cast = |d: Dtype| if plain(d) { dtype } else { d };
    let f = on.formats;
    on.formats = Formats { routed: cast(f.routed), linear: cast(f.linear), mixer: cast(f.mixer), other: cast(f.other) };
    if launch.kv.is_none() && plain(on.kv) {
        on.kv = dtype;
    }
    assumptions.push(says("check_dtype").with("format", dtype));
}

/// What an engine refuses before it looks at memory: unknown flags, too many chips, degrees that do not divide.
fn early(launch: &Launch, on: &mut Deployment, limit: Option<u64>) -> Option<Remark> {
    let chips = launch.layout.chips();
    let has = limit.unwrap_or(chips);
    if on.system.n_chips < chips.max(has) {
        let own = Arc::make_mut(&mut on.system);
        own.n_chips = chips.max(has);
        own.name = format!("{} x {}", own.n_chips, own.chip.name);
    }
    if let Some(parsed) = prints::parser(launch) {
        return Some(parsed);
    }
    // llama.cpp takes the cards it sees, or none.
    if chips > has && launch.program != Program::LlamaCpp {
        return Some(prints::too_few(launch, chips, has));
    }
    let shape = on.model.shape();
    if let Some(illegal) = shape.and_then(|shape| check_shape(shape, &launch.layout.degrees()).err()) {
        return Some(
            says("check_illegal")
                .with("degree", illegal.degree)
                .with("given", illegal.given)
                .with("expected", illegal.expected),
        );
    }
    None
}

/// Whether a line asks for positions that the model's config does not have.
fn stretched(launch: &Launch) -> bool {
    launch.env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN").is_some_and(|v| v != "0")
        || launch.flags.iter().any(|f| {
            f.flag.contains("hf-overrides")
                || f.flag.contains("hf_overrides")
                || f.flag.contains("rope-scaling")
                || f.flag.contains("override-args")
        })
}

/// A context beyond the model's.
fn beyond(catalog: &Catalog, launch: &Launch, on: &Deployment) -> Result<Option<Remark>, Error> {
    let longest = launch.start.longest.filter(|_| !stretched(launch) && launch.program != Program::LlamaCpp);
    let Some(longest) = longest else { return Ok(None) };
    Ok(support::too_long(catalog, &on.model, &on.engine, longest as f64)?.map(|refusal| refusal.why))
}
