use super::Collective::*;
use super::*;
use crate::close;
use proptest::prelude::*;
use rackmath_spec::{ExchangeKernel, Reach, Span, Tree};
use rackmath_units::{BytesPerToken, Tokens};
use std::collections::BTreeMap;
use std::sync::LazyLock;

static NETWORKS: LazyLock<BTreeMap<String, std::sync::Arc<Network>>> = LazyLock::new(|| {
    let catalog = rackmath_catalog::embedded();
    catalog.ids(rackmath_spec::Kind::Networks).map(|id| (id.to_owned(), catalog.network(id).unwrap())).collect()
});

fn network(kind: &str) -> &'static Network {
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
    close(us(AllGather), 8.0 + 81.25 * (1.0 + 10.0 / 42.5), 1e-12);
    // V = 40 (6 + 0.25)/4 = 62.5 MB: 156.25 us, times 1 + 10/72.5; six hops.
    close(us(AllReduce), 11.0 + 156.25 * (1.0 + 10.0 / 72.5), 1e-12);
    // The same volume as all-gather, 1 + log2 4 hops.
    close(us(AllToAll), 8.0 + 81.25 * (1.0 + 10.0 / 42.5), 1e-12);
    close(us(SendRecv), 6.0 + 100.0 * (1.0 + 10.0 / 50.0), 1e-12);
    assert_eq!(us(AllGather), us(ReduceScatter));
}

#[test]
fn the_switch_adds_up_for_eight_and_the_ring_for_two() {
    // H100: in the switch 9/8 of S at 8 ranks against 14/8, but 3/2 against 1 at 2, and at a lower share of the rate.
    let with = network("nvlink4");
    let mut without = with.clone();
    without.library.in_network = None;
    let t = |network: &Network, n| time(AllReduce, Bytes::b(512.0 * MIB), &group(network, n, 450.0)).total();
    assert!(t(with, 8) < t(&without, 8));
    assert_eq!(t(with, 2), t(&without, 2));
    close(t(with, 4) / t(&without, 4), 1.0, 0.07);
    // A tree has no switch that adds up.
    let tree = Group { shape: Shape::Tree, ..group(with, 8, 450.0) };
    assert_eq!(time(AllReduce, Bytes::b(512.0 * MIB), &tree).total(), t(&without, 8));
}

#[test]
fn cards_of_one_host_worked_by_hand() {
    let mut network = network("pcie5").clone();
    let library = &mut network.library;
    (library.launch, library.hop) = (Seconds::us(3.0), Seconds::us(1.0));
    let span = |chips, short, long| Span { chips, short: Fraction::new(short), long: Fraction::new(long) };
    let spans = vec![span(2, 0.25, 0.5), span(8, 0.125, 0.4)];
    library.tree = Some(Tree { launch: Seconds::us(10.0), hop: Seconds::us(3.0), spans });
    let us = |collective, mb, n| {
        let group = Group { shape: Shape::Tree, ..group(&network, n, 64.0) };
        time(collective, Bytes::mb(mb), &group).total().get() * 1e6
    };
    // A pair: 1 MB at 16 GB/s after 3 + 2 us, or at 32 GB/s after 10 + 6 us.
    close(us(AllReduce, 1.0, 2), 16.0 + 31.25, 1e-12);
    close(us(AllReduce, 0.016, 2), 5.0 + 1.0, 1e-12);
    // Three cards lie in the wider span: V = 4/3 MB at 25.6 GB/s, four steps.
    close(us(AllReduce, 1.0, 3), 22.0 + 4e6 / 3.0 / 25.6e9 * 1e6, 1e-12);
    // Nine are more than any span: the widest counts.
    close(us(AllGather, 9.0, 9), 34.0 + 8e6 / 25.6e9 * 1e6, 1e-12);
    // RTX PRO 6000, aiconfigurator 0.12.0: NCCL's all-reduce, 64 KiB over 2, 4 and 8 cards, and 512 MiB. An engine's own kernel
    // serves a pair only.
    let pcie = self::network("pcie5");
    let card = |n| Group { shape: Shape::Tree, ..group(pcie, n, 64.0) };
    let t = |bytes: f64, n| time(AllReduce, Bytes::b(bytes), &card(n)).total().get() * 1e6;
    for (n, short, long) in [(2, 9.4, 13_855.7), (4, 16.8, 32_467.4), (8, 31.4, 39_056.7)] {
        close(t(65_536.0, n), short, 0.35);
        close(t(512.0 * MIB, n), long, 0.25);
    }
    let kernel = pcie.all_reduce_kernel("vllm").unwrap();
    let own = |n| all_reduce_time(Bytes::mb(1.0), &card(n), kernel, Launch::Graph, ByteRate::tb_per_s(1.6));
    assert!(own(2).total() < time(AllReduce, Bytes::mb(1.0), &card(2)).total());
    assert_eq!(own(4), time(AllReduce, Bytes::mb(1.0), &card(4)));
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
    let library = time(AllReduce, Bytes::b(16.0 * MIB), &group(network, 8, 450.0));
    assert_eq!(t(16.0 * 1024.0, 8, Launch::Graph), library);
    // Launched by the host, a short message costs the launch and nothing else.
    assert_eq!(t(16.0, 8, Launch::Eager).total(), kernel.eager_launch);
}

#[test]
fn measured_rows_of_h100_and_the_published_ones_of_blackwell() {
    // aiconfigurator 0.12.0, h100_sxm, NCCL 2.29.2 and SGLang 0.5.14, eight GPUs.
    let h = network("nvlink4");
    let us = |collective, mib| time(collective, Bytes::b(mib * MIB), &group(h, 8, 450.0)).total().get() * 1e6;
    close(us(AllReduce, 512.0), 2111.06, 0.05);
    close(us(AllGather, 512.0), 1401.5, 0.06);
    close(us(AllGather, 8.0), 44.86, 0.1);
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
        own.min(time(AllReduce, bytes, &g).total()).get() * 1e6
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
    for (collective, n, gb) in [(SendRecv, 8, 64.0), (AllReduce, 8, 448.0), (AllReduce, 4, 192.0)] {
        close(rate(collective, &mesh(n)).get(), gb * 1e9, 1e-12);
    }
    // A ring of 16: a byte of an all-to-all travels 4 links on average, at a share of 0.95.
    let ring = Group { shape: Shape::Torus, ..group(network("ici"), 16, 600.0) };
    let t = time(AllToAll, Bytes::mb(16.0), &ring).transfer;
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

/// DeepSeek-V3's layer: 8 of 256 experts, hidden 7,168; FP8 with scales out, BF16 back.
fn deepseek(phase: Phase, tokens: f64, ranks: u64, ranks_per_node: u64) -> Exchange {
    let payload = match phase {
        Phase::Dispatch => 7168.0 * (1.0 + 4.0 / 128.0),
        Phase::Combine => 7168.0 * 2.0,
    };
    let (tokens, payload) = (Tokens::new(tokens), BytesPerToken::new(payload));
    Exchange { phase, tokens, payload, top_k: 8, experts: 256, ranks, ranks_per_node }
}

fn exchange_us(exchange: &Exchange, kernel: &str) -> f64 {
    let (fast, slow) = (network("nvlink4"), network("infiniband"));
    let kernel = fast.exchange_kernel(kernel).unwrap();
    exchanged(exchange, kernel, &slow.reach[&kernel.copies]).total.get() * 1e6
}

fn exchanged(exchange: &Exchange, kernel: &ExchangeKernel, reach: &Reach) -> ExchangeTime {
    let up = Port { kernel, bandwidth: ByteRate::gb_per_s(450.0) };
    exchange_time(exchange, &up, Some(&Port { kernel: reach, bandwidth: ByteRate::gb_per_s(50.0) }))
}

#[test]
fn distinct_ranks_by_hand() {
    // Two of four experts on two ranks of two: missed when both fall on the other, 1/6 each. 2 (1 - 1/6) = 5/3.
    close(distinct_ranks(2, 4, 2), 5.0 / 3.0, 1e-12);
    // One expert, one rank; as many ranks as experts, no two together; one rank is always hit.
    close(distinct_ranks(8, 64, 1), 1.0, 1e-12);
    close(distinct_ranks(64, 64, 6), 6.0, 1e-12);
    assert_eq!(distinct_ranks(1, 64, 6), 1.0);
    // 8 (1 - C(224,8)/C(256,8)).
    close(distinct_ranks(8, 256, 8), 5.2947, 1e-4);
}

#[test]
fn measured_exchanges() {
    let check = |kernel: &str, tokens: f64, rows: &[(u64, f64, f64)], tolerance: f64| {
        for &(ranks, dispatch, combine) in rows {
            close(exchange_us(&deepseek(Phase::Dispatch, tokens, ranks, 8), kernel), dispatch, tolerance);
            close(exchange_us(&deepseek(Phase::Combine, tokens, ranks, 8), kernel), combine, tolerance);
        }
    };
    // aiconfigurator 0.12.0, SGLang 0.5.6 with DeepEP on H100, 256 tokens per GPU: low latency over 1, 4 and 8 nodes.
    check("deepep-ll", 256.0, &[(8, 67.0, 136.0), (32, 264.0, 500.0), (64, 301.0, 580.0)], 0.12);
    // Throughput kernels, 4,096 tokens.
    check("deepep-normal", 4096.0, &[(8, 491.2, 972.5), (32, 1860.5, 3633.7), (64, 6510.2, 12509.0)], 0.15);
    // Rows that set no constant: DeepEP docs/legacy.md (0297fc8), H800, 128 tokens (lecture equation 11): 64-way 173 and
    // 314 us, 128-way 192 and 369 us.
    check("deepep-ll", 128.0, &[(64, 173.0, 314.0), (128, 192.0, 369.0)], 0.15);
    // NVL72, BF16, 2,048 tokens: 588 GB/s logical over 64 ranks (8 copies a token counted), fitted on 8 and 16.
    let rack = network("nvlink5");
    let kernel = rack.exchange_kernel("one-sided").unwrap();
    let mut exchange = deepseek(Phase::Combine, 2048.0, 64, 72);
    exchange.phase = Phase::Dispatch;
    let time = exchange_time(&exchange, &Port { kernel, bandwidth: ByteRate::gb_per_s(900.0) }, None);
    close(2048.0 * 8.0 * 14336.0 / time.total.get(), 588e9, 0.05);
    assert_eq!(time.out, Seconds::ZERO);
}

#[test]
fn the_two_networks_add_or_overlap() {
    let (fast, slow) = (network("nvlink4"), network("infiniband"));
    let kernel = fast.exchange_kernel("deepep-normal").unwrap();
    let exchange = deepseek(Phase::Dispatch, 1024.0, 16, 8);
    let at = |overlap| exchanged(&exchange, kernel, &Reach { overlap, ..slow.reach[&kernel.copies].clone() });
    let (longer, sum) = (at(Fraction::ONE), at(Fraction::ZERO));
    close(longer.total.get(), (longer.latency + longer.up.max(longer.out)).get(), 1e-12);
    close(sum.total.get(), (sum.latency + sum.up + sum.out).get(), 1e-12);
}

const ALL: [Collective; 5] = [AllReduce, AllGather, ReduceScatter, AllToAll, SendRecv];

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
            AllReduce | SendRecv => bytes,
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

    #[test]
    fn cards_of_a_host_take_longer_for_more_bytes_or_more_cards_and_beat_no_link(
        bytes in 1.0..1e10_f64, more in 0.0..1e9_f64, n in 2_u64..12, which in 0_usize..5,
    ) {
        for kind in ["pcie4", "pcie5", "pcie4-no-peer", "pcie-arc"] {
            let card = |n| Group { shape: Shape::Tree, ..group(network(kind), n, 32.0) };
            let t = |b, n| time(ALL[which], Bytes::b(b), &card(n));
            prop_assert!(t(bytes, n).total() <= t(bytes + more, n).total());
            prop_assert!(t(bytes, n).total() <= t(bytes, n + 1).total() * (1.0 + 1e-12));
            let least = if matches!(ALL[which], AllReduce | SendRecv) { bytes } else { bytes * (n - 1) as f64 / n as f64 };
            prop_assert!(t(bytes, n).transfer >= Bytes::b(least) / card(n).bandwidth);
        }
    }

    #[test]
    fn distinct_ranks_are_at_most_the_ranks_and_the_experts(n in 1_u64..64, per in 1_u64..16, k in 1_u64..16) {
        let k = k.min(n * per);
        let distinct = distinct_ranks(n, n * per, k);
        prop_assert!(distinct <= n as f64 + 1e-9 && distinct <= k as f64 + 1e-9 && distinct >= 1.0 - 1e-9);
        prop_assert!(distinct_ranks(2 * n, 2 * n * per, k) >= distinct - 1e-9);
    }

    #[test]
    fn more_tokens_of_an_exchange_never_take_less_time(t in 0.0..1e5_f64, more in 0.0..1e5_f64, nodes in 1_u64..16) {
        for kernel in network("nvlink4").exchange.keys() {
            prop_assert_eq!(exchange_us(&deepseek(Phase::Dispatch, t, 1, 8), kernel), 0.0, "alone there is nothing to send");
            for phase in [Phase::Dispatch, Phase::Combine] {
                let us = |t| exchange_us(&deepseek(phase, t, 8 * nodes, 8), kernel);
                prop_assert!(us(t) <= us(t + more));
            }
        }
    }

    #[test]
    fn no_exchange_beats_its_links(t in 1.0..1e5_f64, nodes in 1_u64..16) {
        let exchange = deepseek(Phase::Combine, t, 8 * nodes, 8);
        for (name, kernel) in &network("nvlink4").exchange {
            let c = exchange.crossings(kernel.copies);
            let bytes = t * 14336.0;
            let least = (bytes * c.up / 450e9).max(bytes * c.out / 50e9);
            prop_assert!(exchange_us(&exchange, name) >= least * 1e6);
        }
    }
}

#[test]
fn over_an_ideal_link_exchanging_takes_no_time() {
    for collective in [AllReduce, AllGather, AllToAll, SendRecv] {
        for n in [2, 4, 8] {
            let ideal = group(network("ideal"), n, 1e9);
            assert!(time(collective, Bytes::gb(1.0), &ideal).total().get() < 4e-9, "{collective:?} over {n}");
        }
    }
}
