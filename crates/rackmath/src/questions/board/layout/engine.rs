//! The sum of an engine that is named, for the load of a layout.

use super::Request;
use crate::check;
use crate::desk::prelude::*;
use crate::desk::setting::LLAMA_CPP;
use crate::support::{self, Asked, Refusal};
use rackmath_spec::engine::Version;
use rackmath_spec::launch::Start;
use rackmath_theory::budget::{Budget, budget, told as told_longest};
use rackmath_theory::deployment::Deployment;

/// The memory of one chip as an engine counts it when it starts, in GiB of 2^30 bytes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EngineCard {
    /// Its name.
    pub name: String,
    /// Whether it starts with requests of this context.
    pub starts: bool,
    /// The share it takes.
    pub utilisation: f64,
    /// The smallest and the largest share in hundredths with which it starts; none where none does.
    pub utilisation_from: Option<f64>,
    /// The largest.
    pub utilisation_to: Option<f64>,
    /// Memory a program finds.
    pub total_gib: f64,
    /// Weights.
    pub weights_gib: f64,
    /// The peak of the dry run.
    pub activation_gib: f64,
    /// Past the allocator.
    pub non_torch_gib: f64,
    /// Captured graphs.
    pub graphs_gib: f64,
    /// The cache.
    pub kv_cache_gib: f64,
    /// Its tokens as the engine prints them.
    pub kv_cache_tokens: u64,
    /// Tokens of a block.
    pub block_size: u64,
    /// Blocks.
    pub num_gpu_blocks: u64,
    /// Groups of layers that share pages.
    pub groups: u64,
    /// The longest request with which it would start.
    pub longest_context: u64,
}

/// The engine's own sum for requests of this context, and the shares with which it would start.
pub(super) fn counted(
    catalog: &Catalog,
    name: &str,
    request: &Request,
    told: &Start,
    on: &Deployment,
) -> Result<(Budget, String, EngineCard), Error> {
    let (engine, _) = catalog.engine(name).map_err(|e| e.at("engine"))?;
    let version = name.split_once('@').and_then(|(_, version)| version.parse::<Version>().ok());
    let on = Deployment { engine, ..on.clone() };
    let usual = Request::default();
    let said = |given: f64, usual: f64| (given != usual).then_some(given as u64);
    let groups = on.layout.degrees().dp as f64;
    let sequences = request.batch.map(|batch| (batch / groups).ceil() as u64);
    // llama.cpp deals its context to its slots.
    let slots = sequences.filter(|_| on.engine.family == LLAMA_CPP).unwrap_or(1);
    let start = Start {
        utilisation: request.memory_utilisation.and_then(Fraction::checked),
        longest: Some((request.context as u64).max(1).saturating_mul(slots)),
        pass: said(request.max_num_batched_tokens, usual.max_num_batched_tokens),
        sequences,
        ..told.clone()
    };
    let at = |share: f64| budget(&on, &Start { utilisation: Fraction::checked(share), ..start.clone() }, version);
    let shares: Vec<f64> = (5..100).map(|share| f64::from(share) / 100.0).filter(|share| at(*share).starts()).collect();
    let b = told_longest(&on, &start, version);
    let name = support::counted_as(&on.engine);
    let gib = check::gib;
    let card = EngineCard {
        name: name.clone(),
        starts: b.starts(),
        utilisation: b.utilisation.get(),
        utilisation_from: shares.first().copied(),
        utilisation_to: shares.last().copied(),
        total_gib: gib(b.total),
        weights_gib: gib(b.weights),
        activation_gib: gib(b.activation),
        non_torch_gib: gib(b.outside),
        graphs_gib: gib(b.graphs),
        kv_cache_gib: gib(b.cache),
        kv_cache_tokens: b.tokens,
        block_size: b.block,
        num_gpu_blocks: b.blocks,
        groups: b.pages.groups(),
        longest_context: b.longest_possible,
    };
    Ok((b, name, card))
}

/// Why the engine does not run this there, where a source says so and nobody pretends.
pub(super) fn barred(
    catalog: &Catalog,
    name: &str,
    request: &Request,
    on: &Deployment,
) -> Result<Option<Refusal>, Error> {
    let (engine, _) = catalog.engine(name).map_err(|e| e.at("engine"))?;
    let asked = Asked::by(request.setting.weights.as_deref());
    let on = Deployment { engine, ..on.clone() };
    let mut standing = support::stand(catalog, &on, asked, support::version(name))?;
    standing.refuse_layout(&on.layout);
    Ok(standing.refusal.filter(|_| !request.pretend))
}

/// Shares above this leave little beside the engine.
const LARGEST_SHARE: f64 = 0.95;

/// A larger share of the memory, where that alone is what it takes to start.
pub(super) fn larger_share(b: &Budget, card: &EngineCard) -> Option<Remark> {
    let from = card.utilisation_from.filter(|from| *from > b.utilisation.get() && *from <= LARGEST_SHARE)?;
    Some(says("larger_share").with("share", from).with("now", b.utilisation.get()))
}

pub(super) fn as_counted(b: &Budget, engine: &str) -> Remark {
    if let Some(refusal) = &b.refusal {
        return check::refused(engine, refusal);
    }
    let said = says("check_starts").with("engine", engine).with("cache", b.cache).with("tokens", b.tokens);
    said.with("requests", check::whole_from_hundred(b.concurrency)).with("longest", b.longest)
}
