//! Solves for the unknown: the largest load, the longest prompt or the cheapest machine at which a deployment meets its targets.
//!
//! $$ k^* = \max\{k : \forall\, j \le k\;\; \mathrm{meets}(j)\} \qquad N = c + \lambda(c)\,Z $$
//!
//! | symbol | code | unit | meaning |
//! |--------|------|------|---------|
//! | k | at | requests, users, tokens, requests per second | what is looked for, in whole steps |
//! | meets | [`Point::meets`] | - | it fits, is served, every target holds, and nobody waits for memory unless a target on first tokens or whole requests says how long |
//! | N, c, λ, Z | users, load, rate, think | 1, 1, 1/s, s | users, requests in flight, requests per second, seconds between an answer and the next request |
//!
//! Passes are padded and prompts are cut into chunks, so that a larger load may do better than a smaller one. The largest is
//! meant such that **every smaller one meets the targets too**: a server that is limited to k requests meets any number up to
//! k. A larger one that meets them again, after one that does not, is mentioned. Of means every number is asked, up to
//! [`EVERY`]; above it, and where requests wait for memory (their wait grows with each), by halving. Where each point is a
//! simulation (rates, users, percentiles) the answer is found by halving: it meets the targets and the next step does not.
//! Rates go in steps of the third digit of what is served when always full. A machine is paid for as a whole.
//! Source: ours; J. D. C. Little 1961; the response time law of closed systems.

use super::met::Met;
use super::words::{means, overloaded, reached};
use super::work::{Ask, Case};
use super::{Answer, Request};
use crate::desk::prelude::*;
use crate::layout::DegreesRequest;
use crate::setting::{common_basis, with_price};
use crate::simulate::What;
use rackmath_theory::pools::{Loading, Outcome, Serving};
use rackmath_theory::steady::Requests;

/// Numbers that are asked one by one; where prompts have chips of their own, each is a balance of two pools.
const EVERY: f64 = 32_768.0;
const EVERY_BALANCE: f64 = 2_048.0;
/// Where a search ends.
const MOST: f64 = 1e7;
const MOST_TOKENS: f64 = 16_777_216.0;
/// Most machines of a list.
const MACHINES: usize = 32;

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Unknown {
    /// The largest number of requests in flight.
    Concurrency,
    /// The largest number of requests per second, at random.
    Rate,
    /// The largest number of users who think between requests.
    Users,
    /// The longest prompt, in tokens.
    Context,
    /// The cheapest machine of several, with commas between them.
    Machine,
}

impl Unknown {
    /// Whether it is a load, so that the answer is the largest one.
    pub(super) fn is_load(self) -> bool {
        matches!(self, Self::Concurrency | Self::Rate | Self::Users)
    }
}

/// Users as a load, and what is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Seek {
    /// Users instead of requests in flight: each asks again some time after the last token of an answer.
    pub users: Option<f64>,
    /// Time a user takes between an answer and the next request; none unless given.
    pub think_s: Option<f64>,
    /// What to solve for, such that the targets are met.
    pub solve: Option<Unknown>,
}

impl Seek {
    /// Users and their pause.
    pub(super) fn load(&self) -> Result<Option<(f64, f64)>, Error> {
        let think = within("think_s", self.think_s.unwrap_or(0.0), 0.0, 1e8)?;
        let users = if_given("users", self.users, 1.0, MOST)?;
        let stray = self.think_s.is_some() && users.is_none() && self.solve != Some(Unknown::Users);
        refuse_if(stray, "think_s", think, "users as well, or --solve users")?;
        Ok(users.map(|users| (users.round(), think)))
    }
}

/// What was looked for, and what was found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Solved {
    /// What was looked for.
    pub unknown: Unknown,
    /// The answer; nothing where not even the least meets the targets. Of machines, the place in the list.
    pub value: Option<f64>,
    /// In a sentence.
    pub verdict: Remark,
    /// What stands in the way of more.
    pub binds: Option<Remark>,
    /// How it was found.
    pub how: Remark,
    /// To what step it is exact.
    pub step: f64,
    /// What is met there; where nothing is found, at the least.
    pub at: Option<Point>,
    /// What is met a step further; nothing where the search ended before.
    pub next: Option<Point>,
    /// The first larger one found that meets the targets again, after some that do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<f64>,
    /// The machines, cheapest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineCard>,
}

/// One point of the search.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// Where.
    pub at: f64,
    /// Whether the targets are met.
    pub meets: bool,
    /// Every target with what was reached.
    pub targets: Vec<Target>,
    /// Time to the first token, mean, waiting included; nothing where the queue grows or nothing fits.
    pub ttft_ms: Option<f64>,
    /// Time per output token, mean.
    pub tpot_ms: Option<f64>,
    /// Requests per second.
    pub requests_per_s: f64,
    /// Requests that wait for memory.
    pub waiting: f64,
    /// What is missed.
    pub misses: Vec<Remark>,
    #[serde(skip)]
    binds: Option<Remark>,
}

/// A target, and what was reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Target {
    /// On which time.
    pub what: What,
    /// On which percentile; the mean where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentile: Option<f64>,
    /// What was reached; nothing where it is not known.
    pub value_ms: Option<f64>,
    /// What is good enough.
    pub limit_ms: f64,
}

/// One machine of a list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MachineCard {
    /// As it was typed.
    pub on: String,
    /// Its name.
    pub machine: String,
    /// The layout on it.
    pub layout: String,
    /// Its chips.
    pub chips: u64,
    /// Dollars per hour of all of them, where known.
    pub usd_per_hour: Option<f64>,
    /// What is met there.
    pub point: Point,
}

impl Target {
    pub(super) fn holds(&self) -> bool {
        self.value_ms.is_some_and(|v| v <= self.limit_ms)
    }

    pub(super) fn missed(&self) -> &'static str {
        match self.what {
            What::Ttft => "ttft_missed",
            What::E2e => "e2e_missed",
            _ => "tpot_missed",
        }
    }

    fn field(&self) -> &'static str {
        match self.what {
            What::Ttft => "ttft_ms",
            What::E2e => "e2e_ms",
            _ => "tpot_ms",
        }
    }

    fn name(&self) -> &'static str {
        match self.what {
            What::Ttft => "ttft_name",
            What::E2e => "e2e_name",
            _ => "tpot_name",
        }
    }

    pub(super) fn words(&self) -> Remark {
        let target = says("target_of").with("percentile", self.percentile).with("mean", self.percentile.is_none());
        let target = target.with("what", says(self.name())).with("value", self.value_ms.map(|ms| ms / 1e3));
        target.with("unknown", self.value_ms.is_none()).with("limit", self.limit_ms / 1e3)
    }

    /// The same of one that is missed, and by how much: figures that are shown alike may lie on two sides of a target.
    fn miss(&self) -> Remark {
        let over = self.value_ms.map(|v| v / self.limit_ms - 1.0).filter(|over| *over < 0.01);
        // A share below what figures of three digits show says no more than that.
        let hair = over.filter(|over| *over < 5e-4);
        let said = says("target_missed").with("target", self.words());
        said.with("over", over.filter(|_| hair.is_none())).with("hair", hair)
    }
}

/// Answers what is solved for: the page is that of the solution.
pub(super) fn answer(catalog: &Catalog, request: &Request, unknown: Unknown, effort: &Effort) -> Result<Answer, Error> {
    let expected = format!("none: {} is what is looked for", <&str>::from(unknown));
    let given = match unknown {
        Unknown::Concurrency => [("concurrency", request.concurrency), ("rate_per_s", request.rate_per_s)],
        Unknown::Rate => [("rate_per_s", request.rate_per_s), ("concurrency", request.concurrency)],
        Unknown::Users => [("concurrency", request.concurrency), ("rate_per_s", request.rate_per_s)],
        Unknown::Context | Unknown::Machine => [("", None), ("", None)],
    };
    for (field, value) in given {
        refuse_if(value.is_some(), field, value.unwrap_or(0.0), &*expected)?;
    }
    let own = matches!(unknown, Unknown::Concurrency | Unknown::Rate | Unknown::Users);
    refuse_if(own && request.seek.users.is_some(), "users", request.seek.users.unwrap_or(0.0), &*expected)?;
    refuse_if(own && request.max_load, "max_load", "true", &*expected)?;
    let plain = Request { seek: Seek { solve: None, ..request.seek }, ..request.clone() };
    if unknown == Unknown::Machine {
        return machines(catalog, &plain, effort);
    }
    // Until users are known, one stands for them.
    let one = (unknown == Unknown::Users).then_some(1.0);
    let first = Request { seek: Seek { users: one.or(plain.seek.users), ..plain.seek }, ..plain.clone() };
    let first = if unknown == Unknown::Context { Request { isl: 1.0, ..first } } else { first };
    let case = Case::new(catalog, &first)?;
    if case.standing.bars(request.pretend) {
        return super::answer_on(catalog, &plain_of(&plain, &case, unknown, 1.0), effort);
    }
    let mut search = Search::new(case, unknown, effort)?;
    let plain = search.with_pools(plain);
    let mut solved = search.run()?;
    let at = solved.value.unwrap_or(search.step);
    let mut page = super::answered(catalog, &plain_of(&plain, &search.case, unknown, at), Some(unknown), effort)?;
    page.layout_chosen = search.case.chosen;
    solved.verdict = verdict(&solved);
    page.solved = Some(solved);
    Ok(page)
}

/// The request that asks for one point, with the layout fixed.
fn plain_of(request: &Request, case: &Case, unknown: Unknown, at: f64) -> Request {
    let degrees = case.ask.on.layout.degrees().into();
    let mut one = Request { degrees, flags: request.flags.clone().filter(|_| !case.chosen), ..request.clone() };
    match unknown {
        Unknown::Concurrency => one.concurrency = Some(at),
        Unknown::Rate => one.rate_per_s = Some(at),
        Unknown::Users => one.seek.users = Some(at),
        Unknown::Context => one.isl = at,
        Unknown::Machine => {}
    }
    one
}

/// A deployment that is asked at one point after another.
struct Search<'a> {
    case: Case<'a>,
    serving: Serving,
    unknown: Unknown,
    effort: &'a Effort,
    step: f64,
    /// The most that is looked at, in steps, and why no more.
    most: f64,
    end: Option<Remark>,
    /// Whether each point is a simulation.
    simulated: bool,
    tried: u64,
}

impl<'a> Search<'a> {
    fn new(mut case: Case<'a>, unknown: Unknown, effort: &'a Effort) -> Result<Self, Error> {
        let mut serving = case.ready(&case.ask)?;
        // Pools do not grow with what is looked for.
        let fixed = serving.balanced(&case.ask.requests);
        if let (Some(n), Some(split), Some(pool)) = (fixed, &mut case.ask.split, &mut serving.split) {
            (split.1, pool.instances) = (Some(n), Some(n));
        }
        let percentiles = case.limits().iter().flatten().any(|l| l.percentile.is_some());
        let waits = matches!(case.ask.load, Loading::Rate(_)) || case.ask.users.is_some();
        let simulated = percentiles || waits || unknown == Unknown::Rate;
        let (mut step, mut most, mut end) = (1.0, MOST, None);
        match unknown {
            Unknown::Rate => {
                (step, most) = rate_steps(&case, &serving, &case.ask.requests);
            }
            Unknown::Context => {
                let own = case.ask.on.model.shape().and_then(|s| s.context_max).filter(|_| !case.request.pretend);
                let output = case.ask.requests.output;
                most = own.map_or(MOST_TOKENS, |n| (n as f64 - output).floor().min(MOST_TOKENS)).max(1.0);
                end = own.map(|n| says("binds_positions").with("tokens", n));
            }
            _ => {}
        }
        Ok(Self { case, serving, unknown, effort, step, most, end, simulated, tried: 0 })
    }

    /// A request with the pools of the search.
    fn with_pools(&self, request: Request) -> Request {
        let chips = self.case.ask.split.and_then(|(layout, n)| Some(n? as u64 * layout.chips()));
        let pools = request.disaggregated.clone().map(|d| super::Disaggregated { prefill_chips: chips, ..d });
        Request { disaggregated: pools, ..request }
    }

    /// What is asked at a point.
    fn ask(&mut self, at: f64) -> Ask {
        let mut ask = self.case.ask.clone();
        match self.unknown {
            Unknown::Concurrency => ask.load = Loading::Concurrency(at),
            Unknown::Rate => ask.load = Loading::Rate(at),
            Unknown::Users => ask.users = ask.users.map(|(_, think)| (at, think)),
            Unknown::Context => ask.requests.input = at,
            Unknown::Machine => {}
        }
        if self.unknown == Unknown::Context {
            self.serving.measure(&ask.requests);
        }
        ask.settle(&self.serving);
        ask
    }

    /// The point after so many steps.
    fn point(&mut self, steps: f64) -> Result<Point, Error> {
        self.effort.cancel.check()?;
        self.tried += 1;
        let at = steps_of(steps, self.step);
        let ask = self.ask(at);
        let outcome = self.case.under(&self.serving, &ask.requests, ask.load);
        let met = self.case.met(&ask, &self.serving, &outcome, self.effort)?;
        Ok(point(&self.case, &ask, &self.serving, &outcome, &met, at))
    }

    fn meets(&mut self, steps: f64) -> Result<bool, Error> {
        if steps < 1.0 {
            return Ok(true);
        }
        if !self.simulated {
            // No words are made for a number that is passed by.
            self.effort.cancel.check()?;
            self.tried += 1;
            let ask = self.ask(steps);
            let outcome = self.case.under(&self.serving, &ask.requests, ask.load);
            return Ok(meets(&self.case, &ask, &outcome, &Met::Unasked));
        }
        Ok(self.point(steps)?.meets)
    }

    /// The last in a row that meets, between one that does and one that does not.
    fn halve(&mut self, mut yes: f64, mut no: f64) -> Result<f64, Error> {
        while no - yes > 1.0 {
            let middle = f64::midpoint(yes, no).floor();
            if self.meets(middle)? { yes = middle } else { no = middle }
        }
        Ok(yes)
    }

    /// From one that meets: further and further, until one does not, then halved.
    fn gallop(&mut self, from: f64, first: f64) -> Result<f64, Error> {
        // Whole steps: between a half and one and a half there is no whole number to halve at.
        let (mut yes, mut stride) = (from, first.max(1.0).floor());
        loop {
            let next = (yes + stride).min(self.most);
            if next <= yes {
                return Ok(yes);
            }
            if !self.meets(next)? {
                return self.halve(yes, next);
            }
            (yes, stride) = (next, stride * 2.0);
        }
    }

    /// The last of which every smaller one was asked and meets; whether all up to the limit do.
    fn row(&mut self, to: f64) -> Result<(f64, bool), Error> {
        let mut k = 1.0;
        while k <= to {
            if !self.meets(k)? {
                return Ok((k - 1.0, false));
            }
            k += 1.0;
        }
        Ok((to, true))
    }

    fn find(&mut self) -> Result<f64, Error> {
        if self.simulated {
            return if self.unknown == Unknown::Rate { self.halve(0.0, self.most) } else { self.gallop(0.0, 1.0) };
        }
        // Beyond what memory and the engine hold requests wait, each longer than the one before.
        let held = self.serving.main.server(self.serving.room).most() * self.serving.groups();
        let every = if self.serving.split.is_some() { EVERY_BALANCE } else { EVERY };
        let to = match self.unknown {
            Unknown::Context => every,
            _ => held.max(self.serving.groups()).ceil().min(every),
        };
        let (last, all) = self.row(to.min(self.most))?;
        if all { self.gallop(last, last / 8.0) } else { Ok(last) }
    }

    fn run(&mut self) -> Result<Solved, Error> {
        let found = self.find()?;
        let at = self.point(found.max(1.0))?;
        let next = if found < self.most { Some(self.point(found + 1.0)?) } else { None };
        let next = next.filter(|p| found >= 1.0 && !p.meets);
        let again = if self.simulated { None } else { self.again(found)? };
        let value = (found >= 1.0).then_some(at.at);
        if value.is_none() {
            known(&at)?;
        }
        let binds = match &next {
            Some(next) => next.binds.clone(),
            None if found >= self.most => self.end.clone(),
            None => at.binds.clone(),
        };
        let how = says(if self.simulated { "solved_by_halving" } else { "solved_one_by_one" });
        let how = how.with("tried", self.tried).with("runs", self.simulated);
        let (unknown, step, verdict) = (self.unknown, self.step, Remark::default());
        Ok(Solved { unknown, value, verdict, binds, how, step, at: Some(at), next, again, machines: Vec::new() })
    }

    /// The first larger one of a few that meets the targets.
    fn again(&mut self, found: f64) -> Result<Option<f64>, Error> {
        let mut k = (found + 2.0).max(2.0);
        while k <= self.most.min(8.0 * found.max(8.0)) {
            if self.meets(k)? {
                return Ok(Some(k * self.step));
            }
            k = (k * 1.1).ceil();
        }
        Ok(None)
    }
}

/// The step in which rates are looked through, and the number of steps at which nothing holds any more.
pub(super) fn rate_steps(case: &Case, serving: &Serving, requests: &Requests) -> (f64, f64) {
    let full = case.under(serving, requests, Loading::Full).rate.max(1e-6);
    let step = float::pow(10.0, (float::ln(full) / float::ln(10.0)).floor() - 2.0);
    (step, (full / step).ceil() + 1.0)
}

/// So many steps; rates are written as they are typed.
pub(super) fn steps_of(steps: f64, step: f64) -> f64 {
    if step < 1.0 { steps / (1.0 / step).round() } else { steps * step }
}

/// Refuses a percentile that cannot be known: a target is not missed for that.
fn known(at: &Point) -> Result<(), Error> {
    let unknown = at.targets.iter().find(|t| t.percentile.is_some() && t.value_ms.is_none());
    let Some(target) = unknown.filter(|_| at.ttft_ms.is_some()) else { return Ok(()) };
    let given = format!("p{}={} ms", significant(target.percentile.unwrap_or(0.0), 4), significant(target.limit_ms, 4));
    let expected = "a mean, such as 100ms: requests of this deployment cannot be simulated, and no percentile is known";
    Err(Error::value(target.field(), given, expected))
}

/// Whether nobody waits for memory, or a target says how long one may.
fn may_wait(case: &Case) -> bool {
    case.request.ttft_ms.is_some() || case.request.e2e_ms.is_some()
}

/// Whether as many are served as come.
pub(super) fn kept_up(case: &Case, outcome: &Outcome, met: &Met) -> bool {
    outcome.serves() && !overloaded(outcome, met) && (may_wait(case) || outcome.steady.waiting <= 0.0)
}

fn meets(case: &Case, ask: &Ask, outcome: &Outcome, met: &Met) -> bool {
    kept_up(case, outcome, met) && reached(case, &ask.requests, outcome, met).iter().all(Target::holds)
}

fn point(case: &Case, ask: &Ask, serving: &Serving, outcome: &Outcome, met: &Met, at: f64) -> Point {
    let targets = reached(case, &ask.requests, outcome, met);
    let stable = outcome.serves() && !overloaded(outcome, met);
    let [queue, first, token] = means(outcome, met);
    let groups = serving.groups();
    let (memory, engine) =
        (serving.room * groups, case.ask.on.engine.schedule.sequences * serving.main.deployment.stages() * groups);
    let holder = if memory <= engine { "binds_memory" } else { "binds_sequences" };
    let holds = says(holder).with("holds", memory.min(engine).floor());
    let waiting = outcome.steady.waiting * outcome.groups;
    let missed = targets.iter().filter(|t| !t.holds());
    let mut misses: Vec<Remark> = missed.clone().filter(|_| stable).map(Target::miss).collect();
    let mut binds = missed.clone().next().map(|t| says(t.name()).with("held", (waiting > 0.0).then(|| holds.clone())));
    if !outcome.fits {
        (misses, binds) = (vec![says("solve_no_room")], Some(says("binds_room")));
        if outcome.chips > serving.machine() {
            let said = says("solve_no_chips").with("chips", outcome.chips).with("machine", serving.machine());
            (misses, binds) = (vec![said], Some(says("binds_chips")));
        }
    } else if !stable {
        let served = case.under(serving, &ask.requests, Loading::Full).rate;
        misses.push(says("solve_overloaded").with("most", served));
        binds = Some(says("binds_rate").with("most", served));
    } else if waiting > 0.0 && !may_wait(case) {
        misses.push(says("solve_waits").with("waiting", waiting));
        binds = binds.or(Some(holds));
    }
    let shown = |ms: f64| stable.then_some(ms);
    let (ttft_ms, tpot_ms) = (shown(queue + first), shown(token));
    let (meets, requests_per_s) = (meets(case, ask, outcome, met), outcome.rate);
    Point { at, meets, targets, ttft_ms, tpot_ms, requests_per_s, waiting, misses, binds }
}

fn verdict(s: &Solved) -> Remark {
    let met = |p: &Point| p.targets.iter().map(Target::words).collect::<Vec<_>>();
    let name = |yes: &'static str, no: &'static str| if s.value.is_some() { yes } else { no };
    let said = says(match s.unknown {
        Unknown::Concurrency => name("solved_concurrency", "solved_concurrency_none"),
        Unknown::Rate => name("solved_rate", "solved_rate_none"),
        Unknown::Users => name("solved_users", "solved_users_none"),
        Unknown::Context => name("solved_context", "solved_context_none"),
        Unknown::Machine => name("solved_machine", "solved_machine_none"),
    });
    let said = said.with("value", s.value).with("step", s.step).with("again", s.again);
    let said = said.with("met", s.at.as_ref().filter(|_| s.value.is_some()).map(met));
    let said = said.with("misses", s.at.as_ref().filter(|_| s.value.is_none()).map(|p| p.misses.clone()));
    // Where no limit was given, a rate is one that is kept up with.
    let limited = s.at.as_ref().is_some_and(|p| !p.targets.is_empty());
    let said = said.with("limited", limited.then_some(0.0)).with("free", (!limited).then_some(0.0));
    let said = said.with("tokens", s.at.as_ref().map(|p| p.at));
    said.with("next", s.next.as_ref().map(|p| p.at)).with("why", s.next.as_ref().map(|p| p.misses.clone()))
}

/// Layouts to try on a machine: the usual one, and all its chips in equal groups.
fn layouts(request: &Request, chips: u64) -> Vec<DegreesRequest> {
    let own = request.degrees != DegreesRequest::default() || request.flags.is_some();
    let groups =
        (0..10).map(|i| 1u64 << i).take_while(|tp| *tp <= chips && !own).filter(|tp| chips.is_multiple_of(*tp));
    let cut = groups.map(|tp| DegreesRequest { tp: Some(tp), dp: Some(chips / tp), ..DegreesRequest::default() });
    std::iter::once(request.degrees.clone()).chain(cut).collect()
}

/// The cheapest machine of a list.
fn machines(catalog: &Catalog, request: &Request, effort: &Effort) -> Result<Answer, Error> {
    let list: Vec<&str> = request.setting.on.split(',').map(str::trim).filter(|on| !on.is_empty()).collect();
    let expected = format!(
        "2 to {MACHINES} machines with commas between them, such as h100,2xh100,8xh200; rackmath hardware looks through all"
    );
    refuse_if(!(2..=MACHINES).contains(&list.len()), "setting.on", &request.setting.on, expected)?;
    let basis = request.setting.basis.clone().or(common_basis(catalog, &list)?.map(|b| <&str>::from(b).to_owned()));
    let (mut rows, mut tried): (Vec<(MachineCard, Request)>, u64) = (Vec::new(), 0);
    for on in list {
        let priced = with_price(on).1.is_some() || request.setting.price_usd_per_chip_hour.is_some();
        let setting = Setting { on: on.into(), basis: basis.clone().filter(|_| !priced), ..request.setting.clone() };
        let usual = Request { setting, ..request.clone() };
        let chips = Case::new(catalog, &usual)?.found.system.n_chips;
        let mut best: Option<(MachineCard, Request)> = None;
        for (i, degrees) in layouts(request, chips).into_iter().enumerate() {
            let one = Request { degrees, ..usual.clone() };
            let found = at_machine(catalog, &one, effort);
            // Of the layouts tried here only the first must be legal.
            let Some(card) = (if i == 0 { Some(found?) } else { found.ok() }) else { continue };
            tried += 1;
            let over = |c: &MachineCard| {
                c.point.targets.iter().map(|t| t.value_ms.unwrap_or(f64::INFINITY) / t.limit_ms).fold(0.0, f64::max)
            };
            let key = |c: &MachineCard| (!c.point.meets, c.point.tpot_ms.is_none(), over(c));
            let better = best.as_ref().is_none_or(|(b, _)| key(&card) < key(b));
            let done = card.point.meets;
            if better {
                best = Some((card, one));
            }
            if done {
                break;
            }
        }
        rows.extend(best);
    }
    let hourly = |c: &MachineCard| c.usd_per_hour.unwrap_or(f64::INFINITY);
    rows.sort_by(|(a, _), (b, _)| hourly(a).total_cmp(&hourly(b)).then(a.chips.cmp(&b.chips)));
    let found = rows.iter().position(|(c, _)| c.point.meets);
    let over =
        |c: &MachineCard| c.point.targets.iter().filter_map(|t| Some(t.value_ms? / t.limit_ms)).fold(0.0, f64::max);
    let nearest = || {
        let served = rows.iter().enumerate().filter(|(_, (c, _))| c.point.tpot_ms.is_some());
        served.min_by(|(_, (a, _)), (_, (b, _))| over(a).total_cmp(&over(b))).map(|(i, _)| i)
    };
    let at = found.or_else(nearest).unwrap_or(rows.len() - 1);
    let mut page = super::answer_on(catalog, &rows[at].1, effort)?;
    let machines: Vec<MachineCard> = rows.into_iter().map(|(card, _)| card).collect();
    let chosen = &machines[at];
    let misses =
        |c: &MachineCard| says("machine_misses").with("machine", &*c.machine).with("misses", c.point.misses.clone());
    let cheaper: Vec<Remark> = machines[..found.map_or(0, |at| at)].iter().map(misses).collect();
    let said = says(if found.is_some() { "solved_machine" } else { "solved_machine_none" });
    let said = said.with("machine", &*chosen.machine).with("layout", &*chosen.layout);
    let said = said.with("usd", chosen.usd_per_hour.map(|usd| usd / 3600.0)).with("basis", basis.as_deref());
    let said = said.with("met", chosen.point.targets.iter().map(Target::words).collect::<Vec<_>>());
    let said =
        said.with("misses", chosen.point.misses.clone()).with("cheaper", cheaper).with("machines", machines.len());
    page.solved = Some(Solved {
        unknown: Unknown::Machine,
        value: found.map(|i| i as f64),
        verdict: said,
        binds: chosen.point.binds.clone(),
        how: says("solved_machines").with("tried", tried),
        step: 1.0,
        at: Some(chosen.point.clone()),
        next: None,
        again: None,
        machines,
    });
    Ok(page)
}

fn at_machine(catalog: &Catalog, request: &Request, effort: &Effort) -> Result<MachineCard, Error> {
    let mut case = Case::new(catalog, request)?;
    let serving = case.ready(&case.ask)?;
    case.ask.settle(&serving);
    let outcome = case.under(&serving, &case.ask.requests, case.ask.load);
    let barred = case.standing.bars(request.pretend);
    let met = if barred { Met::Unasked } else { case.met(&case.ask, &serving, &outcome, effort)? };
    let mut point = point(&case, &case.ask, &serving, &outcome, &met, 1.0);
    if let Some(refusal) = case.standing.refusal.as_ref().filter(|_| barred) {
        let (ttft_ms, tpot_ms, targets) = (None, None, Vec::new());
        let (misses, binds) = (vec![refusal.why.clone()], Some(refusal.why.clone()));
        point = Point { meets: false, misses, binds, ttft_ms, tpot_ms, targets, ..point };
    }
    let (system, chips) = (&case.found.system, case.found.system.n_chips.max(outcome.chips as u64));
    let usd = case.found.priced().then(|| case.found.chip_price.get() * 3600.0 * chips as f64);
    Ok(MachineCard {
        on: request.setting.on.clone(),
        machine: system.name.clone(),
        layout: crate::desk::cut::words(&case.found.model, &case.ask.on.layout),
        chips,
        usd_per_hour: usd,
        point,
    })
}

#[cfg(test)]
mod tests;
