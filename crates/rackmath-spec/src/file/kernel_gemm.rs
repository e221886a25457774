//! Reads the file of matrix-product kernels.

use super::{Place, parse_toml};
use crate::{Fit, GemmKernel, GemmKernels, Pass, PowerRule, SpecError};
use rackmath_units::{ByteRate, BytesPerParam, FlopRate, Seconds, Watts};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "form")]
    _form: String,
    #[serde(rename = "as_of")]
    _as_of: String,
    #[serde(default)]
    sources: BTreeMap<String, String>,
    pass: Vec<RawPass>,
    kernel: Vec<RawKernel>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPass {
    id: String,
    bytes: f64,
    floor_us: f64,
    core_gb_per_s: f64,
    cold_core_gb_per_s: Option<f64>,
    bandwidth: f64,
    cached: f64,
    #[serde(default)]
    row_ns: f64,
    rows: u64,
    median: f64,
    p90: f64,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKernel {
    class: String,
    format: String,
    backend: String,
    floor_us: f64,
    #[serde(default)]
    host_us: f64,
    compute: f64,
    power: Option<RawPower>,
    bandwidth: f64,
    corner: f64,
    operand_gb_per_s: Option<f64>,
    wave_us: f64,
    quantum: f64,
    droop: f64,
    droop_us: f64,
    split_us: f64,
    ramp: f64,
    ramp_us: f64,
    resident: f64,
    tiles: Vec<(u32, u32)>,
    splits: Vec<u32>,
    #[serde(default)]
    dynamic: Vec<String>,
    #[serde(default)]
    fixed: Vec<String>,
    rows: u64,
    median: f64,
    p90: f64,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPower {
    peak: String,
    tdp: String,
    range: (f64, f64),
}

/// A file being read, for error messages.
struct Reader<'a> {
    place: Place<'a>,
    entry: String,
}

/// Reads the kernels, each with its passes in place of their names.
pub fn gemm_kernels(id: &str, text: &str) -> Result<GemmKernels, SpecError> {
    let file = format!("kernel {id}");
    let raw: RawFile = parse_toml(&file, text)?;
    let mut passes = BTreeMap::new();
    for raw_pass in raw.pass {
        let entry = format!("pass {}", raw_pass.id);
        let reader = Reader { place: Place { file: &file, sources: &raw.sources }, entry };
        passes.insert(raw_pass.id.clone(), reader.pass(raw_pass)?);
    }
    let kernels = raw.kernel.into_iter().map(|kernel| {
        let entry = format!("{} {} {}", kernel.class, kernel.format, kernel.backend);
        Reader { place: Place { file: &file, sources: &raw.sources }, entry }.kernel(kernel, &passes)
    });
    Ok(GemmKernels { kernels: kernels.collect::<Result<_, _>>()? })
}

impl Reader<'_> {
    fn wrong<T>(&self, field: &str, given: impl ToString, expected: &str) -> Result<T, SpecError> {
        Err(SpecError::field(self.place.file, format!("{}: {field}", self.entry), given, expected))
    }

    fn within(&self, field: &str, value: f64, low: f64, high: f64) -> Result<f64, SpecError> {
        if value >= low && value <= high {
            return Ok(value);
        }
        self.wrong(field, value, &format!("a number from {low} to {high}"))
    }

    /// A share of a peak: more than none, at most all.
    fn share(&self, field: &str, value: f64) -> Result<f64, SpecError> {
        self.within(field, value, 1e-3, 1.0)
    }

    fn time(&self, field: &str, value: f64, unit: fn(f64) -> Seconds) -> Result<Seconds, SpecError> {
        self.within(field, value, 0.0, 1e6).map(unit)
    }

    fn rate(&self, field: &str, value: Option<f64>) -> Result<Option<ByteRate>, SpecError> {
        value.map(|v| self.within(field, v, 1e-3, 1e6).map(ByteRate::gb_per_s)).transpose()
    }

    fn fit(&self, rows: u64, median: f64, p90: f64) -> Result<Fit, SpecError> {
        Ok(Fit { rows, median: self.within("median", median, 0.0, 5.0)?, p90: self.within("p90", p90, 0.0, 5.0)? })
    }

    fn quantity<T: std::str::FromStr>(&self, field: &str, text: &str, expected: &str) -> Result<T, SpecError> {
        text.parse().or_else(|_| self.wrong(field, text, expected))
    }

    fn pass(&self, raw: RawPass) -> Result<Pass, SpecError> {
        self.fit(raw.rows, raw.median, raw.p90)?;
        self.place.source(&self.entry, raw.source)?;
        Ok(Pass {
            width: BytesPerParam::new(self.within("bytes", raw.bytes, 0.5, 16.0)?),
            floor: self.time("floor_us", raw.floor_us, Seconds::us)?,
            core: ByteRate::gb_per_s(self.within("core_gb_per_s", raw.core_gb_per_s, 1e-3, 1e6)?),
            cold_core: self.rate("cold_core_gb_per_s", raw.cold_core_gb_per_s)?,
            bandwidth: self.share("bandwidth", raw.bandwidth)?,
            cached: self.within("cached", raw.cached, 0.0, 1.0)?,
            row: self.time("row_ns", raw.row_ns, Seconds::ns)?,
        })
    }

    fn power(&self, raw: RawPower) -> Result<PowerRule, SpecError> {
        let peak: FlopRate = self.quantity("power.peak", &raw.peak, "a peak such as 989 TFLOP/s")?;
        let tdp: Watts = self.quantity("power.tdp", &raw.tdp, "a power such as 700 W")?;
        let low = self.within("power.range", raw.range.0, 0.1, 1.0)?;
        let high = self.within("power.range", raw.range.1, 1.0, 10.0)?;
        Ok(PowerRule { peak, tdp, range: (low, high) })
    }

    fn kernel(&self, raw: RawKernel, passes: &BTreeMap<String, Pass>) -> Result<GemmKernel, SpecError> {
        if raw.tiles.is_empty() || raw.tiles.iter().any(|(rows, columns)| *rows == 0 || *columns == 0) {
            return self.wrong("tiles", format!("{:?}", raw.tiles), "at least one tile, of positive size");
        }
        if raw.splits.is_empty() || raw.splits.contains(&0) {
            return self.wrong("splits", format!("{:?}", raw.splits), "at least 1");
        }
        Ok(GemmKernel {
            format: raw.format.parse()?,
            floor: self.time("floor_us", raw.floor_us, Seconds::us)?,
            host: self.time("host_us", raw.host_us, Seconds::us)?,
            compute: self.share("compute", raw.compute)?,
            power: raw.power.map(|p| self.power(p)).transpose()?,
            bandwidth: self.share("bandwidth", raw.bandwidth)?,
            corner: self.within("corner", raw.corner, 1.0, f64::INFINITY)?,
            operand: self.rate("operand_gb_per_s", raw.operand_gb_per_s)?,
            wave: self.time("wave_us", raw.wave_us, Seconds::us)?,
            quantum: self.within("quantum", raw.quantum, 0.0, 1.0)?,
            droop: self.within("droop", raw.droop, 0.0, 10.0)?,
            droop_time: self.time("droop_us", raw.droop_us, Seconds::us)?,
            split: self.time("split_us", raw.split_us, Seconds::us)?,
            ramp: self.within("ramp", raw.ramp, 0.0, 10.0)?,
            ramp_time: self.time("ramp_us", raw.ramp_us, Seconds::us)?,
            resident: self.within("resident", raw.resident, 0.0, 1.0)?,
            tiles: raw.tiles.iter().map(|(rows, columns)| (f64::from(*rows), f64::from(*columns))).collect(),
            splits: raw.splits.iter().map(|s| f64::from(*s)).collect(),
            dynamic: named(&raw.dynamic, passes)?,
            fixed: named(&raw.fixed, passes)?,
            fit: self.fit(raw.rows, raw.median, raw.p90)?,
            source: self.place.source(&self.entry, raw.source)?,
            class: raw.class,
            backend: raw.backend,
        })
    }
}

/// The passes a kernel names.
fn named(names: &[String], known: &BTreeMap<String, Pass>) -> Result<Vec<Pass>, SpecError> {
    let find = |name: &String| {
        known.get(name).copied().ok_or_else(|| SpecError::unknown("pass", name, known.keys().map(String::as_str)))
    };
    names.iter().map(find).collect()
}
