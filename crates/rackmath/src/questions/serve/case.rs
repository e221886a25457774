//! What we predict for a measurement.
//!
//! What ran goes through the same passes and the same serving chapter as any question; nothing here knows the measured
//! value.

use crate::desk::evidence::Scale;
use crate::desk::prelude::*;
use crate::setting::ready;
use rackmath_spec::engine::Engine;
use rackmath_spec::measurement::{self, Measurement, Metric, Setup, Way};
use rackmath_theory::deployment::{Deployment, Ready, usual_cache};
use rackmath_theory::pass::{KernelSet, Work};
use rackmath_theory::steady::{Load, Requests, Steady};
use rackmath_theory::timer::Cost;
use std::collections::BTreeMap;

/// A prediction beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// The metric, as predicted.
    pub value: f64,
    /// The same by the data-sheet roofline.
    pub roofline: f64,
    /// Half width of the 80 % interval, as a natural logarithm; none for the roofline itself.
    pub spread: Option<f64>,
}

/// Answers measurement after measurement, keeping what several of them share.
pub struct Bench {
    catalog: Catalog,
    kernels: KernelSet,
    engines: BTreeMap<String, Engine>,
    /// Kernels of the chips' own generation are not known.
    forgets: bool,
    found: BTreeMap<String, Result<Found, Error>>,
    /// Setups that are kept.
    most: usize,
}

/// What a setup names, found once; its passes, prepared when first asked for.
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
        Ok(Self {
            catalog,
            kernels,
            engines: BTreeMap::new(),
            forgets: false,
            found: BTreeMap::new(),
            most: usize::MAX,
        })
    }

    /// A bench for rows that are asked about once, those of a setup one after the other: it keeps few of them.
    pub fn passing(catalog: Catalog) -> Result<Self, Error> {
        Ok(Self { most: 8, ..Self::new(catalog)? })
    }

    /// Takes another engine in the place of one of the catalogue's, for fitting.
    pub fn replace(&mut self, engine: Engine) {
        for found in self.found.values_mut().flatten() {
            if found.on.engine.id == engine.id {
                let (schedule, version) = (found.on.engine.schedule.clone(), found.on.engine.version);
                found.on.engine = Engine { schedule, version, ..engine.clone() }.into();
                found.ours = None;
            }
        }
        self.engines.insert(engine.id.clone(), engine);
    }

    /// Times chips with kernels of another generation, as if nobody had timed any of their own.
    pub fn forget_generation(&mut self) {
        self.forgets = true;
        self.found.clear();
    }

    /// The engine a word names, as replaced.
    pub fn engine(&self, name: &str) -> Result<Engine, Error> {
        let (engine, _) = self.catalog.engine(name)?;
        Ok(match self.engines.get(&engine.id) {
            Some(own) => Engine { version: engine.version, ..own.clone() },
            None => std::sync::Arc::unwrap_or_clone(engine),
        })
    }

    fn find(&self, setup: &Setup) -> Result<Found, Error> {
        let model = self.catalog.model(&setup.model)?;
        let mut system = self.catalog.system(&setup.system)?;
        if self.forgets {
            Arc::make_mut(&mut Arc::make_mut(&mut system).chip).generation = "forgotten".into();
        }
        let mut engine = self.engine(&setup.engine)?;
        let schedule = &mut engine.schedule;
        schedule.chunk = setup.chunk.unwrap_or(schedule.chunk);
        schedule.tell(setup.sequences);
        schedule.looks = setup.looks.unwrap_or(schedule.looks).max(1.0);
        schedule.gather = setup.gather.unwrap_or(schedule.gather);
        schedule.hold = setup.hold.or(schedule.hold);
        schedule.memory = setup.memory.and_then(Fraction::checked).or(schedule.memory);
        let formats = match setup.weights.as_deref() {
            None => model.formats(),
            Some(word) => self.catalog.formats_in(&model, word.parse()?),
        };
        let kv = match setup.kv.as_deref() {
            Some(word) => word.parse::<Dtype>()?,
            None => usual_cache(&model, formats, &engine),
        };
        let layout = Layout::new(setup.degrees).map_err(|e| Error::value("layout", e, "consistent degrees"))?;
        let on = Deployment { formats, kv, layout, ..Deployment::of(&self.catalog, model, system, engine.into()) };
        Ok(Found { on, ours: None, roof: None, rooms: BTreeMap::new() })
    }

    /// What a setup names, with its formats and its layout.
    pub fn deployment(&self, setup: &Setup) -> Result<Deployment, Error> {
        Ok(self.find(setup)?.on)
    }

    /// Predicts a measurement, in its unit.
    pub fn predict(&mut self, m: &Measurement) -> Result<f64, Error> {
        let (ours, room) = self.ours(m)?;
        Ok(value(ours, m, room))
    }

    /// The mean pass under the load of a measurement; none where a single pass or a fixed batch was measured.
    pub fn mean_pass(&mut self, m: &Measurement) -> Result<Option<Cost>, Error> {
        let (ours, room) = self.ours(m)?;
        Ok(settled(ours, m, room).map(|s| s.mean_pass()))
    }

    /// Sequences of a measurement's lengths that fit into one attention group.
    pub fn room(&mut self, m: &Measurement) -> Result<f64, Error> {
        Ok(self.ours(m)?.1)
    }

    fn ours(&mut self, m: &Measurement) -> Result<(&Ready, f64), Error> {
        let (kernels, Found { on, ours, rooms, .. }) = self.found(&m.setup)?;
        let ours = prepared(kernels, on, ours)?;
        let r = requests(&m.load);
        let room = *rooms.entry((r.input.to_bits(), r.output.to_bits())).or_insert_with(|| ours.room(&r));
        Ok((ours, room))
    }

    /// Predicts a measurement, with its roofline and its interval.
    pub fn compare(&mut self, m: &Measurement) -> Result<Predicted, Error> {
        let predicted = self.predict(m)?;
        let (ideal, _) = self.catalog.engine("ideal")?;
        let evidence = Scale::of(&self.catalog)?;
        let (kernels, Found { on, ours, roof, .. }) = self.found(&m.setup)?;
        let ours = prepared(kernels, on, ours)?;
        let ideal = Engine { schedule: on.engine.schedule.clone(), ..(*ideal).clone() };
        let roof = prepared(kernels, &Deployment { engine: ideal.into(), ..on.clone() }, roof)?;
        let room = ours.room(&requests(&m.load));
        let width = evidence.weigh(ours).map(|known| match m.metric {
            metric if metric.is_first_token() => known.widths.ttft,
            metric if metric.is_output_rate() || metric.is_input_rate() => known.widths.throughput,
            _ => known.widths.tpot,
        });
        Ok(Predicted { value: predicted, roofline: value(roof, m, room), spread: width })
    }

    /// The deployment of a setup, which is found once.
    fn found(&mut self, setup: &Setup) -> Result<(&KernelSet, &mut Found), Error> {
        let key = format!("{setup:?}");
        if !self.found.contains_key(&key) {
            if self.found.len() >= self.most {
                self.found.clear();
            }
            let one = self.find(setup);
            self.found.insert(key.clone(), one);
        }
        let found = self.found.get_mut(&key).expect("just found").as_mut().map_err(|error| error.clone())?;
        Ok((&self.kernels, found))
    }
}

fn prepared<'a>(kernels: &KernelSet, on: &Deployment, slot: &'a mut Option<Ready>) -> Result<&'a Ready, Error> {
    if slot.is_none() {
        *slot = Some(ready(kernels, on)?);
    }
    Ok(slot.as_ref().expect("just prepared"))
}

fn requests(load: &measurement::Load) -> Requests {
    let measurement::Load { input, output, cached, drafts, accepted, .. } = *load;
    Requests { cached, drafts, accepted, ..Requests::of(input, output) }
}

/// The state a deployment settles in under a load of requests; none where a single pass or a fixed batch was measured.
fn settled(d: &Ready, m: &Measurement, room: f64) -> Option<Steady> {
    let dp = d.deployment.layout.degrees().dp as f64;
    let load = match m.load.way {
        Way::Closed { concurrency, rounds, fixed } => {
            // The request in the middle of all is none of the first wave.
            let mean = m.metric != Metric::TtftP50Ms;
            let burst = if rounds.is_finite() && mean { 1.0 / rounds.max(1.0) } else { 0.0 };
            let (concurrency, cold) = (concurrency / dp, m.load.cold);
            Load::Closed { concurrency, clump: clump(rounds), burst, cold, convoy: fixed }
        }
        Way::Open { rate } => Load::Open { rate: rate / dp },
        Way::Full => Load::Full,
        Way::Queue { requests } => Load::Queue { requests: requests / dp },
        Way::Static { .. } | Way::DecodeStep { .. } | Way::PrefillStep { .. } => return None,
    };
    Some(d.steady(room, &requests(&m.load), load))
}

/// The metric of a deployment under the measurement's load.
fn value(d: &Ready, m: &Measurement, room: f64) -> f64 {
    let scale = if m.metric.is_of_system() { d.deployment.system.n_chips as f64 } else { 1.0 };
    of_one(d, m, room) * scale
}

/// The same with rates per chip.
fn of_one(d: &Ready, m: &Measurement, room: f64) -> f64 {
    let degrees = d.deployment.layout.degrees();
    let (dp, chips) = (degrees.dp as f64, d.deployment.layout.chips() as f64);
    let requests = requests(&m.load);
    match m.load.way {
        Way::Static { batch } => return fixed_batch(d, m, batch / dp),
        Way::DecodeStep { batch, context } => {
            let work = Work::decode(batch / dp / d.deployment.stages(), context);
            let work = Work { drafts: requests.drafts, ..work };
            let time = d.pass.cost(&work).time().get() / requests.accepted;
            return if m.metric.is_output_rate() { batch / time / chips } else { time * 1e3 };
        }
        Way::PrefillStep { batch, tokens } => {
            let past = tokens * requests.cached;
            let time = d.pass.cost(&Work::prefill(batch / dp, tokens - past, past)).time().get();
            return if m.metric.is_input_rate() { batch * tokens / time / chips } else { time * 1e3 };
        }
        Way::Closed { .. } | Way::Open { .. } | Way::Full | Way::Queue { .. } => {}
    }
    let s = settled(d, m, room).expect("a load of requests");
    let times = [(s.ttft + s.queue).as_ms(), s.e2e(&requests).as_ms(), s.tpot.as_ms()];
    chosen(m.metric, times, [s.rate * dp * requests.output / chips, s.rate * dp * requests.input / chips])
}

/// One of the times to the first token, to the last and of one token, or of the rates of answers and of prompts.
fn chosen(metric: Metric, [ttft, e2e, tpot]: [f64; 3], [output, input]: [f64; 2]) -> f64 {
    match metric {
        metric if metric.is_first_token() => ttft,
        Metric::E2eMs => e2e,
        metric if metric.is_output_rate() => output,
        metric if metric.is_input_rate() => input,
        _ => tpot,
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
fn fixed_batch(d: &Ready, m: &Measurement, batch: f64) -> f64 {
    let r = &requests(&m.load);
    let chips = d.deployment.layout.chips() as f64;
    // As many prompts in a pass as the engine takes.
    let per_pass = (d.deployment.engine.schedule.chunk / r.input).floor().clamp(1.0, batch.max(1.0));
    let passes = (batch / per_pass).ceil().max(1.0);
    let prefill = d.pass.cost(&Work::prefill(batch / passes, r.input, 0.0)).time().get() * passes;
    let decode = d.pass.cost(&Work::decode(batch / d.deployment.stages(), r.context())).time().get();
    let total = prefill + decode * r.steps();
    let all = batch * d.deployment.layout.degrees().dp as f64;
    let rates = [all * r.output / total / chips, all * r.input / prefill / chips];
    chosen(m.metric, [prefill * 1e3, total * 1e3, decode * 1e3], rates)
}
