//! The axes along which the winner may change.

use super::flip::{Crossing, crossings};
use super::{Candidate, candidate};
use crate::Error;
use crate::estimate::Range;
use crate::plan::in_order;
use rackmath_spec::Catalog;
use rackmath_theory::plan::{Bound, Objective, Question, Traffic};
use rackmath_units::{Effort, float};
use schemars::JsonSchema;
use serde::Serialize;

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
const CONTENDERS: usize = 6;

/// Changes along all axes.
pub(super) fn flips(catalog: &Catalog, all: &[Candidate], effort: &Effort) -> Result<Vec<Flip>, Error> {
    let mut found = Vec::new();
    let Some(first) = all.first() else { return Ok(found) };
    let q = *first.worked.question();
    // Speed and traffic only change what is asked of the spaces, which are there.
    let asked = |change: &(dyn Fn(&Question) -> Question + Sync)| {
        in_order(all, effort, |c| score(c, &change(c.worked.question())))
    };
    let speed = |x: f64| move |q: &Question| Question { limits: q.limits.with(Bound::Tpot, Some(1.0 / x)), ..*q };
    let now = q.limits.get(Bound::Tpot).map(f64::recip);
    let grid = places(now.unwrap_or(1.0 / first.best.estimate.tpot), -8, 8, 2.0);
    named(&mut found, "tok_s_per_user", now, all, &crossings(&grid, |x| asked(&speed(x)))?);
    if let Traffic::Rate(rate) = q.traffic {
        let traffic = |x: f64| move |q: &Question| Question { traffic: Traffic::Rate(x), ..*q };
        let grid = places(rate, -8, 8, 2.0);
        named(&mut found, "requests_per_s", Some(rate), all, &crossings(&grid, |x| asked(&traffic(x)))?);
    }
    let few = &all[..all.len().min(CONTENDERS)];
    let isl = first.worked.prompt();
    let lengths = |x: f64| {
        in_order(few, effort, |c| {
            let request = crate::plan::Request { isl: Some(x), ..c.request.clone() };
            let then = candidate(catalog, &request, &c.name, effort)?;
            Ok(then.ok().map(|then| score(&then, then.worked.question())).transpose()?.flatten())
        })
    };
    let grid: Vec<f64> = places(isl, -4, 5, 1.0).into_iter().filter(|x| *x >= 1.0).collect();
    named(&mut found, "prompt_tokens", Some(isl), few, &crossings(&grid, lengths)?);
    Ok(found)
}

/// Places around one, `per` to a doubling.
fn places(around: f64, from: i32, to: i32, per: f64) -> Vec<f64> {
    (from..=to).map(|k| around * float::pow(2.0, f64::from(k) / per)).collect()
}

/// The score of the best under a question, as an amount of which less is better.
fn score(c: &Candidate, q: &Question) -> Result<Option<Range>, Error> {
    let Some(best) = c.worked.best(q)? else { return Ok(None) };
    let estimate = best.estimate;
    let value = match q.objective {
        Objective::Throughput => 1.0 / estimate.throughput,
        other => other.score(&estimate),
    };
    // Chips are counted, not predicted to a factor.
    let spread = if q.objective == Objective::Chips { 0.0 } else { c.worked.spread() };
    Ok(Some(Range::of(value, spread)))
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
