//! Which deployments are simulated: the best by their means, then what could cost less than the best that holds.

use super::super::trial::{PARTS, RUNS};
use super::{Held, LATE, LEVEL, Load, Log, OTHERS, PLANS, Run, SLOW, TIMES, Unit, Worked};
use crate::desk::prelude::*;
use crate::questions::plan::plan::{Plan, prepare::in_order, search::singly};
use rackmath_theory::plan::{
    Bound, Configuration, Estimate, Limits, Objective, Question, Ranked, Space, Traffic, search_all,
};

/// Deployments that are looked through for such as could cost less.
const LOOKED: usize = 300;
/// Tried at a time: a number of its own, so that the answer does not depend on that of the threads.
const WAVE: usize = 4;

/// What may be tried: its least cost, how much of its limits it is likely to use, with so many steps of less load.
type Open = (f64, f64, u64, Unit);

impl Worked {
    /// The same where prompts' chips may be busy all the time: whether they keep up is seen when they are simulated, and between two
    /// levels of concurrency there may be none at which they are busy enough and not too busy.
    pub(crate) fn outrun(&self) -> Self {
        let space = Space { outrun: true, ..Space::clone(&self.space) };
        Self { space: Arc::new(space), ..self.clone() }
    }

    /// Limits so wide that only what is far over one in the mean is left out.
    fn relaxed(&self) -> Limits {
        let wider = |limits: Limits, (bound, by): (Bound, f64)| limits.with(bound, limits.get(bound).map(|l| l * by));
        [(Bound::Ttft, LATE), (Bound::Tpot, SLOW), (Bound::E2e, SLOW)].into_iter().fold(self.question.limits, wider)
    }

    pub(super) fn unit(&self, index: u64) -> Option<Unit> {
        let q = &self.question;
        let full = self.space.estimate(index, q.output, q.traffic)?;
        let replicas = full.replicas.max(1.0) as u64;
        let load = match self.coming(&full) {
            Some(_) => self.load(&self.chosen(index), &full),
            None => Load::Part { full: full.rate * full.replicas, replicas, parts: PARTS },
        };
        Some(Unit { index, load, full })
    }

    /// The deployment of a configuration with the most load that its relaxed means allow.
    pub(super) fn widest(&self, index: u64) -> Option<Unit> {
        let (c, q, limits) = (self.space.configuration(index), &self.question, self.relaxed());
        let all = (0..self.space.levels).filter_map(|level| {
            let index = self.space.index(&Configuration { level, ..c });
            let estimate = self.space.estimate(index, q.output, q.traffic)?;
            (limits.broken(&estimate) == 0).then_some(Ranked { index, family: 0, estimate })
        });
        self.unit(all.min_by(|a, b| q.order(a, b))?.index)
    }

    /// What so many steps less load on each replica cost; none where they break a limit that is not on times.
    fn costs(&self, u: &Unit, steps: u64) -> Option<f64> {
        let q = &self.question;
        let e = self.at(u, steps)?;
        let free = OTHERS.iter().fold(Limits::default(), |all, b| all.with(*b, q.limits.get(*b)));
        (free.broken(&e) == 0).then(|| q.objective.score(&e))
    }

    /// A unit with so many steps less load, its times those of the means.
    pub(super) fn at(&self, u: &Unit, steps: u64) -> Option<Estimate> {
        let (replicas, rate) = match u.load.less(steps) {
            Load::Open { rate, replicas, .. } => (replicas, rate),
            Load::Part { full, replicas, parts } => (replicas, full * parts as f64 / PARTS as f64),
            Load::Closed { .. } => return None,
        };
        self.space.replicated(u.index, self.question.output, (replicas as f64, rate))
    }

    /// The most steps that cost no more than so much, or less than it.
    pub(super) fn within(&self, u: &Unit, most: f64, or_equal: bool) -> Option<u64> {
        let fits = |steps: u64| self.costs(u, steps).is_some_and(|c| if or_equal { c <= most } else { c < most });
        let (mut low, mut high) = (0, u.load.steps());
        if !fits(0) {
            return None;
        }
        if fits(high) {
            return Some(high);
        }
        while high - low > 1 {
            let middle = u64::midpoint(low, high);
            if fits(middle) { low = middle } else { high = middle }
        }
        Some(low)
    }

    /// How much of its limits a unit uses up in the mean at a load; and of what it serves when full, where that counts too.
    fn likely_use(&self, u: &Unit, steps: u64, and_load: bool) -> f64 {
        let Some(e) = self.at(u, steps) else { return f64::INFINITY };
        let each = e.throughput / self.question.output / e.replicas;
        let rungs: Vec<(u64, Estimate)> = self.rungs(u.index).collect();
        let Some((_, at)) = rungs.iter().find(|(_, e)| e.rate >= each).or(rungs.last()) else { return f64::INFINITY };
        let over = |b: &Bound| self.question.limits.get(*b).map_or(0.0, |limit| b.amount(at) / limit);
        let full = rungs.iter().map(|(_, e)| e.rate).fold(0.0, f64::max);
        let busy = if and_load || each > full { each / full } else { 0.0 };
        TIMES.iter().map(over).fold(busy, f64::max)
    }

    /// The fewest steps of less load, up to so many, at which a unit holds; from the first on, or from the last.
    pub(super) fn least(&self, u: &Unit, top: u64, from_first: bool) -> Result<Option<(u64, Run)>, Error> {
        let (mut low, mut best, mut runs) = (None, None, 0);
        let mut at = if from_first { 0 } else { top };
        let mut high = top;
        while runs < RUNS {
            runs += 1;
            let met = self.meets(u.index, u.load.less(at))?;
            let holds = met.met.hold();
            if holds {
                (high, best) = (at, Some((at, met)));
            } else if at == top {
                return Ok(None);
            } else {
                low = Some(at);
            }
            at = match low {
                _ if best.is_none() => top,
                None if high == 0 => break,
                None => 0,
                Some(low) if high - low < 2 => break,
                Some(low) => u.load.between(low, high),
            };
        }
        Ok(best)
    }

    /// What is known before anything is simulated: then what could cost less can be told from what could not.
    pub(super) fn costs_are_known(&self) -> bool {
        let rate = matches!(self.question.traffic, Traffic::Rate(_));
        let users = matches!(self.question.traffic, Traffic::Users { .. });
        match self.question.objective {
            Objective::Cost | Objective::Energy => !users,
            Objective::Chips | Objective::Hourly => true,
            Objective::Throughput => !rate && !users,
            Objective::Latency | Objective::Speed => false,
        }
    }

    /// Deployments that may hold, by the least that they may cost.
    fn candidates(&self) -> Result<Vec<(f64, Unit)>, Error> {
        let q = Question { keep: LOOKED, frontier: None, near: false, limits: self.relaxed(), ..self.question };
        let mut all: Vec<(f64, Unit)> = Vec::new();
        for r in search_all(&self.space, &q, &self.effort)?.top {
            let c = self.space.configuration(r.index);
            // A family of two pools is kept with its best ratio alone.
            let ratios = c.split.map_or(0..1, |_| 0..self.space.ratios.len());
            for ratio in ratios {
                self.effort.check()?;
                let split = c.split.map(|(prefill, _)| (prefill, ratio));
                let unit = self.widest(self.space.index(&Configuration { split, ..c }));
                all.extend(unit.map(|u| (q.objective.score(&u.full), u)));
            }
        }
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.index.cmp(&b.1.index)));
        Ok(all)
    }

    /// What was tried, and what that leaves open.
    pub(super) fn searched(&self, log: &Log) -> Remark {
        says("held_searched")
            .with("tried", log.tried)
            .with("few", (!self.costs_are_known()).then(|| self.ask.objective.to_string()))
            .with("left", Some(log.left).filter(|n| *n > 0))
            .with("none", log.left == 0 && self.costs_are_known())
            .with("slow", SLOW)
            .with("late", LATE)
    }

    /// The best by their means that can be simulated, each with as many replicas as it takes.
    pub(super) fn try_best(&self, plans: &[Plan], log: &mut Log) -> Result<(), Error> {
        let wanted = PLANS.min(self.question.keep);
        let mut few = Vec::new();
        let mut pick = |all: &mut dyn Iterator<Item = u64>, log: &mut Log| {
            while few.len() < wanted
                && let Some(index) = all.next()
            {
                match self.staged_for(&self.ask.simulate, &self.chosen(index)) {
                    Ok(_) => few.extend(self.widest(index)),
                    Err(why) => log.leave_out(why),
                }
            }
            few.len()
        };
        if pick(&mut plans.iter().map(|p| p.index), log) < wanted && plans.len() >= self.question.keep {
            let q = Question { keep: LOOKED, frontier: None, near: false, ..self.question };
            let all = search_all(&self.space, &q, &self.effort)?.top;
            pick(&mut all.iter().map(|r| r.index).skip(plans.len()), log);
        }
        let tried = in_order(&few, &self.effort, |u| {
            let Some((steps, met)) = self.least(u, u.load.steps(), true)? else { return Ok(Err(self.never(u)?)) };
            Ok(self.settled(u, steps, met))
        })?;
        for (one, u) in tried.into_iter().zip(&few) {
            log.tried += 1;
            match one {
                Ok(held) => log.good.push(held),
                Err(why) => {
                    let why = self.missed(u, why)?;
                    log.bad.push(says("not_held").with("deployment", self.words(u.index)).with("why", why));
                }
            }
        }
        Ok(())
    }

    /// What keeps the limits on fewer chips than the best for less, where single chips are paid and not whole hosts.
    pub(super) fn part_held(&self, best: &Held) -> Result<Option<Remark>, Error> {
        let q = &self.question;
        let Some(single) = singly(&self.space, q).filter(|_| self.predicted.is_none()) else { return Ok(None) };
        let part = Self { space: Arc::new(single), ..self.clone() };
        let few = Question { keep: LEVEL, frontier: None, near: false, ..*q };
        let paid = best.ranked.estimate;
        let (mut least, mut found) = (q.objective.score(&paid), None);
        for r in search_all(&part.space, &few, &part.effort)?.top {
            let Some(u) = part.widest(r.index) else { continue };
            let Some(top) = part.within(&u, least, false) else { continue };
            if part.staged_for(&self.ask.simulate, &part.chosen(u.index)).is_err() {
                continue;
            }
            let Some((steps, met)) = part.least(&u, top, false)? else { continue };
            if let Ok(held) = part.settled(&u, steps, met).map(|held| held.ranked)
                && held.estimate.chips < paid.chips
            {
                least = q.objective.score(&held.estimate);
                found = Some(held);
            }
        }
        Ok(found.map(|one| {
            let cost = DollarsPerToken::per_mtok(one.estimate.usd_per_mtok);
            let said = says("part_of_host").with("chips", one.estimate.chips).with("paid", paid.chips);
            said.with("cost", cost).with("deployment", self.several(&one))
        }))
    }

    /// Those that come first, each with other layouts: while nothing holds, one kind that fails is not tried in all its forms.
    fn dealt(&self, open: Vec<Open>) -> Vec<Open> {
        let mut kinds: Vec<((Layout, Layout), usize)> = Vec::new();
        let mut all: Vec<(usize, Open)> = Vec::with_capacity(open.len());
        for one in open {
            let choice = self.chosen(one.3.index);
            let kind = (choice.first().on().layout, choice.row.on().layout);
            let at = kinds.iter().position(|(known, _)| *known == kind).unwrap_or(kinds.len());
            if at == kinds.len() {
                kinds.push((kind, 0));
            }
            all.push((kinds[at].1, one));
            kinds[at].1 += 1;
        }
        // Sorting keeps the order of equals.
        all.sort_by_key(|(nth, _)| *nth);
        all.into_iter().map(|(_, one)| one).collect()
    }

    /// What could cost less than the best that holds, and then what could hold by more at the same cost.
    pub(super) fn try_cheaper(&self, log: &mut Log, [cheaper, level]: [usize; 2]) -> Result<(), Error> {
        let all = self.candidates()?;
        let score = |h: &Held| self.question.objective.score(&h.ranked.estimate);
        for or_equal in [false, true] {
            let mut least = log.good.iter().map(score).fold(f64::INFINITY, f64::min);
            if or_equal && least.is_infinite() {
                return Ok(());
            }
            let mut open: Vec<Open> = Vec::new();
            for (cost, u) in &all {
                if *cost > least || (!or_equal && *cost >= least) {
                    break;
                }
                if let Some(steps) = self.within(u, least, or_equal) {
                    open.push((*cost, self.likely_use(u, steps, !or_equal), steps, *u));
                }
            }
            // What means say will hold first: the sooner the best is found, the less is left to try.
            open.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.total_cmp(&b.0)).then(a.3.index.cmp(&b.3.index)));
            if least.is_infinite() {
                open = self.dealt(open);
            }
            let mut budget = if or_equal { level } else { cheaper };
            let mut open = open.into_iter();
            while budget > 0 {
                let mut wave = Vec::new();
                while wave.len() < WAVE.min(budget)
                    && let Some((_, _, _, u)) = open.next()
                {
                    let Some(steps) = self.within(&u, least, or_equal) else { continue };
                    match self.staged_for(&self.ask.simulate, &self.chosen(u.index)) {
                        Ok(_) => wave.push((u, steps)),
                        Err(why) => log.leave_out(why),
                    }
                }
                if wave.is_empty() {
                    break;
                }
                budget -= wave.len();
                let tried = in_order(&wave, &self.effort, |(u, steps)| {
                    // At the same cost more replicas hold by more: the fewest are not looked for.
                    let found = if or_equal {
                        let met = self.meets(u.index, u.load.less(*steps))?;
                        met.met.hold().then_some((*steps, met))
                    } else {
                        self.least(u, *steps, false)?
                    };
                    Ok(found.map(|(steps, met)| self.settled(u, steps, met)))
                })?;
                for held in tried {
                    log.tried += 1;
                    log.good.extend(held.and_then(Result::ok));
                }
                if !or_equal {
                    least = log.good.iter().map(score).fold(f64::INFINITY, f64::min);
                }
            }
            if !or_equal {
                log.left = open.filter(|(_, _, _, u)| self.within(u, least, false).is_some()).count() as u64;
            }
        }
        Ok(())
    }
}
