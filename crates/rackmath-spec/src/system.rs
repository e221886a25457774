//! Chips put together: a node, a rack, a pod, with its levels of network.

use crate::file::noun::{cited, one};
use crate::{Chip, Cited, SpecError};
use rackmath_units::{ByteRate, Bytes, FlopRate, Watts};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A machine: so many equal chips and the networks between them.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// The catalogue id, or what the user wrote, such as "8xh200".
    pub id: String,
    pub name: String,
    pub chip: Arc<Chip>,
    pub n_chips: u64,
    /// Chips that are rented together, where a host is named and not so many chips; none of a rack, which has hosts of its own.
    pub rented: Option<u64>,
    /// Networks, innermost first; a level may join more chips than this machine has.
    pub levels: Vec<Level>,
    /// Whether a link that was given joins the chips instead of their own.
    pub rewired: bool,
    pub power: Option<Cited<Watts>>,
    /// Other facts worth showing: weight, cables, hops.
    pub facts: Vec<(String, Cited<String>)>,
}

/// What a level beyond the chips' own links is called; the catalogue's networks say what that is.
pub(crate) const SCALE_OUT: &str = "scale-out";

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    pub name: String,
    pub chips: u64,
    /// The kind of its links, by a name of the catalogue's networks.
    #[serde(default)]
    pub link: String,
    /// One-way bandwidth of a chip into this level.
    pub bandwidth: Cited<ByteRate>,
    pub topology: Topology,
    /// Sides of a torus; empty otherwise.
    #[serde(default)]
    pub dims: Vec<u64>,
    /// Network cards per chip, where the level is reached through cards.
    pub nics_per_chip: Option<f64>,
    /// How much less bandwidth the level has across its middle than its chips can offer; 1 when none is missing.
    #[serde(default = "one")]
    pub oversubscription: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Topology {
    /// Any chip to any other at full rate.
    Switched,
    /// Every pair has its own link with an equal share of the rate.
    Mesh,
    /// A ring in each of several dimensions.
    Torus,
    Pcie,
}

/// How links of a kind join the chips of a level.
pub(crate) fn topology(kind: &str) -> Topology {
    match kind {
        // A V100 has links to some of its neighbours, not to a switch.
        "infinity-fabric" | "nvlink2" => Topology::Mesh,
        "ici" => Topology::Torus,
        kind if kind.starts_with("pcie") => Topology::Pcie,
        _ => Topology::Switched,
    }
}

impl System {
    pub fn capacity(&self) -> Bytes {
        self.chip.memory.size() * self.n_chips as f64
    }

    pub fn bandwidth(&self) -> ByteRate {
        self.chip.memory.bandwidth.value * self.n_chips as f64
    }

    /// Whether a scale-up domain is a rack and not a host: groups that share experts are at home there.
    pub fn racked(&self) -> bool {
        self.levels.first().is_some_and(|level| level.chips > 16)
    }

    pub fn peak(&self, per_chip: FlopRate) -> FlopRate {
        per_chip * self.n_chips as f64
    }

    pub fn dies(&self) -> u64 {
        self.chip.dies * self.n_chips
    }
}

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
pub(crate) fn read(
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
    let facts = facts.into_iter().collect();
    let mut system = System { id, name, chip, n_chips, rented: None, levels, rewired: false, power, facts };
    system.rented = (!system.racked()).then_some(n_chips);
    Ok(system)
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
