use super::machine::Machine;
use super::memory::{in_flight, stage_memory};
use super::mfu::{Again, Convention, flop_per_token};
use super::search::{Searcher, Space};
use super::step::{Prepared, Row, StepTime, step};
use super::work::{Kept, Slice, block};
use super::{Cut, Job, Offload, Recompute, Sharding};
use crate::pipeline::{Passes, Plan, Schedule, Shape as PlanShape, Stage as PlanStage};
use proptest::prelude::*;
use rackmath_spec::TrainingFormat;
use rackmath_spec::layout::Degrees;
use rackmath_spec::model::Shape;
use rackmath_units::{ByteRate, Bytes, Cancel, Seconds};
use strum::VariantArray as _;

/// A cut of so many degrees.
fn cut(tp: u64, pp: u64, dp: u64, micro_batch: u64) -> Cut {
    let degrees = Degrees { tp, pp, dp, ..Cut::default().degrees };
    Cut { degrees, micro_batch, ..Cut::default() }
}

fn job(shape: &Shape, global_batch: u64) -> Job<'_> {
    Job { shape, sequence: 2048, global_batch, format: TrainingFormat::Bf16 }
}

/// What a block of a GPT keeps of a micro-batch, its norms cut along the sequence or not.
fn kept(shape: &Shape, tp: u64, micro_batch: u64, sequence_parallel: bool) -> Kept {
    let cut = cut(tp, 1, 1, micro_batch);
    let cut = Cut { degrees: Degrees { sequence_parallel, ..cut.degrees }, ..cut };
    let slice = Slice { cut: &cut, sequence: 2048.0, flash: false, dropout: true };
    block(shape, &shape.runs[0].block, &slice).kept
}

/// Sets a program on a machine up and hands it to a test.
fn with_machine<T>(stack: &str, system: &str, network: &str, test: impl FnOnce(&Machine<'_>) -> T) -> T {
    let catalog = rackmath_catalog::embedded();
    let (stack, system) = (catalog.training_stack(stack).unwrap(), catalog.system(system).unwrap());
    let (kernels, network) = (catalog.gemm_kernels().unwrap(), catalog.network(network).unwrap());
    test(&Machine::new(&system, &stack, &kernels, &network, TrainingFormat::Bf16).unwrap())
}

#[test]
fn a_layer_keeps_what_korthikanti_counts() {
    // arXiv 2205.05198, equations 1, 2 and 4: sbh(34 + 5as/h), sbh(10 + 24/t + 5as/ht), sbh/t (34 + 5as/h).
    let shape = Shape::gpt(48, 6144, 64);
    let (s, b, h, a, t) = (2048.0, 4.0, 6144.0, 64.0, 8.0);
    let scores = 5.0 * a * s / h;
    let kept = |tp, sp| kept(&shape, tp, 4, sp);
    assert!((kept(1, false).all / (s * b * h * (34.0 + scores)) - 1.0).abs() < 1e-12);
    assert!((kept(8, false).all / (s * b * h * (10.0 + 24.0 / t + scores / t)) - 1.0).abs() < 1e-12);
    assert!((kept(8, true).all / (s * b * h * (34.0 + scores) / t) - 1.0).abs() < 1e-12);
    // Figure 1: 59.25 GiB of activations for the 22B model with 48 layers, 9.5625 with both techniques.
    let gib = 1_073_741_824.0;
    assert!((48.0 * kept(8, false).all / gib - 59.25).abs() < 0.01);
    let both = kept(8, true);
    assert!((48.0 * (both.all - both.scores) / gib - 9.5625).abs() < 0.01);
}

#[test]
fn flop_of_a_step_are_megatrons() {
    // arXiv 2104.04473 section 5.1: F = 96 B s l h^2 (1 + s/6h + V/16lh) with every layer run again.
    let shape = Shape::gpt(96, 12_288, 96);
    let (s, l, h, v) = (2048.0, 96.0, 12_288.0, 51_200.0);
    let hardware = flop_per_token(&shape, 2048, Convention::HARDWARE, Again::Layers);
    let closed = 96.0 * l * h * h * (1.0 + s / (6.0 * h) + v / (16.0 * l * h));
    assert!((hardware / closed - 1.0).abs() < 1e-12, "{hardware} {closed}");
    let model = flop_per_token(&shape, 2048, Convention::FULL, Again::Layers);
    let closed = 72.0 * l * h * h * (1.0 + s / (6.0 * h) + v / (12.0 * l * h));
    assert!((model / closed - 1.0).abs() < 1e-12);
}

#[test]
fn keys_counted_like_queries_are_an_over_count() {
    let catalog = rackmath_catalog::embedded();
    let model = catalog.model("llama-3.1-70b").unwrap();
    let shape = model.shape().unwrap();
    let of = |c| flop_per_token(shape, 8192, c, Again::Nothing);
    assert!(of(Convention::OVER_COUNT) > of(Convention::FULL));
    assert!(of(Convention::FULL) > of(Convention::CAUSAL));
    assert!(of(Convention::CAUSAL) > of(Convention::SIX_N_D_MULTIPLIED));
    // 6 N D with N = 70.55 billion parameters.
    assert!((of(Convention::SIX_N_D) / (6.0 * 70.55e9) - 1.0).abs() < 0.01, "{}", of(Convention::SIX_N_D));
}

#[test]
fn published_steps_are_met() {
    // Korthikanti 2022 Table 5, selective recompute with sequence parallel: 175B in 13.75 s, 1T in 71.49 s.
    with_machine("megatron-2022", "512xa100-80gb", "nvlink3", |machine| {
        for (shape, (pp, virtual_stages), batch, seconds) in
            [(Shape::gpt(96, 12_288, 96), (8, 3), 64, 13.75), (Shape::gpt(128, 25_600, 160), (64, 1), 512, 71.49)]
        {
            let degrees = Degrees { virtual_stages, ..cut(8, pp, 1, 1).degrees };
            let (sharding, recompute) = (Sharding::None, Recompute::Selective);
            let time = timed(machine, &shape, &Cut { degrees, sharding, recompute, ..Cut::default() }, batch).total;
            assert!((time / seconds - 1.0).abs() < 0.04, "{time} for {seconds}");
        }
    });
}

#[test]
fn in_flight_agrees_with_the_clock() {
    let whole = PlanStage {
        passes: Passes { forward: Seconds::s(1.0), input_grad: Seconds::s(1.0), weight_grad: Seconds::s(1.0) },
        activation: Bytes::b(1.0),
    };
    for (schedule, p, m, v) in [
        (Schedule::GPipe, 4, 8, 1),
        (Schedule::OneFOneB, 4, 8, 1),
        (Schedule::Interleaved, 4, 8, 2),
        (Schedule::ZbH1, 4, 8, 1),
    ] {
        let run = Plan::even(schedule, PlanShape { devices: p, micro_batches: m, chunks: v }, whole).run().unwrap();
        let degrees = Degrees { virtual_stages: v as u64, ..cut(1, p as u64, 1, 1).degrees };
        let cut = Cut { degrees, schedule, ..Cut::default() };
        let held = in_flight(&cut, 0, m as u64);
        assert!((held - run.devices[0].peak_micro_batches).abs() < 1e-9, "{schedule}: {held} {:?}", run.devices[0]);
    }
}

/// Memory of the fullest stage.
fn fullest(machine: &Machine<'_>, shape: &Shape, cut: &Cut, batch: u64) -> f64 {
    let prepared = Prepared::new(machine, &job(shape, batch), cut);
    let stages = prepared.stages(cut.pp, cut.spread);
    let recipe = &machine.stack.memory;
    let held = stages.iter().map(|s| stage_memory(&prepared, recipe, s, cut, cut.micro_batches(batch).unwrap_or(1)));
    held.map(|m| m.total().get()).fold(0.0, f64::max)
}

fn timed(machine: &Machine<'_>, shape: &Shape, cut: &Cut, batch: u64) -> StepTime {
    let prepared = Prepared::new(machine, &job(shape, batch), cut);
    let row = Row::new(&prepared.stages(cut.pp, cut.spread), cut.recompute).unwrap();
    step(machine, &prepared, &row, cut, cut.micro_batches(batch).unwrap())
}

#[test]
fn reversible_activations_are_flat_in_depth_and_cost_a_third_more() {
    with_machine("megatron-core", "512xh100-sxm", "nvlink4", |machine| {
        let kept = |layers: u64, recompute| {
            let shape = Shape::gpt(layers, 4096, 32);
            let cut = Cut { recompute, ..Cut::default() };
            let prepared = Prepared::new(machine, &job(&shape, 1), &cut);
            stage_memory(&prepared, &machine.stack.memory, &prepared.stages(1, cut.spread)[0], &cut, 1).activations
        };
        assert_eq!(kept(12, Recompute::Reversible), kept(96, Recompute::Reversible));
        // Full recompute keeps 2 s b h = 16.8 MB more with every layer.
        let slope = (kept(96, Recompute::Full) - kept(12, Recompute::Full)) / 84.0;
        assert!((slope / (2.0 * 2048.0 * 4096.0 * (1.0 + machine.stack.memory.fragmentation)) - 1.0).abs() < 1e-9);
        // Of the layers' own time (head and update apart) a third more, or a little less where backward takes over twice forward.
        let shape = Shape::gpt(24, 4096, 32);
        let cut = Cut { recompute: Recompute::Reversible, micro_batch: 4, ..Cut::default() };
        let t = timed(machine, &shape, &cut, 4);
        let layers = t.products + t.attention + t.elementwise + t.host;
        assert!((0.27..0.36).contains(&(t.recompute / layers)), "{}", t.recompute / layers);
    });
}

#[test]
fn optimizer_states_cross_the_link_once_each_way() {
    // 12 bytes for each of the parameters of this chip over 63 GB/s, less the update that runs meanwhile.
    with_machine("megatron-core", "8xh100-sxm", "nvlink4", |machine| {
        let shape = Shape::gpt(24, 4096, 32);
        let t =
            timed(machine, &shape, &Cut { offload: Offload::Optimizer, sharding: Sharding::None, ..Cut::default() }, 4);
        // 12 l h^2 in the layers, and the table of words.
        let n = 12.0 * 24.0 * 4096.0 * 4096.0 + 51_200.0 * 4096.0;
        let link = machine.stack.memory.optimizer_bytes * n / 63e9;
        assert!(((t.offload + t.update) / link - 1.0).abs() < 0.01, "{} {link}", t.offload + t.update);
    });
}

#[test]
fn the_wide_space_contains_the_usual_one_and_never_does_worse() {
    let shape = Shape::gpt(24, 4096, 32);
    with_machine("megatron-core", "64xh100-sxm", "nvlink4", |machine| {
        let job = job(&shape, 64);
        for capacity in [12e9, 30e9] {
            let usual = Space::of(&shape, 64, machine.domain, 64, capacity);
            let wide = usual.clone().widened(machine, 2048);
            let a = Searcher::new(machine, &job, &usual).search(1, &Cancel::never()).unwrap();
            let b = Searcher::new(machine, &job, &wide).search(1, &Cancel::never()).unwrap();
            let best = |f: &super::search::Found| f.best.first().map_or(f64::INFINITY, |c| c.step.total);
            assert!(b.evaluated > a.evaluated && b.feasible >= a.feasible && best(&b) <= best(&a));
            let seen = |pick: &dyn Fn(&Cut) -> bool| {
                let mut any = false;
                Searcher::new(machine, &job, &wide).each(&Cancel::never(), |c| any |= pick(&c.cut)).unwrap();
                any
            };
            assert!(seen(&|c| c.cp > 1) && seen(&|c| c.offload == Offload::Both));
            for &schedule in Schedule::ALL {
                assert!(seen(&|c| c.schedule == schedule), "{schedule}");
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn dividing_more_never_holds_more(
        tp in 0_u32..4, pp in 0_u32..3, dp in 0_u32..5, b in 0_u32..3, stack in prop::sample::select(vec!["megatron-2022", "megatron-core"]),
    ) {
        let shape = Shape::gpt(24, 4096, 32);
        with_machine(stack, "512xa100-80gb", "nvlink3", |machine| {
            let cut = cut(1 << tp, 1 << pp, 1 << dp, 1 << b);
            let at = |sharding, recompute| fullest(machine, &shape, &Cut { sharding, recompute, ..cut }, 1024);
            for pair in Sharding::VARIANTS[..3].windows(2) {
                prop_assert!(at(pair[1], Recompute::None) <= at(pair[0], Recompute::None));
            }
            // The full kind gathers two layers while it works: it never holds more once there are copies enough for them.
            if dp >= 3 {
                prop_assert!(at(Sharding::Full, Recompute::None) <= at(Sharding::Gradients, Recompute::None));
            }
            for pair in Recompute::VARIANTS.windows(2) {
                prop_assert!(at(Sharding::Optimizer, pair[1]) <= at(Sharding::Optimizer, pair[0]) * (1.0 + 1e-12));
            }
            Ok(())
        })?;
    }

    #[test]
    fn offloading_never_holds_more_and_never_takes_less_time(
        tp in 0_u32..4, pp in 0_u32..4, dp in 0_u32..4, b in 0_u32..3, r in 0_usize..4, rate in 1.0_f64..1000.0,
    ) {
        let shape = Shape::gpt(24, 4096, 32);
        with_machine("megatron-core", "512xh100-sxm", "nvlink4", |machine| {
            let linked = |gb_per_s: f64| {
                let mut machine = machine.clone();
                machine.host = Some(ByteRate::gb_per_s(gb_per_s));
                machine
            };
            let machine = &linked(rate);
            let cut = Cut { recompute: Recompute::VARIANTS[r], ..cut(1 << tp, 1 << pp, 1 << dp, 1 << b) };
            let at = |offload| {
                let cut = Cut { offload, ..cut };
                (timed(machine, &shape, &cut, 256).total, fullest(machine, &shape, &cut, 256))
            };
            let (none, both) = (at(Offload::None), at(Offload::Both));
            for some in [at(Offload::Optimizer), at(Offload::Activations)] {
                prop_assert!(none.0 <= some.0 && some.0 <= both.0 * (1.0 + 1e-12));
                prop_assert!(none.1 >= some.1 && some.1 >= both.1);
            }
            // Over a link that is never waited for it is free.
            let fast = linked(1e9);
            let free = timed(&fast, &shape, &Cut { offload: Offload::Both, ..cut }, 256);
            prop_assert!(free.total <= none.0 * (1.0 + 1e-6) && free.offload < 1e-6);
            Ok(())
        })?;
    }

    #[test]
    fn reversible_blocks_keep_no_more_than_selective_recompute(
        tp in 0_u32..4, pp in 0_u32..4, b in 0_u32..3, stack in prop::sample::select(vec!["megatron-2022", "megatron-core"]),
    ) {
        let shape = Shape::gpt(24, 4096, 32);
        with_machine(stack, "512xa100-80gb", "nvlink3", |machine| {
            let cut = cut(1 << tp, 1 << pp, 1, 1 << b);
            let at = |recompute| Cut { recompute, ..cut };
            let (reversible, selective) = (at(Recompute::Reversible), at(Recompute::Selective));
            prop_assert!(fullest(machine, &shape, &reversible, 256) <= fullest(machine, &shape, &selective, 256));
            // Inverting costs what running from the input costs.
            prop_assert_eq!(timed(machine, &shape, &reversible, 256), timed(machine, &shape, &at(Recompute::Full), 256));
            Ok(())
        })?;
    }

    #[test]
    fn no_step_beats_its_products_at_full_peak(tp in 0_u32..4, pp in 0_u32..3, dp in 0_u32..4, b in 0_u32..3) {
        let shape = Shape::gpt(24, 4096, 32);
        with_machine("megatron-core", "512xh100-sxm", "nvlink4", |machine| {
            let cut = cut(1 << tp, 1 << pp, 1 << dp, 1 << b);
            let time = timed(machine, &shape, &cut, 256).total;
            let flop = flop_per_token(&shape, 2048, Convention::CAUSAL, Again::Nothing) * 256.0 * 2048.0;
            prop_assert!(time >= flop / (machine.peak() * cut.chips() as f64));
            Ok(())
        })?;
    }
}

#[test]
fn search_equals_brute_force_and_more_memory_never_hurts() {
    let shape = Shape::gpt(24, 4096, 32);
    with_machine("megatron-core", "64xh100-sxm", "nvlink4", |machine| {
        let job = job(&shape, 256);
        let mut last = (0, f64::INFINITY);
        for capacity in [20e9, 40e9, 80e9, 160e9] {
            let space = Space::of(&shape, 64, machine.domain, 256, capacity);
            let found = Searcher::new(machine, &job, &space).search(5, &Cancel::never()).unwrap();
            let mut best = f64::INFINITY;
            let mut seen = 0;
            for &tp in &space.tp {
                for &pp in &space.pp {
                    for &micro_batch in &space.micro_batch {
                        let most = 64 / (tp * pp);
                        let Some(dp) = (1..=most).rev().find(|d| (256 / micro_batch).is_multiple_of(*d)) else {
                            continue;
                        };
                        for &sharding in &space.sharding {
                            if dp == 1 && sharding != space.sharding[0] {
                                continue;
                            }
                            for &recompute in &space.recompute {
                                for &v in &space.virtual_stages {
                                    let schedule = if v > 1 { Schedule::Interleaved } else { Schedule::OneFOneB };
                                    let cut = cut(tp, pp, dp, micro_batch);
                                    let degrees =
                                        Degrees { virtual_stages: v, sequence_parallel: tp > 1, ..cut.degrees };
                                    let cut = Cut { degrees, schedule, sharding, recompute, ..cut };
                                    let m = cut.micro_batches(256).unwrap();
                                    if v > 1 && (pp == 1 || !(24 / pp).is_multiple_of(v) || !m.is_multiple_of(pp)) {
                                        continue;
                                    }
                                    seen += 1;
                                    if fullest(machine, &shape, &cut, 256) <= capacity {
                                        best = best.min(timed(machine, &shape, &cut, 256).total);
                                    }
                                }
                            }
                        }
                    }
                }
            }
            assert_eq!(found.evaluated, seen);
            let fastest = found.best.first().map_or(f64::INFINITY, |c| c.step.total);
            assert_eq!(fastest, best);
            assert!(found.feasible >= last.0 && fastest <= last.1);
            // Nothing on the frontier is beaten by anything else on it.
            for a in &found.frontier {
                let beats = |b: &&super::search::Candidate| {
                    b.step.total < a.step.total && b.memory < a.memory && b.chip_seconds() < a.chip_seconds()
                };
                assert!(found.frontier.iter().find(beats).is_none());
            }
            last = (found.feasible, fastest);
        }
    });
}
