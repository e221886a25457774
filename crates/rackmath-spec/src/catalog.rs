//! The catalogue: everything with a name, embedded when the program was built, plus what a face adds.
//!
//! A name is an id (the file's stem), an alias, or a Hugging Face id. Names are compared without case and with `_` as `-`,
//! so `h200_sxm` finds `h200`. A miss answers with the nearest names.

use crate::deduce::{DeducePriors, HostedModel, Policies};
use crate::error::nearest;
use crate::{
    AttentionKernels, Chip, Cited, ClarkLaw, GemmKernels, Level, Model, MoeKernels, Network, SpecError, System,
    Topology, file,
};
use rackmath_units::ByteRate;
use std::borrow::Cow;
use std::collections::BTreeMap;

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// The text of one catalogue file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The file's stem.
    pub id: Cow<'static, str>,
    /// Its text.
    pub text: Cow<'static, str>,
}

/// All models, chips, systems, networks, laws and kernels.
#[derive(Clone, Debug)]
pub struct Catalog {
    models: Vec<Entry>,
    chips: Vec<Entry>,
    systems: Vec<Entry>,
    networks: Vec<Entry>,
    laws: Vec<Entry>,
    kernels: Vec<Entry>,
    deduce: Vec<Entry>,
    given: Vec<Model>,
}

impl Default for Catalog {
    fn default() -> Self {
        Self::embedded()
    }
}

fn entries(list: &'static [(&'static str, &'static str)]) -> Vec<Entry> {
    list.iter().map(|(id, text)| Entry { id: Cow::Borrowed(id), text: Cow::Borrowed(text) }).collect()
}

fn owned(id: &str, text: &str) -> Entry {
    Entry { id: Cow::Owned(id.to_owned()), text: Cow::Owned(text.to_owned()) }
}

/// How names are compared.
fn key(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace('_', "-")
}

impl Catalog {
    /// The catalogue in the binary.
    pub fn embedded() -> Self {
        Self {
            models: entries(embedded::MODELS),
            chips: entries(embedded::CHIPS),
            systems: entries(embedded::SYSTEMS),
            networks: entries(embedded::NETWORKS),
            laws: entries(embedded::LAWS),
            kernels: entries(embedded::KERNELS),
            deduce: entries(embedded::DEDUCE),
            given: Vec::new(),
        }
    }

    /// Adds a model file; it wins over an embedded one of the same id.
    pub fn add_model(&mut self, id: &str, text: &str) -> Result<(), SpecError> {
        file::model(id, text)?;
        self.models.retain(|e| e.id != id);
        self.models.push(owned(id, text));
        Ok(())
    }

    /// Adds a model read from a `config.json`, found again by its id alone.
    pub fn add_config(&mut self, id: &str, text: &str) -> Result<(), SpecError> {
        let model = file::config_json(id, text)?;
        self.given.retain(|m| m.id != id);
        self.given.push(model);
        Ok(())
    }

    /// Adds a chip file; it wins over an embedded one of the same id.
    pub fn add_chip(&mut self, id: &str, text: &str) -> Result<(), SpecError> {
        file::chip(id, text)?;
        self.chips.retain(|e| e.id != id);
        self.chips.push(owned(id, text));
        Ok(())
    }

    /// Adds a system file; it wins over an embedded one of the same id.
    pub fn add_system(&mut self, id: &str, text: &str) -> Result<(), SpecError> {
        file::system(id, text, |chip| self.chip(chip))?;
        self.systems.retain(|e| e.id != id);
        self.systems.push(owned(id, text));
        Ok(())
    }

    /// Adds a network file; it wins over an embedded one of the same id.
    pub fn add_network(&mut self, id: &str, text: &str) -> Result<(), SpecError> {
        file::network(id, text)?;
        self.networks.retain(|e| e.id != id);
        self.networks.push(owned(id, text));
        Ok(())
    }

    /// Ids of all models, in order.
    pub fn model_ids(&self) -> impl Iterator<Item = &str> {
        self.models.iter().map(|e| &*e.id)
    }

    /// Ids of all chips, in order.
    pub fn chip_ids(&self) -> impl Iterator<Item = &str> {
        self.chips.iter().map(|e| &*e.id)
    }

    /// Ids of all systems, in order.
    pub fn system_ids(&self) -> impl Iterator<Item = &str> {
        self.systems.iter().map(|e| &*e.id)
    }

    /// Ids of all networks, in order.
    pub fn network_ids(&self) -> impl Iterator<Item = &str> {
        self.networks.iter().map(|e| &*e.id)
    }

    /// A model by id, alias or Hugging Face id.
    pub fn model(&self, name: &str) -> Result<Model, SpecError> {
        if let Some(model) = self.given.iter().find(|m| m.id == name) {
            return Ok(model.clone());
        }
        let entry = find("model", name, &self.models)?;
        file::model(&entry.id, &entry.text).map(|(model, _)| model)
    }

    /// A chip by id or alias.
    pub fn chip(&self, name: &str) -> Result<Chip, SpecError> {
        let entry = find("chip", name, &self.chips)?;
        file::chip(&entry.id, &entry.text).map(|(chip, _)| chip)
    }

    /// A system by id or alias; a chip by itself; or so many chips, written `8xh200` or `h200x8`.
    pub fn system(&self, name: &str) -> Result<System, SpecError> {
        match find("system or chip", name, &self.systems) {
            Ok(entry) => file::system(&entry.id, &entry.text, |chip| self.chip(chip)).map(|(system, _)| system),
            Err(missing) => {
                let (n, chip) = multiple(name);
                if find("chip", chip, &self.chips).is_ok() {
                    return self.chip(chip).map(|chip| of_chips(chip, n));
                }
                let SpecError::Unknown { kind, given, .. } = missing else { return Err(missing) };
                let names = all_names(&self.systems).into_iter().chain(all_names(&self.chips));
                let names: Vec<String> = names.collect();
                Err(SpecError::Unknown {
                    kind,
                    nearest: nearest(chip, names.iter().map(String::as_str)),
                    given,
                    valid: Vec::new(),
                })
            }
        }
    }

    /// The constants of a kind of link, such as a chip's `link.kind`, by id or alias.
    pub fn network(&self, kind: &str) -> Result<Network, SpecError> {
        let entry = find("network", kind, &self.networks)?;
        file::network(&entry.id, &entry.text).map(|(network, _)| network)
    }

    /// The routed-model laws, one per router.
    pub fn clark_laws(&self) -> Result<Vec<ClarkLaw>, SpecError> {
        let entry = find("law", "clark-2022", &self.laws)?;
        file::clark_laws(&entry.id, &entry.text)
    }

    /// What expert kernels reach, by family, format and generation.
    pub fn moe_kernels(&self) -> Result<MoeKernels, SpecError> {
        let entry = find("kernel", "moe", &self.kernels)?;
        file::moe_kernels(&entry.id, &entry.text)
    }

    /// The kernels of matrix products.
    pub fn gemm_kernels(&self) -> Result<GemmKernels, SpecError> {
        let entry = find("kernel", "gemm", &self.kernels)?;
        file::gemm_kernels(&entry.id, &entry.text)
    }

    /// The kernels of grouped-query and multi-head attention.
    pub fn attention_kernels(&self) -> Result<AttentionKernels, SpecError> {
        let entry = find("kernel", "attention", &self.kernels)?;
        file::attention(&entry.id, &entry.text)
    }

    /// The kernels of multi-head latent attention.
    pub fn mla_kernels(&self) -> Result<AttentionKernels, SpecError> {
        let entry = find("kernel", "mla", &self.kernels)?;
        file::attention(&entry.id, &entry.text)
    }

    /// What is known of a model before its price is looked at.
    pub fn deduce_priors(&self) -> Result<DeducePriors, SpecError> {
        let priors = find("deduction file", "priors", &self.deduce)?;
        let level = find("deduction file", "level", &self.deduce)?;
        file::deduce_priors(&priors.text, &level.text, |id| self.chip(id))
    }

    /// Which price ratios are policy, by vendor.
    pub fn policies(&self) -> Result<Policies, SpecError> {
        file::deduce_policies(&find("deduction file", "policies", &self.deduce)?.text)
    }

    /// What hosts charge for open-weight models.
    pub fn hosted_models(&self) -> Result<Vec<HostedModel>, SpecError> {
        file::hosted_models(&find("deduction file", "hosts", &self.deduce)?.text)
    }

    /// Every name a file answers to, by id: its aliases and its Hugging Face id.
    pub fn names_of_models(&self) -> BTreeMap<String, Vec<String>> {
        self.models.iter().map(|e| (e.id.to_string(), names(e))).collect()
    }

    /// Every name a chip answers to, by id.
    pub fn names_of_chips(&self) -> BTreeMap<String, Vec<String>> {
        self.chips.iter().map(|e| (e.id.to_string(), names(e))).collect()
    }
}

/// "8xh200" and "h200x8" as a count and a chip; a bare chip counts one.
fn multiple(name: &str) -> (u64, &str) {
    let name = name.trim();
    let count = |text: &str| text.parse::<u64>().ok().filter(|n| (1..=1_000_000).contains(n));
    for sign in ['x', 'X', '*', '×'] {
        if let Some((n, chip)) = name.split_once(sign)
            && let Some(n) = count(n)
        {
            return (n, chip);
        }
        if let Some((chip, n)) = name.rsplit_once(sign)
            && let Some(n) = count(n)
        {
            return (n, chip);
        }
    }
    (1, name)
}

/// Chips of a node, where a chip's own scale-up domain is smaller: cards on a PCIe tree or in bridged pairs.
const NODE: u64 = 8;

/// So many chips joined by their own scale-up links up to their domain, and by the data-centre network beyond.
fn of_chips(chip: Chip, n: u64) -> System {
    let level = |name: &str, chips: u64, bandwidth: &Cited<ByteRate>, topology: Topology| Level {
        name: name.to_owned(),
        chips,
        bandwidth: bandwidth.clone(),
        topology,
        dims: if topology == Topology::Torus { vec![chips] } else { Vec::new() },
        nics_per_chip: None,
        oversubscription: 1.0,
    };
    let mut levels = Vec::new();
    if let Some(bandwidth) = &chip.link.scale_up {
        let topology = match chip.link.kind.as_str() {
            "infinity-fabric" => Topology::Mesh,
            "ici" => Topology::Torus,
            kind if kind.starts_with("pcie") => Topology::Pcie,
            _ => Topology::Switched,
        };
        levels.push(level(&chip.link.kind, chip.link.domain.value.max(NODE), bandwidth, topology));
        if let Some(out) = &chip.link.scale_out {
            levels.push(level("scale-out", 100_000, out, Topology::Switched));
        }
    }
    let (id, name) = match n {
        1 => (chip.id.clone(), chip.name.clone()),
        n => (format!("{n}x{}", chip.id), format!("{n} x {}", chip.name)),
    };
    System { id, name, chip, n_chips: n, levels, power: None, facts: Vec::new() }
}

/// Finds by id first, which needs no parsing, then by the other names.
fn find<'a>(kind: &'static str, name: &str, entries: &'a [Entry]) -> Result<&'a Entry, SpecError> {
    let wanted = key(name);
    if let Some(entry) = entries.iter().rev().find(|e| key(&e.id) == wanted) {
        return Ok(entry);
    }
    if let Some(entry) = entries.iter().rev().find(|e| names(e).iter().any(|n| key(n) == wanted)) {
        return Ok(entry);
    }
    let names = all_names(entries);
    Err(SpecError::unknown(kind, name, names.iter().map(String::as_str)))
}

fn all_names(entries: &[Entry]) -> Vec<String> {
    entries.iter().flat_map(|e| std::iter::once(e.id.to_string()).chain(names(e))).collect()
}

/// The `aliases` and `hf` of a file, from its head: the lines before the first table.
fn names(entry: &Entry) -> Vec<String> {
    let head = entry.text.split("\n[").next().unwrap_or("");
    let Ok(table) = head.parse::<toml::Table>() else { return Vec::new() };
    let aliases = table.get("aliases").and_then(toml::Value::as_array);
    let aliases = aliases.into_iter().flatten().filter_map(toml::Value::as_str).map(str::to_owned);
    aliases.chain(table.get("hf").and_then(toml::Value::as_str).map(str::to_owned)).collect()
}
