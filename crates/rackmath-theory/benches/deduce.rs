//! How fast a posterior is: 2^20 points on one core, for a short and for a full sheet.

use criterion::{Criterion, criterion_group, criterion_main};
use rackmath_spec::deduce::Seller;
use rackmath_theory::deduce::{Evidence, LongContext, Posterior, Sampling, Sheet, Space};
use std::hint::black_box;

fn bench(c: &mut Criterion) {
    let priors = rackmath_catalog::embedded().deduce_priors().unwrap();
    let two = Sheet { input: Some(0.5), output: Some(2.0), hosts: 8, ..Sheet::default() };
    let full = Sheet {
        cached: Some(0.05),
        storage: Some(1.0),
        write: Some(1.0),
        long: Some(LongContext { threshold: 200e3, input: Some(2.0), output: Some(1.5) }),
        fast: Some((2.0, 2.5)),
        tokens_per_s: Some(60.0),
        ..two
    };
    let mut group = c.benchmark_group("posterior");
    group.sample_size(10);
    for (name, sheet) in [("two-prices", two), ("full-sheet", full)] {
        let space = Space::new(&priors, Seller::Host).unwrap();
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

criterion_group!(benches, bench);
criterion_main!(benches);
