//! Numbers from a seed, the same everywhere: SplitMix64 (Steele, Lea and Flood 2014).

/// A small generator. The same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not zero.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// Even between 0 and 1, neither of them: 53 bits and a half.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// `n` numbers around 0, even, of a standard deviation: those between -1 and 1, 24 bits and a half, have variance 1/3.
    pub fn spread(&mut self, n: usize, deviation: f32) -> Vec<f32> {
        let scale = deviation * 3f32.sqrt();
        let mut unit = || ((self.bits() >> 40) as f32 + 0.5) / (1u32 << 23) as f32 - 1.0;
        (0..n).map(|_| unit() * scale).collect()
    }

    pub fn exponential(&mut self) -> f64 {
        -crate::float::ln(self.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sequence() {
        // The first numbers of seed 1234567, as published with the reference code.
        let mut chance = Chance::new(1_234_567);
        assert_eq!(chance.bits(), 6_457_827_717_110_365_317);
        assert_eq!(chance.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn uniform_numbers_are_inside_and_even() {
        let mut chance = Chance::new(7);
        let numbers: Vec<f64> = (0..10_000).map(|_| chance.uniform()).collect();
        assert!(numbers.iter().all(|x| *x > 0.0 && *x < 1.0));
        let mean = numbers.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        let mean = (0..10_000).map(|_| chance.exponential()).sum::<f64>() / 10_000.0;
        assert!((mean - 1.0).abs() < 0.05, "{mean}");
    }
}
