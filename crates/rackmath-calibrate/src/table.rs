//! How far predictions are from measurements, group by group.

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
        let mut sorted = distances.to_vec();
        sorted.sort_by(f64::total_cmp);
        // Between two rows the quantile is interpolated, as spreadsheets do.
        let quantile = |q: f64| {
            let position = q * (sorted.len() - 1) as f64;
            let (below, part) = (position.floor() as usize, position.fract());
            let above = (below + 1).min(sorted.len() - 1);
            sorted[below] * (1.0 - part) + sorted[above] * part
        };
        (!sorted.is_empty()).then(|| Self { n: sorted.len(), median: quantile(0.5), p90: quantile(0.9) })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_short_list() {
        let errors = Errors::of(&[0.4, 0.1, 0.2, 0.3, 0.0]).unwrap();
        assert_eq!((errors.n, errors.median), (5, 0.2));
        assert!((errors.p90 - 0.36).abs() < 1e-12);
        assert!(Errors::of(&[]).is_none());
    }
}
