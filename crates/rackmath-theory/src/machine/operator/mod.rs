//! Operators: how long one kernel takes on a real chip.
//!
//! $$ t = t_0 + \big((f / (a F))^p + (m / (b W))^p\big)^{1/p} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | t_0 | floor | s | launch, prologue, quantise: paid however small the work |
//! | f, F, a | flop, peak, compute efficiency | FLOP, FLOP/s, 1 | arithmetic, dense peak, share of it reached |
//! | m, W, b | bytes, bandwidth, memory efficiency | B, B/s, 1 | traffic, data-sheet bandwidth, share of it reached |
//! | p | corner | 1 | how sharp the roofline's corner is; infinite is a hard max |
//!
//! Efficiencies are functions of quantities that carry over between chips: waves of tiles over the cores, bytes per core,
//! the fraction of a tile that is filled. Constants are keyed by chip generation, number format and kernel family and live
//! in `catalog/kernels`; with all efficiencies 1 and no floor an operator is the roofline of the same work.

pub mod attention;
pub mod gemm;
pub mod mla;
pub mod moe;
pub mod streams;
#[cfg(test)]
mod tests;

use rackmath_spec::{Chip, Math};
use rackmath_units::{ByteRate, Bytes, Flop, FlopRate, Seconds, float};

/// What of a chip an operator's time depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Silicon {
    pub peak: FlopRate,
    pub bandwidth: ByteRate,
    pub cores: f64,
    pub l2: Bytes,
}

/// Cores and last-level cache of a chip whose file states none: an H100's (`catalog/chips/h100-sxm.toml`).
const USUAL_CORES: f64 = 132.0;
const USUAL_L2_MB: f64 = 50.0;

/// Fewer cores than this are whole matrix engines (a TPU has one or two), each of which works on many tiles at once.
const FEWEST_CORES: f64 = 4.0;

impl Silicon {
    /// A chip in one arithmetic; `None` when it has no peak for it.
    pub fn of(chip: &Chip, math: Math) -> Option<Self> {
        let cores = chip.physical.cores.as_ref().map(|c| c.value as f64);
        Some(Self {
            peak: chip.peak.get(&math)?.value,
            bandwidth: chip.memory.bandwidth.value,
            cores: cores.filter(|n| *n >= FEWEST_CORES).unwrap_or(USUAL_CORES),
            l2: chip.physical.l2.as_ref().map_or(Bytes::mb(USUAL_L2_MB), |l| l.value),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    pub floor: Seconds,
    pub compute: Seconds,
    pub memory: Seconds,
    pub time: Seconds,
}

pub fn ideal(silicon: Silicon, flop: Flop, bytes: Bytes) -> Timing {
    let (compute, memory) = (flop / silicon.peak, bytes / silicon.bandwidth);
    Timing { floor: Seconds::ZERO, compute, memory, time: compute.max(memory) }
}

/// A maximum with its corner rounded, the p-norm of two times: infinitely sharp is a plain maximum.
fn rounded(a: Seconds, b: Seconds, p: f64) -> Seconds {
    let (large, small) = (a.max(b), a.min(b));
    if p.is_infinite() || small == Seconds::ZERO {
        return large;
    }
    // Through the ratio, so that powers of small times do not underflow.
    large * float::pow(1.0 + float::pow(small / large, p), 1.0 / p)
}
