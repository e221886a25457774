//! Summaries of numbers: quantiles, ranks, and a checksum.
//!
//! $$ \rho = \frac{\sum (a_i - \bar a)(b_i - \bar b)}{\sqrt{\sum (a_i - \bar a)^2 \sum (b_i - \bar b)^2}} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | a, b | [`ranks`] | 1 | ranks of two columns, the mean rank where values are equal |
//! | rho | [`spearman`] | 1 | Spearman's rank correlation |
//!
//! Source: Spearman 1904; Fowler, Noll and Vo, 64-bit offset basis and prime.

pub mod normal;

pub use normal::normal_quantile;

pub fn median(values: &[f64]) -> Option<f64> {
    let (values, n) = (sorted(values), values.len());
    (n > 0).then(|| f64::midpoint(values[n / 2], values[(n - 1) / 2]))
}

/// The value below which a share `p` of all lies, interpolated as spreadsheets do; nothing of nothing.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    (!values.is_empty()).then(|| ranked(&sorted(values), p))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// The same of sorted values, of which there is at least one.
pub fn ranked(sorted: &[f64], p: f64) -> f64 {
    let at = p * (sorted.len() as f64 - 1.0);
    let (low, part) = (at.floor(), at - at.floor());
    let value = |i: f64| sorted[(i as usize).min(sorted.len() - 1)];
    value(low) + part * (value(low + 1.0) - value(low))
}

/// Ranks from 0; equal values share the mean of theirs.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|i, j| values[*i].total_cmp(&values[*j]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let same = order[from..].iter().take_while(|i| values[**i] == values[order[from]]).count().max(1);
        for i in &order[from..from + same] {
            ranks[*i] = from as f64 + (same as f64 - 1.0) / 2.0;
        }
        from += same;
    }
    ranks
}

/// Spearman's rank correlation; nothing for fewer than three pairs, or where a column does not vary.
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() < 3 || a.len() != b.len() {
        return None;
    }
    let (a, b) = (ranks(a), ranks(b));
    // Ranks of n values have this mean, ties or not.
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    let (both, one, other) = (product(&a, &b), product(&a, &a), product(&b, &b));
    (one > 0.0 && other > 0.0).then(|| (both / (one * other).sqrt()).clamp(-1.0, 1.0))
}

/// The hash FNV-1a: tells values apart, hides nothing.
pub struct Fnv(pub u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    const PRIME: u64 = 0x0000_0100_0000_01b3;

    pub fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(Self::PRIME);
        }
    }

    /// Eight bytes at once. The multiplication carries upwards only: the upper half is folded back.
    pub fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(Self::PRIME);
        self.0 ^= self.0 >> 32;
    }

    pub fn count(&mut self, n: usize) {
        self.word(n as u64);
    }

    pub fn amounts(&mut self, all: impl IntoIterator<Item = f64>) {
        for x in all {
            self.word(x.to_bits());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::normal::{T4_PEAK, t4, t4_relative};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranks_quantiles_and_the_hash_of_short_lists() {
        // By hand: ranks 0 1 2 3 against 0 2 1 3, 1 - 6 * 2 / (4 * 15) = 0.8.
        assert!((spearman(&[1.0, 2.0, 3.0, 4.0], &[10.0, 30.0, 20.0, 40.0]).unwrap() - 0.8).abs() < 1e-12);
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1.0));
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[5.0, 5.0, 5.0]), None);
        assert_eq!(spearman(&[1.0, 2.0], &[1.0, 2.0]), None);
        // Ties share a rank: 0 1.5 1.5 3 against 0 1 2 3 is 4.5 / sqrt(4.5 * 5).
        let tied = spearman(&[1.0, 2.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!((tied - 4.5 / (4.5_f64 * 5.0).sqrt()).abs() < 1e-12);
        assert_eq!(ranks(&[10.0, 30.0, 20.0, 20.0]), [0.0, 3.0, 1.5, 1.5]);
        assert_eq!((median(&[4.0, 1.0, 2.0]), median(&[])), (Some(2.0), None));
        assert_eq!((quantile(&[1.0, 0.0], 0.9), quantile(&[], 0.9)), (Some(0.9), None));
        let five = quantile(&[0.4, 0.1, 0.2, 0.3, 0.0], 0.9).unwrap();
        assert!((five - 0.36).abs() < 1e-12);
        // FNV-1a 64 of "foobar", from the authors' list.
        let mut hash = Fnv::default();
        hash.bytes(b"foobar");
        assert_eq!(hash.0, 0x85944171f73967e8);
    }

    #[test]
    fn quantiles_of_the_tables() {
        // Any table of the normal distribution; both tails and the middle.
        for (p, z) in [(0.5, 0.0), (0.9, 1.281_551_565_5), (0.975, 1.959_963_984_5), (0.001, -3.090_232_306_2)] {
            assert!((normal_quantile(p) - z).abs() < 1e-8, "{p}");
        }
    }

    #[test]
    fn t4_has_its_density_and_draws_its_quantile() {
        // t with 4 degrees at 1.533 scales: the 90 % quantile; density there 0.1286 (tables: (3/8)(1 + q²/4)^-2.5).
        assert!((T4_PEAK * t4_relative(0.0) - 0.375).abs() < 1e-15);
        let step = 1e-3;
        let mass: f64 = (0..100_000).map(|i| T4_PEAK * t4_relative((f64::from(i) + 0.5) * step) * step).sum();
        let below: f64 = (0..1533).map(|i| T4_PEAK * t4_relative((f64::from(i) + 0.5) * step) * step).sum();
        assert!((mass - 0.5).abs() < 1e-5 && (below - 0.4).abs() < 1e-4, "{mass} {below}");
        let mut chance = rackmath_units::Chance::new(1);
        let n = 40_000;
        let above = (0..n)
            .filter(|_| t4(normal_quantile(chance.uniform()), chance.uniform(), chance.uniform()) > 1.533_2)
            .count();
        assert!((above as f64 / f64::from(n) - 0.1).abs() < 0.006, "{above}");
    }

    proptest! {
        #[test]
        fn order_does_not_care_for_units(
            rows in prop::collection::vec((1e-3_f64..1e3, 1e-3_f64..1e3), 3..40), unit in 0.01_f64..100.0
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = rows.into_iter().unzip();
            let scaled: Vec<f64> = b.iter().map(|x| x * unit).collect();
            prop_assert_eq!(spearman(&a, &b), spearman(&a, &scaled));
        }
    }
}
