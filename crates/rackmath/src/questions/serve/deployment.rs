//! A model, a machine, a layout and an engine, prepared once and asked many times.

use crate::Error;
use rackmath_spec::engine::Engine;
use rackmath_spec::model::Formats;
use rackmath_spec::{Catalog, Dtype, Layout, Model, Network, System};
use rackmath_theory::pass::{KernelSet, Pass, Site};
use rackmath_theory::placement::{self, Load};
use rackmath_theory::plan::pools;
use rackmath_theory::steady::{Requests, Server};
use rackmath_units::Tokens;

/// What a deployment is made of, names already resolved.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The model.
    pub model: Model,
    /// Weight formats as run.
    pub formats: Formats,
    /// Cache format.
    pub kv: Dtype,
    /// The machine.
    pub system: System,
    /// The cut.
    pub layout: Layout,
    /// The engine.
    pub engine: Engine,
}

/// Ready to be asked.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// What it is made of.
    pub parts: Parts,
    /// Its passes.
    pub pass: Pass,
}

/// The constants of a machine's links, where their kind is known.
pub fn wires(catalog: &Catalog, system: &System) -> (Option<Network>, Option<Network>) {
    let up = catalog.network(&system.chip.link.kind).ok();
    let out = system.levels.get(1).and_then(|_| catalog.network("infiniband").ok());
    (up, out)
}

impl Deployment {
    /// Prepares the passes.
    pub fn new(catalog: &Catalog, kernels: &KernelSet, parts: Parts) -> Result<Self, Error> {
        let (up, out) = wires(catalog, &parts.system);
        Self::wired(kernels, parts, (up.as_ref(), out.as_ref()))
    }

    /// The same with links already read.
    pub fn wired(
        kernels: &KernelSet,
        parts: Parts,
        links: (Option<&Network>, Option<&Network>),
    ) -> Result<Self, Error> {
        Self::wired_for(kernels, parts, links, true)
    }

    /// The same; without drafts none may be asked for.
    pub(crate) fn wired_for(
        kernels: &KernelSet,
        parts: Parts,
        (up, out): (Option<&Network>, Option<&Network>),
        drafts: bool,
    ) -> Result<Self, Error> {
        let Some(shape) = parts.model.shape() else {
            return Err(Error::value(
                "model",
                format!("\"{}\"", parts.model.id),
                "a model known layer by layer; this one is known by its totals only",
            ));
        };
        let site = Site {
            shape,
            formats: parts.formats,
            kv: parts.kv,
            system: &parts.system,
            layout: parts.layout,
            engine: &parts.engine,
            kernels,
            up,
            out,
        };
        let pass = Pass::prepare_for(&site, drafts).ok_or_else(|| Error::NoPeak {
            chip: parts.system.chip.id.clone(),
            wanted: parts.formats.linear.to_string(),
            has: parts.system.chip.peak.keys().map(|m| m.name()).collect::<Vec<_>>().join(", "),
        })?;
        Ok(Self { parts, pass })
    }

    /// Sequences whose cache fits, in one attention group.
    pub fn room(&self, requests: &Requests) -> f64 {
        room(&self.parts, requests, self.parts.engine.schedule.chunk)
    }

    /// One attention group as a server.
    pub fn server(&self, room: f64) -> Server<'_> {
        Server { pass: &self.pass, schedule: &self.parts.engine.schedule, overhead: &self.parts.engine.overhead, room }
    }

    /// Prompts a second when it does nothing else and passes are full, and seconds of a prompt alone.
    pub fn prompts(&self, requests: &Requests) -> (f64, f64) {
        let engine = &self.parts.engine;
        let groups = self.parts.layout.degrees().dp as f64;
        pools::service(&self.pass, engine.schedule.chunk, engine.overhead.request.get(), groups, requests)
    }
}

/// Sequences whose cache fits in one attention group, with passes of at most `chunk` tokens.
pub(crate) fn room(p: &Parts, requests: &Requests, chunk: f64) -> f64 {
    let s = &p.engine.schedule;
    let held = if s.reserve_whole { requests.whole() } else { requests.context() };
    let load = Load {
        model: &p.model,
        formats: p.formats,
        kv: p.kv,
        system: &p.system,
        layout: p.layout,
        batch: 1.0,
        context: Tokens::new(held),
        tokens: chunk.min(1e6),
        utilisation: s.memory,
    };
    placement::largest_batch(&load) / p.layout.degrees().dp as f64
}
