//! Systems, models or engines side by side under one workload: the best plan of each, who wins on what, and at which price
//! per chip the cheapest changes.
//!
//! $$ p_k^{*} = p_k \, \frac{c_w}{c_k} $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | p_k | usd_per_chip_hour | $/h | price of a chip of machine k |
//! | c_k, c_w | usd_per_mtok | $/Mtok | cost of its best plan, and of the cheapest other machine's |
//!
//! The cost of a plan is proportional to the price of its chips, so the best of one machine does not depend on its price and
//! the flip is exact. Ignores: a budget in dollars per hour, under which a dearer chip may have another plan.

#[cfg(test)]
mod tests;

pub use crate::frontier::Request;

use crate::desk::evidence::Scale;
use crate::desk::prelude::*;
use crate::extent::Extent;
use crate::frontier::{self, Curve};
use crate::plan::{self, Plan, Relaxation, Worked};
use crate::sides::{
    Measure, common, decider, kinds_differ, like_with_like, price_words, questions, too_close, unranked,
};

/// Plans side by side.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// What the columns differ in: `systems`, `models` or `engines`.
    pub over: String,
    /// What is made best.
    pub objective: plan::Best,
    /// Traffic and lengths of all.
    pub workload: Remark,
    /// Limits that all have.
    pub limits: Vec<Remark>,
    /// As asked for.
    pub columns: Vec<Column>,
    /// Who wins on what.
    pub wins: Vec<Win>,
    /// Prices at which the cheapest machine changes; of machines only.
    pub flips: Vec<Flip>,
    /// In a sentence.
    pub verdict: Remark,
    /// Frontiers over each other: tokens per chip against tokens per user.
    pub figure_chip: Figure,
    /// Dollars per million tokens against tokens per user, where prices are known.
    pub figure_dollar: Option<Figure>,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Column {
    /// Traffic and lengths.
    pub workload: Remark,
    /// Its best plan; none when nothing meets the limits.
    pub plan: Option<Plan>,
    /// In a sentence.
    pub verdict: Remark,
    /// What would do if a single limit were moved, when nothing meets them all.
    pub relaxations: Vec<Relaxation>,
    /// What kind of price its chips have.
    pub price_basis: String,
    /// What its power counts.
    pub power_basis: String,
    /// Its numbers, with ratios to the first column.
    pub numbers: Vec<Number>,
    /// What it is, and its frontier.
    pub curve: Curve,
}

/// One number of a column.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Number {
    /// Which.
    pub measure: Measure,
    /// The number, with its interval where it has one.
    pub value: Range,
    /// Over that of the first column that has a plan, with the interval of the ratio.
    pub ratio: Option<Range>,
}

/// Who is best in one respect.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Win {
    /// Which.
    pub measure: Measure,
    /// Who.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Who comes second.
    pub next: String,
    /// By which factor the second is worse.
    pub by: f64,
    /// The factor that 80 % of such ratios lie within.
    pub within: f64,
    /// Whether the two cannot be told apart.
    pub too_close: bool,
    /// The run that would tell them apart, where they cannot be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decides: Option<Remark>,
}

/// A price at which the cheapest changes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Flip {
    /// Whose chip.
    pub name: String,
    /// Its price now.
    pub now_usd_per_chip_hour: f64,
    /// The price at which it costs what the cheapest other does, with its interval.
    pub flips_at_usd_per_chip_hour: Range,
    /// The other.
    pub against: String,
    /// Whether it is the cheapest now, and loses above the price; else it wins below it.
    pub cheapest_now: bool,
}

/// What the plans would have to look through.
pub fn extent(catalog: &Catalog, r: &Request) -> Result<Extent, Error> {
    let (_, questions) = questions(&r.plan, &r.systems, &r.models, &r.engines)?;
    crate::extent::sum(questions.iter().map(|(_, question)| plan::extent(catalog, question)))
}

/// Answers on so many threads; the answer is the same.
pub fn answer_on(catalog: &Catalog, r: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let effort = &effort.into();
    let (over, mut questions) = questions(&r.plan, &r.systems, &r.models, &r.engines)?;
    like_with_like(catalog, &mut questions)?;
    let mut columns: Vec<Column> = Vec::new();
    let (mut limits, mut assumptions) = (Vec::new(), Vec::new());
    for (name, question) in questions {
        let worked = Worked::any(catalog, &question, effort)?;
        let a = worked.met(worked.answer()?)?;
        if columns.is_empty() {
            limits.clone_from(&a.limits);
        }
        limits.retain(|limit| a.limits.contains(limit));
        for line in &a.assumptions {
            if !assumptions.contains(line) {
                assumptions.push(line.clone());
            }
        }
        let (price_basis, power_basis) = worked.bases();
        columns.push(Column {
            price_basis,
            power_basis: power_basis.into(),
            workload: a.workload,
            plan: a.plans.into_iter().next(),
            verdict: a.verdict,
            relaxations: a.relaxations,
            numbers: Vec::new(),
            curve: frontier::curve(name, &worked, a.frontier),
        });
    }
    let scale = Scale::of(catalog)?;
    number(&mut columns, &scale);
    let prices = kinds_differ(columns.iter().map(|c| c.price_basis.as_str()));
    let powers = kinds_differ(columns.iter().map(|c| c.power_basis.as_str()));
    let powers = powers.map(|kinds| says("powers_differ").with("kinds", kinds));
    assumptions.splice(0..0, powers.into_iter().chain(prices.map(|kinds| says("prices_differ").with("kinds", kinds))));
    let wins = wins(&columns, &scale);
    let ranked = unranked(columns.iter().map(|c| c.price_basis.as_str())).is_none();
    let flips = if over == "systems" && ranked { flips(&columns, &scale) } else { Vec::new() };
    let curves: Vec<Curve> = columns.iter().map(|c| c.curve.clone()).collect();
    let title = frontier::title(over, &curves);
    let workload = common(columns.iter().map(|c| &c.workload));
    let drawn =
        |dollars: bool| frontier::figure(&curves, title.clone(), workload.clone(), dollars, marks(&columns, dollars));
    Ok(Answer {
        over: over.into(),
        objective: r.plan.objective,
        limits,
        verdict: verdict(&columns, &wins, &r.plan.engines),
        figure_chip: drawn(false),
        figure_dollar: frontier::priced(&curves).then(|| drawn(true)),
        workload,
        columns,
        wins,
        flips,
        assumptions,
    })
}

fn number(columns: &mut [Column], scale: &Scale) {
    let first = columns.iter().find_map(|c| c.plan.clone());
    for column in columns {
        let Some(plan) = &column.plan else { continue };
        let of = |measure: Measure| {
            let value = measure.of(plan)?;
            let ratio = |first: &Plan| {
                let base = measure.of(first).filter(|b| b.value > 0.0)?;
                Some(Range::of(value.value / base.value, measure.apart(scale, plan, first)))
            };
            Some(Number { measure, value, ratio: first.as_ref().and_then(ratio) })
        };
        column.numbers = Measure::ALL.iter().copied().filter_map(of).collect();
    }
}

/// The columns with a plan, best first; of equals the one asked for first.
fn ranked(columns: &[Column], measure: Measure) -> Vec<(&Column, Range)> {
    let Some(more) = measure.more_is_better() else { return Vec::new() };
    let of = |c: &Column| c.plan.as_ref().and_then(|p| measure.of(p));
    let mut all: Vec<(&Column, Range)> = columns.iter().filter_map(|c| Some((c, of(c)?))).collect();
    all.sort_by(|a, b| if more { b.1.value.total_cmp(&a.1.value) } else { a.1.value.total_cmp(&b.1.value) });
    all
}

fn wins(columns: &[Column], scale: &Scale) -> Vec<Win> {
    let power = |m: Measure| matches!(m, Measure::PowerKw | Measure::JoulesPerToken);
    let win = |measure: Measure| {
        // Nor is a contract held against what is paid by the hour.
        let dollars = matches!(measure, Measure::UsdPerMtok | Measure::UsdPerHour);
        if dollars && unranked(columns.iter().map(|c| c.price_basis.as_str())).is_some() {
            return None;
        }
        // A chip's power is not held against a chip's with its share of host and cooling.
        if power(measure) && columns.iter().any(|c| c.power_basis != columns[0].power_basis) {
            return None;
        }
        let all = ranked(columns, measure);
        let [(best, value), (next, other), ..] = &all[..] else { return None };
        let by = (value.value / other.value).max(other.value / value.value);
        let (a, b) = (best.plan.as_ref()?, next.plan.as_ref()?);
        let width = measure.apart(scale, a, b);
        let close = too_close(value.value, other.value, width);
        Some(Win {
            measure,
            name: best.curve.name.clone(),
            value: value.value,
            next: next.curve.name.clone(),
            by,
            within: float::exp(width),
            too_close: close,
            decides: if close && by > 1.0 { decider(a.evidence.as_ref(), b.evidence.as_ref()) } else { None },
        })
    };
    Measure::ALL.iter().copied().filter_map(win).collect()
}

fn flips(columns: &[Column], scale: &Scale) -> Vec<Flip> {
    let all = ranked(columns, Measure::UsdPerMtok);
    let ([(cheapest, least), (next, second), ..], true) = (&all[..], all.len() > 1) else { return Vec::new() };
    let flip = |(column, cost): &(&Column, Range)| {
        let first = column.curve.name == cheapest.curve.name;
        let (against, other) = if first { (next, second) } else { (cheapest, least) };
        let now = column.plan.as_ref().map_or(0.0, |p| p.usd_per_hour / p.chips as f64);
        let both = column.plan.as_ref().zip(against.plan.as_ref());
        let width = both.map_or(0.0, |(a, b)| Measure::UsdPerMtok.apart(scale, a, b));
        Flip {
            name: column.curve.name.clone(),
            now_usd_per_chip_hour: now,
            flips_at_usd_per_chip_hour: Range::of(other.value / cost.value, width).times(now),
            against: against.curve.name.clone(),
            cheapest_now: first,
        }
    };
    all.iter().map(flip).collect()
}

fn marks(columns: &[Column], dollars: bool) -> Vec<Mark> {
    let mark = |c: &Column| {
        let p = c.plan.as_ref()?;
        // The staircase has the cost of full replicas; so does the mark.
        let full = p.tok_s_per_chip.value;
        let y = if dollars { p.usd_per_hour / p.chips as f64 / 3600.0 / full * 1e6 } else { full };
        Some(Mark::at(p.tok_s_per_user.value, y, &c.curve.name))
    };
    columns.iter().filter_map(mark).collect()
}

fn verdict(columns: &[Column], wins: &[Win], engines: &[String]) -> Remark {
    let without = || columns.iter().filter(|c| c.plan.is_none());
    let of = |ids: &'static [&'static str], holds: bool| {
        let all = without().filter(move |c| ids.contains(&&*c.verdict.says) == holds).map(|c| c.curve.name.as_str());
        Some(all.collect::<Vec<_>>()).filter(|names| !names.is_empty())
    };
    // Who has no plan, by what stands in the way: engine or context, memory, or the limits.
    let barred = without().filter(|c| c.verdict.says == "not_possible").map(|c| {
        let why = c.verdict.with.get("why").cloned();
        why.into_iter().fold(says("side_barred").with("name", &c.curve.name), |said, why| said.with("why", why))
    });
    let barred = Some(barred.collect::<Vec<_>>()).filter(|all| !all.is_empty());
    let because = |said: Remark| {
        let said = said.with("barred", barred.clone()).with("small", of(&["nothing_fits"], true));
        said.with("none", of(&["not_possible", "nothing_fits"], false))
    };
    let main = wins.iter().find(|w| w.measure == Measure::UsdPerMtok).or_else(|| wins.first());
    match (columns.iter().find(|c| c.plan.is_some()), main) {
        (None, _) if columns.iter().all(|c| c.verdict.says == "not_possible") => says("none_runs"),
        (None, _) => because(says("none_meets")),
        (Some(only), _) if without().count() + 1 == columns.len() => {
            let said = says("only_one").with("name", &only.curve.name).with("verdict", only.verdict.clone());
            // Nobody stands beside it: what was listed may have been meant to.
            let choices = (columns.len() == 1 && engines.len() > 1).then(|| engines.to_vec());
            because(
                said.with("alone", (columns.len() == 1 && choices.is_none()).then_some(true)).with("engines", choices),
            )
        }
        (_, Some(w)) => {
            let on = says(if w.too_close { "too_close_to_call" } else { "wins_on" }).with("measure", w.measure.name());
            let kinds: Vec<&str> = columns.iter().map(|c| c.price_basis.as_str()).collect();
            let dollars = w.measure == Measure::UsdPerMtok;
            let on = on.with("basis", dollars.then(|| price_words(&kinds)));
            let on = on.with("unranked", unranked(kinds.into_iter()).map(|kinds| price_words(&kinds)));
            let on = on.with("name", &w.name).with("next", &w.next).with("by", w.by).with("within", w.within);
            because(on.with("run", w.decides.as_ref()))
        }
        (_, None) => says("nothing_to_compare"),
    }
}
