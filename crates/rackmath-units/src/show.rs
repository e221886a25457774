//! Writing quantities for people: three significant digits and the unit that keeps the number between 1 and 1,000.

/// How a quantity chooses its prefix.
#[derive(Clone, Copy)]
pub(crate) enum Style {
    /// SI prefixes before a unit: 3.35 TB/s.
    Si(&'static str),
    /// No prefix: 281 FLOP/B.
    Plain(&'static str),
    /// Grouped digits up to a million, then k, M, G after the number: 133,000 tok/s.
    Count(&'static str),
    /// Millions, billions, trillions: 671 B.
    Scale,
    /// Seconds downwards by thousands, upwards to minutes, hours and days.
    Time,
    /// Time for each of something: 0.617 us/token.
    TimePer(&'static str),
    /// Dollars with k, M, B: $3.50 M.
    Dollars(&'static str),
    /// Stored per second, shown per hour.
    DollarsPerHour,
    /// Stored per token, shown per million.
    DollarsPerMtok,
    /// Stored per token and second, shown per million tokens and hour.
    DollarsPerMtokHour,
}

/// A number with so many significant digits and no exponent: 281, 24.0, 0.0142.
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { value.to_string() };
    }
    // Let the formatter round first: 9.996 with three digits is 10.0, which has one decimal fewer than 9.99.
    let rounded = format!("{:.*e}", digits - 1, value);
    let (mantissa, exponent) = rounded.split_once('e').expect("exponent format");
    let exponent: i32 = exponent.parse().expect("integer exponent");
    let decimals = digits as i32 - 1 - exponent;
    if decimals >= 0 {
        let value: f64 = rounded.parse().expect("round trip");
        format!("{value:.*}", decimals as usize)
    } else {
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let sign = if value < 0.0 { "-" } else { "" };
        grouped_digits(&format!("{sign}{digits}{}", "0".repeat((-decimals) as usize)))
    }
}

/// A whole number with thousands separators: 5,100.
pub fn grouped(value: f64) -> String {
    grouped_digits(&format!("{value:.0}"))
}

/// A decimal integer of any length with thousands separators.
pub fn grouped_digits(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |d| ("-", d));
    let mut out = String::from(sign);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

const SI: [(f64, &str); 10] = [
    (1e18, "E"),
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "u"),
    (1e-9, "n"),
];

pub(crate) fn quantity(value: f64, digits: usize, style: Style) -> String {
    match style {
        Style::Si(unit) => with_prefix(value, digits, " ", unit, &SI[..7]),
        Style::Plain(unit) => format!("{} {unit}", significant(value, digits)),
        Style::Count(unit) if rounds_below(value, 1e6, digits) => format!("{}{unit}", significant(value, digits)),
        Style::Count("") => with_prefix(value, digits, "", "", &SI[..5]),
        Style::Count(unit) => with_prefix(value, digits, " ", unit.trim_start(), &SI[..5]),
        Style::Scale => {
            let scale = [(1e12, "T"), (1e9, "B"), (1e6, "M"), (1.0, "")];
            with_prefix(value, digits, " ", "", &scale).trim_end().to_owned()
        }
        Style::Time => match long(value) {
            Some((factor, unit)) => format!("{} {unit}", significant(value / factor, digits)),
            None => with_prefix(value, digits, " ", "s", &SI[6..]),
        },
        Style::TimePer(what) => with_prefix(value, digits, " ", &format!("s/{what}"), &SI[6..]),
        Style::Dollars(suffix) => {
            let scale = [(1e9, "B"), (1e6, "M"), (1e3, "k"), (1.0, "")];
            let text = with_prefix(value, digits, " ", "", &scale);
            format!("${}{suffix}", text.trim_end())
        }
        Style::DollarsPerHour => format!("${}/h", significant(value * 3600.0, digits)),
        Style::DollarsPerMtok => format!("${}/Mtok", significant(value * 1e6, digits)),
        Style::DollarsPerMtokHour => format!("${}/Mtok-h", significant(value * 1e6 * 3600.0, digits)),
    }
}

/// What long times are shown in: minutes from two of them on, then hours, then days.
fn long(seconds: f64) -> Option<(f64, &'static str)> {
    [(86_400.0, "d"), (3_600.0, "h"), (60.0, "min")].into_iter().find(|(unit, _)| seconds >= 2.0 * unit)
}

impl crate::Seconds {
    /// The seconds of the unit it is shown in, from a second upwards.
    pub fn shown_in(self) -> f64 {
        long(self.get()).map_or(1.0, |(unit, _)| unit)
    }
}

/// Whether the value, once rounded to so many digits, is still below a limit.
fn rounds_below(value: f64, limit: f64, digits: usize) -> bool {
    value < limit * (1.0 - 0.5 * crate::float::pow(10.0, -(digits as f64)))
}

/// Picks the largest prefix that leaves at least 1, judged after rounding so that 999.9 GB becomes 1.00 TB.
fn with_prefix(value: f64, digits: usize, gap: &str, unit: &str, prefixes: &[(f64, &str)]) -> String {
    let last = prefixes.len() - 1;
    let at = if value == 0.0 {
        prefixes.iter().position(|(factor, _)| *factor == 1.0).unwrap_or(last)
    } else {
        prefixes.iter().position(|(factor, _)| !rounds_below(value, *factor, digits)).unwrap_or(last)
    };
    let (factor, prefix) = prefixes[at];
    format!("{}{gap}{prefix}{unit}", significant(value / factor, digits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::*;
    use proptest::prelude::*;

    #[test]
    fn three_digits() {
        for (value, text) in [
            (281.25, "281"),
            (24.0, "24.0"),
            (9.996, "10.0"),
            (0.014222, "0.0142"),
            (5100.5, "5,100"),
            (0.0, "0"),
            (999.6, "1,000"),
            (1234567.0, "1,230,000"),
            (0.09996, "0.100"),
        ] {
            assert_eq!(significant(value, 3), text);
        }
    }

    #[test]
    fn units_choose_their_prefix() {
        assert_eq!(ByteRate::tb_per_s(3.35).to_string(), "3.35 TB/s");
        assert_eq!(Bytes::gb(999.9).to_string(), "1.00 TB");
        assert_eq!(Bytes::ZERO.to_string(), "0 B");
        assert_eq!(Seconds::ms(1.7361).to_string(), "1.74 ms");
        assert_eq!(Seconds::hours(1.7).to_string(), "102 min");
        assert_eq!(Seconds::s(0.0).to_string(), "0 s");
        assert_eq!(Params::new(671.026e9).to_string(), "671 B");
        assert_eq!(Params::new(1.04e12).to_string(), "1.04 T");
        assert_eq!(TokenRate::per_s(133_333.3).to_string(), "133,000 tok/s");
        assert_eq!(TokenRate::per_s(1.23e9).to_string(), "1.23 Gtok/s");
        assert_eq!(Tokens::new(173_611.0).to_string(), "174,000");
        assert_eq!(Dollars::usd(3.5e6).to_string(), "$3.50 M");
        assert_eq!(DollarRate::per_hour(2.1).to_string(), "$2.10/h");
        assert_eq!(DollarsPerToken::per_mtok(0.3).to_string(), "$0.300/Mtok");
        assert_eq!(HoldPrice::per_mtok_hour(4.5).to_string(), "$4.50/Mtok-h");
        assert_eq!(SecondsPerToken::new(0.617e-6).to_string(), "617 ns/token");
        assert_eq!(Bytes::gb(670.1).show(6), "670.100 GB");
    }

    proptest! {
        #[test]
        fn printed_bytes_read_back_within_rounding(x in 1.0f64..1e18) {
            let back: Bytes = Bytes::b(x).to_string().replace(" EB", "e18 B").parse().unwrap();
            prop_assert!((back.get() / x - 1.0).abs() < 0.0051);
        }

        #[test]
        fn significant_keeps_its_digits(x in 1e-12f64..1e15, digits in 2usize..9) {
            let shown: f64 = significant(x, digits).replace(',', "").parse().unwrap();
            prop_assert!((shown / x - 1.0).abs() <= 0.5000001 * crate::float::pow(10.0, 1.0 - digits as f64));
        }
    }
}
