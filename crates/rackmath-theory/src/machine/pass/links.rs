//! Collectives of a layer: reductions of a tensor-parallel group, dispatch and combine of experts.

use super::layers::{DISPATCHED, Layer, Prep, WIDE};
use super::{Cost, Limit, Part};
use crate::layout::domain;
use crate::network::{self, Collective, Exchange, Group, Launch, Phase, Port, Reach};
use rackmath_spec::model::Moe;
use rackmath_spec::{ExchangeKernel, Level, Network};
use rackmath_units::{Bytes, BytesPerToken, Tokens};

/// Adds a collective done so many times: its floor is latency, its bytes wait for links.
pub(super) fn add_network((latency, transfer): (f64, f64), times: f64, cost: &mut Cost) {
    cost.add(Part::Network, Limit::Latency, latency * times);
    cost.add(Part::Network, Limit::Link, transfer * times);
}

impl<'a> Prep<'a> {
    pub(super) fn add_collectives(&self, layer: &Layer, rows: f64, busy: f64, times: f64, cost: &mut Cost) {
        if self.d.engine.ideal {
            return;
        }
        let d = self.d.layout.degrees();
        let sparse = layer.moe.filter(|_| d.dp > 1 && d.ep * d.etp > 1);
        let reductions = f64::from(layer.mixer) + f64::from(layer.ffn && sparse.is_none());
        if d.tp > 1 {
            add_network(self.all_reduce(rows, d.tp), reductions * times, cost);
            let (latency, _) = self.all_reduce(1.0, d.tp);
            cost.add(Part::Network, Limit::Latency, latency * layer.norms.1 * times);
        }
        if let Some(moe) = sparse {
            let (latency, transfer) = self.exchange(moe, rows);
            // Two half-batches take turns: one computes while the other travels.
            let hidden = match self.d.engine.schedule.two_batches {
                Some(from) if rows >= from => busy.min(self.d.engine.assumed.exchange_hidden * transfer),
                _ => 0.0,
            };
            add_network((latency, transfer - hidden), times, cost);
        }
    }

    pub(super) fn level(&self) -> Option<(&'a Level, &'a Network)> {
        self.d.system.levels.first().zip(self.d.links.up.as_deref())
    }

    /// The chips of a tensor-parallel group, or a part of it, and how they are joined.
    pub(super) fn reach(&self, n: u64) -> Option<Reach<'a>> {
        let links = &self.d.links;
        Reach::of(&self.d.system, links.up.as_deref()?, links.out.as_deref(), n)
    }

    fn all_reduce(&self, rows: f64, n: u64) -> (f64, f64) {
        let skew = self.d.overhead().skew.get();
        let Some((group, up)) = self.reach(n).zip(self.d.links.up.as_deref()) else { return (skew, 0.0) };
        let bytes = Bytes::b(rows * self.shape.hidden as f64 * WIDE);
        let library = group.time(Collective::AllReduce, bytes);
        // A miss is no mistake here: looking for the nearest name would take longer than everything else.
        let own = up
            .all_reduce
            .get(&self.d.engine.kernels.all_reduce)
            .or_else(|| up.all_reduce.get("peer"))
            // An engine's own kernel reads its peers' memory, which ends with the host.
            .filter(|_| group.across.is_none())
            .map(|kernel| {
                network::all_reduce_time(bytes, &group.inside, kernel, Launch::Graph, self.silicon.bandwidth)
            });
        let best = own.filter(|own| own.total() < library.total()).unwrap_or(library);
        (best.latency.get() + skew, best.transfer.get())
    }

    /// Experts are spread over more chips than one host has: eight, or all that are linked closely.
    fn wide(&self) -> bool {
        let d = self.d.layout.degrees();
        d.ep * d.etp > domain(&self.d.system).min(8)
    }

    /// Everyone gathers the tokens of all.
    pub(super) fn gathers(&self) -> bool {
        let kernels = &self.d.engine.kernels;
        kernels.exchange == "gather" && (!self.wide() || kernels.exchange_wide.is_empty())
    }

    fn exchange(&self, moe: &Moe, rows: f64) -> (f64, f64) {
        let skew = 2.0 * self.d.overhead().skew.get();
        let Some((level, up)) = self.level() else { return (skew, 0.0) };
        let d = self.d.layout.degrees();
        let together = domain(&self.d.system).min(self.d.layout.stage_chips());
        let ranks = d.ep * d.etp;
        // Engines switch between a kernel for short messages and one for long ones; the shorter time counts.
        let kernels = &self.d.engine.kernels;
        let usual = [kernels.exchange.as_str(), "deepep-ll", "deepep-normal"];
        let wide = kernels.exchange_wide.iter().map(String::as_str).filter(|_| self.wide());
        let names = wide.chain(usual.into_iter().filter(|_| kernels.exchange_wide.is_empty()));
        let gather = self.gathers() && ranks <= together;
        let best = names.filter(|_| !gather).filter_map(|name| {
            let far = name == "one-sided" && together <= 8;
            let kernel = up.exchange.get(name).filter(|_| !far)?;
            self.exchange_by(kernel, moe, rows, level)
        });
        let best = best.min_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1)));
        let (latency, transfer) = best.unwrap_or_else(|| {
            // Everyone gathers all tokens and keeps its share of the sum.
            let group = Group::within(level, up, ranks.min(together));
            let bytes = Bytes::b(rows * d.dp as f64 * self.shape.hidden as f64 * WIDE);
            let both = network::time(Collective::AllGather, bytes, &group)
                + network::time(Collective::ReduceScatter, bytes, &group);
            (both.latency.get(), both.transfer.get())
        });
        (latency + skew, transfer)
    }

    /// The same by one kernel; nothing where it cannot reach all ranks.
    fn exchange_by(&self, kernel: &ExchangeKernel, moe: &Moe, rows: f64, level: &Level) -> Option<(f64, f64)> {
        let d = self.d.layout.degrees();
        let hidden = self.shape.hidden as f64;
        let together = domain(&self.d.system).min(self.d.layout.stage_chips());
        let nodes = (d.ep * d.etp).div_ceil(together.max(1));
        let reach = self.d.links.out.as_deref().and_then(|out| out.reach.get(&kernel.copies));
        let out = self.d.system.levels.get(1).zip(reach);
        let rate = |level: &Level| level.bandwidth.value / level.oversubscription;
        let out = out.map(|(second, kernel)| Port { kernel, bandwidth: rate(second) });
        if out.is_none() && nodes > 1 {
            return None;
        }
        let port = Port { kernel, bandwidth: network::exchange_rate(level, d.ep.min(together)) };
        let one = |phase: Phase, width: f64| {
            let exchange = Exchange {
                phase,
                tokens: Tokens::new(rows / d.tp as f64),
                payload: BytesPerToken::new(hidden * width),
                top_k: moe.top_k,
                experts: moe.experts,
                ranks: d.ep,
                ranks_per_node: together,
            };
            network::exchange_time(&exchange, &port, out.as_ref())
        };
        let (there, back) = (one(Phase::Dispatch, DISPATCHED), one(Phase::Combine, WIDE));
        let total = there.total.get() + back.total.get();
        let latency = (there.latency.get() + back.latency.get()).min(total);
        Some((latency, total - latency))
    }
}
