//! Whole runs of a server, replayed request by request: latencies, predicted against measured.
//!
//! A run is what was sent and how the engine was set; nothing is fitted here, and no constant is for one run alone. Where only a
//! rate and mean lengths are stated, requests come evenly and are as long as stated.

use super::cards::{FigureCard, LatencyCard, ReplayCard, RunCard, SchedulesCard, SimulateCard};
use crate::desk::prelude::*;
use rackmath_sim::blocks::Segment;
use rackmath_sim::clock::Timed;
use rackmath_sim::cluster::{Cluster, Router};
use rackmath_sim::engine::vllm::Settings;
use rackmath_sim::tally::{Keep, Limits, Outcome, Tally};
use rackmath_sim::workload::{Job, Listed};
pub use rackmath_spec::validation::Latency;
use rackmath_spec::validation::{Run as Carried, Sent, Table};
use rackmath_theory::deployment::{Deployment, Ready};
use rackmath_theory::pass::KernelSet;
use rackmath_theory::stats;
use std::collections::BTreeMap;

/// A run, and what was measured of it in milliseconds.
#[derive(Clone, Debug)]
pub struct Run {
    /// Who measured.
    pub source: String,
    /// Which of the source's runs.
    pub name: String,
    /// As the catalogue calls it.
    pub model: String,
    /// The machine, of which a replica takes `tp` chips.
    pub system: String,
    /// With its version.
    pub engine: String,
    /// Chips that share every layer.
    pub tp: u64,
    /// Servers behind the router.
    pub replicas: usize,
    /// Who chooses among them.
    pub router: Router,
    /// What the engine was told, or its defaults.
    pub settings: Settings,
    /// What was sent.
    pub jobs: Vec<Job>,
    /// What was met.
    pub measured: Vec<(Latency, At, f64)>,
}

/// Where in the distribution over requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At {
    /// Over all of them.
    Mean,
    /// A share of them is below.
    Percentile(f64),
}

impl At {
    /// As tables are headed.
    pub fn name(self) -> String {
        match self {
            Self::Mean => "mean".into(),
            Self::Percentile(p) => format!("p{:.0}", p * 100.0),
        }
    }

    fn of(self, values: &[f64]) -> Option<f64> {
        match self {
            Self::Mean => (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64),
            Self::Percentile(p) => stats::quantile(values, p),
        }
    }
}

/// One figure of a run in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Of which time.
    pub metric: Latency,
    /// Of which requests.
    pub at: At,
    /// In the source.
    pub measured: f64,
    /// In the replay.
    pub predicted: f64,
}

impl Compared {
    /// ln(predicted / measured).
    pub fn error(&self) -> f64 {
        float::ln(self.predicted / self.measured)
    }
}

fn of(metric: Latency, o: &Outcome) -> Option<f64> {
    match metric {
        Latency::Ttft => Some(o.ttft() as f64 / 1e6),
        Latency::Tpot | Latency::Itl => o.tpot().map(|t| t / 1e6),
        Latency::E2e => Some(o.e2e() as f64 / 1e6),
    }
}

/// Percentiles 50, 90 and 99 of what was measured, in milliseconds.
pub fn percentiles(metric: Latency, values: &[f64]) -> impl Iterator<Item = (Latency, At, f64)> {
    [0.5, 0.9, 0.99].into_iter().filter_map(move |p| Some((metric, At::Percentile(p), stats::quantile(values, p)?)))
}

impl Run {
    /// Every figure that was measured, with its prediction.
    pub fn compared(&self, catalog: &Catalog, kernels: &KernelSet, effort: &Effort) -> Result<Vec<Compared>, Error> {
        let outcomes = self.outcomes(catalog, kernels, effort)?;
        let one = |(metric, at, measured): &(Latency, At, f64)| {
            let values: Vec<f64> = outcomes.iter().filter_map(|o| of(*metric, o)).collect();
            let predicted = at.of(&values).filter(|p| *p > 0.0 && *measured > 0.0)?;
            Some(Compared { metric: *metric, at: *at, measured: *measured, predicted })
        };
        Ok(self.measured.iter().filter_map(one).collect())
    }

    /// What each request met in the replay, in order of its end; a request is known by its place in time.
    pub fn outcomes(&self, catalog: &Catalog, kernels: &KernelSet, effort: &Effort) -> Result<Vec<Outcome>, Error> {
        let on = Deployment::named(catalog, &self.model, &self.system, &self.engine)?;
        let degrees = Degrees { tp: self.tp, etp: self.tp, ..Degrees::default() };
        let unfit = |e: &dyn std::fmt::Debug| Error::file(self.name.clone(), format!("{e:?}"));
        let layout = Layout::new(degrees).map_err(|e| unfit(&e))?;
        let ready = Ready::new(kernels, Deployment { layout, ..on }).map_err(|e| unfit(&e))?;
        let overhead = &ready.deployment.engine.overhead;
        let settings = Settings { async_scheduling: overhead.host_overlaps, ..self.settings.clone() };
        let outside = (overhead.request.get() * 1e9) as u64;
        let requests = self.jobs.len() as u64;
        let keep = Keep { warm: 0, requests, batches: 1, limits: Limits::default(), outside, each: true, worst: 0 };
        let mut tally = Tally::new(keep);
        let mut all = Cluster::alike(&settings, self.replicas, Timed::new(&*ready.pass), self.router, 0, true);
        all.run(&mut Listed::new(self.jobs.clone()), &mut tally, effort)?;
        Ok(tally.each)
    }
}

/// The runs that a table of the catalogue carries.
pub fn carried(table: &Table) -> Vec<Run> {
    table.runs.iter().map(|run| one(table, run)).collect()
}

fn one(table: &Table, run: &Carried) -> Run {
    let engine: &str = run.engine.into();
    let (jobs, measured) = match &run.stated {
        Some(stated) => {
            let at = |at: At, all: &BTreeMap<Latency, f64>| {
                all.iter().map(|(metric, ms)| (*metric, at, *ms)).collect::<Vec<_>>()
            };
            let all = [
                at(At::Mean, &stated.mean),
                at(At::Percentile(0.9), &stated.p90),
                at(At::Percentile(0.99), &stated.p99),
            ];
            let mut all = all.concat();
            all.sort_by_key(|(metric, _, _)| *metric);
            (even(&stated.rates, stated.input, stated.output, usize::MAX), all)
        }
        None => recorded(run),
    };
    Run {
        source: table.source.name.clone(),
        name: run.name.clone(),
        model: run.model.clone(),
        system: run.system.clone(),
        engine: format!("{engine}@{}", run.engine_version),
        tp: run.tp,
        replicas: 1,
        router: Router::RoundRobin,
        settings: Settings {
            max_num_seqs: run.max_sequences,
            max_num_batched_tokens: run.max_tokens,
            max_model_len: run.max_context,
            num_blocks: run.kv_blocks,
            ..Settings::default()
        },
        jobs,
        measured,
    }
}

fn recorded(run: &Carried) -> (Vec<Job>, Vec<(Latency, At, f64)>) {
    let job = |sent: &Sent| Job {
        arrival: (sent.at * 1e6) as u64,
        prompt: sent.input,
        output: sent.output,
        content: sent.segments.iter().map(|(stream, tokens)| segment(*stream, *tokens)).collect(),
        ..Job::default()
    };
    let mut measured = Vec::new();
    let all = |of: fn(&Sent) -> Option<f64>| -> Vec<f64> { run.requests.iter().filter_map(of).collect() };
    measured.extend(percentiles(Latency::Ttft, &all(|r| Some(r.ttft))));
    measured.extend(percentiles(Latency::Tpot, &all(|r| r.tpot)));
    measured.extend(percentiles(Latency::E2e, &all(|r| Some(r.e2e))));
    (run.requests.iter().map(job).collect(), measured)
}

/// Tokens that are known by a number.
pub fn segment(stream: u64, tokens: u32) -> Segment {
    Segment { stream, offset: 0, tokens }
}

/// Seconds of one rate of a run of which only the law is known.
const STAGE: f64 = 600.0;
/// Different prompts of such a run: 9 to 23 system prompts of 1 to 5 users.
const PROMPTS: u64 = 45;

/// Requests at even times, one rate after the other.
pub fn even(rates: &[f64], input: u32, output: u32, most: usize) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut now = 0.0;
    for rate in rates {
        for _ in 0..(rate * STAGE) as u64 {
            let content = vec![segment(jobs.len() as u64 % PROMPTS, input)];
            jobs.push(Job { arrival: (now * 1e9) as u64, prompt: input, output, content, ..Job::default() });
            now += 1.0 / rate;
        }
    }
    jobs.truncate(most);
    jobs
}

/// All runs that the catalogue carries, and the recorded schedules.
pub(super) fn simulated(catalog: &Catalog, effort: &Effort) -> Result<SimulateCard, Error> {
    let kernels = KernelSet::of(catalog)?;
    let mut sources = Vec::new();
    for id in catalog.ids(rackmath_spec::Kind::Validation) {
        let table = catalog.validation(id)?;
        if table.runs.is_empty() {
            continue;
        }
        let mut runs = Vec::new();
        let mut groups: Vec<((Latency, String), Vec<f64>)> = Vec::new();
        for run in carried(&table) {
            let all = run.compared(catalog, &kernels, effort)?;
            for c in &all {
                let key = (c.metric, c.at.name());
                match groups.iter_mut().find(|(group, _)| *group == key) {
                    Some((_, errors)) => errors.push(c.error()),
                    None => groups.push((key, vec![c.error()])),
                }
            }
            let figure = |c: &Compared| FigureCard {
                metric: c.metric.to_string(),
                at: c.at.name(),
                measured_ms: c.measured,
                predicted_ms: c.predicted,
            };
            let figures = all.iter().map(figure).collect();
            runs.push(RunCard { name: run.name, requests: run.jobs.len(), figures });
        }
        groups.sort_by(|(a, _), (b, _)| a.cmp(b));
        let latency = |((metric, at), errors): ((Latency, String), Vec<f64>)| {
            let distances: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
            Some(LatencyCard {
                metric: metric.to_string(),
                at,
                n: errors.len(),
                median: stats::median(&distances)?,
                p90: stats::quantile(&distances, 0.9)?,
                bias: stats::median(&errors)?,
            })
        };
        sources.push(ReplayCard {
            id: table.id.clone(),
            name: table.source.name.clone(),
            address: table.source.address.clone(),
            fitted: table.source.fitted.clone(),
            assumed: table.replay.clone(),
            latencies: groups.into_iter().filter_map(latency).collect(),
            runs,
        });
    }
    effort.check()?;
    let same = rackmath_sim::replay::recorded().map_err(|e| Error::file("recorded schedules", e))?;
    let schedules = SchedulesCard {
        engine: rackmath_sim::replay::ENGINE.into(),
        scenarios: same.scenarios,
        steps: same.steps,
        differ: same.differ,
    };
    Ok(SimulateCard { sources, schedules })
}
