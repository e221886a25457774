//! What chips draw while they serve: the constants of `rackmath_theory::power`, as `rackmath-calibrate fit power` prints them.

use crate::file::noun::cited;
use crate::{Chip, Residual, SpecError};
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerDraw {
    pub as_of: String,
    /// What was measured, and of what.
    pub source: String,
    /// Design powers that arithmetic at the dense peak would add, were there no limit.
    pub arithmetic: f64,
    /// Picojoules for each byte that memory moves.
    pub byte_pj: f64,
    /// Share of its design power that a chip draws whenever an engine runs on it, where its generation is not listed.
    pub standing: f64,
    pub fit: Residual,
    #[serde(default, rename = "generation")]
    pub generations: Vec<Standing>,
}

/// The same share of the chips of one generation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    pub name: String,
    pub standing: f64,
    pub fit: Residual,
}

impl PowerDraw {
    pub fn standing(&self, chip: &Chip) -> f64 {
        self.measured(chip).map_or(self.standing, |g| g.standing)
    }

    /// What was measured of the chip's generation; none where nothing was.
    pub fn measured(&self, chip: &Chip) -> Option<&Standing> {
        self.generations.iter().find(|g| g.name == chip.generation)
    }
}

pub(crate) fn read(id: &str, text: &str) -> Result<PowerDraw, SpecError> {
    let file = format!("support {id}");
    let draw: PowerDraw = cited(&file, id, text, &["id", "note"])?;
    for (field, x) in [("arithmetic", draw.arithmetic), ("byte_pj", draw.byte_pj)] {
        if !(x >= 0.0 && x.is_finite()) {
            return Err(SpecError::field(&file, field, x, "0 or above"));
        }
    }
    let named = draw.generations.iter().map(|g| g.standing);
    if let Some(x) = named.chain([draw.standing]).find(|x| !(0.0..=1.0).contains(x)) {
        return Err(SpecError::field(&file, "standing", x, "a share from 0 to 1"));
    }
    Ok(draw)
}
