//! Hours of whatever comes: random requests, bent ones, noise, callers who leave.
//!
//! `cargo bench -p rackmath-server --bench soak -- 30` runs for 30 minutes against a server in a process of its own and prints memory every
//! minute; at the end, memory of the last third beside that of the second, and faults.

mod apart;
#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/elsewhere.rs"]
mod elsewhere;

use apart::{Server, asks};
use common::Client;
use elsewhere::from_elsewhere;
use rackmath_units::Chance;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

fn metric(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|l| l.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
    line.and_then(|l| l.rsplit(' ').next()?.parse().ok()).unwrap_or(f64::NAN)
}

pub fn main() {
    apart::serves();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let minutes = words.iter().find_map(|w| w.parse::<f64>().ok()).unwrap_or(0.2);
    let clients = words.iter().find_map(|w| w.strip_prefix("clients=")?.parse::<u64>().ok()).unwrap_or(4);
    let mut server = Server::start();
    let address = server.address;
    let all = asks::questions(None);
    let seen = Mutex::new(BTreeMap::<u16, usize>::new());
    let slowest = Mutex::new((0.0, String::new()));
    let longest = Mutex::new(0_usize);
    let begun = Instant::now();
    let end = begun + Duration::from_secs_f64(60.0 * minutes);
    let mut memory: Vec<f64> = Vec::new();
    std::thread::scope(|scope| {
        for client in 0..clients {
            let (all, seen, slowest, longest) = (&all, &seen, &slowest, &longest);
            scope.spawn(move || {
                let dice = &mut Chance::new(1000 + client);
                let mut connection = Client::new(address);
                while Instant::now() < end {
                    let (question, request) = asks::random(dice, all);
                    let text = Value::Object(request).to_string();
                    let mut bytes = text.clone().into_bytes();
                    let mut path = format!("/api/{}", question.name());
                    match dice.below(20) {
                        0..3 => {
                            for _ in 0..=dice.below(4) {
                                let at = dice.below(bytes.len().max(1) as u64) as usize;
                                if let Some(byte) = bytes.get_mut(at) {
                                    *byte = dice.below(256) as u8;
                                }
                            }
                        }
                        3 => bytes = (0..dice.below(3000)).map(|_| dice.below(256) as u8).collect(),
                        4 => path = format!("/{}", dice.below(1000)),
                        5 => path.push_str("?of=/rows&rows=10"),
                        6 => {
                            // Asks and leaves.
                            if let Some(mut stream) = from_elsewhere(address, 2 + client as u8) {
                                let _ = write!(stream, "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}", text.len());
                                std::thread::sleep(Duration::from_millis(dice.below(50)));
                            }
                            continue;
                        }
                        7 => path = format!("/api/{}/schema", question.name()),
                        _ => {}
                    }
                    let asked = Instant::now();
                    let reply = connection.try_send("POST", &path, &[("content-type", "application/json")], &bytes);
                    let status = reply.as_ref().map_or(0, |r| r.status);
                    let took = asked.elapsed().as_secs_f64();
                    *seen.lock().expect("whole").entry(status).or_default() += 1;
                    let size = reply.map_or(0, |r| r.body.len());
                    let mut most = longest.lock().expect("whole");
                    *most = size.max(*most);
                    drop(most);
                    let mut slow = slowest.lock().expect("whole");
                    if took > slow.0 {
                        *slow = (took, format!("{path} {}", text.chars().take(300).collect::<String>()));
                    }
                    drop(slow);
                    if status == 0 {
                        connection = Client::new(address);
                    }
                }
            });
        }
        while Instant::now() < end {
            std::thread::sleep(Duration::from_secs(2));
            memory.push(server.memory().0);
            if memory.len().is_multiple_of(30) {
                let count: usize = seen.lock().expect("whole").values().sum();
                println!(
                    "{:5.0} s: {count} requests, {:.0} MB",
                    begun.elapsed().as_secs_f64(),
                    memory[memory.len() - 1]
                );
            }
        }
    });
    let text = Client::new(address).get("/metrics").text().to_owned();
    let third = memory.len() / 3;
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len().max(1) as f64;
    let (second, last) = (mean(&memory[third..2 * third]), mean(&memory[2 * third..]));
    println!("by status (0: the connection ended): {:?}", seen.lock().expect("whole"));
    let slow = slowest.lock().expect("whole");
    println!("slowest {:.1} s: {}", slow.0, slow.1);
    println!("longest answer {:.2} MB", *longest.lock().expect("whole") as f64 / 1e6);
    println!("faults {}, the server lives: {}", metric(&text, "rackmath_faults_total"), server.alive());
    println!(
        "memory: second third {second:.1} MB, last third {last:.1} MB ({:+.1} %), most {:.0} MB",
        100.0 * (last / second - 1.0),
        server.memory().1
    );
}
