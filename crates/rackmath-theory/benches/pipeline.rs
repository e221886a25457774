//! How long a step of 16 devices and 256 micro-batches takes to work out, pass by pass.

use criterion::{Criterion, criterion_group, criterion_main};
use rackmath_theory::pipeline::{Passes, Plan, Schedule, Shape, Stage, lower_bound};
use rackmath_units::{Bytes, Seconds};
use std::hint::black_box;

fn bench(c: &mut Criterion) {
    let passes = Passes { forward: Seconds::ms(10.0), input_grad: Seconds::ms(11.0), weight_grad: Seconds::ms(9.0) };
    let whole = Stage { passes, activation: Bytes::gb(1.0) };
    for &schedule in Schedule::ALL {
        let chunks = schedule.fixed_chunks().unwrap_or(2);
        let mut plan = Plan::even(schedule, Shape { devices: 16, micro_batches: 256, chunks }, whole);
        plan.hop = Seconds::us(100.0);
        c.bench_function(&format!("pipeline/{schedule}"), |b| b.iter(|| black_box(&plan).run().unwrap()));
        if schedule == Schedule::OneFOneB {
            c.bench_function("pipeline/lower-bound", |b| b.iter(|| lower_bound(black_box(&plan)).unwrap()));
        }
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
