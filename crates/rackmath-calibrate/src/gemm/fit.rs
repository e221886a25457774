//! Constants that come near a set of rows.

use super::Row;
use super::rows::PassRow;
use crate::knob::{Knob, turned};
use crate::simplex;
use crate::table::Errors;
use rackmath_spec::{Chip, Fit, GemmKernel, Math, Pass};
use rackmath_theory::operator::Silicon;
use rackmath_theory::operator::gemm::{Gemm, pass_time};
use rackmath_units::{ByteRate, Seconds, float};

/// Rows nearer than this are near enough; without it the search would polish rows at the noise of the timings.
const NOISE: f64 = 0.02;

fn search<T: Clone>(start: &T, knobs: &[Knob<T>], loss: impl Fn(&T) -> f64) -> T {
    let first: Vec<f64> = knobs.iter().map(|k| (k.get)(start).clamp(k.low, k.high)).collect();
    // Beyond its bounds a constant has no effect; a slope back keeps the search from wandering there.
    let outside = |values: &[f64]| -> f64 {
        let far = |(k, v): (&Knob<T>, &f64)| float::ln(v / v.clamp(k.low, k.high)).abs();
        knobs.iter().zip(values).map(far).sum()
    };
    let found = simplex::minimum(&first, |values| loss(&turned(start, knobs, values)) + 0.01 * outside(values));
    turned(start, knobs, &found)
}

fn soft(errors: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = errors.fold((0.0, 0.0), |(sum, n), e| (sum + (e * e + NOISE * NOISE).sqrt(), n + 1.0));
    sum / n
}

pub fn all_knobs() -> Vec<Knob<GemmKernel>> {
    vec![
        Knob { low: 1.0, high: 25.0, get: |k| k.floor.as_ms() * 1e3, set: |k, v| k.floor = Seconds::us(v) },
        Knob { low: 0.1, high: 0.95, get: |k| k.compute, set: |k, v| k.compute = v },
        Knob { low: 0.3, high: 0.95, get: |k| k.bandwidth, set: |k, v| k.bandwidth = v },
        Knob { low: 1.0, high: 12.0, get: |k| k.corner, set: |k, v| k.corner = v },
        Knob { low: 20.0, high: 2000.0, get: operand, set: |k, v| k.operand = Some(ByteRate::gb_per_s(v)) },
        Knob { low: 0.01, high: 6.0, get: |k| k.wave.as_ms() * 1e3, set: |k, v| k.wave = Seconds::us(v) },
        Knob { low: 1e-3, high: 1.0, get: |k| k.quantum, set: |k, v| k.quantum = v },
        Knob { low: 1e-3, high: 0.6, get: |k| k.droop, set: |k, v| k.droop = v },
        Knob { low: 0.1, high: 20.0, get: |k| k.split.as_ms() * 1e3, set: |k, v| k.split = Seconds::us(v) },
        Knob { low: 1e-3, high: 2.0, get: |k| k.ramp, set: |k, v| k.ramp = v },
        Knob { low: 0.5, high: 60.0, get: |k| k.ramp_time.as_ms() * 1e3, set: |k, v| k.ramp_time = Seconds::us(v) },
        Knob { low: 1e-3, high: 0.6, get: |k| k.resident, set: |k, v| k.resident = v },
    ]
}

fn operand(kernel: &GemmKernel) -> f64 {
    kernel.operand.map_or(100.0, |rate| rate.get() / 1e9)
}

/// What differs between engines around the same product: the pass before it and how well tiles are chosen.
pub fn pass_knobs() -> Vec<Knob<GemmKernel>> {
    vec![
        Knob {
            low: 0.2,
            high: 25.0,
            get: |k| k.dynamic[0].floor.as_ms() * 1e3,
            set: |k, v| k.dynamic[0].floor = Seconds::us(v),
        },
        Knob {
            low: 5.0,
            high: 200.0,
            get: |k| k.dynamic[0].core.get() / 1e9,
            set: |k, v| k.dynamic[0].core = ByteRate::gb_per_s(v),
        },
        Knob {
            low: 0.01,
            high: 20.0,
            get: |k| k.dynamic[0].row.as_ms() * 1e6,
            set: |k, v| k.dynamic[0].row = Seconds::ns(v),
        },
        Knob { low: 0.1, high: 0.95, get: |k| k.compute, set: |k, v| k.compute = v },
        Knob { low: 0.01, high: 6.0, get: |k| k.wave.as_ms() * 1e3, set: |k, v| k.wave = Seconds::us(v) },
        Knob { low: 1e-3, high: 0.6, get: |k| k.droop, set: |k, v| k.droop = v },
    ]
}

/// Launches that are not captured in a graph.
pub fn host_knobs() -> Vec<Knob<GemmKernel>> {
    vec![
        Knob { low: 1.0, high: 2000.0, get: |k| k.host.as_ms() * 1e3, set: |k, v| k.host = Seconds::us(v) },
        Knob { low: 0.1, high: 0.95, get: |k| k.compute, set: |k, v| k.compute = v },
    ]
}

pub fn kernel(start: &GemmKernel, knobs: &[Knob<GemmKernel>], chip: &Chip, rows: &[&Row]) -> Option<GemmKernel> {
    Gemm::of(chip, start)?;
    let errors = |kernel: &GemmKernel| {
        let gemm = Gemm::of(chip, kernel).expect("the chip has the arithmetic");
        rows.iter().map(|row| row.error(&gemm)).collect::<Vec<f64>>()
    };
    let mut found = search(start, knobs, |kernel| soft(errors(kernel).into_iter()));
    found.fit = quality(&errors(&found))?;
    Some(found)
}

fn quality(errors: &[f64]) -> Option<Fit> {
    Errors::of(errors).map(|e| Fit { rows: e.n as u64, median: e.median, p90: e.p90 })
}

/// A pass's constants from rows of chips of one generation.
pub fn pass(start: &Pass, two_speeds: bool, rows: &[(&PassRow, &Chip)]) -> Option<(Pass, Fit)> {
    let silicon = |chip: &Chip| Silicon::of(chip, Math::Bf16);
    let rows: Vec<(&PassRow, Silicon)> = rows.iter().filter_map(|(row, chip)| Some((*row, silicon(chip)?))).collect();
    let errors = |pass: &Pass| {
        let one =
            |(row, silicon): &(&PassRow, Silicon)| float::ln(pass_time(*silicon, pass, row.product) / row.measured);
        rows.iter().map(one).collect::<Vec<f64>>()
    };
    let mut knobs: Vec<Knob<Pass>> = vec![
        Knob { low: 0.5, high: 25.0, get: |p| p.floor.as_ms() * 1e3, set: |p, v| p.floor = Seconds::us(v) },
        Knob { low: 5.0, high: 200.0, get: |p| p.core.get() / 1e9, set: |p, v| p.core = ByteRate::gb_per_s(v) },
        Knob { low: 0.3, high: 0.92, get: |p| p.bandwidth, set: |p, v| p.bandwidth = v },
        Knob { low: 0.01, high: 0.6, get: |p| p.cached, set: |p, v| p.cached = v },
    ];
    if two_speeds {
        knobs.push(Knob {
            low: 2.0,
            high: 200.0,
            get: |p| p.cold_core.map_or(20.0, |c| c.get() / 1e9),
            set: |p, v| p.cold_core = Some(ByteRate::gb_per_s(v)),
        });
    }
    let found = search(start, &knobs, |pass| soft(errors(pass).into_iter()));
    let fit = quality(&errors(&found))?;
    Some((found, fit))
}
