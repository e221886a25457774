//! One plan, some changes: before, the same deployment under the change, and the best after it.

use crate::desk::prelude::*;
use crate::field::{self, Field, Unit, put};
use crate::plan::{self, Holds, Kept, Plan, Relaxation, Worked};
use crate::sides::Measure;
use crate::simulate::Percentiles;
use serde_json::Value;

/// A plan's question and what is changed in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// The question before.
    #[schemars(extend("x-file" = "plan", "x-position" = 1))]
    pub plan: plan::Request,
    /// Changes such as `tpot=20ms`, `on=64xb200`, `isl=8k`, `price=3/h`; `none` takes a limit away.
    #[schemars(extend("x-flag" = "set -s", "x-whole" = true, "x-most" = [16, "changes"]))]
    pub set: Vec<String>,
}

/// The difference the changes make.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model's name, after the change.
    pub model: String,
    /// What was changed.
    pub changes: Vec<Changed>,
    /// Traffic and lengths before.
    pub workload_before: Remark,
    /// The same after.
    pub workload_after: Remark,
    /// Limits after.
    pub limits: Vec<Remark>,
    /// What is made best, after.
    pub objective: plan::Best,
    /// The best before; none when nothing met the limits.
    pub before: Option<Plan>,
    /// What becomes of it when it is kept.
    pub kept: Kept,
    /// The best after.
    pub after: Option<Plan>,
    /// Whether the best after is the deployment from before.
    pub same_deployment: bool,
    /// Number by number.
    pub differences: Vec<Difference>,
    /// In a sentence.
    pub verdict: Remark,
    /// What would do if a single limit were moved, when nothing meets them all after the change.
    pub relaxations: Vec<Relaxation>,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changed {
    /// What.
    pub what: String,
    /// Before, in words.
    pub from: String,
    /// After.
    pub to: String,
}

/// One number before and after.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// Which.
    pub measure: Measure,
    /// Before.
    pub before: Option<f64>,
    /// With the same deployment.
    pub kept: Option<f64>,
    /// With the best after.
    pub after: Option<f64>,
    /// Kept over before, less one.
    pub kept_change: Option<f64>,
    /// After over before, less one.
    pub after_change: Option<f64>,
}

/// Answers on so many threads, the answer is the same.
pub fn answer_on(catalog: &Catalog, request: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let effort = &effort.into();
    let (changed, changes) = applied(request)?;
    let was = Worked::new(catalog, &request.plan, effort)?;
    let old = was.met(was.answer()?)?;
    let worked = Worked::new(catalog, &changed, effort)?;
    let new = worked.met(worked.answer()?)?;
    let (before, after) = (old.plans.first(), new.plans.first());
    let none = Kept { holds: Holds::No, plan: None, broken: Vec::new() };
    let identity = before.map(|plan| was.identity(plan.index));
    let mut kept = identity.as_ref().map_or(none, |identity| worked.outrun().kept(identity));
    // Kept, it has the machine of the new question.
    let now = kept.plan.as_ref().map(|plan| worked.identity(plan.index)).or(identity.clone());
    let same = now.zip(after).is_some_and(|(now, after)| now.same(&worked.identity(after.index)));
    // Under traffic requests in flight are no choice: the same deployment is what the best is.
    kept = match (&kept.plan, after) {
        (Some(_), Some(after)) if same && after.percentiles.is_some() => {
            let runs_on = identity.is_some_and(|was| was.unchanged(&worked.identity(after.index)));
            let holds = if runs_on { Holds::AsIs } else { kept.holds };
            let broken = if runs_on { Vec::new() } else { kept.broken };
            Kept { holds, plan: Some(after.clone()), broken }
        }
        _ => {
            let mut plan = kept.plan.map(|plan| worked.plan_met(plan)).transpose()?;
            // Looser limits let more requests in flight, which then take more replicas: as many as there were may do as they are.
            if let (Some(was), Some(identity)) = (before, &identity)
                && plan.as_ref().is_some_and(|plan| plan.replicas > was.replicas)
            {
                plan = worked.outrun().in_its_replicas(identity, was.replicas)?.or(plan);
            }
            let runs_on = |plan: &Plan| {
                let holds = plan.percentiles.as_ref().is_some_and(Percentiles::hold);
                holds && identity.as_ref().is_some_and(|was| was.unchanged(&worked.identity(plan.index)))
            };
            match plan {
                Some(plan) if kept.holds == Holds::Retuned && runs_on(&plan) => {
                    Kept { holds: Holds::AsIs, plan: Some(plan), broken: Vec::new() }
                }
                plan => Kept { plan, ..kept },
            }
        }
    };
    Ok(Answer {
        model: new.model.clone(),
        changes,
        workload_before: old.workload.clone(),
        workload_after: new.workload.clone(),
        limits: new.limits.clone(),
        objective: new.objective,
        differences: Measure::ALL.iter().filter_map(|m| difference(*m, before, kept.plan.as_ref(), after)).collect(),
        verdict: verdict(before, &kept, after, same, &new),
        same_deployment: same,
        before: before.cloned(),
        after: after.cloned(),
        kept,
        relaxations: new.relaxations.clone(),
        assumptions: new.assumptions.clone(),
    })
}

/// The question after the changes.
pub fn changed(request: &Request) -> Result<plan::Request, Error> {
    applied(request).map(|(changed, _)| changed)
}

fn applied(request: &Request) -> Result<(plan::Request, Vec<Changed>), Error> {
    let mut plan = request.plan.clone();
    let changes = request.set.iter().map(|word| apply(&mut plan, word)).collect::<Result<_, _>>()?;
    Ok((plan, changes))
}

/// Makes one change: any field of a plan's request, by its flag or its own name.
fn apply(request: &mut plan::Request, word: &str) -> Result<Changed, Error> {
    let wrong = |expected: String| Error::value("set", format!("\"{word}\""), expected);
    let Some((key, text)) = word.split_once('=').map(|(k, v)| (k.trim().trim_start_matches("--"), v.trim())) else {
        return Err(wrong("a name and a value, such as tpot=20ms".into()));
    };
    let fields = field::of::<plan::Request>();
    let flagged = |f: &&Field| f.flag == key || f.aliases.iter().chain(&f.old).any(|name| name == key);
    let own = |f: &&Field| f.path.rsplit('/').next() == Some(key);
    let Some(found) = fields.iter().find(flagged).or_else(|| fields.iter().find(own)) else {
        let names = fields.iter().flat_map(|f| [f.flag.as_str(), f.path.rsplit('/').next().unwrap_or_default()]);
        return Err(Error::unknown("setting to change", key, names));
    };
    // The flag of a switch that is on by default takes it away.
    let turned = found.unit == Unit::Switch && found.default == Value::Bool(true) && flagged(&found);
    let turn = |value: Value| match value {
        Value::Bool(yes) => Value::Bool(yes != turned),
        other => other,
    };
    let raw = serde_json::from_str(text).ok().filter(|_| !flagged(&found));
    let value =
        raw.map_or_else(|| found.parse(text), Ok).map_err(|e| wrong(e.trim_start_matches("expected ").to_owned()))?;
    let Value::Object(mut all) = serde_json::to_value(&*request).unwrap_or_default() else {
        return Err(wrong(word.into()));
    };
    put(&mut all, &found.path, turn(value));
    let changed: plan::Request = crate::ask::read(&Value::Object(all)).map_err(|e| wrong(e.to_string()))?;
    let show = |r: &plan::Request| {
        let all = serde_json::to_value(r).unwrap_or_default();
        found.show(&turn(all.pointer(&found.path).cloned().unwrap_or_default()))
    };
    let (from, to) = (show(request), show(&changed));
    *request = changed;
    Ok(Changed { what: found.flag.clone(), from, to })
}

fn difference(
    measure: Measure,
    before: Option<&Plan>,
    kept: Option<&Plan>,
    after: Option<&Plan>,
) -> Option<Difference> {
    let value = |plan: Option<&Plan>| plan.and_then(|p| measure.of(p)).map(|r| r.value);
    let (before, kept, after) = (value(before), value(kept), value(after));
    let change = |new: Option<f64>| Some(new? / before.filter(|b| *b > 0.0)? - 1.0);
    if before.is_none() && after.is_none() && kept.is_none() {
        return None;
    }
    Some(Difference { measure, before, kept, after, kept_change: change(kept), after_change: change(after) })
}

/// Costs nearer than this are one cost: what is left between them is rounding.
const ALIKE: f64 = 0.0005;

fn verdict(before: Option<&Plan>, kept: &Kept, after: Option<&Plan>, same: bool, new: &plan::Answer) -> Remark {
    let Some(before) = before else {
        return says(if after.is_some() { "now_something_does" } else { "neither_does" });
    };
    let (old_count, broken) = (before.replicas, kept.broken.clone());
    let held = match (kept.holds, &kept.plan) {
        (Holds::AsIs, Some(p)) if p.replicas != old_count => {
            says("holds_with").with("replicas", p.replicas).with("before", old_count)
        }
        (Holds::AsIs, _) => says("holds_as_is"),
        (Holds::Retuned, Some(p)) => {
            let held = says("holds_retuned").with("in_flight", p.concurrency_per_group);
            held.with("no_room", broken.is_empty()).with("broken", broken)
        }
        (Holds::Breaks, _) => says("does_not_hold").with("broken", broken),
        _ => says("cannot_run"),
    };
    let and = |then: Remark| says("held_and").with("held", held).with("then", then);
    let Some(after) = after else { return and(new.verdict.clone()) };
    if same && kept.plan.as_ref().is_some_and(|p| p.index == after.index) {
        return and(says("still_best"));
    }
    let cost = |p: &Plan| p.usd_per_mtok.value;
    let gain = kept.plan.as_ref().filter(|_| kept.holds != Holds::Breaks).filter(|p| cost(p) > 0.0);
    let gain = gain.map(|p| 1.0 - cost(after) / cost(p));
    let best = if same {
        says("layout_still_best").with("in_flight", after.concurrency_per_group)
    } else {
        says("best_now").with("deployment", after.deployment.clone())
    };
    let told = gain.filter(|g| g.abs() >= ALIKE);
    let best = best.with("alike", gain.is_some() && told.is_none());
    and(best.with("less", told.filter(|g| *g > 0.0)).with("more", told.filter(|g| *g < 0.0).map(f64::abs)))
}

#[cfg(test)]
mod tests;
