//! Requests per CPU second of the worlds that simulators are compared on, operator model as timer, prefix caching on.
//!
//! `cargo bench -p rackmath-sim --bench worlds` prints one line for each; with `step` as an argument, step by step; with
//! `general`, every step through the scheduler and a tenth of the requests; with `sglang` or `trtllm`, by that engine's
//! schedule. Letters of worlds, only those.

use rackmath_catalog::embedded;
use rackmath_sim::clock::Timed;
use rackmath_sim::cluster::{Cluster, Router};
use rackmath_sim::engine::{Settings, sglang, trtllm, vllm};
use rackmath_sim::replica::Pace;
use rackmath_sim::tally::{Keep, Limits, Tally};
use rackmath_sim::workload::{Arrivals, Drawn, Length, Sharing, Traffic};
use rackmath_theory::deployment::{Deployment, Ready};
use rackmath_theory::pass::KernelSet;
use rackmath_units::Effort;

fn sglang() -> sglang::Settings {
    let (engine, _) = embedded().engine("sglang").expect("in the catalogue");
    sglang::Settings::new(engine.reckoning.expect("it reckons"))
}

/// CPU seconds of this process so far: it has one thread.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// The engine named as an argument, with 919,824 tokens of cache.
fn settings(asked: impl Fn(&str) -> bool, overlap: bool) -> Settings {
    let (max_num_seqs, chunk, longest, tokens) = (1024, 8192, 131_072, 919_824);
    if asked("sglang") {
        let (max_running_requests, max_total_tokens) = (max_num_seqs, tokens);
        let d = sglang();
        sglang::Settings { max_running_requests, max_total_tokens, disable_overlap_schedule: !overlap, ..d }.into()
    } else if asked("trtllm") {
        let d = trtllm::Settings::default();
        trtllm::Settings { blocks: tokens / 32, disable_overlap_scheduler: !overlap, ..d }.into()
    } else {
        vllm::Settings {
            max_num_seqs,
            max_num_batched_tokens: chunk,
            max_model_len: longest,
            num_blocks: tokens / 16 + 1,
            async_scheduling: overlap,
            ..vllm::Settings::default()
        }
        .into()
    }
}

fn main() {
    let asked = |name: &str| std::env::args().any(|a| a == name);
    let pace = match () {
        () if asked("general") => Pace::General,
        () if asked("step") => Pace::Steps,
        () => Pace::Jumps,
    };
    let catalog = &embedded();
    let on = Deployment::named(catalog, "llama-3.1-8b", "hgx-h200", "vllm").unwrap();
    let ready = Ready::new(&KernelSet::of(catalog).unwrap(), on).unwrap();
    let open = |rate| Arrivals::Open { rate, cv: 1.0 };
    let users = Arrivals::Users { users: 64, think_s: 0.0 };
    let worlds = [
        ("A 512/512, 3/s, 1 engine", open(3.0), 512, 512, 1, Router::RoundRobin, 200_000),
        ("B 512/512, 64 users, 1 engine", users, 512, 512, 1, Router::RoundRobin, 200_000),
        ("C 512/512, 12/s, 4 engines, KV-aware", open(12.0), 512, 512, 4, Router::Kv, 200_000),
        ("D 2048/128, 400/s, 64 engines, round robin", open(400.0), 2048, 128, 64, Router::RoundRobin, 200_000),
    ];
    let some = worlds.iter().any(|w| asked(&w.0[..1]));
    for async_scheduling in [false, true] {
        for (name, arrivals, input, output, engines, router, requests) in worlds.clone() {
            if some && !asked(&name[..1]) {
                continue;
            }
            let settings = settings(asked, async_scheduling);
            let requests = if pace == Pace::General { requests / 10 } else { requests };
            let traffic = Traffic {
                arrivals,
                input: Length::Fixed(input),
                output: Length::Fixed(output),
                sharing: Sharing::default(),
                requests,
                seed: 42,
                longest: 131_072,
            };
            let began = cpu();
            let keep =
                Keep { warm: 0, requests, batches: 32, limits: Limits::default(), outside: 0, each: false, worst: 10 };
            let mut tally = Tally::new(keep);
            let mut cluster = Cluster::alike(&settings, engines, Timed::new(&*ready.pass), router, 42, pace);
            cluster.run(&mut Drawn::new(traffic), &mut tally, &Effort::default()).unwrap();
            let took = cpu() - began;
            let p = tally.e2e.percentiles(&[0.5, 0.99]);
            println!(
                "{name}, async {async_scheduling}: {:.0} requests per CPU second, {} steps; e2e p50 {:.3} s, p99 {:.3} s",
                requests as f64 / took,
                cluster.totals().steps,
                p[0].unwrap() / 1e9,
                p[1].unwrap() / 1e9
            );
        }
    }
}
