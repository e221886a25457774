//! How sure a plan is, and what comes next: what uncertain inputs do to it, a plan that survives the error of the
//! predictions, and what is in the way as traffic grows.
//!
//! An input is moved down and up and the question asked again. The change is that of the best score; the regret is what
//! the deployment chosen today would cost more than the best then. Lengths, traffic and hits move by a share; prices by what
//! the catalogue saw them move, else by the share.

#[cfg(test)]
mod tests;

use crate::desk::prelude::*;
use crate::extent::Extent;
use crate::plan::{self, Holds, Plan, Running, Worked};
use rackmath_theory::plan::{Bound, Objective, Question, Ranked, Traffic};

/// A plan's question, and by how much to move its inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// The plan's question.
    #[schemars(extend("x-inner" = {"top": {"x-flag": false}, "chips_per_host": {"x-flag": false}, "replay": {"x-flag": false}, "simulate": {"x-flag": false}, "simulate_requests": {"x-flag": false}, "simulate_seed": {"x-flag": false}, "ttft_ms": {"description": "Mean time to first token, at most."}, "tpot_ms": {"description": "Mean time per output token, at most."}, "e2e_ms": {"description": "Mean time of a whole request, at most."}}))]
    #[educe(Default = plan::Request::default())]
    pub plan: plan::Request,
    /// Share by which inputs are moved down and up.
    #[schemars(extend("x-unit" = "share"))]
    #[educe(Default = 0.2)]
    pub vary: f64,
}

/// What may become of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model's name.
    pub model: String,
    /// Traffic and lengths.
    pub workload: Remark,
    /// What it has to keep.
    pub limits: Vec<Remark>,
    /// What is made best.
    pub objective: plan::Best,
    /// The plan; none when nothing meets the limits.
    pub plan: Option<Plan>,
    /// What each uncertain input does, the largest swing first.
    pub inputs: Vec<Input>,
    /// The best plan that meets the limits and serves the traffic even at the bad ends of its intervals.
    pub robust: Option<Robust>,
    /// The chosen deployment as more requests are in flight: what binds, from where to where.
    pub stages: Vec<Stage>,
    /// What ends that.
    pub ends_by: Option<Remark>,
    /// The most the machines can serve under the limits.
    pub most: Option<Most>,
    /// In a sentence.
    pub verdict: Remark,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
}

/// One uncertain input.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Input {
    /// Which.
    pub name: Remark,
    /// Moved down.
    pub low: Case,
    /// Moved up.
    pub high: Case,
}

/// An input at one value.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Case {
    /// Its value.
    pub value: Remark,
    /// The best deployment then; none when nothing meets the limits.
    pub deployment: Option<Remark>,
    /// Change of the best score; more is worse.
    pub change: Option<f64>,
    /// Whether today's deployment still does.
    pub kept: Holds,
    /// In how many replicas it does, where those of today are not enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u64>,
    /// How much worse than the best then today's deployment is, where it still does.
    pub regret: Option<f64>,
}

/// A plan that survives the error of the predictions.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Robust {
    /// The plan, as predicted.
    pub plan: Plan,
    /// How much worse its score is.
    pub premium: f64,
    /// Whether it is the recommended deployment at the same concurrency and replicas.
    pub same: bool,
}

/// A stretch of concurrency with one bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Stage {
    /// From so many requests in flight in a group.
    pub from: f64,
    /// To so many.
    pub to: f64,
    /// What most of a step is limited by.
    pub bound_by: String,
    /// Limits that are broken.
    pub broken: Vec<Remark>,
    /// Output tokens per second and chip at its end.
    pub tok_s_per_chip: f64,
    /// Time per output token at its end.
    pub tpot_ms: f64,
}

/// The most that can be served, and what would make it more.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Most {
    /// Requests per second.
    pub requests_per_s: f64,
    /// The deployment that serves them.
    pub deployment: Remark,
    /// Over what is asked for; none when that is whatever the chips serve.
    pub times_now: Option<f64>,
    /// Each limit at twice its room, and by what share more could be served; largest first.
    pub reliefs: Vec<Relief>,
}

/// A limit given more room.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Relief {
    /// The limit.
    pub limit: String,
    /// Share by which more requests could be served.
    pub gain: f64,
}

/// Answers on so many threads; the answer is the same.
pub fn answer_on(catalog: &Catalog, r: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let effort = &effort.into();
    refuse_if(!(r.vary > 0.0 && r.vary < 1.0), "vary", r.vary, "a share above 0 and below 1")?;
    let worked = Worked::new(catalog, &r.plan, effort)?;
    let by_means = worked.best(&worked.question)?;
    // The deployment is that of `plan`, which may have simulated others than the best by means.
    let met = worked.met(worked.answer()?)?;
    let plan = met.plans.into_iter().next();
    let best = plan.as_ref().and_then(|plan| worked.ranked_at(plan.index));
    let mut answer = Answer {
        model: worked.model().into(),
        workload: worked.workload(),
        limits: worked.limits(),
        objective: r.plan.objective,
        inputs: Vec::new(),
        robust: None,
        stages: Vec::new(),
        ends_by: None,
        most: most(&worked)?,
        verdict: says("see_plan"),
        assumptions: worked.assumptions(true),
        plan,
    };
    let Some(best) = best else { return Ok(answer) };
    // Scores are compared in means, before and after a move.
    let base = worked.question.objective.score(&by_means.as_ref().unwrap_or(&best).estimate);
    if let Some(plan) = &answer.plan {
        let today = Today { running: worked.running(plan), score: base };
        answer.inputs = inputs(catalog, r, &worked, &today, effort)?;
    }
    answer.robust = robust(&worked, &best)?;
    let (stages, end) = stages(&worked, &best);
    (answer.stages, answer.ends_by) = (stages, Some(end));
    answer.verdict = verdict(&answer);
    Ok(answer)
}

/// What it would have to look through: the plan, and once more for each end of what is varied.
pub fn extent(catalog: &Catalog, r: &Request) -> Result<Extent, Error> {
    let p = &r.plan;
    let given = [p.prefix_hit.is_some_and(|hit| hit > 0.0), p.acceptance.is_some()].iter().filter(|g| **g).count();
    // Prompts and answers are always varied; each end is prepared anew, and what is kept of the plan is simulated there as the plan is.
    let spaces = 1 + 2 * (2 + given);
    // Prices and traffic are asked of the same space.
    let asked = 2 * (1 + p.setting.on.split(',').count());
    let one = plan::extent(catalog, p)?;
    Ok(one * spaces as f64 + one.simulation() * asked as f64)
}

/// The score of the best then, and what becomes of today's plan.
fn case(worked: &Worked, value: Remark, today: &Today) -> Result<Case, Error> {
    let objective = worked.question.objective;
    let best = worked.best(&worked.question)?;
    let score = best.as_ref().map(|b| objective.score(&b.estimate));
    let kept = worked.kept(&today.running)?;
    let held = kept.plan.filter(|_| kept.holds.does());
    let theirs = held.as_ref().and_then(|p| worked.score_in(p.index, p.replicas));
    let share = |now: f64, then: f64| (now - then) / then.abs();
    // What holds and is better than the best by means is the best.
    let (best, score) = match (theirs, score) {
        (Some(mine), s) if s.is_none_or(|s| mine < s) => (held.as_ref().map(|p| p.deployment.clone()), Some(mine)),
        _ => (best.map(|b| worked.words(b.index)), score),
    };
    Ok(Case {
        value,
        deployment: best,
        change: score.map(|s| share(s, today.score)),
        kept: kept.holds,
        replicas: held.map(|p| p.replicas).filter(|n| *n != today.running.replicas),
        regret: theirs.zip(score).map(|(mine, best)| share(mine, best).max(0.0)),
    })
}

/// Today's deployment, and what it scores in means.
struct Today {
    running: Running,
    score: f64,
}

/// Sets an input of a request.
type Set = fn(&mut plan::Request, f64);

fn inputs(
    catalog: &Catalog,
    r: &Request,
    worked: &Worked,
    today: &Today,
    effort: &Effort,
) -> Result<Vec<Input>, Error> {
    let mut all = Vec::new();
    let (down, up) = (1.0 - r.vary, 1.0 + r.vary);
    let machines: Vec<(String, f64)> = worked.machines().map(|(id, _, price)| (id.to_owned(), price)).collect();
    for (at, (id, price)) in machines.iter().enumerate().filter(|(_, m)| m.1 > 0.0) {
        let (low, high) = worked.price_range(at).filter(|(l, h)| *l < *h).unwrap_or((down, up));
        let value = |factor: f64| says("a_dollar_rate").with("x", DollarRate::checked(price * factor / 3600.0));
        let at = |factor: f64| case(&worked.priced(at, factor), value(factor), today);
        all.push(Input { name: says("chip_price").with("of", id), low: at(low)?, high: at(high)? });
    }
    let moved = |name: &'static str, value: &dyn Fn(f64) -> f64, set: Set, kind: &'static str| {
        let at = |factor: f64| {
            let mut moved = r.plan.clone();
            set(&mut moved, value(factor));
            case(&Worked::new(catalog, &moved, effort)?, says(kind).with("x", value(factor)), today)
        };
        Ok::<_, Error>(Input { name: says(name), low: at(down)?, high: at(up)? })
    };
    let (prompt, answer, cached) = (worked.prompt(), worked.question.output, worked.cached());
    all.push(moved("tokens_of_prompt", &|f| (prompt * f).max(1.0), |r, x| r.isl = Some(x), "some_tokens")?);
    all.push(moved("tokens_of_answer", &|f| (answer * f).max(2.0), |r, x| r.osl = Some(x), "some_tokens")?);
    if let Traffic::Rate(rate) = worked.question.traffic {
        let at = |factor: f64| {
            let question = Question { traffic: Traffic::Rate(rate * factor), ..worked.question };
            case(&worked.asked(question), says("per_second").with("x", rate * factor), today)
        };
        all.push(Input { name: says("request_rate"), low: at(down)?, high: at(up)? });
    }
    if cached > 0.0 {
        let value = |f: f64| (cached * f).min(1.0);
        all.push(moved("prompts_cached", &value, |r, x| r.prefix_hit = Some(x), "a_share")?);
    }
    if let Some(alpha) = r.plan.acceptance {
        all.push(moved("drafts_accepted", &|f| (alpha * f).min(1.0), |r, x| r.acceptance = Some(x), "a_share")?);
    }
    let swing = |i: &Input| i.low.change.map_or(f64::MAX, f64::abs).max(i.high.change.map_or(f64::MAX, f64::abs));
    all.sort_by(|a, b| swing(b).total_cmp(&swing(a)));
    Ok(all)
}

/// The best when times are at the long end of their intervals and throughput at the low end.
fn robust(worked: &Worked, best: &Ranked) -> Result<Option<Robust>, Error> {
    let q = &worked.question;
    let bad = worked.surely(END);
    let Some(found) = bad.best(q)? else { return Ok(None) };
    let (plan, found) = (bad.plan(&found), Ranked { estimate: bad.likely(&found), ..found });
    // Dollars and chips are those of all replicas; per token, for the traffic that was asked for.
    let score = |r: &Ranked| match (q.objective, q.traffic) {
        (Objective::Cost, Traffic::Rate(_)) => r.estimate.usd_per_hour,
        (objective, _) => objective.score(&r.estimate),
    };
    let premium = (score(&found) - score(best)) / score(best).abs();
    let same = found.index == best.index && found.estimate.replicas == best.estimate.replicas;
    Ok(Some(Robust { plan, premium, same }))
}

/// The end of an interval that holds 80 % of measurements: nine in ten are better.
const END: f64 = 0.9;

fn stages(worked: &Worked, best: &Ranked) -> (Vec<Stage>, Remark) {
    let (rungs, end) = worked.ladder(best);
    let mut stages: Vec<Stage> = Vec::new();
    for rung in &rungs {
        let e = &rung.estimate;
        let stage = Stage {
            from: rung.concurrency,
            to: rung.concurrency,
            bound_by: e.binding.name().into(),
            broken: rung.broken.clone(),
            tok_s_per_chip: e.rate * worked.question.output / e.unit_chips,
            tpot_ms: e.tpot * 1e3,
        };
        match stages.last_mut() {
            Some(last) if last.bound_by == stage.bound_by && last.broken == stage.broken => {
                *last = Stage { from: last.from, ..stage };
            }
            _ => stages.push(stage),
        }
    }
    (stages, end)
}

/// The most requests per second under the limits, and what each limit keeps back.
fn most(worked: &Worked) -> Result<Option<Most>, Error> {
    let q = &worked.question;
    let fill = |chips: f64| Question { objective: Objective::Throughput, traffic: Traffic::Fill(chips), ..*q };
    let Some(chips) = q.limits.get(Bound::Chips) else { return Ok(None) };
    let Some(best) = worked.best(&fill(chips))? else { return Ok(None) };
    let served = best.estimate.throughput / q.output;
    let mut reliefs = Vec::new();
    for &bound in Bound::ALL {
        let Some(limit) = q.limits.get(bound) else { continue };
        let limits = q.limits.with(bound, Some(if bound.at_least() { limit / 2.0 } else { limit * 2.0 }));
        let room = if bound == Bound::Chips { chips * 2.0 } else { chips };
        let Some(then) = worked.best(&Question { limits, ..fill(room) })? else { return Ok(None) };
        let then = then.estimate.throughput / q.output;
        reliefs.push(Relief { limit: bound.name().into(), gain: then / served - 1.0 });
    }
    reliefs.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    let times_now = match q.traffic {
        Traffic::Rate(rate) => Some(served / rate),
        _ => None,
    };
    Ok(Some(Most { requests_per_s: served, deployment: worked.words(best.index), times_now, reliefs }))
}

fn verdict(a: &Answer) -> Remark {
    let mut parts = Vec::new();
    if let Some(first) = a.inputs.first() {
        let worst = [&first.low, &first.high].into_iter().filter_map(|c| c.change).map(f64::abs).fold(0.0, f64::max);
        parts.push(says("matters_most").with("input", first.name.clone()).with("by", worst));
    }
    let when = |does: fn(Holds) -> bool| {
        let some = a.inputs.iter().filter(|i| does(i.low.kept) || does(i.high.kept));
        Some(some.map(|i| i.name.clone()).collect::<Vec<_>>()).filter(|names| !names.is_empty())
    };
    let (broken, scaled) = (when(|kept| !kept.does()), when(|kept| kept == Holds::Scaled));
    if broken.is_none() && scaled.is_none() {
        parts.push(says("holds_throughout"));
    }
    parts.extend(broken.map(|inputs| says("breaks_when").with("inputs", inputs)));
    parts.extend(scaled.map(|inputs| says("scaled_when").with("inputs", inputs)));
    parts.push(match &a.robust {
        Some(r) if r.same => says("robust_too"),
        Some(r) if r.premium < 1e-9 => says("robust_for_nothing"),
        Some(r) => says("robust_for").with("premium", r.premium),
        None => says("never_robust"),
    });
    says("outlook_parts").with("parts", parts)
}
