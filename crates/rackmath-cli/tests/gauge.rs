//! `gauge` and `watch` as they are typed: a server with known faults, result files and saved metrics, and what is refused.

#[path = "../../rackmath-measure/tests/mock/mod.rs"]
mod mock;

use mock::{Act, Manner, Mock};
use serde_json::Value;
use std::fmt::Write as _;
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
        text(&out.stdout).starts_with("Target missed: TTFT mean is 62.8 ms, the target 10.0 ms."),
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
fn a_measurement_begins_with_what_it_comes_to_and_that_alone_is_left_where_it_is_enough() {
    let file = data("vllm_0.32.0_bench_serve_detailed.json");
    let beside = ["--on", "1xh200", "--model", "llama-3.1-8b"];
    for (more, verdict) in [
        (&["--no-predict"][..], "Measured: TPOT 24.2 ms, TTFT 62.8 ms, output 62.6 tok/s; 24 answered, 0 failed.\n"),
        (&beside, "Not as it should be: TPOT"),
    ] {
        let words = [&["gauge", "--read", &file][..], more].concat();
        let page = text(&rackmath(&words).stdout);
        assert!(page.starts_with(verdict), "{page}");
        let quiet = text(&rackmath(&[&words[..], &["--quiet"]].concat()).stdout);
        assert!(page.starts_with(quiet.trim_end()) && quiet.lines().count() <= 3, "{quiet}");
    }
    let scrapes = ["idle", "busy"].map(|which| data(&format!("vllm_0.32.0_metrics_{which}.txt")));
    let page = text(&rackmath(&["watch", "--replay", &scrapes[0], &scrapes[1], "--quiet"]).stdout);
    assert!(page.starts_with("Look at this: the queue grows") && page.trim().lines().count() == 1, "{page}");
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
fn a_replay_is_also_a_page_and_a_line_of_json_for_each_interval() {
    let page = scratch("watch.html");
    let _ = std::fs::remove_file(&page);
    let path = page.display().to_string();
    let names = ["idle", "busy"].map(|which| data(&format!("vllm_0.32.0_metrics_{which}.txt")));
    let last = data("vllm_0.32.0_metrics.txt");
    let words = ["watch", "--replay", &names[0], &names[1], &last, "--interval", "20s"];
    let with = ["--on", "1xh200", "--model", "llama-3.1-8b", "--json", "--page", &path];
    let out = rackmath(&[&words[..], &with[..]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let lines: Vec<Value> = text(&out.stdout).lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["view"]["alerts"][0]["says"], "watch_queue_grows");
    let html = std::fs::read_to_string(&page).expect("a page");
    for said in ["http-equiv=\"refresh\" content=\"20\"", "waiting", "predicted", "output tokens a second", "</html>"] {
        assert!(html.contains(said), "{said} in {html}");
    }
    // The curve and two histories; no script, and nothing from elsewhere.
    assert_eq!(html.matches("<svg").count(), 4, "{html}");
    assert!(!html.contains("<script") && !html.contains("src="), "{html}");
}

#[test]
fn standard_output_is_one_json_document_whatever_happens() {
    let whole = |out: &Output| serde_json::from_slice::<Value>(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    // Nobody there, a host that is not to be loaded, a file that is no result, all of them refused.
    let unknown = scratch("no-result.json");
    std::fs::write(&unknown, "{\"b\": 1}").expect("written");
    let unknown = unknown.display().to_string();
    let refused: [(&[&str], &str, i32); 3] = [
        (&["gauge", "http://127.0.0.1:9", "--json"], "connection refused", 3),
        (&["gauge", "http://8.8.8.8:8000", "--json"], "8.8.8.8", 2),
        (&["gauge", "--read", &unknown, "--json"], "no-result.json", 2),
    ];
    for (words, says, code) in refused {
        let out = rackmath(words);
        let answer = whole(&out);
        assert_eq!((out.status.code(), answer["exit_code"].as_i64()), (Some(code), Some(i64::from(code))));
        assert!(text(&out.stderr).contains(says), "{}", text(&out.stderr));
        assert!(answer["error"].as_str().is_some_and(|e| e.contains(says)), "{answer}");
    }
    // Nobody answers.
    let mock = Mock::start(Manner { act: |_| Act::Status(500), ..Manner::default() });
    let out = rackmath(&["gauge", &mock.url, "--requests", "5", "--rate", "50", "--warmup", "0", "--json"]);
    let answer = whole(&out);
    assert_eq!((out.status.code(), answer["exit_code"].as_u64()), (Some(3), Some(3)), "{answer}");
    assert_eq!(answer["measured"]["counts"]["faults"]["status 500"], 5);
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_prints_what_was_measured_as_one_json_document() {
    let mock = Mock::start(Manner::default());
    let words = ["gauge", &mock.url, "--requests", "100000", "--rate", "50", "--warmup", "0", "--json", "--no-predict"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_rackmath"));
    command.args(words).env_remove("OPENAI_API_KEY");
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("it starts");
    while mock.counters.finished.load(std::sync::atomic::Ordering::SeqCst) < 10 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill").success());
    let out = child.wait_with_output().expect("it ends");
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    assert_eq!((out.status.code(), answer["measured"]["ended"].as_str()), (Some(3), Some("stopped")));
    let count = |key: &str| answer["measured"]["counts"][key].as_u64().expect("a count");
    assert!(count("answered") >= 1 && count("answered") + count("stopped") == count("sent"), "{answer}");
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

/// A result file as vLLM writes it, with one thing put for another.
fn result(name: &str, put: &[(&str, &str)]) -> String {
    let plain = r#"{"endpoint_type":"vllm","model_id":"meta-llama/Llama-3.1-8B-Instruct","request_rate":5.6,"max_concurrency":null,"duration":180,"completed":1000,"failed":0,"total_input_tokens":1000000,"total_output_tokens":200000,"request_throughput":5.55,"output_throughput":1110,"mean_ttft_ms":62.8,"mean_tpot_ms":9.2,"p99_ttft_ms":330.1}"#;
    let text = put.iter().fold(plain.to_owned(), |text, (a, b)| {
        assert!(text.contains(a), "{a}");
        text.replace(a, b)
    });
    let path = scratch(name);
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

#[test]
fn what_cannot_be_judged_is_not_called_good() {
    let on = ["--on", "1xh100", "--quiet"];
    let cases = [
        (result("negative.json", &[("62.8", "-12")]), "Not to be judged: TTFT -12.0 ms cannot be, so it was left out."),
        (
            result("failed.json", &[("1000,\"failed\":0", "700,\"failed\":300")]),
            "Not to be judged: 300 of 1,000 requests failed (30.0 %)",
        ),
    ];
    for (file, verdict) in cases {
        let out = rackmath(&[&["gauge", "--read", &file][..], &on].concat());
        let page = text(&out.stdout).replace('\n', " ");
        assert!(page.starts_with(verdict) && !page.contains("as it should be"), "{page}");
        assert_eq!(out.status.code(), Some(3));
    }
}

/// A request of 200 tokens at 5.55 a second should take some 35 ms to the first and 8 ms for each other: 300 ms lost before the first are less than 199
/// times 20 ms, though the ratio is larger.
#[test]
fn the_verdict_names_what_loses_most_of_a_request() {
    let file = result("slow.json", &[("62.8", "335"), ("9.2", "28.0")]);
    let out = rackmath(&["gauge", "--read", &file, "--on", "1xh100"]);
    let page = text(&out.stdout);
    assert!(page.starts_with("Not as it should be: TPOT") && page.contains("of what a request loses"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 120), "{page}");
}

#[test]
fn an_offered_rate_that_was_not_reached_is_compared_at_what_was() {
    let file = result("unreached.json", &[("\"request_rate\":5.6", "\"request_rate\":50.0")]);
    let out = rackmath(&["gauge", "--read", &file, "--on", "1xh100"]);
    let page = text(&out.stdout).replace('\n', " ");
    let verdict = "The offered 50.0 requests a second were not reached, 5.55 were: compared at 5.55 requests a second.";
    assert!(page.starts_with(verdict) && !page.contains("the part is the decode step"), "{page}");
    assert_eq!(out.status.code(), Some(1));
}

#[test]
fn what_is_faster_than_predicted_is_not_blamed_on_a_part() {
    for (tpot, verdict) in [
        ("6.0", "Faster than predicted: TPOT 6.00 ms against"),
        ("2.0", "This cannot be what was named: TPOT 2.00 ms is below"),
    ] {
        let file = result(&format!("fast-{tpot}.json"), &[("9.2", tpot)]);
        let out = rackmath(&["gauge", "--read", &file, "--on", "1xh100"]);
        let page = text(&out.stdout).replace('\n', " ");
        assert!(page.starts_with(verdict) && !page.contains("the part is"), "{page}");
    }
}

/// Two scrapes ten seconds apart: so many requests of 1,000 tokens, with a TTFT, some of it waiting.
fn scrapes(name: &str, ttft_s: f64, queue_s: f64) -> String {
    let mut all = String::new();
    for (at, n) in [(0.0, 0.0), (10.0, 50.0)] {
        let _ = writeln!(all, "# rackmath scrape at {at}");
        for (series, value) in [
            ("num_requests_running", 8.0),
            ("num_requests_waiting", 0.0),
            ("prefix_cache_hits_total", 0.0),
            ("prefix_cache_queries_total", 1000.0 * n),
            ("prompt_tokens_total", 1000.0 * n),
            ("generation_tokens_total", 200.0 * n),
            ("request_success_total", n),
            ("time_to_first_token_seconds_sum", ttft_s * n),
            ("time_to_first_token_seconds_count", n),
            ("inter_token_latency_seconds_sum", 0.008 * 200.0 * n),
            ("inter_token_latency_seconds_count", 200.0 * n),
            ("request_queue_time_seconds_sum", queue_s * n),
            ("request_queue_time_seconds_count", n),
        ] {
            let _ = writeln!(all, "vllm:{series}{{model_name=\"meta-llama/Llama-3.1-8B-Instruct\"}} {value}");
        }
    }
    let path = scratch(name);
    std::fs::write(&path, all).expect("written");
    path.display().to_string()
}

#[test]
fn a_replay_knows_its_model_and_its_queue() {
    let file = scrapes("queue.txt", 0.15, 0.01);
    let page = text(&rackmath(&["watch", "--replay", &file, "--on", "1xh100"]).stdout);
    assert!(page.starts_with("Not as predicted: TTFT"), "{page}");
    let said = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("10.0 of 150.0 ms is waiting: the part is the prompt's pass"), "{page}");
    assert!(page.contains("beside Llama 3.1 8B") && page.contains("the prefix cache never hits"), "{page}");
    // The row of now stands where its number under way belongs.
    let rows = page.lines().skip_while(|l| !l.contains("under way   tok/s a chip")).skip(1);
    let number = |l: &str| l.split_whitespace().find_map(|w| w.replace(',', "").parse::<f64>().ok());
    let under_way: Vec<f64> = rows.filter_map(number).collect();
    assert!(under_way.len() > 3 && under_way.is_sorted(), "{under_way:?} in {page}");
}

#[test]
fn a_slow_step_stands_in_the_verdict_beside_what_waits() {
    let file = scrapes("slow.txt", 0.05, 0.0);
    let slow = std::fs::read_to_string(&file).expect("written");
    let slow: String = slow
        .lines()
        .map(|line| match line.rsplit_once(' ') {
            Some((name, _)) if name.contains("num_requests_waiting") => format!("{name} 3\n"),
            Some((name, value)) if name.contains("inter_token_latency_seconds_sum") => {
                format!("{name} {}\n", 4.0 * value.parse::<f64>().expect("a number"))
            }
            _ => format!("{line}\n"),
        })
        .collect();
    std::fs::write(&file, slow).expect("written");
    let page = text(&rackmath(&["watch", "--replay", &file, "--on", "1xh100"]).stdout).replace('\n', " ");
    let verdict = page.split("vllm over").next().unwrap_or_default();
    assert!(verdict.starts_with("Look at this: 3 requests wait") && verdict.contains("TPOT"), "{page}");
}

#[test]
fn a_server_that_is_not_there_is_the_same_to_both() {
    let gauge = rackmath(&["gauge", "http://127.0.0.1:9", "--on", "h200"]);
    let watch = rackmath(&["watch", "http://127.0.0.1:9", "--on", "h200", "--once"]);
    assert_eq!((gauge.status.code(), watch.status.code()), (Some(3), Some(3)));
    assert!(text(&watch.stderr).contains("hint: expected an OpenAI-compatible server"), "{}", text(&watch.stderr));
    assert_eq!(text(&gauge.stderr), text(&watch.stderr));
}

#[test]
fn nothing_is_called_right_where_nothing_was_predicted() {
    let file = scrapes("alone.txt", 0.05, 0.0);
    let page = text(&rackmath(&["watch", "--replay", &file]).stdout);
    assert!(page.starts_with("Not judged: no prediction beside: name the machine"), "{page}");
}

#[test]
fn a_stream_without_words_is_not_judged_and_not_saved() {
    let mock = Mock::start(Manner { act: |n| if n < 3 { Act::Answer } else { Act::Blank }, ..Manner::default() });
    let file = scratch("blank.toml").display().to_string();
    let _ = std::fs::remove_file(&file);
    let wanted = [
        "--requests",
        "100",
        "--rate",
        "200",
        "--warmup",
        "0",
        "--osl",
        "16",
        "--on",
        "h100",
        "--model",
        "llama-3.1-8b",
    ];
    let out = rackmath(&[&["gauge", &mock.url, "--save", &file], &wanted[..]].concat());
    let page = text(&out.stdout);
    assert_eq!(out.status.code(), Some(3), "{page}{}", text(&out.stderr));
    assert!(page.starts_with("Not to be judged: an answer has 1."), "{page}{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("blank.toml was not written") && !std::path::Path::new(&file).exists());
}

#[test]
fn rows_are_saved_at_the_load_that_was_reached() {
    let (from, to) = (scratch("unreached.json"), scratch("unreached.toml"));
    let file = r#"{"backend":"vllm","model_id":"meta-llama/Llama-3.1-8B-Instruct","num_prompts":320,"completed":320,"failed":0,
        "request_rate":20.0,"max_concurrency":null,"duration":26.67,"total_input_tokens":327680,"total_output_tokens":81920,
        "request_throughput":12.0,"output_throughput":3072.0,"mean_ttft_ms":80.0,"mean_tpot_ms":12.0,"mean_e2el_ms":3140.0}"#;
    std::fs::write(&from, file).expect("written");
    let (from, saved) = (from.display().to_string(), to.display().to_string());
    let out = rackmath(&["gauge", "--read", &from, "--on", "1xh100", "--save", &saved]);
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
    let rows = std::fs::read_to_string(&to).expect("saved");
    let rate = |line: &str| line.split("rate_per_s = ").nth(1).and_then(|r| r.split(',').next()?.parse::<f64>().ok());
    let rates: Vec<f64> = rows.lines().filter_map(rate).collect();
    assert!(rates.len() > 2 && rates.iter().all(|r| (11.0..14.0).contains(r)), "{rows}");
}

#[test]
fn a_cache_that_finds_less_than_is_expected_stands_in_the_verdict() {
    let file = scrapes("hits.txt", 0.042, 0.0);
    let plain = text(&rackmath(&["watch", "--replay", &file, "--on", "1xh100"]).stdout);
    let joined = |page: &str| page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        joined(&plain).contains("worth a look: the prefix cache never hits") && !plain.contains("nothing is wrong"),
        "{plain}"
    );
    assert!(plain.contains("set by the load") && !plain.contains("set by the load: inside, "), "{plain}");
    let held = text(&rackmath(&["watch", "--replay", &file, "--on", "1xh100", "--prefix-hit", "80%"]).stdout);
    assert!(
        joined(&held)
            .starts_with("Look at this: the prefix cache finds 0 % of what it is asked for where 80 % was expected"),
        "{held}"
    );
}
