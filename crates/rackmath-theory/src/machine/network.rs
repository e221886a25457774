//! Collectives on one level of network: a latency floor, then bytes over a share of the link.
//!
//! $$ t = a + b\,m(n) + \frac{V}{\eta W}\left(1 + \frac{1}{1 + V/h}\right) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | S, n | bytes, n | B, 1 | the whole tensor; ranks |
//! | W | bandwidth | B/s | data-sheet rate out of one chip, one way |
//! | a, b | launch, hop | s | starting the kernel; one step from rank to rank |
//! | m | steps | 1 | 2(n-1) all-reduce, n-1 all-gather and reduce-scatter, 1+log2 n all-to-all, 1 send |
//! | V | volume | B | what one rank sends, below |
//! | eta, h | efficiency, half | 1, B | share of W reached by long messages; V halfway there |
//! | x | own | 1 | copying its own part S/n, as a share of sending it |
//!
//! | collective | V |
//! |---|---|
//! | all-gather, reduce-scatter, all-to-all | S (n-1+x)/n |
//! | all-reduce as a ring: reduce-scatter, then all-gather | S (2(n-1)+x)/n |
//! | all-reduce inside the switch: S up to be added, S/n back out to all | S (n+1)/n, with its own eta |
//! | engine's one-shot all-reduce: read every peer whole | S (n-1), no ramp |
//! | engine's two-shot: one n-th of each peer, twice | S 2(n-1)/n, one more barrier, no ramp |
//!
//! Over a host's PCIe tree there are two protocols with floors and shares of their own, and the shorter time counts:
//!
//! $$ t = \min_p \left( a_p + b_p\,m(n) + \frac{V}{\eta_p(n)\,W} \right) $$
//!
//! | p | code | what it is |
//! |---|---|---|
//! | short | library.launch, hop, span.short | a flag with every word: no waiting for chunks, less than half of the bytes are data |
//! | long | tree.launch, tree.hop, span.long | chunks, copied by the cards themselves or through the host's memory |
//!
//! eta falls with the way a ring has to go: below one switch, through a socket's root ports, over the link between sockets. Each
//! of n flows takes part of what root ports, memory and that link can carry, so that it depends on how far the group reaches.
//!
//! The ramp is the library's choice of protocol: a short message carries a flag with every word and so half the data, a long
//! one is cut into chunks that take longer to start. Where two forms exist the shorter time counts. A host that launches
//! every call (eager) sets a least time and copies the message into a registered buffer, a read and a write in memory.
//!
//! Assumes: S arrives everywhere at once, links are otherwise idle, sends and receives run together.
//! Ignores: tree algorithms, channels, odd sizes. Source: lecture D19 and equations 13, 26; ring and in-switch volumes by
//! counting; constants in `catalog/networks`, fitted by `rackmath-calibrate`.

mod experts;
mod hosts;

pub use experts::*;
pub use hosts::*;

use rackmath_spec::{AllReduceKernel, Level, Library, Network, Topology};
use rackmath_units::{ByteRate, Bytes, Fraction, Seconds, float};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    SendRecv,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group<'a> {
    pub network: &'a Network,
    pub n: u64,
    pub bandwidth: ByteRate,
    pub shape: Shape,
}

/// How the chips of a level are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Any chip to any other at full rate.
    Switched,
    /// A link for every pair of the `domain`, each with an equal share of the rate (AMD's eight); the group may be a part.
    Mesh { domain: u64 },
    /// Neighbours only, taken as one ring.
    Torus,
    /// Through the host's PCIe tree: what is left of the rate depends on how far a group reaches.
    Tree,
}

impl<'a> Group<'a> {
    pub fn within(level: &Level, network: &'a Network, n: u64) -> Self {
        let shape = match level.topology {
            Topology::Switched => Shape::Switched,
            Topology::Mesh => Shape::Mesh { domain: level.chips },
            Topology::Torus => Shape::Torus,
            Topology::Pcie => Shape::Tree,
        };
        Self { network, n, bandwidth: level.bandwidth.value, shape }
    }
}

/// What a chip sends into a level when each of so many ranks exchanges with all others: a part of a mesh has the links to its own
/// members only.
pub fn exchange_rate(level: &Level, ranks: u64) -> ByteRate {
    match level.topology {
        Topology::Mesh => {
            level.bandwidth.value * (ranks.clamp(2, level.chips.max(2)) - 1) as f64 / (level.chips.max(2) - 1) as f64
        }
        _ => level.bandwidth.value,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CollectiveTime {
    pub latency: Seconds,
    pub transfer: Seconds,
}

impl CollectiveTime {
    pub const ZERO: Self = Self { latency: Seconds::ZERO, transfer: Seconds::ZERO };

    pub fn total(self) -> Seconds {
        self.latency + self.transfer
    }

    fn shorter(self, other: Self) -> Self {
        if other.total() < self.total() { other } else { self }
    }
}

impl std::ops::Add for CollectiveTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { latency: self.latency + other.latency, transfer: self.transfer + other.transfer }
    }
}

/// Time of a collective by the vendor's library. `bytes` is the whole tensor; a group of one costs nothing.
pub fn time(collective: Collective, bytes: Bytes, group: &Group) -> CollectiveTime {
    if group.n <= 1 {
        return CollectiveTime::ZERO;
    }
    let (library, n) = (&group.network.library, group.n as f64);
    let (s, x) = (bytes, library.own.get());
    let (w, m) = (rate(collective, group), steps(collective, group));
    let latency = library.launch + library.hop * m;
    let tree = library.tree.as_ref().filter(|_| group.shape == Shape::Tree);
    let moved = |v: Bytes, share: Fraction| match tree {
        None => CollectiveTime { latency, transfer: ramp(v, w * share.get(), library) },
        Some(tree) => {
            let span = tree.span(group.n);
            let short = CollectiveTime { latency, transfer: v / (w * span.short.get()) };
            short.shorter(CollectiveTime { latency: tree.launch + tree.hop * m, transfer: v / (w * span.long.get()) })
        }
    };
    match collective {
        Collective::AllReduce => {
            let ring = moved(s * ((2.0 * (n - 1.0) + x) / n), library.efficiency);
            match library.in_network {
                // Only a switch can add up.
                Some(share) if group.shape == Shape::Switched => ring.shorter(moved(s * ((n + 1.0) / n), share)),
                _ => ring,
            }
        }
        Collective::AllGather | Collective::ReduceScatter => moved(s * ((n - 1.0 + x) / n), library.efficiency),
        Collective::AllToAll => {
            // On a ring with both ways used a byte crosses n/4 links on average.
            let detour = if group.shape == Shape::Torus { (n / 4.0).max(1.0) } else { 1.0 };
            moved(s * ((n - 1.0 + x) / n * detour), library.efficiency)
        }
        Collective::SendRecv => moved(s, library.efficiency),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Launch {
    Graph,
    Eager,
}

/// Time of an all-reduce by an engine's own kernel, or by the library above its limit; an eager call copies in `memory`.
pub fn all_reduce_time(
    bytes: Bytes,
    group: &Group,
    kernel: &AllReduceKernel,
    launch: Launch,
    memory: ByteRate,
) -> CollectiveTime {
    let captured = match bytes <= kernel.limit && kernel.most.is_none_or(|most| group.n <= most) {
        _ if group.n <= 1 => return CollectiveTime::ZERO,
        true => peer_to_peer(bytes, group, kernel),
        false => time(Collective::AllReduce, bytes, group),
    };
    if launch == Launch::Graph {
        return captured;
    }
    // The copy reads and writes every byte once.
    let transfer = captured.transfer + bytes * 2.0 / (memory * kernel.eager_copy.get());
    let latency = captured.latency + kernel.eager_extra;
    CollectiveTime { latency: latency.max(kernel.eager_launch.less(transfer)), transfer }
}

fn peer_to_peer(s: Bytes, group: &Group, kernel: &AllReduceKernel) -> CollectiveTime {
    let n = group.n as f64;
    let w = rate(Collective::AllReduce, group) * kernel.efficiency.get();
    let latency = kernel.launch + kernel.peer * (n - 1.0);
    let one = CollectiveTime { latency, transfer: s * (n - 1.0) / w };
    kernel.second.map_or(one, |second| {
        one.shorter(CollectiveTime { latency: latency + second, transfer: s * (2.0 * (n - 1.0) / n) / w })
    })
}

fn ramp(v: Bytes, w: ByteRate, library: &Library) -> Seconds {
    let h = library.half;
    if v == Bytes::ZERO { Seconds::ZERO } else { v / w * (1.0 + h / (h + v)) }
}

fn steps(collective: Collective, group: &Group) -> f64 {
    let n = group.n as f64;
    let round = match group.shape {
        // Both ways around the ring.
        Shape::Torus => (n / 2.0).max(1.0),
        _ => n - 1.0,
    };
    match collective {
        Collective::AllReduce => 2.0 * round,
        Collective::AllGather | Collective::ReduceScatter => round,
        Collective::AllToAll => 1.0 + float::ln(n) / float::ln(2.0),
        Collective::SendRecv => 1.0,
    }
}

fn rate(collective: Collective, group: &Group) -> ByteRate {
    let w = group.bandwidth;
    match (group.shape, collective) {
        // One pair has one of the chip's links; a part of the mesh uses the links to its own members.
        (Shape::Mesh { domain }, Collective::SendRecv) => w / (domain.max(2) - 1) as f64,
        (Shape::Mesh { domain }, _) => w * ((group.n - 1) as f64 / (domain.max(group.n) - 1) as f64),
        // A neighbour is reached over one of two directions.
        (Shape::Torus, Collective::SendRecv) => w / 2.0,
        _ => w,
    }
}

#[cfg(test)]
mod tests;
