//! Attention groups of one deployment: each has its own scheduler and cache, and all take every step together, because they
//! share their experts.
//!
//! $$ t = \max_g t_g(w_g;\ r_1, \dots, r_n) $$
//!
//! A step lasts as long as that of the slowest group, whose experts and exchange are sized by the rows r of all. A group
//! without work takes a dummy step as long as another has some. When nobody has work, groups step on until they next look
//! whether anybody has, and pause; the next request starts them all.
//!
//! The steps are those of [`Replica`], chosen by each group's scheduler and ended by the one clock: with one group and a look
//! at every step, a bundle is that replica.
//! Steps in which all groups only decode are timed one by one, and the schedulers are told of them together: the same to the
//! nanosecond, and the same free lists.
//! Ignores: messages between the groups' hosts; dummy steps while all that is left to do waits for tiers below; a request that arrives while the groups pause starts them at once.
//! Source: vLLM `v1/engine/core.py` (`DPEngineCoreProc`), SGLang `managers/scheduler.py` (idle batches); numbers in
//! `catalog/engines`, table `[groups]`.

use super::{Composed, Replica, Sink, Timing};
use crate::Ns;
use crate::clock::{Clock, Host, Stretch, Took, whole};
use crate::engine::Loads;
use rackmath_theory::timer::Beside;

/// How groups go along with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lockstep {
    /// Steps between two looks at whether any group has work.
    pub sync: u64,
    /// Tokens in the step of a group without work.
    pub dummy: u32,
}

#[derive(Clone, Debug)]
pub struct Bundle {
    rules: Lockstep,
    /// Steps since the groups last paused.
    steps: u64,
    /// What each group's step holds; none of one without work.
    chosen: Vec<Option<Composed>>,
}

impl Bundle {
    pub fn new(rules: Lockstep) -> Self {
        Self { rules, steps: 0, chosen: Vec::new() }
    }

    /// As [`Replica::advance`], for all groups.
    pub fn advance(
        &mut self,
        groups: &mut [Replica],
        clock: &mut impl Clock,
        to: Ns,
        stop: bool,
        sink: &mut impl Sink,
    ) -> Option<Ns> {
        loop {
            let due = groups.iter().filter_map(|g| g.due).min().unwrap_or(Ns::MAX);
            // Of steps that end together, the first group's first.
            let ended = groups.iter().enumerate().filter_map(|(at, g)| Some((g.ended()?, at))).min();
            if let Some((end, at)) = ended.filter(|(end, _)| *end <= due && *end <= to) {
                sink.group(at);
                if groups[at].apply(sink) && stop {
                    return Some(end);
                }
            } else if due < to {
                if !self.pass(groups, clock, (due, to), sink) {
                    self.call(groups, clock, due, sink);
                }
            } else {
                return None;
            }
        }
    }

    fn call(&mut self, groups: &mut [Replica], clock: &mut impl Clock, now: Ns, sink: &mut impl Sink) {
        for g in groups.iter_mut().filter(|g| !g.gone.is_empty()) {
            g.drop_gone();
        }
        let busy = |g: &Replica| g.running() + g.waiting() > 0;
        let work = groups.iter().any(busy);
        if !work && self.steps.is_multiple_of(self.rules.sync) {
            self.steps = 0;
            for g in groups.iter_mut() {
                g.engine.rest();
            }
            Self::wait(groups, now);
            return;
        }
        self.chosen.clear();
        for g in groups.iter_mut() {
            let given = busy(g) && g.choose(now);
            if !given && !busy(g) {
                g.engine.rest();
            }
            self.chosen.push(given.then(|| g.composed()));
        }
        if work && self.chosen.iter().all(Option::is_none) {
            Self::wait(groups, now);
            return;
        }
        self.steps += 1;
        let step = self.time(groups, clock, now);
        let due = groups[0].due_after(now, &step);
        for (at, g) in groups.iter_mut().enumerate() {
            sink.group(at);
            self.take(at, g, now, &step, sink);
            (g.device, g.due) = (step.end, Some(due));
        }
    }

    /// Steps in which groups only decode, from a call on and as far as calls come before the end of a time: each is timed as
    /// by itself, and the schedulers are told of all at once. False where there are none.
    fn pass(&mut self, groups: &mut [Replica], clock: &mut impl Clock, time: (Ns, Ns), sink: &mut impl Sink) -> bool {
        let most = groups.iter().filter_map(Replica::steady).min().unwrap_or(0);
        if most == 0 || groups.iter().all(|g| g.running() == 0) {
            return false;
        }
        self.chosen.clear();
        self.chosen.extend(groups.iter().map(Replica::decoding));
        let (mut now, to) = time;
        let mut steps = 0;
        while steps < most && now < to {
            let step = self.time(groups, clock, now);
            let due = groups[0].due_after(now, &step);
            for (at, g) in groups.iter_mut().enumerate() {
                (g.device, g.due) = (step.end, Some(due));
                let took = step.end - step.start;
                let Some(c) = &mut self.chosen[at] else {
                    (g.totals.dummies, g.totals.dummy) = (g.totals.dummies + 1, g.totals.dummy + took);
                    continue;
                };
                (g.totals.steps, g.totals.busy) = (g.totals.steps + 1, g.totals.busy + took);
                c.context += u64::from(c.decodes);
                sink.group(at);
                sink.gaps(step.start, step.gap, c.decodes);
                sink.steps(step.start, step.end, c.decodes, 0);
            }
            (steps, now) = (steps + 1, due);
        }
        self.steps += u64::from(steps);
        for g in groups.iter_mut().filter(|g| g.running() > 0) {
            g.pass(steps);
        }
        true
    }

    /// Nothing can be given before something under way has ended, or something that is fetched has come.
    fn wait(groups: &mut [Replica], now: Ns) {
        for g in groups.iter_mut() {
            g.take_up(now);
        }
        let ends = groups.iter().filter_map(|g| g.flights.back().map(|f| f.end).or(g.again(now))).max();
        let comes = groups.iter().filter_map(|g| g.engine.comes());
        let due = ends.into_iter().chain(comes).min();
        for g in groups {
            g.due = due;
        }
    }

    /// How long the chosen step takes: as long as the slowest group's.
    fn time(&self, groups: &mut [Replica], clock: &mut impl Clock, now: Ns) -> Timing {
        let device = groups[0].device;
        let rows = |c: &Option<Composed>| f64::from(c.map_or(self.rules.dummy, |c| c.rows()));
        let all = || self.chosen.iter().map(rows);
        let (most, sum) = (all().fold(0.0, f64::max), all().sum::<f64>());
        clock.beside((groups.len() > 1).then(|| Beside { most, mean: sum / groups.len() as f64 }));
        let mixed = self.chosen.iter().flatten().any(|c| c.tokens > 0);
        let drafts = self.chosen.iter().flatten().any(|c| c.drafts > 0);
        let mut step = if mixed || drafts {
            let mut all = Took::default();
            for (g, c) in groups.iter().zip(&self.chosen) {
                let Some(c) = c else { continue };
                let took = clock.mixed(c.decodes, c.context, c.each(), &g.chunks);
                all = Took { step: all.step.max(took.step), host: all.host.longest(took.host) };
            }
            let loads = groups.iter().zip(&self.chosen).filter(|(_, c)| c.is_some());
            let loads = loads.fold(Loads::default(), |all, (g, _)| all.with(g.engine.decision().loads));
            let timings = groups.iter_mut().map(|g| g.mixed(all, mixed, now, loads));
            // They are alike: all groups are at the same step.
            timings.last().unwrap_or_else(|| unreachable!("a bundle has groups"))
        } else {
            self.decode(groups, clock, now)
        };
        clock.beside(None);
        step.wait_since(device);
        step
    }

    /// A step in which everybody decodes; where nobody has work, all take a dummy step.
    fn decode(&self, groups: &mut [Replica], clock: &mut impl Clock, now: Ns) -> Timing {
        let (mut first, mut host) = (None, Host::default());
        for (n, context) in self.chosen.iter().flatten().map(|c| (c.decodes, c.context)) {
            first = first.max(Some(clock.run(n, context).first));
            host = host.longest(groups[0].host(|| clock.host(n)));
        }
        let first = first.unwrap_or_else(|| clock.run(1, 1).first);
        let start = groups[0].device.max(now + host.prepare);
        let (from, sum) = groups[0].run_at(start);
        for g in groups.iter_mut() {
            g.run = Some((from, sum + first));
        }
        let end = from + whole(sum + first);
        let gap = Stretch { first, more: 0, steps: 1 };
        Timing { start, end, gap, host, mixed: false, counted: end - start }
    }

    /// A group takes its part of a step.
    fn take(&self, at: usize, g: &mut Replica, now: Ns, step: &Timing, sink: &mut impl Sink) {
        let took = step.end - step.start;
        g.totals.mixed += if step.mixed { took } else { 0 };
        if let Some(c) = self.chosen[at] {
            g.totals.steps += 1;
            g.totals.busy += took;
            g.totals.prompt_tokens += u64::from(c.tokens);
            g.take(now, step, sink);
        } else {
            g.take_up(now + step.host.launch);
            g.totals.dummies += 1;
            g.totals.dummy += took;
        }
    }
}
