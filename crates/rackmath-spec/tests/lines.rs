//! Command lines as people post them: every flag is known by its version, and what is wrong is pointed at.

use proptest::prelude::*;
use rackmath_spec::command::Age;
use rackmath_spec::line::{self, Launch, Program, Use};
use rackmath_spec::{Catalog, SpecError};
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(rackmath_catalog::embedded);

fn read_with(text: &str, settings: Option<&str>, version: Option<&str>) -> Result<Launch, SpecError> {
    let started = line::chosen(line::find(text)?, None)?;
    let program = started.program.unwrap_or(Program::Vllm);
    let list = CATALOG.flag_list(started.list.unwrap_or(program.list()))?;
    line::launch(&started, program, &list, settings, version)
}

fn read(text: &str) -> Result<Launch, SpecError> {
    read_with(text, None, None)
}

fn refused(text: &str) -> String {
    read(text).map_or_else(|e: SpecError| e.to_string(), |l| panic!("{text}: {l:?}"))
}

/// Lines of threads: where, the version stated there or released at the time (none where the engine numbers builds), the line.
const REAL: [(&str, Option<&str>, &str); 24] = [
    (
        "github.com/vllm-project/vllm/issues/15469",
        Some("0.7.2"),
        "CUDA_VISIBLE_DEVICES=0,1 VLLM_USE_V1=1 VLLM_WORKER_MULTIPROC_METHOD=spawn vllm serve /home/work/Qwen/Qwen2.5-VL-3B-Instruct --gpu-memory-utilization 0.9 --swap-space 16 --max-model-len 4096 --tensor-parallel-size 2 --port 8091 --disable-custom-all-reduce",
    ),
    (
        "github.com/vllm-project/vllm/issues/13124",
        Some("0.7.2"),
        "vllm serve /home/lzh/llm_model/Qwen/Qwen2___5-VL-72B-Instruct --dtype auto --host 127.0.0.1 --port 6006 --tensor-parallel-size 4",
    ),
    // The slip is the beginning of the flag, which Python's parser takes.
    (
        "github.com/QwenLM/Qwen3-VL/issues/1492",
        Some("0.11.0"),
        "python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-VL-235B-A22B-Instruct --served-model-name Qwen/Qwen3-VL-235B-A22B-Instruct --tensor-parallel-size 8 --mm-encoder-tp-mode data --enable-expert-paralle --host 0.0.0.0 --port 22002 --dtype bfloat16 --gpu-memory-utilization 0.70 --quantization fp8 --distributed-executor-backend mp",
    ),
    (
        "github.com/vllm-project/vllm/issues/52435",
        Some("0.28.0"),
        "vllm serve /app/data/deepseek-v4-flash-0731/model --gpu-memory-utilization 0.875 --kv-cache-dtype fp8 --block-size 256 --pipeline-parallel-size 3 --served-model-name deepseek-v4-flash-0731 --moe-backend deep_gemm_mega_moe --attention-config '{\"use_fp4_indexer_cache\": true}' --speculative-config '{\"method\":\"dspark\",\"num_speculative_tokens\":7,\"draft_sample_method\":\"greedy\"}' --reasoning-parser deepseek_v4 --reasoning-config '{\"reasoning_parser\":\"deepseek_v4\"}' --tool-call-parser deepseek_v4 --enable-auto-tool-choice --default-chat-template-kwargs '{\"temperature\": 1.0, \"top_p\":0.95}' --middleware src.timing_middleware.log_timing_middleware",
    ),
    (
        "github.com/vllm-project/vllm/issues/22303",
        Some("0.9.2"),
        "export  CUDA_VISIBLE_DEVICES=1,2\n\nvllm serve /mnt/general/models/Qwen3-30B-A3B-Instruct-2507-FP8  \\\n--served-model-name Qwen3-30B-A3B-Instruct-2507-FP8 \\\n--tensor-parallel-size 2 \\\n--pipeline-parallel-size 1 \\\n--gpu-memory-utilization  0.9 \\\n--port 8011 \\\n--trust-remote-code \\\n--max-model-len 64000 \\\n--enforce_eager true \n",
    ),
    (
        "github.com/vllm-project/vllm/issues/28910",
        Some("0.11.0"),
        "python -m vllm.entrypoints.openai.api_server --model /home/cheng/model/Qwen3-30B-A3B-Instruct-2507-FP8 --port 8000 --served-model-name Qwen3-30B-A3B-Instruct-2507 --tensor-parallel-size 4 --pipeline-parallel-size 1 --dtype auto --trust-remote-code --gpu-memory-utilization 0.90 --max-model-len 131072 --max-num-batched-tokens 32768 --enable-auto-tool-choice --tool-call-parser hermes --max-num-seqs 10",
    ),
    (
        "github.com/vllm-project/vllm/issues/15664",
        Some("0.8.3"),
        "CUDA_VISIBLE_DEVICES=0 VLLM_USE_V1=0 vllm serve Llama-3_3-Nemotron-Super-49B-v1-4bit-GPTQ/ --trust-remote-code -q gptq --max-model-len 32768",
    ),
    (
        "github.com/vllm-project/vllm/issues/3525",
        Some("0.5.2"),
        "python -m vllm.entrypoints.openai.api_server --model mistralai/Mixtral-8x7B-Instruct-v0.1 --trust-remote-code --device cuda --tensor-parallel-size 4 --gpu-memory-utilization 0.95 --swap-space 1 --dtype auto --api-key x",
    ),
    (
        "github.com/wtdcode/vllm-backport/issues/14",
        Some("0.27.0"),
        "python3 -m vllm.entrypoints.openai.api_server --model /data/model-cache/DeepSeek-V4-Flash-0731 --enable-expert-parallel --tensor-parallel-size 8 --kv-cache-dtype fp8_ds_mla --compilation-config '{\"cudagraph_mode\":\"PIECEWISE\"}' --speculative-config '{\"method\":\"dspark\",\"num_speculative_tokens\":5}' --tokenizer-mode deepseek_v4 --enable-auto-tool-choice --tool-call-parser deepseek_v4 --reasoning-parser deepseek_v4 --host 0.0.0.0 --port 8000 --hf-overrides '{\"head_dtype\": \"float32\"}' --served-model-name deepseek-v4-flash-0731",
    ),
    (
        "github.com/HabanaAI/vllm-fork/issues/809",
        Some("0.7.3"),
        "python3 -m vllm.entrypoints.openai.api_server --port 8002 --model /data/model/DeepSeek-R1 --tensor-parallel-size 8 --dtype bfloat16 --gpu-memory-utilization 0.95 --task generate --max-model-len 81920 --max-num-batched-tokens 81920 --block-size 128 --trust_remote_code --quantization fp8 --multi-step-stream-outputs False",
    ),
    (
        "github.com/ROCm/legacy-rocm-build/pull/5376",
        Some("0.10.1"),
        "vllm serve amd/Llama-3.3-70B-Instruct-FP8-KV --host localhost --port 8000 --swap-space 64 --disable-log-requests --dtype auto --max-model-len 10240 --max-num-seqs 1024 --max-num-batched-tokens 131072 --max-seq-len-to-capture 16384 --tensor-parallel-size 8",
    ),
    (
        "github.com/sgl-project/sglang/pull/4390",
        Some("0.4.4"),
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct --trust-remote-code --tp 8 --enable-dp-attention --dp 2",
    ),
    (
        "github.com/sgl-project/sglang/issues/9856",
        Some("0.5.1"),
        "python3 -m sglang.launch_server --model-path /models/DeepSeek-R1-0528 --trust-remote-code --dist-init-addr 10.0.30.58:5757 --nnodes 2 --node-rank 0 --tp-size 8 --host 0.0.0.0 --mem-fraction-static 0.9",
    ),
    (
        "github.com/sgl-project/sglang/pull/5634",
        Some("0.4.5"),
        "SGL_ENABLE_JIT_DEEPGEMM=1 python3 -m sglang.launch_server --model /DeepSeek-V3 --tp 8 --trust-remote-code --enable-dp-attention --dp-size 8",
    ),
    (
        "github.com/sgl-project/sglang/pull/11830",
        Some("0.5.6"),
        "python3 -m sglang.launch_server --model-path Qwen/Qwen2.5-VL-7B-Instruct --enable-piecewise-cuda-graph --piecewise-cuda-graph-compiler eager --disable-radix-cache --device cuda --host 127.0.0.1 --port 30000",
    ),
    (
        "github.com/sgl-project/sglang/issues/5491",
        Some("0.4.5"),
        "python -m sglang.launch_server --model /mnt/data/open_source/QwQ-32B/Qwen__QwQ-32B/   --served-model-name Qwen-32B --speculative-algorithm EAGLE \\\n    --speculative-draft-model-path /mnt/train/eagle/EAGLE-1/ckpt_2/state_1/ --speculative-num-steps 3 \\\n    --speculative-eagle-topk 2 --speculative-num-draft-tokens 8 --cuda-graph-max-bs 8 --port 9123 --tensor-parallel-size 2 --mem-fraction-static 0.8 --attention-backend fa3 --enable-torch-compile --max-running-requests 100",
    ),
    (
        "github.com/sgl-project/sglang/issues/3362",
        Some("0.4.2"),
        "CUDA_VISIBLE_DEVICES=0,1,3,7 python -m sglang.launch_server --model /mnt/nvme0n1/ckpt/llama/Meta-Llama-3.1-70B-Instruct --port 9001 --host 0.0.0.0 --tensor-parallel-size 4 --speculative-algo EAGLE --speculative-draft /mnt/nvme0n1/ckpt/llama/sglang-EAGLE-LLaMA3-Instruct-70B --speculative-num-steps 5 --speculative-eagle-topk 8 --speculative-num-draft-tokens 64 --mem-fraction 0.7 --disable-cuda-graph",
    ),
    (
        "github.com/SafeAILab/EAGLE/issues/298",
        Some("0.5.2"),
        "python3 -m sglang.launch_server --model /models/Qwen3-8B --speculative-algorithm EAGLE3 --speculative-draft-model-path engyunw/qwen3_8b_eagle3 --speculative-num-steps 6 --speculative-eagle-topk 10 --speculative-num-draft-tokens 32 --mem-fraction 0.9 --cuda-graph-max-bs 2 --port 30000",
    ),
    (
        "github.com/SemiAnalysisAI/InferenceX/pull/1138",
        Some("0.5.11"),
        "sglang serve --model-path deepseek-ai/DeepSeek-V4 --tp 8 --dp 8 --enable-dp-attention --speculative-algo EAGLE --speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2 --moe-a2a-backend deepep --deepep-config '{\"normal_dispatch\":{\"num_sms\":96},\"normal_combine\":{\"num_sms\":96}}' --cuda-graph-max-bs 64 --max-running-requests 128",
    ),
    (
        "github.com/NVIDIA/TensorRT-LLM/pull/6954",
        Some("1.0.0"),
        "trtllm-serve openai/gpt-oss-120b --host 0.0.0.0 --port 8000 --backend pytorch --tp_size 8 --ep_size 8 --max_batch_size 640 --trust_remote_code --extra_llm_api_options max_throughput.yaml --kv_cache_free_gpu_memory_fraction 0.9",
    ),
    (
        "github.com/ggml-org/llama.cpp/pull/15077",
        None,
        "llama-server -hf ggml-org/gpt-oss-120b-GGUF --ctx-size 0 --jinja --flash-attn --n-gpu-layers 99 --reasoning-format none --n-cpu-moe 3",
    ),
    (
        "github.com/ggml-org/llama.cpp/issues/11681",
        None,
        "./llama-server --model models/deepseek-v3-q2_k_xs-00001-of-00005.gguf --alias full --host 0.0.0.0 --port 55055 --ctx-size 0 --cache-type-k q5_0 --slot-save-path \"saved_slots.kvc\" --threads 94 --threads-http 12 --parallel 6 --mirostat 2 --mirostat-ent 5.7 --mirostat-lr 0.14",
    ),
    (
        "github.com/ggml-org/llama.cpp/issues/20129",
        None,
        "./llama.cpp/build-cuda/bin/llama-server --model /media/models/gguf/stepfun-ai_Step-3.5-Flash-IQ4_XS-00001-of-00003.gguf --alias \"step-3.5-flash\" --fit on --prio 3 --temp 1.0 --top-p 0.95 --ctx-size 196608 --host 0.0.0.0 --port 8001 --jinja --cache-prompt --batch-size 30720 --threads 32 --threads-batch 64 --flash-attn auto --cache-type-k q4_0 --cache-type-v q4_0 --parallel 1 --cache-ram -1 --chat-template-file /tmp/llama_templates/step-3.5-fixed.jinja",
    ),
    (
        "github.com/ggml-org/llama.cpp/issues/23588",
        None,
        "services:\n  llama-server:\n    image: ghcr.io/ggml-org/llama.cpp:server-cuda13\n    command:\n      - \"-hf\"\n      - \"unsloth/Qwen3.6-35B-A3B-MTP-GGUF:UD-IQ3_XXS\"\n      - \"--port\"\n      - \"8080\"\n      - \"--n-cpu-moe\"\n      - \"26\"\n      - \"--override-tensor\"\n      - \"blk.(2[0-9]|3[0-9]|4[0-6]).ffn_(gate_up|down)_exps.weight=CPU\"\n      - \"--cache-type-k\"\n      - \"q4_0\"\n      - \"--cache-type-v\"\n      - \"q4_0\"\n      - \"--flash-attn\"\n      - \"on\"\n      - \"--cont-batching\"\n      - \"--ctx-checkpoints\"\n      - \"2\"\n",
    ),
];

#[test]
fn every_flag_of_real_lines_is_known_by_version() {
    for (whence, version, text) in REAL {
        let launch = read_with(text, None, version).unwrap_or_else(|e| panic!("{whence}: {e}"));
        assert!(launch.model.is_some(), "{whence}: no model");
        for flag in &launch.flags {
            assert!(!matches!(flag.used, Use::Unknown(_)), "{whence}: {flag:?}");
            // llama.cpp's builds are not numbered as its lists are.
            assert!(version.is_none() || !matches!(flag.used, Use::Other { .. }), "{whence} {version:?}: {flag:?}");
        }
    }
}

#[test]
fn what_lines_mean_is_what_the_engine_takes() {
    let l = read(REAL[3].2).unwrap();
    assert_eq!(l.start.utilisation.unwrap().get(), 0.875);
    assert_eq!((l.start.block, l.start.drafts, l.start.method.as_deref()), (Some(256), Some(7), Some("dspark")));
    assert_eq!((l.layout.degrees().pp, l.kv.as_deref()), (3, Some("fp8")));
    let l = read(REAL[4].2).unwrap();
    assert_eq!((l.start.eager, l.gpus, l.start.longest, l.layout.degrees().tp), (true, Some(2), Some(64_000), 2));
    let l = read(REAL[16].2).unwrap();
    assert_eq!((l.start.utilisation.unwrap().get(), l.start.eager, l.start.drafts), (0.7, true, Some(5)));
    let l = read(REAL[18].2).unwrap();
    assert_eq!((l.layout.degrees().dp, l.layout.degrees().tp, l.start.graph), (8, 1, Some(64)));
    let l = read(REAL[20].2).unwrap();
    assert_eq!(
        (l.start.layers, l.start.expert_layers, l.start.flash, l.start.longest),
        (Some(99), Some(3), Some(true), None)
    );
    let l = read(REAL[23].2).unwrap();
    assert_eq!((l.kv.as_deref(), l.model.as_deref()), (Some("q4_0"), Some("unsloth/Qwen3.6-35B-A3B-MTP-GGUF")));
    for (text, longest, fit) in [
        ("vllm serve m --max-model-len 32k", Some(32_000), false),
        ("vllm serve m --max-model-len=32K", Some(32_768), false),
        ("vllm serve m --max_model_len 25.6k", Some(25_600), false),
        ("vllm serve m --max-model-len auto", None, true),
        ("vllm serve m --max-model-len -1", None, true),
    ] {
        let l = read(text).unwrap();
        assert_eq!((l.start.longest, l.fit_longest), (longest, fit), "{text}");
    }
    let l =
        read("vllm serve m --compilation-config.cudagraph_mode NONE --no-enable-prefix-caching -O3 -ep -dp 2").unwrap();
    assert_eq!((l.start.eager, l.start.prefix_cache, l.layout.degrees().ep), (true, Some(false), 2));
    assert!(l.flags.iter().all(|f| !matches!(f.used, Use::Unknown(_) | Use::Other { .. })), "{:?}", l.flags);
    let l = read("vllm serve m --cudagraph-capture-sizes 1 2 4 8 --enable-lora --max-loras 4 --max-lora-rank 64 --kv-cache-memory-bytes 10G").unwrap();
    assert_eq!((l.start.graph, l.start.graphs, l.start.adapters), (Some(8), Some(4), Some((4, 64))));
    assert_eq!(l.start.cache.unwrap().get(), 10_737_418_240.0);
    let l = read("vllm serve m --limit-mm-per-prompt '{\"image\": 2, \"video\": 0}' --skip-mm-profiling").unwrap();
    assert_eq!((l.start.pictures, l.start.films, l.start.no_dry_pictures), (Some(2), Some(0), true));
    // SGLang takes a size of graphs beside their switch.
    let l = read("python -m sglang.launch_server --model-path m --cuda-graph-max-bs 8 --disable-cuda-graph").unwrap();
    assert!(l.start.eager);
}

#[test]
fn a_file_of_settings_speaks_where_the_line_does_not() {
    let yaml = "kv_cache_config:\n  free_gpu_memory_fraction: 0.8\n  dtype: fp8\n  enable_block_reuse: false\n\
                enable_attention_dp: true\ncuda_graph_config:\n  max_batch_size: 128\nmax_batch_size: 16\n";
    let line = "trtllm-serve m --tp_size 8 --ep_size 8 --max_batch_size 64 --extra_llm_api_options x.yml";
    let l = read_with(line, Some(yaml), None).unwrap();
    assert_eq!((l.start.sequences, l.start.utilisation.unwrap().get(), l.kv.as_deref()), (Some(64), 0.8, Some("fp8")));
    assert_eq!((l.start.prefix_cache, l.start.graph, l.layout.degrees().dp), (Some(false), Some(128), 8));
    let without = read(line).unwrap();
    assert!(without.flags.iter().any(|f| matches!(&f.used, Use::Unmodelled(Some(why)) if why.contains("not given"))));
    let l = read_with(
        "vllm serve --config x.yaml",
        Some("model: a/b\ntensor-parallel-size: 4\nenforce-eager: true\n"),
        None,
    )
    .unwrap();
    assert_eq!((l.model.as_deref(), l.layout.degrees().tp, l.start.eager), (Some("a/b"), 4, true));
}

#[test]
fn what_is_wrong_is_pointed_at() {
    for (text, words) in [
        ("vllm serve m --hf-overrides '{\"a\": 1} -tp 2", &["word 5", "single quote", "never closed"][..]),
        ("vllm serve a/b c/d", &["word 4", "\"c/d\"", "second model"]),
        ("vllm serve a/b --model c/d", &["\"a/b\"", "second model", "--model c/d"]),
        ("vllm serve m -tp 4 --tensor-parallel-size 8", &["word 6", "--tensor-parallel-size 8 against -tp 4"]),
        (
            "vllm serve m --enforce-eager --cudagraph-capture-sizes 1 2",
            &["--cudagraph-capture-sizes", "--enforce-eager"],
        ),
        ("vllm serve m --enable-prefix-caching --no-enable-prefix-caching", &["word 5", "stands before it"]),
        ("vllm serve m --max-model-len abc", &["word 4", "abc"]),
        ("vllm serve m --gpu-memory-utilization 90", &["word 4", "90 is no share"]),
        ("vllm serve m --speculative-config '{model: x}'", &["word 4", "not JSON"]),
        ("vllm serve m --max-num-seqs", &["word 4", "no value"]),
        ("vllm serve m --max-num-seqs 512 --max-num-batched-tokens 256", &["256 is below --max-num-seqs 512"]),
        ("python -m sglang.launch_server --model-path m --tp 8 --enable-dp-attention", &["--dp-size"]),
        ("python -m sglang.launch_server --model-path m --context-length 32k", &["word 6", "32k"]),
        ("vllm serve $MODEL -tp 2", &["$MODEL", "does not set"]),
        ("ollama run llama3", &["word 1", "\"ollama\"", "no server"]),
        ("", &["empty"]),
    ] {
        let said = refused(text);
        assert!(words.iter().all(|word| said.contains(word)), "{text}\n{said}");
    }
}

#[test]
fn a_flag_of_another_version_says_since_or_until_when() {
    let at = |text: &str, version: &str| read_with(text, None, Some(version)).unwrap().flags[0].used.clone();
    let Use::Other { until, .. } = at("vllm serve m --num-scheduler-steps 8", "0.19.0") else { panic!() };
    assert_eq!(until.as_deref(), Some("0.9.2"));
    assert!(matches!(at("vllm serve m --num-scheduler-steps 8", "0.6.3"), Use::Unmodelled(_)));
    let Use::Other { since, .. } = at("vllm serve m --kv-cache-memory-bytes 1G", "0.6.3") else { panic!() };
    assert!(since.is_some_and(|v| v.starts_with("0.1")));
    assert_eq!(at("vllm serve m --max-num-sqs 8", "0.19.0"), Use::Unknown(Some("--max-num-seqs".into())));
    assert_eq!(at("vllm serve m --port 8", "0.19.0"), Use::Idle);
    let list = CATALOG.flag_list("vllm").unwrap();
    // Between two versions that were read a flag is known if either has it.
    assert_eq!(list.age("--swap-space", Some("0.6.3.post1")), Age::Known);
    assert_eq!(list.age("--no-enable-prefix-caching", Some("0.19.0")), Age::Known);
    assert_eq!(list.age("--no-such-flag", Some("0.19.0")), Age::Never);
}

#[test]
fn histories_of_flags_end_with_the_list_of_today() {
    for id in ["vllm", "sglang", "llama-server", "llama-bench"] {
        let list = CATALOG.flag_list(id).unwrap();
        for flag in &list.flags {
            assert_eq!(list.age(flag, None), Age::Known, "{id} {flag}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let _ = read(&text);
        let _ = read(&format!("vllm serve {text}"));
        let _ = read_with("trtllm-serve m --config x", Some(&text), None);
    }

    #[test]
    fn any_words_of_flags_are_read_or_refused(
        parts in proptest::collection::vec(prop_oneof![
            Just("-tp"), Just("2"), Just("--max-model-len"), Just("32k"), Just("'{\"a\":[1,{\"b\":2}]}'"), Just("-O3"),
            Just("--compilation-config"), Just("--no-enable-prefix-caching"), Just("="), Just("--x.y=1"), Just("\\"), Just("a/b"),
            Just("--speculative-config"), Just("-cc.mode=3"), Just("--"), Just("true"), Just("-1"), Just("é"), Just("-é=ü"),
        ], 0..12),
        server in prop_oneof![Just("vllm serve"), Just("sglang serve"), Just("trtllm-serve"), Just("llama-server"), Just("llama-bench")],
    ) {
        let _ = read(&format!("{server} {}", parts.join(" ")));
    }
}
