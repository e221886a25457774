//! Reads a file of published measurements.
//!
//! A row is a table of its own; what the rows of a file share stands once under `common` and a row may override it. Every
//! complaint names the file, the row (counted from 1) and the field.

use super::parse_toml;
use crate::validation::{Engine, KernelRow, KernelShape, Load, Metric, Mode, Row, Source, Speculation, Split, Table};
use crate::{Dtype, SpecError};
use rackmath_units::Fraction;
use serde::Deserialize;
use std::str::FromStr;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    source: Source,
    #[serde(default)]
    common: toml::Table,
    #[serde(default)]
    row: Vec<toml::Table>,
    #[serde(default)]
    kernel: Vec<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    model: String,
    weights: String,
    kv: Option<String>,
    engine: String,
    engine_version: Option<String>,
    system: String,
    tp: Option<u64>,
    pp: Option<u64>,
    dp: Option<u64>,
    ep: Option<u64>,
    attention_dp: Option<u64>,
    redundant_experts: Option<u64>,
    mode: String,
    isl: Option<u64>,
    osl: Option<u64>,
    context: Option<u64>,
    concurrency: Option<u64>,
    rate_per_s: Option<f64>,
    batch: Option<u64>,
    max_tokens: Option<u64>,
    max_sequences: Option<u64>,
    prefix_hit: Option<f64>,
    speculation: Option<Speculation>,
    metric: String,
    value: f64,
    range: Option<(f64, f64)>,
    #[serde(default)]
    assumed: Vec<String>,
    note: Option<String>,
}

/// Fields that may be listed as assumed.
const ASSUMABLE: [&str; 14] = [
    "weights",
    "kv",
    "tp",
    "pp",
    "dp",
    "ep",
    "attention_dp",
    "redundant_experts",
    "isl",
    "osl",
    "context",
    "concurrency",
    "batch",
    "speculation",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
enum RawKernel {
    Gemm { format: String, system: String, m: u64, n: u64, k: u64, time_us: f64 },
    AttentionDecode(RawAttention),
    AttentionPrefill(RawAttention),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAttention {
    format: String,
    system: String,
    heads: u64,
    kv_heads: u64,
    head_dim: u64,
    batch: u64,
    context: u64,
    time_us: f64,
}

/// Reads one file of measurements. Whether its models and systems exist is for the catalogue to say.
pub fn validation(id: &str, text: &str) -> Result<Table, SpecError> {
    let file = format!("validation {id}");
    let raw: RawFile = parse_toml(&file, text)?;
    let rows = raw.row.into_iter().enumerate().map(|(i, own)| {
        let mut all = raw.common.clone();
        all.extend(own);
        let place = Place(format!("{file} row {}", i + 1));
        row(&place, place.table(all)?)
    });
    let rows = rows.collect::<Result<_, _>>()?;
    let kernels = raw.kernel.into_iter().enumerate().map(|(i, own)| {
        let place = Place(format!("{file} kernel {}", i + 1));
        kernel(&place, place.table(own)?)
    });
    Ok(Table { id: id.to_owned(), source: raw.source, rows, kernels: kernels.collect::<Result<_, _>>()? })
}

/// A row of a file, for error messages.
struct Place(String);

impl Place {
    fn table<T: for<'a> Deserialize<'a>>(&self, table: toml::Table) -> Result<T, SpecError> {
        T::deserialize(table).map_err(|error| SpecError::file(&self.0, error.to_string().trim()))
    }

    fn wrong(&self, field: &str, given: impl ToString, expected: impl Into<String>) -> SpecError {
        SpecError::field(&self.0, field, given, expected)
    }

    /// A word of a closed list; the complaint keeps the nearest valid one.
    fn word<T: FromStr<Err = SpecError>>(&self, field: &str, text: &str) -> Result<T, SpecError> {
        text.parse().map_err(|error: SpecError| error.within(format!("{}: {field} = {text}", self.0)))
    }

    fn positive(&self, field: &str, value: f64) -> Result<f64, SpecError> {
        if value.is_finite() && value > 0.0 { Ok(value) } else { Err(self.wrong(field, value, "a positive number")) }
    }

    fn count(&self, field: &str, value: Option<u64>) -> Result<Option<u64>, SpecError> {
        match value {
            Some(0) => Err(self.wrong(field, 0, "a positive count")),
            value => Ok(value),
        }
    }
}

fn row(place: &Place, raw: RawRow) -> Result<Row, SpecError> {
    let mode: Mode = place.word("mode", &raw.mode)?;
    let row = Row {
        weights: place.word("weights", &raw.weights)?,
        kv: raw.kv.as_deref().map(|kv| place.word::<Dtype>("kv", kv)).transpose()?,
        engine: place.word::<Engine>("engine", &raw.engine)?,
        split: split(place, &raw)?,
        mode,
        isl: place.count("isl", raw.isl)?,
        osl: place.count("osl", raw.osl)?,
        context: raw.context,
        load: load(place, &raw)?,
        max_tokens: place.count("max_tokens", raw.max_tokens)?,
        max_sequences: place.count("max_sequences", raw.max_sequences)?,
        prefix_hit: raw
            .prefix_hit
            .map(|share| {
                Fraction::checked(share).ok_or_else(|| place.wrong("prefix_hit", share, "a share from 0 to 1"))
            })
            .transpose()?,
        speculation: raw.speculation.map(|s| speculation(place, s)).transpose()?,
        metric: place.word::<Metric>("metric", &raw.metric)?,
        value: place.positive("value", raw.value)?,
        range: raw.range,
        model: raw.model,
        engine_version: raw.engine_version,
        system: raw.system,
        assumed: raw.assumed,
        note: raw.note,
    };
    if let Some((low, high)) = row.range
        && !(low > 0.0 && low <= row.value && row.value <= high && high.is_finite())
    {
        return Err(place.wrong("range", format!("[{low}, {high}]"), format!("two numbers around {}", row.value)));
    }
    if let Some(word) = row.assumed.iter().find(|word| !ASSUMABLE.contains(&word.as_str())) {
        return Err(place.wrong("assumed", word, format!("names of fields: {}", ASSUMABLE.join(", "))));
    }
    complete(place, &row)?;
    Ok(row)
}

/// Whether the row says what its mode needs.
fn complete(place: &Place, row: &Row) -> Result<(), SpecError> {
    let needs = |field: &str, given: bool| {
        if given {
            Ok(())
        } else {
            Err(place.wrong(field, "nothing", format!("a value, as mode {} needs one", row.mode)))
        }
    };
    let lengths = || needs("isl", row.isl.is_some()).and(needs("osl", row.osl.is_some()));
    match row.mode {
        Mode::Closed => lengths().and(needs("concurrency", matches!(row.load, Some(Load::Concurrency(_))))),
        Mode::Open => lengths().and(needs("rate_per_s", matches!(row.load, Some(Load::RatePerS(_))))),
        Mode::MaxLoad => lengths(),
        Mode::Static => lengths().and(needs("batch", matches!(row.load, Some(Load::Batch(_))))),
        Mode::StepDecode => {
            needs("context", row.context.is_some()).and(needs("batch", matches!(row.load, Some(Load::Batch(_)))))
        }
        Mode::StepPrefill => {
            needs("isl", row.isl.is_some()).and(needs("batch", matches!(row.load, Some(Load::Batch(_)))))
        }
        Mode::SingleStream => needs("isl, osl or context", row.isl.or(row.osl).or(row.context).is_some()),
        Mode::Disaggregated => needs("isl or context", row.isl.or(row.context).is_some()),
    }
}

fn load(place: &Place, raw: &RawRow) -> Result<Option<Load>, SpecError> {
    match (place.count("concurrency", raw.concurrency)?, raw.rate_per_s, place.count("batch", raw.batch)?) {
        (None, None, None) => Ok(None),
        (Some(n), None, None) => Ok(Some(Load::Concurrency(n))),
        (None, Some(rate), None) => Ok(Some(Load::RatePerS(place.positive("rate_per_s", rate)?))),
        (None, None, Some(n)) => Ok(Some(Load::Batch(n))),
        _ => Err(place.wrong("concurrency, rate_per_s, batch", "several", "at most one of the three")),
    }
}

fn split(place: &Place, raw: &RawRow) -> Result<Split, SpecError> {
    let split = Split {
        tp: place.count("tp", raw.tp)?,
        pp: place.count("pp", raw.pp)?,
        dp: place.count("dp", raw.dp)?,
        ep: place.count("ep", raw.ep)?,
        attention_dp: place.count("attention_dp", raw.attention_dp)?,
        redundant_experts: raw.redundant_experts,
    };
    split.layout(true).map_err(|problem| place.wrong("ep", problem, "degrees that go together"))?;
    Ok(split)
}

fn speculation(place: &Place, s: Speculation) -> Result<Speculation, SpecError> {
    let drafted = u32::try_from(s.drafted).map_err(|_| place.wrong("speculation.drafted", s.drafted, "a count"))?;
    if (0.0..=f64::from(drafted)).contains(&s.accepted) {
        Ok(s)
    } else {
        Err(place.wrong("speculation.accepted", s.accepted, format!("0 to {drafted}, the tokens drafted")))
    }
}

fn kernel(place: &Place, raw: RawKernel) -> Result<KernelRow, SpecError> {
    let (shape, format, system, time_us) = match raw {
        RawKernel::Gemm { format, system, m, n, k, time_us } => {
            (KernelShape::Gemm { m, n, k }, format, system, time_us)
        }
        RawKernel::AttentionDecode(a) => attention(a, true),
        RawKernel::AttentionPrefill(a) => attention(a, false),
    };
    let (format, time_us) = (place.word("format", &format)?, place.positive("time_us", time_us)?);
    Ok(KernelRow { shape, format, system, time_us })
}

fn attention(raw: RawAttention, decode: bool) -> (KernelShape, String, String, f64) {
    let RawAttention { format, system, heads, kv_heads, head_dim, batch, context, time_us } = raw;
    (KernelShape::Attention { decode, heads, kv_heads, head_dim, batch, context }, format, system, time_us)
}
