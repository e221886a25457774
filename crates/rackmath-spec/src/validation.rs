//! Published measurements as data: what was run, on what, under which load, and the figure that came out.
//!
//! One table is one file of `validation/`, one row one measured figure. A row names the model, formats, machine, split and
//! load well enough for a predictor to be asked the same question; what the source does not say is absent, and what was
//! filled in by assumption is listed in `assumed`.
//!
//! | mode | what was run | load |
//! |------|--------------|------|
//! | closed | so many clients, each sending its next request when the last one ended | concurrency |
//! | open | requests arriving at a rate of their own | rate |
//! | max-load | all requests queued at once; the batch is what memory and the engine's limit allow | batch limit, if known |
//! | static | one batch of equal prompts, prefilled and decoded together to the end | batch |
//! | step-decode, step-prefill | one forward pass | batch |
//! | single-stream | one request at a time | none |
//! | disaggregated | prefill and decode on machines of their own, one of the two measured | batch |
//!
//! What the rows of a file share stands once under `common` and a row may override it.
//! `batch` counts sequences over the whole system, `concurrency` likewise. `context` is what is cached when a step begins.

mod asked;
mod lines;
mod measured;

pub use asked::Asked;
pub use measured::Measured;

use crate::file::noun::{text, text_or_none};
use crate::file::parse_toml;
use crate::layout::Degrees;
use crate::measurement::Measurement;
use crate::node::{self, Node};
use crate::{Dtype, Layout, SpecError};
use lines::{hit, load, requests};
use rackmath_units::Fraction;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use strum::{Display, IntoStaticStr, VariantArray};

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub id: String,
    pub source: Source,
    pub rows: Vec<Row>,
    /// Rows of a large table, as they are asked about.
    pub measured: Vec<Measurement>,
    pub kernels: Vec<KernelRow>,
    pub runs: Vec<Run>,
    pub host: Vec<HostRow>,
    /// Figures that other questions answer.
    pub asked: Vec<Asked>,
    /// What is assumed when its runs are replayed.
    pub replay: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pub name: String,
    pub title: String,
    /// An address, or a repository and the path in it.
    pub address: String,
    pub date: String,
    /// Under which terms, or that only facts were taken.
    pub licence: String,
    /// When the figures were read, as year and month.
    pub retrieved: String,
    /// Whether the constants were fitted on these rows: yes, no or partly, and how.
    pub fitted: String,
    /// What a reader must know to judge the figures.
    pub note: String,
}

/// One measured figure; what the source does not state is absent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub model: String,
    #[serde(deserialize_with = "text")]
    pub weights: Dtype,
    /// Format of the KV cache, where stated or assumed.
    #[serde(default, deserialize_with = "text_or_none")]
    pub kv: Option<Dtype>,
    pub engine: Engine,
    pub engine_version: Option<String>,
    /// The machine in catalogue words, such as `8xh200`.
    pub system: String,
    #[serde(flatten)]
    pub split: Split,
    pub mode: Mode,
    /// Mean prompt tokens of a request.
    pub isl: Option<u64>,
    /// Mean tokens generated per request.
    pub osl: Option<u64>,
    /// Mean tokens cached per sequence when a step begins.
    pub context: Option<u64>,
    #[serde(flatten, deserialize_with = "load")]
    pub load: Option<Load>,
    /// Most tokens the engine was told to put into a pass.
    pub max_tokens: Option<u64>,
    /// Most sequences it was told to decode together.
    pub max_sequences: Option<u64>,
    /// Share of the prompt found in a cache.
    #[serde(default, deserialize_with = "hit")]
    pub prefix_hit: Option<Fraction>,
    /// Where a draft was verified.
    pub speculation: Option<Speculation>,
    pub metric: Metric,
    pub value: f64,
    /// Lowest and highest figure, where the source gives a range.
    pub range: Option<(f64, f64)>,
    /// Names of fields that the source does not give and that were assumed; the note says how.
    #[serde(default)]
    pub assumed: Vec<String>,
    pub note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Requests in flight in a closed loop, over the whole system.
    Concurrency(u64),
    RatePerS(f64),
    /// Sequences in a step, or the engine's limit under maximum load, over the whole system.
    Batch(u64),
}

/// Tokens drafted per step, and how many of them hold; a step yields one token more than it accepts.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speculation {
    pub drafted: u64,
    pub accepted: f64,
}

/// Parallel degrees as stated; what is absent is 1 if another is given, and unknown if none is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Split {
    /// Tensor parallel degree of attention and dense networks.
    pub tp: Option<u64>,
    pub pp: Option<u64>,
    pub dp: Option<u64>,
    pub ep: Option<u64>,
    /// Groups of attention with sequences of their own inside one replica.
    pub attention_dp: Option<u64>,
    pub redundant_experts: Option<u64>,
}

impl Split {
    /// Whether the source says how the model was cut.
    pub fn is_stated(&self) -> bool {
        [self.tp, self.pp, self.dp, self.ep, self.attention_dp].iter().any(Option::is_some)
    }

    pub fn replicas(&self) -> u64 {
        self.dp.unwrap_or(1)
    }

    pub fn chips(&self) -> u64 {
        let degrees = [self.tp, self.pp, self.dp, self.attention_dp];
        degrees.iter().fold(1, |n, degree| n.saturating_mul(degree.unwrap_or(1)))
    }

    /// The layout of one replica, where it is stated. Chips not used for expert parallelism cut each expert.
    pub fn layout(&self, has_experts: bool) -> Result<Option<Layout>, String> {
        if !self.is_stated() {
            return Ok(None);
        }
        let (tp, dp) = (self.tp.unwrap_or(1), self.attention_dp.unwrap_or(1));
        let ep = if has_experts { self.ep.unwrap_or(1) } else { 1 };
        let stage = tp.saturating_mul(dp);
        if ep == 0 || !stage.is_multiple_of(ep) {
            return Err(format!("{ep}; expected a divisor of tp {tp} x attention_dp {dp} = {stage}"));
        }
        let etp = if has_experts { stage / ep } else { 1 };
        let redundant = if has_experts { self.redundant_experts.unwrap_or(0) } else { 0 };
        let degrees = Degrees { tp, dp, ep, etp, redundant, pp: self.pp.unwrap_or(1), ..Degrees::default() };
        Layout::new(degrees).map(Some).map_err(|e| e.to_string())
    }
}

/// What the host of an engine took to launch passes of one kind.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostRow {
    pub model: String,
    pub system: String,
    pub engine: Engine,
    pub engine_version: String,
    /// Sequences that decode, prompts, and tokens of these: the middle of the passes.
    pub decodes: f64,
    pub prompts: f64,
    pub tokens: f64,
    /// Passes that were recorded.
    pub passes: u64,
    /// From the choice of a pass to its last launch: the middle, and what a tenth is below and above.
    pub launch_ms: f64,
    pub range_ms: (f64, f64),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct KernelRow {
    #[serde(flatten)]
    pub shape: KernelShape,
    /// Format of its operands; for attention of keys and values.
    #[serde(deserialize_with = "text")]
    pub format: Dtype,
    pub system: String,
    pub time_us: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum KernelShape {
    /// A product of an m x k and a k x n matrix.
    Gemm { m: u64, n: u64, k: u64 },
    /// One query for each sequence.
    AttentionDecode(AttentionShape),
    /// Causal over the whole prompt.
    AttentionPrefill(AttentionShape),
}

impl KernelShape {
    /// The keys it is written with; a flattened shape does not refuse others by itself.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Gemm { .. } => &["m", "n", "k"],
            Self::AttentionDecode(_) | Self::AttentionPrefill(_) => {
                &["heads", "kv_heads", "head_dim", "batch", "context"]
            }
        }
    }
}

/// So many sequences of `context` tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct AttentionShape {
    pub heads: u64,
    pub kv_heads: u64,
    pub head_dim: u64,
    pub batch: u64,
    pub context: u64,
}

/// A whole run of a server, to be replayed: each request as it was sent, or the law by which they were.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub name: String,
    pub model: String,
    pub system: String,
    pub tp: u64,
    pub engine: Engine,
    pub engine_version: String,
    pub max_sequences: u32,
    pub max_tokens: u32,
    pub max_context: u32,
    /// Blocks of 16 tokens in the cache.
    pub kv_blocks: u32,
    /// Formats where they are not the checkpoint's: of all weights, of attention's, of the cache.
    #[serde(default, deserialize_with = "text_or_none")]
    pub weights: Option<Dtype>,
    #[serde(default, deserialize_with = "text_or_none")]
    pub attention: Option<Dtype>,
    #[serde(default, deserialize_with = "text_or_none")]
    pub kv: Option<Dtype>,
    /// Nothing is kept of a request for others.
    #[serde(default)]
    pub no_prefix_caching: bool,
    /// Prompts are not cut, go first and alone: vLLM's engine V0.
    #[serde(default)]
    pub prompts_alone: bool,
    /// Steps that it chooses at once.
    #[serde(default = "one")]
    pub scheduler_steps: u32,
    /// Share of the blocks kept free when a request is admitted.
    #[serde(default)]
    pub watermark: f64,
    #[serde(default, deserialize_with = "requests")]
    pub requests: Vec<Sent>,
    pub stated: Option<Stated>,
}

/// Keys that a run takes from what all rows of its file share.
const OF_RUNS: [&str; 14] = [
    "model",
    "system",
    "tp",
    "engine",
    "engine_version",
    "max_sequences",
    "max_tokens",
    "max_context",
    "kv_blocks",
    "weights",
    "attention",
    "kv",
    "no_prefix_caching",
    "watermark",
];

fn one() -> u32 {
    1
}

/// A request as it was sent and what it met; times in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub at: f64,
    pub input: u32,
    pub output: u32,
    /// What it met, where that was recorded.
    pub ttft: Option<f64>,
    /// Absent where one token was generated, too.
    pub tpot: Option<f64>,
    pub e2e: Option<f64>,
    /// What the prompt is made of, as number and tokens; equal leading numbers are equal tokens.
    pub segments: Vec<(u64, u32)>,
}

/// Requests of which only the law is known, and latencies in milliseconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stated {
    /// Requests a second, one rate after the other.
    pub rates: Vec<f64>,
    pub input: u32,
    pub output: u32,
    #[serde(default)]
    pub mean: BTreeMap<Latency, f64>,
    #[serde(default)]
    pub p90: BTreeMap<Latency, f64>,
    #[serde(default)]
    pub p99: BTreeMap<Latency, f64>,
}

/// What a request meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "UPPERCASE")]
pub enum Latency {
    Ttft,
    Tpot,
    Itl,
    E2e,
}

impl Table {
    /// Whether every model and system is known, and every stated split fills its system; `model` and `chips` look a name
    /// up, the latter answering with the number of chips.
    pub fn check(
        &self,
        model: impl Fn(&str) -> Result<(), SpecError>,
        chips: impl Fn(&str) -> Result<u64, SpecError>,
    ) -> Result<(), SpecError> {
        let at = |kind: &str, i: usize, field: &str| format!("validation {} {kind} {}: {field}", self.id, i + 1);
        // Rows repeat few names, and looking one up may read its file.
        let (mut models, mut systems) = (BTreeSet::new(), BTreeMap::new());
        for (i, row) in self.rows.iter().enumerate() {
            if models.insert(&row.model) {
                model(&row.model).map_err(|e| e.within(at("row", i, "model")))?;
            }
            let n = match systems.get(&row.system) {
                Some(n) => *n,
                None => chips(&row.system).map_err(|e| e.within(at("row", i, "system")))?,
            };
            systems.insert(&row.system, n);
            if row.split.is_stated() && row.split.chips() != n {
                let wrong = SpecError::value("tp x pp x dp x attention_dp", row.split.chips(), format!("{n} chips"));
                return Err(wrong.within(at("row", i, "system")));
            }
        }
        for (i, m) in self.measured.iter().enumerate() {
            if models.insert(&m.setup.model) {
                model(&m.setup.model).map_err(|e| e.within(at("measured row", i, "model")))?;
            }
            let n = match systems.get(&m.setup.system) {
                Some(n) => *n,
                None => chips(&m.setup.system).map_err(|e| e.within(at("measured row", i, "system")))?,
            };
            systems.insert(&m.setup.system, n);
            let Degrees { tp, pp, dp, .. } = m.setup.degrees;
            if tp * pp * dp != n {
                let wrong = SpecError::value("tp x pp x dp", tp * pp * dp, format!("{n} chips"));
                return Err(wrong.within(at("measured row", i, "system")));
            }
        }
        for (i, kernel) in self.kernels.iter().enumerate() {
            chips(&kernel.system).map_err(|e| e.within(at("kernel", i, "system")))?;
        }
        for (i, run) in self.runs.iter().enumerate() {
            model(&run.model).map_err(|e| e.within(at("run", i, "model")))?;
            let n = chips(&run.system).map_err(|e| e.within(at("run", i, "system")))?;
            if run.tp > n {
                return Err(SpecError::value("tp", run.tp, format!("at most {n} chips")).within(at("run", i, "tp")));
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Engine {
    Vllm,
    Sglang,
    TrtLlm,
    Torch,
    LlamaCpp,
    /// DeepSeek's own serving system.
    DeepSeek,
    /// No overhead: for figures that were computed.
    Ideal,
    Unknown,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Display, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Mode {
    Closed,
    Open,
    MaxLoad,
    Static,
    StepDecode,
    StepPrefill,
    SingleStream,
    Disaggregated,
}

/// What was measured; the unit ends the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Display, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Metric {
    TpotMs,
    TtftMs,
    /// The middle of all requests, where `TtftMs` is their mean.
    TtftP50Ms,
    /// Gap between tokens as a client sees them.
    ItlMs,
    E2eMs,
    /// Generated tokens per second of the whole system.
    OutputTokS,
    OutputTokSPerGpu,
    InputTokSPerGpu,
    StepMs,
    /// Tokens per second while decoding, all sequences together.
    DecodeTokS,
    /// Tokens per second while prefilling, all sequences together.
    PrefillTokS,
}

impl Metric {
    /// Time to the first token, in the mean or in the middle.
    pub fn is_first_token(self) -> bool {
        matches!(self, Self::TtftMs | Self::TtftP50Ms)
    }

    /// Tokens generated per second, of a chip or of the whole system.
    pub fn is_output_rate(self) -> bool {
        matches!(self, Self::OutputTokS | Self::OutputTokSPerGpu | Self::DecodeTokS)
    }

    /// Prompt tokens per second, of a chip or of the whole system.
    pub fn is_input_rate(self) -> bool {
        matches!(self, Self::InputTokSPerGpu | Self::PrefillTokS)
    }

    pub fn is_of_system(self) -> bool {
        matches!(self, Self::OutputTokS | Self::DecodeTokS | Self::PrefillTokS)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    source: Source,
    #[serde(default)]
    common: toml::Table,
    #[serde(default)]
    row: Vec<toml::Table>,
    measured: Option<Measured>,
    #[serde(default)]
    kernel: Vec<toml::Table>,
    #[serde(default)]
    run: Vec<toml::Table>,
    #[serde(default)]
    host: Vec<toml::Table>,
    #[serde(default)]
    asked: Vec<toml::Table>,
    #[serde(default)]
    replay: String,
}

/// What rows of hosts take of the common fields.
const OF_HOSTS: [&str; 4] = ["model", "system", "engine", "engine_version"];

/// Fields that may be listed as assumed.
const ASSUMABLE: &str = "weights, kv, tp, pp, dp, ep, attention_dp, redundant_experts, isl, osl, context, concurrency, batch, prefix_hit, speculation";

/// Reads one file of measurements. Whether its models and systems exist is for the catalogue to say.
pub fn read(id: &str, text: &str) -> Result<Table, SpecError> {
    let file = format!("validation {id}");
    let raw: File = parse_toml(&file, text)?;
    let rows = raw.row.into_iter().enumerate().map(|(i, own)| {
        let mut all = raw.common.clone();
        all.extend(own);
        let place = Place(format!("{file} row {}", i + 1));
        let row = place.table(all)?;
        check(&place, &row)?;
        Ok(row)
    });
    let rows = rows.collect::<Result<_, SpecError>>()?;
    let kernels = raw.kernel.into_iter().enumerate().map(|(i, own)| {
        let place = Place(format!("{file} kernel {}", i + 1));
        let mut keys: Vec<String> = own.keys().cloned().collect();
        let row: KernelRow = place.table(own)?;
        keys.retain(|key| {
            !["kind", "format", "system", "time_us"].contains(&&**key) && !row.shape.keys().contains(&&**key)
        });
        if let Some(key) = keys.first() {
            return Err(SpecError::file(
                &place.0,
                format!("{key}: unknown field, expected {}", row.shape.keys().join(", ")),
            ));
        }
        place.positive("time_us", row.time_us).map(|()| row)
    });
    let kernels = kernels.collect::<Result<_, _>>()?;
    let runs = raw.run.into_iter().enumerate().map(|(i, own)| {
        let mut all = raw.common.clone();
        all.retain(|key, _| OF_RUNS.contains(&key));
        all.extend(own);
        let place = Place(format!("{file} run {}", i + 1));
        let run: Run = place.table(all)?;
        match &run.stated {
            Some(stated) => stated.rates.iter().try_for_each(|rate| place.positive("stated.rates", *rate))?,
            None if run.requests.is_empty() => return Err(place.wrong("requests", "nothing", "requests or stated")),
            None => {}
        }
        Ok(run)
    });
    let runs = runs.collect::<Result<_, SpecError>>()?;
    let host = raw.host.into_iter().enumerate().map(|(i, own)| {
        let mut all = raw.common.clone();
        all.retain(|key, _| OF_HOSTS.contains(&key));
        all.extend(own);
        let place = Place(format!("{file} host {}", i + 1));
        let row: HostRow = place.table(all)?;
        let (low, high) = row.range_ms;
        place.positive("launch_ms", row.launch_ms)?;
        if low > row.launch_ms || high < row.launch_ms {
            return Err(place.wrong("range_ms", format!("{low} to {high}"), "a range around launch_ms"));
        }
        Ok(row)
    });
    let host = host.collect::<Result<_, SpecError>>()?;
    let asked = raw.asked.into_iter().enumerate().map(|(i, own)| asked::read(&file, i, &raw.common, own));
    let asked = asked.collect::<Result<_, SpecError>>()?;
    let measured = raw.measured.map_or(Ok(Vec::new()), |measured| measured.read(&file, &raw.source))?;
    Ok(Table { id: id.to_owned(), source: raw.source, rows, measured, kernels, runs, host, asked, replay: raw.replay })
}

/// A row of a file, counted from 1, for error messages.
struct Place(String);

impl Place {
    fn table<T: DeserializeOwned>(&self, table: toml::Table) -> Result<T, SpecError> {
        let node = Node::deserialize(table).map_err(|error| SpecError::file(&self.0, error.to_string()))?;
        node::read(node).map_err(|error| {
            let problem = error.problem().lines().next().unwrap_or_default();
            SpecError::file(&self.0, format!("{}: {problem}", error.path()))
        })
    }

    fn wrong(&self, field: &str, given: impl ToString, expected: impl Into<String>) -> SpecError {
        SpecError::field(&self.0, field, given, expected)
    }

    fn positive(&self, field: &str, value: f64) -> Result<(), SpecError> {
        if value.is_finite() && value > 0.0 { Ok(()) } else { Err(self.wrong(field, value, "a positive number")) }
    }
}

fn check(place: &Place, row: &Row) -> Result<(), SpecError> {
    let (s, load) = (&row.split, row.load);
    let loaded = match load {
        Some(Load::Concurrency(n)) => ("concurrency", Some(n)),
        Some(Load::Batch(n)) => ("batch", Some(n)),
        Some(Load::RatePerS(_)) => ("rate_per_s", None),
        None => ("no load", None),
    };
    let counts = [
        ("tp", s.tp),
        ("pp", s.pp),
        ("dp", s.dp),
        ("ep", s.ep),
        ("attention_dp", s.attention_dp),
        ("isl", row.isl),
        ("osl", row.osl),
        ("max_tokens", row.max_tokens),
        ("max_sequences", row.max_sequences),
        loaded,
    ];
    if let Some((field, _)) = counts.iter().find(|(_, count)| *count == Some(0)) {
        return Err(place.wrong(field, 0, "a positive count"));
    }
    if let Some(Load::RatePerS(rate)) = load {
        place.positive("rate_per_s", rate)?;
    }
    place.positive("value", row.value)?;
    s.layout(true).map_err(|problem| place.wrong("ep", problem, "degrees that go together"))?;
    if let Some(Speculation { drafted, accepted }) = row.speculation {
        let most = u32::try_from(drafted).map_err(|_| place.wrong("speculation.drafted", drafted, "a count"))?;
        if !(0.0..=f64::from(most)).contains(&accepted) {
            return Err(place.wrong("speculation.accepted", accepted, format!("0 to {most}, the tokens drafted")));
        }
    }
    if let Some((low, high)) = row.range
        && !(low > 0.0 && low <= row.value && row.value <= high && high.is_finite())
    {
        return Err(place.wrong("range", format!("[{low}, {high}]"), format!("two numbers around {}", row.value)));
    }
    if let Some(word) = row.assumed.iter().find(|word| !ASSUMABLE.split(", ").any(|field| field == *word)) {
        return Err(place.wrong("assumed", word, format!("names of fields: {ASSUMABLE}")));
    }
    // What its mode needs; of fields with a bar between them, one.
    let needs = match row.mode {
        Mode::Closed => "isl osl concurrency",
        Mode::Open => "isl osl rate_per_s",
        Mode::MaxLoad => "isl osl",
        Mode::Static => "isl osl batch",
        Mode::StepDecode => "context batch",
        Mode::StepPrefill => "isl batch",
        Mode::SingleStream => "isl|osl|context",
        Mode::Disaggregated => "isl|context",
    };
    let given = |field: &str| match field {
        "isl" => row.isl.is_some(),
        "osl" => row.osl.is_some(),
        "context" => row.context.is_some(),
        load => load == loaded.0,
    };
    match needs.split(' ').find(|fields| !fields.split('|').any(given)) {
        None => Ok(()),
        Some(fields) => {
            let expected = format!("a value, as mode {} needs one", row.mode);
            Err(place.wrong(&fields.replace('|', " or "), "nothing", expected))
        }
    }
}
