//! The best layout of all: every cut of a model over at most so many chips, timed and weighed.
//!
//! $$ \min_{t, c, p, v, d, e, b, z, r}\ T \quad \text{subject to} \quad M_{stage} \le M_{chip},\ t\,c\,p\,d \le n,\ b\,d \mid B $$
//!
//! $$ T \ge m\,\max\Big(\frac{\sum_l t_l}{p},\ \Big\lceil\frac{L}{p}\Big\rceil \min_l t_l\Big) $$
//!
//! | symbol | code | meaning |
//! |--------|------|---------|
//! | t, c, p, v, d, e | tp, cp, pp, virtual_stages, dp, ep | degrees |
//! | b, z, r | micro_batch, sharding, recompute | micro-batch, what is divided, what is run again |
//! | n, B | chips, global_batch | chips at most, sequences of a step |
//! | t_l, L | fastest, layers | forward and backward of a layer, layers |
//!
//! The second line is what no choice of schedule, sharding or recomputation can beat. Slices of a micro-batch (t, c, e, b)
//! are timed once; pipelines over them are looked at in the order of that bound until it passes [`KEPT`] times the
//! best step found. So the optimum is that of looking at everything ([`Searcher::each`], which the tests compare), and so is
//! the frontier up to that time: every configuration that no other beats in time, memory and chips at once.
//! A [`Space::widened`] one adds the other schedules and offloading. Schedules for which no closed form
//! holds at these times (ZBV, V-Half, V-Min) wait as 1F1B does, an upper bound, and so win by their memory only.
//! Ignores: reversible blocks unless asked for, because they are another model.

use super::machine::Machine;
use super::memory::stage_memory;
use super::peaks::fullest;
use super::step::{Prepared, Row, Stage, StepTime, step};
use super::{Cut, Job, Offload, Recompute, Sharding, Spread, Tuning, legal};
use crate::layout::check_shape;
use crate::pipeline::Schedule;
use rackmath_spec::layout::Degrees;
use rackmath_units::{Cancel, Cancelled};
use std::sync::Arc;
use strum::VariantArray as _;

/// Steps up to so many times the fastest are looked at, for those that take less memory or fewer chips.
pub const KEPT: f64 = 2.0;

/// Largest context parallel degree and micro-batch of a space.
const MOST_CONTEXT: u64 = 128;
const MOST_MICRO_BATCH: u64 = 16;

/// Choices of a layout; what is absent is open.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    pub chips: u64,
    pub tp: Vec<u64>,
    pub cp: Vec<u64>,
    pub pp: Vec<u64>,
    /// As many as the chips and the batch allow, and fewer, where absent.
    pub dp: Option<u64>,
    /// Every number the layers allow where absent.
    pub virtual_stages: Option<u64>,
    pub ep: Vec<u64>,
    /// One shard, and as many as attention has, where absent.
    pub etp: Option<u64>,
    pub micro_batch: Vec<u64>,
    pub sharding: Vec<Sharding>,
    pub recompute: Vec<Recompute>,
    pub schedules: Vec<Schedule>,
    pub offload: Vec<Offload>,
    pub spread: Vec<Spread>,
    /// Whether every chunk has as many layers, as programs deal them unless a layout is written by hand.
    pub even: bool,
    /// Whether tensor-parallel groups cut norms along the sequence: never slower, and less memory.
    pub sequence_parallel: bool,
    pub capacity: f64,
    /// What is trained.
    pub tuning: Tuning,
}

/// A configuration, timed and weighed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    pub cut: Cut,
    pub micro_batches: u64,
    pub step: StepTime,
    /// Memory of its fullest stage in bytes, at the fullest moment of a run.
    pub memory: f64,
    pub fits: bool,
}

impl Candidate {
    /// Chips times seconds: what a step costs up to the price of a chip.
    pub fn chip_seconds(&self) -> f64 {
        self.cut.chips() as f64 * self.step.total
    }

    /// Faster, or as fast with less divided, or as fast in less memory.
    fn before(&self, other: &Self) -> bool {
        let faster = self.step.total.total_cmp(&other.step.total);
        faster.then(self.cut.sharding.cmp(&other.cut.sharding)).then(self.memory.total_cmp(&other.memory)).is_lt()
    }

    /// Not worse in time, memory and cost.
    fn beats(&self, other: &Self) -> bool {
        self.step.total <= other.step.total
            && self.memory <= other.memory
            && self.chip_seconds() <= other.chip_seconds()
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Configurations that were timed; the others cannot be within [`KEPT`] times the fastest.
    pub evaluated: u64,
    /// Of these, those that fit.
    pub feasible: u64,
    /// The fastest that fit, one for each choice of degrees and micro-batch, best first.
    pub best: Vec<Candidate>,
    /// Those no other beats in time, memory and chip-seconds, fastest first, up to [`KEPT`] times the fastest.
    pub frontier: Vec<Candidate>,
    /// The one with least memory of those looked at, whether it fits or not.
    pub leanest: Option<Candidate>,
}

fn divisors(n: u64, most: u64) -> Vec<u64> {
    (1..=n.min(most)).filter(|d| n.is_multiple_of(*d)).collect()
}

impl Space {
    /// Everything a model and a batch allow: degrees that divide heads, experts, sequence and batch.
    pub fn of(job: &Job<'_>, chips: u64, capacity: f64) -> Self {
        let (shape, one) = (job.shape, Degrees::default());
        let allowed = |d: Degrees| check_shape(shape, &d).is_ok();
        let heads = (1..=chips.min(1024)).filter(|tp| allowed(Degrees { tp: *tp, ..one }));
        let experts = shape.moe().map_or(1, |m| m.experts);
        let contexts = (0..).map(|i| 1 << i).take_while(|c| *c <= MOST_CONTEXT.min(chips));
        Self {
            chips,
            tp: heads.collect(),
            cp: contexts.filter(|c| *c == 1 || job.sequence.is_multiple_of(2 * c)).collect(),
            pp: (1..=shape.n_layers().min(chips)).collect(),
            dp: None,
            virtual_stages: None,
            ep: divisors(experts, chips),
            etp: None,
            micro_batch: divisors(job.global_batch, MOST_MICRO_BATCH),
            sharding: Sharding::VARIANTS.to_vec(),
            recompute: Recompute::USUAL.to_vec(),
            schedules: vec![Schedule::OneFOneB, Schedule::Interleaved],
            offload: vec![Offload::None],
            spread: vec![Spread::Even, Spread::EndsLighter],
            even: false,
            sequence_parallel: true,
            capacity,
            tuning: Tuning::Full,
        }
    }

    /// The same with every schedule, and what `machine` can move to its host.
    #[must_use]
    pub fn widened(mut self, machine: &Machine<'_>) -> Self {
        self.schedules = Schedule::ALL.to_vec();
        if machine.host.is_some() {
            self.offload = Offload::VARIANTS.to_vec();
        }
        self
    }

    /// Slices that would be timed, and pipelines over them, counted without timing any; experts that hold no copies are counted too.
    pub fn extent(&self, job: &Job<'_>) -> (f64, f64) {
        let even = self.micro_batch.iter().filter(|b| job.global_batch.is_multiple_of(**b)).count() as f64;
        let (mut slices, mut pipelines) = (0.0, 0.0);
        for &tp in &self.tp {
            let each = even * self.ep.len() as f64 * etps(self, job, tp).len() as f64;
            for &cp in self.cp.iter().filter(|cp| tp * **cp <= self.chips) {
                let stages = self.pp.iter().filter(|pp| tp * cp * **pp <= self.chips).count() as f64;
                slices += each;
                pipelines += each * stages * self.spread.len() as f64;
            }
        }
        (slices, pipelines)
    }
}

/// Layers timed for one slice.
struct Table {
    base: Cut,
    prepared: Prepared,
    /// Forward and backward of the fastest layer, and of all.
    fastest: f64,
    all: f64,
    /// Numbers that divide the micro-batches of a single copy, most first.
    copies: Arc<[u64]>,
}

/// A slice cut into stages, with as many copies as can be.
struct Node {
    bound: f64,
    table: usize,
    pp: u64,
    spread: Spread,
}

/// A space with all its layers timed; looking through it allocates only what it returns.
pub struct Searcher<'a> {
    machine: &'a Machine<'a>,
    space: &'a Space,
    layers: u64,
    global_batch: u64,
    tables: Vec<Table>,
}

impl<'a> Searcher<'a> {
    /// Times every slice, while it is wanted.
    pub fn new(machine: &'a Machine<'a>, job: &Job<'_>, space: &'a Space, cancel: &Cancel) -> Result<Self, Cancelled> {
        let even = space.micro_batch.iter().filter(|b| job.global_batch.is_multiple_of(**b));
        let even: Vec<(u64, Arc<[u64]>)> =
            even.map(|&b| (b, divisors(job.global_batch / b, space.chips).into_iter().rev().collect())).collect();
        let mut tables = Vec::new();
        for &tp in &space.tp {
            for &cp in space.cp.iter().filter(|cp| tp * **cp <= space.chips) {
                for &ep in &space.ep {
                    for etp in etps(space, job, tp) {
                        cancel.check()?;
                        for (micro_batch, copies) in &even {
                            let sequence_parallel = tp > 1 && space.sequence_parallel;
                            let degrees = Degrees { tp, cp, ep, etp, sequence_parallel, ..Degrees::default() };
                            let tuning = space.tuning;
                            let base = Cut { degrees, micro_batch: *micro_batch, tuning, ..Cut::default() };
                            let prepared = Prepared::new(machine, job, &base);
                            let (fastest, all) = prepared.passes();
                            tables.push(Table { base, prepared, fastest, all, copies: copies.clone() });
                        }
                    }
                }
            }
        }
        let (layers, global_batch) = (job.shape.n_layers(), job.global_batch);
        Ok(Self { machine, space, layers, global_batch, tables })
    }

    /// Looks at every configuration, one after the other, in a fixed order.
    pub fn each(&self, cancel: &Cancel, mut see: impl FnMut(Candidate)) -> Result<u64, Cancelled> {
        let mut evaluated = 0;
        for node in self.nodes() {
            cancel.check()?;
            evaluated += self.expand(&node, f64::INFINITY, &mut |c| {
                see(c);
                f64::INFINITY
            });
        }
        Ok(evaluated)
    }

    fn nodes(&self) -> Vec<Node> {
        let mut nodes = Vec::new();
        for (table, t) in self.tables.iter().enumerate() {
            for &pp in self.space.pp.iter().filter(|pp| t.base.tp * t.base.cp * **pp <= self.space.chips) {
                for &spread in &self.space.spread {
                    let cut = Cut { degrees: Degrees { pp, ..t.base.degrees }, spread, ..t.base };
                    if !self.dealt(&cut) {
                        continue;
                    }
                    let Some(dp) = self.copies(t, pp).next() else { continue };
                    nodes.push(Node { bound: self.bound(t, pp, dp), table, pp, spread });
                }
            }
        }
        nodes
    }

    /// What no step of these stages with so many copies can beat.
    fn bound(&self, table: &Table, pp: u64, dp: u64) -> f64 {
        let m = self.global_batch as f64 / (table.base.micro_batch * dp) as f64;
        m * (table.all / pp as f64).max(self.layers.div_ceil(pp) as f64 * table.fastest)
    }

    /// Numbers of copies that divide the batch and hold the experts, most first.
    fn copies<'t>(&self, table: &'t Table, pp: u64) -> impl Iterator<Item = u64> + use<'t> {
        let base = &table.base;
        let (one, each) = (base.tp * base.cp, base.ep * base.etp);
        let (most, asked) = (self.space.chips / (one * pp), self.space.dp);
        let fits = move |d: &u64| *d <= most && asked.is_none_or(|a| a == *d) && (one * d).is_multiple_of(each);
        table.copies.iter().copied().filter(fits)
    }

    /// Every configuration of a node whose step is at most `limit`, or what `see` said last; how many were timed.
    fn expand(&self, node: &Node, mut limit: f64, see: &mut impl FnMut(Candidate) -> f64) -> u64 {
        let table = &self.tables[node.table];
        let mut evaluated = 0;
        let all = table.prepared.stages(node.pp, node.spread);
        let rows: Vec<(Recompute, Option<Row>)> =
            self.space.recompute.iter().map(|&r| (r, Row::new(&all, r))).collect();
        let stages = ends(all);
        let base = Cut { degrees: Degrees { pp: node.pp, ..table.base.degrees }, spread: node.spread, ..table.base };
        for dp in self.copies(table, node.pp) {
            if self.bound(table, node.pp, dp) > limit {
                break;
            }
            let degrees = Degrees { dp, ..base.degrees };
            let Some(m) = (Cut { degrees, ..base }).micro_batches(self.global_batch) else { continue };
            for (recompute, row) in &rows {
                let Some(row) = row.as_ref().filter(|row| m as f64 * row.longest() <= limit) else { continue };
                for &sharding in self.divisions(degrees.dp * degrees.cp) {
                    for &offload in &self.space.offload {
                        let cut = Cut { degrees, sharding, recompute: *recompute, offload, ..base };
                        for cut in self.orders(cut).filter(|cut| legal::ordered(cut, m).is_ok()) {
                            evaluated += 1;
                            let time = step(self.machine, &table.prepared, row, &cut, m);
                            if time.total > limit {
                                continue;
                            }
                            limit = see(self.weighed(table, &stages, cut, m, time));
                        }
                    }
                }
            }
        }
        evaluated
    }

    /// What can be divided; without copies there is nothing to divide.
    fn divisions(&self, copies: u64) -> &[Sharding] {
        let all = &self.space.sharding;
        if copies == 1 { &all[..all.len().min(1)] } else { all }
    }

    /// The cut in every order of passes, with every number of chunks.
    fn orders(&self, cut: Cut) -> impl Iterator<Item = Cut> + '_ {
        let most = if cut.pp > 1 { cut.spread.counted(self.layers) / cut.pp } else { 1 };
        let (least, most) = self.space.virtual_stages.map_or((1, most), |v| (v, most.min(v)));
        self.space.schedules.iter().flat_map(move |&schedule| {
            // Without a pipeline there is nothing to order, and one chunk is not interleaved.
            let range = match schedule {
                Schedule::OneFOneB => least..=most.min(1),
                Schedule::Interleaved => least.max(2)..=most,
                _ => 1..=u64::from(cut.pp > 1 && least == 1),
            };
            let chunked = move |v| Cut { degrees: Degrees { virtual_stages: v, ..cut.degrees }, schedule, ..cut };
            range.map(chunked).filter(|cut| self.dealt(cut))
        })
    }

    /// Whether every chunk gets a layer, and as many as every other where that is asked for.
    fn dealt(&self, cut: &Cut) -> bool {
        let chunks = cut.pp * if cut.pp > 1 { cut.chunks() } else { 1 };
        let even = cut.spread.counted(self.layers).is_multiple_of(chunks);
        legal::dealt(cut, self.layers).is_ok() && (even || !self.space.even)
    }

    fn weighed(&self, table: &Table, stages: &[Stage], cut: Cut, micro_batches: u64, step: StepTime) -> Candidate {
        let recipe = &self.machine.stack.memory;
        let held = stages.iter().map(|s| (s, stage_memory(&table.prepared, recipe, s, &cut, micro_batches)));
        let memory = held.map(|(s, m)| fullest(s, &m, &cut, recipe).chip).fold(0.0, f64::max);
        Candidate { cut, micro_batches, step, memory, fits: memory <= self.space.capacity }
    }

    /// The best `keep` and the frontier.
    pub fn search(&self, keep: usize, cancel: &Cancel) -> Result<Found, Cancelled> {
        let mut found = Found::default();
        let mut nodes = self.nodes();
        nodes.sort_by(|a, b| a.bound.total_cmp(&b.bound));
        let mut limit = f64::INFINITY;
        for node in nodes {
            cancel.check()?;
            if node.bound > limit {
                break;
            }
            let seen = self.expand(&node, limit, &mut |c| {
                found.see(c, keep);
                limit = found.best.first().map_or(f64::INFINITY, |best| KEPT * best.step.total);
                limit
            });
            found.evaluated += seen;
        }
        found.frontier.retain(|c| c.step.total <= limit);
        found.frontier.sort_by(|a, b| a.step.total.total_cmp(&b.step.total).then(a.memory.total_cmp(&b.memory)));
        Ok(found)
    }

    /// A configuration of the fewest chips that fits. Computing again and dividing more never hold more (the tests say so),
    /// so that of each pipeline only the leanest choices are weighed.
    pub fn fewest_chips(&self, cancel: &Cancel) -> Result<Option<Candidate>, Cancelled> {
        let mut nodes = self.nodes();
        nodes.sort_by_key(|n| {
            let base = &self.tables[n.table].base;
            base.tp * base.cp * n.pp
        });
        let mut best: Option<Candidate> = None;
        for node in nodes {
            cancel.check()?;
            let table = &self.tables[node.table];
            let degrees = Degrees { pp: node.pp, ..table.base.degrees };
            let base = Cut { degrees, spread: node.spread, ..table.base };
            let least = |best: &Option<Candidate>| best.map_or(u64::MAX, |b| b.cut.chips());
            if base.tp * base.cp * base.pp >= least(&best) {
                continue;
            }
            let all = table.prepared.stages(node.pp, node.spread);
            let Some(&recompute) = self.space.recompute.iter().max() else { continue };
            let Some(row) = Row::new(&all, recompute) else { continue };
            let stages = ends(all);
            let mut copies: Vec<u64> = self.copies(table, node.pp).collect();
            copies.reverse();
            // More copies never hold more: where the most do not fit, none do.
            let fitting = |dp: u64| {
                let cut = Cut { degrees: Degrees { dp, ..degrees }, recompute, ..base };
                let m = cut.micro_batches(self.global_batch)?;
                let lean = self.divisions(dp * cut.cp).iter().rev().take(2);
                let cuts = lean.flat_map(|&s| self.space.offload.iter().map(move |&o| (s, o)));
                let cuts = cuts.map(|(sharding, offload)| Cut { sharding, offload, ..cut });
                let orders = cuts.flat_map(|cut| self.orders(cut)).filter(|cut| legal::ordered(cut, m).is_ok());
                let weighed = |cut: Cut| {
                    let time = step(self.machine, &table.prepared, &row, &cut, m);
                    self.weighed(table, &stages, cut, m, time)
                };
                orders.map(weighed).find(|c| c.fits)
            };
            let tight = copies.last().and_then(|dp| fitting(*dp));
            if tight.is_none() {
                continue;
            }
            for dp in copies.into_iter().take_while(|dp| base.tp * base.cp * base.pp * dp < least(&best)) {
                if let Some(found) = fitting(dp) {
                    best = Some(found);
                    break;
                }
            }
        }
        Ok(best)
    }
}

impl Found {
    fn see(&mut self, c: Candidate, keep: usize) {
        if self.leanest.is_none_or(|l| c.memory < l.memory) {
            self.leanest = Some(c);
        }
        if !c.fits {
            return;
        }
        self.feasible += 1;
        // What beat the last one is likely to beat this one too.
        if let Some(at) = self.frontier.iter().position(|f| f.beats(&c)) {
            self.frontier.swap(0, at);
        } else {
            self.frontier.retain(|f| !c.beats(f));
            self.frontier.push(c);
        }
        if self.best.len() == keep && self.best.last().is_some_and(|last| !c.before(last)) {
            return;
        }
        let alike = |b: &Candidate| b.cut.degrees == c.cut.degrees && b.cut.micro_batch == c.cut.micro_batch;
        match self.best.iter().position(alike) {
            Some(at) if !c.before(&self.best[at]) => return,
            Some(at) => drop(self.best.remove(at)),
            None => {}
        }
        let at = self.best.partition_point(|b| !c.before(b));
        self.best.insert(at, c);
        self.best.truncate(keep.max(1));
    }
}

/// Shards of an expert: the one asked for, or one, and as many as attention has.
fn etps(space: &Space, job: &Job<'_>, tp: u64) -> Vec<u64> {
    let all = match space.etp {
        Some(etp) => vec![etp],
        None if job.shape.moe().is_some() && tp > 1 => vec![1, tp],
        None => vec![1],
    };
    let allowed = |etp: &u64| check_shape(job.shape, &Degrees { etp: *etp, ..Degrees::default() }).is_ok();
    all.into_iter().filter(allowed).collect()
}

/// The stages that can be the fullest: of equal ones in a row only the first, which has most in flight, and the last.
fn ends(stages: Vec<Stage>) -> Vec<Stage> {
    let mut kept: Vec<Stage> = Vec::new();
    let n = stages.len();
    for (i, stage) in stages.into_iter().enumerate() {
        let alike = kept.last().is_some_and(|k| {
            k.index > 0
                && k.params >= stage.params
                && k.kept.all >= stage.kept.all
                && k.expert_params >= stage.expert_params
        });
        if i + 1 == n || !alike {
            kept.push(stage);
        }
    }
    kept
}
