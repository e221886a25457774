//! A non-decreasing function of the context made of ramps that end.
//!
//! $$ f(L) = a + \sum_i s_i \min(L, w_i) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | a | fixed | any | a part that does not grow: a recurrent state |
//! | s_i | slope | per token | growth while the ramp lasts |
//! | w_i | cap | tokens | where it ends: a window, a top-k, or never |
//!
//! Full attention is one endless ramp; a window ends early; a sparse index adds an endless shallow ramp and a steep short
//! one. Integrals and roots are exact because the pieces are lines.

use rackmath_units::float;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    fixed: f64,
    ramps: Vec<Ramp>,
}

/// One ramp; `cap` is infinite when it never ends.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ramp {
    slope: f64,
    cap: f64,
}

impl Curve {
    pub fn add_fixed(&mut self, value: f64) {
        self.fixed += value;
    }

    pub fn add_endless(&mut self, slope: f64) {
        self.add_ramp(slope, f64::INFINITY);
    }

    /// A ramp that ends at `cap` tokens. Ramps of equal end are merged and kept in order of their ends.
    pub fn add_ramp(&mut self, slope: f64, cap: f64) {
        if slope == 0.0 || cap <= 0.0 {
            return;
        }
        match self.ramps.binary_search_by(|r| r.cap.total_cmp(&cap)) {
            Ok(at) => self.ramps[at].slope += slope,
            Err(at) => self.ramps.insert(at, Ramp { slope, cap }),
        }
    }

    pub fn at(&self, context: f64) -> f64 {
        self.ramps.iter().fold(self.fixed, |sum, r| sum + r.slope * context.min(r.cap))
    }

    pub fn fixed(&self) -> f64 {
        self.fixed
    }

    /// Growth per token once every window is full.
    pub fn final_slope(&self) -> f64 {
        self.ramps.last().filter(|r| r.cap.is_infinite()).map_or(0.0, |r| r.slope)
    }

    /// The sum over `q` further tokens, the i-th of which sees `context + i` tokens, as an integral that is exact for lines.
    pub fn integral(&self, context: f64, q: f64) -> f64 {
        // The integral of min(x, cap) from 0 to x.
        let below = |x: f64, cap: f64| if x <= cap { x * x / 2.0 } else { cap * (x - cap / 2.0) };
        let ramps = self.ramps.iter().map(|r| r.slope * (below(context + q, r.cap) - below(context, r.cap)));
        self.fixed * q + ramps.sum::<f64>()
    }

    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let ramps = self.ramps.iter().map(|r| Ramp { slope: r.slope * factor, cap: r.cap }).collect();
        Self { fixed: self.fixed * factor, ramps }
    }

    /// The smallest context at which this curve reaches `other + level`, if it ever does; exact, from corner to corner.
    pub fn crossing(&self, other: &Self, level: f64) -> Option<f64> {
        let gap = |x: f64| self.at(x) - other.at(x) - level;
        let mut corners: Vec<f64> =
            self.ramps.iter().chain(&other.ramps).map(|r| r.cap).filter(|c| c.is_finite()).collect();
        corners.sort_by(f64::total_cmp);
        let mut from = 0.0;
        if gap(from) >= 0.0 {
            return Some(0.0);
        }
        for to in corners {
            let (low, high) = (gap(from), gap(to));
            if high >= 0.0 {
                return Some(from + (to - from) * (-low / (high - low)));
            }
            from = to;
        }
        let slope = self.final_slope() - other.final_slope();
        (slope > 0.0).then(|| from - gap(from) / slope)
    }
}

/// Expected number of experts touched by B tokens, each choosing k of E at random: $$ E\,(1 - (1 - k/E)^B) $$
pub fn distinct(e: f64, k: f64, tokens: f64) -> f64 {
    if k >= e {
        return if tokens > 0.0 { e } else { 0.0 };
    }
    -e * float::exp_m1(tokens * float::ln_1p(-k / e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramps(fixed: f64, ramps: &[(f64, f64)]) -> Curve {
        let mut c = Curve::default();
        c.add_fixed(fixed);
        for (slope, cap) in ramps {
            c.add_ramp(*slope, *cap);
        }
        c
    }

    #[test]
    fn windows_stop_growing_and_crossings_are_exact() {
        let c = ramps(1.0, &[(2.0, 10.0), (0.5, f64::INFINITY), (1.0, 10.0)]);
        assert_eq!(c.at(4.0), 1.0 + 3.5 * 4.0);
        assert_eq!(c.at(20.0), 1.0 + 30.0 + 10.0);
        assert_eq!(c.final_slope(), 0.5);
        // From 5 to 15 with a corner at 10: a trapezoid up to it, a rectangle of height 10 after.
        assert_eq!(ramps(0.0, &[(1.0, 10.0)]).integral(5.0, 10.0), (50.0 - 12.5) + 10.0 * 5.0);
        let steep = ramps(0.0, &[(3.0, f64::INFINITY)]);
        let windowed = ramps(0.0, &[(4.0, 100.0), (1.0, f64::INFINITY)]);
        // 3 x = x + 400 at x = 200.
        assert_eq!(steep.crossing(&windowed, 0.0), Some(0.0));
        assert_eq!(steep.crossing(&windowed, 1.0), Some(200.5));
        assert_eq!(windowed.crossing(&steep, 1000.0), None);
    }

    #[test]
    fn distinct_experts_of_deepseek() {
        // G80: 256 experts, 8 per token.
        for (tokens, expected) in [(1.0, 8.0), (8.0, 57.42), (32.0, 163.31), (128.0, 251.60)] {
            crate::close(distinct(256.0, 8.0, tokens), expected, 1e-4);
        }
    }
}
