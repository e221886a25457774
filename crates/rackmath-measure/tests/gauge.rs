//! The load generator against a server whose delays and faults are known.

mod mock;

use mock::{Act, Manner, Mock};
use rackmath_measure::gauge::{
    Arrivals, Ceiling, Client, Ended, Endpoint, Lengths, Limits, Measured, Plan, Server, Sharing, Stop, Target,
    Targets, knee,
};
use std::sync::atomic::Ordering;
use std::time::Duration;

const QUICK: Limits = Limits { connect_s: 2.0, head_s: 5.0, stall_s: 0.4, total_s: 5.0 };

fn server_with(url: &str, limits: Limits, endpoint: Option<Endpoint>) -> Server {
    let target = Target::read(url).expect("an address");
    let addresses = target.addresses().expect("found");
    target.allowed(&addresses, &[]).expect("loopback");
    let client = Client::new(target, addresses, None, limits, None).expect("a client");
    Server::find(client, None, endpoint, 1).expect("a server")
}

fn server(mock: &Mock) -> Server {
    server_with(&mock.url, QUICK, None)
}

fn plan(rate: f64, requests: usize) -> Plan {
    Plan {
        arrivals: Arrivals::Open { rate, cv: 1.0 },
        lengths: Lengths { input: 100, output: 8, spread: 0.0 },
        sharing: Sharing::default(),
        requests,
        until_s: None,
        ceiling: Ceiling::default(),
        targets: Targets::default(),
        seed: 7,
        keep: rackmath_measure::gauge::KEPT_BYTES,
    }
}

fn measured(mock: &Mock, plan: &Plan) -> Measured {
    server(mock).measure(plan, plan.schedule().expect("a schedule"), &Stop::default()).expect("a run")
}

fn faults(m: &Measured) -> Vec<(&str, u64)> {
    m.summary.counts.faults.iter().map(|(kind, n)| (kind.as_str(), *n)).collect()
}

#[test]
fn what_runs_there_is_found() {
    let mock = Mock::start(Manner::default());
    let found = server(&mock).found;
    assert_eq!(
        (found.engine.as_deref(), found.version.as_deref(), found.model.as_str()),
        (Some("vllm"), Some("0.0.1"), "mock")
    );
    assert_eq!((found.max_context, found.kv_tokens), (Some(8192), Some(16_000.0)));
}

#[test]
fn counts_equal_the_servers_own() {
    let mock = Mock::start(Manner { continuous: true, ..Manner::default() });
    let mut plan = plan(200.0, 60);
    plan.lengths.spread = 0.5;
    let m = measured(&mock, &plan);
    let (counts, own) = (&m.summary.counts, m.counters.expect("metrics"));
    assert_eq!((counts.asked, counts.answered, m.summary.ended), (60, 60, Ended::Complete));
    assert_eq!((own.requests, own.input_tokens), (Some(60.0), Some(counts.input_tokens as f64)));
    assert_eq!(own.output_tokens, Some(counts.output_tokens as f64));
    assert_eq!((counts.exact_inputs, counts.by_server, counts.short), (60, 60, 0));
    // All are in the figures or before the steady part, and 60 are too few for a p99.
    let ttft = m.summary.ttft.expect("values");
    assert!(ttft.count == m.summary.window.requests && ttft.p99.is_none(), "{ttft:?}");
}

#[test]
fn chunks_of_several_tokens_are_counted_by_usage() {
    for continuous in [true, false] {
        let mock = Mock::start(Manner { per_chunk: 4, continuous, gap: Duration::from_millis(8), ..Manner::default() });
        let m = measured(&mock, &plan(100.0, 20));
        assert_eq!(m.summary.counts.output_tokens, 160);
        assert!((m.summary.per_chunk - 4.0).abs() < 1e-9, "{}", m.summary.per_chunk);
        // Two chunks: one gap, over the 4 tokens of the second where these are told.
        let taken = m.summary.window.requests;
        assert_eq!(m.summary.itl.expect("gaps").count, taken * if continuous { 4 } else { 1 });
        let stamps: Vec<usize> = m.records.iter().map(|r| r.chunks.len()).collect();
        assert_eq!(stamps, vec![2; 20]);
    }
}

#[test]
fn arrivals_do_not_wait_for_answers() {
    // Nobody is answered before all have asked: a client that waited for answers would never get one.
    let mock = Mock::start(Manner { hold: 40, ..Manner::default() });
    let server = server_with(&mock.url, Limits { stall_s: 20.0, total_s: 30.0, ..QUICK }, None);
    let plan = plan(200.0, 40);
    let m = server.measure(&plan, plan.schedule().expect("good"), &Stop::default()).expect("a run");
    assert_eq!((m.summary.counts.answered, faults(&m)), (40, vec![]));
    let last = m.records.iter().map(|r| r.sent).fold(0.0, f64::max);
    assert!(m.records.iter().all(|r| r.first.is_some_and(|first| first >= last)));
}

#[test]
fn a_closed_loop_keeps_its_number_under_way() {
    let mock = Mock::start(Manner::default());
    let mut plan = plan(1.0, 30);
    plan.arrivals = Arrivals::Closed { concurrency: 3 };
    let m = measured(&mock, &plan);
    assert_eq!(m.summary.counts.answered, 30);
    let mut edges: Vec<(f64, i32)> = m.records.iter().flat_map(|r| [(r.sent, 1), (r.end, -1)]).collect();
    edges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let most = edges
        .iter()
        .scan(0, |n, e| {
            *n += e.1;
            Some(*n)
        })
        .max();
    assert_eq!(most, Some(3));
}

#[test]
fn conversations_go_on_when_they_are_answered() {
    let mock = Mock::start(Manner::default());
    let mut plan = plan(50.0, 5);
    plan.sharing = Sharing { prefix: 60, groups: 2, turns: 3, think_s: 0.01 };
    let m = measured(&mock, &plan);
    assert_eq!((m.summary.counts.asked, m.summary.counts.answered, m.summary.counts.exact_inputs), (15, 15, 15));
    for pair in m.records.windows(2).filter(|w| w[0].index == w[1].index) {
        assert!(pair[1].sent >= pair[0].end && pair[1].asked_input > pair[0].asked_input);
    }
}

#[test]
fn chat_prompts_are_as_long_as_asked() {
    let mock = Mock::start(Manner::default());
    let server = server_with(&mock.url, QUICK, Some(Endpoint::Chat));
    assert_eq!(server.writing.words, (10.0, 1.0));
    let plan = plan(100.0, 10);
    let m = server.measure(&plan, plan.schedule().expect("good"), &Stop::default()).expect("a run");
    assert_eq!((m.summary.counts.answered, m.summary.counts.exact_inputs), (10, 10));
}

#[test]
fn every_fault_is_named_and_counted_and_nothing_hangs() {
    type Case = (fn(u64) -> Act, &'static str);
    let cases: &[Case] = &[
        (|n| if n % 2 == 0 { Act::Status(429) } else { Act::Answer }, "status 429"),
        (|n| if n % 2 == 0 { Act::Status(500) } else { Act::Answer }, "status 500"),
        (|n| if n % 2 == 0 { Act::Stall } else { Act::Answer }, "timeout: stream stalled"),
        (|n| if n % 2 == 0 { Act::Silent } else { Act::Answer }, "timeout: stream stalled"),
        (|n| if n % 2 == 0 { Act::Cut } else { Act::Answer }, "stream cut"),
        (|n| if n % 2 == 0 { Act::Html } else { Act::Answer }, "wrong content type"),
        (|n| if n % 2 == 0 { Act::Endless } else { Act::Answer }, "endless stream"),
        (|n| if n % 2 == 0 { Act::ErrorEvent } else { Act::Answer }, "error inside the stream"),
        (|n| if n % 2 == 0 { Act::Garbage } else { Act::Answer }, "malformed answer"),
    ];
    for (act, kind) in cases {
        let mock = Mock::start(Manner { act: *act, ..Manner::default() });
        let m = measured(&mock, &plan(200.0, 20));
        let counts = &m.summary.counts;
        assert_eq!((faults(&m), counts.answered, counts.sent), (vec![(*kind, 10)], 10, 20), "{counts:?}");
        assert!(counts.examples.len() == 1 && counts.examples[0].starts_with(kind), "{:?}", counts.examples);
        assert_eq!((m.summary.ended, mock.counters.requests.load(Ordering::SeqCst)), (Ended::Complete, 20));
    }
}

#[test]
fn half_a_character_is_counted_and_does_not_end_an_answer() {
    let mock = Mock::start(Manner { act: |_| Act::HalfCharacter, ..Manner::default() });
    let m = measured(&mock, &plan(200.0, 10));
    assert_eq!((m.summary.counts.answered, m.summary.counts.garbled, m.summary.counts.output_tokens), (10, 10, 80));
}

#[test]
fn a_server_that_is_killed_leaves_what_was_measured() {
    let mock = Mock::start(Manner { first: Duration::from_millis(20), ..Manner::default() });
    let server = server(&mock);
    let plan = plan(50.0, 600);
    let schedule = plan.schedule().expect("good");
    let m = std::thread::scope(|scope| {
        let run = scope.spawn(|| server.measure(&plan, schedule, &Stop::default()));
        while mock.counters.finished.load(Ordering::SeqCst) < 20 {
            std::thread::sleep(Duration::from_millis(5));
        }
        mock.kill();
        run.join().expect("no panic").expect("a run")
    });
    // It gives up long before the 12 s of its schedule are over, and keeps what was answered.
    assert_eq!(m.summary.ended, Ended::Gone);
    let (counts, finished) = (&m.summary.counts, mock.counters.finished.load(Ordering::SeqCst));
    let failed: u64 = counts.faults.values().sum();
    assert_eq!((counts.answered + failed, counts.asked), (counts.sent, 600), "{counts:?}");
    // What the server was about to end when it was killed may be cut.
    assert!((1..=finished).contains(&counts.answered) && counts.sent < 600, "{counts:?}");
    assert!(m.summary.ttft.is_some() && counts.faults.contains_key("connection refused or lost"));
}

#[test]
fn a_run_that_is_stopped_keeps_what_was_measured() {
    let mock = Mock::start(Manner::default());
    let server = server(&mock);
    let plan = plan(50.0, 5000);
    let schedule = plan.schedule().expect("good");
    let stop = Stop::default();
    let m = std::thread::scope(|scope| {
        let run = scope.spawn(|| server.measure(&plan, schedule, &stop));
        while mock.counters.finished.load(Ordering::SeqCst) < 15 {
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.now();
        run.join().expect("no panic").expect("a run")
    });
    assert_eq!(m.summary.ended, Ended::Stopped);
    let (counts, finished) = (&m.summary.counts, mock.counters.finished.load(Ordering::SeqCst));
    assert_eq!((counts.answered + counts.stopped, counts.asked, faults(&m)), (counts.sent, 5000, vec![]), "{counts:?}");
    assert!((1..=finished).contains(&counts.answered) && counts.sent < 5000, "{counts:?}");
}

#[test]
fn nothing_listens_there() {
    let mock = Mock::start(Manner::default());
    let url = mock.url.clone();
    drop(mock);
    std::thread::sleep(Duration::from_millis(50));
    let target = Target::read(&url).expect("good");
    let addresses = target.addresses().expect("good");
    let client = Client::new(target, addresses, None, QUICK, None).expect("good");
    let Err(error) = Server::find(client, None, None, 1) else { panic!("it was found") };
    assert!(format!("{error:?}").contains("connection refused"), "{error:?}");
}

#[test]
fn a_ceiling_holds() {
    let mock = Mock::start(Manner::default());
    // 108 tokens a request.
    let mut one = plan(200.0, 50);
    one.ceiling = Ceiling { tokens: Some(1100.0), ..Ceiling::default() };
    let m = measured(&mock, &one);
    assert_eq!((m.summary.ended, m.summary.counts.answered), (Ended::Ceiling, 10));
    // 100 x 2 $ + 8 x 10 $ for a million tokens: 0.00028 $ a request.
    let mut one = plan(200.0, 50);
    one.ceiling = Ceiling { dollars: Some(0.0015), price: (2.0, 10.0), tokens: None };
    let m = measured(&mock, &one);
    assert_eq!((m.summary.ended, m.summary.counts.answered), (Ended::Ceiling, 5));
}

#[test]
fn closed_connections_are_replaced_and_counted() {
    let mock = Mock::start(Manner { requests_per_connection: 3, ..Manner::default() });
    let mut plan = plan(1.0, 30);
    plan.arrivals = Arrivals::Closed { concurrency: 2 };
    let m = measured(&mock, &plan);
    assert_eq!((m.summary.counts.answered, faults(&m)), (30, vec![]));
    // Ten connections of three requests, two of them opened ahead; one more where both users end on a fresh one.
    let opened = m.records.iter().filter(|r| r.connect > 0.0).count();
    assert!((8..=9).contains(&opened), "{opened}");
}

#[test]
fn a_ladder_ends_at_the_rate_that_fails() {
    // Every request beyond the first 60 is turned away: the rung that meets them does not hold.
    let mock =
        Mock::start(Manner { act: |n| if n < 60 { Act::Answer } else { Act::Status(503) }, ..Manner::default() });
    let mut seen = Vec::new();
    let steps = server(&mock)
        .ladder(&plan(1.0, 1), &[40.0, 80.0, 160.0, 320.0], 0.5, &Stop::default(), |step| seen.push(step.rate))
        .expect("a ladder");
    assert_eq!((seen, knee(&steps)), (vec![40.0, 80.0, 160.0], (Some(80.0), Some(160.0))));
}
