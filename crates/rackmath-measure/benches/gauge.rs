//! How true the load generator is: against a server with known delays on loopback at 2,000 requests a second, percentiles of TTFT, ITL and E2E are to
//! lie within 1 ms and 1 % of what the server did, and 99 of 100 requests are to be taken up within 1 ms of their time.
//! `cargo bench -p rackmath-measure --bench gauge`, on a machine that does nothing else; seconds and rate may be given: `-- 600 2000`.

#[path = "../tests/mock/mod.rs"]
mod mock;

use mock::{Manner, Mock};
use rackmath_measure::gauge::{
    Arrivals, Ceiling, Client, Lengths, Limits, Plan, Server, Sharing, Stop, Target, Targets,
};
use std::time::Duration;

fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .and_then(|l| l.split_whitespace().next()?.parse::<f64>().ok());
    peak.unwrap_or(0.0) / 1024.0
}

fn main() {
    let numbers: Vec<f64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let (seconds, rate) = (numbers.first().copied().unwrap_or(10.0), numbers.get(1).copied().unwrap_or(2000.0));
    let (first, gap, tokens) = (Duration::from_millis(20), Duration::from_millis(5), 8_u32);
    let mock = Mock::start(Manner { first, gap, ..Manner::default() });
    let target = Target::read(&mock.url).expect("an address");
    let addresses = target.addresses().expect("found");
    let client = Client::new(target, addresses, None, Limits::default(), None).expect("a client");
    let server = Server::find(client, None, None, 1).expect("a server");
    let plan = Plan {
        arrivals: Arrivals::Open { rate, cv: 1.0 },
        lengths: Lengths { input: 32, output: tokens, spread: 0.0 },
        sharing: Sharing::default(),
        requests: (rate * seconds) as usize,
        until_s: None,
        ceiling: Ceiling::default(),
        targets: Targets::default(),
        seed: 1,
    };
    server.warm(&plan, 64, &Stop::default()).expect("warm");
    let m = server.measure(&plan, plan.schedule().expect("a schedule"), &Stop::default()).expect("a run");
    let s = &m.summary;
    println!(
        "{} of {} answered in {:.1} s, {:.0}/s offered; faults {:?}",
        s.counts.answered, s.counts.asked, s.seconds, s.offered_per_s, s.counts.faults
    );
    println!(
        "client: lag p99 {:.3} ms, {:.0} % of a core (the test server's threads are in it), peak {:.0} MiB",
        s.client.lag_p99_s * 1e3,
        s.client.cpu.unwrap_or(0.0) * 100.0,
        resident_mib()
    );
    let (a, c) = (first.as_secs_f64(), gap.as_secs_f64());
    let wanted = [("TTFT", &s.ttft, a), ("ITL", &s.itl, c), ("E2E", &s.e2e, a + c * f64::from(tokens - 1))];
    let mut all = s.client.lag_p99_s < 1e-3;
    for (name, figure, truth) in wanted {
        let Some(f) = figure else { continue };
        let off = |v: f64| (v - truth).abs() <= 1e-3 + 0.01 * truth;
        let p99 = f.p99.unwrap_or(f.max);
        let good = [f.p50, f.p90, p99].iter().all(|v| off(*v));
        all &= good;
        println!(
            "{name:<5} truth {:.3} ms: p50 {:.3}, p90 {:.3}, p99 {:.3}: {}",
            truth * 1e3,
            f.p50 * 1e3,
            f.p90 * 1e3,
            p99 * 1e3,
            if good { "within 1 ms + 1 %" } else { "OFF" }
        );
    }
    println!("{}", if all { "true" } else { "not true on this machine now" });
}
