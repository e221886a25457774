//! Instructions that questions take once everything is read, counted by valgrind: a guard that no busy machine disturbs.
//!
//! `cargo bench -p rackmath --bench instructions` fails when one takes more than its limit. It runs itself twice under
//! callgrind for each, with few and with many rounds, so that what is done once does not count. It needs valgrind.

use rackmath::plan::{Request, space};
use rackmath::setting::Setting;
use rackmath::{estimate, step};
use std::hint::black_box;
use std::process::{Command, ExitCode};

/// What is counted: its name, most instructions (a little above what was counted when they were last looked at), few and many rounds.
const COUNTED: [(&str, f64, u64, u64); 4] = [
    ("one estimate of a prepared space", 690.0, 200_000, 1_200_000),
    ("a step, the catalogue warm", 79_000.0, 20, 220),
    ("an estimate, the catalogue warm", 2_300_000.0, 10, 60),
    ("an estimate with its menu of changes, the catalogue warm", 31_500_000.0, 5, 25),
];

/// Which of them, and how many rounds, a run under valgrind is to do.
const ROUNDS: &str = "RACKMATH_ROUNDS";

fn main() -> ExitCode {
    if let Ok(text) = std::env::var(ROUNDS) {
        let (which, n) = text.split_once(' ').expect("which and how many");
        println!("{}", work(which.parse().expect("a number"), n.parse().expect("a number")));
        return ExitCode::SUCCESS;
    }
    // `cargo test` runs benches too, without optimisation: there is nothing to count then.
    if !std::env::args().any(|a| a == "--bench") {
        return ExitCode::SUCCESS;
    }
    let mut good = true;
    for (which, (what, most, few, many)) in COUNTED.into_iter().enumerate() {
        let (Some(short), Some(long)) = (counted(which, few), counted(which, many)) else {
            eprintln!("valgrind did not run; expected it installed: apt-get install valgrind");
            return ExitCode::FAILURE;
        };
        let each = (long - short) as f64 / (many - few) as f64;
        println!("{each:.1} instructions for {what}, at most {most}");
        good &= each <= most;
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// So many rounds of one of them; something that depends on all of them.
fn work(which: usize, n: u64) -> u64 {
    let catalog = rackmath_catalog::embedded();
    let setting = Setting { model: "llama-3.1-8b".into(), on: "8xh200".into(), ..Setting::default() };
    let deepseek = || Setting { model: "deepseek-v3".into(), on: "gb200-nvl72".into(), ..Setting::default() };
    match which {
        // A space that holds one pool and two, each with its limits looked at.
        0 => {
            let request =
                Request { setting, tpot_ms: Some(20.0.into()), ttft_ms: Some(500.0.into()), ..Request::default() };
            let (space, q) = space(&catalog, &request, 1).expect("a good request");
            let good = |i: u64| space.estimate(i, q.output, q.traffic).is_some_and(|e| q.limits.broken(&e) == 0);
            (0..n).map(|i| u64::from(good(black_box(i % space.len())))).sum()
        }
        1 => {
            let ask =
                |i: u64| step::Request { setting: deepseek(), batch: Some(1.0 + i as f64), ..step::Request::default() };
            (0..n).map(|i| step::answer(&catalog, &black_box(ask(i))).expect("a step").assumptions.len() as u64).sum()
        }
        which => {
            let concurrency = |i: u64| Some(1.0 + i as f64);
            let (changes, usual) = (which == 3, estimate::Request::default());
            let ask = |i: u64| estimate::Request {
                setting: deepseek(),
                concurrency: concurrency(i),
                changes,
                ..usual.clone()
            };
            let answered = |i: u64| estimate::answer(&catalog, &black_box(ask(i))).expect("an estimate");
            (0..n).map(|i| answered(i).assumptions.len() as u64).sum()
        }
    }
}

/// Instructions of a run with so many rounds.
fn counted(which: usize, n: u64) -> Option<u64> {
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .env(ROUNDS, format!("{which} {n}"))
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stderr);
    let line = text.lines().find(|l| l.contains("refs:"))?;
    line.rsplit(':').next()?.trim().replace(',', "").parse().ok()
}
