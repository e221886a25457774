//! Reading what people write: a number, then a unit, with a clear refusal.

use thiserror::Error;

/// A text that is not the quantity it should be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("\"{given}\" is not {expected}; {}", written(.given, .expected, .example))]
pub struct UnitError {
    pub given: String,
    pub expected: &'static str,
    pub example: &'static str,
}

impl UnitError {
    pub fn new(given: &str, expected: &'static str, example: &'static str) -> Self {
        let mut short: String = given.chars().take(40).collect();
        if short.len() < given.len() {
            short.push('…');
        }
        Self { given: short, expected, example }
    }
}

/// What would do. A bare number for a time has two readings, and guessing would be off by a thousand.
fn written(given: &str, expected: &str, example: &str) -> String {
    let number = given.trim();
    if expected == "a time" && number.parse::<f64>().is_ok_and(|v| v.is_finite() && v >= 0.0) {
        return format!("it has no unit: write {number}ms or {number}s");
    }
    let minutes = number.strip_suffix('m').filter(|n| n.parse::<f64>().is_ok_and(f64::is_finite));
    if let Some(n) = minutes.filter(|_| expected == "a time") {
        return format!("write {n}min for minutes or {n}ms for milliseconds");
    }
    let also = if expected == "a time" { ", 60s, 10min, 8h, 30d or 5y" } else { "" };
    format!("write it like {example}{also}")
}

/// One spelling of a unit and what it is worth in the base unit.
pub(crate) struct Unit {
    pub text: &'static str,
    pub scale: f64,
}

/// Splits "3.35 TB/s" into number and unit and scales it. Money puts its sign first: "$2.10/h" has the unit "$/h".
pub(crate) fn quantity(
    text: &str,
    units: &[Unit],
    expected: &'static str,
    example: &'static str,
) -> Result<f64, UnitError> {
    let bad = || UnitError::new(text, expected, example);
    let trimmed = text.trim();
    let (dollar, rest) = match trimmed.strip_prefix('$') {
        Some(rest) => ("$", rest.trim_start()),
        None => ("", trimmed),
    };
    let end = number_end(rest);
    let digits: String = rest[..end].chars().filter(|c| *c != ',' && *c != '_').collect();
    let value: f64 = digits.parse().map_err(|_| bad())?;
    let unit = format!("{dollar}{}", rest[end..].trim_start());
    let unit = units.iter().find(|u| u.text == unit).ok_or_else(bad)?;
    Ok(value * unit.scale)
}

/// Where the number stops: digits, separators, a point, and an exponent only when digits follow it.
fn number_end(text: &str) -> usize {
    let start = usize::from(text.starts_with(['+', '-']));
    let after = |c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '_'));
    let end = text[start..].find(after).map_or(text.len(), |n| start + n);
    let exponent = text[end..].strip_prefix(['e', 'E']).map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest));
    match exponent.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        Some(digits) => text.len() - digits.trim_start_matches(|c: char| c.is_ascii_digit()).len(),
        None => end,
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!("80 GiB".parse(), Ok(Bytes::gib(80.0)));
        assert_eq!("80GB".parse(), Ok(Bytes::gb(80.0)));
        assert_eq!("24G".parse(), Ok(Bytes::gb(24.0)));
        assert_eq!("3.35 TB/s".parse(), Ok(ByteRate::tb_per_s(3.35)));
        assert_eq!("400 Gb/s".parse(), Ok(ByteRate::gb_per_s(50.0)));
        assert_eq!("$2.10/h".parse(), Ok(DollarRate::per_hour(2.10)));
        assert_eq!("$3.5M".parse(), Ok(Dollars::usd(3.5e6)));
        for text in ["48.6k", "$48.6k", "48.6k$"] {
            assert_eq!(text.parse(), Ok(Dollars::usd(48_600.0)), "{text}");
        }
        for text in ["2.10/h", "2.10$/h", "2.10 $/h"] {
            assert_eq!(text.parse(), Ok(DollarRate::per_hour(2.10)), "{text}");
        }
        assert_eq!("$0.55/Mtok".parse(), Ok(DollarsPerToken::per_mtok(0.55)));
        assert_eq!("50ms".parse(), Ok(Seconds::ms(50.0)));
        assert_eq!("128k".parse(), Ok(Tokens::new(128_000.0)));
        assert_eq!("128Ki".parse(), Ok(Tokens::new(131_072.0)));
        assert_eq!("1,024".parse(), Ok(Tokens::new(1024.0)));
        assert_eq!("1.04T".parse(), Ok(Params::new(1.04e12)));
        assert_eq!("2e12 B".parse(), Ok(Bytes::tb(2.0)));
        assert_eq!("989 TFLOP/s".parse(), Ok(FlopRate::tflop_per_s(989.0)));
    }

    #[test]
    fn refuses_the_impossible_and_the_ambiguous() {
        for bad in ["", "GB", "-3 GB", "NaN GB", "inf GB", "1e400 GB", "80", "80 GBit", "80 GB extra"] {
            assert!(bad.parse::<Bytes>().is_err(), "{bad}");
        }
        // On a link a small b is a bit, and "gb/s" could be either.
        assert!("900 gb/s".parse::<ByteRate>().is_err());
        assert!("50".parse::<Seconds>().is_err());
        let error = "fast".parse::<Seconds>().unwrap_err();
        assert_eq!(error.to_string(), "\"fast\" is not a time; write it like 50ms, 60s, 10min, 8h, 30d or 5y");
        // A year of 365.25 days.
        assert_eq!("2y".parse(), Ok(Seconds::days(730.5)));
        let bare = "30".parse::<Seconds>().expect_err("thirty what?").to_string();
        assert_eq!(bare, "\"30\" is not a time; it has no unit: write 30ms or 30s");
    }
}
