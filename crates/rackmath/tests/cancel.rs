//! Every question that takes long ends soon after nobody wants its answer any more.

use rackmath::ask::{Question, Terms};
use rackmath_units::{Cancel, Effort};
use serde_json::{Value, json};

fn ask(name: &str, request: &Value, checks: u64) -> Result<String, rackmath::Error> {
    let Value::Object(request) = request.clone() else { panic!("an object") };
    let effort = Effort { threads: 1, cancel: Cancel::after(checks) };
    let terms = Terms { effort, ..Terms::default() };
    Question::find(name)?.answer(&rackmath_catalog::embedded(), request, &terms)?.json()
}

#[test]
fn a_cancelled_question_ends_and_says_so() {
    let setting = json!({ "model": "qwen3-0.6b", "on": "2xh200" });
    let plan = json!({ "setting": setting, "isl": 1000, "osl": 100 });
    let all = [
        ("plan", plan.clone()),
        ("whatif", json!({ "plan": plan, "set": ["isl=2k"] })),
        ("compare", json!({ "plan": plan, "engines": ["vllm", "sglang"] })),
        ("frontier", json!({ "plan": plan })),
        ("hardware", json!({ "plan": plan, "among": ["h100", "h200"] })),
        ("outlook", json!({ "plan": plan })),
        ("train", json!({ "model": "llama-3.1-8b", "on": "8xh100", "search": true, "global_batch": 64 })),
        ("deduce", json!({ "input_usd_per_mtok": 1.0, "output_usd_per_mtok": 4.0, "log2_points": 13 })),
        ("goodput", json!({ "chips": 16384, "job_mtbf_hours": 3, "work_days": 54 })),
        ("scaling", json!({})),
        ("lifecycle", json!({})),
        ("reversible", json!({ "depth": 2, "steps": 2 })),
        ("validate", json!({ "tables": ["h200-torch"] })),
        ("estimate-sweep", json!({ "estimate": { "setting": setting } })),
        ("station", json!({ "requests": 10_000 })),
        ("pipeline", json!({ "schedule": "1f1b" })),
    ];
    for (name, request) in &all {
        let refused = ask(name, request, 0).expect_err(name);
        assert!(refused.is_cancelled(), "{name}: {refused}");
    }
    // Half-way is soon enough; with patience enough, the answer is there.
    assert!(ask("plan", &plan, 20).expect_err("plan").is_cancelled());
    assert!(ask("plan", &plan, 1_000_000).is_ok());
}
