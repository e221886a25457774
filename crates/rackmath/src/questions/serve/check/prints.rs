//! What engines print when they start, in their own words, and how long they take.

use super::{Seconds3, gib};
use crate::desk::prelude::*;
use rackmath_spec::command::Startup;
use rackmath_spec::launch::Start;
use rackmath_spec::line::{Launch, Program, Use};
use rackmath_spec::model::Shape;
use rackmath_theory::budget::{Budget, Refusal};
use rackmath_theory::deployment::Deployment;

/// The first of vLLM's versions that is asked for its newer engine unless told.
fn first_engine(launch: &Launch, on: &Deployment) -> bool {
    let asked = launch.env.get("VLLM_USE_V1").map(String::as_str);
    launch.program == Program::Vllm
        && match asked {
            Some(value) => value == "0",
            None => on.engine.until.is_some_and(|until| "0.8".parse().is_ok_and(|v| until <= v)),
        }
}

/// Lines of a start; of llama.cpp those of each card.
pub(super) fn lines(launch: &Launch, on: &Deployment, b: &Budget, each: &[Budget]) -> Vec<Remark> {
    let (tokens, longest) = (grouped(b.tokens as f64), grouped(b.longest as f64));
    let device = match on.system.chip.vendor.as_str() {
        "Apple" => "MTL",
        "AMD" => "ROCm",
        "Intel" => "SYCL",
        _ => "CUDA",
    };
    let texts = match launch.program {
        Program::Vllm if first_engine(launch, on) => vec![
            format!("# GPU blocks: {}", b.blocks),
            format!("Maximum concurrency for {} tokens per request: {:.2}x", b.longest, b.concurrency),
        ],
        Program::Vllm => vec![
            format!("Model loading took {:.2} GiB memory", gib(b.weights)),
            format!("Available KV cache memory: {:.2} GiB", gib(b.cache)),
            format!("GPU KV cache size: {tokens} tokens"),
            format!("Maximum concurrency for {longest} tokens per request: {:.2}x", b.concurrency),
            format!("Graph capturing finished, took {:.2} GiB", gib(b.graphs)),
        ],
        Program::Sglang => vec![
            format!("Load weight end. mem usage={:.2} GB", gib(b.weights)),
            format!("KV Cache is allocated. #tokens: {}, KV size: {:.2} GB", b.tokens, gib(b.cache)),
            format!(
                "max_total_num_tokens={}, chunked_prefill_size={}, max_running_requests={}, context_len={}",
                b.tokens, b.pass, b.sequences, b.longest
            ),
        ],
        Program::TrtLlm => vec![format!(
            "[MemUsageChange] Allocated {:.2} GiB for max tokens in paged KV cache ({}).",
            gib(b.cache),
            b.tokens
        )],
        Program::LlamaCpp => {
            let mib = |bytes: Bytes| bytes.get() / 1_048_576.0;
            let line = |kind: &str, of: fn(&Budget) -> Bytes| -> Vec<String> {
                let size = |(at, b)| format!("{device}{at} {kind} buffer size = {:.2} MiB", mib(of(b)));
                each.iter().enumerate().map(size).collect()
            };
            [line("model", |b| b.weights), line("KV", |b| b.cache), line("compute", |b| b.activation)].concat()
        }
    };
    // A start that is refused prints as far as it comes.
    let far = match b.refusal {
        None => texts.len(),
        Some(Refusal::Prompt { .. }) => texts.len(),
        Some(Refusal::NotFree { .. } | Refusal::Weights { .. } | Refusal::Uncut { .. }) => 0,
        Some(Refusal::NoRoom { .. }) if launch.program == Program::Vllm => 2,
        Some(Refusal::TooLong { .. }) if launch.program == Program::Vllm => 2,
        Some(Refusal::Capture { .. } | Refusal::Sampler { .. }) => 4,
        Some(_) => each.len(),
    };
    // Graphs are captured on chips with CUDA or HIP.
    let eager = b.graphs == Bytes::ZERO || on.system.chip.vendor == "Apple";
    let shown = texts.into_iter().take(far).filter(|text| !(eager && text.starts_with("Graph")));
    shown.map(Remark::from).collect()
}

/// What the engine says when it does not start.
pub(super) fn refusal(launch: &Launch, on: &Deployment, b: &Budget, each: &[Budget]) -> Option<Remark> {
    let refusal = b.refusal?;
    let u = b.utilisation.get();
    let text = match (launch.program, refusal) {
        (Program::Vllm, Refusal::NotFree { free, desired }) => format!(
            "ValueError: Free memory on device ({:.2}/{:.2} GiB) on startup is less than desired GPU memory utilization ({u}, {:.2} GiB).",
            gib(free), gib(b.total), gib(desired)
        ),
        (Program::Vllm, Refusal::NoRoom { .. }) => {
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.".into()
        }
        (Program::Vllm, Refusal::TooLong { longest, .. }) if first_engine(launch, on) => format!(
            "ValueError: The model's max seq len ({longest}) is larger than the maximum number of tokens that can be stored in KV cache ({}).",
            b.tokens
        ),
        (Program::Vllm, Refusal::TooLong { longest, needed, available, possible }) => format!(
            "ValueError: To serve at least one request with the models's max seq len ({longest}), ({:.2} GiB KV cache is needed, which is larger than the available KV cache memory ({:.2} GiB). Based on the available memory, the estimated maximum model length is {possible}.",
            gib(needed), gib(available)
        ),
        (_, Refusal::Uncut { pass, longest }) => format!(
            "ValueError: max_num_batched_tokens ({pass}) is smaller than max_model_len ({longest}). This effectively limits the maximum sequence length to max_num_batched_tokens and makes vLLM reject longer sequences. Please increase max_num_batched_tokens or decrease max_model_len."
        ),
        (Program::Sglang, Refusal::Capture { .. }) => "Exception: Capture cuda graph failed: CUDA out of memory.".into(),
        (Program::Sglang, Refusal::NoRoom { .. } | Refusal::TooLong { .. } | Refusal::NotFree { .. }) => {
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.".into()
        }
        (Program::TrtLlm, Refusal::NoRoom { .. } | Refusal::TooLong { .. }) => {
            "Insufficient memory for the paged KV cache: lower max_seq_len or max_num_tokens, or use more GPUs".into()
        }
        (Program::LlamaCpp, refusal) if on.system.chip.vendor == "Apple" => {
            let needed = match refusal {
                Refusal::Buffers { needed, .. } | Refusal::Weights { needed, .. } => needed,
                _ => b.cache,
            };
            format!("ggml_metal_buffer_init: error: failed to allocate buffer, size = {:.2} MiB", needed.get() / 1_048_576.0)
        }
        (_, Refusal::Weights { .. } | Refusal::Capture { .. } | Refusal::Sampler { .. })
            if on.system.chip.vendor == "Apple" =>
        {
            "RuntimeError: MPS backend out of memory.".into()
        }
        (Program::LlamaCpp, _) => {
            let needed = match refusal {
                Refusal::Buffers { needed, .. } | Refusal::Weights { needed, .. } => needed,
                _ => b.cache,
            };
            let device = each.iter().position(|b| !b.starts()).unwrap_or(0);
            format!("ggml_backend_cuda_buffer_type_alloc_buffer: allocating {:.2} MiB on device {device}: cudaMalloc failed: out of memory", needed.get() / 1_048_576.0)
        }
        (_, _) => "torch.OutOfMemoryError: CUDA out of memory.".into(),
    };
    Some(text.into())
}

/// What binds, in our words.
pub(crate) fn why(refusal: &Refusal) -> Remark {
    match *refusal {
        Refusal::NotFree { free, desired } => says("check_not_free").with("free", free).with("desired", desired),
        Refusal::Weights { needed, free } => says("check_weights").with("needed", needed).with("free", free),
        Refusal::NoRoom { missing } => says("check_no_room").with("missing", missing),
        Refusal::TooLong { longest, needed, available, possible } => {
            let said = says("check_too_long").with("longest", longest).with("needed", needed);
            said.with("available", available).with("possible", possible)
        }
        Refusal::Capture { needed, free } => says("check_capture").with("needed", needed).with("free", free),
        Refusal::Sampler { needed, free } => says("check_sampler").with("needed", needed).with("free", free),
        Refusal::Buffers { needed, free } => says("check_buffers").with("needed", needed).with("free", free),
        Refusal::Uncut { pass, longest } => says("check_uncut").with("pass", pass).with("longest", longest),
        Refusal::Prompt { needed, free } => says("check_prompt").with("needed", needed).with("free", free),
    }
}

/// That an engine does not start, or does and ends with its first long prompt, and what binds.
pub(crate) fn refused(engine: &str, refusal: &Refusal) -> Remark {
    let id = if matches!(refusal, Refusal::Prompt { .. }) { "check_runs_out" } else { "check_refuses" };
    says(id).with("engine", engine).with("why", why(refusal))
}

/// What a parser says of flags it does not know. A line that states no version is read by the newest.
pub(super) fn parser(launch: &Launch) -> Option<Remark> {
    let unknown = |used: &Use| match used {
        Use::Unknown(_) => true,
        Use::Other { .. } => launch.program != Program::LlamaCpp,
        _ => false,
    };
    let flags: Vec<&str> = launch.flags.iter().filter(|f| unknown(&f.used)).map(|f| f.flag.as_str()).collect();
    if flags.is_empty() {
        return None;
    }
    let all = flags.join(" ");
    Some(match launch.program {
        Program::Vllm | Program::Sglang => format!("error: unrecognized arguments: {all}").into(),
        Program::TrtLlm => format!("Error: No such option: {all}").into(),
        Program::LlamaCpp => format!("error: invalid argument: {all}").into(),
    })
}

pub(super) fn too_few(launch: &Launch, chips: u64, has: u64) -> Remark {
    match launch.program {
        Program::Vllm => {
            format!("World size ({chips}) is larger than the number of available GPUs ({has}) in this node.").into()
        }
        _ => says("check_too_few").with("chips", chips).with("has", has),
    }
}

/// Seconds of a start, part by part.
pub(super) fn seconds(rule: &Startup, start: &Start, on: &Deployment, b: &Budget) -> Vec<Seconds3> {
    let d = on.layout.degrees();
    let ranks = (d.tp * d.pp * d.dp).min(8) as f64;
    let bytes = b.weights.get() * ranks / 1e9;
    let [slow, usual, fast] = rule.load_gb_per_s;
    let part = |id: &'static str, seconds: f64, low: f64, high: f64, rows: u64| Seconds3 {
        what: says(id),
        seconds,
        low,
        high,
        rows,
    };
    let mut all = vec![part("startup_weights", bytes / usual, bytes / fast, bytes / slow, rule.load_rows)];
    let layers = on.model.shape().map_or(0, Shape::n_layers) as f64;
    if !start.eager {
        let compile = rule.compile_s + rule.compile_layer_s * layers;
        let [low, high] = rule.compile_spread;
        all.push(part("startup_compile", compile, compile * low, compile * high, rule.compile_rows));
        let sizes = start.graphs.map_or(51.0, |n| n as f64) * layers;
        let [low, usual, high] = rule.graph_layer_size_s.map(|each| each * sizes);
        all.push(part("startup_graphs", usual, low, high, rule.graph_rows));
    }
    let [low, usual, high] = rule.rest_s;
    all.push(part("startup_rest", usual, low, high, rule.rest_rows));
    all
}

/// The largest share in whole hundredths of a memory of which so much is free.
pub(super) fn share_below(free: Bytes, total: Bytes) -> f64 {
    (free.get() / total.get().max(1.0) * 100.0).floor() / 100.0
}
