//! Replicas that do not see each other, in parts on several threads.
//!
//! Every part meets all requests and routes them as the whole would, but only its own replicas take theirs. What is kept of a
//! run adds up, so the parts merge to the bytes of the undivided run.

use super::Cluster;
use crate::clock::Clock;
use crate::tally::Tally;
use crate::workload::Source;
use rackmath_units::{Cancelled, Effort};

/// Requests of a run beyond which it is not parted: a part keeps the times of every batch it has a share of until all parts are
/// done, some 50 bytes a request, where the whole keeps those of a batch only while it is under way.
const MOST: u64 = 10_000_000;

impl<C: Clock> Cluster<C> {
    /// Whether nothing that happens to one replica is seen by another or by the source of requests; a replica alone does not
    /// split.
    pub fn splits(&self, source: &impl Source) -> bool {
        self.open.len() > 1 && !self.careful && !self.router.looks() && !source.waits()
    }

    /// Whether another part has a replica.
    pub(super) fn elsewhere(&self, at: usize) -> bool {
        self.elsewhere.get(at).copied().unwrap_or(false)
    }

    /// This part of the cluster, of so many: every so many-th replica, with all its groups.
    fn part(mut self, nth: usize, of: usize) -> Self {
        self.elsewhere = vec![true; self.replicas.len()];
        for at in self.open.iter().copied().skip(nth).step_by(of) {
            let groups = self.groups(at);
            self.elsewhere[groups].fill(false);
        }
        self
    }
}

impl<C: Clock + Clone + Send> Cluster<C> {
    /// As [`Self::run`], on as many threads as are granted where the cluster splits, no window of steps is kept and the run is not
    /// too long.
    pub fn run_apart<S>(&mut self, source: &mut S, tally: &mut Tally, effort: &Effort) -> Result<(), Cancelled>
    where
        S: Source + Clone + Send,
    {
        let n = effort.threads.min(self.open.len());
        if n <= 1 || tally.window.is_some() || tally.requests() > MOST || !self.splits(source) {
            return self.run(source, tally, effort);
        }
        let alone = &effort.alone();
        let ran: Vec<_> = std::thread::scope(|scope| {
            let spawn = |nth| {
                let (mut part, mut source, mut tally) = (self.clone().part(nth, n), source.clone(), tally.clone());
                scope.spawn(move || {
                    let done = part.run(&mut source, &mut tally, alone);
                    (part, source, tally, done)
                })
            };
            let all: Vec<_> = (0..n).map(spawn).collect();
            all.into_iter().map(|t| t.join().expect("a run does not panic")).collect()
        });
        let mut all = Ok(());
        for (nth, (part, met, its, done)) in ran.into_iter().enumerate() {
            all = all.and(done);
            self.incidents.arrived += part.incidents.arrived;
            for (at, replica) in part.replicas.into_iter().enumerate().filter(|(at, _)| !part.elsewhere[*at]) {
                self.replicas[at] = replica;
            }
            // Every part met all requests.
            if nth == 0 { (*source, *tally) = (met, its) } else { tally.merge(&its) }
        }
        self.close(tally.last_finish);
        all
    }
}
