//! How true the load generator is: a server with known delays, in a process of its own on the loopback, stamps what it does; percentiles of TTFT,
//! ITL and E2E that the client measures are to lie within 1 ms and 1 % of that, and 99 of 100 requests are to be taken up within 1 ms of their time.
//!
//! `cargo bench -p rackmath-measure --bench gauge -- 60 2000`: seconds and requests a second (10 and 2,000 unless given). Delays of a request are
//! drawn from 20 to 80 ms to the first token and 5 to 20 ms between tokens, so that every percentile is another number. The memory of the client
//! is printed as it grows: what it keeps of requests is bounded, so that minutes more add nothing.

#[path = "../tests/mock/mod.rs"]
mod mock;

use mock::{Manner, Mock};
use rackmath_measure::gauge::{
    Arrivals, Ceiling, Client, KEPT_BYTES, Lengths, Limits, Plan, Record, Server, Sharing, Stop, Target, Targets,
};
use rackmath_theory::stats::ranked;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a percentile may be off: so many seconds and such a share of it.
const OFF: (f64, f64) = (1e-3, 0.01);
/// p99 of how late the client may be.
const LAG_S: f64 = 1e-3;
const TOKENS: u32 = 8;

/// Ends the server with the bench.
struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// From 1 to 4, by the number of the request.
fn vary(n: u64) -> f64 {
    let mixed = (n ^ 0x9e37_79b9).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    1.0 + 3.0 * ((mixed ^ (mixed >> 31)) % 10_007) as f64 / 10_006.0
}

fn serves() {
    if std::env::args().nth(1).as_deref() != Some("serve") {
        return;
    }
    let mock = Mock::start(Manner {
        first: Duration::from_millis(20),
        gap: Duration::from_millis(5),
        vary,
        ..Manner::default()
    });
    println!("{}", mock.url);
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
}

fn memory_mib(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|l| l.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}

/// What the server did, since it was last asked.
fn truth(url: &str) -> serde_json::Value {
    let address = url.trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(address).expect("the server lives");
    stream.write_all(b"GET /truth HTTP/1.1\r\nhost: x\r\n\r\n").expect("sent");
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = stream.read(&mut buffer).expect("an answer");
        bytes.extend_from_slice(&buffer[..n]);
        let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = head.lines().find_map(|l| l.strip_prefix("content-length: ")?.parse::<usize>().ok());
        let whole = end + 4 + length.expect("a length");
        while bytes.len() < whole {
            let n = stream.read(&mut buffer).expect("all of it");
            bytes.extend_from_slice(&buffer[..n]);
        }
        return serde_json::from_slice(&bytes[end + 4..whole]).expect("JSON");
    }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// A table of what the server did and what the client measured; whether both agree.
fn compared(good: &[&Record], one_in: u64, known: &serde_json::Value) -> bool {
    let each = |of: fn(&Record) -> Option<f64>| sorted(good.iter().filter_map(|r| of(r)).collect());
    let mut all = true;
    println!("{:<6}{:>7}{:>14}{:>14}{:>14}{:>11}", "", "", "known ms", "measured ms", "difference", "allowed");
    let figures = [
        ("TTFT", "ttft", each(Record::ttft)),
        ("ITL", "itl", sorted(good.iter().flat_map(|r| r.gaps().map(|g| g.0)).collect())),
        ("E2E", "e2e", each(Record::e2e)),
    ];
    for (name, key, measured) in figures {
        let list = known[key].as_array().into_iter().flatten().filter_map(serde_json::Value::as_f64).collect();
        let list = sorted(list);
        if one_in == 1 && list.len() != measured.len() {
            println!("{name}: {} by the server, {} by the client", list.len(), measured.len());
            all = false;
        }
        for p in [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999] {
            let (k, v) = (ranked(&list, p), ranked(&measured, p));
            let allowed = OFF.0 + OFF.1 * k;
            let holds = (v - k).abs() <= allowed;
            // A p99.9 of some seconds is a handful of requests: shown, and not judged.
            all &= holds || p > 0.99;
            println!(
                "{name:<6}{:>7}{:>14.3}{:>14.3}{:>+14.3}{:>11.3}{}",
                format!("p{}", p * 100.0),
                k * 1e3,
                v * 1e3,
                (v - k) * 1e3,
                allowed * 1e3,
                if holds { "" } else { "  OFF" }
            );
        }
    }
    all
}

fn main() {
    serves();
    let numbers: Vec<f64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let (seconds, rate) = (numbers.first().copied().unwrap_or(10.0), numbers.get(1).copied().unwrap_or(2000.0));
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    let child = command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    let mut child = Child(child);
    let mut url = String::new();
    BufReader::new(child.0.stdout.take().expect("piped")).read_line(&mut url).expect("a line");
    let url = url.trim();
    let target = Target::read(url).expect("an address");
    let addresses = target.addresses().expect("found");
    let client = Client::new(target, addresses, None, Limits::default(), None).expect("a client");
    let server = Server::find(client, None, None, 1).expect("a server");
    let plan = Plan {
        arrivals: Arrivals::Open { rate, cv: 1.0 },
        lengths: Lengths { input: 32, output: TOKENS, spread: 0.0 },
        sharing: Sharing::default(),
        requests: (rate * seconds) as usize,
        until_s: None,
        ceiling: Ceiling::default(),
        targets: Targets::default(),
        seed: 1,
        keep: KEPT_BYTES,
    };
    server.warm(&plan, 256, &Stop::default()).expect("warm");
    let _ = truth(url);
    let schedule = plan.schedule().expect("a schedule");
    let over = AtomicBool::new(false);
    let before = load();
    let m = std::thread::scope(|scope| {
        scope.spawn(|| {
            let begun = Instant::now();
            let mut next = 0.0;
            while !over.load(Ordering::Relaxed) {
                let now = begun.elapsed().as_secs_f64();
                if now >= next {
                    println!("  {now:4.0} s: client holds {:.0} MiB", memory_mib("VmRSS"));
                    next += (seconds / 6.0).max(5.0);
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let m = server.measure(&plan, schedule, &Stop::default()).expect("a run");
        over.store(true, Ordering::Relaxed);
        m
    });
    let s = &m.summary;
    let known = truth(url);
    println!(
        "{} of {} answered in {:.1} s, {:.0}/s offered; faults {:?}; load average {before} before, {} after",
        s.counts.answered,
        s.counts.asked,
        s.seconds,
        s.offered_per_s,
        s.counts.faults,
        load()
    );
    let peak = memory_mib("VmHWM");
    println!(
        "client: {:.0} % of a core, peak {peak:.0} MiB, {:.0} bytes a request",
        s.client.cpu.unwrap_or(0.0) * 100.0,
        peak * 1048576.0 / s.counts.asked.max(1) as f64
    );
    let good: Vec<&Record> = m.records.iter().filter(|r| r.ok()).collect();
    let lags = sorted(m.records.iter().map(Record::lag).collect());
    let lag = ranked(&lags, 0.99);
    let mut all = lag < LAG_S && s.counts.answered == s.counts.asked;
    println!(
        "arrival lag: p50 {:.3}, p99 {:.3}, p99.9 {:.3} ms: {}",
        ranked(&lags, 0.5) * 1e3,
        lag * 1e3,
        ranked(&lags, 0.999) * 1e3,
        if lag < LAG_S { "p99 below 1 ms" } else { "OFF" }
    );
    println!("percentiles are of one request in {}: {}", s.one_in, good.len());
    all &= compared(&good, s.one_in, &known);
    println!("{}", if all { "true" } else { "not true on this machine now" });
}
