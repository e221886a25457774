//! A row through the equations.

use super::rows::{Measured, Row};
use crate::CalibrateError;
use rackmath_spec::{Catalog, GemmKernels, Network, System, TrainingStack};
use rackmath_theory::train::machine::Machine;
use rackmath_theory::train::memory::{StageMemory, stage_memory};
use rackmath_theory::train::mfu::flop_per_token;
use rackmath_theory::train::step::{Prepared, Row as StageRow, StepTime, step};
use rackmath_theory::train::{Cut, Job, Recompute, Sharding};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What the rows share, looked up once.
pub struct Bench {
    kernels: Arc<GemmKernels>,
    networks: BTreeMap<String, Arc<Network>>,
    systems: BTreeMap<(String, u64), Arc<System>>,
    /// Programs by id.
    pub stacks: BTreeMap<String, Arc<TrainingStack>>,
}

/// What the equations say of a row.
#[derive(Clone, Debug)]
pub struct Predicted {
    pub step: StepTime,
    pub memory: StageMemory,
    /// Whether it fits; where the table leaves recomputation open, with any.
    pub fits: bool,
}

impl Bench {
    /// Looks everything up.
    pub fn new(catalog: &Catalog, rows: &[Row]) -> Result<Self, CalibrateError> {
        let (mut networks, mut systems, mut stacks) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for row in rows {
            let key = (row.chip.clone(), row.chips);
            if let std::collections::btree_map::Entry::Vacant(entry) = systems.entry(key) {
                let system = catalog.system(&format!("{}x{}", row.chips, row.chip))?;
                let kind = system.chip.link.kind.clone();
                networks.insert(kind.clone(), catalog.network(&kind)?);
                entry.insert(system);
            }
            stacks.insert(row.source.stack.to_owned(), catalog.training_stack(row.source.stack)?);
        }
        Ok(Self { kernels: catalog.gemm_kernels()?, networks, systems, stacks })
    }

    /// Takes programs from a folder of files.
    pub fn replace(&mut self, folder: &Path) -> Result<(), CalibrateError> {
        for (id, stack) in &mut self.stacks {
            let path = folder.join(format!("{id}.toml"));
            if path.exists() {
                *stack = Arc::new(rackmath_spec::file::training(id, &crate::rows::text(&path)?)?);
            }
        }
        Ok(())
    }

    pub fn predict(&self, row: &Row, stack: &TrainingStack) -> Result<Predicted, String> {
        let system = &self.systems[&(row.chip.clone(), row.chips)];
        let network = &self.networks[&system.chip.link.kind];
        let mut own = stack.clone();
        if row.wide_gradients {
            // Four bytes instead of two per gradient, added up: two reads and a write of 32 bits less than one product's.
            own.memory.gradient_bytes += 4.9;
            own.traffic.accumulate_bytes += 4.0;
        }
        if row.pure {
            (own.memory.gradient_bytes, own.memory.optimizer_bytes) = (2.0, 4.0);
            own.network.gradient_bytes = 2.0;
        }
        let machine = Machine::new(system, &own, &self.kernels, network, row.format)
            .ok_or_else(|| format!("{} has no {} products", row.chip, row.format))?;
        let job = Job { shape: &row.shape, sequence: row.sequence, global_batch: row.global_batch, format: row.format };
        let cut = &row.cut;
        let prepared = Prepared::new(&machine, &job, cut);
        let stages = prepared.stages(cut.pp, cut.spread);
        let m = ((row.global_batch as f64 / (cut.micro_batch * cut.dp) as f64).round() as u64).max(1);
        let summed = StageRow::new(&stages, cut.recompute).ok_or("no stages")?;
        let step = step(&machine, &prepared, &summed, cut, m);
        let held = stages.iter().map(|s| stage_memory(&prepared, &own.memory, s, cut, m));
        let memory = held.max_by(|a, b| a.total().get().total_cmp(&b.total().get())).ok_or("no stages")?;
        let capacity = system.chip.memory.size();
        let least = Cut { recompute: Recompute::Full, sharding: Sharding::Full, ..*cut };
        let fits_at_least =
            || stages.iter().all(|s| stage_memory(&prepared, &own.memory, s, &least, m).total() <= capacity);
        let fits = memory.total() <= capacity || (row.open && fits_at_least());
        Ok(Predicted { step, memory, fits })
    }

    pub fn generation(&self, row: &Row) -> &str {
        &self.systems[&(row.chip.clone(), row.chips)].chip.generation
    }

    /// FLOP of a step in the source's convention.
    pub fn flop(&self, row: &Row) -> f64 {
        let tokens = (row.global_batch * row.sequence) as f64;
        flop_per_token(&row.shape, row.sequence, row.source.convention, row.cut.recompute) * tokens
    }

    /// Peak of the row's format on its chip.
    pub fn peak(&self, row: &Row) -> f64 {
        let chip = &self.systems[&(row.chip.clone(), row.chips)].chip;
        let math = row.format.gemm().math();
        let wide = [rackmath_spec::Math::Bf16, rackmath_spec::Math::Fp16];
        let peak = chip.peak.get(&math).or_else(|| wide.iter().find_map(|m| chip.peak.get(m)));
        peak.map_or(1.0, |p| p.value.get())
    }

    /// Seconds of a step as measured.
    pub fn measured(&self, row: &Row) -> Option<f64> {
        let tokens = (row.global_batch * row.sequence) as f64;
        let chips = row.chips as f64;
        match row.measured {
            Measured::Step(s) => Some(s),
            Measured::Tokens(rate) => Some(tokens / (rate * chips)),
            Measured::Flop(rate) => Some(self.flop(row) / (rate * chips)),
            Measured::Share(share) => Some(self.flop(row) / (share * self.peak(row) * chips)),
            Measured::Nothing => None,
        }
    }
}
