//! Worked numbers of a step and of what it holds, their laws, and the search against brute force.

use super::machine::Machine;
use super::memory::{in_flight, stage_memory};
use super::mfu::{Convention, flop_per_token};
use super::search::{Candidate, Found, KEPT, Searcher, Space};
use super::step::{Part, Prepared, Row, StepTime, step};
use super::work::{Slice, block};
use super::{Cut, Job, Offload, Recompute, Sharding, legal};
use crate::close;
use crate::pipeline::{Passes, Plan, Schedule, Shape as PlanShape, Stage as PlanStage};
use proptest::prelude::*;
use rackmath_spec::TrainingFormat;
use rackmath_spec::layout::Degrees;
use rackmath_spec::model::{Ffn, Mixer, Shape};
use rackmath_units::{ByteRate, Bytes, Cancel, Seconds};
use strum::VariantArray as _;

fn cut(tp: u64, pp: u64, dp: u64, micro_batch: u64) -> Cut {
    let degrees = Degrees { tp, pp, dp, ..Cut::default().degrees };
    Cut { degrees, micro_batch, ..Cut::default() }
}

fn job(shape: &Shape, global_batch: u64) -> Job<'_> {
    Job { shape, sequence: 2048, global_batch, format: TrainingFormat::Bf16 }
}

/// A model small enough to search in a test.
fn small() -> Shape {
    Shape::gpt(24, 4096, 32)
}

/// Sets a program on a machine up and hands it to a test.
fn with_machine<T>(stack: &str, system: &str, test: impl FnOnce(&Machine<'_>) -> T) -> T {
    let catalog = rackmath_catalog::embedded();
    let (stack, system) = (catalog.training_stack(stack).unwrap(), catalog.system(system).unwrap());
    let (kernels, network) = (catalog.gemm_kernels().unwrap(), catalog.network(&system.chip.link.kind).unwrap());
    test(&Machine::new(&system, &stack, &kernels, &network, TrainingFormat::Bf16).unwrap())
}

fn fullest(machine: &Machine<'_>, shape: &Shape, cut: &Cut, batch: u64) -> f64 {
    let prepared = Prepared::new(machine, &job(shape, batch), cut);
    let (stages, m) = (prepared.stages(cut.pp, cut.spread), cut.micro_batches(batch).unwrap_or(1));
    let held = stages.iter().map(|s| stage_memory(&prepared, &machine.stack.memory, s, cut, m));
    held.map(|m| m.total().get()).fold(0.0, f64::max)
}

fn timed(machine: &Machine<'_>, shape: &Shape, cut: &Cut, batch: u64) -> StepTime {
    let prepared = Prepared::new(machine, &job(shape, batch), cut);
    let row = Row::new(&prepared.stages(cut.pp, cut.spread), cut.recompute).unwrap();
    step(machine, &prepared, &row, cut, cut.micro_batches(batch).unwrap())
}

#[test]
fn a_layer_keeps_what_korthikanti_counts() {
    // arXiv 2205.05198, equations 1, 2 and 4: sbh(34 + 5as/h), sbh(10 + 24/t + 5as/ht), sbh/t (34 + 5as/h).
    let shape = Shape::gpt(48, 6144, 64);
    let (s, b, h, a, t) = (2048.0, 4.0, 6144.0, 64.0, 8.0);
    let scores = 5.0 * a * s / h;
    let kept = |tp, sequence_parallel| {
        let cut = cut(tp, 1, 1, 4);
        let cut = Cut { degrees: Degrees { sequence_parallel, ..cut.degrees }, ..cut };
        let slice = Slice { cut: &cut, sequence: 2048.0, flash: false, dropout: true, stored: 2.0, fused: false };
        block(&shape, &shape.runs[0].block, &slice).kept
    };
    close(kept(1, false).all, s * b * h * (34.0 + scores), 1e-12);
    close(kept(8, false).all, s * b * h * (10.0 + 24.0 / t + scores / t), 1e-12);
    close(kept(8, true).all, s * b * h * (34.0 + scores) / t, 1e-12);
    // Figure 1: 59.25 GiB of activations for the 22B model with 48 layers, 9.5625 with both techniques.
    let gib = 1_073_741_824.0;
    assert!((48.0 * kept(8, false).all / gib - 59.25).abs() < 0.01);
    let both = kept(8, true);
    assert!((48.0 * (both.all - both.scores) / gib - 9.5625).abs() < 0.01);
}

#[test]
fn narrow_products_cast_what_they_read() {
    // A GPT layer: inputs h of queries, keys and values, h of the output, h and 4h of the two inner products; gradients of
    // 3h, h, 4h and h.
    let shape = Shape::gpt(1, 1024, 8);
    let cut = cut(1, 1, 1, 2);
    let slice = Slice { cut: &cut, sequence: 512.0, flash: true, dropout: false, stored: 2.0, fused: true };
    let work = block(&shape, &shape.runs[0].block, &slice);
    let th = 2.0 * 512.0 * 1024.0;
    assert_eq!(work.cast, (7.0 * th, 9.0 * th));
    assert_eq!(work.state_bytes, 0.0);
    // Over two ranks what is cut is halved: 4h + h / 2 is 3h whole and 5h cut; backward 2h whole, 7h cut.
    let cut = Cut { degrees: Degrees { tp: 2, ..cut.degrees }, ..cut };
    let half = block(&shape, &shape.runs[0].block, &Slice { cut: &cut, ..slice }).cast;
    assert_eq!(half, (2.0 * th + 5.0 * th / 2.0, 2.0 * th + 7.0 * th / 2.0));
    // 16 bits need no cast; a scale of the whole tensor is one more reading than scales of blocks.
    let bytes = [TrainingFormat::Bf16, TrainingFormat::MxFp8, TrainingFormat::Fp8].map(TrainingFormat::cast_bytes);
    assert_eq!(bytes, [0.0, 4.0625, 6.0]);
}

#[test]
fn a_fused_kernel_moves_less_between_gated_experts_alone() {
    let catalog = rackmath_catalog::embedded();
    for (model, gated) in [("qwen3-30b-a3b", true), ("nemotron-3-nano", false)] {
        let model = catalog.model(model).unwrap();
        let shape = model.shape().unwrap();
        let run = shape.runs.iter().find(|r| matches!(r.block.ffn, Ffn::Moe(_))).unwrap();
        let cut = cut(1, 1, 1, 1);
        let of = |fused| {
            let slice = Slice { cut: &cut, sequence: 4096.0, flash: true, dropout: false, stored: 2.0, fused };
            block(shape, &run.block, &slice)
        };
        let (apart, fused) = (of(false), of(true));
        assert_eq!(fused.inner_bytes < apart.inner_bytes, gated);
        assert_eq!(fused.cast.0 < apart.cast.0 && fused.cast.1 < apart.cast.1, gated);
        assert_eq!((&fused.products, fused.kept), (&apart.products, apart.kept));
    }
}

#[test]
fn a_recurrence_hands_on_its_state_once_a_chunk() {
    // Nemotron 3 Nano: 64 heads of 64 with states of 128, in 32 bits, every 128 tokens: 16,384 bytes a token.
    let catalog = rackmath_catalog::embedded();
    let model = catalog.model("nemotron-3-nano").unwrap();
    let shape = model.shape().unwrap();
    let run = shape.runs.iter().find(|r| matches!(r.block.mixer, Mixer::Linear(_))).unwrap();
    let cut = cut(1, 1, 1, 1);
    let slice = Slice { cut: &cut, sequence: 4096.0, flash: true, dropout: false, stored: 2.0, fused: false };
    let work = block(shape, &run.block, &slice);
    assert_eq!(work.state_bytes, 4096.0 * 16_384.0);
    // Half of the products inside a chunk is masked: 128 (8 x 128 + 64 x 64) / 2, and two with the state, 2 x 2 x 64 x 64 x 128.
    assert_eq!(work.score_flop, 2.0 * 4096.0 * (128.0 * (1024.0 + 4096.0) + 4.0 * 64.0 * 64.0 * 128.0));
}

#[test]
fn published_steps_are_met() {
    // Korthikanti 2022 Table 5, selective recompute with sequence parallel: 175B in 13.75 s, 1T in 71.49 s.
    with_machine("megatron-2022", "512xa100-80gb", |machine| {
        for (shape, (pp, virtual_stages), batch, seconds) in
            [(Shape::gpt(96, 12_288, 96), (8, 3), 64, 13.75), (Shape::gpt(128, 25_600, 160), (64, 1), 512, 71.49)]
        {
            let degrees = Degrees { virtual_stages, ..cut(8, pp, 1, 1).degrees };
            let (sharding, recompute) = (Sharding::None, Recompute::Selective);
            let cut = Cut { degrees, sharding, recompute, ..Cut::default() };
            close(timed(machine, &shape, &cut, batch).total, seconds, 0.04);
        }
    });
}

#[test]
fn in_flight_agrees_with_the_clock() {
    let second = Seconds::s(1.0);
    let passes = Passes { forward: second, input_grad: second, weight_grad: second };
    let whole = PlanStage { passes, activation: Bytes::b(1.0) };
    for (schedule, v) in
        [(Schedule::GPipe, 1), (Schedule::OneFOneB, 1), (Schedule::Interleaved, 2), (Schedule::ZbH1, 1)]
    {
        let shape = PlanShape { devices: 4, micro_batches: 8, chunks: v };
        let run = Plan::even(schedule, shape, whole).run().unwrap();
        let degrees = Degrees { virtual_stages: v as u64, ..cut(1, 4, 1, 1).degrees };
        let held = in_flight(&Cut { degrees, schedule, ..Cut::default() }, 0, 8);
        assert!((held - run.devices[0].peak_micro_batches).abs() < 1e-9, "{schedule}: {held} {:?}", run.devices[0]);
    }
}

#[test]
fn reversible_activations_are_flat_in_depth_and_cost_a_third_more() {
    with_machine("megatron-core", "512xh100-sxm", |machine| {
        let kept = |layers: u64, recompute| {
            let shape = Shape::gpt(layers, 4096, 32);
            let cut = Cut { recompute, ..Cut::default() };
            let prepared = Prepared::new(machine, &job(&shape, 1), &cut);
            stage_memory(&prepared, &machine.stack.memory, &prepared.stages(1, cut.spread)[0], &cut, 1).activation_bytes
        };
        assert_eq!(kept(12, Recompute::Reversible), kept(96, Recompute::Reversible));
        // Full recompute keeps 2 s b h = 16.8 MB more with every layer.
        let slope = (kept(96, Recompute::Full) - kept(12, Recompute::Full)) / 84.0;
        close(slope, 2.0 * 2048.0 * 4096.0 * (1.0 + machine.stack.memory.fragmentation), 1e-9);
        // Of the layers' own time (head and update apart) a third more, or a little less where backward takes over twice forward.
        let cut = Cut { recompute: Recompute::Reversible, micro_batch: 4, ..Cut::default() };
        let t = timed(machine, &small(), &cut, 4);
        let layers: f64 =
            [Part::Products, Part::Attention, Part::Elementwise, Part::Host].map(|p| t.of(p)).iter().sum();
        assert!((0.27..0.36).contains(&(t.of(Part::Again) / layers)), "{t:?}");
    });
}

#[test]
fn optimizer_states_cross_the_link_once_each_way() {
    // 12 bytes for each of the parameters of this chip over 63 GB/s, less the update that runs meanwhile.
    with_machine("megatron-core", "8xh100-sxm", |machine| {
        let cut = Cut { offload: Offload::Optimizer, sharding: Sharding::None, ..Cut::default() };
        let t = timed(machine, &small(), &cut, 4);
        // 12 l h^2 in the layers, and the table of words.
        let n = 12.0 * 24.0 * 4096.0 * 4096.0 + 51_200.0 * 4096.0;
        close(t.of(Part::Offload) + t.of(Part::Update), machine.stack.memory.optimizer_bytes * n / 63e9, 0.01);
    });
}

#[test]
fn the_wide_space_contains_the_usual_one_and_never_does_worse() {
    let shape = small();
    with_machine("megatron-core", "64xh100-sxm", |machine| {
        let job = job(&shape, 64);
        for capacity in [12e9, 30e9] {
            let mut usual = Space::of(&job, 64, capacity);
            usual.micro_batch.retain(|b| *b <= 2);
            let wide = usual.clone().widened(machine);
            let never = Cancel::never();
            let [a, b] = [&usual, &wide].map(|s| {
                let searcher = Searcher::new(machine, &job, s, &never).unwrap();
                searcher.search(1, &never).unwrap()
            });
            let best = |f: &Found| f.best.first().map_or(f64::INFINITY, |c| c.step.total);
            assert!(b.evaluated > a.evaluated && b.feasible >= a.feasible && best(&b) <= best(&a));
            let mut seen: Vec<Schedule> = Vec::new();
            let mut both = false;
            let see = |c: Candidate| {
                both |= c.cut.cp > 1 && c.cut.offload == Offload::Both;
                if !seen.contains(&c.cut.schedule) {
                    seen.push(c.cut.schedule);
                }
            };
            Searcher::new(machine, &job, &wide, &never).unwrap().each(&never, see).unwrap();
            assert!(both && Schedule::ALL.iter().all(|wanted| seen.contains(wanted)), "{seen:?}");
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn dividing_and_computing_again_never_hold_more(
        tp in 0_u32..4, pp in 0_u32..4, dp in 0_u32..5, b in 0_u32..3, stack in prop::sample::select(vec!["megatron-2022", "megatron-core"]),
    ) {
        let shape = small();
        with_machine(stack, "512xa100-80gb", |machine| {
            let cut = cut(1 << tp, 1 << pp, 1 << dp, 1 << b);
            let at = |sharding, recompute| fullest(machine, &shape, &Cut { sharding, recompute, ..cut }, 1024);
            for pair in Sharding::VARIANTS[..3].windows(2) {
                prop_assert!(at(pair[1], Recompute::None) <= at(pair[0], Recompute::None));
            }
            // The full kind gathers two layers while it works: it never holds more once there are copies enough for them.
            if dp >= 3 {
                prop_assert!(at(Sharding::Zero3, Recompute::None) <= at(Sharding::Zero2, Recompute::None));
            }
            for pair in Recompute::VARIANTS.windows(2) {
                prop_assert!(at(Sharding::Zero1, pair[1]) <= at(Sharding::Zero1, pair[0]) * (1.0 + 1e-12));
            }
            // Inverting costs what running from the input costs.
            let at = |recompute| timed(machine, &shape, &Cut { recompute, ..cut }, 256);
            prop_assert_eq!(at(Recompute::Reversible), at(Recompute::Full));
            Ok(())
        })?;
    }

    #[test]
    fn no_step_beats_its_products_and_offloading_never_holds_more_or_takes_less_time(
        tp in 0_u32..4, pp in 0_u32..4, dp in 0_u32..4, b in 0_u32..3, r in 0_usize..4, rate in 1.0_f64..1000.0,
    ) {
        let shape = small();
        with_machine("megatron-core", "512xh100-sxm", |machine| {
            let linked = |gb_per_s: f64| {
                let mut machine = machine.clone();
                machine.host = Some(ByteRate::gb_per_s(gb_per_s));
                machine
            };
            let cut = Cut { recompute: Recompute::VARIANTS[r], ..cut(1 << tp, 1 << pp, 1 << dp, 1 << b) };
            let at = |offload| {
                let (cut, machine) = (Cut { offload, ..cut }, &linked(rate));
                (timed(machine, &shape, &cut, 256).total, fullest(machine, &shape, &cut, 256))
            };
            let (none, both) = (at(Offload::None), at(Offload::Both));
            let flop = flop_per_token(&shape, 2048, Convention::Causal, Recompute::None) * 256.0 * 2048.0;
            prop_assert!(none.0 >= flop / (machine.peak() * cut.chips() as f64), "a step at full peak is shorter");
            for some in [at(Offload::Optimizer), at(Offload::Activations)] {
                prop_assert!(none.0 <= some.0 && some.0 <= both.0 * (1.0 + 1e-12));
                prop_assert!(none.1 >= some.1 && some.1 >= both.1);
            }
            // Over a link that is never waited for it is free.
            let free = timed(&linked(1e9), &shape, &Cut { offload: Offload::Both, ..cut }, 256);
            prop_assert!(free.total <= none.0 * (1.0 + 1e-6) && free.of(Part::Offload) < 1e-6);
            Ok(())
        })?;
    }
}

/// Every cut of a space over 16 chips, by plain loops over all numbers and the rules of [`legal`].
fn every(space: &Space, job: &Job<'_>) -> Vec<Cut> {
    let mut all = Vec::new();
    let numbers = |most: u64| 1..=most;
    for (tp, cp, pp, dp) in numbers(16).flat_map(|tp| {
        numbers(16).flat_map(move |cp| numbers(16).flat_map(move |pp| numbers(16).map(move |dp| (tp, cp, pp, dp))))
    }) {
        if tp * cp * pp * dp > 16 || !space.cp.contains(&cp) {
            continue;
        }
        let choices = numbers(16).flat_map(|b| numbers(26).flat_map(move |v| numbers(16).map(move |ep| (b, v, ep))));
        for (micro_batch, virtual_stages, ep) in choices {
            for (spread, schedule) in
                space.spread.iter().flat_map(|s| space.schedules.iter().map(move |schedule| (*s, *schedule)))
            {
                // One chunk is not interleaved; more are.
                if (virtual_stages > 1) != (schedule == Schedule::Interleaved) {
                    continue;
                }
                for etp in if tp > 1 && job.shape.moe().is_some() { vec![1, tp] } else { vec![1] } {
                    let sequence_parallel = tp > 1;
                    let degrees =
                        Degrees { tp, cp, pp, dp, ep, etp, virtual_stages, sequence_parallel, ..Degrees::default() };
                    let cut = Cut { degrees, schedule, spread, micro_batch, ..Cut::default() };
                    if legal::check(job, &cut).is_err() {
                        continue;
                    }
                    for &recompute in &space.recompute {
                        let sharded = space.sharding.iter().filter(|s| dp * cp > 1 || **s == space.sharding[0]);
                        all.extend(sharded.map(|&sharding| Cut { sharding, recompute, ..cut }));
                    }
                }
            }
        }
    }
    all
}

#[test]
fn search_equals_brute_force_and_more_memory_never_hurts() {
    let mut experts = rackmath_catalog::embedded().model("qwen3-30b-a3b").unwrap().shape().unwrap().clone();
    experts.runs[0].n = 6;
    for (shape, batch) in [(Shape::gpt(10, 4096, 32), 24), (experts, 12)] {
        with_machine("megatron-core", "16xh100-sxm", |machine| {
            let (job, never) = (job(&shape, batch), Cancel::never());
            let mut last = f64::INFINITY;
            let whole = Space::of(&job, 16, f64::INFINITY);
            let all = every(&whole, &job);
            // Each once, timed and weighed by the plain functions.
            let plain: Vec<(f64, f64, u64)> = all
                .iter()
                .map(|cut| {
                    let (time, memory) =
                        (timed(machine, &shape, cut, batch).total, fullest(machine, &shape, cut, batch));
                    (time, memory, cut.chips())
                })
                .collect();
            let searcher = Searcher::new(machine, &job, &whole, &never).unwrap();
            let mut seen = 0;
            searcher.each(&never, |_| seen += 1).unwrap();
            assert_eq!(seen, all.len());
            for capacity in [5e9, 9e9, 40e9] {
                let space = Space { capacity, ..whole.clone() };
                let searcher = Searcher::new(machine, &job, &space, &never).unwrap();
                let found = searcher.search(5, &never).unwrap();
                let fitting = || plain.iter().filter(|(_, memory, _)| *memory <= capacity);
                let best = fitting().map(|p| p.0).fold(f64::INFINITY, f64::min);
                let fastest = found.best.first().map_or(f64::INFINITY, |c| c.step.total);
                assert_eq!(fastest, best);
                assert!(fastest <= last && found.evaluated <= all.len() as u64);
                last = fastest;
                // The fewest chips on which anything fits.
                let fewest = searcher.fewest_chips(&never).unwrap().map(|c| (c.fits, c.cut.chips()));
                assert_eq!(fewest, fitting().map(|p| p.2).min().map(|n| (true, n)));
                // Whatever is fast enough is on the frontier or beaten by it, and nothing on it is beaten.
                for p in fitting().filter(|p| p.0 <= KEPT * best) {
                    let beaten =
                        |f: &Candidate| f.step.total <= p.0 && f.memory <= p.1 && f.chip_seconds() <= p.2 as f64 * p.0;
                    assert!(found.frontier.iter().any(beaten), "{p:?}");
                }
                for a in &found.frontier {
                    let beats = |b: &Candidate| {
                        b.step.total < a.step.total && b.memory < a.memory && b.chip_seconds() < a.chip_seconds()
                    };
                    assert!(!found.frontier.iter().any(beats));
                }
            }
        });
    }
}

#[test]
fn chunks_of_unequal_size_wait_for_the_largest() {
    // 16 devices, 16 micro-batches: the clock against m t_max + (sum - t_max) x largest chunk / layers.
    let (p, m) = (16, 16);
    let run = |v: usize, layers: &dyn Fn(usize, usize) -> f64| {
        let stage = |s: usize| {
            let n = Seconds::s(layers(s % p, s / p) / 3.0);
            let passes = Passes { forward: n, input_grad: n, weight_grad: n };
            PlanStage { passes, activation: Bytes::b(1.0) }
        };
        let shape = PlanShape { devices: p, micro_batches: m, chunks: v };
        let plain = Plan::even(Schedule::Interleaved, shape, stage(0));
        let plan = Plan { stages: (0..p * v).map(stage).collect(), ..plain };
        plan.run().unwrap().makespan.get()
    };
    // 126 layers: 8 on each but 7 on the first and the last. In 7 chunks one of them is twice as large: 2/8 and not 1/7.
    let inner = |d: usize| d > 0 && d < 15;
    let sevenths = run(7, &|d, c| if c == 0 && inner(d) { 2.0 } else { 1.0 });
    close(sevenths, 128.0 + 118.0 * 2.0 / 8.0, 0.01);
    assert!(sevenths > 1.07 * (128.0 + 118.0 / 7.0));
    // In 8 chunks the first holds the embedding alone, the last the head.
    close(run(8, &|d, c| f64::from(u8::from((d > 0 || c > 0) && (d < 15 || c < 7)))), 128.0 + 118.0 / 8.0, 0.02);
    // 8 layers in 3 chunks: 3, 3, 2.
    close(run(3, &|_, c| if c < 2 { 3.0 } else { 2.0 }), 128.0 + 120.0 * 3.0 / 8.0, 1e-9);
}
