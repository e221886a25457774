//! Constants that come near a set of rows.

use super::Row;
use super::rows::PassRow;
use crate::knob::{Knob, knob, turned};
use crate::simplex;
use crate::table::Errors;
use rackmath_spec::{Chip, GemmKernel, Math, Pass, Residual};
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

pub const KERNEL: [Knob<GemmKernel>; 12] = [
    knob("floor_us", (1.0, 25.0), |k| k.floor.as_ms() * 1e3, |k, v| k.floor = Seconds::us(v)),
    COMPUTE,
    knob("bandwidth", (0.3, 0.95), |k| k.bandwidth, |k, v| k.bandwidth = v),
    knob("corner", (1.0, 12.0), |k| k.corner, |k, v| k.corner = v),
    knob("operand_gb_per_s", (20.0, 2000.0), operand, |k, v| k.operand = Some(ByteRate::gb_per_s(v))),
    WAVE,
    knob("quantum", (1e-3, 1.0), |k| k.quantum, |k, v| k.quantum = v),
    DROOP,
    knob("split_us", (0.1, 20.0), |k| k.split.as_ms() * 1e3, |k, v| k.split = Seconds::us(v)),
    knob("ramp", (1e-3, 2.0), |k| k.ramp, |k, v| k.ramp = v),
    knob("ramp_us", (0.5, 60.0), |k| k.ramp_time.as_ms() * 1e3, |k, v| k.ramp_time = Seconds::us(v)),
    knob("resident", (1e-3, 0.6), |k| k.resident, |k, v| k.resident = v),
];

const COMPUTE: Knob<GemmKernel> = knob("compute", (0.1, 0.95), |k| k.compute, |k, v| k.compute = v);
const WAVE: Knob<GemmKernel> = knob("wave_us", (0.01, 6.0), |k| k.wave.as_ms() * 1e3, |k, v| k.wave = Seconds::us(v));
const DROOP: Knob<GemmKernel> = knob("droop", (1e-3, 0.6), |k| k.droop, |k, v| k.droop = v);

fn operand(kernel: &GemmKernel) -> f64 {
    kernel.operand.map_or(100.0, |rate| rate.get() / 1e9)
}

/// What differs between engines around the same product: the pass before it and how well tiles are chosen.
pub const ENGINE: [Knob<GemmKernel>; 6] = [
    knob("floor_us", (0.2, 25.0), |k| (PASS[0].get)(&k.dynamic[0]), |k, v| (PASS[0].set)(&mut k.dynamic[0], v)),
    knob("core_gb_per_s", (5.0, 200.0), |k| (PASS[1].get)(&k.dynamic[0]), |k, v| (PASS[1].set)(&mut k.dynamic[0], v)),
    knob("row_ns", (0.01, 20.0), |k| k.dynamic[0].row.as_ms() * 1e6, |k, v| k.dynamic[0].row = Seconds::ns(v)),
    COMPUTE,
    WAVE,
    DROOP,
];

/// Launches that are not captured in a graph.
pub const HOST: [Knob<GemmKernel>; 2] =
    [knob("host_us", (1.0, 2000.0), |k| k.host.as_ms() * 1e3, |k, v| k.host = Seconds::us(v)), COMPUTE];

/// A pass; the last is for passes that have two speeds.
pub const PASS: [Knob<Pass>; 5] = [
    knob("floor_us", (0.5, 25.0), |p| p.floor.as_ms() * 1e3, |p, v| p.floor = Seconds::us(v)),
    knob("core_gb_per_s", (5.0, 200.0), |p| p.core.get() / 1e9, |p, v| p.core = ByteRate::gb_per_s(v)),
    knob("bandwidth", (0.3, 0.92), |p| p.bandwidth, |p, v| p.bandwidth = v),
    knob("cached", (0.01, 0.6), |p| p.cached, |p, v| p.cached = v),
    knob(
        "cold_core_gb_per_s",
        (2.0, 200.0),
        |p| p.cold_core.map_or(20.0, |c| c.get() / 1e9),
        |p, v| p.cold_core = Some(ByteRate::gb_per_s(v)),
    ),
];

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

fn quality(errors: &[f64]) -> Option<Residual> {
    Errors::of(errors).map(|e| Residual { rows: e.n as u64, median: e.median, p90: e.p90 })
}

/// A pass's constants from rows of chips of one generation.
pub fn pass(start: &Pass, two_speeds: bool, rows: &[(&PassRow, &Chip)]) -> Option<(Pass, Residual)> {
    let silicon = |chip: &Chip| Silicon::of(chip, Math::Bf16);
    let rows: Vec<(&PassRow, Silicon)> = rows.iter().filter_map(|(row, chip)| Some((*row, silicon(chip)?))).collect();
    let errors = |pass: &Pass| {
        let one =
            |(row, silicon): &(&PassRow, Silicon)| float::ln(pass_time(*silicon, pass, row.product) / row.measured);
        rows.iter().map(one).collect::<Vec<f64>>()
    };
    let knobs = if two_speeds { &PASS[..] } else { &PASS[..4] };
    let found = search(start, knobs, |pass| soft(errors(pass).into_iter()));
    let fit = quality(&errors(&found))?;
    Some((found, fit))
}
