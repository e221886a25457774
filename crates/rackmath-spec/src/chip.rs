//! One accelerator package: dense peaks, memory, links, power and price, each with its source.

use crate::error::one_of;
use crate::file::noun::{cited, text};
use crate::{Cited, Dtype, Math, SpecError};
use rackmath_units::{ByteRate, Bytes, DollarRate, Dollars, FlopRate, Watts};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::str::FromStr;
use strum::{Display, IntoStaticStr, VariantArray};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chip {
    pub id: String,
    pub name: String,
    pub vendor: String,
    /// Its architecture family, which shares efficiencies.
    pub generation: String,
    pub dies: u64,
    /// What programs see of it, where each of its dies is a device to them: a chip's id.
    #[serde(default)]
    pub device: Option<String>,
    /// Whether it is the processor of a host with its own memory, which multiplies in vector units; of several sockets `dies` counts
    /// each.
    #[serde(default)]
    pub processor: bool,
    pub as_of: String,
    pub memory: Memory,
    /// Dense peaks; a multiply-add is two.
    pub peak: BTreeMap<Math, Cited<FlopRate>>,
    pub link: Link,
    #[serde(default)]
    pub host: Host,
    #[serde(default)]
    pub physical: Physical,
    #[serde(default)]
    pub power: Power,
    #[serde(default, rename = "price")]
    pub prices: Vec<Price>,
    /// What one chip costs to buy, with its share of the machine where the source says so.
    #[serde(default, deserialize_with = "purchase")]
    pub purchase: Option<Cited<Dollars>>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// HBM3e, GDDR7, LPDDR5X.
    pub kind: String,
    pub capacity: Cited<Bytes>,
    /// Bytes the driver reports, where known: sheets that write GB often mean GiB.
    pub usable: Option<Cited<Bytes>>,
    /// Bytes a program finds when it asks for the total, where known: the driver keeps some for itself.
    pub seen: Option<Cited<Bytes>>,
    pub bandwidth: Cited<ByteRate>,
    /// Other sizes that the same chip is sold with.
    #[serde(default)]
    pub sold: Vec<Sold>,
    /// Gigabytes of one of them, where a name asked for it.
    #[serde(skip)]
    pub stated: Option<u64>,
}

/// A size that a chip is sold with beside that of its file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sold {
    pub capacity: Bytes,
    /// Bytes a program finds of it.
    pub seen: Bytes,
    pub source: String,
}

/// Links; bandwidths are one-way and per chip.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// nvlink5, infinity-fabric, ici, pcie5, none.
    pub kind: String,
    /// To the other chips of its scale-up domain.
    pub scale_up: Option<Cited<ByteRate>>,
    /// Chips in the largest scale-up domain sold.
    pub domain: Cited<u64>,
    pub scale_out: Option<Cited<ByteRate>>,
    pub host: Option<Cited<ByteRate>>,
    /// What can be bought to join two cards.
    pub bridge: Option<Bridge>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bridge {
    /// By a name of the catalogue's networks.
    pub kind: String,
    pub rate: Cited<ByteRate>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Chips of one, where that is less than a scale-up domain.
    pub chips: Option<Cited<u64>>,
    /// The tier of its memory, by name.
    pub memory: Option<String>,
    pub sharers: Option<Cited<u64>>,
}

/// What later efficiency models scale with.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Physical {
    /// Streaming multiprocessors, compute units or cores.
    #[serde(rename = "sms")]
    pub cores: Option<Cited<u64>>,
    /// Last private-to-chip cache before memory.
    pub l2: Option<Cited<Bytes>>,
    pub l3: Option<Cited<Bytes>>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    pub tdp: Option<Cited<Watts>>,
    /// With its share of host and network.
    pub all_in: Option<Cited<Watts>>,
    /// Whether that is measured where the building is fed, its cooling and losses included.
    #[serde(default)]
    pub facility: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    #[serde(deserialize_with = "text")]
    pub basis: Basis,
    pub value: DollarRate,
    low: Option<DollarRate>,
    high: Option<DollarRate>,
    pub source: String,
    pub as_of: String,
}

impl Price {
    /// The price of a part.
    pub(crate) fn times(&self, share: f64) -> Self {
        let part = |rate: DollarRate| rate * share;
        Self { value: part(self.value), low: self.low.map(part), high: self.high.map(part), ..self.clone() }
    }

    /// The lowest and highest seen, where one is stated.
    pub fn range(&self) -> Option<(DollarRate, DollarRate)> {
        let stated = self.low.or(self.high).is_some();
        stated.then(|| (self.low.unwrap_or(self.value), self.high.unwrap_or(self.value)))
    }
}

/// Whose price per hour, cheapest first as a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Basis {
    /// Total cost to an owner of very many.
    OwnerHyperscaler,
    /// Total cost to a smaller owner.
    OwnerNeocloud,
    /// A contract of one to three years.
    Rental,
    OnDemand,
    /// What nobody else wants at the moment: it may be taken away.
    Spot,
}

impl Basis {
    /// In the order a price is shown in when none was asked for.
    pub const USUAL: [Self; 5] =
        [Self::Rental, Self::OnDemand, Self::OwnerNeocloud, Self::OwnerHyperscaler, Self::Spot];

    /// As a person says it, before the word "prices".
    pub fn words(self) -> &'static str {
        match self {
            Self::OwnerHyperscaler => "owner's (hyperscaler)",
            Self::OwnerNeocloud => "owner's (neocloud)",
            Self::Rental => "contract",
            Self::OnDemand => "on-demand",
            Self::Spot => "spot",
        }
    }
}

impl FromStr for Basis {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let own = match text.trim().to_ascii_lowercase().as_str() {
            "owner" => "owner-neocloud",
            "contract" | "reserved" => "rental",
            _ => text,
        };
        one_of("price basis", own)
    }
}

fn purchase<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Cited<Dollars>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Purchase {
        as_of: String,
        #[serde(flatten)]
        price: Cited<Dollars>,
    }
    let Purchase { as_of, price } = Purchase::deserialize(d)?;
    let note = price.note.map_or(format!("as of {as_of}"), |note| format!("{note} (as of {as_of})"));
    Ok(Some(Cited { note: Some(note), ..price }))
}

/// Reads a chip: it must be able to compute and to remember, since the formulas divide by these.
pub(crate) fn read(id: &str, text: &str) -> Result<Chip, SpecError> {
    let file = format!("chip {id}");
    let chip: Chip = cited(&file, id, text, &["released", "price.note", "physical.clock"])?;
    let no_cores = chip.physical.cores.as_ref().is_some_and(|n| n.value == 0);
    let no_peak = chip.peak.is_empty() || chip.peak.values().any(|p| p.value.get() <= 0.0);
    let wrong = [
        (chip.link.domain.value == 0, "link.domain", "0", "a positive count"),
        (no_cores, "physical.sms", "0", "a positive count"),
        (chip.memory.bandwidth.value.get() <= 0.0, "memory.bandwidth", "0", "more than nothing"),
        (chip.memory.capacity.value.get() <= 0.0, "memory.capacity", "0", "more than nothing"),
        (no_peak, "peak", "none or zero", "at least one positive dense peak"),
        (chip.dies == 0, "dies", "0", "at least one"),
    ];
    match wrong.into_iter().find(|(wrong, ..)| *wrong) {
        Some((_, field, given, expected)) => Err(SpecError::field(&file, field, given, expected)),
        None => Ok(chip),
    }
}

impl Memory {
    /// Share of a driver's figure that programs find, where only that figure is known: the median of the chips that have both.
    const SEEN: f64 = 0.9935;
    /// Share of a sheet's figure that programs find, its GB read as GiB: the median of the chips without a driver's figure.
    const SEEN_OF_SHEET: f64 = 0.98;

    /// Bytes of the chip: what the driver reports, and where nobody wrote that down what programs find.
    pub fn size(&self) -> Bytes {
        let value = |of: &Option<Cited<Bytes>>| of.as_ref().map(|cited| cited.value);
        Self::size_of(value(&self.usable), value(&self.seen), self.capacity.value)
    }

    /// The same of the three figures by themselves.
    pub(crate) fn size_of(usable: Option<Bytes>, seen: Option<Bytes>, capacity: Bytes) -> Bytes {
        usable.or(seen).unwrap_or_else(|| Self::meant(capacity) * Self::SEEN_OF_SHEET)
    }

    /// Sheets count in GB and mean GiB; a sheet that says GiB, which comes to no round number of GB, says what it means.
    fn meant(capacity: Bytes) -> Bytes {
        let tenths = capacity.as_gb() * 10.0;
        if (tenths - tenths.round()).abs() < 1e-6 { Bytes::gib(capacity.as_gb()) } else { capacity }
    }

    /// Bytes a program finds when it asks for the total.
    pub fn seen(&self) -> Bytes {
        match (&self.seen, &self.usable) {
            (Some(seen), _) => seen.value,
            (None, Some(usable)) => usable.value * Self::SEEN,
            (None, None) => self.size(),
        }
    }
}

impl Chip {
    /// The chip with so many gigabytes of memory; none where it is not sold with them.
    pub(crate) fn with_memory(&self, gigabytes: f64) -> Option<Self> {
        let is = |capacity: Bytes| (capacity.as_gb() / gigabytes - 1.0).abs() < 0.08;
        if is(self.memory.capacity.value) {
            return Some(self.clone());
        }
        let size = self.memory.sold.iter().find(|size| is(size.capacity))?;
        let cited = |value| Cited { value, source: size.source.clone(), ..Cited::default() };
        let mut own = self.clone();
        own.name = format!("{}, {gigabytes} GB", self.name);
        own.memory.capacity = cited(size.capacity);
        (own.memory.usable, own.memory.seen) = (None, Some(cited(size.seen)));
        own.memory.stated = Some(gigabytes as u64);
        // What one costs to buy is said of the size in the file.
        own.purchase = None;
        Some(own)
    }

    /// Chips of one host: a scale-up domain unless it says otherwise.
    pub fn chips_per_host(&self) -> u64 {
        self.host.chips.as_ref().map_or(self.link.domain.value, |n| n.value).max(1)
    }

    /// The way to its host's memory, one direction: what its file says of it, else PCIe, by which such a card reaches both its
    /// host and other cards.
    pub fn to_host(&self) -> Option<ByteRate> {
        let cards = self.link.scale_up.as_ref().filter(|_| self.link.kind.starts_with("pcie"));
        self.link.host.as_ref().or(cards).map(|rate| rate.value)
    }

    /// The arithmetic this chip runs weights of a format in, and its dense peak.
    pub fn peak_for(&self, weights: Dtype) -> Option<(Math, &Cited<FlopRate>)> {
        weights.maths().iter().find_map(|math| self.peak.get(math).map(|peak| (*math, peak)))
    }

    pub fn price(&self, basis: Basis) -> Option<&Price> {
        self.prices.iter().filter(|p| p.basis == basis).max_by(|a, b| a.as_of.cmp(&b.as_of))
    }

    /// A price to show when none was asked for: a contract if one is known, else on demand, else an owner's cost,
    /// else what is left over.
    pub fn usual_price(&self) -> Option<&Price> {
        Basis::USUAL.into_iter().find_map(|basis| self.price(basis))
    }
}
