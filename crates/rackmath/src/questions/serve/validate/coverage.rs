//! How far predictions scatter by what had to be carried over, and whether 80 % intervals hold 80 %.
//!
//! $$ w_s = Q_{0.8}\big(|e_{s,g'}| : g' \ne g\big) \qquad \mathrm{inside}_s = \frac{1}{n}\,\big|\{\, |e| \le w_s \,\}\big| \qquad
//!    \mathrm{SE} = \frac{1}{n}\sqrt{\tfrac{G}{G-1}\textstyle\sum_g \big(k_g - n_g\,\mathrm{inside}_s\big)^2} $$
//!
//! | symbol | code | meaning |
//! |--------|------|---------|
//! | s | [`Step`] | what is carried over: a chip, a generation, a vendor, a version, a model, a kind, or nothing |
//! | g | group | what is left out at once: the chip, the generation, ... of a row |
//! | e | error | ln(predicted / measured), predicted by constants that never saw the row's group |
//! | k, n | - | rows of a group inside the interval, and rows |
//!
//! What is fitted on whole deployments is fitted anew without the group where `catalog/evidence/refits` has it so; that takes a tool an hour,
//! and where it has not, widths are those of constants that saw the group, times `UNREFITTED`. Kernels are forgotten with their generation, so that those of another stand in. Where a chip is left out, kernels of its
//! generation stay as fitted, and single processes (llama.cpp, PyTorch) keep their constants: both flatter by what one chip weighs in a
//! pool of several. Hopper is no group of unseen generations, because kernels of Hopper are what others borrow. No table outvotes
//! the rest: of each table, model, chip and engine a few rows are taken, evenly spaced. Rows whose drafting is unknown are left out.

use super::{convert, thinned};
use crate::case::Bench;
use crate::desk::prelude::*;
use rackmath_spec::engine::Engine;
use rackmath_spec::evidence::{Differ, Evidence, Refits, Seen, Step, Widths, kind};
use rackmath_spec::measurement::{Measurement, Metric};
use rackmath_spec::{Chip, Kind};
use rackmath_theory::stats::quantile;
use std::collections::{BTreeMap, BTreeSet};
use strum::VariantArray as _;

/// The share an interval should hold.
pub const SHARE: f64 = 0.8;

/// Rows of a table, model, chip and engine that are taken.
const MOST: usize = 8;

/// How much wider errors are with a group left out of the fit than with it: p90 of times per token 0.33 against 0.31 with chips left out in turn
/// (`rackmath validate --folder --leave-out chip` over InferenceX tier A, 2026-11).
const UNREFITTED: f64 = 0.33 / 0.31;

/// The generation whose kernels stand in for those of others.
const LENDER: &str = "hopper";

/// A row of `validation/` with what it is filed under.
pub struct Filed {
    /// The row.
    pub row: Measurement,
    /// Its table.
    pub table: String,
    /// The chip it names.
    pub chip: Arc<Chip>,
    /// The engine it names.
    pub engine: Arc<Engine>,
    /// What kind of model it is of.
    pub kind: String,
}

impl Filed {
    /// Whether what is asked about an engine can be asked of this row.
    fn speaks(&self) -> bool {
        !self.row.source.part.contains("drafting unknown")
    }

    /// One of three columns: times per token, first tokens, rates.
    pub fn column(&self) -> usize {
        column(self.row.metric)
    }
}

pub(super) fn column(metric: Metric) -> usize {
    match metric {
        Metric::TtftMs | Metric::TtftP50Ms => 1,
        metric if metric.is_output_rate() || metric.is_input_rate() => 2,
        _ => 0,
    }
}

/// The names of the columns.
pub const COLUMNS: [&str; 3] = ["time per token", "first token", "throughput"];

/// Every row of the tables that can be asked about.
pub fn filed(catalog: &Catalog, cancel: &Cancel) -> Result<Vec<Filed>, Error> {
    let mut all = Vec::new();
    for id in catalog.ids(Kind::Validation) {
        cancel.check()?;
        let table = catalog.validation(id)?;
        let rows = table.rows.iter().filter_map(|row| convert::measurement(catalog, &table, row).ok());
        for row in table.measured.iter().cloned().chain(rows.map(|(row, _)| row)) {
            cancel.check()?;
            let chip = catalog.system(&row.setup.system)?.chip.clone();
            let (engine, _) = catalog.engine(&row.setup.engine)?;
            let kind = kind(&*catalog.model(&row.setup.model)?);
            all.push(Filed { row, table: table.id.clone(), chip, engine, kind });
        }
    }
    Ok(all)
}

/// What the rows are about, model by model, chip by chip, engine by engine, and how far predictions of them were off.
pub fn seen(catalog: &Catalog, filed: &[Filed], held: &[Held]) -> Result<Vec<Seen>, Error> {
    let mut all: BTreeMap<[String; 3], Seen> = BTreeMap::new();
    let mut groups: BTreeMap<[String; 3], String> = BTreeMap::new();
    for f in filed {
        let setup = &f.row.setup;
        let model = catalog.model(&setup.model)?.id.clone();
        let key = [model, f.chip.id.clone(), f.engine.id.clone()];
        let [model, chip, engine] = key.clone();
        groups.entry(key.clone()).or_insert_with(|| together(f));
        let one = all.entry(key).or_insert_with(|| Seen { model, chip, engine, ..Seen::default() });
        one.weights.insert(setup.weights.clone().unwrap_or_else(|| "-".into()));
        one.chips = one.chips.max(setup.degrees.tp * setup.degrees.pp * setup.degrees.dp);
        one.rows += 1;
        one.tables.insert(f.table.clone());
    }
    for (key, one) in &mut all {
        let own: Vec<&Held> = held.iter().filter(|h| h.step == Step::Seen && h.group == groups[key]).collect();
        one.off = [0, 1, 2].map(|column| {
            let errors = own.iter().filter(|h| h.column == column && !h.of_prompts).map(|h| h.error.abs());
            let mut errors: Vec<f64> = errors.collect();
            errors.sort_by(f64::total_cmp);
            // Of few rows the worst: the least that holds as many. The reader takes no interval wider than a factor of 150.
            let held = errors.get((errors.len() as f64 * SHARE).ceil().max(1.0) as usize - 1);
            held.map(|off| (off * 100.0).ceil().min(500.0) as u32)
        });
    }
    Ok(all.into_values().collect())
}

/// Rows of one model, chip and engine.
fn together(f: &Filed) -> String {
    format!("{} on {} under {}", f.row.setup.model, f.chip.id, f.engine.id)
}

/// Rows spread evenly over each group, so that a table of thousands counts as one of hundreds.
fn few(filed: &[Filed]) -> Vec<&Filed> {
    let speaking: Vec<&Filed> = filed.iter().filter(|f| f.speaks()).collect();
    thinned(&speaking, MOST, |f| {
        (f.table.clone(), f.row.source.part.clone(), f.row.setup.model.clone(), f.chip.id.clone(), f.engine.id.clone())
    })
}

/// A row predicted by constants that never saw its group.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// What is carried over.
    pub step: Step,
    /// What was left out with it.
    pub group: String,
    /// Its column.
    pub column: usize,
    /// Whether it is a rate of prompts.
    pub of_prompts: bool,
    /// ln(predicted / measured).
    pub error: f64,
    /// Whether the constants saw a group that they should not have.
    pub saw: bool,
}

/// Every row under every step that it can stand for.
pub fn held(catalog: &Catalog, filed: &[Filed], cancel: &Cancel) -> Result<Vec<Held>, Error> {
    let (evidence, refits) = (catalog.evidence()?, catalog.refits()?);
    let rows = few(filed);
    let mut all = Vec::new();
    for step in Step::VARIANTS {
        let mut groups: BTreeMap<String, Vec<&Filed>> = BTreeMap::new();
        for f in &rows {
            cancel.check()?;
            if let Some(group) = group(&evidence, &rows, *step, f) {
                groups.entry(group).or_default().push(f);
            }
        }
        for (group, rows) in groups {
            cancel.check()?;
            let mut bench = Bench::passing(catalog.clone())?;
            if matches!(step, Step::Generation | Step::Vendor) {
                bench.forget_generation();
            }
            if *step == Step::Vendor {
                forget_makers(&mut bench, &rows)?;
            }
            without(&mut bench, &refits, *step, &group, &rows)?;
            // Nothing is carried over where nothing is left out, and nothing was ever fitted on the last.
            let carried = !matches!(step, Step::Seen | Step::Vendor);
            for f in rows {
                cancel.check()?;
                let known = bench.predict(&f.row).ok().filter(|p| p.is_finite() && *p > 0.0);
                all.extend(known.map(|p| Held {
                    step: *step,
                    group: group.clone(),
                    column: f.column(),
                    of_prompts: f.row.metric.is_input_rate(),
                    error: float::ln(p / f.row.value),
                    saw: carried && refits.find(*step, &group, &f.engine.id).is_none(),
                }));
            }
        }
    }
    Ok(all)
}

/// What a row is left out with; none where the step cannot be tried on it.
fn group(evidence: &Evidence, rows: &[&Filed], step: Step, f: &Filed) -> Option<String> {
    let plain = f.engine.plain.is_some() || f.engine.family == "torch";
    let timed = plain || rows.iter().any(|o| o.chip.vendor == f.chip.vendor && timed(evidence, o));
    if !timed {
        return (step == Step::Vendor).then(|| f.chip.id.clone());
    }
    // Somebody else of the same engine has to be left.
    let left = |other: &dyn Fn(&Filed) -> bool| rows.iter().any(|o| o.engine.family == f.engine.family && other(o));
    match step {
        Step::Seen => Some(together(f)),
        Step::Chip => {
            let kin = |o: &Filed| o.chip.generation == f.chip.generation && o.chip.id != f.chip.id;
            left(&kin).then(|| f.chip.id.clone())
        }
        Step::Generation => (f.chip.generation != LENDER
            && left(&|o| o.chip.generation != f.chip.generation && o.chip.vendor == f.chip.vendor))
        .then(|| f.chip.generation.clone()),
        // As if nothing of another maker's chips had been timed: engines that are fitted on them alone cannot be asked.
        Step::Vendor => (!plain && f.engine.on.iter().any(|e| e.vendor == f.chip.vendor)).then(|| f.chip.id.clone()),
        Step::Version => left(&|o| o.engine.id != f.engine.id).then(|| f.engine.id.clone()),
        Step::Model => {
            let kin = |o: &Filed| o.kind == f.kind && o.row.setup.model != f.row.setup.model;
            left(&kin).then(|| f.row.setup.model.clone())
        }
        Step::Kind => left(&|o| o.kind != f.kind).then(|| f.kind.clone()),
    }
}

/// Engines that cost on every maker's chips what they cost on those they were fitted on first.
fn forget_makers(bench: &mut Bench, rows: &[&Filed]) -> Result<(), Error> {
    let engines: BTreeSet<&str> = rows.iter().map(|f| &*f.engine.id).collect();
    for id in engines {
        let own = bench.engine(id)?;
        bench.replace(Engine { on: Vec::new(), ..own });
    }
    Ok(())
}

fn timed(evidence: &Evidence, f: &Filed) -> bool {
    evidence.kernels.contains(&f.chip.generation)
}

/// Engines as fitted without a group.
fn without(bench: &mut Bench, refits: &Refits, step: Step, group: &str, rows: &[&Filed]) -> Result<(), Error> {
    let engines: BTreeSet<&str> = rows.iter().map(|f| &*f.engine.id).collect();
    for id in engines {
        if let Some(constants) = refits.find(step, group, id) {
            let own = bench.engine(id)?;
            bench.replace(Engine { overhead: constants.set(&own.overhead), ..own });
        }
    }
    Ok(())
}

/// The width of a step and how many rows and groups it rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Width {
    /// The natural logarithm of a factor.
    pub width: f64,
    /// Rows.
    pub n: usize,
    /// Groups of them.
    pub groups: usize,
}

/// Half width of the interval of a step and column; without rows of a group, where one is named.
pub fn width(held: &[Held], step: Step, column: usize, except: Option<&str>) -> Option<Width> {
    let rows = held.iter().filter(|h| h.step == step && h.column == column && Some(&*h.group) != except);
    let rows: Vec<&Held> = rows.collect();
    let groups = rows.iter().map(|h| &h.group).collect::<BTreeSet<_>>().len();
    let distances: Vec<f64> = rows.iter().map(|h| h.error.abs()).collect();
    let saw = rows.iter().any(|h| h.saw);
    let width = quantile(&distances, SHARE)? * if saw { UNREFITTED } else { 1.0 };
    Some(Width { width, n: rows.len(), groups })
}

/// Rows of a step and column: how far off they are, and how many lie inside an interval that never saw their group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoverageCard {
    /// What is carried over: seen, chip, generation, vendor, version, model, kind; or all together.
    pub step: String,
    /// Time per token, first token or throughput; nothing for all of them.
    pub what: String,
    /// Rows.
    pub n: usize,
    /// Groups that are left out one by one.
    pub groups: usize,
    /// Median of |ln(predicted / measured)|.
    pub median: f64,
    /// Its 90th percentile.
    pub p90: f64,
    /// The factor that 80 % of all of them lie within.
    pub factor: f64,
    /// Share of rows inside the interval estimated without their group.
    pub inside: f64,
    /// Its standard error, counted over groups.
    pub error: f64,
    /// Whether that is 80 % within the larger of 5 points and twice the standard error; absent for fewer than 30 rows.
    pub holds: Option<bool>,
}

/// Fewest rows of which it is asked whether an interval holds.
const FEWEST: usize = 30;

/// Whether each row lies in an interval estimated without its group; rows whose step has one group only are left out.
fn judged(held: &[Held]) -> Vec<(&Held, bool)> {
    let mut widths: BTreeMap<(Step, usize, &str), Option<f64>> = BTreeMap::new();
    let mut inside = |h: &'_ Held| {
        let (step, column) = (h.step, h.column);
        let others = || width(held, step, column, Some(&h.group)).map(|w| w.width);
        let group = held.iter().find(|o| o.group == h.group).map_or("", |o| &*o.group);
        (*widths.entry((step, column, group)).or_insert_with(others)).map(|w| h.error.abs() <= w)
    };
    held.iter().filter_map(|h| Some((h, inside(h)?))).collect()
}

/// One line for each step, one for each of its columns, then all together.
pub fn coverage(held: &[Held]) -> Vec<CoverageCard> {
    let judged = judged(held);
    let mut all = Vec::new();
    for step in Step::VARIANTS {
        let rows: Vec<_> = judged.iter().filter(|(h, _)| h.step == *step).collect();
        all.extend(card(&step.to_string(), "", &rows, (5.0 / 100.0, 2.0)));
        for (column, what) in COLUMNS.iter().enumerate() {
            let rows: Vec<_> = judged.iter().filter(|(h, _)| h.step == *step && h.column == column).collect();
            all.extend(card(&step.to_string(), what, &rows, (5.0 / 100.0, 2.0)));
        }
    }
    // Pooled rows hold 77 to 83 %, however few their groups.
    all.extend(card("all", "", &judged.iter().collect::<Vec<_>>(), (3.0 / 100.0, 0.0)));
    all
}

fn card(step: &str, what: &str, rows: &[&(&Held, bool)], (points, errors): (f64, f64)) -> Option<CoverageCard> {
    let distances: Vec<f64> = rows.iter().map(|(h, _)| h.error.abs()).collect();
    let n = rows.len();
    let inside = rows.iter().filter(|(_, inside)| *inside).count() as f64 / n as f64;
    let mut groups: BTreeMap<(Step, &str), f64> = BTreeMap::new();
    for (h, within) in rows {
        *groups.entry((h.step, &h.group)).or_default() += f64::from(u8::from(*within)) - inside;
    }
    let g = groups.len() as f64;
    let scatter = groups.values().map(|x| x * x).sum::<f64>() * g / (g - 1.0).max(1.0);
    let error = scatter.sqrt() / n as f64;
    let holds = (n >= FEWEST).then(|| (inside - SHARE).abs() <= points.max(errors * error));
    Some(CoverageCard {
        step: step.into(),
        what: what.into(),
        n,
        groups: groups.len(),
        median: quantile(&distances, 0.5)?,
        p90: quantile(&distances, 0.9)?,
        factor: float::exp(quantile(&distances, SHARE)?),
        inside,
        error,
        holds,
    })
}

/// How far apart the errors of two rows are that were met under the same load, by what they differ in.
pub fn apart(catalog: &Catalog, filed: &[Filed], cancel: &Cancel) -> Result<BTreeMap<(Differ, usize), Width>, Error> {
    let evidence = catalog.evidence()?;
    let rows = few(filed);
    let mut bench = Bench::passing(catalog.clone())?;
    let mut known: Vec<(&Filed, f64)> = Vec::new();
    for f in &rows {
        cancel.check()?;
        if group(&evidence, &rows, Step::Seen, f).is_some()
            && let Some(p) = bench.predict(&f.row).ok().filter(|p| p.is_finite() && *p > 0.0)
        {
            known.push((f, float::ln(p / f.row.value)));
        }
    }
    let mut pairs: BTreeMap<(Differ, usize), (Vec<f64>, BTreeSet<String>)> = BTreeMap::new();
    for (i, (a, e)) in known.iter().enumerate() {
        for (b, f) in &known[i + 1..] {
            // Two versions of one engine are neither the same nor two engines.
            let versions = a.engine.id != b.engine.id && a.engine.family == b.engine.family;
            if a.row.source != b.row.source || versions {
                continue;
            }
            let (s, t) = (&a.row.setup, &b.row.setup);
            let differ = differ([s.model != t.model, a.chip.id != b.chip.id, a.engine.id != b.engine.id]);
            let (distances, groups) = pairs.entry((differ, a.column())).or_default();
            distances.push((e - f).abs());
            groups.insert(format!("{} {} {}", s.model, a.chip.id, a.engine.id));
        }
    }
    let wide = |(distances, groups): (Vec<f64>, BTreeSet<String>)| Width {
        width: quantile(&distances, SHARE).unwrap_or(0.0),
        n: distances.len(),
        groups: groups.len(),
    };
    Ok(pairs.into_iter().map(|(key, of)| (key, wide(of))).collect())
}

/// The widths of a difference, column by column: its own where it has pairs enough, else the widest that has; rates follow from times
/// per token.
pub fn columns(apart: &BTreeMap<(Differ, usize), Width>, differ: Differ) -> [Width; 3] {
    let own = |column: usize| apart.get(&(differ, column)).copied().filter(|w| w.n >= FEWEST);
    [0, 1, 2].map(|column| {
        let widest = || apart.iter().filter(|((_, of), _)| *of == column).map(|(_, w)| w.width).fold(0.0, f64::max);
        let follows = own(column).or_else(|| own(0).filter(|_| column == 2).map(|w| Width { n: 0, ..w }));
        follows.unwrap_or_else(|| Width { width: widest(), ..Width::default() })
    })
}

/// By whether model, chip and engine differ.
pub(crate) fn differ(unlike: [bool; 3]) -> Differ {
    match unlike {
        [false, false, false] => Differ::Layout,
        [true, false, false] => Differ::Model,
        [false, true, false] => Differ::Chip,
        [false, false, true] => Differ::Engine,
        _ => Differ::More,
    }
}

/// The widths of a step: of each column where it has enough rows, and else that of the widest step; rates follow from times per token
/// where few were measured.
pub fn widths(held: &[Held], step: Step) -> (Widths, usize, usize) {
    let own = |column: usize| width(held, step, column, None).filter(|w| w.n >= FEWEST).map(|w| w.width);
    let of = |column: usize| {
        let follows = own(column).or_else(|| own(0).filter(|_| column == 2));
        let all = Step::VARIANTS.iter().filter_map(|s| width(held, *s, column, None));
        follows.unwrap_or_else(|| all.map(|w| w.width).fold(0.0, f64::max))
    };
    let rows = (0..3).filter_map(|column| width(held, step, column, None));
    let (n, groups) = rows.fold((0, 0), |(n, groups), w| (n + w.n, groups.max(w.groups)));
    (Widths { tpot: of(0), ttft: of(1), throughput: of(2) }, n, groups)
}
