//! A sentence of an answer as a value: which sentence it is, and what it speaks of. Its words are made in `report`.

use rackmath_spec::{Dtype, Layout, Math};
use rackmath_units as units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Which sentence, and the values it speaks of, in base units (seconds, bytes, shares of one).
///
/// Text that is not ours, such as a note of the catalogue, says `said` and is plain text in JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Json", into = "Json")]
pub struct Remark {
    /// The sentence.
    pub says: Cow<'static, str>,
    /// Its values by name.
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

/// A remark as it is written.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Json {
    Text(String),
    Remark {
        says: Cow<'static, str>,
        #[serde(flatten)]
        with: BTreeMap<Cow<'static, str>, Part>,
    },
}

impl From<Json> for Remark {
    fn from(json: Json) -> Self {
        match json {
            Json::Text(text) => text.into(),
            Json::Remark { says, with } => Self { says, with },
        }
    }
}

impl From<Remark> for Json {
    fn from(Remark { says, mut with }: Remark) -> Self {
        match with.remove("text") {
            Some(Part::Text(text)) if says == "said" => Self::Text(text),
            Some(part) => Self::Remark { says, with: with.into_iter().chain([("text".into(), part)]).collect() },
            None => Self::Remark { says, with },
        }
    }
}

/// Begins a remark.
pub fn says(id: &'static str) -> Remark {
    Remark { says: id.into(), with: BTreeMap::new() }
}

impl Remark {
    /// The same, with a value; nothing, no and an empty list are left out.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Part>) -> Self {
        let part = value.into();
        if part != Part::List(Vec::new()) {
            self.with.insert(name.into(), part);
        }
        self
    }
}

impl<T: Into<String>> From<T> for Remark {
    fn from(text: T) -> Self {
        says("said").with("text", text.into())
    }
}

/// Whole numbers as such.
fn shortest<S: Serializer>(x: &(impl Into<f64> + Copy), s: S) -> Result<S::Ok, S::Error> {
    let x = (*x).into();
    let whole = x as i64;
    if whole as f64 == x && whole.abs() < 1 << 53 { s.serialize_i64(whole) } else { s.serialize_f64(x) }
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

parts!(Number(x => f64::from(x)): u32, units::ByteRate, units::Bytes, units::BytesPerToken, units::DollarRate,
    units::Dollars, units::DollarsPerToken, units::Flop, units::FlopRate, units::Fraction, units::HoldPrice,
    units::Intensity, units::Params, units::Seconds, units::TokenRate, units::Tokens, units::Watts);
parts!(Number(x => x as f64): u64, usize);
parts!(Number(x => x): f64);
parts!(Text(x => x.to_string()): &str, Dtype, &Layout, Math);
parts!(Text(x => x.clone()): &String);
parts!(Text(x => x): String);
parts!(Remark(x => Box::new(x)): Remark);
parts!(Remark(x => Box::new(x.clone())): &Remark);

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
    fn a_remark_reads_back_and_so_does_a_text() {
        let inner = says("as_given").with("none", None::<f64>).with("yes", true);
        let remark = says("both").with("used", 4_u64).with("half", 0.5).with("of", vec!["a", "b"]).with("why", inner);
        let text = serde_json::to_string(&remark).unwrap();
        assert_eq!(text, r#"{"says":"both","half":0.5,"of":["a","b"],"used":4,"why":{"says":"as_given","yes":1}}"#);
        assert_eq!(serde_json::from_str::<Remark>(&text).unwrap(), remark);
        let said = Remark::from("so it was");
        assert_eq!(serde_json::from_str::<Remark>(&serde_json::to_string(&said).unwrap()).unwrap(), said);
    }
}
