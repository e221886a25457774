//! What a person sees: the commands run for real, their output kept as snapshots.

mod common;

use common::shown;

/// Lines of a page that nobody asked more of.
const LINES: usize = 25;

/// Lists are what was asked for, and are not cut.
const LISTS: [&str; 2] = ["chips_side_by_side", "price_lists"];

/// A name and a command to a line; a line that begins with a blank goes on with the command before. The page as it is shown, and
/// under it all of it where that takes no minute more.
fn unchanged(pages: &str, whole: bool) {
    for page in pages.trim().replace("\n ", " ").lines() {
        let (name, line) = page.split_once(':').expect("a name");
        let short = shown(line);
        let most = if LISTS.contains(&name) || line.contains("--handover") { usize::MAX } else { LINES };
        assert!(short.lines().count() <= most, "{name}: {short}");
        if !whole {
            insta::assert_snapshot!(name, short);
            continue;
        }
        let all = shown(&format!("{line} --explain --sources"));
        kept(name, &short, &all);
        insta::assert_snapshot!(name, format!("{short}\n---- --explain --sources\n\n{all}"));
    }
}

/// What a short page shows stands in the whole one, which leaves nothing out. Charts are drawn smaller on a short page.
fn kept(name: &str, short: &str, all: &str) {
    let drawn =
        |line: &str| line.contains(['┤', '│', '└', '●']) || line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let cut = |line: &str| line.starts_with("  ... ") || line.starts_with("more: ");
    for line in short.lines().filter(|l| !drawn(l) && !cut(l)) {
        assert!(all.lines().any(|l| l == line), "{name}: {line}");
    }
    assert_eq!(short.lines().next(), all.lines().next(), "{name}: the verdict comes first");
    assert!(!all.lines().any(cut), "{name}: {all}");
}

#[test]
fn the_verdict_alone_where_nothing_else_is_wanted() {
    for line in [
        "step llama-3.1-70b --on 8xh200",
        "estimate qwen3-32b --on h100",
        "memory qwen3-32b --on h100",
        "check vllm~serve~meta-llama/Llama-3.1-8B-Instruct --on h100",
        "fastmode opus-4.6",
    ] {
        let (page, verdict) = (shown(line), shown(&format!("{line} --quiet")));
        assert!(page.starts_with(&verdict) && verdict.lines().count() <= 3, "{line}: {verdict}");
        assert!(page.lines().count() > verdict.lines().count() + 3, "{line}: {page}");
    }
    // A list is its own verdict.
    assert_eq!(shown("models --quiet"), shown("models"));
}

#[test]
fn board() {
    unchanged(
        "
headline:
step: step llama-3.1-70b --on 8xh200 --batch 64
step_that_does_not_fit_is_an_answer: step deepseek-v3 --on hgx-h100 --dtype bf16
prefill: step gpt-oss-120b --on h100 -b 1 -c 0 --pass 8k
explain_balance: explain balance gemma-3-27b --on h100 -c 20k
explain_kv: explain kv deepseek-v4-pro --kv fp8 -c 128k
curve_over_chips: curve qwen3-32b --on h200 --over chips --to 8 -b 64
curve_over_context: curve lecture-frontier --on lecture-nvl72 --over context -b 5000
model_in_full: models deepseek-ai/DeepSeek-V3
chips_side_by_side: chips a100_sxm h100 h200_sxm b200 mi300x tpu-v6e
layout: layout deepseek-v3 --kv fp8 -b 8192
memory_that_no_pipeline_can_save: memory llama-3.1-70b --on hgx-h100 --chips 32 --tp 8 --pp 4 -b 512 -c 128k --engine ideal
pipeline_grid: pipeline
pipelines_compared: pipeline -s all --stages 8 -m 32 --input-grad 1s --weight-grad 1s
racks: racks deepseek-v3
station: station --rate 190
lecture: lecture
layout_from_the_flags_of_another_tool: layout qwen3-235b-a22b --on hgx-h200
    --flags=vllm~serve~x~-tp~8~--enable-expert-parallel~--port~8000 --routing power:1.2
traffic: traffic deepseek-v3 --on hgx-h800 --chips 128 --dp 128 --ep 128 --batch 16384 --kv fp8
one_stream_on_an_apple_machine: step llama-2-7b --on Apple~M2~Ultra~76-core~GPU -b 1 --context 128 --quantization
    Q4_K_M
",
        true,
    );
}

#[test]
fn serving() {
    unchanged(
        "
experts_on_a_rack: estimate deepseek-v3 --on gb200-nvl72 --dp 32 --ep 32 --concurrency 1024 --engine trtllm
one_user_at_home: estimate llama-3.1-8b --on rtx-4090 -q q4_k_m --engine llamacpp --concurrency 1
sweep: estimate-sweep gpt-oss-120b --on 8xh200 --tp 2
two_pools: estimate llama-3.1-70b --on 16xh200 --tp 4 --isl 8k --osl 500 --disaggregated --prefill-tp 2 --ttft 2s
    --tpot 30ms
what_does_not_fit_is_an_answer: estimate deepseek-v3 --on hgx-h100 --tp 8 -q bf16
the_summary_of_some_tables: validate splitwise mlperf-4.1 deepseek-production-day
every_row_of_a_table: validate deepseek-production-day --rows
whole_runs_replayed: validate simulate
dense: estimate llama-3.1-70b --on 8xh200 --tp 8 --concurrency 64 --isl 1k --osl 1k --engine vllm
",
        true,
    );
}

#[test]
fn money() {
    unchanged(
        "
a_hidden_model: deduce --blind qwen3-235b-a22b
a_vendor_of_policies: deduce --vendor anthropic --input 5$/Mtok --output 25$/Mtok --cached 0.5$/Mtok --write-5m
    6.25$/Mtok --write-1h 10$/Mtok --fast-price 6 --fast-speed 2.5
prices_that_contradict_everything: deduce --input 900$/Mtok --cached 0.001$/Mtok --tokens-per-s 100000 --points 12
price_of_a_conversation: price opus-4.8 --turns 20 --gap 2min
price_of_a_prefix_at_three_providers: price opus-4.8 gpt-5.6 gemini-3.1-pro -i 100k -o 1k --uses 10 --gap 10min
price_lists: price
cost_of_deepseeks_day: cost deepseek-v3 --on hgx-h800 --prefill-tok-s 9212.5 --decode-tok-s 1850 -u 1 --hit 0
    --sheet deepseek-reasoner --carbon 400
cost_to_an_owner: cost gpt-oss-120b --on hgx-b200 --owner -b 256
fleet_for_requests: fleet --rate 1000 --prompt 4k --answer 500 --world-tok-s 128M
cache_lifetimes: cache deepseek-v3 --on hgx-h800 --kv bf16 --gaps 30s:0.2,10min:0.15,1d:0.05
fastmode: fastmode opus-4.6
own: own llama-3.1-70b --on 8xh100 --provider-price 0.6/2.4/0.06 --hit 50% --isl 4k --osl 500 --route llama-3.1-8b=60%
price_at_peak_hours: price deepseek-flash -i 1M --at 2026-10-27T02:30
price_where_sources_disagree: price gpt-5.5 -i 300k -o 2k --mode priority
",
        true,
    );
}

#[test]
fn training() {
    unchanged(
        "
scaling: scaling
what_experts_are_worth: scaling -n 370M --sparsity 64 --law clark-2022
lifecycle_of_the_lecture: lifecycle --served 200T
lifecycle_with_everything: lifecycle -n 30B --rate 20M --lifetime 180d --survives 60% --rl 100M,16,8k,0.5
    --chip-mtbf 50677h --sparsity 16 --unique-tokens 30T --on b200 --train-format fp8 --serve-format nvfp4
goodput: goodput --price $2/h
forensics: forensics deepseek-v3 --price 2
forensics_of_figures_that_cannot_be: forensics deepseek-v3 --chip-hours 266.4k
reversible: reversible --depth 8 --steps 10 --figure drift
a_training_step_by_its_parts: train llama-3.1-70b --on hgx-h100 --chips 128 --tp 4 --pp 4 --batch 128 --sequence
    8192 --tokens 15T --width 110
the_best_layout_of_a_model_with_experts: train qwen3-30b-a3b --on hgx-b200 --chips 64 --batch 512 --search --keep 3
    --width 110
a_published_run_by_name: train --run deepseek-v3 --width 110
a_layout_that_does_not_fit_and_what_would: train llama-3.1-70b --on hgx-h100 --chips 64 --batch 128 --sequence 8192 --tp 8
    --pp 4 --micro-batch 4 --width 110
no_layout_fits: train llama-3.1-405b --on hgx-h100 --batch 64 --width 110
one_speed_in_every_convention: mfu llama-3.1-70b --on h100-sxm --tflops 400 --convention full --width 110
one_answer_from_loss_to_dollars: train llama-3.1-70b --chips 1024 --tp 8 --pp 4 --batch 512 --loss 1.94 --offload
    optimizer --recompute full --width 110
reversible_blocks_and_a_wide_search: train llama-3.1-8b --chips 16 --batch 32 --sequence 32k --recompute reversible
    --search --wide --keep 3 --width 110
scaling_of_a_point_under_one_law_with_dollars: scaling -n 8B -d 15T --law besiroglu-2024 --on h100 --price $2/h
    --figure iso-loss
",
        true,
    );
}

#[test]
fn planning() {
    unchanged(
        "
a_dense_model_under_latency_targets: plan qwen3-32b --on 32xh200 --isl 4000 --osl 500 --tpot 30ms --ttft 1s --rate 20
aggregated_only_with_chunks_to_choose_from: plan llama-3.1-8b --on 8xh100 --scenario chat --aggregated --chunks
    2048,8192 --speed 50 --top 2
faster_than_physics: plan qwen3-32b --on 8xh200 --tpot 0.1ms --ttft 10s
too_large_for_the_fleet: plan deepseek-v3 --on 2xh200
long_prompts_partly_in_host_memory: plan llama-3.1-70b --on 8xh200 --isl 32k --osl 500 --ttft 4s --offload-hit 0.5
    --objective goodput --aggregated --top 3
systems_side_by_side: compare llama-3.1-70b --on 8xh100,8xh200,8xb200 --isl 4k --osl 1k --tpot 30ms
models_side_by_side_one_of_which_is_too_large: compare --models qwen3-32b,llama-3.1-8b,llama-3.1-405b --on 4xh100
    --aggregated
engines_side_by_side: compare qwen3-32b --engines vllm,sglang --on 8xh200 --aggregated --figure dollar
frontiers_one_over_the_other: frontier llama-3.1-70b --on 8xh100,8xb200 --isl 4k --osl 1k --ttft 1s
one_frontier_against_dollars: frontier llama-3.1-8b --on h100 --aggregated --figure dollar
replicas_of_sglang_over_hosts: plan deepseek-v3 --on 64xh200 --engine sglang --speed 30 --objective throughput
    --aggregated --drafts 2 --acceptance 0.8 --top 1 --handover -
many_systems_side_by_side: compare llama-3.1-8b --on h100,h200,a100-80gb,l40s,l4 --aggregated --speed 30
the_best_hardware_and_where_it_changes: hardware llama-3.1-8b --chips 2 --aggregated --isl 2k --osl 300 --tpot 25ms
    --rate 10 --among h100,h200,l40s,a100-80gb,rtx-4090
the_best_hardware_of_the_catalogue: hardware llama-3.1-8b --chips 1 --aggregated --basis on-demand --no-flips
how_sure_a_plan_is: outlook qwen3-32b --on 32xh200 --isl 4000 --osl 500 --tpot 30ms --ttft 1s --rate 20
the_outlook_of_two_machines_filled: outlook llama-3.1-8b --on 4xh100,4xl40s --scenario rag --aggregated --speed 40
    --vary 50%
two_pools_of_vllm: plan qwen3-32b --on 16xh200 --isl 4k --osl 500 --tpot 40ms --rate 5 --top 1 --handover -
two_pools_of_tensorrt_llm: plan qwen3-32b --on 16xh200 --isl 4k --osl 500 --tpot 40ms --rate 5 --top 1 --engine
    trtllm --handover -
",
        false,
    );
}
