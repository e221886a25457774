//! Kernel files are found by what runs on what, and refused when they cannot be.

use rackmath_spec::attention::{Heads, Wanted};
use rackmath_spec::{Catalog, Dtype, file};

#[test]
fn attention_kernels_are_found_by_generation_engine_and_format() {
    let catalog = Catalog::embedded();
    let kernels = catalog.attention_kernels().unwrap();
    let wanted = |backend, kv, group| Wanted { backend, math: Dtype::Bf16, kv, group };
    let of = |chip: &str, wanted| kernels.decode(&catalog.chip(chip).unwrap(), wanted);
    let found = of("h200", wanted("trtllm", Dtype::Fp8, 8));
    assert_eq!((found.generation.as_str(), found.heads, found.kv8), ("hopper", Heads::Grouped, true));
    assert_eq!(of("h200", wanted("trtllm", Dtype::Bf16, 1)).heads, Heads::Single);
    // An engine nobody measured still stays within the generation.
    assert_eq!(of("gb300", wanted("lmdeploy", Dtype::Fp8, 8)).generation, "blackwell");
    // Workstation Blackwell runs the kernels of Ada, and what nobody measured runs the default.
    assert_eq!(of("rtx-pro-6000", wanted("vllm", Dtype::Bf16, 8)).generation, "ada");
    let other = of("mi300x", wanted("vllm", Dtype::Bf16, 8));
    assert_eq!((other.generation.as_str(), other.fit), ("default", None));
}

#[test]
fn a_kernel_file_with_an_impossible_share_is_refused() {
    let text = include_str!("../../../catalog/kernels/mla.toml");
    file::attention("mine", text).unwrap();
    for (good, bad) in [
        ("memory = 0.", "memory = 1."),
        (" us\"", " furlongs\""),
        ("splits = ", "splits = 0.0 # "),
        ("\"default\"", "\"hopper\""),
    ] {
        let error = file::attention("mine", &text.replace(good, bad)).unwrap_err().to_string();
        assert!(error.starts_with("kernel mine"), "{error}");
    }
}
