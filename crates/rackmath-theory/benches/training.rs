//! Training configurations per second, and the 530B example of exhaustive search.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rackmath_spec::TrainingFormat;
use rackmath_spec::model::Shape;
use rackmath_theory::train::Job;
use rackmath_theory::train::machine::Machine;
use rackmath_theory::train::search::{Candidate, Searcher, Space};
use rackmath_units::Cancel;
use std::hint::black_box;

/// Megatron-Turing NLG 530B: 105 layers, 20,480 wide, 128 heads (arXiv 2201.11990).
fn turing() -> Shape {
    Shape::gpt(105, 20_480, 128)
}

fn training(c: &mut Criterion) {
    let catalog = rackmath_catalog::embedded();
    let shape = turing();
    let system = catalog.system("5128xa100-80gb").expect("a chip of the catalogue");
    let stack = catalog.training_stack("megatron-2022").expect("a program of the catalogue");
    let (kernels, network) = (catalog.gemm_kernels().expect("kernels"), catalog.network("nvlink3").expect("a network"));
    let machine = Machine::new(&system, &stack, &kernels, &network, TrainingFormat::Bf16).expect("16-bit products");
    let job = Job { shape: &shape, sequence: 2048, global_batch: 2520, format: TrainingFormat::Bf16 };
    let space = Space::of(&shape, 5128, machine.domain, 2520, system.chip.memory.size().get());
    let searcher = Searcher::new(&machine, &job, &space);
    let evaluated = searcher.each(&Cancel::never(), |_| ()).expect("nobody cancels");
    let mut group = c.benchmark_group("training");
    group.throughput(Throughput::Elements(evaluated));
    group.bench_function("configurations, prepared", |b| {
        b.iter(|| {
            let mut best = f64::INFINITY;
            let see = |candidate: Candidate| best = if candidate.fits { best.min(candidate.step.total) } else { best };
            searcher.each(&Cancel::never(), see).expect("nobody cancels");
            black_box(best)
        });
    });
    group.bench_function("530B on 5,128 chips, exhaustively, from nothing", |b| {
        b.iter(|| {
            black_box(
                Searcher::new(&machine, &job, &space).search(10, &Cancel::never()).expect("nobody cancels").best.len(),
            )
        });
    });
    group.finish();
}

criterion_group!(benches, training);
criterion_main!(benches);
