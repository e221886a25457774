//! How long is one step, what binds it, and does it fit?

use crate::desk::prelude::*;
use crate::support;
use rackmath_theory::board::{Step, closed};
use rackmath_theory::crossover::block_sparse_entries;
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
    /// Tokens per second that each user has at least: the largest batch that gives it is taken, and its cost is the price of
    /// the speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_tok_s: Option<f64>,
    /// Blocks of the context that each token attends to, of the best length, and a summary of every block: 2 sqrt(n L) entries
    /// are read instead of L. More blocks, more quality.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse_blocks: Option<f64>,
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
    /// Whether it follows from a speed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub batch_by_speed: bool,
    /// Context of each.
    pub context: f64,
    /// Tokens of each in this pass.
    pub pass: f64,
    /// What sparse attention reads, where it is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse: Option<Sparse>,
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
    /// Says that the model has no positions for such a context, where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_long: Option<Remark>,
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
    let context = tokens("context", request.context, 0.0)?;
    let sparse = Sparse::of(context, request.sparse_blocks)?;
    let cost = |value: f64| r.priced().then_some(value);
    let ridge = |peak| roofline::ridge(peak, r.main_format().width(), r.system.chip.memory.bandwidth.value);
    Ok(Answer {
        model: r.model.name.clone(),
        system: r.system.name.clone(),
        chips: r.system.n_chips,
        batch: step.batch.get(),
        batch_chosen: request.batch.is_none() && request.speed_tok_s.is_none(),
        batch_by_speed: request.speed_tok_s.is_some(),
        context: context.get(),
        sparse,
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
        memory: memory(r, &Step { context, ..*step }),
        too_long: support::beyond(&r.model, kept(&Step { context, ..*step }).get()),
        assumptions: r.assumptions(),
        sources: r.sources(),
    })
}

/// What block-sparse attention reads of a context.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Sparse {
    /// Blocks each token attends to.
    pub blocks: f64,
    /// Tokens of a block: the best length, sqrt(L / n).
    pub block_tokens: f64,
    /// Entries read: summaries of all blocks and the tokens of the chosen ones.
    pub entries: f64,
}

impl Sparse {
    /// None where attention is dense.
    pub(crate) fn of(context: Tokens, blocks: Option<f64>) -> Result<Option<Self>, Error> {
        let Some(blocks) = blocks else { return Ok(None) };
        let good = (1.0..=1e9).contains(&blocks);
        refuse_if(!good, "sparse_blocks", blocks, "1 to 1e9 blocks; fewer are quicker and worse")?;
        // Beyond L / 4 blocks, to read everything is less.
        let entries = block_sparse_entries(context, blocks).min(context.get());
        Ok(Some(Self { blocks, block_tokens: (context.get() / blocks).sqrt().max(1.0), entries }))
    }

    /// Entries that are read of a context.
    pub(crate) fn read(context: Tokens, blocks: Option<f64>) -> Result<Tokens, Error> {
        Ok(Self::of(context, blocks)?.map_or(context, |s| Tokens::new(s.entries)))
    }
}

/// The step asked for; of sparse attention its context is what is read.
pub(crate) fn of(r: &Resolved, request: &Request) -> Result<Step, Error> {
    let (context, pass) = (tokens("context", request.context, 0.0)?, tokens("pass", request.pass, 1.0)?);
    let read = Sparse::read(context, request.sparse_blocks)?;
    let batch = match (request.batch, request.speed_tok_s) {
        (Some(batch), None) => tokens("batch", batch, 1.0)?,
        (Some(batch), Some(_)) => {
            return Err(Error::value("batch", batch, "a batch, or a speed that the batch follows from"));
        }
        (None, Some(speed)) => quick_batch(r, speed, (read, context, pass))?,
        (None, None) => usual_batch(r, context, read),
    };
    Ok(r.board.step(batch, read, pass))
}

/// The largest batch that fits and gives each user a speed.
fn quick_batch(r: &Resolved, speed: f64, (read, context, pass): (Tokens, Tokens, Tokens)) -> Result<Tokens, Error> {
    let user = |batch: f64| (pass / r.board.step(Tokens::new(batch), read, pass).time).get();
    let expected = || format!("at most {} for one sequence alone", TokenRate::per_s(user(1.0)));
    refuse_if(!(speed > 0.0 && user(1.0) >= speed), "speed_tok_s", speed, expected())?;
    let (mut low, mut high) = (1.0, fitting(r, context));
    if user(high) >= speed {
        return Ok(Tokens::new(high));
    }
    while high - low > 1.0 {
        let middle = f64::midpoint(low, high).floor();
        if user(middle) >= speed { low = middle } else { high = middle }
    }
    Ok(Tokens::new(low))
}

/// Memory as programs find it, which every question counts what fits against.
fn capacity(r: &Resolved) -> Bytes {
    r.system.chip.memory.seen() * r.system.n_chips as f64
}

/// Sequences of a context that fit, at least one.
fn fitting(r: &Resolved, context: Tokens) -> f64 {
    let room = capacity(r).less(r.weight_bytes());
    let each = r.cache.stored(context);
    if each.get() > 0.0 { (room / each).floor().max(1.0) } else { 1e6 }
}

/// The balance batch, or as many sequences as fit when the batch never balances or does not fit.
fn usual_batch(r: &Resolved, context: Tokens, read: Tokens) -> Tokens {
    let fits = fitting(r, context);
    let wanted = r.board.balance_batch(read).map_or(fits, |batch| batch.ceil().max(1.0));
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
    let (weights, capacity) = (r.weight_bytes(), capacity(r));
    let each = r.cache.stored(kept(step));
    let kv = each * step.batch.get();
    let room = capacity.less(weights);
    let per_chip = r.system.chip.memory.seen();
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

    fn asked(sparse_blocks: Option<f64>, speed_tok_s: Option<f64>, context: f64) -> Answer {
        let setting = Setting { model: "llama-3.1-70b".into(), on: "8xh100".into(), ..Setting::default() };
        let request = Request { setting, context, speed_tok_s, sparse_blocks, ..Request::default() };
        answer(&rackmath_catalog::embedded(), &request).unwrap()
    }

    #[test]
    fn sparse_attention_reads_a_square_root_and_keeps_all() {
        // 64 blocks of 65,536 tokens: blocks of 32, 2,048 summaries and 2,048 tokens.
        let (dense, sparse) = (asked(None, None, 65_536.0), asked(Some(64.0), None, 65_536.0));
        let s = sparse.sparse.unwrap();
        assert_eq!((s.block_tokens, s.entries), (32.0, 4096.0));
        assert_eq!(dense.memory.kv_bytes_per_token, sparse.memory.kv_bytes_per_token);
        assert_eq!(dense.memory.batch_max, sparse.memory.batch_max);
        let kv = |a: &Answer| a.kv_s / a.batch;
        assert!((kv(&dense) / kv(&sparse) - 16.0).abs() < 1e-9);
        // Four times the context, twice the entries; four times the blocks, twice as many.
        assert_eq!(asked(Some(64.0), None, 262_144.0).sparse.unwrap().entries, 8192.0);
        assert_eq!(asked(Some(256.0), None, 65_536.0).sparse.unwrap().entries, 8192.0);
        // So many blocks are everything.
        assert_eq!(asked(Some(1e6), None, 4096.0).sparse.unwrap().entries, 4096.0);
    }

    #[test]
    fn there_is_as_much_memory_as_in_training() {
        let a = asked(None, None, 8192.0);
        let train = crate::train::Request { model: Some("llama-3.1-8b".into()), ..crate::train::Request::default() };
        let train = crate::train::answer_on(&rackmath_catalog::embedded(), &train, 1).unwrap();
        assert_eq!(a.memory.capacity_bytes, 8.0 * train.capacity_bytes);
    }

    #[test]
    fn a_speed_has_the_largest_batch_and_the_least_price() {
        let a = asked(None, Some(60.0), 8192.0);
        assert!(a.tokens_per_s_user >= 60.0 && a.batch > 1.0);
        let setting = Setting { model: "llama-3.1-70b".into(), on: "8xh100".into(), ..Setting::default() };
        let more =
            Request { setting: setting.clone(), batch: Some(a.batch + 1.0), context: 8192.0, ..Request::default() };
        let more = answer(&rackmath_catalog::embedded(), &more).unwrap();
        assert!(more.tokens_per_s_user < 60.0 && more.cost_usd_per_mtok < a.cost_usd_per_mtok);
        // Faster is dearer, and faster than one sequence alone is nobody.
        assert!(asked(None, Some(120.0), 8192.0).cost_usd_per_mtok > a.cost_usd_per_mtok);
        let none = Request { setting, speed_tok_s: Some(1e6), ..Request::default() };
        let error = answer(&rackmath_catalog::embedded(), &none).unwrap_err();
        assert!(format!("{error:?}").contains("one sequence alone"), "{error:?}");
    }

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
