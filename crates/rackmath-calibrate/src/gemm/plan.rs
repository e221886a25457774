//! Which constants are fitted on which rows, and the file they make.

use super::Row;
use super::fit;
use super::rows::PassRow;
use crate::CalibrateError;
use crate::knob::Knob;
use rackmath_spec::{Catalog, Chip, GemmFormat, GemmKernel, Pass, PowerRule, Residual};
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

/// A set of constants to fit from scratch.
struct Task {
    class: &'static str,
    chip: &'static str,
    format: GemmFormat,
    backend: &'static str,
    engines: &'static [&'static str],
    tiles: &'static [(f64, f64)],
    splits: &'static [f64],
    dynamic: &'static [&'static str],
    fixed: &'static [&'static str],
}

const ALL: &[&str] = &["trtllm", "sglang", "vllm"];
const TRT: &[&str] = &["trtllm"];
const GRAPH: &[&str] = &["trtllm", "sglang"];
const OTHERS: &[&str] = &["sglang", "vllm"];
const TORCH: &[&str] = &["torch"];

#[rustfmt::skip]
const TASKS: &[Task] = &[
    Task { class: "ampere", chip: "a100", format: Bf16, backend: "any", engines: ALL, tiles: USUAL, splits: SPLIT, dynamic: &[], fixed: &[] },
    Task { class: "ampere", chip: "a100", format: Int8, backend: "any", engines: TRT, tiles: USUAL, splits: SPLIT, dynamic: &[], fixed: &[] },
    Task { class: "ampere", chip: "a100", format: WeightInt8, backend: "any", engines: TRT, tiles: SMALL, splits: SPLIT, dynamic: &[], fixed: &[] },
    Task { class: "ampere", chip: "a100", format: WeightInt4, backend: "any", engines: TRT, tiles: SMALL, splits: SPLIT, dynamic: &[], fixed: &[] },
    Task { class: "ada", chip: "l40s", format: Bf16, backend: "any", engines: ALL, tiles: USUAL, splits: SPLIT, dynamic: &[], fixed: &[] },
    Task { class: "ada", chip: "l40s", format: Fp8, backend: "any", engines: TRT, tiles: USUAL, splits: SPLIT, dynamic: &["absmax-hopper", "scale-hopper"], fixed: &["scale-hopper"] },
    Task { class: "ada", chip: "l40s", format: Fp8Block, backend: "any", engines: TRT, tiles: SMALL, splits: WHOLE, dynamic: &["block-hopper"], fixed: &["block-hopper"] },
    Task { class: "hopper", chip: "h100", format: Bf16, backend: "any", engines: ALL, tiles: USUAL, splits: SPLIT, dynamic: &[], fixed: &[] },
    Task { class: "hopper", chip: "h100", format: Fp8, backend: "any", engines: TRT, tiles: USUAL, splits: SPLIT, dynamic: &["absmax-hopper", "scale-hopper"], fixed: &["scale-hopper"] },
    Task { class: "hopper", chip: "h100", format: Fp8Block, backend: "any", engines: TRT, tiles: SMALL, splits: WHOLE, dynamic: &["block-hopper"], fixed: &["block-hopper"] },
    Task { class: "hopper", chip: "h100", format: Fp8Block, backend: "sglang", engines: &["sglang"], tiles: SMALL, splits: WHOLE, dynamic: &["block-hopper"], fixed: &["block-hopper"] },
    Task { class: "blackwell", chip: "b200", format: Bf16, backend: "any", engines: ALL, tiles: USUAL, splits: SPLIT, dynamic: &[], fixed: &[] },
    Task { class: "blackwell", chip: "b200", format: Fp8, backend: "any", engines: TRT, tiles: USUAL, splits: SPLIT, dynamic: &["absmax-blackwell", "scale-blackwell"], fixed: &["scale-blackwell"] },
    Task { class: "blackwell", chip: "b200", format: Fp8Block, backend: "any", engines: GRAPH, tiles: TALL, splits: WHOLE, dynamic: &["block-blackwell"], fixed: &["block-blackwell"] },
    Task { class: "blackwell", chip: "b200", format: NvFp4, backend: "any", engines: TRT, tiles: LARGE, splits: WHOLE, dynamic: &["block-blackwell"], fixed: &["block-blackwell"] },
    Task { class: "blackwell", chip: "b200", format: NvFp4, backend: "vllm", engines: OTHERS, tiles: TALL, splits: WHOLE, dynamic: &["block-blackwell"], fixed: &["block-blackwell"] },
    Task { class: "hopper", chip: "h200", format: Bf16, backend: "torch", engines: TORCH, tiles: USUAL, splits: SPLIT, dynamic: &[], fixed: &[] },
    Task { class: "hopper", chip: "h200", format: Fp8, backend: "torch", engines: TORCH, tiles: USUAL, splits: SPLIT, dynamic: &["absmax-hopper", "scale-hopper"], fixed: &["scale-hopper"] },
];

/// A kernel with the names of its passes.
struct Named {
    kernel: GemmKernel,
    dynamic: Vec<String>,
    fixed: Vec<String>,
}

/// A pass with its name, its fit and where it comes from.
struct NamedPass {
    id: String,
    pass: Pass,
    fit: Residual,
    source: &'static str,
}

fn start(task: &Task, chip: &Chip, passes: &[NamedPass]) -> Result<GemmKernel, CalibrateError> {
    let format = task.format;
    let missing = || CalibrateError::file(&chip.id, format!("no peak or power for {format}"));
    let (peak, tdp) = chip.peak.get(&format.math()).zip(chip.power.tdp.as_ref()).ok_or_else(missing)?;
    let chosen = |names: &[&str]| -> Vec<Pass> {
        names.iter().filter_map(|name| passes.iter().find(|p| p.id == *name)).map(|p| p.pass).collect()
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
        dynamic: chosen(task.dynamic),
        fixed: chosen(task.fixed),
        fit: Residual::default(),
        source: if task.backend == "torch" { "torch" } else { "aic" }.to_owned(),
    })
}

fn chosen<'a>(rows: &'a [Row], chip: &str, format: GemmFormat, engines: &[&str]) -> Vec<&'a Row> {
    let fits = |r: &&Row| r.chip == chip && r.format == format && engines.contains(&r.backend.as_str());
    rows.iter().filter(fits).filter(|r| r.quality.is_empty()).collect()
}

fn fitted(
    start: &GemmKernel,
    knobs: &[Knob<GemmKernel>],
    chip: &Chip,
    rows: &[&Row],
) -> Result<GemmKernel, CalibrateError> {
    let what = || format!("{} {} {}", start.class, start.format, start.backend);
    fit::kernel(start, knobs, chip, rows).ok_or_else(|| CalibrateError::file(what(), "no rows to fit on"))
}

/// Constants from TensorRT-LLM's rows alone.
pub fn without_other_engines(
    catalog: &Catalog,
    rows: &[Row],
    chip: &str,
    format: GemmFormat,
) -> Result<GemmKernel, CalibrateError> {
    let task = TASKS.iter().find(|t| t.chip == chip && t.format == format && t.backend == "any");
    let task = task.ok_or_else(|| CalibrateError::file(chip, "not planned"))?;
    let noun = catalog.chip(chip)?;
    fitted(&start(task, &noun, &[])?, &fit::KERNEL, &noun, &chosen(rows, chip, format, TRT))
}

/// The passes of per-tensor FP8, and the one of block formats, whose floor is in the kernel's.
fn passes(catalog: &Catalog, rows: &[PassRow]) -> Result<Vec<NamedPass>, CalibrateError> {
    let mut passes = Vec::new();
    for generation in ["hopper", "blackwell"] {
        for (op, name, bytes) in [("compute_scale", "absmax", 2.0), ("scale_matrix", "scale", 3.0)] {
            let mut group = Vec::new();
            for row in rows.iter().filter(|r| r.op == op) {
                group.push((row, catalog.chip(&row.chip)?));
            }
            group.retain(|(_, chip)| chip.generation == generation);
            let group: Vec<(&PassRow, &Chip)> = group.iter().map(|(row, chip)| (*row, &**chip)).collect();
            let start = Pass {
                width: BytesPerParam::new(bytes),
                floor: Seconds::us(4.0),
                core: ByteRate::gb_per_s(30.0),
                cold_core: None,
                bandwidth: 0.85,
                cached: 0.25,
                row: Seconds::ZERO,
            };
            let Some((pass, fit)) = fit::pass(&start, op == "compute_scale", &group) else { continue };
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
pub fn file(catalog: &Catalog, rows: &[Row], pass_rows: &[PassRow]) -> Result<String, CalibrateError> {
    let mut passes = passes(catalog, pass_rows)?;
    let mut kernels: Vec<Named> = Vec::new();
    for task in TASKS {
        let chip = catalog.chip(task.chip)?;
        let rows = chosen(rows, task.chip, task.format, task.engines);
        if rows.is_empty() && task.backend == "torch" {
            // Our own table is not part of the public database.
            continue;
        }
        let kernel = fitted(&start(task, &chip, &passes)?, &fit::KERNEL, &chip, &rows)?;
        let names = |list: &[&str]| list.iter().map(|n| (*n).to_owned()).collect();
        kernels.push(Named { kernel, dynamic: names(task.dynamic), fixed: names(task.fixed) });
    }
    for (class, chip) in [("ada", "l40s"), ("hopper", "h100"), ("blackwell", "b200")] {
        let noun = catalog.chip(chip)?;
        for engine in ["sglang", "vllm"] {
            let (named, pass) = token_scaled(&kernels, class, engine, &noun, &chosen(rows, chip, Fp8, &[engine]))?;
            passes.push(pass);
            kernels.push(named);
        }
        let base = find(&kernels, class, Fp8Block, "any");
        let mut from = base.kernel.clone();
        (from.backend, from.host) = ("vllm".to_owned(), Seconds::us(100.0));
        let kernel = fitted(&from, &fit::HOST, &noun, &chosen(rows, chip, Fp8Block, &["vllm"]))?;
        let named = Named { kernel, dynamic: base.dynamic.clone(), fixed: base.fixed.clone() };
        kernels.push(named);
    }
    let same = find(&kernels, "blackwell", NvFp4, "vllm").again("blackwell", "sglang");
    kernels.push(same);
    kernels.extend(without_rows(&kernels));
    Ok(text(&passes, &kernels))
}

/// An engine with one fused pass per row of activations before the product of the class.
fn token_scaled(
    kernels: &[Named],
    class: &str,
    engine: &str,
    chip: &Chip,
    rows: &[&Row],
) -> Result<(Named, NamedPass), CalibrateError> {
    let base = find(kernels, class, Fp8, "any");
    let mut from = base.kernel.clone();
    engine.clone_into(&mut from.backend);
    from.dynamic = vec![Pass { floor: Seconds::us(2.0), row: Seconds::ns(0.5), ..from.fixed[0] }];
    let mut kernel = fitted(&from, &fit::ENGINE, chip, rows)?;
    let pass = kernel.dynamic[0];
    // A pass with a fixed scale is not slower than one that has to find it.
    kernel.fixed.clone_from(&kernel.dynamic);
    let id = format!("token-{class}-{engine}");
    let named = NamedPass { id: id.clone(), pass, fit: kernel.fit, source: "aic" };
    Ok((Named { kernel, dynamic: vec![id.clone()], fixed: vec![id] }, named))
}

/// Constants for chips without rows: those of the nearest class, with a wider spread.
fn without_rows(kernels: &[Named]) -> Vec<Named> {
    let copy = |class: &str, from: &Named, source: &str, spread: (f64, f64)| {
        let mut named = from.again(class, &from.kernel.backend);
        named.kernel.fit = Residual { rows: 0, median: spread.0, p90: spread.1 };
        source.clone_into(&mut named.kernel.source);
        named
    };
    let mut copies = Vec::new();
    for (backend, format) in
        [("any", Bf16), ("any", Fp8), ("vllm", Fp8), ("sglang", Fp8), ("any", Fp8Block), ("vllm", Fp8Block)]
    {
        copies.push(copy("blackwell-gddr", find(kernels, "ada", format, backend), "workstation", (0.2, 0.5)));
    }
    // The share of the peak that 4,096 and 16,384 rows reach there is published; see the source.
    let mut narrow = copy("blackwell-gddr", find(kernels, "blackwell", NvFp4, "any"), "nvfp4-gddr", (0.2, 0.5));
    (narrow.kernel.compute, narrow.kernel.power) = (0.82, None);
    copies.push(narrow);
    let nearest = [
        ("hopper", Bf16),
        ("hopper", Fp8),
        ("hopper", Fp8Block),
        ("blackwell", NvFp4),
        ("ampere", Int8),
        ("ampere", WeightInt8),
        ("ampere", WeightInt4),
    ];
    for (class, format) in nearest {
        let mut named = copy("default", find(kernels, class, format, "any"), "default", (0.25, 0.6));
        // Another maker's watts say nothing about clocks here.
        named.kernel.power = None;
        copies.push(named);
    }
    copies
}

fn find<'a>(kernels: &'a [Named], class: &str, format: GemmFormat, backend: &str) -> &'a Named {
    let fits = |n: &&Named| n.kernel.class == class && n.kernel.format == format && n.kernel.backend == backend;
    kernels.iter().find(fits).expect("fitted before")
}

impl Named {
    /// The same constants under another name.
    fn again(&self, class: &str, backend: &str) -> Self {
        let kernel = GemmKernel { class: class.to_owned(), backend: backend.to_owned(), ..self.kernel.clone() };
        Self { kernel, dynamic: self.dynamic.clone(), fixed: self.fixed.clone() }
    }
}

const HEAD: &str = r#"# Printed by `rackmath-calibrate fit gemm FOLDER`; change the plan there, not the numbers here.
name = "matrix products"
form = "rackmath_theory::operator::gemm"
as_of = "2026-11"

[sources]
aic = "fitted by rackmath-calibrate on kernel_gemm_*.csv, subsets of the aiconfigurator database 0.12.0 (Apache-2.0): TensorRT-LLM 1.3.0rc20 (A100 1.0.0), vLLM 0.24.0 (A100 0.14.0), SGLang 0.5.14 (A100 0.5.10)"
torch = "fitted by rackmath-calibrate on h200_torch/gemm.json: one H200, driver 580, CUDA 13.0, PyTorch 2.11, graph replay, weights in rotation so that the cache does not serve them, 2026-11"
quantise = "fitted by rackmath-calibrate on kernel_quantize.csv of the same database, H100 and H200 or B200 and GB200 together"
block = "the pass `scale` of the class with no floor of its own: timings of block formats hold the pass and the product together"
workstation = "no rows: constants of ada, which shares GDDR memory and the warp-level tensor core; spread is a guess"
nvfp4-gddr = "no rows: constants of blackwell, compute from the shares of peak reached by RTX PRO 6000 at 4,096 and 16,384 rows (0.66, 0.68), summary of the aiconfigurator database 0.12.0, 2026-09"
default = "no rows: constants of hopper, nvfp4 of blackwell, integers of ampere; spread from applying one generation's constants to another's chips"
"#;

fn us(time: Seconds) -> f64 {
    time.as_ms() * 1e3
}

/// Three digits, plainly.
fn three(value: f64) -> String {
    let digits = (2.0 - float::log10(value.abs().max(1e-9)).floor()).clamp(0.0, 4.0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn number(value: f64) -> String {
    let text = three(value);
    if text.contains('.') { text } else { text + ".0" }
}

fn fit_line(fit: Residual, source: &str) -> String {
    format!("rows = {}\nmedian = {}\np90 = {}\nsource = \"{source}\"\n", fit.rows, number(fit.median), number(fit.p90))
}

fn print<T>(out: &mut String, knobs: &[&Knob<T>], of: &T) {
    for knob in knobs {
        writeln!(out, "{} = {}", knob.name, number((knob.get)(of))).expect("string");
    }
}

fn text(passes: &[NamedPass], kernels: &[Named]) -> String {
    let mut out = HEAD.to_owned();
    for NamedPass { id, pass, fit, source } in passes {
        write!(out, "\n[[pass]]\nid = \"{id}\"\nbytes = {}\n", number(pass.width.get())).expect("string");
        let [floor, core, bandwidth, cached, cold] = &fit::PASS;
        print(&mut out, &[floor, core], pass);
        if pass.cold_core.is_some() {
            print(&mut out, &[cold], pass);
        }
        print(&mut out, &[bandwidth, cached], pass);
        if pass.row > Seconds::ZERO {
            writeln!(out, "row_ns = {}", number(us(pass.row) * 1e3)).expect("string");
        }
        out += &fit_line(*fit, source);
    }
    for named in kernels {
        out += &kernel_text(named);
    }
    out
}

fn kernel_text(named: &Named) -> String {
    let k = &named.kernel;
    let mut out =
        format!("\n[[kernel]]\nclass = \"{}\"\nformat = \"{}\"\nbackend = \"{}\"\n", k.class, k.format, k.backend);
    let knobs: Vec<&Knob<GemmKernel>> = fit::KERNEL.iter().collect();
    print(&mut out, &knobs[..1], k);
    if k.host > Seconds::ZERO {
        print(&mut out, &[&fit::HOST[0]], k);
    }
    print(&mut out, &knobs[1..8], k);
    writeln!(out, "droop_us = {}", number(us(k.droop_time))).expect("string");
    print(&mut out, &knobs[8..], k);
    let tiles: Vec<String> = k.tiles.iter().map(|(rows, columns)| format!("[{rows}, {columns}]")).collect();
    let splits: Vec<String> = k.splits.iter().map(ToString::to_string).collect();
    writeln!(out, "tiles = [{}]\nsplits = [{}]", tiles.join(", "), splits.join(", ")).expect("string");
    if !named.dynamic.is_empty() {
        writeln!(out, "dynamic = {:?}\nfixed = {:?}", named.dynamic, named.fixed).expect("string");
    }
    if let Some(power) = k.power {
        let (low, high) = power.range;
        let (peak, tdp) = (power.peak.get() / 1e12, power.tdp.get());
        writeln!(out, "power = {{ peak = \"{peak} TFLOP/s\", tdp = \"{tdp} W\", range = [{low}, {high}] }}")
            .expect("string");
    }
    out + &fit_line(k.fit, &k.source)
}
