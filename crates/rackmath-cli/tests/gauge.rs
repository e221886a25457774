//! `gauge` and `watch` as they are typed: a server with known faults, result files and saved metrics, and what is refused.

#[path = "../../rackmath-measure/tests/mock/mod.rs"]
mod mock;

use mock::{Act, Manner, Mock};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

fn rackmath(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rackmath"));
    command.args(words).args(["--width", "120"]).env_remove("OPENAI_API_KEY");
    command.output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn data(name: &str) -> String {
    format!("{}/../rackmath-measure/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn a_run_counts_predicts_and_saves_a_row() {
    let mock = Mock::start(Manner::default());
    let row = scratch("row.toml");
    let _ = std::fs::remove_file(&row);
    let words = [
        "gauge",
        &mock.url,
        "--rate",
        "50",
        "--requests",
        "30",
        "--isl",
        "64",
        "--osl",
        "8",
        "--on",
        "1xh200",
        "--model",
        "llama-3.1-8b",
        "--warmup",
        "2",
        "--json",
        "--save",
        &row.display().to_string(),
    ];
    let out = rackmath(&words);
    // How late the client is on a busy machine, and so whether it may judge, is not the same every time.
    assert!(matches!(out.status.code(), Some(1 | 3)), "{:?} {}", out.status, text(&out.stderr));
    let answer: Value = serde_json::from_slice(&out.stdout).expect("json");
    assert_eq!(answer["measured"]["counts"]["answered"], 30);
    assert_eq!(answer["measured"]["counters"]["output_tokens"], 240.0);
    assert_eq!(
        (answer["found"]["engine"].as_str(), answer["beside"]["rows"][1]["name"].as_str()),
        (Some("vllm"), Some("TPOT"))
    );
    assert!(
        answer["beside"]["rows"][1]["predicted"]["high"].as_f64().is_some_and(|high| high > 0.0),
        "{}",
        answer["beside"]
    );
    let table =
        rackmath_spec::validation::read("row", &std::fs::read_to_string(&row).expect("saved")).expect("a table");
    assert_eq!((table.rows.len(), table.rows[0].model.as_str(), table.rows[0].isl), (5, "llama-3.1-8b", Some(64)));
}

#[test]
fn the_page_says_what_was_found_and_what_went_wrong() {
    let mock =
        Mock::start(Manner { act: |n| if n % 4 == 3 { Act::Status(503) } else { Act::Answer }, ..Manner::default() });
    let out = rackmath(&[
        "gauge",
        &mock.url,
        "--concurrency",
        "2",
        "--requests",
        "20",
        "--isl",
        "32",
        "--osl",
        "4",
        "--warmup",
        "0",
        "--no-predict",
    ]);
    let page = text(&out.stdout);
    assert!(matches!(out.status.code(), Some(0 | 3)), "{:?} {}", out.status, text(&out.stderr));
    for said in [
        "mock at http://127.0.0.1",
        "5 x status 503: too busy",
        "15 answered",
        "tokens out equal",
        "first chunk with a token - scheduled time",
    ] {
        assert!(page.contains(said), "{said} in {page}");
    }
}

#[test]
fn targets_that_are_missed_change_the_exit_code() {
    let out = rackmath(&["gauge", "--read", &data("vllm_0.32.0_bench_serve_detailed.json"), "--ttft", "10ms"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(
        text(&out.stdout).contains("target missed: TTFT mean is 62.8 ms, the target 10.0 ms"),
        "{}",
        text(&out.stdout)
    );
    let out = rackmath(&[
        "gauge",
        "--read",
        &data("vllm_0.32.0_bench_serve_detailed.json"),
        "--ttft",
        "p90=1s",
        "--tpot",
        "1s",
    ]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stdout));
}

#[test]
fn a_result_file_is_predicted_beside() {
    let out = rackmath(&[
        "gauge",
        "--read",
        &data("guidellm_0.8.1_benchmarks.json"),
        "--on",
        "1xh200",
        "--model",
        "llama-3.1-8b",
        "--json",
    ]);
    let answer: Value = serde_json::from_slice(&out.stdout).expect("json");
    assert_eq!(answer["observed"]["tool"], "GuideLLM");
    assert!(answer["beside"]["rows"][0]["predicted"]["value"].as_f64().is_some_and(|v| v > 0.0), "{answer}");
    assert_eq!(out.status.code(), Some(i32::try_from(answer["exit_code"].as_u64().expect("a code")).expect("small")));
}

#[test]
fn saved_metrics_are_replayed() {
    let files = [data("vllm_0.32.0_metrics_idle.txt"), data("vllm_0.32.0_metrics_busy.txt")];
    let words =
        ["watch", "--replay", &files[0], &files[1], "--interval", "20s", "--on", "1xh200", "--model", "llama-3.1-8b"];
    let out = rackmath(&words);
    let page = text(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    for said in [
        "running 8",
        "1.35 requests/s",
        "the queue grows: 0 waited at the beginning, 24 at the end",
        "roofline",
        "at twice the load",
        "output tokens a dollar",
        "now",
    ] {
        assert!(page.contains(said), "{said} in {page}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let unknown = scratch("unknown.json");
    std::fs::write(&unknown, "{\"a\": 1}").expect("written");
    let unknown = unknown.display().to_string();
    let busy = data("vllm_0.32.0_metrics_busy.txt");
    let cases: &[(&[&str], &str)] = &[
        (&["gauge", "http://8.8.8.8:8000"], "--i-may-load 8.8.8.8"),
        (&["gauge", "ftp://x"], "http://127.0.0.1:8000"),
        (&["gauge", "http://127.0.0.1:9", "--arrivals", "weekly"], "poisson, constant or bursts=CV"),
        (&["gauge", "http://127.0.0.1:9", "--rate", "1", "--concurrency", "2"], "expected one"),
        (&["gauge", "http://127.0.0.1:9", "--rate", "1"], "connection refused"),
        (&["gauge", "http://127.0.0.1:9", "--key-env", "NOT_SET_ANYWHERE"], "environment variable"),
        (&["gauge", "http://127.0.0.1:9", "--spend-at-most", "2$"], "--token-price"),
        (&["gauge", "--read", &unknown], "its keys are a"),
        (&["gauge"], "URL"),
        (&["watch", "--replay", &busy], "two or more"),
        (&["watch", "--replay", &unknown, &unknown], "no engine that is known"),
    ];
    for (words, said) in cases {
        let out = rackmath(words);
        assert_eq!(out.status.code(), Some(2), "{words:?}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(said), "{words:?}: {said} in {}", text(&out.stderr));
    }
}
