//! A value with its origin.

use serde::Deserialize;

/// A number about the world, where it comes from, and what to watch out for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cited<T> {
    pub value: T,
    pub source: String,
    /// A second source that agrees.
    pub checked: Option<String>,
    /// Lowest and highest value seen, where sources disagree.
    pub range: Option<(T, T)>,
    /// Why sources differ, or how the value was derived.
    pub note: Option<String>,
    /// A wrong figure in circulation and why it is wrong.
    pub trap: Option<String>,
}

impl<T> Cited<T> {
    pub(crate) fn map<U>(self, f: impl Fn(T) -> U) -> Cited<U> {
        let Self { value, source, checked, range, note, trap } = self;
        let range = range.map(|(low, high)| (f(low), f(high)));
        Cited { value: f(value), source, checked, range, note, trap }
    }
}
