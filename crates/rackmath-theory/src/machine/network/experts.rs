//! Expert dispatch and combine: every token to the ranks of its experts, and the results back.
//!
//! $$ t = \max\left(l,\ f + f_{out} + g_{out}\log_2 N + \mathrm{up} \oplus \mathrm{out}\right) $$
//! $$ \mathrm{up} = T\,c_{up}\left(\frac{p}{\eta W} + q\right) \qquad \mathrm{out} = T\,c_{out}\,\frac{p}{\eta_o W_o}\,\max(1, N/N_0) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | T, p | tokens, payload | 1, B/token | tokens of one rank; bytes of one copy |
//! | k, E, n | top_k, experts, ranks | 1 | experts of a token, of a layer; ranks |
//! | G, N | ranks_per_node, nodes | 1 | n = G N |
//! | c | copies | 1 | copies of a token that cross a network, below |
//! | W, W_o | up.bandwidth, out.bandwidth | B/s | one-way rates out of a chip: in its node, out of it |
//! | eta, q | efficiency, per_copy | 1, s | share of the rate; handling of a copy |
//! | f, l | start, least | s | added floor; floor that a longer transfer hides |
//! | f_out, g_out | once, per_doubling | s | leaving the node (only when N > 1) |
//! | N_0 | full_rate_nodes | 1 | nodes beyond which forwarding slows down |
//!
//! | copies | in the node | out of it |
//! |---|---|---|
//! | per expert (low latency) | k (G-1)/n | k (n-G)/n |
//! | per rank (throughput) | k'(n) (G-1)/G | k'(N) (N-1)/N |
//!
//! $$ k'(n) = n\left(1 - \binom{E - E/n}{k} \Big/ \binom{E}{k}\right) $$
//!
//! k' is the expected number of distinct ranks hit by k distinct experts out of E spread evenly over n ranks. A throughput
//! kernel sends a token once to each node, to the rank of its own index there, which hands it on: no hop inside when that is
//! the right rank (1/G of the time). The circled plus is the longer of the two and the part of the shorter that does not
//! overlap.
//!
//! Assumes: uniform routing, equal tokens on all ranks. Ignores: hot experts, shared experts, the permutation kernels around.
//! Source: lecture equation 11, D25; counting of copies after the DeepEP documentation; constants in `catalog/networks`.

use rackmath_spec::{Copies, ExchangeKernel, Reach};
use rackmath_units::{ByteRate, BytesPerToken, Fraction, Seconds, Tokens, float};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Dispatch,
    Combine,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchange {
    pub phase: Phase,
    pub tokens: Tokens,
    /// Bytes of one copy of a token: hidden size times bytes per element, with its scales.
    pub payload: BytesPerToken,
    pub top_k: u64,
    pub experts: u64,
    pub ranks: u64,
    pub ranks_per_node: u64,
}

/// A rank's way into a network, and the constants of the kernel there.
#[derive(Debug)]
pub struct Port<'a, K> {
    pub kernel: &'a K,
    pub bandwidth: ByteRate,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExchangeTime {
    pub latency: Seconds,
    pub up: Seconds,
    pub out: Seconds,
    pub total: Seconds,
}

pub(super) struct Crossings {
    pub up: f64,
    pub out: f64,
}

/// Time of one dispatch or combine. Without `out` all ranks must share the fast network.
pub fn exchange_time(exchange: &Exchange, up: &Port<ExchangeKernel>, out: Option<&Port<Reach>>) -> ExchangeTime {
    let nodes = exchange.nodes();
    assert!(nodes == 1 || out.is_some(), "an exchange over {nodes} nodes needs a network between them");
    if exchange.ranks <= 1 {
        return ExchangeTime::default();
    }
    let crossings = exchange.crossings(up.kernel.copies);
    let (t, copy) = (exchange.tokens.get(), exchange.payload * Tokens::new(1.0));
    let there = exchange.phase == Phase::Dispatch;
    let floor = if there { up.kernel.dispatch } else { up.kernel.combine };
    let w = up.bandwidth * scaled(up.kernel, exchange.ranks.min(exchange.ranks_per_node));
    let up_time = (copy / w + up.kernel.per_copy) * (t * crossings.up);
    let (mut latency, mut out_time, mut overlap) = (floor.start, Seconds::ZERO, Fraction::ONE);
    if let (Some(out), true) = (out, nodes > 1) {
        let leaving = if there { out.kernel.dispatch } else { out.kernel.combine };
        let crowd = out.kernel.full_rate_nodes.map_or(1.0, |full| (nodes as f64 / full as f64).max(1.0));
        latency = latency + leaving.once + leaving.per_doubling * log2(nodes as f64);
        out_time = copy / (out.bandwidth * out.kernel.efficiency.get()) * (t * crossings.out * crowd);
        overlap = out.kernel.overlap;
    }
    // The longer of the two, and as much of the shorter as does not overlap.
    let moved = up_time.max(out_time) + up_time.min(out_time) * overlap.rest().get();
    ExchangeTime { latency, up: up_time, out: out_time, total: (latency + moved).max(floor.least) }
}

/// Share of the rate at so many ranks: a wider all-to-all meets more contention in the switches.
fn scaled(kernel: &ExchangeKernel, ranks: u64) -> f64 {
    let doublings = log2(ranks as f64 / 8.0).max(0.0);
    // Never less than a tenth, so that an extrapolation far beyond the data stays a number.
    kernel.efficiency.get() * (1.0 - kernel.loss_per_doubling.get() * doublings).max(0.1)
}

/// How much longer an all-to-all over R racks takes than inside one when the slow network binds: a share (R - 1)/R leaves at a
/// rate `beta` times lower. One rack has nothing to slow it down. Source: lecture D20, section 1c.3 (G38).
pub fn cross_rack_slowdown(beta: f64, racks: u64) -> f64 {
    let r = racks.max(1) as f64;
    (beta * (r - 1.0) / r).max(1.0)
}

/// Expected number of distinct ranks that k distinct experts fall on, E experts spread evenly over n ranks.
pub fn distinct_ranks(ranks: u64, experts: u64, top_k: u64) -> f64 {
    let (n, e) = (ranks as f64, experts as f64);
    // The chance that a given rank is missed: all k draws fall among the E - E/n experts elsewhere.
    let missed = (0..top_k.min(experts)).map(|i| ((e - e / n - i as f64) / (e - i as f64)).max(0.0)).product::<f64>();
    n * (1.0 - missed)
}

impl Exchange {
    pub fn nodes(&self) -> u64 {
        self.ranks.div_ceil(self.ranks_per_node.max(1)).max(1)
    }

    pub(super) fn crossings(&self, copies: Copies) -> Crossings {
        let (n, k) = (self.ranks as f64, self.top_k as f64);
        let g = self.ranks_per_node.min(self.ranks) as f64;
        let nodes = self.nodes();
        match copies {
            Copies::PerExpert => Crossings { up: k * (g - 1.0) / n, out: k * (n - g) / n },
            Copies::PerRank => {
                let distinct = |ranks| distinct_ranks(ranks, self.experts, self.top_k);
                let leaving = (nodes - 1) as f64 / nodes as f64;
                Crossings { up: distinct(self.ranks) * (g - 1.0) / g, out: distinct(nodes) * leaving }
            }
        }
    }
}

fn log2(x: f64) -> f64 {
    float::ln(x) / float::ln(2.0)
}
