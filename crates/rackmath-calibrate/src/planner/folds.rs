//! Groups predicted by engine overheads that never saw them.

use super::group::Group;
use super::rows::{Configuration, Seen};
use crate::CalibrateError;
use crate::serving::{self, Tell, inferencex};
use rackmath_spec::measurement::{Load, Measurement, Metric, Setup};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Folds the groups are dealt into.
const FOLDS: usize = 5;

/// The groups with our estimates replaced. Rows of other sources, and of other tiers, stay in every fit unless they ran what
/// a group of the fold ran.
pub fn without_own(
    folder: &Path,
    groups: Vec<Group>,
    steps: usize,
    tell: Tell<'_>,
) -> Result<Vec<Group>, CalibrateError> {
    let catalog = rackmath_catalog::embedded();
    let mut engines = BTreeSet::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for row in groups.iter().flat_map(|g| &g.rows) {
        let Configuration { setup, load, .. } = &row.configuration;
        engines.insert(catalog.engine(&setup.engine)?.0.id.clone());
        let next = places.len();
        places.entry(key(setup, load)).or_insert(next);
    }
    let mut rows = Vec::new();
    for row in serving::all(&catalog, folder)? {
        if engines.contains(&catalog.engine(&row.setup.engine)?.0.id) {
            rows.push(row);
        }
    }
    let fold = |row: &Measurement| {
        let place = places.get(&key(&row.setup, &row.load)).filter(|_| row.source.name == inferencex::SOURCE);
        place.map_or(String::new(), |place| format!("fold {}", place % FOLDS + 1))
    };
    let folds: Vec<String> = rows.iter().map(fold).collect();
    let mut values: BTreeMap<(String, bool), f64> = BTreeMap::new();
    for one in serving::predictions(&catalog, &rows, &folds, steps, tell)? {
        let row = &rows[one.row];
        values.insert((exact(&row.setup, &row.load), row.metric == Metric::TtftMs), one.predicted.value);
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
