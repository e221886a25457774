//! Laws that hold whatever the load: conservation, Little's law, queues with a known mean, scaling, names that mean nothing.

use rackmath_sim::Ns;
use rackmath_sim::blocks::Segment;
use rackmath_sim::clock::{Law, Stretch};
use rackmath_sim::cluster::{Cluster, Router};
use rackmath_sim::engine::Sequence;
use rackmath_sim::engine::vllm::Settings;
use rackmath_sim::replica::{Pace, Replica, Sink};
use rackmath_sim::tally::{Keep, Outcome, Tally};
use rackmath_sim::workload::{Arrivals, Drawn, Job, Length, Listed, Sharing, Source, Traffic};
use rackmath_units::{Chance, Effort};

const SECOND: f64 = 1e9;

fn traffic(arrivals: Arrivals, input: Length, output: Length, requests: u64, seed: u64) -> Traffic {
    Traffic { arrivals, input, output, sharing: Sharing::default(), requests, seed, longest: 8192 }
}

fn poisson(rate: f64) -> Arrivals {
    Arrivals::Open { rate, cv: 1.0 }
}

fn listed(traffic: Traffic) -> Vec<Job> {
    let mut source = Drawn::new(traffic);
    std::iter::from_fn(|| source.take()).collect()
}

/// Settings and requests of many kinds: tight and roomy caches, shared prefixes, bursts, both kinds of scheduling.
fn world(seed: u64) -> (Settings, Vec<Job>) {
    let mut chance = Chance::new(seed);
    let mut pick = |all: &[u32]| all[chance.below(all.len() as u64) as usize];
    let settings = Settings {
        max_num_seqs: pick(&[1, 3, 16, 128]),
        max_num_batched_tokens: pick(&[64, 512, 2048]),
        async_scheduling: pick(&[0, 1]) == 1,
        block_size: 16,
        num_blocks: pick(&[64, 120, 1000]),
        enable_prefix_caching: pick(&[0, 1, 1]) == 1,
        scheduler_reserve_full_isl: pick(&[0, 1, 1]) == 1,
        ..Settings::default()
    };
    let (rate, cv) = (f64::from(pick(&[2, 20, 100])), f64::from(pick(&[0, 1, 3])));
    let sharing = Sharing { prefixes: u64::from(pick(&[0, 4])), prefix_tokens: 48, ..Sharing::default() };
    let lengths = (Length::Even(1, pick(&[20, 400])), Length::Even(1, pick(&[1, 40, 300])));
    let drawn = traffic(Arrivals::Open { rate, cv }, lengths.0, lengths.1, 150, seed);
    (settings, listed(Traffic { sharing, ..drawn }))
}

/// Everything a replica tells.
#[derive(Debug, Default, PartialEq)]
struct Diary {
    /// Number, arrival, first scheduled, first token, end.
    finished: Vec<(u64, [Ns; 4])>,
    steps: Vec<(Ns, Ns)>,
}

impl Sink for Diary {
    fn finished(&mut self, s: &Sequence, at: Ns, _: Ns) {
        self.finished.push((s.id, [s.arrival, s.first_scheduled, s.first_token, at]));
    }

    fn gaps(&mut self, _: Ns, _: Stretch, _: u32) {}

    fn steps(&mut self, start: Ns, end: Ns, _: u32, _: u32) {
        self.steps.push((start, end));
    }
}

fn arrive(replica: &mut Replica, job: &Job) {
    let place = replica.engine.place(0, job.content.iter().copied());
    let plain = Sequence::new(job.id, job.arrival, job.prompt, job.output);
    replica.arrive(job.arrival, Sequence { place, ..plain });
}

/// Runs one replica; gives back what it told, and the integral of requests inside over time as it was seen from outside.
fn run(settings: &Settings, jobs: &[Job], law: &mut Law, pace: Pace) -> (Diary, u128) {
    let mut replica = Replica::new(settings.clone(), pace);
    let (mut diary, mut integral, mut then) = (Diary::default(), 0, 0);
    let mut inside = 0_u128;
    let mut see = |replica: &Replica, at: Ns| {
        integral += inside * u128::from(at - then);
        then = at;
        inside = (replica.running() + replica.waiting()) as u128;
    };
    for job in jobs {
        while let Some(end) = replica.advance(law, job.arrival, true, &mut diary) {
            see(&replica, end);
        }
        arrive(&mut replica, job);
        see(&replica, job.arrival);
    }
    while let Some(end) = replica.advance(law, Ns::MAX, true, &mut diary) {
        see(&replica, end);
    }
    let blocks = &replica.engine;
    assert_eq!(blocks.free(), blocks.usable(), "all blocks come back");
    assert_eq!((replica.running(), replica.waiting()), (0, 0), "nobody is left inside");
    (diary, integral)
}

#[test]
fn requests_and_time_are_conserved_and_littles_law_is_exact() {
    let mut waited = 0;
    for seed in 0..300 {
        let (settings, jobs) = world(seed);
        for pace in [Pace::General, Pace::Steps, Pace::Jumps] {
            let (diary, inside) = run(&settings, &jobs, &mut Law::default(), pace);
            let mut ids: Vec<u64> = diary.finished.iter().map(|f| f.0).collect();
            ids.sort_unstable();
            assert_eq!(ids, (0..jobs.len() as u64).collect::<Vec<_>>(), "seed {seed}: each ends once");
            let sojourns: u128 = diary.finished.iter().map(|(_, [came, .., end])| u128::from(end - came)).sum();
            assert_eq!(inside, sojourns, "seed {seed}, {pace:?}: integral of requests inside = sum of their times");
            for (id, times) in &diary.finished {
                assert!(times.is_sorted(), "seed {seed}, request {id}: {times:?}");
            }
            assert!(diary.finished.is_sorted_by_key(|f| f.1[3]), "seed {seed}: ends in order of time");
            waited += diary.finished.iter().filter(|(_, t)| t[1] > t[0]).count();
        }
    }
    assert!(waited > 10_000, "many worlds have queues: {waited}");
}

#[test]
fn steps_follow_each_other_and_no_replica_idles_while_a_request_is_inside() {
    let (mut idle, mut steps) = (0, 0);
    for seed in 0..300 {
        let (settings, jobs) = world(seed);
        let (diary, _) = run(&settings, &jobs, &mut Law::default(), Pace::General);
        steps += diary.steps.len();
        let mut before = 0;
        for (start, end) in diary.steps {
            assert!(before <= start && start < end, "seed {seed}: steps overlap");
            if before < start {
                idle += 1;
                // Whoever is inside alone could be admitted: the cache is empty but for what nobody holds.
                let kept = diary.finished.iter().find(|(_, [came, .., end])| *came < start && *end > before);
                assert!(kept.is_none(), "seed {seed}: idle from {before} to {start} with {kept:?} inside");
            }
            before = end;
        }
    }
    assert!(idle > 5_000 && steps > 100_000, "worlds both idle and work: {idle} of {steps}");
}

#[test]
fn with_all_times_scaled_everything_is_scaled() {
    for seed in 0..60 {
        let (settings, jobs) = world(seed);
        let law = Law::default();
        for q in [2, 7, 1000] {
            let slow = Law {
                base_ns: law.base_ns * q,
                token_ns: law.token_ns * q,
                seq_ns: law.seq_ns * q,
                context_ns: law.context_ns * q,
            };
            let later: Vec<Job> = jobs.iter().map(|j| Job { arrival: j.arrival * q, ..j.clone() }).collect();
            for pace in [Pace::General, Pace::Steps, Pace::Jumps] {
                let (plain, inside) = run(&settings, &jobs, &mut law.clone(), pace);
                let (scaled, more) = run(&settings, &later, &mut slow.clone(), pace);
                let expected: Vec<_> = plain.finished.iter().map(|(id, times)| (*id, times.map(|t| t * q))).collect();
                assert_eq!(scaled.finished, expected, "seed {seed}, {q} times");
                assert_eq!(more, inside * u128::from(q));
            }
        }
    }
}

#[test]
fn names_of_requests_and_of_contents_mean_nothing() {
    for seed in 0..100 {
        let (settings, jobs) = world(seed);
        let name = |id: u64| id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed;
        let renamed: Vec<Job> = jobs
            .iter()
            .map(|j| Job {
                id: name(j.id),
                content: j.content.iter().map(|s| Segment { stream: name(s.stream) >> 1, ..*s }).collect(),
                ..j.clone()
            })
            .collect();
        for pace in [Pace::General, Pace::Steps, Pace::Jumps] {
            let (plain, _) = run(&settings, &jobs, &mut Law::default(), pace);
            let (other, _) = run(&settings, &renamed, &mut Law::default(), pace);
            let expected: Vec<_> = plain.finished.iter().map(|(id, times)| (name(*id), *times)).collect();
            assert_eq!(other.finished, expected, "seed {seed}");
            assert_eq!(other.steps, plain.steps, "seed {seed}");
        }
    }
}

fn tally(
    settings: &Settings,
    replicas: usize,
    router: Router,
    source: &mut impl Source,
    requests: u64,
    each: bool,
) -> Tally {
    let warm = if each { 0 } else { requests / 10 };
    let keep = Keep { warm, requests: requests - warm, batches: 32, each, ..Keep::default() };
    let mut tally = Tally::new(keep);
    let mut cluster = Cluster::alike(settings, replicas, Law::default(), router, 7, true);
    cluster.run(source, &mut tally, &Effort::default()).unwrap();
    tally
}

/// One at a time, answers of one token: a queue with one server whose service times are the steps'.
/// Mean waiting time by batches of arrivals: its mean and standard error, in seconds.
fn queue(rate: f64, input: Length, seed: u64) -> (f64, f64) {
    let settings =
        Settings { max_num_seqs: 1, max_num_batched_tokens: 8192, enable_prefix_caching: false, ..Settings::default() };
    let requests = 400_000;
    let mut source = Drawn::new(traffic(poisson(rate), input, Length::Fixed(1), requests, seed));
    let tally = tally(&settings, 1, Router::RoundRobin, &mut source, requests, false);
    let waits: Vec<f64> = tally.samples.iter().map(|(_, s)| s[0][4] / SECOND).collect();
    let n = waits.len() as f64;
    assert!(n >= 30.0);
    let mean = waits.iter().sum::<f64>() / n;
    let variance = waits.iter().map(|w| (w - mean) * (w - mean)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Pollaczek and Khinchine: the mean wait in an M/G/1 queue of these service times, each as likely.
fn pollaczek(rate: f64, services: &[f64]) -> f64 {
    let n = services.len() as f64;
    let (mean, square) = (services.iter().sum::<f64>() / n, services.iter().map(|s| s * s).sum::<f64>() / n);
    rate * square / (2.0 * (1.0 - rate * mean))
}

/// Quantile of Student's law for 31 degrees of freedom, 99.9 % on both sides.
const T: f64 = 3.63;

fn near(found: (f64, f64), expected: f64, case: &str) {
    let (mean, error) = found;
    assert!((mean - expected).abs() < T * error, "{case}: {mean} +- {}, expected {expected}", T * error);
    assert!(T * error < expected / 5.0, "{case}: an interval that tells something: {}", T * error / expected);
}

fn service(prompt: u32) -> f64 {
    Law::default().time(u64::from(prompt), 1, 0) as f64 / SECOND
}

#[test]
fn one_at_a_time_of_one_length_waits_as_m_d_1() {
    let s = service(512);
    for (seed, load) in [(1, 0.3), (2, 0.6), (3, 0.85)] {
        let expected = load * s / (2.0 * (1.0 - load));
        assert!((pollaczek(load / s, &[s]) / expected - 1.0).abs() < 1e-12);
        near(queue(load / s, Length::Fixed(512), seed), expected, &format!("load {load}"));
    }
}

#[test]
fn one_at_a_time_of_two_lengths_waits_as_pollaczek_and_khinchine_say() {
    let services = [service(64), service(2048)];
    let mean = services.iter().sum::<f64>() / 2.0;
    for (seed, load) in [(4, 0.4), (5, 0.8)] {
        let rate = load / mean;
        near(queue(rate, Length::Listed(vec![64, 2048]), seed), pollaczek(rate, &services), &format!("load {load}"));
    }
}

#[test]
fn alone_a_request_takes_its_chunks_and_its_steps() {
    let settings = Settings { max_num_batched_tokens: 512, ..Settings::default() };
    let (prompt, output) = (1300, 40);
    let requests = 50;
    let lengths = (Length::Fixed(prompt), Length::Fixed(output));
    let mut source = Drawn::new(traffic(Arrivals::Open { rate: 0.001, cv: 0.0 }, lengths.0, lengths.1, requests, 1));
    let tally = tally(&settings, 1, Router::RoundRobin, &mut source, requests, true);
    let law = Law::default();
    let ttft = law.time(512, 1, 0) + law.time(512, 1, 512) + law.time(276, 1, 1024);
    let rest: Ns = (0..u64::from(output - 1)).map(|k| law.time(1, 1, u64::from(prompt) + k)).sum();
    assert_eq!(tally.each.len() as u64, requests);
    for o in &tally.each {
        assert_eq!((o.queue, o.ttft(), o.e2e()), (0, ttft, ttft + rest));
    }
}

/// What each request met, as bytes in order of arrival.
fn digest(mut each: Vec<Outcome>) -> u64 {
    each.sort_by_key(|o| o.id);
    let line = |o: &Outcome| {
        let parts = [o.queue, o.prefill, o.decode, o.stalled, o.evicted];
        format!("{} {} {} {} {} {} {parts:?}\n", o.id, o.replica, o.arrival, o.prompt, o.output, o.cached)
    };
    let text = each.iter().map(line).collect::<Vec<_>>().concat();
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, byte| (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Numbers drawn by logarithms, sines and powers, routers that draw and look: the same bytes in debug and release, everywhere.
#[test]
fn the_same_seed_gives_the_same_bytes_everywhere() {
    let normal = |mean| Length::LogNormal { mean, sigma: 0.8, least: 1, most: 2000 };
    let all = [
        (Arrivals::Open { rate: 30.0, cv: 2.5 }, Router::TwoChoices, 0),
        (Arrivals::Diurnal { rate: 30.0, swing: 0.7, period_s: 40.0 }, Router::Session, 0),
        (Arrivals::Spikes { rate: 15.0, times: 6.0, period_s: 20.0, length_s: 3.0 }, Router::Random, 5),
        (Arrivals::Users { users: 40, think_s: 0.5 }, Router::LeastLoaded, 3),
    ];
    let digests = all.map(|(arrivals, router, turns)| {
        let sharing = Sharing { prefixes: 8, prefix_tokens: 100, turns, think_s: 0.3 };
        let settings = Settings { num_blocks: 600, ..Settings::default() };
        let t = Traffic { sharing, ..traffic(arrivals, normal(300.0), normal(90.0), 2000, 42) };
        let once = || digest(tally(&settings, 4, router, &mut Drawn::new(t.clone()), 2000, true).each);
        let first = once();
        assert_eq!(first, once());
        format!("{first:016x}")
    });
    assert_eq!(digests, ["1d6332976e04d6cb", "47050c344682dbae", "45e4bb21e2ec4051", "482ea4f5e4785932"]);
}

#[test]
fn a_list_in_any_order_is_the_same_list() {
    let (settings, jobs) =
        (0..50).map(world).find(|(_, jobs)| jobs.windows(2).all(|w| w[0].arrival < w[1].arrival)).unwrap();
    let mut backwards = jobs.clone();
    backwards.reverse();
    let of = |jobs: Vec<Job>| {
        let n = jobs.len() as u64;
        digest(tally(&settings, 2, Router::LeastLoaded, &mut Listed::new(jobs), n, true).each)
    };
    assert_eq!(of(jobs), of(backwards));
}
