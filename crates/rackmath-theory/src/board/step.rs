//! The lecture's blackboard: the time and cost of one step, and exactly where its lines cross.
//!
//! $$ t = \max\big(B\,q\,c,\ t_w + B\,k(L)\big) \qquad c = \frac{2 N_{act}}{F} \quad t_w = \frac{w N_{tot}}{W} \quad k(L) = \frac{kv(L)}{W} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | B | batch | sequences | sequences in one pass |
//! | q | pass | tokens | tokens per sequence in one pass: 1 decodes, the prompt's length prefills |
//! | L | context | tokens | tokens already in the cache |
//! | c | compute per token | s | multiplying one token |
//! | t_w | weights | s | reading every weight once |
//! | k(L) | kv | s | reading one sequence's cache once |
//!
//! Where the lines cross, at large batch and at given batch:
//! B_kink = t_w / (c - k), L* where c = k(L*), L_kink where c = t_w / B + k(L), q_kink = (t_w / B + k) / c.
//!
//! Strict counting, the default, adds what the lecture leaves out: attention arithmetic, and that a small batch touches
//! only some experts (t_w then depends on B). Lecture counting leaves both out.
//!
//! Assumes: weights and cache spread evenly over all chips, every byte at full bandwidth, every multiplication at the dense
//! peak, no network, no launch overhead: a lower bound. Source: lecture D1-D9, D11, D48; section 5 rows 1, 3, 6, 8.

use crate::count::{self, Count, Part, experts_run};
use crate::curve::Curve;
use crate::deployment::Deployment;
use crate::kv::{self, Cache};
use crate::machine::timer::{self, Cost, Limit, StepTimer, Work};
use crate::roofline::{Binding, Overlap, Terms};
use rackmath_spec::{Chip, Dtype, Math, Model};
use rackmath_units::{
    DollarRate, DollarsPerToken, FlopRate, Fraction, Seconds, SecondsPerToken, TokenRate, Tokens, float,
};
use std::convert::Infallible;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Attention arithmetic, and only the experts a batch touches.
    Strict,
    /// Neither: the formulas as they stood on the board.
    Lecture,
}

/// How a deployment is drawn on the board, which spreads it evenly over the machine whatever its layout and engine.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The arithmetic to compute in, instead of the best one for each weight format.
    pub math: Option<Math>,
    pub counting: Counting,
    pub overlap: Overlap,
    pub price: DollarRate,
}

impl Default for Rules {
    fn default() -> Self {
        Self { math: None, counting: Counting::Strict, overlap: Overlap::Max, price: DollarRate::ZERO }
    }
}

/// The board: everything a step needs, in seconds of the whole machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Board {
    compute: f64,
    absorbed: Curve,
    materialised: Curve,
    expand: Curve,
    always: f64,
    routed: f64,
    /// Natural logarithm of the chance that one token misses an expert; 0 when all weights are always read.
    ln_miss: f64,
    kv: Curve,
    overlap: Overlap,
    price: DollarRate,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub batch: Tokens,
    pub context: Tokens,
    pub pass: Tokens,
    pub terms: Terms,
    pub time: Seconds,
    pub cost: DollarsPerToken,
}

impl Step {
    pub fn binding(&self) -> Binding {
        self.terms.binding()
    }

    /// Share of the time the arithmetic units would be busy at their peak.
    pub fn mfu(&self) -> Fraction {
        Fraction::checked(self.terms.compute / self.time).unwrap_or(Fraction::ONE)
    }

    /// Share of the time the memory would be busy at its peak.
    pub fn mbu(&self) -> Fraction {
        Fraction::checked(self.terms.memory() / self.time).unwrap_or(Fraction::ONE)
    }

    pub fn rate(&self) -> TokenRate {
        self.batch * self.pass.get() / self.time
    }
}

/// The dense peak a chip runs weights of a format at, unless an arithmetic is prescribed.
pub fn peak_for(chip: &Chip, weights: Dtype, math: Option<Math>) -> Option<(Math, FlopRate)> {
    match math {
        Some(math) => chip.peak.get(&math).map(|p| (math, p.value)),
        None => chip.peak_for(weights).map(|(math, p)| (math, p.value)),
    }
}

impl Board {
    /// Draws the board; `None` when the chip has no peak for an arithmetic that is needed.
    pub fn new(on: &Deployment, rules: &Rules) -> Option<Self> {
        Self::from_parts(on, rules, &count::count(&on.model), &kv::cache(&on.model, on.kv))
    }

    /// The same from a count and a cache made earlier.
    pub fn from_parts(on: &Deployment, rules: &Rules, count: &Count, cache: &Cache) -> Option<Self> {
        let n = on.system.n_chips as f64;
        let chip = &on.system.chip;
        let bandwidth = on.system.bandwidth().get();
        let mut compute = 0.0;
        for part in Part::ALL {
            let multiplied = count.part(part).active - count.part(part).looked_up;
            if multiplied > 0.0 {
                let (_, peak) = peak_for(chip, part.dtype(&on.formats), rules.math)?;
                // A multiplication and an addition per parameter.
                compute += 2.0 * multiplied / (peak.get() * n);
            }
        }
        let (_, attention_peak) = peak_for(chip, on.kv, None)?;
        let [absorbed, materialised, expand] = match rules.counting {
            Counting::Strict => cache.flop_curves().map(|curve| curve.scaled(1.0 / (attention_peak.get() * n))),
            Counting::Lecture => Default::default(),
        };
        let bytes = |part: Part| count.read_bytes_in(part, &on.formats).get() / bandwidth;
        let routed = bytes(Part::Routed);
        let always = Part::ALL.into_iter().filter(|p| *p != Part::Routed).map(bytes).sum();
        let (ln_miss, kv) = (ln_miss(&on.model, rules.counting), cache.read.scaled(1.0 / bandwidth));
        let Rules { overlap, price, .. } = *rules;
        Some(Self { compute, absorbed, materialised, expand, always, routed, ln_miss, kv, overlap, price })
    }

    pub fn step(&self, batch: Tokens, context: Tokens, pass: Tokens) -> Step {
        let terms = self.terms(batch.get(), context.get(), pass.get());
        let time = terms.time(self.overlap);
        let cost = self.price * (time / (batch * pass.get()));
        Step { batch, context, pass, terms, time, cost }
    }

    fn terms(&self, b: f64, l: f64, q: f64) -> Terms {
        let (compute, weights, kv) = (b * self.sequence_compute(l, q), self.weights_at(b * q), b * self.kv.at(l));
        Terms { compute: Seconds::s(compute), weights: Seconds::s(weights), kv: Seconds::s(kv) }
    }

    /// Arithmetic of `q` tokens of one sequence: weights, and the cheaper way to attend to a latent cache.
    fn sequence_compute(&self, l: f64, q: f64) -> f64 {
        let attention = if q == 1.0 {
            self.absorbed.at(l).min(self.materialised.at(l) + self.expand.at(l))
        } else {
            self.absorbed.integral(l, q).min(self.materialised.integral(l, q) + self.expand.at(l))
        };
        q * self.compute + attention
    }

    fn weights_at(&self, tokens: f64) -> f64 {
        let touched = if self.ln_miss == 0.0 { 1.0 } else { -float::exp_m1(tokens * self.ln_miss) };
        self.always + self.routed * touched
    }

    /// Time to read every weight once: the latency floor of a large batch.
    pub fn weights(&self) -> Seconds {
        Seconds::s(self.always + self.routed)
    }

    pub fn compute_per_token(&self) -> SecondsPerToken {
        SecondsPerToken::new(self.compute)
    }

    pub fn attention_per_token(&self, context: Tokens) -> SecondsPerToken {
        SecondsPerToken::new(self.sequence_compute(context.get(), 1.0) - self.compute)
    }

    pub fn kv_per_sequence(&self, context: Tokens) -> Seconds {
        Seconds::s(self.kv.at(context.get()))
    }

    /// The fastest possible decode step: one sequence with no context.
    pub fn latency_floor(&self) -> Seconds {
        Seconds::s(self.weights_at(1.0))
    }

    /// Cost of a token in passes of so many each, batch endless: no step of this context and pass is below it.
    pub fn cost_floor(&self, context: Tokens, pass: Tokens) -> DollarsPerToken {
        let (compute, kv) = (self.sequence_compute(context.get(), pass.get()), self.kv_per_sequence(context));
        let terms = Terms { compute: Seconds::s(compute), weights: Seconds::ZERO, kv };
        self.price * (terms.time(self.overlap) / pass)
    }

    /// The batch at which computing takes as long as reading; nothing where reading the cache alone takes longer. With every
    /// expert touched it is t_w / (c - k); below that the touched share bends the line and bisection finds the crossing.
    pub fn balance_batch(&self, context: Tokens) -> Option<f64> {
        let slope = self.sequence_compute(context.get(), 1.0) - self.kv.at(context.get());
        if slope <= 0.0 {
            return None;
        }
        let all = (self.always + self.routed) / slope;
        let bent = self.weights_at(all) != self.always + self.routed;
        let root = bent.then(|| float::root(0.0, all, |b| b * slope - self.weights_at(b)));
        Some(root.flatten().unwrap_or(all))
    }

    /// The context at which reading a cache takes as long as computing a token, batch endless; `None` if it never does.
    pub fn balanced_context(&self) -> Option<Tokens> {
        self.kv.crossing(&self.absorbed, self.compute).map(Tokens::new)
    }

    /// The context at which a batch turns memory-bound; `None` if it is at any context, or never.
    pub fn kink_context(&self, batch: Tokens) -> Option<Tokens> {
        let level = self.compute - self.weights_at(batch.get()) / batch.get();
        let bound_from_the_start = self.kv.fixed() - self.absorbed.fixed() > level;
        if bound_from_the_start { None } else { self.kv.crossing(&self.absorbed, level).map(Tokens::new) }
    }

    /// The pass length at which a batch turns compute-bound; `None` when even an endless pass does not.
    pub fn kink_pass(&self, batch: Tokens, context: Tokens) -> Option<f64> {
        let (b, l) = (batch.get(), context.get());
        let plain = ((self.always + self.routed) / b + self.kv.at(l)) / self.compute;
        if self.absorbed == Curve::default() && self.ln_miss == 0.0 {
            return Some(plain);
        }
        // Compute grows at least in proportion to q, so twice as many tokens are enough.
        float::root(0.0, (2.0 * plain).max(1.0), |q| {
            let terms = self.terms(b, l, q);
            terms.compute.get() - terms.memory().get()
        })
    }
}

fn ln_miss(model: &Model, counting: Counting) -> f64 {
    let moe = model.shape().and_then(|s| s.moe());
    match (counting, moe) {
        (Counting::Strict, Some(moe)) if experts_run(moe) < moe.experts as f64 => {
            float::ln_1p(-experts_run(moe) / moe.experts as f64)
        }
        _ => 0.0,
    }
}

impl StepTimer for Board {
    type Uncovered = Infallible;

    /// Groups add up; weights are read once for all. What is not overlapped is put down to the shorter side.
    fn time(&self, work: &Work) -> Result<Cost, Infallible> {
        let rows = work.rows();
        if rows <= 0.0 {
            return Ok(Cost::default());
        }
        let (mut compute, mut kv) = (0.0, 0.0);
        let mut add = |sequences: f64, context: f64, tokens: f64| {
            compute += sequences * self.sequence_compute(context, tokens);
            kv += sequences * self.kv.at(context);
        };
        work.decodes.iter().for_each(|d| add(d.sequences, d.context, work.queries()));
        work.chunks.iter().for_each(|c| add(c.prompts, c.past, c.each()));
        let (compute, weights, kv) = (Seconds::s(compute), Seconds::s(self.weights_at(rows)), Seconds::s(kv));
        let terms = Terms { compute, weights, kv };
        let (compute, memory) = (terms.compute.get(), terms.memory().get());
        let mut cost = Cost::ideal_of(compute, memory);
        let other = if compute >= memory { Limit::Memory } else { Limit::Compute };
        cost.add(timer::Part::Products, other, (terms.time(self.overlap).get() - compute.max(memory)).max(0.0));
        Ok(cost)
    }
}

pub mod closed {
    use super::{Fraction, Tokens};

    /// D9: sequences at which compute hides the weights, `R * S`.
    pub fn balance_batch(ridge: f64, sparsity: f64) -> f64 {
        ridge * sparsity
    }

    /// D9 with a cache: larger by 1 / (1 - L / L*), without end from L* on.
    pub fn balance_batch_with_cache(ridge: f64, sparsity: f64, context_ratio: f64) -> Option<f64> {
        (context_ratio < 1.0).then(|| ridge * sparsity / (1.0 - context_ratio))
    }

    /// D5: MFU of an endless batch beyond the balanced context.
    pub fn mfu_beyond(balanced: Tokens, context: Tokens) -> Fraction {
        Fraction::checked(balanced / context).unwrap_or(Fraction::ONE)
    }

    /// X4: tokens each expert gets.
    pub fn tokens_per_expert(batch: f64, top_k: f64, experts: f64) -> f64 {
        batch * top_k / experts
    }

    /// D18: experts on a domain, using the largest power of two of chips that divides the work evenly.
    pub fn experts_on(chips: u64, experts: u64) -> (u64, u64) {
        let mut used = 1;
        while used * 2 <= chips && used * 2 <= experts {
            used *= 2;
        }
        (used, experts.div_ceil(used))
    }

    /// D7: how many times smaller the fast batch is, when price follows cost on the same machine.
    pub fn fast_batch_ratio(price: f64, speed: f64) -> f64 {
        price * speed
    }

    /// D7: x = B k / t_w at the standard batch, from a price and a speed multiple.
    pub fn fast_x(price: f64, speed: f64) -> f64 {
        (speed - 1.0) / (1.0 - 1.0 / price)
    }

    /// D7: the speed a price multiple buys; 1 + x is the limit.
    pub fn fast_speed(price: f64, x: f64) -> f64 {
        1.0 + x * (1.0 - 1.0 / price)
    }

    /// D7 turned round: the price multiple a speed costs; `None` beyond the limit.
    pub fn fast_price(speed: f64, x: f64) -> Option<f64> {
        (speed < 1.0 + x).then(|| 1.0 / (1.0 - (speed - 1.0) / x))
    }

    /// D8: the most a slower mode can save while memory-bound: the share of the weights, 1 / (1 + x).
    pub fn slow_saving(x: f64) -> f64 {
        1.0 / (1.0 + x)
    }
}
