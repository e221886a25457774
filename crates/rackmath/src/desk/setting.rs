//! Which model on which machine, in which formats, at which price: the part every question shares.

use crate::Error;
use crate::desk::check;
use educe::Educe;
use rackmath_spec::model::{Body, Formats};
use rackmath_spec::{Basis, Catalog, Dtype, Math, Model, Price, System};
use rackmath_theory::board::{Board, Counting, Rules, peak_for};
use rackmath_theory::count::{self, Count, Part};
use rackmath_theory::deployment::{Deployment, Ready, Untimed};
use rackmath_theory::kv::{self, Cache};
use rackmath_theory::pass::KernelSet;
use rackmath_theory::roofline::Overlap;
use rackmath_units::{Bytes, DollarRate, Fraction, Tokens};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A model on a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Setting {
    /// Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    #[schemars(extend("x-file" = "model", "x-position" = 2))]
    #[educe(Default = "deepseek-v3")]
    pub model: String,
    /// Machine: a system, a chip, so many chips such as `8xh200`, or the path of a chip or system .toml.
    #[schemars(extend("x-flag" = "on system hardware", "x-file" = "machine"))]
    #[educe(Default = "gb200-nvl72")]
    pub on: String,
    /// Use this many chips of the machine instead of all.
    #[schemars(extend("x-flag" = "chips gpus num-gpus", "x-none" = "the machine's"))]
    pub chips: Option<u64>,
    /// Weight format: `bf16`, `fp8`, `mxfp8`, `nvfp4`, `mxfp4`, `int4` and others.
    #[schemars(extend("x-flag" = "quantization -q dtype weights", "x-none" = "the checkpoint's"))]
    pub weights: Option<String>,
    /// KV-cache format.
    #[schemars(extend("x-flag" = "kv-cache-dtype kv", "x-none" = "the model's 16-bit type"))]
    pub kv: Option<String>,
    /// Arithmetic to compute in: `bf16`, `fp8`, `fp4`, `int8` and others.
    #[schemars(extend("x-flag" = "compute-dtype math", "x-none" = "the best the chip has for the weights"))]
    pub math: Option<String>,
    /// What is counted; `lecture`: no attention arithmetic, every weight read in every step.
    #[schemars(extend("enum" = ["strict", "lecture"]))]
    #[educe(Default = "strict")]
    pub counting: String,
    /// `max`, `sum`, `kv+max` (scaling book), or a share from 0 (none) to 1 (perfect).
    #[educe(Default = "max")]
    pub overlap: String,
    /// Price of a chip and hour, such as $2.10/h.
    #[schemars(extend("x-none" = "the catalogue's"))]
    pub price_usd_per_chip_hour: Option<f64>,
    /// Whose price: `owner-hyperscaler`, `owner-neocloud`, `rental`, `on-demand`.
    #[schemars(extend("x-none" = "the catalogue's"))]
    pub basis: Option<String>,
}

/// A setting with all names resolved.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The model on the machine; one chip and the ideal engine until a question decides.
    pub deployment: Deployment,
    pub chip_price: DollarRate,
    pub price_source: PriceSource,
    pub count: Count,
    pub math: Option<Math>,
}

/// Where the price of a chip's hour comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PriceSource {
    Given,
    Listed(Price),
    Unknown,
}

impl PriceSource {
    /// Whose price and of when, without the citation.
    pub fn short(&self) -> String {
        match self {
            Self::Listed(p) => format!("{} price, {}", p.basis, p.as_of),
            _ => self.to_string(),
        }
    }
}

impl std::fmt::Display for PriceSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Given => f.write_str("as given"),
            Self::Listed(p) => write!(f, "{} ({})", self.short(), p.source),
            Self::Unknown => f.write_str("no price is known for this chip; give one with --price"),
        }
    }
}

/// The same, counted and drawn on the lecture's board.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub found: Found,
    pub counting: Counting,
    pub overlap: Overlap,
    pub cache: Cache,
    pub board: Board,
}

impl std::ops::Deref for Found {
    type Target = Deployment;

    fn deref(&self) -> &Deployment {
        &self.deployment
    }
}

impl std::ops::Deref for Resolved {
    type Target = Found;

    fn deref(&self) -> &Found {
        &self.found
    }
}

/// Finds what a setting names, or says which name is wrong.
pub(crate) fn find(catalog: &Catalog, setting: &Setting) -> Result<Found, Error> {
    let model = catalog.model(&setting.model).map_err(|e| e.at("setting.model"))?;
    let expected = "one machine, or several with commas to choose from; a fleet of joined machines is not planned yet";
    check::refuse_if(setting.on.contains('+'), "setting.on", &setting.on, expected)?;
    let mut system = catalog.system(&setting.on).map_err(|e| e.at("setting.on"))?;
    if let Some(chips) = setting.chips {
        check::refuse_if(chips == 0 || chips > 10_000_000, "setting.chips", chips, "1 to 10,000,000")?;
        if chips != system.n_chips {
            let own = std::sync::Arc::make_mut(&mut system);
            own.name = format!("{chips} x {}", own.chip.name);
            own.n_chips = chips;
        }
    }
    let formats = formats(&model, setting.weights.as_deref()).map_err(|e| e.at("setting.weights"))?;
    let kv = match setting.kv.as_deref() {
        None | Some("auto") => model.cache_dtype(),
        Some(name) => name.parse::<Dtype>().map_err(|e| e.at("setting.kv"))?,
    };
    let (chip_price, price_source) = price(&system, setting)?;
    let (engine, _) = catalog.engine("ideal")?;
    let deployment = Deployment { formats, kv, ..Deployment::of(catalog, model, system, engine) };
    let count = count::count(&deployment.model);
    let math = setting.math.as_deref().map(str::parse::<Math>).transpose().map_err(|e| e.at("setting.math"))?;
    Ok(Found { deployment, chip_price, price_source, count, math })
}

/// The same, drawn on the board.
pub(crate) fn resolve(catalog: &Catalog, setting: &Setting) -> Result<Resolved, Error> {
    let found = find(catalog, setting)?;
    let math = found.math;
    let counting = counting(&setting.counting)?;
    let overlap = overlap(&setting.overlap)?;
    let rules = Rules { math, counting, overlap, price: found.price() };
    let cache = kv::cache(&found.model, found.kv);
    let board = Board::from_parts(&found, &rules, &found.count, &cache).ok_or_else(|| {
        let formats = [found.formats.routed, found.formats.linear, found.formats.other];
        let lacking = formats.into_iter().find(|d| peak_for(&found.system.chip, *d, math).is_none());
        let wanted = math.map_or_else(|| lacking.unwrap_or(found.kv).to_string(), |m| m.to_string());
        check::no_peak(&found.system.chip, &found.system.chip.id, wanted)
    })?;
    Ok(Resolved { found, counting, overlap, cache, board })
}

/// Passes of a deployment, or why there are none.
pub(crate) fn ready(kernels: &KernelSet, deployment: &Deployment) -> Result<Ready, Error> {
    Ready::new(kernels, deployment.clone()).map_err(|why| untimed(why, deployment))
}

/// Why passes cannot be timed, as an error.
pub(crate) fn untimed(why: Untimed, on: &Deployment) -> Error {
    match why {
        Untimed::NoLayers => Error::value(
            "model",
            format!("\"{}\"", on.model.id),
            "a model known layer by layer; this one is known by its totals only",
        ),
        Untimed::NoPeak => check::no_peak(&on.system.chip, &on.system.chip.id, on.formats.linear),
    }
}

/// Formats as run: the checkpoint's, or one for every matrix with embeddings and norms left as they are,
/// save for formats of whole files.
pub(crate) fn formats(model: &Model, wanted: Option<&str>) -> Result<Formats, Error> {
    let own = model.formats();
    match wanted {
        None | Some("auto") => Ok(own),
        Some(name) => {
            let dtype = name.parse::<Dtype>()?;
            let other = if dtype.covers_embedding() { dtype } else { own.other };
            let other = if matches!(model.body, Body::Lump(_)) { dtype } else { other };
            Ok(Formats { routed: dtype, linear: dtype, other })
        }
    }
}

fn counting(word: &str) -> Result<Counting, Error> {
    match word {
        "strict" => Ok(Counting::Strict),
        "lecture" => Ok(Counting::Lecture),
        other => Err(Error::value("setting.counting", format!("\"{other}\""), "strict or lecture")),
    }
}

fn overlap(word: &str) -> Result<Overlap, Error> {
    match word {
        "max" => Ok(Overlap::Max),
        "sum" => Ok(Overlap::Sum),
        "kv+max" => Ok(Overlap::KvThenMax),
        other => other.parse::<Fraction>().map(Overlap::Partial).map_err(|_| {
            Error::value("setting.overlap", format!("\"{other}\""), "max, sum, kv+max, or a share from 0 to 1")
        }),
    }
}

fn price(system: &System, setting: &Setting) -> Result<(DollarRate, PriceSource), Error> {
    if let Some(price) = setting.price_usd_per_chip_hour {
        let rate = DollarRate::checked(price / 3600.0).filter(|_| price < 1e6);
        let rate = rate.ok_or_else(|| {
            Error::value("setting.price_usd_per_chip_hour", price, "dollars per chip and hour, 0 to 1,000,000")
        })?;
        return Ok((rate, PriceSource::Given));
    }
    let chip = &system.chip;
    let Some(word) = setting.basis.as_deref() else {
        let listed = chip.usual_price().map(|p| (p.value, PriceSource::Listed(p.clone())));
        return Ok(listed.unwrap_or((DollarRate::ZERO, PriceSource::Unknown)));
    };
    let basis = word.parse::<Basis>().map_err(|e| e.at("setting.basis"))?;
    let price = chip.price(basis).ok_or_else(|| {
        let mut has: Vec<&str> = chip.prices.iter().map(|p| p.basis.into()).collect();
        has.dedup();
        let has = if has.is_empty() { "another chip".into() } else { has.join(" or ") };
        check::no_price(chip, basis.into(), &has)
    })?;
    Ok((price.value, PriceSource::Listed(price.clone())))
}

impl Found {
    pub fn priced(&self) -> bool {
        self.price_source != PriceSource::Unknown
    }

    /// Of the whole machine.
    pub fn price(&self) -> DollarRate {
        self.chip_price * self.system.n_chips as f64
    }

    pub fn weight_bytes(&self) -> Bytes {
        self.count.stored_bytes(&self.formats)
    }

    /// The formats of the weights in words: "fp8-block" or "mxfp4 experts, bf16 elsewhere".
    pub fn format_words(&self) -> String {
        let f = &self.formats;
        let routed = self.count.part(Part::Routed).total > 0;
        match (routed && f.routed != f.linear, f.linear == f.other) {
            (false, true) => f.linear.to_string(),
            (false, false) => format!("{} ({} embeddings and norms)", f.linear, f.other),
            (true, true) => format!("{} experts, {} elsewhere", f.routed, f.linear),
            (true, false) => format!("{} experts, {} matrices, {} embeddings and norms", f.routed, f.linear, f.other),
        }
    }

    /// The arithmetic most multiplications run in, and its peak.
    pub fn main_math(&self) -> Option<(Math, rackmath_units::FlopRate)> {
        peak_for(&self.system.chip, self.main_format(), self.math)
    }

    /// The format of the weights most multiplications use.
    pub fn main_format(&self) -> Dtype {
        if self.count.part(Part::Routed).active > self.count.part(Part::Mixer).active {
            self.formats.routed
        } else {
            self.formats.linear
        }
    }

    pub fn kv_words(&self) -> String {
        match self.model.body {
            Body::Layers(_) => self.kv.to_string(),
            Body::Lump(_) => format!("as given ({})", kv::cache(&self.model, self.kv).stored_per_token()),
        }
    }

    pub fn sources(&self) -> Vec<String> {
        let chip = &self.system.chip;
        let (size, speed) = (&chip.memory.capacity.value, &chip.memory.bandwidth);
        let peak = self.main_math().map(|(math, _)| format!("{math} peak: {}", chip.peak[&math].source));
        let model = format!("model: {} ({})", self.model.source, self.model.as_of);
        let memory = format!("memory: {size} at {}: {}", speed.value, speed.source);
        [model, memory].into_iter().chain(peak).chain([format!("checked {}", chip.as_of)]).collect()
    }
}

impl Resolved {
    pub fn assumptions(&self) -> Vec<String> {
        let spread = match self.system.n_chips {
            1 => "on one chip".into(),
            n => format!("spread evenly over {n} chips"),
        };
        let multiplied = self.main_math().map(|(math, peak)| {
            let own = self.main_format().maths().first().copied().filter(|own| self.math.is_none() && *own != math);
            let why = own.map_or(String::new(), |own| format!(" ({} has no {own} units)", self.system.chip.id));
            format!("multiplications in {math} at the dense peak of {peak} per chip{why}")
        });
        let counted = match self.counting {
            Counting::Strict => "attention arithmetic counted; only the experts a batch touches are read",
            Counting::Lecture => "lecture counting: no attention arithmetic, every weight read in every step",
        };
        let overlap = match self.overlap {
            Overlap::Max => "compute and memory overlap perfectly: a lower bound".into(),
            Overlap::Sum => "compute and memory do not overlap: an upper bound of the roofline".into(),
            Overlap::KvThenMax => "weights overlap with compute, KV reads do not (scaling book)".into(),
            Overlap::Partial(share) => format!("{share} of the possible overlap of compute and memory"),
        };
        let mut all = vec![format!("weights in {}, KV cache {}, {spread}", self.format_words(), self.kv_words())];
        all.extend(multiplied.into_iter().chain([counted.into(), overlap]));
        all.push("no network, no launch overhead, full bandwidth and dense peak: measured machines are slower".into());
        all.push(format!("price: {} per chip, {}", self.chip_price, self.price_source));
        all.extend(self.model.notes.iter().cloned());
        all
    }
}

/// A batch, a context and a pass length that make sense.
pub(crate) fn tokens(field: &'static str, value: f64, low: f64) -> Result<Tokens, Error> {
    Tokens::checked(value)
        .filter(|t| t.get() >= low && t.get() <= 1e12)
        .ok_or_else(|| Error::value(field, value, format!("a number from {low} to 1e12")))
}
