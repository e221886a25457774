//! Which model on which machine, in which formats, at which price: the part every question shares.

use super::prelude::*;
use rackmath_spec::model::{Body, Formats};
use rackmath_spec::{Basis, Math, Model, Price, System, Wire};
use rackmath_theory::board::{Board, Counting, Rules, peak_for};
use rackmath_theory::count::towers::towers_bytes;
use rackmath_theory::count::{self, Count, Part};
use rackmath_theory::deployment::{Deployment, Ready, Untimed};
use rackmath_theory::kv::{self, Cache};
use rackmath_theory::pass::KernelSet;
use rackmath_theory::roofline::Overlap;

/// A model on a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Setting {
    /// Model: a catalogue name, a Hugging Face id, or the path of a config.json, of a folder holding one, or of a model .toml.
    #[schemars(extend("x-file" = "model", "x-position" = 2))]
    #[educe(Default = "deepseek-v3")]
    pub model: String,
    /// Machine: a system, a chip, so many chips such as `8xh200`, or the path of a chip or system .toml; with the price of a
    /// chip and hour in dollars behind an @ where the catalogue's is not meant, such as `8xh100@2.10`.
    #[schemars(extend("x-flag" = "on system hardware", "x-file" = "machine"))]
    #[educe(Default = "gb200-nvl72")]
    pub on: String,
    /// Use this many chips of the machine instead of all.
    #[schemars(extend("x-flag" = "chips gpus num-gpus", "x-none" = "the machine's"))]
    pub chips: Option<u64>,
    /// Join its chips by this link instead of their own: a rate one way out of each chip such as `25GB/s` or `200Gb/s`, a kind such as
    /// `pcie4`, `pcie4 x8`, `10GbE`, `nvlink` (the bridge for two cards), a kind and its rate such as `nvlink4:450GB/s`, or `ideal`.
    #[schemars(extend("x-none" = "the machine's"))]
    pub link: Option<String>,
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
    /// Price of a chip and hour, such as 2.10/h.
    #[schemars(extend("x-none" = "the catalogue's"))]
    pub price_usd_per_chip_hour: Option<f64>,
    /// Whose price.
    #[schemars(transform = closed::<Basis>, extend("x-none" = "the catalogue's", "x-also" = ["owner", "contract", "reserved"]))]
    pub basis: Option<String>,
}

/// The word for the engine that people take.
pub(crate) const AUTO: &str = "auto";
pub(crate) const LLAMA_CPP: &str = "llamacpp";

/// The engine that people take: the one that reads such files, wherever it runs, or that runs on such a machine.
pub(crate) fn usual_engine(catalog: &Catalog, setting: &Setting) -> &'static str {
    let format = setting.weights.as_deref().and_then(|word| word.parse::<Dtype>().ok());
    let quantised = format.is_some_and(|f| f.gguf().is_some_and(|g| !g.is_mlx()));
    let there = || catalog.system(machine(&setting.on).ok()?.0).ok();
    // Apple's chips, and processors that nothing else stands beside.
    let home = || there().is_some_and(|system| system.chip.vendor == "Apple" || system.chip.processor);
    if quantised || rackmath_spec::name::is_gguf(&setting.model) || home() { LLAMA_CPP } else { "vllm" }
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
    /// What kind of price it is, before the word "prices".
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Listed(p) => p.basis.words(),
            Self::Unknown => "unknown",
        }
    }

    /// Whose price and of when, without the citation.
    pub fn short(&self) -> Remark {
        match self {
            Self::Given => says("as_given"),
            Self::Listed(p) => says("price_listed").with("basis", p.basis.to_string()).with("as_of", &p.as_of),
            Self::Unknown => says("price_unknown"),
        }
    }

    /// The same, with the citation.
    pub fn remark(&self) -> Remark {
        let source = if let Self::Listed(p) = self { Some(&p.source) } else { None };
        self.short().with("source", source)
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

/// A machine's name, and the text of the price that stands behind it after an @; an @ inside a path belongs to the path.
pub fn with_price(machine: &str) -> (&str, Option<&str>) {
    match machine.rsplit_once('@') {
        Some((name, price)) => {
            let path = price.trim_end_matches("/h").contains(['/', '\\']) || price.contains(".toml");
            if path { (machine, None) } else { (name.trim_end(), Some(price.trim())) }
        }
        None => (machine, None),
    }
}

/// The same with the price read: dollars per chip and hour.
pub(crate) fn machine(text: &str) -> Result<(&str, Option<f64>), Error> {
    let (name, price) = with_price(text.trim());
    let read = |price: &str| {
        let bare = price.strip_prefix('$').unwrap_or(price);
        let bare = bare.strip_suffix("/h").unwrap_or(bare);
        // A shell takes `$2` for a name, and leaves `.10` of it.
        let whole = !bare.starts_with('.');
        let sound = bare.parse::<f64>().ok().filter(|x| whole && x.is_finite() && (0.0..1e6).contains(x));
        let taken = if whole { "" } else { "; a shell takes $2 for a name of its own" };
        let expected = format!("dollars per chip and hour behind the @, 0 to 1,000,000, such as {name}@2.10{taken}");
        sound.ok_or_else(|| Error::value("setting.on", format!("\"{}\"", text.trim()), expected))
    };
    Ok((name, price.map(read).transpose()?))
}

/// The price of a chip and hour, given once: behind the @ of a machine, or by itself.
pub(crate) fn paid(on: &str, stated: Option<f64>, price: Option<f64>) -> Result<Option<f64>, Error> {
    let (Some(_), Some(by_itself)) = (stated, price) else { return Ok(stated.or(price)) };
    let expected = format!("one price of a chip and hour: behind the @ of \"{}\", or this one", on.trim());
    Err(Error::value("setting.price_usd_per_chip_hour", by_itself, expected))
}

/// Machines without the prices that stand behind them.
pub(crate) fn without_prices(on: &str) -> String {
    let bare = |all: &str| all.split('+').map(|one| with_price(one).0.trim()).collect::<Vec<_>>().join("+");
    on.split(',').map(bare).collect::<Vec<_>>().join(",")
}

/// The kind of price to hold machines against each other by where none is asked for: the usual one that all have whose
/// price is not given, else none.
pub(crate) fn common_basis(catalog: &Catalog, machines: &[&str]) -> Result<Option<Basis>, Error> {
    let mut chips = Vec::new();
    for text in machines {
        let (name, price) = machine(text)?;
        if price.is_none() {
            chips.push(catalog.system(name).map_err(|e| e.at("setting.on"))?);
        }
    }
    Ok(Basis::USUAL.into_iter().find(|basis| chips.iter().all(|s| s.chip.price(*basis).is_some())))
}

/// The model of a name, with the id of the checkpoint that was meant: that one is started.
pub(crate) fn checkpoint(catalog: &Catalog, name: &str) -> Result<Arc<Model>, Error> {
    let mut model = catalog.model(name)?;
    let id = catalog.checkpoint(name, &model);
    if id != model.hf {
        Arc::make_mut(&mut model).hf = id;
    }
    Ok(model)
}

/// Finds what a setting names, or says which name is wrong.
pub(crate) fn find(catalog: &Catalog, setting: &Setting) -> Result<Found, Error> {
    let mut model = checkpoint(catalog, &setting.model).map_err(|e| e.at("setting.model"))?;
    let expected = "one machine, or several with commas to choose from; fleets joined by + are for `plan` and `simulate`, cards of \
                    one machine for `memory` and for {engine} llamacpp";
    refuse_if(setting.on.contains('+'), "setting.on", &setting.on, expected)?;
    let (on, stated) = machine(&setting.on)?;
    let mut system = catalog.system(on).map_err(|e| e.at("setting.on"))?;
    if let Some(chips) = setting.chips {
        refuse_if(chips == 0 || chips > 10_000_000, "setting.chips", chips, "1 to 10,000,000")?;
        if chips != system.n_chips {
            let own = Arc::make_mut(&mut system);
            own.name = format!("{chips} x {}", own.chip.name);
            own.n_chips = chips;
        }
    }
    if let Some(link) = setting.link.as_deref() {
        let wire = Wire::read(link, catalog, &system.chip).map_err(|e| e.at("setting.link"))?;
        wire.join(Arc::make_mut(&mut system));
        Arc::make_mut(&mut model).notes.push(wire.said(catalog));
    }
    let formats = formats(&model, setting.weights.as_deref()).map_err(|e| e.at("setting.weights"))?;
    let kv = match setting.kv.as_deref() {
        None | Some("auto") => model.cache_dtype(),
        Some(name) => name.parse::<Dtype>().map_err(|e| e.at("setting.kv"))?,
    };
    let (chip_price, price_source) = price(&system, setting, stated)?;
    let (engine, _) = catalog.engine("ideal")?;
    let deployment = Deployment { formats, kv, ..Deployment::of(catalog, model, system, engine) };
    let count = count::count(&deployment.model);
    let deployment = held_against(deployment, &count);
    let math = setting.math.as_deref().map(str::parse::<Math>).transpose().map_err(|e| e.at("setting.math"))?;
    Ok(Found { deployment, chip_price, price_source, count, math })
}

/// How far what is counted may lie from the weight files before it is said: scales and buffers make up a few percent.
const APART: f64 = 0.03;

/// With a note where a model's weight files hold more or less than was counted of them.
fn held_against(mut on: Deployment, count: &Count) -> Deployment {
    let Some(stored) = on.model.stored else { return on };
    let towers = on.model.shape().map_or(0.0, |shape| towers_bytes(shape).get());
    // Heads that predict ahead are in the files, whether or not they are used.
    let counted = count.stored_bytes(&on.model.formats()).get() + towers;
    let apart = stored.get() / counted - 1.0;
    let words = format!("its weight files hold {stored}, the shapes read from its config {}", Bytes::b(counted));
    let note = if apart.abs() <= APART {
        format!("{words}: they agree")
    } else {
        format!("{words}: {:.0} % apart; parts that are not read, or another format, may be the reason", apart * 100.0)
    };
    Arc::make_mut(&mut on.model).notes.push(note);
    on
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
        let f = &found.formats;
        let formats = [f.routed, f.linear, f.mixer, f.other];
        let lacking = formats.into_iter().find(|d| peak_for(&found.system.chip, *d, math).is_none());
        let wanted = math.map_or_else(|| lacking.unwrap_or(found.kv).to_string(), |m| m.to_string());
        no_peak(&found.system.chip, &found.system.chip.id, wanted)
    })?;
    Ok(Resolved { found, counting, overlap, cache, board })
}

/// Passes of a deployment, or why there are none.
pub(crate) fn ready(kernels: &KernelSet, deployment: &Deployment) -> Result<Ready, Error> {
    Ready::new(kernels, deployment.clone()).map_err(|why| untimed(why, deployment))
}

/// What is expected of a model whose passes are timed.
pub(crate) const LAYERED: &str = "a model known layer by layer; this one is known by its totals only";

/// Why passes cannot be timed, as an error.
pub(crate) fn untimed(why: Untimed, on: &Deployment) -> Error {
    match why {
        Untimed::NoLayers => Error::value("model", format!("\"{}\"", on.model.id), LAYERED),
        Untimed::NoPeak => no_peak(&on.system.chip, &on.system.chip.id, on.formats.linear),
        Untimed::NoOffload => super::offload::unknown(on),
    }
}

/// Formats as run: the checkpoint's, or the one asked for.
pub(crate) fn formats(model: &Model, wanted: Option<&str>) -> Result<Formats, Error> {
    match wanted {
        None | Some("auto") => Ok(model.formats()),
        Some(name) => Ok(model.formats_in(name.parse()?)),
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

fn price(system: &System, setting: &Setting, stated: Option<f64>) -> Result<(DollarRate, PriceSource), Error> {
    if let Some(price) = paid(&setting.on, stated, setting.price_usd_per_chip_hour)? {
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
        no_price(chip, basis.into(), &has)
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

    /// The formats of the weights.
    pub fn format_words(&self) -> Remark {
        let f = &self.formats;
        let routed = self.count.part(Part::Routed).total > 0;
        // Parts of a file that go by one name are as wide as their tensors are.
        let alike = |a: Dtype, b: Dtype| a.name() == b.name();
        let id = match (routed && !alike(f.routed, f.linear), alike(f.linear, f.other)) {
            (false, true) => return f.linear.to_string().into(),
            (false, false) => "formats_but_embeddings",
            (true, true) => "formats_of_experts",
            (true, false) => "formats_of_all",
        };
        says(id).with("experts", f.routed).with("matrices", f.linear).with("other", f.other)
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

    pub fn kv_words(&self) -> Remark {
        match self.model.body {
            Body::Layers(_) => self.kv.to_string().into(),
            Body::Lump(_) => says("kv_as_given").with("bytes", kv::cache(&self.model, self.kv).stored_per_token()),
        }
    }

    /// The model and its machine, said by a title.
    pub fn titled(&self, id: &'static str) -> Remark {
        says(id).with("model", &self.model.name).with("system", &self.system.name)
    }

    /// The formats of weights and cache, said by a sentence.
    pub fn in_formats(&self, id: &'static str) -> Remark {
        says(id).with("weights", self.format_words()).with("kv", self.kv_words())
    }

    /// The price of a chip's hour, said by a sentence.
    pub fn at_price(&self, id: &'static str) -> Remark {
        says(id).with("price", self.chip_price).with("source", self.price_source.remark())
    }

    pub fn sources(&self) -> Vec<Remark> {
        let (model, chip) = (&self.model, &self.system.chip);
        let (size, speed) = (chip.memory.capacity.value, &chip.memory.bandwidth);
        let peaked = |(math, _)| says("peak_source").with("math", math).with("source", &chip.peak[&math].source);
        let peak = self.main_math().map(peaked);
        let memory = says("memory_source").with("size", size).with("speed", speed.value).with("source", &speed.source);
        let model = says("model_source").with("source", &model.source).with("as_of", &model.as_of);
        [model, memory].into_iter().chain(peak).chain([says("checked").with("as_of", &chip.as_of)]).collect()
    }
}

impl Resolved {
    pub fn assumptions(&self) -> Vec<Remark> {
        let on = match self.system.n_chips {
            1 => self.in_formats("weights_on_one_chip"),
            n => self.in_formats("weights_over_chips").with("chips", n),
        };
        let multiplied = self.main_math().map(|(math, peak)| {
            let own = self.main_format().maths().first().copied().filter(|own| self.math.is_none() && *own != math);
            let said = says("multiplied").with("math", math).with("peak", peak);
            said.with("own", own).with("chip", own.map(|_| &self.system.chip.id))
        });
        let counted = match self.counting {
            Counting::Strict => "counted_strictly",
            Counting::Lecture => "counted_as_the_lecture",
        };
        let overlap = match self.overlap {
            Overlap::Max => says("overlap_perfect"),
            Overlap::Sum => says("overlap_none"),
            Overlap::KvThenMax => says("overlap_but_kv"),
            Overlap::Partial(share) => says("overlap_share").with("share", share),
        };
        let mut all = vec![on];
        all.extend(multiplied.into_iter().chain([says(counted), overlap, says("measured_is_slower")]));
        all.push(self.at_price("price_of_chip"));
        all.extend(self.model.notes.iter().map(Into::into));
        all
    }
}

/// A batch, a context and a pass length that make sense.
pub(crate) fn tokens(field: &'static str, value: f64, low: f64) -> Result<Tokens, Error> {
    let sound = Tokens::checked(value).filter(|t| t.get() >= low && t.get() <= 1e12);
    sound.ok_or_else(|| Error::value(field, value, format!("a number from {low} to 1e12")))
}
