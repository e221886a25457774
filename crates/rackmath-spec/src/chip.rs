//! One accelerator package: dense peaks, memory, links, power and price, each with its source.

use crate::{Cited, Dtype, Math};
use rackmath_units::{ByteRate, Bytes, DollarRate, Dollars, FlopRate, Watts};
use std::collections::BTreeMap;
use std::fmt;

/// An accelerator.
#[derive(Clone, Debug, PartialEq)]
pub struct Chip {
    pub id: String,
    /// The name people use.
    pub name: String,
    /// Who makes it.
    pub vendor: String,
    /// Its architecture family, which shares efficiencies.
    pub generation: String,
    /// Compute dies in the package.
    pub dies: u64,
    /// Year and month its values were checked.
    pub as_of: String,
    pub memory: Memory,
    /// Dense peaks; a multiply-add is two.
    pub peak: BTreeMap<Math, Cited<FlopRate>>,
    pub link: Link,
    /// Cores, clock, cache, where known.
    pub physical: Physical,
    pub power: Power,
    /// Prices per chip and hour, by basis and date.
    pub prices: Vec<Price>,
    /// What one chip costs to buy, with its share of the machine where the source says so.
    pub purchase: Option<Cited<Dollars>>,
}

/// The memory that holds weights and KV.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// HBM3e, GDDR7, LPDDR5X.
    pub kind: String,
    /// Size as the data sheet gives it.
    pub capacity: Cited<Bytes>,
    /// Bytes the driver reports, where known: sheets that write GB often mean GiB.
    pub usable: Option<Cited<Bytes>>,
    pub bandwidth: Cited<ByteRate>,
}

/// Links; bandwidths are one-way and per chip.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// nvlink5, infinity-fabric, ici, pcie5, none.
    pub kind: String,
    /// To the other chips of its scale-up domain.
    pub scale_up: Option<Cited<ByteRate>>,
    /// Chips in the largest scale-up domain sold.
    pub domain: Cited<u64>,
    /// To the data-centre network.
    pub scale_out: Option<Cited<ByteRate>>,
    pub host: Option<Cited<ByteRate>>,
}

/// What later efficiency models scale with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Physical {
    /// Streaming multiprocessors, compute units or cores.
    pub cores: Option<Cited<u64>>,
    /// Boost clock in hertz.
    pub clock_hz: Option<Cited<f64>>,
    /// Last private-to-chip cache before memory.
    pub l2: Option<Cited<Bytes>>,
    /// A further cache level.
    pub l3: Option<Cited<Bytes>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Power {
    /// Thermal design power.
    pub tdp: Option<Cited<Watts>>,
    /// With its share of host, network and cooling.
    pub all_in: Option<Cited<Watts>>,
}

/// A price per chip and hour.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    pub basis: Basis,
    pub value: DollarRate,
    /// The lowest and highest seen.
    pub range: Option<(DollarRate, DollarRate)>,
    /// Where.
    pub source: String,
    /// When.
    pub as_of: String,
}

/// Whose price per hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// Total cost to an owner of very many.
    OwnerHyperscaler,
    /// Total cost to a smaller owner.
    OwnerNeocloud,
    /// A contract of one to three years.
    Rental,
    /// By the hour.
    OnDemand,
}

impl Basis {
    /// Every basis, cheapest first as a rule.
    pub const ALL: [Self; 4] = [Self::OwnerHyperscaler, Self::OwnerNeocloud, Self::Rental, Self::OnDemand];

    /// The word used in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::OwnerHyperscaler => "owner-hyperscaler",
            Self::OwnerNeocloud => "owner-neocloud",
            Self::Rental => "rental",
            Self::OnDemand => "on-demand",
        }
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for Basis {
    type Err = crate::SpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.trim().to_ascii_lowercase();
        let lower = if lower == "owner" { "owner-neocloud".into() } else { lower };
        Self::ALL
            .into_iter()
            .find(|b| b.name() == lower)
            .ok_or_else(|| crate::SpecError::unknown("price basis", text, Self::ALL.iter().map(|b| b.name())))
    }
}

impl Memory {
    /// Bytes a program can have: what the driver reports, else the sheet's figure.
    pub fn size(&self) -> Bytes {
        self.usable.as_ref().map_or(self.capacity.value, |usable| usable.value)
    }
}

impl Chip {
    /// The arithmetic this chip runs weights of a format in, and its dense peak.
    pub fn peak_for(&self, weights: Dtype) -> Option<(Math, &Cited<FlopRate>)> {
        weights.maths().iter().find_map(|math| self.peak.get(math).map(|peak| (*math, peak)))
    }

    pub fn price(&self, basis: Basis) -> Option<&Price> {
        self.prices.iter().filter(|p| p.basis == basis).max_by(|a, b| a.as_of.cmp(&b.as_of))
    }

    /// A price to show when none was asked for: a contract if one is known, else on demand, else an owner's cost.
    pub fn usual_price(&self) -> Option<&Price> {
        [Basis::Rental, Basis::OnDemand, Basis::OwnerNeocloud, Basis::OwnerHyperscaler]
            .into_iter()
            .find_map(|basis| self.price(basis))
    }
}
