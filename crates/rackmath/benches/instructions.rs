//! Instructions that one estimate of a prepared space takes, counted by valgrind: a guard that no busy machine disturbs.
//!
//! `cargo bench -p rackmath --bench instructions` fails when an estimate takes more than [`MOST`]. It runs itself twice under
//! callgrind, with few and with many estimates, so that preparing the space does not count. It needs valgrind.

use rackmath::plan::{Request, space};
use rackmath::setting::Setting;
use std::hint::black_box;
use std::process::{Command, ExitCode};

/// Most instructions of an estimate: a fifth above what was counted when this was written.
const MOST: f64 = 590.0;

const FEW: u64 = 200_000;
const MANY: u64 = 1_200_000;

/// How many estimates a run under valgrind is to do.
const ESTIMATES: &str = "RACKMATH_ESTIMATES";

fn main() -> ExitCode {
    if let Some(n) = std::env::var(ESTIMATES).ok().and_then(|n| n.parse().ok()) {
        println!("{}", work(n));
        return ExitCode::SUCCESS;
    }
    // `cargo test` runs benches too, without optimisation: there is nothing to count then.
    if !std::env::args().any(|a| a == "--bench") {
        return ExitCode::SUCCESS;
    }
    let (Some(few), Some(many)) = (counted(FEW), counted(MANY)) else {
        eprintln!("valgrind did not run; expected it installed: apt-get install valgrind");
        return ExitCode::FAILURE;
    };
    let each = (many - few) as f64 / (MANY - FEW) as f64;
    println!("{each:.1} instructions for one estimate, at most {MOST}");
    if each <= MOST { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Estimates of a space that holds one pool and two, each with its limits looked at; how many are good.
fn work(n: u64) -> u64 {
    let setting = Setting { model: "llama-3.1-8b".into(), on: "8xh200".into(), ..Setting::default() };
    let request = Request { setting, tpot_ms: Some(20.0), ttft_ms: Some(500.0), ..Request::default() };
    let (space, q) = space(&rackmath_catalog::embedded(), &request, 1).expect("a good request");
    let good = |index: u64| space.estimate(index, q.output, q.traffic).is_some_and(|e| q.limits.broken(&e) == 0);
    (0..n).map(|i| u64::from(good(black_box(i % space.len())))).sum()
}

/// Instructions of a run with so many estimates.
fn counted(n: u64) -> Option<u64> {
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .env(ESTIMATES, n.to_string())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stderr);
    let line = text.lines().find(|l| l.contains("refs:"))?;
    line.rsplit(':').next()?.trim().replace(',', "").parse().ok()
}
