//! The quantities, the units people write them in, and the only products and quotients that mean something.

use crate::parse::{self, Unit, UnitError};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul};
use std::str::FromStr;

/// What all quantities can do: be a number in the base unit, and be printed with so many digits.
pub trait Quantity: Copy {
    fn number(self) -> f64;
    fn text(self, digits: usize) -> String;
}

/// A number without a unit.
impl Quantity for f64 {
    fn number(self) -> f64 {
        self
    }

    fn text(self, digits: usize) -> String {
        crate::significant(self, digits)
    }
}

/// Declares a quantity: its constructors and readers by unit, and the units `FromStr` accepts.
macro_rules! quantity {
    (
        $(#[$doc:meta])* $name:ident, base $base:ident, show $style:expr, expects $what:literal, such_as $example:literal,
        $(units { $( $(#[$udoc:meta])* $unit:ident = $factor:expr ),* $(,)? },)?
        parse [ $( $text:literal = $scale:expr ),* $(,)? ]
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
        pub struct $name(f64);

        impl $name {
            pub const ZERO: Self = Self(0.0);

            /// From the base unit; panics unless finite and not negative.
            pub fn $base(value: f64) -> Self {
                Self::checked(value).expect(concat!(stringify!($name), " must be finite and not negative"))
            }

            /// From the base unit, or nothing unless finite and not negative.
            pub fn checked(value: f64) -> Option<Self> {
                // `-0.0` compares equal to zero; adding zero gives it the positive sign so that it prints as "0".
                (value.is_finite() && value >= 0.0).then_some(Self(value + 0.0))
            }

            pub const fn get(self) -> f64 {
                self.0
            }

            $($(
                $(#[$udoc])*
                pub fn $unit(value: f64) -> Self {
                    Self::$base(value * $factor)
                }
            )*)?

            #[must_use]
            pub fn max(self, other: Self) -> Self {
                if other.0 > self.0 { other } else { self }
            }

            #[must_use]
            pub fn min(self, other: Self) -> Self {
                if other.0 < self.0 { other } else { self }
            }

            /// What remains after taking `other` away; nothing when there is less than that.
            #[must_use]
            pub fn less(self, other: Self) -> Self {
                Self((self.0 - other.0).max(0.0))
            }

            fn derived(value: f64) -> Self {
                debug_assert!(value.is_finite() && value >= 0.0, concat!(stringify!($name), " out of range: {}"), value);
                Self(value)
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self { Self::derived(self.0 + other.0) }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) { *self = *self + other; }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self { items.fold(Self::ZERO, Add::add) }
        }

        impl Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self { Self::derived(self.0 * factor) }
        }

        impl Mul<$name> for f64 {
            type Output = $name;
            fn mul(self, quantity: $name) -> $name { quantity * self }
        }

        impl Div<f64> for $name {
            type Output = Self;
            fn div(self, divisor: f64) -> Self { Self::derived(self.0 / divisor) }
        }

        /// How many times one fits into the other.
        impl Div for $name {
            type Output = f64;
            fn div(self, other: Self) -> f64 { self.0 / other.0 }
        }

        impl FromStr for $name {
            type Err = UnitError;

            fn from_str(text: &str) -> Result<Self, UnitError> {
                const UNITS: &[Unit] = &[ $( Unit { text: $text, scale: $scale } ),* ];
                let value = parse::quantity(text, UNITS, $what, $example)?;
                Self::checked(value).ok_or_else(|| UnitError::new(text, $what, $example))
            }
        }

        impl From<$name> for f64 {
            fn from(quantity: $name) -> Self { quantity.0 }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&crate::show::quantity(self.0, 3, $style))
            }
        }

        impl $name {
            /// Prints with a chosen number of significant digits, in the unit `Display` would choose.
            pub fn show(self, digits: usize) -> String {
                crate::show::quantity(self.0, digits, $style)
            }
        }

        impl Quantity for $name {
            fn number(self) -> f64 { self.0 }
            fn text(self, digits: usize) -> String { self.show(digits) }
        }
    };
}

/// `product!(Rate * Time = Amount)` declares the product both ways and both quotients.
macro_rules! product {
    ($($a:ident * $b:ident = $c:ident;)*) => { $(
        impl Mul<$b> for $a {
            type Output = $c;
            fn mul(self, other: $b) -> $c { $c::derived(self.0 * other.0) }
        }
        impl Mul<$a> for $b {
            type Output = $c;
            fn mul(self, other: $a) -> $c { $c::derived(self.0 * other.0) }
        }
        impl Div<$b> for $c {
            type Output = $a;
            fn div(self, other: $b) -> $a { $a::derived(self.0 / other.0) }
        }
        impl Div<$a> for $c {
            type Output = $b;
            fn div(self, other: $a) -> $b { $b::derived(self.0 / other.0) }
        }
    )* };
}

use crate::show::Style;

quantity! {
    Seconds, base s, show Style::Time, expects "a time", such_as "50ms",
    units { ms = 1e-3, us = 1e-6, ns = 1e-9, hours = 3600.0, days = 86_400.0 },
    parse ["s" = 1.0, "ms" = 1e-3, "us" = 1e-6, "µs" = 1e-6, "μs" = 1e-6, "ns" = 1e-9, "min" = 60.0, "h" = 3600.0, "d" = 86_400.0, "y" = 31_557_600.0]
}

impl Seconds {
    pub fn as_ms(self) -> f64 {
        self.0 * 1e3
    }
}

quantity! {
    /// An amount of memory or traffic. `gb` is 10^9 bytes, `gib` is 2^30.
    Bytes, base b, show Style::Si("B"), expects "an amount of memory", such_as "80 GB or 80 GiB",
    units { kb = 1e3, mb = 1e6, gb = 1e9, tb = 1e12, gib = 1_073_741_824.0 },
    // Nobody counts memory in bits, so the lower-case spellings are safe here; on links they are not (see ByteRate).
    parse [
        "B" = 1.0, "kB" = 1e3, "KB" = 1e3, "MB" = 1e6, "GB" = 1e9, "TB" = 1e12, "PB" = 1e15,
        "kb" = 1e3, "mb" = 1e6, "gb" = 1e9, "tb" = 1e12, "G" = 1e9, "T" = 1e12,
        "KiB" = 1024.0, "MiB" = 1_048_576.0, "GiB" = 1_073_741_824.0, "TiB" = 1_099_511_627_776.0,
        "kib" = 1024.0, "mib" = 1_048_576.0, "gib" = 1_073_741_824.0, "tib" = 1_099_511_627_776.0,
    ]
}

impl Bytes {
    pub fn as_gb(self) -> f64 {
        self.0 / 1e9
    }
}

quantity! {
    /// Bytes per second, in one direction.
    ByteRate, base b_per_s, show Style::Si("B/s"), expects "a bandwidth", such_as "3.35 TB/s or 400 Gb/s",
    units { gb_per_s = 1e9, tb_per_s = 1e12 },
    // A small b is a bit: network people write Gb/s, Gbit/s and Gbps.
    parse [
        "B/s" = 1.0, "kB/s" = 1e3, "MB/s" = 1e6, "GB/s" = 1e9, "TB/s" = 1e12, "PB/s" = 1e15,
        "GBps" = 1e9, "TBps" = 1e12,
        "MiB/s" = 1_048_576.0, "GiB/s" = 1_073_741_824.0, "TiB/s" = 1_099_511_627_776.0,
        "Mb/s" = 1.25e5, "Gb/s" = 1.25e8, "Tb/s" = 1.25e11, "Mbit/s" = 1.25e5, "Gbit/s" = 1.25e8, "Tbit/s" = 1.25e11,
        "Mbps" = 1.25e5, "Gbps" = 1.25e8, "Tbps" = 1.25e11,
    ]
}

quantity! {
    /// Floating-point operations; a multiply-add is two.
    Flop, base flop, show Style::Si("FLOP"), expects "an amount of arithmetic", such_as "6e24 or 2.5 PFLOP",
    parse ["" = 1.0, "FLOP" = 1.0, "MFLOP" = 1e6, "GFLOP" = 1e9, "TFLOP" = 1e12, "PFLOP" = 1e15, "EFLOP" = 1e18]
}

quantity! {
    /// Operations per second at the dense peak.
    FlopRate, base flop_per_s, show Style::Si("FLOP/s"), expects "a compute peak", such_as "989 TFLOP/s",
    units { tflop_per_s = 1e12, pflop_per_s = 1e15 },
    parse [
        "FLOP/s" = 1.0, "GFLOP/s" = 1e9, "TFLOP/s" = 1e12, "PFLOP/s" = 1e15, "EFLOP/s" = 1e18,
        "TFLOPS" = 1e12, "PFLOPS" = 1e15, "TFLOPs" = 1e12, "PFLOPs" = 1e15, "GOP/s" = 1e9, "TOP/s" = 1e12, "POP/s" = 1e15, "TOPS" = 1e12, "POPS" = 1e15,
    ]
}

quantity! {
    /// Tokens, or sequences advancing by one token each; may be a mean.
    Tokens, base new, show Style::Count(""), expects "a number of tokens", such_as "4096, 128k, 128Ki or 1M",
    parse [
        "" = 1.0, "k" = 1e3, "K" = 1e3, "M" = 1e6, "m" = 1e6, "B" = 1e9, "G" = 1e9, "T" = 1e12,
        "Ki" = 1024.0, "ki" = 1024.0, "Mi" = 1_048_576.0, "tok" = 1.0, "ktok" = 1e3, "Mtok" = 1e6,
    ]
}

quantity! {
    Params, base new, show Style::Scale, expects "a number of parameters", such_as "70B or 1.04T",
    units { billion = 1e9 },
    parse ["" = 1.0, "M" = 1e6, "B" = 1e9, "T" = 1e12, "m" = 1e6, "b" = 1e9, "t" = 1e12]
}

quantity! {
    TokenRate, base per_s, show Style::Count(" tok/s"), expects "a token rate", such_as "128k tok/s",
    parse ["" = 1.0, "k" = 1e3, "M" = 1e6, "G" = 1e9, "tok/s" = 1.0, "ktok/s" = 1e3, "Mtok/s" = 1e6, "k tok/s" = 1e3, "Gtok/s" = 1e9, "M tok/s" = 1e6, "G tok/s" = 1e9]
}

quantity! {
    Dollars, base usd, show Style::Dollars(""), expects "an amount of money", such_as "3.5M",
    parse ["$" = 1.0, "$k" = 1e3, "$M" = 1e6, "$B" = 1e9, "" = 1.0, "k" = 1e3, "M" = 1e6, "B" = 1e9, "k$" = 1e3, "M$" = 1e6, "B$" = 1e9]
}

quantity! {
    /// Money per second, written per hour because that is how machines are rented.
    DollarRate, base usd_per_s, show Style::DollarsPerHour, expects "a price per hour", such_as "2.10/h",
    units { per_hour = (1.0 / 3600.0) },
    parse ["$/h" = (1.0 / 3600.0), "$/hr" = (1.0 / 3600.0), "$/hour" = (1.0 / 3600.0), "$/s" = 1.0, "/h" = (1.0 / 3600.0), "/hr" = (1.0 / 3600.0), "/hour" = (1.0 / 3600.0)]
}

impl DollarRate {
    pub fn as_per_hour(self) -> f64 {
        self.0 * 3600.0
    }
}

quantity! {
    DollarsPerToken, base usd_per_token, show Style::DollarsPerMtok, expects "a price per million tokens", such_as "0.55/Mtok",
    units { per_mtok = 1e-6 },
    parse ["$/Mtok" = 1e-6, "$/M" = 1e-6, "$/MTok" = 1e-6, "$/tok" = 1.0, "/Mtok" = 1e-6, "/MTok" = 1e-6, "/M" = 1e-6]
}

impl DollarsPerToken {
    pub fn as_per_mtok(self) -> f64 {
        self.0 * 1e6
    }
}

quantity! {
    /// Money for keeping a token for a while, written per million tokens and hour.
    HoldPrice, base usd_per_token_s, show Style::DollarsPerMtokHour, expects "a price per million tokens and hour", such_as "4.50/Mtok-h",
    units { per_mtok_hour = (1e-6 / 3600.0) },
    parse ["$/Mtok-h" = (1e-6 / 3600.0), "$/Mtok-hour" = (1e-6 / 3600.0), "$/Mtok/h" = (1e-6 / 3600.0), "$/Mtok/hour" = (1e-6 / 3600.0), "$/MTok-h" = (1e-6 / 3600.0), "$/MTok/h" = (1e-6 / 3600.0), "$/M-h" = (1e-6 / 3600.0), "$/M/h" = (1e-6 / 3600.0), "/Mtok-h" = (1e-6 / 3600.0)]
}

impl HoldPrice {
    pub fn as_per_mtok_hour(self) -> f64 {
        self.0 * 1e6 * 3600.0
    }
}

quantity! {
    Watts, base w, show Style::Si("W"), expects "a power", such_as "700 W",
    parse ["W" = 1.0, "kW" = 1e3, "MW" = 1e6, "GW" = 1e9]
}

quantity! {
    Joules, base j, show Style::Si("J"), expects "an energy", such_as "3.6 MJ or 1 kWh",
    parse ["J" = 1.0, "kJ" = 1e3, "MJ" = 1e6, "Wh" = 3600.0, "kWh" = 3.6e6, "MWh" = 3.6e9]
}

quantity! {
    BytesPerToken, base new, show Style::Si("B/token"), expects "bytes per token", such_as "2048 B/token",
    parse ["" = 1.0, "B" = 1.0, "kB" = 1e3, "KiB" = 1024.0, "MB" = 1e6, "B/token" = 1.0, "kB/token" = 1e3, "KiB/token" = 1024.0, "MB/token" = 1e6]
}

quantity! {
    /// Stored bytes for each parameter, block scales included.
    BytesPerParam, base new, show Style::Plain("B/param"), expects "bytes per parameter", such_as "0.5 B/param",
    parse ["" = 1.0, "B/param" = 1.0]
}

quantity! {
    FlopPerToken, base new, show Style::Si("FLOP/token"), expects "FLOP per token", such_as "74 GFLOP/token",
    parse ["FLOP/token" = 1.0, "GFLOP/token" = 1e9, "TFLOP/token" = 1e12]
}

quantity! {
    SecondsPerToken, base new, show Style::TimePer("token"), expects "time per token", such_as "0.6 us/token",
    parse ["s/token" = 1.0, "ms/token" = 1e-3, "us/token" = 1e-6, "ns/token" = 1e-9]
}

quantity! {
    /// Arithmetic for each byte moved: the slope of a roofline's corner.
    Intensity, base new, show Style::Plain("FLOP/B"), expects "FLOP per byte", such_as "295 FLOP/B",
    parse ["" = 1.0, "FLOP/B" = 1.0]
}

product! {
    ByteRate * Seconds = Bytes;
    FlopRate * Seconds = Flop;
    TokenRate * Seconds = Tokens;
    DollarRate * Seconds = Dollars;
    Watts * Seconds = Joules;
    BytesPerToken * Tokens = Bytes;
    BytesPerParam * Params = Bytes;
    FlopPerToken * Tokens = Flop;
    SecondsPerToken * Tokens = Seconds;
    DollarsPerToken * Tokens = Dollars;
    HoldPrice * Seconds = DollarsPerToken;
    DollarRate * SecondsPerToken = DollarsPerToken;
    FlopRate * SecondsPerToken = FlopPerToken;
    ByteRate * SecondsPerToken = BytesPerToken;
    Intensity * Bytes = Flop;
    Intensity * ByteRate = FlopRate;
}
