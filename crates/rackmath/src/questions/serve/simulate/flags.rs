//! Flags that change the schedule, as each engine names them.

use super::Request;
use crate::desk::prelude::*;
pub use rackmath_sim::engine::sglang::{Policy as SchedulePolicy, PrefetchPolicy, WritePolicy};
pub use rackmath_sim::engine::trtllm::{Capacity as CapacityPolicy, Chunking as ChunkingPolicy};
use rackmath_sim::engine::{Settings, sglang, trtllm, vllm};
use rackmath_theory::deployment::{Deployment, Ready};
use rackmath_theory::placement::{self, Load};
use serde_json::Value;

/// Flags of vLLM, and those that every engine has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Flags {
    /// Most tokens in a step.
    #[schemars(extend("x-none" = "the engine's"))]
    pub max_num_batched_tokens: Option<u64>,
    /// Most sequences that run together.
    #[schemars(extend("x-none" = "the engine's"))]
    pub max_num_seqs: Option<u64>,
    /// Longest sequence.
    #[schemars(extend("x-none" = "the model's"))]
    pub max_model_len: Option<u64>,
    /// Tokens of a block of the cache.
    #[schemars(extend("x-none" = "16"))]
    pub block_size: Option<u64>,
    /// Blocks of the cache.
    #[schemars(extend("x-none" = "what memory holds"))]
    pub num_gpu_blocks_override: Option<u64>,
    /// Share of a chip's memory the engine takes.
    #[schemars(extend("x-flag" = "gpu-memory-utilization mem-fraction-static", "x-unit" = "share", "x-none" = "the engine's"))]
    pub memory_utilisation: Option<f64>,
    /// Computes every prompt whole, whatever was computed before.
    pub no_enable_prefix_caching: bool,
    /// A prompt that does not fit in a step waits.
    pub no_enable_chunked_prefill: bool,
    /// Chooses a step only when the one before has ended.
    pub no_async_scheduling: bool,
    /// Most tokens of one prompt in a step while others wait; 0 for no limit.
    pub long_prefill_token_threshold: u64,
    /// Tokens drafted for each sequence and step.
    pub num_speculative_tokens: u64,
    /// Chance that a draft is accepted when all before it were.
    #[schemars(extend("x-unit" = "share", "x-none" = "the engine's"))]
    pub acceptance: Option<f64>,
}

/// Flags of SGLang.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Sglang {
    /// SGLang: most prompt tokens in a step; -1 does not cut prompts.
    #[schemars(extend("x-none" = "by the chip's memory"))]
    pub chunked_prefill_size: Option<i64>,
    /// SGLang: most prompt tokens in a step where prompts are not cut.
    #[schemars(extend("x-none" = "the engine's"))]
    pub max_prefill_tokens: Option<u64>,
    /// SGLang: most sequences that run together.
    #[schemars(extend("x-none" = "the engine's"))]
    pub max_running_requests: Option<u64>,
    /// SGLang: tokens of the cache.
    #[schemars(extend("x-none" = "what memory holds"))]
    pub max_total_tokens: Option<u64>,
    /// SGLang: longest sequence.
    #[schemars(extend("x-none" = "the model's"))]
    pub context_length: Option<u64>,
    /// SGLang: decodes beside the prompts of a step.
    pub enable_mixed_chunk: bool,
    /// SGLang: computes every prompt whole, whatever was computed before.
    pub disable_radix_cache: bool,
    /// SGLang: who of those that wait goes first.
    #[educe(Default = SchedulePolicy::Fcfs)]
    pub schedule_policy: SchedulePolicy,
    /// SGLang: how much of the answers to come is reckoned with when a prompt is let in.
    #[educe(Default = 1.0)]
    pub schedule_conservativeness: f64,
    /// SGLang: chooses a step only when the one before has ended.
    pub disable_overlap_schedule: bool,
    /// SGLang: steps of decodes between two with prompts.
    pub prefill_decode_interval: u64,
    /// SGLang: steps of decodes between two looks at what has come.
    #[educe(Default = 1)]
    pub scheduler_recv_interval: u64,
    /// SGLang: keeps caches in host memory as well.
    pub enable_hierarchical_cache: bool,
    /// SGLang: host memory over the cache memory of the chips.
    #[schemars(extend("x-none" = "the engine's"))]
    pub hicache_ratio: Option<f64>,
    /// SGLang: host memory for the caches of a chip, in GB.
    #[schemars(extend("x-none" = "by the ratio"))]
    pub hicache_size: Option<f64>,
    /// SGLang: when what the chips computed is copied to host memory, and from there to storage.
    #[educe(Default = WritePolicy::WriteThrough)]
    pub hicache_write_policy: WritePolicy,
    /// SGLang: how long a request waits for what storage has of it.
    #[educe(Default = PrefetchPolicy::Timeout)]
    pub hicache_storage_prefetch_policy: PrefetchPolicy,
}

/// Flags of TensorRT-LLM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Trtllm {
    /// TensorRT-LLM: most tokens in a step.
    #[schemars(extend("x-none" = "the engine's"))]
    pub max_num_tokens: Option<u64>,
    /// TensorRT-LLM: most sequences that run together.
    #[schemars(extend("x-none" = "the engine's"))]
    pub max_batch_size: Option<u64>,
    /// TensorRT-LLM: longest sequence.
    #[schemars(extend("x-none" = "the model's"))]
    pub max_seq_len: Option<u64>,
    /// TensorRT-LLM: tokens of a block of the cache.
    #[schemars(extend("x-none" = "the engine's"))]
    pub tokens_per_block: Option<u64>,
    /// TensorRT-LLM: tokens of the cache.
    #[schemars(extend("x-none" = "what memory holds"))]
    pub max_tokens: Option<u64>,
    /// TensorRT-LLM: who may be resident.
    #[educe(Default = CapacityPolicy::GuaranteedNoEvict)]
    pub capacity_scheduler_policy: CapacityPolicy,
    /// TensorRT-LLM: cuts prompts that do not fit in a step.
    pub enable_chunked_context: bool,
    /// TensorRT-LLM: how prompts are cut.
    #[educe(Default = ChunkingPolicy::FirstComeFirstServed)]
    pub context_chunking_policy: ChunkingPolicy,
    /// TensorRT-LLM: computes every prompt whole, whatever was computed before.
    pub no_enable_block_reuse: bool,
    /// TensorRT-LLM: chooses a step only when the one before has ended.
    pub disable_overlap_scheduler: bool,
    /// TensorRT-LLM: host memory for the caches of a chip, in bytes.
    #[schemars(extend("x-none" = "none"))]
    pub host_cache_size: Option<u64>,
}

/// Flags that mean the same: of vLLM, SGLang and TensorRT-LLM.
const SAME: [[&str; 3]; 8] = [
    ["flags.max_num_batched_tokens", "sglang.chunked_prefill_size", "trtllm.max_num_tokens"],
    ["flags.max_num_seqs", "sglang.max_running_requests", "trtllm.max_batch_size"],
    ["flags.max_model_len", "sglang.context_length", "trtllm.max_seq_len"],
    ["flags.block_size", "", "trtllm.tokens_per_block"],
    ["flags.num_gpu_blocks_override", "sglang.max_total_tokens", "trtllm.max_tokens"],
    ["flags.no_enable_prefix_caching", "sglang.disable_radix_cache", "trtllm.no_enable_block_reuse"],
    ["flags.no_enable_chunked_prefill", "sglang.chunked_prefill_size", "trtllm.enable_chunked_context"],
    ["flags.no_async_scheduling", "sglang.disable_overlap_schedule", "trtllm.disable_overlap_scheduler"],
];

/// Flags that every engine has.
const COMMON: [&str; 2] = ["memory_utilisation", "acceptance"];

/// Refuses a flag of another engine, and names the one of this.
fn own_flags(r: &Request, this: usize) -> Result<(), Error> {
    let group = |name: &'static str, given: &dyn Fn() -> [Option<Value>; 2]| (name, given());
    let groups = [
        group("flags", &|| [serde_json::to_value(&r.flags).ok(), serde_json::to_value(Flags::default()).ok()]),
        group("sglang", &|| [serde_json::to_value(&r.sglang).ok(), serde_json::to_value(Sglang::default()).ok()]),
        group("trtllm", &|| [serde_json::to_value(&r.trtllm).ok(), serde_json::to_value(Trtllm::default()).ok()]),
    ];
    for (at, (name, values)) in groups.into_iter().enumerate() {
        let [Some(Value::Object(given)), Some(usual)] = values else { continue };
        for (key, value) in given.iter().filter(|(key, value)| usual.get(key) != Some(value)) {
            if at == this || COMMON.contains(&key.as_str()) {
                continue;
            }
            let field = format!("{name}.{key}");
            let twin = SAME.iter().find(|row| row[at] == field).map_or("", |row| row[this]);
            let engine = ["vLLM", "SGLang", "TensorRT-LLM"][this];
            let expected = match twin {
                "" => format!("nothing: {engine} has no such flag, or it is not simulated"),
                twin => format!("nothing: {engine} has {{{twin}}}"),
            };
            return Err(Error::value(field, value, expected));
        }
    }
    Ok(())
}

/// A number that was given, or the usual one.
fn small(field: &'static str, given: Option<u64>, usual: f64, low: u64, high: u64) -> Result<u32, Error> {
    Ok(within_u64(field, given.unwrap_or(usual.min(high as f64) as u64), low, high)? as u32)
}

pub(super) fn within_u64(field: &'static str, n: u64, low: u64, high: u64) -> Result<u64, Error> {
    refuse_if(!(low..=high).contains(&n), field, n, format!("{low} to {}", grouped(high as f64)))?;
    Ok(n)
}

/// The longest sequence of a model; where it is not known, longer than any prompt of our traces.
pub(crate) fn longest(on: &Deployment) -> f64 {
    on.model.shape().and_then(|shape| shape.context_max).map_or(f64::from(1 << 20), |n| n as f64)
}

/// The same for a request: as long as anybody likes where the model's positions are pretended away.
fn longest_for(r: &Request, on: &Deployment) -> f64 {
    if r.pretend { longest(on).max(f64::from(1 << 20)) } else { longest(on) }
}

/// The engine of a request with its flags.
pub(crate) fn settings(r: &Request, ready: &Ready) -> Result<Settings, Error> {
    let settings = of(r, &ready.deployment)?;
    roomy(has(&settings))?;
    Ok(settings)
}

/// Blocks of the cache.
fn has(settings: &Settings) -> u32 {
    match settings {
        Settings::Vllm(s) => s.num_blocks,
        Settings::Sglang(s) => s.max_total_tokens,
        Settings::Trtllm(s) => s.blocks,
    }
}

fn roomy(blocks: u32) -> Result<(), Error> {
    let expected = "a larger machine, fewer weights on each chip or narrower formats";
    refuse_if(blocks < 2, "setting.on", "no memory left for a cache", expected)
}

/// The load of one mean request where memory holds no cache for it.
pub(super) fn no_room(r: &Request, on: &Deployment) -> Result<Option<Load>, Error> {
    let settings = of(r, on)?;
    let chunk = match &settings {
        Settings::Vllm(s) => s.max_num_batched_tokens,
        Settings::Sglang(s) => s.chunked_prefill_size.unwrap_or(s.max_prefill_tokens),
        Settings::Trtllm(s) => s.max_num_tokens,
    };
    Ok((has(&settings) < 2).then(|| one(r, on, settings.block(), chunk)))
}

/// The same, whether or not there is room for a cache.
fn of(r: &Request, on: &Deployment) -> Result<Settings, Error> {
    match on.engine.family.as_str() {
        "vllm" | "ideal" => own_flags(r, 0).and_then(|()| Ok(of_vllm(r, on)?.into())),
        "sglang" => own_flags(r, 1).and_then(|()| Ok(of_sglang(r, on)?.into())),
        "trtllm" => own_flags(r, 2).and_then(|()| Ok(of_trtllm(r, on)?.into())),
        other => Err(Error::value(
            "engine",
            format!("\"{other}\""),
            "vllm, sglang, trtllm or ideal: the schedules of other engines are not simulated yet",
        )),
    }
}

/// How vLLM schedules: its own ways, and what the flags change.
fn of_vllm(r: &Request, on: &Deployment) -> Result<vllm::Settings, Error> {
    let f = &r.flags;
    let schedule = &on.engine.schedule;
    let block = small("flags.block_size", f.block_size, schedule.block, 1, 4096)?;
    let chunk = small("flags.max_num_batched_tokens", f.max_num_batched_tokens, schedule.chunk, 1, 1 << 24)?;
    let threshold = f.long_prefill_token_threshold;
    let ranked = r.classes.iter().any(|c| c.priority != 0);
    Ok(vllm::Settings {
        policy: if ranked { vllm::Policy::Priority } else { vllm::Policy::Fcfs },
        max_num_seqs: small("flags.max_num_seqs", f.max_num_seqs, schedule.sequences, 1, 1 << 20)?,
        max_num_batched_tokens: chunk,
        max_model_len: small("flags.max_model_len", f.max_model_len, longest_for(r, on), 16, 1 << 24)?,
        enable_chunked_prefill: !f.no_enable_chunked_prefill,
        enable_prefix_caching: !f.no_enable_prefix_caching,
        long_prefill_token_threshold: within_u64("flags.long_prefill_token_threshold", threshold, 0, 1 << 24)? as u32,
        async_scheduling: on.overhead().host_overlaps && !f.no_async_scheduling && on.stages() <= 1.0,
        pipeline_parallel_size: on.stages() as u32,
        block_size: block,
        num_blocks: match f.num_gpu_blocks_override {
            Some(n) => within_u64("flags.num_gpu_blocks_override", n, 2, 1 << 31)? as u32,
            None => blocks(r, on, block, chunk),
        },
        speculative: within_u64("flags.num_speculative_tokens", f.num_speculative_tokens, 0, 64)? as u32,
        ..vllm::Settings::default()
    })
}

fn of_sglang(r: &Request, on: &Deployment) -> Result<sglang::Settings, Error> {
    let f = &r.sglang;
    let schedule = &on.engine.schedule;
    let memory = on.system.chip.memory.size().get() / 1e9;
    let by_chip = schedule.chunk_by_gb.iter().find(|(gb, _)| memory < *gb).map_or(schedule.chunk, |row| row.1);
    let whole =
        small("sglang.max_prefill_tokens", f.max_prefill_tokens, schedule.prompt.unwrap_or(by_chip), 1, 1 << 24)?;
    let chunked = match f.chunked_prefill_size {
        Some(n) if n < 0 => None,
        Some(n) => Some(within_u64("sglang.chunked_prefill_size", n as u64, 1, 1 << 24)? as u32),
        None => Some(by_chip as u32),
    };
    Ok(sglang::Settings {
        chunked_prefill_size: chunked,
        max_prefill_tokens: whole,
        max_running_requests: small(
            "sglang.max_running_requests",
            f.max_running_requests,
            schedule.sequences,
            1,
            1 << 20,
        )?,
        max_total_tokens: match f.max_total_tokens {
            Some(n) => within_u64("sglang.max_total_tokens", n, 16, 1 << 31)? as u32,
            None => blocks(r, on, 1, chunked.unwrap_or(whole)),
        },
        context_length: small("sglang.context_length", f.context_length, longest_for(r, on), 16, 1 << 24)?,
        enable_mixed_chunk: f.enable_mixed_chunk,
        disable_radix_cache: f.disable_radix_cache,
        schedule_policy: f.schedule_policy,
        schedule_conservativeness: within("sglang.schedule_conservativeness", f.schedule_conservativeness, 0.0, 100.0)?,
        disable_overlap_schedule: f.disable_overlap_schedule || !on.overhead().host_overlaps,
        prefill_decode_interval: within_u64("sglang.prefill_decode_interval", f.prefill_decode_interval, 0, 1 << 20)?
            as u32,
        scheduler_recv_interval: within_u64("sglang.scheduler_recv_interval", f.scheduler_recv_interval, 1, 1 << 20)?
            as u32,
        reckoning: on.engine.reckoning.ok_or_else(|| {
            Error::value("engine", format!("\"{}\"", r.engine), "an engine file with a table [reckoning]")
        })?,
        hicache: None,
    })
}

fn of_trtllm(r: &Request, on: &Deployment) -> Result<trtllm::Settings, Error> {
    let f = &r.trtllm;
    let schedule = &on.engine.schedule;
    let block = small("trtllm.tokens_per_block", f.tokens_per_block, schedule.block, 2, 4096)?;
    let step = small("trtllm.max_num_tokens", f.max_num_tokens, schedule.chunk, 1, 1 << 24)?;
    Ok(trtllm::Settings {
        max_batch_size: small("trtllm.max_batch_size", f.max_batch_size, schedule.sequences, 1, 1 << 20)?,
        max_num_tokens: step,
        max_seq_len: small("trtllm.max_seq_len", f.max_seq_len, longest_for(r, on), 16, 1 << 24)?,
        capacity: f.capacity_scheduler_policy,
        chunking: f.enable_chunked_context.then_some(f.context_chunking_policy),
        enable_block_reuse: !f.no_enable_block_reuse,
        tokens_per_block: block,
        blocks: match f.max_tokens {
            Some(n) => within_u64("trtllm.max_tokens", n, 16, 1 << 31)? as u32 / block,
            None => blocks(r, on, block, step),
        },
        disable_overlap_scheduler: f.disable_overlap_scheduler || !on.overhead().host_overlaps,
        host: None,
    })
}

/// Tokens of the mean request, in whole blocks.
pub(super) fn mean_tokens(request: &Request, on: &Deployment, block: u32) -> f64 {
    let t = &request.traffic;
    let mean = (t.isl + t.osl + t.prefix_tokens).max(f64::from(block)).min(longest_for(request, on));
    (mean / f64::from(block)).ceil() * f64::from(block)
}

/// One mean request beside a step of so many tokens.
fn one(request: &Request, on: &Deployment, block: u32, chunk: u32) -> Load {
    let context = Tokens::new(mean_tokens(request, on, block));
    Load { batch: 1.0, context, tokens: f64::from(chunk), utilisation: on.engine.schedule.memory }
}

/// Blocks that memory holds beside weights and activations: those of sequences as long as the mean request.
fn blocks(request: &Request, on: &Deployment, block: u32, chunk: u32) -> u32 {
    let load = one(request, on, block, chunk);
    let sequences = placement::held_batch(on, &load) / on.groups();
    let all = (sequences * load.context.get() / f64::from(block)) as u64;
    all.min(1 << 31) as u32
}

/// What the engine does, in words.
pub(super) fn notes(name: &str, settings: &Settings) -> Vec<Remark> {
    let (says_what, tokens, sequences, blocks) = match settings {
        Settings::Vllm(s) => ("simulated_schedule", s.max_num_batched_tokens, s.max_num_seqs, s.num_blocks - 1),
        Settings::Sglang(s) => (
            if s.enable_mixed_chunk { "simulated_schedule_mixed" } else { "simulated_schedule_apart" },
            s.chunked_prefill_size.unwrap_or(s.max_prefill_tokens),
            s.max_running_requests,
            s.max_total_tokens,
        ),
        Settings::Trtllm(s) => (
            match s.capacity {
                trtllm::Capacity::MaxUtilization => "simulated_schedule",
                trtllm::Capacity::GuaranteedNoEvict | trtllm::Capacity::StaticBatch => "simulated_schedule_reserved",
            },
            s.max_num_tokens,
            s.max_batch_size,
            s.blocks,
        ),
    };
    let schedule = says(says_what)
        .with("engine", name)
        .with("tokens", f64::from(tokens))
        .with("sequences", f64::from(sequences))
        .with("blocks", f64::from(blocks))
        .with("size", f64::from(settings.block()));
    let caching = match settings {
        Settings::Vllm(s) if s.enable_prefix_caching => "simulated_caching",
        Settings::Sglang(s) if !s.disable_radix_cache => "simulated_radix",
        Settings::Trtllm(s) if s.enable_block_reuse => "simulated_caching",
        _ => "simulated_no_caching",
    };
    let chosen = match settings.stages() {
        1 => says(if settings.overlaps() { "simulated_overlap" } else { "simulated_plain" }),
        stages => says("simulated_stages").with("stages", f64::from(stages)),
    };
    vec![schedule, chosen, says(caching)]
}

/// Whether the schedule was compared with the engine's own.
pub(super) fn checked(settings: &Settings) -> bool {
    matches!(settings, Settings::Vllm(_))
}
