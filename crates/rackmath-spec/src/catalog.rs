//! The catalogue: everything with a name, embedded when the program was built, plus what a face adds.
//!
//! A name is an id (the file's stem), an alias, or a Hugging Face id. Names are compared without case and with `_` and
//! spaces as `-`, so `h200_sxm` finds `h200` and `RTX 4090` the card. A miss answers with the nearest names.

use crate::deduce::{DeducePriors, HostedModel, Policies};
use crate::engine::Version;
use crate::{
    AttentionKernels, Chip, Cited, ClarkLaw, Date, Engine, GemmKernels, Level, MemoryTier, Model, MoeKernels, Network,
    ScalingLaw, Scenario, SpecError, System, Topology, TrainingRun, TrainingStack, file, price, validation,
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
    pub text: Cow<'static, str>,
}

/// All models, chips, systems, networks, laws, kernels, price sheets and memory tiers.
#[derive(Clone, Debug)]
pub struct Catalog {
    models: Vec<Entry>,
    chips: Vec<Entry>,
    systems: Vec<Entry>,
    networks: Vec<Entry>,
    laws: Vec<Entry>,
    kernels: Vec<Entry>,
    engines: Vec<Entry>,
    validations: Vec<Entry>,
    prices: Vec<Entry>,
    tiers: Vec<Entry>,
    scenarios: Vec<Entry>,
    flags: Vec<Entry>,
    runs: Vec<Entry>,
    training: Vec<Entry>,
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
    name.trim().to_ascii_lowercase().replace(['_', ' '], "-")
}

impl Catalog {
    pub fn embedded() -> Self {
        Self {
            models: entries(embedded::MODELS),
            chips: entries(embedded::CHIPS),
            systems: entries(embedded::SYSTEMS),
            networks: entries(embedded::NETWORKS),
            laws: entries(embedded::LAWS),
            kernels: entries(embedded::KERNELS),
            engines: entries(embedded::ENGINES),
            validations: entries(embedded::VALIDATION),
            prices: entries(embedded::PRICES),
            tiers: entries(embedded::TIERS),
            scenarios: entries(embedded::SCENARIOS),
            flags: entries(embedded::FLAGS),
            runs: entries(embedded::RUNS),
            training: entries(embedded::TRAINING),
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

    pub fn model_ids(&self) -> impl Iterator<Item = &str> {
        self.models.iter().map(|e| &*e.id)
    }

    pub fn chip_ids(&self) -> impl Iterator<Item = &str> {
        self.chips.iter().map(|e| &*e.id)
    }

    pub fn system_ids(&self) -> impl Iterator<Item = &str> {
        self.systems.iter().map(|e| &*e.id)
    }

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
            Err(_) => {
                // A card may carry the sign of a multiple in its name: rtx4090 is one.
                let whole = find("chip", name, &self.chips).is_ok();
                let (n, chip) = if whole { (1, name) } else { multiple(name) };
                if find("chip", chip, &self.chips).is_ok() {
                    return self.chip(chip).map(|chip| of_chips(chip, n));
                }
                let mut names = all_names(&self.systems);
                names.extend(all_names(&self.chips));
                Err(SpecError::unknown_near("system or chip", name, chip, names.iter().map(String::as_str)))
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

    /// Adds a scaling-law file; it wins over an embedded one of the same id.
    pub fn add_law(&mut self, id: &str, text: &str) -> Result<(), SpecError> {
        file::scaling_law(id, text)?;
        self.laws.retain(|e| e.id != id);
        self.laws.push(owned(id, text));
        Ok(())
    }

    pub fn law_ids(&self) -> impl Iterator<Item = &str> {
        self.laws.iter().map(|e| &*e.id)
    }

    pub fn scaling_law(&self, name: &str) -> Result<ScalingLaw, SpecError> {
        let entry = find("scaling law", name, &self.laws)?;
        file::scaling_law(&entry.id, &entry.text)
    }

    /// Adds a published run; it wins over an embedded one of the same id.
    pub fn add_run(&mut self, id: &str, text: &str) -> Result<(), SpecError> {
        file::training_run(id, text)?;
        self.runs.retain(|e| e.id != id);
        self.runs.push(owned(id, text));
        Ok(())
    }

    pub fn run_ids(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().map(|e| &*e.id)
    }

    /// A published run by id or alias.
    pub fn training_run(&self, name: &str) -> Result<TrainingRun, SpecError> {
        let entry = find("training run", name, &self.runs)?;
        file::training_run(&entry.id, &entry.text)
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

    pub fn engine_ids(&self) -> impl Iterator<Item = &str> {
        self.engines.iter().map(|e| &*e.id)
    }

    /// Adds an engine file; it wins over an embedded one of the same id.
    pub fn add_engine(&mut self, id: &str, text: &str) -> Result<(), SpecError> {
        file::engine(id, text)?;
        self.engines.retain(|e| e.id != id);
        self.engines.push(owned(id, text));
        Ok(())
    }

    /// An engine by id or alias, or by name and version: `vllm`, `vllm@0.19.0`. With it comes what had to be assumed, where
    /// no family covers the version.
    pub fn engine(&self, name: &str) -> Result<(Engine, Option<String>), SpecError> {
        let (word, version) = match name.split_once('@') {
            Some((word, version)) => (word, Some(version.parse::<Version>()?)),
            None => (name, None),
        };
        let entry = find("engine", word, &self.engines)?;
        let engine = file::engine(&entry.id, &entry.text)?;
        let Some(version) = version else { return Ok((engine, None)) };
        if engine.covers(version) {
            return Ok((engine, None));
        }
        for entry in &self.engines {
            let other = file::engine(&entry.id, &entry.text)?;
            if other.family == engine.family && other.covers(version) {
                return Ok((other, None));
            }
        }
        let note = format!("no family of {} covers version {version}; taken as {}", engine.family, engine.name);
        Ok((engine, Some(note)))
    }

    /// Ids of all tables of published measurements, in order.
    pub fn validation_ids(&self) -> impl Iterator<Item = &str> {
        self.validations.iter().map(|e| &*e.id)
    }

    /// A table of published measurements; its models and systems are names of this catalogue.
    pub fn validation(&self, name: &str) -> Result<validation::Table, SpecError> {
        let entry = find("table of measurements", name, &self.validations)?;
        let table = file::validation(&entry.id, &entry.text)?;
        table.check(|model| self.model(model).map(drop), |system| self.system(system).map(|s| s.n_chips))?;
        Ok(table)
    }

    /// Adds a price sheet, refused when it was checked after the day stated; it wins over an embedded one of the same id.
    pub fn add_price(&mut self, id: &str, text: &str, known_by: Option<Date>) -> Result<(), SpecError> {
        file::price(id, text, known_by)?;
        self.prices.retain(|e| e.id != id);
        self.prices.push(owned(id, text));
        Ok(())
    }

    /// Adds a memory tier; it wins over an embedded one of the same id.
    pub fn add_tier(&mut self, id: &str, text: &str) -> Result<(), SpecError> {
        file::memory_tier(id, text)?;
        self.tiers.retain(|e| e.id != id);
        self.tiers.push(owned(id, text));
        Ok(())
    }

    pub fn price_ids(&self) -> impl Iterator<Item = &str> {
        self.prices.iter().map(|e| &*e.id)
    }

    pub fn tier_ids(&self) -> impl Iterator<Item = &str> {
        self.tiers.iter().map(|e| &*e.id)
    }

    /// What a provider charges for a model, by id or alias.
    pub fn price(&self, name: &str) -> Result<price::Sheet, SpecError> {
        let entry = find("price sheet", name, &self.prices)?;
        file::price(&entry.id, &entry.text, None)
    }

    /// Ids of all named workloads, in order.
    pub fn scenario_ids(&self) -> impl Iterator<Item = &str> {
        self.scenarios.iter().map(|e| &*e.id)
    }

    /// A named workload by id or alias.
    pub fn scenario(&self, name: &str) -> Result<Scenario, SpecError> {
        let entry = find("scenario", name, &self.scenarios)?;
        file::scenario(&entry.id, &entry.text)
    }

    pub fn flag_list_ids(&self) -> impl Iterator<Item = &str> {
        self.flags.iter().map(|e| &*e.id)
    }

    pub fn flag_list(&self, name: &str) -> Result<crate::command::FlagList, SpecError> {
        let entry = find("list of flags", name, &self.flags)?;
        file::flag_list(&entry.id, &entry.text)
    }

    pub fn tier(&self, name: &str) -> Result<MemoryTier, SpecError> {
        let entry = find("memory tier", name, &self.tiers)?;
        file::memory_tier(&entry.id, &entry.text)
    }

    /// A training program by id or alias.
    pub fn training_stack(&self, name: &str) -> Result<TrainingStack, SpecError> {
        let entry = find("training stack", name, &self.training)?;
        file::training(&entry.id, &entry.text)
    }

    pub fn training_stack_ids(&self) -> impl Iterator<Item = &str> {
        self.training.iter().map(|e| &*e.id)
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
