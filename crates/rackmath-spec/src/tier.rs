//! A place that can keep a cache: how much it holds, how fast it reads, what it costs.

use crate::file::noun::cited;
use crate::{Cited, SpecError};
use rackmath_units::{ByteRate, Bytes, Dollars, Seconds};
use serde::Deserialize;

/// One device, server or service of the memory hierarchy.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryTier {
    pub id: String,
    /// The device it stands for.
    pub name: String,
    /// The kind of memory: ddr, cxl, nvme, flash-pool, disk, object.
    pub kind: String,
    pub as_of: String,
    pub capacity: Cited<Bytes>,
    pub bandwidth: Cited<ByteRate>,
    /// What it costs; none when no public price is known.
    pub cost: Option<TierCost>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TierCost {
    /// Bought, and used for so long.
    Bought { per_gb: Cited<Dollars>, life: Seconds },
    /// Rented by the gigabyte and month of 730 h.
    Rented { per_gb_month: Cited<Dollars> },
}

impl MemoryTier {
    /// Dollars to keep a byte for a second; none when no price is known.
    pub fn hold(&self) -> Option<f64> {
        const GB: f64 = 1e9;
        const MONTH_S: f64 = 730.0 * 3600.0;
        Some(match self.cost.as_ref()? {
            TierCost::Bought { per_gb, life } => per_gb.value.get() / GB / life.get(),
            TierCost::Rented { per_gb_month } => per_gb_month.value.get() / GB / MONTH_S,
        })
    }

    pub fn cost_source(&self) -> Option<&str> {
        Some(match self.cost.as_ref()? {
            TierCost::Bought { per_gb, .. } => &per_gb.source,
            TierCost::Rented { per_gb_month } => &per_gb_month.source,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTier {
    id: String,
    name: String,
    kind: String,
    as_of: String,
    capacity: Cited<Bytes>,
    bandwidth: Cited<ByteRate>,
    price_per_gb: Option<Cited<Dollars>>,
    life_years: Option<f64>,
    price_per_gb_month: Option<Cited<Dollars>>,
}

const YEAR_S: f64 = 365.0 * 86_400.0;

pub(crate) fn read(id: &str, text: &str) -> Result<MemoryTier, SpecError> {
    let file = format!("tier {id}");
    let RawTier { id, name, kind, as_of, capacity, bandwidth, price_per_gb, life_years, price_per_gb_month } =
        cited(&file, id, text, &[])?;
    let wrong = |field: &str, given: String, expected: &str| Err(SpecError::field(&file, field, given, expected));
    let cost = match (price_per_gb, life_years, price_per_gb_month) {
        (None, None, None) => None,
        (Some(_), Some(years), None) if !(0.1..=30.0).contains(&years) => {
            return wrong("life_years", years.to_string(), "0.1 to 30 years");
        }
        (Some(per_gb), Some(years), None) => Some(TierCost::Bought { per_gb, life: Seconds::s(years * YEAR_S) }),
        (None, None, Some(per_gb_month)) => Some(TierCost::Rented { per_gb_month }),
        _ => {
            let expected = "price_per_gb with life_years, or price_per_gb_month, or none of them";
            return wrong("price", "a mixture".into(), expected);
        }
    };
    if capacity.value.get() <= 0.0 || bandwidth.value.get() <= 0.0 {
        return wrong("capacity or bandwidth", "0".into(), "more than nothing");
    }
    Ok(MemoryTier { id, name, kind, as_of, capacity, bandwidth, cost })
}
