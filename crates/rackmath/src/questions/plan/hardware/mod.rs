//! The best hardware for a workload: every chip of the catalogue that has a price, the same number of each, and where the
//! answer changes: with the speed users are promised, the traffic, the length of prompts and the price.
//!
//! Every chip gets its own best plan, so that none is judged by the deployment of another. Two that differ by less than the
//! uncertainty of their predictions are too close to call ([`crate::sides`]).

mod flip;
#[cfg(test)]
mod tests;

pub use flip::Flip;

use crate::desk::prelude::*;
use crate::extent::Extent;
use crate::frontier::{self, Curve};
use crate::plan::{self, Plan, Worked, in_order};
use crate::setting::machine;
use crate::sides::{Measure, decider, kinds_differ, price_words, too_close};
use crate::support::Verdict;
use rackmath_spec::{Basis, Chip};
use std::collections::BTreeSet;

/// A plan's question, asked of all chips.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Educe)]
#[educe(Default)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Model, workload, engines and limits; its machine does not count, its chips are how many of each are had, 8 unless
    /// given, 64 with a rate.
    #[schemars(extend("x-inner" = {"chips": {"x-most": [16, "chips of every kind searched"]}, "top": {"x-flag": false}, "chips_per_host": {"x-flag": false}, "replay": {"x-flag": false}, "simulate": {"x-flag": false}, "simulate_requests": {"x-flag": false}, "simulate_seed": {"x-flag": false}, "ttft_ms": {"description": "Mean time to first token, at most."}, "tpot_ms": {"description": "Mean time per output token, at most."}, "e2e_ms": {"description": "Mean time of a whole request, at most."}, "on": {"x-flag": false}}))]
    #[educe(Default = plan::Request::default())]
    pub plan: plan::Request,
    /// Chips or systems to choose from; all chips with a price when empty.
    #[schemars(extend("x-file" = "machine"))]
    pub among: Vec<String>,
    /// Whether to look for where the answer changes.
    #[educe(Default = true)]
    pub flips: bool,
}

/// Hardware, best first.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The model's name.
    pub model: String,
    /// Traffic and lengths; none where no candidate could be asked.
    pub workload: Option<Remark>,
    /// What it has to keep.
    pub limits: Vec<Remark>,
    /// What is made best.
    pub objective: plan::Best,
    /// Chips of each.
    pub chips: u64,
    /// Best first.
    pub rows: Vec<Row>,
    /// Those that cannot do it, and why.
    pub out: Vec<Out>,
    /// Where the winner changes.
    pub flips: Vec<Flip>,
    /// In a sentence.
    pub verdict: Remark,
    /// Frontiers of the best: dollars per million tokens, or tokens per chip, against tokens per user.
    pub figure: Figure,
    /// The same as points.
    pub curves: Vec<Curve>,
    /// What the numbers assume.
    pub assumptions: Vec<Remark>,
}

/// One kind of hardware.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// As it can be asked for with `--on`.
    pub name: String,
    /// Its best plan.
    pub plan: Plan,
    /// Dollars per chip and hour.
    pub usd_per_chip_hour: f64,
    /// What kind of price that is.
    pub price_basis: String,
    /// How many times the score of the best its own is, with the interval of the ratio.
    pub behind: Range,
    /// What kind of power its energy rests on.
    pub power_basis: String,
    /// Whether it cannot be told apart from the best.
    pub too_close: bool,
    /// The run that would tell it apart, where it cannot be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decides: Option<Remark>,
    /// The price of a chip at which it costs as much as the best, or for the best as the second; where cost decides.
    pub flips_at_usd_per_chip_hour: Option<f64>,
}

/// One that cannot do it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Out {
    /// As it can be asked for.
    pub name: String,
    /// Why.
    pub why: Remark,
}

/// A candidate worked out.
pub(crate) struct Candidate {
    name: String,
    request: plan::Request,
    worked: Worked,
    best: rackmath_theory::plan::Ranked,
}

/// Answers on so many threads; the answer is the same.
pub fn answer_on(catalog: &Catalog, r: &Request, effort: impl Into<Effort>) -> Result<Answer, Error> {
    let effort = &effort.into();
    let (mut base, chips) = offered(r);
    catalog.model(&base.setting.model)?;
    let (names, mut out) = names(catalog, &mut base, &r.among, chips)?;
    let tried = in_order(&names, effort, |name| Ok(candidate(catalog, &base, name, effort)))?;
    let mut all = Vec::new();
    let (mut refused, mut errors) = (None, 0);
    for (name, tried) in names.iter().zip(tried) {
        match tried {
            Ok(Ok(candidate)) => all.push(candidate),
            Ok(Err(why)) => out.push(Out { name: name.clone(), why }),
            // One that was asked for by name is refused with the reason; so is a question that no chip can be asked.
            Err(error) if !r.among.is_empty() || error.is_cancelled() => return Err(error),
            Err(error) => {
                out.push(Out { name: name.clone(), why: error.to_string().into() });
                errors += 1;
                refused.get_or_insert(error);
            }
        }
    }
    if let Some(error) = refused.filter(|_| all.is_empty() && errors == names.len()) {
        return Err(error);
    }
    let objective = objective(&all);
    let score = |c: &Candidate| c.worked.question.objective.score(&c.best.estimate);
    // Equal scores: the cheaper, then the name.
    let cost = |c: &Candidate| c.best.estimate.usd_per_mtok;
    all.sort_by(|a, b| score(a).total_cmp(&score(b)).then(cost(a).total_cmp(&cost(b))).then(a.name.cmp(&b.name)));
    let rows = rows(&all, objective);
    let flips = if r.flips && all.len() > 1 { flip::flips(catalog, &all, effort)? } else { Vec::new() };
    let shown = &all[..all.len().min(SHOWN)];
    let curve = |c: &Candidate| Ok(frontier::curve(c.name.clone(), &c.worked, c.worked.frontier()?));
    let curves: Vec<Curve> = shown.iter().map(curve).collect::<Result<_, Error>>()?;
    let first = all.first().map(|c| &c.worked);
    let (workload, limits) = first.map(|w| (w.workload(), w.limits())).unzip();
    let model = first.map_or_else(|| base.setting.model.clone(), |w| w.model().to_owned());
    Ok(Answer {
        verdict: verdict(&rows, &out, objective, chips),
        figure: frontier::figure(
            &curves,
            says("users_and_cost").with("model", &model),
            workload.clone().unwrap_or_default(),
            frontier::priced(&curves),
            Vec::new(),
        ),
        assumptions: assumptions(&all, &rows, objective),
        objective: r.plan.objective,
        model,
        workload,
        limits: limits.unwrap_or_default(),
        chips,
        rows,
        out,
        flips,
        curves,
    })
}

/// What it would have to look through, over all that can be had.
pub fn extent(catalog: &Catalog, r: &Request) -> Result<Extent, Error> {
    let (mut base, chips) = offered(r);
    let (names, _) = names(catalog, &mut base, &r.among, chips)?;
    let one = |name: &String| {
        let setting = Setting { on: name.clone(), ..base.setting.clone() };
        // What cannot be asked of a chip is no work.
        plan::extent(catalog, &plan::Request { setting, ..base.clone() }).unwrap_or_default()
    };
    let all = names.iter().map(one).sum::<Extent>().in_means();
    if !r.flips || names.len() < 2 {
        return Ok(all);
    }
    // Prompts of other lengths are prepared anew for the few that come first; speeds and traffic only ask what is there.
    let few = flip::CONTENDERS.min(names.len()) as f64 / names.len() as f64;
    let axes = 1.0 + f64::from(u8::from(r.plan.rate_per_s.is_some()));
    Ok(Extent { weighed: 0.0, ..all } * (1.0 + PREPARED * few)
        + Extent { weighed: all.weighed, ..Extent::default() } * (1.0 + ASKED * axes))
}

/// Places where all of it is prepared anew, and where it is only asked, to find where the answer changes, about.
const PREPARED: f64 = 25.0;
const ASKED: f64 = 30.0;

/// The plan's question with as many chips of each.
fn offered(r: &Request) -> (plan::Request, u64) {
    let chips = r.plan.setting.chips.unwrap_or(if r.plan.rate_per_s.is_some() { 64 } else { 8 });
    let mut base = r.plan.clone();
    base.setting.chips = Some(chips);
    (base, chips)
}

/// Frontiers drawn.
const SHOWN: usize = 6;

/// What can be had: by name, or every chip that has a price; and what is left out. Where dollars decide and no kind of price
/// is asked for, it is the one that most have: contracts and prices by the hour are not ranked together.
fn names(
    catalog: &Catalog,
    base: &mut plan::Request,
    among: &[String],
    chips: u64,
) -> Result<(Vec<String>, Vec<Out>), Error> {
    let mut all = Vec::new();
    for text in among {
        let (name, given) = machine(text)?;
        let chip = catalog.system(name)?.chip.clone();
        // A system keeps its name and its network; a chip is had so many times.
        let many = if chips > 1 && catalog.chip(name).is_ok() { format!("{chips}x{text}") } else { text.clone() };
        all.push((many, chip, given.is_some()));
    }
    if among.is_empty() {
        for id in catalog.ids(rackmath_spec::Kind::Chips) {
            let chip = catalog.chip(id)?;
            // Presets repeat the lecture's arithmetic; nobody sells them.
            if !id.starts_with("lecture-") && !chip.prices.is_empty() {
                all.push((if chips == 1 { id.to_owned() } else { format!("{chips}x{id}") }, chip, false));
            }
        }
    }
    let setting = &mut base.setting;
    if setting.basis.is_none() && setting.price_usd_per_chip_hour.is_none() && base.objective == plan::Best::Cost {
        let have = |basis: Basis| all.iter().filter(|(_, chip, given)| !given && chip.price(basis).is_some()).count();
        // Of equals the usual one.
        let most = Basis::USUAL.into_iter().rev().max_by_key(|basis| have(*basis)).filter(|basis| have(*basis) > 0);
        setting.basis = most.map(|basis| basis.to_string());
    }
    let basis = setting.basis.as_deref().map(str::parse::<Basis>).transpose()?;
    let (mut names, mut out) = (Vec::new(), Vec::new());
    if let Some(basis) = basis.filter(|basis| all.iter().all(|(_, chip, given)| !given && lacks(chip, *basis))) {
        return Err(nobody_sells(basis, all.iter().map(|(name, chip, _)| (name.as_str(), &**chip))));
    }
    for (name, chip, given) in all {
        match basis {
            Some(basis) if !given && lacks(&chip, basis) => {
                let has: Vec<&str> =
                    Basis::USUAL.into_iter().filter(|b| chip.price(*b).is_some()).map(Basis::words).collect();
                out.push(Out { name, why: says("no_such_price").with("basis", basis.words()).with("has", has) });
            }
            _ => names.push(name),
        }
    }
    Ok((names, out))
}

/// Whether a chip has prices, but none of this kind.
fn lacks(chip: &Chip, basis: Basis) -> bool {
    chip.price(basis).is_none() && !chip.prices.is_empty()
}

/// Refuses a kind of price that no chip has: no limit is to blame then.
fn nobody_sells<'a>(basis: Basis, chips: impl Iterator<Item = (&'a str, &'a Chip)> + Clone) -> Error {
    let has = |basis: &Basis| chips.clone().any(|(_, chip)| chip.price(*basis).is_some());
    let has: Vec<String> = Basis::USUAL.into_iter().filter(has).map(|basis| basis.to_string()).collect();
    let mut names = chips.clone().map(|(name, _)| name);
    let whose = match (names.next(), names.count()) {
        (Some(one), 0) => one.to_owned(),
        (_, more) => format!("any of these {} chips", more + 1),
    };
    let error = Error::said(format!("no {} price is known for {whose}", basis.words())).at("setting.basis");
    error.hint(format!("choose {}, or give prices, as in {{among}} h100@1.50,l4@0.30", has.join(" or ")))
}

/// A candidate, or why it cannot do it; an error where it cannot even be asked.
fn candidate(
    catalog: &Catalog,
    base: &plan::Request,
    name: &str,
    effort: &Effort,
) -> Result<Result<Candidate, Remark>, Error> {
    let request = plan::Request { setting: Setting { on: name.into(), ..base.setting.clone() }, ..base.clone() };
    let worked = Worked::new(catalog, &request, &effort.alone())?;
    Ok(match worked.best(&worked.question)? {
        Some(best) => Ok(Candidate { name: name.into(), request, worked, best }),
        None => Err(worked.why_none()),
    })
}

/// What the candidates are ranked by.
fn objective(all: &[Candidate]) -> Measure {
    all.first().map_or(Measure::UsdPerMtok, |c| Measure::made_best(c.worked.question.objective))
}

fn rows(all: &[Candidate], measure: Measure) -> Vec<Row> {
    let plans: Vec<Plan> = all.iter().map(|c| c.worked.plan(&c.best)).collect();
    let of = |p: &Plan| measure.of(p);
    let row = |(i, c): (usize, &Candidate)| {
        let plan = plans[i].clone();
        let price = plan.usd_per_hour / plan.chips as f64;
        let cost = |p: &Plan| p.usd_per_mtok.value;
        let other = plans.get(usize::from(i == 0));
        let (behind, close) = of(&plan).zip(of(&plans[0])).map_or(
            (Range { value: 1.0, low: 1.0, high: 1.0 }, false),
            // More is better for throughput: behind is then how many times the best has.
            |(mine, best)| {
                let more = measure.more_is_better() == Some(true);
                let width = measure.apart(c.worked.scale(), &plan, &plans[0]);
                let behind = if more { best.value / mine.value } else { mine.value / best.value };
                let width = if i > 0 { width } else { 0.0 };
                (Range::of(behind, width), i > 0 && too_close(mine.value, best.value, width))
            },
        );
        Row {
            name: c.name.clone(),
            usd_per_chip_hour: price,
            price_basis: c.worked.bases().0,
            power_basis: c.worked.bases().1.to_owned(),
            behind,
            too_close: close,
            decides: if close && behind.value > 1.0 {
                decider(plans[0].evidence.as_ref(), plan.evidence.as_ref())
            } else {
                None
            },
            flips_at_usd_per_chip_hour: other
                .filter(|o| measure == Measure::UsdPerMtok && cost(&plan) > 0.0 && cost(o) > 0.0)
                .map(|o| price * cost(o) / cost(&plan)),
            plan,
        }
    };
    all.iter().enumerate().map(row).collect()
}

fn verdict(rows: &[Row], out: &[Out], measure: Measure, chips: u64) -> Remark {
    let Some(best) = rows.first() else {
        // Limits are to blame only where something would serve without them; else the first that could be asked says why.
        let asked = || out.iter().map(|o| &o.why).filter(|why| why.says != "no_such_price");
        let why = asked().next().filter(|_| asked().all(|why| why.says != "limits_not_met"));
        let said = says(if why.is_some() { "no_hardware_runs" } else { "no_hardware" });
        return said.with("chips", chips).with("why", why);
    };
    let close: Vec<&str> = rows.iter().filter(|r| r.too_close).map(|r| r.name.as_str()).collect();
    let kinds: Vec<&str> = rows.iter().map(|r| r.price_basis.as_str()).collect();
    let basis = (measure == Measure::UsdPerMtok).then(|| price_words(&kinds));
    let powers = powers(rows, measure);
    let named = |id| {
        let said = says(id).with("name", &best.name).with("measure", measure.name()).with("basis", basis.clone());
        let [cost, hour] = [best.plan.usd_per_mtok.value, best.usd_per_chip_hour]
            .map(|x| Some(x).filter(|x| *x > 0.0 && basis.is_some()));
        let said = said
            .with("cost", cost.map(DollarsPerToken::per_mtok))
            .with("hour", hour.map(|x| DollarRate::checked(x / 3600.0)));
        said.with("powers", powers.clone())
    };
    let head = named("best_hardware");
    if close.is_empty() {
        return match rows.get(1) {
            Some(next) => head.with("next", &next.name).with("by", next.behind.value),
            None => head.with("alone", true),
        };
    }
    let level = rows.iter().all(|r| !r.too_close || r.behind.value == 1.0);
    let more = close.len().checked_sub(5).filter(|more| *more > 0);
    let few: Vec<&str> = close.into_iter().take(5).collect();
    let run = rows.iter().find_map(|r| r.decides.clone());
    if level {
        return head.with("level", few).with("more", more);
    }
    named("first_hardware").with("close", few).with("more", more).with("run", run)
}

/// Where energy decides and powers are of different kinds: the first of each kind, since only those of one kind compare.
fn powers(rows: &[Row], measure: Measure) -> Vec<Remark> {
    if measure != Measure::JoulesPerToken {
        return Vec::new();
    }
    let kinds: BTreeSet<&str> = rows.iter().map(|r| r.power_basis.as_str()).collect();
    let first = |kind: &&str| rows.iter().find(|r| r.power_basis == **kind);
    let one = |r: &Row| says("first_of_power").with("kind", &r.power_basis).with("name", &r.name);
    if kinds.len() > 1 { kinds.iter().filter_map(first).map(one).collect() } else { Vec::new() }
}

fn assumptions(all: &[Candidate], rows: &[Row], measure: Measure) -> Vec<Remark> {
    let mut lines = vec![says("every_chip"), says("shared_errors")];
    let prices = kinds_differ(rows.iter().map(|r| r.price_basis.as_str()));
    lines.extend(prices.map(|kinds| says("prices_ranked_differ").with("kinds", kinds)));
    let powers = kinds_differ(all.iter().map(|c| c.worked.bases().1));
    // Where energy decides, the verdict says so already.
    let powers = powers.filter(|_| measure != Measure::JoulesPerToken);
    lines.extend(powers.map(|kinds| says("powers_ranked_differ").with("kinds", kinds)));
    if let Some(first) = all.first() {
        // Prices and power stand in the table; the rest holds for all.
        lines.extend(first.worked.assumptions(false));
    }
    // Machines that are rented by the card stand beside others that are not: nobody sees that in a table of dollars.
    let given = all.first().is_some_and(|first| first.worked.traffic_is_given());
    for line in lines.iter_mut().filter(|line| given && line.says == "whole_hosts") {
        *line = says("whole_hosts_ranked");
    }
    let named = |verdict: Verdict| {
        let of = all.iter().filter(|c| c.worked.stands() == verdict).map(|c| c.name.as_str());
        Some(of.collect::<Vec<_>>()).filter(|names| !names.is_empty())
    };
    lines.extend(named(Verdict::Refused).map(|names| says("not_existing_some").with("names", names)));
    lines.extend(named(Verdict::Unknown).map(|names| says("support_unknown_on").with("names", names)));
    lines
}
