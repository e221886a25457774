//! Reads an engine file.

use super::parse_toml;
use crate::engine::{ActivationScale, Engine, ExpertRule, Kernels, Overhead, Plain, Schedule, Spread, Version};
use crate::{Dtype, SpecError};
use rackmath_units::{Fraction, Seconds};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEngine {
    name: String,
    family: String,
    #[serde(default, rename = "aliases")]
    _aliases: Vec<String>,
    from: Option<String>,
    until: Option<String>,
    as_of: String,
    #[serde(default)]
    ideal: bool,
    #[serde(default)]
    notes: Vec<String>,
    source: String,
    kernels: RawKernels,
    schedule: RawSchedule,
    plain: Option<RawPlain>,
    overhead: RawOverhead,
    spread: RawSpread,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKernels {
    gemm: String,
    attention: String,
    latent: String,
    all_reduce: String,
    exchange: String,
    scaling: String,
    shared_groups: Option<Vec<u64>>,
    attention_full: Option<RawFull>,
    #[serde(default)]
    head_every_token: bool,
    #[serde(default)]
    experts: Vec<RawRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFull {
    backend: String,
    per_core: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    generation: Option<String>,
    format: Option<String>,
    attention_dp: Option<bool>,
    family: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSchedule {
    chunk_tokens: f64,
    mixed: bool,
    max_sequences: f64,
    kv: Option<String>,
    memory: f64,
    reserve_whole: bool,
    graph_sequences: f64,
    two_batches_from: Option<f64>,
    #[serde(rename = "source")]
    _source: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlain {
    compute: f64,
    memory: f64,
    many_dies: f64,
    expand_flop: f64,
    expand_nested_flop: f64,
    floor_us: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOverhead {
    small_us: f64,
    mixer_kernels: f64,
    ffn_kernels: f64,
    hidden_passes: f64,
    inner_passes: f64,
    small_memory: f64,
    skew_us: f64,
    stretch: f64,
    stretch_long: f64,
    expert_floor: f64,
    host_us: f64,
    host_sequence_us: f64,
    host_overlaps: bool,
    launch_us: f64,
    request_ms: f64,
    request_concurrent_ms: f64,
    #[serde(rename = "fit")]
    _fit: Option<RawFit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFit {
    #[serde(rename = "rows")]
    _rows: u64,
    #[serde(rename = "median")]
    _median: f64,
    #[serde(rename = "p90")]
    _p90: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSpread {
    tpot: f64,
    ttft: f64,
    throughput: f64,
    #[serde(rename = "source")]
    _source: Option<String>,
}

pub fn engine(id: &str, text: &str) -> Result<Engine, SpecError> {
    let file = format!("engine {id}");
    let raw: RawEngine = parse_toml(&file, text)?;
    let wrong = |field: &str, given: String, expected: &str| SpecError::field(&file, field, given, expected);
    let within = |field: &str, value: f64, low: f64, high: f64| {
        if (low..=high).contains(&value) {
            Ok(value)
        } else {
            Err(wrong(field, value.to_string(), &format!("{low} to {high}")))
        }
    };
    let us = |field: &str, value: f64| within(field, value, 0.0, 1e6).map(|v| Seconds::s(v * 1e-6));
    let version = |text: Option<String>| text.map(|v| v.parse::<Version>()).transpose();
    let rules = raw.kernels.experts.into_iter().map(|rule| {
        let format = rule.format.map(|f| f.parse()).transpose()?;
        Ok(ExpertRule { generation: rule.generation, format, attention_dp: rule.attention_dp, family: rule.family })
    });
    let s = raw.schedule;
    let o = raw.overhead;
    Ok(Engine {
        id: id.to_owned(),
        name: raw.name,
        family: raw.family,
        versions: (version(raw.from)?, version(raw.until)?),
        as_of: raw.as_of,
        ideal: raw.ideal,
        kernels: Kernels {
            gemm: raw.kernels.gemm,
            attention: raw.kernels.attention,
            latent: raw.kernels.latent,
            all_reduce: raw.kernels.all_reduce,
            exchange: raw.kernels.exchange,
            shared_groups: raw.kernels.shared_groups,
            attention_full: raw.kernels.attention_full.map(|f| (f.backend, f.per_core)),
            head_every_token: raw.kernels.head_every_token,
            experts: rules.collect::<Result<_, SpecError>>()?,
            scaling: match raw.kernels.scaling.as_str() {
                "dynamic" => ActivationScale::Dynamic,
                "static" => ActivationScale::Static,
                "fused" => ActivationScale::Fused,
                other => return Err(wrong("kernels.scaling", other.to_owned(), "dynamic, static or fused")),
            },
        },
        schedule: Schedule {
            chunk: within("schedule.chunk_tokens", s.chunk_tokens, 1.0, 1e9)?,
            mixed: s.mixed,
            sequences: within("schedule.max_sequences", s.max_sequences, 1.0, 1e9)?,
            kv: s.kv.map(|k| k.parse::<Dtype>()).transpose()?,
            memory: Fraction::checked(s.memory)
                .ok_or_else(|| wrong("schedule.memory", s.memory.to_string(), "a share from 0 to 1"))?,
            reserve_whole: s.reserve_whole,
            two_batches: s.two_batches_from,
            graph: within("schedule.graph_sequences", s.graph_sequences, 0.0, 1e9)?,
        },
        plain: match raw.plain {
            None => None,
            Some(p) => Some(Plain {
                compute: within("plain.compute", p.compute, 0.001, 1.0)?,
                memory: within("plain.memory", p.memory, 0.001, 1.0)?,
                many_dies: within("plain.many_dies", p.many_dies, 0.01, 1.0)?,
                expand: within("plain.expand_flop", p.expand_flop, 0.0, 1e4)?,
                expand_nested: within("plain.expand_nested_flop", p.expand_nested_flop, 0.0, 1e4)?,
                floor: us("plain.floor_us", p.floor_us)?,
            }),
        },
        overhead: Overhead {
            small: us("overhead.small_us", o.small_us)?,
            mixer_kernels: within("overhead.mixer_kernels", o.mixer_kernels, 0.0, 100.0)?,
            ffn_kernels: within("overhead.ffn_kernels", o.ffn_kernels, 0.0, 100.0)?,
            hidden_passes: within("overhead.hidden_passes", o.hidden_passes, 0.0, 1e3)?,
            inner_passes: within("overhead.inner_passes", o.inner_passes, 0.0, 1e3)?,
            small_memory: within("overhead.small_memory", o.small_memory, 0.01, 10.0)?,
            skew: us("overhead.skew_us", o.skew_us)?,
            stretch: within("overhead.stretch", o.stretch, 0.5, 10.0)?,
            stretch_long: within("overhead.stretch_long", o.stretch_long, 0.5, 10.0)?,
            expert_floor: within("overhead.expert_floor", o.expert_floor, 0.0, 10.0)?,
            host: us("overhead.host_us", o.host_us)?,
            host_sequence: us("overhead.host_sequence_us", o.host_sequence_us)?,
            host_overlaps: o.host_overlaps,
            launch: us("overhead.launch_us", o.launch_us)?,
            request: us("overhead.request_ms", o.request_ms * 1e3)?,
            request_concurrent: us("overhead.request_concurrent_ms", o.request_concurrent_ms * 1e3)?,
        },
        spread: Spread {
            tpot: within("spread.tpot", raw.spread.tpot, 0.0, 5.0)?,
            ttft: within("spread.ttft", raw.spread.ttft, 0.0, 5.0)?,
            throughput: within("spread.throughput", raw.spread.throughput, 0.0, 5.0)?,
        },
        notes: raw.notes,
        source: raw.source,
    })
}
