//! Which chips are known, and how they compare: peaks, memory, intensity, ridge, drain time, price.

use crate::desk::prelude::*;
use rackmath_spec::{Basis, Chip, Cited, Kind, Math, VariantArray as _};
use rackmath_theory::roofline;
use std::fmt::Display;

/// What to show.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Names; all of the catalogue when empty.
    #[schemars(extend("x-position" = 1))]
    pub names: Vec<String>,
}

/// The chips.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// One entry each.
    pub chips: Vec<Card>,
}

/// One chip.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Card {
    /// Its catalogue id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Other names it answers to.
    pub aliases: Vec<String>,
    /// Its maker.
    pub vendor: String,
    /// Its generation.
    pub generation: String,
    /// Compute dies in the package.
    pub dies: u64,
    /// Memory kind.
    pub memory: String,
    /// Memory size as the data sheet gives it.
    pub capacity_bytes: f64,
    /// Memory the driver reports, where known.
    pub usable_bytes: Option<f64>,
    /// Memory that is counted with everywhere: what the driver reports, and where nobody wrote that down what programs find.
    pub memory_bytes: f64,
    /// Memory bandwidth.
    pub bandwidth_bytes_per_s: f64,
    /// Time to read all of that memory once.
    pub drain_s: f64,
    /// Dense peaks with what follows from them.
    pub peaks: Vec<Peak>,
    /// Kind of scale-up link.
    pub link: String,
    /// One-way scale-up bandwidth.
    pub scale_up_bytes_per_s: Option<f64>,
    /// Chips in the largest scale-up domain.
    pub domain: u64,
    /// One-way scale-out bandwidth.
    pub scale_out_bytes_per_s: Option<f64>,
    /// Scale-up over scale-out bandwidth.
    pub beta: Option<f64>,
    /// Thermal design power.
    pub tdp_w: Option<f64>,
    /// Newest price on each basis.
    pub prices: Vec<PriceCard>,
    /// Every value with its source, range, note and trap.
    pub facts: Vec<Fact>,
    /// When its values were checked.
    pub as_of: String,
}

/// A dense peak.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Peak {
    /// Arithmetic.
    pub math: String,
    /// Dense peak, a multiply-add is two.
    pub flop_per_s: f64,
    /// FLOP per byte of memory traffic.
    pub intensity: f64,
    /// The ridge R for operands of this arithmetic's width.
    pub ridge: f64,
}

/// A price per chip and hour.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PriceCard {
    /// Whose price.
    pub basis: String,
    /// Dollars per chip and hour.
    pub usd_per_hour: f64,
    /// Lowest and highest seen.
    pub range_usd_per_hour: Option<(f64, f64)>,
    /// Where.
    pub source: String,
    /// When.
    pub as_of: String,
}

/// A value and its origin.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fact {
    /// What it is.
    pub what: Remark,
    /// The value.
    pub value: String,
    /// Its source.
    pub source: String,
    /// A second source that agrees.
    pub checked: Option<String>,
    /// The range of values seen.
    pub range: Option<(String, String)>,
    /// Why sources differ.
    pub note: Option<String>,
    /// A wrong figure in circulation.
    pub trap: Option<String>,
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let one = |name: &String| catalog.chip(name).map(|chip| card(&chip, &catalog.names(Kind::Chips, &chip.id)));
    let names = named_or_all(&request.names, catalog.ids(Kind::Chips));
    Ok(Answer { chips: names.iter().map(one).collect::<Result<_, Error>>()? })
}

fn card(chip: &Chip, known: &[&str]) -> Card {
    let bandwidth = chip.memory.bandwidth.value;
    let peak = |math: &Math, value: rackmath_units::FlopRate| Peak {
        math: math.to_string(),
        flop_per_s: value.get(),
        intensity: (value / bandwidth).get(),
        ridge: roofline::ridge(value, math.operand(), bandwidth),
    };
    let (up, out) = (&chip.link.scale_up, &chip.link.scale_out);
    Card {
        id: chip.id.clone(),
        name: chip.name.clone(),
        aliases: known.iter().filter(|a| **a != chip.id).map(ToString::to_string).collect(),
        vendor: chip.vendor.clone(),
        generation: chip.generation.clone(),
        dies: chip.dies,
        memory: chip.memory.kind.clone(),
        capacity_bytes: chip.memory.capacity.value.get(),
        usable_bytes: chip.memory.usable.as_ref().map(|u| u.value.get()),
        bandwidth_bytes_per_s: bandwidth.get(),
        memory_bytes: chip.memory.size().get(),
        drain_s: roofline::drain(chip.memory.size(), bandwidth).get(),
        peaks: chip.peak.iter().map(|(math, p)| peak(math, p.value)).collect(),
        link: chip.link.kind.clone(),
        scale_up_bytes_per_s: up.as_ref().map(|u| u.value.get()),
        domain: chip.link.domain.value,
        scale_out_bytes_per_s: out.as_ref().map(|o| o.value.get()),
        beta: up.as_ref().zip(out.as_ref()).map(|(u, o)| u.value / o.value),
        tdp_w: chip.power.tdp.as_ref().map(|p| p.value.get()),
        prices: Basis::VARIANTS.iter().filter_map(|b| chip.price(*b)).map(price).collect(),
        facts: facts(chip),
        as_of: chip.as_of.clone(),
    }
}

fn price(p: &rackmath_spec::Price) -> PriceCard {
    PriceCard {
        basis: p.basis.to_string(),
        usd_per_hour: p.value.as_per_hour(),
        range_usd_per_hour: p.range().map(|(low, high)| (low.as_per_hour(), high.as_per_hour())),
        source: p.source.clone(),
        as_of: p.as_of.clone(),
    }
}

fn facts(chip: &Chip) -> Vec<Fact> {
    let mut all = vec![fact("memory capacity", &chip.memory.capacity)];
    all.extend(chip.memory.usable.as_ref().map(|u| fact("memory the driver reports", u)));
    all.push(fact("memory bandwidth", &chip.memory.bandwidth));
    all.extend(chip.peak.iter().map(|(math, p)| fact(says("dense_peak").with("math", *math), p)));
    all.extend(chip.link.scale_up.as_ref().map(|v| fact("scale-up, one way", v)));
    all.push(fact("scale-up domain", &chip.link.domain));
    all.extend(chip.link.scale_out.as_ref().map(|v| fact("scale-out, one way", v)));
    all.extend(chip.physical.cores.as_ref().map(|v| fact("cores", v)));
    all.extend(chip.physical.l2.as_ref().map(|v| fact("L2 cache", v)));
    all.extend(chip.physical.l3.as_ref().map(|v| fact("L3 cache", v)));
    all.extend(chip.power.tdp.as_ref().map(|v| fact("thermal design power", v)));
    all.extend(chip.power.all_in.as_ref().map(|v| fact("power with its share of the machine", v)));
    all.extend(chip.purchase.as_ref().map(|v| fact("purchase", v)));
    all
}

fn fact<T: Display>(what: impl Into<Remark>, cited: &Cited<T>) -> Fact {
    Fact {
        what: what.into(),
        value: cited.value.to_string(),
        source: cited.source.clone(),
        checked: cited.checked.clone(),
        range: cited.range.as_ref().map(|(low, high)| (low.to_string(), high.to_string())),
        note: cited.note.clone(),
        trap: cited.trap.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_and_a_machine_of_it_count_one_memory() {
        let catalog = rackmath_catalog::embedded();
        let named = |name: &str| Request { names: vec![name.into()] };
        for (chip, system) in [("h100-sxm", "hgx-h100"), ("h200", "hgx-h200"), ("b200", "hgx-b200")] {
            let one = &answer(&catalog, &named(chip)).unwrap().chips[0];
            let all = &crate::systems::answer(&catalog, &named(system)).unwrap().systems[0];
            assert!((one.drain_s / all.drain_s - 1.0).abs() < 1e-9, "{chip}: {} {}", one.drain_s, all.drain_s);
            assert!((8.0 * one.memory_bytes / all.capacity_bytes - 1.0).abs() < 1e-9, "{chip}");
        }
    }
}
