//! One pass, one steady state, one layout prepared, one whole estimate: what a search calls millions of times, and what a
//! person waits for.

use criterion::{Criterion, criterion_group, criterion_main};
use rackmath::{Catalog, estimate};
use rackmath_spec::Layout;
use rackmath_spec::layout::Degrees;
use rackmath_theory::deployment::{Deployment, Ready};
use rackmath_theory::pass::{Chunk, KernelSet, Work};
use rackmath_theory::steady::{Load, Requests};
use std::hint::black_box;

fn parts(catalog: &Catalog, model: &str, system: &str, degrees: Degrees) -> Deployment {
    Deployment { layout: Layout::new(degrees).unwrap(), ..Deployment::named(catalog, model, system, "vllm").unwrap() }
}

fn deployments(catalog: &Catalog) -> Vec<(&'static str, Deployment)> {
    let one = Degrees::default();
    vec![
        ("llama-3.1-70b", parts(catalog, "llama-3.1-70b", "8xh200", Degrees { tp: 8, etp: 8, ..one })),
        ("deepseek-v3", parts(catalog, "deepseek-v3", "gb200-nvl72", Degrees { dp: 32, ep: 32, ..one })),
        ("gemma-3-27b", parts(catalog, "gemma-3-27b", "8xh200", Degrees { tp: 2, etp: 2, ..one })),
    ]
}

fn passes(c: &mut Criterion) {
    let catalog = rackmath_catalog::embedded();
    let kernels = KernelSet::of(&catalog).unwrap();
    for (name, parts) in deployments(&catalog) {
        c.bench_function(&format!("prepare {name}"), |b| {
            b.iter(|| Ready::new(&kernels, black_box(parts.clone())).unwrap());
        });
        let d = Ready::new(&kernels, parts).unwrap();
        let decode = Work::decode(64.0, 4096.0);
        c.bench_function(&format!("decode step {name}"), |b| b.iter(|| d.pass.cost(black_box(&decode))));
        let mixed = decode.with(Chunk { tokens: 2048.0, prompts: 2.0, past: 0.0 });
        c.bench_function(&format!("mixed step {name}"), |b| b.iter(|| d.pass.cost(black_box(&mixed))));
        let requests = Requests::of(1000.0, 1000.0);
        let room = d.room(&requests);
        let load = Load::even(64.0);
        c.bench_function(&format!("steady state {name}"), |b| b.iter(|| d.steady(room, black_box(&requests), load)));
    }
}

fn whole(c: &mut Criterion) {
    let catalog = rackmath_catalog::embedded();
    let request = |model: &str, on: &str| {
        let mut request = estimate::Request::default();
        request.setting.model = model.into();
        request.setting.on = on.into();
        request
    };
    for (model, on) in [("llama-3.1-70b", "8xh200"), ("deepseek-v3", "gb200-nvl72")] {
        let with = request(model, on);
        c.bench_function(&format!("estimate {model}"), |b| b.iter(|| estimate::answer(&catalog, black_box(&with))));
        let without = estimate::Request { changes: false, ..with };
        c.bench_function(&format!("estimate without changes {model}"), |b| {
            b.iter(|| estimate::answer(&catalog, black_box(&without)));
        });
    }
    c.bench_function("read all kernels", |b| b.iter(|| KernelSet::of(&catalog)));
}

criterion_group!(benches, passes, whole);
criterion_main!(benches);
