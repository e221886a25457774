//! A run played event by event: work, checkpoint, failure, restart.
//!
//! Failures arrive at exponential gaps drawn from a seed. Work since the last checkpoint is lost; a failure during a
//! checkpoint loses the work it was to keep; a failure during a restart starts it again. No checkpoint follows the last
//! piece of work, because the run is over.

use super::Hazard;
use rackmath_units::{Cancel, Cancelled, Chance, Seconds};

/// Where the time of a run went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Journal {
    /// Progress that was kept.
    pub work: Seconds,
    /// Checkpoints that were finished.
    pub stalls: Seconds,
    /// Work and checkpoints that failures undid.
    pub lost: Seconds,
    /// Restarts, finished or not.
    pub restarts: Seconds,
    pub failures: u64,
    pub checkpoints: u64,
}

impl Journal {
    /// From start to end.
    pub fn total(&self) -> Seconds {
        self.work + self.stalls + self.lost + self.restarts
    }
}

/// Plays a run of so much work. The caller keeps it finishable: a run of which almost nothing succeeds has no end.
pub fn simulate(hazard: &Hazard, interval: Seconds, work: Seconds, seed: u64) -> Journal {
    let journal = checked(hazard, interval, work, seed, u64::MAX, &Cancel::never()).expect("nobody cancels");
    journal.expect("no limit on events")
}

/// Events between two looks at whether the result is still wanted.
const BETWEEN_CHECKS: u64 = 4096;

/// The same, or nothing when it takes more than `most` events.
pub fn checked(
    hazard: &Hazard,
    interval: Seconds,
    work: Seconds,
    seed: u64,
    most: u64,
    cancel: &Cancel,
) -> Result<Option<Journal>, Cancelled> {
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
    Ok(Some(Journal {
        work: Seconds::s(kept),
        stalls: Seconds::s(stalls),
        lost: Seconds::s(lost),
        restarts: Seconds::s(restarts),
        failures,
        checkpoints,
    }))
}
