//! A day and a minute, in UTC: prices change on days and some change with the hour.

use rackmath_units::UnitError;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    pub date: Date,
    /// Minutes since midnight, 0 to 1,439.
    pub minute: u16,
}

impl Date {
    /// A day from 1970 on, or nothing when there is no such day.
    pub fn new(year: u16, month: u8, day: u8) -> Option<Self> {
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            1..=12 => 31,
            _ => return None,
        };
        ((1970..=9999).contains(&year) && (1..=days).contains(&day)).then_some(Self { year, month, day })
    }

    /// Days since 1970-01-01.
    pub fn days(self) -> i64 {
        // Years begin in March here, so that the leap day is the last of its year; 153 days are five months from March on.
        let (y, m) = (i64::from(self.year), i64::from(self.month));
        let (y, m) = if m > 2 { (y, m - 3) } else { (y - 1, m + 9) };
        365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + i64::from(self.day) - 1 - 719_468
    }

    /// The day so many days after 1970-01-01.
    pub fn from_days(days: i64) -> Option<Self> {
        // The year is guessed from below and walked up: at most a step or two.
        let mut year = u16::try_from(1970 + days / 366).ok()?;
        while Self::new(year + 1, 1, 1)?.days() <= days {
            year += 1;
        }
        let month = (1..=12).rev().find(|m| Self::new(year, *m, 1).is_some_and(|d| d.days() <= days))?;
        let first = Self::new(year, month, 1)?;
        Self::new(year, month, u8::try_from(days - first.days() + 1).ok()?)
    }

    /// Day of the week: 0 is Monday.
    pub fn weekday(self) -> usize {
        // 1970-01-01 was a Thursday.
        (self.days() + 3).rem_euclid(7) as usize
    }
}

impl Moment {
    /// The minute so many seconds later, rounded down; this one when that lies beyond the calendar.
    #[must_use]
    pub fn plus(self, time: rackmath_units::Seconds) -> Self {
        let minutes = i64::from(self.minute) + (time.get() / 60.0).min(1e12) as i64;
        let date = Date::from_days(self.date.days() + minutes / 1440);
        date.map_or(self, |date| Self { date, minute: (minutes % 1440) as u16 })
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:04}-{:02}-{:02}", self.year, self.month, self.day))
    }
}

impl FromStr for Date {
    type Err = UnitError;

    /// Reads "2026-08-05"; "2026-08" is the first of that month.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let bad = || UnitError::new(text, "a date", "2026-08-05");
        let parts: Vec<&str> = text.trim().split('-').collect();
        let number = |i: usize, digits: usize| {
            let part = parts.get(i).filter(|p| p.len() == digits && p.bytes().all(|b| b.is_ascii_digit()));
            part.and_then(|p| p.parse::<u16>().ok()).ok_or_else(bad)
        };
        let (year, month) = (number(0, 4)?, number(1, 2)?);
        let day = match parts.len() {
            2 => 1,
            3 => number(2, 2)?,
            _ => return Err(bad()),
        };
        Self::new(year, month as u8, day as u8).ok_or_else(bad)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} {:02}:{:02} UTC", self.date, self.minute / 60, self.minute % 60))
    }
}

impl FromStr for Moment {
    type Err = UnitError;

    /// Reads "2026-10-27T02:30" with or without a final Z; a bare date is midnight.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let bad = || UnitError::new(text, "a moment in UTC", "2026-10-27T02:30");
        let text = text.trim();
        let bare = text.strip_suffix(['Z', 'z']).unwrap_or(text);
        let (date, time) = match bare.split_once(['T', ' ']) {
            Some((date, time)) => (date, clock(time.get(..5).unwrap_or(time)).ok_or_else(bad)?),
            None => (bare, 0),
        };
        if time >= 1440 {
            return Err(bad());
        }
        Ok(Self { date: date.parse().map_err(|_| bad())?, minute: time })
    }
}

/// "16:30" as minutes since midnight; "24:00" is the end of the day.
pub(crate) fn clock(text: &str) -> Option<u16> {
    let (h, m) = text.trim().split_once(':')?;
    let two = |t: &str| (t.len() == 2 && t.bytes().all(|b| b.is_ascii_digit())).then(|| t.parse::<u16>().ok())?;
    let (h, m) = (two(h)?, two(m)?);
    ((h < 24 && m < 60) || (h == 24 && m == 0)).then_some(h * 60 + m)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn weekdays_and_leap_days() {
        let day = |t: &str| t.parse::<Date>().unwrap();
        assert_eq!(day("1970-01-01").days(), 0);
        assert_eq!(day("2000-03-01").days(), 11_017);
        // 2026-10-27 was a Tuesday, 2026-11-15 a Sunday.
        assert_eq!((day("2026-10-27").weekday(), day("2026-11-15").weekday()), (1, 6));
        assert_eq!(day("2026-08"), day("2026-08-01"));
        assert!(day("2024-02-29") < day("2024-03-01"));
        for bad in ["2025-02-29", "2026-13-01", "26-01-01", "2026/01/01", "2026-1-1", "", "2026-01-01-01", "2026-04-31"]
        {
            assert!(bad.parse::<Date>().is_err(), "{bad}");
        }
    }

    #[test]
    fn moments() {
        let at = |t: &str| t.parse::<Moment>().unwrap();
        assert_eq!(at("2026-10-27T02:30:59Z").minute, 150);
        assert_eq!(at("2026-10-27").minute, 0);
        let later = at("2026-12-31T23:30").plus(rackmath_units::Seconds::hours(1.0));
        assert_eq!(later, at("2027-01-01T00:30"));
        assert_eq!(later.plus(rackmath_units::Seconds::s(1e18)), later, "beyond the calendar");
        assert_eq!(at("2026-10-27 23:59").to_string(), "2026-10-27 23:59 UTC");
        for bad in ["2026-10-27T24:00", "2026-10-27T2:30", "2026-10-27T02:60", "noon"] {
            assert!(bad.parse::<Moment>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn days_and_dates_are_inverse(days in 0i64..200_000) {
            prop_assert_eq!(Date::from_days(days).unwrap().days(), days);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,30}") {
            let _ = (text.parse::<Date>(), text.parse::<Moment>());
        }
    }
}
