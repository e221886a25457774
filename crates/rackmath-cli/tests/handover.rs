//! What a plan hands over: files on disk and on standard output, kept as snapshots.

mod common;

use common::{line, shown};

const DENSE: &str = "plan qwen3-32b --on 16xh200 --isl 4k --osl 500 --tpot 40ms --rate 5 --top 1";

fn with(more: &str) -> String {
    line(&format!("{DENSE} {more}"))
}

#[test]
fn the_page_shows_routers_and_load_tests_beside_the_files() {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("handed-over");
    let _ = std::fs::remove_dir_all(&folder);
    let path = folder.to_str().expect("UTF-8");
    let page = with(&format!("--handover {path}"));
    for word in
        ["router: vllm-router", "load test: vllm bench serve", "load test: guidellm run", "load test: aiperf profile"]
    {
        assert!(page.contains(word), "{word}: {page}");
    }
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    for name in ["serve-prefill.sh", "serve-decode.sh", "router.sh", "kubernetes.yaml", "load-test.sh", "plan.json"] {
        assert!(!read(name).is_empty(), "{name}");
    }
    // The plan reads back, to the same page, and can be handed over again.
    let file = folder.join("plan.json");
    let file = file.to_str().expect("UTF-8");
    assert_eq!(shown(&["plan", "--from", file]), page);
    let again = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("handed-over-again");
    shown(&["plan", "--from", file, "--handover", again.to_str().expect("UTF-8")]);
    assert_eq!(std::fs::read_to_string(again.join("kubernetes.yaml")).expect("written"), read("kubernetes.yaml"));
}

#[test]
fn the_manifest_alone() {
    let out = with("--aggregated --k8s - --chips-per-host 8");
    assert!(out.starts_with("# vllm for Qwen/Qwen3-32B") && out.contains("kind: StatefulSet"), "{out}");
}
