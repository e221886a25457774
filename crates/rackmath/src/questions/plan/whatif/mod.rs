//! One plan, some changes: before, the same deployment under the change, and the best after it.

use crate::desk::prelude::*;
use crate::field::{self, Field, Unit, put};
use crate::plan::{self, Holds, Kept, Plan, Relaxation, Worked};
use crate::setting::{machine, with_price, without_prices};
use crate::sides::Measure;
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
    let was = Worked::any(catalog, &request.plan, effort)?;
    let old = was.met(was.answer()?)?;
    let worked = Worked::any(catalog, &changed, effort)?;
    let new = worked.met(worked.answer()?)?;
    let before = old.plans.first();
    let running = before.map(|plan| was.running(plan));
    let mut kept = running.as_ref().map_or_else(|| Ok(Kept::default()), |running| worked.kept(running))?;
    let (mut after, given) = (new.plans.first().cloned(), worked.traffic_is_given());
    // What holds and is better than whatever the search tried is the best.
    let best = Measure::made_best(worked.question.objective);
    if let Some(plan) = kept.plan.as_ref().filter(|_| given && kept.holds.does())
        && after.as_ref().is_none_or(|after| better(best, plan, after))
    {
        after = Some(plan.clone());
    }
    let unit = |plan: &Plan| worked.identity(plan.index);
    // Kept, it has the machine of the new question.
    let now = kept.plan.as_ref().map(unit).or(running.map(|running| running.identity));
    let both = now.zip(after.as_ref());
    let alike = match &both {
        Some((now, after)) if now.unchanged(&unit(after)) => Alike::Unit,
        Some((now, after)) if now.same(&unit(after)) => Alike::Layout,
        _ => Alike::No,
    };
    if let Some(after) = &after {
        kept = as_the_best(kept, after, alike, given);
    }
    Ok(Answer {
        model: new.model.clone(),
        changes,
        workload_before: old.workload.clone(),
        workload_after: new.workload.clone(),
        limits: new.limits.clone(),
        objective: new.objective,
        differences: differences(before, kept.plan.as_ref(), after.as_ref()),
        verdict: verdict(before, &kept, after.as_ref(), alike, &new),
        same_deployment: alike != Alike::No,
        before: before.cloned(),
        after,
        kept,
        relaxations: new.relaxations.clone(),
        assumptions: new.assumptions.clone(),
    })
}

const PRICE: &str = "/setting/price_usd_per_chip_hour";

/// The same with its price where a change of the price or of the machine finds it: behind an @, or by itself.
fn with_one_price(request: &plan::Request, path: &str, text: &str) -> plan::Request {
    let mut request = request.clone();
    let setting = &mut request.setting;
    if path == PRICE {
        let all = setting.on.split([',', '+']).map(|on| machine(on).ok().and_then(|(_, price)| price));
        let prices: Vec<Option<f64>> = all.collect();
        let one = prices.first().copied().flatten().filter(|first| prices.iter().all(|p| *p == Some(*first)));
        setting.price_usd_per_chip_hour = setting.price_usd_per_chip_hour.or(one);
        setting.on = without_prices(&setting.on);
    } else if path == "/setting/on" && text.split([',', '+']).any(|on| with_price(on).1.is_some()) {
        setting.price_usd_per_chip_hour = None;
    }
    request
}

/// What the best after shares with the deployment from before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alike {
    /// Layouts, ratio of pools, chunk: what runs is not touched.
    Unit,
    /// Its layouts.
    Layout,
    No,
}

/// What is kept where the best after has its layout: nothing else is to be said of it then.
fn as_the_best(kept: Kept, best: &Plan, alike: Alike, given: bool) -> Kept {
    let as_many = kept.plan.as_ref().is_some_and(|plan| plan.replicas == best.replicas);
    let holds = match (kept.holds, alike) {
        (_, Alike::No) => return kept,
        // Under traffic requests in flight are no choice: the same unit in as many replicas is the best.
        (holds, Alike::Unit) if given && as_many && holds.does() => holds,
        (Holds::AsIs | Holds::Scaled, _) if given => return kept,
        (_, Alike::Unit) if given => Holds::Scaled,
        _ if given => Holds::Retuned,
        _ if best.percentiles.is_none() => return kept,
        (_, Alike::Unit) => Holds::AsIs,
        (holds, Alike::Layout) => holds,
    };
    let broken = if holds == Holds::AsIs { Vec::new() } else { kept.broken };
    Kept { holds, plan: Some(best.clone()), broken }
}

/// Whether a plan is better than another in a measure, by more than rounding.
fn better(measure: Measure, plan: &Plan, than: &Plan) -> bool {
    let value = |plan: &Plan| measure.of(plan).map(|r| r.value);
    let Some((a, b)) = value(plan).zip(value(than)) else { return false };
    if measure.more_is_better() == Some(true) { a > b * (1.0 + ALIKE) } else { a < b * (1.0 - ALIKE) }
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
    let show = |r: &plan::Request| {
        let all = serde_json::to_value(r).unwrap_or_default();
        found.show(&turn(all.pointer(&found.path).cloned().unwrap_or_default()))
    };
    *request = with_one_price(request, &found.path, text);
    let from = show(request);
    if found.path == PRICE {
        request.setting.price_usd_per_chip_hour = None;
    }
    let Value::Object(mut all) = serde_json::to_value(&*request).unwrap_or_default() else {
        return Err(wrong(word.into()));
    };
    put(&mut all, &found.path, turn(value));
    let changed: plan::Request = crate::ask::read(&Value::Object(all)).map_err(|e| wrong(e.to_string()))?;
    let to = show(&changed);
    *request = changed;
    Ok(Changed { what: found.flag.clone(), from, to })
}

fn differences(before: Option<&Plan>, kept: Option<&Plan>, after: Option<&Plan>) -> Vec<Difference> {
    Measure::ALL.iter().filter_map(|m| difference(*m, before, kept, after)).collect()
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

fn verdict(before: Option<&Plan>, kept: &Kept, after: Option<&Plan>, alike: Alike, new: &plan::Answer) -> Remark {
    let Some(before) = before else {
        return says(if after.is_some() { "now_something_does" } else { "neither_does" });
    };
    let held = held(before, kept);
    let per_token = |p: &Plan| DollarsPerToken::per_mtok(p.usd_per_mtok.value);
    let paid = after.filter(|p| p.usd_per_mtok.value > 0.0 && before.usd_per_mtok.value > 0.0);
    let and = |then: Remark| {
        let said = says("held_and").with("held", held).with("then", then);
        said.with("before", paid.map(|_| per_token(before))).with("after", paid.map(per_token))
    };
    let Some(after) = after else { return and(new.verdict.clone()) };
    let cost = |p: &Plan| p.usd_per_mtok.value;
    let ours = kept.plan.as_ref();
    let gain = ours.filter(|p| kept.holds.does() && cost(p) > 0.0).map(|p| 1.0 - cost(after) / cost(p));
    let as_many = ours.is_some_and(|p| p.replicas == after.replicas);
    let still = kept.holds.does() && as_many && ours.is_some_and(|p| p.index == after.index);
    let best = match alike {
        _ if still => return and(says("still_best")),
        Alike::Unit if as_many => says("layout_still_best").with("in_flight", after.concurrency_per_group),
        Alike::Unit => {
            says("best_in_replicas").with("replicas", after.replicas).with("before", ours.map(|p| p.replicas))
        }
        Alike::Layout if kept.holds == Holds::Retuned => {
            return and(says("layout_still_best").with("deployment", after.deployment.clone()));
        }
        _ => says("best_now").with("deployment", after.deployment.clone()),
    };
    let told = gain.filter(|g| g.abs() >= ALIKE);
    let best = best.with("alike", (gain.is_some() && told.is_none()).then_some(true));
    and(best.with("less", told.filter(|g| *g > 0.0)).with("more", told.filter(|g| *g < 0.0).map(f64::abs)))
}

/// What becomes of the deployment from before.
fn held(before: &Plan, kept: &Kept) -> Remark {
    // What breaks no limit and does not hold does not keep up with what comes.
    let broken = Some(kept.broken.clone()).filter(|broken| !broken.is_empty());
    let behind = broken.is_none().then_some(true);
    match (kept.holds, &kept.plan) {
        (Holds::AsIs, _) => says("holds_as_is"),
        (Holds::Scaled, Some(p)) => {
            let held = says("holds_with").with("replicas", p.replicas).with("before", before.replicas);
            held.with("broken", broken).with("behind", behind)
        }
        (Holds::Retuned, Some(p)) => {
            let held = says("holds_retuned").with("in_flight", p.concurrency_per_group).with("most", p.sequences);
            held.with("no_room", behind).with("broken", broken)
        }
        (Holds::Breaks, _) => says("does_not_hold").with("broken", broken).with("behind", behind),
        _ => says("cannot_run"),
    }
}

#[cfg(test)]
mod tests;
