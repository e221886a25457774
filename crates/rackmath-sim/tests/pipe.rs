//! Replicas of several pipeline stages: a case worked by hand, and laws.

use rackmath_sim::Ns;
use rackmath_sim::clock::Law;
use rackmath_sim::cluster::{Cluster, Link, Router};
use rackmath_sim::engine::vllm::Settings;
use rackmath_sim::replica::Pace;
use rackmath_sim::tally::{Keep, Limits, Outcome, Tally};
use rackmath_sim::workload::{Arrivals, Drawn, Job, Length, Listed, Sharing, Source, Traffic, Users};
use rackmath_units::{Chance, Effort};

const MS: Ns = 1_000_000;

fn run(mut cluster: Cluster<Law>, source: &mut impl Source) -> Vec<Outcome> {
    let limits = Limits::default();
    let keep = Keep { warm: 0, requests: 1000, batches: 8, limits, outside: 0, each: true, worst: 5 };
    let mut tally = Tally::new(keep);
    cluster.run(source, &mut tally, &Effort::default()).unwrap();
    for r in &cluster.replicas {
        assert_eq!((r.running(), r.waiting(), r.queued()), (0, 0, 0), "all are done");
        assert_eq!(r.engine.free(), r.engine.usable(), "all blocks are given back");
    }
    tally.each.sort_by_key(|o| o.id);
    for o in &tally.each {
        let parts = o.queue + o.fetch + o.prefill + o.transfer + o.decode + o.stalled + o.evicted;
        assert_eq!(parts, o.e2e(), "parts add up: {o:?}");
    }
    tally.each
}

fn alike(settings: &Settings, stages: u32, pace: Pace) -> Cluster<Law> {
    let settings = Settings { pipeline_parallel_size: stages, async_scheduling: false, ..settings.clone() };
    Cluster::alike(settings, 2, Law::default(), Router::RoundRobin, 7, pace)
}

fn job(arrival: Ns, prompt: u32, output: u32) -> Job {
    Job { arrival, prompt, output, ..Job::default() }
}

#[test]
fn chunks_of_a_prompt_follow_each_other_through_the_stages() {
    // Two chunks of 100 tokens: 6,040,000 and, behind 100 tokens, 6,043,700. The second enters the first of two stages when the
    // first leaves it, after 3,020,000, and the last stage at 6,041,850: 3,021,850 later it is done.
    let world = Settings { max_num_batched_tokens: 100, ..Settings::default() };
    let two = run(alike(&world, 2, Pace::Jumps), &mut Listed::new(vec![job(0, 200, 3)]));
    assert_eq!(two[0].ttft(), 9_063_700);
    // Decodes go round: nothing of it is in another batch.
    assert_eq!(two[0].decode, 2 * 4_060_000 + 37 * (200 + 201));
    let one = run(alike(&world, 1, Pace::Jumps), &mut Listed::new(vec![job(0, 200, 3)]));
    assert_eq!(one[0].ttft(), 6_040_000 + 6_043_700);
}

#[test]
fn one_request_at_a_time_sees_no_stages() {
    let jobs = || Listed::new((0..40).map(|i| job(i * 2000 * MS, 20 + 37 * i as u32 % 900, 1 + i as u32)).collect());
    let whole = run(alike(&Settings::default(), 1, Pace::Jumps), &mut jobs());
    for stages in [2, 3, 8] {
        assert_eq!(run(alike(&Settings::default(), stages, Pace::Jumps), &mut jobs()), whole, "{stages}");
    }
}

#[test]
fn stages_work_at_once() {
    // Prompts alone that fill a batch each: with enough of them, p stages take nearly p times as many in the same time.
    let world = Settings { max_num_batched_tokens: 512, ..Settings::default() };
    let span = |stages| {
        let jobs = (0..200).map(|_| job(0, 512, 1)).collect();
        let all = run(alike(&world, stages, Pace::Jumps), &mut Users::new(jobs, 32));
        all.iter().map(|o| o.arrival + o.e2e()).max().unwrap() as f64
    };
    let one = span(1);
    for stages in [2, 4] {
        let times = one / span(stages);
        assert!((0.9..=1.0).contains(&(times / f64::from(stages))), "{stages}: {times}");
    }
}

#[test]
fn nothing_is_lost_in_a_pipeline_and_all_paces_are_one() {
    let mut evicted = 0;
    for seed in 0..80 {
        let mut chance = Chance::new(seed);
        let mut pick = |all: &[u32]| all[chance.below(all.len() as u64) as usize];
        let world = Settings {
            max_num_seqs: pick(&[4, 32]),
            max_num_batched_tokens: pick(&[128, 1024]),
            num_blocks: pick(&[110, 200, 600]),
            ..Settings::default()
        };
        let stages = pick(&[2, 3, 4]);
        let runs = [Pace::General, Pace::Steps, Pace::Jumps].map(|pace| {
            let sharing = Sharing { prefixes: 5, prefix_tokens: 160, turns: 1 + seed as u32 % 3, think_s: 1.0 };
            let arrivals = Arrivals::Open { rate: 30.0, cv: 1.0 };
            let (input, output) = (Length::Even(20, 400), Length::Even(1, 90));
            let traffic = Traffic { arrivals, input, output, sharing, requests: 200, seed, longest: 1500 };
            let mut all = alike(&world, stages, pace);
            if seed % 4 == 3 {
                all = all.sending(1, Link::new(|tokens| 1000 * Ns::from(tokens)));
            }
            run(all, &mut Drawn::new(traffic))
        });
        assert_eq!(runs[0], runs[1], "seed {seed}");
        assert_eq!(runs[0], runs[2], "seed {seed}");
        assert_eq!(runs[0].len(), 200, "seed {seed}: all are done");
        evicted += runs[0].iter().map(|o| o.preempted).sum::<u32>();
    }
    assert!(evicted > 100, "{evicted}");
}
