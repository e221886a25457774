//! Training runs: step time and memory against published tables, beside the best constant MFU.

mod fit;
mod layers;
mod rows;

pub use fit::fit;

use crate::case::Case;
use crate::rows::{Rows, text};
use crate::table::{Errors, skipped};
use rackmath_spec::{Catalog, GemmKernels, Math, Network, Residual, SpecError, System, TrainingStack, file};
use rackmath_theory::train::machine::Machine;
use rackmath_theory::train::memory::{StageMemory, stage_memory};
use rackmath_theory::train::mfu::flop_per_token;
use rackmath_theory::train::step::{Part, Prepared, Row as StageRow, StepTime, step as step_time};
use rackmath_theory::train::{Cut, Job, Recompute, Sharding};
use rackmath_units::float;
use rows::{Row, read};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use strum::VariantArray as _;

const GIB: f64 = 1_073_741_824.0;

/// Every table that is read.
pub fn files() -> impl Iterator<Item = &'static str> {
    rows::files().chain(layers::FILES)
}

/// FLOP of a step in the source's convention.
fn flop(row: &Row) -> f64 {
    let tokens = (row.global_batch * row.sequence) as f64;
    flop_per_token(&row.shape, row.sequence, row.source.convention, row.cut.recompute) * tokens
}

/// What the rows share, looked up once.
struct Bench {
    kernels: Arc<GemmKernels>,
    networks: BTreeMap<String, Arc<Network>>,
    systems: BTreeMap<(String, u64), Arc<System>>,
    stacks: BTreeMap<String, Arc<TrainingStack>>,
}

struct Predicted {
    step: StepTime,
    /// Of the step, with as much run again as must be.
    seconds: f64,
    memory: StageMemory,
    /// Whether it fits; where the table leaves recomputation open, with any.
    fits: bool,
    /// The layout with what is run again.
    cut: Cut,
}

impl Bench {
    fn new(catalog: &Catalog, rows: &[Row]) -> Result<Self, SpecError> {
        let (mut networks, mut systems, mut stacks) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for row in rows {
            let system = catalog.system(&format!("{}x{}", row.chips, row.chip))?;
            let kind = system.chip.link.kind.clone();
            networks.insert(kind.clone(), catalog.network(&kind)?);
            systems.insert((row.chip.clone(), row.chips), system);
            stacks.insert(row.source.stack.to_owned(), catalog.training_stack(row.source.stack)?);
        }
        Ok(Self { kernels: catalog.gemm_kernels()?, networks, systems, stacks })
    }

    fn replace(&mut self, folder: &Path) -> Result<(), SpecError> {
        for (id, stack) in &mut self.stacks {
            let path = folder.join(format!("{id}.toml"));
            if path.exists() {
                *stack = Arc::new(file::training(id, &text(&path)?)?);
            }
        }
        Ok(())
    }

    fn predict(&self, row: &Row, stack: &TrainingStack) -> Result<Predicted, String> {
        let system = self.system(row);
        let network = &self.networks[&system.chip.link.kind];
        let mut own = stack.clone();
        let precision = row.raw.text("precision").to_ascii_lowercase();
        if precision.contains("fp32 grad") {
            // Four bytes instead of two per gradient, added up: two reads and a write of 32 bits less than one product's.
            own.memory.gradient_bytes += 4.9;
            own.traffic.accumulate_bytes += 4.0;
        }
        // Products are cut into as many parts as there are ranks, and all transfers but the first run beside one of them
        // (torchtitan's asynchronous tensor parallelism).
        if row.raw.text("notes").contains("async TP") {
            own.network.tensor_exposed /= row.cut.tp as f64;
        }
        // Everything is kept in 16 bits, the optimizer too.
        if precision.contains("pure") {
            (own.memory.gradient_bytes, own.memory.optimizer_bytes) = (2.0, 4.0);
            own.network.gradient_bytes = 2.0;
        }
        let machine = Machine::new(system, &own, &self.kernels, network, row.format)
            .ok_or_else(|| format!("{} has no {} products", row.chip, row.format))?;
        let job = Job { shape: &row.shape, sequence: row.sequence, global_batch: row.global_batch, format: row.format };
        let prepared = Prepared::new(&machine, &job, &row.cut);
        let stages = prepared.stages(row.cut.pp, row.cut.spread);
        let m = ((row.global_batch as f64 / (row.cut.micro_batch * row.cut.dp) as f64).round() as u64).max(1);
        let capacity = system.chip.memory.size();
        let fullest = |recompute: Recompute| {
            let cut = Cut { recompute, ..row.cut };
            let held = stages.iter().map(|s| stage_memory(&prepared, &own.memory, s, &cut, m));
            held.max_by(|a, b| a.total().get().total_cmp(&b.total().get())).ok_or("no stages")
        };
        let timed = |recompute: Recompute| {
            let summed = StageRow::new(&stages, recompute).ok_or("no stages")?;
            Ok::<_, &str>(step_time(&machine, &prepared, &summed, &Cut { recompute, ..row.cut }, m))
        };
        let (mut recompute, mut memory, mut step) =
            (row.cut.recompute, fullest(row.cut.recompute)?, timed(row.cut.recompute)?);
        let mut seconds = step.total;
        // Where the table leaves open what is run again, as much as must be: recipes name layers or parts of them.
        for more in [Recompute::Cheap, Recompute::Full].into_iter().filter(|_| row.is_open()) {
            let over = (memory.total().get() - capacity.get()).max(0.0);
            if over <= 0.0 {
                break;
            }
            let (leaner, slower) = (fullest(more)?, timed(more)?);
            let spared = (memory.total().get() - leaner.total().get()).max(f64::MIN_POSITIVE);
            seconds += (over / spared).min(1.0) * (slower.total - seconds);
            (recompute, memory, step) = (more, leaner, slower);
        }
        let cut = Cut { recompute, ..row.cut };
        let least = Cut { sharding: Sharding::Zero3, ..cut };
        let fitting = || stages.iter().all(|s| stage_memory(&prepared, &own.memory, s, &least, m).total() <= capacity);
        let fits = memory.total() <= capacity || (row.is_open() && fitting());
        Ok(Predicted { step, seconds, memory, fits, cut })
    }

    fn system(&self, row: &Row) -> &System {
        &self.systems[&(row.chip.clone(), row.chips)]
    }

    fn generation(&self, row: &Row) -> &str {
        &self.system(row).chip.generation
    }

    fn peak(&self, row: &Row) -> f64 {
        let chip = &self.system(row).chip;
        let formats = [row.format.gemm().math(), Math::Bf16, Math::Fp16];
        formats.iter().find_map(|math| chip.peak.get(math)).map_or(1.0, |p| p.value.get())
    }

    /// Seconds of a step, as measured or from a rate of tokens or of FLOP, or from an MFU, in the source's convention.
    fn measured(&self, row: &Row) -> Option<f64> {
        let (tokens, chips) = ((row.global_batch * row.sequence) as f64, row.chips as f64);
        let number = |column| row.raw.number(column);
        // BLOOM's early rows under-report by three per cent, as the source says.
        let early = row.raw.text("notes").contains("under-report") && row.source.file.contains("bloom");
        let scale = if early { 1.03e12 } else { 1e12 };
        number("step_s")
            .or_else(|| number("tokens_per_s_per_gpu").map(|rate| tokens / (rate * chips)))
            .or_else(|| number("tflops_per_gpu").map(|rate| flop(row) / (rate * scale * chips)))
            .or_else(|| number("mfu_pct").map(|share| flop(row) / (share / 100.0 * self.peak(row) * chips)))
    }
}

struct Line {
    group: String,
    /// Mean of |predicted / measured - 1|.
    mape: f64,
    errors: Errors,
    /// The first with the best single MFU for the group.
    constant: f64,
    /// The same with one MFU for each chip and format.
    constant_each: f64,
}

#[derive(Default)]
pub struct Report {
    steps: Vec<Line>,
    /// Predicted over measured passes of one layer, less one.
    layers: Vec<f64>,
    /// Predicted over printed memory, less one, by table.
    memory: BTreeMap<String, Vec<f64>>,
    /// Rows that ran out of memory and are said to, of so many.
    caught: (usize, usize),
    /// Rows that ran and are said to run out of memory.
    false_alarms: Vec<String>,
    ran: usize,
    skipped: BTreeMap<String, usize>,
    /// Every row with its ratio on a line of its own, for those who want to see.
    pub listed: String,
}

/// Scores the tables of a folder, with the catalogue's programs or those of another folder.
pub fn score(catalog: &Catalog, folder: &Path, stacks: Option<&Path>) -> Result<Report, SpecError> {
    let Rows { rows, skipped } = read(folder, catalog)?;
    let mut bench = Bench::new(catalog, &rows)?;
    if let Some(stacks) = stacks {
        bench.replace(stacks)?;
    }
    let mut report = Report { skipped, ..Report::default() };
    let mut groups: BTreeMap<String, Vec<(&Row, f64, f64)>> = BTreeMap::new();
    for row in &rows {
        let chip = &row.chip;
        let (id, model) = (row.raw.text("id"), row.raw.text("model"));
        let stack = &bench.stacks[row.source.stack];
        let predicted = match bench.predict(row, stack) {
            Ok(p) => p,
            Err(why) => {
                *report.skipped.entry(why).or_default() += 1;
                continue;
            }
        };
        let cut = &predicted.cut;
        let mut list = |line: String| report.listed += &(line + "\n");
        let (m, total) = (&predicted.memory, predicted.memory.total().get());
        let gib = total / GIB;
        let parts_held = [
            ("weights", m.weight_bytes),
            ("gradients", m.gradient_bytes),
            ("optimizer", m.optimizer_bytes),
            ("activations", m.activation_bytes),
            ("logits", m.logit_bytes),
            ("buffers", m.other_bytes - stack.memory.reserve.get()),
        ];
        let held = parts_held.map(|(part, bytes)| format!("{part} {:.1}", bytes / GIB)).join(" ");
        let file = row.table();
        if row.out_of_memory() {
            report.caught.1 += 1;
            report.caught.0 += usize::from(!predicted.fits);
            list(format!("ran out of memory: {file} {id} {cut}: {gib:.1} GiB, {held}"));
        } else {
            report.ran += 1;
            if !predicted.fits {
                report.false_alarms.push(format!("{file} {id}: {model} on {chip} with {cut}: {gib:.1} GiB"));
            }
        }
        if let Some(printed) = row.raw.number("mem_gib") {
            let seen = if stack.memory.reserve_seen { total } else { m.allocated } / GIB;
            let off = seen / printed - 1.0;
            report.memory.entry(file.to_owned()).or_default().push(off);
            let (b, off) = (cut.micro_batch, off * 100.0);
            list(format!("memory {file} {id} {cut} b{b}: {seen:.2} of {printed} GiB ({off:+.1} %), {held}"));
        }
        let Some(measured) = bench.measured(row).filter(|_| !row.out_of_memory()) else { continue };
        let ratio = predicted.seconds / measured;
        let on = format!("{}x{chip} s{} {cut}", row.chips, row.sequence);
        let (format, parts) = (row.format, parts(&predicted.step));
        list(format!("step {file} {id} {model} {format} {on}: {measured:.4} s, ratio {ratio:.3}; {parts}"));
        for group in labels(row, file) {
            groups.entry(group).or_default().push((row, measured, ratio));
        }
    }
    let small = layers::read(catalog, folder)?;
    for (what, off) in small.layers.iter().chain(&small.memory) {
        let _ = writeln!(report.listed, "korthikanti2022 {what}: {:+.1} %", off * 100.0);
    }
    report.layers = small.layers.into_iter().map(|(_, off)| off).collect();
    if !small.memory.is_empty() {
        report.memory.insert("korthikanti2022".into(), small.memory.into_iter().map(|(_, off)| off).collect());
    }
    report.steps = groups.into_iter().filter_map(|(group, rows)| line(&bench, group, &rows)).collect();
    Ok(report)
}

/// Every step beside its prediction, in seconds.
pub fn cases(catalog: &Catalog, folder: &Path) -> Result<Rows<Case>, SpecError> {
    let all = read(folder, catalog)?;
    let bench = Bench::new(catalog, &all.rows)?;
    Ok(all.map(|row| {
        let measured = bench.measured(&row).filter(|_| !row.out_of_memory());
        let measured = measured.ok_or_else(|| format!("{}: no step was timed", row.source.file))?;
        let predicted = bench.predict(&row, &bench.stacks[row.source.stack])?.seconds;
        let what = format!("{} chips; s{}; {}; {}", row.chips, row.sequence, row.cut, row.format);
        let chip = &bench.system(&row).chip;
        let case = Case::on(chip, row.source.file, "training step");
        let case = case.of(row.source.stack, row.raw.text("model"), what);
        Ok::<Case, String>(Case { experts: row.shape.moe().is_some(), measured, predicted, ..case })
    }))
}

fn parts(s: &StepTime) -> String {
    let shown = |p: &Part| format!("{} {:.2}", format!("{p:?}").to_lowercase(), s.of(*p));
    Part::VARIANTS.iter().filter(|p| !matches!(p, Part::Offload | Part::Fixed)).map(shown).collect::<Vec<_>>().join(" ")
}

/// Groups a row is scored in: its table, and parts of it that are stated apart.
fn labels(row: &Row, file: &str) -> Vec<String> {
    let mut all = vec![file.to_owned()];
    if file.starts_with("vtrain") {
        let nodes = if row.many_nodes() { "multi-node" } else { "single-node" };
        all = vec![format!("{file} {nodes}")];
    }
    if file == "nemo" || file == "dgxc" || file.starts_with("simumax") {
        let kind = if row.shape.moe().is_some() { "experts" } else { "dense" };
        all.push(format!("{file} {kind}"));
    }
    all
}

fn line(bench: &Bench, group: String, rows: &[(&Row, f64, f64)]) -> Option<Line> {
    let errors = Errors::of(rows.iter().map(|(_, _, ratio)| float::ln(*ratio)))?;
    let mape = mean(rows.iter().map(|(_, _, ratio)| (ratio - 1.0).abs()));
    let mut each: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut all = Vec::new();
    for (row, measured, _) in rows {
        // Seconds at the full peak, over measured seconds: the MFU of each row.
        let share = flop(row) / (bench.peak(row) * row.chips as f64) / measured;
        all.push(share);
        each.entry(format!("{} {}", row.chip, row.format)).or_default().push(share);
    }
    let apart: f64 = each.values().map(|s| best_constant(s) * s.len() as f64).sum::<f64>() / rows.len() as f64;
    Some(Line { mape, errors, constant: best_constant(&all), constant_each: apart, group })
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

/// The least mean absolute share of error any one MFU can have: predicted over measured is share / constant.
fn best_constant(shares: &[f64]) -> f64 {
    let error = |c: f64| mean(shares.iter().map(|s| (s / c - 1.0).abs()));
    // The error is piecewise monotone between the shares themselves, so one of them is best.
    shares.iter().map(|c| error(*c)).fold(f64::INFINITY, f64::min)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "step time             rows   mape   bias  median |ln|     p90   best constant MFU   one per chip and format"
        )?;
        for l in &self.steps {
            let Errors { fit: Residual { rows, median, p90 }, bias } = l.errors;
            let [mape, one, each] = [l.mape, l.constant, l.constant_each].map(|share| share * 100.0);
            write!(f, "{:<26} {rows:>4} {mape:>6.2}% {bias:>+6.3} {median:>10.3} {p90:>9.3}", l.group)?;
            writeln!(f, " {one:>18.2}% {each:>18.2}%")?;
        }
        if !self.layers.is_empty() {
            let (n, mean) = (self.layers.len(), mean(self.layers.iter().map(|e| e.abs())));
            writeln!(f, "one layer (korthikanti2022) {n:>3} {:>6.2}%", mean * 100.0)?;
        }
        writeln!(f, "\nmemory                rows   mean error   worst")?;
        for (file, errors) in &self.memory {
            let (n, mean) = (errors.len(), mean(errors.iter().map(|e| e.abs())));
            let worst = errors.iter().fold(0.0, |w: f64, e| if e.abs() > w.abs() { *e } else { w });
            writeln!(f, "{file:<20} {n:>5} {:>11.2}% {:>+7.1}%", mean * 100.0, worst * 100.0)?;
        }
        let ((caught, of), alarms, ran) = (self.caught, self.false_alarms.len(), self.ran);
        writeln!(f, "out of memory: {caught} of {of} called so; {alarms} of {ran} that ran called so")?;
        self.false_alarms.iter().try_for_each(|alarm| writeln!(f, "  {alarm}"))?;
        skipped(f, &self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_constant_is_one_of_the_shares() {
        // Shares 0.3, 0.4 and 0.5: 0.4 is off by a quarter twice and right once.
        assert!((best_constant(&[0.3, 0.4, 0.5]) - (0.25 + 0.0 + 0.25) / 3.0).abs() < 1e-12);
        assert_eq!(best_constant(&[0.42, 0.42]), 0.0);
    }
}
