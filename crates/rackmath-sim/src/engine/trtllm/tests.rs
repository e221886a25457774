use super::*;
use crate::blocks::Segment;
use rackmath_units::Chance;

fn scheduler(seed: u64, thorough: bool) -> Scheduler {
    let mut chance = Chance::new(seed);
    let mut pick = |all: &[u32]| all[chance.below(all.len() as u64) as usize];
    let (capacity, chunking) = (pick(&[0, 1, 2, 2]), pick(&[0, 1, 2]));
    let settings = Settings {
        max_batch_size: pick(&[3, 16, 64]),
        max_num_tokens: pick(&[64, 256, 1024]),
        max_seq_len: 2048,
        capacity: [Capacity::GuaranteedNoEvict, Capacity::StaticBatch, Capacity::MaxUtilization][capacity as usize],
        chunking: [None, Some(Chunking::FirstComeFirstServed), Some(Chunking::EqualProgress)][chunking as usize],
        tokens_per_block: 32,
        blocks: pick(&[40, 120, 600]),
        host: [None, Some(Tier { blocks: 200, block: 1 << 30, latency: 5 })][pick(&[0, 1]) as usize],
        ..Settings::default()
    };
    Scheduler { thorough, ..Scheduler::new(settings) }
}

/// Prefixes that are shared, and conversations that come again.
fn comes(s: &mut Scheduler, id: u64, chance: &mut Chance) {
    let (prefix, own) = (chance.below(6), 1 + chance.below(400) as u32);
    let content = [
        Segment { stream: prefix, offset: 0, tokens: 96 * (1 + prefix as u32 % 3) },
        Segment { stream: 100 + chance.below(20), offset: 0, tokens: own },
    ];
    let (prompt, output) = (content[0].tokens + own, 1 + chance.below(60) as u32);
    let place = s.blocks.place(0, content.into_iter());
    let below = s.tiers.as_ref().map(|tiers| Box::new(tiers.below(&content)));
    s.add(Sequence { place, below, ..Sequence::new(id, id, prompt, output) });
}

#[test]
fn who_can_be_given_nothing_need_not_be_looked_for() {
    let (mut put_off, mut fetched, mut paused) = (0, 0, 0);
    for seed in 0..150 {
        let mut both = [false, true].map(|thorough| (scheduler(seed, thorough), Chance::new(seed ^ 0x4d)));
        for step in 0..400_u64 {
            for (s, chance) in &mut both {
                for _ in 0..if step < 200 { chance.below(3) } else { 0 } {
                    comes(s, step, chance);
                }
                s.at(step);
                s.schedule();
            }
            let [a, b] = both.each_ref().map(|(s, _)| &s.decision);
            assert_eq!((&a.shares, &a.hits, a.loads), (&b.shares, &b.hits, b.loads), "seed {seed}, step {step}");
            assert_eq!(a.preempted, b.preempted, "seed {seed}, step {step}");
            paused += a.preempted.len();
            fetched += u64::from(a.loads.start > 0);
            put_off += both[0].0.waiting() as u64;
            for (s, _) in &mut both {
                for share in s.decision.shares.clone() {
                    s.receive(&share, 0);
                }
            }
        }
        let [a, b] = both.each_ref().map(|(s, _)| (s.blocks.free_list(), s.running(), s.waiting()));
        assert_eq!(a, b, "seed {seed}");
    }
    assert!(put_off > 10_000 && fetched > 100 && paused > 100, "{put_off} {fetched} {paused}");
}
