//! Eight replicas behind a router, replayed: `vllm_routing_8replicas_aibrix.csv.gz`, with `runs.csv` beside it.
//!
//! A set-up ran its eleven rates one after another without a restart, and the same users came back: its rates are replayed so too, from
//! the lowest up, with the caches as they are left. A rate that is not there for one set-up is sent as another set-up of the campaign
//! met it, and not judged: the client sends the same users at the same times whatever answers. Set-ups with a store of keys and values
//! outside the engine are not replayed.
//!
//! What the servers were told is in the source's deployment files (`test/regression/v0.2.1`, `v0.3.0`): prompts are not cut. vLLM 0.7
//! (engine V0) then lets prompts go first, alone in their steps; 0.8 (V1) cuts them all the same, 8,192 tokens to a step on chips of at
//! least 70 GiB (`_set_default_args_v1` of `vllm/engine/arg_utils.py`).

use crate::names::Names;
use crate::replays::{by_run, pieces};
use crate::rows::{Record, problem, table};
use crate::truth::{Open, Tables};
use rackmath::validate::replay::{At, Compared, Latency, Run, UNJUDGED, percentiles};
use rackmath_sim::cluster::{Router, Weights};
use rackmath_sim::engine::vllm::Settings;
use rackmath_sim::workload::Job;
use rackmath_spec::{Catalog, SpecError};
use rackmath_theory::pass::KernelSet;
use rackmath_theory::stats::{median, spearman};
use rackmath_units::Effort;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

pub const FILE: &str = "vllm_routing_8replicas_aibrix.csv.gz";

/// What no source says.
pub const OPEN: &[Open] = &[
    Open {
        flag: "tokens of a prompt that all users share",
        taken: "none: a first prompt takes as long on a warm server as on a cold one",
        other: "1,000",
    },
    Open { flag: "room of the cache", taken: "416,000 tokens on an A100, 536,000 on an H20", other: "a tenth less" },
    Open {
        flag: "how the gateway chooses by default",
        taken: "the better of two at random, as Envoy Gateway does",
        other: "at random",
    },
    Open {
        flag: "how prefix-cache routing chooses",
        taken: "where a prompt was sent before, whatever its engine still has, unless more than 1.25 of the mean are there",
        other: "the longest match in the engines' caches, the least loaded where loads differ by more than 8",
    },
    Open {
        flag: "how the Kubernetes Service chooses",
        taken: "by connection, at random where the client has none that is idle",
        other: "by request, at random",
    },
];

const CAMPAIGNS: [&str; 2] = ["aibrix-v0.2.1", "aibrix-v0.3.0"];
/// Tokens of a prompt that all users may share.
const SHARED: u32 = 1_000;
/// AIBrix's prefix-cache routing remembers where it sent a prefix and asks no engine; it gives way to the least loaded where more
/// than the mean and a deviation are inside, or where loads differ by more than 8 requests (`prefix_cache.go` in
/// `pkg/plugins/gateway/algorithms`). The nearest rule here is a hash with bounded loads, with the bound of `routers/sglang-gateway.toml`.
const BOUND: f64 = 1.25;
/// Uneven loads, and the share of a prompt below which a match is one that all have, where the engines' caches were asked.
const UNEVEN: (u64, f64) = (8, 1.0);
const MATCHED: f64 = 0.3;
/// Nanoseconds a client keeps a connection it does not use (`routers/kubernetes-service.toml`).
const KEEP: u64 = 5_000_000_000;
/// Nanoseconds from the last answer that was recorded of a rate to the next: long enough that none is left whatever it takes here,
/// as the client began a rate with idle servers. A cache keeps what it has.
const PAUSE: u64 = 600_000_000_000;

/// How a set-up chose; nothing where it keeps keys and values outside the engine.
fn router(workload: &str, way: Option<usize>) -> Option<Router> {
    let (_, router) = workload.split_once("router: ")?;
    let stored = ["KV", "LMCache"].iter().any(|word| router.contains(word));
    match router {
        _ if stored => None,
        "Kubernetes Service" => Some(if way == Some(4) { Router::Random } else { Router::Connections }),
        "AIBrix gateway, prefix-cache routing" => {
            Some(if way == Some(3) { Router::CacheAware } else { Router::BoundedHash })
        }
        "production-stack router, session-aware" => Some(Router::Session),
        _ if router.starts_with("AIBrix gateway, ") => {
            Some(if way == Some(2) { Router::Random } else { Router::TwoChoices })
        }
        _ => None,
    }
}

/// Every rate of every set-up that can be replayed, then the order of set-ups.
pub fn score(catalog: &Catalog, folder: &Path) -> Result<String, SpecError> {
    let path = folder.join(FILE);
    let tables = Tables { rows: table(&path)?, facts: table(&folder.join("runs.csv"))? };
    let (names, kernels) = (Names::new(catalog), KernelSet::of(catalog)?);
    let mut text = format!("TTFT in ms, predicted (median of {DRAWS} draws of the routers) / measured\n");
    _ = writeln!(text, "{:<15}{:<29}{:>5}{:>18}{:>19}", "campaign", "set-up", "rate", "p50", "p90");
    for campaign in CAMPAIGNS {
        let mut points = Vec::new();
        for run in runs(&names, &tables, campaign, None).map_err(|e| problem(&path, e))? {
            let (p50, p90) = drawn(&run, catalog, &kernels)?;
            for (p50, p90) in p50.iter().zip(p90) {
                let pair = |p: &Point| format!("{:>8.0} /{:>7.0}", p.predicted, p.measured);
                let (name, rate) = (&run.name, f64::from(p50.part) / 10.0);
                _ = writeln!(text, "{campaign:<15}{name:<29}{rate:>5.1}  {}  {}", pair(p50), pair(&p90));
                points.push(p90);
            }
        }
        text += &order(campaign, &points);
    }
    Ok(text)
}

/// Times that each set-up is replayed, its router drawing anew.
const DRAWS: u64 = 9;

/// A percentile of one rate of a set-up: the middle of what was drawn, and all of it.
struct Point {
    part: u32,
    measured: f64,
    predicted: f64,
    draws: Vec<f64>,
}

/// The middle and the 90th percentile of the time to the first token, rate by rate.
fn drawn(run: &Run, catalog: &Catalog, kernels: &KernelSet) -> Result<(Vec<Point>, Vec<Point>), SpecError> {
    let draw = |seed: u64| Run { seed, ..run.clone() }.compared(catalog, kernels, &Effort::from(1));
    let all = (0..DRAWS).map(draw).collect::<Result<Vec<_>, _>>()?;
    let of = |at: f64| {
        let wanted = |c: &Compared| c.metric == Latency::Ttft && c.at == At::Percentile(at);
        let first = (0..all[0].len()).filter(|i| wanted(&all[0][*i]));
        let point = |i: usize| {
            let draws: Vec<f64> = all.iter().map(|draw| draw[i].predicted).collect();
            let Compared { part, measured, .. } = all[0][i];
            Point { part, measured, predicted: median(&draws).unwrap_or(f64::NAN), draws }
        };
        first.map(point).collect()
    };
    Ok((of(0.5), of(0.9)))
}

/// Measured percentiles that differ by less are not told apart: two runs of one set-up do.
const APART: f64 = 1.1;

/// How well set-ups and rates are put in order, and how often one draw puts two of them in the order of another draw.
fn order(campaign: &str, points: &[Point]) -> String {
    let column = |of: fn(&Point) -> f64| points.iter().map(of).collect::<Vec<_>>();
    let rank = spearman(&column(|c| c.predicted), &column(|c| c.measured)).unwrap_or(f64::NAN);
    let (mut pairs, mut right, mut again) = ([0, 0], [0, 0], [0.0, 0.0]);
    for (i, a) in points.iter().enumerate() {
        for b in points[..i].iter().filter(|b| b.part == a.part) {
            let same = (a.predicted < b.predicted) == (a.measured < b.measured);
            let less = a.draws.iter().zip(&b.draws).filter(|(a, b)| a < b).count() as f64 / DRAWS as f64;
            let apart = a.measured.max(b.measured) > APART * a.measured.min(b.measured);
            for of in [Some(0), apart.then_some(1)].into_iter().flatten() {
                pairs[of] += 1;
                right[of] += usize::from(same);
                again[of] += less * less + (1.0 - less) * (1.0 - less);
            }
        }
    }
    let repeated = |of: usize| 100.0 * again[of] / f64::from(pairs[of].max(1));
    format!(
        "{campaign}: {} points, Spearman of p90 over set-ups and rates {rank:.2}; set-ups at one rate in the right order {} of {}, of those \
         that differ by more than a tenth {} of {}; two draws agree on the order of {:.0} % and {:.0} % of these pairs\n",
        points.len(),
        right[0],
        pairs[0],
        right[1],
        pairs[1],
        repeated(0),
        repeated(1)
    )
}

/// The set-ups of a campaign that can be replayed, each with all its rates.
pub fn runs(names: &Names<'_>, t: &Tables, campaign: &str, way: Option<usize>) -> Result<Vec<Run>, String> {
    let all = by_run(&t.rows, "run_id");
    // By set-up and rate in tenths of a request per second.
    let mut setups: BTreeMap<&str, BTreeMap<u32, &[&Record]>> = BTreeMap::new();
    for (id, rows) in &all {
        let [of, setup, rate] = id.split('/').collect::<Vec<_>>()[..] else {
            return Err(format!("{id}: expected campaign/set-up/rate"));
        };
        let rate: f64 = rate.trim_start_matches("qps").parse().map_err(|e| format!("{id}: {e}"))?;
        if of == campaign {
            setups.entry(setup).or_default().insert((rate * 10.0).round() as u32, rows);
        }
    }
    let mut any: BTreeMap<u32, &[&Record]> = BTreeMap::new();
    for rates in setups.values() {
        for (rate, rows) in rates {
            let known = any.entry(*rate).or_insert(rows);
            if rows.len() > known.len() {
                *known = rows;
            }
        }
    }
    let mut runs = Vec::new();
    for (setup, rates) in &setups {
        let fact = t.facts.iter().find(|f| f.text("run_id").starts_with(&format!("{campaign}/{setup}/")));
        let fact = fact.ok_or_else(|| format!("{campaign}/{setup}: not in runs.csv"))?;
        let Some(router) = router(fact.needed("workload")?, way) else { continue };
        let mut run = replayed(names, fact, router, way)?;
        run.name = (*setup).into();
        let mut begin = 0;
        for (rate, others) in &any {
            let rows = rates.get(rate);
            let class = if rows.is_some() { *rate } else { UNJUDGED };
            begin = send(&mut run, rows.unwrap_or(others), class, begin, way == Some(0))?;
            if let Some(rows) = rows {
                let ttft: Vec<f64> = rows.iter().filter_map(|r| r.number("ttft_ms")).collect();
                let e2e: Vec<f64> = rows.iter().filter_map(|r| r.number("e2e_ms")).collect();
                run.measured.extend(percentiles(class, Latency::Ttft, &ttft));
                run.measured.extend(percentiles(class, Latency::E2e, &e2e));
            }
        }
        runs.push(run);
    }
    Ok(runs)
}

/// Sends the requests of a rate from `begin` on; when the next may begin.
fn send(run: &mut Run, rows: &[&Record], class: u32, begin: u64, sharing: bool) -> Result<u64, String> {
    let mut end = begin;
    for r in rows {
        let arrival = begin + (r.amount("arrival_ms")? * 1e6) as u64;
        end = end.max(arrival + (r.amount("e2e_ms")? * 1e6) as u64);
        let (prompt, user) = (r.amount("input_tokens")? as u32, r.amount("session")? as u64 + 1);
        let shared = if sharing { SHARED.min(prompt) } else { 0 };
        run.jobs.push(Job {
            arrival,
            prompt,
            output: (r.amount("output_tokens")? as u32).max(1),
            session: user,
            class,
            content: pieces([(0, shared), (user, prompt - shared)]),
            ..Job::default()
        });
    }
    Ok(end + PAUSE)
}

fn replayed(names: &Names<'_>, fact: &Record, router: Router, way: Option<usize>) -> Result<Run, String> {
    let gpu = fact.needed("gpu")?;
    let (a100, name) = (gpu.starts_with("A100"), fact.needed("model")?);
    let room: u32 = if a100 { 26_000 } else { 33_500 };
    Ok(Run {
        source: "AIBrix".into(),
        model: names.model(name).ok_or_else(|| format!("no model {name} in the catalogue"))?,
        system: if a100 { "hgx-a100" } else { "hgx-h20" }.into(),
        engine: if a100 { "vllm@0.7.0" } else { "vllm@0.8.5" }.into(),
        replicas: 8,
        router,
        weighing: Weights { uneven: UNEVEN, matched: MATCHED, keep: KEEP, bound: BOUND, ..Weights::default() },
        settings: Settings {
            max_num_seqs: if a100 { 256 } else { 1024 },
            max_num_batched_tokens: if a100 { 32_000 } else { 8_192 },
            max_model_len: 32_000,
            enable_chunked_prefill: !a100,
            prompts_alone: a100,
            watermark: if a100 { 0.01 } else { 0.0 },
            num_blocks: if way == Some(1) { room / 10 * 9 } else { room },
            ..Settings::default()
        }
        .into(),
        ..Run::default()
    })
}
