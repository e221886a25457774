//! One attention decode and one prefill: they are evaluated for every layer kind of every plan.

use criterion::{Criterion, criterion_group, criterion_main};
use rackmath_spec::attention::Wanted;
use rackmath_spec::{Dtype, Math};
use rackmath_theory::operator::Silicon;
use rackmath_theory::operator::attention::{DecodeWork, PrefillWork, Residency, decode, prefill};
use std::hint::black_box;

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

criterion_group!(benches, attention);
criterion_main!(benches);
