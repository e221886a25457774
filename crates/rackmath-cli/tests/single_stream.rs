//! What a person with one machine on the desk sees: names as benchmarks write them, formats as llama.cpp calls them.

mod common;

use common::rackmath;
#[test]
fn one_stream_on_an_apple_machine() {
    let args =
        ["step", "llama-2-7b", "--on", "Apple M2 Ultra 76-core GPU", "-b", "1", "--context", "128", "--quantization"];
    let (out, err, code) = rackmath(&[args.as_slice(), &["Q4_K_M"]].concat());
    assert_eq!(code, 0, "{err}");
    insta::assert_snapshot!(out);
}

#[test]
fn a_format_that_does_not_exist_is_refused_with_its_neighbour() {
    let (out, err, code) = rackmath(&["step", "llama-2-7b", "--on", "rtx-4090", "--quantization", "q4_k_n"]);
    assert_eq!((out.as_str(), code), ("", 2), "{err}");
    assert!(err.contains("q4_k_m"), "{err}");
}
