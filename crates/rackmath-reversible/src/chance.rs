//! Numbers of the kind a network begins with.

pub(crate) use rackmath_units::Chance;

pub(crate) trait Weights {
    /// Even between -1 and 1, never zero: 24 bits and a half.
    fn unit(&mut self) -> f32;

    /// `n` even numbers of the given standard deviation; an even number between -1 and 1 has variance 1/3.
    fn spread(&mut self, n: usize, deviation: f32) -> Vec<f32> {
        let scale = deviation * 3f32.sqrt();
        (0..n).map(|_| self.unit() * scale).collect()
    }
}

impl Weights for Chance {
    fn unit(&mut self) -> f32 {
        let steps = (self.bits() >> 40) as f32 + 0.5;
        steps / (1u32 << 23) as f32 - 1.0
    }
}
