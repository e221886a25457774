//! What happened, summed up as it happens: percentiles, batches for intervals, a timeline, the worst requests.
//! Percentiles are those of [`crate::series`].

use crate::Ns;
use crate::clock::{Stretch, whole};
use crate::engine::Sequence;
use crate::replica::{Replica, Sink};
use crate::series::Ranks;
pub use crate::series::{Histogram, Series};

/// What one request met, in nanoseconds; the parts add up to the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub id: u64,
    pub replica: u32,
    pub arrival: Ns,
    pub prompt: u32,
    pub output: u32,
    pub cached: u32,
    pub preempted: u32,
    pub recomputed: u32,
    /// Tokens of its prompt fetched from tiers below the chip's memory.
    pub fetched: u32,
    /// Until it is first scheduled, but for what it fetches.
    pub queue: Ns,
    /// Until what it fetches has come.
    pub fetch: Ns,
    /// Until its first token: its prompt, and whoever shares its steps.
    pub prefill: Ns,
    /// Between its tokens: steps of decodes alone, steps with prompts of others, evicted and computed again.
    pub decode: Ns,
    pub stalled: Ns,
    pub evicted: Ns,
    /// Between pools.
    pub transfer: Ns,
    /// Outside the engine, before its first token is seen.
    pub outside: Ns,
    /// In attempts that were refused or lost, and until it was sent again.
    pub retried: Ns,
    /// Whose it is.
    pub class: u32,
}

/// Why a request was never answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its client gave up.
    TimedOut,
    /// A full queue, or no replica that takes requests, refused it once too often.
    Refused,
    /// It was inside a replica that died, or on its way to one, once too often.
    Lost,
}

/// A request that was never answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    pub id: u64,
    pub arrival: Ns,
    pub prompt: u32,
    pub output: u32,
    pub class: u32,
    /// Times it was sent.
    pub attempts: u32,
    /// When it was given up.
    pub at: Ns,
    pub why: Why,
}

impl Outcome {
    pub fn ttft(&self) -> Ns {
        self.retried + self.queue + self.fetch + self.prefill + self.transfer + self.outside
    }

    pub fn e2e(&self) -> Ns {
        self.ttft() + self.decode + self.stalled + self.evicted
    }

    /// Time per token after the first; none for an answer of one.
    pub fn tpot(&self) -> Option<f64> {
        (self.output > 1).then(|| (self.e2e() - self.ttft()) as f64 / f64::from(self.output - 1))
    }
}

/// Limits a request has to meet to count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    pub ttft: Option<Ns>,
    pub tpot: Option<Ns>,
    pub e2e: Option<Ns>,
}

impl Limits {
    fn met(&self, o: &Outcome) -> bool {
        self.ttft.is_none_or(|most| o.ttft() <= most)
            && self.e2e.is_none_or(|most| o.e2e() <= most)
            && self.tpot.is_none_or(|most| o.tpot().is_none_or(|t| t <= most as f64))
    }

    pub fn any(&self) -> bool {
        self.ttft.or(self.tpot).or(self.e2e).is_some()
    }
}

/// Requests that arrived after each other: their percentiles are one sample of a run's.
#[derive(Clone, Debug, Default)]
struct Batch {
    values: [Vec<u64>; 4],
}

/// Percentiles of a batch by metric, as [`SAMPLED`], and the mean.
pub type Sample = [[f64; 5]; 4];

/// Percentiles a batch keeps.
pub const SAMPLED: [f64; 4] = [0.5, 0.9, 0.95, 0.99];

/// A stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    pub arrived: u64,
    pub finished: u64,
    pub tokens: u64,
    /// Time that requests spent in it after they were first scheduled, and before; of those that ended.
    pub running: Ns,
    pub waiting: Ns,
    /// Used blocks of the cache of one replica, most seen at a step with prompts.
    pub used: u32,
}

/// How much is kept of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Keep {
    /// Requests before this one, in order of arrival, only warm up.
    pub warm: u64,
    /// Requests that count.
    pub requests: u64,
    /// Batches for intervals.
    pub batches: u64,
    pub limits: Limits,
    /// Time of each request outside the engine.
    pub outside: Ns,
    /// Every request's outcome.
    pub each: bool,
    /// Requests by what they waited.
    pub worst: usize,
}

/// Steps and requests of a stretch of time, up to a size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub from: Ns,
    pub to: Ns,
    pub steps: Vec<Step>,
    pub requests: Vec<Outcome>,
    pub left_out: u64,
}

/// A step, or several that are alike, of a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    pub replica: u32,
    pub start: Ns,
    pub end: Ns,
    pub decodes: u32,
    pub prompt: u32,
}

impl Window {
    /// Most steps, and most requests.
    const MOST: usize = 100_000;

    pub fn new(from: Ns, to: Ns) -> Self {
        Self { from, to, ..Self::default() }
    }

    fn keep<T>(all: &mut Vec<T>, one: T, left_out: &mut u64) {
        if all.len() < Self::MOST { all.push(one) } else { *left_out += 1 }
    }
}

#[derive(Clone, Debug)]
pub struct Tally {
    keep: Keep,
    pub replica: u32,
    pub queue: Series,
    pub ttft: Series,
    pub tpot: Series,
    pub e2e: Series,
    pub gaps: Histogram,
    /// Parts of all latencies, in nanoseconds: queue, prefill, decode, stalled, evicted, transfer, outside, retried,
    /// fetch.
    pub parts: [u128; 9],
    open: Vec<(u64, Batch)>,
    pub samples: Vec<(u64, Sample)>,
    pub measured: u64,
    pub met: u64,
    pub tokens_out: u64,
    pub tokens_in: u64,
    pub tokens_cached: u64,
    pub tokens_fetched: u64,
    pub first_arrival: Ns,
    pub last_arrival: Ns,
    pub last_finish: Ns,
    pub each: Vec<Outcome>,
    /// Those that were never answered, where each is kept.
    pub failures: Vec<Failure>,
    pub worst: Vec<Outcome>,
    pub window: Option<Box<Window>>,
    /// Width of a moment, doubled as the run gets longer.
    pub width: Ns,
    pub moments: Vec<Moment>,
    /// The start of what counts.
    pub from: Ns,
    pub finished_all: u64,
    /// Requests that were given up, of those that count and in all.
    pub failed: u64,
    pub failed_all: u64,
    /// By class of clients, where there are several.
    pub classes: Vec<ClassTally>,
}

/// What the requests of one class met.
#[derive(Clone, Debug, Default)]
pub struct ClassTally {
    pub limits: Limits,
    pub queue: Series,
    pub ttft: Series,
    pub tpot: Series,
    pub e2e: Series,
    pub measured: u64,
    pub met: u64,
    pub failed: u64,
    pub tokens_out: u64,
}

impl ClassTally {
    fn merge(&mut self, other: &Self) {
        self.queue.merge(&other.queue);
        self.ttft.merge(&other.ttft);
        self.tpot.merge(&other.tpot);
        self.e2e.merge(&other.e2e);
        self.measured += other.measured;
        self.met += other.met;
        self.failed += other.failed;
        self.tokens_out += other.tokens_out;
    }
}

/// Most moments of a timeline.
const MOMENTS: usize = 512;

impl Tally {
    pub fn new(keep: Keep) -> Self {
        Self {
            keep,
            replica: 0,
            queue: Series::default(),
            ttft: Series::default(),
            tpot: Series::default(),
            e2e: Series::default(),
            gaps: Histogram::default(),
            parts: [0; 9],
            open: Vec::new(),
            samples: Vec::new(),
            measured: 0,
            met: 0,
            tokens_out: 0,
            tokens_in: 0,
            tokens_cached: 0,
            tokens_fetched: 0,
            first_arrival: Ns::MAX,
            last_arrival: 0,
            last_finish: 0,
            each: Vec::new(),
            failures: Vec::new(),
            worst: Vec::new(),
            window: None,
            width: 1 << 27,
            moments: Vec::new(),
            from: if keep.warm == 0 { 0 } else { Ns::MAX },
            finished_all: 0,
            failed: 0,
            failed_all: 0,
            classes: Vec::new(),
        }
    }

    /// A request was sent, here or elsewhere: what counts may begin with it.
    pub fn begins(&mut self, id: u64, at: Ns) {
        if id == self.keep.warm {
            self.from = at;
        }
    }

    /// How many are to be measured.
    pub(crate) fn requests(&self) -> u64 {
        self.keep.requests
    }

    /// A request was sent here.
    pub fn arrived(&mut self, id: u64, at: Ns) {
        self.begins(id, at);
        if id >= self.keep.warm {
            self.first_arrival = self.first_arrival.min(at);
            self.last_arrival = self.last_arrival.max(at);
        }
        self.moment(at).arrived += 1;
    }

    /// A request is given up.
    pub fn failed(&mut self, f: Failure) {
        self.failed_all += 1;
        let counts = u64::from(f.id >= self.keep.warm);
        self.failed += counts;
        if let Some(class) = self.classes.get_mut(f.class as usize) {
            class.failed += counts;
        }
        if self.keep.each {
            self.failures.push(f);
        }
    }

    /// Counts classes of clients apart, each by its limits.
    #[must_use]
    pub fn by_class(mut self, limits: impl Iterator<Item = Limits>) -> Self {
        self.classes = limits.map(|limits| ClassTally { limits, ..ClassTally::default() }).collect();
        self
    }

    fn moment(&mut self, at: Ns) -> &mut Moment {
        // The width is a power of two.
        while (at >> self.width.trailing_zeros()) as usize >= MOMENTS {
            self.halve();
        }
        let i = (at >> self.width.trailing_zeros()) as usize;
        if self.moments.len() <= i {
            self.moments.resize(i + 1, Moment::default());
        }
        &mut self.moments[i]
    }

    /// Tells each moment how much of a time falls into it.
    fn pass(&mut self, from: Ns, to: Ns, tell: impl Fn(&mut Moment, Ns)) {
        let width = self.width;
        let mut at = from;
        while at < to {
            let until = ((at / width + 1) * width).min(to);
            tell(self.moment(at), until - at);
            at = until;
        }
    }

    fn look(&mut self, at: Ns, replica: &Replica) {
        let used = replica.engine.used();
        let m = self.moment(at);
        m.used = m.used.max(used);
    }

    pub fn outcome(&mut self, o: Outcome, finish: Ns) {
        self.finished_all += 1;
        self.last_finish = self.last_finish.max(finish);
        let m = self.moment(finish);
        m.finished += 1;
        m.tokens += u64::from(o.output);
        let scheduled = (o.arrival + o.retried + o.queue + o.fetch).min(finish);
        self.pass(o.arrival + o.retried, scheduled, |m, time| m.waiting += time);
        self.pass(scheduled, finish, |m, time| m.running += time);
        if self.keep.each {
            self.each.push(o);
        }
        if let Some(w) = self.window.as_mut().filter(|w| o.arrival < w.to && finish > w.from) {
            Window::keep(&mut w.requests, o, &mut w.left_out);
        }
        if o.id < self.keep.warm {
            return;
        }
        self.measured += 1;
        let limits = self.classes.get(o.class as usize).map_or(self.keep.limits, |c| c.limits);
        let met = u64::from(limits.met(&o));
        self.met += met;
        self.tokens_out += u64::from(o.output);
        self.tokens_in += u64::from(o.prompt);
        self.tokens_cached += u64::from(o.cached);
        self.tokens_fetched += u64::from(o.fetched);
        for (sum, part) in self
            .parts
            .iter_mut()
            .zip([o.queue, o.prefill, o.decode, o.stalled, o.evicted, o.transfer, o.outside, o.retried, o.fetch])
        {
            *sum += u128::from(part);
        }
        let tpot = o.tpot().map(|t| t.round() as u64);
        self.queue.add(o.queue);
        self.ttft.add(o.ttft());
        self.e2e.add(o.e2e());
        if let Some(t) = tpot {
            self.tpot.add(t);
        }
        if let Some(class) = self.classes.get_mut(o.class as usize) {
            class.measured += 1;
            class.met += met;
            class.tokens_out += u64::from(o.output);
            class.queue.add(o.queue);
            class.ttft.add(o.ttft());
            class.e2e.add(o.e2e());
            if let Some(t) = tpot {
                class.tpot.add(t);
            }
        }
        self.sample(&o, tpot);
        self.keep_worst(o);
    }

    fn sample(&mut self, o: &Outcome, tpot: Option<u64>) {
        let size = (self.keep.requests / self.keep.batches.max(1)).max(1);
        let which = (o.id - self.keep.warm) / size;
        let at = if let Some(at) = self.open.iter().position(|(n, _)| *n == which) {
            at
        } else {
            self.open.push((which, Batch::default()));
            self.open.len() - 1
        };
        let batch = &mut self.open[at].1;
        for (values, value) in batch.values.iter_mut().zip([Some(o.queue), Some(o.ttft()), tpot, Some(o.e2e())]) {
            values.extend(value);
        }
        if batch.values[0].len() as u64 == size {
            let (which, batch) = self.open.swap_remove(at);
            self.samples.push((which, batch.sample()));
        }
    }

    fn keep_worst(&mut self, o: Outcome) {
        let most = self.keep.worst;
        if most == 0
            || (self.worst.len() == most && self.worst.last().is_some_and(|w| (w.e2e(), w.id) >= (o.e2e(), o.id)))
        {
            return;
        }
        let at = self.worst.partition_point(|w| (w.e2e(), w.id) > (o.e2e(), o.id));
        self.worst.insert(at, o);
        self.worst.truncate(most);
    }

    /// The mean queueing time of each batch, in order, of samples that were taken out.
    pub fn samples_of(&self, samples: &[(u64, Sample)]) -> Vec<f64> {
        samples.iter().map(|(_, s)| s[0][4]).collect()
    }

    /// Adds the tally of another part of the same run.
    pub fn merge(&mut self, other: &Self) {
        self.queue.merge(&other.queue);
        self.ttft.merge(&other.ttft);
        self.tpot.merge(&other.tpot);
        self.e2e.merge(&other.e2e);
        self.gaps.merge(&other.gaps);
        for (a, b) in self.parts.iter_mut().zip(other.parts) {
            *a += b;
        }
        for (which, batch) in &other.open {
            match self.open.iter_mut().find(|(n, _)| n == which) {
                Some((_, mine)) => mine.values.iter_mut().zip(&batch.values).for_each(|(a, b)| a.extend_from_slice(b)),
                None => self.open.push((*which, batch.clone())),
            }
        }
        let size = (self.keep.requests / self.keep.batches.max(1)).max(1);
        for at in (0..self.open.len()).rev() {
            if self.open[at].1.values[0].len() as u64 >= size {
                let (which, batch) = self.open.swap_remove(at);
                self.samples.push((which, batch.sample()));
            }
        }
        self.samples.extend_from_slice(&other.samples);
        self.measured += other.measured;
        self.met += other.met;
        self.tokens_out += other.tokens_out;
        self.tokens_in += other.tokens_in;
        self.tokens_cached += other.tokens_cached;
        self.tokens_fetched += other.tokens_fetched;
        self.first_arrival = self.first_arrival.min(other.first_arrival);
        self.last_arrival = self.last_arrival.max(other.last_arrival);
        self.last_finish = self.last_finish.max(other.last_finish);
        self.finished_all += other.finished_all;
        self.failed += other.failed;
        self.failed_all += other.failed_all;
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            mine.merge(theirs);
        }
        self.each.extend_from_slice(&other.each);
        self.failures.extend_from_slice(&other.failures);
        other.worst.iter().for_each(|o| self.keep_worst(*o));
        let mut theirs = other.clone();
        while theirs.width < self.width {
            theirs.halve();
        }
        while self.width < theirs.width {
            self.halve();
        }
        for (i, m) in theirs.moments.iter().enumerate() {
            if self.moments.len() <= i {
                self.moments.resize(i + 1, Moment::default());
            }
            self.moments[i] = self.moments[i].with(m);
        }
    }

    fn halve(&mut self) {
        self.width *= 2;
        let pairs = self.moments.chunks(2).map(|pair| pair.iter().fold(Moment::default(), Moment::with));
        self.moments = pairs.collect();
    }
}

impl Moment {
    fn with(self, b: &Self) -> Self {
        Self {
            arrived: self.arrived + b.arrived,
            finished: self.finished + b.finished,
            tokens: self.tokens + b.tokens,
            running: self.running + b.running,
            waiting: self.waiting + b.waiting,
            used: self.used.max(b.used),
        }
    }
}

impl Batch {
    fn sample(mut self) -> Sample {
        let mut all = [[f64::NAN; 5]; 4];
        for (values, row) in self.values.iter_mut().zip(&mut all) {
            row[4] = values.iter().map(|v| u128::from(*v)).sum::<u128>() as f64 / values.len() as f64;
            let mut ranks = Ranks::new(values);
            for (p, to) in SAMPLED.iter().zip(row.iter_mut()) {
                *to = ranks.at(*p).unwrap_or(f64::NAN);
            }
        }
        all
    }
}

impl Sink for Tally {
    fn finished(&mut self, s: &Sequence, at: Ns, stalled: Ns) {
        let first = s.first_token;
        let decode = at - first;
        let computed = if s.sent > 0 { s.sent } else { first };
        let evicted = s.lost.min(decode);
        let stalled = stalled.min(decode - evicted);
        let (fetched, fetch) = s.below.as_ref().map_or((0, 0), |b| (b.fetched, b.waited));
        let o = Outcome {
            id: s.id,
            replica: self.replica,
            arrival: s.arrival - s.before,
            prompt: s.prompt,
            output: s.output,
            cached: s.cached,
            preempted: s.preempted,
            recomputed: s.recomputed,
            fetched,
            fetch,
            queue: s.first_scheduled - s.arrival - fetch,
            prefill: computed - s.first_scheduled,
            decode: decode - evicted - stalled,
            stalled,
            evicted,
            transfer: first - computed,
            outside: self.keep.outside + s.handed,
            retried: s.before,
            class: s.class,
        };
        self.outcome(o, at);
    }

    fn gaps(&mut self, from: Ns, steps: Stretch, sequences: u32) {
        // Of steps at once, those that begin before what counts are left out, as they are one by one.
        let (mut early, mut high) = (0, if from < self.from { steps.steps } else { 0 });
        while early < high {
            let middle = u64::midpoint(early, high);
            if from + whole(steps.sum(middle)) < self.from { early = middle + 1 } else { high = middle }
        }
        let counted = Stretch { first: steps.at(early), steps: steps.steps - early, ..steps };
        counted.spread(|parts, n| self.gaps.add(parts, n * u64::from(sequences)));
    }

    fn mixed(&mut self, at: Ns, replica: &Replica) {
        self.look(at, replica);
    }

    fn steps(&mut self, start: Ns, end: Ns, decodes: u32, prompt: u32) {
        if let Some(w) = self.window.as_mut().filter(|w| start < w.to && end > w.from) {
            Window::keep(&mut w.steps, Step { replica: self.replica, start, end, decodes, prompt }, &mut w.left_out);
        }
    }
}
