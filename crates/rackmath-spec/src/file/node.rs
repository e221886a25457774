//! The tables of a file as they stand in it, borrowed from its text: what is changed before a noun is made of them.

use serde::de::value::{CowStrDeserializer, Error, MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{Deserialize, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;

pub(super) type Table<'a> = Vec<(Cow<'a, str>, Node<'a>)>;

#[derive(Clone)]
pub(super) enum Node<'a> {
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Table(Table<'a>),
}

impl Node<'_> {
    /// As a message shows it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.to_string(),
            Self::Integer(n) => n.to_string(),
            Self::Float(x) => x.to_string(),
            Self::Bool(_) => "boolean".into(),
            Self::List(_) => "array".into(),
            Self::Table(_) => "table".into(),
        }
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

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("a value of TOML")
    }

    fn visit_bool<E>(self, b: bool) -> Result<Node<'de>, E> {
        Ok(Node::Bool(b))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Node<'de>, E> {
        Ok(Node::Integer(n))
    }

    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<Node<'de>, E> {
        i64::try_from(n).map(Node::Integer).map_err(E::custom)
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

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Bool(b) => visitor.visit_bool(b),
            Self::Integer(n) => visitor.visit_i64(n),
            Self::Float(x) => visitor.visit_f64(x),
            Self::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Self::Text(Cow::Owned(text)) => visitor.visit_string(text),
            Self::List(list) => visitor.visit_seq(SeqDeserializer::new(list.into_iter())),
            Self::Table(table) => visitor.visit_map(MapDeserializer::new(table.into_iter())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::Text(word) => CowStrDeserializer::new(word).deserialize_enum(name, variants, visitor),
            Self::Table(table) => {
                visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(table.into_iter())))
            }
            other => other.deserialize_any(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Error> for Node<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
