//! How time and cost change along one axis: batch, context, pass length, chips or precision.

use crate::figure::{Axis, Figure, Mark, Role, Series, Unit, count};
use crate::setting::{Resolved, Setting, resolve, tokens};
use crate::{Error, step};
use rackmath_spec::{Catalog, Dtype};
use rackmath_theory::board::{Balance, Step};
use rackmath_units::{Tokens, float};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
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

impl Over {
    /// Every axis.
    pub const ALL: [Self; 5] = [Self::Batch, Self::Context, Self::Pass, Self::Chips, Self::Precision];

    /// The word used in flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Context => "context",
            Self::Pass => "pass",
            Self::Chips => "chips",
            Self::Precision => "precision",
        }
    }
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
    pub points: usize,
    /// Sequences, where they are not swept.
    #[schemars(extend("x-flag" = "batch -b max-num-seqs batch-size", "x-none" = "where compute meets memory"))]
    pub batch: Option<f64>,
    /// Context, where it is not swept.
    #[schemars(extend("x-flag" = "context -c isl max-model-len context-length"))]
    pub context: f64,
    /// Pass length, where it is not swept.
    #[schemars(extend("x-flag" = "pass -p chunk"))]
    pub pass: f64,
}

impl Default for Request {
    fn default() -> Self {
        let s = step::Request::default();
        Self {
            setting: s.setting,
            over: Over::Batch,
            from: None,
            to: None,
            points: 200,
            batch: None,
            context: s.context,
            pass: s.pass,
        }
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
    pub assumptions: Vec<String>,
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
    pub meaning: String,
}

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    if !(2..=100_000).contains(&request.points) {
        return Err(Error::value("points", request.points, "2 to 100,000"));
    }
    let base = resolve(catalog, &request.setting)?;
    let context = tokens("context", request.context, 0.0)?;
    let pass = tokens("pass", request.pass, 1.0)?;
    let batch = match request.batch {
        Some(batch) => tokens("batch", batch, 1.0)?,
        None => balance(&base, context),
    };
    let points = match request.over {
        Over::Precision => precisions(catalog, request, batch, context, pass)?,
        Over::Chips => chips(catalog, request, &base, batch, context, pass)?,
        over => swept(request, &base, over, batch, context, pass)?,
    };
    let rows: Vec<Row> = points.iter().map(|p| row(&base, p)).collect();
    let kinks = kinks(&base, request.over, batch, context, pass, &rows);
    let fixed = fixed_words(request.over, batch, context, pass);
    let x = axis(request.over);
    let time = time_figure(&base, &rows, &kinks, &x, &fixed);
    let cost = base.priced().then(|| cost_figure(&base, &rows, &kinks, &x, &fixed, request.over, context));
    Ok(Answer {
        model: base.model.name.clone(),
        system: base.system.name.clone(),
        over: request.over,
        rows,
        kinks,
        time,
        cost,
        assumptions: base.assumptions(),
    })
}

/// A point with its setting.
struct Point {
    x: f64,
    label: Option<String>,
    step: Step,
    fits: bool,
}

fn balance(r: &Resolved, context: Tokens) -> Tokens {
    match r.board.balance_batch(context) {
        Balance::At(batch) => Tokens::new(batch.ceil().clamp(1.0, 1e9)),
        Balance::NeverComputeBound => Tokens::new(256.0),
    }
}

fn fits(r: &Resolved, at: &Step) -> bool {
    let kv = r.cache.stored(step::kept(at)) * at.batch.get();
    r.weight_bytes() + kv <= r.system.capacity()
}

fn swept(
    request: &Request,
    r: &Resolved,
    over: Over,
    batch: Tokens,
    context: Tokens,
    pass: Tokens,
) -> Result<Vec<Point>, Error> {
    let star = r.board.balanced_context().map_or(100_000.0, Tokens::get);
    let kink = r.board.kink_pass(batch, context).unwrap_or(100.0);
    let (from, to) = match over {
        Over::Batch => (1.0, (batch.get() * 8.0).clamp(64.0, 1e6)),
        Over::Context => (256.0, (star * 8.0).clamp(65_536.0, 4e6)),
        _ => (1.0, (kink * 8.0).clamp(256.0, 1e5)),
    };
    let xs = grid(request, from, to)?;
    Ok(xs
        .into_iter()
        .map(|x| {
            let value = Tokens::new(x);
            let step = match over {
                Over::Batch => r.board.step(value, context, pass),
                Over::Context => r.board.step(batch, value, pass),
                _ => r.board.step(batch, context, value),
            };
            Point { x, label: None, fits: fits(r, &step), step }
        })
        .collect())
}

/// Values spaced by equal factors, ends included.
fn grid(request: &Request, from: f64, to: f64) -> Result<Vec<f64>, Error> {
    let (from, to) = (request.from.unwrap_or(from), request.to.unwrap_or(to));
    if !(from >= 1.0 && to.is_finite() && to > from && to <= 1e12) {
        return Err(Error::value(
            "from, to",
            format!("{from} to {to}"),
            "a rising range from at least 1 to at most 1e12",
        ));
    }
    let n = request.points;
    let ratio = float::ln(to / from);
    Ok((0..n)
        .map(|i| match i {
            0 => from,
            i if i == n - 1 => to,
            i => from * float::exp(ratio * i as f64 / (n - 1) as f64),
        })
        .collect())
}

fn chips(
    catalog: &Catalog,
    request: &Request,
    base: &Resolved,
    batch: Tokens,
    context: Tokens,
    pass: Tokens,
) -> Result<Vec<Point>, Error> {
    let (from, to) = (request.from.unwrap_or(1.0), request.to.unwrap_or((base.system.n_chips as f64).max(64.0)));
    if !(from >= 1.0 && to >= from && to <= 1e6) {
        return Err(Error::value("from, to", format!("{from} to {to}"), "chips from 1 to 1,000,000"));
    }
    // Powers of two between the ends, and the ends.
    let mut counts = vec![from as u64, to as u64];
    counts.extend((0..20).map(|i| 1u64 << i).filter(|n| *n as f64 > from && (*n as f64) < to));
    counts.sort_unstable();
    counts.dedup();
    counts
        .into_iter()
        .map(|n| {
            let r = resolve(catalog, &Setting { chips: Some(n), ..request.setting.clone() })?;
            let step = r.board.step(batch, context, pass);
            Ok(Point { x: n as f64, label: None, fits: fits(&r, &step), step })
        })
        .collect()
}

fn precisions(
    catalog: &Catalog,
    request: &Request,
    batch: Tokens,
    context: Tokens,
    pass: Tokens,
) -> Result<Vec<Point>, Error> {
    [Dtype::NvFp4, Dtype::Fp8, Dtype::Bf16]
        .into_iter()
        .map(|dtype| {
            let setting = Setting { weights: Some(dtype.name().into()), ..request.setting.clone() };
            let r = resolve(catalog, &setting)?;
            let step = r.board.step(batch, context, pass);
            Ok(Point { x: dtype.bits(), label: Some(dtype.name().into()), fits: fits(&r, &step), step })
        })
        .collect()
}

fn row(r: &Resolved, p: &Point) -> Row {
    Row {
        x: p.x,
        label: p.label.clone(),
        time_s: p.step.time.get(),
        compute_s: p.step.terms.compute.get(),
        weights_s: p.step.terms.weights.get(),
        kv_s: p.step.terms.kv.get(),
        cost_usd_per_mtok: r.priced().then(|| p.step.cost.as_per_mtok()),
        mfu: p.step.mfu().get(),
        tokens_per_s: p.step.rate().get(),
        binding: p.step.binding().name().to_owned(),
        fits: p.fits,
    }
}

fn kinks(r: &Resolved, over: Over, batch: Tokens, context: Tokens, pass: Tokens, rows: &[Row]) -> Vec<Kink> {
    let within = |x: f64| rows.first().is_some_and(|f| x >= f.x) && rows.last().is_some_and(|l| x <= l.x);
    let mut all = Vec::new();
    let mut add = |x: Option<f64>, meaning: &str| {
        if let Some(x) = x.filter(|x| within(*x)) {
            all.push(Kink { x, meaning: meaning.to_owned() });
        }
    };
    match over {
        Over::Batch if pass.get() == 1.0 => {
            let at = match r.board.balance_batch(context) {
                Balance::At(b) => Some(b),
                Balance::NeverComputeBound => None,
            };
            add(at, "compute-bound from here");
        }
        Over::Context if pass.get() == 1.0 => {
            add(r.board.kink_context(batch).map(Tokens::get), "memory-bound from here");
        }
        Over::Pass => add(r.board.kink_pass(batch, context), "compute-bound from here"),
        _ => {}
    }
    if let Some(last) = rows.iter().rposition(|row| row.fits).filter(|i| i + 1 < rows.len())
        && matches!(over, Over::Batch | Over::Context)
    {
        add(Some(rows[last].x), "memory is full");
    }
    all
}

fn axis(over: Over) -> Axis {
    match over {
        Over::Batch => Axis::log("batch (sequences)", Unit::Count),
        Over::Context => Axis::log("context (tokens)", Unit::Count),
        Over::Pass => Axis::log("pass length (tokens per sequence)", Unit::Count),
        Over::Chips => Axis::log("chips", Unit::Count),
        Over::Precision => Axis::linear("bits per weight", Unit::Number),
    }
}

fn fixed_words(over: Over, batch: Tokens, context: Tokens, pass: Tokens) -> String {
    let mut parts = Vec::new();
    if over != Over::Batch {
        parts.push(format!("batch {}", count(batch.get())));
    }
    if over != Over::Context {
        parts.push(format!("context {}", count(context.get())));
    }
    if over != Over::Pass && pass.get() > 1.0 {
        parts.push(format!("pass {}", count(pass.get())));
    }
    parts.join(", ")
}

fn line(name: &str, role: Role, rows: &[Row], y: impl Fn(&Row) -> f64) -> Series {
    let points = rows.iter().map(|r| (r.x, y(r))).filter(|(_, y)| *y > 0.0).collect();
    Series { name: name.to_owned(), role, points }
}

/// The envelope's height at a kink, between the two nearest rows.
fn marks(kinks: &[Kink], rows: &[Row], unit: Unit, y: impl Fn(&Row) -> f64) -> Vec<Mark> {
    kinks
        .iter()
        .filter_map(|kink| {
            let after = rows.iter().position(|r| r.x >= kink.x)?;
            let (a, b) = (&rows[after.saturating_sub(1)], &rows[after]);
            let share = if b.x > a.x { (kink.x - a.x) / (b.x - a.x) } else { 0.0 };
            let height = y(a) + (y(b) - y(a)) * share;
            Some(Mark { x: kink.x, y: height, label: format!("{} ({})", kink.meaning, unit.show(kink.x)) })
        })
        .collect()
}

fn time_figure(r: &Resolved, rows: &[Row], kinks: &[Kink], x: &Axis, fixed: &str) -> Figure {
    let mut series = vec![
        line("read weights", Role::Weights, rows, |r| r.weights_s),
        line("read KV cache", Role::Kv, rows, |r| r.kv_s),
        line("multiply", Role::Compute, rows, |r| r.compute_s),
        line("step time", Role::Envelope, rows, |r| r.time_s),
    ];
    series.retain(|s| !s.points.is_empty());
    Figure {
        title: format!("Step time: {} on {}", r.model.name, r.system.name),
        subtitle: format!("{fixed}; weights {}, KV {}", r.format_words(), r.kv_words()),
        x: x.clone(),
        y: Axis::log("time of one step", Unit::Seconds),
        series,
        marks: marks(kinks, rows, x.unit, |r| r.time_s),
    }
}

fn cost_figure(
    r: &Resolved,
    rows: &[Row],
    kinks: &[Kink],
    x: &Axis,
    fixed: &str,
    over: Over,
    context: Tokens,
) -> Figure {
    let cost = |r: &Row| r.cost_usd_per_mtok.unwrap_or(0.0);
    // What each resource alone would cost: its share of the step's time.
    let part = |term: fn(&Row) -> f64| move |r: &Row| cost(r) * term(r) / r.time_s;
    let mut series = vec![
        line("read weights", Role::Weights, rows, part(|r| r.weights_s)),
        line("read KV cache", Role::Kv, rows, part(|r| r.kv_s)),
        line("multiply", Role::Compute, rows, part(|r| r.compute_s)),
        line("cost per token", Role::Envelope, rows, cost),
    ];
    series.retain(|s| !s.points.is_empty());
    if over == Over::Batch {
        let floor = r.board.cost_floor(context).as_per_mtok();
        series.insert(0, line("floor: endless batch", Role::Floor, rows, |_| floor));
    }
    Figure {
        title: format!("Cost per token: {} on {}", r.model.name, r.system.name),
        subtitle: format!("{fixed}; {} per chip, {}", r.chip_price, r.price_source.short()),
        x: x.clone(),
        y: Axis::log("dollars per million tokens", Unit::UsdPerMtok),
        series,
        marks: marks(kinks, rows, x.unit, cost),
    }
}
