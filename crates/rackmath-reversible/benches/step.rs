//! Time of one training step in the three ways of keeping activations.

use criterion::{Criterion, criterion_group, criterion_main};
use rackmath_reversible::step::{Keep, Stored, step};
use rackmath_reversible::{Config, Weights};

fn steps(c: &mut Criterion) {
    let config = Config::small(16);
    let weights = Weights::new(&config, 1);
    for keep in Keep::ALL {
        c.bench_function(&format!("step/{keep}"), |b| {
            b.iter(|| step(&config, &weights, keep, Stored::F32, 2).loss);
        });
    }
}

criterion_group!(benches, steps);
criterion_main!(benches);
