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
//! | t_launch | launch | s | the host's time to launch a pass that is not a captured graph |
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

mod joint;
mod layers;
mod links;
mod mixer;
mod products;
mod table;

pub use joint::joined_bytes;
pub use layers::KernelSet;

use joint::Joints;
use mixer::MixerOp;
use rackmath_spec::engine::Overhead;
use rackmath_units::Seconds;
use table::Table;

/// What takes the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Matrix products of attention and dense networks.
    Products,
    Experts,
    /// Attention and recurrences over the context.
    Attention,
    /// Norms, rotations, activations, cache writes.
    Small,
    /// Collectives.
    Network,
    /// Output head and sampling.
    Head,
    /// Drafting tokens to be checked.
    Draft,
    Host,
}

impl Part {
    /// All, in the order tables show them.
    pub const ALL: [Self; 8] = [
        Self::Products,
        Self::Experts,
        Self::Attention,
        Self::Small,
        Self::Network,
        Self::Head,
        Self::Draft,
        Self::Host,
    ];

    /// The word used in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Products => "matrix products",
            Self::Experts => "experts",
            Self::Attention => "attention",
            Self::Small => "small kernels",
            Self::Network => "collectives",
            Self::Head => "head and sampling",
            Self::Draft => "drafting",
            Self::Host => "host",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Arithmetic.
    Compute,
    Memory,
    /// Launches and floors.
    Latency,
    /// Links between chips.
    Link,
    Host,
}

impl Limit {
    pub const ALL: [Self; 5] = [Self::Compute, Self::Memory, Self::Latency, Self::Link, Self::Host];

    /// The word used in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "arithmetic",
            Self::Memory => "memory bandwidth",
            Self::Latency => "kernel latency",
            Self::Link => "links",
            Self::Host => "host",
        }
    }
}

/// Seconds of a pass by part and by limit, and its roofline.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    parts: [f64; Part::ALL.len()],
    limits: [f64; Limit::ALL.len()],
    /// Arithmetic at the dense peak.
    compute: f64,
    /// Weights and cache at full bandwidth.
    memory: f64,
}

impl Cost {
    fn add(&mut self, part: Part, limit: Limit, seconds: f64) {
        self.parts[part as usize] += seconds;
        self.limits[limit as usize] += seconds;
    }

    fn plus(&mut self, other: &Self, times: f64) {
        for (a, b) in self.parts.iter_mut().zip(&other.parts) {
            *a += b * times;
        }
        for (a, b) in self.limits.iter_mut().zip(&other.limits) {
            *a += b * times;
        }
        self.compute += other.compute * times;
        self.memory += other.memory * times;
    }

    /// Two passes one after the other.
    #[must_use]
    pub fn joined(&self, other: &Self) -> Self {
        let mut both = *self;
        both.plus(other, 1.0);
        both
    }

    /// The whole pass.
    pub fn time(&self) -> Seconds {
        Seconds::s(self.parts.iter().sum())
    }

    pub fn part(&self, part: Part) -> Seconds {
        Seconds::s(self.parts[part as usize])
    }

    /// Time limited by one thing.
    pub fn limited(&self, limit: Limit) -> Seconds {
        Seconds::s(self.limits[limit as usize])
    }

    /// What limits most of the time.
    pub fn binding(&self) -> Limit {
        let mut best = Limit::Compute;
        for limit in Limit::ALL {
            if self.limits[limit as usize] > self.limits[best as usize] {
                best = limit;
            }
        }
        best
    }

    /// The roofline of the same pass: every FLOP at the dense peak, every weight and cache byte at full bandwidth, both at
    /// once, no links.
    pub fn ideal(&self) -> Seconds {
        Seconds::s(self.compute.max(self.memory))
    }

    /// The two sides of the roofline: arithmetic and memory.
    pub fn roofline(&self) -> (Seconds, Seconds) {
        (Seconds::s(self.compute), Seconds::s(self.memory))
    }
}

/// What one pass of one attention group does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    pub decode: f64,
    /// Tokens cached of each.
    pub context: f64,
    /// Tokens each checks: 1, or 1 and its drafts.
    pub queries: f64,
    pub prompt: f64,
    /// Prompts they belong to.
    pub prompts: f64,
    /// Tokens of each prompt that are already cached.
    pub past: f64,
}

impl Work {
    pub fn decode(sequences: f64, context: f64) -> Self {
        Self { decode: sequences, context, queries: 1.0, ..Self::default() }
    }

    /// A pass over `prompts` prompts of `tokens` each.
    pub fn prefill(prompts: f64, tokens: f64, past: f64) -> Self {
        Self { prompt: prompts * tokens, prompts, past, ..Self::default() }
    }

    /// Tokens in the pass.
    pub fn rows(&self) -> f64 {
        self.decode * self.queries.max(1.0) + self.prompt
    }
}

/// A model cut over a machine and run by an engine, ready to be timed.
#[derive(Clone, Debug)]
pub struct Pass {
    rows: Table,
    head: Table,
    draft: Table,
    mixers: Vec<(f64, MixerOp)>,
    joints: Joints,
    layers: f64,
    stages: f64,
    ideal: bool,
    head_every_token: bool,
    graph: f64,
    overhead: Overhead,
    assumed: Vec<String>,
    spread: f64,
}

impl Pass {
    pub fn cost(&self, work: &Work) -> Cost {
        let mut cost = Cost::default();
        let rows = work.rows();
        if rows <= 0.0 {
            return cost;
        }
        self.rows.add(rows, &mut cost);
        for (count, mixer) in &self.mixers {
            mixer.add(work, *count, &self.overhead, &mut cost);
        }
        self.joints.add(work, &mut cost);
        let last = work.decode * work.queries.max(1.0) + work.prompts;
        self.head.add(if self.head_every_token { rows } else { last }, &mut cost);
        if self.ideal {
            // The whole pass overlaps: keep the longer side only.
            return ideal(&cost);
        }
        let sequences = work.decode + work.prompts;
        self.add_host(rows, sequences, &mut cost);
        cost
    }

    /// One pass that also drafts `drafts` tokens for each decoding sequence.
    pub fn cost_with_drafts(&self, work: &Work, drafts: f64) -> Cost {
        let mut cost = self.cost(work);
        if drafts > 0.0 && work.decode > 0.0 {
            let mut one = Cost::default();
            self.draft.add(work.decode, &mut one);
            let (mut time, seconds) = (Cost::default(), one.time().get() * drafts);
            time.add(Part::Draft, one.binding(), seconds);
            (time.compute, time.memory) = (one.compute * drafts, one.memory * drafts);
            cost.plus(&time, 1.0);
            if self.ideal {
                cost = ideal(&cost);
            }
        }
        cost
    }

    fn add_host(&self, rows: f64, sequences: f64, cost: &mut Cost) {
        let o = &self.overhead;
        let chips = cost.time().get();
        // A captured graph is one launch; any other pass is launched layer by layer.
        let launch = if rows > self.graph { self.layers * o.launch.get() } else { 0.0 };
        let host = o.host.get() + o.host_sequence.get() * sequences;
        let busy = if o.host_overlaps { launch.max(host) } else { launch };
        let after = if o.host_overlaps { 0.0 } else { host };
        cost.add(Part::Host, Limit::Host, (busy - chips).max(0.0) + after);
    }

    pub fn stages(&self) -> f64 {
        self.stages
    }

    /// What had to be assumed: formats and kernels that were not measured.
    pub fn assumed(&self) -> &[String] {
        &self.assumed
    }

    /// How much wider than the engine's own the spread is, because kernels were borrowed: 1 when none were.
    pub fn wider(&self) -> f64 {
        self.spread
    }
}

/// A cost with nothing but its roofline.
fn ideal(cost: &Cost) -> Cost {
    let mut one = Cost { compute: cost.compute, memory: cost.memory, ..Cost::default() };
    let limit = if cost.compute >= cost.memory { Limit::Compute } else { Limit::Memory };
    one.add(Part::Products, limit, cost.compute.max(cost.memory));
    one
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
        Self {
            floor: timing.floor.get(),
            compute: timing.compute.get(),
            memory: timing.memory.get(),
            time: timing.time.get(),
            ideal_compute,
            ideal_memory,
        }
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
fn stretch(overhead: &Overhead, rows: f64) -> f64 {
    const SHORT: f64 = 256.0;
    const LONG: f64 = 2048.0;
    let share = ((rows - SHORT) / (LONG - SHORT)).clamp(0.0, 1.0);
    overhead.stretch + (overhead.stretch_long - overhead.stretch) * share
}
