//! Many clients at once, some of whom ask for much.
//!
//! `cargo bench -p rackmath-server --bench load -- 50 60` runs 50 clients for 60 seconds on the requests of the first page, against a server
//! in a process of its own; `-- 50 60 heavy=5` makes 5 % of the requests plans and simulations; `-- 50 10 heavy=5 term` tells the server to
//! end while it is asked, and says how long that takes and what became of those inside.

mod apart;
#[path = "../tests/common/mod.rs"]
mod common;

use apart::{Server, Times};
use common::Client;
use rackmath_units::Chance;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What the first page asks when it opens, and what its sliders ask after that.
fn light(client: usize, turn: usize) -> (&'static str, String) {
    let batch = 1 + (client * 7919 + turn * 104_729) % 131_071;
    let board = format!(r#""setting":{{"model":"deepseek-v3","on":"gb200-nvl72"}},"batch":{batch},"context":4096"#);
    match turn % 3 {
        0 => ("/api/curve", format!(r#"{{{board},"over":"batch","from":1,"to":131072,"points":140}}"#)),
        1 => ("/api/step", format!("{{{board}}}")),
        _ => ("/api/names", "{}".into()),
    }
}

/// What takes long: no two alike.
fn heavy(dice: &mut Chance) -> (&'static str, String) {
    let n = dice.below(1_000_000);
    match dice.below(3) {
        0 => (
            "/api/plan",
            format!(
                r#"{{"setting":{{"model":"deepseek-v3","on":"256xh200"}},"isl":{},"osl":500,"rate_per_s":200,"tpot_ms":30}}"#,
                2000 + n % 6000
            ),
        ),
        1 => ("/api/simulate", format!(r#"{{"traffic":{{"requests":200000,"rate_per_s":6,"seed":{n}}}}}"#)),
        _ => (
            "/api/train",
            format!(
                r#"{{"model":"llama-3.1-405b","on":"2048xh100","search":true,"global_batch":{}}}"#,
                1024 + n % 1024
            ),
        ),
    }
}

pub fn main() {
    apart::serves();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = words.iter().filter_map(|a| a.parse().ok()).collect();
    let (clients, seconds) = (*numbers.first().unwrap_or(&10) as usize, *numbers.get(1).unwrap_or(&3));
    let share: u64 = words.iter().find_map(|w| w.strip_prefix("heavy=")?.parse().ok()).unwrap_or(0);
    let term = words.iter().any(|w| w == "term");
    let mut server = Server::start();
    let address = server.address;
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let workers: Vec<_> = (0..clients)
        .map(|client| {
            std::thread::spawn(move || {
                let dice = &mut Chance::new(client as u64);
                let (mut connection, mut cheap, mut dear) = (Client::new(address), Vec::new(), Vec::new());
                let mut turn = client;
                while !stop.load(Ordering::Relaxed) {
                    turn += 1;
                    let long = dice.below(100) < share;
                    let (path, body) = if long { heavy(dice) } else { light(client, turn) };
                    let begun = Instant::now();
                    let reply =
                        connection.try_send("POST", path, &[("content-type", "application/json")], body.as_bytes());
                    let status = reply.map_or(0, |reply| reply.status);
                    let of = if long { &mut dear } else { &mut cheap };
                    of.push((begun.elapsed().as_secs_f64(), status));
                    if status == 0 {
                        break;
                    }
                    // A person drags; a page asks again some milliseconds later.
                    std::thread::sleep(Duration::from_millis(20));
                }
                (cheap, dear)
            })
        })
        .collect();
    std::thread::sleep(Duration::from_secs(seconds));
    let memory = server.memory();
    let ending = term.then(|| server.term());
    stop.store(true, Ordering::Relaxed);
    let (mut cheap, mut dear) = (Vec::new(), Vec::new());
    for worker in workers {
        let (c, d) = worker.join().expect("ran");
        cheap.extend(c);
        dear.extend(d);
    }
    let counted = |of: &[(f64, u16)]| {
        let mut seen = std::collections::BTreeMap::<u16, usize>::new();
        for (_, status) in of {
            *seen.entry(*status).or_default() += 1;
        }
        format!("{seen:?}")
    };
    let shown = |of: &[(f64, u16)]| Times(of.iter().map(|x| x.0).collect()).shown();
    println!("{clients} clients, {seconds} s, {share} % heavy (by status; 0: the connection ended)");
    println!("cheap: {}, {:.0} per second; {}", shown(&cheap), cheap.len() as f64 / seconds as f64, counted(&cheap));
    println!("heavy: {}; {}", shown(&dear), counted(&dear));
    println!("memory {:.0} MB, most {:.0} MB", memory.0, memory.1);
    if let Some(took) = ending {
        println!("told to end under load: gone after {:.2} s", took.as_secs_f64());
    }
}
