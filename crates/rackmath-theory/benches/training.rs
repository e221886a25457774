//! Training configurations per second, and the 530B example of exhaustive search.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rackmath_spec::model::{
    Attention, Bias, Block, Ffn, Formats, Gate, KvSource, Mixer, Mlp, Norm, QkNorm, Run, Shape, Span,
};
use rackmath_spec::{Catalog, Dtype, TrainingFormat};
use rackmath_theory::train::Job;
use rackmath_theory::train::machine::Machine;
use rackmath_theory::train::search::{Searcher, Space};
use std::hint::black_box;

/// Megatron-Turing NLG 530B: 105 layers, 20,480 wide, 128 heads (arXiv 2201.11990).
fn turing() -> Shape {
    let block = Block {
        mixer: Mixer::Attention(Attention {
            heads: 128,
            kv_heads: 128,
            qk_dim: 160,
            v_dim: 160,
            span: Span::Full,
            kv: KvSource::Own,
            bias: Bias { qkv: true, out: true },
            qk_norm: QkNorm::None,
            k_is_v: false,
            gate: Gate::None,
            sinks: false,
        }),
        ffn: Ffn::Dense(Mlp { width: 81_920, gated: false, bias: true }),
        norms: 2,
        side: Vec::new(),
    };
    Shape {
        architecture: "gpt".into(),
        hidden: 20_480,
        vocab: 51_200,
        tied: true,
        head_bias: false,
        positions: 2048,
        norm: Norm::Layer,
        outer_norms: 1,
        runs: vec![Run { n: 105, block }],
        mtp: None,
        side: Vec::new(),
        context_max: Some(2048),
        formats: Formats::uniform(Dtype::Bf16),
    }
}

fn training(c: &mut Criterion) {
    let catalog = Catalog::embedded();
    let shape = turing();
    let system = catalog.system("5128xa100-80gb").expect("a chip of the catalogue");
    let stack = catalog.training_stack("megatron-2022").expect("a program of the catalogue");
    let (kernels, network) = (catalog.gemm_kernels().expect("kernels"), catalog.network("nvlink3").expect("a network"));
    let machine = Machine::new(&system, &stack, &kernels, &network, TrainingFormat::Bf16).expect("16-bit products");
    let job = Job { shape: &shape, sequence: 2048, global_batch: 2520, format: TrainingFormat::Bf16 };
    let space = Space::of(&shape, 5128, machine.domain, 2520, system.chip.memory.size().get());
    let searcher = Searcher::new(&machine, &job, &space);
    let evaluated = searcher.each(|_| ());
    let mut group = c.benchmark_group("training");
    group.throughput(Throughput::Elements(evaluated));
    group.bench_function("configurations, prepared", |b| {
        b.iter(|| {
            let mut best = f64::INFINITY;
            searcher.each(|candidate| best = if candidate.fits { best.min(candidate.step.total) } else { best });
            black_box(best)
        });
    });
    group.bench_function("530B on 5,128 chips, exhaustively, from nothing", |b| {
        b.iter(|| black_box(Searcher::new(&machine, &job, &space).search(10).best.len()));
    });
    group.finish();
}

criterion_group!(benches, training);
criterion_main!(benches);
