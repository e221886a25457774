//! A deployment found again in another space, and from one request in flight to as many as it takes.
//!
//! Kept are the layouts; format, engine, machine, chunk and drafts where the new question offers them. First as it runs
//! now, with the same ratio of pools in the replicas it has; where that does not do, in as many as it takes; and where they
//! do not help, at the best concurrency and ratio its layouts allow. What can be simulated is; the means only propose.

use super::held::Alone;
use super::why::broken;
use super::{Entry, Plan, Worked};
use crate::desk::prelude::*;
use crate::simulate::Percentiles;
use rackmath_theory::plan::{Bound, Configuration, Estimate, Ranked};

/// Whether a deployment still does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// As it runs now, in the replicas it has.
    AsIs,
    /// As it runs now, in more replicas.
    Scaled,
    /// At another concurrency or ratio of pools.
    Retuned,
    /// It runs but breaks limits.
    Breaks,
    /// It cannot run.
    #[default]
    No,
}

impl Holds {
    /// Whether the limits are kept, be it with more replicas or at another ratio.
    pub fn does(self) -> bool {
        matches!(self, Self::AsIs | Self::Scaled | Self::Retuned)
    }
}

/// A deployment under another question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Kept {
    /// Whether it still does.
    pub holds: Holds,
    /// What it does; where it breaks limits, as it runs now, or if it cannot, as near as its layouts come.
    pub plan: Option<Plan>,
    /// The limits it breaks when left as it is; none where it does not keep up with what comes.
    pub broken: Vec<Remark>,
}

/// What a deployment is, whatever space it stands in.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    system: String,
    engine: String,
    weights: Dtype,
    kv: Dtype,
    layout: Layout,
    drafts: f64,
    chunk: f64,
    offload: bool,
    per_group: f64,
    /// Layout and chunk of the pool of prompts, and the instances of both.
    prompts: Option<(Layout, f64, (f64, f64))>,
}

impl Identity {
    /// Same layouts, formats, engine and machine; concurrency, ratio of pools and replicas are free.
    pub(crate) fn same(&self, other: &Self) -> bool {
        let of = |i: &Self| (i.layout, i.prompts.map(|p| p.0), i.weights, i.kv, i.drafts, i.offload);
        of(self) == of(other) && self.engine == other.engine && self.system == other.system
    }

    /// The same, with its chunk and its ratio of pools: what runs is not touched.
    pub(crate) fn unchanged(&self, other: &Self) -> bool {
        self.same(other) && self.prompts == other.prompts && self.chunk == other.chunk
    }

    /// In how many respects a row is alike.
    fn likeness(&self, row: &Entry) -> usize {
        let on = row.on();
        let alike = [
            on.system.id == self.system,
            on.engine.id == self.engine,
            on.formats.linear == self.weights,
            on.kv == self.kv,
            row.drafts.0 == self.drafts,
            self.prompts.is_some() || row.chunk == self.chunk,
            // Those that only decode fetch nothing.
            row.offload.is_some() == (self.prompts.is_none() && self.offload),
        ];
        alike.into_iter().filter(|same| *same).count()
    }
}

/// A deployment as it runs: its replicas, and the requests in flight of a group that they are started with.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub identity: Identity,
    pub replicas: u64,
    pub sequences: f64,
}

/// One step of concurrency.
pub(crate) struct Rung {
    pub concurrency: f64,
    pub estimate: Estimate,
    /// Limits on what users see that it breaks.
    pub broken: Vec<Remark>,
}

impl Worked {
    /// What the deployment of a configuration is.
    pub(crate) fn identity(&self, index: u64) -> Identity {
        let choice = self.chosen(index);
        let on = choice.row.on();
        Identity {
            system: on.system.id.clone(),
            engine: on.engine.id.clone(),
            weights: on.formats.linear,
            kv: on.kv,
            layout: on.layout,
            drafts: choice.row.drafts.0,
            chunk: choice.row.chunk,
            offload: choice.offload().is_some(),
            per_group: choice.per_group,
            prompts: (choice.prompts.as_ref())
                .map(|p| (p.row.on().layout, p.row.chunk, (p.instances, choice.instances))),
        }
    }

    /// A configuration with what it does under the question.
    pub(crate) fn ranked_at(&self, index: u64) -> Option<Ranked> {
        self.ranked(&self.space.configuration(index))
    }

    fn ranked(&self, c: &Configuration) -> Option<Ranked> {
        let (q, index) = (&self.question, self.space.index(c));
        let estimate = self.space.estimate(index, q.output, q.traffic)?;
        Some(Ranked { index, family: self.space.family(index), estimate })
    }

    /// The configuration of a row, a level and a ratio of its pools; none where a ratio is missing.
    fn cut_at(&self, (row, prefill): (usize, Option<usize>), level: usize, ratio: Option<usize>) -> Option<Ranked> {
        let split = match (prefill, ratio) {
            (Some(p), Some(r)) => Some((p, r)),
            (None, _) => None,
            (Some(_), None) => return None,
        };
        self.ranked(&Configuration { row, level, split })
    }

    /// A deployment of another question as it was: its rows, its ratio, as near to its requests in flight as there is a state.
    pub(super) fn as_it_was(&self, old: &Identity) -> Option<Ranked> {
        let (rows, ratio) = (self.rows(old)?, self.ratio(old));
        let all = (0..self.space.levels).filter_map(|level| self.cut_at(rows, level, ratio));
        let off = |r: &Ranked| (self.chosen(r.index).per_group - old.per_group).abs();
        all.min_by(|a, b| off(a).total_cmp(&off(b)))
    }

    /// A plan as it runs.
    pub(crate) fn running(&self, plan: &Plan) -> Running {
        Running { identity: self.identity(plan.index), replicas: plan.replicas, sequences: plan.sequences }
    }

    /// A deployment of another question under this one.
    pub(crate) fn kept(&self, running: &Running) -> Result<Kept, Error> {
        let (old, replicas) = (&running.identity, running.replicas);
        // What was simulated may fill the chips for prompts more than means can tell of.
        let wide = self.outrun();
        let Some(as_is) = wide.alone(running)? else { return wide.kept_by_means(old, replicas) };
        let broken = match as_is {
            Alone::Holds(plan) => return Ok(Kept { holds: Holds::AsIs, plan: Some(*plan), broken: Vec::new() }),
            Alone::Breaks(_, ref broken) => broken.clone(),
        };
        if let Some(plan) = wide.in_more_replicas(old)? {
            let holds = if plan.replicas == replicas { Holds::Retuned } else { Holds::Scaled };
            return Ok(Kept { holds, plan: Some(plan), broken });
        }
        let retuned = wide.retuned(old).filter(|r| self.question.limits.broken(&r.estimate) == 0);
        let retuned = retuned.map(|r| wide.plan_met(wide.plan_beside(&r, None))).transpose()?;
        if let Some(plan) = retuned.filter(|plan| plan.percentiles.as_ref().is_none_or(Percentiles::hold)) {
            return Ok(Kept { holds: Holds::Retuned, plan: Some(plan), broken });
        }
        let Alone::Breaks(plan, _) = as_is else { return Ok(Kept::default()) };
        Ok(Kept { holds: Holds::Breaks, plan: Some(*plan), broken })
    }

    /// The same where nothing can be simulated, or traffic is as much as the chips take.
    fn kept_by_means(&self, old: &Identity, replicas: u64) -> Result<Kept, Error> {
        let (q, given) = (&self.question, self.traffic_is_given());
        let breaks = |r: &Ranked| q.limits.broken(&r.estimate) != 0;
        let words = |r: &Ranked| broken(q, &r.estimate, Bound::ALL);
        let met = |r: &Ranked| self.plan_met(self.plan_beside(r, None)).map(Some);
        if given && let Some(r) = self.in_replicas(old, replicas).filter(|r| !breaks(r)) {
            return Ok(Kept { holds: Holds::AsIs, plan: Some(self.plan_beside(&r, None)), broken: Vec::new() });
        }
        let as_is = self.as_it_was(old);
        if let Some(r) = as_is.filter(|r| !breaks(r)) {
            let holds = if given { Holds::Scaled } else { Holds::AsIs };
            return Ok(Kept { holds, plan: met(&r)?, broken: Vec::new() });
        }
        let retuned = self.retuned(old);
        let as_it_was = as_is.as_ref().map_or_else(Vec::new, words);
        Ok(match (retuned.filter(|r| !breaks(r)), as_is.or(retuned)) {
            (Some(r), _) => Kept { holds: Holds::Retuned, plan: met(&r)?, broken: as_it_was },
            (None, Some(r)) => Kept { holds: Holds::Breaks, plan: met(&r)?, broken: words(&r) },
            (None, None) => Kept::default(),
        })
    }

    /// The best of a deployment's layouts at any concurrency and ratio of pools: what breaks the fewest limits, then the best of that.
    fn retuned(&self, old: &Identity) -> Option<Ranked> {
        let (q, space, rows) = (&self.question, &self.space, self.rows(old)?);
        let ratios = if rows.1.is_some() { (0..space.ratios.len()).map(Some).collect() } else { vec![None] };
        let all = ratios
            .into_iter()
            .flat_map(|ratio| (0..space.levels).filter_map(move |level| self.cut_at(rows, level, ratio)));
        let order = |r: &Ranked| (q.limits.broken(&r.estimate).count_ones(), q.objective.score(&r.estimate));
        all.min_by(|a, b| {
            let (a, b) = (order(a), order(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        })
    }

    /// A deployment of another question with its ratio, in its replicas, at the concurrency that serves the traffic in them.
    fn in_replicas(&self, old: &Identity, replicas: u64) -> Option<Ranked> {
        let (rows, q) = (self.rows(old)?, &self.question);
        let all = (0..self.space.levels).filter_map(|level| self.cut_at(rows, level, self.ratio(old)));
        let enough = all.filter(|r| r.estimate.replicas as u64 <= replicas).filter_map(|r| {
            let estimate = self.space.with_replicas(r.index, q.output, q.traffic, replicas as f64)?;
            Some(Ranked { estimate, ..r })
        });
        let order = |r: &Ranked| (q.limits.broken(&r.estimate).count_ones(), r.estimate.e2e);
        enough.min_by(|a, b| order(a).0.cmp(&order(b).0).then(order(a).1.total_cmp(&order(b).1)))
    }

    /// The number of the ratio of its pools.
    fn ratio(&self, old: &Identity) -> Option<usize> {
        old.prompts.and_then(|p| self.space.ratios.iter().position(|r| *r == p.2))
    }

    /// The rows of a deployment's pools: the layouts must be there, of the rest as much as is.
    fn rows(&self, old: &Identity) -> Option<(usize, Option<usize>)> {
        let rows = &self.made.rows;
        // The first of equals: a row that decodes stands at its first chunk.
        let fits = (0..rows.len()).filter(|row| rows[*row].on().layout == old.layout);
        let row = fits.min_by_key(|row| std::cmp::Reverse(old.likeness(&rows[*row])))?;
        let Some((layout, chunk, _)) = old.prompts else { return Some((row, None)) };
        let key = self.space.rows[row].key;
        let pool = |i: &usize| &rows[self.space.prefills[*i].row];
        let goes = |i: &usize| self.space.rows[self.space.prefills[*i].row].key == key && pool(i).on().layout == layout;
        let all = || (0..self.space.prefills.len()).filter(goes);
        let same = all().filter(|i| pool(i).chunk == chunk).min_by_key(|i| pool(i).offload.is_some() != old.offload);
        Some((row, Some(same.or_else(|| all().next())?)))
    }

    /// A configuration's deployment from one request in flight to as many as it takes, and what ends it where no limit does.
    pub(crate) fn ladder(&self, best: &Ranked) -> (Vec<Rung>, Remark) {
        let c = self.space.configuration(best.index);
        let rung = |level: usize| {
            let c = Configuration { level, ..c };
            let estimate = self.ranked(&c)?.estimate;
            let seen = [Bound::Ttft, Bound::Tpot, Bound::E2e, Bound::Headroom];
            Some(Rung { concurrency: self.concurrency(&c), estimate, broken: broken(&self.question, &estimate, &seen) })
        };
        let rungs: Vec<Rung> = (0..self.space.levels).filter_map(rung).collect();
        let row = &self.made.rows[c.row];
        let last = rungs.last().map_or(0.0, |r| r.concurrency);
        let end = if last < row.most() {
            says("prompts_lag")
        } else if row.room < row.sequences() {
            says("caches_full")
        } else {
            says("engine_full").with("engine", &row.on().engine.name).with("sequences", row.sequences())
        };
        (rungs, end)
    }
}
