//! Bodies at random and requests bent out of shape never crash or hang the server.
//!
//! `BODIES=100000 cargo test --release -p rackmath-server --test fuzz` runs the long round; the seed is fixed.

mod common;

use common::{Client, start};
use rackmath::ask::Question;
use rackmath_units::Chance;
use serde_json::{Value, json};
use std::time::Instant;

fn below(dice: &mut Chance, n: usize) -> usize {
    dice.below(n as u64) as usize
}

fn one<'a, T>(dice: &mut Chance, of: &'a [T]) -> &'a T {
    &of[below(dice, of.len())]
}

/// A value of a field's type, or of another.
fn value(dice: &mut Chance, schema: &Value, root: &Value, depth: usize) -> Value {
    const WORDS: &str = "|h200|8xh200|gb200-nvl72|qwen3-32b|deepseek-v3|fp8|nvfp4|vllm|sglang|max|é\u{0}|../x";
    const NUMBERS: &[f64] = &[0.0, -1.0, 1.0, 2.0, 3.5, 8.0, 64.0, 4096.0, 1e6, 1e12, 1e300, -1e300, 1e-300, 0.5];
    if below(dice, 12) == 0 {
        let others = [Value::Null, json!([]), json!({}), json!("x"), json!(-1), json!(1e308), json!(true)];
        return one(dice, &others).clone();
    }
    let schema = match schema.get("$ref").and_then(Value::as_str) {
        Some(to) => root.pointer(to.trim_start_matches('#')).unwrap_or(schema),
        None => schema,
    };
    if let Some(choices) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        let choice = one(dice, choices);
        return value(dice, choice, root, depth);
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return one(dice, words).clone();
    }
    if let Some(word) = schema.get("const") {
        return word.clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => one(dice, kinds).as_str().unwrap_or("null").to_owned(),
        Some(Value::String(kind)) => kind.clone(),
        _ => "null".into(),
    };
    match kind.as_str() {
        "number" => json!(one(dice, NUMBERS)),
        "integer" => json!(*one(dice, &[0_u64, 1, 2, 3, 8, 13, 64, 200, u64::MAX])),
        "string" => json!(one(dice, &WORDS.split('|').collect::<Vec<_>>())),
        "boolean" => json!(below(dice, 2) == 0),
        "array" => {
            let items = schema.get("items").cloned().unwrap_or_default();
            Value::Array((0..below(dice, 4)).map(|_| value(dice, &items, root, depth + 1)).collect())
        }
        "object" if depth < 4 => object(dice, schema, root, depth + 1),
        _ => Value::Null,
    }
}

fn object(dice: &mut Chance, schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else { return json!({}) };
    let mut out = serde_json::Map::new();
    for (name, field) in fields {
        if below(dice, 4) == 0 {
            out.insert(name.clone(), value(dice, field, root, depth));
        }
    }
    if below(dice, 20) == 0 {
        let text = one(dice, &["{", "", "n_chips = 3", "[memory]\n", "{\"hidden_size\": 1}"]);
        out.insert("files".into(), json!({ "x.json": text }));
    }
    Value::Object(out)
}

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
