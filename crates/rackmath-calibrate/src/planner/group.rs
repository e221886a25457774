//! One group of configurations that answer the same question, and what each predictor would have chosen.

use super::rank::{Frontier, ladder, regret};
use super::rows::{Configuration, Layout, Question, Seen};
use rackmath_theory::stats::spearman;
use std::collections::BTreeMap;

/// Levels of interactivity at which a choice is asked for.
pub const LEVELS: usize = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Chooser {
    /// The estimate, as `plan` makes it.
    Ours,
    /// The data sheet: every kernel at its roofline, links and host free.
    Roofline,
    MostChips,
    FewestChips,
    /// Whoever cuts layers least.
    SmallestTp,
}

impl Chooser {
    /// All of them, the planner first.
    pub const ALL: [Self; 5] = [Self::Ours, Self::Roofline, Self::MostChips, Self::FewestChips, Self::SmallestTp];

    /// The words of a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "rackmath",
            Self::Roofline => "data-sheet roofline",
            Self::MostChips => "most chips",
            Self::FewestChips => "fewest chips",
            Self::SmallestTp => "smallest TP",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Predicted {
    /// What ran and was measured.
    pub configuration: Configuration,
    pub ours: Seen,
    /// The data sheet's.
    pub roofline: Seen,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Output tokens a second that a user wants at least.
    pub interactivity: f64,
    /// What was chosen, and its measured throughput.
    pub chosen: (Layout, f64),
    /// What was best, and its measured throughput.
    pub best: (Layout, f64),
}

impl Choice {
    /// Share of the best throughput given away.
    pub fn regret(&self) -> f64 {
        regret(self.chosen.1, self.best.1)
    }
}

/// Which layouts compete at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// All that were measured at this interactivity or a higher one.
    Reaching,
    /// Those measured on both sides of it.
    Spanning,
}

/// A question and its configurations.
#[derive(Clone, Debug)]
pub struct Group {
    /// What was asked.
    pub question: Question,
    /// What was measured.
    pub rows: Vec<Predicted>,
}

impl Group {
    fn frontiers(&self, of: impl Fn(&Predicted) -> Seen) -> BTreeMap<Layout, Frontier> {
        let mut points: BTreeMap<Layout, Vec<(f64, f64)>> = BTreeMap::new();
        for row in &self.rows {
            let seen = of(row);
            points.entry(row.configuration.layout()).or_default().push((1e3 / seen.tpot, row.configuration.rate(seen)));
        }
        points.into_iter().filter_map(|(layout, points)| Some((layout, Frontier::of(points)?))).collect()
    }

    /// Layouts that were measured.
    pub fn layouts(&self) -> usize {
        self.frontiers(|row| row.configuration.measured).len()
    }

    /// Choices down the ladder; none where fewer than two layouts compete.
    pub fn choices(&self, chooser: Chooser, among: Among) -> Vec<Choice> {
        let measured = self.frontiers(|row| row.configuration.measured);
        if measured.len() < 2 {
            return Vec::new();
        }
        let predicted = self.frontiers(|row| if chooser == Chooser::Roofline { row.roofline } else { row.ours });
        let mut tops: Vec<f64> = measured.values().map(|f| f.reach().1).collect();
        tops.sort_by(f64::total_cmp);
        let low = measured.values().map(|f| f.reach().0).fold(f64::INFINITY, f64::min);
        let levels = ladder(low, tops[tops.len() - 2], LEVELS);
        levels.into_iter().filter_map(|level| choice(level, chooser, among, &measured, &predicted)).collect()
    }

    /// Rank correlation of throughput per chip, and of time per token, over all configurations.
    pub fn correlations(&self, chooser: Chooser) -> (Option<f64>, Option<f64>) {
        let column = |of: &dyn Fn(&Predicted) -> f64| self.rows.iter().map(of).collect::<Vec<f64>>();
        let predicted = |row: &Predicted| if chooser == Chooser::Roofline { row.roofline } else { row.ours };
        let rate = spearman(
            &column(&|row| row.configuration.rate(row.configuration.measured)),
            &column(&|row| row.configuration.rate(predicted(row))),
        );
        let tpot = spearman(&column(&|row| row.configuration.measured.tpot), &column(&|row| predicted(row).tpot));
        (rate, tpot)
    }
}

fn choice(
    level: f64,
    chooser: Chooser,
    among: Among,
    measured: &BTreeMap<Layout, Frontier>,
    predicted: &BTreeMap<Layout, Frontier>,
) -> Option<Choice> {
    let competing = |f: &&Frontier| among == Among::Reaching || level >= f.reach().0 * (1.0 - 1e-9);
    let there: Vec<(Layout, f64)> =
        measured.iter().filter_map(|(layout, f)| Some((*layout, Some(f).filter(competing)?.at(level)?))).collect();
    if there.len() < 2 {
        return None;
    }
    // Who is thought unable to serve this fast comes after all who can, the fastest of them first.
    let worth = |layout: &Layout| -> (bool, f64) {
        let chips = layout.chips as f64;
        match chooser {
            Chooser::Ours | Chooser::Roofline => {
                let Some(f) = predicted.get(layout) else { return (false, 0.0) };
                f.at(level).map_or((false, f.reach().1), |rate| (true, rate))
            }
            Chooser::MostChips => (true, chips),
            Chooser::FewestChips => (true, -chips),
            Chooser::SmallestTp => (true, -(layout.tp as f64)),
        }
    };
    let better = |a: (bool, f64), b: (bool, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
    let chosen = there.iter().copied().reduce(|a, b| if better(worth(&b.0), worth(&a.0)).is_gt() { b } else { a })?;
    let best = there.iter().copied().reduce(|a, b| if b.1 > a.1 { b } else { a })?;
    Some(Choice { interactivity: level, chosen, best })
}
