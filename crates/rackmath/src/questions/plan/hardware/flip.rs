//! Where the best of several changes along an axis: a grid to see that it does, bisection to see where.
//!
//! $$ w(x) = \operatorname{arg\,min}_k s_k(x) \qquad x^{*}:\; w(x^{*}_-) \ne w(x^{*}_+) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | x | at | - | the axis, in equal factors |
//! | s_k | scores | - | score of contender k, less is better; none where it cannot do it |
//! | w | - | 1 | who wins; nobody where none can |
//!
//! Ignores: a winner that comes and goes between two points of the grid.

use crate::Error;
use crate::estimate::Range;
use crate::sides::too_close;

/// Scores of all contenders at one place.
pub(super) type Scores = Vec<Option<Range>>;

/// A change of the winner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Crossing {
    /// Where.
    pub at: f64,
    /// Who wins below; nobody when none can.
    pub from: Option<usize>,
    /// Who wins above.
    pub to: Option<usize>,
    /// Around it, from where to where on the grid the two are within their uncertainty; none when they never are.
    pub close: Option<(f64, f64)>,
}

/// Halvings of an interval of the grid: a thousandth of its factor is left.
const HALVINGS: usize = 10;

/// All changes along a grid of increasing places.
pub(super) fn crossings(grid: &[f64], scores: impl Fn(f64) -> Result<Scores, Error>) -> Result<Vec<Crossing>, Error> {
    let all = grid.iter().map(|x| scores(*x)).collect::<Result<Vec<_>, _>>()?;
    let mut found = Vec::new();
    for (i, pair) in all.windows(2).enumerate() {
        let (mut low, high) = (grid[i], grid[i + 1]);
        let (mut from, last) = (winner(&pair[0]), winner(&pair[1]));
        // A third may win in between: go on from where it takes over.
        for _ in 0..=pair[0].len() {
            if from == last {
                break;
            }
            let (mut a, mut b, mut to) = (low, high, last);
            for _ in 0..HALVINGS {
                let middle = (a * b).sqrt();
                let here = winner(&scores(middle)?);
                if here == from {
                    a = middle;
                } else {
                    (b, to) = (middle, here);
                }
            }
            found.push(Crossing { at: b, from, to, close: close(grid, &all, (i, b), from, to) });
            (low, from) = (b, to);
        }
    }
    Ok(found)
}

/// The best of the scores; of equals the first.
pub(super) fn winner(scores: &Scores) -> Option<usize> {
    let known = scores.iter().enumerate().filter_map(|(k, s)| Some((k, (*s)?.value)));
    known.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(k, _)| k)
}

fn close(
    grid: &[f64],
    all: &[Scores],
    (at, here): (usize, f64),
    from: Option<usize>,
    to: Option<usize>,
) -> Option<(f64, f64)> {
    let near = |i: usize| match (all[i][from?], all[i][to?]) {
        (Some(a), Some(b)) => too_close(a, b).then_some(grid[i]),
        _ => None,
    };
    let below = (0..=at).rev().map_while(near).last();
    let above = (at + 1..grid.len()).map_while(near).last();
    match (below, above) {
        (None, None) => None,
        (a, b) => Some((a.unwrap_or(here), b.unwrap_or(here))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grid() -> Vec<f64> {
        (0..=20).map(|k| f64::from(1 << k)).collect()
    }

    #[test]
    fn a_fixed_price_and_a_slope_cross_where_they_are_equal() {
        // 100 against 2 x: at 50.
        let scores = |x: f64| Ok(vec![Some(Range::of(2.0 * x, 0.1)), Some(Range::of(100.0, 0.1)), None]);
        let all = crossings(&grid(), scores).unwrap();
        assert!(all.len() == 1 && (all[0].at / 50.0 - 1.0).abs() < 2e-3, "{all:?}");
        assert_eq!((all[0].from, all[0].to, all[0].close), (Some(0), Some(1), None));
    }

    #[test]
    fn a_winner_between_two_points_is_found_when_ends_differ() {
        // Slopes 3, 2 and 1 with starts 0, 40 and 90: the middle one wins from 40 to 50, inside 32 to 64.
        let scores =
            |x: f64| Ok([(3.0, 0.0), (2.0, 40.0), (1.0, 90.0)].map(|(m, b)| Some(Range::of(m * x + b, 0.0))).to_vec());
        let all = crossings(&grid(), scores).unwrap();
        let words: Vec<_> = all.iter().map(|c| (c.from, c.to, c.at.round())).collect();
        assert_eq!(words, [(Some(0), Some(1), 40.0), (Some(1), Some(2), 50.0)]);
    }

    #[test]
    fn where_nobody_can_is_a_change_too() {
        let scores = |x: f64| Ok(vec![(x < 100.0).then(|| Range::of(1.0, 0.0))]);
        let all = crossings(&grid(), scores).unwrap();
        assert!(all.len() == 1 && all[0].to.is_none() && (all[0].at / 100.0 - 1.0).abs() < 2e-3);
    }

    proptest! {
        #[test]
        fn every_crossing_of_lines_is_where_two_are_equal(lines in prop::collection::vec((0.0..10.0_f64, 0.0..1e5_f64), 2..6)) {
            let value = |k: usize, x: f64| lines[k].0 * x + lines[k].1;
            let scores = |x: f64| Ok((0..lines.len()).map(|k| Some(Range::of(value(k, x), 0.0))).collect());
            let all = crossings(&grid(), scores).unwrap();
            for c in &all {
                let (a, b) = (value(c.from.unwrap(), c.at), value(c.to.unwrap(), c.at));
                prop_assert!((a / b - 1.0).abs() < 5e-3, "{c:?}: {a} and {b}");
            }
            // Slopes only fall along the lower envelope.
            prop_assert!(all.iter().all(|c| lines[c.to.unwrap()].0 <= lines[c.from.unwrap()].0));
        }
    }
}
