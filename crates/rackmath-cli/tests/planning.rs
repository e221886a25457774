//! Saved plans: answered again byte for byte, changed, refused when touched by hand, read when an older version wrote them.

mod common;

use common::{line, rackmath, refused, shown};
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

#[test]
fn a_saved_plan_is_answered_byte_for_byte() {
    let path = file("again.json");
    for question in [
        "qwen3-32b --on 32xh200 --isl 4000 --osl 500 --tpot 30ms --rate 20",
        "llama-3.1-8b --on 8xh100,8xh200 --scenario chat --aggregated --chunks 2048,8192 --speed 50 --top 2",
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
        ("rackmath-plan-2", "rackmath-plan-9", "format"),
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
fn the_outlook_of_a_saved_plan_is_that_of_its_question() {
    let path = saved("outlook.json");
    let typed = line("outlook qwen3-32b --on 32xh200 --isl 4000 --osl 500 --tpot 30ms --ttft 1s --rate 20");
    assert_eq!(typed, shown(&["outlook", "--from", &path]));
    let err = refused(&["outlook", "--from", &path, "--rate", "3"]);
    assert!(err.contains("whatif"), "{err}");
}

/// Written before `headroom` changed its meaning and `user` its name.
#[test]
fn a_plan_of_the_version_before_still_reads() {
    let old = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plan-1.json");
    let text = std::fs::read_to_string(old).expect("there");
    assert!(text.contains("rackmath-plan-1") && text.contains("\"headroom\": 0.1") && text.contains("user_tok_s"));
    let now = line("plan llama-3.1-8b --on 8xh100 --tpot 30ms --speed 40 --cache-headroom 10% --rate 20");
    assert_eq!(shown(&["plan", "--from", old]), now);
    let changed = shown(&["whatif", old, "--set", "cache-headroom=none", "--set", "headroom=20%"]);
    assert!(changed.contains("cache-headroom") && changed.contains("20.0%"), "{changed}");
}
