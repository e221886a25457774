//! The lecture, claim by claim: its formula, its number, ours, and why they differ.

mod batch;
mod ciphers;
mod lifecycle;
mod prices;
mod racks;

use crate::desk::prelude::*;

/// Which claims.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// A claim such as `D9`; all when empty.
    #[schemars(extend("x-position" = 1))]
    pub claim: Option<String>,
}

/// The claims.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The lecture.
    pub source: String,
    /// One entry per claim, in lecture order.
    pub claims: Vec<Claim>,
}

/// One claim.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Claim {
    /// Its number.
    pub id: String,
    /// Its subject.
    pub title: String,
    /// Its formula, strict convention.
    pub formula: String,
    /// What follows from it.
    pub conclusion: String,
    /// Its numbers.
    pub numbers: Vec<Number>,
}

/// One number of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Number {
    /// What goes in.
    pub inputs: String,
    /// What the lecture says.
    pub lecture: String,
    /// What we get.
    pub ours: String,
    /// Why they differ, or that they agree.
    pub why: String,
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let (batch, racks) = (batch::claims(catalog)?, racks::claims(catalog)?);
    let (lifecycle, prices) = (lifecycle::claims(catalog)?, prices::claims(catalog)?);
    let mut claims = [batch, racks, lifecycle, prices, ciphers::claims()].concat();
    if let Some(wanted) = &request.claim {
        let id = wanted.trim().to_uppercase();
        let expected = format!("D1 to D57{}", near(&id, claims.iter().map(|c| c.id.as_str())));
        refuse_if(!claims.iter().any(|c| c.id == id), "claim", format!("\"{wanted}\""), expected)?;
        claims.retain(|c| c.id == id);
    }
    Ok(Answer {
        source: "R. Pope, The math behind how LLMs are trained and served, Dwarkesh podcast, 2026-04-29".into(),
        claims,
    })
}

/// A claim: its number, its subject, its formula, what follows from it.
fn claim(id: &str, title: &str, formula: &str, conclusion: &str) -> Claim {
    let [id, title, formula, conclusion] = [id, title, formula, conclusion].map(str::to_owned);
    Claim { id, title, formula, conclusion, numbers: Vec::new() }
}

impl Claim {
    /// A number the lecture gives, beside ours.
    fn number(mut self, inputs: impl Into<String>, lecture: &str, ours: impl ToString, why: impl Into<String>) -> Self {
        let (inputs, lecture, ours, why) = (inputs.into(), lecture.into(), ours.to_string(), why.into());
        self.numbers.push(Number { inputs, lecture, ours, why });
        self
    }

    fn exact(self, inputs: impl Into<String>, lecture: &str, ours: impl ToString) -> Self {
        self.number(inputs, lecture, ours, "exact")
    }

    /// A number the lecture does not give.
    fn own(self, inputs: impl Into<String>, ours: impl ToString, why: impl Into<String>) -> Self {
        self.number(inputs, "-", ours, why)
    }
}

/// A preset of the lecture on one of its machines, counted as on the board.
fn preset(catalog: &Catalog, model: &str, on: &str) -> Result<Resolved, Error> {
    let (counting, kv) = ("lecture".into(), Some("fp8".into()));
    resolve(catalog, &Setting { model: model.into(), on: on.into(), counting, kv, ..Setting::default() })
}

fn times(x: f64) -> String {
    format!("{}x", significant(x, 3))
}

fn percent(x: f64) -> String {
    format!("{} %", significant(x * 100.0, 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_is_there() {
        let answer = answer(&rackmath_catalog::embedded(), &Request::default()).unwrap();
        let ids: Vec<String> = answer.claims.iter().map(|c| c.id.clone()).collect();
        let expected: Vec<String> = (1..=36)
            .map(|i| format!("D{i}"))
            .chain(["D36B".into(), "D36C".into()])
            .chain((37..=57).map(|i| format!("D{i}")))
            .collect();
        assert_eq!(ids, expected);
        assert!(answer.claims.iter().all(|c| !c.numbers.is_empty()));
    }
}
