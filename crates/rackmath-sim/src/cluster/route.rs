//! How a replica is chosen.

use super::Cluster;
use crate::Ns;
use crate::blocks::{Quickly, Segment};
use crate::clock::Clock;
use crate::workload::Job;
use rackmath_units::Chance;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use strum::Display;

/// How a replica is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Router {
    /// In turn.
    RoundRobin,
    /// At random.
    Random,
    /// Over connections that clients keep: the first that is idle, else a new one to a replica at random, as behind a Kubernetes
    /// Service.
    Connections,
    /// The less loaded of two at random.
    TwoChoices,
    /// The one with the fewest requests inside.
    LeastLoaded,
    /// All of a session to one.
    Session,
    /// By the shared prefix.
    PrefixHash,
    /// By the shared prefix, where not many more than the mean are inside.
    BoundedHash,
    /// By what is cached and held there: the cost NVIDIA Dynamo's router gives a worker.
    Kv,
    /// By the longest match where loads are even, as SGLang's gateway does.
    CacheAware,
    /// By llm-d's weighted scores of prefix, queue and cache.
    Scored,
}

/// By what routers weigh replicas. As it is made: loads are never uneven, every match counts, all weighs the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Requests inside over their mean beyond which a hash gives way.
    pub bound: f64,
    /// Leading tokens that a prefix is known by.
    pub prefix_tokens: u32,
    /// Loads are uneven when they differ by more requests than the first, and more times than the second.
    pub uneven: (u64, f64),
    /// Share of a prompt from which on a match counts.
    pub matched: f64,
    /// Of prefix, queue and use of the cache.
    pub scores: [f64; 3],
    /// Blocks to compute that a found block is worth.
    pub credit: f64,
    /// How long a connection is kept that nobody uses.
    pub keep: Ns,
}

impl Default for Weights {
    fn default() -> Self {
        let uneven = (u64::MAX, f64::INFINITY);
        Self {
            bound: f64::INFINITY,
            prefix_tokens: 1,
            uneven,
            matched: 0.0,
            scores: [1.0; 3],
            credit: 1.0,
            keep: Ns::MAX,
        }
    }
}

impl Router {
    /// Whether it looks at the replicas.
    pub fn looks(self) -> bool {
        match self {
            Self::RoundRobin | Self::Random | Self::Session | Self::PrefixHash => false,
            Self::Connections | Self::TwoChoices | Self::LeastLoaded | Self::BoundedHash => true,
            Self::Kv | Self::CacheAware | Self::Scored => true,
        }
    }
}

/// The connections of all clients, numbered as they were opened.
#[derive(Clone, Debug, Default)]
pub(super) struct Connections {
    opened: u64,
    /// Number and replica, by request.
    busy: HashMap<u64, (u64, usize), Quickly>,
    /// Replica and since when, by number.
    idle: BTreeMap<u64, (usize, Ns)>,
}

impl Connections {
    /// An answer has ended.
    pub(super) fn free(&mut self, id: u64, at: Ns) {
        if let Some((number, replica)) = self.busy.remove(&id) {
            self.idle.insert(number, (replica, at));
        }
    }

    /// A request was given up, its connection closed.
    pub(super) fn close(&mut self, id: u64) {
        self.busy.remove(&id);
    }

    /// Closes what was not used for so long, or goes to a replica that takes nothing; then the first that is idle.
    fn take(&mut self, now: Ns, keep: Ns, open: &[usize]) -> Option<(u64, usize)> {
        self.idle.retain(|_, (replica, since)| now.saturating_sub(*since) <= keep && open.contains(replica));
        let (number, (replica, _)) = self.idle.iter().find(|(_, (_, since))| *since <= now).map(|(n, c)| (*n, *c))?;
        self.idle.remove(&number);
        Some((number, replica))
    }
}

/// What a router sees of a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Seen {
    inside: u64,
    waiting: u64,
    /// Prompt tokens not scheduled.
    queued: u64,
    held: u32,
}

impl<C: Clock> Cluster<C> {
    fn seen_now(&self, at: usize) -> Seen {
        self.groups(at).fold(Seen::default(), |seen, at| {
            let r = &self.replicas[at];
            Seen {
                inside: seen.inside + self.inside[at],
                waiting: seen.waiting + r.waiting() as u64,
                queued: seen.queued + r.queued(),
                held: seen.held + r.engine.used(),
            }
        })
    }

    fn seen(&self, at: usize) -> Seen {
        if self.stale > 0 { self.view[at] } else { self.seen_now(at) }
    }

    fn load(&self, at: usize) -> u64 {
        if self.stale > 0 { self.view[at].inside } else { self.groups(at).map(|at| self.inside[at]).sum() }
    }

    /// One of the replicas that take requests; none where there is none.
    pub(super) fn choose(&mut self, job: &Job, now: Ns) -> Option<usize> {
        let n = self.open.len();
        if n <= 1 {
            return self.open.first().copied();
        }
        if self.router.looks() && self.stale > 0 && self.viewed != Some(now / self.stale) {
            self.viewed = Some(now / self.stale);
            for at in 0..self.replicas.len() {
                self.view[at] = self.seen_now(at);
            }
        }
        let mut chance = Chance::new(self.seed ^ job.id.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ 0x5851_f42d);
        let open = &self.open;
        let place = match self.router {
            Router::RoundRobin => {
                self.turn = (self.turn + 1) % n;
                (self.turn + n - 1) % n
            }
            Router::Random => chance.below(n as u64) as usize,
            Router::Session => (Chance::new(self.seed ^ job.session).bits() % n as u64) as usize,
            Router::PrefixHash => (Chance::new(self.seed ^ self.key(job)).bits() % n as u64) as usize,
            Router::BoundedHash => self.bounded(self.key(job)),
            Router::TwoChoices => {
                let a = chance.below(n as u64) as usize;
                let b = (a + 1 + chance.below(n as u64 - 1) as usize) % n;
                if self.load(open[b]) < self.load(open[a]) { b } else { a }
            }
            Router::LeastLoaded => (0..n).min_by_key(|i| self.load(open[*i]))?,
            Router::Connections => {
                let (number, at) = self.connections.take(now, self.weights.keep, open).unwrap_or_else(|| {
                    self.connections.opened += 1;
                    (self.connections.opened, open[chance.below(n as u64) as usize])
                });
                self.connections.busy.insert(job.id, (number, at));
                return Some(at);
            }
            Router::CacheAware => self.cache_aware(job),
            Router::Kv => self.cheapest(&mut chance, |at| self.kv_cost(at, job)),
            Router::Scored => self.scored(job, &mut chance),
        };
        let at = open[place];
        if self.router == Router::CacheAware {
            self.sent[at] += u64::from(job.prompt - self.found(at, job));
        }
        Some(at)
    }

    /// The cheapest, one of equals at random.
    fn cheapest(&self, chance: &mut Chance, cost: impl Fn(usize) -> f64) -> usize {
        let costs: Vec<f64> = self.open.iter().map(|at| cost(*at)).collect();
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let ties: Vec<usize> = (0..costs.len()).filter(|i| costs[*i] <= least).collect();
        ties[chance.below(ties.len() as u64) as usize]
    }

    /// Prompt tokens cached there, in one of its groups; seen as they are, however old the view of loads is.
    fn found(&self, at: usize, job: &Job) -> u32 {
        let one = |at: usize| self.replicas[at].engine.probe(0, &job.content, job.prompt - 1);
        self.groups(at).map(one).max().unwrap_or(0)
    }

    /// Blocks of prompts to compute there, less what is cached, and blocks held there with this request.
    fn kv_cost(&self, at: usize, job: &Job) -> f64 {
        let seen = self.seen(at);
        let size = f64::from(self.replicas[at].engine.block());
        let found = f64::from(self.found(at, job)) / size;
        let prompt = (f64::from(job.prompt) + seen.queued as f64) / size;
        let held = f64::from(seen.held) + f64::from(job.prompt) / size;
        (prompt - self.weights.credit * found).max(0.0) + held
    }

    /// What a prefix is known by: its content where it is shared, the request where it is its own.
    fn key(&self, job: &Job) -> u64 {
        let shared = |s: &&Segment| s.tokens >= self.weights.prefix_tokens.min(job.prompt);
        job.content.first().filter(shared).map_or(job.id, |s| s.stream)
    }

    /// The first in the key's own order of replicas that is not too full; an order changes only where a replica comes or goes.
    fn bounded(&self, key: u64) -> usize {
        let n = self.open.len();
        let total: u64 = self.open.iter().map(|at| self.load(*at)).sum();
        let most = (self.weights.bound * (total + 1) as f64 / n as f64).ceil() as u64;
        let rank = |i: &usize| Chance::new(self.seed ^ key ^ (self.open[*i] as u64).wrapping_mul(0x9e37_79b9)).bits();
        let able = (0..n).filter(|i| self.load(self.open[*i]) < most);
        able.max_by_key(rank).unwrap_or(0)
    }

    fn cache_aware(&self, job: &Job) -> usize {
        let n = self.open.len();
        let load = |i: usize| self.load(self.open[i]);
        let least = (0..n).min_by_key(|i| load(*i)).unwrap_or(0);
        let (low, high) = (load(least), (0..n).map(load).max().unwrap_or(0));
        let (apart, times) = self.weights.uneven;
        if high - low > apart && high as f64 > times * low as f64 {
            return least;
        }
        let found = |i: usize| self.found(self.open[i], job);
        // Of equals the first.
        let best = (0..n).rev().max_by_key(|i| found(*i)).unwrap_or(0);
        if f64::from(found(best)) > self.weights.matched * f64::from(job.prompt) {
            return best;
        }
        (0..n).min_by_key(|i| self.sent[self.open[*i]]).unwrap_or(0)
    }

    fn scored(&self, job: &Job, chance: &mut Chance) -> usize {
        let [by_prefix, by_queue, by_use] = self.weights.scores;
        let queues = || self.open.iter().map(|at| self.seen(*at).waiting);
        let (low, high) = (queues().min().unwrap_or(0), queues().max().unwrap_or(0));
        self.cheapest(chance, |at| {
            let seen = self.seen(at);
            let prefix = f64::from(self.found(at, job)) / f64::from(job.prompt);
            let queue = if high > low { (high - seen.waiting) as f64 / (high - low) as f64 } else { 1.0 };
            let used = f64::from(seen.held)
                / f64::from(self.groups(at).map(|at| self.replicas[at].engine.usable()).sum::<u32>().max(1));
            -(by_prefix * prefix + by_queue * queue + by_use * (1.0 - used))
        })
    }
}
