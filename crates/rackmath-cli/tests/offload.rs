//! Weights split over host and card, processors alone, and cards that differ: as people ask, and what they are told.

mod common;

use common::{json, said, shown};

#[test]
fn what_does_not_fit_is_told_which_split_does_and_that_split_fits() {
    let page = shown("memory qwen3-32b --on rtx-4090 -q q4_k_m --context 32k");
    let ngl = |page: &str| -> u64 {
        let after = page.split("-ngl ").nth(1).expect("a split");
        after.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number")
    };
    let n = ngl(&page);
    let fits =
        |n: u64| json(&format!("memory qwen3-32b --on rtx-4090 -q q4_k_m --context 32k -ngl {n}"))["fits"].clone();
    assert_eq!((fits(n), fits(n + 1)), (true.into(), false.into()), "-ngl {n} is the largest that fits");
    let page = shown("estimate gpt-oss-120b --on rtx-4090 --engine llamacpp --concurrency 1");
    assert!(page.starts_with("Does not fit") && page.contains("--n-cpu-moe"), "{page}");
}

#[test]
fn layers_and_experts_with_the_host_are_counted_and_timed() {
    let on = "estimate qwen3-30b-a3b --on rtx-4090 -q q4_k_m --engine llamacpp --concurrency 1 --isl 200 --osl 200";
    let token = |more: &str| json(&format!("{on} {more}"))["served"]["tpot_ms"]["value"].as_f64().expect("served");
    let (all, experts, layers) = (token(""), token("--n-cpu-moe 20"), token("--offload-layers 20"));
    assert!(all < experts && experts < layers, "{all} {experts} {layers}");
    // The output counts as one layer, and more than there are is all.
    assert_eq!(token("-ngl 29"), layers);
    assert_eq!(token("--ngl 99"), all);
    assert_eq!(token("-cmoe"), token("--n-cpu-moe 48"));
    let faster = token("--n-cpu-moe 20 --host epyc-9654");
    assert!(faster < experts, "{faster}");
    let slower = token("--n-cpu-moe 20 --host-bandwidth 40GB/s");
    assert!(slower > experts, "{slower}");
    let card = &json(&format!("{on} --n-cpu-moe 20"))["offload"];
    // 20 layers of 128 experts of 3 x 2,048 x 768 values at 4.84 bits.
    let bytes = 20.0 * 128.0 * 3.0 * 2048.0 * 768.0 * 4.84 / 8.0;
    assert!((card["host_weight_bytes"].as_f64().expect("bytes") / bytes - 1.0).abs() < 1e-6, "{card}");
    let page = shown(&format!("{on} --cpu-moe --host-memory 8GB"));
    assert!(page.starts_with("The host's memory is too small") && page.contains("--disk"), "{page}");
    assert!(token("--cpu-moe --host-memory 8GB --disk 5GB/s") > 3.0 * token("--cpu-moe"));
}

#[test]
fn a_processor_alone_and_weights_sent_over_the_link() {
    let page = shown("estimate deepseek-v3 --on epyc-9654 -q q4_k_m --engine llamacpp --concurrency 1");
    assert!(page.contains("AMD EPYC 9654") && page.contains("time per output token"), "{page}");
    let on = "estimate llama-3.1-70b --on h100 --concurrency 1 --isl 500 --osl 200";
    let token = |gb: f64| json(&format!("{on} --cpu-offload-gb {gb}"))["served"]["tpot_ms"]["value"].as_f64();
    let (less, more) = (token(80.0).expect("served"), token(100.0).expect("served"));
    // 20 GiB more over 63 GB/s, of which 0.8 is reached.
    let step = 20.0 * 1.073_741_824 / (63.0 * 0.8) * 1e3;
    assert!(((more - less) / step - 1.0).abs() < 0.02, "{less} {more} {step}");
}

#[test]
fn cards_that_differ_share_the_layers_by_their_memory_or_as_told() {
    let on = "estimate llama-3.1-70b -q q3_k_m --engine llamacpp --concurrency 1 --isl 200 --osl 200";
    let token = |more: &str| json(&format!("{on} {more}"))["served"]["tpot_ms"]["value"].as_f64().expect("served");
    let (mixed, fast) = (token("--on rtx-3090+rtx-4090"), token("--on rtx-4090+rtx-4090"));
    assert!(fast < mixed, "{fast} {mixed}");
    let cards = json(&format!("{on} --on rtx-3090+rtx-4090 --tensor-split 9,11"))["offload"]["cards"].clone();
    // Nine twentieths of 80 layers and the output are 36.45 places: a layer that begins within them is the first card's.
    assert_eq!((cards[0]["layers"].as_f64(), cards[1]["layers"].as_f64()), (Some(37.0), Some(43.0)));
    let page = shown("memory llama-3.1-70b --on rtx-3060+rtx-4090 -q q4_k_m");
    assert!(page.contains("one card after another"), "{page}");
}

#[test]
fn cards_that_are_alike_share_the_layers_too() {
    let on = "estimate llama-3.3-70b -q q4_k_m --engine llamacpp --concurrency 1 --isl 200 --osl 200";
    let token = |more: &str| json(&format!("{on} {more}"))["served"]["tpot_ms"]["value"].as_f64().expect("served");
    let (joined, counted, cut) =
        (token("--on rtx-3090+rtx-3090"), token("--on 2xrtx-3090"), token("--on 2xrtx-3090 --tp 2"));
    assert_eq!(joined, counted);
    assert!(cut < 0.8 * counted, "{cut} {counted}");
    let three = json(&format!("{on} --on 3xrtx-3090"))["offload"]["cards"].clone();
    let layers: Vec<f64> = (0..3).filter_map(|at| three[at]["layers"].as_f64()).collect();
    assert_eq!(layers, [27.0, 27.0, 26.0]);
}

#[test]
fn memory_looks_at_every_card() {
    let on = "memory llama-3.3-70b -q q4_k_m --on rtx-3090+rtx-4090 --context 8k";
    for more in ["--tensor-split 3,1", "--tensor-split 1,3", "--tensor-split 3,1 --engine llamacpp"] {
        let a = json(&format!("{on} {more}"));
        assert_eq!(a["fits"], false, "{more}");
        let page = shown(&format!("{on} {more}"));
        assert!(!page.starts_with("Fits") && !page.starts_with("Starts"), "{page}");
        assert!(page.contains("--tensor-split") && !page.contains("instead of"), "{page}");
    }
    let a = json(&format!("{on} --batch 1"));
    assert_eq!(a["fits"], true);
    // The shares that are offered start.
    let page = shown(&format!("{on} --tensor-split 3,1"));
    let shares = page.split("--tensor-split ").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("shares");
    assert_eq!(json(&format!("{on} --tensor-split {shares}"))["fits"], true, "{shares}");
    // Three cards that are all too full are offered none.
    let page = shown("memory command-r-plus --on rtx-3090+rtx-3090+rtx-3090 -q q5_k_s --context 16k");
    assert!(page.starts_with("Does not start") && !page.contains("--tensor-split"), "{page}");
    let page = shown(&format!("{on} --engine llamacpp"));
    assert!(page.starts_with("Starts") && !page.contains("missing"), "{page}");
}

#[test]
fn what_cannot_be_is_said_with_what_can() {
    said(&[
        ("estimate llama-3.1-8b --on h100 --ngl 4", "llamacpp"),
        ("estimate llama-3.1-8b --on rtx-4090 --engine llamacpp --n-cpu-moe 4", "a model without experts"),
        ("estimate llama-3.1-8b --on rtx-4090 --engine llamacpp --cpu-offload-gb 4", "--ngl"),
        ("estimate llama-3.1-8b --on rtx-4090 --engine llamacpp --ngl 4 --offload-layers 2", "one of them"),
        ("estimate llama-3.1-8b --on rtx-4090 --engine llamacpp --offload-layers 40", "at most the 32 layers"),
        ("estimate llama-3.1-8b --on rtx-4090 --engine llamacpp --ngl 4 --host h100", "a processor such as epyc-9654"),
        ("estimate llama-3.1-8b --on rtx-4090 --engine trtllm --ngl 4", "is known to"),
        ("estimate llama-3.1-8b --on rtx-4090+rtx-3090 --engine llamacpp --tensor-split 1,2,3", "2 shares"),
        ("estimate llama-3.1-8b --on rtx-4090 --engine llamacpp --tensor-split 1,2", "joined by +"),
    ]);
}
