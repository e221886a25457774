//! How far predictions are from measurements, group by group.

use rackmath_theory::stats::{median, quantile};
use std::collections::BTreeMap;
use std::fmt;

/// The distances of a group of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// Rows.
    pub n: usize,
    /// Half of the rows are nearer than this.
    pub median: f64,
    /// Nine in ten are nearer than this.
    pub p90: f64,
}

impl Errors {
    /// Of distances |ln(predicted / measured)|; nothing when there are none.
    pub fn of(distances: &[f64]) -> Option<Self> {
        Some(Self { n: distances.len(), median: median(distances)?, p90: quantile(distances, 0.9)? })
    }
}

/// A line: what the rows have in common, and their distances.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The group's labels, coarse to fine.
    pub group: Vec<String>,
    /// Its distances.
    pub errors: Errors,
}

/// Lines under headings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Names of the labels.
    pub headings: Vec<&'static str>,
    pub lines: Vec<Line>,
    /// Rows that could not be predicted, by reason.
    pub skipped: BTreeMap<String, usize>,
}

impl Table {
    /// A table without lines.
    pub fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), ..Self::default() }
    }

    /// Groups distances by their labels, in the order of the labels.
    pub fn group(&mut self, rows: impl Iterator<Item = (Vec<String>, f64)>) {
        let mut groups: BTreeMap<Vec<String>, Vec<f64>> = BTreeMap::new();
        for (group, distance) in rows {
            groups.entry(group).or_default().push(distance);
        }
        for (group, distances) in groups {
            self.push(group, &distances);
        }
    }

    /// Adds a line; no rows, no line.
    pub fn push(&mut self, group: Vec<String>, distances: &[f64]) {
        if let Some(errors) = Errors::of(distances) {
            self.lines.push(Line { group, errors });
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
            writeln!(f, "{:>5}  {:>6.3}  {:>6.3}", line.errors.n, line.errors.median, line.errors.p90)?;
        }
        for (reason, n) in &self.skipped {
            writeln!(f, "skipped {n}: {reason}")?;
        }
        Ok(())
    }
}
