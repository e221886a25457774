//! What was measured, and how far predictions scatter by what had to be carried over to make them.
//!
//! Written by `rackmath-calibrate fit intervals` from the rows of `validation/`; a test holds it against them.

use crate::file::noun::text;
use crate::file::parse_toml;
use crate::support::AttentionKind;
use crate::{Catalog, Model, SpecError};
use rackmath_units::Seconds;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeSet;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// What is carried over to predict something that was not measured.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, Display, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "lowercase")]
pub enum Step {
    /// Nothing: the model, the chip and the engine were measured, if not together.
    Seen,
    /// A chip nobody measured, of a generation that was.
    Chip,
    /// A generation nobody measured, of a vendor whose kernels were.
    Generation,
    /// A vendor none of whose kernels were measured.
    Vendor,
    /// A version of an engine nobody measured.
    Version,
    /// A model nobody measured, of a kind that was.
    Model,
    /// A kind of model nobody measured.
    Kind,
}

/// In what two predictions differ.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, Display, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "lowercase")]
pub enum Differ {
    /// In layout or load alone.
    Layout,
    Chip,
    Engine,
    Model,
    /// In more than one of these.
    More,
}

/// Natural logarithms of the factors that hold 80 % of measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Widths {
    pub tpot: f64,
    pub ttft: f64,
    pub throughput: f64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    pub as_of: String,
    pub source: String,
    /// Generations whose kernels were timed one by one.
    pub kernels: Vec<String>,
    /// Chips that were measured: id, generation, vendor.
    pub chips: Vec<(String, String, String)>,
    /// Models that were measured, and what kind each is ([`kind`]).
    pub models: Vec<(String, String)>,
    /// Families of versions that were measured, and whose they are.
    pub engines: Vec<(String, String)>,
    #[serde(rename = "width")]
    widths: Vec<Width<Step>>,
    #[serde(rename = "apart")]
    aparts: Vec<Width<Differ>>,
    #[serde(deserialize_with = "seen")]
    pub seen: Vec<Seen>,
}

/// One line of a table of widths.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Width<By>
where
    By: std::str::FromStr,
    By::Err: std::fmt::Display,
{
    #[serde(deserialize_with = "text")]
    pub by: By,
    pub tpot: f64,
    pub ttft: f64,
    pub throughput: f64,
    /// Rows, or pairs of them.
    pub n: usize,
    pub groups: usize,
}

/// A model on a chip under a family of versions of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    pub model: String,
    pub chip: String,
    /// The engine's id in the catalogue.
    pub engine: String,
    /// Weight formats; `-` for the checkpoint's own.
    pub weights: BTreeSet<String>,
    /// The most chips of one copy of the model.
    pub chips: u64,
    pub rows: u64,
    /// Tables of `validation/`.
    pub tables: BTreeSet<String>,
    /// Hundredths of a natural logarithm that hold 80 % of the errors of these very rows: times per token, first tokens, rates.
    pub off: [Option<u32>; 3],
}

impl Seen {
    /// How far predictions of these rows were off; rates stand in for times per token, and these for rates, where one is missing.
    pub fn widths(&self) -> [Option<f64>; 3] {
        let [tpot, ttft, rate] = self.off.map(|off| off.map(|n| f64::from(n) / 100.0));
        [tpot.or(rate), ttft, rate.or(tpot)]
    }
}

impl Evidence {
    pub fn widths(&self, step: Step) -> Widths {
        found(&self.widths, step)
    }

    pub fn apart(&self, differ: Differ) -> Widths {
        found(&self.aparts, differ)
    }
}

fn found<By>(all: &[Width<By>], by: By) -> Widths
where
    By: std::str::FromStr + PartialEq,
    By::Err: std::fmt::Display,
{
    let line = all.iter().find(|w| w.by == by).expect("the reader asks for every line");
    Widths { tpot: line.tpot, ttft: line.ttft, throughput: line.throughput }
}

pub fn read(id: &str, text: &str) -> Result<Evidence, SpecError> {
    let file = format!("evidence {id}");
    let all: Evidence = parse_toml(&file, text)?;
    let missing = |what: String| SpecError::file(&file, format!("{what}: no line, expected one"));
    for step in Step::VARIANTS {
        all.widths.iter().find(|w| w.by == *step).ok_or_else(|| missing(format!("width of {step}")))?;
    }
    for differ in Differ::VARIANTS {
        all.aparts.iter().find(|w| w.by == *differ).ok_or_else(|| missing(format!("apart by {differ}")))?;
    }
    let numbers = all.widths.iter().map(|w| [w.tpot, w.ttft, w.throughput]);
    let numbers = numbers.chain(all.aparts.iter().map(|w| [w.tpot, w.ttft, w.throughput])).flatten();
    match numbers.into_iter().find(|w| !(0.0..=5.0).contains(w)) {
        Some(wrong) => Err(SpecError::field(&file, "width", wrong, "0 to 5, the logarithm of a factor")),
        None => Ok(all),
    }
}

/// Lines of model, chip, engine, formats, most chips, rows, tables and how far these were off.
fn seen<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Seen>, D::Error> {
    let one = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [model, chip, engine, weights, chips, rows, tables, off] = words[..] else { return None };
        let list = |text: &str| text.split(',').map(str::to_owned).collect();
        Some(Seen {
            model: model.into(),
            chip: chip.into(),
            engine: engine.into(),
            weights: list(weights),
            chips: chips.parse().ok()?,
            rows: rows.parse().ok()?,
            tables: list(tables),
            off: columns(off)?,
        })
    };
    let wrong = |line: &str| {
        serde::de::Error::custom(format!("\"{line}\"; expected model chip engine weights chips rows tables off"))
    };
    let lines = String::deserialize(d)?;
    lines.lines().filter(|line| !line.trim().is_empty()).map(|line| one(line).ok_or_else(|| wrong(line))).collect()
}

/// Three numbers between slashes, `-` for none.
fn columns(text: &str) -> Option<[Option<u32>; 3]> {
    let all: Option<Vec<_>> =
        text.split('/').map(|n| if n == "-" { Some(None) } else { n.parse().ok().map(Some) }).collect();
    all?.try_into().ok()
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |words: &BTreeSet<String>| words.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        let Self { model, chip, engine, chips, rows, .. } = self;
        let off = self.off.map(|off| off.map_or_else(|| "-".into(), |n| n.to_string())).join("/");
        write!(f, "{model} {chip} {engine} {} {chips} {rows} {} {off}", list(&self.weights), list(&self.tables))
    }
}

/// What a model is made of, as far as kernels and schedules care: the kinds of its attention, and whether it has experts.
pub fn kind(model: &Model) -> String {
    let Some(shape) = model.shape() else { return "known by its totals".into() };
    // Sinks are one more column of a softmax.
    let kinds = AttentionKind::of(shape).into_iter().filter(|kind| *kind != AttentionKind::Sinks);
    let kinds: Vec<String> = kinds.map(|kind| kind.to_string()).collect();
    let body = if shape.moe().is_some() { "mixture of experts" } else { "dense model" };
    if kinds.is_empty() { body.into() } else { format!("{body} with {}", kinds.join(" and ")) }
}

/// Constants of engines fitted without a group of rows.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refits {
    pub as_of: String,
    pub source: String,
    pub refit: Vec<Refit>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refit {
    #[serde(deserialize_with = "text")]
    pub step: Step,
    /// The chip, generation, engine, model or kind that was left out.
    pub without: String,
    pub engine: String,
    pub constants: Constants,
}

/// What is fitted on whole deployments, in the units of an engine's file.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    pub small_us: f64,
    pub skew_us: f64,
    pub stretch: f64,
    pub stretch_long: f64,
    pub expert_floor: f64,
    pub host_us: f64,
    pub host_sequence_us: f64,
    pub request_ms: f64,
    pub request_concurrent_ms: f64,
    pub small_traffic_divisor: f64,
    pub expert_stretch: Option<(f64, f64)>,
}

impl Constants {
    pub fn of(o: &crate::engine::Overhead) -> Self {
        Self {
            small_us: o.small.as_ms() * 1e3,
            skew_us: o.skew.as_ms() * 1e3,
            stretch: o.stretch,
            stretch_long: o.stretch_long,
            expert_floor: o.expert_floor,
            host_us: o.host.as_ms() * 1e3,
            host_sequence_us: o.host_sequence.as_ms() * 1e3,
            request_ms: o.request.as_ms(),
            request_concurrent_ms: o.request_concurrent.as_ms(),
            small_traffic_divisor: o.small_traffic_divisor,
            expert_stretch: o.expert_stretch,
        }
    }

    /// The overheads of an engine with these in their place.
    pub fn set(&self, own: &crate::engine::Overhead) -> crate::engine::Overhead {
        crate::engine::Overhead {
            small: Seconds::us(self.small_us),
            skew: Seconds::us(self.skew_us),
            stretch: self.stretch,
            stretch_long: self.stretch_long,
            expert_floor: self.expert_floor,
            host: Seconds::us(self.host_us),
            host_sequence: Seconds::us(self.host_sequence_us),
            request: Seconds::ms(self.request_ms),
            request_concurrent: Seconds::ms(self.request_concurrent_ms),
            small_traffic_divisor: self.small_traffic_divisor,
            expert_stretch: self.expert_stretch,
            ..*own
        }
    }
}

impl Refits {
    pub fn find(&self, step: Step, without: &str, engine: &str) -> Option<&Constants> {
        let found = self.refit.iter().find(|r| r.step == step && r.without == without && r.engine == engine);
        found.map(|r| &r.constants)
    }
}

pub fn read_refits(id: &str, text: &str) -> Result<Refits, SpecError> {
    parse_toml(&format!("evidence {id}"), text)
}

impl Catalog {
    pub fn evidence(&self) -> Result<std::sync::Arc<Evidence>, SpecError> {
        self.get("intervals")
    }

    pub fn refits(&self) -> Result<std::sync::Arc<Refits>, SpecError> {
        self.get("refits")
    }
}
