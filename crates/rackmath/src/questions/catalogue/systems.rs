//! Which machines are known, and what each is made of.

pub use crate::chips::Request;
use crate::desk::prelude::*;
use rackmath_spec::{Level, Math};
use rackmath_theory::roofline;

/// The machines.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// One entry each.
    pub systems: Vec<Card>,
}

/// One machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Card {
    /// Its catalogue id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its chip.
    pub chip: String,
    /// Packages.
    pub chips: u64,
    /// Compute dies.
    pub dies: u64,
    /// Memory of all chips.
    pub capacity_bytes: f64,
    /// Memory bandwidth of all chips.
    pub bandwidth_bytes_per_s: f64,
    /// Time to read all of the memory once.
    pub drain_s: f64,
    /// Dense peak of all chips in the narrowest float they have.
    pub peak_flop_per_s: f64,
    /// Arithmetic of that peak.
    pub peak_math: String,
    /// Networks, innermost first.
    pub levels: Vec<LevelCard>,
    /// Power of the machine.
    pub power_w: Option<f64>,
    /// Other facts with their sources.
    pub facts: Vec<(String, String, String)>,
}

/// One level of network.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LevelCard {
    /// Its name.
    pub name: String,
    /// Chips it joins.
    pub chips: u64,
    /// One-way bandwidth per chip.
    pub bandwidth_bytes_per_s: f64,
    /// How chips are joined.
    pub topology: String,
    /// Where the bandwidth comes from.
    pub source: String,
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let names = named_or_all(&request.names, catalog.ids(rackmath_spec::Kind::Systems));
    let systems = names.iter().map(|name| catalog.system(name).map(|s| card(&s)));
    Ok(Answer { systems: systems.collect::<Result<_, _>>()? })
}

fn card(s: &rackmath_spec::System) -> Card {
    // The narrowest float the chip has, which is what its makers quote; integers only where there is no float.
    let narrow = [Math::Fp4, Math::Fp8, Math::Bf16, Math::Fp16, Math::Fp32];
    let found = narrow.iter().find_map(|m| s.chip.peak.get_key_value(m));
    let (math, peak) = found.or_else(|| s.chip.peak.iter().next()).expect("a chip has a peak");
    let level = |l: &Level| {
        let (name, topology, source) = (l.name.clone(), l.topology.to_string(), l.bandwidth.source.clone());
        LevelCard { name, chips: l.chips, bandwidth_bytes_per_s: l.bandwidth.value.get(), topology, source }
    };
    Card {
        id: s.id.clone(),
        name: s.name.clone(),
        chip: s.chip.id.clone(),
        chips: s.n_chips,
        dies: s.dies(),
        capacity_bytes: s.capacity().get(),
        bandwidth_bytes_per_s: s.bandwidth().get(),
        drain_s: roofline::drain(s.capacity(), s.bandwidth()).get(),
        peak_flop_per_s: s.peak(peak.value).get(),
        peak_math: math.to_string(),
        levels: s.levels.iter().map(level).collect(),
        power_w: s.power.as_ref().map(|p| p.value.get()),
        facts: s.facts.iter().map(|(k, v)| (k.replace('_', " "), v.value.clone(), v.source.clone())).collect(),
    }
}
