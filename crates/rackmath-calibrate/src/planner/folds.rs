//! Groups predicted by engine overheads that never saw them.

use super::group::Group;
use super::rows::Seen;
use crate::CalibrateError;
use crate::serving::{self, Measured, Tell};
use rackmath::case::{Case, Metric};
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
        let case = &row.configuration.case;
        engines.insert(catalog.engine(&case.engine)?.0.id.clone());
        let next = places.len();
        places.entry(key(case)).or_insert(next);
    }
    let mut rows = Vec::new();
    for row in serving::all(folder)? {
        if engines.contains(&catalog.engine(&row.case.engine)?.0.id) {
            rows.push(row);
        }
    }
    let fold = |row: &Measured| {
        let place = places.get(&key(&row.case)).filter(|_| row.case.source == "InferenceX");
        place.map_or(String::new(), |place| format!("fold {}", place % FOLDS + 1))
    };
    let folds: Vec<String> = rows.iter().map(fold).collect();
    let held = serving::held_out(&catalog, &rows, &folds, steps, tell)?;
    let mut values: BTreeMap<(String, bool), f64> = BTreeMap::new();
    for (place, value) in held {
        let case = &rows[place].case;
        values.insert((exact(case), case.metric == Metric::Ttft), value);
    }
    let replaced = groups.into_iter().map(|group| {
        let rows = group.rows.into_iter().filter_map(|mut row| {
            let name = exact(&row.configuration.case);
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
fn key(case: &Case) -> String {
    let engine = case.engine.split('@').next().unwrap_or("");
    let chip = case.system.rsplit_once('x').filter(|(n, _)| n.parse::<u64>().is_ok()).map_or(&*case.system, |(_, c)| c);
    let (input, output) = (case.requests.input, case.requests.output);
    format!("{}|{:?}|{engine}|{chip}|{input}|{output}", case.model, case.weights)
}

/// A case without what was measured.
fn exact(case: &Case) -> String {
    format!("{:?}", Case { metric: Metric::Tpot, measured: 0.0, ..case.clone() })
}
