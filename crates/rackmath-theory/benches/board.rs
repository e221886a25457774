//! How fast one step is, and a curve of a thousand.

use criterion::{Criterion, criterion_group, criterion_main};
use rackmath_theory::board::{Board, Rules};
use rackmath_theory::deployment::Deployment;
use rackmath_units::{DollarRate, Tokens};
use std::hint::black_box;

fn bench(c: &mut Criterion) {
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

criterion_group!(benches, bench);
criterion_main!(benches);
