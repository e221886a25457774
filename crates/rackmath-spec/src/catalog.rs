//! The catalogue: everything with a name, on one shelf per kind; what a face adds wins over what was there.

use crate::acceptance::Acceptances;
use crate::chip::Memory;
use crate::command::FlagList;
use crate::deduce::{DeducePriors, HostedModel, Level as DeduceLevel, Policies};
use crate::draw::PowerDraw;
use crate::engine::Version;
use crate::error::nearest;
use crate::mig::{self, Parts};
use crate::model::{Body, Formats};
use crate::naming::{NameRules, shorter, unsold};
use crate::shelf::{Files, Shelf, Thing, shelf};
use crate::system::{SCALE_OUT, topology};
use crate::{
    AttentionKernels, Chip, ChipFamilies, Cited, ClarkLaw, Date, Dtype, Engine, EngineSupport, Failures, GemmKernels,
    LawForm, Level, MemoryTier, Model, MoeKernels, Network, QualityWords, RouterRules, ScalingLaw, Scenario,
    SmallKernels, SpecError, System, Topology, TrainingRun, TrainingStack, evidence, file, name, price, validation,
};
use rackmath_units::{ByteRate, Bytes};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeSet;
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
    Support,
    Routers,
    Laws,
    Prices,
    Tiers,
    Scenarios,
    Flags,
    Runs,
    Training,
    Deduce,
    Validation,
    Evidence,
}

impl Kind {
    /// What a text is, told by what only such a file has; a model where nothing tells.
    pub fn of(text: &str) -> Self {
        const SIGNS: [(&str, Kind); 26] = [
            ("[[machine]]", Kind::Support),
            ("[[part]]", Kind::Support),
            ("[[accepted]]", Kind::Support),
            ("elsewhere", Kind::Support),
            ("[[family]]", Kind::Support),
            ("[[format]]", Kind::Support),
            ("[[seen]]", Kind::Support),
            ("byte_pj", Kind::Support),
            ("source.name", Kind::Validation),
            ("n_chips", Kind::Systems),
            ("[[list]]", Kind::Prices),
            ("dropout", Kind::Training),
            ("[memory]", Kind::Chips),
            ("capacity", Kind::Tiers),
            ("[schedule]", Kind::Engines),
            ("load_bound", Kind::Routers),
            ("prefix_weight", Kind::Routers),
            ("overlap_credit", Kind::Routers),
            ("keep_alive_s", Kind::Routers),
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
    seen: Option<Value<Bytes>>,
    bandwidth: Value<ByteRate>,
}

#[derive(Deserialize)]
struct Value<T> {
    value: T,
}

/// Cheap to clone: clones share what was read.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// One for each type of thing; those of one kind in the order of their files.
    shelves: Vec<Box<dyn Files>>,
}

impl Default for Catalog {
    /// Empty shelves.
    fn default() -> Self {
        let shelves = vec![
            shelf(Kind::Models, "model", &[], |id, text, _| file::model(id, text)),
            shelf(Kind::Chips, "chip", &[], |id, text, _| file::chip(id, text)),
            shelf(Kind::Systems, "system or chip", &[], |id, text, c| file::system(id, text, |chip| c.chip(chip))),
            shelf(Kind::Networks, "network", &[], |id, text, _| file::network(id, text)),
            shelf(Kind::Laws, "scaling law", &[], |id, text, _| file::scaling_law(id, text)),
            shelf(Kind::Kernels, "kernel", &["attention", "mla"], |id, text, _| file::attention(id, text)),
            shelf(Kind::Kernels, "kernel", &["gemm"], |id, text, _| file::gemm_kernels(id, text)),
            shelf(Kind::Kernels, "kernel", &["moe"], |id, text, _| file::moe_kernels(id, text)),
            shelf(Kind::Kernels, "kernel", &["small"], |id, text, _| file::small_kernels(id, text)),
            shelf(Kind::Engines, "engine", &[], |id, text, _| file::engine(id, text)),
            shelf(Kind::Support, "families of chips", &["families"], |id, text, _| file::chip_families(id, text)),
            shelf(Kind::Support, "words on quality", &["quality"], |id, text, _| file::quality_words(id, text)),
            shelf(Kind::Support, "rates of failures", &["failures"], |id, text, _| file::failures(id, text)),
            shelf(Kind::Support, "rules of names", &["names"], |id, text, _| file::name_rules(id, text)),
            shelf(Kind::Support, "what chips draw", &["power"], |id, text, _| file::power_draw(id, text)),
            shelf(Kind::Support, "parts of chips", &["mig"], |id, text, _| file::parts(id, text)),
            shelf(Kind::Support, "how often guesses hold", &["acceptance"], |id, text, _| file::acceptances(id, text)),
            shelf(Kind::Support, "what an engine supports", &[], |id, text, c| {
                file::engine_support(id, text, &*c.chip_families()?)
            }),
            shelf(Kind::Routers, "router", &[], |id, text, _| file::router_rules(id, text)),
            shelf(Kind::Validation, "table of measurements", &[], |id, text, c| {
                let table = file::validation(id, text)?;
                table.check(|model| c.model(model).map(drop), |system| c.system(system).map(|s| s.n_chips))?;
                Ok(table)
            }),
            shelf(Kind::Evidence, "table of widths", &["intervals"], |id, text, _| evidence::read(id, text)),
            shelf(Kind::Evidence, "constants fitted without a group", &["refits"], |id, text, _| {
                evidence::read_refits(id, text)
            }),
            shelf(Kind::Prices, "price sheet", &[], |id, text, _| file::price(id, text, None)),
            shelf(Kind::Tiers, "memory tier", &[], |id, text, _| file::memory_tier(id, text)),
            shelf(Kind::Scenarios, "scenario", &[], |id, text, _| file::scenario(id, text)),
            shelf(Kind::Flags, "list of flags", &[], |id, text, _| file::flag_list(id, text)),
            shelf(Kind::Runs, "training run", &[], |id, text, _| file::training_run(id, text)),
            shelf(Kind::Training, "training stack", &[], |id, text, _| file::training(id, text)),
            shelf(Kind::Deduce, "deduction file", &["hosts"], |_, text, _| file::hosted_models(text)),
            shelf(Kind::Deduce, "deduction file", &["level"], |_, text, _| file::deduce_level(text)),
            shelf(Kind::Deduce, "deduction file", &["policies"], |_, text, _| file::deduce_policies(text)),
            shelf(Kind::Deduce, "deduction file", &["priors"], |_, text, c| {
                file::deduce_priors(text, *c.get::<DeduceLevel>("level")?, |id| c.chip(id))
            }),
        ];
        Self { shelves }
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
        let refers = |kind| matches!(kind, Kind::Systems | Kind::Support | Kind::Validation | Kind::Deduce);
        with.shelves.iter_mut().filter(|shelf| refers(shelf.kind())).for_each(|shelf| shelf.forget());
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
        self.shelves.iter().filter(move |shelf| shelf.kind() == kind).map(|shelf| &**shelf)
    }

    fn shelf_mut(&mut self, kind: Kind, id: &str) -> Result<&mut dyn Files, SpecError> {
        let takes = |only: &[&str]| only.is_empty() || only.contains(&id);
        if let Some(at) = self.shelves.iter().position(|shelf| shelf.kind() == kind && takes(shelf.only())) {
            return Ok(&mut *self.shelves[at]);
        }
        let valid = self.shelves(kind).flat_map(Files::only).copied();
        Err(SpecError::unknown("file of this kind", id, valid))
    }

    /// The shelf of one type of thing.
    fn shelf<T: 'static>(&self) -> &Shelf<T> {
        let mut shelves = self.shelves.iter().map(|shelf| &**shelf as &dyn Any);
        shelves.find_map(|shelf| shelf.downcast_ref()).expect("every type of thing has its shelf")
    }

    pub(crate) fn get<T: Thing>(&self, name: &str) -> Result<Arc<T>, SpecError> {
        self.shelf().get(name, self)
    }

    /// A model by a name of its own, or as [`name`] reads it; what was read is then said in its name and first note.
    pub fn model(&self, name: &str) -> Result<Arc<Model>, SpecError> {
        let (base, reading) = self.base(name)?;
        let rules = self.name_rules();
        let tokens = rules.context_of(name, &base);
        let mut model = match (reading, tokens) {
            (Some(reading), _) => reading.of(name, &base, &rules),
            (None, Some(_)) => Model::clone(&base),
            (None, None) => return Ok(base),
        };
        if let (Body::Layers(shape), Some(tokens)) = (&mut model.body, tokens) {
            shape.context_max = Some(tokens);
            // What takes other lengths goes by the name that was given, not by that of its sister.
            if model.name == base.name {
                model.name = format!("{} (\"{}\")", base.name, name.trim());
            }
            let tokens = rackmath_units::grouped(tokens as f64);
            model.notes.push(format!("\"{}\" takes up to {tokens} tokens, other than {}", name.trim(), base.name));
        }
        Ok(Arc::new(model))
    }

    /// Whether a name is of files of llama.cpp and says nothing of how wide their weights are.
    pub fn leaves_format_open(&self, name: &str) -> bool {
        !self.holds(Kind::Models, name) && name::leaves_format_open(name)
    }

    /// The longest sequence of a checkpoint, where its name tells it from a sister of the same shapes.
    pub fn context_of(&self, name: &str) -> Option<u64> {
        let (base, _) = self.base(name).ok()?;
        self.name_rules().context_of(name, &base)
    }

    /// The id that the checkpoint of a name is fetched by: the name itself where it has an owner, the model's own where it says no more than
    /// that, another that is known by it; else the name, which is then no id and for a person to complete.
    pub fn checkpoint(&self, name: &str, model: &Model) -> Option<String> {
        let (own, asked, rules) = (model.hf.as_deref()?, name.trim(), self.name_rules());
        let spelled = crate::naming::spelled;
        let same = |other: &str| spelled(other) == spelled(asked);
        if asked.contains('/') {
            return Some(if same(own) { own } else { asked }.to_owned());
        }
        let bare = |id: &&str| id.split_once('/').is_some_and(|(_, bare)| same(bare));
        let other = || self.shelf::<Model>().named().filter(|(id, _)| *id == model.id).map(|(_, own)| own).find(bare);
        let known = Some(own).filter(|own| same(&model.id) || bare(own));
        let known = known.or_else(|| rules.checkpoint(asked)).or_else(other);
        let known = known.or_else(|| Some(own).filter(|own| name::says_no_more(asked, &[own, &model.id], &rules)));
        Some(known.unwrap_or(asked).to_owned())
    }

    /// The model whose shapes a name stands for, with how the name was read where it is not the model's own.
    fn base(&self, name: &str) -> Result<(Arc<Model>, Option<name::Reading>), SpecError> {
        let shelf = self.shelf::<Model>();
        if shelf.holds(name) {
            return Ok((shelf.get(name, self)?, None));
        }
        let reading =
            name::read(name, shelf.named(), &self.name_rules()).map_err(|error| self.sold_only(name, error))?;
        Ok((shelf.get(&reading.id, self)?, Some(reading)))
    }

    /// A name that no model has: where a provider sells one by it, what is known here are its prices.
    fn sold_only(&self, name: &str, error: SpecError) -> SpecError {
        let sold = self.shelf::<price::Sheet>();
        let bare = name.rsplit('/').next().unwrap_or(name).trim();
        if !sold.holds(bare) {
            return self.unheard_of(name, error);
        }
        let hint = format!(
            "its shapes are not known here, its prices are: rackmath price {bare}, and what they suggest: rackmath deduce {bare}"
        );
        error.hint(hint)
    }

    /// The same with what it may be and what would do instead, where nothing here is near to it.
    fn unheard_of(&self, name: &str, error: SpecError) -> SpecError {
        // A person's slip of the finger is what is near; of an id with an owner nothing may be, however alike it is written.
        if error.hinted() && !name::two_stacked(name) {
            return error;
        }
        let hint = name::unheard_of(name);
        if !name::hears(name) {
            return error.hint(hint);
        }
        let ears = |model: &Model| {
            model
                .shape()
                .is_some_and(|shape| shape.towers.iter().any(|tower| tower.sense == crate::tower::Sense::Hearing))
        };
        let known: Vec<&str> =
            self.ids(Kind::Models).filter(|id| self.model(id).is_ok_and(|model| ears(&model))).collect();
        error.hint(format!("{hint}; known models that hear are {}", known.join(", ")))
    }

    /// The formats of a model's checkpoint in one format, as its makers write them: some leave attention, or all but routed
    /// experts, as it was.
    pub fn formats_in(&self, model: &Model, dtype: Dtype) -> Formats {
        let all = model.formats_in(dtype);
        model.shape().map_or(all, |shape| self.name_rules().kept(&shape.architecture, dtype, all))
    }

    /// What names say by custom; nothing where the catalogue has no such file.
    fn name_rules(&self) -> Arc<NameRules> {
        self.get("names").unwrap_or_default()
    }

    /// Whether a file of a kind has this name as its own.
    pub fn holds(&self, kind: Kind, name: &str) -> bool {
        self.shelves(kind).any(|shelf| shelf.holds(name))
    }

    /// A chip by id or alias; with other memory than its file has, where the name states a size that it is sold with.
    pub fn chip(&self, name: &str) -> Result<Arc<Chip>, SpecError> {
        let shelf = self.shelf::<Chip>();
        if !shelf.holds(name) {
            return self.shortened(name)?.map_or_else(|| self.get(name), Ok);
        }
        let chip = shelf.get(name, self)?;
        let stated = || shorter(name).into_iter().find_map(|(_, stated)| stated);
        if chip.memory.sold.is_empty() || chip.id == name {
            return Ok(chip);
        }
        Ok(stated().and_then(|gb| chip.with_memory(gb)).map_or(chip, Arc::new))
    }

    /// A chip whose full name has words that tell it from no other, or its memory. A card with other memory than was said is another
    /// card, unless it is sold with that as well.
    fn shortened(&self, name: &str) -> Result<Option<Arc<Chip>>, SpecError> {
        let shelf = self.shelf::<Chip>();
        for (shorter, stated) in shorter(name).into_iter().filter(|(shorter, _)| shelf.holds(shorter)) {
            let found = shelf.get(&shorter, self)?;
            let found = match stated {
                None => Some(found),
                Some(gb) => found.with_memory(gb).map(Arc::new),
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// A system by id or alias; a chip by itself; so many chips, written `8xh200` or `h200x8`; or what a cloud calls a machine.
    pub fn system(&self, name: &str) -> Result<Arc<System>, SpecError> {
        let name = unsold(name.trim());
        let (systems, chips) = (self.shelf::<System>(), self.shelf::<Chip>());
        if systems.holds(name) {
            return systems.get(name, self);
        }
        // A card may carry the sign of a multiple in its name: rtx4090 is one.
        let (n, chip) = if chips.holds(name) { (1, name) } else { multiple(name) };
        if chips.holds(chip) {
            return self.chip(chip).map(|chip| Arc::new(of_chips(chip, n)));
        }
        if let Some(part) = self.part(chip)? {
            return Ok(Arc::new(of_chips(part, n)));
        }
        if let Some(several) = self.instances(name, 1)? {
            return Ok(several);
        }
        if n > 1
            && let Some(several) = self.instances(unsold(chip), n)?
        {
            return Ok(several);
        }
        let whole = |(shorter, stated): &(String, Option<f64>)| n == 1 && stated.is_none() && systems.holds(shorter);
        if let Some((shorter, _)) = shorter(chip).iter().find(|name| whole(name)) {
            return systems.get(shorter, self);
        }
        if let Some(found) = self.shortened(chip)? {
            return Ok(Arc::new(of_chips(found, n)));
        }
        let names = systems.all_names().into_iter().chain(chips.all_names());
        let missing = SpecError::unknown_near("system or chip", name, chip, names.clone());
        // What is near keeps the count that was given, with its sign where that is missing: 8h100.
        let digits = chip.bytes().take_while(u8::is_ascii_digit).count();
        let (n, bare) = match chip[..digits].parse::<u64>() {
            Ok(own) if n == 1 && chips.holds(&chip[digits..]) => (own, &chip[digits..]),
            _ => (n, chip),
        };
        let near = nearest(bare, names);
        Err(match near.as_slice() {
            [] => missing.hint("rackmath chips and rackmath systems list them"),
            _ if n == 1 => missing,
            near => {
                let counted: Vec<String> = near.iter().map(|one| format!("\"{n}x{one}\"")).collect();
                missing.hint(format!("did you mean {}?", counted.join(" or ")))
            }
        })
    }

    /// So many of a host that a cloud rents under a name; none where no host is called that.
    fn instances(&self, name: &str, n: u64) -> Result<Option<Arc<System>>, SpecError> {
        let (chip, each) = match self.name_rules().machine(name) {
            Some((chip, each)) => (self.chip(chip)?, each),
            None if self.shelf::<System>().holds(name) => {
                let host = self.shelf::<System>().get(name, self)?;
                let Some(each) = host.rented else { return Ok(None) };
                (host.chip.clone(), each)
            }
            None => return Ok(None),
        };
        Ok(Some(Arc::new(System { rented: Some(each), ..of_chips(chip, n * each) })))
    }

    /// A system's chips in brief: most of its file and of its chip's is passed over.
    pub fn brief(&self, system: &str) -> Result<Brief, SpecError> {
        let file: SystemFile = self.shelf::<System>().part(system)?;
        let chip: ChipFile = self.shelf::<Chip>().part(&file.chip)?;
        let (memory, n_chips, priced) = (chip.memory, file.n_chips, !chip.price.is_empty());
        let value = |of: Option<Value<Bytes>>| of.map(|of| of.value);
        let size = Memory::size_of(value(memory.usable), value(memory.seen), memory.capacity.value);
        Ok(Brief { vendor: chip.vendor.into(), size, bandwidth: memory.bandwidth.value, n_chips, priced })
    }

    /// The constants of a kind of link, such as a chip's `link.kind`.
    pub fn network(&self, kind: &str) -> Result<Arc<Network>, SpecError> {
        self.get(kind)
    }

    pub fn scaling_law(&self, name: &str) -> Result<Arc<ScalingLaw>, SpecError> {
        self.get(name)
    }

    /// The routed-model laws, one per router.
    pub fn clark_laws(&self) -> Result<Vec<ClarkLaw>, SpecError> {
        match &self.scaling_law("clark-2022")?.form {
            LawForm::Routed(laws) => Ok(laws.clone()),
            other => Err(SpecError::unknown("form of clark-2022", other.name(), ["routed"].into_iter())),
        }
    }

    pub fn training_run(&self, name: &str) -> Result<Arc<TrainingRun>, SpecError> {
        self.get(name)
    }

    pub fn moe_kernels(&self) -> Result<Arc<MoeKernels>, SpecError> {
        self.get("moe")
    }

    /// Small kernels of indexes, compressed caches and residual streams.
    pub fn small_kernels(&self) -> Result<Arc<SmallKernels>, SpecError> {
        self.get("small")
    }

    pub fn gemm_kernels(&self) -> Result<Arc<GemmKernels>, SpecError> {
        self.get("gemm")
    }

    /// The kernels of grouped-query and multi-head attention.
    pub fn attention_kernels(&self) -> Result<Arc<AttentionKernels>, SpecError> {
        self.get("attention")
    }

    /// The kernels of multi-head latent attention.
    pub fn mla_kernels(&self) -> Result<Arc<AttentionKernels>, SpecError> {
        self.get("mla")
    }

    /// An engine by id or alias, or by name and version: `vllm`, `vllm@0.19.0`. With it comes the
    /// version, where no family covers it or it is newer than any that was looked at.
    pub fn engine(&self, name: &str) -> Result<(Arc<Engine>, Option<Version>), SpecError> {
        let (word, version) = match name.split_once('@') {
            Some((word, version)) => (word, Some(version.parse::<Version>()?)),
            None => (name, None),
        };
        if !self.holds(Kind::Engines, word) && nearest(word, self.ids(Kind::Engines)).is_empty() {
            let families: Result<BTreeSet<String>, SpecError> =
                self.ids(Kind::Engines).map(|id| Ok(self.get::<Engine>(id)?.family.clone())).collect();
            return Err(SpecError::unknown("engine", word, families?.iter().map(String::as_str)));
        }
        let engine = self.get::<Engine>(word)?;
        let Some(version) = version else { return Ok((engine, None)) };
        let known = |mut engine: Arc<Engine>| {
            let beyond = Some(version).filter(|version| !engine.knows(*version));
            Arc::make_mut(&mut engine).version = Some(version);
            (engine, beyond)
        };
        if engine.covers(version) {
            return Ok(known(engine));
        }
        for id in self.ids(Kind::Engines) {
            let other = self.get::<Engine>(id)?;
            if other.family == engine.family && other.covers(version) {
                return Ok(known(other));
            }
        }
        let (engine, _) = known(engine);
        Ok((engine, Some(version)))
    }

    /// Which chips engines treat alike.
    pub fn chip_families(&self) -> Result<Arc<ChipFamilies>, SpecError> {
        self.get("families")
    }

    /// What is lost in narrow formats.
    pub fn quality_words(&self) -> Result<Arc<QualityWords>, SpecError> {
        self.get("quality")
    }

    /// How often chips fail.
    pub fn failures(&self) -> Result<Arc<Failures>, SpecError> {
        self.get("failures")
    }

    /// What chips draw while they serve.
    pub fn power_draw(&self) -> Result<Arc<PowerDraw>, SpecError> {
        self.get("power")
    }

    /// The parts chips can be cut into.
    pub fn parts(&self) -> Result<Arc<Parts>, SpecError> {
        self.get("mig")
    }

    /// A part of a chip as a chip, such as `h100-mig-3g.40gb`; none where the name is not of that form.
    fn part(&self, name: &str) -> Result<Option<Arc<Chip>>, SpecError> {
        let Some((chip, part)) = mig::split(name) else { return Ok(None) };
        let parts = self.parts()?;
        let chip = if chip.is_empty() { parts.with_part(part).unwrap_or("h100-sxm") } else { chip };
        let whole = self.get::<Chip>(chip)?;
        let (of, profile) = parts.of(&whole.id, part)?;
        Ok(Some(Arc::new(mig::part(&whole, of, profile))))
    }

    /// How often the guesses of drafters hold.
    pub fn acceptances(&self) -> Result<Arc<Acceptances>, SpecError> {
        self.get("acceptance")
    }

    /// What a family of engines runs on; none where no file says.
    pub fn engine_support(&self, family: &str) -> Result<Option<Arc<EngineSupport>>, SpecError> {
        if self.shelf::<EngineSupport>().holds(family) { self.get(family).map(Some) } else { Ok(None) }
    }

    /// The numbers by which a program chooses among replicas.
    pub fn router(&self, name: &str) -> Result<Arc<RouterRules>, SpecError> {
        self.get(name)
    }

    /// A table of published measurements; its models and systems are names of this catalogue.
    pub fn validation(&self, name: &str) -> Result<Arc<validation::Table>, SpecError> {
        self.get(name)
    }

    /// What a provider charges for a model.
    pub fn price(&self, name: &str) -> Result<Arc<price::Sheet>, SpecError> {
        self.get(name)
    }

    pub fn scenario(&self, name: &str) -> Result<Arc<Scenario>, SpecError> {
        self.get(name)
    }

    pub fn flag_list(&self, name: &str) -> Result<Arc<FlagList>, SpecError> {
        self.get(name)
    }

    pub fn tier(&self, name: &str) -> Result<Arc<MemoryTier>, SpecError> {
        self.get(name)
    }

    pub fn training_stack(&self, name: &str) -> Result<Arc<TrainingStack>, SpecError> {
        self.get(name)
    }

    /// What is known of a model before its price is looked at.
    pub fn deduce_priors(&self) -> Result<Arc<DeducePriors>, SpecError> {
        self.get("priors")
    }

    /// Which price ratios are policy, by vendor.
    pub fn policies(&self) -> Result<Arc<Policies>, SpecError> {
        self.get("policies")
    }

    /// What hosts charge for open-weight models.
    pub fn hosted_models(&self) -> Result<Arc<Vec<HostedModel>>, SpecError> {
        self.get("hosts")
    }
}

/// "8xh200", "h200 x 8" and "8 H200s" as a count and a chip; a bare chip counts one.
fn multiple(name: &str) -> (u64, &str) {
    let name = name.trim();
    let count = |text: &str| text.trim().parse::<u64>().ok().filter(|n| (1..=1_000_000).contains(n));
    for sign in ['x', 'X', '*', '×'] {
        if let Some((n, chip)) = name.split_once(sign)
            && let Some(n) = count(n)
        {
            return (n, chip.trim());
        }
        // Blanks stand on both sides of a sign or on none: "RTX 3090" has no sign.
        if let Some((chip, n)) = name.rsplit_once(sign)
            && chip.ends_with(' ') == n.starts_with(' ')
            && let Some(n) = count(n)
        {
            return (n, chip.trim());
        }
    }
    match name.split_once(' ') {
        Some((n, chip)) if n.len() <= 2 && count(n).is_some() => {
            (count(n).unwrap_or(1), chip.strip_suffix('s').filter(|one| !one.ends_with("40")).unwrap_or(chip))
        }
        _ => (1, name),
    }
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
    // Chips that are sold alone meet on the data-centre network, unless they are cards of one host.
    let alone = chip.link.domain.value == 1 && !chip.link.kind.starts_with("pcie");
    if let Some(out) = chip.link.scale_out.as_ref().filter(|_| alone) {
        levels.push(level(SCALE_OUT, 100_000, out, Topology::Switched));
    } else if let Some(bandwidth) = &chip.link.scale_up {
        let joined = topology(&chip.link.kind);
        levels.push(level(&chip.link.kind, chip.link.domain.value.max(NODE), bandwidth, joined));
        if let Some(out) = &chip.link.scale_out {
            levels.push(level(SCALE_OUT, 100_000, out, Topology::Switched));
        }
    }
    let own = chip.memory.stated.map_or_else(|| chip.id.clone(), |gb| format!("{}-{gb}gb", chip.id));
    let (id, name) = match n {
        1 => (own, chip.name.clone()),
        n => (format!("{n}x{own}"), format!("{n} x {}", chip.name)),
    };
    System { id, name, chip, n_chips: n, rented: None, levels, rewired: false, power: None, facts: Vec::new() }
}
