//! What runs where: which engine runs on which family of chips, from and until which version, in which formats.
//!
//! A family is what engines ask for (a compute capability, a generation of TPUs), which is finer than a chip's generation.
//! What a file does not name is unknown, neither yes nor no; every no has a source of its own.

use crate::engine::Version;
use crate::file::noun::{noun, text_or_none};
use crate::model::{Mixer, Shape, Span};
use crate::{Chip, Dtype, Gguf, Layout, SpecError};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// Chips that engines treat alike.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChipFamily {
    pub id: String,
    pub name: String,
    /// Generations all of whose chips belong to it.
    #[serde(default)]
    pub generations: Vec<String>,
    /// Chips that belong to it, of generations that engines split.
    #[serde(default)]
    pub chips: Vec<String>,
}

/// Every family.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChipFamilies {
    #[serde(rename = "family")]
    pub all: Vec<ChipFamily>,
}

impl ChipFamilies {
    /// The family of a chip; none where the chip is nobody's and its generation is split or unknown.
    pub fn of(&self, chip: &Chip) -> Option<&ChipFamily> {
        let named = self.all.iter().find(|f| f.chips.contains(&chip.id));
        named.or_else(|| self.all.iter().find(|f| f.generations.contains(&chip.generation)))
    }
}

/// What is lost in a format narrower than the checkpoint's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QualityWords {
    #[serde(rename = "format")]
    pub all: Vec<QualityWord>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QualityWord {
    pub format: Listed,
    pub of: Stored,
    pub words: String,
}

/// What is stored in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stored {
    Weights,
    Cache,
}

impl QualityWords {
    /// What is known of a format.
    pub fn of(&self, format: Dtype, stored: Stored) -> Option<&str> {
        let of = |q: &&QualityWord| q.of == stored && q.format.is(format);
        self.all.iter().find(of).map(|q| q.words.as_str())
    }
}

/// How often chips fail, and how long a replica stays away then.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failures {
    pub as_of: String,
    sources: BTreeMap<String, String>,
    pub chip: FailureRate,
    pub repair: Repair,
    /// What was published, the one that is used among them.
    pub seen: Vec<Seen>,
}

/// Failures of a chip in a year, all that stop a job counted.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureRate {
    pub per_year: f64,
    pub low: f64,
    pub high: f64,
    source: String,
}

/// Until what failed serves again.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repair {
    pub hours: f64,
    source: String,
}

/// One published rate.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    #[serde(rename = "where")]
    pub place: String,
    pub per_year: f64,
    source: String,
}

impl Failures {
    /// Where the rate and the time were read.
    pub fn sources(&self) -> [&str; 2] {
        [&self.chip.source, &self.repair.source].map(|key| self.sources.get(key).map_or("", String::as_str))
    }
}

/// A format in a list: one, or all of llama.cpp's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Listed {
    One(Dtype),
    Gguf,
}

impl Listed {
    /// Whether a format is meant; groups of 32 go with groups of 128.
    pub fn is(self, format: Dtype) -> bool {
        match self {
            Self::One(Dtype::Int4) => matches!(format, Dtype::Int4 | Dtype::Int4G32),
            Self::One(one) => one == format,
            Self::Gguf => format.gguf().is_some_and(|g| !g.is_mlx()),
        }
    }

    /// The format itself; of llama.cpp's the one with half the bits of 16.
    pub fn format(self) -> Dtype {
        match self {
            Self::One(one) => one,
            Self::Gguf => Dtype::Gguf(Gguf::Q8_0),
        }
    }
}

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let word = String::deserialize(d)?;
        if word == "gguf" {
            return Ok(Self::Gguf);
        }
        word.parse().map(Self::One).map_err(serde::de::Error::custom)
    }
}

/// Kinds of attention that not every engine has on every chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
pub enum AttentionKind {
    /// Multi-head latent attention (DeepSeek V3).
    #[strum(to_string = "latent attention")]
    Latent,
    /// The same with an indexer that picks tokens (DeepSeek V3.2).
    #[strum(to_string = "sparse latent attention")]
    SparseLatent,
    /// Over a compressed cache (DeepSeek V4).
    #[strum(to_string = "compressed attention")]
    Compressed,
    /// Grouped attention over blocks that an indexer picks (MiniMax M3).
    #[strum(to_string = "block-sparse attention")]
    BlockSparse,
    /// A recurrence.
    #[strum(to_string = "linear attention")]
    Linear,
    /// Attention sinks (gpt-oss).
    #[strum(to_string = "attention with sinks")]
    Sinks,
}

impl AttentionKind {
    /// Those of a model.
    pub fn of(shape: &Shape) -> Vec<Self> {
        let kind = |mixer: &Mixer| match mixer {
            Mixer::Latent(l) if l.indexer.is_some() => Some(Self::SparseLatent),
            Mixer::Latent(_) => Some(Self::Latent),
            Mixer::Compressed(_) => Some(Self::Compressed),
            Mixer::Linear(_) => Some(Self::Linear),
            Mixer::Attention(a) if matches!(a.span, Span::Blocks(_)) => Some(Self::BlockSparse),
            Mixer::Attention(a) if a.sinks => Some(Self::Sinks),
            Mixer::Attention(_) | Mixer::None => None,
        };
        let mut all: Vec<Self> = shape.runs.iter().filter_map(|run| kind(&run.block.mixer)).collect();
        all.sort();
        all.dedup();
        all
    }
}

/// Ways to cut a model over chips that not every engine has everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
pub enum Parallel {
    #[strum(to_string = "tensor parallel")]
    Tensor,
    #[strum(to_string = "pipeline parallel")]
    Pipeline,
    /// Attention groups of one instance.
    #[strum(to_string = "data parallel")]
    Data,
    #[strum(to_string = "expert parallel")]
    Expert,
    #[strum(to_string = "context parallel of prompts")]
    PrefillContext,
    #[strum(to_string = "context parallel of decodes")]
    DecodeContext,
}

impl Parallel {
    /// Those that a layout uses, each with its degree.
    pub fn of(layout: &Layout) -> impl Iterator<Item = (Self, u64)> {
        let d = layout.degrees();
        let all = [
            (Self::Tensor, d.tp),
            (Self::Pipeline, d.pp),
            (Self::Data, d.dp),
            (Self::Expert, d.ep),
            (Self::PrefillContext, d.cp),
            (Self::DecodeContext, d.dcp),
        ];
        all.into_iter().filter(|(_, n)| *n > 1)
    }
}

/// Whether something runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Runs {
    Yes,
    No,
    Unknown,
}

/// One engine on every family of chips.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineSupport {
    /// The family of the engine.
    pub id: String,
    pub name: String,
    pub as_of: String,
    /// On families that the file does not name.
    pub elsewhere: Runs,
    elsewhere_why: Option<String>,
    #[serde(default)]
    elsewhere_source: Vec<String>,
    #[serde(default)]
    sources: BTreeMap<String, String>,
    pub context: Option<ContextRule>,
    /// What it has nowhere, with the source that says no.
    #[serde(default)]
    lacks_parallel: BTreeMap<Parallel, String>,
    /// Where it cuts experts that are narrow by blocks of 128 x 128 in whole blocks alone: the source that says so.
    whole_blocks: Option<String>,
    /// Formats it reads nowhere but where they are listed, with the source that says no.
    #[serde(default)]
    lacks_formats: BTreeMap<Listed, String>,
    /// What it does with a model that drafts and has other words.
    pub drafters: Option<DrafterRule>,
    #[serde(default)]
    on: Vec<OnFamily>,
}

/// What an engine does with a model that drafts for another one and numbers other words.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrafterRule {
    /// Words by which both vocabularies may differ.
    pub words_apart: u64,
    /// Whether it ends there; else it starts and drafts nothing.
    pub ends: bool,
    /// What it prints, {N} for the words of the model and {M} for those of the drafter.
    pub prints: String,
    source: Vec<String>,
}

/// What an engine does when asked for more tokens than the model has positions for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextRule {
    /// In words.
    pub beyond: String,
    /// What it prints, N for what was asked and M for the limit.
    pub prints: String,
    /// What makes it try all the same.
    #[serde(rename = "override")]
    pub forced_by: Option<String>,
    source: Vec<String>,
}

/// One engine on some families.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnFamily {
    families: Vec<String>,
    pub runs: Runs,
    /// The first version that runs there.
    #[serde(default, deserialize_with = "text_or_none")]
    pub from: Option<Version>,
    /// The first that does not any more.
    #[serde(default, deserialize_with = "text_or_none")]
    pub until: Option<Version>,
    /// A plugin or another repository of the project, where it is not the engine itself.
    pub via: Option<String>,
    /// Beta, experimental.
    pub grade: Option<String>,
    /// Weights and activations are multiplied in the format.
    #[serde(default)]
    pub native: Vec<Listed>,
    /// Stored in the format, multiplied in 16 bits.
    #[serde(default)]
    pub weight_only: Vec<Listed>,
    /// For evaluation rather than speed.
    #[serde(default)]
    pub emulated: Vec<Listed>,
    /// With the source that says no.
    #[serde(default)]
    refused: BTreeMap<Listed, String>,
    /// Formats of the cache.
    #[serde(default)]
    pub cache: Vec<Listed>,
    #[serde(default)]
    cache_refused: BTreeMap<Listed, String>,
    #[serde(default)]
    lacks: BTreeMap<AttentionKind, String>,
    /// Ways to cut a model that it does not have there, with the source that says no.
    #[serde(default)]
    lacks_parallel: BTreeMap<Parallel, String>,
    /// Kinds of attention of which no source says yes or no.
    #[serde(default)]
    pub unsure: Vec<AttentionKind>,
    pub why: Option<String>,
    source: Vec<String>,
}

/// How a format is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format<'a> {
    Native,
    WeightOnly,
    Emulated,
    /// By this source.
    Refused(&'a str),
    Unknown,
}

impl OnFamily {
    /// How weights of a format are run.
    pub fn weights<'a>(&'a self, of: &'a EngineSupport, format: Dtype) -> Format<'a> {
        let has = |list: &[Listed]| list.iter().any(|one| one.is(format));
        let refused = self.refused.iter().find(|(one, _)| one.is(format));
        match refused {
            Some((_, key)) => Format::Refused(of.cited(key)),
            None if has(&self.native) => Format::Native,
            None if has(&self.weight_only) => Format::WeightOnly,
            None if has(&self.emulated) => Format::Emulated,
            None => match of.lacks_formats.iter().find(|(one, _)| one.is(format)) {
                Some((_, key)) => Format::Refused(of.cited(key)),
                None => Format::Unknown,
            },
        }
    }

    /// Whether a cache can be kept in a format.
    pub fn cached<'a>(&'a self, of: &'a EngineSupport, format: Dtype) -> Format<'a> {
        match self.cache_refused.iter().find(|(one, _)| one.is(format)) {
            Some((_, key)) => Format::Refused(of.cited(key)),
            None if self.cache.iter().any(|one| one.is(format)) => Format::Native,
            None => Format::Unknown,
        }
    }

    /// The source that says that a kind of attention is lacking.
    pub fn lacking<'a>(&self, of: &'a EngineSupport, kind: AttentionKind) -> Option<&'a str> {
        self.lacks.get(&kind).map(|key| of.cited(key))
    }

    /// Ways to cut a model that are lacking there or everywhere, with the source that says so.
    pub fn lacking_parallel<'a>(&'a self, of: &'a EngineSupport) -> impl Iterator<Item = (Parallel, &'a str)> {
        self.lacks_parallel.iter().chain(&of.lacks_parallel).map(|(kind, key)| (*kind, of.cited(key)))
    }

    /// The first of its sources.
    pub fn source<'a>(&self, of: &'a EngineSupport) -> &'a str {
        self.source.first().map_or("", |key| of.cited(key))
    }
}

impl EngineSupport {
    /// What is known of a family.
    pub fn on(&self, family: &str) -> Option<&OnFamily> {
        self.on.iter().find(|on| on.families.iter().any(|f| f == family))
    }

    /// Why not where nothing is named, and who says so.
    pub fn elsewhere_why(&self) -> (Option<&str>, &str) {
        let source = self.elsewhere_source.first().map_or("", |key| self.cited(key));
        (self.elsewhere_why.as_deref(), source)
    }

    /// Where what is said of contexts was read.
    pub fn context_source(&self) -> &str {
        self.context.as_ref().and_then(|rule| rule.source.first()).map_or("", |key| self.cited(key))
    }

    /// Where it was read that experts are cut in whole blocks alone; nothing where they are not.
    pub fn whole_blocks(&self) -> Option<&str> {
        self.whole_blocks.as_deref().map(|key| self.cited(key))
    }

    fn cited(&self, key: &str) -> &str {
        self.sources.get(key).map_or("", String::as_str)
    }
}

pub(crate) fn read(id: &str, text: &str, families: &ChipFamilies) -> Result<EngineSupport, SpecError> {
    let file = format!("support {id}");
    let explains = ["on.measured", "on.note", "on.backend", "on.error", "context.limit", "context.note"];
    let support: EngineSupport = noun(&file, id, text, &explains)?;
    let key = |field: &str, key: &String| {
        let known = support.sources.contains_key(key);
        if known { Ok(()) } else { Err(SpecError::field(&file, field, key, "a key of [sources]")) }
    };
    support.lacks_parallel.values().try_for_each(|k| key("lacks_parallel", k))?;
    support.lacks_formats.values().try_for_each(|k| key("lacks_formats", k))?;
    support.elsewhere_source.iter().try_for_each(|k| key("elsewhere_source", k))?;
    support.context.iter().flat_map(|c| &c.source).try_for_each(|k| key("context.source", k))?;
    support.drafters.iter().flat_map(|d| &d.source).try_for_each(|k| key("drafters.source", k))?;
    let mut seen: Vec<&str> = Vec::new();
    for (i, on) in support.on.iter().enumerate() {
        for family in &on.families {
            let field = format!("on[{i}].families");
            let known = families.all.iter().any(|f| f.id == *family);
            if !known {
                return Err(SpecError::unknown("family of chips", family, families.all.iter().map(|f| f.id.as_str())));
            }
            if seen.contains(&family.as_str()) {
                return Err(SpecError::field(&file, field, family, "each family once"));
            }
            seen.push(family);
        }
        let noes = on.refused.values().chain(on.cache_refused.values()).chain(on.lacks.values());
        let noes = noes.chain(on.lacks_parallel.values());
        noes.chain(&on.source).try_for_each(|k| key(&format!("on[{i}].source"), k))?;
        if on.source.is_empty() && on.runs != Runs::Unknown {
            return Err(SpecError::field(&file, format!("on[{i}].source"), "nothing", "a source for every yes and no"));
        }
        let lists = [&on.native, &on.weight_only, &on.emulated];
        let all: Vec<Listed> = lists.into_iter().flatten().chain(on.refused.keys()).copied().collect();
        if let Some((_, twice)) = all.iter().enumerate().find(|(at, one)| all[..*at].contains(one)) {
            let field = format!("on[{i}]");
            return Err(SpecError::field(&file, field, twice.format().name(), "each format in one list"));
        }
    }
    Ok(support)
}

pub(crate) fn read_families(id: &str, text: &str) -> Result<ChipFamilies, SpecError> {
    let explains = ["id", "as_of", "sources", "family.compute", "family.source", "family.note"];
    noun(&format!("support {id}"), id, text, &explains)
}

pub(crate) fn read_quality(id: &str, text: &str) -> Result<QualityWords, SpecError> {
    noun(&format!("support {id}"), id, text, &["id", "as_of", "sources", "format.source", "format.note"])
}

pub(crate) fn read_failures(id: &str, text: &str) -> Result<Failures, SpecError> {
    let file = format!("support {id}");
    let f: Failures = noun(&file, id, text, &["id", "chip.note", "repair.note"])?;
    let keys = [("chip.source", &f.chip.source), ("repair.source", &f.repair.source)];
    for (field, key) in keys.into_iter().chain(f.seen.iter().map(|seen| ("seen.source", &seen.source))) {
        if !f.sources.contains_key(key) {
            return Err(SpecError::field(&file, field, key, "a key of [sources]"));
        }
    }
    let rates = f.chip.low > 0.0 && f.chip.low <= f.chip.per_year && f.chip.per_year <= f.chip.high;
    if !rates || f.seen.iter().any(|seen| !(f.chip.low..=f.chip.high).contains(&seen.per_year)) {
        return Err(SpecError::field(&file, "chip", f.chip.per_year, "a rate between the lowest and the highest seen"));
    }
    if !(f.repair.hours > 0.0 && f.repair.hours.is_finite()) {
        return Err(SpecError::field(&file, "repair.hours", f.repair.hours, "above 0"));
    }
    Ok(f)
}
