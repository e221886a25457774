//! What a published run must have been: any of its numbers from the others.
//!
//! $$ H = 24\, n\, d \qquad C = k N D \qquad C = 3600\, H F u \qquad \$ = H p $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | H, n, d | ChipHours, Chips, Days | h, 1, d | chip-hours, chips, wall-clock days |
//! | C, N, D | Flop, Params, Tokens | FLOP, 1, 1 | model arithmetic, active parameters, training tokens |
//! | k | flop_per_param | FLOP | per parameter and token, 6 unless attention or recompute is counted |
//! | F, u | Peak, Mfu | FLOP/s, 1 | dense peak of a chip, share of it in use |
//! | p, $ | Price, Dollars | $/h, $ | of a chip-hour, of the run |
//!
//! In logarithms all four are sums, so knowledge moves along them exactly. It is carried twice: as hard bounds (an interval
//! is cut by what the others allow, until nothing changes; an empty one is a contradiction), and as log-normal estimates in
//! which a given interval holds 90 % (conditioning a normal vector on four exact sums).
//! Ignores: idle chips counted as hours, restarts (they lower u). Source: derived; the example in the first test is
//! DeepSeek-V3's own figures.

use rackmath_units::float;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, VariantArray};

/// The numbers of a run, in the order of the arrays here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, Display, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Variable {
    ChipHours,
    Chips,
    Days,
    #[serde(rename = "active parameters")]
    #[strum(to_string = "active parameters")]
    Params,
    Tokens,
    #[serde(rename = "FLOP")]
    #[strum(to_string = "FLOP")]
    Flop,
    #[serde(rename = "MFU")]
    #[strum(to_string = "MFU")]
    Mfu,
    /// Dense peak of a chip, FLOP/s.
    Peak,
    Price,
    Dollars,
}

pub const COUNT: usize = Variable::VARIANTS.len();

/// A low and a high end, both positive; equal when known exactly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The low end.
    pub low: f64,
    /// The high end.
    pub high: f64,
}

impl Interval {
    pub fn exact(x: f64) -> Self {
        Self { low: x, high: x }
    }

    /// From logarithms; JSON has no infinity.
    fn exp((low, high): Logs) -> Self {
        Self { low: float::exp(low), high: float::exp(high).min(f64::MAX) }
    }
}

impl From<(f64, f64)> for Interval {
    fn from((low, high): (f64, f64)) -> Self {
        Self { low, high }
    }
}

/// What is known of one number in the end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// Which.
    pub what: Variable,
    /// As given.
    pub given: Option<Interval>,
    /// Best estimate, where the givens say anything.
    pub estimate: Option<f64>,
    /// Nine in ten lie within.
    pub likely: Option<Interval>,
    /// It cannot lie below, where anything says so.
    pub at_least: Option<f64>,
    /// It cannot lie above, where anything says so.
    pub at_most: Option<f64>,
}

/// A relation the givens cannot all satisfy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Contradiction {
    /// The relation.
    pub relation: &'static str,
    /// The number it was noticed at.
    pub at: Variable,
    /// What the relation demands of it.
    pub demanded: Interval,
    /// What is known of it.
    pub known: Interval,
    /// By which factor the two miss each other.
    pub gap: f64,
}

/// Ends as logarithms, open where infinite.
type Logs = (f64, f64);

/// A relation: the sum of signed logarithms is a constant.
struct Relation {
    name: &'static str,
    parts: &'static [(usize, f64)],
    constant: f64,
}

fn relations(flop_per_param: f64) -> [Relation; 4] {
    let relation = |name, parts, factor| Relation { name, parts, constant: float::ln(factor) };
    [
        relation("chip-hours = 24 x chips x days", &[(0, 1.0), (1, -1.0), (2, -1.0)], 24.0),
        relation("FLOP = k x active parameters x tokens", &[(5, 1.0), (3, -1.0), (4, -1.0)], flop_per_param),
        relation("FLOP = 3,600 x chip-hours x peak x MFU", &[(5, 1.0), (0, -1.0), (7, -1.0), (6, -1.0)], 3600.0),
        relation("dollars = chip-hours x price", &[(9, 1.0), (0, -1.0), (8, -1.0)], 1.0),
    ]
}

/// Everything that follows from what is given, in the order of [`Variable`], and the first contradiction if there is one.
pub fn infer(given: &[Option<Interval>; COUNT], flop_per_param: f64) -> (Vec<Finding>, Option<Contradiction>) {
    let relations = relations(flop_per_param);
    let mut bounds = [(f64::NEG_INFINITY, f64::INFINITY); COUNT];
    for (b, g) in bounds.iter_mut().zip(given) {
        if let Some(g) = g {
            *b = (float::ln(g.low), float::ln(g.high));
        }
    }
    // No chip computes faster than its peak, and a run has at least one chip.
    bounds[6].1 = bounds[6].1.min(0.0);
    bounds[1].0 = bounds[1].0.max(0.0);
    let contradiction = tighten(&mut bounds, &relations);
    let estimates = condition(given, &relations);
    // Where the givens agree nothing likely lies where nothing can be; where they do not, no bound holds.
    let within = |i: usize, x: f64| if contradiction.is_some() { x } else { x.clamp(bounds[i].0, bounds[i].1) };
    let all = Variable::VARIANTS
        .iter()
        .enumerate()
        .map(|(i, what)| Finding {
            what: *what,
            given: given[i],
            estimate: estimates[i].map(|(mean, _)| float::exp(within(i, mean))),
            // 1.645 standard deviations either side hold 90 %.
            likely: estimates[i]
                .map(|(mean, sd)| [mean - 1.645 * sd, mean + 1.645 * sd].map(|end| within(i, end)))
                .map(|[low, high]| Interval::exp((low, high))),
            at_least: Some(float::exp(bounds[i].0)).filter(|low| *low > 0.0),
            at_most: Some(float::exp(bounds[i].1)).filter(|high| high.is_finite()),
        })
        .collect();
    (all, contradiction)
}

/// Slack for rounding: a contradiction smaller than this is none.
const ROUNDING: f64 = 1e-9;

/// Cuts every interval by what each relation allows until nothing moves.
fn tighten(bounds: &mut [Logs; COUNT], relations: &[Relation]) -> Option<Contradiction> {
    // Four relations in a tree settle after as many rounds as the tree is deep; the bound is generous.
    for _ in 0..32 {
        let before = *bounds;
        for relation in relations {
            for &(i, sign) in relation.parts {
                let demanded = demanded(bounds, relation, i, sign);
                let known = bounds[i];
                let cut = (known.0.max(demanded.0), known.1.min(demanded.1));
                if cut.0 > cut.1 + ROUNDING {
                    let (at, gap) = (Variable::VARIANTS[i], float::exp(cut.0 - cut.1));
                    let (demanded, known) = (Interval::exp(demanded), Interval::exp(known));
                    return Some(Contradiction { relation: relation.name, at, demanded, known, gap });
                }
                bounds[i] = if cut.0 > cut.1 { (cut.1, cut.1) } else { cut };
            }
        }
        if *bounds == before {
            break;
        }
    }
    None
}

/// What a relation leaves for one of its parts, given the intervals of the others.
fn demanded(bounds: &[Logs; COUNT], relation: &Relation, i: usize, sign: f64) -> Logs {
    let (mut low, mut high) = (relation.constant, relation.constant);
    for &(j, s) in relation.parts.iter().filter(|(j, _)| *j != i) {
        let (l, h) = bounds[j];
        // Moved to the other side of the equation, a part changes its sign.
        let (l, h) = if s > 0.0 { (-h, -l) } else { (l, h) };
        (low, high) = (low + l, high + h);
    }
    if sign > 0.0 { (low, high) } else { (-high, -low) }
}

/// A standard deviation that says nothing: e^100 either way.
const IGNORANCE: f64 = 100.0;

/// Mean and standard deviation of each logarithm, given the intervals and the relations.
fn condition(given: &[Option<Interval>; COUNT], relations: &[Relation]) -> [Option<(f64, f64)>; COUNT] {
    let mut mean = [0.0; COUNT];
    let mut cov = [[0.0; COUNT]; COUNT];
    for i in 0..COUNT {
        let (m, sd) = given[i].map_or((0.0, IGNORANCE), |g| {
            let (l, h) = (float::ln(g.low), float::ln(g.high));
            (l.midpoint(h), (h - l) / 2.0 / 1.645)
        });
        // A number known exactly still gets a trace of doubt, so that two exact numbers that disagree can be averaged.
        (mean[i], cov[i][i]) = (m, sd * sd + 1e-12);
    }
    for relation in relations {
        // Kalman's update with an exact observation: the signed sum is the constant.
        let mut gain = [0.0; COUNT];
        for (g, row) in gain.iter_mut().zip(&cov) {
            *g = relation.parts.iter().map(|&(j, s)| s * row[j]).sum();
        }
        let variance: f64 = relation.parts.iter().map(|&(j, s)| s * gain[j]).sum();
        let error = relation.constant - relation.parts.iter().map(|&(j, s)| s * mean[j]).sum::<f64>();
        for i in 0..COUNT {
            mean[i] += gain[i] * error / variance;
            for j in 0..COUNT {
                cov[i][j] -= gain[i] * gain[j] / variance;
            }
        }
    }
    std::array::from_fn(|i| {
        let sd = cov[i][i].max(0.0).sqrt();
        // What is still unknown by e^20 is unknown.
        (sd < 20.0).then_some((mean[i], sd))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What follows from numbers that are given, each to a relative error.
    fn found(parts: &[(Variable, f64, f64)]) -> (impl Fn(Variable) -> Finding + use<>, Option<Contradiction>) {
        let mut given = [None; COUNT];
        for (v, x, off) in parts {
            given[*v as usize] = Some(Interval { low: x * (1.0 - off), high: x * (1.0 + off) });
        }
        let (all, contradiction) = infer(&given, 6.0);
        (move |v| all[v as usize], contradiction)
    }

    #[test]
    fn deepseek_v3_from_its_own_figures() {
        // 2.664 M H800-hours, 37 B active, 14.8 T tokens: 343 TFLOP/s per chip, 34.6 % of 989.
        use Variable as V;
        let size = |off: f64| [(V::Params, 37e9, 0.5 * off), (V::Tokens, 14.8e12, off), (V::Peak, 989e12, 0.0)];
        let hours = [(V::ChipHours, 2.664e6, 2e-4), (V::Chips, 2048.0, 0.0)];
        let (of, contradiction) = found(&[&size(0.01)[..], &hours].concat());
        assert!(contradiction.is_none());
        let (mfu, likely) = (of(V::Mfu).estimate.unwrap(), of(V::Mfu).likely.unwrap());
        assert!((mfu - 0.346).abs() < 1e-3 && likely.low < 0.346 && likely.high > 0.346, "{mfu} {likely:?}");
        assert!((of(V::Days).estimate.unwrap() - 54.2).abs() < 0.1);
        assert!(of(V::Dollars).estimate.is_none(), "no price was given");
        let (least, most) = (of(V::Mfu).at_least.unwrap(), of(V::Mfu).at_most.unwrap());
        assert!(least < likely.low * 1.01 && most > likely.high * 0.99);
        // Ten times too few chip-hours: MFU would be 346 %.
        let c = found(&[&size(0.0)[..], &[(V::ChipHours, 0.2664e6, 0.0)]].concat()).1.unwrap();
        assert_eq!(c.relation, "FLOP = 3,600 x chip-hours x peak x MFU");
        assert!((c.gap - 3.46).abs() < 0.01, "{c:?}");
    }

    proptest! {
        #[test]
        fn hiding_a_number_of_a_true_run_brings_it_back(
            hours in 5.0f64..18.0, days in 0.0f64..5.0, n in 20.0f64..28.0, u in -3.0f64..-0.1, f in 30.0f64..36.0, p in -1.0f64..3.0, hide in 0usize..10,
        ) {
            let chips = (hours - float::ln(24.0) - days).max(0.0);
            let hours = chips + days + float::ln(24.0);
            let c = float::ln(3600.0) + hours + f + u;
            let d = c - float::ln(6.0) - n;
            let truth = [hours, chips, days, n, d, c, u, f, p, hours + p].map(float::exp);
            let mut given = truth.map(|x| Some(Interval { low: x * 0.999, high: x * 1.001 }));
            given[hide] = None;
            let (all, contradiction) = infer(&given, 6.0);
            prop_assert!(contradiction.is_none(), "{:?}", contradiction);
            for (f, x) in all.iter().zip(truth) {
                prop_assert!(f.at_least.is_none_or(|low| low <= x * (1.0 + 1e-9)), "{f:?} {x}");
                prop_assert!(f.at_most.is_none_or(|high| high >= x * (1.0 - 1e-9)), "{f:?} {x}");
                prop_assert!((f.estimate.unwrap() / x - 1.0).abs() < 5e-3, "{f:?} {x}");
            }
        }
    }
}
