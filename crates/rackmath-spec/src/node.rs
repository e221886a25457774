//! What a file or a request says, as it stands there and borrowed from it; the one way from text to a noun.
//!
//! TOML and JSON become a [`Node`], which may be changed, and [`read`] makes a noun of it. An error knows its path: each table and
//! list on the way out adds where it was.

use serde::de::value::CowStrDeserializer;
use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, IntoDeserializer,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter, Write as _};
use std::vec::IntoIter;

pub type Table<'a> = Vec<(Cow<'a, str>, Node<'a>)>;

#[derive(Clone)]
pub enum Node<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Table(Table<'a>),
}

/// Makes a noun of it.
pub fn read<T: DeserializeOwned>(node: Node) -> Result<T, Wrong> {
    T::deserialize(node)
}

/// What is wrong, and where.
#[derive(Debug)]
pub struct Wrong(Box<(String, Vec<Segment>)>);

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    Key(String),
    Index(usize),
}

impl Wrong {
    pub fn problem(&self) -> &str {
        &self.0.0
    }

    /// From the outside in; empty where the whole is wrong.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.0.1.iter().rev()
    }

    /// As a message shows it: `chips[2].count`, or `.` for the whole.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for segment in self.segments() {
            match segment {
                Segment::Key(key) if path.is_empty() => path.push_str(key),
                Segment::Key(key) => path.extend([".", key]),
                Segment::Index(at) => drop(write!(path, "[{at}]")),
            }
        }
        if path.is_empty() { ".".into() } else { path }
    }

    #[cold]
    fn within(mut self, segment: Segment) -> Self {
        self.0.1.push(segment);
        self
    }

    #[cold]
    fn under(self, key: &str) -> Self {
        self.within(Segment::Key(key.to_owned()))
    }
}

impl Display for Wrong {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(self.problem())
    }
}

impl std::error::Error for Wrong {}

impl serde::de::Error for Wrong {
    fn custom<T: Display>(problem: T) -> Self {
        Self(Box::new((problem.to_string(), Vec::new())))
    }

    #[cold]
    fn invalid_type(given: Unexpected, expected: &dyn Expected) -> Self {
        match given {
            Unexpected::Unit => Self::custom(format_args!("invalid type: null, expected {expected}")),
            given => Self::custom(format_args!("invalid type: {given}, expected {expected}")),
        }
    }
}

impl Node<'_> {
    /// As a message shows it.
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.to_string(),
            Self::Integer(n) => n.to_string(),
            Self::Unsigned(n) => n.to_string(),
            Self::Float(x) => x.to_string(),
            Self::Null => "nothing".into(),
            Self::Bool(_) => "boolean".into(),
            Self::List(_) => "array".into(),
            Self::Table(_) => "table".into(),
        }
    }

    /// What stands at a path.
    pub fn at<'a>(&'a self, path: impl Iterator<Item = &'a Segment>) -> Option<&'a Self> {
        let mut path = path;
        path.try_fold(self, |node, segment| match (segment, node) {
            (Segment::Index(at), Node::List(all)) => all.get(*at),
            (Segment::Key(key), Node::Table(table)) => table.iter().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        })
    }

    #[cold]
    fn unlike(&self, expected: &dyn Expected) -> Wrong {
        let given = match self {
            Self::Null => Unexpected::Unit,
            Self::Bool(b) => Unexpected::Bool(*b),
            Self::Integer(n) => Unexpected::Signed(*n),
            Self::Unsigned(n) => Unexpected::Unsigned(*n),
            Self::Float(x) => Unexpected::Float(*x),
            Self::Text(text) => Unexpected::Str(text),
            Self::List(_) => Unexpected::Seq,
            Self::Table(_) => Unexpected::Map,
        };
        Wrong::invalid_type(given, expected)
    }
}

impl<'de> Deserialize<'de> for Node<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str("a value of TOML or JSON")
    }

    fn visit_unit<E>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Node<'de>, E> {
        Ok(Node::Bool(b))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Node<'de>, E> {
        Ok(Node::Integer(n))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Node<'de>, E> {
        Ok(Node::Unsigned(n))
    }

    fn visit_f64<E>(self, x: f64) -> Result<Node<'de>, E> {
        Ok(Node::Float(x))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Node<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = all.next_element()? {
            list.push(node);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Node<'de>, A::Error> {
        let mut table = Vec::new();
        while let Some((key, node)) = all.next_entry()? {
            if let Node::Text(key) = key {
                table.push((key, node));
            }
        }
        Ok(Node::Table(table))
    }
}

/// Each kind of noun is looked for where it can stand and nowhere else, so that little is compiled for each.
impl<'de> Node<'de> {
    fn number<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self {
            Self::Integer(n) => visitor.visit_i64(n),
            Self::Unsigned(n) => visitor.visit_u64(n),
            Self::Float(x) => visitor.visit_f64(x),
            other => Err(other.unlike(&visitor)),
        }
    }

    fn word<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self {
            Self::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Self::Text(Cow::Owned(text)) => visitor.visit_string(text),
            other => Err(other.unlike(&visitor)),
        }
    }

    fn list<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let Self::List(list) = self else { return Err(self.unlike(&visitor)) };
        let total = list.len();
        let mut items = Items { left: list.into_iter(), at: 0 };
        let made = visitor.visit_seq(&mut items)?;
        if items.left.len() == 0 { Ok(made) } else { Err(Wrong::invalid_length(total, &"fewer elements in array")) }
    }

    fn table<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let Self::Table(table) = self else { return Err(self.unlike(&visitor)) };
        visitor.visit_map(Fields { left: table.into_iter(), value: None })
    }
}

/// Methods that hand over to one of the above.
macro_rules! hand_over {
    ($($to:ident: $($name:ident)+;)+) => {
        $($(fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
            self.$to(visitor)
        })+)+
    };
}

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = Wrong;

    hand_over! {
        number: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8 deserialize_u16
            deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64;
        word: deserialize_char deserialize_str deserialize_string deserialize_identifier;
        list: deserialize_seq;
        table: deserialize_map;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(b) => visitor.visit_bool(b),
            Self::Integer(_) | Self::Unsigned(_) | Self::Float(_) => self.number(visitor),
            Self::Text(_) => self.word(visitor),
            Self::List(_) => self.list(visitor),
            Self::Table(_) => self.table(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self {
            Self::Bool(b) => visitor.visit_bool(b),
            other => Err(other.unlike(&visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self {
            Self::Null => visitor.visit_none(),
            some => visitor.visit_some(some),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self {
            Self::Null => visitor.visit_unit(),
            other => Err(other.unlike(&visitor)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Wrong> {
        self.list(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.list(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.table(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self {
            Self::Text(word) => CowStrDeserializer::new(word).deserialize_enum(name, variants, visitor),
            Self::Table(table) => match <[_; 1]>::try_from(table) {
                Ok([(word, inner)]) => visitor.visit_enum(Variant { word, inner }),
                Err(_) => Err(Wrong::invalid_value(Unexpected::Map, &"map with a single key")),
            },
            other => Err(other.unlike(&"string or map")),
        }
    }

    serde::forward_to_deserialize_any! { bytes byte_buf }
}

impl<'de> IntoDeserializer<'de, Wrong> for Node<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

struct Items<'a> {
    left: IntoIter<Node<'a>>,
    at: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        let Some(node) = self.left.next() else { return Ok(None) };
        let made = seed.deserialize(node).map_err(|wrong| wrong.within(Segment::Index(self.at)))?;
        self.at += 1;
        Ok(Some(made))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}

struct Fields<'a> {
    left: IntoIter<(Cow<'a, str>, Node<'a>)>,
    value: Option<(Cow<'a, str>, Node<'a>)>,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        let Some((key, node)) = self.left.next() else { return Ok(None) };
        let made = seed.deserialize(CowStrDeserializer::new(key.clone())).map_err(|wrong: Wrong| wrong.under(&key))?;
        self.value = Some((key, node));
        Ok(Some(made))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Wrong> {
        let (key, node) = self.value.take().ok_or_else(|| Wrong::custom("a value without its key"))?;
        seed.deserialize(node).map_err(|wrong| wrong.under(&key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}

/// A table of one key, as an enum's variant with what it holds.
struct Variant<'a> {
    word: Cow<'a, str>,
    inner: Node<'a>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Wrong;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Wrong> {
        let made = seed.deserialize(CowStrDeserializer::new(self.word.clone())).map_err(|wrong: Wrong| wrong)?;
        Ok((made, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        match self.inner {
            Node::Null => Ok(()),
            other => Err(other.unlike(&"unit variant").under(&self.word)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Wrong> {
        seed.deserialize(self.inner).map_err(|wrong| wrong.under(&self.word))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Wrong> {
        self.inner.list(visitor).map_err(|wrong| wrong.under(&self.word))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Wrong> {
        self.inner.table(visitor).map_err(|wrong| wrong.under(&self.word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    #[derive(Debug, Default, PartialEq, serde::Deserialize, serde::Serialize)]
    #[serde(deny_unknown_fields, default)]
    struct Noun {
        name: Option<String>,
        count: u64,
        share: f64,
        pair: (i32, bool),
        kind: Kind,
        inside: Vec<Noun>,
        by_name: BTreeMap<String, Kind>,
    }

    #[derive(Debug, Default, PartialEq, serde::Deserialize, serde::Serialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        #[default]
        Plain,
        Some(u8),
        Both(u8, u8),
        Named {
            x: f64,
        },
    }

    fn of(value: &Value) -> Result<Noun, Wrong> {
        read(Node::deserialize(value).unwrap())
    }

    #[test]
    fn a_noun_is_what_it_was_written_from() {
        for kind in [Kind::Plain, Kind::Some(3), Kind::Both(1, 2), Kind::Named { x: 0.5 }] {
            let inner = Noun { name: Some("n".into()), count: u64::MAX, share: -2.0, kind, ..Noun::default() };
            let noun =
                Noun { by_name: BTreeMap::from([("k".into(), Kind::Some(1))]), inside: vec![inner], ..Noun::default() };
            assert_eq!(of(&serde_json::to_value(&noun).unwrap()).unwrap(), noun);
        }
    }

    #[test]
    fn what_is_wrong_says_where_and_as_serde_says_it() {
        for (value, path, problem) in [
            (json!(7), ".", "invalid type: integer `7`, expected struct Noun"),
            (json!({ "count": -1 }), "count", "invalid value: integer `-1`, expected u64"),
            (json!({ "share": "x" }), "share", "invalid type: string \"x\", expected f64"),
            (json!({ "shape": 1 }), "shape", "unknown field `shape`, expected one of"),
            (json!({ "pair": [1, true, 3] }), "pair", "invalid length 3, expected fewer elements in array"),
            (
                json!({ "inside": [{}, { "name": 3 }] }),
                "inside[1].name",
                "invalid type: integer `3`, expected a string",
            ),
            (
                json!({ "by_name": { "k": { "some": "x" } } }),
                "by_name.k.some",
                "invalid type: string \"x\", expected u8",
            ),
            (json!({ "kind": "odd" }), "kind", "unknown variant `odd`, expected one of"),
            (
                json!({ "kind": { "plain": 1, "some": 2 } }),
                "kind",
                "invalid value: map, expected map with a single key",
            ),
            (json!({ "kind": { "named": {} } }), "kind.named", "missing field `x`"),
            (json!({ "count": null }), "count", "invalid type: null, expected u64"),
        ] {
            let wrong = of(&value).unwrap_err();
            assert_eq!(wrong.path(), path, "{value}");
            assert!(wrong.problem().starts_with(problem), "{value}: {wrong}");
        }
    }
}
