//! Expert kernels against measured tables: `kernel_moe_<chip>.csv`, one file per chip.
//!
//! [`score`] says how far the catalogue is from the rows, [`fit`] finds the constants of every family, format and generation,
//! [`transfer`] how far constants are from rows they have not seen: another generation, another format, another model.
//! The loss is the mean of |ln(predicted / measured)|, each row counting at most [`CAP`]: some rows were timed with routing
//! or tuning gone astray, by up to a factor of eight, and must not bend a constant.

use crate::rows::{Record, Rows, csv, present};
use crate::table::{Errors, Table, left_out, rounded};
use crate::{CalibrateError, simplex};
use rackmath_spec::{Catalog, Chip, MoeFit, MoeFormat, MoeKernel, MoeKernels, MoeRows, Residual};
use rackmath_theory::operator::{Silicon, moe};
use rackmath_units::{Fraction, Seconds, Tokens, float};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

/// The most one row adds to the loss.
pub const CAP: f64 = 0.6;

const TILES: [f64; 3] = [16.0, 64.0, 128.0];

/// Tables that are understood; each is named for its chip.
const FILES: [&str; 9] = [
    "kernel_moe_a100.csv",
    "kernel_moe_b200.csv",
    "kernel_moe_b300.csv",
    "kernel_moe_gb200.csv",
    "kernel_moe_gb300.csv",
    "kernel_moe_h100.csv",
    "kernel_moe_h200.csv",
    "kernel_moe_l40s.csv",
    "kernel_moe_rtxpro6000.csv",
];

/// One timing.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The chip's catalogue id.
    pub chip: String,
    /// The generation whose kernels it runs.
    pub generation: String,
    /// What an operator sees of it.
    pub silicon: Silicon,
    pub family: &'static str,
    /// The model whose shape it is.
    pub model: String,
    /// What was timed.
    pub call: moe::Call,
    /// How long it took.
    pub measured: Seconds,
}

pub fn read(folder: &Path) -> Result<Rows<Row>, CalibrateError> {
    let (catalog, mut all) = (rackmath_catalog::embedded(), Rows::default());
    for (path, file) in present(folder, &FILES, |file| file)? {
        let chip = file.trim_start_matches("kernel_moe_").trim_end_matches(".csv");
        take(&csv(&path)?, chip, &catalog, &mut all)?;
    }
    Ok(all)
}

/// Adds the rows of one chip's table.
fn take(table: &[Record], chip: &str, catalog: &Catalog, all: &mut Rows<Row>) -> Result<(), CalibrateError> {
    let chip = catalog.chip(chip)?;
    let kernels = catalog.moe_kernels()?;
    let generation = kernels.generation(&chip);
    for record in table {
        all.take(row(record, &chip, generation));
    }
    Ok(())
}

fn row(record: &Record, chip: &Chip, generation: &str) -> Result<Row, String> {
    let text = |column: &str| record.needed(column);
    let count = |column: &str| {
        let value = text(column)?.parse::<u64>().ok().filter(|n| *n > 0);
        value.ok_or_else(|| format!("no count in {column}"))
    };
    if record.text("quality") == "over_peak" {
        return Err("faster than the peak".into());
    }
    let format: MoeFormat = text("moe_dtype")?.parse().map_err(|e: rackmath_spec::SpecError| e.to_string())?;
    let silicon = Silicon::of(chip, format.math()).ok_or_else(|| format!("{} has no {}", chip.id, format.math()))?;
    let draw = match text("distribution")? {
        "balanced" => moe::Draw::Even,
        "uniform" | "random" => moe::Draw::Random,
        other => {
            let alpha = other.strip_prefix("power_law_").and_then(|a| a.parse().ok());
            moe::Draw::PowerLaw(alpha.ok_or_else(|| format!("no distribution \"{other}\""))?)
        }
    };
    let layer = moe::Layer {
        hidden: count("hidden_size")?,
        inter: count("inter_size")?.div_ceil(count("moe_tp_size")?),
        gated: true,
        experts: count("num_experts")?,
        top_k: count("topk")?,
        ranks: count("moe_ep_size")?,
    };
    Ok(Row {
        chip: chip.id.clone(),
        generation: generation.to_owned(),
        silicon,
        family: family(text("kernel_source")?, format, &chip.generation),
        model: text("model_shape")?.into(),
        call: moe::Call { layer, format, tokens: Tokens::new(count("num_tokens")? as f64), draw },
        measured: record.latency()?,
    })
}

/// The family of a kernel as aiconfigurator names it.
pub fn family(source: &str, format: MoeFormat, generation: &str) -> &'static str {
    let s = source.to_ascii_lowercase();
    let four_bits = matches!(format, MoeFormat::MxFp4A16 | MoeFormat::MxFp4A8);
    match s.as_str() {
        s if s.contains("min_latency") => "trtllm-gen",
        // TensorRT-LLM runs 4-bit MX weights through Triton on Hopper and through its generated kernels on Blackwell.
        "moe_torch_flow" if four_bits && generation == "hopper" => "trtllm-triton",
        "moe_torch_flow" if four_bits => "trtllm-gen",
        s if s.starts_with("moe_torch_flow") => "trtllm-cutlass",
        s if s.contains("deepgemm") || s.contains("deep_gemm") => "trtllm-deepgemm",
        s if s.contains("oaitriton") => "vllm-oai-triton",
        s if s.contains("marlin") => "vllm-marlin",
        s if s.contains("flashinfer_cutlass") || s.contains("cutlass") => "vllm-cutlass",
        s if s.contains("trtllm") => "vllm-trtllm",
        _ => "vllm-triton",
    }
}

/// ln(predicted / measured).
fn offset(kernel: &MoeKernel, row: &Row) -> f64 {
    float::ln(moe::time(row.silicon, kernel, &row.call).time / row.measured)
}

/// How far the catalogue is from the tables of a folder: per chip, family and format, then per chip, then all.
pub fn score(folder: &Path) -> Result<Table, CalibrateError> {
    score_rows(&read(folder)?, &*rackmath_catalog::embedded().moe_kernels()?)
}

/// How far a set of kernels is from rows.
fn score_rows(rows: &Rows<Row>, kernels: &MoeKernels) -> Result<Table, CalibrateError> {
    let mut table = Table::new(&["chip", "family", "format", "routing", "bias"], &rows.skipped);
    let mut scored = Vec::new();
    for row in &rows.rows {
        let found = kernels.find(row.family, row.call.format, &row.generation)?;
        let o = offset(&found.kernel, row);
        let (chip, format) = (row.chip.as_str(), row.call.format.to_string());
        let routing = if row.call.draw == moe::Draw::Even { "even" } else { "skewed" };
        for key in [
            [chip, row.family, &format, "all"],
            [chip, "all", "all", routing],
            [chip, "all", "all", "all"],
            ["all", "all", "all", routing],
            ["all", "all", "all", "all"],
        ] {
            scored.push((key.map(str::to_owned).to_vec(), o));
        }
    }
    table.group(scored);
    Ok(table)
}

/// Fitted kernels. Printed, they are the `family` tables of the catalogue file.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted(pub MoeKernels);

/// Constants fitted to the tables of a folder. Not fitted: what a family pads, corner, tail and cache.
/// These are read off the tables and stand in the catalogue.
pub fn fit(folder: &Path) -> Result<Fitted, CalibrateError> {
    fit_rows(
        &read(folder)?.rows.iter().collect::<Vec<_>>(),
        &*rackmath_catalog::embedded().moe_kernels()?,
        Search::Full,
    )
    .map(Fitted)
}

/// What a fit may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Everything: tiles and which rows move are tried one by one.
    Full,
    /// Tiles and which rows move stay; floors and shares are fitted.
    Shares,
}

/// Fits every family, format and generation that rows speak of; the rest of `kernels` stays.
fn fit_rows(rows: &[&Row], kernels: &MoeKernels, search: Search) -> Result<MoeKernels, CalibrateError> {
    let mut groups: BTreeMap<(&str, &str, MoeFormat), Vec<&Row>> = BTreeMap::new();
    for row in rows {
        groups.entry((row.family, &row.generation, row.call.format)).or_default().push(row);
    }
    let mut fitted = kernels.clone();
    let covered: BTreeSet<(&str, &str, MoeFormat)> = groups.keys().copied().collect();
    for (family, fits) in &mut fitted.families {
        fits.retain(|f| !covered.contains(&(family.as_str(), f.generation.as_str(), f.format)));
    }
    for ((family, generation, format), rows) in groups {
        let start = kernels.find(family, format, generation)?.kernel;
        let kernel = fit_one(&rows, start, search);
        let errors: Vec<f64> = rows.iter().map(|row| offset(&kernel, row)).collect();
        let Some(Errors { n, median, p90, .. }) = Errors::of(&errors) else { continue };
        let residual = Residual { rows: n as u64, median: rounded(median), p90: rounded(p90) };
        let fit = MoeFit { generation: generation.into(), format, kernel, residual };
        fitted.families.entry(family.into()).or_default().push(fit);
    }
    for fits in fitted.families.values_mut() {
        fits.sort_by(|a, b| (&a.generation, a.format).cmp(&(&b.generation, b.format)));
    }
    Ok(fitted)
}

/// Start of the search: launch and set-up in microseconds and nanoseconds, then the three shares.
const START: [f64; 5] = [20.0, 20.0, 0.6, 0.85, 0.6];

fn fit_one(rows: &[&Row], base: MoeKernel, search: Search) -> MoeKernel {
    let loss =
        |kernel: &MoeKernel| rows.iter().map(|row| offset(kernel, row).abs().min(CAP)).sum::<f64>() / rows.len() as f64;
    let mut best: Option<(f64, MoeKernel)> = None;
    let choices = match search {
        Search::Full => TILES.iter().flat_map(|tile| [MoeRows::Routed, MoeRows::All].map(|r| (*tile, r))).collect(),
        Search::Shares => vec![(base.tile, base.rows)],
    };
    for (tile, moved) in choices {
        let base = MoeKernel { rows: moved, ..base };
        let found = simplex::minimum(&START, |x| {
            // Where rows say nothing about a constant a small pull keeps it near its start.
            let pull: f64 = x.iter().zip(START).map(|(x, s)| float::ln(x / s).abs()).sum();
            kernel_of(x, tile, base).map_or(9.0, |kernel| loss(&kernel) + 4e-4 * pull)
        });
        let rounded: Vec<f64> = found.iter().map(|x| rounded(*x)).collect();
        let Some(kernel) = kernel_of(&rounded, tile, base) else { continue };
        let l = loss(&kernel);
        if best.is_none_or(|(least, _)| l < least) {
            best = Some((l, kernel));
        }
    }
    best.map_or(base, |(_, kernel)| kernel)
}

/// Constants from the search's arguments; nothing where they cannot be. No memory was seen to deliver more than 97%.
fn kernel_of(x: &[f64], tile: f64, base: MoeKernel) -> Option<MoeKernel> {
    let share = |v: f64| Fraction::checked(v).filter(|s| s.get() > 0.01);
    Some(MoeKernel {
        launch: Seconds::checked(x[0] * 1e-6)?,
        per_expert: Seconds::checked(x[1] * 1e-9)?,
        compute: share(x[2])?,
        memory: share(x[3]).filter(|s| s.get() <= 0.97)?,
        activation: share(x[4])?,
        tile,
        ..base
    })
}

/// How far constants are from rows they were not fitted on: the same family on another generation, in another format, and
/// (fitting anew each time) on another model's shapes.
pub fn transfer(folder: &Path) -> Result<Table, CalibrateError> {
    let rows = read(folder)?.rows;
    let kernels = rackmath_catalog::embedded().moe_kernels()?;
    let mut table = Table::new(&["left out", "which", "bias"], &BTreeMap::new());
    let without = |family: &str, drop: &dyn Fn(&MoeFit) -> bool| {
        let mut rest = (*kernels).clone();
        let fits = rest.families.get_mut(family)?;
        fits.retain(|f| !drop(f));
        (!fits.is_empty()).then_some(rest)
    };
    let mut lines = Vec::new();
    let mut add = |what: &str, which: &str, o: f64| lines.push((vec![what.to_owned(), which.to_owned()], o));
    for row in &rows {
        let format = row.call.format;
        let (generation, other) = (&row.generation, without(row.family, &|f| f.generation == row.generation));
        if let Some(rest) = other.filter(|k| k.families[row.family].iter().any(|f| f.format == format)) {
            let o = offset(&rest.find(row.family, format, generation)?.kernel, row);
            add("generation", &format!("{generation} {} {format}", row.family), o);
            add("generation", "all", o);
        }
        if let Some(rest) = without(row.family, &|f| f.format == format) {
            let o = offset(&rest.find(row.family, format, generation)?.kernel, row);
            add("format", "all", o);
        }
        add("family", "all (default)", offset(&kernels.default.0, row));
    }
    let refit = |seen: &[&Row]| fit_rows(seen, &kernels, Search::Shares);
    let off = |fitted: &MoeKernels, row: &Row| {
        Ok(offset(&fitted.find(row.family, row.call.format, &row.generation)?.kernel, row))
    };
    for (row, o) in left_out(&rows.iter().collect::<Vec<_>>(), |r| r.model.as_str(), refit, off)? {
        add("model", &row.model, o);
        add("model", "all", o);
    }
    table.group(lines);
    Ok(table)
}

impl fmt::Display for Fitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (family, fits) in &self.0.families {
            for MoeFit { generation, format, kernel: k, residual: r } in fits {
                writeln!(f, "[[family.{family}.fit]]\ngeneration = \"{generation}\"\nformat = \"{format}\"")?;
                let (launch, each) = (rounded(k.launch.get() * 1e6), rounded(k.per_expert.get() * 1e9));
                let rows = if k.rows == MoeRows::All { "all" } else { "routed" };
                writeln!(f, "rows = \"{rows}\"\nlaunch = \"{launch} us\"\nper_expert = \"{each} ns\"")?;
                let (a, b, c) = (k.compute.get(), k.memory.get(), k.activation.get());
                writeln!(f, "compute = {a}\nmemory = {b}\nactivation = {c}\ntile = {}", k.tile)?;
                writeln!(f, "fit = {{ rows = {}, median = {}, p90 = {} }}\n", r.rows, r.median, r.p90)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "moe_tests.rs"]
mod tests;
