//! Replicas behind a router.
//!
//! A router that does not look at the replicas splits the load exactly: each replica is only brought forward when it gets a
//! request. One that looks is asked when all it looks at has happened.
//!
//! What else happens to a cluster (caches sent between pools, clients that give up, replicas that die, start and drain) is an
//! event with a time. At one time: steps end, caches arrive, replicas change, clients give up, retries come, requests come,
//! engines are called.

mod events;
mod groups;
mod route;
mod split;

pub use events::{Incidents, Link, Rules, Scaling, Script, Scripted};
pub use groups::{Deal, Groups};
pub use route::{Router, Weights};

use crate::Ns;
use crate::blocks::{Quickly, Segment};
use crate::clock::{Clock, Stretch};
use crate::engine::{Sequence, Settings};
use crate::replica::{Pace, Replica, Sink, Totals};
use crate::tally::{Tally, Why};
use crate::tiers::Counts;
use crate::workload::{Job, Source};
use events::{Going, Later, Place, Prompted, State};
use groups::Set;
use rackmath_units::{Cancelled, Effort};
use route::{Connections, Seen};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

#[derive(Clone, Debug)]
pub struct Cluster<C> {
    pub replicas: Vec<Replica>,
    /// One clock for replicas that are alike, by replica.
    clocks: Vec<C>,
    clock_of: Vec<usize>,
    /// Attention groups that take their steps together: which of these a replica belongs to.
    sets: Vec<Set>,
    set_of: Vec<Option<usize>>,
    /// Replicas that another part of the cluster has, where this is a part.
    elsewhere: Vec<bool>,
    router: Router,
    turn: usize,
    seed: u64,
    /// A router's view is so old.
    stale: Ns,
    weights: Weights,
    view: Vec<Seen>,
    viewed: Option<Ns>,
    /// What clients keep open; only where that decides.
    connections: Connections,
    /// Requests inside, by replica.
    inside: Vec<u64>,
    /// Prompt tokens sent that the router did not find there, by replica.
    sent: Vec<u64>,
    states: Vec<State>,
    /// Replicas that take requests as they come, and those that go on with prompts computed elsewhere.
    open: Vec<usize>,
    decoders: Vec<usize>,
    /// The first replicas only compute prompts and send their caches on.
    prompters: usize,
    link: Option<Link>,
    rules: Rules,
    /// Requests inside or waiting to be sent again; only kept where something can happen to them.
    going: HashMap<u64, Going, Quickly>,
    careful: bool,
    later: BinaryHeap<Reverse<Later>>,
    events: u64,
    done: Vec<(u64, Ns)>,
    prompted: Vec<Prompted>,
    /// Arrivals and departures since the last look of the controller, and the sums of their times.
    flow: events::Flow,
    /// When the controller last changed something.
    scaled: Ns,
    pub incidents: Incidents,
}

/// What is told to a tally, and who is done.
struct Told<'a> {
    tally: &'a mut Tally,
    done: &'a mut Vec<(u64, Ns)>,
    prompted: &'a mut Vec<Prompted>,
    going: Option<&'a mut HashMap<u64, Going, Quickly>>,
    flow: &'a mut events::Flow,
    connections: Option<&'a mut Connections>,
    /// Requests inside, by group of the replica, and which group is told of.
    inside: &'a mut [u64],
    first: u32,
    group: usize,
}

impl Sink for Told<'_> {
    fn finished(&mut self, s: &Sequence, at: Ns, stalled: Ns) {
        if let Some(going) = &mut self.going {
            if s.kept {
                let fetched = s.below.as_ref().map_or((0, 0), |b| (b.fetched, b.waited));
                let (first_scheduled, cached) = (s.first_scheduled, s.cached);
                self.prompted.push(Prompted { id: s.id, at, first_scheduled, cached, fetched });
                self.inside[self.group] -= 1;
                return;
            }
            // Its client may have given up before the engine saw it.
            if going.remove(&s.id).is_none() {
                return;
            }
        }
        self.inside[self.group] -= 1;
        if let Some(connections) = &mut self.connections {
            connections.free(s.id, at);
        }
        self.flow.leaves(at);
        self.done.push((s.id, at));
        self.tally.finished(s, at, stalled);
    }

    fn gaps(&mut self, from: Ns, steps: Stretch, sequences: u32) {
        self.tally.gaps(from, steps, sequences);
    }

    fn mixed(&mut self, at: Ns, replica: &Replica) {
        self.tally.mixed(at, replica);
    }

    fn steps(&mut self, start: Ns, end: Ns, decodes: u32, prompt: u32) {
        self.tally.steps(start, end, decodes, prompt);
    }

    fn group(&mut self, group: usize) {
        self.group = group;
        self.tally.replica = self.first + group as u32;
    }
}

/// Arrivals and events between two looks at whether the run is still wanted.
const ARRIVALS: u64 = 1024;

impl<C: Clock> Cluster<C> {
    /// Replicas that are alike.
    pub fn alike(
        settings: impl Into<Settings>,
        n: usize,
        clock: C,
        router: Router,
        seed: u64,
        pace: impl Into<Pace>,
    ) -> Self {
        Self::mixed(vec![(settings.into(), n, clock)], router, seed, pace)
    }

    /// Replicas of several kinds, each with its clock.
    pub fn mixed(kinds: Vec<(Settings, usize, C)>, router: Router, seed: u64, pace: impl Into<Pace>) -> Self {
        let pace = pace.into();
        let (mut replicas, mut clocks, mut clock_of) = (Vec::new(), Vec::new(), Vec::new());
        for (kind, (settings, n, clock)) in kinds.into_iter().enumerate() {
            clocks.push(clock);
            replicas.extend(std::iter::repeat_n(Replica::new(settings, pace), n));
            clock_of.extend(std::iter::repeat_n(kind, n));
        }
        let n = replicas.len();
        Self {
            replicas,
            clocks,
            clock_of,
            sets: Vec::new(),
            set_of: vec![None; n],
            elsewhere: Vec::new(),
            router,
            turn: 0,
            seed,
            stale: 0,
            weights: Weights::default(),
            view: vec![Seen::default(); n],
            viewed: None,
            connections: Connections::default(),
            inside: vec![0; n],
            sent: vec![0; n],
            states: vec![State::default(); n],
            open: (0..n).collect(),
            decoders: Vec::new(),
            prompters: 0,
            link: None,
            rules: Rules::default(),
            going: HashMap::default(),
            careful: false,
            later: BinaryHeap::new(),
            events: 0,
            done: Vec::new(),
            prompted: Vec::new(),
            flow: events::Flow::default(),
            scaled: 0,
            incidents: Incidents::default(),
        }
    }

    /// The first `prompters` replicas compute prompts; their caches go over a link to the others, which go on.
    #[must_use]
    pub fn sending(mut self, prompters: usize, link: Link) -> Self {
        (self.prompters, self.link, self.careful) = (prompters, Some(link), true);
        self.reopen();
        self
    }

    /// What else can happen.
    #[must_use]
    pub fn under(mut self, rules: Rules) -> Self {
        self.careful |= rules.any();
        self.rules = rules;
        self.begin();
        self
    }

    /// The router sees what was so long ago.
    #[must_use]
    pub fn stale(self, stale: Ns) -> Self {
        Self { stale, ..self }
    }

    /// The router weighs replicas by these.
    #[must_use]
    pub fn weighing(self, weights: Weights) -> Self {
        Self { weights, ..self }
    }

    /// Drafts are accepted by this chance.
    #[must_use]
    pub fn accepting(mut self, chance: f64) -> Self {
        let seed = self.seed;
        self.replicas = self.replicas.into_iter().map(|r| r.accepting(chance, seed)).collect();
        self
    }

    /// Runs until everything is done, or is not wanted any more; what is done until then is in the tally.
    pub fn run(&mut self, source: &mut impl Source, tally: &mut Tally, effort: &Effort) -> Result<(), Cancelled> {
        let waits = source.waits() || self.link.is_some();
        let mut told = self.incidents.arrived;
        for turn in 1_u64.. {
            if turn % ARRIVALS == 0 {
                effort.cancel.did(self.incidents.arrived - told);
                told = self.incidents.arrived;
                effort.check()?;
            }
            let arrival = source.next();
            let event = self.later.peek().map(|Reverse(l)| l.at);
            let next = arrival.unwrap_or(Ns::MAX).min(event.unwrap_or(Ns::MAX));
            let tied = waits || (arrival.is_none() && event.is_some());
            if tied && self.settle(next, source, tally) {
                continue;
            }
            if event.is_some_and(|event| event <= next) {
                if arrival.is_none() && self.going.is_empty() {
                    break;
                }
                self.happen(source, tally);
            } else {
                let Some(job) = source.take() else { break };
                self.accept(job, source, tally);
            }
            debug_assert!(!waits || self.done.is_empty(), "requests ended unseen");
            self.done.clear();
        }
        for at in 0..self.replicas.len() {
            self.advance(at, Ns::MAX, false, tally);
        }
        self.close(tally.last_finish);
        Ok(())
    }

    fn advance(&mut self, at: usize, to: Ns, stop: bool, tally: &mut Tally) -> Option<Ns> {
        let groups = self.groups(at);
        let first = groups.start as u32;
        tally.replica = first;
        let clock = &mut self.clocks[self.clock_of[at]];
        let going = self.careful.then_some(&mut self.going);
        let (done, prompted, flow) = (&mut self.done, &mut self.prompted, &mut self.flow);
        let inside = &mut self.inside[groups.clone()];
        let connections = (self.router == Router::Connections).then_some(&mut self.connections);
        let mut told = Told { tally, done, prompted, going, flow, connections, inside, first, group: 0 };
        match self.set_of[at] {
            None => self.replicas[at].advance(clock, to, stop, &mut told),
            Some(set) => self.sets[set].bundle.advance(&mut self.replicas[groups], clock, to, stop, &mut told),
        }
    }

    /// Lets happen, in order of time, what happens before the calls at `to`, until a request is done: then true.
    fn settle(&mut self, to: Ns, source: &mut impl Source, tally: &mut Tally) -> bool {
        let n = self.replicas.len();
        loop {
            let Some(first) = (0..n).filter_map(|at| self.replicas[at].soonest()).min() else { return false };
            if first > to {
                return false;
            }
            // Steps end before anybody is called at the same time.
            for until in [first, first + 1] {
                if until > to {
                    return false;
                }
                for at in 0..n {
                    if self.replicas[at].soonest().is_some_and(|s| s <= first)
                        && self.advance(at, until, true, tally).is_some()
                    {
                        self.done.drain(..).for_each(|(id, end)| source.done(id, end));
                        self.send_on(source, tally);
                        return true;
                    }
                }
            }
        }
    }

    /// Sends a request to a replica, which it gives back with the slot; none where no replica takes it.
    fn send(&mut self, job: &Job, before: Ns, tally: &mut Tally) -> Option<(usize, u32)> {
        let now = job.arrival + before;
        if self.router.looks() && self.open.len() > 1 {
            for i in 0..self.open.len() {
                self.advance(self.open[i], now, false, tally);
            }
        }
        let at = self.choose(job, now).filter(|at| !self.elsewhere(*at))?;
        self.advance(at, now, false, tally);
        let at = self.deal(at, now);
        let r = &mut self.replicas[at];
        if self.rules.most_queued.is_some_and(|most| r.waiting() as u64 >= most) {
            return None;
        }
        let only_prompt = self.link.is_some() && job.output > 1;
        let plain = Sequence::new(job.id, now, job.prompt, if only_prompt { 1 } else { job.output });
        let content = leading(&job.content, if only_prompt { job.prompt } else { u32::MAX });
        let place = r.engine.place(0, content);
        let below = r.engine.below(&job.content);
        self.inside[at] += 1;
        self.flow.comes(now);
        let (priority, class) = (job.priority, job.class);
        let sequence = Sequence { place, priority, class, before, below, kept: only_prompt, ..plain };
        Some((at, r.arrive(now, sequence)))
    }

    /// A request comes for the first time.
    fn accept(&mut self, job: Job, source: &mut impl Source, tally: &mut Tally) {
        let place = self.send(&job, 0, tally).map(|(at, slot)| Place::At { at, slot });
        if place.is_none() && !self.elsewhere.is_empty() {
            // Another part takes it.
            tally.begins(job.id, job.arrival);
            return;
        }
        self.incidents.arrived += 1;
        // What was called for before it came does not count with it.
        tally.arrived(job.id, job.arrival);
        if !self.careful {
            return;
        }
        let (id, now) = (job.id, job.arrival);
        if let Some(timeout) = self.rules.timeout {
            self.push(now + timeout, events::Event::GivesUp { id });
        }
        let refused = place.is_none();
        self.going.insert(id, Going::new(job, place.unwrap_or(Place::Outside)));
        if refused {
            self.incidents.refused += 1;
            self.again(id, now, Why::Refused, source, tally);
        }
    }

    /// What tiers below the chips' memory did, the nearest first, all replicas together.
    pub fn tiers(&self) -> Vec<Counts> {
        let mut all: Vec<Counts> = Vec::new();
        for tiers in self.replicas.iter().filter_map(|r| r.engine.tiers()) {
            for (at, counts) in tiers.counts().enumerate() {
                if all.len() <= at {
                    all.push(Counts::default());
                }
                all[at] = all[at].with(&counts);
            }
        }
        all
    }

    pub fn totals(&self) -> Totals {
        self.replicas.iter().fold(Totals::default(), |a, r| a.with(&r.totals))
    }
}

/// The segments of the first tokens.
fn leading(content: &[Segment], tokens: u32) -> impl Iterator<Item = Segment> {
    // A segment of no tokens does not end the list.
    content.iter().filter(|s| s.tokens > 0).scan(tokens, |left, s| {
        let tokens = s.tokens.min(*left);
        *left -= tokens;
        (tokens > 0).then_some(Segment { tokens, ..*s })
    })
}
