//! Expert kernels against measured tables: `kernel_moe_<chip>.csv`, one file per chip.
//!
//! [`score`] says how far the catalogue is from the rows, [`fit`] finds the constants of every family, format and generation,
//! [`transfer`] how far constants are from rows they have not seen: another generation, another format, another model.
//! The loss is the mean of |ln(predicted / measured)|, each row counting at most [`CAP`]: some rows were timed with routing
//! or tuning gone astray, by up to a factor of eight, and must not bend a constant.

use crate::case::Case;
use crate::names::Names;
use crate::rows::{Record, Rows, fitted_on, present};
use crate::search;
use crate::table::{Errors, Table, left_out, rounded};
use rackmath_spec::{Catalog, Chip, MoeFit, MoeFormat, MoeKernel, MoeKernels, MoeRows, Residual, SpecError};
use rackmath_theory::operator::{Silicon, moe};
use rackmath_units::{Fraction, Seconds, Tokens, float};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The most one row adds to the loss.
const CAP: f64 = 0.6;

const TILES: [f64; 3] = [16.0, 64.0, 128.0];

/// Tables that are understood; each is named for its chip, or names one in each row.
const FILES: [&str; 12] = [
    "kernel_moe_a100.csv",
    "kernel_moe_b200.csv",
    "kernel_moe_b300.csv",
    "kernel_moe_gb200.csv",
    "kernel_moe_gb300.csv",
    "kernel_moe_h100.csv",
    "kernel_moe_h200.csv",
    "kernel_moe_l40s.csv",
    "kernel_moe_rtxpro6000.csv",
    "kernel_moe_torch.csv",
    "amd_tpu/kernel_moe_mi3xx.csv",
    "amd_tpu/kernel_moe_ascend_b60.csv",
];

/// PyTorch's grouped products, timed by `scripts/time_experts.py`.
const TORCH: &str = "torch-grouped";

pub fn files() -> impl Iterator<Item = &'static str> {
    FILES.into_iter()
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    file: &'static str,
    chip: String,
    /// The generation whose kernels it runs.
    generation: String,
    silicon: Silicon,
    family: &'static str,
    /// The model whose shape it is.
    model: String,
    call: moe::Call,
    measured: Seconds,
}

fn read(catalog: &Catalog, folder: &Path) -> Result<Rows<Row>, SpecError> {
    let (kernels, names) = (catalog.moe_kernels()?, Names::new(catalog));
    crate::rows::read(present(folder, &FILES, |file| file)?, |file, record| {
        let name = match record.text("system") {
            "" => file.trim_start_matches("kernel_moe_").trim_end_matches(".csv"),
            system => system,
        };
        [names.found(name).and_then(|chip| row(record, &chip, &kernels)).map(|row| Row { file, ..row })]
    })
}

fn row(record: &Record, chip: &Chip, kernels: &MoeKernels) -> Result<Row, String> {
    let text = |column: &str| record.needed(column);
    let count = |column: &str| {
        let value = text(column)?.parse::<u64>().ok().filter(|n| *n > 0);
        value.ok_or_else(|| format!("no count in {column}"))
    };
    // A table of one rank's share states no degrees.
    let degree = |column: &str| if text(column)?.is_empty() { Ok(1) } else { count(column) };
    if record.text("quality") == "over_peak" {
        return Err("faster than the peak".into());
    }
    let format = format(text("moe_dtype")?)?;
    let silicon = Silicon::of(chip, format.math()).ok_or_else(|| format!("{} has no {}", chip.id, format.math()))?;
    let draw = match text("distribution")? {
        "balanced" => moe::Draw::Even,
        "uniform" | "random" | "random_router_scores" | "" => moe::Draw::Random,
        other => {
            let alpha = other.strip_prefix("power_law_").and_then(|a| a.parse().ok());
            moe::Draw::PowerLaw(alpha.ok_or_else(|| format!("no distribution \"{other}\""))?)
        }
    };
    let layer = moe::Layer {
        hidden: count("hidden_size")?,
        inter: count("inter_size")?.div_ceil(degree("moe_tp_size")?),
        gated: true,
        experts: count("num_experts")?,
        top_k: count("topk")?,
        ranks: degree("moe_ep_size")?,
    };
    let source = text("kernel_source")?;
    // A library without constants of its own is timed as an answer would time it.
    let family = match text("backend")? {
        "aiter" => "aiter",
        "torch" => TORCH,
        "vllm-ascend" => "default",
        _ => family(source, format, &chip.generation),
    };
    Ok(Row {
        file: "",
        chip: chip.id.clone(),
        generation: kernels.generation(chip).to_owned(),
        silicon,
        family,
        model: text("model_shape")?.into(),
        call: moe::Call { layer, format, tokens: Tokens::new(count("num_tokens")? as f64), draw },
        measured: record.latency()?,
    })
}

/// Our word, aiconfigurator's, or AITER's `a_FORMAT/w_FORMAT/SCALES`.
fn format(word: &str) -> Result<MoeFormat, String> {
    let bits = |part: &str| match part.split_once('_').map(|(_, format)| format) {
        Some("bfloat16" | "float16") => 16,
        Some(f) if f.starts_with("float8") => 8,
        Some(f) if f.starts_with("float4") => 4,
        Some("int4") => -4,
        _ => 0,
    };
    let parts: Vec<&str> = word.split('/').collect();
    let [activations, weights, scales] = parts[..] else {
        return word.parse().map_err(|e: SpecError| e.to_string());
    };
    match (bits(activations), bits(weights), scales) {
        (16, 16, _) => Ok(MoeFormat::Bf16),
        (8, 8, "per_1x128") => Ok(MoeFormat::Fp8Block),
        (8, 8, "per_Token" | "per_Tensor") => Ok(MoeFormat::Fp8),
        (16, 4, _) => Ok(MoeFormat::MxFp4A16),
        (8, 4, _) => Ok(MoeFormat::MxFp4A8),
        (4, 4, _) => Ok(MoeFormat::NvFp4),
        (16, -4, _) => Ok(MoeFormat::Int4A16),
        _ => Err(format!("no expert format \"{word}\"")),
    }
}

/// The family of a kernel as aiconfigurator names it.
fn family(source: &str, format: MoeFormat, generation: &str) -> &'static str {
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

/// The same of the constants a set of kernels has for the row.
fn off(kernels: &MoeKernels, row: &Row) -> Result<f64, SpecError> {
    Ok(offset(&kernels.find(row.family, row.call.format, &row.generation)?.kernel, row))
}

/// How far the catalogue is from the tables of a folder: per chip, family and format, then per chip, then all.
pub fn score(catalog: &Catalog, folder: &Path) -> Result<Table, SpecError> {
    Ok(score_rows(&read(catalog, folder)?, &*catalog.moe_kernels()?))
}

/// Every row beside its prediction.
pub fn cases(catalog: &Catalog, folder: &Path) -> Result<Rows<Case>, SpecError> {
    let kernels = catalog.moe_kernels()?;
    Ok(read(catalog, folder)?.map(|row| {
        let chip = catalog.chip(&row.chip)?;
        let (layer, draw) = (&row.call.layer, row.call.draw);
        let what = format!(
            "{} tokens, {} of {} experts of {} x {}, {} ranks, {draw:?}",
            row.call.tokens.get(),
            layer.top_k,
            layer.experts,
            layer.hidden,
            layer.inter,
            layer.ranks
        );
        let shape = format!("{} {}", row.model, row.call.format);
        let case = Case { experts: true, ..Case::on(&chip, row.file, "experts") };
        Ok::<Case, SpecError>(case.of(row.family, shape, what).off(row.measured.get(), off(&kernels, &row)?))
    }))
}

fn score_rows(rows: &Rows<Row>, kernels: &MoeKernels) -> Table {
    let mut table = Table::new(&["chip", "family", "format", "routing", "bias"], &rows.skipped);
    let scored = table.scored(&rows.rows, |row| off(kernels, row));
    table.group(scored.iter().flat_map(|(row, o)| {
        let routing = if row.call.draw == moe::Draw::Even { "even" } else { "skewed" };
        let groups = [
            [row.chip.as_str(), row.family, row.call.format.into(), "all"],
            [&row.chip, "all", "all", routing],
            [&row.chip, "all", "all", "all"],
            ["all", "all", "all", routing],
            ["all", "all", "all", "all"],
        ];
        groups.map(|group| (group, *o))
    }));
    table
}

/// Constants fitted to the tables of a folder. Not fitted: what a family pads, corner, tail and cache.
/// These are read off the tables and stand in the catalogue.
pub fn fit(catalog: &Catalog, folder: &Path) -> Result<String, SpecError> {
    let rows = read(catalog, folder)?.rows;
    // PyTorch's own were timed on no other chip.
    let rows: Vec<&Row> = rows.iter().filter(|row| fitted_on(&row.chip) || row.family == TORCH).collect();
    fit_rows(&rows, &*catalog.moe_kernels()?, Search::Full).map(|fitted| toml(&fitted))
}

/// What a fit may change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    /// Everything: tiles and which rows move are tried one by one.
    Full,
    /// Tiles and which rows move stay; floors and shares are fitted.
    Shares,
}

/// Fits every family, format and generation that rows speak of; the rest of `kernels` stays.
fn fit_rows(rows: &[&Row], kernels: &MoeKernels, search: Search) -> Result<MoeKernels, SpecError> {
    let mut groups: BTreeMap<(&str, &str, MoeFormat), Vec<&Row>> = BTreeMap::new();
    for row in rows {
        groups.entry((row.family, &row.generation, row.call.format)).or_default().push(row);
    }
    let mut fitted = kernels.clone();
    for (family, fits) in &mut fitted.families {
        fits.retain(|f| !groups.contains_key(&(family.as_str(), f.generation.as_str(), f.format)));
    }
    for ((family, generation, format), rows) in groups {
        let kernel = fit_one(&rows, kernels.find(family, format, generation)?.kernel, search);
        let Some(Errors { fit, .. }) = Errors::of(rows.iter().map(|row| offset(&kernel, row))) else { continue };
        let residual = Residual { median: rounded(fit.median), p90: rounded(fit.p90), ..fit };
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
    let choices = match search {
        Search::Full => TILES.iter().flat_map(|tile| [MoeRows::Routed, MoeRows::All].map(|r| (*tile, r))).collect(),
        Search::Shares => vec![(base.tile, base.rows)],
    };
    let fits = choices.into_iter().filter_map(|(tile, rows)| {
        let base = MoeKernel { rows, ..base };
        let found = search::minimum(&START, |x| {
            // Where rows say nothing about a constant a small pull keeps it near its start.
            let pull: f64 = x.iter().zip(START).map(|(x, s)| float::ln(x / s).abs()).sum();
            kernel_of(x, tile, base).map_or(9.0, |kernel| loss(&kernel) + 4e-4 * pull)
        });
        kernel_of(&found.into_iter().map(rounded).collect::<Vec<f64>>(), tile, base)
    });
    fits.min_by(|a, b| loss(a).total_cmp(&loss(b))).unwrap_or(base)
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
pub fn transfer(catalog: &Catalog, folder: &Path) -> Result<Table, SpecError> {
    let (rows, kernels) = (read(catalog, folder)?.rows, catalog.moe_kernels()?);
    let mut table = Table::new(&["left out", "which", "bias"], &BTreeMap::new());
    let without = |family: &str, drop: &dyn Fn(&MoeFit) -> bool| {
        let mut rest = (*kernels).clone();
        let fits = rest.families.get_mut(family)?;
        fits.retain(|f| !drop(f));
        (!fits.is_empty()).then_some(rest)
    };
    let mut lines = Vec::new();
    let mut add = |what: &str, which: &str, o: f64| lines.push(([what.to_owned(), which.to_owned()], o));
    for row in &rows {
        let (format, generation) = (row.call.format, &row.generation);
        let other = without(row.family, &|f| f.generation == *generation);
        if let Some(rest) = other.filter(|k| k.families[row.family].iter().any(|f| f.format == format)) {
            let o = off(&rest, row)?;
            add("generation", &format!("{generation} {} {format}", row.family), o);
            add("generation", "all", o);
        }
        if let Some(rest) = without(row.family, &|f| f.format == format) {
            add("format", "all", off(&rest, row)?);
        }
        add("family", "all (default)", offset(&kernels.default.0, row));
    }
    let refit = |seen: &[&Row]| fit_rows(seen, &kernels, Search::Shares);
    for (row, o) in left_out(&rows.iter().collect::<Vec<_>>(), |r| r.model.as_str(), refit, off)? {
        add("model", &row.model, o);
        add("model", "all", o);
    }
    table.group(lines);
    Ok(table)
}

fn toml(kernels: &MoeKernels) -> String {
    let mut text = String::new();
    for (family, fits) in &kernels.families {
        for MoeFit { generation, format, kernel: k, residual: r } in fits {
            let _ = writeln!(text, "[[family.{family}.fit]]\ngeneration = \"{generation}\"\nformat = \"{format}\"");
            let (launch, each) = (rounded(k.launch.get() * 1e6), rounded(k.per_expert.get() * 1e9));
            let rows = if k.rows == MoeRows::All { "all" } else { "routed" };
            let _ = writeln!(text, "rows = \"{rows}\"\nlaunch = \"{launch} us\"\nper_expert = \"{each} ns\"");
            let (a, b, c) = (k.compute.get(), k.memory.get(), k.activation.get());
            let _ = writeln!(text, "compute = {a}\nmemory = {b}\nactivation = {c}\ntile = {}", k.tile);
            let _ = writeln!(text, "fit = {{ rows = {}, median = {}, p90 = {} }}\n", r.rows, r.median, r.p90);
        }
    }
    text
}

#[cfg(test)]
#[path = "moe_tests.rs"]
mod tests;
