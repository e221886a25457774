//! Criterion benches of the theory: kernels, boards, posteriors, pipelines, training configurations.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rackmath_spec::attention::Wanted;
use rackmath_spec::deduce::Seller;
use rackmath_spec::model::Shape;
use rackmath_spec::{Dtype, Math, TrainingFormat};
use rackmath_theory::board::{Board, Rules};
use rackmath_theory::deduce::{self, Evidence, Posterior, Sampling, Sheet};
use rackmath_theory::deployment::Deployment;
use rackmath_theory::operator::Silicon;
use rackmath_theory::operator::attention::{DecodeWork, PrefillWork, Residency, decode, prefill};
use rackmath_theory::pipeline::{self, Passes, Plan, Schedule, Stage, lower_bound};
use rackmath_theory::train::Job;
use rackmath_theory::train::machine::Machine;
use rackmath_theory::train::search::{Candidate, Searcher, Space};
use rackmath_units::{Bytes, Cancel, DollarRate, Seconds, Tokens};
use std::hint::black_box;

/// One attention decode and one prefill: they are evaluated for every layer kind of every plan.
fn attention(c: &mut Criterion) {
    let catalog = rackmath_catalog::embedded();
    let (chip, kernels) = (catalog.chip("h200").unwrap(), catalog.attention_kernels().unwrap());
    let wanted = Wanted { backend: "vllm", math: Dtype::Bf16, kv: Dtype::Bf16, group: 4 };
    let silicon = Silicon::of(&chip, Math::Bf16).unwrap();
    let width = Dtype::Bf16.width();
    let constants = kernels.decode(&chip, wanted).constants;
    c.bench_function("attention decode", |b| {
        b.iter(|| {
            let work = DecodeWork::grouped(black_box(64.0), black_box(8192.0), (32.0, 8.0), 128.0, width);
            decode(silicon, &constants, &work, Residency::Memory)
        });
    });
    let constants = kernels.prefill(&chip, wanted).constants;
    c.bench_function("attention prefill", |b| {
        b.iter(|| {
            let work = PrefillWork::grouped(black_box(1.0), black_box(8192.0), (32.0, 8.0), 128.0, width);
            prefill(silicon, &constants, &work, Residency::Memory)
        });
    });
    c.bench_function("attention lookup", |b| b.iter(|| kernels.decode(black_box(&chip), wanted).constants.floor));
}

/// How fast one step is, and a curve of a thousand.
fn board(c: &mut Criterion) {
    let catalog = rackmath_catalog::embedded();
    for name in ["llama-3.1-8b", "deepseek-v3", "deepseek-v4-pro", "gemma-4-31b"] {
        let on = Deployment::named(&catalog, name, "gb200-nvl72", "ideal").unwrap();
        let rules = Rules { price: DollarRate::per_hour(200.0), ..Rules::default() };
        let board = Board::new(&on, &rules).unwrap();
        let (l, q) = (Tokens::new(8192.0), Tokens::new(1.0));
        c.bench_function(&format!("step/{name}"), |b| {
            b.iter(|| board.step(black_box(Tokens::new(512.0)), black_box(l), black_box(q)));
        });
        c.bench_function(&format!("curve-1000/{name}"), |b| {
            b.iter(|| {
                let board = Board::new(black_box(&on), &rules).unwrap();
                (1..=1000).map(|i| board.step(Tokens::new(f64::from(i) * 8.0), l, q).time.get()).sum::<f64>()
            });
        });
    }
    c.bench_function("catalog/model", |b| b.iter(|| catalog.model(black_box("deepseek-v3")).unwrap()));
}

/// How fast a posterior is: 2^20 points on one core, for a short and for a full sheet.
fn posterior(c: &mut Criterion) {
    let priors = rackmath_catalog::embedded().deduce_priors().unwrap();
    let two = Sheet { input: Some(0.5), output: Some(2.0), hosts: 8, ..Sheet::default() };
    let full = Sheet {
        cached: Some(0.05),
        storage: Some(1.0),
        write: Some(1.0),
        long: Some((200e3, Some(2.0), Some(1.5))),
        fast: Some((2.0, 2.5)),
        tokens_per_s: Some(60.0),
        ..two
    };
    let mut group = c.benchmark_group("posterior");
    group.sample_size(10);
    for (name, sheet) in [("two-prices", two), ("full-sheet", full)] {
        let space = deduce::Space::new(&priors, Seller::Host).unwrap();
        let evidence = Evidence::new(&space, &sheet, |_| 0.5);
        for log2_points in [16, 20] {
            let sampling = Sampling { log2_points, seed: 1 };
            group.bench_function(format!("{name}/2^{log2_points}"), |b| {
                b.iter(|| Posterior::new(black_box(&space), black_box(&evidence), sampling));
            });
        }
    }
    group.finish();
}

/// How long a step of 16 devices and 256 micro-batches takes to work out, pass by pass.
fn pipelines(c: &mut Criterion) {
    let passes = Passes { forward: Seconds::ms(10.0), input_grad: Seconds::ms(11.0), weight_grad: Seconds::ms(9.0) };
    let whole = Stage { passes, activation: Bytes::gb(1.0) };
    for &schedule in Schedule::ALL {
        let chunks = schedule.fixed_chunks().unwrap_or(2);
        let mut plan = Plan::even(schedule, pipeline::Shape { devices: 16, micro_batches: 256, chunks }, whole);
        plan.hop = Seconds::us(100.0);
        c.bench_function(&format!("pipeline/{schedule}"), |b| b.iter(|| black_box(&plan).run().unwrap()));
        if schedule == Schedule::OneFOneB {
            c.bench_function("pipeline/lower-bound", |b| b.iter(|| lower_bound(black_box(&plan)).unwrap()));
        }
    }
}

/// Training configurations per second, and the 530B example of exhaustive search.
fn training(c: &mut Criterion) {
    let catalog = rackmath_catalog::embedded();
    // Megatron-Turing NLG 530B: 105 layers, 20,480 wide, 128 heads (arXiv 2201.11990).
    let shape = Shape::gpt(105, 20_480, 128);
    let system = catalog.system("5128xa100-80gb").expect("a chip of the catalogue");
    let stack = catalog.training_stack("megatron-2022").expect("a program of the catalogue");
    let (kernels, network) = (catalog.gemm_kernels().expect("kernels"), catalog.network("nvlink3").expect("a network"));
    let machine = Machine::new(&system, &stack, &kernels, &network, TrainingFormat::Bf16).expect("16-bit products");
    let job = Job { shape: &shape, sequence: 2048, global_batch: 2520, format: TrainingFormat::Bf16 };
    let space = Space::of(&job, 5128, system.chip.memory.size().get());
    let searcher = Searcher::new(&machine, &job, &space, &Cancel::never()).unwrap();
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
    group.bench_function("530B on 5,128 chips, the best of all, from nothing", |b| {
        b.iter(|| {
            let found = Searcher::new(&machine, &job, &space, &Cancel::never()).unwrap().search(10, &Cancel::never());
            black_box(found.expect("nobody cancels").best.len())
        });
    });
    group.finish();
}

criterion_group!(benches, attention, board, posterior, pipelines, training);
criterion_main!(benches);
