//! One replica: an engine and its clock, from call to call.
//!
//! A call chooses a step. In the plain loop the next call comes when the step has ended; with overlap, when it has started, so
//! that two steps are under way. At one time, steps end first, then requests arrive, then the engine is called.
//!
//! A replica of several pipeline stages has as many batches under way (`pipe.rs`).
//!
//! There are three ways through the same steps ([`Pace`]). The general one asks the scheduler at every call. The plain one keeps
//! what decodes in dense counters, as all of them get one token in each step: a step is one pass over them, and only what
//! changes who decodes goes through the scheduler. The quick one takes the steps between two such events at once. All give the
//! same times to the nanosecond and leave the same free list.

mod bundle;
mod glide;
mod lane;
mod pipe;
mod quick;

pub use bundle::{Bundle, Lockstep};

use crate::Ns;
use crate::clock::{Clock, Host, Stretch, Took, carried, single, whole};
use crate::engine::{Engine, Loads, Sequence, Settings, Share};
use lane::Lane;
use rackmath_theory::timer::Chunk;
use rackmath_units::Chance;
use std::collections::VecDeque;

/// Who is told what happens.
pub trait Sink {
    /// A request is done; `stalled` is the time of steps with others' prompts after its first token.
    fn finished(&mut self, s: &Sequence, at: Ns, stalled: Ns);

    /// `sequences` waited for their next token for each step of a stretch that begins at `from`.
    fn gaps(&mut self, from: Ns, steps: Stretch, sequences: u32);

    /// A step with prompts begins.
    fn mixed(&mut self, _at: Ns, _replica: &Replica) {}

    /// Steps that are alike follow each other from `start` to `end`.
    fn steps(&mut self, _start: Ns, _end: Ns, _decodes: u32, _prompt: u32) {}

    /// What is told next happens in this group of a replica.
    fn group(&mut self, _group: usize) {}
}

/// How a replica goes through its steps; all ways give the same. What an engine cannot do goes through its scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Every step through the scheduler.
    General,
    /// Every step by itself, decodes over dense counters.
    Steps,
    /// Steps between two events at once.
    Jumps,
}

impl From<bool> for Pace {
    /// Whether to be quick.
    fn from(quick: bool) -> Self {
        if quick { Self::Jumps } else { Self::Steps }
    }
}

/// A step that was chosen: when the chips begin and end it, the wait of those who decode in it, its host.
#[derive(Clone, Copy, Debug)]
struct Timing {
    start: Ns,
    end: Ns,
    gap: Stretch,
    host: Host,
    /// It computes prompts.
    mixed: bool,
    /// What it counts as, in stalls of others.
    counted: Ns,
}

impl Timing {
    /// The chips may have waited for the host since the step before.
    fn wait_since(&mut self, device: Ns) {
        if self.start > device {
            self.gap = single(self.end - device);
        }
    }
}

/// A step under way, by the general path.
#[derive(Clone, Debug, Default)]
struct Flight {
    end: Ns,
    shares: Vec<Share>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub steps: u64,
    pub busy: Ns,
    /// Time of steps with prompts.
    pub mixed: Ns,
    pub prompt_tokens: u64,
    pub cached_tokens: u64,
    pub preemptions: u64,
    pub recomputed: u64,
    /// Steps without work, because other groups of the replica had some, and their time.
    pub dummies: u64,
    pub dummy: Ns,
}

impl Totals {
    #[must_use]
    pub fn with(self, b: &Self) -> Self {
        Self {
            steps: self.steps + b.steps,
            busy: self.busy + b.busy,
            mixed: self.mixed + b.mixed,
            prompt_tokens: self.prompt_tokens + b.prompt_tokens,
            cached_tokens: self.cached_tokens + b.cached_tokens,
            preemptions: self.preemptions + b.preemptions,
            recomputed: self.recomputed + b.recomputed,
            dummies: self.dummies + b.dummies,
            dummy: self.dummy + b.dummy,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Replica {
    pub engine: Engine,
    pace: Pace,
    lane: Option<Box<Lane>>,
    /// When the engine is called next.
    due: Option<Ns>,
    /// When the last chosen step ends.
    device: Ns,
    /// When each stage of a pipeline is free; none where there is one.
    pipe: Vec<Ns>,
    /// The tokens of the last step are taken up when the next is launched, not when it ends.
    open: bool,
    /// Where the run of decodes under way began, and the parts of a nanosecond since; none after other steps.
    run: Option<(Ns, i64)>,
    flights: VecDeque<Flight>,
    spare: Vec<Vec<Share>>,
    chunks: Vec<Chunk>,
    /// Requests inside whose answers others may share: only the general path stores them in order.
    findable: u32,
    /// After steps taken at once beside a scheduler: nanoseconds that none to come is shorter than.
    least: Ns,
    /// Calls since the last eviction.
    calm: u32,
    admissions: u64,
    /// Steps that were not of decodes alone.
    launches: u64,
    /// Chance that a draft is accepted after those before it, and a seed.
    acceptance: Option<(f64, u64)>,
    /// Tokens of prompts that came and are not scheduled.
    queued: u64,
    /// Waiting requests that bring their cache along: only the general path admits them.
    bringing: u32,
    /// Requests whose clients are gone, seen at the next call: slots and names.
    gone: Vec<(u32, u64)>,
    pub totals: Totals,
}

/// After so many calls without an eviction no evicted request has a token under way.
const CALM: u32 = 4;

impl Replica {
    pub fn new(settings: impl Into<Settings>, pace: impl Into<Pace>) -> Self {
        let settings = settings.into();
        let stages = settings.stages() as usize;
        let engine = Engine::new(settings);
        Self {
            pipe: if stages > 1 { vec![0; stages] } else { Vec::new() },
            pace: pace.into(),
            engine,
            lane: None,
            due: None,
            device: 0,
            open: false,
            run: None,
            flights: VecDeque::new(),
            spare: Vec::new(),
            chunks: Vec::new(),
            findable: 0,
            least: 0,
            calm: CALM,
            admissions: 0,
            launches: 0,
            acceptance: None,
            queued: 0,
            bringing: 0,
            gone: Vec::new(),
            totals: Totals::default(),
        }
    }

    /// Each draft is accepted by this chance after those before it; drawn for each request by itself.
    #[must_use]
    pub fn accepting(self, chance: f64, seed: u64) -> Self {
        Self { acceptance: Some((chance, seed)), ..self }
    }

    fn lag(&self) -> bool {
        self.engine.overlaps()
    }

    pub fn running(&self) -> usize {
        self.engine.running()
    }

    pub fn waiting(&self) -> usize {
        self.engine.waiting()
    }

    /// A request arrives and gets a slot; everything before `now` has happened.
    pub fn arrive(&mut self, now: Ns, sequence: Sequence) -> u32 {
        self.findable += u32::from(sequence.place.shared() > sequence.prompt);
        self.queued += u64::from(sequence.prompt - sequence.brought);
        self.bringing += u32::from(sequence.brought > 0);
        self.due = Some(self.due.unwrap_or(now));
        self.engine.add(sequence)
    }

    /// Gives back the blocks of a request that has ended and kept them.
    pub fn let_go(&mut self, now: Ns, slot: u32) {
        self.engine.let_go(slot);
        self.due = Some(self.due.unwrap_or(now));
    }

    /// A client is gone: the engine sees it at its next call.
    pub fn abort(&mut self, now: Ns, slot: u32) {
        let r = self.engine.sequence_mut(slot);
        r.kept = false;
        self.gone.push((slot, r.id));
        self.due = Some(self.due.unwrap_or(now));
    }

    /// The replica dies; all it held is gone. Who was inside, by name.
    pub fn fail(&mut self, now: Ns) -> Vec<u64> {
        let inside = self.engine.sequences().filter(|s| !s.done || s.kept).map(|s| s.id);
        let mut inside: Vec<u64> = inside.collect();
        inside.sort_unstable();
        let mut totals = self.totals;
        totals.busy -= self.device.saturating_sub(now).min(totals.busy);
        let fresh = Self::new(self.engine.settings(), self.pace);
        *self = Self { totals, acceptance: self.acceptance, ..fresh };
        inside
    }

    /// Takes out, at a call, those whose clients are gone.
    fn drop_gone(&mut self) {
        if let Some(lane) = self.lane.take() {
            self.leave(*lane);
        }
        // A step under way may still hold their tokens.
        (self.calm, self.least) = (0, 0);
        while let Some((slot, id)) = self.gone.pop() {
            let findable = self.findable_answer(slot);
            let r = self.engine.sequence(slot);
            if r.id != id || r.done {
                continue;
            }
            if r.first_token == Ns::MAX {
                self.queued -= u64::from(r.prompt - r.reached);
                self.bringing -= u32::from(r.brought > 0);
            }
            self.findable -= u32::from(findable);
            self.engine.end(slot);
        }
    }

    fn ended(&self) -> Option<Ns> {
        match &self.lane {
            Some(lane) => lane.next(),
            None => self.flights.front().filter(|_| !self.open || self.flights.len() > 1).map(|f| f.end),
        }
    }

    /// Tokens of prompts that came and are not scheduled.
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// Nothing ends a request before this time.
    pub fn soonest(&self) -> Option<Ns> {
        let next = self.next()?;
        if self.waiting() > 0 {
            return Some(next);
        }
        let end = match &self.lane {
            Some(lane) => lane.soonest(self.device),
            None => self.engine.glides().filter(|_| self.least > 0).map(|n| self.device + u64::from(n) * self.least),
        };
        Some(end.map_or(next, |end| end.max(next)))
    }

    /// When something next happens by itself.
    pub fn next(&self) -> Option<Ns> {
        match (self.due, self.ended()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Lets happen what happens before the calls at `to`. With `stop`, stops when a request is done, at the time given back.
    pub fn advance(&mut self, clock: &mut impl Clock, to: Ns, stop: bool, sink: &mut impl Sink) -> Option<Ns> {
        loop {
            let due = self.due.unwrap_or(Ns::MAX);
            if let Some(end) = self.ended().filter(|end| *end <= due && *end <= to) {
                let done = if self.lane.is_some() { self.apply_quick(end, sink) } else { self.apply(sink) };
                if done && stop {
                    return Some(end);
                }
            } else if due < to {
                self.call(clock, due, to, sink);
            } else {
                return None;
            }
        }
    }

    fn call(&mut self, clock: &mut impl Clock, now: Ns, to: Ns, sink: &mut impl Sink) {
        if !self.gone.is_empty() {
            self.drop_gone();
        }
        if self.engine.running() == 0 && self.engine.waiting() == 0 {
            self.engine.rest();
            self.wait(now);
            return;
        }
        let able = self.engine.jumps() && self.pace != Pace::General && self.findable == 0 && self.bringing == 0;
        if able && self.lane.is_none() && self.calm >= CALM {
            self.enter();
        }
        if let Some(mut lane) = self.lane.take() {
            if able && self.call_quick(&mut lane, clock, now, to, sink) {
                self.lane = Some(lane);
                return;
            }
            self.leave(*lane);
        }
        if self.pace != Pace::Jumps || !self.glide(clock, now, to, sink) {
            self.least = 0;
            self.call_general(clock, now, sink);
        }
    }

    /// Where the run of decodes that a step at `start` belongs to began, and how long it is.
    fn run_at(&self, start: Ns) -> (Ns, i64) {
        let (from, sum) = self.run.filter(|_| self.device == start).unwrap_or((start, 0));
        // A pool that only decodes runs for hours: whole nanoseconds are kept with the start, where there is room for them.
        let (ns, rest) = carried(sum);
        (from + ns, rest)
    }

    fn call_general(&mut self, clock: &mut impl Clock, now: Ns, sink: &mut impl Sink) {
        if !self.choose(now) {
            self.wait(now);
            return;
        }
        if !self.pipe.is_empty() {
            self.pass_on(clock, now, sink);
            return;
        }
        let mut timing = self.time(clock, now);
        timing.wait_since(self.device);
        self.take(now, &timing, sink);
        self.due = Some(self.due_after(now, &timing));
        self.device = timing.end;
    }

    /// The shares that were chosen are under way.
    fn take(&mut self, now: Ns, timing: &Timing, sink: &mut impl Sink) {
        let mut shares = self.spare.pop().unwrap_or_default();
        shares.clear();
        shares.extend_from_slice(&self.engine.decision().shares);
        self.note(&shares, now, timing, sink);
        self.take_up(now + timing.host.launch);
        self.flights.push_back(Flight { end: timing.end, shares });
        self.open = self.lag();
    }

    /// Steps of decodes that can be passed in a bundle; 0 where the next is to be chosen, none where it has no work.
    fn steady(&self) -> Option<u32> {
        if self.running() + self.waiting() == 0 && self.gone.is_empty() {
            return None;
        }
        // Others may share the answers of some, or a step with a first token is not taken up.
        let decodes = |f: &Flight| f.shares.iter().all(|s| s.decodes && s.samples);
        let able = self.engine.jumps()
            && self.pace == Pace::Jumps
            && self.findable == 0
            && self.bringing == 0
            && self.gone.is_empty();
        let alone = self.flights.len() == usize::from(self.open) && self.flights.iter().all(decodes);
        Some(if able && alone && self.calm >= CALM { self.engine.vllm().steady() } else { 0 })
    }

    /// What a step holds in which everybody decodes.
    fn decoding(&self) -> Option<Composed> {
        let s = self.engine.running();
        let context = || self.engine.vllm().running.iter().map(|slot| u64::from(self.engine.sequence(*slot).computed));
        (s > 0).then(|| Composed { decodes: s as u32, context: context().sum(), ..Composed::default() })
    }

    /// Steps of decodes are behind everybody; the last of them is under way.
    fn pass(&mut self, steps: u32) {
        self.engine.vllm_mut().pass(steps);
        for at in 0..self.engine.vllm().running.len() {
            let slot = self.engine.vllm().running[at];
            self.engine.sequence_mut(slot).last_token = self.device;
        }
        if let Some(flight) = self.flights.back_mut() {
            flight.end = self.device;
        }
    }

    /// Nothing can be given before the step under way has ended, or something that is fetched has come.
    fn wait(&mut self, now: Ns) {
        self.take_up(now);
        // Of batches in a pipeline the first.
        let under_way = if self.pipe.is_empty() { self.flights.back() } else { self.flights.front() };
        let ends = under_way.map(|f| f.end);
        self.due = ends.into_iter().chain(self.engine.comes()).min().or(self.again(now));
    }

    /// Who was evicted is not admitted in the same call.
    fn again(&self, now: Ns) -> Option<Ns> {
        (!self.engine.decision().preempted.is_empty()).then_some(now)
    }

    /// When the engine is called after a step that is chosen now.
    fn due_after(&self, now: Ns, step: &Timing) -> Ns {
        if self.lag() { self.device.max(now + step.host.launch) + step.host.choose } else { step.end }
    }

    fn host(&self, of: impl FnOnce() -> Host) -> Host {
        if self.lag() { of() } else { Host::default() }
    }

    /// Asks the scheduler; false where nobody is given anything.
    fn choose(&mut self, now: Ns) -> bool {
        self.engine.at(now);
        self.engine.schedule();
        let evicted = self.engine.decision().preempted.len();
        self.calm = if evicted == 0 { self.calm.saturating_add(1) } else { 0 };
        self.totals.preemptions += evicted as u64;
        !self.engine.decision().shares.is_empty()
    }

    /// The host takes the tokens of the step under way up when it has launched the next.
    fn take_up(&mut self, at: Ns) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        let Some(flight) = self.flights.back_mut() else { return };
        for share in flight.shares.iter().filter(|s| !s.decodes) {
            let r = self.engine.sequence_mut(share.slot);
            if r.first_token == flight.end {
                r.first_token = at.max(flight.end);
            }
        }
        flight.end = flight.end.max(at);
    }

    /// The step that was chosen now.
    fn time(&mut self, clock: &mut impl Clock, now: Ns) -> Timing {
        let all = self.composed();
        let Composed { decodes, context, drafts, tokens } = all;
        self.totals.steps += 1;
        if tokens == 0 && drafts == 0 {
            let host = self.host(|| clock.host(decodes));
            let start = self.device.max(now + host.prepare);
            let (from, sum) = self.run_at(start);
            let one = Stretch { steps: 1, ..clock.run(decodes, context) };
            let run = (from, sum + one.first);
            self.run = Some(run);
            let end = run.0 + whole(run.1);
            self.totals.busy += end - start;
            return Timing { start, end, gap: one, host, mixed: false, counted: end - start };
        }
        let took = clock.mixed(decodes, context, all.each(), &self.chunks);
        let timing = self.mixed(took, tokens > 0, now, self.engine.decision().loads);
        self.count_mixed(timing.end - timing.start, tokens);
        timing
    }

    /// A step that is not of decodes alone: it ends when the chips are done, and not before the host has launched it or what it
    /// loads has come.
    fn mixed(&mut self, took: Took, mixed: bool, now: Ns, loads: Loads) -> Timing {
        self.launches += 1;
        let host = self.host(|| took.host.nth(self.launches));
        let start = self.device.max(now + host.prepare).max(loads.start);
        let end = (start + took.step).max(now + host.launch).max(loads.end);
        self.run = None;
        Timing { start, end, gap: single(end - start), host, mixed, counted: end - start }
    }

    /// What the step that was chosen holds; its prompts are noted as chunks.
    fn composed(&mut self) -> Composed {
        let mut all = Composed::default();
        self.chunks.clear();
        for share in &self.engine.decision().shares {
            if share.decodes {
                all.decodes += 1;
                all.context += u64::from(share.before);
                all.drafts += share.drafts;
            } else {
                all.tokens += share.tokens;
                self.chunks.push(chunk(share));
            }
        }
        all
    }

    fn count_mixed(&mut self, took: Ns, tokens: u32) {
        self.totals.busy += took;
        self.totals.prompt_tokens += u64::from(tokens);
        if tokens > 0 {
            self.totals.mixed += took;
        }
    }

    /// Notes what a step means for its requests.
    fn note(&mut self, shares: &[Share], now: Ns, timing: &Timing, sink: &mut impl Sink) {
        let Timing { start, end, gap, host, mixed, counted } = *timing;
        let (mut together, mut decodes, mut tokens) = (0, 0, 0);
        if self.bringing > 0 {
            self.note_brought(shares, start, if mixed { counted } else { 0 });
        }
        for share in shares {
            self.note_share(share, now);
            let r = self.engine.sequence_mut(share.slot);
            decodes += u32::from(share.decodes);
            tokens += if share.decodes { 0 } else { share.tokens };
            if !share.samples {
                continue;
            }
            r.stalled = self.totals.mixed;
            if r.first_token == Ns::MAX {
                (r.first_token, r.stalls, r.handed) = (end, self.totals.mixed, host.hand);
            } else if r.last_token == self.device {
                together += 1;
            } else {
                if !share.decodes {
                    r.lost += start - r.last_token;
                }
                sink.gaps(start, single(end - r.last_token), 1);
            }
            r.last_token = end;
        }
        if together > 0 {
            sink.gaps(start, gap, together);
        }
        sink.steps(start, end, decodes, tokens);
        if tokens > 0 {
            sink.mixed(start, self);
        }
    }

    /// Those that bring their cache along show their first token where this step starts.
    fn note_brought(&mut self, shares: &[Share], start: Ns, counted: Ns) {
        let mixed = self.totals.mixed - counted;
        for share in shares {
            let r = self.engine.sequence_mut(share.slot);
            if r.brought > 0 && r.first_token == Ns::MAX {
                (r.first_token, r.last_token, r.stalls) = (start, start, mixed);
                self.bringing -= 1;
            }
        }
    }

    /// Notes admission and work done again.
    fn note_share(&mut self, share: &Share, now: Ns) {
        let r = self.engine.sequence_mut(share.slot);
        if r.first_scheduled == Ns::MAX {
            (r.first_scheduled, r.cached) = (now, share.before);
            self.totals.cached_tokens += u64::from(share.before);
        }
        if share.admitted {
            self.admissions += 1;
            r.admitted = self.admissions;
        }
        let end = (share.before + share.tokens).min(r.prompt);
        if end > r.reached {
            self.queued -= u64::from(end - r.reached);
            r.reached = end;
        }
        if !share.decodes && r.preempted > 0 {
            r.recomputed += share.tokens;
            self.totals.recomputed += u64::from(share.tokens);
        }
    }

    fn apply(&mut self, sink: &mut impl Sink) -> bool {
        let Some(flight) = self.flights.pop_front() else { return false };
        let mut done = false;
        for share in &flight.shares {
            let accepted = self.accepted(share);
            let findable = self.findable > 0 && self.findable_answer(share.slot);
            if self.engine.receive(share, accepted).finished {
                self.findable -= u32::from(findable);
                let r = self.engine.sequence(share.slot);
                sink.finished(r, flight.end, r.stalled - r.stalls);
                (done, self.least) = (true, 0);
            }
        }
        self.spare.push(flight.shares);
        done
    }

    fn findable_answer(&self, slot: u32) -> bool {
        let r = self.engine.sequence(slot);
        r.place.shared() > r.prompt
    }

    fn accepted(&mut self, share: &Share) -> u32 {
        let (Some((chance, seed)), true) = (self.acceptance, share.samples && share.drafts > 0) else { return 0 };
        let r = self.engine.sequence_mut(share.slot);
        let mut draws = Chance::new(seed ^ r.id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(r.verified) << 40));
        r.verified += 1;
        (0..share.drafts).take_while(|_| draws.uniform() < chance).count() as u32
    }
}

/// What a step holds: sequences that decode, the sum of their contexts, their drafts; tokens of prompts.
#[derive(Clone, Copy, Debug, Default)]
struct Composed {
    decodes: u32,
    context: u64,
    drafts: u32,
    tokens: u32,
}

impl Composed {
    fn rows(&self) -> u32 {
        self.decodes + self.drafts + self.tokens
    }

    /// Drafts of each sequence.
    fn each(&self) -> f64 {
        f64::from(self.drafts) / f64::from(self.decodes.max(1))
    }
}

fn chunk(share: &Share) -> Chunk {
    Chunk { tokens: f64::from(share.tokens), prompts: 1.0, past: f64::from(share.before) }
}
