//! Passes as they were measured: a table that is read between its points and nowhere else.
//!
//! $$ t(n, L, p, S) = \sum_{c} w_c\,t_c \qquad \sum_c w_c = 1,\ w_c \ge 0 $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | n, L | sequences, context | 1, tokens | sequences that decode, tokens cached of each |
//! | p, S | prompt, past | tokens | prompt tokens in the pass, tokens cached before them |
//! | c, w | corners, weights | 1 | the measured points around the pass, weighted by how near they are along each axis |
//!
//! The points lie on a grid that may have holes. A pass is covered where every corner of its cell that counts was measured;
//! everywhere else it is refused with the first axis or corner that is missing. Without decoding sequences there is no
//! context, and without prompt tokens no past: such points hold for any. Groups that differ enter by their means.
//! Assumes: between neighbours time is a straight line along each axis. Ignores: how many prompts the tokens belong to.

use crate::machine::timer::{Cost, StepTimer, Work};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub sequences: f64,
    pub context: f64,
    pub prompt: f64,
    pub past: f64,
    pub cost: Cost,
}

#[derive(Clone, Debug)]
pub struct Measured {
    axes: [Vec<f64>; 4],
    cells: Vec<Option<Cost>>,
    drafts: f64,
}

const AXES: [&str; 4] = ["sequences", "context", "prompt tokens", "tokens before the prompt"];

/// Why a pass is not covered; a hole lies within the range, but a neighbour is missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Uncovered {
    Beyond { axis: &'static str, value: f64, low: f64, high: f64 },
    Hole { at: [f64; 4] },
    Drafts { wanted: f64, measured: f64 },
}

impl fmt::Display for Uncovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beyond { axis, value, low, high } => write!(f, "{axis} {value}: measured from {low} to {high}"),
            Self::Hole { at: [n, l, p, s] } => {
                write!(f, "nothing was measured at {n} sequences of {l} tokens with {p} prompt tokens after {s}")
            }
            Self::Drafts { wanted, measured } => write!(f, "{wanted} drafts: measured with {measured}"),
        }
    }
}

/// What does not exist has no length: one place for all passes without sequences, one for all without prompts.
fn plain([n, l, p, s]: [f64; 4]) -> [f64; 4] {
    [n, if n > 0.0 { l } else { 0.0 }, p, if p > 0.0 { s } else { 0.0 }]
}

impl Measured {
    /// A table of points measured with so many drafts. Of two points at one place the last counts.
    pub fn new(points: &[Point], drafts: f64) -> Self {
        let place = |p: &Point| plain([p.sequences, p.context, p.prompt, p.past]);
        let axis = |i: usize| {
            // A length that does not exist is not one of an axis.
            let exists = |at: &[f64; 4]| i.is_multiple_of(2) || at[i - 1] > 0.0;
            let mut all: Vec<f64> = points.iter().map(place).filter(exists).map(|at| at[i]).collect();
            all.sort_by(f64::total_cmp);
            all.dedup();
            if all.is_empty() { vec![0.0] } else { all }
        };
        let axes = [axis(0), axis(1), axis(2), axis(3)];
        let mut table = Self { cells: vec![None; axes.iter().map(Vec::len).product()], axes, drafts };
        for point in points {
            let at = place(point);
            let index = |i: usize| table.axes[i].partition_point(|v| *v < at[i]).min(table.axes[i].len() - 1);
            let cell = table.cell([index(0), index(1), index(2), index(3)]);
            table.cells[cell] = Some(point.cost);
        }
        table
    }

    fn cell(&self, mut at: [usize; 4]) -> usize {
        if self.axes[0][at[0]] <= 0.0 {
            at[1] = 0;
        }
        if self.axes[2][at[2]] <= 0.0 {
            at[3] = 0;
        }
        at.into_iter().zip(&self.axes).fold(0, |cell, (i, axis)| cell * axis.len() + i)
    }

    /// The node at or below a value, and how far the value lies towards the next.
    fn between(&self, axis: usize, value: f64) -> Result<(usize, f64), Uncovered> {
        let nodes = &self.axes[axis];
        let (low, high) = (nodes[0], nodes[nodes.len() - 1]);
        if !(low..=high).contains(&value) {
            return Err(Uncovered::Beyond { axis: AXES[axis], value, low, high });
        }
        let below = nodes.partition_point(|v| *v <= value).max(1) - 1;
        let share = nodes.get(below + 1).map_or(0.0, |above| (value - nodes[below]) / (above - nodes[below]));
        Ok((below, share))
    }
}

impl StepTimer for Measured {
    type Uncovered = Uncovered;

    fn time(&self, work: &Work) -> Result<Cost, Uncovered> {
        let (sequences, prompt, prompts) = (work.sequences(), work.prompt_tokens(), work.prompts());
        if sequences > 0.0 && work.drafts != self.drafts {
            return Err(Uncovered::Drafts { wanted: work.drafts, measured: self.drafts });
        }
        let mean = |sum: f64, of: f64| if of > 0.0 { sum / of } else { 0.0 };
        let context = mean(work.decodes.iter().map(|d| d.sequences * d.context).sum(), sequences);
        let past = mean(work.chunks.iter().map(|c| c.prompts * c.past).sum(), prompts);
        let at = [sequences, context, prompt, past];
        let mut found = [(0, 0.0); 4];
        for (i, value) in at.into_iter().enumerate() {
            // A length that does not exist needs no place.
            if i.is_multiple_of(2) || at[i - 1] > 0.0 {
                found[i] = self.between(i, value)?;
            }
        }
        let mut cost = Cost::default();
        for corner in 0..16_usize {
            let up = |i: usize| corner >> i & 1;
            let weight: f64 = (0..4).map(|i| if up(i) == 1 { found[i].1 } else { 1.0 - found[i].1 }).product();
            if weight > 0.0 {
                let index = |i: usize| found[i].0 + up(i);
                let nodes = [index(0), index(1), index(2), index(3)];
                let place = |i: usize| self.axes[i][nodes[i]];
                let hole = Uncovered::Hole { at: plain([place(0), place(1), place(2), place(3)]) };
                cost.plus(self.cells[self.cell(nodes)].as_ref().ok_or(hole)?, weight);
            }
        }
        Ok(cost)
    }
}
