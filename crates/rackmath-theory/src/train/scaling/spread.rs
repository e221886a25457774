//! What is not known about coefficients, carried through to an answer.
//!
//! Coefficient vectors are drawn where a low-discrepancy sequence (Halton, bases 2 to 11) falls in the unit cube, bent by
//! the normal quantile: no chance is involved, the same law gives the same draws. Positive coefficients are log-normal with
//! the relative standard error as their spread, so that none turns negative. Correlations are the file's; where none are
//! published there are two stand-ins: all independent, and each weight moving with its exponent. The second is the better
//! one: a weight and its exponent are fitted to the same few decades of N, so that the term is well known there and only
//! there, and our own fits of this form find 0.999 between them.
//! Source: Halton 1960.

use crate::stats::normal_quantile;
use rackmath_spec::{PowerLaw, StandardErrors};
use rackmath_units::float;
use schemars::JsonSchema;
use serde::Serialize;

/// How coefficients move together where the file does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// Not at all: far too wide.
    Independent,
    /// A weight with its exponent, as fits have them.
    Paired,
}

/// A median and the middle 80 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Band {
    /// One in ten lies below.
    pub low: f64,
    /// Half lie below.
    pub median: f64,
    /// One in ten lies above.
    pub high: f64,
}

/// `n` coefficient sets around a law.
pub fn draws(law: &PowerLaw, errors: &StandardErrors, tie: Tie, n: usize) -> Vec<PowerLaw> {
    let root = cholesky(&errors.correlation.unwrap_or_else(|| stand_in(tie)));
    let mean = [law.e, law.a, law.b, law.alpha, law.beta];
    (1..=n)
        .map(|i| {
            let z: [f64; 5] = std::array::from_fn(|k| normal_quantile(halton(i, [2, 3, 5, 7, 11][k])));
            let x: [f64; 5] = std::array::from_fn(|r| {
                let step: f64 = (0..=r).map(|c| root[r][c] * z[c]).sum();
                mean[r] * float::exp(step * errors.of[r] / mean[r])
            });
            PowerLaw { e: x[0], a: x[1], b: x[2], alpha: x[3], beta: x[4] }
        })
        .collect()
}

/// Median and middle 80 % of what `answer` makes of draws; nothing when it makes nothing of all.
pub fn band(draws: &[PowerLaw], answer: impl Fn(&PowerLaw) -> Option<f64>) -> Option<Band> {
    let mut all: Vec<f64> = draws.iter().filter_map(answer).filter(|x| x.is_finite()).collect();
    if all.is_empty() {
        return None;
    }
    all.sort_by(f64::total_cmp);
    let at = |q: f64| all[((all.len() - 1) as f64 * q).round() as usize];
    Some(Band { low: at(0.1), median: at(0.5), high: at(0.9) })
}

/// What fits of this form find between a weight and its exponent.
const PAIRED: f64 = 0.999;

fn stand_in(tie: Tie) -> [[f64; 5]; 5] {
    let mut c = [[0.0; 5]; 5];
    for (i, row) in c.iter_mut().enumerate() {
        row[i] = 1.0;
    }
    if tie == Tie::Paired {
        for (i, j) in [(1, 3), (2, 4)] {
            (c[i][j], c[j][i]) = (PAIRED, PAIRED);
        }
    }
    c
}

/// The lower triangle whose square is the table; a table that is not quite positive is cut at zero.
fn cholesky(c: &[[f64; 5]; 5]) -> [[f64; 5]; 5] {
    let mut l = [[0.0; 5]; 5];
    for i in 0..5 {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| l[i][k] * l[j][k]).sum();
            l[i][j] = if i == j {
                (c[i][i] - sum).max(0.0).sqrt()
            } else if l[j][j] > 0.0 {
                (c[i][j] - sum) / l[j][j]
            } else {
                0.0
            };
        }
    }
    l
}

/// The digits of `i` mirrored at the point: evenly spread between 0 and 1, never either.
pub(crate) fn halton(mut i: usize, base: usize) -> f64 {
    let (mut x, mut weight) = (0.0, 1.0 / base as f64);
    while i > 0 {
        x += weight * (i % base) as f64;
        i /= base;
        weight /= base as f64;
    }
    x
}
