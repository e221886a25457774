//! How much of a long run is progress when machines fail.
//!
//! $$ \tau^\star \approx \sqrt{2 \delta M} \qquad g \approx 1 - \frac{\delta}{\tau} - \frac{\tau}{2M} - \frac{R}{M} $$
//! $$ g = \frac{\tau}{M\, e^{R/M} \left(e^{(\tau+\delta)/M} - 1\right)} \qquad M = m / n $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | tau | interval | s | work between two checkpoints |
//! | delta | stall | s | pause of the run while a checkpoint is taken |
//! | R | restart | s | from a failure to work again |
//! | M, m, n | mtbf | s, s, 1 | mean time between failures of the job, of one chip, chips |
//! | g | goodput | 1 | progress, of all time |
//!
//! The first line is first-order in 1/M, the second exact for failures at random times that also strike during checkpoints
//! and restarts. [`simulate`] plays the same rules event by event from a seed. Effective MFU is MFU times g.
//! Ignores: slow machines that do not fail, failures that cluster, spares that run out.
//! Sources: Young 1974; Daly 2006.

mod simulation;

pub use simulation::{Journal, checked, simulate};

use rackmath_units::{Fraction, Seconds, float};

/// A job's failures and what they cost it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hazard {
    /// Mean time between failures of the whole job; nothing when it never fails.
    pub mtbf: Option<Seconds>,
    pub stall: Seconds,
    /// From a failure to work again.
    pub restart: Seconds,
}

/// A job fails when any of its chips does.
pub fn job_mtbf(chip_mtbf: Seconds, chips: f64) -> Seconds {
    chip_mtbf / chips
}

impl Hazard {
    /// Young's interval, sqrt(2 delta M); nothing without failures or without a stall to spare.
    pub fn young_interval(&self) -> Option<Seconds> {
        let m = self.mtbf?;
        (self.stall.get() > 0.0).then(|| Seconds::s((2.0 * self.stall.get() * m.get()).sqrt()))
    }

    /// The exact best interval: where (tau/M - 1) e^((tau + delta)/M) = -1.
    pub fn best_interval(&self) -> Option<Seconds> {
        let (m, delta) = (self.mtbf?.get(), self.stall.get());
        let young = self.young_interval()?;
        // In x = tau/M: x lies between 0 and 1, and rises with delta/M.
        let d = delta / m;
        let x = float::root(0.0, 1.0, |x| (x - 1.0) + float::exp(-x - d))?;
        // Below the last digits of x Young's form is exact.
        Some(if x < 1e-7 { young } else { Seconds::s(x * m) })
    }

    /// Progress share to first order; below zero where the approximation has broken down.
    pub fn first_order(&self, interval: Seconds) -> f64 {
        let (tau, delta) = (interval.get(), self.stall.get());
        let failures = self.mtbf.map_or(0.0, |m| (tau / 2.0 + self.restart.get()) / m.get());
        1.0 - delta / tau - failures
    }

    /// Progress share, exact for failures at random times.
    pub fn goodput(&self, interval: Seconds) -> Fraction {
        let (tau, delta) = (interval.get(), self.stall.get());
        let share = match self.mtbf {
            None => tau / (tau + delta),
            Some(m) => {
                let m = m.get();
                tau / (m * float::exp(self.restart.get() / m) * float::exp_m1((tau + delta) / m))
            }
        };
        Fraction::checked(share).unwrap_or(if share > 1.0 { Fraction::ONE } else { Fraction::ZERO })
    }

    /// Progress share at the best interval; without failures or stalls there is nothing to lose.
    pub fn best_goodput(&self) -> Fraction {
        match (self.mtbf, self.best_interval()) {
            (_, Some(tau)) => self.goodput(tau),
            // Free checkpoints are taken all the time, and only restarts are lost.
            (Some(m), None) => Fraction::new(float::exp(-self.restart.get() / m.get())),
            (None, None) => Fraction::ONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 419 unexpected stops in 54 days on 16,384 chips.
    fn llama() -> Seconds {
        Seconds::s(54.0 * 86_400.0 / 419.0)
    }

    fn hazard(stall: f64, restart: f64) -> Hazard {
        Hazard { mtbf: Some(llama()), stall: Seconds::s(stall), restart: Seconds::s(restart) }
    }

    #[test]
    fn llama_3s_failures() {
        // 3.09 h between stops; stall 10 s and restart 480 s give 472 s and 91.5 %, 30 s and 600 s give 87.3 %.
        assert!((llama().get() / 3600.0 - 3.09).abs() < 0.005);
        let h = hazard(10.0, 480.0);
        let tau = h.young_interval().unwrap();
        assert!((tau.get() - 472.0).abs() < 0.5, "{tau}");
        assert!((h.first_order(tau) - 0.915).abs() < 5e-4);
        let h = hazard(30.0, 600.0);
        assert!((h.first_order(h.young_interval().unwrap()) - 0.873).abs() < 5e-4);
    }

    #[test]
    fn exact_and_first_order_agree_when_failures_are_rare() {
        let h = Hazard { mtbf: Some(Seconds::s(1e7)), stall: Seconds::s(10.0), restart: Seconds::s(100.0) };
        let tau = h.best_interval().unwrap();
        assert!((tau / h.young_interval().unwrap() - 1.0).abs() < 1e-3);
        assert!((h.goodput(tau).get() - h.first_order(tau)).abs() < 1e-5);
    }

    #[test]
    fn the_simulation_agrees_with_the_exact_form() {
        // Two years of work: over 6,000 failures, so the share is known to about one part in a thousand.
        let h = hazard(30.0, 600.0);
        let tau = h.best_interval().unwrap();
        let j = simulate(&h, tau, Seconds::s(730.0 * 86_400.0), 1);
        let got = j.work / j.total();
        assert!((got - h.goodput(tau).get()).abs() < 3e-3, "{got} against {}", h.goodput(tau).get());
        let rate = j.failures as f64 * llama().get() / j.total().get();
        assert!((rate - 1.0).abs() < 0.04, "{rate}");
    }

    #[test]
    fn nothing_fails_nothing_is_lost() {
        let h = Hazard { mtbf: None, stall: Seconds::s(10.0), restart: Seconds::s(600.0) };
        assert_eq!(h.goodput(Seconds::s(990.0)).get(), 0.99);
        assert_eq!(h.best_goodput(), Fraction::ONE);
        let j = simulate(&h, Seconds::s(1000.0), Seconds::s(3000.0), 7);
        // Three segments, and no checkpoint after the last.
        assert_eq!((j.total(), j.failures, j.checkpoints), (Seconds::s(3020.0), 0, 2));
    }

    proptest! {
        #[test]
        fn more_failures_never_pay(m in 4.0f64..16.0, more in 0.0f64..3.0, stall in 0.0f64..100.0, restart in 0.0f64..2000.0) {
            let g = |ln_m: f64| {
                let mtbf = Some(Seconds::s(float::exp(ln_m)));
                Hazard { mtbf, stall: Seconds::s(stall), restart: Seconds::s(restart) }.best_goodput().get()
            };
            prop_assert!(g(m) <= g(m + more) + 1e-12);
        }

        #[test]
        fn no_interval_beats_the_best(m in 6.0f64..16.0, stall in 0.1f64..100.0, restart in 0.0f64..2000.0, off in -3.0f64..3.0) {
            let h = Hazard { mtbf: Some(Seconds::s(float::exp(m))), stall: Seconds::s(stall), restart: Seconds::s(restart) };
            let best = h.best_interval().unwrap();
            prop_assert!(h.goodput(best * float::exp(off)).get() <= h.goodput(best).get() * (1.0 + 1e-6));
        }

        #[test]
        fn every_second_of_a_simulated_run_is_accounted_for(seed in 0u64..1000, m in 6.0f64..12.0, tau in 50.0f64..5000.0) {
            let h = Hazard { mtbf: Some(Seconds::s(float::exp(m))), stall: Seconds::s(5.0), restart: Seconds::s(60.0) };
            let work = Seconds::s(1e5);
            let cancel = rackmath_units::Cancel::never();
            let Some(j) = checked(&h, Seconds::s(tau), work, seed, 100_000, &cancel).unwrap() else { return Ok(()) };
            prop_assert!((j.work / work - 1.0).abs() < 1e-9);
            prop_assert!(j.total().get() >= work.get() * (1.0 - 1e-9));
        }
    }
}
