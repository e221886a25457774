//! Replicas that stand by: how many, so that as many as the traffic needs are up for a wanted share of the time.
//!
//! $$ a = \frac{\mathrm{MTTF}}{\mathrm{MTTF} + \mathrm{MTTR}} = \frac{1}{1 + c\,\lambda\,t_r} \qquad
//!    A(k, s) = \sum_{j=0}^{s} \binom{k+s}{j} (1-a)^{j} a^{\,k+s-j} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | c | chips | 1 | chips of a replica: the loss of one stops it |
//! | λ, t_r | - | 1/s, s | failures of a chip, and the time until a failed replica serves again |
//! | λ t_r | down | 1 | share of its time that one chip would keep a replica of its own down, for small shares |
//! | a | up | 1 | share of the time a replica is up |
//! | k, s | needed, standby | 1 | replicas that the traffic needs, and those beyond them |
//! | A | available | 1 | share of the time at least k of k + s are up |
//!
//! Assumes: replicas fail independently of each other, and each is repaired as soon as it fails. Ignores: what fails together (a
//! rack, a switch, a release of software), and planned work. Source: any book on reliability, "k out of n".

use rackmath_units::float;

/// Replicas beyond those that the traffic needs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Standby {
    #[default]
    None,
    Replicas(f64),
    /// As many as keep those that are needed up for a share of the time.
    Available {
        target: f64,
        /// Failures of a chip a second times the seconds of a repair.
        down: f64,
    },
}

/// More than these are not looked for.
const MOST: f64 = 10_000.0;

/// Share of the time a replica of so many chips is up.
pub fn up(chips: f64, down: f64) -> f64 {
    1.0 / (1.0 + chips * down)
}

/// Share of the time at least `needed` of `needed + standby` replicas are up, each for a share `up` of it.
pub fn available(needed: f64, standby: f64, up: f64) -> f64 {
    let (n, odds) = (needed + standby, (1.0 - up) / up);
    let mut term = float::pow(up, n);
    let mut all = term;
    for j in 0..standby as u64 {
        term *= (n - j as f64) / (j as f64 + 1.0) * odds;
        all += term;
    }
    all.min(1.0)
}

impl Standby {
    /// How many stand by where so many replicas of so many chips are needed; infinitely many where none are enough.
    pub fn beside(self, needed: f64, chips: f64) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Replicas(n) => n,
            Self::Available { target, down } => {
                let up = up(chips, down);
                let enough = |n: f64| available(needed, n, up) >= target;
                if enough(0.0) {
                    return 0.0;
                }
                // More are never less available: double, then halve.
                let mut high = 1.0;
                while !enough(high) {
                    high *= 2.0;
                    if high > MOST {
                        return f64::INFINITY;
                    }
                }
                let mut low = (high / 2.0).floor();
                while high - low > 1.0 {
                    let middle = f64::midpoint(low, high).floor();
                    if enough(middle) { high = middle } else { low = middle }
                }
                high
            }
        }
    }

    /// The most replicas that can be needed where there are so many in all; at least one, whether or not that is enough.
    pub fn within(self, all: f64, chips: f64) -> f64 {
        match self {
            Self::None => all,
            Self::Replicas(n) => (all - n).max(1.0),
            Self::Available { .. } => {
                // More needed, more beside them: halve the interval.
                let (mut low, mut high) = (1.0, all.max(1.0));
                while low < high {
                    let middle = f64::midpoint(low, high).ceil();
                    if middle + self.beside(middle, chips) <= all { low = middle } else { high = middle - 1.0 }
                }
                low
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_of_three_by_hand() {
        // Each up 0.9 of the time: 0.9^3 + 3 x 0.1 x 0.81 = 0.729 + 0.243.
        assert!((available(2.0, 1.0, 0.9) - 0.972).abs() < 1e-12);
        assert!((available(2.0, 0.0, 0.9) - 0.81).abs() < 1e-12);
        // 8 chips, each down for 1/72 of an hour in an hour: 8 / (1 + 8/72) = 0.9 up.
        assert!((up(8.0, 1.0 / 72.0) - 0.9).abs() < 1e-12);
        let kept = Standby::Available { target: 0.97, down: 1.0 / 72.0 };
        assert_eq!((kept.beside(2.0, 8.0), kept.within(3.0, 8.0), kept.within(2.0, 8.0)), (1.0, 2.0, 1.0));
        assert_eq!((Standby::Replicas(2.0).beside(7.0, 8.0), Standby::Replicas(2.0).within(7.0, 8.0)), (2.0, 5.0));
    }

    proptest! {
        #[test]
        fn more_beside_is_never_less_available_and_more_chips_never_more(
            needed in 1..60_u32, n in 0..8_u32, chips in 1..256_u32, down in 1e-7..1e-2_f64,
        ) {
            let (needed, n, chips) = (f64::from(needed), f64::from(n), f64::from(chips));
            let at = |n, chips| available(needed, n, up(chips, down));
            prop_assert!(at(n + 1.0, chips) >= at(n, chips) - 1e-12);
            prop_assert!(at(n, chips + 1.0) <= at(n, chips) + 1e-12);
            prop_assert!(available(needed + 1.0, n, up(chips, down)) <= at(n, chips) + 1e-12);
        }

        #[test]
        fn what_stands_by_is_enough_and_one_less_is_not(
            needed in 1..200_u32, chips in 1..64_u32, down in 1e-7..1e-2_f64, nines in 1..6_i32,
        ) {
            let (needed, chips, target) = (f64::from(needed), f64::from(chips), 1.0 - 10.0_f64.powi(-nines));
            let kept = Standby::Available { target, down };
            let n = kept.beside(needed, chips);
            let at = |n| available(needed, n, up(chips, down));
            prop_assert!(at(n) >= target && (n == 0.0 || at(n - 1.0) < target));
            let all = needed + n;
            prop_assert!(kept.within(all, chips) >= needed && kept.within(all + 1.0, chips) >= kept.within(all, chips));
        }
    }
}
