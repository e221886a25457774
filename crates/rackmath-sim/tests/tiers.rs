//! Memory below the chip's own: laws, and a case worked by hand.

use rackmath_sim::Ns;
use rackmath_sim::blocks::Segment;
use rackmath_sim::clock::Law;
use rackmath_sim::cluster::{Cluster, Router};
use rackmath_sim::engine::vllm::Settings;
use rackmath_sim::tally::{Keep, Limits, Outcome, Tally};
use rackmath_sim::tiers::{Counts, Tier};
use rackmath_sim::workload::{Arrivals, Drawn, Job, Length, Listed, Sharing, Source, Traffic};
use rackmath_units::{Chance, Effort};

const MS: Ns = 1_000_000;
const FREE: Tier = Tier { blocks: u64::MAX, block: 0, latency: 0 };

fn run(settings: Settings, n: usize, source: &mut impl Source) -> (Vec<Outcome>, Vec<Counts>) {
    let limits = Limits::default();
    let keep = Keep { warm: 0, requests: 1000, batches: 8, limits, outside: 0, each: true, worst: 5 };
    let mut tally = Tally::new(keep);
    let mut cluster = Cluster::alike(settings, n, Law::default(), Router::RoundRobin, 7, true);
    cluster.run(source, &mut tally, &Effort::default()).unwrap();
    tally.each.sort_by_key(|o| o.id);
    for o in &tally.each {
        let parts = o.queue + o.fetch + o.prefill + o.decode + o.stalled + o.evicted;
        assert_eq!(parts, o.e2e(), "parts add up: {o:?}");
        assert!(o.fetched <= o.cached, "what is fetched is not computed: {o:?}");
    }
    for r in &cluster.replicas {
        assert_eq!((r.running(), r.waiting()), (0, 0), "all are done");
        assert_eq!(r.engine.free(), r.engine.usable(), "all blocks are given back");
        for (counts, held) in r.engine.tiers().into_iter().flat_map(|t| t.counts().zip(t.held())) {
            assert_eq!(counts.stored, counts.evicted + held, "what is written is there or gave way");
            assert!(counts.carried >= counts.found, "what is found goes over the link");
        }
    }
    (tally.each, cluster.tiers())
}

fn traffic(rate: f64, turns: u32, seed: u64) -> Drawn {
    Drawn::new(Traffic {
        arrivals: Arrivals::Open { rate, cv: 1.0 },
        input: Length::Even(20, 400),
        output: Length::Even(1, 90),
        sharing: Sharing { prefixes: 5, prefix_tokens: 160, turns, think_s: 2.0 },
        requests: 200,
        seed,
        longest: 1500,
    })
}

fn settings(seed: u64) -> Settings {
    let mut chance = Chance::new(seed);
    let mut pick = |all: &[u32]| all[chance.below(all.len() as u64) as usize];
    Settings {
        max_num_seqs: pick(&[4, 32]),
        max_num_batched_tokens: pick(&[128, 1024]),
        num_blocks: pick(&[110, 200, 600]),
        async_scheduling: pick(&[0, 1]) == 1,
        watermark: f64::from(pick(&[0, 5])) / 100.0,
        ..Settings::default()
    }
}

fn job(arrival: Ns, stream: u64, prompt: u32, output: u32) -> Job {
    Job { arrival, prompt, output, content: vec![Segment { stream, offset: 0, tokens: prompt }], ..Job::default() }
}

#[test]
fn a_tier_without_room_is_none() {
    for seed in 0..40 {
        let none = settings(seed);
        let nothing = Tier { blocks: 0, block: 1 << 30, latency: 1000 };
        let empty = Settings { tiers: vec![nothing, nothing], ..none.clone() };
        let turns = 1 + seed as u32 % 3;
        let (a, _) = run(none, 2, &mut traffic(20.0, turns, seed));
        let (b, counts) = run(empty, 2, &mut traffic(20.0, turns, seed));
        assert_eq!(a, b, "seed {seed}");
        assert!(counts.iter().all(|c| *c == Counts::default()), "seed {seed}");
    }
}

#[test]
fn below_without_end_is_found_what_a_chip_without_end_would_hold() {
    // One request at a time, so that only what is found differs.
    let mut fetched = 0;
    for seed in 0..30 {
        let mut chance = Chance::new(seed);
        let mut content = Vec::new();
        for i in 0..60 {
            let (a, b) = (1 + chance.below(400) as u32, 1 + chance.below(500) as u32);
            let shared = Segment { stream: chance.below(6), offset: 0, tokens: a };
            let own = Segment { stream: 100 + chance.below(20), offset: 0, tokens: b };
            let (arrival, output) = (i * 3000 * MS, 1 + chance.below(40) as u32);
            content.push(Job { arrival, prompt: a + b, output, content: vec![shared, own], ..Job::default() });
        }
        let small = Settings { num_blocks: 70, ..Settings::default() };
        let below = Settings { tiers: vec![FREE], ..small };
        let large = Settings { num_blocks: 1 << 20, ..Settings::default() };
        let (a, _) = run(below, 1, &mut Listed::new(content.clone()));
        let (b, _) = run(large, 1, &mut Listed::new(content));
        let cached = |all: &[Outcome]| all.iter().map(|o| o.cached).collect::<Vec<_>>();
        assert_eq!(cached(&a), cached(&b), "seed {seed}");
        fetched += a.iter().map(|o| u64::from(o.fetched)).sum::<u64>();
    }
    assert!(fetched > 10_000, "{fetched}");
}

#[test]
fn nothing_is_lost_below() {
    let mut fetched = 0;
    for seed in 0..60 {
        let host = Tier { blocks: [40, 400, 4000][seed as usize % 3], block: 30_000 << 20, latency: 50_000 };
        let disk = Tier { blocks: 1000, block: 90_000 << 20, latency: 300_000 };
        let tiers = if seed % 2 == 0 { vec![host] } else { vec![host, disk] };
        let world = Settings { tiers, ..settings(seed) };
        let (all, counts) = run(world, 2, &mut traffic(30.0, 1 + seed as u32 % 4, seed));
        assert_eq!(all.len(), 200, "seed {seed}: all are done");
        let found: u64 = counts.iter().map(|c| c.found).sum();
        let tokens: u64 = all.iter().map(|o| u64::from(o.fetched)).sum();
        assert!(tokens <= 16 * found, "seed {seed}: what requests fetched was found");
        fetched += tokens;
    }
    assert!(fetched > 10_000, "{fetched}");
}

#[test]
fn a_fetch_takes_its_latency_and_its_blocks_and_waits_for_its_link() {
    // A prompt of 160 tokens is pushed out of 32 blocks by one of 510. Asked for again, nine blocks are fetched,
    // 100 us each and 1 ms before.
    let tier = Tier { blocks: 1000, block: 100_000 << 20, latency: MS };
    let world = Settings { num_blocks: 33, tiers: vec![tier], ..Settings::default() };
    let at = 1000 * MS;
    let jobs = vec![job(0, 1, 160, 1), job(at, 2, 510, 1), job(2 * at, 1, 160, 1)];
    let (all, counts) = run(world.clone(), 1, &mut Listed::new(jobs));
    let o = all[2];
    assert_eq!((o.cached, o.fetched, o.queue, o.fetch), (144, 144, 0, MS + 900_000));
    // The rest is computed: 16 tokens behind 144.
    assert_eq!(o.prefill, 4_000_000 + 20_000 * 16 + 40_000 + 37 * 144);
    assert_eq!((counts[0].found, counts[0].carried, counts[0].busy), (9, 9, MS + 900_000));
    // Two different prompts at once: the second fetch waits for the first on the link.
    let jobs = vec![
        job(0, 1, 160, 1),
        job(at, 3, 160, 1),
        job(2 * at, 2, 510, 1),
        job(3 * at, 1, 160, 1),
        job(3 * at, 3, 160, 1),
    ];
    let (all, _) = run(world, 1, &mut Listed::new(jobs));
    assert_eq!(all[3].fetch, MS + 900_000);
    assert_eq!(all[4].fetch, 2 * (MS + 900_000));
}

#[test]
fn blocks_from_disk_pass_the_host() {
    // The host holds five blocks, the disk all: of nine blocks wanted none is in the host, which saw 510 tokens since.
    let host = Tier { blocks: 5, block: 100_000 << 20, latency: 0 };
    let disk = Tier { blocks: 1000, block: 500_000 << 20, latency: MS };
    let world = Settings { num_blocks: 33, tiers: vec![host, disk], ..Settings::default() };
    let jobs = vec![job(0, 1, 160, 1), job(1000 * MS, 2, 510, 1), job(2000 * MS, 1, 160, 1)];
    let (all, counts) = run(world, 1, &mut Listed::new(jobs));
    assert_eq!(all[2].fetch, MS + 9 * 500_000 + 9 * 100_000);
    assert_eq!((counts[0].found, counts[1].found), (0, 9));
    assert_eq!((counts[0].carried, counts[1].carried), (9, 9));
}
