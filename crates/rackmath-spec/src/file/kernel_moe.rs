//! Reads the file of expert kernels.

use super::parse_toml;
use crate::{CacheUse, MoeFit, MoeKernel, MoeKernels, MoeResidual, MoeRows, SpecError, StandIn};
use rackmath_units::{Fraction, Seconds};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::str::FromStr;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "form")]
    _form: String,
    as_of: String,
    source: String,
    corner: f64,
    tail: f64,
    columns: f64,
    cache: RawCache,
    #[serde(default)]
    stand_in: Vec<RawStandIn>,
    family: BTreeMap<String, RawFamily>,
    default: RawDefault,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCache {
    share: f64,
    ramp: f64,
    per_core: String,
    #[serde(rename = "note")]
    _note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStandIn {
    generation: String,
    memory: String,
    like: String,
    #[serde(rename = "why")]
    _why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFamily {
    #[serde(default)]
    padded: f64,
    #[serde(rename = "note")]
    _note: Option<String>,
    fit: Vec<RawFit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFit {
    generation: String,
    format: String,
    rows: String,
    launch: String,
    per_expert: String,
    compute: f64,
    memory: f64,
    activation: f64,
    tile: f64,
    fit: RawResidual,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawResidual {
    rows: u64,
    median: f64,
    p90: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDefault {
    rows: String,
    launch: String,
    per_expert: String,
    compute: f64,
    memory: f64,
    activation: f64,
    tile: f64,
    spread: f64,
    #[serde(rename = "rule")]
    _rule: String,
}

/// Reads the constants of all expert kernels.
pub fn moe_kernels(id: &str, text: &str) -> Result<MoeKernels, SpecError> {
    let file = format!("kernel {id}");
    let raw: RawFile = parse_toml(&file, text)?;
    let reader = Reader { file: &file };
    let common = MoeKernel {
        launch: Seconds::ZERO,
        per_expert: Seconds::ZERO,
        compute: Fraction::ONE,
        memory: Fraction::ONE,
        activation: Fraction::ONE,
        tile: 1.0,
        columns: reader.at_least("columns", raw.columns, 1.0)?,
        tail: reader.at_least("tail", raw.tail, 0.0)?,
        corner: reader.at_least("corner", raw.corner, 1.0)?,
        rows: MoeRows::Routed,
        padded: 0.0,
        cache: CacheUse {
            share: reader.at_least("cache.share", raw.cache.share, 0.0)?,
            ramp: reader.at_least("cache.ramp", raw.cache.ramp, 0.01)?,
            per_core: reader.parse("cache.per_core", &raw.cache.per_core)?,
        },
    };
    let mut families = BTreeMap::new();
    for (name, family) in raw.family {
        let at = |field: &str| format!("family.{name}.{field}");
        let common = MoeKernel { padded: reader.at_least(&at("padded"), family.padded, 0.0)?, ..common };
        let fits = family.fit.into_iter().map(|fit| reader.fit(&name, fit, common)).collect::<Result<Vec<_>, _>>()?;
        families.insert(name, fits);
    }
    let d = raw.default;
    let default = MoeKernel {
        launch: reader.parse("default.launch", &d.launch)?,
        per_expert: reader.parse("default.per_expert", &d.per_expert)?,
        compute: reader.share("default.compute", d.compute)?,
        memory: reader.share("default.memory", d.memory)?,
        activation: reader.share("default.activation", d.activation)?,
        tile: reader.at_least("default.tile", d.tile, 1.0)?,
        rows: reader.rows("default.rows", &d.rows)?,
        ..common
    };
    let spread = reader.at_least("default.spread", d.spread, 0.0)?;
    let stand_in = |s: RawStandIn| StandIn { generation: s.generation, memory: s.memory, like: s.like };
    let stand_ins = raw.stand_in.into_iter().map(stand_in).collect();
    Ok(MoeKernels { as_of: raw.as_of, source: raw.source, families, stand_ins, default: (default, spread) })
}

struct Reader<'a> {
    file: &'a str,
}

impl Reader<'_> {
    fn fit(&self, family: &str, raw: RawFit, common: MoeKernel) -> Result<MoeFit, SpecError> {
        let at = |field: &str| format!("family.{family}.{}.{}.{field}", raw.generation, raw.format);
        Ok(MoeFit {
            format: raw.format.parse()?,
            kernel: MoeKernel {
                launch: self.parse(&at("launch"), &raw.launch)?,
                per_expert: self.parse(&at("per_expert"), &raw.per_expert)?,
                compute: self.share(&at("compute"), raw.compute)?,
                memory: self.share(&at("memory"), raw.memory)?,
                activation: self.share(&at("activation"), raw.activation)?,
                tile: self.at_least(&at("tile"), raw.tile, 1.0)?,
                rows: self.rows(&at("rows"), &raw.rows)?,
                ..common
            },
            residual: MoeResidual { rows: raw.fit.rows, median: raw.fit.median, p90: raw.fit.p90 },
            generation: raw.generation,
        })
    }

    fn wrong(&self, field: &str, given: &str, expected: &str) -> SpecError {
        SpecError::field(self.file, field, given, expected)
    }

    fn parse<T: FromStr<Err: std::fmt::Display>>(&self, field: &str, text: &str) -> Result<T, SpecError> {
        text.parse().map_err(|e: T::Err| self.wrong(field, text, &e.to_string()))
    }

    /// A share above nothing: it divides.
    fn share(&self, field: &str, value: f64) -> Result<Fraction, SpecError> {
        let share = Fraction::checked(value).filter(|s| s.get() > 0.0);
        share.ok_or_else(|| self.wrong(field, &value.to_string(), "a share above 0 and at most 1"))
    }

    fn at_least(&self, field: &str, value: f64, least: f64) -> Result<f64, SpecError> {
        let good = value.is_finite() && value >= least;
        if good { Ok(value) } else { Err(self.wrong(field, &value.to_string(), &format!("at least {least}"))) }
    }

    fn rows(&self, field: &str, word: &str) -> Result<MoeRows, SpecError> {
        match word {
            "routed" => Ok(MoeRows::Routed),
            "all" => Ok(MoeRows::All),
            other => Err(self.wrong(field, other, "routed or all")),
        }
    }
}
