//! Kernel files are found by what runs on what, and refused when they cannot be.

use rackmath_spec::attention::{Heads, Wanted};
use rackmath_spec::{Dtype, MoeFormat, MoeMatch, file};

#[test]
fn attention_kernels_are_found_by_generation_engine_and_format() {
    let catalog = rackmath_catalog::embedded();
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
    let text = include_str!("../../rackmath-catalog/data/kernels/mla.toml");
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

#[test]
fn the_nearest_constants_stand_in_with_a_wider_spread() {
    let kernels = rackmath_catalog::embedded().moe_kernels().unwrap();
    let find = |family, format, generation| kernels.find(family, format, generation).unwrap();
    let exact = find("vllm-triton", MoeFormat::Bf16, "hopper");
    assert_eq!(exact.matched, MoeMatch::Exact);
    let lent = find("vllm-triton", MoeFormat::Bf16, "blackwell");
    assert_eq!((lent.matched, lent.kernel), (MoeMatch::Generation, exact.kernel));
    assert!(lent.spread > exact.spread);
    assert_eq!(find("vllm-triton", MoeFormat::NvFp4, "hopper").matched, MoeMatch::Format);
    assert_eq!(find("default", MoeFormat::Bf16, "hopper").matched, MoeMatch::Default);
    let error = kernels.find("vllm-trition", MoeFormat::Bf16, "hopper").unwrap_err().to_string();
    assert!(error.contains("vllm-triton"), "{error}");
}

#[test]
fn workstation_chips_go_with_their_own_kind() {
    let catalog = rackmath_catalog::embedded();
    let kernels = catalog.moe_kernels().unwrap();
    assert_eq!(kernels.generation(&catalog.chip("rtx-pro-6000").unwrap()), "ada");
    assert_eq!(kernels.generation(&catalog.chip("gb200").unwrap()), "blackwell");
    let found = kernels.on("trtllm-cutlass", MoeFormat::Bf16, &catalog.chip("h200").unwrap()).unwrap();
    assert_eq!(found.matched, MoeMatch::Exact);
}
