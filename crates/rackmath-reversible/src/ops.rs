//! The few operations a transformer needs, row-major, each with its backward.
//!
//! Sums run in one fixed order, so results do not depend on the machine. `exp` goes through the portable implementation.

use crate::meter::{Buffer, Meter};
use rackmath_units::float;

/// out += a b, with a of `rows` x `inner` and b of `inner` x `columns`.
pub(crate) fn accumulate(meter: &Meter, out: &mut [f32], a: &[f32], b: &[f32], inner: usize) {
    let columns = b.len() / inner;
    meter.spend(2 * a.len() * columns);
    for (row, out) in a.chunks_exact(inner).zip(out.chunks_exact_mut(columns)) {
        for (x, b) in row.iter().zip(b.chunks_exact(columns)) {
            for (o, b) in out.iter_mut().zip(b) {
                *o += x * b;
            }
        }
    }
}

pub(crate) fn product(meter: &Meter, a: &[f32], b: &[f32], inner: usize) -> Buffer {
    let mut out = meter.zeros(a.len() / inner * (b.len() / inner));
    accumulate(meter, &mut out, a, b, inner);
    out
}

/// out += a b', with b of `columns` x `inner`: how a gradient passes through a weight.
pub(crate) fn accumulate_transposed(meter: &Meter, out: &mut [f32], a: &[f32], b: &[f32], inner: usize) {
    let columns = b.len() / inner;
    meter.spend(2 * a.len() * columns);
    for (row, out) in a.chunks_exact(inner).zip(out.chunks_exact_mut(columns)) {
        for (o, b) in out.iter_mut().zip(b.chunks_exact(inner)) {
            *o += row.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
        }
    }
}

/// out += a' b, over the rows of both: the gradient of a weight.
pub(crate) fn accumulate_outer(meter: &Meter, out: &mut [f32], a: &[f32], b: &[f32], width: usize) {
    let columns = out.len() / width;
    meter.spend(2 * a.len() * columns);
    for (a, b) in a.chunks_exact(width).zip(b.chunks_exact(columns)) {
        for (x, out) in a.iter().zip(out.chunks_exact_mut(columns)) {
            for (o, y) in out.iter_mut().zip(b) {
                *o += x * y;
            }
        }
    }
}

/// Rows scaled to unit root mean square; what is kept for the way back.
pub(crate) struct Normed {
    unit: Buffer,
    scale: Buffer,
}

/// Rows scaled to unit root mean square, then by a learned gain.
pub(crate) fn norm(meter: &Meter, x: &[f32], gain: &[f32]) -> (Buffer, Normed) {
    let width = gain.len();
    let mut scale = meter.zeros(x.len() / width);
    let mut unit = meter.hold(x.to_vec());
    let mut out = meter.zeros(x.len());
    for ((s, u), o) in scale.iter_mut().zip(unit.chunks_exact_mut(width)).zip(out.chunks_exact_mut(width)) {
        let square = u.iter().map(|x| x * x).sum::<f32>() / width as f32;
        // A row of zeros stays one.
        *s = 1.0 / (square + 1e-6).sqrt();
        for ((u, o), g) in u.iter_mut().zip(o).zip(gain) {
            *u *= *s;
            *o = *u * g;
        }
    }
    (out, Normed { unit, scale })
}

impl Normed {
    /// What the norm put out, made again from what is kept.
    pub(crate) fn out(&self, meter: &Meter, gain: &[f32]) -> Buffer {
        let mut out = meter.hold(self.unit.to_vec());
        for row in out.chunks_exact_mut(gain.len()) {
            row.iter_mut().zip(gain).for_each(|(o, g)| *o *= g);
        }
        out
    }

    /// The gradient of the input; adds the gain's.
    pub(crate) fn backward(&self, meter: &Meter, out: &[f32], gain: &[f32], gain_gradient: &mut [f32]) -> Buffer {
        let width = gain.len();
        let mut x = meter.zeros(out.len());
        let rows = self.unit.chunks_exact(width).zip(out.chunks_exact(width)).zip(self.scale.iter());
        for (((unit, out), scale), x) in rows.zip(x.chunks_exact_mut(width)) {
            let mut along = 0.0;
            for i in 0..width {
                gain_gradient[i] += out[i] * unit[i];
                along += out[i] * gain[i] * unit[i];
            }
            // What points along the row only changes its length, which the norm undoes.
            let along = along / width as f32;
            for i in 0..width {
                x[i] = scale * (out[i] * gain[i] - unit[i] * along);
            }
        }
        x
    }
}

/// e^x in double precision, rounded once.
pub(crate) fn exp(x: f32) -> f32 {
    float::exp(f64::from(x)) as f32
}

/// x / (1 + e^-x): smooth, so that a rebuilt activation a hair off has a gradient a hair off.
pub(crate) fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

pub(crate) fn silu_slope(x: f32) -> f32 {
    let s = 1.0 / (1.0 + exp(-x));
    s * (1.0 + x * (1.0 - s))
}
