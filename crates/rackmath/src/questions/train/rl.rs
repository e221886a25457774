//! Reinforcement learning: answers drawn by a serving engine, scored, and trained on, on the same chips or on others.
//!
//! The engine's passes are those of `estimate`, the training step that of `train`; what is between them stands in
//! [`rackmath_theory::rollout`]: the longest answer ends a batch, scores are forward passes, new weights travel, and chips that do
//! both hold both. Who waits follows.
//!
//! A scoring pass is a third of the training step's passes without what is run again: one product of three for each weight.

mod cards;

pub use cards::*;

use crate::desk::cut;
use crate::desk::prelude::*;
use crate::estimate::work::{Ask, Case};
use crate::layout::DegreesRequest;
use crate::setting::machine as machine_named;
use crate::{estimate, train};
use rackmath_spec::lengths::Lengths;
use rackmath_theory::count::lora;
use rackmath_theory::layout::domain;
use rackmath_theory::lengths::quantile;
use rackmath_theory::placement;
use rackmath_theory::pools::Serving;
use rackmath_theory::rollout::{Batch, Generation, Parts, Turns, Way, generation, lengths, update};
use rackmath_theory::steady::Requests;
use rackmath_theory::train::{Recompute, Sharding};

/// A change that shortens a step by less is not worth a sentence: what is left out of a step is more.
const SHORTER: f64 = 0.97;

/// More answers than a step has.
const MOST: u64 = 1_000_000;

/// Most chips that are looked at where both sides fit on none asked for, and how often their number is doubled.
const MOST_CHIPS: u64 = 65_536;
const DOUBLED: u32 = 8;

/// A model, its machine, and a step of reinforcement learning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model that is trained: a catalogue id, an alias, or a Hugging Face id.
    #[schemars(extend("x-file" = "model", "x-position" = 2))]
    #[educe(Default = "qwen3-8b")]
    pub model: String,
    /// Machine: a system, a chip, or so many chips such as `16xh100`: all chips, of both sides.
    #[schemars(extend("x-flag" = "on hw system", "x-file" = "machine"))]
    #[educe(Default = "16xh100")]
    pub on: String,
    /// Chips of both sides, instead of the machine's.
    #[schemars(extend("x-flag" = "chips gpus num-gpus", "x-none" = "the machine's", "x-most" = [65536, "layouts of a search"]))]
    pub chips: Option<u64>,
    /// Of these, chips that only draw answers; without it both sides share all chips, or, with `--async`, the best split is found.
    pub rollout_chips: Option<u64>,
    /// Draws the next answers while the last ones train (one step off), on chips apart.
    #[schemars(extend("x-flag" = "async one-step-off"))]
    pub asynchronous: bool,
    /// Prompts of a step.
    #[schemars(extend("x-flag" = "prompts num-prompts-per-step train-batch-size", "x-most" = [100_000, "answers"]))]
    #[educe(Default = 128)]
    pub prompts: u64,
    /// Answers drawn for each prompt.
    #[schemars(extend("x-flag" = "samples n num-generations group-size", "x-most" = [1024, "answers"]))]
    #[educe(Default = 16)]
    pub samples: u64,
    /// Tokens of a prompt.
    #[schemars(extend("x-flag" = "isl max-prompt-length"))]
    #[educe(Default = 200.0)]
    pub isl: f64,
    /// Tokens of answers: a number, or a distribution such as `lognormal:mean=2k,cv=1`, `exponential:mean=2k`, `uniform:1k..4k`.
    #[schemars(extend("x-flag" = "osl lengths", "x-whole" = true))]
    #[educe(Default = "lognormal:mean=1k,cv=1")]
    pub osl: String,
    /// The longest answer allowed: others are cut.
    #[schemars(extend("x-flag" = "longest max-response-length max-new-tokens"))]
    #[educe(Default = 8192.0)]
    pub longest: f64,
    /// The engine that draws answers, with a version where it matters.
    #[educe(Default = "vllm")]
    pub engine: String,
    /// Layout of one replica of the engine; a usual one unless given.
    #[schemars(extend("x-prefix" = "rollout"))]
    pub rollout: DegreesRequest,
    /// Layout of the trainer; the best is looked for unless given.
    #[schemars(extend("x-prefix" = "train"))]
    pub trainer: DegreesRequest,
    /// What copies of the trainer divide.
    #[schemars(extend("x-flag" = "sharding zero", "x-also" = ["zero0", "ddp", "fsdp"], "x-none" = "zero1"))]
    pub sharding: Option<Sharding>,
    /// What the trainer runs again.
    #[schemars(extend("x-flag" = "recompute", "x-also" = ["off"], "x-none" = "nothing"))]
    pub recompute: Option<Recompute>,
    /// Training program whose constants are used; one that suits the chip unless given.
    pub stack: Option<String>,
    /// Trains adapters of this rank (LoRA); only they travel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lora: Option<u64>,
    /// Updates of the weights in a step: the answers are divided among them.
    #[schemars(extend("x-flag" = "updates ppo-mini-batches"))]
    #[educe(Default = 1)]
    pub updates: u64,
    /// Forward passes that score all answers before training: their own probabilities and a reference's are two.
    #[educe(Default = 2.0)]
    pub scoring_passes: f64,
    /// What the engine gives up while chips that do both train.
    #[educe(Default = Sleep::All)]
    pub sleep: Sleep,
    /// Whether the trainer's weights, gradients and states wait in the host's memory while answers are drawn.
    pub offload_trainer: bool,
    /// How new weights reach the engine.
    #[schemars(extend("x-none" = "shards on the same chips, else broadcast"))]
    pub update: Option<Update>,
    /// Share of a chip's memory the engine takes.
    #[schemars(extend("x-flag" = "gpu-memory-utilization mem-fraction-static", "x-unit" = "share", "x-none" = "the engine's"))]
    pub memory_utilisation: Option<f64>,
    /// Price per chip and hour in dollars, instead of the catalogue's.
    pub price_usd_per_chip_hour: Option<f64>,
}

/// What an engine gives up while it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Sleep {
    /// Nothing: weights and cache stay beside the trainer.
    #[serde(alias = "0")]
    Keep,
    /// The cache; weights wait in the host's memory (vLLM's sleep level 1).
    #[serde(alias = "1")]
    Weights,
    /// Both: new weights come anyway (level 2).
    #[serde(alias = "2")]
    All,
}

/// How new weights reach the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Update {
    /// All of them pass every chip, through a link to a host.
    Broadcast,
    /// Each chip is sent its own share.
    Shards,
}

/// Answers while it is wanted.
pub fn answer_on(catalog: &Catalog, request: &Request, effort: &Effort) -> Result<Answer, Error> {
    let r = request;
    let checked = Checked::new(catalog, r)?;
    let apart = r.rollout_chips.is_some() || r.asynchronous;
    if let Some(n) = r.rollout_chips {
        let most = checked.chips.saturating_sub(1);
        refuse_if(
            !(1..=most).contains(&n),
            "rollout_chips",
            n,
            format!("1 to {most}, so that a chip is left to train"),
        )?;
    }
    if !apart || r.rollout_chips.is_some() {
        let mut weighed = checked.weigh(r.rollout_chips, effort)?;
        if weighed.fits {
            weighed.faster = checked.faster(&weighed, effort)?;
        } else {
            weighed.remedies = checked.remedies(&weighed, effort)?;
        }
        return Ok(weighed.answer(r, &checked, Vec::new()));
    }
    let mut all: Vec<Weighed> = Vec::new();
    let mut wrong = None;
    for n in checked.splits() {
        effort.cancel.check()?;
        match checked.weigh(Some(n), effort) {
            Ok(one) => all.push(one),
            Err(e) => wrong = Some(e),
        }
    }
    all.sort_by(|a, b| (!a.fits, a.step).partial_cmp(&(!b.fits, b.step)).unwrap_or(std::cmp::Ordering::Equal));
    let splits = all.iter().map(|w| w.split(&checked)).collect();
    let Some(mut best) = all.into_iter().next() else {
        let none = || Error::value("chips", checked.chips, "more of them: no split gives each side a layout");
        return Err(wrong.unwrap_or_else(none));
    };
    if best.fits {
        best.faster = checked.faster(&best, effort)?;
    }
    Ok(best.answer(r, &checked, splits))
}

/// A request with its numbers checked.
struct Checked<'a> {
    catalog: &'a Catalog,
    r: &'a Request,
    lengths: Lengths,
    /// Answers of a step.
    answers: u64,
    chips: u64,
    mean: f64,
}

impl<'a> Checked<'a> {
    fn new(catalog: &'a Catalog, r: &'a Request) -> Result<Self, Error> {
        up_to("prompts", r.prompts, MOST)?;
        up_to("samples", r.samples, MOST)?;
        let answers = r.prompts.saturating_mul(r.samples);
        refuse_if(answers > MOST, "prompts x samples", answers, format!("at most {MOST} answers"))?;
        up_to("updates", r.updates, answers)?;
        within("isl", r.isl, 1.0, 1e7)?;
        within("longest", r.longest, 2.0, 1e7)?;
        within("scoring_passes", r.scoring_passes, 0.0, 100.0)?;
        let law: Lengths = r.osl.parse().map_err(|e: Error| e.at("osl"))?;
        let shares = lengths(1000, r.longest, |p| quantile(&law, p));
        let mean = shares.iter().map(|n| f64::from(*n)).sum::<f64>() / shares.len() as f64;
        let system = catalog.system(machine_named(&r.on)?.0)?;
        let chips = r.chips.unwrap_or(system.n_chips);
        up_to("chips", chips, 1_000_000)?;
        Ok(Self { catalog, r, lengths: law, answers, chips, mean })
    }

    /// Ways to share the chips that leave the engine more memory, as asked first, the easiest to have before others.
    fn ways(&self) -> Vec<(Remark, Request)> {
        let r = self.r;
        let mut ways = vec![(says("rl_as_asked"), r.clone())];
        if r.sharding.is_none() {
            ways.push((says("rl_with_zero3"), Request { sharding: Some(Sharding::Zero3), ..r.clone() }));
        }
        if !r.offload_trainer {
            ways.push((says("rl_with_offload"), Request { offload_trainer: true, ..r.clone() }));
        }
        ways
    }

    /// What of the other ways to share the chips fits, each tried; chips apart where nothing else does, more chips where nothing
    /// does at all.
    fn remedies(&self, now: &Weighed, effort: &Effort) -> Result<Vec<Remark>, Error> {
        let r = self.r;
        if now.turns != Turns::Colocated {
            return Ok(Vec::new());
        }
        let with = |r: &Request, split: Option<u64>| {
            effort.cancel.check()?;
            let checked = Checked { r, ..*self };
            Ok::<bool, Error>(checked.weigh(split, effort).is_ok_and(|w| w.fits))
        };
        let mut all = Vec::new();
        for (way, asked) in self.ways().into_iter().skip(1) {
            if with(&asked, None)? {
                all.push(way);
            }
        }
        if r.sleep != Sleep::All && with(&Request { sleep: Sleep::All, ..r.clone() }, None)? {
            all.push(says("rl_with_sleep"));
        }
        if now.trained.fits {
            for n in self.splits() {
                if all.is_empty() && with(r, Some(n))? {
                    all.push(says("rl_with_split").with("chips", n));
                }
            }
        }
        if all.is_empty() { self.more_chips(effort) } else { Ok(all) }
    }

    /// From how many chips on both sides fit, in each way to share them that needs fewer than the easier ones, fewest first.
    fn more_chips(&self, effort: &Effort) -> Result<Vec<Remark>, Error> {
        let mut all: Vec<(u64, Remark)> = Vec::new();
        for (way, asked) in self.ways() {
            let Some(chips) = (Checked { r: &asked, ..*self }).fewest(effort)? else { continue };
            if all.iter().all(|(before, _)| chips < *before) {
                all.push((chips, says("rl_from").with("chips", chips).with("way", way)));
            }
        }
        all.sort_by_key(|(chips, _)| *chips);
        Ok(all.into_iter().map(|(_, said)| said).collect())
    }

    /// The fewest chips that hold both sides: doubled from where the trainer alone fits, then halved in whole domains.
    fn fewest(&self, effort: &Effort) -> Result<Option<u64>, Error> {
        let holds = |chips: u64| {
            effort.cancel.check()?;
            Ok::<bool, Error>((Checked { chips, ..*self }).weigh(None, effort).is_ok_and(|w| w.fits))
        };
        let alone = self.train(self.chips, effort)?.0;
        let asked = |c: &&train::ChangeCard| c.what.says == "fits_chips";
        let first = alone.changes.iter().find(asked).map_or(self.chips + 1, |c| c.chips);
        let system = self.catalog.system(machine_named(&self.r.on)?.0)?;
        let unit = domain(&system).max(1);
        let first = if first > unit { first.next_multiple_of(unit) } else { first };
        let (mut no, mut yes) = (None, None);
        for chips in (0..DOUBLED).map(|k| first << k).take_while(|n| *n <= MOST_CHIPS) {
            if holds(chips)? {
                yes = Some(chips);
                break;
            }
            no = Some(chips);
        }
        let (Some(mut yes), Some(mut no)) = (yes, no) else { return Ok(yes) };
        while yes - no > unit {
            let middle = (u64::midpoint(no, yes) / unit * unit).max(no + 1);
            if holds(middle)? { yes = middle } else { no = middle }
        }
        Ok(Some(yes))
    }

    /// Ways to leave the engine more memory that cost nothing, where a step is shorter with one, shortest first; where the sides
    /// have chips apart, sharing them all is such a way.
    fn faster(&self, now: &Weighed, effort: &Effort) -> Result<Vec<Remark>, Error> {
        let colocated = now.turns == Turns::Colocated;
        if colocated && now.memory.trainer_resident_bytes == 0.0 {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for (way, asked) in self.ways().into_iter().skip(usize::from(colocated)) {
            effort.cancel.check()?;
            let together = Request { asynchronous: false, rollout_chips: None, ..asked };
            let tried = (Checked { r: &together, ..*self }).weigh(None, effort);
            let way = if colocated { way } else { says("rl_together").with("way", way) };
            all.extend(tried.ok().filter(|w| w.fits && w.step < SHORTER * now.step).map(|w| (w.step, way)));
        }
        all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        // Of ways to share the chips the fastest is enough.
        all.truncate(if colocated { all.len() } else { 1 });
        Ok(all.into_iter().map(|(step, way)| says("rl_faster").with("what", way).with("step", step)).collect())
    }

    /// Splits worth trying: eighths of the chips, in whole hosts where there are several.
    fn splits(&self) -> Vec<u64> {
        let unit = if self.chips >= 16 { 8 } else { 1 };
        let mut all: Vec<u64> = (1..8).map(|k| (self.chips * k / 8 / unit * unit).max(unit)).collect();
        all.retain(|n| *n < self.chips);
        all.dedup();
        all
    }

    fn serve(&self, chips: u64) -> estimate::Request {
        let r = self.r;
        let price = r.price_usd_per_chip_hour;
        estimate::Request {
            setting: Setting {
                model: r.model.clone(),
                on: r.on.clone(),
                chips: Some(chips),
                price_usd_per_chip_hour: price,
                ..Setting::default()
            },
            degrees: r.rollout.clone(),
            engine: r.engine.clone(),
            concurrency: Some(self.answers as f64),
            isl: r.isl,
            osl: self.mean.max(2.0),
            memory_utilisation: r.memory_utilisation,
            changes: false,
            ..estimate::Request::default()
        }
    }

    /// The training step of one update, packed, and by how much its tokens are more or fewer than those asked for.
    fn train(&self, chips: u64, effort: &Effort) -> Result<(train::Answer, f64), Error> {
        let r = self.r;
        let whole = r.isl + self.mean;
        let DegreesRequest { tp, pp, cp, ep, dp, etp, .. } = r.trainer;
        let given = [tp, pp, cp, ep, dp, etp].iter().any(Option::is_some);
        let each = (self.answers / r.updates).max(1);
        let one = [tp, pp, cp].iter().fold(1, |n, d| n * d.unwrap_or(1));
        let copies = dp.unwrap_or((chips / one).max(1));
        // As many answers are packed together as one of the longest has tokens.
        let packed = (((r.isl + r.longest) / whole).floor() as u64).max(1);
        let packed = packed.min((each / copies).max(1));
        let (global, micro) = if given {
            let unit = copies * packed;
            ((each / unit).max(1) * unit, Some(packed))
        } else {
            ((each / chips).max(1) * chips, None)
        };
        let asked = train::Request {
            model: Some(r.model.clone()),
            on: Some(r.on.clone()),
            chips: Some(chips),
            stack: r.stack.clone(),
            // Ranks that share a context pair its halves.
            sequence: Some((whole.round() as u64).max(1).next_multiple_of(2 * cp.unwrap_or(1))),
            global_batch: Some(global),
            micro_batch: micro,
            tp,
            pp,
            cp,
            ep,
            dp,
            etp,
            sharding: r.sharding,
            recompute: r.recompute,
            lora: r.lora,
            ..train::Request::default()
        };
        let answer = train::answer_on(self.catalog, &asked, effort.clone())?;
        let updates = self.answers as f64 / r.updates as f64 / global as f64;
        Ok((answer, updates * r.updates as f64))
    }

    fn weigh(&self, rollout: Option<u64>, effort: &Effort) -> Result<Weighed, Error> {
        let r = self.r;
        let colocated = rollout.is_none();
        let (engine_chips, train_chips) = rollout.map_or((self.chips, self.chips), |n| (n, self.chips - n));
        let (trained, updates) = self.train(train_chips, effort)?;
        let fullest = trained.stages.iter().max_by(|a, b| a.total_bytes.total_cmp(&b.total_bytes));
        let trainer = fullest.map_or(0.0, |s| s.total_bytes);
        let states = fullest.map_or(0.0, |s| s.weight_bytes + s.gradient_bytes + s.optimizer_bytes);
        let resident = match (colocated, r.offload_trainer, r.sleep) {
            (false, ..) => 0.0,
            // An engine that gives up nothing leaves the trainer all it needs at its fullest.
            (true, _, Sleep::Keep) => trainer,
            (true, true, _) => 0.0,
            (true, false, _) => states,
        };
        let asked = self.rollout(engine_chips, resident);
        let case = Case::new(self.catalog, &asked)?;
        let (ask, drawn) = self.drawn(&case, engine_chips, resident)?;
        let on = &ask.on;
        let (system, chip) = (&on.system, &on.system.chip);
        let capacity = chip.memory.seen().get();
        let load = on.load(&ask.requests, drawn.places * on.groups(), on.engine.schedule.chunk);
        let placed = placement::place(on, &load);
        let held = placed.stages.iter().max_by(|a, b| a.held.total().get().total_cmp(&b.held.total().get()));
        let (weights, cache, reserve) =
            held.map_or((0.0, 0.0, 0.0), |s| (s.held.all_weights().get(), s.held.kv, s.held.reserve));
        let engine = held.map_or(0.0, |s| s.held.total().get() - s.held.side - reserve);
        let kept = if colocated && r.sleep == Sleep::Keep { weights + cache } else { 0.0 };
        let beside = if r.sleep == Sleep::Keep && !r.offload_trainer { states } else { resident };
        let memory = MemoryCard {
            engine_bytes: engine,
            cache_bytes: cache,
            trainer_resident_bytes: if colocated { beside } else { 0.0 },
            generating_bytes: engine + if colocated { beside } else { 0.0 },
            trainer_bytes: trainer,
            engine_resident_bytes: kept,
            training_bytes: trainer + kept,
            peak_bytes: (engine + if colocated { beside } else { 0.0 }).max(trainer + kept),
            capacity_bytes: capacity,
        };
        let fits = trained.fits && drawn.places >= 1.0 && memory.peak_bytes <= capacity;
        let all = match (r.lora, on.model.shape()) {
            (Some(rank), Some(shape)) => Bytes::b(2.0 * lora::params(shape, lora::Targets::All, rank as f64)),
            _ => case.found.count.stored_bytes(&on.formats),
        };
        let host = chip.to_host();
        let way = r.update.unwrap_or(if colocated { Update::Shards } else { Update::Broadcast });
        let level = |n: usize| system.levels.get(n).map(|l| l.bandwidth.value);
        let near = level(0).or(chip.link.scale_up.as_ref().map(|x| x.value));
        let far = level(1).or(chip.link.scale_out.as_ref().map(|x| x.value));
        let leaves = self.chips > domain(system);
        let links = if leaves { far.or(near) } else { near };
        let rate = match way {
            Update::Broadcast => host.or(links),
            Update::Shards => links.or(host),
        };
        let rate = rate.unwrap_or(ByteRate::gb_per_s(10.0));
        let theory = if way == Update::Broadcast { Way::Broadcast } else { Way::Shards };
        let sent = update(theory, all, on.layout.chips() as f64 / on.groups(), rate).get();
        let moved = |bytes: f64| host.map_or(0.0, |rate| 2.0 * bytes / rate.get());
        let swap = match r.sleep {
            _ if !colocated => 0.0,
            Sleep::Weights => moved(weights),
            Sleep::Keep | Sleep::All => 0.0,
        } + if colocated && r.offload_trainer { moved(states) } else { 0.0 };
        let (time, pass) = (trained.step_s * updates, forward(&trained) * updates);
        let parts = Parts {
            generate: drawn.generation.time.get(),
            score: r.scoring_passes * pass,
            train: time,
            update: sent,
            swap,
        };
        let turns = match (colocated, r.asynchronous) {
            (true, _) => Turns::Colocated,
            (false, false) => Turns::Synchronous,
            (false, true) => Turns::OneStepOff,
        };
        let price = case.found.priced().then(|| case.found.chip_price.get());
        let source = case.found.price_source.short();
        let priced = price.map(|p| says("chip_hour_costs").with("usd_per_hour", 3600.0 * p).with("source", source));
        Ok(Weighed {
            fits,
            step: parts.step(turns),
            turns,
            parts,
            pass,
            memory,
            update: UpdateCard { way, bytes: all.get(), rate_gb_per_s: rate.get() / 1e9, time_s: sent },
            layout: cut::words(&on.model, &on.layout),
            engine: on.engine.name.clone(),
            model: on.model.name.clone(),
            machine: format!("{} x {}", self.chips, chip.name),
            trained,
            drawn,
            chips: (engine_chips, train_chips),
            price,
            priced,
            remedies: Vec::new(),
            faster: Vec::new(),
        })
    }

    /// The engine's layout: as given, or the tensor-parallel degree that draws the answers soonest.
    fn rollout(&self, chips: u64, resident: f64) -> estimate::Request {
        let usual = self.serve(chips);
        if self.r.rollout != DegreesRequest::default() {
            return usual;
        }
        let mut best: Option<(f64, estimate::Request)> = None;
        for tp in (0..=4).map(|k| 1 << k).filter(|tp| chips.is_multiple_of(*tp)) {
            let mut asked = usual.clone();
            asked.degrees.tp = Some(tp);
            let Ok(case) = Case::new(self.catalog, &asked) else { continue };
            let Ok((_, drawn)) = self.drawn(&case, chips, resident) else { continue };
            let time = drawn.generation.time.get();
            if drawn.places >= 1.0 && best.as_ref().is_none_or(|(t, _)| time < *t) {
                best = Some((time, asked));
            }
        }
        best.map_or(usual, |(_, asked)| asked)
    }

    /// The engine with so much beside it, and a step's answers on it.
    fn drawn(&self, case: &Case<'_>, chips: u64, resident: f64) -> Result<(Ask, Drawn), Error> {
        let mut ask: Ask = case.ask.clone();
        ask.on.side = Bytes::b(resident);
        // A share that was given is the engine's own, beside what is there already.
        if let Some(share) = self.r.memory_utilisation {
            let beside = resident / ask.on.system.chip.memory.seen().get();
            let both = Fraction::checked((share + beside).min(1.0));
            Arc::make_mut(&mut ask.on.engine).schedule.memory = both;
        }
        let serving = case.ready(&ask)?;
        let drawn = self.draw(&serving, &ask.requests, chips);
        Ok((ask, drawn))
    }

    /// A step's answers on so many chips.
    fn draw(&self, serving: &Serving, requests: &Requests, chips: u64) -> Drawn {
        let ready = &serving.main;
        let on = &ready.deployment;
        let replicas = (chips / on.layout.chips().max(1)).max(1);
        let groups = on.groups();
        let n = (self.answers as f64 / (replicas as f64 * groups)).ceil().max(1.0) as usize;
        let most = on.engine.schedule.sequences * on.stages();
        let places = serving.room.min(most).min(n as f64).floor();
        let all = lengths(n, self.r.longest, |p| quantile(&self.lengths, p));
        let chunk = on.engine.schedule.chunk;
        let (input, samples) = (requests.input, self.r.samples as f64);
        let batch = Batch { lengths: &all, places: (places as u64).max(1), input, samples, chunk };
        let Ok(generation) = generation(&*ready.pass, &batch);
        let places_taken = places.max(1.0);
        let equal = all.first() == all.last() && n as f64 > places_taken;
        let rest = n as f64 % places_taken;
        let last = Some((n as f64 / places_taken).floor()).filter(|_| equal && rest > 0.0).map(|full| (full, rest));
        Drawn { generation, replicas, groups, places, last }
    }
}

/// Seconds of a forward pass over what a step trains on.
fn forward(trained: &train::Answer) -> f64 {
    let left_out = ["passes run again", "gradient reduction", "optimizer", "transfers to the host", "once per step"];
    let other: f64 = trained.parts.iter().filter(|p| left_out.contains(&&*p.name)).map(|p| p.time_s).sum();
    // With frozen weights two products of a pass are left, one of them forward.
    let share = if trained.request.lora.is_some() { 2.0 } else { 3.0 };
    (trained.step_s - other).max(0.0) / share
}

struct Drawn {
    generation: Generation,
    replicas: u64,
    groups: f64,
    /// Of one group.
    places: f64,
    /// Where all answers are equally long: rounds in which all places are busy, and answers of a group left for the last one.
    last: Option<(f64, f64)>,
}

impl Drawn {
    /// Why few places are busy while the last answers are drawn.
    fn late(&self) -> Remark {
        let groups = self.replicas as f64 * self.groups;
        match self.last {
            Some((full, rest)) => says("rl_last_round")
                .with("full", full)
                .with("places", self.places * groups)
                .with("rest", rest * groups),
            None => says("rl_long_answers"),
        }
    }
}

struct Weighed {
    fits: bool,
    step: f64,
    turns: Turns,
    parts: Parts,
    pass: f64,
    memory: MemoryCard,
    update: UpdateCard,
    layout: String,
    engine: String,
    model: String,
    machine: String,
    trained: train::Answer,
    drawn: Drawn,
    chips: (u64, u64),
    price: Option<f64>,
    priced: Option<Remark>,
    /// What fits instead, where it does not.
    remedies: Vec<Remark>,
    /// What costs nothing and is faster, where it fits.
    faster: Vec<Remark>,
}

impl Weighed {
    fn split(&self, checked: &Checked<'_>) -> SplitCard {
        let (rollout_waits_s, train_waits_s) = self.parts.waits(self.turns);
        let (rollout_chips, train_chips) = self.chips;
        debug_assert!(rollout_chips + train_chips == checked.chips);
        SplitCard { rollout_chips, train_chips, step_s: self.step, rollout_waits_s, train_waits_s, fits: self.fits }
    }

    fn verdict(&self, usd: Option<f64>) -> Remark {
        let (g, p, m) = (&self.drawn.generation, &self.parts, &self.memory);
        if self.fits {
            let (draws, trains) = (p.generate, p.score + p.train);
            let (waits, train_waits) = p.waits(self.turns);
            let who = match self.turns {
                Turns::Colocated => says("rl_shared"),
                _ => says("rl_apart").with("rollout", waits / self.step).with("train", train_waits / self.step),
            };
            return says("rl_step")
                .with("step", self.step)
                .with("most", says(if draws >= trains { "rl_drawing" } else { "rl_training" }))
                .with("share", draws.max(trains) / self.step)
                .with("tail", Some(g.tail.get() / g.time.get().max(f64::MIN_POSITIVE)).filter(|share| *share > 0.0))
                .with("late", self.drawn.late())
                .with("waits", who)
                .with(
                    "beside",
                    (!self.faster.is_empty() && self.turns == Turns::Colocated).then_some(m.trainer_resident_bytes),
                )
                .with("faster", self.faster.clone())
                .with("usd", usd);
        }
        let said = |why: Remark| {
            let fits = Some(self.remedies.clone()).filter(|all| !all.is_empty());
            let none = (fits.is_none() && self.turns == Turns::Colocated).then_some(0.0);
            why.with("fits", fits).with("none", none)
        };
        let why = if !self.trained.fits {
            // Of a trainer's changes, those that can be asked for here.
            let change = self.trained.changes.iter().find(|c| {
                let mut fields = c.with.keys();
                let here =
                    fields.all(|field| !matches!(field.as_str(), "offload" | "optimizer" | "schedule" | "qlora"));
                here && c.what.says != "fits_chips"
            });
            let said = says("rl_trainer_too_large").with("memory", m.trainer_bytes);
            let said = said.with("change", change.map(|c| &c.what)).with("layout", change.map(|c| &c.layout));
            said.with("both", self.remedies.clone())
        } else if self.drawn.places < 1.0 {
            said(says("rl_no_room_for_answers"))
        } else {
            said(says("rl_both_too_large").with("memory", m.peak_bytes))
        };
        says("rl_does_not_fit").with("why", why).with("capacity", m.capacity_bytes)
    }

    fn answer(self, r: &Request, checked: &Checked<'_>, splits: Vec<SplitCard>) -> Answer {
        let (g, p) = (&self.drawn.generation, &self.parts);
        let replicas = self.drawn.replicas as f64 * self.drawn.groups;
        let (waits, train_waits) = p.waits(self.turns);
        let drawn = checked.answers as f64 * checked.mean;
        let tokens = drawn + checked.answers as f64 * r.isl;
        let usd = self.price.map(|price| price * checked.chips as f64 * self.step);
        let colocated = self.turns == Turns::Colocated;
        let synchronous = p.step(if colocated { Turns::Colocated } else { Turns::Synchronous });
        let part = |name: &str, time: f64| train::PartCard { name: name.into(), time_s: time, share: time / self.step };
        let parts = [
            ("drawing answers", p.generate),
            ("scoring passes", p.score),
            ("training", p.train),
            ("new weights", p.update),
            ("moving states to the host and back", p.swap),
        ];
        let parts = parts.into_iter().filter(|(_, t)| *t > 0.0).map(|(name, t)| part(name, t)).collect();
        let verdict = self.verdict(usd);
        let assumptions = vec![
            says("rl_lengths").with("law", &r.osl).with("longest", r.longest).with("mean", checked.mean),
            says("rl_packed").with("updates", r.updates).with("passes", r.scoring_passes),
            says("rl_replicas_alike").with("replicas", self.drawn.replicas),
            says(if self.update.way == Update::Broadcast { "rl_broadcast" } else { "rl_shards" })
                .with("rate", self.update.rate_gb_per_s * 1e9),
            says("rl_no_tools"),
            says("rl_checked"),
        ];
        Answer {
            request: r.clone(),
            model: self.model,
            machine: self.machine,
            verdict,
            fits: self.fits,
            chips: checked.chips,
            rollout_chips: self.chips.0,
            train_chips: self.chips.1,
            colocated,
            step_s: self.step,
            synchronous_step_s: synchronous,
            parts,
            rollout_waits_s: waits,
            train_waits_s: train_waits,
            rollout: RolloutCard {
                layout: self.layout,
                replicas: self.drawn.replicas,
                engine: self.engine,
                answers: checked.answers,
                mean_tokens: checked.mean,
                longest_tokens: f64::from(g.longest),
                time_s: g.time.get(),
                prompts_s: g.prompts.get(),
                tail_s: g.tail.get(),
                places: self.drawn.places * replicas,
                running: g.running * replicas,
                output_tok_s: drawn / g.time.get().max(f64::MIN_POSITIVE),
            },
            trainer: TrainerCard {
                layout: self.trained.layout.clone(),
                stack: self.trained.stack.clone(),
                time_s: p.train,
                scoring_pass_s: self.pass,
                mfu: self.trained.mfu,
            },
            update: self.update,
            memory: self.memory,
            tokens,
            tokens_per_s_per_chip: tokens / self.step / checked.chips as f64,
            usd_per_step: usd,
            priced: self.priced,
            usd_per_mtok: usd.map(|usd| usd / drawn * 1e6),
            splits,
            assumptions,
        }
    }
}

#[cfg(test)]
mod tests;
