//! Price sheets drawn from the model itself: if the posterior is right, truths rank evenly in it.
//!
//! The same draw, the same factors and the same mixture of cost and policy as in the likelihood, run forwards.
//! Source: Talts et al. 2018, simulation-based calibration.

use super::evidence::{Datum, Evidence, Point, Sheet};
use super::quantity::{UNKNOWNS, values};
use super::space::Space;
use crate::stats::normal::{normal_quantile, t4};
use rackmath_spec::deduce::Ratio;
use rackmath_units::{Chance, float};

/// A truth and the sheet it led to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simulated {
    /// The unknowns, in logarithms, in the order of `Unknown::ALL`.
    pub truth: [f64; UNKNOWNS],
    pub width: usize,
    pub tier: usize,
    pub sheet: Sheet,
}

const THRESHOLD: f64 = 200e3;

/// Draws a truth and every number of a sheet.
pub fn simulate(space: &Space, hosts: usize, policy: impl Fn(Ratio) -> f64, chance: &mut Chance) -> Simulated {
    let sheet = |input: f64, number: &mut dyn FnMut(Datum) -> f64| Sheet {
        input: Some(input),
        output: Some(number(Datum::Output)),
        cached: Some(number(Datum::Cached)),
        storage: Some(number(Datum::Storage)),
        write: Some(number(Datum::Write)),
        long: Some((THRESHOLD, Some(number(Datum::LongInput)), Some(number(Datum::LongOutput)))),
        fast: Some(multiples(number(Datum::Fast))),
        tokens_per_s: Some(number(Datum::Speed)),
        hosts,
    };
    // The terms' centres, scales and policies, with the numbers still to come.
    let evidence = Evidence::new(space, &sheet(1.0, &mut |_| 1.0), policy);
    let draw = space.draw(hosts, |_| chance.uniform());
    let level = &space.priors.level;
    let ln_input = if chance.uniform() < level.indifferent {
        level.indifferent_price.centre + level.indifferent_price.scale * normal_quantile(chance.uniform())
    } else {
        space.expected_input(&draw) + evidence.input_scale * student(chance)
    };
    let point = Point::new(space, draw, ln_input);
    let mut number = |datum: Datum| {
        let term = evidence.terms.iter().find(|t| t.datum == datum).expect("the sheet is full");
        let shape = term.policy_shape;
        float::exp(if chance.uniform() < term.policy {
            let ratio = shape.centre + shape.scale * normal_quantile(chance.uniform());
            if term.relative { ratio + ln_input } else { ratio }
        } else {
            evidence.predicted(space, datum, &point) + term.centre + term.scale * student(chance)
        })
    };
    let sheet = sheet(float::exp(ln_input), &mut number);
    Simulated { truth: values(space, &draw, &point.factors), width: draw.width, tier: draw.tier, sheet }
}

/// The price and speed multiples that show x.
fn multiples(x: f64) -> (f64, f64) {
    // Half of the way to the latency floor 1 + x costs twice as much, whatever x is.
    (2.0, 1.0 + x / 2.0)
}

fn student(chance: &mut Chance) -> f64 {
    let (z, u, v) = (normal_quantile(chance.uniform()), chance.uniform(), chance.uniform());
    t4(z, u, v)
}
