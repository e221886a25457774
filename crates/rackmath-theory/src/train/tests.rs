//! Worked numbers of a step and of what it holds, their laws, and the search against brute force.

use super::machine::Machine;
use super::memory::{in_flight, stage_memory};
use super::mfu::{Convention, flop_per_token};
use super::search::{Candidate, Found, Searcher, Space};
use super::step::{Part, Prepared, Row, StepTime, step};
use super::work::{Slice, block};
use super::{Cut, Job, Offload, Recompute, Sharding};
use crate::close;
use crate::pipeline::{Passes, Plan, Schedule, Shape as PlanShape, Stage as PlanStage};
use proptest::prelude::*;
use rackmath_spec::TrainingFormat;
use rackmath_spec::layout::Degrees;
use rackmath_spec::model::Shape;
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
        let slice = Slice { cut: &cut, sequence: 2048.0, flash: false, dropout: true };
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
            let usual = Space::of(&shape, 64, machine.domain, 64, capacity);
            let wide = usual.clone().widened(machine, 2048);
            let [a, b] = [&usual, &wide].map(|s| Searcher::new(machine, &job, s).search(1, &Cancel::never()).unwrap());
            let best = |f: &Found| f.best.first().map_or(f64::INFINITY, |c| c.step.total);
            assert!(b.evaluated > a.evaluated && b.feasible >= a.feasible && best(&b) <= best(&a));
            let mut seen: Vec<Cut> = Vec::new();
            Searcher::new(machine, &job, &wide).each(&Cancel::never(), |c| seen.push(c.cut)).unwrap();
            assert!(seen.iter().any(|c| c.cp > 1) && seen.iter().any(|c| c.offload == Offload::Both));
            assert!(Schedule::ALL.iter().all(|wanted| seen.iter().any(|c| c.schedule == *wanted)));
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

/// Every cut of the usual space over 64 chips and 256 sequences, by plain loops.
fn every(space: &Space) -> Vec<Cut> {
    let mut all = Vec::new();
    for (&tp, &pp) in space.tp.iter().flat_map(|tp| space.pp.iter().map(move |pp| (tp, pp))) {
        for &micro_batch in &space.micro_batch {
            let fits = |d: &u64| (256 / micro_batch).is_multiple_of(*d);
            let Some(dp) = (1..=64 / (tp * pp)).rev().find(fits) else { continue };
            for &sharding in space.sharding.iter().filter(|s| dp > 1 || **s == space.sharding[0]) {
                for (&recompute, &v) in
                    space.recompute.iter().flat_map(|r| space.virtual_stages.iter().map(move |v| (r, v)))
                {
                    let cut = cut(tp, pp, dp, micro_batch);
                    let degrees = Degrees { virtual_stages: v, sequence_parallel: tp > 1, ..cut.degrees };
                    let schedule = if v > 1 { Schedule::Interleaved } else { Schedule::OneFOneB };
                    let even = (24 / pp).is_multiple_of(v) && cut.micro_batches(256).unwrap().is_multiple_of(pp);
                    if v == 1 || (pp > 1 && even) {
                        all.push(Cut { degrees, schedule, sharding, recompute, ..cut });
                    }
                }
            }
        }
    }
    all
}

#[test]
fn search_equals_brute_force_and_more_memory_never_hurts() {
    let shape = small();
    with_machine("megatron-core", "64xh100-sxm", |machine| {
        let job = job(&shape, 256);
        let mut last = (0, f64::INFINITY);
        for capacity in [20e9, 40e9, 80e9, 160e9] {
            let space = Space::of(&shape, 64, machine.domain, 256, capacity);
            let found = Searcher::new(machine, &job, &space).search(5, &Cancel::never()).unwrap();
            let all = every(&space);
            let fitting = all.iter().filter(|cut| fullest(machine, &shape, cut, 256) <= capacity);
            let best = fitting.map(|cut| timed(machine, &shape, cut, 256).total).fold(f64::INFINITY, f64::min);
            let fastest = found.best.first().map_or(f64::INFINITY, |c| c.step.total);
            assert_eq!((found.evaluated, fastest), (all.len() as u64, best));
            assert!(found.feasible >= last.0 && fastest <= last.1);
            // Nothing on the frontier is beaten by anything else on it.
            for a in &found.frontier {
                let beats = |b: &Candidate| {
                    b.step.total < a.step.total && b.memory < a.memory && b.chip_seconds() < a.chip_seconds()
                };
                assert!(!found.frontier.iter().any(beats));
            }
            last = (found.feasible, fastest);
        }
    });
}
