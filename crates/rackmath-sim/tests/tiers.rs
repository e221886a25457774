//! Memory below the chip's own: laws, and a case worked by hand.

use rackmath_sim::Ns;
use rackmath_sim::blocks::Segment;
use rackmath_sim::clock::Law;
use rackmath_sim::cluster::{Cluster, Deal, Groups, Link, Router};
use rackmath_sim::engine::sglang::{HiCache, PrefetchPolicy, WritePolicy};
use rackmath_sim::engine::vllm::Settings;
use rackmath_sim::engine::{self, sglang, trtllm};
use rackmath_sim::replica::{Lockstep, Pace};
use rackmath_sim::tally::{Keep, Limits, Outcome, Tally};
use rackmath_sim::tiers::{Counts, Tier};
use rackmath_sim::workload::{Arrivals, Drawn, Job, Length, Listed, Sharing, Source, Traffic};
use rackmath_units::{Chance, Effort};

const MS: Ns = 1_000_000;
const FREE: Tier = Tier { blocks: u64::MAX, block: 0, latency: 0 };

fn run(settings: impl Into<engine::Settings>, n: usize, source: &mut impl Source) -> (Vec<Outcome>, Vec<Counts>) {
    run_as(Cluster::alike(settings, n, Law::default(), Router::RoundRobin, 7, Pace::Jumps), source)
}

fn run_as(mut cluster: Cluster<Law>, source: &mut impl Source) -> (Vec<Outcome>, Vec<Counts>) {
    let limits = Limits::default();
    let keep = Keep { warm: 0, requests: 1000, batches: 8, limits, outside: 0, each: true, worst: 5 };
    let mut tally = Tally::new(keep);
    cluster.run(source, &mut tally, &Effort::default()).unwrap();
    tally.each.sort_by_key(|o| o.id);
    for o in &tally.each {
        let parts = o.queue + o.fetch + o.prefill + o.transfer + o.decode + o.stalled + o.evicted;
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

/// Fewer tokens than one are not loaded.
fn hicache(host: u64, storage: Option<u64>) -> HiCache {
    let (engine, _) = rackmath_catalog::embedded().engine("sglang").unwrap();
    let mut rules = engine.host_cache.unwrap();
    (rules.load_tokens, rules.prefetch_tokens) = (1, 16);
    HiCache {
        host: Tier { blocks: host, block: 2_000 << 20, latency: 50_000 },
        storage: storage.map(|blocks| Tier { blocks, block: 6_000 << 20, latency: 300_000 }),
        page: 16,
        write: WritePolicy::WriteThrough,
        prefetch: PrefetchPolicy::WaitComplete,
        rules,
    }
}

fn sglang(s: &Settings, hicache: Option<HiCache>) -> sglang::Settings {
    let (engine, _) = rackmath_catalog::embedded().engine("sglang").unwrap();
    sglang::Settings {
        max_running_requests: s.max_num_seqs,
        max_total_tokens: s.num_blocks * s.block_size,
        chunked_prefill_size: Some(s.max_num_batched_tokens),
        disable_overlap_schedule: !s.async_scheduling,
        hicache,
        ..sglang::Settings::new(engine.reckoning.unwrap())
    }
}

fn trtllm(s: &Settings, host: Option<Tier>) -> trtllm::Settings {
    let (all, some) = (trtllm::Capacity::MaxUtilization, trtllm::Capacity::GuaranteedNoEvict);
    trtllm::Settings {
        max_batch_size: s.max_num_seqs,
        max_num_tokens: s.max_num_batched_tokens,
        capacity: if s.max_num_seqs > 8 { all } else { some },
        chunking: (s.max_num_batched_tokens < 1000).then_some(trtllm::Chunking::FirstComeFirstServed),
        tokens_per_block: s.block_size,
        blocks: s.num_blocks,
        disable_overlap_scheduler: !s.async_scheduling,
        host,
        ..trtllm::Settings::default()
    }
}

/// The same world under each engine, with so much host memory, and where an engine has it storage, for so many tokens.
fn worlds(s: &Settings, host: u64, storage: u64, seed: u64) -> [engine::Settings; 3] {
    let size = u64::from(s.block_size);
    let tier = |tokens: u64, block: i64| Tier { blocks: tokens / size, block: block << 20, latency: 50_000 };
    let mut below = hicache(host, (storage > 0).then_some(storage));
    below.write =
        [WritePolicy::WriteThrough, WritePolicy::WriteThroughSelective, WritePolicy::WriteBack][seed as usize % 3];
    below.prefetch =
        [PrefetchPolicy::BestEffort, PrefetchPolicy::WaitComplete, PrefetchPolicy::Timeout][seed as usize / 3 % 3];
    let tiers = [tier(host, 30_000), tier(storage, 90_000)].into_iter().filter(|t| t.blocks > 0).collect();
    [Settings { tiers, ..s.clone() }.into(), sglang(s, Some(below)).into(), trtllm(s, Some(tier(host, 30_000))).into()]
}

#[test]
fn under_every_engine_a_tier_without_room_is_none_and_nothing_is_lost() {
    let mut fetched = [0; 3];
    for seed in 0..60 {
        let s = settings(seed);
        let plain = worlds(&s, 0, 0, seed);
        let (host, storage) = ([600, 6000, 60_000][seed as usize % 3], [0, 40_000][seed as usize % 2]);
        let turns = 1 + seed as u32 % 4;
        for (at, with) in worlds(&s, host, storage, seed).into_iter().enumerate() {
            let none: engine::Settings = match &plain[at] {
                engine::Settings::Vllm(s) => s.into(),
                engine::Settings::Sglang(s) => sglang::Settings { hicache: None, ..s.clone() }.into(),
                engine::Settings::Trtllm(s) => trtllm::Settings { host: None, ..s.clone() }.into(),
            };
            let a = run(none, 2, &mut traffic(20.0, turns, seed)).0;
            let b = run(plain[at].clone(), 2, &mut traffic(20.0, turns, seed)).0;
            assert_eq!(a, b, "seed {seed}: a tier of no size is none, {:?}", plain[at]);
            let mut paces = [Pace::General, Pace::Steps, Pace::Jumps].map(|pace| {
                let all = Cluster::alike(with.clone(), 2, Law::default(), Router::RoundRobin, 7, pace);
                run_as(all, &mut traffic(20.0, turns, seed))
            });
            assert_eq!(paces[0], paces[1], "seed {seed} {with:?}");
            assert_eq!(paces[0], paces[2], "seed {seed} {with:?}");
            let (all, counts) = std::mem::take(&mut paces[0]);
            assert_eq!(all.len(), 200, "seed {seed} {with:?}: all are done");
            let size: u64 = with.block().into();
            let (found, tokens) = (counts[0].carried * size, all.iter().map(|o| u64::from(o.fetched)).sum::<u64>());
            assert!(tokens <= found, "seed {seed} {with:?}: what requests fetched came from the host");
            fetched[at] += tokens;
        }
    }
    assert!(fetched.iter().all(|n| *n > 10_000), "{fetched:?}");
}

#[test]
fn tiers_go_with_groups_and_with_pools() {
    let mut fetched = [[0; 3]; 2];
    for seed in 0..30 {
        let s = settings(seed);
        for (at, with) in worlds(&s, 20_000, 40_000, seed).into_iter().enumerate() {
            for pools in [0, 1] {
                let runs = [Pace::General, Pace::Jumps].map(|pace| {
                    let all = Cluster::alike(with.clone(), 4, Law::default(), Router::RoundRobin, 7, pace);
                    let steps = Lockstep { sync: 16, dummy: 1 };
                    let all = match pools {
                        0 => all.grouped(0, Groups { n: 2, steps, deal: Deal::InTurn }),
                        _ => all.sending(2, Link::new(|tokens| 1000 * Ns::from(tokens))),
                    };
                    run_as(all, &mut traffic(20.0, 1 + seed as u32 % 4, seed))
                });
                assert_eq!(runs[0], runs[1], "seed {seed} pools {pools} {with:?}");
                assert_eq!(runs[0].0.len(), 200, "seed {seed} pools {pools} {with:?}: all are done");
                fetched[pools][at] += runs[0].0.iter().map(|o| u64::from(o.fetched)).sum::<u64>();
            }
        }
    }
    assert!(fetched.iter().flatten().all(|n| *n > 1000), "{fetched:?}");
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
    let mut fetched = [0; 4];
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
        let large = Settings { num_blocks: 1 << 20, ..Settings::default() };
        let all = HiCache { host: FREE, ..hicache(1, None) };
        let late = HiCache { write: WritePolicy::WriteBack, ..all.clone() };
        let pairs: [(engine::Settings, engine::Settings); 4] = [
            (Settings { tiers: vec![FREE], ..small.clone() }.into(), (&large).into()),
            (sglang(&small, Some(all)).into(), sglang(&large, None).into()),
            (sglang(&small, Some(late)).into(), sglang(&large, None).into()),
            (trtllm(&small, Some(FREE)).into(), trtllm(&large, None).into()),
        ];
        for (at, (below, large)) in pairs.into_iter().enumerate() {
            let (a, _) = run(below, 1, &mut Listed::new(content.clone()));
            let (b, _) = run(large, 1, &mut Listed::new(content.clone()));
            let cached = |all: &[Outcome]| all.iter().map(|o| o.cached).collect::<Vec<_>>();
            assert_eq!(cached(&a), cached(&b), "seed {seed}, {at}");
            fetched[at] += a.iter().map(|o| u64::from(o.fetched)).sum::<u64>();
        }
    }
    assert!(fetched.iter().all(|n| *n > 10_000), "{fetched:?}");
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

/// SGLang with room for 600 tokens: a prompt of 160 tokens, one of 500 that pushes it out, and the first again.
fn pushed_out(h: HiCache) -> Outcome {
    let small = Settings { num_blocks: 600, block_size: 1, ..Settings::default() };
    let world = sglang(&small, Some(h));
    let jobs = vec![job(0, 1, 160, 2), job(1000 * MS, 2, 500, 2), job(2000 * MS, 1, 160, 2)];
    run(world, 1, &mut Listed::new(jobs)).0[2]
}

#[test]
fn what_the_host_has_comes_up_behind_the_step() {
    // 159 tokens are there; one is computed: 4,000,000 + 20,000 + 40,000 + 37 * 159.
    let step = 4_060_000 + 37 * 159;
    for (token, end) in [(2_000, step), (100_000, 50_000 + 159 * 100_000)] {
        let host = Tier { blocks: 10_000, block: token << 20, latency: 50_000 };
        let o = pushed_out(HiCache { host, ..hicache(1, None) });
        assert_eq!((o.cached, o.fetched, o.queue, o.fetch, o.prefill), (159, 159, 0, 0, end));
    }
    // What is met once is not copied where only what is met again is: at its end a request meets its prompt again.
    let selective = HiCache { write: WritePolicy::WriteThroughSelective, ..hicache(10_000, None) };
    assert_eq!(pushed_out(selective.clone()).fetched, 159);
    let mut often = selective;
    often.rules.selective_meetings = 3;
    assert_eq!(pushed_out(often).fetched, 0);
}

#[test]
fn a_request_waits_for_storage_as_long_as_it_is_told() {
    // The host holds 650 tokens: the prompt of 500 pushed the first out of it too, and storage has it in nine pages of 16 that
    // a request may want, 6 us a token, and 300 us before.
    let with = |prefetch, timeout_s: f64| {
        let mut h = HiCache { prefetch, ..hicache(650, Some(10_000)) };
        (h.rules.timeout_s, h.rules.timeout_s_per_ki) = (timeout_s, 0.0);
        pushed_out(h)
    };
    let all = 300_000 + 144 * 6_000;
    let (wait, patient, hasty) = (
        with(PrefetchPolicy::WaitComplete, 0.0),
        with(PrefetchPolicy::Timeout, 1.0),
        with(PrefetchPolicy::Timeout, 0.0009),
    );
    assert_eq!((wait.cached, wait.fetched, wait.queue, wait.fetch), (144, 144, 0, all));
    assert_eq!((patient.cached, patient.fetch), (144, all));
    // 600 us of fetching are 100 tokens, six whole pages.
    assert_eq!((hasty.cached, hasty.fetch), (96, 900_000));
    let none = with(PrefetchPolicy::BestEffort, 0.0);
    assert_eq!((none.cached, none.fetch, none.queue), (0, 0, 0));
}

#[test]
fn a_step_waits_for_blocks_that_move_up() {
    // As under vLLM: nine blocks of 100 us and 1 ms before; the host had nothing else to give up.
    let host = Tier { blocks: 1000, block: 100_000 << 20, latency: MS };
    let world = trtllm(&Settings { num_blocks: 32, max_num_batched_tokens: 2048, ..Settings::default() }, Some(host));
    let jobs = vec![job(0, 1, 160, 1), job(1000 * MS, 2, 510, 1), job(2000 * MS, 1, 160, 1)];
    let (all, counts) = run(world, 1, &mut Listed::new(jobs));
    let o = all[2];
    assert_eq!((o.cached, o.fetched), (144, 144));
    assert_eq!(o.prefill, MS + 900_000 + 4_000_000 + 20_000 * 16 + 40_000 + 37 * 144);
    // What moved up is no more in the host.
    assert_eq!((counts[0].found, counts[0].carried, counts[0].busy), (9, 9, MS + 900_000));
}

#[test]
fn more_host_memory_finds_no_less_on_the_whole() {
    // Not a law of every run: what is found changes what is looked at last.
    for engine in 0..3 {
        let found = [500, 2000, 8000, 32_000].map(|host| {
            let one = |seed: u64| {
                let s = Settings { num_blocks: 120, ..settings(seed) };
                let (all, _) = run(worlds(&s, host, 0, 3)[engine].clone(), 1, &mut traffic(5.0, 3, seed));
                all.iter().map(|o| u64::from(o.cached)).sum::<u64>()
            };
            (0..12).map(one).sum::<u64>()
        });
        assert!(found.windows(2).all(|w| w[0] <= w[1]) && found[0] < found[3], "{engine}: {found:?}");
    }
}
