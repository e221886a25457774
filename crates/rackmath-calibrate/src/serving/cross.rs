//! Cross-validation by whole groups: the constants of an engine fitted without a chip, a model or an engine, and that group
//! predicted with them.
//!
//! A fold leaves one group out. Every family with rows in the group is fitted on its other rows, from first values that are
//! the same for all and know nothing of any measurement. A family with hardly any other rows gets the geometric mean of what
//! the other families were fitted to in the same fold, those of the same engine first: that is what a person would assume
//! of an engine nobody measured. Families without host and request costs (single processes) are not fitted by this tool and
//! keep their constants. A fold is fitted on at most eight rows of each source, metric, model and chip. Ignores: the kernels and networks, which are fitted on files of their own and stay as they are.

use super::fit;
use super::stratum as name_of;
use crate::CalibrateError;
use crate::knob::turned;
use crate::table::Errors;
use rackmath::case::{Bench, Predicted};
use rackmath::validate::{CrossCard, CrossStratumCard};
use rackmath_spec::engine::{Engine, Overhead};
use rackmath_spec::measurement::Measurement;
use rackmath_spec::{Catalog, SpecError};
use rackmath_units::{Seconds, float};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Chip,
    Model,
    Engine,
}

impl By {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Chip, Self::Model, Self::Engine];

    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chip => "chip",
            Self::Model => "model",
            Self::Engine => "engine",
        }
    }

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

/// Fits run side by side.
const THREADS: usize = 2;

/// Tells how far the work is: fits done, fits in all, the one that ended.
pub type Tell<'a> = &'a (dyn Fn(usize, usize, &str) + Sync);

/// Where a row's family stands in the fold that leaves the row out, and its prediction there.
pub(crate) struct Held {
    /// Its place among the rows given.
    pub row: usize,
    /// The family.
    pub engine: String,
    pub predicted: Predicted,
}

/// Leaves every group out once.
pub fn leave_out(
    catalog: &Catalog,
    rows: &[Measurement],
    by: By,
    steps: usize,
    tell: Tell<'_>,
) -> Result<CrossCard, CalibrateError> {
    let folds: Vec<String> = rows.iter().map(|row| by.of(row).to_owned()).collect();
    let held = predictions(catalog, rows, &folds, steps, tell)?;
    let mut bench = Bench::new(catalog.clone())?;
    let (mut all, mut lines): (Vec<Both>, Vec<(String, Vec<Both>)>) = Default::default();
    for one in &held {
        let row = &rows[one.row];
        let Ok(sample) = bench.compare(row) else { continue };
        let distance = |p: &Predicted| float::ln(p.value / row.value).abs();
        let both = Both {
            sample: (distance(&sample), distance(&sample) <= sample.spread),
            left: (distance(&one.predicted), distance(&one.predicted) <= one.predicted.spread),
        };
        let name = name_of(row);
        all.push(both);
        match lines.iter_mut().find(|line| line.0 == name) {
            Some(line) => line.1.push(both),
            None => lines.push((name, vec![both])),
        }
    }
    let strata = lines.iter().filter_map(|(name, rows)| stratum(name, rows)).collect();
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
    Ok(CrossCard {
        by: by.name().into(),
        groups: groups.into_iter().collect(),
        strata,
        total: stratum("all", &all),
        notes,
    })
}

/// Distance and whether inside the interval, with the catalogue's constants and without the group.
#[derive(Clone, Copy)]
struct Both {
    sample: (f64, bool),
    left: (f64, bool),
}

fn stratum(name: &str, rows: &[Both]) -> Option<CrossStratumCard> {
    let side = |of: fn(&Both) -> (f64, bool)| {
        let distances: Vec<f64> = rows.iter().map(|r| of(r).0).collect();
        let inside = rows.iter().filter(|r| of(r).1).count() as f64 / rows.len().max(1) as f64;
        Errors::of(&distances).map(|e| (e.median, e.p90, inside))
    };
    let (sample_median, sample_p90, sample_coverage) = side(|r| r.sample)?;
    let (median, p90, coverage) = side(|r| r.left)?;
    Some(CrossStratumCard {
        metric: name.to_owned(),
        n: rows.len(),
        sample_median,
        sample_p90,
        sample_coverage,
        median,
        p90,
        coverage,
    })
}

/// Every row predicted by constants that never saw its fold; rows that cannot be predicted are absent.
pub(crate) fn predictions(
    catalog: &Catalog,
    rows: &[Measurement],
    folds: &[String],
    steps: usize,
    tell: Tell<'_>,
) -> Result<Vec<Held>, CalibrateError> {
    let (engines, of_row) = families(catalog, rows)?;
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
        Ok(fit::family(&first, &thinned(&left(id, fold), MOST), steps)?.engine.overhead)
    })?;
    let mut held = Vec::new();
    for fold in names {
        let mut bench = Bench::new(catalog.clone())?;
        for (id, engine) in engines.iter().filter(|(id, e)| touched(id, fold) && is_fitted(e)) {
            let overhead = fits.get(&(id.as_str(), fold)).copied().unwrap_or_else(|| {
                let others = engines.values().filter(|other| other.id != *id);
                let known = others.filter_map(|other| {
                    let key = if touched(&other.id, fold) { fold } else { "" };
                    Some((other.family == engine.family, *fits.get(&(other.id.as_str(), key))?))
                });
                borrowed(&engine.overhead, &known.collect::<Vec<_>>())
            });
            bench.replace(Engine { overhead, ..engine.clone() });
        }
        for i in (0..rows.len()).filter(|i| folds[*i] == fold) {
            if let Ok(predicted) = bench.compare(&rows[i])
                && predicted.value.is_finite()
                && predicted.value > 0.0
            {
                held.push(Held { row: i, engine: of_row[i].clone(), predicted });
            }
        }
    }
    held.sort_by_key(|one| one.row);
    Ok(held)
}

fn families(catalog: &Catalog, rows: &[Measurement]) -> Result<(BTreeMap<String, Engine>, Vec<String>), SpecError> {
    let mut words: BTreeMap<&str, String> = BTreeMap::new();
    let mut engines = BTreeMap::new();
    let mut of_row = Vec::new();
    for row in rows {
        let word = row.setup.engine.as_str();
        if !words.contains_key(word) {
            let (engine, _) = catalog.engine(word)?;
            words.insert(word, engine.id.clone());
            engines.insert(engine.id.clone(), std::sync::Arc::unwrap_or_clone(engine));
        }
        of_row.push(words[word].clone());
    }
    Ok((engines, of_row))
}

/// Rows spread evenly over each group, so that a table of thousands takes no longer than one of hundreds. The loss counts
/// groups, not rows, so little is lost.
pub(crate) fn thinned<'a>(rows: &[&'a Measurement], most: usize) -> Vec<&'a Measurement> {
    let mut groups: BTreeMap<(String, &str, &str), Vec<&Measurement>> = BTreeMap::new();
    for row in rows {
        groups.entry((name_of(row), &row.setup.model, row.setup.chip())).or_default().push(row);
    }
    let every = |group: Vec<&'a Measurement>| {
        let step = group.len().div_ceil(most).max(1);
        group.into_iter().step_by(step)
    };
    groups.into_values().flat_map(every).collect()
}

/// Runs the fits on two threads; the order they end in changes nothing.
fn fitted<'a>(
    jobs: &[(&'a str, &'a str)],
    tell: Tell<'_>,
    run: impl Fn(&str, &str) -> Result<Overhead, CalibrateError> + Sync,
) -> Result<BTreeMap<(&'a str, &'a str), Overhead>, CalibrateError> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS.min(jobs.len()) {
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
    Overhead {
        small: Seconds::us(2.0),
        skew: Seconds::us(2.0),
        stretch: 1.0,
        stretch_long: 1.0,
        expert_floor: 1.0,
        host: Seconds::us(1000.0),
        host_sequence: Seconds::us(10.0),
        request: Seconds::ms(10.0),
        request_concurrent: Seconds::us(300.0),
        ..*own
    }
}

/// The geometric mean of what other families were fitted to, of the same engine where there are any.
fn borrowed(own: &Overhead, known: &[(bool, Overhead)]) -> Overhead {
    let same = known.iter().any(|(same, _)| *same);
    let from: Vec<&Overhead> = known.iter().filter(|(kin, _)| *kin || !same).map(|(_, o)| o).collect();
    if from.is_empty() {
        return first(own);
    }
    let constants = &fit::SERVER[..9];
    let mean = |get: fn(&Overhead) -> f64| {
        float::exp(from.iter().map(|o| float::ln(get(o).max(1e-12))).sum::<f64>() / from.len() as f64)
    };
    turned(own, constants, &constants.iter().map(|k| mean(k.get)).collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests;
