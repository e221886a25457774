//! Flashcards, and problems made at random whose answers come from the same functions as every other answer.
//!
//! A seed names a set of problems, so a set can be given again, to a class or in a test. An answer is right within two
//! percent: the point is the equation, not the third digit.

mod problems;

use crate::desk::prelude::*;
use strum::VariantArray;

/// How far an answer may be off.
pub const TOLERANCE: f64 = 0.02;

/// Which problems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Which topic; all when empty.
    pub topic: Option<Topic>,
    /// Only problems and cards of this claim of the lecture, such as D9.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// Names the set.
    #[educe(Default = 1)]
    pub seed: u64,
    /// Problems, 1 to 50.
    #[schemars(extend("x-flag" = "number -n"))]
    #[educe(Default = 6)]
    pub count: u64,
    /// Answers to check, in order, in the unit each problem asks for; none for one not answered.
    #[schemars(extend("x-flag" = "answers", "x-hyphen" = true))]
    pub given: Vec<Option<f64>>,
}

/// A topic of the lecture, in its order.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
    strum::EnumString,
    strum::VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Topic {
    /// Batch size, latency, cost.
    Batch,
    /// Experts on racks.
    Racks,
    /// Pipelines.
    Pipeline,
    /// Training, reinforcement learning and serving in one budget.
    Lifecycle,
    /// Reading price sheets.
    Prices,
    /// Ciphers and reversible networks.
    Reversible,
}

/// Cards and problems.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The seed.
    pub seed: u64,
    /// Topics there are.
    pub topics: Vec<Topic>,
    /// Cards of the topic.
    pub cards: Vec<Card>,
    /// Problems of the topic.
    pub problems: Vec<Problem>,
    /// Answers that were checked.
    pub answered: usize,
    /// Of which right.
    pub right: usize,
}

/// A card with two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Card {
    /// Its topic.
    pub topic: Topic,
    /// The question.
    pub front: &'static str,
    /// The answer.
    pub back: &'static str,
    /// The claim of the lecture it belongs to, where the numbers are.
    pub claim: &'static str,
}

/// A problem.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Problem {
    /// Its topic.
    pub topic: Topic,
    /// The claim of the lecture it belongs to.
    pub claim: &'static str,
    /// What is asked.
    pub question: String,
    /// The unit of the answer; empty for a bare number.
    pub unit: &'static str,
    /// The equation.
    pub equation: &'static str,
    /// The answer.
    pub answer: f64,
    /// The equation with the values in it, step by step.
    pub working: Vec<String>,
    /// What was given as an answer.
    pub given: Option<f64>,
    /// Whether that is right.
    pub right: Option<bool>,
}

/// Answers.
pub fn answer(_: &Catalog, request: &Request) -> Result<Answer, Error> {
    refuse_if(!(1..=50).contains(&request.count), "count", request.count, "1 to 50 problems")?;
    let (given, most) = (format!("{} answers", request.given.len()), format!("at most {}", request.count));
    refuse_if(request.given.len() as u64 > request.count, "given", given, most)?;
    let claim = request.claim.as_ref().map(|claim| claim.trim().to_uppercase());
    let of = |topic: Topic, its: &str| {
        request.topic.is_none_or(|t| t == topic) && claim.as_deref().is_none_or(|claim| claim == its)
    };
    if let Some(claim) = &claim {
        let made: Vec<&str> = problems::claims(request.topic).collect();
        let expected = format!("a claim with problems: {}{}", made.join(", "), near(claim, made.iter().copied()));
        refuse_if(!made.contains(&claim.as_str()), "claim", format!("\"{claim}\""), expected)?;
    }
    let mut list = problems::make(request.seed, request.count as usize, of);
    for (problem, given) in list.iter_mut().zip(&request.given) {
        problem.given = given.map(|g| asked_for(problem, g));
        problem.right = problem.given.map(|g| is_right(problem.answer, g));
    }
    Ok(Answer {
        seed: request.seed,
        topics: Topic::VARIANTS.to_vec(),
        cards: cards().filter(|c| of(c.topic, c.claim)).collect(),
        answered: list.iter().filter(|p| p.given.is_some()).count(),
        right: list.iter().filter(|p| p.right == Some(true)).count(),
        problems: list,
    })
}

/// All cards in the order of the lecture: topic, claim and front in a line, the back in the next.
fn cards() -> impl Iterator<Item = Card> {
    let mut lines = include_str!("practice/cards.txt").lines();
    std::iter::from_fn(move || {
        let (topic, rest) = lines.next()?.split_once(' ')?;
        let (claim, front) = rest.split_once(' ')?;
        Some(Card { topic: topic.parse().ok()?, claim, front, back: lines.next()? })
    })
}

/// An answer in the unit that is asked for: 20% comes as 0.2, and is 20 where percents are asked for.
fn asked_for(problem: &Problem, given: f64) -> f64 {
    let share = problem.unit == "%" && given.abs() <= 1.0 && problem.answer > 1.0;
    if share { 100.0 * given } else { given }
}

/// Whether an answer is near enough.
pub fn is_right(answer: f64, given: f64) -> bool {
    (given - answer).abs() <= TOLERANCE * answer.abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lecture;

    fn asked(request: &Request) -> Answer {
        answer(&rackmath_catalog::embedded(), request).expect("answered")
    }

    #[test]
    fn cards_and_problems_belong_to_claims_of_the_lecture() {
        let catalog = rackmath_catalog::embedded();
        let claims = lecture::answer(&catalog, &lecture::Request::default()).expect("answered").claims;
        let all = asked(&Request { count: 50, ..Request::default() });
        assert_eq!(all.cards.len(), 27);
        for claim in all.cards.iter().map(|c| c.claim).chain(all.problems.iter().map(|p| p.claim)) {
            assert!(claims.iter().any(|c| c.id == claim), "{claim}");
        }
        for topic in all.topics {
            assert!(all.cards.iter().any(|c| c.topic == topic), "{topic} has no card");
            let only = asked(&Request { topic: Some(topic), ..Request::default() });
            assert!(only.problems.iter().all(|p| p.topic == topic));
        }
    }

    #[test]
    fn a_percent_is_right_as_a_number_and_as_a_share() {
        let all = asked(&Request { count: 50, ..Request::default() });
        let percents = all.problems.iter().filter(|p| p.unit == "%").count();
        let answers = |f: fn(&Problem) -> f64| {
            let given = all.problems.iter().map(|p| Some(if p.unit == "%" { f(p) } else { p.answer })).collect();
            asked(&Request { count: 50, given, ..Request::default() }).right
        };
        assert!(percents > 2 && all.problems.iter().all(|p| p.unit != "%" || p.answer > 1.0));
        assert_eq!([answers(|p| p.answer), answers(|p| p.answer / 100.0)], [50, 50]);
        assert_eq!(answers(|p| p.answer / 50.0), 50 - percents);
    }

    #[test]
    fn the_worked_answer_is_right_and_another_is_not() {
        for seed in 0..40 {
            let set = Request { seed, count: 20, ..Request::default() };
            let problems = asked(&set).problems;
            assert_eq!(problems, asked(&set).problems, "the seed names the set");
            let exact: Vec<Option<f64>> = problems.iter().map(|p| Some(p.answer)).collect();
            assert_eq!(asked(&Request { given: exact.clone(), ..set.clone() }).right, 20);
            let wrong = exact.iter().map(|a| a.map(|a| a * 1.05)).collect();
            assert_eq!(asked(&Request { given: wrong, ..set.clone() }).right, 0);
            for p in &problems {
                assert!(p.answer.is_finite() && p.answer > 0.0, "{p:?}");
                // The last step of the working ends in the answer, to three digits.
                let shown = rackmath_units::significant(p.answer, 3);
                assert!(p.working.last().is_some_and(|w| w.contains(&shown)), "{p:?} lacks {shown}");
            }
        }
    }

    /// Sums of products of numbers and brackets: enough for a line of working. `level` 0 sums, 1 multiplies.
    fn value(t: &mut &str, level: usize) -> f64 {
        if level == 2 {
            *t = t.trim_start();
            if let Some(rest) = t.strip_prefix('(') {
                *t = rest;
                let v = value(t, 0);
                *t = t.trim_start().strip_prefix(')').expect("a bracket closes");
                return v;
            }
            let end = t.find(|c: char| !(c.is_ascii_digit() || ".,e".contains(c))).unwrap_or(t.len());
            let (number, rest) = t.split_at(end);
            *t = rest.trim_start().strip_prefix("s ").unwrap_or(rest);
            return number.replace(',', "").parse().unwrap_or_else(|_| panic!("{number:?} before {rest:?}"));
        }
        let mut v = value(t, level + 1);
        loop {
            *t = t.trim_start();
            let Some(sign) = t.chars().next().filter(|c| ["+-", "x/"][level].contains(*c)) else { return v };
            *t = &t[1..];
            let next = value(t, level + 1);
            v = match sign {
                '+' => v + next,
                '-' => v - next,
                'x' => v * next,
                _ => v / next,
            };
        }
    }

    #[test]
    fn the_working_works_out() {
        let mut checked = 0;
        for seed in 0..30 {
            for p in asked(&Request { seed, count: 40, ..Request::default() }).problems {
                let line = p.working.last().expect("a line");
                let sides: Vec<&str> = line.split(" = ").collect();
                let mut left = sides[sides.len() - 2];
                // A quotient continued from the line before, and the larger of two, are checked by their answers.
                if left.starts_with('/') || left.starts_with("max") {
                    continue;
                }
                let found = value(&mut left, 0);
                // Up to a power of ten, which is the unit's.
                let digits = (p.answer / found).log10();
                assert!((digits - digits.round()).abs() < 0.006, "{line}: {found} against {}", p.answer);
                checked += 1;
            }
        }
        assert!(checked > 500);
    }

    #[test]
    fn bad_sets_are_refused() {
        let refused = |r: Request| answer(&rackmath_catalog::embedded(), &r).expect_err("refused").to_string();
        assert!(refused(Request { count: 0, ..Request::default() }).contains("1 to 50"));
        assert!(refused(Request { given: vec![None; 9], ..Request::default() }).contains("at most 6"));
        let unknown = |claim: &str, topic| refused(Request { claim: Some(claim.into()), topic, ..Request::default() });
        assert!(unknown("D99", None).contains("D9"));
        assert!(unknown("D9", Some(Topic::Racks)).contains("D17"), "a claim of another topic");
    }

    #[test]
    fn a_claim_names_its_problems() {
        let all = asked(&Request { count: 50, ..Request::default() });
        for claim in all.problems.iter().map(|p| p.claim) {
            let lower = asked(&Request { claim: Some(claim.to_lowercase()), count: 3, ..Request::default() });
            assert!(lower.problems.iter().all(|p| p.claim == claim), "{claim}");
            assert!(lower.cards.iter().all(|c| c.claim == claim), "{claim}");
        }
    }
}
