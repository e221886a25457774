//! From which batch or context on does a chosen thing bind a decode step?
//!
//! $$ x^* = \min\{x : \arg\max_l t_l(x) = l^*\} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | x | over | sequences or tokens | the batch over all groups, or the context of each sequence |
//! | t_l | `Cost::limited` | s | the part of a step that is limited by l: arithmetic, memory, latency, links, the host |
//! | l* | what | - | the thing that was chosen |
//!
//! The step timer of the engine is asked along a grid of eight points per doubling; where two neighbours are bound by
//! different things the change is found to the whole sequence or token by halving. Ignores: a regime that begins and ends
//! between two points of the grid.

use crate::desk::cut;
use crate::desk::prelude::*;
use crate::estimate::work::Case;
use crate::layout::DegreesRequest;
use crate::{estimate, setting, support};
use rackmath_theory::deployment::Deployment;
use rackmath_theory::roofline::Binding;
use rackmath_theory::steady::Requests;
pub use rackmath_theory::timer::Limit as Bound;
use rackmath_theory::timer::{StepTimer, Work};

/// A model on a machine under an engine, and what is looked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model and machine. Arithmetic, counting and overlap follow from the engine, and nothing is paid for.
    #[schemars(extend("x-inner" = {
        "math": { "x-flag": false }, "counting": { "x-flag": false }, "overlap": { "x-flag": false },
        "price_usd_per_chip_hour": { "x-flag": false }, "basis": { "x-flag": false }
    }))]
    pub setting: Setting,
    /// Degrees; a sensible layout is chosen for what is not given.
    pub degrees: DegreesRequest,
    /// The engine, with a version where it matters; `ideal` is the roofline.
    #[educe(Default = "vllm")]
    pub engine: String,
    /// What is to bind.
    #[educe(Default = Bound::Compute)]
    pub what: Bound,
    /// What grows.
    #[educe(Default = Over::Batch)]
    pub over: Over,
    /// Sequences decoded together, where the context grows.
    #[schemars(extend("x-flag" = "batch -b"))]
    #[educe(Default = 64.0)]
    pub batch: f64,
    /// Tokens of context of each sequence, where the batch grows.
    #[schemars(extend("x-flag" = "context -c"))]
    #[educe(Default = 4096.0)]
    pub context: f64,
    /// Computes what the engine, the chip or the model's context do not allow, and says that it does not exist.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pretend: bool,
}

/// What grows along the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// Sequences decoded together.
    Batch,
    /// Tokens of context of each.
    Context,
}

/// Where what binds.
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
    /// What was looked for.
    pub what: Bound,
    /// What grows.
    pub over: Over,
    /// Sequences, where the context grows; else tokens of context.
    pub fixed: f64,
    /// The first point at which it binds; nothing where it never does.
    pub from: Option<f64>,
    /// Says what binds there by the data sheet alone, where that is something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sheet: Option<Remark>,
    /// The largest point that memory allows; below 1 nothing fits.
    pub most: f64,
    /// What binds along the way, in order.
    pub regimes: Vec<Regime>,
    /// Why nothing is computed, and what would do; or that what is computed does not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Remark>,
    /// What the engine runs otherwise there, and what is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supported: Vec<Remark>,
}

/// A stretch bound by one thing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Regime {
    /// What binds.
    pub binds: Bound,
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// The step where it begins.
    pub from_ms: f64,
    /// The step where it ends.
    pub to_ms: f64,
}

/// Points of the grid for each doubling.
const PER_DOUBLING: f64 = 8.0;

/// Answers.
pub fn answer(catalog: &Catalog, request: &Request) -> Result<Answer, Error> {
    let context = setting::tokens("context", request.context, 1.0)?.get();
    let batch = setting::tokens("batch", request.batch, 1.0)?.get();
    let (paid, none) = (&request.setting, "none: no dollars are worked out here");
    let paid = paid.price_usd_per_chip_hour.is_some() || paid.basis.is_some();
    refuse_if(paid, "setting.price_usd_per_chip_hour", "a price", none)?;
    let Request { setting, degrees, engine, .. } = request.clone();
    // Whether the model has positions for the context is asked with the rest.
    let isl = if request.over == Over::Batch { (context - 2.0).max(1.0) } else { 1.0 };
    let asked = estimate::Request { setting, degrees, engine, isl, osl: 2.0, ..estimate::Request::default() };
    let case = Case::new(catalog, &asked)?;
    let barred = case.standing.bars(request.pretend);
    let refusal = case.standing.refusal.iter();
    let refused = if barred {
        let would = |r: &support::Refusal| r.nearest.as_ref().map(|what| says("would_do").with("what", what));
        refusal.clone().map(|r| says("not_placed").with("why", &r.why)).chain(refusal.filter_map(would)).collect()
    } else {
        case.standing.pretended(request.pretend).into_iter().collect()
    };
    let ready = case.ready(&case.ask)?.main;
    let on = &ready.deployment;
    let groups = on.groups();
    let room = |context: f64| (ready.room(&Requests::of(context, 2.0)) * groups).floor();
    let (fixed, most) = match request.over {
        Over::Batch => (context, room(context).min(MOST_BATCH)),
        Over::Context => {
            let own = on.model.shape().and_then(|s| s.context_max).filter(|_| !request.pretend);
            let longest = own.map_or(MOST_CONTEXT, |most| (most as f64).min(MOST_CONTEXT));
            (batch, last(1.0, longest, |context| room(context) >= batch))
        }
    };
    let most = if barred { 0.0 } else { most };
    let cost = |x: f64| {
        let (batch, context) = if request.over == Over::Batch { (x, context) } else { (batch, x) };
        let Ok(cost) = ready.pass.time(&Work::decode(batch / groups, context));
        cost
    };
    let binds = |x: f64| cost(x).binding();
    let ms = |x: f64| cost(x).time().as_ms();
    let mut regimes: Vec<Regime> = Vec::new();
    let mut from = 1.0;
    for x in grid(most) {
        // Several changes may lie between two points: the first is found, then the next.
        while binds(x) != binds(from) || x == most {
            let now = binds(from);
            let to = last(from, x, |y| binds(y) == now);
            regimes.push(Regime { binds: now, from, to, from_ms: ms(from), to_ms: ms(to) });
            from = to + 1.0;
            if from > x {
                break;
            }
        }
    }
    let from = regimes.iter().find(|r| r.binds == request.what).map(|r| r.from);
    let at = from.unwrap_or(most);
    let (batch, context) = if request.over == Over::Batch { (at, context) } else { (batch, at) };
    let sheet = sheet(catalog, request, from.is_some(), (batch, context)).filter(|_| !regimes.is_empty());
    Ok(Answer {
        model: on.model.name.clone(),
        system: on.system.name.clone(),
        engine: on.engine.name.clone(),
        sheet,
        layout: cut::words(&on.model, &on.layout),
        what: request.what,
        over: request.over,
        fixed,
        from,
        most,
        regimes,
        refused,
        supported: on_part(on).into_iter().chain(case.standing.remarks.clone()).collect(),
    })
}

/// That the layout leaves chips of the machine alone.
fn on_part(on: &Deployment) -> Option<Remark> {
    let (used, chips) = (on.layout.chips(), on.system.n_chips);
    (used < chips).then(|| says("when_on_part").with("used", used).with("chips", chips))
}

/// What the data sheet has bind at a point, where the engine's kernels have arithmetic or memory bind there and it does not,
/// or the other way round.
fn sheet(catalog: &Catalog, request: &Request, binds: bool, (batch, context): (f64, f64)) -> Option<Remark> {
    let board = setting::resolve(catalog, &request.setting).ok()?.board;
    let step = board.step(Tokens::new(batch.max(1.0)), Tokens::new(context), Tokens::new(1.0));
    let compute = step.binding() == Binding::Compute;
    let asked = match request.what {
        Bound::Compute => compute,
        Bound::Memory => !compute,
        _ => return None,
    };
    let says = if compute { says("sheet_has_arithmetic") } else { says("sheet_has_memory") };
    (asked != binds).then(|| says.with("batch", batch).with("context", context))
}

/// Where the search ends, whatever memory holds.
const MOST_BATCH: f64 = 1_048_576.0;
const MOST_CONTEXT: f64 = 16_777_216.0;

/// Whole numbers up to `most`, eight for each doubling, `most` included.
fn grid(most: f64) -> impl Iterator<Item = f64> {
    let steps = (float::ln(most.max(1.0)) / float::ln(2.0) * PER_DOUBLING).ceil();
    let inner = (0..steps as u32).map(|i| float::pow(2.0, f64::from(i) / PER_DOUBLING).floor());
    inner.filter(move |x| *x < most).chain((most >= 1.0).then_some(most))
}

/// The last whole number in a row from `from` to `to` for which something holds; one below `from` where it never does.
fn last(from: f64, to: f64, holds: impl Fn(f64) -> bool) -> f64 {
    if holds(to) {
        return to;
    }
    let (mut yes, mut no) = (from - 1.0, to);
    while no - yes > 1.0 {
        let middle = f64::midpoint(yes, no).floor();
        if holds(middle) { yes = middle } else { no = middle }
    }
    yes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_h100(model: &str) -> Setting {
        Setting { model: model.into(), on: "h100".into(), ..Setting::default() }
    }

    fn asked(engine: &str, what: Bound, over: Over) -> Answer {
        let (setting, engine) = (on_h100("llama-3.1-8b"), engine.into());
        let request = Request { setting, engine, what, over, context: 128.0, ..Request::default() };
        answer(&rackmath_catalog::embedded(), &request).expect("answered")
    }

    #[test]
    fn a_layout_of_a_part_of_the_machine_is_said_to_be_one() {
        let parted = |degrees: DegreesRequest| {
            let setting = Setting { model: "deepseek-v3".into(), on: "16xh200".into(), ..Setting::default() };
            let request = Request { setting, degrees, ..Request::default() };
            let found = answer(&rackmath_catalog::embedded(), &request).expect("answered");
            found.supported.iter().any(|said| said.says == "when_on_part")
        };
        let all = DegreesRequest { dp: Some(16), ep: Some(16), ..DegreesRequest::default() };
        assert!(parted(DegreesRequest::default()) && !parted(all));
    }

    #[test]
    fn the_roofline_turns_where_the_board_says() {
        // 989 TFLOP/s over 3.35 TB/s at two bytes a parameter: 295 FLOP a byte, so about 300 sequences of short context.
        let found = asked("ideal", Bound::Compute, Over::Batch);
        let from = found.from.expect("a chip runs out of arithmetic");
        let catalog = rackmath_catalog::embedded();
        let board = setting::resolve(&catalog, &on_h100("llama-3.1-8b")).expect("resolved").board;
        let step = |b: f64| board.step(Tokens::new(b), Tokens::new(128.0), Tokens::new(1.0));
        let bound = |b: f64| step(b).terms.compute >= step(b).terms.weights + step(b).terms.kv;
        // The passes of the ideal engine agree with the board within 2 %.
        assert!(bound((from * 1.03).ceil()) && !bound((from * 0.97).floor()), "{from}");
    }

    #[test]
    fn regimes_follow_one_another_and_cover_everything() {
        for engine in ["ideal", "vllm", "sglang", "trtllm"] {
            for over in [Over::Batch, Over::Context] {
                let a = asked(engine, Bound::Memory, over);
                assert_eq!(a.regimes.first().map(|r| r.from), Some(1.0));
                assert_eq!(a.regimes.last().map(|r| r.to), Some(a.most));
                for two in a.regimes.windows(2) {
                    assert!(two[0].to + 1.0 == two[1].from && two[0].binds != two[1].binds, "{engine}: {two:?}");
                }
            }
        }
    }

    #[test]
    fn where_the_data_sheet_has_something_else_bind_it_is_said() {
        // By the sheet a cache of 1.34 GB takes 31.7 us to read on eight MI300X, its token 14.3 us to compute: memory at any batch.
        let catalog = rackmath_catalog::embedded();
        let setting = Setting { model: "llama-3.1-70b".into(), on: "8xmi300x".into(), ..Setting::default() };
        let degrees = DegreesRequest { tp: Some(8), ..DegreesRequest::default() };
        let request = Request { setting, degrees, ..Request::default() };
        let a = answer(&catalog, &request).expect("answered");
        let from = a.from.expect("arithmetic binds");
        let sheet = a.sheet.expect("the sheet has memory bind");
        assert_eq!((sheet.says.as_ref(), sheet.with.get("batch")), ("sheet_has_memory", Some(&from.into())));
        // The roofline never differs from itself.
        for what in [Bound::Compute, Bound::Memory] {
            let alone = answer(&catalog, &Request { engine: "ideal".into(), what, ..request.clone() });
            assert_eq!(alone.expect("answered").sheet, None);
        }
    }

    #[test]
    fn what_does_not_fit_has_no_regimes() {
        let degrees = DegreesRequest { tp: Some(1), ..DegreesRequest::default() };
        let request = Request { setting: on_h100("deepseek-v3"), degrees, ..Request::default() };
        let a = answer(&rackmath_catalog::embedded(), &request).expect("answered");
        assert!(a.most < 1.0 && a.regimes.is_empty() && a.from.is_none());
    }
}
