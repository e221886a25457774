//! Scenarios that no engine could run: refused in words, never a panic or a run without end.

use rackmath_sim::replay::{self, Scenario};
use rackmath_units::Chance;
use serde_json::{Value, json};

fn said(engine: Value, clock: Value, requests: Value) -> String {
    let all = json!({"name": "odd", "engine": engine, "clock": clock, "requests": requests});
    match serde_json::from_value::<Scenario>(all) {
        Err(e) => e.to_string(),
        Ok(scenario) => replay::run(&scenario).map_or_else(|e| e, |lines| format!("{} lines", lines.len())),
    }
}

fn one(prompt: u64, output: u64) -> Value {
    json!([{"id": "a", "arrival_ns": 5, "prompt": [[1, 0, prompt]], "output_tokens": output, "output_stream": 2}])
}

#[test]
fn odd_scenarios_are_refused_in_words() {
    let plain = || json!({});
    assert_eq!(said(plain(), plain(), one(10, 3)), "5 lines");
    for (engine, clock, requests, expected) in [
        (json!({"block_size": 0}), plain(), one(10, 3), "block_size = 0"),
        (json!({"num_blocks": 1}), plain(), one(10, 3), "num_blocks = 1"),
        (json!({"num_blocks": 4_000_000_000_u64}), plain(), one(10, 3), "num_blocks = 4000000000"),
        (json!({"max_model_len": 0}), plain(), one(10, 3), "max_model_len = 0"),
        (json!({"prefill_schedule_interval": 0}), plain(), one(10, 3), "prefill_schedule_interval = 0"),
        (json!({"watermark": -0.5}), plain(), one(10, 3), "watermark = -0.5"),
        (json!({"groups": []}), plain(), one(10, 3), "groups = 0"),
        (json!({"groups": [{"kind": "sliding", "window": 0}]}), plain(), one(10, 3), "window = 0"),
        (json!({"gropus": 1}), plain(), one(10, 3), "unknown field `gropus`"),
        (json!({"num_blocks": 4}), plain(), one(100, 3), "cannot make progress"),
        (json!({"max_num_active_seqs": 0}), plain(), one(100, 3), "cannot make progress"),
        (plain(), json!({"base_ns": u64::MAX}), one(10, 3), "the longest step takes"),
        (plain(), plain(), one(0, 3), "a: expected 1 to"),
        (plain(), plain(), one(10, 0), "a: expected 1 to"),
        (plain(), plain(), one(40_000, 1), "a: expected 1 to"),
        (plain(), plain(), one(10, 4_000_000_000), "tokens of all requests"),
        (
            plain(),
            plain(),
            json!([{"id": "a", "after": "a", "prompt": [[1, 0, 4]], "output_tokens": 1, "output_stream": 2}]),
            "a never finishes",
        ),
        (
            plain(),
            plain(),
            json!([{"id": "a", "after": "b", "prompt": [[1, 0, 4]], "output_tokens": 1, "output_stream": 2}]),
            "after an unknown request \"b\"",
        ),
        (
            plain(),
            plain(),
            json!([{"id": "a", "arrival_ns": u64::MAX, "prompt": [[1, 0, 4]], "output_tokens": 1, "output_stream": 2}]),
            "a: arrival_ns",
        ),
        (
            plain(),
            plain(),
            json!([{"id": "a", "prompt": [[1, 0, 4]], "output_tokens": 1, "output_stream": 2}]),
            "either arrival_ns or after",
        ),
    ] {
        let found = said(engine.clone(), clock, requests);
        assert!(found.contains(expected), "{engine}: {found}");
    }
}

/// Small whole numbers and edges in place of any number of a scenario.
fn shake(value: &mut Value, chance: &mut Chance) {
    match value {
        Value::Number(n) if chance.below(6) == 0 => {
            let edges = [0, 1, 2, 3, 15, 16, 17, 64, 1000, 1 << 20, 1 << 32, u64::MAX];
            *n = edges[chance.below(edges.len() as u64) as usize].into();
        }
        Value::Array(all) => {
            for v in all.iter_mut() {
                shake(v, chance);
            }
            if !all.is_empty() && chance.below(10) == 0 {
                all.remove(chance.below(all.len() as u64) as usize);
            }
        }
        Value::Object(all) => all.values_mut().for_each(|v| shake(v, chance)),
        _ => {}
    }
}

#[test]
fn damaged_scenarios_end_or_are_refused() {
    let texts: Vec<Value> = include_str!("../data/vllm_scenarios.jsonl")
        .lines()
        .map(|line| {
            let mut all: Value = serde_json::from_str(line).unwrap();
            all["requests"].as_array_mut().unwrap().truncate(6);
            all
        })
        .collect();
    let (mut ran, mut refused) = (0, 0);
    for seed in 0..1500 {
        let mut chance = Chance::new(seed);
        let mut all = texts[seed as usize % texts.len()].clone();
        let part = ["engine", "clock", "requests"][chance.below(3) as usize];
        shake(&mut all[part], &mut chance);
        let Ok(scenario) = serde_json::from_value::<Scenario>(all) else {
            refused += 1;
            continue;
        };
        match replay::run(&scenario) {
            Ok(lines) => {
                assert!(lines.len() >= 2);
                ran += 1;
            }
            Err(error) => {
                assert!(error.len() < 500, "{error}");
                refused += 1;
            }
        }
    }
    assert!(ran > 100 && refused > 100, "{ran} ran, {refused} refused");
}
