//! Worked numbers and laws of the schedules.

use super::Schedule::*;
use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

fn whole(f: f64, b: f64, w: f64) -> Stage {
    let s = Seconds::s;
    Stage { passes: Passes { forward: s(f), input_grad: s(b), weight_grad: s(w) }, activation: Bytes::b(6.0) }
}

fn shape(p: usize, m: usize, v: usize) -> Shape {
    Shape { devices: p, micro_batches: m, chunks: v }
}

fn even(schedule: Schedule, p: usize, m: usize, stage: Stage) -> Plan {
    Plan::even(schedule, shape(p, m, schedule.fixed_chunks().unwrap_or(3)), stage)
}

fn ran(schedule: Schedule, p: usize, m: usize, stage: Stage) -> Run {
    even(schedule, p, m, stage).run().unwrap()
}

fn quoted(schedule: Schedule, p: usize, m: usize, stage: Stage) -> f64 {
    let v = schedule.fixed_chunks().unwrap_or(3);
    closed_bubble(schedule, shape(p, m, v), stage.passes, Fraction::ZERO).unwrap().get()
}

fn close(got: f64, expected: f64) {
    assert!((got - expected).abs() <= 1e-9 * (1.0 + expected.abs()), "{got} is not {expected}");
}

const ROWS: [usize; 9] = [1, 2, 3, 4, 5, 6, 8, 9, 16];

#[test]
fn names_read_back_and_a_typo_finds_its_word() {
    assert!(Schedule::ALL.iter().all(|schedule| schedule.to_string().parse() == Ok(*schedule)));
    let error = rackmath_spec::word::<Schedule>("pipeline schedule", "dualpip").unwrap_err().to_string();
    assert!(error.contains("did you mean \"dualpipe\""), "{error}");
}

#[test]
fn idle_share_and_slots_of_the_lectures_grid() {
    // G42: P 4 and M 1, 4, 8, 16; forward and backward of one slot, and of one and two (1c.4: the share is the same).
    for (m, expected) in [(1, 0.75), (4, 0.42857), (8, 0.27273), (16, 0.15789)] {
        assert!((idle_fraction(4, m).get() - expected).abs() < 1e-4);
        for schedule in [GPipe, OneFOneB] {
            for stage in [whole(1.0, 1.0, 0.0), whole(1.0, 1.0, 1.0)] {
                let run = ran(schedule, 4, m, stage);
                close(run.idle.get(), idle_fraction(4, m).get());
                close(run.devices[2].idle.get(), idle_fraction(4, m).get());
            }
        }
    }
    // G43: P 4, M 4 is 14 slots, 8 of them busy on every stage.
    let run = ran(GPipe, 4, 4, whole(1.0, 1.0, 0.0));
    assert_eq!((slots(4, 4), run.makespan.get()), (14, 14.0));
    assert!(run.devices.iter().all(|d| d.busy.get() == 8.0));
}

#[test]
fn zero_bubble_schedules_at_equal_times() {
    for p in ROWS {
        let (row, all) = (p as f64 - 1.0, p as f64);
        for m in [2 * p - 1, 2 * p, 5 * p] {
            // sail-sg: a third of 1F1B in the memory of 1F1B; nothing in twice the memory, but behind a barrier the late
            // start of the last device remains; nothing in the memory of 1F1B, and there a first pass is only half a device
            // long, so the barrier costs half.
            for (schedule, bubble, barrier, peak) in
                [(ZbH1, row, row, all), (ZbH2, 0.0, row, 2.0 * row + 1.0), (Zbv, 0.0, row / 2.0, all)]
            {
                let run = ran(schedule, p, m, whole(1.0, 1.0, 1.0));
                close(run.bubble().get(), bubble);
                close(run.peak_micro_batches(), peak);
                assert!(schedule == ZbH1 || (run.barrier_bubble().get() - barrier).abs() < 1e-9);
            }
        }
    }
}

#[test]
fn less_memory_costs_a_bubble() {
    // sail-sg: 1/2 and 2/3 of 1F1B's bubble in 1/2 and 1/3 of its memory. Times in chunk passes.
    let stage = whole(2.0, 2.0, 2.0);
    for (p, m) in ROWS.into_iter().flat_map(|p| [(p, p), (p, 4 * p)]) {
        let (of_1f1b, saved, odd) = (6.0 * (p as f64 - 1.0), f64::from(p > 1), f64::from(p % 2 == 1));
        for (schedule, bubble, most) in [
            (VHalf, of_1f1b / 2.0 - odd * saved, p as f64 / 2.0 + 1.0),
            (VMin, of_1f1b * 2.0 / 3.0 - saved, (p as f64 + 4.0) / 3.0),
        ] {
            let run = ran(schedule, p, m, stage);
            close(run.bubble().get(), bubble);
            assert!(run.peak_micro_batches() <= most);
        }
    }
    // 16 devices: 16 micro-batches in 1F1B become 9 and 6.
    assert_eq!(ran(VHalf, 16, 64, stage).peak_micro_batches(), 9.0);
    assert_eq!(ran(VMin, 16, 64, stage).peak_micro_batches(), 6.0);
    // V-Min waits in every round when passes differ.
    let bubble = |schedule, m| ran(schedule, 8, m, whole(2.0, 2.2, 1.8)).bubble().get();
    assert!(bubble(VMin, 128) > 1.5 * bubble(VMin, 32));
    close(bubble(VHalf, 128), bubble(VHalf, 32));
}

#[test]
fn dualpipe_holds_one_micro_batch_more_and_waits_as_published() {
    // deepseek-ai/DualPipe: p = 8, 20 micro-batches; (8/2 - 1)(FB + B - 2W) with FB = F + B + W.
    for (p, m) in [(2, 4), (4, 8), (8, 20), (16, 64)] {
        for stage in [whole(2.0, 2.0, 2.0), whole(2.0, 2.0, 1.0)] {
            for schedule in [DualPipe, DualPipeV] {
                let run = ran(schedule, p, m, stage);
                close(run.bubble().get(), quoted(schedule, p, m, stage));
                let one_more = if schedule == DualPipe { 1.0 } else { 0.5 };
                assert_eq!(run.peak_micro_batches(), p as f64 + one_more);
            }
        }
    }
    close(quoted(DualPipe, 8, 20, whole(2.0, 2.0, 2.0)), 12.0);
    // Hidden time shrinks the bubble more than its formula.
    let mut plan = even(DualPipe, 8, 32, whole(1.0, 1.0, 1.0));
    plan.hidden = Fraction::ONE;
    close(plan.run().unwrap().bubble().get(), 1.0);
    let formula = closed_bubble(plan.schedule, plan.shape, whole(1.0, 1.0, 1.0).passes, plan.hidden);
    close(formula.unwrap().get(), 3.0);
}

#[test]
fn slow_stages_and_hops_by_hand() {
    // The third of four stages takes twice as long: 8 x 6; two stages before it, there and back, 2 + 4; and its first B
    // comes 1 late, when it has done two forwards (2 to 6) and the last stage its F and B (4 to 7).
    let mut plan = even(OneFOneB, 4, 8, whole(1.0, 1.0, 1.0));
    plan.stages[2] = whole(2.0, 2.0, 2.0);
    close(plan.run().unwrap().makespan.get(), 8.0 * 6.0 + 2.0 + 4.0 + 1.0);
    close(lower_bound(&plan).unwrap().get(), 8.0 * 6.0 + 2.0 + 4.0);
    // A hop lengthens the way there and back.
    let mut plan = even(GPipe, 4, 6, whole(1.0, 1.0, 1.0));
    plan.hop = Seconds::s(0.25);
    close(plan.run().unwrap().makespan.get(), 9.0 * 3.0 + 6.0 * 0.25);
    // The bend of a V stays on its device: one micro-batch makes 2 (p - 1) hops each way.
    let mut bent = even(Zbv, 4, 1, whole(2.0, 2.0, 2.0));
    let still = bent.run().unwrap().makespan;
    bent.hop = Seconds::s(0.25);
    close(bent.run().unwrap().makespan.less(still).get(), 12.0 * 0.25);
}

#[test]
fn what_devices_hold_by_hand() {
    let mut plan = even(ZbH1, 4, 12, whole(1.0, 1.0, 1.0));
    assert_eq!(plan.run().unwrap().peak_bytes(), Bytes::b(24.0));
    plan.released_at_input_grad = Fraction::new(0.5);
    let run = plan.run().unwrap();
    // The first device holds four before their B. The last holds one before and three halves after.
    let peaks: Vec<f64> = run.devices.iter().map(|d| d.peak_bytes.get()).collect();
    assert_eq!((peaks[0], peaks[3]), (24.0, 15.0));
    assert!(run.devices.iter().all(|d| d.peak_micro_batches == 4.0));
    // Narayanan 2021: interleaving holds 1 + (p - 1)/(p v) of 1F1B.
    for (p, v) in [(4, 2), (4, 3), (8, 4)] {
        let plan = Plan::even(Interleaved, shape(p, 3 * p, v), whole(1.0, 1.0, 1.0));
        let expected = p as f64 * (1.0 + (p as f64 - 1.0) / (p * v) as f64);
        close(plan.run().unwrap().peak_micro_batches(), expected);
    }
}

#[test]
fn refusals_name_the_nearest_shape() {
    for (schedule, (p, m, v), said) in [
        (Interleaved, (4, 10, 2), "10 micro-batches; expected a multiple of the 4 devices, such as 8 or 12"),
        (DualPipe, (5, 10, 1), "5 devices; expected an even number, such as 6"),
        (DualPipe, (4, 7, 1), "7 micro-batches; expected an even number, at least twice the 4 devices, such as 8"),
        (DualPipeV, (4, 7, 2), "7 micro-batches; expected at least twice the 4 devices, 8"),
        (Zbv, (4, 8, 1), "1 chunks; expected 2"),
        (OneFOneB, (0, 8, 1), "0 devices; expected at least 1"),
        (
            GPipe,
            (1000, usize::MAX, 1),
            "18446744073709551615 devices x chunks x micro-batches; expected at most 10000000",
        ),
    ] {
        let error = Plan::even(schedule, shape(p, m, v), whole(1.0, 1.0, 1.0)).run().unwrap_err();
        assert_eq!(error.to_string(), format!("{schedule} with {said}"));
    }
    // Work without time is a step without time.
    for schedule in Schedule::ALL {
        let run = ran(*schedule, 4, 8, whole(0.0, 0.0, 0.0));
        assert_eq!((run.makespan, run.idle), (Seconds::ZERO, Fraction::ZERO));
    }
}

#[test]
fn inference_fills_up_from_as_many_micro_batches_as_stages() {
    // D27: one batch alone leaves 3/4 of four stages idle; 1c.4: (P - M)/P.
    assert_eq!(inference_idle(4, 1).get(), 0.75);
    assert_eq!(inference_idle(4, 3).get(), 0.25);
    for (p, m) in (1..=7).flat_map(|p| (1..=9).map(move |m| (p, m))) {
        let round = p.max(m);
        let grid = inference_grid(p, m, 3 * round + p);
        // Two rounds after the pipeline has filled.
        let busy = grid.iter().filter(|c| (p..p + 2 * round).contains(&c.slot)).count();
        close(1.0 - busy as f64 / (2 * round * p) as f64, inference_idle(p, m).get());
        assert_eq!(inference_idle(p, m) == Fraction::ZERO, m >= p);
        // A token is written in p slots, one stage each, and the next does not start before.
        assert!(grid.iter().filter(|c| c.micro_batch == 0 && c.token == 0).map(|c| c.slot).eq(0..p));
        assert!(grid.iter().all(|c| c.slot == c.micro_batch + c.token * round + c.stage));
    }
    assert!(inference_grid(0, 0, 5).is_empty());
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let time = || prop_oneof![4 => 0.1f64..3.0, 1 => Just(0.0), 2 => Just(1.0)];
    (0..Schedule::ALL.len(), 1usize..9, 1usize..24, 1usize..4).prop_flat_map(move |(k, p, m, v)| {
        let schedule = Schedule::ALL[k];
        let v = schedule.fixed_chunks().unwrap_or(v);
        let (p, m) = match schedule {
            Interleaved => (p, m.next_multiple_of(p)),
            DualPipe => (p.next_multiple_of(2), m.next_multiple_of(2).max(2 * p.next_multiple_of(2))),
            DualPipeV => (p, m.max(2 * p)),
            _ => (p, m),
        };
        let stages = proptest::collection::vec((time(), time(), time()), p * v);
        (stages, time(), 0.0f64..=1.0, 0.0f64..=1.0).prop_map(move |(stages, hop, released, hidden)| Plan {
            schedule,
            shape: shape(p, m, v),
            stages: stages.into_iter().map(|(f, b, w)| whole(f, b, w)).collect(),
            hop: Seconds::s(hop),
            released_at_input_grad: Fraction::new(released),
            hidden: Fraction::new(hidden),
        })
    })
}

/// Ends of forwards and of input gradients by stage and micro-batch, each met exactly once.
fn ends(plan: &Plan, run: &Run, kinds: &[Kind]) -> Result<HashMap<(usize, usize), Seconds>, TestCaseError> {
    let mut ends = HashMap::new();
    for c in run.cells.iter().filter(|c| kinds.contains(&c.kind)) {
        prop_assert!(ends.insert((c.stage, c.micro_batch), c.end).is_none(), "{c:?} twice");
        prop_assert_eq!(plan.device(c.stage, c.micro_batch), c.device);
        prop_assert_eq!(plan.stage(c.device, c.chunk), c.stage);
    }
    prop_assert_eq!(ends.len(), plan.stages.len() * plan.shape.micro_batches);
    Ok(ends)
}

proptest! {
    #[test]
    fn every_pass_runs_once_after_what_it_needs(plan in any_plan()) {
        let run = plan.run().unwrap();
        let slack = Seconds::s(1e-9);
        let forward = ends(&plan, &run, &[Kind::Forward])?;
        let backward = ends(&plan, &run, &[Kind::InputGrad, Kind::Backward])?;
        ends(&plan, &run, &[Kind::WeightGrad, Kind::Backward])?;
        for c in &run.cells {
            let (s, i) = (c.stage, c.micro_batch);
            let from = |other: usize, end: Seconds| if plan.device(other, i) == c.device { end } else { end + plan.hop };
            let needs = match c.kind {
                Kind::Forward if s == 0 => Seconds::ZERO,
                Kind::Forward => from(s - 1, forward[&(s - 1, i)]),
                Kind::WeightGrad => backward[&(s, i)],
                _ if s + 1 == plan.stages.len() => forward[&(s, i)],
                _ => from(s + 1, backward[&(s + 1, i)]).max(forward[&(s, i)]),
            };
            prop_assert!(c.start + slack >= needs, "{c:?} needs {needs:?}");
        }
    }

    #[test]
    fn a_device_does_one_thing_at_a_time_holds_what_its_schedule_says_and_no_step_beats_the_lower_bound(plan in any_plan()) {
        let run = plan.run().unwrap();
        let Shape { devices: p, micro_batches: m, .. } = plan.shape;
        let p_f = p as f64;
        for (d, device) in run.devices.iter().enumerate() {
            let mine: Vec<&Cell> = run.cells.iter().filter(|c| c.device == d).collect();
            let mut busy = 0.0;
            for (k, c) in mine.iter().enumerate() {
                if c.paired && c.kind == Kind::Backward {
                    prop_assert!(mine[k - 1].paired && (mine[k - 1].start, mine[k - 1].end) == (c.start, c.end));
                } else {
                    prop_assert!(k == 0 || mine[k - 1].end <= c.start);
                    busy += c.end.get() - c.start.get();
                }
            }
            prop_assert!((busy - device.busy.get()).abs() < 1e-9);
            let most = match plan.schedule {
                GPipe => m as f64,
                OneFOneB => (p - d).min(m) as f64,
                ZbH1 | Zbv => p_f,
                ZbH2 => 2.0 * p_f - 1.0,
                VHalf => p_f / 2.0 + 1.0,
                VMin => (p_f + 4.0) / 3.0,
                DualPipe => p_f + 1.0,
                DualPipeV => p_f + 0.5,
                Interleaved => 2.0 * p_f,
            };
            let held = device.peak_micro_batches;
            let exact = matches!(plan.schedule, GPipe | OneFOneB);
            prop_assert!(if exact { held == most } else { held <= most }, "{held} of {most}");
        }
        prop_assert!(run.makespan.get() >= lower_bound(&plan).unwrap().get() * (1.0 - 1e-9));
        prop_assert!(run.period() <= run.makespan);
    }

    #[test]
    fn schedules_wait_as_quoted(p in 1usize..12, rounds in 1usize..5, m in 1usize..40, f in 0.5f64..3.0, b in 0.5f64..3.0, share in 0.0f64..=1.0) {
        let (any_w, short_w) = (whole(f, b, 3.0 * share), whole(f, b, f.min(b) * share));
        for (schedule, m) in [(GPipe, m), (OneFOneB, m), (Interleaved, rounds * p)] {
            let run = ran(schedule, p, m, any_w);
            close(run.bubble().get(), quoted(schedule, p, m, any_w));
            close(run.makespan.get(), lower_bound(&even(schedule, p, m, any_w)).unwrap().get());
        }
        let idle = |m| ran(OneFOneB, p, m, any_w).idle.get();
        prop_assert!(idle(m + 1) <= idle(m) + 1e-12, "more micro-batches never raise the idle share");
        for (schedule, m) in [(ZbH1, p - 1 + m), (ZbH2, 2 * p - 2 + m)] {
            close(ran(schedule, p, m, short_w).bubble().get(), quoted(schedule, p, m, short_w));
        }
    }
}
