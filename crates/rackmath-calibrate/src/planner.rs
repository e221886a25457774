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
//! fold is predicted by constants that never saw it ([`crate::serving::leave_out`] says how). Kernels and networks, fitted on
//! files of their own, stay. Ignores: groups that hold one layout, prices, disaggregated rows.

mod folds;
mod group;
mod print;
mod rank;
mod rows;
#[cfg(test)]
mod tests;

pub use group::{Among, Choice, Chooser, Group, LEVELS, Predicted};
pub use print::Report;
pub use rank::{Frontier, ladder, regret};
pub use rows::{Configuration, Layout, Question, Seen};

use crate::CalibrateError;
use crate::serving::{self, FOLD_STEPS};
use rackmath::case::Bench;
use rackmath_spec::measurement::{Load, Measurement, Metric, Origin, Way};
use std::fmt::Write as _;
use std::path::Path;

/// Share of the data sheet's time below which a measured one cannot be.
const POSSIBLE: f64 = 0.95;

/// Every group, with the catalogue's constants.
pub fn score(folder: &Path) -> Result<Report, CalibrateError> {
    let (groups, left) = predicted(folder)?;
    Ok(Report { title: "with the catalogue's constants", groups, left })
}

/// Every group, with overheads of the engines that never saw it.
pub fn transfer(folder: &Path, tell: serving::Tell<'_>) -> Result<Report, CalibrateError> {
    let (groups, left) = predicted(folder)?;
    let groups = folds::without_own(folder, groups, FOLD_STEPS, tell)?;
    Ok(Report { title: "engine overheads fitted without the group", groups, left })
}

/// Every configuration with its predictions, as CSV.
pub fn listed(folder: &Path) -> Result<String, CalibrateError> {
    let (groups, _) = predicted(folder)?;
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
fn predicted(folder: &Path) -> Result<(Vec<Group>, Vec<String>), CalibrateError> {
    let catalog = rackmath_catalog::embedded();
    let mut bench = Bench::new(catalog.clone())?;
    let (mut groups, mut left) = (Vec::new(), Vec::new());
    for (question, configurations) in rows::groups(&catalog, folder)? {
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
