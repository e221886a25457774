//! Prompts on chips of their own: two pools, and the cache that travels between them.
//!
//! $$ \mu = \frac{k\,d\,p}{T(k)} \qquad t_{send} = \frac{K(I)}{h\,w} \qquad
//!    \mathrm{TTFT} = w_q + T(1) + t_{send} + t_{first} \qquad n = \lceil \lambda / \mu \rceil $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | μ, λ | service, rate | 1/s | prompts one prefill instance computes; requests the decoding pool ends |
//! | k, T | prompts, pass | 1, s | prompts that share a pass, and its time |
//! | d, p | groups, stages | 1 | attention groups and pipeline stages of an instance, each busy with prompts of its own |
//! | K(I), h, w | bytes, shards, bandwidth | B, 1, B/s | cache of a prompt, chips that send it together, the outermost network |
//! | w_q | wait | s | waiting for one of m = n d groups with fixed service: ρ^(√(2m+2) - 1) T / 2 m (1 - ρ), ρ = λ / n μ |
//! | n | instances | 1 | prefill instances, when not given |
//!
//! Assumes: the cache is sent when the prompt is done, not layer by layer, so that sending is not hidden; decoding is never
//! disturbed by prompts. Ignores: other traffic on that network. Source: ours; Little's law;
//! H. Sakasegawa, An approximation formula L_q = α ρ^β / (1 - ρ), Ann. Inst. Statist. Math. 29 (1977), halved because a
//! prompt's time does not vary.

use super::ask::{Ask, Loading};
use super::serve::{Outcome, Prepared, of_group};
use rackmath_spec::Layout;
use rackmath_spec::model::Mixer;
use rackmath_theory::deployment::{Deployment, Ready};
use rackmath_theory::network::{self, Collective, Group};
use rackmath_theory::plan::pools;
use rackmath_theory::steady::{Requests, Steady, steady};
use rackmath_theory::{kv, placement};
use rackmath_units::{Bytes, Tokens};

/// A prefill instance, and how prompts get from it to those that decode.
pub(super) struct Pool {
    /// One instance.
    pub instance: Ready,
    /// How many; what balances unless given.
    pub instances: Option<f64>,
    /// Prompts whose cache fits in a group of it.
    pub room: f64,
    /// Cache of a prompt.
    pub bytes: f64,
    /// Seconds to send it.
    pub send: f64,
    /// Over which network.
    pub network: String,
}

/// The pool of prompts in steady state.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Flow {
    /// Prefill instances.
    pub instances: f64,
    /// Their chips.
    pub chips: f64,
    /// Prefill chips to decode chips where both are exactly busy.
    pub ratio: f64,
    /// Share of the time they work.
    pub busy: f64,
    /// Seconds of a prompt's own pass.
    pub pass: f64,
    /// Seconds of waiting for it.
    pub wait: f64,
}

impl Pool {
    pub(super) fn new(instance: Ready, instances: Option<f64>, ask: &Ask) -> Self {
        let bytes = kv::cache(&ask.parts.model, ask.parts.kv).stored(Tokens::new(ask.requests.input));
        let (send, network) = sending(bytes, &instance.deployment.layout, &ask.parts);
        // Prompts leave when they are done: no answer is held here.
        let room = instance.room(&Requests { output: 1.0, ..ask.requests });
        Self { instance, instances, room, bytes: bytes.get(), send, network }
    }
}

/// Time of a prompt's cache over the outermost network, from all chips that hold a share of it.
pub(crate) fn sending(bytes: Bytes, from: &Layout, to: &Deployment) -> (f64, String) {
    let (a, b) = (from.degrees(), to.layout.degrees());
    let mixers = to.model.shape().into_iter().flat_map(|s| s.runs.iter().map(|r| &r.block.mixer));
    let shards = mixers
        .filter(|m| **m != Mixer::None)
        .map(|m| placement::cache_shards(m, &a).min(placement::cache_shards(m, &b)))
        .min()
        .unwrap_or(1)
        * a.pp.min(b.pp);
    let share = bytes / shards as f64;
    let levels = &to.system.levels;
    let Some(level) = levels.last() else { return (0.0, "none known: sending counts nothing".into()) };
    let kind = if levels.len() > 1 { to.links.out.as_deref() } else { to.links.up.as_deref() };
    let seconds = match kind {
        Some(network) => network::time(Collective::SendRecv, share, &Group::within(level, network, 2)).total(),
        None => share / level.bandwidth.value,
    };
    (seconds.get(), level.name.clone())
}

/// Both pools under a load.
pub(super) fn evaluate(p: &Prepared, pool: &Pool, requests: &Requests, load: Loading) -> Outcome {
    // Those that decode find the whole prompt in their cache.
    let found = Requests { cached: 1.0, ..*requests };
    let server = p.main.server(p.room);
    let decode = |load: Loading| {
        let (one, groups) = of_group(load, p.groups());
        (steady(&server, &found, one), groups)
    };
    let (mu, alone) = pool.instance.prompts(requests);
    let (first, groups) = decode(load);
    let most = first.rate * groups;
    let instances = pool.instances.unwrap_or_else(|| (most / mu).ceil().max(1.0));
    let able = instances * mu;
    let servers = instances * pool.instance.deployment.groups();
    let wait = |rate: f64| pools::wait(rate / able, servers, alone);
    let (s, rate, wait) = match load {
        Loading::Concurrency(c) if most <= able => {
            let (mut state, mut inside) = (first, c);
            for _ in 0..ROUNDS {
                let rate = state.rate * groups;
                let outside = rate * (wait(rate) + alone + pool.send);
                inside = f64::midpoint(inside, (c - outside).max(1.0));
                state = decode(Loading::Concurrency(inside)).0;
            }
            let rate = state.rate * groups;
            (state, rate, wait(rate))
        }
        Loading::Concurrency(c) => {
            // Prompts are the bottleneck: whoever does not decode waits for them.
            let (state, _) = decode(Loading::Rate(able));
            let inside = alone + pool.send + stay(&state, requests);
            (state, able, (c / able - inside).max(wait(able)))
        }
        Loading::Rate(_) | Loading::Full => (first, most.min(able), wait(most.min(able))),
    };
    let (mine, theirs) = (p.main.deployment.chips(), pool.instance.deployment.chips());
    let flow = Flow {
        instances,
        chips: instances * theirs,
        ratio: most / mu * theirs / mine,
        busy: (rate / able).min(1.0),
        pass: alone,
        wait,
    };
    Outcome {
        groups,
        ttft: wait + alone + pool.send + s.ttft.get(),
        queue: s.queue.get(),
        rate,
        chips: mine + flow.chips,
        flow: Some(flow),
        fits: p.room >= 1.0 && pool.room >= 1.0,
        overloaded: s.overloaded || matches!(load, Loading::Rate(r) if r >= able),
        steady: s,
    }
}

/// Rounds of the balance between the pools; each halves the distance.
const ROUNDS: usize = 24;

/// Seconds a request stays with those that decode.
fn stay(s: &Steady, requests: &Requests) -> f64 {
    s.ttft.get() + requests.steps() * s.step().get()
}
