//! Attention groups that take their steps together: laws, and cases worked by hand.

use rackmath_sim::Ns;
use rackmath_sim::clock::{Clock, Law, Timed};
use rackmath_sim::cluster::{Cluster, Deal, Groups, Router};
use rackmath_sim::engine::{Settings, sglang, trtllm, vllm};
use rackmath_sim::replica::{Lockstep, Totals};
use rackmath_sim::tally::{Keep, Limits, Outcome, Tally};
use rackmath_sim::workload::{Arrivals, Drawn, Job, Length, Listed, Sharing, Source, Traffic};
use rackmath_theory::timer::{Beside, Cost, Limit, Part, StepTimer, Work};
use rackmath_units::{Chance, Effort, Seconds};

const ALONE: Lockstep = Lockstep { sync: 1, dummy: 0 };
const BY_LOAD: Deal = Deal::Load { waiting: 4, report: 0 };

/// Rows of the largest group and of all cost as well.
#[derive(Clone)]
struct Shared;

impl StepTimer for Shared {
    type Uncovered = std::convert::Infallible;

    fn time(&self, work: &Work) -> Result<Cost, Self::Uncovered> {
        let context: f64 = work.decodes.iter().map(|d| d.sequences * d.context).sum();
        let beside = work.beside.unwrap_or(Beside { most: work.rows(), mean: work.rows() });
        let time = 4e-3 + 11e-6 * work.rows() + 7e-6 * beside.mean + 1e-6 * beside.most + 2e-8 * context;
        Ok(Cost::of(Part::Products, Limit::Memory, Seconds::s(time)))
    }
}

fn traffic(seed: u64) -> Drawn {
    let mut chance = Chance::new(seed ^ 0x77);
    Drawn::new(Traffic {
        arrivals: Arrivals::Open { rate: [2.0, 20.0, 60.0][chance.below(3) as usize], cv: 1.0 },
        input: Length::Even(10, 500),
        output: Length::Even(1, 90),
        sharing: Sharing { prefixes: 4, prefix_tokens: 96, turns: 1, think_s: 0.0 },
        requests: 150,
        seed,
        longest: 900,
    })
}

fn settings(seed: u64) -> Settings {
    let mut chance = Chance::new(seed);
    let mut pick = |all: &[u32]| all[chance.below(all.len() as u64) as usize];
    let (sequences, step, overlap) = (pick(&[4, 32, 128]), pick(&[64, 512, 2048]), pick(&[0, 1]) == 1);
    let room = pick(&[1600, 6000, 100_000]);
    match seed % 3 {
        0 => vllm::Settings {
            max_num_seqs: sequences,
            max_num_batched_tokens: step,
            num_blocks: room / 16,
            async_scheduling: overlap,
            ..vllm::Settings::default()
        }
        .into(),
        1 => {
            let (engine, _) = rackmath_catalog::embedded().engine("sglang").unwrap();
            sglang::Settings {
                max_running_requests: sequences,
                chunked_prefill_size: Some(step),
                max_total_tokens: room,
                disable_overlap_schedule: !overlap,
                ..sglang::Settings::new(engine.reckoning.unwrap())
            }
            .into()
        }
        _ => trtllm::Settings {
            max_batch_size: sequences,
            max_num_tokens: step.max(1024),
            blocks: room / 32,
            disable_overlap_scheduler: !overlap,
            ..trtllm::Settings::default()
        }
        .into(),
    }
}

struct Ran {
    outcomes: Vec<Outcome>,
    gaps: String,
    totals: Vec<Totals>,
    free: Vec<String>,
}

fn run<C: Clock>(mut cluster: Cluster<C>, source: &mut impl Source) -> Ran {
    let limits = Limits::default();
    let keep = Keep { warm: 0, requests: 1000, batches: 8, limits, outside: 0, each: true, worst: 5 };
    let mut tally = Tally::new(keep);
    cluster.run(source, &mut tally, &Effort::default()).unwrap();
    tally.each.sort_by_key(|o| o.id);
    for o in &tally.each {
        assert_eq!(o.queue + o.prefill + o.decode + o.stalled + o.evicted, o.e2e(), "parts add up: {o:?}");
    }
    for r in &cluster.replicas {
        assert_eq!((r.running(), r.waiting()), (0, 0));
        assert_eq!(r.engine.free(), r.engine.usable(), "all blocks are given back");
    }
    let (totals, free) =
        cluster.replicas.iter().map(|r| (r.totals, format!("{} {}", r.queued(), r.engine.free_list()))).unzip();
    Ran { outcomes: tally.each, gaps: format!("{:?}", tally.gaps), totals, free }
}

#[test]
fn one_group_is_the_undivided_replica() {
    for seed in 0..90 {
        let whole = |n| Cluster::alike(settings(seed), n, Timed::new(Shared), Router::RoundRobin, 7, false);
        let groups = Groups { n: 1, steps: ALONE, deal: BY_LOAD };
        let (a, b) = (run(whole(2), &mut traffic(seed)), run(whole(2).grouped(0, groups), &mut traffic(seed)));
        assert_eq!(a.outcomes.len(), 150, "seed {seed}: all are done");
        assert_eq!(a.outcomes, b.outcomes, "seed {seed}");
        assert_eq!((a.gaps, a.totals, a.free), (b.gaps, b.totals, b.free), "seed {seed}");
    }
}

#[test]
fn groups_step_together_and_lose_nothing() {
    let mut dummies = 0;
    for seed in 0..90 {
        let n = [2, 4, 8][seed as usize % 3];
        let deal = if seed % 2 == 0 { BY_LOAD } else { Deal::InTurn };
        let steps = Lockstep { sync: [1, 16, 32][seed as usize / 3 % 3], dummy: (seed % 2) as u32 };
        let groups = Groups { n, steps, deal };
        let all = Cluster::alike(settings(seed), 2 * n, Timed::new(Shared), Router::RoundRobin, 7, false);
        let ran = run(all.grouped(0, groups), &mut traffic(seed));
        assert_eq!(ran.outcomes.len(), 150, "seed {seed}: all are done");
        for set in ran.totals.chunks(n) {
            let first = set[0];
            for t in set {
                // What a group does not work while another does, it steps along.
                assert_eq!(t.steps + t.dummies, first.steps + first.dummies, "seed {seed}");
                assert_eq!(t.busy + t.dummy, first.busy + first.dummy, "seed {seed}");
                assert_eq!(t.mixed, first.mixed, "prompts of one stall all");
            }
            assert!((first.steps + first.dummies).is_multiple_of(steps.sync), "waves end where all look");
        }
        dummies += ran.totals.iter().map(|t| t.dummies).sum::<u64>();
    }
    assert!(dummies > 1000, "{dummies}");
}

#[test]
fn steps_at_once_are_the_steps_one_by_one() {
    for seed in 0..120 {
        let n = [2, 3, 8][seed as usize % 3];
        let steps = Lockstep { sync: [1, 16, 32][seed as usize / 3 % 3], dummy: (seed % 2) as u32 };
        let groups = Groups { n, steps, deal: if seed % 5 == 0 { Deal::InTurn } else { BY_LOAD } };
        // vLLM's only: others go step by step.
        let settings = settings(3 * seed);
        let all = |quick| {
            let all = Cluster::alike(settings.clone(), 2 * n, Timed::new(Shared), Router::RoundRobin, 7, quick);
            run(all.grouped(0, groups), &mut traffic(seed))
        };
        let (a, b) = (all(true), all(false));
        assert_eq!(a.outcomes, b.outcomes, "seed {seed}");
        assert_eq!((a.gaps, a.totals, a.free), (b.gaps, b.totals, b.free), "seed {seed}");
    }
}

#[test]
fn the_slowest_group_sets_the_pace() {
    // Prompts of 567 and 100 tokens, dealt in turn: 4,000,000 + 20,000 * 567 + 40,000 for both; then each decodes beside the
    // other: the longer context takes 4,060,000 + 37 * 567.
    let job = |prompt, output| Job { prompt, output, ..Job::default() };
    let groups = Groups { n: 2, steps: ALONE, deal: Deal::InTurn };
    let settings = vllm::Settings::default();
    let pair = Cluster::alike(settings, 2, Law::default(), Router::RoundRobin, 7, false).grouped(0, groups);
    let ran = run(pair, &mut Listed::new(vec![job(567, 3), job(100, 2)]));
    let (long, short) = (ran.outcomes[0], ran.outcomes[1]);
    assert_eq!((long.replica, short.replica), (0, 1));
    assert_eq!((long.ttft(), short.ttft()), (15_380_000, 15_380_000));
    assert_eq!(short.e2e(), 15_380_000 + 4_080_979);
    assert_eq!(long.e2e(), 15_380_000 + 4_080_979 + 4_081_016);
    // The second group has nothing in the last step.
    assert_eq!((ran.totals[0].steps, ran.totals[0].dummies), (3, 0));
    assert_eq!((ran.totals[1].steps, ran.totals[1].dummies, ran.totals[1].dummy), (2, 1, 4_081_016));
}

#[test]
fn requests_go_to_the_group_with_the_least() {
    // Six at once over three groups: one that waits weighs as four that run, so that each gets two.
    let jobs = (0..6).map(|_| Job { prompt: 50, output: 20, ..Job::default() }).collect();
    let groups = Groups { n: 3, steps: ALONE, deal: BY_LOAD };
    let settings = vllm::Settings::default();
    let all = Cluster::alike(settings, 3, Law::default(), Router::RoundRobin, 7, false).grouped(0, groups);
    let ran = run(all, &mut Listed::new(jobs));
    let on = |at| ran.outcomes.iter().filter(|o| o.replica == at).count();
    assert_eq!([on(0), on(1), on(2)], [2, 2, 2]);
    let first: Vec<Ns> = ran.outcomes.iter().map(Outcome::ttft).collect();
    assert!(first.iter().all(|t| *t == first[0]), "all prompts are in the one step");
}
