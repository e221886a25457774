//! Why a plan is what it is: which limits hold it, what each is worth, and what stands in the way where there is none.

use super::search::{Move, moves, unlimited};
use super::{Machine, Plan, Relaxation, Searched, Shadow, SpareCard, Sure, Worked};
use crate::desk::prelude::*;
use crate::estimate::Piece;
use crate::setting::PriceSource;
use crate::support::Verdict;
use rackmath_theory::plan::{Bound, Estimate, Near, Question, Ranked, Traffic};
use rackmath_theory::{count as parameters, kv};

impl Worked {
    /// What the family of a plan could do without limits, and which limits forbid it.
    pub(super) fn why(&self, r: &Ranked, best: Option<&Ranked>) -> Remark {
        let q = &self.question;
        let score = |e: &Estimate| q.objective.score(e);
        let (first, last) = (self.space.first(r.family), self.space.first(r.family + 1));
        let all = (first..last).filter_map(|i| self.space.estimate(i, q.output, unlimited(q.traffic)));
        let free = all.min_by(|a, b| score(a).total_cmp(&score(b)));
        let held = free.filter(|e| score(e) < score(&r.estimate)).map(|e| {
            let names: Vec<&str> = over(q, &e, Bound::ALL).map(Bound::name).collect();
            (names, score(&e))
        });
        let change = |now: f64, then: f64| ((now - then) / then).abs();
        let Some(best) = best.filter(|b| b.index != r.index) else {
            let Some((names, free)) = held else { return says("not_held_back") };
            // Where its means break no limit, what its users meet under their traffic does.
            let back = says(if names.is_empty() { "held_by_arrivals" } else { "held_back" });
            let back = back.with("limits", names).with("objective", self.ask.objective.to_string());
            return back.with("better", change(free, score(&r.estimate)));
        };
        let (mine, theirs) = (score(&r.estimate), score(&best.estimate));
        let behind =
            if mine == theirs { says("plan_level") } else { says("plan_behind").with("worse", change(mine, theirs)) };
        match held {
            Some((names, free)) if free < theirs => behind.with("but_for", names),
            Some((names, _)) => behind.with("also", names),
            None => behind.with("own_best", true),
        }
    }

    /// What keeps the best from being better where no limit holds back its own layouts: others that a limit forbids, or
    /// dollars or watts that leave no room for a further host.
    pub(super) fn held_by(&self, best: &Ranked, free: Option<&Ranked>) -> Option<Remark> {
        let (q, e) = (&self.question, &best.estimate);
        let score = |r: &Ranked| q.objective.score(&r.estimate);
        if let Some(free) = free.filter(|free| score(free) < score(best)) {
            let names: Vec<&str> = over(q, &free.estimate, Bound::ALL).map(Bound::name).collect();
            let better = ((score(free) - score(best)) / score(best)).abs();
            let said = says("others_held_back").with("deployment", self.words(free.index)).with("better", better);
            return (!names.is_empty())
                .then(|| said.with("limits", names).with("objective", self.ask.objective.to_string()));
        }
        let Traffic::Within { chips, usd_s, watts } = q.traffic else { return None };
        let host = (self.chosen(best.index).row.of.machine.bought_by as f64).max(e.unit_chips);
        let more = (e.chips + host) / e.chips;
        let full =
            [(Bound::UsdPerHour, e.usd_per_hour / 3600.0 > usd_s / more), (Bound::Watts, e.watts > watts / more)];
        let names: Vec<&str> = full.iter().filter(|(_, full)| *full).map(|(bound, _)| bound.name()).collect();
        let room = e.taken * more <= chips && !names.is_empty();
        room.then(|| says("no_further_host").with("limits", names).with("chips", host))
    }

    /// What carries the same on part of the hosts that are paid whole, for less where only that part is paid. Of what is simulated or made
    /// worse by its spread nothing is said: this is of means.
    pub(super) fn part_of_host(&self, s: &Searched) -> Option<Remark> {
        let (best, part) = (s.found.top.first()?, s.single.as_ref()?);
        let (paid, used) = (&best.estimate, &part.estimate);
        let less = used.chips < paid.chips && used.usd_per_hour < paid.usd_per_hour;
        if !less || self.on_percentiles() || self.predicted.is_some() {
            return None;
        }
        let said = says("part_of_host").with("chips", used.chips).with("paid", paid.chips);
        Some(said.with("cost", DollarsPerToken::per_mtok(used.usd_per_mtok)).with("deployment", self.several(part)))
    }

    /// A deployment, and how many of it.
    pub(super) fn several(&self, r: &Ranked) -> Remark {
        let (one, n) = (self.words(r.index), r.estimate.replicas);
        if n > 1.0 { says("several_of").with("replicas", n).with("deployment", one) } else { one }
    }

    /// Where no engine asked for runs any format asked for on any machine asked for.
    pub(super) fn not_possible(&self) -> Option<Remark> {
        let all = &self.ask.standings;
        let none = all.iter().all(|s| s.bars(self.ask.pretend));
        none.then(|| says("not_possible").with("why", all.first().and_then(|s| Some(s.refusal.as_ref()?.why.clone()))))
    }

    /// The worst of what is searched.
    pub(crate) fn stands(&self) -> Verdict {
        let all = self.ask.standings.iter().filter(|s| !s.bars(self.ask.pretend));
        all.map(|s| s.verdict).max().unwrap_or_default()
    }

    /// What is left out because no engine runs it, what runs otherwise, and what is not known.
    pub(crate) fn supported(&self) -> Vec<Remark> {
        let mut all: Vec<Remark> = Vec::new();
        if self.not_possible().is_some() {
            return all;
        }
        for s in &self.ask.standings {
            let out = s.refusal.iter().filter(|_| !self.ask.pretend).map(|r| says("left_out").with("why", &r.why));
            let many = self.ask.machines.iter().any(|m| m.chips > 1);
            let uncut = s.uncut().filter(|_| many && !self.ask.pretend).map(|why| says("left_out").with("why", why));
            let said = out.chain(s.pretended(self.ask.pretend)).chain(uncut).chain(s.remarks.iter().cloned());
            for said in said {
                if !all.contains(&said) {
                    all.push(said);
                }
            }
        }
        all
    }

    /// What a deployment takes of what a limit is on; of chips also how many are paid, where those are whole hosts and more.
    pub(super) fn taken(&self, n: &Near) -> (f64, Remark) {
        let taken = n.bound.amount(&n.ranked.estimate);
        let paid = Some(self.paid(n, taken)).filter(|paid| *paid > taken && n.bound == Bound::Chips);
        (taken, amount(n.bound, taken).with("paid", paid))
    }

    /// Chips in whole hosts, where those are bought.
    fn paid(&self, n: &Near, amount: f64) -> f64 {
        let machine = &self.chosen(n.ranked.index).row.of.machine;
        if machine.bought_by < 2 {
            return amount;
        }
        // In chips of the machine that offers most, as the limit is.
        let most = self.ask.machines.iter().map(|m| m.chips).max().unwrap_or(1) as f64;
        let host = machine.bought_by as f64 * most / machine.chips as f64;
        (amount / host * (1.0 - 1e-9)).ceil() * host
    }

    /// Whether limits on dollars and watts are kept when all of the chips are bought that the move takes: hosts are paid whole.
    pub(super) fn affords(&self, n: &Near) -> bool {
        let e = &n.ranked.estimate;
        let more = if n.bound == Bound::Chips { self.paid(n, e.chips) / e.chips } else { 1.0 };
        let all = Estimate {
            usd_per_hour: e.usd_per_hour * more,
            usd_per_mtok: e.usd_per_mtok * more,
            watts: e.watts * more,
            ..*e
        };
        let paid = [Bound::UsdPerHour, Bound::UsdPerMtok, Bound::Watts];
        over(&self.question, &all, &paid).all(|bound| bound == n.bound)
    }

    pub(super) fn relaxations(&self, near: &[Near]) -> Vec<Relaxation> {
        let q = &self.question;
        let one = |n: &Near| {
            let asked = q.limits.get(n.bound).filter(|_| self.affords(n))?;
            let (needed, said) = self.taken(n);
            Some(Relaxation {
                near: Some(*n),
                limit: n.bound.name().into(),
                asked: amount(n.bound, asked),
                needed: said,
                factor: needed / asked,
                by: self.several(&n.ranked),
            })
        };
        near.iter().filter_map(one).collect()
    }

    /// Instances of a cloud whose price is made of that of their chips.
    fn priced_by_chip(&self) -> Option<Vec<&str>> {
        let listed = self.ask.machines.iter().filter(|m| matches!(m.price_source, PriceSource::Listed(_)));
        Some(listed.filter_map(|m| m.instance.as_deref()).collect::<Vec<_>>()).filter(|names| !names.is_empty())
    }

    pub(super) fn verdict(&self, plans: &[Plan], relaxations: &[Relaxation]) -> Remark {
        if let Some(best) = plans.first() {
            let [ttft, tpot] = [best.ttft_ms, best.tpot_ms].map(|time| Seconds::ms(time.value));
            let cost = DollarsPerToken::per_mtok(best.usd_per_mtok.value);
            let size = says("plan_verdict").with("replicas", best.replicas).with("chips", best.chips_per_replica);
            let size = size
                .with("spare", best.spare.as_ref().map(SpareCard::words))
                .with("sure", best.sure.as_ref().map(Sure::words));
            let dear = self.question.limits.get(Bound::UsdPerMtok).map(DollarsPerToken::per_mtok);
            let size = size.with("within", dear).with("speed", dear.map(|_| best.tok_s_per_user.value));
            let size =
                size.with("cost", cost).with("basis", self.price_kinds()).with("instance", self.priced_by_chip());
            let always = best.mean_traffic.as_ref().map(|m| DollarsPerToken::per_mtok(m.usd_per_mtok_always_on));
            let size = size.with("always", always);
            return size.with("ttft", ttft).with("tpot", tpot);
        }
        if let Some(why) = self.not_possible() {
            return why;
        }
        if self.made.fit == 0 {
            let chips = self.ask.machines.iter().map(|m| m.chips).max().unwrap_or(0);
            let none = says("nothing_fits").with("layouts", self.made.layouts).with("chips", chips);
            return none.with("requests", self.ask.batch.unwrap_or(1.0));
        }
        let dear = |r: &&Relaxation| r.limit == Bound::UsdPerMtok.name();
        if let Some(cheapest) = relaxations.iter().find(dear) {
            let said = says("too_dear").with("asked", &cheapest.asked).with("least", &cheapest.needed);
            return said.with("by", &cheapest.by).with("basis", self.price_kinds());
        }
        let said = says(if relaxations.is_empty() { "no_single_move" } else { "single_moves" });
        if self.on_percentiles() && !self.traffic_is_given() { said.with("means", true) } else { said }
    }

    /// None where there is a plan, or where limits can be met one by one.
    pub(super) fn because(&self, s: &Searched) -> Vec<Remark> {
        if !s.found.top.is_empty() {
            return Vec::new();
        }
        if self.not_possible().is_some() {
            // The verdict says the first reason; what would do, and the others.
            let refusals = self.ask.standings.iter().filter_map(|s| s.refusal.as_ref());
            let mut all: Vec<Remark> = Vec::new();
            let would_do = |what: &Remark| says("would_do").with("what", what);
            let first = refusals.clone().next().map(|r| &r.why);
            let whys = refusals.clone().map(|r| &r.why).filter(|why| first != Some(*why)).cloned();
            let said = refusals.filter_map(|r| r.nearest.as_ref().map(would_do)).chain(whys);
            for said in said {
                if !all.contains(&said) {
                    all.push(said);
                }
            }
            return all;
        }
        if self.made.fit == 0 {
            return self.ask.machines.iter().filter_map(|m| self.memory(m)).collect();
        }
        s.floors.iter().map(|near| self.floor(near)).collect()
    }

    /// Weights and the cache of one request against what the chips hold.
    fn memory(&self, m: &Machine) -> Option<Remark> {
        let weights = parameters::count(&self.ask.model);
        let least = self.ask.formats.iter().map(|f| weights.stored_bytes(f).get()).min_by(f64::total_cmp)?;
        let held = Tokens::new(self.ask.requests.context());
        let kvs = self.ask.kvs.iter().map(|kv| kv.unwrap_or_else(|| self.ask.model.cache_dtype()));
        let cache = kvs.map(|kv| kv::cache(&self.ask.model, kv).stored(held).get()).min_by(f64::total_cmp)?;
        let used = self.ask.engines.iter().map(|e| e.usual_share().get()).max_by(f64::total_cmp)?;
        let one = m.system.chip.memory.size().get() * used;
        let chips = ((least + cache) / one).ceil();
        let short = chips > m.chips as f64;
        let wanted = says("memory_is_short").with("weights", least).with("tokens", held).with("cache", cache);
        let had = wanted.with("chips", m.chips).with("chip", &m.system.chip.name).with("room", one * m.chips as f64);
        Some(had.with("needed", short.then_some(chips)).with("cut", !short))
    }

    /// The least any deployment can do, and what takes the time.
    fn floor(&self, near: &Near) -> Remark {
        let choice = self.chosen(near.ranked.index);
        let e = &near.ranked.estimate;
        let least = says(if near.bound.at_least() { "ceiling" } else { "floor" }).with("bound", near.bound.name());
        let least = least.with("amount", self.taken(near).1).with("by", self.several(&near.ranked));
        if !matches!(near.bound, Bound::Tpot | Bound::E2e) {
            return least.with("binding", e.binding.name());
        }
        let n = choice.per_group;
        let step = self.step(&choice);
        let mut limits = step.limits.clone();
        limits.sort_by(|a, b| b.ms.total_cmp(&a.ms));
        let share = |l: &Piece| says("share_of").with("share", l.share).with("what", l.what.clone());
        let shares: Vec<Remark> = limits.iter().take(3).map(share).collect();
        let load = says("step_is").with("one", n == 1.0).with("requests", (n != 1.0).then_some(n));
        let [time, ideal] = [step.step_ms, step.ideal_ms].map(Seconds::ms);
        least.with("step", load.with("step", time).with("shares", shares).with("ideal", ideal))
    }
}

/// The best score with each limit, and the traffic, moved by a tenth.
pub(super) fn shadows(q: &Question, best: &Ranked, moved: &[Option<Ranked>]) -> Vec<Shadow> {
    let now = q.objective.score(&best.estimate);
    let change = |r: &Option<Ranked>| r.map(|r| (q.objective.score(&r.estimate) - now) / now.abs());
    let one = |(m, best): (Move, &[Option<Ranked>])| Shadow {
        limit: match m.bound {
            Some(bound) => limit(bound, m.asked),
            None => traffic(q.traffic),
        },
        tighter: best.first().and_then(change),
        looser: best.last().and_then(change),
    };
    moves(q).into_iter().zip(moved.chunks(2)).map(one).collect()
}

pub(super) fn traffic(traffic: Traffic) -> Remark {
    match traffic {
        Traffic::Rate(rate) => says("requests_per_second").with("rate", rate),
        Traffic::Users { users, think } => {
            says("some_users").with("users", users).with("think", Some(think).filter(|s| *s > 0.0))
        }
        Traffic::Fill(chips) => says("chips_filled").with("chips", chips),
        Traffic::One => says("one_replica"),
        Traffic::Within { chips, .. } => says("chips_filled").with("chips", chips).with("within", true),
    }
}

/// Limits that an estimate breaks.
fn over<'a>(q: &Question, e: &Estimate, among: &'a [Bound]) -> impl Iterator<Item = Bound> + use<'a> {
    let bits = q.limits.broken(e);
    among.iter().copied().filter(move |b| bits & (1 << *b as u8) != 0)
}

pub(super) fn broken(q: &Question, e: &Estimate, among: &[Bound]) -> Vec<Remark> {
    over(q, e, among).filter_map(|b| Some(limit(b, q.limits.get(b)?))).collect()
}

/// Limits as asked; those on percentiles say so.
pub(super) fn limits(q: &Question, held: &[Option<AtMost>; 3]) -> Vec<Remark> {
    let at = |b: Bound| match b {
        Bound::Ttft => held[0],
        Bound::Tpot => held[1],
        Bound::E2e => held[2],
        _ => None,
    };
    let one = |b: Bound| match at(b) {
        Some(l) => Some(limit(b, l.ms / 1e3).with("percentile", l.percentile)),
        None => Some(limit(b, q.limits.get(b)?)),
    };
    Bound::ALL.iter().filter_map(|b| one(*b)).collect()
}

/// An amount of what a limit is on.
pub(super) fn amount(bound: Bound, value: f64) -> Remark {
    match bound {
        Bound::Ttft | Bound::Tpot | Bound::E2e => says("a_time").with("x", Seconds::checked(value)),
        Bound::Throughput => says("a_token_rate").with("x", value),
        Bound::Headroom => says("a_share").with("x", value),
        Bound::UsdPerHour => says("a_dollar_rate").with("x", DollarRate::checked(value / 3600.0)),
        Bound::UsdPerMtok => says("a_token_price").with("x", DollarsPerToken::per_mtok(value)),
        Bound::Watts => says("a_power").with("x", value),
        Bound::Chips => says("a_count").with("x", value),
    }
}

pub(super) fn limit(bound: Bound, limit: f64) -> Remark {
    let side = if bound.at_least() { "at_least" } else { "at_most" };
    says(side).with("bound", bound.name()).with("amount", amount(bound, limit))
}
