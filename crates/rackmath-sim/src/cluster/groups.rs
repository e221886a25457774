//! Replicas of several attention groups: which group a request goes to.

use super::Cluster;
use crate::Ns;
use crate::clock::Clock;
use crate::engine::Engine;
use crate::replica::{Bundle, Lockstep};
use std::ops::Range;

/// How a replica deals requests to its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deal {
    InTurn,
    /// To the group with the least, of equals the first: those that run, and so many times those that wait. Counts come after
    /// such a time; what was sent since then is counted as waiting.
    Load {
        waiting: u64,
        report: Ns,
    },
}

/// The attention groups of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    pub n: usize,
    pub steps: Lockstep,
    pub deal: Deal,
}

/// The groups of one replica, which follow each other among the replicas of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) bundle: Bundle,
    first: usize,
    n: usize,
    deal: Deal,
    turn: usize,
    /// Requests that wait and that run, by group, as last reported, and when that was.
    counts: Vec<(u64, u64)>,
    reported: Option<Ns>,
}

impl Set {
    fn next<'a>(&mut self, now: Ns, groups: impl Iterator<Item = &'a Engine>) -> usize {
        let Deal::Load { waiting, report } = self.deal else {
            self.turn = (self.turn + 1) % self.n;
            return (self.turn + self.n - 1) % self.n;
        };
        let period = now.checked_div(report).unwrap_or(now);
        if report == 0 || self.reported != Some(period) {
            self.reported = Some(period);
            self.counts.clear();
            self.counts.extend(groups.map(|g| (g.waiting() as u64, g.running() as u64)));
        }
        let score = |at: &usize| self.counts[*at].0 * waiting + self.counts[*at].1;
        let at = (0..self.n).min_by_key(score).unwrap_or(0);
        self.counts[at].0 += 1;
        at
    }
}

impl<C: Clock> Cluster<C> {
    /// The replicas of a kind are groups that take their steps together, so many to a replica.
    #[must_use]
    pub fn grouped(mut self, kind: usize, groups: Groups) -> Self {
        let all: Vec<usize> = (0..self.replicas.len()).filter(|at| self.clock_of[*at] == kind).collect();
        for set in all.chunks_exact(groups.n) {
            for at in set {
                self.set_of[*at] = Some(self.sets.len());
            }
            let (bundle, counts) = (Bundle::new(groups.steps), vec![(0, 0); groups.n]);
            let Groups { n, deal, .. } = groups;
            self.sets.push(Set { bundle, first: set[0], n, deal, turn: 0, counts, reported: None });
        }
        self.reopen();
        self
    }

    /// The groups of the replica that one belongs to.
    pub(super) fn groups(&self, at: usize) -> Range<usize> {
        self.set_of[at].map_or(at..at + 1, |set| self.sets[set].first..self.sets[set].first + self.sets[set].n)
    }

    /// Whether it is a replica, or the first of its groups.
    pub(super) fn leads(&self, at: usize) -> bool {
        self.groups(at).start == at
    }

    /// The group that takes the next request; all that was before it has happened.
    pub(super) fn deal(&mut self, at: usize, now: Ns) -> usize {
        let Some(set) = self.set_of[at] else { return at };
        let first = self.sets[set].first;
        let groups = self.replicas[self.groups(at)].iter().map(|g| &g.engine);
        first + self.sets[set].next(now, groups)
    }
}
