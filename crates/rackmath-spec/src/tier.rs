//! A place that can keep a cache: how much it holds, how fast it reads, what it costs.

use crate::file::noun::cited;
use crate::{Cited, SpecError};
use rackmath_units::{ByteRate, Bytes, Dollars};
use serde::Deserialize;

/// One device, server or service of the memory hierarchy: bought and used for so many years, or rented by the month.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryTier {
    pub id: String,
    pub name: String,
    /// The kind of memory: ddr, cxl, nvme, flash-pool, disk, object.
    pub kind: String,
    pub as_of: String,
    pub capacity: Cited<Bytes>,
    pub bandwidth: Cited<ByteRate>,
    price_per_gb: Option<Cited<Dollars>>,
    life_years: Option<f64>,
    price_per_gb_month: Option<Cited<Dollars>>,
}

impl MemoryTier {
    /// Dollars to keep a byte for a second; none when no price is known. A month has 730 h.
    pub fn hold(&self) -> Option<f64> {
        const GB: f64 = 1e9;
        const YEAR_S: f64 = 365.0 * 86_400.0;
        const MONTH_S: f64 = 730.0 * 3600.0;
        let bought = self.price_per_gb.as_ref().zip(self.life_years).map(|(price, years)| (price, years * YEAR_S));
        let (price, time) = bought.or(self.price_per_gb_month.as_ref().map(|price| (price, MONTH_S)))?;
        Some(price.value.get() / GB / time)
    }

    pub fn cost_source(&self) -> Option<&str> {
        self.price_per_gb.as_ref().or(self.price_per_gb_month.as_ref()).map(|price| price.source.as_str())
    }
}

pub(crate) fn read(id: &str, text: &str) -> Result<MemoryTier, SpecError> {
    let file = format!("tier {id}");
    let tier: MemoryTier = cited(&file, id, text, &[])?;
    let wrong = |field: &str, given: String, expected: &str| Err(SpecError::field(&file, field, given, expected));
    let years = tier.life_years;
    if years.is_some() != tier.price_per_gb.is_some() || years.is_some() && tier.price_per_gb_month.is_some() {
        let expected = "price_per_gb with life_years, or price_per_gb_month, or none of them";
        return wrong("price", "a mixture".into(), expected);
    }
    if let Some(years) = years.filter(|years| !(0.1..=30.0).contains(years)) {
        return wrong("life_years", years.to_string(), "0.1 to 30 years");
    }
    if tier.capacity.value.get() <= 0.0 || tier.bandwidth.value.get() <= 0.0 {
        return wrong("capacity or bandwidth", "0".into(), "more than nothing");
    }
    Ok(tier)
}
