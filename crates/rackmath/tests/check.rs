//! Command lines checked: numbers that engines printed, what they refuse, and what a line says to other questions.

use proptest::prelude::*;
use rackmath::check::{self, Answer};
use rackmath::{Catalog, Error, estimate, layout, plan};
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(rackmath_catalog::embedded);

fn asked(command: &str, on: &str, engine: &str) -> Result<Answer, Error> {
    let (on, engine) = (Some(on.to_owned()), Some(engine.to_owned()).filter(|e| !e.is_empty()));
    let request = check::Request { command: command.into(), on, engine, ..check::Request::default() };
    check::answer(&CATALOG, &request)
}

fn checked(command: &str, on: &str, engine: &str) -> Answer {
    asked(command, on, engine).unwrap_or_else(|e| panic!("{command}: {e}"))
}

#[test]
fn starts_as_engines_printed_them() {
    // Published start-up logs: the line, the card, the version, gibibytes of weights and cache, tokens of the cache.
    for (line, on, engine, weights, cache, tokens) in [
        // llm-d-incubation/llm-d-planner accuracy/results/v0.19.0/logs at d3121e0 (tp1 and tp2, 8192), read 2026-11.
        (
            "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --gpu-memory-utilization 0.95",
            "h100",
            "vllm@0.19.0",
            14.99,
            58.11,
            476_016.0,
        ),
        (
            "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --gpu-memory-utilization 0.95 -tp 2",
            "h100",
            "vllm@0.19.0",
            7.51,
            63.76,
            1_044_688.0,
        ),
    ] {
        let a = checked(line, on, engine);
        let near = |ours: f64, theirs: f64| (ours / theirs - 1.0).abs() < 0.02;
        assert!(a.starts && a.refusal.is_none(), "{line}");
        assert!(
            near(a.weights_gib, weights) && near(a.kv_cache_gib, cache),
            "{line}: {} {}",
            a.weights_gib,
            a.kv_cache_gib
        );
        assert!(near(a.kv_cache_tokens as f64, tokens), "{line}: {}", a.kv_cache_tokens);
    }
}

#[test]
fn flags_move_the_numbers_they_are_about() {
    let base = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192";
    let cache = |more: &str| checked(&format!("{base} {more}"), "h100", "vllm@0.19.0");
    let plain = cache("");
    assert!(cache("--gpu-memory-utilization 0.8").kv_cache_gib < plain.kv_cache_gib);
    let narrow = cache("--kv-cache-dtype fp8");
    assert!((narrow.kv_cache_tokens as f64 / plain.kv_cache_tokens as f64 - 2.0).abs() < 0.01);
    assert!(cache("--max-num-seqs 16").activation_gib < plain.activation_gib);
    assert_eq!(cache("--enforce-eager").graphs_gib, 0.0);
    assert_eq!(cache("--block-size 32").block_size, 32);
    assert_eq!(cache("--num-gpu-blocks-override 100").num_gpu_blocks, 100);
    assert!((cache("--kv-cache-memory-bytes 10G").kv_cache_gib - 10.0).abs() < 1e-9);
    assert!(cache("--dtype float32").weights_gib > 1.9 * plain.weights_gib);
    assert!(cache("--cpu-offload-gb 4").weights_gib < plain.weights_gib - 3.9);
    // The engine chooses the longest that fits.
    let auto =
        checked("vllm serve meta-llama/Llama-3.1-70B-Instruct --max-model-len auto -tp 2", "h100", "vllm@0.19.0");
    assert!(auto.starts && auto.max_model_len < 131_072 && auto.max_model_len > 1000, "{}", auto.max_model_len);
}

#[test]
fn slots_for_adapters_are_taken_off_the_cache() {
    let cache = |more: &str| {
        checked(&format!("vllm serve meta-llama/Llama-3.1-8B-Instruct {more}"), "h100", "vllm@0.19.0").kv_cache_gib
    };
    // By hand: sides of the seven matrices of a layer add up to 81,920; 32 layers, rank 128, 16 bits, 16 slots: 10.0 GiB.
    let taken = cache("") - cache("--enable-lora --max-loras 16 --max-lora-rank 128");
    assert!((taken - 10.0).abs() < 0.05, "{taken}");
}

#[test]
fn what_a_line_leaves_with_the_host_is_not_on_the_card() {
    let line =
        |more: &str| checked(&format!("llama-server -m gpt-oss-120b-mxfp4.gguf -c 65536 {more}"), "rtx-5090", "");
    let (whole, part) = (line("-ngl 99"), line("-ngl 99 --n-cpu-moe 24"));
    // By hand: 24 layers of 128 experts of 3 x 2,880 x 2,880 weights in 4.25 bits are 37.8 GiB.
    let moved = whole.weights_gib - part.weights_gib;
    assert!((moved - 37.8).abs() < 0.4, "{moved}");
    assert!(!whole.starts && part.starts, "{:?}", part.refusal);
    // 18 layers keep 65,536 tokens of 2 KiB, 18 a window of 128 beside a pass of 512.
    assert!((part.kv_cache_gib - 2.27).abs() < 0.03, "{}", part.kv_cache_gib);
    // Layers on the host take their cache along.
    let half = line("-ngl 19");
    assert!((half.kv_cache_gib / part.kv_cache_gib - 0.5).abs() < 0.02, "{}", half.kv_cache_gib);
}

#[test]
fn an_instance_has_its_cards_and_no_more() {
    let line = "vllm serve meta-llama/Llama-3.3-70B-Instruct-FP8 --tensor-parallel-size 4";
    for on in ["g6e.xlarge", "a3-highgpu-1g", "NC40ads_H100_v5", "2xh100"] {
        assert!(!checked(line, on, "").starts, "{on}");
    }
    assert!(checked(line, "h100", "").starts && checked(line, "p5.48xlarge", "").starts);
}

#[test]
fn experts_in_blocks_are_cut_in_whole_blocks() {
    for (line, starts) in [
        // 1,536 over 8 are 192 (vllm-project/vllm issue 17569), over 4 are 384; 768 over 4 are 192 (issue 25292).
        ("Qwen/Qwen3-235B-A22B-FP8 --tensor-parallel-size 8", false),
        ("Qwen/Qwen3-235B-A22B-FP8 --tensor-parallel-size 8 --enable-expert-parallel", true),
        ("Qwen/Qwen3-235B-A22B-FP8 --tensor-parallel-size 4 --max-model-len 8192", true),
        ("Qwen/Qwen3-30B-A3B-FP8 --tensor-parallel-size 4", false),
        ("Qwen/Qwen3-30B-A3B --tensor-parallel-size 4", true),
        ("MiniMaxAI/MiniMax-M2.5 --tensor-parallel-size 8", false),
        ("deepseek-ai/DeepSeek-V3 --tensor-parallel-size 8", true),
    ] {
        let a = checked(&format!("vllm serve {line}"), "8xh200", "vllm@0.19.0");
        assert_eq!(a.starts, starts, "{line}: {:?}", a.refusal);
    }
}

#[test]
fn a_chosen_layout_holds_attention_as_often_as_fits() {
    let on = |model: &str, on: &str| {
        let setting = rackmath::setting::Setting { model: model.into(), on: on.into(), ..Default::default() };
        layout::answer(&CATALOG, &layout::Request { setting, ..layout::Request::default() }).unwrap()
    };
    // Eight copies of attention leave no room for Kimi K2 on eight H200; DeepSeek V3 has room for them.
    let (kimi, deepseek) = (on("kimi-k2", "8xh200"), on("deepseek-v3", "8xh200"));
    assert!(kimi.fits && !kimi.layout.contains("dp8"), "{}", kimi.layout);
    assert!(deepseek.fits && deepseek.layout.contains("dp8"), "{}", deepseek.layout);
}

#[test]
fn sglang_counts_attention_groups_in_its_degree() {
    let line = "python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 8 --mem-fraction-static 0.9";
    let a = checked(&format!("{line} --enable-dp-attention --dp 8"), "h100", "");
    assert!(!a.starts && a.changes.iter().any(|c| c.flag == "--tp-size 16"), "{:?}", a.changes);
}

#[test]
fn what_would_be_refused_is_refused_in_the_engines_words_and_every_change_starts() {
    let a = checked("vllm serve meta-llama/Llama-3.1-70B-Instruct --max-model-len 32k -tp 2", "h100", "vllm@0.19.0");
    let said = format!("{:?}", a.refusal);
    assert!(!a.starts && said.contains("To serve at least one request") && said.contains("32000"), "{said}");
    assert!(!a.changes.is_empty() && a.changes.iter().all(|c| c.starts));
    // The first change, typed, starts.
    let again = format!("vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 2 {}", a.changes[0].flag);
    assert!(checked(&again, "h100", "vllm@0.19.0").starts, "{again}");
    for (line, on, engine, words) in [
        ("vllm serve meta-llama/Llama-3.1-70B-Instruct", "h100", "vllm@0.19.0", "out of memory"),
        ("vllm serve meta-llama/Llama-3.1-8B-Instruct -tp 4", "2xh100", "vllm@0.19.0", "World size (4)"),
        (
            "vllm serve meta-llama/Llama-3.1-8B-Instruct --num-scheduler-steps 8",
            "h100",
            "vllm@0.19.0",
            "unrecognized arguments: --num-scheduler-steps",
        ),
        ("vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 200000", "h100", "vllm@0.19.0", "200000"),
        ("vllm serve meta-llama/Llama-3.1-8B-Instruct -tp 3", "4xh100", "vllm@0.19.0", "check_illegal"),
    ] {
        let a = checked(line, on, engine);
        let said = format!("{:?}", a.refusal);
        assert!(!a.starts && said.contains(words), "{line}: {said}");
    }
}

#[test]
fn lines_that_cannot_be_checked_say_what_is_missing() {
    for (line, on, engine, words) in [
        ("vllm serve a b", "h100", "", "second model"),
        ("vllm serve 'a", "h100", "", "never closed"),
        ("vllm serve -tp 2", "h100", "", "names no model"),
        ("vllm serve meta-llama/Llama-3.1-8B-Instruct", "h100", "sglang", "vLLM"),
        ("-tp 2 --model meta-llama/Llama-3.1-8B-Instruct", "h100", "", "names no server"),
        ("vllm serve meta-llama/Llama-3.1-8B-Instruct", "h1000", "", "h100"),
    ] {
        let said = asked(line, on, engine).unwrap_err().to_string();
        assert!(said.contains(words), "{line}: {said}");
    }
    let none = check::Request { on: None, ..check::Request::default() };
    assert!(check::answer(&CATALOG, &none).unwrap_err().to_string().contains("no machine"));
}

#[test]
fn formats_of_the_cache_follow_the_type_and_the_checkpoint() {
    let tokens = |model: &str, more: &str| {
        let a = checked(&format!("vllm serve {model} --max-model-len 8192 {more}"), "h100", "vllm@0.19.0");
        a.kv_cache_gib * 1_073_741_824.0 / a.kv_cache_tokens as f64
    };
    // llm-d-planner's log of a model in 32 bits: 42.8 GiB hold 175,296 tokens.
    let wide = tokens("meta-llama/Llama-3.1-8B-Instruct", "--dtype float32");
    assert!((wide / 262_144.0 - 1.0).abs() < 0.001, "{wide}");
    // A checkpoint by NVIDIA's tool brings an 8-bit cache, unless the line says another.
    let own = tokens("nvidia/Llama-3.1-8B-Instruct-FP8", "");
    assert!((own / 65_536.0 - 1.0).abs() < 0.001, "{own}");
    let said = tokens("nvidia/Llama-3.1-8B-Instruct-FP8", "--kv-cache-dtype bfloat16");
    assert!((said / 131_072.0 - 1.0).abs() < 0.001, "{said}");
}

#[test]
fn sisters_of_a_model_have_their_own_longest_sequence() {
    for (model, longest) in [
        ("meta-llama/Meta-Llama-3-8B-Instruct", 8192),
        ("meta-llama/Llama-3.1-8B-Instruct", 131_072),
        ("Qwen/Qwen2.5-7B-Instruct", 32_768),
        ("Qwen/Qwen2.5-7B", 131_072),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", 262_144),
        ("Qwen/Qwen3-30B-A3B", 40_960),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", 262_144),
        ("mistralai/Devstral-Small-2507", 131_072),
        ("zai-org/GLM-4.6", 202_752),
        ("Qwen/Qwen2.5-7B-Instruct-1M", 1_010_000),
    ] {
        let own = CATALOG.model(model).unwrap().shape().and_then(|shape| shape.context_max);
        assert_eq!(own, Some(longest), "{model}");
        if longest > 250_000 || model.contains("GLM") {
            continue;
        }
        let a = checked(&format!("vllm serve {model}"), "h200", "vllm@0.19.0");
        assert_eq!(a.max_model_len, longest, "{model}");
    }
    // What is longer is refused in the engine's words.
    let a = checked("vllm serve meta-llama/Meta-Llama-3-8B-Instruct --max-model-len 16384", "h200", "vllm@0.19.0");
    assert!(!a.starts && format!("{:?}", a.refusal).contains("16384"), "{:?}", a.refusal);
}

#[test]
fn pictures_are_tried_before_anything_is_served() {
    // QwenLM/Qwen3-VL issue 1205: "No available memory for the cache blocks" with a share of 0.3; a film of seven pairs is tried.
    let line = "vllm serve Qwen/Qwen2.5-VL-3B-Instruct --gpu-memory-utilization 0.3";
    let a = checked(line, "a100-80gb", "vllm@0.8.5");
    assert!(!a.starts && a.activation_gib > 15.0, "{} {}", a.activation_gib, a.kv_cache_gib);
    for more in ["--max-model-len 16384", "--skip-mm-profiling --max-model-len 32768"] {
        assert!(checked(&format!("{line} {more}"), "a100-80gb", "vllm@0.10.2").starts, "{more}");
    }
    // llm-d-planner's logs on H100: 3.99 GiB of Gemma 3 27B, of which the pictures are more than the sampler.
    let gemma = "vllm serve google/gemma-3-27b-it --max-model-len 8192 --gpu-memory-utilization 0.95";
    let a = checked(gemma, "h100", "vllm@0.19.0");
    assert!((a.activation_gib / 3.99 - 1.0).abs() < 0.03, "{}", a.activation_gib);
    // Without towers there is more room, and they are not loaded.
    for more in ["--language-model-only", "--limit-mm-per-prompt '{\"image\": 0, \"video\": 0}'"] {
        let text = checked(&format!("{gemma} {more}"), "h100", "vllm@0.19.0");
        assert!(text.weights_gib < a.weights_gib && text.kv_cache_gib > a.kv_cache_gib, "{more}");
        assert!(
            text.obeyed.iter().any(|flag| more.starts_with(flag.split(['.', ' ']).next().unwrap())),
            "{:?}",
            text.obeyed
        );
    }
}

#[test]
fn memory_is_counted_as_the_named_engine_does() {
    let asked = |context: f64, engine: &str| {
        let mut l = layout::Request { context, engine: Some(engine.into()), ..layout::Request::default() };
        (l.setting.model, l.setting.on) = ("llama-3.1-8b".into(), "rtx-3090".into());
        layout::answer(&CATALOG, &l).unwrap()
    };
    // vllm-project/vllm issue 10517: 29,000 tokens are refused with 23,648 in the cache, 20,000 start, and so do 35,000.
    let refused = asked(29_000.0, "vllm@0.6.4");
    let card = refused.engine.unwrap();
    assert!(!refused.fits && !card.starts && (card.kv_cache_tokens as f64 / 23_648.0 - 1.0).abs() < 0.05, "{card:?}");
    assert!(card.utilisation_from.is_some_and(|share| share > 0.9), "{card:?}");
    for context in [20_000.0, 35_000.0] {
        let a = asked(context, "vllm@0.6.4");
        assert!(a.fits && a.batch_max >= 1.0 && a.context_max.unwrap() >= context, "{context}");
    }
    // The same numbers as a check of the same line.
    let a = asked(8192.0, "vllm@0.19.0").engine.unwrap();
    let c = checked("vllm serve meta-llama/Llama-3.1-8B --max-model-len 8192", "rtx-3090", "vllm@0.19.0");
    assert_eq!((a.kv_cache_tokens, a.num_gpu_blocks, a.starts), (c.kv_cache_tokens, c.num_gpu_blocks, c.starts));
}

#[test]
fn other_servers_are_checked_too() {
    let sglang = "python -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 2 --mem-fraction-static 0.85";
    let a = checked(sglang, "h100", "");
    assert!(a.starts && a.kv_cache_tokens > 100_000 && a.engine.contains("SGLang"), "{a:?}");
    let trt = checked("trtllm-serve openai/gpt-oss-120b --tp_size 2 --max_batch_size 64", "h200", "");
    assert!(trt.starts && trt.max_num_seqs == 64, "{trt:?}");
    // 18.5 GiB of weights and 8 of cache on 23.5.
    let line = "llama-server -hf unsloth/Qwen3-32B-GGUF:Q4_K_M -ngl 99 -fa on -c";
    assert!(!checked(&format!("{line} 32768"), "rtx-4090", "").starts);
    assert!(checked(&format!("{line} 4096"), "rtx-4090", "").starts);
    let yaml = "services:\n  llm:\n    image: vllm/vllm-openai:v0.19.0\n    command: --model Qwen/Qwen3-8B -tp 2\n";
    let a = checked(yaml, "h100", "");
    assert_eq!((a.version.as_deref(), a.chips), (Some("0.19.0"), 2));
}

#[test]
fn llama_cpp_deals_layers_to_all_cards_unless_told() {
    let line = "llama-server -m Llama-3.3-70B-Instruct-Q4_K_M.gguf -c 8192 -ngl 99";
    let a = checked(line, "2xrtx-3090", "");
    // By hand: 70.6 G values at 4.84 bits are 39.75 GiB, 81 places of layers and output; 41 layers go to the first card, 39 with
    // embedding and head to the second, each with 2.5 GiB of cache to 80 layers.
    assert!(a.starts && a.chips == 2, "{:?}", a.refusal);
    let each = a.weights_gib + a.kv_cache_gib + a.activation_gib;
    assert!((each - 21.4).abs() < 0.6, "{each}");
    assert_eq!(a.prints.len(), 6, "{:?}", a.prints);
    let told = checked(&format!("{line} --split-mode layer --tensor-split 1,1"), "2xrtx-3090", "");
    assert_eq!((told.weights_gib, told.starts), (a.weights_gib, true));
    assert!(told.obeyed.iter().any(|flag| flag.contains("tensor-split")), "{:?}", told.obeyed);
    // Three of four layers are too many for the first card, and one card is too small for all.
    let refused = |more: &str, on: &str| {
        let a = checked(&format!("{line} {more}"), on, "");
        a.refusal.filter(|_| !a.starts).map_or_else(|| panic!("{more} starts"), |said| format!("{said:?}"))
    };
    assert!(refused("-ts 3,1", "2xrtx-3090").contains("device 0"));
    assert!(refused("-ts 1/3", "2xrtx-3090").contains("device 1"));
    refused("-sm none", "2xrtx-3090");
    refused("", "rtx-3090");
    // All cards are used; those without a share are not.
    let three = checked(line, "3xrtx-3090", "");
    assert!(three.chips == 3 && three.weights_gib < 0.75 * a.weights_gib, "{}", three.weights_gib);
    let two = checked(&format!("{line} -ts 1,1"), "3xrtx-3090", "");
    assert_eq!(two.weights_gib, a.weights_gib);
    // Cards that differ by their memory; rows leave the cache on one card.
    let mixed = checked(line, "rtx-3090+rtx-4090", "");
    assert!(mixed.starts && (mixed.weights_gib / a.weights_gib - 1.0).abs() < 0.05, "{:?}", mixed.refusal);
    let rows = checked(&format!("{line} -sm row -mg 1"), "2xrtx-3090", "");
    assert!((rows.kv_cache_gib - 2.5).abs() < 0.01 && rows.starts, "{} {:?}", rows.kv_cache_gib, rows.refusal);
    for (more, hint) in [("-sm diagonal", "layer, row or none"), ("-ts 0,0", "3,1"), ("-sm none -mg 5", "0 to 1")] {
        let error = asked(&format!("{line} {more}"), "2xrtx-3090", "").unwrap_err().to_string();
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn what_the_chip_cannot_run_is_refused_before_memory() {
    for (line, format) in [
        ("vllm serve openai/gpt-oss-20b", "mxfp4"),
        ("vllm serve RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8", "fp8"),
        ("vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --dtype bfloat16", "bf16"),
    ] {
        let a = checked(line, "v100", "");
        let said = format!("{:?}", a.refusal);
        assert!(!a.starts && said.contains("check_not_supported") && said.contains(format), "{line}: {said}");
    }
    // Without a type the checkpoint is cast, which is as wide.
    let a = checked("vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192", "v100", "");
    assert!(a.starts && format!("{:?}", a.weights).contains("fp16"), "{:?} {:?}", a.weights, a.refusal);
}

#[test]
fn keys_and_values_have_their_own_formats_and_slots_their_parts() {
    let line = |more: &str| {
        checked(&format!("llama-server -m Qwen3-30B-A3B-Q4_K_M.gguf -ngl 99 -c 65536 {more}"), "rtx-5090", "")
    };
    // 48 layers of 4 heads of 128 values: keys of 1.0625 bytes and values of 2.
    let a = line("-ctk q8_0");
    let entry = |keys: f64, values: f64| 48.0 * 4.0 * 128.0 * (keys + values) * 65_536.0 / 1_073_741_824.0;
    assert!((a.kv_cache_gib / entry(1.0625, 2.0) - 1.0).abs() < 1e-6, "{}", a.kv_cache_gib);
    assert_eq!(line("-ctv q8_0").kv_cache_gib, a.kv_cache_gib);
    let both = line("-ctk q8_0 -ctv q8_0");
    assert!((both.kv_cache_gib / entry(1.0625, 1.0625) - 1.0).abs() < 1e-6, "{}", both.kv_cache_gib);
    // Four slots of a quarter each; one cache where they share it.
    let four = line("-np 4 -ctk q8_0");
    assert_eq!((four.max_model_len, four.max_concurrency, four.kv_cache_tokens), (16_384, 4.0, 65_536));
    assert_eq!(four.kv_cache_gib, a.kv_cache_gib);
    let shared = line("-np 4 -kvu -ctk q8_0");
    assert_eq!((shared.max_model_len, shared.max_concurrency), (65_536, 1.0));
    // What starts is no longer than the most that would.
    for a in [&a, &four, &shared] {
        assert!(a.starts && a.longest_context >= a.max_model_len, "{} {}", a.longest_context, a.max_model_len);
    }
}

#[test]
fn a_context_that_is_too_long_for_the_card_is_told_what_starts() {
    for slots in ["", " -np 2"] {
        let line = format!("llama-server -hf unsloth/Qwen3-32B-GGUF:Q4_K_M -ngl 99 -fa on{slots} -c");
        let a = checked(&format!("{line} 32768"), "rtx-4090", "");
        assert!(!a.starts, "{slots}");
        let change = a.changes.iter().find(|c| c.flag.starts_with("-c ")).expect("a shorter context");
        let n: u64 = change.flag[3..].parse().unwrap();
        // By hand: (23.52 - 18.46 - 0.3) GiB at 256 KiB a token are 19,500 tokens.
        assert!((18_000..20_500).contains(&n), "{n}");
        assert!(checked(&format!("{line} {n}"), "rtx-4090", "").starts);
        assert!(!checked(&format!("{line} {}", n + 1024), "rtx-4090", "").starts);
    }
}

#[test]
fn an_estimate_obeys_the_line_and_says_what_it_does_not() {
    let of = |flags: &str, tool: Option<&str>| {
        let mut r = estimate::Request {
            flags: Some(flags.into()),
            tool: tool.map(str::to_owned),
            changes: false,
            ..estimate::Request::default()
        };
        (r.setting.model, r.setting.on) = ("llama-3.1-8b".into(), "h100".into());
        estimate::answer(&CATALOG, &r)
    };
    // The tool's engine answers.
    let a = of("--mem-fraction-static 0.85 --max-running-requests 128 --enable-metrics", Some("sglang")).unwrap();
    assert!(a.engine.contains("SGLang"), "{}", a.engine);
    let said = format!("{:?}", a.assumptions);
    assert!(said.contains("flags_obeyed") && said.contains("--enable-metrics"), "{said}");
    // So does that of a whole command, in its version.
    let a = of("vllm serve x --kv-cache-dtype fp8 --max-num-seqs 8 --attention-backend FLASHINFER", None).unwrap();
    let said = format!("{:?}", a.assumptions);
    assert_eq!(format!("{:?}", a.kv), format!("{:?}", rackmath::remark::Remark::from("fp8")));
    assert!(said.contains("flag_unmodelled") && a.served.unwrap().decoding <= 8.0, "{said}");
    // Without graphs it is slower.
    let tpot = |flags: &str| of(flags, None).unwrap().served.unwrap().tpot_ms.value;
    assert!(tpot("--enforce-eager") > tpot("--max-num-seqs 1024"));
    assert!(of("--max-model-len 1000", None).unwrap_err().to_string().contains("at most 1,000"));
    assert!(of("-tp 2 -tp 4", None).unwrap_err().to_string().contains("word 3"));
}

#[test]
fn a_plan_and_a_layout_obey_the_line() {
    let mut p = plan::Request {
        flags: Some("vllm serve x -tp 2 --kv-cache-dtype fp8 --max-num-seqs 32".into()),
        ..plan::Request::default()
    };
    (p.setting.model, p.setting.on, p.disaggregated) = ("qwen3-32b".into(), "4xh100".into(), false);
    let a = plan::answer_on(&CATALOG, &p, 1).unwrap();
    assert!(
        a.plans.iter().all(|plan| plan.layout.contains("tp2")),
        "{:?}",
        a.plans.iter().map(|p| &p.layout).collect::<Vec<_>>()
    );
    assert!(format!("{:?}", a.assumptions).contains("flags_obeyed"));
    let mut l = layout::Request {
        flags: Some("-tp 2 --kv-cache-dtype fp8 --max-model-len 32k".into()),
        ..layout::Request::default()
    };
    (l.setting.model, l.setting.on) = ("qwen3-32b".into(), "hgx-h100".into());
    let a = layout::answer(&CATALOG, &l).unwrap();
    assert_eq!((a.context, a.layout.as_str()), (32_000.0, "tp2"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_line_is_answered_or_refused(text in ".{0,120}") {
        let _ = asked(&text, "h100", "");
        let _ = asked(&format!("vllm serve meta-llama/Llama-3.1-8B-Instruct {text}"), "h100", "");
    }

    /// More memory never means less cache, and a longer limit never more requests.
    #[test]
    fn the_cache_grows_with_its_share(share in 0.3f64..0.97, more in 0.0f64..0.03, longest in 1u64..100_000) {
        let cache = |u: f64, l: u64| checked(&format!("vllm serve Qwen/Qwen3-8B --gpu-memory-utilization {u} --max-model-len {}", l.min(40_000)), "h100", "vllm@0.19.0");
        let (low, high) = (cache(share, longest), cache(share + more, longest));
        prop_assert!(high.kv_cache_gib >= low.kv_cache_gib && high.kv_cache_tokens >= low.kv_cache_tokens);
        prop_assert!(cache(share, longest + 1).max_concurrency <= low.max_concurrency + 1e-9);
    }
}

#[test]
fn a_line_without_a_version_is_read_by_the_newest_release() {
    let line = "vllm serve meta-llama/Llama-3.1-8B-Instruct --num-scheduler-steps 8";
    let a = checked(line, "h100", "");
    let (verdict, said) = (format!("{:?}", a.verdict), format!("{:?}", a.refusal));
    assert!(!a.starts && said.contains("unrecognized arguments: --num-scheduler-steps"), "{said}");
    // The list of vLLM's flags has it last in 0.9.2, and that release takes the line.
    assert!(verdict.contains("check_refused_flags") && verdict.contains("0.9.2"), "{verdict}");
    assert!(checked(line, "h100", "vllm@0.9.2").starts);
}

#[test]
fn a_method_that_the_checkpoint_was_not_made_by_is_refused() {
    for (line, words) in [
        ("Qwen/Qwen3-32B-AWQ --quantization fp8", Some("model config (awq) does not match")),
        ("Qwen/Qwen3-32B-AWQ --quantization gptq_marlin", Some("`quantization` argument (gptq_marlin)")),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4 -q awq", Some("model config (gptq) does not match")),
        ("Qwen/Qwen3-32B --quantization awq", Some("Cannot find the config file for awq")),
        // Kernels that take over what a method made, and formats that are made while weights are loaded.
        ("Qwen/Qwen3-32B-AWQ --quantization awq_marlin", None),
        ("Qwen/Qwen3-32B-AWQ --quantization moe_wna16", None),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4 --quantization gptq", None),
        ("Qwen/Qwen3-32B --quantization fp8", None),
        ("Qwen/Qwen3-32B-AWQ", None),
    ] {
        let a = checked(&format!("vllm serve {line} --max-model-len 8192"), "h100", "");
        let said = format!("{:?}", a.refusal);
        assert_eq!(a.starts, words.is_none(), "{line}: {said}");
        assert!(words.is_none_or(|words| said.contains(words)), "{line}: {said}");
    }
}

#[test]
fn a_pass_shorter_than_an_uncut_prompt_is_refused_and_not_offered() {
    let line = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 29000";
    let a = checked(&format!("{line} --max-num-batched-tokens 2048"), "rtx-3090", "vllm@0.6.3");
    let said = format!("{:?}", a.refusal);
    assert!(
        !a.starts && said.contains("max_num_batched_tokens (2048) is smaller than max_model_len (29000)"),
        "{said}"
    );
    // As typed with what is offered, and in a release that cuts prompts by itself.
    let cut = format!("{line} --max-num-batched-tokens 2048 --enable-chunked-prefill");
    assert!(a.changes.iter().any(|c| c.flag == "--enable-chunked-prefill"), "{:?}", a.changes);
    assert!(checked(&cut, "rtx-3090", "vllm@0.6.3").starts);
    assert!(checked(&format!("{line} --max-num-batched-tokens 2048"), "rtx-3090", "vllm@0.19.0").starts);
    // Every change of a refusal for want of memory, typed, starts.
    let a = checked(line, "rtx-3090", "vllm@0.6.3");
    for change in &a.changes {
        let own = if change.flag.starts_with("--max-model-len") {
            "vllm serve meta-llama/Llama-3.1-8B-Instruct"
        } else {
            line
        };
        let typed = format!("{own} {}", change.flag);
        let on = if change.flag.contains("parallel") { "2xrtx-3090" } else { "rtx-3090" };
        assert!(checked(&typed, on, "vllm@0.6.3").starts, "{typed}");
    }
    // A shorter sequence has a shorter dry run: 26,300 start, 26,400 do not; and of the shares 0.93 is the first that is enough.
    let offered = |begins: &str| a.changes.iter().any(|c| c.flag == begins);
    assert!(offered("--max-model-len 26300") && offered("--gpu-memory-utilization 0.93"), "{:?}", a.changes);
    assert!(!checked(&line.replace("29000", "26400"), "rtx-3090", "vllm@0.6.3").starts);
    assert!(!checked(&format!("{line} --gpu-memory-utilization 0.92"), "rtx-3090", "vllm@0.6.3").starts);
    assert_eq!(a.longest_context, 26_300);
}

#[test]
fn llama_cpp_takes_its_own_formats_of_a_cache() {
    let line = "llama-server -m Qwen3-32B-Q4_K_M.gguf -c 8192 -ctk";
    for format in ["fp8", "q6_k", "int8"] {
        let said = asked(&format!("{line} {format}"), "rtx-4090", "").unwrap_err().to_string();
        assert!(said.contains("Unsupported cache type") && said.contains("q8_0, q4_0, q4_1, iq4_nl"), "{said}");
    }
    for format in ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"] {
        assert!(asked(&format!("{line} {format}"), "rtx-4090", "").is_ok(), "{format}");
    }
    let mut l = layout::Request { context: 32_000.0, engine: Some("llamacpp".into()), ..layout::Request::default() };
    (l.setting.model, l.setting.on, l.setting.weights) = ("qwen3-32b".into(), "rtx-4090".into(), Some("q4_k_m".into()));
    let first = format!("{:?}", layout::answer(&CATALOG, &l).unwrap().first_change);
    assert!(first.contains("kv_in") && first.contains("q8_0"), "{first}");
}

#[test]
fn what_llama_cpp_keeps_is_what_it_was_asked_for() {
    // Half the layers of gpt-oss keep windows; the context of four slots is 32,768 tokens all the same.
    let request = check::Request {
        command: "llama-server -m gpt-oss-20b-mxfp4.gguf -c 32768 -np 4".into(),
        on: Some("rtx-4090".into()),
        model: Some("gpt-oss-20b".into()),
        ..check::Request::default()
    };
    let a = check::answer(&CATALOG, &request).unwrap();
    assert_eq!((a.kv_cache_tokens, a.max_concurrency, a.max_model_len, a.kv_cache_groups), (32_768, 4.0, 8192, 2));
}

#[test]
fn sglang_is_not_told_to_take_what_its_passes_need() {
    let line = "python -m sglang.launch_server --model-path Qwen/Qwen3-32B";
    let sum = |a: &Answer| a.weights_gib + a.kv_cache_gib + a.activation_gib + a.graphs_gib;
    let a = checked(line, "h100", "");
    let share = a.changes.iter().find(|c| c.flag.starts_with("--mem-fraction-static")).expect("a larger share");
    let then = checked(&format!("{line} {}", share.flag), "h100", "");
    assert!(then.starts && then.total_gib - sum(&then) > 4.0, "{} {}", share.flag, sum(&then));
    // By hand: 78.59 GiB are found free, 0.05 of them less 0.86 of graphs are 3.07 GiB, and SGLang's guide asks for 5 GB.
    let few = checked(&format!("{line} --mem-fraction-static 0.95"), "h100", "");
    assert!(few.starts && format!("{:?}", few.cautions).contains("check_tight"), "{:?}", few.cautions);
    assert!(few.changes.iter().all(|c| !c.flag.contains("fraction")), "{:?}", few.changes);
    // A chunk of 8,192 tokens takes 8,192 x 6 x (5,120 + 25,600) bytes, 1.41 GiB; with the graphs more than the 1.57 that are left.
    let none = checked(&format!("{line} --mem-fraction-static 0.98"), "h100", "");
    let said = format!("{:?}", none.verdict);
    assert!(!none.starts && said.contains("check_runs_out") && (none.activation_gib - 1.41).abs() < 0.01, "{said}");
    assert!(none.changes.iter().any(|c| c.flag == "--mem-fraction-static 0.90"), "{:?}", none.changes);
    // What SGLang reserves by itself is enough for what it reserves it for.
    for (model, on) in
        [("Qwen/Qwen3-8B", "rtx-4090"), ("Qwen/Qwen3-32B", "h200"), ("meta-llama/Llama-3.1-8B-Instruct", "l40s")]
    {
        let a = checked(&format!("python -m sglang.launch_server --model-path {model}"), on, "");
        assert!(a.starts && sum(&a) < a.total_gib, "{model} on {on}: {:?}", a.refusal);
    }
}

#[test]
fn memory_takes_the_engine_that_people_take() {
    let asked = |model: &str, on: &str, context: f64, engine: Option<&str>| {
        let mut l = layout::Request { context, engine: engine.map(str::to_owned), ..layout::Request::default() };
        (l.setting.model, l.setting.on) = (model.into(), on.into());
        layout::answer(&CATALOG, &l).unwrap()
    };
    // By hand: 18.46 GiB of weights, 1.95 of cache and 0.30 of logits are 20.7 of 23.5.
    let file = asked("qwen3:32b", "rtx-4090", 8000.0, Some("auto"));
    let card = file.engine.expect("an engine");
    assert!(file.fits && card.name == "llama.cpp", "{card:?}");
    assert!((card.weights_gib + card.kv_cache_gib + card.activation_gib - 20.7).abs() < 0.1, "{card:?}");
    // The longest that starts is that of the line.
    let line = checked("llama-server -m qwen3-32b-q4_k_m.gguf -c 8000", "rtx-4090", "");
    assert_eq!(file.context_max, Some(line.longest_context as f64));
    // As vLLM's own line says.
    let (a, c) =
        (asked("qwen3-32b", "h100", 39_800.0, Some("auto")), "vllm serve Qwen/Qwen3-32B --max-model-len 39800");
    let c = checked(c, "h100", "");
    assert!(!a.fits && !c.starts && a.engine.expect("an engine").kv_cache_tokens == c.kv_cache_tokens);
    // A plain sum where that is asked for.
    let (plain, ideal) =
        (asked("qwen3-32b", "h100", 39_800.0, None), asked("qwen3-32b", "h100", 39_800.0, Some("ideal")));
    assert!(plain.fits && plain.engine.is_none());
    assert_eq!(plain, ideal);
    // The table is of the count that refuses.
    let a = asked("llama-3.1-8b", "rtx-3090", 29_000.0, Some("vllm@0.6.3"));
    assert!(!a.fits && a.stages[0].total_bytes > a.capacity_bytes, "{}", a.stages[0].total_bytes);
}

#[test]
fn a_batch_that_would_wait_does_not_fit() {
    let asked = |batch: f64, engine: &str| {
        let mut l = layout::Request { batch: Some(batch), engine: Some(engine.into()), ..layout::Request::default() };
        (l.setting.model, l.setting.on, l.context) = ("llama-3.1-8b".into(), "h100".into(), 8000.0);
        layout::answer(&CATALOG, &l).unwrap()
    };
    // 55.8 GiB of 128 KiB a token are 57 requests of 8,000.
    let a = asked(512.0, "vllm");
    assert!(!a.fits && a.batch_max == 57.0 && format!("{:?}", a.verdict).contains("batch_waits"), "{:?}", a.verdict);
    assert!(asked(57.0, "vllm").fits);
    // Four slots of llama.cpp have 8,000 tokens each: 3.9 GiB.
    let card = asked(4.0, "llamacpp").engine.unwrap();
    assert!((card.kv_cache_gib - 4.0 * 8000.0 * 131_072.0 / 1_073_741_824.0).abs() < 0.01, "{card:?}");
}

#[test]
fn a_flag_of_another_server_is_told_its_own_name() {
    for (line, own) in [
        ("vllm serve Qwen/Qwen3-32B --mem-fraction-static 0.8", "--gpu-memory-utilization"),
        ("vllm serve Qwen/Qwen3-32B --max-running-requests 8", "--max-num-seqs"),
        (
            "python -m sglang.launch_server --model-path Qwen/Qwen3-32B --gpu-memory-utilization 0.8",
            "--mem-fraction-static",
        ),
        ("python -m sglang.launch_server --model-path Qwen/Qwen3-32B --max-model-len 8192", "--context-length"),
    ] {
        let said = format!("{:?}", checked(line, "h100", "").cautions);
        assert!(said.contains("flag_unknown") && said.contains(own), "{line}: {said}");
    }
}

#[test]
fn a_flag_that_is_near_no_other_is_not_told_one() {
    let said =
        |flag: &str| format!("{:?}", checked(&format!("vllm serve Qwen/Qwen3-32B {flag} 3"), "h100", "").cautions);
    assert!(said("--foo-bar").contains("flag_unknown") && !said("--foo-bar").contains("near"), "{}", said("--foo-bar"));
    assert!(said("--gpu-memory-utilisation").contains("--gpu-memory-utilization"));
}

#[test]
fn a_degree_that_the_model_does_not_allow_is_not_asked_for_on_more_chips() {
    let of = |on: &str, tp: Option<u64>, ep: Option<u64>| {
        let mut l = layout::Request::default();
        (l.setting.model, l.setting.on, l.degrees.tp, l.degrees.ep) = ("llama-3.1-8b".into(), on.into(), tp, ep);
        layout::answer(&CATALOG, &l).unwrap_err().to_string()
    };
    let said = of("h100", Some(3), None);
    assert!(said.contains("32 heads: 1 2 4 8 16 32") && !said.contains("3xh100"), "{said}");
    assert!(of("h100", Some(2), None).contains("2xh100"));
    assert!(of("8xh100", None, Some(8)).contains("has no experts"));
}

#[test]
fn a_card_that_is_too_small_is_told_the_most_layers_that_start() {
    let line = "llama-server -m qwen3-32b-q4_k_m.gguf -c 32768 --fit off";
    let a = checked(line, "rtx-4090", "");
    // Weights are one buffer, the cache of 64 layers of 8 heads of 128 keys and values the next: 8,192 MiB with 5.06 GiB left.
    let said = format!("{:?}", a.refusal);
    assert!(!a.starts && said.contains("allocating 8192.00 MiB on device 0"), "{said}");
    let change = a.changes.iter().find(|c| c.flag.starts_with("-ngl ")).expect("layers on the card");
    let n: u64 = change.flag[5..].parse().unwrap();
    let starts = |n: u64| checked(&format!("{line} -ngl {n}"), "rtx-4090", "").starts;
    assert!(n == 56 && starts(n) && !starts(n + 1), "{n}");
    let experts = checked("llama-server -m gpt-oss-120b-mxfp4.gguf -c 65536 --fit off", "rtx-5090", "");
    let change = experts.changes.iter().find(|c| c.flag.starts_with("--n-cpu-moe ")).expect("experts beside it");
    assert!(
        checked(&format!("llama-server -m gpt-oss-120b-mxfp4.gguf -c 65536 {}", change.flag), "rtx-5090", "").starts
    );
}

#[test]
fn positions_that_the_model_lacks_are_told_what_would_start() {
    let a = checked("vllm serve Qwen/Qwen3-8B --max-model-len 200000", "h100", "");
    assert!(!a.starts && a.changes.len() == 1 && a.changes[0].flag == "--max-model-len 40960", "{:?}", a.changes);
    // 32,688 tokens are what the cache holds there.
    let a = checked("vllm serve Qwen/Qwen3-32B --max-model-len 200000", "h100", "");
    assert!(a.changes[0].flag == "--max-model-len 32600", "{:?}", a.changes);
}

#[test]
fn states_are_as_wide_as_the_model_or_the_engine_says() {
    // Qwen3-Next says nothing: 16 bits in vLLM. (32 x 128 x 128 x 2 B + 49,152 B) / 4 chips are 268 tokens of 1,024 B, in steps of 16
    // (vllm-project/vllm pull request 34489; 544 for one chip stands in 32492).
    let next = checked("vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct -tp 4", "h100", "");
    assert_eq!(next.block_size, 272);
    // Qwen3.5 asks for 32 bits: nearly twice as long.
    let wide = checked("vllm serve Qwen/Qwen3.5-35B-A3B -tp 2", "h100", "");
    let narrow = checked("vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct -tp 2", "h200", "");
    assert!(wide.block_size * 10 > narrow.block_size * 18, "{} and {}", wide.block_size, narrow.block_size);
}

#[test]
fn files_of_llama_cpp_keep_experts_that_were_trained_in_four_bits() {
    // unsloth/gpt-oss-120b-GGUF: 58.46 GiB in Q4_K_M, 59.03 in Q8_0.
    let weights =
        |format: &str| checked(&format!("llama-server -hf unsloth/gpt-oss-120b-GGUF:{format}"), "h100", "").weights_gib;
    for (format, gib) in [("Q4_K_M", 58.46), ("Q8_0", 59.03)] {
        assert!((weights(format) / gib - 1.0).abs() < 0.02, "{format}: {} against {gib}", weights(format));
    }
}

#[test]
fn what_is_offered_is_known_to_run_and_matrices_are_cut_in_whole_blocks() {
    let old = checked("vllm serve meta-llama/Llama-3.1-8B-Instruct", "v100", "");
    assert!(!old.starts && !old.changes.is_empty());
    assert!(old.changes.iter().all(|c| !c.flag.contains("fp8")), "{:?}", old.changes);
    // 18,432 / 32 = 576 are four blocks of 128 and a half.
    let wide = checked("vllm serve deepseek-ai/DeepSeek-R1-0528 -tp 32 --enable-expert-parallel", "gb200-nvl72", "");
    assert!(!wide.starts, "{wide:?}");
    assert!(
        checked("vllm serve deepseek-ai/DeepSeek-R1-0528 -tp 16 --enable-expert-parallel", "gb200-nvl72", "").starts
    );
    assert!(!checked("vllm serve Qwen/Qwen3-32B-FP8 -tp 2 --quantization awq", "2xa100-80gb", "").starts);
}

#[test]
fn a_drafter_has_the_models_words_and_stands_beside_it() {
    let line = |model: &str, drafter: &str| {
        let drafts = format!("{{\"model\":\"{drafter}\",\"num_speculative_tokens\":5}}");
        format!("vllm serve {model} -tp 4 --speculative-config '{drafts}'")
    };
    let llama = "meta-llama/Llama-3.3-70B-Instruct";
    let other = checked(&line(llama, "Qwen/Qwen3-0.6B"), "4xh100", "");
    let said = format!("{:?} {:?}", other.verdict, other.refusal);
    assert!(!other.starts && said.contains("vocab_size=151936") && said.contains("llama-3.2-1b"), "{said}");
    let own = checked(&line(llama, "meta-llama/Llama-3.2-1B-Instruct"), "4xh100", "");
    let alone = checked(&format!("vllm serve {llama} -tp 4"), "4xh100", "");
    // By hand: 1.236e9 weights of 2 bytes over 4 cards are 0.576 GiB; 16 layers keep 8 KiB a token beside 80 KiB.
    assert!((own.weights_gib - alone.weights_gib - 0.576).abs() < 0.01, "{}", own.weights_gib);
    let each = |a: &Answer| a.kv_cache_gib * 1_048_576.0 / a.kv_cache_tokens as f64;
    assert!((each(&own) - 88.0).abs() < 0.1 && (each(&alone) - 80.0).abs() < 0.1, "{} {}", each(&own), each(&alone));
    // Words that are translated are no reason to end; llama.cpp starts and drafts nothing.
    let drafts = r#"{"model":"Qwen/Qwen3-0.6B","num_speculative_tokens":5,"use_heterogeneous_vocab":true}"#;
    assert!(checked(&format!("vllm serve {llama} -tp 4 --speculative-config '{drafts}'"), "4xh100", "").starts);
    let file = checked("llama-server -m llama-3.1-8b-q4_k_m.gguf -md qwen3-0.6b-q8_0.gguf -c 8192", "rtx-4090", "");
    assert!(file.starts && file.assumptions.iter().any(|r| r.says == "check_undrafted"), "{:?}", file.assumptions);
}

#[test]
fn patterns_put_experts_where_the_flags_for_it_do() {
    let line = |more: &str| {
        checked(&format!("llama-server -m GLM-4.5-Air-Q4_K_M.gguf -ngl 99 -c 32768 {more}"), "rtx-4090", "")
    };
    let all = line("--cpu-moe");
    for pattern in ["exps=CPU", r"'\.ffn_.*_exps\.=CPU'", r"'blk\.([0-9]|[1-4][0-9])\.ffn_.*_exps\.=CPU'"] {
        let a = line(&format!("-ot {pattern}"));
        assert!(a.starts && (a.weights_gib - all.weights_gib).abs() < 1e-9, "{pattern}: {}", a.weights_gib);
    }
    // The first layer has no experts: those of 36 layers from the first on are those of layers 10 to 44.
    let (some, counted) = (line(r"-ot 'blk\.([123][0-9]|4[0-4])\..*exps=CPU'"), line("--n-cpu-moe 36"));
    assert!((some.weights_gib - counted.weights_gib).abs() < 1e-9, "{} {}", some.weights_gib, counted.weights_gib);
    let unread = line("-ot 'blk.1.attn.*=CPU'");
    assert!(!unread.starts && unread.cautions.iter().any(|r| r.says == "flag_unmodelled"), "{:?}", unread.cautions);
}

#[test]
fn llama_cpp_lowers_what_the_line_leaves_open_until_it_fits() {
    let line = |more: &str| checked(&format!("llama-server -m qwen3-32b-q4_k_m.gguf {more}"), "rtx-4090", "");
    let left = |a: &Answer| a.total_gib - a.weights_gib - a.activation_gib - a.non_torch_gib - a.kv_cache_gib;
    let open = line("");
    // 256 tokens more of 64 layers of 4 KiB would be 64 MiB, and a GiB stays free.
    assert!(open.starts && (1.0..1.0625).contains(&left(&open)), "{}", left(&open));
    assert!(open.max_model_len.is_multiple_of(256) && open.max_model_len < 40_960);
    assert_eq!(line("-ngl 99").max_model_len, open.max_model_len);
    assert!(!line("--fit off").starts && !line("-ngl 99 -c 40960").starts);
    let told = line("-c 40960");
    assert!(told.starts && told.max_model_len == 40_960 && told.weights_gib < open.weights_gib, "{}", told.weights_gib);
    assert!(line("--fit-target 4096").max_model_len < open.max_model_len);
    // Experts go before layers do, and the context to its floor before either.
    let experts = checked("llama-server -m GLM-4.5-Air-Q4_K_M.gguf", "rtx-4090", "");
    assert!(experts.starts && experts.max_model_len == 4096 && left(&experts) >= 1.0, "{}", left(&experts));
    assert!(experts.cautions.iter().any(|r| r.says == "check_fitted"), "{:?}", experts.cautions);
    // A version without the flag has nothing of the kind.
    let old = checked("llama-server -m qwen3-32b-q4_k_m.gguf", "rtx-4090", "llamacpp@0.3.9");
    assert!(!old.starts, "{:?}", old.verdict);
}

#[test]
fn only_cards_that_are_visible_are_there() {
    for (before, after, on, starts) in [
        ("CUDA_VISIBLE_DEVICES=0", "-tp 2", "2xh100", false),
        ("CUDA_VISIBLE_DEVICES=0,1", "-tp 2", "2xh100", true),
        ("CUDA_VISIBLE_DEVICES=GPU-a1,GPU-b2", "-tp 4", "8xh100", false),
        ("CUDA_VISIBLE_DEVICES=", "", "h100", false),
        ("CUDA_VISIBLE_DEVICES=0,-1,1", "-tp 2", "h100", false),
        ("HIP_VISIBLE_DEVICES=0,1", "-tp 4", "8xmi300x", false),
        ("NVIDIA_VISIBLE_DEVICES=all", "-tp 2", "2xh100", true),
    ] {
        let a = checked(&format!("{before} vllm serve Qwen/Qwen3-32B --max-model-len 8192 {after}"), on, "");
        assert_eq!(a.starts, starts, "{before} {after}: {:?}", a.refusal);
    }
    let docker = "docker run --gpus '\"device=0,1\"' vllm/vllm-openai:v0.19.0 --model Qwen/Qwen3-32B";
    assert!(!checked(&format!("{docker} -tp 4"), "8xh100", "").starts);
    assert!(checked(&format!("{docker} -tp 2"), "8xh100", "").starts);
}

#[test]
fn blocks_that_are_asked_for_are_the_cache() {
    let line = "vllm serve meta-llama/Llama-3.1-8B-Instruct --num-gpu-blocks-override 1000 --block-size 32";
    let a = checked(line, "h100", "");
    // 32,000 tokens of 128 KiB.
    assert!(!a.starts && (a.kv_cache_gib - 3.906).abs() < 0.001 && a.longest_context == 32_000, "{}", a.kv_cache_gib);
    assert!(checked(&format!("{line} --max-model-len 32000"), "h100", "").starts);
}

#[test]
fn what_the_engine_cannot_load_is_refused() {
    for (line, word) in [
        ("mlx-community/Llama-3.3-70B-Instruct-4bit --max-model-len 8192", "mlx-4bit"),
        ("Qwen/Qwen2.5-72B-Instruct-AWQ --quantization awq --dtype bfloat16", "torch.bfloat16 is not supported"),
        ("Qwen/Qwen2.5-72B-Instruct-AWQ --dtype float32", "quantization method awq_marlin"),
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4 --dtype float32", "quantization method gptq_marlin"),
    ] {
        let a = checked(
            &format!("vllm serve {line} --max-model-len 8192")
                .replace(" --max-model-len 8192 --max-model-len 8192", " --max-model-len 8192"),
            "h100",
            "",
        );
        assert!(!a.starts && format!("{:?}", a.refusal).contains(word), "{line}: {:?}", a.refusal);
    }
    for line in ["--dtype bfloat16", "--quantization awq --dtype float16", ""] {
        let a = checked(&format!("vllm serve Qwen/Qwen2.5-72B-Instruct-AWQ --max-model-len 8192 {line}"), "h100", "");
        assert!(a.starts, "{line}: {:?}", a.refusal);
    }
    let open = |name: &str| {
        let a = checked(&format!("llama-server -hf {name} -c 4096"), "rtx-4090", "");
        a.cautions.iter().any(|r| r.says == "check_format_open")
    };
    assert!(open("unsloth/Qwen3-32B-GGUF") && !open("unsloth/Qwen3-32B-GGUF:Q4_K_M") && !open("qwen3-32b-q4_k_m.gguf"));
}

#[test]
fn what_would_start_is_there_and_is_named() {
    let eight = "vllm serve deepseek-ai/DeepSeek-V3 -tp 8";
    for on in ["a3-highgpu-8g", "p5.48xlarge"] {
        let a = checked(eight, on, "");
        // Where nothing on this machine is enough, more of it is named, and that it is more.
        let more = |c: &check::Change| c.caution.as_ref().is_some_and(|said| said.with.contains_key("there"));
        assert!(!a.starts && a.changes.iter().all(|c| !c.flag.contains("tensor-parallel") || more(c)), "{on}");
        assert!(a.changes.iter().any(|c| c.flag == "--tensor-parallel-size 16" && more(c)), "{on}: {:?}", a.changes);
    }
    let whole = checked("vllm serve Qwen/Qwen3-235B-A22B-FP8 -tp 8", "8xh100", "");
    assert!(whole.changes.iter().any(|c| c.flag == "--enable-expert-parallel" && c.starts), "{:?}", whole.changes);
    let gone = checked("vllm serve Qwen/Qwen3-8B --task embed", "h100", "");
    assert!(format!("{:?}", gone.verdict).contains("--runner pooling"), "{:?}", gone.verdict);
    let yarn = r#"{"rope_scaling":{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768}}"#;
    let long = checked(&format!("vllm serve Qwen/Qwen3-8B --hf-overrides '{yarn}' --max-model-len 131072"), "h100", "");
    assert!(long.starts && long.longest_context >= long.max_model_len, "{}", long.longest_context);
    let bare = asked("vllm serve Qwen/Qwen3-8B --speculative-config '{method: ngram}'", "h100", "").unwrap_err();
    assert!(bare.to_string().contains(r#"'{"method": "ngram"}'"#), "{bare}");
}

#[test]
fn all_questions_take_what_a_version_takes_on_a_card() {
    let on = |model: &str, on: &str| {
        let setting = rackmath::setting::Setting { model: model.into(), on: on.into(), ..Default::default() };
        estimate::Request { setting, concurrency: Some(4000.0), changes: false, ..Default::default() }
    };
    // vLLM runs 256 sequences at once on an A100 and on cards with less than 70 GiB, and 1,024 elsewhere.
    for (machine, most, least) in [("a100-80gb", 256.0, 200.0), ("l40s", 256.0, 200.0), ("h200", 1024.0, 256.0)] {
        let a = estimate::answer(&CATALOG, &on("qwen3-0.6b", machine)).unwrap();
        let running = a.served.as_ref().expect("it fits").running;
        assert!(running <= most && running > least, "{machine}: {running}");
        let line = checked("vllm serve Qwen/Qwen3-0.6B", machine, "");
        assert_eq!(line.max_num_seqs as f64, most, "{machine}");
    }
    let told = estimate::Request { max_num_seqs: Some(1024.0), ..on("qwen3-0.6b", "a100-80gb") };
    assert!(estimate::answer(&CATALOG, &told).unwrap().served.unwrap().running > 256.0);
}

#[test]
fn memory_and_check_name_the_same_longest_context() {
    let setting =
        rackmath::setting::Setting { model: "llama-3.1-8b".into(), on: "rtx-3090".into(), ..Default::default() };
    let (engine, context) = (Some("vllm@0.6.4".to_owned()), 29_000.0);
    let placed = layout::answer(&CATALOG, &layout::Request { setting, engine, context, ..Default::default() }).unwrap();
    let line = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 29000";
    let a = checked(line, "rtx-3090", "vllm@0.6.4");
    let card = placed.engine.unwrap();
    assert_eq!((card.longest_context, &*card.name), (a.longest_context, "vLLM 0.6.4"));
    let newest = rackmath::setting::Setting { model: "qwen3-32b".into(), on: "h100".into(), ..Default::default() };
    let engine = Some("vllm".to_owned());
    let newest = layout::answer(&CATALOG, &layout::Request { setting: newest, engine, ..Default::default() }).unwrap();
    assert!(!newest.engine.unwrap().name.contains("later"));
}

#[test]
fn small_changes_are_offered_together_where_none_is_enough_alone() {
    let line = "vllm serve Qwen/Qwen2.5-72B-Instruct-AWQ --tensor-parallel-size 2 --max-model-len 32768";
    let a = checked(line, "2xrtx-3090", "vllm@0.10.2");
    assert!(!a.starts);
    let first = a.changes.first().expect("changes that start together");
    assert!(first.flag.contains("--max-model-len") && first.flag.contains("--gpu-memory-utilization 0.95"));
    let longest = first.max_model_len;
    let then = line.replace("32768", &longest.to_string());
    let rest = first.flag.split_once(&longest.to_string()).unwrap().1;
    let told = checked(&format!("{then} {rest}"), "2xrtx-3090", "vllm@0.10.2");
    assert!(told.starts && told.kv_cache_tokens == first.kv_cache_tokens);
}

#[test]
fn slots_for_adapters_are_told_from_weights_and_fewer_are_offered() {
    let line = "vllm serve meta-llama/Llama-3.1-8B-Instruct --enable-lora --max-loras 32 --max-lora-rank 64 --max-model-len 8192";
    let a = checked(line, "a10g", "");
    assert!(!a.starts && format!("{:?}", a.verdict).contains("adapters"));
    let fewer = a.changes.iter().find(|c| c.flag.starts_with("--max-loras")).expect("fewer slots");
    let told = checked(&line.replace("--max-loras 32", &fewer.flag), "a10g", "");
    assert!(told.starts && told.kv_cache_tokens == fewer.kv_cache_tokens);
}

#[test]
fn mxfp4_is_computed_in_one_type_of_16_bits() {
    let a = checked("vllm serve openai/gpt-oss-20b --dtype float16", "h100", "");
    let printed = format!("{:?}", a.refusal);
    assert!(!a.starts && printed.contains("mxfp4. Supported dtypes: [torch.bfloat16]"), "{printed}");
    assert!(checked("vllm serve openai/gpt-oss-20b --dtype bfloat16", "h100", "").starts);
}

#[test]
fn the_buffer_of_a_pass_is_the_same_for_any_number_of_slots() {
    // llama.cpp's 32-bit logits of 512 tokens: 512 x 151,936 x 4 bytes are 297 MiB of it.
    let line = "llama-server -m Qwen3-32B-Q4_K_M.gguf -c 8192 -ngl 99";
    for more in ["", "-np 1", "-np 4"] {
        let a = checked(&format!("{line} {more}"), "rtx-4090", "");
        assert!((a.activation_gib - 0.30).abs() < 0.01, "{more}: {}", a.activation_gib);
    }
}

#[test]
fn what_is_not_set_aside_is_not_printed() {
    let line = "vllm serve Qwen/Qwen2.5-32B-Instruct-AWQ --max-model-len 4096";
    let aside = |engine: &str| checked(line, "h100", engine).graphs_estimate_gib;
    assert!(aside("vllm@0.10.2") == 0.0 && aside("vllm@0.25.0") > 0.0);
}

/// What is printed is what is typed: its own check must let it start, however small the cards.
#[test]
fn the_commands_of_a_plan_start_on_the_chips_it_is_for() {
    let cases = [
        ("llama-3.1-8b", "1xrtx-4090", "vllm"),
        ("qwen3-32b", "1xh100", "vllm"),
        ("llama-3.1-8b", "2xl4", "vllm"),
        ("gpt-oss-20b", "1xrtx-4090", "vllm"),
        ("gemma-3-27b", "2xl40s", "vllm"),
        ("llama-3.1-8b", "1xrtx-4090", "sglang"),
        ("qwen3-32b", "1xh100", "trtllm"),
    ];
    let mut told = 0;
    for (model, on, engine) in cases {
        let setting = rackmath::setting::Setting { model: model.into(), on: on.into(), ..Default::default() };
        let (isl, osl, rate_per_s) = (Some(1000.0), Some(500.0), Some(0.2));
        let ask =
            plan::Request { setting, engines: vec![engine.into()], isl, osl, rate_per_s, ..plan::Request::default() };
        let a = plan::answer_on(&CATALOG, &ask, 2).unwrap();
        let best = a.plans.first().unwrap_or_else(|| panic!("{model} on {on}: {:?}", a.verdict));
        for line in &best.launch {
            let line = line.trim_start_matches("prefill: ").trim_start_matches("decode: ");
            told +=
                u64::from(["--max-model-len", "--context-length", "--max_seq_len"].iter().any(|f| line.contains(f)));
            let found = checked(line, on, "");
            assert!(found.starts, "{model} on {on}: {line}: {:?}", found.verdict);
        }
    }
    assert!(told >= 3, "{told} lines say how long a request may be");
}

/// Whoever leaves weights with the host may leave more there; nodes of one line are the chips of its machine.
#[test]
fn ways_out_go_on_where_a_line_is_already() {
    let host = checked("vllm serve Qwen/Qwen3-32B --cpu-offload-gb 20 --max-model-len 8192", "l40s", "");
    let flag = host.changes.iter().find(|c| c.flag.starts_with("--cpu-offload-gb ")).expect("more with the host");
    let n: f64 = flag.flag.rsplit(' ').next().unwrap().parse().unwrap();
    let with = |n: f64| {
        checked(&format!("vllm serve Qwen/Qwen3-32B --cpu-offload-gb {n} --max-model-len 8192"), "l40s", "").starts
    };
    assert!(!host.starts && with(n) && !with(n - 1.0), "{n}");
    let plain = checked("vllm serve Qwen/Qwen3-32B --max-model-len 8192", "l40s", "");
    assert!(plain.changes.iter().all(|c| !c.flag.contains("offload")), "nobody asked for a slow host");
    let line = "python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3-0324 --tp 16 --nnodes 2";
    let nodes = checked(line, "16xh100", "");
    assert!(nodes.starts && nodes.cautions.is_empty(), "{:?}", nodes.cautions);
}

/// 64 layers of 8 heads of 128 keep 2 x 2 x 8 x 128 x 64 = 262,144 bytes a token: 3.91 GiB of 16,000 on two cards together.
#[test]
fn the_cache_of_unlike_cards_is_that_of_all_of_them() {
    let line = "llama-server -hf unsloth/Qwen3-32B-GGUF:Q4_K_M -ngl 99 -c 16000 -ts 24,12";
    let a = checked(line, "rtx-3090+rtx-3060", "");
    let all: f64 = a.cards.iter().map(|card| card.kv_cache_gib).sum();
    assert!((all - 16_000.0 * 262_144.0 / f64::from(1 << 30)).abs() < 0.02, "{all}");
    assert!(a.cards.len() == 2 && a.cards[0].weights_gib > a.cards[1].weights_gib, "{:?}", a.cards);
    let rackmath::remark::Part::Number(said) = a.verdict.with["cache"] else { panic!("{:?}", a.verdict) };
    assert!((said / f64::from(1 << 30) - all).abs() < 1e-6);
}

#[test]
fn a_file_in_mxfp4_keeps_the_rest_in_eight_bits_whatever_it_is_called() {
    // "q8_0: 146 tensors, mxfp4: 108 tensors, file size = 59.02 GiB" (ggml-org/llama.cpp issue 15253).
    let weights = |from: &str| {
        let line = format!("llama-server {from} -ngl 99 -c 8192");
        checked(&line, "rtx-pro-6000", "").weights_gib
    };
    let sizes = ["-m gpt-oss-120b-mxfp4.gguf", "-hf ggml-org/gpt-oss-120b-GGUF", "-m /models/gpt-oss-120b-MXFP4.gguf"]
        .map(weights);
    assert!(sizes.iter().all(|size| (size - 59.02).abs() < 0.2), "{sizes:?}");
}

#[test]
fn a_slot_of_llama_cpp_serves_no_more_than_the_model_was_trained_for() {
    let capped =
        |line: &str| checked(line, "rtx-3090", "").cautions.iter().any(|said| said.says == "check_slot_capped");
    let line = "llama-server -hf unsloth/Qwen3-30B-A3B-GGUF:Q4_K_M -ngl 99";
    assert!(
        capped(&format!("{line} -c 65536"))
            && !capped(&format!("{line} -c 40960"))
            && !capped(&format!("{line} -c 65536 -np 2"))
    );
}
