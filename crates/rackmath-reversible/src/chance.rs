//! Numbers from a seed, the same everywhere: SplitMix64 (Steele, Lea and Flood 2014).

pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// Even between -1 and 1, never zero: 24 bits and a half.
    pub(crate) fn unit(&mut self) -> f32 {
        let steps = (self.bits() >> 40) as f32 + 0.5;
        steps / (1u32 << 23) as f32 - 1.0
    }

    /// `n` even numbers of the given standard deviation; an even number between -1 and 1 has variance 1/3.
    pub(crate) fn spread(&mut self, n: usize, deviation: f32) -> Vec<f32> {
        let scale = deviation * 3f32.sqrt();
        (0..n).map(|_| self.unit() * scale).collect()
    }
}
