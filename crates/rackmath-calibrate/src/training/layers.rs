//! One layer of Megatron's, and what a stage of its models keeps, against two small tables of Korthikanti 2022.
//!
//! `training_korthikanti2022_layer.csv` holds measured passes of one layer of the 22-billion model on eight A100;
//! `training_korthikanti2022_memory.csv` what its first stage holds by the authors' own formulas (arXiv 2205.05198, Table 4,
//! Figures 1 and 7).

use crate::rows::{Record, table_or_none};
use rackmath_spec::layout::Degrees;
use rackmath_spec::model::Shape;
use rackmath_spec::{Catalog, SpecError, TrainingFormat};
use rackmath_theory::pipeline::Schedule;
use rackmath_theory::train::machine::Machine;
use rackmath_theory::train::memory::in_flight;
use rackmath_theory::train::step::{Part, Prepared, Row, step};
use rackmath_theory::train::work::{Slice, block};
use rackmath_theory::train::{Cut, Job, Recompute, Sharding};
use std::path::Path;

pub const FILES: [&str; 2] = ["training_korthikanti2022_layer.csv", "training_korthikanti2022_memory.csv"];

const GIB: f64 = 1_073_741_824.0;

/// Predicted over printed, less one, of every number of the two tables, with what it is.
#[derive(Default)]
pub struct Read {
    pub layers: Vec<(String, f64)>,
    pub memory: Vec<(String, f64)>,
}

/// A model of the paper with its layout: layers, width, heads, stages, chunks, sequences of a micro-batch, and of a step.
const MODELS: [(&str, [u64; 7]); 4] = [
    ("22B", [48, 6144, 64, 1, 1, 4, 4]),
    ("175B", [96, 12_288, 96, 8, 3, 1, 64]),
    ("530B", [105, 20_480, 128, 35, 3, 1, 280]),
    ("1T", [128, 25_600, 160, 64, 1, 1, 512]),
];

fn cut(mode: &str, [_, _, _, pp, virtual_stages, micro_batch, _]: [u64; 7]) -> Cut {
    let recompute = match mode {
        m if m.contains("full") => Recompute::Full,
        m if m.contains("selective") => Recompute::Selective,
        _ => Recompute::None,
    };
    let sequence_parallel = mode.contains("sequence");
    let degrees = Degrees { tp: 8, pp, virtual_stages, sequence_parallel, ..Degrees::default() };
    let schedule = if virtual_stages > 1 { Schedule::Interleaved } else { Schedule::OneFOneB };
    Cut { degrees, schedule, micro_batch, sharding: Sharding::None, recompute, ..Cut::default() }
}

pub fn read(catalog: &Catalog, folder: &Path) -> Result<Read, SpecError> {
    let [layers, memory] = FILES.map(|file| table_or_none(&folder.join(file)));
    let mut read = Read { layers: Vec::new(), memory: memory?.iter().flat_map(held).collect() };
    let system = catalog.system("8xa100-80gb")?;
    let (stack, kernels) = (catalog.training_stack("megatron-2022")?, catalog.gemm_kernels()?);
    let network = catalog.network(&system.chip.link.kind)?;
    let Some(machine) = Machine::new(&system, &stack, &kernels, &network, TrainingFormat::Fp16) else {
        return Ok(read);
    };
    // One layer, as the paper times it.
    let (_, figures) = MODELS[0];
    let shape = Shape::gpt(1, figures[1], figures[2]);
    for row in &layers? {
        let cut = cut(row.text("case"), figures);
        let job = Job { shape: &shape, sequence: 2048, global_batch: figures[6], format: TrainingFormat::Fp16 };
        let prepared = Prepared::new(&machine, &job, &cut);
        let Some(stages) = Row::new(&prepared.stages(1, cut.spread), cut.recompute) else { continue };
        let time = step(&machine, &prepared, &stages, &cut, 1);
        let passes = [Part::Products, Part::Attention, Part::Elementwise, Part::Tensor, Part::Host, Part::Again];
        let predicted = passes.iter().map(|part| time.of(*part)).sum::<f64>();
        if let Some(measured) = row.number("combined_ms") {
            read.layers.push((row.text("case").to_owned(), predicted * 1e3 / measured - 1.0));
        }
    }
    Ok(read)
}

/// What the first stage keeps: in all where it is printed, else as a share of keeping everything.
fn held(row: &Record) -> Vec<(String, f64)> {
    let Some((name, figures)) = MODELS.iter().find(|(name, _)| *name == row.text("model")) else { return Vec::new() };
    let [layers, width, heads, pp, _, _, batch] = *figures;
    let shape = Shape::gpt(layers, width, heads);
    let kept = |mode: &str| {
        let cut = cut(mode, *figures);
        let slice = Slice { cut: &cut, sequence: 2048.0, flash: false, dropout: true, stored: 2.0, fused: false };
        let kept = block(&shape, &shape.runs[0].block, &slice).kept;
        let each = match cut.recompute {
            Recompute::Full => kept.input,
            Recompute::Selective => kept.all - kept.scores,
            _ => kept.all,
        };
        each * in_flight(&cut, 0, batch) * layers as f64 / pp as f64
    };
    let (mode, mut all) = (row.text("mode"), Vec::new());
    let mut against = |what: &str, predicted: f64, printed: Option<f64>| {
        all.extend(printed.map(|printed| (format!("{name} {mode}: {what}"), predicted / printed - 1.0)));
    };
    against("activations", kept(mode) / GIB, row.number("activations_gib"));
    against("share of keeping everything", 100.0 * kept(mode) / kept("none"), row.number("activation_pct_of_none"));
    // 18 bytes for each of 12 l h^2 parameters, over the ranks and stages.
    let states = 18.0 * 12.0 * (layers * width * width) as f64 / (8 * pp) as f64 / GIB;
    against("weights and optimizer", states, row.number("weights_optimizer_gib"));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::parse;

    #[test]
    fn the_papers_figures_come_back() {
        let csv = "model,mode,weights_optimizer_gib,activations_gib,activation_pct_of_none\n\
                   22B,none,45.5625,59.25,100\n175B,sequence-parallel+selective,45.5625,12.3515625,18.49\n1T,full,,,9.42\n";
        let all: Vec<(String, f64)> = parse(csv).unwrap().iter().flat_map(held).collect();
        assert_eq!(all.len(), 7);
        assert!(all.iter().all(|(_, off)| off.abs() < 0.02), "{all:?}");
    }
}
