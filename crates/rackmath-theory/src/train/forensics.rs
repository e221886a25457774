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
use strum::{Display, VariantArray};

/// The numbers of a run, in the order of the arrays here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Variable {
    ChipHours,
    Chips,
    Days,
    #[strum(to_string = "active parameters")]
    Params,
    Tokens,
    #[strum(to_string = "FLOP")]
    Flop,
    /// Share of the peak in use.
    #[strum(to_string = "MFU")]
    Mfu,
    /// Dense peak of a chip, FLOP/s.
    Peak,
    Price,
    Dollars,
}

pub const COUNT: usize = Variable::VARIANTS.len();

/// A low and a high end, both positive.
pub type Interval = (f64, f64);

/// What is known of one number in the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    pub variable: Variable,
    pub given: Option<Interval>,
    /// It cannot lie outside; an open end is zero or infinite.
    pub bounds: Interval,
    /// Best estimate and the 90 % around it, where the givens say anything.
    pub estimate: Option<(f64, Interval)>,
}

/// A relation the givens cannot all satisfy.
#[derive(Clone, Debug, PartialEq)]
pub struct Contradiction {
    pub relation: &'static str,
    /// The number it was noticed at.
    pub variable: Variable,
    pub demanded: Interval,
    pub known: Interval,
    /// By which factor the two miss each other.
    pub gap: f64,
}

/// All numbers, and the first contradiction if there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// One per variable, in order.
    pub all: Vec<Finding>,
    pub contradiction: Option<Contradiction>,
}

/// A relation: the sum of signed logarithms is a constant.
struct Relation {
    name: &'static str,
    parts: &'static [(usize, f64)],
    constant: f64,
}

fn relations(flop_per_param: f64) -> [Relation; 4] {
    [
        Relation {
            name: "chip-hours = 24 x chips x days",
            parts: &[(0, 1.0), (1, -1.0), (2, -1.0)],
            constant: float::ln(24.0),
        },
        Relation {
            name: "FLOP = k x active parameters x tokens",
            parts: &[(5, 1.0), (3, -1.0), (4, -1.0)],
            constant: float::ln(flop_per_param),
        },
        Relation {
            name: "FLOP = 3,600 x chip-hours x peak x MFU",
            parts: &[(5, 1.0), (0, -1.0), (7, -1.0), (6, -1.0)],
            constant: float::ln(3600.0),
        },
        Relation { name: "dollars = chip-hours x price", parts: &[(9, 1.0), (0, -1.0), (8, -1.0)], constant: 0.0 },
    ]
}

/// Everything that follows from what is given, in the order of [`Variable`].
pub fn infer(given: &[Option<Interval>; COUNT], flop_per_param: f64) -> Findings {
    let relations = relations(flop_per_param);
    let mut bounds = [(f64::NEG_INFINITY, f64::INFINITY); COUNT];
    for (b, g) in bounds.iter_mut().zip(given) {
        if let Some((low, high)) = g {
            *b = (float::ln(*low), float::ln(*high));
        }
    }
    // No chip computes faster than its peak, and a run has at least one chip.
    bounds[6].1 = bounds[6].1.min(0.0);
    bounds[1].0 = bounds[1].0.max(0.0);
    let contradiction = tighten(&mut bounds, &relations);
    let estimates = condition(given, &relations);
    let all = Variable::VARIANTS
        .iter()
        .enumerate()
        .map(|(i, variable)| Finding {
            variable: *variable,
            given: given[i],
            bounds: (float::exp(bounds[i].0), float::exp(bounds[i].1)),
            estimate: estimates[i].map(|(mean, sd)| {
                // 1.645 standard deviations either side hold 90 %.
                let reach = 1.645 * sd;
                (float::exp(mean), (float::exp(mean - reach), float::exp(mean + reach)))
            }),
        })
        .collect();
    Findings { all, contradiction }
}

/// Slack for rounding: a contradiction smaller than this is none.
const ROUNDING: f64 = 1e-9;

/// Cuts every interval by what each relation allows until nothing moves.
fn tighten(bounds: &mut [Interval; COUNT], relations: &[Relation]) -> Option<Contradiction> {
    // Four relations in a tree settle after as many rounds as the tree is deep; the bound is generous.
    for _ in 0..32 {
        let before = *bounds;
        for relation in relations {
            for &(i, sign) in relation.parts {
                let demanded = demanded(bounds, relation, i, sign);
                let known = bounds[i];
                let cut = (known.0.max(demanded.0), known.1.min(demanded.1));
                if cut.0 > cut.1 + ROUNDING {
                    let e = |x: Interval| (float::exp(x.0), float::exp(x.1));
                    return Some(Contradiction {
                        relation: relation.name,
                        variable: Variable::VARIANTS[i],
                        demanded: e(demanded),
                        known: e(known),
                        gap: float::exp(cut.0 - cut.1),
                    });
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
fn demanded(bounds: &[Interval; COUNT], relation: &Relation, i: usize, sign: f64) -> Interval {
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
        let (m, sd) = given[i].map_or((0.0, IGNORANCE), |(low, high)| {
            let (l, h) = (float::ln(low), float::ln(high));
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
mod tests;
