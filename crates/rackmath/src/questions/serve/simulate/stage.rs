//! A deployment on the stage: one replica with all its pools, instances and groups under its traffic, for questions that ask
//! what users meet and no more.
//!
//! Times are those that load generators report: to first token from arrival to the first token; per output token what lies
//! between the first and the last, over the tokens after the first; between tokens each of their gaps; of the whole request
//! from arrival to the last token. Requests that fill the replica and those that leave it do not count.

use super::answer::grows;
use super::card::What;
use super::fleet::{setup, together};
use crate::desk::prelude::*;
use rackmath_sim::blocks::Segment;
use rackmath_sim::clock::Timed;
use rackmath_sim::cluster::{Cluster, Link, Router};
use rackmath_sim::tally::{Histogram, Keep, Limits, Outcome, Series, Tally};
use rackmath_sim::workload::{Arrivals, Drawn, Job, Length, Sharing, Source, Traffic};
use rackmath_sim::{Ns, engine};
use rackmath_theory::deployment::Ready;
use rackmath_theory::timer::Slower;

/// Seed of what is drawn, unless given.
pub(crate) const SEED: u64 = 42;

/// Requests of a run that count where a server is nearly full: a queue that fills up once in a while and then never empties again is
/// missed by shorter ones.
pub(crate) const SETTLED: u64 = 10_000;
const BATCHES: u64 = 32;

/// What users meet, request by request.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Percentiles {
    /// Simulated requests that count.
    pub requests: u64,
    /// Seed of everything drawn.
    pub seed: u64,
    /// Times by metric, as load generators define them.
    pub times: Vec<Times>,
    /// Share of the requests that meet all limits on times, where there are some.
    pub goodput: Option<f64>,
    /// Whether more comes than is served.
    pub queue_grows: bool,
}

/// Times of one kind, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Times {
    /// Which.
    pub metric: What,
    /// The limit.
    pub limit_ms: Option<f64>,
    /// The percentile it is on; the mean where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentile: Option<f64>,
    /// That percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentile_ms: Option<f64>,
    /// Mean.
    pub mean_ms: f64,
    /// Half of the requests are below it.
    pub p50_ms: f64,
    /// 90 % are below it.
    pub p90_ms: f64,
    /// 99 % are below it.
    pub p99_ms: f64,
}

impl Times {
    fn of(metric: What, values: &mut Series, limit: Option<AtMost>) -> Option<Self> {
        let mean_ms = values.mean()? / 1e6;
        let asked = limit.and_then(|l| l.percentile);
        let found = values.percentiles(&[0.5, 0.9, 0.99, asked.unwrap_or(50.0) / 100.0]);
        let [p50_ms, p90_ms, p99_ms, at] = [0, 1, 2, 3].map(|i| found[i].unwrap_or(0.0) / 1e6);
        let (limit_ms, percentile_ms) = (limit.map(|l| l.ms), asked.map(|_| at));
        Some(Self { metric, limit_ms, percentile: asked, percentile_ms, mean_ms, p50_ms, p90_ms, p99_ms })
    }

    fn between(gaps: &Histogram) -> Option<Self> {
        let [p50_ms, p90_ms, p99_ms] = [0.5, 0.9, 0.99].map(|p| gaps.percentile(p).unwrap_or(0.0) / 1e6);
        let (metric, mean_ms) = (What::Itl, gaps.mean()? / 1e6);
        let free =
            Self { metric, limit_ms: None, percentile: None, percentile_ms: None, mean_ms, p50_ms, p90_ms, p99_ms };
        Some(free)
    }

    /// A time over the limit; nothing without one.
    pub(crate) fn over(&self, time: impl Fn(&Self) -> f64) -> f64 {
        self.limit_ms.map_or(0.0, |limit| time(self) / limit)
    }

    /// What the limit is on.
    pub(crate) fn limited_ms(&self) -> f64 {
        self.percentile_ms.unwrap_or(self.mean_ms)
    }
}

impl Percentiles {
    pub(crate) fn of(&self, metric: What) -> Option<&Times> {
        self.times.iter().find(|t| t.metric == metric)
    }

    /// Whether every limit holds at what it is on.
    pub(crate) fn hold(&self) -> bool {
        !self.queue_grows && self.times.iter().all(|t| t.over(Times::limited_ms) <= 1.0)
    }
}

/// What comes to a replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Comes {
    /// Requests at random, in turn to so many replicas: each sees gaps of a gamma law of as many parts.
    Open { rate: f64, replicas: u64 },
    /// Users of a replica, who each wait for an answer, think so many seconds and ask again.
    Users { users: u64, think: f64 },
}

/// A pool that is ready to run.
pub(crate) struct Pool {
    pub ready: Ready,
    pub settings: engine::Settings,
    pub engines: usize,
}

/// A replica, and what is asked of its run.
pub(crate) struct Stage<'a> {
    /// The pool of prompts where there is one, and the other.
    pub pools: Vec<Pool>,
    /// Seconds to send a prompt's cache, per token.
    pub send: f64,
    /// How many times as long everything takes as it is predicted to.
    pub slower: f64,
    /// Share of each prompt that is found in the cache.
    pub cached: f64,
    /// Of prompts and of answers.
    pub lengths: [Length; 2],
    pub longest: u32,
    /// Chance that a draft is accepted, where there are drafts.
    pub accepted: Option<f64>,
    /// Requests in flight in a replica.
    pub inside: u64,
    /// On the first token, on a token, on the whole.
    pub limits: [Option<AtMost>; 3],
    pub requests: u64,
    pub seed: u64,
    pub effort: &'a Effort,
}

/// Requests by a law, that share of each prompt which is taken for cached, and the first users met at any point of their
/// answers.
struct Coming {
    drawn: Drawn,
    cached: f64,
    users: u64,
}

impl Source for Coming {
    fn next(&mut self) -> Option<Ns> {
        self.drawn.next()
    }

    fn take(&mut self) -> Option<Job> {
        let mut job = self.drawn.take()?;
        if job.id < self.users {
            job.output = ((u64::from(job.output) * (job.id + 1)).div_ceil(self.users) as u32).max(1);
        }
        if self.cached > 0.0 {
            job.content = vec![Segment { stream: 0, offset: 0, tokens: (f64::from(job.prompt) * self.cached) as u32 }];
        }
        Some(job)
    }

    fn done(&mut self, id: u64, at: Ns) {
        self.drawn.done(id, at);
    }

    fn waits(&self) -> bool {
        self.drawn.waits()
    }
}

/// Mean waits of [`BATCHES`] parts of so many requests, in order: until they are scheduled, or until a second pool has room for their caches.
fn waits<'a>(all: impl Iterator<Item = &'a Outcome>, wait: fn(&Outcome) -> Ns) -> Vec<f64> {
    let all: Vec<f64> = all.map(|o| wait(o) as f64).collect();
    let part = all.len().div_ceil(BATCHES as usize).max(1);
    all.chunks(part).map(|part| part.iter().sum::<f64>() / part.len() as f64).collect()
}

impl Stage<'_> {
    pub(crate) fn run(&self, comes: Comes) -> Result<Percentiles, Error> {
        let (arrivals, users, thinking) = match comes {
            Comes::Open { rate, replicas } => {
                let n = replicas as f64;
                (Arrivals::Open { rate: rate / n, cv: n.sqrt().recip() }, 0, false)
            }
            Comes::Users { users, think } => (Arrivals::Users { users, think_s: think }, users, think > 0.0),
        };
        let Self { requests, seed, .. } = *self;
        // Until the replica is as full as it will be, and while it empties, requests do not count.
        // Users who think all come within one time to think, twice as many as later on: that is over after three rounds.
        let inside = self.inside.max(users);
        let warm = (requests / 10).max(2 * self.inside).max(if thinking { 3 * users } else { 2 * users });
        let [input, output] = self.lengths.clone();
        let (sharing, longest) = (Sharing::default(), self.longest);
        let traffic = Traffic { arrivals, input, output, sharing, requests: warm + requests + inside, seed, longest };
        let mut source = Coming { drawn: Drawn::new(traffic), cached: self.cached, users };
        let kinds = self
            .pools
            .iter()
            .map(|p| (p.settings.clone(), p.engines, Timed::new(Slower { timer: &*p.ready.pass, by: self.slower })));
        let mut cluster = Cluster::mixed(kinds.collect(), Router::RoundRobin, seed, true);
        for (kind, pool) in self.pools.iter().enumerate() {
            if let Some(groups) = together(&pool.ready.deployment) {
                cluster = cluster.grouped(kind, groups);
            }
        }
        if let [prompts, _] = &*self.pools {
            let send = self.send * self.slower;
            let link = Link::new(move |tokens| (f64::from(tokens) * send * 1e9) as Ns);
            cluster = cluster.sending(prompts.engines, link.beside(setup(&prompts.ready.deployment)));
        }
        if let Some(chance) = self.accepted {
            cluster = cluster.accepting(chance);
        }
        let outside = self.pools.first().map_or(Seconds::ZERO, |p| p.ready.deployment.overhead().request);
        let outside = (outside.get() * 1e9) as Ns;
        // All are kept, so that those at the end can be left out; gaps between tokens count from the first that does.
        let mut all = Tally::new(Keep { warm, outside, each: true, ..Keep::default() });
        cluster.run(&mut source, &mut all, self.effort)?;
        let [ttft, tpot, e2e] = self.limits.map(|l| l.map(|l| (l.ms * 1e6) as Ns));
        let limits = Limits { ttft, tpot, e2e };
        let keep = Keep { warm, requests, batches: BATCHES, limits, outside, each: false, worst: 0 };
        let (mut tally, mut each) = (Tally::new(keep), all.each);
        each.sort_unstable_by_key(|o| o.id);
        // A queue that grew before anybody counted is long and hardly grows by the part since.
        let all_waits = |wait| waits(each.iter().filter(|o| o.id < warm + requests), wait);
        let [whole, sent] =
            if users == 0 { [all_waits(|o| o.queue), all_waits(|o| o.transfer)] } else { [vec![], vec![]] };
        each.retain(|o| (warm..warm + requests).contains(&o.id));
        for o in &each {
            tally.outcome(*o, o.arrival + o.e2e());
        }
        let queues: Vec<f64> = tally.samples_of(&tally.samples);
        let e2e = tally.e2e.mean().unwrap_or(0.0);
        let queue_grows = [queues, whole, sent].iter().any(|queues| grows(queues, e2e).is_some());
        let [ttft, tpot, e2e] = self.limits;
        let times = [
            Times::of(What::Queue, &mut tally.queue, None),
            Times::of(What::Ttft, &mut tally.ttft, ttft),
            Times::of(What::Tpot, &mut tally.tpot, tpot),
            Times::between(&all.gaps),
            Times::of(What::E2e, &mut tally.e2e, e2e),
        ];
        let limited = self.limits.iter().any(Option::is_some);
        Ok(Percentiles {
            requests,
            seed,
            times: times.into_iter().flatten().collect(),
            goodput: limited.then(|| tally.met as f64 / tally.measured.max(1) as f64),
            queue_grows,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue that has grown to ten minutes hardly grows by the last tenth of a run, and is seen over the whole of it; one that is as long
    /// all the time is not said to grow.
    #[test]
    fn a_queue_that_grew_while_nobody_counted_is_a_growing_queue() {
        let outcome = |id: u64, queue: f64| Outcome { id, queue: (queue * 1e9) as Ns, ..Outcome::default() };
        let e2e = 660e9;
        let growing: Vec<Outcome> = (0..6400).map(|id| outcome(id, id as f64 / 10.0)).collect();
        assert!(grows(&waits(growing[5760..].iter(), |o| o.queue), e2e).is_none());
        assert!(grows(&waits(growing.iter(), |o| o.queue), e2e).is_some());
        let steady: Vec<Outcome> = (0..6400).map(|id| outcome(id, 600.0 + (id * 7 % 13) as f64)).collect();
        assert!(grows(&waits(steady.iter(), |o| o.queue), e2e).is_none());
    }
}
