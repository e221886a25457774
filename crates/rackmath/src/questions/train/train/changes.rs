//! What makes a layout fit that does not, each computed: more run again, more divided, smaller micro-batches, the host's
//! memory, another format, other degrees, more chips.

use super::asked::{Asked, fields};
use super::{ChangeCard, Optimizer, Request, Setup, layered, machine_of, resolve, searched};
use crate::desk::prelude::*;
use rackmath_spec::TrainingFormat;
use rackmath_theory::train::machine::Machine;
use rackmath_theory::train::memory::stage_memory;
use rackmath_theory::train::peaks::fullest;
use rackmath_theory::train::search::{Candidate, Searcher};
use rackmath_theory::train::step::{Prepared, Row, step};
use rackmath_theory::train::{Cut, Job, Offload, Recompute, Sharding, legal};
use strum::VariantArray as _;

/// Most chips that are asked for.
pub(super) const MOST_CHIPS: u64 = 65_536;

/// What a change is tried on.
pub(super) struct Tried<'a> {
    pub setup: &'a Setup,
    pub machine: &'a Machine<'a>,
    pub job: Job<'a>,
    pub asked: &'a Asked,
    pub request: &'a Request,
    pub cancel: &'a Cancel,
}

/// One layout, timed and weighed; nothing where it does not exist.
pub(super) fn weigh(machine: &Machine<'_>, job: &Job<'_>, cut: Cut) -> Option<Candidate> {
    let micro_batches = legal::check(job, &cut).ok()?;
    let prepared = Prepared::new(machine, job, &cut);
    let stages = prepared.stages(cut.pp, cut.spread);
    let row = Row::new(&stages, cut.recompute)?;
    let recipe = &machine.stack.memory;
    let held = stages.iter().map(|s| (s, stage_memory(&prepared, recipe, s, &cut, micro_batches)));
    let memory = held.map(|(s, m)| fullest(s, &m, &cut, recipe).chip).fold(0.0, f64::max);
    let step = step(machine, &prepared, &row, &cut, micro_batches);
    Some(Candidate { cut, micro_batches, step, memory, fits: memory <= machine.chip.memory.seen().get() })
}

impl Tried<'_> {
    /// Where the layout that was asked for does not fit: changes that make it, one kind each; those that keep chips and
    /// degrees first, the fastest of them first of all.
    pub(super) fn for_layout(&self, cut: Cut) -> Result<Vec<ChangeCard>, Error> {
        let mut all = self.kept_degrees(cut);
        if all.is_empty() {
            all.extend(self.together(cut));
        }
        all.extend(self.format(cut));
        all.extend(self.degrees(cut)?);
        if let Some(change) = self.copies(cut) {
            all.push(change);
        } else if all.is_empty() {
            all.extend(self.chips(cut.chips())?);
        }
        Ok(all)
    }

    /// Where no layout of the chips fits: frozen weights in 4 bits, an optimizer that keeps less, the host's memory, more chips.
    pub(super) fn for_chips(&self, catalog: &Catalog, chips: u64) -> Result<Vec<ChangeCard>, Error> {
        let mut all: Vec<ChangeCard> = self.narrowed(catalog)?.into_iter().collect();
        all.extend(self.optimizer(catalog)?);
        if !self.request.wide && self.asked.fixed.offload().is_none() {
            let space = self.asked.fixed.space(self.machine, &self.job, chips, true);
            let found = Searcher::new(self.machine, &self.job, &space, self.cancel)?.search(1, self.cancel)?;
            all.extend(found.best.first().map(|c| card(says("fits_wide"), c)));
        }
        all.extend(self.chips(chips)?);
        Ok(all)
    }

    /// An optimizer that keeps moments in 8 bits, by the program it is run with, where that is enough.
    fn optimizer(&self, catalog: &Catalog) -> Result<Option<ChangeCard>, Error> {
        // Of adapters the optimizer keeps little.
        if self.request.optimizer.is_some() || self.request.lora.is_some() || self.request.qlora {
            return Ok(None);
        }
        let name = Optimizer::Adamw8bit.to_string();
        let request = Request { optimizer: Some(Optimizer::Adamw8bit), ..self.request.clone() };
        let what = says("fits_optimizer").with("optimizer", &name);
        self.otherwise(catalog, request, what, ("optimizer", name.into()))
    }

    /// Frozen weights in 4 bits, where adapters beside whole ones are too large.
    fn narrowed(&self, catalog: &Catalog) -> Result<Option<ChangeCard>, Error> {
        if self.request.qlora || self.request.lora.is_none() {
            return Ok(None);
        }
        let request = Request { qlora: true, ..self.request.clone() };
        self.otherwise(catalog, request, says("fits_narrow"), ("qlora", true.into()))
    }

    /// The fastest layout of another request on the same chips, where one fits.
    fn otherwise(
        &self,
        catalog: &Catalog,
        request: Request,
        what: Remark,
        (field, value): (&str, serde_json::Value),
    ) -> Result<Option<ChangeCard>, Error> {
        let asked = Asked::new(catalog, &request)?;
        let setup = resolve(catalog, &asked, &request)?;
        let shape = layered(&setup.model, &asked.model)?;
        let format = asked.format_on(&setup.system.chip);
        let machine = machine_of(catalog, &request, &setup, format)?;
        let job = Job { shape, format, ..self.job };
        let tried = Tried { setup: &setup, machine: &machine, job, asked: &asked, request: &request, ..*self };
        let (found, _) = searched(&tried, setup.system.n_chips)?;
        Ok(found.best.first().filter(|c| c.fits).map(|best| {
            let mut change = card(what, best);
            change.with.insert(field.into(), value);
            change
        }))
    }

    fn fitting(&self, what: Remark, cuts: impl Iterator<Item = Cut>) -> Option<ChangeCard> {
        let fits = cuts.filter_map(|cut| weigh(self.machine, &self.job, cut)).filter(|c| c.fits);
        let best = fits.min_by(|a, b| a.step.total.total_cmp(&b.step.total))?;
        Some(card(what, &best))
    }

    fn recomputed(cut: Cut) -> impl Iterator<Item = Recompute> + Clone {
        Recompute::USUAL.into_iter().filter(move |r| *r > cut.recompute)
    }

    fn divided(cut: Cut) -> impl Iterator<Item = Sharding> + Clone {
        let copied = cut.dp * cut.cp > 1;
        Sharding::VARIANTS.iter().copied().filter(move |s| copied && *s > cut.sharding)
    }

    fn smaller(cut: Cut) -> impl Iterator<Item = u64> + Clone {
        let each = cut.micro_batch;
        (1..each).filter(move |b| each.is_multiple_of(*b))
    }

    fn hosted(&self, cut: Cut) -> impl Iterator<Item = Offload> + Clone + use<> {
        let linked = self.machine.host.is_some() && cut.offload == Offload::None;
        Offload::VARIANTS.iter().copied().filter(move |o| linked && *o != Offload::None)
    }

    fn kept_degrees(&self, cut: Cut) -> Vec<ChangeCard> {
        let mut all: Vec<ChangeCard> = [
            self.fitting(says("fits_recompute"), Self::recomputed(cut).map(|recompute| Cut { recompute, ..cut })),
            self.fitting(says("fits_sharding"), Self::divided(cut).map(|sharding| Cut { sharding, ..cut })),
            self.fitting(says("fits_micro_batch"), Self::smaller(cut).map(|micro_batch| Cut { micro_batch, ..cut })),
            self.fitting(says("fits_offload"), self.hosted(cut).map(|offload| Cut { offload, ..cut })),
        ]
        .into_iter()
        .flatten()
        .collect();
        all.sort_by(|a, b| a.step_s.total_cmp(&b.step_s));
        all
    }

    /// Several of these at once, where one is not enough.
    fn together(&self, cut: Cut) -> Option<ChangeCard> {
        let (again, divided, hosted) = (Self::recomputed(cut), Self::divided(cut), self.hosted(cut));
        let again = std::iter::once(cut.recompute).chain(again);
        let divided = std::iter::once(cut.sharding).chain(divided);
        let smaller = Self::smaller(cut).chain([cut.micro_batch]);
        let hosted = std::iter::once(cut.offload).chain(hosted);
        let cuts = again.flat_map(|recompute| divided.clone().map(move |sharding| (recompute, sharding)));
        let cuts = cuts.flat_map(|(recompute, sharding)| smaller.clone().map(move |b| (recompute, sharding, b)));
        let cuts = cuts.flat_map(|(recompute, sharding, micro_batch)| {
            let hosted = hosted.clone();
            hosted.map(move |offload| Cut { recompute, sharding, micro_batch, offload, ..cut })
        });
        self.fitting(says("fits_together"), cuts)
    }

    /// Products of 8 bits, where the program keeps their inputs so.
    fn format(&self, cut: Cut) -> Option<ChangeCard> {
        let Setup { system, stack, kernels, network, .. } = self.setup;
        if !stack.memory.narrow_inputs || !self.job.format.is_wide() {
            return None;
        }
        let machine = Machine::new(system, stack, kernels, network, TrainingFormat::Fp8)?;
        let job = Job { format: TrainingFormat::Fp8, ..self.job };
        let then = weigh(&machine, &job, cut).filter(|c| c.fits)?;
        Some(card(says("fits_format").with("format", "fp8"), &then))
    }

    /// The fastest layout of the same chips.
    fn degrees(&self, cut: Cut) -> Result<Option<ChangeCard>, Error> {
        let space = super::asked::Fixed::default().space(self.machine, &self.job, cut.chips(), false);
        let found = Searcher::new(self.machine, &self.job, &space, self.cancel)?.search(1, self.cancel)?;
        Ok(found.best.first().map(|c| card(says("fits_degrees"), c)))
    }

    /// More copies of the same layout.
    fn copies(&self, cut: Cut) -> Option<ChangeCard> {
        let sequences = self.job.global_batch / cut.micro_batch;
        let one = cut.tp * cut.cp * cut.pp;
        let more = (cut.dp + 1..=(MOST_CHIPS / one).min(sequences)).filter(|d| sequences.is_multiple_of(*d));
        let cuts = more.map(|dp| Cut { degrees: Degrees { dp, ..cut.degrees }, ..cut });
        let then = cuts.filter_map(|cut| weigh(self.machine, &self.job, cut)).find(|c| c.fits)?;
        Some(card(says("fits_copies").with("chips", then.cut.chips()), &then))
    }

    /// The fewest chips on which any layout fits, in whole domains beyond the first, and the fastest layout on them.
    fn chips(&self, now: u64) -> Result<Option<ChangeCard>, Error> {
        let fixed = &self.asked.fixed;
        let space = fixed.space(self.machine, &self.job, MOST_CHIPS, self.request.wide);
        let fewest = Searcher::new(self.machine, &self.job, &space, self.cancel)?.fewest_chips(self.cancel)?;
        let Some(fewest) = fewest.map(|c| c.cut.chips()).filter(|n| *n > now) else { return Ok(None) };
        let domain = self.machine.domain.max(1);
        let chips = if fewest > domain { fewest.next_multiple_of(domain) } else { fewest };
        let (found, _) = searched(self, chips)?;
        let best = found.best.first().filter(|c| c.fits);
        Ok(best.map(|c| card(says("fits_chips").with("chips", chips), c)))
    }
}

fn card(what: Remark, c: &Candidate) -> ChangeCard {
    ChangeCard {
        what,
        layout: c.cut.to_string(),
        with: fields(&c.cut),
        chips: c.cut.chips(),
        step_s: c.step.total,
        memory_bytes: c.memory,
    }
}
