//! A deployment found again in another space: what becomes of it when the question changes.
//!
//! Kept are the layouts; format, engine, machine, chunk and drafts where the new question offers them. First as it runs
//! now, at the same concurrency and ratio of pools; where that breaks a limit, at the best concurrency and ratio its layouts
//! allow. Replicas follow the traffic.

use super::card::Plan;
use super::worked::Worked;
use super::{answer, layout};
use rackmath_theory::plan::{Bound, Configuration, Ranked};
use schemars::JsonSchema;
use serde::Serialize;

/// Whether a deployment still does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// As it runs now.
    AsIs,
    /// At another concurrency or ratio of pools.
    Retuned,
    /// It runs but breaks limits.
    Breaks,
    /// It cannot run.
    No,
}

/// A deployment under another question.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Kept {
    /// Whether it still does.
    pub holds: Holds,
    /// What it does; where it breaks limits, as it runs now, or if it cannot, as near as its layouts come.
    pub plan: Option<Plan>,
    /// The limits it breaks when left as it is, in words.
    pub broken: Vec<String>,
}

impl Worked {
    /// A plan of another question under this one.
    pub(crate) fn kept(&self, old: &Plan) -> Kept {
        let none = Kept { holds: Holds::No, plan: None, broken: Vec::new() };
        let Some((row, prefill)) = self.rows(old) else { return none };
        let (q, space) = (&self.ask.question, &self.prepared.space);
        let ranked = |c: Configuration| {
            let index = space.index(&c);
            let estimate = space.estimate(index, q.output, q.traffic)?;
            Some(Ranked { index, family: space.family(index), estimate })
        };
        let ratio_of = |p: &super::PoolPlan| {
            space.ratios.iter().position(|r| *r == (p.instances as f64, p.decode_instances as f64))
        };
        let own = old.prefill.as_ref().and_then(ratio_of);
        let at = |level: usize, ratio: Option<usize>| {
            let split = match (prefill, ratio) {
                (Some(p), Some(r)) => Some((p, r)),
                (None, _) => None,
                (Some(_), None) => return None,
            };
            ranked(Configuration { row, level, split })
        };
        let broken = |r: &Ranked| q.limits.broken(&r.estimate);
        let words = |r: &Ranked| -> Vec<String> {
            let bits = broken(r);
            let kept = Bound::ALL.into_iter().filter(|b| bits & (1 << *b as u8) != 0);
            kept.filter_map(|b| Some(answer::limit_words(b, q.limits.get(b)?))).collect()
        };
        let plan = |r: &Ranked| Some(answer::plan(&self.ask, &self.prepared, r, None));
        let as_is = self.level(row, old.concurrency_per_group).and_then(|level| at(level, own));
        if let Some(r) = as_is.filter(|r| broken(r) == 0) {
            return Kept { holds: Holds::AsIs, plan: plan(&r), broken: Vec::new() };
        }
        let ratios = if prefill.is_some() { (0..space.ratios.len()).map(Some).collect() } else { vec![None] };
        let all = ratios.into_iter().flat_map(|ratio| (0..space.levels).filter_map(move |level| at(level, ratio)));
        // What breaks the fewest limits, then the best of that: one that breaks none, where there is one.
        let order = |r: &Ranked| (broken(r).count_ones(), q.objective.score(&r.estimate));
        let retuned = all.min_by(|a, b| {
            let (a, b) = (order(a), order(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let as_it_was = as_is.as_ref().map_or_else(Vec::new, words);
        match (retuned.filter(|r| broken(r) == 0), as_is.or(retuned)) {
            (Some(r), _) => Kept { holds: Holds::Retuned, plan: plan(&r), broken: as_it_was },
            (None, Some(r)) => Kept { holds: Holds::Breaks, plan: plan(&r), broken: words(&r) },
            (None, None) => none,
        }
    }

    /// The rows of a plan's pools: the layouts must be there, of the rest as much as is.
    fn rows(&self, old: &Plan) -> Option<(usize, Option<usize>)> {
        let p = &self.prepared;
        let layout_of =
            |row: usize| layout::words(&self.ask.model, &p.deployments[p.entries[row].deployment].deployment.layout);
        let alike = |row: usize| {
            let entry = &p.entries[row];
            let kind = &p.kinds[p.kind_of[entry.deployment]];
            [
                self.ask.machines[kind.machine].system.name == old.system,
                kind.engine.name == old.engine,
                kind.formats.linear.to_string() == old.weights,
                kind.kv.to_string() == old.kv,
                entry.drafts.0 == old.drafts,
                old.prefill.is_some() || entry.chunk == old.chunk,
                // Those that only decode fetch nothing.
                entry.offload.is_some() == (old.prefill.is_none() && old.offload.is_some()),
            ]
            .into_iter()
            .filter(|same| *same)
            .count()
        };
        // Of equals the first: a row that decodes stands at its first chunk.
        let best = |all: &mut dyn Iterator<Item = usize>| all.min_by_key(|row| std::cmp::Reverse(alike(*row)));
        let row = best(&mut (0..p.entries.len()).filter(|row| layout_of(*row) == old.layout))?;
        let Some(pool) = &old.prefill else { return Some((row, None)) };
        let key = p.space.rows[row].key;
        let all = || {
            let fits = |i: &usize| {
                let at = p.space.prefills[*i].row;
                p.space.rows[at].key == key && layout_of(at) == pool.layout
            };
            (0..p.space.prefills.len()).filter(fits)
        };
        let same = all().filter(|i| p.entries[p.space.prefills[*i].row].chunk == pool.chunk);
        let fetches = |i: &usize| p.entries[p.space.prefills[*i].row].offload.is_some();
        let same = same.min_by_key(|i| fetches(i) != old.offload.is_some());
        Some((row, Some(same.or_else(|| all().next())?)))
    }

    /// The level at which a group of a row comes nearest to a concurrency.
    fn level(&self, row: usize, concurrency: f64) -> Option<usize> {
        let off = |level: usize| {
            (answer::concurrency(&self.prepared, &Configuration { row, level, split: None }) - concurrency).abs()
        };
        (0..self.prepared.levels.len()).min_by(|a, b| off(*a).total_cmp(&off(*b)))
    }
}
