//! What a person sees of the questions around a plan: the command run for real, its output kept as snapshots.

mod common;

use common::{rackmath, refused, shown};
use std::path::PathBuf;

fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    path.to_str().expect("UTF-8").to_owned()
}

/// The options of one question, the plan saved under a name.
fn saved(name: &str) -> String {
    let path = file(name);
    let question = "plan qwen3-32b --on 32xh200 --isl 4000 --osl 500 --tpot 30ms --ttft 1s --rate 20 --save";
    let words: Vec<&str> = question.split(' ').chain([path.as_str()]).collect();
    shown(&words);
    path
}

fn ask(line: &str) -> String {
    shown(&line.split(' ').collect::<Vec<_>>())
}

#[test]
fn a_saved_plan_is_answered_byte_for_byte() {
    let path = file("again.json");
    for question in [
        "qwen3-32b --on 32xh200 --isl 4000 --osl 500 --tpot 30ms --rate 20",
        "llama-3.1-8b --on 8xh100,8xh200 --scenario chat --aggregated --chunks 2048,8192 --user 50 --top 2",
        "deepseek-v3 --on 2xh200",
    ] {
        for json in [&["--json"][..], &[]] {
            let words: Vec<&str> = "plan".split(' ').chain(question.split(' ')).chain(json.iter().copied()).collect();
            let first = shown(&[&words[..], &["--save", &path]].concat());
            let again = shown(&[&["plan", "--from", &path], json].concat());
            assert_eq!(first, again, "{question}");
        }
    }
}

#[test]
fn a_plan_file() {
    insta::assert_snapshot!(std::fs::read_to_string(saved("shape.json")).expect("written"));
}

#[test]
fn a_plan_file_that_was_changed_is_refused_by_field() {
    let path = saved("changed.json");
    let text = std::fs::read_to_string(&path).expect("written");
    let other = file("changed_by_hand.json");
    for (from, to, named) in [
        ("\"tpot_ms\": 30.0", "\"tpot_ms\": 10.0", "request_checksum"),
        ("\"usd_per_hour\": 33.6", "\"usd_per_hour\": 3.6", "chosen.usd_per_hour"),
        ("\"osl\"", "\"oslo\"", "oslo"),
        ("rackmath-plan-1", "rackmath-plan-2", "format"),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(&other, text.replacen(from, to, 1)).expect("written");
        let err = refused(&["plan", "--from", &other]);
        assert!(err.contains(named), "{err}");
        assert_eq!(err, refused(&["whatif", &other, "--set", "isl=8k"]));
    }
    let err = refused(&["plan", "--from", &path, "--tpot", "10ms"]);
    assert!(err.contains("whatif"), "{err}");
}

#[test]
fn a_tighter_target() {
    insta::assert_snapshot!(shown(&["whatif", &saved("tighter.json"), "--set", "tpot=15ms"]));
}

#[test]
fn another_machine_and_longer_prompts() {
    let path = saved("machine.json");
    insta::assert_snapshot!(shown(&["whatif", &path, "--set", "on=64xb200", "--set", "isl=8k"]));
}

#[test]
fn a_change_nobody_can_meet() {
    insta::assert_snapshot!(shown(&["whatif", &saved("nobody.json"), "--set", "tpot=1ms"]));
}

#[test]
fn a_changed_plan_can_be_saved() {
    let (path, to) = (saved("base.json"), file("after.json"));
    let json = shown(&["whatif", &path, "--set", "tpot=15ms", "--save", &to, "--json"]);
    let plan = shown(&["plan", "--from", &to, "--json"]);
    let best = |text: &str, of: &str| {
        let all: serde_json::Value = serde_json::from_str(text).expect("JSON");
        all.pointer(of).expect("there")["usd_per_mtok"].clone()
    };
    assert_eq!(best(&json, "/after"), best(&plan, "/plans/0"));
}

#[test]
fn a_mistyped_change_is_refused_with_the_nearest() {
    let err = refused(&["whatif", &saved("typo.json"), "--set", "tpott=15ms"]);
    assert!(err.contains("did you mean \"tpot\""), "{err}");
    let (_, err, code) = rackmath(&["whatif", "no-such-plan.json"]);
    assert!(code == 2 && err.contains("no-such-plan.json"), "{err}");
}

#[test]
fn systems_side_by_side() {
    insta::assert_snapshot!(ask("compare llama-3.1-70b --on 8xh100,8xh200,8xb200 --isl 4k --osl 1k --tpot 30ms"));
}

#[test]
fn models_side_by_side_one_of_which_is_too_large() {
    insta::assert_snapshot!(ask("compare --models qwen3-32b,llama-3.1-8b,llama-3.1-405b --on 4xh100 --aggregated"));
}

#[test]
fn engines_side_by_side() {
    insta::assert_snapshot!(ask("compare qwen3-32b --engines vllm,sglang --on 8xh200 --aggregated --figure dollar"));
}

#[test]
fn many_systems_side_by_side() {
    let all = "compare llama-3.1-8b --on h100,h200,a100-80gb,l40s,l4 --aggregated --user 30";
    insta::assert_snapshot!(ask(all));
}

#[test]
fn nothing_to_compare_is_an_answer() {
    let svg = file("none.svg");
    let out = shown(&["compare", "deepseek-v3", "--on", "h100,2xh200", "--svg", &svg]);
    assert!(out.contains("none meets the limits"), "{out}");
}

#[test]
fn frontiers_one_over_the_other() {
    insta::assert_snapshot!(ask("frontier llama-3.1-70b --on 8xh100,8xb200 --isl 4k --osl 1k --ttft 1s"));
}

#[test]
fn one_frontier_against_dollars() {
    insta::assert_snapshot!(ask("frontier llama-3.1-8b --on h100 --aggregated --figure dollar"));
}

#[test]
fn frontiers_as_files() {
    let (svg, png, csv) = (file("frontier.svg"), file("frontier.png"), file("frontiers.csv"));
    let line = "frontier llama-3.1-8b --on h100,h200 --aggregated --svg";
    let words: Vec<&str> = line.split(' ').chain([svg.as_str(), "--png", &png, "--csv", &csv]).collect();
    shown(&words);
    assert!(std::fs::read_to_string(svg).expect("written").contains("h200"));
    assert!(std::fs::read(png).expect("written").starts_with(b"\x89PNG"));
    let rows = std::fs::read_to_string(csv).expect("written");
    assert!(rows.starts_with("curve,model,system,index,tok_s_per_user,") && rows.contains("\n\"h200\","), "{rows}");
}

#[test]
fn the_best_hardware_and_where_it_changes() {
    let line = "hardware llama-3.1-8b --chips 2 --aggregated --isl 2k --osl 300 --tpot 25ms --rate 10";
    insta::assert_snapshot!(ask(&format!("{line} --among h100,h200,l40s,a100-80gb,rtx-4090")));
}

#[test]
fn the_best_hardware_of_the_catalogue() {
    let csv = file("hardware.csv");
    let line = "hardware llama-3.1-8b --chips 1 --aggregated --basis on-demand --no-flips --csv";
    let words: Vec<&str> = line.split(' ').chain([csv.as_str()]).collect();
    insta::assert_snapshot!(shown(&words));
    let rows = std::fs::read_to_string(csv).expect("written");
    assert!(rows.starts_with("name,system,usd_per_chip_hour,") && rows.lines().count() > 10, "{rows}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let err = refused(&["compare", "qwen3-32b", "--on", "8xh100,8xh20o"]);
    assert!(err.contains("h20"), "{err}");
    let err = refused(&["compare", "--models", "qwen3-32b,qwen3-33b", "--on", "8xh100"]);
    assert!(err.contains("qwen3-32b"), "{err}");
    let err = refused(&["frontier", "qwen3-32b", "--engines", "vlm", "--on", "8xh100"]);
    assert!(err.contains("vllm"), "{err}");
    let err = refused(&["hardware", "qwen3-32b", "--among", "h1000"]);
    assert!(err.contains("h100"), "{err}");
    let err = refused(&["hardware", "qwen3-32b", "--basis", "rented"]);
    assert!(err.contains("rental"), "{err}");
}

#[test]
fn every_question_has_a_schema_and_speaks_json() {
    for question in ["whatif", "compare", "frontier", "hardware", "outlook"] {
        let schema: serde_json::Value = serde_json::from_str(&shown(&["schema", question])).expect("JSON");
        assert!(schema.pointer("/request/properties/plan").is_some(), "{question}");
    }
    for question in ["compare", "frontier", "hardware", "outlook"] {
        let words = [question, "llama-3.1-8b", "--on", "h100", "--chips", "1", "--aggregated", "--json"];
        let more: &[&str] = if question == "hardware" { &["--among", "h100"] } else { &[] };
        let _: serde_json::Value = serde_json::from_str(&shown(&[&words[..], more].concat())).expect("JSON");
    }
}

#[test]
fn how_sure_a_plan_is() {
    let line = "outlook qwen3-32b --on 32xh200 --isl 4000 --osl 500 --tpot 30ms --ttft 1s --rate 20";
    let typed = ask(line);
    assert_eq!(typed, shown(&["outlook", "--from", &saved("outlook.json")]));
    insta::assert_snapshot!(typed);
}

#[test]
fn the_outlook_of_two_machines_filled() {
    insta::assert_snapshot!(ask(
        "outlook llama-3.1-8b --on 4xh100,4xl40s --scenario rag --aggregated --user 40 --vary 50%"
    ));
}

#[test]
fn no_outlook_where_nothing_fits() {
    assert!(ask("outlook deepseek-v3 --on 2xh200").contains("no deployment meets the limits"));
    let err = refused(&["outlook", "--from", &saved("outlook_alone.json"), "--rate", "3"]);
    assert!(err.contains("whatif"), "{err}");
}
