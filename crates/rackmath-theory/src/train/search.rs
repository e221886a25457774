//! The best layout of all: every cut of a model over at most so many chips, timed and weighed.
//!
//! $$ \min_{t, c, p, v, d, e, b, z, r}\ T \quad \text{subject to} \quad M_{stage} \le M_{chip},\ t\,c\,p\,d \le n,\ b\,d \mid B $$
//!
//! | symbol | code | meaning |
//! |--------|------|---------|
//! | t, c, p, v, d, e | tp, cp, pp, virtual_stages, dp, ep | degrees |
//! | b, z, r | micro_batch, sharding, recompute | micro-batch, what is divided, what is run again |
//! | n, B | chips, global_batch | chips at most, sequences of a step |
//!
//! Exhaustive, so the optimum is the optimum. What takes time is prepared once for each slice of a micro-batch (t, c, e, b):
//! layers are timed, stages summed; then a configuration is arithmetic on a few dozen numbers and nothing is allocated.
//! The frontier holds every configuration that no other beats in time, memory and chips at once.
//! A [`Space::widened`] one adds context parallelism, the other schedules and offloading. Schedules for which no closed form
//! holds at these times (ZBV, V-Half, V-Min) wait as 1F1B does, an upper bound, and so win by their memory only.
//! Ignores: reversible blocks unless asked for, because they are another model.

use super::machine::Machine;
use super::memory::stage_memory;
use super::step::{Prepared, Row, Stage, StepTime, step};
use super::{Cut, Job, Offload, Recompute, Sharding};
use crate::pipeline::Schedule;
use rackmath_spec::layout::Degrees;
use rackmath_spec::model::{Block, Ffn, Mixer, Shape};
use rackmath_units::{Cancel, Cancelled};
use strum::VariantArray as _;

#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    pub chips: u64,
    pub tp: Vec<u64>,
    pub cp: Vec<u64>,
    pub pp: Vec<u64>,
    pub virtual_stages: Vec<u64>,
    pub ep: Vec<u64>,
    pub micro_batch: Vec<u64>,
    pub sharding: Vec<Sharding>,
    pub recompute: Vec<Recompute>,
    /// Orders of passes beside 1F1B and its interleaved form.
    pub schedules: Vec<Schedule>,
    pub offload: Vec<Offload>,
    pub capacity: f64,
}

/// A configuration, timed and weighed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    pub cut: Cut,
    pub micro_batches: u64,
    pub step: StepTime,
    /// Memory of its fullest stage in bytes.
    pub memory: f64,
    pub fits: bool,
}

impl Candidate {
    /// Chips times seconds: what a step costs up to the price of a chip.
    pub fn chip_seconds(&self) -> f64 {
        self.cut.chips() as f64 * self.step.total
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub evaluated: u64,
    pub feasible: u64,
    /// The fastest that fit, best first.
    pub best: Vec<Candidate>,
    /// Those no other beats in time, memory and chip-seconds, fastest first.
    pub frontier: Vec<Candidate>,
    /// The one with least memory, whether it fits or not.
    pub leanest: Option<Candidate>,
}

impl Space {
    /// Everything a model and a machine allow: degrees that divide heads, layers, experts and the batch.
    pub fn of(shape: &Shape, chips: u64, domain: u64, global_batch: u64, capacity: f64) -> Self {
        let powers = |most: u64| (0..20).map(|i| 1_u64 << i).take_while(move |n| *n <= most);
        let heads = heads(shape);
        let layers = shape.n_layers();
        let experts = shape.moe().map_or(1, |m| m.experts);
        let divisors = |n: u64| (1..=n.min(1024)).filter(move |d| n.is_multiple_of(*d));
        Self {
            chips,
            tp: powers(domain.min(64)).filter(|t| heads.iter().all(|h| h.is_multiple_of(*t))).collect(),
            cp: vec![1],
            pp: divisors(layers).filter(|p| *p <= chips).collect(),
            virtual_stages: divisors(layers).filter(|v| *v <= 16).collect(),
            ep: if experts > 1 { divisors(experts).filter(|e| *e <= 128).collect() } else { vec![1] },
            micro_batch: powers(16).filter(|b| global_batch.is_multiple_of(*b)).collect(),
            sharding: vec![Sharding::Zero1, Sharding::Zero3],
            recompute: Recompute::USUAL.to_vec(),
            schedules: Vec::new(),
            offload: vec![Offload::None],
            capacity,
        }
    }

    /// The same with context parallelism, every schedule, and what `machine` can move to its host.
    #[must_use]
    pub fn widened(mut self, machine: &Machine<'_>, sequence: u64) -> Self {
        // Halves of the sequence are paired so that a causal mask loads every rank alike.
        self.cp = (0..6).map(|i| 1 << i).filter(|c| *c == 1 || sequence.is_multiple_of(2 * c)).collect();
        let known = [Schedule::OneFOneB, Schedule::Interleaved];
        self.schedules = Schedule::ALL.iter().copied().filter(|s| !known.contains(s)).collect();
        if machine.host.is_some() {
            self.offload = Offload::VARIANTS.to_vec();
        }
        self
    }
}

fn heads(shape: &Shape) -> Vec<u64> {
    let of = |block: &Block| {
        let heads = match &block.mixer {
            Mixer::Attention(a) => Some(a.heads),
            Mixer::Latent(a) => Some(a.heads),
            Mixer::Compressed(a) => Some(a.heads),
            Mixer::Linear(_) | Mixer::None => None,
        };
        [heads, if let Ffn::Dense(mlp) = &block.ffn { Some(mlp.width) } else { None }]
    };
    shape.runs.iter().flat_map(|run| of(&run.block)).flatten().collect()
}

/// Layers timed for one slice, and stages summed for every number of stages.
struct Table {
    base: Cut,
    prepared: Prepared,
    rows: Vec<(u64, Vec<Stage>, Vec<Option<Row>>)>,
}

/// A space with all its layers timed; looking through it allocates only what it returns.
pub struct Searcher<'a> {
    machine: &'a Machine<'a>,
    space: &'a Space,
    global_batch: u64,
    tables: Vec<Table>,
}

impl<'a> Searcher<'a> {
    pub fn new(machine: &'a Machine<'a>, job: &Job<'_>, space: &'a Space) -> Self {
        let mut tables = Vec::new();
        for &tp in &space.tp {
            for &cp in &space.cp {
                for &ep in &space.ep {
                    for &micro_batch in &space.micro_batch {
                        let degrees = Degrees { tp, cp, ep, sequence_parallel: tp > 1, ..Degrees::default() };
                        let base = Cut { degrees, micro_batch, ..Cut::default() };
                        let prepared = Prepared::new(machine, job, &base);
                        let rows = space.pp.iter().map(|&pp| {
                            let stages = prepared.stages(pp, base.spread);
                            let sums = space.recompute.iter().map(|&r| Row::new(&stages, r)).collect();
                            (pp, ends(stages), sums)
                        });
                        let rows = rows.collect();
                        tables.push(Table { base, prepared, rows });
                    }
                }
            }
        }
        Self { machine, space, global_batch: job.global_batch, tables }
    }

    /// Looks at every configuration, one after the other, in a fixed order.
    pub fn each(&self, cancel: &Cancel, mut see: impl FnMut(Candidate)) -> Result<u64, Cancelled> {
        let mut evaluated = 0;
        for table in &self.tables {
            for (pp, stages, sums) in &table.rows {
                cancel.check()?;
                let Some(dp) = self.copies(&table.base, *pp) else { continue };
                let degrees = Degrees { pp: *pp, dp, ..table.base.degrees };
                for (recompute, row) in self.space.recompute.iter().zip(sums) {
                    let Some(row) = row else { continue };
                    for &sharding in &self.space.sharding {
                        for &offload in &self.space.offload {
                            let base = Cut { degrees, sharding, recompute: *recompute, offload, ..table.base };
                            for cut in self.orders(base) {
                                if let Some(candidate) = self.evaluate(table, row, stages, cut) {
                                    evaluated += 1;
                                    see(candidate);
                                }
                            }
                        }
                    }
                }
            }
        }
        Ok(evaluated)
    }

    /// The cut with every number of chunks, then with every further schedule.
    fn orders(&self, cut: Cut) -> impl Iterator<Item = Cut> + '_ {
        let chunked = self.space.virtual_stages.iter().map(move |&v| Cut {
            degrees: Degrees { virtual_stages: v, ..cut.degrees },
            schedule: if v > 1 { Schedule::Interleaved } else { cut.schedule },
            ..cut
        });
        // Without a pipeline there is nothing to order.
        let others = self.space.schedules.iter().filter(move |_| cut.pp > 1);
        chunked.chain(others.map(move |&schedule| Cut { schedule, ..cut }))
    }

    pub fn search(&self, keep: usize, cancel: &Cancel) -> Result<Found, Cancelled> {
        let mut found = Found::default();
        let mut fitting: Vec<Candidate> = Vec::new();
        let mut leanest: Option<Candidate> = None;
        found.evaluated = self.each(cancel, |c| {
            if leanest.is_none_or(|l| c.memory < l.memory) {
                leanest = Some(c);
            }
            if c.fits {
                fitting.push(c);
            }
        })?;
        found.leanest = leanest;
        found.feasible = fitting.len() as u64;
        // Ties go to less memory, then to the order of the space.
        fitting.sort_by(|a, b| a.step.total.total_cmp(&b.step.total).then(a.memory.total_cmp(&b.memory)));
        for c in &fitting {
            let beaten = found.frontier.iter().any(|f| f.memory <= c.memory && f.chip_seconds() <= c.chip_seconds());
            if !beaten {
                found.frontier.push(*c);
            }
        }
        fitting.truncate(keep);
        found.best = fitting;
        Ok(found)
    }

    /// Copies of the model: as many as fit on the chips and divide the batch.
    fn copies(&self, base: &Cut, pp: u64) -> Option<u64> {
        let most = self.space.chips / (base.tp * base.cp * pp);
        let sequences = self.global_batch / base.micro_batch;
        let dp = (1..=most).rev().find(|d| sequences.is_multiple_of(*d))?;
        // Experts live on the chips of a stage.
        (base.tp * base.cp * dp).is_multiple_of(base.ep * base.etp).then_some(dp)
    }

    fn evaluate(&self, table: &Table, row: &Row, stages: &[Stage], cut: Cut) -> Option<Candidate> {
        let micro_batches = cut.micro_batches(self.global_batch)?;
        let chunks = cut.chunks();
        // Chunks must come out even, and so must the micro-batches over the stages where chunks take turns.
        if chunks > 1 && (cut.pp == 1 || !stages.first()?.layers.is_multiple_of(chunks)) {
            return None;
        }
        if cut.schedule == Schedule::Interleaved && !micro_batches.is_multiple_of(cut.pp) {
            return None;
        }
        // Without copies there is nothing to divide.
        if cut.dp * cut.cp == 1 && cut.sharding != *self.space.sharding.first()? {
            return None;
        }
        let time = step(self.machine, &table.prepared, row, &cut, micro_batches);
        let recipe = &self.machine.stack.memory;
        let held = stages.iter().map(|s| stage_memory(&table.prepared, recipe, s, &cut, micro_batches));
        let memory = held.map(|m| m.total_bytes).fold(0.0, f64::max);
        Some(Candidate { cut, micro_batches, step: time, memory, fits: memory <= self.space.capacity })
    }
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
