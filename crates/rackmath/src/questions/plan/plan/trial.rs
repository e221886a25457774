//! The best plans under the traffic they were made for, request by request: what holds at p99, and with how much head-room.
//!
//! Replicas that take turns at requests that come at random are all alike: each sees every n-th of them, gaps of a gamma law
//! of shape n. One replica is simulated, with all its instances and groups.

use super::worked::{Choice, Worked};
use super::{Plan, Request, prepare::Entry, prepare::in_order};
use crate::desk::prelude::*;
use crate::simulate::{self, Comes, Percentiles, Pool, SEED, Stage, Times, What};
use rackmath_sim::workload::Length;
use rackmath_theory::deployment::Deployment;
use rackmath_theory::lengths;
use rackmath_theory::plan::{Bound, Estimate};

/// Plans that are simulated, the best first.
const PLANS: usize = 3;
const REQUESTS: u64 = 4000;
const MOST_REQUESTS: u64 = 1_000_000;
/// Runs in search of the head-room that is needed.
pub(super) const RUNS: u64 = 6;
/// The most head-room that is tried: a quarter of the load.
pub(super) const FEWEST: u64 = 4;
/// Parts into which a load is cut where it may be as large as it likes.
pub(super) const PARTS: u64 = 64;

/// What the best plans do under their traffic, simulated.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Simulated {
    /// Requests of a run that count.
    pub requests: u64,
    /// Seed of everything drawn.
    pub seed: u64,
    /// The plans, the best first.
    pub trials: Vec<Trial>,
    /// What the runs assume.
    pub assumptions: Vec<Remark>,
}

/// One plan, simulated.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Trial {
    /// The plan's number in the space.
    pub index: u64,
    /// The deployment: what tells it from the others.
    pub deployment: Remark,
    /// What held.
    pub verdict: Remark,
    /// What was measured; none where it cannot be simulated.
    pub measured: Option<Measured>,
}

/// What the users of a plan met.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Measured {
    /// Times by metric, with their limits.
    pub times: Vec<Times>,
    /// Share of the requests that meet all limits on times, where there are some.
    pub goodput: Option<f64>,
    /// Whether the means meet them.
    pub mean_holds: bool,
    /// Whether the 90th percentiles meet them.
    pub p90_holds: bool,
    /// Whether the 99th percentiles meet them.
    pub p99_holds: bool,
    /// Whether more comes than is served.
    pub queue_grows: bool,
    /// Share of the load that the plan keeps free.
    pub headroom: f64,
    /// The least that was found at which the 99th percentiles hold; none where it is not enough.
    pub needed: Option<Needed>,
    /// Requests in flight of a group with which they hold as it is, where more than the plan's are enough.
    pub sequences: Option<u64>,
    /// Runs this took.
    pub runs: u64,
}

/// Head-room with which a plan holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Needed {
    /// Share of the load that is kept free.
    pub headroom: f64,
    /// Replicas.
    pub replicas: u64,
    /// Users of a replica, where as many requests come as are served.
    pub users: Option<u64>,
    /// Chips of all.
    pub chips: u64,
    /// Whether so many chips are on offer.
    pub on_offer: bool,
}

/// How simulations are to be made, and whether the best few are to be tried at p99.
pub(super) struct Asked {
    pub requests: u64,
    /// The same of a replica that is nearly full, where nobody said how many.
    pub settled: u64,
    pub seed: u64,
    acceptance: f64,
    pub trials: bool,
}

impl Asked {
    pub(super) fn new(r: &Request) -> Result<Self, Error> {
        let requests = r.simulate_requests.unwrap_or(REQUESTS);
        let expected = format!("100 to {}", grouped(MOST_REQUESTS as f64));
        refuse_if(!(100..=MOST_REQUESTS).contains(&requests), "simulate_requests", requests, expected)?;
        let (seed, acceptance) = (r.simulate_seed.unwrap_or(SEED), r.acceptance.unwrap_or(1.0));
        let settled = r.simulate_requests.unwrap_or(simulate::SETTLED);
        Ok(Self { requests, settled, seed, acceptance, trials: r.simulate })
    }
}

/// People who each wait for an answer, think and ask again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Users {
    pub all: f64,
    /// Seconds.
    pub think: f64,
}

impl Users {
    /// Those of one of so many replicas.
    pub(super) fn of(self, replicas: u64) -> u64 {
        (self.all / replicas as f64).ceil().max(1.0) as u64
    }
}

/// What comes to the replicas of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) enum Load {
    /// A rate for so many replicas, or the users whose rate it is.
    Open { rate: f64, replicas: u64, users: Option<Users> },
    /// So many [`PARTS`] of all that so many replicas serve.
    Part { full: f64, replicas: u64, parts: u64 },
    /// Users of a replica, of so many when it is full, who each ask again at once.
    Closed { users: u64, full: u64 },
}

impl Load {
    /// The same with less for a replica, by so many steps.
    pub(super) fn less(self, steps: u64) -> Self {
        match self {
            Self::Part { full, replicas, parts } => Self::Part { full, replicas, parts: parts - steps },
            Self::Open { rate, replicas, users } => Self::Open { rate, replicas: replicas + steps, users },
            Self::Closed { users, full } => Self::Closed { users: users - steps, full },
        }
    }

    pub(super) fn steps(self) -> u64 {
        match self {
            Self::Part { parts, .. } => parts - PARTS / FEWEST,
            // More replicas than users serve nobody.
            Self::Open { replicas, users: Some(u), .. } => {
                (replicas * (FEWEST - 1)).min((u.all.ceil() as u64).saturating_sub(replicas))
            }
            Self::Open { replicas, .. } => replicas * (FEWEST - 1),
            Self::Closed { users, .. } => users - users.div_ceil(FEWEST),
        }
    }

    /// Steps to half the difference of what two loads leave of this one.
    pub(super) fn between(self, low: u64, high: u64) -> u64 {
        let middle = match self {
            Self::Open { replicas, .. } => {
                let left = |steps: u64| replicas as f64 / (replicas + steps) as f64;
                (replicas as f64 / f64::midpoint(left(low), left(high)) - replicas as f64) as u64
            }
            Self::Part { .. } | Self::Closed { .. } => u64::midpoint(low, high),
        };
        middle.clamp(low + 1, high - 1)
    }

    pub(super) fn comes(self) -> Comes {
        match self {
            Self::Open { replicas, users: Some(u), .. } => Comes::Users { users: u.of(replicas), think: u.think },
            Self::Open { rate, replicas, .. } => Comes::Open { rate, replicas },
            Self::Part { full, replicas, parts } => Comes::Open { rate: full * parts as f64 / PARTS as f64, replicas },
            Self::Closed { users, .. } => Comes::Users { users, think: 0.0 },
        }
    }
}

/// What a run must keep to count as held.
type Holds = fn(&Percentiles) -> bool;

/// Whether the 99th percentiles keep the limits.
fn p99_holds(p: &Percentiles) -> bool {
    !p.queue_grows && p.times.iter().all(|t| t.over(|t| t.p99_ms) <= 1.0)
}

impl Measured {
    fn of(met: &Percentiles) -> Self {
        let counted = |t: &&Times| matches!(t.metric, What::Ttft | What::Tpot | What::E2e);
        let times: Vec<Times> = met.times.iter().filter(counted).copied().collect();
        let holds = |time: fn(&Times) -> f64| !met.queue_grows && times.iter().all(|t| t.over(time) <= 1.0);
        Self {
            goodput: met.goodput,
            mean_holds: holds(|t| t.mean_ms),
            p90_holds: holds(|t| t.p90_ms),
            p99_holds: holds(|t| t.p99_ms),
            queue_grows: met.queue_grows,
            times,
            headroom: 0.0,
            needed: None,
            sequences: None,
            runs: 1,
        }
    }
}

/// The least so many steps off a load at which it holds, as far as a few runs can tell, with what was met there; and how many
/// runs they were.
fn search(stage: &Stage, load: Load, holds: Holds) -> Result<(Option<(u64, Percentiles)>, u64), Error> {
    let (mut low, mut runs, mut found) = (0, 0, None);
    let mut high = load.steps();
    if high == 0 {
        return Ok((None, 0));
    }
    let mut at = high;
    while runs < RUNS {
        runs += 1;
        let met = stage.run(load.less(at).comes())?;
        if holds(&met) {
            (high, found) = (at, Some((at, met)));
        } else if at == load.steps() {
            return Ok((None, runs));
        } else {
            low = at;
        }
        if high - low < 2 {
            break;
        }
        at = load.between(low, high);
    }
    Ok((found, runs))
}

/// Lengths of a distribution, each of its shares as likely.
fn length(of: &lengths::Drawn) -> Length {
    let tokens = |n: f64| n.round().max(1.0) as u32;
    if of.variance > 0.0 {
        Length::Listed(of.shares.iter().map(|n| tokens(*n)).collect())
    } else {
        Length::Fixed(tokens(of.mean))
    }
}

impl Worked {
    /// Adds what the best few do under their traffic, where that is asked for.
    pub(super) fn simulate(&self, mut answer: super::Answer) -> Result<super::Answer, Error> {
        let asked = &self.ask.simulate;
        if !asked.trials || answer.plans.is_empty() {
            return Ok(answer);
        }
        let best = &answer.plans[..answer.plans.len().min(PLANS)];
        let trials = in_order(best, &self.effort, |plan| self.trial(asked, plan))?;
        let fails = |t: &Trial| t.measured.as_ref().is_some_and(|m| !m.p99_holds);
        let holds = |t: &&Trial| t.measured.as_ref().is_some_and(|m| m.p99_holds);
        let other = trials.iter().skip(1).find(holds).filter(|_| fails(&trials[0]));
        let verdict = says("plan_simulated").with("verdict", &trials[0].verdict);
        let verdict = verdict.with("other", other.map(|t| &t.deployment));
        answer.verdict = answer.verdict.with("simulated", verdict);
        let Asked { requests, seed, .. } = *asked;
        answer.simulated = Some(Simulated { requests, seed, assumptions: self.staged(asked, best), trials });
        Ok(answer)
    }

    /// A plan in its replicas, started as its launch line does.
    fn trial(&self, asked: &Asked, plan: &Plan) -> Result<Trial, Error> {
        let (index, q) = (plan.index, &self.question);
        let choice = Choice { per_group: plan.sequences, ..self.chosen(index) };
        let deployment = self.words(index);
        let not = |why: Remark| {
            let verdict = says("trial_not").with("why", why);
            Ok(Trial { index, deployment: deployment.clone(), verdict, measured: None })
        };
        let served = (plan.replicas as f64, plan.throughput_tok_s / q.output);
        let Some(e) = self.space.replicated(index, q.output, served) else { return not(says("no_room")) };
        let stage = match self.staged_for(asked, &choice) {
            Ok(stage) => stage,
            Err(why) => return not(why),
        };
        // What it could serve when full is that of all its places.
        let e = Estimate { rate: plan.tok_s_per_chip.value * e.unit_chips / q.output, ..e };
        let load = self.load(&choice, &e);
        let mut measured = Measured::of(&stage.run(load.comes())?);
        measured.headroom = Self::kept_free(load, &e);
        if !measured.p99_holds && measured.goodput.is_some() {
            // A plan takes the fewest requests in flight that do in the mean; bursts may want more.
            let most = choice.row.most().max(choice.per_group);
            if most > choice.per_group && choice.prompts.is_none() && matches!(load, Load::Open { .. }) {
                let wide = self.stage(asked, &Choice { per_group: most, ..self.chosen(index) })?;
                measured.sequences = p99_holds(&wide.run(load.comes())?).then_some(most as u64);
                measured.runs += 1;
            }
            let (found, runs) = search(&stage, load, p99_holds)?;
            measured.runs += runs;
            measured.needed = found.map(|(steps, _)| self.needed(load.less(steps), &e));
        } else if measured.goodput.is_some() {
            measured.needed = Some(self.needed(load, &e));
        }
        let verdict = verdict(&measured, load);
        Ok(Trial { index, deployment, verdict, measured: Some(measured) })
    }

    /// What comes to the replicas of a plan: the rate it is for, or as many users as it holds.
    pub(super) fn load(&self, choice: &Choice, e: &Estimate) -> Load {
        if let Some(rate) = self.coming(e) {
            let users = self.ask.workload.users.map(|(all, think)| Users { all, think });
            return Load::Open { rate, replicas: e.replicas.max(1.0) as u64, users };
        }
        let users = inside(choice);
        Load::Closed { users, full: users }
    }

    pub(super) fn kept_free(load: Load, e: &Estimate) -> f64 {
        let left = match load {
            Load::Part { parts, .. } => parts as f64 / PARTS as f64,
            Load::Open { rate, replicas, .. } => rate / (e.rate * replicas as f64),
            Load::Closed { users, full } => users as f64 / full as f64,
        };
        (1.0 - left).max(0.0)
    }

    fn needed(&self, load: Load, e: &Estimate) -> Needed {
        let (replicas, users) = match load {
            Load::Open { replicas, .. } | Load::Part { replicas, .. } => (replicas, None),
            Load::Closed { users, .. } => (e.replicas as u64, Some(users)),
        };
        let taken = e.taken / e.replicas * replicas as f64;
        Needed {
            headroom: Self::kept_free(load, e),
            replicas,
            users,
            chips: (e.unit_chips * replicas as f64) as u64,
            on_offer: self.question.limits.get(Bound::Chips).is_none_or(|most| taken <= most),
        }
    }

    pub(super) fn stage(&self, asked: &Asked, choice: &Choice) -> Result<Stage<'_>, Error> {
        let (ask, w) = (&*self.ask, &self.ask.workload);
        let lengths = [length(&w.input), length(&w.output)];
        let longest = w.longest();
        let pool = |row: &Entry, sequences: f64, instances: f64, drafts: f64| -> Result<Pool, Error> {
            let (ready, on) = (row.ready(), row.on());
            let most = (longest as u64 + 16).max(simulate::longest(on) as u64);
            let traffic = simulate::Traffic { isl: w.input.mean, osl: w.output.mean, ..simulate::Traffic::default() };
            let asked = simulate::Request { traffic, ..started(on, sequences.ceil() as u64, most, drafts as u64) };
            let settings = simulate::of_engine(&asked, &ready)?;
            simulate::staged(on, &settings)?;
            let room = f64::from(settings.longest());
            refuse_if(longest > room, "isl", longest, format!("at most {} tokens in and out", grouped(room)))?;
            let engines = (instances * on.groups()) as usize;
            Ok(Pool { ready, settings, engines })
        };
        let row = choice.row;
        let mut pools = vec![pool(row, choice.per_group, choice.instances, row.drafts.0)?];
        let mut send = 0.0;
        if let Some(p) = &choice.prompts {
            // As many prompts at a time as the launch line allows.
            let prompts = ask.prompts_at_once(p.row);
            pools.insert(0, pool(p.row, prompts, p.instances, 0.0)?);
            send = self.space.sending(p.at, choice.c.row) / w.input.mean;
        }
        Ok(Stage {
            send,
            slower: 1.0,
            cached: w.requests.cached,
            lengths,
            longest: (longest as u32).saturating_add(16),
            accepted: (row.drafts.0 > 0.0).then_some(asked.acceptance),
            inside: inside(choice),
            limits: self.time_limits(),
            requests: asked.requests,
            seed: asked.seed,
            effort: &self.effort,
            pools,
        })
    }

    /// What the runs assume.
    fn staged(&self, asked: &Asked, plans: &[Plan]) -> Vec<Remark> {
        let w = &self.ask.workload;
        let coming = match (w.mean_rate, w.users) {
            (Some(rate), _) => says("trial_open").with("rate", rate * w.peak),
            (None, Some((users, think))) => says("trial_people").with("users", users).with("asking", asking(think)),
            (None, None) => says("trial_closed"),
        };
        let choices: Vec<Choice> = plans.iter().map(|plan| self.chosen(plan.index)).collect();
        let mut all = vec![
            coming.with("requests", asked.requests).with("seed", asked.seed),
            says(if w.varies() { "trial_drawn" } else { "trial_fixed" }),
            says("trial_launched"),
        ];
        if choices.iter().any(|c| simulate::together(c.row.on()).is_some()) {
            all.push(says("trial_groups"));
        }
        if choices.iter().any(|c| c.prompts.is_some()) {
            all.push(says("trial_pools"));
        }
        all.push(says("trial_search").with("runs", RUNS).with("most", 1.0 - 1.0 / FEWEST as f64));
        all
    }
}

/// How a group is started: for so many requests of so many tokens at most, by the flags of its engine.
fn started(on: &Deployment, sequences: u64, longest: u64, drafts: u64) -> simulate::Request {
    let (sequences, longest) = (Some(sequences), Some(longest));
    let flags = simulate::Flags { num_speculative_tokens: drafts, ..simulate::Flags::default() };
    let plain = simulate::Request { flags: flags.clone(), ..simulate::Request::default() };
    match on.engine.family.as_str() {
        "sglang" => simulate::Request {
            sglang: simulate::Sglang { max_running_requests: sequences, context_length: longest, ..Default::default() },
            ..plain
        },
        "trtllm" => simulate::Request {
            trtllm: simulate::Trtllm { max_batch_size: sequences, max_seq_len: longest, ..Default::default() },
            ..plain
        },
        _ => simulate::Request {
            flags: simulate::Flags { max_num_seqs: sequences, max_model_len: longest, ..flags },
            ..plain
        },
    }
}

/// Requests in flight in a replica.
fn inside(choice: &Choice) -> u64 {
    (choice.per_group * choice.row.on().groups() * choice.instances).round().max(1.0) as u64
}

/// How soon users ask again.
pub(super) fn asking(think: f64) -> Remark {
    if think > 0.0 { says("asks_after").with("think", think) } else { says("asks_at_once") }
}

pub(super) fn name(what: What) -> Remark {
    says(match what {
        What::Ttft => "first_tokens",
        What::E2e => "whole_requests",
        _ => "times_per_token",
    })
}

fn verdict(m: &Measured, load: Load) -> Remark {
    let times = |limited: bool| {
        let some = m.times.iter().filter(move |t| !limited || t.limit_ms.is_some());
        let one = |t: &Times| {
            let limit = t.limit_ms.map(|ms| ms / 1e3);
            says("trial_time").with("what", name(t.metric)).with("p99", t.p99_ms / 1e3).with("limit", limit)
        };
        some.map(one).collect::<Vec<_>>()
    };
    let worst = |time: fn(&Times) -> f64| m.times.iter().max_by(|a, b| a.over(time).total_cmp(&b.over(time)));
    let Some(goodput) = m.goodput else {
        return says(if m.queue_grows { "trial_grows" } else { "trial_free" }).with("times", times(false));
    };
    if m.p99_holds {
        return says("trial_holds").with("times", times(true)).with("share", goodput).with("free", m.headroom);
    }
    let needs = match (m.needed, load) {
        (None, _) => says("trial_never").with("most", 1.0 - 1.0 / FEWEST as f64),
        (Some(n), Load::Open { replicas, .. } | Load::Part { replicas, .. }) => says("trial_replicas")
            .with("more", n.replicas - replicas)
            .with("headroom", n.headroom)
            .with("beyond", !n.on_offer),
        (Some(n), Load::Closed { full, .. }) => {
            says("trial_users").with("users", n.users).with("full", full).with("headroom", n.headroom)
        }
    };
    let id = match m {
        _ if m.queue_grows => "trial_grows",
        _ if m.mean_holds => "trial_tail",
        _ => "trial_mean",
    };
    let [tail, mean] = [worst(|t| t.p99_ms), worst(|t| t.mean_ms)];
    says(id)
        .with("p90", m.p90_holds)
        .with("what", tail.filter(|t| m.mean_holds || mean != Some(*t)).map(|t| name(t.metric)))
        .with("over", tail.map(|t| t.over(|t| t.p99_ms)))
        .with("mean_what", mean.map(|t| name(t.metric)))
        .with("mean_over", mean.map(|t| t.over(|t| t.mean_ms)))
        .with("share", goodput)
        .with("sequences", m.sequences)
        .with("needs", needs)
}

#[cfg(test)]
mod tests;
