//! What is fixed of a run and what is open: by flags first, then by the published run that is named, then as usual.

use super::Request;
use crate::desk::prelude::*;
use crate::setting::machine as machine_named;
use rackmath_spec::run::RunLayout;
use rackmath_spec::{Chip, TrainingFormat, TrainingRun, word};
use rackmath_theory::pipeline::Schedule;
use rackmath_theory::train::machine::Machine;
use rackmath_theory::train::search::Space;
use rackmath_theory::train::{Cut, Job, Offload, Recompute, Sharding, Spread, Tuning, legal};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The model unless one is named, and the rest of what a step is.
const MODEL: &str = "llama-3.1-70b";
const MACHINE: &str = "hgx-h100";
const SEQUENCE: u64 = 4096;
const BATCH: u64 = 256;

/// Names and numbers of a request, with those of a published run where none were given.
pub(super) struct Asked {
    pub model: String,
    pub on: String,
    pub chips: Option<u64>,
    pub stack: Option<String>,
    /// As given, or as its authors printed.
    format: Option<TrainingFormat>,
    pub sequence: u64,
    pub global_batch: u64,
    pub tokens: Option<f64>,
    pub run: Option<Arc<TrainingRun>>,
    pub fixed: Fixed,
    /// Whether the layout is looked for.
    pub searches: bool,
}

/// The parts of a layout that are given.
#[derive(Clone, Copy, Default)]
pub(super) struct Fixed {
    tp: Option<u64>,
    cp: Option<u64>,
    pp: Option<u64>,
    dp: Option<u64>,
    virtual_stages: Option<u64>,
    ep: Option<u64>,
    etp: Option<u64>,
    micro_batch: Option<u64>,
    schedule: Option<Schedule>,
    sharding: Option<Sharding>,
    recompute: Option<Recompute>,
    offload: Option<Offload>,
    sequence_parallel: Option<bool>,
    spread: Option<Spread>,
    tuning: Tuning,
}

impl Asked {
    pub(super) fn new(catalog: &Catalog, r: &Request) -> Result<Self, Error> {
        let run = r.run.as_deref().map(|name| laid_out(catalog, name)).transpose()?;
        let laid = run.as_ref().and_then(|run| run.layout.as_ref());
        let own = Fixed::of(r)?;
        let searches = r.search || (laid.is_none() && own.has_no_degrees());
        // A search for the setting of a run is not held to the run's layout.
        let fixed = match laid.filter(|_| !r.search) {
            Some(laid) => own.or(&Fixed::published(laid)?),
            None => own,
        };
        refuse_if(r.wide && !searches, "wide", true, "{search} as well: it is the search that is wide")?;
        let name = |own: &Option<String>, run: Option<&String>, usual: &str| {
            own.as_ref().or(run).map_or_else(|| usual.to_owned(), Clone::clone)
        };
        let format = r.format.as_ref().or(laid.map(|l| &l.format)).map(|word| word.parse()).transpose()?;
        let alone = |on: &String| Ok::<_, Error>(catalog.system(machine_named(on)?.0)?.n_chips == 1);
        let bare = || r.on.as_ref().is_none_or(|on| alone(on).unwrap_or(false));
        let tokens = run.as_ref().and_then(|run| run.tokens).map(|(low, high)| f64::midpoint(low, high));
        Ok(Self {
            model: name(&r.model, laid.map(|l| &l.model), MODEL),
            on: name(&r.on, laid.map(|l| &l.system), MACHINE),
            // On another kind of chip as many of them, unless a machine of several is named.
            chips: r.chips.or(run.as_ref().and_then(|run| run.chips).filter(|_| bare()).map(|n| n as u64)),
            stack: r.stack.clone().or_else(|| laid.and_then(|l| l.program.clone())),
            format,
            sequence: r.sequence.or(laid.map(|l| l.sequence)).unwrap_or(SEQUENCE),
            global_batch: r.global_batch.or(laid.map(|l| l.batch)).unwrap_or(BATCH),
            tokens: r.tokens.or(tokens.filter(|_| r.loss.is_none())),
            run,
            fixed,
            searches,
        })
    }
}

impl Asked {
    /// The format of the products on a chip: bf16 unless given, or fp16 where a chip has only that.
    pub(super) fn format_on(&self, chip: &Chip) -> TrainingFormat {
        let has = |format: TrainingFormat| chip.peak.contains_key(&format.math());
        let old = !has(TrainingFormat::Bf16) && has(TrainingFormat::Fp16);
        self.format.unwrap_or(if old { TrainingFormat::Fp16 } else { TrainingFormat::Bf16 })
    }
}

/// A run by name; only those whose layout is known are offered.
fn laid_out(catalog: &Catalog, name: &str) -> Result<Arc<TrainingRun>, Error> {
    let known = |id: &&str| catalog.training_run(id).is_ok_and(|run| run.layout.is_some());
    let laid = || catalog.ids(rackmath_spec::Kind::Runs).filter(known);
    match catalog.training_run(name) {
        Ok(run) if run.layout.is_some() => Ok(run),
        Ok(run) => {
            let expected = format!("a run whose authors printed one: {}", laid().collect::<Vec<_>>().join(", "));
            Err(Error::value("run", format!("{}: its authors printed no layout", run.id), expected))
        }
        Err(_) => Err(Error::unknown("training run with a layout", name, laid()).at("run")),
    }
}

impl Fixed {
    fn of(r: &Request) -> Result<Self, Error> {
        for (field, value, most) in [
            ("micro_batch", r.micro_batch, 100_000),
            ("tp", r.tp, 4096),
            ("cp", r.cp, 4096),
            ("pp", r.pp, 4096),
            ("dp", r.dp, 1_000_000),
            ("virtual_stages", r.virtual_stages, 4096),
            ("ep", r.ep, 4096),
            ("etp", r.etp, 4096),
        ] {
            let wrong = value.filter(|n| !(1..=most).contains(n));
            refuse_if(wrong.is_some(), field, wrong.unwrap_or_default(), format!("1 to {most}"))?;
        }
        let Request { tp, cp, pp, dp, virtual_stages, ep, etp, micro_batch, .. } = *r;
        let Request { sharding, recompute, offload, sequence_parallel, .. } = *r;
        let schedule = r.schedule.as_deref().map(|name| word("pipeline schedule", name)).transpose()?;
        let spread = r.lighter_ends.map(|lighter| if lighter { Spread::EndsLighter } else { Spread::Even });
        let degrees = Self { tp, cp, pp, dp, virtual_stages, ep, etp, ..Self::default() };
        let tuning = super::tuned::tuning(r)?;
        Ok(Self { micro_batch, schedule, sharding, recompute, offload, sequence_parallel, spread, tuning, ..degrees })
    }

    fn published(l: &RunLayout) -> Result<Self, Error> {
        fn read<T: DeserializeOwned>(field: &'static str, text: Option<&str>) -> Result<Option<T>, Error> {
            let Some(text) = text else { return Ok(None) };
            let value = serde_json::from_value(json!(text));
            value.map(Some).map_err(|_| Error::value(field, text, "a word of the request"))
        }
        let RunLayout { tp, cp, pp, virtual_stages, ep, micro_batch, .. } = *l;
        let schedule = l.schedule.as_deref().map(|name| word("pipeline schedule", name)).transpose()?;
        Ok(Self {
            tp: tp.or(Some(1)),
            cp,
            pp,
            virtual_stages,
            ep,
            micro_batch,
            schedule,
            sharding: read("sharding", l.sharding.as_deref())?,
            recompute: read("recompute", l.recompute.as_deref())?,
            spread: Some(if l.lighter_ends { Spread::EndsLighter } else { Spread::Even }),
            ..Self::default()
        })
    }

    /// These, and where they are silent those.
    fn or(self, other: &Self) -> Self {
        Self {
            tp: self.tp.or(other.tp),
            cp: self.cp.or(other.cp),
            pp: self.pp.or(other.pp),
            dp: self.dp.or(other.dp),
            virtual_stages: self.virtual_stages.or(other.virtual_stages),
            ep: self.ep.or(other.ep),
            etp: self.etp.or(other.etp),
            micro_batch: self.micro_batch.or(other.micro_batch),
            schedule: self.schedule.or(other.schedule),
            sharding: self.sharding.or(other.sharding),
            recompute: self.recompute.or(other.recompute),
            offload: self.offload.or(other.offload),
            sequence_parallel: self.sequence_parallel.or(other.sequence_parallel),
            spread: self.spread.or(other.spread),
            tuning: self.tuning,
        }
    }

    fn has_no_degrees(&self) -> bool {
        [self.tp, self.cp, self.pp, self.dp, self.virtual_stages, self.ep, self.etp].iter().all(Option::is_none)
    }

    /// What is trained.
    pub(super) fn tuning(&self) -> Tuning {
        self.tuning
    }

    /// What waits in the host's memory, where that is given.
    pub(super) fn offload(&self) -> Option<Offload> {
        self.offload
    }

    /// The layout, with what is not given at 1 or as usual, over all the chips unless copies are given.
    pub(super) fn cut(&self, job: &Job<'_>, chips: u64) -> Result<Cut, Error> {
        let or_one = |n: Option<u64>| n.unwrap_or(1);
        let (tp, cp, pp) = (or_one(self.tp), or_one(self.cp), or_one(self.pp));
        let one = tp * cp * pp;
        let odd = one > chips || (self.dp.is_none() && !chips.is_multiple_of(one));
        refuse_if(odd, "tp x cp x pp", one, format!("a divisor of the {chips} chips"))?;
        let dp = self.dp.unwrap_or(chips / one);
        let most = format!("at most {} copies of {one} chips", chips / one);
        refuse_if(dp > chips / one, "dp", dp, most)?;
        let usual = Cut::default();
        let virtual_stages = or_one(self.virtual_stages);
        let chunked = if virtual_stages > 1 { Schedule::Interleaved } else { Schedule::OneFOneB };
        let sequence_parallel = tp > 1 && self.sequence_parallel.unwrap_or(true);
        let (ep, etp) = (or_one(self.ep), or_one(self.etp));
        let cut = Cut {
            degrees: Degrees { tp, cp, pp, dp, ep, etp, virtual_stages, sequence_parallel, ..Degrees::default() },
            schedule: self.schedule.unwrap_or(chunked),
            spread: self.spread.unwrap_or(usual.spread),
            micro_batch: self.micro_batch.unwrap_or(usual.micro_batch),
            sharding: self.sharding.unwrap_or(usual.sharding),
            recompute: self.recompute.unwrap_or(usual.recompute),
            offload: self.offload.unwrap_or(usual.offload),
            tuning: self.tuning,
        };
        legal::check(job, &cut).map_err(|e| Error::value(e.degree, e.given, e.expected))?;
        Ok(cut)
    }

    /// Every layout that agrees with what is given.
    pub(super) fn space(&self, machine: &Machine<'_>, job: &Job<'_>, chips: u64, wide: bool) -> Space {
        let mut space = Space::of(job, chips, machine.chip.memory.seen().get());
        if wide {
            space = space.widened(machine);
        }
        let only = |list: &mut Vec<u64>, value: Option<u64>| {
            if let Some(n) = value {
                *list = vec![n];
            }
        };
        only(&mut space.tp, self.tp);
        only(&mut space.cp, self.cp);
        only(&mut space.pp, self.pp);
        only(&mut space.ep, self.ep);
        only(&mut space.micro_batch, self.micro_batch);
        (space.dp, space.virtual_stages, space.etp) = (self.dp, self.virtual_stages, self.etp);
        space.schedules = self.schedule.map_or(space.schedules, |one| vec![one]);
        space.sharding = self.sharding.map_or(space.sharding, |one| vec![one]);
        space.recompute = self.recompute.map_or(space.recompute, |one| vec![one]);
        space.offload = self.offload.map_or(space.offload, |one| vec![one]);
        space.spread = self.spread.map_or(space.spread, |one| vec![one]);
        space.sequence_parallel = self.sequence_parallel.unwrap_or(true);
        space.tuning = self.tuning;
        // Stages that are asked for are dealt as they can be.
        space.even = !machine.stack.uneven && self.pp.is_none() && self.virtual_stages.is_none();
        space
    }

    /// Refuses what no layout of a search can have, by name.
    pub(super) fn check(&self, job: &Job<'_>) -> Result<(), Error> {
        let or_one = |n: Option<u64>| n.unwrap_or(1);
        // On as many chips, with as many sequences, as it takes: what the model alone allows.
        let (tp, cp, ep, etp) = (or_one(self.tp), or_one(self.cp), or_one(self.ep), or_one(self.etp));
        let pp = or_one(self.pp);
        let degrees = Degrees { tp, cp, ep, etp, pp, dp: ep * etp, ..Degrees::default() };
        let cut = Cut { degrees, ..Cut::default() };
        let job = Job { global_batch: cut.dp, ..*job };
        legal::check(&job, &cut).map_err(|e| Error::value(e.degree, e.given, e.expected))?;
        Ok(())
    }
}

/// The fields of a request that ask for a layout.
pub(super) fn fields(cut: &Cut) -> Map<String, Value> {
    let mut all = Map::new();
    let numbers = [
        ("tp", cut.tp),
        ("cp", cut.cp),
        ("pp", cut.pp),
        ("dp", cut.dp),
        ("virtual_stages", cut.virtual_stages),
        ("ep", cut.ep),
        ("etp", cut.etp),
        ("micro_batch", cut.micro_batch),
    ];
    for (name, n) in numbers.into_iter().filter(|(name, n)| *n != 1 || matches!(*name, "tp" | "dp")) {
        all.insert(name.into(), json!(n));
    }
    if !matches!(cut.schedule, Schedule::OneFOneB | Schedule::Interleaved) {
        all.insert("schedule".into(), json!(cut.schedule.to_string()));
    }
    all.insert("sharding".into(), json!(cut.sharding));
    if cut.recompute != Recompute::None {
        all.insert("recompute".into(), json!(cut.recompute));
    }
    if cut.offload != Offload::None {
        all.insert("offload".into(), json!(cut.offload));
    }
    if cut.spread == Spread::EndsLighter {
        all.insert("lighter_ends".into(), json!(true));
    }
    if cut.tp > 1 && !cut.sequence_parallel {
        all.insert("sequence_parallel".into(), json!(false));
    }
    all
}
