//! Plans as files

use crate::args::{HandoverArgs, WorkloadArgs};
use crate::failure::Failure;
use crate::{inputs, output};
use rackmath::plan::{Answer, File, HandoverRequest};
use std::path::Path;

/// What to hand over, as typed; nothing unless asked for.
pub fn request(a: &HandoverArgs, w: &WorkloadArgs) -> Result<Option<HandoverRequest>, Failure> {
    if a.handover.is_none() && a.k8s.is_none() {
        return Ok(None);
    }
    // Only Mooncake's format is replayed by the load tests: lines of JSON.
    let replay = match w.trace.as_deref() {
        Some(path) if inputs::trace(path)?.trim_start().starts_with('{') => Some(path.display().to_string()),
        _ => None,
    };
    Ok(Some(HandoverRequest { chips_per_host: a.chips_per_host, replay }))
}

/// Writes the files; whether they went to standard output instead of the page.
pub fn save(a: &HandoverArgs, plan: impl Fn() -> String, answer: &Answer) -> Result<bool, Failure> {
    if a.handover.is_none() && a.k8s.is_none() {
        return Ok(false);
    }
    let Some(h) = answer.plans.first().and_then(|p| p.handover.as_ref()) else {
        return Err(Failure::new(format!("nothing to hand over: {}", answer.verdict))
            .hint("expected a plan for an engine with commands"));
    };
    let stdout = |path: &Path| path == Path::new("-");
    if let Some(path) = &a.k8s {
        let manifest = h.files.iter().find(|f| f.name == "kubernetes.yaml");
        output::save(path, manifest.map_or("", |f| &f.text).as_bytes())?;
    }
    if let Some(folder) = &a.handover {
        let own = [File { name: "plan.json".into(), text: plan() }];
        if stdout(folder) {
            for f in &h.files {
                output::print(&format!("==> {} <==\n{}\n", f.name, f.text))?;
            }
        } else {
            std::fs::create_dir_all(folder).map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
            for f in h.files.iter().chain(&own) {
                output::save(&folder.join(&f.name), f.text.as_bytes())?;
            }
        }
    }
    Ok([&a.handover, &a.k8s].into_iter().flatten().any(|p| stdout(p)))
}
