//! Frontiers, and what a choice costs.
//!
//! $$ M(x) = \max_{u \ge x} m(u) \qquad R(x) = 1 - \frac{M_c(x)}{\max_l M_l(x)} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | x, u | interactivity | tok/s | output tokens per second that a user sees, 1 / TPOT |
//! | m | points of a [`Frontier`] | tok/s | output tokens per second and chip, interpolated in logarithms between points |
//! | M | [`Frontier::at`] | tok/s | the most that a layout gives users who want at least x |
//! | c, l | chosen, any layout | - | the layout a predictor takes for best, and all of them |
//! | R | [`regret`] | 1 | share of the best throughput that the choice gives away |
//!
//! Source: ours.

use rackmath_units::float;

/// The points of a layout that no other of its points beats, slowest users first.
#[derive(Clone, Debug, PartialEq)]
pub struct Frontier(Vec<(f64, f64)>);

impl Frontier {
    /// Of (interactivity, throughput) pairs; nothing where there are none.
    pub fn of(mut points: Vec<(f64, f64)>) -> Option<Self> {
        points.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)));
        let mut kept: Vec<(f64, f64)> = Vec::new();
        for point in points {
            if kept.last().is_none_or(|last| point.1 > last.1) {
                kept.push(point);
            }
        }
        kept.reverse();
        (!kept.is_empty()).then_some(Self(kept))
    }

    /// Lowest and highest interactivity.
    pub fn reach(&self) -> (f64, f64) {
        (self.0[0].0, self.0[self.0.len() - 1].0)
    }

    /// The most throughput for users who want at least so much; nothing beyond its reach.
    pub fn at(&self, interactivity: f64) -> Option<f64> {
        let (low, high) = self.reach();
        // A level that is one of the points must not be lost to rounding.
        if interactivity > high * (1.0 + 1e-9) {
            return None;
        }
        if interactivity <= low {
            return Some(self.0[0].1);
        }
        let above = self.0.iter().position(|p| p.0 >= interactivity).unwrap_or(self.0.len() - 1);
        let ((x0, y0), (x1, y1)) = (self.0[above - 1], self.0[above]);
        let part = ((float::ln(interactivity) - float::ln(x0)) / (float::ln(x1) - float::ln(x0))).min(1.0);
        Some(float::exp(float::ln(y0) * (1.0 - part) + float::ln(y1) * part))
    }
}

/// So many values from one to another, evenly spaced in logarithms.
pub fn ladder(low: f64, high: f64, steps: usize) -> Vec<f64> {
    if high <= low || steps < 2 {
        return vec![low.min(high)];
    }
    let step = float::ln(high / low) / (steps - 1) as f64;
    (0..steps).map(|i| low * float::exp(step * i as f64)).collect()
}

/// Share of the best that a choice gives away.
pub fn regret(chosen: f64, best: f64) -> f64 {
    if best > 0.0 { (1.0 - chosen / best).max(0.0) } else { 0.0 }
}
