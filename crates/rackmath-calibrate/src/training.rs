//! Training runs: step time and memory against published tables, beside the best constant MFU.

mod fit;
mod predict;
mod rows;

pub use fit::fit;
pub use predict::{Bench, Predicted};
pub use rows::{Measured, Row, SOURCES, Source, read};

use crate::CalibrateError;
use crate::rows::Rows;
use crate::table::{Errors, skipped};
use rackmath_theory::train::step::{Part, StepTime};
use rackmath_units::float;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// How far predictions are from the rows of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Table and part of it.
    pub group: String,
    /// Mean of |predicted / measured - 1|.
    pub mape: f64,
    pub errors: Errors,
    /// The first with the best single MFU for the group.
    pub constant: f64,
    /// The same with one MFU for each chip and format.
    pub constant_each: f64,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub steps: Vec<Line>,
    /// Memory: group, rows, mean absolute share, worst.
    pub memory: Vec<(String, usize, f64, f64)>,
    /// Rows that ran out of memory and are said to, of so many.
    pub caught: (usize, usize),
    /// Rows that ran and are said to run out of memory.
    pub false_alarms: Vec<String>,
    pub ran: usize,
    /// Rows left out, by reason.
    pub skipped: BTreeMap<String, usize>,
    /// Every row with its ratio, for those who want to see.
    pub rows: Vec<String>,
}

/// Scores the tables of a folder, with the catalogue's programs or those of another folder.
pub fn score(folder: &Path, stacks: Option<&Path>) -> Result<Report, CalibrateError> {
    let catalog = rackmath_catalog::embedded();
    let Rows { rows, skipped } = read(folder, &catalog)?;
    let mut bench = Bench::new(&catalog, &rows)?;
    if let Some(stacks) = stacks {
        bench.replace(stacks)?;
    }
    let mut report = Report { skipped, ..Report::default() };
    let mut groups: BTreeMap<String, Vec<(&Row, f64, f64)>> = BTreeMap::new();
    let mut memory: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in &rows {
        let Row { id, model, chip, cut, .. } = row;
        let stack = &bench.stacks[row.source.stack];
        let predicted = match bench.predict(row, stack) {
            Ok(p) => p,
            Err(why) => {
                *report.skipped.entry(why).or_default() += 1;
                continue;
            }
        };
        let total = predicted.memory.total().get();
        let fits = predicted.fits;
        let file = row.source.file.trim_start_matches("training_").trim_end_matches(".csv");
        if row.out_of_memory {
            report.caught.1 += 1;
            report.caught.0 += usize::from(!fits);
            let gib = total / GIB;
            report.rows.push(format!("ran out of memory: {file} {id} {cut}: {gib:.1} GiB {:?}", predicted.memory));
        } else {
            report.ran += 1;
            if !fits {
                let gib = total / GIB;
                report.false_alarms.push(format!("{file} {id}: {model} on {chip} with {cut}: {gib:.1} GiB"));
            }
        }
        if let Some(printed) = row.memory_gib {
            let seen = if stack.memory.reserve_seen { total } else { predicted.memory.allocated };
            memory.entry(file.to_owned()).or_default().push(seen / GIB / printed - 1.0);
            let m = &predicted.memory;
            report.rows.push(format!(
                "memory {file} {} {} b{}: {:.2} of {printed} GiB ({:+.1} %), weights {:.1} gradients {:.1} optimizer {:.1} activations {:.1} logits {:.1} buffers {:.1}",
                id, cut, cut.micro_batch, seen / GIB, (seen / GIB / printed - 1.0) * 100.0, m.weight_bytes / GIB, m.gradient_bytes / GIB, m.optimizer_bytes / GIB, m.activation_bytes / GIB, m.logit_bytes / GIB, (m.other_bytes - stack.memory.reserve.get()) / GIB
            ));
        }
        let Some(measured) = bench.measured(row).filter(|_| !row.out_of_memory) else { continue };
        let ratio = predicted.step.total / measured;
        let on = format!("{}x{chip} s{} {cut}", row.chips, row.sequence);
        let parts = parts(&predicted.step);
        report
            .rows
            .push(format!("step {file} {id} {model} {} {on}: {measured:.4} s, ratio {ratio:.3}; {parts}", row.format));
        for group in labels(row, file) {
            groups.entry(group).or_default().push((row, measured, ratio));
        }
    }
    report.steps = groups.into_iter().filter_map(|(group, rows)| line(&bench, group, &rows)).collect();
    report.memory = memory
        .into_iter()
        .map(|(file, errors)| {
            let n = errors.len();
            let mean = errors.iter().map(|e| e.abs()).sum::<f64>() / n as f64;
            (file, n, mean, errors.iter().fold(0.0, |w: f64, e| if e.abs() > w.abs() { *e } else { w }))
        })
        .collect();
    Ok(report)
}

const GIB: f64 = 1_073_741_824.0;

fn parts(s: &StepTime) -> String {
    let shown = |p: &Part| format!("{} {:.2}", format!("{p:?}").to_lowercase(), s.of(*p));
    Part::ALL.iter().filter(|p| !matches!(p, Part::Offload | Part::Fixed)).map(shown).collect::<Vec<_>>().join(" ")
}

/// Groups a row is scored in: its table, and parts of it that are stated apart.
fn labels(row: &Row, file: &str) -> Vec<String> {
    let mut all = vec![file.to_owned()];
    if file.starts_with("vtrain") {
        let nodes = if row.notes.starts_with("multi") { "multi-node" } else { "single-node" };
        all = vec![format!("{file} {nodes}")];
    }
    if file == "nemo" || file == "dgxc" || file.starts_with("simumax") {
        let kind = if row.shape.moe().is_some() { "experts" } else { "dense" };
        all.push(format!("{file} {kind}"));
    }
    all
}

fn line(bench: &Bench, group: String, rows: &[(&Row, f64, f64)]) -> Option<Line> {
    let logs: Vec<f64> = rows.iter().map(|(_, _, r)| float::ln(*r)).collect();
    let errors = Errors::of(&logs)?;
    let mape = rows.iter().map(|(_, _, r)| (r - 1.0).abs()).sum::<f64>() / rows.len() as f64;
    // Seconds at the full peak, over measured seconds: the MFU of each row.
    let share = |row: &Row, measured: f64| bench.flop(row) / (bench.peak(row) * row.chips as f64) / measured;
    let shares: Vec<(String, f64)> =
        rows.iter().map(|(r, m, _)| (format!("{} {}", r.chip, r.format), share(r, *m))).collect();
    let all: Vec<f64> = shares.iter().map(|(_, s)| *s).collect();
    let mut each: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (key, s) in &shares {
        each.entry(key).or_default().push(*s);
    }
    let apart: f64 = each.values().map(|s| best_constant(s) * s.len() as f64).sum::<f64>() / shares.len() as f64;
    Some(Line { mape, errors, constant: best_constant(&all), constant_each: apart, group })
}

/// The least mean absolute share of error any one MFU can have: predicted over measured is share / constant.
fn best_constant(shares: &[f64]) -> f64 {
    let error = |c: f64| shares.iter().map(|s| (s / c - 1.0).abs()).sum::<f64>() / shares.len() as f64;
    // The error is piecewise monotone between the shares themselves, so one of them is best.
    shares.iter().map(|c| error(*c)).fold(f64::INFINITY, f64::min)
}

impl Report {
    /// Every row on a line of its own.
    pub fn listed(&self) -> String {
        self.rows.iter().fold(String::new(), |all, row| all + row + "\n")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "step time             rows   mape   bias  median |ln|     p90   best constant MFU   one per chip and format"
        )?;
        for l in &self.steps {
            let Errors { n, median, p90, bias } = l.errors;
            let [mape, one, each] = [l.mape, l.constant, l.constant_each].map(|share| share * 100.0);
            write!(f, "{:<26} {n:>4} {mape:>6.2}% {bias:>+6.3} {median:>10.3} {p90:>9.3}", l.group)?;
            writeln!(f, " {one:>18.2}% {each:>18.2}%")?;
        }
        writeln!(f, "\nmemory                rows   mean error   worst")?;
        for (file, n, mean, worst) in &self.memory {
            writeln!(f, "{file:<20} {n:>5} {:>11.2}% {:>+7.1}%", mean * 100.0, worst * 100.0)?;
        }
        writeln!(
            f,
            "out of memory: {} of {} called so; {} of {} that ran called so",
            self.caught.0,
            self.caught.1,
            self.false_alarms.len(),
            self.ran
        )?;
        for alarm in &self.false_alarms {
            writeln!(f, "  {alarm}")?;
        }
        skipped(f, &self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_constant_is_one_of_the_shares() {
        // Shares 0.3, 0.4 and 0.5: 0.4 is off by a quarter twice and right once.
        assert!((best_constant(&[0.3, 0.4, 0.5]) - (0.25 + 0.0 + 0.25) / 3.0).abs() < 1e-12);
        assert_eq!(best_constant(&[0.42, 0.42]), 0.0);
    }
}
