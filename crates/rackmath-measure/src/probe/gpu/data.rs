//! Numbers of the normal curve in each format: zeros and equal numbers draw less power than what models multiply, and clock higher.

use rackmath_spec::Math;
use rackmath_units::float;

/// A float of so many bits, by its parts.
#[derive(Clone, Copy)]
struct Shape {
    exponent: u32,
    mantissa: u32,
    /// The largest that is finite.
    most: f64,
}

/// So many numbers of the normal curve, as bytes of a format; the same every time.
pub fn normal(math: Math, count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    let mut bytes = Vec::with_capacity(4 * count);
    for _ in 0..count.div_ceil(2) {
        // Box and Muller: two of the normal curve from two between 0 and 1.
        let (radius, turn) = ((-2.0 * float::ln(uniform())).sqrt(), std::f64::consts::TAU * uniform());
        for x in [radius * float::sin(turn), radius * float::sin(turn + std::f64::consts::FRAC_PI_2)] {
            match math {
                Math::Bf16 => bytes.extend(((((x as f32).to_bits()) >> 16) as u16).to_le_bytes()),
                Math::Fp16 => bytes.extend((bits(x, HALF) as u16).to_le_bytes()),
                Math::Fp8 => bytes.push(bits(x, E4M3) as u8),
                // Activations and weights of int8 are scaled to fill it.
                Math::Int8 => bytes.push(((x * 32.0).round().clamp(-127.0, 127.0) as i8).cast_unsigned()),
                _ => bytes.extend((x as f32).to_le_bytes()),
            }
        }
    }
    bytes
}

const HALF: Shape = Shape { exponent: 5, mantissa: 10, most: 65504.0 };
const E4M3: Shape = Shape { exponent: 4, mantissa: 3, most: 448.0 };

/// The bits of the nearest number of a shape.
fn bits(x: f64, shape: Shape) -> u32 {
    let bias = (1_i32 << (shape.exponent - 1)) - 1;
    let sign = u32::from(x < 0.0) << (shape.exponent + shape.mantissa);
    let size = x.abs().min(shape.most);
    // Below the smallest normal number the steps stay those of it.
    let power = if size > 0.0 { (float::ln(size) / std::f64::consts::LN_2).floor() as i32 } else { 1 - bias };
    let power = power.max(1 - bias);
    let steps = (size / float::exp(std::f64::consts::LN_2 * f64::from(power - shape.mantissa as i32))).round() as u32;
    // A whole number of steps of 2^(power - mantissa): the exponent counts from the smallest normal, whose hidden bit is a step of its own.
    let above = (power + bias - 1) as u32;
    sign | ((above << shape.mantissa) + steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(bits: u32, shape: Shape) -> f64 {
        let bias = (1_i32 << (shape.exponent - 1)) - 1;
        let (exponent, fraction) =
            ((bits >> shape.mantissa) & ((1 << shape.exponent) - 1), bits & ((1 << shape.mantissa) - 1));
        let fraction = f64::from(fraction) / f64::from(1_u32 << shape.mantissa);
        let size = match exponent {
            0 => fraction * 2_f64.powi(1 - bias),
            e => (1.0 + fraction) * 2_f64.powi(e as i32 - bias),
        };
        if bits >> (shape.exponent + shape.mantissa) & 1 == 1 { -size } else { size }
    }

    #[test]
    fn floats_are_rounded_to_the_nearest() {
        // 1.0, -2.5 and the largest of half precision, from IEEE 754; 1.0 and 448 of OCP's E4M3.
        assert_eq!([1.0, -2.5, 65504.0].map(|x| bits(x, HALF)), [0x3c00, 0xc100, 0x7bff]);
        assert_eq!([1.0, 448.0, 1e9].map(|x| bits(x, E4M3)), [0x38, 0x7e, 0x7e]);
        for shape in [HALF, E4M3] {
            for i in 1..400 {
                let x = f64::from(i) * 0.0173 - 3.0;
                let near = value(bits(x, shape), shape);
                let step = x.abs().max(2_f64.powi(-6)) / f64::from(1_u32 << shape.mantissa);
                assert!((near - x).abs() <= step / 2.0 + 1e-9, "{x} {near}");
            }
        }
    }

    #[test]
    fn numbers_are_normal_in_every_format() {
        for (math, width) in [(Math::Bf16, 2), (Math::Fp16, 2), (Math::Fp8, 1), (Math::Int8, 1), (Math::Tf32, 4)] {
            assert_eq!(normal(math, 1000).len(), 1000 * width, "{math}");
        }
        let floats = normal(Math::Tf32, 20_000);
        let all: Vec<f64> =
            floats.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let square = all.iter().map(|x| x * x).sum::<f64>() / all.len() as f64;
        assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.05, "{mean} {square}");
        assert_eq!(normal(Math::Bf16, 64), normal(Math::Bf16, 64));
    }
}
