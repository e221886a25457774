//! Random layouts against the search: within the space asked for, none that fits beats its answer.

use rackmath_spec::layout::Degrees;
use rackmath_spec::{System, TrainingFormat};
use rackmath_theory::pipeline::Schedule;
use rackmath_theory::train::machine::Machine;
use rackmath_theory::train::memory::stage_memory;
use rackmath_theory::train::search::{Searcher, Space};
use rackmath_theory::train::step::{Prepared, Row, step};
use rackmath_theory::train::{Cut, Job, Offload, Recompute, Sharding, Spread, Tuning, legal};
use rackmath_units::Cancel;

/// Layouts drawn for each setting.
const DRAWN: usize = 10_000;

/// A hundredth of a per cent is rounding; a tenth is what may be missed.
const MISSED: f64 = 1e-3;

/// Model, machine, chips, sequences of a step, tokens of a sequence, format; wide or not, and degrees that are fixed.
type Setting = (&'static str, &'static str, u64, u64, u64, TrainingFormat, bool, [Option<u64>; 3]);

const OPEN: [Option<u64>; 3] = [None; 3];
const BF16: TrainingFormat = TrainingFormat::Bf16;
const FP8: TrainingFormat = TrainingFormat::Fp8;

#[rustfmt::skip] // a table
const SETTINGS: [Setting; 20] = [
    ("llama-3.1-405b", "hgx-h100", 16_384, 2048, 8192, BF16, false, OPEN),
    ("llama-3.1-405b", "hgx-h100", 512, 256, 8192, BF16, false, OPEN),
    ("llama-3.1-405b", "hgx-b200", 2048, 1008, 8192, FP8, false, OPEN),
    ("llama-3.1-70b", "hgx-h100", 64, 128, 8192, BF16, false, OPEN),
    ("llama-3.1-70b", "hgx-h100", 1024, 512, 8192, BF16, true, OPEN),
    ("llama-3.1-70b", "hgx-a100", 256, 1536, 4096, BF16, false, OPEN),
    ("llama-3.1-70b", "hgx-h200", 48, 96, 131_072, BF16, false, OPEN),
    ("llama-3.1-8b", "hgx-h100", 8, 64, 8192, BF16, true, OPEN),
    ("llama-3.1-8b", "hgx-h100", 8, 8, 131_072, BF16, false, OPEN),
    ("llama-3.1-8b", "tpu-v5p-8960", 512, 1024, 4096, BF16, false, OPEN),
    ("llama-2-13b", "hgx-a100", 24, 240, 4096, BF16, false, OPEN),
    ("qwen3-32b", "hgx-b200", 128, 512, 4096, FP8, false, OPEN),
    ("qwen2.5-72b", "hgx-h200", 96, 288, 16_384, BF16, false, [Some(8), None, None]),
    ("qwen3-30b-a3b", "hgx-b200", 64, 512, 4096, BF16, false, OPEN),
    ("qwen3-235b-a22b", "hgx-h100", 256, 1024, 4096, BF16, false, OPEN),
    ("deepseek-v3", "hgx-h800", 2048, 15_360, 4096, FP8, false, OPEN),
    ("deepseek-v3", "gb200-nvl72", 1152, 4608, 4096, FP8, false, [None, Some(4), None]),
    ("gpt-oss-120b", "hgx-h200", 64, 256, 8192, BF16, true, [None, None, Some(8)]),
    ("mixtral-8x22b", "hgx-h100", 128, 384, 8192, BF16, false, OPEN),
    ("llama-4-maverick", "hgx-h100", 512, 2048, 8192, FP8, false, OPEN),
];

/// A stream of numbers: xorshift, keyed by the setting.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.roll(all.len())]
    }
}

/// A cut of the space, legal or not.
fn drawn(dice: &mut Dice, space: &Space, job: &Job<'_>, divisors: &[u64]) -> Cut {
    let tp = dice.of(&space.tp);
    let cp = dice.of(&space.cp);
    let stages = (space.chips / (tp * cp).max(1)).max(1);
    let deep: Vec<u64> = space.pp.iter().copied().filter(|p| *p <= stages).collect();
    let pp = if deep.is_empty() { 1 } else { dice.of(&deep) };
    let micro_batch = dice.of(&space.micro_batch);
    let sequences = job.global_batch / micro_batch;
    let even = |d: &u64| *d <= (stages / pp).max(1) && sequences.is_multiple_of(*d);
    let copies: Vec<u64> = divisors.iter().copied().filter(even).collect();
    // As many copies as there can be, every other time.
    let dp = if dice.roll(2) == 0 { copies[copies.len() - 1] } else { dice.of(&copies) };
    let ep = dice.of(&space.ep);
    let etp = if dice.roll(2) == 0 || job.shape.moe().is_none() { 1 } else { tp };
    let schedule = dice.of(&space.schedules);
    let spread = dice.of(&space.spread);
    let most = (spread.counted(job.shape.n_layers()) / pp).max(1);
    let virtual_stages = if schedule == Schedule::Interleaved { 2 + dice.roll(most as usize) as u64 } else { 1 };
    let sequence_parallel = tp > 1 && dice.roll(4) > 0;
    Cut {
        degrees: Degrees { tp, cp, pp, dp, ep, etp, virtual_stages, sequence_parallel, ..Degrees::default() },
        schedule,
        spread,
        micro_batch,
        sharding: dice.of(&space.sharding),
        recompute: dice.of(&space.recompute),
        offload: dice.of(&space.offload),
        tuning: Tuning::Full,
    }
}

/// Seconds and bytes by the plain functions, layer by layer.
fn plain(machine: &Machine<'_>, job: &Job<'_>, cut: &Cut, micro_batches: u64) -> (f64, f64) {
    let prepared = Prepared::new(machine, job, cut);
    let stages = prepared.stages(cut.pp, cut.spread);
    let row = Row::new(&stages, cut.recompute).unwrap();
    let held = stages.iter().map(|s| stage_memory(&prepared, &machine.stack.memory, s, cut, micro_batches));
    let memory = held.map(|m| m.total_bytes).fold(0.0, f64::max);
    (step(machine, &prepared, &row, cut, micro_batches).total, memory)
}

#[test]
fn ten_thousand_random_layouts_of_each_setting_never_beat_the_search() {
    let catalog = rackmath_catalog::embedded();
    let mut settled = 0;
    for (at, (model, on, chips, global_batch, sequence, format, wide, [tp, pp, ep])) in SETTINGS.into_iter().enumerate()
    {
        let (model, system) = (catalog.model(model).unwrap(), catalog.system(on).unwrap());
        let system = System { n_chips: chips, ..(*system).clone() };
        let usual = if system.chip.link.kind == "ici" { "maxtext" } else { "megatron-core" };
        let stack = catalog.training_stack(usual).unwrap();
        let (kernels, network) = (catalog.gemm_kernels().unwrap(), catalog.network(&system.chip.link.kind).unwrap());
        let machine = Machine::new(&system, &stack, &kernels, &network, format).unwrap();
        let job = Job { shape: model.shape().unwrap(), sequence, global_batch, format };
        let mut space = Space::of(&job, chips, system.chip.memory.size().get());
        if wide {
            space = space.widened(&machine);
        }
        for (list, fixed) in [(&mut space.tp, tp), (&mut space.pp, pp), (&mut space.ep, ep)] {
            if let Some(n) = fixed {
                *list = vec![n];
            }
        }
        let never = Cancel::never();
        let found = Searcher::new(&machine, &job, &space, &never).unwrap().search(3, &never).unwrap();
        let best = found.best.first().map_or(f64::INFINITY, |c| c.step.total);
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (at as u64 + 1));
        let divisors: Vec<u64> = (1..=global_batch).filter(|d| global_batch.is_multiple_of(*d)).collect();
        let (mut legal, mut fitting) = (0, 0);
        while legal < DRAWN {
            let cut = drawn(&mut dice, &space, &job, &divisors);
            let Ok(m) = legal::check(&job, &cut) else { continue };
            if cut.chips() > chips {
                continue;
            }
            legal += 1;
            let (time, memory) = plain(&machine, &job, &cut, m);
            if memory <= space.capacity {
                fitting += 1;
                assert!(time >= best * (1.0 - MISSED), "{} on {on}: {cut} takes {time} s, not {best} s", model.id);
            }
        }
        settled += usize::from(fitting > 0);
    }
    assert!(settled >= 18, "only {settled} settings had a layout that fits");
}

#[test]
fn a_search_that_is_not_wanted_ends() {
    let catalog = rackmath_catalog::embedded();
    let (model, system) = (catalog.model("deepseek-v3").unwrap(), catalog.system("hgx-h800").unwrap());
    let stack = catalog.training_stack("megatron-core").unwrap();
    let (kernels, network) = (catalog.gemm_kernels().unwrap(), catalog.network(&system.chip.link.kind).unwrap());
    let machine = Machine::new(&system, &stack, &kernels, &network, FP8).unwrap();
    let job = Job { shape: model.shape().unwrap(), sequence: 4096, global_batch: 15_360, format: FP8 };
    let space = Space::of(&job, 65_536, system.chip.memory.size().get());
    let cancel = Cancel::open();
    cancel.cancel();
    assert!(Searcher::new(&machine, &job, &space, &cancel).is_err());
    let few = Space { tp: vec![1], cp: vec![1], ep: vec![64], micro_batch: vec![1], ..space };
    let searcher = Searcher::new(&machine, &job, &few, &Cancel::never()).unwrap();
    assert!(searcher.search(1, &cancel).is_err() && searcher.fewest_chips(&cancel).is_err());
    assert!(searcher.each(&cancel, |_| ()).is_err());
}

#[test]
fn words_of_a_cut_name_what_is_not_usual() {
    let degrees = Degrees { tp: 8, pp: 16, virtual_stages: 8, dp: 128, sequence_parallel: true, ..Degrees::default() };
    let (schedule, spread, sharding) = (Schedule::Interleaved, Spread::EndsLighter, Sharding::Zero2);
    let cut = Cut { degrees, schedule, spread, sharding, recompute: Recompute::Cheap, ..Cut::default() };
    assert_eq!(cut.to_string(), "tp8 pp16 v8 dp128 b1 zero2 cheap recompute lighter ends");
    let plain = Cut { degrees: Degrees { sequence_parallel: false, ..degrees }, offload: Offload::Both, ..cut };
    assert!(plain.to_string().contains("no sequence parallel") && plain.to_string().ends_with("offloaded"));
}
