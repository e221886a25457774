//! Chips put together: a node, a rack, a pod, with its levels of network.

use crate::{Chip, Cited};
use rackmath_units::{ByteRate, Bytes, FlopRate, Watts};
use serde::Deserialize;
use std::sync::Arc;

/// A machine: so many equal chips and the networks between them.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// The catalogue id, or what the user wrote, such as "8xh200".
    pub id: String,
    /// The name people use.
    pub name: String,
    pub chip: Arc<Chip>,
    /// Packages in the machine.
    pub n_chips: u64,
    /// Networks, innermost first; a level may join more chips than this machine has.
    pub levels: Vec<Level>,
    /// Power of the whole machine, where known.
    pub power: Option<Cited<Watts>>,
    /// Other facts worth showing: weight, cables, hops.
    pub facts: Vec<(String, Cited<String>)>,
}

/// What a level beyond the chips' own links is called; the catalogue's networks say what that is.
pub(crate) const SCALE_OUT: &str = "scale-out";

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// nvlink, ici, infiniband.
    pub name: String,
    pub chips: u64,
    /// The kind of its links, by a name of the catalogue's networks.
    #[serde(default)]
    pub link: String,
    /// One-way bandwidth of a chip into this level.
    pub bandwidth: Cited<ByteRate>,
    /// How they are joined.
    pub topology: Topology,
    /// Sides of a torus; empty otherwise.
    #[serde(default)]
    pub dims: Vec<u64>,
    /// Network cards per chip, where the level is reached through cards.
    pub nics_per_chip: Option<f64>,
    /// How much less bandwidth the level has across its middle than its chips can offer; 1 when none is missing.
    #[serde(default = "none_missing")]
    pub oversubscription: f64,
}

/// How chips of a level are joined.
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
    /// Through the host's PCIe tree.
    Pcie,
}

/// A level whose middle carries what its chips can offer.
fn none_missing() -> f64 {
    1.0
}

impl System {
    /// Memory of all chips together.
    pub fn capacity(&self) -> Bytes {
        self.chip.memory.size() * self.n_chips as f64
    }

    /// Memory bandwidth of all chips together.
    pub fn bandwidth(&self) -> ByteRate {
        self.chip.memory.bandwidth.value * self.n_chips as f64
    }

    pub fn peak(&self, per_chip: FlopRate) -> FlopRate {
        per_chip * self.n_chips as f64
    }

    /// Compute dies in the machine.
    pub fn dies(&self) -> u64 {
        self.chip.dies * self.n_chips
    }
}
