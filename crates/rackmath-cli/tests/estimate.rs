//! `rackmath estimate` as a person sees it.

use assert_cmd::Command;
use rackmath::estimate;
use rackmath::estimate::{Request, answer};
use rackmath::layout::DegreesRequest;

fn rackmath(args: &[&str]) -> (String, String, i32) {
    let mut command = Command::cargo_bin("rackmath").expect("built");
    let output =
        command.arg("estimate").args(args).args(["--width", "100"]).env("NO_COLOR", "1").output().expect("ran");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code().expect("exited"))
}

fn shown(args: &[&str]) -> String {
    let (out, err, code) = rackmath(args);
    assert_eq!(code, 0, "{err}");
    out
}

fn typed(line: &str) -> String {
    shown(&line.split(' ').collect::<Vec<_>>())
}

fn refused(args: &[&str]) -> String {
    let (out, err, code) = rackmath(args);
    assert_eq!((out.as_str(), code), ("", 2), "{err}");
    err
}

const DENSE: &str = "llama-3.1-70b --on 8xh200 --tp 8 --concurrency 64 --isl 1k --osl 1k --engine vllm";

#[test]
fn dense() {
    insta::assert_snapshot!(typed(DENSE));
}

#[test]
fn experts_on_a_rack() {
    insta::assert_snapshot!(typed("deepseek-v3 --on gb200-nvl72 --dp 32 --ep 32 --concurrency 1024 --engine trtllm"));
}

#[test]
fn one_user_at_home() {
    insta::assert_snapshot!(typed("llama-3.1-8b --on rtx-4090 -q q4_k_m --engine llamacpp --concurrency 1"));
}

#[test]
fn sweep() {
    insta::assert_snapshot!(shown(&["gpt-oss-120b", "--on", "8xh200", "--tp", "2", "--sweep"]));
}

#[test]
fn sweep_as_csv() {
    let csv = shown(&["llama-3.1-8b", "--on", "h100", "--sweep", "--csv", "-"]);
    assert!(csv.starts_with("concurrency,output_tok_s_per_user,output_tok_s_per_chip,tpot_ms,"));
    assert_eq!(csv.lines().nth(1).and_then(|l| l.split(',').next()), Some("1"));
    assert_eq!(csv.lines().last().and_then(|l| l.split(',').next()), Some("1024"));
    assert!(shown(&["llama-3.1-8b", "--on", "h100", "--sweep", "--svg", "-"]).starts_with("<svg"));
}

#[test]
fn two_pools() {
    insta::assert_snapshot!(typed(
        "llama-3.1-70b --on 8xh200 --tp 4 --isl 8k --osl 500 --disaggregated --prefill-tp 2 --ttft-slo 2s --tpot-slo 30ms"
    ));
}

#[test]
fn what_does_not_fit_is_an_answer() {
    insta::assert_snapshot!(shown(&["deepseek-v3", "--on", "hgx-h100", "--tp", "8", "-q", "bf16"]));
}

#[test]
fn an_engine_nobody_knows() {
    insta::assert_snapshot!(refused(&["llama-3.1-8b", "--on", "h100", "--engine", "vlm"]));
}

#[test]
fn an_engine_version_says_what_it_is_taken_as() {
    let page = shown(&["llama-3.1-8b", "--on", "h100", "--engine", "vllm@99.1.2", "--no-changes"]);
    assert!(page.contains("vllm@99.1.2 is taken as vLLM"), "{page}");
    insta::assert_snapshot!(refused(&["llama-3.1-8b", "--on", "h100", "--engine", "vllm@nightly"]));
}

#[test]
fn a_chip_without_the_arithmetic_says_what_is_assumed() {
    let page = shown(&["llama-3.1-70b", "--on", "8xa100-80gb", "--tp", "8", "-q", "fp8", "--no-changes"]);
    assert!(page.contains("a100-80gb has no fp8 arithmetic"), "{page}");
}

#[test]
fn a_command_line_of_the_engine_is_read() {
    let flags = ["--flags", "-tp 4 --enable-expert-parallel"];
    let page = shown(&[&["qwen3-235b-a22b", "--on", "8xh200", "-q", "fp8"], &flags[..]].concat());
    assert!(page.contains("tp4 ep4, 4 chips"), "{page}");
}

#[test]
fn json_is_the_library_s_answer_byte_for_byte() {
    let args = format!("{DENSE} --json");
    let (once, twice) = (typed(&args), typed(&args));
    assert_eq!(once, twice);
    let mut request =
        Request { degrees: DegreesRequest { tp: Some(8), ..DegreesRequest::default() }, ..Request::default() };
    request.setting.model = "llama-3.1-70b".into();
    request.setting.on = "8xh200".into();
    request.concurrency = Some(64.0);
    let own = answer(&rackmath_catalog::embedded(), &request).expect("answered");
    assert_eq!(once, serde_json::to_string_pretty(&own).expect("plain data") + "\n");
    let swept = estimate::sweep::Request { estimate: request, ..estimate::sweep::Request::default() };
    let own = estimate::sweep::answer(&rackmath_catalog::embedded(), &swept).expect("answered");
    let typed = shown(&["llama-3.1-70b", "--on", "8xh200", "--tp", "8", "--sweep", "--json"]);
    assert_eq!(typed, serde_json::to_string_pretty(&own).expect("plain data") + "\n");
}

#[test]
fn narrow_terminals_are_respected() {
    let mut command = Command::cargo_bin("rackmath").expect("built");
    let output = command
        .arg("estimate")
        .args(DENSE.split(' '))
        .args(["--width", "60"])
        .env("NO_COLOR", "1")
        .output()
        .expect("ran");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let sources = text.find("sources").expect("printed");
    for line in text[..sources].lines() {
        assert!(line.chars().count() <= 72, "{line}");
    }
}
