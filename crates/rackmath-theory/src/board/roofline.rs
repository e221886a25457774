//! Two resources and the ridge between them.
//!
//! $$ I = F / W \qquad R = \frac{(F/2)\,w}{W} \qquad T_{drain} = C / W $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | F | peak | FLOP/s | dense peak, a multiply-add is two |
//! | W, C | bandwidth, capacity | B/s, B | memory |
//! | w | width | B/param | bytes of a stored weight |
//! | I | peak / bandwidth | FLOP/B | where compute and memory take equally long |
//! | R | ridge | 1 | the lecture's "300": weights multiplied per weight read |
//!
//! R does not depend on the precision only while F doubles each time w halves. The 2 in R makes multiplications out of FLOP.
//! Source: lecture D1, D10, D13 and section 0.

use rackmath_units::{ByteRate, Bytes, BytesPerParam, FlopRate, Seconds};
use strum::IntoStaticStr;

/// The dimensionless ridge: tokens that must share a weight for compute to take as long as reading it.
pub fn ridge(peak: FlopRate, width: BytesPerParam, bandwidth: ByteRate) -> f64 {
    // Half the FLOP are multiplications, each with one weight of `width` bytes.
    peak.get() / 2.0 * width.get() / bandwidth.get()
}

/// Time to read all of a memory once: the longest useful memory-bound step.
pub fn drain(capacity: Bytes, bandwidth: ByteRate) -> Seconds {
    capacity / bandwidth
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Overlap {
    /// Perfectly: the slower sets the time. A lower bound.
    Max,
    /// Not at all: the times add up. An upper bound, at most twice the lower.
    Sum,
    /// Weights overlap with compute, KV does not: attention cannot hide behind the matrix products (scaling book).
    KvThenMax,
    /// Something between: 1 is perfect, 0 is none.
    Partial(rackmath_units::Fraction),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    pub compute: Seconds,
    pub weights: Seconds,
    pub kv: Seconds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
pub enum Binding {
    #[strum(to_string = "compute")]
    Compute,
    #[strum(to_string = "memory (weights)")]
    Weights,
    #[strum(to_string = "memory (KV)")]
    Kv,
}

impl Binding {
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Terms {
    pub fn memory(&self) -> Seconds {
        self.weights + self.kv
    }

    pub fn time(&self, overlap: Overlap) -> Seconds {
        let (max, sum) = (self.compute.max(self.memory()), self.compute + self.memory());
        match overlap {
            Overlap::Max => max,
            Overlap::Sum => sum,
            Overlap::KvThenMax => self.kv + self.weights.max(self.compute),
            Overlap::Partial(share) => max * share.get() + sum * share.rest().get(),
        }
    }

    /// The resource that would have to get faster first.
    pub fn binding(&self) -> Binding {
        if self.compute >= self.memory() {
            Binding::Compute
        } else if self.weights >= self.kv {
            Binding::Weights
        } else {
            Binding::Kv
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::close;
    use rackmath_units::Fraction;

    #[test]
    fn ridge_of_the_lectures_chips() {
        for (tflop, width, tb, expected, tolerance) in [
            // G1, G2: B200 in FP4, FP8, BF16.
            (9000.0, 0.5, 8.0, 281.25, 1e-9),
            (4500.0, 1.0, 8.0, 281.25, 1e-9),
            (2250.0, 2.0, 8.0, 281.25, 1e-9),
            // G3: H100 in BF16 and FP8. G4: A100-80. G6: TPU v5e in BF16, and with int8 weights.
            (989.5, 2.0, 3.35, 295.37, 1e-4),
            (1979.0, 1.0, 3.35, 295.37, 1e-4),
            (312.0, 2.0, 2.039, 153.0, 1e-3),
            (197.0, 2.0, 0.82, 240.2, 1e-3),
            (197.0, 1.0, 0.82, 120.1, 1e-3),
        ] {
            let (peak, bandwidth) = (FlopRate::tflop_per_s(tflop), ByteRate::tb_per_s(tb));
            close(ridge(peak, BytesPerParam::new(width), bandwidth), expected, tolerance);
        }
    }

    #[test]
    fn drain_times() {
        // G10, G11.
        for (gb, tb, ms) in [
            (288.0, 20.0, 14.4),
            (192.0, 8.0, 24.0),
            (80.0, 3.35, 23.88),
            (141.0, 4.8, 29.38),
            (80.0, 2.039, 39.23),
            (16.0, 0.82, 19.51),
        ] {
            close(drain(Bytes::gb(gb), ByteRate::tb_per_s(tb)).as_ms(), ms, 1e-3);
        }
    }

    #[test]
    fn overlaps_lie_between_their_bounds() {
        let t = Terms { compute: Seconds::s(3.0), weights: Seconds::s(2.0), kv: Seconds::s(2.5) };
        let half = Overlap::Partial(Fraction::new(0.5));
        let times = [Overlap::Max, Overlap::KvThenMax, half, Overlap::Sum].map(|overlap| t.time(overlap).get());
        assert_eq!(times, [4.5, 5.5, 6.0, 7.5]);
        assert_eq!(t.binding(), Binding::Kv);
    }
}
