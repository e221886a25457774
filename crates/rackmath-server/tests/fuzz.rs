//! Bodies at random and requests bent out of shape never crash or hang the server.
//!
//! `BODIES=100000 cargo test --release -p rackmath-server --test fuzz` runs the long round; the seed is fixed.

mod common;
#[path = "common/requests.rs"]
mod requests;

use common::{Client, start};
use rackmath::ask::Question;
use rackmath_units::Chance;
use requests::{below, object, one};
use serde_json::Value;
use std::time::Instant;

/// Text with a few of its bytes changed.
fn bent(dice: &mut Chance, text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=below(dice, 4) {
        if bytes.is_empty() {
            break;
        }
        let at = below(dice, bytes.len());
        match below(dice, 3) {
            0 => bytes[at] = below(dice, 256) as u8,
            1 => drop(bytes.remove(at)),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

#[test]
fn no_body_crashes_or_hangs_the_server() {
    let bodies: usize = std::env::var("BODIES").ok().and_then(|n| n.parse().ok()).unwrap_or(1_500);
    let address = start();
    let schemas: Vec<(Question, Value)> = Question::ALL
        .iter()
        // These answer the same few requests slowly, or simulate for long unoptimised; their readers are the same code.
        .filter(|q| !matches!(q, Question::Validate | Question::Reversible | Question::Lecture | Question::Capacity))
        .map(|q| (*q, serde_json::to_value(q.schema().request).expect("JSON")))
        .collect();
    let dice = &mut Chance::new(7);
    let mut client = Client::new(address);
    let mut seen = std::collections::BTreeMap::<u16, usize>::new();
    let mut slowest = (0.0, String::new());
    for _ in 0..bodies {
        let (question, schema) = one(dice, &schemas).clone();
        let text = object(dice, &schema, &schema, 0).to_string();
        let body = match below(dice, 4) {
            0 => bent(dice, &text),
            1 => (0..below(dice, 60)).map(|_| below(dice, 256) as u8).collect(),
            _ => text.into_bytes(),
        };
        let begun = Instant::now();
        let reply = client.post(&format!("/api/{}", question.name()), &body);
        let took = begun.elapsed().as_secs_f64();
        let asked = format!("{} {}", question.name(), String::from_utf8_lossy(&body));
        // An unoptimised build may need longer than anybody waits.
        assert!(matches!(reply.status, 200 | 400 | 422 | 503), "{asked}\n{} {}", reply.status, reply.text());
        if took > slowest.0 {
            slowest = (took, asked);
        }
        *seen.entry(reply.status).or_default() += 1;
    }
    println!("{bodies} bodies: {seen:?}; slowest {:.2} s: {}", slowest.0, slowest.1);
    assert!(seen.get(&200).is_some_and(|n| n * 50 > bodies), "too few are answered to mean anything: {seen:?}");
    // And it still answers.
    assert_eq!(client.post("/api/step", b"{}").status, 200);
}
