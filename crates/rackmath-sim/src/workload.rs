//! Traffic: when requests come, how long they are, what they share.
//!
//! Every request, session and purpose draws from a stream of its own, keyed by seed and number: adding a replica or a policy does not
//! change the load, and two designs are compared on the same requests.

use crate::Ns;
use crate::blocks::{Quickly, Segment};
use rackmath_units::{Chance, float};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

const SECOND: f64 = 1e9;

/// One request as it is sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    pub id: u64,
    pub arrival: Ns,
    pub prompt: u32,
    pub output: u32,
    /// Whom a router keeps together; 0 for none.
    pub session: u64,
    pub priority: i32,
    /// Whose it is, of several classes of clients.
    pub class: u32,
    /// Leading tokens that others may share, and the answer where it may be; the rest is its own.
    pub content: Vec<Segment>,
}

/// A length in tokens.
#[derive(Clone, Debug, PartialEq)]
pub enum Length {
    Fixed(u32),
    /// Mean, standard deviation of the logarithm, least and most.
    LogNormal {
        mean: f64,
        sigma: f64,
        least: u32,
        most: u32,
    },
    /// Even between two lengths.
    Even(u32, u32),
    /// One of these, each as likely.
    Listed(Vec<u32>),
}

impl Length {
    pub fn draw(&self, chance: &mut Chance) -> u32 {
        match self {
            Self::Fixed(n) => *n,
            Self::Even(low, high) => low + chance.below(u64::from(high - low) + 1) as u32,
            Self::Listed(all) => all[chance.below(all.len() as u64) as usize],
            Self::LogNormal { mean, sigma, least, most } => {
                let z = normal(chance);
                let x = mean * float::exp(sigma * z - sigma * sigma / 2.0);
                (x.round() as u32).clamp(*least, *most)
            }
        }
    }

    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(n) => f64::from(*n),
            Self::Even(low, high) => f64::midpoint(f64::from(*low), f64::from(*high)),
            Self::Listed(all) => all.iter().map(|n| f64::from(*n)).sum::<f64>() / all.len() as f64,
            Self::LogNormal { mean, .. } => *mean,
        }
    }
}

/// A standard normal number, by the polar method.
fn normal(chance: &mut Chance) -> f64 {
    loop {
        let (a, b) = (2.0 * chance.uniform() - 1.0, 2.0 * chance.uniform() - 1.0);
        let s = a * a + b * b;
        if s < 1.0 && s > 0.0 {
            return a * (-2.0 * float::ln(s) / s).sqrt();
        }
    }
}

/// A gamma number of mean 1 and a coefficient of variation (Marsaglia and Tsang 2000).
pub fn gamma(chance: &mut Chance, cv: f64) -> f64 {
    let shape = 1.0 / (cv * cv);
    // Below shape 1, a number of shape + 1 times a power of an even one.
    let (boost, at) = if shape < 1.0 { (float::pow(chance.uniform(), 1.0 / shape), shape + 1.0) } else { (1.0, shape) };
    let d = at - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let z = normal(chance);
        let v = 1.0 + c * z;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        if float::ln(chance.uniform()) < 0.5 * z * z + d - d * v + d * float::ln(v) {
            return d * v / shape * boost;
        }
    }
}

/// A stream of numbers of its own for a purpose.
fn stream(seed: u64, id: u64, purpose: u64) -> Chance {
    let mut mixed = Chance::new(seed ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93));
    Chance::new(mixed.bits() ^ id.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// When requests come.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// Requests a second, with gaps of a coefficient of variation: 0 even, 1 Poisson, above 1 in bursts.
    Open { rate: f64, cv: f64 },
    /// A rate that follows the day: mean, swing up and down as a share of it, period.
    Diurnal { rate: f64, swing: f64, period_s: f64 },
    /// A rate, and for `length_s` in every `period_s` so many times as much.
    Spikes { rate: f64, times: f64, period_s: f64, length_s: f64 },
    /// Users who each wait for an answer, think (mean, exponential) and ask again.
    Users { users: u64, think_s: f64 },
}

/// What prompts share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sharing {
    /// Different common prefixes, by popularity 1, 1/2, 1/3 ...; 0 for none.
    pub prefixes: u64,
    pub prefix_tokens: u32,
    /// Turns of a conversation; each prompt holds all before it. 0 or 1 for none.
    pub turns: u32,
    /// Time between an answer and the next turn, mean, exponential.
    pub think_s: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    pub arrivals: Arrivals,
    pub input: Length,
    pub output: Length,
    pub sharing: Sharing,
    pub requests: u64,
    pub seed: u64,
    /// Most tokens of a prompt and its answer; a conversation forgets its start.
    pub longest: u32,
}

/// Where requests come from, in order of time.
pub trait Source {
    /// When the next comes, as far as is known.
    fn next(&mut self) -> Option<Ns>;

    fn take(&mut self) -> Option<Job>;

    /// A request is done: others may follow.
    fn done(&mut self, _id: u64, _at: Ns) {}

    /// Whether what comes depends on what is done.
    fn waits(&self) -> bool {
        false
    }

    /// Requests so far whose prompts were cut to what the engine takes.
    fn shortened(&self) -> u64 {
        0
    }
}

/// Streams of contents: prefixes below it, sessions from it on.
const SESSIONS: u64 = 1 << 32;

/// When it comes, its number, its session and turn, and tokens so far.
type Later = (Ns, u64, u64, u32, u32);

/// Requests by a law.
#[derive(Clone, Debug)]
pub struct Drawn {
    traffic: Traffic,
    made: u64,
    shortened: u64,
    clock: f64,
    /// The next that comes by itself, with its number.
    fresh: Option<(Ns, u64)>,
    /// Users and later turns that are thinking: when, number, session, turn, tokens so far.
    later: BinaryHeap<Reverse<Later>>,
    numbers: u64,
    /// By request under way: session, turn, tokens with its answer.
    going: HashMap<u64, (u64, u32, u32), Quickly>,
    /// Popularity of prefixes, summed.
    popular: Vec<f64>,
}

impl Drawn {
    pub fn new(traffic: Traffic) -> Self {
        let mut sum = 0.0;
        let popular = (1..=traffic.sharing.prefixes.min(1_000_000)).map(|k| {
            sum += 1.0 / k as f64;
            sum
        });
        let popular = popular.collect();
        let (later, going) = (BinaryHeap::new(), HashMap::default());
        let (made, shortened, numbers) = (0, 0, 0);
        let mut drawn = Self { traffic, made, shortened, clock: 0.0, fresh: None, later, numbers, going, popular };
        if let Arrivals::Users { users, think_s } = drawn.traffic.arrivals {
            for user in 0..users.min(drawn.traffic.requests) {
                // All begin within one time to think, or at once.
                let at = stream(drawn.traffic.seed, user, 5).uniform() * think_s * SECOND;
                drawn.later.push(Reverse((at as Ns, user, user, 0, 0)));
            }
            drawn.numbers = users;
        }
        drawn.refresh();
        drawn
    }

    /// Draws the next that comes by itself.
    fn refresh(&mut self) {
        if !matches!(self.traffic.arrivals, Arrivals::Users { .. }) && self.numbers < self.traffic.requests {
            let number = self.numbers;
            self.numbers += 1;
            self.clock += self.gap(number);
            self.fresh = Some(((self.clock * SECOND) as Ns, number));
        }
    }

    fn gap(&mut self, number: u64) -> f64 {
        let mut chance = stream(self.traffic.seed, number, 1);
        match self.traffic.arrivals {
            Arrivals::Open { rate, cv } => {
                (if cv == 1.0 {
                    chance.exponential()
                } else if cv == 0.0 {
                    1.0
                } else {
                    gamma(&mut chance, cv)
                }) / rate
            }
            // The time in which the summed rate grows by an exponential number, found by halving.
            Arrivals::Diurnal { rate, swing, period_s } => {
                let want = chance.exponential();
                let turn = 2.0 * std::f64::consts::PI / period_s;
                let summed = |t: f64| rate * (t - swing / turn * float::sin(turn * t));
                invert(summed, self.clock, want, rate)
            }
            Arrivals::Spikes { rate, times, period_s, length_s } => {
                let want = chance.exponential();
                let summed = |t: f64| {
                    let (full, rest) = ((t / period_s).floor(), t % period_s);
                    rate * (t + (times - 1.0) * (full * length_s + rest.min(length_s)))
                };
                invert(summed, self.clock, want, rate)
            }
            Arrivals::Users { .. } => 0.0,
        }
    }

    fn job(&mut self, number: u64, arrival: Ns, session: u64, turn: u32, before: u32) -> Job {
        let t = &self.traffic;
        let id = self.made;
        self.made += 1;
        let mut chance = stream(t.seed, number, 2);
        let new = t.input.draw(&mut chance).max(1);
        let output = t.output.draw(&mut chance).max(1);
        let sharing = &t.sharing;
        let mut content = Vec::new();
        let mut prefix = 0;
        if sharing.prefixes > 0 {
            let draw = stream(t.seed, session, 3).uniform() * self.popular[self.popular.len() - 1];
            let which = self.popular.partition_point(|p| *p < draw) as u64;
            prefix = sharing.prefix_tokens;
            content.push(Segment { stream: which, offset: 0, tokens: prefix });
        }
        // A conversation holds all before it, the first prompt its prefix.
        let own = (before + new).min(t.longest.saturating_sub(prefix + output)).max(1);
        self.shortened += u64::from(own < before + new);
        let conversation = sharing.turns > 1;
        if conversation {
            content.push(Segment { stream: SESSIONS + session, offset: 0, tokens: own + output });
            self.going.insert(id, (session, turn, own + output));
        } else if matches!(t.arrivals, Arrivals::Users { .. }) {
            self.going.insert(id, (session, turn, 0));
        }
        Job { id, arrival, prompt: prefix + own, output, session: session + 1, priority: 0, class: 0, content }
    }
}

/// The time from `now` in which a sum grows by `want`.
fn invert(summed: impl Fn(f64) -> f64, now: f64, want: f64, rate: f64) -> f64 {
    let (start, mut high) = (summed(now), 1.0 / rate);
    while summed(now + high) - start < want {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if summed(now + middle) - start < want { low = middle } else { high = middle }
    }
    high
}

impl Source for Drawn {
    fn next(&mut self) -> Option<Ns> {
        if self.made >= self.traffic.requests {
            return None;
        }
        let later = self.later.peek().map(|Reverse(l)| l.0);
        match (self.fresh, later) {
            (Some((a, _)), Some(b)) => Some(a.min(b)),
            (a, b) => a.map(|f| f.0).or(b),
        }
    }

    fn take(&mut self) -> Option<Job> {
        let at = Source::next(self)?;
        if let Some((arrival, number)) = self.fresh.take_if(|f| f.0 == at) {
            self.refresh();
            return Some(self.job(number, arrival, number, 0, 0));
        }
        let Reverse((arrival, number, session, turn, before)) = self.later.pop()?;
        Some(self.job(number, arrival, session, turn, before))
    }

    fn done(&mut self, id: u64, at: Ns) {
        let Some((session, turn, tokens)) = self.going.remove(&id) else { return };
        let t = &self.traffic;
        let (think, conversation) = match t.arrivals {
            _ if t.sharing.turns > 1 && turn + 1 < t.sharing.turns => (t.sharing.think_s, true),
            Arrivals::Users { think_s, .. } => (think_s, false),
            _ => return,
        };
        let number = self.numbers;
        self.numbers += 1;
        let pause = (stream(t.seed, number, 4).exponential() * think * SECOND) as Ns;
        let (session, turn, before) = if conversation { (session, turn + 1, tokens) } else { (number, 0, 0) };
        self.later.push(Reverse((at + pause, number, session, turn, before)));
    }

    fn waits(&self) -> bool {
        matches!(self.traffic.arrivals, Arrivals::Users { .. }) || self.traffic.sharing.turns > 1
    }

    fn shortened(&self) -> u64 {
        self.shortened
    }
}

/// Requests of a list, in order of arrival.
#[derive(Clone, Debug)]
pub struct Listed {
    jobs: std::vec::IntoIter<Job>,
    next: Option<Job>,
}

impl Listed {
    pub fn new(mut jobs: Vec<Job>) -> Self {
        jobs.sort_by_key(|job| job.arrival);
        for (id, job) in jobs.iter_mut().enumerate() {
            job.id = id as u64;
        }
        let mut jobs = jobs.into_iter();
        Self { next: jobs.next(), jobs }
    }
}

impl Source for Listed {
    fn next(&mut self) -> Option<Ns> {
        self.next.as_ref().map(|job| job.arrival)
    }

    fn take(&mut self) -> Option<Job> {
        std::mem::replace(&mut self.next, self.jobs.next())
    }
}

/// Requests of a list, so many at once: the next is sent when one is done.
pub struct Users {
    jobs: std::vec::IntoIter<Job>,
    /// When those who are free send.
    free: BinaryHeap<Reverse<Ns>>,
    made: u64,
}

impl Users {
    pub fn new(jobs: Vec<Job>, users: usize) -> Self {
        Self { jobs: jobs.into_iter(), free: std::iter::repeat_n(Reverse(0), users).collect(), made: 0 }
    }
}

impl Source for Users {
    fn next(&mut self) -> Option<Ns> {
        if self.jobs.len() == 0 { None } else { self.free.peek().map(|Reverse(at)| *at) }
    }

    fn take(&mut self) -> Option<Job> {
        let arrival = Source::next(self)?;
        self.free.pop();
        self.made += 1;
        Some(Job { id: self.made - 1, arrival, ..self.jobs.next()? })
    }

    fn done(&mut self, _id: u64, at: Ns) {
        self.free.push(Reverse(at));
    }

    fn waits(&self) -> bool {
        true
    }
}

/// A conversation: its turns, each sent so long after the answer to the one before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    pub start: Ns,
    /// Time to think before each turn; that before the first counts from the start.
    pub turns: Vec<(Ns, Job)>,
}

/// Conversations whose turns wait for each other.
#[derive(Clone, Debug)]
pub struct Conversations {
    left: Vec<std::vec::IntoIter<(Ns, Job)>>,
    /// When the next turn of which conversation is sent.
    later: BinaryHeap<Reverse<(Ns, usize)>>,
    next: Vec<Option<Job>>,
    made: u64,
    going: HashMap<u64, usize, Quickly>,
}

impl Conversations {
    pub fn new(sessions: Vec<Session>) -> Self {
        let (starts, left): (Vec<Ns>, Vec<_>) = sessions.into_iter().map(|s| (s.start, s.turns.into_iter())).unzip();
        let next = vec![None; left.len()];
        let mut all = Self { left, later: BinaryHeap::new(), next, made: 0, going: HashMap::default() };
        starts.into_iter().enumerate().for_each(|(which, start)| all.follow(which, start));
        all
    }

    fn follow(&mut self, which: usize, at: Ns) {
        if let Some((think, job)) = self.left[which].next() {
            self.next[which] = Some(job);
            self.later.push(Reverse((at + think, which)));
        }
    }
}

impl Source for Conversations {
    fn next(&mut self) -> Option<Ns> {
        self.later.peek().map(|Reverse(l)| l.0)
    }

    fn take(&mut self) -> Option<Job> {
        let Reverse((arrival, which)) = self.later.pop()?;
        let job = self.next[which].take()?;
        let id = self.made;
        self.made += 1;
        self.going.insert(id, which);
        Some(Job { id, arrival, ..job })
    }

    fn done(&mut self, id: u64, at: Ns) {
        if let Some(which) = self.going.remove(&id) {
            self.follow(which, at);
        }
    }

    fn waits(&self) -> bool {
        true
    }
}

/// Classes of clients, each with a law and streams of its own, in order of time; at one time the first class goes first.
#[derive(Clone, Debug)]
pub struct Mixture {
    classes: Vec<(Drawn, i32)>,
    requests: u64,
    made: u64,
    /// By request under way, where one waits for it: class and name there.
    going: HashMap<u64, (usize, u64), Quickly>,
    waits: bool,
}

/// Sessions and contents of different classes are different.
const CLASS: u32 = 48;

impl Mixture {
    /// So many requests of all classes together; each class with its priority.
    pub fn new(classes: Vec<(Traffic, i32)>, requests: u64) -> Self {
        let classes: Vec<(Drawn, i32)> = classes
            .into_iter()
            .enumerate()
            .map(|(i, (t, priority))| {
                let seed = Chance::new(t.seed ^ (i as u64 + 1).wrapping_mul(0xa076_1d64_78bd_642f)).bits();
                (Drawn::new(Traffic { requests, seed, ..t }), priority)
            })
            .collect();
        let waits = classes.iter().any(|c| c.0.waits());
        Self { classes, requests, made: 0, going: HashMap::default(), waits }
    }

    fn first(&mut self) -> Option<(Ns, usize)> {
        if self.made >= self.requests {
            return None;
        }
        self.classes.iter_mut().enumerate().filter_map(|(i, c)| Some((Source::next(&mut c.0)?, i))).min()
    }
}

impl Source for Mixture {
    fn next(&mut self) -> Option<Ns> {
        self.first().map(|f| f.0)
    }

    fn take(&mut self) -> Option<Job> {
        let (_, class) = self.first()?;
        let (source, priority) = &mut self.classes[class];
        let mut job = source.take()?;
        if self.waits {
            self.going.insert(self.made, (class, job.id));
        }
        (job.id, job.class, job.priority) = (self.made, class as u32, *priority);
        job.session += (class as u64) << CLASS;
        for segment in &mut job.content {
            segment.stream += (class as u64) << CLASS;
        }
        self.made += 1;
        Some(job)
    }

    fn done(&mut self, id: u64, at: Ns) {
        if let Some((class, name)) = self.going.remove(&id) {
            self.classes[class].0.done(name, at);
        }
    }

    fn waits(&self) -> bool {
        self.waits
    }

    fn shortened(&self) -> u64 {
        self.classes.iter().map(|c| c.0.shortened()).sum()
    }
}
