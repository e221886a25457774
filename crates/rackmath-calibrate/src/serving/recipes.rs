//! How InferenceX started its engines: flags that change latency, by what ran.
//!
//! | engine | flags | where |
//! |--------|-------|-------|
//! | SGLang, DeepSeek-R1 and Qwen3.5 on Blackwell | `--scheduler-recv-interval` 10, from 16 requests on 30; `--chunked-prefill-size` 16,384 in NVFP4, 32,768 in FP8; on four chips in FP8 8,192, with `--mem-fraction-static` 0.95 | `benchmarks/dsr1_fp4_b200.sh`, `dsr1_fp8_b200.sh`, `single_node/qwen3.5_fp8_b200.sh`, `single_node/qwen3.5_fp4_b200.sh`, `single_node/dsr1_fp4_b300.sh` |
//! | SGLang, GLM-5 on Blackwell | `--chunked-prefill-size` 32,768 | `single_node/glm5_fp8_b200.sh` |
//! | SGLang, DeepSeek-R1 on H200; on MI300X and MI325X; on MI355X | `--chunked-prefill-size` 32,768; 131,072; 196,608 | `dsr1_fp8_h200.sh`, `dsr1_fp8_mi300x.sh`, `dsr1_fp8_mi325x.sh`, `dsr1_fp8_mi355x.sh` |
//! | TensorRT-LLM with attention groups | `attention_dp_config`: balanced, `timeout_iters` 60 for DeepSeek-R1, the engine's own 50 for gpt-oss | `dsr1_fp4_b200_trt.sh`, `dsr1_fp8_h200_trt.sh`, `gptoss_fp4_b200_trt.sh`; `AttentionDpConfig` in TensorRT-LLM's `llm_args.py` |
//!
//! Until the end of January 2026 nothing was sent before the requests that count; since then twice as many as run at once
//! (pull request 480, opened 2026-01-17 with ten days to review). SGLang on AMD's chips is as slow to begin as before: ten
//! times what its means lie above its medians is 2 to 5 s either way, because kernels are chosen for each length that is met.
//!
//! A model or chip that is not named ran with the engine's defaults, as far as we know. Source: SemiAnalysisAI/InferenceX,
//! read 2026-11-16.

use crate::rows::Record;
use rackmath_spec::measurement::Setup;

/// The setup with the flags it was started with.
pub(super) fn started(setup: Setup, concurrency: f64) -> Setup {
    let Setup { model, degrees, .. } = &setup;
    let chip = setup.chip().to_owned();
    let blackwell = chip.starts_with("b200") || chip.starts_with("b300");
    let four_bits = setup.weights.as_deref() == Some("nvfp4");
    let (deepseek, qwen) = (model == "deepseek-v3", model.starts_with("qwen3.5"));
    let flags = match setup.family() {
        "sglang" if blackwell && (deepseek || qwen) => {
            let few = concurrency < 16.0 && !(qwen && four_bits) || deepseek && !four_bits && degrees.tp == 4;
            let chunk = match (deepseek, four_bits, degrees.tp) {
                (true, true, _) => 16_384.0,
                (true, false, 4) => 8192.0,
                _ => 32_768.0,
            };
            (Some(chunk), Some(if few { 10.0 } else { 30.0 }), None)
        }
        "sglang" if blackwell && model.starts_with("glm-5") => (Some(32_768.0), None, None),
        "sglang" if deepseek && chip == "h200" => (Some(32_768.0), None, None),
        "sglang" if deepseek && (chip == "mi300x" || chip == "mi325x") => (Some(131_072.0), None, None),
        "sglang" if deepseek && chip == "mi355x" => (Some(196_608.0), None, None),
        "trtllm" if deepseek && degrees.dp > 1 => (None, None, Some(60.0)),
        "trtllm" if model.starts_with("gpt-oss") && degrees.dp > 1 => (None, None, Some(50.0)),
        _ => (None, None, None),
    };
    let (chunk, looks, gather) = flags;
    // 671 GB of weights on four chips leave no choice.
    let memory = (chunk == Some(8192.0)).then_some(0.95);
    Setup { chunk: chunk.or(setup.chunk), looks, gather, memory, ..setup }
}

/// Whether a run met a server that had answered nobody: by its day, or by the number of the workflow's run, which grows with
/// the day (21,098,215,035 is the pull request's own of 2026-01-17).
pub(super) fn cold(row: &Record, setup: &Setup) -> bool {
    if setup.family() == "sglang" && setup.chip().starts_with("mi") {
        return true;
    }
    let (day, run) = (row.text("measured_date"), row.text("source_dump"));
    let run = run.rsplit_once("run_").and_then(|(_, n)| n.parse::<u64>().ok());
    if day.is_empty() { run.is_some_and(|n| n < 21_400_000_000) } else { day < "2026-01-28" }
}
