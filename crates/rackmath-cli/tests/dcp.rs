//! Decode context parallel as a person asks for it.

mod common;

use common::{refused, shown};

const LONG: [&str; 7] = ["plan", "deepseek-v3", "--on", "hgx-h200", "--isl=60000", "--osl=1000", "--aggregated"];

#[test]
fn a_plan_cuts_caches_only_where_asked_for() {
    let cut = shown(&[&LONG[..], &["--dcp=2,4,8"]].concat());
    assert!(cut.contains("dcp") && cut.contains("decode context parallel 2, 4, 8 tried"), "{cut}");
    let plain = shown(&LONG);
    assert!(!plain.contains("dcp") && !plain.contains("context parallel"), "{plain}");
}

#[test]
fn what_cannot_be_cut_is_refused_with_what_can() {
    for (words, expected) in [
        (&["estimate", "qwen3-32b", "--on", "hgx-h200", "--tp", "8", "--dcp", "2"][..], "a divisor of the 1 copies"),
        (&["estimate", "deepseek-v3", "--on", "hgx-h200", "--tp", "8", "--dcp", "3"][..], "a divisor of tp 8"),
        (
            &["estimate", "deepseek-v3", "--on", "hgx-h200", "--engine", "sglang", "--tp", "8", "--dcp", "8"][..],
            "only for vllm",
        ),
        (&["plan", "deepseek-v3", "--on", "hgx-h200", "--dcp", "0"][..], "1 to 1,024"),
    ] {
        let said = refused(words);
        assert!(said.contains(expected), "{words:?}: {said}");
    }
}
