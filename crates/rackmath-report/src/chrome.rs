//! A stretch of a run as a Chrome trace, for chrome://tracing and Perfetto: one row a replica, requests as nested spans.
//!
//! Source: Trace Event Format (Google, 2016): complete events "X", asynchronous nestable ones "b" and "e", names "M".

use rackmath::simulate::{Waited, Window};
use serde_json::{Value, json};

const REPLICAS: u32 = 1;
const REQUESTS: u32 = 2;

pub fn trace(window: &Window) -> String {
    let us = |s: f64| (s * 1e9).round() / 1e3;
    let mut all = vec![named(REPLICAS, None, "replicas"), named(REQUESTS, None, "requests")];
    let mut replicas: Vec<u32> = window.steps.iter().map(|s| s.replica).collect();
    replicas.sort_unstable();
    replicas.dedup();
    all.extend(replicas.iter().map(|r| named(REPLICAS, Some(*r), &format!("replica {r}"))));
    for s in &window.steps {
        let name = match (s.decodes, s.prompt_tokens) {
            (n, 0) => format!("{n} decode"),
            (0, n) => format!("prompts {n}"),
            (n, m) => format!("{n} decode, prompts {m}"),
        };
        let args = json!({"decodes": s.decodes, "prompt_tokens": s.prompt_tokens});
        let (ts, dur) = (us(s.start_s), us(s.end_s - s.start_s));
        all.push(
            json!({"ph": "X", "pid": REPLICAS, "tid": s.replica, "name": name, "ts": ts, "dur": dur, "args": args}),
        );
    }
    for r in &window.requests {
        spans(r, &mut all);
    }
    json!({"traceEvents": all, "displayTimeUnit": "ms", "otherData": {"left_out": window.left_out}}).to_string()
}

fn named(pid: u32, tid: Option<u32>, name: &str) -> Value {
    let what = if tid.is_some() { "thread_name" } else { "process_name" };
    json!({"ph": "M", "pid": pid, "tid": tid.unwrap_or(0), "name": what, "args": {"name": name}})
}

/// The request, and inside it what it waits for in turn.
fn spans(r: &Waited, all: &mut Vec<Value>) {
    let mut span = |name: &str, from_ms: f64, to_ms: f64, args: Value| {
        let event = |ph: &str, ms: f64| {
            let ts = r.arrival_s * 1e6 + ms * 1e3;
            json!({"ph": ph, "cat": "request", "id": r.request, "pid": REQUESTS, "tid": 0, "name": name, "ts": ts, "args": args})
        };
        all.extend([event("b", from_ms), event("e", to_ms)]);
    };
    let args = json!({
        "replica": r.replica, "prompt": r.prompt, "cached": r.cached, "output": r.output,
        "evictions": r.preemptions, "ttft_ms": r.ttft_ms, "e2e_ms": r.e2e_ms,
    });
    span(&format!("request {}", r.request), 0.0, r.e2e_ms, args);
    span("waits", 0.0, r.queue_ms, json!({}));
    span("prompt", r.queue_ms, r.ttft_ms, json!({}));
    span("answer", r.ttft_ms, r.e2e_ms, json!({}));
}
