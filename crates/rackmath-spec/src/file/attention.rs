//! Reads a file of attention kernels.

use super::noun::cited;
use crate::attention::{Alike, AttentionKernel, AttentionKernels, DEFAULT, DecodeConstants, Heads, PrefillConstants};
use crate::{Dtype, Residual, SpecError};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKernels {
    id: String,
    name: String,
    as_of: String,
    #[serde(default)]
    alike: Vec<Alike>,
    cache_share: BTreeMap<String, f64>,
    decode: Vec<RawKernel<DecodeConstants>>,
    prefill: Vec<RawKernel<PrefillConstants>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKernel<C> {
    generation: String,
    backend: String,
    #[serde(default)]
    heads: Heads,
    #[serde(deserialize_with = "super::noun::text")]
    math: Dtype,
    #[serde(deserialize_with = "super::noun::text")]
    kv: Dtype,
    #[serde(flatten)]
    constants: C,
    source: String,
    fit: Option<Residual>,
}

pub fn attention(id: &str, text: &str) -> Result<AttentionKernels, SpecError> {
    let file = format!("kernel {id}");
    let raw: RawKernels = cited(&file, id, text, &["alike.why"])?;
    let share = |generation: &str| {
        let share = raw.cache_share.get(generation).or(raw.cache_share.get(DEFAULT)).copied().unwrap_or(f64::NAN);
        let good = share.is_finite() && share > 0.0;
        if good { Ok(share) } else { Err(SpecError::field(&file, "cache_share", share, "a positive number")) }
    };
    let decode =
        raw.decode.into_iter().map(|k| kernel(k, share, |c, cache_share| DecodeConstants { cache_share, ..c }));
    let prefill =
        raw.prefill.into_iter().map(|k| kernel(k, share, |c, cache_share| PrefillConstants { cache_share, ..c }));
    let kernels = AttentionKernels {
        id: raw.id,
        name: raw.name,
        as_of: raw.as_of,
        alike: raw.alike,
        decode: decode.collect::<Result<_, _>>()?,
        prefill: prefill.collect::<Result<_, _>>()?,
    };
    let default = kernels.decode.iter().any(|k| k.generation == DEFAULT)
        && kernels.prefill.iter().any(|k| k.generation == DEFAULT);
    if default {
        Ok(kernels)
    } else {
        Err(SpecError::field(&file, "generation", "none", "one \"default\" for each phase"))
    }
}

fn kernel<C>(
    raw: RawKernel<C>,
    share: impl Fn(&str) -> Result<f64, SpecError>,
    with: impl Fn(C, f64) -> C,
) -> Result<AttentionKernel<C>, SpecError> {
    Ok(AttentionKernel {
        heads: raw.heads,
        math8: raw.math.bits() < 12.0,
        kv8: raw.kv.bits() < 12.0,
        constants: with(raw.constants, share(&raw.generation)?),
        source: raw.source,
        fit: raw.fit.map(|f| (f.rows, f.median, f.p90)),
        generation: raw.generation,
        backend: raw.backend,
    })
}
