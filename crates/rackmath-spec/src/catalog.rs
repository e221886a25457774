//! The catalogue: everything with a name, on one shelf per kind; what a face adds wins over what was there.

use crate::command::FlagList;
use crate::deduce::{DeducePriors, HostedModel, Level as DeduceLevel, Policies};
use crate::engine::Version;
use crate::shelf::{Files, Shelf};
use crate::system::SCALE_OUT;
use crate::{
    AttentionKernels, Chip, Cited, ClarkLaw, Date, Engine, GemmKernels, LawForm, Level, MemoryTier, Model, MoeKernels,
    Network, ScalingLaw, Scenario, SpecError, System, Topology, TrainingRun, TrainingStack, file, price, validation,
};
use rackmath_units::{ByteRate, Bytes};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::sync::Arc;
use strum::{EnumIter, EnumString, IntoStaticStr};

/// What a file of the catalogue describes. The words are the names of its folders; each kind refers only to earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, EnumIter, EnumString, IntoStaticStr, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Kind {
    Chips,
    Systems,
    Models,
    Networks,
    Kernels,
    Engines,
    Laws,
    Prices,
    Tiers,
    Scenarios,
    Flags,
    Runs,
    Training,
    Deduce,
    Validation,
}

impl Kind {
    /// What a text is, told by what only such a file has; a model where nothing tells.
    pub fn of(text: &str) -> Self {
        const SIGNS: [(&str, Kind); 14] = [
            ("source.name", Kind::Validation),
            ("n_chips", Kind::Systems),
            ("[[list]]", Kind::Prices),
            ("dropout", Kind::Training),
            ("[memory]", Kind::Chips),
            ("capacity", Kind::Tiers),
            ("[schedule]", Kind::Engines),
            ("[library]", Kind::Networks),
            ("[coefficients]", Kind::Laws),
            ("[router", Kind::Laws),
            ("input_tokens", Kind::Scenarios),
            ("flags", Kind::Flags),
            ("[config", Kind::Models),
            ("chip = ", Kind::Runs),
        ];
        if text.trim_start().starts_with('{') {
            return Self::Models;
        }
        let has = |sign: &str| text.lines().any(|line| line.trim_start().starts_with(sign));
        SIGNS.into_iter().find(|(sign, _)| has(sign)).map_or(Self::Models, |(_, kind)| kind)
    }
}

/// What tells machines apart before they are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Brief {
    pub vendor: String,
    /// Memory of a chip, as a program can have it.
    pub size: Bytes,
    pub bandwidth: ByteRate,
    pub n_chips: u64,
    /// Whether a price of its chip is known.
    pub priced: bool,
}

#[derive(Deserialize)]
struct SystemFile<'a> {
    #[serde(borrow)]
    chip: Cow<'a, str>,
    n_chips: u64,
}

#[derive(Deserialize)]
struct ChipFile<'a> {
    #[serde(borrow)]
    vendor: Cow<'a, str>,
    memory: MemoryTable,
    #[serde(default)]
    price: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct MemoryTable {
    capacity: Value<Bytes>,
    usable: Option<Value<Bytes>>,
    bandwidth: Value<ByteRate>,
}

#[derive(Deserialize)]
struct Value<T> {
    value: T,
}

/// Cheap to clone: clones share what was read.
#[derive(Clone, Debug)]
pub struct Catalog {
    models: Shelf<Model>,
    chips: Shelf<Chip>,
    systems: Shelf<System>,
    networks: Shelf<Network>,
    laws: Shelf<ScalingLaw>,
    gemm: Shelf<GemmKernels>,
    attention: Shelf<AttentionKernels>,
    moe: Shelf<MoeKernels>,
    engines: Shelf<Engine>,
    validations: Shelf<validation::Table>,
    prices: Shelf<price::Sheet>,
    tiers: Shelf<MemoryTier>,
    scenarios: Shelf<Scenario>,
    flags: Shelf<FlagList>,
    runs: Shelf<TrainingRun>,
    training: Shelf<TrainingStack>,
    priors: Shelf<DeducePriors>,
    level: Shelf<DeduceLevel>,
    policies: Shelf<Policies>,
    hosts: Shelf<Vec<HostedModel>>,
}

impl Default for Catalog {
    /// Empty shelves.
    fn default() -> Self {
        Self {
            models: Shelf::new(Kind::Models, "model", |id, text, _| file::model(id, text)),
            chips: Shelf::new(Kind::Chips, "chip", |id, text, _| file::chip(id, text)),
            systems: Shelf::new(Kind::Systems, "system or chip", |id, text, c| {
                file::system(id, text, |chip| c.chip(chip))
            }),
            networks: Shelf::new(Kind::Networks, "network", |id, text, _| file::network(id, text)),
            laws: Shelf::new(Kind::Laws, "scaling law", |id, text, _| file::scaling_law(id, text)),
            gemm: Shelf::new(Kind::Kernels, "kernel", |id, text, _| file::gemm_kernels(id, text)).only(&["gemm"]),
            attention: Shelf::new(Kind::Kernels, "kernel", |id, text, _| file::attention(id, text))
                .only(&["attention", "mla"]),
            moe: Shelf::new(Kind::Kernels, "kernel", |id, text, _| file::moe_kernels(id, text)).only(&["moe"]),
            engines: Shelf::new(Kind::Engines, "engine", |id, text, _| file::engine(id, text)),
            validations: Shelf::new(Kind::Validation, "table of measurements", |id, text, c| {
                let table = file::validation(id, text)?;
                table.check(|model| c.model(model).map(drop), |system| c.system(system).map(|s| s.n_chips))?;
                Ok(table)
            }),
            prices: Shelf::new(Kind::Prices, "price sheet", |id, text, _| file::price(id, text, None)),
            tiers: Shelf::new(Kind::Tiers, "memory tier", |id, text, _| file::memory_tier(id, text)),
            scenarios: Shelf::new(Kind::Scenarios, "scenario", |id, text, _| file::scenario(id, text)),
            flags: Shelf::new(Kind::Flags, "list of flags", |id, text, _| file::flag_list(id, text)),
            runs: Shelf::new(Kind::Runs, "training run", |id, text, _| file::training_run(id, text)),
            training: Shelf::new(Kind::Training, "training stack", |id, text, _| file::training(id, text)),
            priors: Shelf::new(Kind::Deduce, "deduction file", |_, text, c| {
                file::deduce_priors(text, *c.level.get("level", c)?, |id| c.chip(id))
            })
            .only(&["priors"]),
            level: Shelf::new(Kind::Deduce, "deduction file", |_, text, _| file::deduce_level(text)).only(&["level"]),
            policies: Shelf::new(Kind::Deduce, "deduction file", |_, text, _| file::deduce_policies(text))
                .only(&["policies"]),
            hosts: Shelf::new(Kind::Deduce, "deduction file", |_, text, _| file::hosted_models(text)).only(&["hosts"]),
        }
    }
}

impl Catalog {
    /// Puts files (id, text, packed) on their shelf unread; their ids differ from each other and from those there.
    pub fn put(
        &mut self,
        kind: Kind,
        files: &[(&'static str, &'static str, Option<&'static str>)],
    ) -> Result<(), SpecError> {
        files.iter().try_for_each(|(id, text, packed)| {
            self.shelf_mut(kind, id).map(|shelf| shelf.put((*id).into(), (*text).into(), *packed))
        })
    }

    pub(crate) fn put_text(&mut self, kind: Kind, id: &str, text: &str) -> Result<(), SpecError> {
        self.shelf_mut(kind, id).map(|shelf| shelf.put(id.to_owned().into(), text.to_owned().into(), None))
    }

    /// Adds a file a person handed in, read at once; it wins over one of the same id. A price sheet checked after
    /// `today`, where that is known, is refused.
    pub fn add(&mut self, kind: Kind, id: &str, text: &str, today: Option<Date>) -> Result<(), SpecError> {
        if kind == Kind::Prices {
            file::price(id, text, today)?;
        }
        let mut with = self.clone();
        with.shelf_mut(kind, id)?.remove(id);
        with.put_text(kind, id, text)?;
        // These refer to what may have changed.
        with.systems.forget();
        with.validations.forget();
        with.priors.forget();
        for shelf in with.shelves(kind).filter(|shelf| shelf.holds(id)) {
            shelf.check(id, &with)?;
        }
        *self = with;
        Ok(())
    }

    /// Ids of all files of a kind, in order.
    pub fn ids(&self, kind: Kind) -> impl Iterator<Item = &str> {
        self.shelves(kind).flat_map(|shelf| shelf.ids())
    }

    /// The names a file answers to beside its id: its aliases and its Hugging Face id.
    pub fn names(&self, kind: Kind, name: &str) -> Vec<&str> {
        self.shelves(kind).flat_map(|shelf| shelf.names(name)).collect()
    }

    /// Every file of a kind: its id and its text.
    pub fn files(&self, kind: Kind) -> impl Iterator<Item = (&str, &str)> {
        self.shelves(kind).flat_map(|shelf| shelf.files())
    }

    fn shelves(&self, kind: Kind) -> impl Iterator<Item = &dyn Files> {
        let all: [&dyn Files; 20] = [
            &self.models,
            &self.chips,
            &self.systems,
            &self.networks,
            &self.laws,
            &self.attention,
            &self.gemm,
            &self.moe,
            &self.engines,
            &self.validations,
            &self.prices,
            &self.tiers,
            &self.scenarios,
            &self.flags,
            &self.runs,
            &self.training,
            &self.hosts,
            &self.level,
            &self.policies,
            &self.priors,
        ];
        all.into_iter().filter(move |shelf| shelf.kind() == kind)
    }

    fn shelf_mut(&mut self, kind: Kind, id: &str) -> Result<&mut dyn Files, SpecError> {
        let all: [&mut dyn Files; 20] = [
            &mut self.models,
            &mut self.chips,
            &mut self.systems,
            &mut self.networks,
            &mut self.laws,
            &mut self.attention,
            &mut self.gemm,
            &mut self.moe,
            &mut self.engines,
            &mut self.validations,
            &mut self.prices,
            &mut self.tiers,
            &mut self.scenarios,
            &mut self.flags,
            &mut self.runs,
            &mut self.training,
            &mut self.hosts,
            &mut self.level,
            &mut self.policies,
            &mut self.priors,
        ];
        let mut valid = Vec::new();
        for shelf in all {
            if shelf.kind() != kind {
                continue;
            }
            if shelf.only().is_empty() || shelf.only().contains(&id) {
                return Ok(shelf);
            }
            valid.extend(shelf.only());
        }
        Err(SpecError::unknown("file of this kind", id, valid.into_iter()))
    }

    pub fn model(&self, name: &str) -> Result<Arc<Model>, SpecError> {
        self.models.get(name, self)
    }

    pub fn chip(&self, name: &str) -> Result<Arc<Chip>, SpecError> {
        self.chips.get(name, self)
    }

    /// A system by id or alias; a chip by itself; or so many chips, written `8xh200` or `h200x8`.
    pub fn system(&self, name: &str) -> Result<Arc<System>, SpecError> {
        if self.systems.holds(name) {
            return self.systems.get(name, self);
        }
        // A card may carry the sign of a multiple in its name: rtx4090 is one.
        let (n, chip) = if self.chips.holds(name) { (1, name) } else { multiple(name) };
        if self.chips.holds(chip) {
            return self.chip(chip).map(|chip| Arc::new(of_chips(chip, n)));
        }
        let names = self.systems.all_names().into_iter().chain(self.chips.all_names());
        Err(SpecError::unknown_near("system or chip", name, chip, names))
    }

    /// A system's chips in brief: most of its file and of its chip's is passed over.
    pub fn brief(&self, system: &str) -> Result<Brief, SpecError> {
        let file: SystemFile = self.systems.part(system)?;
        let chip: ChipFile = self.chips.part(&file.chip)?;
        let (memory, n_chips, priced) = (chip.memory, file.n_chips, !chip.price.is_empty());
        let size = memory.usable.unwrap_or(memory.capacity).value;
        Ok(Brief { vendor: chip.vendor.into(), size, bandwidth: memory.bandwidth.value, n_chips, priced })
    }

    /// The constants of a kind of link, such as a chip's `link.kind`.
    pub fn network(&self, kind: &str) -> Result<Arc<Network>, SpecError> {
        self.networks.get(kind, self)
    }

    pub fn scaling_law(&self, name: &str) -> Result<Arc<ScalingLaw>, SpecError> {
        self.laws.get(name, self)
    }

    /// The routed-model laws, one per router.
    pub fn clark_laws(&self) -> Result<Vec<ClarkLaw>, SpecError> {
        match &self.scaling_law("clark-2022")?.form {
            LawForm::Routed(laws) => Ok(laws.clone()),
            other => Err(SpecError::unknown("form of clark-2022", other.name(), ["routed"].into_iter())),
        }
    }

    pub fn training_run(&self, name: &str) -> Result<Arc<TrainingRun>, SpecError> {
        self.runs.get(name, self)
    }

    pub fn moe_kernels(&self) -> Result<Arc<MoeKernels>, SpecError> {
        self.moe.get("moe", self)
    }

    pub fn gemm_kernels(&self) -> Result<Arc<GemmKernels>, SpecError> {
        self.gemm.get("gemm", self)
    }

    /// The kernels of grouped-query and multi-head attention.
    pub fn attention_kernels(&self) -> Result<Arc<AttentionKernels>, SpecError> {
        self.attention.get("attention", self)
    }

    /// The kernels of multi-head latent attention.
    pub fn mla_kernels(&self) -> Result<Arc<AttentionKernels>, SpecError> {
        self.attention.get("mla", self)
    }

    /// An engine by id or alias, or by name and version: `vllm`, `vllm@0.19.0`. With it comes the
    /// version, where no family covers it.
    pub fn engine(&self, name: &str) -> Result<(Arc<Engine>, Option<Version>), SpecError> {
        let (word, version) = match name.split_once('@') {
            Some((word, version)) => (word, Some(version.parse::<Version>()?)),
            None => (name, None),
        };
        let engine = self.engines.get(word, self)?;
        let Some(version) = version else { return Ok((engine, None)) };
        if engine.covers(version) {
            return Ok((engine, None));
        }
        for id in self.ids(Kind::Engines) {
            let other = self.engines.get(id, self)?;
            if other.family == engine.family && other.covers(version) {
                return Ok((other, None));
            }
        }
        Ok((engine, Some(version)))
    }

    /// A table of published measurements; its models and systems are names of this catalogue.
    pub fn validation(&self, name: &str) -> Result<Arc<validation::Table>, SpecError> {
        self.validations.get(name, self)
    }

    /// What a provider charges for a model.
    pub fn price(&self, name: &str) -> Result<Arc<price::Sheet>, SpecError> {
        self.prices.get(name, self)
    }

    pub fn scenario(&self, name: &str) -> Result<Arc<Scenario>, SpecError> {
        self.scenarios.get(name, self)
    }

    pub fn flag_list(&self, name: &str) -> Result<Arc<FlagList>, SpecError> {
        self.flags.get(name, self)
    }

    pub fn tier(&self, name: &str) -> Result<Arc<MemoryTier>, SpecError> {
        self.tiers.get(name, self)
    }

    pub fn training_stack(&self, name: &str) -> Result<Arc<TrainingStack>, SpecError> {
        self.training.get(name, self)
    }

    /// What is known of a model before its price is looked at.
    pub fn deduce_priors(&self) -> Result<Arc<DeducePriors>, SpecError> {
        self.priors.get("priors", self)
    }

    /// Which price ratios are policy, by vendor.
    pub fn policies(&self) -> Result<Arc<Policies>, SpecError> {
        self.policies.get("policies", self)
    }

    /// What hosts charge for open-weight models.
    pub fn hosted_models(&self) -> Result<Arc<Vec<HostedModel>>, SpecError> {
        self.hosts.get("hosts", self)
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
fn of_chips(chip: Arc<Chip>, n: u64) -> System {
    let level = |name: &str, chips: u64, bandwidth: &Cited<ByteRate>, topology: Topology| Level {
        name: name.to_owned(),
        link: name.to_owned(),
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
            levels.push(level(SCALE_OUT, 100_000, out, Topology::Switched));
        }
    }
    let (id, name) = match n {
        1 => (chip.id.clone(), chip.name.clone()),
        n => (format!("{n}x{}", chip.id), format!("{n} x {}", chip.name)),
    };
    System { id, name, chip, n_chips: n, levels, power: None, facts: Vec::new() }
}
