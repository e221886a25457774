//! Limits that a simulation has to keep: the cheapest deployment that does, and what its users meet.
//!
//! The search knows means of full replicas. What is paid for a deployment in so many replicas is known before anybody is
//! simulated, and more replicas never do worse: so the best few by their means get the fewest replicas at which the limits
//! hold, and every other deployment that could cost less is put on the simulator's stage once, with as many replicas as cost
//! less than the best so far. Where it fails it is out with any fewer; where it holds it is the best. Of equal costs that
//! with the largest margin is taken. Without a rate the same is done with the share of a full load instead of replicas.
//!
//! Means exclude only by far: what is [`SLOW`] times over a limit on tokens or [`LATE`] times over one on first tokens, and
//! what cannot serve the rate when it is full. Assumes: the simulated times fall with less load on each replica.

use super::kept::{Identity, Running};
use super::trial::{Asked, FEWEST, Load, RUNS, asking, name};
use super::worked::{Choice, Worked};
use super::{Answer, Ask, Plan, Relaxation};
use crate::desk::prelude::*;
use crate::simulate::{Comes, Percentiles, Stage, Times, What};
use rackmath_theory::plan::{Bound, Configuration, Estimate, Near, Question, Ranked, Traffic, search_all};

/// Share of a replica that is free below which it is nearly full.
const FREE: f64 = 0.1;
/// Plans that are tried with as many replicas as they take, the best by their means first.
const PLANS: usize = 5;
/// Deployments that are tried because they could cost less, and because they could hold by more at the same cost.
const TRIED: usize = 48;
const LEVEL: usize = 8;
/// Over a limit on tokens by so much in the mean, and over one on first tokens, nothing holds.
const SLOW: f64 = 1.25;
const LATE: f64 = 2.0;
/// Limits that replicas cannot help.
const OTHERS: [Bound; 6] =
    [Bound::Throughput, Bound::Headroom, Bound::UsdPerHour, Bound::UsdPerMtok, Bound::Watts, Bound::Chips];
const TIMES: [Bound; 3] = [Bound::Ttft, Bound::Tpot, Bound::E2e];

/// A deployment, by one of its configurations, and the most load that its means allow.
#[derive(Clone, Copy)]
struct Unit {
    index: u64,
    load: Load,
    full: Estimate,
}

/// What was met, with so many requests in flight of a group at most.
struct Run {
    met: Percentiles,
    sequences: f64,
    /// The same at the pessimistic end, where that was asked for.
    surely: Option<Percentiles>,
}

/// A plan that holds, and what was met.
struct Held {
    ranked: Ranked,
    met: Run,
    comes: Comes,
    /// Replicas beyond those that the means need; none without a rate, where the load is smaller instead.
    more: Option<u64>,
}

/// A deployment of another question in the replicas it has.
pub(super) enum Alone {
    Holds(Box<Plan>),
    /// What it does, and the limits that it breaks; none where more comes than it serves.
    Breaks(Box<Plan>, Vec<Remark>),
}

/// What was tried, and what was not.
#[derive(Default)]
struct Log {
    good: Vec<Held>,
    /// Deployments that do not hold, and why.
    bad: Vec<Remark>,
    /// Why some cannot be simulated, and how many.
    out: Vec<(Remark, u64)>,
    tried: u64,
    /// Deployments that could cost less and were not tried.
    left: u64,
}

impl Held {
    /// The largest share of a limit that is used up.
    fn used(&self) -> f64 {
        let met = self.met.surely.as_ref().unwrap_or(&self.met.met);
        met.times.iter().map(|t| t.over(Times::limited_ms)).fold(0.0, f64::max)
    }
}

impl Log {
    fn leave_out(&mut self, why: Remark) {
        match self.out.iter_mut().find(|(known, _)| *known == why) {
            Some((_, n)) => *n += 1,
            None => self.out.push((why, 1)),
        }
    }
}

impl Ask {
    /// Whether there is a traffic of which more can be told than its means.
    fn is_met(&self) -> bool {
        let w = &self.workload;
        w.mean_rate.is_some() || w.users.is_some() || w.varies()
    }

    /// How often a traffic is likely to be simulated, and whether to its end: once, for limits as often as the best few take, and under
    /// limits on percentiles by as many as could cost less, most of which are soon seen to fail.
    pub(super) fn runs(&self) -> (f64, bool) {
        let limited = TIMES.iter().any(|b| self.question.limits.get(*b).is_some());
        let few = (PLANS as u64 * RUNS) as f64;
        let (met, whole) = match (self.held.iter().any(Option::is_some), self.is_met()) {
            (true, _) => (few + 2.0 * (TRIED + 2 * LEVEL) as f64, false),
            (false, true) if limited => (RUNS as f64, true),
            (false, met) => (f64::from(u8::from(met)), true),
        };
        (met + if self.simulate.trials { few } else { 0.0 }, whole)
    }
}

impl Worked {
    /// Limits on the first token, on a token and on the whole, with what they are on.
    pub(super) fn time_limits(&self) -> [Option<AtMost>; 3] {
        std::array::from_fn(|i| {
            let mean = self.question.limits.get(TIMES[i]).map(|s| AtMost::from(s * 1e3));
            self.ask.held[i].or(mean)
        })
    }

    pub(super) fn on_percentiles(&self) -> bool {
        self.ask.held.iter().any(Option::is_some)
    }

    /// What users meet: of the best plan where it can be told, which then has the means of that; of all under limits on
    /// percentiles, or where the best does not keep its limits on means.
    pub(crate) fn met(&self, answer: Answer) -> Result<Answer, Error> {
        let mut answer = self.moves_that_hold(answer)?;
        if self.on_percentiles() {
            return self.held(answer);
        }
        let Some(best) = answer.plans.first().filter(|_| self.simulates()) else { return Ok(answer) };
        let (met, comes) = match self.met_by(best)? {
            Ok(met) => met,
            Err(why) => {
                answer.assumptions.push(says("plan_percentiles_not").with("why", why));
                return Ok(answer);
            }
        };
        for said in answer.assumptions.iter_mut().filter(|a| a.says == "steady_means") {
            *said = says("steady_means").with("others", true);
        }
        if !met.met.hold() && self.traffic_is_given() {
            return self.kept_by_more(answer);
        }
        answer.assumptions.push(self.simulated(&met.met, comes));
        let over: Vec<Remark> =
            met.met.times.iter().filter(|t| t.over(Times::limited_ms) > 1.0).filter_map(time).collect();
        answer.plans[0] = self.with_met(best.clone(), &met, comes);
        let over = (!over.is_empty()).then(|| says("means_over").with("times", over));
        Ok(self.marked(answer, over))
    }

    /// Moves of single limits that hold when they are made: what they give is simulated, and a limit on a time is one on what users meet.
    fn moves_that_hold(&self, mut answer: Answer) -> Result<Answer, Error> {
        let simulated = self.simulates() && self.traffic_is_given() && answer.plans.is_empty();
        if !simulated || answer.relaxations.is_empty() {
            return Ok(answer);
        }
        let mut all = Vec::new();
        for moved in std::mem::take(&mut answer.relaxations) {
            all.extend(self.move_that_holds(moved)?);
        }
        answer.verdict = if all.is_empty() { says("no_move_holds") } else { self.verdict(&[], &all) };
        answer.relaxations = all;
        Ok(answer)
    }

    /// A move as far as it has to go, or none where it does not help; as the means say where it cannot be simulated.
    fn move_that_holds(&self, moved: Relaxation) -> Result<Option<Relaxation>, Error> {
        let Some(near) = moved.near else { return Ok(Some(moved)) };
        let Ok((run, _)) = self.met_by(&self.plan_beside(&near.ranked, None))? else { return Ok(Some(moved)) };
        let (met, asked) = (&run.met, self.question.limits.get(near.bound).unwrap_or(f64::INFINITY));
        let own = |t: &&Times| bound_of(t.metric) == Some(near.bound);
        if !met.queue_grows && met.times.iter().filter(|t| !own(t)).all(|t| t.over(Times::limited_ms) <= 1.0) {
            // What users meet then is what a limit on a time has to be.
            let time = met.times.iter().find(own).filter(|t| t.over(Times::limited_ms) > 1.0);
            let to = |t: &Times| {
                let (needed, factor) =
                    (super::why::amount(near.bound, t.limited_ms() / 1e3), t.over(Times::limited_ms));
                Relaxation { needed, factor, ..moved.clone() }
            };
            return Ok(Some(time.map_or_else(|| moved.clone(), to)));
        }
        let Some(u) = self.unit(near.ranked.index).filter(|_| near.bound == Bound::Chips) else { return Ok(None) };
        let Some((steps, _)) = self.least(&u, u.load.steps(), true)? else { return Ok(None) };
        let Some(estimate) = self.at(&u, steps) else { return Ok(None) };
        let near = Near { ranked: Ranked { estimate, ..near.ranked }, ..near };
        let (needed, said) = self.taken(&near);
        let (by, factor) = (self.several(&near.ranked), needed / asked);
        let more = Relaxation { needed: said, factor, by, near: Some(near), ..moved };
        Ok(self.affords(&near).then_some(more))
    }

    /// An answer whose best was simulated: its chart and verdict.
    fn marked(&self, mut answer: Answer, held: Option<Remark>) -> Answer {
        answer.figure.marks.clear();
        answer.figure = answer.figure.marked(answer.plans.first().map(super::answer::mark));
        answer.verdict = self.verdict(&answer.plans, &[]).with("held", held);
        answer
    }

    /// Where the best keeps its limits in steady state but not under its traffic: it and those that cost less than it does then
    /// get as many replicas as they take.
    fn kept_by_more(&self, mut answer: Answer) -> Result<Answer, Error> {
        let q = &self.question;
        let score = |h: &Held| q.objective.score(&h.ranked.estimate);
        let least = |good: &[Held]| good.iter().map(score).fold(f64::INFINITY, f64::min);
        let (mut good, mut bad, mut tried): (Vec<Held>, Vec<Remark>, Vec<u64>) = (Vec::new(), Vec::new(), Vec::new());
        // Those that would be best with a share of every replica free are likely to hold as they are.
        let freer = match q.traffic {
            Traffic::Rate(rate) => Question { traffic: Traffic::Rate(rate / (1.0 - FREE)), keep: PLANS, ..*q },
            _ => *q,
        };
        let freer = search_all(&self.space, &Question { frontier: None, near: false, ..freer }, &self.effort)?.top;
        let first = freer.iter().map(|r| r.index).take(PLANS);
        for index in first.chain(answer.plans.iter().map(|p| p.index)) {
            let Some(u) = self.unit(index) else { continue };
            if tried.len() >= 2 * PLANS {
                break;
            }
            if tried.contains(&index) || q.objective.score(&u.full) >= least(&good) {
                continue;
            }
            if self.staged_for(&self.ask.simulate, &self.chosen(u.index)).is_err() {
                continue;
            }
            tried.push(index);
            let found = match self.least(&u, u.load.steps(), true)? {
                Some((steps, met)) => self.settled(&u, steps, met),
                None => Err(self.never(&u)?),
            };
            match found {
                Ok(held) => good.push(held),
                Err(why) => {
                    let why = self.missed(&u, why)?;
                    bad.push(says("not_held").with("deployment", self.words(u.index)).with("why", why));
                }
            }
        }
        answer.shadow_prices.clear();
        let mut log = Log { good, tried: tried.len() as u64, ..Log::default() };
        if self.costs_are_known() {
            self.outrun().try_cheaper(&mut log, [TRIED / 3, 0])?;
        }
        answer.assumptions.push(self.searched(&log));
        let Log { mut good, .. } = log;
        good.sort_by(|a, b| score(a).total_cmp(&score(b)));
        let mut families = Vec::new();
        good.retain(|h| new_in(&mut families, h.ranked.family));
        good.truncate(q.keep);
        let Some(best) = good.first() else {
            answer.verdict = says("nothing_held").with("plans", tried.len());
            answer.because = bad;
            answer.plans.clear();
            answer.figure.marks.clear();
            return Ok(answer);
        };
        // Those that were not tried cost more in steady state already.
        let mut others: Vec<(f64, Plan)> = good[1..].iter().map(|h| (score(h), self.held_plan(h, best))).collect();
        for mut plan in answer.plans.drain(..).filter(|p| !tried.contains(&p.index)) {
            let Some(e) = self.space.estimate(plan.index, q.output, q.traffic) else { continue };
            let behind = (q.objective.score(&e) - score(best)) / score(best);
            plan.why = if behind == 0.0 { says("plan_level") } else { says("plan_behind").with("worse", behind.abs()) };
            others.push((q.objective.score(&e), plan));
        }
        others.sort_by(|a, b| a.0.total_cmp(&b.0));
        answer.plans.push(self.held_plan(best, best));
        answer.plans.extend(others.into_iter().map(|(_, plan)| plan).take(q.keep - 1));
        answer.assumptions.push(self.simulated(&best.met.met, best.comes));
        answer.assumptions.extend(bad);
        let words = held_words(best, &answer.plans[0]);
        Ok(self.marked(answer, Some(words)))
    }

    /// Whether more replicas would help: the traffic is somebody's, not as much as they take.
    pub(crate) fn traffic_is_given(&self) -> bool {
        matches!(self.question.traffic, Traffic::Rate(_) | Traffic::Users { .. })
    }

    /// Whether there is a traffic of which more can be told than its means.
    fn simulates(&self) -> bool {
        self.ask.is_met()
    }

    /// The same of a single plan: with as many replicas as its limits take, and as it is where none are enough.
    pub(crate) fn plan_met(&self, plan: Plan) -> Result<Plan, Error> {
        if !self.simulates() {
            return Ok(plan);
        }
        let Ok((met, comes)) = self.met_by(&plan)? else { return Ok(plan) };
        if !met.met.hold()
            && self.traffic_is_given()
            && let Some(u) = self.unit(plan.index)
            && let Some((steps, met)) = self.least(&u, u.load.steps(), true)?
            && let Ok(held) = self.settled(&u, steps, met)
        {
            return Ok(self.held_plan(&held, &held));
        }
        Ok(self.with_met(plan, &met, comes))
    }

    /// A deployment of another question as it was, simulated under this one's traffic; none where it cannot be.
    pub(super) fn alone(&self, running: &Running) -> Result<Option<Alone>, Error> {
        let Running { identity: old, replicas, sequences } = running;
        let replicas = *replicas;
        let unit = self.simulates().then(|| self.as_it_was(old)).flatten().and_then(|r| self.unit(r.index));
        let Some(Unit { index, load: Load::Open { rate, users, .. }, full }) = unit else { return Ok(None) };
        if !self.traffic_is_given() || self.staged_for(&self.ask.simulate, &self.chosen(index)).is_err() {
            return Ok(None);
        }
        let (q, load) = (&self.question, Load::Open { rate, replicas, users });
        let met = self.meets_with(index, load, Some(*sequences))?;
        let over = met.met.times.iter().filter(|t| !met.met.queue_grows && t.over(Times::limited_ms) > 1.0);
        let mut broken: Vec<Remark> = over.filter_map(limit).collect();
        let Some(estimate) = self.space.replicated(index, q.output, (replicas as f64, rate)) else { return Ok(None) };
        broken.extend(super::why::broken(q, &estimate, &OTHERS));
        if met.met.hold() && broken.is_empty() {
            let held = self.settled(&Unit { index, load, full }, 0, met).ok();
            return Ok(held.map(|held| Alone::Holds(Box::new(self.held_plan(&held, &held)))));
        }
        let plan = self.plan_beside(&Ranked { index, family: self.space.family(index), estimate }, None);
        Ok(Some(Alone::Breaks(Box::new(self.with_met(plan, &met, load.comes())), broken)))
    }

    /// The same in as many replicas as it takes, where they help.
    pub(super) fn in_more_replicas(&self, old: &Identity) -> Result<Option<Plan>, Error> {
        let Some(u) = self.as_it_was(old).and_then(|r| self.widest(r.index)) else { return Ok(None) };
        let Some((steps, met)) = self.least(&u, u.load.steps(), true)? else { return Ok(None) };
        let held = self.settled(&u, steps, met).ok();
        Ok(held.map(|held| self.held_plan(&held, &held)))
    }

    fn met_by(&self, plan: &Plan) -> Result<Result<(Run, Comes), Remark>, Error> {
        let (choice, q) = (self.chosen(plan.index), &self.question);
        let (replicas, rate) = (plan.replicas as f64, plan.throughput_tok_s / q.output);
        let Some(e) = self.space.replicated(plan.index, q.output, (replicas, rate)) else {
            return Ok(Err(says("no_room")));
        };
        if let Err(why) = self.staged_for(&self.ask.simulate, &choice) {
            return Ok(Err(why));
        }
        let load = self.load(&choice, &e);
        // As many users as are in flight never wait for a place.
        let met = if let Load::Closed { .. } = load {
            self.stage(&self.ask.simulate, &choice)?.run(load.comes()).map(|met| Run {
                met,
                sequences: choice.per_group,
                surely: None,
            })?
        } else {
            self.meets(plan.index, load)?
        };
        Ok(Ok((met, load.comes())))
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
        self.stage(asked, choice).map_err(|e| e.to_string().into())
    }

    /// The same at a load: with as many requests in flight as memory and engine hold, and where its tokens are too slow then,
    /// with as many as their mean allows.
    fn meets(&self, index: u64, load: Load) -> Result<Run, Error> {
        self.meets_with(index, load, None)
    }

    /// The same with so many requests in flight of a group at most, where that is said.
    fn meets_with(&self, index: u64, load: Load, sequences: Option<f64>) -> Result<Run, Error> {
        let (asked, own) = (&self.ask.simulate, self.chosen(index));
        let full = self.rungs(index).map(|(_, e)| e).max_by(|a, b| a.rate.total_cmp(&b.rate));
        let nearly = full.is_some_and(|e| Self::kept_free(load, &e) < FREE);
        let most = if self.ask.batch.is_some() { own.per_group } else { own.row.most().max(own.per_group) };
        let of = |sequences: f64, requests: u64| -> Result<Run, Error> {
            let choice = Choice { per_group: sequences, ..self.chosen(index) };
            let stage = Stage { requests, ..self.stage(asked, &choice)? };
            let surely = match self.pessimism(&choice) {
                None => None,
                Some((slower, later)) => {
                    let mut limits = stage.limits;
                    // First tokens may come later still than steps are slower.
                    limits[0] = limits[0].map(|l| AtMost { ms: l.ms / later, ..l });
                    Some(Stage { slower, limits, requests, ..self.stage(asked, &choice)? }.run(load.comes())?)
                }
            };
            // What does not hold at the pessimistic end needs no other run.
            let met = match &surely {
                Some(worse) if !worse.hold() => worse.clone(),
                _ => stage.run(load.comes())?,
            };
            Ok(Run { met, sequences, surely })
        };
        // What does not hold in a short run is not run longer.
        let run = |sequences: f64| match of(sequences, asked.requests)? {
            short if nearly && asked.settled > asked.requests && short.met.hold() => of(sequences, asked.settled),
            short => Ok(short),
        };
        if let Some(given) = sequences {
            return run(given);
        }
        let wide = run(most)?;
        let judged = wide.surely.as_ref().unwrap_or(&wide.met);
        let slow =
            [What::Tpot, What::E2e].iter().filter_map(|w| judged.of(*w)).any(|t| t.over(Times::limited_ms) > 1.0);
        // Users who may be kept waiting as long as it takes are not served by few places: somebody has to limit the wait.
        let [first, _, whole] = self.time_limits();
        let parked = matches!(load, Load::Open { users: Some(_), .. }) && first.is_none() && whole.is_none();
        let narrow = self.narrow(index).filter(|n| *n < most && slow && !parked && !wide.met.hold());
        let Some(fewer) = narrow else { return Ok(wide) };
        let narrow = run(fewer)?;
        Ok(if narrow.met.hold() { narrow } else { wide })
    }

    /// The most requests in flight of a group at which the mean time per token keeps its limit.
    fn narrow(&self, index: u64) -> Option<f64> {
        let (c, q) = (self.space.configuration(index), &self.question);
        let limit = q.limits.get(Bound::Tpot)?;
        let keeps = |level: &usize| {
            let at = self.space.index(&Configuration { level: *level, ..c });
            self.space.estimate(at, q.output, Traffic::One).is_some_and(|e| e.tpot <= limit)
        };
        let level = (0..self.space.levels).rev().find(keeps)?;
        Some(self.concurrency(&Configuration { level, ..c }))
    }

    /// Levels of a deployment that exist, with what one replica does there.
    fn rungs(&self, index: u64) -> impl Iterator<Item = (u64, Estimate)> {
        let c = self.space.configuration(index);
        (0..self.space.levels).filter_map(move |level| {
            let at = self.space.index(&Configuration { level, ..c });
            let estimate = self.space.estimate(at, self.question.output, Traffic::One)?;
            (!self.space.outruns(at)).then_some((at, estimate))
        })
    }

    /// A plan with what its users met: times, requests in flight, what it is started with.
    fn with_met(&self, mut plan: Plan, met: &Run, comes: Comes) -> Plan {
        let choice = self.chosen(plan.index);
        let s = self.ask.scale.widths(&choice.row.of.ready);
        let mean = |what| met.met.of(what).map_or(0.0, |t| t.mean_ms);
        let [ttft, tpot, e2e] = [What::Ttft, What::Tpot, What::E2e].map(mean);
        let output = self.ask.requests.output;
        plan.ttft_ms = Range::of(ttft, s.ttft);
        plan.tpot_ms = Range::of(tpot, s.tpot);
        plan.e2e_ms = Range::of(e2e, s.tpot);
        plan.tok_s_per_user = plan.tpot_ms.inverse().times(1e3);
        let replicas = plan.replicas as f64;
        if let Comes::Users { users, think } = comes {
            // Users who wait longer ask less often: N = X (R + Z).
            let all = self.ask.workload.users.map_or(users as f64 * replicas, |(all, _)| all);
            let rate = all / (e2e / 1e3 + think);
            if let Some(e) = self.space.replicated(plan.index, output, (replicas, rate)) {
                (plan.throughput_tok_s, plan.joules_per_token) = (e.throughput, e.joules);
                plan.usd_per_mtok = Range::of(e.usd_per_mtok, s.throughput);
            }
        }
        let rate = plan.throughput_tok_s / output;
        let full = self.rungs(plan.index).map(|(_, e)| e.rate).fold(0.0, f64::max).max(rate / replicas);
        plan.busy = rate / (full * replicas);
        plan.tok_s_per_chip = Range::of(full * output / plan.chips_per_replica as f64, s.throughput);
        // What is in flight is what comes times how long it stays.
        plan.concurrency = rate * e2e / 1e3;
        plan.concurrency_per_group = plan.concurrency / (replicas * choice.instances * choice.row.on().groups());
        plan.sequences = met.sequences;
        let started = Choice { per_group: met.sequences, ..choice };
        plan.launch = self.launch(&started);
        if plan.handover.is_some()
            && let Some(e) = self.space.replicated(plan.index, output, (replicas, rate))
        {
            let [ttft, tpot, e2e] = [ttft, tpot, e2e].map(|ms| ms / 1e3);
            plan.handover = self.handover(&started, &Estimate { ttft, tpot, e2e, ..e });
        }
        plan.sure = plan.sure.map(|sure| match (&met.surely, self.pessimism(&started)) {
            (Some(worse), Some((_, later))) => {
                let at = |what| worse.of(what).map_or(0.0, |t| t.mean_ms);
                super::Sure { ttft_ms: at(What::Ttft) * later, tpot_ms: at(What::Tpot), e2e_ms: at(What::E2e), ..sure }
            }
            _ => sure,
        });
        plan.percentiles = Some(met.met.clone());
        plan
    }

    fn held(&self, mut answer: Answer) -> Result<Answer, Error> {
        // What moving a limit on a mean is worth says nothing of one that is simulated.
        answer.shadow_prices.clear();
        let mut log = Log::default();
        self.try_best(&answer.plans, &mut log)?;
        if self.costs_are_known() && !self.made.rows.is_empty() {
            self.outrun().try_cheaper(&mut log, [TRIED, LEVEL])?;
        }
        let searched = self.searched(&log);
        let Log { mut good, mut bad, out, tried, left } = log;
        let out = out.into_iter().map(|(why, n)| says("held_left_out").with("plans", n).with("why", why));
        if tried == 0 && answer.plans.is_empty() {
            answer.because.extend(out);
            return Ok(answer);
        }
        let score = |h: &Held| self.question.objective.score(&h.ranked.estimate);
        good.sort_by(|a, b| {
            let first = score(a).total_cmp(&score(b)).then(a.used().total_cmp(&b.used()));
            first.then(a.ranked.index.cmp(&b.ranked.index))
        });
        let mut families = Vec::new();
        good.retain(|h| new_in(&mut families, h.ranked.family));
        good.truncate(self.question.keep);
        if tried > 0 {
            answer.assumptions.push(searched);
        }
        if !good.is_empty() {
            answer.assumptions.retain(|a| a.says != "steady_means");
        }
        answer.assumptions.extend(good.first().map(|h| self.simulated(&h.met.met, h.comes)));
        let Some(best) = good.first() else {
            let out: Vec<Remark> = out.collect();
            answer.verdict = match tried {
                0 => says("nothing_tried").with("plans", answer.plans.len()),
                n => says("nothing_held").with("plans", n).with("left", Some(left).filter(|n| *n > 0)),
            };
            bad.truncate(PLANS);
            answer.because = bad.into_iter().chain(out).collect();
            answer.plans.clear();
            answer.figure.marks.clear();
            return Ok(answer);
        };
        let first = self.held_plan(best, best);
        let words = held_words(best, &first);
        answer.plans = std::iter::once(first).chain(good.iter().skip(1).map(|h| self.held_plan(h, best))).collect();
        answer.relaxations.clear();
        answer.because.clear();
        answer.gaps = crate::sides::gaps(&self.ask.scale, self.question.objective, &answer.plans);
        answer.assumptions.extend(out);
        answer.part_of_host = self.part_held(best)?;
        Ok(self.marked(answer, Some(words)))
    }

    /// A unit that holds, as a plan: at the level that it is met at.
    fn settled(&self, u: &Unit, steps: u64, met: Run) -> Result<Held, Remark> {
        let (q, load) = (&self.question, u.load.less(steps));
        let mean = |what| met.met.of(what).map_or(0.0, |t| t.mean_ms / 1e3);
        let [ttft, tpot, e2e] = [What::Ttft, What::Tpot, What::E2e].map(mean);
        let (rate, replicas) = match (load, load.comes()) {
            // Users who wait longer ask less often: N = X (R + Z).
            (Load::Open { replicas, users: Some(users), .. }, _) => (users.all / (e2e + users.think), replicas),
            (_, Comes::Open { rate, replicas }) => (rate, replicas),
            _ => return Err(says("no_room")),
        };
        let choice = self.chosen(u.index);
        let inside = rate / replicas as f64 * e2e / (choice.instances * choice.row.on().groups());
        let off = |index: u64| (self.chosen(index).per_group - inside).abs();
        let near = self.rungs(u.index).map(|(index, _)| index).min_by(|a, b| off(*a).total_cmp(&off(*b)));
        let index = near.unwrap_or(u.index);
        let Some(estimate) = self.space.replicated(index, q.output, (replicas as f64, rate)) else {
            return Err(says("no_room"));
        };
        let estimate = Estimate { ttft, tpot, e2e, ..estimate };
        let broken: Vec<Remark> = super::why::broken(q, &estimate, &OTHERS);
        if !broken.is_empty() {
            let needs = says("held_beyond").with("replicas", replicas).with("chips", estimate.chips);
            return Err(needs.with("limits", broken));
        }
        let by_means = || {
            let c = self.space.configuration(u.index);
            let keeps = |e: &Estimate| TIMES.iter().all(|b| q.limits.get(*b).is_none_or(|limit| b.amount(e) <= limit));
            let all = (0..self.space.levels).filter_map(|level| {
                let at = self.space.index(&Configuration { level, ..c });
                self.space.estimate(at, q.output, q.traffic).filter(keeps)
            });
            all.map(|e| e.replicas as u64).min()
        };
        let more = self.coming(&u.full).and_then(|_| by_means()).map(|n| replicas.saturating_sub(n));
        let ranked = Ranked { index, family: self.space.family(index), estimate };
        Ok(Held { ranked, met, comes: load.comes(), more })
    }

    fn held_plan(&self, h: &Held, best: &Held) -> Plan {
        let score = |h: &Held| self.question.objective.score(&h.ranked.estimate);
        let plan = self.plan_beside(&h.ranked, Some(&best.ranked));
        let mut plan = self.with_met(plan, &h.met, h.comes);
        plan.why = if h.ranked.index == best.ranked.index {
            says("held_by_traffic").with("free", h.more.filter(|n| *n > 0).map(|_| 1.0 - plan.busy))
        } else if score(h) == score(best) {
            says("held_level")
        } else {
            says("plan_behind").with("worse", ((score(h) - score(best)) / score(best)).abs())
        };
        plan
    }

    /// Why a unit does not do, with what it misses in as many replicas as break no other limit.
    fn missed(&self, u: &Unit, why: Remark) -> Result<Remark, Error> {
        if why.says != "held_beyond" {
            return Ok(why);
        }
        let Some(steps) = self.within(u, f64::INFINITY, true) else { return Ok(why) };
        let load = u.load.less(steps);
        let met = self.meets(u.index, load)?.met;
        let worst = met.times.iter().max_by(|a, b| a.over(Times::limited_ms).total_cmp(&b.over(Times::limited_ms)));
        let missed = worst.filter(|t| t.over(Times::limited_ms) > 1.0).and_then(time);
        let (Load::Open { replicas, .. } | Load::Part { replicas, .. }) = load else { return Ok(why) };
        let behind = (met.queue_grows || missed.is_none()).then_some(replicas);
        let missed = missed.filter(|_| behind.is_none());
        Ok(why.with("behind", behind).with("fewer", missed.is_some().then_some(replicas)).with("missed", missed))
    }

    /// How far off a unit is at the least load tried.
    fn never(&self, u: &Unit) -> Result<Remark, Error> {
        let least = u.load.less(u.load.steps());
        let met = self.meets(u.index, least)?.met;
        let worst = met.times.iter().max_by(|a, b| a.over(Times::limited_ms).total_cmp(&b.over(Times::limited_ms)));
        Ok(says("held_never").with("most", 1.0 - 1.0 / FEWEST as f64).with("worst", worst.and_then(time)))
    }
}

/// Whether a family is met for the first time.
fn new_in(families: &mut Vec<u64>, family: u64) -> bool {
    let new = !families.contains(&family);
    if new {
        families.push(family);
    }
    new
}

/// What holds, and how much room that takes.
fn held_words(h: &Held, plan: &Plan) -> Remark {
    let times: Vec<Remark> = h.met.met.times.iter().filter_map(time).collect();
    let said = says("plan_held").with("times", times).with("free", 1.0 - plan.busy).with("share", h.met.met.goodput);
    said.with("more", h.more.filter(|n| *n > 0)).with("enough", h.more == Some(0))
}

/// What a limit on a time is on.
fn bound_of(what: What) -> Option<Bound> {
    match what {
        What::Ttft => Some(Bound::Ttft),
        What::Tpot => Some(Bound::Tpot),
        What::E2e => Some(Bound::E2e),
        _ => None,
    }
}

/// The limit that a time is held against.
fn limit(t: &Times) -> Option<Remark> {
    Some(super::why::limit(bound_of(t.metric)?, t.limit_ms? / 1e3).with("percentile", t.percentile))
}

/// A time beside its limit, and what that is on.
fn time(t: &Times) -> Option<Remark> {
    let said = says("held_time").with("what", name(t.metric)).with("percentile", t.percentile);
    let said = said.with("mean", t.percentile.is_none()).with("value", t.limited_ms() / 1e3);
    Some(said.with("limit", t.limit_ms? / 1e3))
}

mod search;
#[cfg(test)]
mod tests;
