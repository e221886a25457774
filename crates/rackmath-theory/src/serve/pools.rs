//! A deployment under a load: one pool that does everything, or two with prompts on chips of their own.
//!
//! $$ \mu = \frac{k\,d\,p}{T(k)} \qquad t_{send} = \frac{K(I)}{h\,w} \qquad n = \lceil \lambda / \mu \rceil \qquad
//!    w = \frac{\rho^{\sqrt{2m + 2} - 1}}{m\,(1 - \rho)}\,\frac{T(1)}{2} \qquad \mathrm{TTFT} = w + T(1) + t_{send} + t_{first} $$
//! $$ N = c + \lambda(c)\,Z \qquad \pi = \frac{1}{\mu}\,\max\left(\lambda, \frac{1}{1 / \mu + D\,T_d / n_d}\right) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | μ, λ | service, rate | 1/s | prompts one prefill instance computes; requests the decoding pool ends |
//! | k, T | together, time | 1, s | prompts that share a pass, and its time |
//! | d, p | groups, stages | 1 | attention groups and pipeline stages of an instance, each busy with prompts of its own |
//! | K(I), h, w | bytes, shards, bandwidth | B, 1, B/s | cache of a prompt, chips that send it together, the outermost network |
//! | N, Z, c | users, think, `Serving::in_flight` | 1, s, 1 | users who think Z between an answer and the next request, and how many of them have one in flight |
//! | π, D, T_d, n_d | `Outcome::prompt_share` | 1, 1, s, 1 | share of the cost that prompts bear; decode steps of an answer, the time of one, sequences that take it together |
//! | m, n, ρ | servers, instances, busy | 1 | groups of all n instances, and the share of the time they work: λ / n μ |
//!
//! Assumes: the cache is sent when the prompt is done, not layer by layer, so that sending is not hidden; decoding is never
//! disturbed by prompts. Ignores: other traffic on that network. Source: ours; Little's law; H. Sakasegawa, An approximation
//! formula L_q = α ρ^β / (1 - ρ), Ann. Inst. Statist. Math. 29 (1977), halved because a prompt's time does not vary; where
//! it does, the wait is multiplied by 1 + its squared coefficient of variation (Allen, Cunneen).

use crate::chunk::{Chunks, Rest};
use crate::deployment::{Deployment, Ready, Untimed};
use crate::encoders::{EncoderFlow, Encoders, behind};
use crate::kv;
use crate::machine::timer::{StepTimer, Work};
use crate::network::{self, Collective, Group};
use crate::pass::{KernelSet, Spread, encoding};
use crate::placement;
use crate::steady::{Load, Requests, Server, Steady};
use rackmath_spec::Layout;
use rackmath_spec::model::Mixer;
use rackmath_units::{Bytes, Seconds, Tokens, float};

/// Beyond this share of the time a queue says more about its second moments than about its mean.
pub const BUSIEST: f64 = 0.95;

/// Rounds of the balance between the pools; each halves the distance.
const ROUNDS: usize = 24;
/// Halvings of what users have in flight: a millionth of them is far below what is known.
const HALVINGS: usize = 20;
/// How near the balance is the balance.
const HAIR: f64 = 1e-6;

/// What one instance that only computes prompts does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prompts {
    /// Prompts a second when passes are full.
    pub service: f64,
    pub alone: f64,
    /// Attention groups, each a server of its own.
    pub groups: f64,
}

impl Prompts {
    pub fn of<T: StepTimer>(server: &Server<T>, groups: f64, requests: &Requests) -> Result<Self, T::Uncovered> {
        let (new, past, room) = (requests.new_tokens(), requests.past(), server.schedule.chunk);
        let long = |rest: Rest| {
            let c = Chunks::of(new, room, rest);
            Ok(server.timer.time(&Work::prefill(1.0, c.tokens, past + c.before))?.time() * c.passes)
        };
        // A prompt that fits is not cut; the rest of a longer one shares its pass with the next.
        let together = (room / new).floor().max(1.0);
        let full = match together {
            1.0 => long(Rest::Shared)?,
            many => server.timer.time(&Work::prefill(many, new, past))?.time(),
        };
        let alone = (long(Rest::Empty)? + server.overhead.request).get();
        Ok(Self { service: together * groups * server.stages / full.get(), alone, groups })
    }

    /// Share of the time so many instances work at a rate.
    pub fn busy(&self, rate: f64, instances: f64) -> f64 {
        rate / (instances * self.service)
    }

    pub fn wait(&self, busy: f64, instances: f64) -> f64 {
        wait(busy, instances * self.groups, self.alone)
    }
}

/// Mean wait for one of `servers` that are busy for a share of the time, each prompt taking `alone`.
pub fn wait(busy: f64, servers: f64, alone: f64) -> f64 {
    let busy = busy.min(BUSIEST);
    let power = (2.0 * (servers + 1.0)).sqrt() - 1.0;
    float::pow(busy, power) / (servers * (1.0 - busy)) * alone / 2.0
}

/// Time of a prompt's cache over the outermost network, from all chips that hold a share of it; nothing where none is known.
pub fn sending(bytes: Bytes, from: &Layout, to: &Deployment) -> Seconds {
    let (a, b) = (from.degrees(), to.layout.degrees());
    let mixers = to.model.shape().into_iter().flat_map(|s| s.runs.iter().map(|r| &r.block.mixer));
    let shards = mixers
        .filter(|m| **m != Mixer::None)
        .map(|m| placement::cache_shards(m, &a).min(placement::cache_shards(m, &b)))
        .min()
        .unwrap_or(1)
        * a.pp.min(b.pp);
    over(to, bytes / shards as f64)
}

/// Time of so many bytes over the outermost network of a machine; nothing where none is known.
fn over(to: &Deployment, share: Bytes) -> Seconds {
    let levels = &to.system.levels;
    let Some(level) = levels.last() else { return Seconds::ZERO };
    let kind = if levels.len() > 1 { to.links.out.as_deref() } else { to.links.up.as_deref() };
    match kind {
        Some(network) => network::time(Collective::SendRecv, share, &Group::within(level, network, 2)).total(),
        None => share / level.bandwidth.value,
    }
}

/// Chips that only encode, where a deployment has them.
fn encoders(kernels: &KernelSet, on: &Deployment) -> Result<Option<Encoders>, Untimed> {
    let Some(senses) = on.senses.as_deref().filter(|s| s.spread == Spread::Apart && s.tokens() > 0.0) else {
        return Ok(None);
    };
    let one = encoding(on, kernels)?;
    let send = over(on, one.bytes);
    Ok(Some(Encoders {
        each: one.time().get(),
        send: send.get(),
        chips: senses.chips,
        machine: on.system.n_chips as f64,
    }))
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loading {
    Concurrency(f64),
    Rate(f64),
    Full,
}

impl Loading {
    /// The load of one group, and how many groups share it.
    fn of_group(self, groups: f64) -> (Load, f64) {
        match self {
            Self::Concurrency(c) => {
                // Fewer requests than groups leave groups without any.
                let busy = groups.min(c.max(1.0));
                (Load::even(c / groups), busy)
            }
            Self::Rate(rate) => (Load::Open { rate: rate / groups }, groups),
            Self::Full => (Load::Full, groups),
        }
    }
}

/// A deployment with passes prepared and memory measured out; of two pools, the one that decodes.
#[derive(Clone, Debug)]
pub struct Serving {
    pub main: Ready,
    pub room: f64,
    /// Prompts a second that its chips compute when they do nothing else.
    pub prompts: f64,
    pub split: Option<PromptPool>,
    pub encoders: Option<Encoders>,
}

/// Prefill instances, and how prompts get from them to those that decode.
#[derive(Clone, Debug)]
pub struct PromptPool {
    pub instance: Ready,
    /// How many; what balances unless given, of what the machine has chips for.
    pub instances: Option<f64>,
    /// Prompts whose cache fits in a group of an instance.
    pub room: f64,
    pub bytes: Bytes,
    pub send: Seconds,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    pub instances: f64,
    pub chips: f64,
    /// Prefill chips to decode chips where both are exactly busy.
    pub ratio: f64,
    pub busy: f64,
    pub pass: f64,
    pub wait: f64,
}

#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub steady: Steady,
    pub groups: f64,
    /// Seconds to the first token, without waiting for memory.
    pub ttft: f64,
    pub queue: f64,
    pub rate: f64,
    pub chips: f64,
    pub flow: Option<Flow>,
    /// Chips that only encode pictures and sound.
    pub encoders: Option<EncoderFlow>,
    /// Prompts a second that these chips compute when they do nothing else.
    pub prompts: f64,
    /// Whether anything fits at all.
    pub fits: bool,
    pub overloaded: bool,
}

impl Serving {
    /// Both pools; prompts on a layout of their own, in so many instances or what balances. `like` is of the same model.
    pub fn new(
        kernels: &KernelSet,
        on: &Deployment,
        split: Option<(Layout, Option<f64>)>,
        requests: &Requests,
        like: Option<&Self>,
    ) -> Result<Self, Untimed> {
        let drafts = requests.drafts > 0.0;
        let main = Ready::new_like(kernels, on.clone(), drafts, like.map(|serving| &serving.main))?;
        let split = split.map(|(layout, instances)| {
            let instance = if layout == on.layout {
                main.clone()
            } else {
                let like = like.and_then(|serving| serving.split.as_ref()).map(|pool| &pool.instance);
                Ready::new_like(kernels, Deployment { layout, ..on.clone() }, drafts, like)?
            };
            Ok(PromptPool { instance, instances, room: 0.0, bytes: Bytes::ZERO, send: Seconds::ZERO })
        });
        let mut both =
            Self { room: 0.0, prompts: 0.0, split: split.transpose()?, encoders: encoders(kernels, on)?, main };
        both.measure(requests);
        Ok(both)
    }

    /// Measures memory and sending out for requests of other lengths; passes stay as they are.
    pub fn measure(&mut self, requests: &Requests) {
        let on = &self.main.deployment;
        self.room = self.main.room(requests);
        self.prompts = self.main.prompts(requests).service;
        if let Some(pool) = &mut self.split {
            pool.bytes = kv::cache(&on.model, on.kv).stored(Tokens::new(requests.input));
            // Prompts leave when they are done: no answer is held here.
            pool.room = pool.instance.room(&Requests { output: 1.0, ..*requests });
            pool.send = sending(pool.bytes, &pool.instance.deployment.layout, on);
        }
    }

    /// Requests in flight of so many users, each of whom thinks so many seconds between an answer and the next request.
    pub fn in_flight(&self, requests: &Requests, users: f64, think: f64) -> f64 {
        let rate = |c: f64| self.under(requests, Loading::Concurrency(c.max(1.0))).rate * c.min(1.0);
        let (mut low, mut high) = (0.0, users);
        for _ in 0..HALVINGS {
            let c = f64::midpoint(low, high);
            if c + think * rate(c) < users { low = c } else { high = c }
        }
        f64::midpoint(low, high)
    }

    pub fn groups(&self) -> f64 {
        self.main.deployment.groups()
    }

    /// Chips of the machine: all pools share them.
    pub fn machine(&self) -> f64 {
        (self.main.deployment.system.n_chips + self.main.deployment.cards()) as f64
    }

    /// Fewest chips of all pools together: one instance of each whose number is not given.
    pub fn fewest(&self) -> f64 {
        let prompts = self.split.as_ref().map_or(0.0, |p| p.instances.unwrap_or(1.0) * p.instance.deployment.chips());
        self.main.deployment.chips() + prompts + self.encoding()
    }

    fn encoding(&self) -> f64 {
        self.encoders.map_or(0.0, |e| e.chips.unwrap_or(1.0))
    }

    pub fn under(&self, requests: &Requests, load: Loading) -> Outcome {
        let found = match &self.encoders {
            Some(encoders) => behind(encoders, requests, load, |load| self.alone(requests, load)),
            None => return self.alone(requests, load),
        };
        Outcome { fits: found.fits && found.chips <= self.machine(), ..found }
    }

    /// Prefill instances that keep up when as many decode as fit, of those that there are chips for.
    pub fn balanced(&self, requests: &Requests) -> Option<f64> {
        self.split.as_ref().and(self.alone(requests, Loading::Full).flow).map(|flow| flow.instances)
    }

    /// Without what is encoded before.
    fn alone(&self, requests: &Requests, load: Loading) -> Outcome {
        if let Some(pool) = &self.split {
            return self.both(pool, requests, load);
        }
        let (one, groups) = load.of_group(self.groups());
        let steady = self.main.steady(self.room, requests, one);
        Outcome {
            prompts: self.prompts,
            ..Outcome::of(&steady, groups, self.main.deployment.chips(), self.room >= 1.0)
        }
    }

    fn both(&self, pool: &PromptPool, requests: &Requests, load: Loading) -> Outcome {
        // Those that decode find the whole prompt in their cache.
        let found = Requests { cached: 1.0, ..*requests };
        let decode = |load: Loading| {
            let (one, groups) = load.of_group(self.groups());
            (self.main.steady(self.room, &found, one), groups)
        };
        let prompts = pool.instance.prompts(requests);
        let (alone, send) = (prompts.alone, pool.send.get());
        let (first, groups) = decode(load);
        let most = first.rate * groups;
        let (mine, theirs) = (self.main.deployment.chips(), pool.instance.deployment.chips());
        // What balances, of what the machine has chips for.
        let left = ((self.machine() - mine - self.encoding()) / theirs).floor();
        let instances = pool.instances.unwrap_or_else(|| (most / prompts.service).ceil().min(left).max(1.0));
        let able = instances * prompts.service;
        let wait = |rate: f64| prompts.wait(prompts.busy(rate, instances), instances);
        let (s, rate, wait) = match load {
            Loading::Concurrency(c) if most <= able => {
                let (mut state, mut inside) = (first, c);
                for _ in 0..ROUNDS {
                    let rate = state.rate * groups;
                    let outside = rate * (wait(rate) + alone + send);
                    inside = f64::midpoint(inside, (c - outside).max(1.0));
                    state = decode(Loading::Concurrency(inside)).0;
                }
                // A hair more than a whole number is padded to the next graph, and may balance there as well: whole ones first.
                let whole = (inside / groups).floor() * groups;
                let there = (whole >= groups).then(|| decode(Loading::Concurrency(whole)).0).filter(|s| {
                    let rate = s.rate * groups;
                    (whole + rate * (wait(rate) + alone + send) - c).abs() < HAIR * c
                });
                state = there.unwrap_or(state);
                let rate = state.rate * groups;
                (state, rate, wait(rate))
            }
            Loading::Concurrency(c) => {
                // Prompts are the bottleneck: whoever does not decode waits for them.
                let (state, _) = decode(Loading::Rate(able));
                let stay = state.ttft.get() + requests.steps() * state.step().get();
                (state, able, (c / able - (alone + send + stay)).max(wait(able)))
            }
            // No more decode than prompts come through.
            Loading::Rate(rate) if rate > able && most > able => (decode(Loading::Rate(able)).0, able, wait(able)),
            Loading::Rate(_) | Loading::Full => (first, most.min(able), wait(most.min(able))),
        };
        let (ratio, busy) = (most / prompts.service * theirs / mine, (rate / able).min(1.0));
        let flow = Flow { instances, chips: instances * theirs, ratio, busy, pass: alone, wait };
        let fits = self.room >= 1.0 && pool.room >= 1.0 && mine + flow.chips <= self.machine();
        let one = Outcome::of(&s, groups, mine + flow.chips, fits);
        let overloaded = matches!(load, Loading::Rate(r) if one.overloaded || r >= able);
        Outcome { ttft: wait + alone + send + one.ttft, rate, flow: Some(flow), overloaded, ..one }
    }
}

impl Outcome {
    /// Of one pool, alone or behind another.
    fn of(steady: &Steady, groups: f64, chips: f64, fits: bool) -> Self {
        let (ttft, queue, overloaded) = (steady.ttft.get(), steady.queue.get(), steady.overloaded);
        Self {
            steady: *steady,
            groups,
            ttft,
            queue,
            rate: steady.rate * groups,
            chips,
            flow: None,
            encoders: None,
            prompts: 0.0,
            fits,
            overloaded,
        }
    }

    pub fn tpot(&self) -> f64 {
        self.steady.tpot.get()
    }

    pub fn e2e(&self, requests: &Requests) -> f64 {
        self.queue + self.ttft + self.tpot() * (requests.output - 1.0).max(0.0)
    }

    pub fn output_per_chip(&self, requests: &Requests) -> f64 {
        self.rate * requests.output / self.chips
    }

    pub fn serves(&self) -> bool {
        self.fits && !self.overloaded
    }

    /// Share of the chips' cost that prompts bear: with chips of their own, theirs. Else what a prompt takes alone against what an answer takes
    /// alone, and never less than it takes alone: a pass that launches bind carries prompts for nothing, and who sells nothing but prompts
    /// has no such pass.
    fn prompt_share(&self, requests: &Requests) -> f64 {
        if let Some(flow) = &self.flow {
            return flow.chips / self.chips;
        }
        if self.prompts <= 0.0 {
            return 0.0;
        }
        let s = &self.steady;
        let answer = requests.steps() * s.decode.time().get() / (s.decoding.max(1.0) * self.groups.max(1.0));
        let prompt = 1.0 / self.prompts;
        (prompt * self.rate.max(1.0 / (prompt + answer))).min(1.0)
    }

    /// Dollars per million output and input tokens, at so many dollars per chip and second.
    pub fn usd_per_mtok(&self, requests: &Requests, price: Option<f64>) -> Option<(f64, f64)> {
        let (dollars, prompt) = (price? * self.chips, self.prompt_share(requests));
        let mtok = |tokens: f64, share: f64| dollars * share / (self.rate * tokens) * 1e6;
        (self.rate > 0.0).then(|| (mtok(requests.output, 1.0 - prompt), mtok(requests.input, prompt)))
    }

    /// Dollars per million output tokens where these pay for their prompts too.
    pub fn usd_per_mtok_with_prompts(&self, requests: &Requests, price: Option<f64>) -> Option<f64> {
        let (output, input) = self.usd_per_mtok(requests, price)?;
        Some(output + input * requests.input / requests.output)
    }
}

#[cfg(test)]
#[test]
fn one_busy_server_waits_as_the_textbook_says() {
    // M/D/1 at half load: rho / (2 (1 - rho)) = 0.5 service times.
    assert!((wait(0.5, 1.0, 2.0) - 1.0).abs() < 1e-12);
    assert!(wait(0.5, 8.0, 2.0) < wait(0.5, 1.0, 2.0));
    assert_eq!(wait(0.0, 4.0, 2.0), 0.0);
}
