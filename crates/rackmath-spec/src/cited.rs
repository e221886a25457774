//! A value with its origin.

/// A number about the world, where it comes from, and what to watch out for.
#[derive(Clone, Debug, PartialEq)]
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
