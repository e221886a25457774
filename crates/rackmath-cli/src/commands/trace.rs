//! `rackmath trace`, and traces for other questions

use crate::args::{Common, TraceArgs, WorkloadArgs};
use crate::failure::Failure;
use crate::{inputs, output};
use rackmath::Catalog;
use rackmath::plan::Draws;
use rackmath::trace::{self, Answer, Request};
use rackmath_report::text;
use rackmath_units::Seconds;
use std::path::Path;

pub fn run(common: &Common, catalog: &Catalog, a: &TraceArgs) -> Result<(), Failure> {
    let answer = described(catalog, &a.file, a.keep)?;
    output::answer(common, &answer, |style| text::trace(&answer, style))
}

/// Lengths and traffic as typed, with the trace read.
pub fn draws(catalog: &Catalog, a: &WorkloadArgs) -> Result<Draws, Failure> {
    let trace = a.trace.as_deref().map(|path| described(catalog, path, a.keep)).transpose()?;
    Ok(Draws {
        isl: a.isl_dist.clone(),
        osl: a.osl_dist.clone(),
        peak_over_mean: a.peak,
        trace: trace.map(|t| t.summary),
    })
}

fn described(catalog: &Catalog, path: &Path, keep: Option<Seconds>) -> Result<Answer, Failure> {
    let name = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
    let text = inputs::trace(path)?;
    Ok(trace::answer(catalog, &Request { name, text, keep_s: keep.map(Seconds::get) })?)
}
