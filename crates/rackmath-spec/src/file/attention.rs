//! Reads a file of attention kernels.

use super::{Place, parse_toml};
use crate::attention::{Alike, AttentionKernel, AttentionKernels, DEFAULT, DecodeConstants, Heads, PrefillConstants};
use crate::{Dtype, SpecError};
use rackmath_units::Fraction;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::str::FromStr;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKernels {
    name: String,
    as_of: String,
    sources: BTreeMap<String, String>,
    #[serde(default)]
    alike: Vec<RawAlike>,
    cache_share: BTreeMap<String, f64>,
    decode: Vec<RawKernel<RawDecode>>,
    prefill: Vec<RawKernel<RawPrefill>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAlike {
    generation: String,
    memory: String,
    uses: String,
    #[serde(rename = "why")]
    _why: String,
}

#[derive(Deserialize)]
struct RawKernel<C> {
    generation: String,
    backend: String,
    heads: Option<String>,
    math: String,
    kv: String,
    #[serde(flatten)]
    constants: C,
    source: String,
    fit: Option<RawResidual>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawResidual {
    rows: u64,
    median: f64,
    p90: f64,
}

#[derive(Deserialize)]
struct RawDecode {
    floor: String,
    block: String,
    block_rows: f64,
    #[serde(default = "unpadded")]
    tile_rows: f64,
    compute: f64,
    memory: f64,
    ramp: String,
    cache_rate: String,
    core_rate: String,
    splits: f64,
    corner: f64,
}

fn unpadded() -> f64 {
    1.0
}

#[derive(Deserialize)]
struct RawPrefill {
    floor: String,
    block: String,
    tile: f64,
    compute: f64,
    memory: f64,
    cache_rate: String,
    corner: f64,
}

/// Reads attention kernels from one of our TOML files.
pub fn attention(id: &str, text: &str) -> Result<AttentionKernels, SpecError> {
    let file = format!("kernel {id}");
    let raw: RawKernels = parse_toml(&file, text)?;
    let reader = Reader { place: Place { file: &file, sources: &raw.sources }, shares: &raw.cache_share };
    let kernels = AttentionKernels {
        id: id.to_owned(),
        name: raw.name,
        as_of: raw.as_of,
        alike: raw
            .alike
            .into_iter()
            .map(|a| Alike { generation: a.generation, memory: a.memory, uses: a.uses })
            .collect(),
        decode: raw.decode.into_iter().map(|k| reader.kernel(k, Reader::decode)).collect::<Result<_, _>>()?,
        prefill: raw.prefill.into_iter().map(|k| reader.kernel(k, Reader::prefill)).collect::<Result<_, _>>()?,
    };
    let default = kernels.decode.iter().any(|k| k.generation == DEFAULT)
        && kernels.prefill.iter().any(|k| k.generation == DEFAULT);
    if default { Ok(kernels) } else { Err(reader.wrong("generation", "none", "one \"default\" for each phase")) }
}

struct Reader<'a> {
    place: Place<'a>,
    shares: &'a BTreeMap<String, f64>,
}

impl Reader<'_> {
    fn kernel<R, C>(
        &self,
        raw: RawKernel<R>,
        read: impl Fn(&Self, &R, f64) -> Result<C, SpecError>,
    ) -> Result<AttentionKernel<C>, SpecError> {
        let share = self.shares.get(&raw.generation).or(self.shares.get(DEFAULT)).copied();
        let share = self.positive("cache_share", share.unwrap_or(f64::NAN))?;
        let heads = match raw.heads.as_deref() {
            None => Heads::Any,
            Some("single") => Heads::Single,
            Some("grouped") => Heads::Grouped,
            Some(other) => return Err(self.wrong("heads", other, "single or grouped, or nothing for both")),
        };
        Ok(AttentionKernel {
            heads,
            math8: raw.math.parse::<Dtype>()?.bits() < 12.0,
            kv8: raw.kv.parse::<Dtype>()?.bits() < 12.0,
            constants: read(self, &raw.constants, share)?,
            source: self.place.source("source", raw.source)?,
            fit: raw.fit.map(|f| (f.rows, f.median, f.p90)),
            generation: raw.generation,
            backend: raw.backend,
        })
    }

    fn decode(&self, raw: &RawDecode, cache_share: f64) -> Result<DecodeConstants, SpecError> {
        Ok(DecodeConstants {
            floor: self.quantity("floor", &raw.floor)?,
            block: self.quantity("block", &raw.block)?,
            block_rows: self.positive("block_rows", raw.block_rows)?,
            tile_rows: self.least_one("tile_rows", raw.tile_rows)?,
            compute: self.share("compute", raw.compute)?,
            memory: self.share("memory", raw.memory)?,
            ramp: self.quantity("ramp", &raw.ramp)?,
            cache_rate: self.quantity("cache_rate", &raw.cache_rate)?,
            core_rate: self.quantity("core_rate", &raw.core_rate)?,
            splits: self.least_one("splits", raw.splits)?,
            cache_share,
            corner: self.least_one("corner", raw.corner)?,
        })
    }

    fn prefill(&self, raw: &RawPrefill, cache_share: f64) -> Result<PrefillConstants, SpecError> {
        Ok(PrefillConstants {
            floor: self.quantity("floor", &raw.floor)?,
            block: self.quantity("block", &raw.block)?,
            tile: self.least_one("tile", raw.tile)?,
            compute: self.share("compute", raw.compute)?,
            memory: self.share("memory", raw.memory)?,
            cache_rate: self.quantity("cache_rate", &raw.cache_rate)?,
            cache_share,
            corner: self.least_one("corner", raw.corner)?,
        })
    }

    fn quantity<T: FromStr<Err: std::fmt::Display>>(&self, field: &str, text: &str) -> Result<T, SpecError> {
        text.parse().map_err(|e: T::Err| self.wrong(field, text, &e.to_string()))
    }

    fn share(&self, field: &str, value: f64) -> Result<Fraction, SpecError> {
        Fraction::checked(value)
            .filter(|f| f.get() > 0.0)
            .ok_or_else(|| self.wrong(field, &value.to_string(), "a share above 0 and at most 1"))
    }

    fn positive(&self, field: &str, value: f64) -> Result<f64, SpecError> {
        let good = value.is_finite() && value > 0.0;
        if good { Ok(value) } else { Err(self.wrong(field, &value.to_string(), "a positive number")) }
    }

    fn least_one(&self, field: &str, value: f64) -> Result<f64, SpecError> {
        let good = value.is_finite() && value >= 1.0;
        if good { Ok(value) } else { Err(self.wrong(field, &value.to_string(), "a number of at least 1")) }
    }

    fn wrong(&self, field: &str, given: &str, expected: &str) -> SpecError {
        SpecError::field(self.place.file, field, given, expected)
    }
}
