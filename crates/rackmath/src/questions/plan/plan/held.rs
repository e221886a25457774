//! Limits on percentiles: the best few by the steady state, each with as much head-room as its percentiles need.
//!
//! The search knows means of full replicas. Under limits on percentiles it only screens: the best few are put on the
//! simulator's stage, with the requests in flight of the plan and with as many as the engine takes, and get the fewest
//! replicas, or without a rate the most load, at which all limits hold. They are ranked anew by what they cost then.

use super::trial::{Asked, FEWEST, Load, PARTS, asking, name, search};
use super::worked::{Choice, Worked};
use super::{Answer, Plan, prepare::in_order};
use crate::desk::prelude::*;
use crate::simulate::{Comes, Percentiles, Stage, Times, What};
use rackmath_theory::plan::{Bound, Estimate, Question, Ranked, search_all};

/// Plans that are tried, the best first.
const PLANS: usize = 5;
/// Deployments that are looked through for such as can be simulated.
const LOOKED: usize = 100;
/// Limits that replicas cannot help.
const OTHERS: [Bound; 6] =
    [Bound::Throughput, Bound::Headroom, Bound::UsdPerHour, Bound::UsdPerMtok, Bound::Watts, Bound::Chips];

/// A plan that holds, and what was met.
struct Held {
    ranked: Ranked,
    met: Percentiles,
    comes: Comes,
    /// Share of what the replicas serve that is kept free.
    free: f64,
    /// Replicas beyond those that the means need; none without a rate, where the load is smaller instead.
    more: Option<u64>,
    /// Most requests in flight of a group, where more than the plan's do better.
    sequences: Option<f64>,
}

/// Why a plan does not: in words.
type Tried = Result<Held, Remark>;
/// Plans that cannot be simulated, and why.
type Skipped = Vec<(u64, Remark)>;

impl Worked {
    /// Limits on the first token, on a token and on the whole, with what they are on.
    pub(super) fn time_limits(&self) -> [Option<AtMost>; 3] {
        let bounds = [Bound::Ttft, Bound::Tpot, Bound::E2e];
        std::array::from_fn(|i| {
            let mean = self.question.limits.get(bounds[i]).map(|s| AtMost::from(s * 1e3));
            self.ask.held[i].or(mean)
        })
    }

    pub(super) fn on_percentiles(&self) -> bool {
        self.ask.held.iter().any(Option::is_some)
    }

    /// What users meet: of the best plan where it can be told, of all under limits on percentiles, which are ranked anew.
    pub(super) fn met(&self, mut answer: Answer) -> Result<Answer, Error> {
        if self.on_percentiles() {
            return self.held(answer);
        }
        let w = &self.ask.workload;
        let traffic = w.mean_rate.is_some() || w.users.is_some() || w.varies();
        let Some(best) = answer.plans.first_mut().filter(|_| traffic) else { return Ok(answer) };
        let (choice, q) = (self.chosen(best.index), &self.question);
        let Some(e) = self.space.estimate(best.index, q.output, q.traffic) else { return Ok(answer) };
        match self.staged_for(&self.ask.simulate, &choice) {
            Ok(stage) => {
                let comes = self.load(&choice, &e).comes();
                let met = stage.run(comes)?;
                answer.assumptions.push(self.simulated(&met, comes));
                best.percentiles = Some(met);
            }
            Err(why) => answer.assumptions.push(says("plan_percentiles_not").with("why", why)),
        }
        Ok(answer)
    }

    /// What was simulated for percentiles.
    fn simulated(&self, met: &Percentiles, comes: Comes) -> Remark {
        let said = says("plan_percentiles").with("requests", met.requests).with("seed", met.seed);
        match comes {
            Comes::Open { .. } => said.with("open", true),
            Comes::Users { .. } if self.ask.workload.users.is_none() => said.with("closed", true),
            Comes::Users { users, think } => said.with("users", users).with("asking", asking(think)),
        }
    }

    pub(super) fn staged_for(&self, asked: &Asked, choice: &Choice) -> Result<Stage<'_>, Remark> {
        if choice.offload().is_some() {
            return Err(says("trial_offload"));
        }
        let stages = choice.first().on().stages().max(choice.row.on().stages());
        if stages > 1.0 {
            return Err(says("trial_stages").with("stages", stages));
        }
        self.stage(asked, choice).map_err(|e| e.to_string().into())
    }

    /// The best by the means that can be simulated, and those among them that cannot, with the reason.
    fn screened(&self, plans: &[Plan]) -> Result<(Vec<u64>, Skipped), Error> {
        let wanted = PLANS.min(self.question.keep);
        let pick = |all: &mut dyn Iterator<Item = u64>| {
            let (mut few, mut skipped) = (Vec::new(), Vec::new());
            while few.len() < wanted
                && let Some(index) = all.next()
            {
                match self.staged_for(&self.ask.simulate, &self.chosen(index)) {
                    Ok(_) => few.push(index),
                    Err(why) => skipped.push((index, says("trial_not").with("why", why))),
                }
            }
            (few, skipped)
        };
        let known = pick(&mut plans.iter().map(|p| p.index));
        if known.0.len() == wanted || plans.len() < self.question.keep {
            return Ok(known);
        }
        let q = Question { keep: LOOKED, frontier: None, near: false, ..self.question };
        Ok(pick(&mut search_all(&self.space, &q, &self.effort)?.top.iter().map(|r| r.index)))
    }

    fn held(&self, mut answer: Answer) -> Result<Answer, Error> {
        // What moving a limit on a mean is worth says nothing of one on a percentile.
        answer.shadow_prices.clear();
        if answer.plans.is_empty() {
            return Ok(answer);
        }
        let (few, skipped) = self.screened(&answer.plans)?;
        let left_out = Some(skipped.len()).filter(|n| *n > 0);
        let not = |(index, why): (u64, Remark)| says("not_held").with("deployment", self.words(index)).with("why", why);
        let tried = in_order(&few, &self.effort, |index| self.with_headroom(*index))?;
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for (one, index) in tried.into_iter().zip(&few) {
            match one {
                Ok(held) => good.push(held),
                Err(why) => bad.push(not((*index, why))),
            }
        }
        bad.extend(skipped.into_iter().take(PLANS).map(not));
        good.sort_by(|a, b| self.question.order(&a.ranked, &b.ranked));
        if !few.is_empty() {
            answer.assumptions.push(says("held_screened").with("plans", few.len()).with("left_out", left_out));
        }
        answer.assumptions.extend(good.first().map(|h| self.simulated(&h.met, h.comes)));
        let Some(best) = good.first() else {
            answer.verdict = match few.len() {
                0 => says("nothing_tried").with("plans", left_out),
                n => says("nothing_held").with("plans", n).with("left_out", left_out),
            };
            answer.because = bad;
            answer.plans.clear();
            answer.figure.marks.clear();
            return Ok(answer);
        };
        let held = held_words(best);
        answer.plans = good.iter().map(|h| self.held_plan(h, best)).collect();
        answer.verdict = self.verdict(&answer.plans, &[]).with("held", held);
        answer.assumptions.extend(bad);
        Ok(answer)
    }

    fn held_plan(&self, h: &Held, best: &Held) -> Plan {
        let q = &self.question;
        let score = |h: &Held| q.objective.score(&h.ranked.estimate);
        let mut plan = self.plan_beside(&h.ranked, Some(&best.ranked));
        plan.why = if h.ranked.index == best.ranked.index {
            if h.more == Some(0) { plan.why } else { says("held_by_percentiles").with("free", h.free) }
        } else if score(h) == score(best) {
            says("plan_level")
        } else {
            says("plan_behind").with("worse", ((score(h) - score(best)) / score(best)).abs())
        };
        if let Some(per_group) = h.sequences {
            // The engine is started with as many as were simulated.
            let choice = Choice { per_group, ..self.chosen(h.ranked.index) };
            plan.launch = self.launch(&choice);
            plan.handover = plan.handover.and_then(|_| self.handover(&choice, &h.ranked.estimate));
            plan.concurrency *= per_group / plan.concurrency_per_group;
            plan.concurrency_per_group = per_group;
        }
        plan.percentiles = Some(h.met.clone());
        plan
    }

    /// The fewest replicas, or the most load, with which a plan holds.
    fn with_headroom(&self, index: u64) -> Result<Tried, Error> {
        let (choice, q) = (self.chosen(index), &self.question);
        let Some(full) = self.space.estimate(index, q.output, q.traffic) else { return Ok(Err(says("no_room"))) };
        let narrow = match self.staged_for(&self.ask.simulate, &choice) {
            Ok(stage) => stage,
            Err(why) => return Ok(Err(says("trial_not").with("why", why))),
        };
        let replicas = full.replicas.max(1.0) as u64;
        let coming = self.coming(&full);
        let load = match coming {
            Some(_) => self.load(&choice, &full),
            None => Load::Part { full: full.rate * full.replicas, replicas, parts: PARTS },
        };
        // A plan takes the fewest requests in flight that do in the mean; bursts may want more.
        let most = choice.row.most().max(choice.per_group);
        let wide = (most > choice.per_group && choice.prompts.is_none())
            .then(|| self.stage(&self.ask.simulate, &Choice { per_group: most, ..self.chosen(index) }))
            .transpose()?;
        let mut best: Option<(u64, Percentiles, bool)> = None;
        let stages = [Some(&narrow), wide.as_ref()];
        for (stage, is_wide) in stages.into_iter().zip([false, true]).filter_map(|(s, w)| Some((s?, w))) {
            let now = stage.run(load.comes())?;
            let found = if now.hold() { Some((0, now)) } else { search(stage, load, Percentiles::hold)?.0 };
            if let Some((steps, met)) = found.filter(|(steps, _)| best.as_ref().is_none_or(|b| *steps < b.0)) {
                best = Some((steps, met, is_wide));
            }
            if best.as_ref().is_some_and(|b| b.0 == 0) {
                break;
            }
        }
        let Some((steps, met, is_wide)) = best else { return Ok(Err(never(&narrow, load)?)) };
        let load = load.less(steps);
        let mean = |what| met.of(what).map_or(0.0, |t| t.mean_ms / 1e3);
        let [ttft, tpot, e2e] = [What::Ttft, What::Tpot, What::E2e].map(mean);
        let (rate, replicas) = match (load, load.comes()) {
            // Users who wait longer ask less often: N = X (R + Z).
            (Load::Open { replicas, users: Some(u), .. }, _) => (u.all / (e2e + u.think), replicas),
            (_, Comes::Open { rate, replicas }) => (rate, replicas),
            _ => return Ok(Err(says("no_room"))),
        };
        let Some(estimate) = self.space.replicated(index, q.output, (replicas as f64, rate)) else {
            return Ok(Err(says("no_room")));
        };
        let estimate = Estimate { ttft, tpot, e2e, ..estimate };
        let broken: Vec<Remark> = super::why::broken(q, &estimate, &OTHERS);
        if !broken.is_empty() {
            let needs = says("held_beyond").with("replicas", replicas).with("chips", estimate.chips);
            return Ok(Err(needs.with("limits", broken)));
        }
        let free = match load {
            Load::Open { users, .. } => Self::kept_free(Load::Open { rate, replicas, users }, &full),
            other => Self::kept_free(other, &full),
        };
        let ranked = Ranked { index, family: self.space.family(index), estimate };
        Ok(Ok(Held {
            ranked,
            met,
            comes: load.comes(),
            free,
            more: coming.map(|_| steps),
            sequences: is_wide.then_some(most),
        }))
    }
}

/// What holds, and how much room that takes.
fn held_words(h: &Held) -> Remark {
    let times: Vec<Remark> = h.met.times.iter().filter_map(time).collect();
    let said = says("plan_held").with("times", times).with("free", h.free).with("share", h.met.goodput);
    said.with("more", h.more.filter(|n| *n > 0)).with("enough", h.more == Some(0))
}

/// How far off it is at the least load tried.
fn never(stage: &Stage, load: Load) -> Result<Remark, Error> {
    let least = load.less(load.steps());
    let met = stage.run(least.comes())?;
    let worst = met.times.iter().max_by(|a, b| a.over(Times::limited_ms).total_cmp(&b.over(Times::limited_ms)));
    Ok(says("held_never").with("most", 1.0 - 1.0 / FEWEST as f64).with("worst", worst.and_then(time)))
}

/// A time beside its limit, and what that is on.
fn time(t: &Times) -> Option<Remark> {
    let said = says("held_time").with("what", name(t.metric)).with("percentile", t.percentile);
    let said = said.with("mean", t.percentile.is_none()).with("value", t.limited_ms() / 1e3);
    Some(said.with("limit", t.limit_ms? / 1e3))
}

#[cfg(test)]
mod tests;
