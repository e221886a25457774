use super::*;
use crate::close;
use crate::operator::ideal;
use proptest::prelude::*;
use rackmath_units::{ByteRate, FlopRate, Fraction};

fn qwen(ranks: u64) -> Layer {
    Layer { hidden: 4096, inter: 1536, gated: true, experts: 128, top_k: 8, ranks }
}

fn h100(format: MoeFormat) -> Silicon {
    Silicon::of(&rackmath_catalog::embedded().chip("h100-sxm").unwrap(), format.math()).unwrap()
}

fn kernel(family: &str, format: MoeFormat) -> MoeKernel {
    rackmath_catalog::embedded().moe_kernels().unwrap().find(family, format, "hopper").unwrap().kernel
}

/// No floor, no padding, no lost wave, full rates, a hard corner.
fn perfect() -> MoeKernel {
    MoeKernel {
        launch: Seconds::ZERO,
        per_expert: Seconds::ZERO,
        compute: Fraction::ONE,
        memory: Fraction::ONE,
        activation: Fraction::ONE,
        tile: 1.0,
        tail: 0.0,
        corner: f64::INFINITY,
        ..kernel("trtllm-cutlass", MoeFormat::Bf16)
    }
}

#[test]
fn loads_by_hand() {
    // 16 tokens, 8 choices each: 128 rows, one for each expert, on 8 ranks 16 each.
    let load = Load::of(&qwen(8), Tokens::new(16.0), Draw::Even);
    assert_eq!((load.touched(), load.rows(), load.tiles(64.0)), (16.0, 16.0, 16.0));
    // 1,024 tokens: 64 rows per expert, one tile of 64 or half of one of 128.
    let load = Load::of(&qwen(1), Tokens::new(1024.0), Draw::Even);
    assert_eq!((load.touched(), load.rows(), load.tiles(64.0), load.tiles(128.0)), (128.0, 8192.0, 128.0, 128.0));
    // 16 random tokens miss (120/128)^16 = 0.3561 of the experts.
    close(Load::of(&qwen(1), Tokens::new(16.0), Draw::Random).touched(), 128.0 * (1.0 - 0.35607), 1e-4);
    // Under a power law every pair is kept and the busiest of 8 ranks has more than its share.
    let skewed = Load::of(&qwen(1), Tokens::new(4096.0), Draw::PowerLaw(1.01));
    close(skewed.rows(), 32768.0, 1e-9);
    let busiest = Load::of(&qwen(8), Tokens::new(4096.0), Draw::PowerLaw(1.01)).rows();
    assert!((1.3..2.0).contains(&(busiest / 4096.0)), "{busiest}");
}

#[test]
fn a_power_law_touches_as_many_experts_as_measured() {
    // H100 BF16, Qwen3-235B, 16 tokens: 867 us against 1,562 for all 128 experts, so about 71 are read.
    let touched = Load::of(&qwen(1), Tokens::new(16.0), Draw::PowerLaw(1.01)).touched();
    assert!((64.0..76.0).contains(&touched), "{touched}");
}

#[test]
fn weights_of_all_experts_from_memory() {
    // 128 experts of 3 x 4096 x 1536 weights of 2 bytes: 4.83 GB, 1.44 ms at 3.35 TB/s.
    let call = Call { layer: qwen(1), format: MoeFormat::Bf16, tokens: Tokens::new(64.0), draw: Draw::Even };
    let silicon = h100(call.format);
    let w = work(silicon, &perfect(), &call);
    close(w.weights.as_gb(), 4.8318, 1e-4);
    close(w.flop.get(), 2.0 * 512.0 * 3.0 * 4096.0 * 1536.0, 1e-12);
    // The measured kernel needs 1,580 us (aiconfigurator, TensorRT-LLM 1.3.0rc20).
    let t = time(silicon, &kernel("trtllm-cutlass", call.format), &call);
    close(t.time.get() * 1e6, 1580.0, 0.1);
    assert!(t.memory > t.compute);
}

#[test]
fn a_full_cache_makes_no_difference_and_a_roomy_one_does() {
    let call = Call { layer: qwen(32), format: MoeFormat::Fp8, tokens: Tokens::new(16.0), draw: Draw::Even };
    let at = |l2: f64| {
        let silicon = Silicon { l2: Bytes::mb(l2), ..h100(call.format) };
        time(silicon, &kernel("trtllm-cutlass", call.format), &call).time
    };
    // 4 experts of 18.9 MB.
    assert!(at(50.0) > at(100.0) && at(50.0) <= at(0.0));
}

fn any_silicon() -> impl Strategy<Value = Silicon> {
    (50.0f64..10_000.0, 0.3f64..20.0, 40.0f64..200.0, 0.0f64..150.0).prop_map(|(tflop, tb, cores, mb)| Silicon {
        peak: FlopRate::tflop_per_s(tflop),
        bandwidth: ByteRate::tb_per_s(tb),
        cores,
        l2: Bytes::mb(mb),
    })
}

fn any_layer() -> impl Strategy<Value = Layer> {
    (1u64..64, 1u64..64, any::<bool>(), 0u32..7, 1u64..9, 1u64..9).prop_map(|(h, i, gated, each, top_k, ranks)| {
        let experts = ranks * (1 << each).max(8);
        Layer { hidden: 128 * h, inter: 96 * i, gated, experts, top_k, ranks }
    })
}

fn any_draw() -> impl Strategy<Value = Draw> {
    prop_oneof![Just(Draw::Even), Just(Draw::Random), (0.5f64..1.5).prop_map(Draw::PowerLaw)]
}

fn any_kernel() -> impl Strategy<Value = (MoeKernel, MoeFormat)> {
    let kernels = rackmath_catalog::embedded().moe_kernels().unwrap();
    let all: Vec<(MoeKernel, MoeFormat)> = kernels.families.values().flatten().map(|f| (f.kernel, f.format)).collect();
    proptest::sample::select(all)
}

proptest! {
    #[test]
    fn never_faster_than_the_ideal(
        silicon in any_silicon(), layer in any_layer(), (kernel, format) in any_kernel(), t in 1u64..20_000, draw in any_draw()
    ) {
        let call = Call { layer, format, tokens: Tokens::new(t as f64), draw };
        let w = work(silicon, &kernel, &call);
        let timing = time(silicon, &kernel, &call);
        prop_assert!(timing.time.get() >= ideal(silicon, w.flop, w.cold).time.get() * (1.0 - 1e-12));
        prop_assert!(timing.time >= timing.floor);
    }

    #[test]
    fn more_work_never_takes_less(
        silicon in any_silicon(), layer in any_layer(), (kernel, format) in any_kernel(), t in 1u64..20_000,
        more in 1u64..1000, random in any::<bool>()
    ) {
        let draw = if random { Draw::Random } else { Draw::Even };
        let at = |layer, t: u64| time(silicon, &kernel, &Call { layer, format, tokens: Tokens::new(t as f64), draw }).time;
        let base = at(layer, t) * (1.0 - 1e-9);
        let larger = [
            at(layer, t + more),
            at(Layer { hidden: layer.hidden + more, ..layer }, t),
            at(Layer { inter: layer.inter + more, ..layer }, t),
            at(Layer { top_k: layer.experts.min(layer.top_k + 1), ..layer }, t),
            at(Layer { gated: true, ..layer }, t),
        ];
        prop_assert!(larger.iter().all(|time| *time >= base), "{larger:?} below {base}");
    }

    #[test]
    fn a_faster_chip_is_never_slower(
        silicon in any_silicon(), layer in any_layer(), (kernel, format) in any_kernel(), t in 1u64..20_000,
        draw in any_draw(), factor in 1.0f64..4.0
    ) {
        let at = |s| time(s, &kernel, &Call { layer, format, tokens: Tokens::new(t as f64), draw }).time;
        let base = at(silicon) * (1.0 + 1e-9);
        let compute = at(Silicon { peak: silicon.peak * factor, ..silicon });
        let memory = at(Silicon { bandwidth: silicon.bandwidth * factor, ..silicon });
        prop_assert!(compute <= base && memory <= base);
    }

    #[test]
    fn a_perfect_kernel_is_the_ideal_of_its_steps(silicon in any_silicon(), layer in any_layer(), each in 1u64..64) {
        // Whole rows per expert and no cache: both products and the traffic between them take their ideal times.
        let silicon = Silicon { l2: Bytes::ZERO, ..silicon };
        let layer = Layer { top_k: 1, ..layer };
        let tokens = Tokens::new((each * layer.experts) as f64);
        let call = Call { layer, format: MoeFormat::Bf16, tokens, draw: Draw::Even };
        let w = work(silicon, &perfect(), &call);
        let timing = time(silicon, &perfect(), &call);
        let products = ideal(silicon, w.flop, w.weights).time;
        let expected = products + ideal(silicon, Flop::ZERO, w.activations).time;
        prop_assert!((timing.time / expected - 1.0).abs() < 1e-9);
    }
}
