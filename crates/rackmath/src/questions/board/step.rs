//! How long is one step, what binds it, and does it fit?

use crate::desk::prelude::*;
use rackmath_theory::board::{Step, closed};
use rackmath_theory::curve::distinct;
use rackmath_theory::roofline::{self, Overlap};

/// One step of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model and machine.
    pub setting: Setting,
    /// Sequences in the batch.
    #[schemars(extend("x-flag" = "batch -b max-num-seqs batch-size", "x-none" = "where compute meets memory"))]
    pub batch: Option<f64>,
    /// Tokens of context of each sequence: 4096, 128k, 128Ki.
    #[schemars(extend("x-flag" = "context -c isl max-model-len context-length"))]
    #[educe(Default = 4096.0)]
    pub context: f64,
    /// Tokens of each sequence in this pass: 1 decodes, a prompt's length prefills.
    #[schemars(extend("x-flag" = "pass -p chunk"))]
    #[educe(Default = 1.0)]
    pub pass: f64,
}

/// The step and everything around it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model's name.
    pub model: String,
    /// The machine's name.
    pub system: String,
    /// Chips.
    pub chips: u64,
    /// Sequences.
    pub batch: f64,
    /// Whether the batch was chosen here.
    pub batch_chosen: bool,
    /// Context of each.
    pub context: f64,
    /// Tokens of each in this pass.
    pub pass: f64,
    /// Time of the step.
    pub time_s: f64,
    /// Time to multiply.
    pub compute_s: f64,
    /// Time to read weights.
    pub weights_s: f64,
    /// Time to read the cache.
    pub kv_s: f64,
    /// The slower of compute and memory.
    pub lower_bound_s: f64,
    /// Compute and memory one after the other.
    pub upper_bound_s: f64,
    /// What sets the time.
    pub binding: String,
    /// Share of the dense peak in use.
    pub mfu: f64,
    /// Share of the memory bandwidth in use.
    pub mbu: f64,
    /// Tokens per second of the machine.
    pub tokens_per_s: f64,
    /// Tokens per second one user sees.
    pub tokens_per_s_user: f64,
    /// Cost of a token, if a price is known.
    pub cost_usd_per_mtok: Option<f64>,
    /// Cost of a token in an endless batch.
    pub cost_floor_usd_per_mtok: Option<f64>,
    /// Fastest possible step: one sequence, no context.
    pub latency_floor_s: f64,
    /// Time to read every weight once.
    pub all_weights_s: f64,
    /// Batch at which compute takes as long as memory; none when the cache alone takes longer.
    pub balance_batch: Option<f64>,
    /// Context at which an endless batch is balanced; none when it never turns memory-bound.
    pub balanced_context: Option<f64>,
    /// Context at which this batch turns memory-bound.
    pub kink_context: Option<f64>,
    /// Pass length at which this batch turns compute-bound.
    pub kink_pass: Option<f64>,
    /// The dimensionless ridge R of the machine for these weights.
    pub ridge: Option<f64>,
    /// Parameters read over parameters multiplied per token.
    pub sparsity: f64,
    /// Experts, for a mixture.
    pub experts: Option<Experts>,
    /// Memory.
    pub memory: Memory,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
    /// Where they come from.
    pub sources: Vec<Remark>,
}

/// How a batch meets the experts of one layer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Experts {
    /// Routed experts.
    pub routed: u64,
    /// Of which a token uses.
    pub top_k: u64,
    /// Different experts this batch touches, on average.
    pub touched: f64,
    /// Tokens each expert gets.
    pub tokens_each: f64,
}

/// What the step needs to keep.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Memory {
    /// Weights.
    pub weights_bytes: f64,
    /// Caches of all sequences.
    pub kv_bytes: f64,
    /// Cache one sequence adds for each token.
    pub kv_bytes_per_token: f64,
    /// Memory of the machine.
    pub capacity_bytes: f64,
    /// Whether both fit.
    pub fits: bool,
    /// What is missing.
    pub missing_bytes: f64,
    /// Most sequences of this context that fit; none when they take no memory.
    pub batch_max: Option<f64>,
    /// Longest context that fits with this batch; none when any does.
    pub context_max: Option<f64>,
    /// Fewest chips of this kind that hold the weights and one sequence.
    pub chips_min: u64,
    /// Time to read all of the memory once.
    pub drain_s: f64,
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let r = &resolve(catalog, &request.setting)?;
    let (board, step) = (&r.board, &of(r, request)?);
    let cost = |value: f64| r.priced().then_some(value);
    let ridge = |peak| roofline::ridge(peak, r.main_format().width(), r.system.chip.memory.bandwidth.value);
    Ok(Answer {
        model: r.model.name.clone(),
        system: r.system.name.clone(),
        chips: r.system.n_chips,
        batch: step.batch.get(),
        batch_chosen: request.batch.is_none(),
        context: step.context.get(),
        pass: step.pass.get(),
        time_s: step.time.get(),
        compute_s: step.terms.compute.get(),
        weights_s: step.terms.weights.get(),
        kv_s: step.terms.kv.get(),
        lower_bound_s: step.terms.time(Overlap::Max).get(),
        upper_bound_s: step.terms.time(Overlap::Sum).get(),
        binding: step.binding().name().to_owned(),
        mfu: step.mfu().get(),
        mbu: step.mbu().get(),
        tokens_per_s: step.rate().get(),
        tokens_per_s_user: (step.pass / step.time).get(),
        cost_usd_per_mtok: cost(step.cost.as_per_mtok()),
        cost_floor_usd_per_mtok: cost(board.cost_floor(step.context, step.pass).as_per_mtok()),
        latency_floor_s: board.latency_floor().get(),
        all_weights_s: board.weights().get(),
        balance_batch: board.balance_batch(step.context),
        balanced_context: board.balanced_context().map(Tokens::get),
        kink_context: board.kink_context(step.batch).map(Tokens::get),
        kink_pass: board.kink_pass(step.batch, step.context),
        ridge: r.main_math().map(|(_, peak)| ridge(peak)),
        sparsity: r.count.read() / r.count.multiplied(),
        experts: experts(r, step),
        memory: memory(r, step),
        assumptions: r.assumptions(),
        sources: r.sources(),
    })
}

/// The step asked for.
pub(crate) fn of(r: &Resolved, request: &Request) -> Result<Step, Error> {
    let (context, pass) = (tokens("context", request.context, 0.0)?, tokens("pass", request.pass, 1.0)?);
    let batch = request.batch.map_or_else(|| Ok(usual_batch(r, context)), |batch| tokens("batch", batch, 1.0))?;
    Ok(r.board.step(batch, context, pass))
}

/// The balance batch, or as many sequences as fit when the batch never balances or does not fit.
fn usual_batch(r: &Resolved, context: Tokens) -> Tokens {
    let room = r.system.capacity().less(r.weight_bytes());
    let each = r.cache.stored(context);
    let fits = if each.get() > 0.0 { (room / each).floor().max(1.0) } else { 1e6 };
    let wanted = r.board.balance_batch(context).map_or(fits, |batch| batch.ceil().max(1.0));
    Tokens::new(wanted.min(fits))
}

fn experts(r: &Resolved, step: &Step) -> Option<Experts> {
    let moe = r.model.shape()?.moe()?;
    let (e, k) = (moe.experts as f64, rackmath_theory::count::experts_run(moe));
    let tokens = step.batch.get() * step.pass.get();
    Some(Experts {
        routed: moe.experts,
        top_k: moe.top_k,
        touched: distinct(e, k, tokens),
        tokens_each: closed::tokens_per_expert(tokens, k, e),
    })
}

/// Tokens each sequence keeps while the step runs: its context and all of the pass but the token that ends it.
fn kept(step: &Step) -> Tokens {
    step.context + step.pass.less(Tokens::new(1.0))
}

pub(crate) fn memory(r: &Resolved, step: &Step) -> Memory {
    let (weights, capacity) = (r.weight_bytes(), r.system.capacity());
    let each = r.cache.stored(kept(step));
    let kv = each * step.batch.get();
    let room = capacity.less(weights);
    let per_chip = r.system.chip.memory.size();
    let batch_max = (each.get() > 0.0).then(|| (room / each).floor());
    Memory {
        weights_bytes: weights.get(),
        kv_bytes: kv.get(),
        kv_bytes_per_token: r.cache.stored_per_token().get(),
        capacity_bytes: capacity.get(),
        fits: weights + kv <= capacity,
        missing_bytes: (weights + kv).less(capacity).get(),
        batch_max,
        context_max: r.cache.longest(room / step.batch.get()).map(|t| t.less(step.pass.less(Tokens::new(1.0))).get()),
        chips_min: ((weights + each) / per_chip).ceil().max(1.0) as u64,
        drain_s: roofline::drain(capacity, r.system.bandwidth()).get(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g27_a_full_rack_is_filled_to_the_last_sequence() {
        let (model, on, counting) = ("lecture-deepseek-v3".into(), "lecture-nvl72".into(), "lecture".into());
        let setting = Setting { model, on, counting, ..Setting::default() };
        let a = answer(&rackmath_catalog::embedded(), &Request { setting, ..Request::default() }).unwrap();
        assert_eq!((a.batch, a.memory.batch_max, a.memory.fits), (91_392.0, Some(91_392.0), true));
        assert!((a.memory.drain_s - 0.024).abs() < 1e-12 && a.balance_batch.is_none());
    }

    #[test]
    fn the_chosen_batch_always_fits_when_one_sequence_does() {
        let catalog = rackmath_catalog::embedded();
        for id in catalog.ids(rackmath_spec::Kind::Models) {
            let setting = Setting { model: id.into(), on: "hgx-h200".into(), ..Setting::default() };
            let a = answer(&catalog, &Request { setting, ..Request::default() }).unwrap();
            assert!(a.memory.fits || a.memory.batch_max == Some(0.0), "{id}: {:?}", a.memory);
        }
    }
}
