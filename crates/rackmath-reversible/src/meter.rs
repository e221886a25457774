//! Counts what is held: bytes of activations now and at most, and the multiply-adds spent.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

#[derive(Clone, Debug, Default)]
pub struct Meter(Rc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    held: Cell<usize>,
    peak: Cell<usize>,
    flop: Cell<u64>,
}

impl Meter {
    pub fn zeros(&self, n: usize) -> Buffer {
        self.hold(vec![0.0; n])
    }

    pub fn hold(&self, data: Vec<f32>) -> Buffer {
        let held = self.0.held.get() + size_of_val(data.as_slice());
        self.0.held.set(held);
        self.0.peak.set(self.0.peak.get().max(held));
        Buffer { data, meter: self.clone() }
    }

    pub fn held(&self) -> usize {
        self.0.held.get()
    }

    pub fn peak(&self) -> usize {
        self.0.peak.get()
    }

    /// Operations of matrix products so far; a multiply-add is two.
    pub fn flop(&self) -> u64 {
        self.0.flop.get()
    }

    pub(crate) fn spend(&self, flop: usize) {
        self.0.flop.set(self.0.flop.get() + flop as u64);
    }
}

/// Numbers that a meter counts as long as they live.
#[derive(Debug)]
pub struct Buffer {
    data: Vec<f32>,
    meter: Meter,
}

impl Buffer {
    #[must_use]
    pub fn copy(&self) -> Self {
        self.meter.hold(self.data.clone())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let counters = &self.meter.0;
        counters.held.set(counters.held.get() - size_of_val(self.data.as_slice()));
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.data
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_from_birth_to_drop() {
        let meter = Meter::default();
        let a = meter.zeros(10);
        {
            let _b = a.copy();
            assert_eq!(meter.held(), 80);
        }
        assert_eq!((meter.held(), meter.peak()), (40, 80));
        drop(a);
        assert_eq!(meter.held(), 0);
    }
}
