//! Matrix products: how far off the catalogue's constants are, and new constants.
//!
//! The tables time a product over and over with up to five copies of its weights in rotation, so weights whose copies fit
//! the cache are read from there (`rows`). A bias is the median of ln(predicted / measured), shown beside the distances.

mod fit;
mod plan;
mod rows;

pub use rows::{FILES, Row};

use crate::CalibrateError;
use crate::table::Table;
use rackmath_spec::{GemmFormat, GemmKernel};
use rackmath_theory::operator::gemm::Gemm;
use rackmath_units::float;
use std::collections::BTreeMap;
use std::path::Path;

/// Fits all constants and prints the catalogue's file.
pub fn fit(folder: &Path) -> Result<String, CalibrateError> {
    let catalog = rackmath_catalog::embedded();
    plan::file(&catalog, &rows::products(folder)?, &rows::passes(folder)?)
}

/// How far the catalogue's constants are from every row, per chip, format, backend and quality of the row.
pub fn score(folder: &Path) -> Result<Table, CalibrateError> {
    let catalog = rackmath_catalog::embedded();
    let kernels = catalog.gemm_kernels()?;
    let mut table = Table::new(&["chip", "format", "backend", "rows are", "bias"], &BTreeMap::new());
    let mut scored = Vec::new();
    for row in rows::products(folder)? {
        let chip = catalog.chip(&row.chip)?;
        let gemm = kernels.find(&chip, row.format, &row.backend).and_then(|kernel| Gemm::of(&chip, kernel));
        let Some(gemm) = gemm else {
            table.skip(format!("no kernel for {} on {}", row.format, row.chip));
            continue;
        };
        let quality = if row.quality.is_empty() { "usual" } else { &row.quality };
        let group = [row.chip.as_str(), row.format.into(), &row.backend, quality].map(str::to_owned);
        scored.push((group.to_vec(), row.error(&gemm)));
    }
    table.group(scored);
    Ok(table)
}

/// How far constants are from rows they were not fitted on: those of one class on the chips of another, and those of
/// TensorRT-LLM's rows alone on the rows of other engines.
pub fn transfer(folder: &Path) -> Result<Table, CalibrateError> {
    let catalog = rackmath_catalog::embedded();
    let kernels = catalog.gemm_kernels()?;
    let rows = rows::products(folder)?;
    let mut table = Table::new(&["format", "constants of", "chip", "backend", "bias"], &BTreeMap::new());
    let mut scored = Vec::new();
    let mut add = |kernel: &GemmKernel, of: &str, chosen: &dyn Fn(&Row) -> bool| -> Result<(), CalibrateError> {
        for row in rows.iter().filter(|r| r.format == kernel.format && r.quality.is_empty() && chosen(r)) {
            let Some(gemm) = Gemm::of(&*catalog.chip(&row.chip)?, kernel) else { continue };
            let group = [row.format.into(), of, &row.chip, &row.backend].map(str::to_owned);
            scored.push((group.to_vec(), row.error(&gemm)));
        }
        Ok(())
    };
    for kernel in kernels.kernels.iter().filter(|k| k.backend == "any" && k.fit.rows > 0) {
        add(kernel, &kernel.class, &|row| row.backend == "trtllm" || row.backend == "torch")?;
    }
    for chip in ["a100", "l40s", "h100", "b200"] {
        let kernel = plan::without_other_engines(&catalog, &rows, chip, GemmFormat::Bf16)?;
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
