//! What users and chips can have at once: the frontier of each system, model or engine, one over the other.
//!
//! $$ y_k(x) = \max \{\, y_i : x_i \ge x \,\} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | k | [`Curve`] | - | a system, a model or an engine |
//! | x | tok_s_per_user | tokens/s | output tokens per second of one user |
//! | y | tok_s_per_chip, usd_per_mtok | tokens/s, $/Mtok | what a chip gives, or what a token costs then |
//!
//! A point of a frontier can also serve whoever asks for less speed, so a curve is a staircase and leads change at its
//! steps. Limits on time per token and whole requests do not count: the axis stands for them. Replicas are full.

use crate::desk::evidence::{Evidence, Scale};
use crate::desk::prelude::*;
use crate::extent::Extent;
use crate::plan::{self, Point, Worked};
use crate::sides::{self, questions};

/// A plan's question, and what to put side by side or over each other; the machines of the plan when nothing is listed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model, machine, workload, engines and limits.
    #[schemars(extend("x-inner" = {"top": {"x-flag": false}, "chips_per_host": {"x-flag": false}, "replay": {"x-flag": false}, "simulate": {"x-flag": false}, "simulate_requests": {"x-flag": false}, "simulate_seed": {"x-flag": false}, "ttft_ms": {"description": "Mean time to first token, at most."}, "tpot_ms": {"description": "Mean time per output token, at most."}, "e2e_ms": {"description": "Mean time of a whole request, at most."}}))]
    pub plan: plan::Request,
    /// Machines.
    #[schemars(extend("x-file" = "machine", "x-most" = [6, "plans side by side"]))]
    pub systems: Vec<String>,
    /// Models.
    #[schemars(extend("x-file" = "model", "x-most" = [6, "plans side by side"]))]
    pub models: Vec<String>,
    /// Engines.
    #[schemars(extend("x-most" = [6, "plans side by side"]))]
    pub engines: Vec<String>,
}

/// Frontiers.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What the curves differ in: `systems`, `models` or `engines`.
    pub over: String,
    /// Traffic and lengths of all.
    pub workload: Remark,
    /// Limits of the first.
    pub limits: Vec<Remark>,
    /// The curves, as asked for.
    pub curves: Vec<Curve>,
    /// Who gives most tokens per chip, from slow users to fast.
    pub leads_per_chip: Vec<Lead>,
    /// Who is cheapest, from slow users to fast; empty where a price is not known.
    pub leads_per_dollar: Vec<Lead>,
    /// Tokens per chip against tokens per user.
    pub figure_chip: Figure,
    /// Dollars per million tokens against tokens per user.
    pub figure_dollar: Option<Figure>,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
}

/// One frontier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Curve {
    /// As asked for.
    pub name: String,
    /// The model.
    pub model: String,
    /// The machine, or machines.
    pub system: String,
    /// Dollars per chip and hour of the machine, of the first of several.
    pub usd_per_chip_hour: f64,
    /// Fastest user first; empty when nothing fits.
    pub points: Vec<Point>,
    /// Logarithm of the factor that holds 80 % of measurements of throughput.
    pub spread: f64,
    /// What its fastest point rests on; nothing for a bound, or where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Why there are no points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub none: Option<Remark>,
}

/// Where one curve is ahead of the others.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Lead {
    /// Who.
    pub name: String,
    /// From so many tokens per second of a user.
    pub from_tok_s_per_user: f64,
    /// To so many.
    pub to_tok_s_per_user: f64,
    /// Who comes second, where anyone else is that fast.
    pub next: Option<String>,
    /// Least and most by which the second is behind, as factors.
    pub ahead: Option<(f64, f64)>,
    /// Whether the two cannot be told apart all along.
    pub too_close: bool,
    /// The run that would tell them apart, where they cannot be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decides: Option<Remark>,
}

/// Answers on so many threads; the answer is the same.
pub fn answer_on(catalog: &Catalog, r: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let effort = &effort.into();
    let (over, mut questions) = questions(&r.plan, &r.systems, &r.models, &r.engines)?;
    sides::like_with_like(catalog, &mut questions)?;
    let mut kinds = Vec::new();
    let mut curves = Vec::new();
    let mut workloads = Vec::new();
    let mut first: Option<(Vec<Remark>, Vec<Remark>)> = None;
    for (name, question) in questions {
        let worked = Worked::new(catalog, &question, effort)?;
        kinds.push(worked.bases().0);
        curves.push(curve(name, &worked, worked.frontier()?));
        workloads.push(worked.workload());
        let own = worked.limits();
        let (limits, said) = first.get_or_insert_with(|| (own.clone(), worked.assumptions(true)));
        limits.retain(|limit| own.contains(limit));
        let new: Vec<Remark> = worked.supported().into_iter().filter(|line| !said.contains(line)).collect();
        said.extend(new);
    }
    let (limits, mut assumptions) = first.unwrap_or_default();
    let workload = sides::common(workloads.iter());
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let unranked = sides::unranked(kinds.iter().copied());
    let ranked = priced(&curves) && unranked.is_none();
    assumptions.splice(0..0, unranked.map(|_| says("prices_not_ranked").with("kinds", sides::price_words(&kinds))));
    let scale = Scale::of(catalog)?;
    let title = title(over, &curves);
    Ok(Answer {
        over: over.into(),
        leads_per_chip: leads(&curves, &scale, |p| p.tok_s_per_chip),
        leads_per_dollar: if ranked { leads(&curves, &scale, |p| 1.0 / p.usd_per_mtok) } else { Vec::new() },
        figure_chip: figure(&curves, title.clone(), workload.clone(), false, Vec::new()),
        figure_dollar: priced(&curves).then(|| figure(&curves, title, workload.clone(), true, Vec::new())),
        workload,
        limits,
        curves,
        assumptions,
    })
}

/// What the frontiers would have to look through.
pub fn extent(catalog: &Catalog, r: &Request) -> Result<Extent, Error> {
    let (_, questions) = questions(&r.plan, &r.systems, &r.models, &r.engines)?;
    let each = |question| plan::extent(catalog, question).map(Extent::in_means);
    crate::extent::sum(questions.iter().map(|(_, question)| each(question)))
}

/// A curve from what was worked out.
pub(crate) fn curve(name: String, worked: &Worked, points: Vec<Point>) -> Curve {
    let machines: Vec<_> = worked.machines().collect();
    Curve {
        name,
        model: worked.model().into(),
        system: machines.iter().map(|m| m.1).collect::<Vec<_>>().join(" or "),
        usd_per_chip_hour: machines.first().map_or(0.0, |m| m.2),
        none: points.is_empty().then(|| worked.why_none()),
        points,
        spread: worked.spread(),
        evidence: worked.evidence(),
    }
}

pub(crate) fn priced(curves: &[Curve]) -> bool {
    curves.iter().all(|c| c.points.iter().all(|p| p.usd_per_mtok > 0.0))
}

/// A title that says what the curves share.
pub(crate) fn title(over: &str, curves: &[Curve]) -> Remark {
    let Some(first) = curves.first() else { return says("users_and_chips") };
    let title = says("users_and_chips").with("model", &first.model);
    match over {
        "models" => says("models_and_chips").with("on", &first.system),
        "systems" if curves.len() > 1 => title,
        _ => title.with("on", &first.system),
    }
}

/// The curves as a chart: tokens per chip, or dollars, against tokens per user.
pub(crate) fn figure(curves: &[Curve], title: Remark, subtitle: Remark, dollars: bool, marks: Vec<Mark>) -> Figure {
    let y = |p: &Point| if dollars { p.usd_per_mtok } else { p.tok_s_per_chip };
    let series = |(i, c): (usize, &Curve)| {
        Series::new(c.name.clone(), Role::Choice(i as u8), c.points.iter().rev().map(|p| (p.tok_s_per_user, y(p))))
    };
    let series = curves.iter().enumerate().map(series).filter(|s| s.points.len() > 1);
    Figure::of(title, subtitle, users_and(dollars), series).marked(marks)
}

/// Tokens of one user, and what is had for them: tokens of a chip, or dollars.
pub(crate) fn users_and(dollars: bool) -> (Axis, Axis) {
    let cost = ("dollars per million output tokens", Unit::UsdPerMtok);
    let (label, unit) = if dollars { cost } else { ("output tokens per second and chip", Unit::TokensPerS) };
    (Axis::log("output tokens per second of one user", Unit::TokensPerS), Axis::log(label, unit))
}

/// Who is ahead where, by a yield of which more is better.
pub(crate) fn leads(curves: &[Curve], scale: &Scale, yielded: impl Fn(&Point) -> f64) -> Vec<Lead> {
    let mut steps: Vec<f64> = curves.iter().flat_map(|c| c.points.iter().map(|p| p.tok_s_per_user)).collect();
    steps.sort_by(f64::total_cmp);
    steps.dedup();
    let at = |c: &Curve, x: f64| {
        let ys = c.points.iter().filter(|p| p.tok_s_per_user >= x).map(&yielded);
        ys.max_by(f64::total_cmp)
    };
    let mut all: Vec<Lead> = Vec::new();
    for (i, x) in steps.iter().enumerate() {
        let mut here: Vec<(&Curve, f64)> = curves.iter().filter_map(|c| Some((c, at(c, *x)?))).collect();
        // Of equals the one asked for first.
        here.sort_by(|a, b| b.1.total_cmp(&a.1));
        let Some((best, y)) = here.first() else { continue };
        let second = here.get(1);
        let by = second.map(|(_, other)| y / other);
        let width = |c: &Curve| sides::apart(scale, best.evidence.as_ref(), c.evidence.as_ref()).throughput;
        let close = second.is_some_and(|(c, other)| sides::too_close(*y, *other, width(c)));
        let decides = second.filter(|(_, other)| close && y > other);
        let decides = decides.and_then(|(c, _)| sides::decider(best.evidence.as_ref(), c.evidence.as_ref()));
        let from = if i == 0 { 0.0 } else { steps[i - 1] };
        let next = second.map(|(c, _)| c.name.clone());
        match all.last_mut() {
            Some(last) if last.name == best.name && last.next == next && last.too_close == close => {
                last.to_tok_s_per_user = *x;
                last.ahead = last.ahead.zip(by).map(|((low, high), by)| (low.min(by), high.max(by)));
            }
            _ => all.push(Lead {
                name: best.name.clone(),
                from_tok_s_per_user: from,
                to_tok_s_per_user: *x,
                next,
                ahead: by.map(|by| (by, by)),
                too_close: close,
                decides,
            }),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn made(name: &str, points: &[(f64, f64)]) -> Curve {
        let point = |(x, y): &(f64, f64)| Point { tok_s_per_user: *x, tok_s_per_chip: *y, ..Point::default() };
        Curve { name: name.into(), points: points.iter().map(point).collect(), ..Curve::default() }
    }

    #[test]
    fn the_lead_changes_where_the_staircases_cross() {
        // a: 100 a chip to 50 tokens a second, 400 to 10. b: 200 to 30.
        let curves = [made("a", &[(50.0, 100.0), (10.0, 400.0)]), made("b", &[(30.0, 200.0)])];
        let scale = Scale::of(&rackmath_catalog::embedded()).unwrap();
        let all = leads(&curves, &scale, |p| p.tok_s_per_chip);
        let words: Vec<_> = all.iter().map(|l| (l.name.as_str(), l.from_tok_s_per_user, l.to_tok_s_per_user)).collect();
        assert_eq!(words, [("a", 0.0, 10.0), ("b", 10.0, 30.0), ("a", 30.0, 50.0)]);
        assert_eq!((all[0].ahead, all[2].ahead), (Some((2.0, 2.0)), None));
    }

    #[test]
    fn one_curve_is_the_frontier_of_the_plan() {
        let plan = plan::Request { disaggregated: false, ..plan::Request::of("llama-3.1-8b", "4xh100") };
        let catalog = rackmath_catalog::embedded();
        let whole = plan::answer_on(&catalog, &plan, 1).unwrap();
        let a = answer_on(&catalog, &Request { plan, ..Request::default() }, 1).unwrap();
        assert_eq!(a.curves[0].points, whole.frontier);
        assert_eq!(a.figure_chip.series[0].points, whole.figure.series[0].points);
    }

    proptest! {
        #[test]
        fn leads_tile_the_axis_and_nobody_is_ahead_of_the_leader(ys in prop::collection::vec((1.0..100.0_f64, 1.0..100.0_f64), 1..12)) {
            let (left, right) = ys.split_at(ys.len() / 2);
            let curves = [made("a", left), made("b", right)];
            let scale = Scale::of(&rackmath_catalog::embedded()).unwrap();
            let all = leads(&curves, &scale, |p| p.tok_s_per_chip);
            prop_assert_eq!(all[0].from_tok_s_per_user, 0.0);
            prop_assert!(all.windows(2).all(|w| w[0].to_tok_s_per_user == w[1].from_tok_s_per_user));
            prop_assert!(all.iter().all(|l| l.ahead.is_none_or(|(low, high)| 1.0 <= low && low <= high)));
        }
    }
}
