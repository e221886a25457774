//! How long a step takes.
//!
//! Times of single steps are whole nanoseconds. Steps of decodes alone follow each other without a change but one token more
//! for each sequence, and a step's time is a straight line in the context on stretches: k of them end at
//!
//! $$ e_k = e_0 + \mathrm{round}\big(S(k)\big) \qquad S(k) = k\,a + b\,\frac{k (k - 1)}{2} $$
//!
//! with a and b whole multiples of 2^-20 ns, so that k steps at once end where k single steps end, to the nanosecond.

use crate::Ns;
use crate::blocks::Quickly;
use rackmath_theory::timer::{Beside, Chunk, Cost, Decodes, HostTime, Many, Part, StepTimer, Work};
use rackmath_units::Seconds;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Parts of a nanosecond.
const SCALE: u32 = 20;

/// Steps of decodes alone on a stretch: the first takes `first`, each further one `more` longer; in 2^-20 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub first: i64,
    pub more: i64,
    pub steps: u64,
}

impl Stretch {
    /// The sum of the first k steps.
    pub fn sum(&self, k: u64) -> i64 {
        let k = k as i64;
        k * self.first + self.more * (k * (k - 1) / 2)
    }

    pub fn at(&self, k: u64) -> i64 {
        self.first + self.more * k as i64
    }

    /// Whole nanoseconds of the steps, with how many there are of each thousandth: a step is told as the first of its kind.
    pub fn spread(&self, mut tell: impl FnMut(Ns, u64)) {
        let mut k = 0;
        while k < self.steps {
            let first = self.at(k);
            // As many as stay within the same bin of a histogram of 1/1024 of a doubling.
            let ns = whole(first).max(1);
            let width = ns.ilog2().saturating_sub(10);
            let bin = ns >> width << width;
            let end = (bin + (1 << width)) as i64;
            let edge = (end << SCALE) - (1 << (SCALE - 1));
            let n = if self.more <= 0 { 1 } else { ((edge - first) as u64).div_ceil(self.more as u64) };
            let n = if self.more == 0 { self.steps - k } else { n.clamp(1, self.steps - k) };
            tell(bin, n);
            k += n;
        }
    }
}

/// Parts of a nanosecond as whole ones, halves up.
pub fn whole(parts: i64) -> Ns {
    ((parts + (1 << (SCALE - 1))) >> SCALE) as Ns
}

/// Whole nanoseconds of a sum, not rounded, and the parts that are left.
pub fn carried(parts: i64) -> (Ns, i64) {
    ((parts >> SCALE) as Ns, parts & ((1 << SCALE) - 1))
}

/// One step of whole nanoseconds.
pub fn single(ns: Ns) -> Stretch {
    Stretch { first: (ns as i64) << SCALE, more: 0, steps: 1 }
}

fn parts(ns: f64) -> i64 {
    (ns * f64::from(1_u32 << SCALE)).round() as i64
}

/// A step's time on the chips, and its host's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    pub step: Ns,
    pub host: Host,
}

/// What a host that runs ahead does for a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// From the choice of the step to its first kernel. With `choose` never more than the step of decodes before it takes.
    pub prepare: Ns,
    /// From the choice to the last launch, on average.
    pub launch: Ns,
    /// By how much that is longer or shorter from step to step, evenly.
    pub varies: Ns,
    /// From the result of the step before, once this one is launched, to the choice of the next.
    pub choose: Ns,
    /// To hand the tokens of the step out: who had his first token in it comes last.
    pub hand: Ns,
}

impl Host {
    /// Of a step that is one launch.
    fn whole(self) -> Self {
        Self { launch: self.prepare, varies: 0, ..self }
    }

    /// The longest of both in each.
    #[must_use]
    pub fn longest(self, b: Self) -> Self {
        Self {
            prepare: self.prepare.max(b.prepare),
            launch: self.launch.max(b.launch),
            varies: self.varies.max(b.varies),
            choose: self.choose.max(b.choose),
            hand: self.hand.max(b.hand),
        }
    }

    /// The launch of the n-th step that has one of its own: parts of the golden section fill the range evenly.
    #[must_use]
    pub fn nth(self, n: u64) -> Self {
        let part = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let launch = self.launch + ((2 * self.varies * part) >> 32);
        Self { launch: launch.saturating_sub(self.varies).max(self.prepare), ..self }
    }
}

impl From<HostTime> for Host {
    fn from(t: HostTime) -> Self {
        let ns = |s: Seconds| (s.get() * 1e9) as Ns;
        // A step of decodes is no shorter than its host; two nanoseconds are for rounding.
        let prepare = ns(t.prepare).saturating_sub(2);
        let launch = ns(t.launch).max(prepare);
        Self { prepare, launch, varies: ns(t.varies), choose: ns(t.choose), hand: ns(t.hand) }
    }
}

pub trait Clock {
    /// A step that is not of decodes alone: sequences that decode, the sum of their contexts, drafts each checks, chunks.
    fn mixed(&mut self, decodes: u32, context: u64, drafts: f64, chunks: &[Chunk]) -> Took;

    /// Steps of so many decodes from a sum of contexts on.
    fn run(&mut self, decodes: u32, context: u64) -> Stretch;

    /// The steps asked for next are one group's, among others that take them together; none for a replica by itself.
    fn beside(&mut self, _beside: Option<Beside>) {}

    /// The host of a step of so many decodes: one launch.
    fn host(&mut self, _decodes: u32) -> Host {
        Host::default()
    }
}

/// The clock of recorded schedules: so much for a step, each token, each request and each token computed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Law {
    #[serde(default = "Law::base")]
    pub base_ns: u64,
    #[serde(default = "Law::token")]
    pub token_ns: u64,
    #[serde(default = "Law::seq")]
    pub seq_ns: u64,
    #[serde(default = "Law::context")]
    pub context_ns: u64,
}

impl Law {
    fn base() -> u64 {
        4_000_000
    }

    fn token() -> u64 {
        20_000
    }

    fn seq() -> u64 {
        40_000
    }

    fn context() -> u64 {
        37
    }

    pub fn time(&self, tokens: u64, requests: u64, context: u64) -> Ns {
        if requests == 0 {
            return 0;
        }
        self.base_ns + self.token_ns * tokens + self.seq_ns * requests + self.context_ns * context
    }
}

impl Default for Law {
    fn default() -> Self {
        Self { base_ns: Self::base(), token_ns: Self::token(), seq_ns: Self::seq(), context_ns: Self::context() }
    }
}

impl Clock for Law {
    fn mixed(&mut self, decodes: u32, context: u64, drafts: f64, chunks: &[Chunk]) -> Took {
        let decoded = (f64::from(decodes) * (1.0 + drafts)).round() as u64;
        let tokens = chunks.iter().map(|c| c.tokens as u64).sum::<u64>() + decoded;
        let past = chunks.iter().map(|c| c.past as u64).sum::<u64>();
        let step = self.time(tokens, u64::from(decodes) + chunks.len() as u64, context + past);
        Took { step, host: Host::default() }
    }

    fn run(&mut self, decodes: u32, context: u64) -> Stretch {
        let n = u64::from(decodes);
        let first = (self.time(n, n, context) as i64) << SCALE;
        Stretch { first, more: ((self.context_ns * n) as i64) << SCALE, steps: u64::MAX }
    }
}

/// A step timer as a clock: decodes alone on straight lines between contexts it is asked for once.
#[derive(Clone, Debug)]
pub struct Timed<T> {
    timer: T,
    /// For each number of sequences, the parts of a nanosecond at each context asked for.
    rows: Vec<Vec<i64>>,
    /// The same among other groups: by sequences, most rows and mean rows.
    grouped: HashMap<(u32, u64, u64), Vec<i64>, Quickly>,
    beside: Option<Beside>,
    /// Steps of decodes and one prompt: by sequences, tokens, tokens before and the context asked for.
    joined: HashMap<(u32, u32, u32, u32), Joined, Quickly>,
    /// The host's time of steps of so many decodes, once it was asked for.
    hosts: Vec<Option<Host>>,
}

/// Steps of decodes beside one prompt, between two contexts: parts of a nanosecond at the lower one, and a token more.
#[derive(Clone, Copy, Debug)]
struct Joined {
    low: i64,
    slope: i64,
    host: Host,
}

/// Most of them that are remembered.
const MOST_JOINED: usize = 1 << 16;

const UNKNOWN: i64 = i64::MIN;

/// Contexts of a sequence between which times are straight lines: steps of 64 tokens, then 16 to a doubling.
fn node(i: usize) -> u64 {
    if let 0..16 = i {
        i as u64 * 64
    } else {
        let (octave, part) = ((i - 16) / 16, (i - 16) % 16);
        (1024 + 64 * part as u64) << octave
    }
}

fn below(context: u64) -> usize {
    if let 0..1024 = context {
        context as usize / 64
    } else {
        let octave = context.ilog2() as usize - 10;
        16 + octave * 16 + (((context >> octave) - 1024) / 64) as usize
    }
}

fn ns(timer: &impl StepTimer, work: &Work) -> f64 {
    // A pass that a table does not cover takes no time here; callers check what they load.
    timer.time(work).map_or(0.0, |cost| cost.time().get() * 1e9)
}

impl<T: StepTimer> Timed<T> {
    pub fn new(timer: T) -> Self {
        let (grouped, joined) = (HashMap::default(), HashMap::default());
        Self { timer, rows: Vec::new(), grouped, beside: None, joined, hosts: Vec::new() }
    }

    fn at(&mut self, decodes: u32, i: usize) -> i64 {
        let row = if let Some(b) = self.beside {
            self.grouped.entry((decodes, b.most.to_bits(), b.mean.to_bits())).or_default()
        } else {
            let row = decodes as usize;
            if self.rows.len() <= row {
                self.rows.resize(row + 1, Vec::new());
            }
            &mut self.rows[row]
        };
        if row.len() <= i {
            row.resize(i + 8, UNKNOWN);
        }
        if row[i] == UNKNOWN {
            let work = Work::decode(f64::from(decodes), (node(i) as f64).max(1.0));
            row[i] = parts(ns(&self.timer, &Work { beside: self.beside, ..work }));
        }
        row[i]
    }

    /// Nanoseconds of the chips, and the host.
    fn chips(&self, work: &Work) -> (f64, HostTime) {
        let host = self.timer.host(work);
        // Where the host runs ahead, how long the chips wait for it shows by when it began.
        let ahead = host != HostTime::default();
        let chips = |cost: Cost| cost.time().get() - if ahead { cost.part(Part::Host).get() } else { 0.0 };
        (self.timer.time(work).map_or(0.0, chips) * 1e9, host)
    }

    /// Decodes beside one prompt: a straight line in their context, as decodes alone.
    fn joined(&mut self, decodes: u32, context: u64, chunk: Chunk) -> Took {
        let n = u64::from(decodes);
        let i = below(context / n);
        let key = (decodes, chunk.tokens as u32, chunk.past as u32, i as u32);
        let found = self.joined.get(&key).copied();
        let Joined { low, slope, host } = found.unwrap_or_else(|| {
            let at = |i| self.chips(&Work::decode(f64::from(decodes), (node(i) as f64).max(1.0)).with(chunk));
            let ((low, host), (high, _)) = (at(i), at(i + 1));
            let (low, high) = (parts(low), parts(high));
            let slope = (high - low) / (n * (node(i + 1) - node(i))) as i64;
            let new = Joined { low, slope, host: host.into() };
            if self.joined.len() >= MOST_JOINED {
                self.joined.clear();
            }
            self.joined.insert(key, new);
            new
        });
        Took { step: whole(low + slope * (context - n * node(i)) as i64), host }
    }
}

impl<T: StepTimer> Clock for Timed<T> {
    fn beside(&mut self, beside: Option<Beside>) {
        self.beside = beside;
    }

    fn mixed(&mut self, decodes: u32, context: u64, drafts: f64, chunks: &[Chunk]) -> Took {
        if let ([one], true) = (chunks, decodes > 0 && drafts == 0.0 && self.beside.is_none()) {
            return self.joined(decodes, context, *one);
        }
        let sequences = f64::from(decodes);
        let mean = if decodes > 0 { context as f64 / sequences } else { 0.0 };
        let decodes = Many::One(Decodes { sequences, context: mean });
        let (step, host) = self.chips(&Work { decodes, chunks: Many::List(chunks), drafts, beside: self.beside });
        Took { step: step.round() as Ns, host: host.into() }
    }

    fn host(&mut self, decodes: u32) -> Host {
        let at = decodes as usize;
        if self.hosts.len() <= at {
            self.hosts.resize(at + 1, None);
        }
        let timer = &self.timer;
        *self.hosts[at].get_or_insert_with(|| Host::from(timer.host(&Work::decode(f64::from(decodes), 1.0))).whole())
    }

    fn run(&mut self, decodes: u32, context: u64) -> Stretch {
        let n = u64::from(decodes);
        let i = below(context / n);
        let (low, high) = (self.at(decodes, i), self.at(decodes, i + 1));
        let (from, to) = (n * node(i), n * node(i + 1));
        let slope = (high - low) / (to - from) as i64;
        let first = low + slope * (context - from) as i64;
        Stretch { first, more: slope * n as i64, steps: (to - context).div_ceil(n) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_over_changes_no_end() {
        for parts in (0..5_000_000).step_by(1013).chain((1 << 60) - 9..(1 << 60) + 9) {
            let (ns, rest) = carried(parts);
            assert!(rest >> SCALE == 0 && ns + whole(rest) == whole(parts), "{parts}");
            assert_eq!(ns + whole(rest + 777_777), whole(parts + 777_777));
        }
    }

    #[test]
    fn contexts_are_found_between_their_nodes() {
        for context in (0..300_000).step_by(7) {
            let i = below(context);
            assert!(node(i) <= context && context < node(i + 1), "{context}: {i}");
        }
    }
}
