//! The fewest chips of a machine's kind that hold a run, or end it by a deadline.
//!
//! $$ n^* = \min\{n : \mathrm{fits}(n) \wedge D(n) \le D_{max}\} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | n | chips | 1 | chips on offer: any number up to a scale-up domain, whole domains beyond |
//! | fits | [`Answer::fits`] | - | some layout of at most n chips fits |
//! | D, D_max | `wall_days`, days | d | days of the run on the fastest layout, failures included; the deadline |
//!
//! More chips on offer never hold less and are never slower, because a layout may leave some of them idle: so n is found by
//! doubling and halving, and the number below it is shown not to do. Source: ours.

use super::changes::MOST_CHIPS;
use super::{Answer, Request, answer_on};
use crate::desk::prelude::*;
use crate::desk::remark::Part;
use crate::setting::machine as machine_named;

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unknown {
    /// The fewest chips.
    Chips,
}

/// What is looked for, and by when the run has to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Seek {
    /// What to solve for: the fewest chips that hold the run, or end it in time.
    pub solve: Option<Unknown>,
    /// Days in which the run has to end, failures included.
    #[schemars(extend("x-flag" = "days deadline within"))]
    pub days: Option<f64>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SolvedChips {
    /// The fewest chips; nothing where no number does.
    pub chips: Option<u64>,
    /// The number below that does not do; nothing below one chip.
    pub fewer: Option<u64>,
    /// The deadline.
    pub deadline_days: Option<f64>,
    /// In a sentence.
    pub verdict: Remark,
}

/// Numbers of chips that are asked for: each up to a domain, whole domains beyond.
#[derive(Clone, Copy)]
struct Steps {
    domain: u64,
}

impl Steps {
    fn chips(self, index: u64) -> u64 {
        if index <= self.domain { index } else { self.domain * (index - self.domain + 1) }
    }

    /// The first index of at least so many chips.
    fn index(self, chips: u64) -> u64 {
        if chips <= self.domain { chips } else { chips.div_ceil(self.domain) + self.domain - 1 }
    }
}

/// Answers with the page of the fewest chips.
pub(super) fn answer(catalog: &Catalog, request: &Request, effort: &Effort) -> Result<Answer, Error> {
    let expected = "none: the number of chips is what is looked for";
    refuse_if(request.chips.is_some(), "chips", request.chips.unwrap_or(0), expected)?;
    let days = if_given("days", request.seek.days, 1e-6, 1e6)?;
    let open = Request { search: true, seek: Seek::default(), ..request.clone() };
    let page = |chips: u64| answer_on(catalog, &Request { chips: Some(chips), ..open.clone() }, effort.clone());
    let on = open.on.as_deref().unwrap_or("hgx-h100");
    let system = catalog.system(machine_named(on)?.0)?;
    let steps = Steps { domain: system.levels.first().map_or(1, |l| l.chips).clamp(1, MOST_CHIPS) };
    let (last, mut first) = (steps.index(MOST_CHIPS), Err(Error::said("")));
    for index in (0..17).map(|i| 1u64 << i).take_while(|i| *i <= last) {
        // Degrees that were given need some chips before there is a layout at all.
        first = page(steps.chips(index));
        if first.is_ok() {
            break;
        }
    }
    let mut first = first?;
    refuse_if(days.is_some() && first.run.is_none(), "days", days.unwrap_or(0.0), "{tokens} or {loss} as well")?;
    if !first.fits {
        let needed = first.changes.iter().find(|c| c.what.says == "fits_chips").map(|c| c.what.with.get("chips"));
        let Some(Some(Part::Number(chips))) = needed else {
            let verdict = says("solved_chips_none").with("most", MOST_CHIPS);
            first.solved = Some(SolvedChips { chips: None, fewer: None, deadline_days: days, verdict });
            return Ok(first);
        };
        first = page(*chips as u64)?;
    }
    let on_offer = |a: &Answer| a.request.chips.unwrap_or(a.chips);
    let wall = |a: &Answer| a.run.as_ref().and_then(|r| r.wall_days);
    let meets = |a: &Answer| a.fits && days.is_none_or(|most| wall(a).is_some_and(|d| d <= most));
    let (mut no, mut yes, mut best) = (steps.index(on_offer(&first)) - 1, steps.index(on_offer(&first)), first);
    // What ended below: memory, or the days of the page before.
    let mut slower: Option<f64> = None;
    while !meets(&best) {
        if yes >= last {
            let verdict = says("solved_chips_late").with("most", MOST_CHIPS).with("days", wall(&best));
            let verdict = bound_by_batch(verdict.with("deadline", days), &best, &|batch| {
                let larger = Request { global_batch: Some(batch), chips: Some(steps.chips(yes)), ..open.clone() };
                answer_on(catalog, &larger, effort.clone())
            });
            best.solved = Some(SolvedChips { chips: None, fewer: None, deadline_days: days, verdict });
            return Ok(best);
        }
        (slower, no) = (wall(&best), yes);
        yes = (yes * 2).min(last);
        best = page(steps.chips(yes))?;
    }
    while slower.is_some() && yes - no > 1 {
        let middle = u64::midpoint(no, yes);
        let tried = page(steps.chips(middle))?;
        if meets(&tried) {
            (yes, best) = (middle, tried);
        } else {
            (no, slower) = (middle, wall(&tried));
        }
    }
    let (chips, fewer) = (steps.chips(yes), Some(steps.chips(no)).filter(|n| *n > 0));
    let verdict =
        says("solved_chips").with("chips", chips).with("machine", &*system.chip.name).with("narrow", !open.wide);
    let verdict = verdict.with("days", wall(&best).filter(|_| days.is_some())).with("deadline", days);
    let verdict =
        verdict.with("fewer", fewer).with("slower", slower).with("memory", slower.is_none() && fewer.is_some());
    best.solved = Some(SolvedChips { chips: Some(chips), fewer, deadline_days: days, verdict });
    Ok(best)
}

/// With so many times the sequences a step, chips that wait for work show.
const LARGER: u64 = 16;

/// Days that are this much fewer with a larger batch say that the batch binds.
const BINDS: f64 = 0.7;

/// What is said of a run that no number of chips ends in time, and that its batch is what binds, where that is so.
fn bound_by_batch(said: Remark, best: &Answer, page: &dyn Fn(u64) -> Result<Answer, Error>) -> Remark {
    let batch = best.micro_batches * best.with_number("micro_batch") * best.with_number("dp");
    let days = |a: &Answer| a.run.as_ref().and_then(|r| r.wall_days);
    let larger = page(batch * LARGER).ok().filter(|a| a.fits);
    let (Some(now), Some(then)) = (days(best), larger.as_ref().and_then(days)) else { return said };
    if then > BINDS * now {
        return said;
    }
    said.with("batch", batch).with("larger", batch * LARGER).with("then", then)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_binds_is_named_and_a_larger_one_does_what_is_said() {
        let seek = Seek { solve: None, days: Some(5.0) };
        let request = Request { tokens: Some(15e12), seek, ..asked("llama-3.1-70b", "8xh100", 256) };
        let (_, found) = solved(&request);
        let number = |name: &str| match found.verdict.with.get(name) {
            Some(Part::Number(x)) => *x,
            other => panic!("{name}: {other:?} in {:?}", found.verdict),
        };
        assert_eq!((number("batch"), number("larger")), (256.0, 4096.0));
        assert!(number("then") < 0.5 * number("days"), "{:?}", found.verdict);
    }

    fn asked(model: &str, on: &str, batch: u64) -> Request {
        let (model, on) = (Some(model.to_owned()), Some(on.to_owned()));
        Request { model, on, global_batch: Some(batch), ..Request::default() }
    }

    fn solved(request: &Request) -> (Answer, SolvedChips) {
        let seek = Seek { solve: Some(Unknown::Chips), ..request.seek };
        let request = Request { seek, ..request.clone() };
        let page = answer_on(&rackmath_catalog::embedded(), &request, Effort::default()).unwrap();
        let found = page.solved.clone().unwrap();
        (page, found)
    }

    #[test]
    fn the_fewest_chips_hold_the_run_and_fewer_do_not() {
        let catalog = rackmath_catalog::embedded();
        for (model, batch) in [("llama-3.1-8b", 64), ("llama-3.1-70b", 64), ("qwen3-30b-a3b", 64)] {
            let request = asked(model, "8xh100", batch);
            let (page, found) = solved(&request);
            let chips = found.chips.unwrap();
            assert!(page.fits && page.chips <= chips, "{model}: {chips}");
            // Brute force: no smaller number of chips that can be had holds it.
            let steps = Steps { domain: 8 };
            for n in (1..steps.index(chips)).map(|i| steps.chips(i)) {
                let one = Request { chips: Some(n), search: true, ..request.clone() };
                let fits = answer_on(&catalog, &one, Effort::default()).is_ok_and(|a| a.fits);
                assert!(!fits, "{model}: {n} chips hold it, {chips} were said");
            }
        }
    }

    #[test]
    fn a_deadline_asks_for_as_many_chips_as_meet_it() {
        let days = Some(20.0);
        let request =
            Request { tokens: Some(3e11), seek: Seek { solve: None, days }, ..asked("llama-3.1-8b", "8xh100", 256) };
        let (page, found) = solved(&request);
        let wall = |a: &Answer| a.run.as_ref().unwrap().wall_days.unwrap();
        assert!(wall(&page) <= 20.0, "{}", wall(&page));
        let fewer = Request { chips: found.fewer, search: true, seek: Seek::default(), ..request.clone() };
        let before = answer_on(&rackmath_catalog::embedded(), &fewer, Effort::default()).unwrap();
        assert!(!before.fits || wall(&before) > 20.0, "{found:?}");
        let without = Request { tokens: None, ..request };
        let seek = Seek { solve: Some(Unknown::Chips), ..without.seek };
        let refused = answer_on(&rackmath_catalog::embedded(), &Request { seek, ..without }, Effort::default());
        assert!(refused.is_err_and(|e| e.to_string().contains("days")));
    }

    #[test]
    fn steps_are_single_chips_within_a_domain_and_whole_domains_beyond() {
        let s = Steps { domain: 8 };
        let all: Vec<u64> = (1..=11).map(|i| s.chips(i)).collect();
        assert_eq!(all, [1, 2, 3, 4, 5, 6, 7, 8, 16, 24, 32]);
        assert!((1..200).all(|n| s.chips(s.index(n)) >= n && s.index(s.chips(n)) == n));
    }
}
