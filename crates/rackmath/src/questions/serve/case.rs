//! A measured situation, and what we predict for it.
//!
//! A case says what ran, how it was loaded and what was measured. It goes through the same passes and the same serving
//! chapter as any question; nothing here knows a measured value but the comparison.

use crate::Error;
use crate::setting::{formats, ready};
use rackmath_spec::engine::Engine;
use rackmath_spec::layout::Degrees;
use rackmath_spec::{Catalog, Dtype, Layout};
use rackmath_theory::deployment::{Deployment, Ready, usual_cache};
use rackmath_theory::pass::{KernelSet, Work};
use rackmath_theory::steady::{Load, Requests, steady};
use std::collections::BTreeMap;

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Time per output token, in milliseconds.
    Tpot,
    /// Time to the first token, in milliseconds.
    Ttft,
    /// From arrival to the last token, in milliseconds.
    E2e,
    /// One pass, in milliseconds.
    Step,
    /// Output tokens per second and chip.
    OutputRate,
    /// Prompt tokens per second and chip.
    InputRate,
}

impl Metric {
    /// The words used in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tpot => "TPOT ms",
            Self::Ttft => "TTFT ms",
            Self::E2e => "E2E ms",
            Self::Step => "step ms",
            Self::OutputRate => "out tok/s/chip",
            Self::InputRate => "in tok/s/chip",
        }
    }

    /// Whether more is better.
    pub fn is_rate(self) -> bool {
        matches!(self, Self::OutputRate | Self::InputRate)
    }
}

/// How it was loaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CaseLoad {
    /// So many requests in flight, over all groups, started together and `rounds` of them one after another.
    Closed {
        /// Requests in flight.
        concurrency: f64,
        /// Requests each slot runs; infinite for a long run.
        rounds: f64,
        /// Whether all answers have the same length.
        fixed: bool,
    },
    /// Requests per second over all groups.
    Open {
        /// Requests per second.
        rate: f64,
    },
    /// Everything queued at once.
    Full,
    /// A batch that starts together and ends together.
    Static {
        /// Sequences.
        batch: f64,
    },
    /// One decode step.
    DecodeStep {
        /// Sequences.
        batch: f64,
        /// Context of each.
        context: f64,
    },
    /// One pass over prompts.
    PrefillStep {
        /// Prompts.
        batch: f64,
        /// Tokens of each.
        tokens: f64,
    },
}

/// One measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Where it was published.
    pub source: String,
    /// Model, as the catalogue knows it.
    pub model: String,
    /// Weight format, where not the checkpoint's.
    pub weights: Option<String>,
    /// Cache format, where not the engine's usual.
    pub kv: Option<String>,
    /// Engine, with its version where known.
    pub engine: String,
    /// Machine.
    pub system: String,
    /// Layout.
    pub degrees: Degrees,
    /// Load.
    pub load: CaseLoad,
    /// Requests.
    pub requests: Requests,
    /// Most tokens in a pass, where stated.
    pub chunk: Option<f64>,
    /// Most sequences, where stated.
    pub sequences: Option<f64>,
    /// What was measured.
    pub metric: Metric,
    /// The measurement.
    pub measured: f64,
}

/// A prediction beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// The metric, as predicted.
    pub value: f64,
    /// The same by the data-sheet roofline.
    pub roofline: f64,
    /// Half width of the 80 % interval, as a natural logarithm.
    pub spread: f64,
}

/// Answers case after case, keeping what several of them share.
pub struct Bench {
    catalog: Catalog,
    kernels: KernelSet,
    engines: BTreeMap<String, Engine>,
    found: BTreeMap<String, Result<Found, Error>>,
}

/// What a case names, found once; its passes, prepared when first asked for.
struct Found {
    on: Deployment,
    ours: Option<Ready>,
    roof: Option<Ready>,
    /// Sequences that fit, by the bits of input and output length.
    rooms: BTreeMap<(u64, u64), f64>,
}

impl Bench {
    /// A bench with the catalogue's engines.
    pub fn new(catalog: Catalog) -> Result<Self, Error> {
        let kernels = KernelSet::of(&catalog)?;
        Ok(Self { catalog, kernels, engines: BTreeMap::new(), found: BTreeMap::new() })
    }

    /// Takes another engine in the place of one of the catalogue's, for fitting.
    pub fn replace(&mut self, engine: Engine) {
        for found in self.found.values_mut().flatten() {
            if found.on.engine.id == engine.id {
                let schedule = found.on.engine.schedule.clone();
                found.on.engine = Engine { schedule, ..engine.clone() }.into();
                found.ours = None;
            }
        }
        self.engines.insert(engine.id.clone(), engine);
    }

    /// The engine a word names, as replaced.
    pub fn engine(&self, name: &str) -> Result<Engine, Error> {
        let (engine, _) = self.catalog.engine(name)?;
        Ok(self.engines.get(&engine.id).cloned().unwrap_or_else(|| std::sync::Arc::unwrap_or_clone(engine)))
    }

    fn find(&self, case: &Case) -> Result<Found, Error> {
        let model = self.catalog.model(&case.model)?;
        let system = self.catalog.system(&case.system)?;
        let mut engine = self.engine(&case.engine)?;
        if let Some(chunk) = case.chunk {
            engine.schedule.chunk = chunk;
        }
        if let Some(sequences) = case.sequences {
            engine.schedule.sequences = sequences;
        }
        let formats = formats(&model, case.weights.as_deref())?;
        let kv = match case.kv.as_deref() {
            Some(word) => word.parse::<Dtype>()?,
            None => usual_cache(&model, formats, &engine),
        };
        let layout = Layout::new(case.degrees).map_err(|e| Error::value("layout", e, "consistent degrees"))?;
        let on = Deployment { formats, kv, layout, ..Deployment::of(&self.catalog, model, system, engine.into()) };
        Ok(Found { on, ours: None, roof: None, rooms: BTreeMap::new() })
    }

    /// Predicts a case.
    pub fn predict(&mut self, case: &Case) -> Result<f64, Error> {
        let key = self.key(case);
        let Found { on, ours, rooms, .. } = match self.found.get_mut(&key).expect("just found") {
            Ok(found) => found,
            Err(error) => return Err(error.clone()),
        };
        let ours = prepared(&self.kernels, on, ours)?;
        let r = &case.requests;
        let room = *rooms.entry((r.input.to_bits(), r.output.to_bits())).or_insert_with(|| ours.room(r));
        Ok(value(ours, case, room))
    }

    /// Predicts a case, with its roofline and its interval.
    pub fn compare(&mut self, case: &Case) -> Result<Predicted, Error> {
        let predicted = self.predict(case)?;
        let key = self.key(case);
        let (ideal, _) = self.catalog.engine("ideal")?;
        let Found { on, ours, roof, .. } = match self.found.get_mut(&key).expect("just found") {
            Ok(found) => found,
            Err(error) => return Err(error.clone()),
        };
        let ours = prepared(&self.kernels, on, ours)?;
        let ideal = Engine { schedule: on.engine.schedule.clone(), ..(*ideal).clone() };
        let roof = prepared(&self.kernels, &Deployment { engine: ideal.into(), ..on.clone() }, roof)?;
        let spread = &ours.deployment.engine.spread;
        let spread = match case.metric {
            Metric::Ttft => spread.ttft,
            Metric::OutputRate | Metric::InputRate => spread.throughput,
            _ => spread.tpot,
        } * ours.pass.wider();
        let room = ours.room(&case.requests);
        Ok(Predicted { value: predicted, roofline: value(roof, case, room), spread })
    }

    /// The key of a case's deployment, which is found on the way.
    fn key(&mut self, case: &Case) -> String {
        let key = format!(
            "{}|{:?}|{:?}|{}|{}|{:?}|{:?}|{:?}",
            case.model, case.weights, case.kv, case.engine, case.system, case.degrees, case.chunk, case.sequences
        );
        if !self.found.contains_key(&key) {
            let one = self.find(case);
            self.found.insert(key.clone(), one);
        }
        key
    }
}

fn prepared<'a>(kernels: &KernelSet, on: &Deployment, slot: &'a mut Option<Ready>) -> Result<&'a Ready, Error> {
    if slot.is_none() {
        *slot = Some(ready(kernels, on.clone())?);
    }
    Ok(slot.as_ref().expect("just prepared"))
}

/// The metric of a deployment under the case's load.
fn value(d: &Ready, case: &Case, room: f64) -> f64 {
    let degrees = d.deployment.layout.degrees();
    let (dp, chips) = (degrees.dp as f64, d.deployment.layout.chips() as f64);
    let requests = &case.requests;
    let server = d.server(room);
    let load = match case.load {
        CaseLoad::Closed { concurrency, rounds, fixed } => {
            let burst = if rounds.is_finite() { 1.0 / rounds.max(1.0) } else { 0.0 };
            Load::Closed { concurrency: (concurrency / dp).max(1.0), clump: clump(rounds), burst, convoy: fixed }
        }
        CaseLoad::Open { rate } => Load::Open { rate: rate / dp },
        CaseLoad::Full => Load::Full,
        CaseLoad::Static { batch } => return fixed_batch(d, case, batch / dp),
        CaseLoad::DecodeStep { batch, context } => {
            let work = Work::decode(batch / dp / d.pass.stages(), context);
            let work = Work { queries: 1.0 + requests.drafts, ..work };
            let time = d.pass.cost_with_drafts(&work, requests.drafts).time().get() / requests.accepted;
            return if case.metric == Metric::OutputRate { batch / time / chips } else { time * 1e3 };
        }
        CaseLoad::PrefillStep { batch, tokens } => {
            let past = tokens * requests.cached;
            let time = d.pass.cost(&Work::prefill(batch / dp, tokens - past, past)).time().get();
            return if case.metric == Metric::InputRate { batch * tokens / time / chips } else { time * 1e3 };
        }
    };
    let s = steady(&server, requests, load);
    match case.metric {
        Metric::Tpot | Metric::Step => s.tpot.as_ms(),
        Metric::Ttft => (s.ttft + s.queue).as_ms(),
        Metric::E2e => s.e2e(requests).as_ms(),
        Metric::OutputRate => s.rate * dp * requests.output / chips,
        Metric::InputRate => s.rate * dp * requests.input / chips,
    }
}

/// How dense prompts come when every slot runs so many requests of nearly the same length, all started together.
///
/// Lengths spread over a fifth of the longest, so that the first generation ends within a fifth of its time; the spread of
/// the j-th grows as the square root of j. The mean over all generations but the first.
fn clump(rounds: f64) -> f64 {
    if !rounds.is_finite() {
        return 1.0;
    }
    let n = rounds.round().clamp(2.0, 200.0) as u32;
    let mean = (2..=n).map(|j| (5.0 / f64::from(j).sqrt()).max(1.0)).sum::<f64>() / f64::from(n - 1);
    mean.max(1.0)
}

/// A batch whose prompts are computed together and that decodes to the end.
fn fixed_batch(d: &Ready, case: &Case, batch: f64) -> f64 {
    let r = &case.requests;
    let degrees = d.deployment.layout.degrees();
    let chips = d.deployment.layout.chips() as f64;
    // As many prompts in a pass as the engine takes.
    let per_pass = (d.deployment.engine.schedule.chunk / r.input).floor().clamp(1.0, batch.max(1.0));
    let passes = (batch / per_pass).ceil().max(1.0);
    let prefill = d.pass.cost(&Work::prefill(batch / passes, r.input, 0.0)).time().get() * passes;
    let decode = d.pass.cost(&Work::decode(batch / d.pass.stages(), r.context())).time().get();
    let total = prefill + decode * r.steps();
    match case.metric {
        Metric::Ttft => prefill * 1e3,
        Metric::Tpot | Metric::Step => decode * 1e3,
        Metric::E2e => total * 1e3,
        Metric::OutputRate => batch * degrees.dp as f64 * r.output / total / chips,
        Metric::InputRate => batch * degrees.dp as f64 * r.input / prefill / chips,
    }
}
