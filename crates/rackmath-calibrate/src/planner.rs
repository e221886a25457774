//! How good the planner's choices are, against configurations that were measured.
//!
//! A group is what InferenceX measured of one question: the same model, chip, engine, precision and lengths (aggregated rows
//! of tier A). Its configurations are layouts (degrees, drafts) at several concurrencies. Every one of them is predicted by
//! the passes behind `estimate` and `plan`. Throughput is output tokens per second and chip in a closed loop, from the times
//! to the first and per further token, alike for measured and predicted rows. Three figures:
//!
//! 1. **Within 10 %.** At nine levels of interactivity (1 / TPOT), evenly spaced in logarithms from the slowest point of
//!    the group to the fastest that two layouts reach, every layout that reaches the level competes. Its measured
//!    throughput there is that of its frontier, interpolated in logarithms between its points; below its slowest point it
//!    gives what that point gives. The predictor takes the layout whose predicted frontier, over the same concurrencies, is
//!    highest at the level; layouts it thinks too slow come last. The group's regret is the mean over its levels of the share
//!    of the best measured throughput given away; a group counts as within 10 % when that is at most 0.10.
//! 2. **Spearman** correlation of predicted and measured throughput over all configurations of a group (of three or more).
//! 3. **Regret**: the median over groups, and over groups with at least five layouts.
//!
//! A second block asks only where a level lies between measured points of at least two layouts and lets only those compete;
//! a third keeps releases of an engine apart, so that no layout wins by newer software. Configurations that decode faster than
//! the data sheet allows for as many sequences as their own latencies imply were not run as described and are left out
//! before anything is scored; the text names them.
//!
//! [`transfer`] does the same with overheads of the engines fitted without the group: groups are dealt into folds, and each
//! fold is predicted by constants that never saw it (`crate::serving::leave_out` says how). Kernels and networks, fitted on
//! files of their own, stay. Ignores: groups that hold one layout, prices, disaggregated rows.

mod group;
mod print;
#[cfg(test)]
mod tests;

use crate::Tell;
use crate::serving::{self, inferencex};
pub use group::Chooser;
use group::{Configuration, Group, Layout, Predicted, Seen};
use print::Report;
use rackmath::case::Bench;
use rackmath_spec::measurement::{Load, Measurement, Metric, Origin, Setup, Way};
use rackmath_spec::{Catalog, SpecError};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// Share of the data sheet's time below which a measured one cannot be.
const POSSIBLE: f64 = 0.95;

/// Every group, with the catalogue's constants.
pub fn score(catalog: &Catalog, folder: &Path) -> Result<Report, SpecError> {
    let (groups, left) = predicted(catalog, folder)?;
    Ok(Report { title: "with the catalogue's constants", groups, left })
}

/// Every group, with overheads of the engines that never saw it.
pub fn transfer(catalog: &Catalog, folder: &Path, tell: Tell<'_>) -> Result<Report, SpecError> {
    let (groups, left) = predicted(catalog, folder)?;
    let groups = without_own(catalog, folder, groups, tell)?;
    Ok(Report { title: "engine overheads fitted without the group", groups, left })
}

/// What choosing by one rule costs in one table of choices.
pub struct Decision {
    /// The table, and what each of its groups gives away, by name.
    pub table: String,
    pub each: Vec<(String, f64)>,
    pub chooser: Chooser,
    /// Share of the groups whose mean regret is at most 10 %, and the middle and mean regret.
    pub within: f64,
    pub median: f64,
    pub mean: f64,
}

/// The choices of ours, of the roofline and of the fewest chips, in the three tables of [`score`], source by source.
pub fn decisions(catalog: &Catalog, folder: &Path) -> Result<Vec<Decision>, SpecError> {
    let mut all = Vec::new();
    for (file, name) in [
        (inferencex::TABLE, "InferenceX"),
        (inferencex::NEWEST, "newest"),
        (inferencex::DUMP, "newest without percentiles"),
    ] {
        if !folder.join(file).is_file() {
            continue;
        }
        let (groups, left) = predicted_of(catalog, folder, file)?;
        all.extend(Report { title: name, groups, left }.decisions());
    }
    Ok(all)
}

/// Every configuration with its predictions, as CSV.
pub fn listed(catalog: &Catalog, folder: &Path) -> Result<String, SpecError> {
    let (groups, _) = predicted(catalog, folder)?;
    let mut text = String::from(
        "model,precision,hardware,engine,isl,osl,release,chips,tp,pp,dp,ep,drafts,concurrency,ttft_ms,tpot_ms,\
         output_tok_s_per_chip,predicted_ttft_ms,predicted_tpot_ms,predicted_output_tok_s_per_chip\n",
    );
    for Group { question: q, rows } in &groups {
        for Predicted { configuration: c, ours, .. } in rows {
            let Layout { chips, tp, pp, dp, ep, drafts } = c.layout();
            let (isl, osl) = q.lengths;
            let _ =
                write!(text, "{},{},{},{},{isl},{osl},{}", q.model, q.precision, q.hardware, q.engine, c.setup.engine);
            let _ = write!(text, ",{chips},{tp},{pp},{dp},{ep},{drafts},{}", c.concurrency);
            for seen in [c.measured, *ours] {
                let _ = write!(text, ",{:.1},{:.3},{:.1}", seen.ttft, seen.tpot, c.rate(seen));
            }
            text.push('\n');
        }
    }
    Ok(text)
}

/// Groups with predictions, and what was left out and why.
fn predicted(catalog: &Catalog, folder: &Path) -> Result<(Vec<Group>, Vec<String>), SpecError> {
    predicted_of(catalog, folder, inferencex::TABLE)
}

/// The same of one table.
fn predicted_of(catalog: &Catalog, folder: &Path, file: &'static str) -> Result<(Vec<Group>, Vec<String>), SpecError> {
    let mut bench = Bench::new(catalog.clone())?;
    let (mut groups, mut left) = (Vec::new(), Vec::new());
    for (question, configurations) in group::groups(catalog, folder, file)? {
        let mut rows = Vec::new();
        for configuration in configurations {
            let what = format!("{question}, {}, concurrency {}", configuration.layout(), configuration.concurrency);
            match one(&mut bench, configuration) {
                Ok(row) => rows.push(row),
                Err(reason) => left.push(format!("{what}: {reason}")),
            }
        }
        groups.push(Group { question, rows });
    }
    Ok((groups, left))
}

fn one(bench: &mut Bench, configuration: Configuration) -> Result<Predicted, String> {
    let mut ask = |metric: Metric, load: Load| {
        let setup = configuration.setup.clone();
        let asked = Measurement { setup, load, metric, value: f64::NAN, spread: None, source: Origin::default() };
        bench.compare(&asked).map_err(|e| e.to_string())
    };
    let load = configuration.load;
    if let Way::Closed { rounds, fixed, .. } = load.way {
        let way = Way::Closed { concurrency: configuration.decoding(), rounds, fixed };
        let alone = ask(Metric::TpotMs, Load { way, ..load })?;
        let share = configuration.measured.tpot / alone.roofline;
        if share < POSSIBLE {
            return Err(format!("{:.0} % of the data sheet's time per token", share * 100.0));
        }
    }
    let (ttft, tpot) = (ask(Metric::TtftMs, load)?, ask(Metric::TpotMs, load)?);
    let ours = Seen { ttft: ttft.value, tpot: tpot.value };
    let roofline = Seen { ttft: ttft.roofline, tpot: tpot.roofline };
    if ours.tpot > 0.0 && ours.tpot.is_finite() && ours.ttft.is_finite() && roofline.tpot > 0.0 {
        return Ok(Predicted { configuration, ours, roofline });
    }
    Err("the prediction is not a number: nothing fits".into())
}

/// The groups with our estimates replaced. Rows of other sources, and of other tiers, stay in every fit unless they ran what
/// a group of the fold ran.
fn without_own(catalog: &Catalog, folder: &Path, groups: Vec<Group>, tell: Tell<'_>) -> Result<Vec<Group>, SpecError> {
    let mut engines = BTreeSet::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for row in groups.iter().flat_map(|g| &g.rows) {
        let Configuration { setup, load, .. } = &row.configuration;
        engines.insert(catalog.engine(&setup.engine)?.0.id.clone());
        let next = places.len();
        places.entry(key(setup, load)).or_insert(next);
    }
    let mut rows = Vec::new();
    for row in serving::all(catalog, folder)? {
        if engines.contains(&catalog.engine(&row.setup.engine)?.0.id) {
            rows.push(row);
        }
    }
    let fold = |row: &Measurement| {
        let place = places.get(&key(&row.setup, &row.load)).filter(|_| row.source.name == inferencex::SOURCE);
        place.map_or(String::new(), |place| serving::fold(*place))
    };
    let folds: Vec<String> = rows.iter().map(fold).collect();
    let mut values: BTreeMap<(String, bool), f64> = BTreeMap::new();
    for (at, predicted) in serving::predictions(catalog, &rows, &folds, tell)? {
        let row = &rows[at];
        values.insert((exact(&row.setup, &row.load), row.metric.is_first_token()), predicted.value);
    }
    let replaced = groups.into_iter().map(|group| {
        let rows = group.rows.into_iter().filter_map(|mut row| {
            let name = exact(&row.configuration.setup, &row.configuration.load);
            let ttft = *values.get(&(name.clone(), true))?;
            let tpot = *values.get(&(name, false))?;
            row.ours = Seen { ttft, tpot };
            Some(row)
        });
        Group { rows: rows.collect(), ..group }
    });
    Ok(replaced.collect())
}

/// What a fold leaves out together: the same model as run, chip, engine and lengths. The same runs published under two names
/// of one architecture stay together.
fn key(setup: &Setup, load: &Load) -> String {
    let Setup { model, weights, .. } = setup;
    format!("{model}|{weights:?}|{}|{}|{}|{}", setup.family(), setup.chip(), load.input, load.output)
}

fn exact(setup: &Setup, load: &Load) -> String {
    format!("{setup:?}{load:?}")
}
