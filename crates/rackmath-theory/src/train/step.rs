//! The whole step: stages, bubble, gradients, update.
//!
//! $$ T = m\,(t_{max} + v\,h) + \frac{\lceil l/v \rceil}{l} \big(\sum t_i - t_{max}\big) + \frac{(p-1) h}{v} + x(r + a) + (k - 1)\,x(r) + \frac{u N}{d\,W} + t_0 $$
//! $$ x(r) = \max(r - o\,t_{max},\, (1 - o)\,r) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | t_i | stage | s | layers of stage i forward, backward and again, and the head on the last |
//! | l | layers | 1 | layers of the slowest stage: the largest of its chunks has the next whole number of l/v |
//! | h | hop | s | activations to the next stage and gradients back |
//! | r, a | reduce, back | s | gradient reduction; gathering of updated weights |
//! | o, x | data_overlap, exposed | 1, s | share of a micro-batch it hides behind; what shows of it |
//! | k | [`reductions`] | 1 | reductions of a step: one, or where gradients are divided (ZeRO-2) one for each micro-batch, or for each group of p that goes through a chunk together |
//! | u, N, d | optimizer_bytes, params, shards | B, 1, 1 | traffic of the update, parameters, chips that divide it |
//! | t_0 | step | s | once per step |
//!
//! With ZeRO-3 every layer gathers its weights forward and backward and scatters its gradients, side by side with its
//! passes: the longer counts. What is offloaded adds what [`offload`] cannot hide. Schedules beyond 1F1B take their bubble from [`crate::pipeline::closed_bubble`].
//! A configuration is arithmetic on a [`Prepared`], made once per slice of a micro-batch.
//! Ignores: stages of different length in interleaved schedules beyond their sums.
//! Source: Narayanan 2021; counting. That gradients which are divided over the copies have to be reduced after every
//! backward pass, as no copy holds them whole: Rajbhandari 2020, section 5.2; github.com/deepspeedai/DeepSpeed/issues/2252
//! (its maintainer, 2022-08). With chunks, those of one chunk are held whole while its contiguous micro-batches go through:
//! Llama team 2024, arXiv 2407.21783, section 3.3.2, whose run of 16 micro-batches on 16 stages would else reach 32 %, not 41 %. Megatron's distributed optimizer does not divide them: it is ZeRO-1 (Megatron Core User Guide,
//! Distributed Optimizer, read 2026-11).

use super::layer::{LayerTime, layer, rounded};
use super::machine::Machine;
use super::work::{Kept, Multiply, Slice, Work, block};
use super::{Cut, Job, Recompute, Sharding, Spread, offload};
use crate::layout::stage_layers;
use crate::network::Collective;
use crate::pipeline::{self, Passes, Schedule, closed_bubble};
use rackmath_spec::training::AttentionPath;
use rackmath_units::{Fraction, Seconds};
use strum::{Display, EnumCount, VariantArray};

/// A run of equal layers, timed for one slice of a micro-batch.
#[derive(Clone, Debug, PartialEq)]
struct Piece {
    n: u64,
    time: LayerTime,
    work: Work,
}

/// All that does not depend on pipeline, copies or schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    pieces: Vec<Piece>,
    layers: u64,
    head: f64,
    /// Bytes between stages, one way.
    hop_bytes: f64,
    /// Parameters of the embedding on a chip, positions included.
    embedding: f64,
    head_params: f64,
    tied: bool,
    /// Whether embedding and head are trained.
    full: bool,
    /// Logits of a micro-batch on a chip.
    pub logits: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stage {
    pub index: u64,
    pub is_last: bool,
    pub layers: u64,
    /// Times of its layers for one micro-batch.
    pub time: LayerTime,
    pub head: f64,
    pub params: f64,
    pub expert_params: f64,
    /// Of these, or beside them, what is trained.
    pub trained: f64,
    pub trained_experts: f64,
    /// Of these, what is stored in 4 bits, and the largest matrix of it.
    pub narrow: f64,
    pub largest_matrix: f64,
    /// Parameters of embedding and head on a chip.
    pub vocabulary: f64,
    /// Of these, the larger of the two.
    pub largest_table: f64,
    pub largest_layer: f64,
    pub kept: Kept,
    /// The same of the layer that keeps most.
    pub largest: Kept,
}

/// What the time of a step goes into. The first six are a layer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumCount, VariantArray)]
pub enum Part {
    #[strum(to_string = "matrix products")]
    Products,
    #[strum(to_string = "attention")]
    Attention,
    #[strum(to_string = "norms and functions")]
    Elementwise,
    #[strum(to_string = "tensor-parallel communication")]
    Tensor,
    #[strum(to_string = "expert and context exchange")]
    Exchange,
    #[strum(to_string = "waiting for the host")]
    Host,
    #[strum(to_string = "passes run again")]
    Again,
    /// What the passes do not hide.
    #[strum(to_string = "gathering weights")]
    Gather,
    #[strum(to_string = "head and loss")]
    Head,
    #[strum(to_string = "transfers between stages")]
    Hops,
    #[strum(to_string = "pipeline bubble")]
    Bubble,
    /// What shows of it.
    #[strum(to_string = "gradient reduction")]
    Reduce,
    #[strum(to_string = "optimizer")]
    Update,
    /// Those nothing hides.
    #[strum(to_string = "transfers to the host")]
    Offload,
    #[strum(to_string = "once per step")]
    Fixed,
}

/// A step with its parts, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepTime {
    pub total: f64,
    parts: [f64; Part::COUNT],
}

impl StepTime {
    pub fn of(&self, part: Part) -> f64 {
        self.parts[part as usize]
    }
}

impl Prepared {
    /// Times every kind of layer for one slice of a micro-batch.
    pub fn new(machine: &Machine<'_>, job: &Job<'_>, cut: &Cut) -> Self {
        let (shape, stack) = (job.shape, machine.stack);
        let flash = stack.attention == AttentionPath::Flash;
        let stored = stack.memory.stored_bytes(job.format);
        let (dropout, fused) = (stack.dropout, stack.traffic.fused_experts);
        let slice = Slice { cut, sequence: job.sequence as f64, flash, dropout, stored, fused };
        let pieces = shape.runs.iter().map(|run| {
            let work = block(shape, &run.block, &slice);
            Piece { n: run.n, time: layer(machine, &work, cut), work }
        });
        let (t, h, tp) = (slice.tokens(), shape.hidden as f64, cut.tp as f64);
        let columns = (shape.vocab as f64 / tp).ceil();
        let logits = t * columns;
        let product = machine.wide_product(Multiply { rows: t, columns, depth: h, matrices: 1.0 });
        let moved = stack.traffic.logit_bytes * logits / machine.bandwidth();
        let full = cut.tuning.is_full();
        Self {
            pieces: pieces.collect(),
            layers: shape.n_layers(),
            head: product.forward
                + product.input
                + if full { product.weight } else { 0.0 }
                + moved
                + stack.host.head.get(),
            hop_bytes: 2.0 * t * h / tp,
            embedding: (shape.vocab as f64 / tp + shape.positions as f64) * h,
            head_params: columns * h,
            tied: shape.tied,
            full,
            logits,
        }
    }

    /// Forward and backward of the fastest layer, and of all of them.
    pub fn passes(&self) -> (f64, f64) {
        let each = |piece: &Piece| piece.time.forward + piece.time.backward;
        let fastest = self.pieces.iter().map(each).fold(f64::INFINITY, f64::min);
        (fastest, self.pieces.iter().map(|p| p.n as f64 * each(p)).sum())
    }

    pub fn stages(&self, pp: u64, spread: Spread) -> Vec<Stage> {
        let counts = match spread {
            // Two more layers than there are, less one at each end; where that does not come out even, evenly.
            Spread::EndsLighter if pp > 2 && (self.layers + 2).is_multiple_of(pp) => {
                let each = (self.layers + 2) / pp;
                (0..pp).map(|i| each - u64::from(i == 0 || i + 1 == pp)).collect()
            }
            _ => stage_layers(self.layers, pp),
        };
        let mut runs = self.pieces.iter().map(|p| (p, p.n)).collect::<Vec<_>>().into_iter();
        let mut current = runs.next();
        let last = counts.len().saturating_sub(1);
        let mut stages = Vec::with_capacity(counts.len());
        for (i, wanted) in counts.into_iter().enumerate() {
            let mut stage = Stage { index: i as u64, is_last: i == last, ..Stage::default() };
            let mut missing = wanted;
            while missing > 0 {
                let Some((piece, left)) = current else { break };
                let taken = missing.min(left);
                stage.take(piece, taken);
                missing -= taken;
                current = if taken == left { runs.next() } else { Some((piece, left - taken)) };
            }
            self.ends(&mut stage, i == 0, i == last);
            stages.push(stage);
        }
        stages
    }

    fn ends(&self, stage: &mut Stage, first: bool, last: bool) {
        if first {
            stage.vocabulary += self.embedding;
            stage.largest_table = self.embedding;
        }
        if last {
            stage.head = self.head;
            stage.largest_table = stage.largest_table.max(self.head_params);
            // A tied head on another stage than the embedding is a copy of it.
            if !(first && self.tied) {
                stage.vocabulary += self.head_params;
            }
        }
        stage.params += stage.vocabulary;
        stage.trained += if self.full { stage.vocabulary } else { 0.0 };
    }
}

impl Stage {
    fn take(&mut self, piece: &Piece, n: u64) {
        let (k, work) = (n as f64, &piece.work);
        self.layers += n;
        self.time.add(&piece.time, k);
        self.params += k * work.params;
        self.expert_params += k * work.expert_params;
        self.trained += k * work.trained;
        self.trained_experts += k * work.trained_experts;
        self.narrow += k * work.narrow;
        self.largest_matrix = self.largest_matrix.max(work.largest_matrix);
        self.largest_layer = self.largest_layer.max(work.params + work.expert_params);
        self.kept.add(&work.kept, k);
        if work.kept.all > self.largest.all {
            self.largest = work.kept;
        }
    }

    /// Time of one micro-batch, and what of it is run again.
    fn micro_batch(&self, recompute: Recompute) -> (f64, f64) {
        let again = match recompute {
            Recompute::None => 0.0,
            Recompute::Selective => self.time.selective,
            Recompute::Cheap => self.time.cheap,
            // Inverting a layer runs its functions once more: a third of forward and backward, as from its input.
            Recompute::Full | Recompute::Reversible => self.time.forward,
        };
        (self.time.forward + self.time.backward + again + self.head, again)
    }
}

/// The stage properties that set the step time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    pub slowest: Stage,
    longest: f64,
    again: f64,
    sum: f64,
    /// What is trained of the stage with most parameters.
    trained: f64,
    trained_experts: f64,
}

impl Row {
    /// Seconds of a micro-batch on the slowest stage.
    pub fn longest(&self) -> f64 {
        self.longest
    }

    pub fn new(stages: &[Stage], recompute: Recompute) -> Option<Self> {
        let slowest =
            *stages.iter().max_by(|a, b| a.micro_batch(recompute).0.total_cmp(&b.micro_batch(recompute).0))?;
        let (longest, again) = slowest.micro_batch(recompute);
        let sum = stages.iter().map(|s| s.micro_batch(recompute).0).sum();
        let heaviest =
            stages.iter().max_by(|a, b| (a.params + a.expert_params).total_cmp(&(b.params + b.expert_params)))?;
        let Stage { trained, trained_experts, .. } = *heaviest;
        Some(Self { slowest, longest, again, sum, trained, trained_experts })
    }
}

/// The time of a step; `row` must be that of the cut's stages and recomputation.
pub fn step(machine: &Machine<'_>, prepared: &Prepared, row: &Row, cut: &Cut, micro_batches: u64) -> StepTime {
    let stack = machine.stack;
    let (m, v) = (micro_batches as f64, cut.chunks() as f64);
    let gather = gathering(machine, row, cut);
    let swap = offload::activation_time(machine, &row.slowest, cut, row.again);
    let longest = row.longest + gather + swap;
    let hop = if cut.pp > 1 { hop(machine, prepared, cut) } else { 0.0 };
    // Other stages wait as long for their weights, in proportion to their work.
    let others = (row.sum - row.longest).max(0.0) * longest / row.longest.max(f64::MIN_POSITIVE);
    let bubble = bubble(cut, row, others, hop, v, micro_batches);
    let (reduce, back) = if cut.sharding == Sharding::Zero3 { (0.0, 0.0) } else { reduction(machine, row, cut) };
    let overlap = stack.network.data_overlap;
    let shows = |reduce: f64| (reduce - overlap * longest).max((1.0 - overlap) * reduce);
    let reductions = reductions(cut, micro_batches);
    let exposed = shows(reduce + back) + (reductions - 1.0) * shows(reduce);
    let copies = (cut.dp * cut.cp) as f64;
    let updated = if cut.sharding >= Sharding::Zero1 {
        row.trained / copies + row.trained_experts / cut.expert_copies().max(1.0)
    } else {
        row.trained + row.trained_experts
    };
    let update = stack.traffic.optimizer_bytes * updated / machine.bandwidth();
    let states = offload::optimizer_time(machine, cut, updated, update);
    let fixed = stack.host.step.get();
    let total = m * (longest + v * hop) + bubble + exposed + update + states + fixed;
    let [products, attention, norms, tensor, exchange, host] = row.slowest.time.parts.map(|t| m * t);
    let (again, gather, head) = (m * row.again, m * gather, m * row.slowest.head);
    let (hops, offload) = (m * v * hop, m * swap + states);
    // In the order of `Part`.
    let parts = [
        products, attention, norms, tensor, exchange, host, again, gather, head, hops, bubble, exposed, update,
        offload, fixed,
    ];
    StepTime { total, parts }
}

/// Activations to the next stage and gradients back.
fn hop(machine: &Machine<'_>, prepared: &Prepared, cut: &Cut) -> f64 {
    let host = &machine.stack.host;
    let send = machine.send(prepared.hop_bytes, cut.tp * cut.cp * cut.dp).get();
    2.0 * send + if host.sync_hops { 2.0 * host.forward.get() } else { host.hop.get() }
}

fn bubble(cut: &Cut, row: &Row, others: f64, hop: f64, v: f64, micro_batches: u64) -> f64 {
    if cut.pp <= 1 {
        return 0.0;
    }
    let p = cut.pp as f64;
    // Chunks wait for the largest of them; where layers do not divide by chunks it is larger than the mean.
    let layers = row.slowest.layers.max(1) as f64;
    let largest = ((layers / v).ceil() / layers).min(1.0);
    let plain = others * largest + (p - 1.0) * hop / v;
    match cut.schedule {
        Schedule::GPipe | Schedule::OneFOneB | Schedule::Interleaved => plain,
        schedule => {
            let mean = others / (p - 1.0);
            let share = mean / row.longest.max(f64::MIN_POSITIVE);
            let t = &row.slowest.time;
            let forward = t.forward * share;
            let weight = t.weight * share;
            let passes = Passes {
                forward: Seconds::s(forward),
                input_grad: Seconds::s((mean - forward - weight).max(0.0)),
                weight_grad: Seconds::s(weight),
            };
            let chunks = cut.chunks() as usize;
            let shape = pipeline::Shape { devices: cut.pp as usize, micro_batches: micro_batches as usize, chunks };
            // Where no form is claimed for these times, what 1F1B waits is an upper bound.
            let most = others + (p - 1.0) * hop;
            closed_bubble(schedule, shape, passes, Fraction::ZERO)
                .map_or(most, |b| (b.get() + (p - 1.0) * hop).min(most))
        }
    }
}

/// What gathering weights and scattering gradients adds to a stage's micro-batch under ZeRO-3.
fn gathering(machine: &Machine<'_>, row: &Row, cut: &Cut) -> f64 {
    if cut.sharding != Sharding::Zero3 {
        return 0.0;
    }
    let (w, g) = (machine.stack.memory.weight_bytes, machine.stack.network.gradient_bytes);
    let moved = |params: f64, trained: f64, n: u64, stride: u64| {
        let gather = machine.collective(Collective::AllGather, w * params, n, stride);
        (gather, machine.collective(Collective::ReduceScatter, g * trained, n, stride))
    };
    let (copies, expert_copies) = (cut.dp * cut.cp, cut.expert_copies() as u64);
    let stage = &row.slowest;
    // Layers of a stage differ little; the mean layer stands for all.
    let layers = stage.layers.max(1) as f64;
    // Weights of 4 bits travel so.
    let all = (stage.params + stage.expert_params - stage.vocabulary).max(1.0);
    let width = 1.0 - stage.narrow / all * (1.0 - super::tuning::NARROW / w);
    let table = if cut.tuning.is_full() { stage.vocabulary } else { 0.0 };
    let (inside, trained) = ((stage.params - stage.vocabulary) * width, stage.trained - table);
    let dense = moved(inside / layers, trained / layers, copies, cut.tp);
    let experts = stage.expert_params * width / layers;
    let experts = moved(experts, stage.trained_experts / layers, expert_copies, cut.ep * cut.etp);
    let (gather, scatter) = (dense.0 + experts.0, dense.1 + experts.1);
    let (f, b) = (stage.time.forward / layers, stage.time.backward / layers + row.again / layers);
    let longer = rounded(f, gather) + rounded(b, gather + scatter) - f - b;
    // Embedding and head are gathered at the ends of the pass, where nothing hides them.
    let (gather, scatter) = moved(stage.vocabulary, table, copies, cut.tp);
    longer * layers + (gather + scatter) * (1.0 - machine.stack.network.data_overlap)
}

/// How often gradients are reduced in a step.
pub fn reductions(cut: &Cut, micro_batches: u64) -> f64 {
    match cut.sharding {
        Sharding::Zero2 if cut.holds_chunk() => micro_batches.div_ceil(cut.pp.max(1)) as f64,
        Sharding::Zero2 => micro_batches as f64,
        _ => 1.0,
    }
}

/// Gradients over the copies, and updated weights back.
fn reduction(machine: &Machine<'_>, row: &Row, cut: &Cut) -> (f64, f64) {
    let (n, stride) = (cut.dp * cut.cp, cut.tp);
    let copies = cut.expert_copies() as u64;
    let (w, g) = (machine.stack.memory.weight_bytes, machine.stack.network.gradient_bytes);
    let over = |params: f64, n: u64, stride: u64| {
        if cut.sharding == Sharding::None {
            (machine.collective(Collective::AllReduce, g * params, n, stride), 0.0)
        } else {
            let scatter = machine.collective(Collective::ReduceScatter, g * params, n, stride);
            (scatter, machine.collective(Collective::AllGather, w * params, n, stride))
        }
    };
    let dense = over(row.trained, n, stride);
    let experts = over(row.trained_experts, copies, cut.ep * cut.etp);
    (dense.0 + experts.0, dense.1 + experts.1)
}
