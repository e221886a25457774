//! Many clients at once on the requests of the first page.
//!
//! `cargo bench -p rackmath-server --bench load -- 50 60` runs 50 clients for 60 seconds against a server in this process
//! and prints requests, errors, percentiles of latency and the memory before and after.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Client, start};
use std::time::{Duration, Instant};

/// What the first page asks when it opens, and what its sliders ask after that.
fn requests(client: usize, turn: usize) -> [(&'static str, String); 3] {
    let batch = 1 + (client * 7919 + turn * 104_729) % 131_071;
    let board = format!(r#""setting":{{"model":"deepseek-v3","on":"gb200-nvl72"}},"batch":{batch},"context":4096"#);
    [
        ("/api/curve", format!(r#"{{{board},"over":"batch","from":1,"to":131072,"points":140}}"#)),
        ("/api/step", format!("{{{board}}}")),
        ("/api/names", "{}".into()),
    ]
}

fn memory_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).map_or(f64::NAN, |kb| kb / 1024.0)
}

fn main() {
    let numbers: Vec<u64> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let (clients, seconds) = (*numbers.first().unwrap_or(&10) as usize, *numbers.get(1).unwrap_or(&3));
    let address = start();
    let end = Instant::now() + Duration::from_secs(seconds);
    let workers: Vec<_> = (0..clients)
        .map(|client| {
            std::thread::spawn(move || {
                let (mut connection, mut times, mut errors) = (Client::new(address), Vec::new(), 0_usize);
                for turn in 0.. {
                    for (path, body) in requests(client, turn) {
                        if Instant::now() >= end {
                            return (times, errors);
                        }
                        let begun = Instant::now();
                        let reply = connection.post(path, body.as_bytes());
                        times.push(begun.elapsed().as_secs_f64());
                        errors += usize::from(reply.status != 200);
                        // A person drags; a page asks again some milliseconds later.
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
                (times, errors)
            })
        })
        .collect();
    std::thread::sleep(Duration::from_secs(seconds.min(5)));
    let early = memory_mb();
    let (mut times, mut errors) = (Vec::new(), 0);
    for worker in workers {
        let (t, e) = worker.join().expect("ran");
        times.extend(t);
        errors += e;
    }
    times.sort_by(f64::total_cmp);
    let at = |p: f64| 1e3 * times[((times.len() - 1) as f64 * p) as usize];
    println!(
        "{clients} clients, {seconds} s: {} requests, {errors} errors, {:.0} per second; p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms; memory {early:.0} MB early, {:.0} MB at the end",
        times.len(),
        times.len() as f64 / seconds as f64,
        at(0.5),
        at(0.99),
        at(1.0),
        memory_mb()
    );
}
