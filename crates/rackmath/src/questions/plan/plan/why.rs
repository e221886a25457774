//! Why a plan is what it is: which limits hold it, what each is worth, and what stands in the way where there is none.

use super::Machine;
use super::answer::{Plan, Relaxation, Shadow};
use super::search::{Move, Searched, moves};
use super::worked::Worked;
use crate::desk::prelude::*;
use rackmath_theory::plan::{Bound, Estimate, Near, Question, Ranked, Traffic};
use rackmath_theory::{count as parameters, kv};

impl Worked {
    /// What the family of a plan could do without limits, and which limits forbid it.
    pub(super) fn why(&self, r: &Ranked, best: Option<&Ranked>) -> String {
        let q = &self.question;
        let score = |e: &Estimate| q.objective.score(e);
        let (first, last) = (self.space.first(r.family), self.space.first(r.family + 1));
        let free = (first..last)
            .filter_map(|i| self.space.estimate(i, q.output, q.traffic))
            .min_by(|a, b| score(a).total_cmp(&score(b)));
        let held = free.filter(|e| score(e) < score(&r.estimate)).map(|e| {
            let broken = q.limits.broken(&e);
            let names: Vec<&str> =
                Bound::ALL.iter().copied().filter(|b| broken & (1 << *b as u8) != 0).map(Bound::name).collect();
            (names.join(" and "), score(&e))
        });
        let change = |now: f64, then: f64| significant(((now - then) / then).abs() * 100.0, 3);
        let Some(best) = best.filter(|b| b.index != r.index) else {
            return match held {
                Some((names, free)) => {
                    format!(
                        "held by {names}: without it {} would be {} % better",
                        self.ask.objective,
                        change(free, score(&r.estimate))
                    )
                }
                None => "no limit holds it back: its own best".into(),
            };
        };
        let (mine, theirs) = (score(&r.estimate), score(&best.estimate));
        let behind =
            if mine == theirs { "equal, but slower".into() } else { format!("{} % worse", change(mine, theirs)) };
        match held {
            Some((names, free)) if free < theirs => format!("{behind}; would be better but for {names}"),
            Some((names, _)) => format!("{behind}; also held by {names}"),
            None => format!("{behind} at its own best"),
        }
    }

    pub(super) fn relaxations(&self, near: &[Near]) -> Vec<Relaxation> {
        let q = &self.question;
        let one = |n: &Near| {
            let asked = q.limits.get(n.bound)?;
            let needed = n.bound.amount(&n.ranked.estimate);
            Some(Relaxation {
                limit: n.bound.name().into(),
                asked: amount(n.bound, asked),
                needed: amount(n.bound, needed),
                factor: needed / asked,
                by: self.words(n.ranked.index),
            })
        };
        near.iter().filter_map(one).collect()
    }

    pub(super) fn verdict(&self, plans: &[Plan], relaxations: &[Relaxation]) -> String {
        if let Some(best) = plans.first() {
            return format!(
                "{} replica{} of {} chip{}: {} of output, first token after {}, then {} a token",
                best.replicas,
                if best.replicas == 1 { "" } else { "s" },
                best.chips_per_replica,
                if best.chips_per_replica == 1 { "" } else { "s" },
                DollarsPerToken::per_mtok(best.usd_per_mtok.value),
                Seconds::ms(best.ttft_ms.value),
                Seconds::ms(best.tpot_ms.value)
            );
        }
        if self.made.fit == 0 {
            return format!(
                "nothing fits: none of {} layouts has room for the weights and one request on at most {} chips",
                self.made.layouts,
                self.ask.machines.iter().map(|m| m.chips).max().unwrap_or(0)
            );
        }
        if relaxations.is_empty() {
            return "no deployment meets the limits, and moving a single one is not enough".into();
        }
        "no deployment meets all limits; each of these moves alone would be enough".into()
    }

    /// Sentences; none where there is a plan, or where limits can be met one by one.
    pub(super) fn because(&self, s: &Searched) -> Vec<String> {
        if !s.found.top.is_empty() {
            return Vec::new();
        }
        if self.made.fit == 0 {
            return self.ask.machines.iter().filter_map(|m| self.memory(m)).collect();
        }
        s.floors.iter().map(|near| self.floor(near)).collect()
    }

    /// Weights and the cache of one request against what the chips hold.
    fn memory(&self, m: &Machine) -> Option<String> {
        let weights = parameters::count(&self.ask.model);
        let least = self.ask.formats.iter().map(|f| weights.stored_bytes(f).get()).min_by(f64::total_cmp)?;
        let held = Tokens::new(self.ask.requests.context());
        let kvs = self.ask.kvs.iter().map(|kv| kv.unwrap_or_else(|| self.ask.model.cache_dtype()));
        let cache = kvs.map(|kv| kv::cache(&self.ask.model, kv).stored(held).get()).min_by(f64::total_cmp)?;
        let used = self.ask.engines.iter().map(|e| e.schedule.memory.get()).max_by(f64::total_cmp)?;
        let one = m.system.chip.memory.size().get() * used;
        let chips = ((least + cache) / one).ceil();
        let need = if chips > m.chips as f64 {
            format!("that takes at least {} chips of this kind", count(chips))
        } else {
            "cut over the chips, no layout leaves room for it and the work space of a pass".into()
        };
        Some(format!(
            "weights take {} and the cache of one request of {} tokens {}; {} chip{} of {} have {} for both; {need}",
            Bytes::b(least),
            count(held.get()),
            Bytes::b(cache),
            count(m.chips as f64),
            if m.chips == 1 { "" } else { "s" },
            m.system.chip.name,
            Bytes::b(one * m.chips as f64),
        ))
    }

    /// The least any deployment can do, and what takes the time.
    fn floor(&self, near: &Near) -> String {
        let choice = self.chosen(near.ranked.index);
        let e = &near.ranked.estimate;
        let side = if near.bound.at_least() { "above" } else { "below" };
        let least = format!(
            "no deployment has {} {side} {}: {}",
            near.bound.name(),
            amount(near.bound, near.bound.amount(e)),
            self.words(near.ranked.index)
        );
        if !matches!(near.bound, Bound::Tpot | Bound::E2e) {
            return format!("{least}, its steps bound by {}", e.binding.name());
        }
        let n = choice.per_group;
        let step = self.step(&choice);
        let mut limits = step.limits.clone();
        limits.sort_by(|a, b| b.ms.total_cmp(&a.ms));
        let shares: Vec<String> =
            limits.iter().take(3).map(|l| format!("{} % {}", significant(l.share * 100.0, 2), l.what)).collect();
        format!(
            "{least} with {} in flight: a step of {} is {}; its arithmetic and memory traffic alone, at full rates, take {}",
            if n == 1.0 { "one request".into() } else { format!("{} requests", count(n)) },
            Seconds::ms(step.step_ms),
            shares.join(", "),
            Seconds::ms(step.ideal_ms)
        )
    }
}

/// The best score with each limit, and the traffic, moved by a tenth.
pub(super) fn shadows(q: &Question, best: &Ranked, moved: &[Option<Ranked>]) -> Vec<Shadow> {
    let now = q.objective.score(&best.estimate);
    let change = |r: &Option<Ranked>| r.map(|r| (q.objective.score(&r.estimate) - now) / now.abs());
    let one = |(m, best): (Move, &[Option<Ranked>])| Shadow {
        limit: match m.bound {
            Some(bound) => limit_words(bound, m.asked),
            None => format!("{} requests per second", significant(m.asked, 3)),
        },
        tighter: best.first().and_then(change),
        looser: best.last().and_then(change),
    };
    moves(q).into_iter().zip(moved.chunks(2)).map(one).collect()
}

/// Traffic in words.
pub(super) fn traffic(traffic: Traffic) -> String {
    match traffic {
        Traffic::Rate(rate) => format!("{} requests per second", significant(rate, 3)),
        Traffic::Fill(chips) => format!("as many requests as {} chips serve", count(chips)),
        Traffic::One => "one replica".into(),
        Traffic::Within { chips, .. } => format!("as many requests as {} chips serve within the limits", count(chips)),
    }
}

/// Limits that an estimate breaks, in words.
pub(super) fn broken(q: &Question, e: &Estimate, among: &[Bound]) -> Vec<String> {
    let bits = q.limits.broken(e);
    let broken = among.iter().filter(|b| bits & (1 << **b as u8) != 0);
    broken.filter_map(|b| Some(limit_words(*b, q.limits.get(*b)?))).collect()
}

/// Limits in words.
pub(super) fn limits(q: &Question) -> Vec<String> {
    Bound::ALL.iter().filter_map(|b| Some(limit_words(*b, q.limits.get(*b)?))).collect()
}

/// An amount as people say it.
pub(super) fn amount(bound: Bound, value: f64) -> String {
    match bound {
        Bound::Ttft | Bound::Tpot | Bound::E2e => Seconds::checked(value).map_or_else(String::new, |s| s.to_string()),
        Bound::Throughput => TokenRate::per_s(value).to_string(),
        Bound::Headroom => format!("{} %", significant(value * 100.0, 3)),
        Bound::UsdPerHour => DollarRate::checked(value / 3600.0).map_or_else(String::new, |d| d.to_string()),
        Bound::Watts => Watts::w(value).to_string(),
        Bound::Chips => count(value),
    }
}

pub(super) fn limit_words(bound: Bound, limit: f64) -> String {
    let side = if bound.at_least() { "at least" } else { "at most" };
    format!("{} {side} {}", bound.name(), amount(bound, limit))
}
