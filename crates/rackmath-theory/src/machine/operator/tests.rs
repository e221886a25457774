//! Worked numbers of each kernel, and the laws they all obey.

use super::attention::{DecodeWork, PrefillWork, Residency, decode, on_chip, prefill};
use super::gemm::{Gemm, Product, Scaling, Sustained, pass_time};
use super::mla::Latent;
use super::moe::{self, Call, Draw, Layer, Load};
use super::*;
use crate::close;
use proptest::prelude::*;
use rackmath_spec::attention::{DecodeConstants, PrefillConstants, Wanted};
use rackmath_spec::{Dtype, GemmFormat, GemmKernel, MoeFormat, MoeKernel, Pass, PowerRule, VariantArray as _};
use rackmath_units::{BytesPerParam, Fraction, Tokens, Watts};

fn silicon(tflop: f64, tb: f64, cores: f64) -> Silicon {
    Silicon { peak: FlopRate::tflop_per_s(tflop), bandwidth: ByteRate::tb_per_s(tb), cores, l2: Bytes::mb(50.0) }
}

fn h100() -> Silicon {
    silicon(989.4, 3.35, 132.0)
}

fn us(time: Seconds) -> f64 {
    time.get() * 1e6
}
fn not_less(more: Timing, less: Timing) -> bool {
    more.time.get() >= less.time.get() * (1.0 - 1e-9)
}

fn same(a: Seconds, b: Seconds) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

/// The laws of any kernel: no faster than its roofline, not faster with more to do, not slower on a better chip.
fn laws<W>(
    chip: Silicon,
    work: &W,
    larger: &[W],
    better: &[Silicon],
    time: impl Fn(Silicon, &W) -> Timing,
    least: Timing,
) -> Result<(), TestCaseError> {
    let base = time(chip, work);
    prop_assert!(not_less(base, least) && base.time >= base.floor, "{base:?} beats {least:?}");
    for (i, more) in larger.iter().enumerate() {
        prop_assert!(not_less(time(chip, more), base), "{i} is larger and faster");
    }
    for faster in better {
        prop_assert!(not_less(base, time(*faster, work)), "{faster:?} is better and slower");
    }
    Ok(())
}
fn better(chip: Silicon, more: f64) -> [Silicon; 3] {
    [
        Silicon { peak: chip.peak * more, ..chip },
        Silicon { bandwidth: chip.bandwidth * more, ..chip },
        Silicon { l2: chip.l2 * more, ..chip },
    ]
}

/// A matrix product without losses: tiles of one value, no floor, no operand limit, a hard corner.
fn perfect_gemm() -> GemmKernel {
    GemmKernel {
        floor: Seconds::ZERO,
        host: Seconds::ZERO,
        compute: 1.0,
        power: None,
        bandwidth: 1.0,
        corner: f64::INFINITY,
        operand: None,
        wave: Seconds::ZERO,
        quantum: 0.0,
        droop: 0.0,
        split: Seconds::ZERO,
        ramp: 0.0,
        resident: 0.0,
        tiles: vec![(1.0, 1.0)],
        splits: vec![1.0],
        ..gemm_kernel(|k| k.format == GemmFormat::Bf16)
    }
}

fn gemm_kernel(wanted: impl Fn(&GemmKernel) -> bool) -> GemmKernel {
    let all = rackmath_catalog::embedded().gemm_kernels().unwrap();
    all.kernels.iter().find(|k| wanted(k)).expect("a kernel").clone()
}

#[test]
fn waves_and_splits_of_tiles_by_hand() {
    // 100 cores of 1 TFLOP/s; 200 tiles of 128 x 128 are two waves of 2 * 128 * 128 * 1000 / 0.5e12 = 65.536 us.
    let (tiles, floor) = (vec![(128.0, 128.0)], Seconds::us(3.0));
    let kernel = GemmKernel { tiles, compute: 0.5, quantum: 1.0, floor, ..perfect_gemm() };
    let gemm = Gemm::new(silicon(100.0, 1000.0, 100.0), None, &kernel);
    let product = Product::new(128.0 * 10.0, 128.0 * 20.0, 1000.0);
    close(us(gemm.time(product, Scaling::Given).time), 3.0 + 2.0 * 65.536, 1e-9);
    // One more column of tiles opens a third wave: 210 tiles on 100 cores.
    let more = Product { columns: 128.0 * 20.0 + 1.0, ..product };
    close(us(gemm.time(more, Scaling::Given).time), 3.0 + 3.0 * 65.536, 1e-9);
    // 10 tiles on 100 cores: split by 8, eighty cores work an eighth as long, and the parts are added up.
    let (tiles, splits) = (vec![(64.0, 64.0)], vec![1.0, 8.0]);
    let kernel = GemmKernel { tiles, splits, split: Seconds::us(2.0), ..perfect_gemm() };
    let gemm = Gemm::new(silicon(100.0, 1000.0, 100.0), None, &kernel);
    let tile = 2.0 * 64.0 * 64.0 * 65536.0 / 1e12;
    let sums = 8.0 * 8.0 * 64.0 * 640.0 / 1000e12;
    let time = gemm.time(Product::new(64.0, 640.0, 65536.0), Scaling::Given);
    close(time.compute.get(), tile / 8.0 + 2e-6 + sums, 1e-9);
}

#[test]
fn a_pass_in_and_out_of_the_cache_by_hand() {
    let (width, floor, core) = (BytesPerParam::new(2.0), Seconds::us(7.0), ByteRate::gb_per_s(20.0));
    let pass = Pass { width, floor, core, cold_core: None, bandwidth: 0.5, cached: 0.5, row: Seconds::ZERO };
    // 10 MB stay in 25 MB of cache: 10 MB / 2 TB/s = 5 us. Of 225 MB, 200 MB leave it: 200 MB / 0.5 TB/s = 400 us.
    for (rows, expected) in [(5000.0, 12.0), (112_500.0, 407.0)] {
        close(us(pass_time(silicon(1000.0, 1.0, 100.0), &pass, Product::new(rows, 1.0, 1000.0))), expected, 1e-9);
    }
}

#[test]
fn more_power_sustains_more_within_its_range() {
    let rule = PowerRule { peak: FlopRate::tflop_per_s(1000.0), tdp: Watts::w(400.0), range: (0.8, 1.15) };
    for (tflop, watts, factor, spare) in [
        (1000.0, 400.0, 1.0, 1.0),
        (1000.0, 484.0, 1.1, 1.0),
        (1100.0, 400.0, 1.0 / 1.1, 1.0),
        (1000.0, 1600.0, 1.15, 2.0 / 1.15),
        (5000.0, 400.0, 0.8, 1.0),
    ] {
        let found = Sustained::of(rule, silicon(tflop, 1.0, 1.0), Watts::w(watts));
        close(found.factor, factor, 1e-9);
        close(found.spare, spare, 1e-9);
    }
}

#[test]
fn every_catalogue_chip_has_kernels_in_the_formats_it_computes() {
    let catalog = rackmath_catalog::embedded();
    let kernels = catalog.gemm_kernels().unwrap();
    for id in catalog.ids(rackmath_spec::Kind::Chips) {
        let chip = catalog.chip(id).unwrap();
        for &format in GemmFormat::VARIANTS {
            let kernel = kernels.find(&chip, format, "trtllm").unwrap_or_else(|| panic!("{id} has no {format}"));
            assert_eq!(Gemm::of(&chip, kernel).is_some(), chip.peak.contains_key(&format.math()), "{id} {format}");
        }
    }
    let workstation = catalog.chip("rtx-pro-6000").unwrap();
    assert_eq!(kernels.find(&workstation, GemmFormat::Bf16, "vllm").unwrap().class, "blackwell-gddr");
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

fn grouped(sequences: f64, context: f64, heads: f64, kv_heads: f64) -> DecodeWork {
    DecodeWork::grouped(sequences, context, (heads, kv_heads), 128.0, BytesPerParam::new(2.0))
}

fn llama(constants: &DecodeConstants, sequences: f64, context: f64) -> Timing {
    decode(h100(), constants, &grouped(sequences, context, 32.0, 8.0), Residency::Memory)
}

fn prompt(sequences: f64, new: f64, heads: f64, kv_heads: f64) -> PrefillWork {
    PrefillWork::grouped(sequences, new, (heads, kv_heads), 128.0, BytesPerParam::new(2.0))
}

#[test]
fn decodes_by_hand() {
    // 16 x 32,768 tokens x 8 heads x 512 B = 2,147,483,648 B, with 16 x 16,384 B of queries and outputs 2,147,745,792 B:
    // 674.86 us at 0.95 of 3.35 TB/s, plus a ramp of 10 us x 2147.7 / (2147.7 + 40) = 9.82 us.
    // Compute: 4 x 128 x 32 heads x 524,288 = 8.59e9 FLOP, 14.47 us at 0.6 of peak, and 128 / 132 x 3.5 us x
    // (1 + 4 / 32) = 3.82 us. The corner of 4 leaves that invisible.
    let t = llama(&decoding(), 16.0, 32_768.0);
    close(us(t.memory), 684.68, 7e-5);
    close(us(t.compute), 18.29, 2.7e-3);
    close(us(t.time), 694.68, 7e-5);
    // Many short sequences are blocks: 256 x 8 = 2,048 over 132 cores, 3.5 us x 1.125 each: 61.1 us; reading 4 MiB of
    // queries takes little.
    close(us(llama(&decoding(), 256.0, 1.0).time), 71.1, 4e-3);
    // One long sequence needs splitting: 65,536 tokens x 512 B at 40 GB/s by one core for each of 8 heads: 839 us; 16
    // parts: 52 us, less than the stream.
    let whole = DecodeConstants { splits: 1.0, ..decoding() };
    close(us(llama(&whole, 1.0, 65_536.0).time), 848.9, 5e-4);
    close(us(llama(&decoding(), 1.0, 65_536.0).time), 103.0, 4e-3);
}

#[test]
fn a_repeated_call_finds_its_cache() {
    let at = |b, s, residency| decode(h100(), &decoding(), &grouped(b, s, 32.0, 8.0), residency);
    // 16 x 511 tokens are 33 MB, below 0.8 of 50 MB; 256 x 1,023 are far above.
    assert!(at(16.0, 511.0, Residency::Cache).memory < at(16.0, 511.0, Residency::Memory).memory);
    close(at(256.0, 1023.0, Residency::Cache).time / at(256.0, 1023.0, Residency::Memory).time, 1.0, 1e-6);
}

#[test]
fn a_prompt_by_hand() {
    // 4,096 tokens, 32 heads of 128: 4 x 128 x 32 x 8,390,656 pairs = 137.5 GFLOP, 213.8 us at 0.65 of peak; 1,024 tiles
    // over 132 cores at 1 us, 7.76 us; 4,096 x 24,576 B = 100.7 MB, 50.1 us at 0.6 of 3.35 TB/s; floor 10 us.
    let t = prefill(h100(), &filling(), &prompt(1.0, 4096.0, 32.0, 8.0), Residency::Memory);
    close(us(t.time), 281.6, 1e-3);
    // A prompt in two chunks has the pairs of the whole: 14 x 15 / 2 less 10 x 11 / 2.
    for (past, window, pairs) in [(0.0, None, 10.0), (0.0, Some(2.0), 7.0), (10.0, Some(2.0), 8.0), (10.0, None, 50.0)]
    {
        assert_eq!(PrefillWork { past, window, ..prompt(1.0, 4.0, 1.0, 1.0) }.pairs(), pairs);
    }
}

#[test]
fn slow_tensor_cores_with_power_to_spare_are_used_better() {
    let catalog = rackmath_catalog::embedded();
    let (kernels, gemms) = (catalog.attention_kernels().unwrap(), catalog.gemm_kernels().unwrap());
    let wanted = Wanted { backend: "vllm", math: Dtype::Bf16, kv: Dtype::Bf16, group: 1 };
    let on = |id: &str| {
        let chip = catalog.chip(id).unwrap();
        (on_chip(&kernels, &chip, kernels.prefill(&chip, wanted).constants), Silicon::of(&chip, Math::Bf16).unwrap())
    };
    // Where it was measured a kernel is as it was measured: 0.718 of an H200's peak.
    let (h200, _) = on("h200");
    close(h200.compute.get(), 0.718, 1e-12);
    // An H20's core has 148 / 78 TFLOP/s of an H100's 989.4 / 132, and its clock its whole range: the products take 1 / (1.15 x
    // 0.82), the rest 0.253 of 1 / 0.718 - 1 / 0.82.
    let (h20, silicon) = on("h20");
    close(h20.compute.get(), 1.0 / (1.0 / 0.943 + 0.2531 * 0.17325), 1e-4);
    // FlashAttention-3 on an H20: two sequences of 2,048 tokens, 16 heads of 128, causal: 0.319 ms
    // (github.com/Dao-AILab/flash-attention/issues/1310, 2024-11).
    let work = PrefillWork::grouped(2.0, 2048.0, (16.0, 16.0), 128.0, BytesPerParam::new(2.0));
    close(us(prefill(silicon, &h20, &work, Residency::Memory).time), 319.0, 0.06);
    // Its matrix products lose nothing in long runs: 8,192 tokens by 28,672 columns at 0.967 of 148 TFLOP/s.
    let chip = catalog.chip("h20").unwrap();
    let gemm = Gemm::of(&chip, gemms.find(&chip, GemmFormat::Bf16, "vllm").unwrap()).unwrap();
    let product = Product::new(8192.0, 28_672.0, 4096.0);
    let peak = product.flop() / silicon.peak;
    close(peak / gemm.time(product, Scaling::Given).compute, 0.967, 0.01);
}

#[test]
fn a_tile_of_128_rows_costs_the_same_for_4_heads_as_for_128() {
    // FlashAttention-2 without splits: 64 sequences of 8,192 tokens, 8 KV heads of size 128, tiles of 128 rows:
    // 64 x 8 x 8192 x 128 x 4 x 128 = 2.75e11 FLOP at 370 TFLOP/s (arXiv 2407.08608, figure 5) is 743 us.
    let (compute, block) = (Fraction::new(370.0 / 989.4), Seconds::ZERO);
    let constants = DecodeConstants { tile_rows: 128.0, compute, splits: 1.0, block, ..decoding() };
    let compute =
        |heads| decode(h100(), &constants, &grouped(64.0, 8192.0, heads, 8.0), Residency::Memory).compute.get();
    close(compute(32.0), 743e-6, 1e-3);
    close(compute(32.0), compute(1024.0), 1e-12);
    assert!(compute(1032.0) > compute(1024.0) * 1.9);
}

#[test]
fn deepseek_v3_decodes_near_the_ridge_and_its_prompt_is_plain_attention() {
    let latent = Latent { heads: 128.0, rank: 512.0, rope: 64.0, nope: 128.0, value: 128.0 };
    let work = latent.decode(1.0, 1e6, BytesPerParam::new(2.0));
    // 2 x 128 heads x (2 x 512 + 64) = 278,528 FLOP for 1,152 bytes of a cached token.
    assert_eq!((work.flop().get(), work.token_bytes.get()), (278_528.0 * 1e6, 1152.0));
    let intensity = work.flop().get() / work.bytes().get();
    assert!((intensity - 241.8).abs() < 0.2, "{intensity}");
    // Keys of 192: 2 x (192 + 128) FLOP for each of 16 heads, 2 sequences and 1000 x 1001 / 2 pairs.
    let work = Latent { heads: 16.0, ..latent }.prefill(2.0, 1000.0, 0.0);
    assert_eq!(work.flop().get(), 640.0 * 16.0 * 2.0 * 500_500.0);
}

fn qwen(ranks: u64) -> Layer {
    Layer { hidden: 4096, inter: 1536, gated: true, experts: 128, top_k: 8, ranks }
}

fn load(ranks: u64, tokens: f64, draw: Draw) -> Load {
    Load::of(&qwen(ranks), Tokens::new(tokens), draw)
}

fn hopper(format: MoeFormat) -> (Silicon, MoeKernel) {
    let catalog = rackmath_catalog::embedded();
    let silicon = Silicon::of(&catalog.chip("h100-sxm").unwrap(), format.math()).unwrap();
    (silicon, catalog.moe_kernels().unwrap().find("trtllm-cutlass", format, "hopper").unwrap().kernel)
}

/// No floor, no padding, no lost wave, full rates, a hard corner.
fn perfect_moe() -> MoeKernel {
    MoeKernel {
        launch: Seconds::ZERO,
        per_expert: Seconds::ZERO,
        compute: Fraction::ONE,
        memory: Fraction::ONE,
        activation: Fraction::ONE,
        tile: 1.0,
        tail: 0.0,
        corner: f64::INFINITY,
        ..hopper(MoeFormat::Bf16).1
    }
}

fn skew(ranks: f64, touched: f64) -> moe::Skew {
    moe::Skew { ranks, touched }
}

#[test]
fn loads_of_experts_by_hand() {
    // 16 tokens, 8 choices each: 128 rows, one for each expert, on 8 ranks 16 each.
    let even = load(8, 16.0, Draw::Even);
    assert_eq!((even.touched(), even.rows(), even.tiles(64.0)), (16.0, 16.0, 16.0));
    // 1,024 tokens: 64 rows per expert, one tile of 64 or half of one of 128.
    let even = load(1, 1024.0, Draw::Even);
    assert_eq!((even.touched(), even.rows(), even.tiles(64.0), even.tiles(128.0)), (128.0, 8192.0, 128.0, 128.0));
    // 16 random tokens miss (120/128)^16 = 0.3561 of the experts.
    close(load(1, 16.0, Draw::Random).touched(), 128.0 * (1.0 - 0.35607), 1e-4);
    // Under a power law every pair is kept and the busiest of 8 ranks has more than its share.
    close(load(1, 4096.0, Draw::PowerLaw(1.01)).rows(), 32768.0, 1e-9);
    let busiest = load(8, 4096.0, Draw::PowerLaw(1.01)).rows();
    assert!((1.3..2.0).contains(&(busiest / 4096.0)), "{busiest}");
    // DeepSeek-R1 on 32 ranks of 8, 1,024 rows each: the busiest has 2.56 times its share (examples/wide_ep of TensorRT-LLM); normal
    // tails give 2.0. On one rank there is nothing to wait for.
    let wide = Layer { hidden: 7168, inter: 2048, gated: true, experts: 256, top_k: 8, ranks: 32 };
    let (rows, _) = Load::busiest(&wide, Tokens::new(4096.0), skew(1.38, 0.0));
    assert!((1.9..2.1).contains(&rows), "{rows}");
    close(load(1, 16.0, Draw::Busiest(skew(0.0, 0.0))).touched(), load(1, 16.0, Draw::Random).touched(), 1e-9);
    // Popularity that varies by its mean leaves 1 / (1 + x) untouched; x = 1.0326 for 16 tokens of 8 in 128.
    close(load(1, 16.0, Draw::Busiest(skew(0.0, 1.0))).touched(), 128.0 * (1.0 - 1.0 / 2.0326), 1e-4);
    // 16 tokens on 8 ranks: 10.3 of 16 experts are touched on average, more on the busiest.
    let touched = load(8, 16.0, Draw::Busiest(skew(0.0, 0.0))).touched();
    assert!((10.3 * 1.2..10.3 * 1.35).contains(&touched), "{touched}");
    // H100 BF16, Qwen3-235B, 16 tokens: 867 us against 1,562 for all 128 experts, so about 71 are read.
    let touched = load(1, 16.0, Draw::PowerLaw(1.01)).touched();
    assert!((64.0..76.0).contains(&touched), "{touched}");
}

#[test]
fn weights_of_experts_from_memory_and_from_the_cache() {
    // 128 experts of 3 x 4096 x 1536 weights of 2 bytes: 4.83 GB, 1.44 ms at 3.35 TB/s.
    let call = Call { layer: qwen(1), format: MoeFormat::Bf16, tokens: Tokens::new(64.0), draw: Draw::Even };
    let (silicon, kernel) = hopper(call.format);
    let w = moe::work(silicon, &perfect_moe(), &call);
    close(w.weights.as_gb(), 4.8318, 1e-4);
    close(w.flop.get(), 2.0 * 512.0 * 3.0 * 4096.0 * 1536.0, 1e-12);
    // The measured kernel needs 1,580 us (aiconfigurator, TensorRT-LLM 1.3.0rc20).
    let t = moe::time(silicon, &kernel, &call);
    close(us(t.time), 1580.0, 0.1);
    assert!(t.memory > t.compute);
    // 4 experts of 18.9 MB.
    let call = Call { layer: qwen(32), format: MoeFormat::Fp8, tokens: Tokens::new(16.0), draw: Draw::Even };
    let (silicon, kernel) = hopper(call.format);
    let at = |l2: f64| moe::time(Silicon { l2: Bytes::mb(l2), ..silicon }, &kernel, &call).time;
    assert!(at(50.0) > at(100.0) && at(50.0) <= at(0.0));
}

fn any_silicon() -> impl Strategy<Value = Silicon> {
    (50.0f64..10_000.0, 0.3f64..20.0, 40.0f64..200.0, 0.0f64..150.0)
        .prop_map(|(tflop, tb, cores, mb)| Silicon { l2: Bytes::mb(mb), ..silicon(tflop, tb, cores) })
}

fn any_layer() -> impl Strategy<Value = Layer> {
    (1u64..64, 1u64..64, any::<bool>(), 0u32..7, 1u64..9, 1u64..9).prop_map(|(h, i, gated, each, top_k, ranks)| {
        let experts = ranks * (1 << each).max(8);
        Layer { hidden: 128 * h, inter: 96 * i, gated, experts, top_k, ranks }
    })
}

fn any_moe() -> impl Strategy<Value = (MoeKernel, MoeFormat)> {
    let kernels = rackmath_catalog::embedded().moe_kernels().unwrap();
    let all: Vec<(MoeKernel, MoeFormat)> = kernels.families.values().flatten().map(|f| (f.kernel, f.format)).collect();
    proptest::sample::select(all)
}

fn any_gemm() -> impl Strategy<Value = GemmKernel> {
    proptest::sample::select(rackmath_catalog::embedded().gemm_kernels().unwrap().kernels.clone())
}
fn size(low: f64, high: f64) -> impl Strategy<Value = f64> {
    (low..high).prop_map(|x| x.exp2().floor())
}

proptest! {
    #[test]
    fn products_obey_the_laws(
        kernel in any_gemm(), chip in (500.0..2350.0f64, 1.0..8.0f64, 80.0..180.0f64),
        m in size(0.0, 15.0), n in size(6.0, 16.0), k in size(6.0, 14.5), more in 1.0..3.0f64, watts in 100.0..2000.0f64
    ) {
        let (chip, product) = (silicon(chip.0, chip.1, chip.2), Product::new(m, n, k));
        let larger = [
            Product { rows: (m * more).ceil(), ..product },
            Product { columns: (n * more).ceil(), ..product },
            Product { depth: (k * more).ceil(), ..product },
        ];
        let least = ideal(chip, product.flop(), Gemm::new(chip, None, &kernel).traffic(product));
        let mut last = Seconds::ZERO;
        for scaling in [Scaling::Given, Scaling::Static, Scaling::Dynamic] {
            laws(chip, &product, &larger, &[], |s, p| Gemm::new(s, None, &kernel).time(*p, scaling), least)?;
            let powered = |s: Silicon, p: &Product| Gemm::new(s, Some(Watts::w(watts)), &kernel).time(*p, scaling);
            laws(chip, &product, &larger, &better(chip, more), powered, least)?;
            let time = Gemm::new(chip, None, &kernel).time(product, scaling).time;
            prop_assert!(time >= last, "{scaling:?}");
            last = time;
        }
    }

    #[test]
    fn attention_obeys_the_laws(
        b in size(0.0, 14.0), s in size(0.0, 14.0), k in 1u32..64, g in 1u32..200, past in 0.0..100_000.0f64,
        window in prop_oneof![Just(None), Just(Some(128.0))], more in 1.0..3.0f64, warm in any::<bool>()
    ) {
        let (chip, k, g) = (h100(), f64::from(k), f64::from(g));
        let residency = if warm { Residency::Cache } else { Residency::Memory };
        let no_less = |flop, bytes| if warm { ideal(chip, flop, Bytes::ZERO) } else { ideal(chip, flop, bytes) };
        let d = |b: f64, s: f64, k: f64, g: f64, w: f64| DecodeWork::grouped(b, s, (k * g, k), 128.0, BytesPerParam::new(w));
        let work = d(b, s, k, g, 1.0);
        let larger = [d(b * more, s, k, g, 1.0), d(b, s * more, k, g, 1.0), d(b, s, k * more, g, 1.0), d(b, s, k, g * more, 1.0), d(b, s, k, g, more)];
        let mut chips = better(chip, more).to_vec();
        // More cores share a peak; only decode is sure to gain, prefill's longest tile runs on a slower core.
        chips.push(Silicon { cores: chip.cores * more, ..chip });
        let time = |chip: Silicon, work: &DecodeWork| decode(chip, &decoding(), work, residency);
        laws(chip, &work, &larger, &chips, time, no_less(work.flop(), work.bytes()))?;
        let f = |b: f64, s: f64, past: f64, k: f64, window: Option<f64>| PrefillWork { past, window, ..prompt(b, s, 4.0 * k, k) };
        let work = f(b, s, past, k, window);
        let larger = [f(b * more, s, past, k, window), f(b, s * more, past, k, window), f(b, s, past * more, k, window), f(b, s, past, k * more, window), f(b, s, past, k, window.map(|w| w * more))];
        let time = |chip: Silicon, work: &PrefillWork| prefill(chip, &filling(), work, residency);
        laws(chip, &work, &larger, &chips[..3], time, no_less(work.flop(), work.bytes()))?;
    }

    #[test]
    fn experts_obey_the_laws(
        chip in any_silicon(), layer in any_layer(), (kernel, format) in any_moe(), t in 1u64..20_000, each in 1u64..1000,
        draw in prop_oneof![Just(Draw::Even), Just(Draw::Random), (0.0f64..2.0, 0.0f64..1.0).prop_map(|(r, s)| Draw::Busiest(skew(r, r * s))),
            (0.5f64..1.5).prop_map(Draw::PowerLaw)], more in 1.0..4.0f64
    ) {
        let call = |layer, t: u64| Call { layer, format, tokens: Tokens::new(t as f64), draw };
        let work = call(layer, t);
        let larger = [
            call(layer, t + each),
            call(Layer { hidden: layer.hidden + each, ..layer }, t),
            call(Layer { inter: layer.inter + each, ..layer }, t),
            call(Layer { top_k: layer.experts.min(layer.top_k + 1), ..layer }, t),
            call(Layer { gated: true, ..layer }, t),
        ];
        // The popularity that a power law assumes changes with the tokens.
        let larger = if matches!(draw, Draw::PowerLaw(_)) { &larger[..0] } else { &larger[..] };
        let w = moe::work(chip, &kernel, &work);
        let time = |chip: Silicon, call: &Call| moe::time(chip, &kernel, call);
        laws(chip, &work, larger, &better(chip, more)[..2], time, ideal(chip, w.flop, w.cold))?;
    }

    #[test]
    fn kernels_without_losses_are_the_roofline(
        chip in any_silicon(), layer in any_layer(), each in 1u64..64, b in size(0.0, 14.0), s in size(0.0, 14.0),
        k in 1u32..64, g in 1u32..64, n in 1.0..9000.0f64
    ) {
        // One core, so that a product of a few values leaves none idle and none waits for the longest tile.
        let one = Silicon { cores: 1.0, ..h100() };
        let (kernel, product) = (perfect_gemm(), Product::new(s, n.floor(), b));
        let gemm = Gemm::new(one, None, &kernel);
        let bound = ideal(one, product.flop(), gemm.traffic(product));
        prop_assert!(same(gemm.time(product, Scaling::Given).time, bound.time));
        let (k, g, all, none) = (f64::from(k), f64::from(g), Fraction::ONE, Seconds::ZERO);
        let decoding = DecodeConstants {
            floor: none, block: none, ramp: none, compute: all, memory: all, core_rate: ByteRate::b_per_s(1e30),
            corner: f64::INFINITY, ..decoding()
        };
        let work = grouped(b, s, k * g, k);
        let bound = ideal(h100(), work.flop(), work.bytes()).time;
        prop_assert!(same(decode(h100(), &decoding, &work, Residency::Memory).time, bound));
        let corner = f64::INFINITY;
        let filling = PrefillConstants { floor: none, block: none, tile: 1.0, compute: all, memory: all, corner, ..filling() };
        let work = prompt(b, s, k * g, k);
        let bound = ideal(one, work.flop(), work.bytes()).time;
        prop_assert!(same(prefill(one, &filling, &work, Residency::Memory).time, bound));
        // Whole rows per expert and no cache: both products and the traffic between them take their ideal times.
        let chip = Silicon { l2: Bytes::ZERO, ..chip };
        let layer = Layer { top_k: 1, ..layer };
        let tokens = Tokens::new((each * layer.experts) as f64);
        let call = Call { layer, format: MoeFormat::Bf16, tokens, draw: Draw::Even };
        let w = moe::work(chip, &perfect_moe(), &call);
        let bound = ideal(chip, w.flop, w.weights).time + ideal(chip, Flop::ZERO, w.activations).time;
        prop_assert!(same(moe::time(chip, &perfect_moe(), &call).time, bound));
    }
}
