//! A deployment from one request in flight to as many as it takes: what binds on the way, and what ends it.

use super::answer;
use super::worked::Worked;
use rackmath_theory::plan::{Bound, Configuration, Estimate, Ranked};

/// One step of concurrency.
pub(crate) struct Rung {
    /// Requests in flight in one attention group.
    pub concurrency: f64,
    /// What it does then.
    pub estimate: Estimate,
    /// Limits on what users see that it breaks, in words.
    pub broken: Vec<String>,
}

impl Worked {
    /// All rungs of a configuration's deployment, and what ends them where no limit does.
    pub(crate) fn ladder(&self, best: &Ranked) -> (Vec<Rung>, String) {
        let (p, q) = (&self.prepared, &self.ask.question);
        let c = p.space.configuration(best.index);
        let rung = |level: usize| {
            let c = Configuration { level, ..c };
            let estimate = p.space.estimate(p.space.index(&c), q.output, q.traffic)?;
            let bits = q.limits.broken(&estimate);
            let seen = [Bound::Ttft, Bound::Tpot, Bound::E2e, Bound::Headroom].into_iter();
            let broken = seen.filter(|b| bits & (1 << *b as u8) != 0);
            let broken = broken.filter_map(|b| Some(answer::limit_words(b, q.limits.get(b)?))).collect();
            Some(Rung { concurrency: answer::concurrency(p, &c), estimate, broken })
        };
        let rungs: Vec<Rung> = (0..p.space.levels).filter_map(rung).collect();
        let entry = &p.entries[c.row];
        let engine = &p.deployments[entry.deployment].deployment.engine;
        let sequences = engine.schedule.sequences * p.deployments[entry.deployment].pass.stages();
        let last = rungs.last().map_or(0.0, |r| r.concurrency);
        let end = if last < entry.room.min(sequences).floor() {
            "the pool of prompts cannot keep up".into()
        } else if entry.room < sequences {
            "the memory for caches is full".into()
        } else {
            format!("{} takes no more than {sequences} sequences", engine.name)
        };
        (rungs, end)
    }
}
