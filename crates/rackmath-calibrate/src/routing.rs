//! Eight replicas behind a router, replayed: `vllm_routing_8replicas_aibrix.csv.gz`, with `runs.csv` beside it.
//!
//! A set-up ran its rates one after another without a restart, and the same users came back: its rates are replayed so too, from the
//! lowest up, with the caches as they are left. Set-ups with a store of keys and values outside the engine are not replayed.
//!
//! Assumed, as no source says: 1,000 tokens of a prompt are everybody's and the rest the user's own; 26,000 blocks of cache on an
//! A100 and 33,500 on an H20 (0.9 of the memory less weights and 5 GiB for a pass); a pass takes one prompt (prompts are not cut) and the
//! decodes beside it, as vLLM does since its first version but for these two, which let prompts go first; half of the rates are not
//! there, so that caches are colder than they were. A gateway is taken as the better of two at random, and as random too.

use crate::rows::{Record, problem, table};
use rackmath::validate::replay::{Run, segment};
use rackmath_sim::cluster::Router;
use rackmath_sim::engine::vllm::Settings;
use rackmath_sim::tally::Outcome;
use rackmath_sim::workload::Job;
use rackmath_spec::{Catalog, SpecError};
use rackmath_theory::pass::KernelSet;
use rackmath_theory::stats::{median, quantile, spearman};
use rackmath_units::{Effort, float};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Tokens of a prompt that all users share.
const SHARED: u32 = 1_000;
/// Nanoseconds between the end of a rate and the next.
const PAUSE: u64 = 30_000_000_000;

const KV: Router = Router::Kv;

/// How a set-up may have chosen; the first is what it is judged by.
fn routers(workload: &str) -> Option<&'static [(&'static str, Router)]> {
    let (_, router) = workload.split_once("router: ")?;
    let stored = ["KV", "LMCache"].iter().any(|word| router.contains(word));
    match router {
        _ if stored => None,
        "Kubernetes Service" => Some(&[("random", Router::Random)]),
        "AIBrix gateway, prefix-cache routing" => Some(&[("kv", KV), ("cache-aware", Router::CacheAware)]),
        "production-stack router, session-aware" => Some(&[("session", Router::Session)]),
        _ if router.starts_with("AIBrix gateway, ") => {
            Some(&[("two-choices", Router::TwoChoices), ("random", Router::Random)])
        }
        _ => None,
    }
}

/// A rate of a set-up: measured TTFT in milliseconds.
struct Rate<'a> {
    rate: f64,
    rows: Vec<&'a Record>,
}

type Setups<'a> = BTreeMap<(String, String), (&'a Record, Vec<Rate<'a>>)>;

/// Every rate of every set-up that can be replayed, then the order of set-ups and the distances by campaign.
pub fn score(catalog: &Catalog, folder: &Path) -> Result<String, SpecError> {
    let path = folder.join("vllm_routing_8replicas_aibrix.csv.gz");
    let (rows, facts) = (table(&path)?, table(&folder.join("runs.csv"))?);
    let kernels = KernelSet::of(catalog)?;
    let setups = setups(&rows, &facts).map_err(|e| problem(&path, e))?;
    let head = ["campaign", "set-up", "as", "rate", "TTFT p50 ms", "TTFT p90 ms"];
    let mut text = String::new();
    let mut factors: BTreeMap<&str, f64> = BTreeMap::new();
    for scaled in [false, true] {
        let what = if scaled {
            "steps scaled by one factor for a campaign, from the plain service at its lowest rate: scheduling apart from steps"
        } else {
            "steps as the catalogue has them"
        };
        _ = write!(text, "{what}; predicted / measured\n{:<15}{:<28}{:<12}{:>5}", head[0], head[1], head[2], head[3]);
        _ = writeln!(text, "{:>18}{:>18}", head[4], head[5]);
        let mut campaigns: BTreeMap<&str, Vec<Point>> = BTreeMap::new();
        for ((campaign, setup), (fact, rates)) in &setups {
            for (i, (word, router)) in routers(fact.text("workload")).unwrap_or_default().iter().enumerate() {
                let factor = if scaled { factors.get(campaign.as_str()).copied().unwrap_or(1.0) } else { 1.0 };
                let run = replayed((campaign, setup), fact, rates, *router, factor).map_err(|e| problem(&path, e))?;
                let points = points(&run.outcomes(catalog, &kernels, &Effort::from(1))?, rates, factor);
                for p in &points {
                    let pair = |of: [f64; 2]| format!("{:>8.0} /{:>7.0}", of[0], of[1]);
                    let pairs = pair(p.p50) + "  " + &pair(p.p90);
                    _ = writeln!(text, "{campaign:<15}{setup:<28}{word:<12}{:>5.1}  {pairs}", p.rate);
                }
                if let (Some(first), "naive", false) = (points.first(), setup.as_str(), scaled) {
                    factors.insert(campaign, first.p50[1] / first.p50[0]);
                }
                if i == 0 {
                    campaigns.entry(campaign).or_default().extend(points);
                }
            }
        }
        for (campaign, points) in campaigns {
            text += &summary(campaign, &points);
        }
    }
    for (campaign, factor) in &factors {
        _ = writeln!(text, "factor of {campaign}: {factor:.3}");
    }
    let left = setups.iter().filter(|(_, (fact, _))| routers(fact.text("workload")).is_none());
    let left: Vec<String> = left.map(|((campaign, setup), _)| format!("{campaign} {setup}")).collect();
    _ = writeln!(text, "not replayed, as keys and values lie outside the engine: {}", left.join(", "));
    Ok(text)
}

/// TTFT at a rate of a set-up in milliseconds, predicted and measured.
struct Point {
    rate: f64,
    p50: [f64; 2],
    p90: [f64; 2],
}

fn points(outcomes: &[Outcome], rates: &[Rate<'_>], factor: f64) -> Vec<Point> {
    let mut ttft = vec![0.0; outcomes.len()];
    for o in outcomes {
        ttft[o.id as usize] = o.ttft() as f64 / 1e6 * factor;
    }
    let mut from = 0;
    let point = |Rate { rate, rows }: &Rate<'_>| {
        let ours = &ttft[from..from + rows.len()];
        from += rows.len();
        let measured: Vec<f64> = rows.iter().filter_map(|r| r.number("ttft_ms")).collect();
        let at = |p: f64| [ours, &measured].map(|values| quantile(values, p).unwrap_or(f64::NAN));
        Point { rate: *rate, p50: at(0.5), p90: at(0.9) }
    };
    rates.iter().map(point).collect()
}

fn summary(campaign: &str, points: &[Point]) -> String {
    let column = |i: usize| points.iter().map(|p| p.p90[i]).collect::<Vec<_>>();
    let rank = spearman(&column(0), &column(1)).unwrap_or(f64::NAN);
    let error = |of: fn(&Point) -> [f64; 2]| {
        let errors: Vec<f64> = points.iter().map(of).map(|[ours, measured]| float::ln(ours / measured).abs()).collect();
        median(&errors).unwrap_or(f64::NAN)
    };
    let (mut pairs, mut right) = (0, 0);
    for (i, a) in points.iter().enumerate() {
        for b in points[..i].iter().filter(|b| b.rate == a.rate) {
            pairs += 1;
            right += usize::from((a.p90[0] < b.p90[0]) == (a.p90[1] < b.p90[1]));
        }
    }
    format!(
        "{campaign}: {} points (first way of each set-up), Spearman of p90 {rank:.2}; set-ups at one rate in the right order \
         {right} of {pairs}; median |ln| p50 {:.3}, p90 {:.3}\n",
        points.len(),
        error(|p| p.p50),
        error(|p| p.p90)
    )
}

/// Set-ups by campaign, their rates from the lowest up.
fn setups<'a>(rows: &'a [Record], facts: &'a [Record]) -> Result<Setups<'a>, String> {
    let mut runs: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for row in rows {
        runs.entry(row.text("run_id")).or_default().push(row);
    }
    let mut all = Setups::new();
    for (id, rows) in runs {
        let [campaign, setup, rate] = id.split('/').collect::<Vec<_>>()[..] else {
            return Err(format!("{id}: expected campaign/set-up/rate"));
        };
        let rate = rate.trim_start_matches("qps").parse().map_err(|e| format!("{id}: {e}"))?;
        let fact = facts.iter().find(|f| f.text("run_id") == id).ok_or_else(|| format!("{id}: not in runs.csv"))?;
        let (_, rates) = all.entry((campaign.into(), setup.into())).or_insert((fact, Vec::new()));
        rates.push(Rate { rate, rows });
        rates.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    }
    Ok(all)
}

/// Time that steps are scaled by is taken from arrivals instead, and given back to what comes out.
fn replayed(
    (campaign, setup): (&str, &str),
    fact: &Record,
    rates: &[Rate<'_>],
    router: Router,
    factor: f64,
) -> Result<Run, String> {
    let a100 = fact.needed("gpu")?.starts_with("A100");
    let mut jobs: Vec<Job> = Vec::new();
    let mut begin = 0;
    for Rate { rows, .. } in rates {
        let mut end = begin;
        for r in rows {
            let arrival = begin + (r.amount("arrival_ms")? * 1e6) as u64;
            end = end.max(arrival + (r.amount("e2e_ms")? * 1e6) as u64);
            let (prompt, user) = (r.amount("input_tokens")? as u32, r.amount("session")? as u64 + 1);
            jobs.push(Job {
                arrival,
                prompt,
                output: (r.amount("output_tokens")? as u32).max(1),
                session: user,
                content: vec![segment(0, SHARED.min(prompt)), segment(user, prompt.saturating_sub(SHARED))],
                ..Job::default()
            });
        }
        begin = end + PAUSE;
    }
    for job in &mut jobs {
        job.arrival = (job.arrival as f64 / factor) as u64;
    }
    Ok(Run {
        source: campaign.into(),
        name: setup.into(),
        model: "llama-3.1-8b".into(),
        system: if a100 { "hgx-a100" } else { "hgx-h20" }.into(),
        engine: if a100 { "vllm@0.7.0" } else { "vllm@0.8.5" }.into(),
        tp: 1,
        replicas: 8,
        router,
        settings: Settings {
            max_num_seqs: 256,
            max_num_batched_tokens: 32_000,
            max_model_len: 32_000,
            enable_chunked_prefill: false,
            num_blocks: if a100 { 26_000 } else { 33_500 },
            ..Settings::default()
        },
        jobs,
        measured: Vec::new(),
    })
}
