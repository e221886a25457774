//! Cross-validation by whole groups: the constants of an engine fitted without a chip, a model or an engine, and that group
//! predicted with them.
//!
//! A fold leaves one group out. Every family with rows in the group is fitted on its other rows, from first values that are
//! the same for all and know nothing of any measurement. A family with hardly any other rows gets the geometric mean of what
//! the other families were fitted to in the same fold, those of the same engine first: that is what a person would assume
//! of an engine nobody measured. Families without host and request costs (single processes) are not fitted by this tool and
//! keep their constants. A fold is fitted on at most eight rows of each source, metric, model and chip. Ignores: the kernels
//! and networks, which are fitted on files of their own and stay as they are.

use super::{FOLD_STEPS, fit, stratum as name_of};
use crate::Tell;
use crate::search::{Knob, turned};
use crate::table::Errors;
use rackmath::case::{Bench, Predicted};
use rackmath::validate::{CrossCard, CrossStratumCard};
use rackmath_spec::engine::{Engine, Overhead};
use rackmath_spec::measurement::Measurement;
use rackmath_spec::{Catalog, SpecError};
use rackmath_units::{Seconds, float};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum By {
    Chip,
    Model,
    Engine,
}

impl By {
    fn of(self, row: &Measurement) -> &str {
        match self {
            Self::Chip => row.setup.chip(),
            Self::Model => &row.setup.model,
            Self::Engine => row.setup.family(),
        }
    }
}

/// Fewer rows than constants say nothing about them.
const FEWEST: usize = 20;

/// Rows of one source, metric, model and chip that a fold is fitted on.
const MOST: usize = 8;

/// At most; fits do not share anything.
const THREADS: usize = 16;

/// Leaves every group out once.
pub fn leave_out(catalog: &Catalog, rows: &[Measurement], by: By, tell: Tell<'_>) -> Result<CrossCard, SpecError> {
    let folds: Vec<String> = rows.iter().map(|row| by.of(row).to_owned()).collect();
    let held = predictions(catalog, rows, &folds, tell)?;
    let mut bench = Bench::new(catalog.clone())?;
    let mut lines: Vec<(String, Vec<[Side; 2]>)> = vec![("all".to_owned(), Vec::new())];
    for (at, left) in &held {
        let row = &rows[*at];
        let Ok(sample) = bench.compare(row) else { continue };
        let sides = [&sample, left].map(|p| {
            let distance = float::ln(p.value / row.value).abs();
            (distance, p.spread.is_some_and(|w| distance <= w))
        });
        let name = name_of(row);
        if !lines.iter().any(|line| line.0 == name) {
            lines.push((name.clone(), Vec::new()));
        }
        lines.iter_mut().filter(|line| line.0 == name || line.0 == "all").for_each(|line| line.1.push(sides));
    }
    let total = stratum(&lines[0].0, &lines[0].1);
    let strata = lines[1..].iter().filter_map(|(name, rows)| stratum(name, rows)).collect();
    let groups: BTreeSet<String> = folds.into_iter().collect();
    let notes = vec![
        "fitted anew without the group: the engine's overheads; kernels and networks stay as fitted on their own files"
            .into(),
        format!(
            "each search begins at the same round numbers and sees at most {MOST} rows of a source, metric, model and chip"
        ),
        "single processes (PyTorch, llama.cpp) keep the catalogue's constants in both columns".into(),
        format!("a family with fewer than {FEWEST} other rows takes the middle of the other families of its fold"),
    ];
    Ok(CrossCard { by: by.to_string(), groups: groups.into_iter().collect(), strata, total, notes })
}

/// Distance and whether inside the interval.
type Side = (f64, bool);

/// The rows of a metric, with the catalogue's constants and without the group.
fn stratum(name: &str, rows: &[[Side; 2]]) -> Option<CrossStratumCard> {
    let side = |i: usize| {
        let inside = rows.iter().filter(|sides| sides[i].1).count() as f64 / rows.len().max(1) as f64;
        Errors::of(rows.iter().map(|sides| sides[i].0)).map(|e| (e.fit.median, e.fit.p90, inside))
    };
    let (sample_median, sample_p90, sample_coverage) = side(0)?;
    let (median, p90, coverage) = side(1)?;
    let (metric, n) = (name.to_owned(), rows.len());
    Some(CrossStratumCard { metric, n, sample_median, sample_p90, sample_coverage, median, p90, coverage })
}

/// Every row, by its place, predicted by constants that never saw its fold; rows that cannot be predicted are absent.
pub(crate) fn predictions(
    catalog: &Catalog,
    rows: &[Measurement],
    folds: &[String],
    tell: Tell<'_>,
) -> Result<Vec<(usize, Predicted)>, SpecError> {
    let refitted = overheads(catalog, rows, folds, tell)?;
    let mut held = Vec::new();
    for fold in folds.iter().filter(|fold| !fold.is_empty()).collect::<BTreeSet<_>>() {
        let mut bench = Bench::new(catalog.clone())?;
        for ((_, id), overhead) in refitted.iter().filter(|((of, _), _)| of == fold) {
            bench.replace(Engine { overhead: *overhead, ..bench.engine(id)? });
        }
        let known = |p: &Predicted| p.value.is_finite() && p.value > 0.0;
        let of_fold = (0..rows.len()).filter(|i| folds[*i] == *fold);
        held.extend(of_fold.filter_map(|i| Some((i, bench.compare(&rows[i]).ok().filter(known)?))));
    }
    held.sort_by_key(|(row, _)| *row);
    Ok(held)
}

/// The overheads of every engine that a fold takes rows from, fitted without them, by fold and engine.
pub(crate) fn overheads(
    catalog: &Catalog,
    rows: &[Measurement],
    folds: &[String],
    tell: Tell<'_>,
) -> Result<BTreeMap<(String, String), Overhead>, SpecError> {
    let (mut engines, mut of_row) = (BTreeMap::new(), Vec::new());
    for row in rows {
        let (engine, _) = catalog.engine(&row.setup.engine)?;
        of_row.push(engine.id.clone());
        engines.entry(engine.id.clone()).or_insert_with(|| Arc::unwrap_or_clone(engine));
    }
    // Rows without a fold are in every fit and are not predicted.
    let names: BTreeSet<&str> = folds.iter().map(String::as_str).filter(|fold| !fold.is_empty()).collect();
    // A fold that takes no row from a family leaves it as fitted on all of its rows: "" stands for no fold.
    let touched = |id: &str, fold: &str| (0..rows.len()).any(|i| of_row[i] == id && folds[i] == fold);
    let left = |id: &str, fold: &str| -> Vec<&Measurement> {
        let kept = |i: &usize| of_row[*i] == id && (fold.is_empty() || folds[*i] != fold);
        (0..rows.len()).filter(kept).map(|i| &rows[i]).collect()
    };
    let mut wanted: BTreeSet<(&str, &str)> = BTreeSet::new();
    for fold in &names {
        let fitted: Vec<&str> = engines.keys().map(String::as_str).filter(|id| is_fitted(&engines[*id])).collect();
        let borrows = fitted.iter().any(|id| touched(id, fold) && left(id, fold).len() < FEWEST);
        for id in fitted {
            let key = if touched(id, fold) { *fold } else { "" };
            if (touched(id, fold) || borrows) && left(id, key).len() >= FEWEST {
                wanted.insert((id, key));
            }
        }
    }
    let jobs: Vec<(&str, &str)> = wanted.into_iter().collect();
    let fits = fitted(&jobs, tell, |id, fold| {
        let engine = &engines[id];
        let first = Engine { overhead: first(&engine.overhead), ..engine.clone() };
        Ok(fit::family(catalog, &first, &thinned(&left(id, fold), MOST), FOLD_STEPS)?.0.overhead)
    })?;
    let mut all = BTreeMap::new();
    for fold in names {
        for (id, engine) in engines.iter().filter(|(id, e)| touched(id, fold) && is_fitted(e)) {
            let overhead = fits.get(&(id.as_str(), fold)).copied().unwrap_or_else(|| {
                let others = engines.values().filter(|other| other.id != *id);
                let known = others.filter_map(|other| {
                    let key = if touched(&other.id, fold) { fold } else { "" };
                    Some((other.family == engine.family, *fits.get(&(other.id.as_str(), key))?))
                });
                borrowed(&engine.overhead, &known.collect::<Vec<_>>())
            });
            all.insert((fold.to_owned(), id.clone()), overhead);
        }
    }
    Ok(all)
}

/// A few rows of each source, metric, model and chip. The loss counts groups, not rows, so little is lost.
pub(crate) fn thinned<'a>(rows: &[&'a Measurement], most: usize) -> Vec<&'a Measurement> {
    rackmath::validate::thinned(rows, most, |row| (name_of(row), row.setup.model.clone(), row.setup.chip().to_owned()))
}

/// Runs the fits side by side; the order they end in changes nothing.
fn fitted<'a>(
    jobs: &[(&'a str, &'a str)],
    tell: Tell<'_>,
    run: impl Fn(&str, &str) -> Result<Overhead, SpecError> + Sync,
) -> Result<BTreeMap<(&'a str, &'a str), Overhead>, SpecError> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results = Mutex::new(BTreeMap::new());
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..THREADS.min(cores).min(jobs.len()) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = run(job.0, job.1);
                    let n = done.fetch_add(1, Ordering::Relaxed) + 1;
                    let without = if job.1.is_empty() { String::new() } else { format!(" without {}", job.1) };
                    tell(n, jobs.len(), &format!("{}{without}", job.0));
                    results.lock().unwrap_or_else(PoisonError::into_inner).insert(*job, result);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().map(|(job, result)| Ok((job, result?))).collect()
}

/// Single processes have no host and request costs to fit.
fn is_fitted(engine: &Engine) -> bool {
    engine.overhead.host > Seconds::ZERO && engine.overhead.request > Seconds::ZERO
}

/// Where every search begins, whatever the catalogue says: round numbers of the right size, none from a measurement.
fn first(own: &Overhead) -> Overhead {
    let us = |us: f64| Seconds::us(us).get();
    let request = Seconds::ms(10.0).get();
    let values = [us(2.0), us(2.0), 1.0, 1.0, 1.0, us(1000.0), us(10.0), request, us(300.0)];
    turned(own, &fit::SERVER[..9], &values)
}

/// The geometric mean of what other families were fitted to, of the same engine where there are any.
fn borrowed(own: &Overhead, known: &[(bool, Overhead)]) -> Overhead {
    let same = known.iter().any(|(same, _)| *same);
    let from: Vec<&Overhead> = known.iter().filter(|(kin, _)| *kin || !same).map(|(_, o)| o).collect();
    if from.is_empty() {
        return first(own);
    }
    let constants = &fit::SERVER[..9];
    let ln = |k: &Knob<Overhead>| from.iter().map(|o| float::ln((k.get)(o).max(1e-12))).sum::<f64>();
    let means: Vec<f64> = constants.iter().map(|k| float::exp(ln(k) / from.len() as f64)).collect();
    turned(own, constants, &means)
}

/// Folds that groups are dealt into.
const FOLDS: usize = 5;

/// The fold of the group at a place.
pub(crate) fn fold(place: usize) -> String {
    format!("fold {}", place % FOLDS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overhead(us: f64) -> Overhead {
        let (engine, _) = rackmath_catalog::embedded().engine("vllm").unwrap();
        Overhead { host: Seconds::us(us), ..first(&engine.overhead) }
    }

    #[test]
    fn an_engine_nobody_measured_gets_the_middle_of_the_others() {
        let own = overhead(1.0);
        let kin = |same, us| (same, overhead(us));
        // The geometric mean of 100 and 400; relatives come first.
        let middle = borrowed(&own, &[kin(false, 100.0), kin(false, 400.0)]);
        assert!((middle.host.get() - 200e-6).abs() < 1e-12);
        let relative = borrowed(&own, &[kin(false, 100.0), kin(true, 400.0)]);
        assert!((relative.host.get() - 400e-6).abs() < 1e-12);
        assert_eq!(borrowed(&own, &[]), first(&own));
    }

    #[test]
    fn fits_side_by_side_come_back_in_order_whichever_ends_first() {
        let jobs = [("a", ""), ("b", "x"), ("c", "y")];
        let run = |id: &str, _: &str| Ok(overhead(if id == "a" { 1.0 } else { 2.0 }));
        let found = fitted(&jobs, &|_, _, _| {}, run).unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), jobs);
        assert_eq!(found[&("a", "")].host, Seconds::us(1.0));
    }
}
