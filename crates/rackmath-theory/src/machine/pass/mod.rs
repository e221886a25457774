//! One forward pass of an engine, operator by operator: what a step really takes.
//!
//! $$ t = \max\Big(t_{chip},\; t_{launch}\Big) \oplus t_{host} \qquad
//!    t_{chip} = \sum_{l}\Big(\sum_{g} t_g(m) + t_{moe}(m) + n_s\,t_s(m) + t_{net}(m)\Big) + \sum_{l} t_{att}(b, L; p, S) + t_{head}(s) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | m | rows | 1 | tokens of the pass in one attention group: b q + p |
//! | b, q, L | decode, queries, context | 1 | sequences that decode, tokens each checks, tokens cached |
//! | p, S | prompt, past | 1 | prompt tokens in the pass, tokens cached before them |
//! | s | sequences | 1 | sequences that need a next token |
//! | t_g, t_moe, t_att | [`crate::operator`] | s | matrix products, expert layers, attention |
//! | n_s, t_s | kernels, small | 1, s | norms, rotations, cache writes, activations |
//! | t_net | [`crate::network`] | s | all-reduces, dispatch and combine, and waiting for the slowest rank |
//! | t_launch | `replay` | s | the host's time to launch a pass that is not one captured graph |
//! | t_host | host | s | preparing the pass; added, or hidden behind the chips (then the longer counts) |
//!
//! Everything that depends on m alone is tabulated once for a layout, so that a pass is a look-up, a few attention kernels
//! and the head: it does not allocate. Between the nodes of the table times are straight lines, and never fall.
//! Each operator carries its roofline, so that a pass knows how far from the ideal it is, and no operator is faster than it.
//!
//! With pipeline stages a batch travels as one micro-batch per stage: m, b and p are those of one micro-batch.
//! Assumes: every layer of a kind takes the same time, experts are drawn independently. Ignores: overlap between kernels of
//! one pass (two-batch overlap is a rule of the layout, not of the pass).
//! Source: ours; constants in `catalog/kernels`, `catalog/networks`, `catalog/engines`.

mod encoder;
mod host;
mod joint;
mod layers;
mod links;
mod mixer;
mod products;
mod replay;

pub use crate::machine::timer::{Beside, Chunk, Cost, Decodes, HostTime, Limit, Many, Part, StepTimer, Work};
pub use encoder::{Encoded, Senses, Spread, encoding};
pub use joint::joined_bytes;
pub use layers::KernelSet;

use crate::adapters::AdapterPass;
use joint::Joints;
use mixer::MixerOp;
use rackmath_spec::engine::Overhead;
use rackmath_spec::{Dtype, Math, MoeFormat, MoeMatch};
use rackmath_units::Seconds;
use replay::Replays;
use std::convert::Infallible;

/// Something that was not measured, and what stands in for it.
#[derive(Clone, Debug, PartialEq)]
pub enum Assumption {
    /// Weights are expanded to 16 bits where a chip lacks the arithmetic.
    Expanded { chip: String, math: Math, format: Dtype },
    /// Matrix products take the constants of another generation of chips.
    Products { format: Dtype, generation: String },
    /// Attention takes those of Hopper.
    Attention { generation: String },
    /// An expert kernel takes those of something near.
    Experts { family: String, format: MoeFormat, generation: String, from: MoeMatch },
    /// Collectives over links of this kind cost nothing.
    Links { kind: String },
    /// A tensor-parallel group fills so many hosts, between which no collective was measured.
    Hosts { hosts: u64 },
}

/// A model cut over a machine and run by an engine, ready to be timed.
#[derive(Clone, Debug)]
pub struct Pass {
    rows: Table,
    head: Table,
    draft: Draft,
    mixers: Vec<(f64, MixerOp)>,
    joints: Joints,
    adapters: Option<(AdapterPass, Table)>,
    ideal: bool,
    head_every_token: bool,
    replays: Replays,
    overhead: Overhead,
    /// What towers take for each token of a prompt, where prompts bring pictures or sound.
    encoder: Option<Cost>,
    /// What had to be assumed: formats and kernels that were not measured.
    pub assumed: Vec<Assumption>,
}

impl Pass {
    /// Whether attention is latent in any layer.
    pub fn latent(&self) -> bool {
        self.replays.latent()
    }

    /// What towers take for each token of a prompt.
    pub fn encoder(&self) -> Seconds {
        self.encoder.map_or(Seconds::ZERO, |cost| cost.time())
    }

    pub fn cost(&self, work: &Work) -> Cost {
        let mut cost = self.checked(work);
        if work.drafts > 0.0 && work.sequences() > 0.0 {
            self.add_drafts(work, &mut cost);
            if self.ideal {
                cost = Cost::ideal_of(cost.compute, cost.memory);
            }
        }
        cost
    }

    /// What guessing the tokens of a pass takes; a model that guesses reads the prompts of the pass as well.
    fn add_drafts(&self, work: &Work, cost: &mut Cost) {
        let mut add = |one: &Cost, times: f64| {
            let mut time = Cost::of(Part::Draft, one.binding(), one.time() * times);
            (time.compute, time.memory) = (one.compute * times, one.memory * times);
            cost.plus(&time, 1.0);
        };
        match &self.draft {
            Draft::Layer(table) => {
                let mut one = Cost::default();
                table.add(work.sequences(), &mut one);
                add(&one, work.drafts);
            }
            Draft::Model(pass, prepare) => {
                let mut one = pass.launched(&Work { decodes: work.decodes, ..Work::default() });
                if !self.ideal {
                    one.add(Part::Host, Limit::Host, prepare.get());
                }
                add(&one, work.drafts);
                if work.prompts() > 0.0 {
                    add(&pass.launched(&Work { chunks: work.chunks, ..Work::default() }), 1.0);
                }
            }
            Draft::Lookup(each) => {
                let searched: f64 = work.decodes.iter().map(|d| d.sequences * d.context).sum();
                add(&Cost::of(Part::Draft, Limit::Host, *each * searched), 1.0);
            }
        }
    }

    /// A pass within a step: the host has prepared the step, and launches it.
    fn launched(&self, work: &Work) -> Cost {
        let mut cost = self.chips(work);
        if !self.ideal {
            let (launch, varies) = self.replays.launch(work.rows(), work.prompts() > 0.0);
            cost.add(Part::Host, Limit::Host, mean_excess(launch, varies, cost.time().get()));
        }
        cost
    }

    fn checked(&self, work: &Work) -> Cost {
        let mut cost = self.chips(work);
        let rows = work.rows();
        if rows > 0.0 && !self.ideal {
            let sequences = work.sequences() + work.prompts();
            self.add_host(self.replays.launch(rows, work.prompts() > 0.0), sequences, &mut cost);
        }
        cost
    }

    /// What the chips do.
    fn chips(&self, work: &Work) -> Cost {
        let mut cost = Cost::default();
        let rows = work.rows();
        if rows <= 0.0 {
            return cost;
        }
        match work.beside {
            None => self.add_rows(rows, &mut cost),
            Some(beside) => self.add_rows_beside(rows, beside, &mut cost),
        }
        for (count, mixer) in &self.mixers {
            mixer.add(work, *count, &self.overhead, &mut cost);
        }
        self.joints.add(work, &mut cost);
        if let Some((adapters, distinct)) = &self.adapters {
            add_adapters(adapters, distinct, work, &mut cost);
        }
        let last = work.sequences() * work.queries() + work.prompts();
        self.head.add(if self.head_every_token { rows } else { last }, &mut cost);
        if let Some(encoder) = &self.encoder {
            cost.plus(encoder, work.prompt_tokens());
        }
        if self.ideal {
            // The whole pass overlaps: keep the longer side only.
            return Cost::ideal_of(cost.compute, cost.memory);
        }
        cost
    }

    /// Groups that replay a graph are all padded to the one with the most rows; otherwise experts and the exchange between
    /// groups are sized by the rows of all, the rest by a group's own. Ignores: reductions inside a group are sized by
    /// the rows of all as well.
    /// Source: vLLM `v1/worker/dp_utils.py` (all ranks are padded to the maximum where a graph is replayed), SGLang
    /// `layers/dp_attention.py` (MAX_LEN without prompts, SUM_LEN with them).
    fn add_rows_beside(&self, rows: f64, beside: Beside, cost: &mut Cost) {
        if beside.most <= self.replays.most() {
            return self.add_rows(beside.most, cost);
        }
        let (mut own, mut all) = (Cost::default(), Cost::default());
        self.add_rows(rows, &mut own);
        self.add_rows(beside.mean, &mut all);
        own.with_parts_of(&all, &[Part::Experts, Part::Network]);
        cost.plus(&own, 1.0);
    }

    /// Padded rows take their time, and the roofline of the pass is that of its own.
    fn add_rows(&self, rows: f64, cost: &mut Cost) {
        let padded = self.replays.padded(rows);
        let mut all = Cost::default();
        self.rows.add(padded, &mut all);
        if padded > rows {
            let mut own = Cost::default();
            self.rows.add(rows, &mut own);
            (all.compute, all.memory) = (own.compute, own.memory);
        }
        cost.plus(&all, 1.0);
    }

    fn host_time(&self, sequences: f64) -> f64 {
        self.overhead.host.get() + self.overhead.host_sequence.get() * sequences
    }

    fn add_host(&self, (launch, varies): (f64, f64), sequences: f64, cost: &mut Cost) {
        let o = &self.overhead;
        let chips = cost.time().get();
        let host = self.host_time(sequences);
        let waits = mean_excess(launch, varies, chips);
        let (waits, after) = if o.host_overlaps { (waits.max(host - chips), 0.0) } else { (waits, host) };
        cost.add(Part::Host, Limit::Host, waits + after);
    }
}

impl StepTimer for Pass {
    type Uncovered = Infallible;

    fn time(&self, work: &Work) -> Result<Cost, Infallible> {
        Ok(self.cost(work))
    }

    fn host(&self, work: &Work) -> HostTime {
        let o = &self.overhead;
        if self.ideal || !o.host_overlaps {
            return HostTime::default();
        }
        let sequences = work.sequences() + work.prompts();
        let choose = o.choose + o.choose_sequence * sequences;
        let graph = Seconds::s((self.host_time(sequences) - choose.get()).max(0.0));
        let prepare = if self.replays.captured(work.rows()) { graph } else { graph + o.launch_first };
        let (launch, varies) = self.replays.launch(work.rows(), work.prompts() > 0.0);
        HostTime {
            prepare,
            launch: prepare + Seconds::s(launch),
            varies: Seconds::s(varies),
            choose,
            hand: o.message * sequences,
        }
    }
}

/// The pairs of the adapters that a pass meets, and loading those that are missing.
fn add_adapters(adapters: &AdapterPass, distinct: &Table, work: &Work, cost: &mut Cost) {
    let mut met = Cost::default();
    distinct.add(work.sequences() + work.prompts(), &mut met);
    let time = adapters.time(work.rows(), met.time().get(), work.prompt_tokens());
    cost.add(Part::Adapters, Limit::Latency, time.floor);
    cost.add(Part::Adapters, Limit::Memory, time.moved);
    cost.add(Part::Adapters, Limit::Host, time.load);
    cost.compute += time.compute;
    cost.memory += time.memory;
}

/// By how much a time that is even between `mean - varies` and `mean + varies` exceeds another on average, where it does.
fn mean_excess(mean: f64, varies: f64, other: f64) -> f64 {
    let most = mean + varies - other;
    if most <= 2.0 * varies && varies > 0.0 { most.max(0.0).powi(2) / (4.0 * varies) } else { (mean - other).max(0.0) }
}

/// Who guesses tokens ahead, ready to be timed.
#[derive(Clone, Debug)]
enum Draft {
    /// A layer and the head, by sequences.
    Layer(Table),
    /// A model's own passes, and the host's time for each.
    Model(Box<Pass>, Seconds),
    /// The host, in so long for each token searched.
    Lookup(Seconds),
}

/// One kernel's share of a pass: its time, never below its roofline, and what limits it.
#[derive(Clone, Copy, Debug, Default)]
struct Stroke {
    floor: f64,
    compute: f64,
    memory: f64,
    time: f64,
    ideal_compute: f64,
    ideal_memory: f64,
}

impl Stroke {
    fn of(timing: &crate::operator::Timing, ideal_compute: f64, ideal_memory: f64) -> Self {
        let (floor, time) = (timing.floor.get(), timing.time.get());
        let (compute, memory) = (timing.compute.get(), timing.memory.get());
        Self { floor, compute, memory, time, ideal_compute, ideal_memory }
    }

    fn mean(groups: impl Iterator<Item = (f64, Self)>) -> Self {
        groups.fold(Self::default(), |sum, (share, one)| Self {
            floor: sum.floor + one.floor * share,
            compute: sum.compute + one.compute * share,
            memory: sum.memory + one.memory * share,
            time: sum.time + one.time * share,
            ideal_compute: sum.ideal_compute + one.ideal_compute * share,
            ideal_memory: sum.ideal_memory + one.ideal_memory * share,
        })
    }

    fn add(&self, part: Part, times: f64, stretch: f64, cost: &mut Cost) {
        let bound = self.ideal_compute.max(self.ideal_memory);
        let time = (self.time * stretch).max(bound);
        let floor = (self.floor * stretch).min(time);
        let limit = if self.compute >= self.memory { Limit::Compute } else { Limit::Memory };
        cost.add(part, Limit::Latency, floor * times);
        cost.add(part, limit, (time - floor) * times);
        cost.compute += self.ideal_compute * times;
        cost.memory += self.ideal_memory * times;
    }
}

/// The stretch of a pass of so many rows: from that of short passes to that of long ones, over a decade of rows.
fn stretch((short, long): (f64, f64), rows: f64) -> f64 {
    const SHORT: f64 = 256.0;
    const LONG: f64 = 2048.0;
    let share = ((rows - SHORT) / (LONG - SHORT)).clamp(0.0, 1.0);
    short + (long - short) * share
}

/// Rows at which costs are worked out: dense where tiles and experts fill up, then a few to each doubling.
const NODES: [f64; 44] = [
    1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 80.0, 96.0, 112.0, 128.0, 160.0, 192.0, 224.0,
    256.0, 320.0, 384.0, 448.0, 512.0, 640.0, 768.0, 896.0, 1024.0, 1280.0, 1536.0, 1792.0, 2048.0, 2560.0, 3072.0,
    3584.0, 4096.0, 5120.0, 6144.0, 8192.0, 12288.0, 16384.0, 24576.0, 32768.0, 65536.0,
];

/// A cost as a function of the rows of a pass: nodes, straight lines between them, never falling.
#[derive(Clone, Debug, Default)]
struct Table {
    costs: Vec<Cost>,
}

impl Table {
    /// Works out every node. A node that would be cheaper than the one before it costs the same.
    fn new(cost: impl Fn(f64) -> Cost) -> Self {
        let mut costs: Vec<Cost> = Vec::with_capacity(NODES.len());
        for rows in NODES {
            let mut next = cost(rows);
            if let Some(last) = costs.last() {
                let (now, before) = (next.time().get(), last.time().get());
                if now < before {
                    next.add(Part::Products, Limit::Latency, before - now);
                }
            }
            costs.push(next);
        }
        Self { costs }
    }

    /// Adds the cost of so many rows; beyond the last node the last line goes on, below the first the first counts.
    fn add(&self, rows: f64, cost: &mut Cost) {
        if rows <= 0.0 || self.costs.is_empty() {
            return;
        }
        let rows = rows.max(1.0);
        let above = NODES.partition_point(|n| *n < rows).clamp(1, NODES.len() - 1);
        let (x0, x1) = (NODES[above - 1], NODES[above]);
        let share = (rows - x0) / (x1 - x0);
        cost.plus(&self.costs[above - 1], 1.0 - share);
        cost.plus(&self.costs[above], share);
    }
}

#[cfg(test)]
mod tests {
    use super::mean_excess;

    /// Against the sum over a thousand equally likely times.
    #[test]
    fn a_time_that_varies_exceeds_another_on_average() {
        for (mean, varies, other) in
            [(5.0, 2.0, 4.0), (5.0, 2.0, 1.0), (5.0, 2.0, 9.0), (5.0, 0.0, 4.5), (5.0, 5.0, 5.0)]
        {
            let each = |i: u32| (mean - varies + 2.0 * varies * (f64::from(i) + 0.5) / 1000.0 - other).max(0.0);
            let sum: f64 = (0..1000).map(each).sum::<f64>() / 1000.0;
            assert!((mean_excess(mean, varies, other) - sum).abs() < 1e-5, "{mean} {varies} {other}");
        }
    }
}
