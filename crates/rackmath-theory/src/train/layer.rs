//! The passes of one layer for one micro-batch.
//!
//! $$ F = \Omega\Big(\sum x\,t_{mm} + A + \frac{e\,V + q}{W} + \epsilon_t\,n_r\,t_{ar} + \epsilon_e\,2 t_{a2a},\; t_{host}\Big) $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | t_mm | products | s | the block's matrix products, [`super::machine`] |
//! | A | attention | s | scores as products and passes over them, or one fused kernel |
//! | V, e | bytes, elementwise | B, 1 | norms, residuals, activation functions, states of recurrences; how far from full bandwidth |
//! | q | cast | B | casts to narrow formats, [`rackmath_spec::TrainingFormat::cast_bytes`] for each value |
//! | n_r, t_ar | reductions | 1, s | tensor-parallel reductions |
//! | t_a2a | exchange | s | tokens to experts and back |
//! | eps | exposed | 1 | share that is not hidden behind products |
//! | t_host | host | s | starting the kernels |
//! | Omega | together | - | the larger, rounded (host runs ahead), or the sum (host waits) |
//!
//! Backward: twice the products; fused attention needs five products for two, hence 2.5. Scores move 11 bytes each forward
//! (written, softmax, dropout, read) and 16 backward; a backward norm or residual moves a sixth more than forward.
//! Ignores: that layers run a little faster while the links are idle. Source: counting; shares in `catalog/training`.

use super::Cut;
use super::machine::{Machine, Triple};
use super::tuning::NARROW;
use super::work::Work;
use crate::network::Collective;
use rackmath_spec::training::{AttentionPath, HostLaunch};

/// Bytes moved per score forward and backward.
const SCORE_BYTES: (f64, f64) = (11.0, 16.0);

/// Fused attention recomputes the scores: five products backward, two forward.
const FLASH_BACKWARD: f64 = 2.5;

/// Backward bytes of norms and residuals over forward ones, and of inner functions.
const BACKWARD_BYTES: (f64, f64) = (26.0 / 22.0, 1.5);

/// Times the states of a recurrence are read or written: made, passed on and read forward; the same and their gradients backward.
const STATE_PASSES: (f64, f64) = (4.0, 8.0);

/// How sharp the corner between host and chip is.
const CORNER: i32 = 6;

/// Times of one layer in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LayerTime {
    pub forward: f64,
    /// Backward, both gradients.
    pub backward: f64,
    /// Of the backward pass, the products to the weights.
    pub weight: f64,
    /// Computing scores again.
    pub selective: f64,
    /// Computing again what takes little time.
    pub cheap: f64,
    /// Forward and backward together, the first of [`super::step::Part`]; of communication what shows.
    pub parts: [f64; 6],
}

impl LayerTime {
    pub fn add(&mut self, other: &Self, n: f64) {
        self.forward += n * other.forward;
        self.backward += n * other.backward;
        self.weight += n * other.weight;
        self.selective += n * other.selective;
        self.cheap += n * other.cheap;
        self.parts.iter_mut().zip(other.parts).for_each(|(part, more)| *part += n * more);
    }
}

pub fn layer(machine: &Machine<'_>, work: &Work, cut: &Cut) -> LayerTime {
    let stack = machine.stack;
    let (traffic, network, host) = (&stack.traffic, &stack.network, &stack.host);
    let w = machine.bandwidth();
    let mut sum = Triple::default();
    for product in &work.products {
        let t = machine.product(*product);
        sum.forward += t.forward;
        sum.input += t.input;
        sum.weight += if work.frozen { 0.0 } else { t.weight };
    }
    for product in &work.adapters {
        let t = machine.product(*product);
        sum.forward += t.forward;
        sum.input += t.input;
        sum.weight += t.weight;
    }
    let (a_f, a_b) = attention(machine, work);
    let (cast_f, cast_b) = (machine.cast_bytes() * work.cast.0, machine.cast_bytes() * work.cast.1);
    let states = work.state_bytes;
    let e_f = work.residual_bytes + work.inner_bytes + STATE_PASSES.0 * states;
    let e_b = work.residual_bytes * BACKWARD_BYTES.0 + work.inner_bytes * BACKWARD_BYTES.1 + STATE_PASSES.1 * states;
    // Weights of 4 bits are read and written wide before their products.
    let expand = work.narrow * (NARROW + 2.0) / (machine.expand * w);
    let e_f = (traffic.elementwise * e_f + cast_f) / w + expand + work.added.0 / w;
    let e_b =
        (traffic.elementwise * e_b + cast_b) / w + traffic.accumulate_bytes * (work.trained + work.trained_experts) / w;
    let e_b = e_b + expand + work.added.1 / w;
    let reduce = machine.collective(Collective::AllReduce, work.reduced_bytes, cut.tp, 1);
    let tensor = network.tensor_exposed * work.reductions * reduce;
    let all_to_all = machine.exchange(work.exchanged_bytes, work.copies, cut.ep, cut.tp);
    let context = machine.collective(Collective::AllGather, work.key_value_bytes * cut.cp as f64, cut.cp, cut.tp);
    // Out and back, once forward and once backward; keys and values once forward, and with their gradients backward.
    let x_f = network.expert_exposed * 2.0 * all_to_all + network.context_exposed * context;
    let x_b = network.expert_exposed * 2.0 * all_to_all + network.context_exposed * 2.0 * context;

    let routing = if work.routes { host.experts.get() } else { 0.0 };
    let launch = host.rank.get() * (cut.tp - 1) as f64 + routing;
    let busy_f = sum.forward + a_f + e_f + tensor + x_f;
    let busy_b = sum.input + sum.weight + a_b + e_b + tensor + x_b;
    let forward = together(stack.launch, busy_f, host.forward.get() + launch);
    let backward = together(stack.launch, busy_b, host.backward.get() + launch);
    let products = sum.forward + sum.input + sum.weight;
    let up: f64 = work.up.iter().map(|p| machine.product(*p).forward).sum();
    let scores = if work.kept.scores > 0.0 { a_f } else { 0.0 };
    let cheap = traffic.elementwise * work.light_bytes / w + up + scores;
    LayerTime {
        forward,
        backward,
        weight: sum.weight,
        selective: a_f,
        cheap,
        parts: [products, a_f + a_b, e_f + e_b, 2.0 * tensor, x_f + x_b, forward + backward - busy_f - busy_b],
    }
}

fn attention(machine: &Machine<'_>, work: &Work) -> (f64, f64) {
    if !work.attends {
        return (0.0, 0.0);
    }
    let traffic = &machine.stack.traffic;
    match machine.stack.attention {
        AttentionPath::Scores => {
            let share = if work.aligned { traffic.score_product } else { traffic.unaligned_product };
            let products = work.score_flop / (share * machine.wide_peak());
            let pass = traffic.scores * work.scores / machine.bandwidth();
            (products + SCORE_BYTES.0 * pass, 2.0 * products + SCORE_BYTES.1 * pass)
        }
        AttentionPath::Flash => {
            let (forward, backward) = machine.stack.flash_share(machine.chip);
            // Blocks above the diagonal are skipped: half of the products.
            let causal = work.score_flop / 2.0 / machine.wide_peak();
            (causal / forward, FLASH_BACKWARD * causal / backward)
        }
    }
}

pub fn together(launch: HostLaunch, chip: f64, host: f64) -> f64 {
    match launch {
        HostLaunch::Blocking => chip + host,
        HostLaunch::Ahead => rounded(chip, host),
    }
}

/// A maximum with its corner rounded; square and cube roots only, so that every platform agrees.
pub fn rounded(a: f64, b: f64) -> f64 {
    let (high, low) = (a.max(b), a.min(b));
    if low <= 0.0 {
        return high;
    }
    let ratio = low / high;
    high * rackmath_units::float::pow(1.0 + ratio.powi(CORNER), 1.0 / f64::from(CORNER))
}
