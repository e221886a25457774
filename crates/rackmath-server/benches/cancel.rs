//! How soon work ends when nobody wants it.
//!
//! `cargo bench -p rackmath-server --bench cancel -- 10` begins long questions, cancels each at a moment drawn from its usual time, ten times,
//! and prints how long it went on, by the clock and by the processor's own count, which other programs do not disturb.

mod apart;

use rackmath::ask::{Question, Terms};
use rackmath_units::{Cancel, Chance, Effort};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn questions() -> Vec<(&'static str, Value)> {
    let setting = json!({ "model": "deepseek-v3", "on": "256xh200" });
    let plan = json!({ "setting": setting, "isl": 4000, "osl": 500, "rate_per_s": 100, "tpot_ms": 40 });
    let one = json!({ "model": "llama-3.1-70b", "on": "8xh200" });
    let line = |i| format!("{{\"timestamp\":{},\"input_length\":2000,\"output_length\":300}}\n", i * 300);
    let trace = (0..4000).map(line).collect::<Vec<String>>().concat();
    vec![
        ("plan", plan.clone()),
        (
            "plan",
            json!({ "setting": one, "isl": 4000, "osl": 500, "rate_per_s": 4, "tpot_ms": "p99=40ms", "simulate": true }),
        ),
        ("whatif", json!({ "plan": plan, "set": ["isl=2k"] })),
        ("compare", json!({ "plan": plan, "engines": ["vllm", "sglang"] })),
        ("frontier", json!({ "plan": plan })),
        ("hardware", json!({ "plan": { "setting": one, "isl": 4000, "osl": 500 } })),
        ("outlook", json!({ "plan": plan })),
        ("simulate", json!({ "setting": one, "traffic": { "requests": 300_000, "rate_per_s": 4 } })),
        (
            "simulate",
            json!({ "setting": one, "traffic": { "requests": 50_000, "rate_per_s": 4, "prefixes": 100, "prefix_tokens": 2000 } }),
        ),
        ("simulate", json!({ "setting": one, "replay": { "trace_text": trace } })),
        ("train", json!({ "model": "llama-3.1-405b", "on": "2048xh100", "search": true, "global_batch": 2048 })),
        ("rl", json!({ "prompts": 4096, "on": "64xh100" })),
        ("deduce", json!({ "input_usd_per_mtok": 1.0, "output_usd_per_mtok": 4.0, "log2_points": 17 })),
        ("goodput", json!({ "chips": 16384, "job_mtbf_hours": 3, "work_days": 54 })),
        ("scaling", json!({})),
        ("lifecycle", json!({})),
        ("reversible", json!({ "depth": 16, "steps": 100 })),
        ("validate", json!({})),
        ("estimate", json!({ "setting": one, "rate_per_s": 3, "tpot_ms": "p99=50ms" })),
        ("estimate", json!({ "setting": one, "tpot_ms": "p99=50ms", "seek": { "solve": "rate" } })),
        ("estimate-sweep", json!({ "estimate": { "setting": one, "rate_per_s": 3 }, "points": 40 })),
        ("capacity", json!({ "estimate": { "setting": one, "tpot_ms": "p99=50ms" } })),
        ("station", json!({ "requests": 200_000 })),
        ("pipeline", json!({ "schedule": "all", "stages": 64, "micro_batches": 256 })),
        ("lecture", json!({})),
        ("own", json!({})),
    ]
}

/// Seconds of the processor that a thread has taken.
fn taken(thread: &std::path::Path) -> f64 {
    let text = std::fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

pub fn main() {
    let this = std::path::Path::new("/proc").join(std::fs::read_link("/proc/thread-self").unwrap_or_default());
    let words: Vec<String> = std::env::args().skip(1).collect();
    let tries = words.iter().find_map(|w| w.parse::<u32>().ok()).unwrap_or(3);
    let only = words.iter().find_map(|w| w.strip_prefix("only="));
    let catalog = rackmath_catalog::embedded();
    let dice = &mut Chance::new(3);
    let mut worst: f64 = 0.0;
    for (name, request) in questions().into_iter().filter(|(name, _)| only.is_none_or(|o| o == *name)) {
        let question = Question::find(name).expect("a question");
        let ask = |cancel: Cancel| {
            let Value::Object(request) = request.clone() else { return None };
            let terms = Terms { effort: Effort { threads: 1, cancel }, ..Terms::default() };
            Some(question.answer(&catalog, request, &terms).err())
        };
        // As long as it takes, but no longer than a server waits.
        let until = |after: Duration| {
            let cancel = Cancel::open();
            let (done, waits) = std::sync::mpsc::channel::<()>();
            let (token, thread) = (cancel.clone(), this.clone());
            let watch = std::thread::spawn(move || {
                if waits.recv_timeout(after).is_ok() {
                    return None;
                }
                token.cancel();
                Some((Instant::now(), taken(&thread)))
            });
            let begun = Instant::now();
            let error = ask(cancel).flatten();
            let (ended, count) = (Instant::now(), taken(&this));
            let _ = done.send(());
            let told = watch.join().expect("ran");
            (ended - begun, told.map(|(told, then)| (ended.saturating_duration_since(told), count - then)), error)
        };
        let (usual, _, error) = until(Duration::from_secs(30));
        let (mut late, mut worked) = (Vec::new(), 0.0_f64);
        for _ in 0..tries {
            if let (_, Some((went_on, count)), Some(_)) =
                until(usual.min(Duration::from_secs(10)).mul_f64(dice.uniform()))
            {
                late.push(went_on.as_secs_f64() * 1e3);
                worked = worked.max(count * 1e3);
            }
        }
        let most = late.iter().copied().fold(0.0, f64::max);
        worst = worst.max(worked);
        let wrong = error.filter(|e| !e.is_cancelled()).map_or(String::new(), |e| format!("; {e}"));
        println!(
            "{name:16} takes {:8.0} ms; cancelled {:3} times, went on for at most {worked:.1} ms of the processor, {most:.1} ms by the clock{wrong}",
            usual.as_secs_f64() * 1e3,
            late.len()
        );
    }
    println!("at most {worst:.1} ms of the processor");
}
