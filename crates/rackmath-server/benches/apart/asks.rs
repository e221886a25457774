//! Requests at random, as somebody might make them: some fields of a question, and for the long ones what makes them long.

use rackmath::ask::Question;
use rackmath::field::{Field, Unit};
use rackmath_units::Chance;
use serde_json::{Map, Value, json};

const MODELS: &[&str] =
    &["llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "gpt-oss-120b", "deepseek-v3", "qwen3-235b-a22b", "llama-3.1-405b"];
const MACHINES: &[&str] =
    &["h100", "8xh100", "8xh200", "16xh200", "32xh200", "64xh200", "8xb200", "gb200-nvl72", "8xmi300x", "hgx-h100"];

fn one<'a>(dice: &mut Chance, of: &[&'a str]) -> &'a str {
    of[dice.below(of.len() as u64) as usize]
}

fn spread(dice: &mut Chance, low: f64, high: f64) -> f64 {
    low * (high / low).powf(dice.uniform())
}

/// A value of a field that somebody might ask for.
fn value(dice: &mut Chance, field: &Field) -> Option<Value> {
    let name = field.path.rsplit('/').next().unwrap_or_default();
    let most = field.most.as_ref().map(|m| m.0);
    let number = match name {
        "model" => return Some(json!(one(dice, MODELS))),
        "on" => return Some(json!(one(dice, MACHINES))),
        "isl" | "prompt_tokens" | "context" if field.default.is_number() || field.optional => {
            spread(dice, 100.0, 32_000.0).round()
        }
        "osl" if field.default.is_number() || field.optional => spread(dice, 10.0, 4000.0).round(),
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
                return Some(json!(one(dice, &words)));
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

/// What makes a long question long, put on top of a few fields.
#[allow(clippy::too_many_lines, reason = "a table")]
fn spiced(dice: &mut Chance, question: Question, request: &mut Map<String, Value>) {
    use Question as Q;
    let half = |dice: &mut Chance| dice.below(2) == 0;
    let limit = |dice: &mut Chance| json!(one(dice, &["p99=50ms", "p90=40ms", "p95=80ms"]));
    match question {
        Q::Simulate => {
            put(request, "/traffic/requests", json!(spread(dice, 200.0, 40_000.0).round() as u64));
            put(request, "/traffic/rate_per_s", json!(spread(dice, 0.5, 20.0)));
            put(request, "/traffic/isl", json!(spread(dice, 100.0, 8000.0).round()));
            put(request, "/traffic/osl", json!(spread(dice, 10.0, 1000.0).round()));
            if half(dice) {
                put(request, "/fleet/replicas", json!(1 + dice.below(8)));
            }
            if half(dice) {
                put(request, "/traffic/isl_sigma", json!(0.8));
                put(request, "/traffic/osl_sigma", json!(0.8));
            }
            if dice.below(4) == 0 {
                put(request, "/compare", json!("router=round-robin,kv,least-loaded"));
            }
        }
        Q::Plan | Q::Whatif | Q::Frontier | Q::Compare | Q::Outlook | Q::Hardware => {
            let under = if question == Q::Plan { "" } else { "/plan" };
            put(request, &format!("{under}/setting/model"), json!(one(dice, MODELS)));
            put(request, &format!("{under}/setting/on"), json!(one(dice, MACHINES)));
            put(request, &format!("{under}/isl"), json!(spread(dice, 200.0, 8000.0).round()));
            put(request, &format!("{under}/osl"), json!(spread(dice, 50.0, 1000.0).round()));
            if half(dice) {
                put(request, &format!("{under}/rate_per_s"), json!(spread(dice, 1.0, 100.0)));
            }
            if dice.below(3) == 0 {
                put(request, &format!("{under}/engines"), json!(["vllm", "sglang"]));
            }
            if dice.below(3) == 0 {
                put(request, &format!("{under}/weights"), json!(["fp8", "auto"]));
            }
            if question == Q::Plan && dice.below(4) == 0 {
                put(request, "/tpot_ms", limit(dice));
            }
            if question == Q::Whatif {
                put(request, "/set", json!([one(dice, &["isl=2k", "tpot=30ms", "on=8xb200", "rate=50"])]));
            }
            if question == Q::Compare {
                put(request, "/engines", json!(["vllm", "sglang"]));
            }
            if question == Q::Hardware && half(dice) {
                put(request, "/among", json!(["h100", "h200", "b200"]));
            }
        }
        Q::Estimate | Q::EstimateSweep | Q::Capacity => {
            let under = if question == Q::Estimate { "" } else { "/estimate" };
            if half(dice) {
                put(request, &format!("{under}/setting/on"), json!(one(dice, MACHINES)));
                put(request, &format!("{under}/setting/model"), json!(one(dice, MODELS)));
            }
            if dice.below(3) == 0 && question != Q::Capacity {
                put(request, &format!("{under}/rate_per_s"), json!(spread(dice, 0.2, 20.0)));
            }
            if dice.below(3) == 0 {
                put(request, &format!("{under}/tpot_ms"), limit(dice));
            }
            if question == Q::Estimate && dice.below(3) == 0 {
                put(request, "/seek/solve", json!(one(dice, &["concurrency", "rate", "isl"])));
                put(request, "/tpot_ms", json!(50.0));
            }
        }
        Q::Train => {
            put(request, "/model", json!(one(dice, MODELS)));
            put(request, "/on", json!(one(dice, &["8xh100", "64xh100", "512xh100", "2048xh100", "16xb200"])));
            if half(dice) {
                put(request, "/search", json!(true));
            } else {
                put(request, "/tp", json!(1 << dice.below(4)));
            }
        }
        Q::Rl => {
            put(request, "/prompts", json!(16 << dice.below(5)));
            put(request, "/on", json!(one(dice, &["8xh100", "16xh100", "64xh200"])));
        }
        Q::Check => {
            let flags =
                one(dice, &["", "--tensor-parallel-size 8", "--max-model-len 8192 --kv-cache-dtype fp8", "-tp 4"]);
            let model = one(dice, &["meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-32B", "deepseek-ai/DeepSeek-V3"]);
            put(request, "/command", json!(format!("vllm serve {model} {flags}")));
            put(request, "/on", json!(one(dice, &["h100", "8xh200"])));
        }
        Q::Reversible => {
            request.clear();
            put(request, "/depth", json!(1 + dice.below(8)));
            put(request, "/steps", json!(1 + dice.below(40)));
        }
        Q::Pipeline => {
            put(request, "/stages", json!(2 + dice.below(30)));
            put(request, "/micro_batches", json!(4 + dice.below(200)));
            put(request, "/schedule", json!(one(dice, &["gpipe", "1f1b", "zb-h1", "all", "inference"])));
        }
        Q::Trace => {
            let line = |i: u64| {
                format!(
                    "{{\"timestamp\":{},\"input_length\":{},\"output_length\":{},\"hash_ids\":[1,{i}]}}\n",
                    i * 500,
                    200 + i % 700,
                    50 + i % 90
                )
            };
            put(request, "/name", json!("mine.jsonl"));
            put(request, "/text", json!((0..spread(dice, 10.0, 3000.0) as u64).map(line).collect::<String>()));
        }
        _ => {}
    }
}

/// The questions with their fields.
pub fn questions(only: Option<&str>) -> Vec<(Question, Vec<Field>)> {
    Question::ALL.iter().filter(|q| only.is_none_or(|o| q.name() == o)).map(|q| (*q, q.fields())).collect()
}

/// A request of one of them.
pub fn random(dice: &mut Chance, all: &[(Question, Vec<Field>)]) -> (Question, Map<String, Value>) {
    let (question, fields) = &all[dice.below(all.len() as u64) as usize];
    let mut request = Map::new();
    for _ in 0..dice.below(6) {
        if fields.is_empty() {
            break;
        }
        let field = &fields[dice.below(fields.len() as u64) as usize];
        if let Some(value) = value(dice, field) {
            put(&mut request, &field.path, value);
        }
    }
    if dice.below(4) > 0 {
        spiced(dice, *question, &mut request);
    }
    (*question, request)
}
