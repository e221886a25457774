//! Collectives of a group that fills several hosts: a step inside each host, a step between those in the same place.
//!
//! $$ t_{AR}(S) = t_{RS}(S, g) + t_{AR}(S/g, h) + t_{AG}(S, g) \qquad t_{AG}(S) = t_{AG}(S/g, h) + t_{AG}(S, g) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | S | bytes | B | the whole tensor |
//! | g, h | inside, across | 1 | chips of the group on a host, its hosts |
//!
//! Reduce-scatter is the all-gather backwards; an all-to-all crosses both levels whole. A group on one host is timed as
//! ever. Assumes: hosts are filled, each chip has its own way out. Ignores: steps that overlap, and one launch for all
//! three. Source: the hierarchical form of NCCL's ring; nothing across hosts stands in the open tables, so that this was
//! never checked.

use super::{Collective, CollectiveTime, Group, time};
use rackmath_spec::{Network, System};
use rackmath_units::Bytes;

/// The chips of a group: those on one host, and its hosts where there are several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach<'a> {
    pub inside: Group<'a>,
    pub across: Option<Group<'a>>,
}

impl<'a> Reach<'a> {
    /// A group of `n` neighbours; nothing where no level joins them.
    pub fn of(system: &'a System, up: &'a Network, out: Option<&'a Network>, n: u64) -> Option<Self> {
        let level = system.levels.first()?;
        let here = level.chips.min(system.n_chips).max(1);
        let second = system.levels.get(1).zip(out).filter(|_| n > here);
        let across = second.map(|(level, out)| {
            let bandwidth = level.bandwidth.value / level.oversubscription;
            Group { bandwidth, ..Group::within(level, out, n.div_ceil(here)) }
        });
        let inside = Group::within(level, up, if across.is_some() { here } else { n });
        Some(Self { inside, across })
    }

    /// Time by the vendor's library. `bytes` is the whole tensor.
    pub fn time(&self, kind: Collective, bytes: Bytes) -> CollectiveTime {
        let Some(across) = &self.across else { return time(kind, bytes, &self.inside) };
        let part = bytes / self.inside.n as f64;
        let inside = |kind| time(kind, bytes, &self.inside);
        match kind {
            Collective::AllReduce => {
                inside(Collective::ReduceScatter) + time(kind, part, across) + inside(Collective::AllGather)
            }
            Collective::AllGather | Collective::ReduceScatter => time(kind, part, across) + inside(kind),
            Collective::AllToAll => time(kind, bytes, across) + inside(kind),
            Collective::SendRecv => time(kind, bytes, across),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmath_spec::Catalog;

    fn reduce(catalog: &Catalog, on: &str, n: u64, bytes: f64) -> CollectiveTime {
        let system = catalog.system(on).unwrap();
        let net = |at: usize| catalog.network(&system.levels[at].link).unwrap();
        let (up, out) = (net(0), net(1));
        Reach::of(&system, &up, Some(&out), n).unwrap().time(Collective::AllReduce, Bytes::b(bytes))
    }

    #[test]
    fn between_two_hosts_each_chip_sends_its_eighth_once() {
        let catalog = rackmath_catalog::embedded();
        let (one, two) = (reduce(&catalog, "16xh200", 8, 1e9), reduce(&catalog, "16xh200", 16, 1e9));
        // An eighth of 1 GB as a ring of two at 92 % of 50 GB/s, its own part copied (own 0.3): 125 MB x (2 + 0.3)/2.
        let far = 125e6 * 1.15 / (0.92 * 50e9) * (1.0 + 2e6 / (2e6 + 125e6 * 1.15));
        assert!(two.total() > one.total());
        assert!(two.transfer.get() > far && two.transfer.get() < far + 2.0 * one.transfer.get(), "{two:?} {far}");
        // A token's vector waits for the floors of both levels: 14 us and two steps of 5 us between hosts.
        let small = reduce(&catalog, "16xh200", 16, 14336.0);
        assert!((24e-6..60e-6).contains(&small.latency.get()), "{small:?}");
    }
}
