//! Reads a chip file.

use super::{Place, RawCited, parse_toml};
use crate::{Basis, Chip, Cited, Link, Math, Memory, Physical, Power, Price, SpecError};
use rackmath_units::{DollarRate, Dollars};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawChip {
    name: String,
    vendor: String,
    generation: String,
    #[serde(default)]
    #[serde(rename = "aliases")]
    _aliases: Vec<String>,
    #[serde(rename = "released")]
    _released: Option<String>,
    dies: u64,
    as_of: String,
    #[serde(default)]
    sources: BTreeMap<String, String>,
    memory: RawMemory,
    peak: BTreeMap<String, RawCited<String>>,
    link: RawLink,
    #[serde(default)]
    physical: RawPhysical,
    #[serde(default)]
    power: RawPower,
    #[serde(default)]
    price: Vec<RawPrice>,
    purchase: Option<RawPurchase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMemory {
    kind: String,
    capacity: RawCited<String>,
    usable: Option<RawCited<String>>,
    bandwidth: RawCited<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLink {
    kind: String,
    scale_up: Option<RawCited<String>>,
    domain: RawCited<u64>,
    scale_out: Option<RawCited<String>>,
    host: Option<RawCited<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawPhysical {
    sms: Option<RawCited<u64>>,
    clock: Option<RawCited<String>>,
    l2: Option<RawCited<String>>,
    l3: Option<RawCited<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawPower {
    tdp: Option<RawCited<String>>,
    all_in: Option<RawCited<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPrice {
    basis: String,
    value: String,
    low: Option<String>,
    high: Option<String>,
    source: String,
    as_of: String,
    #[serde(rename = "note")]
    _note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPurchase {
    value: String,
    range: Option<(String, String)>,
    source: String,
    checked: Option<String>,
    as_of: String,
    note: Option<String>,
}

/// Reads a chip from one of our TOML files.
pub fn chip(id: &str, text: &str) -> Result<Chip, SpecError> {
    let file = format!("chip {id}");
    let raw: RawChip = parse_toml(&file, text)?;
    let place = Place { file: &file, sources: &raw.sources };
    let peak = raw
        .peak
        .into_iter()
        .map(|(math, value)| Ok((math.parse::<Math>()?, place.quantity(&format!("peak.{math}"), value)?)))
        .collect::<Result<BTreeMap<_, _>, SpecError>>()?;
    let chip = Chip {
        id: id.to_owned(),
        name: raw.name,
        vendor: raw.vendor,
        generation: raw.generation,
        dies: raw.dies,
        as_of: raw.as_of,
        memory: Memory {
            kind: raw.memory.kind,
            capacity: place.quantity("memory.capacity", raw.memory.capacity)?,
            usable: raw.memory.usable.map(|v| place.quantity("memory.usable", v)).transpose()?,
            bandwidth: place.quantity("memory.bandwidth", raw.memory.bandwidth)?,
        },
        link: Link {
            kind: raw.link.kind,
            scale_up: raw.link.scale_up.map(|v| place.quantity("link.scale_up", v)).transpose()?,
            domain: place.count("link.domain", raw.link.domain)?,
            scale_out: raw.link.scale_out.map(|v| place.quantity("link.scale_out", v)).transpose()?,
            host: raw.link.host.map(|v| place.quantity("link.host", v)).transpose()?,
        },
        physical: Physical {
            cores: raw.physical.sms.map(|v| place.count("physical.sms", v)).transpose()?,
            clock_hz: raw.physical.clock.map(|v| place.cited("physical.clock", v, |t| hertz(t))).transpose()?,
            l2: raw.physical.l2.map(|v| place.quantity("physical.l2", v)).transpose()?,
            l3: raw.physical.l3.map(|v| place.quantity("physical.l3", v)).transpose()?,
        },
        power: Power {
            tdp: raw.power.tdp.map(|v| place.quantity("power.tdp", v)).transpose()?,
            all_in: raw.power.all_in.map(|v| place.quantity("power.all_in", v)).transpose()?,
        },
        prices: raw.price.into_iter().map(|p| price(&place, p)).collect::<Result<_, _>>()?,
        purchase: raw.purchase.map(|p| purchase(&place, p)).transpose()?,
        peak,
    };
    validate(&file, &chip)?;
    Ok(chip)
}

fn price(place: &Place, raw: RawPrice) -> Result<Price, SpecError> {
    let rate = |text: &str| {
        text.parse::<DollarRate>().map_err(|e| SpecError::field(place.file, "price.value", text, e.to_string()))
    };
    let value = rate(&raw.value)?;
    let range = match (&raw.low, &raw.high) {
        (None, None) => None,
        (low, high) => Some((low.as_deref().map_or(Ok(value), rate)?, high.as_deref().map_or(Ok(value), rate)?)),
    };
    Ok(Price {
        basis: raw.basis.parse::<Basis>()?,
        value,
        range,
        source: place.source("price", raw.source)?,
        as_of: raw.as_of,
    })
}

fn purchase(place: &Place, raw: RawPurchase) -> Result<Cited<Dollars>, SpecError> {
    let note = match raw.note {
        Some(note) => format!("{note} (as of {})", raw.as_of),
        None => format!("as of {}", raw.as_of),
    };
    let cited = RawCited {
        value: raw.value,
        source: raw.source,
        checked: raw.checked,
        range: raw.range,
        note: Some(note),
        trap: None,
    };
    place.quantity("purchase", cited)
}

/// "1980 MHz" or "1.98 GHz" in hertz.
fn hertz(text: &str) -> Result<f64, (String, String)> {
    let bad = || (text.to_owned(), "a clock such as 1980 MHz".to_owned());
    let (number, scale) = match text.trim() {
        t if t.ends_with("MHz") => (&t[..t.len() - 3], 1e6),
        t if t.ends_with("GHz") => (&t[..t.len() - 3], 1e9),
        _ => return Err(bad()),
    };
    let value: f64 = number.trim().parse().map_err(|_| bad())?;
    if value.is_finite() && value > 0.0 { Ok(value * scale) } else { Err(bad()) }
}

/// A chip must be able to compute and to remember: the formulas divide by these.
fn validate(file: &str, chip: &Chip) -> Result<(), SpecError> {
    let field = |field: &str, given: String, expected: &str| SpecError::field(&file, field, given, expected);
    if chip.memory.bandwidth.value.get() <= 0.0 {
        return Err(field("memory.bandwidth", chip.memory.bandwidth.value.to_string(), "more than nothing"));
    }
    if chip.memory.capacity.value.get() <= 0.0 {
        return Err(field("memory.capacity", chip.memory.capacity.value.to_string(), "more than nothing"));
    }
    if chip.peak.is_empty() || chip.peak.values().any(|p| p.value.get() <= 0.0) {
        return Err(field("peak", "none or zero".into(), "at least one positive dense peak"));
    }
    if chip.dies == 0 {
        return Err(field("dies", "0".into(), "at least one"));
    }
    Ok(())
}
