//! One pass, one steady state, one layout prepared, one whole estimate: what a search calls millions of times; and a planning
//! question from nothing to the page: what a person waits for.

use criterion::{Criterion, criterion_group, criterion_main};
use rackmath::plan::{Request, answer_on, space};
use rackmath::setting::Setting;
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
    for (model, on) in [("llama-3.1-70b", "8xh200"), ("deepseek-v3", "gb200-nvl72")] {
        let with = estimate::Request { setting: setting(model, on), ..estimate::Request::default() };
        c.bench_function(&format!("estimate {model}"), |b| b.iter(|| estimate::answer(&catalog, black_box(&with))));
        let without = estimate::Request { changes: false, ..with };
        c.bench_function(&format!("estimate without changes {model}"), |b| {
            b.iter(|| estimate::answer(&catalog, black_box(&without)));
        });
    }
    c.bench_function("read all kernels", |b| b.iter(|| KernelSet::of(&catalog)));
}

fn setting(model: &str, on: &str) -> Setting {
    Setting { model: model.into(), on: on.into(), ..Setting::default() }
}

fn request(model: &str, on: &str, engine: &str) -> Request {
    let (setting, engines) = (setting(model, on), vec![engine.into()]);
    let [isl, osl] = [4000.0, 500.0].map(Some);
    let [ttft_ms, tpot_ms] = [1000.0, 30.0].map(|ms: f64| Some(ms.into()));
    Request { setting, engines, isl, osl, ttft_ms, tpot_ms, ..Request::default() }
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

criterion_group!(benches, passes, whole, questions, estimates);
criterion_main!(benches);
