//! Steps at once are the steps one by one, with or without the scheduler: same times, same order, same free list.

mod common;

use common::{Crooked, Told};
use rackmath_sim::Ns;
use rackmath_sim::blocks::Segment;
use rackmath_sim::clock::{Clock, Law, Timed};
use rackmath_sim::engine::Sequence;
use rackmath_sim::engine::vllm::Settings;
use rackmath_sim::replica::{Pace, Replica};
use rackmath_units::Chance;

struct World {
    settings: Settings,
    requests: Vec<(Ns, u32, u32, Vec<Segment>, u32)>,
}

fn world(seed: u64) -> World {
    let mut chance = Chance::new(seed);
    let mut pick = |all: &[u32]| all[chance.below(all.len() as u64) as usize];
    let settings = Settings {
        max_num_seqs: pick(&[2, 8, 128]),
        max_num_batched_tokens: pick(&[64, 512, 2048]),
        enable_prefix_caching: pick(&[0, 1, 1]) == 1,
        async_scheduling: pick(&[0, 1]) == 1,
        block_size: pick(&[1, 16, 64]),
        scheduler_reserve_full_isl: pick(&[0, 1, 1]) == 1,
        watermark: f64::from(pick(&[0, 0, 5])) / 100.0,
        ..Settings::default()
    };
    let room = pick(&[900, 1500, 6000, 100_000]);
    let (longest, answer, gap) = (pick(&[40, 300, 700]), pick(&[1, 30, 150]), pick(&[1, 20, 200]));
    let sharing = pick(&[0, 1, 2]);
    let settings = Settings {
        num_blocks: (room / settings.block_size).max(900_u32.div_ceil(settings.block_size) + 1),
        ..settings
    };
    let mut now = 0;
    let mut requests = Vec::new();
    for i in 0..120_u64 {
        now += chance.below(u64::from(gap) * 2_000_000 + 1);
        let prompt = 1 + chance.below(longest.into()) as u32;
        let output = 1 + chance.below(answer.into()) as u32;
        let common = (chance.below(u64::from(prompt)) as u32).max(1);
        let segments = match sharing {
            0 => Vec::new(),
            _ => vec![
                Segment { stream: chance.below(3), offset: 0, tokens: common },
                Segment { stream: 100 + i, offset: 0, tokens: prompt - common },
            ],
        };
        // Sometimes the answer can be shared as well.
        let shared = if sharing == 2 && chance.below(4) == 0 { output } else { 0 };
        requests.push((now, prompt, output, segments, shared));
    }
    World { settings, requests }
}

fn run(world: &World, clock: &mut impl Clock, pace: Pace) -> (Told, String) {
    let mut replica = Replica::new(world.settings.clone(), pace);
    let mut record = Told::default();
    for (i, (at, prompt, output, segments, shared)) in world.requests.iter().enumerate() {
        replica.advance(clock, *at, false, &mut record);
        let answer = Segment { stream: 10_000 + i as u64, offset: 0, tokens: *shared };
        let content = segments.iter().copied().chain([answer]).filter(|s| s.tokens > 0);
        let place = replica.engine.place(0, content);
        replica.arrive(*at, Sequence { place, ..Sequence::new(i as u64, *at, *prompt, *output) });
    }
    replica.advance(clock, Ns::MAX, false, &mut record);
    let totals = replica.totals;
    (record, format!("{totals:?} {}", replica.engine.free_list()))
}

#[test]
fn steps_at_once_are_the_steps_one_by_one() {
    let mut evicted = 0;
    for seed in 0..600 {
        let world = world(seed);
        let at = |pace| match seed % 2 {
            0 => run(&world, &mut Law::default(), pace),
            _ => run(&world, &mut Timed::new(Crooked), pace),
        };
        let general = at(Pace::General);
        assert_eq!(general.0.finished.len(), world.requests.len(), "seed {seed}: all are done");
        for pace in [Pace::Steps, Pace::Jumps] {
            let other = at(pace);
            for (x, y) in other.0.finished.iter().zip(&general.0.finished) {
                assert_eq!(x, y, "seed {seed}, {pace:?}, {:?}", world.settings);
            }
            assert_eq!(other.0.gaps, general.0.gaps, "seed {seed}, {pace:?}");
            assert_eq!(other.1, general.1, "seed {seed}, {pace:?}");
        }
        evicted += general.0.finished.iter().filter(|f| f.5 > 0).count();
    }
    assert!(evicted > 1000, "worlds are tight enough to tell: {evicted}");
}
