//! `rackmath plan --shard` and `rackmath merge`

use super::plan;
use crate::args::{Common, MergeArgs, PlanArgs, Shard};
use crate::failure::Failure;
use crate::{inputs, output};
use rackmath::Catalog;
use rackmath::plan::{Partial, Request, merge, shard};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A shard as a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The version of the format.
    rackmath_plan_shard: u32,
    /// Machines as typed, where they are files.
    machines: Vec<String>,
    /// What was found.
    part: Partial,
}

const VERSION: u32 = 1;

/// One shard of a plan, into a file or to standard output.
pub fn run(catalog: &Catalog, a: &PlanArgs, request: &Request, one: Shard) -> Result<(), Failure> {
    let part = shard(catalog, request, (one.shard, one.of), plan::threads())?;
    let typed = a.machines().split(',').chain(a.prefill_on.iter().flat_map(|p| p.split(',')));
    let typed = typed.map(str::trim).filter(|w| inputs::looks_like_a_path(w));
    let file = File { rackmath_plan_shard: VERSION, machines: typed.map(str::to_owned).collect(), part };
    output::save(a.out.as_deref().unwrap_or(Path::new("-")), rackmath::ask::json(&file)?.as_bytes())
}

/// The answer of the whole.
pub fn joined(common: &Common, catalog: &mut Catalog, a: &MergeArgs) -> Result<(), Failure> {
    let mut parts = Vec::with_capacity(a.parts.len());
    for path in &a.parts {
        let file = read(path)?;
        if parts.is_empty() {
            for machine in &file.machines {
                inputs::machine(catalog, machine)?;
            }
            inputs::model(catalog, &file.part.request.setting.model)?;
        }
        parts.push(file.part);
    }
    let answer = merge(catalog, &parts, plan::threads())?;
    plan::files(&answer, a.svg.as_deref(), a.csv.as_deref())?;
    output::answer(common, &answer, |style| rackmath_report::text::plan(&answer, style))
}

fn read(path: &Path) -> Result<File, Failure> {
    let fail = |problem: String| Failure::new(format!("{}: {problem}", path.display()));
    let file: File = serde_json::from_str(&inputs::read(path)?)
        .map_err(|e| fail(e.to_string()).hint("expected a file written by rackmath plan --shard i/n -o FILE"))?;
    if file.rackmath_plan_shard != VERSION {
        return Err(
            fail(format!("version {} of the format", file.rackmath_plan_shard)).hint(format!("expected {VERSION}"))
        );
    }
    Ok(file)
}
