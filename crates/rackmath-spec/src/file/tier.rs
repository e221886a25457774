//! Reads a memory-tier file.

use super::{Place, RawCited, parse_toml};
use crate::SpecError;
use crate::tier::{MemoryTier, TierCost};
use rackmath_units::Seconds;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTier {
    name: String,
    kind: String,
    #[serde(default, rename = "aliases")]
    _aliases: Vec<String>,
    as_of: String,
    #[serde(default)]
    sources: BTreeMap<String, String>,
    capacity: RawCited<String>,
    bandwidth: RawCited<String>,
    price_per_gb: Option<RawCited<String>>,
    life_years: Option<f64>,
    price_per_gb_month: Option<RawCited<String>>,
}

const YEAR_S: f64 = 365.0 * 86_400.0;

pub fn memory_tier(id: &str, text: &str) -> Result<MemoryTier, SpecError> {
    let file = format!("tier {id}");
    let raw: RawTier = parse_toml(&file, text)?;
    let place = Place { file: &file, sources: &raw.sources };
    let wrong = |field: &str, given: String, expected: &str| SpecError::field(&file, field, given, expected);
    let cost = match (raw.price_per_gb, raw.life_years, raw.price_per_gb_month) {
        (None, None, None) => None,
        (Some(price), Some(years), None) => {
            if !(0.1..=30.0).contains(&years) {
                return Err(wrong("life_years", years.to_string(), "0.1 to 30 years"));
            }
            Some(TierCost::Bought { per_gb: place.quantity("price_per_gb", price)?, life: Seconds::s(years * YEAR_S) })
        }
        (None, None, Some(rent)) => {
            Some(TierCost::Rented { per_gb_month: place.quantity("price_per_gb_month", rent)? })
        }
        _ => {
            let expected = "price_per_gb with life_years, or price_per_gb_month, or none of them";
            return Err(wrong("price", "a mixture".into(), expected));
        }
    };
    let tier = MemoryTier {
        id: id.to_owned(),
        name: raw.name,
        kind: raw.kind,
        as_of: raw.as_of,
        capacity: place.quantity("capacity", raw.capacity)?,
        bandwidth: place.quantity("bandwidth", raw.bandwidth)?,
        cost,
    };
    if tier.capacity.value.get() <= 0.0 || tier.bandwidth.value.get() <= 0.0 {
        return Err(wrong("capacity or bandwidth", "0".into(), "more than nothing"));
    }
    Ok(tier)
}
