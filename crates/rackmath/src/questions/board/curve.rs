//! How time and cost change along one axis: batch, context, pass length, chips or precision.

use crate::desk::prelude::*;
use crate::step;
use rackmath_theory::board::Step;

/// What to sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::AsRefStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Over {
    /// Sequences in the batch.
    #[default]
    Batch,
    /// Tokens of context.
    Context,
    /// Tokens per sequence in one pass.
    Pass,
    /// Chips.
    Chips,
    /// Weight formats.
    Precision,
}

/// A sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model and machine.
    pub setting: Setting,
    /// What to sweep.
    #[schemars(extend("x-flag" = "over -o"))]
    pub over: Over,
    /// Where to start.
    pub from: Option<f64>,
    /// Where to end.
    pub to: Option<f64>,
    /// How many points.
    #[schemars(extend("x-most" = [2000, "points of a curve"]))]
    pub points: u64,
    /// Sequences, where they are not swept.
    #[schemars(extend("x-flag" = "batch -b max-num-seqs batch-size", "x-none" = "where compute meets memory"))]
    pub batch: Option<f64>,
    /// Context, where it is not swept.
    #[schemars(extend("x-flag" = "context -c isl max-model-len context-length"))]
    pub context: f64,
    /// Pass length, where it is not swept.
    #[schemars(extend("x-flag" = "pass -p chunk"))]
    pub pass: f64,
    /// Blocks of the context that each token attends to, of the best length: 2 sqrt(n L) entries are read instead of L.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse_blocks: Option<f64>,
}

impl Default for Request {
    fn default() -> Self {
        let step::Request { setting, batch, context, pass, sparse_blocks, .. } = step::Request::default();
        Self { setting, over: Over::Batch, from: None, to: None, points: 200, batch, context, pass, sparse_blocks }
    }
}

/// The sweep's points and pictures.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model's name.
    pub model: String,
    /// The machine's name.
    pub system: String,
    /// What was swept.
    pub over: Over,
    /// One row per point.
    pub rows: Vec<Row>,
    /// Where the binding resource changes.
    pub kinks: Vec<Kink>,
    /// Step time.
    pub time: Figure,
    /// Cost per token, if a price is known.
    pub cost: Option<Figure>,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
}

/// One point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The swept value; for precisions, the bits per weight.
    pub x: f64,
    /// Its name, where it has one.
    pub label: Option<String>,
    /// Time of the step.
    pub time_s: f64,
    /// Time to multiply.
    pub compute_s: f64,
    /// Time to read weights.
    pub weights_s: f64,
    /// Time to read the cache.
    pub kv_s: f64,
    /// Cost of a token.
    pub cost_usd_per_mtok: Option<f64>,
    /// Share of the dense peak in use.
    pub mfu: f64,
    /// Tokens per second of the machine.
    pub tokens_per_s: f64,
    /// What sets the time.
    pub binding: String,
    /// Whether weights and caches fit in memory.
    pub fits: bool,
}

/// Where the binding resource changes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Kink {
    /// At which value.
    pub x: f64,
    /// What happens there.
    pub meaning: Remark,
}

/// What is not swept.
#[derive(Clone, Copy)]
struct Fixed {
    batch: Tokens,
    context: Tokens,
    pass: Tokens,
    /// Blocks of sparse attention.
    blocks: Option<f64>,
}

impl Fixed {
    /// A step; of sparse attention with what it reads, beside the same with all it keeps.
    fn step(&self, r: &Resolved) -> (Step, Step) {
        // Blocks were checked before.
        let read = step::Sparse::read(self.context, self.blocks).unwrap_or(self.context);
        let step = r.board.step(self.batch, read, self.pass);
        (step, Step { context: self.context, ..step })
    }
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    refuse_if(!(2..=100_000).contains(&request.points), "points", request.points, "2 to 100,000")?;
    let (base, over) = (resolve(catalog, &request.setting)?, request.over);
    let (context, pass) = (tokens("context", request.context, 0.0)?, tokens("pass", request.pass, 1.0)?);
    let batch = match request.batch {
        Some(batch) => tokens("batch", batch, 1.0)?,
        None => Tokens::new(base.board.balance_batch(context).map_or(256.0, |b| b.ceil().clamp(1.0, 1e9))),
    };
    step::Sparse::of(context, request.sparse_blocks)?;
    let at = Fixed { batch, context, pass, blocks: request.sparse_blocks };
    let usual = &request.setting;
    let in_format = |dtype: Dtype| {
        let r = resolve(catalog, &Setting { weights: Some(dtype.name().into()), ..usual.clone() })?;
        Ok(Row { label: Some(dtype.name().into()), ..row(&r, at, dtype.bits()) })
    };
    let on_chips = |n: u64| Ok(row(&resolve(catalog, &Setting { chips: Some(n), ..usual.clone() })?, at, n as f64));
    let along = |x: f64| {
        let value = Tokens::new(x);
        let at = match over {
            Over::Batch => Fixed { batch: value, ..at },
            Over::Context => Fixed { context: value, ..at },
            _ => Fixed { pass: value, ..at },
        };
        row(&base, at, x)
    };
    let formats = [Dtype::NvFp4, Dtype::Fp8, Dtype::Bf16];
    let rows: Vec<Row> = match over {
        Over::Precision => formats.into_iter().map(in_format).collect::<Result<_, Error>>()?,
        Over::Chips => chips(request, base.system.n_chips)?.into_iter().map(on_chips).collect::<Result<_, Error>>()?,
        _ => grid(request, &base, at)?.into_iter().map(along).collect(),
    };
    let kinks = kinks(&base, over, at, &rows);
    let (time, cost) = figures(&base, over, at, &rows, &kinks);
    Ok(Answer {
        model: base.model.name.clone(),
        system: base.system.name.clone(),
        over,
        rows,
        kinks,
        time,
        cost: base.priced().then_some(cost),
        assumptions: base.assumptions(),
    })
}

/// The values of the sweep.
fn grid(request: &Request, r: &Resolved, at: Fixed) -> Result<Vec<f64>, Error> {
    let star = r.board.balanced_context().map_or(100_000.0, Tokens::get);
    let kink = r.board.kink_pass(at.batch, at.context).unwrap_or(100.0);
    let (from, to) = match request.over {
        Over::Batch => (1.0, (at.batch.get() * 8.0).clamp(64.0, 1e6)),
        Over::Context => (256.0, (star * 8.0).clamp(65_536.0, 4e6)),
        _ => (1.0, (kink * 8.0).clamp(256.0, 1e5)),
    };
    spaced(request.from.unwrap_or(from), request.to.unwrap_or(to), request.points as usize, 1e12)
}

/// Powers of two between the ends, and the ends.
fn chips(request: &Request, all: u64) -> Result<Vec<u64>, Error> {
    let (from, to) = (request.from.unwrap_or(1.0), request.to.unwrap_or((all as f64).max(64.0)));
    let wrong = !(from >= 1.0 && to >= from && to <= 1e6);
    refuse_if(wrong, "from, to", format!("{from} to {to}"), "chips from 1 to 1,000,000")?;
    let mut counts = vec![from as u64, to as u64];
    counts.extend((0..20).map(|i| 1u64 << i).filter(|n| *n as f64 > from && (*n as f64) < to));
    counts.sort_unstable();
    counts.dedup();
    Ok(counts)
}

fn row(r: &Resolved, at: Fixed, x: f64) -> Row {
    let (step, kept) = at.step(r);
    Row {
        x,
        label: None,
        time_s: step.time.get(),
        compute_s: step.terms.compute.get(),
        weights_s: step.terms.weights.get(),
        kv_s: step.terms.kv.get(),
        cost_usd_per_mtok: r.priced().then(|| step.cost.as_per_mtok()),
        mfu: step.mfu().get(),
        tokens_per_s: step.rate().get(),
        binding: step.binding().name().to_owned(),
        fits: step::memory(r, &kept).fits,
    }
}

fn kinks(r: &Resolved, over: Over, at: Fixed, rows: &[Row]) -> Vec<Kink> {
    // Where sparse attention turns is not worked out.
    let decode = at.pass.get() == 1.0 && at.blocks.is_none();
    let turns = match over {
        Over::Batch if decode => (r.board.balance_batch(at.context), "compute_bound_from_here"),
        Over::Context if decode => (r.board.kink_context(at.batch).map(Tokens::get), "memory_bound_from_here"),
        Over::Pass if at.blocks.is_none() => (r.board.kink_pass(at.batch, at.context), "compute_bound_from_here"),
        _ => (None, ""),
    };
    let memory = step::memory(r, &at.step(r).1);
    let full = match over {
        Over::Batch => memory.batch_max,
        Over::Context => memory.context_max,
        _ => None,
    };
    let within = |x: &f64| rows.first().is_some_and(|f| *x >= f.x) && rows.last().is_some_and(|l| *x <= l.x);
    let all = [turns, (full, "memory_is_full")].into_iter();
    all.filter_map(|(x, meaning)| Some(Kink { x: x.filter(within)?, meaning: says(meaning) })).collect()
}

/// Step time and cost per token.
fn figures(r: &Resolved, over: Over, at: Fixed, rows: &[Row], kinks: &[Kink]) -> (Figure, Figure) {
    let x = match over {
        Over::Batch => Axis::log("batch (sequences)", Unit::Count),
        Over::Context => Axis::log("context (tokens)", Unit::Count),
        Over::Pass => Axis::log("pass length (tokens per sequence)", Unit::Count),
        Over::Chips => Axis::log("chips", Unit::Count),
        Over::Precision => Axis::linear("bits per weight", Unit::Number),
    };
    let (batch, context, pass) = (at.batch.get(), at.context.get(), at.pass.get());
    let fixed =
        [("batch_of", Over::Batch, batch), ("context_of", Over::Context, context), ("pass_of", Over::Pass, pass)];
    let fixed = fixed.into_iter().filter(|(_, of, value)| *of != over && (*of != Over::Pass || *value > 1.0));
    let fixed: Vec<Remark> = fixed.map(|(id, _, value)| says(id).with("value", value)).collect();
    let line = |name: &str, role: Role, y: &dyn Fn(&Row) -> f64| {
        Series::new(name, role, rows.iter().map(|r| (r.x, y(r))).filter(|(_, y)| *y > 0.0))
    };
    let figure =
        |(title, name), subtitle: Remark, y: Axis, whole: &dyn Fn(&Row) -> f64, of: &dyn Fn(&Row, f64) -> f64| {
            let series = [
                line("read weights", Role::Weights, &|r| of(r, r.weights_s)),
                line("read KV cache", Role::Kv, &|r| of(r, r.kv_s)),
                line("multiply", Role::Compute, &|r| of(r, r.compute_s)),
                line(name, Role::Envelope, whole),
            ];
            let series = series.into_iter().filter(|s| !s.points.is_empty());
            let subtitle = subtitle.with("fixed", fixed.clone());
            Figure::of(r.titled(title), subtitle, (x.clone(), y), series).marked(marks(kinks, rows, whole))
        };
    let formats = r.in_formats("curve_in_formats");
    let y = Axis::log("time of one step", Unit::Seconds);
    let time = figure(("step_time_of", "step time"), formats, y, &|r| r.time_s, &|_, seconds| seconds);
    let cost = |r: &Row| r.cost_usd_per_mtok.unwrap_or(0.0);
    // What each resource alone would cost: its share of the step's time.
    let part = |r: &Row, seconds: f64| cost(r) * seconds / r.time_s;
    let price = says("curve_at_price").with("price", r.chip_price).with("source", r.price_source.short());
    let y = Axis::log("dollars per million tokens", Unit::UsdPerMtok);
    let mut cost = figure(("token_cost_of", "cost per token"), price, y, &cost, &part);
    if over == Over::Batch {
        let floor = r.board.cost_floor(at.context, at.pass).as_per_mtok();
        cost.series.insert(0, line("floor: endless batch", Role::Floor, &|_| floor));
    }
    (time, cost)
}

/// The envelope's height at a kink, between the two nearest rows.
fn marks(kinks: &[Kink], rows: &[Row], y: &dyn Fn(&Row) -> f64) -> Vec<Mark> {
    let mark = |kink: &Kink| {
        let after = rows.iter().position(|r| r.x >= kink.x)?;
        let (a, b) = (&rows[after.saturating_sub(1)], &rows[after]);
        let share = if b.x > a.x { (kink.x - a.x) / (b.x - a.x) } else { 0.0 };
        let height = y(a) + (y(b) - y(a)) * share;
        let label = says("kink").with("meaning", &kink.meaning).with("at", kink.x);
        Some(Mark { x: kink.x, y: height, label })
    };
    kinks.iter().filter_map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_full_where_a_step_says_however_many_points_are_drawn() {
        let catalog = rackmath_catalog::embedded();
        let setting = Setting { model: "llama-3.1-8b".into(), on: "hgx-h200".into(), ..Setting::default() };
        let one = step::Request { setting: setting.clone(), batch: Some(64.0), ..step::Request::default() };
        let memory = step::answer(&catalog, &one).unwrap().memory;
        for (over, full) in [(Over::Batch, memory.batch_max), (Over::Context, memory.context_max)] {
            for points in [2, 50, 200] {
                let (from, to) = (Some(1.0), Some(1e9));
                let batch = one.batch;
                let request = Request { setting: setting.clone(), over, points, from, to, batch, ..Request::default() };
                let kinks = answer(&catalog, &request).unwrap().kinks;
                let found = kinks.iter().find(|k| k.meaning == says("memory_is_full")).map(|k| k.x);
                assert_eq!(found, full, "{over:?} of {points} points");
            }
        }
    }
}
