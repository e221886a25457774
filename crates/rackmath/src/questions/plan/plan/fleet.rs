//! A fleet of unlike machines, joined by `+`: the traffic split among its parts, each at its own best deployment.
//!
//! Every part is asked what it serves when full, under the limits. Without a rate all are full, and a part's share is what it
//! serves of the whole. With one, the part whose tokens are best by the objective is filled first and the last takes what is
//! left, so that no part is paid for what a better one could serve. Hosts are paid whole, so that a part with dearer tokens
//! may still be the cheaper one: where dollars or chips are asked for, each part alone and the sets of a few parts are tried
//! too, and that is taken which is paid least. Requests are not passed on between parts.

use super::{Answer, Best, Plan, Request, answer_on};
use crate::desk::prelude::*;
use crate::frontier::users_and;
use crate::setting::common_basis;
use rackmath_theory::plan::Bound;

/// Most parts of a fleet.
const MOST: usize = 16;
/// Most parts of which every set is tried.
const SETS: usize = 4;

/// One kind of machine of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PartCard {
    /// As it was asked for.
    pub machine: String,
    /// Share of the traffic it takes.
    pub share: f64,
    /// Requests a second it takes.
    pub rate_per_s: f64,
    /// Requests a second it could take under the limits.
    pub most_per_s: f64,
    /// Its chips in use.
    pub chips: u64,
    /// Its dollars per hour.
    pub usd_per_hour: f64,
    /// Its deployment, by its place among the plans; none where it takes nothing.
    pub plan: Option<usize>,
    /// What binds it, or why it takes nothing.
    pub why: Remark,
}

/// A part that is full, or why it cannot be.
struct Full {
    machine: String,
    request: Request,
    answer: Answer,
}

impl Full {
    fn plan(&self) -> Option<&Plan> {
        self.answer.plans.first()
    }

    /// Requests a second.
    fn serves(&self, output: f64) -> f64 {
        self.plan().map_or(0.0, |p| p.throughput_tok_s / output)
    }

    /// The same in what the traffic is counted in: users ask again after the answer and a pause.
    fn holds(&self, output: f64, think: Option<f64>) -> f64 {
        let stay = think.map_or(1.0, |z| self.plan().map_or(0.0, |p| p.e2e_ms.value / 1e3 + z));
        self.serves(output) * stay
    }
}

/// The better of two: less is better.
fn score(best: Best, p: &Plan) -> f64 {
    match best {
        Best::Cost => p.usd_per_mtok.value,
        Best::Chips => 1.0 / p.tok_s_per_chip.value,
        Best::Energy => p.joules_per_token,
        Best::Latency => p.e2e_ms.value,
        Best::Throughput | Best::Goodput => -p.throughput_tok_s,
        Best::Speed => p.tpot_ms.value,
    }
}

pub(super) fn answer(catalog: &Catalog, r: &Request, effort: &Effort) -> Result<Answer, Error> {
    let parts = parts(catalog, r)?;
    let free =
        |part: &Request| Request { rate_per_s: None, users: None, think_s: None, headroom: None, ..part.clone() };
    let full = parts.into_iter().map(|(machine, request)| {
        // The fewest chips that do is no question to ask of a part that is full.
        let best = if r.objective == Best::Chips { Best::Throughput } else { r.objective };
        let mut alone = Request { objective: best, ..free(&request) };
        alone.draws.peak_over_mean = None;
        let answer = answer_on(catalog, &alone, effort.clone())?;
        Ok(Full { machine, request, answer })
    });
    let full: Vec<Full> = full.collect::<Result<_, Error>>()?;
    let output = full[0].answer.output();
    let (asked, think) = match (r.rate_per_s, r.users) {
        (Some(rate), _) => (Some(rate), None),
        (None, users) => (users, Some(r.think_s.unwrap_or(0.0)).filter(|_| users.is_some())),
    };
    // What has to be held: the peak, with what is kept free.
    let kept = r.draws.peak_over_mean.unwrap_or(1.0) / (1.0 - r.headroom.unwrap_or(0.0));
    let holds: Vec<f64> =
        full.iter().map(|f| f.holds(output, think) / if think.is_some() { 1.0 } else { kept }).collect();
    let ways = match asked {
        None => vec![holds.clone()],
        Some(asked) => ways(&full, &holds, asked, r),
    };
    let ask = |at: usize, share: f64| {
        let (rate, users) = if think.is_some() { (None, Some(share)) } else { (Some(share), None) };
        let request = Request { rate_per_s: rate, users, ..full[at].request.clone() };
        answer_on(catalog, &request, effort.clone())
    };
    let mut known: Vec<(usize, f64, Answer)> = Vec::new();
    let mut best: Option<(f64, Vec<f64>, Vec<Option<Answer>>)> = None;
    for shares in ways {
        let mut own = Vec::new();
        for (at, share) in shares.iter().copied().enumerate() {
            own.push(match known.iter().find(|(part, of, _)| *part == at && *of == share) {
                _ if share <= 0.0 => None,
                _ if asked.is_none() => Some(full[at].answer.clone()),
                Some((.., answer)) => Some(answer.clone()),
                None => {
                    let answer = ask(at, share)?;
                    known.push((at, share, answer.clone()));
                    Some(answer)
                }
            });
        }
        if own.iter().flatten().any(|a| a.plans.is_empty()) {
            continue;
        }
        let paid = own.iter().flatten().filter_map(|a| a.plans.first()).map(|p| paid(r, p).unwrap_or(0.0)).sum();
        if best.as_ref().is_none_or(|(least, ..)| paid < *least) {
            best = Some((paid, shares, own));
        }
    }
    let Some((_, shares, own)) = best else { return Ok(short(r, full, &holds, asked.unwrap_or_default())) };
    let all: f64 = shares.iter().sum();
    let mut made: Vec<(PartCard, Option<Answer>)> = Vec::new();
    for ((part, share), own) in full.into_iter().zip(&shares).zip(own) {
        let most_per_s = part.serves(output);
        let plan = own.as_ref().and_then(|a| a.plans.first());
        let idle = || if part.plan().is_none() { part.answer.verdict.clone() } else { says("part_idle") };
        let rate_per_s = plan.map_or(0.0, |p| p.throughput_tok_s / output);
        let card = PartCard {
            share: share / all,
            rate_per_s,
            // What is cheapest when full may be less than what is served when that is asked.
            most_per_s: most_per_s.max(rate_per_s),
            chips: plan.map_or(0, |p| p.chips),
            usd_per_hour: plan.map_or(0.0, |p| p.usd_per_hour),
            plan: None,
            why: plan.map_or_else(idle, |p| says("part_bound").with("by", &p.bound_by).with("why", p.why.clone())),
            machine: part.machine,
        };
        made.push((card, own));
    }
    Ok(joined(r, made, output))
}

/// What is paid for a part, where the least of that is asked for: dollars an hour, or chips, of whole hosts.
fn paid(r: &Request, p: &Plan) -> Option<f64> {
    match r.objective {
        Best::Cost if r.cost_usd_per_mtok.is_none() => Some(p.usd_per_hour),
        Best::Chips => Some(p.chips as f64),
        _ => None,
    }
}

/// The ways to share what is asked that are tried: all parts, the best first, and where what is paid counts each part alone
/// and every set of a few.
fn ways(full: &[Full], holds: &[f64], asked: f64, r: &Request) -> Vec<Vec<f64>> {
    let n = full.len();
    let mut ways: Vec<Vec<f64>> = split(full, holds, asked, r, |_| true).into_iter().collect();
    if full.iter().filter_map(Full::plan).any(|p| paid(r, p).is_none()) {
        return ways;
    }
    // Alone a part may serve more than the cheapest of its deployments does when full.
    let alone = (0..n).filter(|at| full[*at].plan().is_some());
    let alone = alone.map(|at| (0..n).map(|i| if i == at { asked } else { 0.0 }).collect());
    let sets = (1..1_u32 << n.min(SETS)).filter(|_| n <= SETS);
    let sets = sets.filter_map(|set| split(full, holds, asked, r, |at| set & (1 << at) != 0));
    for way in alone.chain(sets).collect::<Vec<_>>() {
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways
}

/// The machines by name, each with its question.
pub(super) fn parts(catalog: &Catalog, r: &Request) -> Result<Vec<(String, Request)>, Error> {
    let on = &r.setting.on;
    refuse_if(on.contains(','), "setting.on", on, "one fleet joined by +, or machines with commas to choose from")?;
    refuse_if(r.prefill_on.is_some(), "prefill_on", "a machine for prompts", "a fleet without one: parts are whole")?;
    let whole = [
        ("budget_usd_per_hour", r.budget_usd_per_hour),
        ("power_w", r.power_w),
        ("throughput_tok_s", r.throughput_tok_s),
    ];
    for (field, limit) in whole {
        let given = limit.unwrap_or_default();
        refuse_if(limit.is_some(), field, given, "limits on what users meet: those of a whole fleet are not split")?;
    }
    for limit in super::percentiles(r).into_iter().flatten() {
        let expected = "a limit on the mean, or one kind of machine: what the parts of a fleet meet is not simulated";
        refuse_if(true, "setting.on", format!("\"{on}\" with a limit of {limit}"), expected)?;
    }
    refuse_if(r.simulate, "simulate", "true", "one machine; `rackmath simulate` takes the whole fleet")?;
    let names: Vec<&str> = on.split('+').map(str::trim).collect();
    let sound = (2..=MOST).contains(&names.len()) && names.iter().all(|name| !name.is_empty());
    refuse_if(!sound, "setting.on", on, format!("2 to {MOST} machines joined by +, such as 8xh100+8xh200"))?;
    let mut setting = r.setting.clone();
    if setting.basis.is_none() && setting.price_usd_per_chip_hour.is_none() {
        setting.basis = common_basis(catalog, &names)?.map(|basis| basis.to_string());
    }
    let part = |name: &&str| {
        let setting = Setting { on: (*name).to_owned(), ..setting.clone() };
        ((*name).to_owned(), Request { setting, top: 1, ..r.clone() })
    };
    Ok(names.iter().map(part).collect())
}

/// How much of what is asked each part of a set takes, the best first; none where all together are not enough.
fn split(full: &[Full], holds: &[f64], asked: f64, r: &Request, set: impl Fn(usize) -> bool) -> Option<Vec<f64>> {
    let some = full.iter().enumerate().filter(|(at, _)| set(*at));
    let mut order: Vec<(f64, usize)> = some.filter_map(|(at, f)| Some((score(r.objective, f.plan()?), at))).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut left, mut shares) = (asked, vec![0.0; full.len()]);
    for (_, at) in order {
        // Users are whole; what a part is full with is enough, whatever the last bit says.
        let most = if r.users.is_some() { holds[at].floor() } else { holds[at] };
        shares[at] = left.min(most);
        left -= shares[at];
    }
    (left <= asked * 1e-9).then_some(shares)
}

/// The answer where the parts together are not enough.
fn short(r: &Request, full: Vec<Full>, holds: &[f64], asked: f64) -> Answer {
    let most: f64 = holds.iter().sum();
    let because = full.iter().zip(holds).map(|(f, holds)| {
        let said = says("part_holds").with("machine", &f.machine).with("most", *holds);
        said.with("users", r.users.is_some())
            .with("rate", r.users.is_none())
            .with("why", f.plan().is_none().then(|| f.answer.verdict.clone()))
    });
    let because: Vec<Remark> = because.collect();
    let mut answer = base(r, full.iter().map(|f| &f.answer));
    answer.verdict = says("fleet_short").with("most", most).with("asked", asked);
    answer.verdict = answer.verdict.with("users", r.users.is_some()).with("rate", r.users.is_none());
    answer.because = because;
    answer
}

/// What the answers of the parts share, with nothing chosen.
fn base<'a>(r: &Request, parts: impl Iterator<Item = &'a Answer> + Clone) -> Answer {
    let first = parts.clone().next().expect("a fleet has parts");
    let paid = first.plans.first().is_some_and(|p| paid(r, p).is_some()) && (r.rate_per_s.or(r.users)).is_some();
    let mut assumptions = vec![says("fleet_split").with("paid", paid)];
    for line in parts.clone().flat_map(|a| &a.assumptions) {
        if !assumptions.contains(line) {
            assumptions.push(line.clone());
        }
    }
    let traffic = match (r.rate_per_s, r.users) {
        (Some(rate), _) => says("requests_per_second").with("rate", rate),
        (None, Some(users)) => says("some_users").with("users", users).with("think", r.think_s.filter(|s| *s > 0.0)),
        (None, None) => says("fleet_filled"),
    };
    let workload = first.workload.clone().with("traffic", traffic);
    let title = says("users_and_chips").with("model", &first.model);
    Answer {
        systems: parts.clone().flat_map(|a| a.systems.clone()).collect(),
        configurations: parts.clone().map(|a| a.configurations).sum(),
        layouts: parts.clone().map(|a| a.layouts).sum(),
        layouts_that_fit: parts.clone().map(|a| a.layouts_that_fit).sum(),
        objective: r.objective,
        plans: Vec::new(),
        relaxations: Vec::new(),
        part_of_host: None,
        shadow_prices: Vec::new(),
        frontier: Vec::new(),
        figure: Figure::of(title, workload.clone(), users_and(false), None),
        workload,
        assumptions,
        because: Vec::new(),
        // Chips on offer are each part's own.
        limits: first
            .limits
            .iter()
            .filter(|l| l.with.get("bound") != Some(&Bound::Chips.name().into()))
            .cloned()
            .collect(),
        simulated: None,
        ..first.clone()
    }
}

fn joined(r: &Request, made: Vec<(PartCard, Option<Answer>)>, output: f64) -> Answer {
    let mut answer = base(r, made.iter().filter_map(|(_, a)| a.as_ref()));
    for (mut card, own) in made {
        if let Some(plan) = own.and_then(|a| a.plans.into_iter().next()) {
            card.plan = Some(answer.plans.len());
            answer.plans.push(plan);
        }
        answer.parts.push(card);
    }
    let tokens: f64 = answer.parts.iter().map(|p| p.rate_per_s * output).sum();
    let usd: f64 = answer.parts.iter().map(|p| p.usd_per_hour).sum();
    let share = |p: &PartCard| says("part_share").with("machine", &p.machine).with("share", p.share);
    let shares: Vec<Remark> = answer.parts.iter().map(share).collect();
    let worst = |of: fn(&Plan) -> f64| answer.plans.iter().map(of).fold(0.0, f64::max) / 1e3;
    let mut kinds: Vec<&str> = Vec::new();
    for kind in answer.plans.iter().map(|p| p.price_kind.as_str()) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    answer.verdict = says("fleet_verdict")
        .with("shares", shares)
        .with("rate", tokens / output)
        .with("chips", answer.parts.iter().map(|p| p.chips).sum::<u64>())
        .with("cost", (usd > 0.0).then(|| DollarsPerToken::per_mtok(usd / 3600.0 / tokens * 1e6)))
        .with("basis", kinds)
        .with("ttft", worst(|p| p.ttft_ms.value))
        .with("tpot", worst(|p| p.tpot_ms.value));
    answer
}
