//! Parts of a chip that are chips to a program (multi-instance GPU): a share of its multiprocessors, of its memory and of its bandwidth.
//!
//! $$ P' = P\,\frac{s}{S} \qquad W' = m\,W \qquad C' = m\,C \qquad \$' = \$\,\max(s/S, m) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | s, S | sms | 1 | multiprocessors of the part and of the chip |
//! | m | memory | 1 | share of the memory, its bandwidth and its cache: eighths |
//! | P, W, C | peak, bandwidth, capacity | | of the chip, and of the part |
//!
//! The whole as a part is the chip less what the mode itself takes: on an A100 ten of 108 multiprocessors. A part has no link to others.
//! Source: NVIDIA's MIG user guide, and what drivers print.

use crate::file::noun::cited;
use crate::{Chip, Cited, SpecError};
use rackmath_units::Bytes;
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parts {
    pub as_of: String,
    #[serde(rename = "part")]
    pub all: Vec<PartsOf>,
}

/// The parts a chip can be cut into.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartsOf {
    pub chips: Vec<String>,
    pub profiles: Vec<Profile>,
    pub source: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub name: String,
    pub sms: u64,
    /// As the driver reports it; the share of the chip's where nobody printed it.
    pub memory_gib: Option<f64>,
    /// Share of memory and bandwidth.
    pub memory: f64,
    /// Most of them on one chip.
    pub instances: u64,
}

/// A name such as `h100-mig-3g.40gb` as the chip's and the part's; the chip is empty where only the part is named.
pub(crate) fn split(name: &str) -> Option<(&str, &str)> {
    let at = name.rfind("g.")?.checked_sub(1)?;
    let (chip, part) = name.split_at_checked(at)?;
    let sound = part.as_bytes()[0].is_ascii_digit() && part.to_ascii_lowercase().ends_with("gb");
    let chip = chip.trim_end_matches(['-', '_', ':', '/', '.', ' ']);
    let chip = chip.strip_suffix("mig").or_else(|| chip.strip_suffix("MIG")).unwrap_or(chip);
    sound.then(|| (chip.trim_end_matches(['-', '_', ':', '/', '.', ' ']), part))
}

impl Parts {
    /// The parts of a chip by its id, and the one of that name.
    pub fn of(&self, chip: &str, part: &str) -> Result<(&PartsOf, &Profile), SpecError> {
        let Some(all) = self.all.iter().find(|p| p.chips.iter().any(|c| c == chip)) else {
            let cut = self.all.iter().flat_map(|p| &p.chips).map(String::as_str);
            return Err(SpecError::unknown("chip that can be cut into parts", chip, cut));
        };
        let found = all.profiles.iter().find(|p| p.name.eq_ignore_ascii_case(part));
        let names: Vec<&str> = all.profiles.iter().map(|p| p.name.as_str()).collect();
        let unknown = || SpecError::unknown(&format!("part of {chip}"), part, names.iter().copied());
        found.map(|p| (all, p)).ok_or_else(|| unknown().hint(format!("expected one of {}", names.join(", "))))
    }

    /// The first chip that has a part of this name.
    pub fn with_part(&self, part: &str) -> Option<&str> {
        let has = |p: &&PartsOf| p.profiles.iter().any(|one| one.name.eq_ignore_ascii_case(part));
        self.all.iter().find(has).and_then(|p| p.chips.first()).map(String::as_str)
    }
}

/// The part of a chip as a chip of its own.
pub(crate) fn part(chip: &Chip, of: &PartsOf, profile: &Profile) -> Chip {
    let total = chip.physical.cores.as_ref().map_or(profile.sms, |n| n.value).max(1);
    let (sms, memory) = ((profile.sms as f64 / total as f64).min(1.0), profile.memory);
    let mut own = chip.clone();
    own.id = format!("{}-mig-{}", chip.id, profile.name);
    own.name = format!("{} of {}", profile.name, chip.name);
    for peak in own.peak.values_mut() {
        *peak = peak.clone().map(|p| p * sms);
    }
    own.memory.capacity = chip.memory.capacity.clone().map(|c| c * memory);
    let size = profile.memory_gib.map_or_else(|| chip.memory.size() * memory, |gib| Bytes::b(gib * 1024.0_f64.powi(3)));
    own.memory.usable = Some(Cited { value: size, source: of.source.clone(), ..Cited::default() });
    // What programs find on the whole card is not what they find on a part.
    own.memory.seen = None;
    own.memory.bandwidth = chip.memory.bandwidth.clone().map(|w| w * memory);
    // Parts do not reach each other: neither by the card's links nor as ranks of one group of a network.
    (own.link.scale_up, own.link.scale_out) = (None, None);
    own.link.kind = "none".into();
    own.link.domain = Cited { value: 1, source: of.source.clone(), ..Cited::default() };
    own.link.host = chip.link.host.clone().map(|h| h.map(|rate| rate * memory));
    own.host.chips = None;
    own.physical.cores = Some(Cited { value: profile.sms, source: of.source.clone(), ..Cited::default() });
    own.physical.l2 = chip.physical.l2.clone().map(|l2| l2.map(|bytes| bytes * memory));
    let paid = sms.max(memory).min(1.0);
    own.power.tdp = chip.power.tdp.clone().map(|w| w.map(|w| w * paid));
    own.power.all_in = chip.power.all_in.clone().map(|w| w.map(|w| w * paid));
    own.prices = chip.prices.iter().map(|p| p.times(paid)).collect();
    own.purchase = chip.purchase.clone().map(|p| p.map(|usd| usd * paid));
    own
}

pub(crate) fn read(id: &str, text: &str) -> Result<Parts, SpecError> {
    let file = format!("support {id}");
    let parts: Parts = cited(&file, id, text, &["id"])?;
    for p in parts.all.iter().flat_map(|p| &p.profiles) {
        if !(p.memory > 0.0 && p.memory <= 1.0 && p.sms > 0 && p.instances > 0) {
            return Err(SpecError::field(
                &file,
                p.name.as_str(),
                p.memory,
                "a share above 0, at most 1, and counts above 0",
            ));
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_part_is_named_with_or_without_its_chip() {
        for name in ["h100-mig-3g.40gb", "h100-3g.40gb", "h100:3g.40gb", "h100/MIG-3g.40gb", "h100_mig_3g.40gb"] {
            assert_eq!(split(name), Some(("h100", "3g.40gb")), "{name}");
        }
        assert_eq!(split("mig-1g.10gb"), Some(("", "1g.10gb")));
        for not in ["h100", "3g", "dgx.b200", "", "g.", "hg.gb"] {
            assert_eq!(split(not), None, "{not}");
        }
    }
}
