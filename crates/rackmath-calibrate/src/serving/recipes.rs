//! How InferenceX started its engines, and NVIDIA built those of its tables: flags that change latency, by what ran.
//!
//! | engine | flags | where |
//! |--------|-------|-------|
//! | SGLang, DeepSeek-R1 and Qwen3.5 on Blackwell | `--scheduler-recv-interval` 10, from 16 requests on 30; `--chunked-prefill-size` 16,384 in NVFP4, 32,768 in FP8; on four chips in FP8 8,192; `--mem-fraction-static` 0.85 in NVFP4, 0.82 in FP8, 0.95 on four chips; `--kv-cache-dtype fp8_e4m3`, not for Qwen3.5 in BF16 | `benchmarks/dsr1_fp4_b200.sh`, `dsr1_fp8_b200.sh`, `single_node/qwen3.5_fp8_b200.sh`, `single_node/qwen3.5_fp4_b200.sh`, `single_node/dsr1_fp4_b300.sh` |
//! | SGLang, GLM-5 on Blackwell | `--chunked-prefill-size` 32,768, `--mem-fraction-static` 0.85, `--kv-cache-dtype fp8_e4m3` | `single_node/glm5_fp8_b200.sh` |
//! | SGLang, DeepSeek-R1 on H200; on MI300X and MI325X; on MI355X | `--chunked-prefill-size` 32,768; 131,072; 196,608; `--mem-fraction-static` 0.82 on H200, 0.8 on AMD's chips | `dsr1_fp8_h200.sh`, `dsr1_fp8_mi300x.sh`, `dsr1_fp8_mi325x.sh`, `dsr1_fp8_mi355x.sh` |
//! | TensorRT-LLM with attention groups | `attention_dp_config`: balanced, `timeout_iters` 60 for DeepSeek-R1, the engine's own 50 for gpt-oss | `dsr1_fp4_b200_trt.sh`, `dsr1_fp8_h200_trt.sh`, `gptoss_fp4_b200_trt.sh`; `AttentionDpConfig` in TensorRT-LLM's `llm_args.py` |
//! | vLLM, MiniMax-M2.5 in FP8 on Blackwell | from 0.19 on `--kv-cache-dtype fp8`, `--max-num-batched-tokens` twice the prompt, `--gpu-memory-utilization` 0.90; before that 0.95 | `single_node/fixed_seq_len/minimaxm2.5_fp8_b200.sh`; `single_node/minimaxm2.5_fp8_b200.sh` (read 2026-11-18) |
//! | TensorRT-LLM, Llama-3.3-70B | `--max_num_tokens` the longest request: prompt, answer and 200; with 1,024 tokens of both on fewer than eight chips `batch_wait_timeout_iters` 20, `batch_wait_max_tokens_ratio` 0.9 | `70b_fp8_h200_trt_slurm.sh`, `70b_fp4_b200_trt_slurm.sh` (read 2026-11-18) |
//! | TensorRT-LLM | `free_gpu_memory_fraction` 0.8 for DeepSeek-R1 on Blackwell, 0.75 on H200, 0.85 for gpt-oss | the same |
//!
//! Until the end of January 2026 nothing was sent before the requests that count; since then twice as many as run at once
//! (pull request 480, opened 2026-01-17 with ten days to review). SGLang on AMD's chips is as slow to begin as before: ten
//! times what its means lie above its medians is 2 to 5 s either way, because kernels are chosen for each length that is met.
//!
//! A model or chip that is not named ran with the engine's defaults, as far as we know. Source: SemiAnalysisAI/InferenceX,
//! read 2026-11-16.

use super::inferencex::ROUNDS;
use super::rows::minor;
use crate::names::Names;
use crate::rows::Record;
use rackmath_spec::engine::Hold;
use rackmath_spec::layout::Layout;
use rackmath_spec::measurement::Setup;
use rackmath_spec::{Catalog, Dtype};
use rackmath_theory::{count, kv};

/// The setup with the flags it was started with.
pub(super) fn started(setup: Setup, concurrency: f64, (isl, osl): (f64, f64)) -> Setup {
    let Setup { model, degrees, .. } = &setup;
    let chip = setup.chip().to_owned();
    let blackwell = chip.starts_with("b200") || chip.starts_with("b300");
    let four_bits = setup.weights.as_deref() == Some("nvfp4");
    let (deepseek, qwen) = (model == "deepseek-v3", model.starts_with("qwen3.5"));
    let amd_chunk = if chip == "mi355x" { 196_608.0 } else { 131_072.0 };
    let amd = ["mi300x", "mi325x", "mi355x"].contains(&chip.as_str());
    let minimax = model == "minimax-m2.5" && blackwell && !four_bits && setup.family() == "vllm";
    let minor = setup.engine.split_once("@0.").and_then(|(_, rest)| rest.split('.').next()?.parse::<u32>().ok());
    let narrow = minimax && minor.is_some_and(|n| n >= 19);
    // Tokens of a chunk, steps between looks, steps that gather, share of the memory.
    let (chunk, looks, gather, memory) = match setup.family() {
        "sglang" if blackwell && (deepseek || qwen) => {
            let few = concurrency < 16.0 && !(qwen && four_bits) || deepseek && !four_bits && degrees.tp == 4;
            let (chunk, memory) = match (deepseek, four_bits, degrees.tp) {
                (true, true, _) => (16_384.0, 0.85),
                (true, false, 4) => (8192.0, 0.95),
                _ => (32_768.0, 0.82),
            };
            (Some(chunk), Some(if few { 10.0 } else { 30.0 }), None, Some(memory))
        }
        "sglang" if blackwell && model.starts_with("glm-5") => (Some(32_768.0), None, None, Some(0.85)),
        "sglang" if deepseek && chip == "h200" => (Some(32_768.0), None, None, Some(0.82)),
        "sglang" if deepseek && amd => (Some(amd_chunk), None, None, Some(0.8)),
        "trtllm" if deepseek => {
            (None, None, (degrees.dp > 1).then_some(60.0), Some(if blackwell { 0.8 } else { 0.75 }))
        }
        "trtllm" if model == "llama-3.1-70b" => (Some(isl + osl + 200.0), None, None, None),
        "vllm" if narrow => (Some(2.0 * isl), None, None, Some(0.9)),
        "vllm" if minimax => (None, None, None, Some(0.95)),
        "trtllm" if model.starts_with("gpt-oss") => (None, None, (degrees.dp > 1).then_some(50.0), Some(0.85)),
        _ => (None, None, None, None),
    };
    let wide = qwen && setup.weights.as_deref() == Some("bf16");
    let told = setup.family() == "sglang" && blackwell && (deepseek || qwen && !wide || model.starts_with("glm-5"));
    let kv = if narrow || told { Some("fp8".to_owned()) } else { setup.kv.clone() };
    let waits = setup.family() == "trtllm" && model == "llama-3.1-70b" && isl + osl == 2048.0 && degrees.tp < 8;
    let hold = waits.then_some(Hold { steps: 20.0, share: 0.9 });
    Setup { chunk: chunk.or(setup.chunk), looks, gather, hold, kv, memory: memory.or(setup.memory), ..setup }
}

/// The setup of NVIDIA's own tables of TensorRT-LLM with what `trtllm-bench build` made its engine for. Buffers of the decoder are made for every
/// sequence of it and those of a pass for every token, so that the cache gets what they leave.
///
/// Releases 0.12 to 0.14 look it up (`built` in `data/names.toml`); 0.15 to 0.19 reckon it from the free memory, in GiB:
///
/// $$ n = \min\left(\frac{0.95\,(G M - W)}{k\,(s_i + s_o)},\ 4096\right) / p \qquad t = \min\left(n\,(1 + s_i / s_o),\ 32768\right) $$
///
/// and round both up: n by 32 (64 at least), from 256 on by 128, from 1,024 on by 256; t by 256 (2,048 at least), from 4,096 on by 512, from 8,192 on
/// by 1,024. G chips of M bytes hold weights W and k bytes of cache a token, in p stages. Source: tensorrt_llm/bench/build/tuning.py (read 2026-11-18).
/// Ignores: heads of keys and values below the number of chips.
pub(super) fn built(names: &Names<'_>, setup: Setup, (isl, osl): (f64, f64)) -> Setup {
    let version = setup.engine.split_once('@').and_then(|(_, version)| minor(version));
    let (sequences, tokens) = match version {
        Some(12..=14) => {
            let listed = names.built(&setup.model, setup.degrees.tp, isl + osl);
            (listed.map(|b| b.sequences), listed.map(|b| b.tokens))
        }
        Some(15..=19) => tuned(names.catalog, &setup, (isl, osl)).unzip(),
        _ => (None, None),
    };
    Setup { sequences, chunk: tokens, ..setup }
}

fn tuned(catalog: &Catalog, setup: &Setup, (isl, osl): (f64, f64)) -> Option<(f64, f64)> {
    let (model, chip) = (catalog.model(&setup.model).ok()?, catalog.chip(setup.chip()).ok()?);
    let bytes = |word: &Option<String>| word.as_deref().map_or(Ok(Dtype::Bf16), str::parse::<Dtype>).ok();
    let weights = count::count(&model).total() as f64 * bytes(&setup.weights)?.width().get();
    let token = kv::cache(&model, bytes(&setup.kv)?).stored_per_token().get();
    let (stages, chips) = (setup.degrees.pp as f64, Layout::new(setup.degrees).ok()?.chips() as f64);
    let free = chips * chip.memory.seen().get() - weights;
    let n = (0.95 * free / (token * (isl + osl))).clamp(1.0, 4096.0) / stages;
    let t = (n * (1.0 + isl / osl)).min(32_768.0);
    let up = |x: f64, steps: [f64; 3], from: [f64; 2]| {
        let step = steps[usize::from(x >= from[0]) + usize::from(x >= from[1])];
        (x / step).ceil() * step
    };
    Some((
        up(n, [32.0, 128.0, 256.0], [256.0, 1024.0]).max(64.0),
        up(t, [256.0, 512.0, 1024.0], [4096.0, 8192.0]).max(2048.0),
    ))
}

/// Whether a run met a server that had answered nobody: by its day, or by the number of the workflow's run, which grows with
/// the day (21,098,215,035 is the pull request's own of 2026-01-17).
pub(super) fn cold(row: &Record, setup: &Setup) -> bool {
    if setup.family() == "sglang" && setup.chip().starts_with("mi") {
        return true;
    }
    before(row, "2026-01-28", 21_400_000_000)
}

/// Requests for each that runs at once: ten; until the end of 2025 fifty for DeepSeek-R1's own weights on B200, and twenty where answers were long.
///
/// Source: `NUM_PROMPTS` of a runner of SemiAnalysisAI/InferenceX that begins containers on B200 (read 2026-11-18); its other runners send ten. Which one a
/// run had is not recorded, but what its first wave waited over 70 s tells: about fifty (twenty) in all seven runs before the day, in four of eleven after it.
pub(super) fn rounds(row: &Record, setup: &Setup, osl: f64) -> f64 {
    let own = setup.model == "deepseek-v3" && setup.weights.as_deref() != Some("nvfp4");
    if own && setup.family() == "sglang" && setup.chip() == "b200" && before(row, "2025-12-31", 20_600_000_000) {
        return if osl == 8192.0 { 20.0 } else { 50.0 };
    }
    ROUNDS
}

/// Whether a run was before a day, or before the workflow's run of that day where none is stated.
fn before(row: &Record, day: &str, run: u64) -> bool {
    let (on, dump) = (row.text("measured_date"), row.text("source_dump"));
    let number = dump.rsplit_once("run_").and_then(|(_, n)| n.parse::<u64>().ok());
    if on.is_empty() { number.is_some_and(|n| n < run) } else { on < day }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmath_spec::layout::Degrees;

    fn asked(engine: &str, chips: u64, lengths: (f64, f64)) -> (Option<f64>, Option<f64>) {
        let catalog = rackmath_catalog::embedded();
        let setup = Setup {
            model: "llama-3.1-70b".into(),
            weights: Some("fp8".into()),
            kv: Some("fp8".into()),
            engine: engine.into(),
            system: format!("{chips}xh100-sxm"),
            degrees: Degrees { tp: chips, etp: chips, ..Degrees::default() },
            ..Setup::default()
        };
        let built = built(&Names::new(&catalog), setup, lengths);
        (built.sequences, built.chunk)
    }

    /// One chip: 0.95 (85.0 - 70.6 GB) over 163,840 bytes a token and 2,176 tokens are 39 sequences; eight: 1,625.
    #[test]
    fn engines_are_built_for_what_the_free_memory_holds_from_0_15_on() {
        assert_eq!(asked("trtllm@0.17", 1, (128.0, 2048.0)), (Some(64.0), Some(2048.0)));
        assert_eq!(asked("trtllm@0.17", 8, (128.0, 2048.0)), (Some(1792.0), Some(2048.0)));
        // 1,625 sequences of 17 tokens for each that decodes: 27,625, in steps of 1,024.
        assert_eq!(asked("trtllm@0.17", 8, (2048.0, 128.0)), (Some(1792.0), Some(27_648.0)));
        assert_eq!(asked("trtllm@1.0", 8, (128.0, 2048.0)), (None, None));
    }

    #[test]
    fn recipes_are_read_by_what_ran() {
        let ran = |model: &str, weights: &str, engine: &str, system: &str, tp: u64| Setup {
            model: model.into(),
            weights: Some(weights.into()),
            engine: engine.into(),
            system: system.into(),
            degrees: Degrees { tp, etp: tp, ..Degrees::default() },
            ..Setup::default()
        };
        let kv = |setup| started(setup, 4.0, (1024.0, 1024.0)).kv;
        assert_eq!(kv(ran("deepseek-v3", "nvfp4", "sglang@0.5.9", "8xb200", 8)).as_deref(), Some("fp8"));
        assert_eq!(kv(ran("deepseek-v3", "fp8-block", "sglang@0.5.9", "8xh200", 8)), None);
        assert_eq!(kv(ran("qwen3.5-397b-a17b", "bf16", "sglang@0.5.9", "8xb200", 8)), None);
        // Prompts are held with 1,024 tokens of both on fewer than eight chips.
        let held = |tp, osl| {
            let setup = ran("llama-3.1-70b", "fp8", "trtllm@1.1", &format!("{tp}xh200"), tp);
            let setup = started(setup, 4.0, (1024.0, osl));
            (setup.hold.map(|h| h.steps), setup.chunk)
        };
        assert_eq!(held(4, 1024.0), (Some(20.0), Some(2248.0)));
        assert_eq!((held(8, 1024.0), held(4, 8192.0)), ((None, Some(2248.0)), (None, Some(9416.0))));
    }

    #[test]
    fn before_that_a_list_says_it_by_length() {
        assert_eq!(asked("trtllm@0.13.0", 8, (128.0, 2048.0)), (Some(8192.0), Some(16_384.0)));
        assert_eq!(asked("trtllm@0.14.0", 2, (2048.0, 2048.0)), (Some(2048.0), Some(1024.0)));
        assert_eq!(asked("trtllm@0.14.0", 2, (128.0, 2048.0)), (Some(256.0), Some(1024.0)));
        assert_eq!(asked("trtllm@0.11", 8, (128.0, 2048.0)), (None, None));
    }
}
