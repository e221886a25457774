//! A whole measurement in order: find out what runs there, warm it up, scrape, load, scrape again, compare the counts; and the ladder of rates.

use super::discover::{Found, discovered, scraped, writing};
use super::http::{Client, Fault, Stop};
use super::prompt::{Endpoint, Writing};
use super::record::Record;
use super::run::{Ceiling, Ended, Load, run, runtime};
use super::schedule::{Arrivals, Lengths, Schedule, Sharing, drawn};
use super::summary::{Summary, Targets, summary};
use crate::judge;
use crate::prometheus::Reading;
use rackmath_spec::SpecError;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long counters are given to catch up after the last answer.
const SETTLE: Duration = Duration::from_secs(3);

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Plan {
    pub arrivals: Arrivals,
    pub lengths: Lengths,
    pub sharing: Sharing,
    /// First turns.
    pub requests: usize,
    pub until_s: Option<f64>,
    pub ceiling: Ceiling,
    pub targets: Targets,
    pub seed: u64,
    /// What may be kept of requests, in bytes ([`KEPT_BYTES`](super::KEPT_BYTES)).
    pub keep: usize,
}

impl Plan {
    pub fn schedule(&self) -> Result<Schedule, SpecError> {
        drawn(&self.arrivals, self.lengths, self.sharing, self.requests, self.seed)
    }
}

/// A server that was found.
pub struct Server {
    pub client: Arc<Client>,
    pub found: Found,
    pub writing: Writing,
}

/// A run and what the server itself counted meanwhile.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    #[serde(flatten)]
    pub summary: Summary,
    pub counters: Option<Counters>,
    #[serde(skip)]
    pub records: Vec<Record>,
}

/// Differences of the server's own counters over the run; absent where it does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Counters {
    pub requests: Option<f64>,
    pub input_tokens: Option<f64>,
    pub output_tokens: Option<f64>,
    pub cached_tokens: Option<f64>,
    /// Seconds: means over the run, as the server saw them.
    pub ttft: Option<f64>,
    pub tpot: Option<f64>,
    pub queue: Option<f64>,
    pub preempted: Option<f64>,
    /// Tokens that a pass of speculative decoding drafted and kept, for each sequence.
    pub drafted: Option<f64>,
    pub accepted: Option<f64>,
    pub steps: Option<f64>,
}

impl Counters {
    pub fn between(before: &Reading, after: &Reading) -> Self {
        let grown = |pick: fn(&Reading) -> Option<f64>| Some(pick(after)? - pick(before)?).filter(|d| *d >= 0.0);
        let mean = |pick: fn(&Reading) -> Option<(f64, f64)>| {
            let ((s1, n1), (s0, n0)) = (pick(after)?, pick(before)?);
            (n1 > n0).then(|| (s1 - s0) / (n1 - n0))
        };
        let per_draft = |pick: fn(&Reading) -> Option<f64>| {
            let drafts = grown(|r| r.drafts).filter(|d| *d > 0.0)?;
            Some(grown(pick)? / drafts)
        };
        Self {
            requests: grown(|r| r.finished),
            input_tokens: grown(Reading::prompts),
            output_tokens: grown(|r| r.output_tokens),
            cached_tokens: grown(|r| r.hits),
            ttft: mean(|r| r.ttft),
            tpot: mean(|r| r.tpot),
            queue: mean(|r| r.queue),
            preempted: grown(|r| r.preempted),
            drafted: per_draft(|r| r.drafted),
            accepted: per_draft(|r| r.accepted),
            steps: grown(|r| r.steps),
        }
    }
}

/// That a server does not answer, and what was expected there.
pub fn no_answer(client: &Client, fault: &Fault) -> SpecError {
    let hint = match fault {
        Fault::Tls(_) => {
            "expected TLS with a certificate for that host from an authority that is trusted: --ca FILE names another, http:// goes without"
        }
        _ => "expected an OpenAI-compatible server there: /v1/models, /v1/completions",
    };
    SpecError::said(format!("{}: {fault}", client.target)).hint(hint)
}

impl Server {
    /// Asks what runs there and how prompts are to be written.
    pub fn find(client: Client, model: Option<&str>, endpoint: Option<Endpoint>, seed: u64) -> Result<Self, SpecError> {
        let runtime = runtime().map_err(|e| SpecError::said(e.to_string()))?;
        let found = runtime.block_on(discovered(&client, model)).map_err(|fault| no_answer(&client, &fault))?;
        if found.model.is_empty() {
            return Err(SpecError::said(format!("{} does not say which model it serves", client.target))
                .hint("expected its name: --served-model-name NAME"));
        }
        let writing =
            runtime.block_on(writing(&client, &found, endpoint, seed)).map_err(|fault| no_answer(&client, &fault))?;
        Ok(Self { client: Arc::new(client), found, writing })
    }

    /// Sends `n` requests of the plan's lengths at once and forgets them: graphs, caches and connections are made. How many were answered.
    pub fn warm(&self, plan: &Plan, n: usize, stop: &Stop) -> Result<u64, SpecError> {
        if n == 0 {
            return Ok(0);
        }
        let short = Lengths { output: plan.lengths.output.min(16), ..plan.lengths };
        let warm = Plan {
            arrivals: Arrivals::Closed { concurrency: n.min(64) },
            lengths: short,
            requests: n,
            // Prompts of their own: what they leave in a cache helps nobody.
            seed: plan.seed ^ 0x57a2,
            sharing: Sharing { turns: 1, ..plan.sharing },
            ..plan.clone()
        };
        let mut load = self.load(&warm, warm.schedule()?);
        load.writing.seed ^= 0x57a2;
        let run = run(&self.client, &load, stop).map_err(|e| SpecError::said(e.to_string()))?;
        Ok(summary(&run, &Targets::default()).counts.answered)
    }

    fn load(&self, plan: &Plan, schedule: Schedule) -> Load {
        Load {
            arrivals: plan.arrivals.clone(),
            schedule,
            writing: self.writing.clone(),
            ceiling: plan.ceiling,
            until_s: plan.until_s,
            keep: plan.keep,
        }
    }

    /// Loads the server and compares the counts.
    pub fn measure(&self, plan: &Plan, schedule: Schedule, stop: &Stop) -> Result<Measured, SpecError> {
        let wrong = |e: std::io::Error| SpecError::said(e.to_string());
        let runtime = runtime().map_err(wrong)?;
        let reading = || runtime.block_on(scraped(&self.client)).and_then(|s| Reading::of(&s));
        let before = if self.found.metrics { reading() } else { None };
        let run = run(&self.client, &self.load(plan, schedule), stop).map_err(wrong)?;
        let summary = summary(&run, &plan.targets);
        let counters = before.and_then(|before| {
            let (wanted, from) = (summary.counts.output_tokens as f64, Instant::now());
            loop {
                let counters = Counters::between(&before, &reading()?);
                let there = counters.output_tokens.is_none_or(|n| n >= wanted)
                    && counters.requests.is_none_or(|n| n >= summary.counts.answered as f64);
                if there || from.elapsed() > SETTLE || stop.stopped() {
                    return Some(counters);
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        Ok(Measured { summary, counters, records: run.log.records })
    }

    /// Rates one after the other until one does not hold. Those measured are handed to `tell` as they come.
    pub fn ladder(
        &self,
        plan: &Plan,
        rates: &[f64],
        seconds: f64,
        stop: &Stop,
        mut tell: impl FnMut(&Step),
    ) -> Result<Vec<Step>, SpecError> {
        let mut steps = Vec::new();
        for (i, rate) in rates.iter().enumerate() {
            let cv = match plan.arrivals {
                Arrivals::Open { cv, .. } => cv,
                _ => 1.0,
            };
            let requests = ((rate * seconds).ceil() as usize).max(10);
            let at = Plan {
                arrivals: Arrivals::Open { rate: *rate, cv },
                requests,
                seed: plan.seed.wrapping_add(i as u64),
                ..plan.clone()
            };
            let measured = self.measure(&at, at.schedule()?, stop)?;
            let step = Step { rate: *rate, measured };
            tell(&step);
            let end = !step.holds() || step.measured.summary.ended != Ended::Complete;
            steps.push(Step { measured: Measured { records: Vec::new(), ..step.measured }, ..step });
            if end {
                break;
            }
        }
        Ok(steps)
    }
}

/// A rung of the ladder.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    pub rate: f64,
    pub measured: Measured,
}

impl Step {
    /// Whether what was offered was served, without a growing queue, and within the targets where there are any.
    pub fn holds(&self) -> bool {
        let s = &self.measured.summary;
        let served = s.counts.answered as f64 >= judge::HOLDS * s.counts.asked as f64
            && s.requests_per_s >= judge::HOLDS * s.offered_per_s * (1.0 - 1.0 / s.window.lengths.max(2.0));
        served && !s.grows && s.good.is_none_or(|(share, _)| share >= judge::HOLDS)
    }
}

/// The highest rate that held, and the first that did not.
pub fn knee(steps: &[Step]) -> (Option<f64>, Option<f64>) {
    let held = steps.iter().filter(|s| s.holds()).map(|s| s.rate).reduce(f64::max);
    (held, steps.iter().find(|s| !s.holds()).map(|s| s.rate))
}
