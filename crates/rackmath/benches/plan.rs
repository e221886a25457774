//! A planning question from nothing to the page, and single estimates of a prepared space.

use criterion::{Criterion, criterion_group, criterion_main};
use rackmath::plan::{Request, answer_on, space};
use rackmath::setting::Setting;
use std::hint::black_box;

fn request(model: &str, on: &str, engine: &str) -> Request {
    Request {
        setting: Setting { model: model.into(), on: on.into(), ..Setting::default() },
        engines: vec![engine.into()],
        isl: Some(4000.0),
        osl: Some(500.0),
        ttft_ms: Some(1000.0),
        tpot_ms: Some(30.0),
        ..Request::default()
    }
}

fn questions(c: &mut Criterion) {
    for (model, on, engine) in [
        ("qwen3-32b", "32xh200", "vllm"),
        ("qwen3-32b", "32xh200", "trtllm"),
        ("deepseek-v3", "64xh200", "vllm"),
        ("deepseek-v3", "64xh200", "sglang"),
    ] {
        let r = request(model, on, engine);
        for threads in [1, 2] {
            // Cold: the catalogue is read too.
            c.bench_function(&format!("plan {model} {on} {engine} on {threads} threads"), |b| {
                b.iter(|| answer_on(&rackmath_catalog::embedded(), black_box(&r), threads));
            });
        }
    }
}

fn estimates(c: &mut Criterion) {
    let (space, q) = space(&rackmath_catalog::embedded(), &request("qwen3-32b", "32xh200", "vllm"), 1).unwrap();
    let n = space.len();
    // Some numbers stand for nothing: only what exists is counted as an estimate.
    let exist = (0..n).filter(|i| space.estimate(*i, q.output, q.traffic).is_some()).count();
    c.bench_function(&format!("{exist} estimates of a prepared space"), |b| {
        b.iter(|| {
            let good = |i: &u64| space.estimate(*i, q.output, q.traffic).is_some_and(|e| q.limits.broken(&e) == 0);
            (0..black_box(n)).filter(good).count()
        });
    });
}

criterion_group!(benches, questions, estimates);
criterion_main!(benches);
