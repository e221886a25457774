//! Careful access to the fields of a `config.json`: every read is bounded, every refusal names its field, and what was
//! never read is known at the end.

use crate::SpecError;
use crate::error::shorten;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Upper bounds far above any real model, low enough that no product of them can overflow.
pub(super) mod most {
    pub const LAYERS: u64 = 10_000;
    pub const HEADS: u64 = 100_000;
    pub const EXPERTS: u64 = 100_000;
    pub const DIM: u64 = 10_000_000;
    pub const VOCAB: u64 = 100_000_000;
    pub const TOKENS: u64 = 100_000_000_000;
}

pub(super) struct Fields<'a> {
    pub file: &'a str,
    path: &'static str,
    map: &'a Map<String, Value>,
    outer: Option<&'a Map<String, Value>>,
    used: RefCell<BTreeSet<&'a str>>,
}

impl<'a> Fields<'a> {
    pub fn new(file: &'a str, map: &'a Map<String, Value>) -> Self {
        Self { file, path: "", map, outer: None, used: RefCell::default() }
    }

    /// The fields of a nested text model; what it lacks is looked up outside.
    pub fn text(file: &'a str, map: &'a Map<String, Value>, outer: &'a Map<String, Value>) -> Self {
        Self { file, path: "text_config.", map, outer: Some(outer), used: RefCell::default() }
    }

    /// A value that is present and not null, here or in the enclosing object.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        let (name, value) = self.map.get_key_value(key).or_else(|| self.outer?.get_key_value(key))?;
        self.used.borrow_mut().insert(name.as_str());
        if value.is_null() { None } else { Some(value) }
    }

    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Marks fields as known and without bearing on the shapes.
    pub fn pass_over(&self, keys: &str) {
        keys.split(' ').for_each(|key| _ = self.get(key));
    }

    pub fn object(&self, key: &'static str) -> Result<Option<Fields<'a>>, SpecError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Self { path: key, outer: None, map, ..Self::new(self.file, map) })),
            Some(other) => Err(self.bad(key, other, "an object")),
        }
    }

    /// The fields of a part, named with it in a message.
    pub fn part(&self, key: &str, path: &'static str) -> Result<Option<Fields<'a>>, SpecError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Self { path, ..Self::new(self.file, map) })),
            Some(other) => Err(self.bad(key, other, "an object")),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    pub fn count(&self, key: &str, max: u64) -> Result<u64, SpecError> {
        self.opt_count(key, max)?.ok_or_else(|| self.missing(key))
    }

    pub fn count_or(&self, key: &str, max: u64, default: u64) -> Result<u64, SpecError> {
        Ok(self.opt_count(key, max)?.unwrap_or(default))
    }

    /// A whole number from 1 to `max`, or nothing; 0 counts as nothing.
    pub fn opt_count(&self, key: &str, max: u64) -> Result<Option<u64>, SpecError> {
        self.get(key).map_or(Ok(None), |value| match self.whole(key, value, max)? {
            0 => Ok(None),
            n => Ok(Some(n)),
        })
    }

    /// A count with several spellings; where more than one is present they must agree.
    pub fn count_any(&self, keys: &[&str], max: u64) -> Result<u64, SpecError> {
        let mut found: Option<(u64, &str)> = None;
        for key in keys {
            match (self.opt_count(key, max)?, found) {
                (Some(n), Some((first, name))) if n != first => {
                    return Err(self.refuse(key, n, format!("the same as {name} = {first}")));
                }
                (Some(n), None) => found = Some((n, key)),
                _ => {}
            }
        }
        found.map(|(n, _)| n).ok_or_else(|| self.missing(keys[0]))
    }

    fn whole(&self, key: &str, value: &Value, max: u64) -> Result<u64, SpecError> {
        let expected = || format!("a whole number from 0 to {max}");
        match value.as_u64() {
            Some(n) if n <= max => Ok(n),
            _ => Err(self.bad(key, value, &expected())),
        }
    }

    pub fn flag(&self, key: &str, default: bool) -> Result<bool, SpecError> {
        match self.get(key) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.bad(key, other, "true or false")),
        }
    }

    pub fn text_of(&self, key: &str) -> Result<Option<&'a str>, SpecError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.bad(key, other, "a text")),
        }
    }

    pub fn per_layer(&self, key: &str, layers: u64) -> Result<Option<&'a [Value]>, SpecError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Array(items)) if items.len() as u64 >= layers => Ok(Some(&items[..layers as usize])),
            Some(Value::Array(items)) => {
                Err(self.refuse(key, format!("{} entries", items.len()), format!("one for each of {layers} layers")))
            }
            Some(other) => Err(self.bad(key, other, "a list")),
        }
    }

    /// A list of whole numbers with one entry per layer.
    pub fn counts_per_layer(&self, key: &str, layers: u64, max: u64) -> Result<Option<Vec<u64>>, SpecError> {
        self.per_layer(key, layers)?
            .map(|items| items.iter().map(|item| self.whole(key, item, max)).collect())
            .transpose()
    }

    pub fn layer_set(&self, key: &str) -> Result<BTreeSet<u64>, SpecError> {
        match self.get(key) {
            None => Ok(BTreeSet::new()),
            Some(Value::Array(items)) => items.iter().map(|item| self.whole(key, item, most::LAYERS)).collect(),
            Some(other) => Err(self.bad(key, other, "a list of layer numbers")),
        }
    }

    /// The names of fields that were never read and are not null, here only.
    pub fn unread(&self) -> Vec<&'a str> {
        let used = self.used.borrow();
        self.map.iter().filter(|(k, v)| !used.contains(k.as_str()) && !v.is_null()).map(|(k, _)| k.as_str()).collect()
    }

    pub fn bad(&self, key: &str, given: &Value, expected: &str) -> SpecError {
        let given = match given {
            Value::Array(_) => "a list".into(),
            Value::Object(_) => "an object".into(),
            Value::String(text) => format!("\"{}\"", shorten(text)),
            other => shorten(&other.to_string()),
        };
        self.refuse(key, given, expected)
    }

    pub fn missing(&self, key: &str) -> SpecError {
        self.refuse(key, "missing", "a positive whole number")
    }

    pub fn refuse(&self, key: &str, given: impl ToString, expected: impl Into<String>) -> SpecError {
        SpecError::field(self.file, format!("{}{key}", self.path), given, expected)
    }
}
