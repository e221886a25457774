//! Values of requests and their percentiles: as they are up to a size, by size beyond it.
//!
//! A histogram's bins are 1/1024 of a doubling wide: a value is off by at most 0.1 %. Its counts add, so that parts of a run merge to
//! the whole. A percentile of kept values is interpolated between neighbours (p (n - 1)), as NumPy and `vllm bench serve` do.

/// Bins to a doubling, as bits.
const BITS: u32 = 10;
/// Values kept as they are.
const KEPT: usize = 1 << 20;

/// Counts of values by size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    sum: u128,
}

fn bin(value: u64) -> usize {
    if value < 1 << BITS {
        return value as usize;
    }
    let octave = value.ilog2() - BITS;
    (u64::from(octave + 1) << BITS | (value >> octave) & ((1 << BITS) - 1)) as usize
}

/// The least value of a bin.
fn floor(bin: usize) -> u64 {
    let (octave, part) = ((bin >> BITS) as u32, (bin & ((1 << BITS) - 1)) as u64);
    if octave == 0 { part } else { (part | 1 << BITS) << (octave - 1) }
}

impl Histogram {
    pub fn add(&mut self, value: u64, n: u64) {
        let at = bin(value);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += n;
        self.total += n;
        self.sum += u128::from(value) * u128::from(n);
    }

    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (a, b) in self.counts.iter_mut().zip(&other.counts) {
            *a += b;
        }
        self.total += other.total;
        self.sum += other.sum;
    }

    pub fn count(&self) -> u64 {
        self.total
    }

    /// The middle of the bin that holds the p-th of the values in order.
    pub fn percentile(&self, p: f64) -> Option<f64> {
        let rank = (p * (self.total.checked_sub(1)?) as f64).round() as u64;
        let mut below = 0;
        let at = self.counts.iter().position(|n| {
            below += n;
            below > rank
        })?;
        Some(f64::midpoint(floor(at) as f64, (floor(at + 1) - 1) as f64))
    }

    pub fn mean(&self) -> Option<f64> {
        (self.total > 0).then(|| self.sum as f64 / self.total as f64)
    }
}

/// Values of requests: as they are, or by size when there are many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Series {
    Kept(Vec<u64>),
    Counted(Histogram),
}

impl Default for Series {
    fn default() -> Self {
        Self::Kept(Vec::new())
    }
}

impl Series {
    pub fn add(&mut self, value: u64) {
        match self {
            Self::Kept(all) if all.len() < KEPT => all.push(value),
            Self::Kept(_) => {
                self.count();
                self.add(value);
            }
            Self::Counted(h) => h.add(value, 1),
        }
    }

    fn count(&mut self) {
        if let Self::Kept(all) = self {
            let mut h = Histogram::default();
            for v in all.iter() {
                h.add(*v, 1);
            }
            *self = Self::Counted(h);
        }
    }

    /// Whether a percentile is exact.
    pub fn is_exact(&self) -> bool {
        matches!(self, Self::Kept(_))
    }

    pub fn merge(&mut self, other: &Self) {
        let size = |s: &Self| match s {
            Self::Kept(all) => all.len(),
            Self::Counted(_) => KEPT + 1,
        };
        if size(self) + size(other) > KEPT {
            self.count();
        }
        match (&mut *self, other) {
            (Self::Kept(a), Self::Kept(b)) => a.extend_from_slice(b),
            (Self::Counted(h), Self::Kept(b)) => b.iter().for_each(|v| h.add(*v, 1)),
            (Self::Counted(h), Self::Counted(b)) => h.merge(b),
            (Self::Kept(_), Self::Counted(_)) => {}
        }
    }

    /// Percentiles in the order asked for.
    pub fn percentiles(&mut self, wanted: &[f64]) -> Vec<Option<f64>> {
        match self {
            Self::Kept(all) => {
                let mut ranks = Ranks::new(all);
                wanted.iter().map(|p| ranks.at(*p)).collect()
            }
            Self::Counted(h) => wanted.iter().map(|p| h.percentile(*p)).collect(),
        }
    }

    pub fn mean(&self) -> Option<f64> {
        match self {
            Self::Kept(all) if all.is_empty() => None,
            Self::Kept(all) => Some(all.iter().map(|v| u128::from(*v)).sum::<u128>() as f64 / all.len() as f64),
            Self::Counted(h) => h.mean(),
        }
    }
}

/// Values put in order as far as they are asked for: least work where percentiles come in order.
pub(crate) struct Ranks<'a> {
    values: &'a mut [u64],
    /// All before this one are no greater than it, all after it no smaller.
    placed: usize,
}

impl<'a> Ranks<'a> {
    pub(crate) fn new(values: &'a mut [u64]) -> Self {
        Self { values, placed: 0 }
    }

    pub(crate) fn at(&mut self, p: f64) -> Option<f64> {
        let h = p * (self.values.len().checked_sub(1)?) as f64;
        let rank = h.floor() as usize;
        if rank < self.placed {
            self.placed = 0;
        }
        let (_, low, above) = self.values[self.placed..].select_nth_unstable(rank - self.placed);
        let low = *low as f64;
        let high = if h > h.floor() { above.iter().min().map_or(low, |v| *v as f64) } else { low };
        self.placed = rank;
        Some(low + (high - low) * (h - h.floor()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_narrow_and_in_order() {
        let mut chance = rackmath_units::Chance::new(3);
        for _ in 0..20_000 {
            let value = chance.bits() >> (chance.bits() % 60);
            let at = bin(value);
            assert!(floor(at) <= value && value < floor(at + 1), "{value}");
            assert!((floor(at + 1) - floor(at)) as f64 <= (floor(at) as f64 / 1024.0).max(1.0));
        }
    }

    #[test]
    fn ranks_in_any_order_are_those_of_sorted_values() {
        let mut chance = rackmath_units::Chance::new(5);
        for size in [1, 2, 3, 10, 100, 1001] {
            let mut values: Vec<u64> = (0..size).map(|_| chance.below(300)).collect();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let mut ranks = Ranks::new(&mut values);
            for p in [0.5, 0.9, 0.99, 0.999, 0.0, 1.0, 0.25, 0.5, 0.95] {
                let h = p * f64::from(size - 1);
                let (low, high) = (sorted[h.floor() as usize] as f64, sorted[h.ceil() as usize] as f64);
                assert_eq!(ranks.at(p), Some(low + (high - low) * (h - h.floor())), "{p} of {size}");
            }
        }
        assert_eq!(Ranks::new(&mut []).at(0.5), None);
    }

    #[test]
    fn parts_merge_to_the_whole() {
        let mut chance = rackmath_units::Chance::new(4);
        let (mut a, mut b, mut all) = (Histogram::default(), Histogram::default(), Histogram::default());
        for i in 0..5000 {
            let value = chance.below(1 << 40);
            if i % 3 == 0 {
                a.add(value, 2);
            } else {
                b.add(value, 2);
            }
            all.add(value, 2);
        }
        a.merge(&b);
        assert_eq!(a, all);
    }
}
