//! One model on one machine as it is run: the one bundle that placement, passes, serving, planning and cost are asked about.
//!
//! It is made once, when all names are resolved. What it is made of is shared, so that a menu of changes or the thousands of
//! layouts of a plan clone it for next to nothing.

use crate::adapters::Adapters;
use crate::budget;
use crate::drafter::Drafter;
use crate::pass::{KernelSet, Pass, Senses};
use crate::placement::{self, Load};
use crate::pools::Prompts;
use crate::split::Split;
use crate::steady::{Cold, Load as Loaded, Requests, Server, Steady, steady};
use rackmath_spec::engine::{Admission, Engine, Groups, Overhead};
use rackmath_spec::model::{Body, Formats, Mixer, Span};
use rackmath_spec::{Catalog, Dtype, Layout, Model, Network, SpecError, System};
use rackmath_units::{Bytes, Fraction, Seconds, Tokens};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Deployment {
    pub model: Arc<Model>,
    /// Weight formats as run, which may differ from the checkpoint's.
    pub formats: Formats,
    pub kv: Dtype,
    pub system: Arc<System>,
    pub links: Links,
    pub layout: Layout,
    pub engine: Arc<Engine>,
    /// Weights that every chip holds beside the model's: adapters, a tower for pictures, a model that drafts.
    pub side: Bytes,
    /// What prompts bring for towers to encode; nothing where they are text.
    pub senses: Option<Arc<Senses>>,
    /// What of the model lies in the host's memory; nothing when absent.
    pub split: Option<Arc<Split>>,
    /// Low-rank adapters that passes run beside the model.
    pub adapters: Option<Adapters>,
    /// Who guesses tokens ahead, where any are guessed.
    pub drafter: Drafter,
}

/// The measured constants of a machine's networks, where their kind is known.
#[derive(Clone, Debug, Default)]
pub struct Links {
    pub up: Option<Arc<Network>>,
    pub out: Option<Arc<Network>>,
}

impl Links {
    pub fn of(catalog: &Catalog, system: &System) -> Self {
        let found = |kind: &str| catalog.network(kind).ok();
        let level = |n: usize| system.levels.get(n).map(|level| &*level.link);
        Self { up: found(level(0).unwrap_or(&system.chip.link.kind)), out: level(1).and_then(found) }
    }
}

/// The cache format an engine takes unless told: its own narrow one goes with narrow weights, otherwise the model's.
pub fn usual_cache(model: &Model, formats: Formats, engine: &Engine) -> Dtype {
    engine.schedule.kv.filter(|_| formats.linear.bits() < 12.0).unwrap_or_else(|| model.cache_dtype())
}

/// The model with every window as long as the context.
fn whole(mut model: Arc<Model>) -> Arc<Model> {
    let window = |mixer: &Mixer| matches!(mixer, Mixer::Attention(a) if matches!(a.span, Span::Window(_)));
    if model.shape().is_some_and(|shape| shape.runs.iter().any(|run| window(&run.block.mixer)))
        && let Body::Layers(shape) = &mut Arc::make_mut(&mut model).body
    {
        for run in &mut shape.runs {
            if let Mixer::Attention(a) = &mut run.block.mixer
                && matches!(a.span, Span::Window(_))
            {
                a.span = Span::Full;
            }
        }
    }
    model
}

/// Requests of mean length whose room is surely that of a whole one, blocks and all.
const SEVERAL: f64 = 4.0;

impl Deployment {
    /// A model as published on one chip of a machine, before anything else is decided.
    pub fn named(catalog: &Catalog, model: &str, system: &str, engine: &str) -> Result<Self, SpecError> {
        Ok(Self::of(catalog, catalog.model(model)?, catalog.system(system)?, catalog.engine(engine)?.0))
    }
    pub fn of(catalog: &Catalog, model: Arc<Model>, system: Arc<System>, engine: Arc<Engine>) -> Self {
        let model = if engine.schedule.whole_attention { whole(model) } else { model };
        let (formats, links) = (model.formats(), Links::of(catalog, &system));
        let kv = usual_cache(&model, formats, &engine);
        Self {
            formats,
            kv,
            links,
            layout: Layout::single(),
            side: Bytes::ZERO,
            drafter: Drafter::Layer,
            senses: None,
            split: None,
            adapters: None,
            model,
            system,
            engine,
        }
    }

    /// Bytes of the adapters' slots on a chip.
    pub fn slots(&self) -> Bytes {
        let adapters = self.adapters.zip(self.model.shape());
        adapters.map_or(Bytes::ZERO, |(a, shape)| a.held(shape, &self.layout.degrees()))
    }

    /// Attention groups, each with sequences of its own.
    pub fn groups(&self) -> f64 {
        self.layout.degrees().dp as f64
    }

    /// Attention groups that take their passes together, because they share experts or the engine has them wait.
    pub fn groups_together(&self) -> f64 {
        self.together().map_or(1.0, |_| self.groups())
    }

    fn together(&self) -> Option<Groups> {
        let experts = self.model.shape().is_some_and(|shape| shape.moe().is_some());
        self.engine.groups.filter(|rules| experts || rules.dense)
    }

    /// Those of them whose prompts come in passes of their own; where prompts of all are gathered it is as if there was one.
    fn groups_apart(&self) -> f64 {
        self.together().filter(|rules| !rules.gathers_prompts).map_or(1.0, |_| self.groups())
    }

    pub fn stages(&self) -> f64 {
        self.layout.degrees().pp as f64
    }

    /// Chips that compute: those of the layout, and further cards among which its layers are dealt.
    pub fn chips(&self) -> f64 {
        (self.layout.chips() + self.cards()) as f64
    }

    /// Cards beside the one the layout speaks of.
    pub fn cards(&self) -> u64 {
        self.split.as_ref().map_or(0, |split| split.cards.len() as u64)
    }

    /// Whether passes of both take equally long.
    pub fn same_passes(&self, other: &Self) -> bool {
        self.same_products(other) && self.kv == other.kv
    }

    /// Whether all but the attention of their passes takes equally long.
    fn same_products(&self, other: &Self) -> bool {
        self.layout == other.layout
            && self.formats == other.formats
            && self.engine == other.engine
            && self.split == other.split
            && self.system.id == other.system.id
            && self.adapters == other.adapters
    }

    /// What the engine costs on these chips.
    pub fn overhead(&self) -> &Overhead {
        self.engine.overhead_on(&self.system.chip)
    }

    /// What memory is asked to hold: `batch` sequences, as the engine admits them, and passes of at most `chunk` tokens.
    pub fn load(&self, requests: &Requests, batch: f64, chunk: f64) -> Load {
        let s = &self.engine.schedule;
        let held = match s.admission {
            Admission::Whole => requests.whole(),
            Admission::AsItGrows => requests.context(),
        };
        Load { batch, context: Tokens::new(held), tokens: chunk.min(1e6), utilisation: s.memory }
    }

    /// The share of a chip's memory that the engine takes: as said, by its own rule, or as its file states.
    pub fn utilisation(&self, load: &Load) -> Fraction {
        budget::share_taken(self, load)
    }

    /// The least that has to be held: a request in every group, grown to its last token.
    pub fn least(&self, requests: &Requests, chunk: f64) -> Load {
        let whole = Tokens::new(requests.input + requests.output);
        Load { context: whole, ..self.load(requests, self.groups(), chunk) }
    }

    /// Sequences whose cache fits in one attention group, with passes of at most `chunk` tokens; none where one alone would
    /// not get to its end.
    pub fn room(&self, requests: &Requests, chunk: f64) -> f64 {
        let load = self.load(requests, 1.0, chunk);
        let all = placement::largest_batch(self, &load) / self.groups();
        // A whole request is no longer than two of the mean length: where several of those fit, so does it.
        if all < SEVERAL && placement::largest_batch(self, &self.least(requests, chunk)) < self.groups() {
            return 0.0;
        }
        match &self.drafter {
            Drafter::Model(_) => (all * self.drafter.leaves(self, &load)).floor(),
            Drafter::Layer | Drafter::Lookup(_) => all,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untimed {
    /// The model is known by its totals only.
    NoLayers,
    /// The chip has no peak in any arithmetic the model can run in.
    NoPeak,
    /// The engine is not known to run weights from the host's memory.
    NoOffload,
}

/// A deployment with its passes, prepared once and asked many times.
#[derive(Clone, Debug)]
pub struct Ready {
    pub deployment: Deployment,
    pub pass: Arc<Pass>,
}

impl Ready {
    pub fn new(kernels: &KernelSet, deployment: Deployment) -> Result<Self, Untimed> {
        Self::new_like(kernels, deployment, true, None)
    }

    /// The same; without drafts none may be asked for, and what another deployment of the same model has in common with it is not worked out again.
    pub fn new_like(
        kernels: &KernelSet,
        deployment: Deployment,
        drafts: bool,
        like: Option<&Self>,
    ) -> Result<Self, Untimed> {
        let like = like.filter(|ready| ready.deployment.same_products(&deployment)).map(|ready| &*ready.pass);
        Ok(Self { pass: Arc::new(Pass::prepare(&deployment, kernels, drafts, like)?), deployment })
    }

    pub fn room(&self, requests: &Requests) -> f64 {
        self.deployment.room(requests, self.deployment.engine.schedule.chunk)
    }

    pub fn server(&self, room: f64) -> Server<'_> {
        let (schedule, overhead) = (&self.deployment.engine.schedule, self.deployment.overhead());
        let (groups, stages) = (self.deployment.groups_apart(), self.deployment.stages());
        let gathered = self.deployment.groups_together();
        let cold = if self.pass.latent() { self.cold() } else { Cold::NONE };
        Server { timer: &self.pass, groups, gathered, stages, cold, schedule, overhead, room }
    }

    fn cold(&self) -> Cold {
        let Deployment { engine, system, .. } = &self.deployment;
        let here = |generation: &String| *generation == system.chip.generation;
        let joined = engine.kernels.joined.as_ref().filter(|j| j.generations.iter().any(here));
        let overhead = self.deployment.overhead();
        let shapes = overhead.cold_shapes.unwrap_or(f64::INFINITY);
        Cold { pass: overhead.cold_latent, shapes, cut: joined.map_or(Seconds::ZERO, |j| j.cold) }
    }

    pub fn steady(&self, room: f64, requests: &Requests, load: Loaded) -> Steady {
        let Ok(state) = steady(&self.server(room), requests, load);
        state
    }

    /// What it does for prompts when it does nothing else.
    pub fn prompts(&self, requests: &Requests) -> Prompts {
        let Ok(prompts) = Prompts::of(&self.server(f64::INFINITY), self.deployment.groups(), requests);
        prompts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mistral 7B keeps 32 layers of 8 heads of 128, keys and values of two bytes: 131,072 bytes a token, of 22,000 or of its window of 4,096.
    #[test]
    fn a_window_is_kept_to_unless_the_engine_wants_it_named() {
        let catalog = rackmath_catalog::embedded();
        let kept = |engine: &str| {
            let on = Deployment::named(&catalog, "mistral-7b", "h100-sxm", engine).unwrap();
            crate::kv::cache(&on.model, Dtype::Bf16).stored(Tokens::new(22_000.0)).get()
        };
        assert_eq!(kept("trtllm@0.17"), 131_072.0 * 22_000.0);
        assert_eq!(kept("vllm"), 131_072.0 * 4_096.0);
    }
}
