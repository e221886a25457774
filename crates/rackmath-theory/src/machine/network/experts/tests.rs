use super::*;
use crate::close;
use crate::network::tests::network;
use proptest::prelude::*;

/// DeepSeek-V3's layer: 8 of 256 experts, hidden 7,168; FP8 with scales out, BF16 back.
fn deepseek(phase: Phase, tokens: f64, ranks: u64, ranks_per_node: u64) -> Exchange {
    let payload = match phase {
        Phase::Dispatch => 7168.0 * (1.0 + 4.0 / 128.0),
        Phase::Combine => 7168.0 * 2.0,
    };
    let (tokens, payload) = (Tokens::new(tokens), BytesPerToken::new(payload));
    Exchange { phase, tokens, payload, top_k: 8, experts: 256, ranks, ranks_per_node }
}

fn us(exchange: &Exchange, kernel: &str) -> f64 {
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
fn measured_rows() {
    let check = |kernel: &str, tokens: f64, rows: &[(u64, f64, f64)], tolerance: f64| {
        for &(ranks, dispatch, combine) in rows {
            close(us(&deepseek(Phase::Dispatch, tokens, ranks, 8), kernel), dispatch, tolerance);
            close(us(&deepseek(Phase::Combine, tokens, ranks, 8), kernel), combine, tolerance);
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

proptest! {
    #[test]
    fn distinct_ranks_are_at_most_the_ranks_and_the_experts(n in 1_u64..64, per in 1_u64..16, k in 1_u64..16) {
        let k = k.min(n * per);
        let distinct = distinct_ranks(n, n * per, k);
        prop_assert!(distinct <= n as f64 + 1e-9 && distinct <= k as f64 + 1e-9 && distinct >= 1.0 - 1e-9);
        prop_assert!(distinct_ranks(2 * n, 2 * n * per, k) >= distinct - 1e-9);
    }

    #[test]
    fn more_tokens_never_take_less_time(t in 0.0..1e5_f64, more in 0.0..1e5_f64, nodes in 1_u64..16) {
        for kernel in network("nvlink4").exchange.keys() {
            prop_assert_eq!(us(&deepseek(Phase::Dispatch, t, 1, 8), kernel), 0.0, "alone there is nothing to send");
            for phase in [Phase::Dispatch, Phase::Combine] {
                let us = |t| us(&deepseek(phase, t, 8 * nodes, 8), kernel);
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
            prop_assert!(us(&exchange, name) >= least * 1e6);
        }
    }
}
