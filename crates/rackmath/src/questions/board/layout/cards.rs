//! What a stage holds and sends, and what its experts meet.

use crate::desk::prelude::*;
use rackmath_spec::System;
use rackmath_theory::count::Part;
use rackmath_theory::deployment::Deployment;
use rackmath_theory::experts::{self, ElementBytes, Routing};
use rackmath_theory::layout::domain;
use rackmath_theory::network::{self, Collective, Exchange, Group, Launch, Phase, Port, Reach};
use rackmath_theory::placement::{Load, Placement, Stage};
use rackmath_units::BytesPerToken;

/// One stage.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StageCard {
    /// Its number.
    pub stage: u64,
    /// Its first layer.
    pub first_layer: u64,
    /// Its layers.
    pub layers: u64,
    /// Its chips.
    pub chips: u64,
    /// Routed experts.
    pub routed_bytes: f64,
    /// Shared experts.
    pub shared_bytes: f64,
    /// Attention and recurrences.
    pub attention_bytes: f64,
    /// Dense networks.
    pub dense_bytes: f64,
    /// Embedding and head.
    pub embedding_bytes: f64,
    /// Routers, norms and the rest.
    pub other_bytes: f64,
    /// Cache.
    pub kv_bytes: f64,
    /// Activations.
    pub activation_bytes: f64,
    /// Communication buffers.
    pub buffer_bytes: f64,
    /// Left alone by the engine.
    pub reserve_bytes: f64,
    /// All of it.
    pub total_bytes: f64,
    /// Arithmetic of one decode step.
    pub flop: f64,
}

/// Experts on chips.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ExpertCard {
    /// Routed experts per layer.
    pub experts: u64,
    /// Of which a token uses.
    pub top_k: u64,
    /// Slots with redundant copies.
    pub slots: u64,
    /// Slots on each chip.
    pub slots_per_chip: f64,
    /// Copies of all experts within a stage.
    pub groups: u64,
    /// Tokens each expert gets in a step.
    pub tokens_per_expert: f64,
    /// Different chips a token is sent to.
    pub destinations: f64,
    /// Load of the busiest chip over the mean, from the routing.
    pub imbalance: f64,
    /// The same from chance alone.
    pub fluctuation: f64,
    /// Time on the scale-up over time on the scale-out network if stages were separate domains; 1 or more is good.
    pub up_to_out: Option<f64>,
    /// Width of an expert.
    pub width: u64,
    /// Narrowest expert that computes longer than its tokens travel on the scale-up network.
    pub least_width: Option<f64>,
    /// How much slower the all-to-all is for leaving the scale-up domain.
    pub slowdown: f64,
}

/// Traffic of one chip in one decode step.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrafficCard {
    /// What is sent.
    pub what: String,
    /// Over which network.
    pub network: String,
    /// Bytes sent by the busiest chip.
    pub bytes: f64,
    /// At full bandwidth; none when the machine's file names no such network.
    pub seconds: Option<f64>,
    /// With measured latencies and efficiencies of this kind of network, one after the other; none where they are not known.
    pub predicted_s: Option<f64>,
}

pub(super) fn stage_card(s: &Stage) -> StageCard {
    let part = |p: Part| s.held.part(p).get();
    StageCard {
        stage: s.index,
        first_layer: s.layers.0,
        layers: s.layers.1,
        chips: s.chips,
        routed_bytes: part(Part::Routed),
        shared_bytes: part(Part::Shared),
        attention_bytes: part(Part::Mixer),
        dense_bytes: part(Part::Dense),
        embedding_bytes: part(Part::Embedding) + part(Part::Head),
        other_bytes: part(Part::Router) + part(Part::Other),
        kv_bytes: s.held.kv,
        activation_bytes: s.held.activations,
        buffer_bytes: s.held.buffers,
        reserve_bytes: s.held.reserve,
        total_bytes: s.held.total().get(),
        flop: s.flop.get(),
    }
}

/// One byte a value out, two back, two to the next stage.
const BYTES: ElementBytes = ElementBytes { dispatch: 1.0, combine: 2.0, hop: 2.0 };

pub(super) fn expert_card(r: &Resolved, load: &Load, routing: &Routing) -> Option<ExpertCard> {
    let shape = r.model.shape()?;
    let moe = shape.moe()?;
    let d = r.layout.degrees();
    let slots = moe.experts + d.redundant;
    let destinations = network::distinct_ranks(d.ep, moe.experts, moe.top_k);
    let popularity = experts::popularity(routing, moe.experts);
    let tokens = load.batch * moe.top_k as f64;
    let [up, out] = [0, 1].map(|at| level(&r.system, at).map(|l| l.0));
    let beta = up.zip(out).map(|(u, o)| u / o);
    let layers = shape.n_layers() as f64 / d.pp as f64;
    let racks = r.layout.stage_chips().div_ceil(domain(&r.system));
    let least_width = |(u, (_, peak))| experts::least_width(BYTES, peak, ByteRate::b_per_s(u));
    Some(ExpertCard {
        experts: moe.experts,
        top_k: moe.top_k,
        slots,
        slots_per_chip: slots as f64 / d.ep as f64,
        groups: r.layout.expert_copies(),
        tokens_per_expert: tokens / moe.experts as f64,
        destinations,
        imbalance: experts::imbalance(&popularity, d.ep, d.redundant),
        fluctuation: experts::fluctuation(tokens / d.ep as f64, d.ep),
        up_to_out: beta.map(|beta| experts::scale_up_to_scale_out(BYTES, destinations, layers, beta)),
        width: moe.expert.width,
        least_width: up.zip(r.main_math()).map(least_width),
        slowdown: beta.map_or(1.0, |beta| network::cross_rack_slowdown(beta, racks)),
    })
}

/// One-way bandwidth of a chip into a level, and the level's name.
fn level(system: &System, at: usize) -> Option<(f64, String)> {
    system.levels.get(at).map(|l| (l.bandwidth.value.get() / l.oversubscription, l.name.clone()))
}

pub(super) fn traffic(on: &Deployment, load: &Load, placed: &Placement) -> Vec<TrafficCard> {
    let busiest = |of: fn(&Stage) -> f64| placed.stages.iter().map(of).fold(0.0, f64::max);
    let leaving = busiest(|s| s.sent.expert_out);
    let exchange = exchanges(on, load, busiest(|s| s.sent.exchanges));
    let leaves = placed.stages.iter().any(|s| s.sent.pipeline_leaves);
    let hop = busiest(|s| s.sent.pipeline);
    let reductions = reductions(on, load, busiest(|s| s.sent.reductions));
    let all = [
        ("tensor-parallel reductions", 0, busiest(|s| s.sent.tensor), reductions),
        ("queries and partial outputs of the cut cache", 0, busiest(|s| s.sent.context), None),
        ("experts: dispatch and combine", 0, busiest(|s| s.sent.expert_up), exchange.filter(|_| leaving <= 0.0)),
        ("experts: dispatch and combine that leave the domain", 1, leaving, exchange),
        ("hop to the next stage", usize::from(leaves), hop, send(on, leaves, hop)),
    ];
    let sent = all.into_iter().filter(|(_, _, bytes, _)| *bytes > 0.0);
    sent.map(|(what, at, bytes, predicted_s)| {
        let (bandwidth, network) = level(&on.system, at).map_or((None, "none known".into()), |(b, n)| (Some(b), n));
        TrafficCard { what: what.into(), network, bytes, seconds: bandwidth.map(|b| bytes / b), predicted_s }
    })
    .collect()
}

/// So many all-reduces of one token of every sequence of a group; nothing where such links were never measured.
fn reductions(on: &Deployment, load: &Load, n: f64) -> Option<f64> {
    let (d, up) = (on.layout.degrees(), on.links.up.as_deref()?);
    let hidden = on.model.shape()?.hidden as f64;
    let group = Reach::of(&on.system, up, on.links.out.as_deref(), d.tp)?;
    let bytes = Bytes::b(load.batch / d.dp as f64 * hidden * 2.0);
    let library = group.time(Collective::AllReduce, bytes).total();
    // Engines bring their own kernel for short messages; the shorter of the two counts.
    let memory = on.system.chip.memory.bandwidth.value;
    let own = up.all_reduce_kernel("vllm").ok().filter(|_| group.across.is_none());
    let own = own.map(|kernel| network::all_reduce_time(bytes, &group.inside, kernel, Launch::Graph, memory).total());
    Some(own.map_or(library, |own| own.min(library)).get() * n)
}

/// So many dispatches and combines, with the one-sided kernel of a rack or the low-latency one of a node.
fn exchanges(on: &Deployment, load: &Load, n: f64) -> Option<f64> {
    let shape = on.model.shape()?;
    let moe = shape.moe()?;
    let ranks = on.layout.degrees().ep;
    let together = domain(&on.system).min(on.layout.stage_chips());
    let first = on.system.levels.first()?;
    let name = if together > 8 { "one-sided" } else { "deepep-ll" };
    let kernel = on.links.up.as_deref()?.exchange_kernel(name).ok()?;
    let up = Port { kernel, bandwidth: first.bandwidth.value };
    let reach = on.links.out.as_deref().and_then(|out| out.reach.get(&kernel.copies));
    let out = on.system.levels.get(1).zip(reach);
    let out = out.map(|(second, kernel)| Port { kernel, bandwidth: second.bandwidth.value / second.oversubscription });
    if out.is_none() && ranks.div_ceil(together.max(1)) > 1 {
        return None;
    }
    let one = |phase: Phase, width: f64| {
        let exchange = Exchange {
            phase,
            tokens: Tokens::new(load.batch / on.layout.stage_chips() as f64),
            payload: BytesPerToken::new(shape.hidden as f64 * width),
            top_k: moe.top_k,
            experts: moe.experts,
            ranks,
            ranks_per_node: together,
        };
        network::exchange_time(&exchange, &up, out.as_ref()).total.get()
    };
    Some(n * (one(Phase::Dispatch, BYTES.dispatch) + one(Phase::Combine, BYTES.combine)))
}

/// One send to the next stage.
fn send(on: &Deployment, leaves: bool, bytes: f64) -> Option<f64> {
    let up = on.links.up.as_deref()?;
    let network = if leaves { on.links.out.as_deref()? } else { up };
    let group = Group::within(on.system.levels.get(usize::from(leaves))?, network, 2);
    Some(network::time(Collective::SendRecv, Bytes::b(bytes), &group).total().get())
}
