//! Serving: what users see when many requests share the passes of one engine.
//!
//! $$ t = (1 - f)\,T(m, 0) + f\,T(m, s) \qquad \lambda = \frac{n}{D}\,\frac{t}{t'} \qquad D = \frac{O - 1}{a} \qquad f s = \lambda P
//!    \qquad m = 1 + n\,\frac{b - 1}{b} $$
//! $$ t' = t\big|_{f' = f (b - 1) / b} \qquad \mathrm{TPOT} = \frac{t'}{a} \qquad
//!    \mathrm{TTFT} = r + w + \tfrac{1}{2} T + \tfrac{W - 1}{2} T(m, 0) + \tfrac{k + p - 1}{p}\,T(m, s) + t_{req} \qquad n = b\,\frac{D\,t'}{D\,t' + t_{pre}} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | m | seen | 1 | sequences of a pass that decodes: whoever looks is one of them, the others are there for a share of their time |
//! | t, t' | step, [`Steady::tpot`] | s | the mean pass of the engine; that between two tokens of a user, which others' prompts lengthen and their own does not |
//! | n, b | decoding, running | 1 | sequences that decode; sequences that hold a cache, at most what memory allows |
//! | I, O | input, output | 1 | tokens of a prompt and of an answer |
//! | P | new | 1 | prompt tokens not found in a prefix cache |
//! | a | accepted | 1 | tokens a step yields to a sequence; 1 without speculation |
//! | D | steps | 1 | decode steps of a request |
//! | λ | per_step | 1 | requests that end, and so begin, in a pass: n / (D t') in a second, of which a pass takes t |
//! | f, s, k, p | share, size, chunks, stages | 1 | share of passes with prompt tokens, how many they carry, passes a prompt needs, pipeline stages |
//! | T | [`StepTimer`] | s | the time of a pass with n decoding sequences and s prompt tokens |
//! | r, w | queue, burst | s | waiting for memory; waiting behind the first wave of prompts |
//! | H | held | 1 | decode steps that the first prompt of a pass is held back, so that others join it |
//! | W | window | 1 | decode steps between two looks at what has come; those who wait for one look are computed together |
//!
//! Where prompts have passes of their own, T(m, s) is a decode step and, before it, the passes that its prompts need: one, or λ P / s
//! where that is more. No engine begins more prompts than its passes carry.
//!
//! A closed loop keeps c requests in the system: when memory holds fewer, the rest wait (r, by Little's law). Its requests
//! start together, and answers of nearly the same length end together, so prompts come in clumps: `clump` times the mean
//! rate for 1/clump of the time. An open loop draws arrivals at random; n is where arrivals and departures balance, and from
//! the rate of a full server on nothing balances: the state is that of the full server, and the queue grows.
//!
//! A finite run (a queue of N requests of one length, all there from the start) keeps every slot busy with whole requests: it lasts
//! ⌈N/b⌉ rounds, and in what is missing of the last one passes take the time of a lone sequence:
//!
//! $$ \mathrm{rate} = \frac{N}{N / \mathrm{rate}_{full} + (\lceil N/b \rceil - N/b)\,D\,T(1, 0)} $$
//!
//! With p pipeline stages T is the time through all of them: p micro-batches are under way, each with n/p sequences and λ/p prompts
//! where the engine cuts evenly (`even_stages`), with all prompts where a batch takes what is ready.
//!
//! Attention groups that share their experts take their passes together: a pass is one with prompts when any of the g groups
//! has some, and then
//!
//! $$ F = 1 - (1 - f)^g \qquad \bar s = s\,\frac{f}{F} \qquad \varphi = \frac{(b - 1)/b + g - 1}{g} $$
//!
//! of all passes are such, experts meet the mean s̄ of all groups' prompts where everything else meets those of its own group,
//! and a share φ of the prompts is not a user's own. Prompts of different groups come independently.
//!
//! Lengths that vary enter by their second moments ([`Spread`]): what sequences hold, what prompt tokens see, how long
//! prompts wait for prompts.
//!
//! Not valid: for percentiles, for bursts longer than a request, near saturation of an open loop (the queue of a busy
//! server depends on the second moments of its traffic, which means do not give): `rackmath-sim` answers these. Source: ours;
//! Little's law.

use crate::chunk::{Chunks, Rest};
use crate::machine::timer::{Beside, Chunk, Cost, Limit, Part, StepTimer, Work};
use crate::pass::Pass;
use rackmath_spec::engine::{Overhead, Prompts, Schedule};
use rackmath_units::{Seconds, float};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Requests {
    pub input: f64,
    pub output: f64,
    pub cached: f64,
    pub drafts: f64,
    /// Tokens a step yields to a sequence, its own included; 1 without speculation.
    pub accepted: f64,
    /// What lengths that vary add; nothing where all are alike.
    pub spread: Spread,
}

/// What a server of drawn lengths meets beyond one of their means, from [`crate::lengths`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Tokens a decoding sequence holds beyond those of the mean request.
    pub context: f64,
    pub whole: f64,
    /// Variance over mean of prompts: by so much a prompt token's own prompt is longer than the mean one.
    pub prompt: f64,
    pub prompt_cv2: f64,
}

impl Requests {
    /// Prompts and answers of fixed length, no cache, no speculation.
    pub fn of(input: f64, output: f64) -> Self {
        Self { input, output, cached: 0.0, drafts: 0.0, accepted: 1.0, spread: Spread::default() }
    }

    pub fn new_tokens(&self) -> f64 {
        (self.input * (1.0 - self.cached)).max(1.0)
    }

    pub fn steps(&self) -> f64 {
        ((self.output - 1.0) / self.accepted).max(0.0)
    }

    /// Cached tokens of a decoding sequence, on average.
    pub fn context(&self) -> f64 {
        self.input + self.output / 2.0 + self.spread.context
    }

    /// Prompt and answer of a sequence in memory, on average.
    pub fn whole(&self) -> f64 {
        self.input + self.output + self.spread.whole
    }

    /// Tokens in the cache before the first computed, more where prompts vary: each sees what is cached and half of the rest.
    pub fn past(&self) -> f64 {
        let more = if self.cached < 1.0 { self.spread.prompt * (1.0 + self.cached) / 2.0 } else { 0.0 };
        self.input - self.new_tokens() + more
    }
}

/// Tokens a step yields when each of k drafts is accepted with chance α after those before it: the sum of α^i, 0 <= i <= k.
pub fn yielded(drafts: f64, acceptance: f64) -> f64 {
    if acceptance >= 1.0 {
        return drafts + 1.0;
    }
    (1.0 - float::pow(acceptance, drafts + 1.0)) / (1.0 - acceptance)
}

/// One engine instance: one attention group of a layout.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a, T = Pass> {
    pub timer: &'a T,
    /// Attention groups that take every pass together with this one, itself among them.
    pub groups: f64,
    /// Attention groups, itself among them, whose prompts wait for each other where the schedule says how long.
    pub gathered: f64,
    /// Pipeline stages; each works on a share of the sequences.
    pub stages: f64,
    pub cold: Cold,
    pub schedule: &'a Schedule,
    pub overhead: &'a Overhead,
    /// Sequences whose cache fits, in this group.
    pub room: f64,
}

/// What is built while the first wave waits, on a server that nobody warmed up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cold {
    /// For each shape that its passes have.
    pub pass: Seconds,
    /// How many shapes there are.
    pub shapes: f64,
    /// Once, when a prompt is first cut: the kernel that joins its pieces.
    pub cut: Seconds,
}

impl Cold {
    /// Nothing is built.
    pub const NONE: Self = Self { pass: Seconds::ZERO, shapes: f64::INFINITY, cut: Seconds::ZERO };

    /// What a request waits for on average, in a wave of so many passes: those before it met K (1 - e^(-x/K)) of the K shapes, as
    /// many as there were passes x while these are few.
    fn wait(&self, passes: f64) -> f64 {
        let (k, p) = (self.shapes, passes - 1.0);
        // The first pass waits for one build, the last for all of them.
        let met = if p <= 0.0 {
            0.0
        } else if k.is_finite() {
            k * (1.0 + k / p * float::exp_m1(-p / k))
        } else {
            p / 2.0
        };
        self.pass.get() * (1.0 + met)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// So many requests in the group at any time, their prompts `clump` times denser than on average; fewer than one leaves
    /// some of the groups that pass together without any. A share `burst` of
    /// all arrives at once at the start, at a server that is cold or warm. In a convoy all answers have one length, and requests follow each other.
    Closed { concurrency: f64, clump: f64, burst: f64, cold: bool, convoy: bool },
    /// Requests per second, at random.
    Open { rate: f64 },
    /// As many as memory and the engine allow, more waiting.
    Full,
    /// So many requests of one length, all there from the start: how fast the last of them is through.
    Queue { requests: f64 },
}

impl Load {
    /// So many requests that come evenly, in a long run.
    pub fn even(concurrency: f64) -> Self {
        Self::Closed { concurrency, clump: 1.0, burst: 0.0, cold: false, convoy: false }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steady {
    /// Time between two tokens of a user: with the prompts of others, without their own.
    pub tpot: Seconds,
    /// Time to the first token, without waiting for memory.
    pub ttft: Seconds,
    pub queue: Seconds,
    pub rate: f64,
    pub decoding: f64,
    pub running: f64,
    pub waiting: f64,
    /// Share of passes that carry prompt tokens.
    pub prompt_share: f64,
    pub prompt_size: f64,
    /// Prompts that begin in a pass.
    pub prompts_per_pass: f64,
    pub decode: Cost,
    pub mixed: Cost,
    pub overloaded: bool,
}

impl Steady {
    pub fn e2e(&self, requests: &Requests) -> Seconds {
        self.queue + self.ttft + self.tpot * (requests.output - 1.0).max(0.0)
    }

    /// The mean pass of the engine.
    pub fn step(&self) -> Seconds {
        self.decode.time() * (1.0 - self.prompt_share) + self.mixed.time() * self.prompt_share
    }

    /// The same with what it is made of.
    pub fn mean_pass(&self) -> Cost {
        let mut mean = Cost::default();
        mean.plus(&self.decode, 1.0 - self.prompt_share);
        mean.plus(&self.mixed, self.prompt_share);
        mean
    }
}

impl<T: StepTimer> Server<'_, T> {
    fn prompt_room(&self, decoding: f64, requests: &Requests) -> f64 {
        let taken = match self.schedule.prompts {
            Prompts::RideAlong => decoding * (1.0 + requests.drafts),
            Prompts::First => 0.0,
        };
        (self.schedule.chunk - taken).max(64.0)
    }

    /// Stages that work on prompts of different micro-batches at the same time. Where a batch takes all that is ready, prompts are charged to every
    /// micro-batch: the simulator, which follows vLLM's rule, finds pipelines up to three times slower than equal parts would be.
    fn prompt_stages(&self) -> f64 {
        if self.schedule.even_stages { self.stages } else { 1.0 }
    }

    /// Steps that a prompt waits at most until every attention group has one, when so many begin in each group and step. The longest of the
    /// g - 1 waits of the others, of mean 1/λ, takes their sum of 1/i over λ; whichever ends first counts.
    fn gathered(&self, per_step: f64) -> f64 {
        let gather = self.schedule.gather;
        if self.gathered < 2.0 || gather <= self.schedule.looks {
            return 0.0;
        }
        let longest: f64 = (1..self.gathered as u32).map(|i| 1.0 / f64::from(i)).sum();
        1.0 / (1.0 / gather + per_step / longest)
    }

    /// Steps that the first prompt of a pass is held back, when so many begin in each: until the hold ends or the prompts behind it fill the
    /// pass to its share; whichever ends first counts.
    fn held(&self, per_step: f64, decoding: f64, new: f64) -> f64 {
        let Some(hold) = self.schedule.hold.filter(|h| h.steps > 0.0) else { return 0.0 };
        let behind = (hold.share * self.schedule.chunk - decoding) / new - 1.0;
        if behind > 0.0 { 1.0 / (1.0 / hold.steps + per_step / behind) } else { 0.0 }
    }

    /// Sequences that hold a cache at most: what memory and the engine allow.
    pub fn most(&self) -> f64 {
        self.room.min(self.schedule.sequences * self.stages)
    }
}

/// A state, or the pass that is not covered.
type Found<T> = Result<Steady, <T as StepTimer>::Uncovered>;

pub fn steady<T: StepTimer>(server: &Server<T>, requests: &Requests, load: Load) -> Found<T> {
    let most = server.most().max(1.0);
    Ok(match load {
        Load::Closed { concurrency, clump, burst, cold, convoy } => {
            let running = concurrency.max(1.0).min(most);
            let groups = (server.groups * concurrency.min(1.0)).max(1.0);
            let mut s = if convoy && server.schedule.prompts == Prompts::First {
                waves(server, requests, running)?
            } else {
                let arrivals = Arrivals { clump: clump.max(1.0), convoy, ..Arrivals::among(running, groups) };
                balanced(server, requests, running, arrivals)?
            };
            s.waiting = (concurrency - running).max(0.0);
            // Little: those who wait leave at the rate of the server.
            s.queue = if s.rate > 0.0 { Seconds::s(s.waiting / s.rate) } else { Seconds::ZERO };
            if burst > 0.0 {
                let built = if cold { server.cold } else { Cold::NONE };
                s.ttft += Seconds::s(burst * first_wave(server, requests, running, built)?);
            }
            s
        }
        Load::Full => balanced(server, requests, most, Arrivals::among(most, server.groups))?,
        Load::Queue { requests: all } => queue(server, requests, all.max(1.0), most)?,
        Load::Open { rate } => open(server, requests, rate, most)?,
    })
}

/// How well the number of sequences that fit is known.
const UNSURE: f64 = 0.05;

/// The part of a last round in which slots stand empty, where every slot runs `rounds` requests one after another: a slot ends
/// whole requests, so that the run lasts as long as the next whole number of rounds. The mean over what is not known about the
/// slots, as near a whole number a little more memory saves a round.
fn unfilled(rounds: f64) -> f64 {
    let tries = [-1.0, -0.5, 0.0, 0.5, 1.0].map(|x| (rounds * (1.0 + UNSURE * x)).max(1.0));
    tries.iter().map(|r| r.ceil() - r).sum::<f64>() / tries.len() as f64
}

/// A finite run: the rate of a full server, and a last round in which few sequences decode but passes still take their time.
fn queue<T: StepTimer>(server: &Server<T>, requests: &Requests, all: f64, most: f64) -> Found<T> {
    let running = most.min(all);
    let s = balanced(server, requests, running, Arrivals::among(running, server.groups))?;
    let lone = server.timer.time(&Work::decode(1.0, requests.context()))?.time().get();
    let longer = unfilled(all / running) * requests.steps() * lone;
    Ok(Steady { rate: all / (all / s.rate + longer), ..s })
}

/// Steps of the iteration for n; it halves the distance each time and stops well below any measurable difference.
const ITERATIONS: usize = 40;

/// `running` sequences hold a cache: how many of them decode.
fn balanced<T: StepTimer>(server: &Server<T>, requests: &Requests, running: f64, arrivals: Arrivals) -> Found<T> {
    let mut share: f64 = 1.0;
    let mut state = at(server, requests, running, 1.0, 1.0, arrivals)?;
    for round in 0..ITERATIONS {
        let decode = requests.steps() * state.tpot.get() * requests.accepted;
        let next = if decode > 0.0 { decode / (decode + state.ttft.get()) } else { 0.0 };
        let before = share;
        // Nearly always a few rounds settle it; halving the step makes sure.
        share = if round < 4 { next } else { f64::midpoint(share, next) };
        let longer = own_prompts(&state, state.decoding / requests.steps().max(1.0), arrivals.foreign_prompts());
        state = at(server, requests, running, share, longer, arrivals)?;
        if (share - before).abs() < 1e-6 {
            break;
        }
    }
    Ok(state)
}

/// The engine's mean pass over that between two tokens of a user, t / t', at so many prompts per pass of a user.
///
/// From f = g t / t', g the share of passes with prompts if all passes were t', with t and t' as at the top of this page.
fn own_prompts(state: &Steady, per_token: f64, foreign: f64) -> f64 {
    let (decode, mixed) = (state.decode.time().get(), state.mixed.time().get());
    if !(decode > 0.0 && state.prompts_per_pass > 0.0) {
        return 1.0;
    }
    let (g, d) = (per_token * state.prompt_share / state.prompts_per_pass, mixed / decode - 1.0);
    let b = 1.0 - g * d;
    let f = (2.0 * g / (b + (b * b + 4.0 * foreign * d * g).sqrt()).max(1e-12)).min(1.0);
    (1.0 + f * d) / (1.0 + f * foreign * d)
}

/// The state with a share of the running sequences decoding; the engine's mean pass is so much longer than a user's.
fn at<T: StepTimer>(
    server: &Server<T>,
    requests: &Requests,
    running: f64,
    share: f64,
    longer: f64,
    arrivals: Arrivals,
) -> Found<T> {
    let steps = requests.steps().max(1.0);
    let wanted = (running * share).max(if requests.steps() > 0.0 { share.min(1.0) } else { 0.0 });
    // Where prompts ride along, a pass holds only so many tokens: prompts then come no faster than they fit.
    let full = if server.schedule.prompts == Prompts::RideAlong {
        server.schedule.chunk * server.stages / (requests.new_tokens() / steps + (1.0 + requests.drafts))
    } else {
        f64::INFINITY
    };
    let n = wanted.min(full);
    // A pass that decodes has whoever looks at it, and of the others those that decode.
    let seen = if requests.steps() > 0.0 { 1.0 + n * arrivals.foreign } else { 0.0 };
    let mut state = mix(server, requests, seen, n / steps * longer, arrivals)?;
    let step = state.tpot.get() * requests.accepted;
    let residence = requests.steps() * step + state.ttft.get();
    (state.decoding, state.running) = (n, running);
    // Those that neither decode nor are being computed wait for a place in a pass.
    state.rate = if wanted > full { n / (steps * step) } else { running / residence };
    if wanted > full {
        state.ttft = state.ttft.max(Seconds::s((running - n) / state.rate));
    }
    Ok(state)
}

/// Passes when `per_step` prompts begin in each, in clumps.
fn mix<T: StepTimer>(server: &Server<T>, requests: &Requests, n: f64, per_step: f64, arrivals: Arrivals) -> Found<T> {
    // Who waits for the same look travels together; an idle engine looks at once, and waits for no other group.
    let busy = arrivals.others.min(1.0);
    let (window, gathered) = (1.0 + (server.schedule.looks - 1.0) * busy, server.gathered(per_step) * busy);
    let new = requests.new_tokens();
    // Passes with prompts are 1/λ + H steps apart where the first of each is held for H: to the second order in λ H, prompts that clump 2 H.
    let held = server.held(per_step, n, new) * busy;
    let clump = arrivals.clump * (window.max(gathered) + 2.0 * held);
    let decoding = n / server.stages;
    let room = server.prompt_room(decoding, requests);
    let chunks = Chunks::of(new, room, Rest::Shared);
    // Prompts that begin during one pass of a clump travel together; a long prompt needs several passes by itself.
    // In the time of one pass every stage works on a micro-batch of its own, which takes its part of the prompts.
    let of_one = per_step / server.prompt_stages();
    let arriving = (of_one * clump).max(1e-12);
    let (passes, size) = if chunks.several() {
        (of_one * chunks.passes, chunks.tokens)
    } else {
        // At random: some passes carry none, the others their share.
        let some = -float::exp_m1(-arriving) / clump;
        let size = (of_one / some * new).clamp(new, room.max(new));
        (of_one * new / size, size)
    };
    let share = passes.min(1.0);
    // Where groups pass together, prompts of any of them make a pass one with prompts.
    let any = -float::exp_m1(arrivals.groups * float::ln_1p(-share.min(1.0 - 1e-12)));
    let filled = if share > 0.0 { share / any } else { 1.0 / arrivals.groups };
    // A piece is of one prompt, and sees the pieces before it.
    let prompts = if chunks.several() { 1.0 } else { size / new };
    let base = Work { drafts: requests.drafts, ..Work::decode(decoding, requests.context()) };
    let prompt = Chunk { tokens: size, prompts, past: requests.past() + chunks.before };
    let decode = server.timer.time(&base)?;
    let with_prompts = |work: Work<'static>| {
        let rows = work.rows();
        let beside = Beside { most: rows, mean: rows - size * (1.0 - filled) };
        Work { beside: (arrivals.groups > 1.0).then_some(beside), ..work }
    };
    // A prompt whose cache is there but for its last token is one more sequence that decodes: kernels see no prompt.
    let found = new <= 1.0;
    let joined = if found { base.joined(prompts) } else { base.with(prompt) };
    let (mixed, alone, waits) = if found || server.schedule.prompts == Prompts::RideAlong {
        let work = with_prompts(joined);
        let mut both = server.timer.time(&work)?;
        // Behind another pass with prompts, nothing hides what the host does for this one.
        let host = server.timer.host(&work);
        let waits = (host.launch + host.choose).less(both.time());
        both.plus(&Cost::of(Part::Host, Limit::Host, waits), any);
        (both, both.time(), both.part(Part::Host))
    } else {
        // Prompts have passes of their own; sequences that decode wait for them.
        let own = server.timer.time(&with_prompts(Work::default().with(prompt)))?;
        let mut both = decode;
        // More prompts than a pass carries take several passes before the next token of anybody.
        both.plus(&own, passes.max(1.0));
        (both, own.time(), own.part(Part::Host))
    };
    // Of several passes a prompt waits for half of the others.
    let behind = if server.schedule.prompts == Prompts::First { (passes - 1.0).max(0.0) / 2.0 } else { 0.0 };
    let met = any * arrivals.foreign_prompts();
    let step = decode.time() * (1.0 - met) + mixed.time() * met;
    let mut first = first_token(server, decode.time().get(), alone.get(), met, arrivals);
    // Who comes between two looks waits for half of the steps; of those held together, in all groups, the first for all H steps and λ H for half.
    let together = |steps: f64, rate: f64| steps * (1.0 + rate * steps / 2.0) / (1.0 + rate * steps);
    let waited = (window - 1.0) / 2.0 + together(held, per_step) + together(gathered, per_step * server.gathered);
    first += waited * decode.time().get() + behind * alone.get();
    if arrivals.others < 1.0 {
        // Who finds the engine idle waits for nobody, but all of the host shows: before the chips begin, until the pass
        // behind is launched, and to hand the token out.
        let host = server.timer.host(&Work::default().with(prompt));
        let next = server.timer.host(&Work::decode(1.0, requests.input)).prepare;
        let chips = host.prepare + alone.less(waits);
        let felt = chips.max(host.launch + host.choose + next) + host.hand;
        first += (1.0 - arrivals.others) * felt.less(alone).get();
    }
    let crowd = server.overhead.request_concurrent * arrivals.others;
    // Chunks of one prompt follow each other through the stages: the last one leaves when all but it have passed one stage.
    let stages = server.prompt_stages();
    let through = (chunks.passes + stages - 1.0) / stages;
    let ttft = Seconds::s(first) + alone * through + server.overhead.request + crowd;
    let (tpot, prompts_per_pass) = (step / requests.accepted, per_step);
    let state = Steady { tpot, ttft, decoding: n, running: n, decode, mixed, ..Steady::default() };
    Ok(Steady { prompt_share: any, prompt_size: size, prompts_per_pass, ..state })
}

/// Answers of one length where prompts come first: all requests begin, decode and end together, and nothing interrupts.
fn waves<T: StepTimer>(server: &Server<T>, requests: &Requests, running: f64) -> Found<T> {
    let even = Arrivals::among(running, 1.0);
    let mut state = mix(server, requests, running, 0.0, even)?;
    // Waves blur in time; what decodes meet then is the mean of all passes.
    let blurred = balanced(server, requests, running, even)?;
    let new = requests.new_tokens();
    let passes = Chunks::of(running * new, server.schedule.chunk, Rest::Empty).passes;
    let one = server.timer.time(&Work::prefill(running / passes, new, requests.past()))?.time().get();
    // Stages work on passes that follow each other; the last of a wave waits for all before it.
    let all = one * (1.0 + (passes - 1.0) / server.prompt_stages());
    let mean = one * (1.0 + (passes - 1.0) / (2.0 * server.prompt_stages()));
    let outside = server.overhead.request + server.overhead.request_concurrent * even.others;
    state.ttft = Seconds::s(mean) + outside;
    state.running = running;
    // Those that are through wait for the rest of the wave before their second token.
    let waited = state.tpot + Seconds::s((all - mean) / requests.steps().max(1.0)) / requests.accepted;
    state.tpot = waited.max(blurred.tpot);
    state.rate = running / (all + outside.get() + requests.steps() * state.decode.time().get());
    Ok(state)
}

/// How requests come to a server.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Arrivals {
    clump: f64,
    convoy: bool,
    /// Requests beside the one that looks, and the share of all prompts that are theirs.
    others: f64,
    foreign: f64,
    /// Attention groups with requests that pass together.
    groups: f64,
}

impl Arrivals {
    /// So many requests, each as likely to begin as any.
    fn among(running: f64, groups: f64) -> Self {
        let others = (running - 1.0).max(0.0);
        Self { clump: 1.0, convoy: false, others, foreign: others / (others + 1.0), groups }
    }

    /// At random, so many in service: who comes sees them all.
    fn at_random(others: f64, groups: f64) -> Self {
        Self { clump: 1.0, convoy: false, others, foreign: 1.0, groups }
    }

    /// The share of all groups' prompts that are not those of whoever looks.
    fn foreign_prompts(&self) -> f64 {
        (self.foreign + self.groups - 1.0) / self.groups
    }
}

/// What a request waits beside its own passes: the rest of the one under way and, where the host runs ahead, the next. Who
/// is alone waits for nobody.
fn first_token<T>(server: &Server<T>, decode: f64, prompt: f64, share: f64, arrivals: Arrivals) -> f64 {
    let (ahead, met) = (f64::from(server.overhead.host_overlaps), arrivals.others.min(1.0));
    if arrivals.convoy {
        // The one before it has just begun, the one after it follows.
        return met * prompt * (1.0 + ahead);
    }
    let f = (share * arrivals.clump).min(1.0);
    let mean = decode * (1.0 - f) + prompt * f;
    let square = decode * decode * (1.0 - f) + prompt * prompt * f;
    // A moment at random falls into long passes more often, and into their middle.
    let rest = if mean > 0.0 { square / (2.0 * mean) } else { 0.0 };
    met * (rest + ahead * mean)
}

/// Mean wait of the first wave: all prompts at once, served in order, each pass longer by what is built for it. The first has a
/// pass of its own, as nobody else has come yet; where the others do not fit into one, a prompt is cut, and all of them wait for what
/// joins its pieces: results are handed out behind the next launch.
fn first_wave<T: StepTimer>(
    server: &Server<T>,
    requests: &Requests,
    running: f64,
    built: Cold,
) -> Result<f64, T::Uncovered> {
    let new = requests.new_tokens();
    let (tokens, full) = (running * new, server.schedule.chunk.max(new));
    let together = if tokens <= full { running } else { full / new };
    let pass = server.timer.time(&Work::prefill(together, new, requests.past()))?.time().get();
    let others = (running - 1.0).max(0.0);
    let joined = if others * new > full { built.cut.get() * others / running } else { 0.0 };
    Ok(built.wait(tokens / full) + joined + if tokens <= full { pass } else { 0.5 * tokens / full * pass })
}

fn open<T: StepTimer>(server: &Server<T>, requests: &Requests, rate: f64, most: f64) -> Found<T> {
    // Sequences in service at n: what arrivals bring in the time they stay. Bisect on n.
    let stay = |n: f64| {
        let (seen, arrivals) = ((1.0 + n).min(most), Arrivals::at_random(n, server.groups));
        let step = mix(server, requests, seen, 0.0, arrivals)?.step().get();
        let s = mix(server, requests, seen, rate * step, arrivals)?;
        // The rate in prompts per step depends on the step, which depends on the rate: two rounds settle it.
        let s = mix(server, requests, seen, rate * s.step().get(), arrivals)?;
        Ok((rate * requests.steps() * s.step().get(), Steady { decoding: n, ..s }))
    };
    // What comes faster than a full server ends requests waits without end: the same state as that of the full server.
    let full = balanced(server, requests, most, Arrivals::among(most, server.groups))?;
    if rate >= full.rate {
        return Ok(Steady { overloaded: true, ..full });
    }
    let (mut low, mut high) = (0.0, most);
    for _ in 0..ITERATIONS {
        let middle = f64::midpoint(low, high);
        if stay(middle)?.0 > middle { low = middle } else { high = middle }
    }
    let (_, mut s) = stay(high)?;
    s.rate = rate;
    s.running = (rate * (requests.steps() * s.step().get() + s.ttft.get())).min(most);
    // Prompts that come while others are computed wait for them: the mean wait of a single server (Pollaczek, Khinchine).
    let beside = if server.schedule.prompts == Prompts::RideAlong { s.decode.time() } else { Seconds::ZERO };
    let per_prompt = s.mixed.time().less(beside).get() * requests.new_tokens() / s.prompt_size.max(1.0);
    let busy = (rate * per_prompt / server.prompt_stages()).min(0.95);
    s.ttft += Seconds::s(busy / (2.0 * (1.0 - busy)) * per_prompt * (1.0 + requests.spread.prompt_cv2));
    Ok(s)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 25 shapes of 0.6 s: 58 passes wait for 0.6 (1 + 25 (1 - 25/57 (1 - e^(-57/25)))) = 9.7 s, however many for 15.6 at most.
    #[test]
    fn a_cold_wave_waits_for_shapes_and_not_for_passes() {
        let few = Cold { pass: Seconds::s(0.6), shapes: 25.0, ..Cold::NONE };
        let all = Cold { shapes: f64::INFINITY, ..few };
        assert!((few.wait(58.0) - 9.69).abs() < 0.01, "{}", few.wait(58.0));
        assert!((few.wait(1e6) - 15.6).abs() < 0.01 && few.wait(0.3) == 0.6 && all.wait(0.3) == 0.6);
        // While passes are few each has a shape of its own.
        assert!((few.wait(2.0) / all.wait(2.0) - 1.0).abs() < 0.02 && (all.wait(58.0) - 0.6 * 29.5).abs() < 1e-9);
        assert_eq!(Cold::NONE.wait(100.0), 0.0);
    }
}
