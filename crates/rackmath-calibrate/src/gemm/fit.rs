//! Which constants are fitted on which rows, how they are, and the file they make.

use super::Row;
use crate::search::{Knob, knob, search};
use crate::table::Errors;
use rackmath_spec::{Catalog, Chip, GemmFormat, GemmKernel, Math, Pass, PowerRule, Residual, SpecError};
use rackmath_theory::operator::Silicon;
use rackmath_theory::operator::gemm::{Gemm, pass_time};
use rackmath_units::{ByteRate, BytesPerParam, Seconds, float};
use std::fmt::Write as _;

use GemmFormat::{Bf16, Fp8, Fp8Block, Int8, NvFp4, WeightInt4, WeightInt8};

/// Tiles of the usual libraries; with those of kernels for a few rows; of DeepGEMM on Blackwell; of the block-scaled tensor core, which has no smaller ones.
const USUAL: &[(f64, f64)] = &[(64.0, 64.0), (64.0, 128.0), (128.0, 128.0), (128.0, 256.0), (256.0, 256.0)];
const SMALL: &[(f64, f64)] =
    &[(16.0, 64.0), (16.0, 128.0), (64.0, 64.0), (64.0, 128.0), (128.0, 128.0), (128.0, 256.0), (256.0, 256.0)];
const TALL: &[(f64, f64)] = &[(128.0, 64.0), (128.0, 128.0), (128.0, 256.0), (256.0, 256.0)];
const LARGE: &[(f64, f64)] = &[(128.0, 128.0), (128.0, 256.0), (256.0, 256.0)];
const SPLIT: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0];
const WHOLE: &[f64] = &[1.0];

/// Chips to either side of the measured one keep at least and at most this of its efficiency.
const POWER_RANGE: (f64, f64) = (0.8, 1.15);

struct Task {
    class: &'static str,
    chip: &'static str,
    format: GemmFormat,
    backend: &'static str,
    engines: &'static [&'static str],
    tiles: &'static [(f64, f64)],
    splits: &'static [f64],
}

/// Workstation Blackwell: GDDR memory, no tensor memory.
const GDDR: &str = "blackwell-gddr";

const ALL: &[&str] = &["trtllm", "sglang", "vllm"];
const TRT: &[&str] = &["trtllm"];
const GRAPH: &[&str] = &["trtllm", "sglang"];
const OTHERS: &[&str] = &["sglang", "vllm"];
const TORCH: &[&str] = &["torch"];
const AITER: &[&str] = &["aiter", "tunableop", "hipblaslt-bench"];

#[rustfmt::skip]
const TASKS: &[Task] = &[
    Task { class: "ampere", chip: "a100", format: Bf16, backend: "any", engines: ALL, tiles: USUAL, splits: SPLIT },
    Task { class: "ampere", chip: "a100", format: Int8, backend: "any", engines: TRT, tiles: USUAL, splits: SPLIT },
    Task { class: "ampere", chip: "a100", format: WeightInt8, backend: "any", engines: TRT, tiles: SMALL, splits: SPLIT },
    Task { class: "ampere", chip: "a100", format: WeightInt4, backend: "any", engines: TRT, tiles: SMALL, splits: SPLIT },
    Task { class: "ada", chip: "l40s", format: Bf16, backend: "any", engines: ALL, tiles: USUAL, splits: SPLIT },
    Task { class: "ada", chip: "l40s", format: Fp8, backend: "any", engines: TRT, tiles: USUAL, splits: SPLIT },
    Task { class: "ada", chip: "l40s", format: Fp8Block, backend: "any", engines: TRT, tiles: SMALL, splits: WHOLE },
    Task { class: "hopper", chip: "h100", format: Bf16, backend: "any", engines: ALL, tiles: USUAL, splits: SPLIT },
    Task { class: "hopper", chip: "h100", format: Fp8, backend: "any", engines: TRT, tiles: USUAL, splits: SPLIT },
    Task { class: "hopper", chip: "h100", format: Fp8Block, backend: "any", engines: TRT, tiles: SMALL, splits: WHOLE },
    Task { class: "hopper", chip: "h100", format: Fp8Block, backend: "sglang", engines: &["sglang"], tiles: SMALL, splits: WHOLE },
    Task { class: "blackwell", chip: "b200", format: Bf16, backend: "any", engines: ALL, tiles: USUAL, splits: SPLIT },
    Task { class: "blackwell", chip: "b200", format: Fp8, backend: "any", engines: TRT, tiles: USUAL, splits: SPLIT },
    Task { class: "blackwell", chip: "b200", format: Fp8Block, backend: "any", engines: GRAPH, tiles: TALL, splits: WHOLE },
    Task { class: "blackwell", chip: "b200", format: NvFp4, backend: "any", engines: TRT, tiles: LARGE, splits: WHOLE },
    Task { class: "blackwell", chip: "b200", format: NvFp4, backend: "vllm", engines: OTHERS, tiles: TALL, splits: WHOLE },
    Task { class: "cdna3", chip: "mi300x", format: Bf16, backend: "any", engines: AITER, tiles: SMALL, splits: SPLIT },
    Task { class: "cdna3", chip: "mi300x", format: Fp8, backend: "any", engines: AITER, tiles: SMALL, splits: SPLIT },
    Task { class: "cdna3", chip: "mi300x", format: Fp8Block, backend: "any", engines: AITER, tiles: SMALL, splits: SPLIT },
    Task { class: "cdna4", chip: "mi355x", format: Bf16, backend: "any", engines: AITER, tiles: SMALL, splits: SPLIT },
    Task { class: "cdna4", chip: "mi355x", format: Fp8, backend: "any", engines: AITER, tiles: SMALL, splits: SPLIT },
    Task { class: "cdna4", chip: "mi355x", format: Fp8Block, backend: "any", engines: AITER, tiles: SMALL, splits: SPLIT },
    Task { class: "cdna4", chip: "mi355x", format: Int8, backend: "any", engines: AITER, tiles: SMALL, splits: SPLIT },
    Task { class: "cdna4", chip: "mi355x", format: NvFp4, backend: "any", engines: AITER, tiles: SMALL, splits: SPLIT },
    Task { class: GDDR, chip: "rtxpro6000", format: Bf16, backend: "any", engines: ALL, tiles: USUAL, splits: SPLIT },
    Task { class: GDDR, chip: "rtxpro6000", format: Fp8, backend: "any", engines: TRT, tiles: USUAL, splits: SPLIT },
    Task { class: GDDR, chip: "rtxpro6000", format: Fp8Block, backend: "any", engines: TRT, tiles: SMALL, splits: WHOLE },
    Task { class: GDDR, chip: "rtxpro6000", format: NvFp4, backend: "any", engines: TRT, tiles: LARGE, splits: WHOLE },
    Task { class: GDDR, chip: "rtxpro6000", format: NvFp4, backend: "vllm", engines: OTHERS, tiles: TALL, splits: WHOLE },
    Task { class: "hopper", chip: "h200", format: Bf16, backend: "torch", engines: TORCH, tiles: USUAL, splits: SPLIT },
    Task { class: "hopper", chip: "h200", format: Fp8, backend: "torch", engines: TORCH, tiles: USUAL, splits: SPLIT },
];

/// Rows nearer than this are near enough; without it the search would polish rows at the noise of the timings.
const NOISE: f64 = 0.02;

fn soft(errors: &[f64]) -> f64 {
    errors.iter().map(|e| (e * e + NOISE * NOISE).sqrt()).sum::<f64>() / errors.len() as f64
}

const KERNEL: [Knob<GemmKernel>; 12] = [
    knob("floor_us", (1.0, 25.0), |k| k.floor.as_ms() * 1e3, |k, v| k.floor = Seconds::us(v)),
    COMPUTE,
    knob("bandwidth", (0.3, 0.95), |k| k.bandwidth, |k, v| k.bandwidth = v),
    knob("corner", (1.0, 12.0), |k| k.corner, |k, v| k.corner = v),
    knob("operand_gb_per_s", (20.0, 2000.0), operand, |k, v| k.operand = Some(ByteRate::gb_per_s(v))),
    WAVE,
    knob("quantum", (1e-3, 1.0), |k| k.quantum, |k, v| k.quantum = v),
    DROOP,
    knob("split_us", (0.1, 20.0), |k| k.split.as_ms() * 1e3, |k, v| k.split = Seconds::us(v)),
    knob("ramp", (1e-3, 2.0), |k| k.ramp, |k, v| k.ramp = v),
    knob("ramp_us", (0.5, 60.0), |k| k.ramp_time.as_ms() * 1e3, |k, v| k.ramp_time = Seconds::us(v)),
    knob("resident", (1e-3, 0.6), |k| k.resident, |k, v| k.resident = v),
];

const COMPUTE: Knob<GemmKernel> = knob("compute", (0.1, 0.95), |k| k.compute, |k, v| k.compute = v);
const WAVE: Knob<GemmKernel> = knob("wave_us", (0.01, 6.0), |k| k.wave.as_ms() * 1e3, |k, v| k.wave = Seconds::us(v));
const DROOP: Knob<GemmKernel> = knob("droop", (1e-3, 0.6), |k| k.droop, |k, v| k.droop = v);

fn operand(kernel: &GemmKernel) -> f64 {
    kernel.operand.map_or(100.0, |rate| rate.get() / 1e9)
}

/// What differs between engines around the same product: the pass before it and how well tiles are chosen.
const ENGINE: [Knob<GemmKernel>; 6] = [
    knob("floor_us", (0.2, 25.0), |k| (PASS[0].get)(&k.dynamic[0]), |k, v| (PASS[0].set)(&mut k.dynamic[0], v)),
    knob("core_gb_per_s", (5.0, 200.0), |k| (PASS[1].get)(&k.dynamic[0]), |k, v| (PASS[1].set)(&mut k.dynamic[0], v)),
    knob("row_ns", (0.01, 20.0), |k| k.dynamic[0].row.as_ms() * 1e6, |k, v| k.dynamic[0].row = Seconds::ns(v)),
    COMPUTE,
    WAVE,
    DROOP,
];

/// Launches that are not captured in a graph.
const HOST: [Knob<GemmKernel>; 2] =
    [knob("host_us", (1.0, 2000.0), |k| k.host.as_ms() * 1e3, |k, v| k.host = Seconds::us(v)), COMPUTE];

/// A pass; the last is for passes that have two speeds.
const PASS: [Knob<Pass>; 5] = [
    knob("floor_us", (0.5, 25.0), |p| p.floor.as_ms() * 1e3, |p, v| p.floor = Seconds::us(v)),
    knob("core_gb_per_s", (5.0, 200.0), |p| p.core.get() / 1e9, |p, v| p.core = ByteRate::gb_per_s(v)),
    knob("bandwidth", (0.3, 0.92), |p| p.bandwidth, |p, v| p.bandwidth = v),
    knob("cached", (0.01, 0.6), |p| p.cached, |p, v| p.cached = v),
    knob(
        "cold_core_gb_per_s",
        (2.0, 200.0),
        |p| p.cold_core.map_or(20.0, |c| c.get() / 1e9),
        |p, v| p.cold_core = Some(ByteRate::gb_per_s(v)),
    ),
];

/// A pass's constants from rows of chips of one generation.
fn fit_pass(start: &Pass, two_speeds: bool, rows: &[(&Row, Silicon)]) -> Option<(Pass, Residual)> {
    let errors = |pass: &Pass| -> Vec<f64> {
        let error = |(row, silicon): &(&Row, Silicon)| float::ln(pass_time(*silicon, pass, row.product) / row.measured);
        rows.iter().map(error).collect()
    };
    let knobs = if two_speeds { &PASS[..] } else { &PASS[..4] };
    let found = search(start, knobs, |pass| soft(&errors(pass)));
    Some((found, Errors::of(errors(&found))?.fit))
}

/// A pass with its name, its fit and where it comes from.
struct NamedPass {
    id: String,
    pass: Pass,
    fit: Residual,
    source: &'static str,
}

fn start(task: &Task, chip: &Chip, passes: &[NamedPass]) -> Result<GemmKernel, SpecError> {
    let format = task.format;
    let missing = || SpecError::file(&chip.id, format!("no peak or power for {format}"));
    let (peak, tdp) = chip.peak.get(&format.math()).zip(chip.power.tdp.as_ref()).ok_or_else(missing)?;
    let generation = if task.class.starts_with("blackwell") { "blackwell" } else { "hopper" };
    let chosen = |names: &[&str]| -> Vec<Pass> {
        let find = |name| passes.iter().find(|p| p.id == format!("{name}-{generation}"));
        names.iter().filter_map(find).map(|p| p.pass).collect()
    };
    let (dynamic, fixed): (&[&str], &[&str]) = match format {
        Fp8 => (&["absmax", "scale"], &["scale"]),
        Fp8Block | NvFp4 => (&["block"], &["block"]),
        _ => (&[], &[]),
    };
    Ok(GemmKernel {
        class: task.class.to_owned(),
        format,
        backend: task.backend.to_owned(),
        floor: Seconds::us(2.5),
        host: Seconds::ZERO,
        compute: 0.75,
        power: Some(PowerRule { peak: peak.value, tdp: tdp.value, range: POWER_RANGE }),
        bandwidth: 0.85,
        corner: 2.5,
        operand: Some(ByteRate::gb_per_s(150.0)),
        wave: Seconds::us(1.0),
        quantum: 0.2,
        droop: 0.05,
        // Six runs of milliseconds are long enough for the power limiter; the data does not say more.
        droop_time: Seconds::us(2000.0),
        split: Seconds::us(3.0),
        ramp: 0.4,
        ramp_time: Seconds::us(8.0),
        resident: 0.1,
        tiles: task.tiles.to_vec(),
        splits: task.splits.to_vec(),
        dynamic: chosen(dynamic),
        fixed: chosen(fixed),
        fit: Residual::default(),
        source: match task.class {
            _ if task.backend == "torch" => "torch",
            "cdna3" | "cdna4" => "aiter",
            _ => "aic",
        }
        .to_owned(),
    })
}

fn chosen<'a>(rows: &'a [Row], chip: &str, format: GemmFormat, engines: &[&str]) -> Vec<&'a Row> {
    let fits = |r: &&Row| r.chip == chip && r.format == format && engines.contains(&r.backend.as_str());
    rows.iter().filter(fits).filter(|r| r.quality.is_empty()).collect()
}

/// The constants of a kernel that come near some rows, and how near.
fn fitted(start: &GemmKernel, knobs: &[Knob<GemmKernel>], chip: &Chip, rows: &[&Row]) -> Result<GemmKernel, SpecError> {
    let errors = |kernel: &GemmKernel| -> Vec<f64> {
        let gemm = Gemm::of(chip, kernel);
        gemm.map_or(Vec::new(), |gemm| rows.iter().map(|row| row.error(&gemm)).collect())
    };
    let what = || format!("{} {} {}", start.class, start.format, start.backend);
    if errors(start).is_empty() {
        return Err(SpecError::file(what(), "no rows to fit on"));
    }
    let found = search(start, knobs, |kernel| soft(&errors(kernel)));
    let fit = Errors::of(errors(&found)).map_or(start.fit, |errors| errors.fit);
    Ok(GemmKernel { fit, ..found })
}

/// Constants from TensorRT-LLM's rows alone.
pub fn without_other_engines(
    catalog: &Catalog,
    rows: &[Row],
    chip: &str,
    format: GemmFormat,
) -> Result<GemmKernel, SpecError> {
    let task = TASKS.iter().find(|t| t.chip == chip && t.format == format && t.backend == "any");
    let task = task.ok_or_else(|| SpecError::file(chip, "not planned"))?;
    let noun = catalog.chip(chip)?;
    fitted(&start(task, &noun, &[])?, &KERNEL, &noun, &chosen(rows, chip, format, TRT))
}

/// The passes of per-tensor FP8, and the one of block formats, whose floor is in the kernel's.
fn passes(catalog: &Catalog, rows: &[Row]) -> Result<Vec<NamedPass>, SpecError> {
    let mut passes = Vec::new();
    for generation in ["hopper", "blackwell"] {
        for (op, name, bytes) in [("compute_scale", "absmax", 2.0), ("scale_matrix", "scale", 3.0)] {
            let mut group = Vec::new();
            for row in rows.iter().filter(|r| r.backend == op) {
                let chip = catalog.chip(&row.chip)?;
                let silicon = Silicon::of(&chip, Math::Bf16).filter(|_| chip.generation == generation);
                group.extend(silicon.map(|silicon| (row, silicon)));
            }
            let start = Pass {
                width: BytesPerParam::new(bytes),
                floor: Seconds::us(4.0),
                core: ByteRate::gb_per_s(30.0),
                cold_core: None,
                bandwidth: 0.85,
                cached: 0.25,
                row: Seconds::ZERO,
            };
            let Some((pass, fit)) = fit_pass(&start, op == "compute_scale", &group) else { continue };
            passes.push(NamedPass { id: format!("{name}-{generation}"), pass, fit, source: "quantise" });
            if op == "scale_matrix" {
                let pass = Pass { floor: Seconds::ZERO, ..pass };
                passes.push(NamedPass { id: format!("block-{generation}"), pass, fit, source: "block" });
            }
        }
    }
    Ok(passes)
}

/// Fits everything and prints the catalogue's file.
pub fn file(catalog: &Catalog, rows: &[Row], pass_rows: &[Row]) -> Result<String, SpecError> {
    let mut passes = passes(catalog, pass_rows)?;
    let mut kernels: Vec<GemmKernel> = Vec::new();
    for task in TASKS {
        let chip = catalog.chip(task.chip)?;
        let rows = chosen(rows, task.chip, task.format, task.engines);
        // Our own table is not part of the public database.
        if !rows.is_empty() || task.backend != "torch" {
            kernels.push(fitted(&start(task, &chip, &passes)?, &KERNEL, &chip, &rows)?);
        }
    }
    for (class, chip) in [("ada", "l40s"), ("hopper", "h100"), ("blackwell", "b200"), (GDDR, "rtxpro6000")] {
        let noun = catalog.chip(chip)?;
        for engine in ["sglang", "vllm"] {
            // An engine with one fused pass per row of activations before the product of the class.
            let mut from = again(find(&kernels, class, Fp8, "any"), class, engine);
            from.dynamic = vec![Pass { floor: Seconds::us(2.0), row: Seconds::ns(0.5), ..from.fixed[0] }];
            let mut kernel = fitted(&from, &ENGINE, &noun, &chosen(rows, chip, Fp8, &[engine]))?;
            // A pass with a fixed scale is not slower than one that has to find it.
            kernel.fixed.clone_from(&kernel.dynamic);
            let (id, pass) = (format!("token-{class}-{engine}"), kernel.dynamic[0]);
            passes.push(NamedPass { id, pass, fit: kernel.fit, source: "aic" });
            kernels.push(kernel);
        }
        let block = chosen(rows, chip, Fp8Block, &["vllm"]);
        if !block.is_empty() {
            let base = find(&kernels, class, Fp8Block, "any");
            let from = GemmKernel { host: Seconds::us(100.0), ..again(base, class, "vllm") };
            kernels.push(fitted(&from, &HOST, &noun, &block)?);
        }
    }
    for class in ["blackwell", GDDR] {
        kernels.push(again(find(&kernels, class, NvFp4, "vllm"), class, "sglang"));
    }
    kernels.extend(without_rows(&kernels));
    Ok(text(&passes, &kernels))
}

/// Constants for chips without rows: those of the nearest class, with a wider spread.
fn without_rows(kernels: &[GemmKernel]) -> Vec<GemmKernel> {
    let copy = |class: &str, from: &GemmKernel, source: &str, (median, p90): (f64, f64)| GemmKernel {
        fit: Residual { rows: 0, median, p90 },
        source: source.to_owned(),
        ..again(from, class, &from.backend)
    };
    let mut copies = Vec::new();
    let nearest: [(&str, &[GemmFormat]); 3] =
        [("hopper", &[Bf16, Fp8, Fp8Block]), ("blackwell", &[NvFp4]), ("ampere", &[Int8, WeightInt8, WeightInt4])];
    for (class, &format) in nearest.into_iter().flat_map(|(class, formats)| formats.iter().map(move |f| (class, f))) {
        // Another maker's watts say nothing about clocks here.
        let near = copy("default", find(kernels, class, format, "any"), "default", (0.25, 0.6));
        copies.push(GemmKernel { power: None, ..near });
    }
    copies
}

fn find<'a>(kernels: &'a [GemmKernel], class: &str, format: GemmFormat, backend: &str) -> &'a GemmKernel {
    let fits = |k: &&GemmKernel| k.class == class && k.format == format && k.backend == backend;
    kernels.iter().find(fits).expect("fitted before")
}

/// The same constants under another name.
fn again(kernel: &GemmKernel, class: &str, backend: &str) -> GemmKernel {
    GemmKernel { class: class.to_owned(), backend: backend.to_owned(), ..kernel.clone() }
}

const HEAD: &str = r#"# Printed by `rackmath-calibrate fit gemm FOLDER`; change the plan there, not the numbers here.
name = "matrix products"
form = "rackmath_theory::operator::gemm"
as_of = "2026-11"

[sources]
aic = "fitted by rackmath-calibrate on kernel_gemm_*.csv (A100, L40S, H100, B200, RTX PRO 6000), subsets of the aiconfigurator database 0.12.0 (Apache-2.0): TensorRT-LLM 1.3.0rc20 (A100 1.0.0), vLLM 0.24.0 (A100 0.14.0), SGLang 0.5.14 (A100 0.5.10)"
torch = "fitted by rackmath-calibrate on h200_torch/gemm.json: one H200, driver 580, CUDA 13.0, PyTorch 2.11, graph replay, weights in rotation so that the cache does not serve them, 2026-11"
quantise = "fitted by rackmath-calibrate on kernel_quantize.csv of the same database, H100 and H200 or B200 and GB200 together"
block = "the pass `scale` of the class with no floor of its own: timings of block formats hold the pass and the product together"
aiter = "fitted by rackmath-calibrate on amd_tpu/kernel_gemm_mi300x.csv and _mi355x.csv: the tuned tables of ROCm/aiter at e404860 (2026-08-22, MIT), the best kernel of each shape, weights from memory, activations already in the format; 16 bits on MI300X mostly from tunableop_results of ROCm/vllm at ce164b7 (2024-04)"
default = "no rows: constants of hopper, nvfp4 of blackwell, integers of ampere; spread from applying one generation's constants to another's chips"
"#;

/// Three digits, plainly, as TOML writes a float.
fn number(value: f64) -> String {
    let digits = (2.0 - float::log10(value.abs().max(1e-9)).floor()).clamp(0.0, 4.0) as usize;
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text.contains('.') { text.to_owned() } else { format!("{text}.0") }
}

fn fit_lines(fit: Residual, source: &str) -> String {
    format!("rows = {}\nmedian = {}\np90 = {}\nsource = \"{source}\"\n", fit.rows, number(fit.median), number(fit.p90))
}

fn lines<T>(knobs: &[Knob<T>], of: &T) -> String {
    knobs.iter().fold(String::new(), |text, k| text + k.name + " = " + &number((k.get)(of)) + "\n")
}

fn text(passes: &[NamedPass], kernels: &[GemmKernel]) -> String {
    let mut out = HEAD.to_owned();
    for NamedPass { id, pass, fit, source } in passes {
        let _ = write!(out, "\n[[pass]]\nid = \"{id}\"\nbytes = {}\n", number(pass.width.get()));
        let cold = pass.cold_core.map_or(&[][..], |_| &PASS[4..]);
        out += &(lines(&PASS[..2], pass) + &lines(cold, pass) + &lines(&PASS[2..4], pass));
        if pass.row > Seconds::ZERO {
            let _ = writeln!(out, "row_ns = {}", number(pass.row.as_ms() * 1e6));
        }
        out += &fit_lines(*fit, source);
    }
    let name = |pass: &Pass| passes.iter().find(|p| p.pass == *pass).map_or("", |p| &p.id);
    for k in kernels {
        let GemmKernel { class, format, backend, .. } = k;
        let _ = write!(out, "\n[[kernel]]\nclass = \"{class}\"\nformat = \"{format}\"\nbackend = \"{backend}\"\n");
        let host = if k.host > Seconds::ZERO { &HOST[..1] } else { &[] };
        out += &(lines(&KERNEL[..1], k) + &lines(host, k) + &lines(&KERNEL[1..8], k));
        let _ = writeln!(out, "droop_us = {}", number(k.droop_time.as_ms() * 1e3));
        out += &lines(&KERNEL[8..], k);
        let tiles: Vec<[f64; 2]> = k.tiles.iter().map(|tile| (*tile).into()).collect();
        let _ =
            writeln!(out, "tiles = {}\nsplits = {}", whole(&format!("{tiles:?}")), whole(&format!("{:?}", k.splits)));
        if !k.dynamic.is_empty() {
            let names = |passes: &[Pass]| passes.iter().map(name).collect::<Vec<_>>();
            let _ = writeln!(out, "dynamic = {:?}\nfixed = {:?}", names(&k.dynamic), names(&k.fixed));
        }
        if let Some(PowerRule { peak, tdp, range: (low, high) }) = k.power {
            let (peak, tdp) = (peak.get() / 1e12, tdp.get());
            let _ =
                writeln!(out, "power = {{ peak = \"{peak} TFLOP/s\", tdp = \"{tdp} W\", range = [{low}, {high}] }}");
        }
        out += &fit_lines(k.fit, &k.source);
    }
    out
}

/// Whole numbers without their ".0".
fn whole(list: &str) -> String {
    list.replace(".0", "")
}
