//! Bodies at random and requests bent out of shape never crash or hang the server.
//!
//! `BODIES=100000 cargo test --release -p rackmath-server --test fuzz` runs the long round; the seed is fixed.

mod common;

use common::{Client, start};
use rackmath::ask::Question;
use serde_json::{Value, json};
use std::time::Instant;

/// SplitMix64: the same bodies on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A value of a field's type, or of another.
fn value(dice: &mut Dice, schema: &Value, root: &Value, depth: usize) -> Value {
    const WORDS: &[&str] = &[
        "",
        "h200",
        "8xh200",
        "gb200-nvl72",
        "qwen3-32b",
        "deepseek-v3",
        "fp8",
        "nvfp4",
        "vllm",
        "sglang",
        "max",
        "é\u{0}",
        "../x",
    ];
    const NUMBERS: &[f64] = &[0.0, -1.0, 1.0, 2.0, 3.5, 8.0, 64.0, 4096.0, 1e6, 1e12, 1e300, -1e300, 1e-300, 0.5];
    if dice.below(12) == 0 {
        return dice
            .one(&[Value::Null, json!([]), json!({}), json!("x"), json!(-1), json!(1e308), json!(true)])
            .clone();
    }
    let schema = match schema.get("$ref").and_then(Value::as_str) {
        Some(to) => root.pointer(to.trim_start_matches('#')).unwrap_or(schema),
        None => schema,
    };
    if let Some(choices) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        let choice = dice.one(choices).clone();
        return value(dice, &choice, root, depth);
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return dice.one(words).clone();
    }
    if let Some(word) = schema.get("const") {
        return word.clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => dice.one(kinds).as_str().unwrap_or("null").to_owned(),
        Some(Value::String(kind)) => kind.clone(),
        _ => "null".into(),
    };
    match kind.as_str() {
        "number" => json!(dice.one(NUMBERS)),
        "integer" => json!(*dice.one(&[0_u64, 1, 2, 3, 8, 13, 64, 200, u64::MAX])),
        "string" => json!(dice.one(WORDS)),
        "boolean" => json!(dice.below(2) == 0),
        "array" => {
            let items = schema.get("items").cloned().unwrap_or_default();
            Value::Array((0..dice.below(4)).map(|_| value(dice, &items, root, depth + 1)).collect())
        }
        "object" if depth < 4 => object(dice, schema, root, depth + 1),
        _ => Value::Null,
    }
}

fn object(dice: &mut Dice, schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else { return json!({}) };
    let mut out = serde_json::Map::new();
    for (name, field) in fields {
        if dice.below(4) == 0 {
            out.insert(name.clone(), value(dice, field, root, depth));
        }
    }
    if dice.below(20) == 0 {
        out.insert(
            "files".into(),
            json!({ "x.json": dice.one(&["{", "", "n_chips = 3", "[memory]\n", "{\"hidden_size\": 1}"]) }),
        );
    }
    Value::Object(out)
}

/// Text with a few of its bytes changed.
fn bent(dice: &mut Dice, text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=dice.below(4) {
        if bytes.is_empty() {
            break;
        }
        let at = dice.below(bytes.len());
        match dice.below(3) {
            0 => bytes[at] = dice.next() as u8,
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
        // These answer the same few requests slowly; their readers are the same code.
        .filter(|q| !matches!(q, Question::Validate | Question::Reversible | Question::Lecture))
        .map(|q| (*q, serde_json::to_value(q.schema().request).expect("JSON")))
        .collect();
    let mut dice = Dice(7);
    let mut client = Client::new(address);
    let mut seen = std::collections::BTreeMap::<u16, usize>::new();
    let mut slowest = (0.0, String::new());
    for _ in 0..bodies {
        let (question, schema) = dice.one(&schemas).clone();
        let text = object(&mut dice, &schema, &schema, 0).to_string();
        let body = match dice.below(4) {
            0 => bent(&mut dice, &text),
            1 => (0..dice.below(60)).map(|_| dice.next() as u8).collect(),
            _ => text.into_bytes(),
        };
        let begun = Instant::now();
        let reply = client.post(&format!("/api/{}", question.name()), &body);
        let took = begun.elapsed().as_secs_f64();
        if took > slowest.0 {
            slowest = (took, format!("{} {}", question.name(), String::from_utf8_lossy(&body)));
        }
        assert!(
            matches!(reply.status, 200 | 400 | 422),
            "{} {}\n{} {}",
            question.name(),
            String::from_utf8_lossy(&body),
            reply.status,
            reply.text()
        );
        *seen.entry(reply.status).or_default() += 1;
    }
    println!("{bodies} bodies: {seen:?}; slowest {:.2} s: {}", slowest.0, slowest.1);
    assert!(seen.get(&200).is_some_and(|n| n * 50 > bodies), "too few are answered to mean anything: {seen:?}");
    // And it still answers.
    assert_eq!(client.post("/api/step", b"{}").status, 200);
}
