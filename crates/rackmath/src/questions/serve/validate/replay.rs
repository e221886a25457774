//! Whole runs of a server, replayed request by request: latencies, predicted against measured.
//!
//! A run is what was sent and how the engine was set; nothing is fitted here, and no constant is for one run alone. Where only a
//! rate and mean lengths are stated, requests come evenly and are as long as stated.

use super::cards::{FigureCard, LatencyCard, ReplayCard, RunCard, SchedulesCard, SimulateCard};
use crate::desk::prelude::*;
use crate::simulate::link;
use rackmath_sim::blocks::Segment;
use rackmath_sim::clock::Timed;
use rackmath_sim::cluster::{Cluster, Router, Weights};
use rackmath_sim::engine::{Settings, vllm};
use rackmath_sim::tally::{Keep, Limits, Outcome, Tally};
use rackmath_sim::workload::{Job, Listed, Users};
use rackmath_spec::model::Formats;
pub use rackmath_spec::validation::Latency;
use rackmath_spec::validation::{Run as Carried, Sent, Table};
use rackmath_theory::deployment::{Deployment, Ready, usual_cache};
use rackmath_theory::pass::KernelSet;
use rackmath_theory::stats;
use std::collections::BTreeMap;

/// A run, and what was measured of it in milliseconds.
#[derive(Clone, Debug, Educe)]
#[educe(Default)]
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
    /// Format of the weights, where it is not the checkpoint's.
    pub weights: Option<String>,
    /// Format of attention's weights, where it is not that of the others.
    pub attention: Option<Dtype>,
    /// Format of the cache, where it is not the engine's usual one.
    pub cache: Option<Dtype>,
    /// Chips that share every layer.
    #[educe(Default = 1)]
    pub tp: u64,
    /// Servers behind the router.
    #[educe(Default = 1)]
    pub replicas: usize,
    /// Those of them that compute prompts alone, and the rest goes on; none where all do both.
    pub prompters: usize,
    /// Who chooses among them.
    #[educe(Default = Router::RoundRobin)]
    pub router: Router,
    /// By what it weighs them.
    pub weighing: Weights,
    /// What it draws from, where it chooses at random.
    pub seed: u64,
    /// What the engine was told, or its defaults.
    #[educe(Default(expression = vllm::Settings::default().into()))]
    pub settings: Settings,
    /// What was sent.
    pub jobs: Vec<Job>,
    /// So many at once, each as one is done, instead of at the times of the jobs.
    pub users: Option<usize>,
    /// What was met.
    pub measured: Vec<Measured>,
}

/// One figure of what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The part of the run: the class of its requests.
    pub part: u32,
    /// Which time.
    pub metric: Latency,
    /// Of which requests.
    pub at: At,
    /// In milliseconds.
    pub ms: f64,
}

/// The class of requests that are sent and not judged.
pub const UNJUDGED: u32 = u32::MAX;

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
    /// Of which part of the run.
    pub part: u32,
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

/// Percentiles 50, 90 and 99 of what was measured of a part of a run, in milliseconds.
pub fn percentiles(part: u32, metric: Latency, values: &[f64]) -> impl Iterator<Item = Measured> {
    let one = move |p| Some(Measured { part, metric, at: At::Percentile(p), ms: stats::quantile(values, p)? });
    [0.5, 0.9, 0.99].into_iter().filter_map(one)
}

impl Run {
    /// Every figure that was measured, with its prediction.
    pub fn compared(&self, catalog: &Catalog, kernels: &KernelSet, effort: &Effort) -> Result<Vec<Compared>, Error> {
        let outcomes = self.outcomes(catalog, kernels, effort)?;
        let one = |m: &Measured| {
            let part = outcomes.iter().filter(|o| o.class == m.part);
            let values: Vec<f64> = part.filter_map(|o| of(m.metric, o)).collect();
            let predicted = m.at.of(&values).filter(|p| *p > 0.0 && m.ms > 0.0)?;
            Some(Compared { part: m.part, metric: m.metric, at: m.at, measured: m.ms, predicted })
        };
        Ok(self.measured.iter().filter_map(one).collect())
    }

    /// What each request met in the replay, in order of its end; a request is known by its place in time.
    pub fn outcomes(&self, catalog: &Catalog, kernels: &KernelSet, effort: &Effort) -> Result<Vec<Outcome>, Error> {
        let ready = self.ready(catalog, kernels)?;
        let overhead = ready.deployment.overhead();
        let settings = match &self.settings {
            Settings::Vllm(s) => vllm::Settings { async_scheduling: overhead.host_overlaps, ..s.clone() }.into(),
            other => other.clone(),
        };
        let outside = (overhead.request.get() * 1e9) as u64;
        let requests = self.jobs.len() as u64;
        let keep = Keep { warm: 0, requests, batches: 1, limits: Limits::default(), outside, each: true, worst: 0 };
        let mut tally = Tally::new(keep);
        let mut all = Cluster::alike(&settings, self.replicas, Timed::new(&*ready.pass), self.router, self.seed, true)
            .weighing(self.weighing);
        if self.prompters > 0 {
            all = all.sending(self.prompters, link(&ready.deployment, &ready.deployment));
        }
        match self.users {
            Some(users) => all.run(&mut Users::new(self.jobs.clone(), users), &mut tally, effort)?,
            None => all.run(&mut Listed::new(self.jobs.clone()), &mut tally, effort)?,
        }
        Ok(tally.each)
    }

    fn ready(&self, catalog: &Catalog, kernels: &KernelSet) -> Result<Ready, Error> {
        let on = Deployment::named(catalog, &self.model, &self.system, &self.engine)?;
        let all = crate::desk::setting::formats(&on.model, self.weights.as_deref())?;
        let formats = Formats { mixer: self.attention.unwrap_or(all.mixer), ..all };
        let kv = self.cache.unwrap_or_else(|| usual_cache(&on.model, formats, &on.engine));
        let degrees = Degrees { tp: self.tp, etp: self.tp, ..Degrees::default() };
        let unfit = |e: &dyn std::fmt::Debug| Error::file(self.name.clone(), format!("{e:?}"));
        let layout = Layout::new(degrees).map_err(|e| unfit(&e))?;
        let mut engine = (*on.engine).clone();
        if let Settings::Vllm(vllm::Settings { num_scheduler_steps: steps @ 2.., .. }) = self.settings {
            // The host chooses so many steps at once; each token is still taken up by itself.
            engine.overhead.host = engine.overhead.host / f64::from(steps);
        }
        Ready::new(kernels, Deployment { layout, formats, kv, engine: engine.into(), ..on }).map_err(|e| unfit(&e))
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
                all.iter().map(|(metric, ms)| Measured { part: 0, metric: *metric, at, ms: *ms }).collect::<Vec<_>>()
            };
            let all = [
                at(At::Mean, &stated.mean),
                at(At::Percentile(0.9), &stated.p90),
                at(At::Percentile(0.99), &stated.p99),
            ];
            let mut all = all.concat();
            all.sort_by_key(|m| m.metric);
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
        weights: run.weights.map(|format| format.to_string()),
        attention: run.attention,
        cache: run.kv,
        settings: vllm::Settings {
            max_num_seqs: run.max_sequences,
            max_num_batched_tokens: run.max_tokens,
            max_model_len: run.max_context,
            num_blocks: run.kv_blocks,
            enable_prefix_caching: !run.no_prefix_caching,
            enable_chunked_prefill: !run.prompts_alone,
            prompts_alone: run.prompts_alone,
            num_scheduler_steps: run.scheduler_steps,
            watermark: run.watermark,
            ..vllm::Settings::default()
        }
        .into(),
        jobs,
        measured,
        ..Run::default()
    }
}

fn recorded(run: &Carried) -> (Vec<Job>, Vec<Measured>) {
    let job = |sent: &Sent| Job {
        arrival: (sent.at * 1e6) as u64,
        prompt: sent.input,
        output: sent.output,
        class: if sent.ttft.is_some() { 0 } else { UNJUDGED },
        content: sent.segments.iter().map(|(stream, tokens)| segment(*stream, *tokens)).collect(),
        ..Job::default()
    };
    let mut measured = Vec::new();
    let all = |of: fn(&Sent) -> Option<f64>| -> Vec<f64> { run.requests.iter().filter_map(of).collect() };
    measured.extend(percentiles(0, Latency::Ttft, &all(|r| r.ttft)));
    measured.extend(percentiles(0, Latency::Tpot, &all(|r| r.tpot)));
    measured.extend(percentiles(0, Latency::E2e, &all(|r| r.e2e)));
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
