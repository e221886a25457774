//! A link named by hand: what joins the chips of a machine in place of the links they have.
//!
//! | word | link |
//! |---|---|
//! | `25GB/s`, `200Gb/s` | so much out of each chip, one way, through the host's memory and RoCE |
//! | `10GbE` | sockets over Ethernet of so many Gb/s |
//! | `pcie4`, `pcie4 x8` | the cards' slots |
//! | `nvlink` | the bridge that joins this card with one other; what is beyond the pair stays as it is |
//! | `nvlink4:450GB/s` | any kind of link of the catalogue, at a rate |
//! | `ideal` | no floors and no end of bandwidth: what exchanging costs is the difference |
//!
//! Assumes: every chip of the machine sees every other at that rate, as over a switch, except on PCIe, where the way through the host's tree
//! is counted. The floors are those of the catalogue's `networks`.

use crate::system::{Level, topology};
use crate::{Catalog, Chip, Cited, SpecError, System, Topology};
use rackmath_units::ByteRate;

/// Kind of link where only a rate is given, and where it is given as Ethernet's.
const BARE: &str = "roce-host";
const ETHERNET: &str = "tcp";
const IDEAL: &str = "ideal";

/// What stands in for no limit: more than any link moves, and still a number.
const ENDLESS: f64 = 1e18;

/// Lanes that a rate of PCIe in the catalogue is for.
const LANES: f64 = 16.0;

#[derive(Clone, Debug, PartialEq)]
pub struct Wire {
    /// The kind of link, by its id among the catalogue's networks.
    pub kind: String,
    pub rate: Cited<ByteRate>,
    /// Chips it joins, where it does not reach all.
    pub pair: bool,
}

impl Wire {
    /// Reads a link as a person names it.
    pub fn read(text: &str, catalog: &Catalog, chip: &Chip) -> Result<Self, SpecError> {
        let lower = text.trim().to_ascii_lowercase();
        let given = |value| Cited { value, source: "as given".into(), ..Cited::default() };
        let all = |kind: &str, rate: ByteRate| Self { kind: kind.into(), rate: given(rate), pair: false };
        let refused = |expected: &str| SpecError::value("setting.link", format!("\"{}\"", text.trim()), expected);
        if lower == IDEAL {
            return Ok(all(IDEAL, ByteRate::b_per_s(ENDLESS)));
        }
        if ["nvlink", "bridge", "nvlink bridge", "nvlink-bridge"].contains(&lower.as_str()) {
            let bridge = chip.link.bridge.as_ref();
            let none = || refused(&format!("another link: no bridge is known for {}", chip.name));
            return bridge.map(|b| Self { kind: b.kind.clone(), rate: b.rate.clone(), pair: true }).ok_or_else(none);
        }
        let rate = |word: &str| word.trim().parse::<ByteRate>().ok().filter(|rate| rate.get() > 0.0);
        // A small b is a bit here, so what was typed counts.
        if let Some(rate) = rate(text) {
            return Ok(all(BARE, rate));
        }
        if let Some(gigabits) = lower.strip_suffix("gbe").and_then(|n| n.trim().parse::<f64>().ok()) {
            let rate = ByteRate::checked(gigabits * 1e9 / 8.0).filter(|rate| rate.get() > 0.0);
            return rate.map(|rate| all(ETHERNET, rate)).ok_or_else(|| refused("a rate such as 10GbE"));
        }
        let network = |kind: &str| catalog.network(kind).map_err(|e| e.at("setting.link"));
        if let Some((kind, word)) = text.split_once(':') {
            let rate = rate(word).ok_or_else(|| refused("a rate behind the colon, such as nvlink4:450GB/s"))?;
            return Ok(all(&network(kind.trim())?.id, rate));
        }
        let (kind, lanes) = match lower.rsplit_once('x') {
            Some((kind, lanes)) if kind.starts_with("pcie") && !lanes.is_empty() => {
                let lanes = lanes.parse::<f64>().ok().filter(|n| (1.0..=LANES).contains(n));
                (kind.trim_end_matches(['-', ' ', '_']), lanes.ok_or_else(|| refused("1 to 16 lanes"))?)
            }
            _ => (lower.as_str(), LANES),
        };
        let found = network(kind).map_err(|e| {
            e.hint("expected a rate such as 25GB/s or 200Gb/s, a kind such as pcie4, nvlink or 10GbE, or a kind and its rate: nvlink4:450GB/s")
        })?;
        let own = found.rate.as_ref().ok_or_else(|| refused(&format!("its rate too, such as {kind}:100GB/s")))?;
        let rate = Cited { value: own.value * (lanes / LANES), range: None, ..own.clone() };
        Ok(Self { kind: found.id.clone(), rate, pair: false })
    }

    /// Joins the chips of a machine, in place of what joined them.
    pub fn join(&self, system: &mut System) {
        system.rewired = true;
        let topology = topology(&self.kind);
        let chips = if self.pair { 2 } else { system.n_chips.max(2) };
        let level = Level {
            name: self.kind.clone(),
            link: self.kind.clone(),
            chips,
            bandwidth: self.rate.clone(),
            topology,
            dims: if topology == Topology::Torus { vec![chips] } else { Vec::new() },
            nics_per_chip: None,
            oversubscription: 1.0,
        };
        if !self.pair {
            system.levels.clear();
        }
        system.levels.insert(0, level);
        system.name = match self.kind.as_str() {
            IDEAL => format!("{} over an ideal link", system.name),
            kind => format!("{} over {kind} at {}", system.name, self.rate.value),
        };
    }

    /// The same in words.
    pub fn said(&self, catalog: &Catalog) -> String {
        let name = catalog.network(&self.kind).map_or_else(|_| self.kind.clone(), |network| network.name.clone());
        match (self.kind == IDEAL, self.pair) {
            (true, _) => "the chips exchange in no time (an ideal link), as asked".into(),
            (_, true) => {
                format!(
                    "two chips at a time are joined by a bridge of {} one way, with the floors of {name}",
                    self.rate.value
                )
            }
            _ => format!(
                "a link of {} one way out of each chip joins them instead of their own, with the floors of {name}",
                self.rate.value
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_link_says_what_is() {
        let chip = crate::file::chip("toy", TOY).unwrap();
        for word in ["", "fast", "0GB/s", "nvlink", "pcie4x0", "nan", "-3GB/s", "25"] {
            let error = Wire::read(word, &Catalog::default(), &chip).unwrap_err().to_string();
            assert!(error.contains("expected"), "{word}: {error}");
        }
    }

    #[test]
    fn rates_are_read_with_their_unit() {
        let chip = crate::file::chip("toy", TOY).unwrap();
        let read = |word: &str| Wire::read(word, &Catalog::default(), &chip).unwrap();
        assert_eq!(read("25GB/s"), read("200 Gb/s"));
        assert_eq!((read("25GB/s").kind.as_str(), read("10GbE").kind.as_str()), ("roce-host", "tcp"));
        assert_eq!(read("10GbE").rate.value, ByteRate::gb_per_s(1.25));
    }

    const TOY: &str = r#"
name = "Toy"
vendor = "Toy"
generation = "toy"
released = "2026"
dies = 1
as_of = "2026-11"
[memory]
kind = "HBM"
capacity = { value = "8 GB", source = "made up for a test" }
bandwidth = { value = "1 TB/s", source = "made up for a test" }
[peak]
fp16 = { value = "100 TFLOP/s", source = "made up for a test" }
[link]
kind = "none"
domain = { value = 1, source = "made up for a test" }
"#;
}
