//! How honest callers fare while others attack.
//!
//! `cargo bench -p rackmath-server --bench attack -- 10` runs each attack for 10 seconds from addresses of their own on the loopback, while
//! eight clients ask what a page asks, and prints their percentiles, their errors and the server's memory.

mod apart;
#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/elsewhere.rs"]
mod elsewhere;

use apart::{Server, Times};
use common::Client;
use elsewhere::from_elsewhere;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What one attacker does once more; what it holds stays in `held`.
type Attack = fn(SocketAddr, u8, u64, &mut Vec<TcpStream>);

fn open(to: SocketAddr, from: u8) -> Option<TcpStream> {
    let stream = from_elsewhere(to, from)?;
    stream.set_write_timeout(Some(Duration::from_millis(200))).ok()?;
    stream.set_read_timeout(Some(Duration::from_millis(200))).ok()?;
    Some(stream)
}

/// Sends, and hears a little of the answer.
fn say(to: SocketAddr, from: u8, bytes: &[u8]) {
    let Some(mut stream) = open(to, from) else { return };
    let _ = stream.write_all(bytes);
    let _ = stream.read(&mut [0; 4096]);
}

fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Asks and does not hear the answer; the newest are held.
fn hold(to: SocketAddr, from: u8, bytes: &[u8], most: usize, held: &mut Vec<TcpStream>) {
    if let Some(mut stream) = open(to, from) {
        let _ = stream.write_all(bytes);
        held.push(stream);
    }
    if held.len() > most {
        held.remove(0);
    }
}

fn body(of: &str) -> Vec<u8> {
    match of {
        "deep" => format!("{{\"x\": {}", "[".repeat(1_000_000)).into_bytes(),
        "wide" => format!("{{{}\"z\":1}}", (0..90_000).map(|i| format!("\"k{i}\":1,")).collect::<Vec<_>>().concat())
            .into_bytes(),
        _ => format!("{{\"files\": {{\"x.json\": [{}0]}}}}", "0,".repeat(500_000)).into_bytes(),
    }
}

fn attacks() -> Vec<(&'static str, Attack)> {
    vec![
        ("nobody", |_, _, _, _| std::thread::sleep(Duration::from_millis(50))),
        ("sockets that say nothing", |to, from, _, held| hold(to, from, b"", 1500, held)),
        ("headers that never end", |to, from, n, held| {
            hold(to, from, b"POST /api/plan HTTP/1.1\r\nhost: 127", 400, held);
            if let Some(one) = held.get_mut((n * 7) as usize % 400) {
                let _ = one.write_all(b"x");
            }
        }),
        ("bodies that never come", |to, from, _, held| {
            let head = post("/api/step", &[b' '; 900_000]);
            hold(to, from, &head[..200], 300, held);
        }),
        ("readers that do not read", |to, from, n, held| {
            let much = format!(r#"{{"schedule":"1f1b","stages":64,"micro_batches":{}}}"#, 200 + n % 40);
            let ask = if n.is_multiple_of(2) {
                post("/api/pipeline", much.as_bytes())
            } else {
                b"GET /openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\naccept-encoding: gzip\r\n\r\n".repeat(20)
            };
            hold(to, from, &ask, 100, held);
        }),
        ("large bodies", |to, from, _, _| say(to, from, &post("/api/step", &body("files")))),
        ("deep and wide JSON", |to, from, n, _| {
            say(to, from, &post("/api/step", &body(if n.is_multiple_of(2) { "deep" } else { "wide" })));
        }),
        ("headers by the thousand", |to, from, _, _| {
            let many = (0..20_000).map(|i| format!("x-{i}: y\r\n")).collect::<Vec<_>>().concat();
            say(to, from, format!("GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n{many}\r\n").as_bytes());
        }),
        ("pipelined requests", |to, from, _, _| {
            say(to, from, &b"GET /api/step/schema HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".repeat(500));
        }),
        ("plans", |to, from, n, held| {
            let plan = format!(
                r#"{{"setting":{{"model":"deepseek-v3","on":"512xh200"}},"isl":{},"osl":500,"rate_per_s":200,"tpot_ms":30}}"#,
                2000 + n
            );
            hold(to, from, &post("/api/plan", plan.as_bytes()), 30, held);
            std::thread::sleep(Duration::from_millis(20));
        }),
        ("plans that are left at once", |to, from, n, _| {
            let plan = format!(r#"{{"setting":{{"model":"qwen3-32b","on":"64xh200"}},"isl":{}}}"#, 2000 + n);
            if let Some(mut stream) = open(to, from) {
                let _ = stream.write_all(&post("/api/plan", plan.as_bytes()));
                std::thread::sleep(Duration::from_millis(30));
            }
        }),
        ("quick questions without a pause", |to, from, n, _| {
            let ask = format!(r#"{{"points":1000,"batch":{n}}}"#);
            say(to, from, &post("/api/curve", ask.as_bytes()));
        }),
        ("noise", |to, from, n, _| {
            let noise: Vec<u8> = (0..2000_u64).map(|i| (i.wrapping_mul(n ^ 0x9e37) >> 3) as u8).collect();
            say(to, from, &noise);
        }),
        ("HTTP/2, then noise", |to, from, n, _| {
            let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
            bytes.extend((0..3000_u64).map(|i| (i.wrapping_mul(n | 1) >> 2) as u8));
            say(to, from, &bytes);
        }),
    ]
}

pub fn main() {
    apart::serves();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let seconds = words.iter().find_map(|w| w.parse::<u64>().ok()).unwrap_or(2);
    let only = words.iter().find_map(|w| w.strip_prefix("only="));
    let mut server = Server::start();
    let address = server.address;
    let mut worst = Vec::new();
    for (name, attack) in attacks().into_iter().filter(|(name, _)| only.is_none_or(|o| name.contains(o))) {
        let (stop, tries) = (AtomicBool::new(false), AtomicU64::new(0));
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut all = Times::default();
        let mut errors = Vec::new();
        std::thread::scope(|scope| {
            for attacker in 0..4_u8 {
                let (stop, tries) = (&stop, &tries);
                scope.spawn(move || {
                    let mut held = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        let n = tries.fetch_add(1, Ordering::Relaxed);
                        attack(address, 2 + attacker, n, &mut held);
                    }
                });
            }
            let honest: Vec<_> = (0..8_u64)
                .map(|client| {
                    scope.spawn(move || {
                        let (mut connection, mut times, mut errors) = (Client::new(address), Vec::new(), Vec::new());
                        let mut turn = client;
                        while Instant::now() < end {
                            turn += 8;
                            let begun = Instant::now();
                            let ask = format!(
                                r#"{{"setting":{{"model":"llama-3.1-8b","on":"h100"}},"batch":{}}}"#,
                                1 + turn % 9973
                            );
                            let head = [("content-type", "application/json")];
                            let reply = match turn / 8 % 4 {
                                0 => connection.try_send("GET", "/", &[], b""),
                                _ => connection.try_send("POST", "/api/step", &head, ask.as_bytes()),
                            };
                            times.push(begun.elapsed().as_secs_f64());
                            match reply {
                                Ok(reply) if reply.status == 200 => {}
                                Ok(reply) => errors.push(reply.status.to_string()),
                                Err(e) => errors.push(e.to_string()),
                            }
                            std::thread::sleep(Duration::from_millis(20));
                        }
                        (times, errors)
                    })
                })
                .collect();
            for client in honest {
                let (times, wrong) = client.join().expect("ran");
                all.0.extend(times);
                errors.extend(wrong);
            }
            stop.store(true, Ordering::Relaxed);
        });
        let (now, most) = server.memory();
        println!(
            "{name:32} {}; {} errors {:?}; {} tries; memory {now:.0} MB, most {most:.0} MB",
            all.shown(),
            errors.len(),
            errors.iter().take(3).collect::<Vec<_>>(),
            tries.load(Ordering::Relaxed)
        );
        worst.append(&mut all.0);
        assert!(server.alive(), "the server lives");
    }
    println!("{:32} {}; ended in {:.2} s", "all together", Times(worst).shown(), server.term().as_secs_f64());
}
