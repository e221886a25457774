//! The grid of a pipeline that writes tokens: no barrier, so it fills up and stays full.
//!
//! $$ \text{slot} = i + k \max(P, M) + s \qquad \text{idle} = \max\left(0, \frac{P-M}{P}\right) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | P, s | stages, stage | 1 | stages, one slot each |
//! | M, i | micro_batches, micro_batch | 1 | micro-batches in turn |
//! | k | token | 1 | the token being written |
//!
//! A micro-batch enters the first stage again for its next token when it has left the last, or when its turn comes. Fewer
//! than P leave holes; more wait. Source: lecture D27 and 1c.4.

use rackmath_units::Fraction;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridCell {
    pub slot: usize,
    pub stage: usize,
    /// The micro-batch, from 0.
    pub micro_batch: usize,
    pub token: usize,
}

/// Idle share of each stage once the pipeline has filled; a pipeline without stages or work counts as one of each.
pub fn inference_idle(stages: usize, micro_batches: usize) -> Fraction {
    let (p, m) = (stages.max(1), micro_batches.max(1));
    Fraction::new(p.saturating_sub(m) as f64 / p as f64)
}

/// The busy cells of the first slots, by slot and then stage.
pub fn inference_grid(stages: usize, micro_batches: usize, slots: usize) -> Vec<GridCell> {
    let round = stages.max(micro_batches);
    let mut cells = Vec::new();
    for slot in 0..slots {
        for stage in 0..stages.min(slot + 1) {
            // When the micro-batch that is here now entered the first stage.
            let entered = slot - stage;
            let (micro_batch, token) = (entered % round, entered / round);
            if micro_batch < micro_batches {
                cells.push(GridCell { slot, stage, micro_batch, token });
            }
        }
    }
    cells
}
