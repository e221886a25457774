//! The memory of a chip as an engine counts it when it starts: what it finds, what it takes, what is left for the cache, and
//! whether it starts at all.
//!
//! $$ C = u M - W - A - O - G \qquad A = B + \max(P, S) \qquad P = T (b_h h + b_i i) + f \qquad S = N V b_s + 2 T h + f $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | C | cache | B | what is left for the cache on one chip |
//! | u, M | utilisation, total | 1, B | the share an engine takes, and the memory a program finds on the chip |
//! | W | weights | B | weights of the chip: its share of the model, and what stands beside it |
//! | A | activation | B | the most a dry run of the longest pass takes |
//! | O | outside | B | what libraries take past the allocator: contexts, buffers of collectives |
//! | G | estimate | B | what the engine sets aside for captured graphs; nothing before it began to |
//! | P, S | - | B | the pass itself, and choosing the next tokens of a full batch, which share memory |
//! | B | - | B | buffers of experts that stay |
//! | T, N, V, h, i | pass, sequences, vocab, hidden, inner | tokens, 1, 1, 1, 1 | tokens of a pass, sequences, vocabulary, widths |
//! | b_h, b_i, b_s, f | hidden_bytes, inner_bytes, sampler_bytes, pass_gib | B | constants of the engine's version |
//!
//! That is vLLM's way. SGLang leaves the share (1 - u) of what it found before the weights and takes the rest,
//! $C = F - W - (1 - u) F$; TensorRT-LLM takes the share u of what is free when all else is there, $C = u (M - W - A - O)$;
//! llama.cpp takes what was asked for and fails where it is not there. How the cache becomes blocks and tokens stands in
//! [`crate::pages`]. The pool of a pipeline follows its fullest stage, what is printed is the first stage's.
//!
//! Source: vllm-project/vllm vllm/v1/worker/gpu_worker.py, sgl-project/sglang model_runner.py and server_args.py, NVIDIA/TensorRT-LLM
//! _torch/pyexecutor/_util.py, and logs of starts; the constants of each version stand with theirs in the catalogue's engines.
//! A dry run also encodes the largest pictures a pass has tokens for, $E = n\,p\,h_t (b_p + b_s / d)$ for $n$ pictures of $p$ patches,
//! a tower as wide as $h_t$ and $d$ ranks; the peak is the larger of that and of the pass with what was encoded beside it.
//! Ignores: films of Qwen3-VL in vLLM 0.11 to 0.15 (2.8 GiB), towers for sound in a dry run, memory that other programs hold, and what
//! an allocator loses between its pieces.

mod loaded;
mod pass;

use loaded::{as_stored, draft_layers, draft_weights, eagle_weights, filling, is_eagle, made_when_loaded, unloaded};
use pass::{activation, pictures};

use crate::count::towers::tower;
use crate::deployment::Deployment;
use crate::layout::stage_layers;
use crate::pages::{Kept, Pages};
use crate::placement::{Held, Load, stage_weights};
use crate::split::Split;
use rackmath_spec::engine::{Engine, Version};
use rackmath_spec::launch::Start;
use rackmath_spec::memory::{Graphs, MemoryRule, Reserve, Way};
use rackmath_spec::model::{Body, Ffn, Shape};
use rackmath_spec::tower::Sense;
use rackmath_units::{Bytes, Fraction};
use std::sync::Arc;

const GIB: f64 = 1_073_741_824.0;
const MIB: f64 = 1_048_576.0;
/// Tokens of a sequence where neither a command line nor a model says how long one may be.
const LONGEST: u64 = 8192;

/// What an engine finds, takes and prints when it starts; bytes are those of one chip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    pub way: Way,
    pub utilisation: Fraction,
    /// Memory a program finds on the chip.
    pub total: Bytes,
    /// What the engine allows itself: its share, for what is named below.
    pub usable: Bytes,
    pub weights: Bytes,
    /// The peak of a dry run.
    pub activation: Bytes,
    /// What captured graphs take, and what the engine sets aside for them beforehand.
    pub graphs: Bytes,
    pub estimate: Bytes,
    /// Taken past the allocator.
    pub outside: Bytes,
    /// States that are set apart before the cache.
    pub state: Bytes,
    /// What is left for the cache; nothing where too little is.
    pub cache: Bytes,
    pub pages: Pages,
    /// Tokens of a block, and how many blocks there are.
    pub block: u64,
    pub blocks: u64,
    /// Tokens of the cache as the engine prints them.
    pub tokens: u64,
    /// Sequences of the longest length that fit, as the engine prints it.
    pub concurrency: f64,
    /// The longest sequence allowed, and the longest with which it would start.
    pub longest: u64,
    pub longest_possible: u64,
    /// Tokens of a pass and sequences at once, as said or by default.
    pub pass: u64,
    pub sequences: u64,
    /// Sequences for which the dry run, or a pass that is served, chooses tokens at once.
    pub chosen: u64,
    /// What stays free beside the cache and what the engine's makers ask for, where that is more.
    pub tight: Option<(Bytes, Bytes)>,
    pub refusal: Option<Refusal>,
}

/// Why an engine does not start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refusal {
    /// Less is free than the share asked for.
    NotFree { free: Bytes, desired: Bytes },
    /// Weights alone are larger than the chip: it runs out of memory while they are loaded.
    Weights { needed: Bytes, free: Bytes },
    /// Nothing is left for the cache.
    NoRoom { missing: Bytes },
    /// What is left does not hold one sequence of the longest length.
    TooLong { longest: u64, needed: Bytes, available: Bytes, possible: u64 },
    /// It runs out of memory while graphs are captured.
    Capture { needed: Bytes, free: Bytes },
    /// It runs out of memory while it tries to choose tokens for a full batch.
    Sampler { needed: Bytes, free: Bytes },
    /// A buffer that was asked for is larger than what is left for it (llama.cpp).
    Buffers { needed: Bytes, free: Bytes },
    /// Prompts are not cut, and a pass is shorter than the longest of them (vLLM before 0.8).
    Uncut { pass: u64, longest: u64 },
    /// It starts, and what is left beside the cache is too little for the longest pass over prompts (SGLang, which tries none).
    Prompt { needed: Bytes, free: Bytes },
}

impl Refusal {
    /// Whether the chip runs out of memory, and not the engine that says no.
    pub fn out_of_memory(self) -> bool {
        !matches!(self, Self::NotFree { .. } | Self::NoRoom { .. } | Self::TooLong { .. } | Self::Uncut { .. })
    }
}

impl Budget {
    pub fn starts(&self) -> bool {
        self.refusal.is_none()
    }

    /// What is asked for: weights, the dry run, what libraries take, and the cache.
    pub fn needed(&self) -> Bytes {
        self.weights + self.activation + self.outside + self.cache
    }

    /// Sequences of so many tokens that the cache of one attention group holds.
    pub fn room(&self, tokens: f64) -> f64 {
        let each = self.pages.held(tokens.max(1.0));
        if each > 0.0 { self.blocks as f64 / each } else { f64::INFINITY }
    }
}

/// What was said, and what an engine's version takes for granted where nothing was.
#[derive(Clone, Copy, Debug)]
struct Asked {
    utilisation: Fraction,
    pass: f64,
    sequences: f64,
    /// Sequences whose tokens are chosen in one pass.
    chosen: f64,
    longest: u64,
    /// Whether long prompts are cut into several passes.
    cut: bool,
    eager: bool,
    /// Whether the dry run chooses tokens.
    chooses: bool,
    /// Sizes of which graphs are captured.
    sizes: f64,
    drafts: u64,
}

/// The budget of a start: of several cards that share the layers, that of the first which is refused, else of the fullest.
pub fn budget(on: &Deployment, start: &Start, version: Option<Version>) -> Budget {
    let all = budgets(on, start, version);
    let left = |b: &Budget| b.total.get() - b.needed().get();
    let fullest = || all.iter().min_by(|a, b| left(a).total_cmp(&left(b)));
    let one = *all.iter().find(|b| !b.starts()).or_else(fullest).expect("a card");
    let longest_possible = all.iter().map(|b| b.longest_possible).min().unwrap_or(one.longest_possible);
    Budget { longest_possible, ..one }
}

/// The same, with the longest sequence that would start where the one asked for is too long: a shorter one may need a smaller dry run,
/// so that more of it fits than the cache of the longer one holds.
pub fn told(on: &Deployment, start: &Start, version: Option<Version>) -> Budget {
    let mut b = budget(on, start, version);
    if let Some(Refusal::TooLong { longest, possible, .. }) = &mut b.refusal {
        *possible = longest_that_starts(on, start, version, *longest).max(*possible);
        b.longest_possible = b.longest_possible.max(*possible);
    }
    b
}

/// The longest sequence up to the most with which a server starts, in whole hundreds where there are many; 0 where none does.
pub fn longest_that_starts(on: &Deployment, start: &Start, version: Option<Version>, most: u64) -> u64 {
    let starts =
        |longest: u64| longest > 0 && budget(on, &Start { longest: Some(longest), ..start.clone() }, version).starts();
    let step = if most > 2000 { 100 } else { 16 };
    if starts(most) { most } else { last(most / step, |n| starts(n * step)) * step }
}

/// The last number up to the most for which something holds that holds for all below it; 0 where it holds for none.
pub fn last(most: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// The budgets of a start, one for each of the cards that share the layers of a model; one where all chips hold alike. The engine's own
/// version decides unless another is given; without either it is the newest.
pub fn budgets(on: &Deployment, start: &Start, version: Option<Version>) -> Vec<Budget> {
    match (on.split.as_deref().filter(|split| !split.cards.is_empty()), &on.model.body) {
        (Some(split), Body::Layers(shape)) => on_cards(on, start, version, split, shape),
        _ => vec![alike(on, start, version)],
    }
}

/// What each of several cards is asked for: its layers with their cache; embedding and head lie on the last. Where matrices are cut
/// instead of layers, each has its share of them all and the last has the cache.
fn on_cards(on: &Deployment, start: &Start, version: Option<Version>, split: &Split, shape: &Shape) -> Vec<Budget> {
    let own = plain(&on.engine);
    let rule = on.engine.memory_rule(version.or(on.engine.version)).unwrap_or(&own);
    let hosted = Arc::new(Split { cards: Vec::new(), ..split.clone() });
    let layers = shape.n_layers() - (split.layers as u64).min(shape.n_layers());
    let others = split.cards.iter().map(|card| card.layers).sum::<f64>();
    let cards = split.cards.iter().map(|card| (&card.system, card.layers));
    let cards = cards.chain([(&on.system, layers as f64 - others)]);
    let mut first = shape.n_layers() - layers;
    let mut all = Vec::with_capacity(split.cards.len() + 1);
    for (at, (system, n)) in cards.enumerate() {
        let here = Deployment { system: system.clone(), split: Some(hosted.clone()), ..on.clone() };
        let last = at == split.cards.len();
        let index = if last { 0 } else { at as u64 + 1 };
        let total = found(&here).get();
        let asked = Asked::of(&here, rule, start, total);
        let held = |index: u64, of: (u64, u64)| stage(&here, rule, start, &asked, total, shape, (index, of.0, of.1));
        let stage = if split.cache {
            held(index, (first, n as u64))
        } else {
            let of = (shape.n_layers() - layers, layers);
            let (whole, inner) = (held(index, of), held(1, of).weights);
            let weights = whole.weights - inner * (1.0 - n / layers.max(1) as f64);
            let pages = if last { whole.pages } else { Pages::plain(0.0, whole.pages.block) };
            Stage { weights, pages, ..whole }
        };
        first += n as u64;
        let graphs = graphs(rule, &asked, shape, 1, 0, rule.graphs.base_gib);
        all.push(finish(rule, start, &asked, total, &[stage], graphs, estimate(rule, &asked, shape, 1, 0)));
    }
    all
}

fn alike(on: &Deployment, start: &Start, version: Option<Version>) -> Budget {
    let own;
    let rule = if let Some(rule) = on.engine.memory_rule(version.or(on.engine.version)) {
        rule
    } else {
        own = plain(&on.engine);
        &own
    };
    let total = found(on);
    let asked = Asked::of(on, rule, start, total.get());
    match &on.model.body {
        Body::Layers(shape) => layers(on, rule, start, &asked, total.get(), shape),
        Body::Lump(lump) => {
            let all = on.layout.chips() as f64;
            let weights = crate::count::count(&on.model).stored_bytes(&on.formats).get() / all + on.beside().get();
            let pages = Pages::plain(lump.kv.get() / on.layout.stage_chips() as f64, 1);
            let stage = Stage { weights, activation: 0.0, outside: 0.0, state: 0.0, pages };
            finish(rule, start, &asked, total.get(), &[stage], Bytes::ZERO.get(), 0.0)
        }
    }
}

/// Memory that an engine finds on a chip: as drivers tell programs, where it is known what engines make of that.
pub(crate) fn found(on: &Deployment) -> Bytes {
    let memory = &on.system.chip.memory;
    if on.engine.memory.is_empty() { memory.size() } else { memory.seen() }
}

/// What is assumed of an engine that nobody looked at: [`unlooked`], and the share it states.
fn plain(engine: &Engine) -> MemoryRule {
    MemoryRule {
        from: None,
        way: Way::Share,
        utilisation: engine.schedule.memory.unwrap_or(Fraction::ONE),
        sampler_bytes: 0.0,
        hidden_bytes: 0.0,
        inner_bytes: 0.0,
        pass_gib: 0.0,
        keeps_expert_buffers: false,
        outside_gib: 0.0,
        outside_tp_gib: 0.0,
        outside_many_gib: 0.0,
        outside_shared_gib: 0.0,
        context_gib: 0.0,
        context_ranks_gib: 0.0,
        graphs: Graphs::default(),
        reserve: None,
        state_ratio: 0.0,
        usual: Vec::new(),
        windows: true,
        pad_share: 1.5,
        prints_requests: false,
        align_tokens: 16,
        whole_prompts: false,
        spare_gb: 0.0,
        picture_bytes: 0.0,
        picture_split_bytes: 0.0,
        film_pairs: 0,
        fit: None,
        source: String::new(),
    }
}

impl Asked {
    fn of(on: &Deployment, rule: &MemoryRule, start: &Start, total: f64) -> Self {
        let (schedule, chip) = (&on.engine.schedule, &on.system.chip);
        let usual = rule.usual_on(chip, Bytes::b(total.max(0.0)));
        let (tokens, sequences) =
            usual.map_or((schedule.chunk, schedule.sequences), |usual| (usual.tokens as f64, usual.sequences as f64));
        let context = on.model.shape().and_then(|shape| shape.context_max);
        let longest = start.longest.or(context).unwrap_or(LONGEST).max(1);
        let sequences = start.sequences.map_or(sequences, |n| n as f64).max(1.0);
        let cut = start.chunked.unwrap_or(!rule.whole_prompts || longest > WHOLE_PROMPTS);
        let pass = match start.pass {
            Some(tokens) => tokens as f64,
            // A pass must hold the longest prompt where prompts are not cut.
            None if cut => tokens,
            None => tokens.max(longest as f64),
        };
        let ranks = on.layout.chips();
        let usual_graph = usual.and_then(|usual| usual.graph).map(|(few, many)| if ranks < 4 { few } else { many });
        let largest = start.graph.or(usual_graph).map_or(schedule.graph, |n| n as f64);
        let times = rule.graphs.times_sequences;
        let largest = if times > 0.0 { largest.min(sequences * times) } else { largest };
        let sizes = start.graphs.map_or_else(|| sizes(&schedule.graph_steps, largest), |n| n as f64);
        let sequences = sequences.min(pass.max(1.0));
        let chosen = match rule.way {
            // SGLang tries no pass when it starts: what it leaves free is reckoned with a chunk and the largest graph.
            Way::Rest => sequences.min(largest.max(1.0)),
            // llama.cpp reserves the logits of every token of a pass, however few slots it has.
            Way::Asked => pass.max(1.0),
            _ => sequences,
        };
        let left = || rule.reserve.as_ref().map(|reserve| share(on, reserve, pass, largest, start.drafts.is_some()));
        Self {
            utilisation: start.utilisation.or_else(left).unwrap_or(rule.utilisation),
            pass: pass.max(1.0),
            sequences,
            chosen,
            longest,
            cut,
            eager: start.eager,
            chooses: !(rule.whole_prompts && cut),
            sizes,
            drafts: start.drafts.unwrap_or(0),
        }
    }
}

/// The share that is not reserved for passes and graphs, in thousandths.
fn share(on: &Deployment, reserve: &Reserve, pass: f64, graph: f64, drafts: bool) -> Fraction {
    let d = on.layout.degrees();
    let all = on.system.chip.memory.size().get() / MIB;
    let ranks = (d.tp * d.dp * d.pp) as f64;
    let draft = if drafts { reserve.drafts_mib } else { 0.0 };
    let old = reserve.below.iter().find(|(below, ..)| all < below * 1024.0);
    let kept = if let Some((_, gib, each)) = old {
        1024.0 * (gib + each * ranks)
    } else {
        let own = reserve.base_mib + reserve.token_mib * pass + reserve.graph_mib * graph + reserve.rank_mib * ranks;
        let groups = if d.dp > 1 { reserve.group_mib * graph * d.dp as f64 } else { 0.0 };
        let least = if all > reserve.least_above_gib * 1024.0 { reserve.least_mib } else { 0.0 };
        (own + groups).max(least)
    };
    let left = ((all - kept - draft) / all * 1000.0).round() / 1000.0;
    Fraction::checked(left).unwrap_or(Fraction::ZERO)
}

/// Longer sequences than these have their prompts cut unless told (vLLM 0.4 to 0.7).
const WHOLE_PROMPTS: u64 = 32_768;

/// Sizes captured up to the largest: powers of two below the first step, then by steps.
fn sizes(steps: &[(f64, f64)], largest: f64) -> f64 {
    let first = steps.first().map_or(8.0, |(step, _)| *step);
    let powers = first.min(largest).max(1.0).log2().floor() + f64::from(u8::from(largest < first));
    let (mut from, mut all) = (0.0, powers);
    for (step, most) in steps.iter().copied().chain(steps.is_empty().then_some((8.0, largest))) {
        let to = most.min(largest);
        all += ((to - from) / step).floor().max(0.0);
        from = to;
    }
    all.max(1.0)
}

/// One stage of a pipeline: what its chips hold beside the cache, and how their cache is cut.
#[derive(Clone, Copy, Debug)]
struct Stage {
    weights: f64,
    activation: f64,
    outside: f64,
    state: f64,
    pages: Pages,
}

fn layers(on: &Deployment, rule: &MemoryRule, start: &Start, asked: &Asked, total: f64, shape: &Shape) -> Budget {
    let d = on.layout.degrees();
    let mut first = 0;
    let mut all: Vec<Stage> = Vec::with_capacity(d.pp as usize);
    for (index, n) in stage_layers(shape.n_layers(), d.pp).into_iter().enumerate() {
        all.push(stage(on, rule, start, asked, total, shape, (index as u64, first, n)));
        first += n;
    }
    let (pp, drafts) = (d.pp, draft_layers(on, start, asked, shape));
    let graphs = graphs(rule, asked, shape, pp, drafts, rule.graphs.base_gib);
    finish(rule, start, asked, total, &all, graphs, estimate(rule, asked, shape, pp, drafts))
}

/// What captured graphs take: so much for each layer and size, on top of what they take whatever they hold.
fn graphs(rule: &MemoryRule, asked: &Asked, shape: &Shape, stages: u64, drafts: u64, base: f64) -> f64 {
    if asked.eager {
        return 0.0;
    }
    let deepest = (shape.n_layers().div_ceil(stages) + drafts) as f64;
    GIB * base + MIB * rule.graphs.layer_mib * deepest * asked.sizes
}

/// What an engine expects of them beforehand, and what of that it keeps from its cache.
fn estimate(rule: &MemoryRule, asked: &Asked, shape: &Shape, stages: u64, drafts: u64) -> f64 {
    graphs(rule, asked, shape, stages, drafts, rule.graphs.estimate_base_gib)
}

/// The chips of one stage: its number, its first layer and how many it has.
fn stage(
    on: &Deployment,
    rule: &MemoryRule,
    start: &Start,
    asked: &Asked,
    total: f64,
    shape: &Shape,
    (index, first, n): (u64, u64, u64),
) -> Stage {
    let draft_layers = draft_layers(on, start, asked, shape);
    let kept = Kept {
        block: start.block.unwrap_or(on.engine.schedule.block as u64),
        pass: asked.pass,
        drafts: asked.drafts,
        prefixes: start.prefix_cache.unwrap_or(false),
        draft_layers,
        // Where a model is placed for a load, the cache of its drafter is taken off what was found (`Drafter::leaves`).
        drafter: start.drafter.is_some(),
        halves: start.halves,
    };
    let last = index + 1 == on.layout.degrees().pp;
    let beside = on.beside().get() - unloaded(on, start, shape);
    let mut weights =
        stage_weights(&as_stored(on, shape), shape, index, (first, n)) + beside + filling(on, rule, shape, n);
    weights += made_when_loaded(on, rule, shape, (first, n));
    if last && draft_layers > 0 {
        weights +=
            if is_eagle(start) && shape.mtp.is_none() { eagle_weights(on, shape) } else { draft_weights(on, shape) };
    }
    weights -= start.offload.map_or(0.0, Bytes::get).min(weights);
    let (text, outside) = if on.engine.memory.is_empty() {
        unlooked(on, shape, asked.pass, asked.sequences)
    } else {
        (activation(on, rule, asked, shape, last), outside(on, rule))
    };
    // Encoders run on the first stage, before the model; what they made is kept while it runs.
    let seen = if index == 0 { pictures(on, rule, asked, start, shape) } else { (0.0, 0.0) };
    let activation = seen.0.max(text + seen.1);
    let pages = Pages::of(on, rule, shape, (first, n), kept);
    let state = match rule.way {
        Way::Rest => states(rule, start, asked, total, weights, &pages),
        _ => 0.0,
    };
    Stage { weights, activation, outside, state, pages }
}

/// What a chip holds beside the weights of its layers, and the cache of a load, where a model is placed: the engine's own count where it
/// is known. What it neither uses nor gives to its cache is the reserve.
pub(crate) fn beside(held: &mut Held, on: &Deployment, load: &Load, shape: &Shape, index: u64, layers: (u64, u64)) {
    held.side = on.beside().get();
    let (total, groups) = (found(on).get(), on.groups());
    let Some(rule) = on.engine.memory_rule(on.engine.version) else {
        (held.activations, held.buffers) = unlooked(on, shape, load.tokens, load.of_fullest(groups));
        held.reserve = total * share_taken(on, load).rest().get();
        return;
    };
    let start = placed(on, load);
    let asked = Asked::of(on, rule, &start, total);
    let own = stage(on, rule, &start, &asked, total, shape, (index, layers.0, layers.1));
    // Parts that lie elsewhere are not on the engine's list.
    if on.split.is_none() {
        held.side = (own.weights - held.all_weights().get()).max(0.0);
        if rule.way != Way::Asked {
            held.kv = load.of_fullest(groups) * own.pages.bytes(own.pages.held(load.context.get()));
        }
    }
    let weights = held.all_weights().get() + held.side;
    let aside = if rule.graphs.counted { estimate(rule, &asked, shape, on.layout.degrees().pp, 0) } else { 0.0 };
    let left = left(rule, &asked, total, aside, &Stage { weights, ..own });
    let taken = (total - weights - left).max(0.0);
    held.activations = own.activation.min(taken);
    held.buffers = (own.outside + own.state + aside).min(taken - held.activations);
    held.reserve = taken - held.activations - held.buffers;
}

/// The share of a chip's memory that an engine takes for a load: as said, by its own rule, or as its file states.
pub(crate) fn share_taken(on: &Deployment, load: &Load) -> Fraction {
    let by_rule = || {
        let rule = on.engine.memory_rule(on.engine.version)?;
        Some(Asked::of(on, rule, &placed(on, load), found(on).get()).utilisation)
    };
    load.utilisation.or_else(by_rule).or(on.engine.schedule.memory).unwrap_or(Fraction::ONE)
}

/// A start that is to hold a load.
fn placed(on: &Deployment, load: &Load) -> Start {
    let pass = Some(load.tokens as u64).filter(|tokens| *tokens > 0);
    // An engine that is built before it runs is built for as many sequences as it was told, or for those it is to hold and the one that
    // comes next.
    let built = on.engine.memory_rule(on.engine.version).is_some_and(|rule| rule.way == Way::Free);
    let told = on.engine.schedule.told.map(|n| n as u64);
    let sequences = built.then(|| told.unwrap_or((load.batch / on.groups()) as u64 + 1));
    // Films that are tried are as long as a sequence may be: no longer than those that are to be held.
    let sees = on.model.shape().is_some_and(|shape| tower(shape, Sense::Sight).is_some());
    let longest = Some(load.context.get().ceil() as u64).filter(|n| sees && *n > 0);
    let eager = on.engine.schedule.graph <= 0.0;
    Start { utilisation: load.utilisation, pass, sequences, longest, eager, ..Start::default() }
}

/// What is assumed of an engine that nobody looked at: for a pass two hidden-wide and two network-wide 16-bit buffers and 32-bit logits of
/// each sequence; for what travels, one dispatch and one combine of the pass's tokens.
fn unlooked(on: &Deployment, shape: &Shape, tokens: f64, sequences: f64) -> (f64, f64) {
    let d = on.layout.degrees();
    let hidden = shape.hidden as f64;
    let widest = shape.runs.iter().map(|run| match &run.block.ffn {
        Ffn::None => 0.0,
        Ffn::Dense(mlp) => mlp.width as f64 / d.tp as f64,
        Ffn::Moe(moe) => {
            let routed = moe.expert.width as f64 * moe.top_k as f64 / d.etp as f64;
            routed.max(moe.shared.map_or(0.0, |s| s.width as f64 / d.tp as f64))
        }
    });
    let widest = widest.fold(0.0, f64::max);
    let logits = sequences * shape.vocab as f64 / d.tp as f64 * 4.0;
    let travels = match shape.moe().filter(|_| d.ep > 1) {
        Some(moe) => tokens * hidden * (1.0 + 2.0) * (moe.top_k.min(d.ep)) as f64,
        None if d.tp > 1 => tokens * hidden * 2.0,
        None => 0.0,
    };
    (tokens * (2.0 * hidden + 2.0 * widest) * 2.0 + logits, travels)
}

/// What libraries take past the allocator on a chip.
fn outside(on: &Deployment, rule: &MemoryRule) -> f64 {
    let (d, chip) = (on.layout.degrees(), &on.system.chip);
    let ranks = d.tp * d.dp * d.cp;
    // Buffers of reductions are made where ranks reach each other's memory: over PCIe and Ethernet they send messages.
    let messages = ["pcie", "ethernet"].iter().any(|kind| chip.link.kind.starts_with(kind));
    let linked = chip.link.scale_up.is_some() && !messages;
    GIB * match ranks {
        4.. if linked => rule.outside_many_gib.max(rule.outside_tp_gib),
        2.. if linked => rule.outside_tp_gib,
        _ if chip.memory.kind.starts_with("LPDDR") => rule.outside_shared_gib.max(rule.outside_gib),
        _ => rule.outside_gib,
    }
}

/// What an engine sets apart for states before it takes its cache: those of so many sequences, or a part of what is left.
fn states(rule: &MemoryRule, start: &Start, asked: &Asked, total: f64, weights: f64, pages: &Pages) -> f64 {
    let each = pages.state();
    if each <= 0.0 {
        return 0.0;
    }
    let free = total - GIB * rule.context_gib;
    let left = (asked.utilisation.get() * free - weights).max(0.0);
    start.sequences.map_or(left * rule.state_ratio / (1.0 + rule.state_ratio), |n| n as f64 * each)
}

/// What a program finds free before it loads anything.
fn free(rule: &MemoryRule, total: f64, first: &Stage) -> f64 {
    total - GIB * (rule.context_gib + if first.outside > GIB { rule.context_ranks_gib } else { 0.0 })
}

fn usable(rule: &MemoryRule, asked: &Asked, total: f64, free: f64) -> f64 {
    let u = asked.utilisation.get();
    match rule.way {
        Way::Share | Way::Free => u * total,
        Way::Rest => u * free,
        Way::Asked => total,
    }
}

/// What a stage leaves for the cache; less than nothing where it does not fit.
fn left(rule: &MemoryRule, asked: &Asked, total: f64, set_aside: f64, stage: &Stage) -> f64 {
    let free = free(rule, total, stage);
    let usable = usable(rule, asked, total, free);
    match rule.way {
        Way::Share => usable - stage.weights - stage.activation - stage.outside - set_aside,
        Way::Rest => usable - stage.weights - stage.state,
        Way::Free => asked.utilisation.get() * (free - stage.weights - stage.activation - stage.outside),
        Way::Asked => free - stage.weights - stage.activation - stage.outside,
    }
}

/// The first of the buffers that llama.cpp asks for, one after the other, that is larger than what is left: cache, then computation.
fn lacking(stage: &Stage, cache: f64, total: f64) -> Option<Refusal> {
    let buffers = [cache, stage.activation + stage.outside];
    let mut left = total - stage.weights;
    for needed in buffers {
        if needed > left {
            return Some(Refusal::Buffers { needed: Bytes::b(needed), free: Bytes::b(left.max(0.0)) });
        }
        left -= needed;
    }
    None
}

/// The engine's sum, its blocks and what it says to them.
fn finish(
    rule: &MemoryRule,
    start: &Start,
    asked: &Asked,
    total: f64,
    stages: &[Stage],
    graphs: f64,
    estimate: f64,
) -> Budget {
    let free = free(rule, total, &stages[0]);
    let context = total - free;
    let set_aside = if rule.graphs.counted { estimate } else { 0.0 };
    let usable = usable(rule, asked, total, free);
    // llama.cpp deals its context to slots, which keep their caches apart unless told.
    let slots = if rule.way == Way::Asked && !start.unified { start.sequences.unwrap_or(1).max(1) } else { 1 };
    let longest = (asked.longest / slots).max(1);
    let left = |stage: &Stage| match rule.way {
        Way::Asked => stage.pages.bytes(stage.pages.most(longest as f64)) * slots as f64,
        _ => left(rule, asked, total, set_aside, stage),
    };
    let blocks = |stage: &Stage| stage.pages.blocks(start.cache.map_or_else(|| left(stage), Bytes::get));
    let first = &stages[0];
    let fullest = stages.iter().min_by_key(|stage| blocks(stage)).unwrap_or(first);
    let (pages, n) = (fullest.pages, start.blocks.unwrap_or_else(|| blocks(fullest)));
    // Blocks that were asked for are the cache, whatever room there is.
    let asked_for = start.blocks.map(|n| fullest.pages.bytes(n as f64)).or(start.cache.map(Bytes::get));
    let cache = asked_for.unwrap_or_else(|| left(first));
    let most = pages.most(longest as f64);
    let concurrency = if most > 0.0 { n as f64 / most } else { 0.0 };
    let tokens = if rule.prints_requests { (concurrency * longest as f64) as u64 } else { pages.tokens(n) };
    // What is asked for is what is kept, however little of it layers with windows hold.
    let tokens = if rule.way == Way::Asked { longest * slots } else { tokens };
    let held = start.cache_tokens.map_or(1.0, |most| (most as f64 / tokens.max(1) as f64).min(1.0));
    let tokens = start.cache_tokens.map_or(tokens, |most| tokens.min(most));
    // Where a context is asked for, the longest is what the card has room for.
    let room = total - fullest.weights - fullest.activation - fullest.outside;
    let possible = match rule.way {
        Way::Asked => pages.longest(pages.blocks(room.max(0.0) / slots as f64), u64::from(u32::MAX)),
        _ => pages.longest(n, u64::from(u32::MAX)),
    };
    let spare = free - usable + (usable - stages.iter().map(|s| s.weights).fold(0.0, f64::max)).min(0.0);
    let fullest_left = start.cache.map_or_else(|| stages.iter().map(left).fold(f64::INFINITY, f64::min), Bytes::get);
    let bytes = |amount: f64| Bytes::b(amount.max(0.0));
    let weights = stages.iter().map(|s| s.weights).fold(0.0, f64::max);
    // What is left of a card when weights and cache are there (SGLang).
    let beside = free - weights - first.state - cache.max(0.0) * held;
    let captured = if asked.eager { 0.0 } else { graphs };
    let passing = first.activation + first.outside + captured;
    let uncut = rule.way == Way::Share && !asked.cut && asked.pass < asked.longest as f64;
    let refusal = if uncut {
        Some(Refusal::Uncut { pass: asked.pass as u64, longest })
    } else if rule.way == Way::Share && start.cache.is_none() && usable > free && context > 0.0 {
        Some(Refusal::NotFree { free: bytes(free), desired: bytes(usable) })
    } else if weights > free {
        Some(Refusal::Weights { needed: bytes(weights), free: bytes(free) })
    } else if rule.way != Way::Asked && fullest_left <= 0.0 {
        Some(Refusal::NoRoom { missing: bytes(-fullest_left) })
    // Only vLLM asks for room for one sequence of the longest length; others start and turn longer requests away.
    } else if rule.way == Way::Share && most > n as f64 {
        let needed = bytes(pages.bytes(most));
        let available = bytes(asked_for.unwrap_or(fullest_left));
        Some(Refusal::TooLong { longest, needed, available, possible: possible.min(longest) })
    } else if rule.way == Way::Share && context > 0.0 && !asked.eager && graphs > spare + set_aside {
        Some(Refusal::Capture { needed: bytes(graphs), free: bytes(spare + set_aside) })
    } else if rule.way == Way::Rest && captured > beside {
        Some(Refusal::Capture { needed: bytes(captured), free: bytes(beside) })
    } else if rule.way == Way::Rest && passing > beside {
        Some(Refusal::Prompt { needed: bytes(passing), free: bytes(beside) })
    } else {
        stages.iter().filter(|_| rule.way == Way::Asked).find_map(|stage| lacking(stage, left(stage), total))
    };
    Budget {
        way: rule.way,
        utilisation: asked.utilisation,
        total: bytes(total),
        usable: bytes(usable),
        weights: bytes(first.weights),
        activation: bytes(first.activation),
        graphs: bytes(graphs),
        estimate: bytes(set_aside),
        outside: bytes(first.outside),
        state: bytes(first.state),
        cache: bytes(cache),
        pages,
        block: pages.block,
        blocks: n,
        tokens,
        concurrency,
        longest,
        longest_possible: possible,
        pass: asked.pass as u64,
        sequences: asked.sequences as u64,
        chosen: asked.chosen as u64,
        tight: (rule.way == Way::Rest && beside - captured < rule.spare_gb * 1e9)
            .then(|| (bytes(beside - captured), Bytes::b(rule.spare_gb * 1e9))),
        refusal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::close;
    use rackmath_spec::layout::Degrees;
    use rackmath_spec::{Dtype, Layout};
    use rackmath_units::Tokens;

    fn on(model: &str, system: &str, engine: &str, tp: u64) -> Deployment {
        let one = Deployment::named(&rackmath_catalog::embedded(), model, system, engine).unwrap();
        Deployment { layout: Layout::new(Degrees { tp, etp: tp, ..Degrees::default() }).unwrap(), ..one }
    }

    #[test]
    fn llama_on_an_h100_as_vllm_0_19_printed_it() {
        // Start-up logs of vLLM 0.19.0, Llama 3.1 8B, H100, 0.95: weights 14.99, dry run 1.89, outside 0.25, cache 58.11 GiB,
        // 476,016 tokens, 58.11 sequences of 8,192 tokens.
        let start = Start { utilisation: Some(Fraction::new(0.95)), longest: Some(8192), ..Start::default() };
        let b = budget(&on("llama-3.1-8b", "h100-sxm", "vllm@0.19.0", 1), &start, None);
        let gib = |bytes: Bytes| bytes.get() / GIB;
        close(gib(b.weights), 14.96, 0.003);
        close(gib(b.activation), 1.89, 0.02);
        close(gib(b.outside), 0.25, 0.01);
        close(gib(b.cache), 58.11, 0.003);
        close(b.tokens as f64, 476_016.0, 0.003);
        close(b.concurrency, 58.11, 0.003);
        assert!(b.starts() && b.block == 16, "{b:?}");
        // The same on two chips: dry run 1.89, outside 2.07, cache 63.76.
        let b = budget(&on("llama-3.1-8b", "hgx-h100", "vllm@0.19.0", 2), &start, None);
        close(gib(b.cache), 63.76, 0.003);
        close(b.tokens as f64, 1_044_688.0, 0.003);
    }

    #[test]
    fn a_cache_folded_along_its_tokens_as_vllm_0_21_printed_it() {
        // Start-up logs of vLLM 0.21.0, DeepSeek V4 Pro on four GB300, 8-bit cache, passes of 8,192 tokens: 39.26 GiB hold 4.103577
        // sequences of a million tokens, 40.47 GiB hold 4.230092.
        let start = Start { longest: Some(1_000_000), pass: Some(8192), ..Start::default() };
        let on = Deployment { kv: Dtype::Fp8, ..on("deepseek-v4-pro", "gb300-nvl72", "vllm@0.21.0", 4) };
        let b = budget(&on, &start, None);
        close(b.cache.get() / GIB / b.concurrency, 39.26 / 4.103_577, 0.01);
        close(b.cache.get() / GIB / b.concurrency, 40.47 / 4.230_092, 0.01);
    }

    /// Where a model is placed and what its engine prints when it starts are one count: as many sequences fit.
    #[test]
    fn what_is_placed_is_what_the_engine_counts() {
        for (model, system, engine, tp) in [
            ("llama-3.1-8b", "h100-sxm", "vllm@0.19.0", 1),
            ("llama-3.1-70b", "hgx-h100", "vllm", 8),
            ("llama-3.1-70b", "hgx-h200", "sglang", 4),
            ("deepseek-v3", "hgx-h200", "sglang", 8),
        ] {
            let on = on(model, system, engine, tp);
            let context = 4096.0;
            let load = Load { batch: 1.0, context: Tokens::new(context), tokens: 8192.0, utilisation: None };
            let start = Start { pass: Some(8192), ..Start::default() };
            let counted = budget(&on, &start, None);
            let (placed, own) = (crate::placement::largest_batch(&on, &load), counted.room(context).floor());
            assert!(
                placed > 10.0 && (placed - own).abs() <= 1.0,
                "{model} under {engine}: {placed} placed, {own} counted"
            );
            let half = Load { utilisation: Some(Fraction::new(counted.utilisation.get() / 2.0)), ..load };
            assert!(crate::placement::largest_batch(&on, &half) < placed / 1.9, "{model} under {engine}");
        }
    }

    /// 7,936 further sequences of 128,256 words, 19 bytes each, are 19.3 GB of every chip, and the cache gets 0.95 of what is left free.
    #[test]
    fn an_engine_that_is_built_keeps_buffers_for_every_sequence_it_was_told() {
        let kept = |told: Option<f64>| {
            let mut on = on("llama-3.1-70b", "hgx-h100", "trtllm@0.13", 8);
            Arc::make_mut(&mut on.engine).schedule.tell(told);
            let utilisation = Some(Fraction::new(0.95));
            let load = Load { batch: 1.0, context: Tokens::new(2176.0), tokens: 8192.0, utilisation };
            crate::placement::largest_batch(&on, &load)
        };
        let (few, many) = (kept(Some(256.0)), kept(Some(8192.0)));
        // 80 layers of one head of 128 on each chip, keys and values of two bytes.
        let bytes = (few - many) * 2176.0 * 80.0 * 2.0 * 128.0 * 2.0;
        assert!((bytes / (0.95 * 7936.0 * 128_256.0 * 19.0) - 1.0).abs() < 0.02, "{few} {many}");
        assert!(kept(None) <= few, "as many as it holds are not fewer than 256");
    }
}
