//! A share between nothing and all: efficiency, hit rate, utilisation.

use crate::parse::UnitError;
use std::{fmt, str::FromStr};

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Fraction(f64);

impl Fraction {
    pub const ZERO: Self = Self(0.0);
    pub const ONE: Self = Self(1.0);

    /// Builds a fraction; panics outside 0 to 1.
    pub fn new(value: f64) -> Self {
        Self::checked(value).expect("a fraction lies between 0 and 1")
    }

    /// Builds a fraction, or nothing outside 0 to 1.
    pub fn checked(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    pub const fn get(self) -> f64 {
        self.0
    }

    /// What is missing to the whole.
    #[must_use]
    pub fn rest(self) -> Self {
        Self(1.0 - self.0)
    }
}

impl From<Fraction> for f64 {
    fn from(share: Fraction) -> Self {
        share.0
    }
}

impl FromStr for Fraction {
    type Err = UnitError;

    /// Reads "0.9" or "90%".
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let bad = || UnitError::new(text, "a share of the whole", "0.9 or 90%");
        let trimmed = text.trim();
        let value = match trimmed.strip_suffix('%') {
            // Two places further left in the text itself: a division would make 0.9998999999999999 of 99.99%.
            Some(number) => {
                let number = number.trim();
                let hundredths = |text: &str| format!("{text}e-2").parse::<f64>().ok();
                let plain = number.parse::<f64>().map_err(|_| bad())?;
                hundredths(number).unwrap_or(plain / 100.0)
            }
            None => trimmed.parse::<f64>().map_err(|_| bad())?,
        };
        Self::checked(value).ok_or_else(bad)
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}%", crate::significant(self.0 * 100.0, 3)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_refuses() {
        assert_eq!("90%".parse(), Ok(Fraction::new(0.9)));
        assert_eq!("99.99%".parse(), Ok(Fraction::new(0.9999)));
        assert_eq!("0.25".parse::<Fraction>().unwrap().to_string(), "25.0%");
        for bad in ["1.2", "-0.1", "NaN", "", "120%", "half"] {
            assert!(bad.parse::<Fraction>().is_err(), "{bad}");
        }
    }
}
