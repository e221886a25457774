//! The axes along which the winner may change, and where: a grid to see that it does, bisection to see where.
//!
//! $$ w(x) = \operatorname{arg\,min}_k s_k(x) \qquad x^{*}:\; w(x^{*}_-) \ne w(x^{*}_+) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | x | at | - | the axis, in equal factors |
//! | s_k | scores | - | score of contender k, less is better; none where it cannot do it |
//! | w | - | 1 | who wins; nobody where none can |
//!
//! Ignores: a winner that comes and goes between two points of the grid, and between them whoever is more than [`FAR`] times as dear at both.

use super::{Candidate, candidate};
use crate::desk::prelude::*;
use crate::plan::in_order;
use crate::sides::{apart, too_close};
use rackmath_theory::plan::{Bound, Objective, Question, Traffic};

/// A place where the best hardware changes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Flip {
    /// Along what: `tok_s_per_user`, `requests_per_s` or `prompt_tokens`.
    pub axis: String,
    /// Where it stands in the question; none when the question does not say.
    pub now: Option<f64>,
    /// Where the winner changes.
    pub at: f64,
    /// Where it has settled, when several take turns in between.
    pub until: Option<f64>,
    /// Who takes turns in between.
    pub between: Vec<String>,
    /// Who wins below; none when nothing can.
    pub below: Option<String>,
    /// Who wins above; none when nothing can.
    pub above: Option<String>,
    /// From where those that change places are within the uncertainty, as far as was looked.
    pub close_from: Option<f64>,
    /// To where.
    pub close_to: Option<f64>,
}

/// Contenders for which every length is worked out anew.
pub(super) const CONTENDERS: usize = 6;

/// Changes along all axes.
pub(super) fn flips(catalog: &Catalog, all: &[Candidate], effort: &Effort) -> Result<Vec<Flip>, Error> {
    let mut found = Vec::new();
    let Some(first) = all.first() else { return Ok(found) };
    let q = first.worked.question;
    let known: Vec<_> = all.iter().map(|c| c.worked.plan(&c.best).evidence).collect();
    // Chips are counted, not predicted to a factor.
    let counted = q.objective == Objective::Chips;
    let width = |i: usize, j: usize| {
        if counted { 0.0 } else { apart(first.worked.scale(), known[i].as_ref(), known[j].as_ref()).throughput }
    };
    // Speed and traffic only change what is asked of the spaces, which are there.
    let asked = |among: &[usize], change: &(dyn Fn(&Question) -> Question + Sync)| {
        in_order(among, effort, |k| score(&all[*k], &change(&all[*k].worked.question)))
    };
    let speed = |x: f64| move |q: &Question| Question { limits: q.limits.with(Bound::Tpot, Some(1.0 / x)), ..*q };
    let now = q.limits.get(Bound::Tpot).map(f64::recip);
    let grid = places(now.unwrap_or(1.0 / first.best.estimate.tpot), -8, 8, 2.0);
    let changes = crossings(&grid, all.len(), &width, |x, among| asked(among, &speed(x)))?;
    named(&mut found, "tok_s_per_user", now, all, &changes);
    if let Traffic::Rate(rate) = q.traffic {
        let traffic = |x: f64| move |q: &Question| Question { traffic: Traffic::Rate(x), ..*q };
        let grid = places(rate, -8, 8, 2.0);
        let changes = crossings(&grid, all.len(), &width, |x, among| asked(among, &traffic(x)))?;
        named(&mut found, "requests_per_s", Some(rate), all, &changes);
    }
    let few = &all[..all.len().min(CONTENDERS)];
    let isl = first.worked.prompt();
    let lengths = |x: f64, among: &[usize]| {
        in_order(among, effort, |k| {
            let c = &few[*k];
            let request = crate::plan::Request { isl: Some(x), ..c.request.clone() };
            let then = candidate(catalog, &request, &c.name, effort)?;
            Ok(then.ok().map(|then| score(&then, &then.worked.question)).transpose()?.flatten())
        })
    };
    let grid: Vec<f64> = places(isl, -4, 5, 1.0).into_iter().filter(|x| *x >= 1.0).collect();
    let changes = crossings(&grid, few.len(), &width, lengths)?;
    named(&mut found, "prompt_tokens", Some(isl), few, &changes);
    Ok(found)
}

/// Places around one, `per` to a doubling.
fn places(around: f64, from: i32, to: i32, per: f64) -> Vec<f64> {
    (from..=to).map(|k| around * float::pow(2.0, f64::from(k) / per)).collect()
}

/// The score of the best under a question, as an amount of which less is better.
fn score(c: &Candidate, q: &Question) -> Result<Option<f64>, Error> {
    let Some(best) = c.worked.best(q)? else { return Ok(None) };
    let estimate = best.estimate;
    Ok(Some(match q.objective {
        Objective::Throughput => 1.0 / estimate.throughput,
        other => other.score(&estimate),
    }))
}

/// Changes nearer to each other than this factor are one stretch in which several take turns.
const STRETCH: f64 = 1.25;

fn named(found: &mut Vec<Flip>, axis: &str, now: Option<f64>, all: &[Candidate], crossings: &[Crossing]) {
    let name = |k: Option<usize>| k.map(|k| all[k].name.clone());
    // To where nothing can do it is news of its own.
    let one = |a: &Crossing, b: &Crossing| b.at < a.at * STRETCH && a.to.is_some() && b.to.is_some();
    for turns in crossings.chunk_by(one) {
        let (first, last) = (&turns[0], &turns[turns.len() - 1]);
        let mut between: Vec<String> = turns.iter().skip(1).filter_map(|c| name(c.from)).collect();
        between.sort();
        between.dedup();
        let low = turns.iter().filter_map(|c| Some(c.close?.0)).min_by(f64::total_cmp);
        let high = turns.iter().filter_map(|c| Some(c.close?.1)).max_by(f64::total_cmp);
        found.push(Flip {
            axis: axis.into(),
            now,
            at: first.at,
            until: (turns.len() > 1).then_some(last.at),
            between,
            below: name(first.from),
            above: name(last.to),
            close_from: low,
            close_to: high,
        });
    }
}

/// Scores of all contenders at one place.
type Scores = Vec<Option<f64>>;

/// Half width of the interval of the ratio of two contenders' scores.
type Width<'a> = &'a dyn Fn(usize, usize) -> f64;

/// A change of the winner.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Crossing {
    at: f64,
    /// Who wins below; nobody when none can.
    from: Option<usize>,
    to: Option<usize>,
    /// Around it, from where to where on the grid the two are within their uncertainty; none when they never are.
    close: Option<(f64, f64)>,
}

/// Halvings of an interval of the grid: a thousandth of its factor is left.
const HALVINGS: usize = 10;

/// Times the best score at which nobody comes to win before the next place of the grid.
pub(super) const FAR: f64 = 2.0;

/// All changes along a grid of increasing places, among so many. `scores` are those of the contenders it is given.
fn crossings(
    grid: &[f64],
    contenders: usize,
    width: Width<'_>,
    scores: impl Fn(f64, &[usize]) -> Result<Scores, Error>,
) -> Result<Vec<Crossing>, Error> {
    let everybody: Vec<usize> = (0..contenders).collect();
    let all = grid.iter().map(|x| scores(*x, &everybody)).collect::<Result<Vec<_>, _>>()?;
    let mut found = Vec::new();
    for (i, pair) in all.windows(2).enumerate() {
        let (mut low, high) = (grid[i], grid[i + 1]);
        let (mut from, last) = (winner(&pair[0]), winner(&pair[1]));
        let near = |s: &Scores, k: usize| {
            let best = winner(s).and_then(|w| s[w]);
            s[k].zip(best).is_some_and(|(own, best)| own <= FAR * best)
        };
        let among: Vec<usize> = everybody.iter().copied().filter(|k| pair.iter().any(|s| near(s, *k))).collect();
        // A third may win in between: go on from where it takes over.
        for _ in 0..=contenders {
            if from == last {
                break;
            }
            let (mut a, mut b, mut to) = (low, high, last);
            for _ in 0..HALVINGS {
                let middle = (a * b).sqrt();
                let here = winner(&scores(middle, &among)?).map(|place| among[place]);
                if here == from {
                    a = middle;
                } else {
                    (b, to) = (middle, here);
                }
            }
            found.push(Crossing { at: b, from, to, close: close(grid, (&all, width), (i, b), from, to) });
            (low, from) = (b, to);
        }
    }
    Ok(found)
}

/// The best of the scores; of equals the first.
fn winner(scores: &Scores) -> Option<usize> {
    let known = scores.iter().enumerate().filter_map(|(k, s)| Some((k, (*s)?)));
    known.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(k, _)| k)
}

fn close(
    grid: &[f64],
    (all, width): (&[Scores], Width<'_>),
    (at, here): (usize, f64),
    from: Option<usize>,
    to: Option<usize>,
) -> Option<(f64, f64)> {
    let near = |i: usize| {
        let (a, b) = (all[i][from?]?, all[i][to?]?);
        too_close(a, b, width(from?, to?)).then_some(grid[i])
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

    fn crossed(n: usize, score: impl Fn(usize, f64) -> Option<f64>) -> Vec<Crossing> {
        let scores = |x: f64, among: &[usize]| Ok(among.iter().map(|k| score(*k, x)).collect());
        crossings(&grid(), n, &|_, _| 0.1, scores).unwrap()
    }

    #[test]
    fn the_winner_changes_where_scores_are_equal_also_in_between_and_to_nobody() {
        // 100 against 2 x: at 50.
        let all = crossed(3, |k, x| [Some(2.0 * x), Some(100.0), None][k]);
        assert!(all.len() == 1 && (all[0].at / 50.0 - 1.0).abs() < 2e-3, "{all:?}");
        assert_eq!((all[0].from, all[0].to, all[0].close), (Some(0), Some(1), None));
        // Slopes 3, 2 and 1 with starts 0, 40 and 90: the middle one wins from 40 to 50, inside 32 to 64.
        let lines = [(3.0, 0.0), (2.0, 40.0), (1.0, 90.0)];
        let all = crossed(3, |k, x| Some(lines[k].0 * x + lines[k].1));
        let words: Vec<_> = all.iter().map(|c| (c.from, c.to, c.at.round())).collect();
        assert_eq!(words, [(Some(0), Some(1), 40.0), (Some(1), Some(2), 50.0)]);
        let all = crossed(1, |_, x| (x < 100.0).then_some(1.0));
        assert!(all.len() == 1 && all[0].to.is_none() && (all[0].at / 100.0 - 1.0).abs() < 2e-3);
    }

    proptest! {
        #[test]
        fn every_crossing_of_lines_is_where_two_are_equal(lines in prop::collection::vec((0.0..10.0_f64, 0.0..1e5_f64), 2..6)) {
            let value = |k: usize, x: f64| lines[k].0 * x + lines[k].1;
            let all = crossed(lines.len(), |k, x| Some(value(k, x)));
            for c in &all {
                let (a, b) = (value(c.from.unwrap(), c.at), value(c.to.unwrap(), c.at));
                prop_assert!((a / b - 1.0).abs() < 5e-3, "{c:?}: {a} and {b}");
            }
            // Slopes only fall along the lower envelope.
            prop_assert!(all.iter().all(|c| lines[c.to.unwrap()].0 <= lines[c.from.unwrap()].0));
        }
    }
}
