//! What tests of paces share.

use rackmath_sim::Ns;
use rackmath_sim::clock::Stretch;
use rackmath_sim::engine::Sequence;
use rackmath_sim::replica::Sink;
use rackmath_theory::timer::{Cost, HostTime, Limit, Part, StepTimer, Work};
use rackmath_units::Seconds;
use std::collections::BTreeMap;

/// Name, first scheduled, first token, end, stalled; evictions, tokens computed again, tokens found.
pub type Done = (u64, Ns, Ns, Ns, Ns, u32, u32, u32);

/// What is told of a run, however its steps are taken: who ended when, in this order, and the waits for tokens.
#[derive(Debug, Default, PartialEq)]
pub struct Told {
    pub finished: Vec<Done>,
    pub gaps: BTreeMap<i64, u64>,
    /// Stretches of several steps.
    pub leaps: u64,
}

impl Sink for Told {
    fn finished(&mut self, s: &Sequence, at: Ns, stalled: Ns) {
        self.finished.push((s.id, s.first_scheduled, s.first_token, at, stalled, s.preempted, s.recomputed, s.cached));
    }

    fn gaps(&mut self, _: Ns, steps: Stretch, sequences: u32) {
        self.leaps += u64::from(steps.steps > 1);
        for k in 0..steps.steps {
            *self.gaps.entry(steps.at(k)).or_default() += u64::from(sequences);
        }
    }
}

/// A timer that is not a straight line in anything.
pub struct Crooked;

impl StepTimer for Crooked {
    type Uncovered = std::convert::Infallible;

    fn time(&self, work: &Work) -> Result<Cost, Self::Uncovered> {
        let context: f64 = work.decodes.iter().map(|d| d.sequences * d.context).sum();
        let area: f64 = work.chunks.iter().map(|c| c.tokens * (c.past + c.tokens / 2.0)).sum();
        let time = 4e-3 + 13e-6 * work.rows() + 1.7e-8 * context + 3e-7 * context.sqrt() + 1e-10 * area;
        Ok(Cost::of(Part::Products, Limit::Memory, Seconds::s(time)))
    }

    fn host(&self, work: &Work) -> HostTime {
        let (prepare, choose) = (Seconds::s(1.9e-3), Seconds::s(0.3e-3 + 11e-6 * work.sequences()));
        let launch = Seconds::s(if work.rows() > 200.0 { 11e-3 } else { 3e-3 });
        HostTime { prepare, launch, varies: Seconds::s(1e-3), choose, hand: choose }
    }
}
