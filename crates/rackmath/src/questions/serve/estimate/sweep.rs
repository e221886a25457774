//! The curve of a deployment: what one user gets against what a chip yields, over the number of requests in flight.

use super::met::Met;
use super::work::{Ask, Case};
use crate::desk::cut;
use crate::desk::prelude::*;
use rackmath_spec::engine::Engine;
use rackmath_theory::deployment::Deployment;
use rackmath_theory::pools::{Loading, Outcome, Serving};

/// A sweep over concurrency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// The deployment and its requests; its load is swept.
    pub estimate: super::Request,
    /// Fewest requests in flight.
    pub from: f64,
    /// Most.
    pub to: f64,
    /// Points, spaced by equal factors.
    #[schemars(extend("x-most" = [200, "estimates of a sweep"]))]
    pub points: u64,
}

impl Default for Request {
    fn default() -> Self {
        Self { estimate: super::Request::default(), from: 1.0, to: 1024.0, points: 41 }
    }
}

/// The sweep.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model's name.
    pub model: String,
    /// The machine's name.
    pub system: String,
    /// The engine's name.
    pub engine: String,
    /// The layout in short.
    pub layout: String,
    /// One row per point.
    pub rows: Vec<Row>,
    /// Tokens per second of a user against those of a chip.
    pub figure: Figure,
    /// What tokens guessed ahead do, where any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speculation: Option<super::Speculated>,
    /// What stands in the way, if anything does.
    pub problem: Option<super::Problem>,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
}

/// One point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// Requests in flight.
    pub concurrency: f64,
    /// Output tokens per second of a user.
    pub output_tok_s_per_user: f64,
    /// Output tokens per second and chip.
    pub output_tok_s_per_chip: f64,
    /// Time per output token.
    pub tpot_ms: f64,
    /// Time to the first token, waiting included.
    pub ttft_ms: f64,
    /// From arrival to the last token.
    pub e2e_ms: f64,
    /// Requests per second.
    pub requests_per_s: f64,
    /// The roofline as a share of the mean step.
    pub of_limit: f64,
    /// Dollars per million output tokens.
    pub usd_per_mtok_output: Option<f64>,
    /// What limits most of the step.
    pub binding: String,
    /// Requests that wait for memory.
    pub waiting: f64,
}

/// Answers while it is wanted.
pub fn answer_on(catalog: &Catalog, request: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let Effort { cancel, .. } = effort.into();
    refuse_if(!(2..=10_000).contains(&request.points), "points", request.points, "2 to 10,000")?;
    let grid = spaced(request.from, request.to, request.points as usize, 1e7)?;
    let mut grid: Vec<f64> = grid.into_iter().map(f64::round).collect();
    grid.dedup();
    let expected = "none along a curve, which shows every concurrency";
    let given = request.estimate.seek.solve.map_or("users", Into::into);
    refuse_if(request.estimate.seek != super::Seek::default(), "solve", given, expected)?;
    let mut estimate =
        super::Request { concurrency: None, rate_per_s: None, max_load: false, ..request.estimate.clone() };
    // Along a curve only means are worked out.
    for (field, limit) in
        [("ttft_ms", &mut estimate.ttft_ms), ("tpot_ms", &mut estimate.tpot_ms), ("e2e_ms", &mut estimate.e2e_ms)]
    {
        if let Some(given) = limit.filter(|l| l.percentile.is_some()) {
            return Err(Error::value(
                field,
                given,
                "a mean, such as 30ms: along a curve percentiles are not simulated",
            ));
        }
    }
    let mut said = Vec::new();
    if let Some((asked, remarks)) = super::flags::obeyed(catalog, &estimate)? {
        (estimate, said) = (asked, remarks);
    }
    let case = Case::new(catalog, &estimate)?;
    let serving = case.ready(&case.ask)?;
    let first = serving.under(&case.ask.requests, Loading::Concurrency(request.from));
    let page = super::words::answer(&case, &serving, &first, &Met::Unasked, None);
    let run = |ask: &Ask, p: &Serving| {
        let one = |c: &f64| cancel.check().map(|()| row(ask, *c, &p.under(&ask.requests, Loading::Concurrency(*c))));
        grid.iter().filter(|_| page.served.is_some()).map(one).collect::<Result<Vec<Row>, _>>()
    };
    let rows = run(&case.ask, &serving)?;
    let ideal = std::sync::Arc::unwrap_or_clone(catalog.engine("ideal")?.0);
    let engine = Engine { schedule: case.ask.on.engine.schedule.clone(), ..ideal };
    let limit = Ask { on: Deployment { engine: engine.into(), ..case.ask.on.clone() }, ..case.ask.clone() };
    let roof = run(&limit, &case.ready(&limit)?)?;
    let speculation =
        case.speculated(&serving, &first, Loading::Concurrency(request.from))?.filter(|_| page.served.is_some());
    let mut figure = figure(&page, &rows, &roof);
    if let (Some(guess), Some(said)) = (&case.guess, &speculation) {
        // The same without guesses, and where both meet.
        let plain = case.unguessed(guess);
        let bare = case.ready_like(&plain, Some(&serving))?;
        figure.series.push(line(says("without_drafts"), Role::Kv, &run(&plain, &bare)?));
        if let Some(c) = said.loses_from.map(|c| c as f64) {
            let at = row(&case.ask, c, &serving.under(&case.ask.requests, Loading::Concurrency(c)));
            let label = says("drafts_lose_from").with("requests", c);
            figure.marks.push(Mark::at(at.output_tok_s_per_user, at.output_tok_s_per_chip, label));
        }
    }
    Ok(Answer {
        model: page.model,
        system: page.system,
        engine: page.engine,
        layout: cut::words(&case.found.model, &case.ask.on.layout),
        rows,
        figure,
        speculation,
        problem: page.problem,
        assumptions: said.into_iter().chain(page.pretended).chain(page.assumptions).collect(),
    })
}

fn row(ask: &Ask, concurrency: f64, o: &Outcome) -> Row {
    let s = &o.steady;
    let step = s.step().get();
    let ideal = s.decode.ideal().get() * (1.0 - s.prompt_share) + s.mixed.ideal().get() * s.prompt_share;
    let main = if s.prompt_share > 0.5 { &s.mixed } else { &s.decode };
    Row {
        concurrency,
        output_tok_s_per_user: 1.0 / o.tpot(),
        output_tok_s_per_chip: o.output_per_chip(&ask.requests),
        tpot_ms: o.tpot() * 1e3,
        ttft_ms: (o.ttft + o.queue) * 1e3,
        e2e_ms: o.e2e(&ask.requests) * 1e3,
        requests_per_s: o.rate,
        of_limit: (ideal / step).min(1.0),
        usd_per_mtok_output: o.usd_per_mtok(&ask.requests, ask.price).map(|u| u.0),
        binding: main.binding().name().into(),
        waiting: s.waiting * o.groups,
    }
}

/// The points of a line from slow users to fast ones; where memory is full points fall together and one is kept.
fn line(name: impl Into<Remark>, role: Role, rows: &[Row]) -> Series {
    let mut points: Vec<(f64, f64)> = rows.iter().map(|r| (r.output_tok_s_per_user, r.output_tok_s_per_chip)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
    points.dedup_by(|b, a| b.0 <= a.0 * (1.0 + 1e-9));
    Series { name: name.into(), role, points }
}

fn figure(page: &super::Answer, rows: &[Row], roof: &[Row]) -> Figure {
    let mut marks: Vec<Mark> = Vec::new();
    for wanted in [1.0, 16.0, 64.0, 256.0, 1024.0] {
        if let Some(r) = rows.iter().find(|r| r.concurrency >= wanted).filter(|r| r.waiting <= 0.0) {
            let label = says("concurrency_of").with("requests", r.concurrency);
            if marks.iter().all(|m| m.label != label) {
                marks.push(Mark::at(r.output_tok_s_per_user, r.output_tok_s_per_chip, label));
            }
        }
    }
    let super::Answer { model, system, engine, layout, weights, kv, .. } = page;
    let series = [line("roofline of the same passes", Role::Floor, roof), line("estimate", Role::Envelope, rows)];
    let title = says("sweep_title").with("model", model).with("system", system).with("engine", engine);
    let lengths = says("sweep_conditions").with("layout", layout).with("isl", page.isl).with("osl", page.osl);
    let (subtitle, axes) = (lengths.with("weights", weights).with("kv", kv), crate::frontier::users_and(false));
    Figure::of(title, subtitle, axes, series.into_iter().filter(|s| !s.points.is_empty())).marked(marks)
}
