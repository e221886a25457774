//! A shelf: the files of one kind, each with an id, its other names and its text, read once when first asked for.
//!
//! A name is an id (the file's stem), an alias, or a Hugging Face id. Names are compared without case and with `_` and
//! spaces as `-`, so `h200_sxm` finds `h200` and `RTX 4090` the card. A miss answers with the nearest names.

use crate::{Catalog, Kind, SpecError, file};
use serde::Deserialize;
use std::any::Any;
use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

/// How a file becomes the thing it describes; the catalogue finds what it refers to.
type Read<T> = fn(id: &str, text: &str, catalog: &Catalog) -> Result<T, SpecError>;

/// Clones share what was read.
#[derive(Debug)]
pub(crate) struct Shelf<T> {
    kind: Kind,
    /// What it holds, for messages.
    what: &'static str,
    /// The only ids it takes, where its files have fixed names.
    only: &'static [&'static str],
    read: Read<T>,
    items: Vec<Arc<Item<T>>>,
}

#[derive(Debug)]
struct Item<T> {
    id: Cow<'static, str>,
    text: Cow<'static, str>,
    /// The same in a form that is read faster, where it was made.
    packed: Option<&'static str>,
    names: OnceLock<Vec<String>>,
    value: OnceLock<Result<Arc<T>, SpecError>>,
}

/// What can stand on a shelf.
pub(crate) trait Thing: Debug + Send + Sync + 'static {}

impl<T: Debug + Send + Sync + 'static> Thing for T {}

/// An empty shelf.
pub(crate) fn shelf<T: Thing>(
    kind: Kind,
    what: &'static str,
    only: &'static [&'static str],
    read: Read<T>,
) -> Box<dyn Files> {
    Box::new(Shelf { kind, what, only, read, items: Vec::new() })
}

impl<T: Thing> Shelf<T> {
    pub(crate) fn get(&self, name: &str, catalog: &Catalog) -> Result<Arc<T>, SpecError> {
        let found = self.found(name)?;
        found
            .value
            .get_or_init(|| (self.read)(&found.id, found.packed.unwrap_or(&found.text), catalog).map(Arc::new))
            .clone()
    }

    /// A part of a file, read without the rest.
    pub(crate) fn part<'a, P: Deserialize<'a>>(&'a self, name: &str) -> Result<P, SpecError> {
        let found = self.found(name)?;
        file::parse_toml(&found.id, found.packed.unwrap_or(&found.text))
    }

    /// Each id with each of its names, itself among them.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&str, &str)> {
        self.items.iter().flat_map(|i| {
            let names = std::iter::once(&*i.id).chain(i.names().iter().map(String::as_str));
            names.map(|name| (&*i.id, name))
        })
    }

    fn found(&self, name: &str) -> Result<&Item<T>, SpecError> {
        self.item(name).ok_or_else(|| SpecError::unknown(self.what, name, self.all_names().into_iter()))
    }

    /// Finds by id, then by the other names; what came later wins.
    fn item(&self, name: &str) -> Option<&Item<T>> {
        let name = name.trim();
        let named = |item: &&Arc<Item<T>>| item.names().iter().any(|n| same(n, name));
        let by_id = self.items.iter().rev().find(|i| same(&i.id, name));
        by_id.or_else(|| self.items.iter().rev().find(named)).map(|i| &**i)
    }
}

/// What a shelf does whatever it holds.
pub(crate) trait Files: Any + Debug + Send + Sync {
    fn cloned(&self) -> Box<dyn Files>;
    fn kind(&self) -> Kind;
    fn only(&self) -> &'static [&'static str];
    fn ids(&self) -> Vec<&str>;
    /// The names a file answers to beside its id.
    fn names(&self, name: &str) -> Vec<&str>;
    fn all_names(&self) -> Vec<&str>;
    fn holds(&self, name: &str) -> bool;
    fn remove(&mut self, id: &str);
    fn put(&mut self, id: Cow<'static, str>, text: Cow<'static, str>, packed: Option<&'static str>);
    /// Whether a file can be read.
    fn check(&self, id: &str, catalog: &Catalog) -> Result<(), SpecError>;
    /// Forgets what was read, because what it refers to has changed.
    fn forget(&mut self);
    fn files(&self) -> Vec<(&str, &str)>;
}

impl Clone for Box<dyn Files> {
    fn clone(&self) -> Self {
        (**self).cloned()
    }
}

impl<T: Thing> Files for Shelf<T> {
    fn cloned(&self) -> Box<dyn Files> {
        let &Self { kind, what, only, read, ref items } = self;
        Box::new(Self { kind, what, only, read, items: items.clone() })
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn only(&self) -> &'static [&'static str] {
        self.only
    }

    fn ids(&self) -> Vec<&str> {
        self.items.iter().map(|i| &*i.id).collect()
    }

    fn names(&self, name: &str) -> Vec<&str> {
        self.item(name).map_or_else(Vec::new, |i| i.names().iter().map(String::as_str).collect())
    }

    fn all_names(&self) -> Vec<&str> {
        self.named().map(|(_, name)| name).collect()
    }

    fn holds(&self, name: &str) -> bool {
        self.item(name).is_some()
    }

    fn remove(&mut self, id: &str) {
        self.items.retain(|i| i.id != id.trim());
    }

    fn put(&mut self, id: Cow<'static, str>, text: Cow<'static, str>, packed: Option<&'static str>) {
        self.items.push(Arc::new(Item::new(id, text, packed)));
    }

    fn check(&self, id: &str, catalog: &Catalog) -> Result<(), SpecError> {
        self.get(id, catalog).map(drop)
    }

    fn forget(&mut self) {
        for item in &mut self.items {
            *item = Arc::new(Item::new(item.id.clone(), item.text.clone(), item.packed));
        }
    }

    fn files(&self) -> Vec<(&str, &str)> {
        self.items.iter().map(|i| (&*i.id, &*i.text)).collect()
    }
}

impl<T> Item<T> {
    fn new(id: Cow<'static, str>, text: Cow<'static, str>, packed: Option<&'static str>) -> Self {
        let id = if id.trim().len() == id.len() { id } else { Cow::Owned(id.trim().to_owned()) };
        Self { id, text, packed, names: OnceLock::new(), value: OnceLock::new() }
    }

    /// The `aliases` and `hf` of a file, from the first line of what was packed, or from its head: the lines before the
    /// first table. Nothing else is parsed.
    fn names(&self) -> &[String] {
        self.names.get_or_init(|| {
            if let Some((names, _)) = self.packed.and_then(file::unpacked) {
                return names.split('\t').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
            }
            let head = self.text.split("\n[").next().unwrap_or("");
            let words = |key: &str, end: char| {
                let line = head.match_indices(key).find(|(at, _)| *at == 0 || head.as_bytes()[at - 1] == b'\n');
                let value = line.and_then(|(at, _)| head[at + key.len()..].trim_start().strip_prefix('='));
                let quoted = value.unwrap_or("").split(end).next().unwrap_or("").split(['"', '\'']);
                quoted.skip(1).step_by(2).map(|name| name.trim().to_owned()).collect::<Vec<_>>()
            };
            let mut names = words("aliases", ']');
            names.extend(words("hf", '\n'));
            names
        })
    }
}

/// Whether two words, nothing blank around them, are one name.
fn same(a: &str, b: &str) -> bool {
    let key = |b: u8| if matches!(b, b'_' | b' ') { b'-' } else { b.to_ascii_lowercase() };
    a.len() == b.len() && a.bytes().zip(b.bytes()).all(|(a, b)| key(a) == key(b))
}
