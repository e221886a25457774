//! Reads the file of matrix-product kernels.

use super::noun::{cited, within};
use crate::{Fit, GemmKernel, GemmKernels, Pass, SpecError};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    pass: Vec<RawPass>,
    kernel: Vec<RawKernel>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPass {
    id: String,
    #[serde(flatten)]
    pass: Pass,
    #[serde(flatten)]
    fit: Fit,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKernel {
    #[serde(flatten)]
    kernel: GemmKernel,
    #[serde(flatten)]
    fit: Fit,
    #[serde(default)]
    dynamic: Vec<String>,
    #[serde(default)]
    fixed: Vec<String>,
}

/// Reads the kernels, each with its passes in place of their names.
pub fn gemm_kernels(id: &str, text: &str) -> Result<GemmKernels, SpecError> {
    let file = format!("kernel {id}");
    let raw: RawFile = cited(&file, id, text, &["id", "name", "form", "as_of", "pass.source"])?;
    let mut passes = BTreeMap::new();
    for RawPass { id, pass, fit } in raw.pass {
        let numbers = [
            ("bytes", pass.width.get(), 0.5, 16.0),
            ("bandwidth", pass.bandwidth, 1e-3, 1.0),
            ("cached", pass.cached, 0.0, 1.0),
            ("median", fit.median, 0.0, 5.0),
            ("p90", fit.p90, 0.0, 5.0),
        ];
        within(&format!("{file}: pass {id}"), &numbers)?;
        passes.insert(id, pass);
    }
    let kernels = raw.kernel.into_iter().map(|RawKernel { kernel, fit, dynamic, fixed }| {
        let kernel = GemmKernel { fit, ..kernel };
        check(&format!("{file}: {} {} {}", kernel.class, kernel.format, kernel.backend), &kernel)?;
        Ok(GemmKernel { dynamic: named(&dynamic, &passes)?, fixed: named(&fixed, &passes)?, ..kernel })
    });
    Ok(GemmKernels { kernels: kernels.collect::<Result<_, SpecError>>()? })
}

fn check(entry: &str, k: &GemmKernel) -> Result<(), SpecError> {
    let whole = |n: f64| n >= 1.0 && n.fract() == 0.0;
    if k.tiles.is_empty() || !k.tiles.iter().all(|(rows, columns)| whole(*rows) && whole(*columns)) {
        let given = format!("{:?}", k.tiles);
        return Err(SpecError::field(entry, "tiles", given, "at least one tile, of positive size"));
    }
    if k.splits.is_empty() || !k.splits.iter().copied().all(whole) {
        return Err(SpecError::field(entry, "splits", format!("{:?}", k.splits), "at least 1"));
    }
    let (low, high) = k.power.map_or((1.0, 1.0), |power| power.range);
    let numbers = [
        ("compute", k.compute, 1e-3, 1.0),
        ("power.range", low, 0.1, 1.0),
        ("power.range", high, 1.0, 10.0),
        ("bandwidth", k.bandwidth, 1e-3, 1.0),
        ("corner", k.corner, 1.0, f64::INFINITY),
        ("quantum", k.quantum, 0.0, 1.0),
        ("droop", k.droop, 0.0, 10.0),
        ("ramp", k.ramp, 0.0, 10.0),
        ("resident", k.resident, 0.0, 1.0),
        ("median", k.fit.median, 0.0, 5.0),
        ("p90", k.fit.p90, 0.0, 5.0),
    ];
    within(entry, &numbers)
}

/// The passes a kernel names.
fn named(names: &[String], known: &BTreeMap<String, Pass>) -> Result<Vec<Pass>, SpecError> {
    let find = |name: &String| {
        known.get(name).copied().ok_or_else(|| SpecError::unknown("pass", name, known.keys().map(String::as_str)))
    };
    names.iter().map(find).collect()
}
