//! Reads a memory-tier file.

use super::noun::cited;
use crate::tier::{MemoryTier, TierCost};
use crate::{Cited, SpecError};
use rackmath_units::{ByteRate, Bytes, Dollars, Seconds};
use serde::Deserialize;

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

pub fn memory_tier(id: &str, text: &str) -> Result<MemoryTier, SpecError> {
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
