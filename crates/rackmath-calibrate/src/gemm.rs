//! Matrix products: how far off the catalogue's constants are, and new constants.
//!
//! The tables time a product over and over with up to five copies of its weights in rotation, so weights whose copies fit
//! the cache are read from there. A bias is the median of ln(predicted / measured), shown beside the distances.

mod fit;

use crate::case::Case;
use crate::names::Names;
use crate::rows::{Record, Rows, present, table_or_none};
use crate::table::Table;
use rackmath_spec::{Catalog, Chip, GemmFormat, GemmKernel, GemmKernels, SpecError};
use rackmath_theory::operator::gemm::{Gemm, Product, Scaling};
use rackmath_units::{Fraction, Seconds, float};
use std::collections::BTreeMap;
use std::path::Path;

/// The tables of products that are understood, with their chips where a table is of one: columns as in aiconfigurator's
/// database, our own H200 timings, and those of other makers' libraries.
const FILES: [(&str, &str); 12] = [
    ("kernel_gemm_a100.csv", "a100"),
    ("kernel_gemm_h100.csv", "h100"),
    ("kernel_gemm_b200.csv", "b200"),
    ("kernel_gemm_l40s.csv", "l40s"),
    ("h200_torch/gemm.json", "h200"),
    ("kernel_gemm_h200.csv", "h200"),
    ("kernel_gemm_b300.csv", "b300"),
    ("kernel_gemm_rtxpro6000.csv", "rtxpro6000"),
    ("amd_tpu/kernel_gemm_mi300x.csv", ""),
    ("amd_tpu/kernel_gemm_mi355x.csv", ""),
    ("amd_tpu/kernel_gemm_gfx1250.csv", ""),
    ("amd_tpu/kernel_gemm_ascend_b60.csv", ""),
];

pub fn files() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(file, _)| *file)
}

/// Copies of the weights in rotation, at most.
const COPIES: f64 = 5.0;
/// What a cached weight costs of a read from memory: L40S weights of 16 MiB are read at 2 to 2.6 times the bandwidth, floor
/// included.
const CACHED_COST: f64 = 0.15;

/// A timed product, or a timed pass over the activations of one.
struct Row {
    file: &'static str,
    /// The chip, as the table calls it.
    chip: String,
    /// The engine; of a pass, `compute_scale` or `scale_matrix`.
    backend: String,
    format: GemmFormat,
    product: Product,
    /// What the timing holds besides the product.
    scaling: Scaling,
    measured: Seconds,
    /// A mark of the table, empty where the row is sound.
    quality: String,
}

/// All products of a folder; rows above the memory's peak that no cache explains are left out.
fn products(catalog: &Catalog, folder: &Path) -> Result<Rows<Row>, SpecError> {
    let names = Names::new(catalog);
    crate::rows::read(present(folder, &FILES, |file| file.0)?, |(file, name), record| {
        let usable = Some(record).filter(|r| r.text("quality") != "over_peak");
        let read = |r| match *name {
            "" => rotated(r, &names),
            name if file.ends_with("json") => torch(name, r),
            name => row(name, &names, r),
        };
        usable.map(|r| read(r).map(|row| Row { file, ..row }))
    })
}

/// A product timed by itself: activations are in its format already, and weights in rotation come from memory.
fn rotated(record: &Record, names: &Names<'_>) -> Result<Row, String> {
    let name = match (record.text("gfx"), record.text("cu_num")) {
        ("", _) => record.needed("system")?,
        ("gfx942", "304") => "mi300x",
        ("gfx942", "80") => "mi308x",
        ("gfx950", "256") => "mi355x",
        (gfx, _) => gfx,
    };
    if record.degree("batch") > 1 {
        return Err("several products in one".into());
    }
    let row = row(name, names, record)?;
    Ok(Row { product: Product { cold: Fraction::new(1.0), ..row.product }, scaling: Scaling::Given, ..row })
}

fn row(name: &str, names: &Names<'_>, record: &Record) -> Result<Row, String> {
    let chip = names.found(name)?;
    let format = match record.needed("gemm_dtype")? {
        "bfloat16" | "float16" => GemmFormat::Bf16,
        "fp8" | "fp8_rowwise" => GemmFormat::Fp8,
        "fp8_block" => GemmFormat::Fp8Block,
        "nvfp4" | "mxfp4" => GemmFormat::NvFp4,
        "sq" | "int8_rowwise" | "int8_dynamic" => GemmFormat::Int8,
        "int8_wo" => GemmFormat::WeightInt8,
        "int4_wo" => GemmFormat::WeightInt4,
        other => return Err(format!("no format \"{other}\"")),
    };
    let (m, n, k) = (record.amount("m")?, record.amount("n")?, record.amount("k")?);
    let backend = record.needed("backend")?.to_owned();
    // Sheets write MB for MiB. The caches of chips with HBM are two halves that both keep what all cores read.
    let whole = chip.memory.kind.starts_with("GDDR");
    let share = if whole { 1.0 } else { 0.5 };
    let l2 = chip.physical.l2.as_ref().map_or(0.0, |l| l.value.get() * share * 1.048576);
    let cold = cold(l2, n * k * format.weight().get(), whole && backend == "trtllm" && m > 1.0);
    let (chip, quality, measured) = (name.to_owned(), record.text("quality").to_owned(), record.latency()?);
    let product = Product { cold: Fraction::new(cold), ..Product::new(m, n, k) };
    Ok(Row { file: "", chip, backend, format, product, scaling: Scaling::Dynamic, measured, quality })
}

/// The share of the weights that comes from memory. A product with enough rows is timed with as many copies of its weights as
/// cover the cache, so that sizes that divide a cache in one piece stay in it; the other timings rotate all copies.
fn cold(l2: f64, weights: f64, covering: bool) -> f64 {
    let copies = if covering { (l2 / weights).ceil().min(COPIES) } else { COPIES };
    // On L40S all is cached up to the size of the cache, about half at 1.03 of it, nothing at 1.06.
    let beyond = (copies * weights / l2 - 1.0) / 0.06;
    beyond.clamp(CACHED_COST, 1.0)
}

fn torch(chip: &str, record: &Record) -> Result<Row, String> {
    let format = if record.needed("prec")? == "fp8" { GemmFormat::Fp8 } else { GemmFormat::Bf16 };
    let product = Product::new(record.amount("M")?, record.amount("N")?, record.amount("K")?);
    let (chip, backend, measured) = (chip.to_owned(), "torch".to_owned(), Seconds::s(record.amount("s")?));
    Ok(Row { file: "", chip, backend, format, product, scaling: Scaling::Given, measured, quality: String::new() })
}

/// All passes of a folder; none when the table is not there.
fn passes(folder: &Path) -> Result<Rows<Row>, SpecError> {
    let row = |record: &Record| {
        let (chip, backend) = (record.needed("system")?.to_owned(), record.needed("op")?.to_owned());
        let product = Product::new(record.amount("m")?, 1.0, record.amount("k")?);
        let (format, scaling, measured) = (GemmFormat::Bf16, Scaling::Given, record.latency()?);
        Ok(Row {
            file: "kernel_quantize.csv",
            chip,
            backend,
            format,
            product,
            scaling,
            measured,
            quality: String::new(),
        })
    };
    Ok(table_or_none(&folder.join("kernel_quantize.csv"))?.iter().map(row).collect())
}

pub fn fit(catalog: &Catalog, folder: &Path) -> Result<String, SpecError> {
    fit::file(catalog, &products(catalog, folder)?.rows, &passes(folder)?.rows)
}

/// How far the catalogue's constants are from every row, per chip, format, backend and quality of the row.
pub fn score(catalog: &Catalog, folder: &Path) -> Result<Table, SpecError> {
    let kernels = catalog.gemm_kernels()?;
    let Rows { rows, skipped } = products(catalog, folder)?;
    let mut table = Table::new(&["chip", "format", "backend", "rows are", "bias"], &skipped);
    let scored = table.scored(&rows, |row| off(row, &*catalog.chip(&row.chip)?, &kernels));
    table.group(scored.into_iter().map(|(row, error)| {
        let quality = if row.quality.is_empty() { "usual" } else { &row.quality };
        ([row.chip.as_str(), row.format.into(), &row.backend, quality], error)
    }));
    Ok(table)
}

/// ln(predicted / measured) of the kernel the catalogue has for a row.
fn off(row: &Row, chip: &Chip, kernels: &GemmKernels) -> Result<f64, SpecError> {
    let kernel = kernels.find(chip, row.format, &row.backend).and_then(|kernel| Gemm::of(chip, kernel));
    let error = kernel.map(|gemm| row.error(&gemm));
    error.ok_or_else(|| SpecError::said(format!("no kernel for {} on {}", row.format, row.chip)))
}

/// Every product beside its prediction.
pub fn cases(catalog: &Catalog, folder: &Path) -> Result<Rows<Case>, SpecError> {
    let kernels = catalog.gemm_kernels()?;
    Ok(products(catalog, folder)?.map(|row| {
        let chip = catalog.chip(&row.chip)?;
        let Product { rows: m, columns: n, depth: k, .. } = row.product;
        let case = Case::on(&chip, row.file, "gemm").of(&row.backend, row.format, format!("{m} x {n} x {k}"));
        Ok::<Case, SpecError>(case.off(row.measured.get(), off(&row, &chip, &kernels)?))
    }))
}

/// How far constants are from rows they were not fitted on: those of one class on the chips of another, and those of
/// TensorRT-LLM's rows alone on the rows of other engines.
pub fn transfer(catalog: &Catalog, folder: &Path) -> Result<Table, SpecError> {
    let kernels = catalog.gemm_kernels()?;
    let rows = products(catalog, folder)?.rows;
    let mut table = Table::new(&["format", "constants of", "chip", "backend", "bias"], &BTreeMap::new());
    let mut scored = Vec::new();
    let mut add = |kernel: &GemmKernel, of: &str, chosen: &dyn Fn(&Row) -> bool| -> Result<(), SpecError> {
        for row in rows.iter().filter(|r| r.format == kernel.format && r.quality.is_empty() && chosen(r)) {
            let Some(gemm) = Gemm::of(&*catalog.chip(&row.chip)?, kernel) else { continue };
            scored.push(([row.format.into(), of, &row.chip, &row.backend].map(str::to_owned), row.error(&gemm)));
        }
        Ok(())
    };
    for kernel in kernels.kernels.iter().filter(|k| k.backend == "any" && k.fit.rows > 0) {
        add(kernel, &kernel.class, &|row| row.backend == "trtllm" || row.backend == "torch")?;
    }
    for chip in ["a100", "l40s", "h100", "b200"] {
        let kernel = fit::without_other_engines(catalog, &rows, chip, GemmFormat::Bf16)?;
        add(&kernel, "its trtllm rows", &|row| row.chip == chip && row.backend != "trtllm")?;
    }
    table.group(scored);
    Ok(table)
}

impl Row {
    /// ln(predicted / measured).
    fn error(&self, gemm: &Gemm<'_>) -> f64 {
        float::ln(gemm.time(self.product, self.scaling).time / self.measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_other_makers_are_read_by_their_chip_and_refused_where_nobody_knows_it() {
        let csv = "\
backend,gemm_dtype,m,n,k,latency_us,gfx,cu_num,batch,system
aiter,fp8_rowwise,16,4096,8192,20,gfx942,304,1,
aiter,mxfp4,16,4096,8192,20,gfx950,256,1,
aiter,bfloat16,16,4096,8192,20,gfx942,80,1,
aiter,bfloat16_batched,16,4096,8192,20,gfx942,304,16,
vllm,bfloat16,16,4096,8192,200,,,,arc-pro-b60
vllm,abacus,16,4096,8192,200,,,,arc-pro-b60
";
        let catalog = rackmath_catalog::embedded();
        let names = Names::new(&catalog);
        let rows: Rows<Row> = crate::rows::parse(csv).unwrap().iter().map(|r| rotated(r, &names)).collect();
        let seen: Vec<(&str, GemmFormat)> = rows.rows.iter().map(|r| (r.chip.as_str(), r.format)).collect();
        let expected = [("mi300x", GemmFormat::Fp8), ("mi355x", GemmFormat::NvFp4), ("arc-pro-b60", GemmFormat::Bf16)];
        assert_eq!(seen, expected);
        assert!(rows.rows.iter().all(|r| r.scaling == Scaling::Given && r.product.cold.get() == 1.0));
        assert_eq!(rows.skipped.values().sum::<usize>(), 3);
        assert!(rows.skipped.keys().any(|why| why.contains("mi308x")), "{:?}", rows.skipped);
        assert_eq!((rows.skipped["several products in one"], rows.skipped["no format \"abacus\""]), (1, 1));
        let kernels = catalog.gemm_kernels().unwrap();
        let error = off(&rows.rows[0], &catalog.chip("mi300x").unwrap(), &kernels).unwrap();
        assert!(error.is_finite());
    }
}
