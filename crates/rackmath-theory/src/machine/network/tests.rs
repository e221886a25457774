use super::*;
use crate::close;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::LazyLock;

static NETWORKS: LazyLock<BTreeMap<String, std::sync::Arc<Network>>> = LazyLock::new(|| {
    let catalog = rackmath_catalog::embedded();
    catalog.ids(rackmath_spec::Kind::Networks).map(|id| (id.to_owned(), catalog.network(id).unwrap())).collect()
});

pub(crate) fn network(kind: &str) -> &'static Network {
    &NETWORKS[kind]
}

fn group(network: &Network, n: u64, gb_per_s: f64) -> Group<'_> {
    Group { network, n, bandwidth: ByteRate::gb_per_s(gb_per_s), shape: Shape::Switched }
}

const MIB: f64 = 1_048_576.0;

#[test]
fn a_ring_worked_by_hand() {
    // Own 0.25, half 10 MB, share 0.8 of 500 GB/s = 400 GB/s, launch 5 us, hop 1 us; 40 MB over 4 ranks.
    let mut network = network("nvlink3").clone();
    network.library.launch = Seconds::us(5.0);
    network.library.hop = Seconds::us(1.0);
    network.library.efficiency = Fraction::new(0.8);
    network.library.own = Fraction::new(0.25);
    network.library.half = Bytes::mb(10.0);
    let group = group(&network, 4, 500.0);
    let us = |collective| time(collective, Bytes::mb(40.0), &group).total().get() * 1e6;
    // V = 40 (3 + 0.25)/4 = 32.5 MB: 81.25 us, times 1 + 10/42.5; three hops.
    close(us(Collective::AllGather), 8.0 + 81.25 * (1.0 + 10.0 / 42.5), 1e-12);
    // V = 40 (6 + 0.25)/4 = 62.5 MB: 156.25 us, times 1 + 10/72.5; six hops.
    close(us(Collective::AllReduce), 11.0 + 156.25 * (1.0 + 10.0 / 72.5), 1e-12);
    // The same volume as all-gather, 1 + log2 4 hops.
    close(us(Collective::AllToAll), 8.0 + 81.25 * (1.0 + 10.0 / 42.5), 1e-12);
    close(us(Collective::SendRecv), 6.0 + 100.0 * (1.0 + 10.0 / 50.0), 1e-12);
    assert_eq!(us(Collective::AllGather), us(Collective::ReduceScatter));
}

#[test]
fn the_switch_adds_up_for_eight_and_the_ring_for_two() {
    // H100: in the switch 9/8 of S at 8 ranks against 14/8, but 3/2 against 1 at 2, and at a lower share of the rate.
    let with = network("nvlink4");
    let mut without = with.clone();
    without.library.in_network = None;
    let t =
        |network: &Network, n| time(Collective::AllReduce, Bytes::b(512.0 * MIB), &group(network, n, 450.0)).total();
    assert!(t(with, 8) < t(&without, 8));
    assert_eq!(t(with, 2), t(&without, 2));
    close(t(with, 4) / t(&without, 4), 1.0, 0.07);
    // A tree has no switch that adds up.
    let tree = Group { shape: Shape::Tree, ..group(with, 8, 450.0) };
    assert_eq!(time(Collective::AllReduce, Bytes::b(512.0 * MIB), &tree).total(), t(&without, 8));
}

#[test]
fn an_engine_takes_one_shot_for_short_messages_and_two_for_long_ones() {
    let network = network("nvlink4");
    let kernel = network.all_reduce_kernel("sglang").unwrap();
    let memory = ByteRate::tb_per_s(3.35);
    let t = |kib: f64, n, launch| {
        all_reduce_time(Bytes::b(kib * 1024.0), &group(network, n, 450.0), kernel, launch, memory)
    };
    let latency = |kib| t(kib, 8, Launch::Graph).latency;
    assert!(latency(4096.0) > latency(16.0), "the second barrier");
    // With two ranks both forms move the same, so the second barrier is never worth it.
    assert_eq!(t(4096.0, 2, Launch::Graph).latency, t(16.0, 2, Launch::Graph).latency);
    // Above the limit the library takes over.
    let library = time(Collective::AllReduce, Bytes::b(16.0 * MIB), &group(network, 8, 450.0));
    assert_eq!(t(16.0 * 1024.0, 8, Launch::Graph), library);
    // Launched by the host, a short message costs the launch and nothing else.
    assert_eq!(t(16.0, 8, Launch::Eager).total(), kernel.eager_launch);
}

#[test]
fn measured_rows_of_h100_and_the_published_ones_of_blackwell() {
    // aiconfigurator 0.12.0, h100_sxm, NCCL 2.29.2 and SGLang 0.5.14, eight GPUs.
    let h = network("nvlink4");
    let us = |collective, mib| time(collective, Bytes::b(mib * MIB), &group(h, 8, 450.0)).total().get() * 1e6;
    close(us(Collective::AllReduce, 512.0), 2111.06, 0.05);
    close(us(Collective::AllGather, 512.0), 1401.5, 0.06);
    close(us(Collective::AllGather, 8.0), 44.86, 0.1);
    let kernel = h.all_reduce_kernel("sglang").unwrap();
    let custom = |mib| {
        all_reduce_time(Bytes::b(mib * MIB), &group(h, 8, 450.0), kernel, Launch::Graph, ByteRate::tb_per_s(3.35))
    };
    close(custom(1.0).total().get() * 1e6, 13.467, 0.1);
    close(custom(8.0).total().get() * 1e6, 62.93, 0.12);
    // Best measured kernel, findings section 4: B200 with 8 GPUs, GB200 with 4. Only 512 MiB and 16 KiB set constants.
    let b = network("nvlink5");
    let best = |n, kib: f64| {
        let (bytes, g, memory) = (Bytes::b(kib * 1024.0), group(b, n, 900.0), ByteRate::tb_per_s(8.0));
        let own = |k: &AllReduceKernel| all_reduce_time(bytes, &g, k, Launch::Graph, memory).total();
        let own = b.all_reduce.values().map(own).fold(Seconds::s(1.0), Seconds::min);
        own.min(time(Collective::AllReduce, bytes, &g).total()).get() * 1e6
    };
    let sizes = [16.0, 128.0, 512.0, 1024.0, 8192.0, 65536.0, 524_288.0];
    for (n, published) in
        [(8, [5.3, 6.3, 11.0, 15.0, 36.0, 223.0, 1335.0]), (4, [4.4, 5.1, 7.0, 10.0, 32.0, 182.0, 1282.0])]
    {
        for (kib, expected) in sizes.into_iter().zip(published) {
            close(best(n, kib), expected, 0.25);
        }
    }
}

#[test]
fn a_mesh_has_a_link_a_pair_and_a_ring_takes_a_quarter_of_its_length() {
    // MI300X: seven links of 64 GB/s.
    let mesh = |n| Group { shape: Shape::Mesh { domain: 8 }, ..group(network("infinity-fabric"), n, 448.0) };
    for (collective, n, gb) in
        [(Collective::SendRecv, 8, 64.0), (Collective::AllReduce, 8, 448.0), (Collective::AllReduce, 4, 192.0)]
    {
        close(rate(collective, &mesh(n)).get(), gb * 1e9, 1e-12);
    }
    // A ring of 16: a byte of an all-to-all travels 4 links on average, at a share of 0.95.
    let ring = Group { shape: Shape::Torus, ..group(network("ici"), 16, 600.0) };
    let t = time(Collective::AllToAll, Bytes::mb(16.0), &ring).transfer;
    close(t.get(), 15e6 * 4.0 / 600e9 / 0.95, 1e-9);
}

#[test]
fn g38_g49_racks_and_adapters() {
    // G38: beta 8, R = 1, 2, 3, 4, 8.
    for (racks, expected) in [(1, 1.0), (2, 4.0), (3, 5.0 + 1.0 / 3.0), (4, 6.0), (8, 7.0)] {
        close(cross_rack_slowdown(8.0, racks), expected, 1e-12);
    }
    // X16, G49: 2,400 tokens x 7,168 in BF16 through one adapter of 50 GB/s and through 64.
    for (adapters, us) in [(1.0, 688.13), (64.0, 10.752)] {
        let hop = Bytes::b(2400.0 * 7168.0 * 2.0) / (ByteRate::gb_per_s(50.0) * adapters);
        close(hop.get() * 1e6, us, 1e-4);
    }
}

const ALL: [Collective; 5] = {
    use Collective::*;
    [AllReduce, AllGather, ReduceScatter, AllToAll, SendRecv]
};

proptest! {
    #[test]
    fn more_bytes_never_take_less_time(bytes in 0.0..1e10_f64, more in 0.0..1e9_f64, n in 1_u64..64, which in 0_usize..5) {
        for kind in ["nvlink3", "nvlink4", "nvlink5", "pcie5", "infiniband", "ici"] {
            let network = network(kind);
            let group = group(network, n, 450.0);
            let t = |b| time(ALL[which], Bytes::b(b), &group).total();
            prop_assert!(t(bytes) <= t(bytes + more));
            for kernel in network.all_reduce.values() {
                for launch in [Launch::Graph, Launch::Eager] {
                    let limit = kernel.limit.get();
                    let t = |b| all_reduce_time(Bytes::b(b), &group, kernel, launch, ByteRate::tb_per_s(3.0)).total();
                    // At its limit an engine hands over to another kernel, which may be faster.
                    prop_assert!(bytes <= limit && bytes + more > limit || t(bytes) <= t(bytes + more));
                }
            }
        }
    }

    #[test]
    fn no_collective_beats_its_links(bytes in 1.0..1e10_f64, n in 2_u64..64, which in 0_usize..5) {
        let network = network("nvlink4");
        let (alone, group) = (group(network, 1, 450.0), group(network, n, 450.0));
        prop_assert_eq!(time(ALL[which], Bytes::b(bytes), &alone), CollectiveTime::ZERO);
        // At least (n-1)/n of the tensor leaves a rank, the whole of it when it is reduced everywhere or sent.
        let least = match ALL[which] {
            Collective::AllReduce | Collective::SendRecv => bytes,
            _ => bytes * (n - 1) as f64 / n as f64,
        };
        prop_assert!(time(ALL[which], Bytes::b(bytes), &group).transfer >= Bytes::b(least) / group.bandwidth);
        for kernel in network.all_reduce.values() {
            let t = all_reduce_time(Bytes::b(bytes), &group, kernel, Launch::Graph, ByteRate::tb_per_s(3.0));
            prop_assert!(t.transfer >= Bytes::b(bytes) / group.bandwidth);
            let eager = all_reduce_time(Bytes::b(bytes), &alone, kernel, Launch::Eager, ByteRate::tb_per_s(3.0));
            prop_assert_eq!(eager, CollectiveTime::ZERO);
        }
    }
}
