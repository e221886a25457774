//! Laws of clusters: nothing is lost, all paces give the same, parts merge to the whole; and cases worked by hand.

use rackmath_sim::Ns;
use rackmath_sim::blocks::Segment;
use rackmath_sim::clock::Law;
use rackmath_sim::cluster::{
    Cluster, Deal, Groups, Incidents, Link, Router, Rules, Scaling, Script, Scripted, Weights,
};
use rackmath_sim::engine::vllm::Settings;
use rackmath_sim::engine::{self, sglang, trtllm};
use rackmath_sim::replica::{Lockstep, Pace};
use rackmath_sim::tally::{Failure, Keep, Limits, Outcome, Tally, Why};
use rackmath_sim::workload::{Arrivals, Drawn, Job, Length, Listed, Sharing, Source, Traffic, Users};
use rackmath_units::{Cancel, Chance, Effort};

const MS: Ns = 1_000_000;
const ALL: [Router; 11] = [
    Router::RoundRobin,
    Router::Random,
    Router::Connections,
    Router::TwoChoices,
    Router::LeastLoaded,
    Router::Session,
    Router::PrefixHash,
    Router::BoundedHash,
    Router::Kv,
    Router::CacheAware,
    Router::Scored,
];

fn tally(requests: u64) -> Tally {
    let limits = Limits::default();
    Tally::new(Keep { warm: 0, requests, batches: 8, limits, outside: 0, each: true, worst: 5 })
}

fn job(arrival: Ns, prompt: u32, output: u32) -> Job {
    Job { arrival, prompt, output, ..Job::default() }
}

fn link(latency: Ns, token: Ns) -> Link {
    Link::new(move |tokens| latency + token * Ns::from(tokens))
}

fn cluster(n: usize, router: Router, pace: impl Into<Pace>) -> Cluster<Law> {
    Cluster::alike(Settings::default(), n, Law::default(), router, 7, pace)
}

fn outcomes(mut cluster: Cluster<Law>, source: &mut impl Source) -> (Vec<Outcome>, Incidents) {
    let mut tally = tally(1000);
    cluster.run(source, &mut tally, &Effort::default()).unwrap();
    tally.each.sort_by_key(|o| o.id);
    for o in &tally.each {
        let parts = o.retried + o.queue + o.prefill + o.transfer + o.decode + o.stalled + o.evicted;
        assert_eq!(parts, o.e2e(), "parts add up to the whole");
    }
    let (failures, happened) = (&tally.failures, cluster.incidents);
    let timed_out = failures.iter().filter(|f| f.why == Why::TimedOut).count() as u64;
    assert_eq!(
        (failures.len() as u64, timed_out),
        (happened.failed, happened.timed_out),
        "each failure has its reason"
    );
    let mut ids: Vec<u64> = tally.each.iter().map(|o| o.id).chain(failures.iter().map(|f| f.id)).collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..happened.arrived), "every request is answered or has failed, once");
    for r in &cluster.replicas {
        assert_eq!(r.engine.free(), r.engine.usable(), "all blocks are given back");
        assert_eq!((r.running(), r.waiting(), r.queued()), (0, 0, 0));
    }
    (tally.each, cluster.incidents)
}

/// Poisson traffic with prefixes that are shared.
fn drawn(rate: f64, requests: u64, seed: u64) -> Drawn {
    Drawn::new(Traffic {
        arrivals: Arrivals::Open { rate, cv: 1.0 },
        input: Length::Even(20, 600),
        output: Length::Even(1, 120),
        sharing: Sharing { prefixes: 6, prefix_tokens: 160, turns: 1, think_s: 0.0 },
        requests,
        seed,
        longest: 2000,
    })
}

#[test]
fn one_request_between_two_pools_takes_its_prompt_its_transfer_and_its_steps() {
    // A prompt of 567: 4,000,000 + 20,000 * 567 + 40,000. Then steps of 4,060,000 + 37 for each token before.
    for pace in [Pace::General, Pace::Steps, Pace::Jumps] {
        let pools = cluster(2, Router::RoundRobin, pace).sending(1, link(5000, 1000));
        let (all, happened) = outcomes(pools, &mut Listed::new(vec![job(100_362_141, 567, 3)]));
        let o = all[0];
        assert_eq!((o.queue, o.prefill, o.transfer), (0, 15_380_000, 5000 + 567_000));
        assert_eq!(o.ttft(), 15_952_000);
        assert_eq!(o.decode, 4_080_979 + 4_081_016);
        assert_eq!((happened.transfers, o.replica), (1, 1));
    }
}

#[test]
fn setting_a_hand_over_up_delays_it_and_nobody_else() {
    // Two prompts that end together: 10 ms on the link each, one after the other, and 7 ms for each beside.
    let pools = cluster(2, Router::RoundRobin, true).sending(1, link(0, 100_000).beside(7 * MS));
    let (all, _) = outcomes(pools, &mut Listed::new(vec![job(0, 100, 2), job(0, 100, 2)]));
    let mut times: Vec<Ns> = all.iter().map(|o| o.transfer).collect();
    times.sort_unstable();
    assert_eq!(times, [17 * MS, 27 * MS]);
}

#[test]
fn a_segment_of_no_tokens_hides_nothing_behind_it() {
    let content = [(1, 0), (2, 160)].map(|(stream, tokens)| Segment { stream, offset: 0, tokens });
    let jobs = [0, 1000].map(|ms| Job { content: content.to_vec(), ..job(ms * MS, 160, 2) });
    let (met, _) = outcomes(cluster(1, Router::RoundRobin, true), &mut Listed::new(jobs.to_vec()));
    // All blocks of 16 but the one with the last token.
    assert_eq!((met[0].cached, met[1].cached), (0, 144));
}

#[test]
fn the_next_request_is_sent_when_one_of_the_users_is_free() {
    let jobs = vec![job(0, 100, 1), job(0, 300, 1), job(0, 200, 1)];
    let one = Settings { max_num_seqs: 1, ..Settings::default() };
    let alone = Cluster::alike(one, 1, Law::default(), Router::RoundRobin, 7, true);
    let (met, _) = outcomes(alone, &mut Users::new(jobs, 2));
    // 4 ms a step, 20 us a token, 40 us a request: the second waits for the first, the third is sent when that is done.
    let (first, second) = (6_040_000, 10_040_000);
    let facts: Vec<(Ns, Ns)> = met.iter().map(|o| (o.arrival, o.queue)).collect();
    assert_eq!(facts, [(0, 0), (0, first), (first, second)]);
}

#[test]
fn caches_leave_a_replica_one_after_the_other() {
    // Two prompts of one step end together: the second cache waits for the first.
    let pools = cluster(2, Router::RoundRobin, true).sending(1, link(0, 100_000));
    let (all, _) = outcomes(pools, &mut Listed::new(vec![job(0, 100, 2), job(0, 100, 2)]));
    let mut times: Vec<Ns> = all.iter().map(|o| o.transfer).collect();
    times.sort_unstable();
    assert_eq!(times[0], 10 * MS);
    // When the second comes, the first is in its only step, 4,060,000 + 37 * 100: ended before 20 ms.
    assert_eq!(times[1], 20 * MS);
}

#[test]
fn blocks_of_a_prompt_are_held_until_its_cache_is_sent() {
    // Room for one prompt of 64 blocks: the second can only start when the cache of the first is gone.
    let tight = Settings { num_blocks: 70, block_size: 16, ..Settings::default() };
    let pools = Cluster::mixed(
        vec![(tight.into(), 1, Law::default()), (Settings::default().into(), 1, Law::default())],
        Router::RoundRobin,
        1,
        true,
    );
    let (all, _) =
        outcomes(pools.sending(1, link(50 * MS, 0)), &mut Listed::new(vec![job(0, 1000, 2), job(0, 1000, 2)]));
    assert_eq!(all[0].prefill, 4 * MS + 20_000 * 1000 + 40_000);
    assert_eq!(all[1].queue, all[0].prefill + 50 * MS);
}

#[test]
fn a_full_queue_refuses_and_retries_come_later() {
    // One sequence at a time, at most one waiting; the third of three at once is refused.
    let one = Settings { max_num_seqs: 1, ..Settings::default() };
    let at_once = || Listed::new(vec![job(0, 10, 2), job(1, 10, 2), job(2, 10, 2)]);
    let rules = Rules { most_queued: Some(1), ..Rules::default() };
    let alone = |rules| Cluster::alike(&one, 1, Law::default(), Router::RoundRobin, 1, true).under(rules);
    let (all, happened) = outcomes(alone(rules.clone()), &mut at_once());
    assert_eq!((all.len(), happened.refused, happened.failed, happened.arrived), (2, 1, 1, 3));
    let mut kept = tally(3);
    alone(rules.clone()).run(&mut at_once(), &mut kept, &Effort::default()).unwrap();
    let refused = Failure { id: 2, arrival: 2, prompt: 10, output: 2, class: 0, attempts: 1, at: 2, why: Why::Refused };
    assert_eq!(kept.failures, [refused]);
    let (all, happened) = outcomes(alone(Rules { retries: 8, backoff: 10 * MS, ..rules }), &mut at_once());
    assert_eq!((all.len(), happened.failed), (3, 0));
    assert!(happened.retried >= 1 && all[2].retried >= 5 * MS, "{:?}", all[2]);
    assert_eq!(all[2].arrival, 2, "times count from the first attempt");
}

/// Prompts of 400 and answers of 100 in 1,000 tokens: of the four turns the last two do not hold all before.
#[test]
fn conversations_beyond_the_longest_sequence_are_counted() {
    let sharing = Sharing { prefixes: 0, prefix_tokens: 0, turns: 4, think_s: 0.1 };
    let (input, output) = (Length::Fixed(400), Length::Fixed(100));
    let arrivals = Arrivals::Users { users: 1, think_s: 0.1 };
    let mut source = Drawn::new(Traffic { arrivals, input, output, sharing, requests: 4, seed: 3, longest: 1000 });
    let (all, _) = outcomes(cluster(2, Router::RoundRobin, true), &mut source);
    assert_eq!((source.shortened(), all.iter().filter(|o| o.prompt == 900).count()), (2, 3));
    let mut short = drawn(40.0, 300, 3);
    let (mut parted, mut kept) = (cluster(4, Router::Random, true), tally(300));
    parted.run_apart(&mut short, &mut kept, &4.into()).unwrap();
    assert_eq!((short.shortened(), short.next()), (0, None), "what parts met is known of the whole");
}

#[test]
fn clients_who_give_up_free_the_engine_at_its_next_call() {
    // The first would take 4.06 ms a step for 1000 steps; its client waits for 30 ms.
    let one = Settings { max_num_seqs: 1, ..Settings::default() };
    for pace in [Pace::General, Pace::Steps, Pace::Jumps] {
        let rules = Rules { timeout: Some(30 * MS), ..Rules::default() };
        let alone = Cluster::alike(&one, 1, Law::default(), Router::RoundRobin, 1, pace).under(rules);
        let (all, happened) = outcomes(alone, &mut Listed::new(vec![job(0, 10, 1000), job(20 * MS, 10, 2)]));
        assert_eq!((all.len(), happened.timed_out, happened.failed), (1, 1, 1));
        // Steps end at 4.24 ms and then every 4.06 ms and a little: the one under way at 30 ms ends at 32.66 ms.
        let began = all[0].arrival + all[0].queue;
        assert!(began > 30 * MS && began < 33 * MS, "{began}");
    }
}

#[test]
fn no_router_sends_to_a_dead_replica() {
    let script = vec![Scripted { at: 2000 * MS, replica: 1, what: Script::Fail }];
    for router in ALL {
        let rules = Rules { script: script.clone(), restart: 3000 * MS, retries: 3, backoff: MS, ..Rules::default() };
        let (all, happened) = outcomes(cluster(3, router, true).under(rules), &mut drawn(20.0, 200, 3));
        assert_eq!(happened.deaths, 1);
        assert_eq!(all.len(), 200, "{router:?}");
        for o in &all {
            let sent = o.arrival + o.retried;
            assert!(o.replica != 1 || !(2000 * MS..5000 * MS).contains(&sent), "{router:?} {o:?}");
        }
        let back = all.iter().any(|o| o.replica == 1 && o.arrival > 5000 * MS);
        assert!(back || matches!(router, Router::Kv | Router::CacheAware | Router::LeastLoaded), "{router:?}");
    }
}

#[test]
fn with_one_replica_all_routers_agree() {
    let runs = ALL.map(|router| outcomes(cluster(1, router, true), &mut drawn(15.0, 300, 5)).0);
    assert!(runs.iter().all(|run| *run == runs[0]));
}

#[test]
fn looking_beats_turns_and_turns_beat_chance() {
    // Of requests that all take the same time, turns are as good as looking: the one whose turn it is has the least to do.
    let one = Settings { max_num_seqs: 1, ..Settings::default() };
    let waits = [Router::Random, Router::RoundRobin, Router::LeastLoaded].map(|router| {
        let mut sum = 0.0;
        for seed in 0..8 {
            let traffic = Traffic {
                arrivals: Arrivals::Open { rate: 130.0, cv: 1.0 },
                input: Length::Fixed(200),
                output: Length::Even(1, 9),
                sharing: Sharing::default(),
                requests: 2000,
                seed,
                longest: 2000,
            };
            let mut tally = tally(2000);
            let mut all = Cluster::alike(&one, 4, Law::default(), router, seed, true);
            all.run(&mut Drawn::new(traffic), &mut tally, &Effort::default()).unwrap();
            sum += tally.queue.mean().unwrap();
        }
        sum
    });
    assert!(waits[0] > waits[1] && waits[1] > waits[2], "{waits:?}");
}

/// All that an answer is made of.
fn bytes(mut t: Tally) -> String {
    t.each.sort_by_key(|o| o.id);
    t.samples.sort_by_key(|s| s.0);
    let wanted = [0.5, 0.9, 0.99, 0.999];
    let series = [&mut t.queue, &mut t.ttft, &mut t.tpot, &mut t.e2e].map(|s| (s.percentiles(&wanted), s.mean()));
    let counts = (t.measured, t.met, t.tokens_out, t.tokens_in, t.tokens_cached, t.finished_all);
    let times = (t.first_arrival, t.last_arrival, t.last_finish, t.width);
    let (samples, moments) = (&t.samples, &t.moments);
    format!(
        "{series:?} {:?} {:?} {samples:?} {counts:?} {times:?} {moments:?} {:?} {:?}",
        t.gaps, t.parts, t.each, t.worst
    )
}

#[test]
fn parts_on_any_number_of_threads_merge_to_the_whole() {
    let limits = Limits::default();
    let keep = Keep { warm: 90, requests: 810, batches: 8, limits, outside: 0, each: true, worst: 5 };
    let groups = Groups { n: 2, steps: Lockstep { sync: 16, dummy: 1 }, deal: Deal::InTurn };
    for (case, router) in ALL.into_iter().enumerate() {
        for (pace, async_scheduling) in [(Pace::Steps, false), (Pace::Jumps, true), (Pace::Jumps, false)] {
            let settings = Settings { async_scheduling, num_blocks: 300, ..Settings::default() };
            let run = |threads: usize| {
                let mut all = Cluster::alike(&settings, 6, Law::default(), router, 7, pace);
                if pace == Pace::Steps && case % 2 == 0 {
                    all = all.grouped(0, groups);
                }
                let (mut tally, mut source) = (Tally::new(keep), drawn(40.0, 900, 9));
                assert_eq!(all.splits(&source), !router.looks());
                all.run_apart(&mut source, &mut tally, &threads.into()).unwrap();
                format!("{:?} {:?} {}", all.totals(), all.incidents, bytes(tally))
            };
            let whole = run(1);
            for threads in [2, 3, 8] {
                assert_eq!(run(threads), whole, "{router}, {pace:?}, overlap {async_scheduling}, {threads} threads");
            }
        }
    }
}

#[test]
fn parts_end_when_they_are_not_wanted() {
    let mut tally = tally(100_000);
    let effort = Effort { threads: 3, cancel: Cancel::after(12) };
    let ended = cluster(6, Router::Random, true).run_apart(&mut drawn(40.0, 100_000, 9), &mut tally, &effort);
    assert!(ended.is_err() && (1..90_000).contains(&tally.measured), "{}", tally.measured);
}

/// As much cache and as many sequences under another engine.
fn other(s: &Settings, seed: u64) -> engine::Settings {
    let tokens = s.num_blocks * s.block_size;
    if seed.is_multiple_of(2) {
        let (engine, _) = rackmath_catalog::embedded().engine("sglang").unwrap();
        sglang::Settings {
            max_running_requests: s.max_num_seqs,
            max_total_tokens: tokens,
            disable_overlap_schedule: !s.async_scheduling,
            ..sglang::Settings::new(engine.reckoning.unwrap())
        }
        .into()
    } else {
        trtllm::Settings {
            max_batch_size: s.max_num_seqs,
            capacity: trtllm::Capacity::MaxUtilization,
            blocks: tokens / 32,
            disable_overlap_scheduler: !s.async_scheduling,
            ..trtllm::Settings::default()
        }
        .into()
    }
}

#[test]
fn nothing_is_lost_and_all_paces_are_one_whatever_happens() {
    let (mut timed_out, mut lost, mut refused, mut evicted) = (0, 0, 0, 0);
    for seed in 0..200 {
        let mut chance = Chance::new(seed);
        let mut pick = |all: &[u64]| all[chance.below(all.len() as u64) as usize];
        let settings = Settings {
            num_blocks: pick(&[80, 200, 4000]) as u32,
            max_num_seqs: pick(&[4, 64]) as u32,
            async_scheduling: pick(&[0, 1]) == 1,
            max_model_len: 2000,
            ..Settings::default()
        };
        let pools = pick(&[0, 1]) == 1;
        let settings = if seed < 120 { settings.into() } else { other(&settings, seed) };
        let rules = Rules {
            timeout: [None, Some(900 * MS), Some(4000 * MS)][pick(&[0, 1, 2]) as usize],
            most_queued: [None, Some(6)][pick(&[0, 1]) as usize],
            retries: pick(&[0, 2, 5]) as u32,
            backoff: pick(&[1, 300]) * MS,
            lives: [None, Some(3000 * MS)][pick(&[0, 1]) as usize],
            restart: 500 * MS,
            scaling: None,
            script: vec![
                Scripted { at: 900 * MS, replica: 1, what: Script::Drain },
                Scripted { at: 2900 * MS, replica: 1, what: Script::Start },
            ],
        };
        let router = ALL[pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]) as usize];
        let (rate, stale, requests) = (pick(&[10, 40]), pick(&[0, 100]) * MS, 150);
        let users = pick(&[0, 0, 12]);
        let runs = [Pace::General, Pace::Steps, Pace::Jumps].map(|pace| {
            let mut all =
                Cluster::alike(&settings, 4, Law::default(), router, seed, pace).stale(stale).under(rules.clone());
            if pools {
                all = all.sending(2, link(MS, 20_000));
            }
            let arrivals = match users {
                0 => Arrivals::Open { rate: rate as f64, cv: 1.0 },
                users => Arrivals::Users { users, think_s: 0.05 },
            };
            let (input, output) = (Length::Even(20, 600), Length::Even(1, 120));
            let sharing = Sharing { prefixes: 4, prefix_tokens: 160, turns: 1, think_s: 0.0 };
            let traffic = Traffic { arrivals, input, output, sharing, requests, seed, longest: 1200 };
            let (each, happened) = outcomes(all, &mut Drawn::new(traffic));
            assert_eq!(happened.arrived, requests, "seed {seed}");
            assert_eq!(each.len() as u64 + happened.failed, requests, "seed {seed}: finished and failed are all");
            assert!(each.iter().all(|o| rules.timeout.is_none_or(|most| o.e2e() <= most)), "seed {seed}");
            (each, happened)
        });
        let [a, steps, jumps] = &runs;
        for b in [steps, jumps] {
            for (x, y) in a.0.iter().zip(&b.0) {
                assert_eq!(
                    x, y,
                    "seed {seed} {settings:?} {rules:?} {router:?} users {users} rate {rate} pools {pools}"
                );
            }
            assert_eq!(a.1, b.1, "seed {seed}");
        }
        timed_out += a.1.timed_out;
        lost += a.1.lost;
        refused += a.1.refused;
        evicted += a.0.iter().map(|o| u64::from(o.preempted)).sum::<u64>();
    }
    assert!(timed_out > 100 && lost > 100 && refused > 100 && evicted > 100, "{timed_out} {lost} {refused} {evicted}");
}

#[test]
fn a_controller_follows_the_load() {
    let rules = |start| Rules {
        scaling: Some(Scaling { least: 1, most: 6, target: 4.0, window: 1000 * MS, cooldown: 5000 * MS, start }),
        ..Rules::default()
    };
    let burst = || {
        let busy = (0..400).map(|i| job(i * 40 * MS, 300, 100));
        let quiet = (0..40).map(|i| job(16_000 * MS + i * 1000 * MS, 300, 10));
        Listed::new(busy.chain(quiet).collect())
    };
    let mut ends = Vec::new();
    for start in [100 * MS, 8000 * MS] {
        let (all, happened) = outcomes(cluster(6, Router::LeastLoaded, true).under(rules(start)), &mut burst());
        assert_eq!(all.len(), 440);
        assert!(happened.starts >= 2 && happened.drains >= 2, "{happened:?}");
        assert!(all.iter().any(|o| o.replica >= 2));
        let last = all.iter().map(|o| o.arrival + o.e2e()).max().unwrap();
        assert!(happened.on < 6 * last && happened.on > last, "{happened:?}");
        // In the end one is enough.
        assert!(all.iter().rev().take(10).all(|o| o.replica == 0));
        ends.push(all.iter().map(Outcome::ttft).sum::<Ns>());
    }
    assert!(ends[0] < ends[1], "weights that take long to load are felt: {ends:?}");
}

#[test]
fn a_prefix_stays_together_until_its_replica_is_too_full() {
    let shared =
        |arrival: Ns| Job { content: vec![Segment { stream: 3, offset: 0, tokens: 512 }], ..job(arrival, 600, 50) };
    // One at a time: always the same replica. Sixteen at once over four: nowhere more than 1.25 * 16 / 4 = 5.
    let bounded = || cluster(4, Router::BoundedHash, true).weighing(Weights { bound: 1.25, ..Weights::default() });
    let apart = Listed::new((0..16).map(|i| shared(i * 10_000 * MS)).collect());
    let (all, _) = outcomes(bounded(), &mut { apart });
    assert!(all.iter().all(|o| o.replica == all[0].replica));
    let together = Listed::new((0..16).map(shared).collect());
    let (all, _) = outcomes(bounded(), &mut { together });
    let most = (0..4).map(|at| all.iter().filter(|o| o.replica == at).count()).max();
    assert_eq!(most, Some(5));
}

#[test]
fn an_idle_connection_is_used_again_and_a_busy_or_old_one_is_not() {
    let kept = || cluster(8, Router::Connections, true).weighing(Weights { keep: 5_000 * MS, ..Weights::default() });
    let met = |gap: Ns| {
        let (all, _) = outcomes(kept(), &mut Listed::new((0..32).map(|i| job(i * gap, 100, 2)).collect()));
        (0..8).filter(|at| all.iter().any(|o| o.replica == *at)).count()
    };
    // One at a time, a second apart: one connection, to one replica, for good.
    assert_eq!(met(1_000 * MS), 1);
    // Six seconds apart none is left, and all at once none is idle: every request opens one, to a replica at random.
    assert!(met(6_000 * MS) >= 6 && met(0) >= 6);
    // Two that overlap keep two connections; each pair finds them again in the order they were opened in.
    let pairs = (0..16).flat_map(|i| [job(i * 1_000 * MS, 100, 2), job(i * 1_000 * MS + 1, 100, 2)]).collect();
    let (all, _) = outcomes(kept(), &mut Listed::new(pairs));
    assert!(all.chunks(2).all(|pair| [pair[0].replica, pair[1].replica] == [all[0].replica, all[1].replica]));
}
