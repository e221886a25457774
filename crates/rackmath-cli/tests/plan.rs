//! What a person sees of a plan: the command run for real, its output kept as snapshots.

mod common;

use common::{rackmath, shown, typed};
#[test]
fn a_dense_model_under_latency_targets() {
    insta::assert_snapshot!(typed("plan qwen3-32b --on 32xh200 --isl 4000 --osl 500 --tpot 30ms --ttft 1s --rate 20"));
}

#[test]
fn aggregated_only_with_chunks_to_choose_from() {
    insta::assert_snapshot!(typed(
        "plan llama-3.1-8b --on 8xh100 --scenario chat --aggregated --chunks 2048,8192 --user 50 --top 2"
    ));
}

#[test]
fn faster_than_physics() {
    insta::assert_snapshot!(shown(&["plan", "qwen3-32b", "--on", "8xh200", "--tpot", "0.1ms", "--ttft", "10s"]));
}

#[test]
fn too_large_for_the_fleet() {
    insta::assert_snapshot!(shown(&["plan", "deepseek-v3", "--on", "2xh200"]));
}

#[test]
fn an_unknown_workload_is_refused_with_the_nearest() {
    let (out, err, code) = rackmath(&["plan", "qwen3-32b", "--on", "8xh200", "--scenario", "chatt"]);
    assert_eq!((out.as_str(), code), ("", 2), "{err}");
    assert!(err.contains("chat"), "{err}");
}

#[test]
fn the_frontier_as_a_file() {
    let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("plan_frontier.csv");
    shown(&["plan", "llama-3.1-8b", "--on", "8xh100", "--csv", path.to_str().expect("UTF-8")]);
    let text = std::fs::read_to_string(&path).expect("written");
    assert!(text.starts_with("index,tok_s_per_user,") && text.lines().count() > 5, "{text}");
}

#[test]
fn long_prompts_partly_in_host_memory() {
    insta::assert_snapshot!(typed(
        "plan llama-3.1-70b --on 8xh200 --isl 32k --osl 500 --ttft 4s --offload-hit 0.5 --objective goodput --aggregated --top 3"
    ));
}
