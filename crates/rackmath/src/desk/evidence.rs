//! What an answer rests on: what of it was measured, what was carried over from where, what nobody ever checked, and how far off it may be.
//!
//! $$ w^2 = w_0^2 + \sum_s \max(0,\; w_s^2 - w_0^2) \qquad
//!    w_{ab}^2 = d^2 + \sum_{s \,\in\, a \triangle b} \max(0,\; w_s^2 - w_0^2) $$
//!
//! | symbol | code | meaning |
//! |--------|------|---------|
//! | w | `widths` | half width of the 80 % interval of ln(measured / predicted) |
//! | w₀, w_s | `Evidence::widths` | the same where nothing is carried over, and where s is: from rows whose whole group was left out |
//! | d | `Evidence::apart` | the same of the ratio of two predictions, by what they differ in; what both share cancels |
//! | a △ b | - | steps that one of two predictions takes and the other does not |
//!
//! Assumes: steps err independently. Ignores: that a chip nobody sells yet is further away than one that was only not measured.
//! The tables are `catalog/evidence/intervals`, printed by `rackmath-calibrate fit intervals`.

use super::prelude::*;
use super::setting::PriceSource;
use crate::validate::coverage::differ;
use rackmath_spec::engine::Engine;
use rackmath_spec::evidence::{self, Seen, Step, Widths, kind};
use rackmath_spec::{Chip, Model};
use rackmath_theory::deployment::{Deployment, Ready};
use rackmath_theory::pass::Assumption;

/// How well something is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// It stands in the measured rows.
    Measured,
    /// It was carried over from something that does.
    Transferred,
    /// Nothing like it was ever measured.
    NeverChecked,
}

/// What an answer rests on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Evidence {
    /// Overall.
    pub grade: Grade,
    /// In a sentence.
    pub says: Remark,
    /// The model's name.
    pub model: String,
    /// The chip's name.
    pub chip: String,
    /// The engine's name.
    pub engine: String,
    /// Measured figures of this model on this chip under this engine.
    pub rows: u64,
    /// What was carried over, from where.
    pub steps: Vec<Carried>,
    /// Factors that 80 % of measurements lie within.
    pub within: Factors,
    /// The factor by which figures of this very thing are off, where that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off: Option<f64>,
    /// Part by part.
    pub parts: Vec<PartGrade>,
}

/// Something carried over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Carried {
    /// A chip, generation, vendor, version, model or kind of model.
    pub step: String,
    /// What was not measured.
    pub what: String,
    /// What was, and stands in.
    pub from: Option<String>,
}

/// How far off, as factors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Factors {
    /// Times per token.
    pub tpot: f64,
    /// Times to the first token.
    pub ttft: f64,
    /// Tokens per second, and what follows from them: cost, energy.
    pub throughput: f64,
}

/// How well one part is known.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PartGrade {
    /// Matrix products, attention, experts, links, scheduler, memory or price.
    pub part: String,
    /// How well.
    pub grade: Grade,
    /// In a sentence.
    pub says: Remark,
}

/// The measured rows in brief, and the tables of widths.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    tables: Arc<evidence::Evidence>,
}

/// Steps and widths of one prediction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    pub widths: Widths,
    pub rows: u64,
    /// How far predictions of this very thing were off, where that is more.
    off: Option<f64>,
    steps: Vec<(Step, Carried)>,
}

/// Months after which a price is stale.
const STALE_MONTHS: i64 = 12;

impl Scale {
    pub fn of(catalog: &Catalog) -> Result<Self, Error> {
        Ok(Self { tables: catalog.evidence()? })
    }

    /// What a prediction rests on; none for the roofline itself, which is a bound and no prediction.
    pub fn weigh(&self, ready: &Ready) -> Option<Known> {
        self.known(&ready.deployment, &ready.pass.assumed, false)
    }

    /// The same, where no family of the engine covers the version asked for.
    fn known(&self, on: &Deployment, assumed: &[Assumption], uncovered: bool) -> Option<Known> {
        if on.engine.ideal {
            return None;
        }
        let steps = self.steps(&on.model, &on.system.chip, &on.engine, assumed, uncovered);
        let own = |s: &&Seen| s.model == on.model.id && s.chip == on.system.chip.id && self.is_of(s, &on.engine);
        let own = || self.tables.seen.iter().filter(own);
        let rows = own().map(|s| s.rows).sum();
        let base = self.tables.widths(Step::Seen);
        let widths = steps.iter().fold(base, |w, (step, _)| wider(w, self.tables.widths(*step), base));
        // What was measured of this very thing counts by its rows beside what is true of all.
        let very = || own().filter(|s| s.engine == on.engine.id);
        let widths = very().fold(widths, drawn);
        let off = very().filter_map(|s| s.widths()[0]).fold(0.0, f64::max);
        let off = Some(off).filter(|off| *off > widths.tpot);
        Some(Known { widths, rows, off, steps })
    }

    /// Half widths of a prediction, as natural logarithms: nothing where it is a bound.
    pub fn widths(&self, ready: &Ready) -> Widths {
        self.weigh(ready).map_or_else(Widths::default, |known| known.widths)
    }

    fn family(&self, engine: &str) -> Option<&str> {
        self.tables.engines.iter().find(|(id, _)| id == engine).map(|(_, family)| family.as_str())
    }

    fn is_of(&self, seen: &Seen, engine: &Engine) -> bool {
        self.family(&seen.engine) == Some(&engine.family)
    }

    fn chip(&self, id: &str) -> Option<&(String, String, String)> {
        self.tables.chips.iter().find(|(chip, ..)| chip == id)
    }

    /// The most measured of what holds, by what names it.
    fn nearest(&self, holds: impl Fn(&Seen) -> bool, name: impl Fn(&Seen) -> &str) -> Option<String> {
        let mut found: Vec<(&str, u64)> = Vec::new();
        for seen in self.tables.seen.iter().filter(|s| holds(s)) {
            match found.iter_mut().find(|(known, _)| *known == name(seen)) {
                Some((_, rows)) => *rows += seen.rows,
                None => found.push((name(seen), seen.rows)),
            }
        }
        // Of equals the first by name, as the index is in order.
        found.into_iter().rev().max_by_key(|(_, rows)| *rows).map(|(name, _)| name.to_owned())
    }

    fn steps(
        &self,
        model: &Model,
        chip: &Chip,
        engine: &Engine,
        assumed: &[Assumption],
        uncovered: bool,
    ) -> Vec<(Step, Carried)> {
        let chip = self.chip_step(chip, engine);
        let borrowed = assumed.iter().find_map(borrowed);
        // Kernels of another generation or format stand in on a chip that is itself known.
        let kernels = borrowed.filter(|_| !matches!(chip, Some((Step::Generation | Step::Vendor, _))));
        let kernels = kernels.map(|what| carried(Step::Generation, what, None));
        [chip, kernels, self.version_step(engine, uncovered), self.model_step(model)].into_iter().flatten().collect()
    }

    fn chip_step(&self, chip: &Chip, engine: &Engine) -> Option<(Step, Carried)> {
        let t = &self.tables;
        let of = |seen: &Seen, holds: &dyn Fn(&(String, String, String)) -> bool| {
            self.is_of(seen, engine) && self.chip(&seen.chip).is_some_and(holds)
        };
        let timed = |(_, generation, vendor): &(String, String, String)| {
            *vendor == chip.vendor && t.kernels.contains(generation)
        };
        let nearest = |holds: &dyn Fn(&(String, String, String)) -> bool| self.nearest(|s| of(s, holds), |s| &s.chip);
        if engine.plain.is_none() && !t.chips.iter().any(timed) {
            let from = nearest(&|(_, generation, _)| t.kernels.contains(generation));
            return Some(carried(Step::Vendor, chip.vendor.clone(), from));
        }
        if t.seen.iter().any(|s| s.chip == chip.id && self.is_of(s, engine)) {
            return None;
        }
        if let Some(from) = nearest(&|(_, generation, _)| *generation == chip.generation) {
            return Some(carried(Step::Chip, chip.name.clone(), Some(from)));
        }
        if let Some(from) = nearest(&|(.., vendor)| *vendor == chip.vendor) {
            return Some(carried(Step::Generation, chip.generation.clone(), Some(from)));
        }
        Some(carried(Step::Vendor, chip.vendor.clone(), nearest(&|_| true)))
    }

    fn version_step(&self, engine: &Engine, uncovered: bool) -> Option<(Step, Carried)> {
        let known = self.family(&engine.id).is_some();
        if known && !uncovered {
            return None;
        }
        let from = self.nearest(|s| self.is_of(s, engine), |s| &s.engine);
        Some(carried(Step::Version, engine.name.clone(), from))
    }

    fn model_step(&self, model: &Model) -> Option<(Step, Carried)> {
        if self.tables.models.iter().any(|(id, _)| *id == model.id) {
            return None;
        }
        let kind = kind(model);
        let alike = |s: &Seen| self.tables.models.iter().any(|(id, k)| *id == s.model && *k == kind);
        match self.nearest(alike, |s| &s.model) {
            Some(from) => Some(carried(Step::Model, model.name.clone(), Some(from))),
            None => Some(carried(Step::Kind, kind, self.nearest(|_| true, |s| &s.model))),
        }
    }

    /// The evidence of an answer, with its parts; none for the roofline itself.
    pub fn card(&self, ready: &Ready, uncovered: bool, price: Option<&PriceSource>) -> Option<Evidence> {
        let (on, assumed) = (&ready.deployment, &ready.pass.assumed);
        let brief = self.brief(on, assumed, uncovered)?;
        Some(Evidence { parts: self.parts(on, assumed, uncovered, price), ..brief })
    }

    /// The same without its parts.
    pub fn brief(&self, on: &Deployment, assumed: &[Assumption], uncovered: bool) -> Option<Evidence> {
        let known = self.known(on, assumed, uncovered)?;
        let (chip, engine) = (&on.system.chip, &on.engine);
        let nobody = |step: Step| known.steps.iter().any(|(s, c)| *s == step && c.from.is_none());
        let vendor = self.tables.chips.iter().any(|(.., vendor)| *vendor == chip.vendor);
        // Rows of a model on a chip say little of another format than its own whose kernels were not timed there.
        let narrow = |a: &Assumption| matches!(a, Assumption::Products { .. } | Assumption::Experts { .. });
        let another = on.formats != on.model.formats() && assumed.iter().any(narrow);
        // Nobody measured the chip behind a link that was given.
        let rewired = on.system.rewired && on.layout.chips() > 1;
        let grade = if known.rows > 0 && !another && !rewired {
            Grade::Measured
        } else if !vendor || nobody(Step::Version) {
            Grade::NeverChecked
        } else {
            Grade::Transferred
        };
        let names =
            |said: Remark| said.with("model", &on.model.name).with("chip", &chip.name).with("engine", &engine.name);
        let mut steps: Vec<Remark> = known.steps.iter().map(|(step, c)| said(*step, c)).collect();
        steps.extend(rewired.then(|| says("step_link").with("chip", &chip.name)));
        let factor = |w: f64| float::exp(w);
        let within = Factors {
            tpot: factor(known.widths.tpot),
            ttft: factor(known.widths.ttft),
            throughput: factor(known.widths.throughput),
        };
        let id = match grade {
            Grade::Measured => "grade_measured",
            Grade::Transferred if known.steps.is_empty() && !rewired => "grade_apart",
            Grade::Transferred => "grade_transferred",
            Grade::NeverChecked => "grade_never_checked",
        };
        let says = names(says(id)).with("rows", known.rows).with("factor", within.tpot);
        // An interval that leaves out what was measured of this very thing says so.
        let off = known.off.filter(|_| grade == Grade::Measured).map(float::exp);
        let says = says.with("steps", steps).with("off", off);
        Some(Evidence {
            grade,
            off,
            says,
            model: on.model.name.clone(),
            chip: chip.name.clone(),
            engine: engine.name.clone(),
            rows: known.rows,
            within,
            parts: Vec::new(),
            steps: known.steps.into_iter().map(|(_, carried)| carried).collect(),
        })
    }

    fn parts(
        &self,
        on: &Deployment,
        assumed: &[Assumption],
        uncovered: bool,
        price: Option<&PriceSource>,
    ) -> Vec<PartGrade> {
        let (chip, engine) = (&on.system.chip, &on.engine);
        let checked = self.chip(&chip.id).is_some();
        let unknown = if checked { Grade::Transferred } else { Grade::NeverChecked };
        let one = |part: &str, grade, says: Remark| PartGrade { part: part.into(), grade, says };
        let kernel = |part: &str, missing: Option<Remark>| match (missing, engine.plain.is_some()) {
            (Some(missing), _) => one(part, unknown, missing),
            (None, true) if checked => one(part, Grade::Measured, says("part_whole_steps").with("chip", &chip.name)),
            (None, true) => one(part, unknown, says("part_one_rule").with("chip", &chip.name)),
            (None, false) => one(part, Grade::Measured, says("part_timed").with("generation", &chip.generation)),
        };
        let found = |holds: fn(&Assumption) -> bool| assumed.iter().find(|a| holds(a)).map(crate::estimate::assumption);
        let mut all = vec![
            kernel("matrix products", found(|a| matches!(a, Assumption::Products { .. }))),
            kernel("attention", found(|a| matches!(a, Assumption::Attention { .. }))),
        ];
        if on.model.shape().is_some_and(|shape| shape.moe().is_some()) {
            all.push(kernel("experts", found(|a| matches!(a, Assumption::Experts { .. }))));
        }
        let span = on.layout.chips();
        if span > 1 {
            let widest = self.tables.seen.iter().filter(|s| s.chip == chip.id).map(|s| s.chips).max().unwrap_or(0);
            let link = |id| says(id).with("chips", span).with("chip", &chip.name).with("widest", widest);
            all.push(match (on.links.up.is_some(), span <= widest) {
                (false, _) => one("links", Grade::NeverChecked, says("links_unknown").with("kind", &chip.link.kind)),
                (true, _) if on.system.rewired => one("links", Grade::Transferred, link("step_link")),
                (true, true) => one("links", Grade::Measured, link("part_links")),
                (true, false) => one("links", Grade::Transferred, link("part_links_beyond")),
            });
        }
        all.push(match self.version_step(engine, uncovered).map(|(_, carried)| carried) {
            None => one("scheduler", Grade::Measured, says("part_scheduler").with("engine", &engine.name)),
            Some(c) if c.from.is_some() => one("scheduler", Grade::Transferred, said(Step::Version, &c)),
            Some(c) => one("scheduler", Grade::NeverChecked, said(Step::Version, &c)),
        });
        let held = |id| says(id).with("model", &on.model.name).with("engine", &engine.name);
        let ran = self.tables.seen.iter().any(|s| s.model == on.model.id && self.is_of(s, engine));
        all.push(if ran {
            one("memory", Grade::Measured, held("part_memory_ran"))
        } else {
            one("memory", Grade::Transferred, held("part_memory_reckoned"))
        });
        all.extend(price.map(|price| self.price(price)));
        all
    }

    /// Whose price, how old, and whether that is too old.
    fn price(&self, price: &PriceSource) -> PartGrade {
        let (grade, says) = match price {
            PriceSource::Given => (Grade::Measured, says("part_price_given")),
            PriceSource::Unknown => (Grade::NeverChecked, says("part_price_unknown")),
            PriceSource::Listed(listed) => {
                let age = months(&self.tables.as_of).zip(months(&listed.as_of)).map(|(now, then)| now - then);
                let stale = age.is_some_and(|months| months > STALE_MONTHS);
                let said = says("part_price").with("basis", listed.basis.to_string()).with("as_of", &listed.as_of);
                let said = said.with("months", age.map(|months| months.max(0) as f64)).with("now", &self.tables.as_of);
                (if stale { Grade::Transferred } else { Grade::Measured }, said.with("stale", stale))
            }
        };
        PartGrade { part: "price".into(), grade, says }
    }

    /// Half widths of the interval of the ratio of two predictions: what both share cancels.
    pub fn apart(&self, a: &Evidence, b: &Evidence) -> Widths {
        let differ = differ([a.model != b.model, a.chip != b.chip, a.engine != b.engine]);
        let base = self.tables.widths(Step::Seen);
        let only =
            a.steps.iter().filter(|s| !b.steps.contains(s)).chain(b.steps.iter().filter(|s| !a.steps.contains(s)));
        only.filter_map(|c| c.step.parse().ok())
            .fold(self.tables.apart(differ), |w, step: Step| wider(w, self.tables.widths(step), base))
    }
}

impl Evidence {
    /// The run that would tell two predictions apart: of the one less is known of.
    pub(crate) fn missing<'a>(&'a self, other: &'a Self) -> &'a Self {
        let far = |e: &Self| (e.grade, float_key(e.within.throughput));
        if far(other) > far(self) { other } else { self }
    }

    /// Half widths, as natural logarithms.
    pub(crate) fn widths(&self) -> Widths {
        let Factors { tpot, ttft, throughput } = self.within;
        Widths { tpot: float::ln(tpot), ttft: float::ln(ttft), throughput: float::ln(throughput) }
    }

    /// Which run that is, in words.
    pub(crate) fn run(&self) -> Remark {
        says("run_to_measure").with("model", &self.model).with("chip", &self.chip).with("engine", &self.engine)
    }
}

/// An order of factors, in millionths.
fn float_key(x: f64) -> u64 {
    (x * 1e6) as u64
}

/// A width with one more step.
fn wider(w: Widths, step: Widths, base: Widths) -> Widths {
    let more = |w: f64, step: f64, base: f64| (w * w + (step * step - base * base).max(0.0)).sqrt();
    Widths {
        tpot: more(w.tpot, step.tpot, base.tpot),
        ttft: more(w.ttft, step.ttft, base.ttft),
        throughput: more(w.throughput, step.throughput, base.throughput),
    }
}

/// Rows that the width of all things counts for beside the rows of one: halves of 68 groups, held against the other half, are inside in 83 %
/// with five, 90 % where the wider of the two is taken and 83 % where the thing's own rows do not count, whose widths are as large.
const SHARED_ROWS: f64 = 5.0;

/// Widths drawn towards those of a thing's own rows: \( w = \sqrt{(n w_s^2 + k w^2) / (n + k)} \).
fn drawn(w: Widths, of: &Seen) -> Widths {
    let n = of.rows as f64;
    let both = |w: f64, own: Option<f64>| {
        own.map_or(w, |own| ((n * own * own + SHARED_ROWS * w * w) / (n + SHARED_ROWS)).sqrt())
    };
    let [tpot, ttft, rate] = of.widths();
    Widths { tpot: both(w.tpot, tpot), ttft: both(w.ttft, ttft), throughput: both(w.throughput, rate) }
}

fn carried(step: Step, what: String, from: Option<String>) -> (Step, Carried) {
    (step, Carried { step: step.to_string(), what, from })
}

/// What kernels were borrowed for, where they were.
fn borrowed(of: &Assumption) -> Option<String> {
    match of {
        Assumption::Products { format, generation } => Some(format!("{format} products on {generation}")),
        Assumption::Attention { generation } => Some(format!("attention on {generation}")),
        Assumption::Experts { format, generation, .. } => Some(format!("{format} experts on {generation}")),
        Assumption::Expanded { .. } | Assumption::Links { .. } | Assumption::Hosts { .. } => None,
    }
}

fn said(step: Step, c: &Carried) -> Remark {
    let id = match step {
        Step::Chip => "step_chip",
        Step::Generation if c.from.is_some() => "step_generation",
        Step::Seen | Step::Generation => "step_kernels",
        Step::Vendor => "step_vendor",
        Step::Version => "step_version",
        Step::Model => "step_model",
        Step::Kind => "step_kind",
    };
    says(id).with("what", &c.what).with("from", c.from.as_ref())
}

/// Months since the year 0 of a date that begins with year and month.
fn months(date: &str) -> Option<i64> {
    let mut words = date.split('-').map(|word| word.parse::<i64>().ok());
    let year = words.next()??;
    Some(year * 12 + words.next().flatten().unwrap_or(1))
}

#[cfg(test)]
mod tests;
