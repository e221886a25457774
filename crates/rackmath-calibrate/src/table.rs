//! How far predictions are from measurements, group by group: the one score of every topic.

use rackmath_spec::{Residual, SpecError};
use rackmath_theory::stats::{median, quantile};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The distances |ln(predicted / measured)| of a group of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    pub fit: Residual,
    /// The middle of the signed errors, the upper one of two.
    pub bias: f64,
}

impl Errors {
    /// Of errors ln(predicted / measured), or of their distances; nothing when there are none.
    pub fn of(errors: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = errors.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let bias = *sorted.get(sorted.len() / 2)?;
        let distances: Vec<f64> = sorted.iter().map(|e| e.abs()).collect();
        let fit = Residual { rows: sorted.len() as u64, median: median(&distances)?, p90: quantile(&distances, 0.9)? };
        Some(Self { fit, bias })
    }
}

/// As the `fit` of a catalogue file.
pub fn fit_line(fit: Residual) -> String {
    format!("fit = {{ rows = {}, median = {:.3}, p90 = {:.3} }}\n", fit.rows, fit.median, fit.p90)
}

/// A line: what the rows have in common, and their distances.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub group: Vec<String>,
    pub fit: Residual,
}

/// Lines under headings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Names of the labels; a last one called bias is filled in.
    pub headings: Vec<&'static str>,
    pub lines: Vec<Line>,
    /// Rows that could not be predicted, by reason.
    pub skipped: BTreeMap<String, usize>,
}

impl Table {
    pub fn new(headings: &[&'static str], skipped: &BTreeMap<String, usize>) -> Self {
        Self { headings: headings.to_vec(), lines: Vec::new(), skipped: skipped.clone() }
    }

    /// Rows with their errors; those that cannot be predicted are counted by reason.
    pub fn scored<'a, R, E: ToString>(
        &mut self,
        rows: &'a [R],
        mut error: impl FnMut(&R) -> Result<f64, E>,
    ) -> Vec<(&'a R, f64)> {
        let mut scored = Vec::new();
        for row in rows {
            match error(row) {
                Ok(error) => scored.push((row, error)),
                Err(reason) => *self.skipped.entry(reason.to_string()).or_default() += 1,
            }
        }
        scored
    }

    /// Groups errors by their labels, in the order of the labels.
    pub fn group<G: IntoIterator<Item: ToString>>(&mut self, rows: impl IntoIterator<Item = (G, f64)>) {
        let mut groups: BTreeMap<Vec<String>, Vec<f64>> = BTreeMap::new();
        for (group, error) in rows {
            groups.entry(group.into_iter().map(|label| label.to_string()).collect()).or_default().push(error);
        }
        for (group, errors) in groups {
            self.push(group, errors);
        }
    }

    pub fn push(&mut self, group: impl IntoIterator<Item: ToString>, errors: impl IntoIterator<Item = f64>) {
        if let Some(errors) = Errors::of(errors) {
            let mut group: Vec<String> = group.into_iter().map(|label| label.to_string()).collect();
            if self.headings.last() == Some(&"bias") {
                group.push(format!("{:+.3}", errors.bias));
            }
            self.lines.push(Line { group, fit: errors.fit });
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.headings.len();
        let cell = |line: &Line, i: usize| line.group.get(i).map_or(0, |c| c.chars().count());
        let widths: Vec<usize> = (0..columns)
            .map(|i| self.lines.iter().map(|l| cell(l, i)).max().unwrap_or(0).max(self.headings[i].len()))
            .collect();
        for (heading, width) in self.headings.iter().zip(&widths) {
            write!(f, "{heading:width$}  ")?;
        }
        writeln!(f, "{:>5}  {:>6}  {:>6}", "n", "median", "p90")?;
        for line in &self.lines {
            for (i, width) in widths.iter().enumerate() {
                write!(f, "{:width$}  ", line.group.get(i).map_or("", String::as_str))?;
            }
            writeln!(f, "{:>5}  {:>6.3}  {:>6.3}", line.fit.rows, line.fit.median, line.fit.p90)?;
        }
        skipped(f, &self.skipped)
    }
}

pub fn skipped(f: &mut fmt::Formatter<'_>, reasons: &BTreeMap<String, usize>) -> fmt::Result {
    reasons.iter().try_for_each(|(reason, n)| writeln!(f, "skipped {n}: {reason}"))
}

/// A heading of a catalogue file and the lines under it; what has no value is left out.
pub fn toml(heading: &str, lines: &[(&str, String)]) -> String {
    let given = lines.iter().filter(|(_, value)| !value.is_empty());
    given.fold(format!("{heading}\n"), |text, (name, value)| text + name + " = " + value + "\n")
}

/// Three significant digits, as constants are printed.
pub fn rounded(x: f64) -> f64 {
    format!("{x:.2e}").parse().unwrap_or(x)
}

/// Leaves every group out once: what is fitted on the other rows, and how far it is from the group's.
pub fn left_out<'a, R, K: Ord, F>(
    rows: &[&'a R],
    group: impl Fn(&'a R) -> K,
    fit: impl Fn(&[&'a R]) -> Result<F, SpecError>,
    error: impl Fn(&F, &R) -> Result<f64, SpecError>,
) -> Result<Vec<(&'a R, f64)>, SpecError> {
    let groups: BTreeSet<K> = rows.iter().map(|r| group(r)).collect();
    let mut errors = Vec::new();
    for one in groups {
        let (out, kept): (Vec<&R>, Vec<&R>) = rows.iter().partition(|r| group(r) == one);
        if !kept.is_empty() {
            let fitted = fit(&kept)?;
            for row in out {
                errors.push((row, error(&fitted, row)?));
            }
        }
    }
    Ok(errors)
}
