//! How long prompts or answers are: a length, or a distribution of lengths, as a person writes it.
//!
//! `4k`, `uniform:1k..4k`, `exponential:mean=1k`, `lognormal:mean=4k,cv=0.8`.

use crate::SpecError;
use rackmath_units::Tokens;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lengths {
    /// All alike.
    Fixed(f64),
    /// Every length between two equally often.
    Uniform { low: f64, high: f64 },
    /// The chance to end is the same at every token.
    Exponential { mean: f64 },
    /// The logarithm is normal: most are short, some very long; `cv` is the standard deviation over the mean.
    Lognormal { mean: f64, cv: f64 },
}

const NAMES: [&str; 4] = ["fixed", "uniform", "exponential", "lognormal"];
const LONGEST: f64 = 1e9;
/// Beyond this a mean says nothing.
const WIDEST: f64 = 20.0;

fn bad(given: &str, expected: &str) -> SpecError {
    SpecError::field("lengths", "distribution", given, expected)
}

fn tokens(text: &str) -> Result<f64, SpecError> {
    let n = text.trim().parse::<Tokens>().ok().map(Tokens::get).filter(|n| (1.0..=LONGEST).contains(n));
    n.ok_or_else(|| bad(text, "1 to 1e9 tokens, such as 4k"))
}

/// The values of `names` in `a=1,b=2`, in any order, each once.
fn fields<'a, const N: usize>(text: &'a str, names: [&str; N], example: &str) -> Result<[&'a str; N], SpecError> {
    let parts: Vec<_> = text.split(',').filter_map(|part| part.split_once('=')).collect();
    let value = |name: &str| parts.iter().find(|(n, _)| n.trim() == name).map(|(_, value)| value.trim());
    let found = names.map(value);
    let each_once = text.split(',').count() == N && found.iter().all(Option::is_some);
    if each_once { Ok(found.map(Option::unwrap_or_default)) } else { Err(bad(text, example)) }
}

impl FromStr for Lengths {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let Some((name, rest)) = text.split_once(':') else {
            return match tokens(text) {
                Ok(n) => Ok(Self::Fixed(n)),
                Err(_) if text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                    Err(SpecError::unknown("distribution of lengths", text, NAMES.into_iter()))
                }
                Err(e) => Err(e),
            };
        };
        match name.trim() {
            "fixed" => Ok(Self::Fixed(tokens(rest)?)),
            "uniform" => {
                let (low, high) = rest.split_once("..").ok_or_else(|| bad(rest, "uniform:1k..4k"))?;
                let (low, high) = (tokens(low)?, tokens(high)?);
                if low > high {
                    return Err(bad(rest, "the shorter length first, such as uniform:1k..4k"));
                }
                Ok(Self::Uniform { low, high })
            }
            "exponential" => {
                let [mean] = fields(rest, ["mean"], "exponential:mean=1k")?;
                Ok(Self::Exponential { mean: tokens(mean)? })
            }
            "lognormal" => {
                let [mean, cv] = fields(rest, ["mean", "cv"], "lognormal:mean=4k,cv=0.8")?;
                let spread = cv.parse::<f64>().ok().filter(|cv| (0.0..=WIDEST).contains(cv));
                let spread = spread.ok_or_else(|| bad(cv, "a coefficient of variation from 0 to 20"))?;
                Ok(Self::Lognormal { mean: tokens(mean)?, cv: spread })
            }
            other => Err(SpecError::unknown("distribution of lengths", other, NAMES.into_iter())),
        }
    }
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(n) => write!(f, "{n}"),
            Self::Uniform { low, high } => write!(f, "uniform:{low}..{high}"),
            Self::Exponential { mean } => write!(f, "exponential:mean={mean}"),
            Self::Lognormal { mean, cv } => write!(f, "lognormal:mean={mean},cv={cv}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn people_write_them_like_this() {
        let read = |text: &str| text.parse::<Lengths>().unwrap();
        assert_eq!(read("4k"), Lengths::Fixed(4000.0));
        assert_eq!(read("uniform:1k..4k"), Lengths::Uniform { low: 1000.0, high: 4000.0 });
        assert_eq!(read("exponential:mean=500"), Lengths::Exponential { mean: 500.0 });
        assert_eq!(read("lognormal: cv=0.8, mean=4k"), Lengths::Lognormal { mean: 4000.0, cv: 0.8 });
    }

    #[test]
    fn slips_are_refused_with_what_would_do() {
        let refused = |text: &str| text.parse::<Lengths>().unwrap_err().to_string();
        assert!(refused("lognorm:mean=4k,cv=1").contains("did you mean \"lognormal\""));
        assert!(refused("uniform:4k..1k").contains("shorter"));
        assert!(refused("uniform:1k-4k").contains("uniform:1k..4k"));
        assert!(refused("lognormal:mean=4k").contains("cv="));
        assert!(refused("lognormal:mean=4k,cv=-1").contains("0 to 20"));
        assert!(refused("lognormal:mean=4k,mean=5k").contains("mean=4k,cv=0.8"));
        assert!(refused("0").contains("1 to 1e9"));
        assert!(refused("gaussian").contains("lognormal"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z0-9:=.,-]{0,40}") {
            if let Ok(lengths) = text.parse::<Lengths>() {
                prop_assert_eq!(lengths.to_string().parse::<Lengths>().unwrap(), lengths);
            }
        }
    }
}
