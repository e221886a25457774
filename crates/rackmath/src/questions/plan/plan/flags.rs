//! What a server's command line says of a plan: its engine, formats, chunk and the parts of the layout that stand fast.

use super::Request;
use crate::desk::line;
use crate::desk::prelude::*;
use crate::layout::DegreesRequest;
use rackmath_spec::engine::{Engine, Replay};
use rackmath_spec::line::{Launch, Means};

/// What a plan does not ask of its deployments.
pub(super) fn aside(sets: Means) -> bool {
    use Means::{AllExperts, Drafter, Drafts, ExpertLayers, Layers, Longest, Method, Offload, Shares};
    let elsewhere = matches!(sets, Offload | Layers | ExpertLayers | AllExperts | Shares);
    elsewhere || matches!(sets, Longest | Drafts | Drafter | Method) || line::of_adapters(sets) || line::of_start(sets)
}

/// The request as a command line beside it says, and the line.
pub(super) fn obeyed(catalog: &Catalog, request: &Request) -> Result<Option<(Request, Launch)>, Error> {
    let Some(text) = &request.flags else { return Ok(None) };
    let engine = request.engines.first().map_or("vllm", String::as_str);
    let Some((launch, engine)) = line::beside(catalog, text, None, engine)? else { return Ok(None) };
    let mut r = Request { flags: None, ..request.clone() };
    if r.engines.len() <= 1 {
        r.engines = vec![engine];
    }
    let auto = |list: &[String]| list.len() <= 1 && list.iter().all(|word| word == "auto");
    if let Some(weights) = launch.weights.clone().filter(|_| auto(&r.weights)) {
        r.weights = vec![weights];
    }
    if let Some(kv) = launch.kv.clone().filter(|_| auto(&r.kvs)) {
        r.kvs = vec![kv];
    }
    let (chunk, _) = line::of_group(&launch);
    r.chunks.extend(chunk.filter(|_| r.chunks.is_empty()));
    if launch.cut && r.fixed == DegreesRequest::default() {
        let d = line::degrees(&launch);
        let fast = |n: Option<u64>| n.filter(|n| *n > 1);
        // Copies of a dense model are replicas, which a plan counts by itself.
        r.fixed = DegreesRequest { tp: d.tp, pp: fast(d.pp), ep: fast(d.ep), ..DegreesRequest::default() };
    }
    if launch.start.prefix_cache == Some(false) {
        r.prefix_hit = Some(0.0);
    }
    Ok(Some((r, launch)))
}

/// What a line says of an engine's schedule and memory.
pub(super) fn schedule(launch: &Launch, engine: &mut Arc<Engine>) {
    let s = &mut Arc::make_mut(engine).schedule;
    let (_, sequences) = line::of_group(launch);
    s.tell(sequences);
    s.memory = launch.start.utilisation.or(s.memory);
    if launch.start.eager {
        (s.graph, s.graph_prompts) = (0.0, Replay::Never);
    }
}
