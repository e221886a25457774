//! What happens to a cluster by itself.

use super::Cluster;
use crate::Ns;
use crate::clock::Clock;
use crate::engine::Sequence;
use crate::tally::{Failure, Tally, Why};
use crate::workload::{Job, Source};
use rackmath_units::Chance;
use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

/// How long the cache of so many tokens takes from one replica to another. Caches that one replica sends go one after the
/// other, in the order in which their prompts ended; what it takes beside to hand a request over does not hold up the next.
/// Ignores: caches that meet at one receiver; receivers that take room before a prompt starts.
#[derive(Clone)]
pub struct Link {
    time: Arc<dyn Fn(u32) -> Ns + Send + Sync>,
    setup: Ns,
}

impl Link {
    pub fn new(time: impl Fn(u32) -> Ns + Send + Sync + 'static) -> Self {
        Self { time: Arc::new(time), setup: 0 }
    }

    /// A hand-over takes so long beside the cache's time.
    #[must_use]
    pub fn beside(self, setup: Ns) -> Self {
        Self { setup, ..self }
    }

    /// A cache of so many tokens by itself, with all it takes.
    pub fn alone(&self, tokens: u32) -> Ns {
        (self.time)(tokens) + self.setup
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Link")
    }
}

/// What can happen beside requests and steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// A client waits so long, all attempts together.
    pub timeout: Option<Ns>,
    /// A replica refuses what comes while so many wait there.
    pub most_queued: Option<u64>,
    /// What was refused or lost is sent again so often.
    pub retries: u32,
    /// Pause before the first retry; twice as long before each further one, times an even number between 0.5 and 1.5.
    pub backoff: Ns,
    /// Mean time a replica lives, exponential.
    pub lives: Option<Ns>,
    /// Time until a dead one is back, its cache empty.
    pub restart: Ns,
    pub scaling: Option<Scaling>,
    pub script: Vec<Scripted>,
}

impl Rules {
    pub fn any(&self) -> bool {
        *self != Self { retries: self.retries, backoff: self.backoff, restart: self.restart, ..Self::default() }
    }
}

/// A controller that starts and drains replicas. It looks at the end of every window at the mean number of requests inside
/// and wants as many replicas as hold them at the target. It starts at once, and drains when nothing changed for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    pub least: usize,
    pub most: usize,
    /// Requests inside a replica.
    pub target: f64,
    pub window: Ns,
    pub cooldown: Ns,
    /// From its start until a replica takes requests: process and weights.
    pub start: Ns,
}

/// What happens at a stated time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scripted {
    pub at: Ns,
    pub replica: usize,
    pub what: Script,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// It dies, and is back after the restart time.
    Fail,
    /// It takes no more requests and ends with its last.
    Drain,
    /// It starts, and takes requests at once.
    Start,
}

/// How often what happened. Arrived = finished + failed + inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Incidents {
    pub arrived: u64,
    pub refused: u64,
    /// Requests inside replicas that died.
    pub lost: u64,
    pub retried: u64,
    pub timed_out: u64,
    /// Never done: timed out, or refused or lost once too often.
    pub failed: u64,
    pub deaths: u64,
    pub starts: u64,
    pub drains: u64,
    pub transfers: u64,
    /// Time for which replicas were on, all together.
    pub on: Ns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Takes,
    Drains,
    Starts,
    Dead,
    Off,
}

/// A replica as the cluster sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    doing: Doing,
    /// Which of its lives it is in.
    life: u32,
    on_since: Ns,
    /// Its link is free from then on.
    link: Ns,
    /// Caches on their way to it.
    coming: u64,
}

impl Default for State {
    fn default() -> Self {
        Self { doing: Doing::Takes, life: 0, on_since: 0, link: 0, coming: 0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    At {
        at: usize,
        slot: u32,
    },
    Moving,
    /// Waits to be sent again.
    Outside,
}

/// A request under way.
#[derive(Clone, Debug)]
pub(super) struct Going {
    job: Job,
    attempt: u32,
    place: Place,
    first_scheduled: Ns,
    cached: u32,
    fetched: (u32, Ns),
    /// Its prompt was done.
    sent: Ns,
    /// The latest attempt came so long after the first.
    before: Ns,
}

impl Going {
    pub(super) fn new(job: Job, place: Place) -> Self {
        Self { job, attempt: 0, place, first_scheduled: 0, cached: 0, fetched: (0, 0), sent: 0, before: 0 }
    }
}

/// A prompt is done, its cache can go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prompted {
    pub id: u64,
    pub at: Ns,
    pub first_scheduled: Ns,
    pub cached: u32,
    /// Tokens from tiers below, and how long they took.
    pub fetched: (u32, Ns),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    Moved { from: usize, slot: u32, life: u32, to: usize, id: u64, attempt: u32 },
    Fails { at: usize, life: Option<u32> },
    Ready { at: usize, life: u32 },
    Drains { at: usize },
    Looks,
    GivesUp { id: u64 },
    Again { id: u64, attempt: u32 },
}

impl Event {
    fn rank(&self) -> u8 {
        match self {
            Self::Moved { .. } => 0,
            Self::Fails { .. } | Self::Ready { .. } | Self::Drains { .. } => 1,
            Self::Looks => 2,
            Self::GivesUp { .. } => 3,
            Self::Again { .. } => 4,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Later {
    pub at: Ns,
    rank: u8,
    number: u64,
    event: Event,
}

/// Requests inside over a window: the integral is exact whatever the order in which departures become known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    inside: i128,
    from: Ns,
    change: i128,
    times: i128,
}

impl Flow {
    pub(super) fn comes(&mut self, at: Ns) {
        self.change += 1;
        self.times += i128::from(at);
    }

    pub(super) fn leaves(&mut self, at: Ns) {
        self.change -= 1;
        self.times -= i128::from(at);
    }

    /// The mean number inside until `now`, where the next window begins.
    fn mean(&mut self, now: Ns) -> f64 {
        let width = i128::from(now - self.from);
        let area = self.inside * width + self.change * i128::from(now) - self.times;
        *self = Self { inside: self.inside + self.change, from: now, ..Self::default() };
        if width > 0 { area as f64 / width as f64 } else { 0.0 }
    }
}

impl<C: Clock> Cluster<C> {
    pub(super) fn push(&mut self, at: Ns, event: Event) {
        self.events += 1;
        self.later.push(Reverse(Later { at, rank: event.rank(), number: self.events, event }));
    }

    /// Sets up what the rules say.
    pub(super) fn begin(&mut self) {
        if let Some(s) = self.rules.scaling {
            for state in self.states.iter_mut().skip(s.least) {
                state.doing = Doing::Off;
            }
            self.push(s.window, Event::Looks);
        }
        for i in 0..self.rules.script.len() {
            let Scripted { at, replica, what } = self.rules.script[i];
            let event = match what {
                Script::Fail => Event::Fails { at: replica, life: None },
                Script::Drain => Event::Drains { at: replica },
                Script::Start => Event::Ready { at: replica, life: u32::MAX },
            };
            self.push(at, event);
        }
        for at in 0..self.replicas.len() {
            if self.states[at].doing == Doing::Takes {
                self.lives(at, 0);
            }
        }
        self.reopen();
    }

    /// Draws how long a replica lives from now on.
    fn lives(&mut self, at: usize, now: Ns) {
        let Some(mean) = self.rules.lives else { return };
        let life = self.states[at].life;
        let seed = self.seed ^ (at as u64).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ (u64::from(life) << 40) ^ 0xdead;
        let time = Chance::new(seed).exponential() * mean as f64;
        self.push(now.saturating_add(time as Ns), Event::Fails { at, life: Some(life) });
    }

    pub(super) fn reopen(&mut self) {
        let takes = |at: &usize| self.states[*at].doing == Doing::Takes;
        let split = self.prompters;
        let first = if self.link.is_some() { split } else { self.replicas.len() };
        self.open = (0..first).filter(|at| self.leads(*at)).filter(takes).collect();
        self.decoders = (first..self.replicas.len()).filter(|at| self.leads(*at)).filter(takes).collect();
    }

    /// The next event happens.
    pub(super) fn happen(&mut self, source: &mut impl Source, tally: &mut Tally) {
        let Some(Reverse(Later { at: now, event, .. })) = self.later.pop() else { return };
        match event {
            Event::Moved { from, slot, life, to, id, attempt } => {
                self.advance(from, now, false, tally);
                if self.states[from].life == life {
                    self.replicas[from].let_go(now, slot);
                }
                self.states[to].coming -= 1;
                self.moved(now, to, id, attempt, source, tally);
            }
            Event::Fails { at, life } => self.fails(now, at, life, source, tally),
            Event::Ready { at, life } => self.ready(now, at, life),
            Event::Drains { at } => self.drains(at),
            Event::Looks => self.looks(now, tally),
            Event::GivesUp { id } => self.gives_up(now, id, source, tally),
            Event::Again { id, attempt } => {
                if self.going.get(&id).is_some_and(|g| g.attempt == attempt) {
                    self.resend(now, id, source, tally);
                }
            }
        }
    }

    /// Caches of prompts that were just computed go on their way.
    pub(super) fn send_on(&mut self, source: &mut impl Source, tally: &mut Tally) {
        while let Some(p) = self.prompted.pop() {
            let (Some(going), Some(link)) = (self.going.get_mut(&p.id), &self.link) else { continue };
            let Place::At { at: from, slot } = going.place else { continue };
            (going.first_scheduled, going.cached, going.sent) = (p.first_scheduled, p.cached, p.at);
            going.fetched = p.fetched;
            going.place = Place::Moving;
            let (took, setup, attempt) = ((link.time)(going.job.prompt), link.setup, going.attempt);
            let load = |to: &usize| self.groups(*to).map(|to| self.inside[to] + self.states[to].coming).sum::<u64>();
            let Some(to) = self.decoders.iter().copied().min_by_key(load) else {
                self.replicas[from].let_go(p.at, slot);
                self.again(p.id, p.at, Why::Refused, source, tally);
                continue;
            };
            let to = self.deal(to, p.at);
            let state = &mut self.states[from];
            let end = state.link.max(p.at) + took;
            (state.link, self.incidents.transfers) = (end, self.incidents.transfers + 1);
            let life = state.life;
            self.states[to].coming += 1;
            self.push(end + setup, Event::Moved { from, slot, life, to, id: p.id, attempt });
        }
    }

    /// A cache has come.
    fn moved(&mut self, now: Ns, to: usize, id: u64, attempt: u32, source: &mut impl Source, tally: &mut Tally) {
        if self.going.get(&id).is_none_or(|g| g.attempt != attempt) {
            return;
        }
        if self.states[to].doing != Doing::Takes {
            self.incidents.lost += 1;
            self.again(id, now, Why::Lost, source, tally);
            return;
        }
        self.advance(to, now, false, tally);
        let (Some(going), r) = (self.going.get_mut(&id), &mut self.replicas[to]) else { return };
        let job = &going.job;
        let place = r.engine.place(0, job.content.iter().copied());
        let plain = Sequence::new(id, job.arrival + going.before, job.prompt, job.output).bringing(going.sent);
        let (first_scheduled, cached, before) = (going.first_scheduled, going.cached, going.before);
        let (priority, class, mut below) = (job.priority, job.class, r.engine.below(&job.content));
        if going.fetched.0 > 0 {
            let all = below.get_or_insert_default();
            (all.fetched, all.waited) = going.fetched;
        }
        let sequence = Sequence { priority, place, first_scheduled, cached, before, class, below, ..plain };
        let slot = r.arrive(now, sequence);
        self.inside[to] += 1;
        going.place = Place::At { at: to, slot };
    }

    fn fails(&mut self, now: Ns, at: usize, life: Option<u32>, source: &mut impl Source, tally: &mut Tally) {
        let state = self.states[at];
        if life.is_some_and(|life| life != state.life) || !matches!(state.doing, Doing::Takes | Doing::Drains) {
            return;
        }
        self.advance(at, now, false, tally);
        let lost = self.replicas[at].fail(now);
        self.incidents.deaths += 1;
        self.inside[at] = 0;
        self.sent[at] = 0;
        let next = if state.doing == Doing::Drains { Doing::Off } else { Doing::Dead };
        self.change(at, next, now);
        if next == Doing::Dead {
            self.push(now + self.rules.restart, Event::Ready { at, life: self.states[at].life });
        }
        for id in lost {
            // Those whose clients gave up are out of the books already.
            if self.going.contains_key(&id) {
                self.incidents.lost += 1;
                self.flow.leaves(now);
                self.again(id, now, Why::Lost, source, tally);
            }
        }
    }

    fn change(&mut self, at: usize, doing: Doing, now: Ns) {
        let state = &mut self.states[at];
        let on = |doing| doing != Doing::Off;
        match (on(state.doing), on(doing)) {
            (true, false) => self.incidents.on += now - state.on_since,
            (false, true) => state.on_since = now,
            _ => {}
        }
        if matches!(doing, Doing::Dead | Doing::Off) {
            (state.life, state.link) = (state.life + 1, 0);
        }
        state.doing = doing;
        self.reopen();
    }

    fn ready(&mut self, now: Ns, at: usize, life: u32) {
        let state = self.states[at];
        let scripted = life == u32::MAX && matches!(state.doing, Doing::Off | Doing::Drains);
        if scripted || (life == state.life && matches!(state.doing, Doing::Dead | Doing::Starts)) {
            let fresh = state.doing != Doing::Drains;
            self.change(at, Doing::Takes, now);
            if fresh {
                self.lives(at, now);
            }
        }
    }

    fn drains(&mut self, at: usize) {
        if self.states[at].doing == Doing::Takes {
            self.states[at].doing = Doing::Drains;
            self.incidents.drains += 1;
            self.reopen();
        }
    }

    /// The controller looks.
    fn looks(&mut self, now: Ns, tally: &mut Tally) {
        let Some(s) = self.rules.scaling else { return };
        for at in 0..self.replicas.len() {
            self.advance(at, now, false, tally);
            if self.states[at].doing == Doing::Drains && self.inside[at] == 0 {
                self.replicas[at].fail(now);
                self.change(at, Doing::Off, now);
            }
        }
        let wanted = ((self.flow.mean(now) / s.target).ceil() as usize).clamp(s.least, s.most);
        let all = 0..self.replicas.len();
        let is = |doing: Doing, at: &usize| self.states[*at].doing == doing;
        let has = all.clone().filter(|at| !is(Doing::Off, at) && !is(Doing::Drains, at)).count();
        if wanted > has {
            // Who drains still has its weights.
            let draining = all.clone().filter(|at| is(Doing::Drains, at));
            let chosen: Vec<usize> = draining.chain(all.filter(|at| is(Doing::Off, at))).take(wanted - has).collect();
            for at in chosen {
                self.incidents.starts += 1;
                if self.states[at].doing == Doing::Drains {
                    self.change(at, Doing::Takes, now);
                    continue;
                }
                self.change(at, Doing::Starts, now);
                self.push(now + s.start, Event::Ready { at, life: self.states[at].life });
            }
            self.scaled = now;
        } else if wanted < has && now >= self.scaled + s.cooldown {
            let takes: Vec<usize> = all.rev().filter(|at| is(Doing::Takes, at)).take(has - wanted).collect();
            for at in takes {
                self.drains(at);
            }
            self.scaled = now;
        }
        self.push(now + s.window, Event::Looks);
    }

    fn gives_up(&mut self, now: Ns, id: u64, source: &mut impl Source, tally: &mut Tally) {
        let Some(going) = self.going.get(&id) else { return };
        if let Place::At { at, slot } = going.place {
            self.advance(at, now, false, tally);
            if !self.going.contains_key(&id) {
                return;
            }
            self.replicas[at].abort(now, slot);
            self.inside[at] -= 1;
            self.flow.leaves(now);
        }
        self.incidents.timed_out += 1;
        self.gone(id, now, Why::TimedOut, source, tally);
    }

    /// A request is not done and is not tried again.
    fn gone(&mut self, id: u64, now: Ns, why: Why, source: &mut impl Source, tally: &mut Tally) {
        self.connections.close(id);
        let Some(Going { job, attempt, .. }) = self.going.remove(&id) else { return };
        self.incidents.failed += 1;
        let Job { arrival, prompt, output, class, .. } = job;
        tally.failed(Failure { id, arrival, prompt, output, class, attempts: attempt + 1, at: now, why });
        source.done(id, now);
    }

    /// A request that was refused or lost is sent again later, if it may.
    pub(super) fn again(&mut self, id: u64, now: Ns, why: Why, source: &mut impl Source, tally: &mut Tally) {
        let Some(going) = self.going.get_mut(&id) else { return };
        if going.attempt >= self.rules.retries {
            self.gone(id, now, why, source, tally);
            return;
        }
        going.attempt += 1;
        going.place = Place::Outside;
        let attempt = going.attempt;
        let seed = self.seed ^ id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(attempt) << 48) ^ 0xa9a1;
        let jitter = 0.5 + Chance::new(seed).uniform();
        let pause = self.rules.backoff as f64 * f64::from(1_u32 << (attempt - 1).min(16)) * jitter;
        self.push(now + (pause as Ns).max(1), Event::Again { id, attempt });
    }

    fn resend(&mut self, now: Ns, id: u64, source: &mut impl Source, tally: &mut Tally) {
        let Some(mut going) = self.going.remove(&id) else { return };
        self.incidents.retried += 1;
        going.before = now - going.job.arrival;
        let sent = self.send(&going.job, going.before, tally);
        going.place = sent.map_or(Place::Outside, |(at, slot)| Place::At { at, slot });
        self.going.insert(id, going);
        if sent.is_none() {
            self.incidents.refused += 1;
            self.again(id, now, Why::Refused, source, tally);
        }
    }

    /// Counts for how long replicas were on.
    pub(super) fn close(&mut self, end: Ns) {
        let on = self.states.iter().filter(|s| s.doing != Doing::Off);
        self.incidents.on += on.map(|s| end.saturating_sub(s.on_since)).sum::<Ns>();
    }
}
