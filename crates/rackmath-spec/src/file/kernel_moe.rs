//! Reads the file of expert kernels.

use super::noun::{least_one, noun, share, text, within};
use crate::{CacheUse, MoeFit, MoeFormat, MoeKernel, MoeKernels, MoeResidual, MoeRows, SpecError, StandIn};
use rackmath_units::{Fraction, Seconds};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    as_of: String,
    source: String,
    #[serde(deserialize_with = "least_one")]
    corner: f64,
    tail: f64,
    #[serde(deserialize_with = "least_one")]
    columns: f64,
    cache: CacheUse,
    #[serde(default)]
    stand_in: Vec<StandIn>,
    family: BTreeMap<String, RawFamily>,
    default: RawDefault,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFamily {
    #[serde(default)]
    padded: f64,
    fit: Vec<RawFit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFit {
    generation: String,
    #[serde(deserialize_with = "text")]
    format: MoeFormat,
    #[serde(flatten)]
    own: Own,
    fit: MoeResidual,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDefault {
    #[serde(flatten)]
    own: Own,
    spread: f64,
}

/// What a kernel has of its own.
#[derive(Deserialize)]
struct Own {
    rows: MoeRows,
    launch: Seconds,
    per_expert: Seconds,
    #[serde(deserialize_with = "share")]
    compute: Fraction,
    #[serde(deserialize_with = "share")]
    memory: Fraction,
    #[serde(deserialize_with = "share")]
    activation: Fraction,
    #[serde(deserialize_with = "least_one")]
    tile: f64,
}

/// Reads the constants of all expert kernels.
pub fn moe_kernels(id: &str, text: &str) -> Result<MoeKernels, SpecError> {
    let file = format!("kernel {id}");
    let explains = ["id", "name", "form", "cache.note", "stand_in.why", "family.*.note", "default.rule"];
    let raw: RawFile = noun(&file, id, text, &explains)?;
    let mut numbers = vec![
        ("tail", raw.tail, 0.0, 1e9),
        ("cache.share", raw.cache.share, 0.0, 1e9),
        ("cache.ramp", raw.cache.ramp, 0.01, 1e9),
        ("default.spread", raw.default.spread, 0.0, 1e9),
    ];
    numbers.extend(raw.family.values().map(|family| ("family.padded", family.padded, 0.0, 1e9)));
    within(&file, &numbers)?;
    let kernel = |own: Own, padded: f64| MoeKernel {
        launch: own.launch,
        per_expert: own.per_expert,
        compute: own.compute,
        memory: own.memory,
        activation: own.activation,
        tile: own.tile,
        columns: raw.columns,
        tail: raw.tail,
        corner: raw.corner,
        rows: own.rows,
        padded,
        cache: raw.cache,
    };
    let fit = |raw: RawFit, padded: f64| MoeFit {
        generation: raw.generation,
        format: raw.format,
        kernel: kernel(raw.own, padded),
        residual: raw.fit,
    };
    let family = |f: RawFamily| f.fit.into_iter().map(|raw| fit(raw, f.padded)).collect();
    Ok(MoeKernels {
        as_of: raw.as_of,
        source: raw.source,
        families: raw.family.into_iter().map(|(name, f)| (name, family(f))).collect(),
        stand_ins: raw.stand_in,
        default: (kernel(raw.default.own, 0.0), raw.default.spread),
    })
}
