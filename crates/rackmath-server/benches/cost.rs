//! What questions cost beside what they are reckoned to cost.
//!
//! `cargo bench -p rackmath-server --bench cost -- 500` asks 500 random requests, works each on one thread, and prints how far the time of
//! the processor is from what was reckoned before. `-- 500 rows` prints every one of them as CSV.

use rackmath::ask::{Question, Terms};
use rackmath::field::{Field, Unit};
use rackmath_server::cost;
use rackmath_units::Chance;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const MODELS: &[&str] =
    &["llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "gpt-oss-120b", "deepseek-v3", "qwen3-235b-a22b", "llama-3.1-405b"];
const MACHINES: &[&str] =
    &["h100", "8xh100", "8xh200", "16xh200", "32xh200", "64xh200", "8xb200", "gb200-nvl72", "8xmi300x", "hgx-h100"];

/// A value of a field that somebody might ask for.
fn value(dice: &mut Chance, field: &Field) -> Option<Value> {
    let one = |dice: &mut Chance, of: &[&str]| json!(of[dice.below(of.len() as u64) as usize]);
    let spread = |dice: &mut Chance, low: f64, high: f64| low * (high / low).powf(dice.uniform());
    let name = field.path.rsplit('/').next().unwrap_or_default();
    let most = field.most.as_ref().map(|m| m.0);
    let number = match name {
        "model" => return Some(one(dice, MODELS)),
        "on" => return Some(one(dice, MACHINES)),
        "isl" | "prompt_tokens" | "context" => spread(dice, 100.0, 32_000.0).round(),
        "osl" => spread(dice, 10.0, 4000.0).round(),
        "concurrency" | "batch" => spread(dice, 1.0, 512.0).round(),
        "rate_per_s" => spread(dice, 0.1, 50.0),
        "ttft_ms" => 2000.0,
        "tpot_ms" => 50.0,
        "chips" => [8.0, 16.0, 24.0, 32.0, 64.0, 128.0][dice.below(6) as usize],
        "requests" => spread(dice, 100.0, most.unwrap_or(50_000.0).min(50_000.0)).round(),
        _ => {
            if field.list || field.unit == Unit::Json || field.unit == Unit::Group {
                return None;
            }
            if !field.words.is_empty() {
                let words: Vec<&str> = field.words.iter().map(String::as_str).collect();
                return Some(one(dice, &words));
            }
            if field.unit == Unit::Switch {
                return Some(json!(dice.below(2) == 0));
            }
            let usual = field.default.as_f64()?;
            let scaled = usual * spread(dice, 0.25, 4.0);
            most.map_or(scaled, |most| scaled.min(most))
        }
    };
    let whole = matches!(field.unit, Unit::Whole);
    Some(if whole { json!(number.round().max(1.0) as u64) } else { json!(number) })
}

fn put(request: &mut Map<String, Value>, path: &str, value: Value) {
    let mut parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let last = parts.pop().unwrap_or_default();
    let mut at = request;
    for part in parts {
        let inner = at.entry(part).or_insert_with(|| json!({}));
        let Some(inner) = inner.as_object_mut() else { return };
        at = inner;
    }
    at.insert(last.to_owned(), value);
}

/// Seconds of the processor that this thread has taken.
fn taken() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let n = words.iter().find_map(|w| w.parse::<usize>().ok()).unwrap_or(50);
    let rows = words.iter().any(|w| w == "rows");
    let only = words.iter().find_map(|w| w.strip_prefix("only="));
    let catalog = rackmath_catalog::embedded();
    let dice = &mut Chance::new(11);
    let all: Vec<(Question, Vec<Field>)> = Question::ALL
        .iter()
        .filter(|q| {
            only.map_or(!matches!(q, Question::Reversible | Question::Whatif | Question::Trace), |o| q.name() == o)
        })
        .map(|q| (*q, q.fields()))
        .collect();
    let mut ratios: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let (mut done, mut tried) = (0, 0);
    while done < n && tried < 20 * n {
        tried += 1;
        let (question, fields) = &all[dice.below(all.len() as u64) as usize];
        let mut request = Map::new();
        for _ in 0..dice.below(6) {
            let field = &fields[dice.below(fields.len() as u64) as usize];
            if let Some(value) = value(dice, field) {
                put(&mut request, &field.path, value);
            }
        }
        let reckoned = cost::of(*question, &request);
        if reckoned.seconds > 30.0 {
            continue;
        }
        let begun = taken();
        let Ok(reply) = question.answer(&catalog, request.clone(), &Terms::default()) else { continue };
        let Ok(text) = reply.json() else { continue };
        let real = taken() - begun;
        done += 1;
        if rows {
            println!(
                "{}\t{:.6}\t{:.6}\t{}\t{}",
                question.name(),
                reckoned.seconds,
                real,
                text.len(),
                Value::Object(request)
            );
        }
        // What takes less than a thousandth of a second is as quick as can be.
        ratios.entry(question.name()).or_default().push(reckoned.seconds.max(0.001) / real.max(0.001));
    }
    let within = |r: &[f64]| r.iter().filter(|x| (1.0 / 3.0..=3.0).contains(*x)).count();
    let sum: usize = ratios.values().map(|r| within(r)).sum();
    if !rows {
        for (name, list) in &mut ratios {
            list.sort_by(f64::total_cmp);
            let at = |p: f64| list[((list.len() - 1) as f64 * p) as usize];
            println!(
                "{name:16} {:4} asked, {:4} within 3x; reckoned over real: {:.2} to {:.2}, middle {:.2}",
                list.len(),
                within(list),
                at(0.0),
                at(1.0),
                at(0.5)
            );
        }
        println!("{done} requests, {sum} within 3x");
    }
}
