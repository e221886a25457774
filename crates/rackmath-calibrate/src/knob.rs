//! Constants that a search may turn.

/// A constant with its bounds: physical where there are such, else wide.
pub struct Knob<T> {
    /// As in the file that holds it, in the unit it says.
    pub name: &'static str,
    pub low: f64,
    pub high: f64,
    pub get: fn(&T) -> f64,
    pub set: fn(&mut T, f64),
}

pub const fn knob<T>(name: &'static str, (low, high): (f64, f64), get: fn(&T) -> f64, set: fn(&mut T, f64)) -> Knob<T> {
    Knob { name, low, high, get, set }
}

/// A subject with its constants set, within their bounds.
pub fn turned<T: Clone>(subject: &T, knobs: &[Knob<T>], values: &[f64]) -> T {
    let mut subject = subject.clone();
    for (knob, value) in knobs.iter().zip(values) {
        (knob.set)(&mut subject, value.clamp(knob.low, knob.high));
    }
    subject
}
