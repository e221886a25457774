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
//! and restarts. Effective MFU is MFU times g. [`simulate`] plays the same rules event by event: failures arrive at exponential
//! gaps drawn from a seed; work since the last checkpoint is lost; a failure during a checkpoint loses the work it was to keep;
//! one during a restart starts it again. No checkpoint follows the last piece of work, because the run is over.
//! Ignores: slow machines that do not fail, failures that cluster, spares that run out.
//! Sources: Young 1974; Daly 2006.

use rackmath_units::{Cancel, Cancelled, Chance, Fraction, Seconds, float};
use schemars::JsonSchema;
use serde::Serialize;

/// A job's failures and what they cost it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hazard {
    /// Mean time between failures of the whole job; nothing when it never fails.
    pub mtbf: Option<Seconds>,
    pub stall: Seconds,
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

/// Where the time of a simulated run went.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Simulated {
    /// Progress of all time.
    pub goodput: f64,
    /// Days from start to end.
    pub wall_days: f64,
    /// Share spent on checkpoints that were finished.
    pub stalls: f64,
    /// Share undone by failures.
    pub lost: f64,
    /// Share spent restarting.
    pub restarts: f64,
    /// Failures.
    pub failures: u64,
    /// Checkpoints finished.
    pub checkpoints: u64,
}

/// Events between two looks at whether the result is still wanted.
const BETWEEN_CHECKS: u64 = 4096;

/// Plays a run of so much work; nothing when it takes more than `most` events.
pub fn simulate(
    hazard: &Hazard,
    interval: Seconds,
    work: Seconds,
    seed: u64,
    most: u64,
    cancel: &Cancel,
) -> Result<Option<Simulated>, Cancelled> {
    assert!(interval.get() > 0.0, "work between checkpoints");
    let mut chance = Chance::new(seed);
    let mut gap = || hazard.mtbf.map_or(f64::INFINITY, |m| m.get() * chance.exponential());
    let mut until_failure = gap();
    let (mut kept, mut stalls, mut lost, mut restarts) = (0.0, 0.0, 0.0, 0.0);
    let (mut failures, mut checkpoints, mut events) = (0, 0, 0_u64);
    // A remainder below the rounding of the sum is no work.
    while kept < work.get() * (1.0 - 1e-12) {
        if events.is_multiple_of(BETWEEN_CHECKS) {
            cancel.check()?;
        }
        events += 1;
        if events > most {
            return Ok(None);
        }
        let piece = interval.get().min(work.get() - kept);
        let last = kept + piece >= work.get() * (1.0 - 1e-12);
        let stall = if last { 0.0 } else { hazard.stall.get() };
        if piece + stall <= until_failure {
            until_failure -= piece + stall;
            kept += piece;
            stalls += stall;
            checkpoints += u64::from(!last);
            continue;
        }
        lost += until_failure;
        failures += 1;
        until_failure = gap();
        while until_failure < hazard.restart.get() {
            events += 1;
            if events > most {
                return Ok(None);
            }
            restarts += until_failure;
            failures += 1;
            until_failure = gap();
        }
        restarts += hazard.restart.get();
        until_failure -= hazard.restart.get();
    }
    let total = kept + stalls + lost + restarts;
    let [goodput, stalls, lost, restarts] = [kept, stalls, lost, restarts].map(|part| part / total);
    Ok(Some(Simulated { goodput, wall_days: total / 86_400.0, stalls, lost, restarts, failures, checkpoints }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::close;
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
        for (h, share) in [(hazard(10.0, 480.0), 0.915), (hazard(30.0, 600.0), 0.873)] {
            assert!((h.first_order(h.young_interval().unwrap()) - share).abs() < 5e-4);
        }
        assert!((hazard(10.0, 480.0).young_interval().unwrap().get() - 472.0).abs() < 0.5);
        // Where failures are rare, the exact form is the first-order one.
        let h = Hazard { mtbf: Some(Seconds::s(1e7)), ..hazard(10.0, 100.0) };
        let tau = h.best_interval().unwrap();
        assert!((tau / h.young_interval().unwrap() - 1.0).abs() < 1e-3);
        assert!((h.goodput(tau).get() - h.first_order(tau)).abs() < 1e-5);
    }

    #[test]
    fn the_simulation_agrees_with_the_exact_form() {
        // Two years of work: over 6,000 failures, so the share is known to about one part in a thousand.
        let h = hazard(30.0, 600.0);
        let tau = h.best_interval().unwrap();
        let played =
            |h: &Hazard, tau, work, seed| simulate(h, tau, work, seed, u64::MAX, &Cancel::never()).unwrap().unwrap();
        let j = played(&h, tau, Seconds::days(730.0), 1);
        assert!((j.goodput - h.goodput(tau).get()).abs() < 3e-3, "{j:?} against {}", h.goodput(tau).get());
        close(j.failures as f64 * llama().get(), j.wall_days * 86_400.0, 0.04);
        // Where nothing fails nothing is lost: three segments, and no checkpoint after the last.
        let h = Hazard { mtbf: None, ..hazard(10.0, 600.0) };
        assert_eq!((h.goodput(Seconds::s(990.0)).get(), h.best_goodput()), (0.99, Fraction::ONE));
        let j = played(&h, Seconds::s(1000.0), Seconds::s(3000.0), 7);
        assert_eq!((j.wall_days, j.failures, j.checkpoints), (3020.0 / 86_400.0, 0, 2));
    }

    proptest! {
        #[test]
        fn more_failures_never_pay_and_no_interval_beats_the_best(
            m in 4.0f64..16.0, more in 0.0f64..3.0, stall in 0.0f64..100.0, restart in 0.0f64..2000.0, off in -3.0f64..3.0,
        ) {
            let at = |ln_m: f64| Hazard { mtbf: Some(Seconds::s(float::exp(ln_m))), ..hazard(stall, restart) };
            prop_assert!(at(m).best_goodput().get() <= at(m + more).best_goodput().get() + 1e-12);
            let h = at(m.max(6.0));
            if let Some(best) = h.best_interval() {
                prop_assert!(h.goodput(best * float::exp(off)).get() <= h.goodput(best).get() * (1.0 + 1e-6));
            }
        }

        #[test]
        fn every_second_of_a_simulated_run_is_accounted_for(seed in 0u64..1000, m in 6.0f64..12.0, tau in 50.0f64..5000.0) {
            let h = Hazard { mtbf: Some(Seconds::s(float::exp(m))), ..hazard(5.0, 60.0) };
            let work = Seconds::s(1e5);
            let Some(j) = simulate(&h, Seconds::s(tau), work, seed, 100_000, &Cancel::never()).unwrap() else { return Ok(()) };
            close(j.goodput * j.wall_days * 86_400.0 / work.get(), 1.0, 1e-9);
            close(j.goodput + j.stalls + j.lost + j.restarts, 1.0, 1e-9);
        }
    }
}
