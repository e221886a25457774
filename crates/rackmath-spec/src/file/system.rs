//! Reads a system file.

use super::{Place, RawCited, parse_toml};
use crate::system::SCALE_OUT;
use crate::{Chip, Level, SpecError, System};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSystem {
    name: String,
    chip: String,
    n_chips: u64,
    #[serde(default)]
    #[serde(rename = "aliases")]
    _aliases: Vec<String>,
    #[serde(rename = "as_of")]
    _as_of: String,
    #[serde(default)]
    sources: BTreeMap<String, String>,
    #[serde(default)]
    level: Vec<RawLevel>,
    power: Option<RawCited<String>>,
    #[serde(default)]
    facts: BTreeMap<String, RawCited<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLevel {
    name: String,
    chips: u64,
    link: Option<String>,
    topology: String,
    bandwidth: RawCited<String>,
    #[serde(default)]
    dims: Vec<u64>,
    nics_per_chip: Option<f64>,
    oversubscription: Option<f64>,
}

/// Reads a system; `chip_of` finds the chip it names.
pub fn system(
    id: &str,
    text: &str,
    chip_of: impl Fn(&str) -> Result<Arc<Chip>, SpecError>,
) -> Result<System, SpecError> {
    let file = format!("system {id}");
    let raw: RawSystem = parse_toml(&file, text)?;
    let place = Place { file: &file, sources: &raw.sources };
    if raw.n_chips == 0 || raw.level.iter().any(|l| l.chips == 0) {
        return Err(SpecError::field(&file, "n_chips", "0", "at least one chip, and at least one per level"));
    }
    let chip = chip_of(&raw.chip)?;
    let levels = (raw.level.into_iter().enumerate())
        .map(|(n, level)| {
            validate(&file, &level)?;
            // The innermost level has the chip's own links, the others the data-centre network.
            let usual = || if n == 0 { chip.link.kind.clone() } else { SCALE_OUT.into() };
            Ok(Level {
                link: level.link.unwrap_or_else(usual),
                dims: level.dims,
                nics_per_chip: level.nics_per_chip,
                oversubscription: level.oversubscription.unwrap_or(1.0),
                bandwidth: place.quantity(&format!("level.{}", level.name), level.bandwidth)?,
                topology: level.topology.parse()?,
                name: level.name,
                chips: level.chips,
            })
        })
        .collect::<Result<_, SpecError>>()?;
    let facts = raw
        .facts
        .into_iter()
        .map(|(key, value)| Ok((key.clone(), place.cited(&key, value, |t| Ok(t.clone()))?)))
        .collect::<Result<_, SpecError>>()?;
    Ok(System {
        id: id.to_owned(),
        name: raw.name,
        chip,
        n_chips: raw.n_chips,
        levels,
        power: raw.power.map(|p| place.quantity("power", p)).transpose()?,
        facts,
    })
}

/// A torus must multiply out to its chips, and shares must be sensible.
fn validate(file: &str, level: &RawLevel) -> Result<(), SpecError> {
    let bad = |field: &str, given: String, expected: &str| {
        SpecError::field(file, format!("level.{}.{field}", level.name), given, expected)
    };
    if !level.dims.is_empty() && level.dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d)) != Some(level.chips) {
        return Err(bad("dims", format!("{:?}", level.dims), &format!("sides that multiply to {} chips", level.chips)));
    }
    if level.topology == "torus" && level.dims.is_empty() {
        return Err(bad("dims", "missing".into(), "the sides of the torus, such as [16, 16]"));
    }
    if let Some(share) = level.oversubscription.filter(|s| !(*s >= 1.0 && *s <= 100.0)) {
        return Err(bad("oversubscription", share.to_string(), "1 (none) to 100"));
    }
    if let Some(nics) = level.nics_per_chip.filter(|n| !(*n > 0.0 && *n <= 100.0)) {
        return Err(bad("nics_per_chip", nics.to_string(), "more than 0, at most 100"));
    }
    Ok(())
}
