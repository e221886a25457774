use super::*;
use crate::operator::ideal;
use proptest::prelude::*;
use rackmath_units::{ByteRate, FlopRate, Fraction};

fn h100() -> Silicon {
    Silicon {
        peak: FlopRate::tflop_per_s(989.4),
        bandwidth: ByteRate::tb_per_s(3.35),
        cores: 132.0,
        l2: Bytes::mb(50.0),
    }
}

fn decoding() -> DecodeConstants {
    DecodeConstants {
        floor: Seconds::us(10.0),
        block: Seconds::us(3.5),
        block_rows: 32.0,
        tile_rows: 1.0,
        compute: Fraction::new(0.6),
        memory: Fraction::new(0.95),
        ramp: Seconds::us(10.0),
        cache_rate: ByteRate::gb_per_s(60.0),
        core_rate: ByteRate::gb_per_s(40.0),
        splits: 16.0,
        cache_share: 0.8,
        corner: 4.0,
    }
}

fn filling() -> PrefillConstants {
    PrefillConstants {
        floor: Seconds::us(10.0),
        block: Seconds::us(1.0),
        tile: 128.0,
        compute: Fraction::new(0.65),
        memory: Fraction::new(0.6),
        cache_rate: ByteRate::gb_per_s(30.0),
        cache_share: 0.8,
        corner: 1.0,
    }
}

/// Every share 1, nothing to pay but the work, a hard corner.
fn perfect_decoding() -> DecodeConstants {
    DecodeConstants {
        floor: Seconds::ZERO,
        block: Seconds::ZERO,
        compute: Fraction::ONE,
        memory: Fraction::ONE,
        ramp: Seconds::ZERO,
        core_rate: ByteRate::b_per_s(1e30),
        corner: f64::INFINITY,
        ..decoding()
    }
}

fn perfect_filling() -> PrefillConstants {
    PrefillConstants {
        floor: Seconds::ZERO,
        block: Seconds::ZERO,
        tile: 1.0,
        compute: Fraction::ONE,
        memory: Fraction::ONE,
        corner: f64::INFINITY,
        ..filling()
    }
}

fn llama(sequences: f64, context: f64) -> DecodeWork {
    DecodeWork::grouped(sequences, context, (32.0, 8.0), 128.0, BytesPerParam::new(2.0))
}

fn us(timing: Timing) -> f64 {
    timing.time.get() * 1e6
}

#[test]
fn a_long_read_by_hand() {
    // 16 x 32,768 tokens x 8 heads x 512 B = 2,147,483,648 B, with 16 x 16,384 B of queries and outputs 2,147,745,792 B:
    // 674.86 us at 0.95 of 3.35 TB/s, plus a ramp of 10 us x 2147.7 / (2147.7 + 40) = 9.82 us.
    // Compute: 4 x 128 x 32 heads x 524,288 = 8.59e9 FLOP, 14.47 us at 0.6 of peak, and 128 / 132 x 3.5 us x
    // (1 + 4 / 32) = 3.82 us. The corner of 4 leaves that invisible.
    let t = decode(h100(), &decoding(), &llama(16.0, 32_768.0), Residency::Memory);
    assert!((t.memory.get() * 1e6 - 684.68).abs() < 0.05, "{t:?}");
    assert!((t.compute.get() * 1e6 - 18.29).abs() < 0.05, "{t:?}");
    assert!((us(t) - 694.68).abs() < 0.05, "{t:?}");
}

#[test]
fn many_short_sequences_are_blocks() {
    // 256 x 8 = 2,048 blocks over 132 cores, 3.5 us x 1.125 each: 61.1 us; reading 4 MiB of queries takes little.
    let t = decode(h100(), &decoding(), &llama(256.0, 1.0), Residency::Memory);
    assert!((us(t) - 71.1).abs() < 0.3, "{t:?}");
}

#[test]
fn one_long_sequence_needs_splitting() {
    let whole = DecodeConstants { splits: 1.0, ..decoding() };
    // 65,536 tokens x 512 B at 40 GB/s by one core for each of 8 heads: 839 us; 16 parts: 52 us, less than the stream.
    let t = decode(h100(), &whole, &llama(1.0, 65_536.0), Residency::Memory);
    assert!((us(t) - 848.9).abs() < 0.5, "{t:?}");
    let t = decode(h100(), &decoding(), &llama(1.0, 65_536.0), Residency::Memory);
    assert!((us(t) - 103.0).abs() < 0.5, "{t:?}");
}

#[test]
fn a_repeated_call_finds_its_cache() {
    // 16 x 511 tokens are 33 MB, below 0.8 of 50 MB.
    let work = llama(16.0, 511.0);
    let cold = decode(h100(), &decoding(), &work, Residency::Memory);
    let warm = decode(h100(), &decoding(), &work, Residency::Cache);
    assert!(warm.memory < cold.memory, "{warm:?} {cold:?}");
    let large = llama(256.0, 1023.0);
    let cold = us(decode(h100(), &decoding(), &large, Residency::Memory));
    let warm = us(decode(h100(), &decoding(), &large, Residency::Cache));
    assert!((warm / cold - 1.0).abs() < 1e-6);
}

#[test]
fn a_prompt_by_hand() {
    // 4,096 tokens, 32 heads of 128: 4 x 128 x 32 x 8,390,656 pairs = 137.5 GFLOP, 213.8 us at 0.65 of peak; 1,024 tiles
    // over 132 cores at 1 us, 7.76 us; 4,096 x 24,576 B = 100.7 MB, 50.1 us at 0.6 of 3.35 TB/s; floor 10 us.
    let work = PrefillWork::grouped(1.0, 4096.0, (32.0, 8.0), 128.0, BytesPerParam::new(2.0));
    let t = prefill(h100(), &filling(), &work, Residency::Memory);
    assert!((us(t) - 281.6).abs() < 0.3, "{t:?}");
}

#[test]
fn pairs_of_a_window_and_of_a_chunk() {
    let mut work = PrefillWork::grouped(1.0, 4.0, (1.0, 1.0), 1.0, BytesPerParam::new(2.0));
    assert_eq!(work.pairs(), 10.0);
    work.window = Some(2.0);
    assert_eq!(work.pairs(), 1.0 + 2.0 + 2.0 + 2.0);
    work.past = 10.0;
    assert_eq!(work.pairs(), 8.0);
    work.window = None;
    // A prompt in two chunks has the pairs of the whole: 14 x 15 / 2 less 10 x 11 / 2.
    assert_eq!(work.pairs(), 50.0);
}

fn size() -> impl Strategy<Value = f64> {
    (0_u32..14).prop_flat_map(|e| 1_u32 << e..2_u32 << e).prop_map(f64::from)
}

fn residency() -> impl Strategy<Value = Residency> {
    prop_oneof![Just(Residency::Memory), Just(Residency::Cache)]
}

/// A little slack for rounding.
fn not_less(more: Timing, less: Timing) -> bool {
    more.time.get() >= less.time.get() * (1.0 - 1e-12)
}

proptest! {
    #[test]
    fn never_faster_than_the_roofline(b in size(), s in size(), k in 1_u32..64, g in 1_u32..64, past in 0_u32..100_000) {
        let (k, g) = (f64::from(k), f64::from(g));
        let work = DecodeWork::grouped(b, s, (k * g, k), 128.0, BytesPerParam::new(1.0));
        let best = ideal(h100(), work.flop(), work.bytes());
        prop_assert!(not_less(decode(h100(), &decoding(), &work, Residency::Memory), best));
        let mut work = PrefillWork::grouped(b, s, (k * g, k), 128.0, BytesPerParam::new(1.0));
        work.past = f64::from(past);
        let best = ideal(h100(), work.flop(), work.bytes());
        prop_assert!(not_less(prefill(h100(), &filling(), &work, Residency::Memory), best));
    }

    #[test]
    fn perfect_kernels_are_the_roofline(b in size(), s in size(), k in 1_u32..64, g in 1_u32..64) {
        let (k, g) = (f64::from(k), f64::from(g));
        let close = |a: Timing, b: Timing| (a.time.get() / b.time.get() - 1.0).abs() < 1e-12;
        let work = DecodeWork::grouped(b, s, (k * g, k), 64.0, BytesPerParam::new(2.0));
        let best = ideal(h100(), work.flop(), work.bytes());
        prop_assert!(close(decode(h100(), &perfect_decoding(), &work, Residency::Memory), best));
        // One core, so that no core waits for the longest tile.
        let one = Silicon { cores: 1.0, ..h100() };
        let work = PrefillWork::grouped(b, s, (k * g, k), 64.0, BytesPerParam::new(2.0));
        let best = ideal(one, work.flop(), work.bytes());
        prop_assert!(close(prefill(one, &perfect_filling(), &work, Residency::Memory), best));
    }

    #[test]
    fn more_work_is_never_faster(b in size(), s in size(), k in 1_u32..64, g in 1_u32..200, more in 1.0..3.0_f64, r in residency()) {
        let (k, g) = (f64::from(k), f64::from(g));
        let d = |b: f64, s: f64, k: f64, g: f64, w: f64| {
            let work = DecodeWork::grouped(b, s, (k * g, k), 128.0, BytesPerParam::new(w));
            decode(h100(), &decoding(), &work, r)
        };
        let base = d(b, s, k, g, 1.0);
        for larger in [d(b * more, s, k, g, 1.0), d(b, s * more, k, g, 1.0), d(b, s, k * more, g, 1.0), d(b, s, k, g * more, 1.0), d(b, s, k, g, more)] {
            prop_assert!(not_less(larger, base), "{larger:?} {base:?}");
        }
        let f = |b: f64, s: f64, past: f64, k: f64, window: Option<f64>| {
            let work = PrefillWork::grouped(b, s, (k * 4.0, k), 128.0, BytesPerParam::new(2.0));
            prefill(h100(), &filling(), &PrefillWork { past, window, ..work }, r)
        };
        for window in [None, Some(128.0)] {
            let base = f(b, s, 100.0, k, window);
            for larger in [f(b * more, s, 100.0, k, window), f(b, s * more, 100.0, k, window), f(b, s, 100.0 * more, k, window), f(b, s, 100.0, k * more, window), f(b, s, 100.0, k, window.map(|w| w * more))] {
                prop_assert!(not_less(larger, base), "{larger:?} {base:?}");
            }
        }
    }

    #[test]
    fn a_better_chip_is_never_slower(b in size(), s in size(), more in 1.0..3.0_f64, r in residency()) {
        let chip = h100();
        let better = [
            Silicon { peak: chip.peak * more, ..chip },
            Silicon { bandwidth: chip.bandwidth * more, ..chip },
            Silicon { l2: chip.l2 * more, ..chip },
        ];
        let work = llama(b, s);
        let prompt = PrefillWork::grouped(b, s, (32.0, 8.0), 128.0, BytesPerParam::new(2.0));
        for faster in better {
            prop_assert!(not_less(decode(chip, &decoding(), &work, r), decode(faster, &decoding(), &work, r)));
            prop_assert!(not_less(prefill(chip, &filling(), &prompt, r), prefill(faster, &filling(), &prompt, r)));
        }
        // More cores share a peak; only decode is sure to gain, prefill's longest tile runs on a slower core.
        let wider = Silicon { cores: chip.cores * more, ..chip };
        prop_assert!(not_less(decode(chip, &decoding(), &work, r), decode(wider, &decoding(), &work, r)));
    }
}

#[test]
fn a_tile_of_128_rows_costs_the_same_for_4_heads_as_for_128() {
    // FlashAttention-2 without splits: 64 sequences of 8,192 tokens, 8 KV heads of size 128, tiles of 128 rows:
    // 64 x 8 x 8192 x 128 x 4 x 128 = 2.75e11 FLOP at 370 TFLOP/s (arXiv 2407.08608, figure 5) is 743 us.
    let constants = DecodeConstants {
        tile_rows: 128.0,
        compute: Fraction::new(370.0 / 989.4),
        splits: 1.0,
        block: Seconds::ZERO,
        ..decoding()
    };
    let work = |heads| DecodeWork::grouped(64.0, 8192.0, (heads, 8.0), 128.0, BytesPerParam::new(2.0));
    let compute = |heads| decode(h100(), &constants, &work(heads), Residency::Memory).compute;
    assert!((compute(32.0) / Seconds::us(743.0) - 1.0).abs() < 1e-3, "{:?}", compute(32.0));
    assert!((compute(32.0) / compute(1024.0) - 1.0).abs() < 1e-12);
    assert!(compute(1032.0) > compute(1024.0) * 1.9);
}
