//! Reads a system file.

use super::noun::cited;
use crate::system::SCALE_OUT;
use crate::{Chip, Cited, Level, SpecError, System, Topology};
use rackmath_units::Watts;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSystem {
    id: String,
    name: String,
    chip: String,
    n_chips: u64,
    #[serde(default)]
    level: Vec<Level>,
    power: Option<Cited<Watts>>,
    #[serde(default)]
    facts: BTreeMap<String, Cited<String>>,
}

/// Reads a system; `chip_of` finds the chip it names.
pub fn system(
    id: &str,
    text: &str,
    chip_of: impl Fn(&str) -> Result<Arc<Chip>, SpecError>,
) -> Result<System, SpecError> {
    let file = format!("system {id}");
    let RawSystem { id, name, chip, n_chips, level: mut levels, power, facts } = cited(&file, id, text, &["as_of"])?;
    if n_chips == 0 || levels.iter().any(|l| l.chips == 0) {
        return Err(SpecError::field(&file, "n_chips", "0", "at least one chip, and at least one per level"));
    }
    let chip = chip_of(&chip)?;
    for (n, level) in levels.iter_mut().enumerate() {
        validate(&file, level)?;
        if level.link.is_empty() {
            // The innermost level has the chip's own links, the others the data-centre network.
            level.link = if n == 0 { chip.link.kind.clone() } else { SCALE_OUT.into() };
        }
    }
    Ok(System { id, name, chip, n_chips, levels, power, facts: facts.into_iter().collect() })
}

/// A torus must multiply out to its chips, and shares must be sensible.
fn validate(file: &str, level: &Level) -> Result<(), SpecError> {
    let bad = |field: &str, given: String, expected: &str| {
        SpecError::field(file, format!("level.{}.{field}", level.name), given, expected)
    };
    if !level.dims.is_empty() && level.dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d)) != Some(level.chips) {
        return Err(bad("dims", format!("{:?}", level.dims), &format!("sides that multiply to {} chips", level.chips)));
    }
    if level.topology == Topology::Torus && level.dims.is_empty() {
        return Err(bad("dims", "missing".into(), "the sides of the torus, such as [16, 16]"));
    }
    if let share @ (..1.0 | 100.0..) = level.oversubscription {
        return Err(bad("oversubscription", share.to_string(), "1 (none) to 100"));
    }
    if let Some(nics) = level.nics_per_chip.filter(|n| !(*n > 0.0 && *n <= 100.0)) {
        return Err(bad("nics_per_chip", nics.to_string(), "more than 0, at most 100"));
    }
    Ok(())
}
