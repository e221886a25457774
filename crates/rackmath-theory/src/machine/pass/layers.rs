//! From a model, a machine, a layout and an engine to a pass that can be timed.

use super::host::HostPart;
use super::links::add_network;
use super::products::{Matrix, Multiplier, PlainKernel, matrices, plain_math, silicon};
use super::replay::{Launches, Replays};
use super::{Assumption, Cost, Draft, Limit, MixerOp, Part, Pass, Stroke, Table, stretch};
use crate::adapters::AdapterPass;
use crate::count::{Part as Where, Use, block_tensors, experts_run, outer_tensors};
use crate::deployment::{Deployment, Untimed};
use crate::drafter::Drafter;
use crate::layout::domain;
use crate::network::{self, Collective, Group};
use crate::operator::{Silicon, moe, streams};
use rackmath_spec::model::{Block, Compressed, Ffn, Mixer, Moe, QkNorm, Run, Shape, Span};
use rackmath_spec::{
    AttentionKernels, Catalog, Dtype, GemmKernels, Math, Model, MoeFormat, MoeFound, MoeKernels, MoeMatch,
    SmallKernels, SpecError,
};
use rackmath_units::{Bytes, Seconds, Tokens};
use std::sync::Arc;

/// Latent attention, experts, indexes and streams have kernels of their own, which models without them need not read.
#[derive(Clone, Debug)]
pub struct KernelSet {
    pub gemm: Arc<GemmKernels>,
    pub attention: Arc<AttentionKernels>,
    latent: Option<Arc<AttentionKernels>>,
    moe: Option<Arc<MoeKernels>>,
    small: Option<Arc<SmallKernels>>,
}

impl KernelSet {
    /// For any model.
    pub fn of(catalog: &Catalog) -> Result<Self, SpecError> {
        Self::read(catalog, true, true, true)
    }

    /// For passes of this model alone.
    pub fn of_model(catalog: &Catalog, model: &Model) -> Result<Self, SpecError> {
        let picks = |run: &Run| match &run.block.mixer {
            Mixer::Attention(a) => matches!(a.span, Span::Blocks(_)),
            Mixer::Latent(a) => a.indexer.is_some(),
            Mixer::Compressed(_) => true,
            Mixer::Linear(_) | Mixer::None => false,
        };
        let any = |holds: &dyn Fn(&Run) -> bool| model.shape().is_some_and(|s| s.runs.iter().any(holds));
        let streams = model.shape().is_some_and(|s| s.streams.is_some());
        let latent = model.shape().is_some_and(|s| s.latent_layers() > 0);
        Self::read(catalog, latent, model.shape().is_some_and(|s| s.moe().is_some()), streams || any(&picks))
    }

    fn read(catalog: &Catalog, latent: bool, moe: bool, small: bool) -> Result<Self, SpecError> {
        Ok(Self {
            gemm: catalog.gemm_kernels()?,
            attention: catalog.attention_kernels()?,
            latent: latent.then(|| catalog.mla_kernels()).transpose()?,
            moe: moe.then(|| catalog.moe_kernels()).transpose()?,
            small: small.then(|| catalog.small_kernels()).transpose()?,
        })
    }

    pub(super) fn latent(&self) -> &AttentionKernels {
        self.latent.as_ref().expect("read for models with latent attention")
    }

    pub(super) fn small(&self) -> &SmallKernels {
        self.small.as_ref().expect("read for models with an index, a compressed cache or several streams")
    }

    fn moe(&self) -> &MoeKernels {
        self.moe.as_ref().expect("read for models with experts")
    }
}

/// Bytes of a value that travels between chips: 16 bits in reductions and on the way back from experts, 8 on the way there.
pub(super) const WIDE: f64 = 2.0;
pub(super) const DISPATCHED: f64 = 1.0;

impl Pass {
    /// Without drafts they cost nothing and must not be asked for, and a third of the work is saved. Products of `like`, a
    /// pass that differs only in its cache or its drafts, are taken over.
    pub fn prepare(d: &Deployment, kernels: &KernelSet, drafts: bool, like: Option<&Self>) -> Result<Self, Untimed> {
        let shape = d.model.shape().ok_or(Untimed::NoLayers)?;
        let mut prep = Prep::new(d, shape, kernels).ok_or(Untimed::NoPeak)?;
        let mut mixers: Vec<(f64, MixerOp)> = Vec::new();
        let mut seen: Vec<&Mixer> = Vec::new();
        let split = d.split.as_deref().filter(|split| split.cache);
        let mut first = 0.0;
        for run in &shape.runs {
            let (mixer, n) = (&run.block.mixer, run.n as f64);
            let there = split.map_or(0.0, |split| split.among(first, n).0);
            first += n;
            if *mixer == Mixer::None {
                continue;
            }
            if let Some(at) = seen.iter().position(|m| *m == mixer) {
                mixers[at].0 += n - there;
                continue;
            }
            if !prep.mixer_measured(mixer) && !d.engine.ideal && d.engine.plain.is_none() {
                prep.borrow(Assumption::Attention { generation: d.system.chip.generation.clone() });
            }
            mixers.push((n - there, prep.mixer(mixer).ok_or(Untimed::NoPeak)?));
            seen.push(mixer);
        }
        let places = d.split.as_ref().map_or_else(Vec::new, |split| split.places());
        let hosted: Vec<_> = places.iter().map(|place| (place, place.on_host(d))).collect();
        let hosts = hosted.iter().map(|(place, on)| HostPart::new(place, on, shape, kernels).ok_or(Untimed::NoOffload));
        let hosts = hosts.collect::<Result<Vec<HostPart>, Untimed>>()?;
        mixers.extend(hosts.iter().flat_map(|host| seen.iter().filter_map(|mixer| host.mixer(mixer))));
        let layers = |rows: f64| {
            let mut cost = Cost::default();
            for layer in &prep.layers {
                let here = layer.count - layer.away.0;
                prep.add_layer(layer, rows, (here, here - layer.away.1), &mut cost);
            }
            for host in &hosts {
                host.add(&prep, rows, &mut cost);
            }
            prep.add_edges(rows, &mut cost);
            cost
        };
        let rows = like.map_or_else(|| Table::new(layers), |pass| pass.rows.clone());
        let heads = |sequences: f64| match hosts.iter().find(|host| host.has_head()) {
            Some(host) => host.head(sequences),
            None => prep.head(sequences),
        };
        let head = like.map_or_else(|| Table::new(heads), |pass| pass.head.clone());
        let drafted = |rows: f64| {
            let mut cost = prep.head(rows);
            if let Some(layer) = &prep.draft {
                prep.add_layer(layer, rows, (1.0, 1.0), &mut cost);
            }
            cost
        };
        let draft = match &d.drafter {
            _ if !drafts => Draft::Layer(Table::default()),
            Drafter::Layer => Draft::Layer(Table::new(drafted)),
            Drafter::Model(own) => {
                Draft::Model(Box::new(Self::prepare(&own.beside(d), kernels, false, None)?), own.prepare)
            }
            Drafter::Lookup(each) => Draft::Lookup(*each),
        };
        Ok(Self {
            rows,
            head,
            draft,
            mixers,
            joints: prep.joints(),
            adapters: prep.adapters(),
            ideal: d.engine.ideal,
            head_every_token: d.engine.kernels.head_every_token,
            replays: Replays::of(
                &d.engine.schedule,
                d.overhead(),
                Launches {
                    layers: shape.n_layers(),
                    experts: if prep.fused { 0 } else { shape.moe_layers() },
                    expert: prep.launch_expert.unwrap_or(d.overhead().launch_expert),
                    latent: shape.latent_layers(),
                },
            ),
            overhead: *d.overhead(),
            encoder: super::encoder::per_token(d, kernels)?,
            assumed: prep.assumed,
        })
    }
}
pub(super) struct Layer<'a> {
    pub(super) count: f64,
    /// How many of them lie in the host's memory whole, and how many more with their experts alone.
    pub(super) away: (f64, f64),
    pub(super) products: Vec<Matrix>,
    pub(super) moe: Option<&'a Moe>,
    pub(super) mixer: bool,
    pub(super) ffn: bool,
    /// Small kernels and reductions for norms on queries and keys.
    pub(super) norms: (f64, f64),
    /// Width of the activation between the two products of the network, on this chip.
    inner: f64,
    /// Values of a token that small kernels of the mixer move beside the hidden ones.
    beside: f64,
}

pub(super) struct Prep<'a> {
    pub(super) d: &'a Deployment,
    pub(super) shape: &'a Shape,
    pub(super) kernels: &'a KernelSet,
    multipliers: Vec<(Dtype, Multiplier<'a>)>,
    pub(super) layers: Vec<Layer<'a>>,
    draft: Option<Layer<'a>>,
    experts: Option<(Silicon, MoeFound, MoeFormat)>,
    fused: bool,
    launch_expert: Option<Seconds>,
    /// The engine's one rule for experts, where it has one.
    plain: Option<PlainKernel>,
    pub(super) silicon: Silicon,
    pub(super) assumed: Vec<Assumption>,
}

impl<'a> Prep<'a> {
    pub(super) fn new(d: &'a Deployment, shape: &'a Shape, kernels: &'a KernelSet) -> Option<Self> {
        let (chip, engine) = (&d.system.chip, &d.engine);
        let silicon = silicon(chip, plain_math(chip))?;
        let mut prep = Self {
            d,
            shape,
            kernels,
            multipliers: Vec::new(),
            layers: Vec::new(),
            draft: None,
            experts: None,
            fused: false,
            launch_expert: None,
            plain: engine.plain_on(chip).and_then(|p| PlainKernel::of(p, chip, d.formats.routed)),
            silicon,
            assumed: Vec::new(),
        };
        for dtype in [d.formats.linear, d.formats.mixer, d.formats.other, d.formats.routed] {
            if prep.multipliers.iter().all(|(d, _)| *d != dtype) {
                let one = Multiplier::of(d, &kernels.gemm, dtype)?;
                prep.assumed.extend(one.assumed.clone());
                if !one.measured && !engine.ideal {
                    let generation = chip.generation.clone();
                    prep.borrow(Assumption::Products { format: dtype, generation });
                }
                prep.multipliers.push((dtype, one));
            }
        }
        let mut kinds: Vec<&Block> = Vec::new();
        let mut first = 0.0;
        for run in &shape.runs {
            let at = kinds.iter().position(|b| same_rows(b, &run.block)).unwrap_or_else(|| {
                kinds.push(&run.block);
                let layer = prep.layer(&run.block, 0.0);
                prep.layers.push(layer);
                kinds.len() - 1
            });
            let (n, layer) = (run.n as f64, &mut prep.layers[at]);
            let (whole, experts) = d.split.as_ref().map_or((0.0, 0.0), |split| split.among(first, n));
            layer.count += n;
            layer.away.0 += whole;
            layer.away.1 += if layer.moe.is_some() { experts } else { 0.0 };
            first += n;
        }
        let drafter = shape.mtp.as_ref().map(|mtp| &mtp.block).or(shape.runs.last().map(|run| &run.block));
        prep.draft = drafter.map(|block| prep.layer(block, 1.0));
        if shape.moe().is_some() {
            prep.find_experts()?;
        }
        if d.layout.degrees().tp > 1 && d.links.up.is_none() && !engine.ideal {
            prep.assumed.push(Assumption::Links { kind: chip.link.kind.clone() });
        }
        let hosts = d.layout.degrees().tp.div_ceil(domain(&d.system));
        if hosts > 1 && !engine.ideal {
            prep.assumed.push(Assumption::Hosts { hosts });
        }
        Some(prep)
    }

    /// What adapters add, and how many of them are among so many sequences.
    fn adapters(&self) -> Option<(AdapterPass, Table)> {
        let adapters = self.d.adapters.filter(|a| !a.is_none())?;
        let Silicon { peak, bandwidth, .. } = self.silicon;
        let pass = adapters.pass(self.shape, &self.d.layout.degrees(), bandwidth, peak.get());
        // A number, carried as a time.
        let distinct = |n: f64| Cost::of(Part::Adapters, Limit::Memory, Seconds::s(adapters.distinct(n)));
        Some((pass, Table::new(distinct)))
    }

    fn find_experts(&mut self) -> Option<()> {
        let (chip, engine) = (&self.d.system.chip, &self.d.engine);
        let generation = self.kernels.moe().generation(chip).to_owned();
        let narrow = chip.peak.contains_key(&Math::Fp4) && engine.kernels.narrow_experts.contains(&generation);
        let native = chip.peak.contains_key(&Math::Fp4);
        let wanted = expert_format(self.d.formats.routed, self.d.formats.linear, narrow, native);
        // Where the arithmetic is missing weights are expanded to 16 bits.
        let fallback = match wanted {
            MoeFormat::NvFp4 | MoeFormat::MxFp4A8 => MoeFormat::MxFp4A16,
            MoeFormat::Fp8 | MoeFormat::Fp8Block => MoeFormat::Bf16,
            other => other,
        };
        let (format, silicon) = match Silicon::of(chip, wanted.math()) {
            Some(silicon) => (wanted, silicon),
            None => (fallback, silicon(chip, fallback.math())?),
        };
        let rule = engine.experts(&generation, format, self.d.layout.degrees().dp > 1);
        let family = rule.map_or("default", |rule| &rule.family);
        let found = self.kernels.moe().find(family, format, &generation).ok()?;
        if !engine.ideal && engine.plain.is_none() && found.matched != MoeMatch::Exact {
            let (family, from) = (family.to_string(), found.matched);
            self.borrow(Assumption::Experts { family, format, generation, from });
        }
        self.experts = Some((silicon, found, format));
        (self.fused, self.launch_expert) = rule.map_or((false, None), |rule| (rule.fused, rule.launch));
        Some(())
    }

    /// Kernels of something else stand in: say so once.
    fn borrow(&mut self, note: Assumption) {
        if !self.assumed.contains(&note) {
            self.assumed.push(note);
        }
    }

    fn layer(&self, block: &'a Block, count: f64) -> Layer<'a> {
        let d = self.d.layout.degrees();
        let (moe, inner) = match &block.ffn {
            Ffn::Moe(moe) => (Some(moe), moe.shared.map_or(0.0, |s| s.width as f64 / d.tp as f64)),
            Ffn::Dense(mlp) => (None, mlp.width as f64 / d.tp as f64),
            Ffn::None => (None, 0.0),
        };
        let norms = match &block.mixer {
            Mixer::Attention(a) if a.qk_norm == QkNorm::PerHead => (2.0, 0.0),
            // A norm across all heads needs the sum of squares of every chip.
            Mixer::Attention(a) if a.qk_norm == QkNorm::AllHeads => (2.0, 1.0),
            _ => (0.0, 0.0),
        };
        let products = matrices(&block_tensors(self.shape, block), self.shape.hidden, self.d.formats, &d);
        let (mixer, ffn) = (block.mixer != Mixer::None, block.ffn != Ffn::None);
        let beside = match &block.mixer {
            Mixer::Compressed(a) => compressed_values(a, d.tp as f64),
            _ => 0.0,
        };
        Layer { count, away: (0.0, 0.0), products, moe, mixer, ffn, norms, inner, beside }
    }

    fn multiplier(&self, dtype: Dtype) -> &Multiplier<'a> {
        &self.multipliers.iter().find(|(d, _)| *d == dtype).expect("every format was prepared").1
    }

    /// Everything of a layer that depends on the rows alone.
    /// So many times, and so many with their experts.
    pub(super) fn add_layer(&self, layer: &Layer, rows: f64, (times, with): (f64, f64), cost: &mut Cost) {
        if times <= 0.0 && with <= 0.0 {
            return;
        }
        let o = self.d.overhead();
        let long = stretch((o.stretch, o.stretch_long), rows);
        let before = cost.time().get();
        for matrix in &layer.products {
            self.multiplier(matrix.dtype).add(rows, matrix, Part::Products, times, long, cost);
        }
        if let Some(moe) = layer.moe {
            let wide = o.expert_stretch_wide.filter(|_| self.d.formats.routed.bits() >= 16.0);
            let own = wide.or(o.expert_stretch).map_or(long, |ends| stretch(ends, rows));
            self.add_experts(moe, rows, with, own, cost);
        }
        if times <= 0.0 {
            return;
        }
        let (mixer, ffn) = (f64::from(layer.mixer), f64::from(layer.ffn));
        let kernels = mixer * o.mixer_kernels + ffn * o.ffn_kernels + layer.norms.0;
        // Half of the values belong to each sublayer.
        let values = f64::midpoint(mixer, ffn) * o.hidden_passes * self.shape.hidden as f64
            + o.inner_passes * layer.inner
            + layer.beside;
        self.add_small(rows, kernels, values, times, cost);
        self.add_streams(rows, (mixer + ffn) * times, cost);
        let busy = (cost.time().get() - before) / times;
        self.add_collectives(layer, rows, busy, times, cost);
    }

    fn add_experts(&self, moe: &Moe, rows: f64, times: f64, long: f64, cost: &mut Cost) {
        let Some((silicon, found, format)) = &self.experts else { return };
        let d = self.d.layout.degrees();
        let copies = self.d.layout.expert_copies() as f64;
        // Groups that share the experts bring their rows together.
        let tokens = (rows * (d.dp * d.cp) as f64 / copies).max(1.0);
        let layer = moe::Layer {
            hidden: moe.latent.map_or(self.shape.hidden, |l| l.width),
            inter: moe.expert.width / d.etp,
            gated: moe.expert.gated,
            experts: moe.experts,
            top_k: (experts_run(moe).round() as u64).max(1),
            ranks: d.ep,
        };
        let popularity = self.kernels.moe().popularity;
        let skew = match d.redundant {
            // The board draws evenly, and so do random numbers.
            _ if self.d.engine.ideal || self.d.engine.kernels.random_experts => moe::Skew::default(),
            0 => moe::Skew { ranks: popularity.ranks, touched: popularity.touched },
            _ => moe::Skew { ranks: popularity.copied, touched: popularity.touched },
        };
        let dispatched = d.dp > 1 && d.ep > 1 && !self.gathers();
        let (layer, seen) = if dispatched {
            // Only rows for its own experts reach a rank, each as a token with one choice.
            let experts = ((moe.experts + d.redundant) / d.ep).max(1);
            let (more, _) = moe::Load::busiest(&layer, Tokens::new(tokens), skew);
            let rows = tokens * layer.top_k as f64 / d.ep as f64 * more;
            (moe::Layer { experts, top_k: 1, ranks: 1, ..layer }, rows)
        } else {
            (layer, tokens)
        };
        let call =
            moe::Call { layer, format: *format, tokens: Tokens::new(seen.max(1.0)), draw: moe::Draw::Busiest(skew) };
        let params = moe.expert_params(call.layer.hidden, call.layer.inter);
        let share = experts_run(moe) / moe.experts as f64;
        let touched = moe::touch(tokens, share, skew.touched);
        let bytes = moe.experts as f64 / d.ep as f64 * touched * params * self.d.formats.routed.width().get();
        let flop = 2.0 * tokens * experts_run(moe) / d.ep as f64 * params;
        let timing = if let Some(plain) = &self.plain {
            plain.time(flop, bytes, bytes / self.d.formats.routed.width().get())
        } else {
            let mut timing = moe::time(*silicon, &found.kernel, &call);
            let launches = timing.floor * self.d.overhead().expert_floor;
            timing.time = timing.time.less(timing.floor) + launches;
            timing.floor = launches;
            timing
        };
        let peak = self.d.system.chip.peak_for(self.d.formats.routed).map_or(silicon.peak, |(_, p)| p.value);
        let stroke = Stroke::of(&timing, flop / peak.get(), bytes / silicon.bandwidth.get());
        stroke.add(Part::Experts, times, long, cost);
    }

    /// Norms and the like: a launch each, and so many values of 16 bits moved for a row.
    fn add_small(&self, rows: f64, kernels: f64, values: f64, times: f64, cost: &mut Cost) {
        if self.d.engine.ideal {
            return;
        }
        let o = self.d.overhead();
        let moved = rows * WIDE * values / (o.small_traffic_divisor * self.silicon.bandwidth.get());
        cost.add(Part::Small, Limit::Latency, kernels * o.small.get() * times);
        cost.add(Part::Small, Limit::Memory, moved * times);
    }

    /// Out of a sublayer and into the next, where several residual streams are mixed there.
    fn add_streams(&self, rows: f64, times: f64, cost: &mut Cost) {
        let Some(n) = self.shape.streams.filter(|_| !self.d.engine.ideal) else { return };
        let mixing = streams::Mixing::of(self.shape.hidden, n);
        let here = (self.d.system.chip.generation.as_str(), self.d.overhead().small);
        let one = streams::time(self.silicon, &self.kernels.small().streams, &mixing, rows, here);
        cost.add(Part::Small, Limit::Latency, one.floor.get() * times);
        let limit = if one.compute > one.memory { Limit::Compute } else { Limit::Memory };
        cost.add(Part::Small, limit, (one.time.get() - one.floor.get()) * times);
    }

    /// Embedding, final norm, hops between stages.
    fn add_edges(&self, rows: f64, cost: &mut Cost) {
        // An embedded row is read and written, and so is a normed one.
        self.add_small(rows, 2.0, 4.0 * self.shape.hidden as f64, 1.0, cost);
        let d = self.d.layout.degrees();
        if d.pp > 1
            && !self.d.engine.ideal
            && let Some((level, up)) = self.level()
        {
            let leaves = self.d.layout.chips() > domain(&self.d.system);
            let (level, net) = match self.d.system.levels.get(1).zip(self.d.links.out.as_deref()).filter(|_| leaves) {
                Some(second) => second,
                None => (level, up),
            };
            // Every stream goes on to the next stage.
            let wide = self.shape.streams.map_or(1, |s| s.n) * self.shape.hidden;
            let bytes = Bytes::b(rows * wide as f64 * WIDE / d.tp as f64);
            let hop = network::time(Collective::SendRecv, bytes, &Group::within(level, net, 2));
            add_network((hop.latency.get(), hop.transfer.get()), (d.pp - 1) as f64, cost);
        }
    }

    pub(super) fn head(&self, sequences: f64) -> Cost {
        let mut cost = Cost::default();
        let (tp, engine, overhead) = (self.d.layout.degrees().tp as f64, &self.d.engine, self.d.overhead());
        let dtype = self.d.formats.other;
        for tensor in outer_tensors(self.shape) {
            if tensor.usage == Use::Matrix && matches!(tensor.part, Where::Head | Where::Embedding) {
                let matrix = Matrix { columns: tensor.d_out as f64 / tp, depth: tensor.d_in as f64, dtype };
                let multiplier = self.multiplier(dtype);
                multiplier.add(sequences, &matrix, Part::Head, 1.0, overhead.stretch, &mut cost);
            }
        }
        if !engine.ideal && !self.shape.headless {
            let logits = sequences * self.shape.vocab as f64 * 4.0;
            let assumed = &engine.assumed;
            let bandwidth = assumed.sampling_memory * self.silicon.bandwidth.get();
            cost.add(Part::Head, Limit::Latency, assumed.sampling_passes * overhead.small.get());
            cost.add(Part::Head, Limit::Memory, assumed.sampling_passes * logits / bandwidth);
            if tp > 1.0
                && let Some(group) = self.reach(tp as u64)
            {
                let bytes = Bytes::b(sequences * self.shape.vocab as f64 * WIDE);
                let gather = group.time(Collective::AllGather, bytes);
                add_network((gather.latency.get(), gather.transfer.get()), 1.0, &mut cost);
            }
        }
        cost
    }
}

/// Whether two blocks have the same tensors and sublayers: what they attend to does not matter here.
fn same_rows(a: &Block, b: &Block) -> bool {
    let mixer = match (&a.mixer, &b.mixer) {
        (Mixer::Attention(x), Mixer::Attention(y)) => {
            let mut y = y.clone();
            y.span = x.span;
            *x == y
        }
        (x, y) => x == y,
    };
    mixer && a.ffn == b.ffn && a.side == b.side
}
/// Values of 16 bits that small kernels of compressed attention move for a token: queries are normed and rotated, outputs
/// rotated back and narrowed (each read and written), and what a compressor makes in 32 bits is written and read again, as
/// is its state.
fn compressed_values(a: &Compressed, tp: f64) -> f64 {
    let heads = 4.0 * (a.heads * a.dim) as f64 / tp;
    let folded = |dim: u64| 2.0 * (crate::count::overlap(a) * dim) as f64;
    let columns = a.ratio.map_or(0.0, |_| folded(a.dim) + a.indexer.map_or(0.0, |i| folded(i.dim)));
    heads + 3.0 * 2.0 * columns
}

/// Experts of four bits take their activations as the other layers do: in 4 bits where those are, in 8 where those are or
/// where the engine narrows them for experts alone. Blocks of 32 with a scale each are multiplied as they are only by chips
/// that multiply four bits; others expand the weights to 16 (Marlin on Hopper: vllm-project/vllm issue 57772).
fn expert_format(weights: Dtype, linear: Dtype, narrow: bool, native: bool) -> MoeFormat {
    match weights {
        Dtype::Fp32 | Dtype::Bf16 | Dtype::Fp16 => MoeFormat::Bf16,
        Dtype::Fp8 | Dtype::Int8 => MoeFormat::Fp8,
        Dtype::Fp8Block | Dtype::MxFp8 | Dtype::MxFp6 => MoeFormat::Fp8Block,
        Dtype::NvFp4 => MoeFormat::NvFp4,
        Dtype::Fp4 | Dtype::MxFp4 if linear.bits() < 6.0 => MoeFormat::NvFp4,
        Dtype::Fp4 | Dtype::MxFp4 if (linear.bits() < 12.0 && native) || narrow => MoeFormat::MxFp4A8,
        Dtype::Fp4 | Dtype::MxFp4 => MoeFormat::MxFp4A16,
        Dtype::Int4 | Dtype::Int4G32 | Dtype::Gguf(_) | Dtype::Mixed(_) => MoeFormat::Int4A16,
    }
}
