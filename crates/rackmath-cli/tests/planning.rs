//! Saved plans: answered again byte for byte, changed, handed over, refused when touched by hand, read when an older
//! version wrote them.

mod common;

use common::{folder, json, path, read, refused, said, shown, temp, whole};

const QUESTION: &str = "qwen3-32b --on 32xh200 --isl 4000 --osl 500 --tpot 30ms --ttft 1s --rate 20";

/// The plan of one question, saved under a name.
fn saved(name: &str) -> String {
    let path = path(name);
    shown(&format!("plan {QUESTION} --save {path}"));
    path
}

#[test]
fn a_saved_plan_is_answered_byte_for_byte() {
    let path = path("again.json");
    for question in [
        "qwen3-32b --on 32xh200 --isl 4000 --osl 500 --tpot 30ms --rate 20",
        "llama-3.1-8b --on 8xh100,8xh200 --scenario chat --aggregated --chunks 2048,8192 --speed 50 --top 2",
        "deepseek-v3 --on 2xh200",
    ] {
        for json in ["--json", ""] {
            let first = shown(&format!("plan {question} {json} --save {path}"));
            assert_eq!(first, shown(&format!("plan --from {path} {json}")), "{question}");
        }
    }
}

#[test]
fn a_plan_file() {
    insta::assert_snapshot!(read(&saved("shape.json")));
}

#[test]
fn a_plan_file_that_was_changed_is_refused_by_field() {
    let path = saved("changed.json");
    let text = read(&path);
    let hourly = text.lines().find(|line| line.contains("\"usd_per_hour\"")).expect("a price").trim_end_matches(',');
    for (from, to, named) in [
        ("\"tpot_ms\": 30.0", "\"tpot_ms\": 10.0", "request_checksum"),
        (hourly, "\"usd_per_hour\": 3.6", "chosen.usd_per_hour"),
        ("\"osl\"", "\"oslo\"", "oslo"),
        ("rackmath-plan-2", "rackmath-plan-9", "format"),
    ] {
        assert!(text.contains(from), "{from}");
        let other = temp("changed_by_hand.json", text.replacen(from, to, 1));
        let err = refused(&format!("plan --from {other}"));
        assert!(err.contains(named), "{err}");
        assert_eq!(err, refused(&format!("whatif {other} --set isl=8k")));
    }
    said(&[(&format!("plan --from {path} --tpot 10ms"), "whatif")]);
}

#[test]
fn changes_of_a_plan() {
    let path = saved("base.json");
    for (name, set) in [
        ("a_tighter_target", "--set tpot=15ms"),
        ("another_machine_and_longer_prompts", "--set on=64xb200 --set isl=8k"),
        ("a_change_nobody_can_meet", "--set tpot=1ms"),
    ] {
        insta::assert_snapshot!(name, shown(&format!("whatif {path} {set}")));
    }
    said(&[
        (&format!("whatif {path} --set tpott=15ms"), "did you mean \"tpot\""),
        ("whatif no-such-plan.json", "no-such-plan.json"),
    ]);
    // A changed plan can be saved.
    let to = common::path("after.json");
    let changed = json(&format!("whatif {path} --set tpot=15ms --save {to}"));
    let plan = json(&format!("plan --from {to}"));
    assert_eq!(changed["after"]["usd_per_mtok"], plan["plans"][0]["usd_per_mtok"]);
    assert!(plan["plans"][0]["usd_per_mtok"].is_object());
}

#[test]
fn the_outlook_of_a_saved_plan_is_that_of_its_question() {
    let path = saved("outlook.json");
    assert_eq!(shown(&format!("outlook {QUESTION}")), shown(&format!("outlook --from {path}")));
    said(&[(&format!("outlook --from {path} --rate 3"), "whatif")]);
}

/// Written before `headroom` changed its meaning and `user` its name.
#[test]
fn a_plan_of_the_version_before_still_reads() {
    let old = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plan-1.json");
    let text = read(old);
    assert!(text.contains("rackmath-plan-1") && text.contains("\"headroom\": 0.1") && text.contains("user_tok_s"));
    // Its numbers follow the catalogue of today; everything else is as the version before wrote it.
    let now = whole(&format!("plan --from {old}"));
    for said in
        ["free cache memory at least 10.0 %", "3 x 1 = 3 chips", "16.7 ms", "$0.0542/Mtok", "$3.90/h", "5.19 kW"]
    {
        assert!(now.contains(said), "{said}: {now}");
    }
    let changed = shown(&format!("whatif {old} --set cache-headroom=none --set headroom=20%"));
    assert!(changed.contains("cache-headroom") && changed.contains("20.0%"), "{changed}");
}

#[test]
fn a_plan_is_handed_over_in_files_and_on_standard_output() {
    let dense = "plan qwen3-32b --on 16xh200 --isl 4k --osl 500 --tpot 40ms --rate 5 --top 1";
    let (first, again) = (folder("handed-over"), folder("handed-over-again"));
    let page = whole(&format!("{dense} --handover {first}"));
    for word in
        ["router: vllm-router", "load test: vllm bench serve", "load test: guidellm run", "load test: aiperf profile"]
    {
        assert!(page.contains(word), "{word}: {page}");
    }
    for name in ["serve-prefill.sh", "serve-decode.sh", "router.sh", "kubernetes.yaml", "load-test.sh", "plan.json"] {
        assert!(!read(&format!("{first}/{name}")).is_empty(), "{name}");
    }
    // The plan reads back, to the same page, and can be handed over again.
    assert_eq!(whole(&format!("plan --from {first}/plan.json")), page);
    shown(&format!("plan --from {first}/plan.json --handover {again}"));
    assert_eq!(read(&format!("{again}/kubernetes.yaml")), read(&format!("{first}/kubernetes.yaml")));
    let manifest = shown(&format!("{dense} --aggregated --k8s - --chips-per-host 8"));
    assert!(manifest.starts_with("# vllm for Qwen/Qwen3-32B") && manifest.contains("kind: StatefulSet"), "{manifest}");
}
