//! A sentence of an answer as a value: which sentence it is, and what it speaks of. Its words are made in `report`.

use rackmath_spec::{Dtype, Layout, Math};
use rackmath_units as units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Which sentence, and the values it speaks of, in base units (seconds, bytes, shares of one).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Read")]
pub struct Remark {
    /// The sentence.
    pub says: Cow<'static, str>,
    /// Its values by name.
    #[serde(flatten)]
    pub with: BTreeMap<Cow<'static, str>, Part>,
}

/// A value of a sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Part {
    /// An amount, in its base unit.
    Number(#[serde(serialize_with = "shortest")] f64),
    /// A name.
    Text(String),
    /// A sentence within the sentence.
    Remark(Box<Remark>),
    /// Several.
    List(Vec<Part>),
}

/// A remark as it may be written: answers saved before remarks were values have text.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Read {
    Text(String),
    Remark {
        says: String,
        #[serde(flatten)]
        with: BTreeMap<String, Part>,
    },
}

impl From<Read> for Remark {
    fn from(read: Read) -> Self {
        match read {
            Read::Text(text) => text.into(),
            Read::Remark { says, with } => {
                Self { says: says.into(), with: with.into_iter().map(|(name, part)| (name.into(), part)).collect() }
            }
        }
    }
}

/// Begins a remark.
pub(crate) fn says(id: &'static str) -> Remark {
    Remark { says: id.into(), with: BTreeMap::new() }
}

impl Remark {
    /// The same, with a value; nothing, no and an empty list are left out.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Part>) -> Self {
        let part = value.into();
        if part != Part::List(Vec::new()) {
            self.with.insert(name.into(), part);
        }
        self
    }
}

/// A text of somebody else's, such as a note of the catalogue.
impl From<String> for Remark {
    fn from(text: String) -> Self {
        says("said").with("text", text)
    }
}

/// Whole numbers as such.
fn shortest<S: Serializer>(x: &f64, s: S) -> Result<S::Ok, S::Error> {
    let whole = *x as i64;
    if whole as f64 == *x && whole.abs() < 1 << 53 { s.serialize_i64(whole) } else { s.serialize_f64(*x) }
}

macro_rules! parts {
    ($variant:ident($x:ident => $made:expr): $($from:ty),* $(,)?) => { $(
        impl From<$from> for Part {
            fn from($x: $from) -> Self {
                Self::$variant($made)
            }
        }
    )* };
}

parts!(Number(x => f64::from(x)): f64, u32, units::ByteRate, units::Bytes, units::BytesPerToken, units::DollarRate,
    units::Dollars, units::DollarsPerToken, units::Flop, units::FlopRate, units::Fraction, units::HoldPrice,
    units::Intensity, units::Params, units::Seconds, units::TokenRate, units::Tokens, units::Watts);
parts!(Number(x => x as f64): u64, usize);
parts!(Text(x => x.to_string()): &str, &String, Dtype, &Layout, Math);
parts!(Text(x => x): String);
parts!(Remark(x => Box::new(x)): Remark);

impl From<bool> for Part {
    fn from(holds: bool) -> Self {
        holds.then_some(1.0).into()
    }
}

impl<T: Into<Part>> From<Option<T>> for Part {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::List(Vec::new()), Into::into)
    }
}

impl<T: Into<Part>> From<Vec<T>> for Part {
    fn from(all: Vec<T>) -> Self {
        Self::List(all.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_reads_back_and_so_does_a_text_of_before() {
        let inner = says("as_given").with("none", None::<f64>).with("yes", true);
        let remark = says("both").with("used", 4_u64).with("half", 0.5).with("of", vec!["a", "b"]).with("why", inner);
        let text = serde_json::to_string(&remark).unwrap();
        assert_eq!(text, r#"{"says":"both","half":0.5,"of":["a","b"],"used":4,"why":{"says":"as_given","yes":1}}"#);
        assert_eq!(serde_json::from_str::<Remark>(&text).unwrap(), remark);
        assert_eq!(serde_json::from_str::<Remark>("\"so it was\"").unwrap(), Remark::from("so it was".to_owned()));
    }
}
