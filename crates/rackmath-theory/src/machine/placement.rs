//! What each chip holds, computes and sends, and whether it fits.
//!
//! $$ c = \sum_t \frac{w_t N_t}{s_t} + \Big\lceil\frac{B}{d}\Big\rceil\,\frac{kv(L)}{s_{kv}} + a + r
//!    \qquad\text{lecture: } c_{mem} = \frac{N w}{E P} + \frac{b L\,kv}{E} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | s_t | shards | 1 | chips a tensor is cut over: tp, ep etp, or 1 for what every chip copies |
//! | B, d | batch, dp | sequences, 1 | sequences in flight, groups that share them: each lies whole in one |
//! | s_kv | shards of the cache | 1 | min(tp, key-value heads); 1 for a latent cache; times cp, times dcp |
//! | a, r | activations, reserve | B | working memory of a step, and what the engine leaves alone |
//! | E, P, b | ep, pp, micro-batch | 1 | the lecture's perfect sharding, with M = P micro-batches of b |
//!
//! Every stage keeps its own layers' cache of all sequences in flight. Filling P stages needs P times the sequences, so the
//! cache per chip does not shrink with P (D33). Stage 0 also holds the embedding, the last stage the head and final norms.
//!
//! What an engine takes beside weights and how it cuts its cache into pages stands in [`crate::budget`], the one count of a chip's
//! memory. Assumes: routed experts evenly spread. Source: lecture D31-D33, G45; engine defaults as stated in the request.

use crate::budget;
use crate::count::{self, Cut, Part, Tensor, Use, block_tensors, outer_tensors};
use crate::deployment::Deployment;
use crate::kv;
use crate::layout::{domain, stage_layers};
use crate::network::distinct_ranks;
use crate::split::{self, Away};
use rackmath_spec::layout::Degrees;
use rackmath_spec::model::{Block, Body, Ffn, Formats, Mixer, Shape};
use rackmath_units::{Bytes, Flop, Fraction, Params, Tokens};

#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub batch: f64,
    pub context: Tokens,
    /// Most tokens one pass holds.
    pub tokens: f64,
    /// Share of a chip's memory the engine may use, as said; its own where nobody did.
    pub utilisation: Option<Fraction>,
}

impl Load {
    /// Sequences of the fullest attention group: the cache of one is not cut over groups. A group by itself holds a mean as it is.
    pub fn of_fullest(&self, groups: f64) -> f64 {
        if groups > 1.0 { (self.batch / groups).ceil() } else { self.batch }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Held {
    /// Weights by part, in the order of [`Part::ALL`].
    pub weights: [f64; Part::ALL.len()],
    /// Weights beside the model's own.
    pub side: f64,
    pub kv: f64,
    pub activations: f64,
    pub buffers: f64,
    pub reserve: f64,
}

impl Held {
    pub fn all_weights(&self) -> Bytes {
        Bytes::b(self.weights.iter().sum())
    }

    pub fn part(&self, part: Part) -> Bytes {
        Bytes::b(self.weights[part as usize])
    }

    pub fn total(&self) -> Bytes {
        self.all_weights() + Bytes::b(self.side + self.kv + self.activations + self.buffers + self.reserve)
    }
}

/// Bytes one chip sends in a decode step, by network.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sent {
    /// Tensor-parallel reductions, inside the scale-up domain.
    pub tensor: f64,
    pub reductions: f64,
    /// Queries and partial outputs of a cache that is cut along its tokens, inside the scale-up domain.
    pub context: f64,
    /// Dispatch and combine within the scale-up domain.
    pub expert_up: f64,
    /// Dispatch and combine that leave it.
    pub expert_out: f64,
    pub exchanges: f64,
    pub pipeline: f64,
    /// Whether those hops leave the scale-up domain.
    pub pipeline_leaves: bool,
}

/// One pipeline stage: all its chips are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    pub index: u64,
    pub layers: (u64, u64),
    pub chips: u64,
    pub held: Held,
    pub flop: Flop,
    pub sent: Sent,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    pub stages: Vec<Stage>,
    pub capacity: Bytes,
    pub fit: Fit,
}

/// What is free or missing on the fullest chip; where the cache alone is too large, no pipeline depth can help.
#[derive(Clone, Debug, PartialEq)]
pub enum Fit {
    Fits { spare: Bytes },
    TooLarge { missing: Bytes, stage: u64, weights_alone: bool, kv_alone: bool },
}

/// Places a model. A model known by its totals is spread evenly, as on the board.
pub fn place(on: &Deployment, load: &Load) -> Placement {
    let capacity = budget::found(on);
    let stages = main(on, load);
    let cards = split::on_cards(on, load).into_iter().filter(|(held, room)| held > room);
    let lacks = cards.map(|(held, room)| held.less(room).get()).reduce(f64::max);
    let fit = match (fit(&stages, capacity), lacks) {
        // Another card is too small for its layers.
        (Fit::Fits { .. }, Some(lacks)) => {
            Fit::TooLarge { missing: Bytes::b(lacks), stage: 0, weights_alone: false, kv_alone: false }
        }
        (fit, _) => fit,
    };
    Placement { stages, capacity, fit }
}

/// The chips of the layout, whatever lies on further cards.
pub(crate) fn main(on: &Deployment, load: &Load) -> Vec<Stage> {
    match &on.model.body {
        Body::Layers(shape) => place_layers(on, load, shape),
        Body::Lump(_) => place_lump(on, load),
    }
}

fn fit(stages: &[Stage], capacity: Bytes) -> Fit {
    let fullest = stages.iter().max_by(|a, b| a.held.total().get().total_cmp(&b.held.total().get())).expect("a stage");
    let total = fullest.held.total();
    if total <= capacity {
        return Fit::Fits { spare: capacity.less(total) };
    }
    let room = capacity.get() - fullest.held.reserve;
    let (weights_alone, kv_alone) =
        (fullest.held.all_weights().get() + fullest.held.side > room, fullest.held.kv > room);
    Fit::TooLarge { missing: total.less(capacity), stage: fullest.index, weights_alone, kv_alone }
}

pub fn shards(cut: Cut, d: &Degrees) -> u64 {
    match cut {
        Cut::Whole => 1,
        Cut::Tensor => d.tp,
        Cut::KvHeads(n) => d.tp.min(n),
        Cut::Experts => d.ep * d.etp,
    }
}

pub(crate) fn bytes_here(tensor: &Tensor, formats: Formats, d: &Degrees) -> f64 {
    let width = tensor.part.dtype(&formats).width();
    let all = (width * Params::new(tensor.params() as f64)).get();
    let copies = if tensor.cut == Cut::Experts { 1.0 + d.redundant as f64 / tensor.copies.max(1) as f64 } else { 1.0 };
    all * copies / shards(tensor.cut, d) as f64
}
pub fn cache_shards(mixer: &Mixer, d: &Degrees) -> u64 {
    d.cp * match mixer {
        // Chips that would keep copies may each keep some of the tokens.
        Mixer::Attention(a) => d.tp.min(a.kv_heads) * d.dcp,
        // One latent serves all heads, so each chip of a tensor-parallel group keeps it.
        Mixer::Latent(_) => d.dcp,
        Mixer::Linear(_) => d.tp,
        Mixer::Compressed(_) | Mixer::None => 1,
    }
}

/// What a layer keeps, computes and sends on one chip.
struct Layer {
    /// Bytes and arithmetic, tensor by tensor.
    tensors: Vec<(Part, f64, f64)>,
    kv: f64,
    attention: f64,
    sent: Sent,
}

impl Layer {
    fn of(block: &Block, on: &Deployment, load: &Load, shape: &Shape) -> Self {
        let d = on.layout.degrees();
        let tensors = block_tensors(shape, block);
        let here = |t: &Tensor| (t.part, bytes_here(t, on.formats, &d), flop_here(t, on, load, &d));
        let (cache, per_group) = (kv::layer(&block.mixer, on.kv), load.batch / d.dp as f64);
        Self {
            tensors: tensors.iter().map(here).collect(),
            kv: load.of_fullest(on.groups()) * cache.stored(load.context).get() / cache_shards(&block.mixer, &d) as f64,
            attention: per_group * cache.decode_flop(load.context).get() / (d.tp * d.cp) as f64,
            sent: layer_traffic(on, load, shape, block),
        }
    }
}

fn place_layers(on: &Deployment, load: &Load, shape: &Shape) -> Vec<Stage> {
    let d = on.layout.degrees();
    let counts = stage_layers(shape.n_layers(), d.pp);
    let per_group = load.batch / d.dp as f64;
    let runs = shape.runs.iter().enumerate();
    let mut layers = runs.flat_map(|(at, run)| std::iter::repeat_n(at, run.n as usize));
    // Layers of a run are alike: one of them is worked out.
    let alike: Vec<Layer> = shape.runs.iter().map(|run| Layer::of(&run.block, on, load, shape)).collect();
    let mut first = 0;
    let mut stages = Vec::with_capacity(counts.len());
    for (index, n) in counts.iter().enumerate() {
        let mut held = Held::default();
        let (mut flop, mut sent) = (0.0, Sent::default());
        for (at, run) in (first..).zip(layers.by_ref().take(*n as usize)) {
            let layer = &alike[run];
            let away = on.split.as_ref().map_or(Away::default(), |split| split.away(at));
            for (part, bytes, work) in &layer.tensors {
                held.weights[*part as usize] += bytes * (1.0 - away.of(*part));
                flop += work;
            }
            held.kv += layer.kv * (1.0 - away.cache);
            flop += layer.attention;
            sent.tensor += layer.sent.tensor;
            sent.reductions += layer.sent.reductions;
            sent.context += layer.sent.context;
            sent.expert_up += layer.sent.expert_up;
            sent.expert_out += layer.sent.expert_out;
            sent.exchanges += layer.sent.exchanges;
        }
        edges(&mut held, &mut flop, on, load, shape, index as u64);
        budget::beside(&mut held, on, load, shape, index as u64, (first, *n));
        if d.pp > 1 {
            // Each tensor-parallel rank hands its part of the 16-bit hidden vectors on.
            sent.pipeline = per_group * shape.hidden as f64 * 2.0 / d.tp as f64;
            sent.pipeline_leaves = on.layout.chips() > domain(&on.system);
        }
        let (index, layers, flop) = (index as u64, (first, *n), Flop::flop(flop));
        stages.push(Stage { index, layers, chips: on.layout.stage_chips(), held, flop, sent });
        first += n;
    }
    stages
}

/// Weights of a chip of one stage, which has so many layers from a first one on.
pub(crate) fn stage_weights(on: &Deployment, shape: &Shape, index: u64, (from, n): (u64, u64)) -> f64 {
    let d = on.layout.degrees();
    let (mut first, mut all) = (0, 0.0);
    for run in &shape.runs {
        let here = (first + run.n).min(from + n).saturating_sub(first.max(from));
        first += run.n;
        if here > 0 {
            let start = (first - run.n).max(from);
            let (whole, experts) = on.split.as_ref().map_or((0.0, 0.0), |s| s.among(start as f64, here as f64));
            let left = |part: Part| here as f64 - whole - if part == Part::Routed { experts } else { 0.0 };
            let tensors = block_tensors(shape, &run.block);
            all += tensors.iter().map(|t| bytes_here(t, on.formats, &d) * left(t.part)).sum::<f64>();
        }
    }
    let outer = outer_tensors(shape);
    all + outer.iter().filter(|t| stands_on(t, shape, index, d.pp)).map(|t| bytes_here(t, on.formats, &d)).sum::<f64>()
}

/// Whether what is outside the layers stands on a stage.
fn stands_on(tensor: &Tensor, shape: &Shape, index: u64, stages: u64) -> bool {
    let last = index + 1 == stages;
    match tensor.part {
        Part::Embedding => index == 0 || (last && shape.tied),
        Part::Head => last,
        _ if tensor.usage == Use::Lookup => index == 0,
        _ => last,
    }
}

/// Embedding on the first stage; head, final norms and side modules on the last; a tied embedding on both.
fn edges(held: &mut Held, flop: &mut f64, on: &Deployment, load: &Load, shape: &Shape, index: u64) {
    let d = &on.layout.degrees();
    let last = index + 1 == d.pp;
    let head_away = on.split.as_ref().is_some_and(|split| split.head);
    for tensor in outer_tensors(shape) {
        let away = head_away && (tensor.part == Part::Head || (shape.tied && index > 0));
        if stands_on(&tensor, shape, index, d.pp) && !away {
            held.weights[tensor.part as usize] += bytes_here(&tensor, on.formats, d);
            if last {
                *flop += flop_here(&tensor, on, load, d);
            }
        }
    }
}

/// Arithmetic of a tensor on one chip for one token of every sequence.
fn flop_here(tensor: &Tensor, on: &Deployment, load: &Load, d: &Degrees) -> f64 {
    if matches!(tensor.usage, Use::Lookup | Use::Unused) {
        return 0.0;
    }
    // A multiplication and an addition per parameter and token.
    let all = 2.0 * tensor.used_params() * load.batch;
    match tensor.cut {
        // Every token's experts are spread over all chips of the stage.
        Cut::Experts => all / on.layout.stage_chips() as f64,
        cut => all / (d.dp * d.cp * shards(cut, d)) as f64,
    }
}

fn layer_traffic(on: &Deployment, load: &Load, shape: &Shape, block: &Block) -> Sent {
    let mut sent = Sent::default();
    let d = &on.layout.degrees();
    let hidden = shape.hidden as f64;
    let per_group = load.batch / d.dp as f64;
    // An all-reduce of 16-bit vectors after each sublayer: 2 (n - 1) / n of them leave each chip.
    let reduce = |n: u64| 2.0 * (n - 1) as f64 / n as f64 * per_group * hidden * 2.0;
    sent.context += per_group * crate::pass::joined_bytes(&block.mixer, d);
    let (first, second) = match &block.ffn {
        Ffn::Moe(_) if d.ep > 1 => (d.tp, 1),
        Ffn::Moe(_) => (d.tp, d.tp.max(d.etp)),
        dense => (if block.mixer == Mixer::None { 1 } else { d.tp }, if *dense == Ffn::None { 1 } else { d.tp }),
    };
    sent.tensor += reduce(first) + reduce(second);
    sent.reductions += f64::from(first > 1) + f64::from(second > 1);
    let (Ffn::Moe(moe), 2..) = (&block.ffn, d.ep) else { return sent };
    sent.exchanges += 1.0;
    let ranks = d.ep;
    let to = distinct_ranks(ranks, moe.experts, moe.top_k) * (ranks - 1) as f64 / ranks as f64;
    // One byte a value out, two back: FP8 dispatch and BF16 combine.
    let bytes = load.batch / on.layout.stage_chips() as f64 * to * hidden * (1.0 + 2.0);
    let domains = on.layout.stage_chips().div_ceil(domain(&on.system)) as f64;
    let leaves = (domains - 1.0) / domains;
    sent.expert_out += bytes * leaves;
    sent.expert_up += bytes * (1.0 - leaves);
    sent
}

/// The lecture's perfect sharding: weights over all chips, cache over the chips of a stage.
fn place_lump(on: &Deployment, load: &Load) -> Vec<Stage> {
    let (count, cache) = (count::count(&on.model), kv::cache(&on.model, on.kv));
    let all = on.layout.chips() as f64;
    let kv = load.batch * cache.stored(load.context).get() / all;
    let reserve = budget::found(on).get() * on.utilisation(load).rest().get();
    let mut held = Held { kv, side: on.beside().get(), reserve, ..Held::default() };
    held.weights[Part::Dense as usize] = count.stored_bytes(&on.formats).get() / all;
    let flop = Flop::flop(2.0 * count.multiplied().get() * load.batch / all);
    let (layers, chips, sent) = ((0, 0), on.layout.stage_chips(), Sent::default());
    (0..on.layout.degrees().pp).map(|index| Stage { index, layers, chips, held, flop, sent }).collect()
}

/// Most sequences of this context that fit, keeping everything else: whole ones in every group.
pub fn largest_batch(on: &Deployment, load: &Load) -> f64 {
    let held = held_batch(on, load);
    match &on.model.body {
        Body::Layers(_) => (held / on.groups()).floor() * on.groups(),
        // Spread evenly over all chips.
        Body::Lump(_) => held.floor(),
    }
}

/// The same with the part of one more that fits as well: its blocks hold shorter ones.
pub fn held_batch(on: &Deployment, load: &Load) -> f64 {
    let at = |batch: f64| place(on, &Load { batch, ..*load });
    let none = at(0.0);
    if matches!(none.fit, Fit::TooLarge { .. }) {
        return 0.0;
    }
    // Memory is a line in the batch, so two points give its slope on the fullest stage.
    let room = |p: &Placement, batch: f64| {
        let stages = p.stages.iter().map(|s| p.capacity.get() - s.held.total().get());
        let cards = split::on_cards(on, &Load { batch, ..*load }).into_iter();
        stages.chain(cards.map(|(held, room)| room.get() - held.get())).collect::<Vec<_>>()
    };
    let step = on.layout.degrees().dp as f64;
    let fits = room(&none, 0.0)
        .into_iter()
        .zip(room(&at(step), step))
        .map(|(free, less)| if free - less > 0.0 { free / (free - less) * step } else { f64::INFINITY })
        .fold(f64::INFINITY, f64::min);
    if fits.is_finite() { fits } else { 1e9 }
}

/// Longest context that fits with this batch, or nothing if none does; infinite when any does.
pub fn longest_context(on: &Deployment, load: &Load) -> Option<f64> {
    let fits =
        |context: f64| matches!(place(on, &Load { context: Tokens::new(context), ..*load }).fit, Fit::Fits { .. });
    if !fits(0.0) {
        return None;
    }
    let mut high = 1024.0;
    while fits(high) {
        high *= 2.0;
        if high > 1e11 {
            return Some(f64::INFINITY);
        }
    }
    let mut low = if high > 1024.0 { high / 2.0 } else { 0.0 };
    while high - low > 1.0 {
        let middle = f64::midpoint(low, high).floor();
        if fits(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

/// The lecture's closed form: bytes per chip of weights and of cache.
pub fn lecture_memory(weights: Bytes, ep: f64, pp: f64, micro_batch: f64, cache: Bytes) -> (Bytes, Bytes) {
    (weights / (ep * pp), cache * micro_batch / ep)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmath_spec::{Dtype, Layout};
    use std::sync::Arc;

    fn on(model: &str, system: &str, chips: u64, degrees: Degrees) -> Deployment {
        let mut one = Deployment::named(&rackmath_catalog::embedded(), model, system, "ideal").unwrap();
        Arc::make_mut(&mut one.system).n_chips = chips;
        Deployment { kv: Dtype::Bf16, layout: Layout::new(degrees).unwrap(), ..one }
    }

    fn load(batch: f64, context: f64, tokens: f64) -> Load {
        Load { batch, context: Tokens::new(context), tokens, utilisation: Some(Fraction::new(0.9)) }
    }

    #[test]
    fn a_sequence_lies_whole_in_one_group_and_the_fullest_decides() {
        // Llama 3.1 8B keeps 2 x 32 layers x 8 heads x 128 x 2 B = 131,072 B a token, 16.78 GB for 128,000: as much in eight copies
        // as in one, more than a card of 24 GiB has beside 16 GB of weights.
        let eight = on("llama-3.1-8b", "rtx-4090", 8, Degrees { dp: 8, ..Degrees::default() });
        let one = on("llama-3.1-8b", "rtx-4090", 1, Degrees::default());
        let kv = |on: &Deployment, batch| place(on, &load(batch, 128_000.0, 8192.0)).stages[0].held.kv;
        assert_eq!(kv(&eight, 1.0), 131_072.0 * 128_000.0);
        assert_eq!([1.0, 8.0, 9.0].map(|b| kv(&eight, b) / kv(&one, 1.0)), [1.0, 1.0, 2.0]);
        let most = |on: &Deployment, context| largest_batch(on, &load(1.0, context, 8192.0));
        assert_eq!((most(&eight, 128_000.0), most(&one, 128_000.0)), (0.0, 0.0));
        assert_eq!(most(&eight, 8_000.0), 8.0 * most(&one, 8_000.0));
        assert!(most(&one, 8_000.0) >= 1.0);
    }

    #[test]
    fn g45_weights_shrink_with_stages_and_cache_does_not() {
        for (pp, weights) in [(1.0, 15.625), (2.0, 7.8125), (4.0, 3.90625), (8.0, 1.953125)] {
            let cache = Bytes::b(100_000.0 * 2048.0);
            let (w, kv) = lecture_memory(Bytes::tb(1.0), 64.0, pp, 2400.0, cache);
            assert_eq!((w.as_gb(), kv.as_gb()), (weights, 7.68));
        }
    }

    #[test]
    fn deepseek_does_not_fit_eight_h100_in_bf16_and_holds_what_was_published() {
        let one = on("deepseek-v3", "hgx-h100", 8, Degrees { tp: 8, etp: 8, ..Degrees::default() });
        let one = Deployment { formats: Formats::uniform(Dtype::Bf16), ..one };
        let load = load(1.0, 1024.0, 2048.0);
        let placed = place(&one, &load);
        assert!(matches!(placed.fit, Fit::TooLarge { weights_alone: true, kv_alone: false, .. }), "{:?}", placed.fit);
        assert_eq!(largest_batch(&one, &load), 0.0);
        // Section 5 row 9: about 5.1 GB of routed experts and 17 GB of copied weights on a decode GPU. EP 128 puts 2 of the
        // 256 experts of each of 58 layers on a chip; embedding and head in 16 bits make the copied part 18 GB here.
        let one = on("deepseek-v3", "hgx-h800", 128, Degrees { dp: 128, ep: 128, ..Degrees::default() });
        let held = place(&Deployment { kv: Dtype::Fp8, ..one }, &self::load(128.0, 4096.0, 128.0)).stages[0].held;
        assert!((held.part(Part::Routed).as_gb() - 5.11).abs() < 0.02, "{}", held.part(Part::Routed));
        let copied = held.all_weights().as_gb() - held.part(Part::Routed).as_gb();
        assert!((copied - 18.0).abs() < 1.5, "{copied}");
    }

    fn sent(model: &str, system: &str, chips: u64, degrees: Degrees, batch: f64) -> Sent {
        place(&on(model, system, chips, degrees), &load(batch, 4096.0, 8192.0)).stages[0].sent
    }

    #[test]
    fn traffic_by_hand() {
        // Llama-3-70B, tp 8, 64 sequences: 80 layers x 2 all-reduces of 64 x 8,192 x 2 B, of which 2 x 7/8 leave a chip.
        let cut = Degrees { tp: 8, etp: 8, ..Degrees::default() };
        let s = sent("llama-3.1-70b", "hgx-h100", 8, cut, 64.0);
        assert_eq!((s.tensor, s.reductions), (160.0 * 64.0 * 8192.0 * 2.0 * 1.75, 160.0));
        assert_eq!((s.expert_up, s.expert_out, s.pipeline), (0.0, 0.0, 0.0));
        // 64 sequences of 8,192 16-bit values, an eighth from each tensor-parallel rank; 16 chips leave the node.
        let s = sent("llama-3.1-70b", "hgx-h100", 16, Degrees { pp: 2, ..cut }, 64.0);
        assert_eq!((s.pipeline, s.pipeline_leaves), (64.0 * 8192.0 * 2.0 / 8.0, true));
        // DeepSeek-V3 on 16 chips in two nodes of 8, 16 tokens a chip: 58 layers, k'(16) ranks of which 15/16 are others,
        // 7,168 values of 1 byte out and 2 back; half of it leaves the node.
        let s = sent("deepseek-v3", "hgx-h800", 16, Degrees { dp: 16, ep: 16, ..Degrees::default() }, 256.0);
        let all = 58.0 * 16.0 * distinct_ranks(16, 256, 8) * (15.0 / 16.0) * 7168.0 * 3.0;
        assert!((s.expert_up + s.expert_out - all).abs() < 1e-6 * all && s.expert_up == s.expert_out);
        assert_eq!((s.exchanges, s.tensor), (58.0, 0.0));
    }
}
