//! Trains that leave on time: a pass starts every T whether it is full or not.
//!
//! $$ \text{latency of one token} \in (T, 2T] \qquad \bar t = \tfrac32 T \qquad \lambda_{max} = \frac{B}{T\, n} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | T | interval | s | time of one step |
//! | B | seats | sequences | most that ride together |
//! | n | stops | tokens | output tokens: a rider keeps the seat for all of them |
//! | lambda | rate | 1/s | requests arriving |
//!
//! Riders board in order of arrival when a seat is free. One who comes as the doors close has missed the train. Source:
//! lecture D12 and 1c.2.

use rackmath_units::{Cancel, Cancelled, Fraction, Seconds};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Worst time from arrival to first token while seats are free: a full wait and a ride.
pub fn worst_latency(interval: Seconds) -> Seconds {
    interval * 2.0
}

/// Mean time from arrival to first token while seats are free, arrivals spread evenly.
pub fn mean_latency(interval: Seconds) -> Seconds {
    interval * 1.5
}

/// Requests per second that can be carried for ever.
pub fn sustainable_rate(seats: f64, interval: Seconds, stops: f64) -> f64 {
    seats / (interval.get() * stops)
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rider {
    pub arrival: Seconds,
    pub stops: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ride {
    pub wait: Seconds,
    pub first_token: Seconds,
    pub last_token: Seconds,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Journal {
    pub rides: Vec<Ride>,
    /// Trains from the first departure with a rider to the last.
    pub departures: u64,
    /// Seats that the riders who board fill, of all seats, once as many get off as get on: neither the empty trains at the
    /// start of a run nor those after the last rider boarded count.
    pub fill: Fraction,
}

impl Journal {
    pub fn mean_first_token(&self) -> Seconds {
        self.mean(|r| r.first_token)
    }

    pub fn mean_wait(&self) -> Seconds {
        self.mean(|r| r.wait)
    }

    pub fn worst_wait(&self) -> Seconds {
        self.rides.iter().fold(Seconds::ZERO, |worst, r| worst.max(r.wait))
    }

    fn mean(&self, of: impl Fn(&Ride) -> Seconds) -> Seconds {
        let n = self.rides.len().max(1) as f64;
        self.rides.iter().map(of).sum::<Seconds>() / n
    }
}

const BETWEEN_CHECKS: usize = 4096;

/// Runs the station while it is wanted. Riders must come in order of arrival; each wants at least one token.
pub fn simulate(interval: Seconds, seats: usize, riders: &[Rider], cancel: &Cancel) -> Result<Journal, Cancelled> {
    assert!(seats > 0 && interval.get() > 0.0, "a train needs seats and a timetable");
    let t = interval.get();
    // The train on which each taken seat is free again.
    let mut free_on: BinaryHeap<Reverse<u64>> = BinaryHeap::with_capacity(seats);
    let (mut first, mut last, mut last_boarded, mut after_first) = (u64::MAX, 0, 0, 0u64);
    let rides = riders.iter().enumerate().map(|(at, rider)| {
        if at.is_multiple_of(BETWEEN_CHECKS) {
            cancel.check()?;
        }
        let missed = (rider.arrival.get() / t).floor() as u64;
        // The next train after the one leaving at or before the arrival.
        let mut train = (missed + 1).max(last_boarded);
        if free_on.len() == seats {
            let Reverse(free) = free_on.pop().expect("every seat is taken");
            train = train.max(free);
        }
        last_boarded = train;
        free_on.push(Reverse(train + rider.stops));
        (first, last) = (first.min(train), last.max(train + rider.stops));
        after_first += if at > 0 { rider.stops } else { 0 };
        let departure = Seconds::s(train as f64 * t);
        let wait = departure.less(rider.arrival);
        Ok(Ride { wait, first_token: wait + interval, last_token: wait + interval * rider.stops as f64 })
    });
    let rides: Vec<Ride> = rides.collect::<Result<_, _>>()?;
    let departures = last.saturating_sub(first.min(last));
    // Each train that riders board is behind by the first; all in one train ride together.
    let trains = last_boarded.saturating_sub(first.min(last_boarded));
    let taken = if trains == 0 { rides.len() as f64 } else { after_first as f64 / trains as f64 };
    let fill = (taken / seats as f64).min(1.0);
    Ok(Journal { rides, departures, fill: Fraction::checked(fill).unwrap_or(Fraction::ONE) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One rider after each gap in seconds.
    fn ran(interval: f64, seats: usize, stops: u64, gaps: impl Iterator<Item = f64>) -> Journal {
        let mut now = 0.0;
        let rider = |gap| {
            now += gap;
            Rider { arrival: Seconds::s(now), stops }
        };
        let riders: Vec<Rider> = gaps.map(rider).collect();
        simulate(Seconds::s(interval), seats, &riders, &Cancel::never()).unwrap()
    }

    #[test]
    fn a_step_of_20_ms() {
        // G15 and G16; simulated with evenly spread arrivals, never full.
        let t = Seconds::ms(20.0);
        assert_eq!((worst_latency(t), mean_latency(t)), (Seconds::ms(40.0), Seconds::ms(30.0)));
        assert!((sustainable_rate(2000.0, t, 500.0) - 200.0).abs() < 1e-9);
        let journal = ran(0.02, 10_000, 1, std::iter::repeat_n(0.7777e-3, 10_000));
        assert!((journal.mean_first_token().as_ms() / 30.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_full_train_makes_riders_wait_whole_trips() {
        let journal = ran(1.0, 2, 3, [0.5, 0.0, 0.0, 0.0].into_iter());
        let waits: Vec<f64> = journal.rides.iter().map(|r| r.wait.get()).collect();
        assert_eq!(waits, [0.5, 0.5, 3.5, 3.5]);
        assert_eq!((journal.departures, journal.fill), (6, Fraction::ONE));
    }

    #[test]
    fn a_short_run_says_the_fill_of_a_long_one() {
        // 150 requests a second, 500 steps of 20 ms each, 2,000 seats: 1,500 ride at a time, 75 %.
        let fill = |n| ran(0.02, 2000, 500, std::iter::repeat_n(1.0 / 150.0, n)).fill.get();
        for n in [100, 1_000, 10_000, 100_000] {
            assert!((fill(n) - 0.75).abs() < 0.03, "{n}: {}", fill(n));
        }
        // Twice what it can carry: full.
        assert!(ran(0.02, 20, 50, std::iter::repeat_n(0.025, 1_000)).fill.get() > 0.95);
    }

    proptest! {
        #[test]
        fn with_free_seats_one_token_takes_between_one_and_two_steps(
            gaps in proptest::collection::vec(0.0f64..0.1, 1..200), interval in 0.001f64..0.1,
        ) {
            for ride in ran(interval, gaps.len(), 1, gaps.iter().copied()).rides {
                let steps = ride.first_token.get() / interval;
                prop_assert!(steps > 1.0 - 1e-9 && steps <= 2.0 + 1e-9, "{steps}");
            }
        }

        #[test]
        fn stable_exactly_when_arrivals_fit_the_seats(seats in 1usize..20, stops in 1u64..30, load in 0.3f64..2.0) {
            prop_assume!((load - 1.0).abs() > 0.1);
            let rate = load * sustainable_rate(seats as f64, Seconds::ms(20.0), stops as f64);
            let n = 2_000;
            let journal = ran(0.02, seats, stops, std::iter::repeat_n(1.0 / rate, n));
            let waited = journal.rides.last().unwrap().wait.as_ms() / 20.0;
            // Below capacity a rider waits at most for seats to turn over once; above, the queue grows without end.
            let turnover = stops as f64 + 1.0;
            let backlog = n as f64 * stops as f64 * (1.0 - 1.0 / load) / seats as f64;
            prop_assert!(if load < 1.0 { waited <= turnover } else { waited > 0.5 * backlog - turnover }, "{waited}");
        }
    }
}
