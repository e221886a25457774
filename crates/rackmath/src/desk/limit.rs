//! Limits on times as people agree on them: on the mean, or on a percentile.
//!
//! `30ms` is a limit on the mean; `p90=1s` says that nine requests in ten stay within a second. In JSON the first is a number
//! of milliseconds, the second the text itself.

use super::field::read_ms;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A time that must not be exceeded: by the mean, or by a percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtMost {
    /// The time.
    pub ms: f64,
    /// Which percentile; the mean where none is given.
    pub percentile: Option<f64>,
}

impl AtMost {
    /// What would do.
    pub const EXPECTED: &str =
        "a time for the mean, such as 30ms, or one for a percentile from p1 to p99.9, such as p90=1s";
}

impl From<f64> for AtMost {
    fn from(ms: f64) -> Self {
        Self { ms, percentile: None }
    }
}

impl FromStr for AtMost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, time)) = text.split_once('=') else { return Ok(read_ms(text)?.into()) };
        let percentile = name.trim().strip_prefix(['p', 'P']).and_then(|p| p.parse().ok());
        match percentile.filter(|p| (1.0..=99.9).contains(p)) {
            None => Err(format!("expected {}", Self::EXPECTED)),
            percentile => Ok(Self { ms: read_ms(time)?, percentile }),
        }
    }
}

impl fmt::Display for AtMost {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if let Some(p) = self.percentile {
            write!(f, "p{p}=")?;
        }
        write!(f, "{}ms", self.ms)
    }
}

impl Serialize for AtMost {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.percentile {
            None => to.serialize_f64(self.ms),
            Some(_) => to.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for AtMost {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a number of milliseconds for the mean, or a text such as \"p90=1s\"")]
        enum Given {
            Ms(f64),
            Text(String),
        }
        match Given::deserialize(from)? {
            Given::Ms(ms) => Ok(ms.into()),
            Given::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

impl JsonSchema for AtMost {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AtMost".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string"], "x-unit": "limit" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_time_is_a_mean_and_both_read_back() {
        for (text, ms, percentile) in
            [("30ms", 30.0, None), ("p90=1s", 1000.0, Some(90.0)), ("P99.9=250 ms", 250.0, Some(99.9))]
        {
            let read: AtMost = text.parse().unwrap();
            assert_eq!(read, AtMost { ms, percentile });
            let json = serde_json::to_string(&read).unwrap();
            assert_eq!(serde_json::from_str::<AtMost>(&json).unwrap(), read, "{json}");
        }
        assert_eq!(serde_json::to_string(&AtMost::from(30.0)).unwrap(), "30.0");
        for wrong in ["p0=1s", "p100=1s", "90=1s", "q90=1s", "p=1s", "p90=", "p90=soon", "pp90=-1s"] {
            let said = wrong.parse::<AtMost>().expect_err(wrong);
            assert!(!said.is_empty(), "{wrong}: {said}");
        }
        assert!(serde_json::from_str::<AtMost>("[1]").unwrap_err().to_string().contains("p90=1s"));
    }
}
