//! Constants that a search may turn, and the search: downhill by Nelder and Mead's simplex, no derivatives, no chance.
//!
//! A simplex of d+1 points in d dimensions: the worst point is reflected through the middle of the others, stretched if that
//! is best, pulled in if it is bad; if nothing helps all points move towards the best.
//! Source: Nelder and Mead 1965, with the dimension-dependent factors of Gao and Han 2012.

use rackmath_units::float;

/// A constant with its bounds: physical where there are such, else wide.
pub struct Knob<T> {
    /// As in the file that holds it, in the unit it says.
    pub name: &'static str,
    pub low: f64,
    pub high: f64,
    pub get: fn(&T) -> f64,
    pub set: fn(&mut T, f64),
}

pub const fn knob<T>(name: &'static str, (low, high): (f64, f64), get: fn(&T) -> f64, set: fn(&mut T, f64)) -> Knob<T> {
    Knob { name, low, high, get, set }
}

pub fn turned<T: Clone>(subject: &T, knobs: &[Knob<T>], values: &[f64]) -> T {
    let mut subject = subject.clone();
    for (knob, value) in knobs.iter().zip(values) {
        (knob.set)(&mut subject, value.clamp(knob.low, knob.high));
    }
    subject
}

/// The constants near a start where a loss is small.
pub fn search<T: Clone>(start: &T, knobs: &[Knob<T>], loss: impl Fn(&T) -> f64) -> T {
    let first: Vec<f64> = knobs.iter().map(|k| (k.get)(start).clamp(k.low, k.high)).collect();
    // Beyond its bounds a constant has no effect; a slope back keeps the search from wandering there.
    let outside = |values: &[f64]| -> f64 {
        let far = |(k, v): (&Knob<T>, &f64)| float::ln(v / v.clamp(k.low, k.high)).abs();
        knobs.iter().zip(values).map(far).sum()
    };
    let found = minimum(&first, |values| loss(&turned(start, knobs, values)) + 0.01 * outside(values));
    turned(start, knobs, &found)
}

/// The arguments near `start` where `loss` is small. All arguments are positive and searched by their logarithm.
pub fn minimum(start: &[f64], loss: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    near(start, 400, loss)
}

/// The same with so many steps for each argument and restart, where a loss is dear.
pub fn near(start: &[f64], steps: usize, loss: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let exp = |logs: &[f64]| logs.iter().map(|x| float::exp(*x)).collect::<Vec<f64>>();
    let mut best: Vec<f64> = start.iter().map(|x| float::ln(*x)).collect();
    // A simplex can collapse onto a ridge; starting again from its best point with a fresh one costs little.
    for size in [0.4, 0.2, 0.1, 0.05] {
        best = descent(&best, size, steps, &|logs| loss(&exp(logs)));
    }
    exp(&best)
}

fn descent(start: &[f64], size: f64, steps: usize, loss: &dyn Fn(&[f64]) -> f64) -> Vec<f64> {
    let d = start.len();
    let dim = d as f64;
    let (stretch, pull, shrink) = (1.0 + 2.0 / dim, 0.75 - 0.5 / dim, 1.0 - 1.0 / dim.max(2.0));
    let at = |x: Vec<f64>| (loss(&x), x);
    let mut points = vec![at(start.to_vec())];
    for i in 0..d {
        let mut x = start.to_vec();
        x[i] += size;
        points.push(at(x));
    }
    for _ in 0..steps * d {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (low, high) = (points[0].0, points[d].0);
        if high - low < 1e-9 {
            break;
        }
        let middle: Vec<f64> = (0..d).map(|i| points[..d].iter().map(|p| p.1[i]).sum::<f64>() / dim).collect();
        let towards = |factor: f64| -> Vec<f64> {
            middle.iter().zip(&points[d].1).map(|(m, worst)| m + factor * (m - worst)).collect()
        };
        let reflected = at(towards(1.0));
        if reflected.0 < low {
            let far = at(towards(stretch));
            points[d] = if far.0 < reflected.0 { far } else { reflected };
        } else if reflected.0 < points[d - 1].0 {
            points[d] = reflected;
        } else {
            let near = at(towards(if reflected.0 < high { pull } else { -pull }));
            if near.0 < high.min(reflected.0) {
                points[d] = near;
            } else {
                let best = points[0].1.clone();
                for point in &mut points[1..] {
                    *point = at(best.iter().zip(&point.1).map(|(b, x)| b + shrink * (x - b)).collect());
                }
            }
        }
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.swap_remove(0).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bottom_of_a_bowl() {
        let found = minimum(&[1.0, 1.0], |x| (x[0] - 3.0).powi(2) + (x[1] - 0.25).powi(2));
        assert!((found[0] - 3.0).abs() < 1e-3 && (found[1] - 0.25).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn recovers_a_floor_and_a_slope() {
        // t = 5 + 2 x, seen through absolute logarithms as the fits are.
        let rows: Vec<(f64, f64)> = (0..12).map(|i| f64::from(1 << i)).map(|x| (x, 5.0 + 2.0 * x)).collect();
        let loss = |p: &[f64]| rows.iter().map(|(x, t)| ((p[0] + p[1] * x) / t).ln().abs()).sum::<f64>();
        let found = minimum(&[1.0, 1.0], loss);
        assert!((found[0] - 5.0).abs() < 0.05 && (found[1] - 2.0).abs() < 0.02, "{found:?}");
    }
}
